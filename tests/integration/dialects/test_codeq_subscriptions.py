"""Queue-ready subscriptions of codeQ: who is called when a command has tasks. docs/codeq.md."""
import collections
import hashlib
import hmac
import json
import threading
import time

import pytest

from codeq import Codeq
from redis import Redis
from served import Server, until
from test_codeq_webhooks import PARENT, SECRET, Receiver


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("codeq")
    (folder / "secret").write_text(SECRET + "\n")
    with Server(folder / "data", "--codeq-webhook-secret-file", str(folder / "secret"), "--codeq-webhook-allow", "127.0.0.0/8",
                engine="log") as server:
        yield server


def subscribe(codeq, receiver, path="/ready", status=200, **more):
    return codeq.good("worker", "POST", "/workers/subscriptions",
                      {"callbackUrl": receiver.url(path), "minIntervalSeconds": 1, **more}, status=status)


def paths_of(receiver):
    return collections.Counter(path for path, _, _ in receiver.got)


def settled(receiver, n):
    """n calls, and no more: another command's call comes after what was sent before."""
    until(lambda: len(receiver.got) >= n)
    time.sleep(0.2)  # for calls that should not come; a late one fails the next check, too
    return paths_of(receiver)


MODES = {  # three subscribers, then the calls of one task
    "fanout": ({}, 3),
    "group": ({"deliveryMode": "group", "groupId": "pool"}, 1),
    "hash": ({"deliveryMode": "hash"}, 1),
}


def test_each_mode_gives_the_promised_number_of_calls(server):
    """X-11: three subscribers; fanout calls all, a group one after the other, hash always the same."""
    codeq, receivers = Codeq(server), {mode: Receiver() for mode in MODES}
    for mode, (more, _) in MODES.items():
        for i in range(3):
            subscribe(codeq, receivers[mode], f"/{i}", eventTypes=[f"cmd-{mode}"], **more)
    for turn in (1, 2):
        for mode in MODES:
            codeq.create(command=f"cmd-{mode}")
        for mode, (_, calls) in MODES.items():
            assert sum(settled(receivers[mode], turn * calls).values()) == turn * calls, mode
        time.sleep(1.1)  # the interval of the subscriptions
    assert {mode: len(paths_of(receiver)) for mode, receiver in receivers.items()} == {"fanout": 3, "group": 2, "hash": 1}


def test_a_call_is_signed_and_says_what_is_ready(server):
    """X-11: as codeQ's, with the trace of the task."""
    receiver, codeq = Receiver(), Codeq(server)
    subscribe(codeq, receiver, eventTypes=["Signed"])
    task = codeq.create(command="Signed", headers={"traceparent": PARENT})
    until(lambda: receiver.got)
    (path, headers, body), = receiver.got
    assert path == "/ready"
    want = hmac.new(SECRET.encode(), headers["X-CodeQ-Timestamp"].encode() + b"." + body, hashlib.sha256).hexdigest()
    assert headers["X-CodeQ-Signature"] == want and headers["traceparent"] == PARENT
    said = json.loads(body)
    assert said.pop("sentAt").endswith("Z")
    assert said == {"eventType": "Signed", "available": True, "queueDepth": 0, "claimUrl": "/v1/codeq/tasks/claim",
                    "notificationId": f"ntf-{task['id']}"}


def test_calls_are_at_least_the_interval_apart_and_none_is_lost(server):
    """X-11: what comes within the interval is reported at its end, once."""
    receiver, codeq = Receiver(), Codeq(server)
    subscribe(codeq, receiver, eventTypes=["often"], minIntervalSeconds=2)
    for _ in range(5):
        codeq.create(command="often")
    assert sum(settled(receiver, 1).values()) == 1
    until(lambda: len(receiver.got) == 2)
    first, second = (int(headers["X-CodeQ-Timestamp"]) for _, headers, _ in receiver.got)
    assert second - first >= 1  # whole seconds
    assert sum(settled(receiver, 2).values()) == 2


def test_delayed_and_known_tasks_call_nobody(server):
    receiver, codeq = Receiver(), Codeq(server)
    subscribe(codeq, receiver, eventTypes=["quiet"])
    codeq.create(command="quiet", delaySeconds=60)
    assert receiver.got == []
    codeq.create(command="quiet", idempotencyKey="k")
    until(lambda: len(receiver.got) == 1)
    time.sleep(1.1)
    codeq.create(command="quiet", idempotencyKey="k")
    assert sum(settled(receiver, 1).values()) == 1


def test_a_batch_calls_once_for_each_command(server):
    receiver, codeq = Receiver(), Codeq(server)
    for command in ("one", "two"):
        subscribe(codeq, receiver, f"/{command}", eventTypes=[command])
    codeq.good("producer", "POST", "/tasks/batch", {"tasks": [
        {"command": command, "payload": 1} for command in ("one", "two", "one", "bad name", "two")]})
    assert settled(receiver, 2) == {"/one": 1, "/two": 1}


