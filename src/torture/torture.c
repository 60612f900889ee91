#include "torture/torture.h"

#include "base/hash.h"
#include "torture/faults.h"
#include "torture/times.h"
#include "torture/work.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	HISTORY_EVENTS = 400000, /* of a round; 40 MB */
	REST_CALLER = 1001,      /* the number of the caller of a round's end */
	FAULT_DICE = 2000
};

#define ROUND_TIME   (8 * SLU_SEC)
#define WORK_TIME    (2 * SLU_SEC) /* the longest that is waited for it */
#define REDRIVES_MAX 1000          /* calls */

/* --- open and close ----------------------------------------------------------------- */

/* A queue that nobody used before, for a server that is not ours. */
static int
name_queue(struct torture *t, struct slu_err *err)
{
	uint32_t random;
	const int rc = hash_random(&random, sizeof random, err);

	(void)snprintf(t->queue, sizeof t->queue, "t%" PRIu64 "-%08" PRIx32, t->conf->seed, random);
	return rc;
}

static int
open_stores(struct torture *t, struct slu_err *err)
{
	const struct stores_conf conf = {
		.n = t->conf->stores,
		.nodes = t->conf->nodes,
		.proxies = t->conf->cuts_stores,
		.dir = t->conf->victim.dir,
		.queue = t->queue,
	};

	return stores_open(&t->stores, &conf, err);
}

static int
open_node(struct torture *t, struct slu_err *err)
{
	struct victim_conf conf = t->conf->victim;

	conf.stores = &t->stores;
	conf.node = t->n_nodes;
	return victim_open(&t->nodes[t->n_nodes++], &conf, err);
}

int
torture_open(struct torture *t, const struct torture_conf *conf, struct slu_err *err)
{
	int rc;

	*t = (struct torture){ .conf = conf, .next_name = 1 };
	rc = name_queue(t, err);
	if (!rc)
		rc = history_init(&t->history, HISTORY_EVENTS, err);
	t->history.several = conf->stores > 1;
	if (!rc)
		rc = open_stores(t, err);
	while (!rc && t->n_nodes < conf->nodes)
		rc = open_node(t, err);
	return rc;
}

void
torture_close(struct torture *t)
{
	check_release(&t->check);
	for (unsigned i = 0; i < t->n_nodes; i++)
		victim_close(&t->nodes[i]);
	stores_close(&t->stores);
	history_release(&t->history);
}

/* --- faults ------------------------------------------------------------------------- */

/* The faults that were asked for and can be had, in an order of the dice. */
static unsigned
shuffle(const struct torture *t, struct dice *d, const struct torture_fault **out)
{
	unsigned n = 0;

	for (unsigned i = 0; torture_faults[i].name; i++)
		if (t->conf->faults >> i & 1 && !torture_missing(t, &torture_faults[i]))
			out[n++] = &torture_faults[i];
	for (unsigned i = n; i > 1; i--) {
		const unsigned j = (unsigned)dice_below(d, i);
		const struct torture_fault *swap = out[i - 1];

		out[i - 1] = out[j];
		out[j] = swap;
	}
	return n;
}

/* Kill and restart are the first rows. */
static bool
will_restart(const struct torture *t)
{
	return t->conf->faults & 3 && !torture_missing(t, &torture_faults[0]);
}

static int
hurt(struct torture *t, const struct torture_fault *f, struct dice *d, struct slu_err *err)
{
	const ptrdiff_t row = f - torture_faults;
	struct event e = { .kind = EVENT_FAULT, .name = (uint64_t)row, .start = time_now() };
	int rc;

	rc = f->hurt(t, d, err);
	t->hurts[row]++;
	e.end = time_now();
	history_add(&t->history, &e);
	return rc;
}

static bool
told(struct torture *t)
{
	const struct torture_conf *conf = t->conf;

	if (conf->told && conf->told(conf->arg, t))
		t->interrupted = true;
	return t->interrupted;
}

/* A fault is worth something when much has happened since the one before. */
static void
wait_for_work(struct torture *t, struct dice *d)
{
	const unsigned long enough = atomic_load(&t->taken) + 20 + dice_below(d, 200);
	const slu_time end = time_now() + WORK_TIME;

	while (atomic_load(&t->taken) < enough && time_now() < end)
		sleep_ms(1);
}

/* One fault after the other, all of them before any comes again. */
static int
hurt_until(struct torture *t, slu_time end, struct slu_err *err)
{
	struct dice d = dice_of(t->conf->seed, t->rounds, FAULT_DICE);
	const struct torture_fault *order[TORTURE_FAULTS];
	unsigned n = 0, at = 0;
	int rc = 0;

	while (!rc && !t->crashed && time_now() < end && !atomic_load(&t->history.full) &&
	       !told(t)) {
		wait_for_work(t, &d);
		rc = fault_look_after(t, err);
		if (at == n) {
			n = shuffle(t, &d, order);
			at = 0;
		}
		if (!rc && n > 0)
			rc = hurt(t, order[at++], &d, err);
	}
	return rc ? rc : fault_look_after(t, err);
}

