"""The SQS dialect on the wire, in both protocols. test_sqs_clients.py has real clients. docs/sqs.md."""
import base64
import hashlib
import json
import threading
import time

import pytest

from served import ENGINE, Server, until
from sqs import Failed, Json, Query

NO_SHARES = pytest.mark.skipif(ENGINE == "redis", reason="engine redis has no shares")
NO_LETTERS = pytest.mark.skipif(ENGINE == "redis", reason="engine redis keeps dead letters in their queue")
PROTOCOLS = {"json": Json, "query": Query}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("sqs") / "data") as server:
        yield server


@pytest.fixture(params=PROTOCOLS)
def sqs(server, request):
    return PROTOCOLS[request.param](server)


names = iter(range(1, 10000))


def make(sqs, fifo=False, **attributes):
    """A new queue."""
    name = f"queue-{next(names)}" + (".fifo" if fifo else "")
    if fifo:
        attributes["FifoQueue"] = "true"
    return sqs.CreateQueue(QueueName=name, Attributes=attributes)["QueueUrl"]


def send(sqs, url, body="hello", **more):
    return sqs.SendMessage(QueueUrl=url, MessageBody=body, **more)


def receive(sqs, url, n=1, **more):
    """Exactly n messages."""
    messages = sqs.ReceiveMessage(QueueUrl=url, MaxNumberOfMessages=max(n, 1), **more).get("Messages", [])
    assert len(messages) == n, messages
    return messages


def refused(code, call, **params):
    with pytest.raises(Failed) as caught:
        call(**params)
    assert caught.value.code == code, caught.value
    return caught.value


def counts(sqs, url):
    found = sqs.GetQueueAttributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return [int(found["ApproximateNumberOfMessages" + end]) for end in ("", "NotVisible", "Delayed")]


def md5(text):
    return hashlib.md5(text.encode()).hexdigest()


# --- messages -------------------------------------------------------------------------------


def test_a_message_is_sent_received_and_deleted(sqs):
    url = make(sqs)
    sent = send(sqs, url, "héllo <&> \"x\"\r\n")
    assert sent["MD5OfMessageBody"] == md5("héllo <&> \"x\"\r\n")
    assert "MD5OfMessageAttributes" not in sent and "SequenceNumber" not in sent
    message, = receive(sqs, url)
    assert message["MessageId"] == sent["MessageId"]
    assert message["Body"] == "héllo <&> \"x\"\r\n" and message["MD5OfBody"] == sent["MD5OfMessageBody"]
    assert "Attributes" not in message and "MessageAttributes" not in message
    assert counts(sqs, url) == [0, 1, 0]
    assert sqs.DeleteMessage(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"]) == {}
    assert counts(sqs, url) == [0, 0, 0]
    assert sqs.ReceiveMessage(QueueUrl=url) == {}  # without Messages


# The sums that the SDKs of AWS compute.
VECTORS = [
    ({"attribName1": {"DataType": "String", "StringValue": "attribValue 1"}}, "19e27d4e946b072f3f58da80d94fd778"),
    ({"customNumberTypeAttrib": {"DataType": "Number.float",
                                 "StringValue": "4563442423554324324264524243.32543234"}},
     "9fe1b90bbd9965bdf77bac517c7d2495"),
    ({"binaryAttribute": {"DataType": "Binary", "BinaryValue": "SGVsbG8gYmluYXJ5IHdvcmxkIQ=="}},
     "31a92b15d92f8db860eda32aceb656c3"),
]
ALL = {**VECTORS[0][0], **VECTORS[1][0], **VECTORS[2][0]}


@pytest.mark.parametrize("attributes, total", [*VECTORS, (ALL, "c932db14a896c663f83c260297d594ff")])
def test_message_attributes_come_back_with_their_sum(sqs, attributes, total):
    url = make(sqs)
    assert send(sqs, url, MessageAttributes=attributes)["MD5OfMessageAttributes"] == total
    message, = receive(sqs, url, MessageAttributeNames=["All"])
    assert message["MessageAttributes"] == attributes
    assert message["MD5OfMessageAttributes"] == total


def test_the_sum_is_over_the_attributes_that_are_returned(sqs):
    url = make(sqs)
    send(sqs, url, MessageAttributes=ALL)
    message, = receive(sqs, url, MessageAttributeNames=["attrib.*", "other"])
    assert list(message["MessageAttributes"]) == ["attribName1"]
    assert message["MD5OfMessageAttributes"] == VECTORS[0][1]


def test_system_attributes_are_those_that_are_asked_for(sqs):
    url = make(sqs)
    before = time.time() * 1000 - 1000
    send(sqs, url, MessageSystemAttributes={
        "AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5759e988"}})
    message, = receive(sqs, url, AttributeNames=["All"], VisibilityTimeout=0)
    found = message["Attributes"]
    assert found["AWSTraceHeader"] == "Root=1-5759e988" and found["ApproximateReceiveCount"] == "1"
    assert before < int(found["SentTimestamp"]) <= int(found["ApproximateFirstReceiveTimestamp"])
    assert "MessageAttributes" not in message  # the trace header is no message attribute
    message, = receive(sqs, url, MessageSystemAttributeNames=["ApproximateReceiveCount"], WaitTimeSeconds=5)
    assert message["Attributes"] == {"ApproximateReceiveCount": "2"}


