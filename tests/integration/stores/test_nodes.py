"""What an operator sees and does of several servers on one store: owners, epochs, lag, drain."""
import json
import re

from clustered import shards, url
from served import until
from test_takeover import QUEUES, SHARDS, drain, is_shared, node, send


def scraped(server):
    """{metric: {shard: value}} of the metrics by shard."""
    found = {}
    for name, shard, value in re.findall(r'^(sluice_shard_\w+)\{shard="(\d+)"[^}]*\} (\S+)$', server.get("/metrics").text, re.M):
        found.setdefault(name, {})[int(shard)] = float(value)
    return found


def owners(server):
    """{shard: address of its owner}, as the server sees it."""
    found = re.findall(r'^sluice_shard_owner_info\{shard="(\d+)",node="[^"]+",address="([^"]+)"\} 1$',
                       server.get("/metrics").text, re.M)
    return {int(shard): address for shard, address in found}


def test_metrics_name_the_owner_and_the_epoch_of_each_shard(tmp_path):
    with node(tmp_path, "one") as one, node(tmp_path, "two") as two:
        until(lambda: is_shared(one, two))

        def agree(server):
            """All metrics of a scrape are about the same owners, unless a shard changes its owner meanwhile."""
            known, found = owners(server), scraped(server)
            mine = {shard for shard, address in known.items() if address == url(server)}
            return len(known) == SHARDS and set(known.values()) == {url(one), url(two)} and \
                {shard for shard, owned in found["sluice_shard_owned"].items() if owned} == mine and \
                set(found["sluice_shard_unconfirmed_groups"]) == set(found["sluice_shard_unconfirmed_bytes"]) == mine and \
                set(found["sluice_shard_up"]) == mine and \
                set(found["sluice_shard_epoch"]) == set(range(SHARDS)) and min(found["sluice_shard_epoch"].values()) >= 1

        for server in one, two:
            until(lambda server=server: agree(server))
            assert server.metric("sluice_nodes_living") == 2
            assert server.metric("sluice_node_draining") == 0
            assert 0 <= server.metric("sluice_node_beat_age_seconds") < 60
        until(lambda: owners(one) == owners(two))
        until(lambda: two.metric('sluice_shard_available{shard="default"}') == 1)
        before, lost = scraped(two)["sluice_shard_epoch"], [s for s, address in owners(two).items() if address == url(one)]
        one.kill()
        until(lambda: shards(two) == (SHARDS, 0))
        until(lambda: two.metric("sluice_nodes_living") == 1)
        after = scraped(two)["sluice_shard_epoch"]
        assert lost and all(after[shard] > before[shard] for shard in lost)


def test_readyz_counts_the_nodes(tmp_path):
    with node(tmp_path, "one") as one:
        found = one.get("/readyz").body["nodes"]
        assert found["living"] == 1 and found["draining"] is False
        assert found["beat_age_ms"] >= 0 and found["unconfirmed_ms"] >= 0
        with node(tmp_path, "two") as two:
            until(lambda: [s.get("/readyz").body["nodes"]["living"] for s in (one, two)] == [2, 2])


def test_a_server_without_a_store_has_no_nodes(server):
    assert "nodes" not in server.get("/readyz").body
    assert "\nsluice_nodes_living" not in server.get("/metrics").text
    assert not scraped(server).get("sluice_shard_owned")


# --- nodes ----------------------------------------------------------------------------------

NODES = "/v1/admin/nodes"


def listed(server):
    """{address: row} of the nodes, as the server sees them."""
    return {row["address"]: row for row in server.get(NODES).body["nodes"]}


def test_the_list_of_nodes_shows_who_lives_and_what_they_own(tmp_path):
    with node(tmp_path, "one") as one, node(tmp_path, "two") as two:
        until(lambda: is_shared(one, two))
        until(lambda: sum(row["shards"] for row in listed(one).values()) == SHARDS)
        found = one.get(NODES).body
        assert found["nodes"][0]["address"] == url(one) and found["nodes"][0]["self"]
        assert {s["owner"] for s in found["shards"]} <= {url(one), url(two), None} and len(found["shards"]) == SHARDS
        assert {s["next"] for s in found["shards"]} == {url(one), url(two)}
        for address in url(one), url(two):
            row = listed(one)[address]
            assert row["living"] and not row["draining"] and row["version"] and len(row["life"]) == 32
            assert row["beat_age_ms"] >= 0
        two.kill()
        until(lambda: not listed(one)[url(two)]["living"])
        until(lambda: listed(one)[url(one)]["shards"] == SHARDS)


def test_a_drained_server_hands_over_and_takes_nothing_until_it_resumes(tmp_path):
    with node(tmp_path, "one") as one, node(tmp_path, "two") as two:
        until(lambda: is_shared(one, two))
        for n, queue in enumerate(QUEUES):
            until(lambda n=n, queue=queue: send([one, two], queue, f"m{n}"))
        assert one.post(NODES + "/drain", {}).body["draining"] is True
        until(lambda: shards(two) == (SHARDS, 0))
        until(lambda: shards(one) == (0, SHARDS))
        until(lambda: listed(two)[url(one)]["draining"])
        assert one.metric("sluice_node_draining") == 1 and one.get("/readyz").body["nodes"]["draining"] is True
        answer = one.post("/enqueue", [one.here(topic="q0", text="x")])
        assert answer.status == 503 and answer.body["error"] == "moved" and answer.body["owner"] == url(two)
        assert sorted(drain(two, QUEUES)) == sorted(f"m{n}" for n in range(len(QUEUES)))
        assert one.post(NODES + "/resume", {}).body["draining"] is False
        until(lambda: is_shared(one, two))


def test_the_last_server_is_not_drained(tmp_path):
    with node(tmp_path, "one") as one:
        answer = one.post(NODES + "/drain", {})
        assert answer.status == 409 and "no other node" in answer.body["message"], answer
        with node(tmp_path, "two") as two:
            until(lambda: one.post(NODES + "/drain", {}).status == 200)
            until(lambda: listed(two)[url(one)]["draining"])
            assert two.post(NODES + "/drain", {}).status == 409
            until(lambda: shards(two) == (SHARDS, 0))
            two.kill()
            until(lambda: shards(one) == (SHARDS, 0))  # better than no owner


def test_a_restart_ends_a_drain(tmp_path):
    with node(tmp_path, "one") as one, node(tmp_path, "two") as two:
        until(lambda: one.post(NODES + "/drain", {}).status == 200)
        until(lambda: shards(two) == (SHARDS, 0))
        one.restart()
        until(lambda: is_shared(one, two))


def test_a_drain_is_audited(tmp_path):
    file = tmp_path / "audit"
    with node(tmp_path, "one", "--audit-file", str(file)) as one:
        one.post(NODES + "/drain", {})
        one.post(NODES + "/resume", {})

        def lines():
            return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

        until(lambda: [(row["verb"], row["outcome"]) for row in lines()] == [("node_drain", "conflict"), ("node_resume", "ok")])
        assert all(row["who"] == "anyone" for row in lines())
