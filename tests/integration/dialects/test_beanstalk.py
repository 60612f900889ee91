"""The beanstalkd protocol: the cases of its own server tests, and what a durable server adds. docs/beanstalkd.md."""
import datetime
import re
import ssl
import threading
import time

import pytest

from bean import Beans, Client
from certs import Certs
from served import ENGINE, Refused, Server, texts, until

NOT_REDIS = pytest.mark.skipif(ENGINE == "redis", reason="engine redis has no holds and no redrive of delayed messages")
names = iter(range(1, 10000))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Beans(tmp_path_factory.mktemp("beans") / "data", "--beanstalk-max-job-size", "10000") as server:
        yield server


@pytest.fixture
def tube():
    return f"tube-{next(names)}"


@pytest.fixture
def client(server, tube):
    """A connection that uses and watches a tube of its own."""
    with open_client(server, tube) as client:
        yield client


def open_client(server, tube):
    client = server.beans()
    assert client.ask(f"use {tube}") == f"USING {tube}"
    assert client.ask(f"watch {tube}") == "WATCHING 2"
    assert client.ask("ignore default") == "WATCHING 1"
    return client


def state(client, number):
    return client.yaml(f"stats-job {number}")["state"]


# --- lines ---------------------------------------------------------------------------------


@pytest.mark.parametrize("line, answer", [
    ("nocommand", "UNKNOWN_COMMAND"),
    ("", "UNKNOWN_COMMAND"),
    ("reservex", "UNKNOWN_COMMAND"),
    ("put", "BAD_FORMAT"),
    ("put 1 2 3", "BAD_FORMAT"),
    ("put a 0 1 1", "BAD_FORMAT"),
    ("put -1 0 1 1", "BAD_FORMAT"),
    ("put 4294967296 0 1 1", "BAD_FORMAT"),
    ("put 0 0 1 1 1", "BAD_FORMAT"),
    ("use", "BAD_FORMAT"),
    ("use a b", "BAD_FORMAT"),
    ("use a/b", "BAD_FORMAT"),
    ("use -a", "BAD_FORMAT"),
    ("use " + "a" * 201, "BAD_FORMAT"),
    ("use " + "a" * 300, "BAD_FORMAT"),
    ("reserve now", "BAD_FORMAT"),
    ("reserve-with-timeout", "BAD_FORMAT"),
    ("reserve-with-timeout -1", "BAD_FORMAT"),
    ("delete", "BAD_FORMAT"),
    ("delete x", "BAD_FORMAT"),
    ("delete 18446744073709551616", "BAD_FORMAT"),
    ("delete 0", "NOT_FOUND"),
    ("delete 123", "NOT_FOUND"),
    ("delete 18446744073709551615", "NOT_FOUND"),
    ("peek 1", "NOT_FOUND"),
    ("stats-job 1", "NOT_FOUND"),
    ("kick-job 1", "NOT_FOUND"),
    ("reserve-job 1", "NOT_FOUND"),
    ("release 1 0 0", "NOT_FOUND"),
    ("bury 1 0", "NOT_FOUND"),
    ("touch 1", "NOT_FOUND"),
    ("peek-ready", "NOT_FOUND"),
    ("peek-delayed", "NOT_FOUND"),
    ("peek-buried", "NOT_FOUND"),
    ("kick 10", "KICKED 0"),
    ("kick x", "BAD_FORMAT"),
    ("stats-tube nobody", "NOT_FOUND"),
    ("pause-tube nobody 1", "NOT_FOUND"),
    ("pause-tube nobody", "BAD_FORMAT"),
    ("reserve-with-timeout 0", "TIMED_OUT"),
    ("reserve-with-timeout 1", "TIMED_OUT"),
    ("use a\0b", "BAD_FORMAT"),
])
def test_answers_of_lines(client, line, answer):
    assert client.ask(line) == answer
    assert client.ask("list-tube-used").startswith("USING "), "the connection goes on"


