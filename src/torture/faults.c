/*
 * faults.c - the faults, a row each.
 */
#include "torture/migrate.h"
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
	FAULT_CALLER = 1000 /* the number of a caller that is not a client */
};

#define MIGRATE_TIME (60 * SLU_SEC) /* leases end sooner */
#define TAKE_TIME    (60 * SLU_SEC) /* the longest wait for another owner */

/* --- what cannot be had ------------------------------------------------------------ */

static const char *
need_own(const struct torture *t)
{
	return t->nodes[0].ours ? NULL : "not possible with --server; leave it out to start a server";
}

static const char *
need_kept(const struct torture *t)
{
	if (need_own(t))
		return need_own(t);
	return t->nodes[0].conf.forgets ? "the engine loses all messages in a restart" : NULL;
}

static const char *
need_disk(const struct torture *t)
{
	if (need_own(t))
		return need_own(t);
	if (t->nodes[0].conf.forgets)
		return "the engine has no disk";
	return t->nodes[0].disk < 0 ? t->nodes[0].no_disk : NULL;
}

static const char *
need_store(const struct torture *t)
{
	if (need_own(t))
		return need_own(t);
	if (!t->conf->kind)
		return "the server has no store; use --engine redis";
	return t->conf->kind->kill ? NULL : "the store is not a process";
}

static const char *
need_stores(const struct torture *t)
{
	if (need_store(t))
		return need_store(t);
	return t->stores.n > 1 ? NULL : "there is only one store; use --stores 2";
}

static const char *
need_cut(const struct torture *t)
{
	if (need_own(t))
		return need_own(t);
	if (!t->conf->kind)
		return "the server has no store; use --store or --engine redis";
	return t->stores.no_cut[0] ? t->stores.no_cut : NULL;
}

static const char *
need_heir(const struct torture *t)
{
	if (need_own(t))
		return need_own(t);
	return torture_takes_over(t) && t->n_nodes > 1
		       ? NULL
		       : "no other server takes over; use --store and --nodes 2";
}

static const char *
need_links(const struct torture *t)
{
	if (need_own(t))
		return need_own(t);
	if (!t->nodes[0].conf.links || !t->conf->kind->cut_link)
		return "the servers have no links; use --store and --nodes 2";
	return t->stores.no_cut[0] ? t->stores.no_cut : NULL;
}

static const char *
need_clock(const struct torture *t)
{
	if (need_own(t))
		return need_own(t);
	if (t->conf->kind && t->conf->kind->has_gates && !t->stores.all[0].gates[0])
		return t->stores.no_cut;
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
	return "not possible from a process; the simulator does it: `make soak`";
}

const char *
torture_missing(const struct torture *t, const struct torture_fault *f)
{
	return f->missing(t);
}

/* --- who is hurt ------------------------------------------------------------------- */

static struct torture_store *
some_store(struct torture *t, struct dice *d)
{
	return &t->stores.all[dice_below(d, t->stores.n)];
}

static int
in_trouble(struct torture *t, const struct target *v, const char *what, const struct slu_err *err)
{
	pthread_mutex_lock(&t->mtx);
	t->troubled = v->conf.node;
	(void)snprintf(t->trouble, sizeof t->trouble, "the server does not %s: %s", what, err->text);
	pthread_mutex_unlock(&t->mtx);
	return err->code;
}

/* --- its death --------------------------------------------------------------------- */

/* Records that the server ended by itself, or not cleanly. */
static void
note_exit(struct torture *t, const struct target *v, int status)
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
	atomic_store(&t->crashed, true);
	pthread_mutex_lock(&t->mtx);
	t->troubled = v->conf.node;
	(void)snprintf(t->trouble, sizeof t->trouble, "the server ended by itself: %s %d",
		       WIFSIGNALED(status) ? "signal" : "exit code",
		       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	pthread_mutex_unlock(&t->mtx);
}

static int
start(struct torture *t, struct target *v, struct slu_err *err)
{
	return target_start(v, err) ? in_trouble(t, v, "start again", err) : 0;
}

int
fault_look_after(struct torture *t, struct slu_err *err)
{
	int status, rc = 0;

	for (struct target *v = t->nodes; v < t->nodes + t->n_nodes && !rc; v++) {
		if (!target_seize(v))
			continue; /* a fault looks after it */
		if (target_is_gone(v, &status)) {
			note_exit(t, v, status);
			rc = start(t, v, err);
		}
		target_let_go(v);
	}
	return rc;
}

/* With or without a pause in which clients find no server; with one in which others take over. */
static void
stay_away(const struct torture *t, struct dice *d)
{
	if (torture_takes_over(t) && dice_chance(d, 40))
		sleep_ms(1200 + dice_below(d, 1800));
	else if (dice_chance(d, 50))
		sleep_ms(dice_below(d, 100));
}

