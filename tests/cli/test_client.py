"""Every command that speaks to a server, against a real one, as a person or script uses it."""
import itertools
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "integration"))
sys.path.insert(0, str(Path(__file__).parents[1] / "lib"))
from redis import Redis  # noqa: E402
from served import Server, until  # noqa: E402

SLUICE = os.environ["SLUICE"]
LIMIT = 60  # seconds for what should take a moment
COMMANDS = ("push,pull,work,ack,nack,extend,stats,topics,peek,browse,get,delete,top,status,"
            "queue list,queue show,queue set,queue pause,queue drain,queue resume,queue purge,queue limits,queue shares,queue kinds,queue priorities,queue keys,queue holds,queue hold,queue release,queue breakers,queue break,queue mend,"
            "queue delete,queue apply,queue export,dlq list,"
            "dlq groups,dlq show,dlq redrive,dlq delete,dlq purge,schedule set,schedule list,schedule show,schedule next,schedule delete,schedule pause,schedule resume,"
            "schedule run,task start,task list,task show,task wait,task cancel,message run,message delay,message priority,message move,message edit,message search,lock list,lock force-release,worker list,worker quiet,worker resume,worker stop,admin backup,admin restore,"
            "admin log-level,admin reload,admin config,admin audit,admin migrate-shard,admin node,admin projection,completion,queue dequeue,queue ack,queue nack,queue extend,"
            "lock acquire,lock keepalive,lock release,lock run,state get,state put,state edit,"
            "state rm,subscribe,watch,inbox,torture,help,version,result,why,history,context add,context use,context list,context show,context rename,context remove").split(",")
count = itertools.count(1)


class Cli:
    """`sluice` with a server and a queue that no other test has."""

    def __init__(self, server, address, folder):
        self.server, self.address, self.folder = server, address, folder
        self.queue = f"q{next(count)}"
        server.namespace, server.topic = "default", self.queue
        self.env = {**os.environ, "SLUICE_SERVER": address}
        self.env.pop("NO_COLOR", None)

    def start(self, *args, **options):
        return subprocess.Popen([SLUICE, *map(str, args)], env=self.env, cwd=self.folder,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                stdin=options.pop("stdin", subprocess.DEVNULL),
                                text=True, **options)

    def try_(self, *args, stdin=b""):
        stdin = stdin if isinstance(stdin, bytes) else stdin.encode()
        return subprocess.run([SLUICE, *map(str, args)], env=self.env, cwd=self.folder,
                              capture_output=True, input=stdin, timeout=LIMIT)

    def __call__(self, *args, stdin=b""):
        """Must succeed; what it printed."""
        done = self.try_(*args, stdin=stdin)
        assert done.returncode == 0, (args, done.stdout, done.stderr)
        return done.stdout.decode()

    def push(self, *args, **more):
        return [int(i) for i in self("push", self.queue, *args, **more).split()]

    def lines(self, *args):
        return [json.loads(line) for line in self(*args, "--json").splitlines()]

    def stats(self):
        return self.lines("stats", self.queue)[0]

    def counts(self, done):
        """What a `work --json` that has ended says it did."""
        out, err = done.communicate(timeout=LIMIT)
        assert done.returncode == 0, (out, err)
        return {k: v for k, v in json.loads(out.splitlines()[-1]).items() if v}

    def file(self, name):
        return (self.folder / name).read_text() if (self.folder / name).exists() else ""


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("served") / "data") as server:
        yield server
        assert server.process.poll() is None, server.said()


@pytest.fixture
def cli(shared, tmp_path):
    cli = Cli(shared, "%s:%d" % shared.address, tmp_path)
    shared.policy(retry={"kind": "fixed", "base": "10ms", "jitter": "none"})
    return cli


@pytest.fixture
def own(tmp_path):
    """A server of the test's own, on a unix socket that it keeps when it comes again."""
    with Server(tmp_path / "data", "--listen", f"unix:{tmp_path}/s") as server:
        yield Cli(server, f"unix:{tmp_path}/s", tmp_path)


# --- tasks ----------------------------------------------------------------------

def test_tasks(cli):
    """task start, list, show, wait, cancel"""
    cli("push", cli.queue, *("a", "b", "c"), "--quiet")
    dry = cli("task", "start", "move", cli.queue, "--to", "other", "--dry-run", "--wait")
    assert dry.endswith(" done: 3 messages match, 0 of them would be refused\n")
    task = cli("task", "start", "move", cli.queue, "--to", "other", "--rate", "1000").strip()
    assert cli("task", "wait", task) == f"task {task} done: 3 messages done, 0 refused\n"
    assert json.loads(cli("task", "show", task, "--json"))["done"] == 3
    listed = cli("task", "list").splitlines()
    assert listed[0].split()[:4] == ["TASK", "ACTION", "QUEUE", "STATE"] and listed[1].split()[:4] == [task, "move", cli.queue, "done"]
    assert json.loads(cli("task", "cancel", task, "--json"))["state"] == "done"
    refused = cli.try_("task", "start", "delete", "other")
    assert refused.returncode == 2 and b"--yes" in refused.stderr
    slow = cli("task", "start", "delete", "other", "--rate", "1", "--yes").strip()
    cli("task", "cancel", slow)
    canceled = cli.try_("task", "wait", slow)
    assert canceled.returncode == 1 and b"canceled" in canceled.stdout
    cli("push", "third", "a", "b", "--quiet")
    cli("task", "start", "delay", "third", "--for", "1h", "--wait")
    assert cli("task", "start", "run", "third", "--start-in", "100ms", "--wait").endswith(" done: 2 messages done, 0 refused\n")
    gone = cli.try_("task", "show", "17")
    assert gone.returncode == 3 and b"namespace default has no task 17" in gone.stderr


# --- schedules ------------------------------------------------------------------

def test_schedules(cli):
    """schedule set, list, show, next, pause, resume, run, delete"""
    cli("schedule", "set", "nightly", "0 2 * * *", cli.queue, "all", "--zone", "Europe/Berlin", "--jitter", "5m",
        "--missed", "all:3", "--overlap", "skip", "--message", '{"priority": 1}')
    shown = json.loads(cli("schedule", "show", "nightly", "--json"))
    assert shown["message"] == {"queue": cli.queue, "text": "all", "priority": 1}
    assert (shown["zone"], shown["jitter"], shown["missed"], shown["overlap"]) == ("Europe/Berlin", "5m", "all:3", "skip")
    assert cli("schedule", "next", "nightly").split() == shown["next"]
    listed = cli("schedule", "list").splitlines()
    assert listed[0].split()[:3] == ["SCHEDULE", "WHEN", "ZONE"] and "nightly" in listed[1]
    message = cli("schedule", "run", "nightly").strip()
    assert str(cli.server.take()["id"]) == message
    cli("schedule", "pause", "nightly")
    assert cli("schedule", "next", "nightly") == ""
    cli("schedule", "resume", "nightly")
    cli("schedule", "delete", "nightly")
    gone = cli.try_("schedule", "show", "nightly")
    assert gone.returncode == 3 and b"namespace default has no schedule nightly" in gone.stderr
    assert b"expected 5 fields of cron" in cli.try_("schedule", "set", "x", "often", cli.queue).stderr


# --- push and pull ---------------------------------------------------------------

def test_what_was_pushed_is_pulled_in_order_and_is_gone_once_acked(cli):
    ids = cli.push("one", "two", "three")
    assert len(ids) == 3
    assert cli("pull", cli.queue, "--ack") == "one"
    assert cli("pull", cli.queue, "--ack", "--limit", 10) == "two\nthree\n"
    assert cli.try_("pull", cli.queue).returncode == 3
    assert cli.stats()["total"] == 0


@pytest.mark.parametrize("payload", [b"", b"\x00\xff\n\x00", "grüß\n".encode(), b"x" * 3000000],
                         ids=["empty", "binary", "text", "3MB"])
def test_payloads_come_back_byte_by_byte(cli, payload):
    cli.push("-", stdin=payload)
    (cli.folder / "f").write_bytes(payload)
    cli.push("--file", "f")
    for _ in range(2):
        done = cli.try_("pull", cli.queue, "--ack")
        assert done.returncode == 0 and done.stdout == payload


