"""POST /enqueue: what it takes, what it answers, what it refuses."""
import base64
import json
import time

import pytest

from served import seconds_of, texts, until


def b64(data):
    return base64.b64encode(data).decode()


def test_a_hundred_items_give_a_hundred_ids_in_order(server):
    """MQ-01, MQ-03"""
    ids = server.enqueue(*({"text": f"m{i}"} for i in range(100)))
    assert len(ids) == 100 and ids == sorted(set(ids))
    messages = server.dequeue(limit=1000)
    found = dict(zip((m["id"] for m in messages), texts(messages)))
    assert [found[i] for i in ids] == [f"m{i}" for i in range(100)]


def test_every_field_of_the_contract_comes_back(server):
    """MQ-02"""
    sent = {"namespace": server.namespace, "topic": "process-refund", "priority": 1,
            "payload": b64(bytes(range(256))), "deliver_after": "2023-10-27T10:00:00Z"}
    assert len(server.post("/enqueue", [sent]).body) == 1
    got, = server.get("/dequeue", namespace=server.namespace, topic="process-refund").body
    assert {k: got[k] for k in sent} == sent


@pytest.mark.parametrize("moment, state", [
    ("2200-01-02T03:04:05.123456789Z", "delayed"),
    ("2023-10-27T10:00:00Z", "ready"),
    ("1970-01-01T00:00:00.000000001Z", "ready"),
])
def test_deliver_after_comes_back_unchanged(server, moment, state):
    """MQ-02"""
    server.enqueue({"deliver_after": moment})
    message, = server.peek(state=state)
    assert message["deliver_after"] == moment


def test_deliver_after_that_has_passed_means_now_and_overtakes_no_message(server):
    server.enqueue({"text": "first"})
    server.enqueue({"text": "second", "deliver_after": "2023-10-27T10:00:00Z"},
                   {"text": "third", "deliver_after": "2022-10-27T10:00:00Z"})
    assert texts(server.dequeue()) == ["first", "second", "third"]


NINE = {"id", "namespace", "topic", "status", "priority", "payload", "deliver_after",
        "lease_expires_at", "created_at"}


def test_a_message_is_shown_with_the_nine_fields_of_its_record(server):
    """MQ-37: whatever state it is in."""
    server.enqueue({"text": "leased", "priority": 0}, {"text": "ready", "key": "k"},
                   {"text": "held", "key": "k"}, {"text": "delayed", "delay": "1h"},
                   {"text": "dead", "priority": 1})
    held = server.take()
    server.nack(server.take(), dead=True)
    shown = {texts([m])[0]: m for m in server.peek(state="all", limit=100)}
    assert {text: m["status"] for text, m in shown.items()} == {t: t for t in shown}
    assert len(shown) == 5
    for message in shown.values():
        assert NINE <= set(message)
        assert message["created_at"] == message["enqueued_at"]
        assert seconds_of(message["created_at"]) == pytest.approx(time.time(), abs=60)
    assert shown.pop("leased")["lease_expires_at"] == held["lease_expires_at"]
    assert {m["lease_expires_at"] for m in shown.values()} == {None}


def test_extras_come_back(server):
    extras = {"key": "käse", "correlation_id": "order 7", "attributes": {"a": [1, "x"]},
              "max_attempts": 3, "content_type": "image/png"}
    server.enqueue({**extras, "payload": b64(b"\x00\xff")})
    got = server.take()
    assert {k: got[k] for k in extras} == extras
    assert got["attempts"] == 1 and got["failure_attempts"] == 0


@pytest.mark.parametrize("given, payload, kind", [
    ({"text": "grüß"}, "grüß".encode(), "text/plain; charset=utf-8"),
    ({"json": {"a": 1}}, b'{"a": 1}', "application/json"),
    ({"json": 5}, b"5", "application/json"),
    ({"payload": b64(b"\x00\x01")}, b"\x00\x01", None),
    ({}, b"", None),
])
def test_a_payload_is_base64_or_text_or_json(server, given, payload, kind):
    server.enqueue(given)
    got = server.take()
    assert base64.b64decode(got["payload"]) == payload
    assert got.get("content_type") == kind


