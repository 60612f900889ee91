"""Fault 10: any allocation of a running server fails. No crash, an answer that is true or
none, nothing that was accepted is lost, and it goes on."""
import random
import re
import threading

import pytest

from checker import FAIL, OK, UNKNOWN, History, check
from faults import ASAN, LONG, Hurt, seed, until
from load import Gone, Load, Wire, look, outcome
from test_kill import report

pytestmark = pytest.mark.skipif(bool(ASAN), reason="the sanitizer has its own allocator")

MOST = 500  # allocations that a call may need; far more than any does


@pytest.fixture
def starved(folder, shim):
    with Hurt(folder, "--threads", "2", shim=shim) as server:
        server.namespace = "fault"
        yield server


class Trial:
    """One call again and again: its first allocation fails, its second, and so on. Each
    has a queue of its own."""

    def __init__(self, server, shim):
        self.server = server
        self.shim = shim
        self.number = 0
        self.results = set()

    def ask(self, method, path, body=None, **params):
        """On a new connection: that needs memory, too."""
        wire = Wire(self.server.address)
        try:
            status, answer = wire.call(method, path, body, **params)
        except Gone:
            return UNKNOWN, None
        finally:
            wire.close()
        if status >= 300:  # an error says what it is in the form of the API
            assert status in (500, 503) and {"error", "message"} <= set(answer), answer
        return outcome(status, answer), answer

    def starved(self, n, run, work):
        """Its outcome when allocation n fails, and those behind; None: it had fewer."""
        before = self.shim.get("failed")
        relief = threading.Timer(1, self.shim.set, ("alloc_fail", 0))  # for waiting requests
        self.shim.set("alloc_skip", n)
        self.shim.set("alloc_fail", run)
        relief.start()
        try:
            found = work()
        finally:
            relief.cancel()
            relief.join()
            self.shim.set("alloc_fail", 0)
        assert self.server.process.poll() is None, self.server.said()
        return found if self.shim.get("failed") > before else None

    def run(self, scenario, run):
        for n in range(MOST):
            self.number += 1
            self.server.topic = f"{scenario.__name__}{self.number}"
            steps = scenario(self)
            work = next(steps)
            found = self.starved(n, run, work)
            if not found:
                return n
            self.results.add(found[0])
            with pytest.raises(StopIteration):
                steps.send(found)
        raise AssertionError("it never ends")

    def count(self, state="total"):
        """Of the messages of its queue."""
        answer = self.server.get("/stats", **self.server.here())
        return answer.body[state] if answer.status == 200 else 0

    def has(self, result, before, after, state="total"):
        """What an outcome must have left behind; what was given back may take a moment."""
        want = {OK: {after}, FAIL: {before}, UNKNOWN: {before, after}}[result]
        until(lambda: self.count(state) in want)


def enqueue(t):
    items = [t.server.here(text="x" * 70000, key=f"k{t.number}", idempotency_key=f"{t.number} {i}",
                           ttl="1h", attributes={"a": 1}, keep_result="1h", delay=f"{i}h")
             for i in range(3)]
    result, ids = yield lambda: t.ask("POST", "/enqueue", items)
    t.has(result, 0, 3)
    if result == OK:
        for id_ in ids:
            assert len(t.server.peek(id=id_)) == 1
    # Whatever became of it, it is there once when it is sent again.
    again = t.server.post("/enqueue", items)
    assert again.status == 200 and (result != OK or again.body == ids)
    assert t.count() == 3


def many_enqueued(t):
    """Every table of the server grows."""
    items = [t.server.here(text=f"{i}", key=f"{t.number} {i}", idempotency_key=f"{t.number} {i}",
                           ttl="1h", keep_result="1h", delay="1h" if i % 3 == 0 else 0)
             for i in range(1000 + 100 * t.number)]
    result, _ = yield lambda: t.ask("POST", "/enqueue", items)
    t.has(result, 0, len(items))
    t.server.enqueue({"text": "after"})
    t.has(result, 1, len(items) + 1)


