"""Lock keys that are held: who holds them, who waits, and a release by force (docs/api.md)."""
import threading

import pytest

from served import until


@pytest.fixture(autouse=True)
def own_namespace(server, request):
    server.namespace = "held-" + request.node.name.replace("_", "-")[:60]


def acquire(server, key, owner="web-7", ttl=60, block=-1):
    return server.post("/v1/acquire", {"namespace": server.namespace, "key": key, "owner": owner, "ttl_seconds": ttl, "block_seconds": block})


def of_holder(server, path, held, **more):
    """A call of the holder."""
    fields = {"X-Lease-ID": held["lease_id"], "X-Txn-ID": held["txn_id"], "X-Fencing-Token": str(held["fencing_token"])}
    return server.call("POST", path, {**{n: held[n] for n in ("namespace", "key", "lease_id", "txn_id")}, **more}, fields)


def locks(server, **more):
    answer = server.get("/v1/admin/locks", namespace=server.namespace, **more)
    assert answer.status == 200, answer
    return answer.body


def release(server, key, token):
    return server.post("/v1/admin/lock/release", {"namespace": server.namespace, "key": key, "token": token})


def test_held_keys_are_listed_with_holder_token_and_end(server):
    held = acquire(server, "orders/42").body
    other = acquire(server, "orders/43", "web-8").body
    assert of_holder(server, "/v1/release", other).status == 200
    found, = locks(server)["locks"]
    assert found.pop("expires_at")
    assert found == {"namespace": server.namespace, "key": "orders/42", "holder": "web-7", "token": held["fencing_token"], "waiters": 0,
                     "version": 0}


def test_who_waits_is_counted(server):
    held = acquire(server, "k").body
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(acquire(server, "k", "waiter", block=30))) for _ in range(2)]
    for thread in threads:
        thread.start()
    until(lambda: locks(server)["locks"][0]["waiters"] == 2)
    assert release(server, "k", held["fencing_token"]).body["released"]
    until(lambda: answers)
    found = until(lambda: [lock for lock in locks(server)["locks"] if lock["waiters"] == 1])[0]
    assert found["holder"] == "waiter" and found["token"] == answers[0].body["fencing_token"]
    assert release(server, "k", found["token"]).status == 200
    for thread in threads:
        thread.join()


def test_a_release_names_the_token(server):
    held = acquire(server, "k").body
    refused = release(server, "k", held["fencing_token"] - 1)
    assert refused.status == 409 and str(held["fencing_token"]) in refused.text
    assert release(server, "K", held["fencing_token"]).body["holder"] == "web-7"
    assert release(server, "k", held["fencing_token"]).status == 404
    assert of_holder(server, "/v1/keepalive", held, ttl_seconds=60).status == 403


def test_what_the_holder_staged_is_dropped(server):
    held = acquire(server, "k").body
    fields = {"X-Lease-ID": held["lease_id"], "X-Txn-ID": held["txn_id"], "X-Fencing-Token": str(held["fencing_token"])}
    assert server.call("POST", "/v1/update", {"n": 1}, fields, namespace=server.namespace, key="k").status == 200
    assert release(server, "k", held["fencing_token"]).status == 200
    assert server.call("POST", "/v1/get", None, None, namespace=server.namespace, key="k", public=1).status == 204


def test_pages_and_prefixes(server):
    for n in range(25):
        acquire(server, f"a/{n:02}")
    acquire(server, "b/1")
    seen, page = [], {"cursor": ""}
    while "cursor" in page:
        page = locks(server, limit=10, **({"cursor": page["cursor"]} if page["cursor"] else {}))
        seen += [lock["key"] for lock in page["locks"]]
    assert seen == [*(f"a/{n:02}" for n in range(25)), "b/1"]
    assert [lock["key"] for lock in locks(server, prefix="b")["locks"]] == ["b/1"]
