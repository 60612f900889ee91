"""`sluice torture`: a sound server passes, a forgetful one is found out. The planted breaks
torture-*.patch are servers that are wrong in one way each; these tests must notice them."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from faults import ASAN, LONG, until
from served import SLUICED

SLUICE = os.environ["SLUICE"]
ALL = ("kill", "restart", "pause", "workers", "connections", "disk", "clock", "owner", "drain", "store", "store-pause",
       "partition", "link", "move", "power")
# A library that moves the clock wants to be loaded first, and so does the sanitizer.
POSSIBLE = ",".join(name for name in ALL if not (ASAN and name == "clock"))

# A process that is killed loses nothing of a disk in memory, either; and it starts sooner.
MEMORY = "/dev/shm"
QUICK_DISK = ("--dir", MEMORY) if shutil.disk_usage(MEMORY).free > 1 << 30 else ()


def torture(*args, seconds=300):
    done = subprocess.run([SLUICE, "torture", *args], capture_output=True, text=True,
                          timeout=seconds)
    print(done.stdout, done.stderr)
    return done


def passes(*args, **more):
    done = torture(*args, "--json", **more)
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert answer["verdict"] == "passed" and answer["broken"] == []
    assert answer["counts"]["deliveries"]["ok"] > 0
    return answer


def skipped(answer):
    return {f["name"] for f in answer["faults"] if "skipped" in f}


def test_a_server_in_all_kinds_of_trouble_keeps_every_promise():
    answer = passes("--for", "4s", "--faults", POSSIBLE)
    assert answer["engine"] == "log"
    assert skipped(answer) - {"disk", "clock"} == {"power", "owner", "drain", "store", "store-pause", "partition", "link",
                                                      "move"}
    assert sum(f["times"] for f in answer["faults"]) > 0


def test_a_memory_server_keeps_every_promise():
    answer = passes("--for", "3s", "--engine", "memory", "--faults", "kill,workers,connections")
    assert skipped(answer) == {"kill"}


def test_a_server_whose_redis_is_killed_keeps_every_promise():
    answer = passes("--for", "4s", "--engine", "redis", "--faults", "kill,store,store-pause,disk")
    assert answer["engine"] == "redis" and skipped(answer) == {"disk"}
    assert sum(f["times"] for f in answer["faults"]) > 0


def test_nodes_on_shards_that_are_hurt_keep_every_promise():
    """Fault 13; SH-01, SH-105: one of them is killed, loses a shard, or is cut off from it."""
    answer = passes("--for", "5s", "--engine", "redis", "--nodes", "3", "--stores", "2",
                    "--faults", "kill,store,partition")
    assert skipped(answer) == set()
    assert answer["again"].endswith("--engine redis --nodes 3 --stores 2")


def test_a_queue_that_is_moved_keeps_every_promise():
    """Fault 44, SH-78: nodes and movers are killed in the middle."""
    answer = passes("--for", "4s", "--engine", "redis", "--nodes", "2", "--stores", "2",
                    "--faults", "move")
    assert skipped(answer) == set() and answer["faults"][0]["times"] > 0


# A store in memory is as shared as one on a disk, and no power is cut.
SHARED = ("--store", f"file://{MEMORY if QUICK_DISK else '/var/tmp'}", "--nodes", "3", *QUICK_DISK)
UNSHARED = {"store", "store-pause", "move", "power"}


def test_servers_that_take_over_from_each_other_keep_every_promise():
    """Faults 13, 15, 16: at once they are killed, drained, paused for longer than their lease and cut off
    from the store and from each other, their disks fill up, and their clocks step by a day."""
    answer = passes("--for", "10s", "--faults", POSSIBLE, *SHARED)
    assert skipped(answer) - {"clock", "disk", "partition", "link"} == UNSHARED
    assert answer["again"].endswith("--nodes 3") and " --store file:///" in answer["again"]


def test_servers_whose_owner_is_killed_keep_every_promise():
    """Fault 49: how long nothing is delivered is measured. A slow machine needs more time until a kill."""
    runs = (passes("--for", time, "--faults", "owner", *SHARED) for time in ("5s", "20s", "2m"))
    answer = next(answer for answer in runs if "takeovers" in answer)
    assert answer["faults"][0]["times"] >= answer["takeovers"]["times"] > 0
    assert answer["takeovers"]["max_ms"] >= answer["takeovers"]["mean_ms"]


@pytest.mark.skipif(not LONG, reason="part of make test-long, and of the planted breaks")
def test_servers_that_sleep_and_are_cut_off_keep_every_promise():
    """Faults 13 and 16: an owner wakes, or reaches the store again, when another server owns its shards."""
    passes("--for", "24s", "--faults", "pause,partition", *SHARED)


@pytest.mark.skipif(not LONG, reason="part of make test-long")
def test_servers_whose_links_are_cut_keep_every_promise():
    """PEER-1, PEER-2: what was sent over a link and not answered may have happened, and happens once."""
    passes("--for", "48s", "--faults", "link,kill", *SHARED)


@pytest.mark.skipif(not LONG, reason="part of make test-long")
def test_servers_that_are_restarted_in_turn_keep_every_promise():
    """Fault 42: a rolling upgrade restarts one server after the other under load."""
    passes("--for", "60s", "--faults", "restart", *SHARED)


@pytest.mark.skipif(not LONG, reason="part of make test-long")
def test_an_owner_that_is_killed_a_hundred_times_loses_nothing():
    """Faults 16, 49; SH-F7."""
    kills = 0
    while kills < 100:
        kills += passes("--minutes", "1", "--faults", "owner", *SHARED)["faults"][0]["times"]


def test_the_queue_and_the_locks_of_a_run_are_on_stores_of_their_own():
    tmp_path = Path(tempfile.mkdtemp())  # a short name: there are sockets in it
    run = subprocess.Popen([SLUICE, "torture", "--minutes", "5", "--engine", "redis", "--stores", "2",
                            "--faults", "none", "--dir", tmp_path], stdout=subprocess.DEVNULL)
    try:
        until(lambda: kept(tmp_path, b":s:s0:") and kept(tmp_path, b"q:.locks:torture:s:s1:"))
        assert kept(tmp_path, b"q:.locks:torture:") != kept(tmp_path, b":s:s0:")
    finally:
        run.send_signal(signal.SIGINT)
        run.wait(120)
        tmp_path.rmdir()  # it leaves nothing there


def kept(folder, key):
    """The stores whose logs name the key."""
    return {path.parent.parent for path in folder.glob("sluice-store-*/appendonlydir/*.incr.aof")
            if key in contents(path)}


def contents(path):
    """Nothing of a log that was just replaced: Redis rewrites it when a node has met it."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


