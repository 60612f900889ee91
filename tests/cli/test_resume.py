"""`sluice work`, `extend` and `pull`: checkpoints, with which a command goes on where it was (docs/scheduling.md)."""
import sys

from test_client import LIMIT, cli, own, pids, runs, shared, work  # noqa: F401

from served import until  # its folder: test_client

SOON = ("--max", "2", "--lease", "1s")


def test_an_extend_stores_a_checkpoint_and_a_pull_shows_it(cli):
    cli.push("x")
    got, = cli.lines("pull", cli.queue)
    cli("extend", got["receipt"], "--checkpoint", '{"row": 1,\n "of": 2}')
    bad = cli.try_("extend", got["receipt"], "--checkpoint", "row 1")
    assert bad.returncode == 2 and b"invalid --checkpoint" in bad.stderr
    cli("nack", got["receipt"], "--delay", "0s")
    again, = cli.lines("pull", cli.queue)
    assert again["checkpoint"] == {"row": 1, "of": 2}


# Three steps; the first two attempts end as $1 says, behind step 1 and 2.
STEPS = """
step=${SLUICE_CHECKPOINT:-0}
echo "$SLUICE_ATTEMPTS from $step" >> ran
step=$((step + 1))
echo "{\\"checkpoint\\": 0}" >&3
printf '{"checkpoint":%s}' $step >&3
[ $step = 3 ] || { echo >&3; STORED END; }
"""
# The worker has stored it when another can see it.
STORED = """
until [ "$($SLUICE state get "q/$SLUICE_QUEUE/state/$SLUICE_UID")" = $step ]; do sleep 0.05; done;
"""


def steps(stored, end):
    return STEPS.replace("STORED", stored.strip()).replace("END", end)


def test_a_command_that_fails_goes_on_where_it_was(cli):
    """The last line counts, also if the command ends at once."""
    cli.server.policy(retry={"kind": "none"})
    cli.push("x")
    done = work(cli, "sh", "-c", steps("", "exit 1"), options=["--max", "3"])
    assert cli.counts(done) == {"done": 1, "failed": 2}
    assert cli.file("ran") == "1 from 0\n2 from 1\n3 from 2\n"
    assert cli.stats()["total"] == 0


def test_a_command_whose_worker_is_killed_goes_on_where_it_was(cli):
    """PW-F8: kill -9 of the worker, which takes the command along."""
    cli.push("x")
    ran = cli.folder / "ran"
    for n in (1, 2):
        killed = work(cli, "sh", "-c", steps(STORED, "echo $$ >> pids; sleep 600"), options=SOON)
        until(lambda: len(cli.file("pids").split()) == n if (cli.folder / "pids").exists() else None)
        killed.kill()
        killed.communicate(timeout=LIMIT)
    done = work(cli, "sh", "-c", steps(STORED, "exit 1"), options=["--max", "1"])
    assert cli.counts(done) == {"done": 1}
    assert ran.read_text() == "1 from 0\n2 from 1\n3 from 2\n"
    until(lambda: not any(runs(p) for p in pids(cli, 2)))


def test_a_command_goes_on_though_its_server_was_killed(own):
    """PW-F8: kill -9 of the server. The worker asks again until it answers."""
    cli = own
    cli.server.policy(retry={"kind": "none"})
    cli.push("x")
    command = steps(STORED, "echo $$ >> pids; while [ ! -e go ]; do sleep 0.05; done; exit 1")
    done = work(cli, "sh", "-c", command, options=["--max", "3", "--lease", "10m"])
    until(lambda: (cli.folder / "pids").exists())
    cli.server.restart("kill")
    (cli.folder / "go").touch()
    assert cli.counts(done) == {"done": 1, "failed": 2}
    assert cli.file("ran") == "1 from 0\n2 from 1\n3 from 2\n"


def test_checkpoints_and_messages_come_on_one_descriptor(cli):
    cli.push("x")
    command = f"""
        echo '{{"checkpoint":1}}' >&3
        echo '{{"queue":"{cli.queue}-next","text":"a"}}' >&3
        i=0; while [ $i -lt 300 ]; do echo '{{"checkpoint":{{"text":"'$i'"}}}}' >&3; i=$((i + 1)); done
        echo '{{"queue":"{cli.queue}-next","text":"b"}}' >&3
        printf '{{"checkpoint":2}}' >&3
    """
    done = work(cli, "sh", "-c", command, options=["--max", "1"])
    assert cli.counts(done) == {"done": 1}
    assert cli("pull", f"{cli.queue}-next", "--limit", "2", "--raw").split() == ["a", "b"]


def test_a_checkpoint_that_is_refused_does_not_stop_the_command(cli):
    cli.push("x")
    command = """printf '{"checkpoint":"%070000d"}\\n' 1 >&3; sleep 1; echo '{"checkpoint":2}' >&3; exit 1"""
    done = work(cli, "sh", "-c", command, options=["--max", "1"])
    _, said = done.communicate(timeout=LIMIT)
    assert "the checkpoint was refused" in said
    assert cli.lines("pull", cli.queue, "--wait", "10s")[0]["checkpoint"] == 2


LINES = """
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    step = m.get("checkpoint", {"step": 0})["step"]
    open("ran", "a").write(f"{m['attempts']} from {step}\\n")
    for i in (1, 2):
        print(json.dumps({"checkpoint": {"step": step + i}}), flush=True)
    print(json.dumps({"outcome": "ack"} if step == 4 else {"outcome": "nack", "delay": "0s", "checkpoint": {"step": step + 2}}), flush=True)
"""


def test_a_long_lived_child_writes_checkpoints_before_its_answer(cli):
    cli.push("x")
    (cli.folder / "worker.py").write_text(LINES)
    done = work(cli, sys.executable, "worker.py", options=["--lines", "--max", "3"])
    assert cli.counts(done) == {"done": 1, "failed": 2}
    assert cli.file("ran") == "1 from 0\n2 from 2\n3 from 4\n"
