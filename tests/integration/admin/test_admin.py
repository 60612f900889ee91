"""/v1/admin: queues, messages, dead letters, log level, settings, backup."""
import json
import threading

import pytest

from served import ENGINE, Server, texts, until


def admin(server, path, **params):
    answer = server.get("/v1/admin/" + path, **params)
    assert answer.status == 200, answer
    return answer.body


def tell(server, path, **body):
    answer = server.post("/v1/admin/" + path, body)
    assert answer.status == 200, answer
    return answer.body


def die(server, n, error="no such account", **common):
    """n dead letters; their ids, oldest first."""
    ids = server.enqueue(*[{"text": f"letter {i}"} for i in range(n)], **common)
    for message in server.dequeue(limit=n):
        server.nack(message, dead=True, error=error)
    return ids


def pages(server, path, member, **params):
    """All of a list, and how many pages it took."""
    found, n, cursor = [], 0, None
    while n == 0 or cursor:
        page = admin(server, path, **params, **({"cursor": cursor} if cursor else {}))
        found += page[member]
        cursor = page.get("cursor")
        n += 1
    return found, n


# --- queues ----------------------------------------------------------------------

def test_queues_are_listed_page_by_page_of_one_namespace_or_of_all(server):
    for i in range(5):
        server.enqueue({"text": "x", "topic": f"q{i}"})
    own, n = pages(server, "queues", "queues", namespace=server.namespace, limit=2)
    assert [q["topic"] for q in own] == [f"q{i}" for i in range(5)] and n >= 3
    assert all(q["ready"] == 1 and q["oldest_ready_ms"] >= 0 for q in own)
    everything, _ = pages(server, "queues", "queues", limit=1000)
    assert [q for q in everything if q["namespace"] == server.namespace] and own
    assert len(everything) >= 5


def test_a_queue_is_shown_with_its_counts_and_its_policy(server):
    server.policy(max_attempts=7)
    server.enqueue({"text": "a"}, {"text": "b"}, {"text": "c", "delay": "1h"})
    server.ack(server.take())
    queue = admin(server, "queue", **server.here())
    assert (queue["ready"], queue["delayed"], queue["total"]) == (1, 1, 2)
    assert queue["since_start"] == {"accepted": 3, "delivered": 1, "finished": 1, "failed": 0,
                                    "died": 0}
    assert queue["policy"]["max_attempts"] == 7


@pytest.mark.parametrize("method, path", [
    ("GET", "queue"), ("POST", "queue/pause"), ("POST", "queue/drain"), ("POST", "queue/resume"), ("POST", "queue/purge")])
def test_a_queue_that_is_not_there_is_named(server, method, path):
    where = {"namespace": server.namespace, "topic": "tpyo"}
    answer = server.get("/v1/admin/" + path, **where) if method == "GET" \
        else server.post("/v1/admin/" + path, where)
    assert answer.status == 404
    assert "tpyo" in answer.body["message"] and server.namespace in answer.body["message"]


def test_a_paused_queue_hands_out_nothing_until_it_is_resumed(server):
    server.enqueue({"text": "held"})
    held = server.take()
    assert tell(server, "queue/pause", **server.here())["paused"] is True
    server.enqueue({"text": "taken all the same"})
    assert server.dequeue() == []
    server.ack(held)
    assert server.stats()["paused"] is True
    assert tell(server, "queue/resume", **server.here())["paused"] is False
    assert texts(server.dequeue()) == ["taken all the same"]


def test_a_waiting_claim_stays_parked_through_a_pause(server):
    tell_pause = {**server.here()}
    server.enqueue({"text": "to be there"})
    server.ack(server.take())
    got = []
    waiting = threading.Thread(target=lambda: got.append(server.dequeue(wait=50)))
    before = server.metric('sluice_waiting{shard="0"}')
    waiting.start()
    until(lambda: server.metric('sluice_waiting{shard="0"}') > before)
    tell(server, "queue/pause", **tell_pause)
    server.enqueue({"text": "while paused"})
    assert server.metric('sluice_waiting{shard="0"}') == before + 1
    assert server.stats()["ready"] == 1 and not got
    tell(server, "queue/resume", **tell_pause)
    waiting.join(50)
    assert texts(got[0]) == ["while paused"]


def test_a_pause_survives_a_restart(folder):
    with Server(folder) as server:
        server.enqueue({"text": "x"})
        tell(server, "queue/pause", **server.here())
        server.restart("kill")
        assert server.stats()["paused"] is True and server.dequeue() == []


