"""Invariant 7, no silent limit: what lies below, at and above the size of a buffer, a batch
or a page fares the same. And a long queue costs what a short one costs."""
import socket
import threading
from pathlib import Path

import pytest

from faults import until
from load import pages
from served import texts

KIB = 1024


@pytest.mark.parametrize("size", [512, 16 * KIB, 64 * KIB, 256 * KIB, KIB * KIB, 4 * KIB * KIB],
                         ids=str)
def test_a_payload_of_any_size_comes_back(server, size):
    """A short body, held input, one read, a kept buffer, a batch and a record, an answer."""
    sent = [letter * (size + more)
            for letter, more in (("a", -150), ("b", -1), ("c", 0), ("d", 1), ("e", 150))]
    for text in sent:
        server.enqueue({"text": text})
    got = []
    while len(got) < len(sent):
        messages = server.dequeue(limit=10)
        assert messages, "some are missing"
        got += texts(messages)
    assert [len(t) for t in got] == [len(t) for t in sent] and got == sent


@pytest.mark.parametrize("n", [1000, 1001, 4096, 4097, 9000])
def test_any_number_of_messages_is_taken_shown_and_given(server, n):
    """A page and a claim, what falls due in one round, a batch."""
    ids = server.enqueue(*({"text": f"{i}"} for i in range(n)))
    assert len(set(ids)) == n and server.stats()["ready"] == n
    assert {row["id"] for row in pages(server, "/peek", state="all")} == set(ids)
    got = []
    while len(got) < n:
        messages = server.dequeue(limit=1000, lease="1h")
        assert messages, "some are missing"
        got += [m["id"] for m in messages]
    assert got == ids
    for i in range(0, n, 1000):
        answer = server.post("/ack", [server.here(id=id_) for id_ in ids[i:i + 1000]])
        assert all(item["status"] == 200 for item in answer.body)
    assert server.stats()["total"] == 0


@pytest.mark.parametrize("n", [4000, 4001])
def test_any_number_may_fall_due_at_one_moment(server, n):
    """Delays, then leases: more of them than one round handles."""
    server.policy(retry={"kind": "none"})
    server.enqueue(*({"text": "x", "delay": "1s"} for _ in range(n)))
    until(lambda: server.stats()["ready"] == n)
    held = 0
    while held < n:
        held += len(server.dequeue(limit=1000, lease="2s"))
    until(lambda: server.stats()["ready"] == n)
    assert server.stats()["total"] == n


@pytest.mark.parametrize("n", [63, 64, 65, 300])
def test_any_number_of_requests_may_be_sent_ahead(server, n):
    """More than are run at once on a connection."""
    request = "".join(
        f"GET /policy?namespace=n&topic=t{i} HTTP/1.1\r\nHost: localhost\r\n"
        f"{'Connection: close' + chr(13) + chr(10) if i == n - 1 else ''}\r\n" for i in range(n))
    with socket.create_connection(server.address, timeout=60) as sock:
        sock.sendall(request.encode())
        got = b""
        while more := sock.recv(1 << 16):
            got += more
    assert got.count(b"HTTP/1.1 200 OK") == n
    places = [got.index(f'"topic":"t{i}"'.encode()) for i in range(n)]
    assert places == sorted(places)


def test_any_number_may_wait(server):
    n, got = 300, []

    def wait():
        got.extend(server.dequeue(limit=1, wait="50s", lease="1h"))
        server.close()

    threads = [threading.Thread(target=wait) for _ in range(n)]
    for t in threads:
        t.start()
    until(lambda: server.metric('sluice_waiting{shard="0"}') == n)
    ids = server.enqueue(*({"text": "x"} for _ in range(n)))
    for t in threads:
        t.join()
    assert sorted(m["id"] for m in got) == ids


def cpu(server):
    """Nanoseconds that its threads have run: what others do on the machine is not in it."""
    tasks = Path(f"/proc/{server.process.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


def cost(server, n=150):
    """Of taking the first message of a queue, n times."""
    before = cpu(server)
    for _ in range(n):
        server.take(lease="1h")
    return (cpu(server) - before) / n


def test_the_first_message_of_a_long_queue_costs_what_that_of_a_short_one_does(server):
    """MQ-40. From 10^3 to 10^5; `sluice bench backlog` has 10^7 in the long suite."""
    server.enqueue(*({"text": "x", "priority": i % 7} for i in range(2000)))
    cost(server)
    short = min(cost(server) for _ in range(3))
    for _ in range(10):
        server.enqueue(*({"text": "x", "priority": i % 7} for i in range(9900)))
    long = min(cost(server) for _ in range(3))
    print(f"{short:.0f} ns, {long:.0f} ns")
    assert long < 5 * short  # a scan would be a hundred times as much
