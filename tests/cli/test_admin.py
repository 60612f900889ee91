"""What operators type: queues, messages, dead letters, backup, completion, top."""
import base64
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import termios
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from test_client import LIMIT, SLUICE, Cli, cli, shared  # noqa: F401
from redis import Redis
from served import Server, texts, until

ROOT = Path(__file__).parents[2]


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, cli, *args, rows=24, columns=120, **env):
        self.ours, self.theirs = pty.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(self.theirs)
        self.process = subprocess.Popen([SLUICE, *map(str, args)], stdin=self.theirs,
                                        stdout=self.theirs, stderr=self.theirs, cwd=cli.folder,
                                        env={**cli.env, **env}, start_new_session=True,
                                        preexec_fn=self.control)
        self.seen = b""

    def control(self):
        fcntl.ioctl(self.theirs, termios.TIOCSCTTY, 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)

    def read(self):
        if select.select([self.ours], [], [], 0.05)[0]:
            self.seen += os.read(self.ours, 65536)
        return self.seen.decode(errors="replace")

    def expect(self, pattern):
        """Wait until it is on the screen; what has been seen by then is forgotten."""
        found = until(lambda: re.search(pattern, self.read(), re.S), LIMIT)
        self.seen = b""
        return found

    def type(self, text):
        os.write(self.ours, text.encode())

    def end(self):
        """Wait for its end; the exit code, and what it has still said."""
        until(lambda: (self.read(), self.process.poll() is not None)[1], LIMIT)
        said = self.read()
        return self.process.returncode, said

    def is_as_before(self):
        return termios.tcgetattr(self.theirs) == self.before


def die(cli, *texts_, error="no such account"):
    ids = cli.push(*texts_)
    cli("pull", cli.queue, "--limit", len(ids))
    cli("nack", *ids, "--dead", "--error", error)
    return ids


# --- queues ----------------------------------------------------------------------

def test_queues_are_listed_and_shown(cli):
    cli.push("a", "b")
    assert re.search(rf"^default +{cli.queue} +2 ", cli("queue", "list"), re.M)
    listed, = [q for q in cli.lines("queue", "list", "--all") if q["topic"] == cli.queue]
    assert listed["ready"] == 2
    shown = cli("queue", "show", cli.queue)
    assert re.search(r"^ready +2$", shown, re.M) and re.search(r"^policy.lease +30s$", shown, re.M)
    assert cli.try_("queue", "list", "--namespace", "nobody").returncode == 3
    assert cli.try_("queue", "show", "nosuch").returncode == 3


def test_a_queue_is_listed_with_its_shard_where_there_are_several(cli, tmp_path):
    """SH-102: with both, while it moves."""
    text = ("sharding:\n  enabled: true\n  version: %d\n  defaultShard: one\n"
            "  commandMappings: {b: %s}\n%sredis.shards:\n  one: {engine: memory}\n  two: {engine: memory}\n")
    (tmp_path / "sluice.yaml").write_text(text % (1, "two", ""))
    cli.push("a")
    assert "SHARD" not in cli("queue", "list", "--all") + cli("stats") + cli("topics")
    with Server(tmp_path / "data", "--config", str(tmp_path / "sluice.yaml"), engine="memory",
                namespace="default") as server:
        def tells(*words):
            return subprocess.run([SLUICE, *words], check=True, capture_output=True, text=True, timeout=LIMIT,
                                  env={**cli.env, "SLUICE_SERVER": "http://%s:%d" % server.address}).stdout

        server.enqueue({}, topic="a")
        server.enqueue({}, {}, topic="b")
        assert re.findall(r"^default +(\w+) +(\w+) +(\d+) ", tells("queue", "list"), re.M) == [
            ("a", "one", "1"), ("b", "two", "2")]
        assert re.search(r"^NAMESPACE +QUEUE +SHARD +READY ", tells("queue", "list"))
        assert re.search(r"^shard +two$", tells("queue", "show", "b"), re.M)
        assert re.search(r"^b +two +2 ", tells("stats", "b"), re.M)
        (tmp_path / "sluice.yaml").write_text(
            text % (2, "one", "  previousShards: {commandMappings: {b: two}}\n"))
        tells("admin", "reload")
        server.enqueue({}, topic="b")
        assert sorted(re.findall(r"^default +(b) +(\w+) +(\d+) ", tells("queue", "list"), re.M)) == [
            ("b", "one", "1"), ("b", "two", "2")]
        assert sorted(re.findall(r"^b +(\w+) +(\d+)$", tells("topics"), re.M)) == [("one", "1"), ("two", "2")]
        assert re.findall(r"^shards +shard=(\w+) ready=(\d)", tells("queue", "show", "b"), re.M) == [
            ("one", "1"), ("two", "2")]


def test_shards_that_do_not_answer_are_named(cli, tmp_path):
    """SH-44: what is there is listed, and that something is missing is said."""
    file = tmp_path / "sluice.yaml"
    file.write_text("sharding:\n  enabled: true\n  defaultShard: local\n"
                    "  commandMappings: {far: red}\nredis.shards:\n  local: {engine: memory}\n"
                    "  red: {address: '127.0.0.1:1'}\n")
    with Server(tmp_path / "data", "--config", str(file), engine="memory", namespace="default") as server:
        server.enqueue({}, topic="near")
        done = subprocess.run([SLUICE, "queue", "list"], capture_output=True, text=True, timeout=LIMIT,
                              env={**cli.env, "SLUICE_SERVER": "http://%s:%d" % server.address})
        assert "near" in done.stdout, done
        assert "no answer from shard red" in done.stderr, done
        server.kill()  # a stop is not clean without that shard


