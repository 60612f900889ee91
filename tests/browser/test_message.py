"""The page of a message, and documents: programs to copy, versions beside each other, lease, copies, trace."""
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from filled import BIG, EVIL, acquire, base_of
from served import Server, seconds_of, until

ROOT = Path(__file__).parents[2]
BUILD = Path(os.environ["SLUICED"]).parent
BODY = f'{{"order": {BIG}, "who": "Zoë \\"quoted\\" \'single\' $HOME ??/ `x`\\n"}}'


def messages(server, queue, **more):
    return server.get("/v1/admin/messages", namespace="ops", queue=queue, limit=1000, **more).body["messages"]


# --- copy as -------------------------------------------------------------------------------------

def copied(console, name):
    """What the button puts on the clipboard."""
    console.run("window.__copied = null; navigator.clipboard.writeText = (text) => { window.__copied = text; return Promise.resolve(); }")
    console.click(name)
    return console.until("return window.__copied")


def compiled(folder, text):
    source = folder / "send.c"
    source.write_text(text)
    library = next(BUILD.rglob("libsluice-client.so")).parent
    subprocess.run(["cc", "-Wall", "-Werror", "-std=c17", f"-I{ROOT / 'include'}", f"-I{BUILD / 'include'}", source, "-o", folder / "send", f"-L{library}", f"-Wl,-rpath,{library}",
                    "-lsluice-client"], check=True, timeout=120)
    return [folder / "send"]


def shown(text):
    return ["bash", "-c", text.replace("sluice push", shlex.quote(os.environ["SLUICE"]) + " push", 1)]


PROGRAMS = {
    "curl": lambda folder, text: shown(text),
    "CLI": lambda folder, text: shown(text),
    "Python": lambda folder, text: [sys.executable, "-c", text],
    "boto3": lambda folder, text: ["/usr/bin/python3", "-c", text],
    "C": compiled,
}


def open_code(console, server, queue, **more):
    server.enqueue({"text": BODY, "priority": 3, "correlation_id": "run-7", "content_type": "application/json", "attributes": {"tenant": "Zoë", "nested": {"n": 1}}, **more}, topic=queue)
    sent = messages(server, queue)[0]
    console.go(f"#/message/ops/{sent['uid']}")
    return sent


@pytest.mark.parametrize("name", ["curl", "CLI", "Python", "C"])
def test_what_is_copied_sends_the_same_message(console, server, tmp_path, name):
    first = open_code(console, server, f"code-{name.lower()}", key="customer-7", share="gold")
    program = PROGRAMS[name](tmp_path, copied(console, name))
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    found = [m for m in messages(server, first["queue"]) if m["uid"] != first["uid"]]
    assert len(found) == 1, done
    for field in ("payload", "priority", "key", "share", "correlation_id", "content_type", "attributes"):
        assert found[0][field] == first[field], field


