"""/v1/get, update, mutate, metadata, remove, attachments, query, namespace."""
import datetime
import hashlib
import json
import os
import threading

import pytest

from locked import acquire, ask, commit, describe, finish, public, refused
from served import ENGINE, Server, until


# --- get and update --------------------------------------------------------------

def test_a_document_is_staged_then_committed(server):
    lock = acquire(server, "a")
    assert lock.get().status == 204 and public(server, "a").status == 204
    answer = lock.update({"n": 1})
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/json"
    assert answer.body == {"new_version": 1, "new_state_etag": answer.headers["ETag"],
                           "bytes": 7, "metadata": {}}
    assert answer.headers["X-Key-Version"] == "1"
    seen = lock.get()
    assert seen.body == {"n": 1} and seen.headers["ETag"] == answer.headers["ETag"]
    assert seen.headers["X-Key-Version"] == "1"
    assert seen.headers["X-Fencing-Token"] == str(lock.token)
    assert public(server, "a").status == 204
    lock.release()
    seen = public(server, "a")
    assert seen.body == {"n": 1} and seen.headers["ETag"] == answer.headers["ETag"]
    assert seen.headers["X-Fencing-Token"] is None


def test_a_version_is_one_more_however_much_was_staged(server):
    lock = acquire(server, "a")
    assert [lock.update(n).body["new_version"] for n in range(3)] == [1, 1, 1]
    lock.release()
    assert describe(server, "a")["version"] == 1
    lock = acquire(server, "a")
    assert lock.body["version"] == 1
    lock.release()
    assert describe(server, "a")["version"] == 1
    assert commit(server, "a", 5) == 2


@pytest.mark.parametrize("end", ["rollback", "expiry"])
def test_what_was_staged_is_forgotten(server, end):
    commit(server, "a", {"n": 1})
    lock = acquire(server, "a", ttl=30 if end == "rollback" else 1)
    lock.update({"n": 2})
    if end == "rollback":
        assert lock.release(rollback=True).body == {"released": True}
    else:
        until(lambda: "owner" not in describe(server, "a"))
    assert public(server, "a").body == {"n": 1}
    assert acquire(server, "a").get().body == {"n": 1}
    assert describe(server, "a")["version"] == 1


@pytest.mark.parametrize("sent, kept", [
    (' { "a" : [ 1 , 2.50 ] ,\n"b":" x " } ', '{"a":[1,2.50],"b":" x "}'),
    ('"text"', '"text"'), ("5", "5"), ("null", "null"), ("[]", "[]"),
])
def test_any_json_is_kept_without_its_space(server, sent, kept):
    lock = acquire(server, "a")
    assert lock.update(sent).body["bytes"] == len(kept)
    assert lock.get().text == kept


@pytest.mark.parametrize("sent", ["", "{", "{} {}", "{'a':1}", b"\xff", "[" * 600])
def test_what_is_no_json_is_refused_and_changes_nothing(server, sent):
    lock = acquire(server, "a")
    lock.update({"n": 1})
    assert "byte" in refused(lock.update(sent), 400, "invalid_body")["detail"]
    assert lock.get().body == {"n": 1}


def test_a_document_of_many_pieces_comes_back(server):
    """Larger than a piece, and than a record of the log."""
    lock = acquire(server, "a")
    document = {"text": ["x" * 1000, "é" * 1000, "\\\"\n"] * 1000, "n": list(range(10000))}
    text = json.dumps(document, indent=1).encode()
    sums = {"X-Expected-SHA256": hashlib.sha256(text).hexdigest(), "X-Expected-Bytes": len(text)}
    answer = lock.update(text, **{k.replace("-", "_"): v for k, v in sums.items()})
    assert answer.status == 200 and answer.body["bytes"] < len(text)
    assert lock.get().body == document
    lock.release()
    assert public(server, "a").body == document
    lock = acquire(server, "a")
    assert lock.mutate("/n=5").status == 200
    assert lock.get().body == {**document, "n": 5}
    refused(lock.update(b'[1,"' + b"x" * 3000000), 400, "invalid_body")
    assert lock.get().body == {**document, "n": 5}


