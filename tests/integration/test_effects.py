"""Every setting does something (invariant 12): which test fails when it is disconnected."""
import json
import re
import subprocess
import time
from pathlib import Path

import pytest

from served import SLUICED, Server
from tokens import Secret

TESTS = Path(__file__).parents[1]

# A row each of the table in src/conf/options.c: the file, and a test in it.
EFFECTS = {
    "config": "integration/test_config.py::test_keys_may_be_nested_or_dotted",
    "console": "browser/test_console.py::test_off_removes_it",
    "environment": "browser/test_console.py::test_the_environment_is_shown_on_every_page",
    "trace.url": "browser/test_message.py::test_a_trace_is_a_link_to_the_system_that_keeps_it",
    "data": "integration/test_effects.py::test_data_names_the_folder",
    "listen": "integration/test_sluiced.py::test_it_serves_a_unix_socket",
    "engine": "integration/test_effects.py::test_an_engine_keeps_or_forgets",
    "store": "integration/stores/test_store.py::test_what_was_accepted_survives_the_loss_of_the_folder",
    "store.patience": "fault/test_store.py::test_a_request_waits_for_the_store_no_longer_than_its_patience",
    "store.unsafe": "integration/stores/test_store.py::test_an_unsafe_file_system_is_refused",
    "store.delay": "integration/stores/test_store.py::test_a_delay_is_added_to_each_put",
    "store.puts": "integration/stores/test_store.py::test_groups_stay_within_a_budget_of_puts",
    "store.front": "integration/stores/test_front.py::test_a_database_that_is_away_delays_nothing",
    "front.flush.interval": "integration/stores/test_front.py::test_a_flush_on_demand",
    "front.flush.bytes": "integration/stores/test_front.py::test_size_flushes",
    "front.max": "integration/stores/test_front.py::test_the_limit_of_a_front_folder",
    "front.drain": "integration/stores/test_front.py::test_a_database_that_is_away_delays_nothing",
    "front.down": "fault/test_store.py::test_a_front_folder_that_fails_is_left",
    "front.spare": "fault/test_store.py::test_a_front_folder_that_fails_is_left",
    "redis.address": "integration/redis/test_redis.py::test_any_node_serves_any_queue_and_either_can_be_killed",
    "redis.password": "integration/redis/test_redis.py::test_a_password_is_asked_for_and_never_shown",
    "redis.username": "integration/redis/test_redis.py::test_a_user_needs_no_more_than_is_written_down",
    "redis.db": "integration/redis/test_redis.py::test_databases_are_apart",
    "redis.prefix": "integration/redis/test_redis.py::test_the_keys_have_the_documented_form",
    "redis.timeout": "integration/redis/test_redis.py::test_a_server_that_hangs_is_waited_for_so_long_and_no_longer",
    "redis.tls.enabled": "integration/redis/test_redis_tls.py::test_a_server_without_tls_is_refused",
    "redis.tls.ca": "integration/redis/test_redis_tls.py::test_a_server_that_is_not_trusted_is_refused_with_its_address",
    "redis.tls.cert": "integration/redis/test_redis_tls.py::test_both_sides_show_their_certificates",
    "redis.tls.key": "integration/redis/test_redis_tls.py::test_both_sides_show_their_certificates",
    "redis.tls.name": "integration/redis/test_redis_tls.py::test_the_name_of_the_server_is_checked",
    "sharding.enabled": "integration/test_sharding.py::test_mappings_that_are_not_enabled_are_not_used",
    "sharding.supplier": "integration/test_sharding.py::test_other_suppliers_choose",
    "sharding.defaultShard": "integration/test_sharding.py::test_a_default_shard_has_another_name",
    "sharding.rangeBy": "integration/test_sharding.py::test_other_suppliers_choose",
    "sharding.version": "integration/test_sharding.py::test_a_mapping_that_differs_needs_a_higher_version",
    "sharding.reloadInterval": "integration/test_sharding.py::test_the_file_is_looked_at_by_itself",
    "sync": "fault/test_exit.py::test_a_last_sync_that_fails_is_reported",
    "shards": "integration/test_effects.py::test_shards_are_logs_of_their_own",
    "threads": "integration/test_effects.py::test_threads_serve_connections",
    "node.id": "integration/test_effects.py::test_the_number_of_the_node_is_in_every_id",
    "codeq.path": "integration/dialects/test_codeq.py::test_another_base_path",
    "codeq.tokens": "integration/dialects/test_codeq_tokens.py::test_without_the_setting_the_claims_mean_nothing",
    "codeq.webhook_secret": "integration/dialects/test_codeq_webhooks.py::test_a_webhook_is_signed_and_repeated",
    "codeq.webhook_allow": "integration/dialects/test_codeq_webhooks.py::test_addresses_inside_are_refused",
    "beanstalk.namespace": "integration/dialects/test_beanstalk.py::test_the_namespace_of_the_tubes",
    "beanstalk.max_job_size": "integration/dialects/test_beanstalk.py::test_a_job_that_is_too_big",
    "beanstalk.max_attempts": "integration/dialects/test_beanstalk.py::test_a_job_that_kills_its_workers_is_buried",
    "advertise": "integration/stores/test_takeover.py::test_a_server_advertises_the_address_that_others_name",
    "place": "integration/stores/test_atomic.py::test_all_queues_of_a_namespace_are_on_one_shard_for_all_servers",
    "store.lease": "integration/stores/test_takeover.py::test_a_server_that_is_killed_loses_nothing_and_the_other_takes_over",
    "store.settle": "integration/stores/test_takeover.py::test_a_server_that_has_joined_gets_nothing_before_it_has_settled",
    "start.wait": "fault/test_ready.py::test_a_request_does_not_wait_for_ever",
    "drain": "integration/test_config.py::test_a_reload_changes_how_long_a_stop_may_take",
    "grace": "fault/test_exit.py::test_a_disk_that_hangs_does_not_hold_up_a_stop_for_ever",
    "log.level": "integration/test_config.py::test_a_reload_changes_the_log_level",
    "log.format": "integration/test_sluiced.py::test_a_banner_in_json",
    "limits.rate":
        "integration/test_limits.py::test_a_namespace_over_its_rate_gets_429_and_others_do_not",
    "limits.burst":
        "integration/test_limits.py::test_a_namespace_over_its_rate_gets_429_and_others_do_not",
    "limits.queue_rate":
        "integration/test_limits.py::test_a_queue_has_a_rate_by_its_policy_or_by_the_server",
    "limits.queue_burst":
        "integration/test_limits.py::test_a_queue_has_a_rate_by_its_policy_or_by_the_server",
    "limits.queue_depth":
        "integration/test_limits.py::test_a_queue_takes_no_more_than_its_depth",
    "limits.batch": "integration/test_limits.py::test_a_batch_and_a_payload_have_a_size",
    "limits.payload": "integration/test_limits.py::test_a_batch_and_a_payload_have_a_size",
    "limits.waiting": "integration/test_limits.py::test_no_more_than_so_many_wait",
    "limits.queue_waiting": "integration/test_limits.py::test_no_more_than_so_many_wait",
    "limits.shares": "integration/scheduling/test_shares.py::test_a_shard_has_so_many_shares",
    "limits.outbox": "integration/test_outbox.py::test_a_line_has_so_many_messages",
    "limits.connections":
        "integration/test_limits.py::test_an_operator_gets_in_when_all_connections_are_taken",
    "limits.memory": "integration/test_limits.py::test_bodies_of_requests_take_so_much_memory",
    "limits.uploads": "integration/test_uploads.py::test_unfinished_uploads_are_so_many",
    "limits.upload_bytes": "integration/test_uploads.py::test_unfinished_uploads_have_so_many_bytes",
    "limits.index_memory": "integration/test_memory.py::test_the_limit_is_changed_while_it_runs",
    "limits.queues": "integration/test_memory.py::test_there_are_so_many_queues_and_no_more",
    "limits.namespace_queues": "integration/test_memory.py::test_there_are_so_many_queues_and_no_more",
    "limits.namespace_messages":
        "integration/test_memory.py::test_a_namespace_has_a_quota_of_messages_over_all_shards",
    "limits.namespace_bytes":
        "integration/test_memory.py::test_a_quota_of_bytes_is_exact_after_all_that_happens",
    "limits.quotas":
        "integration/test_memory.py::test_quotas_of_one_namespace_go_before_those_of_all_and_are_reloaded",
    "queue.max_consumers":
        "integration/test_lockd_stream.py::test_one_consumer_more_than_the_cap_is_refused",
    "queue.unsettled":
        "integration/test_lockd_stream.py::test_a_setting_allows_more_unsettled_deliveries",
    "hold.max": "integration/scheduling/test_holds.py::test_hold_max_is_a_setting",
    "queues.idle": "integration/admin/test_queues.py::test_an_unused_queue_is_forgotten",
    "disk.warn": "integration/test_disk_size.py::test_a_disk_with_too_little_room_is_a_warning",
    "metrics.queues": "integration/test_metrics.py::test_beyond_so_many_queues_the_rest_is_one",
    "stats.timeout": "integration/admin/test_views.py::test_a_store_that_hangs_is_waited_for_so_long",
    "prefetch.batch": "integration/stores/test_prefetch.py::test_payloads_of_the_next_messages_are_fetched_ahead",
    "prefetch.bytes": "integration/stores/test_prefetch.py::test_bytes_bound_what_is_fetched_ahead",
    "projection.url": "integration/stores/test_projection.py::test_the_table_has_the_nine_columns_of_each_message",
    "projection.queues": "integration/stores/test_projection.py::test_a_purge_and_queues_that_are_left_out",
    "projection.after": "integration/stores/test_projection.py::test_a_message_that_lives_shortly_never_touches_the_table",
    "projection.changes": "integration/stores/test_projection.py::test_a_database_that_is_down_delays_nothing",
    "flush.batch": "integration/stores/test_projection.py::test_a_transaction_has_a_batch_of_messages",
    "mask": "integration/admin/test_mask.py::test_a_viewer_sees_masked_values_and_who_may_take_the_message_sees_all",
    "audit.file":
        "integration/admin/test_audit.py::test_every_enqueue_has_a_record_with_its_shard_and_the_rule",
    "inboxes": "integration/test_inboxes.py::test_a_file_is_a_message_of_the_server",
    "inbox.settle": "integration/test_inboxes.py::test_the_settings_of_an_inbox_are_those_of_the_server",
    "inbox.poll_interval": "integration/test_inboxes.py::test_the_settings_of_an_inbox_are_those_of_the_server",
    "inbox.poll_jitter": "integration/test_inboxes.py::test_the_settings_of_an_inbox_are_those_of_the_server",
    "inbox.poll_resilient": "integration/test_inboxes.py::test_the_settings_of_an_inbox_are_those_of_the_server",
    "inbox.watch": "integration/test_inboxes.py::test_the_settings_of_an_inbox_are_those_of_the_server",
    "insecure": "integration/test_sluiced.py::test_insecure_listens_everywhere",
    "auth.keys": "integration/test_auth.py::test_keys_are_rotated_by_reloads",
    "auth.jwks": "integration/test_auth.py::test_all_algorithms_out_of_one_key_set",
    "auth.secret": "integration/test_auth.py::test_a_secret_in_the_environment",
    "auth.aws_keys": "integration/dialects/test_sqs_keys.py::test_a_signed_request_has_the_rights_of_its_key",
    "auth.audience": "integration/test_auth.py::test_audience_and_issuer",
    "auth.issuer": "integration/test_auth.py::test_audience_and_issuer",
    "auth.max_age": "integration/test_auth.py::test_a_token_may_have_a_longest_lifetime",
    "auth.leeway": "integration/test_effects.py::test_clocks_may_differ_by_the_leeway",
    "auth.hosts": "integration/test_auth.py::test_web_pages_are_refused_where_no_token_is_asked_for",
    "auth.metrics": "integration/test_auth.py::test_metrics_have_a_setting_of_their_own",
    "auth.certificates":
        "integration/test_tls.py::test_a_file_grants_by_subject_and_uri_name_and_is_reloaded",
    "tls.cert":
        "integration/test_tls.py::test_a_new_certificate_is_for_new_connections_and_old_ones_go_on",
    "tls.key":
        "integration/test_tls.py::test_a_certificate_without_its_key_is_refused_and_the_old_stays",
    "tls.client_ca":
        "integration/test_tls.py::test_a_client_with_a_certificate_of_the_right_ca_is_served",
    "tls.peer_ca": "integration/stores/test_links.py::test_a_certificate_of_another_authority_is_refused",
    "tls.client_auth":
        "integration/test_tls.py::test_a_client_without_a_good_certificate_is_refused",
    "tls.min_version": "integration/test_tls.py::test_a_minimum_version_is_kept",
}


