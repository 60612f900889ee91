"""A real sluiced and a small client for it, standard library alone.

    with Server(folder) as server:
        server.enqueue({"text": "hello"})
        message, = server.dequeue()
        server.ack(message)

Every call answers (status, body) or, where it must succeed, the body.
"""
import base64
import http.client
import itertools
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.parse
from contextlib import contextmanager
from pathlib import Path

SLUICED = os.environ["SLUICED"]
START = 60  # seconds; the sanitizers are slow
ENGINE = os.environ.get("SLUICE_TEST_ENGINE", "log")
# The engine of a server that need not keep its messages, and of one that must: through a server that owns nothing, if that is
# what is tested.
QUICK, LOG = (ENGINE, ENGINE) if ENGINE == "forwarded" else ("memory", "log")
# metrics of shards: docs/cluster.md
OF_SHARDS = ("sluice_messages", "sluice_queue_", "sluice_queues", "sluice_schedule", "sluice_index_memory_bytes")
LIVE = "/v1/admin/live"  # its answer has no end
OF_ENTRY = ("--inboxes",)  # options that the owner does not get: it would take the messages itself


class Refused(Exception):
    """sluiced did not start: what it said."""


class Answer:
    def __init__(self, response, endless=False):
        kind = response.headers["Content-Type"] or ""
        raw = b"" if "event-stream" in kind or (endless and response.status == 200) else response.read()
        self.status = response.status
        self.headers = response.headers
        self.text = raw.decode(errors="replace")
        self.body = None
        if raw and "json" in (response.headers["Content-Type"] or ""):
            self.body = json.loads(raw)

    def __repr__(self):
        return f"{self.status} {self.text}"


def without(options, names):
    """Options, without the options of these names and their values."""
    return [word for before, word in zip((None, *options), options) if word not in names and before not in names]


class Server:
    def __init__(self, folder, *options, engine=ENGINE, namespace="test", topic="mail"):
        self.folder = folder
        self.options = options
        self.engine = engine
        self.namespace = namespace
        self.topic = topic
        self.local = threading.local()
        self.process = None
        self.waited = None  # the process whose end was seen
        self.owner = None   # `forwarded`: the server that owns the shards
        if engine == "forwarded":
            self.owner = Server(f"{folder}.owner", *self.stored(), *without(options, OF_ENTRY), engine="log")
        try:
            self.start()
        except Refused:
            if self.owner:
                self.owner.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.owner:
            self.owner.stop()
        if self.process.poll() is None:
            self.stop()
        elif self.waited is not self.process:  # it ended by itself: did it crash?
            code = self.wait()
            assert code == 0, (code, self.said())

    # --- the process ---------------------------------------------------------

    def start(self):
        self.errors = []
        self.listening = threading.Event()
        self.process = subprocess.Popen(
            [SLUICED, "--data", str(self.folder), *self.engine_options(),
             "--listen", "127.0.0.1:0", *self.options],
            stderr=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read_errors, daemon=True)
        self.reader.start()
        self.listening.wait(START)
        said = "".join(self.errors)
        found = re.search(r"listening on http://([\d.]+):(\d+)", said)
        if not found:
            self.process.kill()
            self.process.wait()
            raise Refused(said)
        self.address = found[1], int(found[2])
        self.local = threading.local()

    def engine_options(self):
        """`stored` is the engine log with a store beside its folder."""
        if self.engine == "stored":
            return "--engine", "log", "--shards", "1", "--store", f"file://{self.folder}.store"
        if self.engine == "forwarded":
            return "--engine", "log", *self.stored()
        return "--engine", self.engine

    def stored(self):
        """A store of one shard, which stays with the first server that takes it."""
        return "--shards", "1", "--store", f"file://{self.folder}.store", "--store-settle", "1h", \
            "--listen", "peer://127.0.0.1:0"

    @property
    def keeper(self):
        """The server that has the shards."""
        return self.owner or self

    def read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line)
            if "listening on http" in line:
                self.listening.set()
        self.listening.set()

    def said(self):
        return "".join(self.errors)

    def wait(self):
        code = self.process.wait(START)
        self.reader.join(START)
        self.waited = self.process
        return code

    def stop(self, sig=signal.SIGTERM, code=0):
        """Ends it as an operator would; must go well, unless another code is expected."""
        self.close()
        self.process.send_signal(sig)
        found = self.wait()
        assert found == code, (found, self.said())

    def kill(self):
        self.process.kill()
        self.wait()

    def restart(self, how="stop"):
        getattr(self, how)()
        self.start()

    # --- calls ---------------------------------------------------------------

    def connect(self):
        return http.client.HTTPConnection(*self.address, timeout=START)

    def close(self, local=None):
        local = local or self.local
        if getattr(local, "connection", None):
            local.connection.close()
            local.connection = None

    def call(self, method, path, body=None, headers=None, **params):
        """One request on this thread's connection."""
        if params:
            path += "?" + urllib.parse.urlencode(params)
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        local = self.local  # a restart makes another
        if not getattr(local, "connection", None):
            local.connection = self.connect()
        try:
            local.connection.request(method, path, body, headers or {})
            response = local.connection.getresponse()
            answer = Answer(response, path.startswith(LIVE))
            if not response.isclosed():
                self.close(local)
            return answer
        except (OSError, http.client.HTTPException):
            self.close(local)
            raise

    def get(self, path, **params):
        return self.call("GET", path, **params)

    def post(self, path, body=None, **params):
        return self.call("POST", path, body, **params)

    def here(self, **more):
        return {"namespace": self.namespace, "topic": self.topic, **more}

    def enqueue(self, *items, **common):
        answer = self.post("/enqueue", [self.here(**{**common, **i}) for i in items])
        assert answer.status == 200, answer
        return answer.body

    def dequeue(self, **params):
        answer = self.get("/dequeue", **self.here(**params))
        assert answer.status == 200, answer
        return answer.body

    def take(self, **params):
        """Exactly one message."""
        messages = self.dequeue(limit=1, **params)
        assert len(messages) == 1
        return messages[0]

    def settle(self, path, message, **more):
        return self.post(path, self.here(
            id=message["id"], lease_id=message["lease_id"],
            fencing_token=message["fencing_token"], **more))

    def ack(self, message, **more):
        answer = self.settle("/ack", message, **more)
        assert answer.status == 200, answer
        return answer.body

    def nack(self, message, **more):
        answer = self.settle("/nack", message, **more)
        assert answer.status == 200, answer
        return answer.body

    def stats(self, **params):
        answer = self.get("/stats", **self.here(**params))
        assert answer.status == 200, answer
        return answer.body

    def peek(self, **params):
        answer = self.get("/peek", **self.here(**params))
        assert answer.status == 200, answer
        return answer.body["messages"]

    def policy(self, **knobs):
        answer = self.call("PUT", "/policy", knobs, **self.here())
        assert answer.status == 200, answer
        return answer.body

    def dlq(self, **params):
        answer = self.get("/dlq", **self.here(**params))
        assert answer.status == 200, answer
        return answer.body["messages"]

    def raw(self):
        """A bare connection, for clients that misbehave."""
        return socket.create_connection(self.address, timeout=START)

    def payload_files(self):
        """The files of large payloads, one of each; of a node that owns nothing: in the store."""
        if self.owner:
            return sorted(Path(f"{self.folder}.store").glob("*/payload/*/*.0"))
        return sorted(p for p in Path(self.folder).glob("**/payloads/*") if p.is_file())

    def metrics(self):
        """The text of /metrics. `forwarded`: the metrics of shards come from the owner."""
        text = self.get("/metrics").text
        if not self.owner:
            return text
        return "".join([line for line in text.splitlines(True) if not is_of_shards(line)] +
                       [line for line in self.owner.metrics().splitlines(True) if is_of_shards(line)])

    def metric(self, line):
        """The value of a sample, named as /metrics writes it."""
        if self.owner and is_of_shards(line):
            return self.owner.metric(line)
        for found in self.get("/metrics").text.splitlines():
            name, _, value = found.rpartition(" ")
            if name == line:
                return float(value)
        raise KeyError(line)


