/*
 * options.h - the settings of sluiced: one row each.
 *
 *      { .key = "log.level", .kind = &word_kind, .offset = AT(log_level),
 *        .standard = "info", .reload = true, ... }
 *
 * A row gives the key of the YAML file, the flag --log-level, the variable
 * SLUICE_LOG_LEVEL, the default, the line of --help, of --print-config and of
 * docs/config.md, and whether a running server takes a new value (conf/reload.h). To add
 * a setting, add a member here and a row in options.c, and test its effect; the kinds
 * are in base/option/option.h. An engine's settings are rows of the engine (engine/engine.h).
 *
 * A flag goes before the variable, the variable before the file, the file before the
 * default (conf/load.h).
 */
#ifndef CONF_OPTIONS_H
#define CONF_OPTIONS_H

#include "conf/faults.h"
#include "conf/load.h"
#include "conf/sharding.h"

#include <sluice/err.h>
#include <sluice/log.h>

#include <stddef.h>
#include <stdio.h>

enum {
	CONF_LIST_MAX = 16,       /* unless its row says more */
	CONF_ENGINES = 16,        /* rows of the table of engines */
	CONF_ENGINE_VALUES = 256, /* bytes of the values of an engine's rows */
	CONF_ENGINE_TEXT = 256,   /* bytes of the names of all engines */
	CONF_JSON_MAX = 1024 * 1024
};

/* Values that are given several times, or with commas. */
struct conf_list {
	char **items;
	unsigned n;
};

struct conf_sync {
	enum conf_sync_mode {
		CONF_SYNC_ALWAYS,
		CONF_SYNC_INTERVAL,
		CONF_SYNC_NONE
	} mode;
	slu_time interval; /* CONF_SYNC_INTERVAL */
};

extern const struct option_kind list_kind;  /* struct conf_list, of max or CONF_LIST_MAX items */
extern const struct option_kind quota_kind; /* the same, of conf/quotas.h */
extern const struct option_kind sync_kind;  /* struct conf_sync */

/* Client certificates; as enum tls_client_auth of net/tls_context.h. */
enum conf_client_auth {
	CONF_AUTH_OFF,
	CONF_AUTH_OPTIONAL,
	CONF_AUTH_REQUIRED
};

enum conf_tls_version {
	CONF_TLS_1_2,
	CONF_TLS_1_3
};

/* 0: no limit, where the row allows 0. */
struct conf_limits {
	uint32_t rate, burst; /* per namespace */
	uint32_t queue_rate, queue_burst, queue_depth;
	uint32_t batch;
	uint64_t payload;
	uint32_t waiting, queue_waiting;
	uint32_t shares;
	uint32_t outbox;
	uint32_t connections;
	uint64_t memory;
	uint32_t uploads;
	uint64_t upload_bytes;
	uint64_t index_memory; /* 0: a part of the machine's memory */
	uint32_t queues, namespace_queues;
	uint32_t namespace_messages;
	uint64_t namespace_bytes;
	struct conf_list quotas; /* conf/quotas.h */
};

