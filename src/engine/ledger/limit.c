/*
 * limit.c - what a shard may hold: memory, queues, and the quotas of namespaces.
 *
 * The numbers are sums over all shards of the process (engine/quota.h, engine/spaces.h). A shard
 * adds its own part at the end of a run; during a run it uses these sums and the growth of its own
 * ledger since. A limit refuses new work and never removes messages.
 */
#include "engine/ledger/ledgerengine_private.h"

#include "base/limit.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/quota.h"
#include "engine/spaces.h"

#include <inttypes.h>

enum {
	WARN_PERCENT = 80,       /* of the limit: the warning begins */
	CALM_PERCENT = 75,       /* of the limit: the warning ends */
	STEP = 16 << 10,         /* bytes more or less that are worth a new measurement */
	GRANT = 1 << 20,         /* bytes that a shard takes from the limit at a time, */
	GRANT_PART = 64,         /* or this part of the limit */
	RELEASE_LEAST = 16 << 20 /* free bytes from which on memory goes back to the system */
};

/* The part of this shard in the sums of a namespace. */
struct ledgerengine_space {
	struct space_use *use; /* NULL: not looked up yet, or no memory */
	struct ledger_space told;
};

static struct footprint
footprint(const struct ledgerengine *k)
{
	struct footprint f = { 0 };

	ledger_footprint(k->ledger, &f);
	locks_footprint(k->locks, &f);
	footprint_bytes(&f, k->storage ? trend_bytes(TREND_OF_SHARD) : 0);
	if (k->ops->footprint)
		k->ops->footprint(k, &f);
	return f;
}

/* ---- Memory ---- */

/* Bytes of the index of all shards now. The sum has the bytes of this shard as of its last run. */
static uint64_t
memory_held(const struct ledgerengine *k)
{
	return quota_bytes(&k->quota->index_held) - k->told.held + footprint(k).held;
}

static uint64_t
memory_left(const struct ledgerengine *k)
{
	const uint64_t limit = quota_bytes(&k->quota->index_limit);
	const uint64_t held = memory_held(k);

	return held < limit ? limit - held : 0;
}

void
ledgerengine_limit_begin(struct ledgerengine *k)
{
	const uint64_t limit = k->quota ? quota_bytes(&k->quota->index_limit) : 0;

	if (limit != k->limit || !limit)
		k->left = limit ? 0 : UINT64_MAX;
	k->limit = limit;
	k->full = limit && quota_bytes(&k->quota->index_used) >= limit;
}

static int
refuse(const struct ledgerengine *k, uint64_t need, struct slu_err *err)
{
	return limit_fail(err, SLU_EMEMORY, LIMIT_INDEX_MEMORY, 0,
			  "the index has %" PRIu64 " of the %" PRIu64 " bytes of limits.index_memory, and "
			  "this needs %" PRIu64 " more; ack, delete or purge messages first",
			  memory_held(k), quota_bytes(&k->quota->index_limit), need);
}

/* Takes `need` bytes or more from the limit: enough for the next messages, too. */
static bool
take_grant(struct ledgerengine *k, uint64_t need)
{
	const uint64_t grant = k->limit / GRANT_PART < GRANT ? k->limit / GRANT_PART : GRANT;
	const uint64_t left = memory_left(k);

	if (need > left)
		return false;
	k->left = left < grant || need > grant ? need : grant;
	return true;
}

/* Returns true if `need` more bytes may be allocated. Need 0 fits unless the index is above the
 * limit: room within what is allocated is free for new work. */
static bool
has_memory(struct ledgerengine *k, uint64_t need)
{
	if (k->full || (need > k->left && !take_grant(k, need)))
		return false;
	k->left -= need;
	return true;
}

/* A message needs memory in larger pieces than a document or a key. After a message was refused,
 * documents and keys are refused, too, until the index is smaller. */
static bool
is_near_full(const struct ledgerengine *k)
{
	const uint64_t full = quota_bytes(&k->quota->index_full);

	return full && quota_bytes(&k->quota->index_used) >= full - full / 64;
}

