/*
 * find.h - the options that select messages, and the list of the messages that match.
 */
#ifndef CLI_LIB_FIND_H
#define CLI_LIB_FIND_H

#include "cli/lib/rows.h"

struct json_out;

struct find {
	const char *state;
	const char *id, *key, *share, *kind, *batch, *correlation, *attribute, *body, *text, *error, *reason, *group;
	const char *owner, *priority_min, *priority_max, *attempts_over, *attempts_under;
	slu_time older, newer;
	uint64_t limit;
};

#define STATE_FORM "--state all|ready|delayed|leased|held|dead|damaged"

/* clang-format off */
#define FIND_ROWS(type) \
	{ "-k, --key KEY", ARG_TEXT, AT(type, find.key), "with this ordering key" }, \
	{ "--share NAME", ARG_TEXT, AT(type, find.share), "with this share" }, \
	{ "--kind KIND", ARG_TEXT, AT(type, find.kind), "of this kind" }, \
	{ "--batch ID", ARG_TEXT, AT(type, find.batch), "that are members of this batch" }, \
	{ "--correlation-id ID", ARG_TEXT, AT(type, find.correlation), "with this correlation id" }, \
	{ "--attribute NAME=VALUE", ARG_TEXT, AT(type, find.attribute), "with this attribute" }, \
	{ "--body PATH=VALUE", ARG_TEXT, AT(type, find.body), "with this value in the JSON body, as user.id=42" }, \
	{ "--text TEXT", ARG_TEXT, AT(type, find.text), "with this text in the payload" }, \
	{ "--error TEXT", ARG_TEXT, AT(type, find.error), "with this text in the last error" }, \
	{ "--reason max_attempts|expired|rejected", ARG_TEXT, AT(type, find.reason), \
	  "only letters that died for this reason" }, \
	{ "--group GROUP", ARG_TEXT, AT(type, find.group), "only letters of this group, as `dlq groups` names it" }, \
	{ "--owner WORKER", ARG_TEXT, AT(type, find.owner), "leased by this worker" }, \
	{ "--priority-min N", ARG_TEXT, AT(type, find.priority_min), "whose priority is N or a higher number" }, \
	{ "--priority-max N", ARG_TEXT, AT(type, find.priority_max), "whose priority is N or a lower number" }, \
	{ "--attempts-over N", ARG_TEXT, AT(type, find.attempts_over), "delivered more than N times" }, \
	{ "--attempts-under N", ARG_TEXT, AT(type, find.attempts_under), "delivered less than N times" }, \
	{ "--older-than", ARG_TIME, AT(type, find.older), "accepted (or dead) longer ago than that" }, \
	{ "--newer-than", ARG_TIME, AT(type, find.newer), "accepted (or dead) later than that" }
/* clang-format on */

/* Is any condition set? The state does not count. */
bool find_is_any(const struct find *f);

/* The state of a command that lists messages: for search. */
struct finder {
	struct session s;
	struct find find;
};

/* Prints the messages of the queue (the first word; of all queues without one) that match, up to the limit. what: their name in
 * "no dead letters in mail". */
int search(struct session *s, const char *path, const struct column *columns, unsigned n,
	   const char *what, struct slu_err *err);

/* Writes the conditions as members of an object. */
void find_write(const struct find *f, struct json_out *w);

/* Writes a duration as a member; nothing for 0. */
void find_write_time(struct json_out *w, const char *name, slu_time t);

/* For command.each of `get` and `dlq show`: prints a message with its history. */
int message_show(struct session *s, const char *id, struct slu_err *err);

#endif
