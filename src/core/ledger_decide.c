/*
 * ledger_decide.c - what producers and consumers ask for, checked.
 */
#include "core/ledger_in.h"

#include "core/backoff.h"

#include <assert.h>

/* The moment a change happens: shard time never goes back. */
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
	if (m->more == SLAB_NONE || ledger_more(l, m)->idem == SLAB_NONE)
		return 0;
	return later(at, ledger_topic_of(l, m)->policy.window);
}

/* A change is promised only with memory for it; else there is none. */
static int
promise(struct ledger *l, const struct change *c, struct change *out)
{
	const int rc = ledger_reserve(l, c);

	if (!rc)
		*out = *c;
	return rc;
}

/* Producers */

/* V7 of engine/move.h */
static bool
is_taken(const struct ledger *l, const struct topic *t, uint64_t key)
{
	const uint32_t h = key ? ledger_key_find(l, t->handle, key) : SLAB_NONE;

	return h != SLAB_NONE && ledger_key(l, h)->taken;
}

/* Did another payload come under this key? What is not known is no other one. */
static bool
is_other(const struct ledger *l, uint32_t known, uint64_t digest)
{
	const uint64_t first = digest ? idem_digest(&l->idem, known) : 0;

	return first && first != digest;
}

static int
check_limits(struct ledger *l, const struct topic *t, const struct change *c,
	     struct change *out)
{
	const uint32_t most = t->policy.max_depth ? t->policy.max_depth : l->limits.max_depth;
	uint32_t known;

	if (idem_is_set(c->idem)) {
		known = idem_find(&l->idem, c->idem, c->at);
		if (known != SLAB_NONE) {
			*out = ledger_begin(l, CHANGE_NONE, c->at);
			out->id = idem_id(&l->idem, known);
			return is_other(l, known, c->digest) ? SLU_EIDEM : SLU_EEXISTS;
		}
		if (l->conf.max_idem && idem_count(&l->idem) >= l->conf.max_idem)
			return SLU_EBUSY;
	}
	if (most && ledger_depth(t) >= most)
		return SLU_EQFULL;
	return ledger_batch_of(t) && is_taken(l, t, c->key) ? SLU_ECONFLICT : 0;
}

int
ledger_accept(struct ledger *l, uint32_t queue, const struct ledger_offer *offer,
	      slu_time now, struct change *out)
{
	const struct topic *t = ledger_topic(l, queue);
	const slu_time ttl = offer->ttl ? offer->ttl : t->policy.ttl;
	struct change c = ledger_begin(l, CHANGE_ACCEPT, now);
	int rc;

	assert(offer->id && offer->where <= LEDGER_WHERE_MAX && ttl >= 0);
	c.queue = queue;
	c.id = offer->id;
	c.number = l->counter + 1;
	c.prio = offer->prio;
	c.due = offer->due > c.at ? offer->due : c.at;
	c.expires = ttl ? later(c.at, ttl) : 0;
	c.max_attempts = offer->max_attempts;
	c.keep = offer->keep_result;
	c.where = offer->where;
	if (offer->key.n)
		c.key = ledger_key_hash(l, queue, offer->key);
	if (offer->idem.n) {
		c.idem = ledger_idem_mark(l, queue, offer->idem);
		c.digest = t->policy.strict ? offer->digest : 0;
	}
	rc = check_limits(l, t, &c, out);
	return rc ? rc : promise(l, &c, out);
}

/* Consumers */

/* L8: why a message may not be handed out, or DEAD_NOT. */
static enum dead_reason
is_over(const struct ledger *l, const struct topic *t, const struct msg *m,
	slu_time now)
{
	if (ledger_expires(l, m) <= now)
		return DEAD_EXPIRED;
	if (m->failures >= ledger_max_attempts(t, m))
		return DEAD_MAX_ATTEMPTS;
	return DEAD_NOT;
}

