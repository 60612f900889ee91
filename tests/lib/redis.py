"""A real redis-server of a test's own, and a proxy that can lose what passes.

    with Redis(folder) as redis:
        Server(folder / "data", "--redis-address", redis.address, engine="redis")
"""
import re
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
        self.tls_port = int(options[options.index("--tls-port") + 1]) if "--tls-port" in options else None
        folder.mkdir(parents=True, exist_ok=True)
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
             "--repl-diskless-sync-delay", "0", "--dir", str(self.folder), "--appendonly", "yes", "--appendfsync", "always",
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

    def has_all_of(self, master):
        """Has this replica received everything? WAIT speaks of the caller's own writes."""
        has = re.search(r"slave_repl_offset:(\d+)", self.command("INFO", "replication"))
        had = re.search(r"master_repl_offset:(\d+)", master.command("INFO", "replication"))
        return has and int(has[1]) >= int(had[1])

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


class Cluster:
    """Masters that share the slots evenly, each with so many replicas.

    The servers write their table with a sync whenever it changes. On a busy disk that takes seconds. With a
    timeout of a second they would take each other for dead again and again, and refuse all calls meanwhile."""

    def __init__(self, folder, *options, masters=3, replicas=0, each=tuple, timeout_ms=15000):
        self.nodes = []
        self.options = ("--cluster-enabled", "yes", "--cluster-node-timeout", str(timeout_ms), *options)
        try:
            for i in range(masters * (1 + replicas)):
                self.nodes.append(Redis(folder / str(i), *self.options, *each(),
                                        "--cluster-port", str(free_port())))
            self.join(masters)
        except BaseException:
            self.__exit__()
            raise
        self.address = ",".join(n.address for n in self.nodes)

    def join(self, masters):
        share = 16384 // masters
        for i, node in enumerate(self.nodes):
            node.command("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
            if i < masters:
                last = 16383 if i == masters - 1 else share * (i + 1) - 1
                node.command("CLUSTER", "ADDSLOTSRANGE", share * i, last)
            bus = node.options[node.options.index("--cluster-port") + 1]
            for other in self.nodes[:i]:
                other.command("CLUSTER", "MEET", "127.0.0.1", node.tls_port or node.port, bus)
        self.until(lambda n: n.command("CLUSTER", "NODES").count("connected") == len(self.nodes)
                   and "handshake" not in n.command("CLUSTER", "NODES"))
        for i, node in enumerate(self.nodes[masters:]):
            master = self.name(self.nodes[i % masters])
            self.until(lambda n: "OK" in node.command("CLUSTER", "REPLICATE", master))
        self.until(lambda n: "cluster_state:ok" in n.command("CLUSTER", "INFO")
                   and n.command("CLUSTER", "NODES").count("master -") == masters)
        self.until(lambda n: "role:master" in n.command("INFO", "replication")
                   or "master_link_status:up" in n.command("INFO", "replication"))

    def until(self, check):
        deadline = time.monotonic() + 60
        for node in self.nodes:
            while not check(node):
                assert time.monotonic() < deadline, node.command("CLUSTER", "NODES")
                time.sleep(0.01)

    @staticmethod
    def name(node):
        return node.command("CLUSTER", "MYID").split("\r\n")[1]

    def owner(self, slot):
        """The master that has it, as all of them say."""
        for node in self.nodes:
            for line in node.command("CLUSTER", "NODES").splitlines():
                words = line.split()
                if "myself,master" in line and any(
                        int(w.split("-")[0]) <= slot <= int(w.split("-")[-1])
                        for w in words[8:] if w[0] != "["):
                    return node
        raise AssertionError(f"slot {slot} is nobody's")

    def begin_move(self, slot, target):
        """From here on calls for the slot are refused in part; returns where it was."""
        source = self.owner(slot)
        self.set_slot(target, slot, "IMPORTING", source)
        self.set_slot(source, slot, "MIGRATING", target)
        return source

    def end_move(self, slot, source, target):
        while keys := source.command("CLUSTER", "GETKEYSINSLOT", slot, 100).split("\r\n")[2::2]:
            source.command("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
        for node in [target, source] + self.nodes:
            self.set_slot(node, slot, "NODE", target)

    def set_slot(self, node, slot, how, other):
        answer = node.command("CLUSTER", "SETSLOT", slot, how, self.name(other))
        assert answer.startswith("+OK"), (node.port, slot, how, answer)

    def move(self, slot, target):
        self.end_move(slot, self.begin_move(slot, target), target)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            node.kill()


NOTICE = b"*3\r\n$7\r\nmessage"  # what a subscriber receives: no answer


class Proxy:
    """Passes bytes between clients and a port. `lose` drops the next answers, and the
    connection with them, after the request has gone through. While `passes` is not set, new
    connections wait."""

    def __init__(self, port):
        self.to = port
        self.lose = 0
        self.lost = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.open = True
        self.passes = threading.Event()
        self.passes.set()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while self.open:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.passes.wait()
            server = socket.create_connection(("127.0.0.1", self.to))
            for args in (client, server, False), (server, client, True):
                threading.Thread(target=self.pump, args=args, daemon=True).start()

    def pump(self, source, target, answers):
        try:
            while data := source.recv(1 << 16):
                if answers and self.lose > 0 and not data.startswith(NOTICE):
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
