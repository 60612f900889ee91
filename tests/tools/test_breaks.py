"""tests/breaks/run, on a project of one script, and on one of a C file."""
import shutil
import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).parents[1] / "breaks" / "run"
SCRIPT = """#!/bin/sh
set_a()
{
	a=1
	b=1
}

set_b()
{
	b=2
}

set_a
set_b
[ $a = 1 ] && echo "ok 1 a_is_one" || echo "not ok 1 a_is_one"
[ $b -gt 0 ] && echo "ok 2 b_is_there" || echo "not ok 2 b_is_there"
echo "not ok 3 always_fails"
echo "1..3"
"""
GOOD = """name: good
what: a is five
test: check a_is_one
in: set_a
-a=1
+a=5
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "tests/breaks").mkdir(parents=True)
    for name in ("run", "weave.py"):
        shutil.copy(RUN.parent / name, tmp_path / "tests/breaks" / name)
    (tmp_path / "src").mkdir()
    (tmp_path / "src/check.sh").write_text(SCRIPT)
    (tmp_path / "src/check.sh").chmod(0o755)
    (tmp_path / "tests/check.py").write_text("a_is_one b_is_there always_fails")
    (tmp_path / "meson.build").write_text(
        "project('p')\ntest('check', find_program('src/check.sh'), protocol: 'tap')\n")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path


def run(project, entries, *args):
    (project / "tests/breaks/some.breaks").write_text(entries)
    done = subprocess.run([project / "tests/breaks/run", *args], capture_output=True, text=True)
    assert (project / "src/check.sh").read_text() == SCRIPT, "the tree itself is left alone"
    assert not done.stderr
    return done.returncode, done.stdout


def test_a_break_that_its_test_notices_passes(project):
    code, out = run(project, GOOD)
    assert code == 0 and "1/1 good ... noticed" in out and "1 noticed, 0 not noticed" in out, out


@pytest.mark.parametrize("old, new, why", [
    ("check a_is_one", "check b_is_there", "b_is_there does not notice"),
    ("check a_is_one", "check a_is_one b_is_there", "b_is_there does not notice"),
    ("test:", "test: check b_is_there\ntest:", "b_is_there does not notice"),
    ("a_is_one", "always_fails", "always_fails fails without the break"),
    ("a_is_one", "nowhere", "nowhere did not run"),
    ("check", "missing", "unknown test: missing"),
    ("-a=1", "-a=3", "the text is there 0 times"),
    ("-a=1", "-=1", "the text is there 2 times"),
    ("-a=1\n", "", "no text to find"),
    ("set_a", "set_c", "no definition of set_c"),
    ("set_a", "set_a\nfile: other.sh", "no definition of set_a in other.sh"),
])
def test_any_other_fails_and_says_why(project, old, new, why):
    code, out = run(project, GOOD.replace(old, new))
    assert code == 1 and "1/1 good ... NOT NOTICED" in out and why in out, out
    assert "0 noticed, 1 not noticed" in out


@pytest.mark.parametrize("old, new, why", [
    ("name: good\n", "", 'no line "name:"'),
    ("what: a is five\n", "", 'no line "what:"'),
    ("test: check a_is_one\n", "", 'no line "test:"'),
    (" a_is_one", "", "name at least one of its points"),
    ("in: set_a\n-a=1\n+a=5\n", "", 'no line "in:"'),
    ("in:", "build: quick\nin:", "invalid build: quick"),
    ("in:", "where:", "unknown line: where: set_a"),
    ("+a=5\n", "+a=5\n\n" + GOOD, "two breaks with name good"),
    ("a_is_one", "nowhere", "no test nowhere"),
])
def test_a_malformed_entry_is_refused(project, old, new, why):
    code, out = run(project, GOOD.replace(old, new), "--check")
    assert code == 1 and why in out, out


@pytest.mark.parametrize("edit", [
    "in: set_a\n-a=1 b=1\n+a=5\n+\tb=1",
    "in: set_a\n-\ta=1",
    "in: set_a\n-b=1\n+b=1\nin: set_b\n-b=2\n+b=2; a=5",
    "in: check.sh\nfile: check.sh\n-set_a\n-set_b\n+set_b",
], ids=["several lines", "nothing instead", "two edits", "a whole file"])
def test_an_edit_may_be(project, edit):
    code, out = run(project, GOOD.split("in:")[0] + edit)
    assert code == 0, out


def test_each_break_is_taken_back_before_the_next(project):
    code, out = run(project, GOOD + "\n" + GOOD.replace("good", "next"), "--jobs", "1")
    assert code == 0 and "2 noticed, 0 not noticed" in out, out


def test_some_can_be_chosen(project):
    entries = "\n".join(GOOD.replace("good", name) for name in ("one", "two", "three"))
    log = project / "log"
    log.write_text("1/2 one ... noticed (0 s)\n2/2 two ... NOT NOTICED (0 s)\n")
    for args, names in [
            (["two"], "two"), (["chec"], "one two three"), (["--after", log], "two three")]:
        code, out = run(project, entries, *args)
        assert code == 0 and {line.split()[1] for line in out.splitlines()[:-2]} == \
            set(names.split()), out
    assert run(project, entries, "four") == (1, "no such break: four\n")
    assert run(project, entries, "--list", "two") == (0, "two: a is five\n")


# ---- Breaks that share a build ----

PROGRAM = """#include <stdio.h>

