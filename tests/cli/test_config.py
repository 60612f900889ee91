"""`sluice admin config check` and `diff`: settings of a server before it has them."""
import json
import os
import subprocess

import pytest

SLUICE = os.environ["SLUICE"]

OLD = """
sharding:
  enabled: true
  version: 3
  commandMappings: {render: heavy, Email: light}
  tenantOverrides: {acme: heavy}
redis.shards:
  heavy: {address: "a:1", password: "${HEAVY}"}
  light: {address: "b:1"}
"""


def run(*args, **env):
    return subprocess.run([SLUICE, "admin", "config", *map(str, args)], capture_output=True,
                          text=True, timeout=60, env={**os.environ, "HEAVY": "horse", **env})


@pytest.fixture
def file(tmp_path):
    def write(text, name="new.yaml"):
        (tmp_path / name).write_text(text)
        return tmp_path / name
    return write


def test_a_sound_file_is_fine_and_what_is_odd_is_told(file):
    done = run("check", file(OLD + "  idle: {engine: memory}\n"))
    assert done.returncode == 0 and "the settings are valid" in done.stdout
    assert "warning: " in done.stderr and "shards.idle: no queue lives on this shard" in done.stderr
    assert "horse" not in done.stdout + done.stderr


@pytest.mark.parametrize("old, new, says", [
    ("render: heavy", "render: hevy", "command render: unknown shard hevy"),
    ("acme: heavy", "acme: gold", "tenant acme: unknown shard gold"),
    ("acme: heavy", "acme: heavy, ACME: light", "tenant acme is mapped twice"),
    ("enabled: true", "enabled: true\n  defaultShard: x", "defaultShard: unknown shard x"),
    ("enabled: true", "enabled: maybe", "sharding.enabled"),
    ("${HEAVY}", "${HEAVIER}", "unknown environment variable HEAVIER"),
])
def test_what_is_wrong_fails_a_pipeline(file, old, new, says):
    """SH-60"""
    assert old in OLD
    path = file(OLD.replace(old, new))
    done = run("check", path)
    assert done.returncode == 1 and says in done.stderr
    told = run("check", path, "--json")
    assert told.returncode == 1
    answer = json.loads(told.stdout)
    assert not answer["ok"] and any(says in f for f in answer["faults"])


def test_a_diff_names_who_moves_from_where_to_where(file):
    """SH-59"""
    old = file(OLD, "old.yaml")
    new = file(OLD.replace("version: 3", "version: 4").replace("render: heavy", "render: light")
               .replace("Email: light", "new: light")
               .replace("acme: heavy", "beta: light")
               .replace("redis.shards", "  previousShards.commandMappings: {render: heavy}\nredis.shards"))
    answer = json.loads(run("diff", old, new, "--json").stdout)
    assert {(m["kind"], m["name"], m["from"], m["to"], m["previous"]) for m in answer["moves"]} == {
        ("command", "render", "heavy", "light", True),
        ("command", "email", "light", "default", False),
        ("command", "new", "default", "light", False),
        ("tenant", "acme", "heavy", "default", False),
        ("tenant", "beta", "default", "light", False)}
    assert answer["ok"] and answer["old"]["version"] == 3 and answer["new"]["version"] == 4
    text = run("diff", old, new)
    assert text.returncode == 0 and "are not served until they are moved" in text.stdout
    assert run("diff", old, old).stdout == "the maps are the same\n"


def test_a_diff_fails_when_the_version_does_not_rise(file):
    old = file(OLD, "old.yaml")
    done = run("diff", old, file(OLD.replace("render: heavy", "render: light")))
    assert done.returncode == 1 and "sharding.version must rise" in done.stderr
    assert run("diff", old, file(OLD.replace("render: heavy", "render: hevy"))).returncode == 1


def test_a_diff_of_hashes_tells_how_many(file):
    """SH-F1: one shard more takes about 1/N of a ring."""
    ring = OLD.replace("enabled: true", "enabled: true\n  supplier: ring\n  shards: [heavy, light]")
    new = ring.replace("version: 3", "version: 4").replace("[heavy, light]", "[heavy, light, more]")
    answer = json.loads(run("diff", file(ring, "old.yaml"),
                            file(new + "  more: {engine: memory}\n"), "--json").stdout)
    assert 15 < answer["percent"] < 55


@pytest.mark.parametrize("args", [["chek", "x"], ["check"], ["diff", "one"]])
def test_wrong_calls_are_told(args):
    done = run(*args)
    assert done.returncode == 2 and "check FILE" in done.stderr
