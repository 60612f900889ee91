"""The web console, as a person uses it: pages, actions, keyboard, rights, and a server that goes away."""
import http.server
import json
import threading

import urllib.request

import pytest

from chromium import Keys
from filled import BIG, EVIL, acquire, base_of, beat, queue_of
from served import Server, until
from tokens import Secret

SECRET = "0123456789abcdef0123456789abcdef"
KEY = Secret(SECRET)
PAGES = ["overview", "queues", "queue/ops/jobs", "queue/ops/jobs?tab=keys", "queue/ops/jobs?tab=shares", "keys", "queue/ops/jobs?tab=due", "queue/ops/jobs?tab=settings", "queue/ops/jobs?tab=limits",
         "messages", "messages?q=queue%3Aops%2Fjobs", "dead", "dead/ops/jobs", "tasks", "schedules", "workers", "locks", "documents", "lock/ops/report%2Fnightly-0", "queue/ops/jobs?tab=consumers", "limits", "shards", "audit", "settings"]

# --- files ---------------------------------------------------------------------------------------

def test_a_browser_is_led_to_the_console(server):
    answer = server.call("GET", "/", None, {"Accept": "text/html"})
    assert answer.status == 302 and answer.headers["Location"] == "console/"
    assert server.call("GET", "/console").headers["Location"] == "console/"
    assert server.get("/").body["name"] == "sluice"

def test_files_have_a_strict_policy_and_are_asked_for_again(server):
    answer = server.call("GET", "/console/", None, {"Accept-Encoding": "gzip"})
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff" and answer.headers["Content-Encoding"] == "gzip"
    etag = answer.headers["ETag"]
    again = server.call("GET", "/console/", None, {"If-None-Match": etag})
    assert again.status == 304 and again.text == "" and again.headers["ETag"] == etag
    assert "<!doctype html>" in server.get("/console/").text
    assert server.get("/console/nothing.js").status == 404
    assert server.get("/console/../console/").status == 404

def test_off_removes_it(tmp_path):
    with Server(tmp_path / "off", "--console", "off", engine="memory") as server:
        assert server.get("/console/").status == 404 and server.get("/console").status == 404
        assert server.call("GET", "/", None, {"Accept": "text/html"}).status == 200

# --- pages ---------------------------------------------------------------------------------------

def visit_all(chromium, theme, pages, before=lambda: None):
    chromium.theme(theme)
    for page in pages:
        before()
        chromium.go(f"#/{page}")
        name = "message" if page.startswith("message/") else page.replace("/", "-").replace("?", "-").replace("=", "-").replace("%3A", "-").replace("%2F", "-")
        chromium.shoot(f"{name}-{theme}")
        if theme == "light":
            chromium.audit(page)
        else:
            chromium.audit(f"{page} {theme}", ["color-contrast"])  # the themes differ in colours alone
    chromium.clean()

@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_opens_with_data_and_is_accessible(console, server, theme):
    uid = server.get("/v1/admin/messages", namespace="ops", queue="jobs", state="ready", limit=1).body["messages"][0]["uid"]
    visit_all(console, theme, [*PAGES, f"message/ops/{uid}"], lambda: beat(server))  # the register forgets within a minute

def test_pages_show_what_the_server_has(console, server):
    console.see("Needs attention", "ops/mail", "6 dead letters")
    console.go("#/queues")
    console.see("ops/jobs", "ops/mail", "ops/evil")
    console.go("#/settings")
    console.see("limits.batch", "flag --listen")
    console.go("#/schedules")
    console.see("every day at 02:00", "Europe/Berlin")
    console.go("#/limits")
    console.see("gold=4")
    console.go("#/shards")
    console.see("serves")
    console.go("#/audit?verb=policy_set")
    console.see("policy_set", "ops/jobs")
    console.go("#/overview?range=10m")
    console.see("Wait before delivery")

def test_a_message_shows_why_it_waits_and_its_numbers_as_they_are(console, server):
    found = server.get("/v1/admin/messages", namespace="ops", queue="jobs", state="held", limit=1).body["messages"][0]
    console.go(f"#/message/ops/{found['uid']}")
    console.see("Why it does not run now", found["key"], str(BIG))
    console.click("Raw", "a")
    console.see(f'"big": {BIG}')
    console.click("Hex", "a")
    console.see("00000000  7b 22 6f 72")
    console.click("curl")
    console.see("Copied.")
    assert "body=hex" in console.driver.current_url

def test_what_others_wrote_is_text(console, server):
    """A body, a key, an error, a share, an owner and attributes with markup."""
    uid = server.dlq(topic="evil")[0]["uid"]
    for page in ("overview", "workers", "tasks", "dead/ops/evil", "messages?q=queue%3Aops%2Fevil", f"message/ops/{uid}", f"message/ops/{uid}?body=raw", "queue/ops/evil"):
        console.go(f"#/{page}")
        assert console.run("return document.querySelectorAll('main img, main script').length") == 0
    console.go(f"#/message/ops/{uid}?body=raw")
    console.see(EVIL)
    assert console.run("return window.__xss") is None
    console.clean()

