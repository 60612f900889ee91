/*
 * find.h - which messages a command means: options for the conditions of a search, and
 * the pages that a server answers with.
 */
#ifndef CLI_FIND_H
#define CLI_FIND_H

#include "cli/rows.h"

struct json_out;

struct find {
	const char *state;
	const char *key, *correlation, *text, *error, *reason;
	slu_time older, newer;
	uint64_t limit;
};

#define STATE_FORM "--state all|ready|delayed|leased|held|dead|damaged"

/* clang-format off */
#define FIND_ROWS(f) \
	{ "-k, --key KEY", ARG_TEXT, &(f)->key, "with this ordering key" }, \
	{ "--correlation-id ID", ARG_TEXT, &(f)->correlation, "with this correlation id" }, \
	{ "--text TEXT", ARG_TEXT, &(f)->text, "with this text in the payload" }, \
	{ "--error TEXT", ARG_TEXT, &(f)->error, "with this text in the last error" }, \
	{ "--reason max_attempts|expired|rejected", ARG_TEXT, &(f)->reason, \
	  "only letters that died for this reason" }, \
	{ "--older-than", ARG_TIME, &(f)->older, "accepted (or dead) longer ago than that" }, \
	{ "--newer-than", ARG_TIME, &(f)->newer, "accepted (or dead) later than that" }
/* clang-format on */

/* Is any of the conditions said, the state aside? */
bool find_is_any(const struct find *f);

/* Page after page of what matches, up to the limit, to r; then print it. */
int find_show(const struct find *f, struct session *s, const char *path, const char *queue,
	      struct rows *r, struct slu_err *err);

/* The conditions as members of an object. */
void find_write(const struct find *f, struct json_out *w);

/* message.c: one message on stdout, with its history. */
int message_show(struct session *s, const char *id, struct slu_err *err);

#endif
