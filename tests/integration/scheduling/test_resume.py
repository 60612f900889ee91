"""Checkpoints: an extend stores how far a consumer has come, and the next one goes on from there (docs/scheduling.md)."""

import pytest

from clustered import shards, two
from lockd import Client
from redis import Redis
from served import ENGINE, Server, texts, until
from test_migrate import Node as Mover
from test_message_state import state_of

MAX = 64 << 10  # bytes of a checkpoint


def extend(server, message, checkpoint, **more):
    answer = server.post("/extend", {"receipt": message["receipt"], "checkpoint": checkpoint, **more})
    assert answer.status == 200, answer
    return answer.body


def put(server, *items, **common):
    return server.enqueue(*(items or ({"text": "x"},)), **common)


def test_the_next_holder_gets_the_last_checkpoint(server):
    """PW-F8"""
    put(server)
    first = server.take()
    assert "checkpoint" not in first
    assert "lease_expires_at" in extend(server, first, {"row": 1})
    extend(server, first, {"row": 2, "sums": [1, 2.5, None, "ä"]})
    server.nack(first, delay=0)
    second = server.take()
    assert second["checkpoint"] == {"row": 2, "sums": [1, 2.5, None, "ä"]} and second["attempts"] == 2
    server.nack(second, defer=True, delay=0)
    assert server.take()["checkpoint"]["row"] == 2, "it stays without another"


@pytest.mark.parametrize("checkpoint", [0, "row 17", False, [None], {"x": None}, [], {"a": {"b": [1]}}, "\n\"\\"])
def test_a_checkpoint_is_any_json(server, checkpoint):
    put(server)
    message = server.take()
    extend(server, message, checkpoint)
    server.nack(message, delay=0)
    assert server.take().get("checkpoint", "none") == checkpoint


def test_null_leaves_the_checkpoint_as_it_is(server):
    put(server)
    message = server.take()
    extend(server, message, 1)
    extend(server, message, None)
    server.nack(message, delay=0)
    assert server.take()["checkpoint"] == 1


def test_a_checkpoint_outlives_its_lease(server):
    put(server)
    extend(server, server.take(), "half", lease="50ms")
    again = server.take(wait=20)
    assert (again["checkpoint"], again["failure_attempts"]) == ("half", 1)


def test_a_checkpoint_goes_with_its_message(server):
    put(server)
    message = server.take()
    extend(server, message, "half")
    server.ack(message)
    key = f"q/{server.topic}/state/{message['uid']}"
    assert server.get("/v1/get", namespace=server.namespace, key=key, public=1).status == 204
    assert "checkpoint" not in (put(server) and server.take())


def test_a_dead_letter_keeps_its_checkpoint(server):
    put(server, max_attempts=1)
    message = server.take()
    extend(server, message, {"row": 5})
    server.nack(message)
    server.post("/dlq/redrive", {**server.here(), "ids": [message["id"]]})
    assert server.take()["checkpoint"] == {"row": 5}


def test_only_the_holder_stores_a_checkpoint(server):
    put(server)
    old = server.take(lease="50ms")
    new = server.take(wait=20)
    answer = server.post("/extend", {"receipt": old["receipt"], "checkpoint": "late"})
    assert answer.status == 409 and answer.body["error"] == "lease_lost"
    server.nack(new, delay=0)
    assert "checkpoint" not in server.take()
    assert server.post("/extend", {"receipt": new["receipt"], "checkpoint": "late"}).status == 409


def test_a_list_of_extends_stores_a_checkpoint_each(server):
    put(server, *({"text": str(i)} for i in range(3)))
    held = server.dequeue(limit=3)
    items = [{"receipt": m["receipt"], "checkpoint": n} for n, m in enumerate(held[:2])] + [{"receipt": held[2]["receipt"]}]
    assert [o["status"] for o in server.post("/extend", items).body] == [200] * 3
    for message in held:
        server.nack(message, delay=0)
    assert [m.get("checkpoint") for m in server.dequeue(limit=3)] == [0, 1, None]


def test_a_checkpoint_has_64_kib(server):
    put(server)
    message = server.take()
    extend(server, message, "y" * (MAX - 2))
    answer = server.post("/extend", {"receipt": message["receipt"], "checkpoint": "z" * (MAX - 1)})
    assert answer.status == 400 and "checkpoint" in answer.body["message"]
    server.nack(message, delay=0)
    assert server.take()["checkpoint"] == "y" * (MAX - 2)


def test_a_large_message_has_its_checkpoint(server):
    put(server, {"text": "p" * (2 << 20)}, topic="large")
    message = server.take(topic="large")
    extend(server, message, {"row": 9})
    server.post("/nack", {"receipt": message["receipt"], "delay": 0})
    again = server.take(topic="large")
    assert again["checkpoint"] == {"row": 9} and len(texts([again])[0]) == 2 << 20


def test_the_checkpoint_is_the_state_of_the_message(server):
    """A lease of lockd sees it, and a state that lockd has committed is a checkpoint."""
    put(server, topic="orders")
    message = server.take(topic="orders")
    extend(server, message, {"step": 1})
    answer = server.get("/v1/get", namespace=server.namespace, key=f"q/orders/state/{message['uid']}", public=1)
    assert answer.body == {"step": 1} and answer.headers["X-Key-Version"] == "1"