def test_a_search_finds_by_key_state_and_id(console, server):
    console.go("#/messages")
    console.see("What can be searched")
    console.run("document.getElementById('query').focus()")
    console.keys("queue:ops/jobs key:customer-1 state:held", Keys.ENTER)
    console.until("return document.querySelectorAll('main tbody tr').length > 2")
    keys = console.run("return [...document.querySelectorAll('main tbody tr')].map((r) => r.cells[4].innerText)")
    assert set(keys) == {"customer-1"}
    uid = console.run("return document.querySelector('main .row-link').innerText")
    console.go(f"#/messages?q={uid}")
    console.until("return document.querySelectorAll('main tbody tr').length === 1")
    console.go("#/messages?q=nonsense%3A1")
    console.see("unknown qualifier nonsense")

MODULE = """
  const [file, name, values, done] = arguments;
  import(new URL(file, location.href)).then((module) => done(values.map((v) => {
    try { return JSON.stringify(module[name](v)); } catch (error) { return error.name; }
  })));
"""


def test_json_is_read_as_strictly_as_it_is_written(console):
    """Numbers keep their digits; what is not JSON is refused."""
    good = {'[1.10, -0, 1e400, 12345678901234567890]': ['1.10', '-0', '1e400', '12345678901234567890']}
    bad = ["", "[1,]", "{\"a\" 1}", "01", "[1] x", "nul", "\"\n\"", "[" * 300 + "]" * 300, "'a'"]
    found = console.driver.execute_async_script(MODULE, "json.js", "parse", [*good, *bad])
    assert json.loads(found[0]) == [{"text": text} for text in next(iter(good.values()))]
    assert found[1:] == ["SyntaxError"] * len(bad)


def test_a_query_is_read_by_its_qualifiers(console):
    cases = {
        'queue:ops/jobs state:dead error:"a b" age>1h': {"namespace": "ops", "queue": "jobs", "state": "dead", "error": "a b", "older_than": "1h"},
        "queue:mail gift card": {"namespace": "default", "queue": "mail", "text": "gift card"},
        "01a1de06-b1c9-7000-8010-000000000000": {"id": "01a1de06-b1c9-7000-8010-000000000000"},
        "380252006595428353": {"id": "380252006595428353"},
        'type:resize tag:plan=gold body.user.id:42 prio>=3 prio<=7 attempt>2': {
            "kind": "resize", "attribute": "plan=gold", "body": "user.id=42", "priority_min": "3", "priority_max": "7", "attempts_over": "2"},
        "worker:web-7 state:leased": {"owner": "web-7", "state": "leased"},
        'queue:ops/jobs error~"no such" tenant:acme body.a.b:"x y" attempt<1 age<5m': {
            "namespace": "ops", "queue": "jobs", "error": "no such", "share": "acme", "body": "a.b=x y", "attempts_under": "1", "newer_than": "5m"},
    }
    found = console.driver.execute_async_script(MODULE, "messages.js", "readQuery", [*cases])
    assert [json.loads(text)["params"] for text in found] == [*cases.values()]
    bad = {"colour:red": "unknown qualifier colour:", "prio>3": "unknown qualifier prio>", "key:a key:b": "key: twice", "queue:ops/": "queue: without a value",
           "body.a:1 body.b:2": "body. twice"}
    found = console.driver.execute_async_script(MODULE, "messages.js", "readQuery", [*bad])
    for text, why in zip(found, bad.values()):
        assert why in json.loads(text)["wrong"]


def test_a_query_is_completed(console):
    module = """
      const [cases, done] = arguments;
      import(new URL('suggest.js', location.href)).then(({completions}) => done(cases.map((text) => completions(text, ['ops/jobs', 'ops/mail'], ['queue:', 'state:', 'text:', 'body.', 'prio>=', 'age>']))));
    """
    cases = {"": ["queue:", "state:", "text:", "body.", "prio>=", "age>"], "pri": ["prio>="], "prio>=": ["prio>=0", "prio>=5", "prio>=10"], "bo": ["body."], "sta": ["state:"], "state:de": ["state:delayed", "state:dead"], "text:x queue:ops/j": ["text:x queue:ops/jobs"],
             "age>": ["age>5m", "age>1h", "age>1d"], "nothing": []}
    assert console.driver.execute_async_script(module, [*cases]) == [*cases.values()]
    console.go("#/messages")
    console.run("document.getElementById('query').focus()")
    console.keys("queue:ops/j")
    console.until("return [...document.querySelectorAll('#suggestions option')].some((o) => o.value === 'queue:ops/jobs')")

# --- actions -------------------------------------------------------------------------------------

