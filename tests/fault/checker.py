"""What a queue may and may not do, checked over the history of a run.

Clients write down every call: when it began, when it ended, and what they know of it.
At the end the queue is looked at as a whole, and check() says which promises a history
breaks. It knows nothing of how the server works.

    ok       the server said so
    fail     the server said that nothing has changed, or was never asked
    unknown  the answer did not arrive: it may have happened, or not

    I1  what was accepted is acked once or still there, with the bytes that were sent
    I2  a push that is unknown is there once or not at all; an idempotency key is one message
    I3  nothing is handed out after an ack of it
    I4  no two leases of a message, or of a key, overlap; tokens rise
    I5  a token that is not the current one changes nothing
    I6  the first deliveries of a key come in the order (due, acceptance)
    I7  nothing is handed out before it is due, first or again
    I8  a message is in one place
    I9  the counters are what a scan finds

Times of leases are the server's, which all stand in its answers; the clients' own
clock only tells what surely came before what.
"""
from collections import Counter, defaultdict
from dataclasses import dataclass, field

OK, FAIL, UNKNOWN = "ok", "fail", "unknown"


@dataclass
class Push:
    start: float
    end: float
    result: str
    name: str           # what its payload says; no two pushes have the same
    id: int = 0         # when ok
    key: str = ""
    idem: str = ""      # pushes with one idempotency key have one name too
    index: int = 0      # in its call
    call: int = 0


@dataclass
class Claim:
    """One message that arrived; empty claims need not be recorded."""
    start: float
    end: float
    id: int
    name: str
    token: int
    granted: float      # server time, seconds
    until: float
    due: float
    key: str = ""
    attempts: int = 1
    failures: int = 0
    max_attempts: int = 1 << 31


@dataclass
class Settle:
    """ack, nack, extend"""
    start: float
    end: float
    result: str
    verb: str
    id: int
    token: int
    until: float = 0    # extend: the new end of the lease; nack: not before


@dataclass
class Look:
    """The whole queue at a moment without work on it."""
    rows: list = field(default_factory=list)   # (id, name or "", status)
    dead: list = field(default_factory=list)   # ids that the dead letters list
    stats: dict = field(default_factory=dict)


@dataclass
class History:
    pushes: list = field(default_factory=list)
    claims: list = field(default_factory=list)
    settles: list = field(default_factory=list)
    looks: list = field(default_factory=list)
    redriven: set = field(default_factory=set)
    slack: float = 1e-6  # of a duration that was counted in seconds

    def add(self, event):
        {Push: self.pushes, Claim: self.claims, Settle: self.settles,
         Look: self.looks}[type(event)].append(event)

    def end(self):
        return self.looks[-1]


class Index:
    """The same events, by what the checks ask for."""

    def __init__(self, history):
        self.claims = defaultdict(list)
        self.keys = defaultdict(list)
        self.settles = defaultdict(list)
        self.by_lease = defaultdict(list)
        for c in sorted(history.claims, key=lambda c: c.token):
            self.claims[c.id].append(c)
            if c.key:
                self.keys[c.key].append(c)
        for s in history.settles:
            self.settles[s.id].append(s)
            self.by_lease[s.id, s.token].append(s)

    def acks(self, id_, result):
        return [s for s in self.settles[id_] if s.verb == "ack" and s.result == result]


def check(history):
    """Every promise that was broken, as sentences; none when all is well."""
    index = Index(history)
    found = []
    for rule in (lost, unknown_pushes, revived, overlaps, tokens, stale, order, early,
                 places, counters, limits):
        found += rule(history, index)
    return found


def ids_by_name(history):
    seen = defaultdict(set)
    for p in history.pushes:
        if p.result == OK:
            seen[p.name].add(p.id)
    for c in history.claims:
        seen[c.name].add(c.id)
    for look in history.looks:
        for id_, name, _ in look.rows:
            if name:
                seen[name].add(id_)
    return seen


def lost(history, index):
    left = Counter(id_ for id_, _, _ in history.end().rows)
    sent = {p.id: p.name for p in history.pushes if p.result == OK}
    for id_, name in sent.items():
        acked = len(index.acks(id_, OK))
        if acked > 1:
            yield f"I1 {name} ({id_}) was acked {acked} times"
        elif acked and left[id_]:
            yield f"I1 {name} ({id_}) was acked and is still there"
        elif not acked and not left[id_] and not index.acks(id_, UNKNOWN):
            yield f"I1 {name} ({id_}) was accepted and is lost"
    for c in history.claims:
        if sent.get(c.id, c.name) != c.name:
            yield f"I1 {c.id} was sent as {sent[c.id]} and came as {c.name}"
    names = {p.name for p in history.pushes if p.result != FAIL}
    for name, ids in ids_by_name(history).items():
        if name not in names:
            yield f"I1 {name} ({sorted(ids)[:3]}) was never sent, or refused"


def unknown_pushes(history, _):
    for name, ids in ids_by_name(history).items():
        if len(ids) > 1:
            yield f"I2 {name} is there {len(ids)} times: {sorted(ids)[:3]}"


def revived(history, index):
    for id_, settles in index.settles.items():
        for s in settles:
            if s.verb != "ack" or s.result != OK:
                continue
            for c in index.claims[id_]:
                if c.start > s.end or c.token > s.token:
                    yield f"I3 {id_} was acked (token {s.token}), then came with {c.token}"


