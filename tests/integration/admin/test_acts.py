"""Acts on one message that waits: run now, delay, priority, move, edit (docs/api.md)."""
import base64
import json

import pytest

from served import LOG, QUICK, Server, until


def act(server, verb, id, status=200, **more):
    answer = server.post(f"/v1/admin/message/{verb}", {**server.here(), "id": id, **more})
    assert answer.status == status, answer
    return answer.body


def show(server, id):
    answer = server.get("/v1/admin/message", namespace=server.namespace, id=id)
    return answer.body if answer.status == 200 else None


def send(server, **item):
    return server.enqueue({"text": "x", **item})[0]


def test_a_delayed_message_runs_now_and_stays_the_same(server):
    id = send(server, delay="1h", correlation_id="c")
    done = act(server, "run", id)
    assert done["id"] == id and done["before"]["deliver_after"] > show(server, id)["enqueued_at"]
    assert done["version"] == show(server, id)["version"]
    assert [m["id"] for m in server.dequeue()] == [id]


def test_run_now_of_what_is_not_delayed_is_refused(server):
    assert "is not delayed" in act(server, "run", send(server), 409)["message"]


def test_a_delay_is_set_and_undone_by_its_version(server):
    id = send(server)
    before = show(server, id)
    done = act(server, "delay", id, delay="1h")
    assert done["id"] == id and server.dequeue() == []
    assert show(server, id)["status"] == "delayed" and show(server, id)["version"] == done["version"] != before["version"]
    back = act(server, "delay", id, version=done["version"], until=done["before"]["deliver_after"])
    assert done["before"]["deliver_after"] == before["deliver_after"] and back["version"] == show(server, id)["version"]
    assert [m["id"] for m in server.dequeue()] == [id]


def test_an_undo_is_refused_if_something_changed_since(server):
    done = act(server, "priority", send(server), priority=1)
    message = server.take()
    assert message["id"] == done["id"]
    server.nack(message, defer=True, delay=0)
    assert "has changed" in act(server, "priority", done["id"], 409, version=done["version"], priority=5)["message"]
    assert show(server, done["id"])["priority"] == 1


def test_an_undo_is_refused_if_somebody_else_has_changed_the_priority(server):
    id = send(server)
    done = act(server, "priority", id, priority=1)
    act(server, "priority", id, priority=3)
    assert "has changed" in act(server, "priority", id, 409, version=done["version"], priority=5)["message"]
    assert show(server, id)["priority"] == 3


def test_a_priority_is_changed_and_the_rest_stays(server):
    first = send(server)
    id = send(server, share="gold", correlation_id="c", attributes={"a": 1}, ttl="1h", max_attempts=3, content_type="text/x")
    before = show(server, id)
    done = act(server, "priority", id, priority="high")
    assert done["before"]["priority"] == 5
    after = show(server, done["id"])
    for name in ("share", "correlation_id", "attributes", "max_attempts", "content_type", "payload", "expires_at", "deliver_after"):
        assert after[name] == before[name], name
    assert done["id"] == id and [m["id"] for m in server.dequeue(limit=2)] == [id, first]


def test_a_message_of_a_key_keeps_its_place_in_it(server):
    first, second, third = (send(server, key="k") for _ in range(3))
    other = send(server, priority=3)
    assert act(server, "priority", third, priority=0)["id"] == third
    assert act(server, "priority", first, priority=4)["id"] == first
    got = []
    for _ in range(4):
        got.append(server.take())
        server.ack(got[-1])
    assert [m["id"] for m in got] == [other, first, second, third]
    assert [m["priority"] for m in got] == [3, 4, 5, 0]


def test_a_delayed_message_of_a_key_joins_it_when_it_is_due(server):
    late, next = send(server, key="k", delay="1h"), send(server, key="k")
    assert act(server, "delay", late, delay=0)["id"] == late
    assert show(server, late)["status"] == "held"
    for id in (next, late):
        message = server.take()
        assert message["id"] == id
        server.ack(message)


def test_what_was_changed_is_there_after_a_restart(tmp_path):
    with Server(tmp_path / "data", engine="log") as server:
        ids = [send(server) for _ in range(4)]
        act(server, "priority", ids[3], priority=1)
        act(server, "delay", ids[0], delay="1h")
        act(server, "delay", ids[1], delay="1h")
        act(server, "delay", ids[1], delay=0)
        shown = [show(server, id) for id in ids]
        server.restart("kill")
        assert [show(server, id) for id in ids] == shown
        assert [m["id"] for m in server.dequeue(limit=4)] == [ids[3], ids[2], ids[1]]


