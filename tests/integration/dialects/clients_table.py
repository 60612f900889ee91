"""The tables of clients in docs/clients.md: what a test ran is what they say.

    RAN.append(("boto3", boto3.__version__, "queues, batches", "passes"))
    check("Clients of Amazon SQS", RAN, capsys)
"""
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs/clients.md"


def table(heading):
    """The rows of the table below a heading."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def check(heading, ran, capsys):
    """Prints what ran, and holds the table to it: every client is there, with its version and its result."""
    rows, seen = table(heading), set()
    with capsys.disabled():
        for row in sorted(set(ran)):
            print("#", *row, "", sep=" | ", flush=True)
    for name, version, _, result in ran:
        found = [row for row in rows if name == row[0]] or [row for row in rows if name.lower() in row[0].lower()]
        assert len(found) == 1, f"{name}: expected one row in {PAGE.name}, found {found}"
        assert any(version.startswith(known) for known in found[0][1].split(", ")), (name, version, found[0])
        assert found[0][-1] == result, (name, found[0])
        seen.add(found[0][0])
    return {row[0] for row in rows} - seen
