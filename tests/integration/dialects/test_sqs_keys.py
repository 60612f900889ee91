"""Access keys of clients of SQS: AWS Signature Version 4. docs/sqs.md."""
import datetime
import signal

import pytest

from served import QUICK, Refused, Server, until
from sqs import Failed, Json, Query, signer
from tokens import Secret

KEY = Secret("correct-horse-battery-staple-0123456789")
FILE = """# key      secret       scopes
AKIAJOBS     s3cret/+of=jobs    jobs:write,jobs:consume
AKIAREAD\tanother-secret\tjobs:read
AKIAOPS      third-secret       *:*
"""
JOBS, READ, OPS = ("AKIAJOBS", "s3cret/+of=jobs"), ("AKIAREAD", "another-secret"), ("AKIAOPS", "third-secret")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    (folder / "aws").write_text(FILE)
    (folder / "secret").write_bytes(KEY.secret + b"\n")
    with Server(folder / "data", "--auth-aws-keys", str(folder / "aws"), "--auth-keys", f"HS256:{folder}/secret",
                engine=QUICK) as server:
        server.aws = folder / "aws"
        Json(server, "/sqs/jobs", sign=signer(*OPS)).CreateQueue(QueueName="q")
        yield server


URL = "http://h/jobs/q"


@pytest.fixture(params=[Json, Query])
def protocol(request):
    return request.param


def refused(code, call, **params):
    with pytest.raises(Failed) as caught:
        call(**params)
    assert (caught.value.status, caught.value.code) == (403, code), caught.value


def test_a_signed_request_has_the_rights_of_its_key(server, protocol):
    sqs = protocol(server, sign=signer(*JOBS))
    sqs.SendMessage(QueueUrl=URL, MessageBody="x")
    message, = sqs.ReceiveMessage(QueueUrl=URL)["Messages"]
    sqs.DeleteMessage(QueueUrl=URL, ReceiptHandle=message["ReceiptHandle"])
    refused("AccessDenied", sqs.PurgeQueue, QueueUrl=URL)
    refused("AccessDenied", sqs.SendMessage, QueueUrl="http://h/other/q", MessageBody="x")
    reader = protocol(server, sign=signer(*READ))
    refused("AccessDenied", reader.SendMessage, QueueUrl=URL, MessageBody="x")
    assert reader.GetQueueUrl(QueueName="q")["QueueUrl"].endswith("/jobs/q")  # its only namespace


def test_the_path_is_signed(server, protocol):
    sqs = protocol(server, "/jobs/q", sign=signer(*JOBS))
    sqs.SendMessage(MessageBody="x")
    sqs = protocol(server, "/jobs/q", sign=lambda s, m, path, h, b: signer(*JOBS)(s, m, "/jobs/r", h, b))
    refused("SignatureDoesNotMatch", sqs.SendMessage, MessageBody="x")


NOW = datetime.datetime.now(datetime.timezone.utc)
MINUTES = datetime.timedelta(minutes=1)


def other_signature(headers):
    last = headers["Authorization"][-1]
    return {**headers, "Authorization": headers["Authorization"][:-1] + ("0" if last != "0" else "1")}


@pytest.mark.parametrize("sign, code", [
    (signer("AKIANONE", "x"), "InvalidClientTokenId"),
    (signer("AKIAJOBS", "wrong"), "SignatureDoesNotMatch"),
    (signer(*JOBS, tamper=other_signature), "SignatureDoesNotMatch"),
    (signer(*JOBS, host="sqs.us-east-1.amazonaws.com"), "SignatureDoesNotMatch"),
    (signer(*JOBS, service="s3"), "SignatureDoesNotMatch"),
    (signer(*JOBS, when=NOW - 20 * MINUTES), "SignatureDoesNotMatch"),
    (signer(*JOBS, when=NOW + 20 * MINUTES), "SignatureDoesNotMatch"),
    (signer(*JOBS, tamper=lambda h: {**h, "X-Amz-Date": "x"}), "SignatureDoesNotMatch"),
    (signer(*JOBS, leave_out=["host"]), "SignatureDoesNotMatch"),
    (lambda s, m, p, h, b: {**h, "Authorization": "AWS4-HMAC-SHA256 nonsense"}, "InvalidClientTokenId"),
    (lambda s, m, p, h, b: h, "InvalidSecurity"),
], ids=["key", "secret", "signature", "host", "service", "old", "early", "date", "unsigned_host", "nonsense", "none"])
def test_a_wrong_signature_is_refused(server, protocol, sign, code):
    refused(code, protocol(server, sign=sign).SendMessage, QueueUrl=URL, MessageBody="x")


def test_a_changed_body_is_refused(server):
    sqs = Json(server, sign=lambda s, m, p, h, b: signer(*JOBS)(s, m, p, h, b + " "))
    refused("SignatureDoesNotMatch", sqs.SendMessage, QueueUrl=URL, MessageBody="x")


def test_any_region_is_fine(server):
    Json(server, sign=signer(*JOBS, region="eu-central-1")).SendMessage(QueueUrl=URL, MessageBody="x")
    Json(server, sign=signer(*JOBS, region="us-east-1")).SendMessage(QueueUrl=URL, MessageBody="x")


def test_a_signature_opens_no_other_api(server):
    """SQS-4: no other route checks the body against a signature."""
    for path, body in (("/enqueue", '[{"namespace":"jobs","topic":"q","text":"x"}]'), ("/v1/acquire", "{}")):
        headers = signer(*OPS)(server, "POST", path, {}, body)
        assert server.call("POST", path, body, headers).status == 401


def test_tokens_are_fine_too(server):
    Json(server, headers=KEY.bearer(scope="jobs:write")).SendMessage(QueueUrl=URL, MessageBody="x")
    refused("AccessDenied", Json(server, headers=KEY.bearer(scope="jobs:read")).SendMessage, QueueUrl=URL, MessageBody="x")


def test_keys_are_reloaded(server):
    new = Json(server, sign=signer("AKIANEW", "new-secret"))
    refused("InvalidClientTokenId", new.SendMessage, QueueUrl=URL, MessageBody="x")
    server.aws.write_text(FILE.replace("AKIAREAD\tanother-secret\tjobs:read", "AKIANEW new-secret jobs:write"))
    server.process.send_signal(signal.SIGHUP)

    def works():
        try:
            return new.SendMessage(QueueUrl=URL, MessageBody="x")
        except Failed:
            return False
    until(works)
    refused("InvalidClientTokenId", Json(server, sign=signer(*READ)).ListQueues)


@pytest.mark.parametrize("text", ["", "KEY SECRET", "KEY SECRET nonsense", "A/B SECRET *:*", "A S *:*\nA S *:*",
                                  "KEY " + "x" * 61 + " *:*", "KEY SECRET *:* more"])
def test_a_file_of_keys_that_is_wrong_is_refused(tmp_path, text):
    (tmp_path / "aws").write_text(text)
    with pytest.raises(Refused) as caught:
        Server(tmp_path / "data", "--auth-aws-keys", str(tmp_path / "aws"), engine=QUICK)
    assert "auth.aws_keys" in str(caught.value) and "SECRET *" not in str(caught.value)


def test_keys_alone_close_the_other_apis(tmp_path):
    (tmp_path / "aws").write_text(FILE)
    with Server(tmp_path / "data", "--auth-aws-keys", str(tmp_path / "aws"), engine=QUICK) as server:
        assert server.get("/topics", namespace="jobs").status == 401
        assert Json(server, sign=signer(*JOBS)).ListQueues() == {}
