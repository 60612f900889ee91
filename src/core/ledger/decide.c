/*
 * decide.c - checks the operations of producers, consumers and operators.
 */
#include "core/ledger/ledger_kind.h"
#include "core/ledger/ledger_private.h"

#include "core/ledger/adjust.h"
#include "core/ledger/letters.h"
#include "core/ledger/named.h"

#include "core/backoff.h"

#include <assert.h>

enum {
	GATES_LOOK = 256 /* gates that a claim opens */
};

/* The time of a change: shard time never goes back. */
struct change
ledger_begin(const struct ledger *l, enum change_kind kind, slu_time now)
{
	return (struct change){
		.kind = kind,
		.msg = SLAB_NONE,
		.at = now > l->now ? now : l->now,
	};
}

struct change
ledger_begin_for(const struct ledger *l, enum change_kind kind, uint32_t h,
		 slu_time now)
{
	struct change c = ledger_begin(l, kind, now);

	c.msg = h;
	c.id = ledger_msg(l, h)->id;
	return c;
}

slu_time
ledger_remember(const struct ledger *l, const struct msg *m, slu_time at)
{
	const struct terms *const t = ledger_terms(l, m);

	if (m->more == SLAB_NONE || ledger_more(l, m)->idem == SLAB_NONE)
		return 0;
	if (t->unique)
		return t->unique_end > at ? t->unique_end : 0;
	return time_add(at, ledger_queue_of(l, m)->policy->window);
}

int
ledger_promise(struct ledger *l, const struct change *c, struct change *out)
{
	const int rc = ledger_reserve(l, c);

	if (!rc)
		*out = *c;
	return rc;
}

/* The two for a change that stays in its place: it is long, and each message has some. h SLAB_NONE: no message yet. */
static inline void
begin_here(const struct ledger *l, enum change_kind kind, uint32_t h, slu_time now, struct change *out)
{
	*out = (struct change){
		.kind = kind,
		.msg = h,
		.at = now > l->now ? now : l->now,
		.id = h == SLAB_NONE ? 0 : ledger_msg(l, h)->id,
	};
}

static int
promise_here(struct ledger *l, struct change *c)
{
	const int rc = ledger_reserve(l, c);

	if (rc)
		c->kind = CHANGE_NONE;
	return rc;
}

/* Producers */

/* MOVE-7 of engine/move.h */
static bool
is_taken(const struct ledger *l, const struct ledger_queue *q, uint64_t key)
{
	const uint32_t h = key ? ledger_key_find(l, q->handle, key) : SLAB_NONE;

	return h != SLAB_NONE && ledger_key(l, h)->taken;
}

/* Returns whether the key was used with another payload. An unknown digest counts as the same. */
static bool
is_other(const struct ledger *l, uint32_t known, uint64_t digest)
{
	const uint64_t first = digest ? idem_digest(&l->idem, known) : 0;

	return first && first != digest;
}

/* SLU_EEXISTS, SLU_EIDEM: sets c->id to the id of the first message. */
static int
check_limits(struct ledger *l, const struct ledger_queue *q, const struct ledger_offer *offer, struct change *c)
{
	const bool owed = offer->owed;
	const uint32_t most = q->policy->max_depth ? q->policy->max_depth : l->limits.max_depth;
	uint32_t known;

	if (idem_is_set(c->idem)) {
		known = ledger_key_known(l, c->idem, c->at);
		if (known != SLAB_NONE) {
			c->id = idem_id(&l->idem, known);
			return is_other(l, known, c->digest) ? SLU_EIDEM : SLU_EEXISTS;
		}
	}
	if (!owed && !offer->instead && q->policy->draining)
		return SLU_EDRAINING;
	if (idem_is_set(c->idem)) {
		if (!owed && l->conf.max_idem && idem_count(&l->idem) >= l->conf.max_idem)
			return SLU_EBUSY;
	}
	if (!owed && most && ledger_depth(q) >= most)
		return SLU_EQFULL;
	if (!owed && c->share.n && !ledger_share_fits(l, q, c->share))
		return SLU_EQUOTA;
	return ledger_batch_of(q) && is_taken(l, q, c->key) ? SLU_ECONFLICT : 0;
}

