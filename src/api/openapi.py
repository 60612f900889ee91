#!/usr/bin/python3 -B
"""The OpenAPI document of sluiced, which it serves at /openapi.json.

    openapi.py VERSION           print it as JSON
    openapi.py VERSION FILE.c    write it as a C array, for the server

tests/unit/api/test_openapi.c holds it to the table of routes, and
tests/integration/test_openapi.py to what the server answers.
"""
import json
import sys

from lockd import openapi as lockd
from lockd import openapi_locks as lockd_locks
from openapi_words import (COUNT, FLAG, MOMENT, TEXT, TIME, answer, array, call, content, each, in_header, in_path,
                           integer, no_stream, ok, parameter, query, record, ref, string, whole)
from codeq import openapi as codeq
from sqs import openapi as sqs

# A dialect has a part in its folder: PATHS and SCHEMAS, and RESPONSES with the form of its errors.
PARTS = [lockd, lockd_locks, sqs, codeq]

# --- what is sent and answered ----------------------------------------------------

HOME = {
    **each(TEXT, "name version"),
    "status": string(enum=["starting", "serving", "stopping"]),
    **each(string(format="uri-reference"), "health ready metrics openapi"),
}
UINT32 = integer(minimum=0, maximum=2**32 - 1)
INT32 = integer(minimum=-2**31, maximum=2**31 - 1)
UP_TO_1000 = {"minItems": 1, "maxItems": 1000}
BASE64 = string(contentEncoding="base64")
SHOWN = {"payload": BASE64, "text": TEXT, "json": True}  # one of them, by `as`
AS = string(enum=["text", "json", "base64"], default="base64")
STATES = ["ready", "delayed", "leased", "held", "dead", "damaged"]
REASON = string(enum=["max_attempts", "expired", "rejected"])
ATTEMPTS = integer(minimum=1, maximum=65535)
LIMIT_OF_PAGE = integer(minimum=1, maximum=1000)

ID = {"id": integer(minimum=1), "uid": string(format="uuid")}
PLACE = each(ref("Name"), "namespace topic queue")
RECEIPT = string(pattern="^[A-Za-z0-9_-]+$", maxLength=512)
OWNER = string(minLength=1, maxLength=128)
TOKENS = {"lease_id": string(pattern="^l-[0-9]+$"), "fencing_token": integer(minimum=1)}
LEASE = {"lease_expires_at": MOMENT, **TOKENS}
WRITTEN = each(MOMENT, "enqueued_at created_at deliver_after")  # known if the record can be read
GIVEN = {
    **PLACE,
    "priority": INT32,
    **each(UINT32, "attempts failure_attempts"),
    "max_attempts": ATTEMPTS,
}
GIVEN_IF_ANY = {
    "unique": record(["key", "until"], {"key": TEXT, "until": TEXT}),
    **each(TEXT, "key share kind rule correlation_id content_type"),
    "attributes": {"type": "object"},
    "traceparent": string(pattern="^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$"),
    "tracestate": string(maxLength=512),
    "dead_letter_of": record(["queue"], {"queue": TEXT, "reason": REASON, "error": TEXT}),
}
MESSAGE = {
    **ID,
    "status": string(enum=[*STATES, "processing"]),
    **GIVEN,
    "lease_expires_at": {"oneOf": [MOMENT, {"type": "null"}]},
}
MESSAGE_IF_ANY = {
    **WRITTEN,
    **GIVEN_IF_ANY,
    **SHOWN,
    **each(TEXT, "owner error"),
    **each(FLAG, "canceled masked"),
    "payload_size": COUNT,
    **each(MOMENT, "next_delivery expires_at claimed_at dead_since damaged_since"),
    "reason": REASON,
}
RANGES = ["10m", "1h", "24h", "7d"]
HISTORY = [
    "in", "done", "failed", "ready", "delayed", "leased", "held", "dead", "oldest_ms",
    "syncs", "puts", *[f"{what}_p{percent}_ms" for what in ("wait", "run", "sync", "put") for percent in (50, 95, 99)]]
COUNTS = each(COUNT, [*STATES, "total"])
QUEUE = {
    **PLACE,
    **each(TEXT, "display_namespace display_topic"),
    **COUNTS,
    **each(FLAG, "paused warning"),
}
PAUSE = {**each(TEXT, "paused_by pause_reason"), "paused_until": MOMENT, "draining": FLAG}
QUEUE_SHOWN = {
    **QUEUE,
    "consumers": COUNT,
    "since_start": whole(each(COUNT, "accepted delivered finished failed died")),
}
KIND = string(pattern="^[A-Za-z0-9._:/-]{1,100}$")
KINDS = string(minLength=1, description="At most 64 kinds with commas: messages of these kinds alone.")
SCOPE = string(enum=["queue", "share", "key", "attribute"])
WORKER_STATE = string(enum=["running", "quiet", "stop"])
SHARDS = {  # with several shards: the shard of the queue, or its counts on each
    "shard": TEXT,
    "shards": array(whole({"shard": TEXT, **COUNTS})),
}
# some shards did not answer in time
PARTIAL = {
    "partial": FLAG,
    "missing": array(record(["shard", "name"], {"shard": COUNT, "name": TEXT, "node": TEXT})),
    "missing_more": COUNT,
    "message": TEXT,
}
RETRY = record([], {
    "kind": string(enum=["exponential", "linear", "fixed", "none"]),
    "jitter": string(enum=["full", "none"]),
    **each(TIME, "base max"),
})
KNOBS = {
    **each(TIME, "lease ttl idempotency_window dlq_retention"),
    "max_attempts": ATTEMPTS,
    "retry": RETRY,
    **each(UINT32, "max_depth warn_depth dlq_max"),
    "warn_age": TIME,
    "tags": string(maxLength=127),
    **each(integer(minimum=0, maximum=10**9), "max_rate burst"),
    "idempotency": string(enum=["first", "strict"]),
    **each(FLAG, "require_lease paused draining"),
    "share_weights": string(maxLength=127),
    "rules": string(maxLength=255),
    "breakers": string(maxLength=255),
    **each(UINT32, "concurrency share_concurrency rate rate_burst share_rate share_rate_burst key_rate key_rate_burst "
           "attribute_concurrency attribute_rate attribute_rate_burst"),
    "limit_attribute": string(maxLength=63),
    "max_runtime": TIME,
    "dead_letter_queue": string(maxLength=128),
}
SCHEDULE_NAME = each(ref("Name"), "namespace name")
SCHEDULE_RULES = {
    "when": string(maxLength=128),
    "zone": string(maxLength=64),
    "missed": string(pattern="^(skip|one|all:[0-9]+)$"),
    "overlap": string(enum=["allow", "skip"]),
    "jitter": TIME,
    "paused": FLAG,
}
SCHEDULE = {
    **SCHEDULE_NAME,
    **SCHEDULE_RULES,
    **each(COUNT, "firings missed_ticks overlaps"),
}


def named(members, **more):
    """A body about one queue, named by `queue` or `topic`."""
    return record(["namespace"], {**PLACE, **members}, anyOf=[
        {"required": ["topic"]}, {"required": ["queue"]}], **more)