@pytest.mark.skipif(ENGINE == "redis", reason="keeps no reason and no end")
def test_a_pause_says_why_and_ends_at_its_time(folder):
    with Server(folder) as server:
        one, = server.enqueue({"text": "x"})
        paused = tell(server, "queue/pause", **server.here(), reason="the <b>relay</b> is down", **{"for": "1h"})
        assert paused["pause_reason"] == "the <b>relay</b> is down" and paused["paused_until"]
        server.restart("kill")
        shown = admin(server, "queue", **server.here())
        assert shown["paused"] and shown["paused_until"] == paused["paused_until"]
        listed, = admin(server, "queues", namespace=server.namespace)["queues"]
        assert listed["pause_reason"] == paused["pause_reason"]
        why = server.get("/why", namespace=server.namespace, id=one).body
        assert why["reason"] == "paused" and why["reasons"][0]["until"] == paused["paused_until"]
        assert "because the <b>relay</b> is down until " in why["text"]
        assert tell(server, "queue/resume", **server.here()).keys() == {"namespace", "topic", "queue", "paused"}
        tell(server, "queue/pause", **server.here(), **{"for": "10ms"})
        assert texts(server.dequeue(wait=30)) == ["x"]  # nobody resumes it
        assert "paused_until" not in admin(server, "queue", **server.here())


def test_a_queue_that_is_drained_refuses_what_is_new_by_name(folder):
    with Server(folder) as server:
        one, = server.enqueue({"text": "known", "idempotency_key": "k"})
        assert tell(server, "queue/drain", **server.here())["draining"] is True
        server.restart("kill")
        refused = server.post("/enqueue", {**server.here(), "text": "new"})
        assert (refused.status, refused.body["error"]) == (409, "queue_draining") and "mail" in refused.body["message"], refused
        assert server.enqueue({"text": "known", "idempotency_key": "k"}) == [one]
        held = server.take()
        server.nack(held, delay="0s")
        held = server.take(wait=30)
        assert texts([held]) == ["known"]
        shown, (listed,) = admin(server, "queue", **server.here()), admin(server, "queues", namespace=server.namespace)["queues"]
        assert shown["draining"] and shown["policy"]["draining"] and listed["draining"] and not shown["paused"]
        server.ack(held)
        assert "draining" not in tell(server, "queue/resume", **server.here())
        server.enqueue({"text": "new"})
        assert "draining" not in admin(server, "queue", **server.here())


@pytest.mark.skipif(ENGINE == "redis", reason="has no step over two messages")
def test_nothing_happens_if_the_next_message_is_for_a_queue_that_is_drained(server):
    server.enqueue({"text": "parent"})
    server.enqueue({"text": "x"}, topic="drained")
    tell(server, "queue/drain", **server.here(topic="drained"))
    parent = server.take()
    answer = server.settle("/ack", parent, enqueue={**server.here(topic="drained"), "text": "child"})
    assert (answer.status, answer.body["error"]) == (409, "queue_draining")
    server.ack(parent)


@pytest.mark.skipif(ENGINE == "redis", reason="has no step over two messages")
def test_a_message_of_a_queue_that_is_drained_is_edited_and_none_comes_from_another_queue(server):
    one, = server.enqueue({"text": "x"})
    other, = server.enqueue({"text": "y"}, topic="other")
    tell(server, "queue/drain", **server.here())
    assert tell(server, "message/edit", **server.here(id=one), text="edited")["id"]
    assert texts(server.dequeue()) == ["edited"]
    answer = server.post("/v1/admin/message/move", server.here(topic="other", id=other, to=server.topic))
    assert (answer.status, answer.body["error"]) == (409, "queue_draining"), answer
    assert server.stats(topic="other")["ready"] == 1


def test_a_resume_ends_a_pause_and_a_drain(server):
    server.enqueue({"text": "x"})
    tell(server, "queue/drain", **server.here())
    both = tell(server, "queue/pause", **server.here())
    assert both["paused"] and both["draining"]
    resumed = tell(server, "queue/resume", **server.here())
    assert not resumed["paused"] and "draining" not in resumed


