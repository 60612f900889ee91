"""HTTP for `Client`: connections that are kept, for any number of threads."""
from __future__ import annotations

import http.client
import select
import socket
import ssl
import threading
from collections import defaultdict
from typing import Any, DefaultDict, List, Mapping, Optional, Tuple

from .attempts import Address, Broken, NotSent
from .calls import Answer, Call

KEPT = 16  # idle connections of an address, at most


class Interrupt:
    """Ends a request of another thread: the request raises Broken."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sock: Optional[socket.socket] = None
        self.fired = False

    def begin(self, sock: Optional[socket.socket]) -> None:
        with self.lock:
            self.sock = sock
            if self.fired:
                raise NotSent("interrupted")

    def end(self) -> None:
        with self.lock:
            self.sock = None

    def fire(self) -> None:
        with self.lock:
            self.fired = True
            if self.sock:
                try:
                    self.sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # the connection has ended by itself


class Transport:
    def __init__(self, timeout: float, context: Optional[ssl.SSLContext]):
        self.timeout = timeout
        self.context = context
        self.lock = threading.Lock()
        self.idle: DefaultDict[Address, List[http.client.HTTPConnection]] = defaultdict(list)

    def send(self, address: Address, call: Call[Any], headers: Mapping[str, str], interrupt: Optional[Interrupt]) -> Answer:
        connection = self.connect(address, call)
        try:
            if interrupt:
                interrupt.begin(connection.sock)
            answer, keep = self.ask(connection, address, call, headers)
        except (OSError, http.client.HTTPException) as failure:
            connection.close()
            raise Broken(str(failure) or type(failure).__name__) from failure
        except NotSent:
            connection.close()
            raise
        finally:
            if interrupt:
                interrupt.end()
        if keep:
            self.keep(address, connection)
        else:
            connection.close()
        return answer

    @staticmethod
    def ask(connection: http.client.HTTPConnection, address: Address, call: Call[Any],
            headers: Mapping[str, str]) -> Tuple[Answer, bool]:
        """The answer, and whether the connection stays open."""
        sent = {"Content-Type": "application/json", **headers, **call.headers}
        connection.request(call.method, address.prefix + call.target, call.body, sent)
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, found, response.read()), not response.will_close

    def connect(self, address: Address, call: Call[Any]) -> http.client.HTTPConnection:
        limit = None if call.wait == float("inf") else self.timeout + call.wait
        connection = self.kept(address)
        if not connection:
            connection = self.new(address)
            try:
                connection.connect()
                connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as failure:
                connection.close()
                raise NotSent(str(failure)) from failure
        connection.sock.settimeout(limit)
        return connection

    def new(self, address: Address) -> http.client.HTTPConnection:
        if address.tls:
            context = self.context or ssl.create_default_context()
            return http.client.HTTPSConnection(address.host, address.port, timeout=self.timeout, context=context)
        return http.client.HTTPConnection(address.host, address.port, timeout=self.timeout)

    def kept(self, address: Address) -> Optional[http.client.HTTPConnection]:
        """An idle connection that the server has not closed."""
        while True:
            with self.lock:
                if not self.idle[address]:
                    return None
                connection = self.idle[address].pop()
            if connection.sock and not select.select([connection.sock], [], [], 0)[0]:
                return connection
            connection.close()

    def keep(self, address: Address, connection: http.client.HTTPConnection) -> None:
        with self.lock:
            if len(self.idle[address]) < KEPT:
                self.idle[address].append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self.lock:
            for connections in self.idle.values():
                for connection in connections:
                    connection.close()
            self.idle.clear()
