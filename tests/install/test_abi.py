"""A program that was linked with a released library runs with this one.

abi.py says how the facts are had, include/sluice/api.h how structs may grow."""
import os
import re
import shutil
from pathlib import Path

import abi
import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RELEASED = sorted(HERE.glob("abi/*"), key=lambda p: [int(n) for n in p.name.split(".")])
HANDED_OUT = {"slu_run", "slu_delivery_info", "slu_consumer_event", "slu_queue_event",
              "slu_err_row"}  # by the library, which alone knows their size


def read(lines):
    """What is before the first ": ", and what is behind it."""
    return dict(line.split(": ", 1) if not line.startswith(("function", "lib")) else (line, "")
                for line in lines)


def may_differ(name, was, now, old):
    """A struct that grows by its rule."""
    if name.endswith(".reserved") or now is None:
        return name.endswith(".reserved")  # new members take of it
    match = re.fullmatch(r"struct (\w+)", name)
    grows = match and (f"{name}.struct_size" in old or match[1] in HANDED_OUT)
    return bool(grows) and int(now.split()[0]) >= int(was.split()[0])


def in_padding(old, new):
    """New members where an older program's struct has bytes that nobody set."""
    for name, at in new.items():
        struct = name.split(".")[0]
        if name not in old and f"{struct}.struct_size" in old:
            if int(at.split()[-1]) < int(old[struct].split()[0]):
                yield f"{name}: new, and inside of what {struct} was"


def differences(old, new):
    return [*in_padding(old, new)] + [f"{name}: was {was or 'there'}, is {new.get(name, 'not there')}"
            for name, was in old.items()
            if new.get(name) != was and not may_differ(name, was, new.get(name), old)]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    libdir = tmp_path_factory.mktemp("lib")
    for name in abi.LIBRARIES:
        shutil.copy(Path(os.environ["SLUICE_BUILD"]) / f"src/{name}.so", libdir)
    return read(abi.facts(ROOT / "include", libdir))


@pytest.mark.parametrize("release", RELEASED, ids=lambda p: p.name)
def test_what_is_released_stays(built, release):
    assert differences(read(release.read_text().splitlines()), built) == []


def test_the_last_release_is_known():
    assert RELEASED, "tests/install/abi has the facts of each release"


def exported(facts):
    """The version of each function that a library shows."""
    return dict(re.fullmatch(r"libsluice(?:-client)?: (\w+)@@SLUICE_([\d.]+)", fact).groups()
                for fact in facts if "@@SLUICE_" in fact)


def of_the_wrong_node(shown, released):
    """Functions that came after a release, under its version or an older one. released: by version, as `exported`."""
    known = set().union(*released.values())
    return {name: node for name, node in shown.items()
            if name not in known and any(number(node) <= number(v) for v in released)}


def number(version):
    """Of a node: 0.2 for 0.2.0 and 0.2."""
    return tuple(int(n) for n in version.split(".")[:2])


def test_the_libraries_show_what_the_headers_declare(built):
    declared = {re.search(r"(slu_\w+)\(", fact)[1] for fact in built if fact.startswith("function: ")}
    shown = exported(built)
    assert len(declared) > 100 and declared - set(shown) == set() and set(shown) - declared == set()


def test_a_new_function_has_the_version_of_its_release(built):
    released = {p.name: exported(p.read_text().splitlines()) for p in RELEASED}
    assert of_the_wrong_node(exported(built), released) == {}


def test_a_function_under_the_version_of_a_release_that_lacks_it_is_noticed():
    released = {"0.2.0": {"slu_old": "0.2"}}
    shown = {"slu_old": "0.2", "slu_late": "0.2", "slu_later": "0.1", "slu_new": "0.3"}
    assert of_the_wrong_node(shown, released) == {"slu_late": "0.2", "slu_later": "0.1"}


OLD = {"struct slu_put": "16 bytes", "struct slu_put.struct_size": "8 bytes at 0",
       "struct slu_stats": "24 bytes", "struct slu_stats.reserved": "16 bytes at 8",
       "SLU_EINVAL": "1001", "function: int slu_close(void)": "",
       "libsluice: slu_close@@SLUICE_0.2": ""}


@pytest.mark.parametrize("change, fine", [
    ({"struct slu_put": "24 bytes", "struct slu_put.new": "8 bytes at 16"}, True),
    ({"struct slu_put.new": "1 bytes at 12"}, False),
    ({"struct slu_put": "24 bytes"}, True), ({"struct slu_put": "8 bytes"}, False),
    ({"struct slu_put.struct_size": "8 bytes at 8"}, False),
    ({"struct slu_stats": "32 bytes"}, False),
    ({"struct slu_stats.reserved": "8 bytes at 16"}, True),
    ({"struct slu_stats.reserved": None}, True), ({"SLU_EINVAL": "1002"}, False),
    ({"SLU_EINVAL": None}, False), ({"function: int slu_close(void)": None}, False),
    ({"libsluice: slu_close@@SLUICE_0.2": None}, False), ({"SLU_ENEW": "1099"}, True)])
def test_what_counts_as_a_change(change, fine):
    new = {k: v for k, v in {**OLD, **change}.items() if v is not None}
    assert (differences(OLD, new) == []) == fine