def test_a_reason_has_a_bound(server):
    server.enqueue({"text": "x"})
    answer = server.post("/v1/admin/queue/pause", {**server.here(), "reason": "x" * 201})
    assert answer.status == 400 and "at most 200 bytes" in answer.body["message"] and not server.stats()["paused"]
    assert server.post("/v1/admin/queue/pause", {**server.here(), "for": "-1s"}).status == 400


def test_a_purge_leaves_what_is_leased_or_dead(server):
    die(server, 1)
    server.enqueue({"text": "leased"})
    held = server.take()
    server.enqueue({"text": "a"}, {"text": "b", "delay": "1h"})
    assert tell(server, "queue/purge", **server.here())["purged"] == 2
    stats = server.stats()
    assert (stats["leased"], stats["dead"], stats["total"]) == (1, 1, 2)
    server.ack(held)


def test_the_policy_is_the_same_on_both_paths(server):
    answer = server.call("PUT", "/v1/admin/queue/policy", {"lease": "7s"}, **server.here())
    assert answer.status == 200 and answer.body["lease"] == "7s"
    assert admin(server, "queue/policy", **server.here()) == \
        server.get("/policy", **server.here()).body


# --- browsing --------------------------------------------------------------------

def states(server):
    """A message in every state; their ids by state."""
    ids = {"dead": die(server, 1)[0]}
    ids["leased"] = server.enqueue({"text": "leased", "key": "k"})[0]
    server.take()
    ids["held"] = server.enqueue({"text": "held", "key": "k"})[0]
    ids["ready"] = server.enqueue({"text": "ready"})[0]
    ids["delayed"] = server.enqueue({"text": "delayed", "delay": "1h"})[0]
    return ids


def test_messages_are_browsed_by_state(server):
    ids = states(server)
    for state, id_ in ids.items():
        found, _ = pages(server, "messages", "messages", **server.here(state=state))
        assert [m["id"] for m in found] == [id_], state
    found, _ = pages(server, "messages", "messages", **server.here())
    assert {m["id"] for m in found} == set(ids.values())
    assert server.get("/v1/admin/messages", **server.here(state="redy")).status == 400


def drop(server, topic, **params):
    return server.call("DELETE", f"/v1/admin/queues/{server.namespace}/{topic}", **params)


def test_an_empty_queue_can_be_deleted(server):
    server.enqueue({"text": "x", "topic": "Brief"})
    refused = drop(server, "brief")
    assert (refused.status, refused.body["error"]) == (409, "not_empty")
    assert "queue brief holds 1 messages" in refused.body["message"]
    server.ack(server.take(topic="brief"), topic="brief")
    assert drop(server, "Brief").body == {"namespace": server.namespace, "topic": "brief", "queue": "brief",
                                          "deleted": True, "messages": 0}
    gone = drop(server, "brief")
    assert gone.status == 404 and f"namespace {server.namespace} has no queue brief" in gone.text
    assert server.get("/stats", **server.here(topic="brief")).status == 404


def test_by_force_a_queue_is_deleted_with_all_it_has(server):
    here = server.here(topic="full")
    server.call("PUT", "/policy", {"max_attempts": 9}, **here)
    server.enqueue(*[{"text": "x"}] * 1500, {"text": "later", "delay": "1h"},
                   {"text": "held", "key": "k"}, {"text": "held", "key": "k"}, topic="full")
    leased = server.take(topic="full")
    server.nack(server.take(topic="full"), topic="full", dead=True)
    assert drop(server, "full").status == 409
    answer = drop(server, "full", force="true")
    assert answer.status == 200 and answer.body["messages"] == 1503
    lost = server.post("/ack", {**here, "id": leased["id"], "lease_id": leased["lease_id"]})
    assert lost.status == 404
    assert server.get("/policy", **here).body["max_attempts"] == 5


@pytest.mark.parametrize("path", ["/v1/admin/queues/", "/v1/admin/queues/ns", "/v1/admin/queues/a/b/c",
                                  "/v1/admin/queues/a/.locks", "/v1/admin/queues//q"])
def test_a_path_that_names_no_queue_is_refused(server, path):
    assert server.call("DELETE", path).status == 400


