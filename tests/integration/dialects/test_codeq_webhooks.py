"""The webhooks of codeQ: results that are posted, signed and repeated. docs/codeq.md."""
import hashlib
import hmac
import http.server
import json
import threading
import time

import pytest

from codeq import Codeq
from served import LOG, QUICK, Refused, Server, until

SECRET = "correct-horse-battery-staple"
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Receiver:
    """Answers with the given statuses, then with 204; remembers what came."""

    def __init__(self, *statuses, location=None):
        self.got, self.statuses = [], list(statuses)
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append((self.path, self.headers, body))
                self.send_response(receiver.statuses.pop(0) if receiver.statuses else 204)
                if location:
                    self.send_header("Location", location)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, path="/done"):
        return f"http://127.0.0.1:{self.server.server_address[1]}{path}"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("codeq")
    (folder / "secret").write_text(SECRET + "\n")
    with Server(folder / "data", "--codeq-webhook-secret-file", str(folder / "secret"), "--codeq-webhook-allow", "127.0.0.0/8",
                engine=LOG) as server:
        yield server


def check(headers, body):
    want = hmac.new(SECRET.encode(), headers["X-CodeQ-Timestamp"].encode() + b"." + body, hashlib.sha256).hexdigest()
    assert headers["X-CodeQ-Signature"] == want


def test_a_webhook_is_signed_and_repeated(server):
    """X-10: the receiver verifies the signature; a delivery that failed is repeated. X-15: it has the trace of the task."""
    receiver, codeq = Receiver(500), Codeq(server)
    codeq.create(command="MAIL", webhook=receiver.url(), headers={"traceparent": PARENT, "tracestate": "a=1"})
    task = codeq.claim("MAIL")
    record = codeq.settle("result", task, {"status": "COMPLETED", "result": {"n": 1},
                                           "artifacts": [{"name": "a", "url": "http://a/"}]})
    until(lambda: len(receiver.got) == 2)
    for path, headers, body in receiver.got:
        check(headers, body)
        assert path == "/done" and headers["Content-Type"] == "application/json"
        assert (headers["traceparent"], headers["tracestate"]) == (PARENT, "a=1")
        assert json.loads(body) == {**record, "eventType": "MAIL"}


def test_results_of_a_batch_failures_and_the_last_nack_call(server):
    """X-10: FAILED, a batch and a terminal nack."""
    receiver, codeq = Receiver(), Codeq(server)
    for i in range(4):
        codeq.create(command="calls", webhook=receiver.url(f"/{i}"), maxAttempts=1)
    tasks = [codeq.claim("calls") for _ in range(4)]
    codeq.good("worker", "POST", "/tasks/batch/results", {"results": [
        {"taskId": tasks[0]["id"], "status": "COMPLETED", "result": {}},
        {"taskId": tasks[1]["id"], "status": "FAILED", "error": "no"}]})
    assert codeq.settle("nack", tasks[2], {"reason": "dead"})["status"] == "dlq"
    codeq.settle("abandon", tasks[3])  # which does not
    until(lambda: len(receiver.got) == 3)
    found = {path: json.loads(body) for path, _, body in receiver.got}
    assert {path: (body["status"], body.get("error")) for path, body in found.items()} == {
        "/0": ("COMPLETED", None), "/1": ("FAILED", "no"), "/2": ("FAILED", "dead")}
    assert codeq.claim("calls")["id"] == tasks[3]["id"]


def test_no_request_waits_for_a_webhook(server):
    """X-10: a receiver that never answers holds up nobody."""
    held = threading.Event()
    slow, codeq = Receiver(), Codeq(server)
    slow.server.RequestHandlerClass.do_POST = lambda self: held.wait(60)
    for _ in range(3):
        codeq.create(command="slow", webhook=slow.url())
        codeq.complete(codeq.claim("slow"))
    quick = Receiver()
    codeq.create(command="quick", webhook=quick.url())
    codeq.complete(codeq.claim("quick"))
    until(lambda: quick.got)
    stopped = time.monotonic()
    server.restart()  # nor the end of the server
    assert time.monotonic() - stopped < 12
    held.set()


def test_a_webhook_outlives_a_kill(tmp_path):
    """X-10: it is as durable as the result."""
    receiver = Receiver(500, 500)
    with Server(tmp_path / "data", "--codeq-webhook-allow", "127.0.0.1", engine=LOG) as server:
        codeq = Codeq(server)
        codeq.create(command="a", webhook=receiver.url())
        codeq.complete(codeq.claim("a"))
        until(lambda: receiver.got)
        server.restart("kill")
        until(lambda: len(receiver.got) >= 3)
        assert "X-CodeQ-Signature" not in receiver.got[0][1]  # without a secret


def test_redirects_are_not_followed(server):
    target, codeq = Receiver(), Codeq(server)
    receiver = Receiver(307, location=target.url())
    codeq.create(command="moved", webhook=receiver.url())
    codeq.complete(codeq.claim("moved"))
    until(lambda: len(receiver.got) == 2)  # the redirect is a failure, and repeated
    assert target.got == []


INSIDE = ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "169.254.169.254", "10.1.2.3", "[::ffff:127.0.0.1]", "[fe80::1]",
          "2130706433"]


def test_addresses_inside_are_refused(tmp_path):
    """X-10: the address is checked after the name was resolved."""
    receiver = Receiver()
    with Server(tmp_path / "data", engine=QUICK) as server:
        codeq = Codeq(server)
        for host in INSIDE:
            codeq.create(command="a", webhook=f"http://{host}:{receiver.server.server_address[1]}/x")
            codeq.complete(codeq.claim("a"))
        until(lambda: all(f"//{host}:" in server.said() for host in INSIDE))
        assert receiver.got == []


def test_a_network_that_is_malformed(tmp_path):
    for network in ("here", "127.0.0.1/33", "127.0.0.0/x", "::1/129"):
        with pytest.raises(Refused) as refused:
            Server(tmp_path / "data", "--codeq-webhook-allow", network, engine=QUICK)
        assert "codeq.webhook_allow" in str(refused.value)
