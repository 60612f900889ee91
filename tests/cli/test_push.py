"""Messages with all that they may carry, large ones, many at once; and what their acks bring."""
import hashlib
import json
import threading
import time

import pytest

from test_admin import Terminal
from test_client import LIMIT, cli, shared  # noqa: F401

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
MIB = 1 << 20


# --- what a message carries ------------------------------------------------------

def test_attributes_type_and_trace_reach_the_consumer(cli):
    cli.push("x", "--attributes", '{"tenant":7}', "--content-type", "text/csv", "--traceparent", TRACE)
    got, = cli.lines("pull", cli.queue, "--ack")
    assert (got["attributes"], got["content_type"], got["traceparent"]) == ({"tenant": 7}, "text/csv", TRACE)
    wrong = cli.try_("push", cli.queue, "x", "--attributes", "[1]")
    assert wrong.returncode == 1 and b"attributes" in wrong.stderr


def test_a_message_waits_for_its_moment(cli):
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    cli.push("x", "--at", moment)
    found, = cli.lines("peek", cli.queue, "--state", "delayed")
    assert found["deliver_after"] == moment
    cli.push("now", "--at", "2020-01-01T00:00:00Z")
    assert cli("pull", cli.queue, "--ack") == "now"
    for args, says in ((["--at", "tomorrow"], b"invalid --at: tomorrow"), (["--at", moment, "--delay", "1s"], b"exclude each other")):
        done = cli.try_("push", cli.queue, "x", *args)
        assert done.returncode in (1, 2) and says in done.stderr


# --- large ones ------------------------------------------------------------------

@pytest.mark.parametrize("how", ["file", "stdin"])
def test_a_payload_of_any_size_is_sent_as_it_is_read(cli, how):
    payload = bytes(range(256)) * 4096 * 13 + b"end"  # 13 MiB and a little
    (cli.folder / "large").write_bytes(payload)
    out = cli("push", cli.queue, "--file", "large", "--content-type", "image/png", "--json") if how == "file" else \
        cli("push", cli.queue, "-", "--content-type", "image/png", "--json", stdin=payload)
    id_ = json.loads(out)["id"]
    seen, = cli.lines("peek", cli.queue, "--id", id_)
    assert seen["payload_size"] == len(payload) and seen["content_type"] == "image/png"
    cli("queue", "dequeue", cli.queue, "--payload-out", "out")
    assert hashlib.sha256((cli.folder / "out").read_bytes()).digest() == hashlib.sha256(payload).digest()


def test_a_large_payload_has_what_others_may_have(cli):
    """Pushed again, it is the same message; a strict queue refuses another payload under its key."""
    cli("queue", "set", cli.queue, "idempotency=strict")
    (cli.folder / "large").write_bytes(b"x" * 13 * MIB)
    (cli.folder / "other").write_bytes(b"x" * 13 * MIB + b"y")
    options = ["--key", "k", "--priority", "high", "--share", "acme", "--keep-result", "1h", "--idempotency-key", "i",
               "--traceparent", TRACE, "--lease", "90s", "--deadline", "2037-01-01T00:00:00Z", "--json"]
    pushed = cli.lines("push", cli.queue, "--file", "large", *options)
    assert pushed[0]["duplicate"] is False
    assert cli.lines("push", cli.queue, "--file", "large", *options) == [{**pushed[0], "duplicate": True}]
    done = cli.try_("push", cli.queue, "--file", "other", *options)
    assert done.returncode == 1 and b"another payload" in done.stderr, done
    seen, = cli.lines("peek", cli.queue, "--id", pushed[0]["id"])
    assert (seen["key"], seen["priority"], seen["share"], seen["traceparent"]) == ("k", 0, "acme", TRACE)
    shown = json.loads(cli("get", "--json", pushed[0]["id"]))
    assert shown["idempotency_key"] == "i" and shown["keep_result_s"] == 3600 and cli.stats()["total"] == 1


@pytest.mark.parametrize("option, value", [("--count", ["2"]), ("--batch", ["7"]), ("--replace", ["--unique", "u"])])
def test_a_large_payload_refuses_what_it_cannot_carry(cli, option, value):
    (cli.folder / "large").write_bytes(b"x" * 13 * MIB)
    done = cli.try_("push", cli.queue, "--file", "large", option, *value)
    assert done.returncode == 1 and option.encode() in done.stderr and b"12 MiB" in done.stderr
    assert cli.try_("stats", cli.queue).returncode == 3 or cli.stats()["total"] == 0


