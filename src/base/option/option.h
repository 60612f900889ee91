/*
 * option.h - one setting: a row of a table, and the kinds of values.
 *
 *      { .key = "node.id", .kind = &count_kind, .offset = AT(node_id), ... }
 *
 * The key is the path in a YAML file. Flag and variable follow from the key: --node-id,
 * SLUICE_NODE_ID. Code that loads, prints or documents settings uses the kind of a row and
 * never names a row. The server's rows are in conf/options.c; an engine brings rows of its
 * own (engine/engine.h).
 */
#ifndef BASE_OPTION_OPTION_H
#define BASE_OPTION_OPTION_H

#include "base/bytes.h"

#include <sluice/err.h>

enum {
	OPTION_NAME = 64,                /* bytes of a flag or variable */
	OPTION_VALUE = 64 * 1024,        /* bytes of one value, in any source */
	OPTION_SHOWN = 20 * OPTION_VALUE /* bytes of a value as it is shown, lists included */
};

struct option;

/* How a value appears in JSON. */
enum option_shape {
	SHAPE_TEXT,
	SHAPE_BARE, /* a number, true, false */
	SHAPE_LIST
};

struct option_kind {
	const char *name; /* for the docs */

	/* Stores the value and frees the old one. A list grows: clear it first to replace it.
	 * On an error the place keeps its value. */
	int (*read)(const struct option *o, void *place, const char *value,
		    struct slu_err *err);

	/* Appends the value in the form that read accepts. */
	void (*show)(const struct option *o, const void *place, struct buf *out);

	void (*clear)(void *place); /* frees the value and zeroes the place; NULL: nothing to free */
	size_t size;                /* of the place */
	enum option_shape shape;
	bool flag;   /* the flag takes no value */
	bool secret; /* output masks the value; a file may hold it */
};

extern const struct option_kind text_kind;   /* char *; NULL: not set */
extern const struct option_kind secret_kind; /* char *; NULL: not set */
extern const struct option_kind bool_kind;   /* bool */
extern const struct option_kind count_kind;  /* uint32_t, min to max */
extern const struct option_kind size_kind;   /* uint64_t bytes, min to max */
extern const struct option_kind time_kind;   /* slu_time, min to max unless max is 0 */
extern const struct option_kind word_kind;   /* unsigned or an enum: index in words */

struct option {
	const char *key; /* "log.level": --log-level, SLUICE_LOG_LEVEL */
	const struct option_kind *kind;
	size_t offset;        /* of the place in the struct of values */
	const char *standard; /* the default, as text; "": not set, and may be unset */
	const char *value;    /* the value's name in --help */
	const char *doc;
	uint64_t min, max;        /* of counts, sizes and times (in ns) */
	const char *const *words; /* of words, in the order of their enum; NULL ends */
	bool reload;              /* SIGHUP changes it in a running server */
	bool no_file;             /* the YAML file may not set it */

	/* Rows of an engine: key and default of the same setting for the shard that has no
	 * entry of its own. */
	const char *server_key;
	const char *server_standard; /* NULL: standard */
};

/* Rows and where their values are. */
struct option_set {
	const struct option *rows;
	unsigned n;
	void *values;
	char **origins; /* a row each: the source of the value; NULL: it has its default */
};

void *option_place(const struct option_set *s, unsigned i);
const char *option_flag(const struct option *o, char out[static OPTION_NAME]);     /* "log-level" */
const char *option_variable(const struct option *o, char out[static OPTION_NAME]); /* "SLUICE_LOG_LEVEL" */

/* The row with that key, or s->n. */
unsigned option_find(const struct option_set *s, struct slice key);

/* The key nearest to a key that does not exist, or NULL: one with a similar spelling, or one
 * that ends in it. */
const char *option_nearest(const struct option_set *s, const char *key);

/* For kinds: SLU_EINVAL unless the option may be unset. */
int option_check_empty(const struct option *o, struct slu_err *err);

void option_set_release(struct option_set *s); /* values and origins */

#endif
