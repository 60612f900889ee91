"""The programs of examples/ that speak to a server, each against the same one. Exit code 0:
what it shows has happened."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
from served import Server  # noqa: E402

NAMES = sorted(p.stem for p in (ROOT / "examples").glob("client_*.c"))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("served") / "data", engine="memory") as server:
        yield server


@pytest.mark.parametrize("name", NAMES)
def test_an_example_against_a_server(server, name, tmp_path):
    host, port = server.address
    done = subprocess.run([Path(os.environ["EXAMPLES"]) / f"example_{name}"], cwd=tmp_path,
                          env={**os.environ, "SLUICE_SERVER": f"{host}:{port}"}, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60)
    assert done.returncode == 0, done.stdout
