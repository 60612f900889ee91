"""What openapi.py says of the lockd dialect: leases, locks, state and streams."""
from openapi_words import answer, boolean, call, integer, query, record, ref, string

NAME = string(maxLength=256)
UUID = string(format="uuid")
UNIX = integer(minimum=0)


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


def queues(name, summary, answers, body, parameters=(NAMESPACE, QUEUE)):
    return {"post": call("queue" + name, "lockd queues", summary, answers, parameters, body,
                         other="LockdError")}


PATHS = {
    "/v1/queue/stats": queues("Stats", "Who waits for a queue, and what stands at its head", {
        "200": answer(ref("LockdStats"), "Also of a queue that nobody has used.")},
        ref("LockdQueue")),
}
