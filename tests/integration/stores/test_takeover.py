"""Several servers on one store: who owns which shard, and what happens when a server dies."""
import os
import re
import signal
import threading

import pytest

from clustered import shards, two, url
from served import Node, Refused, Server, texts, until

QUEUES = [f"q{n}" for n in range(24)]  # on all shards, nearly always


# So many that each of two servers is the first choice of at least one: ranks are random. Three need more.
SHARDS, MORE = 16, 24


def node(tmp_path, name, *options, lease="1s", settle="1s", count=SHARDS):
    return Server(tmp_path / name, "--store", f"file://{tmp_path}/store", "--shards", str(count), "--store-lease", lease,
                  "--store-settle", settle, *options, engine="log")


def is_shared(*servers, count=SHARDS):
    """Each shard has one owner that all servers know, and each server owns at least one."""
    found = [shards(server) for server in servers]
    return all(here > 0 and here + elsewhere == count for here, elsewhere in found) and \
        sum(here for here, _ in found) == count


def place(servers, queue):
    """The server that owns the shard of a queue."""
    for server in servers:
        if server.post("/enqueue", [server.here(topic=queue, text="probe")]).status == 200:
            return server
    return None


def send(servers, queue, text, space="test"):
    """Sends a message to the server that has the queue. Returns whether a server has accepted it."""
    for server in servers:
        try:
            if server.post("/enqueue", [server.here(namespace=space, topic=queue, text=text)]).status == 200:
                return True
        except OSError:
            server.close()
    return False


def drain(server, queues):
    """All texts of the queues, which are acked."""
    found = []
    for queue in queues:
        while messages := server.dequeue(topic=queue, limit=100):
            found += texts(messages)
            for message in messages:
                server.ack(message, topic=queue)
    return found


def epochs(server):
    """The last epoch in which the server took each shard."""
    return {found[1]: int(found[2]) for found in re.finditer(r'"shard taken" shard=(\S+) epoch=(\d+)', server.said())}


def test_the_first_server_takes_all_shards_and_a_second_gets_its_share(tmp_path):
    with node(tmp_path, "one") as one:
        assert shards(one) == (SHARDS, 0)
        with node(tmp_path, "two") as two:
            until(lambda: is_shared(one, two))
            for queue in QUEUES:
                until(lambda queue=queue: place([one, two], queue))


def test_a_queue_of_another_server_is_moved_and_the_error_names_the_server(tmp_path):
    with node(tmp_path, "one") as one, node(tmp_path, "two", settle="1h") as two:
        until(lambda: shards(two)[1] > 0)
        until(lambda: is_shared(one, two))
        queue = next(q for q in QUEUES if place([one, two], q) is one)
        answer = two.post("/enqueue", [two.here(topic=queue, text="x")])
        assert answer.status == 503 and answer.body["error"] == "moved", answer
        assert answer.body["owner"] == url(one)
        assert int(answer.headers["Retry-After"]) > 0
        answer = two.post("/v1/queue/dequeue", {"namespace": "test", "queue": queue, "owner": "me"})
        assert answer.status == 503 and answer.body["retry_after_seconds"] > 0, answer
        assert url(one) in answer.body["detail"]
        answer = two.get("/stats", namespace="test", topic=queue)
        assert answer.status == 503 and answer.body["owner"] == url(one)
        assert "answered without some shards" not in two.said()


def test_a_server_advertises_the_address_that_others_name(tmp_path):
    with node(tmp_path, "one", "--advertise", "https://one.example:7171"), node(tmp_path, "two", settle="1h") as two:
        until(lambda: shards(two)[1] > 0)
        answer = until(lambda: next((a for q in QUEUES for a in [two.post("/enqueue", [two.here(topic=q, text="x")])]
                                     if a.status == 503), None))
        assert answer.body["owner"] == "https://one.example:7171"


