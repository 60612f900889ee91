"""What openapi.py says of locks and state in the lockd dialect."""
from openapi_lockd import NAME, NAMESPACE, UNIX, asked, error
from openapi_words import answer, array, boolean, call, integer, query, record, ref, string

XID = string(pattern="^[0-9a-v]{20}$")
ETAG = string(minLength=1)
VERSION = integer(minimum=0)
TOKEN = integer(minimum=1)
ENGINES = ["auto", "index", "scan", "none"]

# The holder of a lease says who it is in these fields.
LEASE = [{"name": name, "in": "header", "schema": schema} for name, schema in (
    ("X-Lease-ID", XID), ("X-Txn-ID", XID), ("X-Fencing-Token", TOKEN))]
CONDITIONS = [{"name": name, "in": "header", "schema": schema} for name, schema in (
    ("X-If-Version", VERSION), ("X-If-State-ETag", string()))]
EXPECTED = [{"name": name, "in": "header", "schema": schema} for name, schema in (
    ("X-Expected-SHA256", string(pattern="^[0-9a-fA-F]{64}$")), ("X-Expected-Bytes", integer(minimum=0)))]

KEY = query("key", NAME)
PLACE = [query("namespace", NAME), KEY]
PUBLIC = query("public", string(enum=["1", "true"]), text="What is committed, without a lease.")
HOLDER = [*PLACE, *LEASE]
WRITER = [*HOLDER, *CONDITIONS]
READER = [*HOLDER, PUBLIC]

QUERY = {"query_hidden": boolean()}
ATTACHMENT = {
    "id": ETAG, "name": string(minLength=1), "size": integer(minimum=0),
    "plaintext_sha256": string(pattern="^[0-9a-f]{64}$"), "content_type": string(),
    "created_at_unix": UNIX, "updated_at_unix": UNIX,
}
ENGINES_OF = record(["preferred_engine", "fallback_engine"], {
    "preferred_engine": string(enum=ENGINES), "fallback_engine": string(enum=ENGINES)})

SCHEMAS = {
    "LockAcquire": asked(["owner"], {
        "namespace": NAME, "key": string(), "owner": string(minLength=1, maxLength=256),
        "ttl_seconds": integer(), "block_seconds": integer(), "if_not_exists": boolean(),
        "txn_id": XID,
    }),
    "LockLease": record(
        ["namespace", "key", "lease_id", "txn_id", "owner", "expires_at_unix", "version",
         "fencing_token", "correlation_id"], {
            "namespace": ref("Name"), "key": string(), "lease_id": XID, "txn_id": XID,
            "owner": string(), "expires_at_unix": UNIX, "version": VERSION,
            "state_etag": ETAG, "fencing_token": TOKEN, "correlation_id": string(),
        }),
    "LockHeld": asked(["key", "lease_id"], {
        "namespace": NAME, "key": NAME, "lease_id": XID, "txn_id": XID,
        "ttl_seconds": integer(), "rollback": boolean(),
    }),
    "LockDescribed": record(["namespace", "key", "version", "metadata"], {
        "namespace": ref("Name"), "key": string(), "owner": string(), "lease_id": XID,
        "expires_at_unix": UNIX, "version": VERSION, "state_etag": ETAG,
        "updated_at_unix": UNIX, "metadata": record([], QUERY),
    }),
    "StateStaged": record(["new_version", "new_state_etag", "bytes", "metadata"], {
        "new_version": VERSION, "new_state_etag": ETAG, "bytes": integer(minimum=0),
        "metadata": record([], QUERY),
    }),
    "LockAttachment": record(["id", "name", "size"], ATTACHMENT),
    "LockQuery": asked([], {
        "namespace": NAME, "selector": {"type": "object"}, "limit": integer(),
        "cursor": string(), "return": string(enum=["keys", "documents"]),
    }),
    "LockNamespace": record(["namespace", "query"], {"namespace": ref("Name"), "query": ENGINES_OF}),
}


def locks(name, summary, answers, parameters=(), body=None):
    row = call(name, "lockd locks", summary, answers, parameters, body, other="LockdError")
    return row


def said(required, members, text="Done."):
    return {"200": answer(record(required, members), text)}


def refused(name, summary):
    return {"post": {"operationId": name, "tags": ["lockd locks"], "summary": summary, "responses": {
        "403": error("Always."),
        "default": {"$ref": "#/components/responses/LockdError"}}}}


def upload():
    row = locks("lockAttach", "Stage an attachment: its bytes are the body", said(
        ["attachment", "version"],
        {"attachment": ref("LockAttachment"), "noop": boolean(), "version": VERSION}), [
            *WRITER, query("name", string(maxLength=128), required=True),
            query("content_type", string(maxLength=128)), query("max_bytes", integer(minimum=0)),
            query("prevent_overwrite", string(), text="true: what is there stays, and is told.")])
    row["requestBody"] = {"content": {"application/octet-stream": {}}}
    return row


