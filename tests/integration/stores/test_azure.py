"""A server whose log lives in a real Azure Blob server: Azurite. A proxy before it adds faults."""
import email.utils
import subprocess
import threading
import time

import pytest

from certs import Certs
from onstore import (SLUICE, Proxy, all_texts, check_another_machine, check_faulty_puts, check_ignored_conditions,
                     check_large_group, check_proxy, check_takeover, check_tunnel, check_wrong_clock, stored)
from served import Refused, until
from azurite import KEY, Azurite

# What a store may answer to a put without doing it.
REFUSALS = {
    "busy": (503, b"<Error><Code>ServerBusy</Code><Message>The server is busy.</Message></Error>"),
    "timed_out": (500, b"<Error><Code>OperationTimedOut</Code></Error>"),
    "undecided": (409, b"<Error><Code>AccountBeingCreated</Code></Error>"),
}


@pytest.fixture(scope="module")
def azurite(tmp_path_factory):
    with Azurite(tmp_path_factory.mktemp("azurite")) as server:
        yield server


@pytest.fixture
def azure(azurite, request, monkeypatch):
    """The URL of an empty store in the container."""
    monkeypatch.setenv("AZURE_STORAGE_KEY", KEY)
    azurite.prefix = f"{request.node.name[:60].replace('[', '.').replace(']', '')}"
    return azurite.url(azurite.prefix)


def test_what_was_accepted_is_found_by_another_machine(tmp_path, azure):
    check_another_machine(tmp_path, azure)


def test_a_call_of_15_mb_is_one_group(tmp_path, azure):
    check_large_group(tmp_path, azure)


def test_a_second_server_takes_over(tmp_path, azure):
    check_takeover(tmp_path, azure, lease="3s")


@pytest.mark.parametrize("fault", [*REFUSALS, "lose"])
def test_a_put_that_got_no_good_answer_happens_once(tmp_path, azurite, azure, fault):
    with Proxy(azurite.port, REFUSALS) as proxy:
        check_faulty_puts(tmp_path, azurite.url(azurite.prefix, proxy.endpoint), proxy, fault)


def test_requests_go_through_the_proxy_of_the_url(tmp_path, azure):
    check_proxy(tmp_path, azure)


def test_a_store_that_ignores_conditions_is_refused(tmp_path, azurite, azure, monkeypatch):
    """With a SAS: no signature covers the condition."""
    monkeypatch.delenv("AZURE_STORAGE_KEY")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", azurite.sas())
    with Proxy(azurite.port, REFUSALS) as proxy:
        check_ignored_conditions(tmp_path, azurite.url(azurite.prefix, proxy.endpoint), proxy)


@pytest.mark.parametrize("change,why", [
    (("/sluice/", "/absent/"), "ContainerNotFound"),
    (("/sluice/", "/Sluice/"), "invalid container: Sluice; expected 3 to 63 of a-z 0-9 -"),
    (("sluicetest", "Sluice-Test"), "invalid account: Sluice-Test; expected 3 to 24 of a-z 0-9"),
    (("endpoint", "end"), "invalid parameter: end; expected endpoint, style, ca, proxy or credentials"),
])
def test_a_wrong_url_is_refused_at_start(tmp_path, azure, change, why):
    with pytest.raises(Refused) as refused:
        stored(tmp_path / "one", azure.replace(*change, 1))
    assert why in str(refused.value)


def test_a_wrong_key_is_refused_and_not_shown(tmp_path, azure, monkeypatch):
    monkeypatch.setenv("AZURE_STORAGE_KEY", "bm90IHRoZSBrZXk=")
    with pytest.raises(Refused) as refused:
        stored(tmp_path / "one", azure)
    assert "status 403" in str(refused.value)
    assert "bm90IHRoZSBrZXk" not in str(refused.value)


class Renewer:
    """Writes a file with a signature for 10 s, each second."""

    def __init__(self, azurite, file):
        self.azurite, self.file, self.stopped = azurite, file, threading.Event()
        self.write(10)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def write(self, seconds):
        new = self.file.with_suffix(".new")
        new.write_text(f"BlobEndpoint=ignored\nSharedAccessSignature={self.azurite.sas(seconds=seconds)}\n")
        new.rename(self.file)

    def run(self):
        while not self.stopped.wait(1):
            self.write(10)

    def stop(self):
        self.stopped.set()
        self.thread.join()


def test_a_signature_that_ends_is_replaced_by_its_file(tmp_path, azurite, azure, monkeypatch):
    """Requests get 503 until the file has a new one. No text has any of them."""
    monkeypatch.delenv("AZURE_STORAGE_KEY")
    renewer = Renewer(azurite, tmp_path / "credentials")
    try:
        with stored(tmp_path / "one", f"{azure}&credentials={renewer.file}", "--store-patience", "1s") as server:
            renewer.stop()
            accepted = 0
            while (status := server.post("/enqueue", [server.here(text="a")]).status) == 200:
                accepted += 1
            assert status == 503
            renewer.write(3600)
            until(lambda: server.post("/enqueue", [server.here(text="b")]).status == 200)
            found = []
            until(lambda: found.extend(all_texts(server, 1)) or (found.count("a") >= accepted and "b" in found))
            assert "sig=" not in server.said()
    finally:
        renewer.stop()


def refuse_other_days(fields):
    """As Azure does, and Azurite does not."""
    sent = email.utils.parsedate_to_datetime(fields["x-ms-date"]).timestamp()
    if abs(sent - time.time()) > 900:
        return (403, b"<Error><Code>AuthenticationFailed</Code></Error>", {"Date": email.utils.formatdate(usegmt=True)})
    return None


def test_a_wrong_clock_is_corrected_by_the_store(tmp_path, azurite, azure):
    with stored(tmp_path / "one", azure) as server:
        server.enqueue({"text": "a"})
    with Proxy(azurite.port, REFUSALS, check=refuse_other_days) as proxy:
        check_wrong_clock(azurite.url(azurite.prefix, proxy.endpoint))


def test_a_store_that_stops_delays_and_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("AZURE_STORAGE_KEY", KEY)
    with Azurite(tmp_path / "azurite") as azurite, stored(tmp_path / "one", azurite.url(), "--store-patience", "500ms") as server:
        server.enqueue({"text": "before"})
        azurite.stop()
        assert server.post("/enqueue", [server.here(text="lost")]).status == 503
        azurite.start()
        until(lambda: server.post("/enqueue", [server.here(text="after")]).status == 200)
        found = set()
        until(lambda: found.update(all_texts(server, 1)) or {"before", "after"} <= found)


def test_the_ca_of_the_url_is_trusted_and_no_other(tmp_path, monkeypatch):
    monkeypatch.setenv("AZURE_STORAGE_KEY", KEY)
    certs = Certs(tmp_path / "certs")
    certs.authority("other")
    cert, key = certs.make("azure", "IP:127.0.0.1")
    with Azurite(tmp_path / "azurite", "--cert", cert, "--key", key) as azurite:
        with stored(tmp_path / "one", f"{azurite.url()}&ca={certs['ca.pem']}") as server:
            server.enqueue({"text": "a"})
        check_tunnel(tmp_path, f"{azurite.url('tunnel')}&ca={certs['ca.pem']}", f"127.0.0.1:{azurite.port}")
        done = subprocess.run([SLUICE, "admin", "store", "ls", f"{azurite.url()}&ca={certs['other.pem']}"],
                              capture_output=True, text=True, timeout=120)
        assert done.returncode == 1
        assert "certificate" in done.stderr
