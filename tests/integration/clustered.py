"""Several servers on one store, with links.

    with two(folder) as (owner, entry):  # all shards are at one of them
        entry.enqueue({"text": "hello"})

    with Cluster(folder, 3) as cluster:  # and a client that uses them in turn
        cluster.settle()
        client = Client(cluster)
        client.send("mail", "hello")
"""
import contextlib
import http.client
import itertools
import threading

from served import Server, texts, until

SPACE = "test"
SHARDS = 4  # of a store of two()

# Refusals that say that nothing has happened: the client sends the request again.
NOTHING_HAPPENED = {"moved", "closed", "starting", "shard_failed"}


def shards(server):
    """How many shards the server owns, and how many it knows at other servers."""
    found = server.get("/readyz").body["shards"]
    return found["here"], found["elsewhere"]


def url(server):
    return "http://{}:{}".format(*server.address)


def waits(server):
    """How many requests wait on the shards of a server of two()."""
    return sum(server.metric(f'sluice_waiting{{shard="{shard}"}}') for shard in range(SHARDS))


def node(folder, name, *options, lease="15s", store="store"):
    """The owner hands over by its own setting: with an hour, the first node keeps all shards."""
    return Server(folder / name, "--store", f"file://{folder}/{store}", "--shards", str(SHARDS), "--store-lease", lease,
                  "--store-settle", "1h", "--listen", "peer://127.0.0.1:0", *options, engine="log")


@contextlib.contextmanager
def two(folder, **options):
    """A node that owns all shards, and one that owns none and knows them."""
    with node(folder, "owner", **options) as owner, node(folder, "entry", **options) as entry:
        until(lambda: shards(entry) == (0, SHARDS))
        yield owner, entry


class Cluster:
    """Nodes `one`, `two` ... Each also listens on a unix socket, which stays the same when the node starts again."""

    def __init__(self, folder, n, shards=6, lease="2s", settle="1s", links=True):
        self.folder, self.shards = folder, shards
        self.options = ["--store", f"file://{folder}/store", "--shards", str(shards), "--store-lease", lease,
                        "--store-settle", settle]
        if links:
            self.options += ["--listen", "peer://127.0.0.1:0"]
        self.stack = contextlib.ExitStack()
        self.nodes = []
        self.n = n

    def __enter__(self):
        for _ in range(self.n):
            self.join()
        return self

    def __exit__(self, *why):
        return self.stack.__exit__(*why)

    def join(self):
        name = str(len(self.nodes) + 1)
        node = Server(self.folder / name, "--listen", f"unix:{self.folder}/{name}.sock", *self.options,
                      engine="log", namespace=SPACE)
        self.nodes.append(self.stack.enter_context(node))
        return node

    def address(self, node):
        return f"unix:{node.folder}.sock"

    def addresses(self):
        return ",".join(map(self.address, self.nodes))

    def living(self):
        return [node for node in self.nodes if node.process.poll() is None]

    def owned(self, node):
        """How many shards it owns."""
        return node.get("/readyz").body["shards"]["here"]

    def is_settled(self):
        """Every node knows an owner of every shard, and each shard has one."""
        found = [node.get("/readyz").body["shards"] for node in self.living()]
        return all(s["here"] + s["elsewhere"] == self.shards for s in found) and \
            sum(s["here"] for s in found) == self.shards

    def settle(self):
        until(self.is_settled)

    def owner(self):
        """The node on which requests wait: it owns the shard of their queue."""
        def find():
            for node in self.living():
                waits = [node.metric(f'sluice_waiting{{shard="{n}"}}') for n in range(self.shards)]
                if any(waits):
                    return node
            return None
        return until(find)


class Client:
    """Sends each request to the next node, and again to another one if that is safe. `errors`: the answers
    that a client should not see."""
    numbers = itertools.count()

    def __init__(self, cluster):
        self.cluster = cluster
        self.turns = itertools.count(next(Client.numbers))
        self.errors = []
        self.again = 0  # requests that got no answer, and were sent again

    def call(self, stop, *args, **params):
        """The first answer that is not "not now"; None if `stop` is set before one comes."""
        while not stop.is_set():
            node = self.cluster.nodes[next(self.turns) % len(self.cluster.nodes)]
            try:
                answer = node.call(*args, **params)
            except (OSError, http.client.HTTPException):  # the node stops, or has stopped
                self.again += 1
                stop.wait(0.01)
                continue
            if answer.status != 503:
                return answer
            if answer.body["error"] not in NOTHING_HAPPENED or "Retry-After" not in answer.headers:
                self.errors.append(repr(answer))
            stop.wait(0.01)
        return None


class Load:
    """Producers and workers, a queue each, until stop(). `sent` and `done` have the texts."""

    def __init__(self, cluster, pairs):
        self.cluster = cluster
        self.sending, self.working = threading.Event(), threading.Event()
        self.sent, self.done, self.wrong = [], [], []
        self.clients = [Client(cluster) for _ in range(2 * pairs)]
        self.threads = [threading.Thread(target=self.run, args=(work, self.clients[2 * n + (work == self.work)], f"load{n}"))
                        for n in range(pairs) for work in (self.send, self.work)]
        for thread in self.threads:
            thread.start()

    def run(self, work, client, queue):
        try:
            work(client, queue)
        except Exception as e:  # pylint: disable=broad-except
            self.wrong.append(repr(e))

    def send(self, client, queue):
        for n in itertools.count():
            text = f"{queue}-{n}"
            body = [{"namespace": SPACE, "topic": queue, "text": text, "idempotency_key": text}]
            answer = client.call(self.working, "POST", "/enqueue", body)
            if not answer or answer.status != 200:
                self.wrong.append(("not sent", text, answer))
                return
            self.sent.append(text)
            if self.sending.wait(0.002):
                return

    def work(self, client, queue):
        while not self.working.is_set():
            answer = client.call(self.working, "GET", "/dequeue", namespace=SPACE, topic=queue, wait="1s")
            if answer and answer.status != 200:
                self.wrong.append(("claim", answer))
            for message in answer.body if answer and answer.status == 200 else []:
                self.finish(client, queue, message)

    def finish(self, client, queue, message):
        text, = texts([message])
        if message["attempts"] != 1:
            self.wrong.append(("attempts", text, message["attempts"]))
        before = client.again
        answer = client.call(threading.Event(), "POST", "/ack", {
            "namespace": SPACE, "topic": queue, "id": message["id"], "lease_id": message["lease_id"],
            "fencing_token": message["fencing_token"]})
        if answer.status == 200 or (answer.status == 404 and client.again > before):  # the first ack had done it
            self.done.append(text)
        else:
            self.wrong.append(("ack", text, answer))

    def goes_on(self):
        """Waits until more messages have made the whole way."""
        before = len(self.done)
        until(lambda: len(self.done) > before + 20 or self.wrong)

    def stop(self):
        """Sends no more, and waits for the messages that were sent."""
        self.sending.set()
        for thread in self.threads[::2]:
            thread.join()
        until(lambda: len(self.done) >= len(self.sent) or self.wrong)
        self.working.set()
        for thread in self.threads:
            thread.join()

    def check(self):
        assert not self.wrong and not [e for c in self.clients for e in c.errors], \
            (self.wrong, [e for c in self.clients for e in c.errors])
        assert sorted(self.done) == sorted(self.sent)  # each once