static int
kill_it(struct torture *t, struct target *v, struct dice *d, struct slu_err *err)
{
	int status;

	if (target_end(v, SIGKILL, &status))
		note_exit(t, v, status);
	stay_away(t, d);
	return start(t, v, err);
}

static int
restart(struct torture *t, struct target *v, struct dice *d, struct slu_err *err)
{
	const unsigned cuts = atomic_load(&v->n_cuts);
	const bool cut = atomic_load(&v->cut_off) > 0;
	int status;

	/* Without its store a server may end with an exit code: what it could not finish is unknown. */
	if (target_end(v, SIGTERM, &status) || !WIFEXITED(status) ||
	    (WEXITSTATUS(status) != 0 && !cut && !t->conf->store_dies && atomic_load(&v->n_cuts) == cuts))
		note_exit(t, v, status);
	stay_away(t, d);
	return start(t, v, err);
}

/* Has the node hand over its shards, and take its share again. It may be killed meanwhile: the next life does
 * not drain. */
static int
drain_it(struct torture *t, struct target *v, struct dice *d, struct slu_err *err)
{
	const int rc = target_post(v, "/v1/admin/nodes/drain", err);

	if (rc == SLU_EBUSY)
		return 0; /* no other node could take the shards */
	if (rc)
		return in_trouble(t, v, "drain", err);
	sleep_ms(dice_below(d, 2500));
	if (dice_chance(d, 20))
		return kill_it(t, v, d, err);
	return target_post(v, "/v1/admin/nodes/resume", err) ? in_trouble(t, v, "resume", err) : 0;
}

static void
note_gap(struct torture *t, slu_time gap)
{
	pthread_mutex_lock(&t->mtx);
	t->gaps.n++;
	t->gaps.sum += gap;
	t->gaps.max = gap > t->gaps.max ? gap : t->gaps.max;
	pthread_mutex_unlock(&t->mtx);
}

/* Until another node has handed out messages. */
static int
wait_for_heir(struct torture *t, struct target *v, slu_time begun, struct slu_err *err)
{
	while (atomic_load(&t->handed) <= begun && !atomic_load(&t->history.full)) {
		if (time_now() > begun + TAKE_TIME) {
			(void)slu_fail(err, SLU_EDOWN, "no other node hands out messages");
			return in_trouble(t, v, "get a successor", err);
		}
		sleep_ms(1);
	}
	if (atomic_load(&t->handed) > begun)
		note_gap(t, time_now() - begun);
	return 0;
}

/* Kills the owner of the queue, and starts it again when another node has handed out messages. One at a time: if all
 * nodes were killed so, each would wait for the others. */
static int
kill_owner(struct torture *t, struct target *v, struct dice *d, struct slu_err *err)
{
	int status, rc;

	(void)d;
	while (atomic_exchange(&t->vacant, true))
		sleep_ms(1);
	if (target_end(v, SIGKILL, &status))
		note_exit(t, v, status);
	rc = wait_for_heir(t, v, time_now(), err);
	atomic_store(&t->vacant, false);
	return rc ? rc : start(t, v, err);
}

/* --- its stores -------------------------------------------------------------------- */

/* All nodes must reconnect to their stores by themselves. */
int
fault_find_stores(struct torture *t, struct slu_err *err)
{
	int rc = 0;

	for (struct target *v = t->nodes; v < t->nodes + t->n_nodes && !rc; v++)
		if (target_wait(v, err))
			rc = in_trouble(t, v, "go on", err);
	return rc;
}

/* Starts the store again. Without it the run cannot continue: not a fault of the server. */
static int
kill_store(struct torture *t, struct target *v, struct dice *d, struct slu_err *err)
{
	struct torture_store *s = some_store(t, d);

	(void)v;
	t->conf->kind->kill(s);
	if (dice_chance(d, 50))
		sleep_ms(dice_below(d, 400));
	return t->conf->kind->start(s, err) ? SLU_EDOWN : fault_find_stores(t, err);
}

static int
pause_store(struct torture *t, struct target *v, struct dice *d, struct slu_err *err)
{
	const struct torture_store *s = some_store(t, d);

	(void)v;
	t->conf->kind->pause(s);
	sleep_ms(dice_chance(d, 30) ? 1200 + dice_below(d, 1800) : 20 + dice_below(d, 400));
	t->conf->kind->resume(s);
	return fault_find_stores(t, err);
}

/* Cuts off one node, or all. Nodes that take over from each other may be in other trouble, too: they are
 * looked at when the round ends. */