def test_the_first_page_of_a_small_queue_takes_one_call(server):
    for _ in range(20):
        server.enqueue(*[{"text": "x", "topic": "big"}] * 1000)
    server.enqueue({"text": "waits"}, {"text": "later", "delay": "1h"})
    taken = server.take()
    server.enqueue({"text": "next"})
    for state, want in (("ready", ["next"]), ("delayed", ["later"]), ("leased", ["waits"])):
        for path in ("/v1/admin/messages", "/peek"):
            page = server.get(path, **server.here(state=state)).body
            assert texts(page["messages"]) == want and "cursor" not in page, (path, state)
    found = admin(server, "messages", **server.here(text="a"))
    assert texts(found["messages"]) and found["looked"] == 3 and "cursor" not in found
    server.ack(taken)


@pytest.mark.parametrize("params, wanted", [
    ({"key": "k7"}, {7, 17, 27}), ({"correlation_id": "c-11"}, {11}),
    ({"text": "number 2"}, {2, *range(20, 30)}), ({"text": "no such text"}, set()),
    ({"key": "k7", "text": "number 2"}, {27}), ({"older_than": "1h"}, set()),
    ({"newer_than": "1h"}, set(range(30))), ({"reason": "expired"}, set()),
], ids=str)
def test_messages_are_searched(server, params, wanted):
    ids = server.enqueue(*[{"text": f"number {i}", "key": f"k{i % 10}",
                            "correlation_id": f"c-{i}"} for i in range(30)])
    found, _ = pages(server, "messages", "messages", **server.here(**params))
    assert {m["id"] for m in found} == {ids[i] for i in wanted}


def test_a_small_queue_is_found_behind_a_large_one_in_few_pages(server):
    for _ in range(4):
        server.enqueue(*({"text": "x", "topic": "large"} for _ in range(1000)))
    id_, = server.enqueue({"text": "x"})
    found, n = pages(server, "messages", "messages", **server.here())
    assert [m["id"] for m in found] == [id_] and n <= 2


def test_a_large_queue_is_found_behind_a_large_one_in_one_call(server):
    """Although the shard looks at a bounded number of messages at a time."""
    for topic in "large", server.topic:
        for _ in range(9):
            server.enqueue(*({"text": "x", "topic": topic} for _ in range(1000)))
    for path in "/v1/admin/messages", "/peek":
        page = server.get(path, **server.here(state="ready", limit=5)).body
        assert len(page["messages"]) == 5 and "cursor" in page, path
    found, n = pages(server, "messages", "messages", **server.here(limit=1000))
    assert len({m["id"] for m in found}) == 9000 and n <= 12


def test_a_search_goes_on_where_its_page_ended(server):
    ids = server.enqueue(*[{"text": f"needle {i}" if i % 3 == 0 else "hay"} for i in range(3000)])
    found, n = pages(server, "messages", "messages", **server.here(text="needle", limit=7))
    assert sorted(m["id"] for m in found) == sorted(ids[::3])
    assert n >= 1000 // 7


def looks(server, **params):
    """How many messages each page of a search has looked at."""
    looked, cursor = [], None
    while not looked or cursor:
        page = admin(server, "messages", **params, **({"cursor": cursor} if cursor else {}))
        looked.append(page["looked"])
        cursor = page.get("cursor")
    return looked


def test_a_page_of_a_search_looks_at_a_bounded_number(server):
    server.enqueue(*[{"text": "hay"} for _ in range(2500)])
    looked = looks(server, **server.here(text="needle"))
    assert max(looked) <= 1000 and sum(looked) == 2500


def test_a_page_of_a_search_reads_a_bounded_number_of_bytes(server):
    for _ in range(5):
        server.enqueue(*[{"text": "x" * 1_000_000} for _ in range(5)])
    looked = looks(server, **server.here(text="needle"))
    assert max(looked) <= 17 and sum(looked) == 25


LARGE = 3 << 20  # bytes: a payload of this size has a file of its own
PIECE = 65532    # they are read in pieces of


@pytest.mark.parametrize("at", [0, PIECE - 3, 2 * PIECE - 1, LARGE - 6])
def test_large_payloads_are_searched_across_their_pieces(server, at):
    text = "x" * at + "needle" + "y" * (LARGE - at - 6)
    id_, = server.enqueue({"text": text})
    server.enqueue({"text": "needl" + "y" * LARGE})
    found, _ = pages(server, "messages", "messages", **server.here(text="needle"))
    assert [m["id"] for m in found] == [id_] and found[0]["payload_size"] == LARGE


# --- one message -----------------------------------------------------------------

