"""docs/cli.md and docs/operations.md are true: what they show is typed, and answers as they say.

A ```console block has commands behind `$ ` (`> ` goes on with the one before) and, below
each, what it prints. `...` stands for anything, in a line or instead of lines; two spaces or more are any
number of them.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
from served import Server  # noqa: E402

PAGE = (ROOT / "docs/cli.md").read_text()
SLUICE = Path(os.environ["SLUICE"])


def commands(page):
    """(command, what it is said to print) in the order of the page."""
    for block in re.findall(r"^```console\n(.*?)^```", page, re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            lines = part.splitlines()
            n = 1
            while n < len(lines) and lines[n].startswith("> "):
                n += 1
            typed = [lines[0]] + [line[2:] for line in lines[1:n]]
            yield "\n".join(typed), "\n".join(lines[n:])


def pattern(said):
    said = re.escape(said).replace(r"\.\.\.", "(?:.|\n)*?")
    said = re.sub(r"(\\ ){2,}", " +", said.replace("318497266802130945", r"\d+"))
    return re.compile(rf"\s*{said}\s*")


@pytest.fixture
def place(tmp_path):
    folder = tmp_path
    (folder / "sluice.yaml").write_text("log.level: info\n")
    with Server(folder / "data") as server:
        yield folder, {**os.environ, "SLUICE_SERVER": "%s:%d" % server.address,
                       "XDG_CONFIG_HOME": str(folder / "config"),
                       "PATH": f"{SLUICE.parent}:{os.environ['PATH']}"}


@pytest.mark.parametrize("page, least", [("cli", 60), ("operations", 15)])
def test_every_command_does_what_the_page_says(place, page, least):
    folder, env = place
    shown = list(commands((ROOT / f"docs/{page}.md").read_text()))
    assert len(shown) >= least
    for typed, said in shown:
        done = subprocess.run(["bash", "-c", typed], cwd=folder, env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        assert pattern(said).fullmatch(done.stdout), f"$ {typed}\n{done.stdout}"


def help_of(*words):
    return subprocess.run([SLUICE, *words, "--help"], capture_output=True, text=True, check=True,
                          timeout=60).stdout


def listed(text):
    """The names of the tables of a help that are not options."""
    return re.findall(r"^  (\w+)  +\S", text, re.M)


def rows_of(page, head):
    """The names in the first column of the table that begins so."""
    table = page[page.index(head):].split("\n\n")[0]
    return re.findall(r"`(\w+)`", "\n".join(line.split(" | ")[0] for line in table.splitlines()[2:]))


def test_the_table_of_commands_is_that_of_the_help():
    names = listed(help_of())
    assert len(names) >= 28 and sorted(rows_of(PAGE, "| Command | Does |")) == sorted(names)


@pytest.mark.parametrize("command", ["queue", "dlq"])
def test_the_table_names_the_commands_of_a_command(command):
    line, = re.findall(rf"^\| \[`{command}`\].*", PAGE, re.M)
    assert set(listed(help_of(command))) <= set(re.findall(r"\w+", line))


def test_every_bench_is_on_the_page_and_in_the_help():
    benches = listed(help_of("bench"))
    assert len(benches) == 12
    assert sorted(rows_of(PAGE, "| Bench | Does |") + ["exec", "pqueue"]) == sorted(benches)
    for name in benches:
        assert help_of("bench", name).startswith("usage: sluice bench"), name


def test_the_examples_of_the_bench_help_are_right():
    """Every option of an example is one of that bench; --for and --messages keep it short."""
    lines = [line for name in ([], ["cycle"]) for line in re.findall(r"^  (sluice bench .*)", help_of("bench", *name), re.M)]
    assert len(lines) >= 10
    for line in lines:
        _, _, bench, *words = line.split()
        options = set(re.findall(r"--[a-z-]+", help_of("bench", bench)))
        assert {w for w in words if w.startswith("--")} <= options, line


@pytest.mark.parametrize("program, section, folders", [("sluice", "1", ["cli"]), ("sluiced", "8", ["server"])])
def test_the_manual_has_every_variable_that_the_program_reads(program, section, folders):
    page = subprocess.run([ROOT / "tools/mkman", SLUICE.parent / program, section], capture_output=True, text=True,
                          check=True, timeout=120).stdout
    shown = re.findall(r"[A-Z][A-Z_]+[A-Z]", page[page.index(".SH ENVIRONMENT"):])
    text = "".join(path.read_text() for folder in folders for path in (ROOT / "src" / folder).rglob("*.c"))
    read = set(re.findall(r'(?:getenv|exports_get|number)\("([A-Z_]+)"\)', text))
    read |= set(re.findall(r'(?:session_or_variable|resolve)\([^;]*?"([A-Z_]+)"', text))
    read |= set(re.findall(r'receipt_name\[\] = "([A-Z_]+)"', text))
    read -= {"PATH"}  # as every program does
    assert len(read) >= 3 and read <= set(shown), read - set(shown)


@pytest.mark.parametrize("command", ["push", "work", "result", "browse", "top", "dlq redrive"])
def test_every_option_of_its_own_is_on_the_page(command):
    help_ = subprocess.run([SLUICE, *command.split(), "--help"], capture_output=True, text=True,
                           timeout=60).stdout
    options = re.findall(r"^  (?:-\w, |    )(--[a-z-]+)", help_, re.M)
    assert options and [o for o in options if o not in PAGE] == []
