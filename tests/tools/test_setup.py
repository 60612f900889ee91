"""tools/setup, with an apt-get of our own in place of Debian's."""
import os
import subprocess
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "setup"
HELPERS = "bash cat chmod env id mkdir mv sed sort".split()
SIGNS = ("cc objcopy make meson ninja pkg-config azurite-blob beanstalkd c++ ceph-mon ceph-osd chromedriver chromium cmake curl fish git mandoc mypy node openssl patch "
         "php promtool pytest-3 radosgw redis-server ruby systemd-analyze tsc zsh").split()


MODULES = "@aws-sdk/client-sqs axe-core fivebeans jackd sqs-consumer".split()  # of npm, without a command


def program(path, text):
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def machine(tmp_path):
    """A PATH on which everything for `build` and `test` is there."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for name in HELPERS:
        path = next(p for p in ("/usr/bin", "/bin") if os.path.exists(f"{p}/{name}"))
        (bin_folder / name).symlink_to(f"{path}/{name}")
    for name in SIGNS:
        program(bin_folder / name, "")
    for name in MODULES:
        (tmp_path / "modules" / name).mkdir(parents=True)
    npm(tmp_path)
    program(bin_folder / "sudo", 'exec "$@"')
    return tmp_path


def npm(machine):
    """An npm that knows its folder, notes its words and installs azurite."""
    program(machine / "bin/npm",
            f'if [ "$1" = root ]; then echo {machine}/modules; exit; fi\n'
            f'echo npm "$@" >>{machine}/said; cd {machine}/bin; echo >azurite-blob; chmod +x azurite-blob')


def apt(machine, installs):
    """An apt-get that notes its words and runs the shell line `installs`."""
    program(machine / "bin/apt-get",
            f'echo "$DEBIAN_FRONTEND $*" >>{machine}/said\n'
            f'case " $* " in *" install "*) cd {machine}/bin; {installs} ;; esac')


def run(machine, *args):
    return subprocess.run([TOOL, *args], capture_output=True, text=True,
                          env={"PATH": str(machine / "bin")})


def test_does_and_says_nothing_when_all_is_there(machine):
    apt(machine, "false")
    done = run(machine, "test")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (machine / "said").exists()


def test_installs_just_what_is_missing_and_says_so(machine):
    (machine / "bin/meson").unlink()
    (machine / "bin/patch").unlink()
    apt(machine, "for p in meson patch; do echo >$p; chmod +x $p; done")
    done = run(machine, "test")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "tools/setup: installing meson patch\n"
    update, install = (machine / "said").read_text().splitlines()
    assert update.startswith("noninteractive ") and update.endswith(" update")
    assert install.startswith("noninteractive ")
    assert install.endswith("install -y --no-install-recommends meson patch")


def test_packages_of_npm_are_installed_after_those_of_debian(machine):
    (machine / "bin/azurite-blob").unlink()
    (machine / "bin/npm").rename(machine / "npm")
    apt(machine, f"mv {machine}/npm .")
    done = run(machine, "test")
    assert (done.returncode, done.stderr) == (0, "")
    packages = "@aws-sdk/client-sqs@3.1164.0 axe-core@4.14.0 azurite@3.35.0 fivebeans@1.5.0 jackd@2.2.2 sqs-consumer@14.2.8"  # without npm none is found
    assert done.stdout == f"tools/setup: installing npm\ntools/setup: installing {packages}\n"
    said = (machine / "said").read_text().splitlines()
    assert said[-2].endswith("install -y --no-install-recommends npm")
    assert said[-1].startswith("npm install --global") and said[-1].endswith(f" {packages}")


def test_a_group_asks_for_nothing_of_a_larger_one(machine):
    (machine / "bin/patch").unlink()
    apt(machine, "false")
    assert run(machine, "build").returncode == 0
    assert run(machine).returncode == 0


def test_a_package_that_cannot_be_had_is_an_error_that_names_it(machine):
    (machine / "bin/meson").unlink()
    apt(machine, "exit 100")
    done = run(machine, "build")
    assert done.returncode == 1
    assert "could not install all of: meson" in done.stderr


def test_without_apt_it_says_what_to_install(machine):
    (machine / "bin/meson").unlink()
    done = run(machine, "build")
    assert done.returncode == 1
    assert "your own package manager: meson" in done.stderr


def test_an_unknown_group_is_refused(machine):
    done = run(machine, "everything")
    assert done.returncode == 1
    assert "there are: build, test, lint, check" in done.stderr
