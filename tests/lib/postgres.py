#!/usr/bin/python3
"""A real PostgreSQL server of a test's own.

    with Postgres() as db:
        Server(folder, "--store", db.url())

    tests/lib/postgres.py COMMAND [ARGUMENT ...]    runs a command with SLUICE_TEST_POSTGRES, the URL of a database
"""
import contextlib
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time

PROGRAMS = "/usr/lib/postgresql/15/bin"
CONFIG = """
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = ''
max_connections = 300
shared_buffers = 64MB
wal_level = replica
max_wal_senders = 4
"""
POOL = """[databases]
postgres = host=127.0.0.1 port={server} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 300
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def as_user():
    """The prefix of a command: the server refuses to run as root."""
    if os.getuid() != 0:
        return []
    user = pwd.getpwnam("postgres")
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--pdeathsig", "KILL"]


class Postgres:
    """Its folder is not below pytest's, which only root may enter: the server has a user of its own."""

    def __init__(self, config=""):
        if not shutil.which(f"{PROGRAMS}/postgres"):
            raise RuntimeError("postgresql-15 is not installed: make test installs it")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pg-"))
        os.chmod(self.folder, 0o777)
        self.data = self.folder / "postgres"
        self.port = free_port()
        self.process = None
        try:
            self.make()
            with open(self.data / "postgresql.conf", "a") as f:
                f.write(CONFIG.format(port=self.port) + config)
            self.start()
        except BaseException:
            self.__exit__()
            raise

    def make(self):
        self.run("initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "--no-sync")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, program, *arguments):
        done = subprocess.run([*as_user(), f"{PROGRAMS}/{program}", *arguments], capture_output=True, text=True, timeout=120, cwd="/")
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stderr or done.stdout}")
        return done.stdout

    def start(self):
        with open(self.folder / "postgres.log", "a") as log:
            self.process = subprocess.Popen([*as_user(), f"{PROGRAMS}/postgres", "-D", str(self.data)], stdout=log, stderr=log, cwd="/")
        deadline = time.monotonic() + 60
        while subprocess.run([f"{PROGRAMS}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]).returncode:
            assert self.process.poll() is None and time.monotonic() < deadline, (self.folder / "postgres.log").read_text()
            time.sleep(0.05)

    def stop(self):
        """At once, as when the machine loses power: the next start replays the log."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(3)  # immediate shutdown, with all of its processes
            self.process.wait(60)

    def sql(self, text):
        return self.run("psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-AtXq", "-c", text).strip()

    def url(self, schema="sluice"):
        return f"postgres://postgres@127.0.0.1:{self.port}/postgres?schema={schema}"


@contextlib.contextmanager
def bouncer(db):
    """pgbouncer before the server, with a pool of transactions. Yields the URL of the database behind it."""
    port = free_port()
    config = db.folder / "pgbouncer.ini"
    config.write_text(POOL.format(server=db.port, port=port))
    os.chmod(config, 0o644)
    process = subprocess.Popen([*as_user(), "/usr/sbin/pgbouncer", "-q", str(config)], cwd="/", stderr=subprocess.DEVNULL)
    try:
        while subprocess.run([f"{PROGRAMS}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)], check=False).returncode:
            time.sleep(0.05)
        yield f"postgres://postgres@127.0.0.1:{port}/postgres"
    finally:
        process.kill()
        process.wait()


def main():
    with Postgres() as db:
        return subprocess.call(sys.argv[1:], env={**os.environ, "SLUICE_TEST_POSTGRES": db.url()})


if __name__ == "__main__":
    sys.exit(main())
