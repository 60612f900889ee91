/*
 * relay_verbs.c - how each verb follows the path of a queue that moves.
 */
#include "broker/relay_in.h"

#include "base/limit.h"
#include "core/policy.h"

#include <stdio.h>

/* Above the cursor of an engine, which is a number or an id: which shard of the path it is
 * of. An id reaches bit 62 in 2058. */
enum {
	LIST_AT = 62,
	LIST_HOME = 3 /* the others: one less than their place in the path */
};

#define LIST_MASK ((1ull << LIST_AT) - 1)

/* ---- What they share ---- */

static slu_time
now_of(const struct relay *r)
{
	return clock_boot(r->all->env.clock);
}

static bool
is_over(const struct relay *r)
{
	const struct relay_env *const env = &r->all->env;

	return r->wait == 0 || now_of(r) >= r->until || env->is_draining(env->arg);
}

/* What is left of its wait. */
static slu_time
rest(const struct relay *r)
{
	const slu_time left = r->until - now_of(r);

	return r->wait == 0 || left < 0 ? 0 : left;
}

static slu_time
slice_of_wait(const struct relay *r)
{
	const slu_time left = rest(r);

	return left < RELAY_SLICE ? left : RELAY_SLICE;
}

/* The queue lives elsewhere; and if nobody can say where, there is nobody else to ask. */
static bool
is_elsewhere(const struct relay *r)
{
	return r->op->elsewhere[0] != '\0' && r->why != SLU_EMOVED;
}

/* A shard that could not answer. */
static bool
is_failure(int rc)
{
	return rc == SLU_EDOWN || rc == SLU_EUNKNOWN || rc == SLU_ECLOSED;
}

bool
relay_in_move(const struct op *op)
{
	return op->rc == SLU_EBUSY && limit_by_name(op->err.limit) == LIMIT_MOVE;
}

static void
remember_why(struct relay *r)
{
	if (r->why)
		return;
	r->why = r->op->rc;
	r->err = r->op->err;
}

/* Nobody has it; Y3. */
static enum relay_next
nobody(struct relay *r)
{
	if (is_elsewhere(r))
		return RELAY_LEARN;
	if (r->why)
		op_fail(r->op, r->why, &r->err);
	return RELAY_DONE;
}

/* ---- Enqueue ---- */

static void
note_taken(struct relay *r)
{
	for (uint32_t i = 0; i < r->op->n_puts; i++)
		r->took |= r->op->puts[i].taken;
}

/* Does a former shard say that the queue lives where we think? */
static bool
leads_home(const struct relay *r)
{
	const struct relay_env *const env = &r->all->env;

	return strcmp(r->op->elsewhere, env->name(env->arg, r->path.lanes[0])) == 0;
}

static enum relay_next
put_answered(struct relay *r)
{
	struct op *const op = r->op;

	if (relay_in_move(op))
		return RELAY_STAY;
	if (op->rc == SLU_EMOVED) {
		note_taken(r);
		if (r->recalls)
			return RELAY_ON;
		return relay_is_home(r) || !leads_home(r) ? RELAY_LEARN : RELAY_ON;
	}
	if (op->rc && r->took)
		op_fail(op, SLU_EUNKNOWN, NULL); /* Y1 */
	return RELAY_DONE;
}

/* ---- Items ---- */

/* Those that were dealt with are left alone from here on. Returns how many are open. */
static uint32_t
settle_items(struct op *op)
{
	uint32_t open = 0;

	for (uint32_t i = 0; i < op->n_items; i++) {
		struct op_item *const item = &op->items[i];

		if (!item->taken && op->rc == 0 && item->rc != SLU_ENOTFOUND)
			item->taken = true;
		open += !item->taken;
	}
	return open;
}

/* All were asked: who is still open has the failure of whoever could not be asked. */
static enum relay_next
end_items(struct relay *r, uint32_t open)
{
	struct op *const op = r->op;
	int rc = op->rc ? op->rc : r->why;

	if (r->unknown)
		rc = SLU_EUNKNOWN;
	if (open == op->n_items && op->rc) {
		if (rc != op->rc)
			op_fail(op, rc, NULL); /* a former shard may have done it */
		return RELAY_DONE;
	}
	for (uint32_t i = 0; rc && i < op->n_items; i++)
		if (!op->items[i].taken)
			op->items[i].rc = rc;
	op->rc = 0;
	return RELAY_DONE;
}

