"""A server whose log lives in a real S3 store: Ceph with its gateway. A proxy before it adds faults."""
import http.server
import json
import subprocess
import time

import pytest

from certs import Certs
from onstore import (SLUICE, Proxy, Web, all_texts, check_another_machine, check_faulty_puts, check_ignored_conditions,
                     check_large_group, check_lost_connection, check_proxy, check_takeover, check_wrong_clock, stored)
from served import Refused, until
from rgw import Gateway


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with Gateway(tmp_path_factory.mktemp("rgw")) as s3:
        yield s3


@pytest.fixture
def s3(gateway, request, monkeypatch):
    """The URL of an empty store in the bucket."""
    for name, value in gateway.environment.items():
        monkeypatch.setenv(name, value)
    gateway.prefix = f"{request.node.name[:60].replace('[', '.').replace(']', '')}"
    return gateway.url(gateway.prefix)


# What a store may answer to a put without doing it.
REFUSALS = {
    "slow_down": (503, b"<Error><Code>SlowDown</Code><Message>Reduce your rate</Message></Error>"),
    "undecided": (409, b"<Error><Code>ConditionalRequestConflict</Code></Error>"),
    "expired": (400, b"<Error><Code>ExpiredToken</Code><Message>The token has expired</Message></Error>"),
    "elsewhere": (301, b"<Error><Code>PermanentRedirect</Code></Error>", {"x-amz-bucket-region": "eu-west-3"}),
}


def proxied(gateway):
    return Proxy(gateway.port, REFUSALS, always=["elsewhere"])


def test_what_was_accepted_is_found_by_another_machine(tmp_path, s3):
    check_another_machine(tmp_path, s3)


def test_a_call_of_15_mb_is_one_group(tmp_path, s3):
    check_large_group(tmp_path, s3)


def test_a_second_server_takes_over(tmp_path, s3):
    check_takeover(tmp_path, s3, lease="3s")


@pytest.mark.parametrize("fault", ["slow_down", "undecided", "expired", "lose"])
def test_a_put_that_got_no_good_answer_happens_once(tmp_path, gateway, s3, fault):
    with proxied(gateway) as proxy:
        check_faulty_puts(tmp_path, gateway.url(gateway.prefix, proxy.endpoint), proxy, fault)


def test_a_lost_connection_is_noticed_by_all_shards(tmp_path, gateway, s3):
    with proxied(gateway) as proxy:
        check_lost_connection(tmp_path, gateway.url(gateway.prefix, proxy.endpoint), proxy)


def test_a_bucket_of_another_region_is_named(gateway, s3):
    with proxied(gateway) as proxy:
        proxy.fault = "elsewhere"
        done = subprocess.run([SLUICE, "admin", "store", "ls", gateway.url(gateway.prefix, proxy.endpoint)], capture_output=True, text=True, timeout=120)
        assert done.returncode == 1
        assert "the bucket is in region eu-west-3; set region=eu-west-3" in done.stderr


def test_requests_go_through_the_proxy_of_the_url(tmp_path, s3):
    check_proxy(tmp_path, s3)


def test_the_ca_of_the_url_is_trusted_and_no_other(tmp_path, gateway, s3):
    certs = Certs(tmp_path)
    certs.authority("other")
    with Proxy(gateway.port, REFUSALS, pair=certs.make("s3", "IP:127.0.0.1")) as proxy:
        url = gateway.url(gateway.prefix, proxy.endpoint)
        done = [subprocess.run([SLUICE, "admin", "store", "ls", f"{url}&ca={certs[ca]}"], capture_output=True, text=True, timeout=120)
                for ca in ("ca.pem", "other.pem")]
    assert [run.returncode for run in done] == [0, 1], done
    assert "certificate" in done[1].stderr


