/* Ordered operations on objects: writes, reads, and waiting for what came before. */
#include "exec_help.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- the barrier --- */

struct awaiter {
	const char *key;
	slu_time timeout;
	_Atomic int rc; /* -1: still in there */
	int reports;    /* when it returned */
	pthread_t thread;
};

static void *
run_await(void *arg)
{
	struct awaiter *a = arg;
	const int rc = slu_executor_await(rig.ex, a->key, a->timeout, NULL);

	a->reports = rig.reports;
	atomic_store(&a->rc, rc);
	return NULL;
}

static void
await_begin(struct awaiter *a, const char *key, slu_time timeout)
{
	*a = (struct awaiter){ .key = key, .timeout = timeout, .rc = -1 };
	CHECK_EQ(0, pthread_create(&a->thread, NULL, run_await, a));
}

static int
await_end(struct awaiter *a)
{
	pthread_join(a->thread, NULL);
	return a->rc;
}

TEST_LIMIT(await_returns_after_all_that_came_before, 20)
{
	static struct probe add = PROBE("add"), delete = PROBE("delete"), put = PROBE("put");
	struct awaiter a;

	rig_block("object-1", &add);
	rig_submit("object-1", &delete);
	rig_submit("object-1", &put);
	await_begin(&a, "object-1", 0);
	WAIT_UNTIL(rig_stats().queued == 3);
	CHECK_EQ(-1, a.rc);
	rig_open_gate();
	CHECK_EQ(0, await_end(&a)); /* SQ-69: after the third */
	CHECK_EQ(3, a.reports);     /* SQ-70: all earlier ones had their report */
	CHECK_STR("add delete put", rig_trace());
}

TEST_LIMIT(await_waits_for_retries_as_well, 20)
{
	static struct probe first = PROBE("first", .fails = 2), second = PROBE("second");
	struct awaiter a;

	rig_submit("k", &first);
	rig_submit("k", &second);
	await_begin(&a, "k", 0);
	WAIT_UNTIL(rig_stats().waiting == 3);
	WAIT_UNTIL(fakeclock_sleepers(&rig.clock) == 2); /* the worker and the awaiting thread */
	fakeclock_advance(&rig.clock, 100 * SLU_MS);
	WAIT_UNTIL(atomic_load(&first.runs) == 2);
	CHECK_EQ(-1, a.rc); /* SQ-70 */
	WAIT_UNTIL(rig_stats().waiting == 3);
	fakeclock_advance(&rig.clock, 200 * SLU_MS);
	CHECK_EQ(0, await_end(&a));
	CHECK_EQ(2, a.reports); /* SQ-70 */
}

TEST(await_ends_when_what_came_before_failed_for_good)
{
	static struct probe bad = PROBE("bad", .fails = -1, .rc = SLU_EPERMANENT);

	rig_submit("k", &bad);
	CHECK_EQ(0, slu_executor_await(rig.ex, "k", 0, NULL));
	CHECK_EQ(1, bad.reports);
	CHECK_EQ(0, slu_executor_await(rig.ex, "never seen", 0, NULL));
}

TEST(await_of_one_key_does_not_wait_for_another)
{
	static struct probe bad = PROBE("bad", .fails = -1), good = PROBE("good");

	rig_submit("bad", &bad);
	rig_submit("good", &good);
	CHECK_EQ(0, slu_executor_await(rig.ex, "good", 0, NULL)); /* the clock stands still */
	CHECK_EQ(1, good.reports);
	CHECK_EQ(0, bad.reports);
}

TEST(await_gives_up_after_its_timeout_and_nothing_is_lost)
{
	static struct probe bad = PROBE("bad", .fails = 1);
	struct awaiter a;

	rig_start((struct slu_executor_config){ .shards = 1, .base_backoff = 10 * SLU_SEC });
	rig_submit("k", &bad);
	rig_settle();
	await_begin(&a, "k", 2 * SLU_SEC);
	WAIT_UNTIL(fakeclock_sleepers(&rig.clock) == 2 && rig_stats().waiting == 2);
	fakeclock_advance(&rig.clock, 2 * SLU_SEC - 1);
	CHECK_EQ(-1, a.rc);
	fakeclock_advance(&rig.clock, 1);
	CHECK_EQ(SLU_ETIMEOUT, await_end(&a));
	fakeclock_advance(&rig.clock, 10 * SLU_SEC);
	WAIT_UNTIL(rig_stats().finished == 2);
	CHECK_EQ(0, bad.result);
}