def settling(more):
    """A body that settles a message, named by its receipt or by its id."""
    return record([], {"receipt": RECEIPT, "id": ref("Id"), **PLACE, **TOKENS, **more}, oneOf=[
        {"required": ["receipt"]}, {"required": ["id", "namespace"]}])


WITH = {"enqueue": {
    "oneOf": [array(ref("NewMessage"), minItems=1, maxItems=10000), ref("NewMessage")],
    "description": "Messages that are enqueued in the same step. All of it happens, or nothing."},
    "release": record(["key", "lease_id", "txn_id"], {
        "key": TEXT, "lease_id": TEXT, "txn_id": string(pattern="^[0-9a-v]{20}$"), "fencing_token": integer(minimum=1),
        "state": {"description": "Any JSON of at most 1 MiB: the new state of the key."}})}
SOME = {"ids": array(ref("Id"), **UP_TO_1000), "limit": LIMIT_OF_PAGE}
CONDITIONS = {
    "id": ref("Id"),
    **each(TEXT, "key share kind batch correlation_id"),
    "attribute": string(description="NAME=VALUE of an attribute."),
    "body": string(description="PATH=VALUE of a JSON payload, as user.id=42."),
    "text": string(description="A text in the payload."),
    "error": string(description="A text in the last error."),
    "reason": REASON,
    "group": string(pattern="^[0-9a-f]{16}$", description="A group of dead letters."),
    "owner": string(description="The worker that has it leased."),
    **each({"oneOf": [INT32, TEXT]}, "priority_min priority_max"),
    **each({"oneOf": [UINT32, string(pattern="^[0-9]+$")]}, "attempts_over attempts_under"),
    **each(TIME, "older_than newer_than"),
}
TASK_NAME = {"namespace": ref("Name"), "task": string(pattern="^[0-9]+$")}
TASK_ACTION = string(enum=["redrive", "move", "delete", "priority", "run", "delay"])
TASK_ORDERS = {
    "to": ref("Name"),
    **each(FLAG, "to_source dry_run"),
    "priority": {"oneOf": [INT32, TEXT]},
    "rate": integer(minimum=0, maximum=1000000),
    "until": MOMENT,
}
TASK_COUNTS = ["total", "looked", "matched", "done", "refused"]
BACKUP = string(pattern="^[0-9]+$")
OR_NULL = {"oneOf": [TEXT, {"type": "null"}]}
SOME_DEAD = {**SOME, **CONDITIONS, "cursor": ref("Cursor"), "dry_run": FLAG}
NAME_OF_SHARD = string(description="The name of the shard.")
NOT_EMPTY = string(minLength=1)
READY = {  # what /readyz says besides its status
    "reasons": array(ref("NotReadyReason")),
    "warnings": array(ref("Warning")),
    "shard_map": ref("ShardMap"),
    "shards": record(["here", "elsewhere"], {"here": COUNT, "elsewhere": COUNT}),
    "nodes": record(["living", "draining", "unconfirmed_ms"],
                    {"living": COUNT, "draining": FLAG, "beat_age_ms": COUNT, "unconfirmed_ms": COUNT}),
}


def progress(word):
    return record([word], {
        **each(COUNT, [word, "matched", "looked"]),
        "more": FLAG,
        "cursor": ref("Cursor"),
        "results": array(ref("Outcome")),
    })


def page(of, **more):
    """A page of a list: the array, and a cursor if there is more."""
    (name, items), = of.items()
    return record([name, *more], {name: array(ref(items)), **more, "cursor": ref("Cursor")})


