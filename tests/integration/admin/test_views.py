"""Views over several shards: stats, lists and metrics of all, without those that do not answer."""
import re
import signal
import threading

import pytest

from redis import Redis
from served import Node, Server, several, until

MAP = """
sharding:
  enabled: true
  defaultShard: local
  commandMappings: {a: red, b: blue}
redis.shards:
  local: {engine: memory}
"""
STATES = ("ready", "delayed", "leased", "dead")


def shard(name, redis, pool=1, timeout="30s"):
    return f"  {name}: {{address: '{redis.address}', poolSize: {pool}, timeout: {timeout}}}\n"


@pytest.fixture
def stores(tmp_path):
    with Redis(tmp_path / "red") as red, Redis(tmp_path / "blue") as blue:
        yield red, blue


@pytest.fixture
def node(tmp_path):
    """node(text) starts a server whose file is that."""
    with several(lambda n, text, *options: Node(tmp_path, text, *options, data=f"data{n}")) as start:
        yield start


@pytest.fixture
def three(node, stores):
    """Queue a is on red, b on blue, all others are here; a store that hangs is not noticed by
    itself in the time of a test."""
    server = node(MAP + shard("red", stores[0], pool=2) + shard("blue", stores[1]),
                  "--stats-timeout", "300ms")
    server.red, server.blue = stores
    return server


def queues(server, path="/v1/admin/queues", member="queues", **params):
    """All pages: queues by (name, shard); and the answers."""
    found, answers, cursor = {}, [], {}
    while cursor is not None:
        answer = server.get(path, **params, **cursor)
        assert answer.status == 200, answer
        answers.append(answer.body)
        found.update({(q["topic"], q["shard"]): q for q in answer.body[member]})
        cursor = {"cursor": answer.body["cursor"]} if "cursor" in answer.body else None
    return found, answers


def missing(answer):
    """The names of the shards that an answer lacks."""
    return [shard["name"] for shard in answer.body["missing"]]


def samples(server, name):
    """{labels: value} of a metric."""
    return {tuple(sorted(re.findall(r'(\w+)="([^"]*)"', labels))): float(value)
            for labels, value in re.findall(rf"^{name}\{{(.*)\}} (\S+)$",
                                            server.get("/metrics").text, re.M)}


def of_shard(server, name):
    return {dict(labels)["shard"]: value for labels, value in samples(server, name).items()}


# --- all shards answer ---------------------------------------------------------------

def test_lists_are_of_all_shards(three):
    for topic in "a", "b", "c", "d":
        three.enqueue({}, {}, topic=topic)
    found, answers = queues(three)
    assert set(found) == {("a", "red"), ("b", "blue"), ("c", "local"), ("d", "local")}
    assert all(q["ready"] == 2 for q in found.values())
    assert not any("partial" in a for a in answers)
    assert set(queues(three, limit=1)[0]) == set(found)
    assert set(queues(three, "/topics", "topics", namespace="test", limit=2)[0]) == set(found)
    for topic, name in found:
        assert three.stats(topic=topic)["shard"] == name
        assert three.get("/v1/admin/queue", **three.here(topic=topic)).body["shard"] == name


def test_stats_and_depth_by_shard_equal_what_was_done(three):
    """SH-40, SH-79: ready, delayed, in progress and dead letters, as stats and as metrics."""
    want = {}
    for topic, n in ("a", 6), ("b", 5), ("c", 4):
        three.enqueue(*({} for _ in range(n)), topic=topic)
        three.enqueue({"delay": "1h"}, topic=topic)
        held, lost = three.dequeue(limit=2, topic=topic)
        assert three.settle("/nack", lost, topic=topic, dead=True).status == 200
        want[topic] = dict(ready=n - 2, delayed=1, leased=1, dead=1)
        assert held
    depth = samples(three, "sluice_queue_messages")
    for (topic, on), counts in zip((("a", "red"), ("b", "blue"), ("c", "local")), want.values()):
        stats = three.stats(topic=topic)
        for state in STATES:
            assert stats[state] == counts[state], (topic, state)
            assert depth[(("namespace", "test"), ("shard", on), ("state", state),
                          ("topic", topic))] == counts[state]


def test_operations_are_timed_by_shard(three):
    """SH-80: the counts equal the operations."""
    for _ in range(7):
        three.enqueue({}, topic="a")
    for _ in range(3):
        three.enqueue({}, topic="b")
    three.dequeue(topic="a")
    counts = samples(three, "sluice_shard_operation_duration_seconds_count")
    assert counts[(("operation", "enqueue"), ("shard", "red"))] == 7
    assert counts[(("operation", "enqueue"), ("shard", "blue"))] == 3
    assert counts[(("operation", "claim"), ("shard", "red"))] == 1
    assert (("operation", "claim"), ("shard", "blue")) not in counts


