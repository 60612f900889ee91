"""The state of a message: a document that belongs to the holder of the message."""
import pytest

from lockd import Client
from locked import Lock, ask, commit, describe, public, refused
from served import Server, texts, until


def client_of(server):
    return Client(server.address, namespace=server.namespace, queue="orders")


def state_of(server, message):
    """Its holder's, from what a delivery tells."""
    return Lock(server, {
        "namespace": message["namespace"], "key": f"q/orders/state/{message['message_id']}",
        "lease_id": message.get("state_lease_id", message["lease_id"]),
        "txn_id": message.get("state_txn_id", message["txn_id"]),
        "fencing_token": message.get("state_fencing_token", message["fencing_token"])})


def test_only_the_holder_of_the_message_has_its_state(server):
    """LQ-20, LQ-27"""
    client = client_of(server)
    client.enqueue({}, b"one")
    client.enqueue({}, b"two")
    one, two = client.dequeue(page_size=2)
    state, other = state_of(server, one), state_of(server, two)
    assert state.get().status == 204
    answer = state.update({"step": 1})
    assert answer.status == 200 and answer.body["new_version"] == 1
    assert state.get().body == {"step": 1} and public(server, state.key).status == 204
    assert state.mutate("/step++").status == 200
    refused(state.get(X_Lease_ID=other.lease), 403, "lease_required")
    refused(state.update({}, X_Lease_ID=other.lease, X_Fencing_Token=other.token), 403, "lease_required")
    refused(state.update({}, X_Fencing_Token=other.token), 403, "fencing_mismatch")
    assert state.get().body == {"step": 2}
    client.ack(one)
    refused(state.get(), 403, "lease_required")
    refused(state.update({}), 403, "lease_required")
    assert public(server, state.key).status == 204 and describe(server, state.key)["version"] == 0
    client.ack(two)


def test_progress_survives_a_failure_but_not_a_crash(server):
    """LQ-27: a nack commits what was staged, a lease that runs out does not."""
    client = client_of(server)
    client.enqueue({}, b"x")
    first = client.take()
    state = state_of(server, first)
    state.update({"step": 1})
    client.nack(first, delay_seconds=0)
    assert public(server, state.key).body == {"step": 1}
    second = client.take(visibility_timeout_seconds=1)
    late = state_of(server, second)
    assert late.get().body == {"step": 1}
    refused(state.get(), 403, "lease_required")
    assert late.update({"step": 2}).status == 200
    third = until(lambda: client.take(wait_seconds=20))
    assert state_of(server, third).get().body == {"step": 1}
    assert late.get().status == 403
    assert state_of(server, third).remove().body["removed"] is True
    client.ack(third)
    assert public(server, state.key).status == 204


def test_a_dead_letter_has_its_state_and_its_payload(server):
    """LQ-28"""
    client = client_of(server)
    client.enqueue({"max_attempts": 1}, b"poison")
    message = client.take()
    state = state_of(server, message)
    state.update({"step": 1})
    client.nack(message)
    dead, = server.dlq(topic="orders")
    assert dead["uid"] == message["message_id"] and texts([dead]) == ["poison"]
    assert public(server, state.key).body == {"step": 1}
    refused(state.get(), 403, "lease_required")
    server.post("/dlq/redrive", {**server.here(topic="orders"), "ids": [dead["id"]]})
    again = client.take()
    assert again["payload"] == b"poison" and state_of(server, again).get().body == {"step": 1}
    client.ack(again)


def test_its_lease_is_the_messages(server):
    client = client_of(server)
    client.enqueue({}, b"x")
    message = client.take()
    state = state_of(server, message)
    refused(state.keepalive(), 403, "queue_state_keepalive_unsupported")
    refused(state.release(), 400, "invalid_queue_state_key")
    refused(ask(server, state.key), 400, "invalid_queue_state_key")
    client.extend(message, extend_by_seconds=600)
    assert state.update({"n": 1}).status == 200
    assert state.attach("log", b"bytes").status == 200
    assert [a["name"] for a in state.call("GET", "/v1/attachments").body["attachments"]] == ["log"]
    client.ack(message)


def test_states_of_messages_are_not_found_by_queries(server):
    client = client_of(server)
    commit(server, "seen", {"n": 1})
    client.enqueue({}, b"x")
    message = client.take()
    state_of(server, message).update({"n": 2})
    client.nack(message)
    answer = server.post("/v1/query", {"namespace": server.namespace})
    assert answer.body["keys"] == ["seen"]


@pytest.mark.parametrize("path", ["dequeue", "dequeueWithState"])
@pytest.mark.parametrize("given", [None, "order-66"])
def test_calls_about_it_carry_the_correlation_id_of_the_message(server, given, path):
    """LQ-64"""
    client = client_of(server)
    client.enqueue({}, b"x", headers={"X-Correlation-Id": given} if given else None)
    message, = client.claim(path)
    assert message["correlation_id"] == (given or message["message_id"])
    state = state_of(server, message)
    answers = [state.get(), state.update({"n": 1}), state.get(), state.mutate("/n++"), state.hide(),
               state.attach("a", b"b"), state.call("GET", "/v1/attachments"),
               state.update({}, X_If_Version=9), state.remove()]
    assert [a.headers["X-Correlation-Id"] for a in answers] == [message["correlation_id"]] * len(answers)
    client.ack(message)


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_it_outlives_the_server(folder, how):
    with Server(folder) as server:
        client = client_of(server)
        client.enqueue({}, b"x")
        message = client.take()
        state_of(server, message).update({"step": 1})
        client.nack(message)
        message = client.take(visibility_timeout_seconds=600)
        state = state_of(server, message)
        state.update({"step": 2})
        server.restart(how)
        client = client_of(server)
        assert public(server, state.key).body == {"step": 1}
        assert state.get().body == {"step": 2}
        client.nack(message)
        assert public(server, state.key).body == {"step": 2}
        client.ack(client.take())
        assert public(server, state.key).status == 204
