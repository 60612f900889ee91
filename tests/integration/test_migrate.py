"""A queue moves from shard to shard: `sluice admin migrate-shard`, and what goes on meanwhile."""
import json
import os
import re
import subprocess
import threading
import time
from pathlib import Path

import pytest
import served
from locked import acquire, commit, public
from redis import Redis
from served import SLUICED, texts, until

SLUICE = str(Path(SLUICED).parent / "sluice")


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores")
    with Redis(folder / "a", "--databases", "64") as a, Redis(folder / "b", "--databases", "64") as b:
        yield a, b


numbers = iter(range(1, 64))


@pytest.fixture
def shards(stores):
    db = next(numbers)
    return ("redis.shards:\n"
            f"  red: {{address: '{stores[0].address}', db: {db}}}\n"
            f"  blue: {{address: '{stores[1].address}', db: {db}}}\n"
            "  disk: {engine: log}\n"
            "  fast: {engine: memory}\n")


def mapped(shards, command, shard, version=1, before=None):
    previous = f"  previousShards: {{commandMappings: {{{command}: {before}}}}}\n" if before else ""
    return (f"sharding:\n  enabled: true\n  version: {version}\n"
            f"  commandMappings: {{{command}: {shard}}}\n{previous}{shards}")


class Node(served.Node):
    def says(self, command, source, target, *options, code=0):
        """The command line's answer; or why it has failed."""
        done = subprocess.run(
            [SLUICE, "admin", "migrate-shard", "--server", "http://%s:%d" % self.address, "--command",
             command, "--from-shard", source, "--to-shard", target, *options],
            capture_output=True, text=True, timeout=120)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done.stderr if code else done.stdout

    def migrate(self, *words, code=0):
        said = self.says(*words, "--json", code=code)
        return said if code else json.loads(said)

    def holds(self, shard, other, topic="q"):
        """How many messages of it a shard has."""
        return self.migrate(topic, shard, other, "--dry-run")["left"]

    def drain(self, **params):
        """All that can be had now, acked, by text."""
        found = []
        while True:
            batch = self.dequeue(limit=100, **params)
            if not batch:
                return found
            found += texts(batch)
            for message in batch:
                self.ack(message, **params)


@pytest.mark.parametrize("source,target", [
    ("red", "blue"), ("red", "disk"), ("disk", "red"), ("fast", "disk"), ("disk", "fast")])
def test_a_queue_moves_whole_and_in_its_order(tmp_path, shards, source, target):
    """SH-63, SH-68, SH-69, SH-71, SH-73, SH-09"""
    with Node(tmp_path, mapped(shards, "q", source)) as node:
        node.topic = "q"
        node.enqueue(*({"text": f"{p}.{i:02}", "priority": p, **({"key": f"k{i % 3}"} if i % 2 else {})}
                       for i in range(20) for p in (0, 5)))
        node.enqueue({"text": "late", "delay": "1h"}, {"text": "once", "idempotency_key": "id-1"})
        node.enqueue({"text": "dies", "priority": -1})
        node.nack(node.take(), dead=True)
        done = node.migrate("q", source, target, "--batch-size", "7", "--verify")
        assert done["moved"] == 43 and done["verified"] and done["done"] and done["batches"] >= 5
        again = node.migrate("q", source, target, "--verify")
        assert again["moved"] == 0 and again["there"] == 43
        known, = node.enqueue({"text": "twice", "idempotency_key": "id-1"})
        assert len(node.dlq()) == 1
        assert node.stats()["delayed"] == 1
        found = node.drain()
        assert len(found) == 41 and "once" in found and "twice" not in found
        for p in "05":
            plain = [t for t in found if t.startswith(p + ".") and int(t[2:]) % 2 == 0]
            assert plain == sorted(plain)
        for k in range(3):
            line = [t for t in found if "." in t and int(t[2:]) % 2 and int(t[2:]) % 3 == k]
            assert [t[2:] for t in line] == sorted(t[2:] for t in line)


