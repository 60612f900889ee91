/* A broker on a disk that hangs: STANDIN-1, STANDIN-2, LANE-12 to LANE-14. */
#include "broker_kit.h"

#include "base/disk.h"
#include "broker/broker_private.h"
#include "engine/log/logengine.h"

#include <sched.h>
#include <stdlib.h>

/* ---- The disk ---- */

static struct {
	struct disk disk;
	struct disk_ops ops;
	_Atomic(struct lane *) shard; /* once it is open */
	pthread_mutex_t mtx;
	pthread_cond_t news;
	unsigned hang; /* writes or syncs of a commit hang: HANG_ */
	bool hangs;    /* one does */
} hung = { .mtx = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER };

enum {
	HANG_WRITE = 1,
	HANG_SYNC = 2
};

/* Only a commit hangs. The log also syncs new spare segments, on the thread of its helper; a run makes
 * one itself if the helper is late (LOGENGINE-10). */
static bool
is_commit(void)
{
	struct lane *const s = atomic_load(&hung.shard);

	return s && atomic_load(&s->committing) && pthread_equal(pthread_self(), s->thread);
}

static void
hang(unsigned which)
{
	if (!is_commit())
		return;
	pthread_mutex_lock(&hung.mtx);
	while (hung.hang & which) {
		hung.hangs = true;
		pthread_cond_broadcast(&hung.news);
		pthread_cond_wait(&hung.news, &hung.mtx);
	}
	hung.hangs = false;
	pthread_mutex_unlock(&hung.mtx);
}

static int
hang_write(struct disk *d, int file, const void *p, size_t n, uint64_t at)
{
	hang(HANG_WRITE);
	return disk_posix.ops->write(d, file, p, n, at);
}

static int
hang_sync(struct disk *d, int file)
{
	hang(HANG_SYNC);
	return disk_posix.ops->sync(d, file);
}

static void
set_hang(unsigned which)
{
	pthread_mutex_lock(&hung.mtx);
	hung.hang = which;
	pthread_cond_broadcast(&hung.news);
	pthread_mutex_unlock(&hung.mtx);
}

static void
await_hang(void)
{
	pthread_mutex_lock(&hung.mtx);
	while (!hung.hangs)
		pthread_cond_wait(&hung.news, &hung.mtx);
	pthread_mutex_unlock(&hung.mtx);
}

/* ---- The broker ---- */

static void
start_with(slu_time patience)
{
	const struct broker_shard_conf shard = {
		.engine = &engine_log,
		.storage = { .folder = "data", .disk = &hung.disk, .patience = patience },
	};
	const struct broker_conf conf = { .shards = &shard, .n_shards = 1 };

	hung.ops = *disk_posix.ops;
	hung.ops.write = hang_write;
	hung.ops.sync = hang_sync;
	hung.disk.ops = &hung.ops;
	open_broker(&conf);
	atomic_store(&hung.shard, b->lanes[0]);
}

static void
start(void)
{
	start_with(0);
}

static void
end(void)
{
	set_hang(0);
	if (b)
		broker_stop(b);
	atomic_store(&hung.shard, NULL); /* the close of the log writes, too */
	close_broker();
}

FIXTURE(NULL, end);

static void
post_claim(struct op_call *c, const char *queue, slu_time wait)
{
	call(c, OP_CLAIM, queue);
	c->op.wait = wait;
	post(c);
}

/* Posts an enqueue, and returns when its write or sync hangs. */
static void
post_hanging(struct op_call *c, unsigned which)
{
	set_hang(which);
	post(call(c, OP_ENQUEUE, "q"));
	await_hang();
}

static void
release(struct op_call *c)
{
	set_hang(0);
	await(c, 1);
}

static int
answers(struct op_call *c)
{
	int n;

	pthread_mutex_lock(&c->mtx);
	n = c->done;
	pthread_mutex_unlock(&c->mtx);
	return n;
}

/* ---- Tests ---- */

static void
check_a_shard_goes_on(unsigned which)
{
	static struct op_call waits, m, late, canceled;

	start();
	post_claim(&waits, "idle", 100 * SLU_MS);
	post_hanging(&m, which);
	await(&waits, 1);
	CHECK_EQ(0, waits.op.rc);
	CHECK_EQ(0, waits.op.n_rows);
	post_claim(&late, "q", 10 * SLU_MS);
	await(&late, 1);
	CHECK_EQ(SLU_EDOWN, late.op.rc); /* it has not run: the queue is not empty */
	CHECK(strncmp(late.op.err.text, "no answer from data for ", 24) == 0);
	post_claim(&canceled, "q", SLU_HOUR);
	broker_cancel(b, &canceled.op);
	await(&canceled, 1);
	CHECK_EQ(SLU_ECANCELED, canceled.op.rc);
	CHECK_EQ(0, answers(&m));
	CHECK_EQ(0, broker_failure(b, 0, NULL));
	release(&m);
	CHECK_EQ(0, m.op.rc);
	CHECK_EQ(m.put.m.id, claim(&late, "q"));
}

TEST(waits_end_and_cancels_are_handled_while_a_sync_hangs)
{
	check_a_shard_goes_on(HANG_SYNC);
}

