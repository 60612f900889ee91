"""Who may call: tokens, rights, namespaces, web pages. docs/security.md."""
import json
import re
import signal
import socket
import subprocess
import time

import pytest

import lockd
from frames import Frames
from served import ENGINE, SLUICED, Refused, Server, new_txn, until
from tokens import Pair, Secret, encode

KEY = Secret("correct-horse-battery-staple-0123456789")
OTHER = Secret("another-horse-battery-staple-0123456789")
A, B = "tenant-a", "tenant-b"


def secret_file(folder, key=KEY, name="secret"):
    path = folder / name
    path.write_bytes(key.secret + b"\n")
    return str(path)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("auth")
    with Server(folder / "data", "--auth-keys", "HS256:" + secret_file(folder), "--log-level", "debug",
                engine=ENGINE if ENGINE == "forwarded" else "memory") as server:
        yield server


def call(server, method, path, scope=None, body=None, fields=None, **params):
    """With a token for that scope; None: without."""
    headers = KEY.bearer(scope=scope) if scope is not None else {}
    if path == QUEUE_PATH:
        path = path.format(namespace=params.pop("namespace"), topic="jobs")
    path = path.format(account=A, queue="jobs", file="style.css", id="x")
    if path == "/v1/queue/enqueue":
        body, more = lockd.parts(body, b"x")
        fields = {**(fields or {}), **more}
    return server.call(method, path, body, headers={**headers, **(fields or {})}, **params)


# --- every route x role x namespace ------------------------------------------------------

