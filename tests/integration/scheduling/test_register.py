"""The register of workers: consumers that say who they are, and what an operator asks of them (docs/api.md)."""
import json
import os
import subprocess

import pytest

from served import QUICK, Server, until

SLUICE = os.environ.get("SLUICE", "")


def beat(server, name="w-1", path="/worker", more="slots=4; used=1; lost=2", body=None, method="POST", **params):
    body = body if body is not None or method == "GET" else {"namespace": server.namespace, "queue": server.topic}
    answer = server.call(method, path, body, {"Sluice-Worker": f"name={name}; {more}"}, **params)
    assert answer.status == 200, answer
    return answer


def workers(server, **more):
    answer = server.get("/v1/admin/workers", namespace=server.namespace, **more)
    assert answer.status == 200, answer
    return answer.body["workers"]


def ask(server, verb, name="w-1"):
    return server.post(f"/v1/admin/worker/{verb}", {"namespace": server.namespace, "worker": name})


def test_a_beat_is_listed(server):
    assert beat(server, more="host=web-7; version=1.4; slots=4; used=1; lost=2").body == {"state": "running"}
    found, = workers(server)
    assert found.pop("since") == found.pop("last_beat")
    assert found == {"namespace": server.namespace, "worker": "w-1", "state": "running", "host": "web-7", "version": "1.4",
                     "queues": [server.topic], "slots": 4, "used": 1, "lost_leases": 2, "late_renewals": 0, "crashes": 0}
    assert workers(server, queue="none") == []


def test_calls_of_a_worker_are_beats_and_say_what_it_is_asked(server):
    """Both dialects: a claim that waited tells what was asked meanwhile."""
    server.enqueue({"text": "a"}, {"text": "b"})
    answer = beat(server, path="/dequeue", method="GET", **server.here())
    assert answer.headers["Sluice-Worker"] == "running" and len(answer.body) == 2
    assert workers(server)[0]["queues"] == [server.topic]
    assert ask(server, "quiet").body["state"] == "quiet"
    one = answer.body[0]
    extended = beat(server, path="/extend", body={"receipt": one["receipt"]})
    assert extended.headers["Sluice-Worker"] == "quiet"
    claimed = server.call("POST", "/v1/queue/dequeue", {"namespace": server.namespace, "queue": server.topic, "owner": "w-1",
                                                        "wait_seconds": -1}, {"Sluice-Worker": "name=w-1"})
    assert claimed.headers["Sluice-Worker"] == "quiet"
    assert beat(server).body == {"state": "quiet"}
    assert ask(server, "resume").status == 200 and beat(server).body == {"state": "running"}
    assert "Sluice-Worker" not in server.get("/dequeue", **server.here()).headers


def test_another_instance_is_not_asked_what_the_one_before_was(server):
    beat(server, more="instance=a")
    assert ask(server, "stop").status == 200
    assert beat(server, more="instance=a").body == {"state": "stop"}
    assert beat(server, more="instance=b").body == {"state": "running"}


def test_a_process_that_ends_with_messages_has_crashed_unless_it_says_that_it_ends(server):
    beat(server, more="instance=a; used=0; late=3")
    assert workers(server)[0]["late_renewals"] == 3
    beat(server, more="instance=b; used=2")
    assert workers(server)[0]["crashes"] == 0, "it had none"
    beat(server, more="instance=c; used=2")
    found, = workers(server)
    assert found["crashes"] == 1 and found["crashed_at"] == found["since"]
    beat(server, more="used=0")  # a call without an instance
    beat(server, more="instance=d; used=1")
    assert workers(server)[0]["crashes"] == 1
    beat(server, more="instance=other; ends=1")
    assert len(workers(server)) == 1, "another process ends, and this one goes on"
    beat(server, more="instance=d; used=1; ends=1")
    assert workers(server) == []
    beat(server, more="instance=e; used=1")
    assert workers(server)[0]["crashes"] == 0


def test_the_version_of_a_worker_is_with_its_attempts_and_in_the_groups_of_dead_letters(server):
    server.policy(max_attempts=1)
    server.enqueue({"text": "a"}, {"text": "b"}, {"text": "c"}, {"text": "d"})
    beat(server, "beats", more="version=1.4")  # then it claims without the field
    one, = server.dequeue(limit=1, owner="beats")
    two, = beat(server, "says", path="/dequeue", method="GET", more="version=1.5", **server.here(owner="says", limit=1)).body
    three, four = server.dequeue(limit=1, owner="silent") + server.dequeue(limit=1)
    assert server.get("/v1/admin/messages", **server.here(state="leased", owner="beats")).body["messages"][0]["owner"] == "beats"
    assert "leased by beats until" in server.get("/why", **server.here(id=one["id"])).body["text"]
    for message in one, two, three, four:
        server.nack(message, error="no route")
    attempt, = server.get("/v1/admin/message", **server.here(id=one["id"])).body["attempts_log"]
    assert (attempt["owner"], attempt["version"]) == ("beats", "1.4")
    assert "version" not in server.get("/v1/admin/message", **server.here(id=three["id"])).body["attempts_log"][0]
    group, = server.get("/v1/admin/dlq/groups", **server.here()).body["groups"]
    assert group["count"] == 4 and group["versions"] == [{"version": "1.4", "count": 1}, {"version": "1.5", "count": 1}]


