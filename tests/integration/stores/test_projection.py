"""A readable copy of queues in a real PostgreSQL database: docs/projection.md."""
import json
import os
import subprocess
from pathlib import Path

import pytest

from onstore import stored
from postgres import Postgres
from served import Node, Refused, Server, until

SLUICE = os.environ.get("SLUICE")
ROWS = int(os.environ.get("PROJECTION_ROWS", "4"))  # a power of ten
NINE = "id, namespace, topic, status, priority, payload, deliver_after, lease_expires_at, created_at"


class Copies:
    """A database with the tables of projections, emptied for each test."""

    def __init__(self, db):
        self.db = db
        self.url = f"postgres://postgres@127.0.0.1:{db.port}/postgres"
        self.sql = db.sql
        db.sql(subprocess.run([SLUICE, "admin", "projection", "init", "--print-sql"], capture_output=True, text=True, check=True).stdout)

    def options(self, folder, after="0s"):
        """Its URL comes from a file: it could have a password."""
        file = Path(f"{folder}.url")
        file.write_text(self.url)
        return "--projection-url-file", str(file), "--projection-after", after

    def empty(self):
        self.sql("TRUNCATE sluice.items, sluice.dead_letters, sluice.projection")

    def rows(self, columns="*", table="items", where="true"):
        text = self.sql(f"SELECT {columns} FROM sluice.{table} WHERE {where} ORDER BY id")
        return [line.split("|") for line in text.splitlines()]

    def count(self, table="items", where="true"):
        return int(self.sql(f"SELECT count(*) FROM sluice.{table} WHERE {where}"))


@pytest.fixture(scope="module")
def copies_of_module():
    with Postgres() as db:
        yield Copies(db)


@pytest.fixture
def copies(copies_of_module):
    copies_of_module.empty()
    return copies_of_module


def projected(folder, copies, *options, after="0s", **named):
    return Server(folder, *copies.options(folder, after), *options, **named)


def is_quiet(server):
    """Everything that has changed is written."""
    return server.metric("sluice_projection_waiting") == 0 and server.metric("sluice_projection_rebuilding") == 0


def put(server, *texts, **more):
    return server.enqueue(*({"text": text} for text in texts), **more)


@pytest.mark.parametrize("engine", ["log", "memory"])
def test_the_table_has_the_nine_columns_of_each_message(tmp_path, copies, engine):
    """MQ-37, MQ-42, LQ-25: the states of a message, until it is gone."""
    with projected(tmp_path / "data", copies, engine=engine) as server:
        [number] = put(server, "hello", priority=3)
        until(lambda: copies.rows("id, namespace, topic, status, priority, convert_from(payload, 'UTF8'), lease_expires_at IS NULL")
              == [[str(number), "test", "mail", "ready", "3", "hello", "t"]])
        assert copies.count(where="abs(extract(epoch FROM created_at - now())) < 600 AND deliver_after = created_at") == 1
        message = server.take()
        until(lambda: copies.rows("status, lease_expires_at > now()") == [["leased", "t"]])
        assert server.post("/extend", {"receipt": message["receipt"], "lease": "60s"}).status == 200
        until(lambda: copies.rows("status") == [["processing"]])
        server.ack(message)
        until(lambda: copies.rows() == [])


def test_dead_letters_are_beside_the_items(tmp_path, copies):
    with projected(tmp_path / "data", copies) as server:
        server.policy(max_attempts=1)
        [number] = put(server, "bad")
        until(lambda: copies.count() == 1)
        server.nack(server.take(), error="no such customer")
        until(lambda: copies.count("dead_letters") == 1)
        [row] = copies.rows("id, status, reason, error = 'no such customer', died_at >= created_at, convert_from(payload, 'UTF8')", "dead_letters")
        assert row == [str(number), "dead", "max_attempts", "t", "t", "bad"]
        assert copies.count() == 0
        assert server.post("/dlq/redrive", server.here(ids=[number])).status == 200
        until(lambda: copies.count() == 1 and copies.count("dead_letters") == 0)


