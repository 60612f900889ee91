"""Several shards behind one server: which queue lives where, and what happens when that changes.

Redis servers and embedded engines, mixed.
"""
import itertools
import os
import re
import subprocess

import pytest
import served
from redis import Redis
from served import SLUICED, Refused, Server, until


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Two Redis servers that are never stopped; tests take a prefix of their own."""
    folder = tmp_path_factory.mktemp("stores")
    with Redis(folder / "a") as a, Redis(folder / "b") as b:
        yield a, b


numbers = itertools.count(1)


@pytest.fixture
def shards(stores):
    """YAML of two shards in Redis, one in a log, one in memory."""
    prefix = f"p{next(numbers)}"
    return "".join((
        "redis.shards:\n",
        f"  red: {{address: '{stores[0].address}', keyPrefix: {prefix}, poolSize: 2}}\n",
        f"  blue: {{address: '{stores[1].address}', keyPrefix: {prefix}}}\n",
        "  disk: {engine: log, poolSize: 2}\n",
        "  fast: {engine: memory}\n"))


class Node(served.Node):
    def lives(self, topic, namespace="test"):
        """The shards that have messages of it, by what they have accepted."""
        before = self.accepted()
        self.enqueue({"namespace": namespace, "topic": topic, "text": "x"})
        return [s for s, n in self.accepted().items() if n > before.get(s, 0)]

    def accepted(self):
        counts = {}
        for name, lane, n in re.findall(
                r'sluice_messages_accepted_total\{shard="([^"]+)"(?:,lane="(\d+)")?\} (\d+)',
                self.get("/metrics").text):
            counts[name] = counts.get(name, 0) + int(n)
        return counts

    def map(self):
        return self.get("/readyz").body.get("shard_map")

    def warnings(self):
        return [w["warning"] for w in self.get("/readyz").body.get("warnings", [])]


MAPPED = """
sharding:
  enabled: true
  version: {version}
  commandMappings:
    Render: red
    email: blue
    archive: disk
  tenantOverrides:
    ACME: fast