def test_lines_of_stdin_are_messages(cli):
    lines = [f"line {i}" for i in range(2500)] + [""]
    assert len(cli.push("--lines", stdin="\n".join(lines) + "\n")) == 2501
    got = [cli("pull", cli.queue, "--ack", "--limit", 1000) for _ in range(3)]
    assert "".join(got) == "\n".join(lines) + "\n"


def test_what_was_pulled_is_acked_a_hundred_at_a_time(cli):
    cli.push("--lines", stdin="\n".join(map(str, range(250))) + "\n")
    before = cli.server.metric('sluice_ops_total{verb="ack"}')
    assert cli("pull", cli.queue, "--ack", "--limit", 1000).split() == [*map(str, range(250))]
    assert cli.server.metric('sluice_ops_total{verb="ack"}') == before + 3
    assert cli.stats()["total"] == 0


def test_an_ack_that_comes_too_late_is_told_by_its_id(cli):
    """The lease ends while nobody reads what is pulled."""
    id_, = cli.push("x" * 100000)
    p = cli.start("pull", cli.queue, "--ack", "--lease", "100ms")
    until(lambda: cli.server.peek(id=id_)[0]["failure_attempts"] == 1)
    out, err = p.communicate(timeout=60)
    assert p.returncode == 1 and len(out) == 100000 and str(id_) in err
    assert cli.stats()["total"] == 1


def test_a_line_is_sent_before_the_next_one_comes(cli):
    p = cli.start("push", cli.queue, "--lines", stdin=subprocess.PIPE)
    p.stdin.write("first\n")
    p.stdin.flush()
    assert int(p.stdout.readline()) > 0
    p.stdin.write("no end")
    out, _ = p.communicate(timeout=LIMIT)
    assert p.returncode == 0 and int(out) > 0
    assert cli.stats()["ready"] == 2


def test_json_lines_are_kept_as_json_and_checked(cli):
    cli("push", cli.queue, "--json-lines", "--quiet", stdin='{"a": 1}\n\n[2]\n')
    assert cli("pull", cli.queue, "--ack", "--limit", 2) == '{"a": 1}\n[2]\n'
    bad = cli.try_("push", cli.queue, "--json-lines", stdin='1\n{"a":}\n')
    assert bad.returncode == 1 and b"line 2 of stdin: invalid JSON" in bad.stderr


def test_options_of_push_reach_the_message(cli):
    cli.push("low", "--priority", "low")
    cli.push("x", "--priority", "-3", "--key", "k 1", "--correlation-id", "c-1",
             "--max-attempts", 2, "--ttl", "1h")
    cli.push("later", "--delay", "1h")
    first, = cli.lines("pull", cli.queue)
    assert (first["priority"], first["key"], first["correlation_id"], first["max_attempts"]) \
        == (-3, "k 1", "c-1", 2)
    assert (cli.stats()["ready"], cli.stats()["delayed"]) == (1, 1)


def test_an_idempotency_key_is_accepted_once(cli):
    first = cli.push("a", "--idempotency-key", "k")
    assert cli.push("a", "--idempotency-key", "k") == first
    assert cli.stats()["total"] == 1


def test_push_tells_scripts_what_is_a_duplicate(cli):
    first, = cli.lines("push", cli.queue, "a", "--idempotency-key", "k", "--json")
    again, = cli.lines("push", cli.queue, "b", "--idempotency-key", "k", "--json")
    assert not first["duplicate"] and again == {**first, "duplicate": True}


def test_push_prints_json_for_scripts(cli):
    pushed, = cli.lines("push", cli.queue, "x")
    got, = cli.lines("pull", cli.queue)
    assert (got["id"], got["uid"]) == (pushed["id"], pushed["uid"])
    assert got["lease_id"] and got["fencing_token"] and got["payload"] == "eA=="


def test_namespaces_are_apart(cli):
    cli.push("x", "--namespace", "other")
    assert cli.try_("pull", cli.queue).returncode == 3
    assert cli("pull", cli.queue, "--namespace", "other") == "x"


def test_pull_says_on_stderr_what_settling_needs(cli):
    id_, = cli.push("x", "--key", "k")
    done = cli.try_("pull", cli.queue, "--lease", "5m")
    assert done.stdout == b"x"
    said = re.match(rb"(\d+)  lease (\S+)  token (\d+)  until \S+  attempt 1  key k\n", done.stderr)
    assert said and int(said[1]) == id_
    cli("ack", id_, "--lease-id", said[2].decode(), "--token", said[3].decode())


def test_pull_waits_for_a_message(cli):
    p = cli.start("pull", cli.queue, "--wait", "1h", "--ack")
    until(lambda: cli.server.metric('sluice_waiting{shard="0"}') > 0)
    cli.push("at last")
    out, _ = p.communicate(timeout=LIMIT)
    assert (p.returncode, out) == (0, "at last")


def test_pull_waits_no_longer_than_told(cli):
    begin = time.monotonic()
    assert cli.try_("pull", cli.queue, "--wait", "300ms").returncode == 3
    assert time.monotonic() - begin >= 0.3


# --- settling --------------------------------------------------------------------

def test_ack_by_id_and_a_second_time(cli):
    id_, = cli.push("x")
    got, = cli.lines("pull", cli.queue)
    cli("ack", got["uid"])
    again = cli.try_("ack", id_)
    assert again.returncode == 3 and str(id_).encode() in again.stderr


def test_a_receipt_settles_alone(cli):
    cli.push("x", "y")
    one, two = cli.lines("pull", cli.queue, "--limit", 2)
    cli("extend", one["receipt"], "--lease", "10m")
    cli("nack", one["receipt"], "--delay", "0", "--error", "no")
    again, = cli.lines("pull", cli.queue)
    assert again["id"] == one["id"] and again["failure_attempts"] == 1
    late = cli.try_("ack", one["receipt"])
    assert late.returncode == 1 and b"lease" in late.stderr
    outcomes = cli.lines("ack", again["receipt"], two["receipt"], "--result", "1")
    assert [o["id"] for o in outcomes] == [one["id"], two["id"]]
    gone = cli.try_("ack", two["receipt"])
    assert gone.returncode == 3 and str(two["id"]).encode() in gone.stderr


def test_a_receipt_of_pull_is_taken_by_the_queue_commands(cli):
    cli.push("x")
    got, = cli.lines("pull", cli.queue)
    cli("queue", "extend", "--receipt", got["receipt"], "--by", "5m")
    cli("queue", "nack", "--receipt", got["receipt"])
    got, = cli.lines("pull", cli.queue)
    cli("queue", "ack", "--receipt", got["receipt"])
    assert cli.try_("queue", "ack", "--receipt", got["receipt"]).returncode == 3
    assert cli.stats()["total"] == 0


def test_what_is_neither_receipt_nor_id_is_a_wrong_call(cli):
    cli.push("x")
    receipt = cli.lines("pull", cli.queue)[0]["receipt"]
    for word in (receipt[:-1], "x", "l-17"):
        done = cli.try_("ack", word)
        assert done.returncode == 2 and b"expected a receipt, an id or a UUID" in done.stderr
    done = cli.try_("ack", receipt, "--token", 1)
    assert done.returncode == 2 and b"a receipt contains them" in done.stderr


def test_a_rounded_id_is_refused_as_such(cli):
    """What jq makes of an id; a UUID is never taken for that."""
    cli.push("x")
    cli("pull", cli.queue)
    for verb in ("ack", "nack", "extend"):
        done = cli.try_(verb, 362387865600004096)
        assert done.returncode == 1 and b"rounded by a JSON parser" in done.stderr, done
        assert cli.try_(verb, "01a0e029-5400-7004-8000-000000000000").returncode == 3
    done = cli.try_("get", cli.queue, 362387865600004100)
    assert done.returncode == 1 and b"rounded by a JSON parser" in done.stderr, done


