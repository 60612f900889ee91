"""The Python package: packed, installed from the wheel, and used on real servers, blocking and with asyncio."""
import asyncio
import datetime
import inspect
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import textwrap
import threading
import urllib.request
import zipfile

import pytest

from package_kit import ROOT, START, Hangup, Program, Server, check_kills, check_orders, free_port, until, url
from tokens import Secret

PACKAGE = ROOT / "clients" / "python"
count = itertools.count(1)


@pytest.fixture(scope="session")
def packed(tmp_path_factory):
    """The folder with the wheel and the source package."""
    out = tmp_path_factory.mktemp("packed")
    tree = out / "tree"
    shutil.copytree(PACKAGE, tree, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
    build = "from setuptools import build_meta as b; b.build_wheel('..'); b.build_sdist('..')"
    subprocess.run([sys.executable, "-c", build], cwd=tree, check=True, capture_output=True, timeout=120)
    return out


@pytest.fixture(scope="session")
def installed(packed, tmp_path_factory):
    """A folder for PYTHONPATH with what the wheel has: a wheel without compiled parts is installed by unpacking it."""
    folder = tmp_path_factory.mktemp("site")
    wheel, = packed.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


@pytest.fixture(scope="session")
def sluice(installed):
    sys.path.insert(0, str(installed))
    import sluice
    import sluice.aio  # noqa: F401
    assert sluice.__file__.startswith(str(installed))
    return sluice


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("server") / "data") as server:
        yield server


class Blocking:
    """Calls methods of a client; methods of asyncio as if they blocked."""

    def __init__(self, client):
        self.client = client
        self.loop = asyncio.new_event_loop()

    def __getattr__(self, name):
        def call(*args, **named):
            result = getattr(self.client, name)(*args, **named)
            if inspect.isasyncgen(result):
                return self.loop.run_until_complete(collect(result))
            if inspect.isawaitable(result):
                return self.loop.run_until_complete(result)
            return list(result) if inspect.isgenerator(result) else result
        return call

    def end(self):
        self.close()
        self.loop.close()


async def collect(generator):
    return [one async for one in generator]


@pytest.fixture(params=["blocking", "asyncio"])
def kind(request, sluice):
    return sluice.Client if request.param == "blocking" else sluice.aio.AsyncClient


@pytest.fixture
def client(kind, shared, request):
    made = Blocking(kind(url(shared), namespace=f"n{next(count)}"))
    yield made
    made.end()


# ---- The package ----

def test_wheel_and_source_package_have_everything(packed):
    wheel, = packed.glob("sluice-*.whl")
    source, = packed.glob("sluice-*.tar.gz")
    modules = {f"sluice/{path.name}" for path in (PACKAGE / "sluice").iterdir() if path.is_file()}
    assert "sluice/py.typed" in modules
    assert modules <= set(zipfile.ZipFile(wheel).namelist())
    inside = {name.partition("/")[2] for name in tarfile.open(source).getnames()}
    assert modules | {"README.md", "pyproject.toml"} <= inside


def test_the_version_is_the_version_of_the_project(sluice):
    assert f"version: '{sluice.__version__}'" in (ROOT / "meson.build").read_text()


def test_only_the_standard_library_is_used():
    allowed = sys.stdlib_module_names | {"__future__", "sluice"}
    for path in (PACKAGE / "sluice").glob("*.py"):
        for line in path.read_text().splitlines():
            words = line.split()
            if words[:1] in (["import"], ["from"]) and not words[1].startswith("."):
                assert words[1].partition(".")[0] in allowed, line


