"""A client of /stream: docs/stream.md.

    with Frames(server) as frames:
        number = frames.ask("/enqueue", {...})
        status, body = frames.answer(number)
"""
import json

HEAD = "GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: Upgrade\r\nUpgrade: sluice-stream\r\n{more}\r\n"


class Frames:
    def __init__(self, server, path="/stream", headers=(), status=101, sock=None):
        self.path = path
        self.sock = sock or server.raw()
        self.file = self.sock.makefile("rb")
        self.number = 0
        self.answers = {}  # of frames that were not asked for yet
        self.pieces = {}   # answers that are not whole
        more = "".join(f"{name}: {value}\r\n" for name, value in dict(headers).items())
        host, port = server.address
        self.sock.sendall(HEAD.format(path=path, host=host, port=port, more=more).encode())
        first = self.file.readline().decode()
        assert first.split()[1] == str(status), first
        self.head = dict(line.split(": ", 1) for line in iter(lambda: self.file.readline().decode().strip(), ""))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.sock.close()

    def send(self, text):
        self.sock.sendall(text if isinstance(text, bytes) else text.encode())

    def ask(self, path, body=None):
        """Sends a frame, and waits for nothing."""
        text = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        self.number += 1
        self.send(f"{self.number} {path} {len(text)}\n".encode() + text)
        return self.number

    def read(self):
        """(number, status, body, whole) of the next frame; None: the server has closed."""
        line = self.file.readline()
        if not line:
            return None
        number, status, size, *more = line.decode().split()
        assert more in ([], ["+"]), line
        return int(number), int(status), self.file.read(int(size)), not more

    def next(self):
        """(number, status, body) of the next answer that is whole; None: the server has closed."""
        while frame := self.read():
            number, status, text, whole = frame
            text = self.pieces.pop(number, b"") + text
            if whole:
                return number, status, json.loads(text) if text else None
            self.pieces[number] = text
        return None

    def answer(self, number):
        """(status, body) of that frame; others are kept for later."""
        while number not in self.answers:
            found = self.next()
            assert found, f"closed before the answer of {number}"
            self.answers[found[0]] = found[1:]
        return self.answers.pop(number)

    def call(self, path, body=None):
        return self.answer(self.ask(path, body))

    def good(self, path, body=None, status=200):
        found, answer = self.call(path, body)
        assert found == status, (path, found, answer)
        return answer
