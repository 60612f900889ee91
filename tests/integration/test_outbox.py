"""Steps over several shards: the messages of other shards go by the outbox."""
import http.client
import threading
import time

import pytest

from clustered import two
from redis import Redis
from served import Node, texts, until

ROUTES = "sharding: {enabled: true, commandMappings: {mail: red, near: red, far: blue}}\n"


def over(engine, extra=""):
    return ROUTES + f"shards: {{red: {{engine: {engine}}}, blue: {{engine: {engine}}}}}\n" + extra


def child(server, text, topic="far", **more):
    return {"namespace": server.namespace, "topic": topic, "text": text, **more}


def ready(server, topic="far"):
    return texts(server.peek(topic=topic, limit=100))


def finish(server, message, **more):
    answer = server.post("/ack", {"receipt": message["receipt"], **more})
    assert answer.status == 200, answer


def depth(server, topic):
    counts = server.stats(topic=topic)
    return sum(counts.get(state, 0) for state in ("ready", "delayed", "leased", "held"))


@pytest.mark.parametrize("engine", ["memory", "log"])
def test_an_ack_brings_messages_to_another_shard(tmp_path, engine):
    with Node(tmp_path, over(engine)) as server:
        server.enqueue({"text": "parent"})
        answer = server.settle("/ack", server.take(), enqueue=[
            child(server, "a", "near"), child(server, "b", key="k", priority=2), child(server, "c", key="k", delay="1h", ttl="2h"),
            child(server, "d", attributes={"x": 1}, correlation_id="c")])
        assert answer.status == 200, answer
        sent = answer.body["enqueued"]
        assert not any(row.get("pending") for row in sent), "the ack has waited for the other shard"
        assert ready(server, "near") == ["a"] and ready(server) == ["b", "d"]
        rows = {row["id"]: row for row in server.peek(topic="far", limit=9)}
        assert [row["id"] for row in sent if row["id"] in rows] == [sent[1]["id"], sent[3]["id"]]
        last = rows[sent[3]["id"]]
        assert last["attributes"] == {"x": 1} and last["correlation_id"] == "c"
        late, = server.peek(topic="far", state="delayed")
        assert late["id"] == sent[2]["id"] and late["key"] == "k" and "expires_at" in late


def test_nothing_happens_without_the_lease(tmp_path):
    with Node(tmp_path, over("log")) as server:
        server.enqueue({"text": "parent"})
        parent = server.take()
        server.ack(parent)
        assert server.settle("/ack", parent, enqueue=child(server, "x")).status == 404
        server.enqueue({"text": "next"})
        assert server.settle("/ack", server.take(), enqueue=child(server, "y")).status == 200
        assert ready(server) == ["y"]


def test_limits_of_the_target_count_and_do_not_refuse(tmp_path):
    with Node(tmp_path, over("log")) as server:
        assert server.call("PUT", "/policy", {"max_depth": 1, "max_rate": 1, "burst": 1}, **server.here(topic="far")).status == 200
        server.enqueue({"text": "parent"})
        answer = server.settle("/ack", server.take(), enqueue=[child(server, str(n)) for n in range(5)])
        assert answer.status == 200 and ready(server) == list("01234")
        assert server.post("/enqueue", [child(server, "6")]).status == 429


def test_a_line_has_so_many_messages(tmp_path):
    with Node(tmp_path, over("log"), "--limits-outbox", "2") as server:
        server.enqueue({"text": "parent"})
        parent = server.take()
        refused = server.settle("/ack", parent, enqueue=[child(server, "a", "near"), *(child(server, str(n)) for n in range(3))])
        assert refused.status == 503 and refused.body["error"] == "outbox_full", refused
        assert "blue" in refused.body["message"] and refused.body["limit"] == "outbox"
        assert ready(server, "near") == [], "nothing has happened"
        assert server.settle("/ack", parent, enqueue=[child(server, str(n)) for n in range(2)]).status == 200
        assert ready(server) == ["0", "1"]


def test_copies_are_messages_of_their_own(tmp_path):
    with Node(tmp_path, over("log")) as server:
        answer = server.post("/enqueue", child(server, "x", "mail", copy_to=["far", "Near"], key="k"))
        assert answer.status == 200 and len(set(answer.body)) == 3, answer
        for topic, number in zip(("mail", "far", "near"), answer.body):
            got, = server.dequeue(topic=topic)
            assert got["id"] == number and texts([got]) == ["x"] and got["key"] == "k"
        finish(server, got, enqueue=child(server, "y", "mail", copy_to=["far"]))
        assert ready(server) == ["y"] and ready(server, "mail") == ["y"]
        for copies, says in ((["a/b"], "copy_to"), ("x", "copy_to"), (["x"] * 17, "at most 16")):
            refused = server.post("/enqueue", child(server, "z", copy_to=copies))
            assert refused.status == 400 and says in refused.body["message"], refused