def test_types_are_checked(tmp_path):
    done = subprocess.run(["mypy", "--strict", "--cache-dir", str(tmp_path), "sluice"], cwd=PACKAGE, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


# ---- Messages ----

def test_the_bytes_of_a_batch_are_those_of_the_page(sluice):
    batch = sluice.packed.messages([{"namespace": "shop", "queue": "mail", "payload": b"hi", "priority": 3}])
    page = (PACKAGE.parents[1] / "docs" / "batch-format.md").read_text()
    example = page.split("```")[1]
    assert batch == bytes.fromhex("".join(line[:50] for line in example.splitlines()))


def test_the_next_holder_has_the_checkpoint(client, sluice):
    client.push("q", "x")
    first, = client.take("q", lease=60)
    assert first.checkpoint is None
    client.checkpoint(first, {"row": 1})
    client.checkpoint(first, [2, "ü"])
    assert client.extend([first], 60) == []
    client.nack(first, delay=0)
    second, = client.take("q", wait=20)
    assert second.checkpoint == [2, "ü"]
    client.nack(second, delay=0)
    with pytest.raises(sluice.LeaseLost):
        client.checkpoint(second, 3)
    assert client.take("q", wait=20)[0].checkpoint == [2, "ü"]


def test_a_checkpoint_extends_the_lease_as_the_take_did(client):
    client.push("q", "x")
    client.policy("q", lease="1s")
    message, = client.take("q", lease="10m")
    client.checkpoint(message, 1)
    leased, = client.peek("q", "leased")
    assert (leased.lease_expires_at - datetime.datetime.now(datetime.timezone.utc)).total_seconds() > 300


def test_a_batch_calls_back(client):
    batch = client.create_batch({"queue": "over", "payload": {"all": "sent"}, "priority": "high"}, timeout="1h")
    client.push_many("q", [1, 2], batch=batch)
    assert client.batch(batch)["pending"] == 2 and [b["id"] for b in client.batches()] == [int(batch)]
    assert client.close_batch(batch)["status"] == "closed"
    one, two = client.take("q", 2)
    assert one.batch == batch
    client.ack(one)
    client.nack(two, dead=True)
    callback, = client.take("over", wait=20)
    assert callback.body == {"all": "sent"} and callback.attributes == {
        "batch": batch, "outcome": "failed", "members": 2, "done": 1, "failed": 1}
    assert client.batch(batch)["status"] == "failed"


def test_a_batch_without_a_callback_ends_at_its_deadline(client):
    soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=1)
    batch = client.create_batch(deadline=soon)
    until(lambda: client.batch(batch)["status"] == "deadline")


@pytest.mark.parametrize("form", ["json", "packed"])
def test_packed_messages_are_those_of_json(sluice, shared, form):
    payloads = [b"\x00\xff", "grüß dich", {"a": [1, None, "ü"]}, None]
    with sluice.Client(url(shared), namespace=f"form-{form}", packed=form == "packed") as client:
        items = ({"queue": ("even", "odd")[n % 2], "payload": p, "priority": n, "key": str(n)} for n, p in enumerate(payloads))
        pushed = client.push_items(items)
        for queue, first in (("even", 0), ("odd", 1)):
            taken = client.take(queue, 10)
            assert [m.body for m in taken] == payloads[first::2]
            assert [m.id for m in taken] == [p.id for p in pushed[first::2]]
            assert [m.key for m in taken] == [str(first), str(first + 2)]
        with pytest.raises(sluice.Invalid):
            client.push("a b", b"x")


@pytest.mark.parametrize("payload", [b"", b"\x00\xff", "grüß dich", {"a": [1, None, "ü"]}, [1, 2], 7, True, None])
def test_a_payload_comes_back_as_it_was(client, payload):
    pushed = client.push("q", payload)
    message, = client.take("q")
    assert message.body == payload and type(message.body) is type(payload)
    assert message.id == pushed.id and message.uid == pushed.uid and isinstance(message.id, str)
    client.ack(message)
    assert client.stats("q")["total"] == 0


def test_options_of_a_message_arrive(client):
    client.push("q", "later", delay=datetime.timedelta(hours=1))
    client.push("q", "at", at=datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1))
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    client.push("q", "now", key="k", priority="high", correlation_id="c", attributes={"x": 1}, ttl="1h", max_attempts=2,
                content_type="text/x-own", traceparent=trace)
    message, = client.take("q", 10)
    assert (message.key, message.priority, message.correlation_id, message.attributes) == ("k", 0, "c", {"x": 1})
    assert (message.content_type, message.traceparent, message.attempts, message.failures) == ("text/x-own", trace, 1, 0)
    assert message.lease_expires_at > message.enqueued_at
    assert {m.body for m in client.peek("q", "delayed")} == {"later", "at"}