def test_a_message_that_lives_shortly_never_touches_the_table(tmp_path, copies):
    with projected(tmp_path / "data", copies, after="1h") as server:
        until(lambda: is_quiet(server) and server.metric("sluice_projection_rebuilds_total") == 1)
        before = copies.sql("SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'items'")
        put(server, "a", "b", "c")
        assert server.metric("sluice_projection_waiting") == 3
        server.ack(server.take())
        assert server.metric("sluice_projection_waiting") == 2
        assert server.metric("sluice_projection_messages_total") == 0
        assert server.metric("sluice_projection_transactions_total") == 0
        assert copies.sql("SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'items'") == before


def test_a_transaction_has_a_batch_of_messages(tmp_path, copies):
    """MQ-13, MQ-14: 50 messages a transaction, and all of a transaction or nothing."""
    with projected(tmp_path / "data", copies, "--flush-batch", "50", after="500ms") as server:
        until(lambda: is_quiet(server))
        put(server, *(f"m{n}" for n in range(120)))
        until(lambda: copies.count() == 120)
        assert copies.sql("SELECT max(n) FROM (SELECT count(*) AS n FROM sluice.items GROUP BY xmin::text) AS sizes") == "50"


def test_a_database_that_is_down_delays_nothing(tmp_path, copies):
    """MQ-15: requests go on, the lag shows, and nothing is lost when the database is back. MQ-16: beyond
    projection.changes the changes are forgotten, and the copy is rebuilt."""
    with projected(tmp_path / "data", copies, "--projection-changes", "1000") as server:
        numbers = put(server, *(str(n) for n in range(900)))
        until(lambda: copies.count() == 900 and is_quiet(server))
        copies.db.stop()
        numbers += put(server, "while it is down")
        until(lambda: server.metric("sluice_projection_lag_seconds") > 0 and server.metric("sluice_projection_failures_total") > 0)
        for _ in range(3):
            numbers += put(server, *(str(n) for n in range(900)))
        for message in server.dequeue(limit=100):
            server.ack(message)
            numbers.remove(message["id"])
        assert server.metric("sluice_projection_waiting") <= 1000
        copies.db.start()
        until(lambda: copies.count() == len(numbers) and is_quiet(server))
        assert [int(row[0]) for row in copies.rows("id")] == sorted(numbers)
        assert server.metric("sluice_projection_rebuilds_total") >= 2
        until(lambda: server.metric("sluice_projection_lag_seconds") == 0)


def test_a_transaction_that_fails_is_written_again(tmp_path, copies):
    """MQ-15: without a rebuild."""
    with projected(tmp_path / "data", copies) as server:
        numbers = put(server, "a")
        until(lambda: copies.count() == 1 and is_quiet(server))
        rebuilds = server.metric("sluice_projection_rebuilds_total")
        copies.sql("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'no row today'; END$$;"
                   "CREATE TRIGGER refuse BEFORE INSERT ON sluice.items EXECUTE FUNCTION refuse()")
        numbers += put(server, "b", "c")
        until(lambda: server.metric("sluice_projection_failures_total") > 0)
        copies.sql("DROP TRIGGER refuse ON sluice.items")
        until(lambda: [int(row[0]) for row in copies.rows("id")] == sorted(numbers))
        assert server.metric("sluice_projection_rebuilds_total") == rebuilds


def test_a_start_mends_what_is_wrong_in_the_table(tmp_path, copies):
    with projected(tmp_path / "data", copies) as server:
        numbers = put(server, "a", "b", "c", "d")
        until(lambda: copies.count() == 4)
        server.stop()
        copies.sql(f"DELETE FROM sluice.items WHERE id = {numbers[0]}; UPDATE sluice.items SET status = 'leased' WHERE id = {numbers[1]};"
                   f"INSERT INTO sluice.items SELECT 7, namespace, topic, status, 1, payload, now(), NULL, now(), shard FROM sluice.items LIMIT 1")
        server.start()
        until(lambda: copies.rows("id, status") == [[str(n), "ready"] for n in numbers])