static enum relay_next
items_answered(struct relay *r)
{
	struct op *const op = r->op;
	uint32_t open;

	if (relay_in_move(op))
		return RELAY_STAY;
	open = settle_items(op);
	r->took |= open < op->n_items;
	r->unknown |= op->rc == SLU_EUNKNOWN;
	if (open && op->rc == 0 && relay_is_home(r) && is_elsewhere(r))
		return RELAY_LEARN;
	if (open == 0 || relay_is_home(r))
		return end_items(r, open);
	if (op->rc)
		remember_why(r);
	return RELAY_ON;
}

/* ---- Claim, peek, watch ---- */

static void
claim_ask(struct relay *r)
{
	r->op->wait = relay_is_home(r) ? slice_of_wait(r) : 0;
}

static enum relay_next
claim_answered(struct relay *r)
{
	struct op *const op = r->op;

	if (op->n_rows)
		return RELAY_DONE;
	if (!relay_is_home(r))
		return RELAY_ON;
	if (op->rc == SLU_EBUSY && r->waited)
		op->rc = 0; /* others have taken its place meanwhile */
	if (op->rc == 0 && is_elsewhere(r))
		return RELAY_LEARN;
	if (op->rc || is_over(r))
		return RELAY_DONE;
	r->waited = true;
	return RELAY_AGAIN;
}

/* A former shard is asked for its head, whatever is known; if that is what is known, it is
 * waited for there. */
static void
watch_ask(struct relay *r)
{
	if (relay_is_home(r)) {
		r->op->id = r->id;
		r->op->wait = slice_of_wait(r);
	} else {
		r->op->id = r->same ? r->id : 0;
		r->op->wait = r->same ? slice_of_wait(r) : 0;
	}
}

static enum relay_next
watch_former(struct relay *r)
{
	struct op *const op = r->op;

	if (op->rc == 0 && op->id && op->id != r->id)
		return RELAY_DONE;
	if (op->rc == 0 && op->id == 0)
		r->same = false;
	else if (op->rc == 0)
		r->same = true;
	if (!r->same)
		return RELAY_ON;
	if (!is_over(r))
		return RELAY_AGAIN;
	op->id = r->id;
	op_fail(op, SLU_ETIMEOUT, NULL);
	return RELAY_DONE;
}

static enum relay_next
watch_answered(struct relay *r)
{
	const int rc = r->op->rc;

	if (!relay_is_home(r) && (rc == 0 || rc == SLU_ETIMEOUT))
		return watch_former(r);
	if (!relay_is_home(r))
		return RELAY_ON;
	if (rc && rc != SLU_ETIMEOUT)
		return RELAY_DONE;
	if (is_elsewhere(r))
		return RELAY_LEARN;
	return rc == 0 || is_over(r) ? RELAY_DONE : RELAY_AGAIN;
}

/* ---- The first that knows it ---- */

static void
wait_whole(struct relay *r)
{
	r->op->wait = rest(r);
}

static enum relay_next
first_answered(struct relay *r)
{
	const struct op *const op = r->op;

	if (relay_in_move(op))
		return RELAY_STAY;
	if (op->rc == SLU_ENOTFOUND || (op->elsewhere[0] && !is_failure(op->rc)))
		return relay_is_home(r) ? nobody(r) : RELAY_ON;
	if (relay_is_home(r) || !is_failure(op->rc) || relay_verb_of(op->verb)->strict)
		return RELAY_DONE;
	remember_why(r);
	return RELAY_ON;
}

/* A former shard that waits for an ack may not know that the message was given away, and acked
 * there: then it is asked for where the queue lives, too. */
static void
result_ask(struct relay *r)
{
	r->op->wait = r->some && relay_is_home(r) ? 0 : slice_of_wait(r);
}

static enum relay_next
result_answered(struct relay *r)
{
	struct op *const op = r->op;
	const bool pending = op->rc == SLU_ETIMEOUT || (op->rc == SLU_ENOTFOUND && r->some);

	if (!relay_is_home(r) && pending) {
		r->some = true;
		return RELAY_ON;
	}
	if (!pending || is_elsewhere(r))
		return first_answered(r);
	r->some = false;
	if (!is_over(r))
		return RELAY_AGAIN; /* it may have moved meanwhile */
	op_fail(op, SLU_ETIMEOUT, NULL);
	return RELAY_DONE;
}

static enum relay_next
home_answered(struct relay *r)
{
	return is_elsewhere(r) ? RELAY_LEARN : RELAY_DONE;
}

