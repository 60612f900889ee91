/*
 * look.c - the verbs of messages and queues that change nothing.
 */
#include "engine/ledger/ledgerengine_private.h"

#include "base/mem.h"
#include "core/ledger/named.h"
#include "core/ledger/recent.h"
#include "core/ledger/use.h"
#include "core/reserved.h"

static void
add_row(struct ledgerengine *k, struct op *op, uint32_t msg, uint64_t after)
{
	struct slu_err err = { 0 };
	const int rc = ledgerengine_row(k, msg, true, &op->rows[op->n_rows], &err);

	if (rc)
		op_fail(op, rc, &err);
	else
		op->rows[op->n_rows++].after = after;
}

/* The message in a namespace, or SLAB_NONE. A document has either of two ids (schedule.c). */
static uint32_t
find_in(struct ledgerengine *k, const struct op *op, uint32_t space)
{
	const uint32_t msg = ledger_find(k->ledger, space, op->id);

	if (msg == SLAB_NONE && reserved_has_documents(op->queue))
		return ledger_find(k->ledger, space, op->id ^ 1);
	return msg;
}

/* The message that the op names, or SLAB_NONE. */
static uint32_t
find_message(struct ledgerengine *k, const struct op *op)
{
	const uint32_t space = ledger_space_find(k->ledger, op->space);
	const uint32_t msg = op->space.n == 0     ? ledger_find_any(k->ledger, op->id)
			     : space == SLAB_NONE ? SLAB_NONE
						  : find_in(k, op, space);
	struct ledger_view v;

	if (msg == SLAB_NONE || !op->queue.n)
		return msg;
	ledger_get(k->ledger, msg, &v);
	return v.queue == ledgerengine_queue(k, op) ? msg : SLAB_NONE;
}

void
ledgerengine_get(struct ledgerengine *k, struct op *op)
{
	const uint32_t msg = find_message(k, op);

	op->n_rows = 0;
	if (msg == SLAB_NONE)
		op_fail(op, SLU_ENOTFOUND, NULL);
	else
		add_row(k, op, msg, 0);
}

void
ledgerengine_peek(struct ledgerengine *k, struct op *op)
{
	const uint32_t max = op->max_rows < LEDGER_PEEK_MAX ? op->max_rows : LEDGER_PEEK_MAX;
	const uint32_t queue = ledgerengine_queue(k, op);
	uint32_t msgs[LEDGER_PEEK_MAX];
	uint32_t n = 0;
	int rc = 0;

	op->n_rows = 0;
	if (queue != SLAB_NONE)
		rc = op->state == MSG_DELAYED ? ledger_peek_delayed(k->ledger, queue, msgs, max, &n)
					      : ledger_peek(k->ledger, queue, msgs, max, &n);
	if (rc)
		op_fail(op, rc, NULL);
	for (uint32_t i = 0; i < n && !op->rc; i++)
		add_row(k, op, msgs[i], 0);
	if (op->rc)
		op_drop_rows(op);
}

void
ledgerengine_watch(struct ledgerengine *k, struct op *op)
{
	const uint32_t queue = ledgerengine_queue(k, op);
	struct ledger_queue_view q;
	struct ledger_view v = { 0 };
	uint32_t msg, n = 0;
	int rc = 0;

	if (queue != SLAB_NONE)
		ledger_queue_get(k->ledger, queue, &q);
	if (queue != SLAB_NONE && !q.policy->paused)
		rc = ledger_peek(k->ledger, queue, &msg, 1, &n);
	if (n > 0)
		ledger_get(k->ledger, msg, &v);
	if (rc)
		op_fail(op, rc, NULL);
	else
		op_watch(op, v.id);
}

/* ---- Cursors ---- */

/*
 * The cursor of a list in the order of handles: 16 bits era, 32 bits handle. A node that has taken the shard has given
 * other handles: it begins the list anew, so that nothing is left out.
 */
enum {
	ERA_AT = 32
};

static uint64_t
cursor_of(const struct ledgerengine *k, uint32_t handle)
{
	return (uint64_t)k->era << ERA_AT | handle;
}

/* Returns 0 for the cursor of another era. */
static uint32_t
handle_of(const struct ledgerengine *k, uint64_t cursor)
{
	return cursor >> ERA_AT == k->era ? (uint32_t)cursor : 0;
}