def test_knobs_are_set_and_the_others_stay(cli):
    cli("queue", "set", cli.queue, "max_attempts=9", "retry.kind=linear", "retry.base=5s")
    cli("queue", "set", cli.queue, "require_lease=true", "lease=1m")
    policy = cli.lines("queue", "show", cli.queue) if cli.push("x") else None
    knobs = policy[0]["policy"]
    assert (knobs["max_attempts"], knobs["require_lease"], knobs["lease"]) == (9, True, "1m")
    assert (knobs["retry"]["kind"], knobs["retry"]["base"]) == ("linear", "5s")
    reset, = cli.lines("queue", "set", cli.queue, "--reset", "max_attempts=3")
    assert (reset["max_attempts"], reset["lease"], reset["retry"]["kind"]) == \
        (3, "30s", "exponential")


@pytest.mark.parametrize("args, code, says", [
    (["max_attempts"], 2, "KNOB=VALUE"), ([], 2, "nothing to set"), (["max_atempts=3"], 1, "max_atempts"),
    (["lease=forever"], 1, "lease"), (["retry.kind=wild"], 1, "exponential")], ids=str)
def test_a_wrong_knob_is_named(cli, args, code, says):
    done = cli.try_("queue", "set", cli.queue, *args)
    assert done.returncode == code and says in done.stderr.decode()


def test_a_queue_is_paused_and_resumed(cli):
    cli.push("x")
    cli("queue", "pause", cli.queue)
    assert cli.try_("pull", cli.queue).returncode == 3 and cli.stats()["paused"] is True
    cli("queue", "resume", cli.queue)
    assert cli("pull", cli.queue, "--ack") == "x"
    missing = cli.try_("queue", "pause", "tpyo")
    assert missing.returncode == 3 and b"tpyo" in missing.stderr


def test_a_pause_has_a_reason_and_an_end(cli):
    cli.push("x")
    cli("queue", "pause", cli.queue, "--for", "1h", "--reason", "release of the relay")
    assert "release of the relay" in cli("queue", "list") and "release of the relay" in cli("queue", "show", cli.queue)
    cli("queue", "resume", cli.queue)
    assert "REASON" not in cli("queue", "list")
    assert cli.try_("queue", "pause", cli.queue, "--for", "soon").returncode == 2


def test_a_queue_is_drained_and_resumed(cli):
    cli.push("x")
    cli("queue", "drain", cli.queue)
    assert "DRAINING" in cli("queue", "list")
    refused = cli.try_("push", cli.queue, "new")
    assert refused.returncode == 1 and b"takes no new messages" in refused.stderr
    still = cli.try_("queue", "drain", cli.queue, "--wait", "1ms")
    assert still.returncode == 1 and b"still has 1 messages" in still.stderr
    assert cli("pull", cli.queue, "--ack") == "x"
    cli("queue", "drain", cli.queue, "--wait", "1m")
    cli("queue", "resume", cli.queue)
    cli.push("new")
    assert "DRAINING" not in cli("queue", "list")


# --- asking first ----------------------------------------------------------------

def test_what_destroys_is_refused_without_yes_where_nobody_can_be_asked(cli):
    die(cli, "dead")
    id_, = cli.push("x")
    for args in (["queue", "purge", cli.queue], ["delete", id_], ["dlq", "purge", cli.queue],
                 ["dlq", "delete", cli.queue, "--all"]):
        done = cli.try_(*args)
        assert done.returncode == 2 and b"--yes" in done.stderr and done.stdout == b""
    assert cli.stats()["total"] == 2
    assert cli("queue", "purge", cli.queue, "--yes") == "1 purged\n"
    assert cli("dlq", "purge", cli.queue, "--yes") == "1 deleted\n"
    assert cli.stats()["total"] == 0


@pytest.mark.parametrize("answer, code, left", [("y\n", 0, 0), ("n\n", 1, 3), ("\n", 1, 3)])
def test_on_a_terminal_it_asks(cli, answer, code, left):
    cli.push("a", "b", "c")
    with Terminal(cli, "queue", "purge", cli.queue) as terminal:
        terminal.expect(rf"delete 3 messages of queue {cli.queue}.*\[y/N\]")
        terminal.type(answer)
        assert terminal.end()[0] == code
    assert cli.stats()["total"] == left


# --- messages --------------------------------------------------------------------

def test_who_holds_a_message_is_shown(cli):
    cli.push("one")
    assert "OWNER" not in cli("browse", cli.queue)
    cli.push("two")
    cli("pull", cli.queue, "--owner", "till-3", "--lease", "1h")
    cli("pull", cli.queue, "--lease", "1h")
    owners = {m["owner"] for m in cli.lines("browse", cli.queue, "--state", "leased")}
    made, = owners - {"till-3"}
    assert "till-3" in owners
    assert re.fullmatch(r"[^:]+:\d+", made)
    for command in (["browse", cli.queue], ["peek", cli.queue, "--state", "leased"]):
        out = cli(*command)
        assert "OWNER" in out and "till-3" in out and made in out


def test_messages_that_wait_are_acted_on(cli):
    def only(queue=None):
        return cli.lines("browse", queue or cli.queue)[0]

    cli.push("one", "--delay", "1h", "--attributes", '{"tenant":"acme"}')
    cli("message", "run", cli.queue, only()["uid"])
    assert only()["status"] == "ready"
    made = cli.lines("message", "priority", cli.queue, only()["uid"], "--priority", "high")[0]
    assert only()["priority"] == 0 and made["before"]["priority"] == 5
    assert "has changed" in cli.try_("message", "priority", cli.queue, only()["uid"], "--priority", "1", "--version", "1.1").stderr.decode()
    cli("message", "delay", cli.queue, only()["uid"], "--for", "1h")
    assert only()["status"] == "delayed"
    cli("message", "edit", cli.queue, only()["uid"], "--text", "two")
    assert only()["payload_size"] == 3
    cli("message", "move", cli.queue, only()["uid"], "--to", cli.queue + "-b")
    found = cli.lines("message", "search", "--attribute", "tenant=acme")
    assert cli.queue + "-b" in [m["queue"] for m in found]
    assert "missing --for" in cli.try_("message", "delay", cli.queue, "1").stderr.decode()


