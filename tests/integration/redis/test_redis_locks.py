"""Locks and state in a Redis server: several nodes, and answers that are lost."""
import socket
import threading

from lockd import Client
from locked import Lock, acquire, ask, commit, describe, public, refused
from redis import Proxy
from served import until
from test_redis import node, redis  # noqa: F401, fixtures


def at(server, lock):
    """The same lease, used at another node."""
    return Lock(server, lock.body)


def waiting(server):
    return int(server.metric('sluice_waiting{shard="0"}'))


def wait_at(server, key):
    """Somebody waits there for the key: a function that gives the lock once it was had."""
    got = []
    thread = threading.Thread(target=lambda: got.append(acquire(server, key, block=0)))
    thread.start()
    until(lambda: waiting(server) == 1)

    def had():
        thread.join(60)
        return got[0]

    return had


def test_a_key_has_one_holder_over_all_nodes(node):
    """LQ-82"""
    one, two = node(), node()
    lock = acquire(one, "a", owner="here")
    refused(ask(two, "a"), 409, "waiting")
    assert describe(two, "a")["owner"] == "here"
    assert at(two, lock).update({"n": 1}).status == 200
    assert lock.get().body == {"n": 1} and public(two, "a").status == 204
    assert at(two, lock).keepalive(ttl=60).status == 200
    assert at(two, lock).release().status == 200
    assert public(one, "a").body == {"n": 1}
    second = acquire(two, "a")
    assert second.token > lock.token
    refused(lock.update({"n": 2}), 403, "lease_required")


def test_a_release_at_one_node_wakes_an_acquire_at_another(node):
    one, two = node(), node()
    lock = acquire(one, "a")
    had = wait_at(two, "a")
    assert lock.release().status == 200
    assert had().token > lock.token


def test_a_free_key_is_known_to_other_nodes(node, redis):
    """Beside the look that each node has by itself every few seconds."""
    one = node(prefix="told")
    with socket.create_connection(("127.0.0.1", redis.port), timeout=60) as heard:
        heard.sendall(b"SUBSCRIBE told:ready\r\n")
        lines = heard.makefile("rb")
        released = acquire(one, "here/a")
        until(lambda: b"subscribe" in lines.readline())
        released.release()
        until(lambda: lines.readline().endswith(b":test/.locks here/a\r\n"))
        acquire(one, "here/b", ttl=1)
        until(lambda: lines.readline().endswith(b":test/.locks here/b\r\n"))


def test_the_lease_of_a_node_that_was_killed_ends(node):
    """LOCK-2: by the time of the Redis server, for every node."""
    one, two = node(), node()
    commit(one, "a", {"n": 1})
    lock = acquire(one, "a", ttl=2)
    assert lock.update({"n": 2}).status == 200
    had = wait_at(two, "a")
    one.kill()
    second = had()
    assert second.token > lock.token and second.get().body == {"n": 1}
    refused(at(two, lock).keepalive(), 403, "lease_required")


def test_an_answer_that_is_lost_changes_nothing_twice(node, redis):
    proxy = Proxy(redis.port)
    server = node(address=proxy.address)
    commit(server, "a", {"n": 1})

    def losing(step):
        proxy.lose = 1
        answer = step()
        until(lambda: proxy.lose == 0)
        return answer

    lock = Lock(server, losing(lambda: ask(server, "a")).body)
    assert describe(server, "a", lock.lease)["lease_id"] == lock.lease
    answer = losing(lambda: lock.update({"n": 2}, X_If_Version=1))
    assert answer.status == 200 and answer.body["new_version"] == 2
    assert losing(lambda: lock.attach("file", b"bytes")).status == 200
    assert losing(lambda: lock.keepalive(ttl=60)).status == 200
    assert losing(lock.release).body == {"released": True}
    assert public(server, "a").body == {"n": 2}
    seen = describe(server, "a")
    assert seen["version"] == 2 and "owner" not in seen
    proxy.close()


def test_the_state_of_a_message_goes_with_it_from_node_to_node(node, redis):
    """LQ-20, LQ-27"""
    one, two = node(prefix="states"), node(prefix="states")
    here, there = (Client(s.address, namespace=s.namespace, queue="orders") for s in (one, two))

    def state_of(server, message):
        return Lock(server, {
            "namespace": "test", "key": f"q/orders/state/{message['message_id']}",
            "lease_id": message["state_lease_id"], "txn_id": message["state_txn_id"],
            "fencing_token": message["state_fencing_token"]})

    here.enqueue({}, b"x")
    first = next(iter(here.claim("dequeueWithState")))
    assert state_of(two, first).update({"step": 1}).status == 200
    there.nack(first, delay_seconds=0)
    second = next(iter(there.claim("dequeueWithState")))
    state = state_of(one, second)
    assert state.get().body == {"step": 1}
    refused(state_of(one, first).update({"step": 9}), 403, "lease_required")
    here.ack(second)
    assert public(two, state.key).status == 204
    assert redis.command("HLEN", "states:q:orders:test:msg") == ":0\r\n"


def test_lock_keys_are_no_queue_and_have_the_documented_form(node, redis):
    server = node(prefix="kept")
    commit(server, "a/b", {"n": 1})
    lock = acquire(server, "a/b")
    for n in range(3):
        lock.update({"n": n})
        lock.attach("file", b"bytes")
    lock.release(rollback=True)
    assert redis.command("HLEN", "kept:q:.locks:test:msg") == ":3\r\n"  # itself, one document
    assert ":1\r\n" in redis.command("HEXISTS", "kept:q:.locks:test:msg", "l:a/b")
    assert server.get("/topics", namespace="test").body["topics"] == []
    assert server.metric('sluice_lock_keys{shard="0"}') == 1


def test_each_namespace_has_its_keys_on_one_connection(node):
    server = node("--shards", "4")
    for i in range(8):
        server.namespace = f"space{i}"
        lock = acquire(server, "a")
        refused(ask(server, "a"), 409, "waiting")
        assert lock.release().status == 200
