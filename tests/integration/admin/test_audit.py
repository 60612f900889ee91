"""The audit log: caller, act, queue, shard, and the rule that chose the shard."""
import json
import re
import signal

import pytest

from served import QUICK, Refused, Server, until
from tokens import Secret

KEY = b"0123456789abcdef0123456789abcdef"


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def records(path, n):
    """Soon after an answer its line is in the file."""
    until(lambda: len(lines(path)) >= n)
    found = lines(path)
    assert len(found) == n, found
    return found


@pytest.fixture
def audited(tmp_path):
    with Server(tmp_path / "data", "--audit-file", str(tmp_path / "audit.jsonl")) as server:
        server.audit = tmp_path / "audit.jsonl"
        yield server


def test_every_enqueue_has_a_record_with_its_shard_and_the_rule(audited):
    """SH-89; of one call over several queues, one for each."""
    ids = audited.enqueue({"text": "a"}, {"text": "b"}, {"text": "c", "topic": "other"})
    one, two = records(audited.audit, 2)
    assert (one["verb"], one["namespace"], one["queue"]) == ("enqueue", "test", "mail")
    assert (one["shard"], one["rule"], one["outcome"]) == ("default", "default", "ok")
    assert (one["count"], two["queue"], two["count"]) == (2, "other", 1)
    assert one["ids"] + two["ids"] == [str(i) for i in ids]
    assert one["time"].startswith("20") and one["time"].endswith("Z")


def test_settlements_and_acts_of_an_operator_are_audited(audited):
    audited.enqueue({"text": "a"}, {"text": "b"})
    first, second = audited.dequeue(limit=2)
    audited.ack(first)
    audited.nack(second, error="secret reason")
    audited.policy(max_attempts=7)
    audited.post("/v1/admin/queue/purge", audited.here())
    assert audited.settle("/ack", first).status in (404, 409)
    found = records(audited.audit, 7)
    assert [r["verb"] for r in found] == ["enqueue", "claim", "ack", "nack", "policy_set", "purge",
                                          "ack"]
    assert found[1]["ids"] == found[0]["ids"] and found[1]["count"] == 2
    assert found[2]["ids"] == [str(first["id"])]
    assert found[5]["count"] == 1
    assert found[6]["outcome"] != "ok" and found[6]["count"] == 0
    assert all(r["shard"] == "default" for r in found)


def test_requests_that_change_nothing_are_not_audited(audited):
    audited.enqueue({})
    audited.dequeue(topic="empty")
    audited.stats()
    audited.peek()
    audited.get("/metrics")
    audited.enqueue({})
    assert [r["verb"] for r in records(audited.audit, 2)] == ["enqueue", "enqueue"]


def test_neither_payloads_nor_secrets_are_in_it(tmp_path):
    key = tmp_path / "key"
    key.write_bytes(KEY)
    audit = tmp_path / "audit.jsonl"
    bearer = Secret(KEY).bearer(sub="alice", scope="*:*")
    headers = {**bearer, "X-Request-Id": "r-17"}
    with Server(tmp_path / "data", "--auth-keys", f"HS256:{key}",
                "--audit-file", str(audit)) as server:
        def call(method, path, body=None, **params):
            answer = server.call(method, path, body, headers, **params)
            assert answer.status == 200, answer
            return answer.body

        call("POST", "/enqueue", [server.here(text="payload-text", key="k",
                                              attributes={"a": "attr-text"})])
        message = call("GET", "/dequeue", **server.here())[0]
        call("POST", "/ack", server.here(id=message["id"], lease_id=message["lease_id"],
                                         result={"r": "result-text"}))
        found = records(audit, 3)
        assert {r["who"] for r in found} == {"alice"}
        assert {r["request_id"] for r in found} == {"r-17"}
        text = audit.read_text()
        for secret in ("payload-text", "attr-text", "result-text", message["lease_id"],
                       bearer["Authorization"].split()[1], KEY.decode()):
            assert secret not in text


def test_a_hangup_signal_opens_a_renamed_file_anew(audited):
    audited.enqueue({})
    records(audited.audit, 1)
    old = audited.audit.with_name("audit.1")
    audited.audit.rename(old)
    audited.process.send_signal(signal.SIGHUP)
    until(audited.audit.exists)
    audited.enqueue({})
    records(audited.audit, 1)
    assert len(lines(old)) == 1


def test_a_full_disk_costs_the_records_and_nothing_else(tmp_path):
    with Server(tmp_path / "data", "--audit-file", "/dev/full") as server:
        server.enqueue({"text": "a"}, {"text": "b"})
        server.ack(server.take())
        assert server.stats()["ready"] == 1
        until(lambda: server.metric("sluice_audit_dropped_total") == 3)
        assert server.metric("sluice_audit_records_total") == 0
        assert server.said().count("lines cannot be written and are dropped") == 1


def test_records_are_counted_and_bounded(audited):
    audited.enqueue(*({} for _ in range(100)))
    record, = records(audited.audit, 1)
    assert record["count"] == 100 and len(record["ids"]) == 16
    until(lambda: audited.metric("sluice_audit_records_total") == 1)
    assert audited.metric("sluice_audit_dropped_total") == 0


