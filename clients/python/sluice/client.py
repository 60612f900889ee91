"""The blocking client. Any thread may use it."""
from __future__ import annotations

import threading
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, TypeVar

from . import calls, errors, values
from .attempts import Broken, NotSent
from .base import ClientBase
from .transport import Interrupt, Transport

T = TypeVar("T")


class Client(ClientBase):
    """Talks to one of several servers.

        client = sluice.Client("http://127.0.0.1:7171")
        client.push("mail", {"to": "ann@example.com"})

    What it is made with: see `ClientBase`.
    """

    _make_transport = Transport
    _transport: Transport

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    def call(self, call: calls.Call[T], interrupt: Optional[Interrupt] = None) -> T:
        """Sends a call, again where that is safe."""
        attempts = self._attempts(call)
        while True:
            try:
                answer = self._transport.send(attempts.address, call, self._headers, interrupt)
                calls.check(answer)
                return call.parse(answer)
            except (NotSent, Broken, errors.Refusal) as failure:
                if attempts.happened_before(failure):
                    return None  # type: ignore[return-value]
                if interrupt and interrupt.fired:
                    raise errors.Unreachable("interrupted") from failure
                time.sleep(attempts.pause_after(failure, time.monotonic()))

    # ---- Messages ----

    def push(self, queue: str, payload: Any = b"", **options: Any) -> values.Pushed:
        """Sends a message: bytes as they are, a str as text, everything else as JSON.

        Options: key, kind, priority, delay, at, ttl, idempotency_key, correlation_id, attributes, content_type,
        max_attempts, keep_result, traceparent, tracestate, batch, namespace. The message is on disk when this returns.
        """
        return self.call(self._push([values.item(self.namespace, queue, payload, options)]))[0]

    def push_many(self, queue: str, payloads: Iterable[Any], **options: Any) -> List[values.Pushed]:
        """Sends up to 10,000 messages in one request, with the same options."""
        return self.call(self._push(values.items(self.namespace, queue, payloads, options)))

    def push_items(self, items: Iterable[Mapping[str, Any]]) -> List[values.Pushed]:
        """Sends messages with options of their own: {"queue": ..., "payload": ..., "key": ...}."""
        return self.call(self._push([values.own_item(self.namespace, one) for one in items]))

    def take(self, queue: str, limit: int = 1, *, wait: values.Duration = 0, lease: Optional[values.Duration] = None,
             namespace: Optional[str] = None, kinds: Optional[Sequence[str]] = None,
             interrupt: Optional[Interrupt] = None) -> List[values.Message]:
        """Leases up to `limit` messages, with `kinds` of these kinds alone; waits for the first one."""
        call = calls.take(namespace or self.namespace, queue, limit, wait, lease, self.owner, kinds)
        return self.call(call, interrupt)

    def ack(self, message: values.Message, result: Any = None) -> None:
        """The work is done. `result` is kept if the message has keep_result."""
        self.call(calls.ack(message.receipt, result))

    def nack(self, message: values.Message, error: str = "", *, delay: Optional[values.Duration] = None,
             defer: bool = False, dead: bool = False) -> None:
        """The work failed; with `defer` it is not a failure, with `dead` it is the last one."""
        self.call(calls.nack(message.receipt, error, delay, defer, dead))

    def extend(self, messages: Sequence[values.Message], lease: Optional[values.Duration] = None) -> List[values.Message]:
        """Extends leases; answers the messages whose lease is lost or that were canceled, and marks them."""
        if not messages:
            return []
        found = self.call(calls.extend([message.receipt for message in messages], lease))
        return mark_lost(messages, found)

    def checkpoint(self, message: values.Message, value: Any, lease: Optional[values.Duration] = None) -> None:
        """Stores how far the work on a message has come, any JSON but null, and extends its lease.

        The next holder of the message has it as message.checkpoint. Raises LeaseLost if another one may have the message.
        """
        self.call(calls.checkpoint(message, value, lease))

    def result(self, id: str, *, queue: Optional[str] = None, wait: values.Duration = 0,
               namespace: Optional[str] = None) -> Any:
        """The result of an ack. Raises TimeoutError if the message is not acked within the wait."""
        done, value = self.call(calls.result(namespace or self.namespace, id, queue, wait))
        if not done:
            raise TimeoutError(f"message {id} is not finished")
        return value

    # ---- Queues ----

    def peek(self, queue: str, state: str = "ready", *, namespace: Optional[str] = None) -> Iterator[values.Message]:
        """Messages of a queue by state: ready, delayed, leased, held, dead, damaged, all."""
        return self._pages(lambda cursor: calls.peek(namespace or self.namespace, queue, state, cursor))

    def dead_letters(self, queue: str, *, namespace: Optional[str] = None) -> Iterator[values.Message]:
        """Dead letters, the oldest first."""
        return self._pages(lambda cursor: calls.dead(namespace or self.namespace, queue, cursor))

    def redrive(self, queue: str, ids: Optional[Sequence[str]] = None, *, limit: int = 1000,
                namespace: Optional[str] = None) -> int:
        """Makes dead letters ready again: those with `ids`, or the oldest. Answers their number."""
        return self.call(calls.redrive(namespace or self.namespace, queue, ids, limit))

    def stats(self, queue: str, *, namespace: Optional[str] = None) -> Dict[str, Any]:
        return self.call(calls.stats(namespace or self.namespace, queue))

    def queues(self, namespace: Optional[str] = None) -> Iterator[Dict[str, Any]]:
        """The queues of a namespace with their numbers."""
        return self._pages(lambda cursor: calls.queues(namespace or self.namespace, cursor))

    def policy(self, queue: str, *, namespace: Optional[str] = None, **changes: Any) -> Dict[str, Any]:
        """The settings of a queue, after `changes`."""
        return self.call(calls.policy(namespace or self.namespace, queue, changes))

    # ---- Batches ----

    def create_batch(self, callback: Optional[Mapping[str, Any]] = None, *, timeout: Optional[values.Duration] = None,
                     deadline: Optional[values.Moment] = None, namespace: Optional[str] = None) -> str:
        """A group of messages; its id is the option `batch` of its members. callback: a message as of push_items, which begins
        when all members of the closed batch have ended, or at the deadline.
        """
        return self.call(calls.create_batch(namespace or self.namespace, callback, timeout, deadline))

    def close_batch(self, id: str, *, namespace: Optional[str] = None) -> Dict[str, Any]:
        """No members join any more. Answers the batch."""
        return self.call(calls.close_batch(namespace or self.namespace, id))

    def batch(self, id: str, *, namespace: Optional[str] = None) -> Dict[str, Any]:
        """Its status, and how many of its members are done, failed and pending."""
        return self.call(calls.batch(namespace or self.namespace, id))

    def batches(self, *, namespace: Optional[str] = None) -> Iterator[Dict[str, Any]]:
        """The batches of a namespace."""
        return self._pages(lambda cursor: calls.batches(namespace or self.namespace, cursor))

    def _pages(self, call: Callable[[Optional[str]], calls.Call[calls.Page]]) -> Iterator[Any]:
        cursor = None
        while True:
            found, cursor = self.call(call(cursor))
            yield from found
            if not cursor:
                return

    # ---- Locks and documents ----

    def lock(self, key: str, *, ttl: float = 30.0, wait: Optional[float] = None, namespace: Optional[str] = None) -> Lock:
        """A lock, to be used with `with`. wait None: for as long as it takes; 0: not at all.

            with client.lock("orders/42") as lock:
                order = lock.read() or {}
                lock.write({**order, "status": "paid"})

        The document is committed at the end of the block. If the block raises, nothing has changed.
        """
        return Lock(self, namespace or self.namespace, key, ttl, wait)

    def read(self, key: str, *, namespace: Optional[str] = None) -> Any:
        """The committed document of a key; None if it has none."""
        return self.call(calls.document(namespace or self.namespace, key, None))


