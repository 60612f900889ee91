"""tools/requirements: which rows does no test name yet?

The rows used here are made up (numbers over 900), so that this file proves none.
"""
import json
import subprocess
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "requirements"
DOCUMENT = """# Requirements

| Id | Kind | Item | Acceptance test |
|---|---|---|---|
| SQ-901 | G | order is kept | watch it |
| SQ-902 | G | nothing is lost | count it |
| SQ-F901 | F | survives a restart | kill it |
| X-901 | SQ | permanent errors | once |
"""


@pytest.fixture
def tree(tmp_path):
    for folder in ("docs", "tests/unit", "tests/breaks"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "docs/requirements.md").write_text(DOCUMENT)
    return tmp_path


def run(tree, *args):
    return subprocess.run([TOOL, "--root", tree, *args], capture_output=True, text=True)


def test_lists_every_row_by_group_while_no_test_names_one(tree):
    done = run(tree)
    assert done.returncode == 0
    assert "SQ        2/2 missing\n  SQ-901  order is kept\n" in done.stdout
    assert "SQ-F      1/1 missing\n  SQ-F901 survives a restart\n" in done.stdout


def test_a_row_named_in_a_test_is_proven(tree):
    (tree / "tests/unit/test_a.c").write_text("\n/* SQ-901, (SQ-902): order */\n")
    done = run(tree, "--missing", "SQ")
    assert (done.returncode, done.stdout) == (0, "SQ        0/2 missing\n")
    assert "SQ-901  tests/unit/test_a.c:2\n" in run(tree, "--proven").stdout


def test_missing_exits_1_and_prints_the_rows(tree):
    (tree / "tests/unit/test_a.c").write_text("/* SQ-901 */")
    done = run(tree, "--missing", "SQ,X")
    assert done.returncode == 1
    assert "SQ-902" in done.stdout and "X-901" in done.stdout
    assert "SQ-901" not in done.stdout and "SQ-F901" not in done.stdout


@pytest.mark.parametrize("text", ["SQ-9011", "ASQ-901", "SQ-90", "SQ_901", "SQ-901b"])
def test_only_a_whole_word_counts(tree, text):
    (tree / "tests/unit/test_a.c").write_text(f"/* {text} */")
    assert "SQ-901 " in run(tree, "--missing", "SQ").stdout


@pytest.mark.parametrize("name", ["breaks/a.breaks", "breaks/run", "unit/notes.md"])
def test_breaks_and_documents_prove_nothing(tree, name):
    (tree / "tests" / name).write_text("SQ-901")
    assert "SQ-901 " in run(tree, "--missing", "SQ").stdout


def test_json_has_the_same(tree):
    (tree / "tests/unit/test_a.c").write_text("/* SQ-901 */")
    groups = {g["group"]: g for g in json.loads(run(tree, "--json").stdout)["groups"]}
    assert groups["SQ"] == {
        "group": "SQ",
        "total": 2,
        "missing": {"SQ-902": "nothing is lost"},
        "proven": {"SQ-901": ["tests/unit/test_a.c:1"]},
    }


def test_an_unknown_group_is_refused_with_the_list(tree):
    done = run(tree, "--missing", "SQ,QQ")
    assert done.returncode == 2
    assert 'no group "QQ"; there are: SQ, SQ-F, LQ' in done.stderr


def test_help_has_examples(tree):
    assert "tools/requirements --missing SQ,PW" in run(tree, "--help").stdout


def test_reads_every_row_of_the_project():
    text = subprocess.run([TOOL, "--json"], capture_output=True, text=True).stdout
    document = (TOOL.parents[1] / "docs/requirements.md").read_text()
    rows = [line for line in document.splitlines() if line.startswith("| ")]
    tables = sum(line.startswith("| Id |") for line in rows)
    assert sum(g["total"] for g in json.loads(text)["groups"]) == len(rows) - tables
