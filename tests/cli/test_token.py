"""`sluice token`, and the token that a command shows to a server."""
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "integration"))
from served import Server  # noqa: E402
from tokens import Pair, Secret, decode  # noqa: E402

SLUICE = os.environ["SLUICE"]
ALGS = ["HS256", "HS384", "HS512", "RS256", "ES256", "EdDSA"]


def run(*args, stdin=None, **env):
    known = {k: v for k, v in os.environ.items() if not k.startswith("SLUICE_")}
    return subprocess.run([SLUICE, *map(str, args)], capture_output=True, text=True, timeout=60,
                          input=stdin, env={**known, **{k: str(v) for k, v in env.items()}})


def good(*args, **more):
    done = run(*args, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def parts(token):
    head, claims, _ = token.strip().split(".")
    return json.loads(decode(head)), json.loads(decode(claims))


# --- making -----------------------------------------------------------------------------


@pytest.mark.parametrize("alg", ALGS)
def test_a_key_a_token_and_a_server_fit_together(tmp_path, alg):
    key = tmp_path / "key"
    key.write_text(good("token", "--new-key", "--alg", alg))
    flag, public = "--secret-file", key
    if alg[:2] != "HS":
        flag, public = "--key-file", tmp_path / "pub"
        public.write_text(good("token", "--key-file", key, "--public"))
        assert "PRIVATE" not in public.read_text()
    token = good("token", flag, key, "--alg", alg, "--kid", "k1", "default:*").strip()
    with Server(tmp_path / "data", "--auth-keys", f"k1@{alg}:{public}", engine="memory") as server:
        here = {"SLUICE_SERVER": "%s:%d" % server.address}
        assert run("push", "q", "x", **here).returncode == 1
        good("push", "q", "x", **here, SLUICE_TOKEN=token)


def test_what_a_token_says(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("x" * 40)
    began = time.time()
    head, claims = parts(good("token", "--secret-file", secret, "--sub", "worker-1", "--ttl", "8h",
                              "--issuer", "me", "--audience", "you", "--kid", "2026",
                              "--scope", "a:read b:write", "team-*:*", "*:admin"))
    assert head == {"alg": "HS256", "typ": "JWT", "kid": "2026"}
    assert claims.pop("iat") == pytest.approx(began, abs=60)
    assert claims.pop("exp") == pytest.approx(began + 8 * 3600, abs=60)
    assert claims == {"sub": "worker-1", "iss": "me", "aud": "you",
                      "scope": "a:read b:write team-*:* *:admin"}


def test_a_token_is_what_others_would_make(tmp_path):
    """The same bytes are signed alike by Python."""
    secret = tmp_path / "secret"
    secret.write_text("x" * 64 + "\n")
    for bits in (256, 384, 512):
        token = good("token", "--secret-file", secret, "--alg", f"HS{bits}", "a:read").strip()
        signing, _, signature = token.rpartition(".")
        assert decode(signature) == Secret("x" * 64, bits).sign(signing.encode())


def test_the_secret_may_come_from_stdin():
    assert parts(good("token", "--secret-file", "-", "a:read", stdin="x" * 40 + "\n"))


def test_new_keys_differ():
    for alg in ALGS[2:]:
        assert good("token", "--new-key", "--alg", alg) != good("token", "--new-key", "--alg", alg)


@pytest.mark.parametrize("args, code, says", [
    (["a:read"], 2, "--new-key makes one"),
    (["--secret-file", "{secret}", "--key-file", "{key}", "a:read"], 2, "--secret-file or --key-file"),
    (["--secret-file", "{secret}"], 2, "missing scope"),
    (["--secret-file", "{secret}", "a:reed"], 2, 'invalid scope: "a:reed"'),
    (["--secret-file", "{secret}", "--scope", "a:read,b:read"], 2, 'invalid scope: "a:read,b:read"'),
    (["--secret-file", "{secret}", "--alg", "none", "a:read"], 2, "expected HS256"),
    (["--secret-file", "{secret}", "--alg", "HS512", "a:read"], 2, "HS512 needs at least 64"),
    (["--secret-file", "{secret}", "--alg", "RS256", "a:read"], 2, "--key-file"),
    (["--secret-file", "{secret}", "--public"], 2, "no public half"),
    (["--secret-file", "{secret}", "--ttl", "0s", "a:read"], 2, "invalid --ttl"),
    (["--secret-file", "/nowhere", "a:read"], 1, "/nowhere: No such file"),
    (["--key-file", "{secret}", "a:read"], 2, "expected a private key in PEM"),
    (["--key-file", "{key}", "--alg", "RS256", "a:read"], 2, "expected an RSA key"),
    (["--new-key", "--alg", "XS256"], 2, "expected HS256"),
    (["--secert-file", "{secret}"], 2, "did you mean --secret-file"),
])
def test_what_is_wrong_is_said_and_no_secret_shown(tmp_path, args, code, says):
    (tmp_path / "secret").write_text("hunter2-" * 5)
    names = {"secret": tmp_path / "secret", "key": Pair(tmp_path, "ES256").private}
    done = run("token", *(a.format(**names) for a in args))
    assert (done.returncode, done.stdout) == (code, "") and says in done.stderr, done
    assert "hunter2" not in done.stderr


def test_help_has_examples():
    out = good("token", "--help")
    assert "usage: sluice token" in out and "examples:" in out and "--new-key" in out


# --- showing ----------------------------------------------------------------------------

KEY = Secret("correct-horse-battery-staple-0123456789")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("token")
    (folder / "secret").write_bytes(KEY.secret)
    with Server(folder / "data", "--auth-keys", f"HS256:{folder}/secret", engine="memory") as server:
        yield {"SLUICE_SERVER": "%s:%d" % server.address}


def test_where_a_token_comes_from(here, tmp_path):
    token, bad = KEY.token(scope="default:*"), "bad.bad.bad"
    (tmp_path / "good").write_text(f"\n {token}\r\n")
    (tmp_path / "bad").write_text(bad)
    good("push", "q", "x", **here, SLUICE_TOKEN=token)
    good("push", "q", "x", **here, SLUICE_TOKEN_FILE=tmp_path / "good")
    good("push", "q", "x", "--token-file", tmp_path / "good", **here)
    good("push", "q", "x", **here, SLUICE_TOKEN=token, SLUICE_TOKEN_FILE=tmp_path / "bad")
    good("push", "q", "x", "--token-file", tmp_path / "good", **here, SLUICE_TOKEN=bad)
    good("push", "q", "x", **here, SLUICE_TOKEN="", SLUICE_TOKEN_FILE=tmp_path / "good")


def test_every_command_shows_it(here, tmp_path):
    env = {**here, "SLUICE_TOKEN": KEY.token(scope="default:* *:read")}  # status needs *:read
    for args in (["push", "all", "x"], ["stats"], ["topics"], ["peek", "all"], ["dlq", "list", "all"],
                 ["status"], ["pull", "all", "--ack"],
                 ["bench", "enqueue", "--for", "50ms", "--connections", "2", "--server",
                  here["SLUICE_SERVER"], "--token-file", tmp_path / "bench"]):
        (tmp_path / "bench").write_text(KEY.token(scope="bench:*"))
        assert "token" not in (run(*args, **env).stderr), args
    good("push", "all", "one", **env)
    out = good("work", "all", "--idle", "100ms", "--", "cat", **env)
    assert "one" in out


def test_who_may_read_may_look(here):
    """And change nothing; a list over all namespaces needs *:read."""
    writer = {**here, "SLUICE_TOKEN": KEY.token(scope="default:write")}
    reader = {**here, "SLUICE_TOKEN": KEY.token(scope="default:read")}
    uid = json.loads(good("push", "looked", "x", "--json", **writer))["uid"]
    looks = [["queue", "list"], ["queue", "show", "looked"], ["browse", "looked"], ["get", uid],
             ["dlq", "list", "looked"], ["stats", "looked"], ["peek", "looked"],
             ["top", "--once", "--interval", "10ms", "--namespace", "default"]]
    for args in looks:
        done = run(*args, **reader)
        assert done.returncode == (3 if args[0] == "dlq" else 0), (args, done)  # 3: there are none
    for args in ["queue", "pause", "looked"], ["delete", uid, "--yes"], ["queue", "purge", "looked", "--yes"]:
        done = run(*args, **reader)
        assert done.returncode == 1 and "needs the scope default:admin" in done.stderr, done
    done = run("top", "--once", "--all", **reader)
    assert done.returncode == 1 and "needs the scope *:read" in done.stderr, done
    assert "looked" in good("top", "--once", "--all", "--interval", "10ms", **here,
                            SLUICE_TOKEN=KEY.token(scope="*:read"))


def test_work_hands_the_token_on_only_if_it_may(here, tmp_path):
    (tmp_path / "token").write_text(KEY.token(scope="default:*"))
    shown = ["--token-file", tmp_path / "token"]
    good("push", "handed", "x", "y", *shown, **here)
    out = good("work", "handed", "--max", "1", "--pass-token", *shown, "--",
               "sh", "-c", f"{SLUICE} stats handed >/dev/null && echo fine", **here)
    assert "fine" in out
    token = (tmp_path / "token").read_text()
    out = good("work", "handed", "--max", "1", "--", "env",
               **here, SLUICE_TOKEN=token, SLUICE_TOKEN_FILE=tmp_path / "token")
    assert "SLUICE_SERVER" in out and "SLUICE_TOKEN" not in out and token not in out


def test_a_refusal_says_what_to_do(here, tmp_path):
    done = run("push", "q", "x", **here)
    assert done.returncode == 1 and "set SLUICE_TOKEN or use --token-file" in done.stderr
    done = run("push", "q", "x", **here, SLUICE_TOKEN=KEY.token(scope="default:*", exp=1))
    assert done.returncode == 1 and "the token has expired" in done.stderr and "use another" in done.stderr
    done = run("push", "q", "x", **here, SLUICE_TOKEN=KEY.token(scope="default:read"))
    assert done.returncode == 1 and "needs the scope default:write" in done.stderr
    done = run("push", "q", "x", "--namespace", "n", **here, SLUICE_TOKEN=KEY.token(scope="default:*"))
    assert done.returncode == 1 and "needs the scope n:write" in done.stderr
    assert "the token does not allow it" in done.stderr
    done = run("work", "q", "--", "cat", **here, SLUICE_TOKEN=KEY.token(scope="default:read"))
    assert done.returncode == 1 and "needs the scope default:write" in done.stderr, "it does not try for ever"


@pytest.mark.parametrize("text, says", [
    ("", "invalid token: empty"), ("two words", "invalid token; expected one word"), ("a\nb", "invalid token; expected one word"),
    ("x" * 9000, "at most 8192 bytes"), ("t\u00f6ken", "invalid token; expected one word"),
])
def test_a_file_without_a_token_is_named_and_not_sent(here, tmp_path, text, says):
    (tmp_path / "file").write_text(text)
    done = run("push", "q", "x", "--token-file", tmp_path / "file", **here)
    assert done.returncode == 2 and says in done.stderr and str(tmp_path / "file") in done.stderr
    assert not text or text not in done.stderr
