"""Batches: members, their ends, and the message that begins when all have ended."""
import os
import subprocess

import pytest

from clustered import shards, two
from served import Node, texts, until
from test_migrate import Node as Mover

SLUICE = os.environ["SLUICE"]


ROUTES = """sharding: {enabled: true, commandMappings: {near: red, far: blue, over: blue}}
shards: {red: {engine: log}, blue: {engine: log}}
"""


def make(server, **more):
    answer = server.post("/batches", {"namespace": server.namespace, "callback": {"queue": "over", "text": "all"}, **more})
    assert answer.status == 200, answer
    return answer.body["id"]


def show(server, batch):
    answer = server.get("/batch", namespace=server.namespace, id=batch)
    assert answer.status == 200, answer
    return answer.body


def join(server, batch, *names, topic="part", **more):
    answer = server.post("/enqueue", [{"namespace": server.namespace, "topic": topic, "text": name, "batch": batch, **more}
                                      for name in names])
    assert answer.status == 200, answer
    return answer.body


def close(server, batch):
    answer = server.post("/batches/close", {"namespace": server.namespace, "id": batch})
    assert answer.status == 200, answer
    return answer.body


def counts(server, batch):
    found = show(server, batch)
    return found["status"], found["members"], found["done"], found["failed"]


def comes_to(server, batch, *want):
    until(lambda: counts(server, batch) == want)


def finish(server, message, verb="/ack", **more):
    answer = server.post(verb, {"receipt": message["receipt"], **more})
    assert answer.status == 200, answer


def over(server):
    return texts(server.peek(topic="over", limit=10)) if server.get("/stats", **server.here(topic="over")).status == 200 else []


def test_a_batch_calls_back_when_all_have_ended(server):
    batch = make(server)
    join(server, batch, "a", "b")
    assert counts(server, batch) == ("open", 2, 0, 0) and close(server, batch)["status"] == "closed"
    finish(server, server.take(topic="part"))
    comes_to(server, batch, "closed", 2, 1, 0)
    assert over(server) == []
    finish(server, server.take(topic="part"), "/nack", dead=True)
    comes_to(server, batch, "failed", 2, 1, 1)
    message = server.take(topic="over")
    assert message["attributes"] == {"batch": str(batch), "outcome": "failed", "members": 2, "done": 1, "failed": 1}
    assert show(server, batch)["callback"]["id"] == message["id"] and show(server, batch)["pending"] == 0
    assert server.post("/dlq/redrive", server.here(topic="part", limit=1)).status == 200
    finish(server, server.take(topic="part"))
    comes_to(server, batch, "failed", 2, 2, 0)
    assert over(server) == [], "it calls back once"
    assert [b["id"] for b in server.get("/batches", namespace=server.namespace).body["batches"]] == [batch]


def test_the_members_that_are_left_are_found_in_all_queues(server):
    batch = make(server)
    join(server, batch, "a", "b")
    join(server, batch, "c", topic="elsewhere")
    server.enqueue({"text": "none of it"}, topic="part")
    finish(server, server.take(topic="part"))
    for name in batch, show(server, batch)["uid"]:
        found = server.get("/v1/admin/search", namespace=server.namespace, batch=name).body["messages"]
        assert sorted(texts(found)) == ["b", "c"]
    assert server.get("/v1/admin/search", namespace=server.namespace, batch="x").status == 400


def test_the_callback_of_a_batch_begins_in_a_queue_that_is_drained(server):
    server.enqueue({"text": "x"}, topic="over")
    batch = make(server)
    join(server, batch, "a")
    assert server.post("/v1/admin/queue/drain", server.here(topic="over")).status == 200
    close(server, batch)
    finish(server, server.take(topic="part"))
    until(lambda: len(over(server)) == 2)


def why(server, id_, **params):
    answer = server.get("/why", namespace=server.namespace, id=id_, **params)
    assert answer.status == 200, answer
    return answer.body


