#!/usr/bin/python3 -B
"""The OpenAPI document of sluiced, which it serves at /openapi.json.

    openapi.py VERSION           print it as JSON
    openapi.py VERSION FILE.c    write it as a C array, for the server

tests/unit/test_openapi.c holds it to the table of routes, and
tests/integration/test_openapi.py to what the server answers.
"""
import json
import sys

import openapi_lockd
import openapi_locks
from openapi_words import (answer, array, boolean, call, content, in_path, integer, parameter, query,
                           record, ref, string)

# --- what is sent and answered ----------------------------------------------------

HOME = {
    "name": string(),
    "version": string(),
    "status": string(enum=["starting", "serving", "stopping"]),
    **{name: string(format="uri-reference") for name in ("health", "ready", "metrics", "openapi")},
}
UINT32 = {"minimum": 0, "maximum": 2**32 - 1}
INT32 = {"minimum": -2**31, "maximum": 2**31 - 1}
BASE64 = string(contentEncoding="base64")
SHOWN = {"payload": BASE64, "text": string(), "json": True}  # one of them, by `as`
AS = string(enum=["text", "json", "base64"], default="base64")
STATES = ["ready", "delayed", "leased", "held", "dead", "damaged"]
REASONS = ["max_attempts", "expired", "rejected"]
COUNTS = ["accepted", "delivered", "finished", "failed", "died"]

ID = {"id": integer(minimum=1), "uid": string(format="uuid")}
PLACE = {"namespace": ref("Name"), "topic": ref("Name"), "queue": ref("Name")}
RECEIPT = string(pattern="^[A-Za-z0-9_-]+$", maxLength=512)
OWNER = string(minLength=1, maxLength=128)
LEASE = {
    "lease_expires_at": ref("Moment"),
    "lease_id": string(pattern="^l-[0-9]+$"),
    "fencing_token": integer(minimum=1),
}
GIVEN = {
    **PLACE,
    "priority": integer(**INT32),
    "attempts": integer(**UINT32),
    "failure_attempts": integer(**UINT32),
    "max_attempts": integer(minimum=1, maximum=65535),
    "enqueued_at": ref("Moment"),
    "created_at": ref("Moment"),
    "deliver_after": ref("Moment"),
}
GIVEN_IF_ANY = {
    "key": string(),
    "correlation_id": string(),
    "attributes": {"type": "object"},
    "content_type": string(),
    "traceparent": string(pattern="^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$"),
    "tracestate": string(maxLength=512),
}
READ = ["enqueued_at", "created_at", "deliver_after"]  # what is known only of a record that can be read
MESSAGE = {
    **ID,
    "status": string(enum=[*STATES, "processing"]),
    **{name: of for name, of in GIVEN.items() if name not in READ},
    "lease_expires_at": {"oneOf": [ref("Moment"), {"type": "null"}]},
}
MESSAGE_IF_ANY = {
    **{name: GIVEN[name] for name in READ},
    **GIVEN_IF_ANY,
    "lease_id": LEASE["lease_id"],
    "fencing_token": LEASE["fencing_token"],
    "owner": string(),
    **SHOWN,
    "payload_size": integer(minimum=0),
    "next_delivery": ref("Moment"),
    "expires_at": ref("Moment"),
    "reason": string(enum=REASONS),
    "dead_since": ref("Moment"),
    "damaged_since": ref("Moment"),
    "error": string(),
}
QUEUE = {
    **PLACE,
    "display_namespace": string(),
    "display_topic": string(),
    **{name: integer(minimum=0) for name in [*STATES, "total"]},
    "paused": boolean(),
    "warning": boolean(),
}
QUEUE_SHOWN = {
    **QUEUE,
    "since_start": record(COUNTS, {name: integer(minimum=0) for name in COUNTS}),
}
SHARDS = {  # where there are several: on which it is, or what of it on each
    "shard": string(),
    "shards": array(record(["shard", *STATES, "total"], {
        "shard": string(),
        **{name: integer(minimum=0) for name in [*STATES, "total"]}})),
}
PARTIAL = {  # when shards did not answer in time
    "partial": boolean(),
    "missing": array(string()),
    "message": string(),
}
KNOBS = {
    "lease": ref("Time"),
    "max_attempts": integer(minimum=1, maximum=65535),
    "retry": record([], {
        "kind": string(enum=["exponential", "linear", "fixed", "none"]),
        "jitter": string(enum=["full", "none"]),
        "base": ref("Time"),
        "max": ref("Time"),
    }),
    "ttl": ref("Time"),
    "max_depth": integer(**UINT32),
    "max_rate": integer(minimum=0, maximum=10**9),
    "burst": integer(minimum=0, maximum=10**9),
    "warn_depth": integer(**UINT32),
    "idempotency_window": ref("Time"),
    "idempotency": string(enum=["first", "strict"]),
    "dlq_retention": ref("Time"),
    "dlq_max": integer(**UINT32),
    "require_lease": boolean(),
    "paused": boolean(),
}
SETTLE = {
    "receipt": RECEIPT,
    "id": ref("Id"),
    **PLACE,
    "lease_id": LEASE["lease_id"],
    "fencing_token": LEASE["fencing_token"],
}


