#!/usr/bin/python3
"""worker.py - a worker in Python 3: the standard library alone.

    python3 worker.py push QUEUE JSON...      enqueue jobs
    python3 worker.py work QUEUE [COUNT]      work until COUNT jobs are finished, or until Ctrl-C

    python3 worker.py push jobs '{"do":"mail"}' '{"do":"report"}'

SLUICE_SERVER is the server, SLUICE_TOKEN its token if it wants one. A message is settled by its
receipt: one text that says which message it is and that the lease is ours.
"""
import base64
import json
import os
import signal
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

SERVER = os.environ.get("SLUICE_SERVER", "http://127.0.0.1:7171")
TOKEN = os.environ.get("SLUICE_TOKEN")
HEADERS = {"Authorization": f"Bearer {TOKEN}"} if TOKEN else {}


class Hopeless(Exception):
    """A failure that no second attempt can mend."""


class Refused(Exception):
    """What the server says when it says no."""


def call(path, body=None, **query):
    """POST with a body, else GET."""
    url = SERVER + path + ("?" + urllib.parse.urlencode(query) if query else "")
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, HEADERS), timeout=60) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refusal:
        with refusal:
            said = json.load(refusal)
        raise Refused(f"{path}: {said['error']}: {said['message']}") from None


def push(queue, jobs):
    return call("/enqueue", [{"namespace": "default", "topic": queue, "json": job} for job in jobs],
                ids="uid")


def take(queue):
    """Waits up to 20 seconds for a message, and leases it for a minute."""
    return call("/dequeue", namespace="default", topic=queue, limit=1, wait=20, lease="1m")


def extend(message, lease):
    call("/extend", {"receipt": message["receipt"], "lease": lease})


# What can be done: the result is what a job returns, a failure what it raises.

def mail(message):
    return "sent"


def report(message):
    extend(message, "5m")  # this takes longer than the lease
    return "written"


def flaky(message):
    if message["attempts"] == 1:
        raise OSError("no carrier")
    return "sent at last"


def poison(message):
    raise Hopeless("no such customer")


JOBS = {job.__name__: job for job in (mail, report, flaky, poison)}


def outcome(message):
    """What to tell the server about a message: the call and its members."""
    try:
        job = json.loads(base64.b64decode(message["payload"]))
        if job["do"] not in JOBS:
            raise Hopeless(f"no such job: {job['do']}")
        return "/ack", {"result": JOBS[job["do"]](message)}
    except Exception as error:  # whatever it is, it belongs to the message
        return "/nack", {"error": str(error), "dead": isinstance(error, Hopeless)}


def handle(message):
    """True: the message is finished, one way or the other."""
    path, members = outcome(message)
    answer = call(path, {"receipt": message["receipt"], **members})
    word = "done" if path == "/ack" else "dead" if answer["dead"] else "failed"
    print(word, message["uid"], members.get("result") or members["error"], flush=True)
    return word != "failed"


def work(queue, count):
    finished = 0
    while finished < count:
        try:
            for message in take(queue):
                finished += handle(message)
        except (OSError, Refused) as error:
            print(error, file=sys.stderr)  # the server is away, or the lease is lost: go on
            time.sleep(1)


def main(verb=None, queue=None, *words):
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if verb == "push" and words:
        print(*push(queue, [json.loads(word) for word in words]), sep="\n")
    elif verb == "work" and queue:
        work(queue, int(words[0]) if words else float("inf"))
    else:
        sys.exit(__doc__)


try:
    main(*sys.argv[1:])
except KeyboardInterrupt:
    pass  # what was not settled comes again when its lease ends