@pytest.mark.parametrize("form", ["threads", "asyncio"])
def test_a_worker_has_a_table_of_kinds(shared, sluice, form):
    """PW-F17"""
    client = sluice.Client(url(shared), namespace=f"kinds-{form}")
    for kind in ("mail", "crop", "resize", "crop"):
        client.push("q", kind, kind=kind)
    seen = []

    def handle(message):
        seen.append((message.kind, message.text()))
        if len(seen) == 3:
            worker.stop()

    async def handle_soon(message):
        handle(message)

    async def run():
        nonlocal worker
        async with sluice.aio.AsyncClient(url(shared), namespace=client.namespace) as other:
            worker = sluice.aio.AsyncWorker("q", {"crop": handle_soon, "resize": handle_soon}, client=other, concurrency=1)
            await worker.run()

    worker = None
    if form == "asyncio":
        asyncio.run(run())
    else:
        worker = sluice.Worker("q", {"crop": handle, "resize": handle}, client=client)
        worker.run()
    assert sorted(seen) == [("crop", "crop"), ("crop", "crop"), ("resize", "resize")]
    assert client.take("q", kinds=["crop"]) == []
    assert [m.kind for m in client.take("q", kinds=["crop", "mail"])] == ["mail"]
    client.close()


def test_many_messages_in_one_request(client):
    pushed = client.push_many("q", range(1000), priority=3)
    assert len({one.id for one in pushed}) == 1000
    first = client.push_items([{"queue": "r", "payload": n, "idempotency_key": str(n % 2)} for n in range(4)])
    assert [one.duplicate for one in first] == [False, False, True, True]
    assert sorted(m.body for m in client.take("q", 1000)) == list(range(1000))
    assert [q["queue"] for q in client.queues()] == ["q", "r"]


@pytest.mark.parametrize("options,text", [
    ({"priorty": 1}, "invalid option: priorty; expected namespace, key, kind, priority"),
    ({"at": datetime.datetime(2030, 1, 1)}, "expected a datetime with a time zone"),
])
def test_a_wrong_option_is_refused_before_anything_is_sent(client, options, text):
    with pytest.raises((TypeError, ValueError), match=text):
        client.push("q", "x", **options)
    with pytest.raises(TypeError, match="idempotency_key"):
        client.push_many("q", ["x"], idempotency_key="one for all")
    assert client.queues() == []


def test_failures_dead_letters_and_results(client):
    pushed = client.push("q", "x", keep_result="1h")
    client.nack(client.take("q")[0], "no carrier", delay=0)
    message, = client.take("q", wait=20)
    assert (message.attempts, message.failures) == (2, 1)
    client.nack(message, defer=True, delay=0)
    client.nack(client.take("q", wait=20)[0], "no such customer", dead=True)
    letter, = client.dead_letters("q")
    assert letter.error == "no such customer" and letter.id == pushed.id
    assert client.redrive("q", [letter.id]) == 1
    with pytest.raises(TimeoutError):
        client.result(pushed.id)
    client.ack(client.take("q", wait=20)[0], {"sum": 3})
    assert client.result(pushed.uid, wait="5s") == {"sum": 3}


def test_errors_have_types(client, sluice):
    with pytest.raises(sluice.NotFound) as found:
        client.stats("missing")
    assert found.value.status == 404 and found.value.error == "not_found"
    with pytest.raises(sluice.Invalid, match="limit"):
        client.take("q", 100000)
    client.push("q", "x")
    message, = client.take("q", lease=0.05)
    until(lambda: client.take("q", wait=1))
    with pytest.raises(sluice.LeaseLost):
        client.ack(message)
    assert client.extend([message]) == [message] and message.lost
    assert client.policy("q", max_depth=1)["max_depth"] == 1
    with pytest.raises(sluice.Throttled) as full:
        client.push("q", "y")
    assert full.value.error == "queue_full" and full.value.retry_after > 0


def test_a_canceled_message_is_known_at_the_next_extend(client, shared):
    client.push("q", "x")
    message, = client.take("q")
    body = json.dumps({"namespace": client.client.namespace, "id": message.id}).encode()
    with urllib.request.urlopen(f"{url(shared)}/v1/admin/message/cancel", body) as answer:
        assert json.load(answer)["running"] is True
    assert client.extend([message]) == [message] and message.canceled
    client.nack(message, "stopped", delay=0)
    assert client.stats("q")["total"] == 0


# ---- Locks ----

def test_a_lock_protects_a_document(sluice, shared):
    client = sluice.Client(url(shared), namespace="locks")
    with client.lock("orders/1") as lock:
        assert lock.read() is None
        lock.write({"n": 1})
        lock.mutate("/n++")
        assert lock.read() == {"n": 2} and client.read("orders/1") is None
        with pytest.raises(sluice.Conflict):
            with client.lock("orders/1", wait=0):
                pass
    token = lock.fencing_token
    with pytest.raises(KeyError):
        with client.lock("orders/1") as lock:
            lock.write({})
            raise KeyError
    assert client.read("orders/1") == {"n": 2} and lock.fencing_token > token


