"""Shares of a queue: whose turn it is (docs/scheduling.md)."""
import base64
import threading

import pytest

from redis import Redis
from served import ENGINE, Server, until


def put(server, *shares, **common):
    """One message for every share; "" has none. Its text is the share."""
    return server.enqueue(*({"text": share, **({"share": share} if share else {})} for share in shares), **common)


def order(server, n=100):
    """The shares of the next deliveries."""
    return [base64.b64decode(m["payload"]).decode() for m in server.dequeue(limit=n)]


def test_shares_take_turns(server):
    put(server, *["a"] * 5, "b", "", "c")
    assert order(server) == ["a", "b", "", "c", "a", "a", "a", "a"]


def test_one_claim_at_a_time_gives_the_same_order(server):
    put(server, *["a"] * 3, *["b"] * 3)
    assert [order(server, 1)[0] for _ in range(6)] == ["a", "b", "a", "b", "a", "b"]


def test_the_order_within_a_share_is_that_of_a_queue_without_shares(server):
    server.enqueue({"text": "low", "share": "a", "priority": "low"}, {"text": "first", "share": "a"},
                   {"text": "second", "share": "a"}, {"text": "high", "share": "b", "priority": "high"})
    assert order(server) == ["high", "first", "second", "low"]


def test_a_key_holds_its_messages_whatever_their_shares(server):
    server.enqueue({"text": "1", "share": "a", "key": "k"}, {"text": "2", "share": "b", "key": "k"},
                   {"text": "3", "key": "k"})
    for text in "123":
        got, = server.dequeue()
        assert base64.b64decode(got["payload"]).decode() == text
        server.ack(got)


def test_weights_are_a_setting_of_the_queue(server):
    put(server, *["gold"] * 6, *["bulk-1"] * 3, *["x"] * 3)
    server.policy(share_weights="gold=2,bulk-*=1")
    got = order(server, 8)
    assert got.count("gold") == 4 and got.count("bulk-1") == 2 and got.count("x") == 2
    assert server.get("/policy", **server.here()).body["share_weights"] == "gold=2,bulk-*=1"


@pytest.mark.parametrize("weights", ["a", "a=", "=1", "a=0", "a=1001", "a=1,", ",", "a=x", "x" * 128])
def test_invalid_weights_are_refused(server, weights):
    answer = server.post("/v1/admin/queue/policy", {"share_weights": weights}, **server.here())
    assert answer.status == 400 and "share_weights" in answer.body["message"]


@pytest.mark.parametrize("share", ["", "x" * 129, "a\nb"])
def test_an_invalid_share_is_refused(server, share):
    answer = server.post("/enqueue", [{**server.here(), "text": "x", "share": share}])
    assert answer.status == 400 and "share" in answer.body["message"]


def test_a_message_shows_its_share(server):
    id_, = put(server, "a")
    assert server.peek(id=id_)[0]["share"] == "a"
    assert server.take()["share"] == "a"
    put(server, "")
    assert "share" not in server.take()


@pytest.mark.skipif(ENGINE == "forwarded", reason="the node that owns the shard is not restarted")
def test_shares_and_weights_survive_a_kill_and_a_stop(folder):
    with Server(folder) as server:
        put(server, *["a"] * 4, *["b"] * 4, "")
        server.policy(share_weights="b=3")
        assert order(server, 1) == ["a"]
        server.restart("kill")
        assert order(server, 4) == ["a", "b", "", "b"]  # the tags began anew, all equal
        server.restart()
        assert order(server, 2) == ["a", "b"]


def test_a_purge_takes_all_shares_and_leaves_what_is_leased(server):
    put(server, "a", "a", "b", "")
    held = server.take()
    server.post("/v1/admin/queue/purge", server.here())
    assert order(server) == []
    server.nack(held, delay=0)
    put(server, "b")
    assert sorted(order(server)) == ["a", "b"]


def test_a_shard_has_so_many_shares(folder):
    """limits.shares"""
    with Server(folder, "--limits-shares", "2") as server:
        put(server, "a", "b", "b", "")
        answer = server.post("/enqueue", [{**server.here(), "text": "x", "share": "c"}])
        assert answer.status == 429 and answer.body["limit"] == "shares"
        put(server, "a")
        for got in server.dequeue(limit=100):
            server.ack(got)
        put(server, "c", "d")


