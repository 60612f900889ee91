"""What the blocking client and the one for asyncio know."""
from __future__ import annotations

import os
import socket
import ssl
import time
from typing import Any, Callable, ClassVar, Optional, Sequence, Union

from . import calls
from .attempts import Attempts, Servers, authorization


class ClientBase:
    """servers: URLs, or one URL; by default SLUICE_SERVER, which may name several with commas between.
    token: for `Authorization`; by default SLUICE_TOKEN.
    namespace: of queues and keys; by default SLUICE_NAMESPACE, or "default".
    timeout: seconds for a request, beside the time that it waits.
    patience: seconds for which a server that is away is tried again.
    context: for https.
    packed: push bytes instead of JSON (docs/batch-format.md), which costs the server less. Older servers refuse them.
    """

    _make_transport: ClassVar[Callable[[float, Optional[ssl.SSLContext]], Any]]
    _transport: Any

    def __init__(self, servers: Union[None, str, Sequence[str]] = None, *, token: Optional[str] = None,
                 namespace: Optional[str] = None, timeout: float = 30.0, patience: float = 30.0,
                 context: Optional[ssl.SSLContext] = None, packed: bool = False):
        self.namespace: str = namespace or os.environ.get("SLUICE_NAMESPACE") or "default"
        self.owner = calls.worker_name(socket.gethostname(), os.getpid())
        self._servers = Servers(servers)
        self._headers = authorization(token)
        self._patience = patience
        self._push = calls.push_packed if packed else calls.push
        self._transport = type(self)._make_transport(timeout, context)

    def _attempts(self, call: calls.Call[Any]) -> Attempts:
        return Attempts(self._servers, call, self._patience, time.monotonic())
