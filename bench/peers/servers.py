"""Starts the peers and ends them by pid. Each comes from its Debian package, listens on a free port of
loopback, has a folder of its own, and is tuned by its documentation.

A row of START is a function that gives the command line of a server, and its environment,
after whatever else must be done before; for the durability that is wanted:

    sync   an answer is given when what it says is on disk (fdatasync or the like)
    none   nothing is synced, or nothing is written at all
"""
import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

POSTGRES = "/usr/lib/postgresql/15/bin"
RABBITMQ = "/usr/lib/rabbitmq/bin/rabbitmq-server"
WITH_US = ["--pdeathsig", "KILL"]  # of setpriv: a server ends when we do, however we do


class Missing(Exception):
    """A program that is not installed."""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def program(name):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not path:
        raise Missing(f"{name} is not there: tools/setup peers installs it")
    return path


def as_user(name):
    """The prefix of a command that refuses to run as root."""
    if os.getuid() != 0:
        return []
    user = pwd.getpwnam(name)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups",
            *WITH_US]


def session(leader):
    """The processes of the session that a server leads: its descendants."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if int(fields[3]) == leader:
            yield int(stat.parent.name)


class Server:
    """A running server, with its `pid` and `port`."""

    def __init__(self, peer, durability, parent):
        self.peer, self.durability = peer, durability
        self.folder = Path(parent) / f"{peer}-{durability}"
        self.folder.mkdir()
        self.port = free_port()
        self.helpers = []
        self.log = open(self.folder / "log", "wb")
        try:
            command, env = START[peer](self)
            self.process = self.spawn(command, env)
            self.wait_until_it_listens()
        except BaseException:
            self.stop()
            raise

    def spawn(self, command, env=None):
        return subprocess.Popen(
            ["setpriv", *WITH_US, *command], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=self.log, env={**os.environ, **(env or {})}, start_new_session=True)

    @property
    def pid(self):
        return self.process.pid

    @property
    def synced(self):
        return self.durability == "sync"

    def wait_until_it_listens(self):
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.1)
        raise RuntimeError(f"{self.peer} does not listen:\n{self.last_words()}")

    def last_words(self):
        return (self.folder / "log").read_text(errors="replace")[-2000:]

    def stop(self):
        """Ends the server. Its folder is not saved; resources outside of it must be freed."""
        if self.peer in GENTLY and hasattr(self, "process"):
            self.process.send_signal(GENTLY[self.peer])
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(20)
        for process in [getattr(self, "process", None), *self.helpers]:
            if process is not None:
                for pid in session(process.pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def sluice(s):
    return [os.environ["SLUICED"], "--listen", f"127.0.0.1:{s.port}", "--data",
            str(s.folder / "data"), "--sync", s.durability, "--log-level", "warn"], None


def sluice_beanstalk(s):
    """Sluice by the protocol of beanstalkd."""
    return [os.environ["SLUICED"], "--listen", "127.0.0.1:0", "--listen", f"beanstalk://127.0.0.1:{s.port}", "--data",
            str(s.folder / "data"), "--sync", s.durability, "--log-level", "warn"], None


def beanstalkd(s):
    """-f0: fsync after every write. Without sync it has no files."""
    command = [program("beanstalkd"), "-l", "127.0.0.1", "-p", str(s.port)]
    if s.synced:
        command += ["-b", str(s.folder), "-f0"]
    return command, None


def redis(s):
    """No snapshots; the append-only file is never rewritten during a run, so only
    writes are measured. redis.conf recommends I/O threads for 4 cores and more."""
    keep = ["--appendonly", "yes", "--appendfsync", "always"] if s.synced else ["--appendonly", "no"]
    return [program("redis-server"), "--bind", "127.0.0.1", "--port", str(s.port), "--dir",
            str(s.folder), "--save", "", "--auto-aof-rewrite-percentage", "0",
            "--loglevel", "warning", "--stream-node-max-bytes", "0", *keep], None


def nats(s):
    (s.folder / "conf").write_text(
        f'listen: "127.0.0.1:{s.port}"\n'
        f'jetstream {{ store_dir: "{s.folder}/js", max_memory_store: 8G, max_file_store: 32G }}\n'
        "write_deadline: 60s\n")
    return [program("nats-server"), "-c", str(s.folder / "conf")], None


def rabbitmq(s):
    """By its runtime guide: no busy waiting on shared cores. No plugins, no statistics. The name
    server of Erlang is started here, so that it can be ended."""
    epmd, dist = free_port(), free_port()
    s.helpers.append(s.spawn([program("epmd"), "-port", str(epmd), "-address", "127.0.0.1"]))
    (s.folder / "rabbitmq.conf").write_text(
        f"listeners.tcp.1 = 127.0.0.1:{s.port}\n"
        "tcp_listen_options.nodelay = true\n"
        "tcp_listen_options.backlog = 4096\n"
        "vm_memory_high_watermark.relative = 0.6\n"
        "disk_free_limit.absolute = 1GB\n"
        "collect_statistics = none\n"
        "log.console.level = error\n"
        "log.file = false\nlog.console = true\n")
    (s.folder / "plugins").write_text("[].\n")
    return [RABBITMQ], {
        "HOME": str(s.folder),
        "ERL_EPMD_PORT": str(epmd),
        "RABBITMQ_NODENAME": f"peers{s.port}@localhost",
        "RABBITMQ_DIST_PORT": str(dist),
        "RABBITMQ_CONFIG_FILE": str(s.folder / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(s.folder / "plugins"),
        "RABBITMQ_MNESIA_BASE": str(s.folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(s.folder / "logs"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS":
            "+sbwt none +sbwtdcpu none +sbwtdio none -kernel inet_dist_use_interface {127,0,0,1}",
    }


POSTGRES_CONF = """
shared_buffers = 1GB
max_connections = 400
max_wal_size = 16GB
min_wal_size = 2GB
checkpoint_timeout = 1h
wal_level = minimal
max_wal_senders = 0
wal_buffers = 64MB
commit_siblings = 5
commit_delay = {commit_delay}
synchronous_commit = {commit}
autovacuum_naptime = 1s
jit = off
"""


def postgresql(s):
    """Large buffers and log, checkpoints far apart, group commit (commit_delay is half of
    the time of a sync), autovacuum every second: a queue has many dead rows."""
    data = s.folder / "data"
    user = as_user("postgres")
    os.chmod(s.folder.parent, 0o755)
    os.chmod(s.folder, 0o777)
    subprocess.run([*user, f"{POSTGRES}/initdb", "-D", str(data), "-U", "postgres", "-A", "trust",
                    "--no-sync"], check=True, stdout=s.log, stderr=s.log, cwd="/")
    conf = POSTGRES_CONF.format(commit_delay=60 if s.synced else 0,
                                commit="on" if s.synced else "off")
    with open(data / "postgresql.conf", "a", encoding="utf-8") as f:
        f.write(conf + f"port = {s.port}\nlisten_addresses = '127.0.0.1'\n"
                       "unix_socket_directories = ''\n")
    return [*user, f"{POSTGRES}/postgres", "-D", str(data)], None


# The name of a peer as peerload knows it; some of them are one program.
START = {
    "sluice": sluice,
    "sluice-packed": sluice,
    "sluice-beanstalk": sluice_beanstalk,
    "beanstalkd": beanstalkd,
    "redis-list": redis,
    "redis-stream": redis,
    "nats": nats,
    "rabbitmq": rabbitmq,
    "postgresql": postgresql,
}

GENTLY = {"postgresql": signal.SIGQUIT}  # it has shared memory