/* ---- List ---- */

/* The dead letter behind the last one shown. If that one is no longer dead, the list starts again,
 * so that none is left out. */
static uint32_t
dead_after(struct ledgerengine *k, const struct op *op, uint32_t queue)
{
	struct ledger_view v;
	uint32_t msg;

	msg = op->cursor ? ledger_find_any(k->ledger, op->cursor) : SLAB_NONE;
	if (msg != SLAB_NONE) {
		ledger_get(k->ledger, msg, &v);
		if (v.state != MSG_DEAD || v.queue != queue)
			msg = SLAB_NONE;
	}
	return ledger_dead_next(k->ledger, queue, msg);
}

static void
list_dead(struct ledgerengine *k, struct op *op, uint32_t queue)
{
	uint32_t msg = dead_after(k, op, queue);

	while (msg != SLAB_NONE && op->n_rows < op->max_rows && !op->rc) {
		struct ledger_view v;

		ledger_get(k->ledger, msg, &v);
		add_row(k, op, msg, v.id);
		msg = ledger_dead_next(k->ledger, queue, msg);
	}
	op->cursor = msg == SLAB_NONE || op->rc ? 0 : op->rows[op->n_rows - 1].id;
}

static void
list_any(struct ledgerengine *k, struct op *op, uint32_t queue)
{
	const struct ledger_browse what = {
		.space = op->space.n ? ledger_space_find(k->ledger, op->space) : SLAB_NONE,
		.queue = queue,
		.state = op->state,
	};
	uint32_t cursor = handle_of(k, op->cursor);
	uint32_t msgs[ENGINE_SCAN_MAX];
	const uint32_t max = op->max_rows < ENGINE_SCAN_MAX ? op->max_rows : ENGINE_SCAN_MAX;
	uint32_t n = 0;

	if (op->space.n == 0 || what.space != SLAB_NONE)
		n = ledger_browse(k->ledger, &what, &cursor, msgs, max);
	else
		cursor = LEDGER_SCAN_END;
	for (uint32_t i = 0; i < n && !op->rc; i++)
		add_row(k, op, msgs[i], cursor_of(k, msgs[i] + 1));
	op->cursor = cursor == LEDGER_SCAN_END ? 0 : cursor_of(k, cursor);
}

void
ledgerengine_list(struct ledgerengine *k, struct op *op)
{
	const uint32_t queue = op->queue.n ? ledgerengine_queue(k, op) : SLAB_NONE;

	op->n_rows = 0;
	if (op->queue.n && queue == SLAB_NONE)
		op->cursor = 0;
	else if (op->queue.n && op->state == MSG_DEAD)
		list_dead(k, op, queue);
	else
		list_any(k, op, queue);
	if (op->rc)
		op_drop_rows(op);
}

/* ---- Results ---- */

void
ledgerengine_result(struct ledgerengine *k, struct op *op)
{
	const uint32_t space = ledger_space_find(k->ledger, op->space);
	struct ledger_result result = { 0 };
	struct slu_err err = { 0 };
	int rc = SLU_ENOTFOUND;

	op->result = (struct op_ref){ 0 };
	if (space != SLAB_NONE)
		rc = ledger_result(k->ledger, space, op->id, &result);
	if (rc == SLU_ENOTFOUND && space != SLAB_NONE &&
	    ledger_find(k->ledger, space, op->id) != SLAB_NONE)
		rc = SLU_ETIMEOUT;
	if (!rc && result.where)
		rc = k->ops->pin(k, result.where, &op->result, NULL, &err);
	op->until = result.until;
	if (rc)
		op_fail(op, rc, &err);
}

/* ---- Queues ---- */

