"""The same for asyncio: `AsyncClient`, `AsyncWorker`, `AsyncLock`.

    async with sluice.aio.AsyncClient() as client:
        await client.push("mail", {"to": "ann@example.com"})
        await sluice.aio.AsyncWorker("mail", handle, client=client, concurrency=100).run()
"""
from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import ssl
import time
import uuid
from collections import defaultdict
from typing import (Any, AsyncIterator, Awaitable, Callable, DefaultDict, Dict, Iterable, List, Mapping, Optional,
                    Sequence, Set, Tuple, TypeVar, Union)

from . import calls, errors, values
from .attempts import Address, Broken, NotSent
from .base import ClientBase
from .client import mark_lost
from .worker import by_kind, describe, is_unknown, verdict

log = logging.getLogger("sluice")

T = TypeVar("T")
Stream = Tuple[asyncio.StreamReader, asyncio.StreamWriter]
HEAD_MAX = 64 << 10
KEPT = 64  # idle connections of an address, at most


# ---- HTTP ----

def write_request(address: Address, call: calls.Call[Any], headers: Mapping[str, str]) -> bytes:
    body = call.body or b""
    sent = {"Host": f"{address.host}:{address.port}", "Content-Type": "application/json", **headers, **call.headers}
    if call.method != "GET":
        sent["Content-Length"] = str(len(body))
    lines = [f"{call.method} {address.prefix}{call.target} HTTP/1.1", *(f"{k}: {v}" for k, v in sent.items()), "", ""]
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("invalid header field: it has a line break")
    return "\r\n".join(lines).encode("latin-1") + body


async def read_answer(reader: asyncio.StreamReader) -> calls.Answer:
    status, headers = 100, {}
    while status < 200:  # 100 Continue and others come before the answer
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(head[0].split(" ", 2)[1])
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    return calls.Answer(status, headers, await read_body(reader, status, headers))


async def read_body(reader: asyncio.StreamReader, status: int, headers: Mapping[str, str]) -> bytes:
    if status in (204, 304):
        return b""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return b"".join([chunk async for chunk in read_chunks(reader)])
    if "content-length" in headers:
        return await reader.readexactly(int(headers["content-length"]))
    return await reader.read()


async def read_chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while True:
        size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
        if size == 0:
            while await reader.readuntil(b"\r\n") != b"\r\n":
                pass  # fields behind the body
            return
        yield await reader.readexactly(size)
        await reader.readexactly(2)


class AsyncTransport:
    def __init__(self, timeout: float, context: Optional[ssl.SSLContext]):
        self.timeout = timeout
        self.context = context
        self.idle: DefaultDict[Address, List[Stream]] = defaultdict(list)

    async def send(self, address: Address, call: calls.Call[Any], headers: Mapping[str, str]) -> calls.Answer:
        reader, writer = await self.connect(address)
        limit = None if call.wait == float("inf") else self.timeout + call.wait
        try:
            writer.write(write_request(address, call, headers))
            answer = await asyncio.wait_for(read_answer(reader), limit)
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError, asyncio.TimeoutError) as failure:
            writer.close()
            raise Broken(str(failure) or type(failure).__name__) from failure
        except BaseException:  # the task is cancelled: the connection cannot be used again: its answer may still come
            writer.close()
            raise
        self.keep(address, (reader, writer), answer)
        return answer

    async def connect(self, address: Address) -> Stream:
        while self.idle[address]:
            reader, writer = self.idle[address].pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        context = (self.context or ssl.create_default_context()) if address.tls else None
        try:
            return await asyncio.wait_for(
                asyncio.open_connection(address.host, address.port, ssl=context, limit=HEAD_MAX), self.timeout)
        except (OSError, asyncio.TimeoutError) as failure:
            raise NotSent(str(failure) or "no connection in time") from failure

    def keep(self, address: Address, stream: Stream, answer: calls.Answer) -> None:
        ends = answer.headers.get("connection", "").lower() == "close" or not (
            "content-length" in answer.headers or "transfer-encoding" in answer.headers or answer.status == 204)
        if ends or len(self.idle[address]) >= KEPT:
            stream[1].close()
        else:
            self.idle[address].append(stream)

    async def close(self) -> None:
        streams = [stream for kept in self.idle.values() for stream in kept]
        self.idle.clear()
        for _, writer in streams:
            writer.close()
        for _, writer in streams:
            with contextlib.suppress(OSError):
                await writer.wait_closed()


# ---- The client ----

