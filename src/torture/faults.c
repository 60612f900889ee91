/*
 * faults.c - the ways to hurt a server, a row each.
 */
#include "torture/carry.h"
#include "torture/faults.h"
#include "torture/times.h"
#include "torture/work.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum {
	FLOOD_SIZE = 60000, /* bytes of a message that fills the disk */
	FLOOD_CALLS = 400,
	FAULT_CALLER = 1000 /* the number of a caller that is no client */
};

#define CARRY_TIME (60 * SLU_SEC) /* leases end sooner */

/* --- what cannot be had ------------------------------------------------------------ */

static const char *
need_own(const struct torture *t)
{
	return t->nodes[0].ours ? NULL : "the server is not ours; leave --server out to have one started";
}

static bool
keeps_nothing(const struct torture *t)
{
	return strcmp(t->nodes[0].served.engine, "memory") == 0;
}

static const char *
need_kept(const struct torture *t)
{
	if (need_own(t))
		return need_own(t);
	return keeps_nothing(t) ? "the memory engine keeps nothing over a restart" : NULL;
}

static const char *
need_disk(const struct torture *t)
{
	if (need_own(t))
		return need_own(t);
	if (keeps_nothing(t))
		return "the memory engine has no disk";
	return t->nodes[0].disk < 0 ? t->nodes[0].no_disk : NULL;
}

static const char *
need_store(const struct torture *t)
{
	if (need_own(t))
		return need_own(t);
	return t->stores.n > 0 ? NULL : "its messages are its own; --engine redis has a store";
}

static const char *
need_stores(const struct torture *t)
{
	if (need_store(t))
		return need_store(t);
	return t->stores.n > 1 ? NULL : "there is one store; --stores 2 has another to move to";
}

static const char *
need_clock(const struct torture *t)
{
	if (need_own(t))
		return need_own(t);
	return t->nodes[0].clock_lib[0] ? NULL : t->nodes[0].no_clock;
}

static const char *
need_nothing(const struct torture *t)
{
	(void)t;
	return NULL;
}

static const char *
need_simulator(const struct torture *t)
{
	(void)t;
	return "no process can do that to a machine; the simulator cuts the power: `make soak`";
}

const char *
torture_missing(const struct torture *t, const struct torture_fault *f)
{
	return f->missing(t);
}

/* --- who is hurt ------------------------------------------------------------------- */

static struct victim *
some_node(struct torture *t, struct dice *d)
{
	return &t->nodes[dice_below(d, t->n_nodes)];
}

static struct store *
some_store(struct torture *t, struct dice *d)
{
	return &t->stores.all[dice_below(d, t->stores.n)];
}

static int
in_trouble(struct torture *t, const struct victim *v, const char *what, const struct slu_err *err)
{
	t->troubled = v->conf.node;
	(void)snprintf(t->trouble, sizeof t->trouble, "the server does not %s: %s", what, err->text);
	return err->code;
}

/* --- its death --------------------------------------------------------------------- */

