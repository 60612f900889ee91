"""The messages of a key stay in order whatever the settings of their queue and their own members."""
import pytest

from served import texts

N = 24

SETTINGS = {
    "defaults": {},
    "one attempt more": {"max_attempts": 100, "retry": {"kind": "none"}},
    "fixed": {"retry": {"kind": "fixed", "base": 0.001}},
    "linear": {"retry": {"kind": "linear", "base": 0.001}},
    "exponential": {"retry": {"kind": "exponential", "base": 0.001, "max": 0.002, "jitter": "full"}},
    "short leases": {"lease": 1},
    "weights": {"share_weights": "s1=100,s*=2"},
    "concurrency": {"concurrency": 1, "share_concurrency": 1},
    "rates": {"rate": 1000, "share_rate": 1000, "key_rate": 1000},
    "an attribute": {"limit_attribute": "host", "attribute_concurrency": 1, "attribute_rate": 1000},
    "rules": {"rules": "n > 12: high; n < 6: low; n in (7, 9): priority 3"},
    "breakers": {"breakers": "smtp: 1000 in 1m, open 1s"},
    "strict": {"idempotency": "strict", "require_lease": True},
    "bounds": {"max_depth": 1000, "max_rate": 100000, "ttl": 3600, "max_runtime": 3600},
}

MEMBERS = {
    "nothing": lambda n: {},
    "rising priority": lambda n: {"priority": N - n},
    "falling priority": lambda n: {"priority": n},
    "shares": lambda n: {"share": f"s{n % 3}"},
    "kinds": lambda n: {"kind": f"k{n % 3}"},
    "terms": lambda n: {"retry": {"kind": "none"}, "lease": 30 + n, "ttl": 3600 - n},
    "unique": lambda n: {"unique": {"key": f"u{n}", "until": "done"}},
}


@pytest.mark.parametrize("members", MEMBERS)
@pytest.mark.parametrize("settings", SETTINGS)
def test_the_order_of_a_key(server, settings, members):
    """SQ-F3, SQ-F9. Every fourth message fails once: its retry holds the key."""
    if SETTINGS[settings]:
        server.policy(**SETTINGS[settings])
    server.enqueue(*({"text": str(n), "key": "k", "attributes": {"n": n, "host": f"h{n % 2}"}, **MEMBERS[members](n)}
                     for n in range(N)))
    seen = []
    while len(seen) < N:
        message, = server.dequeue(limit=10, wait=10) or [None]
        assert message, f"nothing comes after {seen}"
        n = int(texts([message])[0])
        if n % 4 == 0 and message["attempts"] == 1:
            server.nack(message, delay=0, error="once")
            continue
        seen.append(n)
        server.ack(message)
    assert seen == list(range(N))
