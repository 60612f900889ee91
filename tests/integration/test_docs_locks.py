"""The examples of docs/locks.md run as they stand and answer what the page says."""
import re
import subprocess
from pathlib import Path

import test_docs
from served import Server

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/locks.md").read_text()
OWN = {"lease_id", "txn_id", "fencing_token", "correlation_id", "state_etag", "new_state_etag"}


def same(said, real, names):
    """As the page has it, but for what no two runs share."""
    assert list(said) == list(real), (said, real)
    for name, value in said.items():
        if name in OWN:
            names[str(value)] = str(real[name])
        elif name.endswith("_unix"):
            assert isinstance(real[name], int)
        else:
            assert value == real[name], (name, value, real[name])


def test_the_examples_run(folder):
    names = {}
    with Server(folder) as server:
        for command, said in test_docs.examples(PAGE):
            for name, real in names.items():
                command = command.replace(name, real)
            command = command.replace("127.0.0.1:7171", "%s:%d" % server.address)
            command = command.replace("/tmp/", f"{folder.parent}/")
            done = subprocess.run(["bash", "-euc", command], capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, (command, done.stderr)
            if said is not None:
                same(said, test_docs.json.loads(done.stdout), names)
    assert len(names) >= 6


def test_every_route_and_code_is_on_the_page():
    table = (ROOT / "src/api/lockd_state.c").read_text()
    routes = set(re.findall(r'"(/v1/[^"]+)"', table))
    assert len(routes) >= 16
    for path in routes:
        assert path in PAGE, path
    for member in re.findall(r"JSON_FIELD\(\w+, struct lockd_lock, (\w+)",
                             (ROOT / "src/api/lockd_lock.c").read_text()):
        assert f"`{member}`" in PAGE or f'"{member}"' in PAGE, member
