/*
 * faults.c - the ways to hurt a server, a row each.
 */
#include "torture/faults.h"
#include "torture/times.h"
#include "torture/victim_store.h"
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

/* --- what cannot be had ------------------------------------------------------------ */

static const char *
need_own(const struct torture *t)
{
	return t->victim.ours ? NULL : "the server is not ours; leave --server out to have one started";
}

static bool
keeps_nothing(const struct torture *t)
{
	return strcmp(t->victim.served.engine, "memory") == 0;
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
	return t->victim.disk < 0 ? t->victim.no_disk : NULL;
}

static const char *
need_store(const struct torture *t)
{
	if (need_own(t))
		return need_own(t);
	return t->victim.store_folder[0] ? NULL : "its messages are its own; --engine redis has a store";
}

static const char *
need_clock(const struct torture *t)
{
	if (need_own(t))
		return need_own(t);
	return t->victim.clock_lib[0] ? NULL : t->victim.no_clock;
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

/* --- its death --------------------------------------------------------------------- */

/* It ended, and not because it was told to, or not as it should. */
static void
note_exit(struct torture *t, int status)
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
	(void)snprintf(t->trouble, sizeof t->trouble, "the server ended by itself: %s %d",
		       WIFSIGNALED(status) ? "signal" : "exit code",
		       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static int
start(struct torture *t, struct slu_err *err)
{
	const int rc = victim_start(&t->victim, err);

	if (rc)
		(void)snprintf(t->trouble, sizeof t->trouble, "the server does not start again: %s", err->text);
	return rc;
}

int
fault_look_after(struct torture *t, struct slu_err *err)
{
	int status;

	if (!victim_is_gone(&t->victim, &status))
		return 0;
	note_exit(t, status);
	return start(t, err);
}

static int
kill_it(struct torture *t, struct dice *d, struct slu_err *err)
{
	int status;

	if (victim_end(&t->victim, SIGKILL, &status))
		note_exit(t, status);
	if (dice_chance(d, 50)) /* clients find nobody for a while, or hardly notice */
		sleep_ms(dice_below(d, 100));
	return start(t, err);
}

/* It must find its store again by itself. */
static int
find_store(struct torture *t, struct slu_err *err)
{
	const int rc = victim_store_wait(&t->victim, err);

	if (rc)
		(void)snprintf(t->trouble, sizeof t->trouble, "the server does not go on: %s", err->text);
	return rc;
}

/* The store is there again, or the run cannot go on: that is not the server's fault. */
static int
kill_store(struct torture *t, struct dice *d, struct slu_err *err)
{
	victim_store_kill(&t->victim);
	if (dice_chance(d, 50))
		sleep_ms(dice_below(d, 400));
	return victim_store_start(&t->victim, err) ? SLU_EDOWN : find_store(t, err);
}

static int
pause_store(struct torture *t, struct dice *d, struct slu_err *err)
{
	victim_store_pause(&t->victim);
	sleep_ms(dice_chance(d, 30) ? 1200 + dice_below(d, 1800) : 20 + dice_below(d, 400));
	victim_store_resume(&t->victim);
	return find_store(t, err);
}

static int
restart(struct torture *t, struct dice *d, struct slu_err *err)
{
	int status;

	(void)d;
	if (victim_end(&t->victim, SIGTERM, &status) || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
		note_exit(t, status);
	return start(t, err);
}

/* --- others ------------------------------------------------------------------------ */

static int
pause_it(struct torture *t, struct dice *d, struct slu_err *err)
{
	(void)err;
	victim_pause(&t->victim);
	sleep_ms(dice_chance(d, 30) ? 2200 + dice_below(d, 800) : 20 + dice_below(d, 400));
	victim_resume(&t->victim);
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
		rc = victim_fill(&t->victim, err);
	if (!rc) {
		work_flood(&c, t, FLOOD_SIZE, FLOOD_CALLS);
		sleep_ms(100 + dice_below(d, 400)); /* what is there is worked on meanwhile */
	}
	victim_empty(&t->victim);
	caller_release(&c);
	return rc;
}

/* Forward, back, or as it was; a restart then opens its data in another time. */
static int
step_clock(struct torture *t, struct dice *d, struct slu_err *err)
{
	static const slu_time steps[] = { 0, 3600, -3600, 86400, -86400, 1, -1 };
	const slu_time step = steps[dice_below(d, sizeof steps / sizeof steps[0])];
	const int rc = victim_step(&t->victim, step * SLU_SEC, err);

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
	{ "store",       "kill -9 of its Redis server, then a start on the same data", need_store, kill_store },
	{ "store-pause", "SIGSTOP of its Redis server, up to longer than it is waited for", need_store, pause_store },
	{ "power",       "what was not synced is gone: the simulator does that",   need_simulator, impossible },
	{ 0 }
};
/* clang-format on */

_Static_assert(sizeof torture_faults / sizeof torture_faults[0] <= TORTURE_FAULTS + 1,
	       "TORTURE_FAULTS");