def test_a_batch_answers_entry_by_entry(sqs):
    url = make(sqs)
    entries = [{"Id": f"m{i}", "MessageBody": f"body {i}"} for i in range(8)]
    entries[2]["MessageBody"] = "\x01"
    entries[5]["DelaySeconds"] = -1
    entries[6]["MessageAttributes"] = VECTORS[0][0]
    answer = sqs.SendMessageBatch(QueueUrl=url, Entries=entries)
    assert [row["Id"] for row in answer["Successful"]] == ["m0", "m1", "m3", "m4", "m6", "m7"]
    assert [row["MD5OfMessageBody"] for row in answer["Successful"]][0] == md5("body 0")
    assert answer["Successful"][4]["MD5OfMessageAttributes"] == VECTORS[0][1]
    assert [(row["Id"], row["Code"], row["SenderFault"]) for row in answer["Failed"]] == [
        ("m2", "InvalidMessageContents", True), ("m5", "InvalidParameterValue", True)]
    messages = receive(sqs, url, 6)
    assert [m["Body"] for m in messages] == [f"body {i}" for i in (0, 1, 3, 4, 6, 7)]
    handles = [{"Id": f"d{i}", "ReceiptHandle": m["ReceiptHandle"]} for i, m in enumerate(messages)]
    handles.append({"Id": "bad", "ReceiptHandle": "nonsense"})
    answer = sqs.DeleteMessageBatch(QueueUrl=url, Entries=handles)
    assert [row["Id"] for row in answer["Successful"]] == [f"d{i}" for i in range(6)]
    assert [(row["Id"], row["Code"]) for row in answer["Failed"]] == [("bad", "ReceiptHandleIsInvalid")]
    assert counts(sqs, url) == [0, 0, 0]


@pytest.mark.parametrize("entries, code", [
    ([], "EmptyBatchRequest"),
    ([{"Id": f"m{i}", "MessageBody": "x"} for i in range(11)], "TooManyEntriesInBatchRequest"),
    ([{"Id": "a", "MessageBody": "x"}, {"Id": "a", "MessageBody": "x"}], "BatchEntryIdsNotDistinct"),
    ([{"Id": "a b", "MessageBody": "x"}], "InvalidBatchEntryId"),
    ([{"Id": f"m{i}", "MessageBody": "x" * 600000} for i in range(2)], "BatchRequestTooLong"),
], ids=["empty", "many", "twice", "name", "long"])
def test_a_batch_is_refused_whole_if_it_is_no_batch(sqs, entries, code):
    refused(f"AWS.SimpleQueueService.{code}", sqs.SendMessageBatch, QueueUrl=make(sqs), Entries=entries)


@pytest.mark.parametrize("more, code", [
    ({"MessageBody": ""}, "MissingParameter"),
    ({"MessageBody": "\x0b"}, "InvalidMessageContents"),
    ({"MessageBody": "\ufffe"}, "InvalidMessageContents"),
    ({"MessageBody": "x" * (1 << 20) + "x"}, "InvalidParameterValue"),
    ({"DelaySeconds": -1}, "InvalidParameterValue"),
    ({"MessageDeduplicationId": "x"}, "InvalidParameterValue"),
    ({"MessageGroupId": "a b"}, "InvalidParameterValue"),
    ({"MessageAttributes": {"AWS.x": {"DataType": "String", "StringValue": "x"}}}, "InvalidParameterValue"),
    ({"MessageAttributes": {"a..b": {"DataType": "String", "StringValue": "x"}}}, "InvalidParameterValue"),
    ({"MessageAttributes": {"a": {"DataType": "Text", "StringValue": "x"}}}, "InvalidParameterValue"),
    ({"MessageAttributes": {"a": {"DataType": "String", "StringValue": ""}}}, "InvalidParameterValue"),
    ({"MessageAttributes": {"a": {"DataType": "Binary", "StringValue": "x"}}}, "InvalidParameterValue"),
    ({"MessageAttributes": {"Sluice.Priority": {"DataType": "Number", "StringValue": "x"}}}, "InvalidParameterValue"),
    ({"MessageSystemAttributes": {"Other": {"DataType": "String", "StringValue": "x"}}}, "InvalidParameterValue"),
])
def test_an_invalid_message_is_refused(sqs, more, code):
    refused(code, sqs.SendMessage, **{"QueueUrl": make(sqs), "MessageBody": "x", **more})


def test_a_message_of_a_mebibyte_fits(sqs):
    url = make(sqs)
    send(sqs, url, "x" * (1 << 20))
    message, = receive(sqs, url)
    assert len(message["Body"]) == 1 << 20


def test_a_queue_limits_the_size_of_its_messages(sqs):
    url = make(sqs, MaximumMessageSize="1024")
    send(sqs, url, "x" * 1024)
    refused("InvalidParameterValue", sqs.SendMessage, QueueUrl=url, MessageBody="x" * 1025)


def test_a_queue_that_is_drained_takes_no_messages(sqs, server):
    url = make(sqs)
    send(sqs, url)
    assert server.post("/v1/admin/queue/drain", {"namespace": "default", "queue": url.rsplit("/", 1)[1]}).status == 200
    refused("AWS.SimpleQueueService.UnsupportedOperation", sqs.SendMessage, QueueUrl=url, MessageBody="new")
    receive(sqs, url)


