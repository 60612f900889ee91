"""Leases at their edges: said twice, said late, said to a server that was paused."""
import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

from checker import FAIL, OK, History, check
from faults import LONG, Hurt, seed, until
from load import Client, look
from served import seconds_of, texts
from test_kill import report

VERBS = ("ack", "nack", "extend")
PAUSE = 60 if LONG else 2  # seconds that a process stands still; longer than its leases


def state(server, id_):
    answer = server.get("/peek", **server.here(id=id_))
    return answer.status, answer.body


@pytest.mark.parametrize("how", ["", "stop", "kill"])
def test_a_repeated_event_changes_nothing(server, how):
    """Fault 17; MQ-30, MQ-51: a second ack is 404, also after a restart."""
    for first in VERBS:
        for again in VERBS:
            id_, = server.enqueue({"text": first + again})
            message = server.take(lease="1h")
            more = {"delay": "1h"} if first == "nack" else {}
            assert server.settle("/" + first, message, **more).status == 200
            if how:
                server.restart(how)
            before = state(server, id_)
            answer = server.settle("/" + again, message)
            if first == "ack":
                assert answer.status == 404, answer
            elif first == "nack":
                assert answer.status == 409 and answer.body["error"] == "lease_lost"
            else:
                assert answer.status == 200  # its own lease, still
                continue
            assert state(server, id_) == before


def test_answers_that_overtake_each_other(server):
    """ack, nack and extend of one lease at once: exactly one ends it."""
    for _ in range(60):
        id_, = server.enqueue({"text": "x"})
        message = server.take(lease="1h")
        got = {}

        def say(verb, n, message=message, got=got):
            got[verb, n] = server.settle("/" + verb, message,
                                         **({"delay": "1h"} if verb == "nack" else {})).status
            server.close()

        threads = [threading.Thread(target=say, args=(v, n)) for v in VERBS for n in range(2)]
        random.shuffle(threads)
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        ended = [verb for (verb, _), status in got.items() if status == 200 and verb != "extend"]
        assert len(ended) == 1, got
        assert set(got.values()) <= {200, 404, 409}
        assert (state(server, id_)[0] == 404) == (ended == ["ack"])


def test_an_ack_at_the_moment_of_expiry_wins_or_changes_nothing(server):
    """Fault 18: the loser gets 409."""
    n = 20000 if LONG else 400
    server.namespace, server.topic = "fault", "work"
    server.policy(max_attempts=1000, retry={"kind": "none"})
    history = History()
    for i in range(0, n, 100):
        Client(server, history).push([{"text": f"m{i + j} "} for j in range(100)], i)
    won = [0, 0]
    start = seed(18)
    lock = threading.Lock()

    def work(number):
        dice = random.Random(start + number)
        client = Client(server, history)
        while True:
            messages = client.claim(limit=1, lease=0.03, wait="1s")
            if not messages:
                return
            message, = messages
            pause = message["until"] + dice.uniform(-0.006, 0.006) - time.time()
            if pause > 0:
                time.sleep(pause)
            result = client.settle("ack", message)
            with lock:
                won[result == OK] += 1

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    server.close()  # a connection that was idle so long is closed
    history.add(look(server))
    found = check(history)
    assert not found, report(found)
    assert won[True] == n and won[False] > n // 50  # the race was on
    assert server.stats()["total"] == 0


def test_a_paused_server_fences_the_leases_that_ran_out(server):
    """Fault 12: no message has two holders when it goes on."""
    n = 20
    server.namespace, server.topic = "fault", "work"
    history = History()
    client = Client(server, history)
    assert client.push([{"text": f"m{i} "} for i in range(n)], 1) == OK
    old = client.claim(limit=n, lease=1.0)
    kept = Client(server, history)
    assert kept.push([{"text": "kept "}], 2) == OK
    long_, = kept.claim(limit=1, lease=600.0)
    waiters = []
    for _ in range(n):
        waiters.append(threading.Thread(
            target=lambda: Client(server, history).claim(limit=1, lease=30.0, wait="5m")))
        waiters[-1].start()
    until(lambda: server.metric('sluice_waiting{shard="0"}') == n)
    server.pause()
    time.sleep(PAUSE)
    late = [threading.Thread(target=lambda m=m: Client(server, history).settle("ack", m))
            for m in old[:5]]
    for t in late:
        t.start()
    server.resume()
    for t in waiters + late:
        t.join()
    for message in old:
        client.settle("ack", message)
    assert kept.settle("ack", long_) == OK
    # An ack that arrives after its lease ended loses, in any order of requests.
    assert {s.result for s in history.settles if s.token != long_["fencing_token"]} == {FAIL}
    history.add(look(server))
    found = check(history)
    assert not found, report(found)
    assert len(history.claims) == 2 * n + 1


