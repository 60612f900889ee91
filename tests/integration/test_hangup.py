"""A client that hangs up at any moment costs no message an attempt."""
import random
import socket
import struct
import threading

from served import until


def request(server, **params):
    query = "&".join(f"{k}={v}" for k, v in server.here(**params).items())
    return f"GET /dequeue?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def reset(sock):
    """Close it so that the server hears of it at once."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def waiting(server):
    return server.metric('sluice_waiting{shard="0"}')


def all_claimable(server, n):
    """Every message can be had at once, and none has failed. The token of a hand-out
    that did not arrive stays spent."""
    until(lambda: server.stats()["ready"] == n)
    got = []
    while len(got) < n:
        page = server.dequeue(limit=1000)
        assert page
        got += page
    assert {m["failure_attempts"] for m in got} == {0}
    assert len({m["id"] for m in got}) == n
    return got


def test_a_client_that_hangs_up_while_waiting_takes_nothing(server):
    for end in (socket.socket.close, reset):
        sock = server.raw()
        sock.sendall(request(server, wait=60))
        until(lambda: waiting(server) == 1)
        end(sock)
        until(lambda: waiting(server) == 0, 15)  # it would have waited for 60
    server.enqueue({"text": "x"})
    message, = all_claimable(server, 1)
    assert message["attempts"] == 1


def test_a_client_that_hangs_up_during_the_answer_gets_nothing(server):
    """What the kernel could not take whole goes back, to its place and uncounted."""
    big = "x" * (1 << 20)
    n = 16  # more than the kernel's buffers hold
    for _ in range(n):
        server.enqueue({"text": big})
    sock = server.raw()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.sendall(request(server, limit=n))
    until(lambda: server.stats()["leased"] >= 3)
    sock.recv(100)
    reset(sock)
    messages = all_claimable(server, n)
    assert {m["attempts"] for m in messages} == {1}


def test_a_thousand_claimers_that_hang_up_at_random_cost_nothing(server):
    """Invariant 13."""
    n = 300
    server.enqueue(*({"text": "x" * 500} for _ in range(n)))
    before = server.metric('sluice_messages_delivered_total{shard="0"}')
    dice = random.Random(13)
    plans = [(dice.random() < 0.5, dice.random() * 0.01, dice.randint(0, 3))
             for _ in range(1000)]

    def claim(mine):
        for wait, pause, how in mine:
            sock = server.raw()
            whole = request(server, limit=3, **({"wait": 5} if wait else {}))
            sock.sendall(whole[:len(whole) // 2] if how == 0 else whole)
            if how == 1:
                threading.Event().wait(pause)
            reset(sock)

    threads = [threading.Thread(target=claim, args=(plans[i::8],)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    until(lambda: waiting(server) == 0)
    # An answer that the kernel took whole is delivered, read or not: those stay leased.
    delivered = server.metric('sluice_messages_delivered_total{shard="0"}') - before
    returned = server.metric('sluice_messages_returned_total{shard="0"}')
    stats = server.stats()
    assert stats["ready"] + stats["leased"] == n and stats["dead"] == 0
    assert delivered >= stats["leased"] and returned >= 0
    for message in server.peek(state="all", limit=1000):
        assert message["failure_attempts"] == 0
    assert stats["delayed"] == 0


def test_a_result_is_kept_after_its_waiting_client_is_gone(server):
    id_, = server.enqueue({"keep_result": "1h"})
    message = server.take()
    sock = server.raw()
    sock.sendall(f"GET /result?namespace={server.namespace}&id={id_}&wait=60 HTTP/1.1\r\n"
                 "Host: localhost\r\n\r\n".encode())
    until(lambda: waiting(server) == 1)
    reset(sock)
    until(lambda: waiting(server) == 0)
    server.ack(message, result=1)
    assert server.get("/result", namespace=server.namespace, id=id_).body["result"] == 1
