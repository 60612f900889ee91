"""W3C trace context: kept on a message, returned on delivery."""
import pytest

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OTHER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
STATE = "vendor=opaque,other=1"


def enqueue(server, *items, **headers):
    answer = server.call("POST", "/enqueue", [server.here(**i) for i in items], headers)
    assert answer.status == 200, answer
    return answer.body


def trace_of(message):
    return message.get("traceparent"), message.get("tracestate")


def test_the_trace_of_a_request_comes_with_every_delivery(server):
    """X-15"""
    enqueue(server, {}, traceparent=PARENT, tracestate=STATE)
    message = server.take()
    assert trace_of(message) == (PARENT, STATE)
    server.nack(message, delay=0)
    message = server.take(wait=10)
    assert message["attempts"] == 2 and trace_of(message) == (PARENT, STATE)
    server.nack(message, dead=True)
    assert trace_of(server.dlq()[0]) == (PARENT, STATE)


def test_it_survives_a_crash(server):
    """X-15"""
    enqueue(server, {"attributes": {"a": 1}}, traceparent=PARENT, tracestate=STATE)
    server.restart("kill")
    message = server.take()
    assert trace_of(message) == (PARENT, STATE) and message["attributes"] == {"a": 1}


def test_an_item_may_have_a_trace_of_its_own(server):
    enqueue(server, {"traceparent": OTHER}, {}, {"traceparent": "nonsense"},
            traceparent=PARENT, tracestate=STATE)
    assert [trace_of(m) for m in server.dequeue()] == [
        (OTHER, None), (PARENT, STATE), (PARENT, STATE)]


@pytest.mark.parametrize("headers", [
    {"traceparent": "00-0-0-0"},
    {"traceparent": PARENT.upper()},
    {"traceparent": "ff" + PARENT[2:]},
    {"tracestate": STATE},
    {"traceparent": PARENT + "-more", "tracestate": STATE},
])
def test_what_is_no_trace_is_ignored(server, headers):
    enqueue(server, {}, **headers)
    assert trace_of(server.take()) == (None, None)


@pytest.mark.parametrize("state", ["x" * 600, "a=1,=", "a=" + "x" * 511])
def test_a_tracestate_that_is_none_is_left_out(server, state):
    enqueue(server, {}, traceparent=PARENT, tracestate=state)
    assert trace_of(server.take()) == (PARENT, None)
