"""kill -9 under clients that count under locks: no commit is lost, tokens only rise.

Every client takes a lock, reads the number beside it, writes one more and lets go. What
they saw is put in the order of their tokens, which is the order of the holders: each of
them must have found what the one before it left.
"""
import http.client
import os
import random
import threading
import time

from faults import LONG, seed, until
from locked import Lock

CLIENTS = 64 if LONG else 16
KEYS = 4
CYCLES = int(os.environ.get("FAULT_CYCLES", 40 if LONG else 3))
TTL = 6  # a lease that is found at a start gets 5 s


class Grant:
    """A lease, and what its holder did. committed: True, False, or None: unknown."""

    def __init__(self, asked, body):
        self.asked = asked
        self.granted = time.monotonic()
        self.token = body["fencing_token"]
        self.read = None
        self.committed = False


class Counter(threading.Thread):
    def __init__(self, server, history, dice):
        super().__init__()
        self.server = server
        self.history = history
        self.dice = dice
        self.stopping = False
        self.failed = None

    def call(self, call):
        """The answer, and whether it was the first try. A server that is away comes back."""
        first = True
        while True:
            try:
                return call(), first
            except (OSError, http.client.HTTPException):
                first = False
                time.sleep(0.01)

    def run(self):
        while not self.stopping and not self.failed:
            try:
                self.count(f"key-{self.dice.randrange(KEYS)}")
            except AssertionError as e:
                self.failed = e

    def count(self, key):
        asked = time.monotonic()
        try:
            answer = self.server.post("/v1/acquire", {
                "namespace": "fault", "key": key, "owner": self.name, "ttl_seconds": TTL,
                "block_seconds": 2})
        except (OSError, http.client.HTTPException):
            return  # perhaps it is ours; then it ends by itself
        if answer.status == 409:
            return
        assert answer.status == 200, answer
        grant = Grant(asked, answer.body)
        self.history[key].append(grant)
        self.hold(Lock(self.server, answer.body), grant)

    def hold(self, lock, grant):
        answer, _ = self.call(lock.get)
        if answer.status == 403:
            return
        grant.read = answer.body["n"] if answer.status == 200 else 0
        answer, _ = self.call(lambda: lock.update({"n": grant.read + 1}))
        if answer.status == 403:
            return
        assert answer.status == 200, answer
        grant.committed = None
        answer, first = self.call(lock.release)
        assert answer.body == {"released": True}, answer
        # Of a lease that was over it says the same; this one cannot have been.
        if first and time.monotonic() - grant.granted < TTL - 1:
            grant.committed = True


def check(key, grants, last):
    """grants in the order of their tokens; last: the number that is there in the end."""
    grants = sorted(grants, key=lambda g: g.token)
    tokens = [g.token for g in grants]
    assert len(set(tokens)) == len(tokens), (key, "a token was given twice")
    for before, after in zip(grants, grants[1:]):
        assert after.granted >= before.asked, (key, "tokens do not rise with time")
    low = high = 0
    for grant in grants:
        if grant.read is not None:
            assert low <= grant.read <= high, (key, grant.token, low, grant.read, high)
            low = high = grant.read
        low += grant.committed is True
        high += grant.committed is not False
    assert low <= last <= high, (key, low, last, high)


def test_kill_9_under_locks_loses_no_commit(server):
    dice = random.Random(seed(1))
    history = {f"key-{n}": [] for n in range(KEYS)}
    clients = [Counter(server, history, random.Random(dice.random())) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    try:
        for cycle in range(CYCLES):
            grants = sum(map(len, history.values()))
            until(lambda: sum(map(len, history.values())) > grants + 50)
            threading.Event().wait(0.3 * dice.random())
            server.kill()
            server.start()
        grants = sum(map(len, history.values()))
        until(lambda: sum(map(len, history.values())) > grants + 50)
    finally:
        for client in clients:
            client.stopping = True
        for client in clients:
            client.join()
    assert not any(client.failed for client in clients), [c.failed for c in clients]
    for key, grants in history.items():
        answer = server.post("/v1/acquire", {"namespace": "fault", "key": key, "owner": "me",
                                             "ttl_seconds": 30, "block_seconds": 30})
        assert answer.status == 200, answer
        assert answer.body["fencing_token"] > max(g.token for g in grants)
        seen = Lock(server, answer.body).get()
        check(key, grants, seen.body["n"] if seen.status == 200 else 0)
    done = [g for grants in history.values() for g in grants]
    print(f"{CYCLES} kills, {len(done)} grants, {sum(g.committed is True for g in done)} sure commits, "
          f"{sum(g.committed is None for g in done)} in doubt")
    assert sum(g.committed is True for g in done) > 50 * CYCLES
