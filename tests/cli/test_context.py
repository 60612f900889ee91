"""Servers that have a name: contexts."""
import json
import os
import stat
import subprocess

import pytest

from test_admin import complete
from test_client import LIMIT, SLUICE, Cli, cli, shared  # noqa: F401
from served import Server


@pytest.fixture
def named(cli, tmp_path):
    """`sluice` that knows its server by a context alone."""
    del cli.env["SLUICE_SERVER"]
    cli.env["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    cli.file_of_contexts = tmp_path / "config/sluice/contexts.yaml"
    cli("context", "add", "here", "-s", cli.address, "-n", "named", "--use")
    return cli


@pytest.fixture
def nowhere(named):
    named("context", "add", "nowhere", "--server", "unix:/nowhere")
    return named


def test_commands_use_the_current_context(named):
    named("push", named.queue, "x")
    assert named("pull", named.queue, "-n", "named", "--ack") == "x"
    assert "context     here\n" in named("status")
    assert json.loads(named("status", "--json"))["context"] == "here"


def test_an_option_goes_before_a_variable_and_that_before_the_context(nowhere):
    nowhere("push", nowhere.queue, "x", "--context", "here", "-n", "other")
    nowhere("context", "use", "nowhere")
    assert b"unix:/nowhere" in nowhere.try_("stats").stderr
    nowhere.env["SLUICE_CONTEXT"] = "here"
    assert nowhere.try_("stats", nowhere.queue).returncode == 3  # the namespace of the context
    nowhere.env["SLUICE_NAMESPACE"] = "other"
    assert nowhere.stats()["total"] == 1
    assert b"unix:/nowhere" in nowhere.try_("stats", "--context", "nowhere").stderr


def test_the_current_context_is_left_out_for_a_server_that_is_named(nowhere):
    """Its namespace, and above all its token, belong to its server."""
    assert json.loads(nowhere("status", "--json", "-s", nowhere.address))["context"] is None
    nowhere.env["SLUICE_SERVER"] = nowhere.address
    nowhere("context", "use", "nowhere")
    assert json.loads(nowhere("status", "--json"))["context"] is None
    assert json.loads(nowhere("status", "--json", "--context", "here"))["context"] == "here"


def test_top_shows_the_namespace_of_the_context(named):
    named("push", named.queue, "x", "-n", "foreign")
    named("push", named.queue, "x")
    seen = {q["namespace"] for q in named.lines("top", "--once", "--interval", "10ms")}
    assert seen == {"named"}
    assert "foreign" in {q["namespace"] for q in named.lines("top", "--once", "--all", "--interval", "10ms")}


def test_contexts_are_listed_shown_renamed_and_removed(nowhere):
    assert [c["name"] for c in nowhere.lines("context", "list")] == ["here", "nowhere"]
    assert [c["current"] for c in nowhere.lines("context", "list")] == [True, False]
    nowhere("context", "rename", "here", "zone.1@home")
    assert [c["name"] for c in nowhere.lines("context", "list")] == ["nowhere", "zone.1@home"]
    assert nowhere.lines("context", "show")[0] == {"name": "zone.1@home", "current": True,
                                                   "server": nowhere.address, "namespace": "named"}
    nowhere("context", "remove", "zone.1@home")
    assert nowhere.try_("context", "show").returncode == 3
    nowhere("context", "use", "nowhere")
    nowhere("context", "use", "--none")
    assert nowhere.try_("context", "show").returncode == 3


@pytest.mark.parametrize("args, code, says", [
    (["context", "use", "heer"], 3, "did you mean here?"), (["stats", "--context", "heer"], 2, "did you mean here?"),
    (["context", "add", "here", "-s", "a:1"], 1, "--replace"), (["context", "add", "a b", "-s", "a:1"], 1, "invalid context name"),
    (["context", "add", "x"], 2, "missing --server"), (["context", "rename", "here", "here"], 1, "exists"),
    (["context", "use"], 2, "missing CONTEXT"), (["context", "add", "x", "-s", "a:1", "--ca-file", "none"], 1, "none")],
    ids=str)
def test_what_is_wrong_is_named(named, args, code, says):
    before = named.file_of_contexts.read_bytes()
    done = named.try_(*args)
    assert done.returncode == code and says in done.stderr.decode(), done.stderr
    assert named.file_of_contexts.read_bytes() == before


def test_a_context_is_replaced_when_that_is_said(named):
    named("context", "add", "here", "-s", "other:1", "--replace")
    assert named.lines("context", "show")[0] == {"name": "here", "current": True, "server": "other:1"}


def test_values_survive_the_file(named):
    value = "it's ${HOME}: #1"
    named("context", "add", "odd", "-s", "unix:/" + value)
    assert named.lines("context", "show", "odd")[0]["server"] == "unix:/" + value


def test_the_file_is_its_owners_and_replaced_as_a_whole(named):
    assert stat.S_IMODE(named.file_of_contexts.stat().st_mode) == 0o600
    inode = named.file_of_contexts.stat().st_ino
    named("context", "use", "--none")
    assert named.file_of_contexts.stat().st_ino != inode
    assert [f.name for f in named.file_of_contexts.parent.iterdir()] == ["contexts.yaml"]


def test_what_is_wrong_with_the_file_is_told_with_its_line(named):
    named.file_of_contexts.write_text("contexts:\n  a:\n    sever: x\n")
    done = named.try_("stats")
    assert done.returncode == 2 and b"contexts.yaml:3: " in done.stderr
    assert named("help") and named("version")  # need no context


def test_contexts_are_completed(nowhere):
    assert complete(nowhere, "context", "use", "") == ["here", "nowhere"]
    assert complete(nowhere, "stats", "--context", "no") == ["nowhere"]
    nowhere("push", nowhere.queue, "x")
    assert complete(nowhere, "stats", nowhere.queue) == [nowhere.queue]


# --- credentials -----------------------------------------------------------------

@pytest.fixture
def guarded(tmp_path):
    """A server that wants a token, and a token."""
    def sluice(*args, **more):
        return subprocess.run([SLUICE, *args], capture_output=True, text=True, timeout=LIMIT, cwd=tmp_path, **more)

    (tmp_path / "secret").write_text(sluice("token", "--new-key").stdout)
    (tmp_path / "token").write_text(sluice("token", "--secret-file", "secret", "*:*").stdout)
    os.chmod(tmp_path / "secret", 0o600)
    with Server(tmp_path / "data", "--auth-secret-file", str(tmp_path / "secret"), engine="memory") as server:
        there = Cli(server, "%s:%d" % server.address, tmp_path)
        del there.env["SLUICE_SERVER"]
        there.env["XDG_CONFIG_HOME"] = str(tmp_path / "config")
        yield there


@pytest.mark.parametrize("how", ["--token-file", "--store-token"])
def test_the_token_of_a_context_is_shown_to_its_server(guarded, how):
    assert guarded.try_("push", "q", "x", "-s", guarded.address).returncode == 1
    guarded("context", "add", "here", "-s", guarded.address, how, "token", "--use")
    guarded("push", "q", "x")
    (guarded.folder / "sub").mkdir()
    guarded.folder = guarded.folder / "sub"  # the path of the file is whole
    assert guarded("pull", "q", "--ack") == "x"
    assert guarded.try_("push", "q", "x", "-s", guarded.address).returncode == 1
    token = (guarded.folder / "../token").read_text().strip()
    assert token not in guarded("context", "show") + guarded("context", "list", "--json")


def test_a_token_that_others_may_read_is_refused(guarded):
    guarded("context", "add", "here", "-s", guarded.address, "--store-token", "-", "--use",
            stdin=(guarded.folder / "token").read_bytes())
    guarded("push", "q", "x")
    os.chmod(guarded.folder / "config/sluice/contexts.yaml", 0o644)
    done = guarded.try_("push", "q", "x")
    assert done.returncode == 2 and b"chmod 600" in done.stderr
