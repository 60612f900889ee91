"""`sluice admin store rejoin`: hands in what a folder accepted and a store that went back does not have."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "integration"))
from served import Server, texts, until  # noqa: E402

SLUICE = os.environ["SLUICE"]
LARGE = "large " * 500_000  # in a file of its own


def node(tmp_path, name, shards="1"):
    return Server(tmp_path / name, "--store", f"file://{tmp_path}/store", "--store-lease", "1s", "--shards", shards, engine="log")


def rejoin(tmp_path, *options, folder="one", code=0):
    done = subprocess.run([SLUICE, "admin", "store", "rejoin", f"file://{tmp_path}/store", "--data", str(tmp_path / folder), *options],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def report(tmp_path, *options, code=0):
    return [json.loads(line) for line in rejoin(tmp_path, "--json", *options, code=code).stdout.splitlines()]


def serves(server, shards=1):
    return server.get("/readyz").body["shards"]["here"] == shards


def save(tmp_path):
    shutil.copytree(tmp_path / "store", tmp_path / "backup", ignore=shutil.ignore_patterns(".tmp"))


def go_back(tmp_path):
    shutil.rmtree(tmp_path / "store")
    shutil.copytree(tmp_path / "backup", tmp_path / "store")


@pytest.fixture
def parted(tmp_path):
    """The folder `one` has messages that the store has lost; another server goes on without them."""
    with node(tmp_path, "one") as one:
        for n in range(5):
            one.enqueue({"text": f"early-{n}"}, topic="early")
        save(tmp_path)
        for n in range(250):
            one.enqueue({"text": f"late-{n}"}, topic="late")
        one.enqueue({"text": LARGE}, topic="large")
        one.enqueue({"text": "rich"}, topic="rich", priority=7, delay="1h", key="k", attributes={"a": "b"},
                    idempotency_key="i", correlation_id="c", max_attempts=3)
        one.enqueue({"text": "acked"}, topic="acked")
        one.ack(one.dequeue(topic="acked")[0], topic="acked")
        ended = one.dequeue(topic="early")[0]
        one.ack(ended, topic="early")
        one.dequeue(topic="late")
        one.kill()
    go_back(tmp_path)
    with node(tmp_path, "two") as two:
        until(lambda: serves(two))
        two.enqueue({"text": "other"}, topic="other")
        two.ended = ended["id"]
        yield two


def address(server):
    return "{}:{}".format(*server.address)


def count_queue(server, queue):
    answer = server.get("/stats", namespace=server.namespace, topic=queue)
    assert answer.status in (200, 404), answer
    return sum(answer.body[state] for state in ("ready", "delayed", "leased")) if answer.status == 200 else 0


def count(server):
    return {queue: count_queue(server, queue) for queue in ("early", "late", "large", "rich", "acked", "other")}


def test_messages_are_handed_in_once(tmp_path, parted):
    before = count(parted)
    found, = report(tmp_path)
    assert before == {"early": 5, "late": 0, "large": 0, "rich": 0, "acked": 0, "other": 1}
    assert count(parted) == before and not (tmp_path / "one" / "rejoin").exists()
    assert (found["messages"], found["handed_in"], found["ended"], found["dead"]) == (252, 0, 1, 0)
    assert found["may_come_again"] == [parted.ended]
    assert found["records"]["accept"] == 253 and found["records"]["done"] == 2

    found, = report(tmp_path, "--apply", "--server", address(parted))
    assert (found["handed_in"], found["handed_in_before"]) == (252, 0)
    after = {"early": 5, "late": 250, "large": 1, "rich": 1, "acked": 0, "other": 1}
    assert count(parted) == after
    found, = report(tmp_path, "--apply", "--server", address(parted))
    assert (found["handed_in"], found["handed_in_before"]) == (0, 252)
    assert count(parted) == after

    late = []
    while messages := parted.dequeue(topic="late", limit=100):
        late += texts(messages)
    assert late == [f"late-{n}" for n in range(250)]
    assert texts(parted.dequeue(topic="large")) == [LARGE]
    rich, = parted.get("/v1/admin/messages", namespace=parted.namespace, queue="rich").body["messages"]
    assert rich["status"] == "delayed" and rich["priority"] == 7 and rich["key"] == "k" and rich["attributes"] == {"a": "b"}


def test_a_message_that_was_sent_again_with_its_idempotency_key_is_not_added(tmp_path, parted):
    parted.enqueue({"text": "rich"}, topic="rich", idempotency_key="i")
    rejoin(tmp_path, "--apply", "--server", address(parted))
    assert count(parted)["rich"] == 1 and count(parted)["late"] == 250


def test_a_run_that_ended_early_is_repeated(tmp_path, parted):
    """The server dies in the middle: the next run goes on."""
    parted.kill()
    rejoin(tmp_path, "--apply", "--server", address(parted), "--timeout", "1s", code=1)
    assert count_after_start(tmp_path, parted) == 0
    rejoin(tmp_path, "--apply", "--server", address(parted))
    assert count(parted)["late"] == 250


def count_after_start(tmp_path, server):
    server.start()
    until(lambda: serves(server))
    return count(server)["late"]


def test_a_folder_that_follows_the_store_has_nothing_to_hand_in(tmp_path):
    with node(tmp_path, "one", "3") as one:
        for n in range(10):
            one.enqueue({"text": str(n)}, topic=f"q{n}")
        one.stop()
    found = report(tmp_path)
    assert len(found) == 3 and all(shard["messages"] == 0 and shard["parted_at_group"] == 0 for shard in found)
    assert "nothing was changed" in rejoin(tmp_path).stdout


def test_a_store_that_lacks_groups_and_has_no_others(tmp_path):
    with node(tmp_path, "one") as one:
        one.enqueue({"text": "early"}, topic="early")
        save(tmp_path)
        one.enqueue({"text": "late"}, topic="late")
        one.kill()
    go_back(tmp_path)
    found, = report(tmp_path)
    assert found["messages"] == 1 and found["parted_at_group"] == 0


def test_what_cannot_be_rejoined_is_named(tmp_path, parted):
    assert "missing --data" in subprocess.run([SLUICE, "admin", "store", "rejoin", f"file://{tmp_path}/store"],
                                              capture_output=True, text=True).stderr
    assert "no such folder" in rejoin(tmp_path, folder="none", code=3).stderr
    (tmp_path / "empty").mkdir()
    assert "has no log of a store" in rejoin(tmp_path, folder="empty", code=3).stderr
    assert "is in use" in rejoin(tmp_path, folder="two", code=1).stderr
    with Server(tmp_path / "three", "--store", f"file://{tmp_path}/another", "--shards", "1", engine="log"):
        pass
    assert "is the cache of another store" in rejoin(tmp_path, folder="three", code=1).stderr
