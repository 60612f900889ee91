"""What the streams of /v1/queue/subscribe hold, on every engine."""
import json
import socket
import subprocess
import sys
import threading
import time

import pytest

from lockd import Client
from served import until


@pytest.fixture
def client(server):
    server.topic = "orders"
    return Client(server.address, namespace=server.namespace, queue="orders")


@pytest.fixture
def producer(client):
    return Client(client.address, **client.names)


def put(client, *payloads, **meta):
    return [client.enqueue(meta, payload=p) for p in payloads]


# --- the bound -------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["ack", "nack", "defer"])
def test_a_stream_has_at_most_a_page_of_unsettled_messages(client, producer, how):
    """The next one comes when one of them is settled."""
    put(producer, b"1", b"2", b"3")
    stream = client.subscribe(page_size=2, wait_seconds=0, visibility_timeout_seconds=60)
    one, two = next(stream), next(stream)
    assert {one["payload"], two["payload"]} == {b"1", b"2"}
    until(lambda: producer.stats()["pending_candidates"] == 1)
    if how == "ack":
        producer.ack(one)
    elif how == "nack":
        producer.nack(one, delay_seconds=3600)
    elif how == "defer":
        producer.nack(one, intent="defer", delay_seconds=3600)
    assert next(stream)["payload"] == b"3"
    stream.close()


def test_a_stream_ends_when_a_lease_runs_out(client, producer):
    """Its client subscribes anew, and has what it missed."""
    put(producer, b"1", b"2", b"3")
    stream = client.subscribe(page_size=2, wait_seconds=0, visibility_timeout_seconds=1)
    assert [m["payload"] for m in stream] == [b"1", b"2"]
    again = client.subscribe(page_size=3, wait_seconds=0)
    assert {next(again)["payload"] for _ in range(3)} == {b"1", b"2", b"3"}
    again.close()


def test_a_stream_leaves_its_backlog_to_others(client, producer):
    put(producer, *(b"%d" % i for i in range(6)))
    stream = client.subscribe(page_size=2, wait_seconds=0)
    held = [next(stream)["payload"] for _ in range(2)]
    rest = producer.dequeue(page_size=64)
    assert held + [m["payload"] for m in rest] == [b"%d" % i for i in range(6)]
    stream.close()


def test_a_slow_consumer_loses_no_message_of_its_backlog(client, producer, server):
    """The backlog takes longer than a lease, and no message waits for its turn in the stream."""
    sent = [b"%d" % i for i in range(12)]
    put(producer, *sent, max_attempts=3)
    stream, done = client.subscribe(wait_seconds=0, visibility_timeout_seconds=2), []
    while len(done) < len(sent):
        message = next(stream)
        time.sleep(0.3)
        producer.ack(message)
        done.append(message["payload"])
    assert done == sent and server.dlq() == []
    stream.close()


def test_a_message_that_is_extended_takes_its_place_in_the_stream(client, producer, server):
    put(producer, b"1", b"2")
    stream = client.subscribe(wait_seconds=0, visibility_timeout_seconds=2)
    one = next(stream)
    producer.extend(one, extend_by_seconds=60)
    put(producer, b"3", delay_seconds=4)  # due after the first deadline
    until(lambda: producer.stats()["pending_candidates"] == 2)
    assert [m["attempts"] for m in server.peek(limit=9)] == [0, 0]
    stream.close()


# --- unread deliveries ------------------------------------------------------------------------


def test_a_consumer_that_fails_and_reconnects_is_called_max_attempts_times(client, producer, server):
    """It nacks, drops its stream and opens another: no attempt is spent on the dying stream, and
    no retry waits for the end of a lease, which is an hour."""
    put(producer, b"x", max_attempts=5)
    for n in range(1, 6):
        stream = client.subscribe(wait_seconds=0, visibility_timeout_seconds=3600)
        message = next(stream)
        assert message["failure_attempts" if n > 1 else "attempts"] == max(n - 1, 1)
        producer.nack(message, delay_seconds=0)
        stream.close()
    until(lambda: len(server.dlq()) == 1)
    assert server.dlq()[0]["attempts"] == 5


def test_a_message_that_is_failed_goes_to_others_at_once(client, producer):
    put(producer, b"x")
    stream = client.subscribe(wait_seconds=0, visibility_timeout_seconds=3600)
    message = next(stream)
    other = Client(client.address, **client.names).subscribe
    got = []
    thread = threading.Thread(target=lambda: got.append(next(other(wait_seconds=0))))
    thread.start()
    until(lambda: producer.stats()["waiting_consumers"] >= 1)
    producer.nack(message, delay_seconds=0)
    thread.join(60)
    assert got[0]["payload"] == b"x"
    stream.close()


