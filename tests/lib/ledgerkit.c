#include "ledgerkit.h"

#include "core/ledger/ledger_private.h"

int
ledger_claim(struct ledger *l, uint32_t queue, slu_time lease, slu_time now,
	     struct change *out)
{
	struct ledger_passed passed;

	return ledger_claim_for(l, queue, &(struct ledger_taker){ .lease = lease }, now, out, &passed);
}

uint64_t
ledger_highest_id(const struct ledger *l)
{
	return l->highest_id;
}

/* ---- Digest: the sum of a hash of each item, so that their order does not count ---- */

static const struct hash_key digest_key = { 0x736c75696365u, 0x6c6564676572u };

struct digest_msg {
	uint64_t queue, id, number, token, key, where, error, idem, share, flags;
	int64_t prio, due, expires, keep, until, claimed;
	uint64_t state, reason, attempts, failures, max_attempts;
};

static uint64_t
digest_message(const struct ledger *l, uint32_t h)
{
	struct ledger_view v;
	struct change c;

	ledger_get(l, h, &v);
	ledger_describe(l, h, 0, &c);

	const struct digest_msg d = {
		.queue = ledger_queue(l, v.queue)->hash,
		.id = v.id,
		.number = v.number,
		.token = v.token,
		.key = v.key,
		.where = v.where,
		.error = v.error,
		.idem = c.idem.hash + c.idem.check,
		.share = hash_keyed(&digest_key, c.share.n ? c.share.p : "", c.share.n),
		.flags = v.flags,
		.prio = v.prio,
		.due = v.due,
		.expires = v.expires,
		.keep = v.keep_result,
		.until = v.until,
		.claimed = v.claimed,
		.state = v.state,
		.reason = v.reason,
		.attempts = v.attempts,
		.failures = v.failures,
		.max_attempts = c.max_attempts,
	};

	return hash_keyed(&digest_key, &d, sizeof d);
}

static uint64_t
digest_messages(const struct ledger *l)
{
	uint64_t sum = 0;

	for (uint32_t h = 0; h < l->msgs.fresh; h++)
		if (ledger_scan_msg(l, h))
			sum += digest_message(l, h);
	return sum;
}

static uint64_t
digest_policies(const struct ledger *l)
{
	uint64_t sum = 0;

	for (uint32_t h = ledger_queue_next(l, SLAB_NONE); h != SLAB_NONE;
	     h = ledger_queue_next(l, h)) {
		const struct ledger_queue *q = ledger_queue(l, h);
		const struct policy *p = q->policy;
		const int64_t d[] = {
			(int64_t)q->hash, p->lease, p->max_attempts, p->retry.kind,
			p->retry.jitter, p->retry.base, p->retry.max, p->ttl,
			p->max_depth, p->warn_depth, p->window, p->dlq_retention,
			p->dlq_max, p->require_lease, p->paused, p->max_rate, p->burst, p->strict
		};

		if (q->has_policy)
			sum += hash_keyed(&digest_key, d, sizeof d);
	}
	return sum;
}

static uint64_t
digest_text(const char *text)
{
	return text ? hash_keyed(&digest_key, text, strlen(text)) : 0;
}

static uint64_t
digest_spellings(const struct ledger *l)
{
	uint64_t sum = 0;

	for (uint32_t h = ledger_queue_next(l, SLAB_NONE); h != SLAB_NONE;
	     h = ledger_queue_next(l, h)) {
		const struct ledger_queue *q = ledger_queue(l, h);
		const struct space *s = slab_at(&l->spaces, q->space);

		sum += digest_text(q->shown) + digest_text(s->shown);
	}
	return sum;
}

