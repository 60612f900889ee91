"""The command line as a person meets it: help, errors, exit codes, output."""
import json
import os
import subprocess

import pytest

SLUICE = os.environ["SLUICE"]


def run(*args):
    return subprocess.run([SLUICE, *args], capture_output=True, text=True, timeout=60)


def test_help_lists_every_command_and_version_names_itself():
    out = run("--help")
    assert out.returncode == 0 and out.stderr == ""
    for command in ("demo", "bench"):
        assert command in out.stdout
    assert run("--version").stdout.startswith("sluice ")


@pytest.mark.parametrize("command", ["demo", "bench"])
def test_every_command_has_help_with_examples(command):
    out = run(command, "--help")
    assert out.returncode == 0
    assert "examples:" in out.stdout


@pytest.mark.parametrize(
    "args, says",
    [
        ([], "usage"),
        (["dem"], "did you mean demo?"),
        (["bench"], "missing BENCH"),
        (["bench", "exec", "--jbos", "1"], "did you mean --jobs?"),
        (["bench", "exec", "--jobs"], "--jobs needs a value"),
        (["bench", "exec", "--jobs", "many"], "--jobs: "),
        (["bench", "exec", "--jobs", "0"], "--jobs: "),
        (["bench", "exec", "--json=yes"], "takes no value"),
        (["bench", "exec", "--rounds", "99"], "15 rounds"),
        (["demo", "--for", "20"], "--for: "),
        (["demo", "now"], "unexpected word: now"),
    ],
)
def test_a_wrong_call_says_what_is_wrong_and_exits_2(args, says):
    out = run(*args)
    assert out.returncode == 2
    assert says in out.stderr
    assert out.stdout == ""


def test_bench_prints_json_with_both_sides():
    out = run("bench", "exec", "--rounds", "1", "--jobs", "20000", "--json")
    assert out.returncode == 0, out.stderr
    rows = json.loads(out.stdout)["rows"]
    assert rows[0]["ours"] > 0 and rows[0]["bare"] > 0 and rows[0]["ratio"] > 0


def test_bench_prints_a_table_with_aims():
    out = run("bench", "pqueue", "--rounds", "1", "--jobs", "1000", "--items", "10000")
    assert out.returncode == 0, out.stderr
    assert "push and pop, 10000 items queued" in out.stdout
    assert "\033" not in out.stdout + out.stderr  # no colours where no terminal is


def test_demo_keeps_order_and_ends_by_itself():
    out = run("demo", "--for=500ms")
    assert out.returncode == 0, out.stderr
    assert "out of order 0" in out.stdout.splitlines()[-1]
    assert "\033" not in out.stdout
