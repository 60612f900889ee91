"""Log lines: ids of requests, and that no input can forge one."""
import http.client
import json
import re
import subprocess

import pytest

from served import QUICK, SLUICED, Server, until


@pytest.fixture
def server(folder):
    with Server(folder, "--log-level", "debug", engine=QUICK) as server:
        yield server


def lines(server, event):
    begins = re.compile(rf'time=\S+ level=\w+ event="?{event}"? ')
    return [e for e in server.errors if begins.match(e)]


def line_of(server, event, mark):
    """The one line of this event that has the mark."""
    return until(lambda: [e for e in lines(server, event) if mark in e])[0]


IDS = {"X-Request-Id": "req-1", "X-Correlation-Id": "corr-1"}


def test_a_request_is_logged_with_its_ids(server):
    server.call("POST", "/enqueue", [server.here(text="x")], headers=IDS)
    line = line_of(server, "request", "req-1")
    assert "level=debug" in line and "method=POST route=/enqueue status=200" in line
    assert "request_id=req-1 correlation_id=corr-1" in line and "sent=true" in line


def test_a_request_without_ids_is_logged_without(server):
    server.get("/healthz")
    line = line_of(server, "request", "route=/healthz")
    assert "_id=" not in line


@pytest.mark.parametrize("method, path, size, headers, event", [
    ("GET", "/stats", None, {"Host": "evil.example"}, "request refused"),
    ("POST", "/enqueue", 17 << 20, {}, "request refused"),
    ("POST", "/enqueue", 5, {}, "request"),
], ids=["host", "length", "json"])
def test_a_refused_request_is_logged_with_its_ids(server, method, path, size, headers, event):
    connection = server.connect()
    try:
        connection.request(method, path, size and "x" * size, {**IDS, **headers})
    except OSError:
        pass  # it was answered before it was read
    answer = connection.getresponse()
    assert answer.status >= 400 and answer.headers["X-Request-Id"] == "req-1"
    connection.close()
    assert "correlation_id=corr-1" in line_of(server, event, "req-1")


def test_a_claim_that_was_not_received_is_logged_with_its_ids(server):
    sock = server.raw()
    sock.sendall(b"GET /dequeue?namespace=test&topic=mail&wait=60 HTTP/1.1\r\nHost: localhost\r\n"
                 b"X-Correlation-Id: lost-1\r\n\r\n")
    until(lambda: server.metric('sluice_waiting{shard="0"}') == 1)
    sock.close()
    assert "sent=false" in line_of(server, "request", "lost-1")


FORGED = [
    'a" level=error event=forged x="',
    "a level=error event=forged",
    "a\\nb\\u000a",
    "x=y",
    '"},{"event":"forged"}',
]


@pytest.mark.parametrize("text", FORGED)
def test_an_id_cannot_forge_a_line_or_a_field(server, text):
    assert server.call("GET", "/healthz", headers={"X-Request-Id": text}).status == 200
    line = line_of(server, "request", "request_id=")
    value = re.search(r' request_id=("(?:[^"\\]|\\.)*"|\S+)\n', line)[1]
    assert (json.loads(value) if value[0] == '"' else value) == text
    assert not lines(server, "forged")


@pytest.mark.parametrize("raw", [b"a\x0bb", b"a\x1b[2Jb", b"a\x7fb", b"a\xffb", b"a\x80b"])
def test_an_id_with_harmful_bytes_is_not_taken(server, raw):
    with server.raw() as sock:
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: " + raw +
                     b"\r\nConnection: close\r\n\r\n")
        answer = b""
        while piece := sock.recv(4096):
            answer += piece
    assert raw not in answer
    until(lambda: lines(server, "request"))
    assert all(re.fullmatch(r"[\x20-\x7e]*\n", e) for e in server.errors)


@pytest.mark.parametrize("path", ["/%0a%0devent=forged", "/enqueue%00", "/../x", "/\u00e9",
                                  '/"x=y', "/" + "x" * 300])
def test_a_request_without_a_route_is_logged_with_method_and_path(server, path):
    """What was sent stays inside of its value."""
    with server.raw() as sock:
        sock.sendall(f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while piece := sock.recv(4096):
            answer += piece
    if answer.startswith(b"HTTP/1.1 400"):  # not even a path
        return
    body = json.loads(answer.split(b"\r\n\r\n", 1)[1])
    assert answer.startswith(b"HTTP/1.1 404") and body["method"] == "PUT" and body["path"] == path
    line = line_of(server, "request refused", "status=404")
    value = re.search(r' method=PUT path=("(?:[^"\\]|\\.)*"|[^\s"=]+)( |\n)', line)[1]
    assert (json.loads(value) if value[0] == '"' else value) == path[:128]
    assert not lines(server, "forged")


def test_json_lines_are_json_whatever_is_sent(folder):
    process = subprocess.Popen(
        [SLUICED, "--engine", "memory", "--listen", "127.0.0.1:0", "--log-format", "json",
         "--log-level", "debug", "--data", str(folder)], stderr=subprocess.PIPE, text=True)
    said = []
    for line in process.stderr:
        said.append(json.loads(line))
        if said[-1]["event"] == "listening":
            break
    port = int(said[-1]["address"].rsplit(":", 1)[1])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for text in FORGED:
        connection.request("GET", "/healthz", headers={"X-Correlation-Id": text})
        assert connection.getresponse().read()
    connection.close()
    process.terminate()
    said += [json.loads(line) for line in process.stderr]
    process.stderr.close()
    assert process.wait(60) == 0
    assert [e["correlation_id"] for e in said if e["event"] == "request"] == FORGED


def depths(server):
    """What was logged of queues, in order: (level, event, queue, depth)."""
    what = re.compile(r'level=(\w+) event="(queue is [a-z ]+)" namespace=test queue=(\S+) depth=(\d+)'
                      r' warn_depth=10\n')
    return [m.groups() for e in server.errors if (m := what.search(e))]


@pytest.mark.parametrize("engine", ["memory", "log"])
def test_a_queue_that_grows_deep_is_logged_once_and_once_when_it_is_not(folder, engine):
    told = [("warn", "queue is deep", "mail", "11")]
    with Server(folder, "--log-level", "info", engine=engine) as server:
        server.policy(warn_depth=10)
        server.enqueue(*({"text": "x"} for _ in range(10)))
        assert not depths(server)
        for _ in range(3):  # it hovers
            server.enqueue({"text": "x"})
            until(lambda: depths(server) == told)
            server.ack(server.take())
        if engine == "log":  # what a server finds is news, too
            server.enqueue({"text": "x"})
            server.restart("kill")
            assert server.stats()["total"] == 11
            until(lambda: depths(server) == told)
            server.ack(server.take())
        server.ack(server.take())  # 9
        server.enqueue({"text": "y"}, topic="other")
        assert depths(server) == told
        server.ack(server.take())  # 8 of 10
        told.append(("info", "queue is no longer deep", "mail", "8"))
        until(lambda: depths(server) == told)
        server.enqueue(*({"text": "x"} for _ in range(5)))
        told.append(("warn", "queue is deep", "mail", "13"))
        until(lambda: depths(server) == told)
        server.post("/v1/admin/queue/purge", server.here())
        told.append(("info", "queue is no longer deep", "mail", "0"))
        until(lambda: depths(server) == told)
