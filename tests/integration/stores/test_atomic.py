"""An enqueue into several queues: all or nothing."""
import pytest

from clustered import Cluster, node, two
from served import Refused, Server, texts, until

QUEUES = [f"q{n}" for n in range(12)]


def push(server, queues, space="test", **params):
    return server.post("/enqueue", [{"namespace": space, "topic": queue, "text": queue} for queue in queues], **params)


@pytest.mark.parametrize("through", ["owner", "entry"])
def test_an_atomic_enqueue_over_shards_is_one_step(tmp_path, through):
    """SQ-F4: all messages are accepted, or none. A payload that is too large to go to another shard refuses all."""
    with two(tmp_path) as pair:
        server = pair[through == "entry"]
        large = [{"namespace": "test", "topic": queue, "text": "x" * (2 << 20) if queue == "q7" else queue} for queue in QUEUES]
        refused = server.post("/enqueue", large, atomic="true")
        assert refused.status == 400 and refused.body["error"] == "spans_shards", refused
        assert refused.body["index"] == 7 and "nothing was enqueued" in refused.body["message"]
        assert [server.get("/stats", namespace="test", topic=queue).status for queue in QUEUES] == [404] * len(QUEUES)
        assert push(server, QUEUES, atomic="true").status == push(server, QUEUES).status == 200
        for queue in QUEUES:
            until(lambda q=queue: texts(server.peek(namespace="test", topic=q, limit=9)) == [q] * 2)


def test_one_shard_has_all_queues(tmp_path):
    with Server(tmp_path / "data", engine="log") as server:
        assert push(server, QUEUES, atomic="true").status == 200
        assert push(server, QUEUES, atomic="maybe").status == 400


def test_all_queues_of_a_namespace_are_on_one_shard_for_all_servers(tmp_path):
    """The store has the setting: a server that is started without it agrees, whichever of them owns the shard."""
    with Cluster(tmp_path, 0) as cluster:
        cluster.options += "--place", "namespace"
        one = cluster.join()
        del cluster.options[-2:]
        two = cluster.join()
        until(lambda: cluster.owned(one) and cluster.owned(two) and cluster.is_settled())
        for space in "red", "green", "blue", "white", "black", "grey":
            answers = [push(server, QUEUES, space, atomic="true") for server in (one, two)]
            assert [answer.status for answer in answers] == [200, 200], answers
            assert len({number >> 12 & 1023 for answer in answers for number in answer.body}) == 1  # the shard that gave the id
            for queue in QUEUES:
                assert texts(two.dequeue(namespace=space, topic=queue, limit=9)) == [queue] * 2
        both = [*({"namespace": f"n{i}", "topic": "q", "text": "x"} for i in range(12))]
        assert two.post("/enqueue", both, atomic="true").status == 200


def test_the_place_of_a_store_does_not_change(tmp_path):
    with node(tmp_path, "one") as one:
        assert push(one, QUEUES).status == 200
    with pytest.raises(Refused, match="invalid place: namespace; the store was created with queue"):
        node(tmp_path, "one", "--place", "namespace")
    with pytest.raises(Refused, match="--place namespace: expected --store"):
        Server(tmp_path / "data", "--place", "namespace", engine="log")
