"""What bodies hide from callers who may only look (docs/security.md)."""
import base64
import json
from urllib.parse import urlencode

import pytest

from served import LOG, QUICK, Node, Refused, Server
from tokens import Secret

KEY = b"0123456789abcdef0123456789abcdef"
SECRET = "hunter2"  # every value that is hidden contains it
BODY = {"user": {"name": "ann", "password": SECRET}, "card": [{"number": f"4111-{SECRET}", "type": "visa"}], "api": {"token": {"old": SECRET}},
        "nested": json.dumps({"password": SECRET}), "n": 7}


class Masked:
    """A server with masks, and its callers: root, a viewer, and a worker."""

    def __init__(self, folder, *options, engine=LOG):
        key = folder / "key"
        key.write_bytes(KEY)
        self.server = Server(folder / "data", "--auth-keys", f"HS256:{key}", "--mask", "password", "--mask", "card.number,*.token", *options, engine=engine)
        self.root, self.viewer, self.worker = (Secret(KEY).bearer(scope=scope) for scope in ("*:*", "test:read", "test:write test:read"))

    def __enter__(self):
        self.server.__enter__()
        return self

    def __exit__(self, *why):
        self.server.__exit__(*why)

    def ask(self, who, method, path, sent=None, **params):
        return self.server.call(method, f"{path}?{urlencode(params)}" if params else path, sent, who)

    def put(self, **message):
        answer = self.ask(self.root, "POST", "/enqueue", [self.server.here(**message)])
        assert answer.status == 200, answer
        return answer.body[0]

    def find(self, who, **conditions):
        """The messages that match, by /v1/admin/messages."""
        answer = self.ask(who, "GET", "/v1/admin/messages", **self.server.here(**conditions))
        assert answer.status == 200, answer
        return answer.body["messages"]


@pytest.fixture
def masked(tmp_path):
    with Masked(tmp_path) as server:
        yield server


def has_secret(text):
    """Also in base64, at each of its places."""
    return SECRET in text or any(base64.b64encode(b"x" * n + SECRET.encode()).decode()[4 if n else 0:-4] in text for n in range(3))


def body_of(message):
    return json.loads(base64.b64decode(message["payload"]))


def test_a_viewer_sees_masked_values_and_who_may_take_the_message_sees_all(masked):
    masked.put(json=BODY, attributes={"token": "t", "card": {"number": SECRET}})
    message, = masked.find(masked.viewer)
    assert message["masked"] is True
    assert body_of(message) == {"user": {"name": "ann", "password": "***"}, "card": [{"number": "***", "type": "visa"}], "api": {"token": "***"},
                                "nested": "***", "n": 7}
    assert message["attributes"] == {"token": "t", "card": {"number": "***"}}
    for who in masked.root, masked.worker:
        message, = masked.find(who)
        assert body_of(message) == BODY and "masked" not in message
        message, = masked.find(who, mask="true")
        assert body_of(message)["user"]["password"] == "***" and message["masked"] is True


def test_what_hides_nothing_is_not_masked(masked):
    masked.put(json={"n": 1.50, "password_hint": "x"})
    masked.put(text="hello")
    assert [m.get("masked") for m in masked.find(masked.viewer)] == [None, None]


@pytest.mark.parametrize("body", ["password=hunter2", '{"password":"hunter2"', '{"password":"hunter2"} {"password":"hunter2"}', "password: hunter2\n"])
def test_a_body_that_is_no_json_is_hidden_if_it_has_a_name(masked, body):
    masked.put(text=body)
    message, = masked.find(masked.viewer)
    assert base64.b64decode(message["payload"]) == b"***" and message["masked"] is True
    assert masked.find(masked.viewer, text=SECRET) == [] and len(masked.find(masked.root, text=SECRET)) == 1


