"""How many logs a data folder was written with, and a server with another setting."""
import re
import subprocess
from pathlib import Path

import pytest
from served import SLUICED, Server, until

SLUICE = str(Path(SLUICED).parent / "sluice")
WRONG_SETTINGS = 2

NAMED = """
sharding: {enabled: true, defaultShard: disk}
redis.shards:
  disk: {engine: log}
"""


@pytest.fixture
def data(tmp_path):
    return tmp_path / "data"


def fill(data, shards, topics=8):
    """Messages in several queues, so that each of a few shards has some."""
    with Server(data, "--shards", str(shards), engine="log") as server:
        for n in range(topics):
            server.enqueue({"topic": f"t{n}", "text": f"m{n}"})


def forget_note(data):
    """As version 0.1.0 left a folder."""
    (data / "shards").unlink()


def refusal(data, *options):
    """What a server says that must not start on the folder, and that it names no data lost."""
    before = sorted(p.relative_to(data) for p in data.rglob("*.log"))
    start = [SLUICED, "--data", str(data), "--engine", "log", "--listen", "127.0.0.1:0", *options]
    done = subprocess.run(start, capture_output=True, text=True, timeout=60)
    assert done.returncode == WRONG_SETTINGS, (done.returncode, done.stderr)
    check = subprocess.run([*start, "--check-config"], capture_output=True, text=True, timeout=60)
    assert check.returncode == WRONG_SETTINGS and check.stderr == done.stderr.splitlines(True)[-1]
    assert sorted(p.relative_to(data) for p in data.rglob("*.log")) == before, "nothing is made"
    return done.stderr


@pytest.mark.parametrize("noted", [True, False], ids=["noted", "unnoted"])
@pytest.mark.parametrize("was,now", [(1, 2), (2, 1), (3, 2), (2, 3)])
def test_another_number_of_shards_is_refused_with_both_numbers(data, was, now, noted):
    fill(data, was)
    if not noted:
        forget_note(data)
    said = refusal(data, "--shards", str(now))
    assert re.search(rf"written with {was} shards? and would be opened with {now};", said), said
    assert f"--shards {was}" in said and "docs/sharding.md" in said
    with Server(data, "--shards", str(was), engine="log") as server:
        assert [server.dequeue(topic=f"t{n}")[0]["payload"] for n in range(8)]
        assert (data / "shards").read_text() == f"{was}\n"


def test_a_long_path_leaves_room_for_both_numbers(tmp_path):
    data = tmp_path / ("long" * 50) / "data"
    data.parent.mkdir()
    fill(data, 1, topics=1)
    said = refusal(data, "--shards", "2")
    assert "/data was written with 1 shard and would be opened with 2; use --shards 1" in said
    assert "docs/sharding.md" in said


def test_a_first_start_that_was_cut_short_goes_on(data):
    (data / "0").mkdir(parents=True)
    (data / "shards").write_text("2\n")
    with Server(data / "0", engine="log") as server:  # the log that was made
        server.enqueue({"text": "x"})
    with Server(data, "--shards", "2", engine="log"):
        assert (data / "1").is_dir()


def test_an_emptied_folder_takes_any_number(data):
    data.mkdir()
    (data / "shards").write_text("4\n")
    with Server(data, "--shards", "2", engine="log"):
        assert (data / "shards").read_text() == "2\n"


def test_logs_of_both_kinds_are_refused(data):
    """Version 0.1.0 wrote this folder when the number was changed."""
    fill(data, 1)
    forget_note(data)
    with Server(data / "0", engine="log"):
        pass
    said = refusal(data, "--shards", "1")
    assert "has the log of 1 shard" in said and "logs of 2 shards" in said, said


def config(tmp_path, text):
    file = tmp_path / "sluice.yaml"
    file.write_text(text)
    return "--config", str(file)


def test_a_plain_folder_is_not_left_aside_by_a_configuration(tmp_path, data):
    fill(data, 1)
    said = refusal(data, *config(tmp_path, NAMED))
    assert f"{data} has messages" in said and "default" in said, said


def test_shards_of_a_configuration_are_not_left_aside_without_it(tmp_path, data):
    with Server(data, *config(tmp_path, NAMED), engine="log") as server:
        server.enqueue({"text": "x"})
    said = refusal(data)
    assert f"{data}/disk has messages" in said and "--config" in said, said


def test_a_log_beside_those_in_use_is_a_warning(tmp_path, data):
    fill(data, 1)
    both = "sharding: {enabled: true, commandMappings: {a: disk}}\n" + NAMED.split("\n", 2)[2]
    with Server(data, *config(tmp_path, both), engine="log") as server:
        server.enqueue({"topic": "a", "text": "x"})
    with Server(data, engine="log") as server:
        until(lambda: "log without a shard" in server.said())
        until(lambda: f"{data}/disk" in server.said())


def test_another_pool_size_is_refused(tmp_path, data):
    with Server(data, *config(tmp_path, NAMED), engine="log") as server:
        server.enqueue({"text": "x"})
    said = refusal(data, *config(tmp_path, NAMED.replace("engine: log", "engine: log, poolSize: 2")))
    assert "written with 1 shard and would be opened with 2; use poolSize 1" in said, said


def test_queues_move_to_a_folder_with_more_shards(tmp_path, data):
    """docs/sharding.md, "Another number of shards"."""
    fill(data, 1)
    new = tmp_path / "new"
    file = config(tmp_path, f"""
sharding:
  enabled: true
  defaultShard: next
  previousShards: {{defaultShard: default}}
redis.shards:
  next: {{engine: log, folder: {new}, poolSize: 2}}
""")
    with Server(data, "--shards", "1", *file, engine="log") as server:
        for n in range(8):
            done = subprocess.run([SLUICE, "admin", "migrate-shard", "--server",
                                   "http://%s:%d" % server.address, "--command", f"t{n}",
                                   "--from-shard", "default", "--to-shard", "next", "--verify"],
                                  capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stderr
    with Server(new, "--shards", "2", engine="log") as server:
        for n in range(8):
            until(lambda n=n: server.stats(topic=f"t{n}")["total"] == 1)
            message, = server.dequeue(topic=f"t{n}")
            server.ack(message, topic=f"t{n}")
