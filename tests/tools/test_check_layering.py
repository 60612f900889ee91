"""tools/check-layering: includes point downward only."""
import subprocess
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "check-layering"
PURE = "core/ has no clock, I/O, lock or log"


def run(tree, name, include):
    path = tree / name
    path.parent.mkdir(parents=True)
    path.write_text(f"/* a file */\n#include {include}\n")
    return subprocess.run([TOOL, tree], capture_output=True, text=True)


@pytest.mark.parametrize("name, include", [
    ("src/base/a.c", "<pthread.h>"),
    ("src/base/a.c", '"base/heap.h"'),
    ("src/base/a.c", "<sluice/err.h>"),
    ("src/core/a.c", '"base/heap.h"'),
    ("src/core/a.h", "<string.h>"),
    ("src/exec/a.c", '"core/queue.h"'),
    ("src/engine/a.c", '"wal/wal.h"'),
    ("src/cli/a.c", '"bench/bench.h"'),
    ("include/sluice/a.h", "<sluice/api.h>"),
    ("include/sluice/a.h", "<stdint.h>"),
])
def test_downward_is_fine(tmp_path, name, include):
    done = run(tmp_path, name, include)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name, include, why", [
    ("src/base/a.c", '"core/queue.h"', "base/ stands below core/"),
    ("src/core/a.c", '"exec/executor.h"', "core/ stands below exec/"),
    ("src/wal/a.h", '"engine/engine.h"', "wal/ stands below engine/"),
    ("src/exec/a.c", '"wal/wal.h"', "exec/ stands below wal/"),
    ("src/broker/a.c", '"api/flat.h"', "broker/ stands below api/"),
    ("src/api/a.c", '"server/server.h"', "api/ stands below server/"),
    ("src/core/a.c", "<pthread.h>", PURE),
    ("src/core/a.c", "<time.h>", PURE),
    ("src/core/a.c", "<stdio.h>", PURE),
    ("src/core/a.h", "<unistd.h>", PURE),
    ("src/core/a.c", '"base/clock.h"', PURE),
    ("src/core/a.c", '"base/log.h"', PURE),
    ("src/base/a.c", '"heap.h"', "name it from src/"),
    ("src/base/a.c", '"sluice/err.h"', "included with <>"),
    ("src/odd/a.c", "<stdio.h>", "no row for odd/"),
    ("include/sluice/a.h", "<pthread.h>", "C standard library alone"),
    ("include/sluice/a.h", '"base/heap.h"', "C standard library alone"),
])
def test_what_points_elsewhere_is_refused(tmp_path, name, include, why):
    done = run(tmp_path, name, include)
    assert done.returncode == 1
    assert name in done.stdout and why in done.stdout


@pytest.mark.parametrize("name, code", [("src/api/a.c", 1), ("src/engine/a.c", 1),
                                        ("src/server/a.c", 1), ("src/broker/a.c", 0)])
def test_the_broker_alone_chooses_a_shard(tmp_path, name, code):
    """SH-30: no dialect and no engine has a word of where a queue lives."""
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text("	rc = shardmap_current(m, space, queue, &out, err);\n")
    done = subprocess.run([TOOL, tmp_path], capture_output=True, text=True)
    assert done.returncode == code
    assert ("the broker chooses shards" in done.stdout) == bool(code)


def test_the_project_passes():
    done = subprocess.run([TOOL], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