def named(members, **more):
    """What is sent about one queue, which is called `topic` or `queue`."""
    return record(["namespace"], members, anyOf=[
        {"required": ["topic"]}, {"required": ["queue"]}], **more)


def settling(more):
    """A message by its receipt, or by its id; and what becomes of it."""
    return record([], {**SETTLE, **more}, oneOf=[
        {"required": ["receipt"]}, {"required": ["id", "namespace"]}])


SOME = {
    **PLACE,
    "ids": array(ref("Id"), minItems=1, maxItems=1000),
    "limit": integer(minimum=1, maximum=1000),
}
CONDITIONS = {
    "id": ref("Id"),
    "key": string(),
    "correlation_id": string(),
    "text": string(description="Somewhere in the payload."),
    "error": string(description="Somewhere in the last error."),
    "reason": string(enum=REASONS),
    "older_than": ref("Time"),
    "newer_than": ref("Time"),
}
BACKUP = string(pattern="^[0-9]+$")
SOME_DEAD = {**SOME, **CONDITIONS, "cursor": ref("Cursor"), "dry_run": boolean()}


def progress(word):
    return record([word], {
        word: integer(minimum=0),
        "matched": integer(minimum=0),
        "looked": integer(minimum=0),
        "more": boolean(),
        "cursor": ref("Cursor"),
        "results": array(ref("Outcome")),
    })


