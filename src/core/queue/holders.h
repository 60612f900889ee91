/*
 * holders.h - names of the holders of leases, each stored once, with a 32-bit handle.
 *
 *      claim of 100 messages ── holders_open("web-7:311") ──> handle ──> 100 leases
 *                                                               │
 *      get, browse ── holders_share ──> struct shared_text  <────┘
 *
 * A name exists while a lease, or the caller of holders_open, uses its handle. While HOLDERS_MAX
 * names exist, every further name is HOLDERS_OTHER.
 *
 * Owned by the shard's thread. A shared name (base/shared_text.h) outlives its handle.
 */
#ifndef CORE_QUEUE_HOLDERS_H
#define CORE_QUEUE_HOLDERS_H

#include "base/bytes.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/shared_text.h"
#include "base/slab.h"

enum {
	HOLDER_MAX = 128,   /* bytes of a name; longer ones are cut */
	HOLDER_NONE = 0,    /* the handle of the empty name */
	HOLDERS_MAX = 65536 /* names */
};

#define HOLDERS_OTHER ".other"
#define HOLDER_MARK   '\x1f' /* no name has it: holder_check of api/holder.h */

/* A name may have the version of the program behind it, "mailer-1", HOLDER_MARK, "1.4.2": so that the attempts of a
 * message know which version has failed. Lists and searches use the name alone. */
struct slice holder_name(struct slice text);
struct slice holder_version(struct slice text); /* n 0: not known */

struct holders {
	struct hash_key secret;
	struct slab all; /* struct holder */
	struct map names;
	uint32_t max;    /* HOLDERS_MAX; tests lower it */
	uint32_t recent; /* the handle opened last, or HOLDER_NONE */
};

void holders_init(struct holders *o, const struct hash_key *secret);
void holders_release(struct holders *o);

/* Fills *out with the handle of the name, and counts a use. Returns SLU_ENOMEM if memory is out. */
int holders_open(struct holders *o, struct slice name, uint32_t *out);

/* Count a use more or less. HOLDER_NONE is allowed. */
void holders_use(struct holders *o, uint32_t holder);
void holders_drop(struct holders *o, uint32_t holder);

/* The name, valid until the last use ends; empty for HOLDER_NONE. */
struct slice holders_text(const struct holders *o, uint32_t holder);

/* The name with a reference for the caller (shared_text_unref); NULL for HOLDER_NONE. */
struct shared_text *holders_share(const struct holders *o, uint32_t holder);

#endif