def is_of_shards(line):
    """Of a line of /metrics, or the name of a sample: docs/cluster.md."""
    return "shard=" in line or line.startswith(OF_SHARDS)


class Node(Server):
    """One whose settings are in a file, which can be changed."""

    def __init__(self, folder, text, *options, data="data", engine="memory"):
        self.file = folder / f"{data}.yaml"
        self.write(text)
        super().__init__(folder / data, "--config", str(self.file), *options, engine=engine)

    def __exit__(self, *why):
        super().__exit__(*why)
        shutil.rmtree(self.folder, ignore_errors=True)  # a log grows to 256 MiB and more

    def write(self, text):
        self.file.write_text(text)

    def reload(self, text, word="reloaded"):
        """The file is this now: wait until the server has said so."""
        self.write(text)
        n = self.said().count(word)
        self.process.send_signal(signal.SIGHUP)
        until(lambda: self.said().count(word) > n)


@contextmanager
def several(make):
    """start(...) is make(n, ...), n from 0 on; those that run at the end are killed."""
    started = []

    def start(*args, **named):
        started.append(make(len(started), *args, **named))
        return started[-1]

    try:
        yield start
    finally:
        for server in started:
            if server.process.poll() is None:
                server.kill()


prefixes = (f"t{n}" for n in itertools.count(1))


def on_redis(folder, address):
    """Several that share a prefix of their own there."""
    shared = next(prefixes)

    def make(n, *options, address=address, prefix=shared):
        server = Server(folder / f"node{n}", "--redis-address", address, "--redis-prefix", prefix,
                        "--node-id", str(n), *options, engine="redis")
        server.prefix = prefix
        return server

    return several(make)


def texts(messages):
    return [base64.b64decode(m["payload"]).decode() for m in messages]


def seconds_of(moment):
    """An RFC 3339 moment in UTC as seconds since 1970."""
    whole, _, fraction = moment.rstrip("Z").partition(".")
    return (time.mktime(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) - time.timezone
            + float("0." + (fraction or "0")))


def new_txn():
    """A transaction id of a client. Ids are shared by all namespaces of a server."""
    return "9" + "".join(random.choices("0123456789abcdefghijklmnopqrstuv", k=18)) + "0"


def until(check, seconds=START):
    """Wait until check() is true; what it returned."""
    end = time.monotonic() + seconds
    while True:
        result = check()
        if result:
            return result
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.002)


def freeze(process):
    """SIGSTOP, until every thread has stopped: before that the process may still answer."""
    process.send_signal(signal.SIGSTOP)
    until(lambda: all(path.read_text().rpartition(")")[2].split()[0] == "T"
                      for path in Path(f"/proc/{process.pid}/task").glob("*/stat")))
