"""Lists, stats, searches and calls of an operator: any node answers for the shards of all nodes."""
import signal

import pytest

from clustered import shards, url
from served import freeze, until
from test_takeover import QUEUES, is_shared, node

LINKS = ("--listen", "peer://127.0.0.1:0")


def pages(server, path="/v1/admin/queues", member="queues", **params):
    """All elements of a list, and its answers."""
    found, answers, cursor = [], [], {}
    while cursor is not None:
        answer = server.get(path, **{**params, **cursor})
        assert answer.status == 200, answer
        found += answer.body[member]
        answers.append(answer.body)
        cursor = {"cursor": answer.body["cursor"]} if "cursor" in answer.body else None
    return found, answers


def names(rows):
    return sorted(row["topic"] for row in rows)


def fill(server):
    """A message in each queue. A shard may be on its way to another node."""
    for queue in QUEUES:
        until(lambda queue=queue: server.post("/enqueue", [server.here(topic=queue, text=queue)]).status == 200)


def owners(server):
    """{shard: owner} if each shard is where it stays; otherwise nothing."""
    found = server.get("/v1/admin/nodes").body["shards"]
    return {shard["shard"]: shard["owner"] for shard in found} if all(s["owner"] and s["owner"] == s["next"] for s in found) else {}


def is_settled(*servers):
    """The servers agree on the owners, and each owns at least one shard."""
    found = [owners(server) for server in servers]
    return set(found[0].values()) == {url(server) for server in servers} and all(f == found[0] for f in found) and \
        is_shared(*servers)


@pytest.fixture(scope="module")
def sharing(tmp_path_factory):
    """Two nodes, each with some of the shards and all of the links, and a message in each queue. The lease is longer
    than a node of these tests hangs."""
    folder, options = tmp_path_factory.mktemp("sharing"), [*LINKS, "--stats-timeout", "500ms"]
    with node(folder, "one", *options, lease="9s") as one, node(folder, "two", *options, lease="9s") as other:
        until(lambda: is_settled(one, other))
        fill(one)
        yield one, other


def whole(server, *what, **params):
    """A list without missing shards: on a machine that is busy, a shard may be late."""
    return until(lambda: next((f for f in [pages(server, *what, **params)] if not any("partial" in a for a in f[1])), None))


def test_any_node_lists_the_queues_of_all_nodes(sharing):
    """MQ-46. Metrics are of one server."""
    for server in sharing:
        for limit in 1000, 5:
            rows, answers = whole(server, limit=limit)
            assert names(rows) == sorted(QUEUES) and {row["ready"] for row in rows} == {1}
            assert limit == 1000 or len(answers) > 4
        rows, _ = whole(server, "/topics", "topics", namespace="test", limit=7)
        assert names(rows) == sorted(QUEUES)
        assert server.metric("sluice_queues") < len(QUEUES)
    until(lambda: sum(server.metric("sluice_queues") for server in sharing) == len(QUEUES))


def test_messages_are_found_searched_and_deleted_through_a_node_that_owns_nothing(pair):
    _, entry = pair
    sent = {queue: entry.enqueue({"text": queue, "attributes": {"of": queue}}, {"text": "more"}, topic=queue)
            for queue in QUEUES[:6]}
    for queue, (first, second) in sent.items():
        assert entry.get("/v1/admin/message", namespace=entry.namespace, id=first).body["topic"] == queue
        found, _ = pages(entry, "/v1/admin/messages", "messages", **entry.here(topic=queue), limit=1)
        assert {m["id"] for m in found} == {first, second}
        found, _ = pages(entry, "/v1/admin/messages", "messages", **entry.here(topic=queue), text=queue)
        assert [m["id"] for m in found] == [first]
        found, _ = pages(entry, "/peek", "messages", **entry.here(topic=queue), state="ready", limit=1)
        assert {m["id"] for m in found} == {first, second}
        assert entry.post("/v1/admin/message/delete", {"namespace": entry.namespace, "id": first}).status == 200
        assert entry.get("/v1/admin/message", namespace=entry.namespace, id=first).status == 404
        assert entry.get("/v1/admin/queue", **entry.here(topic=queue)).body["ready"] == 1


def test_an_operator_changes_queues_through_a_node_that_owns_nothing(pair):
    owner, entry = pair
    here = entry.here()
    entry.enqueue({"text": "a"}, {"text": "b"}, {"text": "c"})
    assert entry.post("/v1/admin/queue/pause", here).body["paused"] is True
    assert owner.dequeue() == [] and owner.stats()["paused"] is True
    assert entry.post("/v1/admin/queue/resume", here).status == 200
    for _ in range(2):
        assert entry.settle("/nack", entry.take(), dead=True, error="broken").status == 200
    assert len(pages(entry, "/v1/admin/dlq", "messages", **here, limit=1)[0]) == 2
    assert entry.post("/v1/admin/dlq/redrive", {**here, "error": "broken", "limit": 1}).body["redriven"] == 1
    assert entry.post("/v1/admin/dlq/delete", {**here, "error": "broken"}).body["deleted"] == 1
    assert entry.post("/v1/admin/queue/purge", here).body["purged"] == 2
    assert entry.call("DELETE", f"/v1/admin/queues/{entry.namespace}/{entry.topic}").status == 200
    assert owner.get("/stats", **here).status == 404


