"""Settings: where they come from, errors of wrong ones, reloads."""
import json
import os
import random
import re
import signal
import subprocess

import pytest

from served import SLUICED, Server, until


def run(*args, **env):
    return subprocess.run([SLUICED, *args], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **env})


@pytest.fixture
def file(tmp_path):
    return tmp_path / "sluice.yaml"


def faults(file, text, *args, **env):
    """What --check-config says of a file, without its name before each line."""
    file.write_text(text)
    out = run("--config", str(file), "--check-config", *args, **env)
    assert out.stdout == "" and out.returncode == 2
    lines = out.stderr.splitlines()
    assert all(line.startswith("sluiced: ") for line in lines)
    return [line[len("sluiced: "):].replace(f"{file}:", "") for line in lines]


def settings(file, text, *args, **env):
    file.write_text(text)
    out = run("--config", str(file), "--print-config", "--json", *args, **env)
    assert out.returncode == 0, out.stderr
    return {key: found["value"] for key, found in json.loads(out.stdout).items()}


# --- the file ---------------------------------------------------------------------

def test_keys_may_be_nested_or_dotted(file):
    nested = settings(file, "log:\n  level: debug\n  format: json\nnode:\n  id: 7\n")
    dotted = settings(file, "log.level: debug\nlog.format: json\nnode.id: 7\n")
    assert nested == dotted and nested["log.level"] == "debug" and nested["node.id"] == 7


@pytest.mark.parametrize("text", [
    "listen: 127.0.0.1:1,unix:/s\n",
    "listen: [127.0.0.1:1, 'unix:/s']\n",
    "listen:\n  - 127.0.0.1:1\n  - unix:/s\n",
])
def test_a_list_has_three_spellings(file, text):
    assert settings(file, text)["listen"] == ["127.0.0.1:1", "unix:/s"]


def test_a_stronger_source_replaces_a_list(file):
    text = "listen: [':1', ':2']\n"
    assert settings(file, text, SLUICE_LISTEN=":3")["listen"] == [":3"]
    assert settings(file, text, "--listen=:4", "--listen=:5",
                    SLUICE_LISTEN=":3")["listen"] == [":4", ":5"]


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "---\n", "log:\n", "log: {}\n"])
def test_a_file_may_say_nothing(file, text):
    assert settings(file, text)["log.level"] == "info"


def test_variables_stand_in_values(file):
    found = settings(file, 'data: "/x/${WHO}/$${y}$"\nlisten: ["${A}", "${A}"]\n',
                     WHO="me: [a]", A="unix:/s")
    assert found["data"] == "/x/me: [a]/${y}$"
    assert found["listen"] == ["unix:/s", "unix:/s"]


def test_what_is_printed_loads_to_the_same(file, tmp_path):
    file.write_text('data: "/x y/#1: \\u00e4"\nlisten: ["[::1]:0", "unix:/s"]\n'
                    "log.level: warn\nsync: interval=5ms\n")
    printed = run("--config", str(file), "--print-config").stdout
    again = tmp_path / "again.yaml"
    assert settings(again, printed, SLUICE_CONFIG="") == {
        **settings(file, file.read_text()), "config": str(again)}


@pytest.mark.parametrize("text, says", [
    ("drian: 1s\n", "1: unknown key drian; did you mean drain?"),
    ("log:\n  levle: debug\n", "2: unknown key log.levle; did you mean log.level?"),
    ("level: debug\n", "1: unknown key level; did you mean log.level?"),
    ("a: {b: {c: 1}}\n", "1: unknown key a.b.c; docs/config.md lists all keys"),
    ("log: debug\n",
     "1: log: expected a section with the keys log.level, log.format, not a value"),
    ("shards: many\n", '1: shards: "many": expected a number from 1 to 1024'),
    ("shards: 2000\n", '1: shards: "2000": expected a number from 1 to 1024'),
    ("log.level: loud\n",
     '1: log.level: invalid value "loud"; expected debug|info|warn|error|off'),
    ("insecure: yes\n", '1: insecure: invalid value "yes"; expected true or false'),
    ("data:\n", "1: data: missing value; remove the key to use the default"),
    ("data: ''\n", "1: data: missing value"),
    ("data: [a, b]\n", "1: data[0]: expected one value, not a list"),
    ("listen: []\n", "1: listen: missing value"),
    ("listen: {a: b}\n", "1: unknown key listen.a"),
    ("listen: [[a]]\n", "1: unknown key listen[0][0]"),
    ("drain: 1s\ndrain: 2s\n", "2: drain: is set twice"),
    ("config: x\n", "1: config: not allowed in the file; use the flag or the variable"),
    ("data: ${NOPE}\n", "1: data: unknown environment variable NOPE"),
    ("data: ${NOPE\n", "1: data: invalid variable; expected ${NAME}, or $${ for ${"),
    ("data: ${}\n", "1: data: invalid variable; expected ${NAME}, or $${ for ${"),
    ("a: &x 1\nb: *x\n", "2: aliases (*name) are not supported"),
    ("data: !!str x\n", "1: tags (!name) are not supported"),
    ("data: x\n---\ndata: y\n", "2: expected one document"),
    ("- a\n", "1: expected keys and values, not a list"),
    ("word\n", "1: expected keys and values"),
    ("[a]: b\n", "1: invalid key; expected a plain word"),
    ("data: 'x\n", "2: invalid YAML: found unexpected end of stream while scanning a quoted"),
    ("\tdata: x\n", "1: invalid YAML: found character that cannot start any token"),
    ("x: " + "[" * 40 + "]" * 40 + "\n", "1: too many levels"),
    ("k" * 600 + ": 1\n", "1: key too long"),
    ("data: \"a\\0b\"\n", "1: invalid value: NUL byte"),
])
def test_a_fault_names_line_key_value_and_what_is_right(file, text, says):
    assert any(line.startswith(says) for line in faults(file, text))


