"""Unique messages: one of a key in the queue until it is delivered, until it is done, or for a time (docs/scheduling.md)."""
import json
import subprocess
from pathlib import Path

import pytest

from clustered import two
from redis import Redis
from served import ENGINE, SLUICED, Node, Server, texts, until

SLUICE = str(Path(SLUICED).parent / "sluice")
NEEDS_LEDGER = pytest.mark.skipif(ENGINE == "redis", reason="engine redis has no unique messages")


def push(server, text, until="done", mode="keep", key="k", **more):
    """The answer for one message."""
    item = {**server.here(), "text": text, "unique": {"key": key, "until": until, "mode": mode}, **more}
    answer = server.post("/enqueue?detail=1", [item])
    assert answer.status == 200, answer
    return answer.body[0]


def outcome(server, text, **how):
    return push(server, text, **how)["unique"]


@NEEDS_LEDGER
def test_a_second_message_of_the_key_is_kept_out(server):
    first = push(server, "one")
    again = push(server, "two")
    assert (first["unique"], first["duplicate"]) == ("new", False)
    assert again == {"id": first["id"], "uid": first["uid"], "duplicate": True, "unique": "kept"}
    assert outcome(server, "other", key="j") == "new"
    assert texts(server.peek(limit=9)) == ["one", "other"]
    assert server.peek(limit=1)[0]["unique"] == {"key": "k", "until": "done"}


@NEEDS_LEDGER
def test_until_started_ends_at_the_first_delivery(server):
    push(server, "one", until="started")
    assert outcome(server, "two", until="started") == "kept"
    held = server.take()
    assert outcome(server, "three", until="started") == "new"
    server.nack(held, delay="0s")
    assert outcome(server, "four", until="started") == "kept"  # the third has the key, not the first again
    assert sorted(texts(server.peek(limit=9))) == ["one", "three"]


@NEEDS_LEDGER
@pytest.mark.parametrize("end", ["ack", "die", "delete", "purge"])
def test_until_done_ends_when_the_message_is_gone_or_dead(server, end):
    first = push(server, "one")
    if end != "delete" and end != "purge":
        held = server.take()
        assert outcome(server, "two") == "kept"
        server.ack(held) if end == "ack" else server.nack(held, dead=True)
    elif end == "delete":
        assert server.post("/v1/admin/message/delete", {"namespace": server.namespace, "id": first["id"]}).status == 200
    else:
        assert server.post("/v1/admin/queue/purge", server.here()).status == 200
    third = push(server, "three")
    assert third["unique"] == "new" and third["id"] != first["id"]


@NEEDS_LEDGER
def test_a_redriven_message_is_not_unique_any_more(server):
    first = push(server, "one")
    server.nack(server.take(), dead=True)
    push(server, "two")
    assert server.post("/v1/admin/dlq/redrive", server.here(ids=[first["id"]])).status == 200
    assert sorted(texts(server.peek(limit=9))) == ["one", "two"]
    assert push(server, "three")["id"] != first["id"]


@NEEDS_LEDGER
def test_for_a_time_ends_with_the_time_whether_the_message_is_there_or_not(server):
    push(server, "one", until="1s")
    assert outcome(server, "two", until="1s") == "kept"
    until(lambda: outcome(server, "three", until="1h") == "new")
    assert sorted(texts(server.peek(limit=9))) == ["one", "three"]
    for message in server.dequeue(limit=9):
        server.ack(message)
    assert outcome(server, "four", until="1h") == "kept"  # gone, and its time is not over
    assert server.peek(limit=9) == []


@NEEDS_LEDGER
def test_replace_changes_a_waiting_message_and_keeps_its_place(server):
    first = push(server, "old", priority=7, attributes={"v": 1})
    server.enqueue({"text": "behind", "priority": 7})
    again = push(server, "new", mode="replace", priority=7, attributes={"v": 2})
    assert (again["id"], again["unique"], again["duplicate"]) == (first["id"], "replaced", True)
    ready = server.peek(limit=9)
    assert texts(ready) == ["new", "behind"] and ready[0]["attributes"] == {"v": 2}
    assert outcome(server, "newest", mode="replace", priority=9) == "replaced"
    assert texts(server.peek(limit=9)) == ["behind", "newest"]
    assert outcome(server, "later", mode="replace", delay="1h") == "replaced"
    assert texts(server.peek(limit=9)) == ["behind"] and texts(server.peek(state="delayed")) == ["later"]
    assert outcome(server, "now", mode="replace", priority=1) == "replaced"
    assert texts(server.dequeue(limit=9)) == ["now", "behind"]