TEST(waits_end_and_cancels_are_handled_while_a_write_hangs)
{
	check_a_shard_goes_on(HANG_WRITE);
}

TEST(a_disk_that_hangs_for_longer_than_the_patience_makes_its_batch_unknown)
{
	static struct op_call before, m, down, a;
	struct slu_err why;

	start_with(SLU_SEC); /* more than an ordinary commit takes on a busy machine */
	CHECK_EQ(0, run(call(&before, OP_ENQUEUE, "q")));
	post_hanging(&m, HANG_SYNC);
	await(&m, 1);
	CHECK_EQ(SLU_EUNKNOWN, m.op.rc);
	CHECK_EQ(SLU_EDOWN, run(call(&down, OP_ENQUEUE, "q")));
	CHECK_EQ(SLU_EDOWN, broker_failure(b, 0, &why));
	CHECK(strncmp(why.text, "no answer from data for ", 24) == 0);
	post_claim(&a, "q", SLU_HOUR);
	set_hang(0);
	await(&a, 1);
	CHECK_EQ(before.put.m.id, claimed(&a));
	CHECK_EQ(0, broker_failure(b, 0, NULL)); /* without reopening */
	CHECK_EQ(m.put.m.id, claim(&a, "q"));
}

TEST(a_stand_in_that_sleeps_is_woken_by_the_next_commit)
{
	static struct op_call first, waits, m;

	start();
	CHECK_EQ(0, run(call(&first, OP_ENQUEUE, "other")));
	while (atomic_load(&b->standin.awake))
		sched_yield();
	post_claim(&waits, "idle", 100 * SLU_MS);
	while (atomic_load(&b->standin.awake)) /* the claim has run, and that was a batch */
		sched_yield();
	post_hanging(&m, HANG_SYNC);
	await(&waits, 1);
	release(&m);
}

TEST(a_broker_in_memory_has_no_stand_in)
{
	const struct broker_shard_conf shard = { .engine = &engine_memory };
	const struct broker_conf conf = { .shards = &shard, .n_shards = 1 };

	open_broker(&conf);
	CHECK(!b->standin.started);
}

TEST(a_broker_stops_when_the_disk_goes_on)
{
	static struct op_call waits, m;

	start();
	post_claim(&waits, "idle", SLU_HOUR);
	post_hanging(&m, HANG_SYNC);
	broker_drain(b);
	await(&waits, 1);
	CHECK_EQ(0, answers(&m));
	set_hang(0);
	broker_stop(b);
	CHECK_EQ(1, answers(&m));
	CHECK_EQ(0, m.op.rc);
}

/* ---- Many at once ---- */

enum {
	CALLERS = 4,
	HANGS = 6
};

static _Atomic bool stopping;

/* Enqueues, claims with short waits, and cancels. Every op ends. */
static void *
call_on(void *arg)
{
	static const slu_time waits[] = { 0, SLU_MS, 20 * SLU_MS, SLU_HOUR };
	struct op_call c;

	for (unsigned i = 0; !atomic_load(&stopping); i++) {
		call(&c, i % 2 ? OP_CLAIM : OP_ENQUEUE, arg);
		c.op.wait = i % 2 ? waits[i / 2 % COUNT(waits)] : 0;
		CHECK_EQ(0, broker_post(b, &c.op));
		if (c.op.wait == SLU_HOUR)
			broker_cancel(b, &c.op);
		await(&c, 1);
		CHECK(c.op.rc == 0 || c.op.rc == SLU_EDOWN || c.op.rc == SLU_EUNKNOWN || c.op.rc == SLU_ECANCELED);
		op_unpin(&c.op);
	}
	return NULL;
}

/* Asks until the hung commit has ended. A commit that takes longer than the patience, as one may on a
 * busy machine, makes the stats of its batch unknown. */
static void
await_service(struct op_call *c)
{
	int rc;

	while ((rc = run(call(c, OP_STATS, "q"))) == SLU_EDOWN || rc == SLU_EUNKNOWN)
		sched_yield();
	CHECK_EQ(0, rc);
}

TEST(a_disk_that_hangs_again_and_again_loses_no_answer)
{
	static char queues[2][2] = { "q", "r" };
	static struct op_call first;
	pthread_t threads[CALLERS];

	start_with(80 * SLU_MS);
	while (run(call(&first, OP_ENQUEUE, "q"))) /* await_service asks for this queue */
		sched_yield();
	for (int i = 0; i < CALLERS; i++)
		CHECK_EQ(0, pthread_create(&threads[i], NULL, call_on, queues[i % 2]));
	for (int i = 0; i < HANGS; i++) {
		static struct op_call waits;

		set_hang(HANG_SYNC);
		await_hang();
		post_claim(&waits, "idle", (60 + 20 * (slu_time)i) * SLU_MS);
		await(&waits, 1); /* ended by the stand-in */
		set_hang(0);
		await_service(&waits);
	}
	atomic_store(&stopping, true);
	for (int i = 0; i < CALLERS; i++)
		pthread_join(threads[i], NULL);
}
