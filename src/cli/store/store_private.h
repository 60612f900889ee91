/*
 * store_private.h - the parts of `sluice admin store`.
 */
#ifndef CLI_STORE_STORE_PRIVATE_H
#define CLI_STORE_STORE_PRIVATE_H

#include "base/json/json_out.h"
#include "cli/lib/session.h"

#include "line/object.h"
#include "store/store.h"

struct store_command {
	struct session s;
	struct store *store; /* NULL: adopt without --apply, and the store does not exist yet */
	struct buf object;   /* the last object that was read */

	/* adopt, rejoin */
	const char *data; /* --data */
	bool apply;       /* --apply */
	bool unsafe;      /* --unsafe */

	/* take */
	bool without_front; /* --without-front */

	/* init */
	bool print_sql; /* --print-sql */
};

/* The verbs. word: the word behind the URL; NULL = none. */
int store_ls(struct store_command *c, const char *word, struct slu_err *err);
int store_show(struct store_command *c, const char *word, struct slu_err *err);
int store_check(struct store_command *c, const char *word, struct slu_err *err);
int store_adopt(struct store_command *c, const char *word, struct slu_err *err);
int store_rejoin(struct store_command *c, const char *word, struct slu_err *err);
int store_take(struct store_command *c, const char *word, struct slu_err *err);

/* Reads an object into c->object. Returns SLU_ENOTFOUND if it is absent. */
int store_read(struct store_command *c, const char *name, struct slu_err *err);

/* All names that begin with a prefix, one after the other. Zeroed but for store and prefix: before
 * the first one. */
struct store_cursor {
	struct store *store;
	const char *prefix;
	struct store_names page;
	uint32_t next; /* index in the page */
	bool begun;
};

/* Sets *name to the next name, valid until the next call; NULL behind the last one. */
int store_cursor_next(struct store_cursor *c, const char **name, struct slu_err *err);
void store_cursor_release(struct store_cursor *c);

/* What a check found, in order. */
struct store_problems {
	struct buf text; /* inner: the texts, each with a NUL */
	uint32_t n;      /* how many; a text is kept of the first 1,000 */
};

void store_problems_init(struct store_problems *p);
void store_problems_release(struct store_problems *p);
void store_problems_clear(struct store_problems *p);
void store_problem(struct store_problems *p, const char *fmt, ...) SLU_PRINTF(2, 3);

/* Writes the array "problems", or prints a line for each. */
void store_problems_put(const struct store_problems *p, struct json_out *w);
void store_problems_print(const struct store_problems *p);

/* Checks settings and nodes, and prints the result. Sets *damaged if something is wrong. */
int store_check_objects(struct store_command *c, bool *damaged, struct slu_err *err);

/* The top-level folders: shards, "node", "settings". Sets `folder` to the next one behind it; "" =
 * before the first, and behind the last. */
int store_next_folder(struct store *s, char folder[static STORE_NAME_MAX], struct slu_err *err);

/* What an object is, by its name. */
struct store_kind {
	const char *name;

	/* Whether the name is of this kind. Sets *number to the number in it; 0 = it has none. */
	bool (*matches)(const char *name, const char *shard, uint64_t *number);

	/* Writes the members that describe the object. Returns SLU_ECORRUPT. */
	int (*show)(struct json_out *w, struct slice object, struct slu_err *err);
};

/* The last row matches every name. */
extern const struct store_kind store_kinds[];

enum {
	STORE_KIND_GROUP,
	STORE_KIND_SPAN
};

/* The kind of an object, and its number. */
const struct store_kind *store_kind(const char *name, uint64_t *number);

#endif