static int
cut_store(struct torture *t, struct target *v, struct dice *d, struct slu_err *err)
{
	const struct torture_store *s = some_store(t, d);
	const enum proxy_cut how = (enum proxy_cut)(1 + dice_below(d, CUTS - 1));
	const bool all = dice_chance(d, 40);

	for (unsigned i = 0; i < t->n_nodes; i++)
		if (i == v->conf.node || all) {
			atomic_fetch_add(&t->nodes[i].cut_off, 1);
			atomic_fetch_add(&t->nodes[i].n_cuts, 1);
			t->conf->kind->cut(s, i, how);
		}
	sleep_ms(dice_chance(d, 30) ? 1200 + dice_below(d, 1800) : 20 + dice_below(d, 400));
	for (unsigned i = 0; i < t->n_nodes; i++)
		if (i == v->conf.node || all) {
			t->conf->kind->cut(s, i, CUT_NONE);
			atomic_fetch_sub(&t->nodes[i].cut_off, 1);
		}
	return t->conf->kind->takes_over ? 0 : fault_find_stores(t, err);
}

/* --- links ------------------------------------------------------------------------- */

/* At times longer than a link waits for a silent node. */
static uint64_t
link_time(struct dice *d)
{
	if (dice_chance(d, 10))
		return 10500 + dice_below(d, 2000);
	return dice_chance(d, 30) ? 1200 + dice_below(d, 1800) : 20 + dice_below(d, 400);
}

static void
cut_one_way(struct torture *t, struct target *from, const struct target *to, enum proxy_cut how)
{
	if (how != CUT_NONE) {
		atomic_fetch_add(&from->cut_off, 1);
		atomic_fetch_add(&from->n_cuts, 1);
	}
	t->conf->kind->cut_link(&t->stores.all[0], from->conf.node, to->conf.node, how);
	if (how == CUT_NONE)
		atomic_fetch_sub(&from->cut_off, 1);
}

/* Cuts the links between two nodes, one way or both. */
static int
cut_links(struct torture *t, struct target *v, struct dice *d, struct slu_err *err)
{
	const unsigned step = 1 + (unsigned)dice_below(d, t->n_nodes - 1);
	struct target *const other = &t->nodes[(v->conf.node + step) % t->n_nodes];
	const enum proxy_cut how = (enum proxy_cut)(1 + dice_below(d, CUTS - 1));
	const bool both = dice_chance(d, 50);

	(void)err;
	cut_one_way(t, other, v, how);
	if (both)
		cut_one_way(t, v, other, how);
	sleep_ms(link_time(d));
	cut_one_way(t, other, v, CUT_NONE);
	if (both)
		cut_one_way(t, v, other, CUT_NONE);
	return 0;
}

/* --- moves ------------------------------------------------------------------------- */

/* Has the nodes reload one after the other; one may be killed in between. */
static int
tell_nodes(struct torture *t, struct target *v, struct dice *d, struct slu_err *err)
{
	for (struct target *each = t->nodes; each < t->nodes + t->n_nodes; each++) {
		target_reload(each);
		sleep_ms(dice_below(d, 100));
	}
	if (dice_chance(d, 30) && kill_it(t, v, d, err))
		return SLU_EDOWN;
	return fault_find_stores(t, err);
}

/* Moves for a while. Leased messages stay; the migrating process or its node may be killed. A step of the
 * node ends within a second. */
static int
migrate_some(struct torture *t, struct target *v, struct dice *d, struct slu_err *err)
{
	const slu_time patience = (slu_time)dice_below(d, 2000) * SLU_MS;
	struct slu_err why;
	struct migrate c;
	int rc = migrate_start(&c, v, TORTURE_SPACE, err);

	if (!rc && dice_chance(d, 30))
		rc = kill_it(t, v, d, err);
	t->moves = migrate_wait(&c, patience, &why) != 0;
	sleep_ms(t->moves ? 1200 : 0);
	return rc;
}

/* Moves the queue to the other store; a move back waits until the first one is complete. */
static int
move_queue(struct torture *t, struct target *v, struct dice *d, struct slu_err *err)
{
	int rc = 0;

	if (!t->moves) {
		rc = t->conf->kind->move(&t->stores, err);
		if (!rc)
			rc = tell_nodes(t, v, d, err);
	}
	return rc ? rc : migrate_some(t, v, d, err);
}