int
ledger_accept(struct ledger *l, uint32_t queue, const struct ledger_offer *offer,
	      slu_time now, struct change *out)
{
	const struct ledger_queue *q = ledger_queue(l, queue);
	const slu_time ttl = offer->ttl ? offer->ttl : q->policy->ttl;
	struct change *const c = out; /* NONE if nothing is accepted */
	int rc;

	assert(offer->id && offer->where <= LEDGER_WHERE_MAX && ttl >= 0);
	ledger_expect(l, offer->id);
	if (ledger_offer_is_elsewhere(l, queue, offer, now))
		return SLU_EMOVED;
	begin_here(l, CHANGE_ACCEPT, SLAB_NONE, now, c);
	c->queue = queue;
	c->id = offer->id;
	c->number = l->counter + 1;
	c->prio = offer->prio;
	c->due = offer->due > c->at ? offer->due : c->at;
	c->expires = offer->deadline ? offer->deadline : ttl ? time_add(c->at, ttl)
							     : 0;
	c->max_attempts = offer->max_attempts;
	c->keep = offer->keep_result;
	c->terms = offer->terms;
	if (c->terms.unique == UNIQUE_TIME)
		c->terms.unique_end = time_add(c->at, c->terms.unique_for);
	c->where = offer->where;
	c->share = offer->share;
	c->value = offer->value;
	if (offer->key.n)
		c->key = offer->key_hash ? offer->key_hash : ledger_key_hash(l, queue, offer->key);
	if (offer->idem.n) {
		c->idem = ledger_idem_mark(l, queue, offer->idem);
		c->digest = q->policy->strict && !c->terms.unique ? offer->digest : 0;
	}
	rc = check_limits(l, q, offer, c);
	if (rc)
		c->kind = CHANGE_NONE;
	return rc ? rc : promise_here(l, c);
}

/* Whether an offer with this key and share can take the place of the message. */
static bool
is_replaceable(const struct ledger *l, const struct msg *m, uint64_t key, struct slice share)
{
	const enum msg_state state = msg_state(m);
	const uint64_t own = m->flags & MSG_KEYED ? ledger_key_of(l, m)->hash : 0;

	return (state == MSG_READY || state == MSG_DELAYED || state == MSG_HELD) && !(m->flags & MSG_TAKEN) && own == key &&
	       slice_eq(ledger_line_of(l, m), share);
}

int
ledger_replace(struct ledger *l, uint32_t msg, const struct ledger_offer *offer, slu_time now, struct change *out)
{
	const struct msg *const m = ledger_msg(l, msg);
	const uint32_t queue = ledger_home(l, m);
	const uint64_t key = offer->key.n ? ledger_key_hash(l, queue, offer->key) : 0;

	*out = ledger_begin(l, CHANGE_NONE, now);
	if (!is_replaceable(l, m, key, offer->share))
		return 0;
	*out = ledger_begin_for(l, CHANGE_REPLACE, msg, now);
	out->queue = queue;
	out->number = m->q.seq;
	out->prio = m->q.prio;
	out->due = m->q.due;
	out->idem = ledger_idem_mark(l, queue, offer->idem);
	if (key)
		return 0;
	out->prio = offer->prio;
	if (offer->due > out->at)
		out->due = offer->due;
	else if (msg_state(m) == MSG_DELAYED)
		out->due = out->at;
	return ledger_reserve(l, out);
}

/* Consumers */

/* LEDGER-8: why a message must not be delivered, or DEAD_NOT. */
static enum dead_reason
is_over(const struct ledger *l, const struct ledger_queue *q, const struct msg *m,
	slu_time now)
{
	if (ledger_expires(l, m) <= now)
		return DEAD_EXPIRED;
	if (m->failures >= ledger_max_attempts(q, m))
		return DEAD_MAX_ATTEMPTS;
	return DEAD_NOT;
}

