"""Tasks: acts on many messages that the server does by itself, in steps, to the end."""

import pytest

from clustered import Cluster, shards, two
from redis import Redis
from served import ENGINE, Node, Server, on_redis, texts, until

PATH = "/v1/admin/task"


def post(server, action="redrive", queue=None, **more):
    return server.post(PATH, {"namespace": server.namespace, "queue": queue or server.topic, "action": action, **more})


def begun(server, *args, **named):
    answer = post(server, *args, **named)
    assert answer.status == 200, answer
    return answer.body["task"]


def shown(server, task):
    answer = server.get(PATH, namespace=server.namespace, task=task)
    assert answer.status == 200, answer
    return answer.body


def listed(server, **more):
    answer = server.get(PATH + "s", namespace=server.namespace, **more)
    assert answer.status == 200, answer
    return answer.body["tasks"]


def ended(server, task):
    return until(lambda: shown(server, task)["state"] not in ("running", "canceling") and shown(server, task))


def done(server, *args, **named):
    """The task when it has looked at all messages."""
    task = ended(server, begun(server, *args, **named))
    assert task["state"] == "done", task
    return task


def surely(call):
    """Again while a shard has no owner: a server of a store on a busy machine."""
    return until(lambda: (answer := call()).status == 200 and answer)


def kill(server, n, error="no route", topic=None):
    """n dead letters, in order."""
    topic = topic or server.topic
    surely(lambda: server.post("/enqueue", [server.here(text=f"m{i}", topic=topic) for i in range(n)]))
    letters = surely(lambda: server.get("/dequeue", **server.here(limit=n, topic=topic))).body
    for m in letters:
        surely(lambda: server.settle("/nack", m, dead=True, error=error, topic=topic))
    assert len(letters) == n
    return letters


def ready(server, topic):
    return texts(server.peek(topic=topic, limit=1000))


def test_a_redrive_takes_all_dead_letters(server):
    """More than a step takes; the ids stay."""
    letters = kill(server, 250)
    task = done(server)
    assert task["total"] == task["matched"] == task["done"] == 250 and task["refused"] == 0, task
    assert task["filter"] == {"state": "dead"} and task["action"] == "redrive" and task["ended_at"], task
    now = server.stats()
    assert now["ready"] == 250 and now["dead"] == 0
    assert {m["id"] for m in server.peek(limit=1000)} == {m["id"] for m in letters}


def test_a_filter_selects(server):
    kill(server, 3, "timeout of upstream")
    kill(server, 2, "no route")
    task = done(server, error="timeout")
    assert (task["matched"], task["done"], task["looked"]) == (3, 3, 5)
    assert server.stats()["dead"] == 2


def groups(server, **more):
    """Of all pages: how many of each error."""
    found, cursor = {}, {}
    while True:
        page = server.get("/v1/admin/dlq/groups", **server.here(**cursor, **more))
        assert page.status == 200, page
        for g in page.body["groups"]:
            was = found.setdefault(g["group"], {**g, "count": 0})
            was["count"] += g["count"]
        if "cursor" not in page.body:
            return sorted(found.values(), key=lambda g: -g["count"])
        cursor = {"cursor": page.body["cursor"]}


def test_dead_letters_are_grouped_by_their_errors_without_numbers(server):
    """Also over pages; a group selects in lists, redrives and tasks."""
    for n in range(4):
        kill(server, 1, f"timeout after {n * 7} ms on 10.0.0.{n}")
    kill(server, 2, "no route")
    kill(server, 1, "")
    for limit in (1, 3, 1000):
        assert [(g["error"], g["count"]) for g in groups(server, limit=limit)] == \
            [("timeout after # ms on #", 4), ("no route", 2), ("", 1)]
    timeouts, routes, _ = groups(server)
    assert timeouts["hours"] == [0] * 23 + [timeouts["count"]]
    assert timeouts["reason"] == "rejected" and timeouts["sample"] == "timeout after 0 ms on 10.0.0.0"
    assert timeouts["first_at"] < timeouts["last_at"] < routes["first_at"]
    listed = server.get("/v1/admin/dlq", **server.here(group=timeouts["group"])).body["messages"]
    assert [m["error"] for m in listed] == [f"timeout after {n * 7} ms on 10.0.0.{n}" for n in range(4)]
    assert listed[0]["uid"] == timeouts["sample_uid"]
    assert server.post("/v1/admin/dlq/redrive", server.here(group=timeouts["group"], dry_run=True)).body["matched"] == 4
    assert done(server, group=routes["group"])["done"] == 2
    assert [g["count"] for g in groups(server)] == [4, 1]
    wrong = server.get("/v1/admin/dlq/groups", **server.here(group="other"))
    assert wrong.status == 400 and "expected 16 hex digits" in wrong.body["message"], wrong


