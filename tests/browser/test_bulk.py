"""The console and many messages: ordering keys, acts on a selection and on all that match, bodies of dead letters by a patch."""
import base64
import json

from chromium import Keys
from filled import BIG, EVIL, acquire
from served import until


def messages(server, queue, **more):
    return server.get("/v1/admin/messages", namespace="ops", queue=queue, limit=1000, **more).body["messages"]


def select(console, n):
    console.until("return document.querySelectorAll('main tbody input[type=checkbox]').length >= arguments[0] && !document.querySelector('main tr.selected')", n)
    console.run("[...document.querySelectorAll('main tbody input[type=checkbox]')].slice(0, arguments[0]).forEach((b) => b.click())", n)


def all_that_match(console, what):
    console.click("All that match", "summary")
    console.click(what)


# --- keys ----------------------------------------------------------------------------------------

def test_keys_show_what_holds_them_and_lead_to_their_messages(console, server):
    server.enqueue(*({"text": f"{n}", "key": ["deep", "flat", EVIL][min(n % 7, 2)]} for n in range(30)), topic="keyed")
    server.topic = "keyed"
    first = server.take(owner="keeper-1", lease="10m")
    server.topic = "jobs"
    console.blur()
    console.keys("g", "k")
    console.ready("#/keys")
    console.see("Keys", "customer-1", "looked at")
    console.go("#/keys?namespace=ops&queue=keyed")
    console.see("3 keys found", "keeper-1", EVIL)
    assert console.run("return document.querySelectorAll('main img, main script').length") == 0
    rows = console.run("return [...document.querySelectorAll('main tbody tr')].map((r) => r.cells[0].innerText)")
    assert rows[0] == EVIL and set(rows) == {"deep", "flat", EVIL}
    console.click("held by a worker", "a")
    console.until("return document.querySelectorAll('main tbody tr').length === 1")
    console.shoot("keys-held-light")
    console.run("document.querySelector('main tbody a[href^=\"#/message/\"]').click()")
    console.ready(f"#/message/ops/{first['uid']}")
    console.go("#/queue/ops/keyed?tab=keys&q=flat")
    console.until("return document.querySelectorAll('main tbody tr').length === 1")
    console.click("flat", "main tbody a")
    console.until("return decodeURIComponent(location.hash).includes('key:\"flat\"')")
    console.ready()
    console.until("return document.querySelectorAll('main tbody tr').length > 1")
    console.clean()


# --- a selection -----------------------------------------------------------------------------------

def test_a_selection_is_delayed_run_moved_and_deleted(console, server):
    server.enqueue(*({"text": f"{n}"} for n in range(5)), topic="chosen")
    console.go("#/messages?q=queue%3Aops%2Fchosen")
    select(console, 3)
    console.click("Delay 3")
    console.see("3 messages will be delivered later")
    console.click("Delay")
    until(lambda: server.stats(topic="chosen")["delayed"] == 3)
    console.see("Delayed: 3 messages")
    console.go("#/messages?q=queue%3Aops%2Fchosen%20state%3Adelayed")
    select(console, 3)
    console.click("Run now 3")
    until(lambda: server.stats(topic="chosen")["ready"] == 5)
    console.go("#/queue/ops/chosen")
    select(console, 2)
    console.click("Priority 2")
    console.fill("priority", "1")
    console.click("Priority")
    until(lambda: sorted(m["priority"] for m in messages(server, "chosen")) == [1, 1, 5, 5, 5])
    console.go("#/messages?q=queue%3Aops%2Fchosen")
    select(console, 2)
    console.click("Move 2")
    console.fill("to", "chosen-2")
    console.click("Move")
    until(lambda: server.stats(topic="chosen")["total"] == 3 and server.stats(topic="chosen-2")["total"] == 2)
    console.until("return document.querySelectorAll('main tbody tr').length === 3")
    select(console, 3)
    console.click("Delete 3")
    console.click("Delete")
    until(lambda: server.stats(topic="chosen")["total"] == 0)
    console.clean()


