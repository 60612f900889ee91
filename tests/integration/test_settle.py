"""POST /ack, /nack and /extend, dead letters, results."""
import threading
import time

import pytest

from served import seconds_of, texts, until


def test_an_ack_by_id_ends_it_and_a_second_one_is_404(server):
    """MQ-30"""
    id_, = server.enqueue({})
    server.take()
    body = server.here(id=id_)
    answer = server.post("/ack", body)
    assert answer.status == 200 and answer.body["id"] == id_
    again = server.post("/ack", body)
    assert again.status == 404 and again.body["error"] == "not_found"
    assert server.stats()["total"] == 0


def test_an_ack_without_a_lease_is_refused(server):
    id_, = server.enqueue({})
    answer = server.post("/ack", server.here(id=id_))
    assert answer.status == 409 and answer.body["error"] == "lease_lost"
    assert server.stats()["ready"] == 1


@pytest.mark.parametrize("spell", [int, str, "uid"])
def test_an_id_is_a_number_a_string_or_a_uuid(server, spell):
    server.enqueue({})
    message = server.take()
    id_ = message["uid"] if spell == "uid" else spell(message["id"])
    assert server.post("/ack", server.here(id=id_)).status == 200


@pytest.mark.parametrize("wrong", [
    {"lease_id": "l-1"}, {"lease_id": "nonsense"}, {"fencing_token": 1},
    {"fencing_token": 0}, {"lease_id": "right", "fencing_token": 1},
])
@pytest.mark.parametrize("path", ["/ack", "/nack", "/extend"])
def test_a_lease_that_is_not_the_current_one_changes_nothing(server, path, wrong):
    server.enqueue({})
    message = server.take()
    wrong = {**wrong}
    if wrong.get("lease_id") == "right":
        wrong["lease_id"] = message["lease_id"]
    answer = server.post(path, server.here(id=message["id"], **wrong))
    assert answer.status == 409 and answer.body["error"] == "lease_lost"
    assert server.stats()["leased"] == 1
    server.ack(message)


def test_a_queue_can_require_the_lease(server):
    server.policy(require_lease=True)
    server.enqueue({})
    message = server.take()
    assert server.post("/ack", server.here(id=message["id"])).status == 409
    server.ack(message)


def test_what_a_late_holder_says_changes_nothing(server):
    server.enqueue({})
    late = server.take(lease="50ms")
    message = server.take(wait=10)
    assert server.settle("/ack", late).status == 409
    server.ack(message)


def test_a_nack_brings_it_back_later_and_keeps_the_error(server):
    """MQ-31, MQ-32"""
    server.policy(retry={"kind": "fixed", "base": "200ms", "jitter": "none"})
    server.enqueue({"text": "x"})
    message = server.take()
    answer = server.nack(message, error="gateway timeout")
    assert answer["dead"] is False
    assert seconds_of(answer["deliver_after"]) == pytest.approx(time.time() + 0.2, abs=0.15)
    waiting, = server.peek(state="delayed")
    assert waiting["error"] == "gateway timeout"
    assert (waiting["attempts"], waiting["failure_attempts"]) == (1, 1)
    assert server.dequeue() == []
    again = server.take(wait=10)
    assert (again["attempts"], again["failure_attempts"]) == (2, 1)


def test_a_nack_as_the_contract_has_it(server):
    """MQ-31: by id alone."""
    id_, = server.enqueue({})
    server.take()
    answer = server.post("/nack", server.here(id=id_, error="Payment gateway timeout"))
    assert answer.status == 200


@pytest.mark.parametrize("failures, hours", [(1, 1), (2, 2), (3, 4)])
def test_retries_wait_longer_and_longer(server, failures, hours):
    """MQ-32"""
    server.policy(retry={"kind": "exponential", "base": "1h", "max": "100h", "jitter": "none"})
    server.enqueue({})
    for _ in range(failures - 1):
        server.nack(server.take(wait=10), delay=0)
    answer = server.nack(server.take(wait=10))
    assert seconds_of(answer["deliver_after"]) == pytest.approx(
        time.time() + hours * 3600, abs=60)


def test_an_explicit_delay_wins(server):
    server.enqueue({"text": "x"})
    server.nack(server.take(), delay=0)
    again = server.take(wait=10)
    answer = server.nack(again, delay="1h")
    assert seconds_of(answer["deliver_after"]) == pytest.approx(time.time() + 3600, abs=60)


def test_a_defer_is_no_failure(server):
    server.policy(max_attempts=1)
    server.enqueue({})
    for attempt in (1, 2, 3):
        message = server.take(wait=10)
        assert (message["attempts"], message["failure_attempts"]) == (attempt, 0)
        server.nack(message, defer=True)