def test_pause_has_an_undo(console, server):
    console.go("#/queue/ops/jobs")
    console.click("Pause")
    until(lambda: queue_of(server, "jobs")["paused"])
    console.click("Undo")
    until(lambda: not queue_of(server, "jobs")["paused"])
    console.see("idle") if not queue_of(server, "jobs")["leased"] else console.see("running")

def test_a_change_of_the_audit_is_undone_unless_somebody_has_changed_it_since(console, server):
    place = {"namespace": "ops", "queue": "audited"}
    server.enqueue({"text": "a"}, topic="audited")
    for rate in 5, 6:
        assert server.post("/v1/admin/queue/policy", {"rate": rate}, **place).status == 200
    assert server.post("/v1/admin/queue/pause", {**place, "reason": EVIL}).status == 200
    until(lambda: len(server.get("/v1/admin/audit", queue="audited").body["lines"]) >= 4)
    console.go("#/audit?queue=audited")
    console.see("rate: 5 → 6", "rate: 0 → 5", "paused: false → true", EVIL)
    undo = "[...document.querySelectorAll('main tbody tr')].filter((r) => r.innerText.includes(arguments[0]))[0].querySelector('[data-act]').click()"
    console.run(undo, "rate: 0 → 5")
    console.see("rate has changed since; not undone.")
    console.run(undo, "rate: 5 → 6")
    until(lambda: server.get("/v1/admin/queue/policy", **place).body["rate"] == 5)
    console.run(undo, "paused: false → true")
    until(lambda: not queue_of(server, "audited")["paused"])
    console.clean()

def test_a_pause_has_a_reason_and_an_end(console, server):
    server.enqueue({"text": "a"}, topic="paused-for")
    console.go("#/queue/ops/paused-for")
    console.click("Pause for …")
    console.fill("reason", EVIL)
    console.fill("for", "1h")
    console.click("Pause", "dialog button")
    until(lambda: queue_of(server, "paused-for")["paused"])
    assert queue_of(server, "paused-for")["pause_reason"] == EVIL
    console.see("Paused because <img", "it resumes by itself in")
    console.go("#/queues")
    console.see("left")
    console.go("#/overview")
    console.see("paused because <img")
    assert console.run("return window.__xss") is None
    server.post("/v1/admin/queue/resume", {"namespace": "ops", "queue": "paused-for"})
    console.go("#/queue/ops/paused-for")
    console.see_no("Paused because")


def test_a_queue_is_drained_and_that_is_undone(console, server):
    place = {"namespace": "ops", "queue": "old-relay"}
    server.enqueue({"text": "a"}, topic="old-relay")
    console.go("#/queue/ops/old-relay")
    console.click("Drain")
    console.see("New messages are refused", "1 message that it has will be delivered")
    console.click("Drain", "dialog button")
    until(lambda: queue_of(server, "old-relay").get("draining"))
    console.see("draining", "Refuses new messages until somebody resumes it; 1 message left.")
    console.click("Undo")
    until(lambda: "draining" not in queue_of(server, "old-relay"))
    assert server.post("/v1/admin/queue/drain", place).status == 200
    console.go("#/queues?q=old-relay")
    console.see("draining")
    console.go("#/overview")
    console.see("refuses new messages; 1 message left")
    server.topic = "old-relay"
    server.ack(server.take())
    server.topic = "jobs"
    console.see("refuses new messages; nothing is left")
    console.go("#/queue/ops/old-relay")
    console.see("drained")
    console.click("Resume")
    until(lambda: "draining" not in queue_of(server, "old-relay"))
    console.see("accepts messages again")
    console.go("#/audit?queue=old-relay")
    console.see("draining: none → true")
    undo = "[...document.querySelectorAll('main tbody tr')].filter((r) => r.innerText.includes(arguments[0]))[0].querySelector('[data-act]').click()"
    console.run(undo, "draining: true → none")
    until(lambda: queue_of(server, "old-relay").get("draining"))
    server.post("/v1/admin/queue/resume", place)
    console.clean()


def test_queues_are_found_by_their_tags(console, server):
    server.enqueue({"text": "a"}, topic="tagged")
    assert server.post("/v1/admin/queue/policy", {"tags": "payments,team=relay"}, namespace="ops", queue="tagged").status == 200
    console.go("#/queue/ops/tagged")
    console.see("payments", "team=relay")
    console.click("team=relay", "main h1 a, main a.tag")
    console.until("return document.querySelectorAll('main tbody tr').length === 1 && location.hash.includes('tag')")
    console.see("ops/tagged")
    console.go("#/queues?q=payments")
    console.until("return document.querySelectorAll('main tbody tr').length === 1")


def test_every_message_is_counted_by_its_priority(console, server):
    server.enqueue(*({"text": "x", "priority": n % 2} for n in range(401)), topic="many-priorities")
    console.go("#/queue/ops/many-priorities?tab=shares")
    console.until("return [...document.querySelectorAll('main .bars tr')].map((r) => r.innerText.replace(/\\s+/g, ' ').trim()).join() === '0 201,1 200'")
    console.see("401 messages")


