"""Schedules and a wall clock that steps, and kill -9 at random moments: a tick fires once."""
import collections
import random
import time

import pytest

from faults import Hurt, LONG, seed, until

HOUR = 3600 * 10**9
KILLS = 40 if LONG else 6


def put(server, name, when, topic, **more):
    answer = server.call("PUT", "/v1/admin/schedule", {
        "namespace": server.namespace, "name": name, "when": when, "message": {"queue": topic, "text": "x"}, **more})
    assert answer.status == 200, answer
    return answer.body


def show(server, name):
    return server.get("/v1/admin/schedule", namespace=server.namespace, name=name).body


def ticks(server, topic):
    """Of all messages of a queue: how often each tick fired."""
    found = server.get("/v1/admin/messages", **server.here(topic=topic, limit=1000)).body["messages"]
    return collections.Counter(
        server.get("/v1/admin/message", **server.here(topic=topic, id=m["id"])).body["idempotency_key"] for m in found)


@pytest.fixture
def stepped(folder, shim):
    with Hurt(folder, shim=shim) as server:
        server.namespace, server.topic = "fault", "work"
        yield server


def test_a_step_back_fires_nothing_twice(stepped, shim):
    """SCHEDULE-1: the ticks that the clock passes again are past."""
    put(stepped, "s", "@every 1s", "work")
    until(lambda: show(stepped, "s")["firings"] >= 2)
    shim.set("clock_step", -HOUR)
    put(stepped, "other", "@every 1s", "other")  # begins by the new clock
    until(lambda: show(stepped, "other")["firings"] >= 3)
    before = show(stepped, "s")["firings"]
    until(lambda: show(stepped, "other")["firings"] >= 6)
    assert show(stepped, "s")["firings"] == before
    stepped.restart("kill")
    assert show(stepped, "s")["firings"] == before
    shim.set("clock_step", 0)
    until(lambda: show(stepped, "s")["firings"] > before)
    assert set(ticks(stepped, "work").values()) == {1}


@pytest.mark.parametrize("missed, most", [("one", 2), ("all:5", 6)])
def test_a_step_ahead_is_missed(stepped, shim, missed, most):
    """An hour of ticks passes at once: the policy decides how many fire. One more may be due by then."""
    put(stepped, "s", "*/10 * * * *", "work", missed=missed)
    time_of = show(stepped, "s")["next"][0]
    assert time_of
    shim.set("clock_step", HOUR)
    until(lambda: show(stepped, "s")["firings"] >= most - 1)
    now = show(stepped, "s")
    assert most - 1 <= now["firings"] <= most and 5 <= now["firings"] + now["missed_ticks"] <= 7
    assert set(ticks(stepped, "work").values()) == {1}


def test_kills_fire_each_tick_once(folder):
    """With all:100 no tick is left out, and none comes twice."""
    dice = random.Random(seed(7))
    with Hurt(folder) as server:
        server.namespace, server.topic = "fault", "work"
        names = [f"s{n}" for n in range(3)]
        for name in names:
            put(server, name, "@every 1s", name, missed="all:100")
        for _ in range(KILLS):
            time.sleep(dice.random())  # any moment will do
            server.restart("kill")
        for name in names:
            until(lambda: show(server, name)["firings"] >= 2)
            server.post("/v1/admin/schedule/pause", {"namespace": "fault", "name": name})
            found = ticks(server, name)
            assert set(found.values()) == {1}, found
            assert len(found) == show(server, name)["firings"] and show(server, name)["missed_ticks"] == 0
