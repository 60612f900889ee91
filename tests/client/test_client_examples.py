"""The programs of examples/ and of docs/consumers.md that speak to a server, each against
the same one. Exit code 0: what it shows has happened."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
from served import Server  # noqa: E402

PAGE = (ROOT / "docs/consumers.md").read_text()
PROGRAMS = re.findall(r"```c\n(.*?)```", PAGE, flags=re.S)
HEADER = (ROOT / "include/sluice/consumer.h").read_text()
NAMES = sorted(p.stem for p in (ROOT / "examples").glob("client_*.c"))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("served") / "data", engine="memory") as server:
        yield server


def run(program, server, folder, **env):
    host, port = server.address
    done = subprocess.run([program], cwd=folder, text=True, stdin=subprocess.DEVNULL,
                          env={**os.environ, "SLUICE_SERVER": f"{host}:{port}", **env},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_an_example_against_a_server(server, name, tmp_path):
    run(Path(os.environ["EXAMPLES"]) / f"example_{name}", server, tmp_path)


@pytest.mark.parametrize("source, says", zip(PROGRAMS, ["hello, Anna\n", "a letter\n"]))
def test_a_program_of_the_page_runs(server, source, says, tmp_path):
    (tmp_path / "program.c").write_text(source)
    libs = Path(os.environ["EXAMPLES"]).parent / "src"
    subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "include",
                    tmp_path / "program.c", "-o", tmp_path / "program", "-L", libs,
                    "-lsluice-client", "-lsluice"], check=True)
    assert run(tmp_path / "program", server, tmp_path, LD_LIBRARY_PATH=str(libs)) == says


def test_every_setting_is_on_the_page():
    for name in ("slu_consumer {", "slu_restart {"):
        body = re.sub(r"/\*.*?\*/", "", HEADER.split(f"struct {name}")[1].split("};")[0], flags=re.S)
        members = re.findall(r"(\w+);", body)
        assert len(members) >= 5
        assert [m for m in members if f"`{m}`" not in PAGE] == []