static void
add_queue(struct ledgerengine *k, struct op *op, uint32_t queue)
{
	struct op_queue *out = &op->queues[op->n_queues++];
	const slu_time oldest = ledger_oldest(k->ledger, queue);
	struct ledger_recent recent;
	struct ledger_queue_view v;

	ledger_queue_get(k->ledger, queue, &v);
	ledger_recent(k->ledger, queue, k->now, (uint64_t)v.count[MSG_READY] + v.count[MSG_HELD] + v.count[MSG_LEASED], &recent);
	*out = (struct op_queue){
		.totals = v.totals,
		.oldest = oldest == SLU_NEVER ? -1 : oldest < k->now ? k->now - oldest
								     : 0,
		.warn_depth = v.policy->warn_depth,
		.warn_age = v.policy->warn_age,
		.wait = recent.wait,
		.empty = recent.empty,
		.paused = v.policy->paused,
		.draining = v.policy->draining,
		.pause = v.policy->pause,
		.held = ledger_hold_end(k->ledger, queue, GATE_QUEUE, (struct slice){ 0 }),
		.now = k->now,
	};
	memcpy(out->count, v.count, sizeof out->count);
	memcpy(out->letters, v.policy->dead_letter_queue, sizeof out->letters);
	memcpy(out->tags, v.policy->tags, sizeof out->tags);
	op_name_queue(out, v.space_name, v.name, v.space_shown, v.shown);
}

int
ledgerengine_text(struct ledgerengine *k, uint32_t msg, size_t member, char *out, size_t room, struct slice *text)
{
	struct op_row row;
	struct slu_err err = { 0 };
	struct message m;
	char *bytes = NULL;
	int rc = ledgerengine_row(k, msg, false, &row, &err);

	if (rc)
		return rc;
	bytes = mem_alloc(row.record.size);
	rc = bytes ? ledgerengine_read(k, &row.record, bytes, true, &err) : SLU_ENOMEM;
	if (!rc)
		rc = message_decode_head((struct slice){ bytes, row.record.size }, &m, &err);
	if (!rc) {
		const struct slice *const found = (const struct slice *)(const void *)((const char *)&m + member);

		*text = (struct slice){ out, found->n < room ? found->n : room };
		if (text->n)
			memcpy(out, found->p, text->n);
	}
	mem_free(bytes);
	op_unpin_row(k->engine, &row);
	return rc;
}

/* The breaker that keeps the message back. */
static void
find_breaker(const struct ledgerengine *k, uint32_t msg, char out[static BREAKER_NAME])
{
	const struct slice name = ledger_breaker_of(k->ledger, msg);

	if (name.n)
		memcpy(out, name.p, name.n);
	out[name.n] = '\0';
}

/* The admission rule that applied to the message, if its queue has rules. A record that cannot be read says nothing. */
static void
find_rule(struct ledgerengine *k, uint32_t msg, uint32_t queue, char out[static RULES_TEXT])
{
	struct slice text = { 0 };

	memset(out, 0, RULES_TEXT);
	if (ledger_rules(k->ledger, queue).n &&
	    ledgerengine_text(k, msg, offsetof(struct message, rule), out, RULES_TEXT - 1, &text))
		out[0] = '\0';
}

static void
find_kind(const struct ledgerengine *k, uint32_t msg, char out[static KIND_MAX + 1])
{
	const struct slice kind = ledger_kind_name(k->ledger, msg);
	const size_t n = kind.n < KIND_MAX ? kind.n : KIND_MAX;

	if (n)
		memcpy(out, kind.p, n);
	out[n] = '\0';
}

/* The head of the key that the message is behind, or SLAB_NONE. */
static uint32_t
find_head(const struct ledgerengine *k, const struct why_facts *w)
{
	for (uint64_t i = 0; i < w->n; i++)
		if (w->facts[i].why == WHY_BEHIND)
			return ledger_find_any(k->ledger, w->facts[i].id);
	return SLAB_NONE;
}

void
ledgerengine_why(struct ledgerengine *k, struct op *op)
{
	const uint32_t msg = find_message(k, op);
	struct ledger_view v;
	uint32_t head;

	op->n_rows = op->n_queues = 0;
	if (msg == SLAB_NONE) {
		op_fail(op, SLU_ENOTFOUND, NULL);
		return;
	}
	ledger_get(k->ledger, msg, &v);
	ledger_why(k->ledger, msg, k->now, &op->why);
	find_rule(k, msg, v.queue, op->rule);
	find_breaker(k, msg, op->breaker);
	find_kind(k, msg, op->kind);
	add_queue(k, op, v.queue);
	ledgerengine_bare_row(k, msg, &op->rows[op->n_rows++]);
	head = find_head(k, &op->why);
	if (head != SLAB_NONE && op->n_rows < op->max_rows)
		ledgerengine_bare_row(k, head, &op->rows[op->n_rows++]);
}