@pytest.mark.parametrize("named", [False, True])
def test_why_shows_the_batch_of_its_members_and_its_callback(server, named):
    batch = make(server, timeout="1h")
    ids = join(server, batch, "a", "b", "c")
    at = (lambda topic: {"queue": topic}) if named else (lambda topic: {})
    found = why(server, batch)
    assert found["reason"] == "batch" and "is open" in found["text"] and "estimate" not in found
    assert found["reasons"][0]["until"] == show(server, batch)["deadline"]
    close(server, batch)
    finish(server, server.take(topic="part"))
    comes_to(server, batch, "closed", 3, 1, 0)
    assert why(server, batch)["text"] == "the batch waits for 2 of 3 members: 1 done, 0 failed"
    member = why(server, ids[1], **at("part"))
    shown = show(server, batch)
    assert member["reason"] == "no_consumer" and member["batch"] == {
        "id": batch, "uid": shown["uid"], "role": "member", "status": "closed", "members": 3, "done": 1, "failed": 0, "pending": 2}
    finish(server, server.take(topic="part"), "/nack", dead=True)
    finish(server, server.take(topic="part"))
    comes_to(server, batch, "failed", 3, 2, 1)
    assert why(server, batch)["text"] == "the batch has ended: failed"
    callback = why(server, show(server, batch)["callback"]["id"], **at("over"))
    assert callback["reason"] == "no_consumer"
    assert {n: callback["batch"][n] for n in ("id", "role", "done", "failed", "pending")} == {
        "id": batch, "role": "callback", "done": 2, "failed": 1, "pending": 0}


def test_a_purge_of_many_members_is_one_call(server):
    batch = make(server)
    for _ in range(5):
        join(server, batch, *["m"] * 500)
    close(server, batch)
    purged = server.call("POST", "/v1/admin/queue/purge", {"namespace": server.namespace, "queue": "part"})
    assert purged.status == 200 and purged.body["purged"] == 2500, purged
    comes_to(server, batch, "failed", 2500, 0, 2500)
    until(lambda: over(server) == ["all"])


def test_attributes_that_a_client_has_made_are_no_batch(server):
    batch = make(server)
    for attributes in ({"batch": str(batch), "outcome": "done"}, {"batch": batch}, {"batch": "12345", "outcome": "done"}):
        id_, = server.enqueue({"text": "x", "attributes": attributes})
        assert "batch" not in why(server, id_)


def test_what_may_not_join(server):
    batch, other = make(server), make(server)
    part = {"namespace": server.namespace, "topic": "part", "text": "x"}
    for items, says in [([{**part, "batch": batch}, {**part, "batch": other}], "the same batch"),
                        ([{**part, "batch": batch}, part], "the same batch"),
                        ([{**part, "batch": batch, "unique": {"key": "k", "until": "done", "mode": "replace"}}], "replace")]:
        answer = server.post("/enqueue", items)
        assert answer.status == 400 and says in answer.body["message"], answer
    server.enqueue({"text": "parent"})
    answer = server.settle("/ack", server.take(), enqueue={**part, "batch": batch})
    assert answer.status == 400 and "by /enqueue" in answer.body["message"], answer
    assert server.post("/enqueue", [{**part, "batch": 12345}]).status == 404
    assert close(server, batch)["status"] == "done", "an empty batch calls back when it is closed"
    answer = server.post("/enqueue", [{**part, "batch": batch}])
    assert answer.status == 409 and "is closed" in answer.body["message"], answer
    assert server.get("/stats", **server.here(topic="part")).status == 404, "nothing was accepted"
    assert over(server) == ["all"]


def test_a_deadline_calls_back(server):
    batch = make(server, timeout="1s")
    join(server, batch, "a")
    comes_to(server, batch, "deadline", 1, 0, 0)
    assert over(server) == ["all"]


