"""kill -9 at random moments under load: nothing lost, doubled or out of order."""
import os
import random
import threading

from checker import OK, History, check
from faults import LONG, Hurt, seed, until
from load import Load, look

CLIENTS = {"producers": 16, "consumers": 40, "hang_ups": 8} if LONG else {}
CYCLES = int(os.environ.get("FAULT_CYCLES", 100 if LONG else 10))


def snapshot(server):
    """A scan at rest. Leases and delays run out by themselves, so it is taken until the
    counters before and after are the same."""
    for _ in range(100):
        before = server.stats()
        seen = look(server)
        if seen.stats == before:
            return seen
    raise AssertionError("the queue does not come to rest")


def report(found):
    return "\n".join(found[:20] + [f"{len(found)} in all"])


def kill_under_load(server, killed=lambda dice: None):
    """killed() is called each time while the server is down."""
    history = History()
    dice = random.Random(seed(1))
    load = Load(server, history, dice.random(), **CLIENTS)
    load.setup()
    for _ in range(CYCLES):
        load.start()
        # A few ms of every round at least: also a server that has just begun is killed.
        threading.Event().wait(dice.choice((0.005, 0.05, 0.3, 1.0)) * dice.random() + 0.001)
        server.kill()
        load.stop()
        killed(dice)
        server.start()
        history.add(snapshot(server))
    load.finish()
    history.add(look(server))
    found = check(history)
    assert not found, report(found)
    accepted = [p.id for p in history.pushes if p.result == OK]
    print(f"{CYCLES} kills, {len(accepted)} accepted, {len(history.claims)} delivered")
    # MQ-05: an id is never given twice, except for what has one idempotency key.
    names = {}
    for p in history.pushes:
        if p.result == OK:
            assert names.setdefault(p.id, p.name) == p.name


def test_kill_9_under_load_breaks_no_promise(server):
    """MQ-09, MQ-21, MQ-50, MQ-51, MQ-55"""
    kill_under_load(server)


def test_a_server_that_forgets_is_found_out(folder):
    """The same run with an engine that keeps nothing: the checker must object."""
    history = History()
    with Hurt(folder, engine="memory") as server:
        load = Load(server, history, seed(2))
        load.setup()
        load.start()
        until(lambda: len(history.claims) > 100)
        server.kill()
        load.stop()
        server.start()
        load.setup()
        history.add(look(server))
    found = check(history)
    assert any(text.startswith("I1") and "is lost" in text for text in found), report(found)
