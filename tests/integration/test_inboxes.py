"""inboxes: messages of folders and databases that the server itself takes."""
import contextlib
import http.client
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from postgres import Postgres
from served import Node, Refused, Server, texts, until
from tokens import Secret

SLUICE = os.environ["SLUICE"]
QUICK = "inbox.watch: false\ninbox.poll_interval: 10ms\ninbox.poll_jitter: 0s\n"


def make_drop(folder, queue="mail"):
    (folder / "inbox/test" / queue).mkdir(parents=True)
    return folder


def move_in(drop, name, queue="mail"):
    """As a whole, as `mv` does it."""
    new = drop / f".{name}"
    new.write_text(name)
    new.rename(drop / "inbox/test" / queue / name)


def settings(*drops, more=""):
    return "inboxes:\n" + "".join(f"  - file://{drop}\n" for drop in drops) + more


def count(server, what, url):
    """0 before the server has started the inbox."""
    try:
        return server.metric(f'sluice_inbox_{what}{{inbox="{url}"}}')
    except KeyError:
        return 0


def own_port(server):
    """The port of the HTTP listener that is not announced."""
    sockets = {os.readlink(fd) for fd in Path(f"/proc/{server.process.pid}/fd").iterdir() if fd.is_symlink()}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ports = {int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets}
    links = {int(port) for port in re.findall(r'"links to other nodes" port=(\d+)', server.said())}
    return (ports - links - {server.address[1]}).pop()


def test_a_file_is_a_message_of_the_server(tmp_path):
    """LQ-47: no command runs beside the server."""
    drop = make_drop(tmp_path / "drop")
    with Server(tmp_path / "data", "--inboxes", f"file://{drop}") as server:
        move_in(drop, "one")
        assert texts([server.take(wait="60s")]) == ["one"]
        until(lambda: count(server, "messages_total", f"file://{drop}") == 1)
        assert count(server, "batches_total", f"file://{drop}") == 1
        assert count(server, "refused_total", f"file://{drop}") == 0
        until(lambda: count(server, "up", f"file://{drop}") == 1)
        assert list((drop / "inbox/test/mail").iterdir()) == []


def test_only_the_server_itself_is_served_on_the_address_of_its_inboxes(tmp_path):
    """INBOXES-1: also if no token is needed elsewhere; and the inbox needs none if every caller does."""
    key = Secret("0123456789abcdef0123456789abcdef")
    (tmp_path / "key").write_bytes(key.secret)
    drop = make_drop(tmp_path / "drop")
    with Server(tmp_path / "data", "--inboxes", f"file://{drop}", "--auth-keys", f"HS256:{tmp_path}/key") as server:
        move_in(drop, "one")
        bearer = key.bearer(scope="*:*")
        taken = server.call("GET", "/dequeue", headers=bearer, namespace="test", topic="mail", wait="60s")
        assert taken.status == 200, taken
        assert texts(taken.body) == ["one"]
    with Server(tmp_path / "data", "--inboxes", f"file://{drop}") as server:
        assert server.get("/topics", namespace="test").status == 200
        for fields in {}, bearer:
            c = http.client.HTTPConnection("127.0.0.1", own_port(server), timeout=60)
            c.request("GET", "/topics?namespace=test", headers=fields)
            assert c.getresponse().status == 401
            c.close()


def test_a_reload_starts_and_stops_inboxes(tmp_path):
    """INBOXES-3"""
    one, two = make_drop(tmp_path / "one"), make_drop(tmp_path / "two")
    with Node(tmp_path, settings(one)) as server:
        move_in(one, "a")
        assert texts([server.take(wait="60s")]) == ["a"]
        server.reload(settings(one, two))
        move_in(two, "b")
        assert texts([server.take(wait="60s")]) == ["b"]
        assert count(server, "messages_total", f"file://{one}") == 1  # the same inbox as before
        server.reload(settings(two, more=QUICK))
        assert server.said().count(f"inbox stopped\" from=file://{one}") == 1
        assert server.said().count(f"inbox stopped\" from=file://{two}") == 1  # its settings are others
        move_in(one, "left")
        move_in(two, "c")
        assert texts([server.take(wait="60s")]) == ["c"]
        assert (one / "inbox/test/mail/left").exists()
        server.reload(settings(two, more=QUICK).replace("inboxes:\n", "inboxes:\n  - nothing://x\n"), "reload failed")
        server.reload(settings(one))
        assert texts([server.take(wait="60s")]) == ["left"]


def test_the_first_inbox_needs_a_restart(tmp_path):
    drop = make_drop(tmp_path / "drop")
    with Node(tmp_path, "drain: 1s\n") as server:
        server.reload(settings(drop), "the server started without one; the first inbox needs a restart")
        move_in(drop, "one")
        server.restart()
        assert texts([server.take(wait="60s")]) == ["one"]


@pytest.mark.parametrize("url, why", [
    ("nothing://x", "inboxes: invalid URL: nothing://x; expected postgres://HOST/DATABASE, file:///FOLDER, s3://BUCKET or azure://ACCOUNT/CONTAINER"),
    ("postgres://me:secret@db/shop", "inboxes: a URL has a password; expected it in PGPASSWORD or ~/.pgpass"),
])
def test_a_wrong_url_is_refused_by_name(tmp_path, url, why):
    with pytest.raises(Refused) as refused:
        Server(tmp_path / "data", "--inboxes", url)
    assert why in str(refused.value) and "secret" not in str(refused.value)


def watches(server):
    """The inotify descriptors of the server. Others may be closed meanwhile."""
    found = []
    for fd in Path(f"/proc/{server.process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found += [fd] if "inotify" in os.readlink(fd) else []
    return found


def test_the_settings_of_an_inbox_are_those_of_the_server(tmp_path):
    """A file of a minute ago, written in place, has settled by the default, and not by this setting."""
    drop = make_drop(tmp_path / "drop")
    with Node(tmp_path, settings(drop, more="inbox.settle: 1h\ninbox.poll_resilient: 50ms\n")) as server:
        until(lambda: count(server, "up", f"file://{drop}") == 1)
        written = drop / "inbox/test/mail/written"
        written.write_text("written")
        os.utime(written, (time.time() - 60, time.time() - 60))
        move_in(drop, "moved")
        assert texts([server.take(wait="60s")]) == ["moved"]
        assert written.exists()
        server.reload(settings(drop, more=QUICK))
        assert texts([server.take(wait="60s")]) == ["written"]
        assert not watches(server)
        move_in(drop, "polled")
        assert texts([server.take(wait="60s")]) == ["polled"]


def test_a_database_is_an_inbox_of_the_server_whatever_is_killed(tmp_path):
    """INBOXES-2: without the tables the server goes on, and tries again."""
    with Postgres() as db:
        url = f"postgres://postgres@127.0.0.1:{db.port}/postgres"
        with Server(tmp_path / "data", "--inboxes", url, engine="log") as server:
            until(lambda: "inbox failed, tried again later" in server.said())
            server.enqueue({"text": "other work"})
            done = subprocess.run([SLUICE, "inbox", "init", "--from", url], capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
            db.sql("SELECT sluice.push('test', 'mail', 'pushed ' || n) FROM generate_series(10, 59) AS n")
            until(lambda: count(server, "messages_total", url) > 0)
            server.kill()
            db.sql("SELECT sluice.push('test', 'mail', 'later')")
            server.start()
            until(lambda: db.sql("SELECT count(*) FROM sluice.inbox") == "0")
            found = sorted(texts(server.dequeue(limit=1000)))
            assert found == ["later", "other work", *(f"pushed {n}" for n in range(10, 60))]