/* L13: the best ready message but those that the stream has just failed; or SLAB_NONE. */
static int
pick_other(const struct ledger *l, const struct topic *t, uint32_t flow, slu_time now,
	   uint32_t *best, struct ledger_passed *passed)
{
	uint32_t msgs[SHUN_MAX + 1], n;
	const int rc = ledger_peek_heap(&t->queue.ready, msgs, shun_count(&l->shun, flow, now) + 1, &n);

	*best = SLAB_NONE;
	*passed = (struct ledger_passed){ .until = SLU_NEVER };
	for (uint32_t i = 0; !rc && i < n; i++) {
		const slu_time until = shun_until(&l->shun, ledger_msg(l, msgs[i])->id, flow, now);

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
pick_best(const struct ledger *l, const struct topic *t, uint32_t flow, slu_time now,
	  uint32_t *best, struct ledger_passed *passed)
{
	*passed = (struct ledger_passed){ 0 };
	*best = t->policy.paused ? SLAB_NONE : queue_best(&t->queue);
	if (!flow || *best == SLAB_NONE || !shun_until(&l->shun, ledger_msg(l, *best)->id, flow, now))
		return 0;
	return pick_other(l, t, flow, now, best, passed);
}

int
ledger_claim(struct ledger *l, uint32_t queue, slu_time lease, slu_time now,
	     struct change *out)
{
	struct ledger_passed passed;

	return ledger_claim_for(l, queue, &(struct ledger_taker){ .lease = lease }, now, out, &passed);
}

int
ledger_claim_for(struct ledger *l, uint32_t queue, const struct ledger_taker *taker,
		 slu_time now, struct change *out, struct ledger_passed *passed)
{
	const struct topic *t = ledger_topic(l, queue);
	struct change c;
	uint32_t h;
	int rc;

	assert(taker->lease >= 0);
	*out = ledger_begin(l, CHANGE_NONE, now);
	rc = pick_best(l, t, taker->flow, out->at, &h, passed);
	if (rc || h == SLAB_NONE)
		return rc;
	c = ledger_begin_for(l, CHANGE_CLAIM, h, now);
	c.reason = (uint8_t)is_over(l, t, ledger_msg(l, h), c.at);
	if (c.reason) {
		c.kind = CHANGE_DIE;
	} else {
		c.token = l->counter + 1;
		c.until = later(c.at, taker->lease ? taker->lease : t->policy.lease);
		c.flow = taker->flow;
	}
	return promise(l, &c, out);
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

/* L6: the message that ref holds at the moment now. */
static int
find_held(const struct ledger *l, const struct ledger_ref *ref, slu_time now,
	  uint32_t *out)
{
	const struct msg *m;
	const int rc = find_ref(l, ref, out);

	if (rc)
		return rc;
	m = ledger_msg(l, *out);
	if (msg_state(m) != MSG_LEASED || node_time(&l->deadlines, m->q.pos) <= now)
		return SLU_ELEASE;
	if (ref->token == 0)
		return ledger_topic_of(l, m)->policy.require_lease ? SLU_ELEASE : 0;
	return ledger_lease(l, m)->token == ref->token ? 0 : SLU_ELEASE;
}

int
ledger_ack(struct ledger *l, const struct ledger_ref *ref, slu_time now,
	   struct change *out)
{
	const struct msg *m;
	struct change c;
	uint32_t h;
	int rc;

	rc = find_held(l, ref, now, &h);
	if (rc)
		return rc;
	m = ledger_msg(l, h);
	c = ledger_begin_for(l, CHANGE_DONE, h, now);
	c.queue = ledger_home(l, m);
	c.claimed = ledger_lease(l, m)->claimed;
	if (m->more != SLAB_NONE) {
		const struct more *more = ledger_more(l, m);

		if (more->keep)
			c.keep = later(c.at, more->keep * SLU_SEC);
	}
	c.remember = ledger_remember(l, m, c.at);
	return promise(l, &c, out);
}

int
ledger_extend(struct ledger *l, const struct ledger_ref *ref, slu_time lease,
	      slu_time now, struct change *out)
{
	const struct topic *t;
	struct change c;
	uint32_t h;
	int rc;

	assert(lease >= 0);
	rc = find_held(l, ref, now, &h);
	if (rc)
		return rc;
	t = ledger_topic_of(l, ledger_msg(l, h));
	c = ledger_begin_for(l, CHANGE_EXTEND, h, now);
	c.until = later(c.at, lease ? lease : t->policy.lease);
	return promise(l, &c, out);
}

int
ledger_return(struct ledger *l, const struct ledger_ref *ref, slu_time now,
	      struct change *out)
{
	uint32_t h;
	const int rc = find_held(l, ref, now, &h);

	if (!rc)
		*out = ledger_begin_for(l, CHANGE_RETURN, h, now);
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
	if (!(m->flags & (MSG_EXTENDED | MSG_SPARED)) &&
	    now - ledger_lease(l, m)->claimed <= LEDGER_SPARE_TIME)
		*out = ledger_begin_for(l, CHANGE_SPARE, h, now);
	return 0;
}

int
ledger_aside(struct ledger *l, const struct ledger_ref *ref, slu_time now,
	     struct change *out)
{
	uint32_t h;
	const int rc = find_held(l, ref, now, &h);

	if (!rc)
		*out = ledger_begin_for(l, CHANGE_ASIDE, h, now);
	return rc;
}

static slu_time
retry_delay(const struct topic *t, const struct msg *m, const struct ledger_nack *nack)
{
	if (nack->delay >= 0)
		return nack->delay;
	if (nack->defer)
		return 0;
	return backoff_delay(&t->policy.retry, m->failures + 1u, nack->random);
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
		rc = slab_reserve(&l->more, 1); /* for an error text */
	if (rc)
		return rc;

	const struct msg *m = ledger_msg(l, h);
	const struct topic *t = ledger_topic_of(l, m);

	c = ledger_begin_for(l, CHANGE_RETRY, h, now);
	c.claimed = ledger_lease(l, m)->claimed;
	c.failed = nack->dead || !nack->defer;
	if (nack->dead)
		c.reason = DEAD_REJECTED;
	else if (c.failed && m->failures + 1u >= ledger_max_attempts(t, m))
		c.reason = DEAD_MAX_ATTEMPTS;
	if (c.reason)
		c.kind = CHANGE_DIE;
	else
		c.due = later(c.at, retry_delay(t, m, nack));
	*out = c;
	return 0;
}

/* Operators */

/* V5 of engine/move.h: its key may have a line on another shard, or be on its way there. */
static bool
is_torn(const struct ledger *l, const struct ledger_ref *ref, const struct msg *m)
{
	const struct topic *t = ledger_topic_of(l, m);
	const bool apart = ref->apart || (t->moving && t->moving->lives[0]);
	const struct key *k;

	if (!(m->flags & MSG_KEYED))
		return false;
	k = ledger_key_of(l, m);
	return k->taken || (apart && k->refs == k->idle);
}

int
ledger_redrive(struct ledger *l, const struct ledger_ref *ref, slu_time now,
	       struct change *out)
{
	uint32_t h;
	const int rc = find_ref(l, ref, &h);

	if (rc)
		return rc;
	if (msg_state(ledger_msg(l, h)) != MSG_DEAD)
		return SLU_ENOTFOUND;
	if (is_torn(l, ref, ledger_msg(l, h)))
		return SLU_ECONFLICT;
	*out = ledger_begin_for(l, CHANGE_REDRIVE, h, now);
	out->number = l->counter + 1;
	return 0;
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
ledger_purge(struct ledger *l, uint32_t queue, slu_time now, struct change *out)
{
	const struct topic *t = ledger_topic(l, queue);
	struct change c = ledger_begin(l, CHANGE_PURGE, now);

	if (t->purging)
		return SLU_EBUSY;
	if (ledger_batch_of(t))
		return SLU_ECONFLICT;
	c.queue = queue;
	c.number = l->counter;
	c.remember = later(c.at, t->policy.window);
	return promise(l, &c, out);
}

int
ledger_set_policy(struct ledger *l, uint32_t queue, const struct policy *policy,
		  slu_time now, struct change *out)
{
	const int rc = policy_check(policy, NULL);

	if (rc)
		return rc;
	*out = ledger_begin(l, CHANGE_POLICY, now);
	out->queue = queue;
	out->policy = policy;
	return 0;
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

uint64_t
ledger_highest_id(const struct ledger *l)
{
	return l->highest_id;
}

void
ledger_set_counter(struct ledger *l, uint64_t counter)
{
	if (counter > l->counter)
		l->counter = counter;
}
