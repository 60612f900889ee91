"""Schedules: set, list, show, pause, resume, run, delete; every tick fires once."""
import collections
import datetime

import pytest

from clustered import Cluster, shards, two
from redis import Redis
from served import ENGINE, Node, Server, on_redis, texts, until

PATH = "/v1/admin/schedule"


def put(server, name="tick", when="@every 1s", topic="mail", message=None, **more):
    body = {"namespace": server.namespace, "name": name, "when": when,
            "message": {"queue": topic, "text": name, **(message or {})}, **more}
    return server.call("PUT", PATH, body)


def made(server, *args, **named):
    answer = put(server, *args, **named)
    assert answer.status == 200, answer
    return answer.body


def shown(server, name="tick"):
    answer = server.get(PATH, namespace=server.namespace, name=name)
    assert answer.status == 200, answer
    return answer.body


def verb(server, what, name="tick"):
    return server.post(f"{PATH}/{what}", {"namespace": server.namespace, "name": name})


def ticks(server, topic="mail"):
    """The ticks of the messages of a queue, by their idempotency keys."""
    found = server.get("/v1/admin/messages", **server.here(topic=topic, limit=1000))
    if found.status == 404:
        return []
    keys = [server.get("/v1/admin/message", **server.here(topic=topic, id=m["id"])).body.get("idempotency_key")
            for m in found.body["messages"]]
    return sorted(key.split(":", 2)[2] for key in keys if key)


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def is_each_once(server, topic="mail"):
    found = collections.Counter(ticks(server, topic))
    assert set(found.values()) <= {1}, found
    return len(found)


def test_an_interval_fires_at_every_tick(server):
    """A schedule begins messages without a client, one for each tick."""
    schedule = made(server, message={"priority": 1, "attributes": {"a": 1}})
    assert len(schedule["next"]) == 5 and schedule["zone"] == "UTC" and schedule["missed"] == "one"
    until(lambda: shown(server)["firings"] >= 3)
    first = server.take()
    assert first["priority"] == 1 and first["attributes"] == {"a": 1} and texts([first]) == ["tick"]
    verb(server, "pause")
    now = shown(server)
    assert is_each_once(server) == now["firings"] and now["next"] == []
    seen = [moment(event["tick"]) for event in reversed(now["last"])]
    assert len(seen) == now["firings"] and [e["outcome"] for e in now["last"]] == ["fired"] * len(seen)
    assert all(b - a >= datetime.timedelta(seconds=1) for a, b in zip(seen, seen[1:]))
    assert {e["id"] for e in now["last"]} >= {first["id"]}


def test_the_next_ticks_follow_the_zone(server):
    """9 in Berlin is 8 in UTC in winter and 7 in summer."""
    assert made(server, when="0 9 * * *", zone="Europe/Berlin")["next"][0][11:] in ("07:00:00Z", "08:00:00Z")
    assert len({tick[11:] for tick in made(server, when="0 9 1 1,7 *", zone="Europe/Berlin")["next"]}) == 2


@pytest.mark.parametrize("more, says", [
    ({"when": "@every 500ms"}, "interval below 1s"),
    ({"when": "61 * * * *"}, "minute"),
    ({"zone": "Mars/Base"}, "invalid zone: Mars/Base; expected a time zone of this machine"),
    ({"zone": "../../etc/passwd"}, "zone"),
    ({"missed": "all:0"}, "invalid missed: all:0; expected skip, one, or all:N"),
    ({"missed": "many"}, "invalid missed: many"),
    ({"overlap": "queue"}, "invalid overlap: queue; expected allow or skip"),
    ({"jitter": "2s"}, "invalid jitter; expected less than the interval"),
    ({"message": {"idempotency_key": "x"}}, "message: a schedule gives each message its idempotency_key"),
    ({"message": {"deliver_after": "2030-01-01T00:00:00Z"}}, "expected delay"),
    ({"message": {"namespace": "other"}}, "namespace"),
    ({"message": {"colour": "red"}}, "colour"),
    ({"topic": "a/b"}, "message: "),
    ({"name": ".locks"}, "name"),
    ({"colour": "red"}, "colour"),
])
def test_what_is_refused(server, more, says):
    answer = put(server, **more)
    assert answer.status == 400 and says in answer.body["message"], answer
    assert server.get("/v1/admin/schedules", namespace=server.namespace).body == {"schedules": []}


