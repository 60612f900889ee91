"""A queue moves between shards whose logs are in stores, while servers take these shards from each other."""
import http.client
import subprocess
import time

import pytest

from clustered import shards
from served import until
from test_migrate import SLUICE, Load
from test_migrate import Node as Mover

WAITING = 600  # messages that are there all the time, so that a move takes a while

SETTINGS = """\
store: {{lease: 1s, settle: 1h}}
sharding:
  enabled: true
  defaultShard: east
shards:
  east: {{engine: log, store: "file://{0}/east", poolSize: 1}}
  west: {{engine: log, store: "file://{0}/west", poolSize: 1}}
"""


class Either(Mover):
    """A client of several servers; one has the shards. A request goes to the server that answered last."""

    def __init__(self, *nodes):
        self.nodes, self.at = nodes, 0
        self.namespace, self.topic = "test", "q"

    def call(self, *args, **named):
        at = self.at
        try:
            answer = self.nodes[at].call(*args, **named)
        except (OSError, http.client.HTTPException):
            self.at = (at + 1) % len(self.nodes)
            raise
        if answer.status == 503:
            self.at = (at + 1) % len(self.nodes)
        return answer


def begin_move(node, source, target):
    return subprocess.Popen(
        [SLUICE, "admin", "migrate-shard", "--server", "http://%s:%d" % node.address, "--command", "q",
         "--from-shard", source, "--to-shard", target, "--batch-size", "1"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_takeover_in_the_middle_of_a_move_loses_and_doubles_nothing(tmp_path, end):
    """SH-72, SH-77, SH-78: the server that moves is killed, or hands over. The next owner finishes its batch. Each message
    comes once, each key in its order."""
    text = SETTINGS.format(tmp_path)
    with Mover(tmp_path, text, data="one", engine="log") as one, Mover(tmp_path, text, data="two", engine="log") as two:
        until(lambda: shards(one) == (2, 0) and shards(two) == (0, 2))
        one.topic = two.topic = "q"
        one.enqueue(*({"text": f"late {i}", "delay": "1h"} for i in range(WAITING)))
        cut = 0
        with Load(Either(one, two), 300) as load:
            for i in range(4):
                owner, other = (one, two) if i % 2 == 0 else (two, one)
                until(lambda: len(load.over) > 40 * i)
                mover = begin_move(owner, *(("east", "west") if i < 2 else ("west", "east")))
                time.sleep(0.05 + 0.05 * i)  # at whichever step it is
                getattr(owner, end)()
                cut += mover.wait(60) != 0
                until(lambda: shards(other) == (2, 0))
                owner.start()
                until(lambda: shards(owner) == (0, 2))
        load.judge()
        assert cut > 0, "no move was cut short"
        one.migrate("q", "west", "east", "--verify")
        assert one.stats()["delayed"] == WAITING
        assert (one.holds("east", "west"), one.holds("west", "east")) == (WAITING, 0)
