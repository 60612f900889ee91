"""Every call of the API as a value: what to send, and what the answer means.

`Client` and `AsyncClient` differ only in how they send a `Call`.
"""
from __future__ import annotations

import base64
import json
import uuid
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Generic, List, Mapping, Optional, Sequence, Tuple, TypeVar
from urllib.parse import urlencode

from . import errors, packed, values

T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body) if self.body else None


@dataclass(frozen=True)
class Call(Generic[T]):
    method: str
    path: str
    parse: Callable[[Answer], T]
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Optional[bytes] = None
    headers: Mapping[str, str] = field(default_factory=dict)
    wait: float = 0.0           # the server may take so many seconds longer
    repeatable: bool = False    # twice is the same as once
    gone_is_done: bool = False  # after a repetition, "not found" and "lease lost" mean that the first one happened

    @property
    def target(self) -> str:
        given = {name: value for name, value in self.query.items() if value is not None}
        return f"{self.path}?{urlencode(given)}" if given else self.path


def seconds(value: values.Duration) -> float:
    """How long a wait lasts, for the time limit of the request."""
    written = values.duration(value)
    if isinstance(written, (int, float)):
        return float(written)
    units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400}
    total, number, rest = 0.0, "", written
    while rest:
        while rest and (rest[0].isdigit() or rest[0] == "."):
            number, rest = number + rest[0], rest[1:]
        unit = next((u for u in ("ns", "us", "ms", "s", "m", "h", "d") if rest.startswith(u)), "" if not rest else None)
        if unit is None or not number:
            raise ValueError(f"invalid duration: {value}; expected seconds, or a text such as 1h30m")
        total += float(number) * units.get(unit, 1)
        number, rest = "", rest[len(unit):]
    return total