def test_a_dry_run_changes_nothing(server):
    kill(server, 5)
    task = done(server, dry_run=True)
    assert task["dry_run"] and (task["matched"], task["done"]) == (5, 0)
    assert server.stats()["dead"] == 5


def test_dead_letters_go_to_another_queue(server):
    """TASKER-2: each is at its old place or at its new one."""
    letters = kill(server, 120)
    task = done(server, to="other", rate=1000)
    assert task["done"] == 120 and server.stats()["total"] == 0
    assert sorted(ready(server, "other")) == sorted(f"m{i}" for i in range(120))
    moved = server.peek(topic="other")[0]
    assert moved["id"] not in {m["id"] for m in letters} and moved["failure_attempts"] == 0


def test_waiting_messages_move(server):
    """Without a state: those that are ready, delayed or held, with their due times."""
    kill(server, 1)
    server.enqueue({"text": "now"}, {"text": "later", "delay": 3600, "priority": 2})
    server.enqueue({"text": "leased", "priority": -100})
    leased = server.take()
    assert texts([leased]) == ["leased"]
    task = done(server, "move", to="other")
    assert (task["matched"], task["done"]) == (2, 2)
    there = server.stats(topic="other")
    assert (there["ready"], there["delayed"]) == (1, 1)
    here = server.stats()
    assert (here["leased"], here["dead"], here["total"]) == (1, 1, 2)


def test_letters_go_back_to_the_queue_that_they_died_in(server):
    for topic in ("one", "two"):
        assert server.call("PUT", "/policy", {"dead_letter_queue": "letters"}, **server.here(topic=topic)).status == 200
        server.enqueue({"text": topic, "topic": topic})
        server.settle("/nack", server.take(topic=topic), dead=True, error="no route", topic=topic)
    server.enqueue({"text": "own", "topic": "letters"})
    until(lambda: server.stats(topic="letters")["ready"] == 3)
    task = done(server, "move", "letters", to_source=True, state="ready")
    assert (task["matched"], task["done"], task["refused"]) == (3, 2, 1)
    assert "did not die in another queue" in task["error"], task
    until(lambda: ready(server, "one") == ["one"] and ready(server, "two") == ["two"])
    assert ready(server, "letters") == ["own"]
    assert "dead_letter_of" not in server.peek(topic="one")[0]


def test_priorities_change_once(server):
    """A message that has the priority already is left as it is, also one that the task has made."""
    server.enqueue({"text": "a"}, {"text": "b", "attributes": {"customer": "acme"}}, {"text": "c", "priority": 0})
    task = done(server, "priority", priority="high", attribute="customer=acme")
    assert (task["matched"], task["done"], task["priority"]) == (1, 1, 0)
    assert {m["text"]: m["priority"] for m in server.peek(limit=10, **{"as": "text"})} == {"a": 5, "b": 0, "c": 0}


def test_delayed_messages_are_due_now(server):
    """TASK-2: not one with a key, whose order could change."""
    server.enqueue(*({"text": f"{n}", "delay": 3600} for n in range(120)), {"text": "keyed", "delay": 3600, "key": "k"})
    task = done(server, "run", dry_run=True)
    assert (task["matched"], task["refused"], task["done"]) == (121, 1, 0), task
    assert server.stats()["delayed"] == 121
    task = done(server, "run")
    assert (task["matched"], task["refused"], task["done"]) == (121, 1, 120), task
    assert task["filter"] == {"state": "delayed"} and "has the key k, and the order of that key would change" in task["error"], task
    assert (server.stats()["ready"], server.stats()["delayed"]) == (120, 1)


