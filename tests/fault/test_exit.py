"""The exit code of a stop says whether all is on disk (MQ-54)."""
import pytest

from faults import Hurt

UNCLEAN = 3


@pytest.mark.parametrize("sync", ["sync", "interval=1h", "none"])
def test_a_stop_syncs_and_is_clean(folder, shim, sync):
    with Hurt(folder, "--sync", sync, shim=shim) as server:
        server.enqueue({"text": "x"})
        before = shim.get("syncs")
        server.stop()
        assert shim.get("syncs") > before
        assert "event=stopped" in server.said()
        server.start()
        assert server.stats()["total"] == 1


@pytest.mark.parametrize("sync", ["interval=1h", "none"])
def test_a_last_sync_that_fails_is_told(folder, shim, sync):
    with Hurt(folder, "--sync", sync, shim=shim) as server:
        server.enqueue({"text": "x"})
        server.prepared()
        shim.set("sync_fails", 1)
        server.stop(code=UNCLEAN)
        assert shim.get("sync_fails") == 0
        assert 'event="stopped, not cleanly"' in server.said()
        assert "event=stopped\n" not in server.said()


def test_a_stop_after_a_failure_is_not_clean(folder, shim):
    with Hurt(folder, shim=shim) as server:
        server.enqueue({"text": "x"})
        server.prepared()
        shim.set("sync_fails", 1)
        assert server.post("/enqueue", [server.here(text="y")]).status == 503
        server.stop(code=UNCLEAN)
        assert 'event="stopped, not cleanly"' in server.said()
