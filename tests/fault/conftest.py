import pytest

from faults import Hurt, Shim, remove


@pytest.fixture
def folder(tmp_path):
    """A data folder; a log grows to 256 MiB and more, so it is not left behind."""
    yield tmp_path / "data"
    remove(tmp_path / "data")


@pytest.fixture
def server(folder):
    with Hurt(folder) as server:
        yield server


@pytest.fixture
def shim(tmp_path):
    return Shim(tmp_path / "faults")
