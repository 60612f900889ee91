"""Several servers on one store, as the commands show them."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from test_admin import Terminal

sys.path[:0] = [str(Path(__file__).parent.parent / "integration" / folder) for folder in ("", "stores")]
from clustered import shards, url  # noqa: E402
from served import Server, until  # noqa: E402
from test_takeover import QUEUES, SHARDS, is_shared, node  # noqa: E402

SLUICE = os.environ["SLUICE"]


def sluice(server, *words, code=0):
    done = subprocess.run([SLUICE, *words, "--server", url(server)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def row(server, *words, code=0):
    return json.loads(sluice(server, *words, "--json", code=code).stdout)


def test_status_names_the_owner_and_the_epoch_of_each_shard(tmp_path):
    with node(tmp_path, "one") as one, node(tmp_path, "two") as two:
        until(lambda: is_shared(one, two))

        def agree():
            """The lines of the text are those of the JSON; a shard may change its owner between the two."""
            found, text = row(one, "status")["store"], sluice(one, "status").stdout
            mine = [f"{o['shard']}@{o['epoch']}" for o in found["owners"] if o["here"]]
            lines = [f"owner       {url(one)} (this node): {' '.join(mine)}\n", f"owner       {url(two)}: ",
                     f"store       shards {found['shards_here']} here, {found['shards_elsewhere']} elsewhere; nodes 2 living; beat "]
            return all(line in text for line in lines) and all(o["epoch"] for o in found["owners"]) and found

        found = until(agree)
        assert found["nodes_living"] == 2 and found["draining"] is False and found["beat_age_ms"] >= 0
        assert found["shards_here"] + found["shards_elsewhere"] == SHARDS == len(found["owners"])
        assert {o["owner"] for o in found["owners"]} == {url(one), url(two)}
        for owner in found["owners"]:
            assert owner["here"] == (owner["owner"] == url(one)) == ("unconfirmed_ms" in owner)


def test_top_shows_the_store_and_the_owners(tmp_path):
    with node(tmp_path, "one") as one:
        text = sluice(one, "top", "--once", "--interval", "10ms").stdout
        assert f"store: shards {SHARDS} here, 0 elsewhere; nodes 1 living; beat " in text and "unconfirmed " in text
        assert f"\nowner       {url(one)} (this node): 0@1 1@1 2@1 " in text
        with Terminal(SimpleNamespace(folder=tmp_path, env=os.environ), "top", "--interval", "30ms", "--server", url(one)) as top:
            top.expect(rf"\nowner       {re.escape(url(one))} \(this node\): 0@1 1@1 ")


LINKS = ("--listen", "peer://127.0.0.1:0")


def test_commands_show_the_queues_of_all_servers(tmp_path):
    """MQ-46: whichever server is asked."""
    with node(tmp_path, "one", *LINKS, settle="1h") as one, node(tmp_path, "two", *LINKS) as two:
        until(lambda: shards(two) == (0, SHARDS))
        for queue in QUEUES:
            two.enqueue({"text": "x"}, topic=queue)
        for server in one, two:
            for words in ["queue", "list", "--all"], ["stats", "--namespace", "test"], ["top", "--once", "--interval", "10ms"]:
                lines = [json.loads(line) for line in sluice(server, *words, "--json").stdout.splitlines()]
                assert sorted(line["topic"] for line in lines) == sorted(QUEUES), words
                assert {line["ready"] for line in lines} == {1}
            found = row(server, "status")
            assert found["queues"] == len(QUEUES) == found["messages"]["ready"] and found["partial"] is False


def test_commands_name_the_shards_that_do_not_answer(tmp_path):
    """The servers have no links: each answers for what it owns."""
    with node(tmp_path, "one") as one, node(tmp_path, "two") as two:
        until(lambda: is_shared(one, two))
        until(lambda: any(one.post("/enqueue", [one.here(topic=queue, text="x")]).status == 200 for queue in QUEUES))
        for words in ["queue", "list", "--all"], ["top", "--once", "--interval", "10ms"], ["status"]:
            done = sluice(one, *words)
            assert "incomplete: no answer from shard " in done.stderr and f" of {url(two)}" in done.stderr, done
        assert row(one, "status")["partial"] is True


# --- admin node -------------------------------------------------------------------------------

def test_node_list_prints_nodes_and_shards(tmp_path):
    with node(tmp_path, "one") as one, node(tmp_path, "two") as two:
        until(lambda: is_shared(one, two))
        text = sluice(one, "admin", "node", "list").stdout
        assert text.split()[:8] == ["ADDRESS", "NAME", "VERSION", "LIVING", "DRAINING", "BEAT", "SHARDS", "LIFE"]
        assert url(one) in text and url(two) in text
        lines = sluice(one, "admin", "node", "list", "--shards", "--json").stdout.splitlines()
        assert [json.loads(line)["shard"] for line in lines] == list(range(SHARDS))


def test_node_drain_waits_and_names_the_successors(tmp_path):
    with node(tmp_path, "one") as one, node(tmp_path, "two") as two:
        until(lambda: is_shared(one, two))
        found = row(one, "admin", "node", "drain", "--node", url(two))
        assert found["node"] == url(two) and found["left"] == 0 and found["handed_over"] == len(found["shards"]) > 0
        assert {shard["owner"] for shard in found["shards"]} == {url(one)}
        assert found["draining"] is True
        until(lambda: row(one, "status")["store"]["shards_here"] == SHARDS)
        done = sluice(one, "admin", "node", "drain", code=1)
        assert "could take the shards" in done.stderr
        assert row(one, "admin", "node", "resume", "--node", url(two)) == {
            "node": url(two), "draining": False, "handed_over": 0, "left": 0, "shards": []}
        until(lambda: is_shared(one, two))
        text = sluice(one, "admin", "node", "drain", "--wait", "60s").stdout
        assert f"is at {url(two)}, epoch " in text and f"{url(one)} drains: " in text
        assert f"{url(one)} takes shards again\n" == sluice(one, "admin", "node", "resume").stdout


def test_a_drain_that_takes_too_long_says_what_is_left(tmp_path):
    """Another server learns of the drain when it reads the beats again: that takes longer than no time."""
    with node(tmp_path, "one", lease="5s", settle="1h") as one, node(tmp_path, "two", lease="5s", settle="1h"):
        until(lambda: row(one, "status")["store"]["nodes_living"] == 2)
        done = sluice(one, "admin", "node", "drain", "--wait", "0s", code=1)
        assert "shards have no new owner yet; the node still drains" in done.stderr
        assert row(one, "admin", "node", "drain", "--no-wait")["draining"] is True


def test_a_node_that_is_not_there_and_a_server_without_a_store(tmp_path):
    with node(tmp_path, "one") as one:
        assert "no such node: nix" in sluice(one, "admin", "node", "drain", "--node", "nix", code=3).stderr
        assert "expected list|drain|resume" in sluice(one, "admin", "node", "lst", code=2).stderr
    with Server(tmp_path / "plain", engine="memory") as plain:
        for verb in "list", "drain", "resume":
            assert "shares no store" in sluice(plain, "admin", "node", verb, code=3).stderr
