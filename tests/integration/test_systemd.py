"""Under systemd: passed sockets, notifications, the units and the image."""
import fcntl
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from served import SLUICED, START, until

ROOT = Path(__file__).parents[2]
SERVICE = Path(os.environ["SLUICED"]).parent / "deploy/sluiced.service"
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def ask(sock):
    """Is it our server that answers there?"""
    sock.settimeout(START)
    sock.sendall(REQUEST)
    answer = b""
    while piece := sock.recv(4096):
        answer += piece
    sock.close()
    return b"200 OK" in answer and b'"ok"' in answer


def connect_unix(path):
    """As soon as a server listens there."""
    sock = socket.socket(socket.AF_UNIX)
    until(lambda: sock.connect_ex(str(path)) == 0)
    return sock


class Passed:
    """sluiced with these sockets as its descriptors 3, 4 ..."""

    def __init__(self, tmp_path, *socks, pid="$$", args=(), **env):
        high = [fcntl.fcntl(s.fileno(), fcntl.F_DUPFD, 50) for s in socks]
        moves = " ".join(f"{3 + i}<&{fd} {fd}<&-" for i, fd in enumerate(high))
        self.errors = tmp_path / "stderr"
        with open(self.errors, "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                ["bash", "-c", f'exec {moves}; export LISTEN_PID={pid}; exec "$@"', "bash",
                 SLUICED, "--engine", "memory", "--data", str(tmp_path / "data"), *args],
                pass_fds=high, stderr=errors,
                env={**os.environ, "LISTEN_FDS": str(len(socks)), **env})
        for fd in high:
            os.close(fd)

    def said(self):
        return self.errors.read_text()

    def stop(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        return self.process.wait(START)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def tcp():
    sock = socket.create_server(("127.0.0.1", 0))
    return sock, sock.getsockname()


# --- sockets ----------------------------------------------------------------------

def test_passed_sockets_are_served(tmp_path):
    """Clients may be there before the server is."""
    first, address = tcp()
    second = socket.socket(socket.AF_UNIX)
    second.bind(str(tmp_path / "s"))
    second.listen()
    early = socket.create_connection(address)
    with Passed(tmp_path, first, second, args=["--threads", "3"]) as server:
        assert ask(early)
        assert ask(socket.create_connection(address))
        assert ask(connect_unix(tmp_path / "s"))
        until(lambda: "listening" in server.said())
        assert server.stop() == 0
        until(lambda: "http://127.0.0.1:%d" % address[1] in server.said())
        until(lambda: f"unix:{tmp_path}/s" in server.said())
        assert ":7171" not in server.said(), "the default is not served beside them"
    assert (tmp_path / "s").exists(), "it belongs to who passed it"


def test_a_client_that_comes_during_a_restart_is_served(tmp_path):
    sock, address = tcp()
    with Passed(tmp_path, sock) as server:
        assert ask(socket.create_connection(address))
        assert server.stop() == 0
    between = socket.create_connection(address)
    with Passed(tmp_path, sock) as server:
        assert ask(between)


class Clients:
    """Threads that enqueue and dequeue all the time; their answers, and their failures."""

    def __init__(self, address, n=4):
        self.address = address
        self.statuses, self.broken = [], []
        self.enough = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(n)]
        for thread in self.threads:
            thread.start()

    def ask(self, connection, i):
        if i % 2:
            connection.request("GET", "/dequeue?namespace=n&topic=t&wait=200ms&limit=10")
        else:
            connection.request("POST", "/enqueue", json.dumps([{"namespace": "n", "topic": "t", "text": "x"}]))
        answer = connection.getresponse()
        answer.read()
        return answer.status

    def run(self, i):
        connection = http.client.HTTPConnection(*self.address, timeout=START)
        while not self.enough.is_set():
            try:
                self.statuses.append(self.ask(connection, i))
            except (OSError, http.client.HTTPException) as error:
                # An idle connection that the server closed in the very moment: sent again, as every
                # client of HTTP does.
                self.broken.append(error)
                connection.close()
        connection.close()

    def end(self):
        self.enough.set()
        for thread in self.threads:
            thread.join(START)


