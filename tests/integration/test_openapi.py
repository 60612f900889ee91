"""/openapi.json: every answer is as it says, and every code in it can be had."""
import copy
import json
import shutil
import signal
import urllib.parse

import jsonschema
import pytest

import lockd
from served import Server, until


STORED = ["/v1/get"]  # answers with a document, byte for byte as it was stored; other answers end with a newline


class Walk:
    """Calls a server and holds each answer to the document."""

    def __init__(self, server):
        self.server = server
        answer = server.get("/openapi.json")
        assert answer.status == 200, answer
        self.document = answer.body
        self.seen = set()

    def at(self, server):
        """The same walk at another server."""
        other = copy.copy(self)
        other.server = server
        return other

    def schema_of(self, answers, status, kind):
        row = answers.get(str(status), answers["default"])
        if "$ref" in row:
            row = self.document["components"]["responses"][row["$ref"].split("/")[-1]]
        if kind is None:
            assert "content" not in row, (status, row)
            return None
        assert kind in row["content"], (status, kind, row)
        return row["content"][kind].get("schema")

    def check(self, schema, value):
        """With all other schemas at hand, and the formats that are named looked at."""
        jsonschema.Draft202012Validator(
            {**schema, "components": self.document["components"]},
            format_checker=jsonschema.FormatChecker()).validate(value)

    def check_query(self, described, params):
        known = {}
        for row in described:
            if "$ref" in row:
                row = self.document["components"]["parameters"][row["$ref"].split("/")[-1]]
            if row["in"] == "query":
                known[row["name"]] = row
        assert set(params) <= set(known), (params, set(known))
        assert all(name in params for name, row in known.items() if row.get("required"))

    def __call__(self, status, method, path, body=None, fields=None, **params):
        """The call must end with that status; what goes well must be well asked."""
        row = self.document["paths"][path][method.lower()]
        named = {name: params.pop(name) for name in list(params) if f"{{{name}}}" in path}
        answer = self.server.call(method, path.format(**named), body, fields, **params)
        assert answer.status == status, (method, path, body, params, answer)
        if status < 300:
            self.check_query(row.get("parameters", []), params)
            if "application/json" in row.get("requestBody", {}).get("content", {}):
                self.check(row["requestBody"]["content"]["application/json"]["schema"], body)
        kind = (answer.headers["Content-Type"] or "").split(";")[0] or None
        schema = self.schema_of(row["responses"], status, kind)
        if kind == "application/json":
            self.check(schema, answer.body)
            if path not in STORED or status != 200:
                assert answer.text.endswith("\n") and not answer.text.endswith("\n\n"), answer
        self.seen.add((path, method.lower(), str(status)))
        return answer.text if (kind or "").startswith("multipart/") else answer.body

    def get(self, status, path, **params):
        return self(status, "GET", path, **params)

    def post(self, status, path, body, **params):
        return self(status, "POST", path, body, **params)

    def missing(self):
        """What the document has and no call has met; any error stands for `default`."""
        for path, methods in self.document["paths"].items():
            for method, row in methods.items():
                codes = {code for p, m, code in self.seen if (p, m) == (path, method)}
                for code in row["responses"]:
                    if code == "default":
                        if not any(c not in row["responses"] for c in codes):
                            yield path, method, code
                    elif code not in codes:
                        yield path, method, code


HERE = {"namespace": "shop", "topic": "orders"}
NOWHERE = {"namespace": "shop", "topic": "none"}


def put(walk, *items, **params):
    return walk.post(200, "/enqueue", [{**HERE, **item} for item in items], **params)


def take(walk, **params):
    return walk.get(200, "/dequeue", **HERE, **params)


def settle(message, **more):
    return {**HERE, "id": message["id"], "lease_id": message["lease_id"], **more}


def walk_batches(walk):
    batch = walk.post(200, "/batches", {"namespace": "shop", "callback": {"queue": "over", "text": "all"}, "timeout": "1h"})
    walk.post(400, "/batches", {"namespace": "shop", "callback": {"queue": "over", "batch": 1}})
    put(walk, {"topic": "parts", "text": "part", "batch": batch["id"]})
    walk.post(404, "/enqueue", [{**HERE, "text": "x", "batch": 12345}])
    walk.get(200, "/batch", namespace="shop", id=batch["id"])
    walk.get(404, "/batch", namespace="shop", id=12345)
    walk.get(400, "/batch", namespace="shop")
    walk.get(200, "/batches", namespace="shop")
    walk.get(400, "/batches")
    walk.post(200, "/batches/close", {"namespace": "shop", "id": batch["uid"]})
    walk.post(409, "/enqueue", [{**HERE, "text": "late", "batch": batch["id"]}])
    walk.post(404, "/batches/close", {"namespace": "shop", "id": 12345})
    walk.post(400, "/batches/close", {"namespace": "shop"})


