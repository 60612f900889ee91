"""GET /v1/admin/live: a line whenever queues have changed."""
import json
import socket

import pytest

from served import START, Server, until
from test_auth import KEY, secret_file

READERS = 64
LINES = 15


class Lines:
    """A reader that stays."""

    def __init__(self, server, headers=None, **params):
        self.connection = server.connect()
        path = "/v1/admin/live" + "".join(f"?{name}={value}" for name, value in params.items())
        self.connection.request("GET", path, headers=headers or {})
        self.answer = self.connection.getresponse()
        self.status = self.answer.status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def next(self):
        text = self.answer.readline()
        return json.loads(text) if text else None

    def until(self, check):
        """The first line with this; every line comes within 10 s."""
        seen = []
        while len(seen) < LINES:
            seen.append(self.next())
            assert seen[-1] is not None, "the answer has ended"
            if check(seen[-1]):
                return seen[-1]
        raise AssertionError(seen)


def names(line):
    return {q["queue"] for q in line["queues"]}


def test_a_line_has_the_queues_that_changed_and_no_other(server):
    server.enqueue({"text": "x"}, topic="still")
    with Lines(server) as lines:
        assert lines.status == 200 and lines.answer.headers["Content-Type"] == "application/x-ndjson"
        first = lines.next()
        assert first["queues"] == [] and not first["more"] and first["problems"] == 0, first
        assert first["totals"]["queues"] >= 1
        server.enqueue({"text": "x"}, {"text": "y"}, topic="moves")
        line = lines.until(lambda one: "moves" in names(one))
        row, = (q for q in line["queues"] if q["queue"] == "moves")
        listed, = (q for q in server.get("/v1/admin/queues", namespace=server.namespace).body["queues"] if q["queue"] == "moves")
        assert {**row, "oldest_ready_ms": 0} == {**listed, "oldest_ready_ms": 0}  # nothing was delivered: no wait_p95_ms
        assert line["totals"]["since_start"]["accepted"] >= 2
        message, = server.dequeue(topic="moves", limit=1)
        lines.until(lambda one: [q["leased"] for q in one["queues"] if q["queue"] == "moves"] == [1])
        server.ack(message, topic="moves")
        line = lines.until(lambda one: [q["total"] for q in one["queues"] if q["queue"] == "moves"] == [1])
        assert "still" not in names(line)


def test_a_queue_that_is_deleted_is_gone_and_may_come_again(server):
    server.enqueue({"text": "x"}, topic="goes")
    with Lines(server) as lines:
        lines.next()
        answer = server.call("DELETE", f"/v1/admin/queues/{server.namespace}/goes?force=true")
        assert answer.status == 200
        line = lines.until(lambda one: "goes" in names(one))
        gone, = (q for q in line["queues"] if q["queue"] == "goes")
        assert gone == {"namespace": server.namespace, "topic": "goes", "queue": "goes", "gone": True}
        server.enqueue({"text": "x"}, topic="goes")
        lines.until(lambda one: [q.get("ready") for q in one["queues"] if q["queue"] == "goes"] == [1])


def test_a_line_comes_also_if_nothing_changes(server):
    with Lines(server) as lines:
        lines.next()
        server.enqueue({"text": "x"}, topic="once")
        lines.until(lambda one: "once" in names(one))
        assert lines.until(lambda one: one["queues"] == [])["more"] is False


def test_a_reader_sees_the_namespaces_of_its_token(tmp_path):
    with Server(tmp_path / "data", "--auth-keys", "HS256:" + secret_file(tmp_path), engine="memory") as server:
        def send(namespace):
            answer = server.call("POST", "/enqueue", {"namespace": namespace, "queue": f"of-{namespace}", "text": "x"},
                                 headers=KEY.bearer(scope="*:write"))
            assert answer.status == 200, answer

        with Lines(server, KEY.bearer(scope="a:read")) as mine, Lines(server, KEY.bearer(scope="*:read")) as every, \
                Lines(server, KEY.bearer(scope="*:read"), namespace="b") as narrow:
            assert "totals" not in mine.next() and "totals" in every.next() and "totals" not in narrow.next()
            send("b")
            assert names(every.until(lambda one: one["queues"])) == {"of-b"}
            send("a")
            assert names(every.until(lambda one: one["queues"])) == {"of-a"}
            assert names(mine.until(lambda one: one["queues"])) == {"of-a"}
            assert names(narrow.until(lambda one: one["queues"])) == {"of-b"}
        for scope, more in (("a:write", {}), ("a:consume", {}), ("a:read", {"namespace": "b"})):
            with Lines(server, KEY.bearer(scope=scope), **more) as lines:
                assert lines.status == 403, (scope, lines.status)


def test_the_shards_of_a_server_are_named(tmp_path):
    with Server(tmp_path, "--shards", "4") as server:
        server.enqueue({"text": "x"}, topic="first")
        with Lines(server) as lines:
            lines.next()
            for i in range(8):
                server.enqueue({"text": "x"}, topic=f"q{i}")
            seen = {}
            while len(seen) < 8:
                seen.update({q["queue"]: q for q in lines.next()["queues"]})
            listed = {q["queue"]: q for q in server.get("/v1/admin/queues").body["queues"]}
            assert {name: row.get("shard") for name, row in seen.items()} == \
                {name: listed[name].get("shard") for name in seen}


def test_a_stop_ends_the_readers(tmp_path):
    server = Server(tmp_path / "data", engine="memory")
    with Lines(server) as lines:
        lines.next()
        server.stop()
        while lines.next() is not None:
            pass
    assert "still running after grace" not in server.said()


def test_readers_have_a_bound_and_leave_their_place(tmp_path):
    with Server(tmp_path / "data", engine="memory") as server:
        held = [Lines(server) for _ in range(READERS)]
        try:
            assert all(lines.status == 200 for lines in held)
            with Lines(server) as lines:
                assert lines.status == 429

            def is_let_in():
                with Lines(server) as lines:
                    return lines.status == 200
            held.pop().connection.close()
            until(is_let_in)
        finally:
            for lines in held:
                lines.connection.close()


def test_a_reader_that_does_not_read_holds_up_nobody(tmp_path):
    with Server(tmp_path / "data", engine="memory") as server:
        stuck = socket.create_connection(server.address, timeout=START)
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        stuck.sendall(b"GET /v1/admin/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with Lines(server) as lines:
            lines.next()
            for n in range(3):
                for i in range(300):
                    server.enqueue({"text": "x"}, topic=f"queue-{i}")
                total = 300 * (n + 1)
                lines.until(lambda one: one["totals"]["ready"] == total)
        stuck.close()


@pytest.mark.parametrize("path", ["/v1/admin/live?namespace=a%20b", "/v1/admin/live?queue=q"])
def test_what_is_not_understood_is_refused(server, path):
    assert server.call("GET", path).status == 400