def test_a_lock_is_kept_until_its_block_ends(sluice, shared):
    client = sluice.Client(url(shared), namespace="kept")
    extended = client._transport.send
    seen = threading.Event()

    def send(address, call, *rest):
        answer = extended(address, call, *rest)
        if call.path == "/v1/keepalive":
            seen.set()
        return answer

    client._transport.send = send
    with client.lock("k", ttl=1) as lock:
        assert seen.wait(START) and not lock.lost


def test_asyncio_has_the_same_locks(sluice, shared):
    async def work():
        async with sluice.aio.AsyncClient(url(shared), namespace="async-locks") as client:
            async with client.lock("k") as lock:
                await lock.write({"n": 1})
                await lock.mutate("/n++")
                assert await lock.read() == {"n": 2}
            return await client.read("k")

    assert asyncio.run(work()) == {"n": 2}


# ---- Servers that are away ----

def test_another_server_is_asked_if_the_first_is_away(kind, shared):
    client = Blocking(kind([f"http://127.0.0.1:{free_port()}", url(shared)], namespace="another"))
    client.push("q", "x")
    assert [m.body for m in client.take("q")] == ["x"]
    client.end()


def test_what_may_have_happened_is_repeated_only_if_that_is_safe(kind, shared, sluice):
    with Hangup() as broken:
        def fresh():
            return Blocking(kind([broken, url(shared)], namespace=f"doubt-{kind.__name__}".lower()))
        client = fresh()
        with pytest.raises(sluice.OutcomeUnknown):
            client.push("q", "x")
        client.end()
        client = fresh()
        client.push("q", "x", idempotency_key="x")
        client.end()
        client = fresh()
        assert len(client.take("q", 10)) == 1
        client.end()


def test_no_server_answers(kind, sluice):
    client = Blocking(kind(f"http://127.0.0.1:{free_port()}", patience=0.2))
    with pytest.raises(sluice.Unreachable, match="127.0.0.1"):
        client.push("q", "x")
    client.end()


@pytest.mark.parametrize("text", ["localhost:7171", "ftp://localhost", "http://", "http://h/?a=1"])
def test_a_wrong_address_is_refused(kind, text):
    with pytest.raises(ValueError, match="invalid server: .*; expected http://HOST:PORT"):
        kind(text)


# ---- Workers ----

BLOCKING = """
    import sluice, sys, time

    def handle(message):
        {body}

    sluice.Worker("jobs", handle, concurrency={concurrency}, lease={lease}, beat={beat}).run()
"""
ASYNCIO = """
    import asyncio, sluice.aio, sys, time

    async def handle(message):
        {body}

    async def main():
        await sluice.aio.AsyncWorker("jobs", handle, concurrency={concurrency}, lease={lease}, beat={beat}).run()

    asyncio.run(main())
"""


FORMS = {"blocking": (BLOCKING, "time.sleep(0.05)"), "asyncio": (ASYNCIO, "await asyncio.sleep(0.05)")}


@pytest.fixture(params=FORMS)
def program(request, installed):
    made = []
    form, pause = FORMS[request.param]

    def start(servers, body, concurrency=4, lease=30, beat=5):
        text = textwrap.dedent(form).format(body=body, concurrency=concurrency, lease=lease, beat=beat)
        made.append(Program([sys.executable, "-c", text], servers, PYTHONPATH=str(installed), PYTHONUNBUFFERED="1"))
        return made[-1]

    start.pause = pause
    yield start
    for one in made:
        one.end()


def test_a_worker_acks_retries_defers_and_rejects(program, tmp_path, sluice):
    with Server(tmp_path / "data") as server:
        client = sluice.Client(url(server))
        client.policy("jobs", retry={"kind": "fixed", "base": "10ms", "jitter": "none"}, max_attempts=3)
        worker = program(url(server), """
        sys.stdout.write(f"{message.body} {message.attempts}\\n")
        if message.body == "flaky" and message.attempts == 1: raise OSError("no carrier")
        if message.body == "wait" and message.attempts == 1: raise sluice.Defer(0.01)
        if message.body == "soon" and message.attempts == 1: raise sluice.Retry("soon", delay=0.01)
        if message.body == "never": raise sluice.Reject("no such customer")
        if message.body == "bad": raise ValueError(7)
        return message.body.upper()""")
        pushed = {text: client.push("jobs", text, keep_result="1h") for text in ("mail", "flaky", "wait", "soon", "never", "bad")}
        until(lambda: client.stats("jobs")["total"] == 2 and client.stats("jobs")["dead"] == 2)
        worker.stop()
        assert sorted(worker.lines) == sorted([
            "mail 1", "flaky 1", "flaky 2", "wait 1", "wait 2", "soon 1", "soon 2", "never 1", "bad 1", "bad 2", "bad 3"])
        assert {m.body: m.error for m in client.dead_letters("jobs")} == {"never": "no such customer", "bad": "ValueError: 7"}
        for text in ("mail", "flaky", "wait", "soon"):
            assert client.result(pushed[text].id) == text.upper()


