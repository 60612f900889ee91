"""GET and POST /dequeue: what is handed out, in which order, to which client, for how long."""
import base64
import os
import random
import threading
import time

import pytest

import lockd
from served import seconds_of, texts, until


def test_up_to_limit_items_are_returned(server):
    """MQ-24"""
    server.enqueue(*({"text": str(i)} for i in range(5)))
    assert len(server.dequeue(limit=3)) == 3
    assert len(server.dequeue(limit=3)) == 2
    assert server.dequeue(limit=3) == []


def test_the_default_limit_is_ten(server):
    """MQ-26"""
    server.enqueue(*({} for _ in range(12)))
    assert len(server.dequeue()) == 10
    assert len(server.dequeue()) == 2


def test_the_answer_has_the_fields_of_the_contract(server):
    """MQ-22, MQ-27"""
    id_, = server.enqueue({"text": "hello"})
    got = server.take(lease="20s")
    assert got["id"] == id_ and got["payload"] == "aGVsbG8="
    assert seconds_of(got["lease_expires_at"]) == pytest.approx(time.time() + 20, abs=5)
    assert got["lease_id"] == f"l-{got['fencing_token']}"


@pytest.mark.parametrize("params, says", [
    ({"topic": "mail"}, "namespace"),
    ({"namespace": "a"}, "topic"),
    ({}, "namespace"),
    ({"namespace": "a", "topic": "b", "limit": 0}, "limit"),
    ({"namespace": "a", "topic": "b", "limit": 1001}, "limit"),
    ({"namespace": "a", "topic": "b", "limit": "x"}, "limit"),
    ({"namespace": "a", "topic": "b", "wait": "soon"}, "wait"),
    ({"namespace": "a", "topic": "b", "wait": "2h"}, "wait"),
    ({"namespace": "a", "topic": "b", "lease": "13h"}, "lease"),
    ({"namespace": "a", "topic": "b", "lease": 0}, "lease"),
    ({"namespace": "a", "topic": "b/c"}, "topic"),
    ({"namespace": "a", "topic": "b", "limt": 1}, "limt"),
])
def test_a_bad_parameter_is_refused_by_name(server, params, says):
    """MQ-25"""
    answer = server.get("/dequeue", **params)
    assert answer.status == 400
    assert answer.body["error"] == "invalid" and says in answer.body["message"]


def test_post_takes_a_query_or_a_body(server):
    server.enqueue({"text": "a"}, {"text": "b"}, {"text": "c"})
    assert len(server.post("/dequeue", **server.here(limit=1)).body) == 1
    assert len(server.post("/dequeue", server.here(limit=1, lease="10s")).body) == 1
    assert server.post("/dequeue", server.here(), limit=1).status == 400
    assert server.post("/dequeue", server.here(limit=[1])).status == 400


def test_answers_are_not_stored_and_head_is_refused(server):
    assert server.get("/dequeue", **server.here()).headers["Cache-Control"] == "no-store"
    server.enqueue({})
    assert server.call("HEAD", "/dequeue", **server.here()).status == 405
    assert server.stats()["ready"] == 1


def test_a_thousand_random_items_come_out_sorted(server):
    """MQ-19: by priority, then by due time."""
    dice = random.Random(7)
    second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + 2))
    items = [{"priority": dice.randint(-3, 3),
              "deliver_after": f"{second}.{dice.randint(0, 999):03}5Z"} for _ in range(1000)]
    server.enqueue(*items)
    until(lambda: server.stats()["ready"] == 1000)
    got = [m for _ in range(10) for m in server.dequeue(limit=100)]
    order = [(m["priority"], m["deliver_after"]) for m in got]
    assert len(order) == 1000 and order == sorted(order)
    assert sorted(order) == sorted((i["priority"], i["deliver_after"]) for i in items)


def test_lower_numbers_go_first(server):
    """MQ-39"""
    server.enqueue({"text": "low", "priority": "low"}, {"text": "five"},
                   {"text": "zero", "priority": 0}, {"text": "minus", "priority": -1})
    assert texts(server.dequeue()) == ["minus", "zero", "five", "low"]


def test_an_urgent_item_is_next_also_when_it_came_last(server):
    """MQ-29"""
    server.enqueue(*({"text": "slow"} for _ in range(50)))
    server.dequeue(limit=5)
    server.enqueue({"text": "urgent", "priority": 0})
    assert texts(server.dequeue(limit=1)) == ["urgent"]


def test_a_new_topic_is_served_without_configuration(server):
    """MQ-17, MQ-28"""
    server.topic = "never-heard-of"
    server.enqueue({"text": "hello"})
    assert texts(server.dequeue()) == ["hello"]


def test_eight_readers_never_take_the_same_item(server):
    """MQ-21"""
    for _ in range(20):
        server.enqueue(*({} for _ in range(100)))
    taken = [[] for _ in range(8)]
    here = server.here(limit=7)

    def read(mine):
        while True:
            got = server.get("/dequeue", **here).body
            if not got:
                server.close()
                return
            mine += [m["id"] for m in got]

    threads = [threading.Thread(target=read, args=(mine,)) for mine in taken]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    ids = sum(taken, [])
    assert len(ids) == len(set(ids)) == 2000


