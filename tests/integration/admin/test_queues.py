"""Views: peek, stats, topics, policy, health, metrics; unused queues."""
import re

import pytest

from served import ENGINE, Server, texts, until


def test_peek_shows_the_order_and_changes_nothing(server):
    server.enqueue({"text": "b"}, {"text": "a", "priority": 0}, {"text": "later", "delay": 60})
    for _ in range(2):
        shown = server.peek()
        assert texts(shown) == ["a", "b"]
        assert {m["attempts"] for m in shown} == {0}
    assert server.stats()["ready"] == 2


def test_peek_finds_one_by_id_in_any_state(server):
    id_, = server.enqueue({"delay": 60, "text": "x", "attributes": {"a": 1}})
    shown, = server.peek(id=id_)
    assert shown["status"] == "delayed" and texts([shown]) == ["x"]
    assert server.get("/peek", **server.here(id=4711)).status == 404


@pytest.mark.parametrize("state, want", [
    ("ready", {"ready"}), ("delayed", {"delayed"}), ("leased", {"leased"}),
    ("held", {"held"}), ("dead", {"dead"}),
    ("all", {"ready", "delayed", "leased", "held", "dead"})])
def test_peek_lists_by_state(server, state, want):
    server.enqueue({"text": "dead", "priority": 0}, {"text": "leased", "priority": 1, "key": "k"})
    dead, _ = server.dequeue()
    server.nack(dead, dead=True)
    server.enqueue({"text": "held", "key": "k"}, {"text": "delayed", "delay": 60},
                   {"text": "ready"})
    got = server.peek(state=state, limit=100)
    assert {m["status"] for m in got} == want
    assert {t for t in texts(got)} == want


def test_what_settles_a_lease_is_shown_to_its_holder_only(server):
    """A reader who had it could settle what is not his."""
    id_, = server.enqueue({"text": "a"})
    got, = server.dequeue(lease="1h")
    here = server.here()
    views = [server.get("/peek", state="leased", **here), server.get("/peek", id=id_, **here),
             server.get("/v1/admin/messages", **here), server.get("/v1/admin/message", id=id_, **here)]
    for answer in views:
        assert answer.status == 200 and got["lease_expires_at"] in str(answer.body)
        for secret in "lease_id", "fencing_token", "receipt", got["lease_id"], got["receipt"]:
            assert secret not in str(answer.body)


def test_peek_refuses_unknown_states(server):
    answer = server.get("/peek", **server.here(state="lost"))
    assert answer.status == 400 and "state" in answer.body["message"]


def test_stats_count_by_state(server):
    server.enqueue(*({} for _ in range(5)), {"delay": 60})
    server.dequeue(limit=2)
    assert server.stats() == {
        "namespace": server.namespace, "topic": "mail", "queue": "mail",
        "display_namespace": server.namespace, "display_topic": "mail", "ready": 3, "delayed": 1,
        "leased": 2, "held": 0, "dead": 0, "damaged": 0, "total": 6, "paused": False,
        "warning": False}


NAMES = ("namespace", "topic", "display_namespace", "display_topic")


@pytest.mark.parametrize("engine", ["log", "memory"])
def test_names_are_folded_and_shown_as_they_were_first_spelled(tmp_path, engine):
    with Server(tmp_path, engine=engine, namespace="Shop", topic="OrderLines") as server:
        server.enqueue({"text": "one"})
        server.enqueue({"text": "two"}, namespace="SHOP", topic="orderlines")
        server.topic = "Returns"
        server.policy(warn_depth=7)
        server.enqueue({"text": "three"}, namespace="shop", topic="returns")
        for _ in range(2):
            answer = server.get("/topics", namespace="sHOP").body["topics"]
            assert [tuple(q[n] for n in NAMES) for q in answer] == [
                ("shop", "orderlines", "Shop", "OrderLines"),
                ("shop", "returns", "Shop", "Returns")]
            assert server.get("/stats", namespace="shop", topic="ORDERLINES").body["total"] == 2
            assert server.get("/v1/admin/queue", namespace="shop",
                              topic="returns").body["display_topic"] == "Returns"
            assert 'topic="orderlines"' in server.get("/metrics").text
            if engine == "log":
                server.restart("kill")


def test_a_deep_topic_warns(server):
    before = server.metric("sluice_queues_warning")
    server.policy(warn_depth=2)
    server.enqueue({}, {})
    assert not server.stats()["warning"]
    server.enqueue({})
    assert server.stats()["warning"]
    assert server.metric("sluice_queues_warning") == before + 1
    server.nack(server.take(), dead=True)
    assert not server.stats()["warning"]


def test_stats_of_nothing_is_404(server):
    answer = server.get("/stats", **server.here())
    assert answer.status == 404 and answer.body["error"] == "not_found"