def test_workers_are_listed_and_asked(cli):
    cli.server.call("POST", "/worker", {"namespace": "default", "queue": cli.queue}, {"Sluice-Worker": f"name={cli.queue}; slots=2"})
    assert cli.queue in cli("worker", "list", "--queue", cli.queue) and "running" in cli("worker", "list", "--queue", cli.queue)
    for verb, state in (("quiet", "quiet"), ("resume", "running"), ("stop", "stop")):
        cli("worker", verb, cli.queue)
        assert cli.lines("worker", "list", "--queue", cli.queue)[0]["state"] == state


def test_messages_are_searched(cli):
    cli.push("hello alice", "--key", "a", "--correlation-id", "run-1")
    cli.push("hello bob", "--delay", "1h")
    found = cli.lines("browse", cli.queue, "--text", "alice")
    assert texts(found) == ["hello alice"]
    assert texts(cli.lines("browse", cli.queue, "--correlation-id", "run-1")) == ["hello alice"]
    assert texts(cli.lines("browse", cli.queue, "--state", "delayed")) == ["hello bob"]
    assert "hello bob" in cli("browse", cli.queue)
    assert cli.try_("browse", cli.queue, "--text", "carol").returncode == 3
    assert cli.try_("browse", cli.queue, "--older-than", "1h").returncode == 3


def test_messages_are_searched_by_kind_priority_and_values_of_the_body(cli):
    cli.push('{"user":{"id":42}}', "--kind", "resize", "--priority", "1")
    cli.push('{"user":{"id":43}}', "--kind", "crop", "--priority", "7")
    for args, n in ((["--body", "user.id=42"], [0]), (["--kind", "crop"], [1]), (["--priority-min", "2"], [1]), (["--priority-max", "1"], [0]),
                    (["--attempts-under", "1"], [0, 1]), (["--body", "user.id=4.3e1", "--kind", "crop"], [1])):
        found = [json.loads(text)["user"]["id"] - 42 for text in texts(cli.lines("browse", cli.queue, *args))]
        assert sorted(found) == n, args
    for args in (["--priority-max", "high"], ["--attempts-over", "0"]):
        assert cli.try_("browse", cli.queue, *args).returncode == 3
    wrong = cli.try_("browse", cli.queue, "--body", "user.id")
    assert wrong.returncode not in (0, 3) and b"expected PATH=VALUE" in wrong.stderr


def test_a_message_is_shown_and_deleted_by_its_id_alone(cli):
    id_, = cli.push("x")
    shown, = cli.lines("get", id_)
    assert shown["topic"] == cli.queue and shown["history"][0]["event"] == "accepted"
    assert re.search(r"^payload +x$", cli("get", shown["uid"]), re.M)
    cli("delete", id_, "--yes")
    assert cli.try_("get", id_).returncode == 3
    assert cli.try_("delete", id_, "--yes").returncode == 3


# --- dead letters ----------------------------------------------------------------

def test_dead_letters_are_redriven_by_what_they_have_in_common(cli):
    ids = die(cli, "a", "b", error="gateway timeout")
    die(cli, "c", error="no such account")
    assert cli("dlq", "redrive", cli.queue, "--error", "timeout", "--dry-run") == \
        "2 would be redriven\n"
    assert cli.stats()["dead"] == 3
    assert cli("dlq", "redrive", cli.queue, "--error", "timeout") == "2 redriven\n"
    assert sorted(m["id"] for m in cli.lines("browse", cli.queue, "--state", "ready")) == ids
    assert [m["error"] for m in cli.lines("dlq", "list", cli.queue)] == ["no such account"]


def test_dead_letters_go_to_another_queue(cli):
    ids = die(cli, "a", "b", "c")
    other = f"{cli.queue}-other"
    assert cli("dlq", "redrive", cli.queue, ids[1], "--to", other) == "1 redriven\n"
    assert cli("pull", other, "--ack") == "b"
    again = cli.try_("dlq", "redrive", cli.queue, ids[1], "--to", other)
    assert again.returncode == 3 and str(ids[1]).encode() in again.stderr
    assert cli("dlq", "redrive", cli.queue, "--all", "--to", other) == "2 redriven\n"
    assert cli("pull", other, "--ack", "--limit", 5) == "a\nc\n" and cli.stats()["dead"] == 0


def test_a_rate_is_kept(cli):
    """20 a second, in calls of 3: 11 of them cannot be done within 0.4 s."""
    die(cli, *"abcdefghijk")
    began = time.monotonic()
    assert cli("dlq", "redrive", cli.queue, "--all", "--rate", 20) == "11 redriven\n"
    assert time.monotonic() - began > 0.4


def test_redriving_all_ends_though_they_die_again(cli):
    """Whatever is redriven is dead again at once: each is tried once all the same."""
    die(cli, *map(str, range(30)))
    worker = cli.start("work", cli.queue, "--", "sh", "-c", "exit 100")
    try:
        assert cli("dlq", "redrive", cli.queue, "--all", "--rate", 200) == "30 redriven\n"
    finally:
        worker.send_signal(signal.SIGKILL)
        worker.communicate()


def test_long_work_shows_how_far_it_is_on_a_terminal_alone(cli):
    die(cli, *map(str, range(12)))
    with Terminal(cli, "dlq", "redrive", cli.queue, "--all", "--rate", 20) as terminal:
        terminal.expect(r"redriving  \[#*\.*\] +\d+ %  \d+ of 12")
        code, said = terminal.end()
        assert code == 0 and "12 redriven" in said
    cli("queue", "purge", cli.queue, "--yes")
    die(cli, "a", "b")
    done = cli.try_("dlq", "redrive", cli.queue, "--all")
    assert done.stderr == b"" and done.stdout == b"2 redriven\n"


# --- the server ------------------------------------------------------------------

def test_the_log_level_is_seen_and_set(own_server):
    assert own_server("admin", "log-level") == "info\n"
    assert own_server("admin", "log-level", "debug") == "debug\n"
    assert own_server.lines("admin", "log-level") == [{"level": "debug"}]
    wrong = own_server.try_("admin", "log-level", "loud")
    assert wrong.returncode == 2 and b"loud" in wrong.stderr
    assert re.search(r"^log.level +\"?debug\"?", own_server("admin", "config"), re.M)
    assert own_server.lines("admin", "config")[0]["log.level"]["value"] == "debug"