def test_a_key_is_delivered_one_at_a_time_in_order(server):
    server.enqueue({"key": "a", "text": "a1"}, {"key": "a", "text": "a2", "priority": 0},
                   {"key": "b", "text": "b1"})
    first = server.dequeue()
    assert texts(first) == ["a1", "b1"]
    assert server.stats()["held"] == 1
    server.ack(first[0])
    assert texts(server.dequeue()) == ["a2"]


def test_a_retry_holds_its_key_and_no_other(server):
    server.policy(retry={"kind": "fixed", "base": "150ms", "jitter": "none"})
    server.enqueue({"key": "a", "text": "a1"}, {"key": "a", "text": "a2"}, {"text": "b"})
    a1, b = server.dequeue()
    server.nack(a1)
    server.ack(b)
    assert server.dequeue() == []
    again = server.take(wait=10)
    assert texts([again]) == ["a1"] and again["attempts"] == 2
    server.ack(again)
    assert texts(server.dequeue()) == ["a2"]


def test_an_unacked_item_returns_after_the_lease_and_not_before(server):
    """MQ-33"""
    server.enqueue({"text": "x"})
    first = server.take(lease="300ms")
    assert server.dequeue() == []
    again = server.take(wait=10)
    assert time.time() >= seconds_of(first["lease_expires_at"])
    assert again["id"] == first["id"]
    assert (again["attempts"], again["failure_attempts"]) == (2, 1)
    assert again["fencing_token"] > first["fencing_token"]


def test_a_waiting_dequeue_is_woken_by_an_enqueue(server):
    here = server.here(wait=30)
    got = []
    waiter = threading.Thread(target=lambda: got.extend(server.get("/dequeue", **here).body))
    waiter.start()
    until(lambda: server.metric('sluice_waiting{shard="0"}') == 1)
    begin = time.monotonic()
    server.enqueue({"text": "wake up"})
    waiter.join()
    assert texts(got) == ["wake up"]
    assert time.monotonic() - begin < 5


def test_a_wait_ends_with_nothing_when_its_time_is_over(server):
    begin = time.monotonic()
    assert server.dequeue(wait="250ms") == []
    assert time.monotonic() - begin >= 0.25


def test_waiters_are_served_first_come_first_served(server):
    got = []

    def wait(name):
        message, = server.get("/dequeue", **here).body
        got.append((name, texts([message])[0]))
        server.close()

    here = server.here(wait=30, limit=1)
    threads = []
    for i in range(3):
        threads.append(threading.Thread(target=wait, args=(i,)))
        threads[-1].start()
        until(lambda: server.metric('sluice_waiting{shard="0"}') == i + 1)
    for i in range(3):
        server.enqueue({"text": str(i)})
    for t in threads:
        t.join()
    assert sorted(got) == [(0, "0"), (1, "1"), (2, "2")]


def test_an_answer_ends_at_4_mib_and_has_at_least_one(server):
    payload = "x" * (3 << 20)
    for i in range(3):
        server.enqueue({"text": payload})
    sizes = [len(server.dequeue(limit=10)) for _ in range(3)]
    assert sum(sizes) == 3 and 1 <= max(sizes) <= 2


def test_a_paused_queue_hands_out_nothing(server):
    server.enqueue({})
    server.policy(paused=True)
    assert server.dequeue() == [] and server.stats()["paused"]
    server.policy()
    assert len(server.dequeue()) == 1


def test_namespaces_do_not_see_each_other(server):
    """MQ-36: even by id."""
    id_, = server.enqueue({})
    message = server.take()
    for path in ("/ack", "/nack", "/extend"):
        answer = server.post(path, {"id": id_, "namespace": "other", "topic": server.topic,
                                    "lease_id": message["lease_id"]})
        assert answer.status == 404, answer
    assert server.get("/peek", namespace="other", topic=server.topic, id=id_).status == 404
    assert server.get("/result", namespace="other", id=id_).status == 404
    assert server.get("/dequeue", namespace="other", topic=server.topic).body == []
    server.ack(message)


def test_payloads_that_are_not_in_memory_are_read_from_disk(server):
    """The kernel drops the log from its cache: a file thread reads it back."""
    sent = [f"{i}-" + "x" * 5000 for i in range(200)]
    server.enqueue(*({"text": text} for text in sent))
    for log in server.folder.glob("*.log"):
        with open(log, "rb") as f:
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    assert texts(server.peek(limit=1000)) == sent
    assert texts(server.dequeue(limit=1000)) == sent


# --- owners of messages -----------------------------------------------------------


def owners(server, **params):
    return [m.get("owner") for m in server.peek(state="leased", **params)]


