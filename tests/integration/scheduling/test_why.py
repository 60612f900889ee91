"""GET /why: the reason for which a message is not running now."""
import threading

from served import until


def why(server, id_, **more):
    answer = server.get("/why", namespace=server.namespace, id=id_, **more)
    assert answer.status == 200, answer
    return answer.body


def reasons(server, id_):
    return [r["reason"] for r in why(server, id_)["reasons"]]


def test_the_first_reason_is_the_answer(server):
    """SQ-F5: state, attempts and position of a message by its id."""
    first, second = server.enqueue({"text": "1"}, {"text": "2"})
    got = why(server, second, topic=server.topic)
    assert got["id"] == second and got["status"] == "ready" and got["queue"] == server.topic and got["attempts"] == 0
    assert got["reason"] == "ahead" and got["text"] == "1 message is ahead"
    assert got["reasons"][0]["ahead"] == 1 and not got["reasons"][0]["more"]
    assert [r["reason"] for r in got["reasons"]] == ["ahead", "no_consumer"]
    assert got["consumers_waiting"] == 0
    assert reasons(server, first) == ["no_consumer"]
    assert server.get("/why", **server.here(id=7)).status == 404
    assert server.get("/why", namespace="other", id=first).status == 404
    assert server.get("/why", id=first).status == 400


def test_a_delay_a_lease_a_retry_and_a_death_are_told(server):
    later, = server.enqueue({"text": "x", "deliver_after": "2100-01-01T00:00:00Z"})
    got = why(server, later)
    assert got["reason"] == "delayed" and got["estimate"] == "2100-01-01T00:00:00Z"
    assert got["text"] == "delayed until 2100-01-01T00:00:00Z"
    id_, = server.enqueue({"text": "y"})
    message = server.take(owner="w7")
    got = why(server, id_)
    assert got["reason"] == "leased" and got["reasons"][0]["owner"] == "w7"
    assert got["reasons"][0]["until"] == message["lease_expires_at"]
    assert server.get("/why", receipt=message["receipt"]).body["reason"] == "leased"
    server.settle("/nack", message, delay="1h")
    assert why(server, id_)["reason"] == "retry"
    assert why(server, id_)["text"].startswith("delivered 1 times; the retry is at 2")
    dead, = server.enqueue({"text": "z"})
    server.settle("/nack", server.take(), dead=True)
    assert why(server, dead)["reason"] == "dead"
    assert "rejected by a consumer" in why(server, dead)["text"]


def test_a_message_behind_another_of_its_key_names_it(server):
    first, second = server.enqueue({"text": "1"}, {"text": "2"}, key="k")
    message = server.take(owner="w7")
    got = why(server, second)
    assert got["status"] == "held" and got["reason"] == "behind"
    one, = got["reasons"]
    assert one["behind"] == first and one["status"] == "leased" and one["owner"] == "w7"
    assert one["until"] == message["lease_expires_at"]
    assert got["text"] == f"behind message {first} of its key, which is leased by w7 until {one['until']}"
    server.ack(message)
    assert why(server, second)["reason"] == "no_consumer"


def test_a_paused_queue_says_so(server):
    id_, = server.enqueue({"text": "x"})
    assert server.post("/v1/admin/queue/pause", server.here()).status == 200
    assert reasons(server, id_)[0] == "paused"
    assert why(server, id_)["text"] == "the queue is paused"


def test_a_claim_that_waits_is_a_consumer(server):
    """A paused queue keeps the message from the claim that waits for it."""
    id_, = server.enqueue({"text": "x"})
    server.post("/v1/admin/queue/pause", server.here())
    claim = threading.Thread(target=server.get, args=("/dequeue",), kwargs=server.here(wait="60s"))
    claim.start()
    until(lambda: why(server, id_)["consumers_waiting"] == 1)
    assert reasons(server, id_) == ["paused"]
    server.post("/v1/admin/queue/resume", server.here())
    claim.join()
    assert why(server, id_)["reason"] == "leased"