# What each needs, and a call of it in a namespace: (method, path): (need, query, body).
Q = {"topic": "jobs"}
K = {"key": "k"}
NOBODY = {"X-Lease-ID": "0" * 19 + "g", "X-Txn-ID": "0" * 19 + "g", "X-Fencing-Token": "1"}
HELD = {"queue": "q", "owner": "o", "message_id": "1", "lease_id": "x", "meta_etag": "x"}
QUEUE_PATH = "/v1/admin/queues/{namespace}/{topic}"
CODEQ = [  # test_codeq_tokens.py has who may use each
    ("POST", "/tasks"), ("POST", "/tasks/batch"), ("POST", "/tasks/claim"), ("POST", "/tasks/claim/batch"),
    ("POST", "/tasks/batch/results"), ("POST", "/tasks/{id}/heartbeat"), ("POST", "/tasks/{id}/abandon"),
    ("POST", "/tasks/{id}/nack"), ("POST", "/tasks/{id}/result"), ("GET", "/tasks/{id}/result"), ("GET", "/tasks/{id}"),
    ("GET", "/raft/status"), ("GET", "/admin/queues"), ("GET", "/admin/queues/{id}"), ("POST", "/admin/tasks/cleanup"),
    ("PUT", "/admin/topics/{id}"), ("GET", "/admin/topics/{id}"), ("DELETE", "/admin/topics/{id}"),
    ("POST", "/workers/subscriptions"), ("POST", "/workers/subscriptions/{id}/heartbeat"), ("GET", "/stream"),
]
SQS_PATH = "/sqs/{account}/{queue}"  # the actions have a table of their own below
ROUTES = {
    ("POST", "/enqueue"): ("write", {}, [{**Q, "text": "x"}]),
    ("GET", "/dequeue"): ("write", Q, None),
    ("POST", "/dequeue"): ("write", {}, Q),
    ("POST", "/ack"): ("write", {}, {**Q, "id": 1}),
    ("POST", "/nack"): ("write", {}, {**Q, "id": 1}),
    ("POST", "/extend"): ("write", {}, {**Q, "id": 1}),
    ("POST", "/worker"): ("consume", {}, Q),
    ("GET", "/stream"): ("stream", {}, None),  # test_every_frame_is_authorized
    ("GET", "/result"): ("read", {**Q, "id": 1}, None),
    ("GET", "/why"): ("read", {**Q, "id": 1}, None),
    ("POST", "/batches"): ("write", {}, {}),
    ("GET", "/batches"): ("read", {}, None),
    ("POST", "/batches/close"): ("write", {}, {"id": 1}),
    ("GET", "/batch"): ("read", {"id": 1}, None),
    ("GET", "/stats"): ("read", Q, None),
    ("GET", "/peek"): ("read", Q, None),
    ("GET", "/topics"): ("read", {}, None),
    ("GET", "/dlq"): ("read", Q, None),
    ("POST", "/dlq/redrive"): ("admin", {}, {**Q, "ids": [1]}),
    ("POST", "/dlq/delete"): ("admin", {}, {**Q, "limit": 5}),
    ("GET", "/policy"): ("read", Q, None),
    ("PUT", "/policy"): ("admin", Q, {}),
    ("POST", "/policy"): ("admin", Q, {}),
    ("POST", "/v1/queue/enqueue"): ("write", {}, {"queue": "q"}),
    ("POST", "/v1/queue/dequeue"): ("consume", {}, {**HELD, "wait_seconds": -1}),
    ("POST", "/v1/queue/subscribe"): ("consume", {}, {**HELD, "queue": "none", "wait_seconds": -1}),
    ("POST", "/v1/queue/dequeueWithState"): ("consume", {}, {**HELD, "wait_seconds": -1}),
    ("POST", "/v1/queue/subscribeWithState"): ("consume", {}, {**HELD, "queue": "none",
                                                            "wait_seconds": -1}),
    ("POST", "/v1/queue/watch"): ("read", {}, {"queue": "q"}),
    ("POST", "/v1/queue/ack"): ("consume", {}, HELD),
    ("POST", "/v1/queue/nack"): ("consume", {}, HELD),
    ("POST", "/v1/queue/extend"): ("consume", {}, HELD),
    ("POST", "/v1/queue/stats"): ("read", {}, {"queue": "q"}),
    ("POST", "/v1/acquire"): ("holder", {}, {"key": "k", "owner": "me", "block_seconds": -1}),
    ("POST", "/v1/keepalive"): ("holder", {}, {"key": "k"}),
    ("POST", "/v1/release"): ("holder", {}, {"key": "k"}),
    ("POST", "/v1/describe"): ("read", K, None),
    ("POST", "/v1/get"): ("any", K, None),
    ("POST", "/v1/update"): ("write", K, {}),
    ("POST", "/v1/mutate"): ("write", K, {"mutations": ["/a=1"]}),
    ("POST", "/v1/metadata"): ("write", K, {"query_hidden": True}),
    ("POST", "/v1/remove"): ("write", K, None),
    ("POST", "/v1/attachments"): ("write", {**K, "name": "a"}, "x"),
    ("GET", "/v1/attachments"): ("any", K, None),
    ("DELETE", "/v1/attachments"): ("write", K, None),
    ("GET", "/v1/attachment"): ("any", {**K, "name": "a"}, None),
    ("DELETE", "/v1/attachment"): ("write", {**K, "name": "a"}, None),
    ("POST", "/v1/query"): ("read", {}, {}),
    ("POST", "/v1/index/flush"): ("both", {}, {}),
    ("GET", "/v1/namespace"): ("both", {}, None),
    ("POST", "/v1/namespace"): ("both", {}, {}),
    ("PUT", "/v1/namespace"): ("both", {}, {}),
    ("POST", "/v1/txn/"): ("refused", {}, {}),
    ("POST", "/v1/tc/"): ("refused", {}, {}),
    ("GET", "/v1/admin/queues"): ("view", {}, None),
    ("DELETE", QUEUE_PATH): ("admin", {}, None),
    ("GET", "/v1/admin/queue"): ("view", Q, None),
    ("GET", "/v1/admin/live"): ("view", {}, None),
    ("GET", "/v1/admin/history"): ("view", Q, None),
    ("GET", "/v1/admin/audit"): ("server", {}, None),
    ("POST", "/v1/admin/queue/pause"): ("admin", {}, Q),
    ("POST", "/v1/admin/queue/drain"): ("admin", {}, Q),
    ("POST", "/v1/admin/queue/resume"): ("admin", {}, Q),
    ("POST", "/v1/admin/queue/purge"): ("admin", {}, Q),
    ("GET", "/v1/admin/queue/limits"): ("view", Q, None),
    ("GET", "/v1/admin/queue/priorities"): ("view", Q, None),
    ("POST", "/v1/admin/queue/breaker"): ("admin", {}, {**Q, "breaker": "b", "state": "closed"}),
    ("POST", "/v1/admin/queue/hold"): ("admin", {}, {**Q, "scope": "queue"}),
    ("GET", "/v1/admin/queue/policy"): ("view", Q, None),
    ("GET", "/v1/admin/locks"): ("view", {}, None),
    ("POST", "/v1/admin/lock/release"): ("admin", {}, {"key": "k", "token": 1}),
    ("GET", "/v1/admin/workers"): ("view", {}, None),
    ("POST", "/v1/admin/worker/quiet"): ("admin", {}, {"worker": "w"}),
    ("POST", "/v1/admin/worker/resume"): ("admin", {}, {"worker": "w"}),
    ("POST", "/v1/admin/worker/stop"): ("admin", {}, {"worker": "w"}),
    ("PUT", "/v1/admin/queue/policy"): ("admin", Q, {}),
    ("POST", "/v1/admin/queue/policy"): ("admin", Q, {}),
    ("GET", "/v1/admin/messages"): ("view", Q, None),
    ("GET", "/v1/admin/keys"): ("view", {}, None),
    ("GET", "/v1/admin/search"): ("view", {"key": "k"}, None),
    ("POST", "/v1/admin/message/run"): ("admin", {}, {**Q, "id": 1}),
    ("POST", "/v1/admin/message/delay"): ("admin", {}, {**Q, "id": 1, "delay": "1m"}),
    ("POST", "/v1/admin/message/priority"): ("admin", {}, {**Q, "id": 1, "priority": 1}),
    ("POST", "/v1/admin/message/move"): ("admin", {}, {**Q, "id": 1, "to": "other"}),
    ("POST", "/v1/admin/message/edit"): ("admin", {}, {**Q, "id": 1, "text": "x"}),
    ("GET", "/v1/admin/message"): ("view", {"id": 1}, None),
    ("POST", "/v1/admin/message/delete"): ("admin", {}, {**Q, "id": 1}),
    ("POST", "/v1/admin/message/cancel"): ("admin", {}, {**Q, "id": 1}),
    ("GET", "/v1/admin/dlq"): ("view", Q, None),
    ("POST", "/v1/admin/dlq/redrive"): ("admin", {}, Q),
    ("POST", "/v1/admin/dlq/delete"): ("admin", {}, Q),
    ("GET", "/v1/admin/dlq/groups"): ("view", Q, None),
    ("GET", "/v1/admin/tasks"): ("view", {}, None),
    ("GET", "/v1/admin/task"): ("view", {"task": "17"}, None),
    ("POST", "/v1/admin/task"): ("admin", {}, {"queue": "q", "action": "delete"}),
    ("POST", "/v1/admin/task/cancel"): ("admin", {}, {"task": "17"}),
    ("GET", "/v1/admin/schedules"): ("view", {}, None),
    ("GET", "/v1/admin/schedule"): ("view", {"name": "s"}, None),
    ("PUT", "/v1/admin/schedule"): ("admin", {}, {
        "name": "s", "when": "@every 1h", "message": {"queue": "jobs", "text": "x"}}),
    ("POST", "/v1/admin/schedule/delete"): ("admin", {}, {"name": "s"}),
    ("POST", "/v1/admin/schedule/pause"): ("admin", {}, {"name": "s"}),
    ("POST", "/v1/admin/schedule/resume"): ("admin", {}, {"name": "s"}),
    ("POST", "/v1/admin/schedule/run"): ("admin", {}, {"name": "s"}),
    ("POST", "/v1/admin/backup"): ("server", {}, {}),
    ("GET", "/v1/admin/backup"): ("server", {"backup": 1}, None),
    ("POST", "/v1/admin/backup/end"): ("server", {}, {"backup": 1}),
    ("GET", "/v1/admin/log-level"): ("server", {}, None),
    ("PUT", "/v1/admin/log-level"): ("server", {}, {"level": "debug"}),
    ("POST", "/v1/admin/shards/move"): ("server", {}, {"command": "q", "from": "default",
                                                       "to": "none"}),
    ("POST", "/v1/admin/intake"): ("server", {}, {
        "source": "5b0c7c2e-6f0a-4f6e-9a53-0a1b2c3d4e5f", "batch": 1, "shard": "default"}),
    ("POST", "/v1/admin/intake/places"): ("server", {}, {"queues": []}),
    ("GET", "/v1/admin/config"): ("server", {}, None),
    ("GET", "/v1/admin/nodes"): ("server", {}, None),
    ("POST", "/v1/admin/nodes/drain"): ("server", {}, {}),
    ("POST", "/v1/admin/nodes/resume"): ("server", {}, {}),
    ("POST", "/v1/admin/nodes/flush"): ("server", {}, {}),
    ("POST", "/v1/admin/reload"): ("server", {}, {}),
    ("POST", "/"): ("sqs", {}, {}),
    ("POST", "/sqs"): ("sqs", {}, {}),
    ("POST", SQS_PATH): ("sqs", {}, {}),
    **{(method, f"/v1/codeq{path}"): ("codeq", {}, None) for method, path in CODEQ},
    ("GET", "/"): ("nothing", {}, None),
    ("GET", "/healthz"): ("nothing", {}, None),
    ("GET", "/readyz"): ("nothing", {}, None),
    ("GET", "/openapi.json"): ("nothing", {}, None),
    ("GET", "/console"): ("nothing", {}, None),
    ("GET", "/console/{file}"): ("nothing", {}, None),
    ("GET", "/v1/admin/me"): ("token", {}, None),
    ("GET", "/metrics"): ("metrics", {}, None),
}

