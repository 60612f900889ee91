"""Calls of the SQS dialect in both protocols, standard library alone, and signatures of version 4."""
import datetime
import hashlib
import hmac
import urllib.parse
import xml.etree.ElementTree as xml

NS = "{http://queue.amazonaws.com/doc/2012-11-05/}"


class Failed(Exception):
    """code: of the Query protocol; shape: of JSON."""

    def __init__(self, status, code, shape, text):
        super().__init__(f"{status} {code} {shape}: {text}")
        self.status, self.code, self.shape, self.text = status, code, shape, text


class Json:
    """sqs.SendMessage(QueueUrl=..., MessageBody=...)"""

    def __init__(self, server, path="/", headers=None, sign=None):
        self.server, self.path, self.headers, self.sign = server, path, headers or {}, sign

    def raw(self, action, body, **headers):
        import json
        body = body if isinstance(body, (str, bytes)) else json.dumps(body)
        headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"AmazonSQS.{action}",
                   **self.headers, **headers}
        if self.sign:
            headers = self.sign(self.server, "POST", self.path, headers, body)
        return self.server.call("POST", self.path, body, headers)

    def __getattr__(self, action):
        def call(**params):
            answer = self.raw(action, params)
            assert answer.headers["x-amzn-RequestId"]
            assert answer.headers["Content-Type"] == "application/x-amz-json-1.0"
            if answer.status == 200:
                return answer.body
            code, fault = answer.headers["x-amzn-query-error"].split(";")
            assert fault == ("Sender" if answer.status < 500 else "Receiver")
            raise Failed(answer.status, code, answer.body["__type"].split("#")[1], answer.body["message"])
        return call


def flat(params):
    """Parameters as a form has them."""
    lists = {"AttributeNames": "AttributeName", "MessageAttributeNames": "MessageAttributeName", "TagKeys": "TagKey",
             "MessageSystemAttributeNames": "MessageSystemAttributeName"}
    out = {}

    def attribute(before, value):
        for i, (name, v) in enumerate(value.items(), 1):
            out[f"{before}.{i}.Name"] = name
            for key, text in v.items():
                out[f"{before}.{i}.Value.{key}"] = text

    def put(before, name, value, action):
        if name in lists:
            for i, v in enumerate(value, 1):
                out[f"{before}{lists[name]}.{i}"] = v
        elif name == "Attributes":
            for i, (k, v) in enumerate(value.items(), 1):
                out[f"{before}Attribute.{i}.Name"], out[f"{before}Attribute.{i}.Value"] = k, v
        elif name in ("tags", "Tags"):
            word = "Tag" if name == "tags" else "Tags"
            for i, (k, v) in enumerate(value.items(), 1):
                out[f"{before}{word}.{i}.Key"], out[f"{before}{word}.{i}.Value"] = k, v
        elif name in ("MessageAttributes", "MessageSystemAttributes"):
            attribute(before + name[:-1], value)
        elif name == "Entries":
            for i, entry in enumerate(value, 1):
                for k, v in entry.items():
                    put(f"{action}RequestEntry.{i}.", k, v, action)
        else:
            out[before + name] = value
    for name, value in params.items():
        if name != "Action":
            put("", name, value, params["Action"])
    return out


def members(node):
    """The members of an element of XML, as JSON has them."""
    many = {"QueueUrl": "QueueUrls", "Message": "Messages", "SendMessageBatchResultEntry": "Successful",
            "DeleteMessageBatchResultEntry": "Successful", "ChangeMessageVisibilityBatchResultEntry": "Successful",
            "BatchResultErrorEntry": "Failed", "ListMessageMoveTasksResultEntry": "Results"}
    maps = {"Attribute": "Attributes", "Tag": "Tags", "MessageAttribute": "MessageAttributes"}
    out = {}
    for child in node:
        tag = child.tag.replace(NS, "")
        if tag in maps:
            key = child.find(NS + "Name") if tag != "Tag" else child.find(NS + "Key")
            value = child.find(NS + "Value")
            out.setdefault(maps[tag], {})[key.text] = members(value) if len(value) else value.text or ""
        elif tag in many and not (tag == "QueueUrl" and node.tag.endswith(("CreateQueueResult", "GetQueueUrlResult"))):
            out.setdefault(many[tag], []).append(members(child) if len(child) else child.text)
        else:
            out[tag] = {"true": True, "false": False}.get(child.text, child.text or "")
    return out


class Query:
    """The same in the Query protocol."""

    def __init__(self, server, path="/", headers=None, sign=None):
        self.server, self.path, self.headers, self.sign = server, path, headers or {}, sign

    def raw(self, body, **headers):
        body = body if isinstance(body, (str, bytes)) else urllib.parse.urlencode(body)
        headers = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8", **self.headers, **headers}
        if self.sign:
            headers = self.sign(self.server, "POST", self.path, headers, body)
        return self.server.call("POST", self.path, body, headers)

    def __getattr__(self, action):
        def call(**params):
            form = {"Action": action, "Version": "2012-11-05", **flat({"Action": action, **params})}
            answer = self.raw(form)
            assert answer.headers["Content-Type"] == "text/xml", answer
            tree = xml.fromstring(answer.text)
            assert tree.find(f".//{NS}RequestId").text == answer.headers["x-amzn-RequestId"]
            if answer.status == 200:
                result = tree.find(f"{NS}{action}Result")
                return members(result) if result is not None else {}
            error = tree.find(f"{NS}Error")
            assert error.find(NS + "Type").text == ("Sender" if answer.status < 500 else "Receiver")
            raise Failed(answer.status, error.find(NS + "Code").text, None, error.find(NS + "Message").text)
        return call


def signer(key, secret, region="us-east-1", service="sqs", when=None, host=None, tamper=None, leave_out=()):
    """Signs requests: AWS Signature Version 4."""
    def sign(server, method, path, headers, body):
        now = when or datetime.datetime.now(datetime.timezone.utc)
        stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
        body = body.encode() if isinstance(body, str) else body
        signed = {"host": host or "%s:%d" % server.address, "x-amz-date": stamp,
                  **{k.lower(): v for k, v in headers.items()}}
        signed = {name: value for name, value in signed.items() if name not in leave_out}
        names = ";".join(sorted(signed))
        canonical = "\n".join([method, urllib.parse.quote(path), "", *(f"{n}:{signed[n].strip()}" for n in sorted(signed)), "",
                               names, hashlib.sha256(body).hexdigest()])
        scope = f"{day}/{region}/{service}/aws4_request"
        text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        k = ("AWS4" + secret).encode()
        for part in (day, region, service, "aws4_request"):
            k = hmac.new(k, part.encode(), hashlib.sha256).digest()
        signature = hmac.new(k, text.encode(), hashlib.sha256).hexdigest()
        out = {**headers, "X-Amz-Date": stamp,
               "Authorization": f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={names}, Signature={signature}"}
        return tamper(out) if tamper else out
    return sign
