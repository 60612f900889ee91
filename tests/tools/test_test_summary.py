"""tools/test-summary counts what meson ran."""
import json
import subprocess
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "test-summary"


def log(folder, *runs):
    path = folder / "meson-logs" / "testlog.json"
    path.parent.mkdir(parents=True)
    path.write_text("".join(
        json.dumps({"name": name, "result": result, "stdout": out}) + "\n"
        for name, result, out in runs))
    return folder


def run(*folders):
    return subprocess.run([TOOL, *folders], capture_output=True, text=True)


def test_adds_up_the_lines_of_every_folder(tmp_path):
    a = log(tmp_path / "a", ("err", "OK", "# ok then\nok 1 one\nok 2 two\n1..2\n"))
    b = log(tmp_path / "b", ("err", "OK", "ok 1 one\n1..1\n"))
    done = run(a, b)
    assert (done.returncode, done.stdout) == (0, "3 passed, 0 failed\n")


def test_a_program_without_tap_counts_as_one(tmp_path):
    a = log(tmp_path / "a", ("example", "OK", "hello\n"), ("other", "SKIP", ""))
    assert run(a).stdout == "1 skipped\n1 passed, 0 failed\n"


def test_what_was_skipped_did_not_pass(tmp_path):
    a = log(tmp_path / "a", ("err", "OK", "ok 1 one # SKIP no disk\nok 2 two\n1..2\n"))
    assert run(a).stdout == "1 skipped\n1 passed, 0 failed\n"


def test_names_what_failed_and_says_why(tmp_path):
    out = "# fine\nok 1 one\n# a.c:7: want 1\nnot ok 2 two\n1..2\n"
    a = log(tmp_path / "a", ("err", "FAIL", out))
    done = run(a)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"failed: {a}: err: two", "# a.c:7: want 1", "1 passed, 1 failed"]


def test_a_program_that_died_counts_as_failed(tmp_path):
    a = log(tmp_path / "a", ("err", "ERROR", "ok 1 one\n"), ("map", "TIMEOUT", ""))
    done = run(a)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "1 passed, 2 failed"
    assert f"failed: {a}: map: (timeout)" in done.stdout


def test_a_folder_whose_tests_did_not_run_counts_as_failed(tmp_path):
    a = log(tmp_path / "a", ("err", "OK", "ok 1 one\n1..1\n"))
    done = run(a, tmp_path / "b")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "1 passed, 1 failed"


def test_nothing_run_is_not_a_success(tmp_path):
    assert run(log(tmp_path / "a")).returncode == 1