def test_a_search_is_no_oracle_for_what_is_hidden(masked):
    masked.put(json=BODY, attributes={"card": {"number": SECRET}, "x": {"token": 1}})
    die = masked.put(json=BODY, max_attempts=1)
    conditions = [{"text": SECRET}, {"text": "hunt"}, {"body": f"user.password={SECRET}"}, {"body": f"/user/password={SECRET}"},
                  {"body": f"*.*={SECRET}"}, {"body": f"/.../old={SECRET}"}, {"body": f"card.number=4111-{SECRET}"}, {"body": f"card.0.number=4111-{SECRET}"},
                  {"body": f"api.token.old={SECRET}"}, {"body": f"nested={json.dumps({'password': SECRET})}"}, {"attribute": f"card={SECRET}"}]
    for condition in conditions:
        assert masked.find(masked.viewer, **condition) == [], condition
        for path in "search", "dlq", "dlq/groups":
            params = {"namespace": "test", **condition} if path == "search" else masked.server.here(**condition)
            answer = masked.ask(masked.viewer, "GET", f"/v1/admin/{path}", **params)
            assert answer.status == 200 and not answer.body.get("messages") and not answer.body.get("groups"), (path, condition, answer)
    for condition in conditions[:-1]:
        assert {m["id"] for m in masked.find(masked.root, **condition)} >= {die}, condition
        assert len(masked.find(masked.root, mask="true", **condition)) == 2, condition  # who may see it may search it
    assert len(masked.find(masked.viewer, body="user.name=ann")) == 2
    assert len(masked.find(masked.viewer, text='"name"')) == 2


def test_a_body_of_a_file_is_neither_shown_nor_searched(masked):
    id_ = masked.put(json={"password": SECRET, "pad": "x" * (3 << 20)})
    assert masked.find(masked.viewer, text=SECRET) == [] and len(masked.find(masked.root, text=SECRET)) == 1
    shown = masked.ask(masked.viewer, "GET", "/peek", **masked.server.here(id=id_))
    assert shown.status == 200 and "payload" not in shown.body["messages"][0] and not has_secret(shown.text)
    assert has_secret(base64.b64decode(masked.ask(masked.root, "GET", "/peek", **masked.server.here(id=id_)).body["messages"][0]["payload"][:64]).decode())


def fill(masked):
    """A secret wherever a body may be. Returns what names it in calls."""
    server, root = masked.server, masked.root
    ids = [masked.put(json=BODY, key="k"), masked.put(json=BODY, key="k"), masked.put(json=BODY, delay="1h"), masked.put(text=f"password={SECRET}")]
    dead = masked.put(json=BODY, max_attempts=1, kind="dying")
    taken = masked.ask(root, "POST", "/dequeue", server.here(kinds="dying")).body[0]
    masked.ask(root, "POST", "/nack", server.here(id=dead, receipt=taken["receipt"], error="failed"))
    done = masked.put(json=BODY, keep_result="1h", kind="done")
    taken = masked.ask(root, "POST", "/dequeue", server.here(kinds="done")).body[0]
    assert masked.ask(root, "POST", "/ack", {"receipt": taken["receipt"], "result": {"password": SECRET}}).status == 200
    schedule = {"namespace": "test", "name": "nightly", "when": "0 2 * * *", "message": {"queue": "mail", "json": BODY}}
    assert masked.ask(root, "PUT", "/v1/admin/schedule", schedule).status == 200
    packed = {**schedule, "name": "packed", "message": {"queue": "mail", "payload": base64.b64encode(json.dumps(BODY).encode()).decode()}}
    assert masked.ask(root, "PUT", "/v1/admin/schedule", packed).status == 200
    held = masked.ask(root, "POST", "/v1/acquire", {"namespace": "test", "key": "doc", "owner": "a", "ttl_seconds": 60}).body
    lease = {**root, "X-Lease-ID": held["lease_id"], "X-Txn-ID": held["txn_id"], "X-Fencing-Token": str(held["fencing_token"])}
    assert server.call("POST", "/v1/update?namespace=test&key=doc", json.dumps(BODY), lease).status == 200
    assert server.call("POST", "/v1/release", {"namespace": "test", "key": "doc", "lease_id": held["lease_id"], "txn_id": held["txn_id"]}, lease).status == 200
    task = masked.ask(root, "POST", "/v1/codeq/tasks", {"command": "mail", "payload": BODY})
    return {"ids": [*ids, dead], "done": done, "task": task.body.get("id") if task.status < 300 else None}


