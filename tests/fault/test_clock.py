"""Fault 11: a wall clock that steps. Leases and delays go by time that passes."""
import time

import pytest

from checker import OK, History, check
from faults import Hurt, until
from load import Client, look
from served import seconds_of, texts
from test_kill import report

HOUR = 3600 * 10**9
STEPS = [HOUR, -HOUR, 24 * HOUR, -24 * HOUR]


@pytest.fixture
def stepped(folder, shim):
    with Hurt(folder, shim=shim) as server:
        server.namespace, server.topic = "fault", "work"
        yield server


def test_the_shim_steps_the_clock(stepped, shim):
    """What a server that starts now writes."""
    for step in STEPS:
        shim.set("clock_step", step)
        stepped.folder = stepped.folder.with_name(f"data{step}")
        stepped.restart()
        stepped.enqueue({"text": "x"})
        got = seconds_of(stepped.take()["enqueued_at"])
        assert abs(got - (time.time() + step / 1e9)) < 60


@pytest.mark.parametrize("step", STEPS)
def test_a_step_ends_no_lease_and_no_delay_early_or_late(stepped, shim, step):
    stepped.enqueue({"text": "leased"}, {"text": "short"})
    stepped.enqueue({"text": "delayed", "delay": "800ms"}, {"text": "far", "delay": "30m"})
    start = time.monotonic()
    leased = stepped.take(lease="30s")
    short = stepped.take(lease="800ms")
    shim.set("clock_step", step)
    assert stepped.dequeue() == []
    if time.monotonic() - start < 0.7:
        assert stepped.settle("/extend", short, lease="800ms").status == 200
        start = time.monotonic()
    got = {}
    while len(got) < 2:
        message = stepped.take(wait=20, lease="1m")
        got[texts([message])[0]] = time.monotonic() - start
    assert set(got) == {"short", "delayed"}
    assert got["short"] >= 0.75 and max(got.values()) < 10
    assert stepped.stats()["delayed"] == 1  # the far one
    stepped.ack(leased)


def test_tokens_and_ids_rise_over_steps_and_restarts(stepped, shim):
    """MQ-05 after a restart and a clock step, MQ-06"""
    history = History()
    last_id = last_token = 0
    call = 0
    for step in (0, HOUR, -HOUR, 24 * HOUR, -24 * HOUR, 0):
        for how in ("", "kill"):
            shim.set("clock_step", step)
            if how:
                stepped.restart(how)
            client = Client(stepped, history)
            call += 1
            assert client.push([{"text": f"m{call}-{i} ", "key": "k"} for i in range(3)],
                               call) == OK
            for _ in range(3):
                message, = client.claim(limit=1)
                assert message["fencing_token"] > last_token
                last_token = message["fencing_token"]
                assert message["id"] > last_id
                last_id = message["id"]
                assert client.settle("ack", message) == OK
    history.add(look(stepped))
    found = check(history)
    assert not found, report(found)


def test_a_clock_that_goes_back_a_second_each_second(stepped, shim):
    stepped.enqueue({"text": "x", "delay": "1s"})
    start = time.monotonic()
    step = 0

    def tick():
        nonlocal step
        step -= 50_000_000
        shim.set("clock_step", step)
        time.sleep(0.05)
        return stepped.dequeue()

    message, = until(tick, 20)
    assert 0.95 <= time.monotonic() - start < 10
    stepped.ack(message)


@pytest.mark.parametrize("step, says", [(-HOUR, "ahead of"), (HOUR, "behind")])
def test_a_clock_that_differs_from_the_time_of_a_shard_is_a_warning(stepped, shim, step, says):
    def clock():
        return [w["message"] for w in stepped.get("/readyz").body.get("warnings", []) if w["warning"] == "clock"]

    assert clock() == []
    shim.set("clock_step", step)
    message, = clock()
    assert says in message and any(f"{s} s" in message for s in (3599, 3600, 3601))
    shim.set("clock_step", 0)
    assert clock() == []
