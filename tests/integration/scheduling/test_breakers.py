"""Circuit breakers of a queue, shared by all its workers (docs/scheduling.md). PW-F7."""
import pytest

from redis import Redis
from served import ENGINE, Server


def fail(server, got, reason="smtp"):
    answer = server.post("/nack", {"receipt": got["receipt"], "delay": "0s", "reason": reason})
    assert answer.status == 200, answer.body


def breakers(server):
    return server.get("/v1/admin/queue/limits", **server.here()).body["breakers"]


def order(server, state, **more):
    return server.post("/v1/admin/queue/breaker", {**server.here(), "breaker": "smtp", "state": state, **more})


def test_failures_open_a_breaker_and_an_ack_closes_it(server):
    server.policy(breakers="smtp: 2 in 1m, open 1s")
    ids = server.enqueue(*[{"text": "x"}] * 4)
    for _ in range(2):
        got, = server.dequeue(limit=1)
        fail(server, got)
    row, = breakers(server)
    assert row["breaker"] == "smtp" and row["scope"] == "queue" and row["state"] in ("open", "half-open")
    probe, = server.dequeue(limit=100, wait="60s")
    assert server.dequeue(limit=100) == [] and breakers(server)[0]["probing"]
    why = server.get("/why", namespace=server.namespace, id=next(i for i in ids if i != probe["id"])).body
    assert why["reason"] == "breaker" and why["breaker"] == "smtp"
    server.ack(probe)
    assert breakers(server) == [] and len(server.dequeue(limit=100)) == 3


def test_openings_and_closings_are_counted(server):
    def counted(what):
        return server.metric('sluice_breakers_%s_total{shard="0"}' % what) - before.get(what, 0)

    before = {}
    before = {what: counted(what) for what in ("opened", "closed")}
    server.policy(breakers="smtp: 1 in 1m, open 1s")
    server.enqueue({"text": "x"}, {"text": "y"})
    fail(server, server.dequeue(limit=1)[0])
    fail(server, server.dequeue(limit=1, wait="60s")[0], "")  # the try
    assert (counted("opened"), counted("closed")) == (2, 0)
    server.ack(server.dequeue(limit=1, wait="60s")[0])
    assert (counted("opened"), counted("closed")) == (2, 1)


def test_a_failed_probe_opens_the_breaker_again(server):
    server.policy(breakers="smtp: 1 in 1m, open 1s")
    server.enqueue({"text": "x"}, {"text": "y"})
    fail(server, server.dequeue(limit=1)[0])
    first, = breakers(server)
    fail(server, server.dequeue(limit=1, wait="60s")[0], "")
    again, = breakers(server)
    assert again["until"] > first["until"]


@pytest.mark.parametrize("scope, field", [("share", "share"), ("key", "key"), ("attribute", None)])
def test_a_breaker_of_a_scope_holds_that_scope_alone(server, scope, field):
    server.policy(breakers=f"smtp: 1 in 1m, open 10m, by {scope}", limit_attribute="host")
    server.enqueue(*({"text": t, **({field: t} if field else {"attributes": {"host": t}})} for t in ("a", "b")))
    fail(server, server.dequeue(limit=1)[0])
    assert len(server.dequeue(limit=10)) == 1
    row, = breakers(server)
    assert (row["scope"], row["name"]) == (scope, "a")
    assert order(server, "closed", scope=scope, name="a").status == 200
    assert len(server.dequeue(limit=10)) == 1


def test_an_operator_opens_and_closes_a_breaker(server):
    server.policy(breakers="smtp: 5 in 1m, open 1s")
    server.enqueue({"text": "x"})
    assert order(server, "open", **{"for": "10m"}).body["state"] == "open"
    assert server.dequeue() == []
    assert order(server, "closed").body["state"] == "closed"
    assert len(server.dequeue()) == 1


@pytest.mark.skipif(ENGINE == "forwarded", reason="the node that owns the shard is not restarted")
def test_an_open_breaker_and_its_probe_survive_a_kill(folder):
    with Server(folder) as server:
        server.policy(breakers="smtp: 1 in 1m, open 10m")
        server.enqueue({"text": "x"}, {"text": "y"})
        fail(server, server.dequeue(limit=1)[0])
        before = breakers(server)
        server.restart("kill")
        assert breakers(server) == before and server.dequeue() == []
        server.policy(breakers="smtp: 1 in 1m, open 1s")
        order(server, "open", **{"for": "1ms"})
        probe, = server.dequeue(limit=10, wait="60s")
        server.restart("kill")
        assert server.dequeue() == []
        server.ack(probe)
        assert len(server.dequeue()) == 1


def test_invalid_breakers_are_refused(server):
    answer = server.post("/v1/admin/queue/policy", {"breakers": "smtp: many"}, **server.here())
    assert answer.status == 400 and "invalid breaker" in answer.body["message"]


def test_redis_refuses_breakers(folder, tmp_path, monkeypatch):
    with Redis(tmp_path) as redis:
        monkeypatch.setenv("SLUICE_REDIS_ADDRESS", redis.address)
        with Server(folder, engine="redis") as server:
            answer = server.post("/v1/admin/queue/policy", {"breakers": "b: 1 in 1m, open 1m"}, **server.here())
            assert answer.status == 400 and "engine redis" in answer.body["message"]
