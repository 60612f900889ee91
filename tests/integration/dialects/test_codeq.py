"""Clients of codeQ: the REST API below /v1/codeq. docs/codeq.md."""
import json
import threading
import time
import uuid

import pytest

from codeq import Codeq
from served import LOG, QUICK, Server, until

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("codeq") / "data", namespace="default", engine=QUICK) as server:
        yield server


@pytest.fixture
def codeq(server):
    return Codeq(server)


def command():
    return f"C-{uuid.uuid4().hex[:12]}"


def waiting(server):
    """Operations that wait for a message or a result."""
    lines = server.metrics().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("sluice_waiting{"))


# --- tasks --------------------------------------------------------------------------------


def test_a_task_from_create_to_result(codeq):
    name = command()
    made = codeq.create(command=name, payload={"n": 1}, priority=7, maxAttempts=3, webhook="http://example.com/done")
    assert uuid.UUID(made["id"]) and made["command"] == name and json.loads(made["payload"]) == {"n": 1}
    assert made == {**made, "priority": 7, "maxAttempts": 3, "webhook": "http://example.com/done", "status": "PENDING",
                    "lastKnownLocation": "PENDING_LIST", "tenantId": "default"}
    assert "workerId" not in made and "leaseUntil" not in made and "error" not in made
    assert codeq.task(made) == made
    task = codeq.claim(name)
    assert (task["id"], task["status"], task["lastKnownLocation"]) == (made["id"], "IN_PROGRESS", "INPROG_SET")
    assert task["attempts"] == 1 and task["leaseUntil"] > task["createdAt"]
    assert codeq.claim(name) is None
    record = codeq.complete(task, answer=42)
    assert record == {**record, "taskId": made["id"], "status": "COMPLETED", "result": {"answer": 42}}
    ended = codeq.result(made)
    assert ended["result"] == record
    assert ended["task"] == {**ended["task"], "id": made["id"], "status": "COMPLETED", "lastKnownLocation": "NONE",
                             "payload": made["payload"], "command": name}
    assert codeq.task(made) == ended["task"]


def test_an_unknown_task(codeq):
    for what in (str(uuid.uuid4()), "0190163d-0000-7000-8000-000000000000", "nonsense"):
        assert codeq.good("producer", "GET", f"/tasks/{what}", status=404) == {"error": "task not found"}
        assert codeq.result({"id": what}, status=404) == {"error": "task not found"}
        assert codeq.settle("heartbeat", {"id": what}, status=404) == {"error": "not-found"}
        assert codeq.settle("nack", {"id": what}, status=404) == {"error": "not-found"}
        assert codeq.settle("result", {"id": what}, {"status": "COMPLETED", "result": {}}, status=404) == {"error": "task not found"}


def test_priorities_and_delays(codeq):
    name = command()
    for priority in (0, 9, 5, 99, -1):
        codeq.create(command=name, payload=priority, priority=priority)
    later = codeq.create(command=name, delaySeconds=3600)
    assert later["lastKnownLocation"] == "DELAYED_ZSET"
    past = codeq.create(command=name, payload="past", runAt="2020-01-01T00:00:00Z", priority=9)
    assert past["lastKnownLocation"] == "PENDING_LIST"
    assert [json.loads(codeq.claim(name)["payload"]) for _ in range(6)] == [9, 99, "past", 5, 0, -1]
    assert codeq.claim(name) is None
    stats = codeq.good("admin", "GET", f"/admin/queues/{name}")
    assert stats == {"command": name, "ready": 0, "delayed": 1, "inProgress": 6, "dlq": 0}
    assert codeq.good("admin", "GET", "/admin/queues")[f"{name}:inProgress"] == 6


def test_an_idempotency_key_gives_the_first_task(codeq):
    name = command()
    first = codeq.create(command=name, payload={"n": 1}, idempotencyKey="k")
    assert codeq.create(command=name, payload={"n": 2}, idempotencyKey="k") == first
    assert codeq.create(command=command(), idempotencyKey="k")["id"] != first["id"]  # keys are per command
    codeq.complete(codeq.claim(name))
    assert codeq.create(command=name, idempotencyKey="k") == codeq.task(first)
    assert codeq.claim(name) is None