def test_a_file_that_cannot_be_opened_is_refused_at_the_start(tmp_path):
    with pytest.raises(Refused) as refused:
        Server(tmp_path / "data", "--audit-file", str(tmp_path / "none" / "audit"))
    assert "audit-file" in str(refused.value) and "none/audit" in str(refused.value)


def test_a_refused_enqueue_lists_no_ids(audited):
    audited.policy(max_depth=1)
    assert audited.post("/enqueue", [audited.here(text=t) for t in "ab"]).status == 429
    found = records(audited.audit, 2)[1]
    assert (found["verb"], found["outcome"], found["count"]) == ("enqueue", "queue_full", 0)
    assert "ids" not in found


def test_refused_callers_have_a_line_and_then_a_count(tmp_path):
    """One log line when it begins, one when it ends; of the audit one, and then how many more."""
    (tmp_path / "key").write_bytes(KEY)
    audit = tmp_path / "audit.jsonl"
    with Server(tmp_path / "data", "--auth-keys", f"HS256:{tmp_path}/key", "--auth-metrics", "open",
                "--audit-file", str(audit), engine=QUICK) as server:
        good = Secret(KEY).bearer(scope="mine:read")
        old = Secret(KEY).bearer(scope="mine:read", exp=1000)
        for _ in range(20):
            assert server.get("/topics", namespace="mine").status == 401
            assert server.call("GET", "/topics", headers=old, namespace="mine").status == 401
            assert server.call("GET", "/topics", headers=good, namespace="other").status == 403
        for reason in "no_token", "expired", "scope":
            assert server.metric(f'sluice_auth_refused_total{{reason="{reason}"}}') == 20
        assert server.metric('sluice_auth_refused_total{reason="web_page"}') == 0
        until(lambda: server.said().count("callers refused no more") == 3)
        assert server.said().count('event="callers refused"') == 3
        assert "reason=expired address=127.0.0.1 why=\"the token has expired\"" in server.said()
        assert re.search(r'"callers refused no more" reason=scope address=127.0.0.1 count=20 ', server.said())
        until(lambda: sum(r["count"] for r in lines(audit)) == 60)
        found = lines(audit)
        assert {(r["verb"], r["address"]) for r in found} == {("refuse", "127.0.0.1")}
        assert [r["reason"] for r in found[:3]] == ["no_token", "expired", "scope"]
        assert [r["count"] for r in found[:3]] == [1, 1, 1] and len(found) <= 9


def test_the_last_lines_are_shown_newest_first(audited):
    audited.enqueue({"text": "a"}, {"text": "b", "topic": "other"})
    audited.policy(max_attempts=7)
    records(audited.audit, 3)
    body = audited.get("/v1/admin/audit").body
    assert [r["verb"] for r in body["lines"]] == ["policy_set", "enqueue", "enqueue"]
    assert body["looked"] == 3 and body["whole"] is True
    one = audited.get("/v1/admin/audit", verb="enqueue", queue="other").body
    assert [r["queue"] for r in one["lines"]] == ["other"] and one["looked"] == 3
    cut = audited.get("/v1/admin/audit", limit=1).body
    assert len(cut["lines"]) == 1 and cut["looked"] == 1 and cut["whole"] is False
    assert audited.get("/v1/admin/audit", who="nobody").body["lines"] == []
    assert audited.get("/v1/admin/audit", limit=0).status == 400


def test_a_large_file_is_read_from_its_end(audited):
    line = json.dumps({"time": "2026-11-15T12:00:00Z", "verb": "old", "pad": "x" * 900}) + "\n"
    with open(audited.audit, "a", encoding="utf-8") as file:
        file.write(line * 6000)
    audited.enqueue({"text": "a"})
    until(lambda: audited.get("/v1/admin/audit", limit=1).body["lines"][0]["verb"] == "enqueue")
    body = audited.get("/v1/admin/audit", verb="none").body
    assert body["lines"] == [] and 4000 < body["looked"] < 5000 and body["whole"] is False


def test_a_server_without_an_audit_file_says_so(server):
    answer = server.get("/v1/admin/audit")
    assert answer.status == 404 and "audit.file" in answer.text


# --- before and after ----------------------------------------------------------------

def change(server, verb):
    """What the newest line of a verb says of the change."""
    def found():
        return [r for r in lines(server.audit) if r["verb"] == verb and r["outcome"] == "ok"]
    until(found)
    return found()[-1]["before"], found()[-1]["after"]


def test_a_change_of_a_policy_has_what_differs(audited):
    audited.enqueue({})
    assert audited.post("/v1/admin/queue/policy", {"rate": 5, "max_attempts": 9}, **audited.here()).status == 200
    assert change(audited, "policy_set") == ({"rate": 0, "max_attempts": 5}, {"rate": 5, "max_attempts": 9})
    assert audited.call("PUT", "/v1/admin/queue/policy", {"rate": 7}, **audited.here()).status == 200
    until(lambda: len([r for r in lines(audited.audit) if r["verb"] == "policy_set"]) == 2)
    assert change(audited, "policy_set") == ({"max_attempts": 9, "rate": 5}, {"max_attempts": 5, "rate": 7})
    assert audited.post("/v1/admin/queue/policy", {"rate": 7}, **audited.here()).status == 200
    until(lambda: len([r for r in lines(audited.audit) if r["verb"] == "policy_set"]) == 3)
    assert change(audited, "policy_set") == ({}, {})


