"""The search over all queues (docs/api.md)."""
import threading

from served import ENGINE, LOG, Server

PAGE = 8 if ENGINE == "forwarded" else 17  # messages of 500 KB; an answer of another node has 4 MiB: docs/cluster.md


def search(server, **params):
    """Every page, with what the first one says."""
    found, looked, pages, of, cursor = [], 0, 0, None, None
    while pages == 0 or cursor:
        answer = server.get("/v1/admin/search", **params, **({"cursor": cursor} if cursor else {}))
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


def test_a_search_for_nothing_is_refused(server):
    assert server.get("/v1/admin/search", namespace=server.namespace).status == 400
    assert server.get("/v1/admin/search", namespace=server.namespace, attribute="name").status == 400