@pytest.mark.parametrize("by", ["query", "body"])
def test_a_lease_is_shown_with_its_owner(server, by):
    id_, = server.enqueue({"text": "x"})
    if by == "query":
        message = server.take(owner="web-7:311")
    else:
        message, = server.post("/dequeue", server.here(owner="web-7:311")).body
    assert owners(server) == ["web-7:311"]
    assert [m["owner"] for m in server.peek(id=id_)] == ["web-7:311"]
    listed = server.get("/v1/admin/messages", **server.here(state="leased"))
    assert [m["owner"] for m in listed.body["messages"]] == ["web-7:311"]
    shown = server.get("/v1/admin/message", **server.here(id=id_)).body
    assert shown["owner"] == "web-7:311"
    server.nack(message, delay="1h")
    assert "owner" not in server.peek(id=id_)[0]


def test_a_consumer_without_an_owner_has_no_name(server):
    server.enqueue({"text": "x"})
    server.take()
    assert owners(server) == [None]


@pytest.mark.parametrize("owner", ["", "a\nb", "x" * 129, b"\xff"])
def test_an_owner_that_is_no_name_is_refused(server, owner):
    server.enqueue({"text": "x"})
    answer = server.get("/dequeue", **server.here(owner=owner))
    assert (answer.status, answer.body["error"]) == (400, "invalid")
    assert "128 bytes" in answer.body["message"]
    assert len(server.dequeue(owner="\u00e9" * 64)) == 1


def test_the_owner_of_a_lockd_client_is_shown_cut_and_printable(server):
    server.enqueue({"text": "x"}, {"text": "y"})
    for owner in ("worker-7", " w\u00e9\n" + "z" * 200):
        client = lockd.Client(server.address, owner=owner, namespace=server.namespace,
                              queue=server.topic)
        client.take(visibility_timeout_seconds=3600)
    assert sorted(owners(server)) == ["worker-7", "w\u00e9?" + "z" * 124]


def test_many_owners_are_kept_apart(server):
    ids = server.enqueue(*({"text": str(i)} for i in range(200)))
    for i in range(100):
        server.dequeue(limit=2, owner=f"host-{i}:1", lease="1h")
    found, cursor = [], {}
    while cursor is not None:
        page = server.get("/peek", **server.here(state="leased", limit=50, **cursor)).body
        found += page["messages"]
        cursor = {"cursor": page["cursor"]} if "cursor" in page else None
    assert {m["id"]: m["owner"] for m in found} == \
        {id_: f"host-{i // 2}:1" for i, id_ in enumerate(ids)}


FORMS = [  # payload, then the member by which it is given as=text and as=json
    ("text", {"text": "käse\n"}, ("text", "käse\n"), ("text", "käse\n")),
    ("json", {"json": {"n": [1, None]}}, ("text", '{"n": [1, null]}'), ("json", {"n": [1, None]})),
    ("json-in-base64", {"payload": base64.b64encode(b" 7 ").decode()}, ("text", " 7 "), ("json", 7)),
    ("bytes", {"payload": "/wA="}, ("payload", "/wA="), ("payload", "/wA=")),
    ("NUL", {"payload": "AA=="}, ("text", "\0"), ("text", "\0")),
    ("nothing", {}, ("text", ""), ("text", "")),
    ("cut-json", {"text": '{"n":'}, ("text", '{"n":'), ("text", '{"n":')),
    ("two-values", {"text": '1,"id":2'}, ("text", '1,"id":2'), ("text", '1,"id":2')),
]


@pytest.mark.parametrize("item, text, json_", [f[1:] for f in FORMS], ids=[f[0] for f in FORMS])
def test_payloads_come_as_text_or_json_where_they_fit(server, item, text, json_):
    def shown(message):
        (name, value), = ((k, v) for k, v in message.items() if k in ("payload", "text", "json"))
        return name, value

    server.enqueue(item)
    for form, want in (("text", text), ("json", json_)):
        assert shown(*server.get("/peek", **server.here(**{"as": form})).body["messages"]) == want
        message, = server.get("/dequeue", **server.here(**{"as": form})).body
        assert shown(message) == want
        server.nack(message, delay=0)
        message, = server.post("/dequeue", server.here(**{"as": form})).body
        assert shown(message) == want
        server.nack(message, defer=True, delay=0)
    server.nack(server.take(), dead=True)
    assert shown(*server.get("/dlq", **server.here(**{"as": "json"})).body["messages"]) == json_


def test_another_form_is_refused(server):
    for path in ("/dequeue", "/peek", "/dlq"):
        answer = server.get(path, **server.here(**{"as": "xml"}))
        assert answer.status == 400, path
        assert answer.body["message"] == 'as: invalid value "xml"; expected text, json or base64'


def test_a_large_payload_stays_base64(server):
    """It is sent as it is read."""
    server.enqueue({"text": "a"}, {"text": "x" * (3 << 20)})
    small, large = server.get("/dequeue", **server.here(**{"as": "text"})).body
    assert small["text"] == "a"
    assert base64.b64decode(large["payload"]) == b"x" * (3 << 20)
