"""What a client says comes back as data: never as a header, a line of the log, a metric or a
page."""
import http.client
import json
import re

import pytest

from served import QUICK, Server, until

PAYLOADS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "x\r\nSet-Cookie: a=b",
    "x\nlevel=error event=forged",
    "\x1b[31mred\x1b[0m",
    'x"} 1\nforged_total{a="b',
    "%0d%0aX: y",
    "${jndi:ldap://x}",
    "\u2028\u202eabc",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("injection"), "--log-level", "debug",
                engine=QUICK) as server:
        yield server


def check(answer):
    """In form: the fields are ours, a body is JSON and says that it is."""
    names = {name.lower() for name in answer.headers.keys()}
    assert not names & {"set-cookie", "x", "forged"}, answer.headers
    if answer.text:
        assert answer.headers["Content-Type"].startswith("application/json"), answer.headers
        json.loads(answer.text)
    return answer


PLACES = ["text", "key", "idempotency_key", "correlation_id", "content_type", "namespace", "topic",
          "attributes", "priority", "traceparent", "payload"]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_what_is_stored_comes_back_as_data(server, payload):
    """Stored XSS: in every member, and in an error of a nack, as every view shows it."""
    for place in PLACES:
        item = server.here(text="x", topic="stored")
        value = {payload: payload} if place == "attributes" else payload
        item.update({place: value, **({"text": ""} if place == "payload" else {})})
        if place == "payload":
            del item["text"]
        answer = check(server.call("POST", "/enqueue", [item]))
        assert answer.status in (200, 400)
    for message in server.get("/dequeue", namespace="test", topic="stored", limit=1000).body:
        check(server.call("POST", "/nack", server.here(
            topic="stored", id=message["id"], lease_id=message["lease_id"], error=payload,
            delay=0)))
    for path in ("/peek?state=all&", "/stats?", "/dlq?", "/v1/admin/messages?", "/v1/admin/queue?"):
        check(server.call("GET", f"{path}namespace=test&topic=stored"))


@pytest.mark.parametrize("payload", PAYLOADS)
def test_what_is_asked_for_comes_back_as_data(server, payload):
    """Names, ids, cursors and paths in refusals."""
    for params in ({"namespace": payload, "topic": "x"}, {"namespace": "x", "topic": payload},
                   {"namespace": "x", "topic": "y", "cursor": payload},
                   {"namespace": "x", "topic": "y", payload: "z"}):
        for path in ("/peek", "/dequeue", "/stats", "/v1/admin/queue"):
            check(server.get(path, **params))
    check(server.call("POST", "/ack", server.here(id=payload)))
    path = "/" + "".join(c if c.isascii() and c > " " else "%0a" for c in payload)
    assert check(server.call("GET", path)).status in (400, 404)


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("field", ["X-Request-Id", "X-Correlation-Id", "traceparent", "Host",
                                   "Authorization", "Origin", "Content-Type"])
def test_a_field_comes_back_whole_or_not_at_all(server, field, payload):
    """As raw bytes: whatever is in it, no field is added to the answer."""
    sock = server.raw()
    host = b"" if field == "Host" else b"Host: localhost\r\n"
    raw = payload.encode().replace(b"\r\n", b"\r").replace(b"\n", b"\r")
    sock.sendall(b"GET /healthz HTTP/1.1\r\n" + host + f"{field}: ".encode() + raw +
                 b"\r\nConnection: close\r\n\r\n")
    answer = http.client.HTTPResponse(sock)
    answer.begin()
    assert not {k.lower() for k in answer.headers.keys()} & {"set-cookie", "x", "forged"}
    back = answer.headers.get(field)
    assert back is None or all(" " <= c <= "~" for c in back), back
    sock.close()


def test_the_log_and_the_metrics_are_as_they_should_be(server):
    """After all of that: a line of the log is an event, a line of /metrics a series."""
    server.get("/healthz")
    until(lambda: any("route=/healthz" in line for line in server.errors))
    for line in server.errors:
        assert re.match(r"time=\S+ level=\w+ event=|sluiced ", line), line
        assert "event=forged" not in line.split('"')[0], line
        assert "\x1b" not in line
    for line in server.get("/metrics").text.splitlines():
        assert re.fullmatch(r'# (HELP|TYPE) (sluice|process)_.*|(sluice|process)_\w+(\{[^{}]*\})? [-+.\w]+', line), line
        assert "forged" not in line and "<script" not in line and "alert" not in line
