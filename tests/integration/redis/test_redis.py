"""Queues in a Redis server: several nodes, and what happens when it is not there."""
import json
import re
import signal
import threading
from pathlib import Path

import pytest

from lockd import Client
from redis import Proxy, Redis
from served import Refused, Server, on_redis, texts, until


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    with Redis(tmp_path_factory.mktemp("redis")) as redis:
        yield redis


@pytest.fixture
def node(redis, tmp_path):
    """node() starts a server on it: all of a test's share a prefix that no other has."""
    with on_redis(tmp_path, redis.address) as start:
        yield start


def topics(server):
    names, cursor = [], {}
    while cursor is not None:
        page = server.get("/topics", namespace=server.namespace, **cursor).body
        names += [t["topic"] for t in page["topics"]]
        cursor = {"cursor": page["cursor"]} if "cursor" in page else None
    return sorted(names)


def test_any_node_serves_any_queue_and_either_can_be_killed(node):
    """SH-01, SH-02, LQ-82"""
    one, two = node(), node()
    one.enqueue({"text": "a"}, {"text": "b"}, {"text": "c"})
    first = two.take()
    assert texts([first]) == ["a"]
    one.kill()
    two.ack(first)
    assert texts(two.dequeue(limit=10)) == ["b", "c"]


def test_no_id_is_given_twice_though_the_clock_of_a_node_went_back(node, redis):
    ahead = (1 << 62) // 4096 * 4096  # what a clock far ahead would have given
    redis.command("HSET", "stepped:ids", "7.0", str(ahead))
    one = node(prefix="stepped")
    first = one.enqueue({"text": "a"})[0]
    assert first > ahead
    one.kill()
    two = node(prefix="stepped")
    assert two.enqueue({"text": "b"})[0] > first


def test_streams_of_lockd_clients_over_two_nodes(node):
    """LQ-06, LQ-82: acks that another node takes hold up no stream."""
    one, two = node(), node()
    here, there = (Client(s.address, namespace=s.namespace, queue="mail") for s in (one, two))
    here.enqueue(payload=b"0")
    stream = here.subscribe(page_size=1, wait_seconds=0, visibility_timeout_seconds=3600)
    for i in range(5):
        message = next(stream)
        assert message["payload"] == b"%d" % i
        there.enqueue(payload=b"%d" % (i + 1))
        assert there.ack(message)["acked"]
    stream.close()
    answer, connection = there.send("/v1/queue/watch", json.dumps(there.names).encode())
    assert answer.readline() == b"id: 1\n"
    connection.close()


def test_a_lease_that_another_node_sees_run_out_ends_its_stream(node):
    one, two = node(), node()
    here, there = (Client(s.address, namespace=s.namespace, queue="mail") for s in (one, two))
    here.enqueue(payload=b"0")
    stream = here.subscribe(page_size=1, wait_seconds=0, visibility_timeout_seconds=1)
    assert next(stream)["payload"] == b"0"
    assert there.dequeue(wait_seconds=60)[0]["attempts"] == 2
    here.enqueue(payload=b"1")
    assert list(stream) == []


def test_a_consumer_that_waits_is_woken_by_an_enqueue_at_another_node(node):
    one, two = node(), node()
    one.enqueue({"text": "makes the queue"})
    one.ack(one.take())
    got = []
    waits = threading.Thread(target=lambda: got.extend(two.dequeue(wait="60s")))
    waits.start()
    until(lambda: re.search(r"^sluice_waiting\S* [1-9]", two.get("/metrics").text, re.M))
    one.enqueue({"text": "now"})
    waits.join(60)
    assert texts(got) == ["now"]