def test_a_line_of_224_bytes_with_its_end_is_read(client):
    assert client.ask("use " + "a" * 218) == "BAD_FORMAT"
    assert client.ask("watch " + "x" * 10000) == "BAD_FORMAT"
    assert client.ask("watch " + "y" * 100) == "WATCHING 2"


def test_a_line_may_come_byte_by_byte(client):
    for byte in b"put 0 0 1 2\r\nab\r\n":
        client.send(bytes([byte]))
    assert client.line().startswith("INSERTED ")


# --- put -----------------------------------------------------------------------------------


def test_a_job_is_put_reserved_and_deleted(client):
    number = client.put(b"a\r\nb\0c")
    assert client.reserve() == (number, b"a\r\nb\0c")
    assert client.ask(f"delete {number}") == "DELETED"
    assert client.ask(f"delete {number}") == "NOT_FOUND"


def test_an_empty_job(client):
    number = client.put(b"")
    assert client.reserve(0) == (number, b"")


@pytest.mark.skipif(ENGINE == "forwarded", reason="ids of a store have a number of the store: above 2^53")
def test_ids_rise_and_are_exact_in_doubles(client):
    numbers = [client.put() for _ in range(10)]
    assert numbers == sorted(set(numbers)) and numbers[-1] < 2**53


def test_a_job_that_is_too_big(client):
    client.send(b"put 0 0 1 10001\r\n" + b"x" * 10001 + b"\r\n")
    assert client.line() == "JOB_TOO_BIG"
    number = client.put(b"y" * 10000)
    assert client.reserve(0) == (number, b"y" * 10000)


def test_a_body_needs_cr_lf_behind_it(client):
    client.send(b"put 0 0 1 3\r\nabcXY")
    assert client.line() == "EXPECTED_CRLF"
    assert client.ask("reserve-with-timeout 0") == "TIMED_OUT"


def test_the_smallest_priority_comes_first(client):
    numbers = {pri: client.put(pri=pri) for pri in (4294967295, 5, 1024, 0, 2147483648)}
    order = [client.reserve(0)[0] for _ in numbers]
    assert order[:3] == [numbers[0], numbers[5], numbers[1024]]
    assert client.yaml(f"stats-job {numbers[4294967295]}")["pri"] == "4294967295"
    assert client.yaml(f"stats-job {numbers[5]}")["pri"] == "5"


def test_equal_priorities_come_in_order(client):
    numbers = [client.put(str(i), pri=7) for i in range(20)]
    assert [client.reserve(0)[0] for _ in numbers] == numbers


def test_a_delay(client):
    number = client.put(delay=1)
    assert state(client, number) == "delayed"
    assert client.ask("reserve-with-timeout 0") == "TIMED_OUT"
    assert client.reserve(60)[0] == number


def test_pipelined_commands_are_answered_in_order(client, tube):
    client.send(b"".join(b"put %d 0 60 1\r\n%d\r\n" % (i, i) for i in range(10)) + b"list-tube-used\r\nreserve\r\nreserve\r\n")
    numbers = [client.number("INSERTED", client.line()) for _ in range(10)]
    assert client.line() == f"USING {tube}"
    assert [client.job("RESERVED", client.line()) for _ in range(2)] == [(numbers[0], b"0"), (numbers[1], b"1")]
    client.send("".join(f"delete {number}\r\n" for number in numbers[:2]) + "quit\r\nuse nothing\r\n")
    assert [client.line() for _ in range(3)] == ["DELETED", "DELETED", ""]


# --- reserve -------------------------------------------------------------------------------


def test_a_waiting_reserve_gets_the_next_job(server, client, tube):
    client.send("reserve\r\n")
    with open_client(server, tube) as other:
        until(lambda: other.yaml(f"stats-tube {tube}")["current-waiting"] == "1")
        number = other.put()
        assert client.job("RESERVED", client.line())[0] == number
        assert other.yaml(f"stats-tube {tube}")["current-waiting"] == "0"


