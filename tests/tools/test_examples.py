"""Every public function is used in a program of examples/, and those programs compile
as a user would compile them. meson runs them: suite `examples`."""
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.c"))
STRICT = "cc -std=c11 -Wall -Wextra -Wpedantic -Wwrite-strings -Werror -fsyntax-only".split()


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def public_functions():
    for header in sorted((ROOT / "include/sluice").glob("*.h")):
        text = without_comments(header.read_text())
        yield from re.findall(r"^SLU_API\b[^;(]*?\b(slu_\w+)\(", text, flags=re.M)


def test_all_declarations_are_found():
    declared = "".join(p.read_text() for p in (ROOT / "include/sluice").glob("*.h"))
    assert len(list(public_functions())) == len(re.findall(r"^SLU_API ", declared, flags=re.M))


@pytest.mark.parametrize("function", public_functions())
def test_an_example_uses(function):
    call = re.compile(rf"\b{function}\(")
    assert [p.name for p in EXAMPLES if call.search(without_comments(p.read_text()))]


NO_NONSENSE = {"slu_err_row", "slu_fail", "slu_log_new", "slu_panic", "slu_version"}


@pytest.mark.parametrize("function", sorted({*public_functions()} - NO_NONSENSE))
def test_nonsense_is_tried_on(function):
    rows = "".join((ROOT / p).read_text() for p in ("tests/unit/broker/test_nonsense.c",
                                                    "tests/client/test_nonsense.c"))
    assert re.search(rf"\b{function}\(", rows)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_needs_the_public_headers_alone(path):
    included = re.findall(r'#include (["<].*[">])', path.read_text())
    assert [name for name in included if name.startswith('"')] == []
    done = subprocess.run([*STRICT, "-I", ROOT / "include", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_run(path):
    assert f"'{path.stem}'" in (ROOT / "examples/meson.build").read_text()


def callbacks():
    """Each function type of the headers, with the comment before it."""
    for header in sorted((ROOT / "include/sluice").glob("*.h")):
        for comment, name in re.findall(r"(/\*(?:(?!\*/).)*\*/\s*)?typedef [^;(]*?\b(slu_\w+)\(",
                                        header.read_text(), flags=re.S):
            yield pytest.param(header.name, comment, id=name)


@pytest.mark.parametrize("header, comment", callbacks())
def test_a_callback_says_on_which_thread_it_runs(header, comment):
    words = comment + (" threads" if header == "worker.h" else "")  # all of them, at its top
    assert re.search(r"[Tt]hread", words)