def test_all_faults_are_reported_at_once(file):
    found = faults(file, "drian: 1s\nshards: 0\nlog:\n  level: loud\n", "--dta", "x",
                   "--node-id", "2000", SLUICE_THREADS="none")
    assert len(found) == 6
    for said in ("drian", "shards", "log.level", "SLUICE_THREADS", "--dta", "--node-id"):
        assert sum(said in line for line in found) == 1, said


def test_more_faults_than_anybody_reads_are_counted(file):
    found = faults(file, "".join(f"wrong{i}: 1\n" for i in range(100)))
    assert len(found) == 65 and found[-1] == "and 36 more"


def test_a_missing_or_too_large_file_is_reported(file):
    out = run("--config", str(file), "--check-config")
    assert out.returncode == 2 and f"{file}: No such file" in out.stderr
    file.write_text("#" * (1024 * 1024 + 1))
    out = run("--config", str(file), "--check-config")
    assert out.returncode == 2 and "file too large; expected at most 1048576 bytes" in out.stderr


# What a server cannot start with, and the error.
UNUSABLE = {
    "engine: cloud": 'invalid engine "cloud"; expected log, memory, redis',
    "listen: ':0'": "--insecure",
    "listen: 127.0.0.1": "expected host:port",
    "listen: 127.0.0.1:70000": "expected a port of 0 to 65535",
    "listen: no such host:0\ninsecure: true": "no such host",
    "listen: unix:{tmp}/none/socket": "{tmp}/none",
    "listen: unix:{tmp}/socket?mode=rw": "expected a mode",
    "listen: https://127.0.0.1:0": "missing certificate",
    "listen: fd:2": "3 or more",
    "listen: fd:33": "expected the number of a listening stream socket",
    "listen: [127.0.0.1:7999, beanstalk://127.0.0.1:7999]": "beanstalk://127.0.0.1:7999: the address is given twice",
    "listen: [127.0.0.1:0, peer://127.0.0.1:0]": "links between nodes need --store",
    "store: cloud://x": "invalid URL of a store: cloud://x",
    "store: file://x": "store file://x: invalid URL; expected file:///absolute/path",
    "store: file://{tmp}/none/x": "store file://{tmp}/none/x: the folder above it does not exist",
    "store: file://{tmp}/file": "expected a folder",
    "store: s3://": "invalid bucket",
    "store: azure://": "invalid account",
    "store: azure://account/container": "AZURE_STORAGE",
    "store: postgres://host/base?schema=1x": "schema",
    "data: {tmp}/none/data": "--data {tmp}/none/data: folder {tmp}/none: No such file",
    "data: /proc/x": "--data /proc/x: folder /proc: No such file",
    "data: {tmp}/file": "expected a folder",
    "data: {tmp}/file/data": "Not a directory",
    "audit.file: {tmp}/none/audit": "--audit-file {tmp}/none/audit: folder {tmp}/none: No such file",
    "audit.file: /proc/x": "--audit-file /proc/x: folder /proc: No such file",
    "audit.file: {tmp}": "expected a file",
    "tls.cert: {tmp}/none\ntls.key: {tmp}/none": "{tmp}/none",
    "tls.cert: {tmp}/file\ntls.key: {tmp}/file": "{tmp}/file",
    "tls.cert: {tmp}/file": "tls.cert without tls.key",
    "tls.client_auth: required": "tls.client_ca",
    "auth.keys: HS256:{tmp}/none": "{tmp}/none: No such file",
    "auth.keys: HS999:{tmp}/file": "expected [KID@]ALG:FILE",
    "auth.keys: HS256:{tmp}/file": "HS256 needs at least 32",
    "auth.jwks: {tmp}/none": "{tmp}/none: No such file",
    "auth.aws_keys: {tmp}/none": "{tmp}/none: No such file",
    "auth.aws_keys: {tmp}/file": "expected ACCESS_KEY SECRET SCOPES",
    "auth.certificates: {tmp}/none": "{tmp}/none: No such file",
    "auth.certificates: {tmp}/file": "expected SCOPES NAME",
    "engine: redis\nredis.address: localhost": "expected host:port",
    "engine: redis\nredis.address: localhost:6379,localhost:x": "expected host:port",
    "engine: redis\nredis.prefix: '{{x'": "braces",
    "engine: redis\nredis.tls.enabled: true\nredis.tls.ca: {tmp}/none": "{tmp}/none",
    "engine: redis\nredis.tls.enabled: true\nredis.address: unix:/x": "expected host:port with TLS",
}