def test_stats_add_up_over_the_shards_of_a_queue(three):
    """SH-41, SH-102: what is on the old shard and on the new one, and the sum."""
    three.enqueue({}, {}, {}, topic="a")
    text = three.file.read_text().replace("a: red", "a: blue").replace(
        "enabled: true", "enabled: true\n  version: 2\n  previousShards: {commandMappings: {a: red}}")
    three.file.write_text(text)
    three.process.send_signal(signal.SIGHUP)
    until(lambda: three.get("/readyz").body["shard_map"]["version"] == 2)
    three.enqueue({}, {}, topic="a")
    stats = three.stats(topic="a")
    assert stats["ready"] == stats["total"] == 5
    assert [(s["shard"], s["ready"]) for s in stats["shards"]] == [("blue", 2), ("red", 3)]
    assert "shard" not in stats
    found, _ = queues(three)
    assert found["a", "blue"]["ready"] == 2 and found["a", "red"]["ready"] == 3
    assert three.get("/v1/admin/queue", **three.here(topic="a")).body["ready"] == 5
    three.red.signal(signal.SIGSTOP)
    part = three.get("/stats", **three.here(topic="a"))
    assert part.status == 200 and missing(part) == ["red"] and part.body["ready"] == 2
    three.red.signal(signal.SIGCONT)


def test_uneven_load_is_seen(three):
    """SH-95"""
    for _ in range(20):
        three.enqueue({}, topic="a")
    three.enqueue({}, topic="b")
    accepted = {}
    for labels, n in samples(three, "sluice_messages_accepted_total").items():
        name = dict(labels)["shard"]
        accepted[name] = accepted.get(name, 0) + n
    assert (accepted["red"], accepted["blue"], accepted["local"]) == (20, 1, 0)


def test_stores_tell_of_themselves(three):
    """SH-82: memory, processor, disk and clients of each Redis, and of no other."""
    three.blue.command("CONFIG", "SET", "maxmemory", "123456789")
    for name, least in (("sluice_store_memory_bytes", 1 << 16), ("sluice_store_clients", 3),
                        ("sluice_store_clients_max", 100), ("sluice_store_disk_bytes", 0),
                        ("sluice_store_cpu_seconds_total", 0.000001)):
        until(lambda: sorted(s for s, v in of_shard(three, name).items() if v >= least) ==
              ["blue", "red"])
        assert set(of_shard(three, name)) <= {"red", "blue"}
    until(lambda: of_shard(three, "sluice_store_memory_max_bytes").get("blue") == 123456789)
    three.enqueue(*({"text": "x" * 1000} for _ in range(100)), topic="a")
    until(lambda: of_shard(three, "sluice_store_disk_bytes").get("red", 0) > 100000)


# --- some do not ---------------------------------------------------------------------

def test_a_dead_shard_is_left_out_and_named(three):
    """SH-44: 200 with the rest, a marker, and a warning in the log; SH-47, SH-90."""
    for topic in "a", "b", "c":
        three.enqueue({}, topic=topic)
    before = three.metric("sluice_cross_shard_partial_total")
    three.red.kill()
    until(lambda: of_shard(three, "sluice_shard_available")["red"] == 0)
    answer = three.get("/v1/admin/queues")
    assert answer.status == 200
    assert {q["topic"] for q in answer.body["queues"]} == {"b", "c"}
    assert answer.body["partial"] is True and missing(answer) == ["red"]
    assert answer.body["message"]
    until(lambda: "answered without some shards" in three.said())
    assert three.metric("sluice_cross_shard_partial_total") > before
    until(lambda: "shard=red" in three.said())
    assert three.said().count("answered without some shards") == 1  # the next in ten seconds
    gone = three.get("/stats", **three.here(topic="a"))
    assert gone.status == 503 and gone.body["error"] == "shard_failed"
    assert three.stats(topic="b")["ready"] == 1
    text = three.get("/metrics").text
    assert 'topic="b",shard="blue",state="ready"} 1' in text and 'topic="a"' not in text


def test_whether_a_shard_serves_is_shown(three):
    """SH-81: also of an unused shard, and when it is back."""
    assert of_shard(three, "sluice_shard_available") == {"local": 1, "red": 1, "blue": 1}
    three.blue.kill()
    until(lambda: of_shard(three, "sluice_shard_available") == {"local": 1, "red": 1, "blue": 0})
    three.blue.start()
    until(lambda: of_shard(three, "sluice_shard_available") == {"local": 1, "red": 1, "blue": 1})


