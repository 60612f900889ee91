/*
 * store_rig.h - the cases that every store must pass.
 *
 * A case of tests/unit/store/test_store.c runs against every row of store_rig_rows. A new store
 * is a row there and a line in STORE_CASE. A store that needs a server has a program of its own,
 * made of the same file with STORE_RIG_SERVER: the prefix of its tests, and its row.
 *
 *         STORE_CASE(an_object_comes_back)
 *         {
 *                 CHECK_EQ(STORE_OK, store_rig_put(r->s, "a/b", "text"));
 *                 CHECK_STR("text", store_rig_get(r, "a/b"));
 *         }
 */
#ifndef TESTS_STORE_RIG_H
#define TESTS_STORE_RIG_H

#include "test.h"

#include "store/store.h"

struct store_rig;

struct store_rig_row {
	const char *name;
	const struct store_ops *ops;

	/* Writes the URL of an empty store. */
	void (*url)(char out[static STORE_URL_MAX]);

	/* Other processes see its objects. */
	bool shared;

	/* Optional: puts n empty objects fast; otherwise the rig puts them one by one. */
	void (*fill)(struct store_rig *r, char (*names)[STORE_NAME_MAX], uint32_t n);

	/* The server takes long for a put: cases with many objects have fewer. */
	bool slow;

	/* Optional: the next put happens, and its answer is lost. */
	void (*lose_answer)(struct store *s);
};

struct store_rig {
	const struct store_rig_row *row;
	char url[STORE_URL_MAX];
	struct store *s;
	struct buf bytes; /* of the last get */
	struct slu_err err;
};

typedef void store_rig_case(struct store_rig *r);

enum store_rig_store {
	STORE_RIG_MEMORY,
	STORE_RIG_FILE,
	STORE_RIG_S3,
	STORE_RIG_POSTGRES,
	STORE_RIG_AZURE
};

extern const struct store_rig_row store_rig_rows[];

void store_rig_run(enum store_rig_store row, store_rig_case *test);

#ifdef STORE_RIG_SERVER
#define STORE_CASE(fn)                               \
	static void fn(struct store_rig *r);         \
	TEST(server_##fn)                            \
	{                                            \
		store_rig_run(STORE_RIG_SERVER, fn); \
	}                                            \
	static void fn(struct store_rig *r)
#else
#define STORE_CASE(fn)                               \
	static void fn(struct store_rig *r);         \
	TEST(memory_##fn)                            \
	{                                            \
		store_rig_run(STORE_RIG_MEMORY, fn); \
	}                                            \
	TEST(file_##fn)                              \
	{                                            \
		store_rig_run(STORE_RIG_FILE, fn);   \
	}                                            \
	static void fn(struct store_rig *r)
#endif

/* One more handle on the store of the rig; the caller closes it. Ends the test if it fails. */
struct store *store_rig_open(const struct store_rig *r);

/* The row that KIT_STORE names in the environment; memory if it names none. */
const struct store_rig_row *store_rig_kit_row(void);

/* Opens an empty store of that row, for a log with the time of the test: its clock shows what
 * store_rig_set_clock set last. memory: the URL if it is in memory. */
struct store *store_rig_open_kit(const char *memory);
void store_rig_set_clock(struct store *s, slu_time wall);

/* Put if absent. */
enum store_result store_rig_put(struct store *s, const char *name, const char *text);

/* The whole object as a text, valid until the next call; or the name of the result, in brackets. */
const char *store_rig_get(struct store_rig *r, const char *name);

/* The names behind `after`, with spaces between, and "+" if there are more. */
const char *store_rig_list(struct store_rig *r, const char *prefix, const char *after,
			   uint32_t max);

/* Empty objects with these names. */
void store_rig_fill(struct store_rig *r, char (*names)[STORE_NAME_MAX], uint32_t n);

#endif