@pytest.mark.parametrize("body,text", [
    ({}, "command"), ({"command": "a"}, "payload"), ({"command": "a b", "payload": 1}, "command"),
    ({"command": "a", "payload": 1, "webhook": "ftp://x/"}, "webhook"),
    ({"command": "a", "payload": 1, "delaySeconds": -1}, "delaySeconds"),
    ({"command": "a", "payload": 1, "runAt": "tomorrow"}, "runAt"), ([], "object"),
])
def test_a_task_that_is_malformed(codeq, body, text):
    answer = codeq.call("producer", "POST", "/tasks", body)
    assert answer.status == 400 and list(answer.body) == ["error"] and text in answer.body["error"], answer


def test_a_payload_that_is_too_large(codeq):
    answer = codeq.call("producer", "POST", "/tasks", {"command": "a", "payload": "x" * (1100 << 10)})
    assert answer.status in (202, 413)  # an engine in memory keeps it
    answer = codeq.call("producer", "POST", "/tasks", {"command": "a", "payload": "x" * (1300 << 10)})
    assert answer.status == 413


def test_trace_and_request_id(codeq):
    """X-15 X-16: the trace of the request is kept on the task."""
    name = command()
    made = codeq.create(command=name, headers={"traceparent": PARENT, "tracestate": "a=1"})
    task = codeq.claim(name)
    codeq.complete(task)
    for seen in (made, task, codeq.task(made)):
        assert (seen["traceParent"], seen["traceState"]) == (PARENT, "a=1")
    answer = codeq.call("producer", "GET", "/raft/status", headers={"X-Request-Id": "mine"})
    assert answer.headers["X-Request-Id"] == "mine" and answer.body == {"enabled": False, "numGroups": 0, "groups": []}
    assert len(codeq.call("producer", "GET", "/raft/status").headers["X-Request-Id"]) == 32


# --- claims -------------------------------------------------------------------------------


def test_a_claim_over_several_commands(codeq):
    """X-07: the first command of the list that has a task."""
    a, b, c = command(), command(), command()
    codeq.create(command=c, payload="c", priority=9)
    codeq.create(command=b, payload="b")
    assert codeq.claim(a, b, c)["command"] == b
    assert codeq.claim(a, b, c)["command"] == c
    assert codeq.claim(a, b, c) is None
    stats = codeq.good("admin", "GET", f"/admin/queues/{c}")
    assert (stats["ready"], stats["inProgress"]) == (0, 1)


def test_a_claim_that_waits_for_any_of_several_commands(codeq):
    """X-07: one wait, one grant, which ends the wait; what came at the same time stays where it was."""
    names = [command() for _ in range(3)]
    got = []
    alone = threading.Thread(target=lambda: got.append(codeq.claim(*names, waitSeconds=30)))
    alone.start()
    until(lambda: waiting(codeq.server) == 3)
    codeq.create(command=names[1], payload="alone")
    alone.join(15)  # the wait itself would be 30 s
    codeq.complete(got.pop())
    worker = threading.Thread(target=lambda: got.append(codeq.claim(*names, waitSeconds=30)))
    worker.start()
    until(lambda: waiting(codeq.server) == 3)
    for name in reversed(names):
        codeq.create(command=name, payload=name)
    worker.join(30)
    rest = {codeq.claim(*names)["command"] for _ in range(2)}
    assert {got[0]["command"]} | rest == set(names) and codeq.claim(*names) is None
    assert got[0]["attempts"] == 1


def test_a_wait_that_ends(codeq):
    assert codeq.claim(command(), command(), waitSeconds=1) is None


def test_claims_without_a_command(codeq):
    answer = codeq.call("worker", "POST", "/tasks/claim", {})
    assert answer.status == 400 and "commands" in answer.body["error"]
    answer = codeq.call("worker", "POST", "/tasks/claim", {"commands": ["x"] * 65})
    assert answer.status == 400


