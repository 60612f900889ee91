/*
 * spaces.h - what each namespace holds over all shards of a server, and may hold.
 *
 *      shard 0 ──┐                                     max_messages, max_bytes
 *      shard 1 ──┼─> a row a namespace: messages, bytes, queues       ^
 *      shard 2 ──┘        (sums)                       the settings ──┘
 *
 * Every shard adds what has changed of its own ledger at the end of a run, so a sum may lack what
 * the runs of other shards have just done. Rows are made when a shard meets a namespace and stay
 * until spaces_free. Any thread.
 */
#ifndef ENGINE_SPACES_H
#define ENGINE_SPACES_H

#include "base/bytes.h"
#include "core/names.h"

#include <stdatomic.h>

struct spaces;

struct space_use {
	_Atomic int64_t messages;
	_Atomic int64_t bytes;
	_Atomic int64_t queues;
	_Atomic uint64_t max_messages; /* 0: no limit */
	_Atomic uint64_t max_bytes;    /* the same */
	uint64_t hash;
	char name[NAME_TEXT];
};

/* A row of limits.quotas. The name is folded. */
struct space_quota {
	char name[NAME_TEXT];
	uint64_t messages, bytes;     /* 0: no limit */
	bool has_messages, has_bytes; /* false: as for every namespace */
};

struct space_quotas {
	uint64_t messages, bytes; /* of namespaces that no row names */
	struct space_quota *rows;
	unsigned n;
};

/* SLU_ENOMEM, SLU_EDOWN. */
int spaces_new(struct spaces **out, struct slu_err *err);
void spaces_free(struct spaces *s); /* NULL is fine */

/* The row of a namespace, made if there is none; NULL: no memory. */
struct space_use *spaces_get(struct spaces *s, struct slice name);

/* Set the limits of all namespaces, also of those that come later. Takes the rows, which are of
 * base/mem.h. */
void spaces_limit(struct spaces *s, const struct space_quotas *q);

#endif