/* LEDGER-13: the first ready message that the stream has not just failed, or SLAB_NONE. */
static int
pick_other(const struct ledger *l, const struct ledger_queue *q, const struct ledger_taker *taker, slu_time now,
	   uint32_t *best, struct ledger_passed *passed)
{
	const uint32_t stream_no = taker->stream_no, most = shun_count(&l->shun, stream_no, now) + 1;
	uint32_t msgs[SHUN_MAX + 1], n;
	const int rc = taker->kinds.n ? ledger_kind_peek(l, q, taker->kinds, msgs, most, &n)
				      : ledger_peek_ready(l, q, msgs, most, &n);

	*best = SLAB_NONE;
	*passed = (struct ledger_passed){ .until = SLU_NEVER };
	for (uint32_t i = 0; !rc && i < n; i++) {
		const slu_time until = shun_until(&l->shun, ledger_msg(l, msgs[i])->id, stream_no, now);

		if (!until) {
			*best = msgs[i];
			return 0;
		}
		passed->n++;
		passed->until = until < passed->until ? until : passed->until;
	}
	return rc;
}

static int
pick_best(const struct ledger *l, const struct ledger_queue *q, const struct ledger_taker *taker, slu_time now,
	  uint32_t *best, struct ledger_passed *passed)
{
	const uint32_t stream_no = taker->stream_no;

	*passed = (struct ledger_passed){ 0 };
	*best = ledger_best(q);
	if (taker->kinds.n && *best != SLAB_NONE)
		*best = ledger_kind_best(l, q, taker->kinds);
	if (!stream_no || *best == SLAB_NONE || !shun_until(&l->shun, ledger_msg(l, *best)->id, stream_no, now))
		return 0;
	return pick_other(l, q, taker, now, best, passed);
}

/* Opens gates for a claim: the first GATES_LOOK of them, the others at the next one. */
static int
look_at_gates(struct ledger *l, struct ledger_queue *q, slu_time now)
{
	(void)ledger_gates_turn(l, q, now, GATES_LOOK);
	return q->gates ? ledger_gates_reserve(l, q) : 0;
}

/* LEDGER-15: the end of a lease that begins or continues at `at`. lease 0: of the message, or of its queue. */
static slu_time
lease_end(const struct ledger *l, const struct ledger_queue *q, const struct msg *m, slu_time lease, slu_time claimed,
	  slu_time at)
{
	const struct terms *const t = ledger_terms(l, m);
	const slu_time own = t->lease ? t->lease : q->policy->lease;
	const slu_time run = t->run ? t->run : q->policy->max_runtime;
	const slu_time end = time_add(at, lease ? lease : own), last = run ? time_add(claimed, run) : SLU_NEVER;

	return end < last ? end : last;
}

/* A CLAIM of the ready message, or its DIE. */
static int
decide_claim(struct ledger *l, const struct ledger_queue *q, uint32_t h, const struct ledger_taker *taker, slu_time now,
	     struct change *out)
{
	begin_here(l, CHANGE_CLAIM, h, now, out);
	out->reason = (uint8_t)is_over(l, q, ledger_msg(l, h), out->at);
	if (out->reason) {
		out->kind = CHANGE_DIE;
	} else {
		out->token = l->counter + 1;
		out->until = lease_end(l, q, ledger_msg(l, h), taker->lease, out->at, out->at);
		out->stream_no = taker->stream_no;
	}
	return promise_here(l, out);
}

int
ledger_claim_for(struct ledger *l, uint32_t queue, const struct ledger_taker *taker,
		 slu_time now, struct change *out, struct ledger_passed *passed)
{
	struct ledger_queue *q = ledger_queue(l, queue);
	const slu_time at = now > l->now ? now : l->now;
	uint32_t h;
	int rc;

	assert(taker->lease >= 0);
	out->kind = CHANGE_NONE; /* and nothing else of it counts */
	rc = q->gates ? look_at_gates(l, q, at) : 0;
	if (!rc)
		rc = pick_best(l, q, taker, at, &h, passed);
	if (rc || h == SLAB_NONE)
		return rc;
	return decide_claim(l, q, h, taker, now, out);
}

/* Returns whether a message is ready, and neither parked nor of a share or value at its limit. */
static bool
is_candidate(const struct ledger *l, const struct ledger_queue *q, const struct msg *m)
{
	const uint32_t flow = ledger_flow_of(l, m), strand = ledger_strand_of(l, m);
	struct share_view share = { 0 };
	struct value_view value = { 0 };

	if (flow != SHARES_PLAIN)
		shares_get(q->shares, shares_of(q->shares, flow), &share);
	if (strand != SLAB_NONE)
		values_get(q->values, values_of(q->values, strand), &value);
	return msg_state(m) == MSG_READY && !(m->flags & MSG_PARKED) && !share.blocked && !value.blocked;
}

