#include "torture/work_private.h"

#include "base/mem.h"
#include "torture/times.h"

#include <pthread.h>

enum {
	DEPTH = 300, /* how many messages producers may be ahead */
	KEYS = 400,
	HOT_KEYS = 8, /* keys that half of the messages with a key use */
	LEASE_MS = 2000,
	LONG_LEASE_MS = 5000, /* the least rest of a lease after a restart */
	SHORT_LEASE_MS = 120,
	DRAIN_LEASE_MS = 1500,
	WAIT_MS = 50,
	POISON = 13 /* a message whose name this divides fails nearly always, until it is a dead letter */
};

/* After a restart leases last at least 5 s. A message that cannot be taken for longer is stuck. */
#define DRAIN_IDLE (15 * SLU_SEC)
#define DRAIN_TIME (60 * SLU_SEC)

#define MOVED_TIME (30 * SLU_SEC) /* longer than a shard is without an owner */

struct crew {
	unsigned n;
	struct torture_worker workers[];
};

/* --- producers -------------------------------------------------------------------- */

/* Chooses a key. Few keys have many messages; the other keys continue while these wait for a lost lease. */
static uint32_t
new_key(struct dice *d)
{
	unsigned keys;

	if (dice_chance(d, 40))
		return 0;
	keys = dice_chance(d, 50) ? HOT_KEYS : KEYS;
	return 1 + (uint32_t)dice_below(d, keys);
}

/* One choice a line: their order is part of the meaning of a seed. */
struct push_item
work_item(struct torture *t, struct dice *d)
{
	static const uint32_t sizes[] = { 0, 10, 300, 3000 };
	struct push_item item = { .name = atomic_fetch_add(&t->next_name, 1) };

	item.size = sizes[dice_below(d, 4)];
	item.priority = (int)dice_below(d, 10);
	item.key = new_key(d);
	if (dice_chance(d, 20))
		item.delay_ms = 1 + (unsigned)dice_below(d, 400);
	item.idempotent = dice_chance(d, 25);
	item.past = dice_chance(d, 5);
	if (!t->history.limits.weights[0])
		return item;
	item.share = (uint8_t)dice_below(d, 4);
	item.host = dice_chance(d, 40) ? (uint8_t)(1 + dice_below(d, 3)) : 0;
	return item;
}

static void
keep_keyed(struct torture_worker *w, const struct push_item *items, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (items[i].idempotent)
			w->keyed[w->n_keyed++ % WORK_KEEP] = items[i];
}

/* A message that may be sent again: at once, or after it was acked. */
static unsigned
old_items(struct torture_worker *w, struct push_item *items)
{
	const unsigned n = w->n_keyed < WORK_KEEP ? w->n_keyed : WORK_KEEP;

	if (n == 0)
		return 0;
	items[0] = w->keyed[dice_below(&w->caller.dice, n)];
	return 1;
}

static unsigned
new_items(struct torture_worker *w, struct push_item *items)
{
	static const unsigned sizes[] = { 1, 1, 2, 5, CALLS_PUSH_MAX };
	const unsigned n = sizes[dice_below(&w->caller.dice, 5)];

	for (unsigned i = 0; i < n; i++)
		items[i] = work_item(w->torture, &w->caller.dice);
	keep_keyed(w, items, n);
	return n;
}

static void
produce(struct torture_worker *w)
{
	struct push_item items[CALLS_PUSH_MAX];

	while (work_goes_on(w)) {
		unsigned n = dice_chance(&w->caller.dice, 15) ? old_items(w, items) : 0;
		const bool again = n > 0;

		if (!again && atomic_load(&w->torture->ahead) > DEPTH) {
			sleep_ms(2);
			continue;
		}
		if (!again)
			n = new_items(w, items);
		if (caller_push(&w->caller, items, n) != OUTCOME_OK)
			sleep_ms(WORK_IDLE_MS);
		else if (!again)
			atomic_fetch_add(&w->torture->ahead, n);
	}
}

/* --- consumers -------------------------------------------------------------------- */

static void
ack(struct torture_worker *w, const struct held_message *m)
{
	(void)caller_settle(&w->caller, EVENT_ACK, m, &(struct settle_how){ 0 });
}

static void
fail(struct torture_worker *w, const struct held_message *m)
{
	(void)caller_settle(&w->caller, EVENT_NACK, m, &(struct settle_how){ 0 });
}

static void
reject(struct torture_worker *w, const struct held_message *m)
{
	(void)caller_settle(&w->caller, EVENT_NACK, m, &(struct settle_how){ .dead = true });
}

static void
defer(struct torture_worker *w, const struct held_message *m)
{
	(void)caller_settle(&w->caller, EVENT_NACK, m,
			    &(struct settle_how){ .defer = true, .time_ms = 20 });
}