def ends(index, claim):
    """When its lease was over at the latest; None: the holder ended it."""
    until = claim.until
    for s in index.by_lease[claim.id, claim.token]:
        if s.verb in ("ack", "nack") and s.result != FAIL:
            return None
        if s.verb == "extend" and s.result == OK:
            until = s.until
    return until


def overlaps(history, index):
    for lines, what in ((index.claims, "message"), (index.keys, "key")):
        for name, claims in lines.items():
            for one, next_ in zip(claims, claims[1:]):
                until = ends(index, one)
                if until is not None and next_.granted < until - history.slack:
                    yield (f"I4 {what} {name}: lease {one.token} until {until:.6f}, lease "
                           f"{next_.token} from {next_.granted:.6f}")


def tokens(history, index):
    for token, n in Counter(c.token for c in history.claims).items():
        if n > 1:
            yield f"I4 token {token} was given {n} times"
    for key, claims in index.keys.items():
        yield from rising(f"key {key}", claims)
    for id_, claims in index.claims.items():
        yield from rising(f"message {id_}", claims)
        for one, next_ in zip(claims, claims[1:]):
            if next_.attempts <= one.attempts and id_ not in history.redriven:
                yield f"I4 {id_}: delivery {one.attempts}, then {next_.attempts}"


def rising(what, claims):
    """claims go by token: none may end before one of a lower token began."""
    begin = float("-inf")
    for c in claims:
        if c.end < begin:
            yield f"I4 {what}: token {c.token} was there before a lower one was given"
        begin = max(begin, c.start)


def stale(_, index):
    for id_, settles in index.settles.items():
        fine = [s for s in settles if s.result == OK]
        for s in fine:
            for c in index.claims[id_]:
                if c.token > s.token and c.end < s.start:
                    yield f"I5 {id_}: {s.verb} with {s.token} after lease {c.token}"
            for other in fine:
                if (other.token == s.token and other.verb != "extend"
                        and other.end < s.start):
                    yield f"I5 {id_}: {s.verb} with {s.token} after its {other.verb}"


def order(history, index):
    pushes = acceptances(history)
    for key, claims in index.keys.items():
        first = {}
        for c in claims:
            if c.id not in history.redriven:
                first.setdefault(c.id, c)
        line = list(first.values())
        # Pairs suffice when the order is total; ties are decided by their pushes.
        last = None
        for c in line:
            if last and c.due < last.due:
                yield f"I6 key {key}: {c.name} (due {c.due:.6f}) after {last.name} " \
                      f"(due {last.due:.6f})"
            elif last and c.due == last.due and before(pushes.get(c.id), pushes.get(last.id)):
                yield f"I6 key {key}: {c.name} after {last.name}, accepted later"
            last = c


def acceptances(history):
    """By id, the push that was accepted; (start, end) is when that may have been. One
    that was tried before, under its idempotency key, has no call that is known."""
    tried, found = {}, {}
    for p in sorted(history.pushes, key=lambda p: p.start):
        if p.result == FAIL:
            continue
        first = tried.setdefault(p.name, p)
        if p.result == OK and p.id not in found:
            call = p.call if first is p else None
            found[p.id] = Push(first.start, p.end, OK, p.name, p.id, index=p.index, call=call)
    return found


def before(a, b):
    if not a or not b:
        return False
    if a.call is not None and a.call == b.call:
        return a.index < b.index
    return a.end < b.start


def early(history, index):
    for c in history.claims:
        if c.granted < c.due - history.slack:
            yield f"I7 {c.name} came {c.due - c.granted:.6f} s before it was due"
    for id_, claims in index.claims.items():
        for one, next_ in zip(claims, claims[1:]):
            for s in index.by_lease[id_, one.token]:
                if (s.verb == "nack" and s.result == OK
                        and next_.granted < s.until - history.slack):
                    yield f"I7 {next_.name} came again before its retry was due"


def places(history, _):
    for look in history.looks:
        dead = [id_ for id_, _, status in look.rows if status == "dead"]
        for id_, n in Counter(id_ for id_, _, _ in look.rows).items():
            if n > 1:
                yield f"I8 {id_} is in {n} places"
        if sorted(look.dead) != sorted(dead):
            yield f"I8 the dead letters differ: {set(look.dead) ^ set(dead)}"


def counters(history, _):
    for look in history.looks:
        found = Counter("leased" if status == "processing" else status
                        for _, _, status in look.rows)
        for state in ("ready", "delayed", "leased", "held", "dead", "damaged"):
            if look.stats.get(state, 0) != found[state]:
                yield f"I9 {state}: counted {look.stats.get(state, 0)}, found {found[state]}"
        if look.stats.get("total", 0) != len(look.rows):
            yield f"I9 total: counted {look.stats.get('total', 0)}, found {len(look.rows)}"


def limits(history, _):
    """Attempts count deliveries; no delivery comes after the last failure."""
    for c in history.claims:
        if c.failures >= c.max_attempts:
            yield f"I8 {c.name} was handed out after {c.failures} failures"
        if c.failures >= c.attempts:
            yield f"I8 {c.name}: {c.failures} failures at delivery {c.attempts}"
