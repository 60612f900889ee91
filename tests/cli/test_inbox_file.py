"""sluice inbox --from file:///FOLDER: files of a folder, each once."""
import json
import os
import random
import signal
import threading
from pathlib import Path

import pytest

from inbox_kit import Inbox, once, payloads, ready, server, take_all  # noqa: F401
from served import until


@pytest.fixture
def drop(tmp_path):
    folder = tmp_path / "drop"
    (folder / "inbox" / "test" / "mail").mkdir(parents=True)
    return folder


def url(drop):
    return f"file://{drop}"


def take_in(server, drop, *options):
    """Takes what is there, and ends. Returns what the command wrote."""
    return once(server, url(drop), "--settle", "1ns", *options).stderr


def watches(inbox):
    """How many folders the process watches."""
    found = 0
    for path in Path(f"/proc/{inbox.process.pid}/fdinfo").iterdir():
        try:
            found += path.read_text().count("inotify wd:")
        except OSError:
            pass  # it was closed
    return found


def move_in(drop, queue, name, text, **options):
    """As an application does: written beside, then moved."""
    (drop / "new").mkdir(exist_ok=True)
    if options:
        (drop / "inbox" / "test" / queue / f"{name}.json").write_text(json.dumps(options))
    (drop / "new" / name).write_text(text)
    (drop / "new" / name).rename(drop / "inbox" / "test" / queue / name)


def files(drop, part):
    return sorted(str(p.relative_to(drop / part)) for p in (drop / part).rglob("*") if p.is_file())


def test_files_are_messages_and_go(server, drop):
    """In the order of their times."""
    for name, text, time in (("b", "first", 1_000_000), ("a", "second", 1_000_001)):
        move_in(drop, "mail", name, text)
        os.utime(drop / "inbox" / "test" / "mail" / name, (time, time))
    take_in(server, drop)
    assert payloads(take_all(server)) == ["first", "second"]
    assert files(drop, "inbox") == files(drop, "taken") == []


def test_a_file_that_is_moved_in_is_found_by_the_watch(server, drop):
    """LQ-47, LQ-49: no poll would come for an hour."""
    with Inbox(server, url(drop), "--poll-interval", "1h", "--poll-resilient", "1h", "--settle", "1h") as inbox:
        until(lambda: watches(inbox) == 3)  # inbox, test, mail
        move_in(drop, "mail", "one", "hello", key="k", priority=2)
        until(lambda: ready(server) == 1)
        (message,) = take_all(server)
        assert (payloads([message]), message["key"], message["priority"]) == (["hello"], "k", 2)
        (drop / "inbox" / "test" / "new").mkdir()
        until(lambda: watches(inbox) == 4)
        move_in(drop, "new", "two", "in a new queue")
        until(lambda: ready(server, "new") == 1)


def test_a_file_that_is_written_in_place_is_taken_when_it_has_settled(server, drop):
    place = drop / "inbox" / "test" / "mail"
    with Inbox(server, url(drop), "--settle", "300ms", "--poll-interval", "1h", "--poll-resilient", "1h"):
        (place / "slow").write_text("whole")
        until(lambda: ready(server) == 1)
    assert payloads(take_all(server)) == ["whole"]


def test_unfinished_files_are_left(server, drop):
    place = drop / "inbox" / "test" / "mail"
    for name in (".hidden", "a.tmp", "b.part", "c.json"):
        (place / name).write_text("{}")
    (drop / "inbox" / "not a queue").mkdir()
    take_in(server, drop)
    assert take_all(server) == []
    assert len(files(drop, "inbox")) == 4


def test_without_a_watch_the_folder_is_polled(server, drop):
    """LQ-54, LQ-57, LQ-58."""
    with Inbox(server, url(drop), "--no-watch", "--poll-interval", "50ms", "--poll-jitter", "0s", "--settle", "1ns") as inbox:
        move_in(drop, "mail", "one", "polled")
        until(lambda: ready(server) == 1)
        assert watches(inbox) == 0
        until(lambda: any("inbox polls" in line for line in inbox.errors))
    assert sum("inbox polls" in line for line in inbox.errors) == 1
    take_all(server)


def test_a_file_that_the_server_refuses_is_kept_with_the_reason(server, drop):
    move_in(drop, "mail", "bad", "x", max_attempts=-1)
    (drop / "inbox" / "test" / "mail" / "worse.json").write_text("{ not json")
    move_in(drop, "mail", "worse", "y")
    move_in(drop, "mail", "good", "z")
    assert "refused 2" in take_in(server, drop)
    assert payloads(take_all(server)) == ["z"]
    assert files(drop, "refused") == [f"test/mail/{n}" for n in ("bad", "bad.json", "bad.why", "worse", "worse.json", "worse.why")]
    assert "max_attempts" in (drop / "refused" / "test" / "mail" / "bad.why").read_text()


def test_a_second_inbox_waits(server, drop):
    with Inbox(server, url(drop)) as first, Inbox(server, url(drop)) as second:
        both = first.errors, second.errors
        until(lambda: any("another inbox is at work" in line for errors in both for line in errors))


def test_a_file_is_a_message_once_whatever_is_killed(server, drop):
    dice, n = random.Random(7), 300
    stop = threading.Event()

    def write():
        for i in range(n):
            move_in(drop, f"q{i % 3}", f"f{i}", f"{i}")
        stop.set()

    for i in range(3):
        (drop / "inbox" / "test" / f"q{i}").mkdir()
    inbox = Inbox(server, url(drop), "--poll-interval", "50ms", "--settle", "1ns")
    writer = threading.Thread(target=write)
    writer.start()
    kills = 0
    while not stop.is_set() or kills < 10:
        inbox.start()
        until(lambda: stop.is_set() or ((drop / "taken").exists() and os.listdir(drop / "taken")))
        threading.Event().wait(dice.random() / 20)
        inbox.stop(signal.SIGKILL)
        kills += 1
    writer.join()
    take_in(server, drop)
    got = [int(text) for q in range(3) for text in payloads(take_all(server, f"q{q}"))]
    assert sorted(got) == list(range(n))
    assert files(drop, "inbox") == files(drop, "taken") == []
