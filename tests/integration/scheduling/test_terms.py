"""Terms of a message of its own: lease, retry, deadline, max_runtime (docs/scheduling.md)."""
import time

import pytest

from clustered import two
from redis import Redis
from served import ENGINE, Node, Server, seconds_of, texts, until

NEEDS_LEDGER = pytest.mark.skipif(ENGINE == "redis", reason="engine redis has no terms of a message")


def lasts(message):
    """How long the lease of a delivery lasts, about: from now on."""
    return seconds_of(message["lease_expires_at"]) - time.time()


@NEEDS_LEDGER
def test_the_lease_of_a_message_is_used_unless_the_claim_names_one(server):
    server.enqueue({"text": "own", "lease": "2h"}, {"text": "own", "lease": "2h"}, {"text": "queue"})
    own, = server.dequeue(limit=1)
    named, = server.dequeue(limit=1, lease="1h")
    queue, = server.dequeue(limit=1)
    assert 7000 < lasts(own) <= 7200 and 3500 < lasts(named) <= 3600 and lasts(queue) <= 30
    server.settle("/extend", queue)
    server.settle("/extend", own)
    rows = {m["id"]: m for m in server.peek(state="leased", limit=9)}
    assert lasts(rows[own["id"]]) > 7000 and lasts(rows[queue["id"]]) <= 30


@NEEDS_LEDGER
def test_a_message_has_its_own_retry_policy(server):
    server.policy(retry={"kind": "fixed", "base": "1h", "jitter": "none"})
    server.enqueue({"text": "own", "retry": {"kind": "none"}}, {"text": "queue"})
    for message in server.dequeue(limit=2):
        server.nack(message)
    assert texts(server.peek(limit=9)) == ["own"]
    assert texts(server.peek(state="delayed", limit=9)) == ["queue"]


@NEEDS_LEDGER
def test_max_runtime_ends_a_lease_however_often_it_is_extended(server):
    server.policy(max_runtime="1h", max_attempts=1)
    server.enqueue({"text": "queue"}, {"text": "own", "max_runtime": "200ms"})
    queue, own = server.dequeue(limit=2, lease="2h")
    assert 3500 < lasts(queue) <= 3600 and lasts(own) < 1
    server.settle("/extend", queue, lease="2h")
    row, = [m for m in server.peek(state="leased", limit=9) if m["id"] == queue["id"]]
    assert lasts(row) <= 3600
    while server.settle("/extend", own, lease="1h").status == 200:
        time.sleep(0.01)
    until(lambda: [m["reason"] for m in server.dlq()] == ["max_attempts"])


def test_a_message_dies_at_its_deadline(server):
    server.enqueue({"text": "late", "deadline": "2020-01-01T00:00:00Z"}, {"text": "early", "deadline": "2100-01-01T00:00:00Z"})
    assert texts(server.dequeue(limit=2)) == ["early"]
    dead, = until(lambda: server.dlq())
    assert dead["reason"] == "expired"


@NEEDS_LEDGER
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_terms_survive_a_restart(folder, how):
    with Server(folder, engine="log") as server:
        server.enqueue({"text": "a", "lease": "2h", "retry": {"kind": "fixed", "base": "3h", "max": "3h", "jitter": "none"}, "max_runtime": "1h",
                        "keep_result": "1m", "deadline": "2100-01-01T00:00:00Z"})
        server.restart(how)
        got = server.take()
        assert 3500 < lasts(got) <= 3600
        server.nack(got)
        row, = server.peek(state="delayed")
        assert seconds_of(row["next_delivery"]) - time.time() > 10000 and row["expires_at"].startswith("2100")


def test_another_node_sends_them(tmp_path):
    with two(tmp_path) as (_, entry):
        entry.enqueue({"text": "a", "lease": "2h"})
        assert lasts(entry.take()) > 7000


def test_children_on_another_shard_have_theirs(tmp_path):
    text = ("sharding: {enabled: true, commandMappings: {mail: red, far: blue}}\n"
            "shards: {red: {engine: log}, blue: {engine: log}}\n")
    with Node(tmp_path, text) as server:
        server.enqueue({"text": "parent"})
        child = {**server.here(topic="far"), "text": "child", "lease": "2h", "deadline": "2100-01-01T00:00:00Z"}
        assert server.settle("/ack", server.take(), enqueue=[child]).status == 200
        row, = server.peek(topic="far")
        assert row["expires_at"].startswith("2100-01-01T00:00:00")
        got, = server.dequeue(topic="far")
        assert lasts(got) > 7000


@pytest.mark.parametrize("bad", [{"lease": "0s"}, {"lease": "13h"}, {"max_runtime": "0s"}, {"retry": {"kind": "x"}},
                                 {"retry": {"delay": "1s"}}, {"deadline": "soon"},
                                 {"deadline": "2100-01-01T00:00:00Z", "ttl": "1h"}])
def test_invalid_terms_are_refused(server, bad):
    answer = server.post("/enqueue", [{**server.here(), "text": "x", **bad}])
    assert answer.status == 400 and server.peek(limit=9) == []


def test_redis_refuses(tmp_path, monkeypatch):
    with Redis(tmp_path) as redis:
        monkeypatch.setenv("SLUICE_REDIS_ADDRESS", redis.address)
        with Server(tmp_path / "data", engine="redis") as server:
            for terms in ({"lease": "1h"}, {"max_runtime": "1h"}, {"retry": {"kind": "none"}}):
                answer = server.post("/enqueue", [{**server.here(), "text": "x", **terms}])
                assert answer.status == 400 and "engine redis" in answer.body["message"]
            answer = server.post("/v1/admin/queue/policy", {"max_runtime": "1h"}, **server.here())
            assert answer.status == 400 and "max_runtime" in answer.body["message"]
