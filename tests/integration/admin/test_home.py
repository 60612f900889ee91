"""GET / and paths that are not there: a page for a browser, JSON for programs."""
import base64
import hashlib
import html.parser
import re

import pytest

from served import Server

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("home"), "--console", "off", engine="memory") as server:
        yield server


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.style = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("href", "src")]

    def handle_data(self, data):
        if self.tags and self.tags[-1] == "style" and not self.style:
            self.style = data


def check_page(answer):
    """It is safe: no script, no foreign link, and a policy that allows its style alone."""
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Vary"] == "Accept"
    page = Page(answer.text)
    assert "script" not in page.tags and all(link.startswith("/") for link in page.links)
    digest = base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
    assert answer.headers["Content-Security-Policy"].startswith(
        f"default-src 'none'; style-src 'sha256-{digest}'; ")
    return page


def test_a_browser_gets_a_page(server):
    answer = server.call("GET", "/", None, BROWSER)
    assert answer.status == 200
    page = check_page(answer)
    version = server.get("/").body["version"]
    assert f"Version {version}, serving" in answer.text
    assert {"/healthz", "/readyz", "/metrics", "/openapi.json"} == set(page.links)
    for link in page.links:
        assert server.get(link).status == 200, link


def test_programs_get_json(server):
    for fields in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}):
        answer = server.call("GET", "/", None, fields)
        assert answer.status == 200 and answer.body["name"] == "sluice", fields
        assert re.fullmatch(r"\d+\.\d+\.\d+", answer.body["version"])
        assert answer.body["status"] == "serving" and answer.body["health"] == "/healthz"


def test_a_browser_gets_a_page_for_a_path_that_is_not_there(server):
    secret = "/nowhere-4711?<script>alert(4712)</script>"
    answer = server.call("GET", secret.replace("<", "%3C").replace(">", "%3E"), None,
                         {**BROWSER, "User-Agent": "<b>4713</b>", "X-Request-Id": "4714"})
    assert answer.status == 404
    check_page(answer)
    for word in ("nowhere", "4711", "4712", "4713", "4714"):  # nothing of the request
        assert word not in answer.text


def test_programs_get_json_for_a_path_that_is_not_there(server):
    answer = server.get("/nowhere")
    assert answer.status == 404 and answer.body["error"] == "not_found"
    assert answer.headers["Content-Security-Policy"] is None


def test_a_page_has_no_body_for_head(server):
    answer = server.call("HEAD", "/", None, BROWSER)
    assert answer.status == 200 and answer.text == ""
    assert int(answer.headers["Content-Length"]) > 500