def test_a_server_that_has_joined_gets_nothing_before_it_has_settled(tmp_path):
    """The owner hands over by its own setting: a second after the other server has joined, or in an hour."""
    with node(tmp_path, "one", settle="1h") as one, node(tmp_path, "two"), node(tmp_path, "three") as three:
        until(lambda: shards(three) == (0, SHARDS))
        assert shards(one) == (SHARDS, 0)


def test_a_server_that_is_killed_loses_nothing_and_the_other_takes_over(tmp_path):
    """LQ-82, SH-F7, SH-F8."""
    with node(tmp_path, "one") as one, node(tmp_path, "two") as two:
        until(lambda: is_shared(one, two))
        accepted, stop = [], threading.Event()

        def load(me):
            n = 0
            while not stop.is_set():
                text, queue = f"{me}-{n}", QUEUES[n % len(QUEUES)]
                if send([one, two], queue, text):
                    accepted.append(text)
                n += 1

        threads = [threading.Thread(target=load, args=(me,)) for me in range(4)]
        for thread in threads:
            thread.start()
        until(lambda: len(accepted) > 200)
        one.kill()
        until(lambda: shards(two) == (SHARDS, 0))
        sent = len(accepted)
        until(lambda: len(accepted) > sent + 100)
        stop.set()
        for thread in threads:
            thread.join()
        lost, now = epochs(one), epochs(two)
        assert now.keys() == lost.keys() and all(now[shard] > lost[shard] for shard in lost)
        found = drain(two, QUEUES)
        assert set(accepted) <= set(found)
        assert len(found) == len(set(found))


def test_a_server_that_was_paused_answers_for_nothing_that_it_lost(tmp_path):
    """LINE-13, fault 16: an owner that slept past its lease learns that before it answers."""
    with node(tmp_path, "one", settle="1h") as one, node(tmp_path, "two", settle="1h") as two:
        one.enqueue(*[{"text": f"m{n}"} for n in range(10)])
        os.kill(one.process.pid, signal.SIGSTOP)
        try:
            until(lambda: shards(two) == (SHARDS, 0))
            assert len(drain(two, ["mail"])) == 10
            two.enqueue({"text": "later"})
            reads = [one.connect() for _ in range(4)]  # the first things that it finds when it wakes
            for read in reads:
                read.request("GET", "/peek?namespace=test&topic=mail")
        finally:
            os.kill(one.process.pid, signal.SIGCONT)
        for read in reads:
            assert read.getresponse().status == 503
            read.close()
        for _ in range(20):
            assert one.post("/enqueue", [one.here(text="lost")]).status == 503
            assert one.post("/dequeue", one.here(limit=10)).status == 503
        until(lambda: shards(one) == (0, SHARDS))
        assert drain(two, ["mail"]) == ["later"]


def test_a_clean_stop_hands_over_at_once(tmp_path):
    """No lease has to run out: it lasts longer than this test waits. Servers read beats five times in a lease."""
    with node(tmp_path, "one", lease="65s", settle="1h") as one:
        one.enqueue({"text": "kept"})
        with node(tmp_path, "two", lease="65s", settle="1h") as two:
            one.stop()
            until(lambda: shards(two) == (SHARDS, 0))
            assert drain(two, ["mail"]) == ["kept"]


def test_a_server_that_is_started_again_has_its_shards_at_once(tmp_path):
    """The folder is locked, so the process that had it before is dead: no lease has to run out."""
    with node(tmp_path, "one", lease="1h") as one:
        one.enqueue({"text": "kept"})
        one.restart("kill")
        assert shards(one) == (SHARDS, 0)
        assert drain(one, ["mail"]) == ["kept"]