def test_a_reserved_job_is_hidden_from_others(server, client, tube):
    number = client.put()
    client.reserve()
    with open_client(server, tube) as other:
        assert other.ask("reserve-with-timeout 0") == "TIMED_OUT"
        assert other.ask(f"delete {number}") == "NOT_FOUND"
        assert other.ask(f"release {number} 0 0") == "NOT_FOUND"
        assert other.ask(f"bury {number} 0") == "NOT_FOUND"
        assert other.ask(f"touch {number}") == "NOT_FOUND"
        assert other.ask(f"reserve-job {number}") == "NOT_FOUND"
        assert other.ask(f"kick-job {number}") == "NOT_FOUND"


def test_ready_delayed_and_buried_jobs_can_be_deleted(client):
    ready, delayed, buried = client.put(pri=9), client.put(delay=100), client.put()
    assert client.reserve(0)[0] == buried
    assert client.ask(f"bury {buried} 0") == "BURIED"
    assert [client.ask(f"delete {n}") for n in (ready, delayed, buried)] == ["DELETED"] * 3
    assert client.ask(f"peek {ready}") == "NOT_FOUND"


def test_the_ttr_ends_and_the_job_is_ready_again(server, client, tube):
    number = client.put(ttr=2)
    assert client.reserve(0)[0] == number
    with open_client(server, tube) as other:
        assert other.reserve(25)[0] == number
        stats = other.yaml(f"stats-job {number}")
        assert (stats["reserves"], stats["timeouts"]) == ("2", "1")
        assert client.ask(f"delete {number}") == "NOT_FOUND", "it is the other's"
        assert client.ask(f"touch {number}") == "NOT_FOUND"
        assert other.ask(f"delete {number}") == "DELETED"


@NOT_REDIS
def test_a_ttr_is_the_lease_of_the_message(server, client, tube):
    """Also for a claim by another API, which names no lease; the longest lease is 12 hours."""
    client.put(ttr=1000)
    message, = server.dequeue(namespace="default", topic=tube, limit=1)
    at = datetime.datetime.fromisoformat(message["lease_expires_at"][:19] + "+00:00").timestamp()
    assert 900 < at - time.time() < 1100
    number = client.put(ttr=100000)
    client.reserve(1)
    found = client.yaml(f"stats-job {number}")
    assert found["ttr"] == "100000" and 42000 < int(found["time-left"]) <= 43200


def test_a_ttr_of_0_is_1(client):
    assert client.yaml(f"stats-job {client.put(ttr=0)}")["ttr"] == "1"


def test_deadline_soon(client):
    number = client.put(ttr=1)
    client.reserve(0)
    assert client.ask("reserve") == "DEADLINE_SOON"
    assert client.ask("reserve-with-timeout 0") in ("DEADLINE_SOON", f"RESERVED {number} 5")


def test_the_margin_of_a_reservation_ends_a_wait(client):
    client.put(ttr=3)
    client.reserve(0)
    assert client.ask("reserve-with-timeout 60") == "DEADLINE_SOON"


def test_a_job_that_is_ready_goes_before_deadline_soon(client):
    client.put(ttr=1)
    other = client.put(pri=5)
    client.reserve(0)
    assert client.reserve(0)[0] == other


def test_touch_keeps_a_reservation(server, client, tube):
    number = client.put(ttr=3)
    client.reserve(0)
    with open_client(server, tube) as other:
        other.send("reserve-with-timeout 6\r\n")
        for _ in range(12):
            assert client.ask(f"touch {number}") == "TOUCHED"
            time.sleep(0.5)
        assert other.line() == "TIMED_OUT"
    assert client.ask(f"delete {number}") == "DELETED"


@NOT_REDIS
def test_release_and_bury_give_another_priority(client):
    released, buried, other = client.put(pri=1), client.put(pri=2), client.put(pri=500)
    assert [client.reserve(0)[0] for _ in range(2)] == [released, buried]
    assert client.ask(f"release {released} 1000 0") == "RELEASED"
    assert client.ask(f"bury {buried} 100") == "BURIED"
    assert client.yaml(f"stats-job {released}")["pri"] == "1000"
    assert client.yaml(f"stats-job {buried}")["pri"] == "100"
    assert client.ask("kick 1") == "KICKED 1"
    assert [client.reserve(0)[0] for _ in range(3)] == [buried, other, released]


