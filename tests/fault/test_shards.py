"""Several nodes, several shards, and one of them in trouble: what is hurt is its own."""
import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "lib"))

from faults import until  # which knows where the next is
import served
from redis import Redis
from served import texts

SLUICE = os.environ["SLUICE"]
N_CLIENTS = 24


class Alone(Redis):
    """One that no other can reach: a network of its own, and a socket in a folder."""

    def start(self):
        self.address = f"unix:{self.folder}/socket"
        self.process = subprocess.Popen(
            ["unshare", "-rn", "redis-server", "--port", "0", "--unixsocket",
             f"{self.folder}/socket", "--dir", str(self.folder), "--save", "",
             "--appendonly", "yes", "--appendfsync", "always"], stdout=subprocess.DEVNULL)
        until(lambda: self.ask("PING") == "PONG")

    def ask(self, *words):
        done = subprocess.run(["redis-cli", "-s", f"{self.folder}/socket", *words],
                              capture_output=True, text=True, timeout=60)
        return done.stdout.strip()


def settings(version, mapping, stores, former=None, default="red", enabled="true"):
    """YAML: which queue is where, where it was, and the shards."""
    before = f"  previousShards: {{commandMappings: {former}}}\n" if former else ""
    return (f"sharding:\n  enabled: {enabled}\n  version: {version}\n  defaultShard: {default}\n"
            f"  commandMappings: {mapping}\n{before}redis.shards:\n" + "".join(
                f"  {name}: {{address: '{s.address}', timeout: 60s}}\n"
                for name, s in stores.items()))


class Node(served.Node):
    def __init__(self, folder, text, number=0):
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder, text, "--node-id", str(number))


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores")
    with Redis(folder / "red") as red, Redis(folder / "blue") as blue:
        yield {"red": red, "blue": blue}


@pytest.fixture
def fresh(stores):
    """Two shards, empty; they go on when the test is over."""
    for store in stores.values():
        store.command("FLUSHALL")
    yield stores
    for store in stores.values():
        store.signal(signal.SIGCONT)


def threads(n, work):
    crew = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(n)]
    for one in crew:
        one.start()
    return crew


def cycle(node, topic, n):
    """Enqueue, dequeue, ack: all of them go well."""
    for i in range(n):
        node.enqueue({"text": str(i)}, topic=topic)
        message = node.take(topic=topic)
        assert texts([message]) == [str(i)]
        node.ack(message, topic=topic)


# --- nodes and workers ------------------------------------------------------------

def test_any_node_is_killed_and_the_others_go_on(tmp_path, fresh):
    """SH-01: of three, on two shards. SH-18: each queue is on one of them."""
    text = settings(1, "{a: red, b: blue}", fresh)
    with ExitStack() as stack:
        nodes = [stack.enter_context(Node(tmp_path / str(i), text, i)) for i in range(3)]
        for victim in nodes:
            topics = ("a", "b")
            held = []
            for topic in topics:
                victim.enqueue({"text": "1"}, {"text": "2"}, topic=topic)
                held.append(victim.take(topic=topic))
            victim.kill()
            for other in nodes:
                if other is not victim:
                    assert {t: other.stats(topic=t)["total"] for t in topics} == {"a": 2, "b": 2}
                    last = other
            for topic, message in zip(topics, held):
                last.ack(message, topic=topic)
                second = last.take(topic=topic)
                assert texts([second]) == ["2"]
                last.ack(second, topic=topic)
            victim.start()
    assert "q:a:test:s:red" in fresh["red"].command("KEYS", "*q:a:*")
    assert fresh["blue"].command("KEYS", "*q:a:*") == "*0\r\n"
    assert "q:b:test:s:blue" in fresh["blue"].command("KEYS", "*q:b:*")
    assert fresh["red"].command("KEYS", "*q:b:*") == "*0\r\n"


def test_a_worker_that_dies_leaves_its_message_to_the_next(tmp_path, fresh):
    """SH-04: it is handed out again when the lease has run out, and counted."""
    kill_worker = "kill -9 $(sed -n 's/^PPid:\t//p' /proc/$PPID/status)"  # above the supervisor
    with Node(tmp_path, settings(1, "{a: blue}", fresh)) as node:
        sent = node.enqueue({"text": "x"}, topic="a")
        worker = subprocess.run(
            [SLUICE, "work", "a", "--namespace", "test", "--lease", "300ms", "--server",
             "%s:%d" % node.address, "--", "sh", "-c", kill_worker], timeout=60)
        assert worker.returncode == -signal.SIGKILL
        message = node.take(topic="a", wait="30s")
        assert [message["id"]] == sent and message["attempts"] == 2
        node.ack(message, topic="a")
        assert node.stats(topic="a")["total"] == 0


