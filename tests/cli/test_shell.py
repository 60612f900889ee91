"""What one command hands to the next by variables of the shell: messages, locks, state."""
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
from served import Server, until  # noqa: E402

SLUICE = Path(os.environ["SLUICE"])


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("shell") / "data", engine="memory") as server:
        server.namespace = "default"
        yield server


@pytest.fixture
def shell(server, tmp_path):
    """shell("commands"): a bash that has sluice, the server, and a folder of its own."""
    env = {**os.environ, "SLUICE_SERVER": "%s:%d" % server.address, "TMPDIR": str(tmp_path),
           "PATH": f"{SLUICE.parent}:{os.environ['PATH']}"}

    def run(text, code=0):
        done = subprocess.run(["bash", "-euc", text], cwd=tmp_path, env=env, text=True,
                              capture_output=True, timeout=120)
        assert done.returncode == code, (done.stdout, done.stderr)
        return done.stdout.strip()

    run.env = env
    run.folder = tmp_path
    return run


# --- messages --------------------------------------------------------------------

def test_a_message_is_taken_extended_and_acked_without_arguments(server, shell):
    """LQ-74, LQ-75, LQ-76, LQ-78"""
    shell("sluice push taken '{\"a\":1}'")
    out = shell('eval "$(sluice queue dequeue taken)"; cat "$SLUICE_QUEUE_PAYLOAD_PATH"; echo;'
                'first=$SLUICE_QUEUE_RECEIPT; eval "$(sluice queue extend --by 5m)";'
                'test "$first" != "$SLUICE_QUEUE_RECEIPT";'
                'echo $SLUICE_QUEUE_NAME $SLUICE_QUEUE_ATTEMPTS; sluice queue ack')
    assert out == '{"a":1}\ntaken 1'
    assert server.stats(topic="taken")["total"] == 0


def test_a_payload_goes_to_the_file_that_was_named(shell):
    """LQ-76"""
    (shell.folder / "in").write_bytes(bytes(range(256)) * 5000)
    shell("sluice push files - <in")
    shell("sluice queue dequeue files --payload-out out >/dev/null")
    assert (shell.folder / "out").read_bytes() == (shell.folder / "in").read_bytes()


def test_a_nack_gives_it_back_later_and_keeps_why(server, shell):
    """LQ-78, LQ-69: by another process, with the receipt alone"""
    shell("sluice push failing x")
    receipt = json.loads(shell("sluice queue dequeue failing --json"))["SLUICE_QUEUE_RECEIPT"]
    subprocess.run([SLUICE, "queue", "nack", "--receipt", receipt, "--delay", "1h", "--error",
                    "no such customer"], env=shell.env, check=True, timeout=60)
    assert server.stats(topic="failing")["delayed"] == 1
    found, = server.peek(topic="failing", state="all")
    assert "no such customer" in json.dumps(found)
    shell("sluice queue nack --defer --receipt '{}'", code=1)


def test_options_of_dequeue_are_those_of_the_api(server, shell):
    """LQ-77"""
    assert shell("sluice queue dequeue empty --block 0", code=3) == ""
    shell("sluice queue dequeue empty --block soon", code=1)
    shell("sluice push options x")
    got = json.loads(shell("sluice queue dequeue options --visibility 10m --owner me --stateful --json"))
    assert got["SLUICE_QUEUE_STATE_OWNER"] == "me"
    assert got["SLUICE_QUEUE_STATE_KEY"] == f"q/options/state/{got['SLUICE_QUEUE_MESSAGE_ID']}"
    leased, = server.peek(topic="options", state="leased")
    assert leased["id"]


def test_dequeue_blocks_until_a_message_comes(server, shell):
    """LQ-74"""
    got = []
    waits = threading.Thread(target=lambda: got.append(
        shell('eval "$(sluice queue dequeue later)"; cat "$SLUICE_QUEUE_PAYLOAD_PATH"')))
    waits.start()
    until(lambda: "sluice_waiting{shard=\"0\"} 1" in server.get("/metrics").text)
    server.enqueue({"text": "now", "topic": "later"})
    waits.join(60)
    assert got == ["now"]


def test_without_the_variables_it_says_what_sets_them(shell):
    done = subprocess.run([SLUICE, "queue", "ack"], env=shell.env, text=True, capture_output=True,
                          timeout=60)
    assert done.returncode == 1 and "sluice queue dequeue" in done.stderr


def test_values_survive_the_shell(shell):
    shell("sluice push quotes x --correlation-id \"it's \\$HOME\"")
    out = shell('eval "$(sluice queue dequeue quotes)"; echo "$SLUICE_QUEUE_CORRELATION_ID"')
    assert out == "it's $HOME"


# --- streams ---------------------------------------------------------------------

def test_subscribe_prints_and_acks_what_comes(server, shell):
    shell("sluice push stream a b c")
    assert shell("sluice subscribe stream --count 3 --prefetch 2") == "a\nb\nc"
    assert server.stats(topic="stream")["total"] == 0
    shell("sluice push stream d")
    line = json.loads(shell("sluice subscribe stream --count 1 --keep --json"))
    assert line["payload"] == "ZA==" and server.stats(topic="stream")["leased"] == 1
    shell(f"sluice queue ack --receipt '{line['receipt']}'")
    assert shell("sluice subscribe stream --block 1s", code=3) == ""