def test_the_members_of_a_batch_are_a_list(console, server):
    batch = server.post("/batches", {"namespace": "ops", "callback": {"queue": "after", "text": "x"}}).body
    server.enqueue(*({"text": f"member {n}", "batch": batch["id"]} for n in range(3)), topic="members")
    uid = server.get("/v1/admin/messages", namespace="ops", queue="members", limit=1).body["messages"][0]["uid"]
    console.go(f"#/message/ops/{uid}")
    console.click("those that wait, run or are dead letters", "a")
    console.until("return document.querySelectorAll('main tbody tr').length === 3")


def test_purge_needs_the_name(console, server):
    server.enqueue({"text": "a"}, {"text": "b"}, topic="trash")
    console.go("#/queue/ops/trash")
    console.click("Purge")
    console.see("Deletes 2 messages for good")
    assert console.run("return document.querySelector('dialog [type=submit]').disabled")
    console.fill("typed", "trash")
    console.click("Purge")
    until(lambda: queue_of(server, "trash")["ready"] == 0)
    console.click("Delete")
    console.fill("typed", "trash")
    console.click("Delete the queue")
    until(lambda: server.get("/v1/admin/queue", namespace="ops", queue="trash").status == 404)

def test_a_message_is_sent_copied_and_deleted(console, server):
    console.go("#/queues")
    console.click("Send a message")
    console.fill("namespace", "ops")
    console.fill("queue", "sent")
    console.fill("key", "k1")
    console.shoot("send-light")
    console.audit("send a message")
    console.click("Send")
    sent = until(lambda: server.get("/peek", namespace="ops", queue="sent").body.get("messages"))[0]
    assert sent["key"] == "k1" and sent["content_type"] == "application/json"
    console.go(f"#/message/ops/{sent['uid']}")
    console.click("Replay as copy")
    console.click("Send")
    until(lambda: server.stats(topic="sent")["total"] == 2)
    console.click("Delete")
    console.click("Delete")
    until(lambda: server.stats(topic="sent")["total"] == 1)

def test_a_waiting_message_is_acted_on_and_undone(console, server):
    """Priority, delay, run now, edit and move; each but the last undone within its 10 s."""
    def only():
        return server.get("/v1/admin/messages", namespace="ops", queue="acts").body["messages"][0]

    def open_it():
        hash = f"#/message/ops/{only()['uid']}"
        console.run("location.hash = arguments[0]", hash)
        console.driver.refresh()  # what the act before has still to show does not come in between
        console.ready(hash)

    server.enqueue({"text": "as it was"}, topic="acts")
    open_it()
    console.click("Priority")
    console.fill("priority", "1")
    console.click("Set")
    until(lambda: only()["priority"] == 1)
    console.click("Undo")
    until(lambda: only()["priority"] == 5)
    open_it()
    console.click("Delay")
    console.click("Delay")
    until(lambda: only()["status"] == "delayed")
    open_it()
    console.click("Run now")
    until(lambda: only()["status"] == "ready")
    open_it()
    console.click("Edit")
    console.fill("text", "as it is")
    console.click("Requeue")
    until(lambda: only()["payload_size"] == len("as it is"))
    console.click("Undo")
    until(lambda: only()["payload_size"] == len("as it was"))
    open_it()
    console.click("Move")
    console.fill("to", "acts-2")
    console.click("Move")
    until(lambda: server.get("/peek", namespace="ops", queue="acts-2").body.get("messages"))  # 404 until it is there

def test_a_message_that_runs_is_canceled_and_its_attempts_are_shown(console, server):
    id = server.enqueue({"text": "x"}, topic="runs")[0]
    server.topic = "runs"
    server.nack(server.take(owner="worker-7"), error="the supplier is away", delay=0)
    message = server.take()
    server.topic = "jobs"
    console.go(f"#/message/ops/{message['uid']}")
    console.see("Attempts", "worker-7", "the supplier is away")
    console.click("Cancel")
    console.click("Cancel it")
    console.see("it is gone when its worker answers")
    assert not console.has_button("Cancel")
    assert server.get("/v1/admin/message", namespace="ops", id=id).body["canceled"] is True
    server.topic = "runs"
    assert server.settle("/extend", message).body["error"] == "message_canceled"
    server.ack(message)
    server.topic = "jobs"

def test_an_undo_of_what_changed_since_is_refused(console, server):
    server.enqueue({"text": "x"}, topic="since")
    uid = server.get("/v1/admin/messages", namespace="ops", queue="since").body["messages"][0]["uid"]
    console.go(f"#/message/ops/{uid}")
    console.click("Priority")
    console.fill("priority", "1")
    console.click("Set")
    until(lambda: server.get("/v1/admin/messages", namespace="ops", queue="since").body["messages"][0]["priority"] == 1)
    server.topic = "since"
    server.nack(server.take(), defer=True, delay=0)
    server.topic = "jobs"
    console.click("Undo")
    console.see("has changed")

