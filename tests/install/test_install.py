"""What `make install` puts down is what a program outside of the tree can use."""
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STRICT = "-Wall -Wextra -Wpedantic -Werror".split()
LANGUAGES = {"C11": "cc -x c -std=c11".split(), "C++11": "c++ -x c++ -std=c++11".split()}
HEADERS = sorted(p.name for p in (ROOT / "include/sluice").glob("*.h"))
CODE_LOADING = {"dlopen", "dlmopen", "dlsym", "dlvsym", "dlfunc", "fdlopen"}


def call(args, **options):
    done = subprocess.run(args, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)
    if done.returncode:
        pytest.fail(f"{' '.join(map(str, args))}:\n{done.stdout}", pytrace=False)
    return done.stdout


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The folder into which everything was installed."""
    folder = tmp_path_factory.mktemp("root")
    env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    build = os.path.relpath(os.environ["SLUICE_BUILD"], ROOT)
    call(["make", "install", f"BUILD={build}", f"INSTALLED={build}", f"DESTDIR={folder}"], cwd=ROOT, env=env)
    return folder


@pytest.fixture(scope="module")
def libdir(root):
    return next(root.rglob("sluice.pc")).parents[1]


def flags(root, libdir, *args, package="sluice"):
    env = dict(os.environ, PKG_CONFIG_SYSROOT_DIR=str(root),
               PKG_CONFIG_PATH=str(libdir / "pkgconfig"))
    return call(["pkg-config", "--cflags", "--libs", *args, package], env=env).split()


def symbols(path, *options):
    """Names as nm prints them, without their versions (each of which is an A of its own)."""
    lines = call(["nm", *options, path]).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if re.match(r".* [B-Za-z] ", line)}


def test_every_public_header_is_installed(root):
    installed = sorted(p.name for p in next(root.rglob("sluice/err.h")).parent.iterdir())
    assert installed == HEADERS


@pytest.mark.parametrize("name", ["libsluice", "libsluice-client"])
def test_the_shared_library_has_a_versioned_soname(libdir, name):
    soname = re.search(r"SONAME\s+(\S+)", call(["objdump", "-p", libdir / f"{name}.so"]))[1]
    assert re.fullmatch(name + r"\.so\.\d+", soname)
    assert (libdir / soname).exists()


@pytest.mark.parametrize("name, one", [("libsluice", "slu_fail"),
                                       ("libsluice-client", "slu_client_new")])
@pytest.mark.parametrize("end, option", [("so", "-D"), ("a", "-g")])
def test_a_library_shows_only_slu_names(libdir, name, one, end, option):
    names = symbols(libdir / f"{name}.{end}", option, "--defined-only")
    assert one in names
    assert [n for n in sorted(names) if not n.startswith("slu_")] == []


@pytest.mark.parametrize("name", ["libsluice", "libsluice-client"])
def test_both_libraries_show_the_same_names(libdir, name):
    assert (symbols(libdir / f"{name}.so", "-D", "--defined-only")
            == symbols(libdir / f"{name}.a", "-g", "--defined-only"))


@pytest.mark.parametrize("end, option", [("so", "-D"), ("a", "-g")])
def test_the_two_libraries_have_no_name_in_common(libdir, end, option):
    """A program may link both, in any order and statically, too."""
    one, two = (symbols(libdir / f"{name}.{end}", option, "--defined-only")
                for name in ("libsluice", "libsluice-client"))
    assert one & two == set()


@pytest.mark.parametrize("name, option", [("libsluice.so", "-D"), ("libsluice.a", "-g")])
def test_no_code_can_be_loaded_at_run_time(libdir, name, option):
    """PW-48: what runs is fixed when the program is built and started."""
    names = symbols(libdir / name, option, "--undefined-only")
    assert "malloc" in names, "nm shows what is asked of libc"
    assert names & CODE_LOADING == set()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("header", HEADERS)
def test_a_header_compiles_alone(root, libdir, tmp_path, header, language):
    source = tmp_path / "alone"
    source.write_text(f"#include <sluice/{header}>\n")
    cflags = [f for f in flags(root, libdir) if f.startswith("-I")]
    call([*LANGUAGES[language], *STRICT, *cflags, "-fsyntax-only", source])


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", ["shared", "static"])
@pytest.mark.parametrize("package, name", [("sluice", "consumer"), ("sluice-client", "remote")])
def test_a_program_outside_of_the_tree_builds_and_runs(root, libdir, tmp_path, kind, language,
                                                       package, name):
    options = ["--static"] if kind == "static" else []
    extra = ["-static"] if kind == "static" else []
    program = tmp_path / "consumer"
    source = tmp_path / "consumer.c"
    source.write_text((ROOT / f"tests/install/{name}.c").read_text())
    call([*LANGUAGES[language], *STRICT, source, "-x", "none", "-o", program, *extra,
          *flags(root, libdir, *options, package=package)], cwd=tmp_path)
    env = dict(os.environ, LD_LIBRARY_PATH=str(libdir))
    assert call([program], cwd=tmp_path, env=env).splitlines()[-1] == "works"  # after log lines


CMAKE = """\
cmake_minimum_required(VERSION 3.10)
project(outside C)
find_package(sluice {version} REQUIRED)
add_executable(program {source})
target_link_libraries(program {target})
"""


def cmake(root, libdir, folder, **facts):
    (folder / "CMakeLists.txt").write_text(CMAKE.format(**facts))
    return subprocess.run(["cmake", "-S", folder, "-B", folder / "out",
                           f"-Dsluice_DIR={libdir / 'cmake/sluice'}"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


@pytest.mark.parametrize("target, name", [
    ("sluice::sluice", "consumer"), ("sluice::sluice_static", "consumer"),
    ("sluice::client", "remote"), ("sluice::client_static", "remote")])
def test_a_program_builds_with_cmake(root, libdir, tmp_path, target, name):
    found = cmake(root, libdir, tmp_path, version="0.2", target=target,
                  source=ROOT / f"tests/install/{name}.c")
    assert found.returncode == 0, found.stdout
    call(["cmake", "--build", tmp_path / "out"])
    env = dict(os.environ, LD_LIBRARY_PATH=str(libdir))
    assert call([tmp_path / "out/program"], cwd=tmp_path, env=env).splitlines()[-1] == "works"


@pytest.mark.parametrize("version", ["0.1", "0.3", "1.0"])
def test_cmake_refuses_another_series(root, libdir, tmp_path, version):
    found = cmake(root, libdir, tmp_path, version=version, target="sluice::sluice",
                  source=ROOT / "tests/install/consumer.c")
    assert found.returncode and "0.2.0" in found.stdout


def test_the_version_is_the_same_everywhere(root, libdir, tmp_path):
    """In the header, in the library that runs, and for pkg-config."""
    source = tmp_path / "version.c"
    source.write_text("""
        #include <sluice/api.h>
        #include <stdio.h>
        #if SLU_VERSION < 200
        #error "SLU_VERSION"
        #endif
        int main(void) { printf("%s %s %d.%d.%d", SLU_VERSION_TEXT, slu_version(),
            SLU_VERSION_MAJOR, SLU_VERSION_MINOR, SLU_VERSION_PATCH); return 0; }
    """)
    call(["cc", source, "-o", tmp_path / "version", *flags(root, libdir)])
    printed = call([tmp_path / "version"], env=dict(os.environ, LD_LIBRARY_PATH=str(libdir)))
    assert printed.split() == flags(root, libdir, "--modversion")[-1:] * 3


@pytest.mark.parametrize("name", ["libsluice", "libsluice-client"])
def test_every_symbol_has_a_version(libdir, name):
    lines = call(["nm", "-D", "--defined-only", libdir / f"{name}.so"]).splitlines()
    assert [line for line in lines if " A " not in line and "@@SLUICE_" not in line] == []


@pytest.mark.parametrize("name", ["sluice.1", "sluiced.8"])
def test_the_manual_pages_are_sound(root, name):
    page = next(root.rglob(f"share/man/man{name[-1]}/{name}"))
    assert call(["mandoc", "-T", "lint", "-W", "warning", page]) == ""
    shown = re.sub(r".\x08", "", call(["mandoc", "-T", "ascii", page]))
    program = next(root.rglob(f"bin/{name[:-2]}"))
    env = dict(os.environ, LD_LIBRARY_PATH=str(next(root.rglob("libsluice.so")).parent))
    options = re.findall(r"^  (--[a-z-]+)", call([program, "--help"], env=env), re.M)
    assert [o for o in options if o not in shown] == []


def test_the_manual_page_has_every_command(root):
    page = next(root.rglob("share/man/man1/sluice.1"))
    shown = re.sub(r".\x08", "", call(["mandoc", "-T", "ascii", page]))
    for usage in ("sluice push QUEUE", "sluice queue pause QUEUE", "sluice dlq redrive QUEUE",
                  "sluice admin backup --out", "sluice admin journal check", "sluice top"):
        assert usage in shown


@pytest.mark.parametrize("shell, path", [
    ("bash", "bash-completion/completions/sluice"), ("zsh", "zsh/site-functions/_sluice"),
    ("fish", "fish/vendor_completions.d/sluice.fish"), ("bash", "bash-completion/completions/sluiced"),
    ("zsh", "zsh/site-functions/_sluiced"), ("fish", "fish/vendor_completions.d/sluiced.fish")])
def test_completions_are_installed(root, shell, path):
    script = next(root.rglob(f"share/{path}"))
    assert "--complete" in script.read_text() or "log-level" in script.read_text()
    assert call([shell, "-n", script]) == ""
