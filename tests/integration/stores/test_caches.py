"""The folders of shards that a server does not own: the next owner fetches ahead, other servers empty theirs."""
import re

from served import Server, texts, until

SHARDS = 8
MIB = 1 << 20


def node(tmp_path, name, count=SHARDS, settle="1s"):
    return Server(tmp_path / name, "--store", f"file://{tmp_path}/store", "--shards", str(count), "--store-lease", "1s",
                  "--store-settle", settle, engine="log")


def here(server):
    return server.get("/readyz").body["shards"]["here"]


def folders(tmp_path, name):
    """The shards whose log is in the folder of the server."""
    return {path.parent.name for path in (tmp_path / name).glob("*/*.log")}


def test_the_next_owner_fetches_spans_ahead_and_a_takeover_reads_the_rest(tmp_path):
    with node(tmp_path, "one", count=1, settle="1h") as one, node(tmp_path, "two", count=1, settle="1h") as two:
        text = "x" * (MIB - 1000)  # in a record: a span has some 16 of them
        for n in range(40):
            assert one.post("/enqueue", [one.here(topic="q", text=f"{n:04}{text}")]).status == 200
        until(lambda: sum(map(int, re.findall(r'"shard fetched ahead" shard=0 bytes=(\d+)', two.said()))) > 30 * MIB)
        one.kill()
        until(lambda: here(two) == 1)
        groups = int(re.search(r'"shard taken" shard=0 epoch=2 fetched=(\d+)', two.said())[1])
        assert groups < 20, "a folder without a log fetches more than 40"
        assert two.get("/stats", namespace="test", topic="q").body["ready"] == 40
        assert texts(two.dequeue(topic="q"))[0].startswith("0000x")


def test_a_server_empties_the_folders_of_shards_that_others_serve(tmp_path):
    with node(tmp_path, "one") as one, node(tmp_path, "two") as two, node(tmp_path, "three") as three:
        names = ["one", "two", "three"]
        until(lambda: sum(map(here, [one, two, three])) == SHARDS and here(one) < SHARDS)
        # The owner has the log of a shard, and the next owner may have it.
        until(lambda: all(sum(str(shard) in folders(tmp_path, name) for name in names) <= 2 for shard in range(SHARDS)))
        for server, name in [(one, "one"), (two, "two")]:
            assert server.post("/v1/admin/nodes/drain", {}).status in (200, 202)
            until(lambda server=server: here(server) == 0)
            until(lambda name=name: not folders(tmp_path, name))
        assert here(three) == SHARDS
        assert len(folders(tmp_path, "three")) == SHARDS
