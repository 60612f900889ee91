"""The checker finds what is wrong: one planted fault a promise."""
import pytest

from checker import FAIL, OK, UNKNOWN, Claim, History, Look, Push, Settle, check


def good():
    """Two messages of one key and one without, a retry, a dead letter, an unknown push."""
    h = History()
    h.add(Push(0, 1, OK, "a", id=1, key="k", call=1, index=0))
    h.add(Push(0, 1, OK, "b", id=2, key="k", call=1, index=1))
    h.add(Push(0, 1, OK, "c", id=3))
    h.add(Push(0, 1, OK, "d", id=4))
    h.add(Push(2, 3, UNKNOWN, "e", idem="e"))
    h.add(Push(4, 5, OK, "e", id=5, idem="e"))
    h.add(Push(4, 5, FAIL, "f"))
    h.add(Claim(6, 7, 1, "a", 10, granted=106, until=136, due=100, key="k"))
    h.add(Settle(8, 9, OK, "nack", 1, 10, until=110))
    h.add(Claim(10, 11, 1, "a", 11, granted=110, until=140, due=100, key="k", attempts=2,
                failures=1))
    h.add(Settle(11.1, 11.2, OK, "extend", 1, 11, until=200))
    h.add(Settle(12, 13, OK, "ack", 1, 11))
    h.add(Claim(14, 15, 2, "b", 12, granted=114, until=144, due=100, key="k"))
    h.add(Settle(15, 16, UNKNOWN, "ack", 2, 12))
    h.add(Claim(17, 18, 3, "c", 13, granted=117, until=120, due=100))
    h.add(Claim(20, 21, 3, "c", 14, granted=121, until=151, due=100, attempts=2, failures=1))
    h.add(Settle(22, 23, FAIL, "ack", 3, 13))
    h.add(Look(rows=[(3, "c", "processing"), (4, "d", "ready"), (5, "e", "dead")], dead=[5],
               stats={"leased": 1, "ready": 1, "dead": 1, "total": 3}))
    return h


def test_a_good_history_breaks_nothing():
    assert check(good()) == []


def claim_of(h, token):
    return next(c for c in h.claims if c.token == token)


def lose(h):
    h.looks[0].rows.remove((4, "d", "ready"))
    h.looks[0].stats.update(ready=0, total=2)


def ack_twice(h):
    h.add(Settle(12, 13, OK, "ack", 1, 11))


def keep_after_ack(h):
    h.looks[0].rows.append((1, "a", "ready"))
    h.looks[0].stats.update(ready=2, total=4)


def swap_bytes(h):
    claim_of(h, 13).name = "d"


def accept_refused(h):
    h.looks[0].rows.append((6, "f", "ready"))
    h.looks[0].stats.update(ready=2, total=4)


def double_unknown(h):
    h.looks[0].rows.append((7, "e", "ready"))
    h.looks[0].stats.update(ready=2, total=4)


def deliver_after_ack(h):
    h.add(Claim(30, 31, 1, "a", 20, granted=230, until=260, due=100, key="k", attempts=3))


def overlap(h):
    claim_of(h, 14).granted = 119


def overlap_of_key(h):
    h.settles = [s for s in h.settles if s.token != 11]
    h.looks[0].rows.append((1, "a", "leased"))
    h.looks[0].stats.update(leased=2, total=4)


def repeat_token(h):
    claim_of(h, 14).token = 13


def token_goes_back(h):
    claim_of(h, 14).token = 9
    claim_of(h, 13).granted = 200


def overlap_of_extended(h):
    h.settles = [s for s in h.settles if s.verb != "ack"]
    h.looks[0].rows += [(1, "a", "leased"), (2, "b", "leased")]
    h.looks[0].stats.update(leased=3, total=5)
    claim_of(h, 12).granted = 150


def stale_ack(h):
    h.settles[-1].result = OK
    h.looks[0].rows.remove((3, "c", "processing"))
    h.looks[0].stats.update(leased=0, total=2)


def nack_after_ack(h):
    h.add(Settle(40, 41, OK, "nack", 1, 11))


def out_of_order(h):
    for c in h.claims:
        if c.id == 1:
            c.due = 101


def out_of_order_in_a_call(h):
    h.pushes[0].index, h.pushes[1].index = 1, 0


def too_early(h):
    claim_of(h, 13).due = 118


def retry_too_early(h):
    h.settles[0].until = 111


def two_places(h):
    h.looks[0].rows.append((4, "d", "delayed"))
    h.looks[0].stats.update(delayed=1, total=4)


def dead_but_not_listed(h):
    h.looks[0].dead.clear()


def miscounted(h):
    h.looks[0].stats["ready"] = 2


def total_miscounted(h):
    h.looks[0].stats["total"] = 7


def one_attempt_too_many(h):
    claim_of(h, 14).max_attempts = 1


@pytest.mark.parametrize("plant, rule", [
    (lose, "I1"), (ack_twice, "I1"), (keep_after_ack, "I1"), (swap_bytes, "I1"),
    (accept_refused, "I1"), (double_unknown, "I2"), (deliver_after_ack, "I3"),
    (overlap, "I4"), (overlap_of_key, "I4"), (overlap_of_extended, "I4"),
    (repeat_token, "I4"), (token_goes_back, "I4"), (stale_ack, "I5"),
    (nack_after_ack, "I5"), (out_of_order, "I6"), (out_of_order_in_a_call, "I6"),
    (too_early, "I7"), (retry_too_early, "I7"), (two_places, "I8"),
    (dead_but_not_listed, "I8"), (one_attempt_too_many, "I8"), (miscounted, "I9"),
    (total_miscounted, "I9")])
def test_a_planted_fault_is_found(plant, rule):
    history = good()
    plant(history)
    found = check(history)
    assert any(text.startswith(rule) for text in found), found
