#include "conf/options.h"

#include "conf/show.h"

#include <assert.h>

static const char *const levels[] = { "debug", "info", "warn", "error", "off", NULL };
static const char *const metrics[] = { "local", "open", "token", NULL };
static const char *const switches[] = { "off", "on", NULL };
static const char *const formats[] = { "logfmt", "json", NULL };
static const char *const client_auths[] = { "off", "optional", "required", NULL };
const char *const conf_places[] = { "queue", "namespace", NULL };
static const char *const tls_versions[] = { "1.2", "1.3", NULL };

#define AT(member) offsetof(struct conf, member)

/* clang-format off */
static const struct option options[] = {
	{ .key = "config", .kind = &text_kind, .offset = AT(config), .standard = "", .no_file = true,
	  .value = "FILE", .doc = "YAML file with settings" },
	{ .key = "data", .kind = &text_kind, .offset = AT(data), .standard = "./data",
	  .value = "DIR", .doc = "folder of all files; the server creates it if it is missing" },
	{ .key = "listen", .kind = &list_kind, .offset = AT(listen), .standard = "127.0.0.1:7171",
	  .value = "ADDRESS", .doc = "address to serve on: host:port (port 0: any free one), https://host:port, unix:PATH, unix:PATH?mode=0600, fd:N (a socket from the service manager), beanstalk://host:port (docs/beanstalkd.md), or peer://host:port and peers://host:port (for the other servers of a store); may be given again" },
	{ .key = "engine", .kind = &text_kind, .offset = AT(engine), .standard = "log",
	  .value = "", .doc = "" }, /* of the table of engines */
	{ .key = "sharding.enabled", .kind = &bool_kind, .offset = AT(sharding_enabled), .standard = "false", .reload = true,
	  .value = "", .doc = "map queues to shards; false: all queues live on sharding.defaultShard; docs/sharding.md" },
	{ .key = "sharding.supplier", .kind = &word_kind, .offset = AT(sharding_supplier), .standard = "static", .words = sharding_suppliers, .reload = true,
	  .value = "static|hash|ring|range", .doc = "how a queue's shard is chosen: by the tables of tenants and commands, by a hash, by a hash ring (another shard moves few queues), or by ranges of names" },
	{ .key = "sharding.defaultShard", .kind = &text_kind, .offset = AT(sharding_default), .standard = "default", .reload = true,
	  .value = "NAME", .doc = "shard of queues that no mapping names" },
	{ .key = "sharding.rangeBy", .kind = &word_kind, .offset = AT(sharding_range_by), .standard = "command", .words = sharding_range_by, .reload = true,
	  .value = "command|tenant", .doc = "supplier range: whether the ranges hold names of commands or tenants" },
	{ .key = "sharding.version", .kind = &count_kind, .offset = AT(sharding_version), .standard = "1", .max = UINT32_MAX, .reload = true,
	  .value = "N", .doc = "version of the mapping; raise it with every change" },
	{ .key = "sharding.reloadInterval", .kind = &time_kind, .offset = AT(sharding_interval), .standard = "0s", .max = 24 * SLU_HOUR, .reload = true,
	  .value = "TIME", .doc = "how often to check the file for changes and reload it; 0s: never" },
	{ .key = "sync", .kind = &sync_kind, .offset = AT(sync), .standard = "sync",
	  .value = "sync|interval=TIME|none", .doc = "when an answered change is on disk: before the answer, within TIME, or when the kernel writes it" },
	{ .key = "shards", .kind = &count_kind, .offset = AT(shards), .standard = "1", .min = 1, .max = 1024,
	  .value = "N", .doc = "independent logs, each with a thread; fixed once the folder has data; engine redis: connections" },
	{ .key = "threads", .kind = &count_kind, .offset = AT(threads), .standard = "1", .min = 1, .max = 64,
	  .value = "N", .doc = "threads that serve connections" },
	{ .key = "node.id", .kind = &count_kind, .offset = AT(node_id), .standard = "0", .min = 0, .max = 1023,
	  .value = "N", .doc = "part of every id; servers that share work need different numbers" },
	{ .key = "advertise", .kind = &text_kind, .offset = AT(advertise), .standard = "",
	  .value = "ADDRESS", .doc = "with --store: the address of this server for clients of other servers; empty: the address of the first listener" },
	{ .key = "beanstalk.namespace", .kind = &text_kind, .offset = AT(beanstalk_namespace), .standard = "default",
	  .value = "NAME", .doc = "with --listen beanstalk://: the namespace whose queues are the tubes" },
	{ .key = "beanstalk.max_job_size", .kind = &size_kind, .offset = AT(beanstalk_max_job), .standard = "65535", .min = 1, .max = 64 << 20,
	  .value = "SIZE", .doc = "with --listen beanstalk://: the largest job that put accepts" },
	{ .key = "beanstalk.max_attempts", .kind = &count_kind, .offset = AT(beanstalk_max_attempts), .standard = "65535", .max = 65535,
	  .value = "N", .doc = "with --listen beanstalk://: a job is buried after so many failures (timeouts and lost connections); 0: as the policy of its queue says" },
	{ .key = "codeq.path", .kind = &text_kind, .offset = AT(codeq_path), .standard = "/v1/codeq",
	  .value = "PATH", .doc = "the base path of the codeQ API; docs/codeq.md" },
	{ .key = "codeq.tokens", .kind = &bool_kind, .offset = AT(codeq_tokens), .standard = "false", .reload = true,
	  .value = "", .doc = "a token may be a producer's, a worker's or an admin's of codeQ, by its claims tid, eventTypes, role and its codeq: scopes; docs/codeq.md" },
	{ .key = "codeq.webhook_secret", .kind = &secret_kind, .offset = AT(codeq_webhook_secret), .standard = "",
	  .value = "TEXT", .doc = "signs the webhooks of codeQ: X-CodeQ-Signature; empty: they are not signed" },
	{ .key = "codeq.webhook_allow", .kind = &list_kind, .offset = AT(codeq_webhook_allow), .standard = "",
	  .value = "NETWORK", .doc = "loopback, link-local or private network that webhooks may go to, ADDRESS or ADDRESS/BITS; may be given again" },
	{ .key = "place", .kind = &word_kind, .offset = AT(place), .standard = "queue", .words = conf_places,
	  .value = "queue|namespace", .doc = "with --store: namespace puts all queues of a namespace on one shard, queue spreads them; fixed when the store is created; without this setting as the store has it" },
	{ .key = "store.lease", .kind = &time_kind, .offset = AT(store_lease), .standard = "5s", .min = 100 * SLU_MS, .max = SLU_HOUR,
	  .value = "TIME", .doc = "with --store: a server without a sign of life for this time is dead, and others take its shards; the same on all servers; stores behind HTTP: 15s" },
	{ .key = "store.settle", .kind = &time_kind, .offset = AT(store_settle), .standard = "30s", .min = 100 * SLU_MS, .max = SLU_HOUR,
	  .value = "TIME", .doc = "with --store: a server that has joined gets its share of the shards after this time" },
	{ .key = "start.wait", .kind = &time_kind, .offset = AT(start_wait), .standard = "30s", .max = 10 * SLU_MIN,
	  .value = "TIME", .doc = "how long a request may wait while the server starts; after that it gets 503 starting; 0: at once" },
	{ .key = "drain", .kind = &time_kind, .offset = AT(drain), .standard = "1s", .reload = true,
	  .value = "TIME", .doc = "when stopping: how long connected clients may still settle messages" },
	{ .key = "grace", .kind = &time_kind, .offset = AT(grace), .standard = "10s", .min = SLU_MS, .max = SLU_HOUR, .reload = true,
	  .value = "TIME", .doc = "after drain: how long running requests may take; after twice as long the server exits with code 3" },
	{ .key = "log.level", .kind = &word_kind, .offset = AT(log_level), .standard = "info", .words = levels, .reload = true,
	  .value = "debug|info|warn|error|off", .doc = "lowest level of log lines on stderr" },
	{ .key = "log.format", .kind = &word_kind, .offset = AT(log_format), .standard = "logfmt", .words = formats,
	  .value = "logfmt|json", .doc = "format of log lines" },
	{ .key = "limits.rate", .kind = &count_kind, .offset = AT(limits.rate), .standard = "0", .max = 1000000000, .reload = true,
	  .value = "N", .doc = "messages per second into a namespace; 0: no limit" },
	{ .key = "limits.burst", .kind = &count_kind, .offset = AT(limits.burst), .standard = "0", .max = 1000000000, .reload = true,
	  .value = "N", .doc = "messages at once into a namespace; 0: as many as limits.rate" },
	{ .key = "limits.queue_rate", .kind = &count_kind, .offset = AT(limits.queue_rate), .standard = "0", .max = 1000000000, .reload = true,
	  .value = "N", .doc = "messages per second into a queue whose policy has no max_rate; 0: no limit" },
	{ .key = "limits.queue_burst", .kind = &count_kind, .offset = AT(limits.queue_burst), .standard = "0", .max = 1000000000, .reload = true,
	  .value = "N", .doc = "messages at once into such a queue; 0: as many as limits.queue_rate" },
	{ .key = "limits.queue_depth", .kind = &count_kind, .offset = AT(limits.queue_depth), .standard = "0", .max = UINT32_MAX, .reload = true,
	  .value = "N", .doc = "messages in a queue whose policy has no max_depth, without dead letters; 0: no limit" },
	{ .key = "limits.batch", .kind = &count_kind, .offset = AT(limits.batch), .standard = "10000", .min = 1, .max = 10000, .reload = true,
	  .value = "N", .doc = "messages in one enqueue" },
	{ .key = "limits.payload", .kind = &size_kind, .offset = AT(limits.payload), .standard = "0", .max = 1 << 30, .reload = true,
	  .value = "BYTES", .doc = "bytes of one payload; 0: as many as fit into a request" },
	{ .key = "limits.waiting", .kind = &count_kind, .offset = AT(limits.waiting), .standard = "0", .max = UINT32_MAX, .reload = true,
	  .value = "N", .doc = "dequeues, peeks and results that wait, in total; 0: no limit" },
	{ .key = "limits.queue_waiting", .kind = &count_kind, .offset = AT(limits.queue_waiting), .standard = "0", .max = UINT32_MAX, .reload = true,
	  .value = "N", .doc = "dequeues or peeks that wait for one queue; 0: no limit" },
	{ .key = "limits.shares", .kind = &count_kind, .offset = AT(limits.shares), .standard = "100000", .max = UINT32_MAX, .reload = true,
	  .value = "N", .doc = "shares with messages on one shard, in all of its queues; 0: no limit" },
	{ .key = "limits.outbox", .kind = &count_kind, .offset = AT(limits.outbox), .standard = "10000", .min = 1, .max = UINT32_MAX, .reload = true,
	  .value = "N", .doc = "messages on their way from one shard to another" },
	{ .key = "limits.connections", .kind = &count_kind, .offset = AT(limits.connections), .standard = "50000", .min = 1, .max = 1000000, .reload = true,
	  .value = "N", .doc = "connections; 16 more are served only /healthz, /readyz and /metrics" },
	{ .key = "limits.memory", .kind = &size_kind, .offset = AT(limits.memory), .standard = "256M", .min = 1 << 20, .max = 1ull << 40, .reload = true,
	  .value = "BYTES", .doc = "memory for requests without an answer and answers that clients have not read" },
	{ .key = "limits.uploads", .kind = &count_kind, .offset = AT(limits.uploads), .standard = "1024", .max = 1000000, .reload = true,
	  .value = "N", .doc = "unfinished uploads of more than 64 KiB, in total; one namespace may have half of them; 0: no limit" },
	{ .key = "limits.upload_bytes", .kind = &size_kind, .offset = AT(limits.upload_bytes), .standard = "8G", .min = 1 << 20, .max = 1ull << 50, .reload = true,
	  .value = "BYTES", .doc = "bytes of the files of unfinished uploads, in total; one namespace may have half of them; an engine without files keeps uploads in memory, within limits.memory" },
	{ .key = "limits.index_memory", .kind = &size_kind, .offset = AT(limits.index_memory), .standard = "0", .max = 1ull << 50, .reload = true,
	  .value = "BYTES", .doc = "memory for the index of all shards (messages, keys, documents; engine memory: also payloads); above it the server refuses new work; 0: 70 % of the memory of the machine or cgroup" },
	{ .key = "limits.queues", .kind = &count_kind, .offset = AT(limits.queues), .standard = "1000000", .max = UINT32_MAX, .reload = true,
	  .value = "N", .doc = "queues in all namespaces; 0: no limit; engine redis: not checked" },
	{ .key = "limits.namespace_queues", .kind = &count_kind, .offset = AT(limits.namespace_queues), .standard = "100000", .max = UINT32_MAX, .reload = true,
	  .value = "N", .doc = "queues in one namespace; 0: no limit; engine redis: not checked" },
	{ .key = "limits.namespace_messages", .kind = &count_kind, .offset = AT(limits.namespace_messages), .standard = "0", .max = UINT32_MAX, .reload = true,
	  .value = "N", .doc = "messages in one namespace, in any state; 0: no limit; not with engine redis" },
	{ .key = "limits.namespace_bytes", .kind = &size_kind, .offset = AT(limits.namespace_bytes), .standard = "0", .max = 1ull << 50, .reload = true,
	  .value = "BYTES", .doc = "stored bytes of the messages in one namespace; 0: no limit; not with engine redis" },
	{ .key = "limits.quotas", .kind = &quota_kind, .offset = AT(limits.quotas), .standard = "", .max = 1000, .reload = true,
	  .value = "NAMESPACE:messages=N:bytes=BYTES", .doc = "the last two limits for one namespace, instead of the general ones; either part may be missing; may be given again" },
	{ .key = "queue.max_consumers", .kind = &count_kind, .offset = AT(max_consumers), .standard = "0", .max = 1000000, .reload = true,
	  .value = "N", .doc = "calls of /v1/queue/dequeue and subscribe that wait or stream, in total; 0: 64 for each processor, 128 to 4096" },
	{ .key = "queue.unsettled", .kind = &count_kind, .offset = AT(unsettled), .standard = "0", .max = 1000000, .reload = true,
	  .value = "N", .doc = "unsettled deliveries of one /v1/queue/subscribe; at least its page_size" },
	{ .key = "queues.idle", .kind = &time_kind, .offset = AT(queues_idle), .standard = "7d", .max = 100000 * SLU_HOUR, .reload = true,
	  .value = "TIME", .doc = "the server forgets a queue without messages and policy that was unused for this time; 0: never; engine redis: never" },
	{ .key = "hold.max", .kind = &time_kind, .offset = AT(hold_max), .standard = "15m", .min = SLU_SEC, .max = 100000 * SLU_HOUR, .reload = true,
	  .value = "TIME", .doc = "a hold of a queue, share or key lasts at most so long; a longer one is cut" },
	{ .key = "disk.warn", .kind = &count_kind, .offset = AT(disk_warn), .standard = "15", .max = 100, .reload = true,
	  .value = "PERCENT", .doc = "part of the disk of a shard that should be free: below, /readyz and the console warn; 0: never" },
	{ .key = "metrics.queues", .kind = &count_kind, .offset = AT(metric_queues), .standard = "1000", .max = 100000, .reload = true,
	  .value = "N", .doc = "queues with lines of their own in /metrics; the others are summed up as .other" },
	{ .key = "console", .kind = &word_kind, .offset = AT(console), .standard = "on", .words = switches, .reload = true,
	  .value = "on|off", .doc = "serve the web console at /console/; docs/console.md" },
	{ .key = "environment", .kind = &text_kind, .offset = AT(environment), .standard = "",
	  .value = "NAME", .doc = "a name that the web console shows on every page, with a colour: production, staging, test" },
	{ .key = "trace.url", .kind = &text_kind, .offset = AT(trace_url), .standard = "",
	  .value = "URL", .doc = "page of a trace in the system that keeps your traces, with {trace} for its id; the web console links to it" },
	{ .key = "stats.timeout", .kind = &time_kind, .offset = AT(stats_timeout), .standard = "2s", .min = SLU_MS, .max = 300 * SLU_SEC, .reload = true,
	  .value = "TIME", .doc = "how long stats, lists of queues, /metrics and /readyz wait for one of several shards; after that they answer without it" },
	{ .key = "projection.url", .kind = &secret_kind, .offset = AT(projection_url), .standard = "",
	  .value = "URL", .doc = "PostgreSQL database that gets a readable copy of the messages, postgres://HOST/DATABASE; docs/projection.md; not with engine redis" },
	{ .key = "projection.queues", .kind = &list_kind, .offset = AT(projection_queues), .standard = "",
	  .value = "NAMESPACE[/QUEUE]", .doc = "the copy has only these queues; without this setting all; may be given again" },
	{ .key = "projection.after", .kind = &time_kind, .offset = AT(projection_after), .standard = "1s", .max = SLU_HOUR,
	  .value = "TIME", .doc = "a message that ends within this time is never written to the copy; a later change is written after this time" },
	{ .key = "projection.changes", .kind = &count_kind, .offset = AT(projection_changes), .standard = "100000", .min = 1000, .max = 100000000,
	  .value = "N", .doc = "changed messages of a shard that may wait for the copy, 50 bytes each; beyond that the copy is rebuilt" },
	{ .key = "flush.batch", .kind = &count_kind, .offset = AT(flush_batch), .standard = "500", .min = 1, .max = 1000,
	  .value = "N", .doc = "messages in one transaction of the copy" },
	{ .key = "mask", .kind = &list_kind, .offset = AT(mask), .standard = "", .max = 64, .reload = true,
	  .value = "PATH", .doc = "a value of JSON bodies that callers who may only look get as ***: password, card.number, *.token (docs/security.md); may be given again" },
	{ .key = "audit.file", .kind = &text_kind, .offset = AT(audit_file), .standard = "",
	  .value = "FILE", .doc = "file that gets a JSON line for every change and every delivery: caller, action, shard and the reason for that shard; SIGHUP opens it again" },
	{ .key = "inboxes", .kind = &list_kind, .offset = AT(inboxes), .standard = "", .reload = true,
	  .value = "URL", .doc = "place whose messages the server takes, each once: postgres://HOST/DATABASE, file:///FOLDER, s3://BUCKET or azure://ACCOUNT/CONTAINER; may be given again; docs/inboxes.md" },
	{ .key = "inbox.settle", .kind = &time_kind, .offset = AT(inbox_settle), .standard = "2s", .max = SLU_HOUR, .reload = true,
	  .value = "TIME", .doc = "inbox of files: take a file that was written in place if it is unchanged for this long" },
	{ .key = "inbox.poll_interval", .kind = &time_kind, .offset = AT(inbox_poll_interval), .standard = "3s", .min = SLU_MS, .max = SLU_HOUR, .reload = true,
	  .value = "TIME", .doc = "how often to look at a folder without a watch, or at a bucket" },
	{ .key = "inbox.poll_jitter", .kind = &time_kind, .offset = AT(inbox_poll_jitter), .standard = "500ms", .max = SLU_HOUR, .reload = true,
	  .value = "TIME", .doc = "how much later such a look may be; 0s: never later" },
	{ .key = "inbox.poll_resilient", .kind = &time_kind, .offset = AT(inbox_poll_resilient), .standard = "5m", .max = 24 * SLU_HOUR, .reload = true,
	  .value = "TIME", .doc = "inbox of files: how often to look at a folder that is watched; 0s: never" },
	{ .key = "inbox.watch", .kind = &bool_kind, .offset = AT(inbox_watch), .standard = "true", .reload = true,
	  .value = "", .doc = "inbox of files: watch folders on local disks; false: only look" },
	{ .key = "insecure", .kind = &bool_kind, .offset = AT(insecure), .standard = "false",
	  .value = "", .doc = "allow addresses that other machines can reach without authentication" },
	{ .key = "auth.keys", .kind = &list_kind, .offset = AT(auth_keys), .standard = "", .reload = true,
	  .value = "[KID@]ALG:FILE", .doc = "file with a key to verify tokens; may be given again; HS256, HS384, HS512 (a secret), RS256, ES256, EdDSA (a public key as PEM)" },
	{ .key = "auth.jwks", .kind = &text_kind, .offset = AT(auth_jwks), .standard = "", .reload = true,
	  .value = "FILE", .doc = "JSON Web Key Set with more keys to verify tokens" },
	{ .key = "auth.secret", .kind = &secret_kind, .offset = AT(auth_secret), .standard = "", .reload = true,
	  .value = "TEXT", .doc = "one more key: a secret for HS256, at least 32 bytes" },
	{ .key = "auth.aws_keys", .kind = &text_kind, .offset = AT(auth_aws_keys), .standard = "", .reload = true,
	  .value = "FILE", .doc = "file with the access keys of clients of Amazon SQS, a line each: ACCESS_KEY SECRET SCOPES; docs/sqs.md" },
	{ .key = "auth.audience", .kind = &text_kind, .offset = AT(auth_audience), .standard = "", .reload = true,
	  .value = "TEXT", .doc = "required value of aud in a token" },
	{ .key = "auth.issuer", .kind = &text_kind, .offset = AT(auth_issuer), .standard = "", .reload = true,
	  .value = "TEXT", .doc = "required value of iss in a token" },
	{ .key = "auth.leeway", .kind = &time_kind, .offset = AT(auth_leeway), .standard = "10s", .max = 300 * SLU_SEC, .reload = true,
	  .value = "TIME", .doc = "tolerated clock difference: a token is valid this much earlier and later" },
	{ .key = "auth.max_age", .kind = &time_kind, .offset = AT(auth_max_age), .standard = "0", .max = 3650 * 24 * SLU_HOUR, .reload = true,
	  .value = "TIME", .doc = "longest lifetime of a token, from iat (or now, without iat) to exp; 0: any" },
	{ .key = "auth.hosts", .kind = &list_kind, .offset = AT(auth_hosts), .standard = "",
	  .value = "NAME", .doc = "allowed value of Host in a request without a token, besides localhost and the names in tls.cert; *: any; may be given again" },
	{ .key = "auth.metrics", .kind = &word_kind, .offset = AT(auth_metrics), .standard = "token", .words = metrics,
	  .value = "local|open|token", .doc = "which listeners serve /metrics without a token although other requests need one: those that only this machine can reach, all, or none" },
	{ .key = "auth.certificates", .kind = &text_kind, .offset = AT(auth_certificates), .standard = "", .reload = true,
	  .value = "FILE", .doc = "file with the scopes of clients by the name in their certificate, a line each: SCOPES NAME" },
	{ .key = "tls.cert", .kind = &text_kind, .offset = AT(tls_cert), .standard = "", .reload = true,
	  .value = "FILE", .doc = "PEM file for https:// and peers:// addresses: the server's certificate, then its chain" },
	{ .key = "tls.key", .kind = &text_kind, .offset = AT(tls_key), .standard = "", .reload = true,
	  .value = "FILE", .doc = "PEM file with the key of that certificate, without a password" },
	{ .key = "tls.client_ca", .kind = &text_kind, .offset = AT(tls_client_ca), .standard = "", .reload = true,
	  .value = "FILE", .doc = "PEM file with the authorities that may sign client certificates" },
	{ .key = "tls.peer_ca", .kind = &text_kind, .offset = AT(tls_peer_ca), .standard = "", .reload = true,
	  .value = "FILE", .doc = "PEM file with the authorities that may sign the certificates of the other servers of a store, for peers:// addresses; without it the secret of the store alone proves them" },
	{ .key = "tls.client_auth", .kind = &word_kind, .offset = AT(tls_client_auth), .standard = "off", .words = client_auths, .reload = true,
	  .value = "off|optional|required", .doc = "whether clients are asked for a certificate, and refused without one" },
	{ .key = "tls.min_version", .kind = &word_kind, .offset = AT(tls_min_version), .standard = "1.2", .words = tls_versions, .reload = true,
	  .value = "1.2|1.3", .doc = "oldest version of TLS to accept" },
};