def many_claimed(t):
    n = 1000
    t.server.enqueue(*({"text": "x" * 100, "key": str(i)} for i in range(n)))
    result, messages = yield lambda: t.ask("GET", "/dequeue", **t.server.here(limit=n, lease="2s"))
    if result == OK:
        assert t.count("leased") + t.count("ready") + t.count("delayed") == n
        assert len({m["id"] for m in messages}) == len(messages)
    assert t.count() == n


def dequeue(t):
    t.server.enqueue(*({"text": "x" * 3000} for _ in range(3)))
    result, messages = yield lambda: t.ask("GET", "/dequeue", **t.server.here(lease="1s"))
    if result == OK:
        assert t.count("leased") + t.count("ready") + t.count("delayed") == 3
        assert len(messages) <= 3
    until(lambda: len(t.server.dequeue(limit=10, lease="1h")) + t.count("leased") >= 3)


def waiting_dequeue(t):
    def work():
        pushed = []
        thread = threading.Thread(target=lambda: pushed.append(
            t.ask("POST", "/enqueue", [t.server.here(text="x")])))
        thread.start()
        got = t.ask("GET", "/dequeue", **t.server.here(wait="200ms", lease="1s"))
        thread.join()
        return (got[0], (got[1], pushed[0]))
    result, (messages, (accepted, ids)) = yield work
    if result == OK and messages:
        assert accepted != FAIL
    t.has(accepted, 0, 1)


def held(t, **item):
    t.server.enqueue({"text": "x", "keep_result": "1h", **item})
    return t.server.take(lease="1h")


def settle(message, **more):
    return {"id": message["id"], "lease_id": message["lease_id"], **more}


def ack(t):
    body = t.server.here(**settle(held(t), result={"x": "y" * 3000}))
    result, _ = yield lambda: t.ask("POST", "/ack", body)
    t.has(result, 1, 0)
    if result == OK:
        answer = t.server.get("/result", **t.server.here(id=body["id"]))
        assert answer.body["result"] == body["result"]


def nack(t):
    body = t.server.here(**settle(held(t), error="z" * 3000, delay="1h"))
    result, _ = yield lambda: t.ask("POST", "/nack", body)
    t.has(result, 0, 1, "delayed")
    if result == OK:
        assert t.server.peek(id=body["id"])[0]["error"] == body["error"]


def extend(t):
    message = held(t)
    body = t.server.here(**settle(message, lease="11h"))
    result, _ = yield lambda: t.ask("POST", "/extend", body)
    until_ = t.server.peek(id=message["id"])[0]["lease_expires_at"]
    assert result == UNKNOWN or (until_ > message["lease_expires_at"]) == (result == OK)


def many_acks(t):
    n = 1000  # so many that the answer needs memory of its own
    t.server.enqueue(*({"text": "x" * 500} for _ in range(n)))
    for _ in range(4):  # on a thread each: the server keeps no buffer of an answer this large
        wire = Wire(t.server.address)
        assert wire.call("GET", "/peek", None, **t.server.here(limit=n, state="all"))[0] == 200
        wire.close()
    body = [t.server.here(**settle(m)) for m in t.server.dequeue(limit=n, lease="1h")]
    result, items = yield lambda: t.ask("POST", "/ack", body)
    done = sum(i["status"] == 200 for i in items) if result == OK else n
    t.has(result, n, n - done)


def redrive(t):
    t.server.nack(held(t), dead=True)
    result, _ = yield lambda: t.ask("POST", "/dlq/redrive", t.server.here(limit=10))
    t.has(result, 1, 0, "dead")


def delete(t):
    t.server.nack(held(t), dead=True)
    result, _ = yield lambda: t.ask("POST", "/dlq/delete", t.server.here(limit=10))
    t.has(result, 1, 0)


def policy(t):
    result, _ = yield lambda: t.ask("PUT", "/policy", {"max_attempts": 9}, **t.server.here())
    found = t.server.get("/policy", **t.server.here()).body["max_attempts"]
    assert found in {OK: (9,), FAIL: (5,), UNKNOWN: (5, 9)}[result]