def walk_messages(walk):
    put(walk, {"text": "a", "key": "k", "correlation_id": "c", "attributes": {"x": [1]}},
        {"payload": "aGVsbG8=", "priority": "high", "ttl": "1h", "idempotency_key": "i"},
        {"json": {"n": 1}, "delay": 0.001, "max_attempts": 3}, {"json": 5, "keep_result": "1h"})
    put(walk, {"text": "later", "deliver_after": "2100-01-01T00:00:00Z"}, ids="uid")
    put(walk, {"text": "again", "idempotency_key": "i"}, detail=1)
    walk.post(200, "/enqueue", {**HERE, "text": "alone"})
    strict = {"namespace": "shop", "topic": "strict"}
    walk(200, "PUT", "/policy", {"idempotency": "strict"}, **strict)
    walk.post(200, "/enqueue", [{**strict, "text": "one", "idempotency_key": "i"}])
    walk.post(409, "/enqueue", [{**strict, "text": "two", "idempotency_key": "i"}])
    walk.post(400, "/enqueue", [{"topic": "orders"}])
    waiting, = put(walk, {"text": "b", "key": "k"})
    walk.get(200, "/why", **HERE, id=waiting)
    walk.get(404, "/why", **HERE, id=1)
    walk.get(400, "/why", **HERE)
    walk_batches(walk)
    for form in ("text", "json", "base64"):
        walk.get(200, "/peek", **HERE, **{"as": form})
        walk.get(200, "/dlq", **HERE, **{"as": form})
        walk.post(200, "/enqueue", {"namespace": "shop", "queue": "forms", "json": [1]})
        walk.post(200, "/dequeue", {"namespace": "shop", "queue": "forms", "as": form})
    walk.get(400, "/peek", **HERE, **{"as": "xml"})
    one, two, *_ = take(walk, limit=2, lease="1m", owner="web-7")
    walk.get(200, "/peek", **HERE, state="leased")
    walk.get(400, "/dequeue", **HERE, owner="")
    walk.post(200, "/dequeue", {**HERE, "limit": 1, "wait": "100ms", "owner": "web-8"})
    walk.get(400, "/dequeue", namespace="shop")
    walk.post(400, "/dequeue", {"limit": 0})
    walk.post(200, "/extend", settle(one, lease="5m"))
    walk.post(200, "/nack", settle(one, error="no", delay=0))
    walk.post(200, "/nack", [settle(two, dead=True, error="never")])
    for path in ("/ack", "/nack", "/extend"):
        walk.post(404, path, {**HERE, "id": 1})
        walk.post(409, path, settle(one))
        walk.post(400, path, {"id": "x"})
    walk.post(200, "/ack", [{**HERE, "id": 1}])
    put(walk, *({"text": "by receipt"} for _ in range(3)))
    for path in ("/ack", "/nack", "/extend"):
        message, = take(walk, limit=1)
        walk.post(200, path, {"receipt": message["receipt"]})
        walk.post(400, path, {"receipt": "x"})
        walk.post(400, path, {**HERE, "id": 380252006595428352})


def walk_results(walk):
    kept, = put(walk, {"text": "sum", "topic": "sums", "keep_result": "1h"})
    there = {"namespace": "shop", "topic": "sums"}
    walk.get(202, "/result", id=kept, **there)
    message, = walk.get(200, "/dequeue", **there)
    walk.get(202, "/result", receipt=message["receipt"])
    walk.post(200, "/ack", {**there, "id": message["id"], "result": {"sum": 3}, "enqueue": [{**there, "text": "next"}]})
    walk.get(200, "/result", id=kept, wait="1s", namespace="shop")
    walk.get(404, "/result", id=1, **there)
    walk.get(400, "/result", **there)


def walk_topics(walk):
    for state in ("ready", "delayed", "leased", "dead", "all"):
        walk.get(200, "/peek", **HERE, state=state, limit=2)
    dead = walk.get(200, "/dlq", **HERE, limit=5)["messages"][0]
    walk.get(200, "/peek", **HERE, id=dead["uid"])
    walk.get(404, "/peek", **HERE, id=1)
    walk.get(400, "/peek", **HERE, state="lost")
    walk.get(200, "/stats", **HERE)
    walk.get(404, "/stats", **NOWHERE)
    walk.get(400, "/stats")
    walk.get(200, "/topics", namespace="shop", limit=1)
    walk.get(400, "/topics")
    walk.get(400, "/dlq")
    walk.post(200, "/dlq/redrive", {**HERE, "ids": [dead["id"], 1]})
    walk.post(400, "/dlq/redrive", {})
    walk.post(200, "/dlq/delete", {**HERE, "limit": 10})
    walk.post(400, "/dlq/delete", {})


