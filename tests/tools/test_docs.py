"""The documentation is true where a machine can tell: sections, names, links, code.

A block of C in a guide is either a whole program, which compiles, or an excerpt: its
fence names the file, ```c examples/hello.c, and its lines stand there.
"""
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
DECISIONS = ROOT / "docs/decisions"
GUIDES = [ROOT / "docs/executor.md", ROOT / "docs/priority-queue.md"]
EXECUTOR = GUIDES[0].read_text()
BLOCK = re.compile(r"^```c\b ?(\S*)\n(.*?)^```", re.M | re.S)
COMPILE = "cc -x c -std=gnu17 -Wall -Wextra -Werror -fsyntax-only -I include -".split()
NOTES = DECISIONS.glob("[0-9]*.md")  # of their day: they may name what is gone
PRESENT = [path for path in PAGES if path not in set(NOTES)]
SOURCE_PATH = re.compile(r"(?<![\w./<*-])((?:[a-z]+/)+[\w.*-]*\w)")
FOLDERS = [path.name for path in [*ROOT.iterdir(), *(ROOT / "src").iterdir()] if path.is_dir()]
SHARDQUEUE_METRICS = ("submissions_total", "queue_full_total", "run_duration_seconds",
                      "queue_depth")


def name_of(path):
    return str(path.relative_to(ROOT))


