"""The figures of shards, measured by bench/shards/run: ratios of one run, or generous bounds.
What misses its aim is measured once more before it fails, as others may use the machine."""
import functools
import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = os.environ["BUILD_DIR"]


@functools.lru_cache(maxsize=None)
def nth(which, time, more):
    out = subprocess.run([ROOT / "bench/shards/run", "--build", BUILD, "--only", which, *more],
                         check=True, capture_output=True, text=True).stdout
    print(out)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in out.splitlines()[2:]]


def reaches(which, aim, *more):
    """aim(rows) holds, the first or the second time."""
    assert aim(nth(which, 0, more)) or aim(nth(which, 1, more))


def number(text, pattern):
    return float(re.search(pattern, text)[1].replace(",", ""))


def test_a_shard_is_found_below_a_microsecond():
    """SH-91"""
    reaches("resolution", lambda rows: number(rows[0][2], r"(\d+) ns") < 1000)


def test_a_server_keeps_up_with_the_engine_alone():
    reaches("yardstick", lambda rows: all(number(r[2], r": ([\d.]+)") >= 0.7 for r in rows))


def test_three_shards_do_more_than_twice_what_one_does():
    """SH-94"""
    reaches("one_and_three", lambda rows: number(rows[0][2], r": ([\d.]+)") >= 2.2)


def test_stats_of_three_shards_are_quick():
    """SH-92"""
    reaches("stats", lambda rows: all(number(r[2], r"median ([\d.]+)") < 50 for r in rows))


def test_a_store_in_another_zone_costs_its_round_trip():
    """SH-101: a millisecond of distance is a millisecond or two of latency."""
    def aim(rows):
        near, one, two = (number(r[2], r"median ([\d.]+)") for r in rows)
        return one - near < 2 and two - near < 4
    reaches("zones", aim)


def test_pools_take_little_memory():
    """SH-97"""
    reaches("footprint", lambda rows: number(rows[0][2], r"(-?\d+) MB") < 50)


def test_the_wire_carries_little_beside_payloads():
    """SH-99: 400 Mbit/s of payload at 10,000 messages a second of 5 KB."""
    reaches("overhead", lambda rows: number(rows[0][2], r"(\d+) Mbit/s") < 440)


def test_a_million_tasks_a_day_leave_latency_flat():
    """SH-100"""
    def aim(rows):
        first, last = (float(n) for n in re.findall(r"([\d.]+) ms", rows[0][2]))
        return last < 2 * first + 5
    reaches("soak", aim, "--soak", "2m")
