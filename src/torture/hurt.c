#include "torture/hurt.h"

#include "base/mem.h"
#include "torture/faults.h"
#include "torture/times.h"

enum {
	FAULT_DICE = 2000,
	OWNER_PERCENT = 50 /* faults that hit the owner of the queue: another node must take over */
};

#define WORK_TIME      (2 * SLU_SEC) /* the longest wait for the clients */
#define WORK_TIME_TAKE (6 * SLU_SEC) /* the same if a shard may be without an owner */

enum injector_state {
	INJECTOR_RESTS,
	INJECTOR_WORKS,
	INJECTOR_ENDS
};

struct injector {
	struct torture *torture;
	bool reports; /* it is the thread of the caller */
	pthread_t thread;
	bool running;

	/* Shared, under mtx of hurt. */
	enum injector_state state;

	/* The round. */
	struct dice dice;
	slu_time end;
	struct slu_err err;
	int rc;

	/* The faults in the order of this pass. */
	const struct torture_fault *order[TORTURE_FAULTS];
	unsigned n, at;
};

struct hurt {
	pthread_mutex_t mtx;
	pthread_cond_t changed;
	unsigned n;
	struct injector all[TORTURE_NODES];
};

/* --- which fault, and which node ------------------------------------------------------ */

/* Shuffles the requested faults that are possible. */
static void
shuffle(struct injector *in)
{
	const struct torture *t = in->torture;

	in->n = in->at = 0;
	for (unsigned i = 0; torture_faults[i].name; i++)
		if (t->conf->faults >> i & 1 && !torture_missing(t, &torture_faults[i]))
			in->order[in->n++] = &torture_faults[i];
	for (unsigned i = in->n; i > 1; i--) {
		const unsigned j = (unsigned)dice_below(&in->dice, i);
		const struct torture_fault *swap = in->order[i - 1];

		in->order[i - 1] = in->order[j];
		in->order[j] = swap;
	}
}

/* NULL: the owner is to be hit, and is not known now. */
static struct target *
choose(struct torture *t, struct dice *d, bool owner)
{
	struct target *const other = &t->nodes[dice_below(d, t->n_nodes)];
	struct target *v = NULL;

	if (torture_takes_over(t) && (owner || dice_chance(d, OWNER_PERCENT)))
		v = torture_owner(t);
	return v || owner ? v : other;
}

/* Takes a node that no other injector has. NULL: the round ends before one is free. */
static struct target *
seize(struct injector *in, bool owner)
{
	while (time_now() < in->end) {
		struct target *v = choose(in->torture, &in->dice, owner);

		if (v && target_seize(v))
			return v;
		sleep_ms(5);
	}
	return NULL;
}

/* --- one fault after the other ---------------------------------------------------------- */

static int
hurt(struct injector *in, const struct torture_fault *f)
{
	struct torture *t = in->torture;
	const ptrdiff_t row = f - torture_faults;
	struct event e = { .kind = EVENT_FAULT, .name = (uint64_t)row };
	struct target *v = seize(in, f->hits_owner);
	int rc;

	if (!v)
		return 0;
	e.start = time_now();
	rc = f->hurt(t, v, &in->dice, &in->err);
	target_let_go(v);
	atomic_fetch_add(&t->hurts[row], 1);
	e.end = time_now();
	history_add(&t->history, &e);
	return rc;
}

/* Waits until the clients have done enough since the previous fault. */
static void
wait_for_work(struct injector *in)
{
	const struct torture *t = in->torture;
	const unsigned long enough = atomic_load(&t->taken) + 20 + dice_below(&in->dice, 200);
	const slu_time end = time_now() + (torture_takes_over(t) ? WORK_TIME_TAKE : WORK_TIME);

	while (atomic_load(&t->taken) < enough && time_now() < end)
		sleep_ms(1);
}

