"""The search over all queues (docs/api.md)."""
import threading
from urllib.parse import urlencode

from served import ENGINE, LOG, Server

PAGE = 8 if ENGINE == "forwarded" else 17  # messages of 500 KB; an answer of another node has 4 MiB: docs/cluster.md


def ask(server, path, **params):
    """GET with any parameters, also `body`."""
    return server.call("GET", f"/v1/admin/{path}?{urlencode(params)}")


def search(server, **params):
    """Every page, with what the first one says."""
    found, looked, pages, of, cursor = [], 0, 0, None, None
    while pages == 0 or cursor:
        answer = ask(server, "search", **params, **({"cursor": cursor} if cursor else {}))
        assert answer.status == 200, answer
        found += answer.body["messages"]
        looked += answer.body["looked"]
        of = answer.body.get("of", of)
        cursor = answer.body.get("cursor")
        pages += 1
    return found, looked, of


def fill(server):
    for queue in ("mail", "jobs", "bills"):
        server.enqueue(*({"text": f"{queue} {n}", "key": f"k{n}", "correlation_id": f"c-{queue}-{n}",
                          "attributes": {"customer": f"ann{n}", "tries": n, "flag": True}} for n in range(30)), topic=queue)


def test_a_search_finds_over_queues_by_each_condition(tmp_path):
    with Server(tmp_path / "data", "--sync", "none", engine=LOG) as server:
        fill(server)
        server.enqueue({"text": "else", "key": "k3"}, namespace="other", topic="mail")
        for condition, queues in (
                ({"key": "k3"}, ["bills", "jobs", "mail"]), ({"correlation_id": "c-jobs-7"}, ["jobs"]), ({"text": "bills 2"}, ["bills"] * 11),
                ({"attribute": "customer=ann5"}, ["bills", "jobs", "mail"]), ({"attribute": "tries=5"}, ["bills", "jobs", "mail"]),
                ({"attribute": "customer=ann"}, []), ({"attribute": "none=1"}, []), ({"key": "k3", "attribute": "flag=true"}, ["bills", "jobs", "mail"])):
            found, looked, of = search(server, namespace=server.namespace, **condition)
            assert sorted(m["queue"] for m in found) == queues, condition
            assert looked == of == 90
        assert server.call("PUT", "/v1/admin/schedule", {"namespace": "other", "name": "s", "when": "@every 1h", "message": {"queue": "q", "text": "x"}}).status == 200
        found, looked, of = search(server, key="k3")
        assert len(found) == 4 and looked == of == 91
        id = found[0]["id"]
        assert [m["id"] for m in search(server, namespace=found[0]["namespace"], id=id)[0]] == [id]
        assert search(server, namespace=server.namespace, key="k3", state="dead") == ([], 0, 0)


def test_a_page_ends_after_1000_messages_or_its_limit(tmp_path):
    with Server(tmp_path / "data", "--sync", "none", engine=LOG) as server:
        server.enqueue(*({"text": f"n {n}"} for n in range(2500)))
        answer = server.get("/v1/admin/search", namespace=server.namespace, text="n 2499").body
        assert answer["looked"] == 1000 and answer["of"] == 2500 and answer["cursor"]
        found, looked, of = search(server, namespace=server.namespace, text="n 2499")
        assert len(found) == 1 and looked == 2500
        assert len(search(server, namespace=server.namespace, text="n ", limit=7)[0]) == 2500


def test_8_mib_end_a_page(tmp_path):
    with Server(tmp_path / "data", "--sync", "none", engine=LOG) as server:
        for _ in range(5):
            server.enqueue(*({"text": "x" * 500_000} for _ in range(5)))
        assert server.get("/v1/admin/search", namespace=server.namespace, text="yy").body["looked"] == PAGE