class AsyncClient(ClientBase):
    """As `sluice.Client`, for one event loop."""

    _make_transport = AsyncTransport
    _transport: AsyncTransport

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    async def call(self, call: calls.Call[T]) -> T:
        """Sends a call, again where that is safe."""
        attempts = self._attempts(call)
        while True:
            try:
                answer = await self._transport.send(attempts.address, call, self._headers)
                calls.check(answer)
                return call.parse(answer)
            except (NotSent, Broken, errors.Refusal) as failure:
                if attempts.happened_before(failure):
                    return None  # type: ignore[return-value]
                await asyncio.sleep(attempts.pause_after(failure, time.monotonic()))

    async def push(self, queue: str, payload: Any = b"", **options: Any) -> values.Pushed:
        return (await self.call(self._push([values.item(self.namespace, queue, payload, options)])))[0]

    async def push_many(self, queue: str, payloads: Iterable[Any], **options: Any) -> List[values.Pushed]:
        return await self.call(self._push(values.items(self.namespace, queue, payloads, options)))

    async def push_items(self, items: Iterable[Mapping[str, Any]]) -> List[values.Pushed]:
        return await self.call(self._push([values.own_item(self.namespace, one) for one in items]))

    async def take(self, queue: str, limit: int = 1, *, wait: values.Duration = 0,
                   lease: Optional[values.Duration] = None, namespace: Optional[str] = None,
                   kinds: Optional[Sequence[str]] = None) -> List[values.Message]:
        return await self.call(calls.take(namespace or self.namespace, queue, limit, wait, lease, self.owner, kinds))

    async def ack(self, message: values.Message, result: Any = None) -> None:
        await self.call(calls.ack(message.receipt, result))

    async def nack(self, message: values.Message, error: str = "", *, delay: Optional[values.Duration] = None,
                   defer: bool = False, dead: bool = False) -> None:
        await self.call(calls.nack(message.receipt, error, delay, defer, dead))

    async def extend(self, messages: Sequence[values.Message],
                     lease: Optional[values.Duration] = None) -> List[values.Message]:
        if not messages:
            return []
        found = await self.call(calls.extend([message.receipt for message in messages], lease))
        return mark_lost(messages, found)

    async def checkpoint(self, message: values.Message, value: Any, lease: Optional[values.Duration] = None) -> None:
        await self.call(calls.checkpoint(message, value, lease))

    async def result(self, id: str, *, queue: Optional[str] = None, wait: values.Duration = 0,
                     namespace: Optional[str] = None) -> Any:
        done, value = await self.call(calls.result(namespace or self.namespace, id, queue, wait))
        if not done:
            raise TimeoutError(f"message {id} is not finished")
        return value

    def peek(self, queue: str, state: str = "ready", *, namespace: Optional[str] = None) -> AsyncIterator[values.Message]:
        return self._pages(lambda cursor: calls.peek(namespace or self.namespace, queue, state, cursor))

    def dead_letters(self, queue: str, *, namespace: Optional[str] = None) -> AsyncIterator[values.Message]:
        return self._pages(lambda cursor: calls.dead(namespace or self.namespace, queue, cursor))

    async def redrive(self, queue: str, ids: Optional[Sequence[str]] = None, *, limit: int = 1000,
                      namespace: Optional[str] = None) -> int:
        return await self.call(calls.redrive(namespace or self.namespace, queue, ids, limit))

    async def stats(self, queue: str, *, namespace: Optional[str] = None) -> Dict[str, Any]:
        return await self.call(calls.stats(namespace or self.namespace, queue))

    def queues(self, namespace: Optional[str] = None) -> AsyncIterator[Dict[str, Any]]:
        return self._pages(lambda cursor: calls.queues(namespace or self.namespace, cursor))

    async def policy(self, queue: str, *, namespace: Optional[str] = None, **changes: Any) -> Dict[str, Any]:
        return await self.call(calls.policy(namespace or self.namespace, queue, changes))

    async def create_batch(self, callback: Optional[Mapping[str, Any]] = None, *, timeout: Optional[values.Duration] = None,
                           deadline: Optional[values.Moment] = None, namespace: Optional[str] = None) -> str:
        return await self.call(calls.create_batch(namespace or self.namespace, callback, timeout, deadline))

    async def close_batch(self, id: str, *, namespace: Optional[str] = None) -> Dict[str, Any]:
        return await self.call(calls.close_batch(namespace or self.namespace, id))

    async def batch(self, id: str, *, namespace: Optional[str] = None) -> Dict[str, Any]:
        return await self.call(calls.batch(namespace or self.namespace, id))

    def batches(self, *, namespace: Optional[str] = None) -> AsyncIterator[Dict[str, Any]]:
        return self._pages(lambda cursor: calls.batches(namespace or self.namespace, cursor))

    def lock(self, key: str, *, ttl: float = 30.0, wait: Optional[float] = None,
             namespace: Optional[str] = None) -> AsyncLock:
        return AsyncLock(self, namespace or self.namespace, key, ttl, wait)

    async def read(self, key: str, *, namespace: Optional[str] = None) -> Any:
        return await self.call(calls.document(namespace or self.namespace, key, None))

    async def _pages(self, call: Callable[[Optional[str]], calls.Call[calls.Page]]) -> AsyncIterator[Any]:
        cursor = None
        while True:
            found, cursor = await self.call(call(cursor))
            for one in found:
                yield one
            if not cursor:
                return


