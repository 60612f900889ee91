"""What openapi.py says of the lockd dialect: leases, locks, state and streams."""
from openapi_words import answer, boolean, call, integer, query, record, ref, string

NAME = string(maxLength=256)
UUID = string(format="uuid")
UNIX = integer(minimum=0)

SECONDS = integer()

SETTLE = {
    "namespace": NAME,
    "queue": NAME,
    "message_id": string(),
    "lease_id": string(),
    "txn_id": string(),
    "fencing_token": integer(),
    "meta_etag": string(),
    "state_etag": string(),
    "state_lease_id": string(),
    "state_fencing_token": integer(),
}


ENQUEUED = {
    "namespace": ref("Name"),
    "queue": ref("Name"),
    "message_id": UUID,
    "attempts": integer(minimum=0, maximum=0),
    "max_attempts": integer(minimum=1, maximum=65535),
    "not_visible_until_unix": UNIX,
    "visibility_timeout_seconds": integer(minimum=1),
    "payload_bytes": integer(minimum=0),
    "correlation_id": string(),
}


def asked(required, members):
    """A body; members that nobody knows are passed over."""
    return {"type": "object", "required": required, "properties": members}


SCHEMAS = {
    "LockdError": record(["error"], {
        "error": string(pattern="^[a-z0-9_]+$"),
        "detail": string(),
        "current_version": integer(minimum=1),
        "current_etag": string(),
        "retry_after_seconds": integer(minimum=1),
    }),
    "LockdAck": asked(["queue", "message_id", "lease_id"], SETTLE),
    "LockdAcked": record(["acked", "correlation_id"],
                         {"acked": boolean(), "correlation_id": string()}),
    "LockdNack": asked(["queue", "message_id", "lease_id", "meta_etag"], {
        **SETTLE,
        "delay_seconds": SECONDS,
        "intent": string(description="failure, the default, or defer"),
        "last_error": {"description": "Any JSON; not with defer."},
    }),
    "LockdNacked": record(["requeued", "meta_etag", "correlation_id"], {
        "requeued": boolean(), "meta_etag": string(), "correlation_id": string()}),
    "LockdExtend": asked(["queue", "message_id", "lease_id", "meta_etag"],
                         {**SETTLE, "extend_by_seconds": SECONDS}),
    "LockdExtended": record(
        ["lease_expires_at_unix", "visibility_timeout_seconds", "meta_etag", "correlation_id"], {
            "lease_expires_at_unix": UNIX,
            "visibility_timeout_seconds": integer(minimum=1),
            "meta_etag": string(),
            "state_lease_expires_at_unix": UNIX,
            "correlation_id": string(),
        }),
    "LockdMeta": asked(["queue"], {
        "namespace": NAME,
        "queue": NAME,
        "delay_seconds": SECONDS,
        "visibility_timeout_seconds": SECONDS,
        "ttl_seconds": SECONDS,
        "max_attempts": integer(),
        "attributes": {"type": "object"},
        "payload_content_type": string(maxLength=128),
    }),
    "LockdEnqueued": record([*ENQUEUED], ENQUEUED),
    "LockdClaim": asked([], {
        "namespace": NAME,
        "queue": NAME,
        "owner": string(),
        "txn_id": string(),
        "visibility_timeout_seconds": SECONDS,
        "wait_seconds": integer(description="-1: not at all, 0: for ever"),
        "page_size": integer(description="1 to 64"),
        "start_after": string(),
    }),
    "LockdQueue": asked([], {"namespace": NAME, "queue": NAME}),
    "LockdStats": record(
        ["namespace", "queue", "waiting_consumers", "pending_candidates", "total_consumers",
         "has_active_watcher", "available", "correlation_id"], {
            "namespace": ref("Name"),
            "queue": ref("Name"),
            "waiting_consumers": integer(minimum=0),
            "pending_candidates": integer(minimum=0),
            "total_consumers": integer(minimum=0),
            "has_active_watcher": boolean(),
            "available": boolean(),
            "head_message_id": UUID,
            "head_enqueued_at_unix": UNIX,
            "head_not_visible_until_unix": UNIX,
            "head_age_seconds": integer(minimum=0),
            "correlation_id": string(),
        }),
}

NAMESPACE = query("namespace", NAME, text="When the body has none.")
QUEUE = query("queue", NAME, text="When the body has none.")


def error(text):
    return answer(ref("LockdError"), text)


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
    row = queues("Enqueue", "Accept a message; answered when it is on disk", {
        "200": answer(ref("LockdEnqueued"), "It is in the queue."),
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
    }, ref("LockdClaim"), [NAMESPACE, QUEUE, query("owner", string())])


PATHS = {
    "/v1/queue/enqueue": enqueue(),
    "/v1/queue/dequeue": deliveries(
        "Dequeue", "Lease messages of a queue",
        "For each message a part `meta`, which is JSON, and a part `payload`."),
    "/v1/queue/subscribe": deliveries(
        "Subscribe", "Lease messages of a queue as they come",
        "The same, without end: it stays open."),
    "/v1/queue/dequeueWithState": deliveries(
        "DequeueWithState", "Lease a message and its state",
        "The same, and the lease of the state; one message."),
    "/v1/queue/subscribeWithState": deliveries(
        "SubscribeWithState", "Lease messages and their states as they come",
        "The same, without end."),
    "/v1/queue/watch": queues("Watch", "What stands at the head of a queue, as it changes", {
        "200": {"description": "Server-sent events `queue_watch`, without end.",
                "content": {"text/event-stream": {}}}}, ref("LockdQueue")),
    "/v1/queue/ack": queues("Ack", "It is done: delete it", {
        "200": answer(ref("LockdAcked"), "It is gone."), **NOT_HELD}, ref("LockdAck")),
    "/v1/queue/nack": queues("Nack", "It failed, or not now", {
        "200": answer(ref("LockdNacked"), "It is in the queue again, or a dead letter."),
        **NOT_HELD}, ref("LockdNack")),
    "/v1/queue/extend": queues("Extend", "Keep the lease a while longer", {
        "200": answer(ref("LockdExtended"), "Until when."), **NOT_HELD}, ref("LockdExtend")),
    "/v1/queue/stats": queues("Stats", "Who waits for a queue, and what stands at its head", {
        "200": answer(ref("LockdStats"), "Also of a queue that nobody has used.")},
        ref("LockdQueue")),
}