int
ledger_claim_one(struct ledger *l, uint32_t msg, slu_time lease, slu_time now, struct change *out)
{
	struct ledger_queue *const q = ledger_queue_of(l, ledger_msg(l, msg));
	const struct ledger_taker taker = { .lease = lease };
	int rc;

	*out = ledger_begin(l, CHANGE_NONE, now);
	rc = q->gates ? look_at_gates(l, q, out->at) : 0;
	if (rc || ledger_best(q) == SLAB_NONE || !is_candidate(l, q, ledger_msg(l, msg)))
		return rc;
	return decide_claim(l, q, msg, &taker, now, out);
}

static int
find_ref(const struct ledger *l, const struct ledger_ref *ref, uint32_t *out)
{
	const uint32_t h = ledger_find(l, ref->space, ref->id);

	if (h == SLAB_NONE || (ledger_msg(l, h)->flags & MSG_TAKEN))
		return SLU_ENOTFOUND;
	if (ref->queue != SLAB_NONE && ledger_home(l, ledger_msg(l, h)) != ref->queue)
		return SLU_ENOTFOUND;
	*out = h;
	return 0;
}

/* LEDGER-6: the message that ref holds at the moment now. */
static int
find_held(const struct ledger *l, const struct ledger_ref *ref, slu_time now,
	  uint32_t *out)
{
	const struct msg *m;
	const int rc = find_ref(l, ref, out);

	if (rc)
		return rc;
	m = ledger_msg(l, *out);
	if (msg_state(m) != MSG_LEASED || node_time(heap_at(&l->deadlines, m->q.pos)) <= now)
		return SLU_ELEASE;
	if (ref->token == 0)
		return ledger_queue_of(l, m)->policy->require_lease ? SLU_ELEASE : 0;
	return ledger_lease(l, m)->token == ref->token ? 0 : SLU_ELEASE;
}

static bool
is_canceled(const struct ledger *l, uint32_t h)
{
	return ledger_lease(l, ledger_msg(l, h))->canceled;
}

/* LEDGER-17: the lease ends, and the message with it. */
static struct change
end_canceled(const struct ledger *l, uint32_t h, slu_time now)
{
	const struct msg *m = ledger_msg(l, h);
	struct change c = ledger_begin_for(l, CHANGE_DONE, h, now);

	c.queue = ledger_home(l, m);
	c.claimed = ledger_lease(l, m)->claimed;
	c.remember = ledger_remember(l, m, c.at);
	return c;
}

int
ledger_ack(struct ledger *l, const struct ledger_ref *ref, slu_time now,
	   struct change *out)
{
	const struct msg *m;
	uint32_t h;
	int rc;

	rc = find_held(l, ref, now, &h);
	if (rc)
		return rc;
	m = ledger_msg(l, h);
	begin_here(l, CHANGE_DONE, h, now, out);
	out->queue = ledger_home(l, m);
	out->claimed = ledger_lease(l, m)->claimed;
	if (ledger_keep(l, m))
		out->keep = time_add(out->at, ledger_keep(l, m) * SLU_SEC);
	out->remember = ledger_remember(l, m, out->at);
	return promise_here(l, out);
}

int
ledger_extend(struct ledger *l, const struct ledger_ref *ref, slu_time lease,
	      slu_time now, struct change *out)
{
	const struct ledger_queue *q;
	struct change c;
	uint32_t h;
	int rc;

	assert(lease >= 0);
	rc = find_held(l, ref, now, &h);
	if (rc)
		return rc;
	if (is_canceled(l, h))
		return SLU_ESTOP;
	q = ledger_queue_of(l, ledger_msg(l, h));
	c = ledger_begin_for(l, CHANGE_EXTEND, h, now);
	c.until = lease_end(l, q, ledger_msg(l, h), lease, ledger_lease(l, ledger_msg(l, h))->claimed, c.at);
	return ledger_promise(l, &c, out);
}

int
ledger_return(struct ledger *l, const struct ledger_ref *ref, slu_time now,
	      struct change *out)
{
	uint32_t h;
	const int rc = find_held(l, ref, now, &h);