# A role is the scopes of its token; what it may is written down here once more, by hand.
ROLES = {
    "none": (None, set()),
    "nothing": ("", set()),
    "others": ("openid profile", set()),
    "read": (f"{A}:read", {(A, "read")}),
    "write": (f"{A}:write", {(A, "write"), (A, "consume")}),
    "consume": (f"{A}:consume", {(A, "consume")}),
    "admin": (f"{A}:admin", {(A, "admin")}),
    "all of a": (f"{A}:*", {(A, "read"), (A, "write"), (A, "consume"), (A, "admin")}),
    "both": (f"{A}:read {B}:write", {(A, "read"), (B, "write"), (B, "consume")}),
    "all of b": (f"{B}:*", {(B, "read"), (B, "write"), (B, "consume"), (B, "admin")}),
    "prefix": ("tenant-*:read", {(A, "read"), (B, "read")}),
    "read all": ("*:read", {(A, "read"), (B, "read"), (None, "metrics")}),
    "admin of all": ("*:admin", {(A, "admin"), (B, "admin"), (None, "server")}),
    "star": ("*:*", {(n, r) for n in (A, B) for r in ("read", "write", "consume", "admin")}
             | {(None, "server"), (None, "metrics")}),
}

# How the right is called that a refusal asks for.
NAMED = {"holder": "consume", "any": "read", "both": "read|write", "view": "read"}


ONE_OF = {"holder": ("consume", "write"), "any": ("read", "consume", "write"),
          "view": ("read", "admin"), "some": ("read", "consume", "write", "admin")}


def is_allowed(may, namespace, need):
    if need in ONE_OF:
        return any((namespace, right) in may for right in ONE_OF[need])
    if need == "both":
        return (namespace, "read") in may and (namespace, "write") in may
    return (None if need in ("server", "metrics") else namespace, need) in may


def missing(namespace, need):
    """The scope that a refusal names, as a pattern."""
    if need in ("server", "metrics"):
        return r"\*:admin" if need == "server" else r"\*:read"
    return f"{namespace}:({NAMED.get(need, need)})"


def in_namespace(method, path, namespace):
    need, query, body = ROUTES[method, path]
    if path == QUEUE_PATH:
        return need, {"namespace": namespace}, body
    if need in ("server", "nothing", "metrics", "sqs", "codeq", "token", "stream"):
        return need, query, body
    if method == "GET" or query or (method == "PUT" and not body):
        return need, {**query, "namespace": namespace}, body
    if isinstance(body, list):
        return need, query, [{**item, "namespace": namespace} for item in body]
    return need, query, {**body, "namespace": namespace}


def test_the_table_has_every_route(guarded):
    paths = guarded.get("/openapi.json").body["paths"]
    assert set(ROUTES) == {(m.upper(), p) for p, methods in paths.items() for m in methods}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("namespace", [A, B])
def test_every_route_and_role_and_namespace(guarded, role, namespace):
    """MQ-34, MQ-36, X-03, fault 34: deny by default."""
    scope, may = ROLES[role]
    for method, path in ROUTES:
        need, query, body = in_namespace(method, path, namespace)
        if need in ("sqs", "codeq", "stream"):
            continue
        answer = call(guarded, method, path, scope, body, NOBODY, **query)
        if need == "nothing":
            assert answer.status in (200, 302), (path, answer)
        elif scope is None:
            assert answer.status == 401, (path, answer)
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        elif need == "token":  # a valid one, with whatever rights
            assert answer.status == 200, (path, answer)
        elif need == "refused":  # to every caller
            assert answer.status == 403, (path, answer)
        elif is_allowed(may, namespace, need):
            assert answer.status != 401, (path, answer)
            assert answer.status != 403 or answer.body["error"] == "lease_required", (path, answer)
            assert answer.status != 400 or "engine memory" in answer.text or "Sluice-Worker" in answer.text, (path, answer)
        else:
            assert answer.status == 403, (path, answer)
            assert answer.body["error"] in ("forbidden", "namespace_forbidden"), (path, answer)
            said = answer.headers["WWW-Authenticate"]
            assert re.search('scope="%s"$' % missing(namespace, need), said), (path, said)
            assert re.search("needs the scope " + missing(namespace, need), answer.text), (path, answer)


FRAMED = ("/enqueue", "/dequeue", "/ack", "/nack", "/extend", "/worker")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("namespace", [A, B])
def test_every_frame_is_authorized(guarded, role, namespace):
    """X-03: as a request to its route, by the fields of the upgrade."""
    scope, may = ROLES[role]
    if scope is None:
        with Frames(guarded, status=401):
            return
    with Frames(guarded, headers=KEY.bearer(scope=scope)) as frames:
        for path in FRAMED:
            need, _, body = in_namespace("POST", path, namespace)
            status, answer = frames.call(path, body)
            if is_allowed(may, namespace, need):
                assert status not in (401, 403), (path, answer)
            else:
                assert (status, answer["error"]) == (403, "forbidden"), (path, answer)


# What each action of SQS needs, and a call of it; the queue exists.
RECEIPT = {"ReceiptHandle": "x"}
ACTIONS = {
    "SendMessage": ("write", {"MessageBody": "x"}),
    "SendMessageBatch": ("write", {"Entries": [{"Id": "a", "MessageBody": "x"}]}),
    "ReceiveMessage": ("consume", {}),
    "DeleteMessage": ("consume", RECEIPT),
    "DeleteMessageBatch": ("consume", {"Entries": [{"Id": "a", **RECEIPT}]}),
    "ChangeMessageVisibility": ("consume", {"VisibilityTimeout": 1, **RECEIPT}),
    "ChangeMessageVisibilityBatch": ("consume", {"Entries": [{"Id": "a", "VisibilityTimeout": 1, **RECEIPT}]}),
    "CreateQueue": ("some", {"QueueName": "jobs"}),
    "GetQueueUrl": ("some", {"QueueName": "jobs"}),
    "GetQueueAttributes": ("some", {"AttributeNames": ["All"]}),
    "ListQueues": ("some", {}),
    "SetQueueAttributes": ("admin", {"Attributes": {}}),
    "DeleteQueue": ("admin", {"QueueUrl": "http://h/%s/other"}),
    "PurgeQueue": ("admin", {}),
    "TagQueue": ("admin", {"Tags": {"a": "b"}}),
    "UntagQueue": ("admin", {"TagKeys": ["a"]}),
    "ListQueueTags": ("some", {}),
    "ListDeadLetterSourceQueues": ("some", {}),
    "StartMessageMoveTask": ("admin", {"SourceArn": "arn:aws:sqs:us-east-1:%s:jobs"}),
    "ListMessageMoveTasks": ("some", {"SourceArn": "arn:aws:sqs:us-east-1:%s:jobs"}),
    "CancelMessageMoveTask": ("admin", {"TaskHandle": "x"}),
    "AddPermission": ("admin", {"Label": "x"}),
    "RemovePermission": ("admin", {"Label": "x"}),
}