WORKER = """
import sys
sys.path.insert(0, sys.argv[1])
import faults
from load import *
from checker import History
class Server: address = "127.0.0.1", int(sys.argv[2])
client = Client(Server, History())
message, = client.claim(limit=1, lease=float(sys.argv[3]), wait="20s")
print("claimed", flush=True)
sys.stdin.readline()
print(client.settle("ack", message), flush=True)
"""


def worker(server, lease):
    return subprocess.Popen(
        [sys.executable, "-B", "-c", WORKER, os.path.dirname(__file__),
         str(server.address[1]), str(lease)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_paused_worker_is_fenced(server):
    """Fault 12: another has its message when it wakes up."""
    server.namespace, server.topic = "fault", "work"
    server.enqueue({"text": "x"})
    paused = worker(server, 0.5)
    assert paused.stdout.readline() == "claimed\n"
    paused.send_signal(signal.SIGSTOP)
    message = server.take(wait=20, lease="10m")
    assert (message["attempts"], message["failure_attempts"]) == (2, 1)
    time.sleep(PAUSE)
    paused.send_signal(signal.SIGCONT)
    assert paused.communicate("go on\n", timeout=30)[0] == "fail\n"
    held, = server.peek(id=message["id"])
    assert held["lease_expires_at"] == message["lease_expires_at"]
    server.ack(message)  # with its lease and its token


def test_a_message_that_kills_its_workers_ends_in_the_dead_letters(server):
    """Fault 20: exactly max_attempts deliveries, and no other message suffers."""
    server.namespace, server.topic = "fault", "work"
    server.enqueue({"text": "poison", "key": "bad", "max_attempts": 3, "priority": 0},
                   {"text": "behind", "key": "bad"},
                   *({"text": f"fine{i}", "key": f"good{i}", "priority": 9}
                     for i in range(10)))
    server.policy(retry={"kind": "none"})
    done = []
    for attempt in range(3):
        victim = worker(server, 0.3)
        assert victim.stdout.readline() == "claimed\n"
        victim.kill()
        victim.wait()
        held = server.peek(state="leased")
        assert not held or texts(held) == ["poison"]
        for message in server.dequeue(limit=3):  # the others go on meanwhile
            if message["key"] == "bad":
                server.nack(message, defer=True, delay=0)
            else:
                server.ack(message)
                done.append(message["id"])
        until(lambda: server.stats()["leased"] == 0)
        assert len(server.dlq()) == (attempt == 2)
    dead, = server.dlq()
    assert texts([dead]) == ["poison"] and dead["reason"] == "max_attempts"
    assert dead["failure_attempts"] == 3
    rest = texts(server.dequeue(limit=100))
    assert rest[0] == "behind" and len(rest) + len(done) == 11


def test_a_key_that_fails_slows_no_other_key(server):
    """Fault 21: while a key fails, others get every place in every answer that it does not
    take itself, and it takes one a retry. How fast that goes is the same machine's affair;
    engine_queue has an hour of it."""
    n, each = 1000, 10
    pause = 0.2
    server.policy(max_attempts=65535, retry={"kind": "fixed", "base": f"{int(pause * 1000)}ms",
                                             "jitter": "none"})
    server.enqueue(*({"text": "bad", "key": "bad"} for _ in range(300)))
    server.enqueue(*({"text": "x", "key": f"k{i}"} for i in range(n)))
    failed, done, asked = [], [], 0
    while len(done) < n:
        messages = server.dequeue(limit=each)
        asked += 1
        good = sum(m["key"] != "bad" for m in messages)
        assert len(messages) == each or good == n - len(done), "a place was left empty"
        for message in messages:
            if message["key"] == "bad":
                failed.append(seconds_of(message["lease_expires_at"]))
                server.nack(message, error="no")
            else:
                server.ack(message)
                done.append(message["id"])
    assert len(set(done)) == n
    assert asked <= -(-(n + len(failed)) // each)
    assert all(b - a >= pause for a, b in zip(failed, failed[1:]))
    assert server.stats()["total"] == 300
