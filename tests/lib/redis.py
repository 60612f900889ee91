"""A real redis-server of a test's own, and a proxy that can lose what passes.

    with Redis(folder) as redis:
        Server(folder / "data", "--redis-address", redis.address, engine="redis")
"""
import shutil
import signal
import socket
import subprocess
import threading
import time


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Redis:
    def __init__(self, folder, *options):
        if not shutil.which("redis-server"):
            raise RuntimeError("redis-server is not installed: make test installs it")
        self.folder = folder
        self.options = options
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        folder.mkdir(parents=True, exist_ok=True)
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
             "--dir", str(self.folder), "--appendonly", "yes", "--appendfsync", "always",
             *self.options],
            stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not self.answers():
            assert self.process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)

    def answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=60) as s:
                s.sendall(b"PING\r\n")
                return s.recv(64)[:1] in (b"+", b"-")  # it may want a password first
        except ConnectionError:
            return False

    def command(self, *words):
        """One command; its answer as it stands on the wire."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as s:
            s.sendall(b"*%d\r\n" % len(words) + b"".join(
                b"$%d\r\n%s\r\n" % (len(w), w) for w in (str(w).encode() for w in words)))
            return s.recv(1 << 20).decode(errors="replace")

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


class Proxy:
    """Passes bytes between clients and a port. `lose` drops the next answers, and the
    connection with them, after the request has gone through."""

    def __init__(self, port):
        self.to = port
        self.lose = 0
        self.lost = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.open = True
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while self.open:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.to))
            for args in (client, server, False), (server, client, True):
                threading.Thread(target=self.pump, args=args, daemon=True).start()

    def pump(self, source, target, answers):
        try:
            while data := source.recv(1 << 16):
                if answers and self.lose > 0:
                    self.lose -= 1
                    self.lost += 1
                    break
                target.sendall(data)
        except OSError:
            pass
        for s in source, target:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.open = False
        self.listener.close()
