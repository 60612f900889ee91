#include "conf/options.h"

#include "conf/show.h"

#include <assert.h>

static const char *const levels[] = { "debug", "info", "warn", "error", "off", NULL };
static const char *const metrics[] = { "local", "open", "token", NULL };
static const char *const formats[] = { "logfmt", "json", NULL };
static const char *const client_auths[] = { "off", "optional", "required", NULL };
static const char *const tls_versions[] = { "1.2", "1.3", NULL };

#define AT(member) offsetof(struct conf, member)

/* clang-format off */
static const struct option options[] = {
	{ .key = "config", .kind = &text_kind, .offset = AT(config), .standard = "", .no_file = true,
	  .value = "FILE", .doc = "YAML file with settings" },
	{ .key = "data", .kind = &text_kind, .offset = AT(data), .standard = "./data",
	  .value = "DIR", .doc = "folder that holds everything; made if it is not there" },
	{ .key = "listen", .kind = &list_kind, .offset = AT(listen), .standard = "127.0.0.1:7171",
	  .value = "ADDRESS", .doc = "host:port, https://host:port, unix:PATH, unix:PATH?mode=0600 or fd:N (a socket passed by the service manager) to serve on; may be given again; port 0 is any free one" },
	{ .key = "engine", .kind = &text_kind, .offset = AT(engine), .standard = "log",
	  .value = "log|memory|redis", .doc = "how messages are kept: in files of its own, in memory that ends with the process, or in a Redis server" },
	{ .key = "redis.address", .kind = &text_kind, .offset = AT(redis_address), .standard = "127.0.0.1:6379",
	  .value = "ADDRESS", .doc = "engine redis: host:port, or unix:PATH; several, with commas, are servers of a cluster, or a master and its replicas" },
	{ .key = "redis.username", .kind = &text_kind, .offset = AT(redis_username), .standard = "",
	  .value = "NAME", .doc = "who this server is there; empty: the default user" },
	{ .key = "redis.password", .kind = &secret_kind, .offset = AT(redis_password), .standard = "",
	  .value = "TEXT", .doc = "what that server asks for" },
	{ .key = "redis.db", .kind = &count_kind, .offset = AT(redis_db), .standard = "0", .max = 1 << 20,
	  .value = "N", .doc = "which of its databases" },
	{ .key = "redis.prefix", .kind = &text_kind, .offset = AT(redis_prefix), .standard = "sluice",
	  .value = "TEXT", .doc = "what its keys begin with" },
	{ .key = "redis.timeout", .kind = &time_kind, .offset = AT(redis_timeout), .standard = "5s", .min = SLU_MS, .max = 300 * SLU_SEC,
	  .value = "TIME", .doc = "how long it may take to connect, and to answer" },
	{ .key = "redis.tls.enabled", .kind = &bool_kind, .offset = AT(redis_tls), .standard = "false",
	  .value = "", .doc = "speak TLS to it, and check its certificate" },
	{ .key = "redis.tls.ca", .kind = &text_kind, .offset = AT(redis_tls_ca), .standard = "",
	  .value = "FILE", .doc = "PEM file of the authorities that it is checked against; empty: those of the system" },
	{ .key = "redis.tls.cert", .kind = &text_kind, .offset = AT(redis_tls_cert), .standard = "",
	  .value = "FILE", .doc = "PEM file: the certificate to show, with its chain" },
	{ .key = "redis.tls.key", .kind = &text_kind, .offset = AT(redis_tls_key), .standard = "",
	  .value = "FILE", .doc = "PEM file: the key of that certificate" },
	{ .key = "redis.tls.name", .kind = &text_kind, .offset = AT(redis_tls_name), .standard = "",
	  .value = "NAME", .doc = "the name that its certificate must have; empty: the host of redis.address" },
	{ .key = "sharding.enabled", .kind = &bool_kind, .offset = AT(sharding_enabled), .standard = "false", .reload = true,
	  .value = "", .doc = "queues live where the mappings say; else all on sharding.defaultShard; docs/sharding.md" },
	{ .key = "sharding.supplier", .kind = &word_kind, .offset = AT(sharding_supplier), .standard = "static", .words = sharding_suppliers, .reload = true,
	  .value = "static|hash|ring|range", .doc = "who chooses: the tables of tenants and commands, a hash, a hash that moves few queues when there is one shard more, or the alphabet" },
	{ .key = "sharding.defaultShard", .kind = &text_kind, .offset = AT(sharding_default), .standard = "default", .reload = true,
	  .value = "NAME", .doc = "where queues live that no table has" },
	{ .key = "sharding.rangeBy", .kind = &word_kind, .offset = AT(sharding_range_by), .standard = "command", .words = sharding_range_by, .reload = true,
	  .value = "command|tenant", .doc = "supplier range: whose names the ranges are of" },
	{ .key = "sharding.version", .kind = &count_kind, .offset = AT(sharding_version), .standard = "1", .max = UINT32_MAX, .reload = true,
	  .value = "N", .doc = "of the mapping: higher whenever that changes" },
	{ .key = "sharding.reloadInterval", .kind = &time_kind, .offset = AT(sharding_interval), .standard = "0s", .max = 24 * SLU_HOUR, .reload = true,
	  .value = "TIME", .doc = "look so often whether the file has changed, and reload it then; 0s: never" },
	{ .key = "sync", .kind = &sync_kind, .offset = AT(sync), .standard = "sync",
	  .value = "sync|interval=TIME|none", .doc = "when an answer is on disk: before it is given, within TIME, or when the kernel likes" },
	{ .key = "shards", .kind = &count_kind, .offset = AT(shards), .standard = "1", .min = 1, .max = 1024,
	  .value = "N", .doc = "independent logs, each with a thread, not to be changed for a folder that has data; engine redis: connections" },
	{ .key = "threads", .kind = &count_kind, .offset = AT(threads), .standard = "1", .min = 1, .max = 64,
	  .value = "N", .doc = "threads that serve connections" },
	{ .key = "node.id", .kind = &count_kind, .offset = AT(node_id), .standard = "0", .min = 0, .max = 1023,
	  .value = "N", .doc = "part of every id: no two servers that share work may have the same" },
	{ .key = "start.wait", .kind = &time_kind, .offset = AT(start_wait), .standard = "30s", .max = 10 * SLU_MIN,
	  .value = "TIME", .doc = "how long a request may wait while the server starts; then it is answered 503 starting; 0: at once" },
	{ .key = "drain", .kind = &time_kind, .offset = AT(drain), .standard = "1s", .reload = true,
	  .value = "TIME", .doc = "when stopping: how long connected clients may still settle what they hold" },
	{ .key = "grace", .kind = &time_kind, .offset = AT(grace), .standard = "10s", .min = SLU_MS, .max = SLU_HOUR, .reload = true,
	  .value = "TIME", .doc = "after that: how long requests that run may take; after twice as long the server exits without them, code 3" },
	{ .key = "log.level", .kind = &word_kind, .offset = AT(log_level), .standard = "info", .words = levels, .reload = true,
	  .value = "debug|info|warn|error|off", .doc = "what is written to stderr" },
	{ .key = "log.format", .kind = &word_kind, .offset = AT(log_format), .standard = "logfmt", .words = formats,
	  .value = "logfmt|json", .doc = "how it is written" },
	{ .key = "limits.rate", .kind = &count_kind, .offset = AT(limits.rate), .standard = "0", .max = 1000000000, .reload = true,
	  .value = "N", .doc = "messages a second into a namespace; 0: no limit" },
	{ .key = "limits.burst", .kind = &count_kind, .offset = AT(limits.burst), .standard = "0", .max = 1000000000, .reload = true,
	  .value = "N", .doc = "of them at once; 0: as many as a second brings" },
	{ .key = "limits.queue_rate", .kind = &count_kind, .offset = AT(limits.queue_rate), .standard = "0", .max = 1000000000, .reload = true,
	  .value = "N", .doc = "messages a second into a queue whose policy has no max_rate; 0: no limit" },
	{ .key = "limits.queue_burst", .kind = &count_kind, .offset = AT(limits.queue_burst), .standard = "0", .max = 1000000000, .reload = true,
	  .value = "N", .doc = "of them at once; 0: as many as a second brings" },
	{ .key = "limits.queue_depth", .kind = &count_kind, .offset = AT(limits.queue_depth), .standard = "0", .max = UINT32_MAX, .reload = true,
	  .value = "N", .doc = "messages in a queue whose policy has no max_depth, dead letters aside; 0: no limit" },
	{ .key = "limits.batch", .kind = &count_kind, .offset = AT(limits.batch), .standard = "10000", .min = 1, .max = 10000, .reload = true,
	  .value = "N", .doc = "messages of one enqueue" },
	{ .key = "limits.payload", .kind = &size_kind, .offset = AT(limits.payload), .standard = "0", .max = 1 << 30, .reload = true,
	  .value = "BYTES", .doc = "payload of one message; 0: what fits into a request" },
	{ .key = "limits.waiting", .kind = &count_kind, .offset = AT(limits.waiting), .standard = "0", .max = UINT32_MAX, .reload = true,
	  .value = "N", .doc = "dequeues, peeks and results that wait, in all; 0: no limit" },
	{ .key = "limits.queue_waiting", .kind = &count_kind, .offset = AT(limits.queue_waiting), .standard = "0", .max = UINT32_MAX, .reload = true,
	  .value = "N", .doc = "dequeues or peeks that wait for one queue; 0: no limit" },
	{ .key = "limits.connections", .kind = &count_kind, .offset = AT(limits.connections), .standard = "50000", .min = 1, .max = 1000000, .reload = true,
	  .value = "N", .doc = "connections; beyond, 16 more are served /healthz, /readyz and /metrics alone" },
	{ .key = "limits.memory", .kind = &size_kind, .offset = AT(limits.memory), .standard = "256M", .min = 1 << 20, .max = 1ull << 40, .reload = true,
	  .value = "BYTES", .doc = "bodies of requests that are not answered yet, and answers that are not read yet" },
	{ .key = "limits.uploads", .kind = &count_kind, .offset = AT(limits.uploads), .standard = "1024", .max = 1000000, .reload = true,
	  .value = "N", .doc = "unfinished uploads of more than 64 KiB, in all; a namespace has half of them; 0: no limit" },
	{ .key = "limits.upload_bytes", .kind = &size_kind, .offset = AT(limits.upload_bytes), .standard = "8G", .min = 1 << 20, .max = 1ull << 50, .reload = true,
	  .value = "BYTES", .doc = "files of unfinished uploads, in all; a namespace has half of them; an engine without files keeps uploads in memory, where limits.memory bounds them" },
	{ .key = "limits.index_memory", .kind = &size_kind, .offset = AT(limits.index_memory), .standard = "0", .max = 1ull << 50, .reload = true,
	  .value = "BYTES", .doc = "memory of the index of all shards: messages, keys and documents; engine memory: payloads, too; beyond, new work is refused; 0: 70 % of what the machine or the cgroup has" },
	{ .key = "limits.queues", .kind = &count_kind, .offset = AT(limits.queues), .standard = "1000000", .max = UINT32_MAX, .reload = true,
	  .value = "N", .doc = "queues of all namespaces; 0: no limit; not of engine redis" },
	{ .key = "limits.namespace_queues", .kind = &count_kind, .offset = AT(limits.namespace_queues), .standard = "100000", .max = UINT32_MAX, .reload = true,
	  .value = "N", .doc = "queues of one namespace; 0: no limit; not of engine redis" },
	{ .key = "limits.namespace_messages", .kind = &count_kind, .offset = AT(limits.namespace_messages), .standard = "0", .max = UINT32_MAX, .reload = true,
	  .value = "N", .doc = "messages that a namespace holds, in any state; 0: no limit; not for engine redis" },
	{ .key = "limits.namespace_bytes", .kind = &size_kind, .offset = AT(limits.namespace_bytes), .standard = "0", .max = 1ull << 50, .reload = true,
	  .value = "BYTES", .doc = "bytes of the messages that a namespace holds, as they are stored; 0: no limit; not for engine redis" },
	{ .key = "limits.quotas", .kind = &quota_kind, .offset = AT(limits.quotas), .standard = "", .max = 1000, .reload = true,
	  .value = "NAMESPACE:messages=N:bytes=BYTES", .doc = "the same two for one namespace, before what holds for all; either may be left out; may be given again" },
	{ .key = "queue.max_consumers", .kind = &count_kind, .offset = AT(max_consumers), .standard = "0", .max = 1000000, .reload = true,
	  .value = "N", .doc = "calls of /v1/queue/dequeue and subscribe that wait or stream, in all; 0: 64 for each processor, 128 to 4096" },
	{ .key = "queue.unsettled", .kind = &count_kind, .offset = AT(unsettled), .standard = "0", .max = 1000000, .reload = true,
	  .value = "N", .doc = "deliveries that one /v1/queue/subscribe may have before they are settled; never fewer than its page_size" },
	{ .key = "queues.idle", .kind = &time_kind, .offset = AT(queues_idle), .standard = "7d", .max = 100000 * SLU_HOUR, .reload = true,
	  .value = "TIME", .doc = "a queue without messages and policy, that nobody has used for so long, is forgotten; 0: never; engine redis: it is not" },
	{ .key = "metrics.queues", .kind = &count_kind, .offset = AT(metric_queues), .standard = "1000", .max = 100000, .reload = true,
	  .value = "N", .doc = "queues with lines of their own in /metrics; the others are added up as .other" },
	{ .key = "stats.timeout", .kind = &time_kind, .offset = AT(stats_timeout), .standard = "2s", .min = SLU_MS, .max = 300 * SLU_SEC, .reload = true,
	  .value = "TIME", .doc = "how long stats, lists of queues, /metrics and /readyz wait for a shard where there are several; then they tell what the others say" },
	{ .key = "audit.file", .kind = &text_kind, .offset = AT(audit_file), .standard = "",
	  .value = "FILE", .doc = "a line of JSON for everything that is changed or handed out: who, what, which shard and why that; opened again on SIGHUP" },
	{ .key = "insecure", .kind = &bool_kind, .offset = AT(insecure), .standard = "false",
	  .value = "", .doc = "allow addresses that other machines can reach though nobody has to say who he is" },
	{ .key = "auth.keys", .kind = &list_kind, .offset = AT(auth_keys), .standard = "", .reload = true,
	  .value = "[KID@]ALG:FILE", .doc = "key that tokens are checked with, in a file of its own; may be given again; HS256, HS384, HS512 (a secret), RS256, ES256, EdDSA (a public key as PEM)" },
	{ .key = "auth.jwks", .kind = &text_kind, .offset = AT(auth_jwks), .standard = "", .reload = true,
	  .value = "FILE", .doc = "JSON Web Key Set with more such keys" },
	{ .key = "auth.secret", .kind = &secret_kind, .offset = AT(auth_secret), .standard = "", .reload = true,
	  .value = "TEXT", .doc = "one more key: a secret for HS256, 32 bytes at least" },
	{ .key = "auth.audience", .kind = &text_kind, .offset = AT(auth_audience), .standard = "", .reload = true,
	  .value = "TEXT", .doc = "what a token must have in aud" },
	{ .key = "auth.issuer", .kind = &text_kind, .offset = AT(auth_issuer), .standard = "", .reload = true,
	  .value = "TEXT", .doc = "what a token must have in iss" },
	{ .key = "auth.leeway", .kind = &time_kind, .offset = AT(auth_leeway), .standard = "10s", .max = 300 * SLU_SEC, .reload = true,
	  .value = "TIME", .doc = "how far clocks may differ: added to the end of a token, and to its beginning" },
	{ .key = "auth.max_age", .kind = &time_kind, .offset = AT(auth_max_age), .standard = "0", .max = 3650 * 24 * SLU_HOUR, .reload = true,
	  .value = "TIME", .doc = "the longest lifetime of a token, from iat (or from now, if it has none) to exp; 0: any" },
	{ .key = "auth.hosts", .kind = &list_kind, .offset = AT(auth_hosts), .standard = "",
	  .value = "NAME", .doc = "what a Host field may say, beside localhost and the names in tls.cert, in a request without a token; * is anything; may be given again" },
	{ .key = "auth.metrics", .kind = &word_kind, .offset = AT(auth_metrics), .standard = "token", .words = metrics,
	  .value = "local|open|token", .doc = "where /metrics needs no token though other requests do: where only this machine reaches, everywhere, or nowhere" },
	{ .key = "auth.certificates", .kind = &text_kind, .offset = AT(auth_certificates), .standard = "", .reload = true,
	  .value = "FILE", .doc = "what clients may do by the name in their certificate, a line each: SCOPES NAME" },
	{ .key = "tls.cert", .kind = &text_kind, .offset = AT(tls_cert), .standard = "", .reload = true,
	  .value = "FILE", .doc = "certificate for https:// addresses, PEM: the server's first, then the chain" },
	{ .key = "tls.key", .kind = &text_kind, .offset = AT(tls_key), .standard = "", .reload = true,
	  .value = "FILE", .doc = "its key, PEM, without a password" },
	{ .key = "tls.client_ca", .kind = &text_kind, .offset = AT(tls_client_ca), .standard = "", .reload = true,
	  .value = "FILE", .doc = "who may have signed the certificates of clients, PEM" },
	{ .key = "tls.client_auth", .kind = &word_kind, .offset = AT(tls_client_auth), .standard = "off", .words = client_auths, .reload = true,
	  .value = "off|optional|required", .doc = "whether clients are asked for a certificate, and refused without" },
	{ .key = "tls.min_version", .kind = &word_kind, .offset = AT(tls_min_version), .standard = "1.2", .words = tls_versions, .reload = true,
	  .value = "1.2|1.3", .doc = "the oldest version of TLS that is spoken" },
};