def walk_policy(walk, path):
    walk.get(200, path, **HERE)
    walk(200, "PUT", path, {"max_attempts": 9, "retry": {"kind": "fixed", "base": "1s"}},
         **HERE)
    walk.post(200, path, {"lease": 10, "warn_depth": 1}, **HERE)
    for method, body in (("GET", None), ("PUT", {"x": 1}), ("POST", {"lease": -1})):
        walk(400, method, path, body, **({} if method == "GET" else HERE))


def walk_limits(walk):
    full = {"namespace": "shop", "topic": "full"}
    walk(200, "PUT", "/policy", {"max_depth": 1}, **full)
    put(walk, {**full, "text": "fits"})
    walk.post(429, "/enqueue", [{**full, "text": "does not"}])


def walk_schedules(walk):
    admin, name = "/v1/admin/", {"namespace": "shop", "name": "nightly"}
    walk(200, "PUT", admin + "schedule", {**name, "when": "@daily", "zone": "Europe/Berlin", "missed": "all:3", "jitter": "1m",
                                          "overlap": "skip", "message": {"queue": "reports", "text": "x"}})
    walk(400, "PUT", admin + "schedule", {**name, "when": "never", "message": {"queue": "reports"}})
    walk.get(200, admin + "schedules", namespace="shop", limit=1)
    walk.get(400, admin + "schedules", namespace="shop", limit=0)
    walk.get(400, admin + "schedule", namespace="shop")
    for path in ("run", "pause", "resume", "delete"):
        walk.post(200, admin + "schedule/" + path, name)
        walk.post(404, admin + "schedule/" + path, {**name, "name": "other"})
        walk.post(400, admin + "schedule/" + path, {})
        if path == "run":
            walk.get(200, admin + "schedule", **name)
    walk.get(404, admin + "schedule", **name)


def walk_tasks(walk):
    admin, place = "/v1/admin/", {"namespace": "shop", "queue": "tasked"}
    put(walk, {"namespace": "shop", "topic": "tasked", "text": "x"})
    task = walk.post(200, admin + "task", {**place, "action": "move", "to": "other", "rate": 10, "stop_if_failing": 3,
                                           "older_than": "1h", "dry_run": True})["task"]
    walk.post(200, admin + "task", {**place, "action": "priority", "priority": "high", "key": "k"})
    walk.post(200, admin + "task", {**place, "action": "delay", "delay": "1h", "start_in": "10s", "key": "k"})
    walk.post(400, admin + "task", {**place, "action": "move"})
    walk.post(404, admin + "task", {**place, "queue": "nowhere", "action": "delete"})
    walk.get(200, admin + "tasks", namespace="shop", queue="tasked")
    walk.get(400, admin + "tasks")
    walk.get(200, admin + "task", namespace="shop", task=task)
    walk.get(404, admin + "task", namespace="shop", task=17)
    walk.get(400, admin + "task", namespace="shop")
    walk.post(200, admin + "task/cancel", {"namespace": "shop", "task": task})
    walk.post(404, admin + "task/cancel", {"namespace": "shop", "task": "17"})
    walk.post(400, admin + "task/cancel", {})


def walk_groups(walk):
    admin, place = "/v1/admin/dlq/groups", {"namespace": "shop", "queue": "grouped"}
    put(walk, {"namespace": "shop", "topic": "grouped", "text": "x", "ttl": "1ms"})
    until(lambda: walk.get(200, admin, **place, limit=10)["groups"])
    walk.get(400, admin, namespace="shop", queue="grouped", group="x")


def walk_keys(walk):
    admin = "/v1/admin/keys"
    put(walk, {"namespace": "shop", "topic": "keyed", "text": "x", "key": "a"})
    walk.get(200, admin, namespace="shop", queue="keyed", limit=10)
    walk.get(200, admin)
    walk.get(400, admin, queue="keyed")


def walk_workers(walk):
    admin = "/v1/admin/"
    beat = {"Sluice-Worker": "name=w; slots=2; host=h; version=1"}
    walk(200, "POST", "/worker", HERE, beat)
    walk(400, "POST", "/worker", HERE)
    walk(400, "POST", "/worker", {}, beat)
    walk_stream(walk, "/stream")
    walk.get(200, admin + "workers", namespace="shop", queue="orders", limit=1)
    walk.get(400, admin + "workers", limit=0)
    worker = {"namespace": "shop", "worker": "w"}
    for verb in ("quiet", "resume", "stop"):
        walk.post(200, admin + "worker/" + verb, worker)
        walk.post(404, admin + "worker/" + verb, {**worker, "worker": "other"})
        walk.post(400, admin + "worker/" + verb, {})