def test_release_with_and_without_a_delay(client):
    number = client.put()
    client.reserve(0)
    assert client.ask(f"release {number} 0 0") == "RELEASED"
    assert state(client, number) == "ready"
    assert client.reserve(0)[0] == number
    assert client.ask(f"release {number} 0 100") == "RELEASED"
    stats = client.yaml(f"stats-job {number}")
    assert (stats["state"], stats["reserves"], stats["releases"], stats["timeouts"]) == ("delayed", "2", "2", "0")
    assert 90 <= int(stats["time-left"]) <= 100


def test_reserve_job(client):
    ready, delayed, buried = client.put("r", pri=9), client.put("d", delay=100), client.put("b")
    client.reserve(0)
    client.ask(f"bury {buried} 0")
    if ENGINE == "redis":
        return
    for number, body in (ready, b"r"), (delayed, b"d"), (buried, b"b"):
        assert client.job("RESERVED", client.ask(f"reserve-job {number}")) == (number, body)
        assert client.ask(f"reserve-job {number}") == "NOT_FOUND"
        assert client.ask(f"delete {number}") == "DELETED"


# --- tubes ---------------------------------------------------------------------------------


def test_watch_and_ignore(server, tube):
    with server.beans() as client:
        assert client.yaml("list-tubes-watched") == ["default"]
        assert client.ask("ignore default") == "NOT_IGNORED"
        assert client.ask(f"watch {tube}") == "WATCHING 2"
        assert client.ask(f"watch {tube}") == "WATCHING 2"
        assert client.ask("ignore nobody") == "WATCHING 2"
        assert client.yaml("list-tubes-watched") == ["default", tube]
        assert client.ask("ignore default") == "WATCHING 1"
        assert client.ask("list-tube-used") == "USING default"
        assert {"default", tube} <= set(client.yaml("list-tubes"))


def test_a_tube_exists_while_a_connection_refers_to_it(server, client):
    name = f"tube-{next(names)}"
    with server.beans() as other:
        other.ask(f"watch {name}")
        assert client.yaml(f"stats-tube {name}")["current-watching"] == "1"
        assert name in client.yaml("list-tubes")
    until(lambda: name not in client.yaml("list-tubes"))
    assert client.ask(f"stats-tube {name}") == "NOT_FOUND"


def test_of_ten_tubes_the_best_job_comes_first(server, client):
    tubes = [f"tube-{next(names)}" for _ in range(10)]
    numbers = {}
    for i, name in enumerate(tubes):
        client.ask(f"use {name}")
        numbers[client.put(str(i), pri=100 - i)] = i
        numbers[client.put(str(i), pri=200 - i)] = 10 + i
    for name in tubes:
        client.ask(f"watch {name}")
    got = [client.reserve(0)[0] for _ in range(20)]
    assert [numbers[n] for n in got] == [*range(9, -1, -1), *range(19, 9, -1)]
    stats = client.yaml(f"stats-job {got[0]}")
    assert stats["reserves"] == "1", "a job that was not chosen is not counted"


def test_ten_tubes_are_waited_for_at_once(server, client):
    tubes = [f"tube-{next(names)}" for _ in range(10)]
    for name in tubes:
        client.ask(f"watch {name}")
    with server.beans() as other:
        for name in reversed(tubes):
            client.send("reserve\r\n")
            until(lambda: other.yaml(f"stats-tube {name}")["current-waiting"] == "1")
            other.ask(f"use {name}")
            number = other.put(name)
            assert client.job("RESERVED", client.line()) == (number, name.encode())
            assert client.ask(f"delete {number}") == "DELETED"


def test_names_fold_case(server, client):
    client.ask("use Mixed.Case")
    number = client.put()
    with server.beans() as other:
        other.ask("watch mixed.case")
        assert other.reserve(60)[0] == number
        other.ask(f"delete {number}")