def test_a_slow_shard_is_waited_for_so_long_and_then_not_at_all(three):
    """SH-43: the store hangs for longer than any request of this test may take."""
    for topic in "a", "b", "c":
        three.enqueue({}, topic=topic)
    three.red.signal(signal.SIGSTOP)
    answer = three.get("/v1/admin/queues")
    assert answer.status == 200 and missing(answer) == ["red"]
    assert "did not answer within 300 ms" in answer.body["message"]
    assert three.metric("sluice_cross_shard_timeouts_total") >= 1
    # What owes an answer is not asked again.
    late = three.metric("sluice_cross_shard_timeouts_total")
    skipped = three.metric("sluice_cross_shard_skipped_total")
    for _ in range(5):
        assert missing(three.get("/v1/admin/queues")) == ["red"]
    assert three.metric("sluice_cross_shard_timeouts_total") == late
    assert three.metric("sluice_cross_shard_skipped_total") >= skipped + 5
    assert three.get("/readyz").status == 200
    assert three.get("/readyz").body["status"] == "degraded"
    three.red.signal(signal.SIGCONT)
    until(lambda: "partial" not in three.get("/v1/admin/queues").body)
    assert three.stats(topic="a")["ready"] == 1


def test_shards_are_asked_at_the_same_time(node, stores):
    """SH-42: three lanes that hang cost one timeout, not three: all are late after the first."""
    server = node(MAP + shard("red", stores[0], pool=2) + shard("blue", stores[1]),
                  "--stats-timeout", "500ms")
    for store in stores:
        store.signal(signal.SIGSTOP)
    answer = server.get("/v1/admin/queues")
    assert sorted(missing(answer)) == ["blue", "red"]
    assert server.metric("sluice_cross_shard_timeouts_total") == 3
    for store in stores:
        store.signal(signal.SIGCONT)


def test_questions_to_a_shard_that_hangs_leave_work_on_the_others_alone(three):
    """SH-45: claims go on while every other client asks for what is not available."""
    three.enqueue(*({} for _ in range(200)), topic="b")
    three.enqueue({}, topic="a")
    three.red.signal(signal.SIGSTOP)
    ends = threading.Event()
    asked = []

    def storm():
        while not ends.is_set():
            asked.append(three.get("/stats", **three.here(topic="a")).status)
            asked.append(three.get("/v1/admin/queues").status)
        three.close()

    threads = [threading.Thread(target=storm) for _ in range(8)]
    for t in threads:
        t.start()
    try:
        until(lambda: len(asked) > 50)
        for _ in range(200):
            three.ack(three.take(topic="b"), topic="b")
        n = len(asked)
        until(lambda: len(asked) > n)
    finally:
        ends.set()
        for t in threads:
            t.join()
        three.red.signal(signal.SIGCONT)
    assert set(asked) == {200, 503}
    assert three.stats(topic="b")["total"] == 0
    assert three.metric('sluice_shard_operation_duration_seconds_count'
                        '{shard="blue",operation="claim"}') == 200
    until(lambda: three.get("/stats", **three.here(topic="a")).status == 200)


def test_a_store_that_hangs_is_waited_for_so_long(node, tmp_path):
    """One store, two connections: no shard is left that could answer."""
    with Redis(tmp_path / "own") as redis:
        server = Server(tmp_path / "data", "--redis-address", redis.address, "--shards", "2",
                        "--redis-timeout", "30s", "--stats-timeout", "200ms", engine="redis")
        redis.signal(signal.SIGSTOP)
        answer = server.get("/v1/admin/queues")
        assert answer.status == 503 and "within 200 ms" in answer.body["message"]
        redis.signal(signal.SIGCONT)
        until(lambda: server.get("/v1/admin/queues").status == 200)
        server.stop()


def test_a_store_that_hangs_costs_one_timeout(node, stores):
    """SH-105: then its queues are answered at once, and the others have never waited."""
    server = node(MAP + shard("red", stores[0], timeout="500ms") + shard("blue", stores[1]))
    server.enqueue({}, topic="a")
    stores[0].signal(signal.SIGSTOP)
    lost = server.post("/enqueue", [server.here(topic="a")])
    assert lost.status == 503  # outcome_unknown, if it was the first to find out
    until(lambda: server.post("/enqueue", [server.here(topic="a")]).body["error"] == "shard_failed")
    server.enqueue({}, topic="b")
    stores[0].signal(signal.SIGCONT)
    until(lambda: server.post("/enqueue", [server.here(topic="a")]).status == 200)