# --- tenants ----------------------------------------------------------------------

def test_namespaces_on_one_shard_are_separate_and_a_flood_of_one_stops_no_other(tmp_path, fresh):
    """SH-17: what is B's is not A's to see, nor to settle; and B is served meanwhile."""
    with Node(tmp_path, settings(1, "{}", fresh)) as node:
        stop = threading.Event()
        flooded = [0] * 4

        def flood(i):
            while not stop.is_set():
                node.enqueue(*({"text": "flood"} for _ in range(100)), namespace="a", topic="t")
                flooded[i] += 100

        crew = threads(len(flooded), flood)
        try:
            until(lambda: sum(flooded) > 2000)
            cycle(node, "t", 50)  # in the namespace `test`: it finds its own alone
            mine = node.enqueue({"text": "mine"}, topic="t")
            message = node.take(topic="t")
            assert [message["id"]] == mine
            for verb in ("/ack", "/nack", "/extend"):
                assert node.settle(verb, message, namespace="a", topic="t").status == 404
            node.ack(message, topic="t")
        finally:
            stop.set()
            for one in crew:
                one.join()
        assert node.stats(topic="t")["total"] == 0
        assert node.stats(namespace="a", topic="t")["total"] == sum(flooded)
        assert {t for t in texts(node.dequeue(namespace="a", topic="t", limit=100))} == {"flood"}


# --- a shard in trouble -----------------------------------------------------------

def test_a_shard_that_hangs_holds_up_its_own_calls_alone(tmp_path, fresh):
    """SH-29, SH-105: every connection to it is taken, and those to the other are free: all
    that is done there ends while nothing here does."""
    with Node(tmp_path, settings(1, "{a: red, b: blue}", fresh)) as node:
        answers = []

        def ask(i):
            answers.append(node.post("/enqueue", [node.here(topic="a", text=str(i))]).status)

        node.enqueue({"text": "first"}, topic="a")
        fresh["red"].signal(signal.SIGSTOP)
        crew = threads(N_CLIENTS, ask)
        cycle(node, "b", 100)
        assert answers == []
        fresh["red"].signal(signal.SIGCONT)
        for one in crew:
            one.join()
        assert answers == [200] * N_CLIENTS
        assert node.stats(topic="a")["total"] == N_CLIENTS + 1


@pytest.mark.skipif(subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode != 0,
                    reason="no network of its own may be made here")
def test_shards_need_no_link_to_each_other(tmp_path):
    """SH-90: each is in a network where nothing else is."""
    with Alone(tmp_path / "red") as red, Alone(tmp_path / "blue") as blue:
        stores = {"red": red, "blue": blue}
        with Node(tmp_path / "node", settings(1, "{a: red, b: blue}", stores)) as node:
            cycle(node, "a", 3)
            cycle(node, "b", 3)
            for topic in ("a", "b"):
                node.enqueue({"text": "1", "key": "k"}, {"text": "2", "key": "k"}, topic=topic)
            node.restart("kill")
            for topic in ("a", "b"):
                assert texts(node.dequeue(topic=topic, limit=9)) == ["1"]
            assert node.get("/readyz").body["status"] == "ready"


# --- moves ------------------------------------------------------------------------