def test_an_act_on_a_selection_is_undone_unless_a_message_has_changed_since(console, server):
    server.enqueue(*({"text": f"{n}"} for n in range(4)), topic="undone")
    console.go("#/messages?q=queue%3Aops%2Fundone")
    select(console, 4)
    console.click("Priority 4")
    console.fill("priority", "1")
    console.click("Priority")
    console.see("Priority set: 4 messages")
    changed = messages(server, "undone")[0]["uid"]
    assert server.post("/v1/admin/message/priority", {"namespace": "ops", "queue": "undone", "id": changed, "priority": 3}).status == 200
    console.click("Undo")
    console.see("Undone: 3 messages. 1 refused", "has changed")
    assert sorted(m["priority"] for m in messages(server, "undone")) == [3, 5, 5, 5]
    select(console, 2)
    console.click("Move 2")
    console.fill("to", "undone-2")
    console.click("Move")
    until(lambda: server.stats(topic="undone")["total"] == 2 and server.stats(topic="undone-2")["total"] == 2)
    console.click("Undo")
    until(lambda: server.stats(topic="undone")["total"] == 4)
    select(console, 1)
    console.click("Delete 1")
    console.see("This cannot be undone.")
    console.keys(Keys.ESCAPE)
    console.clean()


def test_what_runs_is_canceled_and_the_rest_of_the_selection_stays(console, server):
    server.enqueue(*({"text": f"{n}"} for n in range(3)), topic="run-some")
    server.topic = "run-some"
    taken = server.dequeue(limit=2)
    server.topic = "jobs"
    console.go("#/messages?q=queue%3Aops%2Frun-some")
    select(console, 3)
    console.click("Cancel 2")
    console.see("The other 1 selected stay as they are.")
    console.click("Cancel", "dialog [type=submit]")
    until(lambda: sum(bool(m.get("canceled")) for m in messages(server, "run-some")) == len(taken))


# --- all that match ----------------------------------------------------------------------------------

def test_all_that_match_get_another_priority_by_a_task_after_a_count(console, server):
    server.enqueue(*({"text": f"{['apple', 'pear'][n % 2]} {n}"} for n in range(250)), topic="fruit")
    console.go("#/messages?q=queue%3Aops%2Ffruit%20text%3Aapple")
    all_that_match(console, "Priority …")
    console.see("125 messages will get another priority")
    console.shoot("all-that-match-light")
    console.audit("all that match")
    console.fill("priority", "2")
    console.click("Priority")
    console.until("return location.hash === '#/tasks'")
    console.see("begins in")
    console.click("Undo")
    console.see("Undone: nothing has changed.")
    assert {m["priority"] for m in messages(server, "fruit")} == {5}
    console.go("#/messages?q=queue%3Aops%2Ffruit%20text%3Aapple")
    all_that_match(console, "Priority …")
    console.see("125 messages will get another priority")
    console.fill("priority", "2")
    console.at_once()
    console.click("Priority")
    until(lambda: sum(m["priority"] == 2 for m in messages(server, "fruit")) == 125)
    assert {m["priority"] for m in messages(server, "fruit", text="pear")} == {5}


def test_all_that_match_are_delayed_and_run_by_tasks(console, server):
    server.enqueue(*({"text": f"{['apple', 'pear'][n % 2]} {n}"} for n in range(60)), topic="pears")
    console.go("#/messages?q=queue%3Aops%2Fpears%20text%3Apear")
    all_that_match(console, "Delay …")
    console.see("30 messages will be delivered later")
    console.fill("delay", "1h")
    console.at_once()
    console.click("Delay")
    until(lambda: server.stats(topic="pears")["delayed"] == 30)
    console.see("delay until")
    console.go("#/messages?q=queue%3Aops%2Fpears%20state%3Adelayed")
    all_that_match(console, "Run now …")
    console.see("30 messages will become due now")
    console.at_once()
    console.click("Run now")
    until(lambda: server.stats(topic="pears")["ready"] == 60)


