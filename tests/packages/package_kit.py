"""What the tests of the packages share."""
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
from served import START, Server, until  # noqa: E402


def url(server):
    return "http://%s:%d" % server.address


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Hangup:
    """A server that reads a request and closes the connection. `with` gives its URL."""

    def __enter__(self):
        self.sock = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.serve, daemon=True).start()
        return "http://127.0.0.1:%d" % self.sock.getsockname()[1]

    def serve(self):
        while True:
            try:
                peer, _ = self.sock.accept()
            except OSError:
                return
            peer.recv(65536)
            peer.close()

    def __exit__(self, *_):
        self.sock.close()


class Program:
    """A worker of a few lines, in a process of its own."""

    def __init__(self, words, servers, **env):
        self.process = subprocess.Popen(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        env={**os.environ, "SLUICE_SERVER": servers, **env})
        self.lines = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(2 * START)
        self.reader.join()
        assert code == 0, self.lines

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()

    def end(self):
        """Of a test that failed; one that has ended is left alone."""
        if self.process.poll() is None:
            self.kill()


def check_kills(folder, client, start):
    """Every message that was accepted is acked, whatever is killed; a message that was acked never comes again.

    client(url) is a client of the Python package, start(url) a Program that prints the body of each message.
    """
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    with Server(folder, "--listen", f"127.0.0.1:{port}") as server:
        ours = client(address)
        ours.policy("jobs", max_attempts=1000, lease="2s")
        workers = [start(address), start(address)]
        accepted = set()
        for n in range(300):
            if n in (60, 180):
                server.kill()
                server.start()
            if n == 120:
                workers[0].kill()
                workers.append(start(address))
            ours.push("jobs", n, idempotency_key=str(n))
            accepted.add(str(n))
        until(lambda: ours.stats("jobs")["total"] == 0)
        for worker in workers[1:]:
            worker.stop()
        seen = [line for worker in workers for line in worker.lines if line.isdigit()]
        assert set(seen) == accepted
        assert len(seen) - len(accepted) <= 3 * 4 * len(workers)  # those in hand when something was killed, 4 a worker


def check_orders(server, push, program):
    """A worker that prints its messages is made quiet, resumed and stopped by an operator."""
    def found():
        return server.get("/v1/admin/workers", namespace="default", queue="jobs").body["workers"]

    def ask(verb):
        body = {"namespace": "default", "worker": until(found)[0]["worker"]}
        assert server.post(f"/v1/admin/worker/{verb}", body).status == 200

    def heard():
        """Two more beats: the answer to the first was heeded before the second."""
        for _ in range(2):
            beat = found()[0]["last_beat"]
            until(lambda: found()[0]["last_beat"] != beat)

    def done():
        return [line for line in program.lines if line.split()[0] in ("one", "two")]  # without what the log says

    until(found)
    push("one")
    until(lambda: len(done()) == 1)
    ask("quiet")
    heard()
    push("two")
    heard()
    assert len(done()) == 1 and server.get("/stats", namespace="default", queue="jobs").body["ready"] == 1
    ask("resume")
    until(lambda: len(done()) == 2)
    assert found()[0]["version"] == "0.2.0" and found()[0]["slots"] == 4
    ask("stop")
    assert program.process.wait(START) == 0
    assert found() == []  # it has said that it ends
