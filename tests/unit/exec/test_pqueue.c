/* The priority queue as one thread sees it. test_pqueue_wait.c has the sleepers. */
#include "pqueue_fixture.h"

#include <stdio.h>

/* What comes and goes */

TEST(enqueue_returns_before_the_job_is_taken)
{
	CHECK_EQ(1, put(NULL, 0)); /* PW-01: no consumer takes it, and the call returned */
	CHECK_EQ(1, stats_of().ready);
	CHECK_EQ(1, pull());
	CHECK_EQ(0, pull());
}

TEST(standard_labels_are_high_normal_and_low)
{
	static const struct {
		const char *label;
		int32_t value;
	} cases[] = { { "high", 0 }, { "normal", 5 }, { "low", 10 } }; /* PW-21 */
	struct slu_job_item item;

	put("low", 0);
	put(NULL, 0); /* PW-22: without label it is normal */
	put("high", 0);
	EACH(i, cases) { /* PW-20: high before normal before low */
		CHECK_EQ(0, slu_pqueue_dequeue(f.q, 0, &item));
		CHECK_STR(cases[i].label, item.priority);
		CHECK_EQ(cases[i].value, item.priority_value);
	}
}

TEST(labels_mean_what_is_configured)
{
	static const struct slu_priority rows[] = { { "bulk", -3 }, { "high", 7 } };
	const struct slu_pqueue_config config = { SLU_OPTIONS_INIT(struct slu_pqueue_config), .priorities = rows, .n_priorities = 2 };
	struct slu_job_item item;

	setup(SLU_LOG_OFF, config);
	put("high", 0);
	put("bulk", 0);
	put(NULL, 0); /* no "normal" here: the first is the default */
	CHECK_EQ(0, slu_pqueue_dequeue(f.q, 0, &item));
	CHECK_EQ(2, item.seq, "PW-29: the map changed the order");
	CHECK_EQ(-3, item.priority_value, "PW-02");
	CHECK_EQ(3, pull());
	CHECK_EQ(1, pull());
}

TEST(the_default_label_can_be_chosen)
{
	const struct slu_pqueue_config config = { SLU_OPTIONS_INIT(struct slu_pqueue_config), .default_label = "low" };
	struct slu_job_item item;

	setup(SLU_LOG_OFF, config);
	put(NULL, 0);
	CHECK_EQ(0, slu_pqueue_dequeue(f.q, 0, &item));
	CHECK_STR("low", item.priority);
}

TEST(ready_jobs_come_by_value_then_due_then_arrival)
{
	static const uint64_t want[] = { 5, 3, 1, 4, 6, 2 }; /* PW-05, PW-16 */

	put("normal", 3 * SLU_SEC); /* 1 */
	put("low", 0);              /* 2 */
	put("normal", SLU_SEC);     /* 3: same label, due before 1 */
	fakeclock_advance(&f.clock, 5 * SLU_SEC);
	put("normal", 0); /* 4 */
	put("high", 0);   /* 5 */
	put("normal", 0); /* 6: PW-07: same label and time as 4 */
	EACH(i, want)
		CHECK_EQ(want[i], pull());
}

TEST(equal_jobs_keep_their_order)
{
	for (int i = 0; i < 1000; i++)
		put("normal", 0);
	for (uint64_t i = 1; i <= 1000; i++) /* PW-07 */
		CHECK_EQ(i, pull());
}

TEST(a_delayed_job_comes_when_its_time_has_come)
{
	put(NULL, 2 * SLU_SEC);
	put(NULL, 0);
	CHECK_EQ(1, stats_of().scheduled, "PW-10: not due, so scheduled");
	CHECK_EQ(1, stats_of().ready, "PW-10: due now, so ready");
	CHECK_EQ(2, pull());
	fakeclock_advance(&f.clock, 2 * SLU_SEC - 1);
	CHECK_EQ(0, pull(), "PW-03: not a nanosecond early");
	fakeclock_advance(&f.clock, 1);
	CHECK_EQ(1, pull(), "PW-03: after 2 s");
}

