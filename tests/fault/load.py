"""Producers and consumers that write down all they do, for checker.py.

Everything they choose comes from one seed. They use bare sockets: a client must be able
to hang up at any byte.
"""
import base64
import json
import random
import socket
import struct
import threading
import time
import urllib.parse

from checker import FAIL, OK, UNKNOWN, Claim, Look, Push, Settle
from served import seconds_of

PATIENCE = 180  # seconds for an answer; far more than any test's pauses


class Gone(Exception):
    """The connection ended. sent: the server may have seen the request."""

    def __init__(self, sent):
        super().__init__()
        self.sent = sent


class Wire:
    """One connection, one request at a time."""

    def __init__(self, address):
        self.address = address
        self.sock = None
        self.rest = b""

    def close(self, hard=False):
        if self.sock and hard:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if self.sock:
            self.sock.close()
        self.sock = None
        self.rest = b""

    def connect(self):
        try:
            self.sock = socket.create_connection(self.address, timeout=PATIENCE)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as e:
            self.close()
            raise Gone(False) from e

    def send(self, method, path, body=None, **params):
        if not self.sock:
            self.connect()
        if params:
            path += "?" + urllib.parse.urlencode(params)
        raw = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(raw)}\r\n\r\n"
        try:
            self.sock.sendall(head.encode() + raw)
        except OSError as e:
            self.close()
            raise Gone(True) from e

    def more(self):
        try:
            got = self.sock.recv(1 << 16)
        except OSError as e:
            self.close()
            raise Gone(True) from e
        if not got:
            self.close()
            raise Gone(True)
        self.rest += got

    def take(self, size):
        while len(self.rest) < size:
            self.more()
        raw, self.rest = self.rest[:size], self.rest[size:]
        return raw

    def chunk(self):
        """Of an answer in pieces; empty: it was the last."""
        while b"\r\n" not in self.rest:
            self.more()
        size, self.rest = self.rest.split(b"\r\n", 1)
        return self.take(int(size, 16) + 2)[:-2]

    def receive(self):
        while b"\r\n\r\n" not in self.rest:
            self.more()
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        lines = head.decode().lower().split("\r\n")
        fields = dict(line.split(": ", 1) for line in lines[1:])
        if fields.get("transfer-encoding") == "chunked":
            raw = b"".join(iter(self.chunk, b""))
        else:
            raw = self.take(int(fields.get("content-length", 0)))
        if fields.get("connection") == "close":
            self.close()
        return int(lines[0].split()[1]), json.loads(raw) if raw else None

    def call(self, method, path, body=None, **params):
        self.send(method, path, body, **params)
        return self.receive()


def outcome(status, body):
    if status == 200:
        return OK
    if isinstance(body, dict) and body.get("error") == "outcome_unknown":
        return UNKNOWN
    return FAIL


class Client:
    """Calls that end up in the history, whatever becomes of them."""

    def __init__(self, server, history, namespace="fault", topic="work"):
        self.server = server
        self.history = history
        self.here = {"namespace": namespace, "topic": topic}
        self.wire = Wire(server.address)

    def ask(self, method, path, body=None, **params):
        """(start, end, result, answer)"""
        start = time.monotonic()
        answer = None
        try:
            status, answer = self.wire.call(method, path, body, **params)
            result = outcome(status, answer)
        except Gone as gone:
            result = UNKNOWN if gone.sent else FAIL
        return start, time.monotonic(), result, answer

    def push(self, items, call):
        """items: name and what else an item says. Whether they were accepted."""
        body = [{**self.here, **item, "text": item["text"]} for item in items]
        start, end, result, answer = self.ask("POST", "/enqueue", body)
        for i, item in enumerate(items):
            self.history.add(Push(
                start, end, result, item["text"].split(" ")[0],
                id=answer[i] if result == OK else 0, key=item.get("key", ""),
                idem=item.get("idempotency_key", ""), index=i, call=call))
        return result

    def claim(self, lease=30.0, **params):
        start, end, result, answer = self.ask(
            "GET", "/dequeue", lease=f"{int(lease * 1000)}ms", **self.here, **params)
        messages = answer if result == OK else []
        for m in messages:
            m["until"] = seconds_of(m["lease_expires_at"])
            self.history.add(Claim(
                start, end, m["id"], base64.b64decode(m["payload"]).decode().split(" ")[0],
                m["fencing_token"], granted=m["until"] - lease, until=m["until"],
                due=max(seconds_of(m["deliver_after"]), seconds_of(m["enqueued_at"])),
                key=m.get("key", ""),
                attempts=m["attempts"], failures=m["failure_attempts"],
                max_attempts=m["max_attempts"]))
        return messages if result == OK else None

    def settle(self, verb, message, **more):
        start, end, result, answer = self.ask("POST", "/" + verb, {
            **self.here, "id": message["id"], "lease_id": message["lease_id"],
            "fencing_token": message["fencing_token"], **more})
        until = 0
        if result == OK and verb == "extend":
            until = seconds_of(answer["lease_expires_at"])
        elif result == OK and verb == "nack" and not answer["dead"]:
            until = seconds_of(answer["deliver_after"])
        self.history.add(Settle(start, end, result, verb, message["id"],
                                message["fencing_token"], until=until))
        return result

    def ack_all(self, messages, may_fail=False):
        """In one call; whether all were done, which they must be if they may not fail."""
        start, end, result, answer = self.ask("POST", "/ack", [
            {**self.here, "id": m["id"], "lease_id": m["lease_id"]} for m in messages])
        items = answer if result == OK else [{}] * len(messages)
        for m, item in zip(messages, items):
            done = result if result != OK else outcome(item["status"], item)
            self.history.add(Settle(start, end, done, "ack", m["id"], m["fencing_token"]))
            assert done == OK or may_fail, answer
        return result == OK

    def hang_up(self, dice, **params):
        """Ask for messages and go at some moment: nothing is known to have arrived."""
        try:
            self.wire.send("GET", "/dequeue", **self.here, **params)
            if dice.random() < 0.5:
                time.sleep(dice.random() * 0.003)
        except Gone:
            pass
        self.wire.close(hard=True)