static int given;

static int
add(int a, const int b[static 1], int (*f)(int))
{
	return f(a) + *b;
}

static void
take(int n)
{
	given = n;
}

static int
same(int n)
{
	return n > 9 ? same == NULL : n;
}

static const int table[] = {
	1,
	2,
};

int
main(void)
{
	take(table[0]);
	printf("%s 1 sums\\n", add(table[1], &given, same) == 3 ? "ok" : "not ok");
	printf("ok 2 always\\n1..2\\n");
	return 0;
}
"""
EDITS = {
    "add": ("*b", "*b + {}"),
    "take": ("= n;", "= n + {};"),
    "same": (": n", ": n + {}"),
}


@pytest.fixture
def program(project):
    (project / "src/check.sh").unlink()
    (project / "src/check.c").write_text(PROGRAM)
    (project / "tests/check.py").write_text("sums always")
    (project / "meson.build").write_text(
        "project('p', 'c')\nexe = executable('check', 'src/check.c', include_directories: 'src')\n"
        "test('check', exe, protocol: 'tap')\n")
    return project


def entry(name, where, old, new, point="sums"):
    return f"name: {name}\nwhat: w\ntest: check {point}\nin: {where}\n-{old}\n+{new}\n"


def weave_many(program, *more):
    entries = [entry(f"{where}-{i}", where, old, new.format(i))
               for where, (old, new) in EDITS.items() for i in range(1, 8)]
    (program / "tests/breaks/some.breaks").write_text("\n".join([*entries, *more]))
    done = subprocess.run([program / "tests/breaks/run", "--keep", program / "kept", "--jobs", "2"],
                          capture_output=True, text=True)
    assert (program / "src/check.c").read_text() == PROGRAM, "the tree itself is left alone"
    assert not done.stderr
    return done.returncode, done.stdout


def test_breaks_of_functions_share_a_build(program):
    code, out = weave_many(program)
    assert code == 0 and "21 noticed, 0 not noticed" in out, out
    assert not (program / "kept/0").exists(), "none was planted alone"


def test_what_cannot_be_woven_is_planted_alone(program):
    code, out = weave_many(program, entry("row", "table", "2", "3"))
    assert code == 0 and "22 noticed" in out and (program / "kept/0").exists(), out


def test_a_file_that_does_not_compile_woven_is_planted_alone(program):
    code, out = weave_many(program, entry("nonsense", "add", "*b", "nothing"))
    assert code == 1 and "21 noticed, 1 not noticed" in out and "does not build" in out, out


def test_a_woven_break_that_no_test_notices_is_a_failure(program):
    code, out = weave_many(program, entry("blind", "add", "*b", "*b + 1", point="always"))
    assert code == 1 and "21 noticed, 1 not noticed" in out, out
    assert "always does not notice" in out


def test_every_break_finds_its_place():
    """The whole run takes long; that a break has lost its place is seen here."""
    done = subprocess.run([RUN, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert int(done.stdout.split()[0]) > 300
