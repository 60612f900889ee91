"""/ack and /nack with `enqueue`: the message ends and others begin in one step."""
import pytest

from served import Node, QUICK, Server, texts


def child(server, text, topic="next", **more):
    return {"namespace": server.namespace, "topic": topic, "text": text, **more}


def ready(server, topic="next"):
    return texts(server.peek(topic=topic, limit=100))


def test_an_ack_brings_its_children(server):
    server.enqueue({"text": "parent", "keep_result": "1h"})
    parent = server.take()
    answer = server.settle("/ack", parent, result={"n": 1}, enqueue=[
        child(server, "a"), child(server, "b", "other", delay="1h")])
    assert answer.status == 200, answer
    one, two = answer.body["enqueued"]
    assert not one["duplicate"] and ready(server) == ["a"]
    assert server.peek(topic="other", state="delayed")[0]["id"] == two["id"]
    assert server.get("/result", **server.here(id=parent["id"])).body["result"] == {"n": 1}
    again = server.settle("/ack", parent, enqueue=child(server, "twice"))
    assert again.status == 404 and ready(server) == ["a"]


def test_a_nack_brings_them_too_and_the_message_comes_back(server):
    server.enqueue({"text": "parent"})
    answer = server.settle("/nack", server.take(), delay=0, error="half", enqueue=child(server, "a"))
    assert answer.status == 200 and answer.body["dead"] is False and len(answer.body["enqueued"]) == 1
    assert ready(server) == ["a"] and server.take()["attempts"] == 2


def test_a_lease_that_is_lost_brings_nothing(server):
    server.enqueue({"text": "parent"})
    first = server.take()
    server.settle("/nack", first, delay=0)
    server.take()
    answer = server.settle("/ack", first, enqueue=child(server, "a"))
    assert answer.status == 409 and answer.body["error"] == "lease_lost", answer
    assert server.get("/stats", **server.here(topic="next")).status == 404


def test_a_child_that_is_refused_leaves_the_lease(server):
    """The children before it are undone, and the ack does not happen."""
    assert server.call("PUT", "/policy", {"max_depth": 1}, **server.here(topic="full")).status == 200
    server.enqueue({"text": "parent"})
    parent = server.take()
    answer = server.settle("/ack", parent, enqueue=[
        child(server, "a"), child(server, "b", "full"), child(server, "c", "full")])
    assert answer.status == 429 and answer.body["error"] == "queue_full", answer
    assert ready(server) == [] and ready(server, "full") == []
    assert server.settle("/ack", parent, enqueue=child(server, "b", "full")).status == 200
    assert ready(server, "full") == ["b"]


def test_items_of_a_call_are_independent(server):
    server.enqueue({"text": "1"}, {"text": "2"}, {"text": "3"})
    one, two, three = server.dequeue(limit=3)
    named = [{"receipt": one["receipt"], "enqueue": [child(server, "a")]}, {"receipt": two["receipt"]},
             {"id": 7, "namespace": server.namespace, "topic": server.topic, "enqueue": [child(server, "b")]}]
    answer = server.post("/ack", named)
    assert [o["status"] for o in answer.body] == [200, 200, 404] and answer.headers["Sluice-Failed"] == "1"
    assert "enqueued" in answer.body[0] and "enqueued" not in answer.body[1] and ready(server) == ["a"]
    assert server.stats()["leased"] == 1 and three["id"]


def test_a_child_of_the_same_key_follows_its_parent(server):
    server.enqueue({"text": "parent", "key": "k"})
    server.settle("/ack", server.take(), enqueue=child(server, "child", server.topic, key="k"))
    assert server.take()["payload"] == "Y2hpbGQ="


def test_a_known_idempotency_key_is_a_duplicate(server):
    first, = server.enqueue({"text": "a", "idempotency_key": "i"}, topic="next")
    server.enqueue({"text": "parent"})
    answer = server.settle("/ack", server.take(), enqueue=child(server, "b", idempotency_key="i"))
    assert answer.body["enqueued"][0]["duplicate"] and answer.body["enqueued"][0]["id"] == first


@pytest.mark.parametrize("enqueue, says", [
    ([], "enqueue: expected at least one item"),
    ([{"topic": "x"}], "enqueue: item 0: "),
    (5, "enqueue: "),
    ([{"namespace": "a", "topic": "b/c"}], "topic"),
])
def test_an_invalid_child_is_refused_before_anything_happens(server, enqueue, says):
    server.enqueue({"text": "parent"})
    parent = server.take()
    answer = server.settle("/ack", parent, enqueue=enqueue)
    assert answer.status == 400 and says in answer.body["message"], answer
    server.ack(parent)


