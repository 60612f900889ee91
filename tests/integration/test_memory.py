"""Memory: the index is bounded, nothing is lost for it, and what is not needed goes back."""
import contextlib
import os
import re
import socket
import subprocess
from pathlib import Path

import pytest

from locked import acquire
from served import ENGINE, START, Node, Refused, Server, texts, until

BATCH = 1000
ENGINES = [ENGINE] if ENGINE == "forwarded" else ["log", "memory"]
PAGE = os.sysconf("SC_PAGESIZE")
measured = pytest.mark.skipif(any(s in os.environ["SLUICED"] for s in ("asan", "tsan")),
                              reason="a sanitizer keeps what is freed, and needs more")


one_server = pytest.mark.skipif(ENGINE == "forwarded", reason="the folder, or the memory, of one server")


def resident(server):
    """Bytes of memory that the process has."""
    return int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]) * PAGE


def offer(server, n=BATCH, **common):
    """An enqueue of n messages that may be refused."""
    return server.post("/enqueue", [server.here(**common) for _ in range(n)])


def fill(server, **common):
    """Enqueue until the server has no memory for more: how many messages it took."""
    taken, batch = 0, BATCH
    while True:
        answer = offer(server, batch, **common)
        assert taken < 1_000_000, "nothing bounds it"
        if answer.status == 200:
            taken += batch
        elif batch > 1:
            batch //= 10  # the last few
        else:
            return taken, answer


def refused(answer, error, limit=None):
    """429; no limit: the form of a lockd refusal."""
    assert answer.status == 429, answer
    assert int(answer.headers["Retry-After"]) >= 1
    if not limit:
        assert answer.body["error"] == error
        return answer.body["detail"]
    assert answer.body["error"] == error and answer.body["limit"] == limit
    return answer.body["message"]


def drain(server):
    """Take and ack all there is: how many that were."""
    n = 0
    while True:
        messages = server.dequeue(limit=1000, lease=600)
        if not messages:
            return n
        items = [server.here(id=m["id"], lease_id=m["lease_id"],
                             fencing_token=m["fencing_token"]) for m in messages]
        assert server.post("/ack", items).status == 200
        n += len(messages)


def purge(server):
    answer = server.post("/v1/admin/queue/purge", server.here())
    assert answer.status == 200, answer


def warnings(server):
    answer = server.keeper.get("/readyz")
    assert answer.status == 200, answer
    return [w["warning"] for w in answer.body.get("warnings", [])]


# --- limits.index_memory ----------------------------------------------------------

@pytest.mark.parametrize("engine", ENGINES)
def test_a_full_index_refuses_new_work_and_goes_on_with_the_rest(folder, engine):
    with Server(folder, "--limits-index-memory", "4M", engine=engine) as server:
        server.enqueue({"text": "first", "idempotency_key": "known", "max_attempts": 1})
        holder = acquire(server, "orders")
        assert holder.update({"n": 1}).status == 200
        taken, answer = fill(server)
        message = refused(answer, "memory_full", "index_memory")
        assert f"of the {4 << 20} bytes of limits.index_memory" in message, message
        assert 10_000 < taken < 100_000
        refused(offer(server, 1, idempotency_key="new"), "memory_full", "index_memory")
        refused(holder.attach("more", b"x" * 100), "memory_full")
        refused(server.call("POST", "/v1/acquire", {"namespace": "test", "key": "other", "owner": "me",
                                                    "ttl_seconds": 30}), "memory_full")
        assert server.metric('sluice_limits_hit_total{limit="index_memory"}') >= 2

        # A message that was enqueued before is found again; a document that is there can be replaced.
        again = server.enqueue({"idempotency_key": "known"})
        assert holder.update({"n": 2}).status == 200
        assert holder.release().status == 200

        # Claims, settles and redrives go on.
        first = server.take()
        assert first["id"] == again[0]
        refused(server.settle("/ack", first, enqueue=[server.here(text="x")] * 1000), "memory_full", "index_memory")
        server.nack(first, error="no")
        assert len(server.dlq()) == 1
        assert server.post("/dlq/redrive", server.here(ids=[first["id"]])).status == 200
        assert server.stats()["total"] == taken + 1
        assert drain(server) == taken + 1
        until(lambda: offer(server, 1).status == 200)


