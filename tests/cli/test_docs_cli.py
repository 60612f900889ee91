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


def test_every_command_is_on_the_page():
    listed = subprocess.run([SLUICE, "--help"], capture_output=True, text=True, timeout=60).stdout
    names = re.findall(r"^  (\w+) +", listed, re.M)
    assert names and [n for n in names if f"`{n}`" not in PAGE] == []


@pytest.mark.parametrize("command", ["push", "work", "result", "browse", "top", "dlq redrive"])
def test_every_option_of_its_own_is_on_the_page(command):
    help_ = subprocess.run([SLUICE, *command.split(), "--help"], capture_output=True, text=True,
                           timeout=60).stdout
    options = re.findall(r"^  (?:-\w, |    )(--[a-z-]+)", help_, re.M)
    assert options and [o for o in options if o not in PAGE] == []