TEST(an_urgent_job_of_the_future_delays_no_other_job)
{
	put("high", SLU_HOUR);
	put("normal", 0);
	put("normal", 0);
	CHECK_EQ(2, pull()); /* PW-04 */
	CHECK_EQ(3, pull());
	CHECK_EQ(0, pull());
}

TEST(all_that_is_due_becomes_ready_together)
{
	struct slu_pqueue_stats stats;

	for (int i = 1; i <= 10; i++)
		put(i == 10 ? "high" : "low", i * SLU_MS);
	put(NULL, SLU_HOUR);
	fakeclock_advance(&f.clock, 10 * SLU_MS);
	CHECK_EQ(10, pull(), "PW-15: the urgent one counts, though due last");
	stats = stats_of();
	CHECK_EQ(9, stats.ready, "PW-15: the other nine came with it");
	CHECK_EQ(1, stats.scheduled);
}

TEST(with_max_wait_priorities_age)
{
	const struct slu_pqueue_config config = { SLU_OPTIONS_INIT(struct slu_pqueue_config), .max_wait = 10 * SLU_SEC };

	setup(SLU_LOG_OFF, config);
	put("low", 0); /* 1 */
	fakeclock_advance(&f.clock, 10 * SLU_SEC - 1);
	put("high", 0); /* 2: less than max_wait later */
	fakeclock_advance(&f.clock, 2);
	put("high", 0);   /* 3: more */
	put("normal", 0); /* 4: half a step after 2, and one after 3 */
	CHECK_EQ(2, pull());
	CHECK_EQ(1, pull());
	CHECK_EQ(3, pull());
	CHECK_EQ(4, pull());
}

/* What is refused */

TEST(bad_jobs_are_refused_and_nothing_is_stored)
{
	static char long_id[SLU_CORRELATION_MAX + 2];
	static const struct {
		const char *label;
		struct slu_job job;
		const char *text;
	} cases[] = {
		{ "PW-12: unknown priority", { .priority = "urgent" }, "high, normal, low" },
		{ "empty priority", { .priority = "" }, "unknown priority" },
		{ "negative delay", { .delay = -1 }, "delay" },
		{ "long correlation id", { .correlation_id = long_id }, "128 bytes" },
		{ "long object id", { .object_id = long_id + 64 }, "64 bytes" },
		{ "control in object id", { .object_id = "a\nb" }, "object id: byte 2" },
		{ "control in correlation id", { .correlation_id = "a\x7f" }, "byte 2" },
		{ "no ASCII in correlation id", { .correlation_id = "\xc3\xa4" }, "byte 1" },
	};
	struct slu_err err;

	memset(long_id, 'x', sizeof long_id - 1);
	EACH(i, cases) {
		struct slu_job job = cases[i].job;

		job.struct_size = sizeof job;
		if (slu_pqueue_enqueue(f.q, &job, NULL, &err) != SLU_EINVAL)
			test_fail(__FILE__, __LINE__, "%s", cases[i].label);
		CHECK_CONTAINS(cases[i].text, err.text);
	}
	CHECK_EQ(0, stats_of().depth, "PW-12: nothing stored");
	CHECK_EQ(1, put(NULL, 0), "no number was spent");
}

TEST(ids_may_be_as_long_as_promised)
{
	char object_id[SLU_OBJECT_ID_MAX + 1] = "", correlation_id[SLU_CORRELATION_MAX + 1] = "";
	const struct slu_job job = { SLU_OPTIONS_INIT(struct slu_job), .object_id = object_id, .correlation_id = correlation_id };
	struct slu_job_item item;
	struct slu_err err;

	memset(object_id, 'o', SLU_OBJECT_ID_MAX);
	memset(correlation_id, 'c', SLU_CORRELATION_MAX);
	setup(SLU_LOG_DEBUG, defaults);
	CHECK_EQ(0, slu_pqueue_enqueue(f.q, &job, NULL, &err));
	CHECK_EQ(0, slu_pqueue_dequeue(f.q, 0, &item));
	CHECK_STR(object_id, item.object_id);
	CHECK_STR(correlation_id, item.correlation_id);
}