def test_a_warning_begins_at_80_percent_and_ends_when_there_is_room(folder):
    with Server(folder, "--limits-index-memory", "4M") as server:
        assert server.metric("sluice_index_memory_limit_bytes") == 4 << 20
        assert warnings(server) == []
        taken, _ = fill(server)
        assert server.metric("sluice_index_memory_bytes") > 0.8 * (4 << 20)
        assert "index_memory" in warnings(server)
        assert server.keeper.said().count("the index has little memory left") == 1
        assert re.search(r"little memory left.*bytes=\d+ limit=4194304", server.keeper.said())
        assert drain(server) == taken
        until(lambda: warnings(server) == [])
        assert server.keeper.said().count("the index has little memory left") == 1
        assert server.keeper.said().count("the index has enough memory again") == 1
        assert server.metric("sluice_index_memory_bytes") < 0.75 * (4 << 20)


def test_the_first_refusal_has_its_warning_and_its_figures_also_with_a_small_limit(folder):
    """One call of 1,000 messages may need more than a fifth of the limit."""
    with Server(folder, "--limits-index-memory", "2M", "--shards", "2") as server:
        answer = offer(server)
        while answer.status == 200:
            answer = offer(server)
        message = refused(answer, "memory_full", "index_memory")
        has, of, needs = (int(n) for n in re.findall(r"\d+", message))
        assert of == 2 << 20 and has + needs > of, message
        assert "index_memory" in warnings(server)
        assert server.keeper.said().count("the index has little memory left") == 1
        assert drain(server) > 0
        until(lambda: warnings(server) == [])


@one_server
def test_a_folder_is_opened_whatever_the_limit(folder):
    """Nothing is lost, and new work is taken again when there is room."""
    with Server(folder, "--limits-index-memory", "4M", "--shards", "2") as server:
        taken, _ = fill(server)
        server.kill()
        server.options = ("--limits-index-memory", "1M", "--shards", "2")
        server.start()
        assert server.stats()["total"] == taken
        assert server.metric("sluice_index_memory_bytes") > 1 << 20
        refused(offer(server, 1), "memory_full", "index_memory")
        assert drain(server) == taken
        until(lambda: offer(server, 1).status == 200)


def test_the_index_is_bounded_over_all_shards(folder):
    with Server(folder, "--limits-index-memory", "4M", "--shards", "4") as server:
        server.enqueue(*({"topic": f"q{n}"} for n in range(8)))
        for n in range(8):
            fill(server, topic=f"q{n}")
        # A shard that was nearly empty may pass the limit by its first blocks, about 300 KB.
        assert 3 << 20 < server.metric("sluice_index_memory_bytes") <= 5 << 20


def test_the_limit_is_changed_while_it_runs(tmp_path):
    with Node(tmp_path, "limits: {index_memory: 4M}\n") as server:
        fill(server)
        server.reload("limits: {index_memory: 64M}\n")
        assert offer(server).status == 200


def test_without_a_setting_the_limit_is_a_part_of_the_machine(folder):
    with Server(folder, engine="memory") as server:
        all_of_it = os.sysconf("SC_PHYS_PAGES") * PAGE
        assert 0 < server.metric("sluice_index_memory_limit_bytes") <= 0.7 * all_of_it