/* The warning begins at WARN_PERCENT, or at an earlier refusal: an array that grows may need more
 * than the rest of a small limit. The shard that notices it logs it, once. */
static void
warn(const struct ledgerengine *k)
{
	const uint64_t held = quota_bytes(&k->quota->index_held);
	const uint64_t limit = quota_bytes(&k->quota->index_limit);
	const bool was = atomic_load_explicit(&k->quota->index_warns, memory_order_relaxed);
	const bool is = limit && (is_near_full(k) ||
				  held / (was ? CALM_PERCENT : WARN_PERCENT) >= limit / 100);
	bool expected = was;

	if (is == was || !atomic_compare_exchange_strong(&k->quota->index_warns, &expected, is))
		return;
	LOG_AT(k->log, is ? SLU_LOG_WARN : SLU_LOG_INFO,
	       is ? "the index has little memory left" : "the index has enough memory again",
	       F_U64("bytes", held), F_U64("limit", limit));
}

static void
add_memory(struct ledgerengine *k, const struct footprint *now)
{
	const uint64_t more = now->held - k->told.held; /* modulo 2^64: it may shrink */

	atomic_fetch_add_explicit(&k->quota->index_held, more, memory_order_relaxed);
	atomic_fetch_add_explicit(&k->quota->index_used, now->used - k->told.used,
				  memory_order_relaxed);
	k->told = *now;
}

/* New work was refused: from now on the index is full. */
static void
note_full(struct ledgerengine *k)
{
	const struct footprint now = footprint(k);

	add_memory(k, &now);
	atomic_store_explicit(&k->quota->index_full, quota_bytes(&k->quota->index_used),
			      memory_order_relaxed);
	warn(k);
}

static int
check_small(struct ledgerengine *k, uint64_t need, struct slu_err *err)
{
	if (is_near_full(k))
		return refuse(k, need, err);
	if (has_memory(k, need))
		return 0;
	note_full(k);
	return refuse(k, need, err);
}

static size_t
growth_of(struct ledgerengine *k, const struct message *m)
{
	return k->ops->growth ? k->ops->growth(k, m) : 0;
}

/* ---- Namespaces ---- */

/* The sums of a namespace; NULL: no quotas, or no memory. */
static struct ledgerengine_space *
space_of(struct ledgerengine *k, uint32_t space)
{
	struct ledger_space is;

	if (!k->quota || !k->quota->spaces)
		return NULL;
	if (space >= k->n_spaces) {
		const uint32_t n = space + 1 + space / 2;
		struct ledgerengine_space *p = mem_realloc(k->spaces, n * sizeof *p);

		if (!p)
			return NULL;
		memset(p + k->n_spaces, 0, (n - k->n_spaces) * sizeof *p);
		k->spaces = p;
		k->n_spaces = n;
	}
	if (!k->spaces[space].use) {
		ledger_space_get(k->ledger, space, &is);
		k->spaces[space].use = spaces_get(k->quota->spaces, slice_of(is.name));
	}
	return k->spaces[space].use ? &k->spaces[space] : NULL;
}

static uint64_t
sum_of(const _Atomic int64_t *sum, uint64_t told, uint64_t own)
{
	const int64_t n = atomic_load_explicit(sum, memory_order_relaxed) + (int64_t)(own - told);

	return n > 0 ? (uint64_t)n : 0;
}

/* Bytes that a message counts for the quota of its namespace. */
static uint64_t
bytes_of(const struct message *m)
{
	return message_size(m) + (m->file ? m->payload_size : 0);
}