def test_every_setting_has_a_test_of_its_effect():
    out = subprocess.run([SLUICED, "--print-config", "--json"], capture_output=True, text=True,
                         timeout=60, check=True)
    assert sorted(EFFECTS) == sorted(json.loads(out.stdout))


@pytest.mark.parametrize("key", EFFECTS)
def test_the_test_is_there(key):
    file, name = EFFECTS[key].split("::")
    assert re.search(rf"^def {name}\(", (TESTS / file).read_text(), re.M)


def test_data_names_the_folder(tmp_path):
    with Server(tmp_path / "one") as server:
        server.enqueue({"text": "x"})
        server.stop()
        server.folder = tmp_path / "two"
        server.start()
        assert len(server.dequeue()) == 0
        server.stop()
        server.folder = tmp_path / "one"
        server.start()
        assert len(server.dequeue()) == 1


@pytest.mark.parametrize("engine, kept", [("log", 1), ("memory", 0)])
def test_an_engine_keeps_or_forgets(folder, engine, kept):
    with Server(folder, engine=engine) as server:
        server.enqueue({"text": "x"})
        server.restart()
        assert len(server.dequeue()) == kept


def test_shards_are_logs_of_their_own(folder):
    with Server(folder, "--shards", "2") as server:
        assert server.metric('sluice_waiting{shard="1"}') == 0
        with pytest.raises(KeyError):
            server.metric('sluice_waiting{shard="2"}')
        assert len(list(folder.rglob("00000001.log"))) == 2


