"""Faults 23 to 26, 28 to 32 and 37: clients that mean harm, over real sockets.

Each test ends with a good client being served by the same process: whatever was sent,
no other client suffers."""
import json
import os
import random
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from faults import LONG, Hurt, remove, seed, until

CLOSED = b""
LIMIT = 60  # seconds until a wait has failed


def numbered(value):
    """Ids of cases that are unreadable bytes."""
    return "" if isinstance(value, (bytes, list)) else None


def raw(server, data, wait=LIMIT):
    """All that comes back for these bytes until the server closes; it must close."""
    with socket.create_connection(server.address, timeout=wait) as sock:
        try:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it may have closed already
        return drain(sock)


def drain(sock):
    got = b""
    while True:
        try:
            piece = sock.recv(65536)
        except ConnectionResetError:
            return got
        if piece == CLOSED:
            return got
        got += piece


def statuses(answer):
    return [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]


def head(path="/healthz", method="GET", extra="", host="localhost"):
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{extra}\r\n".encode()


def rss(server, name="VmRSS"):
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
        return int(re.search(rf"{name}:\s+(\d+)", file.read())[1]) << 10


def peak(server):
    """The most memory it has had since forget_peak."""
    return rss(server, "VmHWM")


def forget_peak(server):
    with open(f"/proc/{server.process.pid}/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def descriptors(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile") / "data"
    with Hurt(folder) as server:
        yield server
    remove(folder)


@pytest.fixture
def server(shared):
    """Serves as well after the test as before it."""
    shared.namespace = "good"
    yield shared
    assert shared.process.poll() is None, shared.said()
    shared.close()
    ids = shared.enqueue({"text": "a good client"})
    message = shared.take()
    assert message["id"] == ids[0] and message["payload"] == "YSBnb29kIGNsaWVudA=="
    shared.ack(message)


# --- 23: slow readers --------------------------------------------------------------

def test_a_client_that_does_not_read_is_closed_and_costs_little(server):
    server.namespace = "slow"
    server.enqueue(*[{"text": "x" * 100_000} for _ in range(30)])
    before = rss(server)
    forget_peak(server)
    request = head("/peek?namespace=slow&topic=mail&limit=30")
    socks = [socket.create_connection(server.address, timeout=LIMIT) for _ in range(20)]
    for sock in socks:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.sendall(request * 50)  # 150 MB of answers each, were they all made
    server.namespace = "good"
    for _ in range(200):  # others are served meanwhile, and behind all that was asked for
        server.enqueue({"text": "y"})
        server.ack(server.take())
    assert peak(server) - before < 20 * (12 << 20), "answers pile up for who does not read"
    for sock in socks:
        sock.close()
    until(lambda: rss(server) - before < 64 << 20)


# --- 24: floods of connections ------------------------------------------------------

def test_many_idle_connections_are_cheap_and_an_operator_gets_in(folder):
    with Hurt(folder, prefix=("prlimit", "--nofile=600")) as server:
        before = rss(server)
        socks = []
        for _ in range(400):
            socks.append(socket.create_connection(server.address, timeout=LIMIT))
        until(lambda: server.get("/healthz").status == 200)
        assert rss(server) - before < 500 * (16 << 10)
        for _ in range(200):  # far beyond the limit
            try:
                socks.append(socket.create_connection(server.address, timeout=LIMIT))
            except OSError:
                break
        server.close()
        until(lambda: server.get("/healthz").status == 200)  # from the reserve
        for sock in socks:
            sock.close()
        server.close()
        until(lambda: server.get("/stats", namespace="a", topic="b").status == 404)
        server.enqueue({"text": "still here"})


def test_connections_that_come_and_go_leave_nothing_behind(server):
    rounds = 20_000 if LONG else 3000
    server.get("/healthz")
    before, files = rss(server), descriptors(server)
    dice = random.Random(seed(24))
    for _ in range(rounds):
        sock = socket.create_connection(server.address, timeout=LIMIT)
        how = dice.randrange(4)
        if how == 1:
            sock.sendall(head()[:dice.randrange(1, 30)])
        elif how == 2:
            sock.sendall(head("/dequeue?namespace=good&topic=mail&wait=20"))
        elif how == 3:  # a reset instead of a goodbye
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        sock.close()
    until(lambda: descriptors(server) <= files + 1)
    assert rss(server) - before < 32 << 20