	if (!rc)
		*out = is_canceled(l, h) ? end_canceled(l, h, now) : ledger_begin_for(l, CHANGE_RETURN, h, now);
	return rc;
}

int
ledger_spare(struct ledger *l, const struct ledger_ref *ref, slu_time now,
	     struct change *out)
{
	const struct msg *m;
	uint32_t h;
	const int rc = find_held(l, ref, now, &h);

	if (rc)
		return rc;
	m = ledger_msg(l, h);
	*out = ledger_begin(l, CHANGE_NONE, now);
	if (is_canceled(l, h))
		*out = end_canceled(l, h, now);
	else if (!(m->flags & (MSG_EXTENDED | MSG_SPARED)) &&
		 now - ledger_lease(l, m)->claimed <= LEDGER_SPARE_TIME)
		*out = ledger_begin_for(l, CHANGE_SPARE, h, now);
	return 0;
}

int
ledger_quarantine(struct ledger *l, const struct ledger_ref *ref, slu_time now,
		  struct change *out)
{
	uint32_t h;
	const int rc = find_held(l, ref, now, &h);

	if (!rc)
		*out = ledger_begin_for(l, CHANGE_QUARANTINE, h, now);
	return rc;
}

int
ledger_set_priority(struct ledger *l, const struct ledger_ref *ref, int32_t prio, slu_time now, struct change *out)
{
	struct change c;
	uint32_t h;
	const int rc = find_held(l, ref, now, &h);

	if (rc)
		return rc;
	c = ledger_begin_for(l, CHANGE_PRIORITY, h, now);
	c.prio = prio;
	return ledger_promise(l, &c, out);
}

static slu_time
retry_delay(const struct ledger *l, const struct ledger_queue *q, const struct msg *m, const struct ledger_nack *nack)
{
	const struct slu_backoff b = terms_retry(ledger_terms(l, m), &q->policy->retry);

	if (nack->delay >= 0)
		return nack->delay;
	if (nack->defer)
		return 0;
	return backoff_delay(&b, m->failures + 1u, nack->random);
}

int
ledger_reserve_error(struct ledger *l)
{
	return slab_reserve(&l->more, 1);
}

int
ledger_nack(struct ledger *l, const struct ledger_ref *ref,
	    const struct ledger_nack *nack, slu_time now, struct change *out)
{
	struct change c;
	uint32_t h;
	int rc;

	rc = find_held(l, ref, now, &h);
	if (!rc)
		rc = ledger_reserve_error(l);
	if (rc)
		return rc;

	if (is_canceled(l, h)) {
		c = end_canceled(l, h, now);
		return ledger_promise(l, &c, out);
	}

	const struct msg *m = ledger_msg(l, h);
	const struct ledger_queue *q = ledger_queue_of(l, m);

	c = ledger_begin_for(l, CHANGE_RETRY, h, now);
	c.claimed = ledger_lease(l, m)->claimed;
	c.failed = nack->dead || !nack->defer;
	if (nack->dead)
		c.reason = DEAD_REJECTED;
	else if (c.failed && m->failures + 1u >= ledger_max_attempts(q, m))
		c.reason = DEAD_MAX_ATTEMPTS;
	if (c.reason)
		c.kind = CHANGE_DIE;
	else
		c.due = time_add(c.at, retry_delay(l, q, m, nack));
	*out = c;
	return 0;
}

/* Operators */

/* MOVE-5 of engine/move.h: the key may have messages on another shard, or be moving there. */
static bool
is_torn(const struct ledger *l, const struct ledger_ref *ref, const struct msg *m)
{
	const struct ledger_queue *q = ledger_queue_of(l, m);
	const bool apart = ref->apart || ledger_is_elsewhere(l, q->handle, ref->epoch);
	const struct order_key *k;

	if (!(m->flags & MSG_KEYED))
		return false;
	k = ledger_key_of(l, m);
	return k->taken || (apart && k->refs == k->idle);
}

/* A delayed message whose place in the sequence of a key does not matter. */
static bool
is_waiting(const struct msg *m)
{
	return msg_state(m) == MSG_DELAYED && !(m->flags & MSG_KEYED);
}

int
ledger_redrive(struct ledger *l, const struct ledger_ref *ref, slu_time now,
	       struct change *out)
{
	uint32_t h;
	const int rc = find_ref(l, ref, &h);