def test_what_a_memory_shard_gives_after_a_restart_is_taken(tmp_path, shards):
    """SH-78: it begins anew, and is not mistaken for what it gave before."""
    with Node(tmp_path, mapped(shards, "q", "fast")) as node:
        node.topic = "q"
        node.enqueue(*({"text": "before"} for _ in range(20)))
        assert node.migrate("q", "fast", "disk", "--batch-size", "1")["moved"] == 20
        node.restart("kill")
        node.enqueue({"text": "after"})
        assert node.migrate("q", "fast", "disk", "--verify")["moved"] == 1
        assert sorted(node.drain()) == ["after"] + ["before"] * 20


def test_holds_go_with_their_queue(tmp_path, shards):
    with Node(tmp_path, mapped(shards, "q", "fast")) as node:
        node.topic = "q"
        node.enqueue({"text": "1", "key": "k"}, {"text": "2"})
        assert node.post("/v1/admin/queue/hold", {**node.here(), "scope": "key", "name": "k", "for": "5m"}).status == 200
        node.migrate("q", "fast", "disk", "--verify")
        assert node.drain() == ["2"]
        node.reload(mapped(shards, "q", "disk", 2, before="fast"))
        listed, = node.get("/v1/admin/queue/limits", **node.here()).body["holds"]
        assert (listed["scope"], listed["name"]) == ("key", "k")
        assert node.post("/v1/admin/queue/hold", {**node.here(), "scope": "key", "name": "k"}).status == 200
        assert node.drain() == ["1"]


def test_cleaning_up_spans_shards(tmp_path, shards):
    """SH-46: dead letters, and what waits, of a queue that has some on two shards."""
    with Node(tmp_path, mapped(shards, "q", "red")) as node:
        node.topic = "q"
        for version in (1, 2):
            node.enqueue({"text": "dies", "priority": 0}, {"text": "waits", "ttl": "1h"})
            node.nack(node.take(), dead=True)
            if version == 1:
                node.reload(mapped(shards, "q", "blue", 2, before="red"))
        assert (node.holds("red", "blue"), node.holds("blue", "red")) == (2, 2)
        assert node.post("/v1/admin/dlq/delete", node.here()).body["deleted"] == 2
        assert node.post("/v1/admin/queue/purge", node.here()).body["purged"] == 2
        assert (node.holds("red", "blue"), node.holds("blue", "red")) == (0, 0)


def test_a_queue_that_moves_or_has_moved_is_not_deleted(tmp_path, shards):
    """Who has some of it, or knows the number of a batch, would make it anew."""
    with Node(tmp_path, mapped(shards, "q", "red")) as node:
        node.topic = "q"
        node.enqueue({"text": "a"})
        node.reload(mapped(shards, "q", "blue", 2, before="red"))
        path = f"/v1/admin/queues/{node.namespace}/"
        for _ in range(2):
            refused = node.call("DELETE", path + "q", force="true")
            assert (refused.status, refused.body["error"]) == (409, "conflict"), refused
            assert "between shards" in refused.body["message"]
            assert node.stats()["ready"] == 1
            node.migrate("q", "red", "blue", "--verify")
        node.enqueue({"text": "x"}, topic="never-moved")
        assert node.call("DELETE", path + "never-moved", force="true").body["messages"] == 1


def test_back_by_one_command(tmp_path, shards):
    """SH-76: though the map says nothing of either."""
    with Node(tmp_path, mapped(shards, "q", "red")) as node:
        node.topic = "q"
        node.enqueue(*({"text": f"{i:02}"} for i in range(30)))
        assert node.migrate("q", "red", "disk")["by_hand"]
        assert node.stats()["ready"] == 30  # SH-41: found where they are
        assert (node.holds("red", "disk"), node.holds("disk", "red")) == (0, 30)
        node.enqueue({"text": "30"})
        assert node.migrate("q", "red", "disk", "--rollback", "--verify")["moved"] == 31
        assert (node.holds("red", "disk"), node.holds("disk", "red")) == (31, 0)
        assert node.drain() == [f"{i:02}" for i in range(31)]