def walk_held(walk):
    admin = "/v1/admin/"
    held = walk.post(200, "/v1/acquire", {"namespace": "shop", "key": "held/1", "owner": "me", "ttl_seconds": 60, "block_seconds": -1})
    lock = {"namespace": "shop", "key": "held/1"}
    walk.get(200, admin + "locks", namespace="shop", prefix="held/", limit=10)
    walk.get(400, admin + "locks", namespace="shop", limit=0)
    walk.post(409, admin + "lock/release", {**lock, "token": held["fencing_token"] + 1})
    walk.post(200, admin + "lock/release", {**lock, "token": held["fencing_token"]})
    walk.post(404, admin + "lock/release", {**lock, "token": held["fencing_token"]})
    walk.post(400, admin + "lock/release", {})


def walk_acts(walk, leased):
    acts = {"run": {}, "delay": {"delay": "1h"}, "priority": {"priority": 1}, "move": {"to": "elsewhere"}, "edit": {"text": "x"}}
    for verb, more in acts.items():
        path = "/v1/admin/message/" + verb
        id = put(walk, {"text": "waits", "delay": "1h"})[0]
        id = id["id"] if isinstance(id, dict) else id
        walk.post(200, path, {**HERE, "id": id, **more})
        walk.post(404, path, {**HERE, "id": 1, **more})
        walk.post(409, path, {**HERE, "id": leased["id"], **more})
        walk.post(400, path, {})


def walk_admin(walk):
    admin = "/v1/admin/"
    put(walk, {"text": "leased"}, {"text": "dead", "idempotency_key": "d", "keep_result": 60})
    leased, dying = take(walk, limit=2)
    walk.post(200, "/nack", settle(dying, dead=True, error="boom"))
    walk.get(200, admin + "queues", limit=1)
    walk.get(400, admin + "queues", limit=0)
    walk.get(404, admin + "audit")
    walk.get(400, admin + "audit", limit=0)
    walk.get(200, admin + "live")
    walk.get(400, admin + "live", namespace="a b")
    walk.get(200, admin + "history", range="7d")
    walk.get(400, admin + "history", range="1y")
    walk.get(404, admin + "history", namespace="n", topic="never-made")
    walk.get(200, admin + "queue", **HERE)
    walk.get(404, admin + "queue", **NOWHERE)
    walk.get(400, admin + "queue")
    walk.get(200, admin + "queue/limits", **HERE)
    walk.get(404, admin + "queue/limits", **NOWHERE)
    walk.get(400, admin + "queue/limits", **HERE, order="x")
    walk.get(200, admin + "queue/priorities", **HERE)
    walk.get(404, admin + "queue/priorities", **NOWHERE)
    walk.get(400, admin + "queue/priorities", **HERE, cursor="x")
    walk.post(200, admin + "queue/hold", {**HERE, "scope": "share", "name": "s", "for": "1m"})
    walk.get(200, admin + "queue/limits", **HERE)
    walk.post(200, admin + "queue/hold", {**HERE, "scope": "share", "name": "s"})
    walk.post(404, admin + "queue/hold", {**NOWHERE, "scope": "queue"})
    walk.post(400, admin + "queue/hold", {**HERE, "scope": "x"})
    walk.post(200, admin + "queue/policy", {"breakers": "b: 1 in 1m, open 1m"}, **HERE)
    walk.post(200, admin + "queue/breaker", {**HERE, "breaker": "b", "state": "open", "for": "1m"})
    walk.get(200, admin + "queue/limits", **HERE)
    walk.post(200, admin + "queue/breaker", {**HERE, "breaker": "b", "state": "closed"})
    walk.post(404, admin + "queue/breaker", {**HERE, "breaker": "none", "state": "closed"})
    walk.post(400, admin + "queue/breaker", {**HERE, "breaker": "b", "state": "x"})
    for path in ("queue/pause", "queue/drain", "queue/resume"):
        walk.post(200, admin + path, HERE)
        walk.post(404, admin + path, NOWHERE)
        walk.post(400, admin + path, {})
    walk_workers(walk)
    walk_held(walk)
    walk_schedules(walk)
    walk_tasks(walk)
    walk_groups(walk)
    walk_keys(walk)
    walk.get(200, admin + "messages", **HERE, state="all", limit=3)
    walk.get(400, admin + "messages", **HERE, older_than="long")
    walk.get(200, admin + "message", namespace="shop", id=dying["id"])
    walk.get(404, admin + "message", namespace="shop", id=1)
    walk.get(400, admin + "message", namespace="shop")
    walk.post(409, admin + "message/delete", {**HERE, "id": leased["id"]})
    walk.post(404, admin + "message/delete", {**HERE, "id": 1})
    walk.post(400, admin + "message/delete", {})
    walk_acts(walk, leased)
    walk.get(200, admin + "search", namespace="shop", error="boom", limit=1)
    walk.get(400, admin + "search", namespace="shop")
    walk.get(200, admin + "dlq", **HERE, error="boom")
    walk.get(400, admin + "dlq")
    walk.post(200, admin + "dlq/redrive", {**HERE, "error": "boom", "dry_run": True})
    walk.post(200, admin + "dlq/redrive", {**HERE, "to": "slow"})
    walk.post(400, admin + "dlq/redrive", {})
    walk.post(200, admin + "dlq/delete", {**HERE, "limit": 5})
    walk.post(400, admin + "dlq/delete", {})
    waiting, = put(walk, {"text": "x", "delay": "1h"})
    walk.post(200, admin + "message/delete", {**HERE, "id": waiting})
    waiting, = put(walk, {"text": "x", "delay": "1h"})
    walk.post(200, admin + "message/cancel", {**HERE, "id": waiting})
    walk.post(404, admin + "message/cancel", {**HERE, "id": waiting})
    walk.post(400, admin + "message/cancel", {})
    walk.post(200, admin + "queue/purge", HERE)
    walk.post(404, admin + "queue/purge", NOWHERE)
    walk.post(400, admin + "queue/purge", {})
    one = admin + "queues/{namespace}/{topic}"
    put(walk, {"text": "x", "topic": "short-lived"})
    here = {"namespace": "shop", "topic": "short-lived"}
    walk(409, "DELETE", one, **here)
    walk(400, "DELETE", one, **here, force="perhaps")
    walk(200, "DELETE", one, **here, force="true")
    walk(404, "DELETE", one, **here)


