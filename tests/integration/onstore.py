"""What the tests of every kind of store share: servers whose log lives in one, and what must hold on all."""
import http.client
import http.server
import json
import os
import pathlib
import socket
import ssl
import subprocess
import threading
import urllib.parse

import pytest

from served import Refused, Server, texts, until

SLUICE = os.environ.get("SLUICE")
SHARDS = 2


def stored(folder, url, *options, lease="2s"):
    """A request waits for a store on a busy machine, unless the test is about the patience of the server."""
    patience = [] if "--store-patience" in options else ["--store-patience", "10s"]
    return Server(folder, "--store", url, "--store-lease", lease, "--shards", str(SHARDS), *patience, *options, engine="log")


def all_texts(server, n):
    """The texts of n messages, which are acked; fewer if the rest does not come."""
    found = []
    while len(found) < n and (messages := server.dequeue(limit=100, wait="10s")):
        found += texts(messages)
        for message in messages:
            server.ack(message)
    return sorted(found)


def check_another_machine(tmp_path, url):
    """LQ-35: a server with an empty folder has all messages of one that was killed."""
    with stored(tmp_path / "one", url) as server:
        server.enqueue(*[{"text": f"m{n:03}"} for n in range(150)], {"text": "z" * 3_000_000})
        server.kill()
    with stored(tmp_path / "two", url) as server:
        assert all_texts(server, 151) == [f"m{n:03}" for n in range(150)] + ["z" * 3_000_000]


def check_large_group(tmp_path, url):
    """A call of 15 MB is one group above 8 MiB, in one object. A call of 10,000 messages of 5 KB is beyond the limit of a
    request: no message of it is accepted, so no group has 32 MiB."""
    text = "x" * 5000
    with stored(tmp_path / "one", url, "--store-patience", "60s") as server:
        assert server.post("/enqueue", [server.here(text=text) for _ in range(10_000)]).status == 413
        answer = server.post("/enqueue", [server.here(text=f"{n:04}{text}") for n in range(3000)])
        assert answer.status == 200 and len(answer.body) == 3000
        server.kill()
    with stored(tmp_path / "two", url) as server:
        assert server.stats()["ready"] == 3000
        assert texts(server.dequeue(limit=2)) == [f"0000{text}", f"0001{text}"]


def check_takeover(tmp_path, url, lease="2s"):
    """SH-F7: nothing that was accepted is lost when a server dies."""
    with stored(tmp_path / "one", url, lease=lease) as one, stored(tmp_path / "two", url, lease=lease) as two:
        sent = []
        for n in range(20):
            for server in (one, two):
                if server.post("/enqueue", [server.here(topic=f"q{n}", text=f"m{n:02}")]).status == 200:
                    sent.append(f"m{n:02}")
                    break
        assert len(sent) == 20
        one.kill()
        until(lambda: two.get("/readyz").body["shards"]["here"] == SHARDS)
        found = []
        for n in range(20):
            found += texts(two.dequeue(topic=f"q{n}", wait="10s"))
        assert sorted(found) == sent


class Web:
    """Serves HTTP on a free port; with TLS if `pair` names a certificate and its key."""

    def __init__(self, handler, pair=None):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.scheme = "https" if pair else "http"
        if pair:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(*pair)
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    @property
    def endpoint(self):
        return f"{self.scheme}://127.0.0.1:{self.server.server_port}"


class Proxy(Web):
    """Passes requests on to a store at `port`. `fault` says what it does wrong with puts of groups: a key of `refusals`,
    which are answered once without doing it; "lose": the answer is lost; "drop": once, the request and its connection. With every request: "strip": the condition is
    lost; a key of `always`; what `check` returns for the fields of the request, if it is not None."""

    def __init__(self, port, refusals, always=(), check=lambda fields: None, pair=None):
        self.fault, self.seen = None, 0
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def pass_on(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                concerned = self.command == "PUT" and "/group/" in self.path or proxy.fault in ("strip", *always)
                fault = proxy.fault if concerned else None
                proxy.seen += fault is not None
                if refusal := check(self.headers):
                    self.answer(*refusal)
                    return
                if fault == "drop":
                    proxy.fault, self.close_connection = None, True
                    return
                if fault in refusals:
                    proxy.fault = None
                    self.answer(*refusals[fault])
                    return
                upstream = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                headers = {k: v for k, v in self.headers.items() if fault != "strip" or k.lower() != "if-none-match"}
                upstream.request(self.command, self.path, body, headers)
                response = upstream.getresponse()
                content = response.read()
                upstream.close()
                if fault == "lose":
                    self.close_connection = True
                    return
                self.answer(response.status, content, response.headers)

            def answer(self, status, content, headers=()):
                self.send_response_only(status)
                for name in headers:
                    if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                        self.send_header(name, headers[name])
                length = headers["Content-Length"] if self.command == "HEAD" and headers else len(content)
                self.send_header("Content-Length", length)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_PUT = do_DELETE = do_HEAD = pass_on

        super().__init__(Handler, pair)


def check_ignored_conditions(tmp_path, url, proxy):
    proxy.fault = "strip"
    with pytest.raises(Refused) as refused:
        stored(tmp_path / "one", url)
    assert "of 32 puts of one absent name won; expected 1: the store does not keep conditions of puts" in str(refused.value)


def check_wrong_clock(url):
    """A day ahead: the store refuses the date of a signature, and says what time it is."""
    faketime = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    done = subprocess.run([SLUICE, "admin", "store", "check", url], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "LD_PRELOAD": str(faketime), "FAKETIME": "+1d", "FAKETIME_DONT_FAKE_MONOTONIC": "1"})
    assert done.returncode == 0, done.stderr
    assert "sound" in done.stdout