def test_a_stream_gets_what_it_has_failed_if_no_other_claim_wants_it(client, producer):
    put(producer, b"x", b"y", max_attempts=9)
    stream = client.subscribe(wait_seconds=0, visibility_timeout_seconds=3600)
    one = next(stream)
    producer.nack(one, delay_seconds=0)
    two = next(stream)
    assert (one["payload"], two["payload"]) == (b"x", b"y")
    producer.ack(two)
    assert next(stream)["payload"] == b"x"
    stream.close()


CONSUMER = """
import json, socket, sys
host, port, size, body = sys.argv[1:]
sock = socket.create_connection((host, int(port)), timeout=60)
sock.sendall(b"POST /v1/queue/subscribe HTTP/1.1\\r\\nHost: localhost\\r\\n"
             b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body.encode())
seen = 0
while seen < int(size):
    seen += len(sock.recv(min(4096, int(size) - seen)) or sys.exit(1))
print("read", flush=True)
sys.stdin.read()
"""


def deliver_and_kill(client, size):
    """A process that subscribes and reads so many bytes of the stream, then is killed."""
    body = json.dumps({**client.names, "owner": "o", "wait_seconds": 0, "page_size": 1,
                       "visibility_timeout_seconds": 1})
    with subprocess.Popen([sys.executable, "-c", CONSUMER, *map(str, client.address), str(size), body],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "read\n"
        process.kill()


@pytest.mark.parametrize("payload,size", [(40000, 40000), (40000, 12000), (8 << 20, 12000)],
                         ids=["read", "half-read", "begun"])
def test_a_message_that_kills_its_consumers_dies(client, producer, server, payload, size):
    """max_attempts 3: within 6 deliveries, whether they were read or not."""
    put(producer, b"x" * payload, max_attempts=3)
    deliveries = 0
    while not until(lambda: server.peek() and "ready" or server.dlq() and "dead") == "dead":
        deliver_and_kill(client, size)
        deliveries += 1
        assert deliveries <= 6
    assert deliveries > 3  # the first, which may not have been read, does not count
    assert server.dlq()[0]["reason"] == "max_attempts"


def test_a_subscriber_that_does_not_read_costs_no_other_message_an_attempt(client, producer, server):
    put(producer, *(b"%d" % i for i in range(5)), max_attempts=3)
    body = json.dumps({**client.names, "owner": "o", "wait_seconds": 0, "page_size": 1}).encode()
    with socket.create_connection(server.address, timeout=60) as sock:
        sock.sendall(b"POST /v1/queue/subscribe HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Length: %d\r\n\r\n" % len(body) + body)
        until(lambda: producer.stats()["pending_candidates"] == 4)
        rest = producer.dequeue(page_size=64)
        assert [(m["payload"], m["attempts"]) for m in rest] == [(b"%d" % i, 1) for i in range(1, 5)]


@pytest.mark.parametrize("page", [1, 2])
def test_a_lone_subscriber_that_does_not_read_costs_only_its_first_messages(client, producer, server, page):
    """Also when its leases run out, and what they were for is claimable again."""
    put(producer, *(b"%d" % i for i in range(5)), max_attempts=9)
    body = json.dumps({**client.names, "owner": "o", "wait_seconds": 0, "page_size": page,
                       "visibility_timeout_seconds": 1}).encode()
    with socket.create_connection(server.address, timeout=60) as sock:
        sock.sendall(b"POST /v1/queue/subscribe HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Length: %d\r\n\r\n" % len(body) + body)
        until(lambda: producer.stats()["pending_candidates"] == 5 - page)
        until(lambda: producer.stats()["total_consumers"] == 0)  # a lease has run out
        until(lambda: producer.stats()["pending_candidates"] == 5)
        assert sorted(m["attempts"] for m in server.peek(limit=10)) == [0] * (5 - page) + [1] * page


def test_a_stream_that_ends_at_once_gives_its_newest_delivery_back(client, producer, server):
    """Uncounted, and only that one; what was extended is its client's."""
    put(producer, b"1", b"2")
    stream = client.subscribe(page_size=2, wait_seconds=0, visibility_timeout_seconds=3600)
    one, two = next(stream), next(stream)
    stream.close()
    until(lambda: [m["attempts"] for m in server.peek()] == [0])
    assert producer.ack(one)["acked"]
    again = client.subscribe(wait_seconds=0, visibility_timeout_seconds=3600)
    message = next(again)
    assert (message["payload"], message["attempts"]) == (two["payload"], 1)
    message = {**message, **producer.extend(message, extend_by_seconds=3600)}
    again.close()
    until(lambda: producer.stats()["total_consumers"] == 0)
    assert producer.ack(message)["acked"]
