"""`sluice torture` with two servers on a real store that dies meanwhile, again and again."""
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from faults import LONG

sys.path.insert(0, str(Path(__file__).parent.parent / "lib"))
from azurite import Azurite  # noqa: E402
from postgres import Postgres  # noqa: E402
from rgw import Gateway  # noqa: E402

SLUICE = os.environ["SLUICE"]
SECONDS = 600 if LONG else 6  # of each store


KINDS = ["postgres", "azure", "s3"] if LONG else ["postgres"]


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    kinds = {"postgres": Postgres, "azure": lambda: Azurite(tmp_path / "store"), "s3": lambda: Gateway(tmp_path / "store")}
    with kinds[request.param]() as server:
        yield server


def restart(store):
    if isinstance(store, Gateway):
        store.stop_gateway()
        store.start_gateway()
    else:
        store.stop()
        store.start()


def test_servers_on_a_store_that_dies_keep_every_promise(store, tmp_path):
    """Faults 13, 15, 16: servers are killed, paused, drained and cut off from the store; the store is stopped at once and
    started again."""
    dice = random.Random(1)
    command = [SLUICE, "torture", "--for", f"{SECONDS}s", "--faults", "kill,restart,pause,workers,connections,owner,drain,partition",
               "--store", store.url(), "--nodes", "2", "--store-dies", "--dir", str(tmp_path), "--json"]
    deaths = 0
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           env={**os.environ, **getattr(store, "environment", {})})
    try:
        while True:
            try:
                out, errors = run.communicate(timeout=dice.uniform(25, 35) if LONG else 4)
                break
            except subprocess.TimeoutExpired:
                restart(store)
                deaths += 1
        print(out, errors, f"the store died {deaths} times")
        assert run.returncode == 0, out + errors
        answer = json.loads(out)
        assert answer["broken"] == []
        assert answer["counts"]["deliveries"]["ok"] > 0
    finally:
        run.kill()
        run.wait()