/* Retries: a store on a busy machine may answer late. */
int
fault_end_moves(struct torture *t, struct slu_err *err)
{
	const slu_time end = time_now() + MIGRATE_TIME;
	struct migrate c;
	int rc;

	if (!t->moves)
		return 0;
	do {
		rc = migrate_start(&c, &t->nodes[0], TORTURE_SPACE, err);
		if (!rc)
			rc = migrate_wait(&c, end - time_now(), err);
		sleep_ms(rc ? 200 : 0);
	} while (rc && time_now() < end);
	if (rc)
		rc = in_trouble(t, &t->nodes[0], "move its queue", err);
	t->moves = rc != 0;
	return rc;
}

/* --- others ------------------------------------------------------------------------ */

static int
pause_it(struct torture *t, struct target *v, struct dice *d, struct slu_err *err)
{
	(void)t;
	(void)err;
	target_pause(v);
	sleep_ms(dice_chance(d, 30) ? 2200 + dice_below(d, 800) : 20 + dice_below(d, 400));
	target_resume(v);
	return 0;
}

static int
stall_workers(struct torture *t, struct target *v, struct dice *d, struct slu_err *err)
{
	(void)v;
	(void)err;
	atomic_store(&t->stalls, true);
	sleep_ms(400 + dice_below(d, 800));
	atomic_store(&t->stalls, false);
	return 0;
}

static int
cut_connections(struct torture *t, struct target *v, struct dice *d, struct slu_err *err)
{
	(void)v;
	(void)err;
	atomic_store(&t->cuts, true);
	sleep_ms(200 + dice_below(d, 800));
	atomic_store(&t->cuts, false);
	return 0;
}

/* If another server owns the queue, messages do not come to this disk: the caches of shards are on it. */
static int
fill_disk(struct torture *t, struct target *v, struct dice *d, struct slu_err *err)
{
	const bool has_queue = !torture_takes_over(t) || v == torture_owner(t);
	struct caller c = { 0 };
	int rc = work_caller(&c, t, FAULT_CALLER, err);

	if (!rc)
		rc = target_fill(v, err);
	if (!rc) {
		work_flood(&c, t, FLOOD_SIZE, has_queue ? FLOOD_CALLS : 0);
		sleep_ms(100 + dice_below(d, 400)); /* the clients work on the queue meanwhile */
	}
	target_empty(v);
	caller_release(&c);
	return rc;
}

/* Sets the clock forward, back, or to the system's time; a restart then opens the data at another time. */
static int
step_clock(struct torture *t, struct target *v, struct dice *d, struct slu_err *err)
{
	static const slu_time steps[] = { 0, 3600, -3600, 86400, -86400, 1, -1 };
	const slu_time step = steps[dice_below(d, sizeof steps / sizeof steps[0])];
	const int rc = target_step(v, step * SLU_SEC, err);

	(void)t;
	sleep_ms(1100); /* libfaketime reads the offset once a second */
	return rc;
}

static int
impossible(struct torture *t, struct target *v, struct dice *d, struct slu_err *err)
{
	(void)t;
	(void)v;
	(void)d;
	return slu_fail(err, SLU_EINVAL, "this fault is not possible");
}

/* clang-format off */
const struct torture_fault torture_faults[] = {
	{ "kill",        "SIGKILL of the server, then a start on the same data", need_kept, kill_it, false },
	{ "restart",     "SIGTERM, a clean stop, and a start on the same data",  need_kept, restart, false },
	{ "pause",       "SIGSTOP of the server, up to longer than a lease",     need_own, pause_it, false },
	{ "workers",     "workers pause until their leases have ended",   need_nothing, stall_workers, false },
	{ "connections", "connections break at any moment of a call",             need_nothing, cut_connections, false },
	{ "disk",        "the disk fills up, then is freed",                          need_disk, fill_disk, false },
	{ "clock",       "steps of the wall clock, up to a day",                 need_clock, step_clock, false },
	{ "owner",       "SIGKILL of the owner of the queue, until another server has taken over", need_heir, kill_owner, true },
	{ "drain",       "a server hands its shards over, and takes its share again", need_heir, drain_it, false },
	{ "store",       "SIGKILL of a Redis server, then a start on the same data", need_store, kill_store, false },
	{ "store-pause", "SIGSTOP of a Redis server, up to longer than its timeout", need_store, pause_store, false },
	{ "partition",   "what passes between a node and a store is lost, late or refused", need_cut, cut_store, false },
	{ "link",        "what passes between two servers is lost, late or refused", need_links, cut_links, false },
	{ "move",        "the queue moves to another Redis server, and back", need_stores, move_queue, false },
	{ "power",       "unsynced writes are lost: only in the simulator",   need_simulator, impossible, false },
	{ 0 }
};
/* clang-format on */

_Static_assert(sizeof torture_faults / sizeof torture_faults[0] <= TORTURE_FAULTS + 1,
	       "TORTURE_FAULTS");