@NOT_REDIS
def test_pause_tube(server, client, tube):
    number = client.put()
    assert client.ask(f"pause-tube {tube} 600") == "PAUSED"
    assert client.ask("reserve-with-timeout 0") == "TIMED_OUT"
    stats = client.yaml(f"stats-tube {tube}")
    assert (stats["pause"], stats["cmd-pause-tube"]) == ("600", "1") and int(stats["pause-time-left"]) > 500
    client.send("reserve\r\n")
    with open_client(server, tube) as other:
        assert other.ask(f"pause-tube {tube} 1") == "PAUSED"
        assert client.job("RESERVED", client.line())[0] == number, "a shorter pause replaces a longer one"
        assert other.ask(f"pause-tube {tube} 100") == "PAUSED"
        assert other.ask(f"pause-tube {tube} 0") == "PAUSED"
        assert other.yaml(f"stats-tube {tube}")["pause-time-left"] == "0"
        other.put()
        other.reserve(60)


@NOT_REDIS
def test_a_tube_that_never_had_a_job_cannot_be_paused(client, tube):
    assert client.ask(f"pause-tube {tube} 1") == "NOT_FOUND"
    number = client.put()
    assert client.ask(f"pause-tube {tube} 1") == "PAUSED"
    assert client.reserve(60)[0] == number


# --- peek and kick -------------------------------------------------------------------------


@NOT_REDIS
def test_peeks(client):
    late, soon = client.put("late", delay=200), client.put("soon", delay=100)
    first, second = client.put("first"), client.put("second", pri=5)
    assert client.peek("peek-ready") == (first, b"first")
    assert client.peek("peek-delayed") == (soon, b"soon")
    assert client.peek(f"peek {late}") == (late, b"late")
    assert client.peek(f"peek {second}") == (second, b"second")
    for number in first, second:
        client.reserve(0)
        client.ask(f"bury {number} 0")
    assert client.peek("peek-buried") == (first, b"first")
    assert client.ask("peek-ready") == "NOT_FOUND"


def bury(client, n):
    numbers = [client.put(str(i)) for i in range(n)]
    for number in numbers:
        assert client.reserve(0)[0] == number
        assert client.ask(f"bury {number} 0") == "BURIED"
    return numbers


def test_kick_takes_the_oldest_buried_jobs_first(client):
    numbers = bury(client, 5)
    assert state(client, numbers[0]) == "buried"
    delayed = client.put(delay=100)
    assert client.ask("kick 2") == "KICKED 2"
    assert [state(client, n) for n in numbers] == ["ready"] * 2 + ["buried"] * 3
    assert state(client, delayed) == "delayed"
    assert client.ask("kick 100") == "KICKED 3"
    assert [client.reserve(0)[0] for _ in numbers] == numbers


@NOT_REDIS
def test_kick_takes_delayed_jobs_if_none_is_buried(client):
    numbers = [client.put(str(i), delay=100 + i) for i in range(5)]
    assert client.ask("kick 3") == "KICKED 3"
    assert [state(client, n) for n in numbers] == ["ready"] * 3 + ["delayed"] * 2
    assert [client.reserve(0)[0] for _ in range(3)] == numbers[:3]


def test_kick_of_more_than_a_page(client):
    client.send(b"".join(b"put 0 1000 60 1\r\nx\r\n" for _ in range(1500)))
    for _ in range(1500):
        client.number("INSERTED", client.line())
    if ENGINE != "redis":
        assert client.ask("kick 1400") == "KICKED 1400"
        assert client.ask("kick 1400") == "KICKED 100"


@NOT_REDIS
def test_kick_job(client):
    buried, = bury(client, 1)
    delayed, ready = client.put(delay=100), client.put()
    assert [client.ask(f"kick-job {n}") for n in (buried, delayed)] == ["KICKED"] * 2
    assert [state(client, n) for n in (buried, delayed)] == ["ready"] * 2
    assert client.ask(f"kick-job {ready}") == "NOT_FOUND"


