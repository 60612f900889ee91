"""How the command line feels: help, short options, suggestions, errors for scripts, completion."""
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from test_admin import Terminal, complete
from test_client import COMMANDS, LIMIT, SLUICE, Cli, cli, shared  # noqa: F401
from served import Server


def options(text):
    """(letter or '', long name) of every option of a help."""
    return re.findall(r"^  (?:-(\w), |    )(--[a-z-]+)", text, re.M)


# --- help ------------------------------------------------------------------------

def test_help_is_a_command_and_a_letter(cli):
    assert cli("help") == cli("--help") == cli("-h")
    assert cli("help", "queue", "set") == cli("queue", "set", "--help") == cli("queue", "set", "-h")
    assert cli("version") == cli("--version") == cli("-V")
    assert json.loads(cli("version", "--json"))["version"] in cli("version")
    missing = cli.try_("help", "pusj")
    assert missing.returncode == 2 and b"did you mean push?" in missing.stderr


def test_commands_are_listed_in_groups(cli):
    heads = re.findall(r"^(\w+):$", cli("help"), re.M)
    assert heads[0] == "Messages" and len(heads) == len(set(heads)) >= 5


@pytest.mark.parametrize("command", COMMANDS)
def test_letters_of_a_command_are_its_own(cli, command):
    letters = [letter for letter, _ in options(cli(*command.split(), "--help")) if letter]
    assert "h" in letters and len(letters) == len(set(letters))


def test_short_options_are_the_long_ones(cli):
    cli("push", cli.queue, "-n", "short", "-qp", "high", "-kcustomer", "x")
    found, = [json.loads(line) for line in cli("peek", cli.queue, "-n", "short", "--json").splitlines()]
    assert found["priority"] == 0 and found["key"] == "customer"
    assert cli("queue", "purge", cli.queue, "-yn", "short") == "1 purged\n"
    wrong = cli.try_("push", cli.queue, "-Z", "x")
    assert wrong.returncode == 2 and b"unknown option: -Z" in wrong.stderr


# --- what is wrong ---------------------------------------------------------------

@pytest.mark.parametrize("args, says", [
    (["push"], "missing QUEUE"), (["peek"], "missing QUEUE"), (["get"], "missing ID"),
    (["work", "q"], "missing COMMAND"), (["ack"], "missing RECEIPT|ID"), (["state", "put"], "missing KEY"),
    (["queue", "set", "q", "x"], "KNOB=VALUE"), (["completion"], "missing bash|zsh|fish"),
    (["peek", "q", "--state", "raedy"], "did you mean ready?"),
    (["push", "q", "x", "--priority", "hihg"], "did you mean high?"),
    (["admin", "log-level", "degub"], "did you mean debug?"),
    (["completion", "fihs"], "did you mean fish?"), (["bench", "cylce"], "did you mean cycle?"),
    (["admin", "journal", "chekc", "."], "did you mean check?"),
    (["dlq", "list", "q", "--reason", "expird"], "did you mean expired?")], ids=str)
def test_what_is_missing_or_unknown_is_named(cli, args, says):
    done = cli.try_(*args)
    assert done.returncode == 2 and says in done.stderr.decode(), done.stderr


def test_a_knob_that_is_almost_one_is_suggested(cli):
    done = cli.try_("queue", "set", cli.queue, "max_atempts=3")
    assert done.returncode == 1 and b"did you mean max_attempts?" in done.stderr
    done = cli.try_("queue", "set", cli.queue, "retry.bse=3s")
    assert done.returncode == 1 and b"did you mean retry.base?" in done.stderr


@pytest.mark.parametrize("args, error, code", [
    (["push"], "invalid", 2), (["pusj"], "invalid", 2), (["queue", "lsit"], "invalid", 2),
    (["push", "q", "x", "--prio"], "invalid", 2), (["queue", "show", "nosuch"], "not_found", 3),
    (["queue", "purge", "nosuch", "--yes"], "not_found", 3), (["queue", "pause", "nosuch"], "not_found", 3),
    (["queue", "resume", "nosuch"], "not_found", 3), (["pull", "nosuch"], "not_found", 3),
    (["stats", "--server", "unix:/none"], "unavailable", 1), (["push", "q", "--file", "none"], "failed", 1),
    (["bench", "cylce"], "invalid", 2), (["torture", "--engine", "x"], "invalid", 2),
    (["admin", "journal", "check", "none"], "failed", 1), (["admin", "config", "chekc"], "invalid", 2)], ids=str)
def test_errors_are_one_line_of_json_with_json(cli, args, error, code):
    done = cli.try_(*args, "--json")
    told = json.loads(done.stderr)
    assert (told["error"], told["exit"], done.returncode) == (error, code, code)
    assert told["message"] and done.stderr.count(b"\n") == 1 and done.stdout == b""