def test_watch_tells_of_changes(server, shell):
    with subprocess.Popen([SLUICE, "watch", "seen", "--count", "2", "--json"], env=shell.env,
                          stdout=subprocess.PIPE, text=True) as watch:
        assert json.loads(watch.stdout.readline()) == {"available": False, "head": None}
        server.enqueue({"topic": "seen"})
        second = json.loads(watch.stdout.readline())
        assert second["available"] and second["head"]
        assert watch.wait(60) == 0


# --- locks and state -------------------------------------------------------------

def test_a_lock_is_acquired_kept_and_released(shell):
    shell('eval "$(sluice lock acquire a/b --ttl 1m)"; test $SLUICE_LOCK_KEY = a/b;'
          'sluice lock acquire a/b --block 0 && exit 9; sluice lock keepalive --ttl 2m >/dev/null;'
          'sluice lock release; sluice lock release; sluice lock acquire a/b --block 0 >/dev/null')
    shell("sluice lock acquire a/b --block 0", code=3)
    shell("sluice lock acquire a/b --block 0 --if-absent", code=1)


def test_state_is_staged_under_a_lock_and_seen_after_its_release(shell):
    out = shell('eval "$(sluice lock acquire doc)"; sluice state put doc \'{"n":1}\' >/dev/null;'
                'sluice state get doc; (unset SLUICE_LOCK_KEY; sluice state get doc || echo none);'
                'sluice lock release; unset SLUICE_LOCK_KEY; sluice state get doc')
    assert out == '{"n":1}\nnone\n{"n":1}'
    shell('eval "$(sluice lock acquire doc)"; sluice state put doc 2; sluice lock release --rollback')
    assert shell("sluice state get doc") == '{"n":1}'


def test_state_is_changed_in_one_step(shell):
    shell("echo 1 | sluice state put one; sluice state put one 2 --if-version 1")
    shell("sluice state put one 3 --if-version 1", code=1)
    assert json.loads(shell("sluice state get one --json"))["state"] == 2
    shell("sluice state put one '{not json'", code=1)
    shell("EDITOR='sed -i s/2/7/' sluice state edit one")
    assert shell("sluice state get one") == "7"
    shell("EDITOR=false sluice state edit one", code=1)
    shell("sluice state rm one")
    assert shell("sluice state get one", code=3) == ""


def test_a_command_runs_under_a_lock(shell):
    out = shell("sluice lock run job -- sh -c 'test $SLUICE_LOCK_FENCING_TOKEN -gt 0; "
                "sluice lock acquire job --block 0 || echo held; sluice state put job 5 >/dev/null'")
    assert out == "held"
    assert shell("sluice state get job") == "5"
    shell("sluice lock run job -- sh -c 'sluice state put job 6 >/dev/null; exit 7'", code=7)
    assert shell("sluice state get job") == "5"
    shell("sluice lock run job -- no-such-program", code=1)
    shell("sluice lock acquire job --block 0 >/dev/null")


def test_a_command_whose_lease_is_lost_is_killed(tmp_path):
    """The server goes away for longer than the lease lasts."""
    with Server(tmp_path / "data", engine="memory") as server:
        env = {**os.environ, "SLUICE_SERVER": "%s:%d" % server.address}
        runs = subprocess.Popen([SLUICE, "lock", "run", "x", "--ttl", "1s", "--", "sleep", "600"],
                                env=env, stderr=subprocess.PIPE, text=True)
        until(lambda: server.get("/v1/describe", key="x").body.get("owner"))
        server.kill()
        _, said = runs.communicate(timeout=120)
        assert runs.returncode == 4 and "lost" in said


def test_a_killed_lock_run_takes_all_that_its_command_started_along(server, tmp_path):
    env = {**os.environ, "SLUICE_SERVER": "%s:%d" % server.address}
    runs = subprocess.Popen([SLUICE, "lock", "run", "killed", "--", "sh", "-c",
                             "setsid sh -c 'echo $$ > pid; exec sleep 600' & wait"], env=env, cwd=tmp_path)
    pid = int(until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip()))
    runs.kill()
    runs.wait()
    until(lambda: not Path(f"/proc/{pid}").exists() or
          Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z")


@pytest.mark.parametrize("words", [["queue", "dequeue"], ["queue", "ack"], ["queue", "nack"],
                                   ["queue", "extend"], ["lock", "acquire"], ["lock", "keepalive"],
                                   ["lock", "release"], ["lock", "run"], ["state", "get"],
                                   ["state", "put"], ["state", "edit"], ["state", "rm"],
                                   ["watch"], ["subscribe"]])
def test_every_command_has_help_with_examples(words):
    out = subprocess.run([SLUICE, *words, "--help"], capture_output=True, text=True, timeout=60)
    assert out.returncode == 0 and "examples:" in out.stdout


@pytest.mark.parametrize("name", ["subscribe", "watch", "lock"])
def test_benches_of_streams_and_locks_print_figures(name, tmp_path):
    out = subprocess.run([SLUICE, "bench", name, "--for", "300ms", "--connections", "3", "--dir",
                          str(tmp_path), "--json"], capture_output=True, text=True, timeout=120)
    assert out.returncode == 0, out.stderr
    assert json.loads(out.stdout)["messages"] > 0


def test_a_bench_may_connect_anew_for_every_request(server):
    out = subprocess.run([SLUICE, "bench", "enqueue", "--fresh", "--for", "200ms", "--connections",
                          "3", "--server", "%s:%d" % server.address, "--json"],
                         capture_output=True, text=True, timeout=120)
    assert out.returncode == 0, out.stderr
    count = [line for line in server.get("/metrics").text.splitlines()
             if line.startswith("sluice_http_accepted_total")]
    assert float(count[0].split()[-1]) >= json.loads(out.stdout)["messages"]