@pytest.mark.parametrize("text", UNUSABLE, ids=lambda text: re.sub(r"\W+", "-", text).strip("-"))
def test_a_check_sees_what_a_start_would_refuse(file, tmp_path, text):
    """A start exits with 2, so that a service manager does not try the same again for ever."""
    (tmp_path / "file").write_text("text\n")
    says = UNUSABLE[text].format(tmp=tmp_path)
    config = "\n".join(line.format(tmp=tmp_path) for line in text.split("\n")) + "\n"
    assert any(says in fault for fault in faults(file, config)), faults(file, config)
    more = [] if "data:" in config else ["--data", str(tmp_path / "data")]
    more += [] if "listen:" in config else ["--listen", "127.0.0.1:0"]
    out = run("--config", str(file), *more)
    assert out.returncode == 2 and says in out.stderr, out
    out = run("--config", str(file), "--log-format", "json", *more)
    assert any(says in json.loads(line).get("why", "") for line in out.stderr.splitlines())


def test_a_check_makes_nothing_and_tells_all(file, tmp_path):
    assert run("--check-config").returncode == 0
    found = faults(file, f"listen: 127.0.0.1\ndata: {tmp_path}/none/data\n"
                         f"audit.file: {tmp_path}/none/x\nauth.keys: HS256:{tmp_path}/none\n"
                         f"tls.cert: {tmp_path}/none\ntls.key: {tmp_path}/none\n")
    assert len(found) == 5
    file.write_text(f"data: {tmp_path}/data\naudit.file: {tmp_path}/audit\n"
                    f"listen: unix:{tmp_path}/socket\n")
    assert run("--config", str(file), "--check-config").returncode == 0
    assert os.listdir(tmp_path) == [file.name]


def test_what_may_be_gone_at_the_next_try_is_no_wrong_setting(folder):
    """An address in use, a folder in use, a store that is down: 1."""
    with Server(folder) as server:
        for args in (["--listen", "%s:%d" % server.address, "--engine", "memory"],
                     ["--listen", "127.0.0.1:0", "--data", str(folder)],
                     ["--listen", "127.0.0.1:0", "--engine", "redis", "--redis-address", "127.0.0.1:1"]):
            assert run(*args, "--check-config").returncode == 0, args
            assert run(*args).returncode == 1, args


def test_help_is_shown_also_if_all_settings_are_wrong():
    out = run("--help", SLUICE_SHARDS="many")
    assert out.returncode == 0 and "--shards" in out.stdout


# --- reloads ----------------------------------------------------------------------

class Reloaded:
    """A server with a file that changes."""

    def __init__(self, folder, file, text, *args):
        self.file = file
        file.write_text(text)
        self.server = Server(folder, "--config", str(file), *args, engine="memory")

    def reload(self, text):
        """What the log says of it."""
        before = len(self.server.errors)
        if isinstance(text, bytes):
            self.file.write_bytes(text)
        else:
            self.file.write_text(text)
        self.server.process.send_signal(signal.SIGHUP)

        def done():
            new = self.server.errors[before:]
            return any("event=reloaded" in e or "reload failed" in e for e in new) and new
        return "".join(until(done))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.__exit__()


def test_a_reload_changes_the_log_level(folder, file):
    with Reloaded(folder, file, "log.level: info\n") as running:
        bad = b"GET nonsense\r\n\r\n"

        def refusals():
            with running.server.raw() as connection:
                connection.sendall(bad)
                assert b"400" in connection.recv(1000)
            running.server.get("/healthz")
            return running.server.said().count("request refused")

        assert refusals() == 0
        said = running.reload("log.level: debug\n")
        assert "key=log.level old=info new=debug" in said and f"from={file}:1" in said
        assert until(refusals) > 0
        running.reload("log.level: info\n")
        before = running.server.said().count("request refused")
        assert refusals() == before