@pytest.mark.parametrize("n", [1, 3])
def test_threads_serve_connections(folder, n):
    with Server(folder, "--threads", str(n), engine="memory") as server:
        tasks = Path(f"/proc/{server.process.pid}/task")
        names = sorted((task / "comm").read_text().strip() for task in tasks.iterdir())
        assert [name for name in names if name.startswith("net ")] == [f"net {i}" for i in range(n)]


@pytest.mark.parametrize("n", [0, 1, 1023])
def test_the_number_of_the_node_is_in_every_id(folder, n):
    with Server(folder, "--node-id", str(n), engine="memory") as server:
        ids = server.enqueue({"text": "x"}, {"text": "y"})
        assert [i >> 12 & 1023 for i in ids] == [n, n]


@pytest.mark.parametrize("leeway, status", [("0s", 401), ("5m", 200)])
def test_clocks_may_differ_by_the_leeway(folder, tmp_path, leeway, status):
    key = Secret("0123456789abcdef0123456789abcdef")
    (tmp_path / "key").write_bytes(key.secret)
    with Server(folder, "--auth-keys", f"HS256:{tmp_path}/key", "--auth-leeway", leeway,
                engine="memory") as server:
        late = key.bearer(scope="test:read", exp=int(time.time()) - 60)
        assert server.call("GET", "/topics", headers=late, namespace="test").status == status
