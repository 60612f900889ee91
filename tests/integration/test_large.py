"""Payloads of more than 1 MiB: files of their own, answers in pieces."""
import base64
import hashlib
import json
import random
import re
import socket
import threading
from http.client import HTTPException as http_error

import pytest

from served import ENGINE, Server, until

MIB = 1 << 20


def noise(n, seed=1):
    return random.Random(seed).randbytes(n)


def put(server, payload, **more):
    item = {"payload": base64.b64encode(payload).decode(), **more}
    return server.enqueue(item)[0]


def take(server):
    message, = server.dequeue(limit=1)
    return message, base64.b64decode(message["payload"])


in_folder = pytest.mark.skipif(ENGINE == "forwarded", reason="the payloads are in the store: test_cluster_large.py")


def files(server):
    return [p.name for p in server.payload_files()]


def rss(server):
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmRSS"):
                return int(line.split()[1]) << 10
    raise AssertionError("no VmRSS")


def ask(server, sock, **params):
    query = "&".join(f"{k}={v}" for k, v in server.here(**params).items())
    sock.sendall(f"GET /dequeue?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())


@pytest.fixture(scope="module")
def in_memory():
    with Server("none", engine="memory") as s:
        yield s


@pytest.fixture(params=["log", "memory"])
def any_server(request, server, in_memory):
    in_memory.namespace = server.namespace
    return server if request.param == "log" else in_memory


@pytest.fixture
def own(folder):
    """A server of one's own: its files are counted."""
    with Server(folder) as s:
        yield s


@pytest.mark.parametrize("size", [MIB - 1000, MIB, MIB + 1, 2 * 65532, 3 * MIB + 7, 11 * MIB + 5])
def test_a_message_of_any_size_comes_back_byte_by_byte(any_server, size):
    payload = noise(size, size)
    put(any_server, payload, key="k", attributes={"a": 1}, content_type="x/y")
    message, got = take(any_server)
    assert hashlib.sha256(got).digest() == hashlib.sha256(payload).digest()
    assert message["key"] == "k" and message["attributes"] == {"a": 1}
    assert message["content_type"] == "x/y" and message["attempts"] == 1
    any_server.ack(message)
    assert any_server.stats()["total"] == 0


def test_a_text_of_nearly_16_MiB_comes_back(any_server):
    """The largest request there is."""
    text = "".join(random.Random(3).choices("abcdefghijk \\\"", k=1 << 16)) * 200
    text = text[:13 * MIB]
    any_server.enqueue({"text": text})
    _, got = take(any_server)
    assert got.decode() == text


def test_large_and_small_messages_go_together(any_server):
    payloads = [noise(n, n) for n in (10, 1200000, 20, 1300000, 30)]
    any_server.enqueue(*[{"payload": base64.b64encode(p).decode()} for p in payloads])
    got = []
    while len(got) < len(payloads):
        got += [base64.b64decode(m["payload"]) for m in any_server.dequeue(limit=10)]
    assert got == payloads


def test_a_large_message_can_be_looked_at(any_server):
    payload = noise(5 * MIB)
    first = put(any_server, payload)
    second = put(any_server, payload)
    page = any_server.peek()
    assert [m["id"] for m in page] == [first, second]
    assert base64.b64decode(page[0]["payload"]) == payload
    assert "payload" not in page[1] and page[1]["payload_size"] == len(payload)  # 4 MiB are enough
    one, = any_server.peek(id=second)
    assert base64.b64decode(one["payload"]) == payload


def test_a_file_lives_as_long_as_its_message(own):
    for i in range(3):
        put(own, noise(2 * MIB, i))
    put(own, b"small")
    assert len(files(own)) == 3
    own.restart()
    assert len(files(own)) == 3
    own.ack(take(own)[0])
    until(lambda: len(files(own)) == 2)
    for _ in range(3):
        own.ack(take(own)[0])
    until(lambda: files(own) == [])


@in_folder
def test_every_shard_has_files_of_its_own(folder):
    with Server(folder, "--shards", "3") as server:
        payloads = {f"t{i}": noise(MIB + 100 + i, i) for i in range(8)}
        server.enqueue(*[{"topic": t, "payload": base64.b64encode(p).decode()}
                         for t, p in payloads.items()])
        assert len(list(folder.glob("*/payloads/*"))) == 8
        assert len(list(folder.glob("*/payloads"))) > 1
        server.restart("kill")
        for topic, payload in payloads.items():
            server.topic = topic
            message, got = take(server)
            assert got == payload
            server.ack(message)
        until(lambda: list(folder.glob("*/payloads/*")) == [])


@in_folder
def test_files_that_no_message_has_are_removed_at_start(own):
    put(own, noise(2 * MIB))
    own.stop()
    (own.folder / "payloads" / "00000099").write_bytes(b"left behind")
    (own.folder / "payloads" / "notes.txt").write_bytes(b"somebody's")
    own.start()
    assert files(own) == ["00000001", "notes.txt"]
    put(own, noise(2 * MIB))
    assert "00000100" in files(own)


def test_an_old_client_gets_a_large_message(server):
    """HTTP/1.0: the end of the connection ends the body."""
    payload = noise(3 * MIB)
    put(server, payload)
    sock = server.raw()
    query = "&".join(f"{k}={v}" for k, v in server.here(limit=1).items())
    sock.sendall(f"GET /dequeue?{query} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
    data = b""
    while more := sock.recv(1 << 16):
        data += more
    head, body = data.split(b"\r\n\r\n", 1)
    assert b"chunked" not in head.lower()
    message, = json.loads(body)
    assert base64.b64decode(message["payload"]) == payload


@pytest.mark.parametrize("wait", [0, 20])
def test_a_client_that_hangs_up_in_the_middle_of_a_large_message_gets_nothing(server, wait):
    """Invariant 13: not handed over whole, so no attempt is counted."""
    payload = noise(11 * MIB)
    put(server, payload, key="k")
    put(server, b"behind it", key="k")
    for _ in range(3):
        sock = server.raw()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        ask(server, sock, limit=1, wait=wait)
        assert sock.recv(1000)
        assert server.stats()["leased"] == 1
        sock.close()
        until(lambda: server.stats()["ready"] == 1)
    message, got = take(server)
    assert got == payload
    assert message["attempts"] == 1 and message["failure_attempts"] == 0


def test_slow_readers_cost_little_memory(server):
    """Eight large messages under way; in memory they would be 8 times 11 MiB, and as
    much again and a third in base64."""
    for i in range(8):
        put(server, noise(11 * MIB, i))
    put(server, b"x", priority=-1)
    take(server)
    before = rss(server)
    socks = []
    for _ in range(8):
        sock = server.raw()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        ask(server, sock, limit=1)
        assert sock.recv(1000)
        socks.append(sock)
    assert server.stats()["leased"] == 9
    assert rss(server) - before < 40 * MIB
    assert server.get("/healthz").status == 200
    for sock in socks:
        sock.close()
    until(lambda: server.stats()["ready"] == 8)


@in_folder
def test_a_server_that_is_killed_while_large_messages_come_loses_none(own):
    """LQ-81: accepted means durable, no message is without its payload, and nothing is
    left behind that no message has."""
    accepted = {}
    for life in range(6):
        def push(name, life=life):
            for i in range(1000):
                payload = noise(MIB + 1 + 300000 * (i % 4), f"{name}-{life}-{i}")
                try:
                    accepted[put(own, payload)] = hashlib.sha256(payload).digest()
                except (OSError, http_error):
                    return
        threads = [threading.Thread(target=push, args=(n,)) for n in ("a", "b")]
        want = len(accepted) + 1 + life
        for t in threads:
            t.start()
        until(lambda want=want: len(accepted) >= want)
        own.kill()
        for t in threads:
            t.join()
        own.start()
        assert len(files(own)) == own.stats()["total"]
    seen = set()
    while page := own.dequeue(limit=10):
        for m in page:
            digest = hashlib.sha256(base64.b64decode(m["payload"])).digest()
            assert accepted.get(m["id"], digest) == digest
            seen.add(m["id"])
            own.ack(m)
    assert seen >= set(accepted)
    until(lambda: files(own) == [])


def spoil(path, at):
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)
        f.seek(at)
        f.write(bytes([byte[0] ^ 1]))


@pytest.mark.parametrize("block", [0, 100])
def test_a_damaged_message_is_set_aside(own, block):
    """DESIGN section 3: visible, never handed out, never deleted but by an operator. Its
    key goes on without it."""
    bad = put(own, noise(11 * MIB), key="k")
    good = put(own, b"good", key="k")
    spoil(own.payload_files()[0], 4096 + block * 65536 + 50)
    if block:  # found when much of it was sent: the answer breaks off
        with pytest.raises(http_error):
            own.peek(limit=1)
        with pytest.raises(http_error):
            own.dequeue(limit=1)
    else:
        assert own.dequeue(limit=1) == []
    stats = until(lambda: own.stats()["damaged"] == 1 and own.stats())
    assert stats["ready"] == 1 and stats["total"] == 2
    until(lambda: re.search("message damaged.*payloads/", own.said()))
    message, payload = take(own)
    assert message["id"] == good and payload == b"good"
    own.restart()
    assert own.stats()["damaged"] == 1 and len(files(own)) == 1
    shown, = own.peek(state="damaged")
    assert shown["id"] == bad and shown["status"] == "damaged" and "payload" not in shown
    assert shown["key"] == "k" and shown["attempts"] == 0
    assert own.metric('sluice_messages{state="damaged"}') == 1
    answer = own.post("/v1/admin/message/delete", own.here(id=bad))
    assert answer.status == 200, answer
    assert own.stats()["damaged"] == 0
    until(lambda: files(own) == [])


@in_folder
def test_a_payload_file_that_is_gone_sets_its_message_aside(own):
    put(own, noise(2 * MIB))
    own.stop()
    (own.folder / "payloads" / "00000001").unlink()
    own.start()
    shown, = own.peek()
    assert shown["status"] == "damaged"
    assert own.stats()["ready"] == 1  # looking changes nothing
    assert own.dequeue() == []
    until(lambda: own.stats()["damaged"] == 1)