SCHEMAS = {
    "Name": string(
        pattern="^[A-Za-z0-9_-][A-Za-z0-9._-]*$", maxLength=128,
        description="The name of a namespace or a queue; upper and lower case are the same."),
    "Id": {
        "oneOf": [integer(minimum=1),
                  string(pattern="^([0-9]{1,19}|[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$")],
        "description": "A 63-bit number, a string of its digits, or the same id as a UUID."},
    "Time": {
        "oneOf": [{"type": "number", "minimum": 0}, string(pattern="^[0-9]")],
        "description": "A duration: a number of seconds, or a string with units: 500ms, 1h30m, 7d."},
    "Moment": string(format="date-time"),
    "Cursor": {
        "oneOf": [COUNT, string(pattern="^[0-9]{1,20}$")],
        "description": "The cursor of the previous page."},
    "Level": string(enum=["debug", "info", "warn", "error", "off"]),
    "Error": record(["error", "message"], {
        "error": string(pattern="^[a-z_]+$"),
        "message": string(minLength=1, description="What is wrong, and where."),
        "index": integer(minimum=0, description="The invalid item of an array."),
        "limit": string(description="The limit that was reached."),
        "owner": string(description="`moved`: the address of the server that has the shard."),
        "path": string(description="The path of a request without a route."),
        "ids": array({"oneOf": [ref("Id"), {"type": "null"}]},
                     description="The ids of an enqueue that some shards accepted and others refused."),
    }),
    "NotReady": record(["error", "message", "status", "reasons"], {
        "error": string(pattern="^[a-z_]+$", description="The first reason."),
        "message": NOT_EMPTY,
        "status": string(enum=["not_ready"]),
        **READY,
    }),
    "NotReadyReason": record(["reason", "message"], {
        "reason": string(enum=["starting", "closed", "shard_failed", "outcome_unknown",
                               "disk_full"]),
        "shard": COUNT,
        "name": NAME_OF_SHARD,
        "read_bytes": integer(minimum=0, description="Bytes read so far, while the server reads its log."),
        "log_bytes": COUNT,
        "message": NOT_EMPTY,
    }),
    "ShardMap": whole({
        "version": COUNT,
        "hash": string(pattern="^[0-9a-f]{16}$",
                       description="Equal on every node with the same map."),
    }),
    "Warning": record(["warning", "message"], {
        "warning": string(enum=["index_memory", "lost_writes", "weak_persistence", "shard_map", "node_id", "disk_space",
                                "clock"]),
        "shard": COUNT,
        "name": NAME_OF_SHARD,
        "message": NOT_EMPTY,
    }),
    "Ready": record(["status"], {
        "status": string(enum=["ready", "degraded"],
                         description="degraded: some shards do not serve."),
        **READY,
    }),
    "Accepted": record([*ID, "duplicate"], {**ID, **each(FLAG, "duplicate pending"),
                                            "unique": string(enum=["new", "kept", "replaced"])}),
    "NewMessage": named({
        **SHOWN,
        "content_type": string(minLength=1, maxLength=128),
        "priority": {"oneOf": [INT32, string(enum=["high", "normal", "low"])], "default": 5},
        "deliver_after": MOMENT,
        **each(TIME, "delay ttl keep_result lease max_runtime"),
        "deadline": MOMENT,
        "retry": RETRY,
        **each(string(minLength=1, maxLength=256), "key idempotency_key"),
        "share": string(minLength=1, maxLength=128, description="Not with kind."),
        "kind": KIND,
        "batch": ref("Id"),
        "unique": record(["key", "until"], {
            "key": string(minLength=1, maxLength=256),
            "until": string(description="started, done, or a time of a second or more."),
            "mode": string(enum=["keep", "replace"], default="keep"),
        }, description="The queue has one message with the key until then. Not with idempotency_key or copy_to."),
        "copy_to": {**array(ref("Name")), "maxItems": 16, "description": "Queues that get a copy of the message."},
        "correlation_id": string(minLength=1, maxLength=128),
        "attributes": {"type": "object"},
        "traceparent": string(description="W3C Trace Context; ignored if invalid."),
        "tracestate": TEXT,
        "max_attempts": ATTEMPTS,
    }, description="At most one of payload, text and json; at most one of deliver_after and delay, and of ttl and deadline."),
    "Claim": named({"limit": LIMIT_OF_PAGE, **each(TIME, "wait lease"), "owner": OWNER, "as": AS,
                    "kinds": KINDS}),
    "Delivery": record([*ID, "receipt", *LEASE, *GIVEN, *WRITTEN],
                       {**ID, "receipt": RECEIPT, **SHOWN, **LEASE, **GIVEN, **WRITTEN, **GIVEN_IF_ANY, "checkpoint": True},
                       oneOf=[{"required": [name]} for name in SHOWN]),
    "Message": record([*MESSAGE], {**MESSAGE, **MESSAGE_IF_ANY}),
    "Event": record(["event", "at"], {
        "event": string(enum=["accepted", "due", "leased", "retry", "dead"]),
        **each(MOMENT, "at until"),
        "attempt": integer(minimum=1),
        "reason": REASON,
    }),
    "Attempt": record(["attempt", "at", "took_ms", "outcome", "fencing_token"], {
        "attempt": integer(minimum=1),
        "at": MOMENT,
        "took_ms": COUNT,
        "outcome": string(enum=["failed", "expired", "rejected", "deferred"]),
        **each(TEXT, "owner version"),
        "fencing_token": COUNT,
        "error": TEXT,
    }),
    "MessageWithHistory": record([*MESSAGE, "history"], {
        **MESSAGE,
        **MESSAGE_IF_ANY,
        "idempotency_key": TEXT,
        "keep_result_s": {"type": "number"},
        "history": array(ref("Event")),
        "attempts_log": array(ref("Attempt"), maxItems=10),
        "version": TEXT,
    }),
    "Acted": record([*ID, "before"], {**ID, "version": TEXT, "before": whole({
        "queue": ref("Name"), "priority": {"type": "integer"}, "deliver_after": MOMENT})}),
    "Messages": page({"messages": "Message"}),
    "Found": page({"messages": "Message"}, looked=UINT32),
    "SearchPage": record(["messages", "looked"], {
        "messages": array(ref("Message")), "looked": UINT32, "of": COUNT, "cursor": ref("Cursor")}),
    "KeyPage": record(["keys", "without_key", "looked"], {
        "without_key": UINT32, "looked": UINT32, "of": COUNT, "cursor": ref("Cursor"), "keys": array(record(
            ["namespace", "queue", "key", "messages", "ready", "delayed", "leased", "held", "dead"], {
                **each(ref("Name"), "namespace queue"), "key": TEXT, **each(COUNT, "messages ready delayed leased held dead"),
                "oldest_at": MOMENT, "front": string(format="uuid"), "front_state": string(enum=["ready", "delayed", "leased"]),
                "owner": TEXT, "until": MOMENT}), maxItems=1000)}),
    "Ack": settling({"result": {"description": "Any JSON of at most 1 MiB."}, **WITH}),
    "Nack": settling({"error": TEXT, "delay": TIME, **each(FLAG, "defer dead"), "retry_after": TIME,
                      "scope": SCOPE, "reason": string(maxLength=63), "priority": {"oneOf": [INT32, string(enum=["high", "normal", "low"])]}, **WITH}),
    "Extend": settling({"lease": TIME, "checkpoint": {"description": "Any JSON of at most 64 KiB."}}),
    "Outcome": record([*ID, "status"], {
        **ID,
        "status": integer(minimum=200, maximum=599),
        **each(TEXT, "error message"),
        **each(MOMENT, "lease_expires_at deliver_after"),
        "dead": FLAG,
        "enqueued": array(ref("Accepted")),
    }),
    "Result": record([*ID, "status"], {
        **ID,
        "status": string(enum=["pending", "done"]),
        "result": True,
        "expires_at": MOMENT,
    }),
    "BatchMade": record(["namespace"], {
        "namespace": ref("Name"),
        "callback": {"type": "object", "description": "The message that begins when all members have ended: as of /enqueue, "
                                                      "without namespace, copy_to and batch."},
        "deadline": MOMENT,
        "timeout": TIME,
    }),
    "BatchNamed": record(["namespace", "id"], {"namespace": ref("Name"), "id": ref("Id")}),
    "Batch": record([*ID, "namespace", "status", "members", "done", "failed", "pending", "created_at"], {
        **ID, "namespace": ref("Name"),
        "status": string(enum=["open", "closed", "done", "failed", "deadline"]),
        **each(UINT32, "members done failed pending"),
        **each(MOMENT, "created_at deadline ended_at"),
        "callback": record(["queue"], {**ID, **each(ref("Name"), "namespace topic queue")}),
    }),
    "Batches": page({"batches": "Batch"}),
    "Why": record([*ID, "reason", "text", "reasons"], {
        **ID,
        **PLACE,
        **each(TEXT, "status reason text kind"),
        "reasons": array(record(["reason", "text"], {
            **each(TEXT, "reason text owner status"),
            "until": MOMENT,
            "behind": ID["id"],
            "behind_uid": ID["uid"],
            "ahead": integer(minimum=0, maximum=10000),
            "more": FLAG,
        })),
        **each(COUNT, "attempts consumers_waiting leased"),
        "batch": record([*ID, "role", "status", "members", "done", "failed", "pending"], {
            **ID, "role": string(enum=["batch", "member", "callback"]),
            "status": string(enum=["open", "closed", "done", "failed", "deadline"]),
            **each(UINT32, "members done failed pending")}),
        "rule": TEXT,
        "estimate": MOMENT,
    }),
    "Queue": record([*QUEUE], {**QUEUE, **PAUSE, **SHARDS, **PARTIAL}),
    "Queues": record(["topics"], {"topics": array(ref("Queue")), "cursor": ref("Cursor"), **PARTIAL}),
    "QueueShown": record([*QUEUE_SHOWN], {**QUEUE_SHOWN, **PAUSE, **SHARDS, "tags": TEXT, **each(COUNT, "oldest_ready_ms wait_p95_ms empty_in_ms slots slots_used warn_depth warn_age_ms")}),
    "QueuesShown": record(["queues"], {"queues": array(ref("QueueShown")), "cursor": ref("Cursor"), **PARTIAL}),
    "QueueWithPolicy": record([*QUEUE_SHOWN, "policy"], {
        **QUEUE_SHOWN, **PAUSE, **SHARDS, **PARTIAL, "tags": TEXT, **each(COUNT, "oldest_ready_ms wait_p95_ms empty_in_ms slots slots_used warn_depth warn_age_ms"), "policy": ref("Knobs")}),
    "AuditLines": whole({"lines": array({"type": "object"}), "looked": COUNT, "whole": FLAG}),
    "History": record(["range", "step_ms", "steps"], {
        **PLACE, **PARTIAL, "range": string(enum=RANGES), "step_ms": COUNT, "steps": COUNT, "end": MOMENT,
        **each(array({"oneOf": [{"type": "number", "minimum": 0}, {"type": "null"}]}), HISTORY)}),
    "LiveLine": record(["at", "queues", "more"], {
        "at": MOMENT, "more": FLAG, "problems": COUNT,
        "queues": array({"oneOf": [ref("QueueShown"), whole({**PLACE, "gone": FLAG})]}),
        "totals": {"type": "object"}}),
    "Knobs": record([], KNOBS),
    "Policy": whole({**PLACE, **KNOBS}),
    "Limits": record(["namespace", "topic", "shares", "values", "on_hold", "broken", "limits", "holds", "breakers"], {
        "kinds": array(record(["kind", "messages", "ready", "leased", "consumers_waiting"], {
            "kind": TEXT, **each(COUNT, "messages ready leased consumers_waiting")}),
            description="With order=kind, instead of limits, holds and breakers."),
        **PLACE, **each(COUNT, "shares values on_hold broken"), "cursor": ref("Cursor"),
        "limits": array(record(["scope", "leased"], {
            "scope": SCOPE, "name": TEXT, **each(COUNT, "messages ready leased delivered oldest_ready_ms"),
            **each(UINT32, "concurrency rate burst tokens weight"), **each(MOMENT, "next_delivery hold_until")})),
        "holds": array(record(["scope", "until"], {"scope": SCOPE, "name": TEXT, "until": MOMENT})),
        "breakers": array(record(["breaker", "scope", "state", "probing", "until"], {
            "breaker": TEXT, "scope": SCOPE, "name": TEXT, "state": string(enum=["open", "half-open"]), "probing": FLAG,
            "until": MOMENT}))}),
    "Breaker": named({"breaker": TEXT, "state": string(enum=["open", "closed"]), "scope": SCOPE, "name": TEXT, "for": TIME}),
    "Hold": named({"scope": SCOPE, "name": TEXT, "for": TIME}),
    "QueueName": named({}),
    "Pause": named({"reason": {**TEXT, "maxLength": 200}, "for": TIME}),
    "ScheduleName": whole(SCHEDULE_NAME),
    "ScheduleToSet": record(["namespace", "name", "when", "message"], {
        **SCHEDULE_NAME, **SCHEDULE_RULES, "message": {"type": "object"}}),
    "Schedule": whole({
        **SCHEDULE, "message": {"type": "object"}, "next": array(MOMENT, maxItems=5),
        "last": array(record(["tick", "at", "outcome"], {
            "tick": MOMENT, "at": MOMENT, "outcome": string(enum=["fired", "run", "overlap"]), **ID}), maxItems=20)}),
    "ScheduleInList": record([*SCHEDULE], {**SCHEDULE, "next_at": MOMENT}),
    "Worker": record(["namespace", "worker", "state", "queues", "slots", "used", "lost_leases", "late_renewals", "crashes", "since", "last_beat"], {
        "namespace": ref("Name"), "state": WORKER_STATE, **each(TEXT, "worker host version"), "queues": array(ref("Name")),
        **each(COUNT, "slots used lost_leases late_renewals crashes"), **each(MOMENT, "since last_beat crashed_at")}),
    "LockPage": record(["locks", "looked"], {"looked": COUNT, "cursor": TEXT, "locks": array(whole({
        "namespace": ref("Name"), **each(TEXT, "key holder"), **each(COUNT, "token waiters version"), "expires_at": MOMENT}))}),
    "WorkerPage": page({"workers": "Worker"}),
    "SchedulePage": page({"schedules": "ScheduleInList"}),
    "TaskName": whole(TASK_NAME),
    "Groups": record(["groups", "looked"], {"looked": COUNT, "cursor": ref("Cursor"), "groups": array(record(
        ["group", "error", "reason", "count", "first_at", "last_at", "hours", "sample_uid"], {
            "group": CONDITIONS["group"], **each(TEXT, "error sample"), "reason": REASON, "count": COUNT,
            **each(MOMENT, "first_at last_at"), "hours": array(COUNT, minItems=24, maxItems=24),
            "versions": array(whole({"version": TEXT, "count": COUNT}), maxItems=8), "sample_uid": string(format="uuid")}), maxItems=1000)}),
    "TaskToBegin": record(["namespace", "action"], {
        **PLACE, **CONDITIONS, **TASK_ORDERS, "action": TASK_ACTION, "state": string(enum=["ready", "delayed", "held", "dead", "all"]),
        "stop_if_failing": UINT32, **each(TIME, "delay start_in")}, anyOf=[{"required": ["topic"]}, {"required": ["queue"]}]),
    "Task": record([
        "task", "namespace", "queue", "action", "state", "filter", "dry_run", *TASK_COUNTS, "created_at"], {
        **TASK_NAME, "queue": ref("Name"), "action": TASK_ACTION, **TASK_ORDERS,
        "state": string(enum=["running", "canceling", "done", "canceled", "stopped", "failed"]),
        "filter": record([], {**CONDITIONS, "state": string(enum=STATES)}), **each(COUNT, [*TASK_COUNTS, "failures"]),
        "stop_if_failing": COUNT, **each(TEXT, "error by"), **each(MOMENT, "created_at start_at ended_at")}),
    "Tasks": whole({"tasks": array(ref("Task"))}),
    "Paused": record([*PLACE, "paused"], {**PLACE, **PAUSE, "paused": FLAG}),
    "MessageName": record(["namespace", "id"], {**PLACE, "id": ref("Id")}),
    "Some": named(SOME),
    "SomeDead": named(SOME_DEAD),
    "SomeDeadTo": named({**SOME_DEAD, "to": ref("Name")}),
    "Redriven": progress("redriven"),
    "Deleted": progress("deleted"),
    "Backup": whole({
        "backup": BACKUP,
        **each(TEXT, "version engine"),
        "shards": array(whole({
            **each(TEXT, "name folder"), **each(COUNT, "shard files bytes last"), "time": MOMENT})),
        "left_out": array(whole(each(TEXT, "name engine"))),
        "bytes": COUNT,
    }),
    "Nodes": whole({
        "draining": FLAG, "lease_ms": COUNT,
        "nodes": array(whole({**each(OR_NULL, "name address version"), "life": TEXT, **each(FLAG, "self living draining"),
                              "beat_age_ms": {"oneOf": [COUNT, {"type": "null"}]}, "shards": COUNT})),
        "shards": array(whole({"name": TEXT, "shard": COUNT, "epoch": COUNT, **each(OR_NULL, "owner next")})),
    }),
    "Setting": whole({"value": True, **each(TEXT, "from kind"), **each(FLAG, "reload secret")}),
    "LogLevel": whole({"level": ref("Level")}),
    "Status": whole({"status": TEXT}),
    "Home": record([*HOME], {**HOME, "environment": TEXT, "trace_url": TEXT}),
}

