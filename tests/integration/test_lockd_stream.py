"""Streams of the lockd dialect: subscribe, watch, state, large payloads, other transports."""
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import lockd
from certs import Certs
from lockd import Client, Refused
from served import Server, until

MIB = 1 << 20


@pytest.fixture
def client(server):
    return Client(server.address, namespace=server.namespace, queue="orders")


@pytest.fixture
def producer(client):
    return Client(client.address, **client.names)


def put(client, *payloads):
    return [client.enqueue(payload=p) for p in payloads]


def waiting(client):
    return client.stats()["waiting_consumers"]


def in_memory(*options):
    return Server("none", *options, engine="memory")


def texts(client, server):
    """Of messages that are not leased, in the order of hand-out; and how often each was delivered."""
    server.topic = "orders"
    return [(m["attempts"], m["failure_attempts"]) for m in server.peek(limit=100)]


# --- subscribe -----------------------------------------------------------------------------


def test_one_stream_brings_many_messages_as_they_come(client, producer):
    """LQ-06, LQ-42, LQ-43: flushed for each, and open until the client goes."""
    put(producer, b"0")
    stream = client.subscribe(wait_seconds=0)
    first = next(stream)
    assert first["payload"] == b"0" and client.headers["Transfer-Encoding"] == "chunked"
    assert client.headers["X-Correlation-Id"] == first["correlation_id"]
    producer.ack(first)
    for i in range(1, 20):
        put(producer, b"%d" % i)
        message = next(stream)
        assert message["payload"] == b"%d" % i
        producer.ack(message)
    stream.close()
    until(lambda: waiting(producer) == 0)


def test_the_head_is_held_back_until_there_is_a_message(client, producer):
    """And without one the answer is 409, after the wait."""
    before = time.monotonic()
    with pytest.raises(Refused) as caught:
        client.subscribe(wait_seconds=1)
    assert time.monotonic() - before >= 1
    assert (caught.value.status, caught.value.code) == (409, "waiting")
    assert caught.value.body["retry_after_seconds"] == 1
    streams = []
    thread = threading.Thread(target=lambda: streams.append(client.subscribe(wait_seconds=0)))
    thread.start()
    until(lambda: waiting(producer) == 1)
    assert not streams
    put(producer, b"x")
    thread.join(30)
    assert next(streams[0])["payload"] == b"x"
    streams[0].close()


def test_a_stream_that_does_not_wait_ends_with_the_queue(client, producer):
    put(producer, b"1", b"2", b"3")
    assert [m["payload"] for m in client.subscribe(wait_seconds=-1, page_size=8)] == \
        [b"1", b"2", b"3"]


def test_a_stream_does_not_take_what_others_wait_for(client, producer, server):
    """LQ-80: no consumer idles while a ready message exists."""
    put(producer, b"1", b"2")
    stream = client.subscribe(page_size=1, wait_seconds=0)
    one = next(stream)
    assert Client(server.address, **client.names).take(wait_seconds=5)["payload"] == b"2"
    producer.ack(one)
    put(producer, b"3")
    assert next(stream)["payload"] == b"3"
    stream.close()