def test_a_search_without_a_queue_looks_at_all(console, server):
    server.enqueue({"text": "needle", "attributes": {"tenant": "acme"}}, topic="hay-1")
    server.enqueue({"text": "needle", "attributes": {"tenant": "acme"}}, topic="hay-2")
    console.go("#/messages?q=attribute%3Atenant%3Dacme%20text%3Aneedle")
    console.until("return document.querySelectorAll('main tbody tr').length === 2")
    console.see("ops/hay-1", "ops/hay-2", "2 messages shown", "examined")
    console.shoot("search-light")

def test_dead_letters_are_redriven_by_group_and_deleted(console, server):
    console.go("#/dead/ops/mail")
    console.see("gateway timeout after # ms", "no such account", "errors without their numbers and ids", "1.4.1")
    assert [g["count"] for g in server.get("/v1/admin/dlq/groups", namespace="ops", queue="mail").body["groups"]] == [4, 2]
    console.until("return [...document.querySelectorAll('main tbody tr')].some((r) => r.innerText.includes('after #'))")
    console.run("[...document.querySelectorAll('main tbody tr')].find((r) => r.innerText.includes('after #')).querySelector('button').click()")
    console.see("4 dead letters match")
    console.at_once()
    console.click("Redrive")
    console.until("return location.hash === '#/tasks'")
    until(lambda: server.stats(topic="mail")["dead"] == 2)
    assert server.stats(topic="mail")["ready"] == 4
    task = server.get("/v1/admin/tasks", namespace="ops", queue="mail").body["tasks"][0]
    assert task["action"] == "redrive" and len(task["filter"]["group"]) == 16 and task["done"] == 4
    console.go("#/dead/ops/mail")
    console.until("return document.querySelectorAll('main tbody input[type=checkbox]').length === 2")
    console.run("document.querySelector('main tbody input[type=checkbox]').click()")
    console.click("Redrive 1")
    until(lambda: server.stats(topic="mail")["dead"] == 1)
    console.until("return document.querySelectorAll('main tbody input[type=checkbox]').length === 1")
    console.click("Delete all")
    console.fill("typed", "mail")
    console.at_once()
    console.click("Delete")
    until(lambda: server.stats(topic="mail")["dead"] == 0)

def test_a_task_shows_its_progress_and_is_canceled(console, server):
    """Begun on the page of dead letters; it goes on when that page is closed."""
    server.enqueue(*({"text": f"t{n}", "max_attempts": 1} for n in range(30)), topic="slow")
    server.topic = "slow"
    for message in server.dequeue(limit=30):
        server.nack(message, error=f"slow {message['id']}")
    server.topic = "jobs"
    console.go("#/dead/ops/slow")
    console.click("Redrive all")
    console.see("30 dead letters match")
    console.fill("rate", "2")
    console.fill("failing", "7")
    console.at_once()
    console.click("Redrive")
    console.until("return location.hash === '#/tasks'")
    console.see("ops/slow", "redrive", "state: dead", "running", "at most 2 a second", "1 task at work")
    console.see("has the key customer-1, and the order of that key would change", "(only counts)")
    task, = (t for t in server.get("/v1/admin/tasks", namespace="ops", queue="slow").body["tasks"])
    assert task["stop_if_failing"] == 7 and task["by"]
    until(lambda: server.stats(topic="slow")["ready"] > 0)
    console.press("ops/slow", "Cancel")
    until(lambda: server.get("/v1/admin/task", namespace="ops", task=task["task"]).body["state"] == "canceled")
    console.see("canceled")
    assert server.stats(topic="slow")["dead"] > 0

def test_a_setting_is_changed_and_undone(console, server):
    console.go("#/queue/ops/jobs?tab=settings")
    console.until("return document.querySelector('main tr[data-k=max_attempts] button')")
    console.run("document.querySelector('main tr[data-k=max_attempts] button').click()")
    console.fill("value", "9")
    console.click("Set")
    until(lambda: queue_of(server, "jobs")["policy"]["max_attempts"] == 9)
    console.click("Undo")
    until(lambda: queue_of(server, "jobs")["policy"]["max_attempts"] == 5)

def test_a_share_is_held_and_released(console, server):
    def holds():
        return server.get("/v1/admin/queue/limits", namespace="ops", queue="jobs").body["holds"]

    console.go("#/queue/ops/jobs?tab=limits")
    console.click("Hold")
    console.fill("name", "gold")
    console.click("Hold")
    until(lambda: [h["name"] for h in holds()] == ["gold"])
    console.until("return [...document.querySelectorAll('main button')].some((b) => b.innerText.startsWith('Release'))")
    console.run("[...document.querySelectorAll('main button')].find((b) => b.innerText.startsWith('Release')).click()")
    until(lambda: holds() == [])


