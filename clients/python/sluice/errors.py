"""Every error of this package is a `SluiceError`.

A server that refuses raises a `Refusal`, or the subclass for its `error` (ERRORS). A server that cannot be
reached raises `Unreachable`. A request that may or may not have happened raises `OutcomeUnknown`.

A handler of a worker raises `Retry`, `Defer` or `Reject` to say what becomes of its message.
"""
from __future__ import annotations

from typing import Any, Mapping, Optional, Type


class SluiceError(Exception):
    """The base of all errors here."""


class Unreachable(SluiceError):
    """No server of the list answered in time."""


class OutcomeUnknown(SluiceError):
    """The request may have happened. Send messages with idempotency keys, and this package repeats them itself."""


class Refusal(SluiceError):
    """A server refused. Nothing has changed.

    `status` is the HTTP status, `error` the name of the refusal (docs/api.md, "Errors"), `retry_after` the seconds
    after which a limit may allow it, `body` the whole answer.
    """

    def __init__(self, status: int, body: Mapping[str, Any], retry_after: Optional[float] = None):
        self.status = status
        self.body = body
        self.error = str(body.get("error", ""))
        self.retry_after = retry_after
        super().__init__(f"{status} {self.error}: {body.get('message') or body.get('detail') or 'no text'}")


class Invalid(Refusal):
    """The request is wrong; the text says where."""


class Unauthorized(Refusal):
    """The token is missing, ended or false."""


class Forbidden(Refusal):
    """The token lacks a right."""


class NotFound(Refusal):
    """The message, queue or key does not exist."""


class LeaseLost(Refusal):
    """The lease has ended, or another consumer has it."""


class Canceled(Refusal):
    """An operator has canceled the message: stop its work and settle it. The lease cannot be extended."""


class Conflict(Refusal):
    """The state is not what the request expects: a version, a key that is held, another payload under a known key."""


class TooLarge(Refusal):
    """The body is larger than the server allows."""


class Throttled(Refusal):
    """A limit is reached; `retry_after` says when to try again."""


class Unavailable(Refusal):
    """The server cannot serve now, and no other server of the list could in time."""


BY_ERROR: Mapping[str, Type[Refusal]] = {"lease_lost": LeaseLost, "lease_required": LeaseLost, "message_canceled": Canceled}
BY_STATUS: Mapping[int, Type[Refusal]] = {400: Invalid, 401: Unauthorized, 403: Forbidden, 404: NotFound, 405: Invalid, 409: Conflict,
             413: TooLarge, 429: Throttled, 503: Unavailable}


def refusal(status: int, body: Mapping[str, Any], retry_after: Optional[float] = None) -> Refusal:
    kind = BY_ERROR.get(str(body.get("error")), BY_STATUS.get(status, Refusal))
    return kind(status, body, retry_after)


class Verdict(SluiceError):
    """What a handler says about its message instead of returning."""


class Retry(Verdict):
    """The work failed; try again after `delay`, or as the policy of the queue says."""

    def __init__(self, error: str = "", delay: Any = None):
        self.delay = delay
        super().__init__(error)


class Defer(Verdict):
    """Not now: the message comes again after `delay`, and no failure is counted."""

    def __init__(self, delay: Any = 0):
        self.delay = delay
        super().__init__("deferred")


class Reject(Verdict):
    """The work can never succeed: the message becomes a dead letter at once."""
