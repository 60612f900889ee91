"""A disk that is full, and one that cannot sync."""
import os
import random
import subprocess
import threading
from pathlib import Path

import pytest

from checker import FAIL, OK, UNKNOWN, History, check
from faults import Hurt, seed, until
from load import Client, Load, look
from test_kill import report, snapshot

BIG = "x" * (64 << 10)
SEGMENT = 64 << 20
SECOND = 10**9


class Names:
    def __init__(self):
        self.n = 0

    def __call__(self, n, body):
        self.n += n
        return [{"text": f"m{i} {body}"} for i in range(self.n - n, self.n)]


def fill(server, client, names):
    """Push until the server is full; returns the refusal."""
    for call in range(1, 200):
        if client.push(names(64, BIG), call) != OK:
            break
    answer = server.post("/enqueue", [server.here(text=BIG) for _ in range(64)])
    assert answer.status == 503 and answer.body["error"] == "disk_full", answer
    assert int(answer.headers["Retry-After"]) >= 1
    return answer


def full_disk(server, make_room):
    """MQ-09: what was accepted on the way to a full disk is there."""
    server.namespace, server.topic = "fault", "work"
    history, names = History(), Names()
    client = Client(server, history)
    fill(server, client, names)
    # Old work can be finished: claimed, extended, given back, ended.
    messages = client.claim(limit=60)
    assert len(messages) > 10
    # An ack that brings new work is new work.
    new = {"receipt": messages[0]["receipt"], "enqueue": [server.here(text=BIG)] * 64}
    answer = server.post("/ack", new)
    assert answer.status == 503 and answer.body["error"] == "disk_full", answer
    for message in messages[:4]:
        assert client.settle("extend", message, lease="1m") == OK
        assert client.settle("ack", message) == OK
    assert client.settle("nack", messages[4], delay=0) == OK
    assert client.settle("nack", messages[5], dead=True) == OK
    client.ack_all(messages[6:])
    make_room()
    until(lambda: client.push(names(64, BIG), 1000) == OK)
    assert client.push(names(64, BIG), 1001) == OK
    until(lambda: "disk full no more" in server.said())
    assert server.said().count("disk full: new messages are refused") == 1, server.said()
    assert server.said().count("disk full no more") == 1
    server.kill()
    server.start()
    history.add(snapshot(server))
    client = Client(server, history)
    while messages := client.claim(limit=1000):
        client.ack_all(messages)
    history.add(look(server))
    found = check(history)
    assert not found, report(found)
    assert server.stats()["total"] == 1  # the dead letter


def test_a_full_disk_refuses_new_work_and_finishes_old(folder, shim):
    with Hurt(folder, shim=shim) as server:
        server.grown()
        shim.set("full", 1)
        full_disk(server, lambda: shim.set("full", 0))
        assert shim.get("failed") > 0


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own with room for five segments, and the process that keeps it alive."""
    mount = tmp_path / "disk"
    mount.mkdir()
    keeper = subprocess.Popen(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
         f"mount -t tmpfs -o size={5 * SEGMENT + (1 << 20)} none {mount} && echo ready && "
         "exec sleep 600"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if keeper.stdout.readline() != "ready\n":
        keeper.wait()
        pytest.skip("no user namespaces here")
    yield keeper, mount
    keeper.kill()
    keeper.wait()


def test_a_file_system_without_room_refuses_new_work_and_finishes_old(small_disk):
    """The kernel's own ENOSPC."""
    keeper, mount = small_disk
    inside = Path(f"/proc/{keeper.pid}/root{mount}")
    ballast = inside / "ballast"
    with open(ballast, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, SEGMENT)
    with Hurt(mount / "data", prefix=(
            "nsenter", "-t", str(keeper.pid), "-U", "-m", "--preserve-credentials")) as server:
        full_disk(server, ballast.unlink)


def test_a_file_system_without_room_keeps_nothing_of_a_large_payload(small_disk):
    """WAL-4: what is left is for settling; a payload that does not fit is refused whole."""
    keeper, mount = small_disk
    payloads = Path(f"/proc/{keeper.pid}/root{mount}/data/payloads")
    large = "y" * (11 << 20)
    with Hurt(mount / "data", prefix=(
            "nsenter", "-t", str(keeper.pid), "-U", "-m", "--preserve-credentials")) as server:
        answer = server.post("/enqueue", [server.here(text=large)])
        for _ in range(40):
            if answer.status != 200:
                break
            answer = server.post("/enqueue", [server.here(text=large)])
        assert answer.status == 503 and answer.body["error"] == "disk_full", answer
        taken = server.stats()["ready"]
        until(lambda: len(list(payloads.iterdir())) == taken)
        assert taken > 2
        for _ in range(taken):
            server.ack(server.take())
        until(lambda: list(payloads.iterdir()) == [])
        server.enqueue({"text": large})


