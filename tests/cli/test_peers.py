"""bench/peers: the small peers are driven for real, and what was measured is shown."""
import json
import os
import subprocess
from pathlib import Path

import pytest

PEERS = Path(__file__).parents[2] / "bench" / "peers"
NAMES = ["sluice", "sluice-packed", "beanstalkd", "redis-list", "redis-stream"]
MEMORY = "/dev/shm"  # where a sync takes no time: how fast they are is not asked here
MARKS = "before\n<!-- peers: here -->\nwhat was here\n<!-- peers end -->\nafter\n"


def run(*args):
    return subprocess.run([str(a) for a in args], capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A sitting as short as it can be. Each server is first seen to hand out what was put,
    once, and nothing after it was acked: otherwise the run fails."""
    out = tmp_path_factory.mktemp("peers") / "results.jsonl"
    done = run(PEERS / "run", "--build", os.path.relpath(os.environ["BUILD"]), "--peers", ",".join(NAMES),
               "--sizes", 300, "--clients", 8, "--rounds", 1, "--seconds", 0.02,
               "--depth", 2000, "--out", out, "--dir", MEMORY if os.path.isdir(MEMORY) else "/var/tmp")
    assert done.returncode == 0, done.stderr
    return out


def test_every_cell_of_every_peer_is_measured(results):
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    for peer in NAMES:
        cells = {(r["durability"], r["clients"], r["batched"], r["phase"])
                 for r in rows if r.get("peer") == peer and r.get("rate", 0) > 0}
        assert cells == {(d, c, b, p) for d in ("sync", "none") for c in (8,)
                         for b in (False, True) for p in ("enqueue", "lease", "ack", "cycle")}
        assert [r["depth"] for r in rows if r.get("peer") == peer and "depth" in r] == [2000]
    assert all(r["server_cpu_us"] > 0 and r["client_cpu_us"] > 0 and r["memory"] > 0
               for r in rows if "rate" in r)


def test_answers_in_pieces_are_read(tmp_path):
    """A long answer to a dequeue is chunked."""
    done = run(PEERS / "run", "--build", os.path.relpath(os.environ["BUILD"]), "--peers", "sluice,sluice-packed",
               "--durability", "sync", "--sizes", 5000, "--clients", 8, "--rounds", 1, "--seconds", 0.02,
               "--depth", 0, "--out", tmp_path / "results.jsonl", "--dir", MEMORY if os.path.isdir(MEMORY) else "/var/tmp")
    assert done.returncode == 0, done.stderr


def test_the_tables_and_the_chart_are_refreshed_in_place(results, tmp_path):
    (tmp_path / "docs").mkdir()
    pages = [tmp_path / "README.md", tmp_path / "docs" / "performance.md"]
    for page in pages:
        page.write_text(MARKS)
    done = run(PEERS / "report", results, tmp_path)
    assert done.returncode == 0, done.stderr
    once = [page.read_text() for page in pages]
    for text in once:
        assert text.startswith("before\n") and text.endswith("after\n") and "what was here" not in text
        assert "| Sluice | Sluice, packed | Redis list | Redis stream | beanstalkd |" in text and "**" in text
    assert "beside 2,000" in once[1]
    svg = (tmp_path / "docs" / "peers.svg").read_text()
    assert svg.count("<rect") == 4 * len(NAMES)
    run(PEERS / "report", results, tmp_path)
    assert [page.read_text() for page in pages] == once


def test_a_page_without_marks_is_left_alone(results, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "performance.md").write_text("no marks\n")
    done = run(PEERS / "report", results, tmp_path)
    assert done.returncode == 1 and "performance.md: the marks" in done.stderr
    assert (tmp_path / "docs" / "performance.md").read_text() == "no marks\n"


@pytest.mark.parametrize("args, said", [
    (["--peer", "kafka", "--port", 1], 'unknown peer: kafka'),
    (["--peer", "nats"], "missing --port"),
    (["--port", 1], "127.0.0.1:1: Connection refused"),
])
def test_what_cannot_be_measured_is_said(args, said):
    done = run(Path(os.environ["BUILD"]) / "bench" / "peers" / "peerload", *args)
    assert done.returncode == 1 and said in done.stderr
