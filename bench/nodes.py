"""Servers for measurements."""
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request


class Node:
    """A server in a folder."""

    def __init__(self, build, folder, *settings):
        folder.mkdir(parents=True)
        self.log = folder / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [build / "sluiced", "--data", folder / "data", "--listen", "127.0.0.1:0", *settings], stderr=log)
        self.address = self.find_address()
        while not self.is_ready():
            time.sleep(0.05)

    def find_address(self):
        while True:
            found = re.search(r"127\.0\.0\.1:\d+", self.log.read_text())
            if found:
                return found[0]
            if self.process.poll() is not None:
                sys.exit(f"sluiced ended: {self.log.read_text()}")
            time.sleep(0.02)

    def call(self, path, body=None, timeout=60):
        """The status and the text of the answer; 0 without an answer."""
        try:
            with urllib.request.urlopen(f"http://{self.address}{path}", data=body, timeout=timeout) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()
        except OSError as e:
            return 0, str(e)

    def is_ready(self):
        return self.call("/readyz")[0] == 200

    def owned(self):
        """How many shards of the store this server owns and serves."""
        return sum(map(int, re.findall(r"^sluice_shard_owned\{.*\} (\d)", self.call("/metrics")[1], re.M)))

    def end(self):
        self.process.terminate()
        self.process.wait()