def test_a_delay_of_the_message_or_of_the_queue(sqs):
    url = make(sqs, DelaySeconds="3600")
    send(sqs, url)
    send(sqs, url, DelaySeconds=100 * 86400)  # AWS refuses more than 15 minutes
    assert counts(sqs, url) == [0, 0, 2]
    send(sqs, url, "now", DelaySeconds=0)
    message, = receive(sqs, url)
    assert message["Body"] == "now"


def test_priority_by_an_attribute(sqs):
    url = make(sqs)
    send(sqs, url, "later")
    send(sqs, url, "first", MessageAttributes={"Sluice.Priority": {"DataType": "Number", "StringValue": "1"}})
    assert [m["Body"] for m in receive(sqs, url, 2)] == ["first", "later"]


def test_a_long_poll_ends_with_a_message(sqs):
    url = make(sqs)
    got = []
    poll = threading.Thread(target=lambda: got.extend(receive(sqs, url, WaitTimeSeconds=20)))
    poll.start()
    send(sqs, url, "awaited")
    poll.join(60)
    assert got[0]["Body"] == "awaited"


def test_the_queue_may_say_how_long_a_poll_waits(sqs):
    url = make(sqs, ReceiveMessageWaitTimeSeconds="1")
    began = time.monotonic()
    receive(sqs, url, 0)
    assert time.monotonic() - began > 0.9


@pytest.mark.parametrize("more", [
    {"MaxNumberOfMessages": 0}, {"MaxNumberOfMessages": 11}, {"WaitTimeSeconds": 21}, {"VisibilityTimeout": 43201}])
def test_a_receive_out_of_range_is_refused(sqs, more):
    refused("InvalidParameterValue", sqs.ReceiveMessage, QueueUrl=make(sqs), **more)


# --- visibility -------------------------------------------------------------------------------


def test_visibility_0_gives_a_message_back_at_once(sqs):
    url = make(sqs)
    send(sqs, url)
    first, = receive(sqs, url)
    sqs.ChangeMessageVisibility(QueueUrl=url, ReceiptHandle=first["ReceiptHandle"], VisibilityTimeout=0)
    again, = receive(sqs, url, AttributeNames=["ApproximateReceiveCount"])
    assert again["Attributes"]["ApproximateReceiveCount"] == "2"
    refused("AWS.SimpleQueueService.MessageNotInflight", sqs.ChangeMessageVisibility, QueueUrl=url,
            ReceiptHandle=first["ReceiptHandle"], VisibilityTimeout=10)


def test_a_longer_visibility_holds(sqs):
    url = make(sqs, VisibilityTimeout="2")
    send(sqs, url)
    message, = receive(sqs, url)
    sqs.ChangeMessageVisibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=600)
    receive(sqs, url, 0, WaitTimeSeconds=3)
    assert counts(sqs, url) == [0, 1, 0]


def test_a_message_that_is_not_deleted_comes_again(sqs):
    url = make(sqs, VisibilityTimeout="1")
    send(sqs, url)
    receive(sqs, url)
    receive(sqs, url, WaitTimeSeconds=20)


def test_a_batch_of_visibilities(sqs):
    url = make(sqs)
    for i in range(3):
        send(sqs, url, str(i))
    one, two, three = receive(sqs, url, 3)
    answer = sqs.ChangeMessageVisibilityBatch(QueueUrl=url, Entries=[
        {"Id": "now", "ReceiptHandle": one["ReceiptHandle"], "VisibilityTimeout": 0},
        {"Id": "bad", "ReceiptHandle": two["ReceiptHandle"], "VisibilityTimeout": 43201},
        {"Id": "later", "ReceiptHandle": three["ReceiptHandle"], "VisibilityTimeout": 60}])
    assert [row["Id"] for row in answer["Successful"]] == ["now", "later"]
    assert [(row["Id"], row["Code"]) for row in answer["Failed"]] == [("bad", "InvalidParameterValue")]
    assert counts(sqs, url) == [1, 2, 0]


def test_an_old_handle_deletes_nothing(sqs):
    """A standard queue says nothing; a FIFO queue refuses."""
    for fifo in (False, True):
        url = make(sqs, fifo)
        send(sqs, url, **({"MessageGroupId": "g", "MessageDeduplicationId": "d"} if fifo else {}))
        old, = receive(sqs, url)
        sqs.ChangeMessageVisibility(QueueUrl=url, ReceiptHandle=old["ReceiptHandle"], VisibilityTimeout=0)
        new, = receive(sqs, url)
        if fifo:
            refused("InvalidParameterValue", sqs.DeleteMessage, QueueUrl=url, ReceiptHandle=old["ReceiptHandle"])
        else:
            sqs.DeleteMessage(QueueUrl=url, ReceiptHandle=old["ReceiptHandle"])
        assert counts(sqs, url) == [0, 1, 0]
        for _ in range(2):  # twice is as once
            sqs.DeleteMessage(QueueUrl=url, ReceiptHandle=new["ReceiptHandle"])
        assert counts(sqs, url) == [0, 0, 0]