@NEEDS_LEDGER
def test_a_message_with_an_ordering_key_keeps_priority_and_due_time(server):
    push(server, "old", priority=7)
    first = server.post("/enqueue?detail=1", [{**server.here(), "text": "a", "key": "c", "priority": 9,
                                               "unique": {"key": "u", "until": "done"}}]).body[0]
    again = server.post("/enqueue?detail=1", [{**server.here(), "text": "b", "key": "c", "priority": 1, "delay": "1h",
                                               "unique": {"key": "u", "until": "done", "mode": "replace"}}]).body[0]
    assert again["id"] == first["id"] and again["unique"] == "replaced"
    assert [(m["priority"], *texts([m])) for m in server.peek(limit=9)] == [(7, "old"), (9, "b")]
    other = server.post("/enqueue?detail=1", [{**server.here(), "text": "c", "key": "d",
                                               "unique": {"key": "u", "until": "done", "mode": "replace"}}]).body[0]
    assert other["unique"] == "kept"  # another ordering key


@NEEDS_LEDGER
def test_replace_of_a_leased_message_keeps_it(server):
    first = push(server, "one")
    held = server.take()
    assert push(server, "two", mode="replace") == {"id": first["id"], "uid": first["uid"], "duplicate": True, "unique": "kept"}
    server.nack(held, delay="0s")
    assert texts(server.peek(limit=9)) == ["one"]


@NEEDS_LEDGER
def test_replace_frees_what_it_replaces(server):
    push(server, "x" * 100_000)
    before = server.stats(**server.here())
    for i in range(20):
        assert outcome(server, "y" * 1000, mode="replace") == "replaced"
    assert texts(server.peek(limit=9)) == ["y" * 1000] and server.stats(**server.here())["ready"] == before["ready"] == 1


@pytest.mark.skipif(ENGINE != "log", reason="engine log keeps messages")
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_all_survives_a_restart(folder, how):
    with Server(folder, engine="log") as server:
        push(server, "a", key="a", until="started")
        push(server, "b", key="b")
        push(server, "c", key="c", until="1h")
        push(server, "d", key="d", priority=9)
        push(server, "e", key="d", mode="replace", priority=1, attributes={"v": 2})
        push(server, "f", key="f", until="started", priority=2)
        push(server, "g", key="g", priority=99)
        push(server, "h", key="g", mode="replace", priority=99)
        assert texts(server.dequeue(limit=2)) == ["e", "f"]
        server.restart(how)
        assert texts(server.peek(limit=9)) == ["a", "b", "c", "h"]
        assert outcome(server, "-", key="f", until="started", delay="1h") == "new"
        assert [outcome(server, "-", key=k) for k in "abcd"] == ["kept"] * 4
        for message in server.dequeue(limit=3):
            server.ack(message)
        server.restart(how)
        assert [outcome(server, "-", key=k, delay="1h") for k in "abcd"] == ["new", "new", "kept", "kept"]