def test_messages_that_wait_are_delayed_once(server):
    """They keep their ids; one that is due at that moment already is left as it is, and one in the order of its key."""
    ids = server.enqueue({"text": "a"}, {"text": "b", "delay": 60}, {"text": "c", "key": "k"}, {"text": "d", "attributes": {"for": "later"}})
    task = done(server, "delay", delay="2h", attribute="for=later")
    assert (task["matched"], task["done"], task["refused"]) == (1, 1, 0), task
    task = done(server, "delay", until=task["until"])
    assert (task["matched"], task["done"], task["refused"]) == (3, 2, 1), task
    assert "has the key k, and the order of that key would change" in task["error"], task
    assert texts(server.dequeue(limit=10)) == ["c"]
    for n in (0, 1, 3):
        assert server.get("/v1/admin/message", **server.here(id=ids[n])).body["next_delivery"] == task["until"]


def test_a_task_that_has_not_started_leaves_everything_as_it_is(server):
    """TASK-4"""
    kill(server, 3)
    task = begun(server, start_in="10m")
    now = until(lambda: listed(server)[0])
    assert now["start_at"] > now["created_at"] and now["done"] == 0 and now["state"] == "running", now
    assert server.post(PATH + "/cancel", {"namespace": server.namespace, "task": task}).status == 200
    last = ended(server, task)
    assert (last["state"], last["done"], last["looked"]) == ("canceled", 0, 0) and server.stats()["dead"] == 3, last
    last = ended(server, begun(server, start_in="300ms"))
    assert last["ended_at"] >= last["start_at"] and last["done"] == 3, last


def test_messages_are_deleted(server):
    kill(server, 2)
    server.enqueue(*({"text": f"w{i}"} for i in range(5)))
    task = done(server, "delete")
    assert task["done"] == 5 and server.stats()["dead"] == 2
    assert done(server, "delete", state="dead")["done"] == 2
    assert server.stats()["total"] == 0


def test_what_would_change_the_order_of_a_key_is_refused(server):
    """TASK-2: by name."""
    server.enqueue({"text": "1", "key": "k"}, {"text": "2", "key": "k"}, {"text": "3"})
    task = done(server, "move", to="other")
    assert task["refused"] == 2 and "has the key k, and the order of that key would change" in task["error"], task
    assert task["matched"] - task["refused"] == task["done"] == 1
    task = done(server, "priority", priority=-3)
    assert (task["refused"], task["done"]) == (0, 2), task
    assert texts(server.dequeue(limit=10)) == ["1"]


def test_a_unique_message_keeps_its_key(server):
    """TERMS-1: a task leaves it."""
    unique = {"text": "u", "unique": {"key": "k", "until": "done"}}
    first = server.enqueue(unique)
    task = done(server, "move", to="other")
    assert (task["refused"], task["done"]) == (1, 0) and "is unique, and would lose its key" in task["error"], task
    task = done(server, "priority", priority=-3)
    assert (task["refused"], task["done"]) == (0, 1), task
    assert server.enqueue(unique) == first


def test_what_arrives_later_is_not_of_the_task(server):
    """TASK-1: a letter that dies again is not redriven again."""
    kill(server, 30)
    task = begun(server, rate=20)
    again = 0
    while (now := shown(server, task))["state"] == "running":
        assert now["done"] <= 30, now
        for m in server.dequeue(limit=10):
            server.settle("/nack", m, dead=True)
            again += 1
    last = shown(server, task)
    assert last["done"] == 30 and again > 0, last
    for m in server.dequeue(limit=100):
        server.settle("/nack", m, dead=True)
    assert server.stats()["dead"] == 30 and ended(server, task)["done"] == 30


def test_a_rate_is_kept_and_a_cancel_ends(server):
    """A step takes a quarter of a second, so a task of 20 a second takes at most 5 at once."""
    kill(server, 100)
    task = begun(server, rate=20)
    until(lambda: shown(server, task)["done"] > 0)
    answer = server.post(PATH + "/cancel", {"namespace": server.namespace, "task": task})
    assert answer.status == 200 and answer.body["state"] in ("canceling", "canceled"), answer
    last = ended(server, task)
    assert last["state"] == "canceled" and 0 < last["done"] < 100, last
    assert server.stats()["ready"] == last["done"] and server.stats()["dead"] == 100 - last["done"]
    answer = server.post(PATH + "/cancel", {"namespace": server.namespace, "task": task})
    assert answer.status == 200 and answer.body == last


