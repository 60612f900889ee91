"""PEER-3: payloads above 1 MiB through a node that owns nothing. That node uses the store itself."""
import base64
import contextlib
import itertools
import json
import os
import random
import threading
from http.client import HTTPException

import pytest

import lockd
from clustered import SHARDS, node, shards, two, url
from locked import acquire
from served import freeze, until
from test_lockd_stream import passes, peak
from test_uploads import PIECE, Upload

MIB = 1 << 20
LARGE = 9 * MIB + 5  # two objects
count = itertools.count(1)


class Pair:
    """The owner of all shards, the entry node, and what they keep."""

    def __init__(self, folder, owner, entry):
        self.folder, self.owner, self.entry = folder, owner, entry

    def objects(self):
        return sorted(p.name for p in self.folder.glob("store/*/payload/*/*"))

    def in_transit(self):
        """Files of payloads on their way, of any node."""
        return [p for p in self.folder.glob("*/**/transit/payloads/*") if p.is_file()]

    def is_clean(self):
        return not self.objects() and not self.in_transit()


def pair_in(folder, **options):
    with two(folder, **options) as (owner, entry):
        yield Pair(folder, owner, entry)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    yield from pair_in(tmp_path_factory.mktemp("large"))


@pytest.fixture
def pair(running):
    """Both, with a queue for each test, and nothing left of the test before."""
    for server in (running.owner, running.entry):
        server.topic = f"large{next(count)}"
        server.close()  # a server closes a connection that was idle for long
    running.entry.topic = running.owner.topic
    until(running.is_clean)
    yield running
    until(lambda: not running.in_transit())


@pytest.fixture
def own(tmp_path):
    """Servers of the test alone; the entry node takes over soon."""
    yield from pair_in(tmp_path, lease="2s")


def noise(n, seed=1):
    return random.Random(seed).randbytes(n)


def put(server, payload, **more):
    return server.enqueue({"payload": base64.b64encode(payload).decode(), **more})[0]


def payload_of(message):
    return base64.b64decode(message["payload"])


def begun_upload(pair):
    """An attachment whose first bytes are on the entry node, and its lock."""
    lock = acquire(pair.entry, f"key{next(count)}", ttl=600)
    upload = Upload(pair.entry, lock)
    for _ in range(8):
        upload.send()
    until(pair.in_transit)
    return lock, upload


@pytest.mark.parametrize("sender, taker", [("entry", "entry"), ("entry", "owner"), ("owner", "entry")])
def test_a_large_message_comes_back_whole(pair, sender, taker):
    payload = noise(LARGE)
    taker = getattr(pair, taker)
    sent = put(getattr(pair, sender), payload, attributes={"a": 1})
    assert len(pair.objects()) == 2
    assert payload_of(taker.peek()[0]) == payload
    assert payload_of(taker.peek(id=sent)[0]) == payload
    message = taker.take()
    assert message["id"] == sent and payload_of(message) == payload and message["attributes"] == {"a": 1}
    taker.ack(message)
    until(pair.is_clean)


def test_a_large_message_of_the_lockd_api_comes_back_whole(pair):
    payload = noise(LARGE)
    client = lockd.Client(pair.entry.address, queue=f"lockd{next(count)}")
    client.enqueue({}, payload)
    assert len(pair.objects()) == 2
    message = client.take()
    assert message["payload"] == payload
    client.ack(message)
    until(pair.is_clean)


def test_large_and_small_messages_go_together(pair):
    payloads = [noise(n, n) for n in (10, 2 * MIB, 20, 3 * MIB)]
    pair.entry.enqueue(*[{"payload": base64.b64encode(p).decode()} for p in payloads])
    got = []
    while len(got) < len(payloads):
        for message in pair.entry.dequeue(limit=10):
            got.append(payload_of(message))
            pair.entry.ack(message)
    assert got == payloads
    until(pair.is_clean)


def test_a_large_state_and_a_large_attachment_come_back_whole(pair):
    lock = acquire(pair.entry, f"key{next(count)}")
    document = {"text": "x" * LARGE}
    payload = noise(LARGE, 2)
    assert lock.update(document).status == 200
    assert lock.get().body == document
    assert lock.attach("a", payload).status == 200
    connection = pair.entry.connect()
    connection.request("GET", f"/v1/attachment?key={lock.key}&namespace={lock.namespace}&name=a",
                       headers=lock.fields())
    answer = connection.getresponse()
    assert answer.status == 200 and answer.read() == payload
    connection.close()
    assert len(pair.objects()) == 4
    assert lock.remove().status == 200
    assert lock.call("DELETE", "/v1/attachments").status == 200
    assert lock.release().status == 200
    until(pair.is_clean)


def test_a_payload_that_is_not_accepted_leaves_nothing(pair):
    """The owner knows the idempotency key, and refuses what is above its depth."""
    first = put(pair.entry, noise(LARGE), idempotency_key="k")
    assert put(pair.entry, noise(LARGE), idempotency_key="k") == first
    until(lambda: len(pair.objects()) == 2 and not pair.in_transit())
    pair.entry.policy(max_depth=1)
    item = pair.entry.here(payload=base64.b64encode(noise(LARGE, 3)).decode())
    refused = pair.entry.post("/enqueue", [item])
    assert refused.status == 429, refused
    until(lambda: len(pair.objects()) == 2 and not pair.in_transit())
    message = pair.entry.take()
    assert payload_of(message) == noise(LARGE)
    pair.entry.ack(message)
    until(pair.is_clean)