def test_a_server_reads_its_settings_again(own_server):
    assert own_server("admin", "log-level", "debug") == "debug\n"
    assert own_server("admin", "reload") == "reloaded\n"
    assert own_server("admin", "log-level") == "info\n"
    assert own_server.lines("admin", "reload") == [{"reloaded": True}]


@pytest.fixture
def own_server(tmp_path):
    with Server(tmp_path / "data", "--listen", f"unix:{tmp_path}/s") as server:
        yield Cli(server, f"unix:{tmp_path}/s", tmp_path)


# --- backup ----------------------------------------------------------------------

@pytest.mark.parametrize("out", ["copy", "copy.tar"])
def test_a_backup_is_restored(own_server, out):
    cli = own_server
    cli.push("kept", "acked before")
    cli("pull", cli.queue, "--ack", "--limit", 1)
    cli("queue", "set", cli.queue, "max_attempts=9")
    assert re.match(rf"{out}: 1 files, \d+ bytes\n", cli("admin", "backup", "--out", out))
    cli.push("later")
    said, = cli.lines("admin", "restore", out, "--data", "restored")
    assert said["messages"] == 1
    with Server(cli.folder / "restored") as server:
        server.namespace, server.topic = "default", cli.queue
        assert texts(server.dequeue()) == ["acked before"]
        assert server.get("/policy", **server.here()).body["max_attempts"] == 9
        assert "level=warn" not in server.said()


@pytest.mark.parametrize("out", ["copy", "copy.tar"])
def test_payloads_with_a_file_of_their_own_are_in_a_backup(own_server, out):
    cli = own_server
    large = os.urandom(3 << 20)
    cli.push("-", stdin=large)
    cli("admin", "backup", "--out", out)
    cli("pull", cli.queue, "--ack", "--json")
    cli("admin", "restore", out, "--data", "restored")
    with Server(cli.folder / "restored") as server:
        server.namespace, server.topic = "default", cli.queue
        assert base64.b64decode(server.take()["payload"]) == large


def test_several_shards_come_back_each_to_its_place(tmp_path):
    with Server(tmp_path / "data", "--shards", "3", "--listen", f"unix:{tmp_path}/s") as server:
        cli = Cli(server, f"unix:{tmp_path}/s", tmp_path)
        for i in range(9):
            cli("push", f"q{i}", f"text {i}")
        cli("admin", "backup", "--out", "copy.tar")
    assert "--shards 3" in cli("admin", "restore", "copy.tar", "--data", "restored")
    with Server(tmp_path / "restored", "--shards", "3") as server:
        server.namespace = "default"
        assert [texts(server.dequeue(topic=f"q{i}")) for i in range(9)] == \
            [[f"text {i}"] for i in range(9)]


def test_a_restore_touches_no_folder_that_has_something(own_server):
    cli = own_server
    cli.push("x")
    cli("admin", "backup", "--out", "copy")
    (cli.folder / "full").mkdir()
    (cli.folder / "full/file").write_text("mine")
    done = cli.try_("admin", "restore", "copy", "--data", "full")
    assert done.returncode == 1 and b"full is not empty" in done.stderr
    assert [p.name for p in (cli.folder / "full").iterdir()] == ["file"]
    (cli.folder / "empty").mkdir()
    cli("admin", "restore", "copy", "--data", "empty")
    assert (cli.folder / "empty/00000001.log").exists()


def damage(path, at=-1):
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    path.write_bytes(raw)


@pytest.mark.parametrize("how, says", [
    (lambda b: (b / "backup.json").unlink(), "incomplete"),
    (lambda b: damage(b / "00000001.log"), "wrong checksum"),
    (lambda b: (b / "00000001.log").unlink(), "00000001.log"),
    (lambda b: os.truncate(b / "00000001.log", 100), "00000001.log has 100 bytes"),
    (lambda b: (b / "backup.json").write_text("{}"), "backup.json"),
    (lambda b: (b / "backup.json").write_text(
        (b / "backup.json").read_text().replace("00000001.log", "../00000001.log")), "invalid file name"),
    (lambda b: (b / "backup.json").write_text(re.sub(
        r'"last":(\d+)', lambda m: f'"last":{int(m[1]) + 1}',
        (b / "backup.json").read_text())), "synced"),
], ids=["no-manifest", "flipped-bit", "file-gone", "cut-file", "empty-manifest", "way-out",
        "end-is-missing"])
def test_a_backup_that_is_not_whole_is_not_restored(own_server, how, says):
    cli = own_server
    cli.push("x")
    cli("admin", "backup", "--out", "copy")
    how(cli.folder / "copy")
    done = cli.try_("admin", "restore", "copy", "--data", "restored")
    assert done.returncode == 1 and says in done.stderr.decode(), done.stderr
    assert not (cli.folder / "restored").exists()


def begin_slow_backup(cli, out):
    """One that has begun and has a while to go."""
    payload = os.urandom(1 << 20).hex()
    for _ in range(8):
        cli.push("-", stdin=payload)
    started = cli.start("admin", "backup", "--out", out, stdin=subprocess.DEVNULL)
    until(lambda: (cli.folder / f"{out}.partial").exists() or started.poll() is not None)
    return started


@pytest.mark.parametrize("out", ["copy", "copy.tar"])
def test_a_backup_that_is_killed_is_not_taken_for_one_and_does_not_block_the_next(own_server, out):
    cli = own_server
    started = begin_slow_backup(cli, out)
    started.kill()
    started.communicate()
    assert not (cli.folder / out).exists() or started.returncode == 0
    if started.returncode != 0:
        done = cli.try_("admin", "restore", f"{out}.partial", "--data", "restored")
        assert done.returncode == 1 and b"incomplete" in done.stderr
        assert b"waiting" not in cli.try_("admin", "backup", "--out", out).stderr
    assert not (cli.folder / f"{out}.partial").exists()
    assert "sound" in cli("admin", "backup", "--verify", out)
    if out == "copy":
        assert sorted(p.name for p in (cli.folder / out).iterdir() if p.is_file()) == ["00000001.log", "backup.json"]


