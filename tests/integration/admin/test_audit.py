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
