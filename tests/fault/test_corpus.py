"""WAL-8: every later version opens the folders that version 0.1.0 has written.

tests/corpus/make wrote them, with what that version told of them. The wall clock of the
server stands where the folder was left, so that leases and delays are as they were.
"""
import json
import re
import sys
import tarfile
import time
from pathlib import Path

import pytest

from faults import Hurt

CORPUS = Path(__file__).parent.parent / "corpus"
sys.path.insert(0, str(CORPUS))
from witness import differences, witness  # noqa: E402

FOLDERS = sorted(path.with_suffix("") for path in CORPUS.glob("*/*.json"))
TYPES = {"accept", "claim", "extend", "return", "retry", "die", "done", "keep", "redrive", "purge",
         "policy", "ceiling", "opened", "closed", "undo", "message", "restore", "remember", "result",
         "policy_rated", "aside", "spelling", "lock", "document", "mark", "untake", "drop", "given",
         "taken", "refused"}  # all that 0.1.0 writes


# No view shows these any more. A test below settles with them.
HOLDERS = "/messages/.*/(lease_id|fencing_token): missing"


def title(path):
    return f"{path.parent.name}-{path.name}"


@pytest.fixture(params=FOLDERS, ids=title)
def written(request, folder, shim):
    """A folder as it was written, and a function that starts a server on it."""
    path = request.param
    told = json.loads(path.with_suffix(path.suffix + ".json").read_text())
    with tarfile.open(f"{path}.tar.xz") as tar:
        tar.extractall(folder.parent)
    shim.set("clock_step", int((told["written_at"] + 60 - time.time()) * 1e9))
    options = [str(path.parent / o) if o.endswith(".yaml") else o for o in told["options"]]
    return told, lambda: Hurt(folder, *options, shim=shim)


def statuses(told):
    return {m["status"] for rows in told["witness"]["messages"].values() for m in rows.values()}


def test_the_corpus_has_every_record_type_and_every_state():
    written = [json.loads(path.with_suffix(".json").read_text()) for path in CORPUS.glob("0.1.0/*.json")]
    assert set().union(*(told["records"] for told in written)) == TYPES
    assert set().union(*map(statuses, written)) == {
        "ready", "delayed", "leased", "processing", "held", "dead", "damaged"}


def test_a_later_version_tells_the_same_and_again_after_a_restart(written):
    told, start = written
    with start() as server:
        for _ in range(2):
            now = witness(server, told["results_of"], told["witness"])
            lost = list(differences(told["witness"], now))
            assert [d for d in lost if not re.match(HOLDERS, d)] == []
            server.restart("kill")


def test_leases_and_idempotency_keys_of_the_earlier_version_hold(written):
    told, start = written
    with start() as server:
        server.namespace = "shop"
        for name, rows in told["witness"]["messages"].items():
            server.topic = name.split("/")[1]
            for message in rows.values():
                if message["status"] in ("leased", "processing"):
                    server.ack(message)
                    assert server.settle("/ack", {**message, "id": message["uid"]}).status == 404
                key = message.get("idempotency_key")
                if key:
                    known, = server.enqueue({"text": "again", "idempotency_key": key})
                    assert known == message["id"]
        if told["results_of"]:
            server.topic = "done"
            again, = server.enqueue({"text": "again", "idempotency_key": "both"})
            kept = {r[1]["result"]["of"]
                    for r in told["witness"]["results"].values() if r[0] == 200}
            assert again in kept


def test_work_goes_on_in_it(written):
    _, start = written
    with start() as server:
        server.namespace, server.topic = "later", "mail"
        server.enqueue({"text": "new"})
        server.restart("kill")
        server.ack(server.take())