PARAMETERS = {
    "namespace": query("namespace", ref("Name"), required=True),
    "topic": query("topic", ref("Name"), text="The same as `queue`; a call about a queue needs one of them."),
    "queue": query("queue", ref("Name"), text="The queue. If `topic` is sent too, it must be equal."),
    "limit": query("limit", LIMIT_OF_PAGE),
    "cursor": query("cursor", ref("Cursor")),
}
NAMESPACE, TOPIC, ALSO_QUEUE, LIMIT, CURSOR = (parameter(name) for name in PARAMETERS)
NAMESPACE_OF_SCHEDULE = query("namespace", ref("Name"), required=True)
NAME_OF_SCHEDULE = query("name", ref("Name"), required=True)
PLACED = [NAMESPACE, TOPIC, ALSO_QUEUE]
SHOWN_AS = query("as", AS, text="The form of payloads: `text` if UTF-8, `json` if JSON. "
                                "Others are `payload`, in base64.")
STATE = query("state", string(enum=[*STATES, "all"]))
FILTER = [query(name, schema) for name, schema in CONDITIONS.items()]
MASK = query("mask", FLAG, text="Masked bodies also for a caller who may see them.")

# --- calls ------------------------------------------------------------------------


def error(text):
    return answer(ref("Error"), text)