def test_an_attacker_with_the_right_read_gets_no_secret_by_any_get(masked):
    """Every route of the OpenAPI document, with what names a message, and those that read by POST."""
    known = fill(masked)
    document = masked.ask(masked.viewer, "GET", "/openapi.json").body
    paths = [path for path, calls in document["paths"].items() if "get" in calls and "{" not in path and path != "/v1/admin/live"]
    common = {"namespace": "test", "queue": "mail", "topic": "mail", "state": "all", "key": "k", "name": "nightly", "public": "1", "wait": "0", "as": "json", "order": "messages"}
    answers, served = 0, set()
    for path in paths:
        parameters = document["paths"][path]["get"].get("parameters", [])
        names = [p["name"] if "name" in p else document["components"]["parameters"][p["$ref"].split("/")[-1]]["name"] for p in parameters]
        for id_ in [*known["ids"], known["done"]]:
            for drop in ([], ["as"], ["state"], ["key"], ["id"], ["id", "state"], ["id", "state", "key", "as"]):
                for name in "nightly", "packed":
                    params = {n: v for n, v in {**common, "name": name, "id": id_}.items() if n in names and n not in drop}
                    answer = masked.ask(masked.viewer, "GET", path, **params)
                    assert not has_secret(answer.text), (path, params, answer)
                    answers += answer.status == 200
                    served |= {path} if answer.status == 200 else set()
    assert answers > 50 and served >= {"/peek", "/dlq", "/result", "/v1/admin/messages", "/v1/admin/message", "/v1/admin/dlq", "/v1/admin/dlq/groups", "/v1/admin/schedule"}
    more = [("POST", "/v1/get?namespace=test&key=doc&public=1", None), ("GET", f"/v1/codeq/tasks/{known['task']}", None), ("GET", f"/v1/codeq/tasks/{known['ids'][0]}", None),
            ("GET", f"/v1/codeq/tasks/{known['task']}/result?waitSeconds=0", None),
            ("POST", "/v1/query", {"namespace": "test", "return": "documents", "limit": 100}),
            ("POST", "/v1/query", {"namespace": "test", "return": "keys", "limit": 100, "selector": {"eq": {"field": "/user/name", "value": "ann"}}})]
    for method, path, body in more:
        answer = masked.server.call(method, path, body, masked.viewer)
        assert not has_secret(answer.text), (path, answer)
    assert has_secret(masked.server.call("GET", f"/v1/codeq/tasks/{known['task']}", None, masked.root).text)
    assert '"***"' in masked.server.call("POST", "/v1/get?namespace=test&key=doc&public=1", None, masked.viewer).text
    oracle = {"namespace": "test", "limit": 100, "selector": {"eq": {"field": "/user/password", "value": SECRET}}}
    assert masked.server.call("POST", "/v1/query", oracle, masked.viewer).body["keys"] == []
    assert masked.server.call("POST", "/v1/query", oracle, masked.root).body["keys"] == ["doc"]
    assert not has_secret(masked.server.said())


def test_a_reload_changes_the_masks(tmp_path):
    (tmp_path / "key").write_bytes(KEY)
    text = f"auth:\n  keys: HS256:{tmp_path}/key\nmask: [{{}}]\n"
    viewer, root = (Secret(KEY).bearer(scope=scope) for scope in ("*:read", "*:*"))
    with Node(tmp_path, text.format("password")) as server:
        assert server.call("POST", "/enqueue", [server.here(json={"password": 1, "pin": 2})], root).status == 200
        def seen():
            return body_of(server.call("GET", f"/peek?{urlencode(server.here())}", None, viewer).body["messages"][0])

        assert seen() == {"password": "***", "pin": 2}
        server.reload(text.format("pin"))
        assert seen() == {"password": 1, "pin": "***"}
        server.reload(text.format("a..b"), "invalid mask")
        assert seen() == {"password": 1, "pin": "***"}


def test_invalid_masks_are_refused_at_the_start(tmp_path):
    with pytest.raises(Refused) as refused:
        Server(tmp_path / "data", "--mask", "card..number", engine=QUICK)
    assert "invalid mask: \"card..number\"" in str(refused.value)


def test_without_keys_everybody_sees_all(server):
    server.enqueue({"json": {"password": "x"}})
    assert body_of(server.peek()[0]) == {"password": "x"}
