/*
 * store.h - a place for named byte strings that several machines share.
 *
 *      line, beats                                      file:///srv/sluice
 *        │ struct store_request                             0/group/00000000000000000007
 *        v                                                  0/span/00000000000000000001
 *      pool.h      threads that wait                        node/5e1f...
 *        │ store_put, store_get ...
 *        v
 *      store.c     checks arguments, completes the texts of errors
 *        │ struct store_ops
 *        ├ file    a folder
 *        └ ...     one folder and one row in stores.c each
 *
 * An object has a name and bytes. It is put once and then never changes, until it is removed.
 * The only exception is STORE_REPLACE, for the beats of nodes.
 *
 *  STORE-1  Of all puts of one absent name one wins, also over threads, processes and machines.
 *           Only that one returns STORE_OK; the others return STORE_EXISTS. Any of them may
 *           return STORE_FAILED instead.
 *  STORE-2  An object is whole or absent: a get never finds a part of a put, also after the
 *           machine of its sender or the machine of the store lost power.
 *  STORE-3  An object whose put returned STORE_OK or STORE_EXISTS survives a power cut, and every
 *           later get or list of any machine finds it, until it is removed. A power cut may undo
 *           a remove.
 *  STORE-4  STORE_FAILED: the outcome is unknown. A put or remove may have happened, or happen
 *           later. The caller repeats it: a repeated put returns STORE_EXISTS if the first one
 *           happened.
 *  STORE-5  STORE_REFUSED: nothing happened, and a repetition will not help. The cause is a wrong
 *           URL, a missing right or an invalid argument.
 *  STORE-6  A list returns names in byte order, each once. A name that exists during all pages of
 *           a list is in it. A name that was put or removed meanwhile may be in it or not.
 *  STORE-7  Segments of a name are separated by "/". A segment has 1 or more of the bytes
 *           A-Z a-z 0-9 . _ - and does not begin with a dot. A name has at most STORE_SEGMENTS
 *           segments. No name is a folder of another: if "a/b" exists, "a" is no object.
 *  STORE-8  A STORE_REPLACE is not atomic: a get at the same time may find a mixture of the old
 *           and the new bytes. So the content has a sum, and its reader checks the sum and
 *           reads again. One process replaces a name at a time.
 *
 * All functions block and may be called from any thread at any time between store_open and
 * store_close. A store has no retries: src/line has them, once for all stores.
 *
 * A driver is a table of functions. store.c checks every argument before it calls the driver, so
 * a driver gets valid names, and it adds the store and the name to the text of an error, so a
 * driver gives only the cause. tests/unit/store/test_store.c runs against every driver and
 * defines "correct". To add a driver: its folder, a row in stores.c, a row in
 * tests/lib/store_rig.c.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/bytes.h"

#include <sluice/err.h>

#include <stdatomic.h>

struct slu_log;
struct store_pool;
struct store_request;

enum {
	STORE_NAME_MAX = 256,         /* bytes of a name, with the NUL */
	STORE_SEGMENTS = 8,           /* of a name */
	STORE_URL_MAX = 1024,         /* bytes of a URL, with the NUL */
	STORE_PAGE_MAX = 1000,        /* names that one list returns */
	STORE_REMOVES = 100,          /* names of one store_ops.remove_all */
	STORE_OBJECT_MAX = 64 << 20,  /* bytes of an object: one request on every store */
	STORE_REPLACE_MAX = 64 << 10, /* bytes of an object that is replaced */
};

enum store_result {
	STORE_OK,      /* done; get: found */
	STORE_EXISTS,  /* put: the name is taken, perhaps by an earlier try of this put */
	STORE_ABSENT,  /* get: not found; remove: nothing to remove, or STORE_OK */
	STORE_FAILED,  /* STORE-4; err.code is SLU_EDOWN, SLU_EFULL, SLU_ETIMEOUT, SLU_ENOMEM */
	STORE_REFUSED, /* STORE-5; err.code is SLU_EINVAL, SLU_EFORBIDDEN, SLU_ENOTFOUND, SLU_ETOOBIG, SLU_ECORRUPT */
};