class AsyncLock:
    """As `sluice.Lock`: a task extends the lease until the end of the block."""

    def __init__(self, client: AsyncClient, namespace: str, key: str, ttl: float, wait: Optional[float]):
        self.client, self.namespace, self.key, self.ttl, self.wait = client, namespace, key, ttl, wait
        self.lost = False
        self._lease: Dict[str, Any] = {}
        self._keeper: Optional[asyncio.Task[Any]] = None

    async def __aenter__(self) -> AsyncLock:
        self._lease = await self.client.call(
            calls.acquire(self.namespace, self.key, self.client.owner, self.ttl, self.wait))
        self.lost = False
        self._keeper = asyncio.ensure_future(self._keep())
        return self

    async def __aexit__(self, kind: Any, *_: Any) -> None:
        if self._keeper:
            self._keeper.cancel()
        await self.client.call(calls.release(self._lease, rollback=kind is not None))

    @property
    def fencing_token(self) -> int:
        return int(self._lease["fencing_token"])

    async def read(self) -> Any:
        return await self.client.call(calls.document(self.namespace, self.key, self._lease))

    async def write(self, document: Any) -> None:
        await self.client.call(calls.update(self._lease, document))

    async def mutate(self, *mutations: str) -> None:
        await self.client.call(calls.mutate(self._lease, mutations))

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self.ttl / 3)
            try:
                await self.client.call(calls.keep_lock(self._lease, self.ttl))
            except errors.Refusal:
                self.lost = True
                return
            except errors.SluiceError:
                pass  # a server may be back before the lease ends


# ---- The worker ----

AsyncHandler = Callable[[values.Message], Awaitable[Any]]


