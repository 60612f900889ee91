"""Policy dead_letter_queue: dead letters go to a queue of their own (docs/scheduling.md)."""
import pytest

from clustered import two
from redis import Redis
from served import ENGINE, Node, Server, texts, until

ROUTES = """sharding: {enabled: true, commandMappings: {mail: red, near: red, far: blue}}
shards: {red: {engine: log}, blue: {engine: log}}
"""


def set_policy(server, topic="mail", **settings):
    return server.post("/v1/admin/queue/policy", settings, **server.here(topic=topic))


def sends(server, to, topic="mail", **more):
    answer = set_policy(server, topic, dead_letter_queue=to, **more)
    assert answer.status == 200 and answer.body["dead_letter_queue"] == to, answer


def reject(server, *items):
    """Enqueues the messages, and rejects each. Returns them as they were delivered."""
    server.enqueue(*items)
    taken = server.dequeue(limit=len(items))
    assert len(taken) == len(items)
    for message in taken:
        server.nack(message, dead=True, error="broken")
    return taken


def arrive(server, topic, n):
    until(lambda: len(server.peek(topic=topic, limit=100)) == n)
    return server.peek(topic=topic, limit=100)


@pytest.mark.parametrize("to", ["near", "far"])
def test_a_dead_letter_starts_again_in_the_other_queue(tmp_path, to):
    with Node(tmp_path, ROUTES) as server:
        sends(server, to, max_attempts=2)
        sent, = reject(server, {"text": "a", "key": "k", "priority": 2, "attributes": {"x": 1}, "correlation_id": "c",
                                "idempotency_key": "once", "ttl": "1h"})
        got, = arrive(server, to, 1)
        assert got["id"] == sent["id"] and texts([got]) == ["a"]
        assert got["key"] == "k" and got["attributes"] == {"x": 1} and got["correlation_id"] == "c"
        assert got["dead_letter_of"] == {"queue": "mail", "reason": "rejected", "error": "broken"}
        assert got["created_at"] == sent["created_at"] and got["attempts"] == 0 and got["max_attempts"] == 5
        assert "expires_at" not in got
        assert server.dlq() == []
        assert server.enqueue({"text": "again", "idempotency_key": "once"}) == [sent["id"]], "its queue knows the key"


def test_failures_and_ttls_send_a_message_too(server):
    if ENGINE == "redis":
        pytest.skip("engine redis keeps dead letters in their queue")
    sends(server, "late", max_attempts=1)
    server.enqueue({"text": "fails"})
    server.nack(server.take())
    server.enqueue({"text": "expires", "ttl": "1ms"})
    rows = arrive(server, "late", 2)
    assert {(texts([m])[0], m["dead_letter_of"]["reason"]) for m in rows} == {("fails", "max_attempts"), ("expires", "expired")}


def test_the_oldest_leaves_first_also_when_the_policy_comes_later(tmp_path):
    with Node(tmp_path, ROUTES) as server:
        reject(server, *({"text": str(i)} for i in range(100)))
        assert len(server.dlq(limit=200)) == 100
        sends(server, "far")
        assert texts(arrive(server, "far", 100)) == [str(i) for i in range(100)]
        sends(server, "")
        reject(server, {"text": "stays"})
        assert len(server.dlq()) == 1


def test_a_dead_letter_of_a_full_queue_arrives(tmp_path):
    with Node(tmp_path, ROUTES) as server:
        set_policy(server, "far", max_depth=1)
        sends(server, "far")
        reject(server, {"text": "a"}, {"text": "b"})
        arrive(server, "far", 2)


def test_a_kill_between_two_shards_loses_nothing(tmp_path):
    with Node(tmp_path, ROUTES) as server:
        sends(server, "far")
        for i in range(5):
            reject(server, *({"text": f"{i}-{j}"} for j in range(20)))
            server.restart("kill")
        assert sorted(texts(arrive(server, "far", 100))) == sorted(f"{i}-{j}" for i in range(5) for j in range(20))
        assert server.dlq() == []


def test_another_node_sets_it_and_sees_the_dead_letter(tmp_path):
    with two(tmp_path) as (_, entry):
        sends(entry, "far")
        sent, = reject(entry, {"text": "a"})
        got, = arrive(entry, "far", 1)
        assert got["id"] == sent["id"] and got["dead_letter_of"]["queue"] == "mail"


def test_a_circle_is_refused(tmp_path):
    with Node(tmp_path, ROUTES) as server:
        for bad in ("mail", "MAIL"):
            answer = set_policy(server, dead_letter_queue=bad)
            assert answer.status == 400 and "dead_letter_queue" in answer.body["message"]
        sends(server, "near")
        sends(server, "far", topic="near")
        answer = set_policy(server, "far", dead_letter_queue="mail")
        assert answer.status == 400 and "come back" in answer.body["message"]
        assert server.get("/policy", **server.here(topic="far")).body["dead_letter_queue"] == ""
        sends(server, "")
        sends(server, "mail", topic="far")


@pytest.mark.parametrize("name", [".outbox", "a b", "x" * 129, 7])
def test_an_invalid_name_is_refused(server, name):
    answer = set_policy(server, dead_letter_queue=name)
    assert answer.status == 400 and "dead_letter_queue" in answer.body["message"]


def test_a_large_payload_stays(tmp_path):
    with Node(tmp_path, ROUTES) as server:
        sends(server, "far")
        reject(server, {"text": "x" * (5 << 20)})
        reject(server, {"text": "small"})
        assert texts(arrive(server, "far", 1)) == ["small"]
        assert len(server.dlq()) == 1


def test_redis_refuses(tmp_path, monkeypatch):
    with Redis(tmp_path) as redis:
        monkeypatch.setenv("SLUICE_REDIS_ADDRESS", redis.address)
        with Server(tmp_path / "data", engine="redis") as server:
            answer = set_policy(server, dead_letter_queue="other")
            assert answer.status == 400 and "dead_letter_queue" in answer.body["message"]