def test_a_backup_that_is_stopped_leaves_nothing_behind(own_server):
    cli = own_server
    started = begin_slow_backup(cli, "copy")
    started.send_signal(signal.SIGTERM)
    started.communicate(timeout=LIMIT)
    assert not (cli.folder / "copy.partial").exists()
    assert started.returncode == 0 or not (cli.folder / "copy").exists()
    cli("admin", "backup", "--out", "other")  # the server holds nothing any more


def test_a_backup_replaces_no_folder_of_others(own_server):
    cli = own_server
    (cli.folder / "copy.partial").mkdir()
    (cli.folder / "copy.partial/mine").write_text("mine")
    done = cli.try_("admin", "backup", "--out", "copy")
    assert done.returncode == 1 and b"not an unfinished backup" in done.stderr
    assert (cli.folder / "copy.partial/mine").read_text() == "mine"


@pytest.mark.parametrize("out", ["copy", "copy.tar"])
def test_a_backup_that_the_server_refuses_makes_nothing(tmp_path, out):
    with Server(tmp_path / "data", "--listen", f"unix:{tmp_path}/s", engine="memory") as server:
        cli = Cli(server, f"unix:{tmp_path}/s", tmp_path)
        done = cli.try_("admin", "backup", "--out", out)
        assert done.returncode == 1 and b"memory keeps no files" in done.stderr
        assert not list(tmp_path.glob("copy*"))


def test_a_backup_goes_to_standard_output(own_server):
    cli = own_server
    cli.push("kept")
    done = cli.try_("admin", "backup", "--out", "-")
    assert done.returncode == 0 and b"-: 1 files" in done.stderr
    (cli.folder / "copy.tar").write_bytes(done.stdout)
    assert cli.lines("admin", "restore", "copy.tar", "--data", "restored")[0]["messages"] == 1
    with Terminal(cli, "admin", "backup", "--out", "-") as terminal:
        terminal.expect("is a terminal")
        assert terminal.end()[0] == 1


@pytest.mark.parametrize("out", ["copy", "copy.tar"])
def test_a_backup_is_verified_without_a_server_or_a_folder(own_server, out):
    cli = own_server
    cli.push("-", stdin=os.urandom(3 << 20))
    cli("admin", "backup", "--out", out)
    cli.env["SLUICE_SERVER"] = "127.0.0.1:1"
    before = sorted(cli.folder.iterdir())
    assert "2 files" in cli("admin", "backup", "--verify", out)
    assert cli.lines("admin", "backup", "--verify", out)[0] == {
        "verified": out, "files": 2, "bytes": cli.lines("admin", "backup", "--verify", out)[0]["bytes"],
        "shards": 1, "left_out": []}
    if out == "copy":
        damage(cli.folder / out / "00000001.log", 100)
    else:
        damage(cli.folder / out, 512 + 100)  # behind the head of the tar file
    done = cli.try_("admin", "backup", "--verify", out)
    assert done.returncode == 1 and b"wrong checksum" in done.stderr
    assert cli.try_("admin", "backup", "--verify", "nosuch").returncode == 1
    assert cli.try_("admin", "backup").returncode == 2
    assert sorted(cli.folder.iterdir()) == before


MIXED = """
sharding:
  enabled: true
  commandMappings: {a: disk, b: wide, c: fast, d: red}
redis.shards:
  disk: {engine: log}
  wide: {engine: log, poolSize: 2}
  fast: {engine: memory}
  red: {address: '%s'}
"""


def test_a_backup_of_log_and_other_shards_has_what_has_files_and_names_the_rest(tmp_path):
    with Redis(tmp_path / "redis") as redis:
        (tmp_path / "map.yaml").write_text(MIXED % redis.address)
        options = ["--config", str(tmp_path / "map.yaml"), "--listen", f"unix:{tmp_path}/s"]
        with Server(tmp_path / "data", *options) as server:
            cli = Cli(server, f"unix:{tmp_path}/s", tmp_path)
            for queue in ("a", "b", "c", "d", "e"):
                cli("push", queue, queue)
            redis.kill()  # it is not asked
            done = cli.try_("admin", "backup", "--out", "copy.tar", "--json")
            said = json.loads(done.stdout)
            assert sorted(s["name"] + ":" + s["engine"] for s in said["left_out"]) == ["fast:memory", "red:redis"]
            assert said["shards"] == 4  # default, disk, and both logs of wide
            assert b"shard red is not in the backup: engine redis has no files" in done.stderr
            redis.start()
        assert b"shard red" in cli.try_("admin", "backup", "--verify", "copy.tar").stderr
        assert "--config FILE" in cli("admin", "restore", "copy.tar", "--data", "restored")
        with Server(tmp_path / "restored", *options) as server:
            server.namespace = "default"
            assert [texts(server.dequeue(topic=q)) for q in ("a", "b", "c", "e")] == [["a"], ["b"], [], ["e"]]


@pytest.mark.parametrize("size", ["9007199254740992", "2000"])
def test_a_restore_compares_sizes_with_the_files(own_server, size):
    cli = own_server
    cli.push("x")
    cli("admin", "backup", "--out", "copy")
    manifest = cli.folder / "copy/backup.json"
    text = manifest.read_text()
    bytes_ = re.search(r'"bytes":(\d+)', text)[1]
    manifest.write_text(re.sub(r'"size":\d+', f'"size":{max(int(size), int(bytes_))}', text))
    for command in (["restore", "copy", "--data", "restored"], ["backup", "--verify", "copy"]):
        done = cli.try_("admin", *command)
        assert done.returncode == 1 and b"00000001.log: backup.json says" in done.stderr, done.stderr


def test_a_backup_shows_how_far_it_is(own_server):
    own_server.push("x")
    with Terminal(own_server, "admin", "backup", "--out", "copy") as terminal:
        terminal.expect(r"backing up  \[#*\.*\] +\d+ %.*MiB")
        assert terminal.end()[0] == 0