@pytest.mark.parametrize("queue", ["code-boto3", "code-boto3.fifo"])
def test_what_is_copied_for_boto3_sends_the_same_message_by_sqs(console, server, tmp_path, queue):
    """A key is the group of a FIFO queue, a share that of another one."""
    first = open_code(console, server, queue, **({"key": "customer-7"} if queue.endswith(".fifo") else {"key": "customer-7", "share": "gold"}))
    text = copied(console, "boto3")
    if queue.endswith(".fifo"):
        text = text.replace("MessageGroupId=", 'MessageDeduplicationId="once", MessageGroupId=')
    done = subprocess.run(PROGRAMS["boto3"](tmp_path, text), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found, = (m for m in messages(server, queue) if m["uid"] != first["uid"])
    assert found["uid"] == done.stdout.strip() and (found["payload"], found["priority"]) == (first["payload"], 3)
    assert found["attributes"]["tenant"] == "Zoë"
    assert found.get("key") == ("customer-7" if queue.endswith(".fifo") else None)
    assert found.get("share") == (None if queue.endswith(".fifo") else "gold")


def test_a_body_of_bytes_is_sent_by_the_copied_c_program(console, server, tmp_path):
    data = bytes(range(256)) + b"0019"
    server.enqueue({"payload": __import__("base64").b64encode(data).decode()}, topic="code-bytes")
    first = messages(server, "code-bytes")[0]
    console.go(f"#/message/ops/{first['uid']}")
    assert not console.has_button("boto3")
    subprocess.run(compiled(tmp_path, copied(console, "C")), check=True, timeout=60)
    assert [m["payload"] for m in messages(server, "code-bytes")] == [first["payload"]] * 2


# --- acts ----------------------------------------------------------------------------------------

def test_a_lease_is_extended_for_its_worker(console, server):
    server.enqueue({"text": "long work"}, topic="longer")
    server.topic = "longer"
    message = server.take(lease="30s", owner="slow-1")
    server.topic = "jobs"
    console.go(f"#/message/ops/{message['uid']}")
    console.see("slow-1", "in flight")
    console.click("Extend lease")
    console.fill("lease", "2h")
    console.click("Extend")
    until(lambda: seconds_of(messages(server, "longer")[0]["lease_expires_at"]) > seconds_of(message["lease_expires_at"]) + 7000)
    server.topic = "longer"
    server.ack(message)
    server.topic = "jobs"


def test_a_copy_names_what_it_is_a_copy_of_and_both_lead_to_each_other(console, server):
    server.enqueue({"text": "once more", "attributes": {"tenant": "acme"}, "kind": "mail"}, topic="replayed")
    first = messages(server, "replayed")[0]["uid"]
    console.go(f"#/message/ops/{first}")
    console.click("Replay as copy")
    console.click("Send")
    copy = until(lambda: next((m for m in messages(server, "replayed") if m["uid"] != first), None))
    assert copy["attributes"] == {"tenant": "acme", "copy_of": first} and copy["kind"] == "mail"
    console.click("copies in this queue", "a")
    console.until("return location.hash.startsWith('#/messages')")
    console.ready()
    console.see(copy["uid"])
    console.go(f"#/message/ops/{copy['uid']}")
    console.click(first, "a")
    console.ready(f"#/message/ops/{first}")
    console.clean()


def test_the_way_of_a_message_has_its_times(console, server):
    server.enqueue({"text": "x", "delay": "1h"}, {"text": "y"}, topic="ways")
    delayed, ready = sorted(messages(server, "ways"), key=lambda m: m["status"])
    console.go(f"#/message/ops/{delayed['uid']}")
    way = "return [...document.querySelectorAll('.way li')].map((li) => li.innerText.replace(/\\s+/g, ' ').trim())"
    assert "in 59m" in " ".join(console.run(way)) and console.run("return document.querySelector('.way .now').innerText").endswith("delayed")
    console.go(f"#/message/ops/{ready['uid']}")
    assert console.run("return document.querySelectorAll('.way time').length") == 2


def test_a_trace_is_a_link_to_the_system_that_keeps_it(chromium, tmp_path):
    trace = "0af7651916cd43dd8448eb211c80319c"
    with Server(tmp_path / "traced", "--trace-url", "https://traces.example/trace/{trace}", engine="memory", namespace="ops") as server:
        assert server.get("/").body["trace_url"] == "https://traces.example/trace/{trace}"
        server.enqueue({"text": "x", "traceparent": f"00-{trace}-b7ad6b7169203331-01"}, topic="traced")
        chromium.visit(base_of(server), f"#/message/ops/{messages(server, 'traced')[0]['uid']}")
        chromium.ready()
        assert chromium.run("return [...document.querySelectorAll('main a')].find((a) => a.innerText === 'open the trace').href") == f"https://traces.example/trace/{trace}"
    with Server(tmp_path / "untraced", "--trace-url", "javascript:alert(1)//{trace}", engine="memory", namespace="ops") as server:
        server.enqueue({"text": "x", "traceparent": f"00-{trace}-b7ad6b7169203331-01"}, topic="traced")
        chromium.visit(base_of(server), f"#/message/ops/{messages(server, 'traced')[0]['uid']}")
        chromium.ready()
        chromium.see(trace)
        assert "open the trace" not in chromium.main()


# --- versions --------------------------------------------------------------------------------------

DIFF = """
  const [cases, done] = arguments;
  import(new URL('versions.js', location.href)).then(({diff, linesOf}) => done(cases.map(([a, b]) => diff(linesOf(a), linesOf(b)).map((r) => `${r.old ?? '-'}|${r.now ?? '-'}`))));
"""


def test_documents_are_compared_by_their_members_and_numbers_keep_their_digits(console):
    cases = [
        (f'{{"a": 1, "big": {BIG}}}', f'{{"a":1,"big":{BIG + 1}}}'),
        ('{"a": [1, 2], "b": {}}', '{"a": [1, 2, 3], "b": {}}'),
        ("not JSON", "not JSON\nmore"),
        ("[]", "[]"),
    ]
    assert console.driver.execute_async_script(DIFF, cases) == [
        ["{|{", '  "a": 1,|  "a": 1,', f'  "big": {BIG}|  "big": {BIG + 1}', "}|}"],
        ["{|{", '  "a": [|  "a": [', "    1,|    1,", "    2|    2,", "-|    3", "  ],|  ],", '  "b": {}|  "b": {}', "}|}"],
        ["not JSON|not JSON", "-|more"],
        ["[]|[]"],
    ]


def commit(server, key, document):
    lease = acquire(server, key, "writer-1")
    fields = {"X-Lease-ID": lease["lease_id"], "X-Txn-ID": lease["txn_id"], "X-Fencing-Token": str(lease["fencing_token"])}
    assert server.call("POST", f"/v1/update?namespace=ops&key={key}", json.dumps(document).encode(), fields).status == 200
    assert server.call("POST", "/v1/release", {"namespace": "ops", "key": key, "lease_id": lease["lease_id"], "txn_id": lease["txn_id"]}, fields).status == 200


def test_versions_of_a_document_that_come_while_it_is_open_are_compared(console, server):
    commit(server, "orders/7", {"status": "open", "big": BIG, "note": EVIL})
    console.go("#/lock/ops/orders%2F7")
    console.see("The server keeps the newest version alone. Versions that come while this page is open can be compared.")
    commit(server, "orders/7", {"status": "paid", "big": BIG, "note": EVIL, "by": "card"})
    console.see("Compare with", "2 versions known: those that this tab has seen.")
    console.run("[...document.querySelectorAll('main .chips a')].find((a) => a.innerText.startsWith('version')).click()")
    console.until("return document.querySelector('table.beside')")
    console.see("2 lines differ.")
    cells = "return [...document.querySelectorAll('table.beside td')].filter((c) => c.classList.contains(arguments[0])).map((c) => c.innerText.replace(/\\s+/g, ' ').trim())"
    assert len(console.run(cells, "old")) == 1 and "open" in console.run(cells, "old")[0]
    assert any("paid" in c for c in console.run(cells, "new")) and any("card" in c for c in console.run(cells, "new"))
    assert console.run("return document.querySelectorAll('main img, main script').length") == 0
    for theme in ("light", "dark"):
        console.theme(theme)
        console.audit(f"versions {theme}")
        console.shoot(f"versions-{theme}")
    console.theme("light")
    console.clean()


def test_checkpoints_that_come_while_the_message_is_open_are_compared(console, server):
    server.enqueue({"text": "x"}, topic="resumed")
    server.topic = "resumed"
    message = server.take(lease="10m")
    server.topic = "jobs"
    for row in (100, 200):
        assert server.post("/extend", {"receipt": message["receipt"], "checkpoint": {"row": row}}).status == 200
        console.go(f"#/message/ops/{message['uid']}")
        console.see(f"row: {row}")
    console.run("[...document.querySelectorAll('main .chips a')].find((a) => a.innerText.startsWith('version')).click()")
    console.until("return document.querySelector('table.beside')")
    console.see("1 line differs.")