def sqs_call(server, namespace, action, scope, params):
    fields = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"AmazonSQS.{action}"}
    body = {k: v % namespace if isinstance(v, str) and "%s" in v else v for k, v in params.items()}
    return server.call("POST", f"/sqs/{namespace}/jobs", body,
                       {**fields, **(KEY.bearer(scope=scope) if scope is not None else {})})


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("namespace", [A, B])
def test_every_action_of_sqs_and_role_and_namespace(guarded, role, namespace):
    """X-03: deny by default, also before a bad parameter is named."""
    scope, may = ROLES[role]
    made = sqs_call(guarded, namespace, "CreateQueue", "*:*", {"QueueName": "jobs"})
    assert made.status == 200, made
    for action, (need, params) in ACTIONS.items():
        answer = sqs_call(guarded, namespace, action, scope, params)
        if scope is None:
            assert answer.status == 403 and "InvalidSecurity" in answer.text, (action, answer)
        elif is_allowed(may, namespace, need):
            assert answer.status != 403, (action, answer)
        else:
            assert answer.status == 403 and "AccessDenied" in answer.text, (action, answer)


def test_an_action_of_sqs_that_makes_a_queue_needs_admin(guarded):
    for right, status in (("read", 403), ("write", 403), ("admin", 200)):
        answer = sqs_call(guarded, A, "CreateQueue", f"{A}:{right}", {"QueueName": "new-one"})
        assert answer.status == status, (right, answer)


# --- queries of every route ---------------------------------------------------------------

OPEN_PATHS = ("/", "/healthz", "/readyz")  # people, balancers and clients of lockd ask for these


def is_lockd(path):
    return path.startswith("/v1/") and not path.startswith(("/v1/admin/", "/v1/codeq/"))


def ask_raw(server, method, path, query, body):
    headers = KEY.bearer(scope="*:*")
    if path == "/v1/queue/enqueue":
        body, more = lockd.parts(body, b"x")
        headers.update(more)
    path = path.format(namespace=A, topic="jobs", account=A, queue="jobs", file="style.css", id="x")
    return server.call(method, f"{path}?{query}", body, headers={**headers, **NOBODY})


MALFORMED = {"percent": "key=50%off", "end": "key=%", "half": "key=%2", "zero": "key=a%00",
             "other": "x=%zz&key=k", "nameless": "key=k&=x"}


@pytest.mark.parametrize("how", MALFORMED)
def test_a_malformed_query_is_400_on_every_route(guarded, how):
    """A key that cannot be decoded was no key, and acquire made one up."""
    for method, path in ROUTES:
        body = ROUTES[method, path][2] if path != "/dequeue" else None  # a query or a body
        answer = ask_raw(guarded, method, path, MALFORMED[how], body)
        assert answer.status == 400, (method, path, answer)
        assert "invalid query" in answer.text or "invalid parameter" in answer.text, (method, path, answer)


@pytest.mark.parametrize("query, body", [("key=", {}), ("key", {}), ("key=%20", {}), ("key=/", {}),
                                         ("", {"key": "/"}), ("", {"key": " "})])
def test_a_key_with_nothing_in_it_gets_no_random_one(guarded, query, body):
    def acquire(query, **more):
        body = {"namespace": A, "owner": "w", "ttl_seconds": 30, **more}
        return guarded.call("POST", f"/v1/acquire?{query}", body, headers=KEY.bearer(scope="*:*"))

    answer = acquire(query, **body)
    assert (answer.status, answer.body["error"]) == (400, "missing_key")
    assert acquire("", key="").status == 200  # as if left out


@pytest.mark.parametrize("query", ["namespace=a&namespace=b", "key=a&key=a", "queue=q&%71ueue=r"])
def test_a_repeated_parameter_is_400_on_every_route(guarded, query):
    for method, path in ROUTES:
        if path in OPEN_PATHS:
            continue
        body = ROUTES[method, path][2] if path != "/dequeue" else None  # a query or a body
        answer = ask_raw(guarded, method, path, query, body)
        assert answer.status == 400, (method, path, answer)
        assert "invalid parameter" in answer.text, (method, path, answer)


def test_an_unknown_parameter_is_400_but_where_clients_of_lockd_may_send_more(guarded):
    for method, path in ROUTES:
        need, query, body = in_namespace(method, path, A)
        answer = call(guarded, method, path, "*:*", body, NOBODY, **query, colour="blue", nmespace="x")
        if is_lockd(path) or (path in OPEN_PATHS and method == "GET"):
            assert answer.status != 400, (method, path, answer)
        elif method == "POST" and path == "/dequeue":
            assert answer.status == 400 and "not in both" in answer.text
        else:
            assert answer.status == 400 and 'invalid parameter' in answer.text and "colour" in answer.text, answer


def test_a_parameter_with_a_slip_has_a_suggestion(guarded):
    answer = call(guarded, "GET", "/peek", "*:*", namespace=A, topic="t", limti=3)
    assert answer.status == 400
    assert 'invalid parameter "limti"; did you mean limit? Expected one of ' in answer.body["message"]


def test_a_query_of_a_refused_caller_is_not_parsed(guarded):
    assert guarded.call("GET", "/peek?x=%zz").status == 401


# --- isolation ----------------------------------------------------------------------------


def test_an_id_of_another_namespace_is_not_found(guarded):
    """MQ-36: a guess across namespaces is a 404, and does nothing."""
    scope = f"{A}:*"
    ids = call(guarded, "POST", "/enqueue", scope, [
        {"namespace": A, "topic": "secret", "text": "mine", "keep_result": "1h"}]).body
    got, = call(guarded, "GET", "/dequeue", scope, namespace=A, topic="secret").body
    assert [got["id"]] == ids
    call(guarded, "POST", "/enqueue", f"{B}:*", [{"namespace": B, "topic": "secret", "text": "b"}])
    asked = [
        ("POST", "/ack", {"topic": "secret"}, {}),
        ("POST", "/ack", {}, {}),
        ("POST", "/ack", {"topic": "secret", "lease_id": got["lease_id"],
                          "fencing_token": got["fencing_token"]}, {}),
        ("POST", "/nack", {"topic": "secret", "dead": True}, {}),
        ("POST", "/extend", {"topic": "secret", "lease": "1h"}, {}),
        ("POST", "/v1/admin/message/delete", {"topic": "secret"}, {}),
        ("POST", "/v1/admin/message/cancel", {"topic": "secret"}, {}),
        ("GET", "/result", None, {"topic": "secret"}),
        ("GET", "/why", None, {"topic": "secret"}),
        ("GET", "/v1/admin/message", None, {}),
        ("GET", "/v1/admin/message", None, {"topic": "secret"}),
    ]
    for method, path, body, query in asked:
        found = []
        for number in (got["id"], 123456789):
            here = {"namespace": B, "id": number}
            answer = call(guarded, method, path, f"{B}:*", None if body is None else {**body, **here},
                          **(query if body is not None else {**query, **here}))
            found.append((answer.status, answer.text.replace(str(number), "ID")))
        assert found[0] == found[1] and found[0][0] == 404, (path, found)
    many = call(guarded, "POST", "/dlq/delete", f"{B}:*",
                {"namespace": B, "topic": "secret", "ids": [got["id"], 1]}).body
    assert many["deleted"] == 0 and {r["status"] for r in many["results"]} == {404}
    assert call(guarded, "POST", "/ack", scope, {
        "namespace": A, "topic": "secret", "id": got["id"], "lease_id": got["lease_id"]}).status == 200