def ids_in(server):
    """All messages of the queue, by pages."""
    found, cursor = set(), "0"
    while cursor:
        page = server.get("/v1/admin/messages", **server.here(limit=1000, cursor=cursor)).body
        found |= {m["id"] for m in page["messages"]}
        cursor = page.get("cursor")
    return found


def test_a_backup_under_load_has_all_that_was_accepted_and_nothing_that_was_acked(own_server):
    """What was answered before the start is in it, while producers and consumers go on."""
    cli = own_server
    server = cli.server
    server.namespace = "load"
    accepted, acked, stop = [], [], threading.Event()

    def produce(n):
        i = 0
        while not stop.is_set():
            i += 1
            accepted.extend(server.enqueue(*[{"text": f"{n}-{i}-{j} " + "x" * 500}
                                             for j in range(50)]))

    def consume():
        while not stop.is_set():
            for message in server.dequeue(limit=20, wait=0.2, lease="10m"):
                server.ack(message)
                acked.append(message["id"])

    threads = [threading.Thread(target=produce, args=(n,)) for n in range(2)]
    threads += [threading.Thread(target=consume) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: len(acked) > 200)
        before, gone = set(accepted), set(acked)
        cli("admin", "backup", "--out", "copy.tar")
        more = len(acked)
        until(lambda: len(acked) > more)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    server.stop()
    after = set(acked)
    cli("admin", "restore", "copy.tar", "--data", "restored")
    with Server(cli.folder / "restored") as restored:
        restored.namespace, restored.topic = server.namespace, server.topic
        found = ids_in(restored)
        assert found and not gone & found, "acked before the start, and back again"
        assert before - found <= after, "accepted before the start, and lost"


# --- top -------------------------------------------------------------------------

def test_top_prints_one_table_where_there_is_no_terminal(cli):
    cli.push("a", "b")
    table = cli("top", "--interval", "10ms")
    assert table.startswith("NAMESPACE") and re.search(rf"^default +{cli.queue} +2 ", table, re.M)
    queue, = [q for q in cli.lines("top", "--once", "--interval", "10ms")
              if q["topic"] == cli.queue]
    assert queue["ready"] == 2 and queue["in_per_s"] == 0 and queue["oldest_ready_ms"] >= 0
    nowhere = cli.try_("top", "--once", "--server", "127.0.0.1:1")
    assert nowhere.returncode == 1 and b"no server" in nowhere.stderr


def test_top_counts_what_happens_a_second(cli):
    cli.push("first")
    top = cli.start("top", "--once", "--json", "--interval", "1s")
    while top.poll() is None:
        cli.push("again")
    out, _ = top.communicate(timeout=LIMIT)
    queue, = [json.loads(line) for line in out.splitlines() if f'"{cli.queue}"' in line]
    assert queue["in_per_s"] > 0


@pytest.mark.parametrize("how", ["q", "\x03", signal.SIGINT, signal.SIGTERM, signal.SIGHUP],
                         ids=["q", "ctrl-c", "SIGINT", "SIGTERM", "SIGHUP"])
def test_top_leaves_the_terminal_as_it_was(cli, how):
    cli.push("x")
    with Terminal(cli, "top", "--interval", "50ms") as terminal:
        terminal.expect(re.escape("\x1b[?1049h") + rf".*{cli.queue}")
        assert not terminal.is_as_before()
        if isinstance(how, str):
            terminal.type(how)
        else:
            terminal.process.send_signal(how)
        code, said = terminal.end()
        assert code == 0 and said.endswith("\x1b[?25h\x1b[?1049l")
        assert terminal.is_as_before()


def test_top_sorts_and_opens_a_queue(cli):
    cli.push("a")
    cli("push", f"{cli.queue}-b", "1", "2", "3", "--quiet", "--namespace", "topspace")
    cli("push", f"{cli.queue}-a", "1", "--quiet", "--namespace", "topspace")
    with Terminal(cli, "top", "--namespace", "topspace", "--interval", "50ms") as terminal:
        terminal.expect(rf"\[r:ready\].*{cli.queue}-b .*{cli.queue}-a ")
        terminal.type("n")
        terminal.expect(rf"\[n:name\].*{cli.queue}-a .*{cli.queue}-b ")
        terminal.type("R")
        terminal.expect(rf"\[n:name\].*{cli.queue}-b .*{cli.queue}-a ")
        terminal.type("\r")
        opened = terminal.expect(r"queue +(\S+) in namespace topspace")[1]
        assert opened in (f"{cli.queue}-a", f"{cli.queue}-b")
        terminal.type("\x1b")
        terminal.expect(r"NAMESPACE +QUEUE")
        terminal.type("\x1b[B\r")
        other = terminal.expect(r"queue +(\S+) in namespace topspace")[1]
        assert other != opened or other.endswith("-a") or other.endswith("-b")
        terminal.type("q")
        assert terminal.end()[0] == 0


def test_top_ends_while_it_waits_for_a_server_that_hangs(cli):
    """Somebody listens and never answers: Ctrl-C is heard all the same."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with Terminal(cli, "top", "--server", "127.0.0.1:%d" % listener.getsockname()[1]) as terminal:
            connection, _ = listener.accept()
            assert connection.recv(1)
            terminal.type("\x03")
            assert terminal.end()[0] == 0 and terminal.is_as_before()
            connection.close()


def test_top_goes_on_when_the_server_is_away(own_server):
    own_server.push("x")
    with Terminal(own_server, "top", "--interval", "50ms") as terminal:
        terminal.expect(own_server.queue)
        own_server.server.stop()
        terminal.expect("no server at")
        own_server.server.start()
        terminal.expect(r"1 queues")
        terminal.type("q")
        assert terminal.end()[0] == 0


# --- queues come and go -----------------------------------------------------------------

def test_queue_delete(cli):
    cli.push("a")
    refused = cli.try_("queue", "delete", cli.queue)
    assert refused.returncode == 1 and f"queue {cli.queue} holds 1 messages" in refused.stderr.decode()
    asked = cli.try_("queue", "delete", cli.queue, "--force")
    assert asked.returncode != 0 and b"--yes" in asked.stderr
    assert cli("queue", "delete", cli.queue, "--force", "--yes") == f"{cli.queue} deleted, with 1 messages\n"
    assert cli.try_("queue", "delete", cli.queue).returncode == 3
    cli("queue", "set", cli.queue, "max_attempts=3")
    told = json.loads(cli("queue", "delete", cli.queue, "--json"))
    assert told["deleted"] and told["messages"] == 0
    assert cli.try_("queue", "delete", "../config").returncode == 2


QUEUES = """\
{space}:
  Orders:
    max_attempts: 9
    retry: {{kind: linear, base: 5s}}
  plain.one: {{}}
