"""Links between servers: TLS and attackers (PEER-4), slow clients (PEER-3), lookups, stops."""
import contextlib
import http.client
import json
import os
import re
import socket
import ssl
import threading
from pathlib import Path

import pytest

from certs import Certs
from served import Refused, Server, texts, until

SHARDS = 2
BETWEEN = "127.0.0.2"  # the owner advertises this host; the proxy of a test listens there


def node(folder, name, *options, listen="peer"):
    """The first node of a store keeps all shards for an hour."""
    folder.mkdir(exist_ok=True)
    return Server(folder / name, "--store", f"file://{folder}/store", "--shards", str(SHARDS), "--store-settle", "1h",
                  "--listen", f"{listen}://127.0.0.1:0", "--log-level", "debug", *options, engine="log")


def peer_port(server):
    return int(until(lambda: re.search(r'"links to other nodes" port=(\d+)', server.said()))[1])


def pair_of(certs, name):
    return "--tls-cert", certs[f"{name}.pem"], "--tls-key", certs[f"{name}.key"]


class Between:
    """A proxy on the port of a node, at another host. tls: two contexts, if it ends TLS by itself."""

    def __init__(self, port, tls=None, echo=False):
        self.port = port
        self.tls = tls
        self.echo = echo
        self.there = bytearray()  # what callers sent
        self.back = bytearray()   # what the owner sent
        self.seen = 0             # connections of callers
        self.open = []
        self.listener = socket.create_server((BETWEEN, port))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.seen += 1
                self.open.append(client)
                threading.Thread(target=self.connect, args=(client,), daemon=True).start()

    def connect(self, client):
        with contextlib.suppress(OSError, ValueError):
            if self.echo:
                self.copy(client, client, self.there)
                return
            owner = socket.create_connection(("127.0.0.1", self.port))
            self.open.append(owner)
            if self.tls:
                client = self.tls[0].wrap_socket(client, server_side=True)
                owner = self.tls[1].wrap_socket(owner)
                self.open += [client, owner]
            threading.Thread(target=self.copy, args=(owner, client, self.back), daemon=True).start()
            self.copy(client, owner, self.there)

    def copy(self, source, into, record):
        try:
            while data := source.recv(65536):
                record.extend(data)
                into.sendall(data)
        except (OSError, ValueError):
            pass
        finally:
            for s in (source, into):
                with contextlib.suppress(OSError):
                    s.shutdown(socket.SHUT_RDWR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for s in self.open:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def certs(tmp_path_factory):
    made = Certs(tmp_path_factory.mktemp("certs"))
    made.authority("stranger_ca")
    for name in ("one", "two"):
        made.make(name, "DNS:other.example")  # not the host of the node: the name is not checked
    made.make("stranger", "IP:127.0.0.2", ca="stranger_ca")
    return made


def knows(entry):
    return until(lambda: entry.get("/readyz").body["shards"]["elsewhere"] == SHARDS)


@contextlib.contextmanager
def two(folder, listen="peer", owner=(), entry=(), **proxy):
    """An owner of all shards, a node that owns none, and a proxy on the way from the second to the first."""
    with node(folder, "owner", "--advertise", f"http://{BETWEEN}:1", *owner, listen=listen) as first, \
            Between(peer_port(first), **proxy) as between, node(folder, "entry", *entry, listen=listen) as second:
        knows(second)
        yield first, second, between


def passes_no_message(entry):
    answer = entry.post("/enqueue", [entry.here(text="the payload")])
    assert answer.status == 503, answer


def test_what_travels_over_tls_cannot_be_read(tmp_path, certs):
    """The second round shows that the proxy sees what is not encrypted."""
    for listen, options, plain in (("peers", [pair_of(certs, n) for n in ("one", "two")], False), ("peer", [(), ()], True)):
        with two(tmp_path / listen, listen, *options) as (owner, entry, between):
            entry.enqueue({"text": "the payload"})
            message = owner.take()
            assert texts([message]) == ["the payload"]
            seen = bytes(between.there)
            assert len(seen) > 100 and (b"the payload" in seen) == plain and (b"mail" in seen) == plain
            assert entry.settle("/ack", message).status == 200


def test_large_payloads_travel_over_tls(tmp_path, certs):
    with two(tmp_path, "peers", pair_of(certs, "one"), pair_of(certs, "two")) as (_, entry, _):
        payload = "0123456789" * 80_000
        entry.enqueue({"text": "first"})
        while entry.stats()["ready"] < 6:  # a slow disk may leave an outcome unknown
            entry.post("/enqueue", [entry.here(text=payload)])
        found = []
        while len(found) < 6:
            found += texts(entry.dequeue(limit=6))
        assert found[0] == "first" and set(found[1:]) == {payload}


def ends_tls(certs, name):
    """The two contexts of a proxy that has this certificate and its key."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certs[f"{name}.pem"], certs[f"{name}.key"])
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE
    client.load_cert_chain(certs[f"{name}.pem"], certs[f"{name}.key"])
    for context in (server, client):
        context.set_alpn_protocols(["sluice-peer"])
    return server, client


@pytest.mark.parametrize("name, checked", [
    ("stranger", False),  # any certificate
    ("one", False),       # the certificate and the key of the owner
    ("one", True),
])
def test_a_proxy_that_ends_tls_is_refused(tmp_path, certs, name, checked):
    """HELLO-4: the proofs are bound to the session of TLS, whatever certificate the proxy has."""
    ca = ["--tls-peer-ca", certs["ca.pem"]] if checked else []
    with two(tmp_path, "peers", [*pair_of(certs, "one"), *ca], [*pair_of(certs, "two"), *ca],
             tls=ends_tls(certs, name)) as (owner, entry, between):
        passes_no_message(entry)
        until(lambda: "wrong proof" in owner.said())
        assert b"sluicepr" in between.there  # the proxy read the hello
        assert b"the payload" not in between.there
        assert owner.dequeue() == []


def test_a_certificate_of_another_authority_is_refused(tmp_path, certs):
    """tls.peer_ca: the chain is checked on both sides; the name is not."""
    ca = ["--tls-peer-ca", certs["ca.pem"]]
    with node(tmp_path, "owner", *pair_of(certs, "one"), *ca, listen="peers") as owner, \
            node(tmp_path, "entry", *pair_of(certs, "two"), *ca, listen="peers") as entry, \
            node(tmp_path, "wrong", *pair_of(certs, "stranger"), *ca, listen="peers") as wrong:
        for other in (entry, wrong):
            knows(other)
        entry.enqueue({"text": "the payload"})
        passes_no_message(wrong)
        until(lambda: "TLS: " in wrong.said())
        assert owner.stats()["ready"] == 1


def test_nodes_with_and_without_tls_have_no_links(tmp_path, certs):
    """A node with TLS never sends plain bytes, and accepts none."""
    with two(tmp_path, "peers", pair_of(certs, "one"), pair_of(certs, "two")) as (owner, _, between), \
            node(tmp_path, "plain") as plain:
        knows(plain)
        passes_no_message(plain)
        assert b"the payload" not in between.there
        assert owner.dequeue() == []


def test_a_recorded_connection_cannot_be_sent_again(tmp_path):
    """HELLO-1."""
    with two(tmp_path) as (owner, entry, between):
        entry.enqueue({"text": "the payload"})
        recorded = bytes(between.there)
        assert b"the payload" in recorded
        with socket.create_connection(("127.0.0.1", between.port), timeout=60) as s:
            s.sendall(recorded)
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                while data := s.recv(1000):
                    answer += data
        assert len(answer) <= 16 + 33 and b"mail" not in answer  # a challenge at most
        until(lambda: "wrong proof" in owner.said())
        assert owner.stats()["ready"] == 1


def test_a_node_that_gets_its_own_bytes_back_sends_nothing(tmp_path):
    """HELLO-2."""
    with two(tmp_path, echo=True) as (owner, entry, between):
        passes_no_message(entry)
        assert between.seen > 0 and b"the payload" not in between.there
        assert owner.dequeue() == []


@pytest.mark.parametrize("listen", ["peer", "peers"])
def test_a_stranger_learns_nothing(tmp_path, certs, listen):
    """The name, the version and the life of a node stay with it. Over TLS a stranger sees the certificate."""
    with node(tmp_path, "owner", *(pair_of(certs, "one") if listen == "peers" else ()), listen=listen) as owner:
        for hello in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x04\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0x", bytes(100)):
            with socket.create_connection(("127.0.0.1", peer_port(owner)), timeout=60) as plain:
                s = plain
                if listen == "peers":
                    s = ends_tls(certs, "stranger")[1].wrap_socket(plain)
                with contextlib.suppress(ConnectionResetError):
                    s.sendall(hello)
                    assert s.recv(100) == b""
                s.close()


def test_a_client_of_https_is_refused_by_tls(tmp_path, certs):
    with node(tmp_path, "owner", *pair_of(certs, "one"), listen="peers") as owner:
        context = ends_tls(certs, "one")[1]
        context.set_alpn_protocols(["http/1.1"])
        with socket.create_connection(("127.0.0.1", peer_port(owner)), timeout=60) as s, \
                pytest.raises(ssl.SSLError):
            context.wrap_socket(s)


def test_links_with_tls_need_a_certificate(tmp_path):
    with pytest.raises(Refused, match="missing certificate; set tls.cert and tls.key"):
        node(tmp_path, "owner", listen="peers")


# ---- Slow clients, slow lookups, stops ----

def threads_of(server):
    """The names of its threads."""
    names = []
    for task in os.listdir(f"/proc/{server.process.pid}/task"):
        with contextlib.suppress(OSError):  # it has ended
            names.append(Path(f"/proc/{server.process.pid}/task/{task}/comm").read_text().strip())
    return names


def test_a_slow_client_holds_up_only_itself(tmp_path):
    """PEER-3: an answer has about 4 MiB of records at most, and waits for its client at the entry node."""
    payload = "x" * 700_000
    with node(tmp_path, "owner") as owner, node(tmp_path, "entry") as entry:
        knows(entry)
        owner.enqueue({"text": payload}, topic="slow")
        while owner.stats(topic="slow")["ready"] < 24:  # a slow disk may leave an outcome unknown
            owner.post("/enqueue", [owner.here(text=payload, topic="slow")])
        ready = owner.stats(topic="slow")["ready"]
        slow = []
        for _ in range(3):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.settimeout(60)
            s.connect(entry.address)
            client = http.client.HTTPConnection(*entry.address)
            client.sock = s
            client.request("GET", "/dequeue?namespace=test&topic=slow&limit=100")
            slow.append(client)
        until(lambda: owner.stats(topic="slow")["ready"] <= ready - 3 * 5)
        for n in range(50):  # over the same link
            entry.enqueue({"text": f"{n}"})
            message = entry.take()
            assert texts([message]) == [f"{n}"]
            entry.ack(message)
        held = owner.stats(topic="slow")["leased"]
        assert 3 * 5 <= held <= 3 * 6, held  # 4 MiB each
        total = 0
        for client in slow:
            found = json.loads(client.getresponse().read())
            assert texts(found) == [payload] * len(found)
            total += len(found)
            client.close()
        assert total == held


def test_a_host_name_is_looked_up_beside_the_links(tmp_path):
    """PEERNET-7: the thread of the links never waits for a name server."""
    with node(tmp_path, "owner", "--advertise", "http://localhost:1") as owner, node(tmp_path, "entry") as entry:
        knows(entry)
        entry.enqueue({"text": "the payload"})
        assert texts(owner.dequeue()) == ["the payload"]
        assert "peers-lookup" in threads_of(entry)


def test_an_unknown_host_is_an_error_of_its_ops_alone(tmp_path):
    with node(tmp_path, "owner", "--advertise", "http://host.invalid:1") as owner, node(tmp_path, "entry") as entry:
        knows(entry)
        passes_no_message(entry)
        until(lambda: "host.invalid" in entry.said())
        assert owner.dequeue() == []


def test_a_node_that_stops_says_so(tmp_path):
    """LINK-5."""
    with node(tmp_path, "owner") as owner, node(tmp_path, "entry") as entry:
        knows(entry)
        entry.enqueue({"text": "the payload"})
        owner.stop()
        until(lambda: "another node stops" in entry.said())
        until(lambda: entry.get("/readyz").body["shards"]["here"] == SHARDS)
        assert texts(entry.dequeue()) == ["the payload"]


def test_a_stop_leaves_no_outcome_unknown(tmp_path):
    """PEERNET-5: a node that stops answers what it was asked, or says that nothing has happened."""
    answers = []
    with node(tmp_path, "owner") as owner, node(tmp_path, "entry") as entry:
        knows(entry)

        def send(me):
            n = 0
            while not over.is_set():
                n += 1
                answers.append((f"{me}-{n}", entry.post("/enqueue", [entry.here(text=f"{me}-{n}")])))
            entry.close()

        over = threading.Event()
        senders = [threading.Thread(target=send, args=(me,)) for me in range(8)]
        for sender in senders:
            sender.start()
        until(lambda: len(answers) > 100)
        owner.stop()
        until(lambda: entry.get("/readyz").body["shards"]["here"] == SHARDS)
        until(lambda: answers[-1][1].status == 200)
        over.set()
        for sender in senders:
            sender.join(60)
        lost = [a for _, a in answers if a.status != 200 and "link to another node" in a.text]
        assert not lost, lost[0]
        sent = {text for text, a in answers if a.status == 200}
        doubtful = {text for text, a in answers if a.status != 200 and a.body["error"] == "outcome_unknown"}
        found = []
        while messages := entry.dequeue(limit=100):
            found += texts(messages)
        assert len(found) == len(set(found)) and sent <= set(found) <= sent | doubtful  # a slow disk leaves doubts
