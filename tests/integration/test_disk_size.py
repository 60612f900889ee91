"""How much disk a server takes, and a volume that is too small."""
import subprocess
from pathlib import Path

import pytest

from served import SLUICED, Server, until

MIB = 1 << 20


@pytest.fixture
def data(tmp_path):
    return tmp_path / "data"


def used(data):
    """As du counts."""
    return sum(f.stat().st_blocks * 512 for f in [data, *data.rglob("*")])


def prepared(data):
    """The spares are there: nothing more is made ahead."""
    until(lambda: len(list(data.rglob("spare-*"))) >= 3 and not list(data.rglob("*.tmp")))


def test_an_empty_server_takes_at_most_8_mib(data):
    with Server(data, engine="log") as server:
        prepared(data)
        assert used(data) <= 8 * MIB
        server.restart()
        prepared(data)
        assert used(data) <= 8 * MIB


def test_a_thousand_small_messages_take_at_most_16_mib(data):
    with Server(data, engine="log") as server:
        for _ in range(10):
            server.enqueue(*({"text": "x" * 1000} for _ in range(100)))
        prepared(data)
        assert used(data) <= 16 * MIB
        for _ in range(10):
            for message in server.dequeue(limit=100):
                server.ack(message)
        assert used(data) <= 16 * MIB


def test_a_payload_and_a_call_that_are_larger_than_a_segment(data):
    with Server(data, engine="log") as server:
        large = "x" * (MIB - 100)  # the most that is kept in the log, not in a file
        many = ["y" * 100_000 + str(i) for i in range(100)]
        server.enqueue({"text": large})
        server.enqueue(*({"text": text} for text in many))
        server.restart("kill")
        assert server.stats()["total"] == 101
        got = []
        while messages := server.dequeue(limit=100):
            got += [m["payload"] for m in messages]
        assert len(got) == 101


@pytest.fixture
def volume(request, tmp_path):
    """A file system of 6 MiB, or what the test says; the process that keeps it, and where it is."""
    size = getattr(request, "param", 6) * MIB
    mount = tmp_path / "disk"
    mount.mkdir()
    keeper = subprocess.Popen(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
         f"mount -t tmpfs -o size={size} none {mount} && echo ready && exec sleep 600"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if keeper.stdout.readline() != "ready\n":
        keeper.wait()
        pytest.skip("no user namespaces here")
    yield keeper, mount
    keeper.kill()
    keeper.wait()


def start(volume, *options):
    keeper, mount = volume
    return subprocess.run(
        ["nsenter", "-t", str(keeper.pid), "-U", "-m", "--preserve-credentials", SLUICED,
         "--data", str(mount / "data"), "--engine", "log", "--listen", "127.0.0.1:0", *options],
        capture_output=True, text=True, timeout=60)


def test_a_volume_that_is_too_small_is_refused_with_the_sizes(volume):
    """By a check, too, also while the folder is not there."""
    keeper, mount = volume
    inside = Path(f"/proc/{keeper.pid}/root{mount}/data")
    for more, code in (["--check-config"], 2), ([], 1):
        assert not inside.exists()
        done = start(volume, *more)
        assert done.returncode == code, (done.returncode, done.stderr)
        assert "KiB free; 1 new log needs at least 8192 KiB" in done.stderr, done.stderr
        assert str(mount / "data") in done.stderr
    assert not list(inside.glob("*.log"))


@pytest.mark.parametrize("volume", [14], indirect=True)
def test_a_volume_without_room_for_all_shards_is_left_as_it_is(volume):
    """Another number of shards may be tried; --check-config says the same."""
    keeper, mount = volume
    inside = Path(f"/proc/{keeper.pid}/root{mount}/data")
    inside.mkdir()
    for more, code in ([], 1), (["--check-config"], 2):
        done = start(volume, "--shards", "3", *more)
        assert done.returncode == code, (done.returncode, done.stderr)
        assert "KiB free; 3 new logs need at least 24576 KiB" in done.stderr, done.stderr
        assert not list(inside.iterdir())
    assert start(volume, "--shards", "1", "--check-config").returncode == 0


def warnings(server):
    return {w["warning"]: w for w in server.get("/readyz").body.get("warnings", [])}


def test_a_disk_with_too_little_room_is_a_warning(data):
    """No disk is quite empty."""
    with Server(data, "--disk-warn", "100", engine="log") as server:
        answer = server.get("/readyz")
        assert answer.status == 200 and answer.body["status"] == "ready"
        assert warnings(server)["disk_space"]["name"] == "default"
        assert "% of the disk are free" in warnings(server)["disk_space"]["message"]
    with Server(data, "--disk-warn", "0", engine="log") as server:
        assert "disk_space" not in warnings(server)
    with Server(data, "--disk-warn", "100", engine="memory") as server:
        assert warnings(server) == {}