def detail(server, *items):
    return server.post("/enqueue", [server.here(**item) for item in items], detail=1)


def test_the_answer_says_which_items_are_duplicates(server):
    first, again, other = detail(server, {"idempotency_key": "a"}, {"idempotency_key": "a"},
                                 {"idempotency_key": "b"}).body
    assert [m["duplicate"] for m in (first, again, other)] == [False, True, False]
    assert again == {**first, "duplicate": True} and other["id"] != first["id"]
    plain, known = detail(server, {"text": "x"}, {"idempotency_key": "b"}).body
    assert not plain["duplicate"] and known == {**other, "duplicate": True}
    got = server.dequeue(limit=10)
    assert {m["id"]: m["uid"] for m in got} == {m["id"]: m["uid"] for m in (first, other, plain)}


@pytest.mark.parametrize("value", ["2", "yes", "true"])
def test_detail_is_1_or_absent(server, value):
    answer = server.post("/enqueue", [server.here()], detail=value)
    assert answer.status == 400 and "detail: expected 1" in answer.body["message"]


@pytest.mark.parametrize("size", [10, 3_000_000], ids=["small", "in a file"])
def test_a_strict_topic_refuses_another_payload_under_a_known_key(server, size):
    server.policy(idempotency="strict")
    one, two = ({"text": c * size, "idempotency_key": "k"} for c in "ab")
    first, = detail(server, one).body
    again, = detail(server, {**one, "priority": 1, "attributes": {"x": 1}}).body
    assert again == {**first, "duplicate": True}, "only payloads are compared"
    answer = detail(server, {"text": "new"}, two)
    assert answer.status == 409 and answer.body["error"] == "idempotency_conflict"
    assert answer.body["index"] == 1 and "idempotency key k" in answer.body["message"]
    assert server.stats()["total"] == 1, "nothing of the call was accepted"


def test_a_window_of_a_second_swallows_messages_for_a_second(server):
    server.policy(idempotency_window="1s")
    first, = server.enqueue({"idempotency_key": "k"})
    server.ack(server.take())
    until(lambda: not detail(server, {"idempotency_key": "k"}).body[0]["duplicate"])


def test_ids_can_be_had_as_uuids(server):
    uid, = server.post("/enqueue", [server.here()], ids="uid").body
    assert isinstance(uid, str)
    got = server.take()
    assert got["uid"] == uid
    assert server.post("/ack", server.here(id=uid)).status == 200


@pytest.mark.parametrize("priority", [5, "normal", None])
def test_normal_is_five_and_the_default(server, priority):
    server.enqueue({} if priority is None else {"priority": priority})
    assert server.take()["priority"] == 5


def test_names_are_folded(server):
    server.enqueue({"namespace": server.namespace.upper(), "topic": "MAIL"})
    assert len(server.dequeue()) == 1


BAD = [
    ("not json", "{", "expected"),
    ("not an array", 7, "expected an array"),
    ("an empty object", {}, "expected a member"),
    ("empty", [], "at least one item"),
    ("not an object", [5], "expected an object"),
    ("no namespace", [{"topic": "b"}], "namespace"),
    ("no topic", [{"namespace": "a"}], "topic"),
    ("bad name", [{"namespace": "a b", "topic": "b"}], "namespace"),
    ("reserved name", [{"namespace": ".a", "topic": "b"}], "dot"),
    ("unknown member", [{"namespace": "a", "topic": "b", "prioritty": 1}], "prioritty"),
    ("bad priority", [{"namespace": "a", "topic": "b", "priority": "urgent"}], "urgent"),
    ("huge priority", [{"namespace": "a", "topic": "b", "priority": 2**31}], "priority"),
    ("bad base64", [{"namespace": "a", "topic": "b", "payload": "%%%"}], "payload"),
    ("two payloads", [{"namespace": "a", "topic": "b", "payload": "", "text": "x"}], "one of"),
    ("bad time", [{"namespace": "a", "topic": "b", "deliver_after": "tomorrow"}], "deliver_after"),
    ("two times", [{"namespace": "a", "topic": "b", "delay": 1,
                    "deliver_after": "2023-10-27T10:00:00Z"}], "not both"),
    ("bad delay", [{"namespace": "a", "topic": "b", "delay": -1}], "delay"),
    ("empty key", [{"namespace": "a", "topic": "b", "key": ""}], "key"),
    ("control in key", [{"namespace": "a", "topic": "b", "key": "a\nb"}], "key"),
    ("bad attributes", [{"namespace": "a", "topic": "b", "attributes": [1]}], "attributes"),
    ("bad attempts", [{"namespace": "a", "topic": "b", "max_attempts": 0}], "max_attempts"),
]


