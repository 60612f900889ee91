"""A server whose log lives in a real PostgreSQL database."""
import contextlib
import os
import subprocess
import threading

import pytest

from onstore import all_texts, check_another_machine, check_large_group, check_takeover, stored
from postgres import PROGRAMS, Postgres, bouncer
from served import Node, Refused, texts, until

SLUICE = os.environ.get("SLUICE")
LONG = "LONG" in os.environ  # the suite of long tests


@pytest.fixture(scope="module")
def database():
    with Postgres() as db:
        yield db


schemas = (f"s{n}" for n in range(1000))


@pytest.fixture
def store(database):
    """The URL of an empty store in the database."""
    return database.url(next(schemas))


def put_until_accepted(server, text):
    until(lambda: server.post("/enqueue", [server.here(text=text)]).status == 200)


def test_what_was_accepted_is_found_by_another_machine(tmp_path, store):
    check_another_machine(tmp_path, store)


def test_a_call_of_15_mb_is_one_group(tmp_path, store):
    check_large_group(tmp_path, store)


def test_a_second_server_takes_over(tmp_path, store):
    check_takeover(tmp_path, store)


def test_a_database_that_dies_delays_and_loses_nothing(tmp_path):
    """MQ-44: what was answered is there; what was not is 503, and the server goes on by itself."""
    with Postgres() as db, stored(tmp_path / "one", db.url(), "--store-patience", "500ms") as server:
        accepted = []
        for n in range(3):
            put_until_accepted(server, f"m{n}")
            accepted.append(f"m{n}")
            db.stop()
            refused = server.post("/enqueue", [server.here(text=f"lost{n}")])
            assert refused.status == 503
            db.start()
        until(lambda: server.post("/enqueue", [server.here(text="last")]).status == 200)
        found = [text for text in all_texts(server, len(accepted) + 1) if not text.startswith("lost")]
        while messages := server.dequeue(limit=100):
            found += [text for text in texts(messages) if not text.startswith("lost")]
        assert sorted(found) == ["last", *accepted]


TWO = """
sharding:
  enabled: true
  defaultShard: east
  tenantOverrides: {{west: west}}
shards:
  east: {{engine: log, store: "{}", poolSize: 2}}
  west: {{engine: log, store: "{}", poolSize: 2, storePatience: 500ms}}
"""


def test_a_database_that_is_down_stops_its_own_queues_alone(tmp_path, store):
    """MQ-44, MQ-45, MQ-47, MQ-48: the queues of the other database go on, and nothing is missing afterwards."""
    queues = [f"q{n}" for n in range(8)]
    with Postgres() as west, Node(tmp_path, TWO.format(store, west.url()), engine="log") as server:
        def put(space, queue, text):
            return server.post("/enqueue", [{"namespace": space, "topic": queue, "text": text}]).status

        def found(space, queue):
            return sorted(texts(server.peek(namespace=space, topic=queue, limit=100)))

        for space in "east", "west":
            for queue in queues:
                assert [put(space, queue, text) for text in "abc"] == [200] * 3
        listed = server.get("/v1/admin/queues", limit=1000).body["queues"]  # of every shard: a queue is on one
        assert sorted((q["namespace"], q["topic"], q["shard"], q["ready"]) for q in listed) == [
            (space, queue, space, 3) for space in ("east", "west") for queue in queues]
        west.stop()
        for queue in queues:
            assert put("west", queue, "unknown") == 503
            assert server.get("/dequeue", namespace="west", topic=queue).status == 503
            assert put("east", queue, "d") == 200 and found("east", queue) == ["a", "b", "c", "d"]
        west.start()
        for queue in queues:
            until(lambda queue=queue: put("west", queue, "d") == 200)
            assert {"a", "b", "c", "d"} <= set(found("west", queue)) <= {"a", "b", "c", "d", "unknown"}


def test_a_commit_is_on_disk_whatever_the_database_prefers(tmp_path):
    """The database answers before it syncs; a put does not."""
    with Postgres("synchronous_commit = off\nwal_writer_delay = 10s\n") as db:
        with stored(tmp_path / "one", db.url()) as server:
            server.enqueue({"text": "a"})
            db.stop()
            server.kill()
            db.start()
        with stored(tmp_path / "two", db.url()) as server:
            assert all_texts(server, 1) == ["a"]


def test_a_database_that_does_not_sync_is_refused(tmp_path):
    with Postgres("fsync = off\n") as db:
        with pytest.raises(Refused) as refused:
            stored(tmp_path / "one", db.url())
        assert "fsync or full_page_writes off" in str(refused.value)
        with stored(tmp_path / "two", db.url(), "--store-unsafe"):
            pass