def test_topics_lists_every_queue_of_a_namespace(server):
    """X-06"""
    names = [f"t{i}" for i in range(7)]
    server.enqueue(*({"topic": name} for name in names))
    server.enqueue({"namespace": "someone-else"})
    found = []
    cursor = {}
    while True:
        page = server.get("/topics", namespace=server.namespace, limit=3, **cursor).body
        found += page["topics"]
        if "cursor" not in page:
            break
        cursor = {"cursor": page["cursor"]}
    assert sorted(q["topic"] for q in found) == names
    assert {q["ready"] for q in found} == {1}


def test_a_policy_comes_back_as_it_was_put(server):
    default = server.get("/policy", **server.here()).body
    assert default["lease"] == "30s" and default["max_attempts"] == 5
    assert default["retry"] == {"kind": "exponential", "jitter": "full", "base": "1s",
                                "max": "15m"}
    put = {"lease": "1m", "max_attempts": 2,
           "retry": {"kind": "linear", "jitter": "none", "base": "2s", "max": "1m"},
           "ttl": "1h", "max_depth": 10, "max_rate": 100, "burst": 20,
           "warn_depth": 5, "warn_age": "1m", "tags": "payments,team=relay", "idempotency_window": "1h", "idempotency": "strict",
           "dlq_retention": "1d", "dlq_max": 7, "require_lease": True, "paused": True, "draining": True,
           "share_weights": "", "rules": "", "breakers": "b: 1 in 1m, open 1m, by share", "concurrency": 0, "share_concurrency": 0,
           "rate": 7, "rate_burst": 3, "share_rate": 5, "share_rate_burst": 2, "key_rate": 4, "key_rate_burst": 1, "dead_letter_queue": "other", "max_runtime": "1m",
           "limit_attribute": "host", "attribute_concurrency": 6, "attribute_rate": 8, "attribute_rate_burst": 9}
    shown = {**server.here(queue="mail"), **put}
    assert server.policy(**put) == shown
    assert server.get("/policy", **server.here()).body == shown


@pytest.mark.skipif(ENGINE == "redis", reason="has neither")
def test_a_queue_warns_of_its_age_and_lists_have_its_tags(server):
    server.policy(warn_age="1h", tags="payments,team=relay")
    server.enqueue({"text": "x"})
    assert not server.stats()["warning"]
    server.policy(warn_age="1ms", tags="payments,team=relay", warn_depth=5)
    until(lambda: server.stats()["warning"])
    listed, = server.get("/v1/admin/queues", namespace=server.namespace).body["queues"]
    assert (listed["tags"], listed["warn_age_ms"], listed["warn_depth"]) == ("payments,team=relay", 1, 5)
    server.ack(server.take())
    assert not server.stats()["warning"]
    assert server.post("/policy", {"tags": "a,,b"}, **server.here()).status == 400


def test_put_sets_all_and_post_sets_what_it_names(server):
    server.policy(max_attempts=2, lease="1m")
    changed = server.post("/policy", {"lease": "2m"}, **server.here()).body
    assert changed["max_attempts"] == 2 and changed["lease"] == "2m"
    assert server.policy(lease="3m")["max_attempts"] == 5


@pytest.mark.parametrize("knobs, says", [
    ({"lease": "13h"}, "lease"), ({"max_attempts": 0}, "max_attempts"),
    ({"burst": 5}, "max_rate"), ({"max_rate": 2_000_000_000}, "max_rate"),
    ({"retry": {"kind": "cubic"}}, "kind"), ({"speed": 1}, "speed"), ([], "object"),
    ({"idempotency": "loose"}, "first or strict"),
    ({"max_depth": -1}, "max_depth")])
def test_a_bad_policy_is_refused_and_nothing_changes(server, knobs, says):
    before = server.get("/policy", **server.here()).body
    answer = server.call("PUT", "/policy", knobs, **server.here())
    assert answer.status == 400 and says in answer.body["message"]
    assert server.get("/policy", **server.here()).body == before


def test_the_policy_gives_the_lease(server):
    server.policy(lease="100ms")
    server.enqueue({})
    server.take()
    assert server.take(wait=10)["attempts"] == 2


def test_health_and_readiness(server):
    assert server.get("/healthz").body == {"status": "ok"}
    ready = server.get("/readyz").body
    assert ready["status"] == "ready" and (server.owner or ready == {"status": "ready"})


