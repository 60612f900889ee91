#include "api/anyclaim.h"

static void claim(struct apicall *a, slu_time wait);

int
anyclaim_init(struct anyclaim *c, struct apicall *a, unsigned n)
{
	*c = (struct anyclaim){ .n = n };
	c->ops = arena_array(&a->memory, n, sizeof *c->ops);
	c->claims = c->ops ? arena_array(&a->memory, n, sizeof *c->claims) : NULL;
	if (!c->claims)
		return SLU_ENOMEM;
	memset(c->claims, 0, n * sizeof *c->claims);
	for (unsigned i = 0; i < n; i++) {
		c->claims[i].op = &c->ops[i];
		c->claims[i].apicall = a;
	}
	a->part = c;
	return 0;
}

/* --- the winner --------------------------------------------------------------- */

static void
one_back(struct loop_work *w)
{
	struct apicall *const a = CONTAINER(w, struct anyclaim_one, work)->apicall;
	struct anyclaim *const c = a->part;

	if (--c->returns == 0)
		c->then(a);
}

/* On the shard's thread: what follows is on the loop. */
static void
post_one(struct op *op, void (*run)(struct loop_work *w))
{
	const struct apicall *const a = op->owner;
	const struct anyclaim *const c = a->part;
	struct anyclaim_one *const one = &c->claims[op - c->ops];

	one->work.run = run;
	loop_post(exchange_loop(a->x), &one->work);
}

static void
returned(struct op *op)
{
	post_one(op, one_back);
}

/* All but the winner go back; `then` waits for that, because the memory belongs to the apicall. */
static void
return_others(struct apicall *a)
{
	struct anyclaim *const c = a->part;

	c->returns = 1;
	for (unsigned i = 0; i < c->n; i++) {
		struct anyclaim_one *const one = &c->claims[i];

		if (one == c->won || one->op->rc || one->op->n_rows == 0)
			continue;
		one->op->done = returned;
		if (broker_return(a->api->broker, one->op, 0) == 0)
			c->returns++;
		else
			op_unpin(one->op);
	}
	if (--c->returns == 0)
		c->then(a);
}

static void
nothing(struct apicall *a)
{
	struct anyclaim *const c = a->part;
	const slu_time wait = c->wait;

	if (wait == 0 || a->gone) {
		c->then(a);
		return;
	}
	c->wait = 0;
	if (c->waits)
		c->waits(a);
	claim(a, wait);
}

static void
claimed(struct apicall *a)
{
	struct anyclaim *const c = a->part;

	for (unsigned i = 0; i < c->n; i++) {
		struct anyclaim_one *const one = &c->claims[i];

		if (one->op->rc && one->op->rc != SLU_ECANCELED)
			c->failed = one->op;
		if (one->op->rc || one->op->n_rows == 0)
			continue;
		if (!c->won || (c->is_better && c->is_better(one, c->won)))
			c->won = one;
	}
	if (c->won) {
		c->failed = NULL;
		return_others(a);
	} else if (c->failed) {
		c->then(a);
	} else {
		nothing(a);
	}
}

/* --- the claims --------------------------------------------------------------- */

/* On the loop: the first grant ends the waits of the others. */
static void
one_claimed(struct loop_work *w)
{
	struct anyclaim_one *const one = CONTAINER(w, struct anyclaim_one, work);
	struct apicall *const a = one->apicall;
	struct anyclaim *const c = a->part;

	if (!c->canceled && (one->op->n_rows || one->op->rc)) {
		c->canceled = true;
		for (unsigned i = 0; i < c->n; i++)
			if (&c->claims[i] != one)
				broker_cancel(a->api->broker, c->claims[i].op);
	}
	one->done(one->op);
}

static void
claim_done(struct op *op)
{
	post_one(op, one_claimed);
}

static void
claim(struct apicall *a, slu_time wait)
{
	struct anyclaim *const c = a->part;

	c->canceled = false;
	a->ops = c->ops;
	a->n_ops = c->n;
	for (unsigned i = 0; i < c->n; i++) {
		struct op *const op = c->claims[i].op;

		c->begin(a, &c->claims[i]);
		op->rows = &c->claims[i].row;
		op->max_rows = 1;
		op->wait = wait;
		if (c->n > 1 && wait > 0) { /* ANYCLAIM-3 */
			c->claims[i].done = op->done;
			op->done = claim_done;
		}
	}
	apicall_run(a, claimed);
}

void
anyclaim_run(struct anyclaim *c, struct apicall *a)
{
	const slu_time wait = c->wait;

	if (c->n > 1 || wait == 0) {
		claim(a, 0);
		return;
	}
	c->wait = 0; /* ANYCLAIM-2 */
	if (c->waits)
		c->waits(a);
	claim(a, wait);
}

/* On the shard's thread. */
static void
went_back(struct op *op)
{
	apicall_free(op->owner);
}

void
anyclaim_return(struct anyclaim *c, struct apicall *a)
{
	c->won->op->done = went_back;
	if (broker_return(a->api->broker, c->won->op, 0) == 0)
		return;
	op_unpin(c->won->op); /* stopped: the lease ends by itself */
	apicall_free(a);
}
