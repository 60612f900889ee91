/*
 * spaces.h - the use of each namespace over all shards of a server, and its limits.
 *
 *      shard 0 ──┐                                     max_messages, max_bytes
 *      shard 1 ──┼─> a row a namespace: messages, bytes, queues       ^
 *      shard 2 ──┘        (sums)                       the settings ──┘
 *
 * Every shard adds the changes of its own ledger at the end of a run, so a sum may lack the runs
 * that other shards have just done. A shard makes the row of a namespace when it first uses the
 * namespace; rows stay until spaces_free. Any thread.
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
	_Atomic uint64_t max_bytes;    /* 0: no limit */
	uint64_t hash;
	char name[NAME_TEXT];
};

/* A row of limits.quotas. The name is folded. */
struct space_quota {
	char name[NAME_TEXT];
	uint64_t messages, bytes;     /* 0: no limit */
	bool has_messages, has_bytes; /* false: the limit of every namespace */
};

struct space_quotas {
	uint64_t messages, bytes; /* for namespaces without a row */
	struct space_quota *rows;
	unsigned n;
};

/* Returns SLU_ENOMEM, SLU_EDOWN. */
int spaces_new(struct spaces **out, struct slu_err *err);
void spaces_free(struct spaces *s); /* NULL is fine */

/* The row of a namespace; makes it if necessary. NULL: no memory. */
struct space_use *spaces_get(struct spaces *s, struct slice name);

/* Set the limits of all namespaces, also of later ones. Takes the rows, which base/mem.h
 * allocated. */
void spaces_limit(struct spaces *s, const struct space_quotas *q);

#endif