def test_a_reload_changes_how_long_a_stop_may_take(folder, file):
    with Reloaded(folder, file, "drain: 60s\n") as running:
        assert "key=drain old=1m new=1ms" in running.reload("drain: 1ms\n")
        connection = running.server.raw()
        running.server.get("/healthz")
        running.server.process.terminate()
        assert running.server.wait() == 0
        connection.close()


def test_what_needs_a_restart_is_named_and_stays(folder, file):
    with Reloaded(folder, file, "shards: 1\ndrain: 2s\n") as running:
        said = running.reload("shards: 4\nnode.id: 9\ndrain: 3s\n")
        for key, old, new in (("shards", 1, 4), ("node.id", 0, 9)):
            assert f'event="setting needs a restart" key={key} old={old} new={new}' in said
        assert "key=drain old=2s new=3s" in said and "changed=1" in said
        said = running.reload("shards: 4\nnode.id: 9\ndrain: 3s\n")
        assert "key=shards old=1" in said, "it is logged again: it still waits"


@pytest.mark.parametrize("text, says", [
    ("drain: 5s\nlog.levle: debug\n", "did you mean log.level?"),
    ("drain: 5s\nlog.level: loud\n", "debug|info|warn"),
    ("drain: 5s\nlog.level: ${NOPE}\n", "unknown environment variable NOPE"),
    ("drain: 5s\n  log: x\n", "invalid YAML"),
])
def test_a_bad_reload_changes_nothing_and_says_so(folder, file, text, says):
    with Reloaded(folder, file, "drain: 1s\n") as running:
        said = running.reload(text)
        assert says in said and "level=error" in said
        assert 'event="reload failed: the old settings stay"' in said
        assert "setting changed" not in said
        assert running.server.get("/healthz").status == 200
        assert "key=drain old=1s new=5s" in running.reload("drain: 5s\n")


GOOD = """# settings
drain: 1s
log: {level: info, format: logfmt}
limits:
  rate: 100
  batch: 500
"""


def hurt(text, rng):
    """Some bytes changed, dropped, doubled or new; or another number, mostly a good one."""
    data = bytearray(text.encode())
    if rng.random() < 0.4:
        digits = [i for i, c in enumerate(data) if chr(c).isdigit()]
        data[rng.choice(digits)] = rng.choice(b"0123456789")
        return bytes(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data))
        part = rng.choice([b"", bytes(rng.randrange(256) for _ in range(2)), data[at:at + 8] * 2,
                           b"\n", b": ", b"- ", b"7", b"${X}", b"*a", b"\t", b"{", b"]"])
        data[at:at + rng.randint(0, 4)] = part
    return bytes(data)


def test_any_file_is_taken_whole_or_not_at_all(folder, file):
    """Fault 43: what is in force is as before, or what a start with that file would have."""
    rng = random.Random(int(os.environ.get("TEST_SEED", "43")))
    seen = {"reloaded": 0, "failed": 0}
    with Reloaded(folder, file, GOOD) as running:
        def in_force():
            found = running.server.get("/v1/admin/config").body
            return {key: row["value"] for key, row in found.items() if row["reload"]}

        for _ in range(60):
            before = in_force()
            text = hurt(GOOD.replace("1s", f"{rng.randint(1, 9)}s"), rng)
            said = running.reload(text)
            if "reload failed" in said:
                assert in_force() == before, text
                seen["failed"] += 1
                continue
            out = run(*running.server.process.args[1:], "--print-config", "--json")
            assert out.returncode == 0, (text, out.stderr)
            started = json.loads(out.stdout)
            assert in_force() == {key: row["value"] for key, row in started.items()
                                  if row["reload"]}, text
            seen["reloaded"] += 1
    assert min(seen.values()) > 5, seen


def test_a_file_that_is_gone_changes_nothing(folder, file):
    with Reloaded(folder, file, "drain: 1s\n") as running:
        file.unlink()
        running.server.process.send_signal(signal.SIGHUP)
        until(lambda: "No such file" in running.server.said())
        assert "changed=0" in running.reload("drain: 1s\n")


def test_a_flag_stays_stronger_in_a_reload(folder, file):
    with Reloaded(folder, file, "drain: 1s\n", "--drain", "2s") as running:
        said = running.reload("drain: 3s\n")
        assert "changed=0" in said and "key=drain" not in said


def test_requests_go_on_through_reloads(folder, file):
    with Reloaded(folder, file, "drain: 1s\n") as running:
        for i in range(20):
            running.server.process.send_signal(signal.SIGHUP)
            running.server.enqueue({"text": str(i)})
        assert len(running.server.dequeue(limit=100)) == 20
