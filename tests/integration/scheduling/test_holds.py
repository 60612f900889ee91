"""What a queue uses of its limits, and holds that an operator sets, lists and ends (docs/scheduling.md)."""
import pytest

from redis import Redis
from served import ENGINE, Server


def limits(server, **more):
    answer = server.get("/v1/admin/queue/limits", **server.here(), **more)
    assert answer.status == 200, answer.body
    return answer.body


def hold(server, scope, name=None, time="10m"):
    answer = server.post("/v1/admin/queue/hold", {
        **server.here(), "scope": scope, "for": time, **({"name": name} if name else {})})
    assert answer.status == 200, answer.body
    return answer.body


def put(server, *shares):
    server.enqueue(*({"text": "x", **({"share": share} if share else {})} for share in shares))


def test_limits_show_what_is_used(server):
    put(server, "a", "a", "a", "b", "")
    server.policy(concurrency=10, share_concurrency=2, rate=100, share_rate=50, share_rate_burst=5)
    assert len(server.dequeue(limit=100)) == 4
    body = limits(server)
    queue, *shares = body["limits"]
    assert queue["scope"] == "queue" and queue["leased"] == 4 and queue["concurrency"] == 10 and queue["ready"] == 1
    assert queue["rate"] == 100 and queue["burst"] == 100 and 96 <= queue["tokens"] <= 100
    assert shares[0]["name"] == "a" and shares[0]["leased"] == 2 and shares[0]["concurrency"] == 2
    assert shares[0]["burst"] == 5 and 3 <= shares[0]["tokens"] <= 5 and shares[0]["delivered"] == 2
    assert [s.get("name") for s in shares[1:]] in (["b", None], [None, "b"]) and body["shares"] == 3
    assert body["holds"] == [] and body["on_hold"] == 0


def test_the_first_20_shares_are_those_with_the_most_messages(server):
    put(server, *(f"s{i}" for i in range(30)), *["big"] * 3, *["bigger"] * 4)
    body = limits(server, order="messages")
    assert [s["name"] for s in body["limits"]][:2] == ["bigger", "big"]
    assert len(body["limits"]) == 20 and body["shares"] == 32
    assert server.get("/v1/admin/queue/limits", **server.here(), order="x").status == 400


@pytest.mark.parametrize("scope, name", [("queue", None), ("share", "a"), ("key", "k")])
def test_an_operator_holds_a_scope_and_releases_it(server, scope, name):
    server.enqueue({"text": "x", "share": "a", "key": "k"})
    assert hold(server, scope, name)["on_hold"]
    assert server.dequeue() == []
    listed, = limits(server)["holds"]
    assert listed["scope"] == scope and listed.get("name") == name and listed["until"]
    assert not hold(server, scope, name, "0s")["on_hold"]
    assert limits(server)["holds"] == [] and len(server.dequeue()) == 1


def test_a_hold_of_a_nack_is_listed_by_the_name_of_its_key(server):
    server.enqueue({"text": "x", "key": "customer 7"})
    got, = server.dequeue()
    assert server.post("/nack", {"receipt": got["receipt"], "retry_after": "5m", "scope": "key"}).status == 200
    assert [(h["scope"], h["name"]) for h in limits(server)["holds"]] == [("key", "customer 7")]


def test_all_holds_are_listed_page_by_page(server):
    put(server, "")
    for i in range(230):
        hold(server, "key", f"k{i}")
    names, body = [], limits(server)
    while True:
        names += [h["name"] for h in body["holds"]]
        if "cursor" not in body:
            break
        body = limits(server, cursor=body["cursor"])
    assert sorted(names) == sorted(f"k{i}" for i in range(230))


@pytest.mark.parametrize("wrong", [{"scope": "tenant"}, {"scope": "queue", "name": "x"}, {"scope": "key"}, {},
                                   {"scope": "share", "name": "x" * 257}, {"scope": "queue", "for": "x"}])
def test_an_invalid_hold_of_an_operator_is_refused(server, wrong):
    put(server, "")
    assert server.post("/v1/admin/queue/hold", {**server.here(), "for": "1m", **wrong}).status == 400
    assert limits(server)["holds"] == []


def test_a_queue_that_does_not_exist_has_no_limits_and_no_holds(server):
    assert server.get("/v1/admin/queue/limits", namespace="default", topic="none").status == 404
    assert server.post("/v1/admin/queue/hold", {
        "namespace": "default", "topic": "none", "scope": "queue", "for": "1m"}).status == 404


@pytest.mark.skipif(ENGINE == "forwarded", reason="the node that owns the shard is not restarted")
def test_holds_keep_their_names_over_a_kill(folder):
    with Server(folder) as server:
        put(server, "a")
        hold(server, "share", "a")
        before = limits(server)["holds"]
        server.restart("kill")
        assert limits(server)["holds"] == before and before[0]["name"] == "a"


def test_hold_max_is_a_setting(folder):
    """hold.max"""
    with Server(folder, "--hold-max", "1s") as server:
        put(server, "")
        hold(server, "queue", time="10m")
        assert len(server.dequeue(wait="60s")) == 1


def test_redis_refuses_limits_and_holds(folder, tmp_path, monkeypatch):
    with Redis(tmp_path) as redis:
        monkeypatch.setenv("SLUICE_REDIS_ADDRESS", redis.address)
        with Server(folder, engine="redis") as server:
            put(server, "")
            answer = server.get("/v1/admin/queue/limits", **server.here())
            assert answer.status == 400 and "engine redis" in answer.body["message"]
            answer = server.post("/v1/admin/queue/hold", {**server.here(), "scope": "queue", "for": "1m"})
            assert answer.status == 400 and "engine redis" in answer.body["message"]
