"""The examples of docs/lockd.md run when pasted and answer what the page says."""
import re
from pathlib import Path

import test_docs
import test_docs_locks

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/lockd.md").read_text()


def test_the_examples_run(folder, monkeypatch):
    monkeypatch.setattr(test_docs_locks, "OWN",
                        test_docs_locks.OWN | {"message_id", "meta_etag"})
    names = {}
    test_docs.check_page(PAGE, folder, lambda said, real: test_docs_locks.same(said, real, names))
    assert len(names) >= 6


def test_every_route_member_and_code_is_on_the_page():
    sources = [(ROOT / "src/api/lockd" / name).read_text() for name in (
        "lockd.c", "consume.c", "enqueue.c", "settle.c")]
    routes = set(re.findall(r'"(/v1/queue/[^"]+)"', sources[0]))
    assert len(routes) == 10
    for path in routes:
        assert path in PAGE, path
    for member in set(re.findall(r"JSON_FIELD\(\w+, struct state, (\w+)", "".join(sources))):
        assert f"`{member}`" in PAGE or f'"{member}"' in PAGE, member
    for code in set(re.findall(r"LOCKD_([A-Z_]+)", "".join(sources[1:]))):
        row = re.search(rf'X\({code}, *\d+, "(\w+)"', (ROOT / "src/api/lockd/lockd.h").read_text())
        if row:
            assert f"`{row[1]}`" in PAGE, row[1]
