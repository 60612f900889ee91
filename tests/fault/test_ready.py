"""/readyz says what is in the way, and why, as long as it is; /healthz only that it lives."""
import http.client
import os
import socket
import subprocess

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
    """None while nobody listens there."""
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


def test_while_the_log_is_read_back_it_says_so(folder, shim, tmp_path):
    """It listens at once; what is stored is opened behind it. Every sync of that stalls
    here until the test has seen it."""
    with Hurt(folder) as server:
        server.enqueue({"text": "there"})
    shim.set("sync_stall", SECOND)
    path = tmp_path / "sock"
    process = subprocess.Popen(
        [served.SLUICED, "--data", str(folder), "--listen", f"unix:{path}"],
        stderr=subprocess.DEVNULL, env={**os.environ, **shim.env()})
    try:
        answer = until(lambda: ask(path, "GET", "/readyz"))
        reason, = reasons(answer)
        assert reason["reason"] == "starting" and reason["shard"] == 0
        assert 0 <= reason["read_bytes"] <= reason["log_bytes"]
        assert ask(path, "GET", "/healthz").status == 200
        answer = ask(path, "GET", "/dequeue?namespace=test&topic=mail")
        assert answer.status == 503 and answer.body["error"] == "starting"
        assert ask(path, "GET", "/metrics").status == 503
        shim.set("sync_stall", 0)
        until(lambda: ask(path, "GET", "/readyz").status == 200)
        answer = ask(path, "GET", "/dequeue?namespace=test&topic=mail")
        assert answer.status == 200 and len(answer.body) == 1
    finally:
        shim.set("sync_stall", 0)
        process.terminate()
        assert process.wait(served.START) == 0


def test_a_shard_that_failed_is_named(folder, shim):
    with Hurt(folder, shim=shim) as server:
        server.prepared()
        shim.set("sync_fails", 1)
        assert server.post("/enqueue", [server.here()]).status == 503
        reason, = reasons(server.get("/readyz"))
        assert reason["reason"] in ("outcome_unknown", "shard_failed") and reason["shard"] == 0
        assert "failed" in reason["message"]
        assert server.get("/healthz").status == 200
        assert server.metric('sluice_shard_up{shard="0"}') == 0
        server.kill()


def test_a_full_disk_is_named_until_there_is_room(folder, shim):
    with Hurt(folder, shim=shim) as server:
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
