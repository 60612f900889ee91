"""tools/check-size stops files and functions that are too long."""
import subprocess
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "check-size"


def run(tree, text):
    (tree / "src").mkdir(exist_ok=True)
    (tree / "src/a.c").write_text(text)
    return subprocess.run([TOOL, tree], capture_output=True, text=True)


def function(lines, head="int\nf(void)\n"):
    return head + "{\n" + "\tx();\n" * lines + "}\n"


def test_a_function_may_have_60_lines(tmp_path):
    assert run(tmp_path, function(60)).returncode == 0


def test_a_function_of_61_lines_is_refused_by_name_of_file_and_line(tmp_path):
    done = run(tmp_path, function(3) + function(61))
    assert done.returncode == 1
    assert "src/a.c:10: a function of 61 lines, the limit is 60" in done.stdout


@pytest.mark.parametrize("head", ["TEST(name)\n", "static inline int\ng(int a,\n  int b)\n"])
def test_every_kind_of_function_is_measured(tmp_path, head):
    assert run(tmp_path, function(61, head)).returncode == 1


def test_a_table_may_be_long(tmp_path):
    assert run(tmp_path, "int table[] = {\n" + "\t1,\n" * 200 + "};\n").returncode == 0


def test_a_file_may_have_800_lines(tmp_path):
    assert run(tmp_path, "int x;\n" * 800).returncode == 0


def test_a_file_of_801_lines_is_refused(tmp_path):
    done = run(tmp_path, "int x;\n" * 801)
    assert done.returncode == 1
    assert "src/a.c: 801 lines, the limit is 800" in done.stdout


def test_the_project_passes():
    done = subprocess.run([TOOL], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