TEST(a_full_queue_refuses_and_says_how_full)
{
	const struct slu_pqueue_config config = { SLU_OPTIONS_INIT(struct slu_pqueue_config), .max_in_memory = 3 };
	const struct slu_job job = { SLU_OPTIONS_INIT(struct slu_job) };
	struct slu_job_item item;
	struct slu_err err;
	uint32_t handle;

	setup(SLU_LOG_OFF, config);
	put(NULL, 0);
	put(NULL, 0);
	put(NULL, SLU_SEC);
	CHECK_EQ(0, pqueue_take(f.q, NULL, 0, &item, &handle));          /* running counts, too */
	CHECK_EQ(SLU_EQFULL, slu_pqueue_enqueue(f.q, &job, NULL, &err)); /* PW-13, PW-30 */
	CHECK_EQ(3, err.length);
	CHECK_EQ(3, err.capacity);
	CHECK_EQ(SLU_EQFULL, slu_pqueue_enqueue(f.q, &job, NULL, NULL));
	pqueue_put_back(f.q, handle, 0, true); /* never refused */
	CHECK_EQ(3, stats_of().depth);
	CHECK_EQ(1, pull());
	CHECK_EQ(0, slu_pqueue_enqueue(f.q, &job, NULL, &err), "one left, one may come");
}

TEST(scheduled_jobs_have_a_limit_of_their_own)
{
	const struct slu_pqueue_config config = { SLU_OPTIONS_INIT(struct slu_pqueue_config), .max_scheduled = 2 };
	const struct slu_job later = { SLU_OPTIONS_INIT(struct slu_job), .delay = SLU_SEC };
	struct slu_err err;

	setup(SLU_LOG_OFF, config);
	put(NULL, SLU_MS);
	put(NULL, SLU_HOUR);
	CHECK_EQ(SLU_EQFULL, slu_pqueue_enqueue(f.q, &later, NULL, &err)); /* PW-13 */
	CHECK_EQ(2, err.capacity);
	put(NULL, 0);
	fakeclock_advance(&f.clock, SLU_MS); /* the first is ready now */
	CHECK_EQ(0, slu_pqueue_enqueue(f.q, &later, NULL, &err));
}

TEST(a_stopped_queue_takes_nothing_new)
{
	const struct slu_job job = { SLU_OPTIONS_INIT(struct slu_job) };
	struct slu_err err;

	CHECK_EQ(0, slu_pqueue_stop(f.q, SLU_STOP_READY, 0));
	CHECK_EQ(SLU_ECLOSED, slu_pqueue_enqueue(f.q, &job, NULL, &err)); /* PW-14 */
	CHECK_STR("the queue is stopped", err.text);
	CHECK(stats_of().shutdown);
}

TEST_BARE(bad_configurations_are_refused)
{
	static const struct slu_priority twice[] = { { "a", 1 }, { "a", 2 } };
	static const struct slu_priority unnamed[] = { { "", 1 } };
	static const struct slu_priority null[] = { { NULL, 1 } };
	static const struct slu_priority spaced[] = { { "a b", 1 } };
	static const struct slu_pqueue_config cases[] = {
		{ SLU_OPTIONS_INIT(struct slu_pqueue_config), .max_wait = -1 },
		{ SLU_OPTIONS_INIT(struct slu_pqueue_config), .priorities = twice, .n_priorities = 2 },
		{ SLU_OPTIONS_INIT(struct slu_pqueue_config), .priorities = twice, .n_priorities = 0 },
		{ SLU_OPTIONS_INIT(struct slu_pqueue_config), .priorities = unnamed, .n_priorities = 1 },
		{ SLU_OPTIONS_INIT(struct slu_pqueue_config), .priorities = null, .n_priorities = 1 },
		{ SLU_OPTIONS_INIT(struct slu_pqueue_config), .priorities = spaced, .n_priorities = 1 },
		{ SLU_OPTIONS_INIT(struct slu_pqueue_config), .default_label = "urgent" },
		{ SLU_OPTIONS_INIT(struct slu_pqueue_config), .metrics_namespace = "my-app" },
		{ SLU_OPTIONS_INIT(struct slu_pqueue_config), .metrics_namespace = "a_namespace_that_is_much_too_long_to_be_one_"
										   "of_any_metric" },
	};

	EACH(i, cases) {
		struct slu_err err = { 0 };
		struct slu_pqueue *q;

		CHECK_EQ(SLU_EINVAL, slu_pqueue_new(&q, &cases[i], &err));
		CHECK(q == NULL && err.text[0]);
	}
	slu_pqueue_free(NULL, NULL);
}