def walk_backup(walk):
    """A backup is of the asked server alone: `walk` asks the server that owns the shards."""
    admin = "/v1/admin/"
    held, *others = [walk.post(200, admin + "backup", {}) for _ in range(4)]
    walk.post(409, admin + "backup", {})
    for other in others:
        walk.post(200, admin + "backup/end", {"backup": other["backup"]})
    walk.post(413, admin + "backup", " " * (1 << 20))
    walk.get(200, admin + "backup", backup=held["backup"], shard=0, file=0, at=0)
    walk.get(400, admin + "backup")
    walk.post(200, admin + "backup/end", {"backup": held["backup"]})
    walk.post(404, admin + "backup/end", {"backup": held["backup"]})
    walk.get(404, admin + "backup", backup=held["backup"])
    walk.post(400, admin + "backup/end", {})


def walk_console(walk, file):
    walk.get(302, "/console")
    walk(302, "GET", "/", None, {"Accept": "text/html"})
    walk.get(200, file, file="style.css")
    etag = walk.server.get("/console/style.css").headers["ETag"]
    walk(304, "GET", file, None, {"If-None-Match": etag}, file="style.css")
    walk.get(404, file, file="nothing")
    walk(413, "GET", file, "x", file="style.css")


def walk_server(walk):
    admin = "/v1/admin/"
    walk_backup(walk.at(walk.server.owner or walk.server))
    level = walk.get(200, admin + "log-level")
    walk(200, "PUT", admin + "log-level", level)
    walk(400, "PUT", admin + "log-level", {"level": "loud"})
    walk.get(200, admin + "config")
    walk.post(200, admin + "reload", {})
    walk.post(400, admin + "reload", {"of": "what"})
    walk.post(413, admin + "reload", " " * (1 << 20))
    walk.get(200, admin + "me")
    walk_console(walk, "/console/{file}")
    for path in ("/", "/healthz", "/readyz", "/metrics", "/openapi.json"):
        walk.get(200, path)
    for path in ("/", "/healthz", "/readyz", "/metrics", "/openapi.json", admin + "log-level",
                 admin + "config", admin + "me", "/console"):
        walk(413, "GET", path, "x")  # none of them takes a body


def lockd_put(walk, status=200, **meta):
    body, headers = lockd.parts({"namespace": "shop", "queue": "locked", **meta}, b"hello")
    return walk(status, "POST", "/v1/queue/enqueue", body, headers)


def lockd_take(walk, **more):
    """The lease of the next message of the queue."""
    text = walk.post(200, "/v1/queue/dequeue", {
        "namespace": "shop", "queue": "locked", "owner": "me", "wait_seconds": -1, **more})
    message = json.loads(text[text.index("{"):text.index("}\n") + 1])["message"]
    names = ("message_id", "lease_id", "fencing_token", "meta_etag")
    return {"namespace": "shop", "queue": "locked", **{name: message[name] for name in names}}


def walk_settle_lockd(walk, path):
    """Every way in which ack, nack and extend end."""
    lockd_put(walk)
    held = lockd_take(walk)
    walk.post(403, path, {**held, "fencing_token": 1})
    walk.post(409, path, {**held, "meta_etag": "other"})
    walk.post(200, path, held)
    walk.post(404, path, {**held, "message_id": "0"})
    walk.post(400, path, {})


