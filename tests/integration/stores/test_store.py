"""A server whose log lives in a store: --store URL. Its folder is a cache."""
import os
import pathlib
import re
import shutil
from pathlib import Path
import struct
import threading
import time

import pytest

from onstore import check_large_group
from served import Node, Refused, Server, texts, until

MESSAGES = int(os.environ.get("STORE_MESSAGES", "20000"))


def stored(tmp_path, folder, *options, shards=1):
    return Server(tmp_path / folder, "--store", f"file://{tmp_path}/store", "--store-lease", "1s",
                  *(["--shards", str(shards)] if shards else []), *options, engine="log")


def all_texts(server, n):
    """The texts of n messages, which are acked."""
    found = []
    while len(found) < n:
        messages = server.dequeue(limit=100, wait="10s")
        found += texts(messages)
        for message in messages:
            server.ack(message)
    return sorted(found)


def test_what_was_accepted_survives_the_loss_of_the_folder(tmp_path):
    """LQ-30, LQ-36: a machine may be lost with its disk."""
    with stored(tmp_path, "data") as server:
        server.enqueue(*[{"text": f"m{n:03}"} for n in range(120)])
        server.ack(server.take())
        leased = server.take()
        server.kill()
        shutil.rmtree(tmp_path / "data")
        server.start()
        server.ack(leased)
        assert all_texts(server, 118) == [f"m{n:03}" for n in range(2, 120)]
        server.restart()
        assert server.dequeue(limit=1) == []


def test_a_call_of_15_mb_is_one_group(tmp_path):
    (tmp_path / "store").mkdir()
    check_large_group(tmp_path, f"file://{tmp_path}/store")
    sizes = [path.stat().st_size for path in (tmp_path / "store").glob("*/group/*")]
    assert 15_000_000 < max(sizes) < 32 << 20


def test_another_machine_goes_on(tmp_path):
    with stored(tmp_path, "one") as server:
        server.enqueue({"text": "a"}, {"text": "b"})
        server.kill()
    with stored(tmp_path, "two") as server:
        server.enqueue({"text": "c"})
        server.stop()
    with stored(tmp_path, "one") as server:  # its folder is old
        assert all_texts(server, 3) == ["a", "b", "c"]


def test_a_restart_fetches_nothing_that_the_folder_has(tmp_path):
    with stored(tmp_path, "data") as server:
        server.enqueue(*[{"text": "x"} for _ in range(100)])
        server.restart("kill")
        until(lambda: "fetched=0" in server.said())


def test_a_fencing_token_never_goes_back(tmp_path):
    """A clean stop does not tell which numbers another machine has used."""
    with stored(tmp_path, "data") as server:
        server.enqueue({"text": "x"})
        token = server.take(lease="1s")["fencing_token"]
        server.restart()
        assert server.take(wait="30s")["fencing_token"] >= token + 2**23


def test_a_cache_is_no_log_and_a_log_is_no_cache(tmp_path):
    with stored(tmp_path, "data"):
        pass
    with pytest.raises(Refused, match="is the cache of a store; expected the setting `store`"):
        Server(tmp_path / "data", engine="log")
    with Server(tmp_path / "plain", engine="log"):
        pass
    with pytest.raises(Refused, match="is a log of its own; expected an empty folder"):
        stored(tmp_path, "plain")


def test_the_folder_of_another_store_is_refused(tmp_path):
    with stored(tmp_path, "data"):
        pass
    with pytest.raises(Refused, match="belongs to shard 0 of store [0-9a-f]{32}"):
        Server(tmp_path / "data", "--store", f"file://{tmp_path}/other", "--shards", "1", engine="log")


def test_each_of_several_logs_has_a_line_of_its_own(tmp_path):
    with stored(tmp_path, "data", shards=3) as server:
        for queue in range(9):
            server.enqueue({"topic": f"q{queue}", "text": f"{queue}"})
        server.kill()
        shutil.rmtree(tmp_path / "data")
        server.start()
        for queue in range(9):
            assert texts([server.take(topic=f"q{queue}")]) == [f"{queue}"]
    with pytest.raises(Refused, match="invalid number of shards: 1; the store has 3"):
        stored(tmp_path, "new")


