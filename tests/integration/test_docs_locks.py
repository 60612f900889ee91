"""The examples of docs/locks.md run when pasted and answer what the page says."""
import re
from pathlib import Path

import test_docs

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
    test_docs.check_page(PAGE, folder, lambda said, real: same(said, real, names))
    assert len(names) >= 6


def test_every_route_and_code_is_on_the_page():
    table = (ROOT / "src/api/lockd/lockd.c").read_text()
    routes = set(re.findall(r'"(/v1/(?!queue/)[^"]+)"', table))
    assert len(routes) >= 16
    for path in routes:
        assert path in PAGE, path
    for member in re.findall(r"JSON_FIELD\(\w+, struct lockd_lock, (\w+)",
                             (ROOT / "src/api/lockd/lock.c").read_text()):
        assert f"`{member}`" in PAGE or f'"{member}"' in PAGE, member