def test_a_handle_of_another_queue_is_invalid(sqs):
    url, other = make(sqs), make(sqs)
    send(sqs, url)
    message, = receive(sqs, url)
    for handle in (message["ReceiptHandle"], "x", message["ReceiptHandle"][:-1]):
        error = refused("ReceiptHandleIsInvalid", sqs.DeleteMessage, QueueUrl=other, ReceiptHandle=handle)
        assert error.status == 404


# --- FIFO and fair queues -----------------------------------------------------------------------


def test_a_group_is_delivered_in_order_one_at_a_time(sqs):
    url = make(sqs, True, ContentBasedDeduplication="true")
    for body in ("a1", "a2", "b1"):
        send(sqs, url, body, MessageGroupId=body[0])
    first, other = receive(sqs, url, 2, AttributeNames=["All"])
    assert [first["Body"], other["Body"]] == ["a1", "b1"]
    assert first["Attributes"]["MessageGroupId"] == "a"
    assert first["Attributes"]["MessageDeduplicationId"] == hashlib.sha256(b"a1").hexdigest()
    receive(sqs, url, 0)
    sqs.DeleteMessage(QueueUrl=url, ReceiptHandle=first["ReceiptHandle"])
    second, = receive(sqs, url, AttributeNames=["SequenceNumber"])
    assert second["Body"] == "a2"
    assert second["Attributes"]["SequenceNumber"] > first["Attributes"]["SequenceNumber"]
    assert len(second["Attributes"]["SequenceNumber"]) == 20