static const struct option_action actions[] = {
	{ "--print-config", AT(print_config), "print every setting with its value and source, and exit" },
	{ "--json", AT(json), "with --print-config: print JSON" },
	{ "--check-config", AT(check_config), "check the settings, print all faults, and exit: 0 without faults, 2 with faults" },
	{ "--print-options-doc", AT(print_doc), "print docs/config.md, and exit" },
	{ "--help", AT(help), "print this, and exit" },
	{ "--version", AT(version), "print the version, and exit" },
	{ 0 },
};
/* clang-format on */

enum {
	N_OPTIONS = sizeof options / sizeof options[0]
};

/* "how messages are kept; log: in files on disk; ..." */
static void
describe_engines(struct conf *c)
{
	size_t n = (size_t)snprintf(c->engine_doc, sizeof c->engine_doc, "how messages are kept");

	(void)engine_names(c->engines, "|", c->engine_names, sizeof c->engine_names);
	for (const struct engine_ops *const *e = c->engines; *e && n < sizeof c->engine_doc; e++)
		n += (size_t)snprintf(c->engine_doc + n, sizeof c->engine_doc - n, "; %s: %s",
				      (*e)->name, (*e)->doc);
}

/* The rows of an engine, for the shard `default`. */
static void
add_engine(struct conf *c, unsigned at, const struct engine_options *own)
{
	assert(at < CONF_ENGINES && own->size <= CONF_ENGINE_VALUES);
	for (unsigned i = 0; i < own->n; i++) {
		struct option row = own->rows[i];

		if (!row.server_key)
			continue;
		row.key = row.server_key;
		row.standard = row.server_standard ? row.server_standard : row.standard;
		row.offset += offsetof(struct conf, engine_values) + at * (size_t)CONF_ENGINE_VALUES;
		assert(c->n_rows < OPTIONS_MAX);
		c->rows[c->n_rows++] = row;
	}
}

