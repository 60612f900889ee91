"""Any node answers for any queue: every request goes through a node that owns nothing."""
import signal
import threading

import pytest

import lockd
from clustered import SHARDS, node, shards, two, waits
from served import Refused, Server, freeze, texts, until
from test_lockd_stream import Events

QUEUES = [f"q{n}" for n in range(12)]


def test_a_message_travels_through_a_node_that_owns_nothing(pair):
    owner, entry = pair
    for queue in QUEUES:
        sent = entry.enqueue({"text": f"in {queue}", "attributes": {"a": 1}, "priority": 7}, topic=queue)
        assert entry.peek(topic=queue)[0]["id"] == sent[0]
        message = entry.take(topic=queue)
        assert texts([message]) == [f"in {queue}"] and message["id"] == sent[0]
        assert message["attributes"] == {"a": 1} and message["attempts"] == 1
        assert owner.stats(topic=queue)["leased"] == 1
        entry.ack(message, topic=queue)
        assert owner.dequeue(topic=queue) == [] and entry.dequeue(topic=queue) == []
    assert shards(entry) == (0, SHARDS)


def test_refusals_of_the_owner_are_refusals_of_the_entry_node(pair):
    _, entry = pair
    message = entry.enqueue({"text": "x", "idempotency_key": "k"})[0]
    assert entry.enqueue({"text": "x", "idempotency_key": "k"})[0] == message
    taken = entry.take(lease="60s")
    assert entry.nack(taken, error="no", delay="0s")
    second = entry.take()
    stale = entry.settle("/ack", taken)
    assert stale.status == 409 and stale.body["error"] == "lease_lost", stale
    assert entry.settle("/extend", second, lease="60s").status == 200
    entry.ack(second)
    gone = entry.settle("/ack", second)
    assert gone.status == 404, gone


def test_a_policy_a_pause_and_a_purge_reach_the_owner(pair):
    owner, entry = pair
    entry.policy(max_attempts=1)
    assert owner.get("/policy", **owner.here()).body["max_attempts"] == 1
    entry.enqueue({"text": "a"}, {"text": "b"})
    entry.nack(entry.take(), error="broken")
    dead = entry.dlq()
    assert texts(dead) == ["a"] and dead[0]["error"] == "broken", dead
    assert entry.stats()["ready"] == 1 and entry.stats()["dead"] == 1


def test_a_claim_waits_on_the_owner_and_an_enqueue_of_any_node_wakes_it(pair):
    owner, entry = pair
    for sender in pair:
        found = []
        waiter = threading.Thread(target=lambda found=found: found.append(entry.dequeue(wait="60s")))
        waiter.start()
        until(lambda: waits(owner) == 1)
        sender.enqueue({"text": "now"})
        waiter.join(60)
        assert texts(found[0]) == ["now"]
        entry.ack(found[0][0])