def test_what_is_asked_for_is_what_moves(tmp_path, shards):
    """SH-64, SH-65, SH-66, SH-67"""
    with Node(tmp_path, mapped(shards, "q", "red")) as node:
        for namespace in ("one", "two"):
            for topic in ("q", "other"):
                node.enqueue({"namespace": namespace, "topic": topic, "text": "x"})
        plan = node.migrate("q", "red", "blue", "--dry-run")
        assert plan["left"] == 2 and plan["moved"] == 0
        assert sorted(q["namespace"] for q in plan["queues"]) == ["one", "two"]
        assert node.holds("blue", "red") == 0
        assert node.migrate("q", "red", "blue", "--tenant", "one")["moved"] == 1
        assert node.holds("red", "blue") == 1
        assert node.migrate("q", "red", "blue")["moved"] == 1
        assert node.holds("default", "blue", "other") == 2
        assert "unknown shard: nowhere" in node.migrate("q", "red", "nowhere", code=3)
        assert "invalid move from red to red" in node.migrate("q", "red", "red", code=1)


def test_a_namespace_whose_override_names_a_third_shard_stays(tmp_path, shards):
    """SH-63: unless it is named."""
    config = mapped(shards, "q", "fast")
    with Node(tmp_path, config) as node:
        node.topic = "q"
        for space in ("a", "b"):
            node.enqueue({"text": space}, namespace=space)
        node.reload(mapped(shards, "q", "disk", 2).replace(
            "sharding:\n", "sharding:\n  tenantOverrides: {b: red}\n  previousShards: {defaultShard: fast}\n"))
        plan = node.migrate("q", "fast", "disk", "--dry-run")
        assert plan["left"] == 1 and plan["skipped"] == [{"namespace": "b", "shard": "red"}]
        done = node.migrate("q", "fast", "disk", "--verify")
        assert done["moved"] == 1 and done["verified"] and [q["namespace"] for q in done["queues"]] == ["a"]
        assert node.migrate("q", "fast", "disk", "--tenant", "b", "--dry-run")["left"] == 1
        assert node.migrate("q", "fast", "disk", "--tenant", "b")["moved"] == 1  # by hand, against the map
        assert node.migrate("q", "fast", "red")["skipped"] == []  # it names one of the two


@pytest.mark.parametrize("source,target", [("red", "blue"), ("disk", "red"), ("fast", "disk")])
def test_lock_keys_of_every_namespace_move(tmp_path, shards, source, target):
    """SH-65: they are the queue `.locks`, which no list of queues shows."""
    with Node(tmp_path, mapped(shards, ".locks", source)) as node:
        for node.namespace in ("one", "one-more", "two"):
            for key in ("a", "b/c"):
                commit(node, key, {"of": node.namespace})
        plan = node.migrate(".locks", source, target, "--dry-run")
        assert sorted(q["namespace"] for q in plan["queues"]) == ["one", "one-more", "two"]
        assert plan["left"] == 6
        assert re.search(r"^  lock keys +6$", node.says(".locks", source, target, "--dry-run"), re.M)
        done = node.migrate(".locks", source, target, "--batch-size", "1", "--verify")
        assert done["moved"] == 6 and done["verified"] and done["done"]
        assert (node.holds(source, target, ".locks"), node.holds(target, source, ".locks")) == (0, 6)
        assert node.says(".locks", source, target, "--rollback") == f"6 lock keys moved from {target} to {source}\n"
        for node.namespace in ("one", "one-more", "two"):
            assert public(node, "b/c").body == {"of": node.namespace}
            assert node.get("/topics", namespace=node.namespace).body["topics"] == []


