"""Workers that run handlers in threads.

    def handle(message):
        send_mail(**message.json())

    sluice.Worker("mail", handle, concurrency=8).run()

A handler that returns acks its message, with what it returns as the result. A handler that raises nacks it:

    any exception     a failure; the message comes again as the policy of the queue says, and dies after max_attempts
    sluice.Retry      a failure, with a delay of its own
    sluice.Defer      not now, and not a failure
    sluice.Reject     a dead letter at once

The leases of running messages are extended until their handlers end. SIGTERM and SIGINT stop a worker: it takes no
more messages, lets its handlers finish for `grace` seconds, and gives back what is left.

A worker beats: it tells the server each `beat` seconds that it lives. `sluice worker list` shows it, `sluice worker quiet`
asks it to take no more messages, and `sluice worker stop` ends it like SIGTERM.
"""
from __future__ import annotations

import logging
import signal
import socket
import threading
import time
import uuid
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from . import calls, errors, values, version
from .client import Client
from .transport import Interrupt

log = logging.getLogger("sluice")

Handler = Callable[[values.Message], Any]


def by_kind(handler: Any) -> Tuple[Callable[[values.Message], Any], Optional[List[str]]]:
    """The handler of a message, and the kinds that a worker takes: None takes every message."""
    if not isinstance(handler, Mapping):
        return handler, None
    if not handler:
        raise ValueError("invalid handler: no kinds; expected at least one")
    table = dict(handler)
    return (lambda message: table[message.kind](message)), list(table)


def verdict(failure: Exception) -> Tuple[str, Dict[str, Any]]:
    """What a nack says about a handler that raised."""
    text = str(failure) or type(failure).__name__
    if isinstance(failure, errors.Defer):
        return "", {"defer": True, "delay": failure.delay}
    if isinstance(failure, errors.Reject):
        return text, {"dead": True}
    if isinstance(failure, errors.Retry):
        return text, {"delay": failure.delay}
    return f"{type(failure).__name__}: {failure}", {}


def describe(owner: str, slots: int, instance: str) -> Dict[str, Any]:
    """The field Sluice-Worker, without what changes."""
    return {"name": owner, "host": socket.gethostname(), "version": version.VERSION, "instance": instance, "slots": slots}


def is_unknown(failure: errors.SluiceError) -> bool:
    """The server has no register of workers, or this caller may not use it: there is no use in another beat."""
    return isinstance(failure, errors.Refusal) and failure.status in (401, 403, 404, 405)