void
conf_rows(struct conf *c, const struct engine_ops *const *engines)
{
	*c = (struct conf){ .engines = engines };
	describe_engines(c);
	for (unsigned i = 0; i < N_OPTIONS; i++) {
		assert(c->n_rows < OPTIONS_MAX);
		c->rows[c->n_rows++] = options[i];
		if (options[i].offset != AT(engine))
			continue;
		c->rows[c->n_rows - 1].value = c->engine_names;
		c->rows[c->n_rows - 1].doc = c->engine_doc;
		for (unsigned e = 0; engines[e]; e++)
			if (engines[e]->options)
				add_engine(c, e, engines[e]->options);
	}
}

const void *
conf_engine_values(const struct conf *c, const struct engine_ops *engine)
{
	for (unsigned i = 0; c->engines[i]; i++)
		if (c->engines[i] == engine)
			return engine->options ? c->engine_values[i] : NULL;
	return NULL;
}

const char *
conf_engine_place(const struct conf *c, const struct engine_ops *engine)
{
	const void *const own = conf_engine_values(c, engine);
	const char *const named = own && engine->options->place ? engine->options->place(own) : NULL;

	return named ? named : c->data;
}

struct option_set
conf_set(struct conf *c)
{
	return (struct option_set){ c->rows, c->n_rows, c, c->origins };
}