def test_a_wrong_lease_is_refused(cli):
    id_, = cli.push("x")
    cli("pull", cli.queue)
    for verb in ("ack", "nack", "extend"):
        done = cli.try_(verb, id_, "--token", 1)
        assert done.returncode == 1 and b"lease" in done.stderr
    assert cli.stats()["leased"] == 1


def test_a_nack_keeps_the_error_and_the_message(cli):
    id_, = cli.push("x")
    cli("pull", cli.queue)
    cli("nack", id_, "--error", "no carrier", "--delay", "1h")
    waiting, = cli.lines("peek", cli.queue, "--state", "delayed")
    assert (waiting["error"], waiting["failure_attempts"]) == ("no carrier", 1)


def test_a_nack_may_defer_or_kill(cli):
    a, b = cli.push("a", "b")
    cli("pull", cli.queue, "--limit", 2)
    cli("nack", a, "--defer", "--delay", "0")
    cli("nack", b, "--dead", "--error", "never")
    again, = cli.lines("pull", cli.queue)
    assert (again["id"], again["attempts"], again["failure_attempts"]) == (a, 2, 0)
    dead, = cli.lines("dlq", "list", cli.queue)
    assert (dead["id"], dead["reason"], dead["error"]) == (b, "rejected", "never")


def test_peek_shows_the_nine_fields_of_a_record(cli):
    """MQ-37"""
    id_, = cli.push("x", "--priority", "3")
    got, = cli.lines("pull", cli.queue)
    shown, = cli.lines("peek", cli.queue, "--state", "all")
    nine = {k: shown.pop(k) for k in ("id", "namespace", "topic", "status", "priority", "payload",
                                      "deliver_after", "lease_expires_at", "created_at")}
    assert nine == {
        "id": id_, "namespace": "default", "topic": cli.queue, "status": "leased", "priority": 3,
        "payload": got["payload"], "deliver_after": got["deliver_after"],
        "lease_expires_at": got["lease_expires_at"], "created_at": got["enqueued_at"]}


def test_extend_moves_the_end_of_the_lease(cli):
    cli.push("x")
    got, = cli.lines("pull", cli.queue, "--lease", "1m")
    later, = cli.lines("extend", got["id"], "--lease-id", got["lease_id"], "--lease", "1h")
    assert later["lease_expires_at"] > got["lease_expires_at"]


def test_several_ids_at_once_each_with_its_outcome(cli):
    ids = cli.push("a", "b")
    cli("pull", cli.queue, "--limit", 2)
    done = cli.try_("ack", ids[0], 12345, ids[1])
    assert done.returncode == 3 and done.stderr.count(b"\n") == 1 and b"12345" in done.stderr
    assert cli.stats()["total"] == 0


def test_why_prints_the_reasons(cli):
    first, = cli.push("x", "--key", "k")
    second, = cli.push("y", "--key", "k")
    assert cli("why", first) == "no consumer is waiting\n"
    assert cli("why", second) == f"behind message {first} of its key, which is ready\n"
    got, = cli.lines("why", second, "--queue", cli.queue)
    assert got["reason"] == "behind" and got["reasons"][0]["behind"] == int(first)
    assert cli.try_("why", "1").returncode == 3


def test_why_prints_what_a_batch_waits_for(cli):
    batch = cli("batch", "create", "all", "--callback", f"{cli.queue}-over").strip()
    member = cli.push("x", "y", "--batch", batch)[0]
    cli("batch", "close", batch)
    assert cli("why", batch) == ("the batch waits for 2 of 2 members: 0 done, 0 failed\n"
                                 f"batch {batch}: closed, 2 members, 0 done, 0 failed, 2 to come\n")
    assert cli("why", member).splitlines()[-1] == f"member of batch {batch}: closed, 2 members, 0 done, 0 failed, 2 to come"


def test_a_result_is_kept_for_the_producer(cli):
    id_, = cli.push("x", "--keep-result", "1m")
    cli("pull", cli.queue)
    cli("ack", id_, "--result", '{"n":1}')
    answer = cli.server.get("/result", **cli.server.here(id=id_))
    assert answer.body["result"] == {"n": 1}
    bad = cli.try_("ack", id_, "--result", "done")
    assert bad.returncode == 2 and b"invalid --result" in bad.stderr


# --- looking ---------------------------------------------------------------------

def test_stats_counts_by_state_as_table_and_json(cli):
    cli.push("a", "b", "c")
    cli.push("d", "--delay", "1h")
    cli("pull", cli.queue)
    heads, row = cli("stats", cli.queue).splitlines()
    assert dict(zip(heads.split(), row.split())) == {
        "QUEUE": cli.queue, "READY": "2", "DELAYED": "1", "LEASED": "1", "HELD": "0",
        "DEAD": "0", "DAMAGED": "0", "TOTAL": "4", "PAUSED": "false"}
    assert cli.stats()["ready"] == 2
    assert cli.queue in [q["topic"] for q in cli.lines("stats")]
    assert re.search(rf"^{cli.queue} +4$", cli("topics"), re.M)


def test_what_is_not_there_exits_3(cli):
    for args in (["stats", "nosuch"], ["peek", "nosuch"], ["dlq", "list", "nosuch"],
                 ["pull", "nosuch"], ["topics", "--namespace", "nosuch"]):
        done = cli.try_(*args)
        assert done.returncode == 3 and done.stdout == b"" and done.stderr, args


def test_peek_takes_nothing(cli):
    a, b = cli.push("first", "a\x1b[31mred")
    table = cli("peek", cli.queue)
    assert [str(i) in table for i in (a, b)] == [True, True]
    assert "first" in table and "\x1b" not in table
    assert [m["id"] for m in cli.lines("peek", cli.queue, "--limit", 1)] == [a]
    assert [m["id"] for m in cli.lines("peek", cli.queue, "--id", b)] == [b]
    assert cli.stats()["ready"] == 2


def test_keys_are_listed_deepest_first(cli):
    for key, n in (("a", 1), ("b", 3)):
        for _ in range(n):
            cli("push", cli.queue, "x", "--key", key)
    deep, flat = cli.lines("queue", "keys", cli.queue)
    assert (deep["key"], deep["messages"], deep["held"], deep["front_state"]) == ("b", 3, 2, "ready")
    assert (flat["key"], flat["messages"], flat["held"]) == ("a", 1, 0)
    assert cli("queue", "keys", cli.queue, "--limit", 1).splitlines()[0].split()[:3] == ["MESSAGES", "HELD", "KEY"]
    assert cli.try_("queue", "keys", "nosuch").returncode == 3


def test_dead_letters_are_listed_redriven_and_deleted(cli):
    ids = cli.push("a", "b", "c", "d")
    cli("pull", cli.queue, "--limit", 4)
    cli("nack", *ids, "--dead", "--error", "no")
    assert [m["id"] for m in cli.lines("dlq", "list", cli.queue)] == ids
    assert "rejected" in cli("dlq", "list", cli.queue)
    group, = cli.lines("dlq", "groups", cli.queue)
    assert (group["count"], group["error"], group["reason"]) == (4, "no", "rejected")
    assert cli("dlq", "groups", cli.queue).splitlines()[0].split()[:3] == ["COUNT", "GROUP", "REASON"]
    assert cli("dlq", "redrive", cli.queue, "--group", group["group"], "--dry-run") == "4 would be redriven\n"
    assert cli.try_("dlq", "groups", "nosuch").returncode == 3
    assert cli("dlq", "redrive", cli.queue, ids[0]) == "1 redriven\n"
    assert cli("dlq", "delete", cli.queue, ids[1], "--yes", "--json") == '{"deleted":1}\n'
    missing = cli.try_("dlq", "delete", cli.queue, ids[1], ids[2], "--yes")
    assert missing.returncode == 3 and str(ids[1]).encode() in missing.stderr
    assert cli("dlq", "redrive", cli.queue, "--all") == "1 redriven\n"
    assert cli.stats()["ready"] == 2 and cli.stats()["dead"] == 0
    assert cli.try_("dlq", "delete", cli.queue).returncode == 2


