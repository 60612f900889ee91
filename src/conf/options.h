/*
 * options.h - what sluiced can be told: one row a setting.
 *
 *      { .key = "log.level", .kind = &word_kind, .offset = AT(log_level),
 *        .standard = "info", .reload = true, ... }
 *
 * A row gives the key of the YAML file, the flag --log-level, the variable
 * SLUICE_LOG_LEVEL, the default, the line of --help, of --print-config and of
 * docs/config.md, and whether a running server takes a new value (conf/reload.h). To add
 * a setting, add a member here and a row in options.c, and test its effect; the kinds
 * are in conf/option.h.
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

#include <stdio.h>

enum {
	CONF_LIST_MAX = 16, /* unless its row says more */
	CONF_JSON_MAX = 1024 * 1024
};

/* What is said more than once, or with commas between. */
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

/* 0 is no limit, where 0 may be said. */
struct conf_limits {
	uint32_t rate, burst; /* of a namespace */
	uint32_t queue_rate, queue_burst, queue_depth;
	uint32_t batch;
	uint64_t payload;
	uint32_t waiting, queue_waiting;
	uint32_t connections;
	uint64_t memory;
	uint32_t uploads;
	uint64_t upload_bytes;
	uint64_t index_memory; /* 0: a part of what the machine has */
	uint32_t queues, namespace_queues;
	uint32_t namespace_messages;
	uint64_t namespace_bytes;
	struct conf_list quotas; /* conf/quotas.h */
};

/* Texts that need not be set are NULL when they are not. */
struct conf {
	char *config;
	char *data;
	struct conf_list listen;
	char *engine;
	char *redis_address;
	char *redis_username;
	char *redis_password;
	bool redis_tls;
	char *redis_tls_ca, *redis_tls_cert, *redis_tls_key, *redis_tls_name;
	uint32_t redis_db;
	char *redis_prefix;
	slu_time redis_timeout;
	bool sharding_enabled;
	unsigned sharding_supplier; /* index in sharding_suppliers */
	char *sharding_default;
	unsigned sharding_range_by; /* index in sharding_range_by */
	uint32_t sharding_version;
	slu_time sharding_interval;
	struct sharding *sharding; /* conf/sharding.h: what has no row */
	struct conf_sync sync;
	uint32_t shards;
	uint32_t threads;
	uint32_t node_id;
	slu_time start_wait;
	slu_time drain;
	slu_time grace;
	enum slu_log_level log_level;
	enum slu_log_format log_format;
	struct conf_limits limits;
	uint32_t metric_queues;
	slu_time queues_idle;
	slu_time stats_timeout;
	char *audit_file;
	uint32_t max_consumers;
	uint32_t unsettled;
	bool insecure;
	struct conf_list auth_keys;
	char *auth_jwks;
	char *auth_secret;
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
	enum conf_client_auth tls_client_auth;
	enum conf_tls_version tls_min_version;

	/* What to do instead of serving: not settings. */
	bool help, version, print_config, print_doc, check_config, json;

	/* A row each: "flag --drain", "env SLUICE_DRAIN", "sluice.yaml:12"; NULL: the default. */
	char *origins[OPTIONS_MAX];
};

/* SLU_EINVAL or SLU_ENOMEM: faults has all that is wrong, a sentence each that names
 * the option, the value and what would have been right. Release conf and faults either
 * way. */
int conf_load(struct conf *c, int argc, char **argv, struct conf_faults *faults);
void conf_release(struct conf *c);

void conf_help(FILE *out);                                             /* the options, for --help */
void conf_doc(FILE *out);                                              /* docs/config.md */
void conf_print(const struct conf *c, FILE *out);                      /* every setting and its origin: YAML */
void conf_json(const struct conf *c, struct buf *out);                 /* the same as JSON */
const char *conf_sync_text(const struct conf *c, char out[static 64]); /* "interval=10ms" */

/* Where the value of a key came from; NULL: it has its default. */
const char *conf_origin(const struct conf *c, const char *key);

/* For src/conf: the rows, over these values. */
struct option_set conf_set(struct conf *c);

#endif
