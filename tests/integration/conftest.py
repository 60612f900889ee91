import itertools
import re
import shutil
import sys
from pathlib import Path

import pytest

from clustered import two
from served import ENGINE, Server

sys.path.insert(0, str(Path(__file__).parent.parent / "lib"))
from redis import Redis  # noqa: E402

count = itertools.count(1)


@pytest.fixture(scope="session", autouse=True)
def redis_for_all(tmp_path_factory):
    """Where the messages of all servers are, if that is the engine."""
    if ENGINE != "redis":
        yield
        return
    with Redis(tmp_path_factory.mktemp("redis")) as redis, pytest.MonkeyPatch.context() as env:
        env.setenv("SLUICE_REDIS_ADDRESS", redis.address)
        yield


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One server a file of tests: starting one takes a while."""
    folder = tmp_path_factory.mktemp("served") / "data"
    with Server(folder) as server:
        yield server
    shutil.rmtree(folder, ignore_errors=True)  # not every engine has one


@pytest.fixture
def server(shared, request):
    """The file's server, with a namespace that no other test has."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:80].strip("-")
    shared.namespace = f"{name}-{next(count)}"
    shared.topic = "mail"
    return shared


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A node that owns all shards of a store, and one that owns none: two a file of tests."""
    with two(tmp_path_factory.mktemp("two")) as servers:
        yield servers


@pytest.fixture
def pair(running):
    """The file's two nodes, with a namespace and a queue that no other test has."""
    name = f"test{next(count)}"
    for server in running:
        server.namespace = server.topic = name
    return running


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """For servers of a test's own: they find nothing that another test has left."""
    monkeypatch.setenv("SLUICE_REDIS_PREFIX", f"own{next(count)}")
    yield tmp_path / "data"
    shutil.rmtree(tmp_path / "data", ignore_errors=True)
