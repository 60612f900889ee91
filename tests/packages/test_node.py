"""The Node package: packed by npm, installed from the tarball, and used on a real server."""
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from package_kit import ROOT, START, Hangup, Program, Server, check_kills, check_orders, free_port, until, url

sys.path.insert(0, str(ROOT / "clients" / "python"))
import sluice  # noqa: E402

PACKAGE = ROOT / "clients" / "node"
HERE = Path(__file__).parent
CASES = re.findall(r"^  async (\w+)\(\)", (HERE / "node_cases.mjs").read_text(), re.M)


@pytest.fixture(scope="session")
def packed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packed")
    subprocess.run(["npm", "pack", "--silent", "--pack-destination", str(folder), str(PACKAGE)], cwd=folder, check=True,
                   capture_output=True, timeout=120)
    tarball, = folder.glob("sluice-queue-*.tgz")
    return tarball


@pytest.fixture(scope="session")
def installed(packed, tmp_path_factory):
    """A folder whose programs find the package."""
    folder = tmp_path_factory.mktemp("project")
    with tarfile.open(packed) as tar:
        tar.extractall(folder / "unpacked")
    (folder / "node_modules").mkdir()
    shutil.move(folder / "unpacked" / "package", folder / "node_modules" / "sluice-queue")
    shutil.copy(HERE / "node_cases.mjs", folder)
    return folder


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("server") / "data") as server:
        yield server


def test_the_tarball_has_the_package_and_nothing_else(packed):
    with tarfile.open(packed) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    assert names == {"package.json", "README.md", "index.mjs", "index.d.ts"} | {f"lib/{path.name}" for path in (PACKAGE / "lib").iterdir()}


def test_the_version_is_the_version_of_the_project():
    version = re.search(r'"version": "(.*)"', (PACKAGE / "package.json").read_text())[1]
    assert f"version: '{version}'" in (ROOT / "meson.build").read_text()


def test_no_dependency():
    assert "ependencies" not in (PACKAGE / "package.json").read_text()
    for path in (PACKAGE / "lib").iterdir():
        for name in re.findall(r'require\("(.*?)"\)', path.read_text()):
            assert name.startswith(("node:", "./")) or name == "../package.json", (path, name)


def test_import_and_require_have_the_same_names(installed):
    names = "console.log(Object.keys(s).filter((n) => n !== 'default').sort().join())"
    found = [subprocess.run(["node", *words], cwd=installed, check=True, capture_output=True, text=True).stdout for words in (
        ["-e", f"const s = require('sluice-queue'); {names}"],
        ["--input-type=module", "-e", f"import * as s from 'sluice-queue'; {names}"])]
    assert found[0] == found[1] and "Worker" in found[0]
    types = (PACKAGE / "index.d.ts").read_text()
    for name in found[0].strip().split(","):
        assert f"export class {name} " in types


TYPED = """
import { Client, Worker, Retry, Message, NotFound } from "sluice-queue";

const client = new Client({ servers: ["http://127.0.0.1:7171"], patience: 1 });

export async function all(): Promise<string> {
  const pushed = await client.push("q", { a: 1 }, { delay: "1s", priority: "high" });
  const messages: Message[] = await client.take("q", { limit: 2 });
  for await (const letter of client.deadLetters("q")) console.log(letter.body, letter.fencingToken + 1n);
  const n: number = await client.lock("k", async (lock) => { await lock.write({}); return 7; });
  try { await client.ack(messages[0], n); } catch (e) { if (e instanceof NotFound) console.log(e.status); }
  await new Worker("q", async (message) => { if (message.attempts < 2) throw new Retry("soon", 1); }).run();
  return pushed.id;
}

// @ts-expect-error: no such option
client.push("q", "x", { priorty: 1 });
"""


