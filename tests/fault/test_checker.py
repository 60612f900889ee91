"""The checker finds what is wrong, and nothing else: for every promise histories that break
it, and histories that come close to it and keep it."""
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


def more_failures_than_deliveries(h):
    claim_of(h, 14).failures = 2


def two_ids_for_one_idempotency_key(h):
    h.add(Push(6, 7, OK, "e", id=8, idem="e"))
    h.looks[0].rows.append((8, "e", "ready"))
    h.looks[0].stats.update(ready=2, total=4)


def never_sent(h):
    h.looks[0].rows.append((9, "z", "ready"))
    h.looks[0].stats.update(ready=2, total=4)


def ack_then_a_higher_token_at_the_same_time(h):
    h.add(Claim(12.5, 13.5, 1, "a", 20, granted=140, until=170, due=100, key="k", attempts=3))


def stale_extend(h):
    h.add(Settle(22, 23, OK, "extend", 3, 13, until=300))


def first_deliveries(*pushes, order, dues=None):
    """A history of one key: pushes, then every message delivered once, in that order."""
    h = History()
    for p in pushes:
        p.key = "k"
        h.add(p)
    for at, id_ in enumerate(order):
        name = next(p.name for p in pushes if p.id == id_)
        begin = 100 + 10 * at
        h.add(Claim(begin, begin + 1, id_, name, 50 + at, granted=1000 + begin,
                    until=1030 + begin, due=(dues or {}).get(id_, 500), key="k"))
        h.add(Settle(begin + 2, begin + 3, OK, "ack", id_, 50 + at))
    h.add(Look())
    return h


def one_push_after_the_other(order):
    return first_deliveries(Push(0, 1, OK, "a", id=1, call=1), Push(2, 3, OK, "b", id=2, call=2),
                            order=order)


def pushed_again_with_its_key(order):
    """b is accepted while a, whose first push is unknown, may or may not be there."""
    return first_deliveries(Push(0, 1, UNKNOWN, "a", idem="a", call=1),
                            Push(2, 3, OK, "b", id=2, call=2),
                            Push(4, 5, OK, "a", id=1, idem="a", call=3), order=order)


def pushed_again_though_it_was_known(order):
    """a was accepted before b; that it was sent once more says nothing new."""
    return first_deliveries(Push(0, 1, OK, "a", id=1, idem="a", call=1),
                            Push(2, 3, OK, "b", id=2, call=2),
                            Push(4, 5, OK, "a", id=1, idem="a", call=3), order=order)


def pushed_again_before_another(order):
    return first_deliveries(Push(0, 1, UNKNOWN, "a", idem="a", call=1),
                            Push(2, 3, OK, "a", id=1, idem="a", call=2),
                            Push(4, 5, OK, "b", id=2, call=3), order=order)


def pushed_again_in_one_call_with_another(order):
    """Of one call c stands first, but it may have been there since before it."""
    return first_deliveries(Push(0, 1, UNKNOWN, "c", idem="c", call=1, index=1),
                            Push(4, 5, OK, "b", id=2, call=2, index=0),
                            Push(4, 5, OK, "c", id=3, idem="c", call=2, index=1), order=order)


def refused_then_accepted(order):
    """A push that was refused began nothing: a is accepted by its second one."""
    return first_deliveries(Push(0, 1, FAIL, "a", idem="a", call=1),
                            Push(2, 3, OK, "b", id=2, call=2),
                            Push(4, 5, OK, "a", id=1, idem="a", call=3), order=order)


def pushed_at_the_same_time(order):
    return first_deliveries(Push(0, 2, OK, "a", id=1, call=1), Push(1, 3, OK, "b", id=2, call=2),
                            order=order)


@pytest.mark.parametrize("history, order, fine", [
    (one_push_after_the_other, (1, 2), True), (one_push_after_the_other, (2, 1), False),
    (pushed_again_with_its_key, (1, 2), True), (pushed_again_with_its_key, (2, 1), True),
    (pushed_again_though_it_was_known, (1, 2), True),
    (pushed_again_though_it_was_known, (2, 1), False),
    (pushed_again_before_another, (1, 2), True), (pushed_again_before_another, (2, 1), False),
    (pushed_again_in_one_call_with_another, (2, 3), True),
    (pushed_again_in_one_call_with_another, (3, 2), True),
    (refused_then_accepted, (2, 1), True), (refused_then_accepted, (1, 2), False),
    (pushed_at_the_same_time, (1, 2), True), (pushed_at_the_same_time, (2, 1), True),
])
def test_the_order_of_a_key_follows_its_acceptances(history, order, fine):
    found = check(history(order))
    assert bool(found) != fine and all(text.startswith("I6") for text in found), found


