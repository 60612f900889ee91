"""TLS as clients of other makes meet it: curl, openssl, Python."""
import base64
import http.client
import json
import re
import signal
import socket
import ssl
import subprocess
import threading

import pytest

from certs import Certs
from served import Refused, Server, until


@pytest.fixture(scope="module")
def certs(tmp_path_factory):
    made = Certs(tmp_path_factory.mktemp("certs"))
    made.authority("other")
    made.make("server", "DNS:localhost", "IP:127.0.0.1")
    made.make("client", "URI:spiffe://acme/w", "URI:lockd://ns/test?perm=rw", subject="/O=Acme/CN=client")
    made.make("reader", "URI:lockd://ns/test?perm=r")
    made.make("writer", "URI:lockd://ns/test?perm=w")
    made.make("everybody", "URI:lockd://ns/ALL?perm=rw")
    made.make("nobody")
    made.make("broken", "URI:lockd://ns/test?perm=x")
    made.make("stranger", ca="other")
    made.make("late", expired=True)
    return made


class Secure(Server):
    """A server with a plain address, and one that speaks TLS."""

    def __init__(self, certs, *options, cert="server", listen="https://127.0.0.1:0", folder="none"):
        self.certs = certs
        super().__init__(folder, "--listen", listen, "--tls-cert", certs[cert + ".pem"],
                         "--tls-key", certs[cert + ".key"], *options, engine="memory")

    def start(self):
        super().start()
        found = until(lambda: re.search(r"listening on https://[\d.]+:(\d+)", self.said()))
        self.port = int(found[1])

    def context(self, cert=None, **more):
        made = ssl.create_default_context(cafile=self.certs["ca.pem"])
        if cert:
            made.load_cert_chain(self.certs[cert + ".pem"], self.certs[cert + ".key"])
        for name, value in more.items():
            setattr(made, name, value)
        return made

    def dial(self, context=None, session=None):
        bare = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        try:
            return (context or self.context()).wrap_socket(bare, server_hostname="localhost",
                                                           session=session)
        except BaseException:
            bare.close()
            raise

    def secure(self, cert=None):
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60,
                                           context=self.context(cert))

    def tls_metric(self, name):
        return self.metric(f"sluice_http_tls_{name}_total")


@pytest.fixture(scope="module")
def open_server(certs):
    with Secure(certs) as server:
        yield server


@pytest.fixture(scope="module")
def strict(certs):
    with Secure(certs, "--tls-client-ca", certs["ca.pem"], "--tls-client-auth", "required",
                "--auth-metrics", "local") as server:
        yield server


def waiting(server):
    return server.metric('sluice_waiting{shard="0"}')


def cut(s):
    """Close it without TLS's goodbye."""
    socket.socket(fileno=s.detach()).close()


def ask(connection, method="GET", path="/healthz", body=None):
    connection.request(method, path, body)
    answer = connection.getresponse()
    return answer.status, answer.read()


# --- handshakes ----------------------------------------------------------------


def test_curl_is_served(open_server):  # MQ-35
    out = subprocess.run(
        ["curl", "-sS", "--cacert", open_server.certs["ca.pem"], "-w", "%{http_code} %{http_version}",
         "--resolve", f"localhost:{open_server.port}:127.0.0.1",
         f"https://localhost:{open_server.port}/healthz"], capture_output=True, text=True, timeout=60)
    assert out.stdout.endswith("200 1.1"), out.stderr


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_both_versions_are_spoken(open_server, version):
    v = getattr(ssl.TLSVersion, version)
    with open_server.dial(open_server.context(minimum_version=v, maximum_version=v)) as s:
        assert s.version() == version.replace("_", ".")
        assert s.cipher()[0].startswith(("TLS_AES", "TLS_CHACHA", "ECDHE-ECDSA-"))


