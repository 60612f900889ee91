"""The exit code of a stop says whether all is on disk (MQ-54). Fault 45: a stop with much
that is held and many waiting claims."""
import os
import signal
import subprocess

import pytest

import served
from faults import Hurt, until
from load import Wire
from served import texts

UNCLEAN = 3
SECOND = 1_000_000_000


@pytest.mark.parametrize("sync", ["sync", "interval=1h", "none"])
def test_a_stop_syncs_and_is_clean(folder, shim, sync):
    with Hurt(folder, "--sync", sync, shim=shim) as server:
        server.enqueue({"text": "x"})
        before = shim.get("syncs")
        server.stop()
        assert shim.get("syncs") > before
        until(lambda: "event=stopped" in server.said())
        server.start()
        assert server.stats()["total"] == 1


@pytest.mark.parametrize("sync", ["interval=1h", "none"])
def test_a_last_sync_that_fails_is_reported(folder, shim, sync):
    with Hurt(folder, "--sync", sync, shim=shim) as server:
        server.enqueue({"text": "x"})
        server.prepared()
        shim.set("sync_fails", 1)
        server.stop(code=UNCLEAN)
        assert shim.get("sync_fails") == 0
        assert 'event="stopped, not cleanly"' in server.said()
        assert "event=stopped\n" not in server.said()


def test_a_stop_after_a_failure_is_not_clean(folder, shim):
    with Hurt(folder, shim=shim) as server:
        server.enqueue({"text": "x"})
        server.prepared()
        shim.fail_syncs()
        assert server.post("/enqueue", [server.here(text="y")]).status == 503
        server.stop(code=UNCLEAN)
        assert 'event="stopped, not cleanly"' in server.said()


def test_a_disk_that_hangs_does_not_hold_up_a_stop_for_ever(folder, shim):
    with Hurt(folder, "--grace", "100ms", "--drain", "1ms", shim=shim) as server:
        server.enqueue({"text": "answered"})
        server.prepared()
        syncs = shim.get("syncs")
        shim.set("sync_stall", 3600 * SECOND)
        wire = Wire(server.address)
        wire.connect()
        wire.send("POST", "/enqueue", [server.here(text="not answered")])
        until(lambda: shim.get("syncs") > syncs)
        server.stop(code=UNCLEAN)
        assert "requests hang" in server.said() and "event=stopped" not in server.said()
        wire.close()
        shim.set("sync_stall", 0)
        server.start()
        assert "answered" in texts(server.peek())


def test_a_stop_while_the_log_is_read_back(folder, shim, tmp_path):
    messages = 64
    with Hurt(folder) as server:
        server.enqueue(*[{"text": "x" * (64 << 10)}] * messages)
    shim.set("read_stall", SECOND)  # it would take long
    path = tmp_path / "sock"
    process = subprocess.Popen(
        [served.SLUICED, "--data", str(folder), "--listen", f"unix:{path}"],
        stderr=subprocess.PIPE, text=True, env={**os.environ, **shim.env()})
    until(path.exists)
    process.send_signal(signal.SIGTERM)
    shim.set("read_stall", 0)
    said = process.communicate(timeout=served.START)[1]
    assert process.returncode == 0, said
    assert 'event="stopped while starting"' in said and "listening" not in said
    with Hurt(folder) as server:
        assert server.stats()["ready"] == messages


def test_a_stop_with_many_leases_and_many_waiting_claims(folder):
    held, waiting = 10_000, 500
    with Hurt(folder, "--drain", "30s") as server:
        for _ in range(held // 1000):
            server.enqueue(*[{"text": "x"}] * 1000)
        messages = [m for _ in range(held // 1000) for m in server.dequeue(limit=1000, lease="10m")]
        wires = [Wire(server.address) for _ in range(waiting)]
        for wire in wires:
            wire.connect()
            wire.sock.sendall(b"GET /dequeue?namespace=test&topic=none&wait=600 HTTP/1.1\r\n"
                              b"Host: localhost\r\n\r\n")
        until(lambda: server.metric('sluice_waiting{shard="0"}') == waiting)
        server.process.send_signal(signal.SIGTERM)
        for wire in wires:  # a waiting claim is answered, with nothing
            assert wire.receive() == (200, [])
        for at in range(0, held, 1000):  # a holder may settle
            answer = server.post("/ack", [server.here(id=m["id"], lease_id=m["lease_id"])
                                          for m in messages[at:at + 1000]])
            assert {item["status"] for item in answer.body} == {200}
        server.close()
        for wire in wires:
            wire.close()
        assert server.wait() == 0
        server.start()
        assert server.stats()["total"] == 0
