"""POST /v1/admin/intake: a batch of messages from outside is accepted once."""
import uuid

import pytest

from served import Server, texts, until

SHARDS = 8


def messages(server, *found, **more):
    return [{"namespace": server.namespace, "queue": server.topic, "text": text, **more} for text in found]


def intake(server, source, batch, *found, shard=None, **more):
    body = {"source": source, "batch": batch, "messages": messages(server, *found, **more)}
    return server.post("/v1/admin/intake", {**body, **({"shard": shard} if shard else {})})


def place(server, queue):
    answer = server.post("/v1/admin/intake/places", {"queues": [{"namespace": server.namespace, "queue": queue}]})
    assert answer.status == 200, answer
    return answer.body["shards"][0]


def all_texts(server, **params):
    return sorted(texts(server.dequeue(limit=1000, **params)))


@pytest.mark.parametrize("engine", ["log", "memory"])
def test_a_batch_is_accepted_once(tmp_path, engine):
    source = str(uuid.uuid4())
    with Server(tmp_path / "data", engine=engine) as server:
        first = intake(server, source, 7, "a", "b")
        assert first.status == 200, first
        assert first.body["accepted"] and first.body["last"] == 7 and len(first.body["ids"]) == 2
        again = intake(server, source, 7, "a", "b", shard=first.body["shard"])
        assert again.body == {"accepted": False, "batch": 7, "last": 7, "messages": 2, "shard": first.body["shard"]}
        assert not intake(server, source, 6, "older").body["accepted"]
        assert intake(server, str(uuid.uuid4()), 1, "c").body["accepted"]
        assert all_texts(server) == ["a", "b", "c"]


def test_a_batch_is_not_accepted_again_after_a_kill(tmp_path):
    source = str(uuid.uuid4())
    with Server(tmp_path / "data", engine="log") as server:
        assert intake(server, source, 1, "a").body["accepted"]
        server.restart("kill")
        assert not intake(server, source, 1, "a").body["accepted"]
        assert intake(server, source, 2, "b").body["accepted"]
        server.restart()
        assert not intake(server, source, 2, "b").body["accepted"]
        assert all_texts(server) == ["a", "b"]


def test_a_batch_may_have_large_payloads_and_messages_of_several_queues(tmp_path):
    source, large = str(uuid.uuid4()), "x" * (3 << 20)
    with Server(tmp_path / "data", engine="log") as server:
        body = {"source": source, "batch": 1, "messages": [
            {"namespace": "test", "queue": "one", "text": large, "priority": 1, "attributes": {"a": 1}},
            {"namespace": "other", "queue": "two", "text": "small", "key": "k"}]}
        assert server.post("/v1/admin/intake", body).body["accepted"]
        assert not server.post("/v1/admin/intake", body).body["accepted"]
        assert all_texts(server, topic="one") == [large]
        assert all_texts(server, namespace="other", topic="two") == ["small"]


def test_a_batch_without_messages_uses_its_number_up(tmp_path):
    source = str(uuid.uuid4())
    with Server(tmp_path / "data", engine="log") as server:
        body = {"source": source, "batch": 3, "shard": place(server, "mail")}
        assert server.post("/v1/admin/intake", body).body["accepted"]
        server.restart("kill")
        again = intake(server, source, 3, "a").body
        assert (again["accepted"], again["last"], again["messages"]) == (False, 3, 0)
        assert all_texts(server) == []


@pytest.mark.parametrize("change, why", [
    ({"source": "me"}, "invalid source: me; expected a UUID"),
    ({"batch": 0}, "batch"),
    ({"shard": "none"}, "unknown shard: none"),
    ({"messages": []}, "shard"),
    ({"messages": [{"queue": "q"}]}, "namespace"),
])
def test_a_request_that_makes_no_sense_is_refused(server, change, why):
    body = {"source": str(uuid.uuid4()), "batch": 1, "messages": messages(server, "a")}
    answer = server.post("/v1/admin/intake", {**body, **change})
    assert answer.status in (400, 404) and why in answer.body["message"], answer


def test_a_batch_goes_to_the_shard_that_its_queue_lives_on(tmp_path):
    """A batch keeps its shard: after a move the old shard still answers that it has accepted the batch."""
    file, source = tmp_path / "shards.yaml", str(uuid.uuid4())
    file.write_text("sharding: {enabled: true}\nredis.shards: {fast: {engine: log}}\n")
    with Server(tmp_path / "data", "--config", str(file), engine="log") as server:
        assert place(server, "mail") == "default"
        assert intake(server, source, 1, "a", shard="default").body["accepted"]
        refused = intake(server, source, 2, "b", shard="fast")
        assert refused.status == 503 and refused.body["error"] == "moved", refused
        until(lambda: server.post("/v1/admin/shards/move", {
            "command": "mail", "from": "default", "to": "fast"}).body["done"])
        assert place(server, "mail") == "fast"
        refused = intake(server, source, 2, "b", shard="default")
        assert refused.status == 503 and refused.body["error"] == "moved", refused
        void = server.post("/v1/admin/intake", {"source": source, "batch": 1, "shard": "default"})
        assert void.body["accepted"] is False
        assert intake(server, source, 1, "b", shard="fast").body["accepted"]
        assert not intake(server, source, 1, "b", shard="fast").body["accepted"]
        server.restart("kill")
        assert place(server, "mail") == "fast"
        assert not intake(server, source, 1, "b", shard="fast").body["accepted"]
        assert all_texts(server) == ["a", "b"]


def node(tmp_path, name):
    return Server(tmp_path / name, "--store", f"file://{tmp_path}/store", "--shards", str(SHARDS), "--store-lease", "1s",
                  "--store-settle", "1s", "--listen", "peer://127.0.0.1:0", engine="log")


def test_the_next_owner_of_a_shard_does_not_accept_a_batch_again(tmp_path):
    """Each node answers for each shard, and after the death of a node the other knows its batches."""
    source = str(uuid.uuid4())
    queues = [f"q{i}" for i in range(3 * SHARDS)]
    with node(tmp_path, "one") as one, node(tmp_path, "two") as two:
        until(lambda: two.get("/readyz").body["shards"]["here"] > 0)
        shards = {}
        for queue in queues:
            shards.setdefault(place(one, queue), queue)

        def send(server, shard, queue):
            server.topic = queue
            answer = intake(server, source, 1, queue, shard=shard)
            return answer.body if answer.status == 200 else None

        def is_known(shard, queue):
            answer = send(two, shard, queue)
            return answer and not answer["accepted"]

        for shard, queue in shards.items():
            until(lambda shard=shard, queue=queue: send(one, shard, queue))
            until(lambda shard=shard, queue=queue: is_known(shard, queue))
        one.kill()
        for shard, queue in shards.items():
            until(lambda shard=shard, queue=queue: is_known(shard, queue))
            assert all_texts(two, topic=queue) == [queue]
