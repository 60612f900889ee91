"""`sluice admin store adopt`: a server of one machine goes on as a server on a store."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "integration"))
from served import Refused, Server, texts, until  # noqa: E402

SLUICE = os.environ["SLUICE"]
LARGE = "large " * 500_000  # in a file of its own


def adopt(tmp_path, *options, code=0):
    done = subprocess.run([SLUICE, "admin", "store", "adopt", f"file://{tmp_path}/store", "--data", str(tmp_path / "data"), *options],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def stored(tmp_path, folder="data", *options):
    return Server(tmp_path / folder, "--store", f"file://{tmp_path}/store", "--store-lease", "65s", *options, engine="log")


def fill(tmp_path, shards="1"):
    """A stopped server whose folder has messages in every state."""
    with Server(tmp_path / "data", "--shards", shards, engine="log") as server:
        for n in range(20):
            server.enqueue({"text": f"m{n}"}, topic=f"q{n}")
        server.enqueue({"text": "later"}, topic="delayed", delay="1h")
        server.enqueue({"text": LARGE}, topic="large")
        server.enqueue({"text": "done"}, topic="done")
        server.ack(server.dequeue(topic="done")[0], topic="done")
        server.enqueue({"text": "held"}, topic="leased")
        held = server.dequeue(topic="leased", lease="1h")[0]
        server.stop()
    return held


def files(folder):
    """The file `lock` has the number of the last process."""
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != "lock"}


def check(server, held):
    for n in range(20):
        assert texts(server.dequeue(topic=f"q{n}")) == [f"m{n}"]
    assert server.stats(topic="delayed")["delayed"] == 1
    assert texts(server.dequeue(topic="large")) == [LARGE]
    assert server.dequeue(topic="done") == []
    assert server.stats(topic="leased")["leased"] == 1
    server.ack(held, topic="leased")


@pytest.mark.parametrize("shards", ["1", "3"])
def test_everything_is_in_the_store_and_any_folder_will_do(tmp_path, shards):
    """The lease is longer than the test waits: the command has given up the shards, so any server may take them."""
    held = fill(tmp_path, shards)
    done = adopt(tmp_path, "--apply")
    assert "adopted: start it with: sluiced --store" in done.stdout
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "store", copy)
    with stored(tmp_path) as server:
        assert server.get("/readyz").body["shards"] == {"here": int(shards), "elsewhere": 0}
        check(server, held)
        server.enqueue({"text": "new"}, topic="q0")
    shutil.rmtree(tmp_path / "store")
    copy.rename(tmp_path / "store")
    with stored(tmp_path, "empty") as server:
        check(server, held)


def test_a_dry_run_counts_and_changes_nothing(tmp_path):
    fill(tmp_path, "2")
    before = files(tmp_path)
    rows = [json.loads(line) for line in adopt(tmp_path, "--json").stdout.splitlines()]
    assert [row["shard"] for row in rows] == [0, 1] and not any(row["adopted"] for row in rows)
    assert sum(row["messages"] for row in rows) == 23 and sum(row["payload_files"] for row in rows) == 1
    assert sum(row["bytes"] for row in rows) > len(LARGE)
    assert "nothing was changed" in adopt(tmp_path).stdout
    assert files(tmp_path) == before
    with Server(tmp_path / "data", "--shards", "2", engine="log") as server:
        assert server.stats(topic="delayed")["delayed"] == 1


def test_the_folder_is_a_cache_afterwards(tmp_path):
    fill(tmp_path)
    adopt(tmp_path, "--apply")
    with pytest.raises(Refused, match="is the cache of a store"):
        Server(tmp_path / "data", engine="log")
    assert "is the cache of a store" in adopt(tmp_path, code=1).stderr


def test_only_an_empty_store_is_filled(tmp_path):
    fill(tmp_path)
    with stored(tmp_path, "other"):
        assert "is not empty" in adopt(tmp_path, "--apply", code=1).stderr
    with Server(tmp_path / "data", engine="log") as server:
        assert server.stats(topic="delayed")["delayed"] == 1


def test_a_folder_in_use_or_damaged_or_missing_is_refused(tmp_path):
    assert "no such folder" in adopt(tmp_path, code=3).stderr
    fill(tmp_path)
    with Server(tmp_path / "data", engine="log"):
        adopt(tmp_path, "--apply", code=1)
    payload = next((tmp_path / "data" / "payloads").iterdir())
    content = bytearray(payload.read_bytes())
    content[-1] ^= 1
    payload.write_bytes(content)
    assert "is damaged" in adopt(tmp_path, "--apply", code=1).stderr
    assert not (tmp_path / "store" / "settings").exists()
    assert "missing --data" in subprocess.run([SLUICE, "admin", "store", "adopt", f"file://{tmp_path}/store"],
                                              capture_output=True, text=True, timeout=60).stderr


def test_a_store_whose_parent_folder_is_missing_is_refused(tmp_path):
    fill(tmp_path)
    done = subprocess.run([SLUICE, "admin", "store", "adopt", f"file://{tmp_path}/missing/store", "--data", str(tmp_path / "data"), "--apply"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 3 and "the folder above it does not exist" in done.stderr, done


def test_a_server_refuses_a_store_whose_adopt_was_not_finished(tmp_path):
    """The settings come last: without them a part of the log may be missing."""
    fill(tmp_path)
    adopt(tmp_path, "--apply")
    shutil.rmtree(tmp_path / "store" / "settings")
    with pytest.raises(Refused, match="an adopt was not finished"):
        stored(tmp_path, "empty")


def test_an_adopt_that_is_killed_leaves_the_folder_as_it_was(tmp_path):
    held = fill(tmp_path)
    before = files(tmp_path / "data")
    process = subprocess.Popen([SLUICE, "admin", "store", "adopt", f"file://{tmp_path}/store", "--data", str(tmp_path / "data"), "--apply"],
                               stdout=subprocess.DEVNULL)
    until(lambda: (tmp_path / "store").exists())
    process.kill()
    process.wait()
    if (tmp_path / "store" / "settings").exists():
        return  # it was faster
    assert files(tmp_path / "data") == before
    shutil.rmtree(tmp_path / "store")
    adopt(tmp_path, "--apply")
    with stored(tmp_path) as server:
        check(server, held)
