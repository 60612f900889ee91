/*
 * follow_split.c - splits an op about several queues, if one of them moves: each queue gets an op.
 *
 *      puts   a a a b b a      of one op
 *             └─┬─┘ └┬┘ │
 *             op    op  op     point into its puts; the last answer ends the whole op
 */
#include "broker/move/follow_private.h"

#include "base/mem.h"

struct split_op {
	struct op *whole;
	bool took; /* a part of the op was done before */
	_Atomic uint32_t left;
	uint32_t n;
	struct op ops[];
};

static bool
is_taken(const struct op *op, uint32_t i)
{
	return op->n_puts ? op->puts[i].taken : op->items[i].taken;
}

bool
follow_is_mixed(const struct op *op, struct slice *space, struct slice *queue)
{
	const struct op_names first = op_names(op, 0);

	*space = first.space;
	*queue = first.queue;
	if (follow_kind(op) == OP_FOLLOW_LOCK)
		return false;
	for (uint32_t i = 1; i < op_parts(op); i++)
		if (!op_names_are(first, op_names(op, i)))
			return true;
	return false;
}

/* ---- Parts ---- */

/* The end of the run of open puts or items of one queue that begins at i. */
static uint32_t
run_end(const struct op *op, uint32_t i)
{
	const struct op_names first = op_names(op, i);

	do
		i++;
	while (i < op_parts(op) && !is_taken(op, i) && op_names_are(first, op_names(op, i)));
	return i;
}

static uint32_t
count_runs(const struct op *op)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < op_parts(op);) {
		const bool taken = is_taken(op, i);

		n += !taken;
		i = taken ? i + 1 : run_end(op, i);
	}
	return n;
}

/* ---- The end ---- */

static void
end_items(const struct split_op *p, const struct op *failed, uint32_t n_failed)
{
	struct op *const op = p->whole;

	for (uint32_t k = 0; k < p->n; k++)
		for (uint32_t i = 0; p->ops[k].rc && i < p->ops[k].n_items; i++)
			p->ops[k].items[i].rc = p->ops[k].rc;
	if (n_failed == p->n && !p->took && failed)
		op_fail(op, failed->rc, &failed->err);
	else
		op->rc = 0;
}

/* OP-4 holds for each queue: if only some queues accepted their messages, the outcome is unknown. */
static void
end_puts(const struct split_op *p, const struct op *failed, uint32_t n_failed)
{
	struct op *const op = p->whole;

	op->rc = 0;
	if (!failed)
		return;
	if (n_failed < p->n || p->took)
		op_fail(op, SLU_EUNKNOWN, NULL);
	else
		op_fail(op, failed->rc, &failed->err);
	op->failed = (uint32_t)(failed->puts - op->puts) + failed->failed;
}

static void
parts_end(struct split_op *p)
{
	struct op *const op = p->whole;
	const struct op *failed = NULL;
	uint32_t n_failed = 0;

	for (uint32_t k = p->n; k-- > 0;)
		if (p->ops[k].rc) {
			failed = &p->ops[k];
			n_failed++;
		}
	if (op->n_puts)
		end_puts(p, failed, n_failed);
	else
		end_items(p, failed, n_failed);
	mem_free(p);
	op->home.elsewhere[0] = '\0';
	atomic_store(&op->route.canceled, OP_CANCEL_DONE);
	op->done(op);
}

static void
part_done(struct op *part)
{
	struct split_op *const p = part->owner;

	if (atomic_fetch_sub(&p->left, 1) == 1)
		parts_end(p);
}

/* ---- The beginning ---- */

static void
part_init(struct split_op *p, struct op *part, uint32_t from, uint32_t to)
{
	const struct op *const op = p->whole;
	const struct op_names n = op_names(op, from);

	op_init(part, op->verb, n.space, n.queue, part_done, p);
	part->as = op->as;
	part->route.routes = op->route.routes;
	if (op->n_puts) {
		part->puts = op->puts + from;
		part->n_puts = to - from;
	} else {
		part->items = op->items + from;
		part->n_items = to - from;
	}
}

int
follow_split(struct follows *rs, struct op *op)
{
	const uint32_t n = count_runs(op);
	struct split_op *const p = mem_zalloc(sizeof *p + n * sizeof(struct op));
	uint32_t k = 0;

	if (!p)
		return SLU_ENOMEM;
	p->whole = op;
	p->n = n;
	p->left = n + 1; /* one more until all parts are posted */
	for (uint32_t i = 0; i < op_parts(op);) {
		const uint32_t end = is_taken(op, i) ? i + 1 : run_end(op, i);

		if (is_taken(op, i))
			p->took = true;
		else
			part_init(p, &p->ops[k++], i, end);
		i = end;
	}
	atomic_store(&op->route.canceled, OP_CANCEL_AWAY);
	for (k = 0; k < n; k++) {
		const int rc = broker_post(rs->b, &p->ops[k]);

		if (!rc)
			continue;
		op_fail(&p->ops[k], rc, &p->ops[k].err);
		(void)atomic_fetch_sub(&p->left, 1); /* cannot be the last: this call counts as one */
	}
	if (atomic_fetch_sub(&p->left, 1) == 1)
		parts_end(p);
	return 0;
}

bool
follow_split_rest(struct follows *rs, struct op *op)
{
	struct slice space, queue;

	if (!follow_is_mixed(op, &space, &queue))
		return false;
	for (uint32_t i = 0; i < op->n_items; i++)
		op->items[i].taken |= op->items[i].rc != SLU_ENOTFOUND;
	return count_runs(op) > 0 && follow_split(rs, op) == 0;
}
