"""The examples of docs/api.md run as they stand and answer what the page says.

A block of sh is run; a block of json behind it is the answer. What no two runs share
(ids, tokens, moments) need only be of the same kind; later blocks that name an id of
the page get the real one.
"""
import json
import re
import subprocess
from pathlib import Path

import pytest

from served import Server

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/api.md").read_text()
BLOCK = re.compile(r"^```(sh|json)\n(.*?)^```", re.M | re.S)
OWN = {"id", "uid", "receipt", "lease_id", "fencing_token"}
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")


def examples(page=PAGE):
    """(command, answer) in order; the answer is a JSON value or None."""
    blocks = BLOCK.findall(page)
    for i, (kind, text) in enumerate(blocks):
        if kind == "sh":
            answer = blocks[i + 1] if i + 1 < len(blocks) else ("sh", "")
            yield text, json.loads(answer[1]) if answer[0] == "json" else None


def is_id(value):
    return isinstance(value, int) and value > 2**53


def compare(said, real, names, path=""):
    """The page and the truth; names learns which real value stands for which."""
    assert type(said) is type(real), (path, said, real)
    if isinstance(said, dict):
        assert list(said) == list(real), path
        for key in said:
            if key in OWN:
                names[str(said[key])] = str(real[key])
            else:
                compare(said[key], real[key], names, f"{path}.{key}")
    elif isinstance(said, list):
        assert len(said) == len(real), (path, real)
        for a, b in zip(said, real):
            compare(a, b, names, path + "[]")
    elif is_id(said):
        names[str(said)] = str(real)
    elif isinstance(said, str) and MOMENT.match(said):
        assert MOMENT.match(real), (path, real)
    else:
        assert said == real, path


def test_the_examples_of_the_api_page_run(folder):
    names = {}
    with Server(folder) as server:
        for command, said in examples():
            for name, real in names.items():
                command = command.replace(name, real)
            command = command.replace("127.0.0.1:7171", "%s:%d" % server.address)
            done = subprocess.run(["bash", "-euc", command], capture_output=True, text=True,
                                  timeout=60)
            assert done.returncode == 0, (command, done.stderr)
            if said is not None:
                compare(said, json.loads(done.stdout), names)
    assert len(names) >= 8


def test_the_first_minute_with_curl_runs_as_pasted(folder):
    readme = (ROOT / "README.md").read_text()
    block, = (text for kind, text in BLOCK.findall(readme) if "7171/enqueue" in text)
    with Server(folder) as server:
        done = subprocess.run(["bash", "-euc", block.replace("localhost:7171", "%s:%d" % server.address)],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        acked = json.loads(done.stdout[done.stdout.rindex("{"):])
        assert acked["status"] == 200, done.stdout
        assert server.get("/stats", namespace="default", topic="mail").body["total"] == 0


def test_every_route_is_on_the_page():
    tables = "".join((ROOT / f"src/api/{name}.c").read_text() for name in ("flat", "admin"))
    routes = re.findall(r'\{ "(\w+)",\s*"(/[^"]+)"', tables)
    assert len(routes) >= 39
    for _, path in routes:
        assert re.search(rf"{path}\b", PAGE), path


@pytest.mark.parametrize("source, pattern", [
    ("flat_enqueue.c", r'FIELD\("(\w+)"'), ("flat_settle.c", r'FIELD\("(\w+)"'),
    ("flat_policy.c", r'FIELD\("(\w+)"'), ("flat_claim.c", r"PARAM\(\w+, struct \w+, (\w+)"),
])
def test_every_member_is_on_the_page(source, pattern):
    names = re.findall(pattern, (ROOT / "src/api" / source).read_text())
    assert names
    for name in names:
        assert f"`{name}`" in PAGE, name