def walk_lockd(walk):
    queue = "/v1/queue/"
    put(walk, {"text": "head"})
    walk.post(200, queue + "stats", {"namespace": "shop", "queue": "orders", "more": 1})
    walk.post(200, queue + "stats", {}, queue="unheard-of")
    walk.post(400, queue + "stats", {})
    walk(400, "POST", queue + "enqueue", "{}")
    walk.post(200, "/v1/queue/subscribe", {"namespace": "shop", "queue": "orders", "owner": "me",
                                           "wait_seconds": -1, "page_size": 64})
    walk.post(200, queue + "watch", {}, queue="orders")
    walk.post(400, queue + "watch", {})
    lockd_put(walk, queue="stated")
    walk.post(200, queue + "dequeueWithState", {"namespace": "shop", "queue": "stated",
                                                "owner": "me"})
    lockd_put(walk, queue="stated", max_attempts=1)
    walk.post(200, queue + "subscribeWithState", {
        "namespace": "shop", "queue": "stated", "owner": "me", "wait_seconds": -1,
        "visibility_timeout_seconds": 1})
    for path in ("dequeue", "subscribe", "dequeueWithState", "subscribeWithState"):
        walk.post(409, queue + path, {"queue": "none", "owner": "me", "wait_seconds": -1})
        walk.post(400, queue + path, {"queue": "none"})
    for path in ("ack", "nack", "extend"):
        walk_settle_lockd(walk, queue + path)
    walk.post(200, "/v1/admin/queue/drain", {"namespace": "shop", "queue": "locked"})
    lockd_put(walk, 409)
    walk.post(200, "/v1/admin/queue/resume", {"namespace": "shop", "queue": "locked"})


def walk_lockd_limit(walk):
    """A payload that is larger than the setting says."""
    server = Server(walk.server.folder.parent / "small", "--limits-payload", "4",
                    engine="memory")
    with server:
        Walk.__call__(walk.at(server), 413, "POST", "/v1/queue/enqueue",
                      *lockd.parts({"queue": "q"}, b"hello"))


def walk_shards(walk):
    """A server that has two: a queue moves from one to the other."""
    folder = walk.server.folder.parent
    file = folder / "shards.yaml"
    file.write_text("sharding: {enabled: true}\nredis.shards: {fast: {engine: memory}}\n")
    with Server(folder / "shards", "--config", str(file), engine="memory") as server:
        there = walk.at(server)
        there.post(200, "/enqueue", [{"namespace": "n", "topic": "q", "text": "x"}])
        ends = {"from": "default", "to": "fast"}
        there.post(200, "/v1/admin/shards/move", {"command": "q", **ends})
        there.post(404, "/v1/admin/shards/move", {"command": "q", "from": "default", "to": "none"})
        there.post(400, "/v1/admin/shards/move", {"command": "q", "from": "fast", "to": "fast"})
        walk_intake(there)


def walk_intake(walk):
    path, batch = "/v1/admin/intake", {"source": "5b0c7c2e-6f0a-4f6e-9a53-0a1b2c3d4e5f", "batch": 1, "shard": "default"}
    walk.post(200, path + "/places", {"queues": [{"namespace": "n", "queue": "r"}]})
    walk.post(400, path + "/places", {})
    messages = [{"namespace": "n", "queue": "r", "text": "x"}]
    walk.post(200, path, {**batch, "messages": messages})
    walk.post(200, path, batch)
    walk.post(400, path, {})
    walk.post(404, path, {**batch, "shard": "none"})
    walk.post(503, path, {**batch, "batch": 2, "shard": "fast", "messages": messages})


def walk_nodes(walk):
    """Servers that share a store, and one that does not."""
    nodes = "/v1/admin/nodes"
    for verb in ("/drain", "/resume", "/flush"):
        walk.post(400, nodes + verb, {"node": "x"})
        walk.post(413, nodes + verb, " " * (1 << 20))
    walk(413, "GET", nodes, "x")
    folder = walk.server.folder.parent
    with Server(folder / "alone", "--audit-file", str(folder / "audit.jsonl"), engine="memory") as alone:
        walk.at(alone).get(404, nodes)
        walk.at(alone).get(200, "/v1/admin/audit", limit=10)
        for verb in ("/drain", "/resume", "/flush"):
            walk.at(alone).post(404, nodes + verb, {})
    options = ["--store", f"file://{folder}/store", "--store-settle", "1s"]
    with Server(folder / "one", *options, engine="log") as one:
        walk.at(one).post(409, nodes + "/drain", {})
        with Server(folder / "two", *options, engine="log"):
            until(lambda: one.post(nodes + "/drain", {}).status == 200)
            walk.at(one).post(200, nodes + "/drain", {})
            walk.at(one).get(200, nodes)
            walk.at(one).post(200, nodes + "/resume", {})
    with Server(folder / "front", "--store", f"file://{folder}/home", "--store-front", "folder", engine="log") as front:
        walk.at(front).post(200, nodes + "/flush", {})