def test_a_duplicate_is_accepted_and_not_delivered(sqs):
    url = make(sqs, True)
    once = {"MessageGroupId": "g", "MessageDeduplicationId": "d"}
    sent = send(sqs, url, "one", **once)
    assert len(sent["SequenceNumber"]) == 20
    assert send(sqs, url, "two", **once)["MessageId"] == sent["MessageId"]
    message, = receive(sqs, url, AttributeNames=["All"])
    assert message["Attributes"]["SequenceNumber"] == sent["SequenceNumber"]
    assert message["Attributes"]["MessageDeduplicationId"] == "d"
    sqs.DeleteMessage(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    send(sqs, url, "three", **once)  # also after the end of the first
    receive(sqs, url, 0)


def test_deduplication_may_count_in_each_group(sqs):
    url = make(sqs, True, DeduplicationScope="messageGroup", FifoThroughputLimit="perMessageGroupId")
    ids = {send(sqs, url, MessageGroupId=g, MessageDeduplicationId="d")["MessageId"] for g in "aab"}
    assert len(ids) == 2
    for message in receive(sqs, url, 2, AttributeNames=["MessageDeduplicationId"]):
        assert message["Attributes"] == {"MessageDeduplicationId": "d"}


@pytest.mark.parametrize("more, code", [
    ({"MessageDeduplicationId": "d"}, "MissingParameter"),
    ({"MessageGroupId": "g"}, "InvalidParameterValue"),
    ({"MessageGroupId": "g", "MessageDeduplicationId": "d", "DelaySeconds": 1}, "InvalidParameterValue"),
    ({"MessageGroupId": "g", "MessageDeduplicationId": "x" * 129}, "InvalidParameterValue"),
])
def test_a_fifo_queue_needs_group_and_deduplication(sqs, more, code):
    refused(code, sqs.SendMessage, QueueUrl=make(sqs, True), MessageBody="x", **more)


@NO_SHARES
def test_groups_of_a_standard_queue_take_turns(sqs):
    url = make(sqs)
    for body in ("loud 1", "loud 2", "loud 3", "quiet 1"):
        send(sqs, url, body, MessageGroupId=body.split()[0])
    got = receive(sqs, url, 2, AttributeNames=["MessageGroupId"])
    assert [m["Body"] for m in got] == ["loud 1", "quiet 1"]
    assert got[1]["Attributes"] == {"MessageGroupId": "quiet"}


# --- queues -------------------------------------------------------------------------------------


def test_a_queue_is_created_once(sqs):
    url = make(sqs, VisibilityTimeout="45")
    name = url.rsplit("/", 1)[1]
    assert sqs.CreateQueue(QueueName=name)["QueueUrl"] == url
    assert sqs.CreateQueue(QueueName=name, Attributes={"VisibilityTimeout": "45"})["QueueUrl"] == url
    refused("QueueAlreadyExists", sqs.CreateQueue, QueueName=name, Attributes={"VisibilityTimeout": "46"})
    refused("QueueAlreadyExists", sqs.CreateQueue, QueueName=name, Attributes={"DelaySeconds": "1"})
    assert sqs.GetQueueUrl(QueueName=name)["QueueUrl"] == url


@pytest.mark.parametrize("name, attributes, code", [
    ("a b", {}, "InvalidParameterValue"), ("x" * 81, {}, "InvalidParameterValue"), ("a.b", {}, "InvalidParameterValue"),
    ("x.fifo", {}, "InvalidParameterValue"), ("x", {"FifoQueue": "true"}, "InvalidAttributeName"),
    ("x", {"Nonsense": "1"}, "InvalidAttributeName"), ("x", {"QueueArn": "1"}, "InvalidAttributeName"),
    ("x", {"VisibilityTimeout": "43201"}, "InvalidAttributeValue"), ("x", {"DelaySeconds": "-1"}, "InvalidAttributeValue"),
    ("x", {"MaximumMessageSize": "1"}, "InvalidAttributeValue"), ("x", {"Policy": "{}"}, "InvalidAttributeValue"),
    ("x", {"KmsMasterKeyId": "k"}, "InvalidAttributeValue"),
    ("x.fifo", {"FifoQueue": "true", "DeduplicationScope": "x"}, "InvalidAttributeValue"),
])
def test_a_queue_that_cannot_be_is_refused(sqs, name, attributes, code):
    refused(code, sqs.CreateQueue, QueueName=name, Attributes=attributes)
    assert name not in str(sqs.ListQueues(QueueNamePrefix="x"))


def test_attributes_are_read_and_set(sqs):
    url = make(sqs)
    found = sqs.GetQueueAttributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert found["QueueArn"] == "arn:aws:sqs:us-east-1:000000000000:" + url.rsplit("/", 1)[1]
    assert found["VisibilityTimeout"] == "30" and found["MessageRetentionPeriod"] == "345600"
    assert found["DelaySeconds"] == "0" and found["MaximumMessageSize"] == "1048576"
    assert abs(int(found["CreatedTimestamp"]) - time.time()) < 100
    assert "FifoQueue" not in found
    sqs.SetQueueAttributes(QueueUrl=url, Attributes={"VisibilityTimeout": "7", "DelaySeconds": "900",
                                                     "MessageRetentionPeriod": "60"})
    found = sqs.GetQueueAttributes(QueueUrl=url, AttributeNames=["VisibilityTimeout", "DelaySeconds",
                                                                 "MessageRetentionPeriod"])
    assert found["Attributes"] == {"VisibilityTimeout": "7", "DelaySeconds": "900", "MessageRetentionPeriod": "60"}
    send(sqs, url)
    assert counts(sqs, url) == [0, 0, 1]  # the new delay holds at once
    refused("InvalidAttributeName", sqs.GetQueueAttributes, QueueUrl=url, AttributeNames=["Nonsense"])
    refused("InvalidAttributeName", sqs.SetQueueAttributes, QueueUrl=url, Attributes={"FifoQueue": "false"})


def test_tags(sqs):
    url = sqs.CreateQueue(QueueName=f"queue-{next(names)}", tags={"team": "a", "empty": ""})["QueueUrl"]
    sqs.TagQueue(QueueUrl=url, Tags={"team": "b", "cost": "1"})
    assert sqs.ListQueueTags(QueueUrl=url) == {"Tags": {"team": "b", "cost": "1", "empty": ""}}
    sqs.UntagQueue(QueueUrl=url, TagKeys=["cost", "empty", "none"])
    assert sqs.ListQueueTags(QueueUrl=url) == {"Tags": {"team": "b"}}
    sqs.UntagQueue(QueueUrl=url, TagKeys=["team"])
    assert sqs.ListQueueTags(QueueUrl=url) == {}


def test_queues_are_listed_in_pages(sqs):
    prefix = f"list-{next(names)}-"
    urls = {sqs.CreateQueue(QueueName=f"{prefix}{i}")["QueueUrl"] for i in range(5)}
    assert set(sqs.ListQueues(QueueNamePrefix=prefix)["QueueUrls"]) == urls
    found, token = [], {}
    while token is not None:
        page = sqs.ListQueues(QueueNamePrefix=prefix, MaxResults=2, **token)
        assert len(page.get("QueueUrls", [])) <= 2
        found += page.get("QueueUrls", [])
        token = {"NextToken": page["NextToken"]} if "NextToken" in page else None
    assert sorted(found) == sorted(urls)
    assert sqs.ListQueues(QueueNamePrefix="nothing-of-this") == {}


def test_a_queue_that_is_gone(sqs):
    url = make(sqs)
    send(sqs, url)
    receive(sqs, url)
    send(sqs, url)
    sqs.DeleteQueue(QueueUrl=url)
    gone = "AWS.SimpleQueueService.NonExistentQueue"
    refused(gone, sqs.SendMessage, QueueUrl=url, MessageBody="x")
    refused(gone, sqs.ReceiveMessage, QueueUrl=url)
    refused(gone, sqs.GetQueueAttributes, QueueUrl=url)
    refused(gone, sqs.GetQueueUrl, QueueName=url.rsplit("/", 1)[1])
    refused(gone, sqs.DeleteQueue, QueueUrl=url)
    refused(gone, sqs.PurgeQueue, QueueUrl=url)
    refused(gone, sqs.TagQueue, QueueUrl=url, Tags={"a": "b"})
    assert sqs.CreateQueue(QueueName=url.rsplit("/", 1)[1], Attributes={"DelaySeconds": "9"})["QueueUrl"] == url
    assert counts(sqs, url) == [0, 0, 0]


def test_a_purge_leaves_what_is_in_flight(sqs):
    url = make(sqs)
    for body in "abc":
        send(sqs, url, body)
    message, = receive(sqs, url)
    sqs.PurgeQueue(QueueUrl=url)
    until(lambda: counts(sqs, url) == [0, 1, 0])
    sqs.DeleteMessage(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


def test_an_empty_queue_outlives_a_restart(tmp_path):
    with Server(tmp_path / "data", "--queues-idle", "1s", engine="log") as server:
        url = make(Json(server), DelaySeconds="5", VisibilityTimeout="77")
        server.restart("kill")
        found = Json(server).GetQueueAttributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        assert (found["DelaySeconds"], found["VisibilityTimeout"]) == ("5", "77")


# --- names and addresses ------------------------------------------------------------------------


def test_the_path_of_a_queue_names_it(server):
    """Celery posts to the path of the QueueUrl, without QueueUrl."""
    url = make(Query(server))
    path = "/" + url.split("/", 3)[3]
    here = Query(server, path)
    here.SendMessage(MessageBody="x")
    message, = here.ReceiveMessage()["Messages"]
    here.DeleteMessage(ReceiptHandle=message["ReceiptHandle"])


@pytest.mark.parametrize("prefix", ["/sqs", "/sqs/"])
def test_a_prefix_stays_in_the_urls(server, prefix):
    below = Json(server, prefix)
    url = make(below)
    assert url.startswith("http://%s:%d/sqs/000000000000/" % server.address)
    send(below, url)
    path = "/" + url.split("/", 3)[3]
    assert len(Json(server, path).ReceiveMessage()["Messages"]) == 1


def test_an_account_is_a_namespace(server):
    other = Json(server, "/sqs/Shop")
    url = make(other)
    assert url.rsplit("/", 2)[1] == "Shop"
    send(other, url, "hello")
    name = url.rsplit("/", 1)[1]
    message, = server.get("/dequeue", namespace="shop", topic=name, **{"as": "text"}).body
    assert message["text"] == "hello"
    refused("AWS.SimpleQueueService.NonExistentQueue", Json(server).GetQueueUrl, QueueName=name)
    assert Json(server).GetQueueUrl(QueueName=name, QueueOwnerAWSAccountId="shop")["QueueUrl"].endswith("/shop/" + name)


def test_the_url_has_the_host_of_the_request(server):
    answer = Json(server).raw("CreateQueue", {"QueueName": "hosted"}, Host="localhost:99")
    assert answer.body["QueueUrl"] == "http://localhost:99/000000000000/hosted"


def test_names_fold_case_and_keep_their_first_spelling(server):
    sqs = Json(server)
    assert sqs.CreateQueue(QueueName="Case-Queue")["QueueUrl"].endswith("/Case-Queue")
    assert sqs.GetQueueUrl(QueueName="case-queue")["QueueUrl"].endswith("/Case-Queue")


# --- with the flat API ---------------------------------------------------------------------------


def test_messages_of_the_flat_api(server):
    """A queue of the flat API is a queue of SQS. Attributes and bytes come over."""
    here = {"namespace": "default", "topic": "mixed"}
    server.post("/enqueue", [{**here, "text": "plain", "attributes": {"s": "x", "n": 1.5, "o": {"a": [True]}}},
                             {**here, "payload": "AAEC"}])
    sqs = Json(server)
    url = sqs.GetQueueUrl(QueueName="mixed")["QueueUrl"]
    one, two = receive(sqs, url, 2, MessageAttributeNames=["All"])
    assert one["Body"] == "plain"
    assert one["MessageAttributes"] == {
        "s": {"DataType": "String", "StringValue": "x"}, "n": {"DataType": "Number", "StringValue": "1.5"},
        "o": {"DataType": "String", "StringValue": '{"a": [true]}'}}
    assert two["Body"] == "AAEC"
    assert two["MessageAttributes"] == {"SluiceEncoding": {"DataType": "String", "StringValue": "base64"}}
    assert server.post("/ack", {"receipt": one["ReceiptHandle"]}).status == 200  # SQS-2


def test_a_large_payload_of_the_flat_api(server):
    here = {"namespace": "default", "topic": "large"}
    server.post("/enqueue", [{**here, "text": "x" * (3 << 20)}])
    message, = receive(Json(server), "http://h/000000000000/large")
    assert message["Body"] == "x" * (3 << 20)


@NO_SHARES
def test_the_flat_api_reads_attributes_of_sqs(server):
    sqs = Json(server)
    url = make(sqs)
    send(sqs, url, MessageAttributes={"color": {"DataType": "String", "StringValue": "red"}}, MessageGroupId="g")
    message, = server.get("/dequeue", namespace="default", topic=url.rsplit("/", 1)[1]).body
    assert message["attributes"] == {"color": "red"} and message["share"] == "g"


# --- refusals --------------------------------------------------------------------------------------


def test_what_is_not_supported_says_so(sqs):
    url = make(sqs)
    code = "AWS.SimpleQueueService.UnsupportedOperation"
    refused(code, sqs.AddPermission, QueueUrl=url, Label="x")
    refused(code, sqs.RemovePermission, QueueUrl=url, Label="x")


def test_both_names_of_an_error_are_sent(server):
    error = refused("AWS.SimpleQueueService.NonExistentQueue", Json(server).GetQueueUrl, QueueName="none")
    assert (error.status, error.shape) == (400, "QueueDoesNotExist")


@pytest.mark.parametrize("body", ["", "[]", "{", '{"QueueUrl":', '{"QueueUrl":1}', '{"Entries":{}}', '{"Attributes":[1]}',
                                  '{"QueueUrl":"\\u0000"}', "\xff\xfe", '{"MaxNumberOfMessages":1e9}'])
@pytest.mark.parametrize("action", ["SendMessage", "SendMessageBatch", "CreateQueue", "ReceiveMessage", "Nonsense", ""])
def test_malformed_json_is_400(server, body, action):
    answer = Json(server).raw(action, body.encode("latin-1"))
    assert answer.status == 400 and answer.headers["x-amzn-query-error"].endswith(";Sender")


@pytest.mark.parametrize("body", ["", "Action", "Action=Nonsense", "Action=SendMessage", "Action=SendMessage&%zz=1",
                                  "Action=SendMessageBatch&SendMessageBatchRequestEntry.0.Id=a",
                                  "Action=SendMessageBatch&SendMessageBatchRequestEntry.999999999.Id=a",
                                  "Action=CreateQueue&QueueName=x&Attribute.99.Name=a",
                                  "Action=ReceiveMessage&MaxNumberOfMessages=x",
                                  "Action=SendMessage&MessageAttribute.1.Value.BinaryValue=x"])
def test_a_malformed_form_is_400(server, body):
    answer = Query(server).raw(body)
    assert answer.status == 400 and "<Type>Sender</Type>" in answer.text


def test_a_body_that_is_too_large_is_413(server):
    assert Json(server).raw("SendMessage", b" " * ((4 << 20) + 1)).status == 413


@pytest.mark.parametrize("path", ["/v1/nothing", "/dlq/nothing", "/a/b/c", "/a/", "/a//b"])
def test_other_paths_are_unknown_as_before(server, path):
    assert server.post(path, {}).status in (404, 405)


def test_other_methods_of_a_path_of_two_segments_are_404(server):
    assert server.get("/some/thing").status == 404


@NO_LETTERS
@pytest.mark.parametrize("fifo", [False, True])
def test_a_redrive_policy_sends_dead_letters_to_their_queue(sqs, fifo):
    dead, more = make(sqs, fifo), {"MessageGroupId": "g", "MessageDeduplicationId": "d"} if fifo else {}
    target = sqs.GetQueueAttributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    url = make(sqs, fifo, VisibilityTimeout="0", RedrivePolicy=json.dumps({"deadLetterTargetArn": target, "maxReceiveCount": "2"}))
    shown = sqs.GetQueueAttributes(QueueUrl=url, AttributeNames=["RedrivePolicy", "QueueArn"])["Attributes"]
    assert json.loads(shown["RedrivePolicy"]) == {"deadLetterTargetArn": target, "maxReceiveCount": 2}
    sent = send(sqs, url, "bad", **more)
    for _ in range(2):
        first, = until(lambda: sqs.ReceiveMessage(QueueUrl=url, AttributeNames=["All"]).get("Messages"))
    got, = until(lambda: sqs.ReceiveMessage(QueueUrl=dead, AttributeNames=["All"]).get("Messages"))
    assert got["MessageId"] == sent["MessageId"] and got["Body"] == "bad"
    assert got["Attributes"]["DeadLetterQueueSourceArn"] == shown["QueueArn"]
    assert got["Attributes"]["SentTimestamp"] == first["Attributes"]["SentTimestamp"]
    assert got["Attributes"].get("MessageGroupId") == more.get("MessageGroupId")
    assert got["Attributes"]["ApproximateReceiveCount"] == "1"


def sources_of(sqs, url):
    answer = sqs.ListDeadLetterSourceQueues(QueueUrl=url)
    return sorted(answer.get("queueUrls") or answer.get("QueueUrls") or [])


@NO_LETTERS
def test_the_sources_of_a_dead_letter_queue(sqs):
    dead = make(sqs)
    target = sqs.GetQueueAttributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    assert sources_of(sqs, dead) == []
    policy = json.dumps({"deadLetterTargetArn": target, "maxReceiveCount": 1000})
    sources = [make(sqs, RedrivePolicy=policy), make(sqs)]
    sqs.SetQueueAttributes(QueueUrl=sources[1], Attributes={"RedrivePolicy": policy})
    assert sources_of(sqs, dead) == sorted(sources)
    sqs.SetQueueAttributes(QueueUrl=sources[1], Attributes={"RedrivePolicy": ""})
    assert sources_of(sqs, dead) == sources[:1]
    assert "RedrivePolicy" not in sqs.GetQueueAttributes(QueueUrl=sources[1], AttributeNames=["All"])["Attributes"]


@NO_LETTERS
def arn_of(sqs, url):
    return sqs.GetQueueAttributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]


def dead_letters(sqs, n):
    """The URL and the ARN of a dead-letter queue with n messages, and the URL of their queue."""
    dead = make(sqs)
    target = arn_of(sqs, dead)
    url = make(sqs, VisibilityTimeout="0", RedrivePolicy=json.dumps({"deadLetterTargetArn": target, "maxReceiveCount": 1}))
    for i in range(n):
        send(sqs, url, f"bad {i}")
        until(lambda: sqs.ReceiveMessage(QueueUrl=url).get("Messages"))
    until(lambda: counts(sqs, dead)[0] == n)
    return dead, target, url


def moves(sqs, source, **more):
    return sqs.ListMessageMoveTasks(SourceArn=source, **more).get("Results") or []


def moved(sqs, source):
    return until(lambda: (found := moves(sqs, source)) and found[0]["Status"] not in ("RUNNING", "CANCELLING") and found[0])


@NO_LETTERS
def test_a_move_task_sends_dead_letters_back(sqs):
    """Each to the queue that it died in, and its receives count anew."""
    dead, source, url = dead_letters(sqs, 3)
    assert sqs.StartMessageMoveTask(SourceArn=source)["TaskHandle"]
    task = moved(sqs, source)
    assert task["Status"] == "COMPLETED" and task["SourceArn"] == source and "TaskHandle" not in task, task
    assert int(task["ApproximateNumberOfMessagesMoved"]) == int(task["ApproximateNumberOfMessagesToMove"]) == 3
    assert abs(int(task["StartedTimestamp"]) / 1000 - time.time()) < 600
    assert "DestinationArn" not in task and "MaxNumberOfMessagesPerSecond" not in task and "FailureReason" not in task
    assert counts(sqs, dead)[0] == 0
    got, = until(lambda: sqs.ReceiveMessage(QueueUrl=url, AttributeNames=["All"]).get("Messages"))
    assert got["Body"].startswith("bad ") and got["Attributes"]["ApproximateReceiveCount"] == "1"


@NO_LETTERS
def test_a_move_task_with_a_destination_and_a_rate_is_canceled(sqs):
    """One runs for a queue; its handle cancels it, once."""
    _, source, _ = dead_letters(sqs, 4)
    other = make(sqs)
    target = arn_of(sqs, other)
    handle = sqs.StartMessageMoveTask(SourceArn=source, DestinationArn=target, MaxNumberOfMessagesPerSecond=1)["TaskHandle"]
    until(lambda: counts(sqs, other)[0] >= 1)
    refused("AWS.SimpleQueueService.UnsupportedOperation", sqs.StartMessageMoveTask, SourceArn=source)
    task, = moves(sqs, source, MaxResults=10)
    assert (task["Status"], task["DestinationArn"], int(task["MaxNumberOfMessagesPerSecond"])) == ("RUNNING", target, 1)
    assert task["TaskHandle"] == handle
    made_up = base64.b64encode(base64.b64decode(handle).replace(source.encode(), target.encode())).decode()
    refused("ResourceNotFoundException", sqs.CancelMessageMoveTask, TaskHandle=made_up)
    assert moves(sqs, source)[0]["Status"] == "RUNNING"
    assert 0 <= int(sqs.CancelMessageMoveTask(TaskHandle=handle)["ApproximateNumberOfMessagesMoved"]) <= 4
    assert moved(sqs, source)["Status"] == "CANCELLED"
    refused("ResourceNotFoundException", sqs.CancelMessageMoveTask, TaskHandle=handle)


@NO_LETTERS
def test_a_move_task_that_is_malformed_is_refused(sqs):
    source = arn_of(sqs, make(sqs))
    none = source.rsplit(":", 1)[0] + ":none"
    for params in ({"SourceArn": none}, {"SourceArn": source, "DestinationArn": none}):
        assert refused("ResourceNotFoundException", sqs.StartMessageMoveTask, **params).status == 404
    assert refused("ResourceNotFoundException", sqs.ListMessageMoveTasks, SourceArn=none).status == 404
    assert moves(sqs, source) == []
    for params in ({"SourceArn": "x"}, {"SourceArn": source, "DestinationArn": "x"}, {"SourceArn": source, "DestinationArn": source},
                   {"SourceArn": source, "MaxNumberOfMessagesPerSecond": 501},
                   {"SourceArn": source, "DestinationArn": "arn:aws:sqs:us-east-1:other:q"}):
        refused("InvalidParameterValue", sqs.StartMessageMoveTask, **params)
    refused("MissingParameter", sqs.StartMessageMoveTask)
    refused("MissingParameter", sqs.CancelMessageMoveTask)
    refused("InvalidParameterValue", sqs.ListMessageMoveTasks, SourceArn=source, MaxResults=11)
    for handle in ("x", "e30=", "eyJ0YXNrSWQiOiJ4Iiwic291cmNlQXJuIjoieCJ9"):
        refused("InvalidParameterValue", sqs.CancelMessageMoveTask, TaskHandle=handle)


def test_an_invalid_redrive_policy_is_refused(sqs):
    url, fifo = make(sqs), make(sqs, fifo=True)
    own, other = (sqs.GetQueueAttributes(QueueUrl=u, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"] for u in (url, fifo))

    def refuse(code, target, count=3, **more):
        policy = json.dumps({"deadLetterTargetArn": target, "maxReceiveCount": count, **more})
        refused(code, sqs.SetQueueAttributes, QueueUrl=url, Attributes={"RedrivePolicy": policy})

    refuse("InvalidParameterValue", own)
    refuse("InvalidParameterValue", other)
    refuse("InvalidParameterValue", own + "-unknown")
    refuse("InvalidParameterValue", own.replace("000000000000", "111111111111"))
    for bad in ({"target": "x"}, {"target": own, "count": 0}, {"target": own, "count": 1001}, {"target": own, "count": "x"}):
        refuse("InvalidAttributeValue", **bad)
    refused("InvalidAttributeValue", sqs.SetQueueAttributes, QueueUrl=url, Attributes={"RedrivePolicy": "{}"})
    if ENGINE != "redis":  # keeps dead letters in their queue
        back = make(sqs, RedrivePolicy=json.dumps({"deadLetterTargetArn": own, "maxReceiveCount": 3}))
        refuse("InvalidParameterValue", sqs.GetQueueAttributes(QueueUrl=back, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"])