@pytest.mark.parametrize("body, says", [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_a_bad_request_is_refused_with_a_reason(server, body, says):
    answer = server.post("/enqueue", body)
    assert answer.status == 400, answer
    assert answer.body["error"] == "invalid" and says in answer.body["message"]


def test_a_bad_item_is_named_and_nothing_is_accepted(server):
    items = [server.here(text=str(i)) for i in range(5)]
    items[3]["priority"] = "urgent"
    answer = server.post("/enqueue", items)
    assert answer.status == 400
    assert answer.body["index"] == 3
    assert "item 3" in answer.body["message"] and "urgent" in answer.body["message"]
    assert server.get("/stats", **server.here()).status == 404


def test_ten_thousand_items_go_and_one_more_does_not(server):
    item = server.here()
    answer = server.post("/enqueue", [item] * 10001)
    assert answer.status == 400 and "10000" in answer.body["message"]
    assert server.get("/stats", **server.here()).status == 404
    assert len(set(server.post("/enqueue", [item] * 10000).body)) == 10000
    assert server.stats()["ready"] == 10000


def test_a_body_over_16_mib_is_too_large(server):
    answer = server.post("/enqueue", b" " * (16 * 2**20 + 1))
    assert answer.status == 413 and answer.body["error"] == "too_large"


def test_a_full_queue_refuses_the_whole_call(server):
    server.policy(max_depth=3)
    server.enqueue({}, {})
    answer = server.post("/enqueue", [server.here(), server.here()])
    assert answer.status == 429 and answer.body["error"] == "queue_full"
    assert answer.headers["Retry-After"]
    assert server.stats()["total"] == 2
    assert len(server.enqueue({})) == 1


def test_an_idempotency_key_gives_one_item_and_the_same_id(server):
    """MQ-41"""
    first = server.enqueue({"text": "a", "idempotency_key": "order-1"})
    again = server.enqueue({"text": "b", "idempotency_key": "order-1"})
    other = server.enqueue({"text": "c", "idempotency_key": "order-2"})
    assert first == again != other
    assert sorted(texts(server.dequeue())) == ["a", "c"]


def test_an_idempotency_key_is_known_after_the_ack(server):
    first = server.enqueue({"idempotency_key": "k"})
    server.ack(server.take())
    assert server.enqueue({"idempotency_key": "k"}) == first
    assert server.dequeue() == []


def test_an_idempotency_key_is_of_one_namespace(server):
    """MQ-41"""
    first = server.enqueue({"idempotency_key": "k"})
    other = server.enqueue({"idempotency_key": "k", "namespace": server.namespace + "-b"})
    assert first != other


def test_a_future_item_is_not_returned_before_its_time(server):
    """MQ-18"""
    due = time.time() + 0.4
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(due)) + f"{due % 1:.6f}"[1:] + "Z"
    server.enqueue({"text": "later", "deliver_after": stamp}, {"text": "now"})
    assert texts(server.dequeue()) == ["now"]
    assert server.stats()["delayed"] == 1
    message, = server.dequeue(wait=10)
    assert time.time() >= due
    assert seconds_of(message["deliver_after"]) == pytest.approx(due, abs=1e-5)


@pytest.mark.parametrize("delay", [0.3, "300ms", "0.3"])
def test_a_delay_is_seconds_or_a_duration(server, delay):
    begin = time.monotonic()
    server.enqueue({"delay": delay})
    assert server.dequeue() == []
    assert len(server.dequeue(wait=10)) == 1
    assert time.monotonic() - begin >= 0.3


def test_a_ttl_sends_to_the_dead_letters(server):
    server.enqueue({"text": "old", "ttl": "50ms"})
    dead, = until(lambda: server.dlq())
    assert dead["reason"] == "expired" and texts([dead]) == ["old"]
    assert server.dequeue() == []


def test_answers_echo_the_ids_of_the_request(server):
    """X-16"""
    answer = server.call("POST", "/enqueue", [server.here()],
                         headers={"X-Request-Id": "r-1", "X-Correlation-Id": "c 2"})
    assert answer.headers["X-Request-Id"] == "r-1"
    assert answer.headers["X-Correlation-Id"] == "c 2"
    answer = server.call("POST", "/enqueue", "[", headers={"X-Request-Id": "x" * 129})
    assert answer.status == 400 and answer.headers["X-Request-Id"] is None


def test_a_payload_of_9_mib_comes_back_whole(server):
    payload = b64(json.dumps(list(range(1000))).encode() * 2000)
    server.enqueue({"payload": payload})
    assert server.take()["payload"] == payload


def test_one_object_is_answered_as_an_array_of_one(server):
    """No brackets are needed for one message."""
    answer = server.post("/enqueue", server.here(text="alone"))
    assert answer.status == 200 and len(answer.body) == 1, answer
    assert texts(server.dequeue()) == ["alone"]
    refused = server.post("/enqueue", server.here(priority="urgent"))
    assert refused.status == 400 and "index" not in refused.body
    assert refused.body["message"].startswith("priority: "), refused


def test_a_topic_may_be_called_a_queue(server):
    """Both words are taken by every call and given in every answer."""
    place = {"namespace": server.namespace, "queue": "Mail"}
    assert server.post("/enqueue", {**place, "text": "a"}).status == 200
    both = {**place, "topic": "mail", "text": "b"}
    assert server.post("/enqueue", [both, {**both, "queue": "MAIL"}]).status == 200
    for path in ("/peek", "/stats", "/policy", "/dlq", "/v1/admin/queue", "/v1/admin/messages"):
        assert server.get(path, **place).status == 200, path
    assert server.get("/stats", **place).body["queue"] == "mail"
    assert server.get("/policy", **place).body["queue"] == "mail"
    assert server.get("/topics", namespace=server.namespace).body["topics"][0]["queue"] == "mail"
    assert server.get("/peek", **place).body["messages"][0]["queue"] == "mail"
    one, = server.get("/dequeue", **place, limit=1).body
    two, = server.post("/dequeue", {**place, "topic": "mail", "limit": 1}).body
    assert one["queue"] == one["topic"] == "mail"
    assert server.post("/ack", {**place, "id": one["id"]}).status == 200
    assert server.post("/nack", {**place, "id": two["id"], "dead": True}).status == 200
    assert server.post("/dlq/redrive", {**place, "limit": 1}).body["redriven"] == 1


def test_two_queues_in_one_call_are_refused(server):
    place = {"namespace": server.namespace, "topic": "mail", "queue": "post"}
    for path in ("/dequeue", "/peek", "/stats", "/policy", "/dlq"):
        answer = server.get(path, **place)
        assert answer.status == 400, path
        assert "expected the same value as topic" in answer.body["message"], answer
    for path in ("/enqueue", "/dequeue", "/dlq/redrive"):
        answer = server.post(path, place)
        assert answer.status == 400, path
        assert "expected the same value as topic" in answer.body["message"], answer
    answer = server.post("/ack", {**place, "id": 1})
    assert answer.status == 400 and "queue" in answer.body["message"]
    twice = server.call("GET", f"/stats?namespace={server.namespace}&queue=a&queue=a")
    assert twice.status == 400 and "given twice" in twice.body["message"]
    assert "queue or topic" in server.get("/stats", namespace=server.namespace).body["message"]