def test_a_client_that_hangs_up_ends_its_wait_on_the_owner(pair):
    owner, entry = pair
    sock = entry.raw()
    sock.sendall(f"GET /dequeue?namespace={entry.namespace}&topic={entry.topic}&wait=10m HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    until(lambda: waits(owner) == 1)
    sock.close()
    until(lambda: waits(owner) == 0)
    entry.enqueue({"text": "still here"})
    message = entry.take()
    assert message["attempts"] == 1
    entry.ack(message)


def test_locks_and_states_of_keys_live_on_the_owner(pair):
    owner, entry = pair
    lease = entry.post("/v1/acquire", {"namespace": entry.namespace, "key": "jobs/7", "owner": "me", "ttl_seconds": 60})
    assert lease.status == 200, lease
    held = owner.post("/v1/acquire", {"namespace": entry.namespace, "key": "jobs/7", "owner": "you", "ttl_seconds": 60,
                                      "block_seconds": -1})
    assert held.status == 409, held
    seen = entry.get("/v1/describe", namespace=entry.namespace, key="jobs/7")
    assert seen.status == 200 and seen.body["owner"] == "me", seen
    body = {"namespace": entry.namespace, "key": "jobs/7", "lease_id": lease.body["lease_id"], "txn_id": lease.body["txn_id"]}
    token = {"X-Fencing-Token": str(lease.body["fencing_token"])}
    released = entry.call("POST", "/v1/release", body, token)
    assert released.status == 200, released


def test_a_large_answer_comes_in_frames(pair):
    _, entry = pair
    payload = "x" * 900_000
    entry.enqueue(*({"text": payload} for _ in range(4)))
    messages = []
    while len(messages) < 4:
        messages += entry.dequeue(limit=10)
    assert texts(messages) == [payload] * 4
    for message in messages:
        entry.ack(message)


def test_a_page_of_another_node_ends_at_4_mib_and_the_list_goes_on(pair):
    """PEER-3: also of lists and peeks. A peek without a state has one page."""
    _, entry = pair
    sent = [entry.enqueue({"text": str(n) * 900_000})[0] for n in range(6)]
    assert [m["id"] for m in entry.peek(limit=100)] == sent[:4]
    found, sizes, more = [], [], {}
    while more is not None:
        page = entry.get("/peek", **entry.here(state="ready", limit=100, **more)).body
        found += page["messages"]
        sizes.append(len(page["messages"]))
        more = {"cursor": page["cursor"]} if "cursor" in page else None
    assert sorted(texts(found)) == [str(n) * 900_000 for n in range(6)]
    assert max(sizes) == 4, sizes


def test_many_clients_use_one_link(pair):
    owner, entry = pair

    def work(me):
        for n in range(20):
            entry.enqueue({"text": f"{me}-{n}"}, topic=f"many{me}")
        found = []
        while len(found) < 20:
            for message in entry.dequeue(topic=f"many{me}", limit=5):
                entry.ack(message, topic=f"many{me}")
                found += texts([message])
        results[me] = sorted(found) == sorted(f"{me}-{n}" for n in range(20))

    results = {}
    threads = [threading.Thread(target=work, args=(me,)) for me in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {me: True for me in range(8)}
    assert "link of another node" not in owner.said()


class Streams:
    """A subscription and a watch of a node, which wait at the owner of their shards."""

    def __init__(self, owner, entry):
        self.taker, self.watcher = (lockd.Client(entry.address, namespace="test", queue=q) for q in ("taken", "watched"))
        self.taker.enqueue(payload=b"first")
        self.stream, self.events = self.taker.subscribe(wait_seconds=0), Events(self.watcher)
        message = next(self.stream)
        self.taker.ack(message)
        assert message["payload"] == b"first" and self.events.next() == (False, None)
        until(lambda: waits(owner) + waits(entry) == 2)

    def go_on(self):
        """PEER-5: the entry node claims anew from the next owner."""
        self.taker.enqueue(payload=b"second")
        assert next(self.stream)["payload"] == b"second"
        sent = self.watcher.enqueue(payload=b"second")
        assert self.events.next() == (True, sent["message_id"])
        self.stream.close()
        self.events.connection.close()


def test_an_owner_that_is_killed_is_replaced_and_nothing_is_lost(tmp_path):
    """LQ-82: the entry node takes over what it forwarded before."""
    with two(tmp_path, lease="2s") as (owner, entry):
        streams = Streams(owner, entry)
        for queue in QUEUES:
            entry.enqueue({"text": queue}, topic=queue)
        owner.kill()
        until(lambda: shards(entry)[0] == SHARDS)
        for queue in QUEUES:
            assert texts(entry.dequeue(topic=queue)) == [queue]
        streams.go_on()


def test_the_outcome_of_a_claim_whose_owner_dies_is_unknown(tmp_path):
    """PEER-1: a claim may have been granted."""
    with two(tmp_path) as (owner, entry):
        answers = []
        waiter = threading.Thread(target=lambda: answers.append(entry.get("/dequeue", **entry.here(wait="60s"))))
        waiter.start()
        until(lambda: waits(owner) == 1)
        owner.kill()
        waiter.join(60)
        assert answers[0].status == 503 and answers[0].body["error"] == "outcome_unknown", answers


class Waiter(threading.Thread):
    """A client that claims one message, and claims again after each error. `got`: the texts; `ended`: the errors in between."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.got, self.ended = server, None, []
        self.start()

    def run(self):
        while self.got is None:
            answer = self.server.get("/dequeue", **self.server.here(limit=1, wait="10m"))
            if answer.status == 200:
                self.got = texts(answer.body)
            else:
                self.ended.append(answer.body["error"])
                threading.Event().wait(0.01)


def test_a_claim_that_waits_outlives_an_owner_that_hangs(tmp_path):
    """PEERNET-8: the link does not break, and nobody answers."""
    with two(tmp_path, lease="2s") as (owner, entry):
        waiter = Waiter(entry)
        until(lambda: waits(owner) == 1)
        freeze(owner.process)
        until(lambda: shards(entry)[0] == SHARDS)
        entry.enqueue({"text": "later"})
        waiter.join(60)
        owner.process.send_signal(signal.SIGCONT)
        assert waiter.got == ["later"] and waiter.ended[0] == "outcome_unknown", (waiter.got, waiter.ended)
        until(lambda: shards(owner) == (0, SHARDS))


def test_no_claim_waits_at_an_owner_that_has_lost_its_store(tmp_path):
    """LANE-20: the owner lives, and so does its link, but another node has the shard and the messages."""
    (tmp_path / "store").mkdir()
    way = tmp_path / "way"
    way.symlink_to("store")
    with node(tmp_path, "owner", lease="2s", store="way") as owner, node(tmp_path, "entry", lease="2s") as entry:
        until(lambda: shards(entry) == (0, SHARDS))
        waiters = [Waiter(entry), Waiter(owner)]
        until(lambda: waits(owner) == 2)
        way.unlink()
        until(lambda: shards(entry)[0] == SHARDS)
        entry.enqueue({"text": "later"})
        waiters[0].join(60)
        assert waiters[0].got == ["later"]
        until(lambda: waiters[1].ended)
        assert waiters[1].ended[0] == "moved"
        way.symlink_to("store")
        until(lambda: shards(owner) == (0, SHARDS))
        entry.enqueue({"text": "through the other"})
        waiters[1].join(60)
        assert waiters[1].got == ["through the other"]


def test_an_owner_that_stops_hands_over_and_clients_of_the_other_go_on(tmp_path):
    with two(tmp_path) as (owner, entry):
        streams = Streams(owner, entry)
        entry.enqueue({"text": "before"})
        owner.stop()
        until(lambda: shards(entry)[0] == SHARDS)
        assert texts(entry.dequeue()) == ["before"]
        streams.go_on()


def test_an_entry_node_that_stops_ends_its_waits(tmp_path):
    with two(tmp_path) as (owner, entry):
        answers = []
        waiter = threading.Thread(target=lambda: answers.append(entry.get("/dequeue", **entry.here(wait="60s"))))
        waiter.start()
        until(lambda: waits(owner) == 1)
        entry.process.send_signal(signal.SIGTERM)
        waiter.join(60)
        assert answers[0].status == 200 and answers[0].body == [], answers
        assert entry.wait() == 0
        until(lambda: waits(owner) == 0)


@pytest.mark.parametrize("options, why", [
    (["--listen", "peer://127.0.0.1:0"], "links between nodes need --store"),
])
def test_an_address_for_nodes_that_cannot_be_used_is_refused(tmp_path, options, why):
    with pytest.raises(Refused, match=why):
        Server(tmp_path / "data", *options, engine="log")