@pytest.mark.parametrize("max_attempts", [1, 3])
def test_max_attempts_failing_deliveries_then_the_dead_letters(server, max_attempts):
    server.enqueue({"text": "poison", "max_attempts": max_attempts})
    for attempt in range(1, max_attempts + 1):
        answer = server.nack(server.take(wait=10), error=f"no {attempt}", delay=0)
        assert answer["dead"] is (attempt == max_attempts)
    dead, = server.dlq()
    assert dead["reason"] == "max_attempts" and dead["error"] == f"no {max_attempts}"
    assert dead["failure_attempts"] == max_attempts and texts([dead]) == ["poison"]
    assert server.dequeue() == []


def test_a_nack_can_end_it_for_good(server):
    server.enqueue({})
    assert server.nack(server.take(), dead=True, error="malformed")["dead"] is True
    dead, = server.dlq()
    assert dead["reason"] == "rejected" and dead["error"] == "malformed"


def test_an_extend_moves_the_end_of_the_lease(server):
    """MQ-38: ready, leased, processing."""
    server.enqueue({})
    assert server.peek()[0]["status"] == "ready"
    message = server.take(lease="1s")
    assert server.peek(state="leased")[0]["status"] == "leased"
    answer = server.settle("/extend", message, lease="1h")
    assert answer.status == 200
    assert seconds_of(answer.body["lease_expires_at"]) > time.time() + 3000
    shown, = server.peek(id=message["id"])
    assert shown["status"] == "processing"
    assert shown["lease_expires_at"] == answer.body["lease_expires_at"]


def test_extending_keeps_a_short_lease_alive(server):
    server.enqueue({})
    message = server.take(lease="3s")
    for _ in range(4):  # longer than the lease, and each wait far shorter
        time.sleep(0.8)
        assert server.settle("/extend", message, lease="3s").status == 200
    server.ack(message)


def test_arrays_have_an_outcome_for_each_item(server):
    server.enqueue({"text": "a"}, {"text": "b"})
    a, b = server.dequeue()
    items = [server.here(id=a["id"], lease_id=a["lease_id"]),
             server.here(id=b["id"], lease_id="l-1"),
             server.here(id=4711)]
    answer = server.post("/ack", items)
    assert answer.status == 200
    assert [i["status"] for i in answer.body] == [200, 409, 404]
    assert [i.get("error") for i in answer.body] == [None, "lease_lost", "not_found"]
    assert [i["id"] for i in answer.body] == [a["id"], b["id"], 4711]
    assert answer.headers["Sluice-Failed"] == "2"
    assert server.stats()["leased"] == 1


def test_an_array_without_failures_has_no_field_that_counts_them(server):
    server.enqueue({"text": "a"}, {"text": "b"})
    answer = server.post("/ack", [{"receipt": m["receipt"]} for m in server.dequeue()])
    assert [i["status"] for i in answer.body] == [200, 200]
    assert answer.headers["Sluice-Failed"] is None


def test_a_bad_item_leaves_the_others_undone(server):
    server.enqueue({})
    message = server.take()
    answer = server.post("/ack", [server.here(id=message["id"]), {"id": 5}])
    assert answer.status == 400 and answer.body["index"] == 1
    assert server.stats()["leased"] == 1


@pytest.mark.parametrize("path, more", [
    ("/ack", {"error": "x"}), ("/nack", {"lease": 1}), ("/nack", {"defer": True, "dead": True}),
    ("/nack", {"delay": "x"}), ("/extend", {"lease": "13h"}), ("/extend", {"lease": 0}),
    ("/ack", {"id": "x"}), ("/ack", {"id": None}), ("/ack", {"namespace": None}),
])
def test_bad_fields_are_refused(server, path, more):
    answer = server.post(path, {**server.here(id=5), **more})
    assert answer.status == 400 and next(iter(more)) in answer.body["message"], answer


@pytest.mark.parametrize("body, status", [([], 400), ([{}] * 1001, 400), ("x", 400)])
def test_arrays_have_1_to_1000_items(server, body, status):
    assert server.post("/ack", body).status == status


def test_a_thousand_acks_in_one_call(server):
    server.enqueue(*({} for _ in range(1000)))
    messages = server.dequeue(limit=1000)
    answer = server.post("/ack", [server.here(id=m["id"], lease_id=m["lease_id"])
                                  for m in messages])
    assert {i["status"] for i in answer.body} == {200} and len(answer.body) == 1000
    assert server.stats()["total"] == 0


# --- dead letters --------------------------------------------------------------


def kill_all(server, n):
    server.enqueue(*({"text": str(i)} for i in range(n)))
    for message in server.dequeue(limit=1000):
        server.nack(message, dead=True)


def test_dead_letters_come_by_pages_oldest_first(server):
    """X-02: list"""
    kill_all(server, 5)
    page = server.get("/dlq", **server.here(limit=2)).body
    got = page["messages"]
    while page.get("cursor"):
        page = server.get("/dlq", **server.here(limit=2, cursor=page["cursor"])).body
        got += page["messages"]
    assert texts(got) == ["0", "1", "2", "3", "4"]


