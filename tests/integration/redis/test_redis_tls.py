"""TLS to Redis: both sides show a certificate, or no byte is sent."""
import re
import threading

import pytest

from certs import Certs
from redis import Cluster, Redis, free_port
from served import Refused, Server, texts, until


@pytest.fixture(scope="module")
def certs(tmp_path_factory):
    certs = Certs(tmp_path_factory.mktemp("certs"))
    certs.authority("other-ca")
    certs.make("redis", "IP:127.0.0.1", "DNS:localhost")
    certs.make("elsewhere", "DNS:redis.example")
    certs.make("second", "IP:127.0.0.1", ca="other-ca")
    certs.make("sluiced", "DNS:sluiced")
    certs.make("stranger", "DNS:stranger", ca="other-ca")
    return certs


def shows(certs, name, ca="ca"):
    """Options of a Redis that has this certificate and wants to see one of that CA."""
    return ("--tls-port", str(free_port()), "--tls-cert-file", certs[f"{name}.pem"],
            "--tls-key-file", certs[f"{name}.key"], "--tls-ca-cert-file", certs[f"{ca}.pem"])


@pytest.fixture(scope="module")
def redis(certs, tmp_path_factory):
    with Redis(tmp_path_factory.mktemp("redis"), *shows(certs, "redis")) as redis:
        yield redis


def tls(certs, redis, *, ca="ca", mine="sluiced", host="127.0.0.1", **more):
    options = {"redis-address": f"{host}:{redis.tls_port}", "redis-tls-ca": certs[f"{ca}.pem"]}
    if mine:
        options |= {"redis-tls-cert": certs[f"{mine}.pem"], "redis-tls-key": certs[f"{mine}.key"]}
    options |= more
    return ["--redis-tls-enabled", *(w for k, v in options.items() for w in (f"--{k}", v))]


def serves(folder, *options):
    with Server(folder, *options, engine="redis") as server:
        server.enqueue({"text": "x" * 300000})
        message = server.take()
        server.ack(message)
        return texts([message]) == ["x" * 300000] and server.get("/readyz").status == 200


def refused(folder, *options, timeout="20s"):
    with pytest.raises(Refused) as why:
        Server(folder, *options, "--redis-timeout", timeout, engine="redis")
    return str(why.value).splitlines()[-1]


def test_both_sides_show_their_certificates(certs, redis, tmp_path):
    """SH-87: mutual TLS"""
    assert serves(tmp_path, *tls(certs, redis))
    assert serves(tmp_path, *tls(certs, redis, host="localhost"))


def test_a_server_that_is_not_trusted_is_refused_with_its_address(certs, redis, tmp_path):
    """SH-87: wrong CA, and no certificate or one that the server does not trust"""
    said = refused(tmp_path, *tls(certs, redis, ca="other-ca"))
    assert f"127.0.0.1:{redis.tls_port}" in said and "certificate" in said
    for mine, reason in (None, "certificate required"), ("stranger", "unknown ca"):
        said = refused(tmp_path, *tls(certs, redis, mine=mine))
        assert f"127.0.0.1:{redis.tls_port}" in said and reason in said


def test_each_server_has_a_certificate_of_its_own(certs, redis, tmp_path):
    """SH-87: what one of them trusts says nothing about another."""
    with Redis(tmp_path / "r", *shows(certs, "second", ca="other-ca")) as second:
        assert serves(tmp_path, *tls(certs, second, ca="other-ca", mine="stranger"))
        assert "127.0.0.1" in refused(tmp_path, *tls(certs, second))
        assert "127.0.0.1" in refused(tmp_path, *tls(certs, redis, ca="other-ca", mine="stranger"))


def test_each_shard_has_a_certificate_of_its_own(certs, redis, tmp_path):
    """SH-87, SH-88: per shard"""
    def shard(store, ca, mine):
        return (f"{{address: '127.0.0.1:{store.tls_port}', tlsEnabled: true, tlsCAFile: {certs[ca + '.pem']}, "
                f"tlsCertFile: {certs[mine + '.pem']}, tlsKeyFile: {certs[mine + '.key']}, "
                f"username: default, keyPrefix: shards}}\n")

    with Redis(tmp_path / "r", *shows(certs, "second", ca="other-ca")) as second:
        file = tmp_path / "sluice.yaml"
        for fine in True, False:
            file.write_text(
                "sharding:\n  enabled: true\n  defaultShard: one\n  commandMappings: {far: two}\n"
                f"redis:\n  shards:\n    one: {shard(redis, 'ca', 'sluiced')}"
                f"    two: {shard(second, 'other-ca' if fine else 'ca', 'stranger')}")
            if fine:
                with Server(tmp_path / "d", "--config", str(file), engine="memory") as server:
                    server.enqueue({"text": "x"}, {"text": "y", "topic": "far"})
                assert "shards:" in redis.command("KEYS", "shards:*mail*")
                assert "shards:" in second.command("KEYS", "shards:*far*")
            else:
                assert f"127.0.0.1:{second.tls_port}" in refused(tmp_path / "d", "--config", str(file))


def test_the_name_of_the_server_is_checked(certs, tmp_path):
    with Redis(tmp_path / "r", *shows(certs, "elsewhere")) as redis:
        assert "mismatch" in refused(tmp_path, *tls(certs, redis))
        assert "mismatch" in refused(tmp_path, *tls(certs, redis, host="localhost"))
        assert serves(tmp_path, *tls(certs, redis, **{"redis-tls-name": "redis.example"}))


def test_a_server_without_tls_is_refused(certs, redis, tmp_path):
    plain = tls(certs, redis, **{"redis-address": redis.address})
    assert redis.address in refused(tmp_path, *plain, timeout="500ms")  # it waits for the end of a line
    said = refused(tmp_path, "--redis-address", f"127.0.0.1:{redis.tls_port}")
    assert f"127.0.0.1:{redis.tls_port}" in said


def test_files_that_are_of_no_use_are_named(certs, redis, tmp_path):
    for option, file in ("redis-tls-ca", "no-ca.pem"), ("redis-tls-cert", "no.pem"), ("redis-tls-key", "no.key"):
        assert certs[file] in refused(tmp_path, *tls(certs, redis, **{option: certs[file]}))
    assert "expected both" in refused(tmp_path, *tls(certs, redis, mine=None), "--redis-tls-cert", certs["sluiced.pem"])
    assert "TLS" in refused(tmp_path, *tls(certs, redis, **{"redis-address": "unix:/x"}))


def test_a_cluster_speaks_tls(certs, tmp_path):
    with Cluster(tmp_path / "cluster", "--appendonly", "no", "--tls-cluster", "yes",
                 each=lambda: shows(certs, "redis")) as cluster:
        with Server(tmp_path, *tls(certs, cluster.nodes[0]), engine="redis") as server:
            server.enqueue(*({"text": "x", "topic": f"t{i}"} for i in range(12)))
            assert all(server.take(topic=f"t{i}") for i in range(12))


def test_a_consumer_that_waits_is_woken_over_tls(certs, redis, tmp_path):
    with Server(tmp_path / "a", *tls(certs, redis), engine="redis") as one, \
            Server(tmp_path / "b", *tls(certs, redis), "--node-id", "1", engine="redis") as two:
        got = []
        waits = threading.Thread(target=lambda: got.extend(two.dequeue(topic="woken", wait="60s")))
        waits.start()
        until(lambda: re.search(r"^sluice_waiting\S* [1-9]", two.get("/metrics").text, re.M))
        one.enqueue({"text": "now", "topic": "woken"})
        waits.join(60)
        assert texts(got) == ["now"]