/* What can be seen */

static void
check_whole_item(const struct slu_job_item *item, unsigned attempts)
{
	CHECK_STR("order-7", item->object_id);
	CHECK_STR("req-42", item->correlation_id);
	CHECK_STR("high", item->priority);
	CHECK_EQ(0, item->priority_value);
	CHECK_EQ(WALL_AT_START, item->enqueued_at);
	CHECK_EQ(WALL_AT_START + 2 * SLU_SEC, item->ready_at);
	CHECK_EQ(1, item->seq);
	CHECK_EQ(attempts, item->attempts);
	CHECK_STR("payload", (const char *)item->data);
}

TEST(a_job_is_kept_whole_from_end_to_end)
{
	char payload[] = "payload";
	const struct slu_job job = {
		SLU_OPTIONS_INIT(struct slu_job),
		.object_id = "order-7",
		.correlation_id = "req-42",
		.priority = "high",
		.delay = 2 * SLU_SEC,
		.data = payload,
	};
	struct slu_job_item item;
	struct slu_err err;

	CHECK_EQ(0, slu_pqueue_enqueue(f.q, &job, NULL, &err));
	CHECK_EQ(1, slu_pqueue_peek(f.q, &item, 1));
	check_whole_item(&item, 0); /* PW-23: all visible by inspection */
	CHECK_EQ(0, item.waited);
	fakeclock_advance(&f.clock, 5 * SLU_SEC);
	CHECK_EQ(0, slu_pqueue_dequeue(f.q, 0, &item));
	check_whole_item(&item, 1); /* PW-24 */
	CHECK_EQ(3 * SLU_SEC, item.waited);
}

TEST(peek_shows_the_order_and_takes_nothing)
{
	static const uint64_t want[] = { 4, 1, 3, 2, 5 };
	struct slu_job_item items[8];

	put("low", 0);
	put("low", 2 * SLU_SEC);
	put("high", 2 * SLU_SEC); /* PW-06: same ready time as 2, by priority */
	put("normal", 0);
	put("high", SLU_HOUR);
	CHECK_EQ(3, slu_pqueue_peek(f.q, items, 3));
	CHECK_EQ(0, slu_pqueue_peek(f.q, items, 0));
	for (int round = 0; round < 2; round++) {
		CHECK_EQ(5, slu_pqueue_peek(f.q, items, COUNT(items)));
		EACH(i, want)
			CHECK_EQ(want[i], items[i].seq);
	}
	CHECK_EQ(2, stats_of().ready);
	CHECK_EQ(3, stats_of().scheduled);
}

TEST(times_are_shown_as_the_wall_clock_is_set_now)
{
	struct slu_job_item item;

	put(NULL, 0);
	fakeclock_advance(&f.clock, 10 * SLU_SEC);
	fakeclock_set_wall(&f.clock, 5 * SLU_SEC); /* 1970, before the mono clock */
	CHECK_EQ(0, slu_pqueue_dequeue(f.q, 0, &item));
	CHECK_EQ(-5 * SLU_SEC, item.enqueued_at, "10 s ago");
	CHECK_EQ(10 * SLU_SEC, item.waited, "a set clock delays nothing");
}

TEST(a_job_for_never_stays)
{
	struct slu_job_item item;

	put(NULL, SLU_NEVER);
	fakeclock_advance(&f.clock, 1000000 * SLU_HOUR);
	CHECK_EQ(0, pull());
	CHECK_EQ(1, slu_pqueue_peek(f.q, &item, 1));
	CHECK_EQ(SLU_NEVER, item.ready_at);
}