def test_a_delete_of_all_that_match_needs_the_name_and_can_be_left(console, server):
    server.enqueue(*({"text": f"{['apple', 'pear'][n % 2]} {n}"} for n in range(40)), topic="rotten")
    console.go("#/messages?q=queue%3Aops%2Frotten%20text%3Apear")
    all_that_match(console, "Delete …")
    console.see("20 messages will be deleted for good")
    assert console.run("return document.querySelector('dialog [type=submit]').disabled")
    console.keys(Keys.ESCAPE)
    console.until("return !document.querySelector('dialog')")
    assert server.stats(topic="rotten")["total"] == 40
    all_that_match(console, "Delete …")
    console.fill("typed", "rotten")
    console.at_once()
    console.click("Delete")
    until(lambda: server.stats(topic="rotten")["total"] == 20)


def test_all_that_match_are_exported(console, server):
    server.enqueue(*({"text": f"line {n}"} for n in range(120)), topic="export")
    console.go("#/messages?q=queue%3Aops%2Fexport")
    console.run("""
      window.__saved = null;
      URL.createObjectURL = (blob) => { blob.text().then((text) => { window.__saved = text; }); return 'data:,'; };
    """)
    all_that_match(console, "Export as NDJSON")
    saved = console.until("return window.__saved")
    assert len(saved.splitlines()) == 120 and '"uid"' in saved.splitlines()[0]
    console.see("120 messages exported")


# --- bodies of dead letters ------------------------------------------------------------------------

def test_bodies_of_a_group_are_edited_by_a_patch_with_a_preview(console, server):
    """Numbers keep their digits; what the patch does not fit stays dead."""
    server.enqueue(*({"text": f'{{"order":{BIG},"to":{{"host":"old-{n}"}}}}', "max_attempts": 1} for n in range(5)),
                   {"text": "not JSON", "max_attempts": 1}, {"text": EVIL, "max_attempts": 1}, topic="typo")
    server.topic = "typo"
    for message in server.dequeue(limit=7):
        server.nack(message, error="no such host")
    server.topic = "jobs"
    console.go("#/dead/ops/typo")
    console.see("no such host")
    console.run("document.querySelector('main tbody .row-link').click()")
    console.until("return location.hash.includes('group=')")
    console.ready()
    console.click("Edit bodies")
    console.see("Stays as it is: no member name.")
    console.fill("patch", '[{"op": "replace", "path": "/to/host", "value": "new"}, {"op": "add", "path": "/n", "value": 1.10}]')
    console.see(f'"order":{BIG},"to":{{"host":"new"}},"n":1.10')
    console.shoot("edit-bodies-light")
    console.audit("edit bodies")
    console.click("Edit and redrive")
    until(lambda: server.stats(topic="typo")["ready"] == 5)
    assert server.stats(topic="typo")["dead"] == 2
    console.see("Edited and ready again: 5 dead letters.")
    server.topic = "typo"
    assert json.loads(base64.b64decode(server.take()["payload"])) == {"order": BIG, "to": {"host": "new"}, "n": 1.1}
    server.topic = "jobs"
    console.clean()


PATCH = """
  const [cases, done] = arguments;
  Promise.all([import(new URL('json.js', location.href)), import(new URL('patch.js', location.href))]).then(([json, patch]) => done(cases.map(([text, of]) => {
    try { return json.stringify(patch.applyPatch(patch.readPatch(json.parse(text)), json.parse(of))); } catch (error) { return error.message; }
  })));
"""


