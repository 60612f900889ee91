#!/usr/bin/python3
"""A real S3 store of a test's own: Ceph with its gateway, three processes in one folder.

    with Gateway(folder) as s3:
        Server(folder / "data", "--store", s3.url(), env=s3.environment)

    tests/lib/rgw.py COMMAND [ARGUMENT ...]     runs a command with the store in its environment:
                                                SLUICE_TEST_S3 and the keys
"""
import pathlib
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
import uuid

from storeserver import StoreServer

BUCKET = "sluice"
CONFIG = """[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{mon_port}/0]
ms bind msgr1 = false
public network = 127.0.0.0/8
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
keyring = {folder}/keyring
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
run dir = {folder}
log file = {folder}/$name.log
admin socket = {folder}/$name.asok
pid file = {folder}/$name.pid
[mon]
mon data = {folder}/mon
[osd]
osd data = {folder}/osd
osd objectstore = memstore
memstore device bytes = 2147483648
[client.rgw]
rgw frontends = beast endpoint=127.0.0.1:{port}
rgw data = {folder}/rgw
rgw dns name = localhost
"""
KEYS = {
    "mon.": ["--cap", "mon", "allow *"],
    "client.admin": ["--cap", "mon", "allow *", "--cap", "osd", "allow *", "--cap", "mgr", "allow *"],
    "osd.0": ["--cap", "mon", "allow profile osd", "--cap", "osd", "allow *"],
    "client.rgw": ["--cap", "mon", "allow rwx", "--cap", "osd", "allow rwx"],
}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Gateway(StoreServer):
    PROGRAMS = ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin")

    def __init__(self, folder):
        self.port = free_port()
        self.key, self.secret = "test-key", "test-secret"
        self.environment = {"AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": self.secret}
        self.processes = []
        super().__init__(folder)

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}"

    def url(self, prefix="", endpoint=None):
        query = urllib.parse.urlencode({"endpoint": endpoint or self.endpoint})
        return f"s3://{BUCKET}{'/' if prefix else ''}{prefix}?{query}"

    def run(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr or done.stdout}")

    def spawn(self, *command):
        """In the foreground, so that its pid is known."""
        with open(self.folder / (command[0] + ".out"), "w") as out:
            self.processes.append(subprocess.Popen([*command, "-f"], stdout=out, stderr=out))

    def start(self):
        f, conf = self.folder, str(self.folder / "ceph.conf")
        fsid, mon_port = str(uuid.uuid4()), free_port()
        pathlib.Path(conf).write_text(CONFIG.format(folder=f, fsid=fsid, mon_port=mon_port, port=self.port))
        for i, (name, caps) in enumerate(KEYS.items()):
            self.run("ceph-authtool", *(["--create-keyring"] if i == 0 else []), str(f / "keyring"), "--gen-key", "-n", name, *caps)
        self.run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"[v2:127.0.0.1:{mon_port}]", str(f / "monmap"))
        self.run("ceph-mon", "-c", conf, "-i", "a", "--mkfs", "--monmap", str(f / "monmap"), "--keyring", str(f / "keyring"))
        self.spawn("ceph-mon", "-c", conf, "-i", "a")
        osd = str(uuid.uuid4())
        (f / "osd").mkdir()
        self.run("ceph", "-c", conf, "osd", "new", osd)
        self.run("ceph", "-c", conf, "auth", "import", "-i", str(f / "keyring"))
        self.run("ceph-osd", "-c", conf, "-i", "0", "--mkfs", "--osd-uuid", osd)
        self.spawn("ceph-osd", "-c", conf, "-i", "0")
        self.start_gateway()
        self.run("radosgw-admin", "-c", conf, "-n", "client.rgw", "user", "create", "--uid=test", "--display-name=test",
                 f"--access-key={self.key}", f"--secret-key={self.secret}")
        self.wait()

    def start_gateway(self):
        self.spawn("radosgw", "-c", str(self.folder / "ceph.conf"), "-n", "client.rgw")

    def stop_gateway(self):
        """At once. The objects are in the other processes."""
        self.processes[-1].kill()
        self.processes.pop().wait()

    def wait(self):
        deadline = time.monotonic() + 120
        while True:
            assert time.monotonic() < deadline and all(p.poll() is None for p in self.processes), self.folder
            try:
                urllib.request.urlopen(self.endpoint, timeout=60).close()
                return
            except OSError:
                time.sleep(0.1)

    def make_space(self):
        self.run("curl", "-sSf", "-X", "PUT", "--aws-sigv4", "aws:amz:us-east-1:s3", "--user", f"{self.key}:{self.secret}",
                 "-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD", f"{self.endpoint}/{BUCKET}")

    def stop(self):
        """The gateway first: it waits for the others when it ends."""
        for process in reversed(self.processes):
            process.kill()
            process.wait()
        self.processes = []


if __name__ == "__main__":
    sys.exit(Gateway.main("SLUICE_TEST_S3"))