class Load:
    """Seeded work on one queue until stop() is called."""

    def __init__(self, server, history, seed, producers=4, consumers=10, hang_ups=1, keys=24,
                 lease=2.0, depth=300):
        self.server = server
        self.history = history
        self.seed = seed
        self.counts = producers, consumers, hang_ups
        self.keys = keys
        self.lease = lease
        self.depth = depth
        self.round = 0
        self.lock = threading.Lock()
        self.calls = 0
        self.names = 0
        self.errors = []

    def setup(self):
        self.server.namespace, self.server.topic = "fault", "work"
        self.server.policy(max_attempts=4, retry={"kind": "fixed", "base": "30ms",
                                                  "jitter": "full"})

    def start(self):
        self.ending = threading.Event()
        self.round += 1
        self.base = self.ahead()
        self.threads = []
        for work, n in zip((self.produce, self.consume, self.vanish), self.counts):
            for i in range(n):
                dice = random.Random(f"{self.seed}-{self.round}-{work.__name__}-{i}")
                self.threads.append(threading.Thread(
                    target=self.guard, args=(work, dice), daemon=True))
        for t in self.threads:
            t.start()

    def stop(self):
        self.ending.set()
        for t in self.threads:
            t.join(2 * PATIENCE)
            assert not t.is_alive(), "a client does not end"
        assert not self.errors, self.errors

    def guard(self, work, dice):
        client = Client(self.server, self.history)
        try:
            work(client, dice)
        except Exception as e:  # it must not go unseen in a thread
            self.errors.append(repr(e))
            raise
        finally:
            client.wire.close()

    def name(self):
        with self.lock:
            self.names += 1
            return f"m{self.names}"

    def call(self):
        with self.lock:
            self.calls += 1
            return self.calls

    def item(self, dice):
        name = self.name()
        item = {"text": name + " " + "x" * dice.choice((0, 10, 300, 3000)),
                "priority": dice.randint(0, 9)}
        if dice.random() < 0.6:
            item["key"] = f"k{dice.randrange(self.keys)}"
        if dice.random() < 0.2:
            item["delay"] = f"{dice.randint(1, 400)}ms"
        elif dice.random() < 0.05:
            item["deliver_after"] = "2023-10-27T10:00:00Z"  # means at once
        if dice.random() < 0.2:
            item["idempotency_key"] = name
        return item

    def ahead(self):
        """How far producers are before consumers, roughly."""
        return len(self.history.pushes) - len(self.history.settles)

    def produce(self, client, dice):
        again = None
        while not self.ending.is_set():
            if self.ahead() - self.base > self.depth:
                time.sleep(0.002)
                continue
            items = again or [self.item(dice) for _ in range(dice.choice((1, 1, 2, 5, 20)))]
            result = client.push(items, self.call())
            # What is not known to be there is sent again under its idempotency key.
            again = None
            if result == UNKNOWN or dice.random() < 0.02:
                again = [i for i in items if "idempotency_key" in i] or None
            if result != OK:
                time.sleep(0.005)

    def consume(self, client, dice):
        while not self.ending.is_set():
            messages = client.claim(limit=dice.choice((1, 1, 3, 10)), lease=self.lease,
                                    wait="50ms")
            if messages is None:
                time.sleep(0.005)
            for message in messages or []:
                self.handle(client, dice, message)

    def handle(self, client, dice, message):
        chance = dice.random()
        if chance < 0.75:
            client.settle("ack", message)
        elif chance < 0.85:
            client.settle("nack", message, error="no luck")
        elif chance < 0.87:
            client.settle("nack", message, dead=True)
        elif chance < 0.90:
            client.settle("nack", message, defer=True, delay="20ms")
        elif chance < 0.95:
            if client.settle("extend", message, lease="3s") == OK:
                client.settle("ack", message)
        elif chance < 0.98:
            client.settle("ack", message)
            client.settle(dice.choice(("ack", "nack", "extend")), message)
        # else it forgets: the lease runs out

    def vanish(self, client, dice):
        while not self.ending.is_set():
            client.hang_up(dice, limit=3, lease="1s",
                           **({"wait": "1s"} if dice.random() < 0.5 else {}))

    def finish(self, seconds=60):
        """Take and ack all that is left: what is there can also be had."""
        client = Client(self.server, self.history)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            messages = client.claim(limit=1000, lease=30.0, wait="200ms")
            if messages:
                client.ack_all(messages)
            stats = self.server.stats()
            if stats["total"] == stats["dead"]:
                return
        raise AssertionError(f"not all could be had: {self.server.stats()}")


def look(server):
    """The whole queue, without work on it meanwhile. A page leaves out payloads that are too large;
    then the row has no name."""
    rows = []
    for row in pages(server, "/peek", state="all"):
        name = base64.b64decode(row.get("payload", "")).decode().split(" ")[0]
        rows.append((row["id"], name, row["status"]))
    return Look(rows=rows, dead=[row["id"] for row in pages(server, "/dlq")],
                stats=server.stats())


def pages(server, path, **params):
    cursor = None
    while True:
        more = {} if cursor is None else {"cursor": cursor}
        answer = server.get(path, **server.here(limit=1000, **params, **more))
        assert answer.status == 200, answer
        yield from answer.body["messages"]
        cursor = answer.body.get("cursor")
        if cursor is None:
            return