def test_a_patch_does_what_rfc_6902_says(console):
    cases = {
        ('[{"op":"add","path":"/a/1","value":2}]', '{"a":[1,3]}'): '{"a":[1,2,3]}',
        ('[{"op":"add","path":"/a/-","value":1e400}]', '{"a":[]}'): '{"a":[1e400]}',
        ('[{"op":"remove","path":"/a~1b"}]', '{"a/b":1,"c":12345678901234567890}'): '{"c":12345678901234567890}',
        ('[{"op":"move","from":"/a","path":"/b"}]', '{"a":{"x":1}}'): '{"b":{"x":1}}',
        ('[{"op":"copy","from":"/a","path":"/b"},{"op":"add","path":"/b/x","value":2}]', '{"a":{"x":1}}'): '{"a":{"x":1},"b":{"x":2}}',
        ('[{"op":"test","path":"/a","value":1.0},{"op":"replace","path":"","value":[]}]', '{"a":1}'): '[]',
        ('[{"op":"test","path":"/a","value":"1"}]', '{"a":1}'): 'test of /a fails',
        ('[{"op":"replace","path":"/b","value":1}]', '{"a":1}'): 'no member b',
        ('[{"op":"add","path":"/a/3","value":1}]', '{"a":[]}'): 'no element 3',
        ('[{"op":"put","path":"/a"}]', '{}'): 'invalid op: put; expected add, remove, replace, move, copy, test',
        ('[{"op":"add","path":"a","value":1}]', '{}'): 'invalid path: a; expected "" or /name/0',
        ('{}', '{}'): 'invalid patch: expected an array of operations',
    }
    assert console.driver.execute_async_script(PATCH, [*map(list, cases)]) == [*cases.values()]


def test_acts_are_marked_so_that_a_viewer_has_none(console):
    """test_console.py looks at the pages with a token that may only read."""
    console.go("#/messages?q=queue%3Aops%2Fjobs")
    assert console.run("return document.querySelectorAll('#all-that-match [data-act]').length") > 3


# --- several queues, settings, batches -----------------------------------------------------------------

def test_several_queues_are_paused_and_purged(console, server):
    for n in range(2):
        server.enqueue({"text": "a"}, {"text": "b"}, topic=f"several-{n}")
    console.go("#/queues?q=several")
    select(console, 2)
    console.click("Pause 2")
    until(lambda: all(server.get("/v1/admin/queue", namespace="ops", queue=f"several-{n}").body["paused"] for n in range(2)))
    select(console, 2)
    console.click("Purge 2")
    console.see("Deletes 4 messages for good")
    console.fill("typed", "purge 2")
    console.click("Purge")
    until(lambda: [server.stats(topic=f"several-{n}")["total"] for n in range(2)] == [0, 0])


def test_settings_are_copied_to_another_queue_and_their_changes_are_listed(console, server):
    def policy(queue):
        return server.get("/v1/admin/queue/policy", namespace="ops", queue=queue).body

    server.enqueue({"text": "a"}, topic="source")
    server.enqueue({"text": "a"}, topic="target")
    assert server.post("/policy", {"max_attempts": 9, "lease": "45s", "max_rate": 77}, namespace="ops", queue="source").status == 200
    console.go("#/queue/ops/source?tab=settings&only=set")
    console.see("differ from the default 3", "Changes of the settings")
    assert console.run("return document.querySelectorAll('main tr.marked').length") == 3
    console.click("Copy to another queue")
    console.fill("to", "target")
    console.click("Copy")
    until(lambda: [policy("target")[name] for name in ("max_attempts", "lease", "max_rate")] == [9, "45s", 77])
    console.click("Undo")
    until(lambda: policy("target")["max_attempts"] == 5 and policy("target")["max_rate"] == 0)


def test_a_member_of_a_batch_shows_how_far_the_batch_is(console, server):
    batch = server.post("/batches", {"namespace": "ops", "callback": {"queue": "reports", "text": "all sent"}, "timeout": "1h"}).body
    server.enqueue(*({"text": f"{n}", "batch": batch["uid"]} for n in range(3)), topic="letters")
    server.topic = "letters"
    server.ack(server.take())
    server.topic = "jobs"
    uid = messages(server, "letters")[0]["uid"]
    console.go(f"#/message/ops/{uid}")
    console.see("Batch", "3 members", "ops/reports", batch["uid"])
    assert console.run("return document.querySelector('main .stack').getAttribute('aria-label')") == "members: 1 done, 0 failed, 2 waiting"
    console.audit("member of a batch")


def test_a_chart_shows_the_values_under_the_pointer(console, server):
    server.enqueue({"text": "x"}, topic="pointed")
    console.go("#/overview?range=10m")
    console.until("return document.querySelector('.chart svg .line')", )
    console.run("""
      const svg = document.querySelector('.chart > svg');
      const event = new MouseEvent('mousemove', {bubbles: true, clientX: svg.getBoundingClientRect().left + svg.clientWidth - 2, clientY: svg.getBoundingClientRect().top + 20});
      svg.dispatchEvent(event);
    """)
    assert console.run("return document.querySelector('.chart .cursor').getAttribute('d').startsWith('M') && document.querySelector('.chart .at').textContent.length > 5")
    console.clean()