static const struct option_action actions[] = {
	{ "--print-config", AT(print_config), "print every setting as it is and where it came from, and exit" },
	{ "--json", AT(json), "with --print-config: as JSON" },
	{ "--check-config", AT(check_config), "say what is wrong with the settings, and exit: 0 nothing, 2 something" },
	{ "--print-options-doc", AT(print_doc), "print docs/config.md, and exit" },
	{ "--help", AT(help), "print this, and exit" },
	{ "--version", AT(version), "print the version, and exit" },
	{ 0 },
};
/* clang-format on */

enum {
	N_OPTIONS = sizeof options / sizeof options[0]
};

_Static_assert(N_OPTIONS <= (int)OPTIONS_MAX, "OPTIONS_MAX in conf/load.h");

struct option_set
conf_set(struct conf *c)
{
	return (struct option_set){ options, N_OPTIONS, c, c->origins };
}

int
conf_load(struct conf *c, int argc, char **argv, struct conf_faults *faults)
{
	struct option_set set = conf_set(c);

	*c = (struct conf){ .sharding = sharding_new() };
	if (!c->sharding) {
		faults_add(faults, "out of memory");
		return SLU_ENOMEM;
	}
	load_options(&(struct load){ &set, actions, c->sharding, faults }, argc, argv);
	sharding_check(c, faults);
	return faults_any(faults) ? SLU_EINVAL : 0;
}

