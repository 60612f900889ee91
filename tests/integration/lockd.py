"""A client of the lockd dialect that is as strict as lockd's own clients are.

    client = Client(server.address)
    sent = client.enqueue({"queue": "orders"}, b"hello")
    message, = client.dequeue(queue="orders")
    client.ack(message)

Every request has a connection of its own, and every body is sent in chunks after the
server has said 100 Continue: as liblockdc does.
"""
import http.client
import json
import socket
import ssl

BOUNDARY = "lockdc-stream-boundary-7e4dbe2f"
START = 60
MEMBERS = {
    "namespace": str, "queue": str, "message_id": str, "attempts": int, "max_attempts": int,
    "failure_attempts": int, "not_visible_until_unix": int, "visibility_timeout_seconds": int,
    "attributes": dict, "payload_content_type": str, "payload_bytes": int,
    "correlation_id": str, "lease_id": str, "lease_expires_at_unix": int, "fencing_token": int,
    "txn_id": str, "meta_etag": str, "state_etag": str, "state_lease_id": str,
    "state_lease_expires_at_unix": int, "state_fencing_token": int, "state_txn_id": str,
}
OPTIONAL = {"failure_attempts", "attributes", *(m for m in MEMBERS if m.startswith("state_"))}


def parts(meta, payload=None, boundary=BOUNDARY, meta_first=True, name="payload"):
    """The body of an enqueue and its headers."""
    if not isinstance(meta, (str, bytes)):
        meta = json.dumps(meta)
    if isinstance(meta, str):
        meta = meta.encode()
    begin = b"--" + boundary.encode() + b"\r\n"
    head = (b"Content-Type: application/json\r\n"
            b'Content-Disposition: form-data; name="meta"\r\n\r\n')
    both = [begin + head + meta + b"\r\n"]
    if payload is not None:
        head = (f'Content-Disposition: form-data; name="{name}"\r\n'
                "Content-Type: text/plain\r\n\r\n").encode()
        both.append(begin + head + payload + b"\r\n")
    if not meta_first:
        both.reverse()
    return (b"".join(both) + b"--" + boundary.encode() + b"--\r\n",
            {"Content-Type": f"multipart/related; boundary={boundary}"})


class Refused(Exception):
    """An error of the server: status, code and the whole body."""

    def __init__(self, answer):
        self.status = answer.status
        self.headers = answer.headers
        raw = answer.read()
        assert len(raw) < 8192 and raw.endswith(b"\n"), raw
        assert answer.headers["Content-Type"] == "application/json"
        self.body = json.loads(raw)
        self.code = self.body["error"]
        known = {"error", "detail", "leader_endpoint", "current_version", "current_etag",
                 "retry_after_seconds"}
        assert set(self.body) <= known, self.body
        after = self.body.get("retry_after_seconds")
        assert self.headers["Retry-After"] == (str(after) if after else None)
        assert self.headers["X-Correlation-Id"]
        super().__init__(f"{self.status} {self.body}")


def check(condition, what):
    if not condition:
        raise AssertionError("protocol error: " + what)


