"""The server as a process: options, errors, signals."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from served import SLUICED, Refused, Server, until

ROOT = Path(__file__).parents[2]


def run(*args, **env):
    return subprocess.run([SLUICED, *args], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **env})


def flag_of(key):
    """--tls-client-ca of tls.client_ca, --sharding-range-by of sharding.rangeBy."""
    return "--" + re.sub("[A-Z]", lambda m: "-" + m[0].lower(), re.sub("[._]", "-", key))


def settings(*args, **env):
    """What --print-config says: {key: {value, from, ...}}."""
    out = run("--print-config", "--json", *args, **env)
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout)


def shown(found):
    """A value as one would write it."""
    value = found["value"]
    if isinstance(value, list):
        return ",".join(value)
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


# A row each of the table in src/conf/options.c: key, default, another value.
OPTIONS = [
    ("config", "", "/dev/null"),
    ("console", "on", "off"),
    ("environment", "", "production"),
    ("trace.url", "", "https://traces.example/{trace}"),
    ("data", "./data", "/x"),
    ("listen", "127.0.0.1:7171", "127.0.0.1:1"),
    ("engine", "log", "memory"),
    ("store", "", "file:///x"),
    ("store.patience", "1s", "5s"),
    ("store.unsafe", "false", "true"),
    ("store.delay", "0s", "40ms"),
    ("store.puts", "0", "50"),
    ("store.front", "none", "folder"),
    ("front.flush.interval", "1s", "100ms"),
    ("front.flush.bytes", "1M", "64K"),
    ("front.max", "1G", "100M"),
    ("front.drain", "5s", "1m"),
    ("front.down", "refuse", "slow"),
    ("front.spare", "", "/x"),
    ("redis.address", "127.0.0.1:6379", "unix:/x"),
    ("redis.username", "", "worker"),
    ("redis.db", "0", "3"),
    ("redis.prefix", "sluice", "codeq"),
    ("redis.timeout", "5s", "1s"),
    ("redis.tls.enabled", "false", "true"),
    ("redis.tls.ca", "", "/ca.pem"),
    ("redis.tls.cert", "", "/x.pem"),
    ("redis.tls.key", "", "/x.key"),
    ("redis.tls.name", "", "redis.example"),
    ("sharding.enabled", "false", "true"),
    ("sharding.supplier", "static", "ring"),
    ("sharding.defaultShard", "default", "default"),
    ("sharding.rangeBy", "command", "tenant"),
    ("sharding.version", "1", "7"),
    ("sharding.reloadInterval", "0s", "1m"),
    ("sync", "sync", "interval=10ms"),
    ("shards", "1", "3"),
    ("threads", "1", "2"),
    ("node.id", "0", "1023"),
    ("codeq.path", "/v1/codeq", "/v2"),
    ("codeq.tokens", "false", "true"),
    ("codeq.webhook_allow", "", "127.0.0.0/8"),
    ("beanstalk.namespace", "default", "beans"),
    ("beanstalk.max_job_size", "65535", "1000"),
    ("beanstalk.max_attempts", "65535", "10"),
    ("advertise", "", "http://one:7171"),
    ("place", "queue", "namespace"),
    ("store.lease", "5s", "15s"),
    ("store.settle", "30s", "1m"),
    ("start.wait", "30s", "0s"),
    ("drain", "1s", "5s"),
    ("grace", "10s", "5s"),
    ("log.level", "info", "debug"),
    ("log.format", "logfmt", "json"),
    ("limits.rate", "0", "7"),
    ("limits.burst", "0", "7"),
    ("limits.queue_rate", "0", "7"),
    ("limits.queue_burst", "0", "7"),
    ("limits.queue_depth", "0", "7"),
    ("limits.batch", "10000", "500"),
    ("limits.payload", "0", "1M"),
    ("limits.waiting", "0", "7"),
    ("limits.queue_waiting", "0", "7"),
    ("limits.shares", "100000", "7"),
    ("limits.outbox", "10000", "7"),
    ("limits.connections", "50000", "100"),
    ("limits.memory", "256M", "64M"),
    ("limits.uploads", "1024", "7"),
    ("limits.upload_bytes", "8G", "2G"),
    ("limits.index_memory", "0", "2G"),
    ("limits.queues", "1000000", "7"),
    ("limits.namespace_queues", "100000", "7"),
    ("limits.namespace_messages", "0", "7"),
    ("limits.namespace_bytes", "0", "1M"),
    ("limits.quotas", "", "a:messages=7,b:bytes=1M"),
    ("queue.max_consumers", "0", "5"),
    ("queue.unsettled", "0", "5"),
    ("queues.idle", "7d", "1h"),
    ("hold.max", "15m", "1h"),
    ("disk.warn", "15", "5"),
    ("metrics.queues", "1000", "5"),
    ("stats.timeout", "2s", "500ms"),
    ("prefetch.batch", "50", "5"),
    ("prefetch.bytes", "64M", "1M"),
    ("projection.queues", "", "shop,a/b"),
    ("projection.after", "1s", "5s"),
    ("projection.changes", "100000", "5000"),
    ("flush.batch", "500", "50"),
    ("mask", "", "password,card.number"),
    ("audit.file", "", "/x.jsonl"),
    ("inboxes", "", "file:///srv/drop,postgres://db/shop"),
    ("inbox.settle", "2s", "5s"),
    ("inbox.poll_interval", "3s", "10s"),
    ("inbox.poll_jitter", "500ms", "1s"),
    ("inbox.poll_resilient", "5m", "1h"),
    ("inbox.watch", "true", "false"),
    ("insecure", "false", "true"),
    ("auth.keys", "", "HS256:/x,a@ES256:/y"),
    ("auth.jwks", "", "/x.json"),
    ("auth.aws_keys", "", "/aws"),
    ("auth.audience", "", "sluice"),
    ("auth.issuer", "", "https://issuer.example"),
    ("auth.leeway", "10s", "1m"),
    ("auth.max_age", "0s", "1h"),
    ("auth.hosts", "", "queue.example"),
    ("auth.metrics", "token", "local"),
    ("auth.certificates", "", "/names"),
    ("tls.cert", "", "/x.pem"),
    ("tls.key", "", "/x.key"),
    ("tls.client_ca", "", "/ca.pem"),
    ("tls.peer_ca", "", "/peers.pem"),
    ("tls.client_auth", "off", "required"),
    ("tls.min_version", "1.2", "1.3"),
]

# Those that are never shown.
SECRETS = ["auth.secret", "codeq.webhook_secret", "projection.url", "redis.password"]


@pytest.mark.parametrize("key, default, other", OPTIONS)
def test_a_flag_goes_before_the_variable_before_the_file_before_the_default(
        key, default, other, tmp_path):
    flag = flag_of(key)
    name = "SLUICE_" + flag[2:].replace("-", "_").upper()
    file = tmp_path / "sluice.yaml"
    file.write_text(f"{key}: {other}\n")
    in_file = [] if key == "config" else ["--config", str(file)]

    def seen(*args, **env):
        found = settings(*args, **env)[key]
        return shown(found), found["from"]

    assert seen() == (default, "default")
    assert seen(**{name: other}) == (other, f"env {name}")
    assert seen(f"{flag}={other}") == (other, f"flag {flag}")
    if in_file:
        assert seen(*in_file) == (other, f"{file}:1")
        assert seen(*in_file, **{name: default}) == (default, f"env {name}")
        assert seen(*in_file, f"{flag}={default}") == (default, f"flag {flag}")
    if default:
        assert seen(f"{flag}={default}", **{name: other}) == (default, f"flag {flag}")


def test_every_option_is_tested():
    assert sorted(settings()) == sorted([o[0] for o in OPTIONS] + SECRETS)


@pytest.mark.parametrize("key", SECRETS)
def test_a_secret_comes_from_a_variable_or_a_file_and_is_never_shown(key, tmp_path):
    """X-04"""
    name = "SLUICE_" + key.replace(".", "_").upper()
    flag = flag_of(key)
    secret = tmp_path / "secret"
    secret.write_text("correct-horse-battery-staple\n")
    file = tmp_path / "sluice.yaml"
    file.write_text(f"{key}_file: {secret}\n")
    for args, env in [((), {name: "correct-horse-battery-staple"}),
                      ((), {name + "_FILE": str(secret)}),
                      ((flag + "-file", str(secret)), {}),
                      (("--config", str(file)), {})]:
        found = settings(*args, **env)[key]
        assert found["from"] != "default" and found["value"]
        for how in ["--json"], []:
            assert "horse" not in run("--print-config", *how, *args, **env).stdout
    out = run(flag, "correct-horse-battery-staple")
    assert out.returncode == 2 and "horse" not in out.stderr


def test_help_has_every_option_and_examples():
    out = run("--help")
    assert out.returncode == 0 and "examples:" in out.stdout
    assert all(flag_of(key) in out.stdout for key, _, _ in OPTIONS)
    assert run("--version").stdout.startswith("sluiced ")


def test_the_page_of_settings_is_current():
    page = (ROOT / "docs/config.md").read_text()
    assert page == run("--print-options-doc").stdout, \
        "run: build/sluiced --print-options-doc >docs/config.md"


@pytest.mark.parametrize("args, says", [
    (["--dta", "x"], "unknown option --dta"),
    (["extra"], "unknown option extra"),
    (["--data"], "--data: missing value; expected DIR"),
    (["--data="], "--data: missing value"),
    (["--sync", "often"], "interval=TIME"),
    (["--sync", "interval=often"], "--sync"),
    (["--shards", "0"], "--shards"),
    (["--node-id", "1024"], "--node-id"),
    (["--log-level", "loud"], "debug|info"),
    (["--drain", "1"], "--drain"),
    (["--insecure=maybe"], "true or false"),
])
def test_a_wrong_option_is_named_and_exits_2(args, says):
    out = run(*args)
    assert out.returncode == 2 and says in out.stderr and out.stdout == ""


def test_a_wrong_variable_is_named():
    out = run(SLUICE_SHARDS="many")
    assert out.returncode == 2 and "SLUICE_SHARDS" in out.stderr


@pytest.mark.parametrize("address", ["0.0.0.0:0", ":0", "[::]:0", "127.evil.example:0",
                                     "192.168.1.1:0"])
def test_addresses_beyond_this_machine_need_a_word(address, folder):
    out = run("--data", str(folder), "--listen", address)
    assert out.returncode == 2 and "--insecure" in out.stderr
    assert not folder.exists()


def test_insecure_listens_everywhere(folder):
    with Server(folder, "--listen", ":0", "--insecure", engine="memory") as server:
        until(lambda: "0.0.0.0" in server.said() or "[::]" in server.said())


def test_the_banner_tells_address_folder_and_durability(folder):
    with Server(folder, "--sync", "interval=5ms") as server:
        line, = [e for e in server.errors if "listening on" in e]
        assert str(folder) in line and "engine log" in line
        assert "durability interval=5ms" in line
        assert 'durability="interval=5ms"' in server.get("/metrics").text


def test_a_banner_in_json(folder):
    process = subprocess.Popen(
        [SLUICED, "--engine", "memory", "--listen", "127.0.0.1:0", "--log-format", "json"],
        stderr=subprocess.PIPE, text=True)
    line = next(line for line in process.stderr if "listening" in line)
    process.terminate()
    assert '"address":"http://127.0.0.1:' in line and process.wait(60) == 0
    process.stderr.close()


def test_a_port_in_use_is_reported(folder, tmp_path):
    with Server(folder, engine="memory") as server:
        address = "%s:%d" % server.address
        out = run("--engine", "memory", "--listen", address)
        assert out.returncode == 1 and address in out.stderr and "use" in out.stderr


def test_a_folder_in_use_is_reported(folder):
    with Server(folder) as server:
        with pytest.raises(Refused) as refused:
            Server(folder)
        assert str(folder) in str(refused.value) and "in use" in str(refused.value)
        assert server.get("/healthz").status == 200


def test_damaged_data_is_reported_and_left_alone(folder):
    with Server(folder) as server:
        server.enqueue(*({"text": "x" * 1000} for _ in range(50)))
        server.stop()
    log = folder / "00000001.log"
    with open(log, "r+b") as f:
        f.seek(2000)
        f.write(b"damage")
    before = log.read_bytes()
    with pytest.raises(Refused) as refused:
        Server(folder)
    assert "00000001.log" in str(refused.value)
    assert log.read_bytes() == before


def test_a_folder_that_cannot_be_made_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    out = run("--data", str(tmp_path / "file" / "data"), "--listen", "127.0.0.1:0")
    assert out.returncode == 2 and "--data" in out.stderr


def test_an_unknown_engine_is_refused_with_the_list_of_engines():
    out = run("--engine", "cloud")
    assert out.returncode == 2 and "memory" in out.stderr and "log" in out.stderr


def test_it_serves_a_unix_socket(folder, tmp_path):
    path = tmp_path / "s.sock"
    with Server(folder, "--listen", f"unix:{path}", engine="memory"):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(str(path))
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert b"200 OK" in sock.recv(1000)
        sock.close()
    assert not path.exists()


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_well(folder, sig):
    with Server(folder) as server:
        server.enqueue({})
        server.stop(sig)
        until(lambda: "event=stopped" in server.said())


def test_a_stop_ends_waits_and_refuses_new_work_but_takes_acks(folder):
    """MQ-52: new work gets 503 while what is held may be settled."""
    with Server(folder, "--drain", "30s") as server:
        server.enqueue({"text": "held", "topic": "other"})
        message, = server.dequeue(topic="other")
        waiter = {}

        def wait():
            waiter["answer"] = server.get("/dequeue", **server.here(wait=60))
            server.close()

        thread = threading.Thread(target=wait)
        thread.start()
        until(lambda: server.metric('sluice_waiting{shard="0"}') == 1)
        server.process.send_signal(signal.SIGTERM)
        thread.join()
        assert waiter["answer"].status == 200 and waiter["answer"].body == []
        for path, body in (("/enqueue", [server.here()]), ("/dequeue", None)):
            answer = server.post(path, body, **({} if body else server.here()))
            assert answer.status == 503 and answer.body["error"] == "closed"
            assert answer.headers["Retry-After"]
        answer = server.get("/readyz")
        assert answer.status == 503 and answer.body["status"] == "not_ready"
        assert [r["reason"] for r in answer.body["reasons"]] == ["closed"]
        assert server.get("/healthz").status == 200
        assert server.post("/ack", {"id": message["id"], "namespace": "test",
                                    "topic": "other"}).status == 200
        server.close()
        assert server.wait() == 0
        server.start()
        assert server.stats(topic="other")["total"] == 0


def test_a_stop_under_load_loses_nothing_that_was_answered(folder):
    """MQ-53, MQ-54: what was accepted is on disk when it exits, and counted after a start."""
    with Server(folder) as server:
        accepted, refused = [], []

        def push():
            for i in range(100000):
                try:
                    answer = server.post("/enqueue", [server.here(text=f"{i}")] * 5)
                except (OSError, http.client.HTTPException):
                    break  # its last call may or may not have been taken
                if answer.status != 200:
                    refused.append(answer.body["error"])
                    break
                accepted.extend(answer.body)
            server.close()

        threads = [threading.Thread(target=push) for _ in range(4)]
        for t in threads:
            t.start()
        until(lambda: len(accepted) > 200)
        server.process.terminate()
        for t in threads:
            t.join()
        assert server.wait() == 0
        assert set(refused) <= {"closed"}
        server.start()
        found = {m["id"] for m in whole(server)}
        assert set(accepted) <= found and len(found) <= len(accepted) + 5 * len(threads)
        assert server.stats()["total"] == len(found)


def whole(server):
    """All messages of its queue, page by page."""
    cursor = {}
    while True:
        page = server.get("/peek", **server.here(state="all", limit=1000, **cursor)).body
        yield from page["messages"]
        if "cursor" not in page:
            return
        cursor = {"cursor": page["cursor"]}


def processor_time(process):
    """Seconds of processor time of a process."""
    fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(int(f) for f in fields[11:13]) / os.sysconf("SC_CLK_TCK")


def test_an_idle_server_uses_no_processor_time(folder):
    """Also after requests of a lone client, for whose next request it polls a moment, and beside a consumer that waits."""
    with Server(folder, engine="log") as server:
        waiting = threading.Thread(target=lambda: server.get("/dequeue", **server.here(topic="empty", wait="4s")))
        waiting.start()
        for i in range(300):
            assert server.post("/enqueue", server.here(text=f"{i}")).status == 200
        time.sleep(1.2)  # work that follows the last request
        before = processor_time(server.process)
        time.sleep(2)
        assert processor_time(server.process) - before < 0.2
        waiting.join()


def test_json_logs_are_json_to_the_last_line(folder):
    process = subprocess.Popen(
        [SLUICED, "--engine", "memory", "--listen", "127.0.0.1:0", "--log-format", "json",
         "--drain", "60s", "--data", str(folder)], stderr=subprocess.PIPE, text=True)
    line = next(line for line in process.stderr if "listening" in line)
    port = int(json.loads(line)["address"].rsplit(":", 1)[1])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/healthz")
    connection.getresponse().read()  # it is there: the server drains as long as it is
    process.terminate()
    for line in process.stderr:
        if json.loads(line)["event"] == "stopping":
            break
    process.terminate()
    last = [json.loads(line) for line in process.stderr][-1]
    assert "second signal" in last["event"] and process.wait(60) == 128 + signal.SIGTERM
    process.stderr.close()
    connection.close()


def test_a_second_signal_ends_it_at_once(folder):
    server = Server(folder, "--drain", "60s")
    connection = server.connect()
    connection.request("GET", "/healthz")
    connection.getresponse().read()  # it is there: the server drains as long as it is
    begin = time.monotonic()
    server.process.terminate()
    until(lambda: "event=stopping" in server.said())
    server.process.terminate()
    assert server.wait() == 128 + signal.SIGTERM
    assert time.monotonic() - begin < 30
    connection.close()
