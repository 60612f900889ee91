"""Every block of sh of README.md and docs/*.md runs when it is pasted, or is listed here with the reason.

The blocks of a page run in one shell, in the order of the page, in a folder of their own, with the
programs of this build in PATH. tests/integration/pasted.py says what is replaced. Pages that have tests
of their own for what is answered are run here, too: none is left out by mistake.
"""
import os
import re
import shutil
import socket
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
import pasted  # noqa: E402
from served import Server  # noqa: E402

BIN = Path(os.environ["SLUICE"]).parent
PAGES = {path.stem: path for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
         if pasted.shell_blocks(path.read_text())}

# What cannot run in a test: how a line of the block begins, and why the block is left out.
NOT_HERE = {
    "make run": "builds into the tree and serves until it is stopped",
    "sudo make install": "needs root; tests/install installs into a folder and compiles the programs",
    "podman build": "needs podman and the network; tests/tools/test_deploy.py reads the Containerfile",
    "make bench-stores": "measures for some minutes",
    "make bench-cluster": "the same",
    "make peers": "installs other queues and measures for a quarter of an hour",
}
# Pages that start servers themselves, at addresses of the page.
OWN_SERVERS = ["beanstalkd", "cluster", "redis", "security", "sharding", "stores", "tls"]
SEVERAL = ("7181", "7182", "7183")  # ports of servers that share a store


def reason(block):
    return next((why for begins, why in NOT_HERE.items() if re.search(rf"^{re.escape(begins)}\b", block, re.M)), None)


def free_address():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return "%s:%d" % sock.getsockname()


def own_addresses(ports=("7171", "7172", "7443", "6379", "11300", *SEVERAL)):
    """Of what a page starts. A port alone is replaced, too: a page may say $port."""
    found = {}
    for port in ports:
        address = free_address()
        found[f"127.0.0.1:{port}"] = address
        found[f"localhost:{port}"] = "localhost:" + address.split(":")[1]
        found[port] = address.split(":")[1]
    return found


@pytest.fixture
def place(tmp_path):
    """A folder with what pages suppose to be there: a build, and a file of settings."""
    (tmp_path / "build").symlink_to(BIN)
    (tmp_path / "sluice.yaml").write_text("log.level: info\n")
    return tmp_path


@pytest.mark.parametrize("name", PAGES)
def test_every_block_runs_when_it_is_pasted(place, monkeypatch, name):
    if name == "redis" and not shutil.which("redis-server"):
        pytest.skip("no redis-server")
    texts = [text for text in pasted.shell_blocks(PAGES[name].read_text()) if not reason(text)]
    if name in OWN_SERVERS:
        addresses = own_addresses()
        monkeypatch.setenv("SLUICE_SERVER", addresses["127.0.0.1:7171"])
        assert len(pasted.run(texts, place, addresses, [BIN])) == len(texts) > 0
        return
    with Server(place / "served") as server:
        address = "%s:%d" % server.address
        monkeypatch.setenv("SLUICE_SERVER", address)
        addresses = {"127.0.0.1:7171": address, "localhost:7171": address, **own_addresses(SEVERAL)}
        assert len(pasted.run(texts, place, addresses, [BIN])) == len(texts)


def test_the_list_of_what_is_left_out_is_short_and_needed():
    left_out = [text for path in PAGES.values() for text in pasted.shell_blocks(path.read_text()) if reason(text)]
    for begins in NOT_HERE:
        assert any(re.search(rf"^{re.escape(begins)}\b", text, re.M) for text in left_out), begins
    assert len(NOT_HERE) <= 6


def test_no_block_needs_an_id_of_another_run():
    """Ids, receipts and tokens are in shell variables."""
    for path in PAGES.values():
        for text in pasted.shell_blocks(path.read_text()):
            assert not re.search(r"\b\d{18}\b|\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-|\bAQ[\w-]{20,}", text), text


def test_commands_stand_in_blocks_that_a_test_runs():
    """Those are sh here, and console in test_docs_cli.py."""
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for kind, text in pasted.blocks(path.read_text()):
            if kind not in ("sh", "console"):
                assert not re.search(r"^(sluice|sluiced|curl) [a-z-]", text, re.M), (path, text)


def test_a_worker_of_three_servers_goes_on_when_one_is_killed(place):
    """LQ-82, SH-F6: as the README says."""
    texts = [text for text in pasted.shell_blocks((ROOT / "README.md").read_text()) if SEVERAL[0] in text]
    printed = "".join(pasted.run(texts, place, own_addresses(SEVERAL)))
    assert "sent a letter\n" in printed and "sent another letter\n" in printed, printed


def test_the_first_minute_with_curl_leaves_nothing_behind(place):
    block, = (text for text in pasted.shell_blocks((ROOT / "README.md").read_text()) if "7171/enqueue" in text)
    with Server(place / "served") as server:
        printed, = pasted.run([block], place, {"localhost:7171": "%s:%d" % server.address})
        assert '"status":200' in printed.splitlines()[-1], printed
        assert server.get("/stats", namespace="default", topic="mail").body["total"] == 0
