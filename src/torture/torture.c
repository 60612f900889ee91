#include "torture/torture.h"

#include "base/hash.h"
#include "core/supplier.h"
#include "torture/faults.h"
#include "torture/hurt.h"
#include "torture/times.h"
#include "torture/work.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	HISTORY_EVENTS = 400000, /* events of a round; 40 MB */
	REST_CALLER = 1001       /* the number of the caller at the end of a round */
};

#define ROUND_TIME      (8 * SLU_SEC)
#define ROUND_TIME_TAKE (24 * SLU_SEC) /* the same if nodes take over from each other */
#define REDRIVES_MAX    1000           /* how many calls */

/* The limits of the queue: low enough to be reached, high enough to keep clients busy. */
static const struct history_limits limits = {
	.concurrency = 25,
	.attribute_concurrency = 3,
	.rate = 500,
	.burst = 50,
	.weights = { 1, 3, 1, 1 },
};

/* --- open and close ----------------------------------------------------------------- */

/* Names a new queue, for a running server. */
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
		.kind = t->conf->kind,
		.n = t->conf->stores,
		.nodes = t->conf->nodes,
		.cuts = t->conf->cuts_stores,
		.dir = t->conf->store_dir,
		.queue = t->queue,
	};

	return stores_open(&t->stores, &conf, err);
}

static int
open_node(struct torture *t, struct slu_err *err)
{
	struct target_conf conf = t->conf->target;

	conf.stores = &t->stores;
	conf.node = t->n_nodes;
	conf.links = torture_takes_over(t) && t->conf->nodes > 1;
	return target_open(&t->nodes[t->n_nodes++], &conf, err);
}

int
torture_open(struct torture *t, const struct torture_conf *conf, struct slu_err *err)
{
	int rc;

	*t = (struct torture){ .conf = conf, .next_name = 1 };
	pthread_mutex_init(&t->mtx, NULL); /* cannot fail without attributes */
	rc = name_queue(t, err);
	if (!rc)
		rc = history_init(&t->history, HISTORY_EVENTS, err);
	t->history.several = conf->stores > 1;
	t->history.taken_over = torture_takes_over(t);
	if (!conf->plain)
		t->history.limits = limits;
	if (!rc)
		rc = open_stores(t, err);
	while (!rc && t->n_nodes < conf->nodes)
		rc = open_node(t, err);
	return rc ? rc : hurt_open(t, err);
}

void
torture_close(struct torture *t)
{
	check_release(&t->check);
	for (unsigned i = 0; i < t->n_nodes; i++)
		target_close(&t->nodes[i]);
	hurt_close(t);
	stores_close(&t->stores);
	history_release(&t->history);
	pthread_mutex_destroy(&t->mtx);
}

/* Kill and restart are the first rows. */
static bool
will_restart(const struct torture *t)
{
	return t->conf->faults & 3 && !torture_missing(t, &torture_faults[0]);
}

bool
torture_takes_over(const struct torture *t)
{
	return t->conf->kind && t->conf->kind->takes_over;
}

struct target *
torture_owner(struct torture *t)
{
	const uint32_t shard = supplier_hash(SLICE(TORTURE_SPACE), slice_of(t->queue)) % t->conf->kind->shards;

	for (struct target *v = t->nodes; v < t->nodes + t->n_nodes; v++)
		if (target_owns(v, shard))
			return v;
	return NULL;
}

bool
torture_told(struct torture *t)
{
	const struct torture_conf *conf = t->conf;

	if (conf->told && conf->told(conf->arg, t))
		t->interrupted = true;
	return t->interrupted;
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

/* A clock that was set back may stay there: then a schedule does not go on. */
static bool
steps_clocks(const struct torture *t)
{
	for (unsigned i = 0; torture_faults[i].name; i++)
		if (strcmp(torture_faults[i].name, "clock") == 0)
			return (t->conf->faults >> i & 1) && !torture_missing(t, &torture_faults[i]);
	return false;
}

/* Reads the committed values of all locks. No client holds a lock for long. */
static void
read_locks(struct caller *c, struct torture *t)
{
	uint64_t value;

	for (uint32_t i = 1; t->conf->lockers && i <= HISTORY_LOCKS; i++)
		(void)caller_read_state(c, i, NULL, &value); /* the outcome is in the history */
}

/* Ends a round: look; take all messages; look; redrive the dead letters, take them too, and look. Every
 * accepted message must be accounted for. */
static int
come_to_rest(struct caller *c, struct torture *t, struct slu_err *err)
{
	int rc = caller_look(c, err);

	if (!rc && work_drain(c, err))
		rc = caller_look(c, err);
	if (!rc)
		rc = redrive_all(c, t, err);
	if (!rc)
		(void)work_drain(c, err); /* the look finds messages that are left */
	if (!rc)
		rc = caller_look(c, err);
	if (!rc && t->history.limits.weights[0])
		rc = caller_callbacks(c, err);
	if (!rc && t->history.limits.weights[0])
		rc = caller_schedules(c, !steps_clocks(t), err);
	read_locks(c, t);
	t->history.must_be_empty = true;
	return rc;
}

/* Sums over all nodes. */
static void
gauge(struct torture *t)
{
	const slu_time now = time_now();
	struct event e = { .kind = EVENT_GAUGE, .start = now, .end = now };

	for (unsigned i = 0; i < t->n_nodes; i++) {
		const int64_t files = target_files(&t->nodes[i]);
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

/* Closes the caller before files are counted. */
static int
rest(struct torture *t, struct slu_err *err)
{
	struct caller c;
	int rc = work_caller(&c, t, REST_CALLER, err);

	if (!rc)
		rc = fault_end_moves(t, err);
	if (!rc && t->conf->kind)
		rc = fault_find_stores(t, err);
	if (!rc)
		rc = come_to_rest(&c, t, err);
	caller_release(&c);
	if (rc)
		(void)fault_look_after(t, &(struct slu_err){ 0 }); /* the error is stored in `trouble` */
	if (rc && t->nodes[0].ours && !t->trouble[0])
		(void)snprintf(t->trouble, sizeof t->trouble, "the server does not continue: %s", err->text);
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
	const slu_time soon = time_now() + (torture_takes_over(t) ? ROUND_TIME_TAKE : ROUND_TIME);
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
		rc = caller_setup(&c, &t->history.limits, err);
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
	} while (!rc && !t->failed && !torture_told(t) && time_now() < t->ends);
	if (rc && t->trouble[0]) { /* the server's fault: that is a verdict */
		t->failed = true;
		rc = 0;
	}
	return rc;
}
