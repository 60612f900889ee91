"""/v1/acquire, keepalive, release, describe: the owner of a lock, and for how long."""
import re
import socket
import threading
import time
import uuid

import pytest

from locked import Lock, acquire, as_curl, ask, commit, describe, public, refused
from served import Server, new_txn, until

XID = "[0-9a-v]{20}"


# --- acquire ---------------------------------------------------------------------

def test_an_acquire_answers_all_that_a_holder_needs(server):
    before = int(time.time())
    answer = ask(server, "Orders/EU", ttl=60, owner="worker-1")
    body = answer.body
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/json"
    assert answer.text.endswith("}\n")
    assert body["namespace"] == server.namespace and body["key"] == "orders/eu"
    assert body["owner"] == "worker-1" and body["version"] == 0 and "state_etag" not in body
    assert re.fullmatch(XID, body["lease_id"]) and re.fullmatch(XID, body["txn_id"])
    assert body["lease_id"] != body["txn_id"]
    assert before + 59 <= body["expires_at_unix"] <= time.time() + 60
    assert answer.headers["X-Fencing-Token"] == str(body["fencing_token"])
    assert answer.headers["X-Key-Version"] == "0"
    assert answer.headers["X-Correlation-Id"] == body["correlation_id"]
    assert uuid.UUID(body["correlation_id"]).version == 7


def test_a_correlation_id_comes_back(server):
    answer = server.call("POST", "/v1/acquire", {"key": "a", "owner": "me", "namespace": server.namespace},
                         {"X-Correlation-Id": "order 66"})
    assert answer.body["correlation_id"] == answer.headers["X-Correlation-Id"] == "order 66"


def test_tokens_rise_with_every_grant(server):
    tokens = []
    for _ in range(5):
        lock = acquire(server, "a")
        tokens.append(lock.token)
        lock.release()
    assert tokens == sorted(set(tokens))


@pytest.mark.parametrize("ttl, seconds", [(0, 30), (-5, 30), (10, 10), (10**9, 1800)])
def test_a_ttl_has_a_default_and_a_cap(server, ttl, seconds):
    before = time.time()
    lock = acquire(server, "a", ttl=ttl)
    assert before + seconds - 1 <= lock.body["expires_at_unix"] <= time.time() + seconds


def test_a_held_key_is_refused_with_what_is_known_of_it(server):
    commit(server, "a", {"n": 1})
    lock = acquire(server, "a", ttl=20)
    answer = ask(server, "a", owner="you")
    body = refused(answer, 409, "waiting")
    assert body["current_version"] == 1 and body["current_etag"] == lock.body["state_etag"]
    assert 1 <= body["retry_after_seconds"] <= 20
    assert answer.headers["Retry-After"] == str(body["retry_after_seconds"])


def test_an_acquire_that_blocks_ends_with_its_time(server):
    acquire(server, "a")
    began = time.monotonic()
    refused(ask(server, "a", block=1), 409, "waiting")
    assert time.monotonic() - began >= 1


def test_a_key_can_be_had_when_its_lease_is_over(server):
    first = acquire(server, "a", ttl=1)
    second = acquire(server, "a", block=0)
    assert second.token > first.token
    refused(first.get(), 403, "lease_required")


@pytest.mark.parametrize("body, code", [
    ({"owner": "me", "key": "a b"}, "invalid_key"),
    ({"owner": "me", "key": "a" * 129}, "invalid_key"),
    ({"owner": "me", "key": "a//b"}, "invalid_key"),
    ({"owner": "me", "key": "a", "namespace": ".mine"}, "invalid_namespace"),
    ({"owner": "me", "key": "a", "txn_id": "nonsense"}, "invalid_txn"),
    ({"owner": "me", "key": "a", "ttl_seconds": "x"}, "invalid_body"),
    ({"owner": "o" * 257, "key": "a"}, "invalid_body"),
    ({"key": "a"}, "missing_owner"),
    ({"owner": "me", "key": "q/mail/msg/1"}, "invalid_queue_key"),
    ({"owner": "me", "key": "q/mail/state/1"}, "invalid_queue_state_key"),
    ({"owner": "me", "key": f"q/mail/state/{uuid.UUID(int=7 << 76)}"}, "invalid_queue_state_key"),
])
def test_a_bad_acquire_names_what_is_wrong(server, body, code):
    refused(server.post("/v1/acquire", body), 400, code)


def test_a_body_that_is_no_json_is_refused(server):
    refused(server.post("/v1/acquire", "{"), 400, "invalid_body")


