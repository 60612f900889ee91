"""The part of the lockd dialect in the OpenAPI document: leases, locks, state and streams."""
from openapi_words import COUNT, FLAG, MOMENT, TEXT, TIME, answer, call, each, integer, query, record, ref, string, whole

NAME = string(maxLength=256)
UUID = string(format="uuid")
UNIX = COUNT
SECONDS = integer()
PLACE = each(NAME, "namespace queue")
# Members of /enqueue that lockd does not have.
OUR_OWN = {
    "priority": {"oneOf": [integer(), string(enum=["high", "normal", "low"])], "default": 5},
    **each(string(minLength=1, maxLength=256), "key idempotency_key"),
    "share": string(minLength=1, maxLength=128),
    "kind": string(pattern="^[A-Za-z0-9._:/-]{1,100}$"),
    **each(TIME, "keep_result lease max_runtime"),
    "deadline": MOMENT,
    "retry": record([], {
        "kind": string(enum=["exponential", "linear", "fixed", "none"]),
        "jitter": string(enum=["full", "none"]),
        **each(TIME, "base max"),
    }),
    "unique": record(["key", "until"], {
        "key": string(minLength=1, maxLength=256),
        "until": string(description="started, done, or a time of a second or more."),
        "mode": string(enum=["keep"], default="keep"),
    }),
    **each(TEXT, "traceparent tracestate"),
}
SETTLE = {
    **PLACE,
    **each(TEXT, "message_id lease_id txn_id meta_etag state_etag state_lease_id"),
    **each(integer(), "fencing_token state_fencing_token"),
}


def asked(required, members):
    """A body; unknown members are ignored."""
    return {"type": "object", "required": required, "properties": members}


SCHEMAS = {
    "LockdError": record(["error"], {
        "error": string(pattern="^[a-z0-9_]+$"),
        "detail": TEXT,
        "current_version": integer(minimum=1),
        "current_etag": TEXT,
        "retry_after_seconds": integer(minimum=1),
    }),
    "LockdAck": asked(["queue", "message_id", "lease_id"], SETTLE),
    "LockdAcked": whole({"acked": FLAG, "correlation_id": TEXT}),
    "LockdNack": asked(["queue", "message_id", "lease_id", "meta_etag"], {
        **SETTLE,
        "delay_seconds": SECONDS,
        "intent": string(description="failure, the default, or defer"),
        "last_error": {"description": "Any JSON; not with defer."},
    }),
    "LockdNacked": whole({"requeued": FLAG, **each(TEXT, "meta_etag correlation_id")}),
    "LockdExtend": asked(["queue", "message_id", "lease_id", "meta_etag"],
                         {**SETTLE, "extend_by_seconds": SECONDS}),
    "LockdExtended": record(
        ["lease_expires_at_unix", "visibility_timeout_seconds", "meta_etag", "correlation_id"], {
            **each(UNIX, "lease_expires_at_unix state_lease_expires_at_unix"),
            "visibility_timeout_seconds": integer(minimum=1),
            **each(TEXT, "meta_etag correlation_id"),
        }),
    "LockdMeta": asked(["queue"], {
        **PLACE,
        **each(SECONDS, "delay_seconds visibility_timeout_seconds ttl_seconds"),
        "max_attempts": integer(),
        "attributes": {"type": "object"},
        "payload_content_type": string(maxLength=128),
        **OUR_OWN,
    }),
    "LockdEnqueued": record([
        *"namespace queue message_id attempts max_attempts not_visible_until_unix".split(),
        *"visibility_timeout_seconds payload_bytes correlation_id".split(),
    ], {
        **each(ref("Name"), "namespace queue"),
        "message_id": UUID,
        "attempts": integer(minimum=0, maximum=0),
        "max_attempts": integer(minimum=1, maximum=65535),
        "not_visible_until_unix": UNIX,
        "visibility_timeout_seconds": integer(minimum=1),
        "payload_bytes": COUNT,
        "correlation_id": TEXT,
        "duplicate": FLAG,
    }),
    "LockdClaim": asked([], {
        **PLACE,
        **each(TEXT, "owner txn_id start_after"),
        "visibility_timeout_seconds": SECONDS,
        "wait_seconds": integer(description="-1: not at all, 0: for ever"),
        "page_size": integer(description="1 to 64"),
        "kinds": string(description="messages of these kinds alone, with commas"),
    }),
    "LockdQueue": asked([], PLACE),
    "LockdStats": record(
        ["namespace", "queue", "waiting_consumers", "pending_candidates", "total_consumers",
         "has_active_watcher", "available", "correlation_id"], {
            **each(ref("Name"), "namespace queue"),
            **each(COUNT, "waiting_consumers pending_candidates total_consumers head_age_seconds"),
            **each(FLAG, "has_active_watcher available"),
            "head_message_id": UUID,
            **each(UNIX, "head_enqueued_at_unix head_not_visible_until_unix"),
            "correlation_id": TEXT,
        }),
}