def test_a_namespace_that_is_not_yours_may_exist_or_not(guarded):
    call(guarded, "POST", "/enqueue", f"{A}:write", [{"namespace": A, "topic": "t", "text": "x"}])
    for method, path in ROUTES:
        found = set()
        for namespace in (A, "tenant-0"):
            need, query, body = in_namespace(method, path, namespace)
            if need in ("nothing", "server", "metrics", "sqs", "codeq", "token", "stream"):
                continue
            answer = call(guarded, method, path, f"{B}:*", body, NOBODY, **query)
            found.add((answer.status, answer.text.replace(namespace, "NAMESPACE")))
        assert len(found) <= 1, found
        assert not found or found.pop()[0] == 403


def test_lists_show_nothing_of_others(guarded):
    for namespace in (A, B):
        call(guarded, "POST", "/enqueue", f"{namespace}:write",
             [{"namespace": namespace, "topic": f"only-{namespace}", "text": "x"}])
    seen = call(guarded, "GET", "/topics", f"{A}:read", namespace=A).text
    assert f"only-{A}" in seen and B not in seen
    seen = call(guarded, "GET", "/v1/admin/queues", f"{A}:admin", namespace=A).text
    assert f"only-{A}" in seen and B not in seen
    assert call(guarded, "GET", "/v1/admin/queues", f"{A}:admin").status == 403
    answer = call(guarded, "GET", "/v1/admin/queues", f"{A}:read {A}:admin")
    assert answer.status == 403 and "needs the scope *:read" in answer.text
    for scope in "*:read", "*:admin":
        assert B in call(guarded, "GET", "/v1/admin/queues", scope).text


def test_one_item_that_is_not_allowed_refuses_the_whole_call(guarded):
    items = [{"namespace": n, "topic": "mixed", "text": "x"} for n in (A, A, B)]
    answer = call(guarded, "POST", "/enqueue", f"{A}:write", items)
    assert answer.status == 403 and f"{B}:write" in answer.body["message"]
    assert 'scope="%s:write"' % B in answer.headers["WWW-Authenticate"]
    assert call(guarded, "GET", "/stats", f"{A}:read", namespace=A, topic="mixed").status == 404
    assert call(guarded, "POST", "/enqueue", f"{A}:write {B}:write", items).status == 200
    scope = f"{A}:write"
    held = call(guarded, "GET", "/dequeue", scope, namespace=A, topic="mixed").body
    acks = [{"namespace": A, "topic": "mixed", "id": m["id"]} for m in held]
    answer = call(guarded, "POST", "/ack", scope, acks + [{**acks[0], "namespace": B}])
    assert len(held) == 2 and answer.status == 403
    assert [r["status"] for r in call(guarded, "POST", "/ack", scope, acks).body] == [200, 200]


def test_a_lease_is_shown_with_the_name_of_the_token(guarded):
    """Unless its caller names another; and only to callers that may read."""
    here = {"namespace": A, "topic": "owned"}
    call(guarded, "POST", "/enqueue", f"{A}:write", [{**here, "text": t} for t in "ab"])
    headers = KEY.bearer(scope=f"{A}:write", sub="billing-worker")
    for more in ({}, {"owner": "web-7"}):
        guarded.call("GET", "/dequeue", headers=headers, limit=1, **here, **more)
    shown = call(guarded, "GET", "/peek", f"{A}:read", state="leased", **here).body["messages"]
    assert sorted(m["owner"] for m in shown) == ["billing-worker", "web-7"]
    assert call(guarded, "GET", "/peek", f"{A}:consume", state="leased", **here).status == 403


def test_a_transaction_needs_no_right_but_that_of_its_key(guarded):
    """The server holds the ids of transactions where no client has rights."""
    body = {"namespace": A, "key": "k", "owner": "me", "ttl_seconds": 30, "txn_id": new_txn()}
    lease = call(guarded, "POST", "/v1/acquire", f"{A}:write", body)
    assert lease.status == 200 and lease.body["txn_id"] == body["txn_id"]
    assert call(guarded, "POST", "/v1/acquire", f"{A}:write", {**body, "key": "other"}).body["error"] == "txn_conflict"
    assert call(guarded, "POST", "/v1/acquire", f"{A}:write", {**body, "namespace": ".txn"}).status == 400
    assert call(guarded, "POST", "/v1/acquire", f"{A}:write", {**body, "namespace": B}).status == 403


def test_names_are_compared_folded(guarded):
    body = [{"namespace": "Tenant-A", "topic": "t", "text": "x"}]
    assert call(guarded, "POST", "/enqueue", "TENANT-a:write", body).status == 200
    assert call(guarded, "POST", "/enqueue", "tenant:write", body).status == 403


def test_a_large_payload_of_a_refused_caller_is_not_written(folder, tmp_path):
    with Server(folder, "--auth-keys", "HS256:" + secret_file(tmp_path)) as server:
        body = [{"namespace": B, "topic": "t", "text": "x" * (3 << 20)}]
        for _ in range(3):
            assert call(server, "POST", "/enqueue", f"{A}:write", body).status == 403
        assert server.payload_files() == []
        assert call(server, "POST", "/enqueue", f"{B}:write", body).status == 200
        assert len(server.payload_files()) == 1


# --- tokens that are no good --------------------------------------------------------------

NOW = time.time()
GOOD = {"scope": "*:*"}


def parts(token):
    return token.split(".")


def unsigned(alg):
    return encode(json.dumps({"alg": alg}).encode()) + "." + parts(KEY.token(**GOOD))[1] + "."


