"""Where a message is in a Redis server: in one place at any time, also after kills."""
import http.client
import random
import threading

import pytest
from test_redis import node, redis  # noqa: F401, fixtures


# Everything of a queue at one moment: ids that are not in exactly the place that their
# state names.
LOOK = """
local base, found, wrong = ARGV[1], {}, {}
local states = { delayed = 2, inprog = 3, held = 4, dlq = 5 }

local function look(key, state)
    for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
        local id = string.match(member, ':(%d+)$')

        wrong[#wrong + 1] = found[id] and id .. ' twice' or nil
        found[id] = state
    end
end

for _, key in ipairs(redis.call('KEYS', base .. 'pending:*')) do
    look(key, 1)
end
for name, state in pairs(states) do
    look(base .. name, state)
end
for _, id in ipairs(redis.call('ZRANGE', base .. 'all', 0, -1)) do
    local m = cmsgpack.unpack(redis.call('HGET', base .. 'msg', id))

    if found[id] ~= m.s then
        wrong[#wrong + 1] = id .. ' has state ' .. m.s .. ' and is in ' .. (found[id] or 0)
    end
    found[id] = nil
end
for id in pairs(found) do
    wrong[#wrong + 1] = id .. ' is in a place and nowhere else'
end
return #wrong == 0 and 'right' or table.concat(wrong, ', ')
"""

LOST = """
local n = 0

for i = 2, #ARGV do
    n = n + 1 - redis.call('HEXISTS', ARGV[1], ARGV[i])
end
return n
"""


def look(redis, prefix):
    return redis.command("EVAL", LOOK, 0, f"{prefix}:q:mail:test:")


class Load:
    """Clients that use a server in every way, until stop() is called; when it is
    killed, the next one."""

    def __init__(self, servers):
        self.servers = servers
        self.ends = threading.Event()
        self.accepted, self.acked, self.lock = set(), set(), threading.Lock()
        self.steps = 0
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(4)]
        for t in self.threads:
            t.start()

    def run(self, seed):
        dice = random.Random(seed)
        while not self.ends.is_set():
            server = dice.choice(self.servers)
            try:
                self.step(server, dice)
            except (OSError, http.client.HTTPException):
                pass  # it was killed
            self.steps += 1

    def step(self, server, dice):
        item = server.here(text="x", priority=dice.randrange(3), max_attempts=2)
        item |= dice.choice([{}, {"key": f"k{dice.randrange(3)}"}, {"delay": "20ms"}])
        answer = server.post("/enqueue", [item])
        if answer.status == 200:
            with self.lock:
                self.accepted.update(answer.body)
        answer = server.get("/dequeue", **server.here(limit=3, lease="300ms"))
        for message in answer.body if answer.status == 200 else []:
            how = dice.choice(["/ack", "/ack", "/nack", None])
            if how == "/ack":
                with self.lock:
                    self.acked.add(message["id"])  # or it will be, or may be
            if how:
                server.settle(how, message, **({"delay": "10ms"} if how == "/nack" else {}))

    def stop(self):
        self.ends.set()
        for t in self.threads:
            t.join(60)


@pytest.fixture
def prefix(request):
    return "places" + str(abs(hash(request.node.name)) % 10**8)


def test_a_message_is_in_one_place_at_any_time_while_nodes_are_killed(node, redis, prefix):
    """SH-05, SH-11"""
    servers = [node(prefix=prefix), node(prefix=prefix)]
    load = Load(servers)
    try:
        for victim in (0, 1, 0):
            before = load.steps
            while load.steps < before + 60:
                assert "right" in look(redis, prefix)
            servers[victim].process.kill()
            servers[victim].wait()
            assert "right" in look(redis, prefix)
            servers[victim].start()
    finally:
        load.stop()
    assert "right" in look(redis, prefix)
    kept = load.accepted - load.acked
    assert kept and redis.command("EVAL", LOST, 0, f"{prefix}:q:mail:test:msg", *kept) == ":0\r\n"


def test_results_and_idempotency_keys_are_read_at_any_node(node, redis, prefix):
    """SH-09"""
    one, two = node(prefix=prefix), node(prefix=prefix)
    sent = one.enqueue({"text": "x", "idempotency_key": "once", "keep_result": "1h"})
    message = two.take()
    two.ack(message, result="42")
    assert one.enqueue({"text": "y", "idempotency_key": "once"}) == sent
    answer = one.get("/result", **one.here(id=sent[0]))
    assert answer.status == 200 and answer.body["result"] == "42", answer
    base = f"{prefix}:q:mail:test:"
    assert redis.command("HGET", base + "results", sent[0]).split("\r\n")[1] == '1"42"'
    assert redis.command("HGET", base + "idem", "once").split("\r\n")[1].startswith(f"{sent[0]}:")
