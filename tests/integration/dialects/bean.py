"""The beanstalkd protocol on a plain socket, and a server that speaks it."""
import re
import socket

from served import START, Server, until


class Beans(Server):
    """A server with an address of the protocol."""

    def __init__(self, folder, *options, **more):
        super().__init__(folder, "--listen", "beanstalk://127.0.0.1:0", *options, **more)

    @property
    def bean_port(self):
        found = until(lambda: re.search(r"listening on beanstalk://127\.0\.0\.1:(\d+)", self.said()))
        return int(found[1])

    def beans(self):
        return Client(self.bean_port)


class Client:
    def __init__(self, port, tls=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=START)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data.encode() if isinstance(data, str) else data)

    def line(self):
        line = self.file.readline()
        assert line.endswith(b"\r\n") or line == b"", line
        return line[:-2].decode()

    def data(self, n):
        data = self.file.read(n + 2)
        assert data[-2:] == b"\r\n", data
        return data[:-2]

    def ask(self, line):
        """The line of the answer."""
        self.send(line + "\r\n")
        return self.line()

    # --- commands -----------------------------------------------------------

    def put(self, body=b"hello", pri=0, delay=0, ttr=100):
        body = body.encode() if isinstance(body, str) else body
        self.send(b"put %d %d %d %d\r\n%s\r\n" % (pri, delay, ttr, len(body), body))
        return self.number("INSERTED", self.line())

    @staticmethod
    def number(word, line):
        assert re.fullmatch(word + r" \d+", line), line
        return int(line.split()[1])

    def job(self, word, line):
        """The id and the body of the answer."""
        assert line.startswith(word + " "), line
        _, number, n = line.split()
        return int(number), self.data(int(n))

    def reserve(self, timeout=None):
        return self.job("RESERVED", self.ask("reserve" if timeout is None else f"reserve-with-timeout {timeout}"))

    def peek(self, what):
        return self.job("FOUND", self.ask(what))

    def yaml(self, command):
        line = self.ask(command)
        assert line.startswith("OK "), line
        text = self.data(int(line.split()[1])).decode()
        assert text.startswith("---\n"), text
        lines = text.splitlines()[1:]
        if all(row.startswith("- ") for row in lines):
            return [row[2:] for row in lines]
        return dict(row.split(": ", 1) for row in lines)