def test_status_names_the_server(cli):
    said = dict(line.split(None, 1) for line in cli("status").splitlines())
    assert (said["server"], said["ready"], said["engine"], said["durability"]) == \
        (cli.address, "yes", "log", "sync")
    status, = cli.lines("status")
    assert status["shards"] >= 1 and status["ready"] is True and status["version"]
    assert 0 <= status["uptime_seconds"] < 3600 and re.match(r"[0-9hm]+s?$", said["uptime"])


def status_of(server, *args, code=0):
    done = subprocess.run([SLUICE, "status", *args], capture_output=True, text=True, timeout=LIMIT,
                          env={**os.environ, "SLUICE_SERVER": "%s:%d" % server.address})
    assert done.returncode == code, (done.stdout, done.stderr)
    return json.loads(done.stdout) if "--json" in args else done.stdout


def test_status_needs_no_token_and_shows_the_rest_if_it_may(tmp_path):
    (tmp_path / "secret").write_text("x" * 40)
    with Server(tmp_path / "data", "--auth-secret-file", str(tmp_path / "secret"), engine="memory") as server:
        told = status_of(server, "--json")
        assert told["ready"] is True and told["status"] == "ready" and "token" in told["details_error"]
        assert [told[k] for k in ("version", "shards", "queues", "messages", "uptime_seconds")] == [None] * 5
        said = status_of(server)
        assert re.search("^ready +yes$", said, re.M) and re.search("^more .*token", said, re.M)
        assert "messages" not in said and "queues" not in said
        (tmp_path / "token").write_text(subprocess.run(
            [SLUICE, "token", "--secret-file", tmp_path / "secret", "*:read"], capture_output=True, text=True).stdout)
        told = status_of(server, "--json", "--token-file", tmp_path / "token")
        assert told["queues"] == 0 and told["messages"]["ready"] == 0 and told["details_error"] is None


@pytest.mark.parametrize("lanes, engine, shards", [(3, "memory", 3), (3, "redis", 1)])
def test_status_counts_shards_and_not_lanes(tmp_path, lanes, engine, shards):
    with Redis(tmp_path / "redis") as redis:
        more = ["--redis-address", redis.address] if engine == "redis" else []
        with Server(tmp_path / "data", "--shards", str(lanes), *more, engine=engine) as server:
            assert status_of(server, "--json")["shards"] == shards


def test_status_counts_a_shard_of_several_connections_once(tmp_path):
    (tmp_path / "map.yaml").write_text("sharding: {enabled: true, defaultShard: fast}\n"
                                       "redis.shards: {fast: {engine: memory, poolSize: 4}}\n")
    with Server(tmp_path / "data", "--config", str(tmp_path / "map.yaml"), engine="memory") as server:
        told = status_of(server, "--json")
        assert told["shards"] == 1 and told["shard_map"]["version"] is not None


def test_status_shows_warnings_and_what_is_unknown(tmp_path):
    with Redis(tmp_path / "redis", "--appendfsync", "everysec") as redis, \
            Server(tmp_path / "data", "--shards", "2", "--redis-address", redis.address, engine="redis") as server:
        warning, = status_of(server, "--json")["warnings"]
        assert warning["warning"] == "weak_persistence" and redis.address in warning["message"]
        assert re.search("^warning +weak_persistence: default: redis .*everysec", status_of(server), re.M)
        redis.kill()
        until(lambda: server.get("/readyz").status == 503)
        until(lambda: "sluice_queues 0" not in server.get("/metrics").text)
        told = status_of(server, "--json", code=1)
        assert told["ready"] is False and len(told["reasons"]) == 1 and told["partial"] is True
        assert told["queues"] is None and told["messages"] is None and told["version"]
        assert re.search("^ready +no: .*redis", status_of(server, code=1), re.M)


# --- calls that go wrong -----------------------------------------------------------

@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(cli, command):
    text = cli(*command.split(), "--help")
    assert text.startswith(f"usage: sluice {command}")
    assert re.search(r"\nexamples:\n  (source <\(|eval \"\$\(|jq .*\| |EDITOR=\S+ )?sluice ", text)


@pytest.mark.parametrize("group", ["queue", "dlq", "admin", "lock", "state", "context"])
def test_a_command_with_commands_of_its_own_lists_them(cli, group):
    names = re.findall(r"^  (\S+) ", cli(group, "--help"), re.M)
    assert {f"{group} {name}" for name in names} - {"admin journal", "admin store"} <= set(COMMANDS) and names
    assert cli.try_(group).returncode == 2


@pytest.mark.parametrize("args, says", [
    (["push"], "usage: sluice push QUEUE"),
    (["push", "q"], "missing payload"),
    (["push", "q", "x", "--lines"], "more than one source"),
    (["push", "q", "x", "y", "--idempotency-key", "k"], "single message"),
    (["push", "q", "x", "--prio", "1"], "did you mean --priority?"),
    (["push", "q", "x", "--key", ""], "invalid --key: empty"),
    (["push", "q", "x", "--delay", "5"], "--delay: "),
    (["pull", "q", "extra"], "extra"),
    (["pull", "q", "--limit", "1001"], "expected 1 to 1000"),
    (["pull", "q", "--server", "nohost:x"], "host:port"),
    (["ack", "abc"], "invalid message: \"abc\""),
    (["nack", "1", "--defer", "--dead"], "exclude each other"),
    (["work", "q"], "COMMAND"),
    (["work", "q", "--concurrency", "5000", "--", "true"], "at most 1024"),
    (["dlq", "lsit", "q"], "did you mean list?"),
    (["pul", "q"], "did you mean pull?"),
])
def test_a_wrong_call_says_what_is_wrong_and_exits_2(cli, args, says):
    done = cli.try_(*args)
    assert done.returncode == 2 and says in done.stderr.decode() and done.stdout == b""


def test_the_server_names_what_it_refuses(cli):
    done = cli.try_("push", ".bad", "x")
    assert done.returncode == 1 and b"queue" in done.stderr and b".bad" in done.stderr
    done = cli.try_("push", cli.queue, "x", "--priority", "urgent")
    assert done.returncode == 2 and b"priority" in done.stderr and b"urgent" in done.stderr


@pytest.mark.parametrize("command", [["push", "q", "x"], ["pull", "q"], ["stats"], ["status"],
                                     ["ack", "1"], ["dlq", "list", "q"]])
