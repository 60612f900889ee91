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
ALL = ("kill", "restart", "pause", "workers", "connections", "disk", "clock", "store", "store-pause",
       "partition", "move", "power")
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
    assert skipped(answer) - {"disk", "clock"} == {"power", "store", "store-pause", "partition", "move"}
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
    """Fault 44, SH-78: nodes, and whoever moves it, are killed in the middle."""
    answer = passes("--for", "4s", "--engine", "redis", "--nodes", "2", "--stores", "2",
                    "--faults", "move")
    assert skipped(answer) == set() and answer["faults"][0]["times"] > 0


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
    """The stores whose logs name such a key."""
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
    """Fault 13: what nobody knows is said to be unknown."""
    passes("--for", "16s", "--engine", "redis", "--nodes", "2", "--stores", "2", "--faults",
           "partition", *QUICK_DISK)


@pytest.mark.skipif(not LONG, reason="part of make test-long")
@pytest.mark.parametrize("args", ["log", "memory", "redis", "redis --nodes 3 --stores 2"])
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
    assert "kill         skipped: the server is not ours" in out
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
    (["--minutes", "1", "--for", "1s"], 2, "not both"),
    (["more"], 2, "options only"),
    (["--server", "127.0.0.1:1", "--engine", "log"], 2, "started here"),
    (["--server", "127.0.0.1:1"], 3, "no server"),
    (["--server", "https://127.0.0.1:1", "--ca-file", "/none"], 2, "/none"),
    (["--dir", "/proc"], 3, "/proc"),
    (["--engine", "redis", "--dir", "/" + 70 * "d"], 3, "too long"),
    (["--nodes", "2"], 2, "need --engine redis"),
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
