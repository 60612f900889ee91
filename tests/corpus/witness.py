"""What a server tells of all that it holds, as one JSON value.

The corpus keeps the witness of the version that wrote a folder. A later version that
opens the folder must tell the same; it may add members.
"""
LOCK_KEYS = ("orders/1", "orders/2", "orders/3")
UNSTABLE = ("since_start", "oldest_ready_ms")


def pages(server, path, member, **params):
    """All rows of a list that comes in pages."""
    rows, cursor = [], None
    while True:
        more = {"cursor": cursor} if cursor else {}
        answer = server.get(path, **params, **more)
        assert answer.status == 200, answer
        rows += answer.body[member]
        cursor = answer.body.get("cursor")
        if not cursor:
            return rows


def without(row, *names):
    return {name: value for name, value in row.items() if name not in names}


def queues(server):
    rows = pages(server, "/v1/admin/queues", "queues")
    return {f"{row['namespace']}/{row['topic']}": without(row, *UNSTABLE) for row in rows}


def messages(server, name):
    """Every message of a queue, by id, as its own page shows it."""
    space, topic = name.split("/")
    found = {}
    for row in pages(server, "/v1/admin/messages", "messages", namespace=space, topic=topic):
        one = server.get("/v1/admin/message", namespace=space, id=row["uid"])
        assert one.status == 200, one
        found[row["uid"]] = one.body
    return found


def policies(server, names):
    found = {}
    for name in names:
        space, topic = name.split("/")
        found[name] = server.get("/policy", namespace=space, topic=topic).body
    return found


def results(server, ids):
    answers = {}
    for space, uid in ids:
        answer = server.get("/result", namespace=space, topic="done", id=uid)
        answers[uid] = [answer.status, answer.body if answer.status == 200 else None]
    return answers


def lease_of(before, key):
    """The server shows a lease id to the client that sends it: the id that it answered before."""
    lease = before["states"][key]["described"].get("lease_id") if before else None
    return {"X-Lease-ID": lease} if lease else {}


def states(server, before):
    """What is committed beside lock keys, and what is attached to them."""
    found = {}
    for key in LOCK_KEYS:
        at = {"namespace": "shop", "key": key}
        state = server.get("/v1/get", **at, public="1")
        attached = server.get("/v1/attachments", **at, public="1")
        found[key] = {
            "state": [state.status, state.text if state.status == 200 else ""],
            "attached": attached.body if attached.status == 200 else attached.status,
            "described": server.call("GET", "/v1/describe", headers=lease_of(before, key), **at).body,
        }
    return found


def witness(server, result_ids, before=None):
    all_queues = queues(server)
    return {
        "queues": all_queues,
        "messages": {name: messages(server, name) for name in all_queues},
        "policies": policies(server, all_queues),
        "results": results(server, result_ids),
        "states": states(server, before),
    }


def differences(old, new, path=""):
    """Where new lacks something of old, or has another value; members of new alone count not."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name, value in old.items():
            if name not in new:
                yield f"{path}/{name}: missing, was {value!r}"
            else:
                yield from differences(value, new[name], f"{path}/{name}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for n, (a, b) in enumerate(zip(old, new)):
            yield from differences(a, b, f"{path}[{n}]")
    elif old != new:
        yield f"{path}: {new!r}, was {old!r}"
