"""Kinds of messages, and consumers that take some of them (docs/scheduling.md): PW-F17."""
import os
import subprocess
import threading

import pytest

from clustered import SHARDS, shards, two
from redis import Redis
from served import ENGINE, Node, Server, texts, until

KINDS = "/v1/admin/queue/limits"


def put(server, *kinds, **common):
    """One message for every kind; "" has none. Its text is the kind."""
    return server.enqueue(*({"text": kind, **({"kind": kind} if kind else {})} for kind in kinds), **common)


def kinds_of(server):
    return server.get(KINDS, order="kind", **server.here()).body["kinds"]


def test_a_claim_takes_the_kinds_that_it_names(server):
    put(server, "mail", "resize", "", "crop", "resize")
    assert texts(server.dequeue(kinds="resize,crop", limit=10)) == ["resize", "crop", "resize"]
    assert server.dequeue(kinds="resize,crop") == []
    assert texts(server.dequeue(limit=10)) == ["mail", ""]


def test_a_message_shows_its_kind(server):
    id_, = put(server, "image/resize:v2")
    assert server.peek(id=id_)[0]["kind"] == "image/resize:v2" and "share" not in server.peek(id=id_)[0]
    assert server.get("/v1/admin/message", id=id_, namespace=server.namespace).body["kind"] == "image/resize:v2"
    assert server.take(kinds="image/resize:v2")["kind"] == "image/resize:v2"


@pytest.mark.parametrize("kind", ["", "x" * 101, "a b", "a,b", "ä"])
def test_an_invalid_kind_is_refused(server, kind):
    answer = server.post("/enqueue", [{**server.here(), "text": "x", "kind": kind}])
    assert answer.status == 400 and "kind" in answer.body["message"]
    assert server.get("/dequeue", kinds=kind, **server.here()).status == (200 if kind == "a,b" else 400)


def test_a_message_has_a_share_or_a_kind(server):
    answer = server.post("/enqueue", [{**server.here(), "text": "x", "kind": "a", "share": "b"}])
    assert answer.status == 400 and "share or kind" in answer.body["message"]


def test_each_waiting_consumer_gets_the_kind_that_it_waits_for(server):
    got = {}

    def wait(kinds):
        got[kinds] = texts(server.dequeue(kinds=kinds, wait=20))

    threads = [threading.Thread(target=wait, args=[kinds]) for kinds in ("a", "b,c", "d")]
    for thread in threads:
        thread.start()
    until(lambda: server.get("/stats", **server.here()).body.get("consumers_waiting", 3) == 3)
    put(server, "x")
    put(server, "d", "c", "a")
    for thread in threads:
        thread.join()
    assert got == {"a": ["a"], "b,c": ["c"], "d": ["d"]}
    assert texts(server.dequeue()) == ["x"]


def test_a_claim_that_comes_is_not_kept_back_by_one_that_waits_for_another_kind(server):
    waiting = threading.Thread(target=server.dequeue, kwargs={"kinds": "never", "wait": 3})
    put(server, "now")
    waiting.start()
    until(lambda: kinds_of(server) and True)
    assert texts(server.dequeue(kinds="now")) == ["now"]
    waiting.join()


def test_kinds_that_nobody_takes_are_shown(server):
    done = threading.Event()

    def work():
        while not done.is_set():
            server.dequeue(kinds="mail", wait=1)

    ids = put(server, "crop", "resize", "crop")
    worker = threading.Thread(target=work)
    worker.start()
    why = until(lambda: (lambda body: body["consumers_waiting"] == 0 and body)(
        server.get("/why", id=ids[0], **server.here()).body))
    rows = until(lambda: (lambda rows: [r["consumers_waiting"] for r in rows] == [0, 0] and rows)(kinds_of(server)))
    done.set()
    worker.join()
    assert why["kind"] == "crop" and {"reason": "no_consumer", "text": "no consumer of kind crop is waiting"} in why["reasons"]
    assert [(r["kind"], r["messages"], r["ready"], r["leased"]) for r in rows] == [("crop", 2, 2, 0), ("resize", 1, 1, 0)]


def test_a_queue_has_256_kinds(server):
    put(server, *(f"k{i}" for i in range(256)))
    answer = server.post("/enqueue", [{**server.here(), "text": "x", "kind": "more"}])
    assert answer.status == 429 and answer.body["limit"] == "kinds"
    assert len(kinds_of(server)) == 256
    assert server.get("/dequeue", kinds=",".join(f"k{i}" for i in range(65)), **server.here()).status == 400


@pytest.mark.skipif(ENGINE == "forwarded", reason="the node that owns the shard is not restarted")
def test_kinds_survive_a_kill_a_retry_and_a_redrive(folder):
    with Server(folder) as server:
        put(server, "a", "b", max_attempts=1)
        server.restart("kill")
        server.nack(server.take(kinds="b"))
        server.restart()
        assert server.dequeue(kinds="b") == []
        server.post("/v1/admin/dlq/redrive", server.here())
        assert texts(server.dequeue(kinds="b")) == ["b"]
        assert texts(server.dequeue(kinds="a")) == ["a"]


