"""A server with some of everything, for the tests of the console."""
EVIL = "<img src=x onerror=\"window.__xss=1\"><script>window.__xss=1</script>"
BIG = 12345678901234567890123  # no double holds it


def fill(server):
    server.enqueue(*({"json": {"order": n, "big": BIG}, "key": f"customer-{n % 4}", "share": ["gold", "free"][n % 2],
                      "priority": [5, 0, 10][n % 3]} for n in range(40)))
    server.enqueue({"text": "later", "delay": "1h"}, {"text": "much later", "delay": "20h"})
    server.enqueue(*({"text": f"bad {n}", "max_attempts": 1} for n in range(6)), topic="mail")
    server.topic = "mail"
    tell = lambda more: server.call("POST", "/worker", {"namespace": "ops", "queue": "mail"}, {"Sluice-Worker": f"name=mailer-1; version=1.4.1{more}"})
    assert tell("").status == 200
    for n, message in enumerate(server.dequeue(limit=6, owner="mailer-1")):
        server.nack(message, error=f"gateway timeout after {n} ms" if n < 4 else "no such account")
    assert tell("; ends=1").status == 200
    server.topic = "jobs"
    for message in server.dequeue(limit=6, owner="worker-7", lease="10m")[:2]:
        server.nack(message, error="no such account", dead=True)
    server.enqueue({"text": EVIL, "key": EVIL, "correlation_id": "<b>x</b>", "share": EVIL, "attributes": {"a": EVIL}}, topic="evil")
    server.topic = "evil"
    server.nack(server.take(owner=EVIL), error=EVIL, dead=True)
    server.topic = "jobs"
    assert server.post("/policy", {"concurrency": 100, "share_weights": "gold=4"}, **server.here()).status == 200
    for n, owner in enumerate(("reporter-1", EVIL)):
        assert acquire(server, f"report/nightly-{n}", owner)["fencing_token"]
    assert server.call("PUT", "/v1/admin/schedule", {
        "namespace": "ops", "name": "nightly", "when": "0 2 * * *", "zone": "Europe/Berlin",
        "message": {"queue": "reports", "json": {"day": "last"}}}).status == 200
    for more in ({"action": "redrive", "dry_run": True, "error": EVIL}, {"action": "move", "to": "away", "key": "customer-1"}):
        assert server.post("/v1/admin/task", {"namespace": "ops", "queue": "jobs", **more}).status == 200


def beat(server):
    assert server.call("POST", "/worker", {"namespace": "ops", "queue": "jobs"}, {
        "Sluice-Worker": "name=worker-7; host=web-7; version=1.4.2; slots=8; used=3; lost=1"}).status == 200
    assert server.call("POST", "/worker", {"namespace": "ops", "queue": "mail"}, {
        "Sluice-Worker": f"name=mailer-1 {EVIL.replace(';', ',')}; host=web-9; version=1.4.1; slots=4; used=4"}).status == 200


def base_of(server):
    return f"http://{server.address[0]}:{server.address[1]}/"


def acquire(server, key, owner):
    return server.post("/v1/acquire", {"namespace": "ops", "key": key, "owner": owner, "ttl_seconds": 600, "block_seconds": -1}).body


def queue_of(server, topic, **more):
    return server.get("/v1/admin/queue", namespace="ops", queue=topic, **more).body