def test_a_change_is_bounded(audited):
    long = ",".join(f"name-{n}={n}" for n in range(1, 13))
    assert audited.post("/v1/admin/queue/policy", {"share_weights": long[:120].rsplit(",", 1)[0], "max_rate": 1000000, "burst": 1000000, "warn_depth": 4000000000, "dlq_max": 4000000000,
                                                   "concurrency": 4000000000, "rate": 1000000000, "lease": "11h", "ttl": "365d"}, **audited.here()).status == 200
    before, after = change(audited, "policy_set")
    assert after.pop("more") is True and before.keys() == after.keys() and len(after) > 3
    raw = [line for line in audited.audit.read_text().splitlines() if "policy_set" in line][0]
    assert len(raw[raw.index('"before":'):raw.index('"outcome"')]) <= 2 * 256 + 32


def test_a_pause_and_a_resume_have_what_was_there(audited):
    audited.enqueue({})
    assert audited.post("/v1/admin/queue/pause", audited.here(reason="a release")).status == 200
    assert change(audited, "pause") == ({"paused": False}, {"paused": True, "pause_reason": "a release"})
    assert audited.post("/v1/admin/queue/resume", audited.here()).status == 200
    until(lambda: len([r for r in lines(audited.audit) if r["verb"] == "pause"]) == 2)
    assert change(audited, "pause") == ({"paused": True, "pause_reason": "a release"}, {"paused": False})


def test_a_drain_has_what_was_there(audited):
    audited.enqueue({})
    assert audited.post("/v1/admin/queue/drain", audited.here()).status == 200
    assert change(audited, "pause") == ({}, {"draining": True})
    assert audited.post("/v1/admin/queue/resume", audited.here()).status == 200
    until(lambda: len([r for r in lines(audited.audit) if r["verb"] == "pause"]) == 2)
    assert change(audited, "pause") == ({"draining": True}, {})


def test_acts_on_a_message_have_what_it_was_and_never_its_body(audited):
    id_, = audited.enqueue({"text": "secret-body", "delay": "1h"})
    act = lambda verb, **more: audited.post(f"/v1/admin/message/{verb}", {**audited.here(id=id_), **more})
    assert act("priority", priority=1).status == 200
    assert change(audited, "adjust") == ({"priority": 5}, {"priority": 1})
    assert act("delay", delay="2h").status == 200
    until(lambda: "deliver_after" in change(audited, "adjust")[0])
    before, after = change(audited, "adjust")
    assert before.keys() == after.keys() == {"deliver_after"} and before["deliver_after"] < after["deliver_after"]
    edited = act("edit", text="another-secret")
    assert edited.status == 200
    until(lambda: any(r["verb"] == "finish" for r in lines(audited.audit)))
    before, after = change(audited, "finish")
    assert before["payload_size"] == 11 and (after["payload_size"], after["payload"]) == (14, "edited")
    id_ = edited.body["id"]
    assert act("move", to="other").status == 200
    until(lambda: change(audited, "finish")[0].get("queue"))
    assert [side["queue"] for side in change(audited, "finish")] == ["mail", "other"]
    assert "secret" not in audited.audit.read_text()


def test_other_changes_have_what_was_there(audited):
    held = audited.post("/v1/acquire", {"namespace": "test", "key": "doc", "owner": "web-7", "ttl_seconds": 60}).body
    assert audited.post("/v1/admin/lock/release", {"namespace": "test", "key": "doc", "token": held["fencing_token"]}).status == 200
    before, after = change(audited, "release")
    assert before["holder"] == "web-7" and before["expires_at"] and after == {}
    schedule = {"namespace": "test", "name": "n", "when": "0 2 * * *", "message": {"queue": "mail", "text": "secret-body"}}
    assert audited.call("PUT", "/v1/admin/schedule", schedule).status == 200
    before, after = change(audited, "schedule")
    assert before == {} and after["when"] == "0 2 * * *"
    assert audited.post("/v1/admin/schedule/pause", {"namespace": "test", "name": "n"}).status == 200
    until(lambda: "paused" in change(audited, "schedule")[0])
    assert change(audited, "schedule") == ({"paused": False}, {"paused": True})
    assert audited.call("PUT", "/v1/admin/log-level", {"level": "debug"}).status == 200
    assert change(audited, "log_level") == ({"level": "info"}, {"level": "debug"})
    audited.enqueue({})
    assert audited.post("/v1/admin/queue/hold", audited.here(scope="queue", **{"for": "1m"})).status == 200
    assert change(audited, "hold") == ({}, {"scope": "queue", "for": "1m"})
    assert "secret" not in audited.audit.read_text()