TEST(a_job_can_be_followed_through_the_log)
{
	const struct slu_job job = {
		SLU_OPTIONS_INIT(struct slu_job),
		.object_id = "order-7", .correlation_id = "req-42", .delay = SLU_SEC
	};
	static const char *const steps[] = {
		"event=\"job scheduled\"", "event=\"job promoted\"", "event=\"job dequeued\"",
		"event=\"job enqueued\"", "event=\"job dequeued\""
	};
	struct slu_job_item item;
	struct slu_err err;
	const char *at;
	uint32_t handle;

	setup(SLU_LOG_DEBUG, defaults);
	CHECK_EQ(0, slu_pqueue_enqueue(f.q, &job, NULL, &err));
	fakeclock_advance(&f.clock, SLU_SEC);
	CHECK_EQ(0, pqueue_take(f.q, NULL, 0, &item, &handle));
	pqueue_put_back(f.q, handle, 0, true);
	CHECK_EQ(0, slu_pqueue_dequeue(f.q, 0, &item));
	at = f.lines;
	EACH(i, steps) { /* PW-25; PW-49: the steps of a delayed job, in order */
		at = strstr(at, steps[i]);
		CHECK(at);
		CHECK(strncmp(at + strlen(steps[i]),
			      " object_id=order-7 correlation_id=req-42 priority=normal seq=1 ",
			      62) == 0);
	}
	CHECK_EQ(5, count_of("req-42", f.lines));
}

TEST(many_promotions_are_all_logged_and_nothing_is_taken_before_its_turn)
{
	setup(SLU_LOG_DEBUG, defaults);
	for (int i = 1; i <= 50; i++)
		put(i == 50 ? "high" : "low", SLU_SEC);
	fakeclock_advance(&f.clock, SLU_SEC);
	CHECK_EQ(50, pull());
	CHECK_EQ(50, count_of("job promoted", f.lines));
}

TEST(a_backlog_is_warned_of_once_per_crossing)
{
	const struct slu_pqueue_config config = { SLU_OPTIONS_INIT(struct slu_pqueue_config), .warn_depth = 3, .warn_scheduled = 2 };

	setup(SLU_LOG_WARN, config);
	for (int i = 0; i < 6; i++)
		put(NULL, 0);
	CHECK_EQ(1, count_of("event=backlog", f.lines), "PW-32: one line");
	CHECK_CONTAINS("level=warn event=backlog depth=3 warn_depth=3 which=ready", f.lines);
	for (int i = 0; i < 3; i++)
		pull();
	put(NULL, 0); /* 4: it never was below */
	CHECK_EQ(1, count_of("event=backlog", f.lines));
	pull();
	pull();
	put(NULL, 0); /* PW-31: 2, then 3 again */
	CHECK_EQ(2, count_of("which=ready", f.lines), "PW-32: one line per crossing");

	put(NULL, SLU_SEC);
	put(NULL, SLU_SEC);
	put(NULL, SLU_SEC);
	CHECK_EQ(1, count_of("depth=2 warn_depth=2 which=scheduled", f.lines));
	CHECK_EQ(3, slu_pqueue_purge(f.q, NULL) - 3);
	put(NULL, SLU_SEC);
	put(NULL, SLU_SEC);
	put(NULL, SLU_SEC);
	CHECK_EQ(2, count_of("which=scheduled", f.lines));
	fakeclock_advance(&f.clock, SLU_SEC);
	pull(); /* three came due together, though one is gone at once */
	CHECK_EQ(3, count_of("which=ready", f.lines));
}

TEST(without_levels_nothing_is_warned_of)
{
	setup(SLU_LOG_WARN, defaults);
	for (int i = 0; i < 100; i++)
		put(NULL, i % 2 * SLU_SEC);
	CHECK_EQ(0, f.n_lines);
}

static unsigned n_dropped;

/* What a callback may do: anything. */
static void
drop_and_look(void *data)
{
	CHECK(data == &f);
	CHECK_EQ(0, stats_of().ready);
	if (n_dropped++ == 0)
		put("high", SLU_SEC);
}

