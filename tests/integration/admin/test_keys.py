"""The list of ordering keys (docs/api.md)."""
from served import LOG, Server


def keys(server, **params):
    """Every page: keys with one name added up, messages without a key, messages looked at, and how many there are."""
    found, plain, looked, of, cursor = {}, 0, 0, None, None
    while cursor is not False:
        answer = server.get("/v1/admin/keys", **params, **({"cursor": cursor} if cursor else {}))
        assert answer.status == 200, answer
        for key in answer.body["keys"]:
            old = found.setdefault((key["queue"], key["key"]), {**key, "messages": 0, "held": 0})
            old.update({**key, "messages": old["messages"] + key["messages"], "held": old["held"] + key["held"]}
                       if "front" in key else {"messages": old["messages"] + key["messages"], "held": old["held"] + key["held"]})
        plain += answer.body["without_key"]
        looked += answer.body["looked"]
        of = answer.body.get("of", of)
        cursor = answer.body.get("cursor", False)
    return found, plain, looked, of


def test_keys_show_their_depth_and_what_holds_them(tmp_path):
    with Server(tmp_path / "data", "--sync", "none", engine=LOG, namespace="ops", topic="jobs") as server:
        server.enqueue(*({"text": "x", "key": f"k{n % 3}"} for n in range(30)), {"text": "plain"})
        server.enqueue({"text": "x", "key": "k1"}, topic="mail")
        server.enqueue({"text": "x", "key": "k1"}, namespace="other")
        first = server.take(owner="worker-7")
        found, plain, looked, of = keys(server, namespace="ops", queue="jobs")
        assert (plain, looked, of) == (1, 31, 31)
        assert {name: (k["messages"], k["held"]) for name, k in found.items()} == {("jobs", f"k{n}"): (10, 9) for n in range(3)}
        leased = found["jobs", first["key"]]
        assert (leased["front"], leased["front_state"], leased["owner"], leased["leased"]) == (first["uid"], "leased", "worker-7", 1)
        assert leased["until"] and leased["oldest_at"]
        assert {k["front_state"] for name, k in found.items() if k is not leased} == {"ready"}
        server.nack(first, delay="1h")
        assert keys(server, namespace="ops", queue="jobs")[0]["jobs", first["key"]]["front_state"] == "delayed"
        assert len(keys(server, namespace="ops")[0]) == 4
        assert keys(server)[2:] == (33, 33)
        one, = keys(server, namespace="ops", queue="mail", key="k1")[0].values()
        assert (one["namespace"], one["queue"], one["messages"]) == ("ops", "mail", 1)


def test_a_page_looks_at_1000_messages_and_the_next_one_goes_on(tmp_path):
    with Server(tmp_path / "data", "--sync", "none", engine=LOG) as server:
        server.enqueue(*({"text": "x", "key": f"k{n % 1500}"} for n in range(2500)))
        page = server.get("/v1/admin/keys", **server.here()).body
        assert page["looked"] == len(page["keys"]) == 1000 and page["of"] == 2500
        found, plain, looked, of = keys(server, **server.here(limit=300))
        assert (len(found), plain, looked, of) == (1500, 0, 2500, 2500)
        assert sum(k["messages"] for k in found.values()) == 2500
        assert server.get("/v1/admin/keys", queue="x").status == 400
