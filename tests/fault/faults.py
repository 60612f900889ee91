"""A real sluiced that can be hurt: killed, paused, starved, given a failing kernel."""
import mmap
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "integration"))

import served
from served import Refused, Server, until  # noqa: F401 (for the tests)

SHIM = os.environ.get("FAULT_SHIM_LIB", "")
ASAN = os.environ.get("FAULT_ASAN_LIB", "")  # set: what runs has the sanitizer in it
LONG = os.environ.get("FAULT_LONG") == "1"


def sizes(paths):
    """Of the files that are still there: the server renames and removes them meanwhile."""
    found = set()
    for path in paths:
        try:
            found.add(path.stat().st_size)
        except FileNotFoundError:
            pass
    return found


def seed(default):
    """What a random test starts from; TEST_SEED=n replays."""
    n = int(os.environ.get("TEST_SEED", default))
    print(f"TEST_SEED={n}")
    return n


class Shim:
    """The faults of shim.c, by name."""
    NAMES = ("clock_step", "sync_fails", "full", "syncs", "failed", "sync_stall",
             "alloc_skip", "alloc_fail", "read_stall", "sync_stuck", "no_fsync")

    def __init__(self, path):
        self.path = path
        path.write_bytes(bytes(4096))
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 4096)

    def get(self, name):
        return struct.unpack_from("=q", self.map, 8 * self.NAMES.index(name))[0]

    def set(self, name, value):
        struct.pack_into("=q", self.map, 8 * self.NAMES.index(name), value)

    def fail_syncs(self):
        """The next sync fails, and from then on all in its folder, until heal_syncs."""
        self.set("sync_stuck", 1)
        self.set("sync_fails", 1)

    def heal_syncs(self):
        self.set("sync_stuck", 0)

    def env(self):
        return {"LD_PRELOAD": f"{ASAN}:{SHIM}", "FAULT_SHIM": str(self.path)}


SEGMENT = 64 << 20  # bytes, once it has grown


class Hurt(Server):
    """A server with a command before its own (prlimit, nsenter) and faults in its libc."""

    def __init__(self, folder, *options, prefix=(), shim=None, **more):
        self.prefix = prefix
        self.shim = shim
        super().__init__(folder, *options, **more)

    def start(self):
        self.errors = []
        self.listening = threading.Event()
        self.process = subprocess.Popen(
            [*self.prefix, served.SLUICED, "--data", str(self.folder), "--engine",
             self.engine, "--listen", "127.0.0.1:0", *self.options],
            stderr=subprocess.PIPE, text=True,
            env={**os.environ, **(self.shim.env() if self.shim else {})})
        self.reader = threading.Thread(target=self.read_errors, daemon=True)
        self.reader.start()
        self.listening.wait(served.START)
        found = re.search(r"listening on http://([\d.]+):(\d+)", self.said())
        if not found:
            self.process.kill()
            self.wait()
            raise Refused(self.said())
        self.address = found[1], int(found[2])
        self.local = threading.local()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def prepared(self):
        """The helper has made its spare segments: from here on only the log syncs."""
        until(lambda: len(list(Path(self.folder).rglob("spare-*"))) >= 3
              and not list(Path(self.folder).rglob("*.tmp")))

    def grown(self):
        """Enough was written that segments have their full size; nothing is left of it."""
        topic = {"namespace": "grow", "topic": "grow"}
        while SEGMENT not in sizes(Path(self.folder).rglob("spare-*[0-9]")):
            ids = self.post("/enqueue", [{**topic, "text": "x" * (64 << 10)}] * 100).body
            assert self.get("/dequeue", **topic, limit=1000).status == 200
            self.post("/v1/admin/queue/purge", topic)
            self.post("/ack", [{**topic, "id": id} for id in ids])
        self.prepared()

    def files(self):
        """The log, oldest first."""
        return sorted(Path(self.folder).rglob("*.log"))


def refusal(folder, *options, **more):
    """What a server says that must not start; its exit is an error, not a crash."""
    try:
        server = Hurt(folder, *options, **more)
    except Refused as said:
        return str(said)
    server.kill()
    raise AssertionError("it started")


def remove(folder):
    shutil.rmtree(folder, ignore_errors=True)
