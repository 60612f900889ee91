"""The chart of docs/performance.md: bars, a panel for each kind of work, in plain SVG."""

WIDTH, LEFT, RIGHT = 760, 120, 90
BAR, GAP, TITLE, SPACE = 16, 5, 26, 18
PANELS = (
    ("enqueue", False, "enqueue"),
    ("cycle", False, "full cycle: enqueue, lease, ack"),
    ("enqueue", True, "enqueue, batched"),
    ("cycle", True, "full cycle, batched"),
)
STYLE = """
text { font: 12px sans-serif; fill: #444 }
.title { font-size: 13px; font-weight: bold }
.bar { fill: #9aa7b4 }
.ours { fill: #0b6e99 }
.unsynced { fill: #dde2e7 }
@media (prefers-color-scheme: dark) { text { fill: #ccc } .unsynced { fill: #55606b } }
"""


def panel(y, title, bars):
    """bars: (name, value, class); the longest bar fills the width."""
    longest = max(value for _, value, _ in bars)
    room = WIDTH - LEFT - RIGHT
    out = [f'<text class="title" x="{LEFT}" y="{y + 16}">{title}</text>']
    y += TITLE
    for name, value, kind in bars:
        width = max(1, round(room * value / longest))
        base = y + BAR - 4
        out += [f'<text x="{LEFT - 8}" y="{base}" text-anchor="end">{name}</text>',
                f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{width}" height="{BAR}"/>',
                f'<text x="{LEFT + width + 6}" y="{base}">{value:,.0f}</text>']
        y += BAR + GAP
    return y + SPACE, out


def draw(results, names, unsynced):
    size = results.sizes[0]
    clients = 64 if 64 in results.clients else results.clients[-1]
    body, y = [], 30
    for phase, batched, title in PANELS:
        bars = []
        for peer in results.peers:
            row = results.get("sync", size, clients, batched, phase, peer)
            if row:
                kind = "ours" if peer.startswith("sluice") else "unsynced" if peer in unsynced else "bar"
                name = names[peer] + (" †" if peer in unsynced else "")
                bars.append((name, row["rate"], kind))
        if bars:
            bars.sort(key=lambda bar: -bar[1])
            y, lines = panel(y, title, bars)
            body += lines
    title = f"Messages a second, synced to disk before the answer: {size} bytes, {clients} clients"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" '
        f'viewBox="0 0 {WIDTH} {y}" role="img" aria-label="{title}">',
        f"<style>{STYLE}</style>",
        f'<text class="title" x="8" y="18">{title}</text>', *body, "</svg>", ""])