NO_SUCH = {"404": error("No such message or queue in this namespace.")}
NO_STORE = {"404": error("The server shares no store with other nodes.")}
LOST = {"409": error("The lease has ended, or is not the current one. Nothing has changed.")}
FULL = {"429": {
    "description": "A limit was reached.",
    "headers": {"Retry-After": {"schema": COUNT, "description": "Seconds."}},
    "content": content(ref("Error")),
}}
OUTCOME = answer({"oneOf": [ref("Outcome"), array(ref("Outcome"))]},
                 "Done. For an array each item has its own status.")
OUTCOME["headers"] = {"Sluice-Failed": {
    "schema": integer(minimum=1),
    "description": "The number of items that failed; missing if none failed."}}


def one_or_many(name):
    return {"oneOf": [ref(name), array(ref(name), **UP_TO_1000)]}


def messages(name, summary, answers, parameters=(), body=None):
    return call(name, "messages", summary, answers, parameters, body)


def topics(name, summary, answers, parameters=(), body=None):
    return call(name, "topics", summary, answers, parameters, body)


def letters(name, summary, answers, parameters=(), body=None):
    return call(name, "dead letters", summary, answers, parameters, body)


def admin(name, summary, answers, parameters=(), body=None):
    return call("admin" + name, "administration", summary, answers, parameters, body)


def plain(name, summary, answers, free=True):
    return call(name, "plain", summary, answers, free=free)


def policy(path, kind, prefix=""):
    """The rows of a policy."""
    shown = ok("Policy", "All settings in force.")
    dry_run = query("dry_run", FLAG, text="Check the settings, change nothing, and answer the settings "
                                          "that would result.")
    return [
        ("get", path, kind(prefix + "Policy", "Show the settings of a queue", shown, PLACED)),
        ("put", path, kind(prefix + "SetPolicy", "Set all settings; those that are not named get their defaults",
                           shown, [*PLACED, dry_run], "Knobs")),
        ("post", path, kind(prefix + "ChangePolicy", "Set the settings that are named", shown,
                            [*PLACED, dry_run], "Knobs")),
    ]


