"""Unmodified clients of Amazon SQS against the server: docs/clients.md has the table, and this prints it.

Every client signs, and the server checks the signatures.
"""
import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import boto3
import botocore.exceptions
import celery
import kombu
import pytest

from clients_table import check
from served import START, Server, until

HERE = Path(__file__).parent / "sqs_clients"
KEY, SECRET = "AKIACLIENTS", "a/secret+of=clients"
RAN = []  # rows of the table


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clients")
    (folder / "aws").write_text(f"{KEY} {SECRET} *:*\n")
    with Server(folder / "data", "--auth-aws-keys", str(folder / "aws")) as server:
        yield server


@pytest.fixture
def env(server):
    address = "%s:%d" % server.address
    return {**os.environ, "ENDPOINT": f"http://{address}", "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null",
            "BROKER": f"sqs://{KEY}:{SECRET.replace('/', '%2F').replace('+', '%2B').replace('=', '%3D')}@{address}",
            "NO_PROXY": "*", "no_proxy": "*"}


def run(*command, env, timeout=120, **more):
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout, check=False, **more)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


# --- boto3 ------------------------------------------------------------------------------------


@pytest.fixture
def sqs(server):
    RAN.append(("boto3", boto3.__version__, "queues, batches, FIFO, attributes, errors", "passes"))
    return boto3.client("sqs", endpoint_url="http://%s:%d" % server.address, region_name="us-east-1",
                        aws_access_key_id=KEY, aws_secret_access_key=SECRET)


