"""A payload of a gigabyte passes in both directions while the server's memory stays flat."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "integration"))

from served import Server  # noqa: E402
from test_lockd_stream import MIB, passes  # noqa: E402


def test_a_gigabyte_passes_and_memory_stays_flat(tmp_path):
    """LQ-16"""
    with Server(tmp_path / "data") as server:
        assert passes(server, 1024 * MIB) < 16 * MIB