def check_faulty_puts(tmp_path, url, proxy, fault):
    """LINE-4: a refusal for the moment is asked again; an answer that does not come says nothing."""
    with stored(tmp_path / "one", url, "--store-patience", "30s") as server:
        for n in range(3):
            before = proxy.seen
            proxy.fault = fault
            sender = threading.Thread(target=server.enqueue, args=({"text": f"m{n}"},))
            sender.start()
            until(lambda: proxy.seen > before)
            proxy.fault = None
            sender.join(60)
        assert all_texts(server, 3) == ["m0", "m1", "m2"]
        assert server.dequeue(limit=1) == []


def epochs(url):
    """Of the shards, as the store has them."""
    done = subprocess.run([SLUICE, "admin", "store", "check", url, "--json"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [row["epoch"] for row in map(json.loads, done.stdout.splitlines()) if "epoch" in row]


def check_lost_connection(tmp_path, url, proxy):
    """LINE-1, LINE-15: a server whose connection is lost may be a copy, and its store may have gone back. It does not repeat the
    request by itself, and all shards, which share the connections, put an opening before they go on."""
    with stored(tmp_path / "one", url, "--store-patience", "60s") as server:
        for n in range(8):
            server.enqueue({"text": "before"}, topic=f"q{n}")
        before = epochs(url)
        proxy.fault = "drop"
        for n in range(8):
            server.enqueue({"text": "after"}, topic=f"q{n}")
        assert proxy.fault is None
        assert [after > epoch for after, epoch in zip(epochs(url), before)] == [True] * SHARDS
        assert all(texts(server.dequeue(topic=f"q{n}", limit=3)) == ["before", "after"] for n in range(8))


def pump(source, to):
    """Passes bytes on until one side ends."""
    try:
        while data := source.recv(65536):
            to.sendall(data)
        to.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def forward_proxy():
    """An HTTP proxy as in a company's network: requests name the whole URL, or ask for a tunnel to a server with TLS.
    `seen` has the URLs and the servers."""
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def forward(self):
            seen.append(self.path)
            place = urllib.parse.urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name: value for name, value in self.headers.items() if not name.lower().startswith("proxy-")}
            there = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
            there.request(self.command, urllib.parse.urlunsplit(("", "", place.path, place.query, "")), body, headers)
            answer = there.getresponse()
            data = answer.read()
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                    self.send_header(name, value)
            self.send_header("Content-Length", answer.getheader("Content-Length") if self.command == "HEAD" else str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            there.close()

        do_GET = do_PUT = do_DELETE = do_HEAD = do_POST = forward

        def do_CONNECT(self):
            seen.append(self.path)
            assert not any(name.lower() in ("authorization", "x-ms-date", "x-amz-date") for name in self.headers)
            host, port = self.path.rsplit(":", 1)
            with socket.create_connection((host, int(port)), timeout=60) as there:
                self.send_response_only(200)
                self.end_headers()
                back = threading.Thread(target=pump, args=(there, self.connection))
                back.start()
                pump(self.connection, there)
                back.join()
            self.close_connection = True

    return Web(Handler), seen


def behind_proxy(url, proxy):
    return f"{url}&proxy={urllib.parse.quote(proxy.endpoint, safe='')}"


def check_tunnel(tmp_path, url, address):
    """Requests to a store with TLS go through a tunnel, and no proof of them is in the request for it."""
    proxy, seen = forward_proxy()
    with proxy, stored(tmp_path / "tunnel", behind_proxy(url, proxy)) as server:
        server.enqueue({"text": "a"})
        assert set(seen) == {address}
        assert all_texts(server, 1) == ["a"]


def check_proxy(tmp_path, url):
    """All requests go through the proxy of the URL."""
    proxy, seen = forward_proxy()
    with proxy, stored(tmp_path / "one", behind_proxy(url, proxy)) as server:
        server.enqueue({"text": "a"})
        before = len(seen)
        server.enqueue({"text": "b"})
        assert any("/group/" in path for path in seen[before:])
        assert all_texts(server, 2) == ["a", "b"]