@pytest.mark.parametrize("change,why", [
    (("schema=", "schema=Not-"), "invalid schema: Not-"),
    (("/postgres?", "/absent?"), 'database "absent" does not exist'),
    (("postgres@", "nobody@"), 'role "nobody" does not exist'),
])
def test_a_wrong_url_is_refused_by_name(tmp_path, store, change, why):
    with pytest.raises(Refused) as refused:
        stored(tmp_path / "one", store.replace(*change, 1))
    assert why in str(refused.value)


class Replica(Postgres):
    """A copy of a server that follows it."""

    def __init__(self, primary):
        self.primary = primary
        super().__init__()

    def make(self):
        self.run("pg_basebackup", "-h", "127.0.0.1", "-p", str(self.primary.port), "-U", "postgres", "-D", str(self.data), "-R", "-c", "fast")

    def part(self):
        """Follow no longer."""
        self.sql("ALTER SYSTEM SET primary_conninfo = ''")
        self.sql("SELECT pg_reload_conf()")
        until(lambda: self.sql("SELECT count(*) FROM pg_stat_wal_receiver") == "0")


def test_a_replica_that_lags_gets_back_what_it_lacks(tmp_path):
    """LINE-15: the owner has the groups that a failover lost, and puts them again."""
    with Postgres() as primary, Replica(primary) as copy:
        url = f"postgres://postgres@127.0.0.1:{primary.port},127.0.0.1:{copy.port}/postgres"
        with stored(tmp_path / "one", url) as server:
            server.enqueue({"text": "early"})
            until(lambda: copy.sql("SELECT to_regclass('sluice.object') IS NOT NULL") == "t")
            copy.part()
            server.enqueue(*[{"text": f"late{n}"} for n in range(5)])
            primary.stop()
            copy.sql("SELECT pg_promote()")
            put_until_accepted(server, "after")
            until(lambda: "store went back" in server.said())
            server.kill()
        with stored(tmp_path / "two", url) as server:
            assert all_texts(server, 7) == ["after", "early"] + [f"late{n}" for n in range(5)]


def test_a_synchronous_replica_lacks_nothing(tmp_path):
    """Failover to a standby that confirms every commit: the next request goes there, and the store did not go back."""
    with Postgres() as primary, Replica(primary) as copy:
        primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.sql("SELECT pg_reload_conf()")
        until(lambda: primary.sql("SELECT sync_state FROM pg_stat_replication") == "sync")
        url = f"postgres://postgres@127.0.0.1:{primary.port},127.0.0.1:{copy.port}/postgres"
        with stored(tmp_path / "one", url) as server:
            server.enqueue(*[{"text": f"m{n}"} for n in range(5)])
            server.ack(server.dequeue(limit=1)[0])
            primary.stop()
            copy.sql("SELECT pg_promote()")
            put_until_accepted(server, "after")
            assert "store went back" not in server.said()
            server.kill()
        with stored(tmp_path / "two", url) as server:
            assert all_texts(server, 5) == ["after"] + [f"m{n}" for n in range(1, 5)]


def test_a_dump_of_a_running_store_is_a_backup(tmp_path):
    """docs/operations.md: whatever the server writes meanwhile, a dump is sound and has what was answered before it began."""
    with Postgres() as db, stored(tmp_path / "one", db.url()) as server, contextlib.ExitStack() as stack:
        server.enqueue(*[{"text": f"m{n}"} for n in range(20)])
        server.ack(server.dequeue(limit=1)[0])
        load = threading.Thread(target=lambda: [server.enqueue({"text": "later"}) for _ in range(50)])
        load.start()
        stack.callback(load.join)
        dump = db.run("pg_dump", "-h", "127.0.0.1", "-p", str(db.port), "-U", "postgres", "-n", "sluice", "postgres")
        db.sql("CREATE DATABASE copy")
        copy = db.url().replace("/postgres?", "/copy?")
        subprocess.run([f"{PROGRAMS}/psql", "-h", "127.0.0.1", "-p", str(db.port), "-U", "postgres", "-Xq", "-v", "ON_ERROR_STOP=1", "copy"],
                       input=dump, text=True, check=True, stdout=subprocess.DEVNULL, cwd="/")
        checked = subprocess.run([SLUICE, "admin", "store", "check", copy], capture_output=True, text=True, timeout=120)
        assert checked.returncode == 0, checked.stdout + checked.stderr
        with stored(tmp_path / "two", copy) as other:
            found = [text for text in all_texts(other, other.stats()["ready"]) if text != "later"]
            assert sorted(found) == sorted(f"m{n}" for n in range(1, 20))


