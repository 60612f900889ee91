"""The examples of docs/api.md run when pasted and answer what the page says.

Blocks of sh run in one shell; a block of json behind one is its answer. What no two runs
share (ids, tokens, moments) need only be of the same kind.
"""
import json
import re
from pathlib import Path

import pytest

import pasted
from served import ENGINE, Server

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/api.md").read_text()
BLOCK = re.compile(r"^```(sh|json)\n(.*?)^```", re.M | re.S)
OWN = {"version", "id", "uid", "receipt", "lease_id", "fencing_token"}
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")


def answers(page):
    """What the page says that each block of sh answers: a JSON value, or None."""
    blocks = BLOCK.findall(page)
    for i, (kind, _) in enumerate(blocks):
        if kind == "sh":
            answer = blocks[i + 1] if i + 1 < len(blocks) else ("sh", "")
            yield json.loads(answer[1]) if answer[0] == "json" else None


def check_page(page, folder, compare_):
    """Paste its examples; compare_ looks at every answer that the page shows."""
    texts = pasted.shell_blocks(page)
    alone = {i for i, text in enumerate(texts) if ENGINE == "forwarded" and "/v1/admin/backup" in text}  # of the asked server
    place = folder.parent / "pasted"
    place.mkdir()
    with Server(folder) as server:
        printed = pasted.run(["true" if i in alone else text for i, text in enumerate(texts)], place,
                             {"127.0.0.1:7171": "%s:%d" % server.address})
    for i, (said, real) in enumerate(zip(answers(page), printed, strict=True)):
        if said is not None and i not in alone:
            compare_(said, json.loads(real))


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
    check_page(PAGE, folder, lambda said, real: compare(said, real, names))
    assert len(names) >= 8


def test_every_route_is_on_the_page():
    tables = "".join((ROOT / f"src/api/{name}/{name}.c").read_text() for name in ("flat", "admin"))
    routes = re.findall(r'\{ "(\w+)",\s*"(/[^"]+)"', tables)
    assert len(routes) >= 39
    for _, path in routes:
        assert re.search(path if path.endswith("/") else rf"{path}\b", PAGE), path


@pytest.mark.parametrize("source, pattern", [
    ("form/put.c", r'FIELD\("(\w+)"'), ("api/flat/settle.c", r'FIELD\("(\w+)"'),
    ("api/flat/policy.c", r'(?:ROW\("|FIELD\(\w+, struct \w+, )(\w+)'), ("api/flat/claim.c", r"PARAM\(\w+, struct \w+, (\w+)"),
])
def test_every_member_is_on_the_page(source, pattern):
    names = re.findall(pattern, (ROOT / "src" / source).read_text())
    assert names
    for name in names:
        assert f"`{name}`" in PAGE, name