def test_children_count_for_the_rate_limit(tmp_path):
    with Server(tmp_path / "data", "--limits-rate", "1", "--limits-burst", "3", engine=QUICK) as server:
        server.enqueue({"text": "parent"}, {"text": "other"})
        parent, other = server.dequeue(limit=2)
        many = [child(server, "a"), child(server, "b"), child(server, "c"), child(server, "d")]
        answer = server.settle("/ack", parent, enqueue=many)
        assert answer.status == 429 and answer.body["error"] == "limit_reached", answer
        both = [{"receipt": other["receipt"]}, {"receipt": parent["receipt"], "enqueue": many}]
        assert server.post("/ack", both).status == 429, "an ack before it does not hide it"
        server.ack(parent)


def acquire(server, key="stock/42"):
    """The members that `release` takes."""
    answer = server.call("POST", "/v1/acquire", {"namespace": server.namespace, "key": key, "owner": "me", "block_seconds": -1})
    assert answer.status == 200, answer
    return {name: answer.body[name] for name in ("key", "lease_id", "txn_id", "fencing_token")}


def state_of(server, key="stock/42"):
    return server.get("/v1/get", namespace=server.namespace, key=key, public=1).body


@pytest.mark.parametrize("verb", ["ack", "nack"])
def test_a_lock_is_released_with_the_message(server, verb):
    server.enqueue({"text": "parent"})
    answer = server.settle(f"/{verb}", server.take(), release={**acquire(server), "state": {"kg": 3}}, enqueue=child(server, "a"))
    assert answer.status == 200 and len(answer.body["enqueued"]) == 1, answer
    assert state_of(server) == {"kg": 3} and ready(server) == ["a"]
    assert server.stats()["leased"] == 0 and acquire(server)


def test_without_a_state_what_was_staged_counts(server):
    server.enqueue({"text": "parent"})
    lock = acquire(server)
    held = {"X-Lease-ID": lock["lease_id"], "X-Txn-ID": lock["txn_id"], "X-Fencing-Token": str(lock["fencing_token"])}
    update = server.call("POST", "/v1/update", {"n": 1}, headers=held, namespace=server.namespace, key="stock/42")
    assert update.status == 200, update
    answer = server.settle("/ack", server.take(), release=lock)
    assert answer.status == 200 and "enqueued" not in answer.body and state_of(server) == {"n": 1}


def test_a_lock_that_is_not_held_leaves_the_message(server):
    server.enqueue({"text": "parent"})
    parent, lock = server.take(), acquire(server)
    released = server.call("POST", "/v1/release", {"namespace": server.namespace, **lock}, headers={
        "X-Fencing-Token": str(lock["fencing_token"])})
    assert released.status == 200, released
    answer = server.settle("/ack", parent, release={**lock, "state": 1}, enqueue=child(server, "a"))
    assert answer.status == 409 and answer.body["error"] == "lease_lost" and "key stock/42" in answer.body["message"], answer
    assert server.stats()["leased"] == 1 and not ready(server) and not state_of(server)
    server.ack(parent)


@pytest.mark.parametrize("release, says", [
    (5, "release: "),
    ({"key": "a//b", "txn_id": "0" * 20, "lease_id": "x"}, "release: invalid key \"a//b\""),
    ({"txn_id": "0" * 20, "lease_id": "x"}, "release: invalid key"),
    ({"key": "a", "lease_id": "x", "txn_id": "short"}, "release: invalid txn_id: short; expected that of the acquire"),
    ({"key": "a", "owner": "me"}, "release: "),
])
def test_an_invalid_release_is_refused_before_anything_happens(server, release, says):
    server.enqueue({"text": "parent"})
    parent = server.take()
    answer = server.settle("/ack", parent, release=release)
    assert answer.status == 400 and says in answer.body["message"], answer
    server.ack(parent)


def test_locks_on_another_shard_are_not_released(tmp_path):
    text = """sharding: {enabled: true, commandMappings: {mail: red, .locks: blue}}
shards: {red: {engine: log}, blue: {engine: log}}
"""
    with Node(tmp_path, text, engine="log") as server:
        server.enqueue({"text": "parent"})
        parent = server.take()
        answer = server.settle("/ack", parent, release={**acquire(server), "state": 1})
        assert answer.status == 409 and answer.body["error"] == "not_together", answer
        server.ack(parent)
