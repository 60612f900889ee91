"""The part of the lockd dialect in the OpenAPI document: locks and state."""
from lockd.openapi import NAME, NAMESPACE, UNIX, asked, error
from openapi_words import COUNT, FLAG, TEXT, answer, array, call, each, integer, query, record, ref, string, whole

XID = string(pattern="^[0-9a-v]{20}$")
ETAG = string(minLength=1)
VERSION = COUNT
TOKEN = integer(minimum=1)
ENGINES = each(string(enum=["auto", "index", "scan", "none"]), "preferred_engine fallback_engine")



def headers(fields):
    return [{"name": name, "in": "header", "schema": schema} for name, schema in fields.items()]


# The holder of a lease says who it is in these fields.
LEASE = headers({"X-Lease-ID": XID, "X-Txn-ID": XID, "X-Fencing-Token": TOKEN})
CONDITIONS = headers({"X-If-Version": VERSION, "X-If-State-ETag": TEXT})
EXPECTED = headers({"X-Expected-SHA256": string(pattern="^[0-9a-fA-F]{64}$"), "X-Expected-Bytes": COUNT})

KEY = query("key", NAME)
PLACE = [query("namespace", NAME), KEY]
PUBLIC = query("public", string(enum=["1", "true"]), text="Read the committed version, without a lease.")
HOLDER = [*PLACE, *LEASE]
WRITER = [*HOLDER, *CONDITIONS]
READER = [*HOLDER, PUBLIC]

QUERY = {"query_hidden": FLAG}
ATTACHMENT = {
    "id": ETAG, "name": string(minLength=1), "size": COUNT,
    "plaintext_sha256": string(pattern="^[0-9a-f]{64}$"), "content_type": TEXT,
    "created_at_unix": UNIX, "updated_at_unix": UNIX,
}

SCHEMAS = {
    "LockAcquire": asked(["owner"], {
        "namespace": NAME, "key": TEXT, "owner": string(minLength=1, maxLength=256),
        "ttl_seconds": integer(), "block_seconds": integer(), "if_not_exists": FLAG,
        "txn_id": XID,
    }),
    "LockLease": record(
        ["namespace", "key", "lease_id", "txn_id", "owner", "expires_at_unix", "version",
         "fencing_token", "correlation_id"], {
            "namespace": ref("Name"), "key": TEXT, "lease_id": XID, "txn_id": XID,
            "owner": TEXT, "expires_at_unix": UNIX, "version": VERSION,
            "state_etag": ETAG, "fencing_token": TOKEN, "correlation_id": TEXT,
        }),
    "LockHeld": asked(["key", "lease_id"], {
        "namespace": NAME, "key": NAME, "lease_id": XID, "txn_id": XID,
        "ttl_seconds": integer(), "rollback": FLAG,
    }),
    "LockDescribed": record(["namespace", "key", "version", "metadata"], {
        "namespace": ref("Name"), "key": TEXT, "owner": TEXT, "lease_id": XID,
        "expires_at_unix": UNIX, "version": VERSION, "state_etag": ETAG,
        "updated_at_unix": UNIX, "metadata": record([], QUERY),
    }),
    "StateStaged": whole({
        "new_version": VERSION, "new_state_etag": ETAG, "bytes": COUNT, "metadata": record([], QUERY)}),
    "LockAttachment": record(["id", "name", "size"], ATTACHMENT),
    "LockQuery": asked([], {
        "namespace": NAME, "selector": {"type": "object"}, "limit": integer(),
        "cursor": TEXT, "return": string(enum=["keys", "documents"]),
    }),
    "LockNamespace": whole({"namespace": ref("Name"), "query": whole(ENGINES)}),
}


def locks(name, summary, answers, parameters=(), body=None):
    return call(name, "lockd locks", summary, answers, parameters, body, other="LockdError")


def said(required, members, text="Done."):
    return {"200": answer(record(required, members), text)}


def refused(name, summary):
    return {"post": {"operationId": name, "tags": ["lockd locks"], "summary": summary, "responses": {
        "403": error("Always."),
        "default": {"$ref": "#/components/responses/LockdError"}}}}


def upload():
    row = locks("lockAttach", "Stage an attachment; the body is its bytes", said(
        ["attachment", "version"],
        {"attachment": ref("LockAttachment"), "noop": FLAG, "version": VERSION}), [
            *WRITER, query("name", string(maxLength=128), required=True),
            query("content_type", string(maxLength=128)), query("max_bytes", COUNT),
            query("prevent_overwrite", TEXT, text="true: an attachment of that name stays as it is, and the answer describes it.")])
    row["requestBody"] = {"content": {"application/octet-stream": {}}}
    return row


