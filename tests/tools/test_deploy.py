"""deploy/: alert rules that fire when they should, a dashboard of metrics that exist."""
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy/prometheus/sluice-rules.yaml"
TESTS = ROOT / "deploy/prometheus/sluice-rules-test.yaml"
DASHBOARD = ROOT / "deploy/grafana/sluice-dashboard.json"
KINDS = dict(re.findall(r"^\| `(\w+)` \| (\w+) ", (ROOT / "docs/metrics.md").read_text(), re.M))
needs_promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="no promtool")


def promtool(*args):
    done = subprocess.run(["promtool", *args], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_promtool
def test_the_example_of_a_scrape_is_right():
    promtool("check", "config", "--syntax-only", str(RULES.parent / "sluice-scrape.yaml"))


def alerts():
    return {rule["alert"]: rule for group in yaml.safe_load(RULES.read_text())["groups"]
            for rule in group["rules"]}


def panels():
    return json.loads(DASHBOARD.read_text())["panels"]


def expressions():
    """(where, PromQL) of every rule, panel and variable."""
    for name, rule in alerts().items():
        yield name, rule["expr"]
    for panel in panels():
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for row in json.loads(DASHBOARD.read_text())["templating"]["list"]:
        if row["type"] == "query":
            yield row["name"], row["query"]["query"]


def metrics_of(expression):
    return re.findall(r"\b(?:sluice|process)_\w+", expression)


@needs_promtool
def test_the_rules_are_rules():
    assert f"{len(alerts())} rules found" in promtool("check", "rules", str(RULES))


@needs_promtool
def test_alerts_fire_when_they_should_and_not_before():
    """SH-84, SH-85: also that partial and total outage are two alerts, never both."""
    promtool("test", "rules", str(TESTS))


def test_every_alert_has_a_test_that_fires_it_and_says_what_to_do():
    tests = [row for test in yaml.safe_load(TESTS.read_text())["tests"]
             for row in test["alert_rule_test"]]
    fired = {row["alertname"] for row in tests if row["exp_alerts"]}
    assert fired == set(alerts())
    for rule in alerts().values():
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"]["summary"] and rule["annotations"]["description"]


@pytest.mark.parametrize("where, expression", list(expressions()))
def test_only_metrics_that_exist_are_used(where, expression):
    found = metrics_of(expression)
    assert found or "up{" in expression
    for name in found:
        whole = re.sub(r"_(bucket|sum|count)$", "", name)
        kind = KINDS.get(name) or KINDS.get(whole)
        assert kind, name
        assert (kind == "histogram") == (name not in KINDS), name


def as_promql(expression):
    """What Grafana puts in for its variables."""
    expression = expression.replace("$__rate_interval", "5m")
    return re.sub(r"\$\w+", "x", expression)


@needs_promtool
def test_every_panel_is_a_query(tmp_path):
    """Dressed up as rules, for promtool to parse."""
    rules = [{"record": f"panel:{i}", "expr": as_promql(e)} for i, (_, e) in
             enumerate(expressions()) if "label_values" not in e]
    file = tmp_path / "panels.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    promtool("check", "rules", str(file))


def test_there_are_panels_by_shard():
    """SH-83; that their metrics exist, and that they are queries, is checked above."""
    titles = [p["title"] for p in panels()]
    by_shard = [p for p in panels()[titles.index("Shards") + 1:]
                if any("by (shard" in t["expr"] for t in p["targets"])]
    shown = {name for p in by_shard for t in p["targets"] for name in metrics_of(t["expr"])}
    assert {"sluice_shard_available", "sluice_shard_operation_duration_seconds_bucket",
            "sluice_queue_messages", "sluice_shard_ops_total", "sluice_store_cpu_seconds_total",
            "sluice_store_memory_bytes", "sluice_store_disk_bytes"} <= shown


def test_the_capacity_guide_has_the_rule_and_the_tree():
    """SH-86, and that what it tells to look at exists."""
    text = (ROOT / "docs/capacity.md").read_text()
    assert "80 % of its processor" in text and "├─" in text.split("## Which step next")[1]
    for name in metrics_of(text):
        assert name in KINDS, name


def test_the_dashboard_is_whole():
    ids = [p["id"] for p in panels()]
    assert len(ids) == len(set(ids)) > 20
    for panel in panels():
        assert panel["title"] and panel["type"] in ("row", "stat", "timeseries")
        if panel["type"] != "row":
            assert panel["targets"] and panel["description"]
            refs = [t["refId"] for t in panel["targets"]]
            assert len(refs) == len(set(refs))