def test_a_purge_and_queues_that_are_left_out(tmp_path, copies):
    with projected(tmp_path / "data", copies, "--projection-queues", "test/mail,other") as server:
        put(server, "a", "b")
        put(server, "hidden", topic="jobs")
        put(server, "shown", namespace="Other", topic="any")
        until(lambda: copies.count() == 3)
        assert copies.count(where="topic = 'jobs'") == 0
        assert server.post("/v1/admin/queue/purge", {"namespace": "test", "queue": "mail"}).status == 200
        until(lambda: copies.rows("namespace, topic") == [["other", "any"]])


def test_a_payload_of_more_than_a_mebibyte_is_null(tmp_path, copies):
    with projected(tmp_path / "data", copies) as server:
        put(server, "x" * (1 << 20), "y" * ((1 << 20) + 1), "")
        until(lambda: copies.count() == 3)
        assert copies.rows("coalesce(length(payload), -1)") == [[str(1 << 20)], ["-1"], ["0"]]


def test_a_deposed_owner_writes_nothing(tmp_path, copies):
    """Two owners of one shard: the second has claimed the shard while the first hangs."""
    with projected(tmp_path / "one", copies) as first:
        put(first, "of the first")
        until(lambda: copies.count() == 1)
        with projected(tmp_path / "two", copies) as second:
            put(second, "of the second")
            until(lambda: [row[0] for row in copies.rows("convert_from(payload, 'UTF8')")] == ["of the second"])
            written = first.metric("sluice_projection_messages_total")
            put(first, "late")
            until(lambda: "another server writes the projection of shard default" in first.said())
            assert first.metric("sluice_projection_messages_total") == written
            put(second, "more")
            until(lambda: copies.count() == 2)
            assert copies.sql("SELECT epoch FROM sluice.projection") == "2"


def test_the_new_owner_of_a_shard_in_a_store_writes(tmp_path, copies):
    """The epoch belongs to the shard: the old owner, which comes back to life, has a lower one."""
    store = f"file://{tmp_path}/store"
    options = copies.options(tmp_path / "both")
    with stored(tmp_path / "one", store, *options) as one:
        put(one, "a", "b")
        until(lambda: copies.count() == 2)
        epoch = int(copies.sql("SELECT max(epoch) FROM sluice.projection"))
        with stored(tmp_path / "two", store, *options) as two:
            one.kill()
            until(lambda: two.post("/enqueue", [two.here(text="c")]).status == 200)
            until(lambda: copies.count() == 3)
        assert int(copies.sql("SELECT max(epoch) FROM sluice.projection")) > epoch


@pytest.mark.parametrize("url, options, why", [
    ("mysql://secret", (), "invalid projection.url; expected postgres://HOST/DATABASE"),
    ("", ("--projection-queues", "a"), "projection.queues: expected projection.url"),
    ("postgres://secret/d", ("--projection-queues", "a/b c"), "projection.queues: invalid queue \"b c\""),
    ("postgres://secret/d", ("--engine", "redis"), "projection.url: not available with engine redis; expected log or memory"),
])
def test_settings_that_cannot_be_are_refused(tmp_path, monkeypatch, url, options, why):
    monkeypatch.setenv("SLUICE_PROJECTION_URL", url)
    with pytest.raises(Refused) as refused:
        Server(tmp_path / "data", *options)
    assert why in str(refused.value) and "secret" not in str(refused.value)


def admin(*words):
    return subprocess.run([SLUICE, "admin", "projection", *words], capture_output=True, text=True)