BAD = {
    "empty": "",
    "nonsense": "nonsense",
    "none": unsigned("none"),
    "None": unsigned("None"),
    "HS256 without a signature": unsigned("HS256"),
    "another key": OTHER.token(**GOOD),
    "another algorithm": Secret(KEY.secret, 512).token(**GOOD),
    "claims of another token": ".".join([parts(KEY.token())[0], parts(KEY.token(**GOOD))[1],
                                         parts(KEY.token())[2]]),
    "cut": KEY.token(**GOOD)[:-1],
    "padded": KEY.token(**GOOD) + "=",
    "four parts": KEY.token(**GOOD) + ".x",
    "two parts": ".".join(parts(KEY.token(**GOOD))[:2]),
    "encrypted": KEY.token(**GOOD) + ".x.y",
    "expired": KEY.token(exp=int(NOW) - 60, **GOOD),
    "no end": KEY.token(exp=None, **GOOD),
    "an end that is a text": KEY.token(exp="9999999999", **GOOD),
    "not yet": KEY.token(nbf=int(NOW) + 3600, **GOOD),
    "crit": KEY.token(header={"crit": ["exp"]}, **GOOD),
    "its own key": OTHER.token(header={"jwk": OTHER.jwk(), "jku": "http://127.0.0.1:1/k",
                                       "x5u": "file:///dev/zero"}, **GOOD),
    "kid is a path": OTHER.token(header={"kid": "../../../../dev/null"}, **GOOD),
    "claims twice": KEY.sign_text('{"alg":"HS256"}',
                                  '{"exp":9999999999,"scope":"a:read","scope":"*:*"}'),
    "algorithm twice": KEY.sign_text('{"alg":"HS256","alg":"none"}',
                                     '{"exp":9999999999,"scope":"*:*"}'),
    "deep": KEY.sign_text('{"alg":"HS256"}', '{"exp":9999999999,"x":%s}' % ("[" * 900 + "]" * 900)),
    "deep header": KEY.sign_text('{"alg":"HS256","x":%s}' % ("[" * 900 + "]" * 900), "{}"),
    "large": KEY.token(padding="x" * 8000, **GOOD),
    "65 scopes": KEY.token(scope=" ".join(f"n{i}:read" for i in range(65))),
    "no JSON": KEY.sign_text('{"alg":"HS256"}', "scope=*:*"),
}


@pytest.mark.parametrize("label", BAD)
def test_a_token_that_is_no_good_is_401(guarded, label):
    """MQ-34, fault 33"""
    answer = guarded.call("GET", "/stats", headers={"Authorization": "Bearer " + BAD[label]},
                          namespace=A, topic="t")
    assert answer.status == 401 and answer.body["error"] == "unauthorized"
    if BAD[label]:
        assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]
        assert BAD[label] not in answer.text + str(answer.headers)


@pytest.mark.parametrize("field", [
    "Basic dXNlcjpwYXNz", "Token x", "Bearer", "bearer" + KEY.token(**GOOD), KEY.token(**GOOD),
    "Bearer " + KEY.token(**GOOD) + " extra", "Bearer " + KEY.token(**GOOD) + "," + KEY.token(**GOOD),
])
def test_other_credentials_are_401(guarded, field):
    answer = guarded.call("GET", "/topics", headers={"Authorization": field}, namespace=A)
    assert answer.status == 401


def test_a_token_in_the_address_is_not_looked_at(guarded):
    token = KEY.token(**GOOD)
    for name in ("access_token", "token", "authorization", "jwt"):
        answer = guarded.call("GET", "/topics", namespace=A, **{name: token})
        assert answer.status == 401 and token not in answer.text
        assert "error=" not in answer.headers["WWW-Authenticate"]


def test_the_clock_has_some_leeway(guarded):
    for claims in {"exp": int(time.time()) - 3}, {"nbf": int(time.time()) + 5}:
        assert guarded.call("GET", "/topics", headers=KEY.bearer(**GOOD, **claims),
                            namespace=A).status == 200


def test_two_authorizations_are_400(guarded):
    """A proxy may look at one of them, and this server at the other."""
    with guarded.raw() as sock:
        field = f"Authorization: Bearer {KEY.token(**GOOD)}\r\n".encode()
        sock.sendall(b"GET /topics?namespace=x HTTP/1.1\r\nHost: localhost\r\n" + field + field + b"\r\n")
        said = b""
        while chunk := sock.recv(4096):
            said += chunk
    assert said.startswith(b"HTTP/1.1 400") and b"authorization_twice" in said


@pytest.mark.parametrize("claims, status", [
    ({"iat": -60, "exp": 600}, 200),
    ({"exp": 600}, 200),
    ({"exp": 7200}, 401),
    ({"iat": 0, "exp": 7200}, 401),
    ({"iat": -86400, "exp": 60}, 401),
])
def test_a_token_may_have_a_longest_lifetime(tmp_path, claims, status):
    with Server(tmp_path / "data", "--auth-keys", "HS256:" + secret_file(tmp_path),
                "--auth-max-age", "1h", engine="memory") as server:
        now = int(time.time())
        answer = server.call("GET", "/topics", namespace=A, headers=KEY.bearer(
            **GOOD, **{name: now + after for name, after in claims.items()}))
        assert answer.status == status, answer
        if status == 401:
            assert "auth.max_age" in answer.text and "3600 seconds" in answer.text


def test_no_body_is_read_before_the_token(guarded):
    with guarded.raw() as sock:
        sock.sendall(b"POST /enqueue HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16000000\r\n\r\n")
        said = b""
        while chunk := sock.recv(4096):
            said += chunk
        assert said.startswith(b"HTTP/1.1 401") and b"connection: close" in said.lower()


def test_neither_tokens_nor_secrets_are_logged(guarded):
    token = KEY.token(**GOOD)
    assert guarded.call("GET", "/topics", headers={"Authorization": f"Bearer {token}"},
                        namespace=A).status == 200
    assert guarded.call("GET", "/topics", headers={"Authorization": f"Bearer {token}x"},
                        namespace=A).status == 401
    assert guarded.get("/topics", namespace=A, access_token=token).status == 401
    until(lambda: "request refused" in guarded.said())
    assert token[20:] not in guarded.said() and "horse" not in guarded.said()


# --- keys ---------------------------------------------------------------------------------

ALGS = ["HS256", "HS384", "HS512", "RS256", "ES256", "EdDSA"]


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")

    def make(alg, kid):
        if alg[:2] == "HS":
            return Secret((kid * 64)[:64], int(alg[2:]), kid)
        return Pair(folder, alg, kid)

    return {alg: (make(alg, f"{alg}-one"), make(alg, f"{alg}-two")) for alg in ALGS}


def test_all_algorithms_out_of_one_key_set(keys, tmp_path):
    jwks = tmp_path / "jwks.json"
    jwks.write_text(json.dumps({"keys": [
        {"kty": "RSA", "use": "enc", "n": "AQAB", "e": "AQAB"}, {"kty": "new"},
        *(key.jwk() for key, _ in keys.values())]}))
    with Server(tmp_path, "--auth-jwks", str(jwks), engine="memory") as server:
        for alg, (mine, other) in keys.items():
            assert server.call("GET", "/topics", headers=mine.bearer(**GOOD), namespace=A).status == 200, alg
            assert server.call("GET", "/topics", headers=other.bearer(**GOOD), namespace=A).status == 401
            forged = {**{"alg": alg}, "kid": mine.kid}
            assert server.call("GET", "/topics", headers=other.bearer(header=forged, **GOOD),
                               namespace=A).status == 401


