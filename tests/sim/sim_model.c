#include "sim_model.h"

void
model_init(struct sim_model *m)
{
	m->n = m->n_gone = m->n_results = 0;
	m->expired = m->died = 0;
	memset(m->idems, 0, sizeof m->idems);
	memset(m->top, 0, sizeof m->top);
	memset(m->locks, 0, sizeof m->locks);
	memset(m->key_top, 0, sizeof m->key_top);
	EACH(q, m->queues)
		m->queues[q] = (struct model_queue){
			.policy = policy_default,
			.least_window = policy_default.window,
			.least_attempts = policy_default.max_attempts,
		};
}

struct sim_msg *
model_find(struct sim_model *m, uint64_t id)
{
	EACH_MSG(x, m)
	if (x->id == id)
		return x;
	return NULL;
}

bool
model_is_gone(const struct sim_model *m, uint64_t id)
{
	for (unsigned i = m->n_gone; i-- > 0;)
		if (m->gone[i] == id)
			return true;
	return false;
}

struct sim_msg *
model_add(struct sim_model *m)
{
	if (m->n == MODEL_MSGS)
		return NULL;
	m->msgs[m->n] = (struct sim_msg){ .key = -1, .idem = -1, .expires = SLU_NEVER };
	return &m->msgs[m->n++];
}

void
model_forget(struct sim_model *m, struct sim_msg *x)
{
	*x = m->msgs[--m->n];
}

void
model_remove(struct sim_model *m, struct sim_msg *x, slu_time must, slu_time may)
{
	const slu_time window = m->queues[x->queue].policy.window;

	if (x->idem >= 0) {
		struct sim_idem *i = &m->idems[x->queue][x->idem];

		if (i->live && i->id == x->id) {
			i->live = false;
			i->doubt = must == 0; /* by which policy? */
			i->must = must + window;
			i->may = may + window + (window <= 2 * SLU_HOUR ? 2 * SLU_SEC : SLU_HOUR);
		}
	}
	if (m->n_gone < MODEL_GONE)
		m->gone[m->n_gone++] = x->id;
	model_forget(m, x);
}

static bool
is_before(const struct sim_msg *a, const struct sim_msg *b)
{
	return a->due < b->due || (a->due == b->due && a->number < b->number);
}

/* LEDGER-3: the head of its key, which may be x itself. */
static const struct sim_msg *
head_of(const struct sim_model *m, const struct sim_msg *x)
{
	const struct sim_msg *best = NULL;

	for (unsigned i = 0; i < m->n; i++) {
		const struct sim_msg *y = &m->msgs[i];

		if (y->queue != x->queue || y->key != x->key || y->state == M_DEAD)
			continue;
		if (y->holds)
			return y;
		if (!y->delayed && (!best || is_before(y, best)))
			best = y;
	}
	return best;
}

enum msg_state
model_state(struct sim_model *m, const struct sim_msg *x)
{
	if (x->state != M_WAIT)
		return x->state == M_LEASED ? MSG_LEASED : MSG_DEAD;
	if (x->delayed)
		return MSG_DELAYED;
	return x->key >= 0 && head_of(m, x) != x ? MSG_HELD : MSG_READY;
}

/* LEDGER-2 */
struct sim_msg *
model_best(struct sim_model *m, unsigned queue)
{
	struct sim_msg *best = NULL;

	EACH_MSG(x, m)
	{
		if (x->queue != queue || x->state != M_WAIT || x->delayed)
			continue;
		if (best && (x->prio > best->prio ||
			     (x->prio == best->prio && !is_before(x, best))))
			continue;
		if (model_state(m, x) == MSG_READY)
			best = x;
	}
	return best;
}

unsigned
model_max_attempts(const struct sim_model *m, const struct sim_msg *x)
{
	return x->max_attempts ? x->max_attempts : m->queues[x->queue].policy.max_attempts;
}

unsigned
model_depth(const struct sim_model *m, unsigned queue)
{
	unsigned n = 0;

	for (unsigned i = 0; i < m->n; i++)
		n += m->msgs[i].queue == queue && m->msgs[i].state != M_DEAD;
	return n;
}

void
model_die(struct sim_model *m, struct sim_msg *x, enum dead_reason why, slu_time now)
{
	x->state = M_DEAD;
	x->reason = why;
	x->died = now;
	x->expires = SLU_NEVER;
	x->holds = x->delayed = x->fading = false;
	m->died++;
}

static void
end_lease(struct sim_model *m, struct sim_msg *x, slu_time now)
{
	m->expired++;
	x->failures++;
	if (x->failures >= model_max_attempts(m, x)) {
		model_die(m, x, DEAD_MAX_ATTEMPTS, now);
		return;
	}
	x->state = M_WAIT;
	x->due = x->until;
	x->doubt |= DOUBT_FRESH; /* it will run out again */
}