def test_a_long_handler_keeps_its_lease(program, tmp_path, sluice):
    """The handler ends after the test has seen three extensions of the lease. The message is delivered once."""
    gate = tmp_path / "gate"
    with Server(tmp_path / "data") as server:
        client = sluice.Client(url(server))
        client.push("jobs", "x")
        worker = program(url(server), f"""
        import os
        print("begun")
        while not os.path.exists({str(gate)!r}): {program.pause}""", lease=6)
        seen = set()
        until(lambda: seen.update(m.lease_expires_at for m in client.peek("jobs", "leased")) or len(seen) > 3)
        gate.touch()
        until(lambda: client.stats("jobs")["total"] == 0)
        worker.stop()
        assert worker.lines == ["begun"]


def test_a_signal_lets_handlers_finish_and_takes_nothing_more(program, tmp_path, sluice):
    gate = tmp_path / "gate"
    with Server(tmp_path / "data") as server:
        client = sluice.Client(url(server))
        client.push_many("jobs", range(3))
        worker = program(url(server), f"""
        import os
        print("begun")
        while not os.path.exists({str(gate)!r}): {program.pause}""", concurrency=1)
        until(lambda: worker.lines)
        worker.process.send_signal(signal.SIGTERM)
        gate.touch()
        worker.stop()
        assert worker.lines.count("begun") < 3
        left = client.stats("jobs")
        assert left["ready"] == left["total"] == 3 - worker.lines.count("begun")
        assert {m.failures for m in client.peek("jobs")} <= {0}


def test_an_operator_makes_a_worker_quiet_resumes_and_stops_it(program, tmp_path, sluice):
    with Server(tmp_path / "data") as server:
        client = sluice.Client(url(server))
        worker = program(url(server), "print(message.body)", beat=0.05)
        check_orders(server, lambda text: client.push("jobs", text), worker)


def test_nothing_is_lost_when_servers_and_workers_are_killed(program, tmp_path, sluice):
    body = r'sys.stdout.write(f"{message.body}\n")'
    check_kills(tmp_path / "data", sluice.Client, lambda address: program(address, body, lease=2))


def test_a_token_is_sent(sluice, tmp_path, monkeypatch):
    text = "0123456789abcdef0123456789abcdef"
    monkeypatch.setenv("SLUICE_AUTH_SECRET", text)
    with Server(tmp_path / "data") as server:
        for wrong in (None, "false"):
            with pytest.raises(sluice.Unauthorized):
                sluice.Client(url(server), token=wrong).push("q", "x")
        monkeypatch.setenv("SLUICE_TOKEN", Secret(text).token(scope="default:write"))
        sluice.Client(url(server)).push("q", "x")


# ---- Pages ----

def blocks():
    for page in (PACKAGE / "README.md", ROOT / "docs" / "clients.md"):
        yield from re.findall(r"```python\n(.*?)```", page.read_text(), re.S)


def read_until(stream, word):
    """What comes up to this word. Threads that print at once mix their lines."""
    text = ""
    while word not in text:
        more = stream.read(1)
        assert more, f"the end, after: {text}"
        text += more
    return text


def test_the_examples_of_the_pages_run(installed, tmp_path):
    with Server(tmp_path / "data") as server:
        env = {**os.environ, "PYTHONPATH": str(installed), "SLUICE_SERVER": url(server), "PYTHONUNBUFFERED": "1"}
        for block in blocks():
            process = subprocess.Popen([sys.executable, "-c", block], env=env, text=True, stdout=subprocess.PIPE)
            if "Worker(" in block:  # it runs until it is stopped
                assert "mail to" in read_until(process.stdout, "ann@example.com")
                process.terminate()
            process.communicate(timeout=2 * START)
            assert process.returncode == 0, block
