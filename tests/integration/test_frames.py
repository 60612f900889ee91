"""X-17: the stream of frames, for producers and workers. docs/stream.md."""
import base64
import json
import socket
import threading

import pytest

from codeq import Codeq
from frames import Frames
from served import Server, until


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("frames") / "data", namespace="default") as server:
        yield server


def queue(name, **more):
    return {"namespace": "default", "queue": name, **more}


def settled(name, message, **more):
    return queue(name, id=message["id"], lease_id=message["lease_id"], **more)


def test_answers_come_as_they_are_ready(server):
    """A claim that waits is a credit: what it gets is pushed, and everything else passes it."""
    with Frames(server) as frames:
        credit = frames.ask("/dequeue", queue("pushed", limit=10, wait="30s"))
        ids = frames.good("/enqueue", [queue("elsewhere", text="x")])
        assert len(ids) == 1 and credit not in frames.answers
        frames.ask("/enqueue", [queue("pushed", text=f"{i}") for i in range(3)])
        status, messages = frames.answer(credit)
        assert status == 200 and messages
        for message in messages:
            frames.good("/extend", settled("pushed", message, lease="1m"))
            frames.good("/ack", settled("pushed", message))
            assert frames.call("/ack", settled("pushed", message))[0] == 404


def test_many_at_once(server):
    """X-17: a thousand frames before the first answer is read; each is answered once."""
    with Frames(server) as frames:
        sender = threading.Thread(target=lambda: [frames.ask("/enqueue", queue("many", text=f"{i}")) for i in range(1000)])
        sender.start()
        answers = [frames.next() for _ in range(1000)]
        sender.join()
        assert sorted(number for number, _, _ in answers) == list(range(1, 1001))
        assert {status for _, status, _ in answers} == {200}
        got = set()
        while len(got) < 1000:
            messages = frames.good("/dequeue", queue("many", limit=100, **{"as": "text"}))
            assert messages
            got |= {m["text"] for m in messages}
            frames.good("/ack", [settled("many", m) for m in messages])
        assert got == {f"{i}" for i in range(1000)}


def test_nacks_and_errors_are_those_of_the_routes(server):
    with Frames(server) as frames:
        frames.good("/enqueue", queue("errors", text="x"))
        message, = frames.good("/dequeue", queue("errors"))
        frames.good("/nack", settled("errors", message, delay=0))
        status, body = frames.call("/ack", settled("errors", message))
        assert (status, body["error"]) == (409, "lease_lost")
        assert frames.call("/enqueue", b"{")[0] == 400
        assert frames.call("/enqueue")[0] == 400
        for path in ("/nothing", "/stats", "/v1/admin/reload", "/stream"):  # no such route, GET, not offered, itself
            status, body = frames.call(path, {})
            assert (status, body["error"]) == (404, "not_found"), path
        assert frames.call("/dequeue", b" " * (65 << 10))[0] == 413
        assert frames.good("/dequeue", queue("errors"))


def test_what_was_granted_and_not_received_goes_back(server):
    """X-17: at once, and without a failure, however the client goes."""
    for how in ("close", "reset", "half"):
        with Frames(server) as frames, Frames(server) as other:
            frames.ask("/dequeue", queue(f"gone-{how}", limit=5, wait="30s"))
            if how == "reset":
                frames.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            if how == "half":
                frames.sock.shutdown(socket.SHUT_WR)
                assert frames.next() is None
            else:
                frames.close()
            other.good("/enqueue", queue(f"gone-{how}", text="x"))
            message, = other.good("/dequeue", queue(f"gone-{how}", wait="20s"))
            assert message["attempts"] <= 2
            other.good("/ack", settled(f"gone-{how}", message))


