"""`sluice top` on a terminal: the selection, the filter, colours, and what it does to a queue."""
import re

import pytest

from test_admin import Terminal, die
from test_client import cli, shared  # noqa: F401
from served import until

FRAME = "\x1b[H"
RED, YELLOW = "\x1b[31m", "\x1b[33m"


class Top(Terminal):
    """The queues of one namespace, looked at often."""

    def __init__(self, cli, space, **how):
        super().__init__(cli, "top", "--namespace", space, "--interval", "30ms", LANG="C", LC_ALL="C", **how)

    def frames(self, n):
        """The next n whole screens."""
        self.seen = b""
        until(lambda: self.read().count(FRAME) > n + 1)
        return self.seen.decode(errors="replace").split(FRAME)[1:n + 1]

    def shows(self, pattern):
        """Wait for a screen that has it; the screen."""
        return until(lambda: next((f for f in self.frames(1) if re.search(pattern, f, re.S)), None))

    def selected(self):
        return self.shows(r"\x1b\[7m").split("\x1b[7m")[1].split()[1]


@pytest.fixture
def space(cli):
    """A namespace with three queues: many has more messages than few, few more than one."""
    name = f"top-{cli.queue}"
    for queue, n in (("many", 30), ("few", 20), ("one", 10)):
        cli("push", queue, "x", "--count", n, "--quiet", "--namespace", name)
    return name


def test_the_selection_follows_its_queue(cli, space):
    with Top(cli, space) as top:
        top.shows(r"many .*few .*one ")
        top.type("j")
        until(lambda: top.selected() == "few")
        assert {f.split("\x1b[7m")[1].split()[1] for f in top.frames(15)} == {"few"}
        cli("push", "few", "x", "--count", 100, "-q", "--namespace", space)
        cli("push", "one", "x", "--count", 200, "-q", "--namespace", space)
        top.shows(r"one .*few .*many ")
        assert {f.split("\x1b[7m")[1].split()[1] for f in top.frames(15)} == {"few"}
        top.type("\r")
        top.shows(r"queue +few in namespace")
        cli("push", "many", "x", "--count", 500, "-q", "--namespace", space)
        assert all("queue      few in namespace" in f for f in top.frames(15))
        top.type("n\x1b")
        assert top.shows(r"\[n:name\].*few .*many .*one ") and top.selected() == "few"


def test_a_queue_that_goes_takes_its_page_along(cli, space):
    with Top(cli, space) as top:
        top.shows(r"many .*few .*one ")
        top.type("jj\r")
        top.shows(r"queue +one in namespace")
        cli("queue", "delete", "one", "--force", "--yes", "--namespace", space)
        top.shows(r"queue one was deleted.*NAMESPACE")
        assert top.selected() == "few"


def test_a_filter_shows_some(cli, space):
    with Top(cli, space) as top:
        top.shows(r"many .*few .*one ")
        top.type("/E")
        frame = top.shows(r"filter: E_.*few .*one ")
        assert "many" not in frame
        top.type("W\r")
        frame = top.shows(r"filter EW  sort by.*few ")
        assert "one " not in frame.split("NAMESPACE")[1]
        top.type("/q\x7f\x7fx")
        top.shows(r"filter: Ex_.*no queue matches")
        top.type("\x1b")
        top.shows(r"many .*few .*one ")
        top.type("/top-\r")
        top.shows(r"filter top-.*many ")  # the namespace counts
        top.type("\x1b")
        assert "filter top" not in top.shows(r"sort by.*many ")


def test_keys_are_listed(cli, space):
    with Top(cli, space) as top:
        top.shows("many")
        top.type("?")
        frame = top.shows("redrive its dead letters")
        assert "pause or resume" in frame and "many" not in frame
        top.type("x")
        top.shows(r"many .*few ")
        top.type("q")
        assert top.end()[0] == 0


def test_a_queue_is_paused_and_resumed_after_a_yes(cli, space):
    def paused():
        return cli.lines("stats", "few", "--namespace", space)[0]["paused"]

    with Top(cli, space) as top:
        top.shows("many")
        top.type("jp")
        top.shows(r"pause few\? y yes")
        top.type("n")
        top.shows("sort by")
        assert paused() is False
        top.type("py")
        frame = top.shows(r"few \(paused\)")
        assert paused() is True and YELLOW + "few (paused)" in frame
        top.type("p")
        top.shows(r"resume few\? y yes")
        top.type("y")
        top.shows("few is resumed")
        assert paused() is False


def test_dead_letters_are_red_and_redriven_after_a_yes(cli):
    die(cli, *map(str, range(5)))
    with Top(cli, "default") as top:
        top.shows("sort by")
        top.type(f"/{cli.queue}\r")
        frame = top.shows(rf"default +{cli.queue} ")
        line = next(x for x in frame.split("\r\n") if f" {cli.queue} " in x)
        assert re.search(re.escape(RED) + r" *5\x1b\[39m", line)
        until(lambda: top.selected() == cli.queue)
        top.type("x")
        top.shows(rf"redrive 5 dead letters of {cli.queue}\? y yes")
        top.type("y")
        top.shows(rf"5 of {cli.queue} redriven")
        assert cli.stats()["dead"] == 0 and cli.stats()["ready"] == 5
        top.type("x")
        top.shows(rf"{cli.queue} has no dead letters")


def test_no_colour_where_none_is_wanted(cli, space):
    cli("queue", "pause", "few", "--namespace", space)
    with Top(cli, space, NO_COLOR="1") as top:
        frame = top.shows(r"few \(paused\)")
        assert YELLOW not in frame and RED not in frame and "\x1b[39m" not in frame


@pytest.mark.parametrize("columns", [40, 60, 79])
def test_what_is_cut_is_marked(cli, space, columns):
    with Top(cli, space, columns=columns) as top:
        frame = top.shows(r"many ")
        lines = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", x).rstrip("\r") for x in frame.split("\r\n")]
        table = lines[next(i for i, x in enumerate(lines) if x.startswith("NAMESPACE")):][:4]
        assert all(len(x) == columns and x.endswith(">") for x in table), table
    with Top(cli, space, columns=200) as top:
        assert ">" not in top.shows(r"many ").split("NAMESPACE")[1]