"{space}-2":
  mail:
    paused: true
"""


@pytest.fixture
def file(cli, tmp_path):
    def write(text, name="queues.yaml"):
        (tmp_path / name).write_text(text.format(space=f"ns-{cli.queue}"))
        return tmp_path / name
    return write


def test_queue_apply_makes_queues_as_a_file_says(cli, file):
    space = f"ns-{cli.queue}"
    names = ["--namespace", space]
    queues = file(QUEUES)
    dry = cli("queue", "apply", "-f", queues, "--dry-run")
    assert f"+ {space}/Orders max_attempts: 9\n" in dry
    assert dry.endswith("3 queues: 3 to be created, 0 to be changed, 0 as the file says\n")
    assert cli("queue", "list", "--json", *names, "--all").count(space) == 0
    done = cli("queue", "apply", "-f", queues)
    assert done.endswith("3 queues: 3 created, 0 changed, 0 as the file says\n")
    shown = json.loads(cli("queue", "show", "orders", "--json", *names))
    assert shown["display_topic"] == "Orders" and shown["policy"]["max_attempts"] == 9
    assert (shown["policy"]["retry"]["kind"], shown["policy"]["retry"]["base"]) == ("linear", "5s")
    assert cli("queue", "apply", "-f", queues) == "3 queues: 0 created, 0 changed, 3 as the file says\n"


def test_queue_apply_shows_what_changes_and_what_goes_back(cli, file):
    space = f"ns-{cli.queue}"
    cli("queue", "set", "orders", "max_attempts=3", "ttl=1h", "--namespace", space)
    queues = file("{space}:\n  orders:\n    max_attempts: 9\n")
    lines = cli("queue", "apply", "-f", queues, "--dry-run").splitlines()
    assert lines[:2] == [f"~ {space}/orders max_attempts: 3 -> 9", f"- {space}/orders ttl: 1h -> 0s"]
    told = json.loads(cli("queue", "apply", "-f", queues, "--json"))
    assert told == {"namespace": space, "queue": "orders", "change": "changed", "knobs": {
        "max_attempts": {"old": 3, "new": 9}, "ttl": {"old": "1h", "new": "0s"}}}
    assert json.loads(cli("queue", "apply", "-f", queues, "--json"))["change"] == "none"


@pytest.mark.parametrize("text, said", [
    ("{space}:\n  good: {{lease: 1m}}\n  bad:\n    lease: 1m\n    leas: 5\n", "queues.yaml:5: queue bad of namespace"),
    ("{space}:\n  good: {{}}\n  bad:\n    retry:\n      base: soon\n", "queues.yaml:5: queue bad of namespace"),
    ("{space}:\n  good: {{}}\n  bad: 5\n", "queues.yaml:3: invalid entry"),
    ("{space}:\n  good: {{}}\n  bad: [1]\n", "expected NAMESPACE: QUEUE: KNOB: VALUE"),
    ("{space}:\n  good: {{}}\n  GOOD: {{}}\n  bad: {{}}\n  Good: {{}}\n", "is named twice"),
    ("{space}:\n  good: {{}}\n bad", "queues.yaml:"),
    ("{space}:\n  good: {{}}\n  'no name!': {{}}\n", "queues.yaml:3: "),
])
def test_queue_apply_changes_nothing_if_anything_is_wrong(cli, file, text, said):
    failed = cli.try_("queue", "apply", "-f", file(text))
    assert failed.returncode == 2 and said in failed.stderr.decode(), failed
    assert b"(line 1, column" not in failed.stderr and b"nothing was changed" in failed.stderr
    shown = cli.try_("queue", "show", "good", "--namespace", f"ns-{cli.queue}")
    assert shown.returncode == 3, shown


def test_queue_apply_sets_no_queue_before_all_are_checked(cli, file):
    failed = cli.try_("queue", "apply", "-f", file("{space}:\n  first: {{lease: 1m}}\n  last: {{lease: -1}}\n"))
    assert failed.returncode == 2
    assert cli.try_("queue", "show", "first", "--namespace", f"ns-{cli.queue}").returncode == 3


def test_queue_apply_takes_json_and_needs_a_file(cli, file):
    queues = file('{{"{space}": {{"mail": {{"lease": "2m", "dlq_max": 5}}}}}}', "queues.json")
    assert "1 created" in cli("queue", "apply", "-f", queues)
    assert cli.try_("queue", "apply").returncode == 2
    assert b"nosuch" in cli.try_("queue", "apply", "-f", "nosuch.yaml").stderr


def test_what_queue_export_prints_can_be_applied(cli, file, tmp_path):
    space = f"ns-{cli.queue}"
    cli("queue", "apply", "-f", file(QUEUES))
    cli("queue", "set", "true", "lease=7s", "--namespace", space)  # YAML has a meaning for it
    text = cli("queue", "export", "--namespace", space)
    saved = file(text.replace("{", "{{").replace("}", "}}"), "saved.yaml")
    assert cli("queue", "apply", "-f", saved) == "3 queues: 0 created, 0 changed, 3 as the file says\n"
    for queue in ("orders", "plain.one", "true"):
        cli("queue", "delete", queue, "--namespace", space)
    assert "3 created" in cli("queue", "apply", "-f", saved)
    assert cli("queue", "export", "--namespace", space) == text
    rows = [json.loads(line) for line in cli("queue", "export", "--json", "--namespace", space).splitlines()]
    assert [r["queue"] for r in rows] == ["Orders", "plain.one", "true"]
    assert rows[2]["policy"]["lease"] == "7s"
    assert f"{space}-2" in cli("queue", "export", "--all")



# --- completion and manual pages -------------------------------------------------

def complete(cli, *words):
    """What bash offers behind these words."""
    script = "source <({0} completion bash); COMP_WORDS=({0} {1}); COMP_CWORD={2}; _sluice; " \
             "printf '%s\\n' \"${{COMPREPLY[@]}}\"".format(
                 SLUICE, " ".join(f"'{w}'" for w in words), len(words))
    done = subprocess.run(["bash", "-c", script], env=cli.env, capture_output=True, text=True,
                          timeout=LIMIT)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout.split()


def test_bash_completes_commands_options_and_queues(cli):
    cli.push("x")
    assert complete(cli, "pu") == ["push", "pull"]
    assert complete(cli, "queue", "p") == ["pause", "purge", "priorities"]
    assert complete(cli, "dlq", "redrive", "--d") == ["--dry-run"]
    assert "--key" in complete(cli, "push", "--")
    assert complete(cli, "inbox", "") == ["init"]  # the only word of its kind
    assert complete(cli, "schedule", "p") == ["pause"] and complete(cli, "admin", "node", "d") == ["drain"]
    assert complete(cli, "queue", "limits", "--json", "--na") == ["--namespace"]
    assert cli.queue in complete(cli, "pull", cli.queue)
    listed = re.findall(r"^  (\S+) ", cli("--help"), re.M)
    assert complete(cli, "") == listed


class Hostile(BaseHTTPRequestHandler):
    """A server whose queues have names for a shell."""
    names = ["good", "$(touch${IFS}ran)", "`touch ran`", "a;touch ran", "*"]

    def do_GET(self):
        body = json.dumps({"topics": [{"topic": n, "display_topic": n, "messages": 1, "ready": 1}
                                      for n in self.names]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_completion_runs_no_name_that_a_server_sent(cli, monkeypatch):
    with HTTPServer(("127.0.0.1", 0), Hostile) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cli.env["SLUICE_SERVER"] = "127.0.0.1:%d" % server.server_port
        monkeypatch.chdir(cli.folder)
        assert "$(touch" in cli("topics")
        assert complete(cli, "pull", "") == ["good"]
        assert complete(cli, "pull", "g") == ["good"]
        server.shutdown()
    assert not (cli.folder / "ran").exists()


@pytest.mark.parametrize("line, offers", [
    ("sluice pu", ["pull", "push"]), ("sluice queue p", ["pause", "priorities", "purge"]),
    ("sluice dlq redrive --d", ["--dry-run"])])
def test_fish_completes_commands_and_options(cli, tmp_path, line, offers):
    env = {**cli.env, "HOME": str(tmp_path), "PATH": f"{Path(SLUICE).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["fish", "-c", f"sluice completion fish | source; complete -C '{line}'"],
                          env=env, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT)
    assert [row.split("\t")[0] for row in done.stdout.split("\n") if row] == offers


def test_zsh_knows_who_completes(cli, tmp_path):
    env = {**cli.env, "HOME": str(tmp_path), "PATH": f"{Path(SLUICE).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["zsh", "-f", "-c", "autoload -Uz compinit; compinit -u -D; "
                           "source <(sluice completion zsh); print ${_comps[sluice]}"],
                          env=env, capture_output=True, text=True, timeout=LIMIT)
    assert done.stdout == "_sluice\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_sound(cli, shell, tmp_path):
    script = cli("completion", shell)
    assert "sluice --complete" in script or '--complete "${COMP_WORDS' in script
    (tmp_path / "script").write_text(script)
    done = subprocess.run([shell, "-n", str(tmp_path / "script")], capture_output=True, text=True,
                          timeout=LIMIT)
    assert done.returncode == 0 and done.stderr == ""


def test_an_unknown_shell_is_refused(cli):
    assert cli.try_("completion", "tcsh").returncode == 2


def test_examples_name_options_that_exist(cli):
    """Every option that an example of a --help uses is in that help."""
    groups = {"queue", "dlq", "admin", "context"}
    for name in set(re.findall(r"^  (\S+) ", cli("--help"), re.M)) - {"bench"}:
        subs = re.findall(r"^  (\S+) ", cli(name, "--help"), re.M) if name in groups else [None]
        for sub in subs:
            text = cli(*([name, sub] if sub else [name]), "--help")
            known = set(re.findall(r"^  (?:-\w, |    )(--[a-z-]+)", text, re.M))
            examples = text.partition("examples:\n")[2].replace(" -- ", "\0")
            for line in examples.splitlines():
                if not line.startswith(f"  sluice {name}"):
                    continue
                used = set(re.findall(r" (--[a-z-]+)", line.split("\0")[0].split("|")[0]))
                assert used <= known, (name, sub, line)


def test_audit_prints_the_last_changes(tmp_path):
    with Server(tmp_path / "data", "--audit-file", str(tmp_path / "audit.jsonl")) as server:
        cli = Cli(server, "%s:%d" % server.address, tmp_path)
        cli.push("x")
        cli("queue", "pause", cli.queue)
        until(lambda: len(cli.lines("admin", "audit")) == 2)
        assert [line["verb"] for line in cli.lines("admin", "audit", "--queue", cli.queue)] == ["pause", "enqueue"]
        table = cli("admin", "audit", "--verb", "enqueue").splitlines()
        assert len(table) == 2 and table[0].split()[:3] == ["WHEN", "WHO", "VERB"] and cli.queue in table[1]
        assert len(cli.lines("admin", "audit", "--limit", 1)) == 1
        assert "BEFORE" in cli("admin", "audit") and '"paused":true' in cli("admin", "audit")