void
conf_release(struct conf *c)
{
	struct option_set set = conf_set(c);

	option_set_release(&set);
	sharding_unref(c->sharding);
	c->sharding = NULL;
}

void
conf_help(FILE *out)
{
	struct conf none = { 0 };
	const struct option_set set = conf_set(&none);

	show_help(&set, actions, out);
}

void
conf_doc(FILE *out)
{
	struct conf none = { 0 };
	const struct option_set set = conf_set(&none);

	show_doc(&set, actions, out);
}

/* The set is only read by those who show it. */
static struct option_set
set_of(const struct conf *c)
{
	return conf_set((struct conf *)c);
}

const char *
conf_origin(const struct conf *c, const char *key)
{
	const struct option_set set = set_of(c);
	const unsigned row = option_find(&set, slice_of(key));

	assert(row < set.n);
	return set.origins[row];
}

void
conf_print(const struct conf *c, FILE *out)
{
	const struct option_set set = set_of(c);

	show_values(&set, out);
	sharding_print(c->sharding, out);
}

void
conf_json(const struct conf *c, struct buf *out)
{
	const struct option_set set = set_of(c);

	show_json(&set, out);
}

const char *
conf_sync_text(const struct conf *c, char out[static 64])
{
	struct buf text;

	buf_init(&text, 63);
	sync_kind.show(NULL, &c->sync, &text);
	(void)snprintf(out, 64, "%s", buf_str(&text)); /* always fits */
	buf_release(&text);
	return out;
}
