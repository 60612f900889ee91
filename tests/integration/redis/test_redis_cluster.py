"""Queues in a Redis Cluster: every call goes to the master of its slot, wherever that is."""
import re
import signal
import threading
import time

import pytest

from locked import acquire, ask, commit, refused
from redis import Cluster, free_port
from served import Refused, Server, on_redis, texts, until


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Three masters; whatever the tests do, no call crosses slots (SH-38)."""
    with Cluster(tmp_path_factory.mktemp("cluster"), "--appendonly", "no") as cluster:
        yield cluster
        for node in cluster.nodes:
            assert "CROSSSLOT" not in node.command("INFO", "errorstats")


@pytest.fixture
def node(cluster, tmp_path):
    with on_redis(tmp_path, cluster.address) as start:
        yield start


def slot_of(cluster, server, topic):
    answer = cluster.nodes[0].command(
        "CLUSTER", "KEYSLOT", f"{server.prefix}:q:{{{topic}:{server.namespace}}}:msg")
    return int(answer[1:])


def other_than(cluster, node):
    return next(n for n in cluster.nodes if n is not node)


def test_all_keys_of_a_queue_are_in_one_slot(cluster, node):
    """SH-37: with priorities, keys, results and dead letters."""
    server = node()
    for i in range(20):
        topic = f"q{i}"
        server.enqueue({"text": "x", "topic": topic, "priority": i % 3, "key": "k",
                        "idempotency_key": "once", "keep_result": "60s", "ttl": "1h"},
                       {"text": "y", "topic": topic, "delay": "1h"})
        server.ack(server.take(topic=topic), topic=topic)
    slots, masters = {}, set()
    for redis in cluster.nodes:
        for key in re.findall(rf"{server.prefix}:\S+", redis.command("KEYS", server.prefix + ":q:*")):
            tag = re.fullmatch(r"[^{}]*\{(q\d+:test)\}:[a-z]+(:-?\d+)?", key)[1]
            slots.setdefault(tag, set()).add(redis.command("CLUSTER", "KEYSLOT", key))
            masters.add(redis)
    assert len(slots) == 20 and all(len(s) == 1 for s in slots.values())
    assert masters == set(cluster.nodes)


def test_any_node_serves_any_queue_of_a_cluster(node):
    """SH-01, SH-38: stats, lists and settling by id over all masters."""
    one, two = node(), node("--shards", "3")
    ids = {t: one.enqueue({"text": t, "topic": t})[0] for t in (f"t{i}" for i in range(12))}
    got = {t: two.take(topic=t) for t in ids}
    assert {t: m["id"] for t, m in got.items()} == ids
    assert len(one.get("/topics", namespace="test").body["topics"]) == 12
    items = [two.here(topic=t, id=m["id"], lease_id=m["lease_id"],
                      fencing_token=m["fencing_token"]) for t, m in got.items()]
    assert two.post("/ack", items).status == 200
    assert all(two.stats(topic=t)["leased"] == 0 for t in ids)


def test_a_call_for_several_topics_stands_for_itself_in_each(node):
    """MQ-O4 as far as a cluster has it: whole or not at all, in each topic."""
    server = node()
    assert server.call("PUT", "/policy", {"max_depth": 1}, **server.here(topic="small")).status == 200
    items = [server.here(topic=t, text=t) for t in ("a", "small", "b", "small", "a")]
    answer = server.post("/enqueue", items)
    assert answer.status == 429, answer
    taken = [i is not None for i in answer.body["ids"]]
    assert taken == [True, False, True, False, True]
    assert answer.body["index"] == 3
    assert [server.stats(topic=t)["ready"] for t in ("a", "b", "small")] == [2, 1, 0]
    assert len(server.enqueue(*({"text": "x", "topic": f"w{i % 50}"} for i in range(200)))) == 200


def test_a_consumer_is_woken_by_an_enqueue_at_another_node_and_master(cluster, node):
    one, two = node(), node(address=cluster.nodes[2].address)
    got = {}
    topics = [f"w{i}" for i in range(6)]
    one.enqueue(*({"text": "first", "topic": t} for t in topics))
    for t in topics:
        one.ack(one.take(topic=t), topic=t)

    def wait(topic):
        got[topic] = texts(two.dequeue(topic=topic, wait="60s"))

    threads = [threading.Thread(target=wait, args=(t,)) for t in topics]
    for t in threads:
        t.start()
    until(lambda: re.search(rf"^sluice_waiting\S* {len(topics)}$", two.get("/metrics").text, re.M))
    one.enqueue(*({"text": "now", "topic": t} for t in topics))
    for t in threads:
        t.join(60)
    assert got == {t: ["now"] for t in topics}


def test_the_keys_of_a_namespace_are_in_one_slot_and_have_one_holder(cluster, node):
    """SH-38: locks, documents, and ops that wait at another node and master."""
    one, two = node(), node(address=cluster.nodes[2].address)
    masters = set()
    for i in range(6):
        one.namespace = two.namespace = f"space{i}"
        commit(one, "a", {"n": i})
        lock = acquire(two, "a")
        assert lock.attach("file", b"bytes").status == 200
        refused(ask(one, "a"), 409, "waiting")
        got = []
        waits = threading.Thread(target=lambda: got.append(acquire(one, "a", block=0)))
        waits.start()
        until(lambda: re.search(r"^sluice_waiting\S* 1$", one.get("/metrics").text, re.M))
        assert lock.release().status == 200
        waits.join(60)
        assert got[0].token > lock.token and got[0].get().body == {"n": i}
        masters.add(cluster.owner(slot_of(cluster, one, ".locks")))
    assert masters == set(cluster.nodes)


def test_seeds_that_are_gone_are_passed_over(cluster, node):
    server = node(address=f"127.0.0.1:{free_port()},{cluster.nodes[1].address}")
    server.enqueue(*({"text": "x", "topic": f"s{i}"} for i in range(6)))
    assert all(server.stats(topic=f"s{i}")["ready"] == 1 for i in range(6))


def test_a_cluster_has_one_database(cluster, tmp_path):
    with pytest.raises(Refused) as refused:
        Server(tmp_path, "--redis-address", cluster.address, "--redis-db", "3", engine="redis")
    assert "SELECT" in str(refused.value) and cluster.nodes[0].address in str(refused.value)


class Load:
    """Producers and consumers that repeat what was refused: what went in comes out once."""

    def __init__(self, servers, topics, count):
        self.topics, self.count = topics, count
        self.got = {t: [] for t in topics}
        self.tokens = {t: [] for t in topics}
        self.threads = [threading.Thread(target=self.run, args=(f, servers[i % len(servers)], t))
                        for i, t in enumerate(topics) for f in (self.produce, self.consume)]
        self.failed = []
        for t in self.threads:
            t.start()

    def run(self, what, server, topic):
        try:
            what(server, topic)
        except BaseException as e:  # seen by the test, in end()
            self.failed.append(e)

    def patiently(self, call):
        end = time.monotonic() + 60
        while (answer := call()).status == 503:
            assert time.monotonic() < end, answer
            time.sleep(0.002)
        return answer

    def produce(self, server, topic):
        for i in range(self.count):
            item = server.here(topic=topic, text=str(i), key="k", idempotency_key=f"i{i}")
            answer = self.patiently(lambda: server.post("/enqueue", [item]))
            assert answer.status == 200, answer

    def consume(self, server, topic):
        while len(self.got[topic]) < self.count:
            answer = self.patiently(lambda: server.get("/dequeue", **server.here(topic=topic, wait="1s")))
            assert answer.status == 200, answer
            for m in answer.body:
                self.tokens[topic].append(m["fencing_token"])
                done = self.patiently(lambda: server.settle("/ack", m, topic=topic))
                assert done.status == 200 or done.status == 404, done  # it was the first one
                self.got[topic] += texts([m])

    def end(self):
        for t in self.threads:
            t.join(120)
        assert not self.failed, self.failed
        for t in self.topics:
            assert self.got[t] == [str(i) for i in range(self.count)], t
            assert self.tokens[t] == sorted(set(self.tokens[t])), t


def test_slots_move_while_load_runs(cluster, node):
    """SH-38: what was accepted is handed out once and in order, wherever its slot is."""
    servers = [node(), node("--shards", "2")]
    topics = [f"m{i}" for i in range(4)]
    load = Load(servers, topics, 150)
    for i in range(8):
        slot = slot_of(cluster, servers[0], topics[i % 4])
        cluster.move(slot, other_than(cluster, cluster.owner(slot)))
    load.end()
    said = "".join(n.command("INFO", "errorstats") for n in cluster.nodes)
    assert "errorstat_MOVED" in said


def test_a_slot_that_is_half_moved_is_503_for_its_queues_alone(cluster, node):
    server = node()
    server.enqueue({"text": "a", "topic": "moves"}, {"text": "b", "topic": "stays"})
    slot = slot_of(cluster, server, "moves")
    target = other_than(cluster, cluster.owner(slot))
    source = cluster.begin_move(slot, target)
    answer = server.post("/enqueue", [server.here(topic="moves", text="c")])
    assert (answer.status, answer.body["error"]) == (503, "shard_failed"), answer
    assert "TRYAGAIN" in answer.body["message"]
    assert server.get("/readyz").status == 200
    assert texts(server.dequeue(topic="stays")) == ["b"]
    cluster.end_move(slot, source, target)
    server.enqueue({"text": "c", "topic": "moves"})
    assert texts(server.dequeue(topic="moves", limit=5)) == ["a", "c"]


def test_a_new_queue_in_a_slot_that_is_being_moved_is_asked_for_there(cluster, node):
    """ASK: a key that is not there yet, of a list with one key (the list of queues)."""
    server = node()
    slot = int(cluster.nodes[0].command("CLUSTER", "KEYSLOT", f"{server.prefix}:queues")[1:])
    target = other_than(cluster, cluster.owner(slot))
    source = cluster.begin_move(slot, target)
    server.enqueue({"text": "x", "topic": "new"})
    assert ":1\r\n" in target.command("CLUSTER", "COUNTKEYSINSLOT", slot)
    cluster.end_move(slot, source, target)
    assert texts(node().dequeue(topic="new")) == ["x"]


def test_a_replica_takes_over(tmp_path):
    """SH-F8: by order under load, where nothing is lost; and when a master is killed."""
    with Cluster(tmp_path / "cluster", "--appendonly", "no", replicas=1, timeout_ms=1000) as cluster:
        with Server(tmp_path / "n", "--redis-address", cluster.address, engine="redis") as server:
            server.prefix = "sluice"
            slot = slot_of(cluster, server, "f0")
            load = Load([server], ["f0", "f1", "f2"], 100)
            first = cluster.owner(slot)
            replica = next(n for n in cluster.nodes if n is not first and
                           f"master_port:{first.port}\r" in n.command("INFO", "replication"))
            replica.command("CLUSTER", "FAILOVER")
            until(lambda: "role:master" in replica.command("INFO", "replication"))
            load.end()
            server.enqueue({"text": "kept", "topic": "f0"})
            token = server.take(topic="f0", lease="1s")["fencing_token"]
            until(lambda: "master_link_status:up" in first.command("INFO", "replication"))
            until(lambda: first.has_all_of(replica))
            replica.signal(signal.SIGKILL)
            again = until(lambda: (a := server.get("/dequeue", **server.here(topic="f0"))).status == 200
                          and a.body)
            assert texts(again) == ["kept"] and again[0]["fencing_token"] > token
            assert server.get("/readyz").status == 200
