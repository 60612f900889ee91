"""tools/tidy, with a clang-tidy that finds the word "bad"."""
import json
import os
import subprocess
from pathlib import Path

import pytest

TIDY = Path(__file__).parents[2] / "tools" / "tidy"
CLANG_TIDY = """#!/bin/sh
[ "$1" = --version ] && exit
for file; do :; done
echo "${file##*/}" >>"$LOG"
! grep -H bad "$file"
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    for folder in ("src", "tools", "build", "bin"):
        (tmp_path / folder).mkdir()
    (tmp_path / ".clang-tidy").write_text("Checks: all\n")
    (tmp_path / "tools/analyzer.h").write_text("")
    (tmp_path / "bin/clang-tidy").write_text(CLANG_TIDY)
    (tmp_path / "bin/clang-tidy").chmod(0o755)
    (tmp_path / "src/one.h").write_text("int one;\n")
    (tmp_path / "src/one.c").write_text('#include "one.h"\n')
    (tmp_path / "src/two.c").write_text("int two; /* a comment */\n")
    (tmp_path / "build/compile_commands.json").write_text(json.dumps([
        {"directory": str(tmp_path / "build"), "file": f"../{name}.c",
         "command": f"cc -DTARGET={target} -MD -MF x.d -o x.o -c ../{name}.c"}
        for name in ("src/one", "src/two", "tests/other") for target in ("a", "b")]))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    return tmp_path


def tidy(project):
    """(exit code, output, the sources that were checked)"""
    (project / "log").write_text("")
    done = subprocess.run([TIDY, "build"], cwd=project, capture_output=True, text=True)
    assert not done.stderr
    return done.returncode, done.stdout, sorted((project / "log").read_text().split())


def test_each_source_of_src_is_checked_once(project):
    code, out, checked = tidy(project)
    assert (code, checked) == (0, ["one.c", "two.c"]) and "2 sources are clean, 0 are not" in out


def test_a_finding_is_printed_and_found_again(project):
    (project / "src/two.c").write_text("int bad;\n")
    for checked in (["one.c", "two.c"], ["two.c"]):
        code, out, now = tidy(project)
        assert code == 1 and "two.c:int bad;" in out and "1 sources are clean, 1 are not" in out
        assert now == checked


@pytest.mark.parametrize("name, text, again", [
    ("src/one.c", '#include "one.h"\nint more;\n', ["one.c"]),
    ("src/one.h", "int other;\n", ["one.c"]),
    ("src/two.c", "int two; /* another comment */\n", ["two.c"]),
    (".clang-tidy", "Checks: some\n", ["one.c", "two.c"]),
    ("src/new.h", "nothing includes it\n", []),
], ids=["the source", "a header", "a comment", "the checks", "another file"])
def test_a_clean_source_is_checked_again_only_after_a_change(project, name, text, again):
    tidy(project)
    (project / name).write_text(text)
    assert tidy(project)[2] == again
    assert tidy(project)[2] == []
