"""Locks and state as a lockd client asks for them, standard library alone.

    lock = acquire(server, "orders")
    lock.update({"n": 1})
    lock.release()
"""
import http.client
import json

from served import START, Answer


class Lock:
    """What a holder knows: its lease. Every call answers an Answer."""

    def __init__(self, server, body):
        self.server = server
        self.body = body
        self.namespace = body["namespace"]
        self.key = body["key"]
        self.lease = body["lease_id"]
        self.txn = body["txn_id"]
        self.token = body["fencing_token"]

    def fields(self, **more):
        """Header fields of the holder; None leaves one out."""
        fields = {"X-Lease-ID": self.lease, "X-Txn-ID": self.txn,
                  "X-Fencing-Token": str(self.token)}
        fields.update({name.replace("_", "-"): value for name, value in more.items()})
        return {name: str(value) for name, value in fields.items() if value is not None}

    def call(self, method, path, body=None, params=None, **fields):
        return self.server.call(method, path, body, self.fields(**fields),
                                key=self.key, namespace=self.namespace, **(params or {}))

    def get(self, **fields):
        return self.call("GET", "/v1/get", **fields)

    def update(self, body, **fields):
        return self.call("POST", "/v1/update", body, **fields)

    def mutate(self, *mutations, **fields):
        return self.call("POST", "/v1/mutate", {"mutations": mutations}, **fields)

    def remove(self, **fields):
        return self.call("POST", "/v1/remove", **fields)

    def hide(self, hidden=True, **fields):
        return self.call("POST", "/v1/metadata", {"query_hidden": hidden}, **fields)

    def attach(self, name, body, params=None, **fields):
        return self.call("POST", "/v1/attachments", body, {"name": name, **(params or {})}, **fields)

    def about(self, **more):
        body = {"namespace": self.namespace, "key": self.key, "lease_id": self.lease,
                "txn_id": self.txn, **more}
        return {name: value for name, value in body.items() if value is not None}

    def keepalive(self, ttl=30, token=None, **more):
        return self.server.call("POST", "/v1/keepalive", self.about(ttl_seconds=ttl, **more),
                                {"X-Fencing-Token": str(token or self.token)})

    def release(self, token=None, **more):
        return self.server.call("POST", "/v1/release", self.about(**more),
                                {"X-Fencing-Token": str(token or self.token)})


def ask(server, key, ttl=30, block=-1, owner="me", **more):
    return server.post("/v1/acquire", {
        "namespace": server.namespace, "key": key, "ttl_seconds": ttl, "owner": owner,
        "block_seconds": block, **more})


def acquire(server, key, **more):
    answer = ask(server, key, **more)
    assert answer.status == 200, answer
    return Lock(server, answer.body)


def public(server, key):
    return server.get("/v1/get", key=key, namespace=server.namespace, public="1")


def describe(server, key, lease=None):
    headers = {"X-Lease-ID": lease} if lease else {}
    answer = server.call("GET", "/v1/describe", headers=headers, key=key, namespace=server.namespace)
    assert answer.status == 200, answer
    return answer.body


def commit(server, key, body):
    """The state of a key is this now; its version."""
    lock = acquire(server, key, block=10)
    answer = lock.update(body)
    assert answer.status == 200, answer
    assert lock.release().body == {"released": True}
    return answer.body["new_version"]


def refused(answer, status, code):
    assert (answer.status, answer.body["error"]) == (status, code), answer
    assert answer.text.endswith("}\n") and answer.headers["X-Correlation-Id"]
    return answer.body


def as_curl(server, method, path, body=None, fields=()):
    """As liblockdc calls: a connection of its own, chunks, and Expect on whatever has a body.
    The final answer, and whether 100 Continue came before it."""
    with server.raw() as s:
        head = [f"{method} {path} HTTP/1.1", "Host: localhost", *(f"{k}: {v}" for k, v in fields)]
        if body is None:
            s.sendall("\r\n".join([*head, "", ""]).encode())
            return finish(s), False
        head += ["Content-Type: application/json", "Transfer-Encoding: chunked", "Expect: 100-continue"]
        s.sendall("\r\n".join([*head, "", ""]).encode())
        interim = b""
        while b"\r\n\r\n" not in interim:
            interim += s.recv(1)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        s.sendall(b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data))
        return finish(s), interim.startswith(b"HTTP/1.1 100 ")


def finish(s):
    s.settimeout(START)
    response = http.client.HTTPResponse(s)
    response.begin()
    return Answer(response)