# --- stats ---------------------------------------------------------------------------------

STATS = """current-jobs-urgent current-jobs-ready current-jobs-reserved current-jobs-delayed current-jobs-buried cmd-put
cmd-peek cmd-peek-ready cmd-peek-delayed cmd-peek-buried cmd-reserve cmd-reserve-with-timeout cmd-use cmd-watch cmd-ignore
cmd-delete cmd-release cmd-bury cmd-kick cmd-touch cmd-stats cmd-stats-job cmd-stats-tube cmd-list-tubes cmd-list-tube-used
cmd-list-tubes-watched cmd-pause-tube job-timeouts total-jobs max-job-size current-tubes current-connections
current-producers current-workers current-waiting total-connections pid version rusage-utime rusage-stime uptime
binlog-oldest-index binlog-current-index binlog-max-size binlog-records-written binlog-records-migrated draining id hostname
os platform""".split()
STATS_TUBE = """name current-jobs-urgent current-jobs-ready current-jobs-reserved current-jobs-delayed current-jobs-buried
total-jobs current-using current-waiting current-watching pause cmd-delete cmd-pause-tube pause-time-left""".split()
STATS_JOB = """id tube state pri age delay ttr time-left file reserves timeouts releases buries kicks""".split()


def test_stats_have_the_members_of_beanstalkd(server, client, tube):
    number = client.put(pri=3, delay=50, ttr=70)
    found = client.yaml("stats")
    assert set(found) == set(STATS)
    assert int(found["cmd-put"]) >= 1 and found["max-job-size"] == "10000" and found["draining"] == "false"
    assert int(found["pid"]) == server.process.pid
    assert int(found["current-jobs-delayed"]) >= 1 and int(found["current-connections"]) >= 1
    found = client.yaml(f"stats-tube {tube}")
    assert set(found) == set(STATS_TUBE)
    assert (found["name"], found["current-jobs-delayed"], found["current-using"]) == (tube, "1", "1")
    found = client.yaml(f"stats-job {number}")
    assert set(found) == set(STATS_JOB)
    assert [found[k] for k in ("id", "tube", "state", "pri", "delay", "ttr")] == [str(number), tube, "delayed", "3", "50", "70"]


# --- connections ---------------------------------------------------------------------------


def test_a_lost_connection_gives_its_jobs_back_at_once_as_a_failure(server, client, tube):
    numbers = [client.put(str(i), ttr=3600) for i in range(3)]
    with open_client(server, tube) as other:
        assert [other.reserve(0)[0] for _ in numbers] == numbers
        assert other.ask(f"delete {numbers[0]}") == "DELETED"
    for number in numbers[1:]:
        assert client.reserve(60)[0] == number
        stats = client.yaml(f"stats-job {number}")
        assert (stats["reserves"], stats["timeouts"]) == ("2", "1")


def test_a_job_that_kills_its_workers_is_buried(tmp_path):
    with Beans(tmp_path / "data", "--beanstalk-max-attempts", "3") as server, server.beans() as client:
        number = client.put(ttr=3600)
        for _ in range(3):
            with server.beans() as other:
                assert other.reserve(60)[0] == number
        until(lambda: state(client, number) == "buried")
        assert client.ask("kick 1") == "KICKED 1"
        assert client.reserve(60)[0] == number


def test_a_hang_up_while_waiting_loses_nothing(server, client, tube):
    waiting = [open_client(server, tube) for _ in range(10)]
    for other in waiting:
        other.send("reserve\r\n")
    until(lambda: client.yaml(f"stats-tube {tube}")["current-waiting"] == "10")
    for other in waiting:
        other.close()
    numbers = {client.put(str(i)) for i in range(20)}
    until(lambda: client.yaml(f"stats-tube {tube}")["current-waiting"] == "0")
    assert {client.reserve(60)[0] for _ in numbers} == numbers