def test_batches_with_partial_success(codeq):
    """X-08: one bad item does not spoil the rest."""
    name, other = command(), command()
    tasks = [{"command": name if i % 2 else other, "payload": i} for i in range(98)]
    tasks[10:10] = [{"command": "bad name", "payload": 1}, {"payload": 2}]
    results = codeq.good("producer", "POST", "/tasks/batch", {"tasks": tasks})["results"]
    assert len(results) == 100 and [i for i, r in enumerate(results) if "error" in r] == [10, 11]
    assert [json.loads(r["task"]["payload"]) for r in results if "task" in r] == list(range(98))
    claimed = []
    for _ in range(9):
        claimed += codeq.good("worker", "POST", "/tasks/claim/batch", {"commands": [name, other], "count": 10})["tasks"]
    assert len({t["id"] for t in claimed}) == 90
    last = codeq.good("worker", "POST", "/tasks/claim/batch", {"commands": [name, other], "count": 10})["tasks"]
    assert len(last) == 8
    assert codeq.call("worker", "POST", "/tasks/claim/batch", {"commands": [name], "count": 10}).status == 204
    body = [{"taskId": t["id"], "status": "COMPLETED", "result": {"n": t["payload"]}} for t in claimed + last]
    body[3]["status"], body[4]["taskId"], body[5] = "MAYBE", str(uuid.uuid4()), {"taskId": "x"}
    results = codeq.good("worker", "POST", "/tasks/batch/results", {"results": body})["results"]
    assert [i for i, r in enumerate(results) if "error" in r] == [3, 4, 5]
    assert results[4]["error"] == "task not found"
    assert all(r["result"]["status"] == "COMPLETED" for i, r in enumerate(results) if i not in (3, 4, 5))
    assert codeq.good("admin", "GET", f"/admin/queues/{name}")["inProgress"] + \
        codeq.good("admin", "GET", f"/admin/queues/{other}")["inProgress"] == 3


@pytest.mark.parametrize("path,name", [("/tasks/batch", "tasks"), ("/tasks/batch/results", "results")])
def test_batches_that_are_malformed(codeq, path, name):
    for body in ({}, {name: []}, {name: [{}] * 101}, {name: 1}, "x"):
        who = "producer" if name == "tasks" else "worker"
        assert codeq.call(who, "POST", path, body).status == 400, body
    for count in (0, 11, None):
        assert codeq.call("worker", "POST", "/tasks/claim/batch", {"commands": ["x"], "count": count}).status == 400


# --- settles ------------------------------------------------------------------------------


def test_heartbeat_abandon_and_nack(codeq):
    name = command()
    codeq.create(command=name, maxAttempts=2)
    codeq.create(command=name, payload="second")
    task = codeq.claim(name)
    assert codeq.settle("heartbeat", task, {"extendSeconds": 600}) == {"ok": True}
    assert codeq.task(task)["leaseUntil"] > task["leaseUntil"]
    assert codeq.settle("abandon", task) == {"status": "requeued"}
    assert codeq.settle("abandon", task, status=409) == {"error": "not-in-progress"}
    assert json.loads(codeq.claim(name)["payload"]) == "second"  # behind its equals
    again = codeq.claim(name)
    assert again["id"] == task["id"]
    nacked = codeq.settle("nack", again, {"delaySeconds": 30, "reason": "busy"})
    assert nacked["status"] == "requeued" and 29 <= nacked["delaySeconds"] <= 30
    seen = codeq.task(task)
    assert (seen["status"], seen["lastKnownLocation"], seen["error"]) == ("PENDING", "DELAYED_ZSET", "busy")
    assert codeq.result(task, status=404) == {"error": "result not found"}


def test_max_attempts_gives_as_many_deliveries(codeq):
    name = command()
    made = codeq.create(command=name, maxAttempts=2)
    ends = []
    for _ in range(2):
        task = None
        while task is None:
            task = codeq.claim(name, waitSeconds=5)
        ends.append(codeq.settle("nack", task, {"delaySeconds": 1, "reason": "no"})["status"])
    assert ends == ["requeued", "dlq"]
    dead = codeq.task(made)
    assert (dead["status"], dead["lastKnownLocation"], dead["error"]) == ("FAILED", "DLQ_SET", "no")
    assert codeq.good("admin", "GET", f"/admin/queues/{name}")["dlq"] == 1
    assert codeq.good("admin", "POST", "/admin/tasks/cleanup", {})["deleted"] == 0  # it died just now
    later = "2100-01-01T00:00:00Z"
    assert codeq.good("admin", "POST", "/admin/tasks/cleanup", {"before": later, "limit": 500}) == {
        "deleted": 1, "before": later, "limit": 500}
    assert codeq.good("producer", "GET", f"/tasks/{made['id']}", status=404)


