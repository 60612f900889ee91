"""Tokens of codeQ: producers, workers and admins of a tenant, by the claims that codeQ reads. docs/codeq.md."""
import pytest

from codeq import Codeq
from served import QUICK, Server
from tokens import Secret

KEY = Secret("correct-horse-battery-staple-0123456789")
SCOPES = "codeq:claim codeq:heartbeat codeq:abandon codeq:nack codeq:result codeq:subscribe"
WORK = {"eventTypes": ["*"], "scope": SCOPES}


def key_in(folder):
    (folder / "secret").write_bytes(KEY.secret + b"\n")
    return "--auth-keys", f"HS256:{folder}/secret"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("codeq")
    with Server(folder / "data", *key_in(folder), "--codeq-tokens", engine=QUICK) as server:
        yield server


def client(server, tenant="acme", types=("*",), scope=SCOPES, worker="w1", **claims):
    return Codeq(server, producer=KEY.token(sub="web", tid=tenant, **claims),
                 worker=KEY.token(sub=worker, tid=tenant, eventTypes=list(types), scope=scope),
                 admin=KEY.token(sub="ops", tid=tenant, scope="codeq:admin"))


def test_a_worker_without_commands_has_no_subscription(server):
    """An empty list is not all commands."""
    answer = client(server, types=()).call("worker", "POST", "/workers/subscriptions", {"callbackUrl": "http://192.0.2.1/"})
    assert (answer.status, answer.body["error"]) == (403, "the token has no eventTypes")


# Every action: who may use it, and a call of it.
ID = "0190163d-0000-7000-8000-000000000000"
ACTIONS = {
    ("POST", "/tasks"): ("producer", {"command": "mail", "payload": 1}),
    ("POST", "/tasks/batch"): ("producer", {"tasks": [{"command": "mail", "payload": 1}]}),
    ("POST", "/tasks/claim"): ("codeq:claim", {"commands": ["mail"]}),
    ("POST", "/tasks/claim/batch"): ("codeq:claim", {"commands": ["mail"], "count": 1}),
    ("POST", "/tasks/batch/results"): ("codeq:result", {"results": [{"taskId": ID, "status": "FAILED", "error": "x"}]}),
    ("POST", f"/tasks/{ID}/heartbeat"): ("codeq:heartbeat", {}),
    ("POST", f"/tasks/{ID}/abandon"): ("codeq:abandon", {}),
    ("POST", f"/tasks/{ID}/nack"): ("codeq:nack", {}),
    ("POST", f"/tasks/{ID}/result"): ("codeq:result", {"status": "FAILED", "error": "x"}),
    ("GET", f"/tasks/{ID}"): ("any", None),
    ("GET", f"/tasks/{ID}/result"): ("any", None),
    ("GET", "/raft/status"): ("any", None),
    ("GET", "/admin/queues"): ("admin", None),
    ("GET", "/admin/queues/mail"): ("admin", None),
    ("POST", "/admin/tasks/cleanup"): ("admin", {}),
    ("PUT", "/admin/topics/mail"): ("admin", {}),
    ("GET", "/admin/topics/mail"): ("admin", None),
    ("DELETE", "/admin/topics/mail"): ("admin", None),
    ("POST", "/workers/subscriptions"): ("codeq:subscribe", {"callbackUrl": "http://192.0.2.1/", "ttlSeconds": 1}),
    ("POST", f"/workers/subscriptions/{ID}/heartbeat"): ("codeq:subscribe", {}),
    ("GET", "/stream"): ("any", None),
}
ROLES = {
    "none": (None, set()),
    "producer": ({}, {"producer", "any"}),
    "worker-without-scopes": ({"eventTypes": ["*"]}, {"any"}),
    **{f"worker with {s}": ({"eventTypes": ["*"], "scope": s}, {s, "any"}) for s in SCOPES.split()},
    "admin by scope": ({"scope": "codeq:admin"}, {"producer", "admin", "any"}),
    "admin by role": ({"role": "ADMIN"}, {"producer", "admin", "any"}),
    "another role": ({"role": "USER"}, {"producer", "any"}),
    "admin who works": ({"role": "ADMIN", "eventTypes": ["*"], "scope": "codeq:claim"}, {"codeq:claim", "admin", "any"}),
}


def test_the_table_has_every_route(server):
    paths = server.get("/openapi.json").body["paths"]
    known = {(m, p.replace(ID, "{id}").replace("/mail", "/{id}")) for m, p in ACTIONS}
    assert known == {(m.upper(), p[len("/v1/codeq"):]) for p, methods in paths.items() for m in methods
                     if p.startswith("/v1/codeq/")}


@pytest.mark.parametrize("role", ROLES)
def test_every_action_and_role(server, role):
    claims, may = ROLES[role]
    token = None if claims is None else KEY.token(sub="someone", tid="acme", **claims)
    codeq = Codeq(server, producer=token)
    for (method, path), (need, body) in ACTIONS.items():
        answer = codeq.call("producer", method, path, body, headers={"X-Role": "ADMIN"})
        if token is None:
            assert answer.status == 401, (path, answer)
        elif need in may:
            assert answer.status not in (401, 403), (path, answer)
        else:
            assert answer.status == (401 if need == "admin" else 403), (path, answer)
            assert list(answer.body) == ["error"]