def test_no_server_says_how_to_start_one(tmp_path, command):
    done = subprocess.run([SLUICE, *command, "--server", f"unix:{tmp_path}/none"],
                          capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 1
    assert f"no server at unix:{tmp_path}/none" in done.stderr and "`sluiced`" in done.stderr


def test_a_file_that_is_not_there_is_named(cli):
    done = cli.try_("push", cli.queue, "--file", "none.txt")
    assert done.returncode == 1 and b"none.txt: No such file" in done.stderr


def on_terminal(cli, *args, **env):
    """What is printed when stdout is a terminal."""
    ours, theirs = pty.openpty()
    done = subprocess.Popen([SLUICE, *args], env={**cli.env, **env}, stdout=theirs,
                            stderr=subprocess.PIPE)
    os.close(theirs)
    text = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:
            break
        if not piece:
            break
        text += piece
    os.close(ours)
    done.communicate(timeout=LIMIT)
    return text


def test_colours_are_for_terminals_alone(cli):
    cli.push("x")
    assert b"\x1b[1m" in on_terminal(cli, "stats", cli.queue)
    assert b"\x1b" not in on_terminal(cli, "stats", cli.queue, NO_COLOR="1")
    assert b"\x1b" not in cli.try_("stats", cli.queue).stdout


# Clear the screen, its C1 form, text that runs backwards, a byte that is no character.
NASTY = "ä\x1b[2J\u009b2J\u202egpj.exe\x7f\n".encode() + b"\xff\xe2\x80"
SHOWN = "ä\\x1b[2J\\u009b2J\\u202egpj.exe\\x7f"


def test_control_characters_are_escaped_in_tables(cli):
    id_, = cli.push("-", stdin=NASTY)
    for args in (["peek", cli.queue], ["browse", cli.queue], ["get", id_]):
        table = cli(*args)
        assert SHOWN + "\\n\\xff\\xe2\\x80" in table, args
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", table)


def test_a_terminal_gets_payloads_escaped_unless_raw_is_wanted(cli):
    for command in (["pull", cli.queue, "--ack"], ["subscribe", cli.queue, "--count", "1"]):
        cli.push("-", stdin=NASTY)
        shown = on_terminal(cli, *command).decode().replace("\r\n", "\n")
        assert shown.rstrip("\n") == SHOWN + "\n\\xff\\xe2\\x80"
        cli.push("-", stdin=NASTY)
        assert on_terminal(cli, *command, "--raw").replace(b"\r\n", b"\n").rstrip(b"\n") == NASTY
        cli.push("-", stdin=NASTY)
        assert cli.try_(*command).stdout.rstrip(b"\n") == NASTY  # no terminal
    cli("state", "put", f"{cli.queue}/s", '"\u202e"')
    assert b'"\\u202e"' in on_terminal(cli, "state", "get", f"{cli.queue}/s")
    assert "\u202e".encode() in on_terminal(cli, "state", "get", f"{cli.queue}/s", "--raw")


def test_a_character_that_two_pieces_share_is_shown_whole(cli):
    cli.push("-", stdin=b"x" + "\u20ac".encode() * 40000)
    shown = on_terminal(cli, "subscribe", cli.queue, "--count", "1").decode()
    assert shown.strip() == "x" + "\u20ac" * 40000


def test_a_full_stdout_is_a_failure_and_acks_nothing(cli):
    cli.push("x")
    with open("/dev/full", "w") as full:
        done = subprocess.run([SLUICE, "pull", cli.queue, "--ack"], env=cli.env, stdout=full,
                              stderr=subprocess.PIPE, timeout=LIMIT)
    assert done.returncode == 1 and b"No space left" in done.stderr
    assert cli.stats()["leased"] == 1


# --- work ------------------------------------------------------------------------

def work(cli, *args, options=("--idle", "300ms")):
    return cli.start("work", cli.queue, "--json", *options, "--", *args)


def test_a_child_gets_payload_and_metadata_and_its_exit_0_acks(cli):
    id_, = cli.push("hello", "--key", "k", "--correlation-id", "c")
    done = work(cli, "sh", "-c", "cat > payload; env | grep ^SLUICE_ > env && "
                f"{SLUICE} extend $SLUICE_RECEIPT --lease 1m", options=["--max", "1"])
    assert cli.counts(done) == {"done": 1}
    assert cli.file("payload") == "hello"
    env = dict(line.split("=", 1) for line in cli.file("env").splitlines())
    assert int(env.pop("SLUICE_FENCING_TOKEN")) > 0 and env.pop("SLUICE_LEASE_ID")
    assert env.pop("SLUICE_RECEIPT")
    assert env.pop("SLUICE_UID").startswith("01") and env.pop("SLUICE_LEASE_EXPIRES_AT")
    assert env == {
        "SLUICE_ID": str(id_), "SLUICE_QUEUE": cli.queue, "SLUICE_NAMESPACE": "default",
        "SLUICE_ATTEMPTS": "1", "SLUICE_FAILURE_ATTEMPTS": "0", "SLUICE_PRIORITY": "5",
        "SLUICE_KEY": "k", "SLUICE_CORRELATION_ID": "c",
        "SLUICE_CONTENT_TYPE": "text/plain; charset=utf-8", "SLUICE_SERVER": cli.address}
    assert cli.stats()["total"] == 0


def test_sluice_in_a_command_uses_the_namespace_of_its_worker(cli):
    cli("push", cli.queue, "x", "--namespace", "shop")
    done = cli.start("work", cli.queue, "--json", "--max", "1", "--namespace", "shop", "--",
                     "sh", "-c", f"{SLUICE} push {cli.queue}-made y")
    assert cli.counts(done) == {"done": 1}
    assert cli("pull", f"{cli.queue}-made", "--namespace", "shop") == "y"
    assert cli.try_("pull", f"{cli.queue}-made").returncode == 3


def test_every_command_reads_the_namespace_of_the_environment(cli):
    cli.env["SLUICE_NAMESPACE"] = f"env-{cli.queue}"
    id_, = cli.push("x")
    assert [m["id"] for m in cli.lines("peek", cli.queue)] == [id_]
    assert cli.lines("stats")[0]["ready"] == 1 and len(cli.lines("topics")) == 1
    assert {q["namespace"] for q in cli.lines("queue", "list")} == {f"env-{cli.queue}"}
    assert {q["namespace"] for q in cli.lines("top", "--once")} == {f"env-{cli.queue}"}
    assert len(cli.lines("queue", "list", "--all")) >= 1 and len(cli.lines("top", "--once", "--all")) >= 1
    assert cli.try_("pull", cli.queue, "--namespace", "default").returncode == 3  # the option wins
    cli("queue", "pause", cli.queue)
    cli("queue", "resume", cli.queue)
    cli("lock", "acquire", "k")
    assert cli.try_("lock", "acquire", "k", "--block", "0").returncode != 0
    cli("lock", "acquire", "k", "--block", "0", "--namespace", f"other-{cli.queue}")
    assert cli("pull", cli.queue, "--ack") == "x"


@pytest.mark.parametrize("command, outcome, error", [
    ("echo oops >&2; exit 3", "failed", "exit status 3: oops"),
    ("kill -SEGV $$", "failed", "killed by signal 11 (Segmentation fault)"),
    ("kill -KILL $$", "failed", "killed by signal 9 (Killed)"),
    ("echo never >&2; exit 100", "dead", "exit status 100: never"),
    ("exit 75", "deferred", "exit status 75"),
])
def test_the_exit_decides(cli, command, outcome, error):
    cli.server.policy(retry={"kind": "fixed", "base": "1h", "jitter": "none"})
    cli.push("x")
    assert cli.counts(work(cli, "sh", "-c", command, options=["--max", "1"])) == {outcome: 1}
    m, = cli.lines("peek", cli.queue, "--state", "all")
    assert m.get("error") == error
    assert m["failure_attempts"] == {"failed": 1, "dead": 1, "deferred": 0}[outcome] or \
        outcome == "dead"
    assert m["status"] == "dead" if outcome == "dead" else m["status"] in ("delayed", "ready")


def test_a_crashing_child_is_tried_until_it_is_a_dead_letter(cli):
    cli.push("x", "--max-attempts", 3)
    done = work(cli, "sh", "-c", "echo . >> tries; kill -ABRT $$")
    assert cli.counts(done) == {"failed": 3}
    assert cli.file("tries").count(".") == 3
    dead, = cli.lines("dlq", "list", cli.queue)
    assert dead["reason"] == "max_attempts" and "signal 6" in dead["error"]


def test_the_error_is_the_tail_of_stderr_and_stderr_is_passed_on(cli):
    cli.push("x")
    done = work(cli, "sh", "-c", "seq 10000 >&2; exit 1", options=["--max", "1"])
    out, err = done.communicate(timeout=LIMIT)
    assert "\n1\n2\n" in "\n" + err
    m, = cli.lines("peek", cli.queue, "--state", "all")
    assert m["error"].endswith("\n9999\n10000") and len(m["error"]) < 1100


def test_a_child_need_not_read_its_stdin(cli):
    cli.push("-", stdin=b"x" * 1000000)
    assert cli.counts(work(cli, "true", options=["--max", "1"])) == {"done": 1}


def test_a_large_payload_reaches_the_child_whole(cli):
    cli.push("-", stdin=b"y" * 3000000)
    assert cli.counts(work(cli, "sh", "-c", "wc -c > n", options=["--max", "1"])) == {"done": 1}
    assert int(cli.file("n")) == 3000000


def test_a_lease_is_kept_while_the_child_runs(cli):
    cli.push("x")
    done = work(cli, "sh", "-c", "sleep 2; echo $SLUICE_ATTEMPTS > tries",
                options=["--max", "1", "--lease", "500ms"])
    assert cli.counts(done) == {"done": 1}
    assert cli.file("tries") == "1\n"
    assert cli.stats()["total"] == 0


def test_a_lost_lease_kills_the_child_and_all_it_started(cli):
    id_, = cli.push("x")
    done = work(cli, "sh", "-c", "(sleep 3; echo late > late) & touch begun; wait",
                options=["--max", "1", "--lease", "500ms"])
    until(lambda: (cli.folder / "begun").exists())
    cli("ack", id_)  # somebody settles it by its id
    assert cli.counts(done) == {"lost": 1}
    time.sleep(3)  # what must not happen has no sign to wait for
    assert cli.file("late") == ""


def test_a_canceled_message_ends_its_child_and_is_gone(cli):
    """WORK-9"""
    id_, = cli.push("x")
    done = work(cli, "sh", "-c", "trap 'echo ended > ended; exit 1' TERM; touch begun; while :; do sleep 0.05; done",
                options=["--max", "1", "--lease", "2s"])
    until(lambda: (cli.folder / "begun").exists())
    assert json.loads(cli("message", "cancel", id_, "--yes", "--json"))["running"] is True
    assert cli.counts(done) == {"canceled": 1}
    assert cli.file("ended") == "ended\n"
    assert cli.stats()["total"] == 0


def test_concurrency_runs_so_many_at_a_time(cli):
    cli.push("--lines", stdin="".join(f"{i}\n" for i in range(8)))
    done = work(cli, "sh", "-c", "touch in.$SLUICE_ID; while [ ! -e go ]; do sleep 0.02; done",
                options=["--max", "8", "--concurrency", "4"])
    running = until(lambda: len(list(cli.folder.glob("in.*"))) == 4 or None)
    assert running and cli.stats()["leased"] == 4
    (cli.folder / "go").touch()
    assert cli.counts(done) == {"done": 8}


def test_messages_of_a_key_keep_their_order_with_any_concurrency(cli):
    for i in range(12):
        cli.push(f"{i}", "--key", "k")
    done = work(cli, "sh", "-c", "read n || true; echo $n >> order",
                options=["--max", "12", "--concurrency", "4"])
    assert cli.counts(done) == {"done": 12}
    assert cli.file("order").split() == [str(i) for i in range(12)]


def test_max_and_idle_end_the_work(cli):
    cli.push("--lines", stdin="1\n2\n3\n4\n5\n")
    assert cli.counts(work(cli, "true", options=["--max", "2", "--concurrency", "4"])) == \
        {"done": 2}
    assert cli.counts(work(cli, "true", options=["--idle", "200ms"])) == {"done": 3}


def test_a_stop_lets_the_child_finish_and_takes_no_more(cli):
    cli.push("a", "b")
    done = work(cli, "sh", "-c", "touch begun; while [ ! -e go ]; do sleep 0.02; done; cat >> out",
                options=())
    until(lambda: (cli.folder / "begun").exists())
    done.send_signal(signal.SIGTERM)
    until(lambda: "stopping" in done.stderr.readline())
    (cli.folder / "go").touch()
    assert cli.counts(done) == {"done": 1}
    assert cli.file("out") == "a" and cli.stats()["ready"] == 1


def test_a_stop_ends_a_wait_at_once(cli):
    done = work(cli, "true", options=["--concurrency", "3"])
    until(lambda: cli.server.metric('sluice_waiting{shard="0"}') >= 3)
    done.send_signal(signal.SIGINT)
    assert cli.counts(done) == {}
    cli.push("x")
    assert cli.stats()["ready"] == 1


def test_a_second_signal_kills_and_gives_back_without_a_failure(cli):
    id_, = cli.push("x")
    done = work(cli, "sh", "-c", "touch begun; sleep 60", options=())
    until(lambda: (cli.folder / "begun").exists())
    done.send_signal(signal.SIGTERM)
    until(lambda: "stopping" in done.stderr.readline())
    done.send_signal(signal.SIGTERM)
    assert cli.counts(done) == {"returned": 1}
    got, = cli.lines("pull", cli.queue)
    assert (got["id"], got["failure_attempts"]) == (id_, 0)


def runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def pids(cli, n):
    """The n processes that a command named in the file pids."""
    return until(lambda: [int(p) for p in cli.file("pids").split()] if
                 len(cli.file("pids").splitlines()) == n and cli.file("pids").endswith("\n") else None)


# A child, a grandchild in a session of its own, one whose parent has ended, one that ignores SIGTERM.
FAMILY = """
echo $$ >> pids
setsid sh -c 'echo $$ >> pids; exec sleep 600' &
(setsid sh -c 'echo $$ >> pids; exec sleep 600' &)
sh -c 'trap "" TERM; echo $$ >> pids; while :; do sleep 600; done' &
"""


def test_a_killed_worker_takes_all_that_its_command_started_along(cli):
    cli.push("x")
    done = work(cli, "sh", "-c", FAMILY + "wait", options=())
    family = pids(cli, 4)
    assert all(runs(p) for p in family)
    done.kill()
    done.communicate(timeout=LIMIT)
    until(lambda: not any(runs(p) for p in family))


def test_two_processes_share_a_queue_and_no_message_runs_twice(cli):
    """PW-F6: each holds its first message until the other has one, too."""
    payloads = [f"m{n}" for n in range(40)]
    cli.push(*payloads)
    command = ("echo $PPID >> workers; while [ $(sort -u workers | wc -l) -lt 2 ]; do sleep 0.02; done;"
               'echo "$(cat)" >> ran')
    both = [work(cli, "sh", "-c", command) for _ in range(2)]
    counts = [cli.counts(done)["done"] for done in both]
    assert min(counts) >= 1 and sum(counts) == len(payloads)
    assert sorted(cli.file("ran").split()) == sorted(payloads)


def test_a_job_of_a_killed_worker_runs_again_and_counts_one_failure(cli):
    """PW-F8: kill -9 in the middle of a job."""
    cli.push("x")
    command = "echo $SLUICE_ATTEMPTS $SLUICE_FAILURE_ATTEMPTS >> tries; [ $SLUICE_ATTEMPTS -gt 1 ] || sleep 600"
    killed = work(cli, "sh", "-c", command, options=["--lease", "1s"])
    tries = cli.folder / "tries"
    until(lambda: tries.exists() and tries.read_text() == "1 0\n")
    killed.kill()
    killed.communicate(timeout=LIMIT)
    done = work(cli, "sh", "-c", command, options=["--max", "1"])
    assert cli.counts(done) == {"done": 1}
    assert tries.read_text() == "1 0\n2 1\n"


def test_what_a_command_left_in_the_background_has_ended_when_its_message_is_settled(cli):
    cli.push("x")
    done = work(cli, "sh", "-c", FAMILY + "while [ $(wc -l < pids) -lt 4 ]; do sleep 0.02; done",
                options=["--max", "1"])
    assert cli.counts(done) == {"done": 1}
    assert not any(runs(p) for p in pids(cli, 4))


def test_a_command_that_hangs_is_ended_and_has_failed_once(cli):
    cli.server.policy(retry={"kind": "fixed", "base": "1h", "jitter": "none"})
    cli.push("x")
    done = work(cli, "sh", "-c", "echo stuck >&2; trap '' TERM;" + FAMILY + "while :; do sleep 1; done",
                options=["--max", "1", "--timeout", "2s"])
    assert cli.counts(done) == {"failed": 1}
    m, = cli.lines("peek", cli.queue, "--state", "all")
    assert (m["failure_attempts"], m["error"]) == (1, "timed out after 2s: stuck")
    assert not any(runs(int(p)) for p in cli.file("pids").split())


def test_a_command_that_hangs_may_end_in_its_own_way(cli):
    cli.push("x")
    done = work(cli, "sh", "-c", "trap 'echo bye > bye; exit 0' TERM; while :; do sleep 0.02; done",
                options=["--max", "1", "--timeout", "500ms"])
    assert cli.counts(done) == {"failed": 1}
    assert cli.file("bye") == "bye\n"


def test_a_long_lived_child_that_hangs_is_replaced(cli):
    cli.server.policy(retry={"kind": "fixed", "base": "1h", "jitter": "none"})
    (cli.folder / "worker.sh").write_text(
        'while read -r line; do case $line in *hang*) sleep 600;; esac; echo \'{"outcome":"ack"}\'; done\n')
    ids = cli.push("hang", "go")
    done = work(cli, "sh", "worker.sh", options=["--max", "2", "--lines", "--timeout", "2s"])
    assert cli.counts(done) == {"done": 1, "failed": 1}
    m, = cli.lines("peek", cli.queue, "--state", "all")
    assert (m["id"], m["error"]) == (ids[0], "timed out after 2s")


def test_a_command_that_kills_its_own_group_decides_by_its_exit(cli):
    cli.push("x")
    done = work(cli, "sh", "-c", "trap 'exit 0' TERM; kill 0; exit 3", options=["--max", "1"])
    assert cli.counts(done) == {"done": 1}


def test_a_command_that_cannot_be_run_costs_no_message_an_attempt(cli):
    cli.push("x")
    for command in ("./none", "no-such-command"):
        done = work(cli, command)
        _, err = done.communicate(timeout=LIMIT)
        assert done.returncode == 1 and "cannot run" in err
    (cli.folder / "bad").write_text("#!/no/such/interpreter\n")
    (cli.folder / "bad").chmod(0o755)
    done = work(cli, "./bad")
    _, err = done.communicate(timeout=LIMIT)
    assert done.returncode == 1 and "cannot run ./bad" in err
    m, = cli.lines("peek", cli.queue, "--state", "all")
    assert m["failure_attempts"] == 0


def test_lines_on_descriptor_3_are_enqueued_with_the_ack(cli):
    cli.push("good", "bad", "failed", "far")
    command = f"""
        read -r word
        if [ "$word" = bad ]; then echo nonsense >&3; exit 0; fi
        if [ "$word" = far ]; then echo '{{"queue":"b/c","text":"x"}}' >&3; exit 0; fi
        echo '{{"queue":"{cli.queue}-next","text":"a"}}' >&3
        [ "$word" = good ] || exit 100
        echo '' >&3
        printf '%s' ' {{ "namespace": "default", "queue":"{cli.queue}-next","text":"b"}}' >&3
    """
    done = work(cli, "sh", "-c", command, options=["--max", "4"])
    assert cli.counts(done) == {"done": 1, "failed": 2, "dead": 1}
    assert [m["text"] for m in cli.server.get("/peek", namespace="default", topic=f"{cli.queue}-next", **{"as": "text"}).body["messages"]] == ["a", "b"]
    errors = [m.get("error", "") for m in cli.lines("peek", cli.queue, "--state", "all")]
    assert any("invalid line 1 on descriptor 3" in e for e in errors), errors
    assert any("the messages were refused: " in e for e in errors), errors


def test_a_name_that_the_server_refuses_ends_the_work(cli):
    done = cli.start("work", ".bad", "--", "true")
    _, err = done.communicate(timeout=LIMIT)
    assert done.returncode == 1 and "queue" in err


# --- work with lines ---------------------------------------------------------------

LINES = """
import json, os, sys
for line in sys.stdin:
    m = json.loads(line)
    open("pids", "a").write(f"{os.getpid()}\\n")
    word = m.get("text", "binary")
    if word == "crash": os.kill(os.getpid(), 11)
    if word == "leave": sys.exit(0)
    if word == "nonsense": print("what?", flush=True); continue
    if word == "twice": sys.stdout.write('{"outcome":"ack"}\\n' * 2); sys.stdout.flush(); continue
    if word == "other": print('{"outcome":"ack","id":1}', flush=True); continue
    if word == "other uid": print('{"outcome":"ack","uid":"x"}', flush=True); continue
    if word == "other rounded": print('{"outcome":"ack","id":362387865600004096}', flush=True); continue
    answer = {"outcome": word if word in ("nack", "defer", "dead") else "ack"}
    if word != "ack": answer["error"] = "because"
    if word == "ack": answer["result"] = {"id": m["id"]}
    if word == "parent": answer["enqueue"] = [{"queue": m["queue"] + "-next", "text": "child"}]
    if word in ("nack", "defer"): answer["delay"] = "1h"
    print(json.dumps(answer), flush=True)
"""


def work_lines(cli, *options):
    (cli.folder / "worker.py").write_text(LINES)
    return work(cli, sys.executable, "worker.py", options=["--lines", *options])


def test_an_answer_line_may_enqueue(cli):
    cli.push("parent")
    assert cli.counts(work_lines(cli, "--max", "1")) == {"done": 1}
    assert cli.lines("stats", f"{cli.queue}-next")[0]["ready"] == 1


def test_a_long_lived_child_answers_lines(cli):
    ids = cli.push("ack", "nack", "defer", "dead", "--keep-result", "1m")
    cli.push("-", stdin=b"\xff")
    assert cli.counts(work_lines(cli, "--max", "5")) == \
        {"done": 2, "failed": 1, "deferred": 1, "dead": 1}
    assert len(set(cli.file("pids").split())) == 1
    assert cli.server.get("/result", **cli.server.here(id=ids[0])).body["result"] == \
        {"id": ids[0]}
    errors = {m["id"]: (m["status"], m.get("error"), m["failure_attempts"])
              for m in cli.lines("peek", cli.queue, "--state", "all")}
    assert errors[ids[1]] == ("delayed", "because", 1)
    assert errors[ids[2]][0] == "delayed" and errors[ids[2]][2] == 0
    assert errors[ids[3]][:2] == ("dead", "because")


NODE_LINES = """
const lines = require("readline").createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const { id, uid } = JSON.parse(line);
  console.log(JSON.stringify({ outcome: "ack", id, uid }));
});
"""


def test_a_long_lived_child_in_node_may_repeat_the_id(cli):
    """JSON.parse rounds it."""
    cli.push(*(str(i) for i in range(20)))
    (cli.folder / "worker.js").write_text(NODE_LINES)
    done = work(cli, "node", "worker.js", options=["--lines", "--max", "20"])
    assert cli.counts(done) == {"done": 20}


@pytest.mark.parametrize("word, error", [
    ("crash", "signal 11"), ("leave", "without an answer"), ("nonsense", "malformed answer"),
    ("twice", "one line"), ("other", "another message"), ("other uid", "another message"),
    ("other rounded", "another message")])
def test_a_long_lived_child_that_breaks_is_replaced(cli, word, error):
    cli.push(word, "--max-attempts", 1)
    cli.push("ack", "again")
    assert cli.counts(work_lines(cli, "--max", "3")) == {"failed": 1, "done": 2}
    assert len(set(cli.file("pids").split())) == 2
    dead, = cli.lines("dlq", "list", cli.queue)
    assert error in dead["error"]


def test_an_answer_before_the_message_was_read_is_no_answer(cli):
    cli.push("-", "--max-attempts", 1, stdin=b"x" * 3000000)
    done = work(cli, "sh", "-c", "echo '{\"outcome\":\"ack\"}'; exec sleep 60",
                options=["--lines", "--max", "1"])
    assert cli.counts(done) == {"failed": 1}
    assert cli.stats()["dead"] == 1


def test_long_lived_children_work_side_by_side(cli):
    cli.push("--lines", stdin="x\n" * 200)
    assert cli.counts(work_lines(cli, "--max", "200", "--concurrency", "3")) == {"done": 200}
    assert 1 <= len(set(cli.file("pids").split())) <= 3


# --- a server that goes and comes ----------------------------------------------------

def test_a_worker_outlives_its_server_and_goes_on(own):
    own.push("first")
    done = work(own, "sh", "-c", "cat >> out; echo >> out", options=())
    until(lambda: "first" in own.file("out"))
    own.server.kill()
    until(lambda: "; retrying" in done.stderr.readline())
    own.server.start()
    own.push("second")
    until(lambda: "second" in own.file("out"))
    done.send_signal(signal.SIGTERM)
    assert own.counts(done) == {"done": 2}


def test_an_ack_is_repeated_until_the_server_is_back(own):
    own.push("x")
    done = work(own, "sh", "-c", "touch begun; while [ ! -e go ]; do sleep 0.02; done",
                options=["--max", "1"])
    until(lambda: (own.folder / "begun").exists())
    own.server.kill()
    (own.folder / "go").touch()
    until(lambda: "; retrying" in done.stderr.readline())
    own.server.start()
    assert own.counts(done) == {"done": 1}
    assert own.stats()["total"] == 0


def test_a_lease_that_cannot_be_kept_kills_the_child(own):
    own.push("x")
    done = work(own, "sh", "-c", "touch begun; sleep 60",
                options=["--max", "1", "--lease", "500ms"])
    until(lambda: (own.folder / "begun").exists())
    own.server.kill()
    assert own.counts(done) == {"lost": 1}


def test_a_server_that_stops_is_not_held_up_by_waiting_workers(own):
    done = work(own, "true", options=["--concurrency", "3"])
    until(lambda: own.server.metric('sluice_waiting{shard="0"}') >= 3)
    begin = time.monotonic()
    own.server.stop()
    assert time.monotonic() - begin < 10
    done.send_signal(signal.SIGTERM)
    assert own.counts(done) == {}


def test_a_restart_of_the_server_loses_and_doubles_nothing(own):
    own.push("--lines", stdin="".join(f"{i}\n" for i in range(300)))
    done = work(own, "sh", "-c", "cat > got.$SLUICE_ID",
                options=["--concurrency", "4", "--max", "300", "--lease", "20s"])
    for _ in range(3):
        before = len(list(own.folder.glob("got.*")))
        until(lambda: len(list(own.folder.glob("got.*"))) > before + 20)
        own.server.restart("kill")
    assert sum(own.counts(done).values()) == 300
    assert len(list(own.folder.glob("got.*"))) == 300
    assert own.stats()["total"] == 0


# --- bench -------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["enqueue", "cycle", "dequeue", "latency", "healthz"])
def test_a_bench_measures_a_server_of_its_own(tmp_path, name):
    done = subprocess.run([SLUICE, "bench", name, "--for", "300ms", "--messages", "2000",
                           "--batch", "10", "--connections", "8", "--dir", tmp_path, "--json"],
                          capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["messages"] > 0 and said["messages_per_second"] > 0
    assert 0 < said["request_us"]["p50"] <= said["request_us"]["p99"] <= said["request_us"]["p999"]
    assert said["durability"] == "sync" and said["fsync_p50_us"] > 0 and said["hardware"]
    assert said["cpu_us_per_message"] > 0
    assert ("delivered_after_us" in said) == (name == "latency")
    assert list(tmp_path.iterdir()) == []


def test_a_bench_gives_its_messages_shares_keys_and_attributes(cli):
    cli("bench", "enqueue", "--server", cli.address, "--queue", "named", "--for", "200ms", "--batch", 10,
        "--connections", 2, "--shares", 3, "--keys", 20, "--hosts", 2)
    got = cli.lines("browse", "named", "--namespace", "bench", "--limit", 200)
    assert {m["share"] for m in got} == {"s0", "s1", "s2"}
    assert len({m["key"] for m in got}) == 20 and {m["attributes"]["host"] for m in got} == {"h0", "h1"}


def test_a_cycle_acks_all_it_took(cli):
    done = cli("bench", "cycle", "--server", cli.address, "--pid", cli.server.process.pid,
               "--for", "300ms", "--batch", 7, "--connections", 4, "--json")
    said = json.loads(done)
    left = [q for q in cli.lines("stats", "--namespace", "bench") if q["total"] and q["queue"] != "named"]
    assert said["messages"] > 0 and left == [] and said["cpu_us_per_message"] > 0


def test_bench_raw_compares_in_turns(tmp_path):
    done = subprocess.run([SLUICE, "bench", "raw", "--for", "100ms", "--rounds", "1",
                           "--connections", "8", "--dir", tmp_path, "--json"],
                          capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    rows = {r["name"]: r for r in json.loads(done.stdout)["rows"]}
    assert len(rows) == 6 and all(r["ours"] > 0 for r in rows.values())
    assert all(r["bare"] > 0 for name, r in rows.items() if "bare" in name)
    assert list(tmp_path.iterdir()) == []


def test_bench_backlog_compares_a_long_queue_with_a_short_one(tmp_path):
    done = subprocess.run([SLUICE, "bench", "backlog", "--messages", "30000", "--rounds", "1",
                           "--batch", "100", "--dir", tmp_path, "--json"],
                          capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert len(rows) == 3 and all(r["ours"] > 0 for r in rows)
    assert list(tmp_path.iterdir()) == []


def test_bench_prints_a_table(tmp_path):
    done = subprocess.run([SLUICE, "bench", "enqueue", "--for", "200ms", "--engine", "memory",
                           "--dir", tmp_path], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    assert "engine memory, durability none" in done.stdout
    assert re.search(r"^\d+ messages/s .* server CPU", done.stdout, re.M)
    assert "P50 us  P99 us  P999 us" in re.sub(" +P", "  P", done.stdout)


@pytest.mark.parametrize("args, says", [
    (["cycle", "--batch", "1001"], "batches of 1000"),
    (["cycle", "--pid", "1"], "--pid needs --server"),
    (["cycle", "--server", "x:1", "--sync", "none"], "started here"),
    (["cycle", "extra"], "unexpected word"),
    (["raw", "--rounds", "16"], "15 rounds"),
    (["backlog", "--server", "x:1"], "starts its own"),
    (["backlog", "--messages", "50000"], "more messages"),
    (["cycle", "--conections", "1"], "did you mean --connections?"),
])
def test_a_wrong_bench_says_what_is_wrong(args, says):
    done = subprocess.run([SLUICE, "bench", *args], capture_output=True, text=True,
                          timeout=LIMIT)
    assert done.returncode == 2 and says in done.stderr


# --- a server that restarts -------------------------------------------------------------


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return sock.getsockname()[1]


@pytest.mark.parametrize("words", [["push", "q", "x"], ["stats"], ["queue", "list"]])
def test_a_command_waits_for_a_server_that_restarts(tmp_path, words):
    """It stops: 503. Then nobody is there, then another. Nothing of that has been work."""
    address = f"127.0.0.1:{free_port()}"
    options = ("--listen", address, "--drain", "60s", "--log-level", "debug")
    with Server(tmp_path / "data", *options, engine="log") as server:
        kept = server.connect()  # as long as it is there, the server drains
        kept.request("GET", "/healthz")
        kept.getresponse().read()
        server.enqueue({"text": "first"}, namespace="default", topic="q")
        server.close()
        server.process.send_signal(signal.SIGTERM)
        until(lambda: "event=stopping" in server.said())
        runs = subprocess.Popen([SLUICE, *words, "--server", address, "--timeout", "60s"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if words[0] == "push":  # others are answered to the end
            until(lambda: server.said().count("route=/enqueue status=503") >= 2)
        kept.close()
        assert server.wait() == 0
        server.start()
        said, errors = runs.communicate(timeout=LIMIT)
        assert runs.returncode == 0 and not errors, (said, errors)
        server.namespace, server.topic = "default", "q"
        assert server.stats()["ready"] == (2 if words[0] == "push" else 1)


def test_an_address_where_nobody_listens_is_told_soon(tmp_path):
    began = time.monotonic()
    done = subprocess.run([SLUICE, "push", "q", "x", "--server", f"127.0.0.1:{free_port()}"],
                          capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 1 and "no server at" in done.stderr
    assert time.monotonic() - began < 25, "and not after --timeout"


def test_history_prints_a_line_for_each_step(cli):
    cli("push", cli.queue, "x")
    lines = cli("history").splitlines()
    assert lines[0].split()[:3] == ["IN/S", "DONE/S", "FAILED/S"] and len(lines) == 61
    answer, = cli.lines("history", cli.queue, "--range", "1h")
    assert answer["range"] == "1h" and len(answer["in"]) == answer["steps"] == 60
    answer, = cli.lines("history", "--storage")
    assert answer["step_ms"] == 10000 and "in" not in answer
    assert cli("history", "--storage").split()[:2] == ["SYNCS/S", "SYNC"]
    refused = cli.try_("history", cli.queue, "--range", "7d")
    assert refused.returncode != 0 and b"expected 10m or 1h" in refused.stderr