def test_a_schedule_that_does_not_exist(server):
    for what in ("delete", "pause", "resume", "run"):
        answer = verb(server, what, "other")
        assert answer.status == 404 and answer.body["message"] == f"namespace {server.namespace} has no schedule other", answer


def test_a_pause_passes_over_ticks(server):
    made(server)
    assert verb(server, "pause").body["paused"]
    before = shown(server)
    made(server, "other", topic="other")
    until(lambda: shown(server, "other")["firings"] >= 2)
    assert shown(server) == before
    after = verb(server, "resume").body
    assert after["next"] and after["missed_ticks"] == before["missed_ticks"]
    until(lambda: shown(server)["firings"] > before["firings"])
    assert shown(server)["missed_ticks"] == before["missed_ticks"]


def test_run_now_begins_a_message_and_changes_no_tick(server):
    schedule = made(server, when="@daily", paused=True)
    assert schedule["paused"] and schedule["next"] == []
    answer = verb(server, "run")
    assert answer.status == 200, answer
    assert server.take()["id"] == answer.body["id"]
    event, = shown(server)["last"]
    named = None if ENGINE == "forwarded" else answer.body["id"]  # the owner gives ids: docs/cluster.md
    assert event["outcome"] == "run" and event.get("id") == named and shown(server)["firings"] == 0


def test_a_tick_is_passed_over_while_the_message_before_runs(server):
    """`overlap: skip`: the last firing runs while its message is neither gone nor dead."""
    made(server, overlap="skip")
    first = server.take(wait=20, lease="1m")
    until(lambda: shown(server)["overlaps"] >= 2)
    assert server.stats()["total"] == 1 and shown(server)["last"][0]["outcome"] == "overlap"
    server.ack(first)
    second = server.take(wait=20, lease="1m")
    server.settle("/nack", second, dead=True)
    assert server.take(wait=20)["id"] not in (first["id"], second["id"])


def test_set_again_keeps_what_has_happened(server):
    made(server)
    until(lambda: shown(server)["firings"] >= 1)
    verb(server, "pause")
    before = shown(server)
    changed = made(server, topic="other")
    assert changed["paused"] and changed["firings"] == before["firings"] and changed["message"]["queue"] == "other"
    assert not made(server, topic="other", paused=False)["paused"]
    until(lambda: is_each_once(server, "other") >= 1)


def test_a_list_has_pages(server):
    for n in range(5):
        made(server, f"s{n}", when="@daily")
    made(server, "s2", when="@hourly")
    found, cursor = [], None
    while True:
        page = server.get("/v1/admin/schedules", namespace=server.namespace, limit=2,
                          **({"cursor": cursor} if cursor else {})).body
        found += page["schedules"]
        cursor = page.get("cursor")
        if not cursor:
            break
    assert {s["name"]: s["when"] for s in found} == {"s0": "@daily", "s1": "@daily", "s2": "@hourly", "s3": "@daily",
                                                     "s4": "@daily"}
    assert all(s["next_at"] for s in found)
    assert server.get("/v1/admin/queues", namespace=server.namespace).body["queues"] == []  # a reserved queue is not listed
    assert verb(server, "delete", "s2").body["deleted"]
    assert server.get(PATH, namespace=server.namespace, name="s2").status == 404


def test_namespaces_are_apart(server):
    made(server)
    assert server.get(PATH, namespace="other", name="tick").status == 404
    assert server.get("/v1/admin/schedules", namespace="other").body == {"schedules": []}


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_restart_fires_each_tick_once(folder, how):
    with Server(folder, engine="log") as server:
        made(server, missed="all:100")
        for _ in range(3):
            before = shown(server)["firings"]
            until(lambda: shown(server)["firings"] > before)
            server.restart(how)
        verb(server, "pause")
        now = shown(server)
        assert is_each_once(server) == now["firings"] and now["missed_ticks"] == 0
        seen = ticks(server)
        span = moment(seen[-1]) - moment(seen[0])
        assert span == datetime.timedelta(seconds=len(seen) - 1), "with all:100 no tick is left out"