TEST(await_on_a_full_shard_fails_like_a_submit)
{
	static struct probe block = PROBE("block"), wait = PROBE("wait");
	struct awaiter a;

	rig_start((struct slu_executor_config){ .shards = 1, .queue_size = 1 });
	rig_block("k", &block);
	rig_submit("k", &wait);
	await_begin(&a, "k", SLU_SEC);
	while (atomic_load(&a.rc) < 0) { /* it begins to wait at some moment */
		fakeclock_advance(&rig.clock, SLU_SEC);
		test_yield();
	}
	CHECK_EQ(SLU_EQFULL, await_end(&a));
}

TEST(await_returns_when_the_executor_stops)
{
	static struct probe bad = PROBE("bad", .fails = -1);
	struct awaiter a;

	rig_submit("k", &bad);
	rig_settle();
	await_begin(&a, "k", 0);
	WAIT_UNTIL(rig_stats().waiting == 2);
	CHECK_EQ(0, slu_executor_stop(rig.ex, 0));
	CHECK_EQ(0, await_end(&a));
	CHECK_EQ(1, a.reports);
}

TEST(many_may_await_one_key)
{
	static struct probe block = PROBE("block");
	static struct awaiter a[16];

	rig_block("k", &block);
	EACH(i, a)
		await_begin(&a[i], "k", 0);
	WAIT_UNTIL(rig_stats().queued == COUNT(a));
	rig_open_gate();
	EACH(i, a)
		CHECK_EQ(0, await_end(&a[i]));
}

/* --- objects: add, delete, put, read, await, all routed by the object's id --- */

enum {
	OBJECTS = 10,
	ENTRIES = 8
};

struct object {
	char id[32];
	int entries[ENTRIES]; /* touched by the object's tasks alone */
	int n;
	int context;
	int reads;
};

struct operation {
	struct object *object;
	int value;
	int want; /* by a read */
};

static int
add_entry(struct slu_run *run, void *arg)
{
	const struct operation *op = arg;

	if (run->attempt == 1 && op->value % 3 == 0)
		return slu_fail(&run->err, SLU_EFAILED, "try again");
	op->object->entries[op->object->n++] = op->value;
	return 0;
}

static int
delete_entry(struct slu_run *run, void *arg)
{
	const struct operation *op = arg;

	(void)run;
	CHECK_EQ(op->value, op->object->entries[op->object->n - 1]);
	op->object->n--;
	return 0;
}

static int
put_context(struct slu_run *run, void *arg)
{
	const struct operation *op = arg;

	(void)run;
	op->object->context = op->value;
	return 0;
}

static int
read_object(struct slu_run *run, void *arg)
{
	const struct operation *op = arg;

	(void)run;
	CHECK_EQ(op->want, op->object->n * 1000 + op->object->context);
	op->object->reads++;
	return 0;
}