@pytest.mark.parametrize("listen", [[], ["--listen", "fd:3"]])
def test_no_client_is_refused_while_the_server_restarts(tmp_path, listen):
    """Work that comes meanwhile waits for the next process."""
    sock, address = tcp()
    clients = Clients(address)
    for _ in range(4):
        with Passed(tmp_path, sock, args=["--drain", "300ms", *listen]) as server:
            until(lambda: "listening" in server.said())
            n = len(clients.statuses)
            until(lambda: len(clients.statuses) > n + 50)
            assert server.stop() == 0, server.said()
    with Passed(tmp_path, sock, args=listen):
        n = len(clients.statuses)
        until(lambda: len(clients.statuses) > n + 50)
        clients.end()
    assert set(clients.statuses) == {200}, clients.statuses
    assert len(clients.broken) <= 4 * len(clients.threads), clients.broken


def test_a_stop_hands_new_connections_over(tmp_path):
    """A connection that is open gets its answer and is closed; another one waits."""
    sock, address = tcp()
    with Passed(tmp_path, sock, args=["--drain", "30s"]) as server:
        kept = http.client.HTTPConnection(*address, timeout=START)

        def waits():
            kept.request("GET", "/metrics")
            return b'sluice_waiting{shard="0"} 1' in kept.getresponse().read()

        waiting = http.client.HTTPConnection(*address, timeout=START)
        waiting.request("GET", "/dequeue?namespace=n&topic=t&wait=600")
        until(waits)
        server.process.send_signal(signal.SIGTERM)
        answer = waiting.getresponse()
        assert answer.status == 200 and json.loads(answer.read()) == []
        waiting.close()
        between = socket.create_connection(address)
        kept.request("POST", "/enqueue", json.dumps([{"namespace": "n", "topic": "t", "text": "x"}]))
        answer = kept.getresponse()
        assert answer.status == 200 and answer.headers["Connection"] == "close"
        answer.read()
        assert server.process.wait(START) == 0
    with Passed(tmp_path, sock):
        assert ask(between)


def test_sockets_for_another_process_are_left_alone(tmp_path):
    sock, address = tcp()
    with Passed(tmp_path, sock, pid="1", args=["--listen", "127.0.0.1:0"]) as server:
        until(lambda: "listening" in server.said())
        assert str(address[1]) not in server.said()


def test_listen_says_which_are_served(tmp_path):
    first, _ = tcp()
    second, address = tcp()
    with Passed(tmp_path, first, second, args=["--listen", "fd:4"]) as server:
        assert ask(socket.create_connection(address))
        until(lambda: "listening on" in server.said())
        assert server.stop() == 0
        assert server.said().count("listening on") == 1


def test_unused_sockets_are_logged(tmp_path):
    sock, _ = tcp()
    with Passed(tmp_path, sock, args=["--listen", "127.0.0.1:0"]) as server:
        until(lambda: "passed sockets are not served" in server.said())


@pytest.mark.parametrize("listen, says", [
    ("fd:2", "3 or more"),
    ("fd:x", "3 or more"),
    ("fd:33", "listening stream socket"),
    ("fd:4", "listening stream socket"),
])
def test_a_descriptor_that_is_no_listener_is_refused(tmp_path, listen, says):
    sock, _ = tcp()
    datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    with Passed(tmp_path, sock, datagrams, args=["--insecure", "--listen", listen]) as server:
        assert server.process.wait(START) == 2
        assert listen in server.said() and says in server.said()