class Worker:
    """Works on the messages of one queue.

    handler: a function, or a table of kinds and functions; then the worker takes messages of these kinds alone.
    concurrency: handlers at once. lease: seconds; extended each third of it. wait: seconds of a long poll. beat: seconds
    between beats; 0: none.
    """

    def __init__(self, queue: str, handler: Union[Handler, Mapping[str, Handler]], *, client: Optional[Client] = None,
                 namespace: Optional[str] = None, concurrency: int = 1, lease: float = 30.0, wait: float = 20.0, grace: float = 30.0, beat: float = 5.0):
        if concurrency < 1 or concurrency > 1000:
            raise ValueError(f"invalid concurrency: {concurrency}; expected 1 to 1000")
        self.client = client or Client()
        self.queue = queue
        self.handler, self.kinds = by_kind(handler)
        self.namespace = namespace or self.client.namespace
        self.concurrency, self.lease, self.wait, self.grace = concurrency, lease, wait, grace
        self.beat = beat
        self._changed = threading.Condition()
        self._running: Dict[int, values.Message] = {}  # by the number of the message's thread
        self._stopping = False
        self._quiet = False
        self._lost = 0
        self._late = 0
        self._interrupt = Interrupt()

    def run(self, signals: bool = True) -> None:
        """Works until stop is called, or until SIGTERM or SIGINT if this is the main thread."""
        before = self._catch_signals() if signals and threading.current_thread() is threading.main_thread() else {}
        ended = threading.Event()
        keeper = threading.Thread(target=self._keep_leases, args=(ended,), daemon=True)
        keeper.start()
        beating = threading.Thread(target=self._beat, args=(ended,), daemon=True)
        if self.beat > 0:
            beating.start()
        try:
            while not self._stopping:
                self._take_some()
            self._finish()
        finally:
            ended.set()
            keeper.join()
            if self.beat > 0:
                beating.join(1)
            for number, handler in before.items():
                signal.signal(number, handler)

    def stop(self) -> None:
        """Ends run. Any thread, or a handler of a signal, may call it."""
        self._stopping = True
        threading.Thread(target=self._wake, daemon=True).start()  # the thread of a signal may hold the locks

    def _wake(self) -> None:
        self._interrupt.fire()
        with self._changed:
            self._changed.notify_all()

    def _catch_signals(self) -> Dict[int, Any]:
        return {number: signal.signal(number, lambda *_: self.stop()) for number in (signal.SIGTERM, signal.SIGINT)}

    # ---- Messages ----

    def _take_some(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or (len(self._running) < self.concurrency and not self._quiet))
            free = self.concurrency - len(self._running)
            interrupt = self._interrupt
        if self._stopping:
            return
        try:
            found = self.client.take(self.queue, free, wait=self.wait, lease=self.lease, namespace=self.namespace,
                                     kinds=self.kinds, interrupt=interrupt)
        except errors.SluiceError as failure:
            if not self._stopping and not interrupt.fired:
                log.warning("cannot take messages: %s", failure)
                with self._changed:
                    self._changed.wait_for(lambda: self._stopping, timeout=1)
            return
        for message in found:
            self._start(message)

    def _start(self, message: values.Message) -> None:
        thread = threading.Thread(target=self._handle, args=(message,), daemon=True)
        with self._changed:
            self._running[id(message)] = message
        thread.start()

    def _handle(self, message: values.Message) -> None:
        try:
            self._settle(message)
        finally:
            with self._changed:
                self._running.pop(id(message), None)
                self._changed.notify_all()

    def _settle(self, message: values.Message) -> None:
        try:
            try:
                result = self.handler(message)
            except Exception as failure:  # whatever it is, it belongs to the message
                text, more = verdict(failure)
                log.info("message %s: %s", message.uid, text or "deferred")
                self.client.nack(message, text, **more)
            else:
                self.client.ack(message, result)
        except (errors.LeaseLost, errors.NotFound):
            message.lost = True
            log.warning("message %s: the lease ended before its handler did", message.uid)
        except errors.SluiceError as failure:
            log.error("message %s: cannot settle, it comes again: %s", message.uid, failure)

    # ---- Beats ----

    def _beat(self, ended: threading.Event) -> None:
        worker = describe(self.client.owner, self.concurrency, uuid.uuid4().hex[:12])
        while True:
            try:
                worker.update(used=len(self._running), lost=self._lost, late=self._late, **({"ends": 1} if ended.is_set() else {}))
                self._obey(self.client.call(calls.beat(self.namespace, self.queue, worker)))
            except errors.SluiceError as failure:
                if is_unknown(failure):
                    return
            if "ends" in worker:
                return
            ended.wait(self.beat)

    def _obey(self, asked: str) -> None:
        quiet = asked == "quiet"
        if asked == "stop" and not self._stopping:
            log.warning("an operator asked this worker to stop")
            self.stop()
        if quiet == self._quiet:
            return
        log.warning("an operator asked this worker to %s", "be quiet" if quiet else "go on")
        with self._changed:
            self._quiet = quiet
            before, self._interrupt = self._interrupt, Interrupt()
            self._changed.notify_all()
        if self._stopping:
            self._interrupt.fire()
        before.fire()

    # ---- Leases and the end ----

    def _in_hand(self) -> List[values.Message]:
        with self._changed:
            return [message for message in self._running.values() if not message.lost]

    def _keep_leases(self, ended: threading.Event) -> None:
        kept = time.monotonic()
        while not ended.wait(self.lease / 3):
            began, held = time.monotonic(), self._in_hand()
            try:
                for message in self.client.extend(held, self.lease):
                    self._lost += not message.canceled
                    log.warning("message %s: %s", message.uid, "canceled" if message.canceled else "the lease is lost")
                self._late += len(held) if time.monotonic() - kept > self.lease * 3 / 4 else 0
                kept = began
            except errors.SluiceError as failure:
                log.warning("cannot extend leases: %s", failure)

    def _finish(self) -> None:
        until = time.monotonic() + self.grace
        with self._changed:
            self._changed.wait_for(lambda: not self._running, timeout=max(0.0, until - time.monotonic()))
            left = [message for message in self._running.values() if not message.lost or message.canceled]
        for message in left:
            log.warning("message %s: given back, its handler did not end within %s s", message.uid, self.grace)
            try:
                self.client.call(calls.nack(message.receipt, None, 0, True, False))
            except errors.SluiceError as failure:
                log.warning("message %s: cannot give it back: %s", message.uid, failure)