def test_a_group_is_not_put_behind_a_hole(tmp_path, database):
    """LINE-5, LINE-15: the database goes back, and no connection breaks. The put itself notices the hole."""
    schema = next(schemas)
    with stored(tmp_path / "one", database.url(schema)) as server:
        server.enqueue({"text": "early"})
        server.enqueue({"text": "gone from the database"})
        gone = database.sql(f"DELETE FROM {schema}.object WHERE position('gone from'::bytea IN bytes) > 0 RETURNING name")
        assert "/group/" in gone
        put_until_accepted(server, "after")
        until(lambda: "store went back, groups put again" in server.said())
        server.kill()
    with stored(tmp_path / "two", database.url(schema)) as server:
        assert all_texts(server, 3) == ["after", "early", "gone from the database"]


def test_a_database_that_refuses_for_a_while_is_used_again(tmp_path, database):
    """As one whose disk is full: statements fail, and the connection stays."""
    schema = next(schemas)
    with stored(tmp_path / "one", database.url(schema), "--store-patience", "1s") as server:
        server.enqueue({"text": "before"})
        database.sql(f"CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'no room'; END$$;"
                     f"CREATE TRIGGER refuse BEFORE INSERT ON {schema}.object EXECUTE FUNCTION {schema}.refuse()")
        assert server.post("/enqueue", [server.here(text="meanwhile")]).status == 503
        database.sql(f"DROP TRIGGER refuse ON {schema}.object")
        put_until_accepted(server, "after")
        found = all_texts(server, server.stats()["ready"])
        assert {"before", "after"} <= set(found) <= {"before", "meanwhile", "after"}


DEAD = """SELECT coalesce(sum(n_dead_tup), 0) FROM pg_stat_all_tables WHERE relid IN
          ('sluice.object'::regclass, (SELECT reltoastrelid FROM pg_class WHERE oid = 'sluice.object'::regclass))"""


def write_mb(server, megabytes):
    server.enqueue({"text": "x" * megabytes * 1_000_000})
    server.ack(server.take())


def write_80_mb(server):
    for _ in range(8):
        write_mb(server, 10)


@contextlib.contextmanager
def old_transaction(db):
    """A transaction that may still see every row of now."""
    psql = subprocess.Popen([f"{PROGRAMS}/psql", "-h", "127.0.0.1", "-p", str(db.port), "-U", "postgres", "-Xq"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        psql.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT 1;\n")
        psql.stdin.flush()
        psql.stdout.readline()
        yield
    finally:
        psql.kill()
        psql.wait()


def test_the_table_stays_small_without_autovacuum(tmp_path):
    """VACUUM-1, VACUUM-2: the server vacuums by what it has written, and says what an old transaction keeps."""
    with Postgres("autovacuum = off\n") as db, stored(tmp_path / "one", db.url()) as server:
        def few_dead():
            """Rows may be removed, and counted by the database, after the VACUUM of their bytes: more bytes bring the next one."""
            write_mb(server, 2)
            return int(db.sql(DEAD)) < 20_000

        def write_and_clean():
            write_80_mb(server)
            until(few_dead)

        write_and_clean()
        if not LONG:
            return
        write_and_clean()
        write_and_clean()
        assert int(db.sql("SELECT pg_total_relation_size('sluice.object')")) < 200 << 20
        with old_transaction(db):
            write_80_mb(server)
            write_80_mb(server)
            until(lambda: "removed rows stay in the table of the store" in server.said())
        write_and_clean()


def test_pgbouncer_may_pool_transactions(tmp_path, database):
    with bouncer(database) as pooled, stored(tmp_path / "one", f"{pooled}?schema={next(schemas)}") as server:
        server.enqueue(*[{"text": f"m{n:02}"} for n in range(50)])
        server.kill()
        server.start()
        assert all_texts(server, 50) == [f"m{n:02}" for n in range(50)]


def test_a_server_needs_no_more_rights_than_the_printed_sql_gives(tmp_path, database):
    """`sluice admin store init --print-sql`: an administrator makes the tables."""
    schema = next(schemas)
    url = database.url(schema).replace("postgres@", f"{schema}_user@")
    database.sql(f"CREATE ROLE {schema}_user LOGIN")
    with pytest.raises(Refused) as refused:
        stored(tmp_path / "none", url)
    assert "permission denied for database postgres" in str(refused.value)
    done = subprocess.run([SLUICE, "admin", "store", "init", url, "--print-sql"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    database.sql(done.stdout)
    assert database.sql(f"SELECT has_schema_privilege('{schema}_user', '{schema}', 'CREATE')") == "f"
    with stored(tmp_path / "one", url) as server:
        server.enqueue({"text": "a"})
        assert all_texts(server, 1) == ["a"]
    done = subprocess.run([SLUICE, "admin", "store", "init", url], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.split(":")[0]) == (0, "ready"), done.stderr


def test_sql_is_printed_for_a_database_alone(tmp_path):
    done = subprocess.run([SLUICE, "admin", "store", "init", f"file://{tmp_path}/store", "--print-sql"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "a store of file:// needs no SQL" in done.stderr
    assert not (tmp_path / "store").exists()
