import itertools
import re
import shutil

import pytest

from served import Server

count = itertools.count(1)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One server a file of tests: a log is 256 MiB of prepared disk."""
    folder = tmp_path_factory.mktemp("served") / "data"
    with Server(folder) as server:
        yield server
    shutil.rmtree(folder)


@pytest.fixture
def server(shared, request):
    """The file's server, with a namespace that no other test has."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:80].strip("-")
    shared.namespace = f"{name}-{next(count)}"
    shared.topic = "mail"
    return shared


@pytest.fixture
def folder(tmp_path):
    yield tmp_path / "data"
    shutil.rmtree(tmp_path / "data", ignore_errors=True)