MOVED = {
    **each(COUNT, "moved taken batches left leased dead damaged idempotency_keys results there"),
    **each(FLAG, "by_hand resumed done"),
}
DELIVERIES = ok(array(ref("Delivery")), "The leased messages; [] if no message is ready.")
SETTLED = {"200": OUTCOME, **NO_SUCH, **LOST}
A_PAGE = [LIMIT, CURSOR]
ROWS = [
    ("post", "/enqueue", messages(
        "enqueue", "Accept messages; the answer comes when they are on disk",
        {**ok(array({"oneOf": [integer(minimum=1), string(format="uuid"), ref("Accepted")]}),
              "The ids, in the order of the items."), **FULL,
         "404": error("No such batch in this namespace. Nothing was accepted."),
         "409": error("The queue is strict, and another payload was sent under an idempotency "
                      "key; or the batch is closed; or the queue is drained. Nothing was accepted.")},
        [query("ids", string(enum=["uid"]), text="Answer UUIDs."),
         query("detail", string(enum=["0", "1"]), text="1: answer objects that say which items are duplicates."),
         query("atomic", FLAG, text="true: all items are accepted, or none, also over several shards.")],
        {"oneOf": [array(ref("NewMessage"), minItems=1, maxItems=10000), ref("NewMessage")]})),
    ("get", "/dequeue", messages(
        "dequeue", "Lease the best messages of a queue", DELIVERIES,
        [*PLACED, LIMIT,
         query("wait", TIME, text="How long to wait for the first message, at most 1 h."),
         query("lease", TIME, text="1 ms to 12 h."),
         SHOWN_AS,
         query("owner", OWNER, text="The name of the consumer. Default: the name of the caller."),
         query("kinds", KINDS, text="Messages of these kinds alone.")])),
    ("post", "/dequeue", messages(
        "dequeueByBody", "Lease the best messages of a queue, with a body", DELIVERIES, body="Claim")),
    ("post", "/ack", messages("ack", "Finish a message: it is deleted", SETTLED, body=one_or_many("Ack"))),
    ("post", "/nack", messages("nack", "Give a message back: it failed, or not now, or never again",
                               SETTLED, body=one_or_many("Nack"))),
    ("post", "/worker", messages(
        "worker", "Say that a worker lives, and learn what is asked of it",
        ok(whole({"state": WORKER_STATE}), "What an operator asks of the worker."),
        [in_header("Sluice-Worker", TEXT,
                   text="`name=mailer-1; host=web-7; version=1.4; instance=5c1f; slots=8; used=3; lost=0`")],
        body=record(["namespace"], {"namespace": ref("Name"), "queue": ref("Name"), "topic": ref("Name")}))),
    ("get", "/stream", messages("stream", "Many requests at once, as frames", no_stream("Error"))),
    ("post", "/extend", messages("extend", "Extend the lease of a message", SETTLED, body=one_or_many("Extend"))),
    ("get", "/result", messages(
        "result", "Show the result of an ack",
        {**ok("Result", "The message was acked."),
         "202": answer(ref("Result"), "The message is not acked yet."), **NO_SUCH},
        [query("receipt", RECEIPT, text="Instead of id, namespace and queue."),
         query("id", ref("Id")), query("namespace", ref("Name")), TOPIC, ALSO_QUEUE,
         query("wait", TIME, text="How long to wait for the ack, at most 1 h.")])),
    ("get", "/why", messages(
        "why", "Show why a message is not running now, and when it is expected to run",
        {**ok("Why", "The reasons; the first is the answer."), **NO_SUCH},
        [query("receipt", RECEIPT, text="Instead of id, namespace and queue."),
         query("id", ref("Id")), query("namespace", ref("Name")), TOPIC, ALSO_QUEUE])),
    ("get", "/peek", messages(
        "peek", "Look at messages without taking them",
        {**ok({"oneOf": [ref("Messages"), ref("Message")]}, "A page, or the message with the given id."), **NO_SUCH},
        [*PLACED, *A_PAGE, SHOWN_AS, STATE, query("id", ref("Id"))])),
    ("post", "/batches", messages(
        "createBatch", "Make a batch of messages", ok("Batch", "The batch."), body="BatchMade")),
    ("get", "/batches", messages(
        "batches", "List the batches of a namespace", ok("Batches", "A page."), [NAMESPACE, *A_PAGE])),
    ("post", "/batches/close", messages(
        "closeBatch", "Let no more messages join a batch", {**ok("Batch", "The batch."), **NO_SUCH}, body="BatchNamed")),
    ("get", "/batch", messages(
        "batch", "Show a batch", {**ok("Batch", "The batch."), **NO_SUCH}, [NAMESPACE, query("id", ref("Id"))])),
    ("get", "/stats", topics(
        "stats", "Count the messages of a queue", {**ok("Queue", "The topic."), **NO_SUCH}, PLACED)),
    ("get", "/topics", topics(
        "topics", "List the queues of a namespace", ok("Queues", "A page."), [NAMESPACE, *A_PAGE])),
    *policy("/policy", topics, "topic"),
    ("get", "/dlq", letters(
        "dead", "List dead letters, oldest first", ok("Messages", "A page."), [*PLACED, *A_PAGE, SHOWN_AS])),
    ("post", "/dlq/redrive", letters(
        "redriveDead", "Make dead letters ready again, without failures", ok("Redriven", "How many."), body="Some")),
    ("post", "/dlq/delete", letters("deleteDead", "Delete some", ok("Deleted", "How many."), body="Some")),
    ("get", "/", plain("home", "Version, state and links", {"200": {
        "description": "A page for a browser, which asks for text/html; JSON otherwise.",
        "content": {**content(ref("Home")), "text/html": {"schema": TEXT}}},
        "302": {"description": "To the console, for a browser."}})),
    ("get", "/console", plain("consoleEnter", "The web console", {
        "302": {"description": "To /console/."}})),
    ("get", "/console/{file}", call("console", "plain", "A file of the web console", {
        "200": {"description": "The file.", "content": {
            kind: {"schema": TEXT} for kind in ("text/html", "text/css", "text/javascript", "image/svg+xml")}},
        "304": {"description": "The client has it, by its ETag."},
        "404": error("No such file, or the console is off.")},
        [in_path("file", TEXT)], free=True)),
    ("get", "/healthz", plain("healthz", "The process answers", ok("Status", "It does."))),
    ("get", "/readyz", plain("readyz", "The server accepts work", {
        **ok("Ready", "It does."),
        "503": answer(ref("NotReady"), "The server starts or stops, or a shard has failed or is full.")})),
    ("get", "/metrics", plain("metrics", "Metrics for Prometheus", {"200": {
        "description": "Prometheus text, version 0.0.4.",
        "content": {"text/plain": {"schema": TEXT}}}}, free=False)),
    ("get", "/openapi.json", plain("openapi", "This document", ok({"type": "object"}, "OpenAPI 3.1."))),
    ("get", "/v1/admin/queues", admin(
        "Queues", "List the queues of a namespace, or of all", ok("QueuesShown", "A page."),
        [query("namespace", ref("Name")), *A_PAGE])),
    ("delete", "/v1/admin/queues/{namespace}/{topic}", admin(
        "DeleteQueue", "Delete a queue with its policy, remembered keys and results",
        {**ok(whole({**PLACE, "deleted": FLAG, "messages": COUNT}),
              "The queue is deleted; `messages` is the number of its messages."), **NO_SUCH,
         "409": error("The queue holds messages, and force is not set; or it has moved between shards.")},
        [in_path("namespace", ref("Name")), in_path("topic", ref("Name")),
         query("force", FLAG, text="Delete its messages too, leased ones and dead letters as well.")])),
    ("get", "/v1/admin/queue", admin(
        "Queue", "Show a queue with its counts and its policy",
        {**ok("QueueWithPolicy", "The queue."), **NO_SUCH}, PLACED)),
    ("post", "/v1/admin/queue/pause", admin(
        "Pause", "Pause a queue: deliver nothing, for a while or until it is resumed",
        {**ok("Paused", "The queue is paused."), **NO_SUCH}, body="Pause")),
    ("get", "/v1/admin/queue/limits", admin(
        "Limits", "Show what a queue uses of its limits, its first shares, and its holds",
        {**ok("Limits", "The limits."), **NO_SUCH}, [
            *PLACED, query("order", string(enum=["limit", "messages", "kind"]),
                           text="Shares nearest to a limit first, or shares with the most messages, or kinds."), CURSOR])),
    ("get", "/v1/admin/queue/priorities", admin(
        "Priorities", "Count the messages of a queue by priority",
        {**ok(record([*PLACE, "priorities", "looked"], {
            **PLACE, "looked": COUNT, "cursor": TEXT, "priorities": array(record(["priority", "messages", "ready", "leased"], {
                "priority": INT32, **each(COUNT, "messages ready leased")}), maxItems=256)}),
             "Of a page of messages."), **NO_SUCH}, [*PLACED, CURSOR])),
    ("post", "/v1/admin/queue/hold", admin(
        "Hold", "Deliver nothing of a queue, share, key or attribute value for a while, or end that",
        {**ok(record(["namespace", "topic", "scope", "on_hold"], {
            **PLACE, "scope": SCOPE, "name": TEXT, "on_hold": FLAG, "until": MOMENT}), "The hold."), **NO_SUCH},
        body="Hold")),
    ("post", "/v1/admin/queue/breaker", admin(
        "Breaker", "Open or close a breaker of a queue",
        {**ok(record(["namespace", "topic", "breaker", "scope", "state"], {
            **PLACE, "breaker": TEXT, "scope": SCOPE, "name": TEXT, "state": string(enum=["open", "closed"]),
            "until": MOMENT}), "The breaker."), **NO_SUCH},
        body="Breaker")),
    ("post", "/v1/admin/queue/drain", admin(
        "DrainQueue", "Drain a queue: accept no new messages, and deliver those that wait",
        {**ok("Paused", "The queue is being drained."), **NO_SUCH}, body="QueueName")),
    ("post", "/v1/admin/queue/resume", admin(
        "Resume", "Resume a queue: it delivers and accepts messages",
        {**ok("Paused", "The queue is neither paused nor drained."), **NO_SUCH}, body="QueueName")),
    ("post", "/v1/admin/queue/purge", admin(
        "Purge", "Delete all messages that are neither leased nor dead",
        {**ok(whole({**PLACE, "purged": COUNT}), "How many."), **NO_SUCH}, body="QueueName")),
    *policy("/v1/admin/queue/policy", admin),
    ("get", "/v1/admin/schedules", admin(
        "Schedules", "List the schedules of a namespace", ok("SchedulePage", "A page."),
        [NAMESPACE_OF_SCHEDULE, *A_PAGE])),
    ("get", "/v1/admin/schedule", admin(
        "Schedule", "Show a schedule: its next 5 ticks and its last 20 firings",
        {**ok("Schedule", "The schedule."), **NO_SUCH},
        [NAMESPACE_OF_SCHEDULE, NAME_OF_SCHEDULE])),
    ("put", "/v1/admin/schedule", admin(
        "SetSchedule", "Make or change a schedule", ok("Schedule", "The schedule."), body="ScheduleToSet")),
    ("post", "/v1/admin/schedule/delete", admin(
        "DeleteSchedule", "Delete a schedule",
        {**ok(whole({**SCHEDULE_NAME, "deleted": FLAG}), "The schedule is gone."), **NO_SUCH},
        body="ScheduleName")),
    ("post", "/v1/admin/schedule/pause", admin(
        "PauseSchedule", "Pause a schedule: what it passes over is not missed",
        {**ok("Schedule", "The schedule."), **NO_SUCH}, body="ScheduleName")),
    ("post", "/v1/admin/schedule/resume", admin(
        "ResumeSchedule", "Resume a schedule", {**ok("Schedule", "The schedule."), **NO_SUCH}, body="ScheduleName")),
    ("post", "/v1/admin/schedule/run", admin(
        "RunSchedule", "Begin a message of a schedule now",
        {**ok(whole({**SCHEDULE_NAME, **ID}), "The message."), **NO_SUCH}, body="ScheduleName")),
    ("get", "/v1/admin/dlq/groups", admin(
        "DeadGroups", "Group dead letters by their errors without numbers and ids", ok("Groups", "Those of a page, most first."),
        [*PLACED, *A_PAGE, *FILTER])),
    ("get", "/v1/admin/tasks", admin(
        "Tasks", "List the tasks of a namespace, newest first", ok("Tasks", "All of them."),
        [NAMESPACE_OF_SCHEDULE, query("queue", ref("Name")), query("topic", ref("Name"))])),
    ("get", "/v1/admin/task", admin(
        "Task", "Show a task and its progress", {**ok("Task", "The task."), **NO_SUCH},
        [NAMESPACE_OF_SCHEDULE, query("task", TASK_NAME["task"], required=True)])),
    ("post", "/v1/admin/task", admin(
        "BeginTask", "Begin a task: redrive, move, delete, re-prioritise, run or delay the messages of a queue that match",
        {**ok("Task", "The task."), **NO_SUCH}, body="TaskToBegin")),
    ("post", "/v1/admin/task/cancel", admin(
        "CancelTask", "End a task soon; what it has done stays done", {**ok("Task", "The task."), **NO_SUCH}, body="TaskName")),
    ("get", "/v1/admin/messages", admin(
        "Messages", "Browse and search messages", ok("Found", "A page."), [*PLACED, *A_PAGE, STATE, *FILTER, MASK])),
    ("get", "/v1/admin/locks", admin(
        "Locks", "List the lock keys of a namespace that are held", ok("LockPage", "A page."),
        [query("namespace", ref("Name"), required=True), query("prefix", TEXT), query("cursor", TEXT),
         query("limit", integer(minimum=1, maximum=200))])),
    ("post", "/v1/admin/lock/release", admin(
        "ReleaseLock", "Take a lock key from the holder with this token",
        {**ok(whole({"namespace": ref("Name"), "key": TEXT, "holder": TEXT, "released": FLAG}), "It is released."), **NO_SUCH,
         "409": error("Another lease has begun since. Nothing has changed.")},
        body=whole({"namespace": ref("Name"), "key": TEXT, "token": COUNT}))),
    ("get", "/v1/admin/workers", admin(
        "Workers", "List the workers that say who they are", ok("WorkerPage", "A page."),
        [query("namespace", ref("Name")), query("queue", ref("Name")), *A_PAGE])),
    *(("post", f"/v1/admin/worker/{verb}", admin(
        f"{verb.capitalize()}Worker", text, {**ok(whole({"namespace": ref("Name"), "worker": TEXT, "state": WORKER_STATE}),
                                                 "What the worker is asked."), **NO_SUCH},
        body=whole({"namespace": ref("Name"), "worker": TEXT}))) for verb, text in (
            ("quiet", "Ask a worker to take no more messages"), ("resume", "Let a quiet worker take messages again"),
            ("stop", "Ask a worker to end"))),
    ("get", "/v1/admin/search", admin(
        "Search", "Search the messages of all queues of a namespace, or of all",
        ok("SearchPage", "A page: `looked` of the messages were examined, `of` all."),
        [query("namespace", ref("Name")), *A_PAGE, STATE, *FILTER, MASK])),
    ("get", "/v1/admin/keys", admin(
        "Keys", "List the ordering keys of a queue, of a namespace or of all: how deep they are, and what holds them",
        ok("KeyPage", "Those of a page of messages, deepest first."),
        [query("namespace", ref("Name")), query("queue", ref("Name")), query("topic", ref("Name")), query("key", TEXT), *A_PAGE])),
    *(("post", f"/v1/admin/message/{verb}", admin(
        f"{verb.capitalize()}Message", text, {**ok("Acted", "What the message was before."), **NO_SUCH, "409": error(
            "The message is leased, has another version, or its key or its result stands in the way.")},
        body=record(["namespace", "id"], {**PLACE, "id": ref("Id"), "version": TEXT, **more}))) for verb, text, more in (
            ("run", "Make a delayed message due now", {}),
            ("delay", "Delay a message that waits", {"delay": TIME, "until": MOMENT}),
            ("priority", "Change the priority of a message that waits", {"priority": {"oneOf": [INT32, string(enum=["high", "normal", "low"])]}}),
            ("move", "Move a message that waits to another queue", {"to": ref("Name")}),
            ("edit", "Change the body of a message that waits or is dead, and requeue it",
             {"text": TEXT, "json": True, "payload": TEXT}))),
    ("get", "/v1/admin/message", admin(
        "Message", "Show a message and its history", {**ok("MessageWithHistory", "The message."), **NO_SUCH},
        [*PLACED, query("id", ref("Id"), required=True), MASK])),
    ("post", "/v1/admin/message/delete", admin(
        "DeleteMessage", "Delete a message that is not leased",
        {**ok(whole({**ID, "deleted": FLAG}), "The message is deleted."), **NO_SUCH,
         "409": error("The message is leased.")}, body="MessageName")),
    ("post", "/v1/admin/message/cancel", admin(
        "CancelMessage", "Delete a message, or cancel one that is leased",
        {**ok(record([*ID, "running"], {**ID, "running": FLAG, "lease_expires_at": MOMENT}), "The message is deleted; or canceled, if it is running."),
         **NO_SUCH}, body="MessageName")),
    ("get", "/v1/admin/dlq", admin(
        "Dead", "List and search dead letters, oldest first", ok("Found", "A page."), [*PLACED, *A_PAGE, *FILTER, MASK])),
    ("post", "/v1/admin/dlq/redrive", admin(
        "RedriveDead", "Redrive dead letters, here or to another queue",
        ok("Redriven", "What was done, and whether more are left."), body="SomeDeadTo")),
    ("post", "/v1/admin/dlq/delete", admin(
        "DeleteDead", "Delete dead letters", ok("Deleted", "What was done, and whether more are left."),
        body="SomeDead")),
    ("post", "/v1/admin/backup", admin(
        "Backup", "Begin a backup: pin the files of the log",
        {**ok("Backup", "The files to copy."), "409": error("Four backups are running.")}, body=record([], {}))),
    ("get", "/v1/admin/backup", admin(
        "BackupFile", "Read up to 1 MiB of a file",
        {"200": {"description": "A line of JSON, then the bytes that it describes.",
                 "content": {"application/octet-stream": {}}}, **NO_SUCH},
        [query("backup", BACKUP, required=True), *(query(name, COUNT) for name in ("shard", "file", "at"))])),
    ("post", "/v1/admin/backup/end", admin(
        "BackupEnd", "End a backup: unpin the files",
        {**ok(whole({"ended": FLAG}), "The backup has ended."), **NO_SUCH}, body=whole({"backup": BACKUP}))),
    ("get", "/v1/admin/log-level", admin("LogLevel", "Show the log level", ok("LogLevel", "The level."))),
    ("put", "/v1/admin/log-level", admin(
        "SetLogLevel", "Set the log level until the next start", ok("LogLevel", "The level."), body="LogLevel")),
    ("post", "/v1/admin/shards/move", admin(
        "Move", "Move a queue to another shard, for a second; call again until done",
        {**ok(whole({**MOVED, "queues": array(whole({**MOVED, "namespace": TEXT})),
                     "skipped": array(whole(each(TEXT, "namespace shard")))}),
              "The progress of the move."), **NO_SUCH},
        body=record(["command", "from", "to"], {
            **each(TEXT, "command tenant from to"), "batch": integer(minimum=1, maximum=10000),
            **each(FLAG, "dry_run force_expire")}))),
    ("post", "/v1/admin/intake", admin(
        "Intake", "Accept a batch of messages from outside, once",
        {**ok(record(["accepted", "batch", "last", "messages", "shard"], {
            "accepted": FLAG, **each(COUNT, "batch last messages"), "shard": TEXT, "ids": array(ref("Id"))}),
            "`accepted` is false if the shard had accepted the batch, or a later one, before."), **NO_SUCH},
        body=record(["source", "batch"], {
            "source": {"type": "string", "format": "uuid"}, "batch": integer(minimum=1), "shard": TEXT,
            "messages": array(ref("NewMessage"), maxItems=10000)}))),
    ("post", "/v1/admin/intake/places", admin(
        "IntakePlaces", "Name the shards that accept batches for these queues",
        ok(whole({"shards": array(TEXT)}), "One shard for each queue, in the same order."),
        body=whole({"queues": array(record(["namespace", "queue"], each(ref("Name"), "namespace queue topic")))}))),
    ("get", "/v1/admin/nodes", admin(
        "Nodes", "List the nodes of the store that this server shares, and the owners of shards",
        {**ok("Nodes", "The nodes, as this server sees them; the first is the server itself."), **NO_STORE})),
    ("post", "/v1/admin/nodes/drain", admin(
        "Drain", "Hand over the shards of this server to other nodes, and take none",
        {**ok("Nodes", "The server drains. Look again until it owns no shard."), **NO_STORE,
         "409": error("No other node could take the shards.")}, body=record([], {}))),
    ("post", "/v1/admin/nodes/resume", admin(
        "ResumeNode", "Take part again after a drain",
        {**ok("Nodes", "The server gets its share of the shards after store.settle."), **NO_STORE}, body=record([], {}))),
    ("post", "/v1/admin/nodes/flush", admin(
        "Flush", "Carry what the front folders of this server have to their stores, without waiting for the next tick",
        {**ok(whole({"shards": COUNT}), "So many shards have a front folder. Their lag falls to 0 if the store answers."),
         "404": error("No shard of this server has a front folder.")}, body=record([], {}))),
    ("get", "/v1/admin/audit", admin(
        "Audit", "Show the last lines of the audit file, newest first",
        {**ok("AuditLines", "`looked`: how many lines were examined; `whole`: the file has no earlier lines."),
         "404": error("The server writes no audit file.")},
        [query("limit", integer(minimum=1, maximum=1000)),
         *[query(name, TEXT, text="Only lines with this value.") for name in ("verb", "namespace", "queue", "who")]])),
    ("get", "/v1/admin/live", admin(
        "Live", "Follow the queues: a line of JSON whenever some have changed",
        {"200": {"description": "Lines that follow each other until the client or the server ends the answer. `more`: too many "
                                "queues have changed for a line; list them.",
                 "content": {"application/x-ndjson": {"schema": ref("LiveLine")}}}},
        [query("namespace", ref("Name"), text="Only queues of this namespace.")])),
    ("get", "/v1/admin/history", admin(
        "History", "Show the recent past of a queue, or of all queues of the server",
        {**ok("History", "The values of each step, oldest first. A queue that has not moved for an hour has no steps."),
         **NO_SUCH},
        [query("namespace", ref("Name")), query("topic", ref("Name")), ALSO_QUEUE,
         query("range", string(enum=RANGES), text="How far back (10m); 24h and 7d only without a queue."),
         query("of", string(enum=["queues", "storage"]), text="`storage`: syncs of logs and puts into stores; without a queue (queues).")])),
    ("get", "/v1/admin/config", admin(
        "Config", "Show every setting and where it came from; secrets are masked",
        ok({"type": "object", "additionalProperties": ref("Setting")}, "By name."))),
    ("get", "/v1/admin/me", admin(
        "Me", "Show who the caller is and what the caller may do",
        ok(whole({"name": TEXT, "authenticated": FLAG, "grants": array(whole({
            "namespace": TEXT, "rights": array(string(enum=["read", "write", "admin", "consume"]))}))}),
           "`authenticated` is false if the server asks for no token and no certificate."))),
    ("post", "/v1/admin/reload", admin(
        "Reload", "Read all settings again, as SIGHUP does",
        ok(whole({"reloaded": FLAG}), "The new settings are in force. On 400 nothing has changed."),
        body=record([], {}))),
]
PATHS = {}
# Routes that also speak application/x-sluice-batch: docs/batch-format.md.
PACKED = {"application/x-sluice-batch": {}}