TEST(a_read_sees_every_write_queued_before_it)
{
	const struct slu_executor_config config = { SLU_OPTIONS_INIT(struct slu_executor_config), .backoff = SLU_BACKOFF_NONE };
	static struct object objects[OBJECTS];
	static struct operation ops[OBJECTS][6];
	struct slu_executor *ex;

	CHECK_EQ(0, slu_executor_start(&ex, &config, NULL));
	EACH(i, objects) {
		struct object *o = &objects[i];
		struct operation *op = ops[i];

		(void)snprintf(o->id, sizeof o->id, "object-%zu", i);
		op[0] = (struct operation){ o, 3, 0 };
		op[1] = (struct operation){ o, 5, 0 };
		op[2] = (struct operation){ o, 0, 2000 };
		op[3] = (struct operation){ o, 77, 0 };
		op[4] = (struct operation){ o, 0, 1077 };
		submit_fn(ex, o->id, add_entry, &op[0]); /* fails once */
		submit_fn(ex, o->id, add_entry, &op[1]);
		submit_fn(ex, o->id, read_object, &op[2]); /* SQ-71: checks what it sees */
		submit_fn(ex, o->id, delete_entry, &op[1]);
		submit_fn(ex, o->id, put_context, &op[3]);
		submit_fn(ex, o->id, read_object, &op[4]); /* SQ-71 */
	}
	EACH(i, objects) {
		CHECK_EQ(0, slu_executor_await(ex, objects[i].id, 0, NULL)); /* SQ-69 */
		CHECK_EQ(2, objects[i].reads);
		/* SQ-71: the caller sees it, too */
		CHECK_EQ(77, objects[i].context);
		CHECK_EQ(1, objects[i].n);
	}
	CHECK_EQ(0, slu_executor_close(ex));
}

/* --- a target that is down, then up --- */

enum {
	MESSAGES = 12
};

struct target {
	struct sockaddr_in addr;
	int listener;
	_Atomic int tries;
};

struct message {
	struct target *target;
	uint8_t number;
};

/* A port that is ours and refuses: it is bound, and no socket listens. */
static void
target_reserve(struct target *t)
{
	socklen_t len = sizeof t->addr;

	t->addr = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
	};
	t->listener = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_EQ(0, bind(t->listener, (struct sockaddr *)&t->addr, len));
	CHECK_EQ(0, getsockname(t->listener, (struct sockaddr *)&t->addr, &len));
}

static int
deliver(struct slu_run *run, void *arg)
{
	const struct message *m = arg;
	const int fd = socket(AF_INET, SOCK_STREAM, 0);
	int rc = 0;

	atomic_fetch_add(&m->target->tries, 1);
	if (connect(fd, (struct sockaddr *)&m->target->addr, sizeof m->target->addr) ||
	    write(fd, &m->number, 1) != 1)
		rc = slu_fail(&run->err, SLU_EDOWN, "target: %m");
	close(fd);
	return rc;
}

static int
receive_one(struct target *t)
{
	const int fd = accept(t->listener, NULL, NULL);
	uint8_t number;

	CHECK(fd >= 0);
	CHECK_EQ(1, read(fd, &number, 1));
	close(fd);
	return number;
}

TEST(queued_work_survives_the_loss_of_its_target)
{
	const struct slu_executor_config config = {
		SLU_OPTIONS_INIT(struct slu_executor_config),
		.backoff = SLU_BACKOFF_FIXED, .base_backoff = SLU_MS, .max_attempts = UINT32_MAX
	};
	struct message messages[MESSAGES];
	struct slu_executor_stats stats;
	struct target target = { .tries = 0 };
	struct slu_executor *ex;

	target_reserve(&target);
	CHECK_EQ(0, slu_executor_start(&ex, &config, NULL));
	EACH(i, messages) {
		messages[i] = (struct message){ &target, (uint8_t)i };
		submit_fn(ex, "peer", deliver, &messages[i]);
	}
	WAIT_UNTIL(atomic_load(&target.tries) >= 3); /* it is down */
	CHECK_EQ(0, slu_executor_snapshot(ex, SLU_ALL_SHARDS, &stats));
	CHECK_EQ(0, stats.finished);
	CHECK_EQ(0, listen(target.listener, MESSAGES)); /* it is up */
	EACH(i, messages)
		CHECK_EQ(i, receive_one(&target)); /* SQ-72: in order, without resubmit */
	CHECK_EQ(0, slu_executor_await(ex, "peer", 0, NULL));
	CHECK_EQ(0, slu_executor_snapshot(ex, SLU_ALL_SHARDS, &stats));
	CHECK_EQ(0, stats.failed);
	CHECK_EQ(MESSAGES + 1, stats.submitted); /* SQ-72: each once, and the barrier */
	CHECK_EQ(0, slu_executor_close(ex));
	close(target.listener);
}
