"""The command line under TLS: what works, and what a person is told when it does not."""
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "integration"))

from certs import Certs  # noqa: E402
from served import Server, until  # noqa: E402

SLUICE = os.environ["SLUICE"]


def run(*args, **env):
    return subprocess.run([SLUICE, *args], capture_output=True, text=True, timeout=120,
                          env={"PATH": os.environ["PATH"], **env})


def start(*options):
    server = Server("none", "--listen", "https://127.0.0.1:0", *options, engine="memory")
    found = until(lambda: re.search(r"listening on https://[\d.]+:(\d+)", server.said()))
    server.port = found[1]
    server.url = f"https://127.0.0.1:{found[1]}"
    return server


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Made by the command itself."""
    made = tmp_path_factory.mktemp("tls") / "certs"
    out = run("certs", str(made))
    assert out.returncode == 0, out.stderr
    return made


@pytest.fixture(scope="module")
def server(folder):
    with start("--tls-cert", f"{folder}/server.pem", "--tls-key", f"{folder}/server.key",
               "--tls-client-ca", f"{folder}/ca.pem", "--tls-client-auth", "required") as s:
        yield s


def trust(folder):
    return ["--ca-file", f"{folder}/ca.pem"]


def identity(folder, name="client"):
    return ["--cert", f"{folder}/{name}.pem", "--cert-key", f"{folder}/{name}.key"]


# --- what works -----------------------------------------------------------------


def test_a_server_is_tortured_over_tls(folder):
    with start("--tls-cert", f"{folder}/server.pem", "--tls-key", f"{folder}/server.key") as server:
        out = run("torture", "--server", server.url, *trust(folder), "--for", "100ms",
                  "--faults", "connections")
    assert out.returncode == 0 and "passed" in out.stdout, out.stdout + out.stderr


def test_commands_speak_tls(server, folder):
    how = ["--server", server.url, *trust(folder), *identity(folder)]
    assert run("push", "mail", "hello", *how).returncode == 0
    out = run("pull", "mail", *how)
    assert out.stdout == "hello", out.stderr


def test_a_name_will_do(server, folder):
    try:
        socket.getaddrinfo("localhost", server.port)
    except OSError:
        pytest.skip("this machine has no localhost")
    out = run("stats", "--server", f"https://localhost:{server.port}", *trust(folder), *identity(folder))
    assert out.returncode == 0, out.stderr


def test_variables_say_the_same(server, folder):
    out = run("push", "mail", "hello", SLUICE_SERVER=server.url, SLUICE_CA_FILE=f"{folder}/ca.pem",
              SLUICE_CERT=f"{folder}/client.pem", SLUICE_CERT_KEY=f"{folder}/client.key")
    assert out.returncode == 0, out.stderr


def test_work_hands_on_how_to_reach_the_server(server, folder):
    how = ["--server", server.url, *trust(folder), *identity(folder)]
    assert run("push", "jobs", "x", *how).returncode == 0
    out = run("work", "jobs", "--idle", "100ms", *how, "--",
              "sh", "-c", f"echo at $SLUICE_SERVER >&2; {SLUICE} push made y")
    assert out.returncode == 0 and f"at {server.url}" in out.stderr, out.stderr
    assert run("pull", "made", *how).stdout == "y"


def test_another_client_is_added_with_rights_of_its_own(server, folder):
    out = run("certs", str(folder), "--client", "billing", "--grant", "pay:r,mail")
    assert out.returncode == 0 and "billing.pem" in out.stdout
    how = ["--server", server.url, *trust(folder), *identity(folder, "billing")]
    assert run("push", "q", "x", "--namespace", "mail", *how).returncode == 0
    out = run("push", "q", "x", "--namespace", "pay", *how)
    assert out.returncode == 1 and "pay:write" in out.stderr


# --- what does not ---------------------------------------------------------------


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    made = Certs(tmp_path_factory.mktemp("others"))
    made.make("late", "IP:127.0.0.1", expired=True)
    made.make("elsewhere", "DNS:queue.example")
    return made


def check(out, *says):
    assert out.returncode == 1
    assert out.stdout == ""
    for text in says:
        assert text in out.stderr


def test_an_unknown_ca_is_named_with_the_option(server):
    check(run("stats", "--server", server.url), server.url, "not signed by a trusted CA",
          "--ca-file FILE")


def test_a_missing_client_certificate_is_named_with_the_option(server, folder):
    check(run("stats", "--server", server.url, *trust(folder)), "--cert FILE", "--cert-key FILE")


def test_a_client_certificate_of_another_ca_is_said_to_be_refused(server, folder, others):
    others.make("stranger")
    check(run("stats", "--server", server.url, *trust(folder), *identity(others.folder, "stranger")),
          "does not trust our certificate")


@pytest.mark.parametrize("cert, says", [
    ("late", "has expired"),
    ("elsewhere", "is for another name"),
])
def test_a_certificate_that_will_not_do_says_why(others, cert, says):
    with start("--tls-cert", others[cert + ".pem"], "--tls-key", others[cert + ".key"]) as server:
        check(run("stats", "--server", server.url, "--ca-file", others["ca.pem"]), says)


def test_a_wrong_scheme_is_said_either_way(server, folder):
    plain = "%s:%d" % server.address
    check(run("stats", "--server", f"https://{plain}", *trust(folder)), "does not use TLS")
    check(run("stats", "--server", server.url.replace("https", "http")), "this port speaks TLS")


@pytest.mark.parametrize("args, says", [
    (["stats", "--server", "https://127.0.0.1:1", "--ca-file", "/nowhere"], "CA file /nowhere: No such file"),
    (["stats", "--server", "https://127.0.0.1:1", "--cert", "/x"], "go together"),
    (["certs"], "missing FOLDER"),
    (["certs", "/nowhere/x/y", "--client", "../z"], "--client"),
])
def test_a_wrong_call_says_what_is_wrong(args, says):
    out = run(*args)
    assert out.returncode == 2 and says in out.stderr


@pytest.mark.parametrize("args, says", [
    (["certs", "/nowhere/x/y"], "/nowhere/x/y: No such file"),
    (["certs", "{}", "--client", "a", "--grant", "pay:x"], "NAMESPACE:r"),
    (["certs", "{}/new", "--host", "a b"], "names and addresses"),
    (["certs", "{}"], "exists: remove it"),
    (["bench", "enqueue", "--server", "https://127.0.0.1:1"], "does not support TLS"),
])
def test_what_cannot_be_done_says_why(folder, args, says):
    out = run(*[a.format(folder) for a in args])
    assert out.returncode == 1 and says in out.stderr


def test_a_key_is_readable_by_its_owner_alone(folder):
    assert (folder / "ca.key").stat().st_mode & 0o777 == 0o600
    assert (folder / "client.key").stat().st_mode & 0o777 == 0o600
