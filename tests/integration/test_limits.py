"""Limits: which requests are refused, with which answer, and which never are."""
import json
import threading

import pytest

from served import ENGINE, Server, texts, until


def hit(server, limit):
    """Of the server that is asked and, if that is another one, of the owner of the shards."""
    line = f'sluice_limits_hit_total{{limit="{limit}"}}'
    return server.metric(line) + (server.owner.metric(line) if server.owner else 0)


def offer(server, n=1, **common):
    """An enqueue of n messages that may be refused."""
    return server.post("/enqueue", [server.here(**common) for _ in range(n)])


def refused(answer, status, error, limit):
    assert answer.status == status, answer
    assert answer.body["error"] == error and answer.body["limit"] == limit
    assert answer.body["message"]
    if status in (429, 503):
        assert int(answer.headers["Retry-After"]) >= 1
    return answer


def engine():
    """The fastest one; only a log in a store has other nodes."""
    return () if ENGINE == "forwarded" else ("--engine", "memory")


@pytest.fixture
def start(folder):
    """A server with limits; several in a test have a folder each."""
    servers = []

    def begin(*options, **more):
        server = Server(f"{folder}-{len(servers)}", *engine(), *options, **more)
        servers.append(server)
        return server

    yield begin
    for server in servers:
        if server.owner:
            server.owner.stop()
        server.stop()


# --- rates ------------------------------------------------------------------------

def test_a_namespace_over_its_rate_gets_429_and_others_do_not(start):
    """MQ-43, X-13, PW-F11: one message in a thousand seconds, five at once."""
    server = start("--limits-rate", "1", "--limits-burst", "5")
    assert offer(server, 5).status == 200
    answer = refused(offer(server, 5), 429, "limit_reached", "rate")
    assert 1 <= int(answer.headers["Retry-After"]) <= 5
    assert "namespace test: more than 1 messages per second" in answer.body["message"]
    assert offer(server, 5, namespace="other").status == 200
    assert hit(server, "rate") == 1
    assert server.stats()["total"] == 5


def test_a_client_that_waits_for_retry_after_is_served(start):
    """X-13"""
    server = start("--limits-rate", "2", "--limits-burst", "1")
    assert offer(server).status == 200
    until(lambda: offer(server).status == 200)


def test_a_call_over_several_namespaces_is_taken_whole_or_costs_nothing(start):
    server = start("--limits-rate", "1", "--limits-burst", "2")
    assert offer(server, 2, namespace="b").status == 200
    mixed = [server.here(namespace=n) for n in ("a", "a", "b")]
    refused(server.post("/enqueue", mixed), 429, "limit_reached", "rate")
    assert offer(server, 2, namespace="a").status == 200, "a was not charged"


def test_settling_and_taking_are_never_refused_for_a_rate(start):
    """Accepted work goes on whatever its producers do."""
    server = start("--limits-rate", "1", "--limits-burst", "3")
    offer(server, 3)
    refused(offer(server, 3), 429, "limit_reached", "rate")
    first, second, third = server.dequeue(limit=3)
    assert server.settle("/extend", first).status == 200
    assert server.settle("/ack", first).status == 200
    assert server.settle("/nack", second, delay=0).status == 200
    assert server.settle("/ack", third).status == 200
    server.ack(server.take(wait=10))