/* Texts that are not set are NULL. */
struct conf {
	const struct engine_ops *const *engines; /* the table that loading used */
	char *config;
	char *data;
	struct conf_list listen;
	char *engine;
	bool sharding_enabled;
	unsigned sharding_supplier; /* index in sharding_suppliers */
	char *sharding_default;
	unsigned sharding_range_by; /* index in sharding_range_by */
	uint32_t sharding_version;
	slu_time sharding_interval;
	struct sharding *sharding; /* conf/sharding.h: settings without a row */
	struct conf_sync sync;
	uint32_t shards;
	uint32_t threads;
	uint32_t node_id;
	char *advertise;
	char *codeq_path;
	bool codeq_tokens;
	char *codeq_webhook_secret;
	struct conf_list codeq_webhook_allow;
	char *beanstalk_namespace;
	uint64_t beanstalk_max_job;
	uint32_t beanstalk_max_attempts;
	unsigned place; /* index in conf_places */
	slu_time store_lease;
	slu_time store_settle;
	slu_time start_wait;
	slu_time drain;
	slu_time grace;
	enum slu_log_level log_level;
	enum slu_log_format log_format;
	struct conf_limits limits;
	uint32_t metric_queues;
	uint32_t disk_warn;
	unsigned console; /* 1: on */
	char *environment;
	char *trace_url;
	slu_time queues_idle;
	slu_time hold_max;
	slu_time stats_timeout;
	char *projection_url;
	struct conf_list projection_queues;
	slu_time projection_after;
	uint32_t projection_changes;
	uint32_t flush_batch;
	char *audit_file;
	struct conf_list mask;
	uint32_t max_consumers;
	uint32_t unsettled;
	struct conf_list inboxes;
	slu_time inbox_settle;
	slu_time inbox_poll_interval;
	slu_time inbox_poll_jitter;
	slu_time inbox_poll_resilient;
	bool inbox_watch;
	bool insecure;
	struct conf_list auth_keys;
	char *auth_jwks;
	char *auth_secret;
	char *auth_aws_keys;
	char *auth_audience;
	char *auth_issuer;
	slu_time auth_leeway;
	slu_time auth_max_age;
	struct conf_list auth_hosts;
	char *auth_certificates;
	unsigned auth_metrics; /* enum guard_metrics (auth/guard.h) */
	char *tls_cert;
	char *tls_key;
	char *tls_client_ca;
	char *tls_peer_ca;
	enum conf_client_auth tls_client_auth;
	enum conf_tls_version tls_min_version;

	/* Flags that are not settings. */
	bool help, version, print_config, print_doc, check_config, json;

	/* All rows: the server's and, with their server_key, the engines'. */
	struct option rows[OPTIONS_MAX];
	unsigned n_rows;
	char engine_names[CONF_ENGINE_TEXT], engine_doc[CONF_ENGINE_TEXT];
	_Alignas(max_align_t) char engine_values[CONF_ENGINES][CONF_ENGINE_VALUES];

	/* A row each: "flag --drain", "env SLUICE_DRAIN", "sluice.yaml:12"; NULL: the default. */
	char *origins[OPTIONS_MAX];
};

/* SLU_EINVAL or SLU_ENOMEM: faults has every fault, a sentence each that names the option,
 * the value and the expected form. engines: the table (engine/engine.h), borrowed. Release
 * conf and faults in any case. */
int conf_load(struct conf *c, const struct engine_ops *const *engines, int argc, char **argv,
	      struct conf_faults *faults);
void conf_release(struct conf *c);

/* Set the rows and no values: for conf_set, conf_help and conf_doc. */
void conf_rows(struct conf *c, const struct engine_ops *const *engines);

/* The values of an engine's own rows for the shard `default`; NULL: it has none. */
const void *conf_engine_values(const struct conf *c, const struct engine_ops *engine);

/* Where the shard `default` has its data, for people: the address that these values name, or the folder. */
const char *conf_engine_place(const struct conf *c, const struct engine_ops *engine);

void conf_help(const struct engine_ops *const *engines, FILE *out);    /* the options, for --help */
void conf_doc(const struct engine_ops *const *engines, FILE *out);     /* docs/config.md */
void conf_print(const struct conf *c, FILE *out);                      /* every setting and its origin: YAML */
void conf_json(const struct conf *c, struct buf *out);                 /* the same as JSON */
const char *conf_sync_text(const struct conf *c, char out[static 64]); /* "interval=10ms" */

/* The source of a key's value; NULL: it has its default. */
const char *conf_origin(const struct conf *c, const char *key);

/* The words of `place`, in the order of enum settings_place (members/settings.h). */
extern const char *const conf_places[];

/* For src/conf: the rows, over these values. */
struct option_set conf_set(struct conf *c);

#endif