def test_a_message_is_handed_out_once_however_many_nodes_ask(node):
    nodes = [node() for _ in range(3)]
    sent = nodes[0].enqueue(*({"text": str(i)} for i in range(300)))
    got, lock = [], threading.Lock()

    def consume(server):
        while messages := server.dequeue(limit=7):
            with lock:
                got.extend(messages)

    threads = [threading.Thread(target=consume, args=(n,)) for n in nodes for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(m["id"] for m in got) == sorted(sent)
    assert len({m["fencing_token"] for m in got}) == len(got)


def test_the_keys_have_the_documented_form(node, redis):
    """SH-10, SH-05"""
    server = node(prefix="codeq")
    server.enqueue({"text": "x", "priority": 5, "topic": "SEND_EMAIL"})
    assert "codeq:q:send_email:test:pending:5" in redis.command("KEYS", "codeq:*pending*")
    assert ":1\r\n" in redis.command("ZCARD", "codeq:q:send_email:test:pending:5")


def test_a_server_that_is_gone_is_503_at_once_and_back_without_a_restart(tmp_path, node):
    """SH-105"""
    with Redis(tmp_path / "own") as redis:
        server = node(address=redis.address)
        sent = server.enqueue({"text": "kept"})
        redis.kill()
        answer = until(lambda: (a := server.post("/enqueue", [server.here(text="x")])).status == 503 and a)
        assert answer.body["error"] in ("shard_failed", "outcome_unknown")
        assert answer.headers["Retry-After"]
        assert server.get("/readyz").status == 503
        assert server.get("/healthz").status == 200
        redis.start()
        got = until(lambda: (a := server.get("/dequeue", **server.here())).status == 200 and a.body)
        assert [m["id"] for m in got] == sent
        assert server.get("/readyz").status == 200


def test_a_store_is_named_once_however_many_lanes_it_has(tmp_path):
    with Redis(tmp_path / "own") as redis, \
            Server(tmp_path / "n", "--redis-address", redis.address, "--shards", "4", engine="redis") as server:
        assert server.get("/readyz").body == {"status": "ready"}
        redis.kill()
        for topic in "abcdefgh":  # every lane finds out
            server.post("/enqueue", [server.here(text="x", topic=topic)])
        answer = until(lambda: (a := server.get("/readyz")).status == 503 and a)
        reason, = answer.body["reasons"]
        assert reason["name"] == "default" and redis.address in reason["message"]
        assert not re.search(r"^sluice_(queues|messages)\b", server.get("/metrics").text, re.M)


def test_an_answer_that_is_lost_costs_nothing_twice(redis, node):
    """An enqueue is repeated by its ids, a claim is found again by its own."""
    proxy = Proxy(redis.port)
    server = node(address=proxy.address)
    server.enqueue({"text": "0"})
    proxy.lose = 1
    sent = server.enqueue(*({"text": str(i)} for i in range(1, 5)))
    assert proxy.lost == 1 and len(sent) == 4
    assert server.stats()["ready"] == 5
    proxy.lose = 1
    got = server.dequeue(limit=3)
    assert proxy.lost == 2
    assert texts(got) == ["0", "1", "2"] and [m["attempts"] for m in got] == [1, 1, 1]
    assert server.stats()["leased"] == 3
    proxy.lose = 1
    answer = server.settle("/ack", got[0])
    assert proxy.lost == 3
    assert answer.body["error"] == "outcome_unknown"
    assert server.stats()["leased"] == 2
    proxy.close()


def test_what_was_acked_before_its_enqueue_was_repeated_does_not_come_again(redis, node):
    proxy = Proxy(redis.port)
    one, two = node(address=proxy.address), node()
    one.enqueue({"text": "before"})
    two.ack(two.take())
    for extra in {}, {"key": "k"}, {"idempotency_key": "once"}:
        sent, lost = [], proxy.lost
        proxy.passes.clear()
        proxy.lose = 1
        producer = threading.Thread(target=lambda: sent.extend(one.enqueue({"text": "a", **extra})))
        producer.start()
        until(lambda: proxy.lost > lost)
        got = until(two.dequeue)
        two.ack(got[0])
        proxy.passes.set()
        producer.join()
        assert sent == [got[0]["id"]]
        assert two.stats()["total"] == 0
    one.enqueue({"text": "after"})
    assert texts(two.dequeue(limit=5)) == ["after"]
    proxy.close()


def test_a_server_that_hangs_is_waited_for_so_long_and_no_longer(tmp_path, node):
    with Redis(tmp_path / "own") as redis:
        server = node("--redis-timeout", "300ms", address=redis.address)
        server.enqueue({"text": "a"})
        redis.signal(signal.SIGSTOP)
        assert server.post("/enqueue", [server.here(text="b")]).status == 503
        redis.signal(signal.SIGCONT)
        until(lambda: server.get("/readyz").status == 200)
        assert texts(server.dequeue(limit=5))[0] == "a"


def test_several_connections_share_the_queues(node):
    """SH-29: each lane has its queues, and all are shown once."""
    server = node("--shards", "4")
    for i in range(12):
        server.enqueue({"text": "x", "topic": f"q{i}"})
    names = sorted(f"q{i}" for i in range(12))
    assert topics(server) == names
    assert topics(node("--shards", "2")) == names


def test_a_password_is_asked_for_and_never_shown(tmp_path, monkeypatch):
    """SH-28, SH-88"""
    with Redis(tmp_path / "own", "--requirepass", "s3cret-word") as redis:
        with pytest.raises(Refused) as refused:
            Server(tmp_path / "a", "--redis-address", redis.address, engine="redis")
        assert "NOAUTH" in str(refused.value)
        monkeypatch.setenv("SLUICE_REDIS_PASSWORD", "s3cret-word")
        with Server(tmp_path / "b", "--redis-address", redis.address, engine="redis") as server:
            server.enqueue({"text": "x"})
            assert "s3cret-word" not in server.said()
            assert "s3cret-word" not in server.get("/v1/admin/config").text


def test_a_user_needs_no_more_than_is_written_down(tmp_path, monkeypatch):
    """SH-88: the rules are in docs/redis.md."""
    page = (Path(__file__).parents[3] / "docs/redis.md").read_text()
    rules = re.search(r"^ACL SETUSER sluice on (.*)$", page, re.M)[1].split()
    with Redis(tmp_path / "own") as redis:
        assert "OK" in redis.command("ACL", "SETUSER", "sluice", "on", *rules)
        redis.command("ACL", "SETUSER", "default", "off")
        options = "--redis-address", redis.address, "--redis-username", "sluice"
        with pytest.raises(Refused) as refused:
            Server(tmp_path / "a", *options, engine="redis")
        assert "WRONGPASS" in str(refused.value)
        monkeypatch.setenv("SLUICE_REDIS_PASSWORD", "s3cret")
        with Server(tmp_path / "b", *options, engine="redis") as server:
            server.enqueue({"text": "x", "priority": 3, "key": "k"}, {"text": "y", "delay": "1h"})
            server.ack(server.take())
            assert len(server.get("/topics", namespace="test").body["topics"]) == 1
            assert "appendonly" not in server.said()  # it could ask


def test_a_long_queue_is_purged_step_by_step(tmp_path, node):
    """Between the steps others are served; what comes meanwhile stays, and no line is stuck."""
    def scripts(redis):
        return int(re.search(r"cmdstat_evalsha:calls=(\d+)", redis.command("INFO", "commandstats"))[1])

    with Redis(tmp_path / "own", "--appendonly", "no") as redis:
        one, two = node(address=redis.address), node(address=redis.address)
        for _ in range(6):
            one.enqueue(*({"text": "old", "key": f"k{i % 7}"} for i in range(1000)))
        before = scripts(redis)
        sent, ended = [], threading.Event()

        def produce():
            while not ended.is_set() or len(sent) < 20:
                sent.append(str(len(sent)))
                two.enqueue({"text": sent[-1], "key": "k0"})

        producer = threading.Thread(target=produce)
        producer.start()
        answer = one.post("/v1/admin/queue/purge", one.here())
        ended.set()
        producer.join(60)
        assert answer.status == 200 and answer.body["purged"] >= 6000, answer
        assert scripts(redis) >= before + len(sent) + 6
        got = []
        while messages := two.dequeue(limit=1):
            got += texts(messages)
            two.ack(messages[0])
        assert "old" not in got and got == sent[answer.body["purged"] - 6000:]
        assert two.stats()["held"] == 0


def test_a_call_may_name_thousands_of_topics(tmp_path, node):
    with Redis(tmp_path / "own", "--appendonly", "no") as redis:
        server = node(address=redis.address)
        ids = server.enqueue(*({"text": "x", "topic": f"t{i % 1500}"} for i in range(3000)))
        assert len(set(ids)) == 3000
        assert server.stats(topic="t0")["ready"] == server.stats(topic="t1499")["ready"] == 2


def test_databases_are_apart(node):
    one, other = node(), node("--redis-db", "3")
    one.enqueue({"text": "x"})
    assert other.dequeue() == []
    assert texts(one.dequeue()) == ["x"]


def test_a_prefix_that_is_too_long_is_refused(redis, tmp_path):
    with pytest.raises(Refused) as refused:
        Server(tmp_path, "--redis-address", redis.address, "--redis-prefix", "x" * 64, engine="redis")
    assert "redis.prefix" in str(refused.value)


# --- queues that are deleted -------------------------------------------------------------

def drop(server, topic, **params):
    return server.call("DELETE", f"/v1/admin/queues/{server.namespace}/{topic}", **params)


def test_a_queue_that_one_node_deletes_is_gone_for_the_others(node, redis):
    one, two = node(), node()
    two.enqueue({"text": "a"}, {"text": "b", "key": "k", "idempotency_key": "once"}, topic="brief")
    two.enqueue({"text": "c"}, topic="stays")
    assert topics(one) == topics(two) == ["brief", "stays"]
    assert drop(one, "brief").status == 409
    assert drop(one, "brief", force="true").body["messages"] == 2
    assert topics(one) == topics(two) == ["stays"]
    assert "brief" not in redis.command("KEYS", "*:brief:*")
    assert drop(two, "brief").status == 404


def test_a_queue_that_comes_again_at_a_node_that_knew_it_is_in_the_list(node):
    """That node took it for listed; a node that starts later finds its messages all the same."""
    one, two = node(), node()
    two.enqueue({"text": "a"}, topic="brief")
    assert drop(one, "brief", force="true").status == 200
    two.enqueue({"text": "b"}, topic="brief")
    until(lambda: topics(one) == ["brief"])
    three = node()
    assert topics(three) == ["brief"]
    assert texts(three.dequeue(topic="brief")) == ["b"]


def test_a_redis_without_memory_is_memory_full(node, redis):
    """429, as when the index of a log is full; when there is memory again it goes on."""
    server = node()
    server.enqueue({"text": "held"})
    redis.command("CONFIG", "SET", "maxmemory", "1")
    try:
        answer = server.post("/enqueue", [server.here(text="more")])
        assert (answer.status, answer.body["error"]) == (429, "memory_full"), answer
        assert "OOM" in answer.body["message"] and int(answer.headers["Retry-After"]) >= 1
        assert server.stats()["total"] == 1
    finally:
        redis.command("CONFIG", "SET", "maxmemory", "0")
    assert texts([server.take()]) == ["held"]
    server.enqueue({"text": "more"})
