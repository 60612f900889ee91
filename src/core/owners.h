/*
 * owners.h - who holds leases: names, each stored once and known by a 32-bit handle.
 *
 *      claim of 100 messages ── owners_open("web-7:311") ──> handle ──> 100 leases
 *                                                              │
 *      get, browse ── owners_share ──> struct shared_text  <────┘
 *
 * A name lives while a lease (or whoever opened it) uses its handle. At most OWNERS_MAX names
 * are stored; while there are as many, every further name is OWNERS_OTHER.
 *
 * Owned by the shard's thread. A name that was shared (base/shared_text.h) outlives its handle.
 */
#ifndef CORE_OWNERS_H
#define CORE_OWNERS_H

#include "base/bytes.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/shared_text.h"
#include "base/slab.h"

enum {
	OWNER_MAX = 128, /* bytes of a name; a longer one is cut */
	OWNER_NONE = 0,  /* the handle of no name */
	OWNERS_MAX = 65536
};

#define OWNERS_OTHER ".other"

struct owners {
	struct hash_key secret;
	struct slab all; /* struct owner */
	struct map names;
	uint32_t max;
	uint32_t recent; /* the handle that was opened last, or OWNER_NONE */
};

void owners_init(struct owners *o, const struct hash_key *secret);
void owners_release(struct owners *o);

/* The handle of the name, used once more; OWNER_NONE for an empty name. SLU_ENOMEM. */
int owners_open(struct owners *o, struct slice name, uint32_t *out);

/* One use more, one less. OWNER_NONE is fine. */
void owners_use(struct owners *o, uint32_t owner);
void owners_drop(struct owners *o, uint32_t owner);

/* Its text until the last use ends; empty for OWNER_NONE. */
struct slice owners_text(const struct owners *o, uint32_t owner);

/* Its name, for shared_text_unref; NULL for OWNER_NONE. */
struct shared_text *owners_share(const struct owners *o, uint32_t owner);

#endif
