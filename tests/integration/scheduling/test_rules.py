"""Admission rules: attributes set the priority of a message, or delay it (docs/scheduling.md)."""
import base64

import pytest

from redis import Redis
from served import ENGINE, Server

RULES = 'risk > 0.8: high; source in (import, "night job"): low, delay 10m'


def put(server, text, **attributes):
    id_, = server.enqueue({"text": text, "attributes": attributes})
    return id_


def order(server):
    return [base64.b64decode(m["payload"]).decode() for m in server.dequeue(limit=100)]


def test_a_rule_raises_the_priority(server):
    """PW-F1"""
    server.policy(rules=RULES)
    put(server, "plain")
    put(server, "safe", risk=0.1)
    id_ = put(server, "risky", risk=0.9)
    assert server.peek(id=id_)[0]["priority"] == 0
    assert order(server) == ["risky", "plain", "safe"]


def test_a_rule_delays(server):
    """PW-F3, and `why` names the rule."""
    server.policy(rules=RULES)
    id_ = put(server, "x", source="night job")
    assert order(server) == []
    answer = server.get("/why", id=id_, **server.here()).body
    assert answer["reason"] == "delayed" and answer["rule"] == 'source in (import, "night job"): low, delay 10m'
    shown, = server.peek(id=id_)
    assert shown["priority"] == 10 and shown["rule"] == answer["rule"]


def test_a_message_without_a_rule_names_none(server):
    server.policy(rules=RULES)
    id_ = put(server, "x", source="web")
    assert "rule" not in server.get("/why", id=id_, **server.here()).body
    assert "rule" not in server.peek(id=id_)[0]


def test_a_delay_is_added_to_that_of_the_message(server):
    server.policy(rules="slow = 1: delay 10m")
    ids = server.enqueue({"text": "x", "attributes": {"slow": 1}}, {"text": "y", "attributes": {"slow": 1}, "delay": "1h"})
    first, second = (server.get("/why", id=i, **server.here()).body["reasons"][0]["until"] for i in ids)
    assert first < second


@pytest.mark.parametrize("wrong", ["risk", "risk > 1", "risk > 1: urgent", "a = 1: delay x", "x" * 256, ";".join(["a=1:low"] * 17)])
def test_invalid_rules_are_refused_and_change_nothing(server, wrong):
    server.policy(rules="a = 1: low")
    answer = server.post("/v1/admin/queue/policy", {"rules": wrong}, **server.here())
    assert answer.status == 400 and "rule" in answer.body["message"]
    assert server.get("/policy", **server.here()).body["rules"] == "a = 1: low"


@pytest.mark.skipif(ENGINE == "forwarded", reason="the node that owns the shard is not restarted")
def test_rules_and_what_they_did_survive_a_kill(folder):
    with Server(folder) as server:
        server.policy(rules=RULES)
        put(server, "plain")
        id_ = put(server, "risky", risk=1)
        server.restart("kill")
        assert server.get("/policy", **server.here()).body["rules"] == RULES
        assert server.peek(id=id_)[0]["rule"] == "risk > 0.8: high"
        assert order(server) == ["risky", "plain"]


def test_redis_refuses_rules(folder, tmp_path, monkeypatch):
    with Redis(tmp_path) as redis:
        monkeypatch.setenv("SLUICE_REDIS_ADDRESS", redis.address)
        with Server(folder, engine="redis") as server:
            server.enqueue({"text": "x"})
            answer = server.post("/v1/admin/queue/policy", {"rules": RULES}, **server.here())
            assert answer.status == 400 and "engine redis has no admission rules" in answer.body["message"]