def test_a_schedule_runs_now_and_pauses(console, server):
    console.go("#/schedules")
    console.click("Run now")
    until(lambda: server.get("/v1/admin/queue", namespace="ops", queue="reports").status == 200)
    console.click("Pause")
    until(lambda: server.get("/v1/admin/schedule", namespace="ops", name="nightly").body["paused"])
    console.click("Undo")
    until(lambda: not server.get("/v1/admin/schedule", namespace="ops", name="nightly").body["paused"])

def test_a_worker_is_made_quiet_resumed_and_stopped(console, server):
    def state():
        beat(server)
        return next(w["state"] for w in server.get("/v1/admin/workers", namespace="ops").body["workers"] if w["worker"] == "worker-7")

    console.go("#/workers")
    console.see("worker-7", "web-7", "3/8", "1.4.2")
    console.press("worker-7", "Quiet")
    until(lambda: state() == "quiet")
    console.press("worker-7", "Resume")
    until(lambda: state() == "running")
    console.press("worker-7", "Stop")
    console.see("It finishes 3 messages and ends.")
    console.click("Stop")
    until(lambda: state() == "stop")
    console.go("#/queue/ops/jobs?tab=consumers")
    console.see("worker-7", "stop")

def test_a_lock_is_released_if_its_holder_is_still_the_same(console, server):
    acquire(server, "report/weekly", "reporter-2")
    console.go("#/locks?prefix=report%2Fw")
    console.see("report/weekly", "reporter-2")
    console.press("report/weekly", "Release")
    console.see("reporter-2 loses the lock")
    console.fill("typed", "report/weekly")
    console.click("Release")
    until(lambda: server.get("/v1/admin/locks", namespace="ops", prefix="report/w").body["locks"] == [])
    console.see("No lock is held")

def test_the_log_level_is_set(console, server):
    console.go("#/settings")
    console.click("Log level: info")
    console.run("document.querySelector('dialog select').value = 'warn'")
    console.click("Set")
    until(lambda: server.get("/v1/admin/log-level").body["level"] == "warn")
    console.click("Undo")
    until(lambda: server.get("/v1/admin/log-level").body["level"] == "info")

def test_a_refusal_shows_the_words_of_the_server(console):
    console.go("#/queue/ops/jobs?tab=settings")
    console.until("return document.querySelector('main tr[data-k=lease] button')")
    console.run("document.querySelector('main tr[data-k=lease] button').click()")
    console.fill("value", "soon")
    console.click("Set")
    console.see("(request console-")
    console.click("Cancel")

# --- keyboard --------------------------------------------------------------------------------------

def test_the_keyboard_alone_is_enough(console, server):
    console.blur()
    console.keys("g", "q")
    console.ready("#/queues")
    console.keys("j")
    console.until("return document.activeElement.classList.contains('row-link')")
    console.keys("j", "k", "x")
    console.until("return document.querySelectorAll('main tr.selected').length === 1")
    console.keys(Keys.ENTER)
    console.until("return location.hash.startsWith('#/queue/')")
    console.blur()
    console.keys("?")
    console.see("Keyboard", "Palette")
    console.keys(Keys.ESCAPE)
    console.until("return !document.querySelector('dialog')")
    console.chord(Keys.CONTROL, "k")
    console.until("return document.querySelector('dialog.palette input') === document.activeElement")
    console.keys("ops/jobs")
    console.until("return document.querySelector('.palette-list [aria-selected=true]')?.innerText === 'ops/jobs'")
    console.keys(Keys.ENTER)
    console.ready("#/queue/ops/jobs")
    console.blur()
    console.keys("p")
    until(lambda: queue_of(server, "jobs")["paused"])
    console.see("Resume")
    console.keys("p")
    until(lambda: not queue_of(server, "jobs")["paused"])
    console.keys("/")
    console.until("return document.activeElement.matches('input[type=search]')")
    console.keys(Keys.ESCAPE, ".")
    console.until("return document.getElementById('live').getAttribute('aria-pressed') === 'false'")
    before = console.run("return document.documentElement.dataset.theme")
    console.keys("t")
    console.until("return document.documentElement.dataset.theme !== arguments[0]", before)

FOCUS = """
  const e = document.activeElement, seen = window.__focused = window.__focused || [];
  if (!e || e === document.body || seen.includes(e)) return null;
  const before = seen[seen.length - 1];
  seen.push(e);
  const box = e.closest('.top form') || e, style = getComputedStyle(e), around = getComputedStyle(box);
  return [e.outerHTML.slice(0, 80), style.outlineStyle !== 'none' || around.borderColor !== getComputedStyle(document.querySelector('.card, .table-wrap')).borderColor,
    !before || Boolean(before.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING)];
"""


@pytest.mark.parametrize("page", ["overview", "queues", "queue/ops/jobs?tab=settings"])
def test_the_tab_key_goes_through_a_page_in_order_and_its_place_is_seen(console, page):
    console.go(f"#/{page}")
    console.keys(".")  # nothing comes in between
    console.blur()
    seen = 0
    for _ in range(30):
        console.keys(Keys.TAB)
        found = console.run(FOCUS)
        if not found:
            break
        seen += 1
        assert found[1], ("not seen", found[0])
        assert found[2], ("out of order", found[0])
    assert seen == 30