def test_memory_does_not_grow_with_a_document(folder):
    if "asan" in os.environ["SLUICED"] or "tsan" in os.environ["SLUICED"]:
        pytest.skip("a sanitizer keeps what is freed")
    if ENGINE == "redis":
        pytest.skip("a document comes from the server as a whole")
    with Server(folder) as server:
        lock = acquire(server, "a", ttl=600)
        lock.update({"n": 1})
        before = peak(server)
        size = 40 << 20
        answer = lock.update(b'["' + b"x" * size + b'"]')
        assert answer.status == 200 and answer.body["bytes"] == size + 4
        seen = lock.get()
        assert len(seen.text) == size + 4
        assert peak(server) - before < 16 << 20


def test_a_document_has_a_limit(server):
    """What is too long by its own word is refused before it is sent."""
    lock = acquire(server, "a")
    lock.update({"n": 1})
    fields = "".join(f"{k}: {v}\r\n" for k, v in lock.fields().items())
    with server.raw() as s:
        s.sendall((f"POST /v1/update?key=a&namespace={server.namespace} HTTP/1.1\r\nHost: localhost\r\n{fields}"
                   f"Content-Length: {(100 << 20) + 1}\r\nExpect: 100-continue\r\n\r\n").encode())
        answer = finish(s)
    assert (answer.status, answer.body["error"]) == (413, "document_too_large")
    assert lock.get().body == {"n": 1}


