"""The figures of shards, measured by bench/shards/run: ratios of one run, or generous bounds.
What misses its aim is measured once more before it fails, as others may use the machine."""
import functools
import os
import re
import subprocess
from pathlib import Path

import pytest

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


def test_one_shard_takes_what_was_promised():
    """SH-93: 4,000 a second on 8 processors, and its part of that on fewer."""
    least = 4000 * min(8, os.cpu_count()) / 8
    reaches("one_shard", lambda rows: number(rows[0][2], r"([\d,]+)/s") > least)


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


# --- sharding that is not used ------------------------------------------------------

SHARDS_CAME = "^broker: shards have names, lanes and a map$"


def git(*words):
    done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True)
    return done.stdout if done.returncode == 0 else b""


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """sluiced of the commit before shards came."""
    tree = git("archive", git("log", "--format=%H", "--grep", SHARDS_CAME).decode().strip() + "^")
    if not tree:
        pytest.skip("no history to build a server without shards from")
    folder = tmp_path_factory.mktemp("before")
    subprocess.run(["tar", "x"], cwd=folder, input=tree, check=True)
    for words in ["meson", "setup", "build"], ["ninja", "--quiet", "-C", "build", "sluiced"]:
        subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder / "build/sluiced"


def test_sharding_that_is_not_used_costs_nothing(before):
    """SH-106: a message takes as much of the processor as it did before there were shards."""
    def aim(rows):
        cost = {r[1].split(":")[0]: number(r[2], r"([\d,]+) ns") for r in rows}
        return cost["this"] < 1.1 * cost["before"]
    reaches("unused", aim, "--before", str(before), "--seconds", "1", "--rounds", "15")


# --- one node on a larger machine -----------------------------------------------------

def test_a_node_can_use_as_many_cores_as_it_has_threads():
    """SH-F10: four of each share the work: no thread bounds the node to less than twice what it
    was with one, and a message takes little more of them all."""
    def aim(rows):
        (one, one_all), *_, (four, four_all) = (
            (number(r[2], r": ([\d,]+) ns"), number(r[2], r"([\d,]+) ns in all")) for r in rows)
        return four < one / 2 and four_all < 1.5 * one_all
    reaches("more_threads", aim)


@pytest.mark.skipif(os.cpu_count() < 2, reason="this machine has one core")
def test_more_cores_do_more():
    """SH-F10"""
    def aim(rows):
        one, every = (number(r[2], r"([\d,]+)/s") for r in rows)
        return every > 1.2 * one
    reaches("more_cores", aim, "--seconds", "1")