def section(text, title):
    """What stands below a heading, up to the next one of its level."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert found, f"no section \"{title}\""
    return found[1]


def test_every_rule_of_a_store_has_breaks():
    """The table of docs/reliability.md names every rule and breaks that exist."""
    text = (ROOT / "docs/reliability.md").read_text()
    rows = re.findall(r"^\| ((?:LINE|PEER)-\d+) \|[^|]*\|(.*)\|$", text, re.M)
    assert [rule for rule, _ in rows] == [f"LINE-{n}" for n in range(1, 18)] + [f"PEER-{n}" for n in range(1, 6)]
    known = set()
    for path in (ROOT / "tests/breaks").glob("*.breaks"):
        known |= set(re.findall(r"^name: (\S+)", path.read_text(), re.M))
    for rule, breaks in rows:
        named = re.findall(r"`([^`]+)`", breaks)
        assert named and set(named) <= known, (rule, set(named) - known)


def without_blocks(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def anchors(path):
    """The names by which headings can be linked to."""
    heads = re.findall(r"^#+ (.*)", without_blocks(path.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def broken_links(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", without_blocks(path.read_text())):
        name, _, anchor = target.partition("#")
        there = path.parent / name if name else path
        if re.match(r"[a-z]+:", target):
            continue
        if not there.exists() or (anchor and anchor not in anchors(there)):
            yield target


@pytest.mark.parametrize("title", ["Choosing keys", "Back-pressure", "Tuning"])
def test_the_guide_names_metrics_to_watch_for(title):
    """SQ-73"""
    named = [m for m in SHARDQUEUE_METRICS if m in section(EXECUTOR, title)]
    assert named


@pytest.mark.parametrize("metric", SHARDQUEUE_METRICS)
def test_the_guide_says_what_to_do_when_a_metric_moves(metric):
    """SQ-73"""
    assert f"`sluice_shardqueue_{metric}`" in section(EXECUTOR, "Metrics to watch")


def test_the_guide_lists_every_variable_of_the_executor():
    known = re.findall(r'"(SQ_\w+)"', (ROOT / "src/exec/executor_config.c").read_text())
    listed = re.findall(r"`(SQ_\w+)`", section(EXECUTOR, "Settings"))
    assert known and sorted(known) == sorted(listed)


@pytest.mark.parametrize("header, guide", [
    ("executor.h", "executor.md"), ("pqueue.h", "priority-queue.md"),
    ("worker.h", "priority-queue.md"), ("breaker.h", "priority-queue.md")])
def test_the_guide_lists_every_field_of_a_config(header, guide):
    text = (ROOT / "include/sluice" / header).read_text()
    fields = re.search(r"struct slu_\w+_config \{(.*?)^\};", text, re.M | re.S)[1]
    fields = re.sub(r"/\*.*?\*/", "", fields, flags=re.S)
    names = re.findall(r"(\w+)(?:\)\([^;]*\))?;", fields)
    settings = section((ROOT / "docs" / guide).read_text(), "Settings")
    assert names and [n for n in names if f"`{n}`" not in settings] == []


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_relative_links_resolve(path):
    assert list(broken_links(path)) == []


def named_files(text):
    """Paths in backticks or in a picture that begin with a folder of the project or of src/."""
    code = "\n".join([*re.findall(r"`([^`\n]+)`", text), *re.findall(r"^```\n(.*?)^```", text, re.M | re.S)])
    for path in SOURCE_PATH.findall(code):
        if path.split("/")[0] in FOLDERS and re.search(r"\.(c|h|py|lua)$", path):
            yield path


@pytest.mark.parametrize("path", PRESENT, ids=name_of)
def test_the_files_it_names_exist(path):
    missing = {name for name in named_files(path.read_text())
               if not list(ROOT.glob(name)) and not list((ROOT / "src").glob(name))}
    assert sorted(missing) == []


@pytest.mark.parametrize("name, least", [("tour", 20), ("moves", 10)])
def test_the_functions_it_names_are_in_the_files_it_names(name, least):
    stops = re.findall(r"^- `(src/[\w/.]+)`: (.*)", (ROOT / f"docs/{name}.md").read_text(), re.M)
    assert len(stops) >= least
    for file, names in stops:
        source = (ROOT / file).read_text()
        for function in re.findall(r"`(\w+)`", names):
            assert re.search(rf"^{function}\(", source, re.M), (file, function)


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/design.md", "docs/moves.md", "docs/tour.md"])
def test_the_names_of_code_on_pages_for_developers_exist(name):
    named = set(re.findall(r"`([A-Za-z]{2,}(?:_[A-Za-z]+)+)`", (ROOT / name).read_text()))
    files = [path for folder in ("src", "include", "tests", "bench") for path in (ROOT / folder).rglob("*.[chp]*")]
    words = set(re.findall(r"\w+", "\n".join(path.read_text(errors="replace") for path in files if path.is_file())))
    assert sorted(named - words) == []


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_whole_programs_compile(path):
    for _, code in BLOCK.findall(path.read_text()):
        if not re.search(r"\bmain\(", code):
            continue
        done = subprocess.run(COMPILE, input=code, cwd=ROOT, text=True, capture_output=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", GUIDES, ids=name_of)
def test_excerpts_stand_in_the_file_they_name(path):
    blocks = BLOCK.findall(path.read_text())
    assert blocks
    for source, code in blocks:
        assert source.startswith("examples/") and code in (ROOT / source).read_text(), code


def test_every_limit_is_on_its_page():
    names = re.findall(r'X\(\w+,\s+"(\w+)"\)', (ROOT / "src/base/limit.h").read_text())
    page = (ROOT / "docs/limits.md").read_text()
    assert len(names) >= 12 and [n for n in names if f"`{n}`" not in page] == []
    keys = re.findall(r'"(limits\.\w+)"', (ROOT / "src/conf/options.c").read_text())
    assert keys and [k for k in keys if f"`{k}`" not in page] == []


def test_every_alert_has_instructions_for_operators():
    rules = (ROOT / "deploy/prometheus/sluice-rules.yaml").read_text()
    alerts = re.findall(r"alert: (\w+)", rules)
    page = (ROOT / "docs/operations.md").read_text()
    assert alerts and [a for a in alerts if f"`{a}`" not in page] == []


def test_every_decision_is_in_the_index():
    notes = sorted(path.name for path in DECISIONS.glob("*.md") if path.name != "README.md")
    index = (DECISIONS / "README.md").read_text()
    assert all(re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", name) for name in notes), notes
    assert len({name[:4] for name in notes}) == len(notes), notes
    assert re.findall(r"\]\((\d[^)]+)\) \|", index) == notes