def test_two_searches_run_at_once(tmp_path):
    with Server(tmp_path / "data", "--sync", "none", engine=LOG) as server:
        for _ in range(3):
            server.enqueue(*({"text": "x" * 900_000} for _ in range(5)))
        seen = set()

        def run():
            for _ in range(30):
                seen.add(server.get("/v1/admin/search", namespace=server.namespace, text="yy").status)

        threads = [threading.Thread(target=run) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == {200, 429}
        assert server.get("/v1/admin/search", namespace=server.namespace, text="yy").status == 200


def kinds_and_bodies(server):
    big = 12345678901234567890
    server.enqueue({"json": {"user": {"id": 42, "name": "ann"}, "items": [{"sku": "A7"}, {"sku": "B8"}]}, "kind": "resize", "priority": 0},
                   {"json": {"user": {"id": "42"}, "big": big, "flag": True}, "kind": "crop", "priority": 5},
                   {"json": {"user": {"id": 4.2e1}, "big": big + 1, "e.mail": "a=b"}, "share": "acme", "priority": -3},
                   {"text": "user.id=42"}, {"text": "[1] x"}, {"json": {"user": [{"id": 7}, {"id": 43}]}, "priority": 10})
    return big


CONDITIONS = {  # by what the body has, in the order of kinds_and_bodies
    "body": {"user.id=42": [0, 1, 2], "user.id=42.0": [0, 2], "user.id=43": [5], "items.1.sku=B8": [0], "items.sku=B8": [0], "items.0.sku=B8": [], "flag=true": [1],
             "big=12345678901234567890": [1], "big=12345678901234567891": [2], "/e.mail=a=b": [2], "user=42": [], "0=1": []},
    "kind": {"resize": [0], "Resize": []},
    "share": {"acme": [2], "resize": []},
    "priority_min": {"5": [1, 3, 4, 5], "low": [5], "-3": range(6)},
    "priority_max": {"0": [0, 2], "high": [0, 2], "-4": []},
    "attempts_over": {"0": [0], "1": []},
    "attempts_under": {"1": range(1, 6), "0": []},
}


def test_each_new_condition_finds_over_queues_and_in_one(tmp_path):
    with Server(tmp_path / "data", "--sync", "none", engine=LOG) as server:
        kinds_and_bodies(server)
        ids = sorted(m["id"] for m in search(server, namespace=server.namespace, newer_than="1h")[0])
        server.nack(server.dequeue(kinds="resize")[0])
        for name, cases in CONDITIONS.items():
            for value, found in cases.items():
                want = [ids[n] for n in found]
                assert sorted(m["id"] for m in search(server, namespace=server.namespace, **{name: value})[0]) == want, (name, value)
                listed = ask(server, "messages", **server.here(**{name: value})).body["messages"]
                assert sorted(m["id"] for m in listed) == want, (name, value)
        server.dequeue(kinds="crop", owner="web-7", lease="1m")
        assert [m["id"] for m in search(server, namespace=server.namespace, owner="web-7")[0]] == [ids[1]]
        assert search(server, namespace=server.namespace, owner="web")[0] == []
        both = search(server, namespace=server.namespace, body="user.id=42", kind="crop")[0]
        assert [m["id"] for m in both] == [ids[1]]


def test_malformed_conditions_are_refused_everywhere(server):
    server.enqueue({"text": "x"})
    for name, value in ("body", "user.id"), ("body", "=1"), ("body", f"{'a' * 257}=1"), ("body", "/a~2=1"), ("priority_min", "urgent"), ("priority_max", "3.5"), \
            ("attempts_over", "-1"), ("attempts_under", "many"):
        for path in "search", "messages", "dlq", "dlq/groups":
            answer = ask(server, path, **{name: value}, **(server.here() if path != "search" else {"namespace": server.namespace}))
            assert answer.status == 400 and name in answer.body["message"], (path, name, answer)
        for path, more in ("dlq/redrive", {}), ("task", {"action": "delete"}):
            answer = server.post(f"/v1/admin/{path}", server.here(**{name: value}, **more))
            assert answer.status == 400 and name in answer.body["message"], (path, name, answer)


def test_a_large_body_does_not_match_by_value_but_by_text(tmp_path):
    with Server(tmp_path / "data", "--sync", "none", engine=LOG) as server:
        server.enqueue({"json": {"id": 7, "pad": "x" * (3 << 20)}})
        assert search(server, namespace=server.namespace, body="id=7")[0] == []
        assert len(search(server, namespace=server.namespace, text='"id": 7')[0]) == 1


def test_a_search_for_nothing_is_refused(server):
    assert server.get("/v1/admin/search", namespace=server.namespace).status == 400
    assert server.get("/v1/admin/search", namespace=server.namespace, attribute="name").status == 400
