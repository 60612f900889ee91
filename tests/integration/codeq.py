"""A client of codeQ's REST API, with the requests that its Node client sends.

    codeq = Codeq(server, producer=..., worker=...)
    task = codeq.create(command="MAIL", payload={"to": "ann"})
"""


class Codeq:
    def __init__(self, server, base="/v1/codeq", producer=None, worker=None, admin=None):
        self.server, self.base = server, base
        self.tokens = {"producer": producer, "worker": worker, "admin": admin}

    def call(self, who, method, path, body=None, **more):
        token = self.tokens[who]
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {}),
                   **more.pop("headers", {})}
        return self.server.call(method, self.base + path, body, headers=headers, **more)

    def good(self, *args, status=200, **more):
        answer = self.call(*args, **more)
        assert answer.status == status, answer
        return answer.body

    def create(self, headers=None, **task):
        return self.good("producer", "POST", "/tasks", {"payload": {}, **task}, status=202, headers=headers or {})

    def claim(self, *commands, **more):
        """A task, or None."""
        answer = self.call("worker", "POST", "/tasks/claim",
                           {"commands": list(commands), "leaseSeconds": 300, "waitSeconds": 0, **more})
        assert answer.status in (200, 204), answer
        return answer.body

    def settle(self, what, task, body=None, status=200):
        return self.good("worker", "POST", f"/tasks/{task['id']}/{what}", {} if body is None else body, status=status)

    def complete(self, task, **result):
        return self.settle("result", task, {"status": "COMPLETED", "result": result})

    def task(self, task):
        return self.good("producer", "GET", f"/tasks/{task['id']}")

    def result(self, task, wait=0, status=200):
        return self.good("producer", "GET", f"/tasks/{task['id']}/result", waitSeconds=wait, status=status)