def peak(server):
    for line in open(f"/proc/{server.process.pid}/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024


def test_an_update_is_what_was_expected_or_refused(server):
    lock = acquire(server, "a")
    text = ' {"n": 1}'
    fine = hashlib.sha256(text.encode()).hexdigest()
    assert lock.update(text, X_Expected_SHA256=fine.upper(), X_Expected_Bytes=9).status == 200
    refused(lock.update(text, X_Expected_SHA256="0" * 64), 409, "expected_sha256_mismatch")
    refused(lock.update(text, X_Expected_Bytes=8), 409, "expected_bytes_mismatch")
    refused(lock.update(text, X_Expected_SHA256="xyz"), 400, "invalid_expected_sha256")
    refused(lock.update(text, X_Expected_Bytes="x"), 400, "invalid_expected_bytes")


# --- by whose right --------------------------------------------------------------

CALLS = {
    "update": lambda lock, **f: lock.update({"n": 2}, **f),
    "mutate": lambda lock, **f: lock.mutate("/n=2", **f),
    "metadata": lambda lock, **f: lock.hide(**f),
    "remove": lambda lock, **f: lock.remove(**f),
    "attach": lambda lock, **f: lock.attach("name", b"bytes", **f),
    "detach": lambda lock, **f: lock.call("DELETE", "/v1/attachment", params={"name": "x"}, **f),
    "detach all": lambda lock, **f: lock.call("DELETE", "/v1/attachments", **f),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_only_the_holder_writes(server, call):
    """LQ-20: the same checks, in the same order, for whatever is written."""
    lock, other = acquire(server, "a"), acquire(server, "b")
    lock.update({"n": 1})
    refused(call(lock, X_Lease_ID=None), 400, "missing_lease")
    refused(call(lock, X_Txn_ID=None), 400, "missing_txn")
    refused(call(lock, X_Txn_ID="x"), 400, "invalid_txn")
    refused(call(lock, X_Fencing_Token=None), 400, "missing_fencing_token")
    refused(call(lock, X_Fencing_Token="1e3"), 400, "invalid_fencing_token")
    refused(call(lock, X_Lease_ID=other.lease, X_Fencing_Token=1), 403, "lease_required")
    refused(call(lock, X_Fencing_Token=lock.token - 1, X_Txn_ID=other.txn), 403, "fencing_mismatch")
    refused(call(lock, X_Fencing_Token=-1), 403, "fencing_mismatch")
    refused(call(lock, X_Txn_ID=other.txn), 409, "txn_mismatch")
    assert lock.get().body == {"n": 1}
    lock.release()
    refused(call(lock), 403, "lease_required")
    answer = call(acquire(server, "a"))
    assert answer.status == 200, answer


def test_a_read_needs_a_lease_or_says_that_it_is_public(server):
    lock = acquire(server, "a")
    there = {"key": "a", "namespace": server.namespace}
    refused(server.get("/v1/get", **there), 400, "missing_params")
    refused(server.get("/v1/get", public="1"), 400, "missing_key")
    refused(lock.get(X_Fencing_Token=None), 400, "missing_fencing_token")
    refused(lock.get(X_Fencing_Token=1), 403, "fencing_mismatch")
    refused(lock.get(X_Lease_ID=acquire(server, "b").lease), 403, "lease_required")
    assert lock.get(X_Txn_ID=None).status == 204
    assert server.post("/v1/get", **there, public="true").status == 204


# --- conditions ------------------------------------------------------------------

@pytest.mark.parametrize("call", ["update", "mutate", "remove"])
def test_a_condition_is_compared_with_what_the_holder_sees(server, call):
    commit(server, "a", {"n": 1})
    lock = acquire(server, "a")
    etag = lock.body["state_etag"]
    call = CALLS[call]
    body = refused(call(lock, X_If_Version=7), 409, "version_conflict")
    assert body["current_version"] == 1 and body["current_etag"] == etag
    body = refused(call(lock, X_If_State_ETag="other"), 409, "etag_mismatch")
    assert body["current_version"] == 1 and body["current_etag"] == etag
    refused(call(lock, X_If_Version="x"), 400, "invalid_version")
    answer = call(lock, X_If_Version=1, X_If_State_ETag=f' "{etag}" ')
    assert answer.status == 200 and answer.headers["X-Key-Version"] == "2"
    refused(call(lock, X_If_Version=1), 409, "version_conflict")
    assert lock.update({"n": 3}, X_If_Version=2).status == 200


def test_one_of_two_writers_wins(server):
    """LQ-31"""
    commit(server, "a", {"n": 0})
    versions = []

    def write(n):
        seen = public(server, "a")
        barrier.wait()
        lock = acquire(server, "a", block=0, owner=f"w{n}")
        answer = lock.update({"n": n}, X_If_Version=seen.headers["X-Key-Version"])
        lock.release()
        versions.append(answer.status)

    barrier = threading.Barrier(2)
    threads = [threading.Thread(target=write, args=(n,)) for n in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(versions) == [200, 409]
    assert describe(server, "a")["version"] == 2


# --- mutate ----------------------------------------------------------------------

def test_a_document_is_changed_in_place(server):
    lock = acquire(server, "a")
    answer = lock.mutate("/count++", '/user{/name="Ann",/tags=[1]}', "/gone=1", "rm:/gone")
    assert answer.status == 200 and answer.body["new_version"] == 1
    assert answer.headers["X-Lockd-Mutate-Candidates-Written"] == "1"
    assert answer.headers["X-Lockd-Mutate-Bytes-Written"] == str(answer.body["bytes"])
    assert lock.get().body == {"count": 1, "user": {"name": "Ann", "tags": "[1]"}}
    lock.mutate("/count=+4", "/user/name=Bob", "time:/at=NOW")
    seen = lock.get().body
    assert seen["count"] == 5 and seen["user"]["name"] == "Bob" and seen["at"].endswith("Z")
    lock.release()
    assert public(server, "a").body == seen


def test_each_element_of_mutations_is_one_mutation(server):
    lock = acquire(server, "a")
    lock.update({"items": [{"n": 1}, {"n": 2}], "deep": {"er": {"n": 3}}})
    assert lock.mutate("/note=a,/x=1", "/text=hello, world", "/lines=one\ntwo", "/id=007",
                       "/flag{/on=true,/off=null}").status == 200
    assert lock.mutate("/items[]/n++", "/.../er/n=0", "rm:/flag/*").status == 200
    assert lock.get().body == {
        "items": [{"n": 2}, {"n": 3}], "deep": {"er": {"n": 0}}, "note": "a,/x=1",
        "text": "hello, world", "lines": "one\ntwo", "id": 7, "flag": {}}


@pytest.mark.parametrize("body, code", [
    ({"mutations": ["/n"]}, "invalid_mutations"),
    ({"mutations": ["/a{/b=1},/n=1"]}, "invalid_mutations"),
    ({"mutations": ["/n=1", "n=1"]}, "invalid_mutations"),
    ({"mutations": ["/text++"]}, "invalid_mutations"),
    ({"mutations": []}, "invalid_mutations"),
    ({}, "invalid_mutations"),
    ({"mutations": "/n=1"}, "invalid_body"),
    ({"mutations": ["/n++"] * 200}, "invalid_body"),
])
def test_a_bad_mutation_changes_nothing(server, body, code):
    lock = acquire(server, "a")
    lock.update({"n": 1, "text": "x"})
    refused(lock.call("POST", "/v1/mutate", body), 400, code)
    assert lock.get().body == {"n": 1, "text": "x"}


def test_mutations_of_one_holder_are_all_done(server):
    lock = acquire(server, "a")
    threads = [threading.Thread(target=lock.mutate, args=("/n++",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lock.get().body == {"n": 8}


# --- remove, metadata ------------------------------------------------------------

def test_a_removal_is_staged_then_committed(server):
    commit(server, "a", {"n": 1})
    lock = acquire(server, "a")
    answer = lock.remove()
    assert answer.body == {"removed": True, "new_version": 2} and answer.headers["X-Key-Version"] == "2"
    assert lock.get().status == 204 and public(server, "a").body == {"n": 1}
    lock.release()
    assert public(server, "a").status == 204
    assert describe(server, "a")["version"] == 2
    assert acquire(server, "a").remove().body == {"removed": False}


def test_metadata_is_staged_then_committed(server):
    commit(server, "a", {"n": 1})
    lock = acquire(server, "a")
    answer = lock.hide()
    assert answer.status == 200 and answer.headers["X-Key-Version"] == str(answer.body["version"])
    assert answer.body["metadata"] == {"query_hidden": True} and answer.body["key"] == "a"
    lock.release()
    lock = acquire(server, "a")
    answer = lock.call("POST", "/v1/metadata", X_Lockd_Meta_Query_Hidden="false")
    assert answer.body["metadata"] == {"query_hidden": False}
    refused(lock.hide(X_If_Version=99), 409, "version_conflict")
    refused(lock.call("POST", "/v1/metadata", {}), 400, "invalid_metadata")
    refused(lock.call("POST", "/v1/metadata", {"query_hidden": 1}), 400, "invalid_metadata")


# --- attachments -----------------------------------------------------------------

def attachments(server, lock=None, key="a"):
    if lock:
        return lock.call("GET", "/v1/attachments").body["attachments"]
    return server.get("/v1/attachments", key=key, namespace=server.namespace, public="1").body["attachments"]


def attachment(server, **which):
    return server.get("/v1/attachment", key="a", namespace=server.namespace, public="1", **which)


def test_an_attachment_is_staged_then_committed(server):
    lock = acquire(server, "a")
    data = os.urandom(3000)
    answer = lock.attach("photo é.jpg", data, {"content_type": "image/jpeg"})
    assert answer.status == 200 and answer.headers["X-Fencing-Token"] == str(lock.token)
    info = answer.body["attachment"]
    assert info["name"] == "photo é.jpg" and info["size"] == 3000
    assert info["plaintext_sha256"] == hashlib.sha256(data).hexdigest()
    assert info["content_type"] == "image/jpeg" and info["created_at_unix"] > 0
    assert answer.body["version"] == 1 and "noop" not in answer.body
    listed, = attachments(server, lock)
    assert 0 <= info["created_at_unix"] - listed["created_at_unix"] <= 60  # the put says when it was answered
    info = {**info, **{at: listed[at] for at in ("created_at_unix", "updated_at_unix")}}
    assert listed == info and attachments(server) == []
    lock.release()
    assert attachments(server) == [info]
    for which in ({"name": "photo é.jpg"}, {"id": info["id"]}):
        seen = raw_attachment(server, **which)
        assert seen[0] == 200 and seen[1] == data
        assert seen[2]["Content-Type"] == "image/jpeg" and seen[2]["X-Attachment-ID"] == info["id"]
        assert seen[2]["X-Attachment-Size"] == "3000"
        assert seen[2]["X-Attachment-SHA256"] == info["plaintext_sha256"]
        assert seen[2]["X-Attachment-Created-At"] == seen[2]["X-Attachment-Updated-At"]


@pytest.mark.parametrize("size", [100, 3 << 20])
def test_a_browser_does_not_show_an_attachment_as_a_page(server, size):
    lock = acquire(server, "a")
    data = b"<script>fetch('/dequeue')</script>".ljust(size)
    assert lock.attach("page.html", data, {"content_type": "text/html"}).status == 200
    lock.release()
    status, body, headers = raw_attachment(server, name="page.html")
    assert status == 200 and body == data and headers["Content-Type"] == "text/html"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Security-Policy"] == "sandbox"
    assert headers["Content-Disposition"] == "attachment"


def raw_attachment(server, **which):
    import urllib.parse
    connection = server.connect()
    query = urllib.parse.urlencode({"key": "a", "namespace": server.namespace, "public": "1", **which})
    connection.request("GET", "/v1/attachment?" + query)
    response = connection.getresponse()
    seen = response.status, response.read(), response.headers
    connection.close()
    return seen


def test_a_large_attachment_comes_back(server):
    lock = acquire(server, "a")
    data = os.urandom(5 << 20)
    assert lock.attach("big", data).status == 200
    lock.release()
    assert raw_attachment(server, name="big")[:2] == (200, data)


def test_attachments_tell_their_id_and_the_version(server):
    lock = acquire(server, "a")
    sent = lock.attach("a", b"bytes")
    identity = sent.body["attachment"]["id"]
    assert (sent.headers["X-Attachment-ID"], sent.headers["X-Key-Version"]) == (identity, "1")
    kept = lock.attach("a", b"other", {"prevent_overwrite": "true"})
    assert (kept.headers["X-Attachment-ID"], kept.headers["X-Key-Version"]) == (identity, "1")
    lock.release()
    _, _, head = raw_attachment(server, name="a")
    assert (head["X-Attachment-ID"], head["X-Key-Version"]) == (identity, "1")
    listed = server.get("/v1/attachments", key="a", namespace=server.namespace, public="1")
    assert listed.headers["X-Key-Version"] == "1"
    lock = acquire(server, "a")
    assert lock.call("DELETE", "/v1/attachments").headers["X-Key-Version"] == "2"


def test_an_attachment_has_a_limit(server):
    lock = acquire(server, "a")
    assert lock.attach("a", b"12345", {"max_bytes": "5"}).status == 200
    refused(lock.attach("b", b"123456", {"max_bytes": "5"}), 413, "attachment_too_large")
    assert [a["name"] for a in attachments(server, lock)] == ["a"]
    refused(lock.attach("", b"x"), 400, "missing_params")
    refused(lock.attach("n" * 129, b"x"), 400, "invalid_body")


def test_an_attachment_is_replaced_unless_the_request_forbids_it(server):
    lock = acquire(server, "a")
    first = lock.attach("a", b"one").body["attachment"]
    kept = lock.attach("a", b"two", {"prevent_overwrite": "true"})
    assert kept.status == 200 and kept.body["noop"] is True and kept.body["attachment"] == first
    second = lock.attach("a", b"two").body["attachment"]
    assert second["id"] != first["id"]
    lock.release()
    assert raw_attachment(server, name="a")[1] == b"two"
    refused(attachment(server, id=first["id"]), 404, "attachment_not_found")


def test_attachments_are_removed(server):
    lock = acquire(server, "a")
    for name in ("a", "b", "c"):
        lock.attach(name, name)
    answer = lock.call("DELETE", "/v1/attachment", params={"name": "a"})
    assert answer.body["deleted"] is True and answer.body["version"] == 1
    assert lock.call("DELETE", "/v1/attachment", params={"name": "a"}).body["deleted"] is False
    assert lock.call("DELETE", "/v1/attachments").body["deleted"] == 2
    assert attachments(server, lock) == []
    refused(attachment(server, name="a"), 404, "attachment_not_found")
    refused(attachment(server), 400, "missing_params")


# --- query -----------------------------------------------------------------------

def search(server, selector=None, **more):
    body = {"namespace": server.namespace, **more}
    if selector is not None:
        body["selector"] = selector
    return server.post("/v1/query", body)


def rows(server, query="", **body):
    """Of documents: the rows, and what stands in the trailer."""
    with server.raw() as s:
        text = json.dumps({"namespace": server.namespace, "return": "documents", **body}).encode()
        s.sendall(b"POST /v1/query%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
                  % (query.encode(), len(text), text))
        data = b""
        while True:
            piece = s.recv(65536)
            if not piece:
                break
            data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    assert b" 200 " in head and b"application/x-ndjson" in head and b"Trailer: X-Lockd-Query-Cursor" in head
    out = b""
    while True:
        size, _, rest = rest.partition(b"\r\n")
        n = int(size, 16)
        if n == 0:
            break
        out += rest[:n]
        rest = rest[n + 2:]
    trailer = dict(line.split(": ", 1) for line in rest.decode().split("\r\n") if line)
    return [json.loads(line) for line in out.splitlines()], trailer


def test_documents_are_found(server):
    for n, status in enumerate(["open", "done", "open", "new"]):
        commit(server, f"job/{n}", {"status": status, "n": n})
    lock = acquire(server, "hidden")
    lock.update({"status": "open"})
    lock.hide()
    lock.release()
    acquire(server, "staged").update({"status": "open"})
    answer = search(server, {"eq": {"field": "/status", "value": "open"}})
    assert answer.body["keys"] == ["job/0", "job/2"] and "cursor" not in answer.body
    assert answer.body["namespace"] == server.namespace
    assert answer.headers["X-Lockd-Query-Return"] == "keys"
    assert search(server).body["keys"] == [f"job/{n}" for n in range(4)]
    both = {"and": [{"range": {"field": "/n", "gte": 1}}, {"not": {"eq": {"field": "/status", "value": "new"}}}]}
    assert search(server, both).body["keys"] == ["job/1", "job/2"]
    assert search(server, {"prefix": {"field": "/status", "value": "x"}}).body["keys"] == []
    found, trailer = rows(server, selector={"eq": {"field": "/n", "value": 2}})
    assert found == [{"ns": server.namespace, "key": "job/2", "ver": 1, "doc": {"status": "open", "n": 2}}]
    told = json.loads(trailer["X-Lockd-Query-Metadata"])
    assert told == {"engine": "scan", "query_candidates_seen": "4", "query_candidates_matched": "1",
                    "query_bytes_captured": str(len('{"status":"open","n":2}')),
                    "query_spill_count": "0", "query_spill_bytes": "0"}
    assert "engine" not in json.loads(rows(server, "?engine=scan")[1]["X-Lockd-Query-Metadata"])
    assert "X-Lockd-Query-Cursor" not in trailer


def test_a_query_goes_on_where_it_ended(server):
    for n in range(7):
        commit(server, f"k{n}", {"n": n})
    found, cursor = [], ""
    while cursor is not None:
        answer = search(server, limit=3, cursor=cursor)
        found += answer.body["keys"]
        cursor = answer.body.get("cursor")
        assert answer.headers["X-Lockd-Query-Cursor"] == cursor
    assert found == [f"k{n}" for n in range(7)]
    first, trailer = rows(server, limit=5)
    rest, _ = rows(server, cursor=trailer["X-Lockd-Query-Cursor"])
    assert [row["doc"]["n"] for row in first + rest] == list(range(7))


def test_many_and_large_documents_are_streamed(server):
    for n in range(150):
        commit(server, f"k{n:03}", {"n": n, "pad": "x" * 6000})
    commit(server, "large", {"pad": "y" * 2000000})
    found, _ = rows(server, limit=1000)
    assert [row["key"] for row in found] == [f"k{n:03}" for n in range(150)] + ["large"]
    assert found[-1]["doc"]["pad"] == "y" * 2000000


def any_of(n):
    return {"contains": {"field": "/t", "any": [f"none-{i}" for i in range(n)]}}


def test_a_query_takes_a_bounded_number_of_steps_and_says_where_to_go_on(server):
    for i in range(8):
        commit(server, f"k{i}", {"t": "x" * (1 << 20)})
    wanted = {"not": any_of(20)}
    answer = search(server, wanted)
    assert answer.status == 200 and 0 < len(answer.body["keys"]) < 8 and answer.body["cursor"]
    keys, calls = answer.body["keys"], 1
    while "cursor" in answer.body and calls < 8:
        answer = search(server, wanted, cursor=answer.body["cursor"])
        keys += answer.body["keys"]
        calls += 1
    assert keys == [f"k{i}" for i in range(8)]


def test_a_document_that_is_too_large_for_so_many_conditions_is_named(server):
    commit(server, "large", {"t": "x" * (4 << 20)})
    assert search(server, {"not": any_of(20)}).body["keys"] == ["large"]
    answer = search(server, any_of(200))
    refused(answer, 413, "document_too_large")
    assert "key large" in answer.body["detail"]


def test_queries_that_search_long_texts_stop_no_other_request(server):
    """Letter by letter each of these takes minutes."""
    commit(server, "long", {"t": "a" * (4 << 20)})
    slow = {"icontains": {"field": "/t", "value": "A" * (60 << 10) + "b"}}
    raw = json.dumps({"namespace": server.namespace, "selector": slow}).encode()
    head = b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(raw)
    socks = [server.raw() for _ in range(8)]
    for sock in socks:
        sock.sendall(head + raw)
    lock = acquire(server, "a")
    assert lock.attach("file", os.urandom(2 << 20)).status == 200
    lock.release()
    for sock in socks[:4]:
        sock.close()
    assert search(server, {"exists": "/t"}).body["keys"] == ["long"]
    for sock in socks[4:]:
        said = b""
        while b'"keys":[]' not in said:
            chunk = sock.recv(65536)
            assert chunk, said
            said += chunk
        sock.close()


def test_many_mutations_of_a_large_document_are_refused(server):
    lock = acquire(server, "a")
    lock.update({"t": "x" * (15 << 20)})
    refused(lock.mutate(*["/n++"] * 128), 413, "document_too_large")
    assert lock.mutate("/n++", "/n++").status == 200


def test_a_query_may_come_in_parameters(server):
    commit(server, "a", {"n": 1})
    commit(server, "b", {"n": 2})
    answer = server.get("/v1/query", namespace=server.namespace, engine="index", refresh="wait_for",
                        selector='{"eq":{"field":"/n","value":2}}', limit="5")
    assert answer.body["keys"] == ["b"]


def found_by(server, *query, **body):
    text = "&".join(query)
    answer = server.call("POST", f"/v1/query?namespace={server.namespace}" + (f"&{text}" if text else ""), body)
    assert answer.status == 200, answer
    return answer.body["keys"]


def test_dates_and_arrays_are_found(server):
    now = datetime.datetime.now(datetime.timezone.utc)
    commit(server, "new", {"at": (now + datetime.timedelta(hours=1)).isoformat(), "tags": ["a", "b"]})
    commit(server, "old", {"at": "2020-02-01T00:30:00+01:00", "items": [{"sku": "x"}, {"sku": "y"}]})
    assert found_by(server, selector={"date": {"field": "/at", "since": "now"}}) == ["new"]
    assert found_by(server, selector={"date": {"field": "/at", "since": "today"}}) == ["new"]
    assert found_by(server, selector={"date": {"field": "/at", "before": "2020-02-01"}}) == ["old"]
    assert found_by(server, selector={"eq": {"field": "/at", "value": "2020-01-31"}}) == ["old"]
    assert found_by(server, selector={"eq": {"field": "/at", "value": "2020-01-31T23:30:00Z"}}) == ["old"]
    assert found_by(server, selector={"in": {"field": "/tags", "any": "b|c"}}) == ["new"]
    assert found_by(server, selector={"contains": {"field": "/items/sku", "value": "y"}}) == ["old"]


@pytest.mark.parametrize("query", [
    'selector=/status="open",/n>1', "selector=or.eq{f=/n,v=2},or.eq{f=/n,v=7}", "/n=2",
    "eq{field=/n,value=2}", "eq%7Bfield%3D/n,value%3D2%7D", "eq.field=/n&eq.value=2", "/n>1&/n<3",
    "exists=/extra", "selector=/n>1&/status=open",
])
def test_words_in_the_query_are_evaluated(server, query):
    commit(server, "a", {"n": 1, "status": "open"})
    commit(server, "b", {"n": 2, "status": "open", "extra": True})
    commit(server, "c", {"n": 3, "status": "done"})
    query = query.replace('"', "%22").replace("{", "%7B").replace("}", "%7D").replace(">", "%3E").replace("<", "%3C")
    assert found_by(server, query) == ["b"]
    assert found_by(server, query, selector={"eq": {"field": "/n", "value": 1}}) == []


@pytest.mark.parametrize("query", ["selector=status=open", "and.or.eq.field=/a", "/n", "eq%7Bfield", "selector=%7B"])
def test_words_that_are_not_understood_are_refused(server, query):
    refused(server.call("POST", f"/v1/query?{query}", {}), 400, "invalid_body")


@pytest.mark.parametrize("body", [
    {"selector": {"like": 1}}, {"selector": "x"}, {"return": "everything"}, {"limit": "x"},
    {"cursor": "c" * 200},
])
def test_a_bad_query_is_refused(server, body):
    refused(server.post("/v1/query", {"namespace": server.namespace, **body}), 400, "invalid_body")
    refused(server.post("/v1/query", {}, engine="x"), 400, "invalid_body")


def test_a_flush_has_nothing_to_do(server):
    answer = server.post("/v1/index/flush", {"namespace": server.namespace})
    assert answer.status == 200 and answer.body == {
        "namespace": server.namespace, "mode": "wait", "accepted": True, "flushed": True, "pending": False}
    assert server.post("/v1/index/flush", {"mode": "async"}).status == 202
    refused(server.post("/v1/index/flush", {"mode": "later"}), 400, "invalid_body")


# --- namespaces ------------------------------------------------------------------

def test_a_namespace_has_settings(folder):
    def settings(**more):
        return server.call("GET", "/v1/namespace", namespace="shop", **more)

    def put(engine, method="POST", **fields):
        return server.call(method, "/v1/namespace", {
            "namespace": "shop", "query": {"preferred_engine": engine, "fallback_engine": "scan"}}, fields)

    with Server(folder) as server:
        assert settings().body == {"namespace": "shop", "query": {
            "preferred_engine": "scan", "fallback_engine": "none"}}
        answer = put("index")
        etag = answer.headers["ETag"]
        assert answer.status == 200 and answer.body == settings().body
        assert settings().headers["ETag"] == etag
        refused(put("auto", **{"If-Match": '"other"'}), 409, "etag_mismatch")
        server.restart("kill")
        assert settings().body["query"] == {"preferred_engine": "index", "fallback_engine": "scan"}
        assert put("auto", "PUT", **{"If-Match": f'"{etag}"'}).status == 200
        assert settings().body["query"]["preferred_engine"] == "auto"
        for query in ({}, {"preferred_engine": ""}, {"fallback_engine": ""}, None):
            body = {"namespace": "shop", **({} if query is None else {"query": query})}
            answer = server.call("POST", "/v1/namespace", body)
            assert answer.status == 200 and answer.body == settings().body, answer
            assert answer.body["query"] == {"preferred_engine": "auto", "fallback_engine": "scan"}
        one = server.call("POST", "/v1/namespace", {"namespace": "shop", "query": {"fallback_engine": "none"}})
        assert one.body["query"] == {"preferred_engine": "auto", "fallback_engine": "none"}
        refused(put("quick"), 400, "invalid_body")
        server.namespace = "shop"
        assert search(server).body["keys"] == []
        refused(ask(server, "~namespace"), 400, "invalid_key")
