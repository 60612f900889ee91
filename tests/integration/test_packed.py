"""application/x-sluice-batch: docs/batch-format.md."""
import json
import struct

import pytest

PACKED = "application/x-sluice-batch"


def head(kind, n, *queues):
    names = b"".join(bytes([len(name)]) + name.encode() for queue in queues for name in queue)
    return struct.pack("<4sBBHI", b"SLB1", kind, 0, len(queues), n) + names


def put(payload, queue=0, **members):
    members = json.dumps(members).encode() if members else b""
    return struct.pack("<IIHH", len(members), len(payload), queue, 0) + members + payload


def item(message, **members):
    members = json.dumps(members).encode() if members else b""
    return struct.pack("<IHHQQ", len(members), 0, 0, message["id"], message["fencing_token"]) + members


class Reader:
    """A packed answer."""

    def __init__(self, raw, kind):
        magic, self.kind, zero, queues, self.n = struct.unpack_from("<4sBBHI", raw)
        assert (magic, self.kind, zero) == (b"SLB1", kind, 0)
        self.raw, self.at = raw, 12
        self.queues = [(self.name(), self.name()) for _ in range(queues)]

    def take(self, n):
        self.at += n
        assert self.at <= len(self.raw)
        return self.raw[self.at - n:self.at]

    def name(self):
        return self.take(self.take(1)[0]).decode()

    def unpack(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def members(self, n):
        return json.loads(self.take(n)) if n else {}

    def ids(self):
        found = [self.unpack("<IQ") for _ in range(self.n)]
        assert self.at == len(self.raw)
        return found

    def messages(self):
        for _ in range(self.n):
            (members, payload, queue, attempts, failed, most, id_, token, until, enqueued, due, priority,
             zero) = self.unpack("<IIHHHHQQqqqiI")
            assert zero == 0 and self.queues[queue] and most == 5 and enqueued <= due < until
            yield {**self.members(members), "payload": self.take(payload), "id": id_, "fencing_token": token,
                   "attempts": attempts, "failures": failed, "priority": priority}
        assert self.at == len(self.raw)

    def outcomes(self):
        for _ in range(self.n):
            members, status, zero, id_ = self.unpack("<IHHQ")
            assert zero == 0
            yield {**self.members(members), "status": status, "id": id_}
        assert self.at == len(self.raw)


@pytest.fixture(name="packed")
def packed_(server):
    class Packed:
        place = (server.namespace, server.topic)

        def send(self, method, path, body=None, kind=None, accept=PACKED):
            c = server.connect()
            c.request(method, path, body, {"Content-Type": PACKED, "Accept": accept} if body else {"Accept": accept})
            response = c.getresponse()
            raw = response.read()
            c.close()
            assert response.status == 200, raw
            assert response.headers["Content-Type"] == (PACKED if kind else "application/json")
            return Reader(raw, kind) if kind else json.loads(raw)

        def enqueue(self, *items):
            return self.send("POST", "/enqueue", head(1, len(items), self.place) + b"".join(items), 2).ids()

        def take(self, limit=10):
            answer = self.send("GET", f"/dequeue?namespace={self.place[0]}&queue={self.place[1]}&limit={limit}", None, 3)
            assert answer.queues == [self.place]
            return list(answer.messages())

        def settle(self, path, *items):
            return list(self.send("POST", path, head(4, len(items), self.place) + b"".join(items), 5).outcomes())

    return Packed()


def test_messages_travel_as_bytes(server, packed):
    payloads = [bytes(range(256)), b"", b"x" * 70000]
    ids = packed.enqueue(put(payloads[0]), put(payloads[1], priority=7, key="k", attributes={"a": 1}), put(payloads[2], priority=9))
    assert [flags for flags, _ in ids] == [0, 0, 0]
    taken = packed.take()
    assert [m["payload"] for m in taken] == payloads
    assert [m["id"] for m in taken] == [i for _, i in ids]
    assert [m["priority"] for m in taken] == [5, 7, 9]
    assert taken[1]["key"] == "k" and taken[1]["attributes"] == {"a": 1}
    assert packed.take() == []
    outcomes = packed.settle("/ack", *(item(m) for m in taken))
    assert outcomes == [{"status": 200, "id": m["id"]} for m in taken]
    assert server.stats()["total"] == 0


def test_json_and_bytes_are_the_same_messages(server, packed):
    packed.enqueue(put(b"packed"))
    server.enqueue({"text": "json"})
    first = server.take()
    assert first["payload"] == "cGFja2Vk"
    assert packed.take()[0]["payload"] == b"json"
    server.ack(first)
    answer = packed.send("POST", "/enqueue", head(1, 1, packed.place) + put(b"more"), accept="*/*")
    assert len(answer) == 1 and server.take()["id"] == answer[0]


def test_a_nack_and_an_extend_have_members(server, packed):
    packed.enqueue(put(b"a"), put(b"b"), put(b"c"))
    a, b, c = packed.take()
    done, = packed.settle("/extend", item(a, lease="1h"))
    assert done["status"] == 200 and done["lease_expires_at"]
    done, = packed.settle("/nack", item(b, dead=True, error="broken"))
    assert done["dead"] is True
    stale = {**c, "fencing_token": c["fencing_token"] + 1}
    lost, good, gone = packed.settle("/ack", item(stale), item(c), item(b))
    assert (lost["status"], lost["error"]) == (409, "lease_lost")
    assert good == {"status": 200, "id": c["id"]}
    assert gone["status"] in (404, 409)
    assert server.dlq()[0]["error"] == "broken"


def test_a_duplicate_is_marked(packed):
    first, = packed.enqueue(put(b"a", idempotency_key="once"))
    again, = packed.enqueue(put(b"a", idempotency_key="once"))
    assert first[0] == 0 and again == (1, first[1])


def test_an_invalid_batch_changes_nothing(server, packed):
    good = head(1, 2, packed.place) + put(b"a") + put(b"b")
    for body, index in ((good[:-1], 1), (good + b"x", None), (good.replace(b"SLB1", b"SLB9"), None),
                        (head(1, 2, packed.place) + put(b"a") + put(b"b", queue=1), 1)):
        answer = server.call("POST", "/enqueue", body, {"Content-Type": PACKED})
        assert answer.status == 400 and answer.body["error"] == "invalid", answer
        assert answer.body["message"].count("expected") == 1
        assert answer.body.get("index") == index
    assert server.get("/stats", **server.here()).status == 404  # the queue was not made


def test_a_large_payload_is_answered_as_json(server, packed):
    payload = b"\xff" * (2 << 20)
    packed.enqueue(put(payload))
    c = server.connect()
    c.request("GET", f"/dequeue?namespace={packed.place[0]}&queue={packed.place[1]}", headers={"Accept": PACKED})
    response = c.getresponse()
    assert response.headers["Content-Type"] == "application/json"
    assert json.loads(response.read())[0]["payload"].startswith("////")
    c.close()