def test_metrics_count_what_happens(server):
    line = (f'sluice_queue_messages{{namespace="{server.namespace}",topic="mail",'
            'state="%s"}')
    acked = server.metric('sluice_ops_total{verb="ack"}')
    server.enqueue({}, {})
    server.ack(server.take())
    assert server.metric(line % "ready") == 1
    assert server.metric(line % "leased") == 0
    assert server.metric('sluice_ops_total{verb="ack"}') == acked + 1
    text = (server.owner or server).get("/metrics").text
    assert 'engine="log",durability="sync"' in text
    for name in ("sluice_http_connections", "sluice_messages", "sluice_op_seconds_bucket",
                 "sluice_messages_accepted_total", "sluice_queues", "sluice_waiting"):
        assert name in text, name


def test_every_sample_of_the_metrics_has_its_type(server):
    typed = set()
    for line in server.get("/metrics").text.splitlines():
        if line.startswith("# TYPE "):
            typed.add(line.split()[2])
        elif not line.startswith("#"):
            name = line.split("{")[0].split()[0]
            for end in ("_bucket", "_sum", "_count"):
                if name.endswith(end) and name[:-len(end)] in typed:
                    name = name[:-len(end)]
            assert name in typed, line


@pytest.mark.parametrize("method, path, status, error", [
    ("GET", "/nowhere", 404, "not_found"),
    ("GET", "/enqueue", 405, "invalid"),
    ("DELETE", "/ack", 405, "invalid"),
    ("GET", "/result?namespace=a&id=x", 400, "invalid"),
    ("GET", "/stats?namespace=%", 400, "invalid"),
])
def test_every_error_is_json(server, method, path, status, error):
    answer = server.call(method, path)
    assert answer.status == status
    assert answer.body["error"] == error and answer.body["message"]


def test_the_same_with_many_shards(folder):
    """Calls that span shards are put together again."""
    with Server(folder, "--shards", "4", "--threads", "2") as server:
        topics = [f"t{i}" for i in range(12)]
        ids = server.enqueue(*({"topic": t, "text": t} for t in topics for _ in range(3)))
        assert len(set(ids)) == 36
        found = []
        cursor = 0
        while True:
            page = server.get("/topics", namespace="test", limit=5, cursor=cursor).body
            found += page["topics"]
            cursor = page.get("cursor")
            if not cursor:
                break
        assert sorted(q["topic"] for q in found) == sorted(topics)
        assert {q["ready"] for q in found} == {3}
        by_id = dict(zip(ids, [t for t in topics for _ in range(3)]))
        messages = [m for t in topics for m in server.dequeue(topic=t)]
        assert all(by_id[m["id"]] == m["topic"] == texts([m])[0] for m in messages)
        items = [{"id": m["id"], "namespace": "test", "topic": m["topic"],
                  "lease_id": m["lease_id"]} for m in messages]
        items[5]["lease_id"] = "l-1"
        answer = server.post("/ack", items).body
        assert [i["id"] for i in answer] == [m["id"] for m in messages]
        assert [i["status"] for i in answer] == [200] * 5 + [409] + [200] * 30
        assert server.post("/ack", {"id": 1, "namespace": "test"}).status == 400
        until(lambda: server.metric('sluice_messages{state="leased"}') == 1)


# --- unused queues ------------------------------------------------------------------

def topics(server):
    queues = server.get("/v1/admin/queues", namespace=server.namespace).body["queues"]
    return [q["topic"] for q in queues]


@pytest.mark.parametrize("engine", ["log", "memory"])
def test_an_unused_queue_is_forgotten(tmp_path, engine):
    with Server(tmp_path, "--queues-idle", "300ms", engine=engine) as server:
        for topic in ("old", "full", "set"):
            server.enqueue({"text": "x"}, topic=topic)
        server.ack(server.take(topic="old"), topic="old")
        server.ack(server.take(topic="set"), topic="set")
        server.call("PUT", "/policy", {"max_attempts": 3}, **server.here(topic="set"))
        until(lambda: topics(server) == ["full", "set"])
        assert server.get("/stats", namespace=server.namespace, topic="old").status == 404
        # Counters never go back.
        text = server.get("/metrics").text
        accepted = re.findall(r"^sluice_queue_accepted_total\{.*\} (\d+)", text, re.M)
        assert sum(map(int, accepted)) == 3 and 'topic=".other"' in text
        server.enqueue({"text": "again"}, topic="old")
        assert "old" in topics(server)


def test_a_forgotten_queue_is_not_back_after_a_restart(tmp_path):
    with Server(tmp_path, "--queues-idle", "300ms") as server:
        server.enqueue({"text": "x"}, topic="Old")
        server.enqueue({"text": "x"}, topic="full")
        server.ack(server.take(topic="old"), topic="old")
        until(lambda: topics(server) == ["full"])
        server.options = [o for o in server.options if o not in ("--queues-idle", "300ms")]
        server.restart("kill")
        assert topics(server) == ["full"]