def test_types_are_checked(installed):
    (installed / "typed.mts").write_text(TYPED)
    done = subprocess.run(["tsc", "--strict", "--noEmit", "--target", "es2022", "--lib", "es2022,dom", "--module", "node16",
                           "--moduleResolution", "node16", "typed.mts"], cwd=installed, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", CASES)
def test_case(name, installed, shared):
    with Hangup() as other:
        program = Program(["node", str(installed / "node_cases.mjs"), name], url(shared), OTHER=other, AWAY=f"http://127.0.0.1:{free_port()}")
        code = program.process.wait(2 * START)
        program.reader.join()
        assert code == 0 and program.lines[-1] == "passed", program.lines


WORKER = """
import { Defer, Reject, Retry, Worker } from "sluice-queue";
import { existsSync } from "node:fs";

const pause = () => new Promise((resolve) => setTimeout(resolve, 50));

await new Worker("jobs", async (message) => {
  %s
}, { concurrency: %d, lease: %d, beat: %s }).run();
"""


@pytest.fixture
def worker(installed, tmp_path):
    made = []

    def start(servers, body, concurrency=4, lease=30, beat=5):
        script = installed / f"worker{len(list(installed.iterdir()))}.mjs"
        script.write_text(WORKER % (body, concurrency, lease, beat))
        made.append(Program(["node", str(script)], servers))
        return made[-1]

    yield start
    for one in made:
        one.end()


def test_a_worker_acks_retries_defers_and_rejects(worker, tmp_path):
    with Server(tmp_path / "data") as server:
        client = sluice.Client(url(server))
        client.policy("jobs", retry={"kind": "fixed", "base": "10ms", "jitter": "none"}, max_attempts=3)
        program = worker(url(server), """
  const { body, attempts } = message;
  console.log(body, attempts);
  if (body === "flaky" && attempts === 1) throw new Error("no carrier");
  if (body === "wait" && attempts === 1) throw new Defer(0.01);
  if (body === "soon" && attempts === 1) throw new Retry("soon", 0.01);
  if (body === "never") throw new Reject("no such customer");
  if (body === "bad") throw new RangeError("7");
  return body.toUpperCase();""")
        pushed = {text: client.push("jobs", text, keep_result="1h") for text in ("mail", "flaky", "wait", "soon", "never", "bad")}
        until(lambda: client.stats("jobs")["total"] == client.stats("jobs")["dead"] == 2)
        program.stop()
        assert sorted(program.lines) == sorted([
            "mail 1", "flaky 1", "flaky 2", "wait 1", "wait 2", "soon 1", "soon 2", "never 1", "bad 1", "bad 2", "bad 3"])
        assert {m.body: m.error for m in client.dead_letters("jobs")} == {"never": "no such customer", "bad": "RangeError: 7"}
        assert [client.result(pushed[text].id) for text in ("mail", "flaky", "wait", "soon")] == ["MAIL", "FLAKY", "WAIT", "SOON"]


def test_a_long_handler_keeps_its_lease(worker, tmp_path):
    gate = tmp_path / "gate"
    with Server(tmp_path / "data") as server:
        client = sluice.Client(url(server))
        client.push("jobs", "x")
        program = worker(url(server), f'console.log("begun"); while (!existsSync("{gate}")) await pause();', lease=6)
        seen = set()
        until(lambda: seen.update(m.lease_expires_at for m in client.peek("jobs", "leased")) or len(seen) > 3)
        gate.touch()
        until(lambda: client.stats("jobs")["total"] == 0)
        program.stop()
        assert program.lines == ["begun"]


def test_a_signal_lets_handlers_finish_and_takes_nothing_more(worker, tmp_path):
    gate = tmp_path / "gate"
    with Server(tmp_path / "data") as server:
        client = sluice.Client(url(server))
        client.push_many("jobs", range(3))
        program = worker(url(server), f'console.log("begun"); while (!existsSync("{gate}")) await pause();', concurrency=1)
        until(lambda: program.lines)
        program.process.terminate()
        gate.touch()
        program.stop()
        left = client.stats("jobs")
        assert left["ready"] == left["total"] == 3 - program.lines.count("begun") > 0
        assert {m.failures for m in client.peek("jobs")} == {0}


def test_an_operator_makes_a_worker_quiet_resumes_and_stops_it(worker, tmp_path):
    with Server(tmp_path / "data") as server:
        client = sluice.Client(url(server))
        check_orders(server, lambda text: client.push("jobs", text), worker(url(server), "console.log(message.body);", beat=0.05))


def test_nothing_is_lost_when_servers_and_workers_are_killed(worker, tmp_path):
    check_kills(tmp_path / "data", sluice.Client, lambda address: worker(address, "console.log(message.body);", lease=2))


def test_the_examples_of_the_pages_run(installed, tmp_path):
    with Server(tmp_path / "data") as server:
        for page in (PACKAGE / "README.md", ROOT / "docs" / "clients.md"):
            for n, block in enumerate(re.findall(r"```js\n(.*?)```", page.read_text(), re.S)):
                script = installed / f"{page.stem}{n}.mjs"
                script.write_text(block)
                program = Program(["node", str(script)], url(server))
                if "new Worker(" in block:  # it runs until it is stopped
                    until(lambda: "mail to ann@example.com" in program.lines)
                    program.stop()
                else:
                    assert program.process.wait(2 * START) == 0