def test_a_message_is_shown_with_its_history(server):
    id_, = server.enqueue({"text": "x", "idempotency_key": "once", "delay": "50ms"})
    message, = server.dequeue(limit=1, wait=30)
    events = lambda: [e["event"] for e in shown()["history"]]
    shown = lambda: admin(server, "message", namespace=server.namespace, id=id_)
    assert events() == ["accepted", "due", "leased"]
    lease = shown()["history"][-1]
    assert lease["attempt"] == 1 and lease["until"] == message["lease_expires_at"]
    assert shown()["idempotency_key"] == "once"
    server.nack(message, error="first", delay="1h")
    assert events() == ["accepted", "due", "retry"]
    assert (shown()["error"], shown()["failure_attempts"]) == ("first", 1)


def test_a_dead_letter_tells_why(server):
    id_, = die(server, 1, error="no such account")
    shown = admin(server, "message", **server.here(id=id_))
    assert shown["history"][-1]["event"] == "dead"
    assert (shown["history"][-1]["reason"], shown["error"]) == ("rejected", "no such account")


def test_a_message_is_deleted_unless_it_is_leased(server):
    kept, gone = server.enqueue({"text": "leased"}, {"text": "gone"})
    held = server.take()
    assert tell(server, "message/delete", namespace=server.namespace, id=gone)["deleted"]
    refused = server.post("/v1/admin/message/delete", {"namespace": server.namespace, "id": kept})
    assert refused.status == 409 and "leased" in refused.body["message"]
    server.ack(held)
    again = server.post("/v1/admin/message/delete", {"namespace": server.namespace, "id": gone})
    assert again.status == 404


def test_an_id_of_another_namespace_is_not_found(server):
    """MQ-36"""
    id_, = server.enqueue({"text": "mine"})
    assert server.get("/v1/admin/message", namespace="thief", id=id_).status == 404
    assert server.post("/v1/admin/message/delete",
                       {"namespace": "thief", "id": id_}).status == 404
    assert server.stats()["ready"] == 1


def test_a_message_is_found_and_deleted_on_whichever_shard_it_is(folder):
    with Server(folder, "--shards", "3", engine="memory") as server:
        ids = [server.enqueue({"text": f"of q{i}", "topic": f"q{i}"})[0] for i in range(12)]
        for i, id_ in enumerate(ids):
            assert admin(server, "message", namespace="test", id=id_)["topic"] == f"q{i}"
            assert tell(server, "message/delete", namespace="test", id=id_)["deleted"]
            assert server.get("/v1/admin/message", namespace="test", id=id_).status == 404


# --- dead letters ----------------------------------------------------------------

def all_of(server, verb, **body):
    """Call after call until there is no more; the sum, and how many calls it took."""
    total, n, cursor = 0, 0, None
    while True:
        page = tell(server, f"dlq/{verb}", **server.here(**body),
                    **({"cursor": cursor} if cursor else {}))
        total += page["redriven" if verb == "redrive" else "deleted"]
        n += 1
        if not page["more"]:
            return total, n
        cursor = page["cursor"]


def test_dead_letters_are_searched_and_redriven_by_their_error(server):
    """X-02: they keep their id and what has happened to them."""
    bad = die(server, 3, error="no such account")
    slow = die(server, 4, error="gateway timeout")
    found, _ = pages(server, "dlq", "messages", **server.here(error="timeout"))
    assert [m["id"] for m in found] == slow
    assert all_of(server, "redrive", error="timeout") == (4, 1)
    again = server.dequeue(limit=10)
    assert sorted(m["id"] for m in again) == sorted(slow)
    assert {(m["attempts"], m["failure_attempts"]) for m in again} == {(2, 0)}
    assert [m["id"] for m in server.dlq()] == bad


def test_a_dry_run_changes_nothing(server):
    die(server, 5)
    page = tell(server, "dlq/redrive", **server.here(dry_run=True, limit=2))
    assert (page["matched"], page["redriven"], page["more"]) == (2, 0, True)
    page = tell(server, "dlq/delete", **server.here(dry_run=True, error="account"))
    assert (page["matched"], page["deleted"], page["more"]) == (5, 0, False)
    assert server.stats()["dead"] == 5


def test_redriving_some_goes_on_behind_those_it_left_alone(server):
    """Every other one matches; two are looked for in a call."""
    odd, even = [], []
    for i in range(10):
        (odd if i % 2 else even).extend(die(server, 1, error="odd" if i % 2 else "even"))
    total, n = all_of(server, "redrive", error="odd", limit=2)
    assert total == 5 and n >= 3
    assert [m["id"] for m in server.dlq()] == even
    total, n = all_of(server, "delete", limit=2)
    assert total == 5 and n >= 3 and server.stats()["dead"] == 0


