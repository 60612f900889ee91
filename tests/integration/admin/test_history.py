"""GET /v1/admin/history: the recent past of a queue, and of the server."""
import time

import pytest

from served import ENGINE, Server, until

COLUMNS = ["in", "done", "failed", "ready", "delayed", "leased", "held", "dead", "oldest_ms",
           "wait_p50_ms", "wait_p95_ms", "wait_p99_ms", "run_p50_ms", "run_p95_ms", "run_p99_ms"]


def history(server, **params):
    answer = server.get("/v1/admin/history", **params)
    assert answer.status == 200, answer
    return answer.body


def known(server, column, **params):
    """The sum of the steps that are known."""
    body = history(server, **params)
    return sum(v for v in body.get(column, []) if v is not None)


def until_known(server, column, least, **params):
    """A step takes 10 s: look ten times a second."""
    until(lambda: known(server, column, **params) > least or time.sleep(0.1))


@pytest.mark.skipif(ENGINE == "redis", reason="engine redis has no history")
def test_a_queue_shows_what_came_in_was_done_and_failed(server):
    server.enqueue(*[{"text": "x"} for _ in range(6)])
    first, second = server.dequeue(limit=2)
    server.ack(first)
    server.nack(second, error="no")
    until_known(server, "failed", 0, **server.here())
    body = history(server, **server.here())
    assert body["range"] == "10m" and body["step_ms"] == 10000 and body["steps"] == 60
    assert all(len(body[c]) == 60 for c in COLUMNS) and body["queue"] == server.here()["topic"]
    assert known(server, "in", **server.here()) == pytest.approx(0.6)
    assert known(server, "done", **server.here()) == pytest.approx(0.1)
    assert known(server, "failed", **server.here()) == pytest.approx(0.1)
    last = {c: body[c][-1] for c in COLUMNS}
    assert last["ready"] + last["delayed"] == 5 and last["leased"] == last["held"] == 0, last
    assert body["in"][0] is None and last["oldest_ms"] > 0
    assert [v for v in body["run_p50_ms"] if v is not None]
    whole = history(server, range="10m")
    assert "queue" not in whole and whole["ready"][-1] + whole["delayed"][-1] >= 5


@pytest.mark.skipif(ENGINE == "redis", reason="engine redis has no history")
def test_a_list_of_queues_has_the_wait_of_the_last_minute(server):
    server.enqueue({"text": "x"}, {"text": "y"}, topic="waits")
    listed = lambda: next(q for q in server.get("/v1/admin/queues", namespace=server.namespace).body["queues"] if q["queue"] == "waits")
    assert "wait_p95_ms" not in listed()
    server.dequeue(topic="waits", limit=1)
    until(lambda: "wait_p95_ms" in listed() or time.sleep(0.1))
    assert 0 <= listed()["wait_p95_ms"] < 10_000
    assert "empty_in_ms" not in listed()  # more came in than was done


@pytest.mark.skipif(ENGINE == "redis", reason="engine redis has no history")
def test_only_the_whole_server_has_days(server):
    server.enqueue({"text": "x"})
    for span, steps, ms in (("10m", 60, 10000), ("1h", 60, 60000), ("24h", 288, 300000), ("7d", 2016, 300000)):
        body = history(server, range=span)
        assert (body["steps"], body["step_ms"]) == (steps, ms) and len(body["in"]) == steps
    for params in ({**server.here(), "range": "7d"}, {"range": "2h"}, {"namespace": "n"}, {"queue": "q"}):
        answer = server.get("/v1/admin/history", **params)
        assert answer.status == 400 and "expected" in answer.text, answer
    assert server.get("/v1/admin/history", **server.here(topic="never-made")).status == 404


@pytest.mark.skipif(ENGINE == "redis", reason="engine redis has no history")
def test_the_shards_of_a_server_are_added(tmp_path):
    with Server(tmp_path, "--shards", "4") as server:
        for i in range(8):
            server.enqueue({"text": "x"}, topic=f"q{i}")
        until_known(server, "in", 0.7, range="10m")
        assert history(server, range="10m")["ready"][-1] == 8


def test_the_server_shows_how_long_its_storage_takes(tmp_path):
    with Server(tmp_path, engine="log") as server:
        server.enqueue({"text": "x"})
        until_known(server, "syncs", 0, of="storage")
        body = history(server, of="storage", range="10m")
        assert "in" not in body and known(server, "puts", of="storage") == 0
        assert [v for v in body["sync_p99_ms"] if v is not None]
        assert server.get("/v1/admin/history", of="storage", **server.here()).status == 400
        assert server.get("/v1/admin/history", of="disks").status == 400
    with Server(tmp_path, engine="memory") as server:
        server.enqueue({"text": "x"})
        assert history(server, of="storage")["steps"] == 0
