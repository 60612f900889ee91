"""/readyz says what is in the way, and why, as long as it is; /healthz only that it lives."""
import http.client
import json
import os
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor

import served
from faults import Hurt, until
from served import Answer

BIG = "x" * (64 << 10)
SECOND = 1_000_000_000


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=served.START)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(served.START)
        self.sock.connect(str(self.path))


def ask(path, method, url, body=None):
    """None while no server listens there."""
    connection = Unix(path)
    try:
        connection.request(method, url, body)
        return Answer(connection.getresponse())
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    finally:
        connection.close()


def reasons(answer):
    assert answer.status == 503 and answer.body["status"] == "not_ready", answer
    assert int(answer.headers["Retry-After"]) >= 1 and answer.body["message"]
    assert answer.body["error"] == answer.body["reasons"][0]["reason"]
    return answer.body["reasons"]


class Starting:
    """A server that reads its log back until it may go on."""

    def __init__(self, folder, shim, tmp_path, *options):
        with Hurt(folder) as server:
            server.enqueue({"text": "there"})
        self.shim, self.path = shim, tmp_path / "sock"
        shim.set("sync_stall", 3600 * SECOND)
        self.process = subprocess.Popen(
            [served.SLUICED, "--data", str(folder), "--listen", f"unix:{self.path}", *options],
            stderr=subprocess.DEVNULL, env={**os.environ, **shim.env()})

    def ask(self, *args):
        return ask(self.path, *args)

    def go_on(self):
        self.shim.set("sync_stall", 0)

    def __enter__(self):
        reason, = reasons(until(lambda: self.ask("GET", "/readyz")))
        assert reason["reason"] == "starting" and reason["shard"] == 0
        assert 0 <= reason["read_bytes"] <= reason["log_bytes"]
        return self

    def __exit__(self, *_):
        self.go_on()
        self.process.terminate()
        assert self.process.wait(served.START) == 0


DEQUEUE = "/dequeue?namespace=test&topic=mail"
ITEM = json.dumps([{"namespace": "test", "topic": "other", "text": BIG}])


def test_while_the_log_is_read_back_it_says_so(folder, shim, tmp_path):
    """It listens at once; what is stored is opened behind it. Every sync of that stalls
    here until the test has seen it."""
    with Starting(folder, shim, tmp_path, "--start-wait", "0") as server:
        assert server.ask("GET", "/healthz").status == 200
        answer = server.ask("GET", DEQUEUE)
        assert answer.status == 503 and answer.body["error"] == "starting"
        assert server.ask("GET", "/metrics").status == 503
        server.go_on()
        until(lambda: server.ask("GET", "/readyz").status == 200)
        answer = server.ask("GET", DEQUEUE)
        assert answer.status == 200 and len(answer.body) == 1


def test_a_request_waits_while_the_server_starts(folder, shim, tmp_path):
    """No early request is refused, of any kind; health is answered at once."""
    with Starting(folder, shim, tmp_path) as server, ThreadPoolExecutor(8) as pool:
        calls = [("GET", DEQUEUE), ("POST", "/enqueue", ITEM), ("GET", "/metrics"),
                 ("GET", "/stats?namespace=test&topic=mail"), ("GET", "/v1/admin/queues"),
                 ("POST", "/v1/acquire", json.dumps({"key": "k", "owner": "me"}))]
        asked = [pool.submit(server.ask, *call) for call in calls]
        assert server.ask("GET", "/healthz").status == 200
        assert server.ask("GET", "/nowhere").status == 404
        assert server.ask("GET", "/readyz").status == 503
        assert not any(f.done() for f in asked)
        server.go_on()
        answers = [f.result(served.START) for f in asked]
        assert [a.status for a in answers] == [200] * len(calls), answers
        assert len(answers[0].body) == 1 and len(answers[1].body) == 1


def test_a_request_does_not_wait_for_ever(folder, shim, tmp_path):
    with Starting(folder, shim, tmp_path, "--start-wait", "100ms") as server:
        for method, path, body in ("GET", DEQUEUE, None), ("POST", "/enqueue", ITEM):
            answer = server.ask(method, path, body)
            assert answer.status == 503 and answer.body["error"] == "starting", answer
            assert "starting" in answer.body["message"] and int(answer.headers["Retry-After"]) >= 1
        answer = server.ask("POST", "/v1/queue/dequeue", "{}")
        assert answer.status == 503 and answer.body["error"] == "starting" and answer.body["detail"]


def test_a_client_that_gives_up_while_the_server_starts_leaves_no_work(folder, shim, tmp_path):
    """Or a client that tries again would enqueue twice."""
    item = ITEM.replace(BIG, "x")
    head = f"POST /enqueue HTTP/1.1\r\nHost: x\r\nContent-Length: {len(item)}\r\n\r\n"
    with Starting(folder, shim, tmp_path) as server:
        for sent in head + item, head:
            connection = Unix(server.path)
            connection.connect()
            connection.sock.sendall(sent.encode())
            connection.sock.shutdown(socket.SHUT_WR)
            assert connection.sock.recv(100) == b""
            connection.close()
        waits = Unix(server.path)
        waits.connect()
        waits.sock.sendall((head.replace("Host", "Expect: 100-continue\r\nHost")).encode())
        server.ask("GET", "/healthz")
        server.go_on()
        assert waits.sock.recv(100).startswith(b"HTTP/1.1 100 Continue")
        waits.sock.sendall(item.encode())
        assert waits.sock.recv(100).startswith(b"HTTP/1.1 200")
        waits.close()
        answer = server.ask("GET", "/stats?namespace=test&topic=other")
        assert answer.status == 200 and answer.body["ready"] == 1, answer


def test_a_shard_that_failed_is_named(folder, shim):
    with Hurt(folder, shim=shim) as server:
        server.prepared()
        shim.fail_syncs()
        assert server.post("/enqueue", [server.here()]).status == 503
        reason, = reasons(server.get("/readyz"))
        assert reason["reason"] in ("outcome_unknown", "shard_failed") and reason["shard"] == 0
        assert "failed" in reason["message"]
        assert server.get("/healthz").status == 200
        assert server.metric('sluice_shard_up{shard="0"}') == 0
        shim.heal_syncs()
        until(lambda: server.get("/readyz").status == 200)
        assert server.metric('sluice_shard_up{shard="0"}') == 1


def test_a_full_disk_is_named_until_there_is_room(folder, shim):
    with Hurt(folder, shim=shim) as server:
        server.enqueue({"text": "there is work to finish"})
        server.prepared()
        assert server.get("/readyz").status == 200
        shim.set("full", 1)
        for _ in range(200):
            if server.post("/enqueue", [server.here(text=BIG)] * 64).status != 200:
                break
        until(lambda: server.get("/readyz").status == 503)
        reason, = reasons(server.get("/readyz"))
        assert reason["reason"] == "disk_full" and reason["shard"] == 0
        assert server.metric('sluice_disk_free_bytes{shard="0"}') == 0
        assert server.take()
        shim.set("full", 0)
        until(lambda: server.get("/readyz").status == 200)