WHICH = [query("name", TEXT), query("id", TEXT, text="The id, instead of the name.")]
NONE = {"204": {"description": "There is no document."}}
FLUSHED = whole({"namespace": ref("Name"), "mode": string(enum=["wait", "async"]),
                 **each(FLAG, "accepted flushed pending")})
FOUND = answer(record(["namespace", "keys", "metadata"], {
    "namespace": ref("Name"), "keys": array(TEXT), "cursor": TEXT,
    "metadata": {"type": "object"}}), "Keys; or documents, one per line, then the cursor.")
FOUND["content"]["application/x-ndjson"] = {}
SETTINGS = {"200": answer(ref("LockNamespace"), "The settings in force.")}
SETTING = asked([], {"namespace": NAME, "query": asked([], ENGINES)})

PATHS = {
    "/v1/acquire": {"post": locks("lockAcquire", "Acquire a key; may wait", {
        "200": answer(ref("LockLease"), "The lease.")}, [NAMESPACE, KEY], ref("LockAcquire"))},
    "/v1/keepalive": {"post": locks("lockKeepalive", "Extend a lease", said(
        ["expires_at_unix"], {"expires_at_unix": UNIX}), LEASE, ref("LockHeld"))},
    "/v1/release": {"post": locks("lockRelease", "Commit what was staged, or roll it back, and end the lease", said(
        ["released"], {"released": FLAG}), LEASE, ref("LockHeld"))},
    "/v1/describe": {"post": locks("lockDescribe", "Show the owner and the version of a key", {
        "200": answer(ref("LockDescribed"), "Also for an unknown key.")}, PLACE)},
    "/v1/get": {"post": locks("stateGet", "Read a document: the holder's version, or the committed one", {
        "200": answer({}, "The document."), **NONE}, READER)},
    "/v1/update": {"post": locks("stateUpdate", "Stage a document", {
        "200": answer(ref("StateStaged"), "Staged.")}, [*WRITER, *EXPECTED], {})},
    "/v1/mutate": {"post": locks("stateMutate", "Change the document in place", {
        "200": answer(ref("StateStaged"), "Staged.")}, WRITER, asked(["mutations"], {
            "namespace": NAME, "mutations": array(TEXT, maxItems=128)}))},
    "/v1/metadata": {"post": locks("stateMetadata", "Stage whether queries show the key", said(
        ["namespace", "key", "version", "metadata"],
        {"namespace": ref("Name"), "key": TEXT, "version": VERSION, "metadata": record([], QUERY)},
        ), WRITER, asked([], QUERY))},
    "/v1/remove": {"post": locks("stateRemove", "Stage the removal of the document", said(
        ["removed"], {"removed": FLAG, "new_version": VERSION}), WRITER)},
    "/v1/attachments": {
        "post": upload(),
        "get": locks("lockAttachments", "List the attachments of a key", said(
            ["namespace", "key", "attachments"], {"namespace": ref("Name"), "key": TEXT,
                                                 "attachments": array(ref("LockAttachment"))}), READER),
        "delete": locks("lockDetachAll", "Stage the removal of all attachments", said(
            ["deleted", "version"], {"deleted": COUNT, "version": VERSION}), WRITER),
    },
    "/v1/attachment": {
        "get": locks("lockAttachment", "Read an attachment", {
            "200": {"description": "Its bytes, with its content type.",
                    "content": {"application/octet-stream": {}}}}, [*READER, *WHICH]),
        "delete": locks("lockDetach", "Stage the removal of an attachment", said(
            ["deleted", "version"], {"deleted": FLAG, "version": VERSION}), [*WRITER, *WHICH]),
    },
    "/v1/query": {"post": locks("lockQuery", "Find keys or documents by a selector", {"200": FOUND}, [
        NAMESPACE, *(query(name, TEXT) for name in (
            "engine", "return", "limit", "cursor", "selector", "fields", "refresh"))], ref("LockQuery"))},
    "/v1/index/flush": {"post": locks("lockFlush", "No effect: queries always see committed documents", {
        "200": answer(FLUSHED, "Done."), "202": answer(FLUSHED, "Done.")}, [NAMESPACE], asked([], {
            "namespace": NAME, "mode": string(enum=["wait", "async"])}))},
    "/v1/namespace": {
        "get": locks("namespaceGet", "Show the query settings of a namespace", SETTINGS, [NAMESPACE]),
        "post": locks("namespaceSet", "Set the query settings of a namespace", SETTINGS, [NAMESPACE], SETTING),
        "put": locks("namespacePut", "Set the query settings of a namespace", SETTINGS, [NAMESPACE], SETTING),
    },
    "/v1/txn/": refused("lockTransactions", "Transactions over several keys: not supported"),
    "/v1/tc/": refused("lockCoordinators", "Transactions over several servers: not supported"),
}