"""


def mapped(shards, version=1):
    return MAPPED.format(version=version) + shards


def test_a_tenant_goes_before_the_command_before_the_default(tmp_path, shards):
    """SH-20, SH-22, SH-23, SH-24, SH-25, SH-16"""
    with Node(tmp_path, mapped(shards)) as node:
        assert node.lives("render") == ["red"]
        assert node.lives("RENDER") == ["red"]
        assert node.lives("email") == ["blue"]
        assert node.lives("archive") == ["disk"]
        assert node.lives("nobody-mapped-this") == ["default"]
        for topic in ("render", "email", "nobody-mapped-this"):
            assert node.lives(topic, "acme") == ["fast"]
            assert node.lives(topic, "Acme") == ["fast"]


def test_a_default_shard_has_another_name(tmp_path, shards):
    """SH-22: and the shard of the other settings is not even opened."""
    with Node(tmp_path, mapped(shards).replace("enabled: true", "enabled: true\n  defaultShard: blue")
              ) as node:
        assert node.lives("other") == ["blue"]
        assert node.lives("render") == ["red"]
        assert set(node.accepted()) == {"red", "blue", "disk", "fast"}
        assert not list((tmp_path / "data").glob("*.log"))


def test_mappings_that_are_not_enabled_are_not_used(tmp_path, shards):
    """SH-21"""
    with Node(tmp_path, mapped(shards).replace("enabled: true", "enabled: false")) as node:
        for topic in ("render", "email", "other"):
            assert node.lives(topic) == ["default"]
            assert node.lives(topic, "acme") == ["default"]


def test_every_kind_of_shard_does_all_that_one_does(tmp_path, shards):
    """Enqueue, dequeue, nack, ack, stats; ids and leases are of one kind."""
    with Node(tmp_path, mapped(shards)) as node:
        for topic in ("render", "email", "archive", "other"):
            node.enqueue({"topic": topic, "text": "one", "key": "k"},
                         {"topic": topic, "text": "two", "key": "k"})
            first, = node.dequeue(topic=topic)
            assert first["topic"] == topic
            assert node.dequeue(topic=topic) == []
            node.ack(first, topic=topic)
            second, = node.dequeue(topic=topic)
            node.ack(second, topic=topic)
        shown, cursor = set(), {}
        while cursor is not None:
            page = node.get("/topics", namespace="test", **cursor).body
            shown |= {t["topic"] for t in page["topics"]}
            cursor = {"cursor": page["cursor"]} if page.get("cursor") else None
        assert shown == {"render", "email", "archive", "other"}


def test_one_call_may_go_to_several_shards(tmp_path, shards):
    with Node(tmp_path, mapped(shards)) as node:
        topics = ["render", "email", "archive", "other"] * 3
        node.enqueue(*({"topic": t, "text": str(i)} for i, t in enumerate(topics)))
        for topic in set(topics):
            assert len(node.dequeue(topic=topic, limit=10)) == 3


def test_settings_of_a_shard_are_its_own(tmp_path):
    """SH-27, SH-88: address, database, password and pool, each for itself. SH-28: by the
    environment, and never shown."""
    with Redis(tmp_path / "locked", "--requirepass", "correct-horse") as redis:
        text = (f"sharding: {{enabled: true, commandMappings: {{a: one, b: two}}}}\n"
                "shards:\n"
                f"  one: {{address: '{redis.address}', password: '${{ONE}}', db: 3, poolSize: 3,"
                " keyPrefix: mine, engine: redis}\n"
                f"  two: {{engine: redis, address: '{redis.address}', password_file: {tmp_path}/secret, db: 4}}\n")
        (tmp_path / "secret").write_text("correct-horse\n")
        os.environ["ONE"] = "correct-horse"
        try:
            with Node(tmp_path, text) as node:
                assert node.lives("a") == ["one"]
                assert node.lives("b") == ["two"]
                lanes = set(re.findall(r'sluice_shard_up\{shard="one",lane="(\d)"\} 1',
                                       node.get("/metrics").text))
                assert lanes == {"0", "1", "2"}
                printed = subprocess.run(
                    [SLUICED, "--config", str(node.file), "--print-config"],
                    capture_output=True, text=True, timeout=60, check=True).stdout
                assert "shards.one.password: ***" in printed
                shown = printed + node.said() + node.get("/v1/admin/config").text
            os.environ["ONE"] = "wrong-battery"
            with pytest.raises(Refused) as refused:
                Node(tmp_path, text)
        finally:
            del os.environ["ONE"]
    assert "correct-horse" not in shown
    assert "battery" not in str(refused.value)


def test_a_pool_that_a_server_cannot_take_is_a_warning(tmp_path):
    """SH-96"""
    with Redis(tmp_path / "small", "--maxclients", "20") as redis:
        text = ("sharding: {{enabled: true, commandMappings: {{a: small}}}}\n"
                f"redis.shards: {{{{small: {{{{address: '{redis.address}', poolSize: {{}}}}}}}}}}\n")
        with Node(tmp_path, text.format(4)) as node:
            assert "maxclients" not in node.said()
        # Those that were there once count: they may come again.
        redis.command("HSET", "sluice:nodes", *(w for n in "789" for w in (n, n + " 1 1 1 1")))
        with Node(tmp_path, text.format(4)) as node:
            until(lambda: "maxclients=20" in node.said())


@pytest.mark.parametrize("supplier, more", [
    ("ring", ""),
    ("hash", "  shards: [blue, disk]\n"),
    ("range", "  ranges: {a: red, m: blue}\n"),
    ("range", "  ranges: {t: disk}\n  rangeBy: tenant\n")])
def test_other_suppliers_choose(tmp_path, shards, supplier, more):
    """SH-14: the same on every node and after every start; SH-F2: by the range."""
    text = f"sharding:\n  enabled: true\n  supplier: {supplier}\n{more}{shards}"
    topics = ["apple", "kiwi", "mango", "zucchini", "0"]
    with Node(tmp_path, text) as node:
        found = [node.lives(t) for t in topics]
        maps = [node.map()]
        node.restart()
        assert [node.lives(t) for t in topics] == found
        maps.append(node.map())
    assert maps[0] == maps[1]
    if supplier == "range" and "rangeBy" not in more:
        assert found == [["red"], ["red"], ["blue"], ["blue"], ["default"]]
    elif supplier == "range":
        assert found == [["disk"]] * 5
    elif more:
        assert {f for f, in found} <= {"blue", "disk"}


# --- faults -----------------------------------------------------------------------

def refusal(tmp_path, text):
    file = tmp_path / "sluice.yaml"
    file.write_text(text)
    done = subprocess.run([SLUICED, "--config", str(file), "--data", str(tmp_path / "data"),
                           "--listen", "127.0.0.1:0"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "listening" not in done.stderr
    return done.stderr


def test_all_faults_are_reported_at_once_and_nothing_is_served(tmp_path):
    """SH-55, SH-56, SH-57, SH-58"""
    said = refusal(tmp_path, """