# --- 25: slowly ----------------------------------------------------------------------

DRIPS = {
    "header": (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", b"a"),
    "body": (head("/enqueue", "POST", "Content-Length: 100000\r\n") + b"[", b" "),
    "chunks": (head("/enqueue", "POST", "Transfer-Encoding: chunked\r\n"), b"1\r\n \r\n"),
}


def drip_until_ended(server, first, drop):
    """What came back, or None when it goes on for ever."""
    with socket.create_connection(server.address, timeout=LIMIT) as sock:
        sock.sendall(first)
        sock.settimeout(1)
        ends = time.monotonic() + LIMIT
        while time.monotonic() < ends:
            try:
                sock.sendall(drop)
                return sock.recv(65536)
            except socket.timeout:
                continue
            except OSError:
                return b""
    return None


def test_a_request_that_drips_in_is_ended(server):
    """A byte a second is too slow for each part of a request."""
    with ThreadPoolExecutor() as pool:
        ends = {name: pool.submit(drip_until_ended, server, *drip)
                for name, drip in DRIPS.items()}
    for name, end in ends.items():
        assert end.result() is not None, f"{name} may drip for ever"
        assert statuses(end.result()) in ([408], []), (name, end.result())


# --- 26: bodies without end -----------------------------------------------------------

@pytest.mark.parametrize("length, status", [
    (str(2**63), 413), (str(2**64 + 5), 413), ("9" * 30, 413), (str(17 << 20), 413),
    ("-1", 400), ("+5", 400), ("0x10", 400), ("5, 5", 400), ("", 400), ("5 5", 400),
])
def test_a_body_of_an_absurd_length_is_refused_unread(server, length, status):
    before = rss(server)
    forget_peak(server)
    answer = raw(server, head("/enqueue", "POST", f"Content-Length: {length}\r\n") + b"[" * 1000)
    assert statuses(answer) == [status], answer
    assert peak(server) - before < 16 << 20


def test_a_chunked_body_without_end_is_cut_off(server):
    """Answered when it is too much; what is sent on is thrown away, and not for long."""
    before = rss(server)
    forget_peak(server)
    ends = time.monotonic() + LIMIT
    with socket.create_connection(server.address, timeout=LIMIT) as sock:
        sock.sendall(head("/enqueue", "POST", "Transfer-Encoding: chunked\r\n"))
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        with pytest.raises(OSError):
            while time.monotonic() < ends:
                sock.sendall(chunk)
    assert peak(server) - before < 64 << 20


# --- 28: smuggling ---------------------------------------------------------------------

SECOND = head("/smuggled")


@pytest.mark.parametrize("request_head", [
    "POST /enqueue HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST /enqueue HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n",
    "POST /enqueue HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "POST /enqueue HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
    "POST /enqueue HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n",
    "POST /enqueue HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding : chunked\r\n\r\n",
    "POST /enqueue HTTP/1.1\r\nHost: localhost\r\n Content-Length: 5\r\n\r\n",
    "POST /enqueue HTTP/1.1\r\nHost: localhost\r\nX: y\r\n\tfolded\r\n\r\n",
    "POST /enqueue HTTP/1.1\nHost: localhost\n\n",
    "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: y\nContent-Length: 40\r\n\r\n",
    "POST /enqueue HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5;\nx\r\n",
    "POST /enqueue HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n",
    "POST /enqueue HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
    "POST /enqueue HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n",
    "GET /healthz HTTP/1.1\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: b\r\n\r\n",
    "GET /healthz\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHo st: a\r\n\r\n",
])
def test_what_two_servers_could_read_differently_is_refused(server, request_head):
    """One error, then the end: what follows is never taken for a request."""
    answer = raw(server, request_head.encode("latin-1") + SECOND)
    codes = statuses(answer)
    assert len(codes) == 1 and codes[0] in (400, 413, 501), answer
    assert b"Connection: close" in answer


# --- 29: JSON --------------------------------------------------------------------------

@pytest.mark.parametrize("text", [
    "[" * 100_000, '{"a":' * 100_000, '[{"namespace":"n","topic":"t","json":' + "[" * 70 + "]" * 70 + "}]",
    '[{"namespace":"n","topic":"t","topic":"u"}]', '[{"namespace":"n","topic":"\\ud800"}]',
    '[{"namespace":"n","topic":"t","text":"\\udc00\\ud800"}]', "[NaN]", "[Infinity]",
    '[{"namespace":"n","topic":"t","priority":1e999}]', '[{"namespace":"n","topic":"t","priority":01}]',
    '[{"namespace":"n","topic":"t","text":"a\x00b"}]', '[{"namespace":"n","topic":"t"},]',
    '[{"namespace":"n","topic":"t"} {}]', "", "[", "null", "[{}]\x00", "'x'", "[{a:1}]", "\ufeff[]",
    "[1", '["', "\"\\u12", "[-]", "[+1]", "[.5]", "[1.]", "[1e]", "tru", "[truefalse]", "/* */[]",
])
def test_json_that_is_none_is_refused_with_its_place(server, text):
    answer = server.post("/enqueue", text.encode("utf-8", "surrogatepass"))
    assert answer.status == 400, answer
    assert re.search(r"line \d+, column \d+|expected", answer.body["message"]), answer


@pytest.mark.parametrize("data", [b"[\"\xff\"]", b"[\"\xc0\x80\"]", b"[\"\xed\xa0\x80\"]",
                                  b"[\"\xf4\x90\x80\x80\"]", b"\xff\xfe[]"])
def test_bytes_that_are_no_utf8_are_refused(server, data):
    assert server.post("/enqueue", data).status == 400


def test_random_bytes_break_nothing(server):
    dice = random.Random(seed(29))
    good = b'[{"namespace":"fuzz","topic":"t","text":"a\\u0041","attributes":{"a":[1,2.5e3,null]}}]'
    for _ in range(5000 if LONG else 500):
        data = bytearray(good)
        for _ in range(dice.randrange(1, 6)):
            at = dice.randrange(len(data))
            how = dice.randrange(3)
            if how == 0:
                data[at] = dice.randrange(256)
            elif how == 1:
                del data[at:at + dice.randrange(1, 9)]
            else:
                data[at:at] = bytes(dice.choices(b'[]{}",:\\u0e-\0\xff', k=dice.randrange(1, 9)))
            data = data or bytearray(b" ")
        answer = server.post("/enqueue", bytes(data))
        assert answer.status in (200, 400), (bytes(data), answer)


# --- 30: the protocol -------------------------------------------------------------------

@pytest.mark.parametrize("data, codes", [
    (b"GET /healthz\r\n", [400]),  # HTTP/0.9
    (b"GET /healthz HTTP/2.0\r\nHost: localhost\r\n\r\n", [505]),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [505]),
    (b"BREW /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", [405]),
    (b"GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", [200]),
    (b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", [404]),
    (b"CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", [400]),
    (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nExpect: 200-ok\r\n\r\n", [417]),
    (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", [414]),
    (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 500 + b"\r\n", [431]),
    (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 80_000 + b"\r\n\r\n", [431]),
    (head() * 200, [200] * 200),
    (b"\r\n" + head(), [200]),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 100, [400]),  # TLS
    (b"\0" * 1000 + b"\r\n\r\n", [400]),
], ids=numbered)
def test_http_is_spoken_as_the_standard_says(server, data, codes):
    assert statuses(raw(server, data)) == codes


def test_head_has_the_length_and_no_body(server):
    answer = raw(server, head(method="HEAD"))
    assert statuses(answer) == [200] and answer.endswith(b"\r\n\r\n")
    assert re.search(rb"Content-Length: [1-9]", answer)


# --- 31, 32, 37: text that means something else somewhere ---------------------------------

EVIL = ["a\r\nX-Evil: 1", "a\nb", "a\0b", "\x1b[31mred", "..", "../etc", "%2e%2e%2f", "/etc/passwd",
        "a/b", "a\\b", ".hidden", "x" * 129, "x" * 300, "näme", "a b", "", "a\u202eb", 'a"b', "a{b=\"c\"}"]


@pytest.mark.parametrize("name", EVIL)
def test_a_name_is_of_letters_or_it_is_refused(server, name, shared):
    for member in ("namespace", "topic"):
        item = {"namespace": "good", "topic": "t", "text": "x", member: name}
        answer = server.post("/enqueue", [item])
        assert answer.status == 400, answer
        assert "X-Evil" not in answer.headers
        assert server.get("/dequeue", **{k: v for k, v in item.items() if k != "text"}).status == 400


def test_device_names_and_cases_are_only_names(server):
    for name in ("CON", "nul", "con", "aux.txt", "Con"):
        server.post("/enqueue", [{"namespace": "dev", "topic": name, "text": "x"}])
    rows = server.get("/topics", namespace="dev").body["topics"]
    assert sorted(r["topic"].lower() for r in rows) == ["aux.txt", "con", "nul"]
    assert sum(r["ready"] for r in rows) == 5


@pytest.mark.parametrize("member", ["key", "correlation_id", "content_type", "idempotency_key"])
def test_line_ends_get_into_no_header_and_no_log(server, member):
    for text in ("a\r\nSet-Cookie: x=1", "a\0b", "a\x1b[2Jb"):
        answer = server.post("/enqueue", [{"namespace": "good", "topic": "t", "text": "x",
                                           member: text}])
        assert answer.status == 400 and "Set-Cookie" not in answer.headers, answer


def test_headers_that_come_back_are_clean(server):
    answer = raw(server, head(extra="X-Request-Id: ab\x01c\r\n"))
    assert statuses(answer) == [400]
    answer = raw(server, head(extra="X-Request-Id: " + "x" * 500 + "\r\n"))
    assert b"xxxxx" not in answer
    assert statuses(answer) == [200]


def test_what_is_logged_stays_on_its_line(folder):
    """Text of a client, wherever it is shown, cannot forge a line or colour a terminal."""
    with Hurt(folder, "--log-level", "debug") as server:
        server.post("/enqueue", '[{"namespace":"\\u001b[31m\\nlevel=error event=forged"}]')
        raw(server, b"GET /\x1b[31mforged HTTP/1.1\r\nHost: localhost\r\n\r\n")
        raw(server, head("/%0alevel=error%20event=forged"))
        server.enqueue({"text": "x"})
        server.nack(server.take(), dead=True, error="boom\nlevel=error event=forged \x1b[31m")
        server.kill()
        said = server.said()
    assert "\x1b" not in said
    for line in said.splitlines():
        assert not line.startswith("level=error event=forged"), said


def test_many_topics_do_not_make_many_metrics(folder):
    n = 3000
    with Hurt(folder, engine="memory") as server:
        for at in range(0, n, 500):
            server.enqueue(*[{"text": "x", "topic": f"t{at + i}"} for i in range(500)])
        text = server.get("/metrics").text
        topics = set(re.findall(r'^sluice_queue_messages\{.*topic="(.*?)"', text, re.M))
        assert len(topics) == 1001 and ".other" in topics
        assert len(text) < 4 << 20
        for line in text.splitlines():
            assert line.startswith("#") or re.fullmatch(
                r'[a-zA-Z_:][\w:]*(\{(\w+="([^"\\\n]|\\.)*",?)*\})? [-+\w.]+', line), line


def test_many_hostile_clients_at_once(server):
    """All of it from many threads, beside good clients that lose nothing."""
    dice = random.Random(seed(31))
    junk = [head()[:20], b"\0" * 300, head("/enqueue", "POST", "Content-Length: 99\r\n") + b"[",
            head("/dequeue?namespace=good&topic=none&wait=5"), head() * 80, b"GET / HTTP/9.9\r\n\r\n"]
    stop = threading.Event()

    def hostile(n):
        own = random.Random(n)
        while not stop.is_set():
            try:
                with socket.create_connection(server.address, timeout=LIMIT) as sock:
                    sock.sendall(own.choice(junk))
                    if own.random() < 0.5:
                        sock.recv(100)
            except OSError:
                pass

    threads = [threading.Thread(target=hostile, args=(dice.random(),)) for _ in range(16)]
    for t in threads:
        t.start()
    try:
        for i in range(300):
            message_id, = server.enqueue({"text": str(i), "topic": "many"})
            message = server.take(topic="many", wait=20)
            assert message["id"] == message_id and message["attempts"] >= 1
            server.ack(message, topic="many")
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert json.loads(server.get("/healthz").text)["status"] == "ok"