# --- live, empty, offline --------------------------------------------------------------------------

def test_an_empty_server_teaches_and_shows_the_first_message_by_itself(chromium, tmp_path):
    with Server(tmp_path / "empty", engine="memory") as server:
        chromium.visit(base_of(server))
        chromium.ready()
        chromium.see("No queue yet", "sluice push hello")
        chromium.shoot("empty-light")
        server.enqueue({"text": "x"})
        chromium.see("test/mail")

def test_live_updates_come_line_by_line_and_the_list_is_not_asked_for_again(chromium, tmp_path):
    with Server(tmp_path / "live", engine="memory") as server:
        server.enqueue({"text": "x"})
        chromium.visit(base_of(server), "#/queues")
        chromium.ready()
        chromium.see("test/mail")
        chromium.until("return import(new URL('live.js', location.href)).then((live) => live.isUp())")
        chromium.until("const row = [...document.querySelectorAll('tbody tr')].find((r) => r.innerText.includes('test/mail'));"
                       " if (!window.__asked) { window.__asked = []; const f = fetch; window.fetch = (u, o) => { window.__asked.push(String(u)); return f(u, o); }; }"
                       " return Boolean(row)")
        # The list that was asked for before the first line may be asked for once more.
        server.enqueue({"text": "x"}, topic="first")
        chromium.see("test/first")
        before = chromium.run("return window.__asked.length")
        server.enqueue({"text": "x"}, topic="second")
        chromium.see("test/second")
        assert server.call("DELETE", "/v1/admin/queues/test/second?force=true").status == 200
        chromium.until("return !document.body.innerText.includes('test/second')")
        asked = chromium.run("return window.__asked.slice(arguments[0])", before)
        assert not any("/v1/admin/queues" in url for url in asked), asked

def test_a_server_that_goes_away_and_comes_back(chromium, tmp_path):
    server = Server(tmp_path / "gone", engine="log")
    with server:
        server.enqueue({"text": "x"})
        chromium.visit(base_of(server), "#/queue/test/mail")
        chromium.ready()
        server.stop()
        chromium.until("return Boolean(document.getElementById('offline'))")
        assert not chromium.has_button("Pause")
        chromium.shoot("offline")
        chromium.see("The server does not answer.", "test/")
        server.options = (*server.options, "--listen", f"127.0.0.1:{server.address[1]}")
        server.start()
        chromium.until("return !document.getElementById('offline')")
        chromium.until("return [...document.querySelectorAll('main button')].some((b) => b.innerText === 'Pause' && !b.disabled)")

def test_the_environment_is_shown_on_every_page(chromium, tmp_path):
    with Server(tmp_path / "named", "--environment", "production <b>eu</b>", engine="memory") as server:
        assert server.get("/").body["environment"] == "production <b>eu</b>"
        chromium.visit(base_of(server))
        chromium.ready()
        for page in ("overview", "queues"):
            chromium.go(f"#/{page}")
            assert chromium.run("return document.querySelector('.top .environment.e-bad').innerText").endswith("production <b>eu</b>")
        assert "production" in chromium.driver.title
        for theme in ("light", "dark"):
            chromium.theme(theme)
            chromium.audit(f"environment {theme}")
        chromium.shoot("environment")

def test_a_page_is_not_drawn_with_the_data_of_another_one(console):
    """The hash has changed, and the event of that has not come yet."""
    console.driver.execute_async_script("import(new URL('ui.js', location.href)).then((m) => { window.__app = m.app; arguments[0](); })")
    console.run("location.hash = '#/queue/ops/jobs'; window.__app.redraw()")
    console.ready("#/queue/ops/jobs")
    console.clean()

# --- rights ------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "secret").write_text(SECRET)
    with Server(folder / "data", "--auth-keys", f"HS256:{folder / 'secret'}", "--mask", "password", engine="memory") as server:
        headers = {"Authorization": f"Bearer {KEY.token(scope='*:*')}"}
        for space in ("ops", "other"):
            assert server.call("POST", "/enqueue", [{"namespace": space, "queue": "jobs", "text": "x"}], headers).status == 200
        server.hiding, = server.call("POST", "/enqueue?ids=uid", [{"namespace": "other", "queue": "hiding", "json": {"user": "ann", "password": "hunter2"}}], headers).body
        yield server

def log_in(chromium, server, scopes):
    chromium.visit(base_of(server))
    chromium.until("return Boolean(document.querySelector('.login form'))")
    chromium.fill("token", KEY.token(scope=scopes))
    chromium.click("Log in")
    chromium.ready()

