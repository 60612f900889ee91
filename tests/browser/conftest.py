"""One browser a file of tests, and a filled server."""
import pytest

from chromium import Chromium
from filled import base_of, beat, fill
from served import Server


@pytest.fixture(scope="module")
def chromium():
    browser = Chromium()
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One with some of everything."""
    folder = tmp_path_factory.mktemp("console")
    with Server(folder / "data", "--sync", "none", "--audit-file", str(folder / "audit"), engine="log",
                namespace="ops", topic="jobs") as server:
        fill(server)
        yield server


@pytest.fixture
def console(chromium, server):
    """The console on the filled server, at its first page."""
    beat(server)
    chromium.visit(base_of(server))
    chromium.ready()
    return chromium