def test_shards_share_the_threads_of_their_store(tmp_path):
    with stored(tmp_path, "data", shards=8) as server:
        tasks = Path(f"/proc/{server.process.pid}/task").iterdir()
        names = [(task / "comm").read_text().strip() for task in tasks]
        assert names.count("store") <= 8 + 8 + 3  # one for each shard, some for reading, beats


def test_a_large_payload_survives_the_loss_of_the_folder(tmp_path):
    payloads = tmp_path / "store/0/payload"
    with stored(tmp_path, "data") as server:
        large = "".join(f"{n:07}," for n in range(1 << 20)) + "end"  # two objects
        server.enqueue({"text": large})
        assert len([f for f in payloads.rglob("*") if f.is_file()]) == 2
        server.kill()
        shutil.rmtree(tmp_path / "data")
        server.start()
        message = server.take()
        assert texts([message]) == [large]
        server.ack(message)
        server.enqueue({"text": "x"})
        until(lambda: not [f for f in payloads.rglob("*") if f.is_file()])


def bytes_read(server):
    """What the process has read from files so far."""
    lines = pathlib.Path(f"/proc/{server.process.pid}/io").read_text()
    return int(re.search(r"rchar: (\d+)", lines)[1])


def test_the_first_claim_reads_one_payload(tmp_path):
    """LQ-35: it does not read all messages to find one; of payloads with objects of their own it fetches one,
    if it fetches none ahead."""
    with stored(tmp_path, "data", "--prefetch-batch", "0") as server:
        for n in range(MESSAGES // 1000):
            server.enqueue(*[{"text": f"{1000 * n + m:0200}"} for m in range(1000)])
        for n in range(4):
            server.enqueue({"topic": "large", "text": str(n) * (3 << 20)})
        server.kill()
        shutil.rmtree(tmp_path / "data")
        server.start()
        assert not list(tmp_path.glob("data/payloads/*"))
        before = bytes_read(server)
        assert texts([server.take()]) == [f"{0:0200}"]
        assert bytes_read(server) - before < MESSAGES * 200 / 10
        assert texts([server.take(topic="large")]) == ["0" * (3 << 20)]
        assert len(list(tmp_path.glob("data/payloads/*"))) == 1


def test_the_group_of_the_largest_request_is_one_object(tmp_path):
    with stored(tmp_path, "data", "--store-patience", "60s") as server:
        large = "x" * 1_000_000  # below 1 MiB: in the log
        server.enqueue(*[{"text": large + f"{n:02}"} for n in range(15)])
        sizes = [path.stat().st_size for path in (tmp_path / "store").rglob("group/*")]
        assert max(sizes) > 15_000_000
        server.kill()
        shutil.rmtree(tmp_path / "data")
        server.start()
        assert all_texts(server, 15) == [large + f"{n:02}" for n in range(15)]


def try_enqueue(server, text):
    return server.post("/enqueue", [server.here(text=text)]).status


def interrupt_store(server, tmp_path, change):
    """Move the store away, make `change` meanwhile, and wait until the server goes on."""
    (tmp_path / "store").rename(tmp_path / "away")
    assert try_enqueue(server, "in doubt") == 503
    change(tmp_path / "away")
    (tmp_path / "away").rename(tmp_path / "store")


def remove_newest_groups(store, n):
    for path in sorted((store / "0/group").iterdir())[-n:]:
        path.unlink()


def test_a_store_that_went_back_gets_its_groups_again(tmp_path):
    """LINE-15, fault 14: the owner has what the store lost."""
    with stored(tmp_path, "data") as server:
        for n in range(20):
            server.enqueue({"text": f"m{n:02}"})
        interrupt_store(server, tmp_path, lambda store: remove_newest_groups(store, 7))
        until(lambda: try_enqueue(server, "after") == 200)
        assert re.search(r"store went back, groups put again.* first=\d+ groups=7", server.said())
        server.kill()
        shutil.rmtree(tmp_path / "data")
        server.start()
        found = set()
        while "after" not in found:
            message = server.take()
            found.add(*texts([message]))
            server.ack(message)
        assert found >= {f"m{n:02}" for n in range(20)}


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def newer(settings):
    """The same settings in format 4, version 2: src/members/settings.h."""
    rest = struct.pack("<IQ", 4, 2) + settings[24:]
    return settings[:8] + struct.pack("<I", crc32c(rest)) + rest


def test_a_store_of_a_newer_version_is_refused_and_unharmed(tmp_path):
    """Fault 42: a downgrade too far."""
    with stored(tmp_path, "data") as server:
        server.enqueue({"text": "kept"})
    folder = tmp_path / "store/settings"
    upgraded = folder / f"{2:020}"
    upgraded.write_bytes(newer((folder / f"{1:020}").read_bytes()))
    with pytest.raises(Refused, match="the store has format 4, which is newer than this program's 3"):
        stored(tmp_path, "data")
    upgraded.unlink()
    with stored(tmp_path, "data") as server:
        assert texts(server.dequeue()) == ["kept"]


class OldNode:
    """The beats of a node that reads format 2 alone: src/members/beat.h."""

    def __init__(self, store):
        self.life = os.urandom(16)
        self.file = store / "node" / self.life.hex()
        self.number, self.thread, self.ends = 0, threading.Thread(target=self.run), threading.Event()

    def beat(self):
        self.number += 1
        name, address, version = b"elder", b"http://127.0.0.1:1", b"0.1.9"
        rest = struct.pack("<I16sQIIHHHHII", 1, self.life, self.number, 2, 2, len(name), len(address), len(version), 0, 0, 0)
        rest += name + address + version
        self.file.write_bytes(b"sluicend" + struct.pack("<I", crc32c(rest)) + rest)

    def run(self):
        while not self.ends.wait(0.1):
            self.beat()

    def __enter__(self):
        self.beat()
        self.thread.start()
        return self

    def __exit__(self, *why):
        self.ends.set()
        self.thread.join()


def intake(server, batch):
    message = {"namespace": server.namespace, "queue": server.topic, "text": f"batch {batch}"}
    return server.post("/v1/admin/intake", {"source": "6c696665-206f-6620-6120-6e6f64652e00", "batch": batch, "messages": [message]})


def format_of(settings):
    return struct.unpack_from("<I", settings.read_bytes(), 12)[0]


def test_a_record_that_an_older_node_cannot_read_waits_until_that_node_is_gone(tmp_path):
    """LINE-16: version 2 of the settings has format 3, once every living node can read it."""
    with stored(tmp_path, "data", "--place", "namespace") as server:
        first, second = (tmp_path / "store/settings" / f"{n:020}" for n in (1, 2))
        assert format_of(first) == 2
        with OldNode(tmp_path / "store"):
            until(lambda: any(node["name"] == "elder" for node in server.get("/v1/admin/nodes").body["nodes"]))
            refused = intake(server, 1)
            assert refused.status == 503, refused
            assert "format 3 of the store, which node elder of version 0.1.9 cannot read; update that node" in \
                refused.body["message"]
            server.enqueue({"text": "every node reads this"})
            assert not second.exists()
        until(lambda: intake(server, 1).status == 200)
        assert format_of(first) == 2 and format_of(second) == 3
        assert not intake(server, 1).body["accepted"]
    with stored(tmp_path, "other", "--place", "namespace") as server:
        assert intake(server, 2).body["accepted"]
        assert len(list((tmp_path / "store/settings").iterdir())) == 2


STORES = """
sharding:
  enabled: true
  defaultShard: a
  tenantOverrides: {{tb: b, tc: c}}
shards:
  a: {{engine: log, store: "file://{0}/one", poolSize: 3}}
  b: {{engine: log, store: "file://{0}/{1}", storePatience: 500ms}}
  c: {{engine: log}}
"""
SPACES = "ta", "tb", "tc"


def test_each_shard_may_have_a_store(tmp_path):
    with Node(tmp_path, STORES.format(tmp_path, "two"), engine="log") as server:
        for space in SPACES:
            server.enqueue({"namespace": space, "text": space})
        assert sorted(f.name for f in (tmp_path / "one").iterdir() if f.name[0] != ".") == ["0", "1", "2", "node", "settings"]
        assert (tmp_path / "two/15/group").is_dir()  # a new store has 16 shards
        server.kill()
        shutil.rmtree(tmp_path / "data/a")
        shutil.rmtree(tmp_path / "data/b")
        server.start()
        for space in SPACES:
            assert texts(server.dequeue(namespace=space)) == [space]


def test_a_store_that_is_down_stops_its_own_queues_alone(tmp_path):
    """OWNERSHIP-3, MQ-47, MQ-48: the queues of the other store and of the log go on."""
    with Node(tmp_path, STORES.format(tmp_path, "two"), engine="log") as server:
        def put(space, text):
            return server.post("/enqueue", [server.here(namespace=space, text=text)])

        assert put("tb", "a").status == 200
        (tmp_path / "two").rename(tmp_path / "away")
        answer = put("tb", "b")
        assert answer.status == 503 and answer.body["error"] == "outcome_unknown", answer
        for n in range(20):
            answer = put("tb", "c")
            assert answer.status == 503 and answer.body["error"] != "outcome_unknown", answer
            assert put("ta", f"m{n}").status == put("tc", f"m{n}").status == 200
        assert len(server.peek(namespace="ta", limit=100)) == len(server.peek(namespace="tc", limit=100)) == 20
        (tmp_path / "away").rename(tmp_path / "two")
        until(lambda: put("tb", "d").status == 200)
        assert {"a", "d"} <= set(texts(server.peek(namespace="tb", limit=100))) <= {"a", "b", "d"}


def test_two_shards_with_one_store_are_refused(tmp_path):
    """OWNERSHIP-3: also if the address has another spelling."""
    (tmp_path / "link").symlink_to("one")
    with pytest.raises(Refused, match="shards a and b have the same store; expected a store for each"):
        Node(tmp_path, STORES.format(tmp_path, "link"), engine="log")


def test_a_reload_adds_a_shard_with_a_store(tmp_path):
    text = f"""
sharding: {{enabled: true, version: VERSION, defaultShard: a, tenantOverrides: {{tb: TARGET}}}}
shards:
  a: {{engine: log, store: "file://{tmp_path}/one"}}
"""
    more = f"""  b: {{engine: log, store: "file://{tmp_path}/two", poolSize: 2}}\n"""
    with Node(tmp_path, text.replace("VERSION", "1").replace("TARGET", "a"), engine="log") as server:
        server.enqueue({"text": "old"})
        server.reload(text.replace("VERSION", "2").replace("TARGET", "b") + more)
        until(lambda: server.post("/enqueue", [server.here(namespace="tb", text="new")]).status == 200)
        assert len(list((tmp_path / "two/node").iterdir())) == 1
        server.restart()
        assert texts(server.dequeue()) == ["old"]
        assert texts(server.dequeue(namespace="tb")) == ["new"]


def test_an_unsafe_file_system_is_refused(tmp_path):
    place = "/dev/shm/" + tmp_path.name
    try:
        with pytest.raises(Refused, match="unsafe file system: tmpfs"):
            Server(tmp_path / "data", "--store", f"file://{place}", engine="log")
        with Server(tmp_path / "data", "--store", f"file://{place}", "--store-unsafe", engine="log") as server:
            server.enqueue({"text": "x"})
    finally:
        shutil.rmtree(place, ignore_errors=True)


def test_groups_stay_within_a_budget_of_puts(tmp_path):
    """Requests that ask for more share groups: none is refused."""
    def groups():
        return len(list((tmp_path / "store/0/group").iterdir()))

    def send():
        while not done.is_set():
            server.enqueue({"text": "a"})
            sent.append(1)

    done, sent = threading.Event(), []
    with stored(tmp_path, "data", "--store-puts", "5") as server:
        before, began, puts = groups(), time.monotonic(), server.metric('sluice_store_requests_total{verb="put"}')
        senders = [threading.Thread(target=send) for _ in range(8)]
        for sender in senders:
            sender.start()
        until(lambda: server.metric("sluice_store_rest_seconds") > 0 and groups() > before + 10)
        done.set()
        for sender in senders:
            sender.join()
        made = groups() - before
        assert made <= 5 + 5 * (time.monotonic() - began) + 2
        assert server.metric('sluice_store_requests_total{verb="put"}') - puts >= made
        assert len(server.dequeue(limit=1000)) == len(sent)


def test_a_delay_is_added_to_each_put(tmp_path):
    with stored(tmp_path, "data", "--store-delay", "30ms") as server:
        for n in range(3):
            server.enqueue({"text": str(n)})
        puts = server.metric('sluice_sync_seconds_count{shard="0"}')
        assert puts >= 3
        assert server.metric('sluice_sync_seconds_sum{shard="0"}') >= 0.03 * puts
