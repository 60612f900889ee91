"""tests/breaks/run, on a project of three lines."""
import shutil
import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).parents[1] / "breaks" / "run"
SCRIPT = """#!/bin/sh
a=1
b=2
[ $a = 1 ] && echo "ok 1 a_is_one" || echo "not ok 1 a_is_one"
[ $b -gt 0 ] && echo "ok 2 b_is_there" || echo "not ok 2 b_is_there"
echo "not ok 3 always_fails"
echo "1..3"
"""
PATCH = """Breaks: a is not one
Rows: -
Test: {test}

--- a/check.sh
+++ b/check.sh
@@ -1,4 +1,4 @@
 #!/bin/sh
-a={old}
+a=5
 b=2
 [ $a = 1 ] && echo "ok 1 a_is_one" || echo "not ok 1 a_is_one"
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "tests/breaks").mkdir(parents=True)
    shutil.copy(RUN, tmp_path / "tests/breaks/run")
    (tmp_path / "check.sh").write_text(SCRIPT)
    (tmp_path / "check.sh").chmod(0o755)
    (tmp_path / "meson.build").write_text(
        "project('p')\ntest('check', find_program('check.sh'), protocol: 'tap')\n")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path


def run(project, **patches):
    for name, text in patches.items():
        (project / f"tests/breaks/{name}.patch").write_text(text)
    done = subprocess.run([project / "tests/breaks/run"], capture_output=True, text=True)
    assert (project / "check.sh").read_text() == SCRIPT, "the tree itself is left alone"
    return done.returncode, done.stdout


def test_a_break_that_its_test_notices_passes(project):
    code, out = run(project, good=PATCH.format(test="check a_is_one", old="1"))
    assert code == 0 and "\nok 1 good" in out and out.endswith("\n1 passed, 0 failed\n"), out


@pytest.mark.parametrize("test, old, why", [
    ("check b_is_there", "1", "b_is_there does not notice"),
    ("check a_is_one b_is_there", "1", "b_is_there does not notice"),
    ("check always_fails", "1", "always_fails fails without the break"),
    ("check nowhere", "1", "nowhere did not run"),
    ("missing a_is_one", "1", "does not build or is unknown"),
    ("check", "1", "name at least one"),
    ("check a_is_one", "3", "the patch does not apply"),
])
def test_any_other_fails_and_says_why(project, test, old, why):
    code, out = run(project, bad=PATCH.format(test=test, old=old))
    assert code == 1 and "\nnot ok 1 bad" in out and why in out, out
    assert out.endswith("\n0 passed, 1 failed\n")


def test_each_patch_is_taken_back_before_the_next(project):
    good = PATCH.format(test="check a_is_one", old="1")
    code, out = run(project, a=good, b=good)
    assert code == 0 and "2 passed, 0 failed" in out, out


def test_a_patch_without_its_head_fails(project):
    code, out = run(project, bad=PATCH.format(test="check a_is_one", old="1")[8:])
    assert code == 1 and 'no line "Breaks:"' in out


def test_every_break_applies_to_the_code_as_it_is():
    """The whole run takes hours; that a patch has lost its place is seen here."""
    root = RUN.parents[2]
    patches = sorted(RUN.parent.glob("*.patch"))
    lost = [p.name for p in patches if subprocess.run(
        ["patch", "--dry-run", "--silent", "--force", "-p1", "-i", p],
        cwd=root, capture_output=True).returncode]
    assert len(patches) > 300 and lost == []
