/*
 * follow_verbs.c - the rules of enum op_follow: what an op asks each shard, and what it does with the answer.
 */
#include "broker/move/follow_private.h"

#include "base/limit.h"
#include "core/queue/policy.h"

#include <stdio.h>

/* The bits above the cursor of an engine, which is a number or an id, name the lane of the path. An id
 * reaches bit 62 in 2058. */
enum {
	LIST_AT = 62,
	LIST_HOME = 3 /* other lanes: their index in the path minus 1 */
};

#define LIST_MASK ((1ull << LIST_AT) - 1)

/* ---- What they share ---- */

static bool
is_over(const struct follow *r)
{
	return r->wait == 0 || follow_now(r) >= r->until || r->all->b->waits_end;
}

/* The rest of the wait. */
static slu_time
rest(const struct follow *r)
{
	const slu_time left = r->until - follow_now(r);

	return r->wait == 0 || left < 0 ? 0 : left;
}

static slu_time
slice_of_wait(const struct follow *r)
{
	const slu_time left = rest(r);

	return left < FOLLOW_SLICE ? left : FOLLOW_SLICE;
}

/* Returns true if the queue lives elsewhere; not if discovery has failed to say where. */
static bool
is_elsewhere(const struct follow *r)
{
	return op_is_elsewhere(r->op) && r->why != SLU_EMOVED;
}

bool
follow_in_move(const struct op *op)
{
	return op->rc == SLU_EBUSY && limit_by_name(op->err.limit) == LIMIT_MOVE;
}

static void
remember_why(struct follow *r)
{
	if (r->why)
		return;
	r->why = r->op->rc;
	r->err = r->op->err;
}

/* No shard has it: FOLLOW-3. */
static enum follow_next
not_found(struct follow *r)
{
	if (is_elsewhere(r))
		return FOLLOW_LEARN;
	if (r->why)
		op_fail(r->op, r->why, &r->err);
	return FOLLOW_DONE;
}

/* ---- Enqueue ---- */

static void
note_taken(struct follow *r)
{
	for (uint32_t i = 0; i < r->op->n_puts; i++)
		r->took |= r->op->puts[i].taken;
}

/* Returns true if a former shard names the same home as the path. */
static bool
leads_home(const struct follow *r)
{
	return strcmp(r->op->home.elsewhere, broker_mark_name(r->all->b, r->path.lanes[0])) == 0;
}

static enum follow_next
put_answered(struct follow *r)
{
	struct op *const op = r->op;

	if (follow_in_move(op))
		return FOLLOW_STAY;
	if (op->rc == SLU_EMOVED) {
		note_taken(r);
		if (r->recalls)
			return FOLLOW_ON;
		return follow_is_home(r) || !leads_home(r) ? FOLLOW_LEARN : FOLLOW_ON;
	}
	if (op->rc && r->took)
		op_fail(op, SLU_EUNKNOWN, NULL); /* FOLLOW-1 */
	return FOLLOW_DONE;
}

/* ---- Items ---- */

/* Marks the items that are dealt with as taken. Returns how many are open. */
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

/* All shards were asked: items that are still open get the error of a shard that failed. */
static enum follow_next
end_items(struct follow *r, uint32_t open)
{
	struct op *const op = r->op;
	int rc = op->rc ? op->rc : r->why;

	if (r->unknown)
		rc = SLU_EUNKNOWN;
	if (open == op->n_items && op->rc) {
		if (rc != op->rc)
			op_fail(op, rc, NULL); /* a former shard may have done it */
		return FOLLOW_DONE;
	}
	for (uint32_t i = 0; rc && i < op->n_items; i++)
		if (!op->items[i].taken)
			op->items[i].rc = rc;
	op->rc = 0;
	return FOLLOW_DONE;
}

static enum follow_next
items_answered(struct follow *r)
{
	struct op *const op = r->op;
	uint32_t open;

	if (follow_in_move(op))
		return FOLLOW_STAY;
	open = settle_items(op);
	r->took |= open < op->n_items;
	r->unknown |= op->rc == SLU_EUNKNOWN;
	if (open && op->rc == 0 && follow_is_home(r) && is_elsewhere(r))
		return FOLLOW_LEARN;
	if (open == 0 || follow_is_home(r))
		return end_items(r, open);
	if (op->rc)
		remember_why(r);
	return FOLLOW_ON;
}

/* ---- Claim, peek, watch ---- */

static void
claim_ask(struct follow *r)
{
	r->op->wait = follow_is_home(r) ? slice_of_wait(r) : 0;
}

static enum follow_next
claim_answered(struct follow *r)
{
	struct op *const op = r->op;

	if (op->n_rows)
		return FOLLOW_DONE;
	if (!follow_is_home(r))
		return FOLLOW_ON;
	if (op->rc == SLU_EBUSY && r->waited)
		op->rc = 0; /* other ops wait in its place now */
	if (op->rc == 0 && is_elsewhere(r))
		return FOLLOW_LEARN;
	if (op->rc || is_over(r))
		return FOLLOW_DONE;
	r->waited = true;
	return FOLLOW_AGAIN;
}