def test_a_failed_result_ends_the_task(codeq):
    name = command()
    codeq.create(command=name)
    task = codeq.claim(name)
    record = codeq.settle("result", task, {"status": "FAILED", "error": "broken"})
    assert record["status"] == "FAILED" and record["error"] == "broken" and "result" not in record
    assert codeq.result(task)["task"]["error"] == "broken"
    assert codeq.claim(name) is None
    assert codeq.settle("result", task, {"status": "FAILED", "error": "x"}, status=409) == {"error": "not-in-progress"}


def test_results_that_are_malformed(codeq):
    name = command()
    codeq.create(command=name)
    task = codeq.claim(name)
    for body in ({}, {"status": "DONE"}, {"status": "COMPLETED"}, {"status": "COMPLETED", "result": 1},
                 {"status": "FAILED"}, {"status": "COMPLETED", "result": {}, "artifacts": [{"name": "a"}]}):
        assert codeq.call("worker", "POST", f"/tasks/{task['id']}/result", body).status == 400, body
    assert codeq.task(task)["status"] == "IN_PROGRESS"


def test_artifacts(codeq):
    name = command()
    codeq.create(command=name)
    task = codeq.claim(name)
    record = codeq.settle("result", task, {"status": "COMPLETED", "result": {}, "artifacts": [
        {"name": "a", "url": "https://example.com/a"}, {"name": "b", "contentBase64": "aGk=", "contentType": "text/plain"}]})
    assert record["artifacts"] == [{"name": "a", "url": "https://example.com/a"},
                                   {"name": "b", "url": "data:text/plain;base64,aGk="}]
    assert codeq.result(task)["result"]["artifacts"] == record["artifacts"]


def test_waiting_for_a_result(codeq):
    """X-09: returns as soon as the result exists."""
    name = command()
    made = codeq.create(command=name)
    got = []
    waiter = threading.Thread(target=lambda: got.append(codeq.result(made, wait=60)))
    waiter.start()
    time.sleep(0.2)
    codeq.complete(codeq.claim(name), n=1)
    began = time.monotonic()
    waiter.join(60)
    assert got[0]["result"]["result"] == {"n": 1} and time.monotonic() - began < 30
    unfinished = codeq.create(command=name)
    assert codeq.result(unfinished, wait=1, status=404) == {"error": "result not found"}
    assert codeq.call("producer", "GET", f"/tasks/{made['id']}/result", waitSeconds="x").status == 400


# --- topics -------------------------------------------------------------------------------


def topic(codeq, name, body=None, status=200, method="PUT", **query):
    return codeq.good("admin", method, f"/admin/topics/{name}", body, status=status, **query)


def test_topics_are_stored(codeq):
    """X-14: the catalogue."""
    name = command()
    policy = {"priorityTiers": [9, 0, 5], "maxAttempts": 3, "deadLetterTopicRef": "failed-ones", "retentionSeconds": 60,
              "maxConsumers": 4}
    assert topic(codeq, name, method="GET", status=404) == {"error": "topic not found"}
    made = topic(codeq, name, policy, 201)
    assert made == {**policy, "priorityTiers": [0, 5, 9], "version": 1, "name": name, "tenantId": "default",
                    "physicalId": f"default.{name.lower()}"}
    assert topic(codeq, name, policy) == made == topic(codeq, name, method="GET")
    assert topic(codeq, name, {**policy, "maxAttempts": 4})["version"] == 2
    assert codeq.call("admin", "DELETE", f"/admin/topics/{name}").status == 400
    topic(codeq, name, method="DELETE", status=204, deletionPolicy="Delete")
    topic(codeq, name, method="DELETE", status=404, deletionPolicy="Delete")
    assert codeq.server.get("/policy", namespace="default", topic=name).body["max_attempts"] == 5


