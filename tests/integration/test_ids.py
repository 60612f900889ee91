"""Ids that a JSON parser rounded: never ids of another message, and not taken for
messages that are gone."""
import os
import subprocess

import pytest

from served import Server

MAKE_LOG = os.environ["MAKE_LOG"]
ROUNDED = {
    "javascript": 362387865600004100,  # 17 digits and a zero
    "cast": 362387865600004096,        # a multiple of 64
}


def uid_of(id_):
    """The UUID of an id, as src/base/id.h has it."""
    ms = 1704067200000 + (id_ >> 22)
    text = f"{ms:012x}7{id_ >> 10 & 0xfff:03x}{0x8000 | (id_ & 0x3ff) << 4:04x}{0:012x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def calls(server, id_):
    """Every route that takes an id."""
    here = server.here(id=id_)
    query = {**server.here(), "id": id_}
    several = server.here(ids=[id_])
    return {
        "ack": server.post("/ack", here),
        "nack": server.post("/nack", here),
        "extend": server.post("/extend", here),
        "result": server.get("/result", **query),
        "peek": server.get("/peek", **query),
        "message": server.get("/v1/admin/message", **query),
        "delete": server.post("/v1/admin/message/delete", here),
        "browse": server.get("/v1/admin/messages", **query),
        "dead letters": server.get("/v1/admin/dlq", **query),
        "redrive": server.post("/dlq/redrive", several),
        "dlq delete": server.post("/dlq/delete", several),
        "admin redrive": server.post("/v1/admin/dlq/redrive", several),
        "admin dlq delete": server.post("/v1/admin/dlq/delete", several),
        "redrive by filter": server.post("/v1/admin/dlq/redrive", here),
        "delete by filter": server.post("/v1/admin/dlq/delete", here),
    }


def said(answer):
    """Status, error and message: of the answer, or of the item that it lists."""
    body = answer.body
    if "results" in body:
        body = body["results"][0]
        return body["status"], body["error"], body["message"]
    return answer.status, body.get("error"), body.get("message")


def test_no_id_of_a_large_call_is_what_a_parser_rounds_to(server):
    ids = server.enqueue(*({} for _ in range(5000)))
    assert len(set(ids)) == 5000
    assert [id_ for id_ in ids if id_ % 10 == 0 or id_ % 64 == 0] == []
    rounded = {int(float(id_)) for id_ in ids}
    assert len(rounded) < 5000 and not rounded & set(ids)


@pytest.mark.parametrize("spell", [int, str])
@pytest.mark.parametrize("kind", ROUNDED)
def test_a_rounded_id_is_refused_otherwise_than_a_message_that_is_gone(server, kind, spell):
    server.enqueue({})
    id_ = ROUNDED[kind]
    for name, answer in calls(server, spell(id_)).items():
        status, error, message = said(answer)
        assert (status, error) == (400, "rounded_id"), (name, answer)
        assert message == (f"id {id_} was rounded by a JSON parser; send the receipt, or the "
                           'id as "uid" string'), name


@pytest.mark.parametrize("id_", [
    uid_of(ROUNDED["javascript"]), uid_of(ROUNDED["cast"]), 362387865600004097, 6400])
def test_uuids_exact_numbers_and_small_numbers_are_never_called_rounded(server, id_):
    server.enqueue({})
    for name, answer in calls(server, id_).items():
        status, error, _ = said(answer)
        assert error in (None, "not_found"), (name, answer)
        assert status == (404 if error else 200), (name, answer)


def test_of_several_items_the_rounded_one_alone_is_refused(server):
    server.enqueue({}, {})
    one, two = server.dequeue(limit=2)
    answer = server.post("/ack", [server.here(id=one["id"]), server.here(id=ROUNDED["cast"]),
                                  server.here(id=two["uid"])])
    assert answer.status == 200
    assert [item["status"] for item in answer.body] == [200, 400, 200]
    assert answer.body[1]["error"] == "rounded_id"
    assert server.stats()["total"] == 0


def test_a_double_with_an_exponent_is_called_rounded(server):
    answer = server.post("/ack", '{"id":3.623878656000041e+17,"namespace":"a","topic":"b"}')
    assert answer.status == 400 and answer.body["error"] == "rounded_id", answer
    answer = server.get("/peek", **server.here(), id="3.623878656000041e+17")
    assert answer.status == 400 and answer.body["error"] == "rounded_id", answer


def test_a_rounded_id_settles_no_other_message(server):
    """The first ids of a call collapse into one double: none of them is that number."""
    server.enqueue(*({} for _ in range(20)))
    for message in server.dequeue(limit=20):
        answer = server.post("/ack", server.here(id=int(float(message["id"]))))
        assert answer.status == 400 and answer.body["error"] == "rounded_id", answer
    assert server.stats()["leased"] == 20


def test_an_id_of_version_0_1_0_still_settles(folder):
    """It gave multiples of 64 and of 10."""
    subprocess.run([MAKE_LOG, str(folder), str(ROUNDED["cast"] - 2)], check=True, timeout=60)
    with Server(folder, engine="log", namespace="ns") as server:
        message, = server.dequeue()
        assert message["id"] == ROUNDED["cast"]
        assert server.get("/peek", **server.here(), id=message["id"]).status == 200
        assert server.post("/extend", server.here(id=message["id"])).status == 200
        assert server.post("/ack", server.here(id=str(message["id"]))).status == 200
        again = server.post("/ack", server.here(id=message["id"]))
        assert (again.status, again.body["error"]) == (400, "rounded_id")
        assert server.post("/ack", server.here(id=message["uid"])).status == 404