@pytest.mark.parametrize("alg", ["RS256", "ES256", "EdDSA"])
def test_a_public_key_is_no_secret(keys, tmp_path, alg):
    """The classic: alg is changed to HS256, and the public key is the secret."""
    mine, _ = keys[alg]
    with open(mine.public, "rb") as f:
        pem = f.read()
    with Server(tmp_path, "--auth-keys", f"{alg}:{mine.public}", engine="memory") as server:
        assert server.call("GET", "/topics", headers=mine.bearer(**GOOD), namespace=A).status == 200
        for bits in (256, 384, 512):
            for secret in (pem, pem.strip(), pem + b"\n"):
                assert server.call("GET", "/topics", headers=Secret(secret, bits).bearer(**GOOD),
                                   namespace=A).status == 401


def test_audience_and_issuer(tmp_path):
    with Server(tmp_path, "--auth-keys", "HS256:" + secret_file(tmp_path), "--auth-audience", "sluice",
                "--auth-issuer", "https://issuer.example", engine="memory") as server:
        def status(**claims):
            return server.call("GET", "/topics", headers=KEY.bearer(**GOOD, **claims),
                               namespace=A).status

        assert status(aud="sluice", iss="https://issuer.example") == 200
        assert status(aud=["x", "sluice"], iss="https://issuer.example") == 200
        assert status(aud="other", iss="https://issuer.example") == 401
        assert status(aud="sluice", iss="https://issuer.example/") == 401
        assert status(iss="https://issuer.example") == 401
        assert status(aud="sluice") == 401


@pytest.mark.parametrize("options, says", [
    (["--auth-keys", "HS256:/nowhere"], "/nowhere: No such file"),
    (["--auth-keys", "HS256:{short}"], "the secret has 7 bytes, HS256 needs at least 32"),
    (["--auth-keys", "RS256:{secret}"], "expected an RSA key"),
    (["--auth-keys", "{secret}"], "expected [KID@]ALG:FILE"),
    (["--auth-jwks", "{secret}"], 'expected {"keys":[...]}'),
    (["--auth-secret-file", "{short}"], "auth.secret: the secret has 7 bytes"),
])
def test_a_key_that_will_not_do_is_named_and_not_shown(tmp_path, options, says):
    (tmp_path / "short").write_text("hunter2\n")
    names = {"short": tmp_path / "short", "secret": secret_file(tmp_path)}
    out = subprocess.run([SLUICED, "--engine", "memory", "--listen", "127.0.0.1:0",
                          *(o if "[" in o else o.format(**names) for o in options)],
                         capture_output=True, text=True, timeout=60)
    assert out.returncode == 2 and says in out.stderr, out.stderr
    assert "hunter2" not in out.stderr and "horse" not in out.stderr


def test_a_secret_in_the_environment(tmp_path, monkeypatch):
    """X-04"""
    monkeypatch.setenv("SLUICE_AUTH_SECRET_FILE", secret_file(tmp_path))
    with Server(tmp_path, engine="memory") as server:
        assert server.get("/topics", namespace=A).status == 401
        assert call(server, "GET", "/topics", f"{A}:read", namespace=A).status == 200


# --- reload -------------------------------------------------------------------------------


class Reloading:
    def __init__(self, server, config):
        self.server, self.config = server, config

    def __call__(self, text):
        before = len(self.server.errors)
        self.config.write_text(text)
        self.server.process.send_signal(signal.SIGHUP)
        said = until(lambda: [e for e in self.server.errors[before:]
                              if "event=reloaded" in e or "reload failed" in e])
        return "".join(self.server.errors[before:]) if said else ""

    def status(self, key):
        return self.server.call("GET", "/topics", headers=key.bearer(**GOOD), namespace=A).status


@pytest.fixture
def reloading(tmp_path):
    one, two = secret_file(tmp_path, KEY, "one"), secret_file(tmp_path, OTHER, "two")
    config = tmp_path / "sluice.yaml"
    config.write_text(f"auth.keys: HS256:{one}\n")
    with Server(tmp_path / "data", "--config", str(config), engine="memory") as server:
        yield Reloading(server, config), one, two


def test_keys_are_rotated_by_reloads(reloading):
    reload, one, two = reloading
    assert (reload.status(KEY), reload.status(OTHER)) == (200, 401)
    reload(f"auth.keys: [HS256:{one}, HS256:{two}]\n")
    assert (reload.status(KEY), reload.status(OTHER)) == (200, 200)
    reload(f"auth.keys: HS256:{two}\n")
    assert (reload.status(KEY), reload.status(OTHER)) == (401, 200)


def test_a_reload_reads_the_same_file_again(reloading):
    reload, one, _ = reloading
    assert (reload.status(KEY), reload.status(OTHER)) == (200, 401)
    with open(one, "wb") as f:
        f.write(OTHER.secret)
    assert reload.status(KEY) == 200
    reload(f"auth.keys: HS256:{one}\n")
    assert (reload.status(KEY), reload.status(OTHER)) == (401, 200)


def test_a_reload_that_will_not_do_keeps_the_keys(reloading):
    """Fault 43"""
    reload, one, two = reloading
    assert "/nowhere" in reload("auth.keys: HS256:/nowhere\n")
    assert "the last key is gone" in reload("auth.keys: []\n")
    assert "reload failed" in reload(f"auth.keys: HS256:{two}\nauth.leeway: 1 year\n")
    assert (reload.status(KEY), reload.status(OTHER)) == (200, 401)
    assert reload.server.get("/topics", namespace=A).status == 401


def test_a_reload_may_bring_the_first_key(tmp_path):
    config = tmp_path / "sluice.yaml"
    config.write_text("")
    with Server(tmp_path / "data", "--config", str(config), engine="memory") as server:
        assert server.get("/topics", namespace=A).status == 200
        Reloading(server, config)(f"auth.keys: HS256:{secret_file(tmp_path)}\n")
        assert server.get("/topics", namespace=A).status == 401
        assert call(server, "GET", "/topics", "*:*", namespace=A).status == 200


# --- without keys -------------------------------------------------------------------------