def test_boto3_sends_receives_and_deletes(sqs):
    url = sqs.create_queue(QueueName="boto3", Attributes={"VisibilityTimeout": "60"}, tags={"a": "b"})["QueueUrl"]
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"a": "b"}
    sent = sqs.send_message_batch(QueueUrl=url, Entries=[
        {"Id": f"m{i}", "MessageBody": f"body {i}", "MessageAttributes": {
            "n": {"DataType": "Number", "StringValue": str(i)}, "b": {"DataType": "Binary", "BinaryValue": b"\x00\xff"}}}
        for i in range(10)])
    assert len(sent["Successful"]) == 10
    got = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"],
                              AttributeNames=["All"])["Messages"]  # boto3 compares the sums
    assert [m["Body"] for m in got] == [f"body {i}" for i in range(10)]
    assert got[3]["MessageAttributes"]["b"]["BinaryValue"] == b"\x00\xff"
    assert got[3]["Attributes"]["ApproximateReceiveCount"] == "1"
    sqs.change_message_visibility_batch(QueueUrl=url, Entries=[
        {"Id": str(i), "ReceiptHandle": m["ReceiptHandle"], "VisibilityTimeout": 100} for i, m in enumerate(got)])
    done = sqs.delete_message_batch(QueueUrl=url, Entries=[
        {"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]} for i, m in enumerate(got)])
    assert len(done["Successful"]) == 10
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    sqs.purge_queue(QueueUrl=url)
    assert url in sqs.list_queues(QueueNamePrefix="boto")["QueueUrls"]


def test_boto3_knows_the_errors(sqs):
    with pytest.raises(sqs.exceptions.QueueDoesNotExist) as caught:
        sqs.get_queue_url(QueueName="none")
    assert caught.value.response["Error"]["Code"] == "AWS.SimpleQueueService.NonExistentQueue"
    url = sqs.create_queue(QueueName="errors")["QueueUrl"]
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        sqs.send_message_batch(QueueUrl=url, Entries=[])
    assert caught.value.response["Error"]["Code"] == "AWS.SimpleQueueService.EmptyBatchRequest"
    with pytest.raises(sqs.exceptions.QueueNameExists):
        sqs.create_queue(QueueName="errors", Attributes={"DelaySeconds": "7"})


def test_the_resources_of_boto3(sqs, server):
    resource = boto3.resource("sqs", endpoint_url="http://%s:%d" % server.address, region_name="us-east-1",
                              aws_access_key_id=KEY, aws_secret_access_key=SECRET)
    queue = resource.create_queue(QueueName="orders.fifo", Attributes={"FifoQueue": "true",
                                                                       "ContentBasedDeduplication": "true"})
    first = queue.send_message(MessageBody="one", MessageGroupId="g")
    queue.send_message(MessageBody="one", MessageGroupId="g")
    assert int(first["SequenceNumber"]) > 0
    message, = resource.get_queue_by_name(QueueName="orders.fifo").receive_messages(MaxNumberOfMessages=10)
    message.delete()
    assert queue.attributes["FifoQueue"] == "true"


# --- aws ----------------------------------------------------------------------------------------


def test_the_aws_command(env):
    aws = ["/usr/bin/aws", "--endpoint-url", env["ENDPOINT"], "--output", "json", "sqs"]
    RAN.append(("aws", run("/usr/bin/aws", "--version", env=env).split()[0].split("/")[1], "create, send, receive, delete", "passes"))
    url = json.loads(run(*aws, "create-queue", "--queue-name", "cli", env=env))["QueueUrl"]
    run(*aws, "send-message", "--queue-url", url, "--message-body", "hello", "--delay-seconds", "0", env=env)
    message, = json.loads(run(*aws, "receive-message", "--queue-url", url, "--wait-time-seconds", "5", env=env))["Messages"]
    assert message["Body"] == "hello"
    run(*aws, "delete-message", "--queue-url", url, "--receipt-handle", message["ReceiptHandle"], env=env)


# --- node ---------------------------------------------------------------------------------------


def node_modules():
    return subprocess.run(["npm", "root", "--global"], capture_output=True, text=True, check=True, timeout=START).stdout.strip()


def test_the_sdk_of_javascript_and_sqs_consumer(env):
    modules = node_modules()
    seen = json.loads(run("node", str(HERE / "consume.mjs"), env={**env, "NODE_MODULES": modules}))
    assert seen == {"moved": "COMPLETED 1", "seen": 10, "known": "true QueueDoesNotExist", "left": "0", "hidden": "0", "none": 0}
    for name in ("@aws-sdk/client-sqs", "sqs-consumer"):
        version = json.loads(Path(modules, name, "package.json").read_text())["version"]
        RAN.append((name, version, "a batch of ten is sent, consumed with heartbeats and deleted", "passes"))


# --- celery -------------------------------------------------------------------------------------


def ask(env, *names):
    code = "import jobs\n" + "\n".join(f"jobs.{name}" for name in names)
    run("/usr/bin/python3", "-c", code, env=env, cwd=HERE)


@contextmanager
def worker(env, tmp_path):
    """A worker of Celery; what it says is in the error if the body fails."""
    log = tmp_path / "worker.log"
    with open(log, "w", encoding="utf-8") as out, subprocess.Popen(
            ["/usr/bin/python3", "-m", "celery", "-A", "jobs", "worker", "--pool", "solo", "--loglevel", "info",
             "--without-gossip", "--without-mingle"], env=env, cwd=HERE, stderr=out, stdout=out) as process:
        try:
            yield
            process.terminate()
            process.wait(START)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            raise AssertionError(f"{error}; the worker said:\n{log.read_text()}") from error
        finally:
            process.kill()  # the end of Popen waits without a bound


def ended(sqs, name):
    """Every message is deleted: a worker that is stopped between a task and its delete waits for ever at times."""
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return all(counts[f"ApproximateNumberOfMessages{kind}"] == "0" for kind in ("", "NotVisible", "Delayed"))


def noted(notes):
    return sorted(notes.read_text().split("\n")[:-1]) if notes.exists() else []


@pytest.fixture
def notes(tmp_path):
    return tmp_path / "notes"


def test_celery_runs_and_retries_tasks(env, tmp_path, notes, sqs):
    """It posts to the path of a queue's URL. Each task runs once, unless it asks for a retry."""
    env = {**env, "NOTES": str(notes), "PYTHONDONTWRITEBYTECODE": "1"}
    wanted = sorted(["add 5", "flaky 0", "flaky 1", "flaky 2", "fails", "slow begins", "slow ends"])
    ask(env, "add.delay(2, 3)", "flaky.delay()", "fails.delay()", "slow.delay()")
    with worker(env, tmp_path):
        until(lambda: noted(notes) == wanted and ended(sqs, "celery"), 3 * START)
    assert noted(notes) == wanted
    RAN.append(("celery", celery.__version__, "tasks run once, one is retried by Celery", "passes"))


def test_celery_changes_the_visibility_of_a_failed_task(env, tmp_path, notes, sqs):
    """The queue hides a message for an hour; the policy of Celery shows it again after a second."""
    url = sqs.create_queue(QueueName="patient", Attributes={"VisibilityTimeout": "3600"})["QueueUrl"]
    env = {**env, "NOTES": str(notes), "QUEUE_URL": url, "PYTHONDONTWRITEBYTECODE": "1"}
    ask(env, "stubborn.delay()")
    with worker(env, tmp_path):
        until(lambda: noted(notes) == ["stubborn"] * 3 and ended(sqs, "patient"), 3 * START)
    RAN.append(("kombu", kombu.__version__, "the back-off of a task changes its visibility", "passes"))


# --- php, go --------------------------------------------------------------------------------------


def test_async_aws_of_php(env):
    out = run("php", "-d", "include_path=/usr/share/php", str(HERE / "send.php"), env=env)
    assert out == "same hello from php\n"
    RAN.append(("async-aws/sqs", "1.7.0", "create, send, receive, extend, delete", "passes"))


@pytest.mark.skipif("LONG" not in os.environ or not shutil.which("go"), reason="long, and needs `tools/setup go`")
def test_the_sdk_of_go(env, tmp_path):
    env = {**env, "GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOCACHE": str(tmp_path), "GOFLAGS": "",
           "HOME": str(tmp_path)}
    out = run("go", "run", str(HERE / "main.go"), env=env, timeout=280)
    assert out == "10 10 9 true\n"
    RAN.append(("aws-sdk-go", "1.44.133", "a batch of ten is sent, received and deleted; codes of errors", "passes"))


def test_the_table_of_the_page_says_what_ran(capsys):
    """Last: docs/clients.md, and what the tests before have run."""
    missing = check("Clients of Amazon SQS", RAN, capsys)
    assert missing <= {"aws-sdk-go"}, missing