def test_a_task_stops_if_its_queue_fails(server):
    kill(server, 60)
    task = begun(server, rate=20, stop_if_failing=3)
    while shown(server, task)["state"] == "running":
        for m in server.dequeue(limit=1):
            server.settle("/nack", m, dead=True)
    last = shown(server, task)
    assert last["state"] == "stopped" and last["failures"] >= 3 and last["done"] < 60, last
    assert f"deliveries of queue {server.topic} have failed" in last["error"]


def test_a_full_queue_makes_a_task_wait(server):
    """TASKER-3"""
    kill(server, 3)
    assert server.call("PUT", "/policy", {"max_depth": 1}, **server.here(topic="small")).status == 200
    task = begun(server, to="small")
    until(lambda: shown(server, task)["done"] == 1 and shown(server, task).get("error"))
    assert shown(server, task)["state"] == "running"
    for n in range(2):
        server.settle("/ack", server.take(topic="small", wait=20), topic="small")
    last = ended(server, task)
    assert (last["state"], last["done"]) == ("done", 3) and "error" not in last, last


def test_tasks_are_listed_newest_first(server):
    kill(server, 1)
    tasks = [done(server, dry_run=True)["task"] for _ in range(3)]
    server.enqueue({"text": "x", "topic": "other"})
    other = done(server, "delete", "other")["task"]
    assert [t["task"] for t in listed(server)] == [other, *reversed(tasks)]
    assert [t["task"] for t in listed(server, queue="other")] == [other]
    assert ".tasks" not in str(server.get("/v1/admin/queues").body)


@pytest.mark.parametrize("action, more, says", [
    ("explode", {}, "invalid action: \"explode\"; expected redrive, move, delete, priority, run or delay"),
    ("move", {}, "expected to, the name of a queue, or to_source"),
    ("move", {"to": "a", "to_source": True}, "expected to, the name of a queue, or to_source"),
    ("move", {"to": "work"}, "expected another queue"),
    ("delete", {"to": "a"}, "delete has no target"),
    ("redrive", {"state": "ready"}, "expected dead"),
    ("redrive", {"to_source": True}, "expected the action move"),
    ("delete", {"state": "leased"}, "expected ready, delayed, held or dead"),
    ("priority", {}, "priority: expected with the action priority"),
    ("delete", {"priority": 1}, "priority: expected with the action priority"),
    ("priority", {"priority": 1, "state": "dead"}, "invalid state: dead"),
    ("run", {"state": "ready"}, "invalid state: ready; expected delayed"),
    ("run", {"delay": "1m"}, "expected delay or until with the action delay"),
    ("delay", {}, "expected delay or until with the action delay"),
    ("delay", {"delay": "1m", "until": "2027-01-01T00:00:00Z"}, "expected delay or until with the action delay"),
    ("delay", {"delay": "1m", "state": "dead"}, "invalid state: dead"),
    ("redrive", {"reason": "boredom"}, "reason"),
    ("redrive", {"rate": -1}, "rate"),
    ("redrive", {"colour": "red"}, "colour"),
])
def test_what_is_refused(server, action, more, says):
    server.enqueue({"text": "x", "topic": "work"})
    answer = post(server, action, "work", **more)
    assert answer.status == 400 and says in answer.body["message"], answer
    assert listed(server) == []


def test_what_does_not_exist(server):
    answer = post(server, queue="nowhere")
    assert answer.status == 404 and f"namespace {server.namespace} has no queue nowhere" in answer.body["message"], answer
    answer = server.get(PATH, namespace=server.namespace, task=17)
    assert answer.status == 404 and "has no task 17" in answer.body["message"], answer
    answer = server.post(PATH + "/cancel", {"namespace": server.namespace, "task": 17})
    assert answer.status == 404, answer


def test_a_namespace_has_a_bounded_number_of_tasks(server):
    """TASKS-1: those that have ended make room."""
    if ENGINE == "memory":
        kill(server, 1)
        tasks = [begun(server, rate=1) for _ in range(230)]
        until(lambda: len(listed(server)) <= 100)
        assert listed(server)[0]["task"] == tasks[-1]
    server.enqueue({"text": "x", "delay": 3600})
    waits = [begun(server, "delete", rate=1, older_than="1h") for _ in range(3)]
    for task in waits:
        assert ended(server, task)["matched"] == 0