def test_what_a_body_leaves_out_may_stand_elsewhere(server):
    txn = new_txn()
    answer = server.call("POST", "/v1/acquire", {"owner": "me"}, {"X-Txn-ID": txn},
                         key="/There", namespace=server.namespace)
    assert answer.body["key"] == "there" and answer.body["txn_id"] == txn
    assert server.post("/v1/acquire", {"owner": "me", "key": "default-key"}).body["namespace"] == "default"


def test_without_a_key_one_is_made(server):
    one, two = acquire(server, ""), acquire(server, "")
    assert uuid.UUID(one.key).version == 7 and one.key != two.key


def test_if_not_exists_knows_every_key_that_was_ever_held(server):
    lock = acquire(server, "a", if_not_exists=True)
    refused(ask(server, "a", if_not_exists=True), 409, "already_exists")
    lock.release()
    refused(ask(server, "a", if_not_exists=True), 409, "already_exists")


# --- waiting ---------------------------------------------------------------------

def wait_for(server, key, order, n):
    lock = acquire(server, key, block=0, owner=f"w{n}")
    order.append(n)
    assert lock.release().status == 200


def waiting(server):
    return int(server.metric('sluice_waiting{shard="0"}'))


def test_a_hundred_waiters_are_served_first_come_first_served(server):
    before = waiting(server)
    lock = acquire(server, "a")
    order, threads = [], []
    for n in range(100):
        threads.append(threading.Thread(target=wait_for, args=(server, "a", order, n)))
        threads[-1].start()
        until(lambda: waiting(server) == before + n + 1)
    lock.release()
    for thread in threads:
        thread.join()
    assert order == list(range(100))