def test_a_passed_socket_beyond_this_machine_needs_a_login(tmp_path):
    """A passed address needs the same care as a configured one."""
    everywhere = socket.create_server(("", 0))
    with Passed(tmp_path, everywhere) as server:
        assert server.process.wait(START) == 2
        until(lambda: "--insecure" in server.said())


@pytest.mark.skipif(not shutil.which("systemd-socket-activate"), reason="no systemd")
def test_systemd_starts_it_for_the_first_client(tmp_path):
    path = tmp_path / "s"
    process = subprocess.Popen(
        ["systemd-socket-activate", "-l", str(path), SLUICED, "--engine", "memory"],
        stderr=subprocess.DEVNULL, cwd=tmp_path)
    try:
        assert ask(connect_unix(path))
    finally:
        process.terminate()
        assert process.wait(START) == 0


# --- notices ----------------------------------------------------------------------

class Manager:
    """The other end of NOTIFY_SOCKET."""

    def __init__(self, name):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(name.replace("@", "\0", 1))
        self.socket.settimeout(START)

    def hear(self):
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().split("\n"))

    def hear_of(self, name):
        """Watchdog notices may come between."""
        while name not in (heard := self.hear()):
            assert "WATCHDOG" in heard, heard
        return heard


@pytest.fixture(params=["file", "abstract"])
def name(request, tmp_path):
    if request.param == "file":
        return str(tmp_path / "notify")
    return f"@sluice-test-{os.getpid()}-{time.monotonic_ns()}"


def start(tmp_path, *args, **env):
    return Passed(tmp_path, args=["--listen", "127.0.0.1:0", *args], **env)


def test_every_step_is_logged(tmp_path, name):
    manager = Manager(name)
    file = tmp_path / "sluice.yaml"
    file.write_text("drain: 1s\n")
    with start(tmp_path, "--config", str(file), NOTIFY_SOCKET=name) as server:
        heard = manager.hear()
        assert heard["READY"] == "1" and heard["STATUS"] == "serving"
        assert "listening" in server.said(), "not before it is"

        before = time.monotonic_ns() // 1000
        server.process.send_signal(signal.SIGHUP)
        heard = manager.hear()
        assert heard["RELOADING"] == "1"
        assert before <= int(heard["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000
        assert manager.hear()["STATUS"] == "serving"

        file.write_text("drian: 1s\n")
        server.process.send_signal(signal.SIGHUP)
        assert manager.hear()["RELOADING"] == "1"
        heard = manager.hear()
        assert heard["READY"] == "1" and "reload failed" in heard["STATUS"]

        server.process.terminate()
        assert manager.hear()["STOPPING"] == "1"
        assert server.process.wait(START) == 0


def test_the_watchdog_hears_of_it(tmp_path, name):
    manager = Manager(name)
    with start(tmp_path, NOTIFY_SOCKET=name, WATCHDOG_USEC="20000") as server:
        assert manager.hear()["READY"] == "1"
        for _ in range(5):
            assert manager.hear() == {"WATCHDOG": "1"}
        server.process.terminate()
        manager.hear_of("STOPPING")
        assert server.process.wait(START) == 0


def test_a_watchdog_of_another_process_hears_nothing(tmp_path, name):
    manager = Manager(name)
    with start(tmp_path, NOTIFY_SOCKET=name, WATCHDOG_USEC="1000", WATCHDOG_PID="1") as server:
        assert manager.hear()["READY"] == "1"
        server.process.terminate()
        assert manager.hear()["STOPPING"] == "1"


@pytest.mark.parametrize("name", ["", "relative", "/nowhere/notify", "@", "/" + "x" * 200])
def test_a_manager_that_is_not_there_is_no_trouble(tmp_path, name):
    with start(tmp_path, NOTIFY_SOCKET=name, WATCHDOG_USEC="x", LISTEN_FDS="-1") as server:
        until(lambda: "listening" in server.said())
        assert server.stop() == 0


# --- what is deployed -------------------------------------------------------------

@pytest.fixture
def units(tmp_path):
    """The units as they are installed, but for the path of the program."""
    text = SERVICE.read_text()
    line = re.search(r"^ExecStart=(\S+/bin/sluiced) (.*)$", text, re.M)
    (tmp_path / "sluiced.service").write_text(text.replace(line[1], SLUICED))
    shutil.copy(ROOT / "deploy/sluiced.socket", tmp_path)
    return tmp_path, line[2].split()


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd")
def test_systemd_takes_the_units(units):
    folder, _ = units
    out = subprocess.run(["systemd-analyze", "verify", "--man=no", "./sluiced.service",
                          "./sluiced.socket"], cwd=folder, capture_output=True, text=True,
                         timeout=60)
    assert out.returncode == 0 and out.stderr == "", out.stderr
    out = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20",
                          "./sluiced.service"], cwd=folder, capture_output=True, text=True,
                         timeout=60)
    assert out.returncode == 0, out.stdout.splitlines()[-1]


