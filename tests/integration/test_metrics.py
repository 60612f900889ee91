"""Every metric moves when what it counts happens (invariant 12), and the page knows it."""
import importlib.machinery
import importlib.util
import json
import re
import shutil
import subprocess
import time
from pathlib import Path
from urllib.parse import urlencode

import pytest

from locked import acquire, commit
from served import ENGINE, QUICK, Server, until
from test_hangup import request, reset

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/metrics.md").read_text()
NAMES = re.findall(r"^\| `(\w+)` \|", PAGE, re.M)
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")


def tool():
    loader = importlib.machinery.SourceFileLoader("metrics_doc", str(ROOT / "tools/metrics-doc"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("metrics_doc", loader))
    loader.exec_module(module)
    return module


class Scrape:
    """An answer of /metrics."""

    def __init__(self, text):
        self.text = text
        self.samples = {}
        for line in text.splitlines():
            found = SAMPLE.match(line)
            if found:
                labels = dict(re.findall(r'(\w+)="([^"]*)"', found[2] or ""))
                self.samples.setdefault(found[1], []).append((labels, float(found[3])))

    def __call__(self, name, **labels):
        """The sum of all samples of that name with these labels."""
        return sum(value for has, value in self.samples.get(name, [])
                   if all(has.get(k) == v for k, v in labels.items()))


def scrape(server):
    return Scrape(server.metrics())


# --- what happens -----------------------------------------------------------------

def hang_up(server):
    """A claim that is not received goes back; and a client that waits is gone."""
    server.enqueue(*({"text": "x" * (1 << 20)} for _ in range(4)), topic="big")
    with server.raw() as sock:
        sock.setsockopt(1, 8, 4096)  # SO_RCVBUF
        sock.sendall(request(server, topic="big", limit=4))
        until(lambda: server.stats(topic="big")["leased"] >= 3)
        sock.recv(100)
        reset(sock)
    until(lambda: server.stats(topic="big")["ready"] == 4)


def settle(server):
    """An ack, a retry, a lease that runs out, three ways to die, a redrive, a delete."""
    server.policy(max_attempts=2)
    server.enqueue({"key": "k", "idempotency_key": "once", "keep_result": "1h"},
                   {"delay": "1h", "key": "later"}, {}, {}, {}, {"ttl": "1ms", "key": "k"})
    messages = {}
    until(lambda: len(messages) == 4 or messages.update(
        (m["id"], m) for m in server.dequeue(limit=10)))
    first, second, third, fourth = (messages[i] for i in sorted(messages))
    time.sleep(0.01)  # so that processing took a while
    server.ack(first, result=1)
    server.nack(second, delay=0)
    server.take(lease="1ms")
    server.nack(third, dead=True)
    until(lambda: scrape(server)("sluice_dead_letters_total") == 3)
    server.post("/dlq/redrive", server.here(ids=[third["id"]]))
    dead = [m["id"] for m in server.dlq() if m["reason"] == "expired"]
    server.post("/dlq/delete", server.here(ids=dead))
    server.nack(fourth, delay="1h")


def wait_for_work(server):
    """A claim that waits 20 ms for its message, after one that finds nothing."""
    with server.raw() as sock:
        sock.sendall(request(server, topic="late", wait=60))
        until(lambda: scrape(server)("sluice_waiting") == 1)
        time.sleep(0.02)
        server.enqueue({"text": "late"}, topic="late")
        assert b"200 OK" in sock.recv(1000)


def lock(server):
    """A key with a state, a key that is held, and a message with a state."""
    commit(server, "orders/7", b"{}")
    acquire(server, "orders/8")
    server.enqueue({}, topic="stateful")
    taken = server.post("/v1/queue/dequeueWithState", {
        "namespace": server.namespace, "queue": "stateful", "owner": "me", "wait_seconds": -1,
        "visibility_timeout_seconds": 600})
    message = json.loads(re.search(r'{"message":.*}', taken.text)[0])["message"]
    noted = server.call("POST", "/v1/update?" + urlencode({
        "namespace": server.namespace, "key": f"q/stateful/state/{message['message_id']}"}), b"{}", {
            "X-Lease-ID": message["state_lease_id"], "X-Txn-ID": message["state_txn_id"],
            "X-Fencing-Token": str(message["state_fencing_token"])})
    assert noted.status == 200, noted


def ask_wrongly(server):
    server.get("/nowhere")
    server.get("/stats", **server.here(topic="unknown"))
    server.call("POST", "/policy", b"x" * 100_000, **server.here())
    server.close()
    with server.raw() as sock:
        sock.sendall(b"NONSENSE\r\n\r\n")
        sock.recv(1000)


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    """(before, during, after): three scrapes of a server to which all of that happened."""
    folder = tmp_path_factory.mktemp("metrics") / "data"
    drop = tmp_path_factory.mktemp("drop")
    with Server(folder, "--inboxes", f"file://{drop}") as server:
        server.call("PUT", "/policy", {"warn_depth": 1}, **server.here(topic="deep"))
        before = scrape(server)
        hang_up(server)
        settle(server)
        wait_for_work(server)
        lock(server)
        ask_wrongly(server)
        server.enqueue({}, {}, topic="deep")
        until(lambda: scrape(server)("sluice_http_connections") == 1)  # its own
        with server.raw() as sock:
            sock.sendall(b"POST /enqueue HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n[")
            sock.sendall(b"   ")
            until(lambda: scrape(server)("sluice_http_request_bytes") == 4)
            during = scrape(server)
        after = scrape(server)
    shutil.rmtree(folder)
    return before, during, after


# --- what each metric says of it --------------------------------------------------

def rose(name, by=None, **labels):
    def check(before, _, after):
        grown = after(name, **labels) - before(name, **labels)
        assert grown > 0 if by is None else grown == by, grown
    return check


def is_at_the_end(name, value, **labels):
    def check(before, during, after):
        assert after(name, **labels) == value
    return check


def seen(name, least, count=None):
    """A histogram that saw at least so much, in all."""
    def check(before, _, after):
        assert after(name + "_sum") - before(name + "_sum") >= least
        grown = after(name + "_count") - before(name + "_count")
        assert grown >= 1 if count is None else grown == count, grown
        assert after(name + "_bucket", le="+Inf") == after(name + "_count")
    return check


def every(*checks):
    def check(*scrapes):
        for c in checks:
            c(*scrapes)
    return check


def info(before, during, after):
    labels, value = after.samples["sluice_info"][0]
    assert value == 1 and labels["engine"] == "log" and labels["durability"] == "sync"
    assert re.match(r"\d+\.\d+", labels["version"])


def while_sent(name, more):
    """A gauge that is so much higher while a request is sent."""
    def check(before, during, after):
        assert during(name) - before(name) == more
    return check


def between(name, low, high, **labels):
    def check(before, during, after):
        assert low <= after(name, **labels) <= high
    return check


def requests(before, during, after):
    def grown(route, status):
        return (after("sluice_http_requests_total", route=route, status=status) -
                before("sluice_http_requests_total", route=route, status=status))
    assert grown("POST /ack", "2xx") == 1
    assert grown("POST /policy", "4xx") == 1  # too large
    assert grown("GET /stats", "4xx") == 1
    assert grown("other", "4xx") == 2  # an unknown path, no HTTP
    assert grown("GET /metrics", "2xx") >= 2


def counts_all_ops(before, during, after):
    """By shard and operation: as many as the shard has answered."""
    name = "sluice_shard_operation_duration_seconds_count"
    assert after(name, shard="default", operation="ack") >= 1
    assert after(name, shard="default", operation="enqueue") >= 5
    seen("sluice_shard_operation_duration_seconds", 0.000001)(before, during, after)


CHECKS = {
    "sluice_info": info,
    "process_start_time_seconds": between(
        "process_start_time_seconds", time.time() - 3600, time.time() + 3600),
    "process_cpu_seconds_total": rose("process_cpu_seconds_total"),
    "process_resident_memory_bytes": between("process_resident_memory_bytes", 1 << 20, 1 << 44),
    "process_max_fds": between("process_max_fds", 32, 1 << 40),
    "sluice_http_connections": while_sent("sluice_http_connections", 1),
    "sluice_http_accepted_total": rose("sluice_http_accepted_total"),
    "sluice_http_requests_running": while_sent("sluice_http_requests_running", 1),
    "sluice_http_received_bytes_total": rose("sluice_http_received_bytes_total"),
    "sluice_http_sent_bytes_total": rose("sluice_http_sent_bytes_total"),
    "sluice_http_parse_errors_total": rose("sluice_http_parse_errors_total", 2),
    "sluice_http_hang_ups_total": rose("sluice_http_hang_ups_total"),
    "sluice_http_unsent_total": rose("sluice_http_unsent_total"),
    "sluice_http_request_bytes": while_sent("sluice_http_request_bytes", 4),
    "sluice_http_too_large_total": rose("sluice_http_too_large_total", 1),
    "sluice_http_requests_total": requests,
    "sluice_ops_total": every(rose("sluice_ops_total", 1, verb="ack"),
                              rose("sluice_ops_total", 3, verb="nack")),
    "sluice_op_errors_total": rose("sluice_op_errors_total", 1, verb="stats"),
    "sluice_op_messages": seen("sluice_op_messages", 13),
    "sluice_op_seconds": seen("sluice_op_seconds", 0.02),
    "sluice_limits_hit_total": rose("sluice_limits_hit_total", 1, limit="body"),
    "sluice_shard_batch_ops": seen("sluice_shard_batch_ops", 10),
    "sluice_claim_wait_seconds": seen("sluice_claim_wait_seconds", 0.02),
    "sluice_message_wait_seconds": seen("sluice_message_wait_seconds", 0.000001),
    "sluice_processing_seconds": seen("sluice_processing_seconds", 0.04, count=4),
    "sluice_leases_expired_total": rose("sluice_leases_expired_total", 1),
    "sluice_retries_total": rose("sluice_retries_total", 2),
    "sluice_messages_redriven_total": rose("sluice_messages_redriven_total", 1),
    "sluice_sync_seconds": seen("sluice_sync_seconds", 0.000001),
    "sluice_dead_letters_total": every(*(
        rose("sluice_dead_letters_total", 1, reason=r)
        for r in ("max_attempts", "expired", "rejected"))),
    "sluice_shard_ops_total": rose("sluice_shard_ops_total"),
    "sluice_shard_batches_total": rose("sluice_shard_batches_total"),
    "sluice_messages_accepted_total": rose("sluice_messages_accepted_total", 14),
    "sluice_messages_delivered_total": rose("sluice_messages_delivered_total"),
    "sluice_messages_returned_total": rose("sluice_messages_returned_total"),
    "sluice_messages_acked_total": rose("sluice_messages_acked_total", 1),
    "sluice_messages_nacked_total": rose("sluice_messages_nacked_total", 3),
    "sluice_messages_deleted_total": rose("sluice_messages_deleted_total", 1),
    "sluice_waiting": is_at_the_end("sluice_waiting", 0),  # wait_for_work saw it at 1
    "sluice_shard_up": is_at_the_end("sluice_shard_up", 1),
    "sluice_shard_available": is_at_the_end("sluice_shard_available", 1, shard="default"),
    "sluice_shard_operation_duration_seconds": counts_all_ops,
    "sluice_cross_shard_queries_total": rose("sluice_cross_shard_queries_total"),
    "sluice_queue_messages": every(*(
        is_at_the_end("sluice_queue_messages", n, namespace="test", topic="mail", state=s)
        for s, n in {"ready": 1, "delayed": 2, "leased": 0, "held": 0, "dead": 1,
                     "damaged": 0}.items())),
    "sluice_queue_oldest_seconds": between(
        "sluice_queue_oldest_seconds", 0.001, 3600, topic="big"),
    "sluice_queue_accepted_total": rose("sluice_queue_accepted_total", 6, topic="mail"),
    "sluice_queue_delivered_total": rose("sluice_queue_delivered_total", 5, topic="mail"),
    "sluice_queue_done_total": rose("sluice_queue_done_total", 2, topic="mail"),
    "sluice_queue_failed_total": rose("sluice_queue_failed_total", 4, topic="mail"),
    "sluice_queue_dead_letters_total": rose("sluice_queue_dead_letters_total", 3, topic="mail"),
    "sluice_messages": is_at_the_end("sluice_messages", 7, state="ready"),
    "sluice_queues": is_at_the_end("sluice_queues", 5),
    "sluice_queues_warning": is_at_the_end("sluice_queues_warning", 1),
    "sluice_ordering_keys": is_at_the_end("sluice_ordering_keys", 1),
    "sluice_idempotency_keys": is_at_the_end("sluice_idempotency_keys", 1),
    "sluice_results": is_at_the_end("sluice_results", 1),
    "sluice_lock_keys": is_at_the_end("sluice_lock_keys", 2),
    "sluice_lock_leases": is_at_the_end("sluice_lock_leases", 1),
    "sluice_message_states": is_at_the_end("sluice_message_states", 1),
    "sluice_log_segments": between("sluice_log_segments", 1 if ENGINE == "forwarded" else 2, 64),  # segments of a store are larger
    "sluice_log_spare_segments": between("sluice_log_spare_segments", 1, 8),
    "sluice_log_bytes": between("sluice_log_bytes", 8 << 20, 1 << 30),
    "sluice_log_live_bytes": between("sluice_log_live_bytes", 4 << 20, 8 << 20),
    "sluice_disk_free_bytes": between("sluice_disk_free_bytes", 1 << 20, 1 << 60),
    "sluice_disk_size_bytes": between("sluice_disk_size_bytes", 1 << 20, 1 << 60),
}

VIEWS = "tests/integration/admin/test_views.py"
BREAKERS = "tests/integration/scheduling/test_breakers.py"
AUDIT = "tests/integration/admin/test_audit.py"
NODES = "tests/integration/stores/test_nodes.py"
INBOXES = "tests/integration/test_inboxes.py"
TASKS = "tests/integration/scheduling/test_tasks.py"
SCHEDULES = "tests/integration/scheduling/test_schedules.py"
PROJECTION = "tests/integration/stores/test_projection.py"
STORE = "tests/fault/test_store.py"
STORED = "tests/integration/stores/test_store.py"

# What needs a client that is slow for long, or crowds: where that is done, and its row.
ELSEWHERE = {
    "sluice_auth_refused_total": ("tests/integration/admin/test_audit.py", "sluice_auth_refused_total{{reason="),
    "sluice_http_turned_away_total": ("tests/unit/http/test_server_limits.c", "SERVER_TURNED_AWAY) == 2"),
    "sluice_http_timeouts_total": ("tests/unit/http/test_server_limits.c", "SERVER_TIMEOUTS) == 1"),
    "sluice_http_slow_readers_total": ("tests/unit/http/test_server_limits.c", "SERVER_SLOW_READERS)"),
    "sluice_http_tls_handshakes_total": ("tests/integration/test_tls.py", 'tls_metric("handshakes")'),
    "sluice_http_tls_failures_total": ("tests/integration/test_tls.py", 'tls_metric("failures")'),
    "sluice_http_response_bytes": ("tests/integration/test_memory.py",
                                   'metric("sluice_http_response_bytes") > 8 << 20'),
    "sluice_index_memory_bytes": ("tests/integration/test_memory.py",
                                  'metric("sluice_index_memory_bytes") > 0.8 * (4 << 20)'),
    "sluice_index_memory_limit_bytes": ("tests/integration/test_memory.py",
                                        'metric("sluice_index_memory_limit_bytes") == 4 << 20'),
    "sluice_shard_map_disagreements": ("tests/integration/test_sharding.py",
                                       'metric("sluice_shard_map_disagreements") == 1'),
    "sluice_node_id_conflict": ("tests/integration/test_sharding.py",
                                '1 in (one.metric("sluice_node_id_conflict")'),
    "sluice_shard_map_info": ("tests/integration/test_sharding.py", 'node.map()["hash"]}",version="2"'),
    "sluice_breakers_opened_total": (BREAKERS, 'counted("opened"), counted("closed")) == (2, 1)'),
    "sluice_breakers_closed_total": (BREAKERS, 'counted("opened"), counted("closed")) == (2, 1)'),
    "sluice_lost_writes_total": ("tests/integration/redis/test_redis_loss.py", "assert lost(server) == 1"),
    "sluice_cross_shard_partial_total": (VIEWS, '"sluice_cross_shard_partial_total"'),
    "sluice_cross_shard_timeouts_total": (VIEWS, '"sluice_cross_shard_timeouts_total"'),
    "sluice_cross_shard_skipped_total": (VIEWS, '"sluice_cross_shard_skipped_total"'),
    "sluice_audit_records_total": (AUDIT, '"sluice_audit_records_total") == 1'),
    "sluice_audit_dropped_total": (AUDIT, '"sluice_audit_dropped_total") == 3'),
    "sluice_store_memory_bytes": (VIEWS, '"sluice_store_memory_bytes"'),
    "sluice_store_memory_max_bytes": (VIEWS, '"sluice_store_memory_max_bytes"'),
    "sluice_store_disk_bytes": (VIEWS, '"sluice_store_disk_bytes"'),
    "sluice_store_clients": (VIEWS, '"sluice_store_clients"'),
    "sluice_store_clients_max": (VIEWS, '"sluice_store_clients_max"'),
    "sluice_store_cpu_seconds_total": (VIEWS, '"sluice_store_cpu_seconds_total"'),
    "sluice_nodes_living": (NODES, 'metric("sluice_nodes_living") == 1'),
    "sluice_node_draining": (NODES, 'metric("sluice_node_draining") == 0'),
    "sluice_node_beat_age_seconds": (NODES, 'metric("sluice_node_beat_age_seconds") < 60'),
    "sluice_store_requests_total": (STORED, "sluice_store_requests_total{verb=\"put\"}') - puts >= made"),
    "sluice_store_rest_seconds": (STORED, 'metric("sluice_store_rest_seconds") > 0'),
    "sluice_tasks_running": (TASKS, '"sluice_tasks_running") == 0'),
    "sluice_tasks_ended_total": (TASKS, '"sluice_tasks_ended_total") == 2'),
    "sluice_task_messages_total": (TASKS, '"sluice_task_messages_total") == 3'),
    "sluice_task_refusals_total": (TASKS, '"sluice_task_refusals_total") == 1'),
    "sluice_task_failures_total": (TASKS, '"sluice_task_failures_total") == 0'),
    "sluice_schedules": (SCHEDULES, '"sluice_schedules") == 1'),
    "sluice_schedule_firings_total": (SCHEDULES, '"sluice_schedule_firings_total") == 1'),
    "sluice_schedule_missed_total": (SCHEDULES, '"sluice_schedule_missed_total") >= 1'),
    "sluice_schedule_overlaps_total": (SCHEDULES, '"sluice_schedule_overlaps_total") >= 1'),
    "sluice_schedule_failures_total": (SCHEDULES, '"sluice_schedule_failures_total") >= 4'),
    "sluice_projection_messages_total": (PROJECTION, '"sluice_projection_messages_total") == 0'),
    "sluice_projection_transactions_total": (PROJECTION, '"sluice_projection_transactions_total") == 0'),
    "sluice_projection_failures_total": (PROJECTION, '"sluice_projection_failures_total") > 0'),
    "sluice_projection_rebuilds_total": (PROJECTION, '"sluice_projection_rebuilds_total") >= 2'),
    "sluice_projection_waiting": (PROJECTION, '"sluice_projection_waiting") == 3'),
    "sluice_projection_lag_seconds": (PROJECTION, '"sluice_projection_lag_seconds") > 0'),
    "sluice_projection_rebuilding": (PROJECTION, '"sluice_projection_rebuilding") == 0'),
    "sluice_shard_owner_info": (NODES, "owners(one) == owners(two)"),
    "sluice_shard_owned": (NODES, '"sluice_shard_owned"'),
    "sluice_shard_epoch": (NODES, '"sluice_shard_epoch"'),
    "sluice_shard_unconfirmed_groups": (STORE, "sluice_shard_unconfirmed_groups{shard=\"0\"}') == 1"),
    "sluice_shard_unconfirmed_bytes": (STORE, "sluice_shard_unconfirmed_bytes{shard=\"0\"}') > 1000"),
    "sluice_shard_unconfirmed_seconds": (STORE, "sluice_shard_unconfirmed_seconds{shard=\"0\"}') >= 0.2"),
    "sluice_inbox_messages_total": (INBOXES, 'count(server, "messages_total", f"file://{drop}") == 1'),
    "sluice_inbox_batches_total": (INBOXES, 'count(server, "batches_total", f"file://{drop}") == 1'),
    "sluice_inbox_refused_total": (INBOXES, 'count(server, "refused_total", f"file://{drop}") == 0'),
    "sluice_inbox_up": (INBOXES, 'count(server, "up", f"file://{drop}") == 1'),
    "sluice_http_memory_refused_total": ("tests/unit/http/test_server_limits.c", "SERVER_NO_MEMORY) == 1"),
}


def test_every_metric_of_the_page_has_a_test():
    assert NAMES and sorted(NAMES) == sorted([*CHECKS, *ELSEWHERE])
    for path, text in ELSEWHERE.values():
        assert text in (ROOT / path).read_text()


@pytest.mark.parametrize("name", CHECKS)
def test_a_metric_moves_when_what_it_counts_happens(name, moved):
    """X-05"""
    CHECKS[name](*moved)


@pytest.mark.skipif(ENGINE == "forwarded", reason="the page has what every server has, and no nodes of a store")
def test_the_page_of_metrics_is_current(moved):
    assert PAGE == tool().page(moved[2].text), \
        "run: curl -s localhost:7171/metrics | tools/metrics-doc >docs/metrics.md"


@pytest.mark.skipif(not shutil.which("promtool"), reason="no promtool")
def test_promtool_finds_nothing_wrong(moved):
    for found in moved:
        done = subprocess.run(["promtool", "check", "metrics"], input=found.text, text=True,
                              capture_output=True, timeout=60)
        assert done.returncode == 0 and not done.stdout + done.stderr, done


def test_units_are_in_the_names_and_the_prefix_is_ours():
    for name in NAMES:
        assert name.startswith(("sluice_", "process_"))
        kind = re.search(rf"^\| `{name}` \| (\w+) ", PAGE, re.M)[1]
        assert (kind == "counter") == name.endswith("_total"), name


def test_beyond_so_many_queues_the_rest_is_one(folder):
    """Label cardinality is bounded, and nothing is lost."""
    with Server(folder, "--metrics-queues", "3", engine=QUICK) as server:
        for i in range(10):
            server.enqueue(*({} for _ in range(i + 1)), topic=f"t{i}")
        found = scrape(server)
        topics = {labels["topic"] for labels, _ in found.samples["sluice_queue_messages"]}
        assert topics == {"t0", "t1", "t2", ".other"}
        assert found("sluice_queue_messages", state="ready") == 55
        assert found("sluice_queue_messages", topic=".other", namespace=".other") == 49
        assert found("sluice_queue_accepted_total", topic=".other") == 49
        assert found("sluice_queue_oldest_seconds", topic=".other") > 0
        assert found("sluice_queues") == 10


def test_shards_have_series_of_their_own(folder):
    with Server(folder, "--shards", "3", "--threads", "2", engine=QUICK) as server:
        for i in range(20):
            server.enqueue({}, topic=f"t{i}")
        found = scrape(server)
        for i in "012":
            assert found("sluice_messages_accepted_total", shard=i) > 0
            assert found("sluice_shard_up", shard=i) == 1
        assert found("sluice_queue_messages", state="ready") == 20
        assert found("sluice_http_requests_total", route="POST /enqueue", status="2xx") == 20
