"""Fault 10: no descriptors, no memory, no right to write. Errors, no crash, no damage."""
import socket
import subprocess
import threading

import pytest

from faults import ASAN, Hurt, refusal, until
from load import Gone, Wire

NO_LIMIT = pytest.mark.skipif(bool(ASAN), reason="the sanitizer needs all addresses there are")


def test_a_server_without_descriptors_goes_on(folder):
    with Hurt(folder, prefix=("prlimit", "--nofile=48")) as server:
        server.enqueue({"text": "before"})
        socks = []
        for _ in range(100):
            try:
                socks.append(socket.create_connection(server.address, timeout=10))
            except OSError:
                break
        # Who is connected is served all the while.
        for i in range(50):
            server.enqueue({"text": str(i)})
        assert server.stats()["ready"] == 51
        for sock in socks:
            sock.close()
        server.close()

        def works():
            try:  # 503 while it has not seen that they are gone
                return server.get("/stats", **server.here()).status == 200
            except OSError:
                return False

        until(works)
        assert server.stats()["ready"] == 51
        server.restart("kill")
        assert server.stats()["ready"] == 51
        assert len(server.dequeue(limit=100)) == 51


def test_too_few_descriptors_to_start_is_reported(folder):
    for n in range(8, 40):
        said = refusal(folder, prefix=("prlimit", f"--nofile={n}"))
        assert "sluiced:" in said and "limit" in said, said
    for n in range(40, 44):
        with Hurt(folder, prefix=("prlimit", f"--nofile={n}")) as server:
            server.enqueue({"text": "x"})
    with Hurt(folder) as server:
        assert server.stats()["ready"] == 4


def push_raw(server, body):
    wire = Wire(server.address)
    try:
        wire.connect()
        wire.sock.sendall(b"POST /enqueue HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
                          % len(body) + body)
        status, answer = wire.receive()
        return status, answer
    except (Gone, OSError):
        return 0, None
    finally:
        wire.close()


@NO_LIMIT
def test_a_server_without_memory_refuses_and_loses_nothing(folder):
    """Many large calls at once, under a small limit of address space."""
    text = "y" * 10_000_000
    body = ('[{"namespace":"test","topic":"mail","text":"%s"}]' % text).encode()
    accepted, answers = [], []
    lock = threading.Lock()
    with Hurt(folder, prefix=("prlimit", f"--as={400 << 20}")) as server:
        server.enqueue({"text": "small"})

        def work():
            for _ in range(3):
                status, answer = push_raw(server, body)
                with lock:
                    answers.append(status)
                    if status == 200:
                        accepted.extend(answer)

        threads = [threading.Thread(target=work) for _ in range(24)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert server.process.poll() is None, server.said()
        assert set(answers) - {200}, "memory was enough: the test proves nothing"
        assert set(answers) <= {0, 200, 413, 429, 500, 503}, set(answers)
        until(lambda: server.get("/healthz").status == 200)
        assert len(server.enqueue({"text": "after"})) == 1
        server.kill()
    with Hurt(folder) as server:
        found = server.stats()["total"]
        assert len(accepted) + 2 <= found <= len(accepted) + 2 + answers.count(0)
        for id_ in accepted:
            assert server.get("/peek", **server.here(id=id_)).status == 200


@NO_LIMIT
def test_too_little_memory_to_start_is_reported(folder):
    for mib in (20, 40, 60, 80, 100):
        try:
            with Hurt(folder, prefix=("prlimit", f"--as={mib << 20}")) as server:
                server.enqueue({"text": "x"})
                server.kill()
        except Exception as e:
            assert "memory" in str(e) or "503" in str(e) or "map" in str(e) or \
                "resource" in str(e).lower() or "thread" in str(e), (mib, e)
    with Hurt(folder) as server:
        server.enqueue({"text": "fine"})


@pytest.mark.parametrize("what", ["folder", "full of files"])
def test_a_folder_that_cannot_be_written_is_refused(folder, what):
    if what == "full of files":
        with Hurt(folder) as server:
            server.enqueue({"text": "x"})
            server.kill()
    else:
        folder.mkdir()
    script = (f"mount --bind {folder} {folder} && mount -o remount,ro,bind {folder} && "
              'exec "$@"')
    namespace = ("unshare", "--user", "--map-root-user", "--mount")
    probe = subprocess.run([*namespace, "sh", "-c", script, "sh", "true"],
                           capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("no user namespaces here")
    said = refusal(folder, prefix=(*namespace, "sh", "-c", script, "sh"))
    assert "sluiced:" in said and "ead-only" in said, said
    with Hurt(folder) as server:
        server.enqueue({"text": "y"})
        assert server.stats()["total"] == (2 if what == "full of files" else 1)