def looks(path, **params):
    def look_(t):
        message = held(t)
        t.server.enqueue(*({"text": "x" * 2000} for _ in range(50)))
        if path == "/result":
            t.server.ack(message, result="r" * 3000)
        more = {"id": message["id"]} if path == "/result" else {}
        where = {} if path == "/metrics" else t.server.here(**params, **more)
        if path == "/topics":
            del where["topic"]
        result, _ = yield lambda: wire_text(t, path, where)
        assert result != FAIL or t.count() > 0
    look_.__name__ = path.strip("/")
    return look_


def wire_text(t, path, where):
    """/metrics is no JSON."""
    try:
        answer = t.server.connect()
        answer.request("GET", path + "?" + "&".join(f"{k}={v}" for k, v in where.items()))
        got = answer.getresponse()
        got.read()
        answer.close()
        assert got.status in (200, 500, 503)
        return (OK if got.status == 200 else FAIL), None
    except OSError:
        return UNKNOWN, None


SCENARIOS = [enqueue, dequeue, many_enqueued, many_claimed, waiting_dequeue, ack, nack, extend, many_acks, redrive, delete,
             policy, looks("/peek", state="all", limit=1000), looks("/peek", limit=100),
             looks("/dlq"), looks("/stats"), looks("/topics"), looks("/result"),
             looks("/metrics")]


@pytest.mark.parametrize("run", [1, 2, 1 << 40])
def test_any_allocation_of_any_call_may_fail(starved, shim, run):
    """The n-th alone, or with the next, or with all for a while."""
    trial = Trial(starved, shim)
    for scenario in SCENARIOS:
        n = trial.run(scenario, run)
        print(f"{scenario.__name__}: {n} allocations")
    assert {FAIL, UNKNOWN} <= trial.results
    assert starved.get("/healthz").status == 200 and starved.get("/readyz").status == 200
    starved.restart("stop")
    assert starved.get("/readyz").status == 200


def test_any_allocation_of_any_connection_may_fail(starved, shim):
    """Of 300 that stay open, so that what grows with their number grows."""
    trial = Trial(starved, shim)
    wires = []

    def connect():
        wires.append(Wire(starved.address))
        try:
            return wires[-1].call("GET", "/healthz")
        except Gone:
            return 0, None

    for _ in range(300):
        n = 0
        while trial.starved(n, 1, connect):
            wires.pop().close()
            n += 1
    assert shim.get("failed") > 300
    for wire in wires:
        assert wire.call("GET", "/healthz")[0] == 200
        wire.close()


def test_failing_allocations_under_load_break_no_promise(starved, shim):
    history = History()
    dice = random.Random(seed(10))
    load = Load(starved, history, dice.random())
    load.setup()
    load.start()
    for _ in range(2000 if LONG else 150):
        shim.set("alloc_skip", dice.choice((0, 5, 50, 500)))
        shim.set("alloc_fail", dice.choice((1, 1, 3, 30)))
        threading.Event().wait(0.02)
    shim.set("alloc_fail", 0)
    load.stop()
    assert starved.process.poll() is None, starved.said()
    assert shim.get("failed") > 100
    starved.restart("kill")
    load.finish()
    history.add(look(starved))
    found = check(history)
    assert not found, report(found)


def test_a_lack_of_memory_is_logged_when_it_begins_and_when_it_ends(starved, shim):
    """However many requests it costs."""
    starved.topic = "lacking"
    trial = Trial(starved, shim)
    item = [starved.here(text="x" * 70000, key="k", attributes={"a": 1})]
    begins, ends = "out of memory: requests are refused", "out of memory no more"
    until(lambda: starved.said().count(begins) == starved.said().count(ends))
    before = starved.said().count(begins)
    results = set()
    for n in range(40):
        found = trial.starved(n, 1, lambda: trial.ask("POST", "/enqueue", item))
        results.add(found and found[0])
    assert FAIL in results
    until(lambda: starved.said().count(ends) == starved.said().count(begins) > before)
    places = re.findall(begins + r'"[^\n]* shard=(\w+)', starved.said())[before:]
    assert len(places) == len(set(places)), places
