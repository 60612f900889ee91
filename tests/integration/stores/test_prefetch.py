"""A server that has taken a shard fetches large payloads ahead of its consumers: prefetch.batch, prefetch.bytes."""
import pytest

from onstore import stored
from served import texts, until

SIZE = 1_100_000  # bytes: such a payload has a file of its own


def files(folder):
    return len([path for path in folder.glob("**/payloads/*") if path.name != "fetch"])


@pytest.fixture
def store(tmp_path):
    """A store with six large messages, which no folder has."""
    url = f"file://{tmp_path}/store"
    with stored(tmp_path / "first", url) as first:
        first.enqueue(*({"text": f"{n}" * SIZE} for n in range(6)))
    return url


def claim(server, folder, n, ahead):
    """The n-th message. Never more than `ahead` payloads are fetched beyond it."""
    assert texts([server.take()]) == [f"{n - 1}" * SIZE]

    def is_ahead():
        found = files(folder)
        assert found <= n + ahead
        return found == min(n + ahead, 6)
    until(is_ahead)


def test_payloads_of_the_next_messages_are_fetched_ahead(tmp_path, store):
    """MQ-17, MQ-20, MQ-23, MQ-29: the first claim makes the next two ready; they are read in the folder, and an urgent
    message still comes first."""
    folder = tmp_path / "second"
    with stored(folder, store, "--prefetch-batch", "2", "--grace", "30s") as server:
        assert files(folder) == 0
        claim(server, folder, 1, 2)
        claim(server, folder, 2, 2)
        hidden = [(path, path.with_name("hidden")) for path in (tmp_path / "store").glob("*/payload")]
        for path, other in hidden:
            path.rename(other)
        server.enqueue({"text": "urgent", "priority": 0})
        assert texts([server.take()]) == ["urgent"]
        assert texts([server.take()]) == ["2" * SIZE]
        for path, other in hidden:
            other.rename(path)
        claim(server, folder, 4, 2)


def test_bytes_bound_what_is_fetched_ahead(tmp_path, store):
    """MQ-20: prefetch.bytes has room for one payload."""
    folder = tmp_path / "second"
    with stored(folder, store, "--prefetch-bytes", str(SIZE + SIZE // 2)) as server:
        claim(server, folder, 1, 1)
        claim(server, folder, 2, 1)