def test_why_counts_the_turns_of_others(server):
    put(server, *["a"] * 10)
    id_, = put(server, "b")
    answer = server.get("/why", id=id_, **server.here()).body
    assert answer["reasons"][0]["reason"] == "ahead" and answer["reasons"][0]["ahead"] == 1


def test_a_queue_has_so_many_leases(server):
    put(server, *["a"] * 5, *[""] * 5)
    server.policy(concurrency=3)
    held = server.dequeue(limit=100)
    assert len(held) == 3 and server.dequeue() == []
    server.ack(held[0])
    server.nack(held[1], delay=0)
    assert len(server.dequeue(limit=100)) == 2
    server.policy(concurrency=0)
    assert len(server.dequeue(limit=100)) == 6


def test_a_share_has_so_many_leases(server):
    put(server, *["a"] * 5, *["b"] * 5, *[""] * 5)
    server.policy(share_concurrency=2)
    held = server.dequeue(limit=100)
    assert sorted(base64.b64decode(m["payload"]).decode() for m in held) == ["", "", "a", "a", "b", "b"]
    server.ack(next(m for m in held if m.get("share") == "b"))
    assert order(server) == ["b"]
    id_, = put(server, "a")
    assert server.get("/why", id=id_, **server.here()).body["reason"] == "limit"


def test_a_claim_that_waits_gets_what_the_end_of_a_lease_lets_go(server):
    put(server, "a", "a")
    server.policy(share_concurrency=1)
    held = server.take()
    got = []
    waiting = threading.Thread(target=lambda: got.extend(server.dequeue(wait="60s")))
    waiting.start()
    until(lambda: server.metric('sluice_waiting{shard="0"}') == 1)
    server.ack(held)
    waiting.join(60)
    server.close()
    assert len(got) == 1


@pytest.mark.skipif(ENGINE == "forwarded", reason="the node that owns the shard is not restarted")
def test_limits_and_the_leases_that_count_survive_a_kill(folder):
    with Server(folder) as server:
        put(server, "a", "a", "b", "b")
        server.policy(share_concurrency=1, concurrency=10)
        assert order(server) == ["a", "b"]
        server.restart("kill")
        assert order(server) == []
        assert server.get("/policy", **server.here()).body["concurrency"] == 10


def test_rates_of_a_queue_and_of_shares(server):
    put(server, *["a"] * 5, *["b"] * 5, *[""] * 5)
    server.policy(share_rate=1, share_rate_burst=2)
    assert sorted(order(server)) == ["", "", "a", "a", "b", "b"]
    server.policy(rate=1, rate_burst=4)
    assert len(order(server)) == 4
    id_, = put(server, "a")
    answer = server.get("/why", id=id_, **server.here()).body
    assert answer["reason"] in ("rate", "ahead")


def test_a_claim_that_waits_gets_a_message_at_the_moment_of_a_token(server):
    server.enqueue(*[{"text": str(i), "key": "k"} for i in range(3)])
    server.policy(key_rate=1, key_rate_burst=1)
    for i in range(3):
        got, = server.dequeue(wait="60s")
        assert base64.b64decode(got["payload"]).decode() == str(i)
        server.ack(got)


def test_an_invalid_rate_is_refused(server):
    answer = server.post("/v1/admin/queue/policy", {"share_rate_burst": 2}, **server.here())
    assert answer.status == 400 and "share_rate_burst" in answer.body["message"]


def hold(server, message, scope, retry_after="10m"):
    answer = server.post("/nack", {"receipt": message["receipt"], "retry_after": retry_after, "scope": scope})
    assert answer.status == 200, answer.body
    return answer.body


@pytest.mark.parametrize("scope, others", [("key", ["other", "share"]), ("share", ["share"]), ("queue", [])])
def test_a_nack_holds_all_of_its_scope_back(server, scope, others):
    """PW-F4: one answer "too many requests" slows the whole sender."""
    first, *_ = server.enqueue({"text": "1", "key": "k", "max_attempts": 1}, {"text": "2", "key": "k"},
                               {"text": "other", "key": "o"}, {"text": "share", "share": "s"})
    held, = server.dequeue(limit=1)
    answer = hold(server, held, scope)
    assert not answer["dead"]
    assert sorted(order(server)) == others
    assert server.get("/why", id=first, **server.here()).body["reason"] == "hold"


