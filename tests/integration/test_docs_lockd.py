"""The examples of docs/lockd.md run as they stand and answer what the page says."""
import re
import subprocess
from pathlib import Path

import test_docs
import test_docs_locks
from served import Server

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/lockd.md").read_text()


def test_the_examples_run(folder, monkeypatch):
    monkeypatch.setattr(test_docs_locks, "OWN",
                        test_docs_locks.OWN | {"message_id", "meta_etag"})
    names = {}
    with Server(folder) as server:
        for command, said in test_docs.examples(PAGE):
            for name, real in names.items():
                command = command.replace(name, real)
            command = command.replace("127.0.0.1:7171", "%s:%d" % server.address)
            command = command.replace("/tmp/", f"{folder.parent}/")
            done = subprocess.run(["bash", "-euc", command], capture_output=True, text=True,
                                  timeout=60)
            assert done.returncode == 0, (command, done.stderr)
            if said is not None:
                test_docs_locks.same(said, test_docs.json.loads(done.stdout), names)
    assert len(names) >= 6


def test_every_route_member_and_code_is_on_the_page():
    sources = [(ROOT / "src/api" / name).read_text() for name in (
        "lockd.c", "lockd_consume.c", "lockd_enqueue.c", "lockd_settle.c")]
    routes = set(re.findall(r'"(/v1/queue/[^"]+)"', sources[0]))
    assert len(routes) == 10
    for path in routes:
        assert path in PAGE, path
    for member in set(re.findall(r"JSON_FIELD\(\w+, struct state, (\w+)", "".join(sources))):
        assert f"`{member}`" in PAGE or f'"{member}"' in PAGE, member
    for code in set(re.findall(r"LOCKD_([A-Z_]+)", "".join(sources[1:]))):
        row = re.search(rf'X\({code}, *\d+, "(\w+)"', (ROOT / "src/api/lockd.h").read_text())
        if row:
            assert f"`{row[1]}`" in PAGE, row[1]
