"""What takes long with the lockd dialect: a gigabyte, and the silence of a watch."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "integration"))

from lockd import Client  # noqa: E402
from served import Server  # noqa: E402
from test_lockd_stream import MIB, Events, passes  # noqa: E402


def test_a_gigabyte_passes_and_memory_stays_flat(tmp_path):
    """LQ-16"""
    with Server(tmp_path / "data") as server:
        assert passes(server, 1024 * MIB) < 16 * MIB


def test_a_watch_without_events_is_kept_alive(tmp_path):
    with Server(tmp_path / "data", engine="memory") as server:
        client = Client(server.address, queue="q")
        events = Events(client)
        assert events.next() == (False, None)
        for _ in range(2):
            assert events.answer.readline() == b": keepalive\n"
            assert events.answer.readline() == b"\n"
        client.enqueue(payload=b"x")
        assert events.next()[0]
        events.connection.close()
