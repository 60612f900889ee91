"""The figures that were promised, measured by `sluice bench` itself: ratios between
two sides of one run where there is another side, else generous bounds.
A row that misses its aim is measured once more before it fails, as others may use
the machine."""
import functools
import json
import os
import subprocess

import pytest

SLUICE = os.environ["SLUICE"]


MORE = {
    "raw": ["--for", "1s"],
    "backlog": ["--messages", "10000000", "--batch", "100"],
}


def bench(which):
    out = subprocess.run([SLUICE, "bench", which, "--json", *MORE.get(which, [])],
                         check=True, capture_output=True, text=True)
    return {row["name"]: row for row in json.loads(out.stdout)["rows"]}


@functools.lru_cache(maxsize=None)
def nth(which, time):
    """The rows of a bench, the first or the second time it ran."""
    print(which, "again" if time else "")
    return bench(which)


def row(which, start):
    for time in range(2):
        rows = nth(which, time)
        found = next(r for name, r in rows.items() if name.startswith(start))
        print(found)
        if found["reached"]:
            break
    return found


@pytest.mark.parametrize(
    "which, start",
    [
        ("exec", "1 producer, 1 worker"),  # SQ-64: far above 1,000 jobs/s
        ("exec", "1 million live keys"),
        ("exec", "4 producers, 2 workers"),
        ("exec", "tasks that wait 1 ms, 4 shards"),  # SQ-65
        ("exec", "tasks that compute, 2 shards"),  # SQ-65
        ("exec", "submit p99, worker awake"),  # SQ-66
        ("pqueue", "push and pop"),
        ("pqueue", "idle worker has the job, p99"),  # PW-47
        ("raw", "enqueue (bare: durable server)"),
        ("raw", "enqueue (bare: our /healthz)"),
        ("raw", "/healthz"),
        ("raw", "one connection"),
        ("raw", "server CPU"),
        ("backlog", "memory"),
        ("backlog", "dequeue"),  # MQ-40: 10^7 messages beside few
        ("backlog", "kill, start"),
    ],
)
def test_reaches_its_aim(which, start):
    found = row(which, start)
    assert found["reached"], f"{found['name']}: {found}"


def test_one_worker_runs_more_than_a_thousand_jobs_a_second():
    # SQ-64
    assert row("exec", "1 producer, 1 worker")["ours"] * 1e6 > 1000


def test_a_submit_takes_microseconds():
    # SQ-66: p99 of an uncontended submit, worker awake, in us
    assert row("exec", "submit p99, worker awake")["ours"] < 10


def test_a_job_is_picked_up_within_two_milliseconds():
    # PW-47: p99 in us
    assert row("pqueue", "idle worker has the job, p99")["ours"] < 2000


def test_an_enqueue_is_answered_within_a_millisecond_beyond_the_disk():
    # MQ-10: p50 of one message at a time, synced; on a disk that syncs at once it is all of it
    for _ in range(2):
        out = subprocess.run([SLUICE, "bench", "latency", "--messages", "2000", "--json"],
                             check=True, capture_output=True, text=True)
        found = json.loads(out.stdout)
        print(found)
        took = found["request_us"]["p50"]
        if took < max(1000, found["fsync_p50_us"] + 1000):
            return
    raise AssertionError(f"{took} us, an fdatasync takes {found['fsync_p50_us']} us")
