"""`sluice admin store`: a store that the line's state machine filled, listed, shown and checked."""
import json
import os
import re
import subprocess

import pytest

SLUICE = os.environ["SLUICE"]
MAKE_LINE = os.environ["MAKE_LINE"]


class Store:
    def __init__(self, folder):
        self.folder = folder
        self.url = f"file://{folder}"

    def fill(self, shard, groups, *begin):
        """Takes the shard: an opening. Then groups; a span has four."""
        subprocess.run([MAKE_LINE, self.url, shard, str(groups), *map(str, begin)], check=True, timeout=60)

    def run(self, verb, *words, code=0):
        done = subprocess.run([SLUICE, "admin", "store", verb, self.url, *words],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def rows(self, verb, *words, code=0):
        return [json.loads(line) for line in self.run(verb, *words, "--json", code=code).stdout.splitlines()]

    def path(self, shard, kind, number):
        return self.folder / shard / kind / f"{number:020}"

    def files(self):
        return {str(p): (p.stat().st_mtime_ns, p.is_file() and p.read_bytes()) for p in self.folder.rglob("*")}


@pytest.fixture
def store(tmp_path):
    """Shard 0: groups 1 to 10 by one owner, 11 to 16 by the next; spans 1, 5, 9 and 13. Shard 1: groups 1 to 3."""
    store = Store(tmp_path / "store")
    store.fill("0", 9)
    store.fill("0", 5)
    store.fill("1", 2)
    return store


def damage(path, at=-1):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


# --- ls ---------------------------------------------------------------------------

def test_ls_counts_the_objects_of_each_shard(store):
    assert store.rows("ls") == [
        {"folder": "0", "groups": 4, "spans": 4, "last": 16, "others": 0},
        {"folder": "1", "groups": 3, "spans": 0, "last": 3, "others": 0},
        {"folder": "node", "groups": 0, "spans": 0, "last": 0, "others": 3},
        {"folder": "settings", "groups": 0, "spans": 0, "last": 0, "others": 1}]
    head, first, *_ = store.run("ls").stdout.splitlines()
    assert head.split() == ["FOLDER", "GROUPS", "SPANS", "LAST", "OTHERS"] and first.split() == ["0", "4", "4", "16", "0"]


def test_ls_of_a_shard_lists_its_objects(store):
    assert store.rows("ls", "1") == [
        {"name": f"1/group/{n:020}", "kind": "group", "number": n} for n in (1, 2, 3)]
    assert re.search(r"^0/span/0{19}5 +span +5$", store.run("ls", "0").stdout, re.M)
    assert store.rows("ls", "settings") == [{"name": f"settings/{1:020}", "kind": "settings", "number": 1}]
    assert [row["kind"] for row in store.rows("ls", "node")] == ["node"] * 3
    assert "no such shard: 7" in store.run("ls", "7", code=3).stderr


def test_ls_of_an_empty_store_is_empty(tmp_path):
    (tmp_path / "empty").mkdir()
    assert Store(tmp_path / "empty").rows("ls") == []


# --- show -------------------------------------------------------------------------

def test_show_prints_a_group(store):
    group, = store.rows("show", "1/group/2")
    assert group["name"] == f"1/group/{2:020}" and group["kind"] == "group" and group["number"] == 2
    assert group["epoch"] == 1 and group["opening"] is False and group["begin"] == 1
    assert group["pieces"] == [{"segment": 1, "offset": 8192, "bytes": len("piece 2")}]
    assert group["bytes"] == 88 + group["body_bytes"]
    opening, = store.rows("show", f"1/group/{1:020}")
    assert opening["opening"] is True and opening["mark"] == group["before"] and opening["life"] == group["life"]
    assert re.search(r"^epoch +1$", store.run("show", "1/group/2").stdout, re.M)


def test_show_prints_a_span(store):
    span, = store.rows("show", "0/span/9")
    assert (span["kind"], span["first"], span["last"]) == ("span", 9, 12)
    assert [g["number"] for g in span["groups"]] == [9, 10, 11, 12]
    assert [g["epoch"] for g in span["groups"]] == [1, 1, 2, 2]
    assert [g["opening"] for g in span["groups"]] == [False, False, True, False]
    assert all(a["mark"] == b["before"] for a, b in zip(span["groups"], span["groups"][1:]))


def test_show_names_what_is_wrong(store):
    assert "no such object: 1/group/9" in store.run("show", "1/group/9", code=3).stderr
    damage(store.path("1", "group", 2))
    said = store.run("show", "1/group/2", code=1).stderr
    assert f"1/group/{2:020}: bad checksum" in said
    (store.folder / "node/5e1f").write_text("of another program")
    assert store.rows("show", "node/5e1f") == [{"name": "node/5e1f", "kind": "other", "bytes": 18}]


def test_show_prints_nodes(store):
    name = store.rows("ls", "node")[0]["name"]
    node, = store.rows("show", name)
    assert node["name"] == "node/" + node["life"] and node["beat"] == 7 and node["node"] == "a"
    assert node["address"] == "127.0.0.1:7171" and node["draining"] is False
    (shard,) = node["shards"]
    assert shard["shard"] in (0, 1) and shard["epoch"] in (1, 2) and shard["given"] is False


def test_show_prints_settings_without_the_secret(store):
    settings, = store.rows("show", "settings/1")
    assert settings["shards"] == 2 and settings["uuid"] == b"0123456789abcdef".hex()
    for said in (store.run("show", "settings/1").stdout, json.dumps(settings)):
        assert "do not show" not in said and b"do not show".hex() not in said


# --- check ------------------------------------------------------------------------

def test_check_finds_every_shard_sound(store):
    objects, first, second = store.rows("check")
    assert objects == {"objects": 4, "sound": True, "problems": []}
    assert first.pop("time").startswith("20")
    assert first == {"shard": "0", "sound": True, "begin": 1, "first": 1, "last": 16, "epoch": 2, "spans": 4,
                     "loose": 4, "stray": 0, "problems": []}
    assert second["shard"] == "1" and second["sound"] and second["last"] == 3 and second["loose"] == 3
    assert store.run("check", "1").stdout.startswith("shard 1: sound, groups 1 to 3,")


def test_a_hole_before_the_beginning_of_the_log_is_normal(store):
    store.fill("0", 8, 9)  # LINE-7: spans 1 and 5 are removed
    assert not store.path("0", "span", 1).exists() and store.path("0", "group", 1).exists()
    row, = store.rows("check", "0")
    assert row["sound"] and row["begin"] == 9 and row["first"] == 1 and row["epoch"] == 3


def test_a_stray_opening_is_no_damage(store):
    """LINE-3: a node may put an opening where the name is free only because its group was removed."""
    other = Store(store.folder.parent / "other")
    other.fill("0", 0)
    store.path("0", "group", 6).write_bytes(other.path("0", "group", 1).read_bytes())
    row, = store.rows("check", "0")
    assert row["sound"] and row["stray"] == 1


def problems(store, shard="0"):
    row, = store.rows("check", shard, code=1)
    assert row["sound"] is False
    return row["problems"]


def test_check_names_missing_objects(store):
    store.path("0", "span", 5).unlink()
    assert problems(store) == ["groups 5 to 8 are missing"]
    store.path("1", "group", 2).unlink()
    assert problems(store, "1") == ["group 2 is missing"]
    said = store.run("check", code=1)
    assert "shard 0: damaged" in said.stdout and "  groups 5 to 8 are missing" in said.stdout
    assert "the store is damaged" in said.stderr


def test_check_names_damaged_settings_and_nodes(store):
    node = store.rows("ls", "node")[1]["name"]
    damage(store.folder / node)
    damage(store.path("settings", "", 1))
    objects, first, second = store.rows("check", code=1)
    assert objects["problems"] == [f"settings/{1:020}: bad checksum", f"{node}: bad checksum"]
    assert first["sound"] and second["sound"]
    assert "settings and nodes: damaged, 4 objects" in store.run("check", code=1).stdout


def test_check_names_damaged_objects_and_goes_on(store):
    damage(store.path("0", "span", 1))          # the last byte: group 4
    damage(store.path("0", "span", 5), at=30)   # the head
    assert problems(store) == ["group 4: bad checksum", "span 5: bad checksum", "groups 5 to 8 are missing"]
    damage(store.path("1", "group", 2))
    assert problems(store, "1") == ["group 2: bad checksum"]


def test_check_notices_a_group_of_another_line(store):
    """LINE-5: sound by itself, and not the one that the next group names."""
    other = Store(store.folder.parent / "other")
    other.fill("1", 2)
    store.path("1", "group", 2).write_bytes(other.path("1", "group", 2).read_bytes())
    assert problems(store, "1") == ["group 2 does not continue group 1", "group 3 does not continue group 2"]
    store.path("1", "group", 2).write_bytes(store.path("1", "group", 3).read_bytes())
    assert problems(store, "1") == ["group 2 has the number 3"]


def test_check_compares_groups_with_their_spans(store):
    damage(store.path("0", "group", 11))  # the opening of the second owner, also in span 9
    assert problems(store) == ["group 11 is damaged, and sound in its span"]
    other = Store(store.folder.parent / "other")
    other.fill("0", 20)
    store.path("0", "group", 11).unlink()
    store.path("0", "group", 7).write_bytes(other.path("0", "group", 21).read_bytes())
    assert problems(store) == ["group 7 differs from the one in its span"]


def test_damaged_settings_count_in_a_store_without_shards(tmp_path):
    store = Store(tmp_path / "store")
    (store.folder / "settings").mkdir(parents=True)
    store.path("settings", "", 1).write_text("no settings")
    assert store.rows("check", code=1) == [
        {"objects": 1, "sound": False, "problems": [f"settings/{1:020}: not the settings of a store"]}]


def test_nothing_is_changed(store):
    before = store.files()
    for verb, *words in (["ls"], ["ls", "0"], ["show", "0/span/1"], ["check"]):
        store.run(verb, *words)
    assert store.files() == before


# --- calls that go wrong ------------------------------------------------------------

@pytest.mark.parametrize("words, code, says", [
    ([], 2, "missing init|ls|show|check"),
    (["ls"], 2, "missing URL"),
    (["sl", "file:///tmp"], 2, "did you mean ls?"),
    (["show", "file:///tmp"], 2, "expected show URL NAME"),
    (["ls", "file:///tmp", "0", "x"], 2, "unexpected word: x"),
    (["ls", "/srv/sluice"], 2, "invalid URL of a store: /srv/sluice; expected file://"),
    (["ls", "file://srv"], 2, "expected file:///absolute/path"),
    (["ls", "file:///no/such/folder"], 3, "the folder does not exist"),
    (["check", "EMPTY"], 3, "the store has no shards"),
    (["show", "EMPTY", "../x"], 1, "invalid name of an object"),
])
def test_wrong_calls_are_named(tmp_path, words, code, says):
    words = [word.replace("EMPTY", f"file://{tmp_path}") for word in words]
    done = subprocess.run([SLUICE, "admin", "store", *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == code and says in done.stderr, done.stderr


def test_a_shell_completes_the_verbs():
    script = (f"source <({SLUICE} completion bash); COMP_WORDS=({SLUICE} admin store ''); COMP_CWORD=3; _sluice; "
              "printf '%s\\n' \"${COMPREPLY[@]}\"")
    said = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=60).stdout
    assert {"ls", "show", "check", "adopt", "rejoin"} <= set(said.split())


def test_the_examples_of_the_help_run(store):
    said = subprocess.run([SLUICE, "admin", "store", "--help"], capture_output=True, text=True, timeout=60).stdout
    assert "exit codes:" in said and "sluice admin store check file:///srv/sluice" in said
    for line in re.findall(r"^  sluice admin store (?!adopt|rejoin|take)(.*)", said, re.M):  # tests of their own have those
        words = line.split(" | ")[0].replace("file:///srv/sluice", store.url).replace("0/group/7", "0/group/1").split()
        done = subprocess.run([SLUICE, "admin", "store", *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