def test_three_servers_and_any_one_killed(tmp_path):
    with node(tmp_path, "one", count=MORE) as one, node(tmp_path, "two", count=MORE) as two, \
            node(tmp_path, "three", count=MORE) as three:
        until(lambda: is_shared(one, two, three, count=MORE))
        for n, queue in enumerate(QUEUES):
            until(lambda n=n, queue=queue: send([one, two, three], queue, f"m{n}"))
        two.kill()
        until(lambda: is_shared(one, three, count=MORE))
        for server in one, three:
            until(lambda server=server: server.get("/readyz").status == 200)
        mine = [q for q in QUEUES if place([one, three], q) is one]
        rest = [q for q in QUEUES if q not in mine]
        found = drain(one, mine) + drain(three, rest)
        assert {f"m{n}" for n in range(len(QUEUES))} <= set(found)


def test_ids_of_several_servers_differ(tmp_path):
    with node(tmp_path, "one") as one, node(tmp_path, "two") as two:
        until(lambda: is_shared(one, two))
        ids = []
        for server in one, two:
            for queue in QUEUES:
                answer = server.post("/enqueue", [server.here(topic=queue, text="x")] * 50)
                ids += answer.body if answer.status == 200 else []
        assert len(ids) == len(set(ids)) == 50 * len(QUEUES)
        assert len({message >> 12 & 1023 for message in ids}) > 1  # the number of the shard


def test_two_servers_never_share_a_folder(tmp_path):
    with node(tmp_path, "one"):
        with pytest.raises(Refused, match="is used by another server"):
            node(tmp_path, "one")


def test_a_server_without_a_store_leaves_the_folder_of_a_node_alone(tmp_path):
    """NODENAME-3: a node that owns no shard has no log open."""
    with two(tmp_path) as (_, entry):
        with pytest.raises(Refused, match="is used by another server"):
            Server(entry.folder, engine="log")
        assert not list(entry.folder.rglob("*.log"))


def test_the_list_of_queues_has_those_of_this_server(tmp_path):
    with node(tmp_path, "one") as one, node(tmp_path, "two") as two:
        until(lambda: is_shared(one, two))
        for queue in QUEUES:
            until(lambda queue=queue: send([one, two], queue, "x"))
        found = [{q["queue"] for q in server.get("/v1/admin/queues").body["queues"]} for server in (one, two)]
        assert found[0] | found[1] >= set(QUEUES) and not found[0] & found[1]


STORES = """
sharding: {{enabled: true, defaultShard: {1}, tenantOverrides: {{t: {2}}}}}
store: {{lease: 1s, settle: 1s}}
shards:
  {1}: {{engine: log, store: "file://{0}/first", poolSize: 16}}
  {2}: {{engine: log, store: "file://{0}/second", poolSize: 20}}
"""


def test_servers_share_the_shards_of_two_stores(tmp_path):
    """OWNERSHIP-3: each store has its own owners; each server may give the shards other names."""
    def server(name, *names):
        return Node(tmp_path, STORES.format(tmp_path, *names), data=name, engine="log")

    with server("one", "a", "b") as one, server("two", "x", "y") as two:
        until(lambda: is_shared(one, two, count=36))
        for queue in QUEUES:
            for space in "test", "t":
                until(lambda queue=queue, space=space: send([one, two], queue, f"{queue} of {space}", space))
        lives = [[f.name for f in (tmp_path / store / "node").iterdir()] for store in ("first", "second")]
        assert len(lives[0]) == 2 and sorted(lives[0]) == sorted(lives[1])
        owned = [re.findall(r'sluice_shard_owned\{shard="(.)",lane="\d+"\} ([01])', s.get("/metrics").text)
                 for s in (one, two)]
        assert [len(o) for o in owned] == [36, 36] and {name for name, _ in owned[1]} == {"x", "y"}
        assert one.get("/readyz").body["nodes"]["living"] == 2
        one.kill()
        until(lambda: shards(two) == (36, 0))
        for space in "test", "t":
            two.namespace = space
            assert sorted(drain(two, QUEUES)) == sorted(f"{queue} of {space}" for queue in QUEUES)
        one.start()
        until(lambda: is_shared(one, two, count=36))
        two.stop()
        until(lambda: shards(one) == (36, 0))
