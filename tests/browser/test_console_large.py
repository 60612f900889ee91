"""The console on a large server: 10,000 queues and a million messages."""
import os
import time

import pytest

from served import Server

QUEUES = int(os.environ.get("SLUICE_BROWSER_QUEUES", "10000"))
MESSAGES = int(os.environ.get("SLUICE_BROWSER_MESSAGES", "1000000"))
BATCH = 10000


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("large") / "data", "--sync", "none", engine="log", namespace="big") as server:
        for at in range(0, QUEUES, BATCH):
            server.enqueue(*({"topic": f"q{n:05}", "text": "x"} for n in range(at, min(at + BATCH, QUEUES))))
        for _ in range(0, MESSAGES, BATCH):
            server.enqueue(*({"topic": "deep", "text": "x"} for n in range(BATCH)))
        yield server


def test_pages_of_a_large_server_open(chromium, server):
    """The times are printed, not asserted: a busy machine would fail for nothing."""
    began = time.monotonic()
    chromium.visit(f"http://{server.address[0]}:{server.address[1]}/")
    chromium.ready()
    print(f"# the first page, with its files {time.monotonic() - began:.2f} s")
    for page in ("overview", "queues", "queue/big/deep", "messages?q=queue%3Abig%2Fdeep"):
        began = time.monotonic()
        chromium.go(f"#/{page}")
        print(f"# {page} {time.monotonic() - began:.2f} s")
    chromium.go("#/messages?q=queue%3Abig%2Fdeep")
    chromium.until("return document.querySelectorAll('main tbody tr').length === 100")
    chromium.click("Continue", "a")
    chromium.until("return location.hash.includes('cursor=')")
    chromium.go("#/queues")
    chromium.see("1,000 of 1,000 loaded")
    chromium.click("Load more queues")
    chromium.see("4,000 of 4,000 loaded")
    chromium.clean()
