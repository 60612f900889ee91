"""A hundred thousand messages move between a log and Redis, with workers, while the server is killed."""
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / part) for part in ("integration", "lib")]

from redis import Redis
from test_migrate import SLUICE, Load, Node, mapped

MESSAGES = 100_000
KEYS = 500
BATCH = 500
KILLS = 25


class Bulk(Load):
    """The same load in calls of many messages."""

    def produce(self):
        for start in range(0, self.messages, BATCH):
            items = [self.node.here(text=f"{i % self.keys} {i}", key=f"k{i % self.keys}",
                                    priority=i % 3, idempotency_key=f"i{i}")
                     for i in range(start, start + BATCH)]
            answer = self.patiently(lambda: self.node.post("/enqueue", items))
            assert answer.status == 200, answer


def test_nothing_is_lost_or_doubled_in_a_hundred_thousand(tmp_path):
    """SH-78"""
    dice = random.Random(7)
    with Redis(tmp_path / "store", "--appendonly", "yes", "--appendfsync", "always") as store:
        shards = (f"redis.shards:\n  red: {{address: '{store.address}'}}\n"
                  "  disk: {engine: log}\n")
        with Node(tmp_path, mapped(shards, "q", "disk")) as node:
            node.topic = "q"
            node.options = (*node.options, "--listen", "%s:%d" % node.address)
            ended = threading.Event()

            def disturb():
                turn = 0
                while not ended.is_set() and turn < KILLS:
                    ends = ("disk", "red") if turn % 2 == 0 else ("red", "disk")
                    mover = subprocess.Popen(
                        [SLUICE, "admin", "migrate-shard", "--server",
                         "http://%s:%d" % node.address, "--command", "q", "--from-shard", ends[0],
                         "--to-shard", ends[1], "--batch-size", "1000"],
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    time.sleep(dice.uniform(0.2, 5))
                    if not ended.is_set():
                        node.restart("kill")
                    mover.kill()
                    mover.wait()
                    turn += 1

            killer = threading.Thread(target=disturb)
            with Bulk(node, MESSAGES, KEYS) as load:
                for _ in range(4):
                    load.threads.append(threading.Thread(target=load.work, args=(50,)))
                    load.threads[-1].start()
                killer.start()
                while len(load.over) < MESSAGES:
                    time.sleep(0.2)
                ended.set()
                killer.join()
            load.judge()