/* ---- All of them ---- */

static void
add_totals(struct ledger_totals *sum, const struct ledger_totals *one)
{
	uint64_t *const to = (uint64_t *)sum;
	const uint64_t *const from = (const uint64_t *)one;

	_Static_assert(sizeof *sum % sizeof(uint64_t) == 0, "all of it is counters");
	for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
		to[i] += from[i];
}

/* The rest is as where it lives, which is asked last. */
static void
add_stats(struct relay *r)
{
	const struct op_queue *const q = &r->op->queues[0];
	struct op_queue sum = *q;

	r->count += r->op->count;
	if (r->op->n_queues == 0)
		return;
	for (int i = 0; i < MSG_STATES; i++)
		sum.count[i] += r->sum.count[i];
	add_totals(&sum.totals, &r->sum.totals);
	if (r->sum.oldest > sum.oldest && r->some)
		sum.oldest = r->sum.oldest;
	r->sum = sum;
	r->some = true;
}

/* The path was another one: from the first shard on. */
static enum relay_next
forget_sum(struct relay *r)
{
	r->sum = (struct op_queue){ 0 };
	r->count = 0;
	r->some = false;
	return RELAY_LEARN;
}

static enum relay_next
stats_answered(struct relay *r)
{
	struct op *const op = r->op;

	if (op->rc == 0)
		add_stats(r);
	else if (op->rc != SLU_ENOTFOUND)
		remember_why(r);
	if (!relay_is_home(r))
		return RELAY_ON;
	if (is_elsewhere(r))
		return forget_sum(r);
	if (r->why) {
		op_fail(op, r->why, &r->err);
		return RELAY_DONE;
	}
	op->count = r->count;
	if (!r->some)
		return RELAY_DONE;
	op->rc = 0;
	op->queues[0] = r->sum;
	op->n_queues = 1;
	return RELAY_DONE;
}

static enum relay_next
all_answered(struct relay *r)
{
	struct op *const op = r->op;

	if (relay_in_move(op))
		return RELAY_STAY;
	if (op->rc && op->rc != SLU_ENOTFOUND && r->took)
		op_fail(op, SLU_EUNKNOWN, NULL); /* Y1 */
	if (op->rc && op->rc != SLU_ENOTFOUND)
		return RELAY_DONE;
	r->some |= op->rc == 0;
	r->took |= op->rc == 0 && (op->verb != OP_PURGE || op->count);
	r->count += op->count;
	if (!relay_is_home(r))
		return RELAY_ON;
	if (is_elsewhere(r))
		return RELAY_LEARN; /* what was purged is counted */
	if (op->rc && r->some && op->verb == OP_PAUSE) {
		const bool paused = op->policy.paused;

		op->verb = OP_POLICY_SET; /* nobody has used it there yet, so it has the default */
		op->policy = policy_default;
		op->policy.paused = paused;
		return RELAY_ON;
	}
	if (r->some)
		op->rc = 0;
	op->count = r->count;
	return RELAY_DONE;
}

/* ---- Pages ---- */

unsigned
relay_list_at(const struct relay *r)
{
	const unsigned at = (unsigned)(r->cursor >> LIST_AT);

	return at == LIST_HOME || at + 1 >= r->path.n ? 0 : at + 1;
}

uint64_t
relay_list_cursor(uint64_t cursor)
{
	return cursor & LIST_MASK;
}

static uint64_t
list_tag(unsigned at)
{
	return (uint64_t)(at == 0 ? LIST_HOME : at - 1) << LIST_AT;
}

static void
list_ask(struct relay *r)
{
	r->op->cursor = relay_list_cursor(r->cursor);
}

static enum relay_next
list_answered(struct relay *r)
{
	struct op *const op = r->op;
	const unsigned next = r->at + 1 < r->path.n && r->at + 1 < LIST_HOME + 1 ? r->at + 1 : 0;

	if (op->rc)
		return RELAY_DONE;
	if (relay_is_home(r) && is_elsewhere(r))
		return RELAY_LEARN;
	if (!relay_is_home(r) && op->n_rows == 0 && op->cursor == 0) {
		r->cursor = list_tag(next);
		return RELAY_ON;
	}
	for (uint32_t i = 0; i < op->n_rows; i++)
		op->rows[i].after |= list_tag(r->at);
	if (op->cursor)
		op->cursor |= list_tag(r->at);
	else if (!relay_is_home(r))
		op->cursor = list_tag(next);
	return RELAY_DONE;
}

