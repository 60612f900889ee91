"""Which server a call asks, and whether it is asked again. Nothing here does I/O.

 - A server that is away, starts, drains or does not have the queue: the next server of the list, until the patience
   ends. A call that waits is patient for as long as it waits.
 - A request that was sent and not answered is sent again if twice is the same as once. Otherwise the caller gets
   `OutcomeUnknown`.
 - Every other refusal is for the caller: limits, too.
"""
from __future__ import annotations

import os
import random
import urllib.parse
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Union

from . import errors
from .calls import Call

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0


@dataclass(frozen=True)
class Address:
    host: str
    port: int
    tls: bool
    prefix: str  # of every path, without a slash at its end


def parse_address(url: str) -> Address:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"invalid server: {url}; expected http://HOST:PORT")
    tls = parts.scheme == "https"
    return Address(parts.hostname, parts.port or (443 if tls else 80), tls, parts.path.rstrip("/"))


class Servers:
    """The addresses of a client. `current` is the one that answered last."""

    def __init__(self, urls: Union[None, str, Sequence[str]]):
        if urls is None:
            urls = os.environ.get("SLUICE_SERVER", "http://127.0.0.1:7171")
        if isinstance(urls, str):
            urls = [url.strip() for url in urls.split(",")]
        self.all: List[Address] = [parse_address(url) for url in urls]
        if not self.all:
            raise ValueError("invalid servers: []; expected at least one")
        self.current = 0

    def turn_from(self, address: Address) -> None:
        """The address failed; if it is still the current one, the next one is."""
        if self.all[self.current] is address:
            self.current = (self.current + 1) % len(self.all)


class NotSent(Exception):
    """The request did not leave: nothing can have happened."""


class Broken(Exception):
    """The request left, at least in part, and no whole answer came."""


class Attempts:
    """The attempts of one call. Times are seconds of one monotonic clock."""

    def __init__(self, servers: Servers, call: Call[Any], patience: float, now: float):
        self.servers = servers
        self.call = call
        self.until = now + max(patience, call.wait)
        self.failed = 0
        self.in_doubt = False
        self.address = servers.all[servers.current]

    def happened_before(self, failure: Exception) -> bool:
        """An attempt in doubt did happen: the message is not ours any more."""
        return self.in_doubt and self.call.gone_is_done and isinstance(failure, (errors.NotFound, errors.LeaseLost))

    def pause_after(self, failure: Exception, now: float) -> float:
        """The seconds until the next attempt. Raises the error of the call if it is not tried again."""
        if isinstance(failure, Broken) or getattr(failure, "error", "") == "outcome_unknown":
            if not self.call.repeatable:
                raise errors.OutcomeUnknown(f"{self.call.path}: it may have happened: {failure}") from failure
            self.in_doubt = True
        elif isinstance(failure, errors.Refusal) and failure.status not in (408, 503):
            raise failure
        pause = self.next_pause()
        if now + pause > self.until:
            if isinstance(failure, errors.Refusal):
                raise failure
            raise errors.Unreachable(f"{self.address.host}:{self.address.port}: {failure}") from failure
        self.servers.turn_from(self.address)
        self.address = self.servers.all[self.servers.current]
        return pause

    def next_pause(self) -> float:
        """No pause while a server of the list was not tried, then longer ones."""
        self.failed += 1
        rounds = self.failed // len(self.servers.all)
        if rounds == 0:
            return 0.0
        return min(LONGEST_PAUSE, FIRST_PAUSE * (1 << min(rounds, 10))) * random.uniform(0.5, 1)


def authorization(token: Optional[str]) -> Dict[str, str]:
    token = token or os.environ.get("SLUICE_TOKEN")
    return {"Authorization": f"Bearer {token}"} if token else {}
