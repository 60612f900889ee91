"""What the streams of /v1/queue/subscribe hold, on every engine."""
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


@pytest.mark.parametrize("how", ["ack", "nack", "defer", "expire"])
def test_a_stream_has_at_most_a_page_of_unsettled_messages(client, producer, how):
    """The next one comes when one of them is settled, or its lease has ended."""
    put(producer, b"1", b"2", b"3")
    stream = client.subscribe(page_size=2, wait_seconds=0,
                              visibility_timeout_seconds=1 if how == "expire" else 60)
    one, two = next(stream), next(stream)
    assert {one["payload"], two["payload"]} == {b"1", b"2"}
    if how != "expire":
        until(lambda: producer.stats()["pending_candidates"] == 1)
    if how == "ack":
        producer.ack(one)
    elif how == "nack":
        producer.nack(one, delay_seconds=3600)
    elif how == "defer":
        producer.nack(one, intent="defer", delay_seconds=3600)
    three = next(stream)
    assert three["payload"] == b"3" or how == "expire"
    stream.close()


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
