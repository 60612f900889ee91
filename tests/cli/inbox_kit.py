"""What the tests of every kind of inbox share: the command beside a server, and what the server has."""
import base64
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "integration"))
from served import Server  # noqa: E402

SLUICE = os.environ["SLUICE"]


@pytest.fixture
def server(tmp_path):
    with Server(tmp_path / "data", engine="log") as made:
        yield made


def command(server, place, *options):
    return [SLUICE, "inbox", "--from", place, "--server", "http://{}:{}".format(*server.address), *options]


class Inbox:
    """The command beside a server."""

    def __init__(self, server, place, *options):
        self.command = command(server, place, *options)
        self.process = None
        self.errors = []

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def start(self):
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True)
        threading.Thread(target=lambda err=self.process.stderr: self.errors.extend(err), daemon=True).start()
        return self

    def stop(self, sig=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            self.process.send_signal(sig)
        if self.process:
            self.process.wait(60)

    def said(self):
        return "".join(self.errors)


def once(server, place, *options):
    """Takes what is there, and ends. Returns what the command wrote."""
    done = subprocess.run(command(server, place, "--once", *options), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done


def take_all(server, topic="mail"):
    """All messages, in order; they are acked."""
    found = []
    while messages := server.dequeue(topic=topic, limit=1000):
        found += messages
        for message in messages:
            server.ack(message, topic=topic)
    return found


def payloads(messages):
    return [base64.b64decode(m["payload"]).decode() for m in messages]


def ready(server, topic="mail"):
    answer = server.get("/stats", namespace="test", topic=topic)
    return answer.body["ready"] if answer.status == 200 else 0
