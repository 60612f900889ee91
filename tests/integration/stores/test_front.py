"""A front folder: the folder of the shard answers, and the store gets the log behind (docs/stores.md)."""
import os
import signal
import subprocess

import pytest

from onstore import SHARDS, all_texts, stored
from postgres import Postgres
from served import texts, until

SLUICE = os.environ.get("SLUICE")


@pytest.fixture(scope="module")
def database():
    with Postgres() as db:
        yield db


schemas = (f"front{n}" for n in range(1000))


def front(folder, url, *options, interval="50ms"):
    return stored(folder, url, "--store-front", "folder", "--front-flush-interval", interval, *options)


def lag(server, what="bytes"):
    return sum(server.metric(f'sluice_shard_unconfirmed_{what}{{shard="{n}"}}') for n in range(SHARDS))


def is_home(server):
    return lag(server) == 0


def check_store(url):
    checked = subprocess.run([SLUICE, "admin", "store", "check", url], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_database_that_is_away_delays_nothing(tmp_path, database):
    """MQ-07, MQ-08, MQ-11, MQ-15, MQ-50, MQ-51: messages are accepted, claimed and acked while the database is stopped;
    a killed server that starts again has them all, and none that was acked; then the database gets them."""
    url = database.url(next(schemas))
    with front(tmp_path / "one", url, "--front-drain", "100ms") as server:
        server.enqueue({"text": "before"})
        until(lambda: is_home(server))
        database.stop()
        server.enqueue(*[{"text": f"m{n:02}"} for n in range(20)])
        server.enqueue({"text": "other", "namespace": "never-configured"})
        for message in server.dequeue(limit=5):
            server.ack(message)
        assert lag(server) > 0 and lag(server, "groups") >= 3 and lag(server, "seconds") > 0
        server.kill()
        database.start()
        server.start()
        assert texts(server.dequeue(namespace="never-configured")) == ["other"]
        database.stop()
        server.enqueue({"text": "z"})
        server.stop()
        assert "front folder not drained, the next start carries the rest" in server.said()
        database.start()
        server.start()
        until(lambda: is_home(server))
        check_store(url)
        assert all_texts(server, 17) == [*[f"m{n:02}" for n in range(4, 20)], "z"]
        assert server.dequeue(limit=1) == []


def test_the_limit_of_a_front_folder(tmp_path, database):
    """MQ-49 (refuse), front.max: new messages get 503 while the store lacks too much; acks go on. Afterwards they are
    accepted again."""
    url = database.url(next(schemas))
    with front(tmp_path / "one", url, "--front-max", "100000", "--store-patience", "10ms") as server:
        server.enqueue({"text": "first"})
        until(lambda: is_home(server))
        database.stop()
        accepted = []

        def is_refused():
            answer = server.post("/enqueue", [server.here(text="x" * 10_000)])
            accepted.append(answer.status == 200)
            return answer.status == 503 and answer.body

        refusal = until(is_refused)
        assert refusal["error"] == "disk_full" and "front.max is 100000" in refusal["message"]
        assert 9 <= sum(accepted) <= 20
        server.ack(server.dequeue(limit=1)[0])
        database.start()
        until(lambda: server.post("/enqueue", [server.here(text="again")]).status == 200)
        assert server.stats()["ready"] == sum(accepted) + 1


def test_limits_are_checked_when_a_message_is_accepted_and_not_again(tmp_path):
    """MQ-15, MQ-50: what the folder has goes to the store and to consumers, also beyond limits that are lower by now."""
    url = f"file://{tmp_path}/store"
    lower = ["--limits-queue-depth", "2", "--limits-payload", "100", "--limits-rate", "1", "--limits-burst", "1"]
    with front(tmp_path / "one", url, "--front-drain", "0s", interval="1h") as server:
        server.enqueue(*[{"text": f"{n}" * 200} for n in range(5)])
        server.kill()
        server.options = (*server.options, *lower)
        server.start()
        assert server.post("/enqueue", [server.here(text="x" * 200)]).status in (413, 429)
        until(lambda: is_home(server))
        messages = server.dequeue(limit=5)
        assert len(messages) == 5
        for message in messages:
            assert server.post("/nack", {"receipt": message["receipt"], "delay": 0}).status == 200
        assert all_texts(server, 5) == [f"{n}" * 200 for n in range(5)]
    check_store(url)


@pytest.mark.parametrize("how", ["signal", "call", "command"])
def test_a_flush_on_demand(tmp_path, how):
    """MQ-12: what the folder has goes to the store before the tick."""
    with front(tmp_path / "one", f"file://{tmp_path}/store", interval="1h") as server:
        server.enqueue({"text": "m"})
        assert lag(server, "groups") >= 1
        if how == "signal":
            server.process.send_signal(signal.SIGUSR1)
        elif how == "call":
            assert server.post("/v1/admin/nodes/flush", {}).body == {"shards": SHARDS}
        else:
            subprocess.run([SLUICE, "admin", "node", "flush", "--server", "{}:{}".format(*server.address)], check=True)
        until(lambda: is_home(server))


def test_size_flushes(tmp_path):
    """MQ-12, MQ-13, MQ-14: with front.flush.bytes the log goes to the store; many messages share a group."""
    url = f"file://{tmp_path}/store"
    with front(tmp_path / "one", url, "--front-flush-bytes", "64K", interval="1h") as server:
        for n in range(100):
            server.enqueue({"text": f"{n}" + "x" * 5000})
        until(lambda: lag(server) < 128_000)
        groups = list((tmp_path / "store").glob("*/group/*"))
        assert len(groups) < 50
    check_store(url)


def test_a_stop_drains_the_folder(tmp_path):
    """MQ-53, MQ-54: a clean stop ends when the store has all."""
    with front(tmp_path / "one", f"file://{tmp_path}/store", interval="1h") as server:
        server.enqueue(*[{"text": f"m{n}"} for n in range(10)])
        server.stop()
        assert server.said().count("front folder drained") == SHARDS
        server.start()
        assert all_texts(server, 10) == [f"m{n}" for n in range(10)]


def test_a_shard_stays_at_the_node_of_its_folder(tmp_path):
    """LINE-17, LINE-12 k, MQ-47, MQ-48: no other node takes it, whether the node is dead or has stopped; when it is back,
    nothing is missing."""
    url = f"file://{tmp_path}/store"
    with front(tmp_path / "one", url) as one, stored(tmp_path / "two", url) as two:
        one.enqueue({"text": "m0"})
        assert one.post("/v1/admin/nodes/drain", {}).status == 409
        for n, end in enumerate((one.kill, one.stop), 1):
            end()
            until(lambda: not any(node["living"] for node in two.get("/v1/admin/nodes").body["nodes"] if not node["self"]))
            assert two.post("/enqueue", [two.here(text="no")]).status == 503
            one.start()
            one.enqueue({"text": f"m{n}"})
        assert two.metric("sluice_nodes_living") >= 1
        assert all_texts(one, 3) == ["m0", "m1", "m2"]


def command(*words, code=0):
    done = subprocess.run([SLUICE, "admin", "store", *words], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_lost_folder_is_given_up_and_handed_in(tmp_path):
    """LINE-17: without the folder another server has what the store has; rejoin hands in the rest, once; the server of the
    folder refuses it."""
    url, data = f"file://{tmp_path}/store", str(tmp_path / "one")
    large = "z" * 2_000_000
    with front(tmp_path / "one", url, "--front-drain", "0s", interval="1h") as one, stored(tmp_path / "two", url) as two:
        one.enqueue({"text": "home"})
        one.post("/v1/admin/nodes/flush", {})
        until(lambda: is_home(one))
        one.enqueue({"text": "a"}, {"text": "acked"}, {"text": large})
        for message in one.dequeue(limit=2):
            one.ack(message)
        one.kill()
        assert "is the front folder of shard" in command("rejoin", url, "--data", data, code=1)
        for shard in range(SHARDS):
            assert "nothing was changed" in command("take", url, str(shard), "--without-front")
            assert "is free: a server takes it" in command("take", url, str(shard), "--without-front", "--apply")
            assert "is not pinned to a front folder" in command("take", url, str(shard), "--without-front", code=1)
        until(lambda: two.get("/readyz").body["shards"]["here"] == SHARDS)
        address = "{}:{}".format(*two.address)
        for handed_in in ("handed in             2, and 0 by", "handed in             0, and 2 by"):
            assert handed_in in command("rejoin", url, "--data", data, "--server", address, "--apply")
        assert all_texts(two, 3) == ["acked", "home", large]
        two.kill()  # from a dead server the folder's takes as soon as the lease has ended
        one.start()
        until(lambda: "the shard was taken without the front folder" in one.said())