/* --- the end of a round --------------------------------------------------------------- */

static int
redrive_all(struct caller *c, struct torture *t, struct slu_err *err)
{
	const slu_time now = time_now();
	const struct event e = { .kind = EVENT_REDRIVE, .start = now, .end = now };
	uint64_t n = 1;
	int rc = 0;

	history_add(&t->history, &e);
	for (unsigned i = 0; !rc && n > 0 && i < REDRIVES_MAX; i++)
		rc = caller_redrive(c, &n, err);
	return rc;
}

/* What everybody sees of the locks: what was committed. Nobody holds them for long. */
static void
read_locks(struct caller *c, struct torture *t)
{
	uint64_t value;

	for (uint32_t i = 1; t->conf->lockers && i <= HISTORY_LOCKS; i++)
		(void)caller_read_state(c, i, NULL, &value); /* what came of it is in the history */
}

/* Look; take all that is there; look; put the dead letters back, take them too, and look:
 * what was accepted must be accounted for. */
static int
come_to_rest(struct caller *c, struct torture *t, struct slu_err *err)
{
	int rc = caller_look(c, err);

	if (!rc && work_drain(c, err))
		rc = caller_look(c, err);
	if (!rc)
		rc = redrive_all(c, t, err);
	if (!rc)
		(void)work_drain(c, err); /* what is left is found by the look */
	if (!rc)
		rc = caller_look(c, err);
	read_locks(c, t);
	t->history.must_be_empty = true;
	return rc;
}

/* Of all nodes together. */
static void
gauge(struct torture *t)
{
	const slu_time now = time_now();
	struct event e = { .kind = EVENT_GAUGE, .start = now, .end = now };

	for (unsigned i = 0; i < t->n_nodes; i++) {
		const int64_t files = victim_files(&t->nodes[i]);
		const int64_t memory = t->nodes[i].ours ? served_memory(&t->nodes[i].served) : -1;

		if (files < 0 || memory < 0)
			return;
		e.name += (uint64_t)files;
		e.id += (uint64_t)memory;
	}
	if (t->gauge.kind != EVENT_GAUGE)
		t->gauge = e;
	history_add(&t->history, &t->gauge);
	history_add(&t->history, &e);
}

static void
add_counts(struct torture *t)
{
	for (size_t i = 0; i < t->history.n; i++)
		t->counts[t->history.events[i].kind][t->history.events[i].outcome]++;
}

/* The caller is closed before files are counted. */
static int
rest(struct torture *t, struct slu_err *err)
{
	struct caller c;
	int rc = work_caller(&c, t, REST_CALLER, err);

	if (!rc)
		rc = fault_end_moves(t, err);
	if (!rc)
		rc = come_to_rest(&c, t, err);
	caller_release(&c);
	if (rc)
		(void)fault_look_after(t, &(struct slu_err){ 0 }); /* what came of it is trouble */
	if (rc && t->nodes[0].ours && !t->trouble[0])
		(void)snprintf(t->trouble, sizeof t->trouble, "the server does not go on: %s", err->text);
	if (!rc)
		gauge(t);
	return rc;
}

static int
judge(struct torture *t, struct slu_err *err)
{
	int rc;

	check_release(&t->check);
	check_init(&t->check, &t->history);
	rc = check_run(&t->check, err);
	t->failed = t->check.n_found > 0;
	return rc;
}

/* --- rounds --------------------------------------------------------------------------- */

static int
work(struct torture *t, slu_time end, struct slu_err *err)
{
	struct crew *crew = NULL;
	int rc = crew_start(&crew, t, err);

	if (!rc)
		rc = hurt_until(t, end, err);
	atomic_store(&t->stopping, true);
	crew_stop(crew);
	return rc;
}

static int
round_of(struct torture *t, struct slu_err *err)
{
	const slu_time soon = time_now() + ROUND_TIME;
	int rc;

	history_clear(&t->history);
	t->rounds++;
	rc = work(t, soon < t->ends ? soon : t->ends, err);
	if (!rc)
		rc = rest(t, err);
	add_counts(t);
	return rc ? rc : judge(t, err);
}

static int
setup(struct torture *t, struct slu_err *err)
{
	struct caller c;
	int rc = work_caller(&c, t, REST_CALLER, err);

	if (!rc)
		rc = caller_setup(&c, err);
	caller_release(&c);
	return rc;
}

int
torture_run(struct torture *t, struct slu_err *err)
{
	int rc = setup(t, err);

	t->restarts = will_restart(t);
	t->begun = time_now();
	t->ends = t->begun + t->conf->duration;
	do {
		if (!rc)
			rc = round_of(t, err);
	} while (!rc && !t->failed && !told(t) && time_now() < t->ends);
	if (rc && t->trouble[0]) { /* its own fault: that is a verdict */
		t->failed = true;
		rc = 0;
	}
	return rc;
}