NAMESPACE = query("namespace", NAME, text="The default, if the body has none.")
QUEUE = query("queue", NAME, text="The default, if the body has none.")


def error(text):
    return answer(ref("LockdError"), text)


RESPONSES = {"LockdError": error("Nothing has happened, unless the error is outcome_unknown.")}
NOT_HELD = {
    "403": error("lease_required, lease_expired or fencing_mismatch."),
    "404": error("not_found: no such message; perhaps it was finished before."),
    "409": error("queue_message_lease_mismatch, txn_mismatch or cas_mismatch."),
}


def queues(name, summary, answers, body, parameters=(NAMESPACE, QUEUE)):
    return {"post": call("queue" + name, "lockd queues", summary, answers, parameters, body,
                         other="LockdError")}


def enqueue():
    """Its body has two parts."""
    row = queues("Enqueue", "Accept a message; the answer comes when it is on disk", {
        "200": answer(ref("LockdEnqueued"), "The message is in the queue."),
        "409": error("queue_draining: the queue takes no new messages."),
        "413": error("payload_too_large: more than 1 GiB, or than the limit says.")},
        None, [QUEUE])
    parts = {"type": "object", "required": ["meta"], "properties": {
        "meta": ref("LockdMeta"),
        "payload": string(format="binary"),
    }}
    row["post"]["requestBody"] = {"required": True, "content": {
        kind: {"schema": parts} for kind in ("multipart/related", "multipart/form-data")}}
    return row


def deliveries(name, summary, text):
    return queues(name, summary, {
        "200": {"description": text, "content": {"multipart/related": {}}},
        "409": error("waiting: there was no message in time. txn_conflict: another lease holds the transaction."),
    }, ref("LockdClaim"), [NAMESPACE, QUEUE, query("owner", TEXT)])


PATHS = {
    "/v1/queue/enqueue": enqueue(),
    "/v1/queue/dequeue": deliveries(
        "Dequeue", "Lease messages of a queue",
        "For each message a part `meta`, which is JSON, and a part `payload`."),
    "/v1/queue/subscribe": deliveries(
        "Subscribe", "Lease messages of a queue as they come",
        "The same parts, on a stream that stays open."),
    "/v1/queue/dequeueWithState": deliveries(
        "DequeueWithState", "Lease a message and its state",
        "One message, and the lease of its state."),
    "/v1/queue/subscribeWithState": deliveries(
        "SubscribeWithState", "Lease messages and their states as they come",
        "The same parts, on a stream that stays open."),
    "/v1/queue/watch": queues("Watch", "Watch the first message of a queue", {
        "200": {"description": "Server-sent events `queue_watch`, on a stream that stays open.",
                "content": {"text/event-stream": {}}}}, ref("LockdQueue")),
    "/v1/queue/ack": queues("Ack", "Finish a message: it is deleted", {
        "200": answer(ref("LockdAcked"), "The message is deleted."), **NOT_HELD}, ref("LockdAck")),
    "/v1/queue/nack": queues("Nack", "Give a message back: it failed, or not now", {
        "200": answer(ref("LockdNacked"), "The message is in the queue again, or is a dead letter."),
        **NOT_HELD}, ref("LockdNack")),
    "/v1/queue/extend": queues("Extend", "Extend the lease of a message", {
        "200": answer(ref("LockdExtended"), "The new end of the lease."), **NOT_HELD}, ref("LockdExtend")),
    "/v1/queue/stats": queues("Stats", "Count the consumers of a queue, and show its first message", {
        "200": answer(ref("LockdStats"), "Also for a queue without messages.")},
        ref("LockdQueue")),
}