SCHEMAS = {
    "Name": string(
        pattern="^[A-Za-z0-9_-][A-Za-z0-9._-]*$", maxLength=128,
        description="Of a namespace or a topic; large and small letters are the same."),
    "Id": {
        "oneOf": [integer(minimum=1),
                  string(pattern="^([0-9]{1,19}|[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$")],
        "description": "A 63-bit number, a string of its digits, or its other spelling, a UUID."},
    "Time": {
        "oneOf": [{"type": "number", "minimum": 0}, string(pattern="^[0-9]")],
        "description": "A length of time: seconds, or with units as 500ms, 1h30m, 7d."},
    "Moment": string(format="date-time"),
    "Cursor": {
        "oneOf": [integer(minimum=0), string(pattern="^[0-9]{1,20}$")],
        "description": "Of the page before."},
    "Level": string(enum=["debug", "info", "warn", "error", "off"]),
    "Error": record(["error", "message"], {
        "error": string(pattern="^[a-z_]+$"),
        "message": string(minLength=1, description="What is wrong, and where."),
        "index": integer(minimum=0, description="The item of an array that is wrong."),
        "limit": string(description="The limit that was reached."),
        "path": string(description="Of a request that no handler has seen."),
        "ids": array({"oneOf": [ref("Id"), {"type": "null"}]},
                     description="Of an enqueue over several shards, accepted in part."),
    }),
    "NotReady": record(["error", "message", "status", "reasons"], {
        "error": string(pattern="^[a-z_]+$", description="The first reason."),
        "message": string(minLength=1),
        "status": string(enum=["not_ready"]),
        "reasons": array(ref("NotReadyReason")),
        "warnings": array(ref("Warning")),
        "shard_map": ref("ShardMap"),
    }),
    "NotReadyReason": record(["reason", "message"], {
        "reason": string(enum=["starting", "closed", "shard_failed", "outcome_unknown",
                               "disk_full"]),
        "shard": integer(minimum=0),
        "name": string(description="Of the shard."),
        "read_bytes": integer(minimum=0, description="While a log is read back."),
        "log_bytes": integer(minimum=0),
        "message": string(minLength=1),
    }),
    "ShardMap": record(["version", "hash"], {
        "version": integer(minimum=0),
        "hash": string(pattern="^[0-9a-f]{16}$",
                       description="The same on every node whose map is the same."),
    }),
    "Warning": record(["warning", "message"], {
        "warning": string(enum=["lost_writes", "weak_persistence", "shard_map", "node_id"]),
        "shard": integer(minimum=0),
        "name": string(description="Of the shard."),
        "message": string(minLength=1),
    }),
    "Ready": record(["status"], {
        "status": string(enum=["ready", "degraded"],
                         description="degraded: some of several shards do not serve."),
        "reasons": array(ref("NotReadyReason")),
        "warnings": array(ref("Warning")),
        "shard_map": ref("ShardMap"),
    }),
    "Accepted": record(["id", "uid", "duplicate"], {
        "id": integer(minimum=1),
        "uid": string(format="uuid"),
        "duplicate": boolean(),
    }),
    "NewMessage": named({
        **PLACE,
        "payload": BASE64,
        "text": string(),
        "json": True,
        "content_type": string(minLength=1, maxLength=128),
        "priority": {"oneOf": [integer(**INT32), string(enum=["high", "normal", "low"])],
                     "default": 5},
        "deliver_after": ref("Moment"),
        "delay": ref("Time"),
        "ttl": ref("Time"),
        "key": string(minLength=1, maxLength=256),
        "idempotency_key": string(minLength=1, maxLength=256),
        "correlation_id": string(minLength=1, maxLength=128),
        "attributes": {"type": "object"},
        "traceparent": string(description="W3C Trace Context; ignored if it is not valid."),
        "tracestate": string(),
        "max_attempts": integer(minimum=1, maximum=65535),
        "keep_result": ref("Time"),
    }, description="One of payload, text and json; one of deliver_after and delay."),
    "Claim": named({
        **PLACE,
        "limit": integer(minimum=1, maximum=1000),
        "wait": ref("Time"),
        "lease": ref("Time"),
        "owner": OWNER,
        "as": AS,
    }),
    "Delivery": record([*ID, "receipt", *LEASE, *GIVEN],
                       {**ID, "receipt": RECEIPT, **SHOWN, **LEASE, **GIVEN, **GIVEN_IF_ANY},
                       oneOf=[{"required": [name]} for name in SHOWN]),
    "Message": record([*MESSAGE], {**MESSAGE, **MESSAGE_IF_ANY}),
    "Event": record(["event", "at"], {
        "event": string(enum=["accepted", "due", "leased", "retry", "dead"]),
        "at": ref("Moment"),
        "attempt": integer(minimum=1),
        "until": ref("Moment"),
        "reason": string(enum=REASONS),
    }),
    "MessageWithHistory": record([*MESSAGE, "history"], {
        **MESSAGE,
        **MESSAGE_IF_ANY,
        "idempotency_key": string(),
        "keep_result_s": {"type": "number"},
        "history": array(ref("Event")),
    }),
    "Messages": record(["messages"], {"messages": array(ref("Message")),
                                      "cursor": ref("Cursor")}),
    "Found": record(["messages", "looked"], {
        "messages": array(ref("Message")),
        "looked": integer(**UINT32),
        "cursor": ref("Cursor"),
    }),
    "Ack": settling({"result": {"description": "Any JSON of at most 1 MiB."}}),
    "Nack": settling({
        "error": string(),
        "delay": ref("Time"),
        "defer": boolean(),
        "dead": boolean(),
    }),
    "Extend": settling({"lease": ref("Time")}),
    "Outcome": record([*ID, "status"], {
        **ID,
        "status": integer(minimum=200, maximum=599),
        "error": string(),
        "message": string(),
        "lease_expires_at": ref("Moment"),
        "dead": boolean(),
        "deliver_after": ref("Moment"),
    }),
    "Result": record([*ID, "status"], {
        **ID,
        "status": string(enum=["pending", "done"]),
        "result": True,
        "expires_at": ref("Moment"),
    }),
    "Queue": record([*QUEUE], {**QUEUE, **SHARDS, **PARTIAL}),
    "Queues": record(["topics"], {"topics": array(ref("Queue")), "cursor": ref("Cursor"),
                                  **PARTIAL}),
    "QueueShown": record([*QUEUE_SHOWN], {
        **QUEUE_SHOWN, **SHARDS, "oldest_ready_ms": integer(minimum=0)}),
    "QueuesShown": record(["queues"], {"queues": array(ref("QueueShown")),
                                       "cursor": ref("Cursor"), **PARTIAL}),
    "QueueWithPolicy": record([*QUEUE_SHOWN, "policy"], {
        **QUEUE_SHOWN,
        **SHARDS,
        **PARTIAL,
        "oldest_ready_ms": integer(minimum=0),
        "policy": ref("Knobs"),
    }),
    "Knobs": record([], KNOBS),
    "Policy": record([*PLACE, *KNOBS], {**PLACE, **KNOBS}),
    "QueueName": named(PLACE),
    "Paused": record([*PLACE, "paused"], {**PLACE, "paused": boolean()}),
    "MessageName": record(["namespace", "id"], {**PLACE, "id": ref("Id")}),
    "Some": named(SOME),
    "SomeDead": named(SOME_DEAD),
    "SomeDeadTo": named({**SOME_DEAD, "to": ref("Name")}),
    "Redriven": progress("redriven"),
    "Deleted": progress("deleted"),
    "Backup": record(["backup", "version", "engine", "shards", "left_out", "bytes"], {
        "backup": BACKUP,
        "version": string(),
        "engine": string(),
        "shards": array(record(["shard", "name", "folder", "files", "bytes", "last", "time"], {
            "shard": integer(minimum=0),
            "name": string(),
            "folder": string(),
            "files": integer(minimum=0),
            "bytes": integer(minimum=0),
            "last": integer(minimum=0),
            "time": ref("Moment"),
        })),
        "left_out": array(record(["name", "engine"], {"name": string(), "engine": string()})),
        "bytes": integer(minimum=0),
    }),
    "Setting": record(["value", "from", "kind", "reload", "secret"], {
        "value": True,
        "from": string(),
        "kind": string(),
        "reload": boolean(),
        "secret": boolean(),
    }),
    "LogLevel": record(["level"], {"level": ref("Level")}),
    "Status": record(["status"], {"status": string()}),
    "Home": record([*HOME], HOME),
}