def test_a_queue_that_is_full_is_tried_again(folder):
    """SCHEDULER-3: the tick fires when there is room."""
    with Server(folder) as server:
        assert server.call("PUT", "/policy", {"max_depth": 1}, **server.here()).status == 200
        server.enqueue({"text": "first"})
        made(server, overlap="skip")
        until(lambda: server.metric("sluice_schedule_failures_total") >= 4)  # more than the reloads of a minute
        assert shown(server)["firings"] == 0
        server.ack(server.take())
        until(lambda: shown(server)["firings"] == 1)
        until(lambda: server.metric("sluice_schedule_overlaps_total") >= 1)
        assert server.metric("sluice_schedule_missed_total") >= 1
        assert server.metric("sluice_schedule_firings_total") == 1
        assert server.metric("sluice_schedules") == 1


def sharded(*rules):
    return ("sharding: {enabled: true, commandMappings: {%s}}\n"
            "shards: {red: {engine: memory}, blue: {engine: memory}}\n" % ", ".join(rules))


def test_a_message_on_another_shard(tmp_path):
    """SCHEDULER-2: by an idempotency key of name and tick."""
    with Node(tmp_path, sharded(".schedules: red", "mail: blue")) as server:
        made(server)
        until(lambda: shown(server)["firings"] >= 2)
        verb(server, "pause")
        now = shown(server)
        assert is_each_once(server) - now["firings"] in (0, 1)  # a pause between the two steps
        assert {e["id"] for e in now["last"]} <= {m["id"] for m in server.peek(limit=100)}
        run = verb(server, "run")
        assert run.status == 200 and shown(server)["last"][0]["outcome"] == "run"
        assert run.body["id"] in {m["id"] for m in server.peek(limit=100)}


def test_schedules_move_with_their_queue(tmp_path):
    with Node(tmp_path, sharded(".schedules: red", "mail: red")) as server:
        made(server, missed="all:100")
        until(lambda: shown(server)["firings"] >= 1)
        server.reload(sharded(".schedules: blue", "mail: red").replace("enabled: true", "enabled: true, version: 2"))
        def moved():
            answer = server.post("/v1/admin/shards/move", {"command": ".schedules", "from": "red", "to": "blue"})
            return answer.status == 200 and answer.body["done"]
        until(moved)
        before = shown(server)["firings"]
        until(lambda: shown(server)["firings"] > before)
        verb(server, "pause")
        assert is_each_once(server) - shown(server)["firings"] in (0, 1)


def test_redis_refuses(tmp_path):
    with Redis(tmp_path / "own") as redis, on_redis(tmp_path, redis.address) as start:
        answer = put(start())
        assert answer.status == 400 and "engine redis has no schedules" in answer.body["message"], answer


def test_any_server_of_a_store_sets_and_the_owner_fires(tmp_path):
    with two(tmp_path) as (owner, entry):
        made(entry)
        until(lambda: shown(entry)["firings"] >= 2)
        until(lambda: owner.metric("sluice_schedule_firings_total") >= 2)
        assert entry.metric("sluice_schedule_firings_total") == 0
        assert verb(entry, "run").status == 200
        verb(entry, "pause")
        assert is_each_once(entry) - shown(owner)["firings"] in (0, 1)


def fired(server, n):
    """How often schedule n has fired; -1: its shard has no owner now."""
    answer = server.get(PATH, namespace=server.namespace, name=f"s{n}")
    return answer.body["firings"] if answer.status == 200 else -1


def test_a_takeover_fires_each_tick_once(tmp_path):
    """A message on another shard may have begun when the pause came before its tick was stored."""
    with Cluster(tmp_path, 2) as cluster:
        cluster.settle()
        one, other = cluster.nodes
        for n in range(4):
            until(lambda: put(one, f"s{n}", topic=f"q{n}", missed="all:100").status == 200)
        until(lambda: all(fired(one, n) >= 1 for n in range(4)))
        before = [fired(other, n) for n in range(4)]
        one.kill()
        until(lambda: shards(other)[0] == cluster.shards)
        until(lambda: all(fired(other, n) > before[n] for n in range(4)))
        for n in range(4):
            verb(other, "pause", f"s{n}")
            assert is_each_once(other, f"q{n}") - fired(other, n) in (0, 1)
            assert shown(other, f"s{n}")["missed_ticks"] == 0