def test_many_threads_share_the_bucket_of_a_namespace(start):
    """Every message that was taken was paid for, whichever thread took it."""
    server = start("--limits-rate", "1", "--limits-burst", "100", "--threads", "4")
    taken = []

    def push():
        for _ in range(60):
            taken.append(offer(server, 1).status == 200)
        server.close()

    threads = [threading.Thread(target=push) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert 100 <= sum(taken) <= 200  # a second brings one more


def test_a_queue_has_a_rate_by_its_policy_or_by_the_server(start):
    """MQ-43"""
    server = start("--limits-queue-rate", "1", "--limits-queue-burst", "2")
    server.policy(max_rate=1, burst=4)
    assert offer(server, 4).status == 200
    answer = refused(offer(server, 4), 429, "limit_reached", "queue_rate")
    assert "queue mail: more than 1 messages a second" in answer.body["message"]
    assert offer(server, 2, topic="plain").status == 200
    refused(offer(server, 2, topic="plain"), 429, "limit_reached", "queue_rate")
    assert hit(server, "queue_rate") == 2
    assert answer.body["index"] == 0


def test_a_rate_of_a_policy_survives_a_restart(folder):
    with Server(folder) as server:
        server.policy(max_rate=1, burst=2)
        server.restart("kill")
        assert server.get("/policy", **server.here()).body["burst"] == 2
        assert offer(server, 2).status == 200
        refused(offer(server, 2), 429, "limit_reached", "queue_rate")


# --- sizes ------------------------------------------------------------------------

def test_a_queue_takes_no_more_than_its_depth(start):
    """X-05, PW-F10: back-pressure as 429; what is there is not affected."""
    server = start("--limits-queue-depth", "3")
    assert offer(server, 3).status == 200
    refused(offer(server), 429, "queue_full", "depth")
    server.policy(max_depth=4)
    assert offer(server).status == 200
    refused(offer(server), 429, "queue_full", "depth")
    assert hit(server, "depth") == 2
    server.ack(server.take())
    assert offer(server).status == 200


def test_a_batch_and_a_payload_have_a_size(start):
    server = start("--limits-batch", "3", "--limits-payload", "10")
    assert offer(server, 3).status == 200
    refused(offer(server, 4), 413, "too_large", "batch")
    assert offer(server, 1, text="x" * 10).status == 200
    items = [server.here(text="x"), server.here(text="x" * 11)]
    answer = refused(server.post("/enqueue", items), 413, "too_large", "payload")
    assert answer.body["index"] == 1
    assert hit(server, "batch") == hit(server, "payload") == 1
    assert server.stats()["total"] == 4


def test_with_many_shards_the_item_that_is_too_large_has_its_index(start):
    server = start("--limits-payload", "10", "--shards", "4")
    items = [server.here(topic=f"t{i}", text="x" * (11 if i == 5 else 1)) for i in range(9)]
    answer = refused(server.post("/enqueue", items), 413, "too_large", "payload")
    assert answer.body["index"] == 5


def test_a_body_that_is_too_large_names_its_limit(start):
    server = start()
    answer = server.call("POST", "/policy", b"x" * 100_000, **server.here())
    refused(answer, 413, "too_large", "body")
    assert hit(server, "body") == 1


# --- waiting claims ----------------------------------------------------------------

class Waiting:
    """A dequeue that waits on a connection of its own."""

    def __init__(self, server, topic="mail"):
        self.socket = server.raw()
        self.socket.sendall(
            f"GET /dequeue?namespace=test&topic={topic}&wait=60 HTTP/1.1\r\n"
            "Host: localhost\r\n\r\n".encode())

    def close(self):
        self.socket.close()


def waiting(server):
    return server.metric('sluice_waiting{shard="0"}')


@pytest.mark.parametrize("option, limit", [
    ("--limits-queue-waiting", "queue_waiting"), ("--limits-waiting", "waiting")])
def test_no_more_than_so_many_wait(start, option, limit):
    """X-05"""
    server = start(option, "2")
    waiters = [Waiting(server), Waiting(server)]
    until(lambda: waiting(server) == 2)
    refused(server.get("/dequeue", **server.here(wait=30)), 429, "limit_reached", limit)
    assert server.dequeue() == [], "who does not wait is served"
    assert hit(server, limit) == 1
    elsewhere = server.get("/dequeue", **server.here(topic="else", wait="1ms"))
    assert elsewhere.status == (200 if limit == "queue_waiting" else 429)
    waiters.pop().close()
    until(lambda: waiting(server) == 1)
    assert server.get("/dequeue", **server.here(wait="1ms")).status == 200
    server.enqueue({"text": "for the one who waits"})
    assert b"200 OK" in waiters[0].socket.recv(100)
    waiters.pop().close()


def test_over_many_shards_the_waiting_are_counted_together(start):
    server = start("--limits-waiting", "3", "--shards", "4")
    waiters = [Waiting(server, f"t{i}") for i in range(3)]
    until(lambda: sum(server.metric(f'sluice_waiting{{shard="{i}"}}')
                      for i in range(4)) == 3)
    for i in range(4):
        answer = server.get("/dequeue", **server.here(topic=f"t{i}", wait=30))
        refused(answer, 429, "limit_reached", "waiting")
    for w in waiters:
        w.close()


# --- connections and memory -------------------------------------------------------

def test_an_operator_gets_in_when_all_connections_are_taken(start):
    """X-05"""
    server = start("--limits-connections", "3")
    taken = [server.raw() for _ in range(3)]
    for s in taken:
        s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200 OK" in s.recv(1000)
    for path in ("/healthz", "/readyz", "/metrics"):
        answer = server.get(path)
        server.close()
        assert answer.status == 200 and answer.headers["Connection"] == "close"
    answer = refused(offer(server), 503, "limit_reached", "connections")
    server.close()
    assert hit(server, "connections") == 1
    for s in taken:
        s.close()
    server.close()
    until(lambda: server.metric("sluice_http_connections") == 1)
    server.close()
    assert offer(server).status == 200


def test_bodies_of_requests_take_so_much_memory(start):
    """X-05: 503, while an ack is still taken."""
    server = start("--limits-memory", "1M")
    server.enqueue({"text": "held"})
    held = server.take()
    half = json.dumps([server.here(text="x" * 2_000_000)]).encode()
    with server.raw() as s:
        s.sendall(b"POST /enqueue HTTP/1.1\r\nHost: localhost\r\n"
                  b"Content-Length: %d\r\n\r\n" % len(half))
        s.sendall(half[:1_500_000])
        until(lambda: server.metric("sluice_http_request_bytes") == 1_500_000)
        refused(offer(server), 503, "limit_reached", "request_memory")
        server.close()
        assert hit(server, "request_memory") == 1
        server.ack(held)
        s.sendall(half[1_500_000:])
        assert b"200 OK" in s.recv(1000)
    until(lambda: offer(server).status == 200)


# --- reload -----------------------------------------------------------------------

def test_limits_are_reloaded(folder, tmp_path):
    file = tmp_path / "sluice.yaml"
    file.write_text("limits: {rate: 1, burst: 1, queue_depth: 100}\n")
    with Server(folder, "--config", str(file), *engine()) as server:
        assert offer(server).status == 200
        assert offer(server).status == 429
        file.write_text("limits: {rate: 0, queue_depth: 3}\n")
        for each in (server.owner, server):  # the owner has the limit of the depth
            if each:
                each.process.send_signal(1)
        until(lambda: offer(server).status == 200)
        assert offer(server).status == 200
        refused(offer(server), 429, "queue_full", "depth")
        assert texts(server.dequeue()) == [""] * 3