def crew(server, topic):
    found = {q["queue"]: q for q in server.get("/v1/admin/queues", namespace=server.namespace).body["queues"]}[topic]
    assert found["consumers"] == server.get("/v1/admin/queue", **server.here(topic=topic)).body["consumers"]
    return found["consumers"], found.get("slots"), found.get("slots_used")


def test_a_list_of_queues_has_the_workers_of_each(server):
    for topic in "x", "y":
        server.enqueue({"text": "a"}, topic=topic)
    to = lambda topic: {"namespace": server.namespace, "queue": topic}
    assert crew(server, "x") == (0, None, None)
    beat(server, "one", more="instance=a; slots=4; used=1", body=to("x"))
    beat(server, "two", more="slots=2; used=2", body=to("x"))
    beat(server, "two", more="slots=2; used=1", body=to("y"))
    assert crew(server, "x") == (2, 6, 2) and crew(server, "y") == (1, 2, 1)
    beat(server, "one", more="instance=b; slots=4; used=0", body=to("y"))
    assert crew(server, "x") == (1, 2, 1) and crew(server, "y") == (2, 6, 1)
    beat(server, "one", more="instance=b; ends=1", body=to("y"))
    assert crew(server, "y") == (1, 2, 1)


def test_an_unknown_worker_and_a_bad_field_are_refused(server):
    assert ask(server, "quiet", "nobody").status == 404
    bad = server.call("POST", "/worker", {"namespace": server.namespace}, {"Sluice-Worker": "slots=x"})
    assert bad.status == 400 and "slots" in bad.text
    assert server.call("GET", "/dequeue", None, {"Sluice-Worker": "slots=1"}, **server.here()).status == 400
    assert server.post("/worker", {"namespace": server.namespace}).status == 400


def test_pages_have_every_worker_once(server):
    for n in range(25):
        beat(server, f"page-{n}")
    seen, cursor = [], None
    while cursor != "end":
        answer = server.get("/v1/admin/workers", namespace=server.namespace, limit=10, **({"cursor": cursor} if cursor else {}))
        seen += [w["worker"] for w in answer.body["workers"]]
        cursor = answer.body.get("cursor", "end")
    assert sorted(seen) == sorted(f"page-{n}" for n in range(25))


def test_what_is_asked_is_in_the_audit(tmp_path):
    with Server(tmp_path / "data", "--audit-file", str(tmp_path / "audit"), engine=QUICK) as server:
        beat(server)
        ask(server, "stop")
        line = until(lambda: [json.loads(text) for text in (tmp_path / "audit").read_text().splitlines()
                              if "worker_stop" in text])[0]
        assert line["worker"] == "w-1" and line["namespace"] == server.namespace and line["outcome"] == "ok"


@pytest.fixture
def work(server, tmp_path):
    """`sluice work` with quick beats, whose command writes what it got."""
    out = tmp_path / "out"
    process = subprocess.Popen(
        [SLUICE, "work", server.topic, "-n", server.namespace, "--server", "http://%s:%d" % server.address, "--beat", "50ms",
         "--owner", "worker-1", "-c", "2", "--", "sh", "-c", f"cat >>{out}; echo >>{out}"], stderr=subprocess.PIPE, text=True)
    until(lambda: workers(server))
    yield process, lambda: out.read_text().split() if out.exists() else []
    process.kill()
    process.wait()


@pytest.mark.skipif(not SLUICE, reason="no sluice")
def test_sluice_work_is_quiet_goes_on_and_stops(server, work):
    process, done = work
    server.enqueue({"text": "one"})
    until(lambda: done() == ["one"])
    ask(server, "quiet", "worker-1")
    assert "quiet" in process.stderr.readline()
    server.enqueue({"text": "two"})
    until(lambda: server.stats()["ready"] == 1)
    beats = workers(server)[0]["last_beat"]
    until(lambda: workers(server)[0]["last_beat"] != beats)
    assert done() == ["one"] and server.stats()["ready"] == 1
    ask(server, "resume", "worker-1")
    until(lambda: done() == ["one", "two"])
    found, = workers(server)
    assert found["queues"] == [server.topic] and found["slots"] == 2
    ask(server, "stop", "worker-1")
    assert process.wait(20) == 0
    assert workers(server) == [], "it has said that it ends"
