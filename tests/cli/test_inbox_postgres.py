"""sluice inbox --from postgres://...: messages of committed transactions, each once."""
import os
import random
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from inbox_kit import SLUICE, Inbox, once, payloads, ready, server, take_all  # noqa: F401
from served import Server, until

sys.path.insert(0, str(Path(__file__).parents[1] / "lib"))
from postgres import PROGRAMS, Postgres, bouncer, free_port  # noqa: E402

LONG = os.environ.get("INBOX_LONG")
TRANSACTIONS = 10_000 if LONG else 400


def url(db):
    return f"postgres://postgres@127.0.0.1:{db.port}/postgres"


@pytest.fixture(scope="module")
def db():
    with Postgres() as made:
        done = subprocess.run([SLUICE, "inbox", "init", "--from", url(made)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        yield made


def test_a_message_comes_with_its_transaction_or_not_at_all(db, server):
    db.sql("BEGIN; SELECT sluice.push('test', 'mail', 'committed'); COMMIT")
    db.sql("BEGIN; SELECT sluice.push('test', 'mail', 'rolled back'); ROLLBACK")
    once(server, url(db))
    assert payloads(take_all(server)) == ["committed"]
    assert db.sql("SELECT count(*) FROM sluice.inbox") == "0"


def test_a_message_has_what_push_says(db, server):
    db.sql("SELECT sluice.push('test', 'mail', '{\"a\": 1}'::jsonb, key => 'k', priority => 3, attributes => '{\"x\": \"y\"}',"
           " ttl => '1 hour', max_attempts => 7, correlation_id => 'c-1', idempotency_key => 'once')")
    db.sql("SELECT sluice.push('test', 'mail', 'again', idempotency_key => 'once')")
    db.sql("SELECT sluice.push('test', 'later', 'x', delay => '1 hour')")
    once(server, url(db))
    (message,) = take_all(server)
    assert payloads([message]) == ['{"a": 1}'] and message["content_type"] == "application/json"
    assert (message["key"], message["priority"], message["attributes"]) == ("k", 3, {"x": "y"})
    assert (message["max_attempts"], message["correlation_id"]) == (7, "c-1")
    assert server.stats(topic="later")["delayed"] == 1


def test_bytes_and_names_are_kept_and_invalid_names_fail_the_transaction(db, server):
    db.sql("SELECT sluice.push('test', 'Mail', '\\x00ff10'::bytea)")
    with pytest.raises(RuntimeError, match="invalid queue: a b; expected 1 to 128"):
        db.sql("SELECT sluice.push('test', 'a b', 'x')")
    once(server, url(db))
    assert [m["payload"] for m in take_all(server)] == ["AP8Q"]


def test_an_application_needs_usage_alone_and_cannot_replace_what_push_calls(db, server):
    """push runs with the rights of its owner: a search_path of the caller has no effect."""
    db.sql("CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA sluice TO app; CREATE SCHEMA trap AUTHORIZATION app;"
           "CREATE FUNCTION trap.jsonb_build_object(text, text) RETURNS jsonb LANGUAGE sql AS"
           " $$ SELECT pg_catalog.to_jsonb('trapped as '::text || current_user) $$")
    db.sql("SET SESSION AUTHORIZATION app; SET search_path = trap, pg_catalog;"
           "SELECT sluice.push('test', 'mail', 'x'); SELECT sluice.push('test', 'mail', 'y', key => 'k');"
           "SELECT sluice.push('test', 'mail', 'z', content_type => 'text/csv')")
    assert db.sql("SELECT options->>'content_type' FROM sluice.inbox ORDER BY id").split("\n") == ["text/plain; charset=utf-8"] * 2 + ["text/csv"]
    with pytest.raises(RuntimeError, match="permission denied"):
        db.sql("SET SESSION AUTHORIZATION app; SELECT count(*) FROM sluice.inbox")
    once(server, url(db))
    assert payloads(take_all(server)) == ["x", "y", "z"]


NAMES = ["a", "A.b_c-9", "-", "_x", "n" * 128]
NO_NAMES = ["", ".a", "a b", "a/b", "\u00e4", "n" * 129]


def test_push_knows_which_names_are_valid(db, server):
    for name in NAMES:
        db.sql(f"SELECT sluice.push('{name}', '{name}', 'x')")
    for name in NO_NAMES:
        for words in f"'{name}', 'mail'", f"'test', '{name}'":
            with pytest.raises(RuntimeError, match=f"invalid (namespace|queue): {re.escape(name)}; expected"):
                db.sql(f"SELECT sluice.push({words}, 'x')")
    once(server, url(db))
    assert db.sql("SELECT count(*) FROM sluice.inbox") == "0" and db.sql("SELECT count(*) FROM sluice.refused") == "0"


def test_what_an_inbox_has_marked_is_sent_by_the_next(db, server):
    """HANDOVER-3: the first inbox was killed before its batch was accepted."""
    db.sql("SELECT sluice.push('test', 'mail', 'marked')")
    db.sql("WITH next AS (UPDATE sluice.inbox_state SET batch = batch + 1 RETURNING batch)"
           " INSERT INTO sluice.inbox_batch SELECT next.batch, 'default', array(SELECT id FROM sluice.inbox) FROM next")
    once(server, url(db))
    assert payloads(take_all(server)) == ["marked"]
    assert db.sql("SELECT count(*) FROM sluice.inbox") == "0"


def test_rows_on_their_way_to_one_shard_are_not_found_for_another(db, server):
    """HANDOVER-4: nobody knows yet whether the shard where the queue was has accepted the batch."""
    db.sql("SELECT sluice.push('test', 'mail', 'a')")
    db.sql("WITH next AS (UPDATE sluice.inbox_state SET batch = batch + 1 RETURNING batch)"
           " INSERT INTO sluice.inbox_batch SELECT next.batch, 'elsewhere', array(SELECT id FROM sluice.inbox) FROM next")
    db.sql("SELECT sluice.push('test', 'mail', 'b')")
    with Inbox(server, url(db)) as inbox:
        until(lambda: "batch put off" in inbox.said() and ready(server) >= 1)
    assert payloads(take_all(server)) == ["b"]
    db.sql("UPDATE sluice.inbox_batch SET shard = 'default'")
    once(server, url(db))
    assert payloads(take_all(server)) == ["a"]
    assert db.sql("SELECT count(*) FROM sluice.inbox") == "0" and db.sql("SELECT count(*) FROM sluice.inbox_batch") == "0"


def psql(db, *statements):
    """A session of its own, which runs until it is ended."""
    words = [word for statement in statements for word in ("-c", statement)]
    return subprocess.Popen([f"{PROGRAMS}/psql", "-h", "127.0.0.1", "-p", str(db.port), "-U", "postgres", "-AtXq", *words],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")


def test_messages_of_a_session_keep_their_order_while_others_come(db, server):
    """Every other transaction is open for long: rows with higher ids are seen before its row."""
    stream = psql(db, "DO $$ BEGIN LOOP PERFORM sluice.push('test', 'mail', 'y'), pg_sleep(0.001); COMMIT; END LOOP; END $$")
    session = []
    for i in range(0, 8, 2):
        session += ["BEGIN", f"SELECT sluice.push('test', 'own', '{i}')", "SELECT pg_sleep(0.5)", "COMMIT",
                    f"SELECT sluice.push('test', 'own', '{i + 1}')"]
    with Inbox(server, url(db)):
        assert psql(db, *session).wait(60) == 0
        until(lambda: ready(server, "own") == 8)
        db.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'DO %'")
        stream.wait(60)
        until(lambda: db.sql("SELECT count(*) FROM sluice.inbox") == "0")
    assert payloads(take_all(server, "own")) == [str(i) for i in range(8)]
    take_all(server)


def test_a_look_does_not_read_what_is_gone(db, server):
    """The index has entries of removed rows until a VACUUM, at 5,000 messages a second 300,000 in a minute."""
    db.sql("ALTER TABLE sluice.inbox SET (autovacuum_enabled = false)")
    db.sql("INSERT INTO sluice.inbox (namespace, queue, payload) SELECT 'test', 'gone', 'x' FROM generate_series(1, 50000)")

    def reads():
        db.sql("SELECT pg_stat_force_next_flush()")
        return [int(n) for n in db.sql("SELECT idx_scan, idx_blks_hit + idx_blks_read FROM pg_stat_user_indexes JOIN pg_statio_user_indexes"
                                       " USING (indexrelid) WHERE indexrelid = 'sluice.inbox_pkey'::regclass").split("|")]

    with Inbox(server, url(db)):
        until(lambda: db.sql("SELECT count(*) FROM sluice.inbox") == "0")
        stream = psql(db, "DO $$ BEGIN FOR i IN 1..150 LOOP PERFORM sluice.push('test', 'mail', 'y'), pg_sleep(0.01); COMMIT; END LOOP; END $$")
        until(lambda: ready(server) >= 50)
        scans, blocks = reads()
        assert stream.wait(60) == 0
        until(lambda: ready(server) == 150)
        until(lambda: reads()[0] > scans + 50)
        scans, blocks = (b - a for a, b in zip((scans, blocks), reads()))
        assert blocks < 20 * scans, (blocks, scans)
    db.sql("ALTER TABLE sluice.inbox RESET (autovacuum_enabled)")
    take_all(server)


def test_a_batch_without_rows_is_forgotten(db, server):
    """The inbox was killed after it had refused the only row of a batch."""
    db.sql("INSERT INTO sluice.inbox_batch SELECT batch + 1, 'elsewhere', '{-1}' FROM sluice.inbox_state")
    db.sql("SELECT sluice.push('test', 'mail', 'a')")
    once(server, url(db))
    assert payloads(take_all(server)) == ["a"]
    assert db.sql("SELECT count(*) FROM sluice.inbox_batch") == "0"


def test_the_tables_of_an_earlier_version_are_updated(db, server):
    """Rows were marked themselves, and the table checked names."""
    db.sql("CREATE DATABASE earlier")
    there = url(db).rsplit("/", 1)[0] + "/earlier"

    def sql(text):
        return db.run("psql", "-AtXq", there, "-c", text).strip()

    sql("CREATE SCHEMA sluice; CREATE TABLE sluice.inbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, namespace text NOT NULL,"
        " queue text NOT NULL, payload bytea NOT NULL, options jsonb, shard text, batch bigint);"
        "ALTER TABLE sluice.inbox ADD CONSTRAINT inbox_queue_check CHECK (queue <> '');"
        "CREATE INDEX inbox_marked ON sluice.inbox (batch) WHERE batch IS NOT NULL;"
        "CREATE TABLE sluice.inbox_state (one boolean PRIMARY KEY DEFAULT true, source uuid NOT NULL DEFAULT gen_random_uuid(),"
        " batch bigint NOT NULL DEFAULT 0, holder uuid, seen timestamptz);"
        "INSERT INTO sluice.inbox_state (batch) VALUES (7);"
        "INSERT INTO sluice.inbox (namespace, queue, payload, shard, batch) VALUES ('test', 'mail', 'a', 'default', 7),"
        " ('test', 'mail', 'b', 'default', 7), ('test', 'mail', 'c', NULL, NULL)")
    subprocess.run([SLUICE, "inbox", "init", "--from", there], check=True, stdout=subprocess.DEVNULL, timeout=60)
    assert sql("SELECT batch, shard, ids FROM sluice.inbox_batch") == "7|default|{1,2}"
    once(server, there)
    assert payloads(take_all(server)) == ["a", "b", "c"]
    assert sql("SELECT count(*) FROM sluice.inbox") == "0" and sql("SELECT count(*) FROM sluice.inbox_batch") == "0"


def test_a_row_that_the_server_refuses_goes_to_the_refused(db, server):
    db.sql("SELECT sluice.push('test', 'mail', 'good 1'), sluice.push('test', 'mail', 'bad', max_attempts => -1),"
           " sluice.push('test', 'mail', 'good 2')")
    once(server, url(db))
    assert payloads(take_all(server)) == ["good 1", "good 2"]
    found = db.sql("DELETE FROM sluice.refused RETURNING queue, convert_from(payload, 'UTF8'), why")
    assert found.startswith("mail|bad|") and "max_attempts" in found


def test_a_full_queue_does_not_hold_up_the_others(db, server):
    assert server.call("PUT", "/policy", {"max_depth": 1}, namespace="test", topic="full").status == 200
    db.sql("SELECT sluice.push('test', 'full', 'one'), sluice.push('test', 'full', 'two'), sluice.push('test', 'free', 'three')")
    with Inbox(server, url(db)):
        until(lambda: ready(server, "free") == 1)
        found = []
        until(lambda: found.extend(take_all(server, "full")) or len(found) == 2)
        assert payloads(found) == ["one", "two"]


def test_a_push_wakes_an_inbox_that_sleeps(db, server):
    with Inbox(server, url(db)):
        until(lambda: db.sql("SELECT asleep FROM sluice.inbox_sleep") == "t")
        db.sql("SELECT sluice.push('test', 'mail', 'wake')")
        until(lambda: ready(server) == 1)
    assert payloads(take_all(server)) == ["wake"]


def test_behind_pgbouncer_an_inbox_polls_and_says_so(db, server):
    """Notices get lost in a pool of transactions."""
    with bouncer(db) as pooled, Inbox(server, pooled) as inbox:
        db.sql("SELECT sluice.push('test', 'mail', 'first')")
        until(lambda: ready(server) == 1)
        until(lambda: "inbox gets no notices, it looks every second" in inbox.said())
        assert db.sql("SELECT asleep FROM sluice.inbox_sleep") == "f"
        db.sql("SELECT sluice.push('test', 'mail', 'second')")
        until(lambda: ready(server) == 2)
    assert payloads(take_all(server)) == ["first", "second"]


def test_a_second_inbox_waits_for_the_first(db, server):
    with Inbox(server, url(db)) as first:
        until(lambda: db.sql("SELECT holder IS NOT NULL FROM sluice.inbox_state") == "t")
        with Inbox(server, url(db)) as second:
            until(lambda: "another inbox is at work" in second.said())
            first.stop()
            db.sql("SELECT sluice.push('test', 'mail', 'for the second')")
            until(lambda: ready(server) == 1)
    take_all(server)


@pytest.mark.parametrize("options, why", [
    ([], "--from is missing"),
    (["--from", "http://x"], "invalid place: http://x; expected postgres://HOST/DATABASE, file:///FOLDER, s3://BUCKET or azure://ACCOUNT/CONTAINER"),
    (["start"], "unknown word: start; expected init"),
])
def test_a_wrong_call_is_explained(server, options, why):
    done = subprocess.run([SLUICE, "inbox", *options, "--server", "http://{}:{}".format(*server.address)],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and why in done.stderr, done.stderr


def test_a_database_without_the_tables_is_explained(db, server):
    db.sql("CREATE DATABASE empty")
    done = subprocess.run([SLUICE, "inbox", "--from", f"postgres://postgres@127.0.0.1:{db.port}/empty", "--server",
                           "http://{}:{}".format(*server.address)], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "sluice inbox init" in done.stderr, done.stderr


def test_messages_wait_for_a_server_that_is_away(db, tmp_path):
    db.sql("SELECT sluice.push('test', 'mail', 'kept')")
    port = free_port()
    with Server(tmp_path / "data", "--listen", f"127.0.0.1:{port}", engine="log") as server:
        server.kill()
        with Inbox(server, url(db)) as inbox:
            inbox.stop()
            inbox.command[inbox.command.index("--server") + 1] = f"http://127.0.0.1:{port}"
            inbox.start()
            until(lambda: "inbox waits" in inbox.said())
            server.start()
            until(lambda: ready(server) == 1)
        assert payloads(take_all(server)) == ["kept"]


# --- exactly once over kills -----------------------------------------------------------

class Writer(threading.Thread):
    """Transactions of one session of psql: a third rolls back, and some stay open for a while."""

    def __init__(self, db, me, n, seed):
        super().__init__()
        self.db, self.me, self.n, self.dice = db, me, n, random.Random(seed)
        self.sent = self.committed = 0

    def script(self, first, n):
        lines = ["\\set ON_ERROR_STOP on"]
        for i in range(first, first + n):
            lines += ["BEGIN;", f"SELECT sluice.push('test', 'mail', '{self.me}-{i}');",
                      f"INSERT INTO app (name) VALUES ('{self.me}-{i}');"]
            if self.dice.random() < 0.02:
                lines.append("SELECT pg_sleep(0.3);")
            lines.append("ROLLBACK;" if self.dice.random() < 1 / 3 else "COMMIT;")
        return "\n".join(lines)

    def run(self):
        at = 0
        while at < self.n:
            n = min(50, self.n - at)
            done = subprocess.run([f"{PROGRAMS}/psql", "-h", "127.0.0.1", "-p", str(self.db.port), "-U", "postgres", "-AtXq"],
                                  input=self.script(at, n), capture_output=True, text=True, cwd="/")
            at += n  # after a failure the table `app` says what was committed
            self.sent = at
            if done.returncode:
                until(lambda: subprocess.run([f"{PROGRAMS}/pg_isready", "-q", "-h", "127.0.0.1", "-p",
                                              str(self.db.port)]).returncode == 0)


def hurt(dice, db, server, inbox):
    """One kill; what was killed starts again."""
    victim = dice.choice(["inbox", "inbox", "server", "database"])
    if victim == "inbox":
        inbox.stop(signal.SIGKILL)
        inbox.start()
    elif victim == "server":
        server.restart("kill")
    else:
        db.stop()
        db.start()


def test_the_messages_are_exactly_the_committed_ones(tmp_path):
    """Random kills of the inbox, the server and the database."""
    dice = random.Random(20261116)
    port = free_port()
    with Postgres() as db, Server(tmp_path / "data", "--listen", f"127.0.0.1:{port}", engine="log") as server:
        subprocess.run([SLUICE, "inbox", "init", "--from", url(db)], check=True, stdout=subprocess.DEVNULL)
        db.sql("CREATE TABLE app (name text)")
        inbox = Inbox(server, url(db))
        inbox.command[inbox.command.index("--server") + 1] = f"http://127.0.0.1:{port}"
        with inbox:
            writers = [Writer(db, me, TRANSACTIONS // 4, dice.random()) for me in range(4)]
            for writer in writers:
                writer.start()
            for i in range(40 if LONG else 5):
                goal = TRANSACTIONS * (i + 1) // (50 if LONG else 7)
                until(lambda goal=goal: sum(w.sent for w in writers) >= goal or not any(w.is_alive() for w in writers))
                hurt(dice, db, server, inbox)
            for writer in writers:
                writer.join()
            until(lambda: db.sql("SELECT count(*) FROM sluice.inbox") == "0")
        want = db.sql("SELECT name FROM app").split()
        got = payloads(take_all(server))
        assert sorted(got) == sorted(want)
        assert len(want) < TRANSACTIONS * 0.8
        for me in range(4):  # in the order of their commits, as long as one session pushes
            own = [name for name in got if name.startswith(f"{me}-")]
            assert own == sorted(own, key=lambda name: int(name.split("-")[1])), own