@pytest.mark.skipif(ENGINE != "memory", reason="the same on every engine, and 200 tasks take a while")
def test_too_many_tasks_are_refused(server):
    """TASKS-1: they wait for room in a queue; when there is room, all come to their end."""
    kill(server, 1)
    assert server.call("PUT", "/policy", {"max_depth": 1}, **server.here(topic="small")).status == 200
    server.enqueue({"text": "x", "topic": "small"})
    tasks = [begun(server, to="small") for _ in range(200)]
    answer = post(server, to="small")
    assert answer.status == 429 and answer.body["limit"] == "tasks" and "more than 200 tasks" in answer.body["message"], answer
    server.settle("/ack", server.take(topic="small"), topic="small")
    until(lambda: ready(server, "small") == ["m0"])
    until(lambda: all(t["state"] == "done" for t in listed(server)))
    until(lambda: post(server, to="small").status == 200)
    assert len(tasks) == 200 >= len(listed(server))


@pytest.mark.skipif(ENGINE == "memory", reason="forgets")
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_restart_goes_on(folder, how):
    """TASK-3: no message twice, none left out."""
    with Server(folder) as server:
        kill(server, 200)
        task = begun(server, to="other", rate=100)
        until(lambda: server.stats()["dead"] < 150)
        server.restart(how)
        last = ended(server, task)
        assert last["state"] == "done" and last["done"] <= 200, last
        assert how == "kill" or last["done"] == 200, last
        assert sorted(ready(server, "other")) == sorted(f"m{i}" for i in range(200))


@pytest.mark.skipif(ENGINE == "forwarded", reason="the metrics are the owner's")
def test_metrics(folder):
    with Server(folder) as server:
        kill(server, 3)
        server.enqueue({"text": "1", "key": "k"})
        done(server)
        done(server, "move", to="other", key="k")
        until(lambda: server.metric("sluice_tasks_ended_total") == 2)
        until(lambda: server.metric("sluice_tasks_running") == 0)
        assert server.metric("sluice_task_messages_total") == 3
        assert server.metric("sluice_task_refusals_total") == 1
        assert server.metric("sluice_task_failures_total") == 0


def sharded(*rules):
    return ("sharding: {enabled: true, commandMappings: {%s}}\n"
            "shards: {red: {engine: memory}, blue: {engine: memory}, green: {engine: memory}}\n" % ", ".join(rules))


def test_queues_on_other_shards(tmp_path):
    """The task on one, its queue on another one, its target on a third: by the outbox."""
    with Node(tmp_path, sharded(".tasks: red", "mail: blue", "other: green")) as server:
        kill(server, 40, topic="mail")
        task = done(server, queue="mail", to="other")
        assert task["done"] == 40
        until(lambda: sorted(ready(server, "other")) == sorted(f"m{i}" for i in range(40)))
        assert server.stats(topic="mail")["total"] == 0


def test_redis_refuses(tmp_path):
    with Redis(tmp_path / "own") as redis, on_redis(tmp_path, redis.address) as start:
        server = start()
        server.enqueue({"text": "x"})
        answer = post(server)
        assert answer.status == 400 and "no tasks; place the queue .tasks of the namespace on a shard with engine log" in \
            answer.body["message"], answer


def test_any_server_of_a_store_begins_and_the_owner_works(tmp_path):
    with two(tmp_path) as (owner, entry):
        kill(entry, 30)
        task = done(entry, to="other")
        assert task["done"] == 30 and shown(owner, task["task"]) == task
        assert owner.metric("sluice_task_messages_total") == 30
        assert entry.metric("sluice_task_messages_total") == 0


def at(server, task):
    """The task; None: its shard has no owner now."""
    answer = server.get(PATH, namespace=server.namespace, task=task)
    return answer.body if answer.status == 200 else None


def test_a_takeover_goes_on(tmp_path):
    """TASKER-4"""
    with Cluster(tmp_path, 2, lease="4s") as cluster:
        cluster.settle()
        one, other = cluster.nodes
        for n in range(4):
            kill(one, 40, topic=f"q{n}")
        tasks = [until(lambda: post(one, queue=f"q{n}", to=f"to{n}", rate=20).body.get("task")) for n in range(4)]
        until(lambda: all((at(one, task) or {"done": 0})["done"] > 0 for task in tasks))
        one.kill()
        until(lambda: shards(other)[0] == cluster.shards)
        for n, task in enumerate(tasks):
            until(lambda: (at(other, task) or {}).get("state") == "done")
            until(lambda: sorted(ready(other, f"to{n}")) == sorted(f"m{i}" for i in range(40)))