def test_a_message_is_moved_to_another_queue_and_back(server):
    home, id = server.topic, send(server)
    done = act(server, "move", id, to="elsewhere-" + home)
    server.topic = "elsewhere-" + home
    assert show(server, done["id"])["queue"] == server.topic
    back = act(server, "move", done["id"], to=done["before"]["queue"])
    server.topic = home
    assert [m["id"] for m in server.dequeue()] == [back["id"]]


@pytest.mark.parametrize("body, payload", [
    ({"text": "new"}, b"new"), ({"json": {"n": 12345678901234567890123}}, b'{"n": 12345678901234567890123}'),
    ({"payload": base64.b64encode(b"\0\1").decode()}, b"\0\1")])
def test_a_body_is_edited(server, body, payload):
    id = send(server, key="k", delay="1h")
    done = act(server, "edit", id, **body)
    assert base64.b64decode(show(server, done["id"])["payload"]) == payload and show(server, done["id"])["key"] == "k"


def test_an_edited_message_expires_when_it_would_have(server):
    id = send(server, ttl="1h")
    before = show(server, id)
    done = act(server, "edit", id, text="new")
    assert show(server, done["id"])["expires_at"] == before["expires_at"] is not None


def test_a_dead_letter_is_edited_and_requeued(server):
    id = send(server, max_attempts=1, key="k")
    server.nack(server.take(), error="bad body")
    done = act(server, "edit", id, text="good body")
    assert server.dlq() == [] and [m["id"] for m in server.dequeue()] == [done["id"]]


@pytest.mark.parametrize("verb, more", [
    ("delay", {"delay": "1m"}), ("move", {"to": "other"}), ("edit", {"text": "y"})])
def test_what_would_break_the_order_of_a_key_is_refused_by_name(server, verb, more):
    first, second = send(server, key="customer-7"), send(server, key="customer-7")
    for id in (first, second):
        assert "key customer-7" in act(server, verb, id, 409, **more)["message"]
    assert "key customer-7" in act(server, "run", send(server, key="customer-7", delay="1h"), 409)["message"]
    assert show(server, first)["status"] == "ready" and show(server, second)["status"] == "held"


def test_a_message_whose_result_is_waited_for_is_refused(server):
    id = send(server, keep_result=60)
    assert "keep_result" in act(server, "edit", id, 409, text="y")["message"]
    assert act(server, "priority", id, priority=1)["id"] == act(server, "delay", id, delay="1h")["id"] == id


def test_what_would_lose_its_unique_key_is_refused(server):
    first = send(server, unique={"key": "u", "until": "done"})
    for verb, more in (("priority", {"priority": 1}), ("delay", {"delay": "1h"})):
        assert act(server, verb, first, **more)["id"] == first
    for verb, more in (("edit", {"text": "new"}), ("move", {"to": "other"})):
        assert "is unique, and would lose its key" in act(server, verb, first, 409, **more)["message"]
    assert send(server, unique={"key": "u", "until": "done"}) == first


def test_a_member_of_a_batch_stays_one_or_is_refused(server):
    batch = server.post("/batches", {"namespace": server.namespace, "callback": {"queue": "over", "text": "all"}}).body["id"]
    member = send(server, batch=batch)
    assert "is a member of a batch" in act(server, "edit", member, 409, text="y")["message"]
    assert act(server, "priority", member, priority=1)["id"] == member
    shown = server.get("/batches", namespace=server.namespace).body["batches"][0]
    assert (shown["members"], shown["failed"]) == (1, 0), shown


def test_a_leased_message_is_refused(server):
    id = send(server)
    server.take()
    for verb, more in (("run", {}), ("delay", {"delay": 1}), ("priority", {"priority": 1}), ("move", {"to": "o"}), ("edit", {"text": "y"})):
        assert "is leased" in act(server, verb, id, 409, **more)["message"]


@pytest.mark.parametrize("verb, more", [
    ("run", {"delay": 1}), ("delay", {}), ("delay", {"delay": 1, "until": "2030-01-01T00:00:00Z"}), ("priority", {"priority": "big"}),
    ("move", {"to": "a b"}), ("edit", {}), ("edit", {"text": "x", "json": 1}), ("priority", {"priority": 1, "text": "x"})])
