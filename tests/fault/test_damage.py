"""Files that are not as they were written: refuse and name it, or serve what is right."""
import random
import re
from pathlib import Path

import pytest

from faults import LONG, Hurt, Refused, refusal, seed
from load import pages
from served import texts

SEGMENT = 64 << 20
SAMPLES = 600 if LONG else 24


class Folder:
    """The files of a stopped server as bytes, without the zeros at their ends."""

    def __init__(self, path):
        self.files = {}
        for file in sorted(Path(path).rglob("*")):
            if file.is_file() and not file.name.startswith("spare-"):
                raw = file.read_bytes()
                self.files[str(file.relative_to(path))] = len(raw), raw.rstrip(b"\0")

    def write(self, path, changed=None):
        """Spare segments stay: they hold nothing, and take long to make."""
        for file in Path(path).rglob("*"):
            if file.is_file() and not re.fullmatch(r"spare-\d+", file.name):
                file.unlink()
        for name, (size, raw) in {**self.files, **(changed or {})}.items():
            file = Path(path) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            with open(file, "wb") as out:
                out.write(raw)
                out.truncate(size)

    def log(self):
        """The newest segment."""
        return max(name for name in self.files if name.endswith(".log"))

    def durable(self):
        return next(name for name in self.files if name.endswith("durable"))


def contents(server):
    """Everything a client can learn of the queue but what changes by itself."""
    return {row["id"]: (row["status"], row["payload"], row.get("key"), row["priority"],
                        row["attempts"]) for row in pages(server, "/peek", state="all")}


@pytest.fixture
def made(folder):
    """A folder with a bit of everything, and what is in it."""
    with Hurt(folder) as server:
        server.policy(lease="1h", max_attempts=3)
        server.enqueue(*({"text": f"m{i} " + "x" * 50, "key": f"k{i % 3}", "priority": i % 5}
                         for i in range(20)))
        server.enqueue({"text": "later", "delay": "10h", "idempotency_key": "i"})
        messages = server.dequeue(limit=3)
        server.ack(messages[0])
        server.nack(messages[1], dead=True, error="bad")
        expected = contents(server)
        server.kill()
    return Folder(folder), expected


def unchanged(folder, files):
    """Nothing was deleted or repaired."""
    for name, (size, raw) in files.items():
        if name.endswith(".log"):
            with open(folder / name, "rb") as file:
                found = file.read(len(raw) + 4096)
            assert (folder / name).stat().st_size == size
            assert found.rstrip(b"\0") == raw.rstrip(b"\0"), name


def flip(raw, at, bit):
    return raw[:at] + bytes([raw[at] ^ 1 << bit]) + raw[at + 1:]


def test_a_flipped_bit_is_refused_by_name_or_does_no_harm(made, folder):
    """Fault 5. Every byte of small logs: tests/unit/wal/test_wal_damage.c"""
    files, expected = made
    dice = random.Random(seed(5))
    spots = [(name, at) for name, (_, raw) in files.files.items() for at in range(len(raw))]
    # The last bytes too: the group that was synced last.
    end = len(files.files[files.log()][1]) - 1
    chosen = dice.sample(spots, min(SAMPLES, len(spots))) + [
        (files.log(), end - i) for i in range(5)]
    refused = 0
    for name, at in chosen:
        size, raw = files.files[name]
        changed = {name: (size, flip(raw, at, dice.randrange(8)))}
        files.write(folder, changed)
        try:
            with Hurt(folder) as server:
                assert contents(server) == expected, (name, at)
                server.kill()
        except Refused as said:
            refused += 1
            told = re.search(rf"^sluiced: {Path(name).name}: .*\bat (\d+)", str(said), re.M)
            assert told and int(told[1]) <= at, (name, at, said)
            unchanged(folder, {**files.files, **changed})
    assert refused > len(chosen) // 2  # most bytes matter


def test_a_zeroed_or_stale_block_is_refused_or_does_no_harm(made, folder):
    """Fault 6"""
    files, expected = made
    name = files.log()
    size, raw = files.files[name]
    for block in range(0, len(raw), 512):
        changed = {name: (size, raw[:block] + bytes(512) + raw[block + 512:])}
        files.write(folder, changed)
        try:
            with Hurt(folder) as server:
                assert contents(server) == expected, block
                server.kill()
        except Refused as said:
            assert Path(name).name in str(said), said
            unchanged(folder, {**files.files, **changed})


def test_a_torn_group_is_cut_and_what_was_answered_is_there(made, folder):
    """Fault 4: cut within a group whose sync has not returned, at any byte; MQ-09"""
    files, expected = made
    files.write(folder)
    with Hurt(folder) as server:
        before = contents(server)
        known = Folder(folder)
        more = server.enqueue({"text": "torn", "priority": 1}, {"text": "too"})
        after = contents(server)
        server.kill()
    assert before == expected
    torn = Folder(folder)
    name = torn.log()
    size, raw = torn.files[name]
    start = len(known.files[name][1])
    dice = random.Random(seed(4))
    cuts = sorted(dice.sample(range(start, len(raw)), min(SAMPLES // 2, len(raw) - start)))
    for cut in [start, *cuts, len(raw)]:
        tail = dice.choice((b"", dice.randbytes(40)))  # or what was there before
        # As the sync had not returned, the file `durable` is the older one.
        torn.write(folder, {name: (size, raw[:cut] + (tail if cut < len(raw) else b"")),
                            known.durable(): known.files[known.durable()]})
        with Hurt(folder) as server:
            found = contents(server)
            assert found == (after if cut == len(raw) else before), cut
            new, = server.enqueue({"text": "next"})
            assert new > max(more)  # MQ-05: not even the ids that were lost come again
            server.restart("kill")
            assert new in contents(server)
            server.kill()


def test_a_synced_group_that_is_cut_is_damage(made, folder):
    """`durable` says that it was whole."""
    files, _ = made
    name = files.log()
    size, raw = files.files[name]
    for cut in (1, 10, 200):
        changed = {name: (size, raw[:-cut])}
        files.write(folder, changed)
        with pytest.raises(Refused) as said:
            Hurt(folder)
        assert Path(name).name in str(said.value)
        unchanged(folder, {**files.files, **changed})


def test_a_payload_that_goes_bad_under_a_running_server_is_never_handed_out(server):
    """Fault 5, found on read: set aside and reported, not deleted, and the others are served."""
    server.enqueue(*({"text": f"payload-{i}-" + "z" * 100} for i in range(10)))
    path = server.files()[-1]
    with open(path, "r+b") as file:
        at = file.read(1 << 20).index(b"payload-3-") + 20
        file.seek(at)
        file.write(b"!")
    got = []
    for _ in range(30):
        answer = server.get("/dequeue", **server.here(limit=1))
        if answer.status == 200:
            got += texts(answer.body)
        else:
            assert answer.status == 500 and answer.body["error"] == "corrupt", answer
    assert sorted(got) == sorted(f"payload-{i}-" + "z" * 100 for i in range(10) if i != 3)
    assert server.stats()["total"] == 10
    server.kill()
    assert path.name in refusal(server.folder)