class Stream:
    """The deliveries of a multipart answer, read as liblockdc reads them."""

    def __init__(self, answer, connection):
        self.answer = answer
        self.connection = connection
        kind, _, boundary = answer.headers["Content-Type"].partition("; boundary=")
        check(kind == "multipart/related" and 0 < len(boundary) <= 200, "content type")
        self.line = b"--" + boundary.encode()
        self.ended = False

    def __iter__(self):
        return self

    def close(self):
        self.connection.close()

    def read_line(self):
        line = self.answer.readline(65536)
        check(line.endswith(b"\r\n"), f"a line that does not end: {line!r}")
        return line[:-2]

    def boundary(self):
        """False: it was the last."""
        line = self.read_line()
        while line == b"":
            line = self.read_line()
        check(line in (self.line, self.line + b"--"), f"no boundary: {line!r}")
        return line == self.line

    def head(self, name):
        fields = {}
        while line := self.read_line():
            key, colon, value = line.partition(b": ")
            check(colon and len(fields) < 64, f"no field: {line!r}")
            fields[key.lower().decode()] = value.decode()
        disposition = fields["content-disposition"].split("; ")
        check(disposition[0] == "form-data" and disposition[1] == f'name="{name}"',
              f"no part {name}: {fields}")
        return fields

    def meta(self):
        text = b""
        while True:
            line = self.answer.readline(65536)
            check(line, "the end in a part")
            if line == self.line + b"\r\n":
                break
            text += line
        check(text.endswith(b"}\n\r\n"), "how meta ends")
        check(len(text) <= 4095 or b'"attributes"' in text, "too long for a client")
        message = json.loads(text)["message"]
        for member, value in message.items():
            check(type(value) is MEMBERS[member], f"{member}: {value!r}")
        check(set(MEMBERS) - OPTIONAL <= set(message), f"too little: {message}")
        return message

    def __next__(self):
        if self.ended or not self.boundary():
            check(self.ended or self.answer.read() == b"", "bytes behind the end")
            self.ended = True
            self.connection.close()
            raise StopIteration
        message = {}
        check(self.head("meta")["content-type"] == "application/json", "type of meta")
        message.update(self.meta())
        fields = self.head("payload")
        n = int(fields["content-length"])
        check(fields["content-type"] == message["payload_content_type"], "type of the payload")
        check(n == message["payload_bytes"], "length of the payload")
        payload = self.answer.read(n)
        check(len(payload) == n, "the end in a payload")
        return {**message, "payload": payload}


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=START)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Client:
    """address: (host, port), or the path of a socket. context: for TLS."""

    def __init__(self, address, context=None, owner="worker-1", **names):
        self.address = address
        self.context = context
        self.owner = owner
        self.names = names

    def connect(self):
        if isinstance(self.address, str):
            return UnixConnection(self.address)
        if self.context:
            return http.client.HTTPSConnection(*self.address, timeout=START,
                                               context=self.context)
        return http.client.HTTPConnection(*self.address, timeout=START)

    def send(self, path, body, headers=None, chunk=1 << 16):
        """One request as libcurl sends it; the answer, and its connection."""
        connection = self.connect()
        connection.putrequest("POST", path, skip_accept_encoding=True)
        for name, value in (headers or {"Content-Type": "application/json"}).items():
            connection.putheader(name, value)
        connection.putheader("Transfer-Encoding", "chunked")
        connection.putheader("Expect", "100-continue")
        connection.endheaders()
        # The file that reads the answer begins behind the 100.
        seen = b""
        while not seen.endswith(b"\r\n\r\n"):
            byte = connection.sock.recv(1)
            if not byte:
                raise ConnectionError("closed before 100 Continue")
            seen += byte
            if not b"HTTP/1.1 100 ".startswith(seen[:13]) and len(seen) <= 13:
                return self.early(connection, seen)
        assert seen.startswith(b"HTTP/1.1 100 Continue\r\n"), seen
        pieces = [body[i:i + chunk] for i in range(0, len(body), chunk)] \
            if isinstance(body, (bytes, bytearray)) else body
        for piece in pieces:
            connection.send(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        connection.send(b"0\r\n\r\n")
        return connection.getresponse(), connection

    @staticmethod
    def early(connection, seen):
        """It was refused by its head."""
        answer = http.client.HTTPResponse(connection.sock, method="POST")
        rest = answer.fp
        answer.fp = _Behind(seen, rest)
        answer.begin()
        return answer, connection

    def post(self, path, body, headers=None, **params):
        """A JSON answer, or Refused."""
        if not isinstance(body, (bytes, bytearray)):
            body = json.dumps(body).encode()
        answer, connection = self.send("/v1/queue/" + path, body, headers, **params)
        try:
            if answer.status != 200:
                raise Refused(answer)
            raw = answer.read()
            assert raw.endswith(b"\n") and answer.headers["Content-Type"] == "application/json"
            self.headers = answer.headers
            return json.loads(raw)
        finally:
            connection.close()

    def enqueue(self, meta=None, payload=None, headers=None, **how):
        full = {"namespace": "default", "delay_seconds": 0, "visibility_timeout_seconds": 0,
                "ttl_seconds": 0, "max_attempts": 0, "payload_content_type": "text/plain",
                **self.names, **(meta or {})}
        body, kind = parts(full, payload, **how)
        return self.post("enqueue", body, {**kind, **(headers or {})})

    def claim(self, path, **more):
        """The answer as a stream, or Refused."""
        body = {**self.names, "owner": self.owner, "wait_seconds": -1, "page_size": 1,
                "visibility_timeout_seconds": 30, **more}
        answer, connection = self.send("/v1/queue/" + path, json.dumps(body).encode())
        if answer.status != 200:
            try:
                raise Refused(answer)
            finally:
                connection.close()
        self.headers = answer.headers
        return Stream(answer, connection)

    def dequeue(self, **more):
        return list(self.claim("dequeue", **more))

    def take(self, **more):
        message, = self.dequeue(**more)
        return message

    def subscribe(self, **more):
        return self.claim("subscribe", **more)

    def settle(self, path, message, **more):
        receipt = {name: message[name] for name in
                   ("namespace", "queue", "message_id", "lease_id", "txn_id", "fencing_token",
                    "meta_etag")}
        return self.post(path, {**receipt, **more})

    def ack(self, message, **more):
        return self.settle("ack", message, **more)

    def nack(self, message, **more):
        return self.settle("nack", message, **more)

    def extend(self, message, **more):
        return self.settle("extend", message, **more)

    def stats(self, **more):
        return self.post("stats", {**self.names, **more})


class _Behind:
    """What was read ahead, then the rest of a file."""

    def __init__(self, ahead, rest):
        self.ahead = ahead
        self.rest = rest

    def readline(self, limit=-1):
        end = self.ahead.find(b"\n") + 1
        if end:
            line, self.ahead = self.ahead[:end], self.ahead[end:]
            return line
        line, self.ahead = self.ahead, b""
        return line + self.rest.readline(limit)

    def read(self, n=-1):
        return self.rest.read(n)

    def readinto(self, b):
        return self.rest.readinto(b)

    def flush(self):
        pass

    def close(self):
        self.rest.close()


def tls_context(ca, cert, key):
    context = ssl.create_default_context(cafile=ca)
    context.load_cert_chain(cert, key)
    return context
