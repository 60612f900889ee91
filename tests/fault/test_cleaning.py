"""Faults 40 and 41: acks out of order, and a server killed while it cleans.

Segments grow to 64 MiB, so this writes some hundred MiB and removes them.
"""
import random
import threading
import time
from pathlib import Path

from checker import OK, History, check
from faults import LONG, Hurt, seed, until
from load import Client, look
from test_kill import report, snapshot

SEGMENT = 64 << 20
SIZE = 64 << 10
ROUNDS = 30 if LONG else 4
PER_ROUND = 1000  # messages: about a segment


def disk(folder):
    total = 0
    for file in Path(folder).rglob("*"):
        try:
            total += file.stat().st_size
        except FileNotFoundError:
            pass  # just recycled
    return total


def allowed(live):
    """Three times what lives and four segments, and the small files."""
    return 3 * live + 4 * SEGMENT + (1 << 20)


def segments(folder):
    return sorted(f.name for f in Path(folder).rglob("*.log"))


class Worker:
    """Pushes, and acks all but every hundredth, which it holds for a day."""

    def __init__(self, server):
        self.server = server
        self.history = History()
        self.n = 0
        self.live = 0

    def push(self, client, n):
        for at in range(0, n, 100):
            items = [{"text": f"m{self.n + i} " + "x" * SIZE} for i in range(min(100, n - at))]
            self.n += len(items)
            if client.push(items, self.n) != OK:
                return False
        return True

    def ack(self, client, may_fail=False):
        while True:
            messages = client.claim(limit=100, lease=12 * 3600.0)
            if not messages:
                return messages is not None
            done = [m for m in messages if m["id"] % 4096 % 100]
            if done and not client.ack_all(done, may_fail):
                return False

    def until_it_dies(self):
        client = Client(self.server, self.history)
        while self.push(client, PER_ROUND // 4) and self.ack(client, True):
            pass
        client.wire.close()


def test_acks_out_of_order_leave_little_on_disk(folder):
    """Fault 40: at most three times what lives, and four segments."""
    with Hurt(folder) as server:
        server.namespace, server.topic = "fault", "work"
        work = Worker(server)
        client = Client(server, work.history)
        most = 0
        for _ in range(ROUNDS):
            assert work.push(client, PER_ROUND) and work.ack(client)
            live = server.stats()["total"] * (SIZE + 300)
            until(lambda: disk(folder) <= allowed(live))
            most = max(most, disk(folder))
        assert server.stats()["total"] >= ROUNDS * PER_ROUND // 200
        assert segments(folder)[0] != "00000001.log"
        server.restart("kill")
        work.history.add(snapshot(server))
    found = check(work.history)
    assert not found, report(found)
    print(f"{work.n} messages, {len(work.history.end().rows)} left, at most {most >> 20} MiB")


def test_a_full_disk_is_cleaned_from_the_reserve(folder, shim):
    """Fault 41: acks alone make room for new work, on a disk that stays full; MQ-51"""
    with Hurt(folder, shim=shim) as server:
        server.namespace, server.topic = "fault", "work"
        server.grown()
        shim.set("full", 1)
        work = Worker(server)
        client = Client(server, work.history)
        while work.push(client, 100):
            assert work.n < 10 * PER_ROUND
        for _ in range(3 if LONG else 1):  # as often as one likes
            assert work.ack(client)
            until(lambda: work.push(client, 100))
            while work.push(client, 100):
                pass
        server.kill()
        server.start()  # a full disk is no reason not to
        work.history.add(snapshot(server))
        client = Client(server, work.history)
        assert work.ack(client)
        until(lambda: work.push(client, 100))
        work.history.add(snapshot(server))
    found = check(work.history)
    assert not found, report(found)


def test_a_kill_while_cleaning_loses_and_revives_nothing(folder):
    """Fault 41; MQ-50, MQ-51"""
    dice = random.Random(seed(41))
    with Hurt(folder) as server:
        server.namespace, server.topic = "fault", "work"
        server.grown()
        work = Worker(server)
        amid = 0
        for _ in range(ROUNDS):
            thread = threading.Thread(target=work.until_it_dies)
            thread.start()
            # A second segment was begun: nearly all of the first is dead, it is cleaned.
            first = segments(folder)[0]
            until(lambda: len(segments(folder)) > 1)
            time.sleep(dice.random() * 0.04)
            server.kill()
            thread.join()
            amid += segments(folder)[0] == first
            server.start()
            work.history.add(snapshot(server))
        print(f"{ROUNDS} kills, {amid} of them before the segment was recycled")
        assert amid
        live = len(work.history.end().rows) * (SIZE + 300)
        until(lambda: disk(folder) <= allowed(live))
        assert work.push(Client(server, work.history), 100)
        until(lambda: not list(Path(folder).rglob("*.tmp")))
        work.history.add(snapshot(server))
    found = check(work.history)
    assert not found, report(found)
