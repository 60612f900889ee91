/*
 * clerk_limit.c - what a shard may hold: memory, queues, and the quotas of namespaces.
 *
 * The numbers are sums over all shards of the process (engine/quota.h, engine/spaces.h). A shard
 * adds its own at the end of a run; while it runs it goes by these sums and by what its own ledger
 * has become since. Messages that are there are never touched for a limit.
 */
#include "engine/clerk_in.h"

#include "base/limit.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/quota.h"
#include "engine/spaces.h"

#include <inttypes.h>

enum {
	WARN_PERCENT = 80,       /* of the limit: the warning begins, */
	CALM_PERCENT = 75,       /* and ends */
	STEP = 16 << 10,         /* bytes more or less that are worth telling */
	GRANT = 1 << 20,         /* bytes that a shard takes from the limit before it looks again, */
	GRANT_PART = 64,         /* or this part of the limit */
	RELEASE_LEAST = 16 << 20 /* bytes that must be free before the system gets them back */
};

/* What the sums of a namespace have of this shard. */
struct clerk_space {
	struct space_use *use; /* NULL: not known yet, or no memory */
	struct ledger_space told;
};

static struct footprint
footprint(const struct clerk *k)
{
	struct footprint f = { 0 };

	ledger_footprint(k->ledger, &f);
	locks_footprint(k->locks, &f);
	if (k->ops->footprint)
		k->ops->footprint(k, &f);
	return f;
}

/* ---- Memory ---- */

/* How many bytes of the limit are left, by all that is known now. */
static uint64_t
memory_left(const struct clerk *k)
{
	const uint64_t limit = quota_bytes(&k->quota->index_limit);
	const uint64_t others = quota_bytes(&k->quota->index_held) - k->told.held;
	const uint64_t held = others + footprint(k).held;

	return held < limit ? limit - held : 0;
}

void
clerk_limit_begin(struct clerk *k)
{
	const uint64_t limit = k->quota ? quota_bytes(&k->quota->index_limit) : 0;

	if (limit != k->limit || !limit)
		k->left = limit ? 0 : UINT64_MAX;
	k->limit = limit;
	k->full = limit && quota_bytes(&k->quota->index_used) >= limit;
}

static int
refuse(const struct clerk *k, uint64_t need, struct slu_err *err)
{
	return limit_fail(err, SLU_EMEMORY, LIMIT_INDEX_MEMORY, 0,
			  "the index has %" PRIu64 " of the %" PRIu64 " bytes of limits.index_memory, and "
			  "this needs %" PRIu64 " more: ack, delete or purge messages first",
			  quota_bytes(&k->quota->index_held), quota_bytes(&k->quota->index_limit),
			  need);
}

/* Take so many bytes from the limit that the next messages need no look at it, or `need`. */
static bool
take_grant(struct clerk *k, uint64_t need)
{
	const uint64_t grant = k->limit / GRANT_PART < GRANT ? k->limit / GRANT_PART : GRANT;
	const uint64_t left = memory_left(k);

	if (need > left)
		return false;
	k->left = left < grant || need > grant ? need : grant;
	return true;
}

/* May `need` bytes more be allocated? Need 0 is refused only when what is there takes more than
 * the limit; free room within what is allocated is for new work, too. */
static bool
has_memory(struct clerk *k, uint64_t need)
{
	if (k->full || (need > k->left && !take_grant(k, need)))
		return false;
	k->left -= need;
	return true;
}

/* Messages need memory in larger pieces than documents and keys do: these are refused, too, until
 * there is less than when a message was. */
static bool
is_near_full(const struct clerk *k)
{
	const uint64_t full = quota_bytes(&k->quota->index_full);

	return full && quota_bytes(&k->quota->index_used) >= full - full / 64;
}

static int
check_small(struct clerk *k, uint64_t need, struct slu_err *err)
{
	return !is_near_full(k) && has_memory(k, need) ? 0 : refuse(k, need, err);
}

static size_t
growth_of(struct clerk *k, const struct message *m)
{
	return k->ops->growth ? k->ops->growth(k, m) : 0;
}

/* ---- Namespaces ---- */