@pytest.mark.skipif(not LONG, reason="part of make test-long, and of the planted breaks")
def test_a_server_that_is_killed_keeps_every_promise():
    passes("--for", "8s", "--faults", "kill", *QUICK_DISK)


@pytest.mark.skipif(not LONG, reason="part of make test-long, and of the planted breaks")
def test_nodes_that_are_cut_off_keep_every_promise():
    """Fault 13: an unknown outcome is answered as unknown."""
    passes("--for", "16s", "--engine", "redis", "--nodes", "2", "--stores", "2", "--faults",
           "partition", *QUICK_DISK)


@pytest.mark.skipif(not LONG, reason="part of make test-long")
@pytest.mark.parametrize("args", ["log", "memory", "redis", "redis --nodes 3 --stores 2",
                                  "log --store file:///var/tmp --nodes 3"])
def test_ten_minutes_of_all_faults(args):
    passes("--minutes", "10", "--faults", POSSIBLE, "--engine", *args.split(), seconds=1500)


class Forgetful:
    """A server that loses everything now and then, at one address."""

    def __init__(self, folder):
        self.socket = f"unix:{folder}/socket"
        self.folder = folder
        self.start()

    def start(self, *options):
        self.process = subprocess.Popen(
            [SLUICED, "--data", str(self.folder / "data"), "--engine", "memory", "--listen",
             self.socket, *options], stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if "listening on" in line:
                break
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.mark.parametrize("options", [(), ("--limits-payload", "1")], ids=["goes on", "takes nothing"])
def test_a_server_that_forgets_is_found_out(tmp_path, options):
    server = Forgetful(tmp_path)
    run = subprocess.Popen(
        [SLUICE, "torture", "--server", server.socket, "--minutes", "5", "--faults", "kill,workers",
         "--seed", "7"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: delivered(server.socket) > 20)
        server.kill()
        server.start(*options)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=120)
    finally:
        run.kill()
        run.communicate()
        server.kill()
    assert run.returncode == 1, out + err
    assert "BROKEN" in out and "I1  kept" in out, out
    assert "counter-example" in out and "BEGAN s" in out and " ok " in out
    assert "kill         skipped: not possible with --server" in out
    assert "again: sluice torture --seed 7 --for 5m --faults kill,workers" in out


def delivered(address):
    """Messages, since the server started."""
    done = subprocess.run([SLUICE, "queue", "list", "--server", address, "--namespace", "torture",
                           "--json"], capture_output=True, text=True, timeout=60)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return sum(row["since_start"]["delivered"] for row in rows)


def test_it_can_be_stopped_and_still_judges(tmp_path):
    run = subprocess.Popen([SLUICE, "torture", "--minutes", "5", "--engine", "memory", "--faults",
                            "none", "--json", "--history", tmp_path / "history"],
                           stdout=subprocess.PIPE, text=True)
    with pytest.raises(subprocess.TimeoutExpired):
        run.wait(0.5)
    run.send_signal(signal.SIGINT)
    out, _ = run.communicate(timeout=120)
    answer = json.loads(out)
    assert run.returncode == 0 and answer["verdict"] == "passed" and answer["interrupted"]
    events = [json.loads(line) for line in (tmp_path / "history").read_text().splitlines()]
    assert sum(e["event"] == "claim" for e in events) == answer["counts"]["deliveries"]["ok"]
    assert all(e["start_ns"] <= e["end_ns"] for e in events)


@pytest.mark.parametrize("args, code, says", [
    (["--faults", "kil"], 2, "did you mean kill"),
    (["--minutes", "0"], 2, "--minutes"),
    (["--minutes", "1", "--for", "1s"], 2, "exclude each other"),
    (["more"], 2, "unexpected word"),
    (["--server", "127.0.0.1:1", "--engine", "log"], 2, "started here"),
    (["--server", "127.0.0.1:1"], 3, "no server"),
    (["--server", "https://127.0.0.1:1", "--ca-file", "/none"], 2, "/none"),
    (["--dir", "/proc"], 3, "/proc"),
    (["--engine", "redis", "--dir", "/" + 70 * "d"], 3, "too long"),
    (["--nodes", "2"], 2, "need --engine redis or --store"),
    (["--stores", "2"], 2, "need --engine redis"),
    (["--store", "file:///var/tmp", "--stores", "2"], 2, "need --engine redis"),
    (["--store", "/var/tmp"], 2, "expected file:///FOLDER"),
    (["--store", "file:///none"], 3, "/none"),
    (["--store", "file:///var/tmp", "--engine", "memory"], 2, "needs --engine log"),
    (["--store", "file:///var/tmp", "--server", "127.0.0.1:1"], 2, "started here"),
    (["--engine", "redis", "--stores", "9"], 2, "1 to 8"),
    (["--engine", "quantum", "--faults", "none"], 2, "quantum"),
])
def test_a_wrong_call_says_what_is_wrong(args, code, says):
    done = torture(*args)
    assert done.returncode == code and says in done.stderr and done.stdout == ""


def test_help_names_every_fault():
    out = torture("--help").stdout
    assert "examples:" in out and "exit codes:" in out
    for name in ALL:
        assert f"\n  {name} " in out
