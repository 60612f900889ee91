/*
 * knobs.h - the knobs of a queue as a flat list, read from an answer of the server.
 *
 *      {"namespace":"a","queue":"b","lease":"30s","retry":{"base":"1s"}}
 *
 *      lease        "30s"
 *      retry.base   "1s"
 *
 * The names of namespace and queue are not in the list. Values are JSON. The server decides which
 * knobs exist: `sluice queue set` sends it every name.
 */
#ifndef CLI_LIB_KNOBS_H
#define CLI_LIB_KNOBS_H

#include "base/bytes.h"
#include "base/json/json_out.h"

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

/* Reads the document, or its member of that name (NULL = the document). Returns SLU_EUNKNOWN if it is malformed. */
int knobs_read(struct knobs *k, struct slice document, const char *member,
	       struct slu_err *err);

/* The value of a knob; NULL if the list does not have it. */
const char *knobs_find(const struct knobs *k, const char *name);

/* A value as people read it: a text has no quotes. */
struct slice knob_text(const char *value);

/* The known knobs, for suggestions and completion; ended by NULL. */
extern const char *const knob_names[];

/* The knob that is most like `name`; NULL if `name` is a knob or no knob is similar. */
const char *knob_nearest(const char *name);

/* Writes a typed value as a member: true, false and numbers as they are, anything else as a text. */
void knob_write(struct json_out *w, const char *name, const char *value);

#endif