def test_check_finds_what_is_wrong_and_rebuild_mends_it(tmp_path, copies):
    with projected(tmp_path / "data", copies) as server:
        at = ("--server", "{}:{}".format(*server.address))
        numbers = put(server, "a", "b", "c")
        put(server, "later", delay="1h")
        until(lambda: copies.count() == 4)
        assert admin("check", copies.url, *at).stdout == "messages 4, rows 4, missing 0, extra 0, different 0\n"
        copies.sql(f"DELETE FROM sluice.items WHERE id = {numbers[0]}; UPDATE sluice.items SET priority = 9 WHERE id = {numbers[1]};"
                   "INSERT INTO sluice.items SELECT 7, namespace, topic, status, 1, payload, now(), NULL, now(), shard FROM sluice.items LIMIT 1")
        wrong = admin("check", copies.url, "--wait", "0s", *at)
        assert wrong.returncode == 1
        assert wrong.stdout.splitlines() == ["+ 7", f"- {numbers[0]}", f"! {numbers[1]}", "messages 4, rows 4, missing 1, extra 1, different 1"]
        assert admin("check", copies.url, "--namespace", "none", *at).returncode == 0
        assert admin("rebuild", copies.url).returncode == 0
        sound = admin("check", copies.url, "--wait", "60s", "--json", *at)
        assert (sound.returncode, sound.stdout) == (0, '{"messages":4,"rows":4,"missing":0,"extra":0,"different":0}\n'), sound


def test_the_tables_are_missing(tmp_path, copies):
    copies.sql("CREATE DATABASE bare")
    copies.url = copies.url.removesuffix("postgres") + "bare"
    try:
        with projected(tmp_path / "data", copies) as server:
            until(lambda: "run: sluice admin projection init" in server.said())
            put(server, "goes on")
        assert admin("check", copies.url).returncode != 0
        assert admin("init", copies.url).returncode == 0
        assert "0" in admin("rebuild", copies.url).stdout
    finally:
        copies.url = copies.url.removesuffix("bare") + "postgres"
        copies.sql("DROP DATABASE bare WITH (FORCE)")


TWO = """
sharding:
  enabled: true
  defaultShard: east
redis.shards:
  east: {engine: log}
  west: {engine: memory}
"""


def test_a_queue_that_moves_keeps_its_rows(tmp_path, copies):
    """The shard that a queue moves to takes the rows over."""
    with Node(tmp_path, TWO, *copies.options(tmp_path / "url"), engine="log") as server:
        numbers = put(server, "a", "b", "c")
        until(lambda: copies.rows("shard") == [["east"]] * 3)
        until(lambda: server.post("/v1/admin/shards/move", {"command": "mail", "from": "east", "to": "west"}).body["done"])
        until(lambda: copies.rows("id, shard") == [[str(n), "west"] for n in numbers])
        server.ack(server.take())
        until(lambda: copies.count() == 2)


QUERY = """SELECT id FROM sluice.items WHERE namespace = 'load' AND topic = 'jobs' AND status = 'ready' AND deliver_after <= now()
           ORDER BY priority, deliver_after LIMIT 50"""
FILL = """INSERT INTO sluice.items SELECT n, 'load', 'jobs', 'ready', n % 10, 'x', now() - n * interval '1 ms', NULL, now(), 'none'
          FROM generate_series({}, {}) AS n"""


MILLION = 10 ** 6


def blocks(copies):
    """Blocks that the query of the design reads."""
    plan = json.loads(copies.sql(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {QUERY}"))[0]["Plan"]
    assert "items_next" in json.dumps(plan) and "Seq Scan" not in json.dumps(plan), plan
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


def test_a_query_by_the_index_stays_flat(copies):
    """MQ-40: the next messages of a queue cost as many blocks of a large table as of a small one."""
    steps = [1000, *(10 ** n for n in range(4, ROWS + 1))]
    costs, last = [], 0
    for rows in steps:
        for first in range(last + 1, rows, MILLION):
            copies.sql(FILL.format(first, min(first + MILLION - 1, rows)))
        copies.sql("VACUUM ANALYZE sluice.items")
        costs.append(blocks(copies))
        last = rows
    assert max(costs) <= costs[0] + 10, costs  # a few levels of the index, and rows that are further apart
