"""A Redis server whose replies are not to be believed: whatever it says, the server lives on."""
import re

import pytest

from liar import Liar, Raw
from locked import acquire
from redis import Redis
from served import Refused, Server, until


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    with Redis(tmp_path_factory.mktemp("redis"), "--appendfsync", "no") as redis:
        yield redis


@pytest.fixture
def liar(redis):
    with Liar(redis.port) as liar:
        yield liar


@pytest.fixture
def server(liar, tmp_path, request):
    prefix = "p%x" % (hash(request.node.name) & 0xffffffff)
    with Server(tmp_path / "node", "--redis-address", liar.address, "--redis-prefix", prefix,
                engine="redis") as server:
        yield server


def inside(*path):
    """A change of what is there in the reply: inside(3, 0, change)."""
    *path, change = path

    def lie(reply):
        if not path:
            return change(reply)
        if not isinstance(reply, list) or len(reply) <= path[0]:
            return reply
        return [*reply[:path[0]], inside(*path[1:], change)(reply[path[0]]), *reply[path[0] + 1:]]
    return lie


def becomes(value):
    return lambda reply: value


def shorter(reply):
    return reply[:-1] if isinstance(reply, list) else reply


def longer(reply):
    return [*reply, 7] if isinstance(reply, list) else reply


# What a server may send instead of anything.
ANYTHING = {
    "a number": becomes(7),
    "a text": becomes(b"sluice"),
    "nil": becomes(None),
    "a status": becomes(Raw(b"+OK\r\n")),
    "an empty array": becomes([]),
    "nil as an array": becomes(Raw(b"*-1\r\n")),
    "an array of nil": becomes([None] * 5),
    "an array of texts": becomes([b"ok"] * 5),
    "a deep array": becomes([[[[[7]]]]]),
    "no protocol": becomes(Raw(b"HTTP/1.1 400 Bad Request\r\n\r\n")),
    "a huge array": becomes(Raw(b"*2147483647\r\n")),
    "a huge text": becomes(Raw(b"$9223372036854775807\r\nx\r\n")),
    "two replies": lambda reply: Raw(b":1\r\n:2\r\n"),
    "one element less": shorter,
    "one element more": longer,
    "no answer": inside(3, becomes(None)),
    "an answer of texts": inside(3, becomes([b"x"] * 20)),
    "an answer of another kind": inside(3, becomes(7)),
    "one less in the answer": inside(3, shorter),
    "no tails": inside(4, becomes([])),
    "tails of text": inside(4, becomes([b"x"])),
    "a short tail": inside(4, 0, shorter),
    "a time that is none": inside(1, becomes(b"yesterday")),
    "a negative time": inside(1, becomes(-1)),
    "priorities of nobody": becomes([b"prios", 99, [1]]),
    "priorities of text": becomes([b"prios", 0, [b"high"]]),
    "no priorities": becomes([b"prios", 0, []]),
}
# No message is a fine answer, too, and a text has no elements.
FINE = {(verb, "one less in the answer") for verb in ("peek", "policy", "pause")}


def prepare(server):
    return server.enqueue({"text": "a", "keep_result": "1h"}, {"text": "b"}, {"text": "c"})


CALLS = {
    "enqueue": lambda s: s.post("/enqueue", [s.here(text="x"), s.here(text="y")]),
    "claim": lambda s: s.get("/dequeue", **s.here(limit=1)),
    "peek": lambda s: s.get("/peek", **s.here()),
    "list": lambda s: s.get("/peek", **s.here(state="ready")),
    "stats": lambda s: s.get("/stats", **s.here()),
    "ack": lambda s: s.post("/ack", s.here(id=s.ids[0])),
    "nack": lambda s: s.post("/nack", s.here(id=s.ids[0])),
    "extend": lambda s: s.post("/extend", s.here(id=s.ids[0])),
    "delete": lambda s: s.post("/v1/admin/message/delete", s.here(id=s.ids[0])),
    "get": lambda s: s.get("/v1/admin/message", **s.here(id=s.ids[0])),
    "result": lambda s: s.get("/result", **s.here(id=s.ids[0])),
    "policy": lambda s: s.get("/policy", **s.here()),
    "pause": lambda s: s.post("/v1/admin/queue/pause", s.here()),
    "purge": lambda s: s.post("/v1/admin/queue/purge", s.here()),
    "acquire": lambda s: s.post("/v1/acquire", {"namespace": s.namespace, "key": "k", "owner": "o",
                                                "block_seconds": -1}),
    "describe": lambda s: s.get("/v1/describe", namespace=s.namespace, key="held"),
    "state_get": lambda s: s.get("/v1/get", namespace=s.namespace, key="held", public="1"),
    "keys": lambda s: s.post("/v1/query", {"namespace": s.namespace}),
}


def is_unknown(answer):
    """Of the call, or of its items."""
    if answer.status == 503:
        return answer.body["error"] == "outcome_unknown"
    results = answer.body.get("results", []) if isinstance(answer.body, dict) else answer.body
    return any(r.get("error") == "outcome_unknown" for r in results if isinstance(r, dict))


def works_again(server, call):
    return until(lambda: not is_unknown(a := call(server)) and a.status != 503)


