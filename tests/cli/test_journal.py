"""`sluice admin journal`: a log that another program wrote, checked and shown."""
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "integration"))
from served import Server  # noqa: E402

SLUICE = os.environ["SLUICE"]
MAKE_LOG = os.environ["MAKE_LOG"]


def run(*args):
    return subprocess.run([SLUICE, "admin", *args], capture_output=True, text=True, timeout=60)


@pytest.fixture
def log(tmp_path):
    """Three messages: one acked, one dead with an error, one waiting; a key with a state."""
    folder = tmp_path / "log"
    subprocess.run([MAKE_LOG, str(folder)], check=True, timeout=60)
    return folder


def test_a_sound_log_is_said_to_be(log):
    out = run("journal", "check", str(log))
    assert out.returncode == 0, out.stderr
    assert "counters  equal a scan" in out.stdout
    assert "is sound" in out.stdout and "messages  2 in 1 queues" in out.stdout
    facts = json.loads(run("journal", "check", str(log), "--json").stdout)
    assert facts["messages"] == 2 and facts["closed"] is True
    assert facts["lock_keys"] == 1 and facts["states"] == 0


def test_dump_shows_every_record(log):
    rows = [json.loads(line) for line in run("journal", "dump", str(log), "--json").stdout.splitlines()]
    types = [row["type"] for row in rows]
    assert types.count("accept") == 3 and types.count("claim") == 2
    assert types[-1] == "closed"
    dead = next(row for row in rows if row["type"] == "die_attempts")
    assert dead["fields"]["id"] == 2 and dead["fields"]["error"] == "no such address"
    assert dead["fields"]["attempts_kept"] == 1
    assert [row["seq"] for row in rows] == sorted(row["seq"] for row in rows)
    plain = run("journal", "dump", str(log)).stdout
    assert len(plain.splitlines()) == len(rows)
    assert "error=no such address" in plain


def test_dump_shows_keys_and_their_documents(log):
    rows = [json.loads(line) for line in run("journal", "dump", str(log), "--json").stdout.splitlines()]
    document = next(row["fields"] for row in rows if row["type"] == "document")
    acquired, staged, released = (row["fields"] for row in rows if row["type"] == "lock")
    assert acquired["key"] == "jobs/7" and acquired["owner"] == "worker-1"
    assert document["key"] == "jobs/7" and document["number"] == staged["staged"]
    assert released["etag"] == staged["staged"] and released["version"] == 1
    assert acquired["token"] > 0 and released["token"] == 0


def test_dump_shows_the_metadata_that_the_api_shows(tmp_path):
    """LQ-25"""
    with Server(tmp_path / "data", engine="log") as server:
        server.enqueue({"text": "hi", "key": "k", "priority": 3, "correlation_id": "c", "idempotency_key": "i", "ttl": "1h"})
        shown = server.peek()[0]
        server.stop()
    rows = [json.loads(line) for line in run("journal", "dump", str(tmp_path / "data"), "--json").stdout.splitlines()]
    stored = next(row for row in rows if row["type"] == "accept")
    fields = stored["fields"]
    for name in "id", "namespace", "queue", "key", "priority", "correlation_id":
        assert fields[name] == shown[name], name
    assert fields["size"] == shown["payload_size"] and fields["idempotency_key"] == "i"
    assert stored["time"] == shown["enqueued_at"]


def test_dump_can_begin_and_end_anywhere(log):
    out = run("journal", "dump", str(log), "--from", "4", "--limit", "2").stdout
    assert [line.split()[0] for line in out.splitlines()] == ["4", "5"]


def test_nothing_is_changed(log):
    before = {p.name: p.read_bytes() for p in log.iterdir() if p.name != "lock"}
    run("journal", "check", str(log))
    run("journal", "dump", str(log))
    assert before == {p.name: p.read_bytes() for p in log.iterdir() if p.name != "lock"}


def test_damage_is_named_with_file_and_offset(log):
    path = log / "00000001.log"
    data = bytearray(path.read_bytes())
    data[data.index(b"no such address")] ^= 1
    path.write_bytes(data)
    for verb in ("check", "dump"):
        out = run("journal", verb, str(log))
        assert out.returncode == 1
        assert "00000001.log" in out.stderr


def test_salvage_saves_what_is_left(log, tmp_path):
    path = log / "00000001.log"
    data = bytearray(path.read_bytes())
    data[data.index(b"no such address")] ^= 1
    path.write_bytes(data)
    before = path.read_bytes()
    out = run("journal", "salvage", str(log), str(tmp_path / "new"), "--json")
    assert out.returncode == 0, out.stderr
    facts = json.loads(out.stdout)
    assert facts["missing"] == 1 and facts["kept"] > 5
    assert path.read_bytes() == before
    facts = json.loads(run("journal", "check", str(tmp_path / "new"), "--json").stdout)
    assert facts["messages"] == 2  # the dead letter is leased again
    again = run("journal", "salvage", str(log), str(tmp_path / "new"))
    assert again.returncode == 1 and "log already" in again.stderr
    assert run("journal", "salvage", str(log)).returncode == 2  # a wrong call


@pytest.mark.parametrize("words", [[], ["chekc"], ["chekc", "nowhere"], ["check"], ["check", "a", "b"], ["dump"],
                                   ["salvage", "a"]])
def test_a_wrong_call_is_told_before_a_folder_is_looked_for(words):
    done = run("journal", *words)
    assert done.returncode == 2 and "no such folder" not in done.stderr, done.stderr
    assert "sluice admin journal --help" in done.stderr


def test_the_examples_of_the_help_run(log, tmp_path):
    text = run("journal", "--help").stdout
    lines = re.findall(r"^  (sluice admin journal .*)", text, re.M)
    assert len(lines) == 4
    shutil.copytree(log, tmp_path / "data")
    for line in lines:
        line = line.replace("jq .type", "cat").replace("--from 1000", "--from 1")
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", line], cwd=tmp_path, capture_output=True,
                              text=True, timeout=60, env={**os.environ, "PATH": f"{Path(SLUICE).parent}:{os.environ['PATH']}"})
        assert done.returncode == 0 and done.stdout, (line, done.stderr)


def test_a_folder_without_a_log_is_not_sound(tmp_path):
    out = run("journal", "check", str(tmp_path))
    assert out.returncode == 1 and "no log" in out.stderr


@pytest.mark.parametrize("args, code", [
    (["journal", "check"], 2),
    (["journal", "repair", "/tmp"], 2),
    (["jurnal", "check", "/tmp"], 2),
    (["journal", "check", "/no/such/folder"], 1),
])
def test_a_wrong_call_says_so(args, code):
    out = run(*args)
    assert out.returncode == code and out.stderr and not out.stdout
