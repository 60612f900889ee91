"""Sluice: push messages to a durable work queue, work on them, hold locks.

    import sluice

    client = sluice.Client()                       # SLUICE_SERVER, or http://127.0.0.1:7171
    client.push("mail", {"to": "ann@example.com"})

    sluice.Worker("mail", lambda message: print(message.body)).run()

`sluice.aio` has the same for asyncio.
"""
from .client import Client, Lock
from .errors import (Canceled, Conflict, Defer, Forbidden, Invalid, LeaseLost, NotFound, OutcomeUnknown, Refusal, Reject,
                     Retry, SluiceError, Throttled, TooLarge, Unauthorized, Unavailable, Unreachable)
from .values import Message, Pushed
from .version import VERSION as __version__
from .worker import Worker

__all__ = ["Canceled", "Client", "Conflict", "Defer", "Forbidden", "Invalid", "LeaseLost", "Lock", "Message", "NotFound",
           "OutcomeUnknown", "Pushed", "Refusal", "Reject", "Retry", "SluiceError", "Throttled", "TooLarge",
           "Unauthorized", "Unavailable", "Unreachable", "Worker", "__version__"]
