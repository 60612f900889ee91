"""The Go package: vetted, built with the race detector where cgo is there, and used on a real server."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from package_kit import ROOT, START, Hangup, Program, Server, check_kills, check_orders, free_port, until, url

sys.path.insert(0, str(ROOT / "clients" / "python"))
import sluice  # noqa: E402

PACKAGE = ROOT / "clients" / "go"
HERE = Path(__file__).parent
CASES = ["messages", "payloads", "batches", "settles", "resume", "groups", "locks", "errors"]
GO_MOD = f"module cases\n\ngo 1.19\n\nrequire sluice v0.0.0\n\nreplace sluice => {PACKAGE}\n"

if not shutil.which("go"):
    pytest.skip("SKIPPED: go is not installed; tools/setup go installs it", allow_module_level=True)


def go(*words, cwd):
    env = {**os.environ, "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local", "GONOSUMDB": "*"}
    done = subprocess.run(["go", *words], cwd=cwd, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


@pytest.fixture(scope="session")
def project(tmp_path_factory):
    """A function that builds the program of a text."""
    folder = tmp_path_factory.mktemp("go")

    def build(name, text):
        place = folder / name
        place.mkdir()
        (place / "go.mod").write_text(GO_MOD)
        (place / "main.go").write_text(text)
        go("build", "-o", "program", ".", cwd=place)
        return str(place / "program")

    return build


@pytest.fixture(scope="session")
def program(project):
    return project("cases", (HERE / "go" / "main.go").read_text())


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("server") / "data") as server:
        yield server


def test_the_package_is_vetted_and_formatted():
    go("vet", "./...", cwd=PACKAGE)
    assert subprocess.run(["gofmt", "-l", str(PACKAGE), str(HERE / "go")], capture_output=True, text=True, check=True).stdout == ""


def test_no_dependency():
    assert "require" not in (PACKAGE / "go.mod").read_text()
    for path in PACKAGE.glob("*.go"):
        block = re.search(r"^import \((.*?)\)", path.read_text(), re.S | re.M)[1]
        assert not re.search(r'"[^"]*\.[^"]*/', block), path


@pytest.mark.parametrize("name", CASES)
def test_case(name, program, shared):
    with Hangup() as other:
        ran = Program([program, name], url(shared), OTHER=other, AWAY=f"http://127.0.0.1:{free_port()}")
        code = ran.process.wait(2 * START)
        ran.reader.join()
        assert code == 0 and ran.lines[-1] == "passed", ran.lines


@pytest.fixture
def worker(program):
    made = []

    def start(servers, concurrency=4, lease="30s", gate=""):
        made.append(Program([program, "worker"], servers, CONCURRENCY=str(concurrency), LEASE=lease, BEAT="50ms", GATE=str(gate)))
        return made[-1]

    yield start
    for one in made:
        one.end()


def test_a_worker_acks_retries_defers_and_rejects(worker, tmp_path):
    with Server(tmp_path / "data") as server:
        client = sluice.Client(url(server))
        client.policy("jobs", retry={"kind": "fixed", "base": "10ms", "jitter": "none"}, max_attempts=3)
        program = worker(url(server))
        pushed = {text: client.push("jobs", text, keep_result="1h") for text in ("mail", "flaky", "wait", "soon", "never", "bad")}
        until(lambda: client.stats("jobs")["total"] == client.stats("jobs")["dead"] == 2)
        program.stop()
        assert sorted(program.lines) == sorted([
            "mail 1", "flaky 1", "flaky 2", "wait 1", "wait 2", "soon 1", "soon 2", "never 1", "bad 1", "bad 2", "bad 3", "passed"])
        assert {m.body: m.error for m in client.dead_letters("jobs")} == {"never": "no such customer", "bad": "panic: seven"}
        assert [client.result(pushed[text].id) for text in ("mail", "flaky", "wait", "soon")] == [
            "did mail", "did flaky", "did wait", "did soon"]


def test_a_long_handler_keeps_its_lease(worker, tmp_path):
    gate = tmp_path / "gate"
    with Server(tmp_path / "data") as server:
        client = sluice.Client(url(server))
        client.push("jobs", "x")
        program = worker(url(server), lease="6s", gate=gate)
        seen = set()
        until(lambda: seen.update(m.lease_expires_at for m in client.peek("jobs", "leased")) or len(seen) > 3)
        gate.touch()
        until(lambda: client.stats("jobs")["total"] == 0)
        program.stop()
        assert program.lines == ["begun", "passed"]


def test_an_operator_makes_a_worker_quiet_resumes_and_stops_it(worker, tmp_path):
    with Server(tmp_path / "data") as server:
        client = sluice.Client(url(server))
        check_orders(server, lambda text: client.push("jobs", text), worker(url(server)))


def test_a_signal_lets_handlers_finish_and_takes_nothing_more(worker, tmp_path):
    gate = tmp_path / "gate"
    with Server(tmp_path / "data") as server:
        client = sluice.Client(url(server))
        client.push_many("jobs", range(3))
        program = worker(url(server), concurrency=1, gate=gate)
        until(lambda: program.lines)
        program.process.terminate()
        gate.touch()
        program.stop()
        left = client.stats("jobs")
        assert left["ready"] == left["total"] == 3 - program.lines.count("begun") > 0
        assert {m.failures for m in client.peek("jobs")} == {0}


def test_nothing_is_lost_when_servers_and_workers_are_killed(worker, tmp_path):
    check_kills(tmp_path / "data", sluice.Client, lambda address: worker(address, lease="2s"))


def test_the_examples_of_the_pages_run(project, tmp_path):
    with Server(tmp_path / "data") as server:
        for page in (PACKAGE / "README.md", ROOT / "docs" / "clients.md"):
            for n, block in enumerate(re.findall(r"```go\n(.*?)```", page.read_text(), re.S)):
                ran = Program([project(f"{page.stem}{n}", block)], url(server))
                if "Worker{" in block:  # it runs until it is stopped
                    until(lambda: "mail to ann@example.com" in ran.lines)
                    ran.stop()
                else:
                    assert ran.process.wait(2 * START) == 0