def test_a_move_keeps_keys(tmp_path):
    shards = "shards: {red: {engine: log}, blue: {engine: log}}\n"
    text = "sharding: {enabled: true, version: %d, commandMappings: {mail: %s}%s}\n" + shards
    with Node(tmp_path, text % (1, "red", "")) as server:
        push(server, "a", key="a", until="started", priority=1)
        push(server, "b", key="b", priority=2)
        push(server, "c", key="c", until="1h", priority=3)
        push(server, "d", key="d", until="1h", priority=4)
        server.nack(server.take(), delay="0s", priority=8)  # a: started; its priority is 8 now
        for message in server.dequeue(limit=2):
            server.ack(message) if texts([message]) == ["c"] else server.nack(message, delay="0s")
        server.reload(text % (2, "blue", ", previousShards: {commandMappings: {mail: red}}"))
        done = subprocess.run([SLUICE, "admin", "migrate-shard", "--server", "http://%s:%d" % server.address, "--command", "mail",
                               "--from-shard", "red", "--to-shard", "blue"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert [(m["priority"], *texts([m])) for m in server.peek(limit=9)] == [(2, "b"), (4, "d"), (8, "a")]
        assert [outcome(server, "-", key=k, until="started", delay="1h") for k in "abcd"] == ["new", "kept", "kept", "kept"]


def test_another_node_sends_them(tmp_path):
    with two(tmp_path) as (_, entry):
        push(entry, "one", until="1h")
        assert outcome(entry, "two", until="1h") == "kept"
        assert outcome(entry, "three", mode="replace") == "replaced"
        assert texts(entry.peek(limit=9)) == ["three"]


@NEEDS_LEDGER
def test_an_ack_may_enqueue_unique_messages(server):
    server.enqueue({"text": "parent"})
    child = {**server.here(topic="next"), "text": "child", "unique": {"key": "k", "until": "done"}}
    assert server.settle("/ack", server.take(), enqueue=[child, child]).status == 200
    assert texts(server.peek(topic="next", limit=9)) == ["child"]


@NEEDS_LEDGER
@pytest.mark.parametrize("bad", [
    {"unique": {"key": "k"}}, {"unique": {"until": "done"}}, {"unique": {"key": "k", "until": "soon"}},
    {"unique": {"key": "k", "until": "10ms"}}, {"unique": {"key": "k", "until": "done", "mode": "both"}},
    {"unique": {"key": "k", "until": "done", "x": 1}}, {"unique": {"key": "", "until": "done"}},
    {"unique": {"key": "k", "until": "done"}, "idempotency_key": "i"},
    {"unique": {"key": "k", "until": "done"}, "copy_to": ["other"]}])
def test_invalid_ones_are_refused(server, bad):
    answer = server.post("/enqueue", [{**server.here(), "text": "x", **bad}])
    assert answer.status == 400 and server.peek(limit=9) == []


@NEEDS_LEDGER
def test_a_call_replaces_one_message_at_most_and_is_accepted_whole(server):
    def item(text, mode="replace", **more):
        return {**server.here(), "text": text, "unique": {"key": text[0], "until": "done", "mode": mode}, **more}
    push(server, "old", key="a")
    answer = server.post("/enqueue", [item("a1"), item("b1")])
    assert answer.status == 400 and "expected one at most" in answer.body["message"]
    server.policy(max_depth=3)
    many = [item("a2"), *({**server.here(), "text": str(i)} for i in range(9))]
    assert server.post("/enqueue", many).status == 429
    assert texts(server.peek(limit=9)) == ["old"]
    server.enqueue({"text": "parent", "priority": 0})
    assert server.settle("/ack", server.take(), enqueue=[item("a3")]).status == 400
    assert texts(server.peek(limit=9)) == ["old"]


@NEEDS_LEDGER
def test_a_strict_queue_does_not_compare_their_payloads(server):
    server.policy(idempotency="strict")
    push(server, "one")
    assert outcome(server, "two") == "kept"


@NEEDS_LEDGER
def test_the_command_line(server):
    def cli(*words, code=0):
        done = subprocess.run([SLUICE, *words, "--server", "http://%s:%d" % server.address, "--namespace", server.namespace],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done.stdout

    said = [json.loads(cli("push", "mail", "--json", "--unique", "k", "--until", "1h", *more)) for more in
            (["one"], ["two"], ["three", "--replace"])]
    assert [m["unique"] for m in said] == ["new", "kept", "replaced"]
    assert [m["duplicate"] for m in said] == [False, True, True]
    assert texts(server.peek(limit=9)) == ["three"]
    cli("push", "mail", "x", "--until", "1h", code=2)
    cli("push", "mail", "x", "y", "--unique", "k", code=2)
    cli("push", "mail", "--retry", "fixed:1h", "r", "--priority", "0")
    held, = json.loads("[%s]" % cli("pull", "mail", "--json"))
    cli("nack", held["receipt"], "--error", "no", "--priority", "3")
    late, = server.peek(state="delayed")
    assert late["priority"] == 3 and texts([late]) == ["r"]


@NEEDS_LEDGER
def test_a_nack_gives_another_priority(server):
    server.enqueue({"text": "a", "priority": 1}, {"text": "b", "priority": 2}, {"text": "c", "priority": 3, "key": "k"})
    a, b, c = server.dequeue(limit=3)
    server.nack(a, defer=True, priority=9)
    server.nack(b, dead=True, priority="low")
    server.nack(c, defer=True, priority=4)
    assert [(m["priority"], *texts([m])) for m in server.peek(limit=9)] == [(4, "c"), (9, "a")]
    dead, = server.dlq()
    assert dead["priority"] == 10


def test_redis_refuses(tmp_path, monkeypatch):
    with Redis(tmp_path) as redis:
        monkeypatch.setenv("SLUICE_REDIS_ADDRESS", redis.address)
        with Server(tmp_path / "data", engine="redis") as server:
            answer = server.post("/enqueue", [{**server.here(), "text": "x", "unique": {"key": "k", "until": "done"}}])
            assert answer.status == 400 and "engine redis" in answer.body["message"]
            server.enqueue({"text": "x"})
            answer = server.settle("/nack", server.take(), priority=1)
            assert answer.status == 400 and "engine redis" in str(answer.body)
