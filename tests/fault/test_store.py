"""A log in a store that fails, and on machines whose clocks are wrong."""
import threading

import pytest

from faults import Hurt, remove
from served import Refused, texts, until
from test_kill import kill_under_load

HOUR = 3600 * 10**9


def stored(folder, shim, *options):
    return Hurt(folder, "--store", f"file://{folder.parent}/store", *options, shim=shim)


def test_a_request_waits_for_the_store_no_longer_than_its_patience(folder, shim):
    """Faults 13 and 15: the put of b succeeds without an answer."""
    with stored(folder, shim, "--store-patience", "200ms") as server:
        server.enqueue({"text": "a"})
        shim.set("no_fsync", 1)
        answer = server.post("/enqueue", [server.here(text="b")])
        assert answer.status == 503 and answer.body["error"] == "outcome_unknown", answer
        answer = server.post("/enqueue", [server.here(text="c")])
        assert answer.status == 503 and answer.body["error"] != "outcome_unknown", answer
        shim.set("no_fsync", 0)
        until(lambda: server.post("/enqueue", [server.here(text="d")]).status == 200)
        assert sorted(set(texts(server.peek(limit=100)))) == ["a", "b", "d"]
        assert "event=\"shard reopened\"" not in server.said()


def test_a_start_waits_for_a_store_that_fails(folder, shim):
    """The store heals only after it has failed several times."""
    def heal():
        until(lambda: shim.get("failed") > 3)
        shim.set("no_fsync", 0)

    shim.set("no_fsync", 1)
    healer = threading.Thread(target=heal)
    healer.start()
    with stored(folder, shim) as server:
        healer.join()
        server.enqueue({"text": "a"})


def test_metrics_show_what_the_store_has_not_confirmed(folder, shim):
    """They need no answer of the shard, which waits for the store."""
    with stored(folder, shim, "--shards", "1", "--store-patience", "200ms", "--stats-timeout", "100ms") as server:
        shim.set("no_fsync", 1)
        assert server.post("/enqueue", [server.here(text="x" * 1000)]).status == 503
        assert server.metric('sluice_shard_unconfirmed_groups{shard="0"}') == 1
        assert server.metric('sluice_shard_unconfirmed_bytes{shard="0"}') > 1000
        assert server.metric('sluice_shard_unconfirmed_seconds{shard="0"}') >= 0.2
        assert server.get("/readyz").body["nodes"]["unconfirmed_ms"] >= 200
        shim.set("no_fsync", 0)
        until(lambda: server.metric('sluice_shard_unconfirmed_groups{shard="0"}') == 0)
        assert server.metric('sluice_shard_unconfirmed_bytes{shard="0"}') == 0
        assert server.metric('sluice_shard_unconfirmed_seconds{shard="0"}') == 0


def front(folder, shim, *options):
    return stored(folder, shim, "--shards", "1", "--store-front", "folder", "--front-flush-interval", "1h", *options)


def break_folder(server, shim):
    """No sync of the folder succeeds any more: the next request gets 503."""
    shim.set("sync_stuck", 1)
    shim.set("sync_fails", 1)
    answer = server.post("/enqueue", [server.here(text="unknown")])
    assert answer.status == 503, answer


def test_a_front_folder_that_fails_refuses_requests(folder, shim):
    """MQ-49: front.down is refuse, unless the settings say otherwise."""
    with front(folder, shim) as server:
        server.enqueue({"text": "a"})
        break_folder(server, shim)

        def is_refused_again():
            assert server.post("/enqueue", [server.here(text="no")]).status == 503
            return "shard not taken" in server.said()

        until(is_refused_again)
        shim.set("sync_stuck", 0)
        until(lambda: server.post("/enqueue", [server.here(text="b")]).status == 200)
        assert {"a", "b"} <= set(texts(server.peek(limit=100))) <= {"a", "b", "unknown"}


def test_a_front_folder_that_fails_is_left(folder, shim, tmp_path):
    """MQ-49, MQ-F2, front.down, front.spare: what the folder has synced goes to the store first, then requests wait for the
    store. A start without the old folder has a new one that answers."""
    with front(folder, shim, "--front-down", "slow", "--front-spare", str(tmp_path / "spare")) as server:
        server.enqueue(*[{"text": f"m{n}"} for n in range(5)])
        server.ack(server.dequeue(limit=1)[0])
        break_folder(server, shim)
        until(lambda: server.post("/enqueue", [server.here(text="slow")]).status == 200)
        assert "front folder left, requests wait for the store" in server.said()
        shim.set("no_fsync", 1)  # of the store
        assert server.post("/enqueue", [server.here(text="unknown")]).status == 503
        shim.set("no_fsync", 0)
        until(lambda: server.post("/enqueue", [server.here(text="after")]).status == 200)
        for end in server.kill, lambda: (server.stop(), remove(folder)):
            end()
            shim.set("sync_stuck", 0)
            server.start()
            want = {"m1", "m2", "m3", "m4", "slow", "after"}
            found = texts(server.peek(limit=100))
            assert want <= set(found) <= want | {"unknown"} and len(found) - found.count("unknown") == len(want)
        server.enqueue({"text": "fast"})
        assert server.metric('sluice_shard_unconfirmed_bytes{shard="0"}') > 0  # the new folder answers


def test_slow_needs_a_spare_folder(folder, shim):
    with pytest.raises(Refused) as refused:
        front(folder, shim, "--front-down", "slow")
    assert "invalid front.spare: empty; expected a folder on another disk" in str(refused.value)


def test_the_wall_clock_of_a_machine_does_not_count(folder, shim):
    with stored(folder, shim) as server:
        server.enqueue({"text": "x"}, delay="1h")
        server.kill()
        shim.set("clock_step", 30 * HOUR)
        server.start()
        assert server.stats()["delayed"] == 1
        server.enqueue({"text": "y"})
        server.kill()
        shim.set("clock_step", -30 * HOUR)
        server.start()
        assert server.stats()["delayed"] == 1
        assert texts(server.dequeue()) == ["y"]


def test_kill_9_on_changing_machines_breaks_no_promise(folder, tmp_path):
    """LQ-30, LQ-31, LQ-36: the next server has the folder, an old one, or none."""
    folders = [folder, tmp_path / "other"]
    with stored(folder, None) as server:
        def killed(dice):
            server.folder = dice.choice(folders)
            if dice.random() < 0.3:
                remove(server.folder)

        kill_under_load(server, killed)
        server.kill()
    remove(folders[1])
