"""tools/check-layering: the order of src/."""
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
    ("src/exec/a.c", '"core/queue/queue.h"'),
    ("src/engine/a.c", '"wal/wal.h"'),
    ("src/cli/a.c", '"bench/bench.h"'),
    ("src/core/ledger/a.c", '"core/ledger/ledger_private.h"'),
    ("src/broker/move/a.c", '"broker/broker_private.h"'),
    ("src/broker/lane.c", '"broker/move/follow.h"'),
    ("src/engine/ledger/move/a.c", '"engine/ledger/move/move.h"'),
    ("include/sluice/a.h", "<sluice/api.h>"),
    ("include/sluice/a.h", "<stdint.h>"),
])
def test_downward_is_fine(tmp_path, name, include):
    done = run(tmp_path, name, include)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name, include, why", [
    ("src/base/a.c", '"core/queue/queue.h"', "base/ stands below core/"),
    ("src/core/a.c", '"exec/executor.h"', "core/ stands below exec/"),
    ("src/wal/a.h", '"engine/engine.h"', "wal/ stands below engine/"),
    ("src/exec/a.c", '"wal/wal.h"', "exec/ stands below wal/"),
    ("src/broker/a.c", '"api/flat/flat.h"', "broker/ stands below api/"),
    ("src/api/a.c", '"server/server.h"', "api/ stands below server/"),
    ("src/core/a.c", "<pthread.h>", PURE),
    ("src/core/a.c", "<time.h>", PURE),
    ("src/core/a.c", "<stdio.h>", PURE),
    ("src/core/a.h", "<unistd.h>", PURE),
    ("src/core/a.c", '"base/clock.h"', PURE),
    ("src/core/a.c", '"base/log.h"', PURE),
    ("src/base/a.c", '"heap.h"', "name it from src/"),
    ("src/base/a.c", '"sluice/err.h"', "include public headers with <>"),
    ("src/engine/log/a.c", '"core/ledger/ledger_private.h"', "only files below src/core/ledger/"),
    ("src/broker/a.c", '"broker/move/copy_private.h"', "only files below src/broker/move/"),
    ("src/api/apicall.c", '"http/call.h"', "api/apicall is for every protocol"),
    ("src/api/audit/audit.h", '"api/handler.h"', "api/audit is for every protocol"),
    ("src/broker/lane_run.c", '"broker/move/follow.h"', "moves are fenced"),
    ("src/engine/ledger/lock.c", '"engine/ledger/move/move.h"', "moves are fenced"),
    ("src/core/a_in.h", "<string.h>", "a private header ends in _private.h"),
    ("src/core/a_inner.h", "<string.h>", "a private header ends in _private.h"),
    ("src/odd/a.c", "<stdio.h>", "no row for odd/"),
    ("include/sluice/a.h", "<pthread.h>", "C standard library only"),
    ("include/sluice/a.h", '"base/heap.h"', "C standard library only"),
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
    assert ("only the broker chooses shards" in done.stdout) == bool(code)


def check(tree, files):
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    return subprocess.run([TOOL, tree], capture_output=True, text=True)


@pytest.mark.parametrize("other", ["src/cli/b.h", "include/sluice/b.h", "src/cli/b.c", "tests/lib/b.h"])
def test_two_structs_of_one_name_are_refused(tmp_path, other):
    done = check(tmp_path, {"src/base/a.h": "struct item {\n};\n", other: "\nstruct item {\n};\n"})
    assert done.returncode == 1
    assert "src/base/a.h:1" in done.stdout and f"{other}:2" in done.stdout
    assert "one name, one struct" in done.stdout


def test_a_struct_may_be_declared_in_many_headers_and_several_c_files_have_their_own(tmp_path):
    done = check(tmp_path, {"src/base/a.h": "struct item {\n};\n", "src/base/b.h": "struct item;\n",
                            "src/base/c.c": "struct state {\n};\n", "src/base/d.c": "struct state {\n};\n"})
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("n, code", [(60, 0), (61, 1)])
@pytest.mark.parametrize("folder, ending", [("src/base", "c"), ("tests/unit", "h"), ("tests/integration", "py")])
def test_a_folder_has_at_most_60_files(tmp_path, folder, ending, n, code):
    files = {f"{folder}/{i}.{ending}": "" for i in range(n)} | {f"{folder}/meson.build": ""}
    done = check(tmp_path, files)
    assert done.returncode == code
    assert (f"{folder}: 61 files, the limit is 60" in done.stdout) == bool(code)


def test_the_project_passes():
    done = subprocess.run([TOOL], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