def test_half_a_command_does_nothing(server, client):
    with server.beans() as other:
        other.send(b"put 0 0 1 100\r\nabc")
    with server.beans() as other:
        other.send(b"put 0 0 ")
    assert client.ask("reserve-with-timeout 0") == "TIMED_OUT"


def test_http_is_refused(server):
    for text in ("GET / HTTP/1.1\r\nHost: localhost\r\n\r\nput 0 0 1 1\r\nx\r\n", "POST /" + "x" * 3000 + " HTTP/1.1\r\n"):
        with server.beans() as client:
            client.send(text)
            assert client.line() == "", "closed without an answer"


def test_endless_lines_and_bodies_take_no_memory(server, client):
    for _ in range(20):
        client.send(b"x" * 1000000)
    client.send("\r\n")
    assert client.line() == "BAD_FORMAT"
    client.send(b"put 0 0 1 20000000\r\n")
    for _ in range(20):
        client.send(b"y" * 1000000)
    client.send("\r\n")
    assert client.line() == "JOB_TOO_BIG"


def test_messages_of_the_api_are_jobs_and_jobs_are_messages(server, client, tube):
    server.enqueue({"namespace": "default", "topic": tube, "text": "by http"})
    number, body = client.reserve(60)
    assert body == b"by http"
    assert int(client.yaml(f"stats-job {number}")["ttr"]) >= 25, "the lease of the queue"
    assert client.ask(f"delete {number}") == "DELETED"
    client.put("by socket", pri=7)
    message, = server.dequeue(namespace="default", topic=tube)
    assert (texts([message])[0], message["priority"], "attributes" in message) == ("by socket", 7, ENGINE == "redis")


def test_many_workers_get_every_job_once(server, client, tube):
    got, lock = [], threading.Lock()

    def work():
        with open_client(server, tube) as worker:
            while True:
                line = worker.ask("reserve-with-timeout 2")
                if line == "TIMED_OUT":
                    return
                number, _ = worker.job("RESERVED", line)
                assert worker.ask(f"delete {number}") == "DELETED"
                with lock:
                    got.append(number)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    client.send(b"".join(b"put 0 0 60 1\r\nx\r\n" for _ in range(2000)))
    numbers = [client.number("INSERTED", client.line()) for _ in range(2000)]
    for thread in threads:
        thread.join()
    assert sorted(got) == numbers


# --- restarts and settings -----------------------------------------------------------------


@NOT_REDIS
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_restart_keeps_jobs_in_every_state(tmp_path, how):
    with Beans(tmp_path / "data") as server:
        client = server.beans()
        buried, reserved = client.put("buried"), client.put("reserved", ttr=2)
        client.reserve(0)
        client.ask(f"bury {buried} 0")
        assert client.reserve(0)[0] == reserved
        ready, delayed = client.put("ready", pri=9), client.put("delayed", delay=1000)
        kicked = client.put("kicked", delay=1000, pri=20)
        assert client.ask(f"kick-job {kicked}") == "KICKED"
        client.ask("use paused")
        client.put("paused")
        client.ask("pause-tube paused 800")
        server.restart(how)
        with server.beans() as client:
            assert [state(client, n) for n in (buried, ready, delayed, kicked)] == ["buried", "ready", "delayed", "ready"]
            assert client.reserve(60)[0] == (reserved if how == "stop" else ready)
            if how == "kill":
                until(lambda: state(client, reserved) == "ready")
            assert int(client.yaml("stats-tube paused")["pause-time-left"]) > 700
            client.ask("watch paused")
            client.ask("ignore default")
            assert client.ask("reserve-with-timeout 0") == "TIMED_OUT"


def test_a_tube_that_is_drained_takes_no_jobs(server, client, tube):
    number = client.put("has it")
    assert server.post("/v1/admin/queue/drain", {"namespace": "default", "queue": tube}).status == 200
    assert client.ask("put 0 0 100 3\r\nnew") == "DRAINING"
    assert client.reserve(0)[0] == number


