"""kill -9 at random moments while messages end with children: the children are there exactly if their parent is gone."""
import collections
import random
import threading
from http.client import HTTPException

from faults import Hurt, LONG, seed, until

PARENTS = 2000 if LONG else 200
KILLS = 40 if LONG else 6
CHILDREN = 2


def messages(server, topic):
    """All messages of a queue, in whatever state."""
    found, cursor = [], None
    if server.get("/stats", **server.here(topic=topic)).status == 404:
        return found
    while True:
        more = {"cursor": cursor} if cursor else {}
        page = server.get("/peek", **server.here(topic=topic, state="all", limit=1000, **more)).body
        found += page["messages"]
        cursor = page.get("cursor")
        if not cursor:
            return found


def check(server):
    """Returns how many parents are left."""
    waiting = {m["id"] for m in messages(server, "parents")}
    of = collections.Counter(int(m["correlation_id"]) for m in messages(server, "children"))
    assert set(of.values()) <= {CHILDREN}, of
    assert not waiting & set(of), waiting & set(of)
    assert len(waiting) + len(of) == PARENTS
    return len(waiting)


def consume(server, stop):
    """Finishes messages until the server is gone."""
    try:
        while not stop.is_set():
            for m in server.dequeue(topic="parents", limit=3, lease="300ms", wait="100ms"):
                child = server.here(topic="children", text="x", correlation_id=str(m["id"]))
                server.post("/ack", {"receipt": m["receipt"], "enqueue": [child] * CHILDREN})
    except (OSError, HTTPException, AssertionError):
        pass  # the server was killed, or starts


def test_children_exist_exactly_if_their_parent_is_done(folder):
    dice = random.Random(seed(1))
    with Hurt(folder) as server:
        server.enqueue(*({"topic": "parents", "text": "p", "max_attempts": 1000} for _ in range(PARENTS)))
        for kill in range(KILLS + 1):
            stop = threading.Event()
            threads = [threading.Thread(target=consume, args=(server, stop)) for _ in range(4)]
            for t in threads:
                t.start()
            if kill < KILLS:
                stop.wait(dice.random() * 0.05)
                server.kill()
            else:
                until(lambda: server.stats(topic="parents")["total"] == 0)
            stop.set()
            for t in threads:
                t.join()
            if kill < KILLS:
                server.start()
            check(server)
        assert check(server) == 0