def test_retry_after_without_a_scope_defers_the_message_alone(server):
    server.enqueue({"text": "1", "max_attempts": 1}, {"text": "2"})
    held, = server.dequeue(limit=1)
    answer = server.post("/nack", {"receipt": held["receipt"], "retry_after": "10m"})
    assert answer.status == 200 and not answer.body["dead"]
    assert order(server) == ["2"]


@pytest.mark.parametrize("wrong", [{"scope": "key"}, {"retry_after": "1s", "scope": "tenant"},
                                   {"retry_after": "1s", "scope": "key", "dead": True}])
def test_an_invalid_hold_is_refused(server, wrong):
    server.enqueue({"text": "1"})
    held, = server.dequeue(limit=1)
    assert server.post("/nack", {"receipt": held["receipt"], **wrong}).status == 400


@pytest.mark.skipif(ENGINE == "forwarded", reason="the node that owns the shard is not restarted")
def test_a_hold_survives_a_kill_and_ends_by_itself(folder):
    with Server(folder) as server:
        server.enqueue({"text": "1", "key": "k"}, {"text": "2", "key": "j"})
        one, two = server.dequeue(limit=2)
        hold(server, one, "key", "10m")
        hold(server, two, "key", "2s")
        server.restart("kill")
        assert [base64.b64decode(m["payload"]).decode() for m in server.dequeue(wait="60s")] == ["2"]
        assert order(server) == []


def test_redis_refuses_shares(folder, tmp_path, monkeypatch):
    with Redis(tmp_path) as redis:
        monkeypatch.setenv("SLUICE_REDIS_ADDRESS", redis.address)
        with Server(folder, engine="redis") as server:
            answer = server.post("/enqueue", [{**server.here(), "text": "x", "share": "a"}])
            assert answer.status == 400 and "engine redis has no shares" in answer.body["message"]
            answer = server.post("/v1/admin/queue/policy", {"share_weights": "a=2"}, **server.here())
            assert answer.status == 400 and "engine redis has no shares" in answer.body["message"]
            server.enqueue({"text": "1"})
            answer = server.post("/nack", {"receipt": server.dequeue()[0]["receipt"], "retry_after": "1s", "scope": "queue"})
            assert answer.status == 400 and "engine redis has no holds" in answer.body["message"]
            for limit in ({"concurrency": 2}, {"rate": 1}, {"share_rate": 1}, {"key_rate": 1}):
                answer = server.post("/v1/admin/queue/policy", limit, **server.here())
                assert answer.status == 400 and "engine redis has no limits" in answer.body["message"]


def test_messages_are_counted_by_priority(server):
    server.enqueue(*({"text": "x", "priority": n % 3} for n in range(10)), {"text": "later", "priority": -5, "delay": "1h"})
    server.enqueue({"text": "another queue", "priority": 1}, topic="other")
    server.dequeue(limit=2)
    found = server.get("/v1/admin/queue/priorities", **server.here()).body
    assert found["priorities"] == [
        {"priority": -5, "messages": 1, "ready": 0, "leased": 0}, {"priority": 0, "messages": 4, "ready": 2, "leased": 2},
        {"priority": 1, "messages": 3, "ready": 3, "leased": 0}, {"priority": 2, "messages": 3, "ready": 3, "leased": 0}]
    assert found["looked"] == 11 and "cursor" not in found
    assert server.get("/v1/admin/queue/priorities", **server.here(topic="none")).status == 404


def test_a_long_queue_is_counted_by_pages(server):
    for _ in range(3):
        server.enqueue(*({"priority": n % 2, "text": ""} for n in range(4500)))
    server.enqueue(*({"text": "", "priority": n} for n in range(20)), topic="short")
    found = server.get("/v1/admin/queue/priorities", **server.here()).body
    assert [p["messages"] for p in found["priorities"]] == [6750, 6750] and found["looked"] == 13500
    short = server.get("/v1/admin/queue/priorities", **server.here(topic="short")).body
    assert [(p["priority"], p["messages"]) for p in short["priorities"]] == [(n, 1) for n in range(20)]


def test_each_share_shows_how_long_its_oldest_message_has_waited(server):
    def ages():
        rows = server.get("/v1/admin/queue/limits", **server.here(order="messages")).body["limits"]
        return {row.get("name", ""): row.get("oldest_ready_ms") for row in rows}

    put(server, "old", "")
    until(lambda: ages()["old"] > 50 and ages()[""] > 50)
    put(server, "new", "old")
    assert ages()["new"] < ages()["old"]
    server.dequeue(limit=100)
    assert set(ages().values()) == {None}