PARAMETERS = {
    "namespace": query("namespace", ref("Name"), required=True),
    "topic": query("topic", ref("Name"), text="Also called queue; a call about one needs one of them."),
    "queue": query("queue", ref("Name"), text="Another name of topic; if both are sent, the same."),
    "limit": query("limit", integer(minimum=1, maximum=1000)),
    "cursor": query("cursor", ref("Cursor")),
}
NAMESPACE, TOPIC, ALSO_QUEUE, LIMIT, CURSOR = (parameter(name) for name in PARAMETERS)
PLACED = [NAMESPACE, TOPIC, ALSO_QUEUE]
SHOWN_AS = query("as", AS, text="The form of payloads that fit it: `text` if UTF-8, `json` if JSON. "
                                "Others stay `payload`, in base64.")
STATE = query("state", string(enum=[*STATES, "all"]))
FILTER = [query(name, schema) for name, schema in CONDITIONS.items()]

# --- calls ------------------------------------------------------------------------


def error(text):
    return answer(ref("Error"), text)


NO_SUCH = {"404": error("There is no such message or topic in this namespace.")}
LOST = {"409": error("The lease has ended, or is not the current one. Nothing has changed.")}
FULL = {"429": {
    "description": "A limit was reached.",
    "headers": {"Retry-After": {"schema": integer(minimum=0), "description": "Seconds."}},
    "content": content(ref("Error")),
}}
OUTCOME = answer({"oneOf": [ref("Outcome"), array(ref("Outcome"))]},
                 "Done; of an array each item has a status of its own.")
OUTCOME["headers"] = {"Sluice-Failed": {
    "schema": integer(minimum=1),
    "description": "How many items of an array failed; without failures it is left out."}}