def test_what_is_leased_is_waited_for_or_taken_away(tmp_path, shards):
    """SH-74, SH-75"""
    with Node(tmp_path, mapped(shards, "q", "disk")) as node:
        node.topic = "q"
        node.enqueue({"text": "a"}, {"text": "b"})
        held = node.take()
        mover = threading.Thread(target=node.migrate, args=("q", "disk", "red"))
        mover.start()
        until(lambda: node.holds("disk", "red") == 1)
        assert mover.is_alive()
        node.ack(held)
        mover.join(60)
        assert not mover.is_alive() and node.holds("disk", "red") == 0
        held = node.take()
        node.migrate("q", "disk", "red", "--rollback", "--force-expire")
        assert node.settle("/ack", held).status in (404, 409)
        assert texts([node.take()]) == texts([held])


@pytest.mark.parametrize("source,target", [("red", "blue"), ("disk", "red"), ("fast", "disk")])
def test_a_lock_key_that_is_held_is_taken_away(tmp_path, shards, source, target):
    """SH-75: as if its holder had released it without committing."""
    with Node(tmp_path, mapped(shards, ".locks", source)) as node:
        node.namespace = "one"
        commit(node, "k", {"n": 1})
        held = acquire(node, "k")
        assert held.update({"n": 2}).status == 200
        plan = node.says(".locks", source, target, "--dry-run", "--force-expire")
        assert re.search(r"^  leased +1: the move ends their leases$", plan, re.M)
        done = node.migrate(".locks", source, target, "--force-expire", "--verify")
        assert done["moved"] == 1 and done["verified"]
        assert (held.keepalive().status, held.update({"n": 3}).status) == (403, 403)
        assert public(node, "k").body == {"n": 1}
        assert acquire(node, "k").token > held.token


def test_an_old_shard_drains_by_itself_when_the_map_changes(tmp_path, shards):
    """SH-19, SH-50, SH-103: workers see no difference; SH-51, SH-52: and back again."""
    with Node(tmp_path, mapped(shards, "q", "red")) as node:
        node.topic = "q"
        node.enqueue({"text": "old 1", "key": "k"}, {"text": "old 2"})
        node.reload(mapped(shards, "q", "blue", 2, "red"))
        node.enqueue({"text": "new 1"}, {"text": "k 2", "key": "k"})
        assert (node.holds("red", "blue"), node.holds("blue", "red")) == (3, 1)
        assert node.stats()["ready"] + node.stats().get("held", 0) == 4
        assert sorted(node.drain()) == ["k 2", "new 1", "old 1", "old 2"]
        assert node.holds("red", "blue") == 0
        node.enqueue({"text": "there"})
        node.reload(mapped(shards, "q", "red", 3, "blue"))
        node.enqueue({"text": "here"})
        assert (node.holds("red", "blue"), node.holds("blue", "red")) == (1, 1)
        assert sorted(node.drain()) == ["here", "there"]


def test_a_node_with_the_old_map_cannot_split_a_queue(tmp_path, shards):
    """Two nodes on the same stores. One has not read the new map yet."""
    with Node(tmp_path, mapped(shards, "q", "red")) as old, \
            Node(tmp_path, mapped(shards, "q", "blue", 2, "red"), "--node-id", "1", data="new") as new:
        old.topic = new.topic = "q"
        old.enqueue({"text": "0", "key": "k"})
        new.enqueue({"text": "1", "key": "k"}, {"text": "new"})
        old.enqueue({"text": "2", "key": "k"}, {"text": "old"})
        assert (new.holds("red", "blue"), new.holds("blue", "red")) == (3, 2)
        new.migrate("q", "red", "blue", "--verify")
        old.enqueue({"text": "3", "key": "k"})
        assert (new.holds("red", "blue"), new.holds("blue", "red")) == (0, 6)
        found = old.drain()
        assert sorted(found) == ["0", "1", "2", "3", "new", "old"]
        assert [t for t in found if t.isdigit()] == ["0", "1", "2", "3"]