def walk_locks(walk):
    here = {"namespace": "shop", "key": "cart"}
    lease = walk.post(200, "/v1/acquire", {**here, "owner": "me", "ttl_seconds": 60})
    walk.post(409, "/v1/acquire", {**here, "owner": "you", "block_seconds": -1})
    about = {**here, "lease_id": lease["lease_id"], "txn_id": lease["txn_id"]}
    holder = {"X-Lease-ID": lease["lease_id"], "X-Txn-ID": lease["txn_id"],
              "X-Fencing-Token": str(lease["fencing_token"])}
    walk(204, "POST", "/v1/get", fields=holder, **here)
    walk(200, "POST", "/v1/update", {"n": 1}, holder, **here)
    walk(200, "POST", "/v1/mutate", {"mutations": ["/n++"]}, holder, **here)
    walk(200, "POST", "/v1/get", fields=holder, **here)
    walk(200, "POST", "/v1/metadata", {"query_hidden": False}, holder, **here)
    walk(200, "POST", "/v1/attachments", b"bytes", holder, name="a", **here)
    walk(200, "GET", "/v1/attachments", fields=holder, **here)
    walk(200, "GET", "/v1/attachment", fields=holder, name="a", **here)
    walk(200, "DELETE", "/v1/attachment", fields=holder, name="a", **here)
    walk(200, "DELETE", "/v1/attachments", fields=holder, **here)
    walk(200, "POST", "/v1/keepalive", about, holder)
    walk.post(200, "/v1/describe", None, **here)
    walk(200, "POST", "/v1/release", about, holder)
    walk.post(200, "/v1/query", {"namespace": "shop", "selector": {"exists": "/n"}})
    walk(403, "POST", "/v1/remove", fields=holder, **here)
    lease = walk.post(200, "/v1/acquire", {**here, "owner": "me"})
    holder = {"X-Lease-ID": lease["lease_id"], "X-Txn-ID": lease["txn_id"],
              "X-Fencing-Token": str(lease["fencing_token"])}
    walk(200, "POST", "/v1/remove", fields=holder, **here)
    walk.post(200, "/v1/index/flush", {"namespace": "shop"})
    walk.post(202, "/v1/index/flush", {"mode": "async"})
    walk.get(200, "/v1/namespace", namespace="shop")
    settings = {"namespace": "shop", "query": {"preferred_engine": "auto"}}
    walk.post(200, "/v1/namespace", settings)
    walk(200, "PUT", "/v1/namespace", settings)
    walk.get(400, "/v1/namespace", namespace="?")
    for path in ("acquire", "keepalive", "release", "describe", "get", "update", "mutate",
                 "metadata", "remove", "attachments"):
        walk.post(400, "/v1/" + path, {})
    for path in ("attachment", "attachments"):
        walk.get(400, "/v1/" + path)
        walk(400, "DELETE", "/v1/" + path)
    for method, path in (("POST", "query"), ("POST", "index/flush"), ("POST", "namespace"),
                         ("PUT", "namespace")):
        walk(400, method, "/v1/" + path, "{")
    for path in ("/v1/txn/", "/v1/tc/"):
        walk.post(403, path, {})
        walk.post(413, path, "x" * (1 << 20))


def walk_sqs(walk):
    for path, named in (("/", {}), ("/sqs", {}), ("/sqs/{account}/{queue}", {"account": "000000000000", "queue": "s"})):
        fields = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.ListQueues"}
        walk.post(200, path, {}, fields=fields, **named)
        walk.post(400, path, [], fields=fields, **named)


def walk_stream(walk, path):
    """The answer is not HTTP any more."""
    walk(101, "GET", path, fields={"Connection": "Upgrade", "Upgrade": "sluice-stream"})
    walk.server.close()
    walk(426, "GET", path)
    walk.get(400, path, unknown=1)


