"""sluice inbox --from s3://... and azure://...: objects of a bucket, found by polling, each a message once."""
import os
import random
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from inbox_kit import Inbox, once, payloads, ready, server, take_all  # noqa: F401
from served import Server, until

sys.path.insert(0, str(Path(__file__).parents[1] / "lib"))
from azurite import ACCOUNT, CONTAINER, Azurite  # noqa: E402
from rgw import BUCKET, Gateway  # noqa: E402

LONG = os.environ.get("INBOX_LONG")
slow = pytest.mark.skipif(not LONG, reason="an inbox that was killed is held for ten seconds")
QUICK = ["--poll-interval", "20ms", "--poll-jitter", "0s"]


class Blobs:
    """A container of Azurite, with a SAS."""

    def __init__(self, service):
        self.service = service

    def call(self, method, name, body=None):
        url = f"{self.service.endpoint}/{ACCOUNT}/{CONTAINER}/{name}?{self.service.sas()}"
        request = urllib.request.Request(url, data=body, method=method, headers={"x-ms-blob-type": "BlockBlob", "x-ms-version": "2021-08-06"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.read()
        except urllib.error.HTTPError as e:
            assert e.code == 404, (method, name, e.read())
            return None


class Objects:
    """A bucket of Ceph."""

    def __init__(self, service):
        self.service = service

    def call(self, method, name, body=None):
        file = self.service.folder / "body"
        file.write_bytes(body or b"")
        out = self.service.folder / "answer"
        s = self.service
        status = subprocess.run(
            ["curl", "-sS", "-X", method, "--aws-sigv4", "aws:amz:us-east-1:s3", "--user", f"{s.key}:{s.secret}", "-H",
             "x-amz-content-sha256: UNSIGNED-PAYLOAD", *(["--data-binary", f"@{file}"] if method == "PUT" else []),
             "-o", str(out), "-w", "%{http_code}", f"{s.endpoint}/{BUCKET}/{name}"],
            check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout
        assert status[:1] == "2" or status == "404", (method, name, status, out.read_bytes())
        return None if status == "404" else out.read_bytes()


@pytest.fixture(scope="module", params=["azure", "s3"] if LONG else ["azure"])
def service(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bucket")
    kind, client = {"azure": (Azurite, Blobs), "s3": (Gateway, Objects)}[request.param]
    with kind(folder) as made:
        os.environ.update(made.environment)
        made.client = client(made)
        yield made


prefixes = (f"p{n}" for n in range(1000))


@pytest.fixture
def bucket(service):
    """A prefix of its own."""
    return Bucket(service, next(prefixes))


class Bucket:
    def __init__(self, service, prefix):
        self.service, self.prefix = service, prefix
        self.url = service.url(prefix)

    def put(self, name, text):
        self.service.client.call("PUT", f"{self.prefix}/{name}", text.encode())

    def get(self, name):
        found = self.service.client.call("GET", f"{self.prefix}/{name}")
        return None if found is None else found.decode()

    def send(self, name, queue="mail"):
        self.put(f"inbox/test/{queue}/{name}", name)


def test_objects_are_messages_and_go(server, bucket):
    """LQ-47, LQ-58: the queues of a prefix are found by one list."""
    bucket.put("inbox/test/mail/b.json", '{"priority": 1, "attributes": {"from": "me"}}')
    for name in "a", "b", "c":
        bucket.send(name)
    bucket.send("x", queue="other")
    for name in "half.part", "half.tmp":
        bucket.put(f"inbox/test/mail/{name}", "left")
    done = once(server, bucket.url, *QUICK)
    assert "accepted 4" in done.stderr and "refused 0" in done.stderr
    found = take_all(server)
    assert payloads(found) == ["b", "a", "c"] and found[0]["attributes"] == {"from": "me"}
    assert payloads(take_all(server, "other")) == ["x"]
    assert [bucket.get(f"inbox/test/mail/{name}") for name in ("a", "b", "b.json", "c", "half.part")] == [None] * 4 + ["left"]


def test_an_object_of_the_same_name_is_another_message(server, bucket):
    """BUCKET-3: an object that was written again has another ETag."""
    bucket.send("same")
    with Inbox(server, bucket.url, *QUICK):
        until(lambda: ready(server) == 1)
        until(lambda: bucket.get("inbox/test/mail/same") is None)
        bucket.put("inbox/test/mail/same", "again")
        until(lambda: ready(server) == 2)
    assert payloads(take_all(server)) == ["same", "again"]


def test_an_object_that_the_server_refuses_is_kept_with_the_reason(server, bucket):
    bucket.put("inbox/test/mail/bad.json", '{"priority": "none"}')
    bucket.send("bad")
    bucket.send("good")
    assert "refused 1" in once(server, bucket.url, *QUICK).stderr
    assert payloads(take_all(server)) == ["good"]
    assert bucket.get("refused/test/mail/bad") == "bad" and "priority" in bucket.get("refused/test/mail/bad.why")
    assert bucket.get("inbox/test/mail/bad") is None


def test_an_object_that_is_too_large_is_refused_once(server, bucket):
    """BUCKET-3: the object stays, because its bytes were not read, and the inbox remembers it."""
    bucket.put("inbox/test/mail/large", "x" * (12 << 20))
    with Inbox(server, bucket.url, *QUICK) as inbox:
        until(lambda: "payload of" in (bucket.get("refused/test/mail/large.why") or ""))
        for n in 1, 2, 3:  # each takes a look at all objects
            bucket.send(f"small-{n}")
            until(lambda: ready(server) == n)
    assert "refused 1" in inbox.said() and bucket.get("inbox/test/mail/large")


@slow
def test_a_second_inbox_waits(server, bucket):
    """BUCKET-4"""
    with Inbox(server, bucket.url, *QUICK) as first, Inbox(server, bucket.url, *QUICK) as second:
        until(lambda: "another inbox" in first.said() + second.said())
        working, waiting = (second, first) if "another" in first.said() else (first, second)
        bucket.send("one")
        until(lambda: ready(server) == 1)
        working.stop()
        bucket.send("two")
        until(lambda: ready(server) == 2)
        assert waiting.process.poll() is None


@slow
def test_an_object_is_a_message_once_whatever_is_killed(tmp_path, bucket):
    """BUCKET-2: kills of the inbox and of the server, at any moment."""
    dice, sent = random.Random(3), []
    with Server(tmp_path / "data", "--listen", f"unix:{tmp_path}/s", engine="log") as running, Inbox(running, bucket.url, *QUICK) as inbox:
        inbox.command = [w if not w.startswith("http://") else f"unix:{tmp_path}/s" for w in inbox.command]
        for n in range(40 if LONG else 12):
            for k in range(3):
                sent.append(f"m{n:03}-{k}")
                bucket.send(sent[-1])
            if dice.random() < 0.5:
                inbox.stop(signal.SIGKILL)
                inbox.start()
            elif dice.random() < 0.3:
                running.restart("kill")
        inbox.stop(signal.SIGKILL)
        with Inbox(running, bucket.url, *QUICK):
            until(lambda: bucket.get(f"inbox/test/mail/{sent[-1]}") is None and ready(running) >= len(sent))
        assert sorted(payloads(take_all(running))) == sorted(sent)


def test_the_server_has_the_bucket_as_an_inbox(tmp_path, bucket):
    """inboxes: of the settings."""
    bucket.send("one")
    with Server(tmp_path / "data", "--inboxes", bucket.url, "--inbox-poll-interval", "20ms") as running:
        until(lambda: ready(running) == 1)
        bucket.send("two")
        until(lambda: ready(running) == 2)
        assert payloads(take_all(running)) == ["one", "two"]
