"""The overview: what needs attention, tiles, and charts."""
from filled import base_of
from served import Server, until

FIND = """
  const [data, done] = arguments;
  import(new URL('attention.js', location.href)).then(({attention}) => done(attention({state: {}, rows: [], ...data}).map((a) => `${a.q ? a.q.queue : a.what}: ${a.why} -> ${a.label || 'Resume'}`)));
"""


def queue(name, **more):
    return {"namespace": "ops", "queue": name, "ready": 0, "delayed": 0, "leased": 0, "held": 0, "dead": 0, "damaged": 0, "total": 0, "paused": False, "warning": False, **more}


def test_the_worst_stands_first_and_each_has_what_can_be_done(console):
    data = {
        "state": {"reasons": [{"reason": "shard_failed", "name": "heavy", "message": "sync failed"}],
                  "warnings": [{"warning": "clock", "name": "a", "message": "its time is off"}, {"warning": "clock", "name": "b", "message": "its time is off"},
                               {"warning": "disk_space", "name": "a", "message": "3 % free"}, {"warning": "node_id", "message": "twice"}]},
        "rows": [queue("letters", dead=2), queue("deep", warning=True, warn_depth=10, total=12), queue("stopped", paused=True, ready=3, pause_reason="release"),
                 queue("alone", ready=5, oldest_ready_ms=40_000), queue("slow", ready=5, leased=1, oldest_ready_ms=400_000), queue("fine", ready=5, leased=2, oldest_ready_ms=4000),
                 queue("paused-old", paused=True, ready=1, oldest_ready_ms=400_000), queue("broken", damaged=1)],
    }
    assert console.driver.execute_async_script(FIND, data) == [
        "Shard heavy: sync failed -> Shards",
        "Shard a: 3 % free -> Shards",
        "broken: 1 damaged message: their bytes on disk have changed -> Messages",
        "Shards a, b: its time is off -> Shards",
        "alone: no consumer: 5 messages ready, the oldest for 40 s, and nothing takes them -> Consumers",
        "Server: twice -> Shards",
        "slow: the oldest ready message waits for 6m 40s -> Queue",
        "paused-old: paused, with 1 ready -> Resume",
        "stopped: paused because release, with 3 ready -> Resume",
        "deep: deeper than its warn_depth: 12 -> Settings",
        "letters: 2 dead letters -> Dead letters",
    ]


def test_a_full_disk_and_a_browser_with_another_time_are_shown(chromium, tmp_path):
    with Server(tmp_path / "full", "--disk-warn", "100", engine="log", namespace="ops") as server:
        server.enqueue({"text": "x"})
        chromium.visit(base_of(server))
        chromium.ready()
        chromium.see("Shard default", "of the disk are free")
        chromium.run("const now = Date.now; Date.now = () => now() + 3600e3")
        chromium.see("This browser", "ahead of the clock of the server")
        chromium.run("document.querySelector('.attention a.btn[href=\"#/shards\"]').click()")
        chromium.ready("#/shards")
        chromium.see("disk_space")
        chromium.go("#/overview")
        chromium.see("Disk and store")  # the log was synced, and the server says how long that took


def test_dead_letters_that_rise_are_shown_and_lead_to_them(console, server):
    server.topic = "rising"
    for n in range(12):
        server.enqueue({"text": f"{n}", "max_attempts": 1})
        server.nack(server.take(), error="no")
        if n == 0:
            console.see("ops/rising")
        if "dead letters rise by" in console.main():
            break
        until(lambda: True)
        console.run("return new Promise((done) => setTimeout(done, 1000))")
    server.topic = "jobs"
    console.see("dead letters rise by")


def test_charts_show_throughput_backlog_times_and_the_disk(console, server):
    console.go("#/overview?range=10m")
    server.enqueue({"text": "x"}, topic="charted")
    for title in ("Throughput, per second", "Backlog", "Wait before delivery", "Run time"):
        console.until("return [...document.querySelectorAll('.chart figcaption')].some((c) => c.innerText.startsWith(arguments[0]))", title)
    # Layers add up: the highest line of the backlog has the sum of all states.
    console.until("return document.querySelectorAll('.chart .area.layer').length > 1")
    console.go("#/queue/ops/jobs")
    console.until("return [...document.querySelectorAll('.chart .legend')].some((c) => c.innerText.includes('backlog'))")
    console.clean()


def test_what_is_scheduled_is_a_histogram_of_the_next_24_hours(console, server):
    server.enqueue(*({"text": "x", "delay": f"{n}m"} for n in (1, 70, 75, 23 * 60 + 30, 30 * 60)), topic="planned")
    console.go("#/queue/ops/planned?tab=due")
    console.see("Due in the next 24 hours", "1 after 24 hours.")
    assert console.run("return [...document.querySelectorAll('.columns-chart g')].map((g) => Number(g.querySelector('title').textContent.split(': ')[1]))") == [1, 2] + [0] * 21 + [1]
    console.audit("scheduled")