def test_a_large_message_comes_in_pieces_under_tls(open_server):
    text = "0123456789abcdef" * (5 << 16)
    open_server.enqueue({"topic": "large", "text": text})
    connection = open_server.secure()
    status, body = ask(connection, path=f"/dequeue?namespace={open_server.namespace}&topic=large")
    message, = json.loads(body)
    assert status == 200 and base64.b64decode(message["payload"]).decode() == text
    assert ask(connection)[0] == 200  # and the connection goes on
    connection.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_older_versions_are_refused(open_server):
    context = open_server.context(minimum_version=ssl.TLSVersion.MINIMUM_SUPPORTED, maximum_version=ssl.TLSVersion.TLSv1_1)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        open_server.dial(context)


def test_ciphers_without_forward_secrecy_are_refused(open_server):
    context = open_server.context(maximum_version=ssl.TLSVersion.TLSv1_2)
    context.set_ciphers("AES128-GCM-SHA256:AES128-SHA:ECDHE-ECDSA-AES128-SHA")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        open_server.dial(context)


def test_a_minimum_version_is_kept(certs):
    with Secure(certs, "--tls-min-version", "1.3") as server:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            server.dial(server.context(maximum_version=ssl.TLSVersion.TLSv1_2))
        server.dial().close()


def test_http_1_1_is_agreed_on_and_h2_alone_is_refused(open_server):
    context = open_server.context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    with open_server.dial(context) as s:
        assert s.selected_alpn_protocol() == "http/1.1"
    context.set_alpn_protocols(["h2"])
    with pytest.raises((ssl.SSLError, ConnectionError)):
        open_server.dial(context)


def test_renegotiation_is_refused(open_server):  # fault 35
    out = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{open_server.port}", "-tls1_2",
         "-CAfile", open_server.certs["ca.pem"]],
        input="R\n", capture_output=True, text=True, timeout=60)
    assert "no renegotiation" in out.stderr, out.stderr
    assert ask(open_server.secure())[0] == 200


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_a_client_comes_back_by_its_ticket(strict, version):
    v = getattr(ssl.TLSVersion, version)
    context = strict.context("client", minimum_version=v, maximum_version=v)
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with strict.dial(context) as s:
        s.sendall(request)
        assert b"200 OK" in s.recv(4096)
        session = s.session
    with strict.dial(context, session) as s:
        s.sendall(request)
        assert b"200 OK" in s.recv(4096)
        assert s.session_reused


# --- trust ---------------------------------------------------------------------


def test_a_client_with_a_certificate_of_the_right_ca_is_served(strict):
    assert ask(strict.secure("client"))[0] == 200


def test_handshakes_are_counted(open_server):
    before = open_server.tls_metric("handshakes")
    open_server.dial().close()
    until(lambda: open_server.tls_metric("handshakes") == before + 1)


@pytest.mark.parametrize("cert", [None, "stranger", "late"])
def test_a_client_without_a_good_certificate_is_refused(strict, cert):
    failures = strict.tls_metric("failures")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        with strict.dial(strict.context(cert)) as s:
            s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert s.recv(100) == b"", "it was served"
    until(lambda: strict.tls_metric("failures") == failures + 1)
    until(lambda: "TLS connection refused" in strict.said())


def test_an_optional_certificate_may_be_left_out_but_not_be_wrong(certs):
    with Secure(certs, "--tls-client-ca", certs["ca.pem"], "--tls-client-auth", "optional") as server:
        assert ask(server.secure())[0] == 200
        status, body = ask(server.secure(), path="/stats?namespace=test&topic=t")
        assert status == 401
        assert ask(server.secure("client"), path="/topics?namespace=test")[0] == 200
        with pytest.raises((ssl.SSLError, ConnectionError)):
            ask(server.secure("stranger"))


# Who, in which namespace: may read, may write.
RIGHTS = [
    ("client", "test", True, True),
    ("client", "other", False, False),
    ("reader", "test", True, False),
    ("writer", "test", False, True),
    ("everybody", "test", True, True),
    ("everybody", "any.thing", True, True),
    ("nobody", "test", False, False),
]