def test_dead_letters_go_to_another_queue_and_are_gone_here(server):
    id_, = server.enqueue({"json": {"n": 1}, "key": "k", "correlation_id": "c", "priority": 3,
                           "attributes": {"a": 1}, "max_attempts": 9})
    server.nack(server.take(), dead=True, error="wrong queue")
    assert all_of(server, "redrive", to="other") == (1, 1)
    assert server.stats()["dead"] == 0
    moved, = server.dequeue(topic="other")
    assert moved["id"] != id_ and json.loads(texts([moved])[0]) == {"n": 1}
    assert (moved["key"], moved["correlation_id"], moved["priority"], moved["max_attempts"],
            moved["attributes"], moved["attempts"]) == ("k", "c", 3, 9, {"a": 1}, 1)


@pytest.mark.parametrize("shards", [1, 3])
def test_large_payloads_go_to_another_queue_whole(folder, shards):
    text = "".join(f"{i:07} " for i in range(LARGE // 8))
    with Server(folder, "--shards", str(shards)) as server:
        server.enqueue({"text": text}, {"text": "small"})
        for message in server.dequeue():
            server.nack(message, dead=True)
        assert all_of(server, "redrive", to="other")[0] == 2
        assert sorted(map(len, texts(server.dequeue(topic="other")))) == [5, LARGE]
        assert server.stats()["dead"] == 0
        server.restart("kill")
        found, _ = pages(server, "messages", "messages", **server.here(topic="other"))
        assert sorted(m["payload_size"] for m in found) == [5, LARGE]


def test_a_move_that_was_cut_in_between_makes_no_second_one(server):
    """As if the server had been killed after the new one was accepted."""
    id_, = die(server, 1)
    server.enqueue({"text": "letter 0", "topic": "other",
                    "idempotency_key": f"sluice-redrive-{id_}"})
    assert all_of(server, "redrive", to="other") == (1, 1)
    assert server.stats(topic="other")["ready"] == 1 and server.stats()["dead"] == 0


def test_a_full_queue_takes_none_and_they_stay(server):
    die(server, 3)
    server.call("PUT", "/policy", {"max_depth": 2}, namespace=server.namespace, topic="small")
    answer = server.post("/v1/admin/dlq/redrive", server.here(to="small"))
    assert answer.status == 429 and answer.body["error"] == "queue_full"
    assert server.stats()["dead"] == 3


def test_many_dead_letters_move_in_bounded_calls(server):
    die(server, 250)
    total, n = all_of(server, "redrive", to="other")
    assert total == 250 and n >= 3
    assert server.stats(topic="other")["ready"] == 250


def test_named_dead_letters_and_nothing_else(server):
    ids = die(server, 3)
    live, = server.enqueue({"text": "alive"})
    done = tell(server, "dlq/delete", **server.here(ids=[ids[0], live]))
    assert done["deleted"] == 1 and [r["status"] for r in done["results"]] == [200, 404]
    assert tell(server, "dlq/redrive", **server.here(ids=[ids[1]]))["redriven"] == 1
    assert [m["id"] for m in server.dlq()] == ids[2:]


@pytest.mark.parametrize("body, says", [
    ({"topic": "mail"}, "namespace: is required"), ({"limit": 0}, "limit"),
    ({"to": "mail"}, "another queue"), ({"to": "a/b"}, "to:"), ({"reason": "bad"}, "reason"),
    ({"error": "x", "dryrun": True}, "dryrun")], ids=str)
def test_a_wrong_redrive_is_refused_and_says_why(server, body, says):
    die(server, 1)
    where = {} if "topic" in body else server.here()
    answer = server.post("/v1/admin/dlq/redrive", {**where, **body})
    assert answer.status == 400 and says in answer.body["message"], answer
    assert server.stats(topic="mail")["dead"] == 1


# --- the server ------------------------------------------------------------------

def test_the_log_level_changes_while_it_runs(folder):
    with Server(folder, engine="memory") as server:
        assert admin(server, "log-level") == {"level": "info"}
        assert server.call("PUT", "/v1/admin/log-level", {"level": "error"}).body == \
            {"level": "error"}
        wrong = server.call("PUT", "/v1/admin/log-level", {"level": "loud"})
        assert wrong.status == 400 and "debug|info|warn" in wrong.body["message"]
        assert admin(server, "log-level") == {"level": "error"}
        assert admin(server, "config")["log.level"]["value"] == "error"


def test_the_settings_in_force_are_shown(folder):
    with Server(folder, "--drain", "3s", engine="memory") as server:
        config = admin(server, "config")
        assert config["drain"]["value"] == "3s" and config["drain"]["from"] == "flag --drain"


# --- backup ----------------------------------------------------------------------

def read(server, backup, file, at, shard=0):
    """A piece of a file: its description, and its bytes."""
    connection = server.connect()
    connection.request("GET", f"/v1/admin/backup?backup={backup}&shard={shard}"
                              f"&file={file}&at={at}")
    response = connection.getresponse()
    raw = response.read()
    connection.close()
    assert response.status == 200, raw
    head, _, body = raw.partition(b"\n")
    return json.loads(head), body


def copy_file(server, backup, file, shard=0):
    head, content = read(server, backup, file, 0, shard)
    while len(content) < head["bytes"]:
        _, more = read(server, backup, file, len(content), shard)
        content += more
    return head, content


def restore(server, folder):
    """As a client would: a backup into a folder; what the server said at its begin."""
    begun = tell(server, "backup")
    for shard, part in enumerate(begun["shards"]):
        for file in range(part["files"]):
            head, content = copy_file(server, begun["backup"], file, shard)
            path = folder / head["name"]
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "wb") as out:
                out.write(content)
                out.truncate(head["size"])
    assert tell(server, "backup/end", backup=begun["backup"]) == {"ended": True}
    return begun


@pytest.mark.skipif(ENGINE == "forwarded", reason="a backup is of the asked server alone")
@pytest.mark.parametrize("shards", [1, 3])
def test_a_server_starts_on_the_copy_of_a_running_one(tmp_path, shards):
    with Server(tmp_path / "data", "--shards", str(shards)) as server:
        for i in range(20):
            server.enqueue({"text": f"text {i}", "topic": f"q{i % 7}"})
        server.ack(server.take(topic="q0"), topic="q0")
        restore(server, tmp_path / "copy")
        server.enqueue({"text": "later", "topic": "q0"})
    with Server(tmp_path / "copy", "--shards", str(shards)) as server:
        kept = [t for i in range(7) for t in texts(server.dequeue(topic=f"q{i}", limit=100))]
        assert sorted(kept) == sorted(f"text {i}" for i in range(1, 20))


@pytest.mark.skipif(ENGINE == "forwarded", reason="a backup is of the asked server alone")
def test_four_backups_at_a_time_and_none_that_is_over(server):
    server.enqueue({"text": "x"})
    backup, *others = [tell(server, "backup")["backup"] for _ in range(4)]
    busy = server.post("/v1/admin/backup", {})
    assert busy.status == 409 and "4 backups" in busy.body["message"]
    for other in others:
        tell(server, "backup/end", backup=other)
    beyond = server.get("/v1/admin/backup", backup=backup, file=99)
    assert beyond.status == 400 and "backup: 99" in beyond.body["message"]
    assert server.get("/v1/admin/backup", backup=backup, at=2**60).status == 400
    assert server.get("/v1/admin/backup", backup=backup, shard=9).status == 400
    tell(server, "backup/end", backup=backup)
    assert server.get("/v1/admin/backup", backup=backup).status == 404
    assert server.post("/v1/admin/backup/end", {"backup": backup}).status == 404


def test_an_engine_without_files_says_so(folder):
    with Server(folder, engine="memory") as server:
        answer = server.post("/v1/admin/backup", {})
        assert answer.status == 400 and "memory keeps no files" in answer.body["message"]


def test_a_leased_message_shows_when_its_lease_began(server):
    server.enqueue({"text": "x"})
    message, = server.dequeue()
    shown = admin(server, "message", namespace=server.namespace, id=message["id"])
    began, = [e["at"] for e in shown["history"] if e["event"] == "leased"]
    assert shown["claimed_at"] == began and shown["claimed_at"] < shown["lease_expires_at"]
    row, = admin(server, "messages", **server.here(), state="leased")["messages"]
    assert row["claimed_at"] == began
    server.nack(message)
    assert "claimed_at" not in admin(server, "message", namespace=server.namespace, id=message["id"])