def test_what_an_ended_stream_did_not_hand_over_goes_back_unharmed(client, producer, server):
    """LQ-40, LQ-45: no attempt counted, claimable at once."""
    payload = random.Random(1).randbytes(8 * MIB)
    put(producer, payload, payload)
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    sock.connect(server.address)
    body = json.dumps({**client.names, "owner": "o", "page_size": 2}).encode()
    sock.sendall(b"POST /v1/queue/subscribe HTTP/1.1\r\nHost: localhost\r\n"
                 b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert sock.recv(4096).startswith(b"HTTP/1.1 200")
    sock.close()
    until(lambda: texts(client, server) == [(0, 0), (0, 0)])
    message = client.take()
    assert message["payload"] == payload and message["attempts"] == 1


def test_a_stream_that_was_handed_over_keeps_its_lease(client, producer, server):
    """Its client may still settle what it has read, and extended."""
    put(producer, b"x")
    stream = client.subscribe(wait_seconds=0)
    message = next(stream)
    message = {**message, **producer.extend(message)}
    stream.close()
    until(lambda: waiting(producer) == 0)
    assert texts(client, server) == []
    assert producer.ack(message)["acked"]


def test_a_setting_allows_more_unsettled_deliveries():
    with in_memory("--queue-unsettled", "3") as server:
        client = Client(server.address, queue="q")
        put(client, *[b"%d" % i for i in range(4)])
        stream = client.subscribe(page_size=1, wait_seconds=0)
        got = [next(stream)["payload"] for _ in range(3)]
        assert got == [b"0", b"1", b"2"]
        assert client.stats()["pending_candidates"] == 1
        stream.close()


def test_one_consumer_more_than_the_cap_is_refused():
    """LQ-53, LQ-59: by flag; what does not wait is no consumer."""
    with in_memory("--queue-max-consumers", "2") as server:
        client = Client(server.address, queue="q")
        put(client, b"x")
        stream = client.subscribe(wait_seconds=0)
        next(stream)
        thread = threading.Thread(target=client.dequeue, kwargs={"wait_seconds": 0})
        thread.start()
        until(lambda: client.stats()["total_consumers"] == 2)
        for path in ("dequeue", "subscribe"):
            with pytest.raises(Refused) as caught:
                client.claim(path, wait_seconds=0)
            assert (caught.value.status, caught.value.code) == (503, "queue_busy")
            assert caught.value.body["retry_after_seconds"] == 1
        with pytest.raises(Refused) as caught:
            client.dequeue(wait_seconds=-1)
        assert caught.value.code == "waiting"
        put(client, b"y")
        thread.join(30)
        stream.close()
        until(lambda: client.stats()["total_consumers"] == 0)


def test_idle_streams_and_waiters_cost_no_threads_and_no_reads(server, client):
    """LQ-13, LQ-41"""
    def counted():
        with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
            threads = next(line for line in status if line.startswith("Threads"))
        with open(f"/proc/{server.process.pid}/io", encoding="ascii") as io:
            reads = next(line for line in io if line.startswith("read_bytes"))
        return threads, reads

    before = counted()
    socks = []
    for i in range(50):
        body = json.dumps({"namespace": server.namespace, "queue": f"q{i}",
                           "owner": "o"}).encode()
        socks.append(server.raw())
        socks[-1].sendall(b"POST /v1/queue/subscribe HTTP/1.1\r\nHost: localhost\r\n"
                          b"Content-Length: %d\r\n\r\n" % len(body) + body)
    until(lambda: client.stats()["total_consumers"] >= 50)
    assert counted() == before
    for sock in socks:
        sock.close()
    until(lambda: client.stats()["total_consumers"] == 0)


def test_a_server_that_stops_ends_its_streams_well(folder):
    """With the last boundary; a waiting client is sent elsewhere."""
    server = Server(folder, "--drain", "5s")
    client = Client(server.address, queue="q")
    put(client, b"x")
    stream = client.subscribe(wait_seconds=0)
    message = next(stream)
    refused = []

    def wait():
        with pytest.raises(Refused) as caught:
            client.dequeue(wait_seconds=0, queue="other")
        refused.append(caught.value)

    thread = threading.Thread(target=wait)
    thread.start()
    until(lambda: client.stats(queue="other")["waiting_consumers"] == 1)
    stays = client.connect()  # while a client is connected it drains, and accepts others
    stays.connect()
    server.process.send_signal(signal.SIGTERM)
    assert list(stream) == []
    thread.join(30)
    assert (refused[0].status, refused[0].code) == (503, "shutdown_draining")
    assert client.ack(message)["acked"]
    assert client.headers["Shutdown-Imminent"] == "true"
    with pytest.raises(Refused) as caught:
        put(client, b"late")
    assert (caught.value.status, caught.value.code) == (503, "shutdown_draining")
    stays.close()
    assert server.wait() == 0


def test_limits_have_their_codes():
    """What the flat API calls by other names."""
    with in_memory("--limits-rate", "1", "--limits-payload", "9", "--limits-queue-depth", "1",
                   "--limits-queue-waiting", "1") as server:
        def told(function, *args, **more):
            with pytest.raises(Refused) as caught:
                function(*args, **more)
            return caught.value.status, caught.value.code

        client = Client(server.address, queue="q", namespace="a")
        put(client, b"1")
        assert told(put, client, b"2") == (429, "throttled")
        other = Client(server.address, queue="q", namespace="b")
        assert told(put, other, b"0123456789") == (413, "payload_too_large")
        put(Client(server.address, queue="full", namespace="c"), b"1")
        until(lambda: told(put, Client(server.address, queue="full", namespace="c"), b"2")
              == (429, "queue_full"))
        thread = threading.Thread(target=told, args=(other.dequeue,), kwargs={"wait_seconds": 5})
        thread.start()
        until(lambda: waiting(other) == 1)
        assert told(other.dequeue, wait_seconds=5) == (503, "queue_busy")
        thread.join(30)


# --- watch ---------------------------------------------------------------------------------


class Events:
    def __init__(self, client, **more):
        self.answer, self.connection = client.send("/v1/queue/watch", json.dumps(
            {**client.names, **more}).encode())
        assert self.answer.status == 200
        assert self.answer.headers["Content-Type"] == "text/event-stream"
        assert self.answer.headers["Cache-Control"] == "no-cache"
        self.number = 0

    def next(self):
        self.number += 1
        line = self.answer.readline()
        while line == b": keepalive\n":
            assert self.answer.readline() == b"\n"
            line = self.answer.readline()
        assert line == b"id: %d\n" % self.number
        assert self.answer.readline() == b"event: queue_watch\n"
        line = self.answer.readline()
        assert line.startswith(b"data: ") and self.answer.readline() == b"\n"
        event = json.loads(line[6:])
        assert event["correlation_id"] and abs(event["changed_at_unix"] - time.time()) < 60
        return event["available"], event.get("head_message_id")


def test_a_watch_tells_how_it_is_and_every_change(client, producer, server):
    """Event-driven: each step waits for its event, none for a clock."""
    events = Events(client)
    assert events.next() == (False, None)
    one, = put(producer, b"1")
    assert events.next() == (True, one["message_id"])
    two, = put(producer, b"2")  # no other head: no event
    held = producer.take()
    assert events.next() == (True, two["message_id"])
    also = producer.take()
    assert events.next() == (False, None)
    producer.nack(also)
    assert events.next() == (True, two["message_id"])
    producer.nack(held, delay_seconds=3600)
    server.topic = "orders"
    server.enqueue({"text": "urgent", "priority": "high"})
    available, head = events.next()
    assert available and head not in (one["message_id"], two["message_id"])
    server.post("/v1/admin/queue/pause", server.here())
    assert events.next() == (False, None)
    server.post("/v1/admin/queue/resume", server.here())
    assert events.next() == (True, head)
    server.post("/v1/admin/queue/purge", server.here())
    assert events.next() == (False, None)
    producer.enqueue({"delay_seconds": 1}, b"later")
    assert events.next()[0]  # when its time comes
    events.connection.close()


def test_a_queue_that_is_drained_takes_no_messages(client, producer, server):
    put(producer, b"1")
    server.topic = "orders"
    server.post("/v1/admin/queue/drain", server.here())
    with pytest.raises(Refused) as caught:
        put(producer, b"2")
    assert (caught.value.status, caught.value.code) == (409, "queue_draining")
    producer.ack(producer.take())
    server.post("/v1/admin/queue/resume", server.here())
    put(producer, b"2")


def test_a_watch_sees_what_expires(client, producer):
    """LQ-34"""
    events = Events(client)
    assert events.next() == (False, None)
    producer.enqueue({"ttl_seconds": 1}, b"x")
    assert events.next()[0]
    assert events.next() == (False, None)
    events.connection.close()


def test_many_watch_one_queue_and_each_knows_its_own(client, producer):
    first = Events(client)
    assert first.next() == (False, None)
    sent, = put(producer, b"x")
    second = Events(client)
    for events in (first, second):
        assert events.next() == (True, sent["message_id"])
    producer.take()
    for events in (first, second):
        assert events.next() == (False, None)
        events.connection.close()


# --- state ---------------------------------------------------------------------------------


def state_call(server, message, path, body=None):
    key = f"q/{message['queue']}/state/{message['message_id']}"
    fields = {"X-Lease-ID": message["state_lease_id"], "X-Txn-ID": message["state_txn_id"],
              "X-Fencing-Token": str(message["state_fencing_token"])}
    return server.call("POST", "/v1/" + path, body, fields, namespace=message["namespace"],
                       key=key)


def test_a_message_comes_with_the_lease_of_its_state(client, server):
    """LQ-05, LQ-07, LQ-20, LQ-27: progress survives a retry, and goes with the message."""
    put(client, b"x")
    message, = client.claim("dequeueWithState", page_size=9)
    assert message["state_etag"] and message["state_lease_expires_at_unix"] == \
        message["lease_expires_at_unix"]
    assert state_call(server, message, "get").status == 204
    assert state_call(server, message, "update", {"step": 1}).status == 200
    assert state_call(server, message, "get").body == {"step": 1}
    other = {**message, "state_fencing_token": 1}
    assert state_call(server, other, "update", {}).body["error"] == "fencing_mismatch"
    extended = client.extend(message, state_lease_id=message["state_lease_id"])
    assert extended["state_lease_expires_at_unix"] == extended["lease_expires_at_unix"]
    client.nack(message)
    stream = client.claim("subscribeWithState", wait_seconds=0)
    again = next(stream)
    assert again["state_etag"] != message["state_etag"]
    assert state_call(server, message, "update", {}).status == 403
    assert state_call(server, again, "get").body == {"step": 1}
    client.ack(again, state_etag=again["state_etag"], state_lease_id=again["state_lease_id"],
               state_fencing_token=again["state_fencing_token"])
    assert state_call(server, again, "get").status in (403, 404)
    stream.close()


# --- large payloads ------------------------------------------------------------------------


def test_a_large_payload_goes_both_ways(client):
    """LQ-03, LQ-81: 10 MB of binary, with what looks like boundaries in it."""
    noise = random.Random(2).randbytes(64 << 10)
    payload = (noise + b"\r\n--" + lockd.BOUNDARY.encode()[:-1] + b"\r\n--") * 150
    assert len(payload) > 9 * MIB
    sent = client.enqueue(payload=payload)
    assert sent["payload_bytes"] == len(payload)
    assert client.take()["payload"] == payload


def parts_of(names, pieces):
    """The body of an enqueue as it is made."""
    body, headers = lockd.parts(names, b"")
    head, tail = body.split(b"\r\n\r\n\r\n")
    yield head + b"\r\n\r\n"
    yield from pieces
    yield b"\r\n" + tail


def peak(server):
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM"):
                return int(line.split()[1]) << 10
    raise AssertionError("no VmHWM")


def passes(server, size):
    """Send and take so much: how the memory of the server grew, at its peak."""
    client = Client(server.address, queue="large")
    put(client, b"x" * (2 * MIB))  # what is needed for any
    client.ack(client.take())
    piece = random.Random(3).randbytes(MIB)
    count = size // MIB
    before = peak(server)
    want = hashlib.sha256(piece * count).hexdigest() if count <= 64 else None
    _, headers = lockd.parts({}, b"")
    answer, connection = client.send("/v1/queue/enqueue",
                                     parts_of({"queue": "large"}, [piece] * count), headers)
    assert answer.status == 200, answer.read()
    assert json.loads(answer.read())["payload_bytes"] == size
    connection.close()
    answer, connection = client.send("/v1/queue/dequeue", json.dumps(
        {"queue": "large", "owner": "o"}).encode())
    found, got = hashlib.sha256(), 0
    head = b""
    while b'name="payload"\r\n\r\n' not in head:
        head += answer.read(1)
    while got < size:
        data = answer.read(min(MIB, size - got))
        found.update(data)
        got += len(data)
    assert answer.read().endswith(b"--\r\n")
    connection.close()
    if want:
        assert found.hexdigest() == want
    return peak(server) - before


def test_memory_does_not_grow_with_a_payload(folder):
    """LQ-16: a smaller one; tests/long has the gigabyte."""
    if "asan" in os.environ["SLUICED"]:
        pytest.skip("a sanitizer keeps what is freed")
    with Server(folder) as server:
        objects = 16 * MIB if server.owner else 0  # of 8 MiB each, put and fetched whole
        assert passes(server, 48 * MIB) < 16 * MIB + objects


def test_a_payload_beyond_the_limit_is_refused_while_it_comes():
    with in_memory("--limits-payload", "1M") as server:
        client = Client(server.address, queue="q")
        _, headers = lockd.parts({}, b"")
        sock = server.raw()
        sock.sendall(b"POST /v1/queue/enqueue HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Length: 1000000000\r\nContent-Type: %b\r\n\r\n"
                     % headers["Content-Type"].encode())
        try:
            for piece in parts_of({"queue": "q"}, [b"x" * MIB] * 900):
                sock.sendall(piece)
        except OSError:
            pass  # it has heard enough
        assert sock.recv(4096).startswith(b"HTTP/1.1 413")
        sock.close()
        assert not client.stats()["available"]


def on_the_way(folder):
    """The files that uploads begin in the folder of the server."""
    return {p for p in folder.glob("**/payloads/*") if p.is_file()}


def test_a_client_that_goes_while_it_sends_leaves_nothing(folder):
    """LQ-81: no message without its payload, no file without its message."""
    with Server(folder) as server:
        client = Client(server.address, queue="q")
        put(client, b"x" * (2 * MIB))
        kept = server.payload_files()
        body, headers = lockd.parts({"queue": "q"}, b"y" * (4 * MIB))
        sock = server.raw()
        sock.sendall(b"POST /v1/queue/enqueue HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Length: %d\r\nContent-Type: %b\r\n\r\n"
                     % (len(body), headers["Content-Type"].encode()) + body[:3 * MIB])
        until(lambda: on_the_way(folder) - set(kept))
        sock.close()
        until(lambda: server.payload_files() == kept and not on_the_way(folder) - set(kept))
        assert client.stats()["pending_candidates"] == 1


@pytest.mark.parametrize("path", ["dequeue", "subscribe"])
def test_what_cannot_be_read_is_passed_over(folder, path):
    """LQ-14: the consumer sees the next message, not an error."""
    with Server(folder, namespace="default", topic="q") as server:
        client = Client(server.address, queue="q")
        put(client, b"x" * (2 * MIB))
        damaged, = server.payload_files()
        with open(damaged, "r+b") as file:
            file.seek(4096)
            file.write(b"y" * 4096)
        thread = threading.Timer(0.05, put, (client, b"good"))
        thread.start()
        stream = client.claim(path, wait_seconds=0, page_size=4)
        assert next(stream)["payload"] == b"good"
        stream.close()
        thread.join(30)
        until(lambda: server.stats()["damaged"] == 1)


# --- other transports, other clients -------------------------------------------------------


def round_trip(client):
    sent = client.enqueue(payload=b"hello")
    message = client.take(wait_seconds=5)
    assert message["message_id"] == sent["message_id"] and message["payload"] == b"hello"
    assert client.extend(message)["visibility_timeout_seconds"] == 30
    client.nack(message)
    stream = client.subscribe(wait_seconds=0)
    assert client.ack(next(stream))["acked"]
    stream.close()


def test_over_a_unix_socket(tmp_path):
    path = str(tmp_path / "s")
    with in_memory("--listen", "unix:" + path):
        round_trip(Client(path, queue="q"))


def test_over_tls_with_a_client_certificate(tmp_path):
    """1.6 of the contract: read consumes, write enqueues."""
    certs = Certs(tmp_path / "certs")
    certs.make("server", "DNS:localhost", "IP:127.0.0.1")
    every = certs.make("both", "URI:spiffe://a/both", "URI:lockd://ns/shop?perm=rw")
    reads = certs.make("reader", "URI:spiffe://a/r", "URI:lockd://ns/shop?perm=r")
    with Server("none", "--listen", "https://127.0.0.1:0", "--tls-cert", certs["server.pem"],
                "--tls-key", certs["server.key"], "--tls-client-ca", certs["ca.pem"],
                "--tls-client-auth", "required", engine="memory") as server:
        port = next(int(line.rsplit(":", 1)[1].split(",")[0]) for line in
                    until(lambda: [e for e in server.errors if "listening on https" in e]))
        names = {"namespace": "shop", "queue": "q"}
        context = lockd.tls_context(certs["ca.pem"], *every)
        both = Client(("127.0.0.1", port), context, **names)
        round_trip(both)
        reader = Client(("127.0.0.1", port), lockd.tls_context(certs["ca.pem"], *reads), **names)
        with pytest.raises(Refused) as caught:
            reader.enqueue(payload=b"x")
        assert (caught.value.status, caught.value.code) == (403, "namespace_forbidden")
        put(both, b"x")
        assert reader.ack(reader.take())["acked"]
        with pytest.raises(Refused) as caught:
            reader.dequeue(namespace="other")
        assert (caught.value.status, caught.value.code) == (403, "namespace_forbidden")


def test_a_unix_socket_without_and_tcp_with_client_certificates(tmp_path):
    certs = Certs(tmp_path / "certs")
    certs.make("server", "DNS:localhost", "IP:127.0.0.1")
    every = certs.make("both", "URI:spiffe://a/both", "URI:lockd://ns/shop?perm=rw")
    own, shared = str(tmp_path / "own"), str(tmp_path / "shared")
    with Server("none", "--listen", "https://127.0.0.1:0", "--listen", f"unix:{own}?mode=0600",
                "--listen", f"unix:{shared}", "--tls-cert", certs["server.pem"],
                "--tls-key", certs["server.key"], "--tls-client-ca", certs["ca.pem"],
                "--tls-client-auth", "required", engine="memory") as server:
        port = next(int(line.rsplit(":", 1)[1].split(",")[0]) for line in
                    until(lambda: [e for e in server.errors if "listening on https" in e]))
        assert os.stat(own).st_mode & 0o777 == 0o600
        names = {"namespace": "shop", "queue": "q"}
        round_trip(Client(own, **names))
        round_trip(Client(("127.0.0.1", port), lockd.tls_context(certs["ca.pem"], *every), **names))
        with pytest.raises(Refused) as caught:
            Client(shared, **names).enqueue(payload=b"x")
        assert caught.value.status == 401
        if os.geteuid() == 0:  # another user, whatever the mode is by now
            os.chmod(tmp_path, 0o755)
            os.chmod(own, 0o666)
            assert status_as_nobody(own) == b"401"


def status_as_nobody(path):
    ask = ("import socket, sys; s = socket.socket(socket.AF_UNIX); s.settimeout(60); s.connect(sys.argv[1]); "
           "s.sendall(b'POST /v1/queue/stats HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 2\\r\\n\\r\\n{}'); "
           "print(s.recv(4096).split()[1].decode())")
    folder = os.path.dirname(path)
    return subprocess.run([sys.executable, "-c", ask, os.path.basename(path)], cwd=folder, user=65534,
                          capture_output=True, check=True, timeout=120).stdout.strip()


@pytest.mark.skipif(not shutil.which("curl"), reason="there is no curl")
def test_as_libcurl_sends_it(client, server):
    """Chunked, with Expect on each: it gets 100 Continue and need not time out."""
    url = "http://%s:%d/v1/queue/" % server.address

    def curl(path, *args, data=None):
        done = subprocess.run(
            ["curl", "-sSv", "--max-time", "60", "--expect100-timeout", "60", "-H",
             "Expect: 100-continue", "-H", "Transfer-Encoding: chunked", *args, url + path],
            input=data, capture_output=True, check=True)
        assert b"HTTP/1.1 100 Continue" in done.stderr
        return done.stdout

    body, headers = lockd.parts(client.names, b"hello")
    sent = json.loads(curl("enqueue", "-H", "Content-Type: " + headers["Content-Type"],
                           "--data-binary", "@-", data=body))
    got = curl("dequeue", "-d", json.dumps({**client.names, "owner": "c"}))
    message = json.loads(got[got.index(b"{"):got.index(b"}\n") + 1])["message"]
    assert message["message_id"] == sent["message_id"]
    names = ("namespace", "queue", "message_id", "lease_id", "txn_id", "fencing_token",
             "meta_etag")
    assert json.loads(curl("ack", "-d", json.dumps({n: message[n] for n in names})))["acked"]