enum store_verb {
	STORE_PUT,
	STORE_GET,
	STORE_LIST,
	STORE_REMOVE,
	STORE_CLOCK,
	STORE_VERBS
};

enum store_mode {
	STORE_IF_ABSENT,
	STORE_REPLACE, /* STORE-8 */
};

/* Names that a list found. Zeroed: empty. */
struct store_names {
	const char **names; /* n names, in byte order */
	uint32_t n;
	bool more;         /* there may be names behind the last one */
	bool with_tags;    /* set by the caller: the list fills in tags. Only for stores with remove_if */
	const char **tags; /* with_tags: for each name, a text that changes with the content: "ETAG time" */
	struct buf text;   /* inner: the names, each with a NUL */
	uint32_t size;     /* inner: of names */
};

struct store_conf {
	const char *url;     /* "file:///srv/sluice"; borrowed for the call */
	bool unsafe;         /* accept a place that may break STORE-1 to STORE-3 */
	bool read_only;      /* put, remove and clock return STORE_REFUSED; open changes nothing */
	slu_time timeout;    /* of one call on a network; 0: the driver's default */
	slu_time delay;      /* added to each call, to try a store that is far away */
	struct slu_log *log; /* may be NULL */
};

struct store {
	const struct store_ops *ops; /* first member of every driver's struct */
	char *label;                 /* the URL without secrets, for texts; store.c sets it */
	bool read_only;              /* store.c sets it */
	slu_time delay;              /* store.c sets it */

	/* Requests that were sent, by verb. */
	_Atomic uint64_t requests[STORE_VERBS];

	/* Connections that were lost. The driver counts them: after a lost connection any request may use a
	 * new one, to a store that went back, or from a copy of this machine (LINE-1, LINE-15 of line/line.h). */
	_Atomic uint64_t breaks;
};

/*
 * What a driver must do. Names, prefixes and sizes are valid. Each function but close fills err
 * if it returns STORE_FAILED or STORE_REFUSED; err is never NULL.
 */
struct store_ops {
	const char *name; /* the scheme of its URLs */
	const char *doc;  /* where it keeps objects, for --help */

	/* For the server. */
	uint32_t shards; /* of a new store if the settings give no number */
	slu_time lease;  /* store.lease if the settings do not set it */
	uint32_t puts;   /* puts of a node each second if the settings do not set a limit; 0 = no limit */
	bool probed;     /* the server tests it at start: store/probe.h */

	/* Optional: appends the SQL that makes the place of a store and gives the user of the URL the
	 * rights that a server needs. Connects to nothing. Returns 0 or SLU_EINVAL. */
	int (*sql)(const char *rest, struct buf *out, struct slu_err *err);

	/* Optional: returns SLU_EINVAL if open would refuse the URL whatever the store answers. Reads files, and connects to
	 * nothing. */
	int (*check)(const char *rest, const struct store_conf *conf, struct slu_err *err);

	/* Sets *out to a new store. rest: the URL behind "scheme://". */
	enum store_result (*open)(struct store **out, const char *rest,
				  const struct store_conf *conf, struct slu_err *err);
	void (*close)(struct store *s);

	enum store_result (*put)(struct store *s, const char *name, struct slice object,
				 enum store_mode mode, struct slu_err *err);

	/* Appends at most max bytes from `at` on, and sets *size to the size of the whole object.
	 * Behind the end: STORE_OK and no bytes. */
	enum store_result (*get)(struct store *s, const char *name, uint64_t at, size_t max,
				 struct buf *out, uint64_t *size, struct slu_err *err);

	/* Adds, with store_names_add and in order, the first max names that begin with prefix and
	 * are behind `after`. Sets out->more. */
	enum store_result (*list)(struct store *s, const char *prefix, const char *after,
				  uint32_t max, struct store_names *out, struct slu_err *err);

	enum store_result (*remove)(struct store *s, const char *name, struct slu_err *err);

