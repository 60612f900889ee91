"""A Redis server that lies: it passes commands to a real one, and changes what that answers.

    with Liar(redis.port) as liar:
        liar.lie("claim", lambda reply: [b"ok"])       # the reply to a call of the script
        liar.lie("ZRANGE", lambda reply: b":1\\r\\n")     # and to a plain command, as bytes

A reply is bytes and numbers in lists; None is nil. A lie returns such a thing, or bytes of the
wire (Raw).
"""
import collections
import socket
import threading


class Raw(bytes):
    """Bytes of the wire as they stand."""


class Status(bytes):
    """+OK"""


class Fault(bytes):
    """-ERR"""


def read(data, at=0):
    """(end, value) of the reply that begins there; None: it is not whole."""
    end = data.find(b"\r\n", at)
    if end < 0:
        return None
    kind, rest = data[at:at + 1], data[at + 1:end]
    if kind in b"+-:":
        return end + 2, {b"+": Status, b"-": Fault, b":": int}[kind](rest)
    n = int(rest)
    if n < 0:
        return end + 2, None
    if kind == b"$":
        stop = end + 2 + n
        return (stop + 2, data[end + 2:stop]) if len(data) >= stop + 2 else None
    at, items = end + 2, []
    for _ in range(n):
        item = read(data, at)
        if item is None:
            return None
        at = item[0]
        items.append(item[1])
    return at, items


def write(value):
    if isinstance(value, Raw):
        return bytes(value)
    if value is None:
        return b"$-1\r\n"
    if isinstance(value, int):
        return b":%d\r\n" % value
    if isinstance(value, Status):
        return b"+%s\r\n" % value
    if isinstance(value, Fault):
        return b"-%s\r\n" % value
    if isinstance(value, bytes):
        return b"$%d\r\n%s\r\n" % (len(value), value)
    return b"*%d\r\n" % len(value) + b"".join(write(v) for v in value)


def name_of(command):
    """That of the verb, if it is a call of the script."""
    if command[0].upper() == b"EVALSHA":
        return command[3 + int(command[2])].decode()
    return command[0].decode().upper()


class Liar:
    def __init__(self, port):
        self.to = port
        self.lies = {}
        self.told = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def lie(self, name, change, times=1 << 30):
        self.lies[name] = [change, times]

    def stop(self):
        self.lies = {}

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.to))
            asked = collections.deque()
            for args in (client, server, asked.append), (server, client, None):
                threading.Thread(target=self.pump, args=(*args, asked), daemon=True).start()

    def pump(self, source, target, note, asked):
        data = b""
        try:
            while piece := source.recv(1 << 16):
                data += piece
                while (one := read(data)) is not None:
                    whole, data = data[:one[0]], data[one[0]:]
                    if note:
                        note(name_of(one[1]))
                    target.sendall(whole if note else self.answer(whole, one[1], asked))
        except OSError:
            pass
        for s in source, target:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def answer(self, whole, value, asked):
        name = asked.popleft() if asked else ""  # notices come unasked
        lie = self.lies.get(name)
        if not lie or lie[1] == 0 or isinstance(value, Fault):
            return whole
        lie[1] -= 1
        self.told += 1
        return write(lie[0](value))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