def mark_lost(messages: Sequence[values.Message], outcomes: Sequence[Tuple[int, str]]) -> List[values.Message]:
    lost = []
    for message, (status, error) in zip(messages, outcomes):
        if status in (404, 409):
            message.lost, message.canceled = True, error == "message_canceled"
            lost.append(message)
    return lost


class Lock:
    """A key that this client holds. A thread extends its lease until it is released.

    `fencing_token` rises with every holder: systems that the lock protects refuse lower ones. `lost` is True if the
    lease has ended.
    """

    def __init__(self, client: Client, namespace: str, key: str, ttl: float, wait: Optional[float]):
        self.client, self.namespace, self.key, self.ttl, self.wait = client, namespace, key, ttl, wait
        self.lost = False
        self._lease: Dict[str, Any] = {}
        self._released = threading.Event()
        self._keeper: Optional[threading.Thread] = None

    def __enter__(self) -> Lock:
        self._lease = self.client.call(calls.acquire(self.namespace, self.key, self.client.owner, self.ttl, self.wait))
        self._released.clear()
        self.lost = False
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self._released.set()
        if self._keeper:
            self._keeper.join()
        self.client.call(calls.release(self._lease, rollback=kind is not None))

    @property
    def fencing_token(self) -> int:
        return int(self._lease["fencing_token"])

    def read(self) -> Any:
        """The document as this holder sees it; None if the key has none."""
        return self.client.call(calls.document(self.namespace, self.key, self._lease))

    def write(self, document: Any) -> None:
        self.client.call(calls.update(self._lease, document))

    def mutate(self, *mutations: str) -> None:
        """Changes the document in place: lock.mutate("/attempts++", "/status=paid")."""
        self.client.call(calls.mutate(self._lease, mutations))

    def _keep(self) -> None:
        while not self._released.wait(self.ttl / 3):
            try:
                self.client.call(calls.keep_lock(self._lease, self.ttl))
            except errors.Refusal:
                self.lost = True
                return
            except errors.SluiceError:
                pass  # a server may be back before the lease ends