/* The sums of a namespace; NULL: there are none, or there is no memory for them. */
static struct clerk_space *
space_of(struct clerk *k, uint32_t space)
{
	struct ledger_space is;

	if (!k->quota || !k->quota->spaces)
		return NULL;
	if (space >= k->n_spaces) {
		const uint32_t n = space + 1 + space / 2;
		struct clerk_space *p = mem_realloc(k->spaces, n * sizeof *p);

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

static int
check_quota(struct clerk *k, uint32_t queue, const struct message *m, struct slu_err *err)
{
	const uint32_t space = ledger_queue_space(k->ledger, queue);
	struct clerk_space *s = space_of(k, space);
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
	if (max && is + clerk_message_bytes(m) > max)
		return limit_fail(err, SLU_EQUOTA, LIMIT_NAMESPACE_BYTES, 0,
				  "namespace %s has messages of %" PRIu64 " bytes, and one of %" PRIu64
				  " more is beyond its quota of %" PRIu64,
				  own.name, is, clerk_message_bytes(m), max);
	return 0;
}

/* ---- What asks ---- */

uint64_t
clerk_message_bytes(const struct message *m)
{
	return message_size(m) + (m->file ? m->payload_size : 0);
}

int
clerk_limit_put(struct clerk *k, uint32_t queue, const struct ledger_offer *offer,
		const struct message *m, struct slu_err *err)
{
	uint64_t need;
	int rc;

	if (!k->quota)
		return 0;
	need = ledger_growth(k->ledger, queue, offer) + growth_of(k, m);
	rc = has_memory(k, need) ? 0 : refuse(k, need, err);
	if (!rc && atomic_load_explicit(&k->quota->has_quotas, memory_order_relaxed))
		rc = check_quota(k, queue, m, err);
	if (!rc)
		return 0;
	/* What was enqueued before takes no room. */
	if (offer->idem.n && ledger_idem_id(k->ledger, queue, offer->idem, k->now))
		return 0;
	if (rc == SLU_EMEMORY)
		atomic_store_explicit(&k->quota->index_full, quota_bytes(&k->quota->index_used),
				      memory_order_relaxed);
	return rc;
}

static int
check_all_queues(const struct clerk *k, struct slice name, struct slu_err *err)
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

/* Also of a namespace that only other shards know. */
static uint64_t
queues_of(struct clerk *k, struct slice space)
{
	const uint32_t known = ledger_space_find(k->ledger, space);
	const struct space_use *use;
	struct ledger_space own;
	struct clerk_space *s;

	if (known == SLAB_NONE) {
		use = k->quota->spaces ? spaces_get(k->quota->spaces, space) : NULL;
		return use ? sum_of(&use->queues, 0, 0) : 0;
	}
	s = space_of(k, known);
	ledger_space_get(k->ledger, known, &own);
	return s ? sum_of(&s->use->queues, s->told.queues, own.queues) : own.queues;
}

int
clerk_limit_queue(struct clerk *k, struct slice space, struct slice name, struct slu_err *err)
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
clerk_limit_document(struct clerk *k, const struct message *m, struct slu_err *err)
{
	return k->quota ? check_small(k, sizeof(struct lock_doc) + growth_of(k, m), err) : 0;
}

int
clerk_limit_key(struct clerk *k, struct slu_err *err)
{
	return k->quota ? check_small(k, locks_growth(k->locks), err) : 0;
}

/* ---- The end of a run ---- */

/* Begin and end are logged once, by the shard that meets them. */
static void
warn(const struct clerk *k, uint64_t held)
{
	const uint64_t limit = quota_bytes(&k->quota->index_limit);
	const bool was = atomic_load_explicit(&k->quota->index_warns, memory_order_relaxed);
	const bool is = limit && held / (was ? CALM_PERCENT : WARN_PERCENT) >= limit / 100;
	bool expected = was;

	if (is == was || !atomic_compare_exchange_strong(&k->quota->index_warns, &expected, is))
		return;
	LOG_AT(k->log, is ? SLU_LOG_WARN : SLU_LOG_INFO,
	       is ? "the index has little memory left" : "the index has enough memory again",
	       F_U64("bytes", held), F_U64("limit", limit));
}

static void
tell_memory(struct clerk *k, const struct footprint *now)
{
	const uint64_t more = now->held - k->told.held; /* modulo 2^64: it may be less */

	atomic_fetch_add_explicit(&k->quota->index_held, more, memory_order_relaxed);
	atomic_fetch_add_explicit(&k->quota->index_used, now->used - k->told.used,
				  memory_order_relaxed);
	k->told = *now;
	warn(k, quota_bytes(&k->quota->index_held));
}

static void
tell_queues(struct clerk *k, uint32_t n)
{
	if (n == k->told_queues)
		return;
	atomic_fetch_add_explicit(&k->quota->queues, (int64_t)n - k->told_queues, memory_order_relaxed);
	k->told_queues = n;
}

static void
tell_space(struct clerk_space *s, const struct ledger_space *now)
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
tell_spaces(struct clerk *k)
{
	uint32_t space;

	while ((space = ledger_space_changed(k->ledger)) != SLAB_NONE) {
		struct clerk_space *s = space_of(k, space);
		struct ledger_space now;

		ledger_space_get(k->ledger, space, &now);
		if (s)
			tell_space(s, &now);
	}
}

/* Memory that was freed goes back to the system when there is much of it. */
static void
release(struct clerk *k, uint64_t held)
{
	if (held > k->highest)
		k->highest = held;
	if (k->trims || k->highest - held < RELEASE_LEAST || k->highest - held < k->highest / 4)
		return;
	mem_trim();
	k->highest = held;
}

/* Has so much come or gone that it is worth a look? */
static bool
has_stirred(struct clerk *k)
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
look_at_memory(struct clerk *k)
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
clerk_limit_end(struct clerk *k)
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
clerk_limit_release(struct clerk *k)
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