def test_the_order_of_a_key_goes_by_due_before_acceptance():
    pushes = (Push(0, 1, OK, "a", id=1, call=1), Push(2, 3, OK, "b", id=2, call=2))
    dues = {1: 600, 2: 500}
    assert check(first_deliveries(*pushes, order=(2, 1), dues=dues)) == []
    found = check(first_deliveries(*pushes, order=(1, 2), dues=dues))
    assert found and all(text.startswith("I6") for text in found), found


def test_a_redriven_message_has_no_place_in_its_line():
    h = one_push_after_the_other((2, 1))
    h.redriven.add(1)
    assert check(h) == []


# What comes close and is allowed.

def ack_of_unknown_outcome_did_not_happen(h):  # I1
    h.looks[0].rows.append((2, "b", "ready"))
    h.looks[0].stats.update(ready=2, total=4)


def push_of_unknown_outcome_did_not_happen(h):  # I2
    h.add(Push(6, 7, UNKNOWN, "g"))


def push_of_unknown_outcome_did_happen(h):  # I2
    h.add(Push(6, 7, UNKNOWN, "g"))
    h.looks[0].rows.append((9, "g", "ready"))
    h.looks[0].stats.update(ready=2, total=4)


def same_idempotency_key_again(h):  # I2
    h.add(Push(6, 7, OK, "e", id=5, idem="e"))


def delivery_after_an_ack_of_unknown_outcome(h):  # I3
    h.add(Claim(50, 51, 2, "b", 30, granted=150, until=180, due=100, key="k", attempts=2,
                failures=1))
    h.add(Settle(52, 53, OK, "ack", 2, 30))


def delivery_after_an_ack_that_was_refused(h):  # I3
    h.add(Claim(50, 51, 3, "c", 30, granted=151, until=190, due=100, attempts=3, failures=2))


def lease_begins_when_the_last_one_ends(h):  # I4
    claim_of(h, 14).granted = 120


def extended_twice(h):  # I5
    h.add(Settle(11.3, 11.4, OK, "extend", 1, 11, until=210))


def handed_out_when_it_is_due(h):  # I7
    claim_of(h, 13).due = claim_of(h, 13).granted


def retried_when_it_is_due(h):  # I7
    h.settles[0].until = 110


def last_attempt(h):  # I8
    claim_of(h, 14).max_attempts = 2


def processing_is_leased(h):  # I9
    h.looks[0].rows[0] = (3, "c", "leased")


@pytest.mark.parametrize("change", [
    ack_of_unknown_outcome_did_not_happen, push_of_unknown_outcome_did_not_happen,
    push_of_unknown_outcome_did_happen, same_idempotency_key_again,
    delivery_after_an_ack_of_unknown_outcome, delivery_after_an_ack_that_was_refused,
    lease_begins_when_the_last_one_ends, extended_twice, handed_out_when_it_is_due,
    retried_when_it_is_due, last_attempt, processing_is_leased])
def test_what_is_allowed_is_not_found(change):
    history = good()
    change(history)
    assert check(history) == []


@pytest.mark.parametrize("plant, rule", [
    (lose, "I1"), (ack_twice, "I1"), (keep_after_ack, "I1"), (swap_bytes, "I1"),
    (accept_refused, "I1"), (double_unknown, "I2"), (deliver_after_ack, "I3"),
    (overlap, "I4"), (overlap_of_key, "I4"), (overlap_of_extended, "I4"),
    (repeat_token, "I4"), (token_goes_back, "I4"), (stale_ack, "I5"),
    (nack_after_ack, "I5"), (out_of_order, "I6"), (out_of_order_in_a_call, "I6"),
    (too_early, "I7"), (retry_too_early, "I7"), (two_places, "I8"),
    (dead_but_not_listed, "I8"), (one_attempt_too_many, "I8"), (miscounted, "I9"),
    (total_miscounted, "I9"), (more_failures_than_deliveries, "I8"),
    (two_ids_for_one_idempotency_key, "I2"), (never_sent, "I1"),
    (ack_then_a_higher_token_at_the_same_time, "I3"), (stale_extend, "I5")])
def test_a_planted_fault_is_found(plant, rule):
    history = good()
    plant(history)
    found = check(history)
    assert any(text.startswith(rule) for text in found), found
