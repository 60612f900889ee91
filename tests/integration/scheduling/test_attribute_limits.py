"""Limits on the values of one attribute of a queue (docs/scheduling.md)."""
import base64

import pytest

from redis import Redis
from served import ENGINE, Server


def put(server, *hosts):
    """One message for every host; None has none. Its text is the host."""
    return server.enqueue(*({"text": str(host), **({"attributes": {"host": host}} if host is not None else {})}
                            for host in hosts))


def take(server, n=100):
    got = server.dequeue(limit=n)
    return got, [base64.b64decode(m["payload"]).decode() for m in got]


def limits(server):
    return server.get("/v1/admin/queue/limits", **server.here()).body


def test_each_value_has_so_many_leases(server):
    server.policy(limit_attribute="host", attribute_concurrency=2)
    put(server, *["crm"] * 4, "fax", None, 7, 7, 7)
    got, texts = take(server)
    assert texts == ["crm", "crm", "fax", "None", "7", "7"]
    row = next(r for r in limits(server)["limits"] if r.get("name") == "crm")
    assert row["scope"] == "attribute" and (row["leased"], row["ready"], row["concurrency"]) == (2, 2, 2)
    assert limits(server)["values"] == 3
    server.ack(got[0])
    assert take(server)[1] == ["crm"]


def test_each_value_has_its_rate(server):
    server.policy(limit_attribute="host", attribute_rate=1, attribute_rate_burst=2)
    put(server, *["crm"] * 4, *["fax"] * 4)
    texts = take(server)[1]
    assert sorted(texts[:4]) == ["crm", "crm", "fax", "fax"] and len(texts) < 8
    assert len(server.dequeue(limit=1, wait="60s")) == 1


def test_limits_change_while_messages_wait(server):
    server.policy(limit_attribute="host")
    put(server, *["crm"] * 4)
    server.policy(limit_attribute="host", attribute_concurrency=1)
    assert len(take(server)[0]) == 1 and take(server)[0] == []
    server.policy(limit_attribute="host", attribute_concurrency=3)
    assert len(take(server)[0]) == 2


def test_why_names_the_limit_of_a_value(server):
    server.policy(limit_attribute="host", attribute_concurrency=1)
    first, second = put(server, "crm", "crm")
    take(server)
    answer = server.get("/why", namespace=server.namespace, id=second)
    assert answer.body["reasons"][0]["reason"] == "limit", answer.body
    assert "its attribute has 1 leased message, the limit" in answer.body["reasons"][0]["text"]


def test_a_nack_holds_all_messages_of_a_value_back(server):
    server.policy(limit_attribute="host")
    put(server, "crm", "fax", "crm")
    got, _ = take(server, 1)
    assert server.post("/nack", {"receipt": got[0]["receipt"], "retry_after": "5m", "scope": "attribute"}).status == 200
    assert take(server)[1] == ["fax"]
    assert [(h["scope"], h["name"]) for h in limits(server)["holds"]] == [("attribute", "crm")]
    answer = server.post("/v1/admin/queue/hold", {**server.here(), "scope": "attribute", "name": "crm", "for": "0s"})
    assert answer.status == 200 and take(server)[1] == ["crm", "crm"]


@pytest.mark.parametrize("wrong", [{"attribute_concurrency": 1}, {"attribute_rate": 1},
                                   {"limit_attribute": "a", "attribute_rate_burst": 1}, {"limit_attribute": "x" * 64}])
def test_invalid_limits_are_refused(server, wrong):
    answer = server.post("/v1/admin/queue/policy", wrong, **server.here())
    assert answer.status == 400 and "attribute" in answer.body["message"]


@pytest.mark.skipif(ENGINE == "forwarded", reason="the node that owns the shard is not restarted")
def test_values_and_the_leases_that_count_survive_a_kill_and_a_stop(folder):
    with Server(folder) as server:
        server.policy(limit_attribute="host", attribute_concurrency=1)
        put(server, *["crm"] * 3, "fax")
        assert take(server)[1] == ["crm", "fax"]
        server.restart("kill")
        assert take(server)[0] == []
        server.restart()
        assert take(server)[0] == []
        assert server.get("/policy", **server.here()).body["limit_attribute"] == "host"


def test_redis_refuses_limits_on_an_attribute(folder, tmp_path, monkeypatch):
    with Redis(tmp_path) as redis:
        monkeypatch.setenv("SLUICE_REDIS_ADDRESS", redis.address)
        with Server(folder, engine="redis") as server:
            answer = server.post("/v1/admin/queue/policy", {"limit_attribute": "host"}, **server.here())
            assert answer.status == 400 and "engine redis" in answer.body["message"]