static int
check_quota(struct ledgerengine *k, uint32_t queue, const struct message *m, struct slu_err *err)
{
	const uint32_t space = ledger_queue_space(k->ledger, queue);
	struct ledgerengine_space *s = space_of(k, space);
	struct ledger_space own;
	uint64_t max, is;

	if (!s)
		return 0;
	ledger_space_get(k->ledger, space, &own);
	max = atomic_load_explicit(&s->use->max_messages, memory_order_relaxed);
	is = max ? sum_of(&s->use->messages, s->told.messages, own.messages) : 0;
	if (max && is + 1 > max)
		return limit_fail(err, SLU_EQUOTA, LIMIT_NAMESPACE_MESSAGES, 0,
				  "namespace %s has %" PRIu64 " messages; its quota is %" PRIu64,
				  own.name, is, max);
	max = atomic_load_explicit(&s->use->max_bytes, memory_order_relaxed);
	is = max ? sum_of(&s->use->bytes, s->told.bytes, own.bytes) : 0;
	if (max && is + bytes_of(m) > max)
		return limit_fail(err, SLU_EQUOTA, LIMIT_NAMESPACE_BYTES, 0,
				  "namespace %s has messages of %" PRIu64 " bytes; %" PRIu64
				  " more exceed its quota of %" PRIu64,
				  own.name, is, bytes_of(m), max);
	return 0;
}

/* ---- Checks ---- */

int
ledgerengine_limit_put(struct ledgerengine *k, uint32_t queue, const struct ledger_offer *offer,
		       const struct message *m, struct slu_err *err)
{
	uint64_t need;
	int rc;

	if (!k->quota)
		return 0;
	need = ledger_growth(k->ledger, queue, offer) + growth_of(k, m);
	rc = has_memory(k, need) ? 0 : refuse(k, need, err);
	if (!rc && !offer->owed && atomic_load_explicit(&k->quota->has_quotas, memory_order_relaxed))
		rc = check_quota(k, queue, m, err);
	if (!rc)
		return 0;
	/* A known idempotency key takes no room, and neither does a message that another shard accepts. */
	if (ledger_idem_id(k->ledger, queue, offer->idem, k->now) ||
	    ledger_offer_is_elsewhere(k->ledger, queue, offer, k->now))
		return 0;
	if (rc == SLU_EMEMORY)
		note_full(k);
	return rc;
}

static int
check_all_queues(const struct ledgerengine *k, struct slice name, struct slu_err *err)
{
	const uint64_t max = quota_get(&k->quota->max_queues);
	struct ledger_size size;
	uint64_t is;

	ledger_size(k->ledger, &size);
	is = sum_of(&k->quota->queues, k->told_queues, size.queues);
	if (!max || is < max)
		return 0;
	return limit_fail(err, SLU_EBUSY, LIMIT_QUEUES, 0,
			  "queue %.*s would be new; there are %" PRIu64 " queues, limits.queues "
			  "allows %" PRIu64,
			  (int)name.n, name.p, is, max);
}

/* Finds the sums of a namespace that only other shards have, too. */
static uint64_t
queues_of(struct ledgerengine *k, struct slice space)
{
	const uint32_t known = ledger_space_find(k->ledger, space);
	const struct space_use *use;
	struct ledger_space own;
	struct ledgerengine_space *s;

	if (known == SLAB_NONE) {
		use = k->quota->spaces ? spaces_get(k->quota->spaces, space) : NULL;
		return use ? sum_of(&use->queues, 0, 0) : 0;
	}
	s = space_of(k, known);
	ledger_space_get(k->ledger, known, &own);
	return s ? sum_of(&s->use->queues, s->told.queues, own.queues) : own.queues;
}

int
ledgerengine_limit_queue(struct ledgerengine *k, struct slice space, struct slice name, struct slu_err *err)
{
	uint64_t max, is;
	int rc;

	if (!k->quota)
		return 0;
	rc = check_small(k, ledger_growth(k->ledger, SLAB_NONE, &(struct ledger_offer){ 0 }), err);
	if (!rc)
		rc = check_all_queues(k, name, err);
	max = quota_get(&k->quota->max_space_queues);
	if (rc || !max)
		return rc;
	is = queues_of(k, space);
	if (is < max)
		return 0;
	return limit_fail(err, SLU_EBUSY, LIMIT_QUEUES, 0,
			  "queue %.*s would be new; namespace %.*s has %" PRIu64
			  " queues, limits.namespace_queues allows %" PRIu64,
			  (int)name.n, name.p, (int)space.n, space.p, is, max);
}