def test_the_bucket_may_be_part_of_the_host(tmp_path, gateway, s3):
    """style=virtual: BUCKET.HOST. What one style has put, the other one finds."""
    virtual = gateway.url(gateway.prefix, endpoint=f"http://localhost:{gateway.port}") + "&style=virtual"
    with stored(tmp_path / "one", virtual) as server:
        server.enqueue({"text": "a"})
    with stored(tmp_path / "two", s3) as server:
        assert all_texts(server, 1) == ["a"]


def test_a_store_that_ignores_conditions_is_refused(tmp_path, gateway, s3):
    with proxied(gateway) as proxy:
        check_ignored_conditions(tmp_path, gateway.url(gateway.prefix, proxy.endpoint), proxy)


@pytest.mark.parametrize("change,why", [
    (("sluice/", "absent/"), "NoSuchBucket"),
    (("sluice/", "Sluice/"), "invalid bucket: Sluice; expected 3 to 63 of a-z 0-9 . -"),
    (("endpoint", "end"), "invalid parameter: end; expected endpoint, region"),
])
def test_a_wrong_url_is_refused_at_start(tmp_path, s3, change, why):
    with pytest.raises(Refused) as refused:
        stored(tmp_path / "one", s3.replace(*change, 1))
    assert why in str(refused.value)


def test_a_wrong_key_is_refused_and_not_shown(tmp_path, s3, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-the-secret")
    with pytest.raises(Refused) as refused:
        stored(tmp_path / "one", s3)
    assert "status 403 SignatureDoesNotMatch" in str(refused.value)
    assert "not-the-secret" not in str(refused.value)


class Metadata(Web):
    """The metadata service of an instance, with keys that end."""

    def __init__(self, gateway, seconds):
        self.given, self.down = 0, False
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_PUT(self):
                if service.down:
                    self.send_error(503)
                    return
                assert self.path == "/latest/api/token" and self.headers["X-aws-ec2-metadata-token-ttl-seconds"]
                self.say("session")

            def do_GET(self):
                assert self.headers["X-aws-ec2-metadata-token"] == "session"
                if self.path.endswith("/security-credentials/"):
                    self.say("the-role\n")
                    return
                assert self.path.endswith("/security-credentials/the-role")
                service.given += 1
                until_then = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
                self.say(json.dumps({"Code": "Success", "AccessKeyId": gateway.key, "SecretAccessKey": gateway.secret,
                                     "Expiration": until_then}))

            def say(self, text):
                self.send_response_only(200)
                self.send_header("Content-Length", len(text))
                self.end_headers()
                self.wfile.write(text.encode())

        super().__init__(Handler)


@pytest.mark.parametrize("seconds,renews", [(3600, False), (60, True)])
def test_an_instance_has_its_keys_from_its_metadata(tmp_path, gateway, s3, monkeypatch, seconds, renews):
    """Keys are renewed five minutes before they end."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("HOME", str(tmp_path))
    with Metadata(gateway, seconds) as service:
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", service.endpoint)
        with stored(tmp_path / "one", s3) as server:
            before = service.given
            server.enqueue({"text": "a"})
            assert (service.given > before) == renews
            assert all_texts(server, 1) == ["a"]


def test_keys_that_have_ended_are_waited_for(tmp_path, gateway, s3, monkeypatch):
    """The service that renews them is away: requests get 503 until it is back."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("HOME", str(tmp_path))
    with Metadata(gateway, 2) as service:
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", service.endpoint)
        with stored(tmp_path / "one", s3, "--store-patience", "1s") as server:
            service.down = True
            accepted = 0  # until the keys end
            while (status := server.post("/enqueue", [server.here(text="a")]).status) == 200:
                accepted += 1
            assert status == 503
            service.down = False
            until(lambda: server.post("/enqueue", [server.here(text="b")]).status == 200)
            found = all_texts(server, accepted + 3)  # one "a" and one "b" may be there without an answer
            assert found.count("a") >= accepted and "b" in found


def test_a_wrong_clock_is_corrected_by_the_store(tmp_path, s3):
    with stored(tmp_path / "one", s3) as server:
        server.enqueue({"text": "a"})
    check_wrong_clock(s3)
