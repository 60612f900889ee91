"""The part of the codeQ dialect in the OpenAPI document. docs/codeq.md has the differences from codeQ."""
from openapi_words import (COUNT, FLAG, MOMENT, TEXT, answer, array, call, each, in_path, integer, no_stream, ok, query, record, ref,
                           string, whole)

TAG = "codeQ"
UUID = string(format="uuid")
PRIORITY = integer(minimum=0, maximum=9)
STATUS = string(enum=["PENDING", "IN_PROGRESS", "COMPLETED", "FAILED"])
ARTIFACT = record(["name"], {"name": TEXT, "url": TEXT, "contentBase64": TEXT, "contentType": TEXT})
NEW_TASK = {
    "type": "object",
    "required": ["command", "payload"],
    "properties": {
        "command": ref("Name"), "payload": {}, "priority": integer(), "webhook": string(format="uri", maxLength=2048),
        "maxAttempts": integer(), "idempotencyKey": TEXT, "runAt": MOMENT, "delaySeconds": COUNT,
    },
}
RESULT_IN = {
    "type": "object",
    "required": ["status"],
    "properties": {
        "status": string(enum=["COMPLETED", "FAILED"]), "result": {"type": "object"}, "error": TEXT,
        "artifacts": array(ARTIFACT, maxItems=64),
    },
}
CLAIM = {
    "commands": array(ref("Name"), maxItems=64),
    **each(integer(), "leaseSeconds waitSeconds"),
}
TOPIC = {
    "priorityTiers": array(integer(minimum=0, maximum=10), minItems=1, maxItems=10),
    "maxAttempts": integer(minimum=1, maximum=100),
    "deadLetterTopicRef": string(maxLength=63),
    "retentionSeconds": integer(minimum=0, maximum=2**31 - 1),
    "maxConsumers": integer(minimum=0, maximum=10000),
}
BATCH = {"minItems": 1, "maxItems": 100}

SCHEMAS = {
    "CodeqError": record(["error"], {"error": TEXT, "operation": TEXT, "retryAfterSeconds": COUNT}),
    "CodeqTask": record(["id", "command", "priority", "status", "lastKnownLocation", "tenantId", "createdAt", "updatedAt"], {
        "id": UUID, "command": TEXT, "payload": string(description="JSON"), "payloadEncoding": string(enum=["base64"]),
        "priority": PRIORITY, **each(TEXT, "webhook traceParent traceState workerId error"), "status": STATUS,
        "lastKnownLocation": string(enum=["PENDING_LIST", "DELAYED_ZSET", "INPROG_SET", "DLQ_SET", "NONE"]),
        "leaseUntil": MOMENT, **each(COUNT, "attempts maxAttempts"), "resultKey": UUID, "tenantId": TEXT,
        **each(MOMENT, "createdAt updatedAt"),
    }),
    "CodeqNewTask": NEW_TASK,
    "CodeqNewTasks": whole({"tasks": array(ref("CodeqNewTask"), **BATCH)}),
    "CodeqCreated": whole({"results": array(record([], {"task": ref("CodeqTask"), "error": TEXT}))}),
    "CodeqClaim": {"type": "object", "properties": CLAIM},
    "CodeqClaims": {"type": "object", "required": ["count"],
                    "properties": {**CLAIM, "count": integer(minimum=1, maximum=10)}},
    "CodeqTasks": record(["tasks"], {"tasks": array(ref("CodeqTask")), "error": TEXT}),
    "CodeqHeartbeat": {"type": "object", "properties": {"extendSeconds": integer()}},
    "CodeqNack": {"type": "object", "properties": {"delaySeconds": integer(), "reason": TEXT}},
    "CodeqNacked": record(["status"], {"status": string(enum=["requeued", "dlq"]), "delaySeconds": COUNT}),
    "CodeqOk": whole({"ok": FLAG}),
    "CodeqResultIn": RESULT_IN,
    "CodeqResultsIn": whole({"results": array({**RESULT_IN, "required": ["taskId", "status"]}, **BATCH)}),
    "CodeqResult": record(["taskId", "status", "completedAt"], {
        "taskId": UUID, "status": string(enum=["COMPLETED", "FAILED"]), "result": {}, "error": TEXT,
        "artifacts": array(whole({"name": TEXT, "url": TEXT})), "completedAt": MOMENT,
    }),
    "CodeqResults": whole({"results": array(record(["taskId"], {
        "taskId": TEXT, "result": ref("CodeqResult"), "error": TEXT}))}),
    "CodeqFinished": whole({"task": ref("CodeqTask"), "result": ref("CodeqResult")}),
    "CodeqQueues": {"type": "object", "additionalProperties": COUNT},
    "CodeqQueue": whole({"command": TEXT, **each(COUNT, "ready delayed inProgress dlq")}),
    "CodeqCleanup": {"type": "object", "properties": {"limit": integer(minimum=1, maximum=1000), "before": MOMENT}},
    "CodeqCleaned": whole({"deleted": COUNT, "before": MOMENT, "limit": COUNT}),
    "CodeqRaft": whole({"enabled": FLAG, "numGroups": COUNT, "groups": array({"type": "object"})}),
    "CodeqSubscribe": {"type": "object", "required": ["callbackUrl"], "properties": {
        "callbackUrl": string(format="uri", maxLength=2048), "eventTypes": array(ref("Name"), maxItems=64),
        "deliveryMode": string(enum=["fanout", "group", "hash"]), "groupId": string(maxLength=128),
        **each(integer(), "ttlSeconds minIntervalSeconds")}},
    "CodeqSubscription": whole({"subscriptionId": TEXT, "expiresAt": MOMENT}),
    "CodeqTopicIn": record([], TOPIC),
    "CodeqTopic": record(["name", "tenantId", "physicalId", "version"], {
        **each(TEXT, "name tenantId physicalId"), **TOPIC, "version": integer(minimum=1)}),
}
RESPONSES = {
    "CodeqError": {"description": "Nothing has happened, unless the outcome is unknown.",
                   "content": {"application/json": {"schema": ref("CodeqError")}}},
}
EMPTY = {"204": {"description": "No task within the wait."}}
ID = [in_path("id", UUID)]
NAME = [in_path("id", ref("Name"))]