def test_what_was_granted_to_a_client_that_goes_at_once_goes_back(server):
    """X-17: the claim and the end of the connection reach the server together. Its token stays spent and no failure counts,
    in at least one round: the answer may be written before the server sees the end, or the claim never begins."""
    def one_round(goes):
        other.good("/enqueue", queue("at-once", text="x"))
        with Frames(server) as frames:
            frames.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            if goes:
                frames.ask("/dequeue", queue("at-once", lease="100ms"))
        message, = other.good("/dequeue", queue("at-once", wait="20s"))
        other.good("/ack", settled("at-once", message))
        return message["fencing_token"], message["failure_attempts"]

    with Frames(server) as other:
        first, second = one_round(False)[0], one_round(False)[0]
        spent, last = second - first, second
        for _ in range(200):
            token, failures = one_round(True)
            if token - last > spent and failures == 0:
                return
            last = token
    raise AssertionError("nothing went back")


def test_a_slow_reader_holds_up_itself_alone(server):
    """Bounded: its frames are not read while its answers wait."""
    body = json.dumps([queue("large", text="x" * 100_000)]).encode()
    with Frames(server) as frames, Frames(server) as other:
        for _ in range(60):
            assert other.good("/enqueue", body)
        asked = [frames.ask("/dequeue", queue("large", limit=1)) for _ in range(60)]
        assert other.good("/enqueue", queue("quick", text="x"))
        got = [frames.answer(number) for number in asked]
        assert sum(len(messages) for status, messages in got if status == 200) == 60


@pytest.fixture
def narrow(tmp_path):
    """A server, and a connection to it with small buffers: a unix socket."""
    path = tmp_path / "sluice.sock"
    with Server(tmp_path / "data", "--listen", f"unix:{path}", namespace="default") as server, \
            socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(path))
        yield server, sock


def test_a_client_that_reads_no_answer_is_not_read(narrow):
    """X-17: bounded, also if the answers have no body."""
    server, sock = narrow
    with Frames(server, "/v1/codeq/stream", sock=sock) as frames:
        frames.good("/v1/codeq/tasks/claim", {"commands": ["none"]}, status=204)
        sock.settimeout(2)
        with pytest.raises(TimeoutError):
            for _ in range(400):
                frames.send(b'1 /v1/codeq/tasks/claim 21\n{"commands":["none"]}' * 500)
        assert server.metric("sluice_http_requests_running") < 1000


def refuses(address):
    with socket.socket() as sock:
        return sock.connect_ex(address) != 0


def test_a_server_that_stops_sends_a_large_answer_whole(narrow):
    """X-17: what it read is answered."""
    server, sock = narrow
    payload = "z" * (6 << 20)
    with Frames(server, sock=sock) as frames:
        frames.good("/enqueue", queue("stops", text=payload))
        frames.ask("/dequeue", queue("stops", **{"as": "text"}))
        number, status, found, whole = frames.read()
        stop = threading.Thread(target=server.stop)
        stop.start()
        until(lambda: refuses(server.address))
        while not whole:
            _, _, text, whole = frames.read()
            found += text
        assert status == 200 and base64.b64decode(json.loads(found)[0]["payload"]) == payload.encode()
        assert frames.next() is None
        stop.join()


def test_the_body_of_a_refused_frame_is_thrown_away(server):
    """Also if it is larger than what the path takes, and the stream goes on."""
    with Frames(server) as frames:
        numbers = [frames.ask(path, b"1 /ack 0\n" * 100_000) for path in ("/nothing", "/dequeue", "/nothing")]
        assert [frames.answer(number)[0] for number in numbers] == [404, 413, 404]
        assert frames.good("/enqueue", queue("after", text="x"))


def test_a_large_answer_comes_in_pieces(server):
    """The line of a piece ends with a plus; memory is bounded by the piece."""
    payload = "y" * (3 << 20)
    with Frames(server) as frames:
        frames.good("/enqueue", queue("pieces", text=payload))
        number = frames.ask("/dequeue", queue("pieces", **{"as": "text"}))
        found, wholes = b"", []
        while not wholes or not wholes[-1]:
            _, status, text, whole = frames.read()
            found += text
            wholes.append(whole)
            assert status == 200
        assert number and len(wholes) > 2
        message, = json.loads(found)
        assert message.get("text", "") == payload or message["payload"]
        frames.good("/ack", settled("pieces", message))