def encode(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def post(path: str, value: Any, parse: Callable[[Answer], T], **more: Any) -> Call[T]:
    return Call("POST", path, parse, body=encode(value), **more)


def get(path: str, query: Mapping[str, Any], parse: Callable[[Answer], T], **more: Any) -> Call[T]:
    return Call("GET", path, parse, query=query, repeatable=True, **more)


def as_json(answer: Answer) -> Any:
    return answer.json()


# ---- Messages ----

def pushed(body: bytes, kind: str, items: Sequence[Mapping[str, Any]]) -> Call[List[values.Pushed]]:
    def parse(answer: Answer) -> List[values.Pushed]:
        return [values.Pushed(str(i["id"]), i["uid"], i["duplicate"]) for i in answer.json()]

    return Call("POST", "/enqueue", parse, body=body, headers={"Content-Type": kind}, query={"detail": 1},
                repeatable=all("idempotency_key" in i for i in items))


def push(items: Sequence[Mapping[str, Any]]) -> Call[List[values.Pushed]]:
    texts = [{**i, "payload": base64.b64encode(i["payload"]).decode()} for i in items]
    return pushed(encode(texts), "application/json", items)


def push_packed(items: Sequence[Mapping[str, Any]]) -> Call[List[values.Pushed]]:
    return pushed(packed.messages(items), packed.TYPE, items)


def take(namespace: str, queue: str, limit: int, wait: values.Duration, lease: Optional[values.Duration],
         owner: Optional[str], kinds: Optional[Sequence[str]] = None) -> Call[List[values.Message]]:
    # A server whose answer does not arrive takes its messages back.
    query = {"namespace": namespace, "queue": queue, "limit": limit, "wait": values.duration(wait), "owner": owner,
             "lease": None if lease is None else values.duration(lease), "kinds": None if kinds is None else ",".join(kinds)}
    return get("/dequeue", query, lambda answer: [values.message(raw, lease) for raw in answer.json()], wait=seconds(wait))


def ack(receipt: str, result: Any) -> Call[None]:
    body = {"receipt": receipt} if result is None else {"receipt": receipt, "result": result}
    return post("/ack", body, lambda _: None, repeatable=True, gone_is_done=True)


def nack(receipt: str, error: Optional[str], delay: Optional[values.Duration], defer: bool, dead: bool) -> Call[None]:
    body: Dict[str, Any] = {"receipt": receipt, "defer": defer, "dead": dead}
    if error:
        body["error"] = error
    if delay is not None:
        body["delay"] = values.duration(delay)
    return post("/nack", body, lambda _: None, repeatable=True, gone_is_done=True)


def extend(receipts: Sequence[str], lease: Optional[values.Duration]) -> Call[List[Tuple[int, str]]]:
    """Answers the status of each receipt, and the name of its refusal."""
    more = {} if lease is None else {"lease": values.duration(lease)}
    return post("/extend", [{"receipt": receipt, **more} for receipt in receipts],
                lambda answer: [(one["status"], str(one.get("error", ""))) for one in answer.json()], repeatable=True)


def checkpoint(message: values.Message, value: Any, lease: Optional[values.Duration]) -> Call[None]:
    body: Dict[str, Any] = {"receipt": message.receipt, "checkpoint": value}
    lease = message.lease if lease is None else lease
    if lease is not None:
        body["lease"] = values.duration(lease)
    return post("/extend", body, lambda _: None, repeatable=True)


def beat(namespace: str, queue: str, worker: Mapping[str, Any]) -> Call[str]:
    """Says that a worker lives. Answers what an operator asks of it: running, quiet or stop."""
    field = "; ".join(f"{name}={value}" for name, value in worker.items())
    return post("/worker", {"namespace": namespace, "queue": queue}, lambda answer: str(answer.json()["state"]),
                headers={"Sluice-Worker": field}, repeatable=True)


def result(namespace: str, id: str, queue: Optional[str], wait: values.Duration) -> Call[Tuple[bool, Any]]:
    def parse(answer: Answer) -> Tuple[bool, Any]:
        body = answer.json()
        return body["status"] == "done", body.get("result")

    query = {"namespace": namespace, "id": id, "queue": queue, "wait": values.duration(wait)}
    return get("/result", query, parse, wait=seconds(wait))


Page = Tuple[List[Any], Optional[str]]  # what a page has, and the cursor of the next one


def peek(namespace: str, queue: str, state: str, cursor: Optional[str]) -> Call[Page]:
    return get("/peek", {"namespace": namespace, "queue": queue, "state": state, "limit": 100, "cursor": cursor}, page)


def dead(namespace: str, queue: str, cursor: Optional[str]) -> Call[Page]:
    return get("/dlq", {"namespace": namespace, "queue": queue, "cursor": cursor}, page)


def page(answer: Answer) -> Page:
    body = answer.json()
    return [values.message(raw) for raw in body["messages"]], body.get("cursor")


def queues(namespace: Optional[str], cursor: Optional[str]) -> Call[Page]:
    return get("/topics", {"namespace": namespace, "limit": 1000, "cursor": cursor},
               lambda answer: (answer.json()["topics"], answer.json().get("cursor")))


def redrive(namespace: str, queue: str, ids: Optional[Sequence[str]], limit: int) -> Call[int]:
    body: Dict[str, Any] = {"namespace": namespace, "queue": queue}
    if ids is None:
        body["limit"] = limit
    else:
        body["ids"] = list(ids)
    return post("/dlq/redrive", body, lambda answer: int(answer.json()["redriven"]))


def stats(namespace: str, queue: str) -> Call[Dict[str, Any]]:
    return get("/stats", {"namespace": namespace, "queue": queue}, as_json)


def policy(namespace: str, queue: str, changes: Mapping[str, Any]) -> Call[Dict[str, Any]]:
    query = {"namespace": namespace, "queue": queue}
    if not changes:
        return get("/policy", query, as_json)
    return post("/policy", changes, as_json, query=query, repeatable=True)


# ---- Batches ----

def create_batch(namespace: str, callback: Optional[Mapping[str, Any]], timeout: Optional[values.Duration],
                 deadline: Optional[values.Moment]) -> Call[str]:
    body: Dict[str, Any] = {"namespace": namespace}
    if callback is not None:
        made = values.own_item(namespace, callback)
        del made["namespace"]
        body["callback"] = {**made, "payload": base64.b64encode(made["payload"]).decode()}
    if timeout is not None:
        body["timeout"] = values.duration(timeout)
    if deadline is not None:
        body["deadline"] = values.moment(deadline)
    return post("/batches", body, lambda answer: str(answer.json()["id"]))


def close_batch(namespace: str, id: str) -> Call[Dict[str, Any]]:
    return post("/batches/close", {"namespace": namespace, "id": id}, as_json, repeatable=True)


def batch(namespace: str, id: str) -> Call[Dict[str, Any]]:
    return get("/batch", {"namespace": namespace, "id": id}, as_json)


def batches(namespace: str, cursor: Optional[str]) -> Call[Page]:
    return get("/batches", {"namespace": namespace, "cursor": cursor},
               lambda answer: (answer.json()["batches"], answer.json().get("cursor")))


# ---- Locks and their documents ----

def acquire(namespace: str, key: str, owner: str, ttl: float, wait: Optional[float]) -> Call[Dict[str, Any]]:
    """wait None: without a limit."""
    block = 0 if wait is None else -1 if wait <= 0 else max(1, round(wait))
    body = {"namespace": namespace, "key": key, "owner": owner, "ttl_seconds": max(1, round(ttl)), "block_seconds": block}
    return post("/v1/acquire", body, as_json, repeatable=True, wait=float("inf") if wait is None else max(0.0, wait))


def lease_headers(lease: Mapping[str, Any]) -> Dict[str, str]:
    return {"X-Lease-ID": lease["lease_id"], "X-Txn-ID": lease["txn_id"], "X-Fencing-Token": str(lease["fencing_token"])}


def named(lease: Mapping[str, Any]) -> Dict[str, Any]:
    return {name: lease[name] for name in ("namespace", "key", "lease_id", "txn_id")}


def keep_lock(lease: Mapping[str, Any], ttl: float) -> Call[Dict[str, Any]]:
    return post("/v1/keepalive", {**named(lease), "ttl_seconds": max(1, round(ttl))}, as_json,
                headers=lease_headers(lease), repeatable=True)


def release(lease: Mapping[str, Any], rollback: bool) -> Call[Dict[str, Any]]:
    return post("/v1/release", {**named(lease), "rollback": rollback}, as_json, headers=lease_headers(lease), repeatable=True)


def place(lease: Mapping[str, Any]) -> Dict[str, Any]:
    return {"namespace": lease["namespace"], "key": lease["key"]}


def update(lease: Mapping[str, Any], document: Any) -> Call[Dict[str, Any]]:
    return post("/v1/update", document, as_json, query=place(lease), headers=lease_headers(lease), repeatable=True)


def mutate(lease: Mapping[str, Any], mutations: Sequence[str]) -> Call[Dict[str, Any]]:
    return post("/v1/mutate", {"mutations": list(mutations)}, as_json, query=place(lease), headers=lease_headers(lease))


def document(namespace: str, key: str, lease: Optional[Mapping[str, Any]]) -> Call[Any]:
    """The document of a key, as the holder of `lease` sees it, or as it was committed; None if the key has none."""
    return get("/v1/get", {"namespace": namespace, "key": key, "public": None if lease else 1}, as_json,
               headers=lease_headers(lease) if lease else {})


# ---- Answers ----

def check(answer: Answer) -> None:
    """Raises a Refusal unless the answer is a success."""
    if answer.status < 300:
        return
    try:
        body = answer.json()
    except ValueError:
        body = None
    after = answer.headers.get("retry-after", "")
    raise errors.refusal(answer.status, body if isinstance(body, dict) else {"message": answer.body[:200].decode("latin-1")},
                         float(after) if after.isdigit() else None)


def worker_name(host: str, pid: int) -> str:
    return f"{host}:{pid}:{uuid.uuid4().hex[:6]}"