def one_or_many(name):
    return {"oneOf": [ref(name), array(ref(name), minItems=1, maxItems=1000)]}


def policy_calls(prefix, tag):
    shown = {"200": answer(ref("Policy"), "All knobs as they are now.")}
    place = PLACED
    dry_run = query("dry_run", boolean(), text="Check the knobs, set nothing, and answer with what "
                                               "they would be.")
    return {
        "get": call(prefix + "Policy", tag, "The knobs of a topic", shown, place),
        "put": call(prefix + "SetPolicy", tag,
                    "Set all knobs, those that are not named to their defaults", shown,
                    [*place, dry_run], ref("Knobs")),
        "post": call(prefix + "ChangePolicy", tag, "Set the knobs that are named", shown,
                     [*place, dry_run], ref("Knobs")),
    }


def messages(name, summary, answers, parameters=(), body=None):
    return call(name, "messages", summary, answers, parameters, body)


def admin(name, summary, answers, parameters=(), body=None):
    return call("admin" + name, "administration", summary, answers, parameters, body)


def plain(name, summary, answers, free=True):
    return call(name, "plain", summary, answers, free=free)


MOVED = {
    **{name: integer(minimum=0) for name in (
        "moved", "taken", "batches", "left", "leased", "dead", "damaged", "idempotency_keys",
        "results", "there")},
    **{name: boolean() for name in ("by_hand", "resumed", "done")},
}
DELIVERIES = answer(array(ref("Delivery")), "What was leased; nothing to be had is [].")
PATHS = {
    "/enqueue": {"post": messages(
        "enqueue", "Accept messages; answered when they are on disk",
        {"200": answer(array({"oneOf": [integer(minimum=1), string(format="uuid"),
                                        ref("Accepted")]}),
                       "The ids, in the order of the items."), **FULL,
         "409": error("The topic is strict, and another payload was sent under an idempotency "
                      "key. Nothing was accepted.")},
        [query("ids", string(enum=["uid"]), text="Answer UUIDs."),
         query("detail", string(enum=["0", "1"]),
               text="1: answer objects that say which items are duplicates.")],
        {"oneOf": [array(ref("NewMessage"), minItems=1, maxItems=10000), ref("NewMessage")]})},
    "/dequeue": {
        "get": messages(
            "dequeue", "Lease the best messages of a topic", {"200": DELIVERIES},
            [*PLACED, LIMIT,
             query("wait", ref("Time"), text="For the first message, at most 1 h."),
             query("lease", ref("Time"), text="1 ms to 12 h."),
             SHOWN_AS,
             query("owner", OWNER, text="Who takes them; else the name of the caller.")]),
        "post": messages("dequeueByBody", "The same, asked for by a body",
                         {"200": DELIVERIES}, body=ref("Claim")),
    },
    "/ack": {"post": messages("ack", "It is done: delete it",
                              {"200": OUTCOME, **NO_SUCH, **LOST}, body=one_or_many("Ack"))},
    "/nack": {"post": messages("nack", "It failed, or not now, or never again",
                               {"200": OUTCOME, **NO_SUCH, **LOST}, body=one_or_many("Nack"))},
    "/extend": {"post": messages("extend", "Keep the lease a while longer",
                                 {"200": OUTCOME, **NO_SUCH, **LOST},
                                 body=one_or_many("Extend"))},
    "/result": {"get": messages(
        "result", "What the ack of a message brought",
        {"200": answer(ref("Result"), "It was acked."),
         "202": answer(ref("Result"), "It was not acked yet."), **NO_SUCH},
        [query("receipt", RECEIPT, text="Instead of id, namespace and topic."),
         query("id", ref("Id")), query("namespace", ref("Name")), TOPIC, ALSO_QUEUE,
         query("wait", ref("Time"), text="For the ack, at most 1 h.")])},
    "/peek": {"get": messages(
        "peek", "Look at messages without taking them",
        {"200": answer({"oneOf": [ref("Messages"), ref("Message")]},
                       "A page, or the one message that was named."), **NO_SUCH},
        [*PLACED, LIMIT, CURSOR, SHOWN_AS, STATE, query("id", ref("Id"))])},
    "/stats": {"get": call("stats", "topics", "How much is where",
                           {"200": answer(ref("Queue"), "The topic."), **NO_SUCH},
                           PLACED)},
    "/topics": {"get": call("topics", "topics", "The topics of a namespace",
                            {"200": answer(ref("Queues"), "A page of them.")},
                            [NAMESPACE, LIMIT, CURSOR])},
    "/policy": policy_calls("topic", "topics"),
    "/dlq": {"get": call("dead", "dead letters", "What failed for good, oldest first",
                         {"200": answer(ref("Messages"), "A page of it.")},
                         [*PLACED, LIMIT, CURSOR, SHOWN_AS])},
    "/dlq/redrive": {"post": call("redriveDead", "dead letters", "Ready again, without failures",
                                  {"200": answer(ref("Redriven"), "How many.")},
                                  body=ref("Some"))},
    "/dlq/delete": {"post": call("deleteDead", "dead letters", "Delete some",
                                 {"200": answer(ref("Deleted"), "How many.")},
                                 body=ref("Some"))},
    "/": {"get": plain("home", "Version, state and links", {"200": {
        "description": "A page for a browser, which asks for text/html; JSON otherwise.",
        "content": {**content(ref("Home")), "text/html": {"schema": string()}}}})},
    "/healthz": {"get": plain("healthz", "The process answers",
                              {"200": answer(ref("Status"), "It does.")})},
    "/readyz": {"get": plain("readyz", "It takes work", {
        "200": answer(ref("Ready"), "It does."),
        "503": answer(ref("NotReady"), "It starts or stops, a shard has failed or is full.")})},
    "/metrics": {"get": plain("metrics", "Figures for Prometheus", {"200": {
        "description": "Text, version 0.0.4.",
        "content": {"text/plain": {"schema": string()}}}}, free=False)},
    "/openapi.json": {"get": plain("openapi", "This document",
                                   {"200": answer({"type": "object"}, "OpenAPI 3.1.")})},
    "/v1/admin/queues": {"get": admin(
        "Queues", "Queues of a namespace, or of all",
        {"200": answer(ref("QueuesShown"), "A page of them.")},
        [query("namespace", ref("Name")), LIMIT, CURSOR])},
    "/v1/admin/queues/{namespace}/{topic}": {"delete": admin(
        "DeleteQueue", "Delete a queue with its policy, remembered keys and results",
        {"200": answer(record([*PLACE, "deleted", "messages"], {
            **PLACE, "deleted": boolean(), "messages": integer(minimum=0)}),
            "It is gone, and how many messages went with it."), **NO_SUCH,
         "409": error("It holds messages, and force is not set; or it has been moved between "
                      "shards.")},
        [in_path("namespace", ref("Name")), in_path("topic", ref("Name")),
         query("force", boolean(), text="Delete its messages too, leased ones and dead letters "
                                        "as well.")])},
    "/v1/admin/queue": {"get": admin(
        "Queue", "One queue with its counts and its policy",
        {"200": answer(ref("QueueWithPolicy"), "The queue."), **NO_SUCH}, PLACED)},
    "/v1/admin/queue/pause": {"post": admin(
        "Pause", "Hand out nothing", {"200": answer(ref("Paused"), "It is paused."), **NO_SUCH},
        body=ref("QueueName"))},
    "/v1/admin/queue/resume": {"post": admin(
        "Resume", "Go on", {"200": answer(ref("Paused"), "It is not paused."), **NO_SUCH},
        body=ref("QueueName"))},
    "/v1/admin/queue/purge": {"post": admin(
        "Purge", "Delete all that is neither leased nor dead",
        {"200": answer(record([*PLACE, "purged"], {**PLACE, "purged": integer(minimum=0)}),
                       "How many."), **NO_SUCH}, body=ref("QueueName"))},
    "/v1/admin/queue/policy": policy_calls("admin", "administration"),
    "/v1/admin/messages": {"get": admin(
        "Messages", "Browse and search", {"200": answer(ref("Found"), "A page of them.")},
        [*PLACED, LIMIT, CURSOR, STATE, *FILTER])},
    "/v1/admin/message": {"get": admin(
        "Message", "One message and its history",
        {"200": answer(ref("MessageWithHistory"), "The message."), **NO_SUCH},
        [*PLACED, query("id", ref("Id"), required=True)])},
    "/v1/admin/message/delete": {"post": admin(
        "DeleteMessage", "Delete a message that is not leased",
        {"200": answer(record([*ID, "deleted"], {**ID, "deleted": boolean()}), "It is gone."),
         **NO_SUCH, "409": error("It is leased.")},
        body=ref("MessageName"))},
    "/v1/admin/dlq": {"get": admin(
        "Dead", "Dead letters, oldest first; search",
        {"200": answer(ref("Found"), "A page of them.")},
        [*PLACED, LIMIT, CURSOR, *FILTER])},
    "/v1/admin/dlq/redrive": {"post": admin(
        "RedriveDead", "Redrive one, some or all, here or to another queue",
        {"200": answer(ref("Redriven"), "What was done, and whether there is more.")},
        body=ref("SomeDeadTo"))},
    "/v1/admin/dlq/delete": {"post": admin(
        "DeleteDead", "Delete one, some or all",
        {"200": answer(ref("Deleted"), "What was done, and whether there is more.")},
        body=ref("SomeDead"))},
    "/v1/admin/backup": {
        "post": admin("Backup", "Hold the files of the log as they are",
                      {"200": answer(ref("Backup"), "What there is to copy."),
                       "409": error("There is a backup already.")},
                      body=record([], {})),
        "get": admin("BackupFile", "Up to 1 MiB of a file",
                     {"200": {"description": "A line of JSON, then the bytes it speaks of.",
                              "content": {"application/octet-stream": {}}}, **NO_SUCH},
                     [query("backup", BACKUP, required=True),
                      query("shard", integer(minimum=0)),
                      query("file", integer(minimum=0)),
                      query("at", integer(minimum=0))]),
    },
    "/v1/admin/backup/end": {"post": admin(
        "BackupEnd", "Let go of the files",
        {"200": answer(record(["ended"], {"ended": boolean()}), "It is over."), **NO_SUCH},
        body=record(["backup"], {"backup": BACKUP}))},
    "/v1/admin/log-level": {
        "get": admin("LogLevel", "How much is logged",
                     {"200": answer(ref("LogLevel"), "The level.")}),
        "put": admin("SetLogLevel", "Log more, or less, until the next start",
                     {"200": answer(ref("LogLevel"), "The level.")}, body=ref("LogLevel")),
    },
    "/v1/admin/shards/move": {"post": admin(
        "Move", "Carry a queue to another shard, for a second; again until it is done",
        {"200": answer(record([*MOVED, "queues", "skipped"], {**MOVED, "queues": array(
            record([*MOVED, "namespace"], {**MOVED, "namespace": string()})), "skipped": array(
            record(["namespace", "shard"], {"namespace": string(), "shard": string()}))}),
            "How far it has come."), **NO_SUCH},
        body=record(["command", "from", "to"], {
            "command": string(), "tenant": string(), "from": string(), "to": string(),
            "batch": integer(minimum=1, maximum=10000), "dry_run": boolean(),
            "force_expire": boolean()}))},
    "/v1/admin/config": {"get": admin(
        "Config", "Every setting in force and where it came from, secrets masked",
        {"200": answer({"type": "object", "additionalProperties": ref("Setting")},
                       "By name.")})},
    "/v1/admin/reload": {"post": admin(
        "Reload", "Read all settings again, as SIGHUP does",
        {"200": answer(record(["reloaded"], {"reloaded": boolean()}),
                       "What can change while it runs has; 400: nothing has, and why.")},
        body=record([], {}))},
}


def document(version):
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Sluice",
            "version": version,
            "summary": "A queue for work: durable, leased, prioritised, ordered per key.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],  # the server puts its own name there
        "security": [{}, {"token": []}],
        "paths": {**PATHS, **openapi_lockd.PATHS, **openapi_locks.PATHS},
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
            "parameters": PARAMETERS,
            "responses": {
                "Error": error("Nothing has happened, unless it says outcome_unknown."),
                "LockdError": openapi_lockd.error(
                    "Nothing has happened, unless it says outcome_unknown."),
            },
            "schemas": {**SCHEMAS, **openapi_lockd.SCHEMAS,
                        **openapi_locks.SCHEMAS},
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