@pytest.mark.parametrize("headers, status", [
    ({}, 200),
    ({"Host": "localhost"}, 200),
    ({"Host": "[::1]:80"}, 200),
    ({"Host": "queue.example:7171"}, 200),
    ({"Sec-Fetch-Site": "none"}, 200),
    ({"Authorization": "Bearer nonsense"}, 200),
    ({"Host": "evil.example"}, 403),
    ({"Host": "127.0.0.1.evil.example"}, 403),
    ({"Host": "[::1].evil.com"}, 403),
    ({"Host": "[::1].evil.com:80"}, 403),
    ({"Origin": "https://evil.example"}, 403),
    ({"Origin": "http://localhost:1"}, 403),
    ({"Origin": "null"}, 403),
    ({"Sec-Fetch-Site": "cross-site"}, 403),
    ({"Sec-Fetch-Site": "same-site"}, 403),
    ({"Origin": "http://evil.example", "Host": "evil.example", "Sec-Fetch-Site": "same-origin"}, 403),
])
def test_web_pages_are_refused_where_no_token_is_asked_for(open_server, headers, status):
    for path in "/topics", "/v1/admin/config", "/metrics":
        answer = open_server.call("GET", path, headers=headers,
                                  **({"namespace": A} if path == "/topics" else {}))
        assert answer.status == status, (path, answer)
    post = open_server.call("POST", "/enqueue", [{"namespace": A, "topic": "t", "text": "x"}],
                            headers=headers)
    assert post.status == status
    assert open_server.call("GET", "/healthz", headers=headers).status == 200


# Every route that changes something or tells something, called by a page of another site.
PAGES = {
    "by Origin": {"Origin": "https://evil.example"},
    "by Sec-Fetch-Site": {"Sec-Fetch-Site": "cross-site"},
    "by Host": {"Host": "evil.example"},
}


@pytest.mark.parametrize("page", PAGES)
def test_no_route_serves_a_page_of_another_site(open_server, page):
    for method, path in ROUTES:
        need, query, body = in_namespace(method, path, A)
        answer = call(open_server, method, path, None, body, {**NOBODY, **PAGES[page]}, **query)
        assert answer.status in ((200, 302) if need == "nothing" else (403,)), (path, answer)


BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:60.0) Gecko/20100101 Firefox/60.0"


@pytest.mark.parametrize("headers, status", [
    ({}, 200),
    ({"User-Agent": "curl/8.5.0"}, 200),
    ({"User-Agent": BROWSER, "Sec-Fetch-Site": "none"}, 200),
    ({"User-Agent": BROWSER}, 403),  # <img referrerpolicy="no-referrer">
    ({"User-Agent": BROWSER, "Referer": "http://evil.example/page"}, 403),
    ({"Referer": "http://evil.example/page"}, 403),
])
def test_a_browser_without_sec_fetch_does_not_dequeue_by_get(open_server, headers, status):
    """Browsers send Sec-Fetch-Site to https and loopback only, old ones nowhere."""
    open_server.call("POST", "/enqueue", [{"namespace": A, "topic": "img", "text": "x"}])
    answer = open_server.call("GET", "/dequeue", headers=headers, namespace=A, topic="img")
    assert answer.status == status, answer
    assert open_server.call("GET", "/stats", headers=headers, namespace=A, topic="img").status == 200


@pytest.fixture(scope="module")
def open_server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("open"), "--auth-hosts", "queue.example", engine="memory") as server:
        yield server


def test_a_host_that_is_not_ours_is_explained(open_server, guarded, tmp_path):
    """A user of --insecure calls the server by the name of the machine."""
    with Server(tmp_path, "--insecure", "--listen", "0.0.0.0:0", engine="memory") as insecure:
        for server in open_server, insecure:
            answer = server.call("GET", "/topics", namespace=A, headers={"Host": "big-machine:7171"})
            assert answer.status == 403
            said = answer.body["message"]
            assert 'Host "big-machine" is not a name of this server: add it to auth.hosts' in said
            assert "--auth-hosts NAME" in said and "use a token" not in said and said.endswith("any other")
            page = server.call("GET", "/", headers={"Host": "big-machine", "Accept": "text/html"})
            assert page.status == 200 and "auth.hosts" in page.text and "big-machine" not in page.text
            page = server.call("GET", "/", headers={"Accept": "text/html"})
            assert page.status == 302 and page.headers["Location"] == "console/"


def test_a_page_of_our_own_may_call(open_server):
    host = "localhost:%d" % open_server.address[1]
    answer = open_server.call("GET", "/topics", namespace=A, headers={
        "Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"})
    assert answer.status == 200


def test_a_preflight_gets_no_permission(open_server, guarded):
    for server in open_server, guarded:
        answer = server.call("OPTIONS", "/enqueue", headers={
            "Origin": "https://evil.example", "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization"})
        assert answer.status in (403, 405)
        assert not any(h.lower().startswith("access-control") for h in answer.headers)


def ask_unix(path, headers=""):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(60)
        sock.connect(str(path))
        sock.sendall(f"GET /topics?namespace={A} HTTP/1.1\r\nHost: any\r\n{headers}"
                     "Connection: close\r\n\r\n".encode())
        said = b""
        while chunk := sock.recv(4096):
            said += chunk
        return int(said.split()[1])


def test_unix_sockets_need_no_token_until_there_are_keys(tmp_path):
    path = tmp_path / "s"
    with Server(tmp_path / "data", "--listen", f"unix:{path}", engine="memory"):
        assert ask_unix(path) == 200
        assert ask_unix(path, "Origin: https://evil.example\r\n") == 403
    with Server(tmp_path / "data", "--listen", f"unix:{path}", "--auth-keys",
                "HS256:" + secret_file(tmp_path), engine="memory"):
        assert ask_unix(path) == 401
        token = KEY.token(**GOOD)
        assert ask_unix(path, f"Authorization: Bearer {token}\r\n") == 200


def everywhere(server):
    """The port of the address that is reachable from everywhere."""
    said = until(lambda: re.search(r"http://(?:0\.0\.0\.0|\[::\]):(\d+)", server.said()))
    return int(said[1])


def test_beyond_loopback_there_must_be_keys(tmp_path):
    with pytest.raises(Refused, match="without authentication; set auth.keys"):
        Server(tmp_path, "--listen", "0.0.0.0:0", engine="memory")
    with Server(tmp_path, "--listen", "0.0.0.0:0", "--auth-keys", "HS256:" + secret_file(tmp_path),
                engine="memory") as server:
        everywhere(server)


@pytest.mark.parametrize("mode, near, far", [("local", 200, 401), ("open", 200, 200),
                                             ("token", 401, 401), (None, 401, 401)])
def test_metrics_have_a_setting_of_their_own(tmp_path, mode, near, far):
    """Without it they ask for a token where others do."""
    setting = ["--auth-metrics", mode] if mode else []
    with Server(tmp_path, "--listen", "0.0.0.0:0", "--auth-keys", "HS256:" + secret_file(tmp_path),
                *setting, engine="memory") as server:
        home, port = server.address, everywhere(server)
        for address, status in (home, near), (("127.0.0.1", port), far):
            server.close()
            server.address = address
            assert server.get("/metrics").status == status
            assert call(server, "GET", "/metrics", "*:read").status == 200
            if status == 401:
                assert call(server, "GET", "/metrics", f"{A}:*").status == 403