def test_a_subscription_is_forgotten_after_its_ttl(server):
    """X-11: and lives on with a heartbeat."""
    receiver, codeq = Receiver(), Codeq(server)
    short = subscribe(codeq, receiver, "/short", eventTypes=["ttl"], ttlSeconds=1)
    beaten = subscribe(codeq, receiver, "/beaten", eventTypes=["ttl"], ttlSeconds=1)
    beat = f"/workers/subscriptions/{beaten['subscriptionId']}/heartbeat"
    later = codeq.good("worker", "POST", beat, {"ttlSeconds": 60})
    assert later["subscriptionId"] == beaten["subscriptionId"] and later["expiresAt"] > beaten["expiresAt"]
    time.sleep(1.1)
    codeq.create(command="ttl")
    assert settled(receiver, 1) == {"/beaten": 1}
    for name in (short["subscriptionId"], "x"):
        answer = codeq.call("worker", "POST", f"/workers/subscriptions/{name}/heartbeat", {})
        assert (answer.status, answer.body["error"]) == (404, "subscription not found")


REFUSED = [{"callbackUrl": "ftp://a/"}, {"callbackUrl": ""}, {"callbackUrl": "http://a b/"}, {"deliveryMode": "all"},
           {"deliveryMode": "group"}, {"eventTypes": ["a b"]}, {"eventTypes": [f"t{i}" for i in range(65)]}, {"callbackUrl": 1},
           {"callbackUrl": "http://a/" + "x" * 2048}]


@pytest.mark.parametrize("body", REFUSED)
def test_what_is_malformed_is_refused(server, body):
    answer = Codeq(server).call("worker", "POST", "/workers/subscriptions", {"callbackUrl": "http://a/", **body})
    assert answer.status == 400, answer


def test_there_is_a_most(tmp_path):
    """Bounded: the hundred-and-first of a namespace is refused, and one that is forgotten makes room."""
    with Server(tmp_path / "data", engine="memory") as server:
        codeq = Codeq(server)

        def ask(i, **more):
            return codeq.call("worker", "POST", "/workers/subscriptions", {"callbackUrl": f"http://192.0.2.1/{i}", **more})

        assert [ask(i).status for i in range(99)] == [200] * 99
        assert ask(99, ttlSeconds=1).status == 200
        answer = ask(100)
        assert answer.status == 429 and "too many subscriptions" in answer.text
        until(lambda: ask(100).status == 200)


def test_an_equal_subscription_is_the_same(server):
    """So a worker that subscribes again and again is called once; other commands are another one."""
    receiver, codeq = Receiver(), Codeq(server)
    ids = {subscribe(codeq, receiver, eventTypes=types)["subscriptionId"] for types in (["Same", "b"], ["same", "B"], ["same"])}
    assert len(ids) == 2
    codeq.create(command="b")
    assert sum(settled(receiver, 1).values()) == 1


def test_results_are_sent_before_calls(server):
    """However many calls wait for an address that hangs."""
    receiver, codeq, held = Receiver(), Codeq(server), threading.Event()
    answer = receiver.server.RequestHandlerClass.do_POST
    receiver.server.RequestHandlerClass.do_POST = lambda self: (held.wait(10), answer(self))
    for i in range(40):
        subscribe(codeq, receiver, f"/{i}", eventTypes=["ahead"])
    codeq.create(command="ahead", webhook=receiver.url("/result"))
    codeq.complete(codeq.claim("ahead"))
    held.set()
    until(lambda: len(receiver.got) == 41)
    assert [path for path, _, _ in receiver.got].index("/result") < 20


def test_addresses_inside_are_refused(tmp_path):
    """X-11: the guard of webhooks holds for these calls, too; a call is tried once."""
    receiver = Receiver()
    with Server(tmp_path / "data", engine="memory") as server:
        codeq = Codeq(server)
        subscribe(codeq, receiver, eventTypes=["a"])
        codeq.create(command="a")
        until(lambda: "webhook given up" in server.said())
        assert receiver.got == []


def test_a_failed_call_is_not_repeated(server):
    receiver, codeq = Receiver(500), Codeq(server)
    subscribe(codeq, receiver, eventTypes=["fails"])
    codeq.create(command="fails")
    assert sum(settled(receiver, 1).values()) == 1
    until(lambda: "status 500" in server.said())


def test_engine_redis_has_them(tmp_path):
    """X-11: nothing of a subscription is stored by the engine."""
    receiver = Receiver()
    with Redis(tmp_path) as redis, Server(tmp_path / "data", "--redis-address", redis.address, "--codeq-webhook-allow", "127.0.0.1",
                                          engine="redis") as server:
        codeq = Codeq(server)
        for i in range(3):
            subscribe(codeq, receiver, f"/{i}", deliveryMode="fanout" if i else "hash")
        codeq.create(command="a")
        assert settled(receiver, 3) == {"/0": 1, "/1": 1, "/2": 1}