def test_a_failed_sync_ends_the_shard_until_it_has_read_its_log_again(folder, shim):
    history, names = History(), Names()
    with Hurt(folder, shim=shim) as server:
        server.namespace, server.topic = "fault", "work"
        server.prepared()
        client = Client(server, history)
        assert client.push(names(10, "x"), 1) == OK
        messages = client.claim(limit=3)
        assert client.settle("ack", messages[0]) == OK
        shim.fail_syncs()
        answer = server.post("/enqueue", [server.here(text="lost? x")])
        assert answer.status == 503, answer
        assert answer.body["error"] in ("outcome_unknown", "shard_failed")
        assert shim.get("sync_fails") == 0 and "Retry-After" in answer.headers
        assert client.push(names(1, "x"), 2) in (FAIL, UNKNOWN)
        # While the disk fails nothing is promised.
        for path, body in (("/enqueue", [server.here(text="no")]),
                           ("/ack", server.here(id=messages[1]["id"]))):
            answer = server.post(path, body)
            assert answer.status == 503 and answer.body["error"] == "shard_failed", answer
        assert server.get("/dequeue", **server.here()).status == 503
        until(lambda: "shard not reopened" in server.said())
        assert server.process.poll() is None
        shim.heal_syncs()
        until(lambda: server.get("/readyz").status == 200)
        until(lambda: "shard reopened" in server.said())
        server.enqueue({"text": "served x"})
        server.kill()
        server.start()
        seen = snapshot(server)
        assert "served" in {name for _, name, _ in seen.rows}
        seen.rows = [row for row in seen.rows if row[1] not in ("lost?", "served")]
        seen.stats = {}
        assert len({name for _, name, _ in seen.rows} - {"m10"}) == 9
        client = Client(server, history)
        for message in messages[1:]:
            assert client.settle("ack", message) == OK


def test_a_sync_that_hangs_holds_up_answers_but_no_wait(folder, shim):
    with Hurt(folder, shim=shim) as server:
        server.prepared()
        server.enqueue({"text": "before"})
        shim.set("sync_stall", 3600 * SECOND)
        begun = shim.get("syncs")
        answers = []
        enqueue = threading.Thread(target=lambda: answers.append(server.enqueue({"text": "late"})))
        enqueue.start()
        until(lambda: shim.get("syncs") > begun)
        # What needs no disk goes on: waits end, health answers, ops that have not run are refused.
        health = server.get("/readyz")
        assert health.status == 503 and "no answer from" in health.body["message"], health
        refused = server.get("/dequeue", **server.here(), wait="1s")
        assert refused.status == 503 and refused.body["error"] == "shard_failed", refused
        assert "no answer from" in refused.body["message"], refused
        assert not answers
        shim.set("sync_stall", 0)
        enqueue.join(60)
        assert len(answers) == 1
        until(lambda: server.get("/readyz").status == 200)
        assert server.stats()["ready"] == 2


def test_the_other_shards_go_on(folder, shim):
    """MQ-07: an id asks no store, so a store that is down takes no id of another store away. MQ-48: the
    reads of that one stop, and nothing is missing when it is back."""
    with Hurt(folder, "--shards", "2", shim=shim) as server:
        topics = [f"t{i}" for i in range(16)]
        until(lambda: len(list(Path(folder).rglob("spare-*"))) >= 6
              and not list(Path(folder).rglob("*.tmp")))
        ids = [server.enqueue({"topic": topic})[0] for topic in topics]
        shim.fail_syncs()
        first = server.post("/enqueue", [server.here(topic="t0")])
        assert first.status == 503
        answers = {t: server.post("/enqueue", [{**server.here(), "topic": t}]) for t in topics}
        status = {t: answer.status for t, answer in answers.items()}
        assert set(status.values()) == {200, 503}
        ids += [answer.body[0] for answer in answers.values() if answer.status == 200]
        assert ids == sorted(set(ids))
        for topic, code in status.items():
            assert server.get("/dequeue", namespace="test", topic=topic).status == code
        server.stop(code=3)
        shim.heal_syncs()
        server.start()
        found = {t: server.stats(topic=t)["total"] for t in topics}
        assert all(n >= 1 + (status[t] == 200) for t, n in found.items())


def test_a_failed_sync_under_load_loses_nothing_that_was_answered(folder, shim):
    """MQ-55 with a disk that fails"""
    history = History()
    dice = random.Random(seed(8))
    with Hurt(folder, shim=shim) as server:
        load = Load(server, history, dice.random())
        load.setup()
        server.prepared()
        for reopens in (True, False, True):
            load.start()
            before = len(history.claims)
            until(lambda: len(history.claims) > before + dice.randint(50, 200))
            shim.fail_syncs()
            until(lambda: shim.get("sync_fails") == 0)
            until(lambda: server.get("/dequeue", **server.here()).status == 503)
            if reopens:
                shim.heal_syncs()
                until(lambda: server.get("/readyz").status == 200)
            load.stop()
            shim.heal_syncs()
            if not reopens:
                server.kill()
                server.start()
            history.add(snapshot(server))
            server.prepared()
        load.finish()
        history.add(look(server))
    found = check(history)
    assert not found, report(found)
