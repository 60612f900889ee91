"""Unfinished uploads: they are bounded, and their files go."""
import json
import os
import urllib.parse

import pytest

from locked import acquire
from served import Server, until

PIECE = os.urandom(300 << 10)
UNWRITTEN = 256 << 10  # what a server keeps in memory of an upload, at most: a block, and pieces of the body


def files(server, folder):
    return [f for f in folder.glob("**/payloads/*") if f.is_file()]


def written(server, folder):
    return sum(f.stat().st_size for f in files(server, folder))


def attach_head(lock, name):
    query = urllib.parse.urlencode({"key": lock.key, "namespace": lock.namespace, "name": name})
    fields = "".join(f"{k}: {v}\r\n" for k, v in lock.fields().items())
    return (f"POST /v1/attachments?{query} HTTP/1.1\r\nHost: localhost\r\n{fields}"
            "Transfer-Encoding: chunked\r\n\r\n").encode()


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


class Upload:
    """An attachment that is begun."""

    def __init__(self, server, lock, name="a"):
        self.sock = server.raw()
        self.sock.sendall(attach_head(lock, name))

    def send(self, data=PIECE):
        self.sock.sendall(chunk(data))
        return self

    def answer(self):
        """Its status and body; when it is refused, before its end."""
        said = b""
        while b"\r\n\r\n" not in said or not said.endswith(b"}\n"):
            data = self.sock.recv(65536)
            if not data:
                break
            said += data
        head, _, body = said.partition(b"\r\n\r\n")
        return int(head.split()[1]), json.loads(body)

    def end(self):
        self.sock.sendall(b"0\r\n\r\n")
        return self.answer()

    def hang_up(self):
        self.sock.close()


def locks(server, namespace, n):
    server.namespace = namespace
    return [acquire(server, f"k{i}") for i in range(n)]


def begun(server, folder, *found):
    """Begin uploads of five pieces with these locks, until the server has them but for UNWRITTEN each."""
    before = written(server, folder)
    uploads = [Upload(server, lock).send().send().send().send().send() for lock in found]
    until(lambda: written(server, folder) > before + len(found) * (5 * len(PIECE) - UNWRITTEN))
    return uploads


def test_unfinished_uploads_are_so_many(folder):
    with Server(folder, "--limits-uploads", "3") as server:
        ours, others = locks(server, "ours", 3), locks(server, "others", 2)
        first = begun(server, folder, *ours[:2])
        status, body = Upload(server, ours[2]).send().send().answer()  # half of them, rounded up
        assert status == 429 and body["error"] == "throttled", body
        assert "namespace ours: more than 2 unfinished uploads" in body["detail"]
        third = begun(server, folder, others[0])
        status, body = Upload(server, others[1]).send().send().answer()
        assert status == 429 and "the server: more than 3 unfinished uploads" in body["detail"]
        assert server.metric('sluice_limits_hit_total{limit="uploads"}') == 2
        lock, = locks(server, "third", 1)
        assert lock.attach("small", b"x" * 1000).status == 200  # those are not counted
        first[0].hang_up()
        until(lambda: len(files(server, folder)) == 2)
        assert until(lambda: ours[0].attach("again", PIECE * 8).status == 200)
        assert third[0].end()[0] == 200 and first[1].end()[0] == 200


def test_unfinished_uploads_have_so_many_bytes(folder):
    with Server(folder, "--limits-upload-bytes", "4M") as server:
        ours = locks(server, "ours", 2)
        one, = begun(server, folder, ours[0])  # 1.5 MB
        two = Upload(server, ours[1]).send()
        for _ in range(3):
            two.send()
        status, body = two.answer()
        assert status == 429 and "namespace ours: more than 2097152 bytes of unfinished" in body["detail"]
        assert one.end()[0] == 200
        lock, = locks(server, "alone", 1)
        assert lock.attach("large", os.urandom(4 << 20)).status == 200
        assert lock.attach("larger", os.urandom((4 << 20) + 1)).status == 429


@pytest.mark.parametrize("path", ["attach", "update", "enqueue"])
def test_an_engine_without_files_keeps_so_many_bytes_in_memory(folder, path):
    with Server(folder, "--limits-memory", "1M", engine="memory") as server:
        lock = acquire(server, "k")
        large = json.dumps("x" * (3 << 20)).encode()
        if path == "attach":
            answer = lock.attach("a", large)
        elif path == "update":
            answer = lock.update(large)
        else:
            import lockd
            body, fields = lockd.parts({"namespace": server.namespace, "queue": "q"}, large)
            answer = server.call("POST", "/v1/queue/enqueue", body, fields)
        assert answer.status == 429, answer
        assert "in memory" in answer.body["detail"]


@pytest.mark.parametrize("stage", ["head", "small", "file", "more"])
def test_a_client_that_hangs_up_leaves_no_file(folder, stage):
    with Server(folder) as server:
        for lock in locks(server, "ours", 3):
            upload = Upload(server, lock)
            for _ in range({"head": 0, "small": 1, "file": 5, "more": 8}[stage]):
                upload.send()
            if stage in ("file", "more"):
                until(lambda: files(server, folder))
            upload.hang_up()
            until(lambda: not files(server, folder))
        assert acquire(server, "other").attach("whole", PIECE * 8).status == 200
        assert len(server.payload_files()) == 1


def test_a_server_that_was_killed_removes_what_was_not_ended(folder):
    with Server(folder) as server:
        uploads = begun(server, folder, *locks(server, "ours", 3))
        server.kill()
        assert len(files(server, folder)) == 3
        server.start()
        assert server.get("/readyz").status == 200
        until(lambda: not files(server, folder))
        for upload in uploads:
            upload.hang_up()