static uint64_t
digest_kept(const struct ledger *l, slu_time now)
{
	uint64_t sum = 0;

	for (uint32_t h = 0; h < l->idem.entries.fresh; h++) {
		const struct idem_entry *e = idem_entry(&l->idem, h);
		const slu_time until = e ? idem_until(&l->idem, h) : 0;

		if (e && (until == 0 || until > now)) /* expired keys may have been swept */
			sum += hash_keyed(&digest_key, e, offsetof(struct idem_entry, queue));
	}
	for (uint32_t i = 0; i < l->results.by_until.n; i++) {
		const struct heap_node *n = &l->results.by_until.nodes[i];
		const struct result *r = slab_at(&l->results.slab, n->handle);
		const uint64_t d[] = { r->id, r->where, n->b,
				       ledger_queue(l, r->queue)->hash };

		sum += hash_keyed(&digest_key, d, sizeof d);
	}
	return sum;
}

/* The batch that is set aside, in its order. */
static uint64_t
digest_batch(const struct taken_batch *b)
{
	uint64_t sum = b ? b->number : 0;

	for (uint32_t i = 0; b && i < b->n; i++) {
		const uint64_t d[] = { sum, b->items[i].id, b->items[i].hash, b->what };

		sum = hash_keyed(&digest_key, d, sizeof d);
	}
	return sum;
}

static uint64_t
digest_moves(const struct ledger *l)
{
	uint64_t sum = 0;

	for (uint32_t h = ledger_queue_next(l, SLAB_NONE); h != SLAB_NONE;
	     h = ledger_queue_next(l, h)) {
		const struct ledger_queue *q = ledger_queue(l, h);
		const struct queue_moves *v = q->moves;
		const uint64_t d[] = { q->hash, v ? v->epoch : 0, v ? digest_text(v->lives) : 0,
				       digest_batch(ledger_batch_of(q)) };

		if (v && (v->epoch || v->batch))
			sum += hash_keyed(&digest_key, d, sizeof d);
		for (uint32_t i = 0; v && i < v->n_given; i++)
			sum += q->hash ^ digest_text(v->given[i].peer) ^ v->given[i].batch;
	}
	return sum;
}

uint64_t
ledger_digest_at(const struct ledger *l, slu_time now)
{
	const uint64_t d[] = { digest_messages(l), digest_policies(l), digest_kept(l, now),
			       digest_spellings(l), digest_moves(l), l->counter };

	return hash_keyed(&digest_key, d, sizeof d);
}

uint64_t
ledger_digest(const struct ledger *l)
{
	return ledger_digest_at(l, l->now);
}

/* ---- Digest of locks ---- */

static uint64_t
mix(uint64_t sum, uint64_t v)
{
	sum = (sum ^ v) * 0x9e3779b97f4a7c15u;
	return sum ^ sum >> 29;
}

static uint64_t
mix_text(uint64_t sum, struct slice s)
{
	return mix(sum, (uint64_t)s.n << 32 | fnv1a32(s.p, s.n));
}

static uint64_t
digest_doc(const struct lock_doc *doc)
{
	uint64_t sum = mix_text(1, doc->name);

	sum = mix(sum, doc->etag);
	sum = mix(sum, doc->staged);
	return mix(sum, doc->removed);
}

static uint64_t
digest_lock(const struct lock *lock)
{
	const uint64_t numbers[] = {
		lock->id,
		lock->token,
		(uint64_t)lock->until,
		lock->version,
		(uint64_t)lock->updated,
		(uint64_t)lock->known,
		lock->over,
		lock->fresh,
		lock->hidden,
		lock->hides,
		lock->hide,
	};
	uint64_t sum = mix_text(mix_text(2, lock->space), lock->key), docs = 0;

	sum = mix_text(sum, lock->holder);
	sum = mix_text(sum, (struct slice){ (const char *)lock->txn, LOCK_TXN });
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		sum = mix(sum, numbers[i]);
	for (uint32_t i = 0; i < lock->n; i++)
		docs += digest_doc(&lock->docs[i]);
	return mix(sum, docs);
}

uint64_t
locks_digest(const struct locks *l)
{
	const struct lock *lock;
	uint64_t sum = 0;
	uint32_t cursor = 0;

	while ((lock = locks_scan(l, &cursor)) != NULL)
		sum += digest_lock(lock);
	return sum;
}
