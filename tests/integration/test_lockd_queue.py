"""The queue half of the lockd dialect, as its clients use it. docs/lockd.md."""
import base64
import json
import threading
import time

import pytest

import lockd
from lockd import Client, Refused
from served import ENGINE, new_txn, seconds_of, until

BINARY = bytes(range(256)) * 16


@pytest.fixture
def client(server):
    """Of a namespace that no other test has."""
    return Client(server.address, namespace=server.namespace, queue="orders")


def refusal(function, *args, **more):
    with pytest.raises(Refused) as caught:
        function(*args, **more)
    return caught.value


def code(function, *args, **more):
    """How a call is refused: status and code."""
    found = refusal(function, *args, **more)
    return found.status, found.code


def in_background(function, *args, **more):
    """Its result, by the list that is returned, when it is there."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function(*args, **more)))
    thread.start()
    return thread, results


# --- enqueue -----------------------------------------------------------------------------


def test_a_message_comes_back_byte_for_byte(client):
    """LQ-02, LQ-03, LQ-17, LQ-18, LQ-29: meta first, then the payload."""
    sent = client.enqueue({"queue": " Orders ", "attributes": {"a": [1, {"b": None}]}}, BINARY)
    assert client.headers["X-Correlation-Id"] == sent["correlation_id"]
    assert sent["queue"] == "orders" and sent["attempts"] == 0 and sent["max_attempts"] == 5
    assert sent["payload_bytes"] == len(BINARY) and sent["visibility_timeout_seconds"] == 30
    assert abs(sent["not_visible_until_unix"] - time.time()) < 60
    assert sent["message_id"][14] == "7"
    got = client.take()
    assert got["payload"] == BINARY and got["message_id"] == sent["message_id"]
    assert got["attempts"] == 1 and "failure_attempts" not in got
    assert got["attributes"] == {"a": [1, {"b": None}]}
    assert got["payload_content_type"] == "text/plain"
    assert client.headers["X-Correlation-Id"] == got["correlation_id"]


@pytest.mark.parametrize("payload", [None, b""])
def test_a_message_may_have_no_payload(client, payload):
    """LQ-03, LQ-26"""
    assert client.enqueue(payload=payload)["payload_bytes"] == 0
    assert client.take()["payload"] == b""


def test_standard_clients_can_write_and_read_the_parts(client, server):
    """LQ-17: multipart/form-data as curl and browsers send it, the email package reads."""
    import email
    body, headers = lockd.parts({**client.names}, b"\r\n--not\r\n")
    headers = {"Content-Type": headers["Content-Type"].replace("related", "form-data")}
    assert server.call("POST", "/v1/queue/enqueue", body, headers).status == 200
    answer, connection = client.send("/v1/queue/dequeue", json.dumps(
        {**client.names, "owner": "o"}).encode())
    whole = b"Content-Type: " + answer.headers["Content-Type"].encode() + b"\r\n\r\n"
    found = email.message_from_bytes(whole + answer.read()).get_payload()
    connection.close()
    assert [part.get_param("name", header="content-disposition") for part in found] == \
        ["meta", "payload"]
    assert found[1].get_payload(decode=True) == b"\r\n--not\r\n"


def test_enqueue_stores_every_member_of_the_request(client):
    """LQ-09, LQ-32, LQ-34: delay, ttl, attempts."""
    sent = client.enqueue({"delay_seconds": 3600, "max_attempts": 9, "ttl_seconds": 60,
                           "visibility_timeout_seconds": 7, "unknown": {"x": 1}}, b"later")
    assert sent["max_attempts"] == 9 and sent["visibility_timeout_seconds"] == 7
    assert sent["not_visible_until_unix"] > time.time() + 3500
    assert code(client.dequeue) == (409, "waiting")  # LQ-32
    assert client.enqueue({"payload_content_type": ""}, b"")["payload_bytes"] == 0
    assert client.take()["payload_content_type"] == "text/plain"  # of the part


def test_members_of_our_own_are_those_of_the_flat_api(client, server):
    """Priority, key, share, trace and terms also for a payload that is streamed."""
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    more = {"priority": "high", "key": "k", "share": "s", "idempotency_key": "once", "keep_result": "1h", "lease": "90s",
            "deadline": "2037-01-01T00:00:00Z", "traceparent": trace, "tracestate": "a=1"}
    if ENGINE == "redis":  # it has neither shares nor terms of a message
        for name in "share", "lease":
            answer = refusal(client.enqueue, {name: more.pop(name)}, b"payload")
            assert (answer.status, answer.code) == (400, "invalid_body") and f"engine redis has no {name}" in str(answer), name
    first = client.enqueue(more, b"payload")
    assert first["duplicate"] is False
    again = client.enqueue(more, b"payload")
    assert again["duplicate"] is True and again["message_id"] == first["message_id"]
    here = {"namespace": first["namespace"], "topic": first["queue"]}
    seen, = server.get("/peek", id=first["message_id"], **here).body["messages"]
    assert (seen["priority"], seen["key"], seen.get("share")) == (0, "k", more.get("share"))
    assert (seen["traceparent"], seen["tracestate"]) == (trace, "a=1")
    got, = server.get("/dequeue", **here).body
    assert got["uid"] == first["message_id"] and got["lease_id"]
    for wrong in {"priority": "urgent"}, {"key": "a\nb"}, {"lease": "0s"}, {"deadline": "soon"}, {"keep_result": -1}, \
            {"ttl_seconds": 5, "deadline": "2037-01-01T00:00:00Z"}:
        assert code(client.enqueue, wrong, b"x") == (400, "invalid_body"), wrong


@pytest.mark.skipif(ENGINE == "redis", reason="it has no unique messages")
def test_a_streamed_message_may_be_unique_and_has_its_own_retries(client, server):
    more = {"unique": {"key": "u", "until": "1h"}, "retry": {"kind": "fixed", "base": "100h", "max": "100h", "jitter": "none"}}
    first = client.enqueue(more, b"x" * (2 << 20))
    again = client.enqueue(more, b"y" * (2 << 20))
    assert again["message_id"] == first["message_id"] and (first["duplicate"], again["duplicate"]) == (False, True)
    here = {"namespace": first["namespace"], "topic": first["queue"]}
    got, = server.get("/dequeue", **here).body
    assert server.post("/nack", {"receipt": got["receipt"]}).status == 200
    seen, = server.get("/peek", id=first["message_id"], **here).body["messages"]
    assert seconds_of(seen["next_delivery"]) - time.time() > 99 * 3600
    for wrong in {"retry": {"kind": "often"}}, {"unique": {"key": "u"}}, {"unique": {"key": "u", "until": "done"}, "idempotency_key": "i"}, \
            {"unique": {"key": "u", "until": "done", "mode": "replace"}}:
        assert code(client.enqueue, wrong, b"x") == (400, "invalid_body"), wrong


def test_what_has_expired_is_not_handed_out(client, server):
    """LQ-34"""
    client.enqueue({"ttl_seconds": 1}, b"short")
    server.topic = "orders"
    until(lambda: server.dlq())
    assert code(client.dequeue) == (409, "waiting")
    assert server.dlq()[0]["reason"] == "expired"


@pytest.mark.parametrize("headers, body, want", [
    ({"Content-Type": "application/json"}, b"{}", "invalid_content_type"),
    ({"Content-Type": "multipart/related"}, b"", "invalid_content_type"),
    (None, b"--B\r\n\r\n", "multipart_error"),
    (None, b"--B--\r\n", "multipart_error"),
    (None, b"--B\nx\r\n\r\n", "multipart_error"),
    (None, b'--B\r\nContent-Disposition: form-data; name="payload"\r\n\r\nx\r\n--B--\r\n',
     "multipart_error"),
])
def test_a_body_that_is_none_is_refused(client, headers, body, want):
    found = refusal(client.post, "enqueue", body,
                    headers or {"Content-Type": "multipart/related; boundary=B"})
    assert (found.status, found.code) == (400, want)


@pytest.mark.parametrize("meta, want", [
    ("{", "invalid_body"),
    ('{"queue": 5}', "invalid_body"),
    ('{"queue": "q"} x', "invalid_body"),
    ('{"queue": "q", "delay_seconds": "1"}', "invalid_body"),
    ('{"queue": "q", "attributes": []}', "invalid_body"),
    ('{"queue": "q", "payload_content_type": "a\\nb"}', "invalid_body"),
    ("{}", "missing_queue"),
    ('{"queue": "a/b"}', "invalid_queue"),
    ('{"queue": "' + "x" * 129 + '"}', "invalid_queue"),
    ('{"queue": "q", "namespace": ".x"}', "invalid_namespace"),
    ('{"queue": "q", "namespace": "a b"}', "invalid_namespace"),
])
def test_meta_that_is_wrong_is_refused_and_changes_nothing(client, server, meta, want):
    body, headers = lockd.parts(meta, b"x")
    found = refusal(client.post, "enqueue", body, headers)
    assert (found.status, found.code) == (400, want)
    assert not client.stats(namespace="default", queue="q")["available"]


def test_parts_in_another_order_and_others_between(client):
    body, headers = lockd.parts(client.names, b"x", meta_first=False)
    assert code(client.post, "enqueue", body, headers) == (400, "multipart_error")
    body, headers = lockd.parts(client.names, b"x", name="other")
    assert client.post("enqueue", body, headers)["payload_bytes"] == 0


# --- dequeue -----------------------------------------------------------------------------


def test_pages_are_filled_without_waiting(client):
    """LQ-44"""
    for i in range(5):
        client.enqueue(payload=b"%d" % i)
    assert [m["payload"] for m in client.dequeue(page_size=3, wait_seconds=20)] == \
        [b"0", b"1", b"2"]
    assert [m["payload"] for m in client.dequeue(page_size=64)] == [b"3", b"4"]


def test_block_minus_one_does_not_wait_and_other_values_do(client):
    """LQ-04, LQ-11, LQ-12: an early `waiting` would turn clients into a busy loop."""
    found = refusal(client.dequeue, wait_seconds=-1)
    assert (found.status, found.code) == (409, "waiting")
    assert "retry_after_seconds" not in found.body
    before = time.monotonic()
    found = refusal(client.dequeue, wait_seconds=1)
    assert time.monotonic() - before >= 1 and found.body["retry_after_seconds"] == 1


def test_a_message_ends_a_wait_at_once(client):
    """LQ-04, LQ-43, LQ-46: also one without limit."""
    thread, got = in_background(client.take, wait_seconds=0)
    until(lambda: client.stats()["waiting_consumers"] == 1)
    assert client.stats()["total_consumers"] >= 1
    client.enqueue(payload=b"x")
    thread.join(30)
    assert got[0]["payload"] == b"x"


def test_one_message_is_for_one_waiter_and_the_first(client, server):
    """LQ-15, LQ-19, LQ-39"""
    waiters = []
    for i in range(3):
        one = Client(server.address, owner=f"o{i}", **client.names)
        waiters.append(in_background(one.take, wait_seconds=0))
        until(lambda n=i: client.stats()["waiting_consumers"] == n + 1)
    for i in range(3):
        client.enqueue(payload=b"%d" % i)
        waiters[i][0].join(30)
        assert waiters[i][1][0]["payload"] == b"%d" % i
        assert client.stats()["waiting_consumers"] == 2 - i


def test_a_waiter_that_leaves_frees_its_slot_and_takes_nothing(client, server):
    """LQ-40, LQ-45"""
    gone = server.raw()
    body = json.dumps({**client.names, "owner": "gone"}).encode()
    gone.sendall(b"POST /v1/queue/dequeue HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
                 % len(body) + body)
    until(lambda: client.stats()["waiting_consumers"] == 1)
    gone.close()
    until(lambda: client.stats()["waiting_consumers"] == 0)
    client.enqueue(payload=b"x")
    assert client.take()["attempts"] == 1


@pytest.mark.parametrize("path", ["dequeue", "subscribe"])
@pytest.mark.parametrize("more, want", [
    ({"queue": ""}, "missing_queue"),
    ({"queue": "a b"}, "invalid_queue"),
    ({"owner": " "}, "missing_owner"),
    ({"txn_id": "x"}, "invalid_txn"),
    ({"wait_seconds": "1"}, "invalid_body"),
    ({"namespace": "."}, "invalid_namespace"),
])
def test_a_claim_that_is_wrong_is_refused(client, path, more, want):
    assert code(client.claim, path, **more) == (400, want)


def test_names_may_come_from_the_query(client, server):
    client.enqueue(payload=b"x")
    answer = server.post("/v1/queue/dequeue", None, namespace=server.namespace, queue="ORDERS",
                         owner="o")
    assert answer.status == 200 and "orders" in answer.text


def test_the_lease_is_as_long_as_the_request_says(client):
    """LQ-11: visibility; 0 is 30 s, and 30 min is the most."""
    for asked, given in ((7, 7), (0, 30), (36000, 1800)):
        client.enqueue(payload=b"x")
        got = client.take(visibility_timeout_seconds=asked)
        assert got["visibility_timeout_seconds"] == given
        assert abs(got["lease_expires_at_unix"] - time.time() - given) < 30
        assert got["not_visible_until_unix"] == got["lease_expires_at_unix"]


def test_a_consumer_whose_lease_ran_out_gets_the_message_again(client):
    """LQ-01, LQ-18, LQ-22, LQ-23: and the older receipt is worth nothing."""
    client.enqueue(payload=b"x")
    first = client.take(visibility_timeout_seconds=1)
    second = client.take(wait_seconds=0)
    assert second["attempts"] == 2 and second["fencing_token"] > first["fencing_token"]
    assert second["correlation_id"] == first["correlation_id"]  # LQ-62
    for call in (client.ack, client.nack, client.extend):
        assert code(call, first) == (409, "queue_message_lease_mismatch")
    client.ack(second)


# --- ack, nack, extend ---------------------------------------------------------------------


def test_ack_is_for_good(client):
    """LQ-08"""
    client.enqueue(payload=b"x")
    got = client.take()
    assert client.ack(got) == {"acked": True, "correlation_id": got["correlation_id"]}
    assert code(client.ack, got) == (404, "not_found")
    assert code(client.dequeue) == (409, "waiting")


def test_nack_brings_it_back_at_once_or_later(client, server):
    """LQ-09, LQ-24, LQ-46: three counters."""
    client.enqueue(payload=b"x")
    thread, got = in_background(Client(server.address, **client.names).take, wait_seconds=0)
    thread.join(30)
    waiting, again = in_background(Client(server.address, **client.names).take, wait_seconds=0)
    until(lambda: client.stats()["waiting_consumers"] == 1)
    answer = client.nack(got[0], last_error={"why": "no"})
    assert answer["requeued"] is True and answer["meta_etag"]
    waiting.join(30)
    message = again[0]
    assert (message["attempts"], message["failure_attempts"]) == (2, 1)
    client.nack(message, intent="DEFER")
    message = client.take()
    assert (message["attempts"], message["failure_attempts"]) == (3, 1)
    client.nack(message, intent="failure", delay_seconds=3600)
    assert code(client.dequeue) == (409, "waiting")


def test_after_so_many_failures_it_is_a_dead_letter(client, server):
    """LQ-33, LQ-37, LQ-65: with its correlation id and its last error."""
    client.enqueue({"max_attempts": 2}, b"x", headers={"X-Correlation-Id": "trace 7"})
    for _ in range(2):
        client.nack(client.take(), last_error="boom")
    assert code(client.dequeue) == (409, "waiting")
    server.topic = "orders"
    dead, = server.dlq()
    assert dead["correlation_id"] == "trace 7" and dead["error"] == "boom"
    assert base64.b64decode(dead["payload"]) == b"x"


def test_extend_counts_from_now_and_keeps_it_away(client):
    """LQ-10, LQ-36: 0 is the timeout that it has; the new etag is good."""
    client.enqueue(payload=b"x")
    got = client.take(visibility_timeout_seconds=7)
    answer = client.extend(got, extend_by_seconds=100)
    assert answer["visibility_timeout_seconds"] == 100
    assert abs(answer["lease_expires_at_unix"] - time.time() - 100) < 30
    assert answer["meta_etag"] != got["meta_etag"]
    answer = client.extend({**got, "meta_etag": answer["meta_etag"]})
    assert answer["visibility_timeout_seconds"] == 100
    assert client.extend(got)["visibility_timeout_seconds"] == 7
    assert code(client.dequeue) == (409, "waiting")
    client.ack({**got, "meta_etag": answer["meta_etag"]})


def test_extend_without_end_is_the_only_one_that_is_not_cut(client):
    client.enqueue(payload=b"x")
    assert client.extend(client.take(), extend_by_seconds=3600)[
        "visibility_timeout_seconds"] == 3600


@pytest.mark.parametrize("path", ["ack", "nack", "extend"])
def test_nothing_happens_without_the_whole_receipt(client, path):
    """LQ-21, LQ-22: every case has its code."""
    client.enqueue(payload=b"x")
    client.enqueue(payload=b"y")
    got, other = client.take(), client.take()

    def told(**more):
        return code(client.settle, path, got, **more)

    assert told(queue="") == (400, "missing_fields")
    assert told(message_id="") == (400, "missing_fields")
    assert told(lease_id="") == (400, "missing_fields")
    if path != "ack":
        assert told(meta_etag="") == (400, "missing_fields")
    assert told(txn_id="nonsense") == (400, "invalid_txn")
    assert told(fencing_token="7") == (400, "invalid_body")
    assert told(namespace=".x") == (400, "invalid_namespace")
    assert told(queue="a b") == (400, "invalid_queue")
    assert told(message_id="nothing") == (404, "not_found")
    assert told(message_id="00000000-0000-7000-8000-000000000000") == (404, "not_found")
    assert told(queue="elsewhere") == (404, "not_found")
    assert told(lease_id="l-1") == (403, "lease_required")
    assert told(lease_id=other["lease_id"]) == (409, "queue_message_lease_mismatch")
    assert told(fencing_token=0) == (403, "fencing_mismatch")
    assert told(fencing_token=got["fencing_token"] + 1) == (403, "fencing_mismatch")
    assert told(txn_id=other["txn_id"]) == (409, "txn_mismatch")
    assert told(meta_etag="other") == (409, "cas_mismatch")
    assert told(meta_etag=other["meta_etag"]) == (409, "cas_mismatch")
    assert client.settle(path, got, txn_id="")["correlation_id"] == got["correlation_id"]


def test_an_expired_lease_and_a_released_one_have_different_errors(client):
    """LQ-21: an ack without an etag deletes nothing after a nack."""
    client.enqueue(payload=b"x")
    got = client.take()
    client.nack(got)
    assert code(client.ack, got) == (403, "lease_required")
    assert code(client.ack, {**got, "meta_etag": ""})[0] == 403
    again = client.take(visibility_timeout_seconds=1)
    until(lambda: client.stats()["available"])
    for call in (client.ack, client.nack, client.extend):
        assert code(call, again) == (403, "lease_expired")


def test_nack_says_how_it_is_meant(client):
    client.enqueue(payload=b"x")
    got = client.take()
    assert code(client.nack, got, intent="maybe") == (400, "invalid_nack_intent")
    assert code(client.nack, got, intent="defer", last_error=1) == (400, "invalid_nack_last_error")
    assert client.nack(got, intent="Failure")["requeued"]


def test_a_long_error_of_a_nack_is_cut(client):
    client.enqueue(payload=b"x")
    for error in ("\u00e4" * 70000, {"trace": ["line"] * 40000}):
        assert client.nack(client.take(), last_error=error)["requeued"]


def test_a_transaction_that_the_client_brought_belongs_to_the_lease(client):
    """LQ-22"""
    client.enqueue(payload=b"x")
    txn = new_txn()
    got = client.take(txn_id=txn)
    assert got["txn_id"] == txn
    assert code(client.ack, got, txn_id=new_txn()) == (409, "txn_mismatch")
    assert client.ack(got, txn_id="")["acked"]  # filled in


def test_a_message_does_not_join_a_transaction(client):
    def acquire(txn):
        answer, connection = client.send("/v1/acquire", json.dumps({
            **client.names, "key": "a", "owner": "me", "block_seconds": -1, "txn_id": txn}).encode())
        body = json.loads(answer.read())
        connection.close()
        return answer.status, body.get("error")

    txn = new_txn()
    for payload in (b"one", b"two", b"three"):
        client.enqueue(payload=payload)
    first = client.take()
    assert code(client.take, txn_id=first["txn_id"]) == (409, "txn_conflict")
    held = client.take(txn_id=txn, page_size=3)
    assert code(client.take, txn_id=txn) == (409, "txn_conflict")
    for taken in (first["txn_id"], txn):
        assert acquire(taken) == (409, "txn_conflict")
    client.extend(held)
    assert acquire(txn) == (409, "txn_conflict")
    client.ack(held)
    assert acquire(txn) == (200, None)
    assert code(client.take, txn_id=txn) == (409, "txn_conflict")
    third = client.take()
    assert third["attempts"] == 1 and "failure_attempts" not in third  # it went back, twice


def test_a_stream_has_no_transaction(client):
    client.enqueue(payload=b"x")
    assert code(client.subscribe, txn_id="9m4e2mr0ui3e8a215n5g") == (409, "txn_conflict")


# --- correlation ids -----------------------------------------------------------------------


@pytest.mark.parametrize("given", ["a", "x" * 128, "with spaces & more"])
def test_a_correlation_id_goes_all_the_way(client, given):
    """LQ-60, LQ-62, LQ-63"""
    sent = client.enqueue(payload=b"x", headers={"X-Correlation-Id": given})
    assert sent["correlation_id"] == given == client.headers["X-Correlation-Id"]
    got = client.take()
    assert got["correlation_id"] == given == client.headers["X-Correlation-Id"]
    assert client.extend(got)["correlation_id"] == given == client.headers["X-Correlation-Id"]
    assert client.nack(got)["correlation_id"] == given == client.headers["X-Correlation-Id"]
    assert client.ack(client.take())["correlation_id"] == given


@pytest.mark.parametrize("given", [None, "x" * 129, "caf\xe9"])
def test_one_is_made_when_none_is_well_formed(client, given):
    """LQ-61"""
    sent = client.enqueue(payload=b"x", headers={"X-Correlation-Id": given} if given else None)
    assert len(sent["correlation_id"]) == 36 and sent["correlation_id"][14] == "7"
    assert sent["correlation_id"] == client.headers["X-Correlation-Id"]
    assert client.ack(client.take())["correlation_id"] == sent["correlation_id"]


def test_errors_have_one_too(client, server):
    """LQ-60, LQ-61"""
    own = server.call("POST", "/v1/queue/ack", "{}", {"X-Correlation-Id": "mine"})
    assert own.headers["X-Correlation-Id"] == "mine" and own.body["error"] == "missing_fields"
    assert refusal(client.dequeue).headers["X-Correlation-Id"][14] == "7"


# --- one store -----------------------------------------------------------------------------


def test_both_apis_see_the_same_messages(client, server):
    """What one accepts the other delivers, under one id in two spellings."""
    server.topic = "orders"
    here, = server.enqueue({"text": "flat", "attributes": {"a": 1}, "correlation_id": "c"})
    there = client.enqueue(payload=b"lockd")
    stream = client.subscribe(page_size=2)
    got = [next(stream), next(stream)]
    assert [m["payload"] for m in got] == [b"flat", b"lockd"]
    assert got[0]["attributes"] == {"a": 1} and got[0]["correlation_id"] == "c"
    assert got[0]["payload_content_type"] == "text/plain; charset=utf-8"
    uids = {m["id"]: m["uid"] for m in server.get(
        "/peek", **server.here(state="leased")).body["messages"]}
    assert [uids[here], there["message_id"]] == [m["message_id"] for m in got]
    got[1] |= client.extend(got[1])  # or it would go back with the end of the stream
    stream.close()
    client.nack(got[1])
    taken = server.take()
    assert taken["uid"] == there["message_id"] and taken["failure_attempts"] == 1
    server.ack(taken)
    client.ack(got[0])
    assert server.stats()["total"] == 0


# --- stats ---------------------------------------------------------------------------------


def test_stats_show_waiting_claims_and_the_first_message(client):
    empty = client.stats(queue="never-used")
    assert empty.pop("correlation_id")
    assert empty.pop("total_consumers") >= 0
    assert empty == {"namespace": client.names["namespace"], "queue": "never-used",
                     "waiting_consumers": 0, "pending_candidates": 0,
                     "has_active_watcher": True, "available": False}
    sent = client.enqueue(payload=b"x")
    full = client.stats()
    assert full["available"] and full["pending_candidates"] == 1
    assert full["head_message_id"] == sent["message_id"]
    assert full["head_enqueued_at_unix"] <= time.time() + 1
    assert full["head_not_visible_until_unix"] <= time.time() + 1
    assert full["head_age_seconds"] >= 0
    client.take()
    assert not client.stats()["available"]
    assert code(client.stats, queue="") == (400, "missing_queue")
    assert code(client.stats, queue="?") == (400, "invalid_queue")


# --- how it is spoken ------------------------------------------------------------------------


def test_no_route_looks_at_the_method(client, server):
    client.enqueue(payload=b"x")
    for method in ("GET", "PUT", "DELETE", "LOCK"):
        answer = server.call(method, "/v1/queue/stats", json.dumps(client.names))
        assert answer.status == 200 and answer.body["available"], method
    assert server.call("HEAD", "/v1/queue/dequeue").status == 405  # it would be lost


def test_unknown_paths_and_bodies_that_are_too_large(server):
    assert server.post("/v1/queue/none", {}).status == 404
    for path, body, fields in (("ack", " " * (1 << 17), {}),
                               ("enqueue", "", {"Content-Length": str(2 << 30)})):
        answer = server.call("POST", "/v1/queue/" + path, body, fields)
        assert answer.status == 413 and answer.text.endswith("}\n"), answer
        assert answer.body["error"] == "payload_too_large" and answer.body["detail"]


def test_the_holder_of_a_canceled_message_learns_it_when_it_extends(client, server):
    client.enqueue({}, b"x")
    got = client.take()
    done = server.post("/v1/admin/message/cancel", {"namespace": server.namespace, "id": got["message_id"]})
    if ENGINE == "redis":
        assert done.status == 409, done
        return
    assert done.status == 200 and done.body["running"] is True, done
    assert code(client.extend, got) == (409, "message_canceled")
    client.ack(got)