static bool
goes_on(const struct injector *in)
{
	struct torture *t = in->torture;

	return !in->rc && !atomic_load(&t->crashed) && time_now() < in->end && !atomic_load(&t->history.full) &&
	       !atomic_load(&t->interrupted) && !(in->reports && torture_told(t));
}

/* All faults before one is repeated. */
static void
inject(struct injector *in)
{
	while (goes_on(in)) {
		wait_for_work(in);
		in->rc = fault_look_after(in->torture, &in->err);
		if (in->at == in->n)
			shuffle(in);
		if (!in->rc && in->n > 0)
			in->rc = hurt(in, in->order[in->at++]);
	}
}

/* --- the injectors ---------------------------------------------------------------------- */

static void
set_state(struct injector *in, enum injector_state state)
{
	struct hurt *h = in->torture->hurt;

	pthread_mutex_lock(&h->mtx);
	in->state = state;
	pthread_cond_broadcast(&h->changed);
	pthread_mutex_unlock(&h->mtx);
}

/* Waits while the injector is in this state. Returns the next one. */
static enum injector_state
wait_state(struct injector *in, enum injector_state state)
{
	struct hurt *h = in->torture->hurt;

	pthread_mutex_lock(&h->mtx);
	while (in->state == state)
		pthread_cond_wait(&h->changed, &h->mtx);
	state = in->state;
	pthread_mutex_unlock(&h->mtx);
	return state;
}

static void *
run(void *arg)
{
	struct injector *in = arg;

	while (wait_state(in, INJECTOR_RESTS) == INJECTOR_WORKS) {
		inject(in);
		set_state(in, INJECTOR_RESTS);
	}
	return NULL;
}

int
hurt_open(struct torture *t, struct slu_err *err)
{
	struct hurt *h = mem_zalloc(sizeof *h);
	int rc = h ? 0 : slu_fail(err, SLU_ENOMEM, "no memory");

	t->hurt = h;
	if (rc)
		return rc;
	pthread_mutex_init(&h->mtx, NULL);    /* cannot fail without attributes */
	pthread_cond_init(&h->changed, NULL); /* the same */
	h->n = torture_takes_over(t) ? t->n_nodes : 1;
	for (unsigned i = 0; i < h->n; i++) {
		h->all[i].torture = t;
		h->all[i].reports = i == 0;
		h->all[i].running = i > 0 && pthread_create(&h->all[i].thread, NULL, run, &h->all[i]) == 0;
		if (i > 0 && !h->all[i].running)
			rc = slu_fail(err, SLU_ENOMEM, "cannot start a thread for faults: %m");
	}
	return rc;
}

void
hurt_close(struct torture *t)
{
	struct hurt *h = t->hurt;

	if (!h)
		return;
	for (unsigned i = 0; i < h->n; i++)
		if (h->all[i].running) {
			set_state(&h->all[i], INJECTOR_ENDS);
			pthread_join(h->all[i].thread, NULL);
		}
	pthread_cond_destroy(&h->changed);
	pthread_mutex_destroy(&h->mtx);
	mem_free(h);
	t->hurt = NULL;
}

/* --- a round ------------------------------------------------------------------------------ */

static void
begin(struct injector *in, unsigned number, slu_time end)
{
	in->dice = dice_of(in->torture->conf->seed, in->torture->rounds, FAULT_DICE + number);
	in->end = end;
	in->rc = 0;
	in->n = in->at = 0;
	if (number > 0)
		set_state(in, INJECTOR_WORKS);
}

int
hurt_until(struct torture *t, slu_time end, struct slu_err *err)
{
	struct hurt *h = t->hurt;
	int rc = 0;

	for (unsigned i = h->n; i-- > 0;)
		begin(&h->all[i], i, end);
	inject(&h->all[0]);
	for (unsigned i = 0; i < h->n; i++) {
		(void)wait_state(&h->all[i], INJECTOR_WORKS);
		if (h->all[i].rc && !rc) {
			rc = h->all[i].rc;
			*err = h->all[i].err;
		}
	}
	return rc ? rc : fault_look_after(t, err);
}