def add_packed(path, operation):
    if path not in ("/enqueue", "/dequeue", "/ack", "/nack", "/extend"):
        return
    good = operation["responses"]["200"]
    operation["responses"]["200"] = {**good, "content": {**good["content"], **PACKED}}
    if "requestBody" in operation and path != "/dequeue":
        operation["requestBody"]["content"].update(PACKED)


for method, path, operation in ROWS:
    add_packed(path, operation)
    PATHS.setdefault(path, {})[method] = operation


def joined(name):
    """What all parts have under this name."""
    return {key: value for part in PARTS for key, value in getattr(part, name, {}).items()}


def all_paths():
    """Parts may have methods of one path."""
    paths = dict(PATHS)
    for path, methods in joined("PATHS").items():
        paths[path] = {**paths.get(path, {}), **methods}
    return paths


def document(version):
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Sluice",
            "version": version,
            "summary": "A work queue: durable, leased, prioritised, ordered per key.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],  # the server puts its own name there
        "security": [{}, {"token": []}],
        "paths": all_paths(),
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
            "parameters": PARAMETERS,
            "responses": {
                "Error": error("Nothing has happened, unless the error is outcome_unknown."),
                **joined("RESPONSES"),
            },
            "schemas": {**SCHEMAS, **joined("SCHEMAS")},
        },
    }


def as_c(text):
    """Lines of a C array; a string literal may have no more than 4,095 characters."""
    data = text.encode()
    yield '#include "api/openapi.h"\n\n'
    yield "const char openapi_text[] = {\n"
    for at in range(0, len(data), 20):
        yield "\t" + ",".join(str(byte) for byte in data[at:at + 20]) + ",\n"
    yield "};\n"
    yield "const unsigned openapi_size = sizeof openapi_text;\n"
    before = b'"servers":[{"url":"'
    yield f"const unsigned openapi_url = {data.index(before + b'/') + len(before)};\n"


def main():
    text = json.dumps(document(sys.argv[1]), separators=(",", ":")) + "\n"
    if len(sys.argv) == 2:
        sys.stdout.write(text)
        return
    with open(sys.argv[2], "w", encoding="ascii") as out:
        out.writelines(as_c(text))


if __name__ == "__main__":
    main()