/* A former shard is asked for its head, whatever the maker knows. If the maker knows that head, the op
 * waits there. */
static void
watch_ask(struct follow *r)
{
	if (follow_is_home(r)) {
		r->op->id = r->id;
		r->op->wait = slice_of_wait(r);
	} else {
		r->op->id = r->same ? r->id : 0;
		r->op->wait = r->same ? slice_of_wait(r) : 0;
	}
}

static enum follow_next
watch_former(struct follow *r)
{
	struct op *const op = r->op;

	if (op->rc == 0 && op->id && op->id != r->id)
		return FOLLOW_DONE;
	if (op->rc == 0 && op->id == 0)
		r->same = false;
	else if (op->rc == 0)
		r->same = true;
	if (!r->same)
		return FOLLOW_ON;
	if (!is_over(r))
		return FOLLOW_AGAIN;
	op->id = r->id;
	op_fail(op, SLU_ETIMEOUT, NULL);
	return FOLLOW_DONE;
}

static enum follow_next
watch_answered(struct follow *r)
{
	const int rc = r->op->rc;

	if (!follow_is_home(r) && (rc == 0 || rc == SLU_ETIMEOUT))
		return watch_former(r);
	if (!follow_is_home(r))
		return FOLLOW_ON;
	if (rc && rc != SLU_ETIMEOUT)
		return FOLLOW_DONE;
	if (is_elsewhere(r))
		return FOLLOW_LEARN;
	return rc == 0 || is_over(r) ? FOLLOW_DONE : FOLLOW_AGAIN;
}

/* ---- The first shard that has it ---- */

static void
wait_whole(struct follow *r)
{
	r->op->wait = rest(r);
}

static enum follow_next
first_answered(struct follow *r)
{
	const struct op *const op = r->op;

	if (follow_in_move(op))
		return FOLLOW_STAY;
	if (op->rc == SLU_ENOTFOUND || (op_is_elsewhere(op) && !op_is_failure(op->rc)))
		return follow_is_home(r) ? not_found(r) : FOLLOW_ON;
	if (follow_is_home(r) || !op_is_failure(op->rc) || op_is(op->verb, OP_STRICT))
		return FOLLOW_DONE;
	remember_why(r);
	return FOLLOW_ON;
}

/* A former shard that waits for an ack may not know that the message has moved and was acked on the new
 * shard: so the new shard is asked, too. */
static void
result_ask(struct follow *r)
{
	r->op->wait = r->some && follow_is_home(r) ? 0 : slice_of_wait(r);
}

static enum follow_next
result_answered(struct follow *r)
{
	struct op *const op = r->op;
	const bool pending = op->rc == SLU_ETIMEOUT || (op->rc == SLU_ENOTFOUND && r->some);

	if (!follow_is_home(r) && pending) {
		r->some = true;
		return FOLLOW_ON;
	}
	if (!pending || is_elsewhere(r))
		return first_answered(r);
	r->some = false;
	if (!is_over(r))
		return FOLLOW_AGAIN; /* the message may have moved meanwhile */
	op_fail(op, SLU_ETIMEOUT, NULL);
	return FOLLOW_DONE;
}

static enum follow_next
home_answered(struct follow *r)
{
	return is_elsewhere(r) ? FOLLOW_LEARN : FOLLOW_DONE;
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

/* Adds the counts; the other fields come from the last shard, where the queue lives. */
static void
add_stats(struct follow *r)
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
	if (r->sum.now > sum.now)
		sum.now = r->sum.now;
	r->sum = sum;
	r->some = true;
}

/* The path was wrong: counts again from the first shard. */
static enum follow_next
forget_sum(struct follow *r)
{
	r->sum = (struct op_queue){ 0 };
	r->count = 0;
	r->some = false;
	return FOLLOW_LEARN;
}

static enum follow_next
stats_answered(struct follow *r)
{
	struct op *const op = r->op;

	if (op->rc == 0)
		add_stats(r);
	else if (op->rc != SLU_ENOTFOUND)
		remember_why(r);
	if (!follow_is_home(r))
		return FOLLOW_ON;
	if (is_elsewhere(r))
		return forget_sum(r);
	if (r->why) {
		op_fail(op, r->why, &r->err);
		return FOLLOW_DONE;
	}
	op->count = r->count;
	if (!r->some)
		return FOLLOW_DONE;
	op->rc = 0;
	op->queues[0] = r->sum;
	op->n_queues = 1;
	return FOLLOW_DONE;
}