def test_wrong_settings_are_not_tried_again():
    assert "RestartPreventExitStatus=2\n" in SERVICE.read_text()


def test_the_options_of_the_unit_and_the_example_are_right(units):
    _, options = units
    example = ROOT / "deploy/sluice.yaml"
    options = [str(example) if o.endswith("/sluice.yaml") else o for o in options]
    assert str(example) in options
    assert "SLUICE_" not in SERVICE.read_text(), "a variable would be stronger than the file"
    out = subprocess.run([SLUICED, *options, "--check-config"], capture_output=True, text=True,
                         timeout=60)
    assert out.returncode == 0, out.stderr


def test_what_the_example_shows_can_be_used(tmp_path):
    """Its settings are comments: without their marks they are right, too."""
    text = (ROOT / "deploy/sluice.yaml").read_text()
    file = tmp_path / "sluice.yaml"
    text = re.sub(r"^#(?=[a-z]|  [a-z-]|    - )", "", text, flags=re.M)
    file.write_text(text.replace("unix:/run/sluice/", f"unix:{tmp_path}/"))  # the unit makes it
    assert "\nlog:\n  level:" in file.read_text()
    out = subprocess.run([SLUICED, "--config", str(file), "--check-config"],
                         capture_output=True, text=True, timeout=60)
    assert out.returncode == 0, out.stderr


def containerfile():
    lines = (ROOT / "deploy/Containerfile").read_text().replace("\\\n", " ").splitlines()
    return [line.split(None, 1) for line in lines if line and not line.startswith("#")]


def test_the_image_has_the_libraries_it_needs():
    """The image itself cannot be built here; what it installs can be compared."""
    installed = " ".join(rest for word, rest in containerfile() if word == "RUN")
    needed = subprocess.run(["objdump", "-p", SLUICED], capture_output=True, text=True, check=True).stdout
    if "asan" in needed or "tsan" in needed:
        pytest.skip("not what is shipped")
    for library in re.findall(r"NEEDED +(\S+)", needed):
        owner = subprocess.run(["dpkg-query", "-S", "*/" + library],
                               capture_output=True, text=True, check=True).stdout
        names = {line.split(":")[0] for line in owner.splitlines()}
        assert "libc6" in names or any(n in installed.split() for n in names), library


def test_the_settings_of_the_image_are_right():
    rows = containerfile()
    env = dict(pair.split("=", 1) for word, rest in rows if word == "ENV" for pair in rest.split())
    assert ["USER", "sluice"] in rows
    refused = subprocess.run([SLUICED, "--check-config"], env={**os.environ, **env},
                             capture_output=True, text=True, timeout=60)
    assert refused.returncode == 2 and "--insecure" in refused.stderr
    taken = subprocess.run([SLUICED, "--check-config"], capture_output=True, text=True, timeout=60,
                           env={**os.environ, **env, "SLUICE_INSECURE": "true"})
    assert taken.returncode == 0, taken.stderr