def test_a_viewer_can_look_and_change_nothing(chromium, guarded):
    chromium.visit(base_of(guarded))
    chromium.until("return Boolean(document.querySelector('.login form'))")
    chromium.audit("login")
    chromium.shoot("login")
    chromium.fill("token", "nonsense")
    chromium.click("Log in")
    chromium.until("return document.getElementById('login-said').innerText.length > 5")
    log_in(chromium, guarded, "*:read")
    chromium.see("viewer", "Read only")
    assert chromium.run("return JSON.stringify([localStorage.length, document.cookie])") == '[0,""]'
    for page in ("overview", "queues", "queue/ops/jobs", "queue/ops/jobs?tab=settings", "queue/ops/jobs?tab=limits",
                 "messages?q=queue%3Aops%2Fjobs", "keys", "dead", "tasks", "workers", "locks", "documents", "schedules", "limits", "shards"):
        chromium.go(f"#/{page}")
        assert chromium.run("return document.querySelectorAll('main [data-act]').length") == 0, page
    assert not chromium.run("return [...document.querySelectorAll('.rail a')].some((a) => a.innerText === 'Settings')")
    chromium.clean()

def test_hidden_values_are_shown_to_who_may_see_them_when_asked(chromium, guarded):
    for scopes, sees in ("*:read", False), ("*:*", True):
        log_in(chromium, guarded, scopes)
        for page in "messages?q=queue%3Aother%2Fhiding", "messages?q=text%3Aann", "queue/other/hiding", f"message/other/{guarded.hiding}":
            chromium.go(f"#/{page}")
            chromium.see("***")
            assert "hunter2" not in chromium.main(), page
        chromium.see("Some values are hidden")
        assert not chromium.run("return [...document.querySelectorAll('main button')].some((b) => ['Edit', 'Replay as copy', 'curl'].includes(b.innerText))")
        assert ("Show hidden values" in chromium.main()) is sees
    chromium.click("Show hidden values", "a")
    chromium.see("hunter2", "Hide values", "Replay as copy")
    chromium.clean()

def test_an_operator_sees_one_namespace(chromium, guarded):
    log_in(chromium, guarded, "ops:read ops:admin")
    chromium.see("operator")
    chromium.go("#/queues")
    chromium.see("ops/jobs")
    assert "other/" not in chromium.main()
    chromium.go("#/queue/ops/jobs")
    chromium.click("Pause")
    chromium.see("paused")

def test_a_change_by_a_page_needs_the_field_of_the_console(server):
    body = {"namespace": "ops", "queue": "jobs"}
    own = f"http://{server.address[0]}:{server.address[1]}"
    for fields, status in [({"Origin": own}, 403), ({"Sec-Fetch-Site": "same-origin"}, 403), ({"Origin": own, "Sluice-Console": "1"}, 200),
                           ({"Origin": "http://evil.example", "Sluice-Console": "1"}, 403), ({}, 200)]:
        assert server.call("POST", "/v1/admin/queue/resume", body, fields).status == status, fields
    assert server.call("GET", "/v1/admin/queues", None, {"Sec-Fetch-Site": "same-origin"}).status == 200

# --- a prefix ----------------------------------------------------------------------------------------

@pytest.fixture
def prefixed(server):
    """A proxy that serves everything below /tools/queue/."""
    class Proxy(http.server.BaseHTTPRequestHandler):
        def pass_on(self):
            if not self.path.startswith("/tools/queue/"):
                self.send_error(404)
                return
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or None
            answer = server.connect()
            answer.request(self.command, self.path[len("/tools/queue"):], body, dict(self.headers))
            found = answer.getresponse()
            data = found.read()
            self.send_response(found.status)
            for name, value in found.getheaders():
                if name.lower() not in ("connection", "transfer-encoding", "content-length", "date"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = pass_on

        def log_message(self, *_):
            pass

    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{proxy.server_address[1]}/tools/queue/"
    proxy.shutdown()
    proxy.server_close()

def test_it_works_below_a_prefix(chromium, prefixed, server):
    chromium.driver.get(prefixed)
    chromium.until("return location.pathname === '/tools/queue/console/'")
    chromium.ready()
    chromium.go("#/queue/ops/jobs")
    chromium.click("Pause")
    until(lambda: queue_of(server, "jobs")["paused"])
    chromium.click("Undo")
    until(lambda: not queue_of(server, "jobs")["paused"])
    chromium.clean()

def test_the_bundle_is_small(server):
    page = server.get("/console/").text
    names = {"index.html", "style.css", "icon.svg", "main.js"}
    seen, total = set(), 0
    while names - seen:
        name = (names - seen).pop()
        seen.add(name)
        request = urllib.request.Request(f"{base_of(server)}console/{name}", headers={"Accept-Encoding": "gzip"})
        with urllib.request.urlopen(request) as answer:
            total += len(answer.read())
        text = server.get(f"/console/{name}").text
        names |= {part.split("'")[0] for part in text.split("from './")[1:]}
        assert "http://" not in text.replace("http://www.w3.org", "").replace("http://127.0.0.1", ""), name
    assert "<script type=\"module\" src=\"main.js\">" in page and len(seen) > 20
    assert total <= 200_000, total