def test_a_bad_question_is_refused(server, verb, more):
    act(server, verb, send(server), 400, **more)


def test_an_idempotency_key_is_remembered_for_the_first_message(server):
    id = send(server, idempotency_key="once")
    act(server, "priority", id, priority=1)
    assert send(server, idempotency_key="once") == id


def test_an_action_is_in_the_audit(tmp_path):
    with Server(tmp_path / "data", "--audit-file", str(tmp_path / "audit"), engine=QUICK) as server:
        id = send(server)
        act(server, "priority", id, priority=1)

        def lines():
            return [json.loads(text) for text in (tmp_path / "audit").read_text().splitlines()]

        until(lambda: any(line["verb"] == "adjust" and str(id) in line["ids"] for line in lines()))


# --- attempts -------------------------------------------------------------------------------------

def test_the_last_attempts_of_a_message_are_shown(server):
    server.policy(max_attempts=2)
    id = send(server)
    assert "attempts_log" not in show(server, id)
    server.nack(server.take(), error="boom", delay=0)
    server.nack(server.take(), error="no such user")
    message = show(server, id)
    assert message["status"] == "dead" and message["error"] == "no such user"
    first, last = message["attempts_log"]
    assert (first["attempt"], first["outcome"], first["error"]) == (1, "failed", "boom")
    assert (last["attempt"], last["outcome"], last["error"]) == (2, "failed", "no such user")
    assert 0 <= first["took_ms"] < 60_000 and first["at"] <= last["at"] and first["fencing_token"] < last["fencing_token"]
    dead = server.get("/dlq", **server.here()).body["messages"]
    assert dead[0]["error"] == "no such user"
    found = server.get("/v1/admin/dlq", **server.here(error="such user")).body["messages"]
    assert [m["id"] for m in found] == [id]
    assert server.get("/v1/admin/dlq", **server.here(error="boom")).body["messages"] == [], "in the last error"


def test_an_attempt_ends_with_its_lease(server):
    id = send(server)
    server.take(lease="50ms")
    server.ack(server.take(wait=10))
    assert show(server, id) is None
    id = send(server)
    server.take(lease="50ms")
    message = server.take(wait=10)
    one, = show(server, id)["attempts_log"]
    assert one["outcome"] == "expired" and "error" not in one and one["took_ms"] == 50
    server.ack(message)


# --- cancel ---------------------------------------------------------------------------------------

def cancel(server, id, status=200):
    answer = server.post("/v1/admin/message/cancel", {"namespace": server.namespace, "id": id})
    assert answer.status == status, answer
    return answer.body


def test_a_worker_learns_at_the_next_extend_that_its_message_is_canceled(server):
    first, second = server.enqueue({"text": "x", "key": "k"}, {"text": "y", "key": "k"})
    message = server.take()
    done = cancel(server, first)
    assert done["running"] and done["lease_expires_at"] == message["lease_expires_at"]
    assert show(server, first)["canceled"] is True
    answer = server.settle("/extend", message)
    assert (answer.status, answer.body["error"]) == (409, "message_canceled")
    assert server.dequeue() == [], "its key is held"
    outcome, = server.post("/extend", [{"receipt": message["receipt"]}]).body
    assert (outcome["status"], outcome["error"]) == (409, "message_canceled")
    assert server.nack(message, error="stopped", delay=0)["dead"] is False
    assert show(server, first) is None
    assert server.take()["id"] == second


def test_a_message_that_waits_is_canceled_at_once(server):
    id = send(server, delay="1h")
    assert cancel(server, id)["running"] is False
    assert show(server, id) is None
    assert "no message" in cancel(server, id, 404)["message"]


def test_the_version_of_an_edit_is_that_of_the_new_message(tmp_path):
    """So that an undo of it, with this version, is accepted."""
    with Server(tmp_path / "data", "--sync", "none", engine=LOG) as server:
        server.enqueue({"text": "as it was"})
        uid = server.get("/v1/admin/messages", **server.here()).body["messages"][0]["uid"]
        for text in ("as it is", "as it was"):
            answer = server.post("/v1/admin/message/edit", server.here(id=uid, text=text)).body
            now = server.get("/v1/admin/message", namespace=server.namespace, id=answer["uid"]).body
            assert now["version"] == answer["version"]
            uid = answer["uid"]
