/*
 * owners.h - names of the owners of leases, each stored once, with a 32-bit handle.
 *
 *      claim of 100 messages ── owners_open("web-7:311") ──> handle ──> 100 leases
 *                                                              │
 *      get, browse ── owners_share ──> struct shared_text  <────┘
 *
 * A name exists while a lease, or the caller of owners_open, uses its handle. While OWNERS_MAX
 * names exist, every further name is OWNERS_OTHER.
 *
 * Owned by the shard's thread. A shared name (base/shared_text.h) outlives its handle.
 */
#ifndef CORE_QUEUE_OWNERS_H
#define CORE_QUEUE_OWNERS_H

#include "base/bytes.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/shared_text.h"
#include "base/slab.h"

enum {
	OWNER_MAX = 128,   /* bytes of a name; longer ones are cut */
	OWNER_NONE = 0,    /* the handle of the empty name */
	OWNERS_MAX = 65536 /* names */
};

#define OWNERS_OTHER ".other"

struct owners {
	struct hash_key secret;
	struct slab all; /* struct owner */
	struct map names;
	uint32_t max;    /* OWNERS_MAX; tests lower it */
	uint32_t recent; /* the handle opened last, or OWNER_NONE */
};

void owners_init(struct owners *o, const struct hash_key *secret);
void owners_release(struct owners *o);

/* Fills *out with the handle of the name, and counts a use. Returns SLU_ENOMEM if memory is out. */
int owners_open(struct owners *o, struct slice name, uint32_t *out);

/* Count a use more or less. OWNER_NONE is allowed. */
void owners_use(struct owners *o, uint32_t owner);
void owners_drop(struct owners *o, uint32_t owner);

/* The name, valid until the last use ends; empty for OWNER_NONE. */
struct slice owners_text(const struct owners *o, uint32_t owner);

/* The name with a reference for the caller (shared_text_unref); NULL for OWNER_NONE. */
struct shared_text *owners_share(const struct owners *o, uint32_t owner);

#endif