/* ---- Keys ---- */

/* The keys of all shards in one order, but a page is of one: first each is asked for its first
 * key, then the one with the smallest for its page, which ends before that of the next. */
static void
keys_ask(struct relay *r)
{
	r->op->max_keys = r->paging ? r->max_keys : 1;
}

static void
keep_first_key(struct relay *r)
{
	const char *const name = r->op->keys[0].name;

	if (!r->some || strcmp(name, r->key) < 0) {
		if (r->some)
			(void)snprintf(r->next_key, sizeof r->next_key, "%s", r->key);
		(void)snprintf(r->key, sizeof r->key, "%s", name);
		r->key_at = r->at;
	} else if (!r->next_key[0] || strcmp(name, r->next_key) < 0) {
		(void)snprintf(r->next_key, sizeof r->next_key, "%s", name);
	}
	r->some = true;
}

static void
cut_keys(struct relay *r)
{
	struct op *const op = r->op;

	if (!r->next_key[0])
		return;
	op->lock.more = true;
	while (op->n_keys && strcmp(op->keys[op->n_keys - 1].name, r->next_key) >= 0) {
		op->n_keys--;
		engine_unpin(op->engine, &op->keys[op->n_keys].record);
		engine_unpin(op->engine, &op->keys[op->n_keys].payload);
	}
}

static enum relay_next
keys_answered(struct relay *r)
{
	struct op *const op = r->op;

	if (op->rc)
		return RELAY_DONE;
	if (relay_is_home(r) && is_elsewhere(r) && r->path.n == 1)
		return RELAY_LEARN;
	if (r->paging) {
		cut_keys(r);
		return RELAY_DONE;
	}
	if (op->n_keys)
		keep_first_key(r);
	if (!relay_is_home(r))
		return RELAY_ON;
	if (!r->some)
		return RELAY_DONE;
	r->paging = true;
	r->at = r->key_at == 0 ? r->path.n : r->key_at;
	r->at--; /* that one is asked next */
	return RELAY_ON;
}

/* ---- The table ---- */

/* clang-format off */
static const struct relay_verb verbs[OP_VERBS] = {
	[OP_ENQUEUE]      = { .answered = put_answered, .key = true, .strict = true },
	[OP_CLAIM]        = { claim_ask, claim_answered, .waits = true },
	[OP_PEEK]         = { claim_ask, claim_answered, .waits = true },
	[OP_WATCH]        = { watch_ask, watch_answered, .waits = true },
	[OP_ACK]          = { .answered = items_answered },
	[OP_NACK]         = { .answered = items_answered },
	[OP_EXTEND]       = { .answered = items_answered },
	[OP_REDRIVE]      = { .answered = items_answered },
	[OP_DELETE]       = { .answered = items_answered },
	[OP_ASIDE]        = { .answered = items_answered },
	[OP_GET]          = { .answered = first_answered },
	[OP_RESULT]       = { result_ask, result_answered },
	[OP_STATS]        = { .answered = stats_answered },
	[OP_LIST]         = { list_ask, list_answered },
	[OP_PURGE]        = { .answered = all_answered },
	[OP_PAUSE]        = { .answered = all_answered, .strict = true },
	[OP_POLICY_SET]   = { .answered = all_answered, .strict = true },
	[OP_POLICY_GET]   = { .answered = home_answered, .home = true, .strict = true },
	[OP_ACQUIRE]      = { wait_whole, first_answered, .key = true, .strict = true },
	[OP_KEEPALIVE]    = { .answered = first_answered, .strict = true },
	[OP_RELEASE]      = { .answered = first_answered, .strict = true },
	[OP_STATE_GET]    = { .answered = first_answered, .strict = true },
	[OP_STATE_PUT]    = { .answered = first_answered, .strict = true },
	[OP_STATE_REMOVE] = { .answered = first_answered, .strict = true },
	[OP_STATE_META]   = { .answered = first_answered, .strict = true },
	[OP_DESCRIBE]     = { .answered = first_answered, .strict = true },
	[OP_ATTACHMENTS]  = { .answered = first_answered, .strict = true },
	[OP_KEYS]         = { keys_ask, keys_answered, .strict = true },
};
/* clang-format on */

const struct relay_verb *
relay_verb_of(enum op_verb verb)
{
	return verbs[verb].answered ? &verbs[verb] : NULL;
}