def rights(server, cert, namespace):
    connection = server.secure(cert)
    found = []
    for method, path, body in [
            ("GET", f"/stats?namespace={namespace}&topic=t", None),
            ("POST", "/enqueue", json.dumps([{"namespace": namespace, "topic": "t", "text": "x"}]))]:
        status, body = ask(connection, method, path, body)
        assert status in (200, 403, 404), body
        found.append(status != 403)
    return tuple(found)


@pytest.mark.parametrize("cert, namespace, read, write", RIGHTS)
def test_a_certificate_grants_what_its_names_claim(strict, cert, namespace, read, write):
    assert rights(strict, cert, namespace) == (read, write)


def test_the_subject_of_a_certificate_owns_the_lock(strict):
    serial = subprocess.run(["openssl", "x509", "-noout", "-serial", "-in", strict.certs["client.pem"]],
                            capture_output=True, text=True, timeout=60).stdout.strip().partition("=")[2]
    body = json.dumps({"namespace": "test", "key": "k", "owner": "me"})
    status, answer = ask(strict.secure("client"), "POST", "/v1/acquire", body)
    owner = json.loads(answer)["owner"]
    assert status == 200 and owner.lower() == f"me/CN=client,O=Acme#{serial}".lower()
    status, answer = ask(strict.secure("reader"), path="/v1/describe?namespace=test&key=k")
    assert json.loads(answer)["owner"] == owner


def test_either_claim_is_enough_to_hold_a_lock(strict):
    for cert in ("reader", "writer"):
        body = json.dumps({"namespace": "test", "key": cert, "owner": "me"})
        status, answer = ask(strict.secure(cert), "POST", "/v1/acquire", body)
        assert status == 200, answer
    status, answer = ask(strict.secure("nobody"), "POST", "/v1/acquire", body)
    assert status == 403 and json.loads(answer)["error"] == "namespace_forbidden"


def test_a_claim_that_cannot_be_read_is_refused(strict):
    status, body = ask(strict.secure("broken"), path="/stats?namespace=test&topic=t")
    assert status == 401 and "perm" in json.loads(body)["message"]


@pytest.fixture(scope="module")
def named(certs):
    certs.make("named", "DNS:localhost", "IP:127.0.0.1", "DNS:*.queue.example")
    with Secure(certs, "--tls-client-ca", certs["ca.pem"], "--tls-client-auth", "required",
                "--auth-certificates", names_file(certs), cert="named") as server:
        yield server


def names_file(certs):
    path = certs["names"]
    with open(path, "w") as f:
        f.write("*:* CN=nobody\n")
    return path


@pytest.mark.parametrize("headers, status", [
    ({}, 200),
    ({"Host": "a.queue.example:7171"}, 200),  # by the server's certificate
    ({"Host": "localhost", "Origin": "https://localhost", "Sec-Fetch-Site": "same-origin", "Sluice-Console": "1"}, 200),
    ({"Host": "evil.example"}, 403),
    ({"Host": "queue.example.evil"}, 403),
    ({"Host": "[::1].evil.com"}, 403),
    ({"Origin": "https://evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Sec-Fetch-Site": "cross-site"}, 403),
    ({"Sec-Fetch-Site": "same-site"}, 403),
])
def test_a_page_of_another_site_cannot_use_the_certificate_of_a_browser(named, headers, status):
    connection = named.secure("nobody")
    queue = json.dumps({"namespace": "test", "topic": "t"})
    for method, path, body in [("GET", "/v1/admin/config", None), ("POST", "/v1/admin/queue/purge", queue),
                               ("GET", "/dequeue?namespace=test&topic=t", None)]:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        said = answer.read()
        assert answer.status == status or (status == 200 and answer.status == 404), (path, said)


def test_without_a_certificate_the_plain_address_asks_for_one(strict):
    answer = strict.get("/stats", namespace="test", topic="t")
    assert answer.status == 401 and "certificate" in answer.body["message"]