def test_a_search_through_a_node_that_owns_nothing_reads_the_documents_of_the_owner(pair):
    _, entry = pair
    for n in range(70):  # more than a page of the owner
        lease = entry.post("/v1/acquire", {"namespace": "test", "key": f"k{n:02}", "owner": "me", "ttl_seconds": 60}).body
        fence = {"X-Lease-ID": lease["lease_id"], "X-Txn-ID": lease["txn_id"], "X-Fencing-Token": str(lease["fencing_token"])}
        stored = entry.call("POST", "/v1/update", {"n": n}, fence, namespace="test", key=f"k{n:02}")
        assert stored.status == 200, stored
        released = entry.call("POST", "/v1/release", {"namespace": "test", "key": f"k{n:02}", "lease_id": lease["lease_id"],
                                                      "txn_id": lease["txn_id"]}, fence)
        assert released.status == 200, released
    found, cursor = [], ""
    while cursor is not None:
        answer = entry.post("/v1/query", {"namespace": "test", "limit": 30, "cursor": cursor,
                                          "selector": {"range": {"field": "/n", "gte": 5}}})
        assert answer.status == 200, answer
        found += answer.body["keys"]
        cursor = answer.body.get("cursor") or None
    assert found == [f"k{n:02}" for n in range(5, 70)]


def test_a_node_that_hangs_is_named_and_the_others_answer(sharing):
    """PEER-5."""
    one, other = sharing
    silent = {shard: owner for shard, owner in owners(one).items() if owner == url(other)}
    freeze(other.process)
    try:
        answer = one.get("/v1/admin/queues", limit=100)
        ready = one.get("/readyz").status
        unknown = one.get("/v1/admin/message", namespace="test", id=12345)
        why = one.get("/why", namespace="test", id=12345)
    finally:
        other.process.send_signal(signal.SIGCONT)
    assert answer.status == 200 and answer.body["partial"] is True, answer
    assert {shard["shard"]: shard["node"] for shard in answer.body["missing"] if "node" in shard} == silent
    assert "did not answer within 500 ms" in answer.body["message"]
    assert len(answer.body["queues"]) < len(QUEUES) and ready == 200
    assert unknown.status == 503 and "did not answer within 500 ms" in unknown.body["message"], unknown
    assert why.status == 200 and why.body["reason"] == "down", why
    assert why.body["text"].startswith("its shard does not answer: "), why
    until(lambda: "partial" not in one.get("/v1/admin/queues", limit=100).body)
    assert names(whole(one)[0]) == sorted(QUEUES)


def test_a_server_without_links_names_the_shards_of_the_others(tmp_path):
    with node(tmp_path, "one") as one, node(tmp_path, "two") as other:
        until(lambda: is_settled(one, other))
        answer = one.get("/v1/admin/queues")
        assert answer.body["partial"] is True
        assert {shard["shard"]: shard["node"] for shard in answer.body["missing"]} == {
            shard: owner for shard, owner in owners(one).items() if owner == url(other)}
        unknown = one.get("/v1/admin/message", namespace="test", id=12345)  # a shard of the other server may have it
        assert unknown.status == 503 and unknown.body["owner"] == url(other), unknown


def test_a_list_goes_on_when_its_shard_moves_between_two_pages(tmp_path):
    """The next owner has other handles: it begins the shard anew, and nothing is left out."""
    with node(tmp_path, "one", *LINKS, settle="1h", count=1) as one, node(tmp_path, "two", *LINKS, count=1) as other:
        until(lambda: shards(other) == (0, 1))
        fill(one)
        sent = one.enqueue(*({"text": str(n)} for n in range(10)))
        before = other.get("/v1/admin/queues", limit=10).body
        some = other.get("/v1/admin/messages", **one.here(), limit=4).body
        assert len(before["queues"]) == 10 and len(some["messages"]) == 4
        one.stop()
        until(lambda: shards(other) == (1, 0))
        rest, _ = pages(other, limit=10, cursor=before["cursor"])
        assert rest[0]["topic"] == before["queues"][0]["topic"]
        assert names(rest) == sorted([*QUEUES, one.topic])
        rest, _ = pages(other, "/v1/admin/messages", "messages", **one.here(), limit=4, cursor=some["cursor"])
        assert sorted(m["id"] for m in rest) == sorted(sent)