static enum follow_next
all_answered(struct follow *r)
{
	struct op *const op = r->op;

	if (follow_in_move(op))
		return FOLLOW_STAY;
	if (op->rc && op->rc != SLU_ENOTFOUND && r->took)
		op_fail(op, SLU_EUNKNOWN, NULL); /* FOLLOW-1 */
	if (op->rc && op->rc != SLU_ENOTFOUND)
		return FOLLOW_DONE;
	r->some |= op->rc == 0;
	r->took |= op->rc == 0 && (op->verb != OP_PURGE || op->count);
	r->count += op->count;
	if (!follow_is_home(r))
		return FOLLOW_ON;
	if (is_elsewhere(r))
		return FOLLOW_LEARN; /* the count of purged messages stays */
	if (op->rc && r->some && op->verb == OP_PAUSE) {
		const struct policy asked = op->policy;

		op->verb = OP_POLICY_SET; /* the queue does not exist there yet: it has the default policy */
		op->policy = policy_default;
		op_set_pause(&op->policy, &asked, op->sets);
		return FOLLOW_ON;
	}
	if (r->some)
		op->rc = 0;
	op->count = r->count;
	return FOLLOW_DONE;
}

/* ---- Pages ---- */

unsigned
follow_list_at(const struct follow *r)
{
	const unsigned at = (unsigned)(r->cursor >> LIST_AT);

	return at == LIST_HOME || at + 1 >= r->path.n ? 0 : at + 1;
}

uint64_t
follow_list_cursor(uint64_t cursor)
{
	return cursor & LIST_MASK;
}

static uint64_t
list_tag(unsigned at)
{
	return (uint64_t)(at == 0 ? LIST_HOME : at - 1) << LIST_AT;
}

static void
list_ask(struct follow *r)
{
	r->op->cursor = follow_list_cursor(r->cursor);
}

static enum follow_next
list_answered(struct follow *r)
{
	struct op *const op = r->op;
	const unsigned next = r->at + 1 < r->path.n && r->at + 1 < LIST_HOME + 1 ? r->at + 1 : 0;

	if (op->rc)
		return FOLLOW_DONE;
	if (follow_is_home(r) && is_elsewhere(r))
		return FOLLOW_LEARN;
	if (!follow_is_home(r) && op->n_rows == 0 && op->cursor == 0) {
		r->cursor = list_tag(next);
		return FOLLOW_ON;
	}
	for (uint32_t i = 0; i < op->n_rows; i++)
		op->rows[i].after |= list_tag(r->at);
	if (op->cursor)
		op->cursor |= list_tag(r->at);
	else if (!follow_is_home(r))
		op->cursor = list_tag(next);
	return FOLLOW_DONE;
}

/* ---- Keys ---- */

/* Keys are in one order over all shards, and a page is of one shard: first each shard is asked for its
 * first key, then the shard with the smallest one for a page, which ends before the next smallest. */
static void
keys_ask(struct follow *r)
{
	r->op->max_keys = r->paging ? r->max_keys : 1;
}

static void
keep_first_key(struct follow *r)
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
cut_keys(struct follow *r)
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

static enum follow_next
keys_answered(struct follow *r)
{
	struct op *const op = r->op;

	if (op->rc)
		return FOLLOW_DONE;
	if (follow_is_home(r) && is_elsewhere(r) && r->path.n == 1)
		return FOLLOW_LEARN;
	if (r->paging) {
		cut_keys(r);
		return FOLLOW_DONE;
	}
	if (op->n_keys)
		keep_first_key(r);
	if (!follow_is_home(r))
		return FOLLOW_ON;
	if (!r->some)
		return FOLLOW_DONE;
	r->paging = true;
	r->at = r->key_at == 0 ? r->path.n : r->key_at;
	r->at--; /* FOLLOW_ON asks the one behind it */
	return FOLLOW_ON;
}

/* ---- The table ---- */

static const struct follow_rule rules[OP_FOLLOWS] = {
	[OP_FOLLOW_PUTS] = { NULL, put_answered },
	[OP_FOLLOW_ITEMS] = { NULL, items_answered },
	[OP_FOLLOW_CLAIM] = { claim_ask, claim_answered },
	[OP_FOLLOW_WATCH] = { watch_ask, watch_answered },
	[OP_FOLLOW_FIRST] = { NULL, first_answered },
	[OP_FOLLOW_LOCK] = { wait_whole, first_answered },
	[OP_FOLLOW_RESULT] = { result_ask, result_answered },
	[OP_FOLLOW_SUM] = { NULL, stats_answered },
	[OP_FOLLOW_PAGES] = { list_ask, list_answered },
	[OP_FOLLOW_KEYS] = { keys_ask, keys_answered },
	[OP_FOLLOW_ALL] = { NULL, all_answered },
	[OP_FOLLOW_HOME] = { NULL, home_answered },
};

const struct follow_rule *
follow_rule_of(const struct op *op)
{
	const struct follow_rule *const rule = &rules[follow_kind(op)];

	return rule->answered ? rule : NULL;
}
