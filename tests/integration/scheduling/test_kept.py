"""What scheduling stores survives the cleaning of the log, and a move of the queue to another shard (docs/scheduling.md).

A case prepares something, and has a check that holds before and after. A cleaned log has been opened again, so the
server knows only what cleaning has relocated."""
import base64
import subprocess
import time
from pathlib import Path

import pytest

from served import SLUICED, Node, seconds_of, texts, until

SLUICE = str(Path(SLUICED).parent / "sluice")
TEXT = """
sharding: {enabled: true, version: %d, commandMappings: {mail: %s, churn: red, late: red, first: red}%s}
shards: {red: {engine: log}, blue: {engine: log}}
"""


def segments(server):
    return sorted(f.name for f in Path(server.folder).rglob("red/**/*.log"))


def cleaned(server):
    """Messages come and go until nothing of the first segments is left; then a kill."""
    def churn():
        ids = server.enqueue(*[{"text": "x" * (64 << 10)}] * 60, topic="churn")
        for message in server.dequeue(topic="churn", limit=len(ids)):
            server.post("/ack", {"receipt": message["receipt"]})
        return segments(server)[0] not in before

    before = segments(server)
    until(churn, 120)
    server.restart("kill")


def moved(server):
    server.reload(TEXT % (2, "blue", ", previousShards: {commandMappings: {mail: red}}"))
    done = subprocess.run([SLUICE, "admin", "migrate-shard", "--server", "http://%s:%d" % server.address, "--command", "mail",
                           "--from-shard", "red", "--to-shard", "blue"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.fixture(params=[cleaned, moved], ids=["cleaned", "moved"])
def then(request):
    return request.param


@pytest.fixture
def node(tmp_path):
    with Node(tmp_path, TEXT % (1, "red", "")) as server:
        yield server


def lasts(message):
    return seconds_of(message["lease_expires_at"]) - time.time()


def why(server, id_):
    return server.get("/why", id=id_, **server.here()).body


def breakers(server):
    rows = server.get("/v1/admin/queue/limits", **server.here()).body["breakers"]
    return sorted((row["scope"], row.get("name", ""), row["state"], round(seconds_of(row["until"]))) for row in rows)


# ---- Terms ----

def test_a_lease_retries_and_a_longest_run_are_kept(node, then):
    node.enqueue({"text": "a", "lease": "2h", "retry": {"kind": "fixed", "base": "3h", "max": "3h", "jitter": "none"}},
                 {"text": "b", "max_runtime": "1h"})
    then(node)
    one, two = node.dequeue(limit=2)
    assert texts([one, two]) == ["a", "b"] and 7000 < lasts(one) <= 7200
    node.settle("/extend", two, lease="2h")
    row, = [m for m in node.peek(state="leased", limit=9) if m["id"] == two["id"]]
    assert 3500 < lasts(row) <= 3600
    node.nack(one)
    row, = node.peek(state="delayed")
    assert 10700 < seconds_of(row["next_delivery"]) - time.time() <= 10800


def test_a_deadline_is_kept(node, then):
    moment = time.time() + 3
    node.enqueue({"text": "never", "deadline": "2100-01-01T00:00:00Z", "delay": "1h"},
                 {"text": "soon", "deadline": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment)), "delay": "1h"})
    then(node)
    dead, = until(lambda: node.dlq())
    assert texts([dead]) == ["soon"] and dead["reason"] == "expired"
    row, = node.peek(state="delayed")
    assert row["expires_at"].startswith("2100-01-01")


# ---- Dead letters ----

def test_a_queue_for_dead_letters_is_kept(node, then):
    node.policy(dead_letter_queue="late")
    node.enqueue({"text": "early"}, {"text": "after"})
    node.nack(node.take(), dead=True, error="broken")
    until(lambda: len(node.peek(topic="late", limit=9)) == 1)
    then(node)
    node.nack(node.take(), dead=True, error="broken again")
    letters = until(lambda: len(node.peek(topic="late", limit=9)) == 2 and node.peek(topic="late", limit=9))
    assert texts(letters) == ["early", "after"]
    assert [m["dead_letter_of"]["error"] for m in letters] == ["broken", "broken again"]


def test_what_a_dead_letter_says_of_its_first_queue_is_kept(node, then):
    assert node.call("PUT", "/policy", {"dead_letter_queue": "mail"}, **node.here(topic="first")).status == 200
    node.enqueue({"text": "a", "attributes": {"x": 1}}, topic="first")
    sent = node.take(topic="first")
    assert node.post("/nack", {"receipt": sent["receipt"], "dead": True, "error": "broken"}).status == 200
    until(lambda: node.peek(limit=9))
    then(node)
    got = node.take()
    assert got["id"] == sent["id"] and got["attributes"] == {"x": 1} and got["created_at"] == sent["created_at"]
    assert got["dead_letter_of"] == {"queue": "first", "reason": "rejected", "error": "broken"}


# ---- Breakers ----

def test_open_breakers_are_kept(node, then):
    node.policy(breakers="smtp: 1 in 1m, open 2h; crm: 1 in 1m, open 1h, by key; web: 1 in 1m, open 3h, by share")
    node.enqueue({"text": "k", "key": "customer-7"}, {"text": "s", "share": "alice"}, {"text": "q"}, {"text": "free"})
    for reason in ("crm", "web", "smtp"):
        got = node.take()
        assert node.post("/nack", {"receipt": got["receipt"], "delay": "0s", "reason": reason}).status == 200
    before = breakers(node)
    assert [row[0] for row in before] == ["key", "queue", "share"]
    then(node)
    assert [row[:3] for row in breakers(node)] == [row[:3] for row in before]
    assert all(abs(now[3] - was[3]) <= 1 for now, was in zip(breakers(node), before)) and node.dequeue() == []
    assert node.post("/v1/admin/queue/breaker", {**node.here(), "breaker": "smtp", "state": "closed"}).status == 200
    assert sorted(texts(node.dequeue(limit=9))) == ["free", "q"]
    assert [row[0] for row in breakers(node)] == ["key", "share"]


def test_a_breaker_that_was_closed_stays_closed(node, then):
    node.policy(breakers="smtp: 1 in 1m, open 1h")
    node.enqueue({"text": "a"})
    got = node.take()
    assert node.post("/nack", {"receipt": got["receipt"], "delay": "0s", "reason": "smtp"}).status == 200
    assert node.post("/v1/admin/queue/breaker", {**node.here(), "breaker": "smtp", "state": "closed"}).status == 200
    then(node)
    assert breakers(node) == [] and texts(node.dequeue()) == ["a"]


# ---- Rules at the door ----

def test_rules_and_what_they_did_are_kept(node, then):
    node.policy(rules="risk > 0.8: high; slow = 1: delay 2h")
    old, waits = node.enqueue({"text": "old", "attributes": {"risk": 0.9}}, {"text": "waits", "attributes": {"slow": 1}})
    then(node)
    new, = node.enqueue({"text": "new", "attributes": {"risk": 1}})
    for id_ in (old, new):
        row, = node.peek(id=id_)
        assert row["priority"] == 0 and row["rule"] == "risk > 0.8: high"
    assert why(node, waits)["rule"] == "slow = 1: delay 2h" and why(node, waits)["reason"] == "delayed"
    assert [base64.b64decode(m["payload"]) for m in node.dequeue(limit=9)] == [b"old", b"new"]