def test_a_file_grants_by_subject_and_uri_name_and_is_reloaded(certs, tmp_path):
    names = tmp_path / "names"
    names.write_text("# operators\n"
                     "pay:read,pay:write CN=nobody\n"
                     "pay:read spiffe://acme/w\n")
    with Secure(certs, "--tls-client-ca", certs["ca.pem"], "--tls-client-auth", "required",
                "--auth-certificates", str(names)) as server:
        assert rights(server, "nobody", "pay") == (True, True)
        assert rights(server, "client", "pay") == (True, False)
        assert rights(server, "client", "test") == (True, True)
        assert rights(server, "reader", "pay") == (False, False)
        kept = server.secure("nobody")
        assert ask(kept, path="/topics?namespace=pay")[0] == 200
        names.write_text("other:read CN=nobody\n")
        reload(server)("certificate loaded")
        assert rights(server, "nobody", "pay") == (False, False)
        assert ask(kept, path="/topics?namespace=pay")[0] == 403  # at once, for all
        names.write_text("pay:read\n")
        reload(server)(f"auth.certificates {names}")
        assert ask(kept, path="/topics?namespace=other")[0] == 200


@pytest.mark.parametrize("listen, options, fine", [
    ("https://0.0.0.0:0", ["--tls-client-auth", "required"], True),
    ("https://0.0.0.0:0", ["--tls-client-auth", "optional"], True),
    ("https://0.0.0.0:0", [], False),
    ("tls://127.0.0.1:0", [], True),
])
def test_beyond_loopback_clients_must_be_known(certs, listen, options, fine):
    options = ["--tls-client-ca", certs["ca.pem"], *options]
    if fine:
        with Secure(certs, *options, listen=listen) as server:
            server.dial(server.context("client")).close()
    else:
        with pytest.raises(Refused, match="other machines can reach this address"):
            Secure(certs, *options, listen=listen)


@pytest.mark.parametrize("options, says", [
    (["--listen", "https://127.0.0.1:0"], "tls.cert and tls.key"),
    (["--tls-cert", "{server.pem}"], "tls.cert without tls.key"),
    (["--tls-cert", "{server.pem}", "--tls-key", "{client.key}"], "is not the key of certificate"),
    (["--tls-cert", "/nowhere.pem", "--tls-key", "{client.key}"], "certificate /nowhere.pem: No such file"),
    (["--tls-cert", "{server.pem}", "--tls-key", "{server.key}", "--tls-client-auth", "required"],
     "tls.client_ca"),
])
def test_settings_that_will_not_do_are_named(certs, folder, options, says):
    options = [re.sub(r"\{(.*)\}", lambda m: certs[m[1]], o) for o in options]
    with pytest.raises(Refused, match=re.escape(says)):
        Server(folder, *options, engine="memory")


def test_a_key_that_everybody_can_read_is_warned_of(certs):
    _, key = certs.make("open", "DNS:localhost", "IP:127.0.0.1")
    subprocess.run(["chmod", "644", key], check=True)
    with Secure(certs, cert="open") as server:
        until(lambda: f"can read key {key}" in server.said())


# --- what goes wrong on the wire --------------------------------------------------


def test_plain_http_on_the_tls_port_is_refused_with_that_reason(open_server):
    connection = http.client.HTTPConnection("127.0.0.1", open_server.port, timeout=60)
    status, body = ask(connection)
    assert status == 400
    assert "this port speaks TLS: use https://" in json.loads(body)["message"]


def test_tls_on_the_plain_port_is_answered_and_closed(open_server):
    with open_server.raw() as bare:
        bare.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(501))
        answer = b""
        while piece := bare.recv(4096):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"does not speak TLS" in answer


def test_large_messages_go_both_ways(open_server):
    payload = base64.b64encode(bytes(range(256)) * 16384).decode()
    connection = open_server.secure()
    for _ in range(2):
        status, body = ask(connection, "POST", "/enqueue", json.dumps(
            [{"namespace": "large", "topic": "t", "payload": payload}]))
        assert status == 200, body
        status, body = ask(connection, path="/dequeue?namespace=large&topic=t")
        assert status == 200
        assert [m["payload"] for m in json.loads(body)] == [payload]