/* It ended, and not because it was told to, or not as it should. */
static void
note_exit(struct torture *t, const struct victim *v, int status)
{
	const slu_time now = time_now();
	const struct event e = {
		.kind = EVENT_EXIT,
		.start = now,
		.end = now,
		.id = WIFSIGNALED(status) ? (uint64_t)WTERMSIG(status) : 0,
		.name = WIFEXITED(status) ? (uint64_t)WEXITSTATUS(status) : 0,
	};

	history_add(&t->history, &e);
	t->crashed = true;
	t->troubled = v->conf.node;
	(void)snprintf(t->trouble, sizeof t->trouble, "the server ended by itself: %s %d",
		       WIFSIGNALED(status) ? "signal" : "exit code",
		       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static int
start(struct torture *t, struct victim *v, struct slu_err *err)
{
	return victim_start(v, err) ? in_trouble(t, v, "start again", err) : 0;
}

int
fault_look_after(struct torture *t, struct slu_err *err)
{
	int status, rc = 0;

	for (struct victim *v = t->nodes; v < t->nodes + t->n_nodes && !rc; v++)
		if (victim_is_gone(v, &status)) {
			note_exit(t, v, status);
			rc = start(t, v, err);
		}
	return rc;
}

static int
kill_it(struct torture *t, struct dice *d, struct slu_err *err)
{
	struct victim *v = some_node(t, d);
	int status;

	if (victim_end(v, SIGKILL, &status))
		note_exit(t, v, status);
	if (dice_chance(d, 50)) /* clients find nobody for a while, or hardly notice */
		sleep_ms(dice_below(d, 100));
	return start(t, v, err);
}

static int
restart(struct torture *t, struct dice *d, struct slu_err *err)
{
	struct victim *v = some_node(t, d);
	int status;

	if (victim_end(v, SIGTERM, &status) || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
		note_exit(t, v, status);
	return start(t, v, err);
}

/* --- its stores -------------------------------------------------------------------- */

/* All must find their stores again by themselves. */
static int
find_stores(struct torture *t, struct slu_err *err)
{
	int rc = 0;

	for (struct victim *v = t->nodes; v < t->nodes + t->n_nodes && !rc; v++)
		if (victim_wait(v, err))
			rc = in_trouble(t, v, "go on", err);
	return rc;
}

/* The store is there again, or the run cannot go on: that is not the server's fault. */
static int
kill_store(struct torture *t, struct dice *d, struct slu_err *err)
{
	struct store *s = some_store(t, d);

	store_kill(s);
	if (dice_chance(d, 50))
		sleep_ms(dice_below(d, 400));
	return store_start(s, err) ? SLU_EDOWN : find_stores(t, err);
}

static int
pause_store(struct torture *t, struct dice *d, struct slu_err *err)
{
	const struct store *s = some_store(t, d);

	store_pause(s);
	sleep_ms(dice_chance(d, 30) ? 1200 + dice_below(d, 1800) : 20 + dice_below(d, 400));
	store_resume(s);
	return find_stores(t, err);
}

/* One node, or all. */
static int
cut_store(struct torture *t, struct dice *d, struct slu_err *err)
{
	const struct store *s = some_store(t, d);
	const enum proxy_cut how = (enum proxy_cut)(1 + dice_below(d, CUTS - 1));
	const unsigned who = (unsigned)dice_below(d, 2 * t->n_nodes);

	for (unsigned i = 0; i < t->n_nodes; i++)
		if (i == who || who >= t->n_nodes)
			store_cut(s, i, how);
	sleep_ms(dice_chance(d, 30) ? 1200 + dice_below(d, 1800) : 20 + dice_below(d, 400));
	for (unsigned i = 0; i < t->n_nodes; i++)
		store_cut(s, i, CUT_NONE);
	return find_stores(t, err);
}

/* --- moves ------------------------------------------------------------------------- */

/* Nodes hear of it one after the other, and one may be killed on the way. */
static int
tell_nodes(struct torture *t, struct dice *d, struct slu_err *err)
{
	for (struct victim *v = t->nodes; v < t->nodes + t->n_nodes; v++) {
		victim_reload(v);
		sleep_ms(dice_below(d, 100));
	}
	if (dice_chance(d, 30) && kill_it(t, d, err))
		return SLU_EDOWN;
	return find_stores(t, err);
}

/* For a while: what is leased stays, and whoever carries may be killed, too, or its node. What
 * the node had begun for it ends within a second. */
static int
carry_some(struct torture *t, struct dice *d, struct slu_err *err)
{
	const slu_time patience = (slu_time)dice_below(d, 2000) * SLU_MS;
	struct slu_err why;
	struct carry c;
	int rc = carry_start(&c, some_node(t, d), TORTURE_SPACE, err);

	if (!rc && dice_chance(d, 30))
		rc = kill_it(t, d, err);
	t->moves = carry_wait(&c, patience, &why) != 0;
	sleep_ms(t->moves ? 1200 : 0);
	return rc;
}

/* There and back again, but not before all of it has come. */
static int
move_queue(struct torture *t, struct dice *d, struct slu_err *err)
{
	int rc = 0;

	if (!t->moves) {
		rc = stores_move(&t->stores, err);
		if (!rc)
			rc = tell_nodes(t, d, err);
	}
	return rc ? rc : carry_some(t, d, err);
}

/* A store that is late on a busy machine is asked again. */
int
fault_end_moves(struct torture *t, struct slu_err *err)
{
	const slu_time end = time_now() + CARRY_TIME;
	struct carry c;
	int rc;

	if (!t->moves)
		return 0;
	do {
		rc = carry_start(&c, &t->nodes[0], TORTURE_SPACE, err);
		if (!rc)
			rc = carry_wait(&c, end - time_now(), err);
		sleep_ms(rc ? 200 : 0);
	} while (rc && time_now() < end);
	if (rc)
		rc = in_trouble(t, &t->nodes[0], "move its queue", err);
	t->moves = rc != 0;
	return rc;
}

/* --- others ------------------------------------------------------------------------ */

static int
pause_it(struct torture *t, struct dice *d, struct slu_err *err)
{
	struct victim *v = some_node(t, d);

	(void)err;
	victim_pause(v);
	sleep_ms(dice_chance(d, 30) ? 2200 + dice_below(d, 800) : 20 + dice_below(d, 400));
	victim_resume(v);
	return 0;
}

static int
stall_workers(struct torture *t, struct dice *d, struct slu_err *err)
{
	(void)err;
	atomic_store(&t->stalls, true);
	sleep_ms(400 + dice_below(d, 800));
	atomic_store(&t->stalls, false);
	return 0;
}

static int
cut_connections(struct torture *t, struct dice *d, struct slu_err *err)
{
	(void)err;
	atomic_store(&t->cuts, true);
	sleep_ms(200 + dice_below(d, 800));
	atomic_store(&t->cuts, false);
	return 0;
}

static int
fill_disk(struct torture *t, struct dice *d, struct slu_err *err)
{
	struct caller c = { 0 };
	int rc = work_caller(&c, t, FAULT_CALLER, err);

	if (!rc)
		rc = victim_fill(&t->nodes[0], err);
	if (!rc) {
		work_flood(&c, t, FLOOD_SIZE, FLOOD_CALLS);
		sleep_ms(100 + dice_below(d, 400)); /* what is there is worked on meanwhile */
	}
	victim_empty(&t->nodes[0]);
	caller_release(&c);
	return rc;
}

/* Forward, back, or as it was; a restart then opens its data in another time. */
static int
step_clock(struct torture *t, struct dice *d, struct slu_err *err)
{
	static const slu_time steps[] = { 0, 3600, -3600, 86400, -86400, 1, -1 };
	const slu_time step = steps[dice_below(d, sizeof steps / sizeof steps[0])];
	const int rc = victim_step(some_node(t, d), step * SLU_SEC, err);

	sleep_ms(1100); /* libfaketime looks once a second */
	return rc;
}

static int
impossible(struct torture *t, struct dice *d, struct slu_err *err)
{
	(void)t;
	(void)d;
	return slu_fail(err, SLU_EINVAL, "this fault cannot be had");
}

/* clang-format off */
const struct torture_fault torture_faults[] = {
	{ "kill",        "kill -9 of the server, then a start on the same data", need_kept, kill_it },
	{ "restart",     "SIGTERM, a clean stop, and a start on the same data",  need_kept, restart },
	{ "pause",       "SIGSTOP of the server, up to longer than a lease",     need_own, pause_it },
	{ "workers",     "workers that stand still until their lease is over",   need_nothing, stall_workers },
	{ "connections", "connections lost at any moment of a call",             need_nothing, cut_connections },
	{ "disk",        "a full disk, and room again",                          need_disk, fill_disk },
	{ "clock",       "steps of the wall clock, up to a day",                 need_clock, step_clock },
	{ "store",       "kill -9 of a Redis server, then a start on the same data", need_store, kill_store },
	{ "store-pause", "SIGSTOP of a Redis server, up to longer than it is waited for", need_store, pause_store },
	{ "partition",   "what a node and a Redis server say to each other is lost, or late", need_store, cut_store },
	{ "move",        "its queue is moved to another Redis server, and back", need_stores, move_queue },
	{ "power",       "what was not synced is gone: the simulator does that",   need_simulator, impossible },
	{ 0 }
};
/* clang-format on */

_Static_assert(sizeof torture_faults / sizeof torture_faults[0] <= TORTURE_FAULTS + 1,
	       "TORTURE_FAULTS");
