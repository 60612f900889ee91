/*
 * options.c - the settings that only the Redis engine has.
 */
#include "engine/redis/redis_private.h"

#include "base/option/option.h"

#define AT(member) offsetof(struct redis_conf, member)

/* clang-format off */
static const struct option rows[] = {
	{ .key = "address", .kind = &text_kind, .offset = AT(wire.address), .standard = "",
	  .server_key = "redis.address", .server_standard = "127.0.0.1:6379",
	  .value = "ADDRESS", .doc = "host:port or unix:PATH; several, with commas: servers of a cluster, or a master and its replicas" },
	{ .key = "username", .kind = &text_kind, .offset = AT(wire.username), .standard = "", .server_key = "redis.username",
	  .value = "NAME", .doc = "user for the login to Redis; empty: the default user" },
	{ .key = "password", .kind = &secret_kind, .offset = AT(wire.password), .standard = "", .server_key = "redis.password",
	  .value = "TEXT", .doc = "password for the login to Redis" },
	{ .key = "db", .kind = &count_kind, .offset = AT(wire.db), .standard = "0", .max = 1 << 20, .server_key = "redis.db",
	  .value = "N", .doc = "number of the Redis database" },
	{ .key = "keyPrefix", .kind = &text_kind, .offset = AT(prefix), .standard = "sluice", .server_key = "redis.prefix",
	  .value = "TEXT", .doc = "prefix of all Redis keys" },
	{ .key = "timeout", .kind = &time_kind, .offset = AT(wire.timeout), .standard = "5s", .min = SLU_MS, .max = 300 * SLU_SEC, .server_key = "redis.timeout",
	  .value = "TIME", .doc = "how long Redis may take to accept a connection, and to reply" },
	{ .key = "tlsEnabled", .kind = &bool_kind, .offset = AT(wire.tls), .standard = "false", .server_key = "redis.tls.enabled",
	  .value = "", .doc = "use TLS, and verify the certificate of Redis" },
	{ .key = "tlsCAFile", .kind = &text_kind, .offset = AT(wire.tls_ca), .standard = "", .server_key = "redis.tls.ca",
	  .value = "FILE", .doc = "PEM file with the authorities that may sign that certificate; empty: the authorities of the system" },
	{ .key = "tlsCertFile", .kind = &text_kind, .offset = AT(wire.tls_cert), .standard = "", .server_key = "redis.tls.cert",
	  .value = "FILE", .doc = "PEM file with the client certificate and its chain" },
	{ .key = "tlsKeyFile", .kind = &text_kind, .offset = AT(wire.tls_key), .standard = "", .server_key = "redis.tls.key",
	  .value = "FILE", .doc = "PEM file with the key of the client certificate" },
	{ .key = "tlsServerName", .kind = &text_kind, .offset = AT(wire.tls_name), .standard = "", .server_key = "redis.tls.name",
	  .value = "NAME", .doc = "name that the certificate of Redis must have; empty: the host of the address" },
};
/* clang-format on */

static void
check(const void *values, void (*fault)(void *arg, const char *why), void *arg)
{
	const struct rwire_conf *const w = &((const struct redis_conf *)values)->wire;

	if (!w->address)
		fault(arg, "missing address; expected host:port or unix:PATH");
	if (!w->tls && (w->tls_cert || w->tls_key || w->tls_ca || w->tls_name))
		fault(arg, "TLS settings without tlsEnabled: true");
	if (!w->tls_cert != !w->tls_key)
		fault(arg, "tlsCertFile and tlsKeyFile need each other");
}

static const char *
place(const void *values)
{
	return ((const struct redis_conf *)values)->wire.address;
}

const struct engine_options redis_options = {
	.rows = rows,
	.n = sizeof rows / sizeof rows[0],
	.size = sizeof(struct redis_conf),
	.check = check,
	.try = redis_check,
	.place = place,
};