def migrate(node):
    return subprocess.Popen(
        [SLUICE, "admin", "migrate-shard", "--command", "a", "--tenant", "test", "--from-shard",
         "red", "--to-shard", "blue", "--batch-size", "20", "--server", "%s:%d" % node.address],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


class Load:
    """Producers and workers of the queue `a`, on any of the nodes. Producer i sends the messages
    of the keys i.0, i.1, ..., so that it knows their order."""

    def __init__(self, nodes, producers=2, workers=4):
        self.nodes = nodes
        self.stop = threading.Event()
        self.sent, self.done, self.failed = [], [], []
        self.order = {}  # key: (number, token) as they were handed out
        self.mtx = threading.Lock()
        self.crew = threads(producers, self.produce) + threads(workers, self.work)

    def produce(self, i):
        n = 0
        while not self.stop.is_set():
            n += 1
            self.pause_when_far_ahead()
            key = f"{i}.{n % 5}"
            node = self.nodes[n % len(self.nodes)]
            answer = node.post("/enqueue", [node.here(topic="a", key=key, text=f"{key} {n}")])
            (self.sent if answer.status == 200 else self.failed).append(f"{key} {n}")

    def pause_when_far_ahead(self):
        while len(self.sent) > len(self.done) + 200 and not self.stop.is_set():
            self.stop.wait(0.01)

    def work(self, i):
        node = self.nodes[i % len(self.nodes)]
        while not self.stop.is_set() or len(self.done) < len(self.sent):
            answer = node.get("/dequeue", **node.here(topic="a", limit=10, wait="100ms"))
            if answer.status != 200:
                self.failed.append(answer)
                continue
            for message in answer.body:
                text, = texts([message])
                key, number = text.split()
                with self.mtx:
                    self.order.setdefault(key, []).append((int(number), message["fencing_token"]))
                answer = node.settle("/ack", message, topic="a")
                (self.done if answer.status == 200 else self.failed).append(
                    text if answer.status == 200 else answer)

    def goes_on(self, n):
        """So many more are done."""
        enough = len(self.done) + n
        until(lambda: len(self.done) >= enough or self.failed)

    def ends_well(self):
        """All that was sent was done, once, in the order of its key and with
        tokens that rise; no call has failed."""
        self.stop.set()
        for one in self.crew:
            one.join(60)
        assert self.failed == []
        assert sorted(self.done) == sorted(self.sent)
        for key, came in self.order.items():
            for what in zip(*came):  # numbers, tokens
                assert list(what) == sorted(set(what)), key


def test_a_shard_that_is_empty_is_taken_out_of_the_settings(tmp_path, fresh):
    """SH-53: workers drain it; then it may be gone, and a node starts without it."""
    with Node(tmp_path, settings(1, "{a: red}", fresh, default="blue")) as node:
        node.enqueue(*({"text": str(i)} for i in range(10)), topic="a")
        node.reload(settings(2, "{a: blue}", fresh, "{a: red}", "blue"))
        node.enqueue({"text": "new"}, topic="a")
        left = {*map(str, range(10)), "new"}
        while left:
            for message in node.dequeue(topic="a", limit=3, wait="10s"):
                left.remove(*texts([message]))
                node.ack(message, topic="a")
        node.stop()
        node.file.write_text(settings(3, "{a: blue}", {"blue": fresh["blue"]}, default="blue"))
        fresh["red"].signal(signal.SIGSTOP)
        node.start()
        cycle(node, "a", 3)
        assert node.get("/readyz").body["status"] == "ready"


def test_sharding_is_turned_on_and_off_under_load(tmp_path, fresh):
    """SH-54: by reload there is no window at all: no request fails, and nothing is lost."""
    with Node(tmp_path, settings(1, "{a: blue}", fresh)) as node:
        load = Load([node])
        for version in range(2, 6):
            load.goes_on(50)
            off = version % 2 == 0
            node.reload(settings(version, "{a: blue}", fresh, "{a: blue}" if off else "{a: red}",
                                 enabled="false" if off else "true"))
        load.goes_on(50)
        load.ends_well()


def test_a_queue_is_moved_under_load_while_its_movers_are_killed(tmp_path, fresh):
    """Fault 44, SH-72, SH-77: from one Redis server to another while two nodes serve it; what
    was begun is ended by the next mover."""
    text = settings(1, "{a: red}", fresh)
    moved = settings(2, "{a: blue}", fresh, "{a: red}")
    with ExitStack() as stack:
        nodes = [stack.enter_context(Node(tmp_path / str(i), text, i)) for i in range(2)]
        load = Load(nodes)
        load.goes_on(100)
        for node in nodes:
            node.reload(moved)
            load.goes_on(20)
        for _ in range(3):
            mover = migrate(nodes[0])
            load.goes_on(5)
            mover.kill()
            mover.communicate()
        mover = migrate(nodes[1])
        load.goes_on(100)
        load.stop.set()  # then nothing is leased any more
        out, _ = mover.communicate(timeout=120)
        assert mover.returncode == 0, out
        load.ends_well()
        assert nodes[0].stats(topic="a")["total"] == 0
    assert fresh["red"].command("KEYS", "*q:a:test:s:red:all") == "*0\r\n"