TEST(a_callback_may_call_the_queue)
{
	const struct slu_job job = { SLU_OPTIONS_INIT(struct slu_job), .object_id = "x", .data = &f };
	struct slu_err err;

	for (int i = 0; i < 200; i++)
		CHECK_EQ(0, slu_pqueue_enqueue(f.q, &job, NULL, &err));
	CHECK_EQ(200, slu_pqueue_purge(f.q, drop_and_look)); /* PW-08: no hang */
	CHECK_EQ(200, n_dropped);
	CHECK_EQ(1, stats_of().depth, "what came in meanwhile stays");
}

static void
drop_nothing(void *data)
{
	CHECK(!data);
	n_dropped++;
}

TEST(purge_clears_both_heaps_and_leaves_what_runs)
{
	struct slu_job_item item;
	uint32_t handle;

	for (int i = 0; i < 100; i++)
		put(NULL, i % 2 * SLU_SEC);
	CHECK_EQ(0, pqueue_take(f.q, NULL, 0, &item, &handle));
	n_dropped = 0;
	CHECK_EQ(99, slu_pqueue_purge(f.q, drop_nothing));
	CHECK_EQ(99, n_dropped);
	CHECK_EQ(0, stats_of().depth); /* PW-28 */
	CHECK_EQ(1, stats_of().running, "PW-28: a running job is unaffected");
	pqueue_put_back(f.q, handle, 0, true);
	CHECK_EQ(1, pull());
}

TEST(free_drops_what_is_left)
{
	put(NULL, 0);
	put(NULL, SLU_SEC);
	n_dropped = 0;
	slu_pqueue_free(f.q, drop_nothing);
	CHECK_EQ(2, n_dropped);
	f.q = NULL;
}

/* When each job falls due, by seq; 0 when it is gone. */
struct pqueue_model {
	slu_time due[4000];
	slu_time now;
	uint64_t dice;
};

static void
model_step(struct pqueue_model *m)
{
	const uint64_t roll = test_random(&m->dice);
	const slu_time time = (slu_time)(roll >> 8) % 9 * SLU_MS;

	if (roll % 8 == 0) {
		fakeclock_advance(&f.clock, time);
		m->now += time;
	} else if (roll % 8 < 4) {
		m->due[pull()] = 0;
	} else {
		m->due[put(NULL, time)] = m->now + time;
	}
}

static void
model_check(struct pqueue_model *m)
{
	const struct slu_pqueue_stats stats = stats_of();
	unsigned ready = 0, scheduled = 0;

	EACH(i, m->due) {
		ready += m->due[i] && m->due[i] <= m->now;
		scheduled += m->due[i] > m->now;
	}
	CHECK_EQ(ready, stats.ready); /* PW-26 */
	CHECK_EQ(scheduled, stats.scheduled);
	CHECK_EQ(ready + scheduled, stats.depth);
	CHECK_EQ(0, stats.running);
}

TEST(snapshot_equals_a_model)
{
	static struct pqueue_model m;

	m.dice = test_seed();
	m.now = 1;
	for (size_t i = 0; i < COUNT(m.due); i++) {
		model_step(&m);
		model_check(&m);
	}
}

static void
check_metric(const char *name, uint64_t want)
{
	char line[80], *text;

	CHECK_EQ(0, slu_pqueue_metrics(f.q, &text));
	snprintf(line, sizeof line, "\n%s %" PRIu64 "\n", name, want);
	CHECK_CONTAINS(line, text);
	slu_free(text);
}

TEST(metrics_equal_the_snapshot)
{
	const struct slu_pqueue_config config = {
		SLU_OPTIONS_INIT(struct slu_pqueue_config),
		.metrics_namespace = "shop", .max_in_memory = 5
	};
	const struct slu_job job = { SLU_OPTIONS_INIT(struct slu_job) };
	struct slu_err err;

	setup(SLU_LOG_OFF, config);
	for (int i = 0; i < 5; i++)
		put(NULL, i < 3 ? 0 : SLU_SEC);
	CHECK_EQ(SLU_EQFULL, slu_pqueue_enqueue(f.q, &job, NULL, &err));
	check_metric("shop_pqueue_queue_depth", stats_of().depth); /* PW-F12 */
	check_metric("shop_pqueue_queue_ready", 3);
	check_metric("shop_pqueue_queue_scheduled", 2);
	check_metric("shop_pqueue_enqueued_total", 5);
	check_metric("shop_pqueue_refused_total", 1);
	fakeclock_advance(&f.clock, 2 * SLU_SEC);
	for (int i = 0; i < 4; i++)
		pull();
	check_metric("shop_pqueue_queue_depth", 1);
	/* PW-F13: the count equals the dequeues; 3 waited 2 s, one 1 s */
	check_metric("shop_pqueue_dequeue_latency_seconds_count", 4);
	check_metric("shop_pqueue_dequeue_latency_seconds_bucket{le=\"1\"}", 1);
}

