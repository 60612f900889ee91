"""Large payloads and the command line: pushed and pulled, checked, salvaged, backed up."""
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "integration"))
from served import Server  # noqa: E402

SLUICE = os.environ["SLUICE"]
LIMIT = 120
SIZE = 5 << 20


def sluice(*args, code=0):
    done = subprocess.run([SLUICE, *map(str, args)], capture_output=True, timeout=LIMIT)
    assert done.returncode == code, (args, done.stdout[-300:], done.stderr)
    return done


@pytest.fixture
def payload(tmp_path):
    path = tmp_path / "payload"
    path.write_bytes(random.Random(1).randbytes(SIZE))
    return path


@pytest.fixture
def server(tmp_path):
    with Server(tmp_path / "data") as s:
        yield s


@pytest.fixture
def stopped(server, payload):
    """The folder of a server that was stopped: one large message, one small."""
    at = ["--server", "{}:{}".format(*server.address)]
    sluice("push", "q", "--file", payload, *at)
    sluice("push", "q", "small", *at)
    server.stop()
    return server.folder


def test_a_large_file_is_pushed_and_pulled(server, payload):
    at = ["--server", "{}:{}".format(*server.address)]
    sluice("push", "q", "--file", payload, *at)
    assert sluice("pull", "q", "--ack", *at).stdout == payload.read_bytes()


def test_check_reads_payload_files_and_names_what_is_wrong(stopped):
    assert b"1 in separate files" in sluice("admin", "journal", "check", stopped).stdout
    assert b"file=1" in sluice("admin", "journal", "dump", stopped).stdout
    path = stopped / "payloads" / "00000001"
    data = bytearray(path.read_bytes())
    data[4096 + 3 * 65536 + 9] ^= 1
    path.write_bytes(data)
    said = sluice("admin", "journal", "check", stopped, code=1).stderr.decode()
    assert "1 of 1 payload files: payloads/00000001: bad block at 200704 (message " in said
    path.unlink()
    said = sluice("admin", "journal", "check", stopped, code=1).stderr.decode()
    assert "payloads/00000001 is missing (message " in said


def test_salvage_brings_payload_files_along(stopped, payload, tmp_path):
    out = sluice("admin", "journal", "salvage", stopped, tmp_path / "saved").stdout.decode()
    assert "1 files copied, 0 missing or damaged" in out
    with Server(tmp_path / "saved") as server:
        at = ["--server", "{}:{}".format(*server.address)]
        assert sluice("pull", "q", *at).stdout == payload.read_bytes()


def test_salvage_says_which_payloads_are_lost(stopped, tmp_path):
    (stopped / "payloads" / "00000001").unlink()
    out = sluice("admin", "journal", "salvage", stopped, tmp_path / "saved").stdout.decode()
    assert "0 files copied, 1 missing or damaged; the first: payloads/00000001 is missing" in out
    with Server(tmp_path / "saved") as server:
        at = ["--server", "{}:{}".format(*server.address)]
        sluice("pull", "q", *at, code=3)  # the large one is set aside
        assert sluice("pull", "q", *at).stdout == b"small"


def test_a_backup_has_the_payload_files(server, payload, tmp_path):
    at = ["--server", "{}:{}".format(*server.address)]
    sluice("push", "q", "--file", payload, *at)
    sluice("admin", "backup", "--out", tmp_path / "backup.tar", *at)
    sluice("pull", "q", "--ack", *at)
    sluice("admin", "restore", tmp_path / "backup.tar", "--data", tmp_path / "restored")
    with Server(tmp_path / "restored") as restored:
        at = ["--server", "{}:{}".format(*restored.address)]
        assert sluice("pull", "q", *at).stdout == payload.read_bytes()
