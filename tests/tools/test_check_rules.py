"""tools/check-rules: a rule is stated in one place."""
import subprocess
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "check-rules"
STATED = "/*\n * a.h - a.\n *\n *  BOX-1  A box has a lid.\n */\n"


def run(tree, **files):
    (tree / "include").mkdir()
    (tree / "src").mkdir()
    for name, text in files.items():
        (tree / f"src/{name}.h").write_text(text)
    return subprocess.run([TOOL, tree], capture_output=True, text=True, check=False)


def test_a_rule_that_is_stated_once_may_be_named_anywhere(tmp_path):
    done = run(tmp_path, a=STATED, b="/* BOX-1, UTF-8 and SHA-256 */\nint x; /* BOX-1 */\n")
    assert done.returncode == 0
    assert "1 are stated once" in done.stdout


def test_a_rule_that_is_stated_nowhere_is_refused_by_its_place(tmp_path):
    done = run(tmp_path, a=STATED, b="int x; /* BOX-2 */\n")
    assert done.returncode == 1
    assert "src/b.h:1: BOX-2 is stated nowhere" in done.stdout


def test_a_rule_that_is_stated_twice_is_refused_with_both_places(tmp_path):
    done = run(tmp_path, a=STATED, b=STATED)
    assert done.returncode == 1
    assert "src/b.h:4: BOX-1 is stated in src/a.h:4, too" in done.stdout