@pytest.mark.parametrize("verb", CALLS)
def test_a_malformed_reply_fails_its_ops_and_nothing_else(server, liar, verb):
    server.ids = prepare(server)
    lock = acquire(server, "held")
    lock.update({"a": 1})
    lock.release()
    assert CALLS[verb](server).status < 500
    for name, lie in ANYTHING.items():
        if (verb, name) in FINE:
            continue
        told = liar.told
        liar.lie(verb, lie)
        answer = until(lambda: (a := CALLS[verb](server)) and liar.told > told and a)
        assert is_unknown(answer) or answer.status == 503, (name, answer)
        liar.stop()
        assert server.process.poll() is None, name
        assert server.get("/healthz").status == 200
        works_again(server, CALLS[verb])
    assert re.search(r'level=error event="malformed reply from redis; connection closed".* to=' + verb,
                     server.said())


ROW = {  # of a message: which field, and what it is not
    "no id": (0, b""), "an id of letters": (0, b"x"), "an id that is too large": (0, b"9" * 19),
    "no state": (1, 0), "a state that is none": (1, 77), "a reason that is none": (13, 200),
    "a priority that is none": (2, 1 << 40), "an attempt of letters": (5, b"many"),
    "an array": (8, [1]), "no record": (16, None), "no error": (17, None),
}


@pytest.mark.parametrize("what", ROW)
def test_a_message_that_is_none_is_not_handed_out(server, liar, what):
    at, value = ROW[what]
    prepare(server)
    liar.lie("claim", inside(3, 0, 0, at, becomes(value)))
    answer = server.get("/dequeue", **server.here())
    assert answer.status == 503 and answer.body["error"] == "outcome_unknown"
    liar.stop()
    assert server.get("/healthz").status == 200


def test_a_record_that_is_damaged_is_that_and_not_a_malformed_reply(server, liar):
    prepare(server)
    for record in b"", b"x", b"\xff" * 100:
        liar.lie("peek", inside(3, 0, 16, becomes(record)))
        assert server.get("/peek", **server.here()).status == 500
    liar.stop()
    assert len(server.get("/peek", **server.here()).body["messages"]) == 3


def test_more_messages_than_were_asked_for_are_refused(server, liar):
    prepare(server)
    liar.lie("claim", inside(3, 0, lambda rows: rows * 50))
    assert server.get("/dequeue", **server.here(limit=2)).body["error"] == "outcome_unknown"


@pytest.mark.parametrize("verb", ["list", "purge"])
def test_a_cursor_that_does_not_rise_ends_the_call(server, liar, verb):
    server.ids = prepare(server)
    liar.lie(verb, inside(3, becomes([b"1", []] if verb == "list" else [1, b"1", b"9"])))
    answer = CALLS[verb](server)
    if verb == "list":  # and the next begins where that ends
        answer = server.get("/peek", **server.here(state="ready", cursor=answer.body["cursor"]))
    assert answer.status == 503, answer
    liar.stop()


PLAIN = {
    "a number": becomes(7), "texts": becomes([b"x", b"y"]), "nil": becomes(None), "nils": becomes([None]),
    "arrays": becomes([[1]]), "long names": becomes([b"a" * 5000 + b"/" + b"b" * 5000, b"n" * 9000]),
    "no protocol": becomes(Raw(b"?\r\n")),
}


@pytest.mark.parametrize("command", ["ZRANGE", "HVALS", "HGET", "HSETNX", "ZADD", "ZSCORE", "HEXISTS", "HSET",
                                     "INFO", "CONFIG", "SCRIPT", "SUBSCRIBE", "HLEN"])
def test_a_malformed_reply_to_a_plain_command_does_no_harm(server, liar, command):
    prepare(server)
    for i, lie in enumerate(PLAIN.values()):
        liar.lie(command, lie)
        for path in "/topics", "/stats", "/peek":
            server.get(path, **(server.here(topic=f"new{i}") if path != "/topics" else
                                {"namespace": server.namespace}))
        server.post("/enqueue", [server.here(topic=f"new{i}", text="x")])
        server.post("/ack", {"namespace": server.namespace, "id": 12345679})
        server.get("/metrics")
        liar.stop()
        assert server.process.poll() is None and server.get("/healthz").status == 200
    until(lambda: server.post("/enqueue", [server.here(text="x")]).status == 200)
    assert until(lambda: (a := server.get("/stats", **server.here())).status == 200 and a.body)


@pytest.mark.parametrize("lie", PLAIN)
@pytest.mark.parametrize("command", ["INFO", "ZRANGE", "HVALS", "SCRIPT"])
def test_a_server_that_starts_beside_a_liar_says_so_or_waits(redis, liar, tmp_path, command, lie):
    """It does not crash; what it does not believe it asks again."""
    liar.lie(command, PLAIN[lie], times=1)
    try:
        server = Server(tmp_path / "node", "--redis-address", liar.address, "--redis-prefix", "start" + command,
                        engine="redis")
    except Refused as why:
        assert re.search(f"sluiced: redis {liar.address}: .", str(why)), why
        return
    with server:
        assert until(lambda: server.post("/enqueue", [server.here(text="x")]).status == 200)


def test_a_server_that_loads_its_files_gets_no_call(redis, liar, server):
    """REDISNODES-4: it refuses to rewrite its file, and serves a moment later."""
    liar.lie("INFO", lambda info: info.replace(b"\nloading:0", b"\nloading:1"))
    redis.command("CLIENT", "KILL", "TYPE", "normal")
    item = server.here(text="x")
    until(lambda: "is loading its files" in server.post("/enqueue", [item]).text)
    liar.stop()
    until(lambda: server.post("/enqueue", [item]).status == 200)