	if (rc)
		return rc;
	if (msg_state(ledger_msg(l, h)) != MSG_DEAD && !(ref->delayed && is_waiting(ledger_msg(l, h))))
		return SLU_ENOTFOUND;
	if (is_torn(l, ref, ledger_msg(l, h)))
		return SLU_ECONFLICT;
	*out = ledger_begin_for(l, CHANGE_REDRIVE, h, now);
	out->number = l->counter + 1;
	return 0;
}

/* LEDGER-3: it has joined, and others may stand behind it. */
static bool
is_in_sequence(const struct msg *m)
{
	return (m->flags & MSG_KEYED) && (msg_state(m) != MSG_DELAYED || (m->flags & MSG_HOLDS));
}

static int
check_adjust(const struct msg *m, const struct ledger_adjust *adjust)
{
	const enum msg_state state = msg_state(m);

	if (state == MSG_LEASED)
		return SLU_ELEASE;
	if (state != MSG_READY && state != MSG_DELAYED && state != MSG_HELD)
		return SLU_ENOTFOUND;
	if (adjust->guarded && (m->q.prio != adjust->was_prio || m->q.due != adjust->was_due))
		return SLU_ECONFLICT;
	return !adjust->has_prio && is_in_sequence(m) ? SLU_ECONFLICT : 0;
}

int
ledger_adjust(struct ledger *l, const struct ledger_ref *ref, const struct ledger_adjust *adjust, slu_time now,
	      struct change *out)
{
	struct change c;
	uint32_t h;
	int rc = find_ref(l, ref, &h);

	if (!rc)
		rc = check_adjust(ledger_msg(l, h), adjust);
	if (rc)
		return rc;
	c = ledger_begin_for(l, adjust->has_prio ? CHANGE_PRIORITY : CHANGE_DUE, h, now);
	c.prio = adjust->prio;
	c.due = adjust->due > c.at ? adjust->due : c.at;
	return ledger_promise(l, &c, out);
}

int
ledger_delete(struct ledger *l, const struct ledger_ref *ref, slu_time now,
	      struct change *out)
{
	uint32_t h;
	const int rc = find_ref(l, ref, &h);

	if (rc)
		return rc;
	if (msg_state(ledger_msg(l, h)) == MSG_LEASED)
		return SLU_ELEASE;
	*out = ledger_begin_for(l, CHANGE_DONE, h, now);
	out->remember = ledger_remember(l, ledger_msg(l, h), out->at);
	return 0;
}

int
ledger_cancel(struct ledger *l, const struct ledger_ref *ref, slu_time now,
	      struct change *out)
{
	uint32_t h;
	const int rc = find_ref(l, ref, &h);

	if (rc || msg_state(ledger_msg(l, h)) != MSG_LEASED)
		return rc ? rc : ledger_delete(l, ref, now, out);
	*out = ledger_begin_for(l, is_canceled(l, h) ? CHANGE_NONE : CHANGE_CANCEL, h, now);
	return 0;
}

int
ledger_purge(struct ledger *l, uint32_t queue, slu_time now, struct change *out)
{
	const struct ledger_queue *q = ledger_queue(l, queue);
	struct change c = ledger_begin(l, CHANGE_PURGE, now);

	if (q->purging)
		return SLU_EBUSY;
	if (ledger_batch_of(q))
		return SLU_ECONFLICT;
	c.queue = queue;
	c.number = l->counter;
	c.remember = time_add(c.at, q->policy->window);
	return ledger_promise(l, &c, out);
}

int
ledger_set_policy(struct ledger *l, uint32_t queue, const struct policy *policy,
		  slu_time now, struct change *out)
{
	struct change c = ledger_begin(l, CHANGE_POLICY, now);
	const int rc = policy_check(policy, NULL);

	c.queue = queue;
	c.policy = policy;
	return rc ? rc : ledger_promise(l, &c, out);
}

void
ledger_opened(struct ledger *l, slu_time now, struct change *out)
{
	*out = ledger_begin(l, CHANGE_OPENED, now);
}

uint64_t
ledger_counter(const struct ledger *l)
{
	return l->counter;
}

void
ledger_set_counter(struct ledger *l, uint64_t counter)
{
	if (counter > l->counter)
		l->counter = counter;
}