	/* Optional, for a store where a request costs more than a removal: removes also the names in `more`, each with a
	 * NUL, at most STORE_REMOVES names in all. After STORE_FAILED any of them may be gone. */
	enum store_result (*remove_all)(struct store *s, const char *name, struct slice more, struct slu_err *err);

	/* Optional: for store_remove_if. Its `list` fills in tags (store_names_add_tagged). */
	enum store_result (*remove_if)(struct store *s, const char *name, const char *tag, struct slu_err *err);

	/* Sets *wall to the wall clock of the store, not of this machine (LINE-10). */
	enum store_result (*clock)(struct store *s, slu_time *wall, struct slu_err *err);

	/* For a store that does not block: begins the request when r->due has come, and ends it with
	 * store_pool_end on any thread. The pool then has no threads. NULL: the functions above
	 * block, and the threads of a pool call them. */
	void (*begin)(struct store *s, struct store_request *r);

	/* With begin: ends the requests of a pool that have not begun (POOL-4), or only r if it is not NULL: sets
	 * STORE_FAILED and SLU_ECANCELED, and calls store_pool_end. */
	void (*cancel)(struct store *s, struct store_pool *p, struct store_request *r);
};

/* stores.c: all drivers, NULL at the end. libsluice does not link it. */
extern const struct store_ops *const store_rows[];

/* Opens the store that conf->url names, with the driver among rows that has its scheme. */
enum store_result store_open(struct store **out, const struct store_ops *const *rows,
			     const struct store_conf *conf, struct slu_err *err);
void store_close(struct store *s); /* NULL is fine */

/* store_ops.check of the driver of conf->url, for settings that are only checked. */
int store_check_url(const struct store_ops *const *rows, const struct store_conf *conf, struct slu_err *err);

/* store_ops.sql of the driver of that URL. Returns SLU_EINVAL also if the driver has none. */
int store_sql(const struct store_ops *const *rows, const char *url, struct buf *out,
	      struct slu_err *err);

/* Refuses objects above STORE_OBJECT_MAX; in mode STORE_REPLACE above STORE_REPLACE_MAX. */
enum store_result store_put(struct store *s, const char *name, struct slice object,
			    enum store_mode mode, struct slu_err *err);

/* Appends at most max bytes from `at` on to out; max SIZE_MAX: all. size: set to the size of the
 * whole object; may be NULL. Returns STORE_REFUSED with SLU_ETOOBIG if out is full. */
enum store_result store_get(struct store *s, const char *name, uint64_t at, size_t max,
			    struct buf *out, uint64_t *size, struct slu_err *err);

/* Replaces the content of out by the first max names (1 to STORE_PAGE_MAX) that begin with prefix
 * and are behind `after`. prefix "": all names. after "": from the first one; it may hold any
 * bytes. The next page begins after the last name of this one. */
enum store_result store_list(struct store *s, const char *prefix, const char *after,
			     uint32_t max, struct store_names *out, struct slu_err *err);

enum store_result store_remove(struct store *s, const char *name, struct slu_err *err);

/* store_ops.remove_all. Returns STORE_REFUSED if the store has none. */
enum store_result store_remove_all(struct store *s, const char *name, struct slice more, struct slu_err *err);

/* Removes the object if it still has the tag that a list returned: other programs may have replaced it. Returns
 * STORE_EXISTS if it has another tag, STORE_REFUSED if the store has no tags. A store may ignore the tag. */
enum store_result store_remove_if(struct store *s, const char *name, const char *tag, struct slu_err *err);
enum store_result store_clock(struct store *s, slu_time *wall, struct slu_err *err);

/* Whether a name is valid (STORE-7). */
bool store_name_is_valid(const char *name);

/* "ok", "exists", "absent", "failed", "refused". */
const char *store_result_name(enum store_result r);

/* For drivers. Copies the name; out->text.failed if there is no memory. */
void store_names_add(struct store_names *out, const char *name);
void store_names_add_tagged(struct store_names *out, const char *name, const char *tag);
void store_names_clear(struct store_names *n);   /* empty; keeps its memory */
void store_names_release(struct store_names *n); /* zeroed is fine */

#endif