/* What a worker needs */

TEST(a_job_that_is_put_back_counts_its_deliveries)
{
	struct slu_job_item item;
	uint32_t handle;

	put(NULL, 0);
	CHECK_EQ(0, pqueue_take(f.q, NULL, 0, &item, &handle));
	CHECK_EQ(1, item.attempts);
	CHECK_EQ(1, stats_of().running);
	pqueue_put_back(f.q, handle, SLU_SEC, true);
	CHECK_EQ(1, stats_of().scheduled);
	fakeclock_advance(&f.clock, SLU_SEC);
	CHECK_EQ(0, pqueue_take(f.q, NULL, 0, &item, &handle));
	CHECK_EQ(2, item.attempts);
	CHECK_EQ(WALL_AT_START + SLU_SEC, item.ready_at);
	pqueue_put_back(f.q, handle, 0, false);
	CHECK_EQ(0, pqueue_take(f.q, NULL, 0, &item, &handle));
	CHECK_EQ(2, item.attempts, "the one before was not spent");
	pqueue_finish(f.q, handle);
	CHECK_EQ(0, stats_of().running);
	CHECK(pqueue_clock(f.q) == &f.clock.clock);
}

TEST(a_stopped_queue_takes_a_job_back)
{
	struct slu_job_item item;
	uint32_t handle;

	put(NULL, 0);
	CHECK_EQ(0, pqueue_take(f.q, NULL, 0, &item, &handle));
	CHECK_EQ(0, slu_pqueue_stop(f.q, SLU_STOP_READY, 0));
	pqueue_put_back(f.q, handle, 0, true);
	CHECK_EQ(1, pull(), "and hands it out again");
	CHECK_EQ(SLU_ECLOSED, slu_pqueue_dequeue(f.q, 0, &item));
}

static int
torture_once(struct slu_pqueue *q)
{
	static const struct slu_job jobs[] = {
		{ SLU_OPTIONS_INIT(struct slu_job), .object_id = "a", .correlation_id = "b" }, { SLU_OPTIONS_INIT(struct slu_job), .delay = 1 }, { SLU_OPTIONS_INIT(struct slu_job) }
	};
	struct slu_job_item item;
	struct slu_err err;
	char *text = NULL;
	int rc;

	for (int i = 0; i < 150; i++) {
		struct slu_pqueue_stats before, after;

		slu_pqueue_snapshot(q, &before);
		rc = slu_pqueue_enqueue(q, &jobs[i % COUNT(jobs)], NULL, &err);
		slu_pqueue_snapshot(q, &after);
		CHECK(rc == 0 || rc == SLU_ENOMEM);
		CHECK_EQ(before.depth + (rc == 0), after.depth);
		if (rc)
			return rc;
	}
	rc = slu_pqueue_metrics(q, &text);
	slu_free(text);
	CHECK_EQ(3, slu_pqueue_peek(q, (struct slu_job_item[3]){ 0 }, 3));
	CHECK_EQ(0, slu_pqueue_dequeue(q, 0, &item));
	return rc;
}

TORTURE(without_memory_the_queue_says_so_and_goes_on)
{
	struct slu_pqueue *q;
	struct slu_err err;
	int rc;

	rc = slu_pqueue_new(&q, NULL, &err);
	if (rc) {
		CHECK_EQ(SLU_ENOMEM, rc);
		return;
	}
	rc = torture_once(q);
	CHECK(rc == 0 || rc == SLU_ENOMEM);
	slu_pqueue_free(q, NULL);
}