def test_notes_are_json_with_json(cli):
    cli.push("a", "b")
    done = cli.try_("browse", cli.queue, "--limit", 1, "--json")
    assert done.returncode == 0 and "--limit" in json.loads(done.stderr)["note"]


def test_where_nothing_is_other_namespaces_are_hinted_at(cli):
    cli("push", cli.queue, "x", "-n", "elsewhere")
    for command in (["stats"], ["topics"], ["queue", "list"]):
        done = cli.try_(*command, "-n", "nothing")
        assert done.returncode == 3 and b"elsewhere" in done.stderr


# --- completion ------------------------------------------------------------------

@pytest.mark.parametrize("words, offers", [
    (["peek", "x", "--state", "de"], ["delayed", "dead"]),
    (["push", "x", "--priority", ""], ["high", "normal", "low"]),
    (["push", "x", "-p", "l"], ["low"]),
    (["admin", "log-level", ""], ["debug", "info", "warn", "error", "off"]),
    (["completion", ""], ["bash", "zsh", "fish"]),
    (["queue", "set", "x", "retry.b"], ["retry.base="]),
    (["bench", "cycle", "--engine", ""], ["log", "memory", "redis"]),
    (["bench", "cy"], ["cycle"]), (["bench", "exec", "--it"], ["--items"]),
    (["help", "que"], ["queue"]), (["help", "queue", "pa"], ["pause"]),
    (["work", "q", "--", "pu"], [])], ids=str)
def test_bash_completes_values(cli, words, offers):
    assert complete(cli, *words) == offers


def test_names_are_those_of_the_server_and_namespace_that_was_said(cli, tmp_path):
    with Server(tmp_path / "other", engine="memory") as other:
        there = Cli(other, "%s:%d" % other.address, tmp_path)
        there("push", "only-there", "x", "-n", "payments")
        assert complete(cli, "stats", "-s", there.address, "-n", "payments", "only") == ["only-there"]
        assert complete(cli, "stats", "only") == []
        assert complete(there, "stats", "--namespace", "pay") == ["payments"]


def test_knobs_are_those_of_the_server(cli):
    """The list for completion and suggestions is whole."""
    policy, = cli.lines("queue", "set", cli.queue, "lease=30s")
    names = {f"retry.{k}" for k in policy.pop("retry")} | set(policy)
    names -= {"namespace", "topic", "queue", "display_namespace", "display_topic", "display_queue"}
    assert names == {word.rstrip("=") for word in complete(cli, "queue", "set", "x", "")}


@pytest.mark.parametrize("words, offers", [(["--eng"], ["--engine"]), (["--engine", ""], ["log", "memory", "redis"]),
                                           (["--log-level", "d"], ["debug"])], ids=str)
def test_bash_completes_options_of_the_server(cli, words, offers):
    script = "source <({0} completion bash sluiced); COMP_WORDS=(sluiced {1}); COMP_CWORD={2}; _sluiced; " \
             "printf '%s\\n' \"${{COMPREPLY[@]}}\"".format(SLUICE, " ".join(f"'{w}'" for w in words), len(words))
    done = subprocess.run(["bash", "-c", script], env=cli.env, capture_output=True, text=True, timeout=LIMIT)
    assert done.stdout.split() == offers, done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_of_the_server_are_sound(cli, shell, tmp_path):
    script = cli("completion", shell, "sluiced")
    assert "engine" in script and "log-level" in script
    (tmp_path / "script").write_text(script)
    done = subprocess.run([shell, "-n", str(tmp_path / "script")], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0 and done.stderr == ""


def test_fish_completes_values_and_options_of_the_server(cli, tmp_path):
    env = {**cli.env, "HOME": str(tmp_path), "PATH": f"{Path(SLUICE).parent}:{os.environ['PATH']}"}

    def offers(program, line):
        done = subprocess.run(["fish", "-c", f"sluice completion fish {program} | source; complete -C '{line}'"],
                              env=env, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT)
        return [row.split("\t")[0] for row in done.stdout.split("\n") if row]

    assert sorted(offers("sluice", "sluice peek x --state de")) == ["dead", "delayed"]
    assert sorted(offers("sluiced", "sluiced --engine ")) == ["log", "memory", "redis"]


# --- bench -----------------------------------------------------------------------

def test_bench_shows_how_far_it_is_on_a_terminal(cli):
    with Terminal(cli, "bench", "enqueue", "--for", "2s", "--connections", 2, "--server", cli.address) as terminal:
        terminal.expect(r"enqueue  \[#*\.*\] +\d+ %  \ds of 2s")
        code, _ = terminal.end()
        assert code == 0
    done = cli.try_("bench", "enqueue", "--for", "100ms", "--connections", 2, "--server", cli.address)
    assert done.returncode == 0 and done.stderr == b""
