"""Unmodified clients of beanstalkd against the server: docs/clients.md has the table, and this prints it."""
import json
import os
import subprocess
from pathlib import Path

import pytest

from bean import Beans
from clients_table import check
from served import START, until

HERE = Path(__file__).parent / "bean_clients"
RAN = []  # rows of the table


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Beans(tmp_path_factory.mktemp("beans") / "data") as server:
        yield server


@pytest.fixture(scope="module")
def modules():
    return subprocess.run(["npm", "root", "--global"], capture_output=True, text=True, check=True, timeout=START).stdout.strip()


def run(server, *command, **env):
    done = subprocess.run(command, env={**os.environ, "PORT": str(server.bean_port), **env}, capture_output=True, text=True,
                          timeout=2 * START, check=False)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return json.loads(done.stdout)


def version_of(modules, name):
    return json.loads(Path(modules, name, "package.json").read_text(encoding="utf-8"))["version"]


def debian(package):
    return subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=True).stdout


def test_jackd(server, modules):
    found = run(server, "node", str(HERE / "jackd.mjs"), NODE_MODULES=modules)
    assert found == {"same": 1, "payload": '{"hello":"wörld"}', "kicked": 1, "ready": 0, "ttr": 30, "none": "TIMED_OUT"}
    RAN.append(("jackd", version_of(modules, "jackd"), "put, reserve, touch, release, bury, kick, delete, stats", "passes"))


def test_fivebeans(server, modules):
    found = run(server, "node", str(HERE / "fivebeans.cjs"), NODE_MODULES=modules)
    assert found == {"same": True, "payload": "by hand", "kicked": 1, "tubes": True, "ready": 0, "seen": [0, 1, 2, 3, 4]}
    RAN.append(("fivebeans", version_of(modules, "fivebeans"), "its client, and its worker with five jobs", "passes"))


def test_pheanstalk(server):
    found = run(server, "php", "-d", "include_path=/usr/share/php", str(HERE / "pheanstalk.php"))
    assert found == {"data": "from php", "same": True, "kicked": 1, "ttr": 40, "delayed": "late", "none": True, "tubes": True,
                     "ready": 0}
    RAN.append(("Pheanstalk", debian("php-pda-pheanstalk"), "every command but drain", "passes"))


def test_beaneater(server):
    found = run(server, "ruby", str(HERE / "beaneater.rb"))
    assert found.pop("version") and found == {
        "body": "from ruby", "same": True, "buried": "from ruby", "kicked": "KICKED", "ttr": 50, "seen": ["0", "1", "2"],
        "timed_out": True, "tubes": True}
    RAN.append(("Beaneater", debian("ruby-beaneater"), "jobs by hand, and its worker with three jobs", "passes"))


def test_a_worker_that_is_killed_loses_nothing(server):
    with server.beans() as client:
        client.ask("use pheanstalk")
        client.ask("watch pheanstalk")
        number = client.put("survives", ttr=3600)
        with subprocess.Popen(["php", "-d", "include_path=/usr/share/php", str(HERE / "pheanstalk.php"), "worker"],
                              env={**os.environ, "PORT": str(server.bean_port)}, stdout=subprocess.PIPE, text=True) as worker:
            assert worker.stdout.readline() == f"{number}\n"
            assert client.yaml(f"stats-job {number}")["state"] == "reserved"
            worker.kill()
        until(lambda: client.yaml(f"stats-job {number}")["state"] == "ready")
        assert client.reserve(60) == (number, b"survives")
        assert client.yaml(f"stats-job {number}")["timeouts"] == "1"
        client.ask(f"delete {number}")


def test_the_table_of_the_page_says_what_ran(capsys):
    """Last: docs/clients.md, and what the tests before have run."""
    assert check("Clients of beanstalkd", RAN, capsys) == set()