@pytest.mark.parametrize("body,status", [
    ({"priorityTiers": []}, 422), ({"priorityTiers": [1, 1]}, 422), ({"priorityTiers": [11]}, 422),
    ({"maxAttempts": 0}, 422), ({"maxAttempts": 101}, 422), ({"retentionSeconds": -1}, 422), ({"maxConsumers": 10001}, 422),
    ({"deadLetterTopicRef": "A"}, 422), ({"deadLetterTopicRef": "x" * 64}, 422), ({"deadLetterTopicRef": "same"}, 422),
    ({"unknown": 1}, 400), ([], 400), ({"maxAttempts": "3"}, 400),
])
def test_topics_that_are_malformed(codeq, body, status):
    assert codeq.call("admin", "PUT", "/admin/topics/same", body).status == status


def test_topics_are_enforced(codeq):
    """X-14: maxConsumers, maxAttempts, priorityTiers, retention and dead letters change behaviour."""
    name, letters = command(), f"dead-{uuid.uuid4().hex[:8]}"
    topic(codeq, name, {"maxConsumers": 1, "maxAttempts": 1, "priorityTiers": [0, 9], "deadLetterTopicRef": letters}, 201)
    for _ in range(2):
        codeq.create(command=name)
    refused = codeq.call("producer", "POST", "/tasks", {"command": name, "payload": 1, "priority": 5})
    assert refused.status == 400 and "priorityTiers" in refused.body["error"]
    task = codeq.claim(name)
    assert task["maxAttempts"] == 1 and codeq.claim(name) is None  # one consumer at a time
    assert codeq.settle("nack", task, {"reason": "no"})["status"] == "dlq"
    assert codeq.claim(name)["id"] != task["id"]
    dead = None
    while dead is None:
        dead = codeq.claim(letters, waitSeconds=5)
    assert dead["id"] == task["id"]


def test_the_retention_of_a_topic(codeq):
    """X-14: finished tasks are kept as long as the topic says."""
    name = command()
    topic(codeq, name, {"retentionSeconds": 1}, 201)
    codeq.create(command=name)
    task = codeq.claim(name)
    codeq.complete(task)
    assert codeq.result(task)
    deadline = time.monotonic() + 30
    while codeq.call("producer", "GET", f"/tasks/{task['id']}").status != 404:
        assert time.monotonic() < deadline
        time.sleep(0.1)


# --- the server ---------------------------------------------------------------------------


def test_another_base_path(tmp_path):
    with Server(tmp_path / "data", "--codeq-path", "/queue/v2", engine=QUICK) as server:
        codeq = Codeq(server, "/queue/v2")
        codeq.create(command="mail", payload=1)
        codeq.complete(codeq.claim("mail"))
        assert Codeq(server).call("producer", "POST", "/tasks", {"command": "a", "payload": 1}).status == 404


def test_several_shards_and_a_restart(tmp_path):
    with Server(tmp_path / "data", "--shards", "3", engine=LOG) as server:
        codeq = Codeq(server)
        names = [f"c{i}" for i in range(8)]
        made = {name: codeq.create(command=name, payload=name) for name in names}
        claimed = [codeq.claim(*names, waitSeconds=5) for _ in names]
        assert [t["command"] for t in claimed] == names
        for task in claimed[:4]:
            codeq.complete(task, name=task["command"])
        server.restart()
        for task in claimed[:4]:
            assert codeq.result(task)["result"]["result"] == {"name": task["command"]}
        assert codeq.settle("heartbeat", claimed[4]) == {"ok": True}
        codeq.complete(claimed[5])
        assert codeq.task(made["c5"])["status"] == "COMPLETED"


def test_a_worker_that_hangs_up_costs_no_attempt(codeq):
    """X-07: a wait that nobody hears any more takes nothing."""
    names = [command() for _ in range(2)]
    connection = codeq.server.connect()
    connection.request("POST", "/v1/codeq/tasks/claim", json.dumps({"commands": names, "waitSeconds": 30}))
    until(lambda: waiting(codeq.server) == 2)
    connection.close()
    until(lambda: waiting(codeq.server) == 0)
    codeq.create(command=names[1])
    assert codeq.claim(*names)["attempts"] == 1
