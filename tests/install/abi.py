#!/usr/bin/env python3
"""Print what programs that are linked already rely on, a fact a line.

    tests/install/abi.py INCLUDE LIBDIR >tests/install/abi/VERSION

INCLUDE is the folder that has sluice/*.h, LIBDIR the one with the shared libraries. The files
in tests/install/abi are the facts of released versions: they are written once, at the release,
and test_abi.py compares every later build with them.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

LIBRARIES = ("libsluice", "libsluice-client")


def source_of(include):
    """The headers without comments and preprocessor lines."""
    text = "".join(p.read_text() for p in sorted(Path(include).glob("sluice/*.h")))
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r"^#(?:.*\\\n)*.*$", "", text, flags=re.M)


def structs(text):
    """Name and members of each struct that is defined."""
    for name, body in re.findall(r"\bstruct (slu_\w+) \{(.*?)\n\};", text, re.S):
        body = re.sub(r"\(\*(\w+)\)\([^)]*\)", r"\1", body)  # a member that is a function
        names = re.findall(r"(\w+)(?:\[[^]]*\])*\s*[;,]", body)
        yield name, names


def enumerators(text):
    for body in re.findall(r"\benum slu_\w+ \{(.*?)\n\};", text, re.S):
        yield from re.findall(r"\b(SLU_\w+)", body)


def errors(include):
    text = (Path(include) / "sluice/err.h").read_text()
    return ["SLU_" + name for name in re.findall(r"\bX\((E[A-Z]+),", text)]


def functions(text):
    for prototype in re.findall(r"SLU_API ([^;]*);", text):
        prototype = re.sub(r"SLU_(NORETURN|PRINTF\([^)]*\))", "", prototype)
        yield " ".join(prototype.split())


def program(include, text):
    """A C program that prints sizes, offsets and numbers."""
    lines = [f"#include <sluice/{p.name}>" for p in sorted(Path(include).glob("sluice/*.h"))]
    lines += ["#include <stdio.h>", "int main(void) {"]
    for name, members in structs(text):
        lines.append(f'printf("struct {name}: %zu bytes\\n", sizeof(struct {name}));')
        lines += [f'printf("struct {name}.{m}: %zu bytes at %zu\\n", sizeof(((struct {name} *)0)->{m}), '
                  f"offsetof(struct {name}, {m}));" for m in members]
    for name in [*enumerators(text), *errors(include)]:
        if name not in ("SLU_CODE_END", "SLU_ERRORS"):  # the end moves with every new error
            lines.append(f'printf("{name}: %d\\n", (int){name});')
    return "\n".join([*lines, "return 0; }"])


def run(*args):
    return subprocess.run(args, text=True, check=True, stdout=subprocess.PIPE).stdout


def facts(include, libdir):
    text = source_of(include)
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder) / "abi.c", Path(folder) / "abi"
        source.write_text(program(include, text))
        run("cc", f"-I{include}", str(source), "-o", str(binary))
        out = run(str(binary)).splitlines()
    out += [f"function: {p}" for p in functions(text)]
    for name in LIBRARIES:
        symbols = run("nm", "-D", "--defined-only", f"{libdir}/{name}.so").split()
        out += [f"{name}: {s}" for s in symbols if "@@" in s]
        soname = re.search(r"SONAME\s+(\S+)", run("objdump", "-p", f"{libdir}/{name}.so"))[1]
        out.append(f"{name}: soname {soname}")
    return sorted(out)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print("\n".join(facts(*sys.argv[1:])))
