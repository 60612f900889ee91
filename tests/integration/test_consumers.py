"""Consumers go on while the nodes of a store die, stop, drain and join."""
import itertools
import os
import re
import signal
import subprocess
import threading

from clustered import SPACE, Client, Cluster
from served import until

SLUICE, CONSUME = os.environ["SLUICE"], os.environ["CONSUME"]
LONG = "LONG" in os.environ  # the suite of long tests


class Consumer:
    """A process that appends each message of a queue to a file, and a thread that sends messages to all nodes."""

    def __init__(self, cluster, queue, *command):
        self.queue, self.file = queue, cluster.folder / queue
        self.sent, self.ended = [], threading.Event()
        self.client = Client(cluster)
        with open(self.file, "w", encoding="utf-8") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, text=True)
        self.thread = threading.Thread(target=self.send)
        self.thread.start()

    def send(self):
        for n in itertools.count():
            body = [{"namespace": SPACE, "topic": self.queue, "text": f"{n}\n", "idempotency_key": str(n)}]
            answer = self.client.call(self.ended, "POST", "/enqueue", body)
            if not answer:
                return
            assert answer.status == 200, answer
            self.sent.append(str(n))
            if self.ended.wait(0.01):
                return

    def done(self):
        return set(self.file.read_text().split())

    def stop(self):
        """Waits for all messages. Returns what the process said."""
        self.ended.set()
        self.thread.join()
        until(lambda: self.done() >= set(self.sent))
        self.process.send_signal(signal.SIGTERM)
        _, err = self.process.communicate(timeout=60)
        assert self.process.returncode in (0, -signal.SIGTERM), err
        return err.splitlines()

    def kill(self):
        self.ended.set()
        self.thread.join()
        self.process.kill()
        self.process.wait()


def start(cluster):
    one, several = cluster.address(cluster.nodes[0]), cluster.addresses()
    work = "--namespace", SPACE, "--concurrency", "2", "--lease", "5s", "--", "cat"
    return [
        Consumer(cluster, "one", SLUICE, "work", "one", "--server", one, *work),
        Consumer(cluster, "several", SLUICE, "work", "several", "--server", several, *work),
        Consumer(cluster, "stream", SLUICE, "subscribe", "stream", "--server", several, "--namespace", SPACE,
                 "--visibility", "5s", "--raw"),
        Consumer(cluster, "service", CONSUME, several, SPACE, "service"),
    ]


def all_go_on(consumers):
    """Messages that are sent from now on are worked on, by the same processes."""
    before = {c: len(c.sent) for c in consumers}
    for c in consumers:
        until(lambda c=c: len(c.sent) > before[c] + 3)
        until(lambda c=c: c.done() >= set(c.sent[before[c]:before[c] + 3]))
        assert c.process.poll() is None, c.process.stderr.read()


def is_warning(line):
    return re.search(r"; retrying$| answers again$|; the message comes again$|^sluice work: (stopping|done)|was not settled|message \d+ lost", line)


def drain(cluster, node):
    done = subprocess.run([SLUICE, "admin", "node", "drain", "--server", cluster.address(node)],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done


def test_consumers_go_on_while_nodes_die_drain_and_join(tmp_path):
    """LQ-82, SH-F6: nothing is lost, and no consumer ends."""
    with Cluster(tmp_path, 3) as cluster:
        cluster.settle()
        consumers = start(cluster)
        try:
            all_go_on(consumers)
            for node in cluster.nodes[:3 if LONG else 1]:  # all: each owner, and each entry node of a consumer
                node.kill()
                if node is not cluster.nodes[0]:  # the only one that consumer `one` knows
                    all_go_on(consumers)
                node.start()
                all_go_on(consumers)
            cluster.join()
            drain(cluster, cluster.nodes[1])
            all_go_on(consumers)
            cluster.nodes[2].stop()
            all_go_on(consumers)
            said = [c.stop() for c in consumers]
        finally:
            for c in consumers:
                c.kill()
        for lines in said[:3]:
            assert [line for line in lines if not is_warning(line)] == []


def run(*command):
    return subprocess.Popen([SLUICE, *command, "--namespace", SPACE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_claim_whose_owner_dies_is_made_again(tmp_path):
    """CLIENT-3: the entry node answers `outcome_unknown`. A claim is safe to repeat."""
    with Cluster(tmp_path, 3) as cluster:
        cluster.settle()
        several = cluster.addresses()
        drain(cluster, cluster.nodes[0])  # the server that the client asks first owns nothing
        until(lambda: cluster.owned(cluster.nodes[0]) == 0 and cluster.is_settled())
        pulls = run("pull", "jobs", "--wait", "60s", "--server", several)
        cluster.owner().kill()
        sends = run("push", "jobs", "late", "--idempotency-key", "k", "--server", several)
        assert sends.wait(60) == 0, sends.stderr.read()
        out, err = pulls.communicate(timeout=60)
        assert (pulls.returncode, out) == (0, "late"), err


def test_a_client_finds_the_server_that_has_the_queue(tmp_path):
    """CLIENT-2: without links a server answers `moved`, and the client asks the next one."""
    with Cluster(tmp_path, 2, shards=16, links=False) as cluster:  # so many that each node gets some
        until(lambda: all(map(cluster.owned, cluster.nodes)) and cluster.is_settled())
        for queue in map(str, range(12)):
            sends = run("push", queue, "x", "--server", cluster.addresses())
            assert sends.wait(60) == 0, sends.stderr.read()