def test_a_stopped_server_counts_no_failure(tmp_path):
    with Beans(tmp_path / "data") as server:
        client = server.beans()
        number = client.put(ttr=3600)
        client.reserve(0)
        server.restart()
        with server.beans() as client:
            assert client.reserve(60)[0] == number
            assert client.yaml(f"stats-job {number}")["timeouts"] == "0"


@pytest.mark.parametrize("options, says", [
    (["--listen", "beanstalk://0.0.0.0:0"], "other machines can reach this address"),
    (["--listen", "beanstalk://0.0.0.0:0", "--insecure"], "other machines can reach this address"),
    (["--beanstalk-namespace", "a b"], "invalid beanstalk.namespace"),
    (["--beanstalk-max-attempts", "65536"], "65536"),
])
def test_settings_that_are_refused(tmp_path, options, says):
    with pytest.raises(Refused) as caught:
        Beans(tmp_path / "data", *options)
    assert says in str(caught.value)


def test_authentication_needs_client_certificates(tmp_path):
    (tmp_path / "secret").write_text("a secret of at least thirty-two bytes\n")
    (tmp_path / "secret").chmod(0o600)
    with pytest.raises(Refused) as caught:
        Beans(tmp_path / "data", "--auth-secret-file", str(tmp_path / "secret"))
    assert "the protocol has no tokens" in str(caught.value)


def test_client_certificates_name_the_callers_of_other_machines(tmp_path):
    certs = Certs(tmp_path / "certs")
    certs.make("server", "DNS:localhost", "IP:127.0.0.1")
    certs.make("worker", "URI:lockd://ns/default?perm=rw")
    certs.make("reader", "URI:lockd://ns/default?perm=r")
    with Server(tmp_path / "data", "--listen", "beanstalks://0.0.0.0:0", "--tls-cert", certs["server.pem"], "--tls-key",
                certs["server.key"], "--tls-client-auth", "required", "--tls-client-ca", certs["ca.pem"]) as server:
        port = int(until(lambda: re.search(r"listening on beanstalks://0\.0\.0\.0:(\d+)", server.said()))[1])

        def connect(name):
            tls = ssl.create_default_context(cafile=certs["ca.pem"])
            tls.load_cert_chain(certs[f"{name}.pem"], certs[f"{name}.key"])
            return Client(port, tls)

        with connect("worker") as worker, connect("reader") as reader:
            number = worker.put("secret")
            assert reader.peek("peek-ready") == (number, b"secret")
            reader.send("put 0 0 1 1\r\nx\r\n")
            assert reader.line() == "INTERNAL_ERROR", "no right to write"
            assert worker.ask("kick 1") == "INTERNAL_ERROR", "an operator's right"
            assert worker.reserve(0)[0] == number
            assert worker.ask(f"delete {number}") == "DELETED"


def test_the_namespace_of_the_tubes(tmp_path):
    with Beans(tmp_path / "data", "--beanstalk-namespace", "Beans") as server, server.beans() as client:
        client.put()
        message, = server.dequeue(namespace="beans", topic="default")
        assert texts([message]) == ["hello"]


def test_several_shards(tmp_path):
    with Beans(tmp_path / "data", "--shards", "4") as server, server.beans() as client:
        tubes = [f"t{i}" for i in range(8)]
        numbers = []
        for i, name in enumerate(tubes):
            client.ask(f"use {name}")
            numbers.append(client.put(name, pri=10 - i))
            client.ask(f"watch {name}")
        assert [client.peek(f"peek {n}")[1].decode() for n in numbers] == tubes
        assert [client.reserve(0)[0] for _ in numbers] == numbers[::-1]
        assert {client.ask(f"delete {n}") for n in numbers[:4]} == {"DELETED"}
        assert set(tubes) <= set(client.yaml("list-tubes"))
        client.send("reserve\r\n")
        with server.beans() as other:
            other.ask("use t3")
            number = other.put("late")
            assert client.job("RESERVED", client.line())[0] == number
            ready = other.put("x")
            assert other.ask(f"delete {ready}") == "DELETED"