MALFORMED = ["x", "1", "1 /ack", "1 /ack x", "-1 /ack 0", "01 /ack 0", "1 ack 0", "1 /a?b=1 0", "1 /ack 99999999",
             "1  /ack 0", "99999999999999999 /ack 0", "1 /ack 0 0", "", "GET /stats HTTP/1.1", "1 /" + "a" * 600 + " 0"]


@pytest.mark.parametrize("line", MALFORMED)
def test_a_malformed_line_ends_the_stream(server, line):
    """X-17: it is answered, with number 0."""
    with Frames(server) as frames:
        frames.send(line + "\n")
        number, status, body = frames.next()
        assert (number, status, body["error"]) == (0, 400, "invalid")
        assert frames.next() is None


def test_without_the_field_there_is_no_stream(server):
    for fields in ({}, {"Upgrade": "sluice-stream"}, {"Connection": "Upgrade", "Upgrade": "websocket"}):
        answer = server.call("GET", "/stream", headers=fields)
        assert answer.status == 426 and answer.headers["Upgrade"] == "sluice-stream", answer


def test_frames_before_the_answer_and_in_parts(server):
    """Bytes may come in any division."""
    with server.raw() as sock:
        text = (b"GET /stream HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: keep-alive, upgrade\r\nUpgrade: sluice-stream\r\n\r\n"
                b"5 /enqueue 56\n" + json.dumps(queue("parts", text="xy")).encode())
        for i in range(len(text)):
            sock.sendall(text[i:i + 1])
        file = sock.makefile("rb")
        while file.readline() != b"\r\n":
            pass
        assert file.readline().startswith(b"5 200 ")


def test_the_server_stops_while_streams_are_open(tmp_path):
    """Claims that wait end, everything is answered, and the connection closes."""
    with Server(tmp_path / "data", namespace="default") as server, Frames(server) as idle, Frames(server) as frames:
        frames.good("/enqueue", queue("kept", text="x"))
        waiting = frames.ask("/dequeue", queue("nothing", wait="50s"))
        server.stop()
        assert frames.answer(waiting)[0] in (200, 503)
        assert frames.next() is None and idle.next() is None
        server.start()
        with Frames(server) as again:
            assert len(again.good("/dequeue", queue("kept"))) == 1


def test_a_killed_server_loses_nothing_that_was_answered(tmp_path):
    with Server(tmp_path / "data", namespace="default") as server:
        with Frames(server) as frames:
            for i in range(500):
                frames.ask("/enqueue", queue("kill", text=f"{i}"))
            answered = {frames.next()[0] for _ in range(200)}
            server.kill()
        server.start()
        found = {int(m["text"]) + 1 for m in server.get("/peek", namespace="default", queue="kill", limit=1000,
                                                        **{"as": "text"}).body["messages"]}
        assert answered <= found


def test_the_stream_of_codeq(server):
    """X-17: producers and workers of codeQ have one, too."""
    codeq = Codeq(server)
    with Frames(server, "/v1/codeq/stream") as worker, Frames(server, "/v1/codeq/stream") as producer:
        base = "/v1/codeq/tasks"
        credits_ = [worker.ask(base + "/claim", {"commands": ["MAIL"], "waitSeconds": 30}) for _ in range(5)]
        made = [producer.ask(base, {"command": "MAIL", "payload": {"n": i}}) for i in range(5)]
        created = {producer.answer(number)[1]["id"] for number in made}
        tasks = [worker.answer(number)[1] for number in credits_]
        assert {t["id"] for t in tasks} == created
        first, *rest = tasks
        worker.good(f"{base}/{first['id']}/heartbeat", {"extendSeconds": 60})
        worker.good(f"{base}/{first['id']}/nack", {"delaySeconds": 60})
        for task in rest:
            done = worker.good(f"{base}/{task['id']}/result", {"status": "COMPLETED", "result": {"ok": True}})
            assert done["taskId"] == task["id"]
            assert codeq.result(task)["result"]["result"] == {"ok": True}