class Load:
    """A producer and workers that go on whatever happens to the server."""

    def __init__(self, node, messages, keys=5):
        self.node = node
        self.messages = messages
        self.keys = keys
        self.acked = []
        self.over = set()  # these, and messages that an ack did not find
        self.seen = {}  # in the order of their first delivery
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.produce, daemon=True)]
        self.threads += [threading.Thread(target=self.work, daemon=True) for _ in range(2)]

    def patiently(self, call):
        """A call that may meet a server that is down; idempotent."""
        while True:
            try:
                answer = call()
            except (OSError, ValueError) + (__import__("http.client").client.HTTPException,):
                time.sleep(0.02)
                continue
            if answer.status not in (429, 503):
                return answer
            time.sleep(0.02)

    def produce(self):
        for i in range(self.messages):
            item = self.node.here(text=f"{i % self.keys} {i}", key=f"k{i % self.keys}",
                                  priority=i % 3, idempotency_key=f"i{i}")
            answer = self.patiently(lambda: self.node.post("/enqueue", [item]))
            assert answer.status == 200, answer

    def work(self, limit=5):
        while len(self.over) < self.messages:
            answer = self.patiently(lambda: self.node.get(
                "/dequeue", **self.node.here(limit=limit, wait="100ms", lease="3s")))
            with self.lock:
                self.seen.update(dict.fromkeys(texts(answer.body), True))
            for message in answer.body:
                self.ack(message)

    def ack(self, message):
        text, = texts([message])
        done = self.patiently(lambda: self.node.settle("/ack", message))
        with self.lock:
            if done.status == 200:
                self.acked.append(text)
            if done.status in (200, 404):  # 404: the answer was lost, or it was late and another's came first
                self.over.add(text)

    def judge(self):
        """Each once, and each key in its order."""
        assert len(self.acked) == len(set(self.acked))
        assert len(self.over) == len(self.seen) == self.messages
        lines = {}
        for text in self.seen:
            key, n = map(int, text.split())
            lines.setdefault(key, []).append(n)
        assert all(line == sorted(line) for line in lines.values())

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        for thread in self.threads:
            thread.join(120)
            assert not thread.is_alive()


def test_nothing_is_lost_or_doubled_when_the_server_is_killed_on_the_way(tmp_path, shards):
    """SH-72, SH-77, SH-78: killed again and again, run again: each once, each key in order."""
    with Node(tmp_path, mapped(shards, "q", "disk")) as node:
        node.topic = "q"
        node.options = (*node.options, "--listen", "%s:%d" % node.address)
        with Load(node, 400) as load:
            for i in range(6):
                until(lambda: len(load.over) > 60 * i)
                source, target = ("disk", "red") if i % 2 == 0 else ("red", "disk")
                mover = subprocess.Popen(
                    [SLUICE, "admin", "migrate-shard", "--server", "http://%s:%d" % node.address,
                     "--command", "q", "--from-shard", source, "--to-shard", target,
                     "--batch-size", "5"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(0.05 + 0.04 * i)  # at whichever step it is
                node.restart("kill")
                mover.wait(60)
        load.judge()
        node.migrate("q", "disk", "red", "--verify")
        assert (node.holds("disk", "red"), node.holds("red", "disk")) == (0, 0)


def test_the_bar_tells_rate_and_what_remains(tmp_path, shards):
    """SH-70: on a terminal."""
    with Node(tmp_path, mapped(shards, "q", "disk")) as node:
        node.enqueue(*({"topic": "q", "text": "x"} for _ in range(300)))
        ours, theirs = os.openpty()
        done = subprocess.Popen(
            [SLUICE, "admin", "migrate-shard", "--server", "http://%s:%d" % node.address, "--command",
             "q", "--from-shard", "disk", "--to-shard", "fast", "--batch-size", "20"],
            stdout=subprocess.PIPE, stderr=theirs)
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:  # how the end of a terminal reads
            pass
        assert done.wait(60) == 0
        assert b"300 messages moved from disk to fast" in done.stdout.read()
        assert b"moving" in shown and b" of 300" in shown and b"/s" in shown


def test_the_runbook_is_there():
    """SH-62: a checklist, stages, a way back."""
    page = (Path(__file__).parents[2] / "docs" / "sharding.md").read_text()
    runbook = page[page.index("### Runbook"):]
    assert runbook.count("- [ ]") >= 5
    assert "In stages:" in runbook and "--rollback" in runbook