def walk_codeq(walk):
    base, named = "/v1/codeq", "/v1/codeq/tasks/{id}"
    task = walk.post(202, base + "/tasks", {"command": "MAIL", "payload": {"n": 1}, "priority": 3})
    walk.post(400, base + "/tasks", {})
    walk.post(200, base + "/tasks/batch", {"tasks": [{"command": "MAIL", "payload": 1}]})
    walk.post(400, base + "/tasks/batch", {})
    walk.get(200, named, id=task["id"])
    walk.get(404, named, id="x")
    walk.post(200, base + "/tasks/claim", {"commands": ["MAIL"]})
    walk.post(204, base + "/tasks/claim", {"commands": ["none"]})
    walk.post(400, base + "/tasks/claim", {})
    other, = walk.post(200, base + "/tasks/claim/batch", {"commands": ["MAIL"], "count": 1})["tasks"]
    walk.post(204, base + "/tasks/claim/batch", {"commands": ["MAIL"], "count": 1})
    walk.post(400, base + "/tasks/claim/batch", {"commands": ["MAIL"]})
    walk.post(200, named + "/heartbeat", {"extendSeconds": 30}, id=task["id"])
    walk.post(200, named + "/abandon", {}, id=task["id"])
    walk.post(200, named + "/nack", {"delaySeconds": 1}, id=other["id"])
    for what in ("heartbeat", "abandon", "nack"):
        walk.post(404, f"{named}/{what}", {}, id="x")
    walk.get(404, named + "/result", id=task["id"])
    walk.post(200, base + "/tasks/claim", {"commands": ["MAIL"]})
    done = {"status": "COMPLETED", "result": {}, "artifacts": [{"name": "a", "url": "http://a/"}]}
    walk.post(200, named + "/result", done, id=task["id"])
    walk.post(409, named + "/result", done, id=task["id"])
    walk.get(200, named + "/result", id=task["id"], waitSeconds=1)
    walk.post(200, base + "/tasks/batch/results", {"results": [{"taskId": task["id"], **done}]})
    walk.post(400, base + "/tasks/batch/results", {})
    ready = walk.post(200, base + "/workers/subscriptions", {"callbackUrl": "http://192.0.2.1/", "eventTypes": ["none"]})
    walk.post(400, base + "/workers/subscriptions", {})
    walk.post(200, base + "/workers/subscriptions/{id}/heartbeat", {"ttlSeconds": 60}, id=ready["subscriptionId"])
    walk.post(404, base + "/workers/subscriptions/{id}/heartbeat", {}, id="x")
    walk_stream(walk, base + "/stream")
    for path, bad in (("/raft/status", "/raft/status"), ("/admin/queues", "/admin/queues")):
        walk.get(200, base + path)
        walk.get(400, base + bad, unknown=1)
    walk.get(200, base + "/admin/queues/{id}", id="MAIL")
    walk.get(400, base + "/admin/queues/{id}", id="a%20b")
    walk.post(200, base + "/admin/tasks/cleanup", {})
    walk.post(400, base + "/admin/tasks/cleanup", {"limit": 0})
    topic = base + "/admin/topics/{id}"
    walk(201, "PUT", topic, {"maxAttempts": 3}, id="MAIL")
    walk(200, "PUT", topic, {"maxAttempts": 4, "priorityTiers": [1, 2]}, id="MAIL")
    walk(422, "PUT", topic, {"maxAttempts": 0}, id="MAIL")
    walk.get(200, topic, id="MAIL")
    walk.get(404, topic, id="none")
    walk(204, "DELETE", topic, id="MAIL", deletionPolicy="Delete")
    walk(404, "DELETE", topic, id="MAIL", deletionPolicy="Delete")


def walk_stop(walk):
    """While it stops it says so."""
    server = walk.server
    server.process.send_signal(signal.SIGTERM)
    until(lambda: server.get("/readyz").status == 503)
    walk.get(503, "/readyz")


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("walk") / "data"
    server = Server(folder, "--drain", "30s")
    try:
        walk = Walk(server)
        for part in (walk_messages, walk_results, walk_topics, walk_limits, walk_admin,
                     walk_lockd, walk_lockd_limit, walk_shards, walk_nodes, walk_locks, walk_sqs, walk_codeq,
                     walk_server):
            part(walk)
        walk_policy(walk, "/policy")
        walk_policy(walk, "/v1/admin/queue/policy")
        walk_stop(walk)
        yield walk
    finally:
        for each in filter(None, (server.owner, server)):
            each.kill()
            shutil.rmtree(each.folder)


def test_every_answer_is_as_described_and_every_code_can_be_had(walked):
    assert list(walked.missing()) == []


def test_the_document_stands_by_itself(walked):
    text = json.dumps(walked.document)
    names = walked.document["components"]["schemas"]
    for name in names:  # every schema is used, every one that is used is there
        assert f'"#/components/schemas/{name}"' in text, name
    assert all(part.split('"')[0] in names for part in text.split("#/components/schemas/")[1:])
    for schema in names.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    ids = [row["operationId"] for methods in walked.document["paths"].values()
           for row in methods.values()]
    assert len(ids) == len(set(ids))


def test_names_in_paths_need_no_escapes(walked):
    assert all(urllib.parse.quote(path, safe="/{}") == path for path in walked.document["paths"])


@pytest.mark.parametrize("host, url", [
    ("localhost:7171", "http://localhost:7171"), ("127.0.0.1", "http://127.0.0.1"),
    ("queue.example:80", "http://queue.example:80"), ("[::1]:9", "http://[::1]:9"),
    ("evil.example", "/"), ("queue.example/x", "/"), ("queue.example\"x", "/"), ("", "/"),
])
def test_the_document_names_the_server_that_answers(open_server, host, url):
    answer = open_server.call("GET", "/openapi.json", None, {"Host": host})
    assert answer.status in (200, 400), answer  # 400: what is no host at all
    if answer.status == 200:
        assert answer.body["servers"] == [{"url": url}]
    else:
        assert url == "/"


@pytest.fixture(scope="module")
def open_server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("named"), "--auth-hosts", "queue.example", engine="memory") as server:
        yield server