def test_a_client_that_hangs_up_while_it_sends_leaves_nothing(pair):
    """LQ-81."""
    _, upload = begun_upload(pair)
    upload.hang_up()
    until(pair.is_clean)


def begin_to_take(server):
    """A dequeue whose answer has begun to come."""
    sock = server.raw()
    sock.sendall(f"GET /dequeue?namespace={server.namespace}&topic={server.topic}&limit=1 HTTP/1.1\r\n"
                 "Host: localhost\r\n\r\n".encode())
    return sock, sock.recv(1000)


def test_a_client_that_hangs_up_while_it_receives_gets_nothing(pair):
    put(pair.entry, noise(LARGE))
    sock, _ = begin_to_take(pair.entry)
    assert pair.owner.stats()["leased"] == 1 and len(pair.in_transit()) == 1
    sock.close()
    until(lambda: pair.owner.stats()["ready"] == 1 and not pair.in_transit())
    message = pair.entry.take()
    assert message["attempts"] == 1 and payload_of(message) == noise(LARGE)
    pair.entry.ack(message)
    until(pair.is_clean)


def test_a_message_that_is_gone_while_it_is_looked_at_harms_no_other(pair):
    """The owner removes the payload of a message that is acked: a reader of another node finds the end."""
    put(pair.entry, noise(LARGE))
    put(pair.entry, noise(LARGE, 2))
    stop = threading.Event()
    seen = []

    def look():
        while not stop.is_set():
            try:
                seen.append(pair.entry.get("/peek", **pair.entry.here()).status)
            except (OSError, HTTPException):
                seen.append(0)

    looker = threading.Thread(target=look)
    looker.start()
    until(lambda: seen)
    pair.owner.ack(pair.owner.take())
    n = len(seen)
    until(lambda: len(seen) > n + 1)
    stop.set()
    looker.join()
    stats = pair.owner.stats()
    assert stats["ready"] == 1 and stats["damaged"] == 0, stats
    message = pair.entry.take()
    assert payload_of(message) == noise(LARGE, 2)
    pair.entry.ack(message)
    until(pair.is_clean)


# The last test of the shared servers: its message stays.
def test_memory_does_not_grow_with_a_payload_of_another_node(pair):
    if "asan" in os.environ["SLUICED"] or "tsan" in os.environ["SLUICED"]:
        pytest.skip("a sanitizer keeps what is freed")
    before = peak(pair.owner)
    assert passes(pair.entry, 100 * MIB) < 32 * MIB  # an object has 8 MiB
    assert peak(pair.owner) - before < 32 * MIB


def test_an_owner_that_dies_while_a_client_receives_does_not_matter(own):
    """The entry node reads from the store."""
    payload = noise(LARGE)
    put(own.entry, payload)
    sock, said = begin_to_take(own.entry)
    own.owner.kill()
    while not said.endswith(b"\r\n0\r\n\r\n"):
        said += sock.recv(1 << 16)
    sock.close()
    message, = json.loads(b"".join(chunks(said)))
    assert payload_of(message) == payload


def chunks(said):
    """The chunks of an answer, without their heads."""
    rest = said.split(b"\r\n\r\n", 1)[1]
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        n = int(size, 16)
        if n == 0:
            return
        yield rest[:n]
        rest = rest[n + 2:]


def test_an_owner_that_dies_before_it_has_a_large_payload_loses_and_doubles_nothing(own):
    """The client gets 503, nothing is left in the store, and a second try succeeds."""
    lock, upload = begun_upload(own)
    freeze(own.owner.process)
    answers = []
    sender = threading.Thread(target=lambda: answers.append(upload.end()))
    sender.start()
    until(lambda: own.objects() or answers)
    own.owner.kill()
    sender.join(60)
    assert answers[0][0] == 503, answers
    until(lambda: shards(own.entry) == (SHARDS, 0))
    until(own.is_clean)
    assert lock.get().status == 204 and lock.call("GET", "/v1/attachments").body["attachments"] == []
    assert lock.attach("a", noise(LARGE)).status == 200
    assert len(own.objects()) == 2


def knows_owner(server, owner):
    """Every shard is at `owner`, as `server` knows."""
    return {shard["owner"] for shard in server.get("/v1/admin/nodes").body["shards"]} == {url(owner)}


@pytest.mark.parametrize("to", ["entry", "third"])
def test_an_upload_that_began_for_an_earlier_owner_ends_at_the_next(own, to):
    """FILE-8, LINE-9: the payload is stored in the epoch of the owner that accepts it."""
    with contextlib.ExitStack() as stack:
        lock, upload = begun_upload(own)
        heir = own.entry
        if to == "third":
            heir = stack.enter_context(node(own.folder, "third", lease="2s"))
            until(lambda: own.entry.post("/v1/admin/nodes/drain", {}).status == 200)  # it takes no shard
        own.owner.stop()
        until(lambda: knows_owner(own.entry, heir))
        status, body = upload.end()
        assert status == 200, body
        assert lock.call("GET", "/v1/attachment", params={"name": "a"}).text == (PIECE * 8).decode(errors="replace")
        until(lambda: not own.in_transit())
        assert len(own.objects()) == 1