def test_a_tenant_sees_nothing_of_others(server):
    mine, other = client(server), client(server, "other")
    made = mine.create(command="secret")
    assert made["tenantId"] == "acme"
    assert other.good("producer", "GET", f"/tasks/{made['id']}", status=404)
    assert other.claim("secret") is None
    task = mine.claim("secret")
    for what in ("heartbeat", "nack", "abandon"):
        assert other.settle(what, task, status=404) == {"error": "not-found"}
    assert "secret:ready" not in other.good("admin", "GET", "/admin/queues")
    assert "secret:inProgress" in mine.good("admin", "GET", "/admin/queues")
    mine.complete(task)
    assert other.good("producer", "GET", f"/tasks/{made['id']}/result", status=404)


def test_the_claim_of_the_tenant(server):
    for claims, tenant in (({"tid": "acme"}, "acme"), ({"tenantId": "t2"}, "t2"), ({"tenant_id": "t3"}, "t3"),
                           ({"organizationId": "t4"}, "t4"), ({"organization_id": "t5"}, "t5"),
                           ({"tid": "t6", "tenantId": "t6"}, "t6"), ({}, "subject-1"), ({"tid": 7}, "subject-1")):
        codeq = Codeq(server, producer=KEY.token(sub="subject-1", **claims))
        assert codeq.create(command="mail")["tenantId"] == tenant, claims
    for claims in ({"tid": "a1", "tenantId": "a2"}, {"tid": "A"}, {"tid": "x"}, {"tid": "1a"}, {"tid": "a" * 64},
                   {"tid": "a_b"}, {"sub": "Not A Tenant"}):
        codeq = Codeq(server, producer=KEY.token(**{"sub": "subject", **claims}))
        assert codeq.call("producer", "POST", "/tasks", {"command": "a", "payload": 1}).status == 403, claims


def test_a_worker_claims_its_event_types_alone(server):
    codeq = client(server, types=["FAX", "sms"])
    codeq.create(command="other")
    codeq.create(command="Sms")
    answer = codeq.call("worker", "POST", "/tasks/claim", {"commands": ["fax", "other"]})
    assert answer.status == 403 and "other" in answer.body["error"]
    assert codeq.claim()["command"] == "Sms"  # the command of its token
    assert client(server, types=[]).call("worker", "POST", "/tasks/claim", {}).status == 400


def test_only_the_owner_settles(server):
    first, second = client(server, worker="w1"), client(server, worker="w2")
    first.create(command="owned")
    task = first.claim("owned")
    assert task["workerId"] == "w1"
    for what, body in (("heartbeat", {}), ("nack", {}), ("abandon", {}), ("result", {"status": "FAILED", "error": "x"})):
        assert second.settle(what, task, body, status=403) == {"error": "not-owner"}
    batch = second.good("worker", "POST", "/tasks/batch/results",
                        {"results": [{"taskId": task["id"], "status": "FAILED", "error": "x"}]})
    assert batch["results"] == [{"taskId": task["id"], "error": "not-owner"}]
    first.complete(task)


def test_other_dialects_do_not_know_these_tokens(server):
    """The event types of a worker bind it; another dialect would not ask for them."""
    codeq = client(server)
    for token in codeq.tokens.values():
        headers = {"Authorization": f"Bearer {token}"}
        for method, path, body in (("POST", "/enqueue", {"namespace": "acme", "queue": "q", "text": "x"}),
                                   ("POST", "/dequeue", {"namespace": "acme", "queue": "q"}),
                                   ("GET", "/stats?namespace=acme&queue=q", None),
                                   ("GET", "/stats?namespace=codeq&queue=q", None)):
            assert server.call(method, path, body, headers=headers).status == 403
    ops = {"Authorization": f"Bearer {codeq.tokens['admin']}"}
    answer = server.call("POST", "/dlq/delete", {"namespace": "codeq", "queue": "q", "limit": 1}, headers=ops)
    assert answer.status == 403  # codeq:admin is no right in a namespace `codeq`


def test_a_token_of_sluice_has_its_namespace(server):
    codeq = Codeq(server, producer=KEY.token(scope="jobs:write"), worker=KEY.token(scope="jobs:consume"))
    assert codeq.create(command="mail")["tenantId"] == "jobs"
    codeq.complete(codeq.claim("mail"))
    assert codeq.call("worker", "POST", "/tasks", {"command": "mail", "payload": 1}).status == 403
    assert codeq.call("producer", "GET", "/admin/queues").status == 403


def test_without_the_setting_the_claims_mean_nothing(tmp_path):
    with Server(tmp_path / "data", *key_in(tmp_path), engine=QUICK) as server:
        codeq = client(server)
        assert codeq.call("producer", "POST", "/tasks", {"command": "a", "payload": 1}).status == 403
        assert codeq.call("worker", "POST", "/tasks/claim", {"commands": ["a"]}).status == 403
        role = Codeq(server, admin=KEY.token(sub="ops", tid="acme", role="ADMIN"))
        assert role.call("admin", "GET", "/admin/queues").status == 403