static void
check_engine(const struct conf *c, struct conf_faults *faults)
{
	char names[CONF_ENGINE_TEXT];

	if (c->engine && !engine_find(c->engines, c->engine))
		faults_add(faults, "invalid engine \"%s\"; expected %s", c->engine,
			   engine_names(c->engines, ", ", names, sizeof names));
}

int
conf_load(struct conf *c, const struct engine_ops *const *engines, int argc, char **argv,
	  struct conf_faults *faults)
{
	struct option_set set;

	conf_rows(c, engines);
	set = conf_set(c);
	c->sharding = sharding_new(engines);
	if (!c->sharding) {
		faults_add(faults, "out of memory");
		return SLU_ENOMEM;
	}
	load_options(&(struct option_load){ &set, actions, c->sharding, faults }, argc, argv);
	check_engine(c, faults);
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
conf_help(const struct engine_ops *const *engines, FILE *out)
{
	struct conf none;
	struct option_set set;

	conf_rows(&none, engines);
	set = conf_set(&none);
	show_help(&set, actions, out);
}

void
conf_doc(const struct engine_ops *const *engines, FILE *out)
{
	struct conf none;
	struct option_set set;

	conf_rows(&none, engines);
	set = conf_set(&none);
	show_doc(&set, actions, out);
	sharding_doc(engines, out);
}

/* For callers that only read the set. */
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
