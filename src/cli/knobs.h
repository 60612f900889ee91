/*
 * knobs.h - the knobs of a queue as a flat list, read from what a server answers.
 *
 *      {"namespace":"a","topic":"b","lease":"30s","retry":{"base":"1s"}}
 *
 *      lease        "30s"
 *      retry.base   "1s"
 *
 * The names of the queue are left out. Values are the JSON that they are.
 */
#ifndef CLI_KNOBS_H
#define CLI_KNOBS_H

#include "base/bytes.h"
#include "base/json_out.h"

#include <sluice/err.h>

enum {
	KNOBS_MAX = 64,
	KNOB_NAME = 48,
	KNOB_VALUE = 80
};

struct knob {
	char name[KNOB_NAME];
	char value[KNOB_VALUE]; /* as JSON */
};

struct knobs {
	unsigned n;
	struct knob rows[KNOBS_MAX];
};

/* The object itself, or (member) the one that is a member of it. SLU_EUNKNOWN. */
int knobs_read(struct knobs *k, struct slice document, const char *member,
	       struct slu_err *err);

/* The value of that name, or NULL. */
const char *knobs_find(const struct knobs *k, const char *name);

/* A value for people: text without its quotes. */
struct slice knob_text(const char *value);

/* What somebody typed, as the member of that name: true, false and numbers as they are,
 * anything else as text. */
void knob_write(struct json_out *w, const char *name, const char *value);

#endif
