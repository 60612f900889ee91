/*
 * options.h - what sluiced can be told: one row an option.
 *
 *      { .name = "drain", .kind = &time_kind, .offset = AT(drain), .standard = "1s", ... }
 *
 * A row gives the flag --drain, the variable SLUICE_DRAIN, the default, the line of
 * --help, of --print-config and of docs/config.md. A flag goes before the variable,
 * the variable before the default.
 */
#ifndef CONF_OPTIONS_H
#define CONF_OPTIONS_H

#include <sluice/err.h>
#include <sluice/log.h>

#include <stdio.h>

enum {
	CONF_LIST_MAX = 16
};

/* What is said more than once, or with commas between. */
struct conf_list {
	char *items[CONF_LIST_MAX];
	unsigned n;
};

enum conf_sync {
	CONF_SYNC_ALWAYS,
	CONF_SYNC_INTERVAL,
	CONF_SYNC_NONE
};

struct conf {
	char *data;
	struct conf_list listen;
	char *engine;
	enum conf_sync sync;
	slu_time sync_interval; /* CONF_SYNC_INTERVAL */
	uint32_t shards;
	uint32_t threads;
	uint32_t node_id;
	slu_time drain;
	enum slu_log_level log_level;
	enum slu_log_format log_format;
	bool insecure;

	/* What to do instead of serving: not settings. */
	bool help, version, print_config, print_doc;
};

/* Defaults, then the environment, then the flags. SLU_EINVAL names the option, the
 * value and what would have been right; SLU_ENOMEM. Release it either way. */
int conf_load(struct conf *c, int argc, char **argv, struct slu_err *err);
void conf_release(struct conf *c);

void conf_help(FILE *out);                                             /* the options, for --help */
void conf_doc(FILE *out);                                              /* docs/config.md */
void conf_print(const struct conf *c, FILE *out);                      /* every setting as it is now */
const char *conf_sync_text(const struct conf *c, char out[static 64]); /* "interval=10ms" */

#endif