def action(name, summary, answers, parameters=(), body=None):
    return call(name, TAG, summary, answers, parameters, body=body, other="CodeqError")


PATHS = {
    "/v1/codeq/tasks": {"post": action(
        "codeqCreate", "Create a task", {"202": answer(ref("CodeqTask"), "The task, or the first one of its key.")},
        body="CodeqNewTask")},
    "/v1/codeq/tasks/batch": {"post": action(
        "codeqCreateBatch", "Create tasks", ok("CodeqCreated", "In the order of the request."), body="CodeqNewTasks")},
    "/v1/codeq/tasks/claim": {"post": action(
        "codeqClaim", "Claim a task of the first command that has one",
        {**ok("CodeqTask", "The task."), **EMPTY}, body="CodeqClaim")},
    "/v1/codeq/tasks/claim/batch": {"post": action(
        "codeqClaimBatch", "Claim tasks", {**ok("CodeqTasks", "The tasks."), **EMPTY}, body="CodeqClaims")},
    "/v1/codeq/tasks/batch/results": {"post": action(
        "codeqResultBatch", "End tasks", ok("CodeqResults", "In the order of the request."), body="CodeqResultsIn")},
    "/v1/codeq/tasks/{id}/heartbeat": {"post": action(
        "codeqHeartbeat", "Extend the lease", ok("CodeqOk", "Extended."), ID, "CodeqHeartbeat")},
    "/v1/codeq/tasks/{id}/abandon": {"post": action(
        "codeqAbandon", "Give the task back, behind its equals", ok("CodeqNacked", "It is ready."), ID, {})},
    "/v1/codeq/tasks/{id}/nack": {"post": action(
        "codeqNack", "The task has failed this time", ok("CodeqNacked", "It is retried, or dead."), ID, "CodeqNack")},
    "/v1/codeq/tasks/{id}/result": {
        "post": action("codeqResult", "End the task", ok("CodeqResult", "The result."), ID, "CodeqResultIn"),
        "get": action("codeqResultGet", "The result of a task; may wait", ok("CodeqFinished", "The task has ended."),
                      [*ID, query("waitSeconds", integer(minimum=0))]),
    },
    "/v1/codeq/tasks/{id}": {"get": action("codeqTask", "A task", ok("CodeqTask", "The task."), ID)},
    "/v1/codeq/workers/subscriptions": {"post": action(
        "codeqSubscribe", "Be called when a command has tasks", ok("CodeqSubscription", "Until then, or the next heartbeat."),
        body="CodeqSubscribe")},
    "/v1/codeq/workers/subscriptions/{id}/heartbeat": {"post": action(
        "codeqSubscriptionBeat", "Keep a subscription", ok("CodeqSubscription", "Until then."), [in_path("id", TEXT)],
        {"type": "object", "properties": {"ttlSeconds": integer()}})},
    "/v1/codeq/stream": {"get": action("codeqStream", "Many requests at once, as frames", no_stream("CodeqError"))},
    "/v1/codeq/raft/status": {"get": action("codeqRaft", "No groups: a shard has an owner",
                                            ok("CodeqRaft", "Always the same."))},
    "/v1/codeq/admin/queues": {"get": action("codeqQueues", "Counts of all commands", ok("CodeqQueues", "By COMMAND:state."))},
    "/v1/codeq/admin/queues/{id}": {"get": action("codeqQueue", "Counts of a command", ok("CodeqQueue", "Its counts."), NAME)},
    "/v1/codeq/admin/tasks/cleanup": {"post": action(
        "codeqCleanup", "Delete dead letters that are older than their retention", ok("CodeqCleaned", "How many."),
        body="CodeqCleanup")},
    "/v1/codeq/admin/topics/{id}": {
        "put": action("codeqTopicPut", "Set the policy of a command", {
            **ok("CodeqTopic", "The same as before, or changed."), "201": answer(ref("CodeqTopic"), "New.")}, NAME, "CodeqTopicIn"),
        "get": action("codeqTopic", "The policy of a command", ok("CodeqTopic", "The policy."), NAME),
        "delete": action("codeqTopicDelete", "Remove the policy of a command", {"204": {"description": "Removed."}},
                         [*NAME, query("deletionPolicy", string(enum=["Delete"]), required=True)]),
    },
}
