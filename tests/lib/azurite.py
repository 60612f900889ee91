#!/usr/bin/python3
"""A real Azure Blob server of a test's own: Azurite.

    with Azurite(folder) as azure:
        Server(folder / "data", "--store", azure.url(), env=azure.environment)

    tests/lib/azurite.py COMMAND [ARGUMENT ...]     runs a command with the store in its environment:
                                                    SLUICE_TEST_AZURE and the key
"""
import base64
import email.utils
import hashlib
import hmac
import http.client
import os
import ssl
import subprocess
import sys
import time
import urllib.parse

from storeserver import StoreServer

ACCOUNT, CONTAINER = "sluicetest", "sluice"
KEY = base64.b64encode(hashlib.sha512(b"the key of a test").digest()).decode()
VERSION = "2021-08-06"


def signature(text, key=KEY):
    return base64.b64encode(hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()).decode()


class Azurite(StoreServer):
    PROGRAMS = ("azurite-blob",)

    def __init__(self, folder, *options):
        self.options = options
        self.environment = {"AZURE_STORAGE_KEY": KEY}
        self.process, self.port = None, 0
        super().__init__(folder)

    @property
    def endpoint(self):
        return f"http{'s' if '--cert' in self.options else ''}://127.0.0.1:{self.port}"

    def url(self, prefix="", endpoint=None):
        query = urllib.parse.urlencode({"endpoint": endpoint or self.endpoint})
        return f"azure://{ACCOUNT}/{CONTAINER}{'/' if prefix else ''}{prefix}?{query}"

    def start(self):
        """On the port of an earlier start. A port of 0 is chosen by the server, which names it."""
        out = self.folder / f"azurite.{time.monotonic_ns()}.out"
        command = ["azurite-blob", "--location", str(self.folder), "--blobHost", "127.0.0.1", "--blobPort", str(self.port),
                   "--silent", "--disableTelemetry", "--skipApiVersionCheck", *self.options]
        with open(out, "w") as f:
            self.process = subprocess.Popen(command, stdout=f, stderr=f, env={**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"})
        deadline = time.monotonic() + 120
        while "successfully listen" not in out.read_text():
            assert time.monotonic() < deadline and self.process.poll() is None, out.read_text()
            time.sleep(0.05)
        self.port = int(out.read_text().rsplit(":", 1)[1])

    def stop(self):
        """In order: killed, Azurite forgets what it was sent in the last seconds."""
        if self.process:
            self.process.terminate()
            self.process.wait(60)
            self.process = None

    def make_space(self):
        path, date = f"/{ACCOUNT}/{CONTAINER}", email.utils.formatdate(usegmt=True)
        text = f"PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:{VERSION}\n/{ACCOUNT}{path}\nrestype:container"
        if "--cert" in self.options:
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=ssl._create_unverified_context())
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("PUT", path + "?restype=container", headers={
            "x-ms-date": date, "x-ms-version": VERSION, "Content-Length": "0", "Authorization": f"SharedKey {ACCOUNT}:{signature(text)}"})
        response = connection.getresponse()
        assert response.status == 201, response.read()
        connection.close()

    def sas(self, rights="racwdl", seconds=3600):
        """A shared access signature for the container."""
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
        fields = {"sp": rights, "st": "", "se": end, "resource": f"/blob/{ACCOUNT}/{CONTAINER}", "si": "", "sip": "", "spr": "",
                  "sv": VERSION, "sr": "c", "snapshot": "", "ses": "", "rscc": "", "rscd": "", "rsce": "", "rscl": "", "rsct": ""}
        query = {name: fields[name] for name in ("sv", "sr", "sp", "se")}
        return urllib.parse.urlencode({**query, "sig": signature("\n".join(fields.values()))})


if __name__ == "__main__":
    sys.exit(Azurite.main("SLUICE_TEST_AZURE"))