static void
extend(struct torture_worker *w, const struct held_message *m)
{
	const struct settle_how how = { .time_ms = LEASE_MS + 1000 };

	if (caller_settle(&w->caller, EVENT_EXTEND, m, &how) == OUTCOME_OK)
		ack(w, m);
}

/* Acks, and enqueues another message in the same step. */
static void
finish(struct torture_worker *w, const struct held_message *m)
{
	const struct push_item item = work_item(w->torture, &w->caller.dice);

	if (!w->torture->history.limits.weights[0])
		ack(w, m);
	else if (caller_finish(&w->caller, m, &item) == OUTCOME_OK)
		atomic_fetch_add(&w->torture->ahead, 1);
}

/* Sends a settle twice: the second one must change nothing. */
static void
stutter(struct torture_worker *w, const struct held_message *m)
{
	static const enum event_kind verbs[] = { EVENT_ACK, EVENT_NACK, EVENT_EXTEND };

	ack(w, m);
	(void)caller_settle(&w->caller, verbs[dice_below(&w->caller.dice, 3)], m,
			    &(struct settle_how){ .time_ms = 500 });
}

/* Waits beyond the short lease: another client may have the message then. */
static void
stand_still(struct torture_worker *w, const struct held_message *m)
{
	static const enum event_kind verbs[] = { EVENT_ACK, EVENT_ACK, EVENT_NACK, EVENT_EXTEND };

	sleep_ms(SHORT_LEASE_MS + dice_below(&w->caller.dice, 200));
	(void)caller_settle(&w->caller, verbs[dice_below(&w->caller.dice, 4)], m,
			    &(struct settle_how){ .time_ms = 500 });
}

static void
forget(struct torture_worker *w, const struct held_message *m)
{
	(void)w;
	(void)m; /* the lease ends */
}

/* clang-format off */
static const struct {
	unsigned percent;
	void (*act)(struct torture_worker *w, const struct held_message *m);
} ways[] = {
	{ 56, ack }, { 15, finish }, { 10, fail }, { 2, reject }, { 3, defer }, { 5, extend }, { 4, stutter }, { 5, forget },
};
/* clang-format on */

static void
handle(struct torture_worker *w, const struct held_message *m, unsigned lease_ms)
{
	unsigned chance = (unsigned)dice_below(&w->caller.dice, 100);

	if (lease_ms == SHORT_LEASE_MS) {
		stand_still(w, m);
		return;
	}
	if (m->name % POISON == 0 && chance < 90) {
		fail(w, m);
		return;
	}
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		if (chance < ways[i].percent) {
			ways[i].act(w, m);
			return;
		}
		chance -= ways[i].percent;
	}
}

/* The length of a lease. With restarts, some leases last longer than a restart; otherwise they would only
 * delay the end of the round. */
static struct claim_how
how_to_claim(struct torture_worker *w)
{
	static const unsigned limits[] = { 1, 1, 3, 10 };
	struct torture *t = w->torture;
	struct dice *d = &w->caller.dice;
	const bool stalls = dice_chance(d, atomic_load(&t->stalls) ? 50 : 2);
	const bool lasts = dice_chance(d, 25) && t->restarts;
	const unsigned limit = limits[dice_below(d, 4)];

	return (struct claim_how){
		.limit = stalls ? 1 : limit,
		.lease_ms = stalls ? SHORT_LEASE_MS : lasts ? LONG_LEASE_MS
							    : LEASE_MS,
		.wait_ms = WAIT_MS,
	};
}

static void
consume(struct torture_worker *w)
{
	struct held_message held[10];

	while (work_goes_on(w)) {
		const struct claim_how how = how_to_claim(w);
		unsigned n;

		if (caller_claim(&w->caller, &how, held, &n) != OUTCOME_OK)
			sleep_ms(WORK_IDLE_MS);
		atomic_fetch_sub(&w->torture->ahead, n);
		atomic_fetch_add(&w->torture->taken, n);
		for (unsigned i = 0; i < n; i++)
			handle(w, &held[i], how.lease_ms);
	}
}

/* The thread of a client that sends claims and disconnects, while connections break. */
static void
vanish(struct torture_worker *w)
{
	while (work_goes_on(w)) {
		const struct claim_how how = {
			.limit = 3,
			.lease_ms = 1000,
			.wait_ms = dice_chance(&w->caller.dice, 50) ? 1000 : 0,
		};

		if (atomic_load(&w->torture->cuts))
			caller_vanish(&w->caller, &how);
		sleep_ms(WORK_IDLE_MS);
	}
}

/* --- the crew --------------------------------------------------------------------- */

