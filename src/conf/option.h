/*
 * option.h - one setting: a row of a table, and what kinds of values there are.
 *
 *      { .key = "node.id", .kind = &count_kind, .offset = AT(node_id), ... }
 *
 * The key is the path in a YAML file. Flag and variable follow from it: --node-id,
 * SLUICE_NODE_ID. Rows are read and shown by their kind alone; to load, print or
 * document them nobody needs to know which rows there are.
 *
 * Used by src/conf, and by tests that bring a table of their own; options.h is for
 * everybody else.
 */
#ifndef CONF_OPTION_H
#define CONF_OPTION_H

#include "base/bytes.h"

#include <sluice/err.h>

enum {
	OPTION_NAME = 64,                /* of a flag or variable */
	OPTION_VALUE = 64 * 1024,        /* bytes of one value, in any source */
	OPTION_SHOWN = 20 * OPTION_VALUE /* of a list, too */
};

struct option;

/* How a value appears in JSON. */
enum option_shape {
	SHAPE_TEXT,
	SHAPE_BARE, /* a number, true, false */
	SHAPE_LIST
};

/*
 * read puts a value in its place and frees what was there; lists append, after a
 * clear. On an error the place keeps what it had. show writes it as it would be read.
 * clear frees; the place is zeroed.
 */
struct option_kind {
	const char *name; /* for the docs */
	int (*read)(const struct option *o, void *place, const char *value,
		    struct slu_err *err);
	void (*show)(const struct option *o, const void *place, struct buf *out);
	void (*clear)(void *place); /* NULL: nothing to free */
	size_t size;                /* of the place */
	enum option_shape shape;
	bool flag;   /* takes no value on the command line */
	bool secret; /* masked wherever it is shown, may come from a file */
};

extern const struct option_kind text_kind;   /* char *; NULL: not set */
extern const struct option_kind secret_kind; /* char *; NULL: not set */
extern const struct option_kind list_kind;   /* struct conf_list, of max or CONF_LIST_MAX items */
extern const struct option_kind quota_kind;  /* the same, of conf/quotas.h */
extern const struct option_kind bool_kind;   /* bool */
extern const struct option_kind count_kind;  /* uint32_t, min to max */
extern const struct option_kind size_kind;   /* uint64_t bytes, min to max */
extern const struct option_kind time_kind;   /* slu_time, min to max unless max is 0 */
extern const struct option_kind word_kind;   /* unsigned or an enum: index in words */
extern const struct option_kind sync_kind;   /* struct conf_sync */

struct option {
	const char *key; /* "log.level": --log-level, SLUICE_LOG_LEVEL */
	const struct option_kind *kind;
	size_t offset;        /* of its place in the struct of values */
	const char *standard; /* as it would be written; "": not set, and may be unset */
	const char *value;    /* how --help calls it */
	const char *doc;
	uint64_t min, max;        /* of counts, sizes and times (in ns) */
	const char *const *words; /* of words, in the order of their enum; NULL ends */
	bool reload;              /* SIGHUP changes it in a running server */
	bool no_file;             /* has no place in the file */
};

/* The rows and where their values are. origins[i] says where the value of row i came
 * from; NULL is the default. */
struct option_set {
	const struct option *rows;
	unsigned n;
	void *values;
	char **origins;
};

void *option_place(const struct option_set *s, unsigned i);
const char *option_flag(const struct option *o, char out[static OPTION_NAME]);     /* "log-level" */
const char *option_variable(const struct option *o, char out[static OPTION_NAME]); /* "SLUICE_LOG_LEVEL" */

/* The row with that key, or s->n. */
unsigned option_find(const struct option_set *s, struct slice key);

/* The key nearest to what somebody wrote, or NULL: a slip of the fingers, or the last
 * part of a key alone. */
const char *option_nearest(const struct option_set *s, const char *key);

void option_set_release(struct option_set *s); /* values and origins */

#endif