def test_redrive_starts_them_anew(server):
    """X-02: redrive some; the id stays, and the attempts it has had"""
    kill_all(server, 3)
    ids = [m["id"] for m in server.dlq()]
    answer = server.post("/dlq/redrive", server.here(ids=[ids[0], str(ids[1]), 4711]))
    assert answer.status == 200 and answer.body["redriven"] == 2
    assert [r["status"] for r in answer.body["results"]] == [200, 200, 404]
    again = server.dequeue()
    assert texts(again) == ["0", "1"]
    assert [m["id"] for m in again] == ids[:2]
    assert {m["attempts"] for m in again} == {2}
    assert {m["failure_attempts"] for m in again} == {0}
    assert server.stats()["dead"] == 1


def test_redrive_takes_the_oldest_by_number(server):
    """X-02: redrive all, by portions"""
    kill_all(server, 5)
    answer = server.post("/dlq/redrive", server.here(limit=3))
    assert answer.body == {"redriven": 3, "more": True}
    assert texts(server.dequeue()) == ["0", "1", "2"]
    answer = server.post("/dlq/redrive", server.here(limit=3))
    assert answer.body["redriven"] == 2 and answer.body["more"] is False


def test_delete_removes_dead_letters_and_nothing_else(server):
    """X-02: delete"""
    kill_all(server, 2)
    live, = server.enqueue({"text": "live"})
    ids = [m["id"] for m in server.dlq()]
    answer = server.post("/dlq/delete", server.here(ids=[ids[0], live]))
    assert answer.body["deleted"] == 1
    assert [r["status"] for r in answer.body["results"]] == [200, 404]
    assert answer.headers["Sluice-Failed"] == "1"
    assert server.stats()["ready"] == 1 and server.stats()["dead"] == 1
    assert server.post("/dlq/delete", server.here(limit=10)).body["deleted"] == 1
    assert server.dlq() == []


@pytest.mark.parametrize("more", [{}, {"ids": [1], "limit": 1}, {"ids": 5}, {"ids": ["x"]},
                                  {"limit": 0}])
def test_a_bad_redrive_is_refused(server, more):
    assert server.post("/dlq/redrive", server.here(**more)).status == 400


# --- results -------------------------------------------------------------------


def result(server, id_, **params):
    return server.get("/result", namespace=server.namespace, id=id_, **params)


def test_a_result_is_kept_for_later_requests(server):
    id_, = server.enqueue({"keep_result": "1h"})
    pending = result(server, id_)
    assert pending.status == 202 and pending.body["status"] == "pending"
    server.ack(server.take(), result={"sum": [1, 2], "text": "ü"})
    done = result(server, id_)
    assert done.status == 200 and done.body["status"] == "done"
    assert done.body["result"] == {"sum": [1, 2], "text": "ü"}
    assert seconds_of(done.body["expires_at"]) > time.time() + 3000


def test_an_ack_without_result_is_done_all_the_same(server):
    id_, = server.enqueue({"keep_result": 60})
    server.ack(server.take())
    assert result(server, id_).body["result"] is None


def test_a_result_can_be_waited_for(server):
    id_, = server.enqueue({"keep_result": "1h"})
    message = server.take()
    got = []
    params = {"namespace": server.namespace, "id": message["uid"], "wait": 30}
    waiter = threading.Thread(target=lambda: got.append(server.get("/result", **params)))
    waiter.start()
    until(lambda: server.metric('sluice_waiting{shard="0"}') == 1)
    server.ack(message, result=42)
    waiter.join()
    assert got[0].status == 200 and got[0].body["result"] == 42 and got[0].body["id"] == id_


def test_without_keep_result_there_is_none(server):
    id_, = server.enqueue({})
    server.ack(server.take(), result=1)
    assert result(server, id_).status == 404
    assert result(server, 4711).status == 404


@pytest.mark.parametrize("failures", [1, 2, 4])
@pytest.mark.parametrize("retry, delay", [
    ({"kind": "exponential", "jitter": "none"}, lambda n: 100 * 2 ** (n - 1)),
    ({"kind": "exponential", "jitter": "full"}, lambda n: (0, 100 * 2 ** (n - 1))),
    ({"kind": "linear", "jitter": "none"}, lambda n: 100 * n),
    ({"kind": "fixed", "jitter": "none"}, lambda n: 100),
    ({"kind": "none", "jitter": "none"}, lambda n: 0),
])
def test_every_backoff_policy_delays_as_it_says(server, retry, delay, failures):
    """X-12: after so many failures. The last failure leaves the delay to the policy."""
    server.policy(max_attempts=10, retry={**retry, "base": "100s", "max": "1d"})
    server.enqueue({})
    for _ in range(failures - 1):
        server.nack(server.take(wait=10), delay=0)
    message = server.take(wait=10)
    before = time.time()
    due = seconds_of(server.nack(message)["deliver_after"])
    low, high = delay(failures) if retry["jitter"] == "full" else 2 * (delay(failures),)
    assert before + low - 1 <= due <= time.time() + high + 1