def test_shares_show_their_part_and_who_is_noisy(console, server):
    server.enqueue(*({"text": "x", "share": "crowd"} for _ in range(60)), *({"text": "x", "share": "gold"} for _ in range(5)), topic="shared")
    assert server.post("/policy", {"share_weights": "gold=4"}, namespace="ops", queue="shared").status == 200
    console.go("#/queue/ops/shared?tab=shares")
    rows = console.run("return Object.fromEntries([...document.querySelectorAll('main tbody tr')].filter((r) => r.cells.length > 5).map((r) => [r.cells[0].innerText, r.innerText]))")
    assert "noisy" in rows["crowd"] and "92 %" in rows["crowd"] and "20 %" in rows["crowd"]
    assert "noisy" not in rows["gold"] and "80 %" in rows["gold"]


def test_limits_are_changed_together_and_undone(console, server):
    def policy():
        return server.get("/v1/admin/queue/policy", namespace="ops", queue="limited").body

    server.enqueue({"text": "x"}, topic="limited")
    console.go("#/queue/ops/limited?tab=limits")
    console.click("Change limits")
    console.fill("concurrency", "7")
    console.fill("share_weights", "gold=4")
    console.click("Set")
    until(lambda: (policy()["concurrency"], policy()["share_weights"]) == (7, "gold=4"))
    console.click("Undo")
    until(lambda: (policy()["concurrency"], policy()["share_weights"]) == (0, ""))


def test_queues_show_their_workers(console, server):
    console.go("#/queues")
    console.see("Consumers", "3/8")
    console.click("Columns", "summary")
    console.click("Consumers", ".menu label")
    console.until("return location.hash.includes('hide=workers')")
    console.until("return !document.querySelector('main table').innerText.includes('3/8')")


# --- documents, checkpoints ------------------------------------------------------------------------------

def test_the_document_of_a_lock_is_found_and_shown_with_its_numbers(console, server):
    lease = acquire(server, "orders/42", EVIL)
    fields = {"X-Lease-ID": lease["lease_id"], "X-Txn-ID": lease["txn_id"], "X-Fencing-Token": str(lease["fencing_token"])}
    document = json.dumps({"status": "paid", "big": BIG, "note": EVIL}).encode()
    assert server.call("POST", "/v1/update?namespace=ops&key=orders/42", document, fields).status == 200
    assert server.call("POST", "/v1/release", {"namespace": "ops", "key": "orders/42", "lease_id": lease["lease_id"], "txn_id": lease["txn_id"]}, fields).status == 200
    console.go("#/locks")
    console.click("Documents", "main a")
    console.ready("#/documents")
    console.run("document.querySelector('main [name=q]').focus()")
    console.run("document.querySelector('main [name=namespace]').value = 'ops'")
    console.keys('/status="paid"', Keys.ENTER)
    console.see("ops/", "orders/42")
    console.audit("documents")
    console.click("ops/orders/42", "main .row-link")
    console.see(str(BIG), "Nobody holds this key.", EVIL.replace('"', '\\"'))
    console.audit("lock")
    console.shoot("lock-light")
    assert console.run("return document.querySelectorAll('main img, main script').length") == 0
    acquire(server, "orders/42", "auditor-1")
    console.see("auditor-1", "Release")
    console.go("#/documents?namespace=ops&q=%2Fstatus%3D")
    console.until("return document.querySelector('main .error')")


def test_a_message_shows_its_checkpoint(console, server):
    server.enqueue({"text": "x"}, topic="imports")
    server.topic = "imports"
    message = server.take()
    server.topic = "jobs"
    assert server.post("/extend", {"receipt": message["receipt"], "checkpoint": {"row": BIG}}).status == 200
    console.go(f"#/message/ops/{message['uid']}")
    console.see("Checkpoint", f"row: {BIG}")