def test_a_worker_of_the_command_line_takes_its_kinds(server):
    put(server, "resize", "mail", "crop")
    done = subprocess.run(
        [os.environ["SLUICE"], "work", server.topic, "--kind", "resize,crop", "--idle", "200ms",
         "--server", "http://%s:%d" % server.address, "--namespace", server.namespace, "--", "sh", "-c", 'echo "$SLUICE_KIND"'],
        capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["resize", "crop"]
    assert [r["kind"] for r in kinds_of(server)] == ["mail"]


@pytest.mark.skipif(ENGINE == "forwarded", reason="one server is enough")
def test_redis_refuses_kinds(folder, tmp_path, monkeypatch):
    with Redis(tmp_path) as redis:
        monkeypatch.setenv("SLUICE_REDIS_ADDRESS", redis.address)
        check_redis(folder)


def check_redis(folder):
    with Server(folder, engine="redis") as server:
        answer = server.post("/enqueue", [{**server.here(), "text": "x", "kind": "a"}])
        assert answer.status == 400 and "kinds" in answer.body["message"]
        answer = server.get("/dequeue", kinds="a", **server.here())
        assert answer.status == 400 and "kind" in answer.body["message"]


@pytest.mark.skipif(ENGINE == "forwarded", reason="the servers of a store are made here")
def test_kinds_go_over_a_takeover_and_through_another_server(tmp_path):
    with two(tmp_path, lease="2s") as (owner, entry):
        put(entry, "mail", "crop", "", "resize", "crop")
        assert texts([entry.take(kinds="crop", lease="1h")]) == ["crop"]
        held = entry.take(kinds="crop", lease="1s")
        got = []
        waits = threading.Thread(target=lambda: got.extend(texts(entry.dequeue(kinds="later", wait=60))))
        owner.kill()
        until(lambda: shards(entry) == (SHARDS, 0))
        waits.start()
        put(entry, "later")
        waits.join()
        assert got == ["later"]
        assert texts([entry.take(kinds="crop", wait=20)]) == ["crop"], "its lease has ended"
        assert entry.settle("/ack", held).status == 409
        assert {r["kind"]: r["messages"] for r in kinds_of(entry)} == {"mail": 1, "crop": 2, "resize": 1, "later": 1}
        assert texts(entry.dequeue(kinds="resize,mail", limit=10)) == ["mail", "resize"]
        owner.start()


@pytest.mark.skipif(ENGINE == "forwarded", reason="one server is enough")
def test_a_backup_has_the_kinds(tmp_path):
    sluice = os.environ["SLUICE"]
    with Server(tmp_path / "data") as server:
        put(server, "a", "b", "", "a")
        server.take(kinds="a")
        subprocess.run([sluice, "admin", "backup", "--out", str(tmp_path / "copy.tar"), "--server", "http://%s:%d" % server.address],
                       check=True, capture_output=True, timeout=60)
        put(server, "b")
    subprocess.run([sluice, "admin", "restore", str(tmp_path / "copy.tar"), "--data", str(tmp_path / "restored")],
                   check=True, capture_output=True, timeout=60)
    with Server(tmp_path / "restored") as server:
        assert {r["kind"]: r["messages"] for r in kinds_of(server)} == {"a": 2, "b": 1}
        assert texts(server.dequeue(kinds="b", limit=10)) == ["b"]


@pytest.mark.skipif(ENGINE == "forwarded", reason="one server is enough")
def test_kinds_go_by_the_outbox(tmp_path):
    """With an ack, as copies, and as dead letters of another queue."""
    text = "sharding: {enabled: true, commandMappings: {mail: red, far: blue}}\nshards: {red: {engine: log}, blue: {engine: log}}\n"
    with Node(tmp_path, text) as server:
        put(server, "parent")
        far = {"namespace": server.namespace, "topic": "far"}
        answer = server.settle("/ack", server.take(), enqueue=[{**far, "text": kind, "kind": kind} for kind in "ab"])
        assert answer.status == 200, answer
        put(server, "c", copy_to=["far"])
        server.policy(dead_letter_queue="far")
        put(server, "d")
        server.nack(server.take(kinds="d"), dead=True)
        until(lambda: server.stats(topic="far")["ready"] == 4)
        server.restart("kill")
        assert texts(server.dequeue(topic="far", kinds="d,b", limit=10)) == ["b", "d"]
        assert texts(server.dequeue(topic="far", kinds="a", limit=10)) == ["a"]
        assert texts(server.dequeue(topic="far", kinds="c", limit=10)) == ["c"]
        assert texts(server.dequeue(kinds="c")) == ["c"]
