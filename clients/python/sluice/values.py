"""Values of the API: durations, moments, payloads, messages."""
from __future__ import annotations

import base64
import datetime
import json
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Mapping, Optional, Union

Duration = Union[int, float, str, datetime.timedelta]
"""Seconds, a text such as "1h30m", or a timedelta."""

Moment = Union[str, datetime.datetime]
"""RFC 3339, or a datetime with a time zone."""


def duration(value: Duration) -> Union[int, float, str]:
    return value.total_seconds() if isinstance(value, datetime.timedelta) else value


def moment(value: Moment) -> str:
    if isinstance(value, str):
        return value
    if value.tzinfo is None:
        raise ValueError(f"invalid moment: {value}; expected a datetime with a time zone")
    return value.isoformat()


def parse_moment(text: Optional[str]) -> Optional[datetime.datetime]:
    """A moment of an answer. Its nanoseconds become microseconds."""
    if not text:
        return None
    seconds, _, rest = text.rstrip("Z").partition(".")
    parsed = datetime.datetime.strptime(seconds, "%Y-%m-%dT%H:%M:%S")
    return parsed.replace(microsecond=int((rest + "000000")[:6]), tzinfo=datetime.timezone.utc)


def payload(value: Any) -> Dict[str, Any]:
    """Members of an item: bytes as they are, a str as text, everything else as JSON."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"payload": bytes(value)}
    if isinstance(value, str):
        return {"payload": value.encode(), "content_type": "text/plain; charset=utf-8"}
    raw = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    return {"payload": raw, "content_type": "application/json"}


# Options of a message, and how each is written. None leaves an option out.
OPTIONS = {
    "namespace": str, "key": str, "kind": str, "priority": None, "delay": duration, "at": moment, "ttl": duration, "idempotency_key": str,
    "correlation_id": str, "attributes": dict, "content_type": str, "max_attempts": int, "keep_result": duration,
    "traceparent": str, "tracestate": str, "batch": str,
}
RENAMED = {"at": "deliver_after"}


def item(namespace: str, queue: str, value: Any, options: Mapping[str, Any]) -> Dict[str, Any]:
    """A message as the server wants it. The option `namespace` replaces `namespace`."""
    made = {"namespace": options.get("namespace", namespace), "queue": queue, **payload(value)}
    for name, given in options.items():
        if name not in OPTIONS:
            raise TypeError(f"invalid option: {name}; expected {', '.join(OPTIONS)}")
        if given is not None:
            write = OPTIONS[name]
            made[RENAMED.get(name, name)] = write(given) if write else given
    return made


def items(namespace: str, queue: str, payloads: Iterable[Any], options: Mapping[str, Any]) -> List[Dict[str, Any]]:
    if "idempotency_key" in options:
        raise TypeError("invalid option: idempotency_key; expected one for each message: use push_items")
    return [item(namespace, queue, one, options) for one in payloads]


def own_item(namespace: str, given: Mapping[str, Any]) -> Dict[str, Any]:
    """A message with options of its own: {"queue": ..., "payload": ..., "key": ...}."""
    options = dict(given)
    return item(namespace, options.pop("queue"), options.pop("payload", b""), options)


@dataclass(frozen=True)
class Pushed:
    """An accepted message. If it is a duplicate, the id is the id of the first message."""
    id: str
    uid: str
    duplicate: bool


@dataclass
class Message:
    """A message as it was delivered or looked at.

    `id` is a text, because many programs round large numbers. `receipt` settles the message. `lost` becomes True when
    a worker learns that the lease has ended: stop, another worker may have the message. With it, `canceled` becomes
    True if an operator has canceled the message: stop; what the handler returns ends it.

    `checkpoint` is what an earlier holder has stored, or None. `lease` is how long a lease was asked for.
    """
    id: str
    uid: str
    namespace: str
    queue: str
    payload: bytes
    priority: int
    attempts: int
    failures: int
    receipt: str = ""
    fencing_token: int = 0
    key: Optional[str] = None
    kind: Optional[str] = None
    content_type: Optional[str] = None
    correlation_id: Optional[str] = None
    attributes: Any = None
    checkpoint: Any = None
    batch: Optional[str] = None
    traceparent: Optional[str] = None
    tracestate: Optional[str] = None
    error: Optional[str] = None
    enqueued_at: Optional[datetime.datetime] = None
    lease_expires_at: Optional[datetime.datetime] = None
    lost: bool = False
    canceled: bool = False
    lease: Optional[Duration] = None
    raw: Dict[str, Any] = field(default_factory=dict, repr=False)

    def text(self) -> str:
        return self.payload.decode()

    def json(self) -> Any:
        return json.loads(self.payload)

    @property
    def body(self) -> Any:
        """What was pushed: JSON as its value, text as str, everything else as bytes."""
        kind = (self.content_type or "").partition(";")[0].strip()
        if kind == "application/json":
            return self.json()
        return self.text() if kind.startswith("text/") else self.payload


TAKEN = ("priority", "attempts", "key", "kind", "content_type", "correlation_id", "attributes", "checkpoint", "traceparent",
         "tracestate", "error")


def message(raw: Dict[str, Any], lease: Optional[Duration] = None) -> Message:
    return Message(
        lease=lease, batch=str(raw["batch"]) if "batch" in raw else None,
        id=str(raw["id"]), uid=raw["uid"], namespace=raw["namespace"], queue=raw["queue"],
        payload=base64.b64decode(raw.pop("payload", "")), failures=raw["failure_attempts"],
        receipt=raw.get("receipt", ""), fencing_token=raw.get("fencing_token", 0),
        enqueued_at=parse_moment(raw.get("enqueued_at")), lease_expires_at=parse_moment(raw.get("lease_expires_at")),
        raw=raw, **{name: raw[name] for name in TAKEN if name in raw})