sharding:
  enabled: true
  defaultShard: primary
  commandMappings: {render: heavy, Email: here, eMail: there, "no name": here}
  tenantOverrides: {acme: gold}
  previousShards: {commandMappings: {render: gone}}
redis.shards:
  here: {address: "h:1"}
  there: {address: "h:1", tlsCAFile: x}
  local: {engine: log, address: "x:1"}
  lost: {}
  odd: {address: "h:2", poolSise: 3}
""")
    for part in ("command render: unknown shard heavy; expected default, here, there",
                 "defaultShard: unknown shard primary",
                 "tenant acme: unknown shard gold",
                 "previousShards.commandMappings: command render: unknown shard gone",
                 "command email is mapped twice",
                 "no name",
                 "shards.there: TLS settings without tlsEnabled: true",
                 "redis.shards.local.address: a shard with engine log has no setting address",
                 "shards.lost: missing address; expected host:port or unix:PATH",
                 "a shard with engine redis has no setting poolSise"):
        assert part in said, (part, said)
    assert not (tmp_path / "data").exists()


def printed(tmp_path, text, *args):
    (tmp_path / "printed.yaml").write_text(text)
    out = subprocess.run([SLUICED, "--config", str(tmp_path / "printed.yaml"), "--print-config", *args],
                         capture_output=True, text=True, timeout=60)
    return sorted(line for line in out.stdout.splitlines() if line.startswith("shards.")) or out.stderr


def test_the_engine_of_a_shard_is_said_or_the_one_beside_it_or_that_of_the_old_spelling(tmp_path):
    new = printed(tmp_path, "shards:\n  one: {db: 3, address: 'h:1', engine: redis}\n  two: {engine: log}\n")
    assert [line.split(" #")[0] for line in new] == [
        "shards.one.address: h:1", "shards.one.db: 3", "shards.one.engine: redis", "shards.two.engine: log"]
    old = printed(tmp_path, "redis.shards:\n  one: {db: 3, address: 'h:1', engine: redis}\n  two: {engine: log}\n")
    assert old == new
    assert printed(tmp_path, "shards.one: {address: 'h:1'}\n", "--engine", "redis")
    assert printed(tmp_path, "redis.shards.one: {address: 'h:1'}\n")
    assert "shards.one.address: a shard with engine log has no setting address" in \
        printed(tmp_path, "shards.one: {address: 'h:1'}\n")
    assert "is set twice" in printed(tmp_path, "shards.one.db: 1\nredis.shards.one.db: 1\n")
    assert 'invalid engine "cloud"; expected log, memory, redis' in printed(tmp_path, "shards.one.engine: cloud\n")


def test_a_shard_that_nothing_uses_is_a_warning(tmp_path, shards):
    with Node(tmp_path, "sharding: {enabled: true, commandMappings: {a: red}}\n" + shards) as node:
        until(lambda: "shards.fast: no queue lives on this shard" in node.said())


# --- as before --------------------------------------------------------------------

def test_without_a_word_of_shards_all_is_as_it_was(tmp_path):
    """SH-48, SH-33, SH-35: data of a server without shards is read by one that has some."""
    with Server(tmp_path / "data", "--shards", "2") as server:
        server.enqueue({"topic": "old", "text": "1"}, {"topic": "older", "text": "2"})
        assert server.get("/readyz").body == {"status": "ready"}
        text = server.get("/metrics").text
        assert 'sluice_shard_up{shard="1"} 1' in text
        assert "sluice_shard_map_info{" not in text
        files = sorted(p.name for p in (tmp_path / "data").iterdir())
        assert files == ["0", "1", "shards"]
    with Node(tmp_path, "sharding: {enabled: true, commandMappings: {new: disk}}\n"
                        "redis.shards: {disk: {engine: log}}\n", "--shards", "2", engine="log") as node:
        assert len(node.dequeue(topic="old")) == 1
        assert len(node.dequeue(topic="older")) == 1
        assert node.lives("new") == ["disk"]
        assert sorted(p.name for p in (tmp_path / "data").iterdir()) == ["0", "1", "disk", "shards"]


@pytest.mark.parametrize("text", ["", "sharding: {enabled: false}\n"], ids=["unset", "off"])
def test_nothing_tells_of_shards_where_there_are_none(tmp_path, stores, text):
    """SH-106: answers, labels of metrics and keys are as on a server without shards."""
    prefix = f"p{next(numbers)}"
    with Node(tmp_path, text, "--redis-address", stores[0].address, "--redis-prefix", prefix,
              engine="redis") as node:
        node.enqueue({"text": "x", "key": "k", "idempotency_key": "i"}, {"text": "y", "delay": "1h"})
        node.ack(node.take())
        queue, space = node.here(), {"namespace": node.namespace}
        for path, params in (("/stats", queue), ("/peek", queue), ("/v1/admin/queue", queue),
                             ("/topics", space), ("/v1/admin/queues", space)):
            answer = node.get(path, **params)
            assert answer.status == 200 and "shard" not in answer.text, answer
        assert node.get("/readyz").body == {"status": "ready"}
        text = node.get("/metrics").text
        assert "sluice_shard_map_info{" not in text and 'lane="' not in text
        assert node.metric('sluice_messages_accepted_total{shard="0"}') == 2
        assert node.metric('sluice_queue_messages{namespace="test",topic="mail",state="delayed"}') == 1
        keys = re.findall(rf"{prefix}:q:\S+", stores[0].command("KEYS", prefix + ":*"))
        assert keys and all(re.fullmatch(rf"{prefix}:q:mail:test:\w+(:\d+)?", k) for k in keys), keys


def test_what_is_kept_is_there_after_a_restart(tmp_path, shards):
    with Node(tmp_path, mapped(shards)) as node:
        for topic in ("render", "email", "archive"):
            node.enqueue({"topic": topic, "text": "x"})
        node.restart("kill")
        for topic in ("render", "email", "archive"):
            assert len(node.dequeue(topic=topic)) == 1
        assert sorted(p.name for p in (tmp_path / "data" / "disk").iterdir()) == ["0", "1", "shards"]


# --- a shard that fails -----------------------------------------------------------

def test_a_dead_shard_fails_its_own_queues_alone(tmp_path, stores):
    """SH-105, SH-29: the others go on, and the server is not taken out of service."""
    with Redis(tmp_path / "red") as red:
        text = ("sharding: {enabled: true, commandMappings: {render: red, email: blue}}\n"
                "redis.shards:\n"
                f"  red: {{address: '{red.address}', timeout: 1s}}\n"
                f"  blue: {{address: '{stores[1].address}', keyPrefix: p{next(numbers)}}}\n")
        with Node(tmp_path, text) as node:
            kept, = node.enqueue({"topic": "render", "text": "kept"})
            other, = node.enqueue({"topic": "other", "text": "x"})
            refused = node.get("/why", **node.here(topic="render", id=kept))
            assert refused.status == 400 and "engine redis does not say why" in refused.body["message"]
            red.kill()
            for _ in range(3):
                answer = node.post("/enqueue", [node.here(topic="render", text="x")])
                assert answer.status == 503, answer
                assert node.lives("email") == ["blue"]
                assert node.lives("other") == ["default"]
            ready = node.get("/readyz")
            assert ready.status == 200 and ready.body["status"] == "degraded"
            assert {r["name"] for r in ready.body["reasons"]} == {"red"}
            assert node.get("/why", namespace=node.namespace, id=other).body["reason"] == "no_consumer"
            up = dict(re.findall(r'sluice_shard_up\{shard="(\w+)",lane="0"\} (\d)',
                                 node.get("/metrics").text))
            assert up == {"red": "0", "blue": "1", "default": "1"}
            red.start()
            until(lambda: node.get("/readyz").body["status"] == "ready")
            assert len(node.dequeue(topic="render")) == 1


def test_a_stop_while_a_shard_is_dead_is_a_clean_one(tmp_path):
    """Nothing that was answered is anywhere but in that store."""
    with Redis(tmp_path / "red") as red:
        text = ("sharding: {enabled: true, commandMappings: {render: red}}\n"
                f"redis.shards: {{red: {{address: '{red.address}', timeout: 1s}}}}\n")
        with Node(tmp_path, text) as node:
            node.enqueue({"topic": "render", "text": "kept"})
            red.kill()
            assert node.post("/enqueue", [node.here(topic="render", text="x")]).status == 503
            node.process.terminate()
            assert node.process.wait(60) == 0


def test_a_node_starts_while_a_shard_is_dead(tmp_path, stores):
    """SH-105: and serves it when it is there, with ids behind all that were given."""
    ahead = (1 << 62) // 4096 * 4096
    with Redis(tmp_path / "red") as red:
        red.command("HSET", "sluice:ids", "7.0", str(ahead))
        red.kill()
        text = ("sharding: {enabled: true, commandMappings: {render: red, email: blue}}\n"
                "redis.shards:\n"
                f"  red: {{address: '{red.address}', timeout: 1s, poolSize: 2}}\n"
                f"  blue: {{address: '{stores[1].address}', keyPrefix: p{next(numbers)}}}\n")
        with Node(tmp_path, text) as node:
            assert node.post("/enqueue", [node.here(topic="render", text="x")]).status == 503
            node.enqueue({"topic": "email", "text": "served"})
            assert len(node.dequeue(topic="email")) == 1
            assert node.get("/readyz").body["status"] == "degraded"
            red.start()
            until(lambda: node.get("/readyz").body["status"] == "ready")
            assert node.enqueue({"topic": "render", "text": "x"})[0] > ahead
            assert len(node.dequeue(topic="render")) == 1


# --- changes ----------------------------------------------------------------------

def test_a_file_changes_nothing_until_it_is_reloaded(tmp_path, shards):
    """SH-26, SH-49: then the whole map is another one."""
    with Node(tmp_path, mapped(shards)) as node:
        before = node.map()
        assert before["version"] == 1
        node.write(mapped(shards, 2).replace("Render: red", "Render: blue"))
        assert node.lives("render") == ["red"]
        assert node.map() == before
        node.reload(node.file.read_text())
        assert node.map()["version"] == 2 and node.map()["hash"] != before["hash"]
        assert f'hash="{node.map()["hash"]}",version="2"' in node.get("/metrics").text
        node.write(mapped(shards, 3).replace("Render: red", "Render: nowhere"))
        refused = node.post("/v1/admin/reload", {})
        assert refused.status == 400 and "nowhere" in refused.body["message"], refused
        assert node.map()["version"] == 2
        node.write(mapped(shards, 3))
        assert node.post("/v1/admin/reload", {}).body == {"reloaded": True}
        assert node.map()["version"] == 3
        assert node.lives("other") == ["default"]


def test_a_mapping_that_is_removed_reverts_to_the_default(tmp_path, shards):
    """SH-51"""
    with Node(tmp_path, mapped(shards)) as node:
        node.reload(mapped(shards, 2).replace("    email: blue\n", ""))
        assert node.lives("email") == ["default"]


def test_a_shard_is_added_while_the_server_runs(tmp_path, shards):
    """SH-49: and what is faulty changes nothing."""
    only = "sharding: {enabled: true, version: %d, commandMappings: {a: %s}}\n"
    with Node(tmp_path, only % (1, "default")) as node:
        assert node.lives("a") == ["default"]
        node.reload(only % (2, "nowhere") + shards, "reload failed")
        until(lambda: "command a: unknown shard nowhere" in node.said())
        node.reload(only % (2, "dead") + "redis.shards: {dead: {address: '127.0.0.1:1'}}\n",
                    "reload failed")
        assert node.lives("a") == ["default"] and node.map()["version"] == 1
        node.reload(only % (2, "fast") + shards)
        assert node.lives("b") == ["default"]
        assert node.map()["version"] == 2
        assert "fast" in node.accepted()


def test_a_mapping_that_differs_needs_a_higher_version(tmp_path, shards):
    with Node(tmp_path, mapped(shards, 5)) as node:
        node.reload(mapped(shards, 5).replace("email: blue", "email: red"), "reload failed")
        until(lambda: "expected more than 5, because the mapping differs" in node.said())
        node.reload(mapped(shards, 4), "reload failed")
        assert node.map()["version"] == 5
        assert node.lives("email") == ["blue"]
        node.reload(mapped(shards, 5))


def test_settings_of_a_shard_that_is_open_wait_for_a_restart(tmp_path, shards):
    with Node(tmp_path, mapped(shards)) as node:
        node.reload(mapped(shards, 2).replace("poolSize: 2}", "poolSize: 1}"),
                    "setting needs a restart")
        until(lambda: node.map()["version"] == 2)
        assert re.search(r"setting needs a restart.*shard=red.*key=poolSize", node.said())


def test_the_file_is_looked_at_by_itself(tmp_path, shards):
    """SH-F4"""
    text = mapped(shards).replace("enabled: true", "enabled: true\n  reloadInterval: 20ms")
    with Node(tmp_path, text) as node:
        node.write(text.replace("version: 1", "version: 2").replace("email: blue", "email: red"))
        until(lambda: node.map()["version"] == 2)
        node.write("sharding: [")
        until(lambda: "reload failed" in node.said())
        assert node.map()["version"] == 2


@pytest.fixture
def pair(tmp_path, shards):
    """Two nodes on the same shards; the lines of the second stand in another order."""
    lines = mapped(shards).replace("    Render: red\n    email: blue\n",
                                   "    email: blue\n    Render: red\n")
    assert lines != mapped(shards)
    for name in "ab":
        (tmp_path / name).mkdir()
    with Node(tmp_path / "a", mapped(shards), "--node-id", "1") as one, \
            Node(tmp_path / "b", lines, "--node-id", "2") as two:
        yield one, two


def test_nodes_that_disagree_are_reported_until_they_agree(pair, shards):
    """SH-61: the hash does not depend on the order of the lines."""
    one, two = pair
    assert one.map() == two.map()
    two.reload(mapped(shards, 2))
    assert one.map()["hash"] != two.map()["hash"]
    for node in pair:
        until(lambda node=node: "shard_map" in node.warnings())
        assert node.metric("sluice_shard_map_disagreements") == 1
        until(lambda node=node: "nodes disagree on the shard map" in node.said())
    one.reload(mapped(shards, 2))
    for node in pair:
        until(lambda node=node: node.metric("sluice_shard_map_disagreements") == 0)
        assert "shard_map" not in node.warnings()
        until(lambda node=node: "nodes agree on the shard map" in node.said())


def test_two_nodes_with_one_number_are_reported(pair, tmp_path, shards):
    one, _ = pair
    assert one.metric("sluice_node_id_conflict") == 0
    (tmp_path / "c").mkdir()
    with Node(tmp_path / "c", mapped(shards), "--node-id", "1") as third:
        until(lambda: "duplicate node.id" in one.said() + third.said())
        until(lambda: 1 in (one.metric("sluice_node_id_conflict"),
                            third.metric("sluice_node_id_conflict")))
    until(lambda: one.metric("sluice_node_id_conflict") == 0)  # the other one is gone


def test_a_node_that_is_gone_raises_no_alarm(tmp_path, stores, shards):
    """SH-61: what it has left behind on the shard is no map that anybody has."""
    key = re.search(r"keyPrefix: (\w+)", shards)[1] + ":nodes"
    stores[0].command("HSET", key, "9", "9 abc 123 77 5")
    with Node(tmp_path, mapped(shards), "--node-id", "1") as node:
        until(lambda: re.search(r" [3-9]\r\n$", stores[0].command("HGET", key, "1")))  # third look
        assert node.metric("sluice_shard_map_disagreements") == 0
        assert "disagree" not in node.said()
