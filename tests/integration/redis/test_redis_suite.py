"""The suite that defines an engine, on a Redis Cluster of three masters."""
import os
import subprocess
from pathlib import Path

import pytest

from redis import Cluster

PROGRAMS = os.environ["ENGINE_TESTS"].split(":")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("cluster"), "--appendonly", "no") as cluster:
        yield cluster


@pytest.mark.parametrize("program", PROGRAMS, ids=[Path(p).name for p in PROGRAMS])
def test_an_engine_on_a_cluster_is_one_as_all_others(cluster, program):
    """SH-37, SH-38"""
    done = subprocess.run([program, "redis_"], env={**os.environ, "RIG_REDIS": cluster.address},
                          stdout=subprocess.PIPE, text=True, timeout=240)
    assert done.returncode == 0 and "\nok " in "\n" + done.stdout, done.stdout
    for node in cluster.nodes:
        assert "CROSSSLOT" not in node.command("INFO", "errorstats")