def test_a_known_idempotency_key_is_accepted_once(tmp_path):
    with Node(tmp_path, over("log")) as server:
        server.enqueue({"text": "1"}, {"text": "2"})
        for message in server.dequeue(limit=2):
            assert server.settle("/ack", message, enqueue=child(server, "once", idempotency_key="i")).status == 200
        assert ready(server) == ["once"]


def test_an_atomic_enqueue_goes_over_shards(tmp_path):
    with Node(tmp_path, over("log")) as server:
        answer = server.post("/enqueue", [child(server, "a", "near"), child(server, "b"), child(server, "c", "mail")],
                             atomic="true", detail="1")
        assert answer.status == 200 and not any(row.get("pending") for row in answer.body), answer
        assert [ready(server, q) for q in ("near", "far", "mail")] == [["a"], ["b"], ["c"]]
        refused = server.post("/enqueue", [child(server, "a", "near"), child(server, "b", key="k" * 300)], atomic="true")
        assert refused.status == 400 and ready(server, "near") == ["a"]


@pytest.mark.parametrize("through", ["owner", "entry"])
def test_between_the_servers_of_a_store(tmp_path, through):
    queues = [f"q{n}" for n in range(12)]
    with two(tmp_path) as pair:
        server = pair[through == "entry"]
        answer = server.post("/enqueue", [{"namespace": "test", "topic": q, "text": q} for q in queues], atomic="true", detail="1")
        assert answer.status == 200, answer
        for queue, row in zip(queues, answer.body):
            until(lambda q=queue: server.get("/stats", namespace="test", topic=q).status == 200)
            got, = server.dequeue(namespace="test", topic=queue, limit=9)
            assert got["id"] == row["id"]
            again = server.post("/ack", {"receipt": got["receipt"], "enqueue": [
                {"namespace": "test", "topic": f"next-{n}", "text": queue} for n in range(3)]})
            assert again.status == 200, again
        until(lambda: all(sorted(texts(server.peek(namespace="test", topic=f"next-{n}", limit=99))) == sorted(queues)
                          for n in range(3)))


def test_what_is_on_its_way_survives_a_restart_in_order(tmp_path):
    with Node(tmp_path, over("log")) as server:
        for life in range(3):
            server.enqueue(*({"text": f"{life}-{n}"} for n in range(20)))
            for message in server.dequeue(limit=20):
                answer = server.settle("/ack", message, enqueue=child(server, texts([message])[0], key="k"))
                assert answer.status == 200
            server.restart("kill")
        until(lambda: depth(server, "far") == 60)
        seen = []
        while got := server.dequeue(topic="far", limit=1):
            seen += texts(got)
            finish(server, got[0])
        assert seen == [f"{life}-{n}" for life in range(3) for n in range(20)]


def settle_all(server, stop):
    """Acks all parents, each with a child; the server may be killed at any moment."""
    while not stop.is_set():
        try:
            for message in server.dequeue(limit=4, lease="2s", wait="100ms"):
                name = texts([message])[0]
                server.settle("/ack", message, enqueue=[child(server, f"{name}-{n}", key=str(n)) for n in range(2)])
        except (OSError, AssertionError, http.client.HTTPException):
            time.sleep(0.01)


def test_kills_lose_and_double_nothing(tmp_path):
    """A child is there once if its parent is acked, whatever answers were lost."""
    stop = threading.Event()
    with Node(tmp_path, over("log")) as server:
        server.enqueue(*({"text": str(n)} for n in range(300)))
        workers = [threading.Thread(target=settle_all, args=(server, stop)) for _ in range(3)]
        for worker in workers:
            worker.start()
        for life in range(3):
            until(lambda n=300 - 80 * (life + 1): depth(server, "mail") <= n)
            server.restart("kill")
        until(lambda: depth(server, "mail") == 0)
        stop.set()
        for worker in workers:
            worker.join()
        until(lambda: depth(server, "far") == 600)
        seen = []
        while got := server.dequeue(topic="far", limit=100):
            for message in got:
                seen += texts([message])
                finish(server, message)
        assert sorted(seen) == sorted(f"{n}-{i}" for n in range(300) for i in range(2))


def test_a_redis_shard_takes_no_messages_from_others(tmp_path):
    with Redis(tmp_path) as redis:
        text = ROUTES + f"shards: {{red: {{engine: log}}, blue: {{engine: redis, address: '{redis.address}'}}}}\n"
        with Node(tmp_path, text) as server:
            server.enqueue({"text": "parent"})
            parent = server.take()
            answer = server.settle("/ack", parent, enqueue=[child(server, "a", "near"), child(server, "b")])
            assert answer.status == 409 and answer.body["error"] == "not_together", answer
            assert server.get("/stats", **server.here(topic="near")).status == 404, "nothing was done"
            server.ack(parent)