void
ledgerengine_stats(struct ledgerengine *k, struct op *op)
{
	const uint32_t queue = ledgerengine_queue(k, op);

	op->n_queues = 0;
	if (queue == SLAB_NONE)
		op_fail(op, SLU_ENOTFOUND, NULL);
	else
		add_queue(k, op, queue);
}

static bool
read_trend(struct ledgerengine *k, struct op *op, uint32_t queue)
{
	if (op->trend.storage)
		return ledgerengine_read_storage(k, op);
	return ledger_trend(k->ledger, queue, k->now, op->trend.scale, op->steps, op->max_steps, &op->trend.end);
}

void
ledgerengine_trend(struct ledgerengine *k, struct op *op)
{
	const uint32_t queue = op->queue.n ? ledgerengine_queue(k, op) : SLAB_NONE;

	op->n_steps = 0;
	if (op->queue.n && queue == SLAB_NONE)
		op_fail(op, SLU_ENOTFOUND, NULL);
	else if (op->trend.scale >= TREND_SCALES || op->max_steps > trend_spans[op->trend.scale].steps)
		op_fail(op, SLU_EINVAL, NULL);
	else if (read_trend(k, op, queue))
		op->n_steps = op->max_steps;
}

static bool
is_asked_for(const struct ledger_queue_view *v, const struct op *op, uint32_t space)
{
	if (op->space.n && v->space != space)
		return false;
	return op->queue.n ? slice_eq(slice_of(v->name), op->queue) : !reserved_is(slice_of(v->name));
}

void
ledgerengine_queues(struct ledgerengine *k, struct op *op)
{
	const uint32_t space = op->space.n ? ledger_space_find(k->ledger, op->space)
					   : SLAB_NONE;
	uint32_t queue = handle_of(k, op->cursor) - 1; /* 0: SLAB_NONE, from the first on */
	struct ledger_queue_view v;
	uint32_t left = ENGINE_SCAN_MAX;

	op->n_queues = 0;
	op->cursor = 0;
	while ((queue = ledger_queue_next(k->ledger, queue)) != SLAB_NONE) {
		ledger_queue_get(k->ledger, queue, &v);
		if (is_asked_for(&v, op, space))
			add_queue(k, op, queue);
		if (--left == 0 || op->n_queues == op->max_queues) {
			op->cursor = cursor_of(k, queue + 1);
			return;
		}
	}
}

void
ledgerengine_policy_get(struct ledgerengine *k, struct op *op)
{
	const uint32_t queue = ledgerengine_queue(k, op);
	struct ledger_queue_view v;

	op->policy = policy_default;
	if (queue == SLAB_NONE)
		return;
	ledger_queue_get(k->ledger, queue, &v);
	op->policy = *v.policy;
}

/* ---- Backup ---- */

void
ledgerengine_backup(struct ledgerengine *k, struct op *op)
{
	struct slu_err err = { 0 };

	if (k->ops->backup)
		k->ops->backup(k, op);
	else
		op_fail(op,
			slu_fail(&err, SLU_EINVAL, "engine %s keeps no files to back up",
				 k->engine->ops->name),
			&err);
}

/* ---- The shard ---- */

/* The engines on the ledger are not shared. */
void
ledgerengine_presence(struct ledgerengine *k, struct op *op)
{
	struct slu_err err = { 0 };

	op_fail(op, slu_fail(&err, SLU_EINVAL, "engine %s has one node", k->engine->ops->name), &err);
}

void
ledgerengine_shard(struct ledgerengine *k, struct op *op)
{
	struct ledger_size size;
	struct locks_size locks;

	ledger_size(k->ledger, &size);
	locks_size(k->locks, &locks);
	op->cursor = 0;
	op->on_shard = (struct op_shard){
		.messages = size.messages,
		.keys = size.keys,
		.idempotency = size.idem,
		.results = size.results,
		.forgotten = size.forgotten,
		.locks = locks.keys,
		.leases = locks.leases,
		.states = locks.messages,
		.disk_free = -1,
		.disk_size = -1,
	};
	if (k->engine->ops->measure)
		k->engine->ops->measure(k->engine, &op->on_shard);
}