/* The dead letter to be deleted next, or NULL. One that may be none any more stays. */
static struct sim_msg *
retired(struct sim_model *m, unsigned queue, slu_time until)
{
	const struct policy *p = &m->queues[queue].policy;
	struct sim_msg *oldest = NULL;

	EACH_MSG(x, m)
	{
		if (x->queue != queue || x->state != M_DEAD || (x->doubt & DOUBT_STATE))
			continue;
		if (!oldest || x->died < oldest->died ||
		    (x->died == oldest->died && x->number < oldest->number))
			oldest = x;
	}
	return p->dlq_retention && oldest && oldest->died + p->dlq_retention <= until ? oldest
										      : NULL;
}

/* Beyond dlq_max the oldest go; of those that died at one moment it may be any, and when
 * in the run is not said. */
static void
fade(struct sim_model *m, unsigned queue)
{
	const uint32_t max = m->queues[queue].policy.dlq_max;
	unsigned n = 0;

	EACH_MSG(x, m)
	n += x->queue == queue && x->state == M_DEAD;
	EACH_MSG(x, m)
	if (max && n > max && x->queue == queue && x->state == M_DEAD)
		x->fading = true;
}

bool
model_tick(struct sim_model *m, unsigned shard, slu_time until, slu_time now)
{
	const unsigned long died = m->died;
	const unsigned gone = m->n_gone;

	EACH_MSG(x, m)
	{
		if (m->queues[x->queue].shard != shard)
			continue;
		if (x->state == M_LEASED && x->until <= until)
			end_lease(m, x, now);
		if (x->state == M_WAIT && x->expires <= until)
			model_die(m, x, DEAD_EXPIRED, now);
		if (x->state == M_WAIT && x->delayed && x->due <= until)
			x->delayed = false;
	}
	for (unsigned q = 0; q < MODEL_QUEUES; q++) {
		struct sim_msg *x;

		if (m->queues[q].shard != shard)
			continue;
		fade(m, q);
		while ((x = retired(m, q, until)) != NULL)
			model_remove(m, x, x->doubt & DOUBT_OUT || x->fading ? 0 : until, now);
	}
	for (unsigned i = 0; i < m->n_results;) {
		struct sim_kept *r = &m->results[i];

		if (m->queues[r->queue].shard != shard || r->until > until) {
			i++;
			continue;
		}
		m->over[shard] = r->until > m->over[shard] ? r->until : m->over[shard];
		*r = m->results[--m->n_results];
	}
	return m->died != died || m->n_gone != gone;
}

int
model_right(struct sim_model *m, unsigned queue, uint64_t id, uint64_t token, slu_time now,
	    struct sim_msg **out)
{
	struct sim_msg *x = model_find(m, id);

	*out = x;
	if (!x || x->queue != queue)
		return SLU_ENOTFOUND;
	if (x->state != M_LEASED || x->until <= now)
		return SLU_ELEASE;
	if (token == 0)
		return m->queues[queue].policy.require_lease ? SLU_ELEASE : 0;
	return token == x->token ? 0 : SLU_ELEASE;
}

void
model_synced(struct sim_model *m, unsigned shard)
{
	EACH_MSG(x, m)
	if (m->queues[x->queue].shard == shard)
		x->doubt &= (unsigned)~(DOUBT_POWER | DOUBT_FRESH);
}

void
model_settle_one(struct sim_msg *x, slu_time mono)
{
	if (x->written + SLU_SEC <= mono)
		x->doubt &= (unsigned)~DOUBT_POWER;
	if (x->doubt & DOUBT_FRESH) {
		x->doubt = (x->doubt | DOUBT_POWER) & (unsigned)~DOUBT_FRESH;
		x->written = mono;
	}
}

void
model_settle(struct sim_model *m, unsigned shard, slu_time mono)
{
	EACH_MSG(x, m)
	{
		if (m->queues[x->queue].shard == shard)
			model_settle_one(x, mono);
	}
}

bool
model_same_policy(const struct policy *a, const struct policy *b)
{
	return a->lease == b->lease && a->max_attempts == b->max_attempts &&
	       a->retry.kind == b->retry.kind && a->retry.jitter == b->retry.jitter &&
	       a->retry.base == b->retry.base && a->retry.max == b->retry.max &&
	       a->ttl == b->ttl && a->max_depth == b->max_depth && a->window == b->window &&
	       a->dlq_retention == b->dlq_retention && a->dlq_max == b->dlq_max &&
	       a->require_lease == b->require_lease && a->paused == b->paused;
}

bool
model_keeps_result(const struct sim_model *m, uint64_t id, unsigned *at)
{
	for (*at = 0; *at < m->n_results; ++*at)
		if (m->results[*at].id == id)
			return true;
	return false;
}

void
model_add_result(struct sim_model *m, const struct sim_kept *r)
{
	if (m->n_results < MODEL_RESULTS)
		m->results[m->n_results++] = *r;
}