def test_a_waiting_client_that_is_cut_off_costs_no_attempt(open_server):  # invariant 13
    open_server.namespace = "cut"
    s = open_server.dial()
    s.sendall(b"GET /dequeue?namespace=cut&topic=mail&wait=60 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    until(lambda: waiting(open_server) == 1)
    cut(s)
    until(lambda: waiting(open_server) == 0)
    open_server.enqueue({"text": "hello"})
    assert open_server.take()["attempts"] == 1


def test_a_client_that_goes_in_mid_answer_gives_the_messages_back(open_server):  # invariant 13
    open_server.namespace = "mid"
    open_server.enqueue({"text": "x" * 8_000_000})  # more than the kernel takes
    s = open_server.dial()
    s.sendall(b"GET /dequeue?namespace=mid&topic=mail HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert s.recv(1000).startswith(b"HTTP/1.1 200")
    assert open_server.stats()["leased"] == 1
    cut(s)
    until(lambda: open_server.stats()["ready"] == 1)
    assert open_server.take()["attempts"] == 1


# --- reload ---------------------------------------------------------------------


def serial(server):
    with server.dial() as s:
        return s.getpeercert()["serialNumber"]


@pytest.fixture
def moving(certs):
    certs.make("server", "DNS:localhost", "IP:127.0.0.1", into="moving")
    with Secure(certs, cert="moving") as server:
        yield server


def reload(server):
    before = len(server.errors)
    server.process.send_signal(signal.SIGHUP)
    return lambda text: until(lambda: text in "".join(server.errors[before:]))


def test_a_new_certificate_is_for_new_connections_and_old_ones_go_on(moving):
    old = moving.secure()
    assert ask(old)[0] == 200
    first = serial(moving)
    moving.certs.make("server", "DNS:localhost", "IP:127.0.0.1", into="moving")
    assert serial(moving) == first
    reload(moving)("certificate loaded")
    assert serial(moving) != first
    assert ask(old)[0] == 200


def test_a_certificate_without_its_key_is_refused_and_the_old_stays(moving):
    first = serial(moving)
    (moving.certs.folder / "moving.key").write_text((moving.certs.folder / "client.key").read_text())
    reload(moving)("is not the key of certificate")
    assert serial(moving) == first
    (moving.certs.folder / "moving.pem").write_text("nonsense")
    reload(moving)("expected certificates in PEM")
    assert serial(moving) == first


@pytest.mark.parametrize("listen, says", [
    ("https://0.0.0.0:0", "other machines can reach this address"),
    ("https://127.0.0.1:0", "turning authentication off needs a restart"),
])
def test_a_reload_may_not_open_the_server_to_everybody(certs, tmp_path, listen, says):
    config = tmp_path / "sluice.yaml"
    config.write_text("tls.client_auth: required\n")
    with Secure(certs, "--tls-client-ca", certs["ca.pem"], "--config", str(config),
                listen=listen) as server:
        config.write_text("tls.client_auth: off\n")
        reload(server)(says)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            ask(server.secure())
        assert ask(server.secure("client"))[0] == 200


def test_reloads_fail_no_request(moving):
    """Clients that keep their connection and clients that come anew, all the while."""
    done = threading.Event()
    answered, faults = [0] * 4, []

    def talk(i):
        connection = None
        try:
            while not done.is_set():
                connection = connection or moving.secure()
                assert ask(connection)[0] == 200
                answered[i] += 1
                if i % 2:
                    connection.close()
                    connection = None
        except Exception as e:
            faults.append(repr(e))

    threads = [threading.Thread(target=talk, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for _ in range(5):
        moving.certs.make("server", "DNS:localhost", "IP:127.0.0.1", into="new")
        for kind in ("key", "pem"):  # one after the other: a reload in between is refused
            (moving.certs.folder / f"new.{kind}").replace(moving.certs.folder / f"moving.{kind}")
        loaded = reload(moving)
        loaded("certificate loaded")
        seen = list(answered)
        until(lambda: faults or all(a > b for a, b in zip(answered, seen)))
    done.set()
    for t in threads:
        t.join(60)
    assert not faults