WHICH = [query("name", string()), query("id", string(), text="Instead of the name.")]
NONE = {"204": {"description": "There is none."}}
FLUSHED = record(["namespace", "mode", "accepted", "flushed", "pending"], {
    "namespace": ref("Name"), "mode": string(enum=["wait", "async"]), "accepted": boolean(),
    "flushed": boolean(), "pending": boolean()})
FOUND = answer(record(["namespace", "keys", "metadata"], {
    "namespace": ref("Name"), "keys": array(string()), "cursor": string(),
    "metadata": {"type": "object"}}), "Keys; or documents, a line each, with the cursor behind them.")
FOUND["content"]["application/x-ndjson"] = {}
SETTINGS = {"200": answer(ref("LockNamespace"), "As it is now.")}
SETTING = asked([], {"namespace": NAME, "query": asked([], {
    "preferred_engine": string(enum=ENGINES), "fallback_engine": string(enum=ENGINES)})})

PATHS = {
    "/v1/acquire": {"post": locks("lockAcquire", "Take a lease on a key; may wait", {
        "200": answer(ref("LockLease"), "It is yours.")}, [NAMESPACE, KEY], ref("LockAcquire"))},
    "/v1/keepalive": {"post": locks("lockKeepalive", "Move the end of a lease", said(
        ["expires_at_unix"], {"expires_at_unix": UNIX}), LEASE, ref("LockHeld"))},
    "/v1/release": {"post": locks("lockRelease", "Commit what was staged, or roll it back, and let go", said(
        ["released"], {"released": boolean()}), LEASE, ref("LockHeld"))},
    "/v1/describe": {"post": locks("lockDescribe", "Who has a key, and which version it is", {
        "200": answer(ref("LockDescribed"), "Also of a key that nobody has used.")}, PLACE)},
    "/v1/get": {"post": locks("stateGet", "A document: the holder's, or what is committed", {
        "200": answer({}, "The document."), **NONE}, READER)},
    "/v1/update": {"post": locks("stateUpdate", "Stage a document", {
        "200": answer(ref("StateStaged"), "Staged.")}, [*WRITER, *EXPECTED], {})},
    "/v1/mutate": {"post": locks("stateMutate", "Change the document in place", {
        "200": answer(ref("StateStaged"), "Staged.")}, WRITER, asked(["mutations"], {
            "namespace": NAME, "mutations": array(string(), maxItems=128)}))},
    "/v1/metadata": {"post": locks("stateMetadata", "Stage whether queries see the key", said(
        ["namespace", "key", "version", "metadata"],
        {"namespace": ref("Name"), "key": string(), "version": VERSION, "metadata": record([], QUERY)},
        ), WRITER, asked([], QUERY))},
    "/v1/remove": {"post": locks("stateRemove", "Stage the removal of the document", said(
        ["removed"], {"removed": boolean(), "new_version": VERSION}), WRITER)},
    "/v1/attachments": {
        "post": upload(),
        "get": locks("lockAttachments", "What is attached to a key", said(
            ["namespace", "key", "attachments"], {"namespace": ref("Name"), "key": string(),
                                                 "attachments": array(ref("LockAttachment"))}), READER),
        "delete": locks("lockDetachAll", "Stage the removal of all attachments", said(
            ["deleted", "version"], {"deleted": integer(minimum=0), "version": VERSION}), WRITER),
    },
    "/v1/attachment": {
        "get": locks("lockAttachment", "The bytes of an attachment", {
            "200": {"description": "Its bytes, as the content type says.",
                    "content": {"application/octet-stream": {}}}}, [*READER, *WHICH]),
        "delete": locks("lockDetach", "Stage the removal of an attachment", said(
            ["deleted", "version"], {"deleted": boolean(), "version": VERSION}), [*WRITER, *WHICH]),
    },
    "/v1/query": {"post": locks("lockQuery", "Keys or documents that a selector fits", {"200": FOUND}, [
        NAMESPACE, *(query(name, string()) for name in (
            "engine", "return", "limit", "cursor", "selector", "fields", "refresh"))], ref("LockQuery"))},
    "/v1/index/flush": {"post": locks("lockFlush", "Nothing: queries see what is committed, always", {
        "200": answer(FLUSHED, "Done."), "202": answer(FLUSHED, "Done, too.")}, [NAMESPACE], asked([], {
            "namespace": NAME, "mode": string(enum=["wait", "async"])}))},
    "/v1/namespace": {
        "get": locks("namespaceGet", "How a namespace wants to be queried", SETTINGS, [NAMESPACE]),
        "post": locks("namespaceSet", "Set that", SETTINGS, [NAMESPACE], SETTING),
        "put": locks("namespacePut", "Set that", SETTINGS, [NAMESPACE], SETTING),
    },
    "/v1/txn/": refused("lockTransactions", "Transactions over several keys: not offered"),
    "/v1/tc/": refused("lockCoordinators", "Transactions over several servers: not offered"),
}