class AsyncWorker:
    """As `sluice.Worker`, with a handler that is a coroutine function. Handlers that outlast the grace are cancelled."""

    def __init__(self, queue: str, handler: Union[AsyncHandler, Mapping[str, AsyncHandler]], *,
                 client: Optional[AsyncClient] = None, namespace: Optional[str] = None, concurrency: int = 10,
                 lease: float = 30.0, wait: float = 20.0, grace: float = 30.0, beat: float = 5.0):
        if concurrency < 1 or concurrency > 1000:
            raise ValueError(f"invalid concurrency: {concurrency}; expected 1 to 1000")
        self.client = client or AsyncClient()
        self.queue = queue
        self.handler, self.kinds = by_kind(handler)
        self.namespace = namespace or self.client.namespace
        self.concurrency, self.lease, self.wait, self.grace = concurrency, lease, wait, grace
        self.beat = beat
        self._running: Dict[asyncio.Task[Any], values.Message] = {}
        self._stopping = False
        self._lost = 0
        self._late = 0
        self._worker: Dict[str, Any] = {}  # how it beats; empty: it does not
        self._quiet: Optional[asyncio.Event] = None  # of the loop that runs this worker, as the next two
        self._loud: Optional[asyncio.Event] = None
        self._stop: Optional[asyncio.Event] = None  # of the loop that runs this worker

    def stop(self) -> None:
        """Ends run. Call it from the event loop."""
        self._stopping = True
        if self._stop:
            self._stop.set()

    async def run(self, signals: bool = True) -> None:
        """Works until stop is called, or until SIGTERM or SIGINT."""
        self._stop, self._quiet, self._loud = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._loud.set()
        caught = self._catch_signals() if signals else []
        helpers = [asyncio.ensure_future(self._keep_leases()), asyncio.ensure_future(self._beat())]
        try:
            while not self._stopping:
                await self._take_some()
            await self._finish()
        finally:
            for helper in helpers:
                helper.cancel()
            if self._worker:
                with contextlib.suppress(errors.SluiceError, asyncio.TimeoutError):
                    await asyncio.wait_for(self._tell(ends=1), 1)
            for number in caught:
                asyncio.get_running_loop().remove_signal_handler(number)

    def _catch_signals(self) -> List[int]:
        caught: List[int] = []
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # not the main thread
                asyncio.get_running_loop().add_signal_handler(number, self.stop)
                caught.append(number)
        return caught

    async def _stopped(self) -> None:
        assert self._stop
        await self._stop.wait()

    async def _until_stop(self, others: Iterable[asyncio.Future[Any]]) -> Set[asyncio.Future[Any]]:
        """Waits for one of the others, or for stop. Answers those of the others that are done."""
        stopped = asyncio.ensure_future(self._stopped())
        others = list(others)
        try:
            await asyncio.wait([stopped, *others], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
        return {one for one in others if one.done()}

    async def _take_some(self) -> None:
        assert self._quiet and self._loud
        if self._quiet.is_set():
            loud = asyncio.ensure_future(self._loud.wait())
            await self._until_stop([loud])
            loud.cancel()
            return
        if len(self._running) >= self.concurrency:
            await self._until_stop(self._running)
            return
        taking = asyncio.ensure_future(self.client.take(
            self.queue, self.concurrency - len(self._running), wait=self.wait, lease=self.lease, namespace=self.namespace,
            kinds=self.kinds))
        quiet = asyncio.ensure_future(self._quiet.wait())
        done = await self._until_stop([taking, quiet])
        quiet.cancel()
        if taking not in done:
            taking.cancel()  # the connection ends, and the server takes back what it sent
            with contextlib.suppress(asyncio.CancelledError, errors.SluiceError):
                await taking
            return
        try:
            found = taking.result()
        except errors.SluiceError as failure:
            log.warning("cannot take messages: %s", failure)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stopped(), 1)
            return
        for message in found:
            task = asyncio.ensure_future(self._settle(message))
            self._running[task] = message
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.pop(task, None)

    async def _settle(self, message: values.Message) -> None:
        try:
            try:
                result = await self.handler(message)
            except asyncio.CancelledError:
                await self.client.nack(message, defer=True, delay=0)
                if not message.canceled:
                    log.warning("message %s: given back, its handler did not end within %s s", message.uid, self.grace)
            except Exception as failure:  # whatever it is, it belongs to the message
                text, more = verdict(failure)
                log.info("message %s: %s", message.uid, text or "deferred")
                await self.client.nack(message, text, **more)
            else:
                await self.client.ack(message, result)
        except (errors.LeaseLost, errors.NotFound):
            message.lost = True
            log.warning("message %s: the lease ended before its handler did", message.uid)
        except errors.SluiceError as failure:
            log.error("message %s: cannot settle, it comes again: %s", message.uid, failure)

    def _cancel(self, message: values.Message) -> None:
        for task, running in list(self._running.items()):
            if running is message and message.canceled:
                task.cancel()

    async def _keep_leases(self) -> None:
        kept = time.monotonic()
        while True:
            await asyncio.sleep(self.lease / 3)
            began = time.monotonic()
            try:
                held = [message for message in self._running.values() if not message.lost]
                for message in await self.client.extend(held, self.lease):
                    self._lost += not message.canceled
                    log.warning("message %s: %s", message.uid, "canceled" if message.canceled else "the lease is lost")
                    self._cancel(message)
                self._late += len(held) if time.monotonic() - kept > self.lease * 3 / 4 else 0
                kept = began
            except errors.SluiceError as failure:
                log.warning("cannot extend leases: %s", failure)

    async def _tell(self, **more: Any) -> str:
        worker = {**self._worker, "used": len(self._running), "lost": self._lost, "late": self._late, **more}
        return await self.client.call(calls.beat(self.namespace, self.queue, worker))

    async def _beat(self) -> None:
        while self.beat > 0:
            try:
                self._worker = self._worker or describe(self.client.owner, self.concurrency, uuid.uuid4().hex[:12])
                self._obey(await self._tell())
            except errors.SluiceError as failure:
                if is_unknown(failure):
                    self._worker = {}
                    return
            await asyncio.sleep(self.beat)

    def _obey(self, asked: str) -> None:
        assert self._quiet and self._loud
        if asked == "stop" and not self._stopping:
            log.warning("an operator asked this worker to stop")
            self.stop()
        if (asked == "quiet") == self._quiet.is_set():
            return
        log.warning("an operator asked this worker to %s", "be quiet" if asked == "quiet" else "go on")
        for event, on in ((self._quiet, asked == "quiet"), (self._loud, asked != "quiet")):
            event.set() if on else event.clear()

    async def _finish(self) -> None:
        if not self._running:
            return
        _, late = await asyncio.wait(list(self._running), timeout=self.grace)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=self.grace)
