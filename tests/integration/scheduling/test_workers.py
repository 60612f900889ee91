"""The workers of examples/: Node with fetch alone, Python with its standard library alone."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from served import START, until

EXAMPLES = Path(__file__).parents[3] / "examples"
WORKERS = {"node": ["node", EXAMPLES / "worker.mjs"], "python": [sys.executable, EXAMPLES / "worker.py"]}
JOBS = [{"do": "mail"}, {"do": "report"}, {"do": "flaky"}, {"do": "poison"}, {"do": "nonsense"}]


class Worker:
    def __init__(self, server, words):
        self.words = words
        self.env = {**os.environ, "SLUICE_SERVER": "http://%s:%d" % server.address}
        self.started = []

    def start(self, *args):
        self.started.append(subprocess.Popen(
            [*self.words, *args], env=self.env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return self.started[-1]

    def end(self):
        """Of a test that failed; those that have ended are left alone."""
        for process in self.started:
            process.kill()

    def __call__(self, *args):
        process = self.start(*args)
        return finished(process).splitlines()


def finished(process):
    """What it printed; it must end well by itself."""
    out, err = process.communicate(timeout=2 * START)
    assert process.returncode == 0, (out, err)
    return out


@pytest.fixture(params=WORKERS)
def worker(request, server):
    server.namespace, server.topic = "default", f"jobs-{request.param}-{request.node.name[:20]}"
    server.topic = "".join(c if c.isalnum() else "-" for c in server.topic)
    made = Worker(server, WORKERS[request.param])
    yield made
    made.end()


def waits(server):
    """Does a claim wait for a message of the queue?"""
    answer = server.post("/v1/queue/stats", {"namespace": server.namespace, "queue": server.topic})
    return answer.body["waiting_consumers"]


def test_a_worker_enqueues_waits_acks_nacks_extends_and_buries(server, worker):
    server.policy(retry={"kind": "fixed", "base": "10ms", "jitter": "none"})
    process = worker.start("work", server.topic, str(len(JOBS)))
    until(lambda: waits(server))  # the long poll: there is nothing yet
    uids = worker("push", server.topic, *map(json.dumps, JOBS))
    assert len(uids) == len(JOBS)
    said = sorted(finished(process).splitlines())
    mail, report, flaky, poison, nonsense = uids
    assert said == sorted([
        f"done {mail} sent", f"done {report} written", f"failed {flaky} no carrier",
        f"done {flaky} sent at last", f"dead {poison} no such customer",
        f"dead {nonsense} no such job: nonsense"])
    dead = {m["uid"]: m for m in server.dlq()}
    assert dead[poison]["error"] == "no such customer" and dead[poison]["reason"] == "rejected"
    assert set(dead) == {poison, nonsense}
    assert server.stats()["total"] == 2


def test_a_signal_ends_a_worker_and_costs_no_message(server, worker):
    server.enqueue({"json": {"do": "mail"}})
    assert worker("work", server.topic, "1")[0].startswith("done ")
    process = worker.start("work", server.topic)
    until(lambda: waits(server))
    process.terminate()
    finished(process)
    until(lambda: not waits(server))
    server.enqueue({"json": {"do": "mail"}})
    assert server.take()["attempts"] == 1


def test_a_worker_says_how_it_is_called(worker):
    process = worker.start("dance")
    _, err = process.communicate(timeout=2 * START)
    assert process.returncode != 0 and "push QUEUE JSON" in err


ACK_BY_ID = """
const at = (path) => process.env.SLUICE_SERVER + path;
const json = async (answer) => [answer.status, await (await answer).json()];
const [, messages] = await json(await fetch(at("/dequeue?namespace=default&topic=%s&limit=20")));
for (const message of messages) {
  const body = JSON.stringify({ id: message.id, namespace: "default", topic: message.topic });
  const [status, answer] = await json(await fetch(at("/ack"), { method: "POST", body }));
  console.log(status, answer.error, answer.message);
}
"""


def test_an_ack_in_node_by_a_rounded_id_deletes_nothing_and_says_why(server):
    server.namespace, server.topic = "default", "rounded"
    server.enqueue(*({} for _ in range(20)))
    worker = Worker(server, ["node", "--input-type=module", "-e"])
    said = worker(ACK_BY_ID % server.topic)
    assert len(said) == 20
    for line in said:
        assert line.startswith("400 rounded_id id ") and "send the receipt" in line
    assert server.stats()["leased"] == 20
