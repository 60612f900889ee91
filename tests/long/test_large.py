"""More than fits into memory."""
import re
import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "integration"))
from served import Server, texts  # noqa: E402

MEMORY = 64 << 20  # what the server may take beyond what it has when it is empty
SIZE = 5 << 10
BATCH = 200


def allowed(pid):
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmData:\s*(\d+) kB", status)[1]) * 1024 + MEMORY


def test_what_is_queued_may_be_four_times_the_memory(tmp_path):
    """SH-12: a limit that the kernel keeps; all of it is there, byte for byte, also after a
    restart under the same limit."""
    n = 4 * MEMORY // SIZE // BATCH * BATCH
    with Server(tmp_path / "data", "--sync", "none") as server:
        limit = allowed(server.process.pid)
        resource.prlimit(server.process.pid, resource.RLIMIT_DATA, (limit, limit))
        for i in range(0, n, BATCH):
            server.enqueue(*({"text": f"{k:08}".ljust(SIZE, ".")} for k in range(i, i + BATCH)))
        assert server.stats()["ready"] == n
        server.restart("stop")
        resource.prlimit(server.process.pid, resource.RLIMIT_DATA, (limit, limit))
        for i in range(0, n, BATCH):
            taken = server.dequeue(limit=BATCH)
            assert texts(taken) == [f"{k:08}".ljust(SIZE, ".") for k in range(i, i + BATCH)]
            done = server.post("/ack", [server.here(id=m["id"], lease_id=m["lease_id"]) for m in taken])
            assert done.status == 200, done
        assert server.stats()["ready"] == 0