def test_a_state_of_lockd_is_a_checkpoint_unless_it_is_large(server):
    client = Client(server.address, namespace=server.namespace, queue="orders")
    for n, text in enumerate([{"step": 1}, {"z": "z" * (100 << 10)}]):
        client.enqueue({}, b"x")
        message = client.take()
        assert state_of(server, message).update(text).status == 200
        client.nack(message, delay_seconds=0)
        again = server.take(topic="orders")
        assert again.get("checkpoint") == (text if n == 0 else None)
        server.post("/ack", {"receipt": again["receipt"]})


@pytest.mark.skipif(ENGINE == "forwarded", reason="the node that owns the shard is not restarted")
@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_checkpoint_that_was_answered_survives_the_server(folder, how):
    """PW-F8: kill -9. The attempts are recorded once."""
    with Server(folder) as server:
        put(server, *({"text": str(i)} for i in range(20)))
        held = server.dequeue(limit=20, lease="1s")
        for n, message in enumerate(held):
            for row in range(3):
                extend(server, message, {"row": [n, row]}, lease="1s")
        server.restart(how)
        again = {}
        while len(again) < 20:
            again.update({m["text" if "text" in m else "id"]: m for m in server.dequeue(limit=20, wait=20)})
        assert sorted(m["checkpoint"]["row"] for m in again.values()) == [[n, 2] for n in range(20)]
        assert {(m["attempts"], m["failure_attempts"]) for m in again.values()} == {(2, 1)}
        for message in again.values():
            server.ack(message)
        server.restart(how)
        assert server.dequeue() == []


MOVES = """sharding: {enabled: true, version: %d, commandMappings: {mail: %s}, previousShards: {commandMappings: {mail: %s}}}
shards: {red: {engine: log}, blue: {engine: %s}}
"""


@pytest.mark.skipif(ENGINE == "forwarded", reason="one server is enough")
@pytest.mark.parametrize("engine", ["log", "memory"])
def test_a_checkpoint_moves_with_its_queue(tmp_path, engine):
    with Mover(tmp_path, MOVES % (1, "red", "red", engine)) as node:
        put(node, {"text": "waits"}, {"text": "held"}, {"text": "plain"})
        waits, held, plain = node.dequeue(limit=3)
        extend(node, waits, "half")
        extend(node, held, "quarter")
        node.nack(waits, delay=0)
        node.nack(plain, delay="1h")
        node.reload(MOVES % (2, "blue", "red", engine))
        extend(node, held, "three quarters", lease="1s")
        assert node.migrate("mail", "red", "blue", "--verify")["done"]
        assert {texts([m])[0]: m["checkpoint"] for m in node.dequeue(limit=3)} == {"waits": "half", "held": "three quarters"}


@pytest.mark.skipif(ENGINE == "forwarded", reason="the servers of a store are made here")
def test_a_checkpoint_goes_over_a_takeover_and_through_another_server(tmp_path):
    with two(tmp_path, lease="2s") as (owner, entry):
        put(entry)
        message = entry.take(lease="5s")
        extend(entry, message, {"row": 3}, lease="1s")
        owner.kill()
        until(lambda: shards(entry)[0] > 0)
        assert until(lambda: entry.dequeue(wait=5))[0]["checkpoint"] == {"row": 3}
        owner.start()


@pytest.mark.skipif(ENGINE == "forwarded", reason="one server is enough")
def test_redis_keeps_checkpoints(folder, tmp_path, monkeypatch):
    """Over the end of a lease, a kill of the server, and a dead letter; large ones and those without text, too."""
    with Redis(tmp_path) as redis:
        monkeypatch.setenv("SLUICE_REDIS_ADDRESS", redis.address)
        with Server(folder, engine="redis") as server:
            put(server, {"text": "a", "max_attempts": 2}, {"text": "b"})
            first, other = server.dequeue(limit=2, lease="30s")
            extend(server, first, {"row": 1})
            extend(server, first, {"row": [2, "ä\u0000\n"], "z": "y" * (MAX - 200)}, lease="1s")
            server.restart("kill")
            again = until(lambda: server.dequeue(limit=2, wait=5))[0]
            assert again["checkpoint"]["row"] == [2, "ä\u0000\n"] and len(again["checkpoint"]["z"]) == MAX - 200
            assert (again["attempts"], again["failure_attempts"]) == (2, 1)
            late = server.post("/extend", {"receipt": first["receipt"], "checkpoint": "late"})
            assert late.status == 409 and late.body["error"] == "lease_lost"
            server.nack(again)
            server.post("/dlq/redrive", {**server.here(), "ids": [again["id"]]})
            server.nack(other, delay=0)
            got = {texts([m])[0]: m for m in server.dequeue(limit=2)}
            assert got["a"]["checkpoint"]["row"][0] == 2 and "checkpoint" not in got["b"]
            key = f"q/{server.topic}/state/{got['a']['uid']}"
            assert server.get("/v1/get", namespace=server.namespace, key=key, public=1).body["row"][0] == 2
            server.ack(got["a"])
            assert server.get("/v1/get", namespace=server.namespace, key=key, public=1).status == 204