def limited_group(limit):
    """A new memory cgroup below ours; None: there can be none."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, kinds, path = line.split(":", 2)
        if kinds not in ("", "memory"):
            continue
        group = Path("/sys/fs/cgroup") / kinds / path.strip("/") / f"sluice-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / ("memory.limit_in_bytes" if kinds else "memory.max")).write_text(str(limit))
            return group
        except OSError:
            group.rmdir()
    return None


@contextlib.contextmanager
def cgroup(limit):
    group = limited_group(limit)
    if not group:
        pytest.skip("no cgroup can be made here")
    try:
        yield group
    finally:
        until(lambda: not (group / "cgroup.procs").read_text().strip())
        group.rmdir()


@contextlib.contextmanager
def server_within(limit, folder, monkeypatch):
    """A server that has so many bytes of memory, the page cache of its files included."""
    with cgroup(limit) as group:
        start = subprocess.Popen

        def inside(args, **more):
            enter = 'echo $$ >"$0" && exec "$@"'
            return start(["sh", "-c", enter, str(group / "cgroup.procs"), *args], **more)

        monkeypatch.setattr(subprocess, "Popen", inside)
        with Server(folder) as server:
            yield server


@one_server
@measured
def test_in_a_small_cgroup_the_server_is_not_killed_and_loses_nothing(folder, monkeypatch):
    limit = 64 << 20
    with server_within(limit, folder, monkeypatch) as server:
        assert server.metric("sluice_index_memory_limit_bytes") <= 0.7 * limit
        taken, answer = fill(server)
        refused(answer, "memory_full", "index_memory")
        server.restart("kill")
        assert server.stats()["total"] == taken
        assert len(server.dequeue(limit=10)) == 10


@one_server
@measured
def test_a_queue_larger_than_its_memory_works_from_the_disk(folder, monkeypatch):
    """SQ-F6: also after a kill every message comes whole."""
    messages, size = 100, 1_000_000
    with server_within(64 << 20, folder, monkeypatch) as server:
        for n in range(messages):
            server.enqueue({"text": f"{n:04}" * (size // 4)})
        server.restart("kill")
        for n in range(messages):
            message, = server.dequeue(limit=1)
            assert texts([message]) == [f"{n:04}" * (size // 4)]
            server.ack(message)


# --- giving back ------------------------------------------------------------------

@measured
@pytest.mark.parametrize("engine", ["log", "memory"])
def test_a_purge_gives_memory_back_to_the_system(folder, engine):
    with Server(folder, engine=engine) as server:
        offer(server, 10, topic="stays")
        before = resident(server)
        for _ in range(150):
            assert offer(server, text="x" * 50).status == 200
        full = resident(server)
        index = server.metric("sluice_index_memory_bytes")
        assert full - before > 10 << 20
        purge(server)
        until(lambda: server.metric("sluice_index_memory_bytes") < index / 4)
        until(lambda: resident(server) < before + (full - before) / 2)
        assert server.stats(topic="stays")["total"] == 10
        assert offer(server, 10).status == 200


def held(folder):
    """Bytes that the files of the folder take on the disk."""
    du = subprocess.run(["du", "--block-size=1", "--summarize", folder], capture_output=True, text=True)
    return int(du.stdout.split()[0])  # a file may go while du looks


@measured
def test_a_purge_gives_the_disk_back(folder):
    empty = 6 * (64 << 20)  # the open and the next segment, the spares, also of smaller sizes
    with Server(folder) as server:
        for _ in range(60):
            assert offer(server, 10, text="x" * 900_000).status == 200
        assert server.metric('sluice_log_bytes{shard="0"}') > empty + (64 << 20)
        purge(server)
        until(lambda: server.metric('sluice_log_bytes{shard="0"}') <= empty)
        until(lambda: held(folder) <= empty)


# --- quotas -----------------------------------------------------------------------

def test_a_namespace_has_a_quota_of_messages_over_all_shards(folder):
    with Server(folder, "--limits-namespace-messages", "10", "--shards", "4") as server:
        for n in range(10):
            server.enqueue({"topic": f"q{n}"})
        for n in range(4):
            message = refused(offer(server, 1, topic=f"q{n}"), "quota", "namespace_messages")
            assert message == "namespace test has 10 messages; its quota is 10"
        assert offer(server, 5, namespace="other").status == 200
        refused(offer(server, 6, namespace="other"), "quota", "namespace_messages")
        held = server.take(topic="q0")
        refused(offer(server, 1), "quota", "namespace_messages")
        assert server.settle("/ack", held, topic="q0").status == 200
        assert offer(server, 1).status == 200
        assert server.metric('sluice_limits_hit_total{limit="namespace_messages"}') == 6


def bytes_of(server, **common):
    """How much of its quota the namespace has, as a refusal says it."""
    message = refused(offer(server, 1, text="x" * 1_000_000, **common), "quota", "namespace_bytes")
    return int(re.search(r"has messages of (\d+) bytes", message)[1])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_quota_of_bytes_is_exact_after_all_that_happens(folder, engine):
    """Whatever messages go through, what is counted is what is there: also after a restart."""
    with Server(folder, "--limits-namespace-bytes", "1M", engine=engine) as server:
        server.enqueue(*({"text": "x" * n, "key": f"k{n % 3}"} for n in range(1000)))
        full = bytes_of(server)
        assert 499_500 < full < 499_500 + 1000 * 200
        for message in server.dequeue(limit=100):
            server.nack(message, delay=0)
        assert bytes_of(server) == full
        if engine == "log":
            server.restart("kill")
            assert bytes_of(server) == full
        assert drain(server) == 1000
        assert server.enqueue({"text": "x" * 999_000})
        assert drain(server) == 1
        server.enqueue(*({"text": "x" * n} for n in range(1000)))
        assert bytes_of(server) < full, "no keys"
        purge(server)
        until(lambda: offer(server, 1, text="x" * 999_000).status == 200)


def test_quotas_of_one_namespace_go_before_those_of_all_and_are_reloaded(tmp_path):
    some = "limits: {namespace_messages: 5, quotas: ['big:messages=8', 'Small:messages=1:bytes=1k']}\n"
    with Node(tmp_path, some) as server:
        assert offer(server, 5).status == 200
        refused(offer(server, 1), "quota", "namespace_messages")
        assert offer(server, 8, namespace="big").status == 200
        refused(offer(server, 1, namespace="big"), "quota", "namespace_messages")
        refused(offer(server, 1, namespace="small", text="x" * 2000), "quota", "namespace_bytes")
        assert offer(server, 1, namespace="small").status == 200
        refused(offer(server, 1, namespace="small"), "quota", "namespace_messages")
        server.reload("limits: {quotas: ['big:messages=9:bytes=0']}\n")
        assert offer(server, 10).status == 200
        assert offer(server, 10, namespace="small").status == 200
        assert offer(server, 1, namespace="big").status == 200
        refused(offer(server, 1, namespace="big"), "quota", "namespace_messages")


def test_a_quota_that_cannot_be_read_is_named(folder):
    for value in ("big", "big:", "big:messages", "big:messages=x", "big:bytes=1:bytes=2", "a b:bytes=1"):
        with pytest.raises(Refused) as why:
            Server(folder, "--limits-quotas", value)
        assert "limits" in str(why.value) and "quotas" in str(why.value), value


def test_redis_refuses_quotas_at_the_start(folder):
    with pytest.raises(Refused, match="limits.namespace_messages: engine redis does not count"):
        Server(folder, "--limits-namespace-messages", "5", engine="redis")


# --- queues -----------------------------------------------------------------------

def test_there_are_so_many_queues_and_no_more(folder):
    with Server(folder, "--limits-queues", "5", "--limits-namespace-queues", "3", "--shards", "2") as server:
        for n in range(3):
            server.enqueue({"topic": f"q{n}"})
        message = refused(offer(server, 1, topic="q3"), "limit_reached", "queues")
        assert message == ("queue q3 would be new; namespace test has 3 queues, "
                           "limits.namespace_queues allows 3")
        assert server.call("PUT", "/policy", {"max_depth": 5}, **server.here(topic="q4")).status == 429
        assert offer(server, 1, topic="q1").status == 200
        for n in range(2):
            server.enqueue({"topic": f"q{n}"}, namespace="other")
        message = refused(offer(server, 1, namespace="third"), "limit_reached", "queues")
        assert message == "queue mail would be new; there are 5 queues, limits.queues allows 5"
        server.restart("kill")
        refused(offer(server, 1, namespace="third"), "limit_reached", "queues")
        assert offer(server, 1, topic="q2").status == 200


def test_queues_that_are_forgotten_make_room_for_others(folder):
    with Server(folder, "--limits-queues", "2", "--queues-idle", "100ms") as server:
        server.enqueue({"topic": "stays"}, {"topic": "goes"})
        refused(offer(server, 1, topic="new"), "limit_reached", "queues")
        taken = server.take(topic="goes")
        assert server.settle("/ack", taken, topic="goes").status == 200
        until(lambda: offer(server, 1, topic="new").status == 200)


def test_a_queue_takes_little_memory(folder):
    """Also its history, which 10,000 queues of a server have."""
    with Server(folder, engine="memory") as server:
        def memory_of(queues):
            """Of each of these queues, with a message."""
            before = server.metric("sluice_index_memory_bytes")
            server.enqueue(*({"topic": f"q{n}"} for n in queues))
            return (server.metric("sluice_index_memory_bytes") - before) / len(queues)

        assert memory_of(range(10_000)) < 6_500
        assert memory_of(range(10_000, 12_000)) < 2_000


# --- unread answers ----------------------------------------------------------------

@contextlib.contextmanager
def unread(server, n, path="/peek"):
    """So many calls for 5 MB of messages whose clients do not read the answer."""
    with contextlib.ExitStack() as stack:
        sockets = []
        for _ in range(n):
            s = stack.enter_context(socket.socket())
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.settimeout(START)
            s.connect(server.address)
            s.sendall(f"GET {path}?namespace=test&topic=mail&limit=1000 HTTP/1.1\r\n"
                      "Host: localhost\r\n\r\n".encode())
            sockets.append(s)
        yield sockets


def status(s):
    """Of the answer: its first bytes are there, or the connection ended without."""
    return int(s.recv(12).split()[1])


@measured
@pytest.mark.parametrize("engine", ["log", "memory"])
def test_200_unread_answers_take_little_memory(folder, engine):
    with Server(folder, engine=engine) as server:
        for _ in range(10):
            assert offer(server, 100, text="x" * 4000).status == 200
        assert len(server.peek(limit=1000)) == 1000
        before = resident(server)
        with unread(server, 200) as sockets:
            assert [status(s) for s in sockets] == [200] * 200
            assert resident(server) - before < 250 << 20, "200 answers of 5 MB"
            assert server.metric("sluice_http_response_bytes") > 8 << 20
        until(lambda: server.metric("sluice_http_response_bytes") < 1 << 20)


@pytest.mark.parametrize("path", ["/peek", "/v1/admin/messages"])
def test_unread_answers_count_as_memory_of_requests(folder, path):
    with Server(folder, "--limits-memory", "8M", engine="memory") as server:
        for _ in range(10):
            assert offer(server, 100, text="x" * 4000).status == 200
        held = server.take()
        with unread(server, 50, path) as first:
            assert {status(s) for s in first} <= {200, 503}
            until(lambda: server.metric("sluice_http_response_bytes") > 8 << 20)
            with unread(server, 5, path) as late:
                assert [status(s) for s in late] == [503] * 5
            answer = offer(server, 1)
            assert (answer.status, answer.body["limit"]) == (503, "request_memory")
            server.close()
            server.ack(held)  # settling goes on
            assert server.get("/readyz").status == 200
        until(lambda: offer(server, 1).status == 200)


def test_an_answer_in_pieces_is_as_whole_as_another(folder):
    with Server(folder) as server:
        for n in range(10):
            server.enqueue(*({"text": f"{n}-{i}-" + "x" * 4000} for i in range(100)))
        assert len(server.peek(limit=1000)) == 1000
        taken = server.dequeue(limit=1000)
        names = [t.rstrip("x") for t in texts(taken)]
        assert names == [f"{n}-{i}-" for n in range(10) for i in range(100)]
        assert server.dequeue(limit=1) == []
        for message in taken[:3]:
            server.ack(message)
        assert server.stats()["total"] == 997