def test_a_client_that_hangs_up_leaves_the_line(server):
    before = waiting(server)
    lock = acquire(server, "a")
    body = '{"namespace":"%s","key":"a","owner":"gone"}' % server.namespace
    gone = server.raw()
    gone.sendall(f"POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    until(lambda: waiting(server) == before + 1)
    order = []
    thread = threading.Thread(target=wait_for, args=(server, "a", order, 1))
    thread.start()
    until(lambda: waiting(server) == before + 2)
    gone.close()
    until(lambda: waiting(server) == before + 1)
    lock.release()
    thread.join()
    assert order == [1]
    assert "owner" not in describe(server, "a")


def test_a_lease_that_its_holder_never_heard_of_goes_back(server):
    """The cork sends the end of the client's side with the last byte of its request: no answer is earlier."""
    for n in range(50):
        body = '{"namespace":"%s","key":"k%d","owner":"gone","ttl_seconds":1800}' % (server.namespace, n)
        with server.raw() as gone:
            gone.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
            gone.sendall(f"POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
                         f"{len(body)}\r\n\r\n{body}".encode())
            gone.shutdown(socket.SHUT_WR)
            assert gone.recv(100) == b""
    for n in range(50):
        until(lambda: "owner" not in describe(server, f"k{n}"))
        acquire(server, f"k{n}", if_not_exists=True)  # as if it had not been


# --- keepalive, release ----------------------------------------------------------

def test_a_keepalive_moves_the_end(server):
    lock = acquire(server, "a", ttl=10)
    answer = lock.keepalive(ttl=100)
    assert answer.status == 200 and set(answer.body) == {"expires_at_unix"}
    assert answer.body["expires_at_unix"] >= time.time() + 98
    assert answer.headers["X-Fencing-Token"] == str(lock.token)
    assert describe(server, "a")["expires_at_unix"] == answer.body["expires_at_unix"]


def test_a_keepalive_may_say_more_than_it_needs(server):
    """liblockdc sends its token in the body, too."""
    lock = acquire(server, "a")
    assert lock.keepalive(fencing_token=lock.token, unknown=[1]).status == 200
    assert lock.keepalive(txn_id=None).status == 200


def test_only_the_holder_keeps_a_lease_alive(server):
    lock = acquire(server, "a")
    other = acquire(server, "b")
    refused(lock.keepalive(lease_id=other.lease), 403, "lease_required")
    refused(lock.keepalive(lease_id="nonsense"), 403, "lease_required")
    refused(lock.keepalive(token=lock.token + 1), 403, "fencing_mismatch")
    refused(lock.keepalive(txn_id=other.txn), 409, "txn_mismatch")
    refused(lock.keepalive(lease_id=None), 400, "missing_lease")
    refused(lock.keepalive(key=None), 400, "missing_key")
    refused(server.post("/v1/keepalive", lock.about()), 400, "missing_fencing_token")
    refused(lock.keepalive(token="x"), 400, "invalid_fencing_token")


def test_an_expired_lease_has_its_own_error(server):
    lock = acquire(server, "a", ttl=1)
    until(lambda: "owner" not in describe(server, "a"))
    refused(lock.keepalive(), 403, "lease_expired")
    refused(lock.update({}), 403, "lease_expired")
    refused(lock.get(), 403, "lease_expired")


def test_a_release_is_the_same_however_often_it_is_asked(server):
    lock = acquire(server, "a")
    other = acquire(server, "b")
    for release in (lambda: lock.release(token=lock.token + 1),
                    lambda: lock.release(lease_id=other.lease), lock.release, lock.release):
        answer = release()
        assert answer.status == 200 and answer.body == {"released": True}
    assert "owner" not in describe(server, "a")


def test_a_release_needs_its_transaction(server):
    lock = acquire(server, "a")
    refused(lock.release(txn_id=None), 400, "missing_txn")
    refused(lock.release(txn_id=acquire(server, "b").txn), 409, "txn_mismatch")
    refused(server.post("/v1/release", lock.about()), 400, "missing_fencing_token")
    assert describe(server, "a", lock.lease)["lease_id"] == lock.lease


@pytest.fixture
def txn():
    return new_txn()


@pytest.mark.parametrize("brought", [False, True])
def test_a_second_key_does_not_join_a_transaction(server, txn, brought):
    one = acquire(server, "a", **({"txn_id": txn} if brought else {}))
    asked = {"namespace": server.namespace, "key": "b", "owner": "me", "txn_id": one.txn}
    refused(server.post("/v1/acquire", asked), 409, "txn_conflict")
    assert describe(server, "b") == {
        "namespace": server.namespace, "key": "b", "version": 0, "metadata": {}}
    assert acquire(server, "b", if_not_exists=True).release().status == 200
    assert one.keepalive(ttl=60).status == one.release().status == 200


def test_a_key_of_another_namespace_does_not_join_a_transaction(server, txn):
    one = acquire(server, "a", txn_id=txn)
    asked = {"namespace": server.namespace + "-2", "key": "a", "owner": "me", "txn_id": txn}
    refused(server.post("/v1/acquire", asked), 409, "txn_conflict")
    assert one.release().status == 200
    assert server.post("/v1/acquire", asked).status == 200


def test_a_transaction_that_was_brought_is_free_when_its_lease_has_ended(server, txn):
    for end in ({}, {"rollback": True}):
        lock = acquire(server, "a", txn_id=txn)
        assert lock.txn == txn and lock.update({"n": 1}).status == 200
        assert lock.release(**end).status == 200
    acquire(server, "a", txn_id=txn, ttl=1)
    until(lambda: ask(server, "b", txn_id=txn).status == 200)


def test_a_transaction_that_has_ended_leaves_nothing(folder, txn):
    with Server(folder) as server:
        for n in range(10):
            lock = acquire(server, "a", txn_id=f"{n}{txn[1:]}")
            assert lock.release().status == 200
        until(lambda: server.metric('sluice_lock_keys{shard="0"}') == 1)


def test_a_keepalive_keeps_the_transaction(server, txn):
    lock = acquire(server, "a", txn_id=txn, ttl=2)
    assert lock.keepalive(ttl=600).status == 200
    short = acquire(server, "short", ttl=3)
    until(lambda: "owner" not in describe(server, "short"))
    assert ask(server, "b", txn_id=txn).status == 409
    assert short.release().status == lock.release().status == 200
    assert ask(server, "b", txn_id=txn).status == 200


# --- describe --------------------------------------------------------------------

def test_a_key_is_described(server):
    assert describe(server, "none") == {
        "namespace": server.namespace, "key": "none", "version": 0, "metadata": {}}
    commit(server, "a", {"n": 1})
    lock = acquire(server, "a", owner="me")
    lock.hide()
    seen = describe(server, "a", lock.lease)
    assert seen["owner"] == "me" and seen["lease_id"] == lock.lease and seen["version"] == 1
    assert seen["expires_at_unix"] == lock.body["expires_at_unix"]
    assert seen["state_etag"] == lock.body["state_etag"] and seen["metadata"] == {}
    assert abs(seen["updated_at_unix"] - time.time()) < 60
    lock.release()
    assert describe(server, "a")["metadata"] == {"query_hidden": True}
    refused(server.get("/v1/describe"), 400, "missing_key")


def test_a_lease_id_is_shown_to_its_holder_only(server):
    """Who has it could release what is not his."""
    lock, other = acquire(server, "a", owner="me"), acquire(server, "b")
    for lease in None, other.lease, lock.lease[:-1], lock.lease + "0", "x":
        seen = describe(server, "a", lease)
        assert seen["owner"] == "me" and "lease_id" not in seen
        assert lock.lease not in str(seen)
    assert describe(server, "a", lock.lease)["lease_id"] == lock.lease


# --- how others call -------------------------------------------------------------

def no_method(answer):
    return (answer.status, answer.body["error"]) == (405, "method_not_allowed") and answer.headers["Allow"]


def test_any_method_will_do_but_where_one_is_named(server):
    for method in ("GET", "PUT", "POST"):
        answer = server.call(method, "/v1/acquire", {"owner": "me", "namespace": server.namespace})
        assert answer.status == 200, answer
    assert no_method(server.get("/v1/index/flush"))
    assert no_method(server.call("DELETE", "/v1/namespace"))
    assert no_method(server.call("PUT", "/v1/attachment"))


def test_a_client_that_waits_for_100_continue_gets_it(server):
    """liblockdc: a connection a call, chunks, Expect on every body."""
    answer, continued = as_curl(server, "POST", "/v1/acquire", {
        "namespace": server.namespace, "key": "a", "ttl_seconds": 30, "owner": "c"})
    assert answer.status == 200 and continued
    lock = Lock(server, answer.body)
    there = f"?key=a&namespace={server.namespace}"
    holder = [*lock.fields().items()]
    answer, continued = as_curl(server, "POST", "/v1/update" + there, {"n": 1}, holder)
    assert answer.status == 200 and continued
    answer, _ = as_curl(server, "GET", "/v1/get" + there, None, holder)
    assert answer.body == {"n": 1}
    answer, continued = as_curl(server, "POST", "/v1/keepalive", {
        **lock.about(ttl_seconds=30, fencing_token=lock.token)}, holder)
    assert answer.status == 200 and continued
    answer, continued = as_curl(server, "PUT", "/v1/namespace", {
        "namespace": server.namespace, "query": {"preferred_engine": "scan"}})
    assert answer.status == 200 and continued
    answer, _ = as_curl(server, "POST", "/v1/release", lock.about(), holder)
    assert answer.body == {"released": True}


@pytest.mark.parametrize("path, code", [
    ("/v1/txn/decide", "tc_client_required"), ("/v1/txn/commit", "tc_client_required"),
    ("/v1/txn/rollback", "tc_client_required"), ("/v1/txn/replay", "tc_client_required"),
    ("/v1/tc/lease/acquire", "tc_server_required"), ("/v1/tc/leader", "tc_server_required"),
    ("/v1/tc/cluster/list", "tc_server_required"), ("/v1/tc/rm/register", "tc_server_required"),
])
def test_transactions_over_several_keys_are_not_offered(server, path, code):
    refused(server.post(path, {"txn_id": "x"}), 403, code)
    refused(server.get(path), 403, code)


# --- restarts --------------------------------------------------------------------

@pytest.mark.parametrize("how", ["stop", "kill"])
def test_leases_tokens_and_state_outlive_the_server(folder, how):
    with Server(folder) as server:
        commit(server, "a", {"n": 1})
        lock = acquire(server, "a", ttl=600)
        lock.update({"n": 2})
        free = acquire(server, "b")
        free.release()
        server.restart(how)
        assert public(server, "a").body == {"n": 1}
        assert lock.get().body == {"n": 2}
        assert describe(server, "a", lock.lease)["lease_id"] == lock.lease
        refused(ask(server, "a"), 409, "waiting")
        assert acquire(server, "b").token > max(lock.token, free.token)
        refused(ask(server, "b", if_not_exists=True), 409, "already_exists")
        assert lock.release().status == 200
        assert public(server, "a").body == {"n": 2}


def test_what_was_staged_is_gone_when_the_lease_ends_meanwhile(folder):
    with Server(folder) as server:
        commit(server, "a", {"n": 1})
        lock = acquire(server, "a", ttl=1)
        assert lock.update({"n": 2}).status == 200
        server.kill()
        server.start()
        second = acquire(server, "a", block=0)
        assert second.get().body == {"n": 1} and second.token > lock.token
        refused(lock.update({"n": 3}), 403, "lease_required")