@pytest.mark.parametrize("body, says", [
    ({"callback": {"text": "no queue"}}, "callback: "),
    ({"callback": {"queue": "a", "batch": 12345}}, "expected none"),
    ({"callback": {"queue": "a", "copy_to": ["b"]}}, "expected none"),
    ({"deadline": "2100-01-01T00:00:00Z", "timeout": "1h"}, "not both"),
    ({"timeout": 0}, "timeout"),
])
def test_an_invalid_batch_is_refused(server, body, says):
    answer = server.post("/batches", {"namespace": server.namespace, **body})
    assert answer.status == 400 and says in answer.body["message"], answer


def test_members_on_other_shards_count_once_over_kills(tmp_path):
    """Members, their ends and the callback go by the outbox."""
    with Node(tmp_path, ROUTES, engine="log") as server:
        batch = make(server)
        join(server, batch, "a", "b", topic="near")
        join(server, batch, "c", "d", topic="far")
        join(server, batch, "e", topic="far", idempotency_key="i")
        join(server, batch, "again", topic="far", idempotency_key="i")
        comes_to(server, batch, "open", 5, 0, 0)
        for topic in ("near", "far"):
            finish(server, server.take(topic=topic))
            server.kill()
            server.start()
        close(server, batch)
        finish(server, server.take(topic="far"), "/nack", dead=True)
        comes_to(server, batch, "closed", 5, 2, 1)
        for topic in ("near", "far"):
            finish(server, server.take(topic=topic))
        comes_to(server, batch, "failed", 5, 4, 1)
        until(lambda: over(server) == ["all"])
        server.kill()
        server.start()
        assert counts(server, batch) == ("failed", 5, 4, 1) and over(server) == ["all"]


MOVES = """sharding: {enabled: true, defaultShard: red, commandMappings: {.batches: red}}
shards: {red: {engine: log}, blue: {engine: log}}
"""


@pytest.mark.parametrize("moved", ["part", ".batches"])
def test_a_batch_counts_its_members_while_a_queue_moves(tmp_path, moved):
    """The queue of the members, or the queue of the batches: to another shard, and back."""
    with Mover(tmp_path, MOVES, engine="log") as server:
        batch = make(server)
        join(server, batch, "a", "b", "c", "d")
        held = server.take(topic="part")
        finish(server, server.take(topic="part"))
        move = subprocess.Popen(
            [SLUICE, "admin", "migrate-shard", "--server", "http://%s:%d" % server.address, "--command", moved,
             "--from-shard", "red", "--to-shard", "blue", "--batch-size", "1"], stdout=subprocess.DEVNULL)
        finish(server, held)
        assert move.wait(60) == 0
        comes_to(server, batch, "open", 4, 2, 0)
        finish(server, server.take(topic="part", wait=20))
        close(server, batch)
        server.restart("kill")
        server.migrate(moved, "blue", "red")
        finish(server, server.take(topic="part", wait=20), "/nack", dead=True)
        comes_to(server, batch, "failed", 4, 3, 1)
        until(lambda: over(server) == ["all"])
        server.restart("kill")
        assert counts(server, batch) == ("failed", 4, 3, 1) and over(server) == ["all"]


def test_a_batch_goes_over_a_takeover(tmp_path):
    """The owner of the shards is killed between the ends of the members: the next one goes on counting, and calls back once."""
    with two(tmp_path, lease="2s") as (owner, entry):
        for server in (owner, entry):
            server.namespace = "test"
        batch = make(entry)
        join(entry, batch, "a", "b", "c")
        finish(entry, entry.take(topic="part"))
        held = entry.take(topic="part", lease="10m")
        close(entry, batch)
        owner.kill()
        until(lambda: shards(entry)[1] == 0)
        comes_to(entry, batch, "closed", 3, 1, 0)
        finish(entry, held)
        finish(entry, entry.take(topic="part", wait=20), "/nack", dead=True)
        comes_to(entry, batch, "failed", 3, 2, 1)
        until(lambda: over(entry) == ["all"])
        owner.start()
        until(lambda: sum(shards(owner)) == sum(shards(entry)))
        assert counts(owner, batch) == ("failed", 3, 2, 1) and over(owner) == ["all"]
