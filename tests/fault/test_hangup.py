"""Invariant 13: a client that hangs up at any moment costs no message an attempt."""
import random
import socket
import threading

from faults import LONG, seed, until
from load import Gone, Wire
from served import texts

CLAIMERS = 5000 if LONG else 1000


class Claimer(Wire):
    """Its kernel takes hardly anything ahead: what it has not read is not delivered."""

    def connect(self):
        self.sock = socket.socket()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.sock.settimeout(60)
        self.sock.connect(self.address)


def hang_up(server, dice, kind):
    wire = Claimer(server.address)
    params = {"namespace": server.namespace, "limit": 2, "lease": "1h"}
    try:
        if kind == "waiting":
            wire.send("GET", "/dequeue", topic="empty", wait="1m", **params)
        elif kind == "half":
            wire.connect()
            wire.sock.sendall(b"GET /dequeue?namespace=test&topic=big HT"[:dice.randint(1, 40)])
        else:
            wire.send("GET", "/dequeue", topic="big", **params)
            wire.sock.settimeout(0.05)  # there may be nothing for it
            for _ in range(dice.choice((0, 0, 1, 5, 40))):
                wire.sock.recv(4096)
        if dice.random() < 0.5:
            threading.Event().wait(dice.random() * 0.01)
    except (Gone, OSError):
        pass
    wire.close(hard=dice.random() < 0.5)


def test_a_thousand_claimers_hang_up_and_every_message_is_claimable_at_once(server):
    dice = random.Random(seed(13))
    big = "x" * (6 << 20)  # more than the kernel takes of an unread answer
    n = 6
    for i in range(n):
        server.enqueue({"text": f"{i} {big}"}, topic="big")
    kinds = [dice.choice(("waiting", "half", "waiting", "half", "reading"))
             for _ in range(CLAIMERS)]

    def work(mine, own):
        for kind in mine:
            hang_up(server, own, kind)

    threads = [threading.Thread(target=work, args=(kinds[i::8], random.Random(i)))
               for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    server.topic = "big"
    until(lambda: server.metric('sluice_waiting{shard="0"}') == 0)
    until(lambda: server.stats()["ready"] == n)
    assert server.stats()["leased"] == 0
    for i in range(n):
        message, = server.dequeue(limit=1)
        assert message["failure_attempts"] == 0 and message["attempts"] == 1
        assert texts([message])[0].split()[0] == str(i)  # same place
    assert kinds.count("reading") > CLAIMERS / 8