def test_a_large_payload_may_be_unique_and_has_its_own_retries(cli):
    (cli.folder / "large").write_bytes(b"x" * 13 * MIB)
    options = ["--file", "large", "--unique", "u", "--until", "1h", "--retry", "none", "--json"]
    first, = cli.lines("push", cli.queue, *options)
    again, = cli.lines("push", cli.queue, *options)
    assert again["id"] == first["id"] and (first["unique"], again["unique"]) == ("new", "kept") and cli.stats()["total"] == 1
    cli("queue", "dequeue", cli.queue, "--payload-out", "out")
    cli("nack", "--queue", cli.queue, first["id"])
    assert cli.lines("peek", cli.queue, "--id", first["id"])[0]["status"] == "ready"  # that of the queue is a second


def test_a_large_payload_shows_how_far_it_is_on_a_terminal(cli):
    (cli.folder / "large").write_bytes(b"x" * 13 * MIB)
    with Terminal(cli, "push", cli.queue, "--file", "large") as terminal:
        terminal.expect(r"sending  \[#*\.*\] +\d+ %  .* of 13.0 MiB")
        assert terminal.end()[0] == 0


# --- many ------------------------------------------------------------------------

def test_a_template_makes_each_payload(cli):
    ids = cli.push("--count", 2500, "--template", '{"n":{n},"id":"{uuid}","at":"{time}","x":{}}')
    assert len(set(ids)) == 2500
    got = [json.loads(cli("pull", cli.queue, "--ack", "--limit", 1)) for _ in range(2)]
    assert [g["n"] for g in got] == [1, 2] and got[0]["x"] == {}
    assert got[0]["id"] != got[1]["id"] and len(got[0]["id"]) == 36 and got[0]["at"].endswith("Z")


def test_a_payload_is_pushed_so_many_times(cli):
    assert len(cli.push("a", "b", "-c", 3)) == 6
    assert cli("pull", cli.queue, "--ack", "--limit", 6) == "a\na\na\nb\nb\nb\n"
    for args in (["--lines", "--count", 2], ["x", "--template", "{n}"], ["x", "--count", 2, "--idempotency-key", "k"]):
        assert cli.try_("push", cli.queue, *args).returncode == 2


def test_many_show_how_far_they_are_on_a_terminal(cli):
    with Terminal(cli, "push", cli.queue, "-q", "--count", 3000, "--template", "{n}") as terminal:
        terminal.expect(r"pushing  \[#*\.*\] +\d+ %  \d+ of 3000")
        assert terminal.end()[0] == 0
    assert cli.stats()["total"] == 3000


# --- results ---------------------------------------------------------------------

def test_a_result_is_waited_for(cli):
    id_, = cli.push("x", "--keep-result", "1h")
    assert cli.try_("result", id_).returncode == 3
    got = []
    waits = threading.Thread(target=lambda: got.append(cli("result", id_, "--wait", "5m")))
    waits.start()
    message, = cli.lines("pull", cli.queue)
    cli("ack", message["receipt"], "--result", '{"sum":3}')
    waits.join(LIMIT)
    assert got == ['{"sum":3}\n']
    whole, = cli.lines("result", message["uid"])
    assert whole["status"] == "done" and whole["result"] == {"sum": 3}
    assert cli("result", message["receipt"]) == '{"sum":3}\n'


def test_there_is_no_result_that_was_not_kept(cli):
    id_, = cli.push("x")
    cli("pull", cli.queue, "--ack")
    done = cli.try_("result", id_)
    assert done.returncode == 3 and str(id_).encode() in done.stderr


@pytest.mark.parametrize("prints, result", [
    ('{"a": [1]}', '{"a": [1]}'), ("plain text", '"plain text"'), ("", "null"), ("two\nlines", '"two\\nlines"'),
    ("x" * 900000, json.dumps("x" * 900000))], ids=["json", "text", "nothing", "lines", "large"])
def test_what_a_command_prints_is_the_result(cli, prints, result):
    id_, = cli.push("-", "--keep-result", "1h", stdin=prints)
    done = cli.try_("work", cli.queue, "--max", 1, "--result", "stdout", "--", "cat")
    assert done.returncode == 0 and done.stdout == b"" and b"done 1" in done.stderr
    assert cli("result", id_) == result + "\n"


@pytest.mark.parametrize("prints", ["head -c 2000000 /dev/zero | tr '\\0' x", "printf '\\377'"])
def test_what_is_no_result_has_failed(cli, prints):
    cli.push("x", "--keep-result", "1h", "--max-attempts", 1)
    cli("work", cli.queue, "--max", 1, "--result", "stdout", "--", "sh", "-c", prints)
    dead, = cli.lines("dlq", "list", cli.queue)
    assert "invalid result" in json.dumps(dead)


def test_result_and_lines_exclude_each_other(cli):
    done = cli.try_("work", cli.queue, "--lines", "--result", "stdout", "--", "cat")
    assert done.returncode == 2 and b"--lines" in done.stderr
