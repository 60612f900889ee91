"""A delivered message has a receipt: one text that settles it, and needs nothing beside it."""
from served import QUICK, Node, Server
from tokens import Secret

KEY = Secret("correct-horse-battery-staple-0123456789")
SHARDS = ("redis.shards:\n  disk: {engine: log}\n  fast: {engine: memory}\n"
          "sharding:\n  enabled: true\n  version: %d\n  commandMappings: {mail: %s}\n")


def test_a_receipt_acks_alone(server):
    server.enqueue({"keep_result": "1h"})
    message = server.take()
    answer = server.post("/ack", {"receipt": message["receipt"], "result": {"ok": True}})
    assert answer.status == 200 and answer.body["id"] == message["id"], answer
    assert server.stats()["total"] == 0
    again = server.post("/ack", {"receipt": message["receipt"]})
    assert (again.status, again.body["error"]) == (404, "not_found")
    result = server.get("/result", receipt=message["receipt"])
    assert result.status == 200 and result.body["result"] == {"ok": True}


def test_a_receipt_nacks_and_extends_alone(server):
    server.enqueue({})
    message = server.take()
    answer = server.post("/extend", {"receipt": message["receipt"], "lease": "1h"})
    assert answer.status == 200 and answer.body["lease_expires_at"] > message["lease_expires_at"]
    pending = server.get("/result", receipt=message["receipt"])
    assert pending.status == 202 and pending.body["id"] == message["id"]
    answer = server.post("/nack", {"receipt": message["receipt"], "error": "no", "dead": True})
    assert answer.status == 200 and answer.body["dead"] is True
    assert server.dlq()[0]["error"] == "no"


def test_many_receipts_settle_in_one_call(server):
    server.enqueue({}, {}, {})
    there = server.here(topic="other")
    assert server.post("/enqueue", [there]).status == 200
    messages = [*server.dequeue(limit=3), *server.get("/dequeue", **there).body]
    old = messages[0]["receipt"]
    answer = server.post("/ack", [{"receipt": m["receipt"]} for m in messages])
    assert [item["status"] for item in answer.body] == [200] * 4
    server.enqueue({})
    message = server.take()
    answer = server.post("/nack", [{"receipt": old}, server.here(id=message["uid"])])
    assert [item["status"] for item in answer.body] == [404, 200]


def test_the_receipt_of_an_earlier_delivery_changes_nothing(server):
    server.enqueue({})
    late = server.take(lease="50ms")
    message = server.take(wait=60)
    assert late["id"] == message["id"] and late["receipt"] != message["receipt"]
    for path in ("/ack", "/nack", "/extend"):
        answer = server.post(path, {"receipt": late["receipt"]})
        assert (answer.status, answer.body["error"]) == (409, "lease_lost")
    assert server.post("/ack", {"receipt": message["receipt"]}).status == 200


def test_a_receipt_is_short_and_plain(server):
    server.namespace, server.topic = "N" * 128, "Q" * 128
    server.enqueue({})
    receipt = server.take()["receipt"]
    assert len(receipt) <= 512 and receipt.replace("-", "").replace("_", "").isalnum()
    assert server.post("/ack", {"receipt": receipt}).status == 200


def test_a_malformed_receipt_is_refused_by_name(server):
    server.enqueue({})
    receipt = server.take()["receipt"]
    for wrong in (receipt[:-1], receipt[:-1] + ("A" if receipt[-1] != "A" else "B"),
                  receipt + "A", "x", "l-1", ""):
        for path in ("/ack", "/nack", "/extend"):
            answer = server.post(path, {"receipt": wrong})
            assert (answer.status, answer.body["error"]) == (400, "invalid"), answer
            assert "invalid receipt" in answer.body["message"]
        answer = server.get("/result", receipt=wrong)
        assert answer.status == 400 and "invalid receipt" in answer.body["message"], answer
    answer = server.post("/ack", [{"receipt": receipt}, {"receipt": "x"}])
    assert answer.status == 400 and answer.body["index"] == 1
    assert server.stats()["leased"] == 1


def test_a_receipt_and_an_id_are_not_mixed(server):
    server.enqueue({})
    message = server.take()
    for path in ("/ack", "/nack", "/extend"):
        answer = server.post(path, server.here(receipt=message["receipt"]))
        assert answer.status == 400 and "not both" in answer.body["message"]
    answer = server.get("/result", receipt=message["receipt"], id=message["uid"])
    assert answer.status == 400 and "not both" in answer.body["message"]
    answer = server.get("/result", namespace="a")
    assert answer.status == 400 and "receipt or id" in answer.body["message"]


def test_rights_are_checked_for_the_namespace_of_the_receipt(tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(KEY.secret + b"\n")
    mine, other, reader = (KEY.bearer(scope=s) for s in ("a:write", "b:write", "a:read"))
    with Server(tmp_path / "data", "--auth-keys", f"HS256:{secret}", engine=QUICK) as server:
        server.call("POST", "/enqueue", [{"namespace": "a", "topic": "t"}], headers=mine)
        message, = server.call("GET", "/dequeue?namespace=a&topic=t", headers=mine).body
        body = {"receipt": message["receipt"]}
        for path in ("/ack", "/nack", "/extend"):
            for who in (other, reader):
                answer = server.call("POST", path, body, headers=who)
                assert answer.status == 403, answer
                assert who is reader or "a:write" in answer.body["message"]
                assert server.call("POST", path, [body], headers=who).status == 403
        result = f"/result?receipt={message['receipt']}"
        assert server.call("GET", result, headers=other).status == 403
        assert server.call("GET", result, headers=reader).status == 202
        assert server.call("POST", "/ack", body, headers=mine).status == 200


def test_a_receipt_is_good_while_its_queue_moves(tmp_path):
    """It names no shard: the queue has another one when the message is settled."""
    with Node(tmp_path, SHARDS % (1, "disk"), engine="memory") as node:
        node.enqueue({}, {})
        one, two = node.dequeue(limit=2)
        assert node.post("/extend", {"receipt": one["receipt"]}).status == 200
        node.reload(SHARDS % (2, "fast") + "  previousShards: {commandMappings: {mail: disk}}\n")
        assert node.post("/ack", {"receipt": one["receipt"]}).status == 200
        answer = node.post("/ack", [{"receipt": two["receipt"]}])
        assert answer.body[0]["status"] == 200, answer
        assert node.stats()["total"] == 0


def test_an_id_without_its_queue_is_refused_on_several_shards(tmp_path):
    """The refusal says what to send instead."""
    with Node(tmp_path, SHARDS % (1, "disk"), engine="memory") as node:
        node.enqueue({})
        message = node.take()
        answers = [node.post("/ack", {"namespace": node.namespace, "id": message["uid"]}),
                   node.get("/result", namespace=node.namespace, id=message["uid"])]
        for answer in answers:
            assert answer.status == 400, answer
            assert "queue is required" in answer.body["message"]
            assert "or the receipt" in answer.body["message"]