int
work_caller(struct caller *c, struct torture *t, unsigned number, struct slu_err *err)
{
	*c = (struct caller){
		.nodes = t->nodes,
		.n_nodes = t->n_nodes,
		.history = &t->history,
		.queue = t->queue,
		.dice = dice_of(t->conf->seed, t->rounds, number),
		.number = (uint16_t)number,
		.cuts = &t->cuts,
		.next_call = &t->next_call,
		.handed = &t->handed,
		.patience = torture_takes_over(t) ? MOVED_TIME : 0,
	};
	return caller_init(c, err);
}

static void *
run_worker(void *arg)
{
	struct torture_worker *w = arg;

	w->work(w);
	return NULL;
}

/* The threads: producers, consumers, lockers, one that disconnects, one that makes batches, and one that sets schedules. */
static void (*work_of(const struct torture_conf *conf, unsigned number))(struct torture_worker *w)
{
	if (number < conf->producers)
		return produce;
	number -= conf->producers;
	if (number < conf->consumers)
		return consume;
	number -= conf->consumers;
	if (number < conf->lockers)
		return work_locks;
	number -= conf->lockers;
	return number == 0 ? vanish : number == 1 ? work_batches
						  : work_schedules;
}

static int
start_worker(struct torture_worker *w, struct torture *t, unsigned number, struct slu_err *err)
{
	int rc = work_caller(&w->caller, t, number, err);

	w->torture = t;
	w->work = work_of(t->conf, number);
	if (!rc && pthread_create(&w->thread, NULL, run_worker, w) != 0)
		rc = slu_fail(err, SLU_ENOMEM, "cannot start a thread for a client: %m");
	w->running = !rc;
	return rc;
}

int
crew_start(struct crew **out, struct torture *t, struct slu_err *err)
{
	const unsigned n = t->conf->producers + t->conf->consumers + t->conf->lockers + (t->conf->plain ? 1 : 3);
	struct crew *crew = mem_zalloc(sizeof *crew + n * sizeof crew->workers[0]);
	int rc = 0;

	if (!crew)
		return slu_fail(err, SLU_ENOMEM, "no memory for %u clients", n);
	atomic_store(&t->stopping, false);
	atomic_store(&t->ahead, 0);
	*out = crew;
	while (!rc && crew->n < n) {
		rc = start_worker(&crew->workers[crew->n], t, crew->n, err);
		crew->n++;
	}
	return rc;
}

void
crew_stop(struct crew *crew)
{
	if (!crew)
		return;
	for (unsigned i = 0; i < crew->n; i++)
		atomic_store(&crew->workers[i].torture->stopping, true);
	for (unsigned i = 0; i < crew->n; i++) {
		if (crew->workers[i].running)
			pthread_join(crew->workers[i].thread, NULL);
		caller_release(&crew->workers[i].caller);
	}
	mem_free(crew);
}

/* --- others ----------------------------------------------------------------------- */

void
work_flood(struct caller *c, struct torture *t, uint32_t size, unsigned n)
{
	struct push_item items[CALLS_PUSH_MAX];

	for (unsigned call = 0; call < n && !atomic_load(&t->history.full); call++) {
		for (unsigned i = 0; i < CALLS_PUSH_MAX; i++) {
			items[i] = work_item(t, &c->dice);
			items[i].size = size;
		}
		if (caller_push(c, items, CALLS_PUSH_MAX) != OUTCOME_OK)
			return;
		atomic_fetch_add(&t->ahead, CALLS_PUSH_MAX);
	}
}

/* Takes and acks messages. Returns how many. *answered: whether a server that has the queue said so. */
static unsigned
drain_some(struct caller *c, bool *answered)
{
	static const struct claim_how how = {
		.limit = CALLS_CLAIM_MAX,
		.lease_ms = DRAIN_LEASE_MS,
		.wait_ms = 200,
	};
	struct held_message held[CALLS_CLAIM_MAX];
	unsigned n;

	*answered = caller_claim(c, &how, held, &n) == OUTCOME_OK;
	if (*answered && n > 0)
		(void)caller_ack_all(c, held, n); /* the outcome is in the history */
	return n;
}

bool
work_drain(struct caller *c, struct slu_err *err)
{
	const slu_time end = time_now() + DRAIN_TIME;
	slu_time last = time_now();
	struct look look;
	bool answered;

	while (time_now() < end && time_now() < last + DRAIN_IDLE) {
		const unsigned n = drain_some(c, &answered);

		if (n > 0) {
			last = time_now();
			continue;
		}
		if (caller_count(c, &look, err))
			return false;
		if (!answered)
			last = time_now(); /* no node served the queue: it was not idle */
		if (look.counts[STATE_TOTAL] == look.counts[STATE_DEAD] + look.counts[STATE_DAMAGED])
			return true;
	}
	(void)slu_fail(err, SLU_ETIMEOUT, "some messages could not be taken");
	return false;
}
