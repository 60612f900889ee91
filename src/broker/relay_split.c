/*
 * relay_split.c - an op about several queues, some of which move: each goes its own way.
 *
 *      puts   a a a b b a      of one op
 *             └─┬─┘ └┬┘ │
 *             op    op  op     of these, which point into its puts; the last one ends it
 */
#include "broker/relay_in.h"

#include "base/mem.h"

struct parts {
	struct op *whole;
	bool took; /* a part of it was done before */
	_Atomic uint32_t left;
	uint32_t n;
	struct op ops[];
};

struct names {
	struct slice space, queue;
};

static uint32_t
count_of(const struct op *op)
{
	return op->n_puts ? op->n_puts : op->n_items;
}

static bool
is_taken(const struct op *op, uint32_t i)
{
	return op->n_puts ? op->puts[i].taken : op->items[i].taken;
}

static struct names
names_of(const struct op *op, uint32_t i)
{
	struct names n = { op->space, op->queue };

	if (i < op->n_puts) {
		n.space = op->puts[i].m.space.n ? op->puts[i].m.space : n.space;
		n.queue = op->puts[i].m.queue.n ? op->puts[i].m.queue : n.queue;
	} else if (i < op->n_items) {
		n.space = op->items[i].space.n ? op->items[i].space : n.space;
		n.queue = op->items[i].queue.n ? op->items[i].queue : n.queue;
	}
	return n;
}

static bool
is_same(struct names a, struct names b)
{
	return slice_eq(a.space, b.space) && slice_eq(a.queue, b.queue);
}

bool
relay_is_mixed(const struct op *op, struct slice *space, struct slice *queue)
{
	const struct names first = names_of(op, 0);

	*space = first.space;
	*queue = first.queue;
	if (op->verb == OP_STATE_PUT)
		return false;
	for (uint32_t i = 1; i < count_of(op); i++)
		if (!is_same(first, names_of(op, i)))
			return true;
	return false;
}

/* ---- Parts ---- */

/* Behind the run of one queue that begins at i, of what is still open. */
static uint32_t
run_end(const struct op *op, uint32_t i)
{
	const struct names first = names_of(op, i);

	do
		i++;
	while (i < count_of(op) && !is_taken(op, i) && is_same(first, names_of(op, i)));
	return i;
}

static uint32_t
count_runs(const struct op *op)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < count_of(op);) {
		const bool taken = is_taken(op, i);

		n += !taken;
		i = taken ? i + 1 : run_end(op, i);
	}
	return n;
}

/* ---- The end ---- */

static void
end_items(const struct parts *p, const struct op *failed, uint32_t n_failed)
{
	struct op *const op = p->whole;

	for (uint32_t k = 0; k < p->n; k++)
		for (uint32_t i = 0; p->ops[k].rc && i < p->ops[k].n_items; i++)
			p->ops[k].items[i].rc = p->ops[k].rc;
	if (n_failed == p->n && !p->took)
		op_fail(op, failed->rc, &failed->err);
	else
		op->rc = 0;
}

/* O4 holds for each queue: if only some were accepted, nobody can say that none was. */
static void
end_puts(const struct parts *p, const struct op *failed, uint32_t n_failed)
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
parts_end(struct parts *p)
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
	op->elsewhere[0] = '\0';
	atomic_store(&op->canceled, OP_CANCEL_DONE);
	op->done(op);
}

static void
part_done(struct op *part)
{
	struct parts *const p = part->owner;

	if (atomic_fetch_sub(&p->left, 1) == 1)
		parts_end(p);
}

/* ---- The beginning ---- */

static void
part_init(struct parts *p, struct op *part, uint32_t from, uint32_t to)
{
	const struct op *const op = p->whole;
	const struct names n = names_of(op, from);

	op_init(part, op->verb, n.space, n.queue, part_done, p);
	part->as = op->as;
	part->routes = op->routes;
	if (op->n_puts) {
		part->puts = op->puts + from;
		part->n_puts = to - from;
	} else {
		part->items = op->items + from;
		part->n_items = to - from;
	}
}

int
relay_split(struct relays *rs, struct op *op)
{
	const uint32_t n = count_runs(op);
	struct parts *const p = mem_zalloc(sizeof *p + n * sizeof(struct op));
	uint32_t k = 0;

	if (!p)
		return SLU_ENOMEM;
	p->whole = op;
	p->n = n;
	p->left = n + 1; /* until all have been posted */
	for (uint32_t i = 0; i < count_of(op);) {
		const uint32_t end = is_taken(op, i) ? i + 1 : run_end(op, i);

		if (is_taken(op, i))
			p->took = true;
		else
			part_init(p, &p->ops[k++], i, end);
		i = end;
	}
	atomic_store(&op->canceled, OP_CANCEL_AWAY);
	for (k = 0; k < n; k++) {
		const int rc = rs->env.post(rs->env.arg, &p->ops[k]);

		if (!rc)
			continue;
		op_fail(&p->ops[k], rc, &p->ops[k].err);
		(void)atomic_fetch_sub(&p->left, 1); /* not the last: this call is one, too */
	}
	if (atomic_fetch_sub(&p->left, 1) == 1)
		parts_end(p);
	return 0;
}

bool
relay_split_rest(struct relays *rs, struct op *op)
{
	struct slice space, queue;

	if (!relay_is_mixed(op, &space, &queue))
		return false;
	for (uint32_t i = 0; i < op->n_items; i++)
		op->items[i].taken |= op->items[i].rc != SLU_ENOTFOUND;
	return count_runs(op) > 0 && relay_split(rs, op) == 0;
}