int
ledgerengine_limit_document(struct ledgerengine *k, const struct message *m, struct slu_err *err)
{
	return k->quota ? check_small(k, sizeof(struct lock_doc) + growth_of(k, m), err) : 0;
}

int
ledgerengine_limit_key(struct ledgerengine *k, struct slu_err *err)
{
	return k->quota ? check_small(k, locks_growth(k->locks), err) : 0;
}

/* ---- The end of a run ---- */

static void
tell_memory(struct ledgerengine *k, const struct footprint *now)
{
	add_memory(k, now);
	warn(k);
}

static void
tell_queues(struct ledgerengine *k, uint32_t n)
{
	if (n == k->told_queues)
		return;
	atomic_fetch_add_explicit(&k->quota->queues, (int64_t)n - k->told_queues, memory_order_relaxed);
	k->told_queues = n;
}

static void
tell_space(struct ledgerengine_space *s, const struct ledger_space *now)
{
	atomic_fetch_add_explicit(&s->use->messages, (int64_t)(now->messages - s->told.messages),
				  memory_order_relaxed);
	atomic_fetch_add_explicit(&s->use->bytes, (int64_t)(now->bytes - s->told.bytes),
				  memory_order_relaxed);
	atomic_fetch_add_explicit(&s->use->queues, (int64_t)now->queues - s->told.queues,
				  memory_order_relaxed);
	s->told = *now;
}

static void
tell_spaces(struct ledgerengine *k)
{
	uint32_t space;

	while ((space = ledger_space_changed(k->ledger)) != SLAB_NONE) {
		struct ledgerengine_space *s = space_of(k, space);
		struct ledger_space now;

		ledger_space_get(k->ledger, space, &now);
		if (s)
			tell_space(s, &now);
	}
}

/* Gives freed memory back to the system if there is much of it. */
static void
release(struct ledgerengine *k, uint64_t held)
{
	if (held > k->highest)
		k->highest = held;
	if (k->trims || k->highest - held < RELEASE_LEAST || k->highest - held < k->highest / 4)
		return;
	mem_trim();
	k->highest = held;
}

/* Returns true if the sizes have changed enough for a new measurement. */
static bool
has_stirred(struct ledgerengine *k)
{
	const uint64_t limit = k->quota ? quota_bytes(&k->quota->index_limit) : 0;
	struct footprint own = { 0 };
	uint64_t mass;

	if (k->ops->footprint)
		k->ops->footprint(k, &own);
	mass = own.used + ledger_mass(k->ledger) + locks_mass(k->locks);
	if (!k->trims && k->seen_limit == limit &&
	    (mass > k->mass ? mass - k->mass : k->mass - mass) < STEP)
		return false;
	k->seen_limit = limit;
	k->mass = mass;
	return true;
}

static void
look_at_memory(struct ledgerengine *k)
{
	struct footprint now;

	k->trims = ledger_trim(k->ledger);
	k->trims |= locks_trim(k->locks);
	if (k->ops->trim)
		k->trims |= k->ops->trim(k);
	now = footprint(k);
	release(k, now.held);
	if (k->quota)
		tell_memory(k, &now);
}

void
ledgerengine_limit_end(struct ledgerengine *k)
{
	struct ledger_size size;

	if (has_stirred(k))
		look_at_memory(k);
	if (!k->quota)
		return;
	ledger_size(k->ledger, &size);
	tell_queues(k, size.queues);
	tell_spaces(k);
}

void
ledgerengine_limit_release(struct ledgerengine *k)
{
	const struct ledger_space none = { 0 };

	if (k->quota) {
		tell_memory(k, &(struct footprint){ 0 });
		tell_queues(k, 0);
	}
	for (uint32_t i = 0; i < k->n_spaces; i++)
		if (k->spaces[i].use)
			tell_space(&k->spaces[i], &none);
	mem_free(k->spaces);
	k->spaces = NULL;
	k->n_spaces = 0;
}
