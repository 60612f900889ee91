/*
 * Schedules of the embedded broker. Ticks follow the wall clock: a test waits for a message, and compares no times.
 */
#include "core/reserved.h"
#include "duty/firing.h"
#include "embed/embed.h"

#include "embed/kit.h"

#include <sluice/schedule.h>

#include <stdio.h>

#define EACH_SECOND "@every 1s"
#define NOT_SOON    "0 0 1 1 *"

static int
set(const char *name, const char *when, const struct slu_put *message)
{
	const struct slu_schedule s = { SLU_OPTIONS_INIT(struct slu_schedule), .name = name, .when = when, .put = message };

	return slu_schedule_set(b, &s, &err);
}

static struct slu_schedule_info
get(const char *name)
{
	struct slu_schedule_info info;

	OK(slu_schedule_get(b, name, &info, &err));
	return info;
}

/* Waits for the next message. */
static struct slu_message
wait_for(struct slu_broker *of, const char *queue)
{
	const struct slu_claim_options o = { SLU_OPTIONS_INIT(struct slu_claim_options), .wait = SLU_MIN };
	struct slu_message m = { 0 };
	size_t n;

	OK(slu_claim(of, queue, &o, &m, 1, &n, &err));
	CHECK_EQ(1, n);
	return m;
}

TEST(a_schedule_begins_messages_by_itself)
{
	const struct slu_backoff retry = { .kind = SLU_BACKOFF_FIXED, .base = SLU_SEC };
	const struct slu_put put = PUT("p\0q", .queue = "Polls", .priority = -3, .share = "x", .key = "k\"1", .correlation = "c",
				       .content_type = "t/x", .attributes = "{\"a\": [1]}", .ttl = SLU_HOUR, .keep_result = SLU_MIN,
				       .lease = 90 * SLU_SEC, .max_runtime = SLU_HOUR, .max_attempts = 3, .retry = &retry);
	struct slu_put p = put;
	struct slu_schedule_info info;
	struct slu_message m;

	p.size = 3; /* with the zero byte */
	open_in(NULL);
	OK(set("Poll", EACH_SECOND, &p));
	m = wait_for(b, "polls");
	CHECK_EQ(3, m.size);
	CHECK(memcmp("p\0q", m.payload, 3) == 0);
	CHECK_EQ(-3, m.priority);
	CHECK_STR("x", m.share);
	CHECK_STR("k\"1", m.key);
	CHECK_STR("c", m.correlation);
	CHECK_STR("t/x", m.content_type);
	CHECK_STR("{\"a\": [1]}", m.attributes);
	CHECK_EQ(90, (m.lease_until - m.accepted) / SLU_SEC);
	info = get("poll");
	CHECK(info.fired >= 1 && info.n_last >= 1);
	CHECK_STR("polls", info.queue);
	CHECK_STR("UTC", info.zone);
	CHECK_STR("fired", info.last[info.n_last - 1].outcome);
	CHECK_EQ(m.id, info.last[info.n_last - 1].id);
	CHECK(info.next[0] > info.last[0].tick && info.next[4] > info.next[0]);
	slu_message_release(&m);
}

TEST(it_goes_on_when_the_broker_is_opened_again_and_no_tick_fires_twice)
{
	const struct slu_put put = PUT("tick", .queue = "polls");
	struct slu_schedule_info info;
	struct slu_message m;

	open_in("data");
	OK(set("poll", EACH_SECOND, &put));
	for (unsigned i = 0; i < 3; i++) {
		m = wait_for(b, "polls");
		OK(slu_ack(b, &m, NULL, 0, &err));
		slu_message_release(&m);
		open_in("data"); /* nobody sets the schedule again */
	}
	info = get("poll");
	CHECK(info.fired >= 3 && info.n_last >= 3);
	for (unsigned i = 1; i < info.n_last; i++)
		CHECK(info.last[i - 1].tick > info.last[i].tick);
}

/* Stores a schedule as the administration of a server does. */
static void
store(struct schedule *s)
{
	struct op_item item = { .id = schedule_id(SLICE("default"), slice_of(s->name)) };
	struct arena memory = { 0 };
	struct embed_call c;
	struct op_put put;

	schedule_take(s, NULL, clock_wall(&clock_system));
	OK(firing_schedule(s, SLICE("default"), &memory, &put, &err));
	OK(embed_begin(b, &c, OP_SCHEDULE, NULL, &err));
	c.op.queue = SLICE(SCHEDULE_QUEUE);
	c.op.items = &item;
	c.op.n_items = 1;
	c.op.puts = &put;
	c.op.n_puts = 1;
	OK(embed_run(b, &c, &err));
	embed_end(b, &c);
	arena_release(&memory);
}

TEST(a_schedule_that_a_server_wrote_fires)
{
	struct schedule s = {
		.name = "poll",
		.when = EACH_SECOND,
		.missed = SCHEDULE_ONE,
		.message = SLICE("{\"topic\": \"polls\", \"json\": {\"n\": [1]}, \"priority\": \"high\", \"lease\": \"90s\"}"),
	};
	struct slu_message m;

	open_in("data");
	store(&s);
	open_in("data"); /* its thread finds the schedule */
	m = wait_for(b, "polls");
	CHECK(payload_is(&m, "{\"n\": [1]}"));
	CHECK_STR("application/json", m.content_type);
	CHECK_EQ(0, m.priority);
	slu_message_release(&m);
}

TEST(two_brokers_of_one_process_fire_each_their_own)
{
	const struct slu_put put = PUT("tick", .queue = "polls");
	const struct slu_schedule s = { SLU_OPTIONS_INIT(struct slu_schedule), .name = "poll", .when = EACH_SECOND, .put = &put };
	struct slu_broker *other;
	struct slu_message m;

	open_in(NULL);
	OK(slu_open(&other, NULL, NULL, &err));
	OK(set("poll", EACH_SECOND, &put));
	OK(slu_schedule_set(other, &s, &err));
	for (unsigned i = 0; i < 2; i++) {
		m = wait_for(b, "polls");
		slu_message_release(&m);
		m = wait_for(other, "polls");
		slu_message_release(&m);
	}
	slu_close(other);
}

TEST(a_run_begins_one_message_now)
{
	const struct slu_put put = PUT("now", .queue = "polls");
	struct slu_schedule_info info;
	struct slu_message m;
	uint64_t id = 0;

	open_in(NULL);
	CHECK_EQ(SLU_ENOTFOUND, slu_schedule_run(b, "poll", &id, &err));
	OK(set("poll", NOT_SOON, &put));
	OK(slu_schedule_run(b, "poll", &id, &err));
	m = take("polls");
	CHECK_EQ(id, m.id);
	slu_message_release(&m);
	info = get("poll");
	CHECK_EQ(1, info.n_last);
	CHECK_STR("run", info.last[0].outcome);
	CHECK_EQ(0, info.fired);
}

TEST(a_paused_schedule_has_no_next_tick)
{
	const struct slu_put put = PUT("now", .queue = "polls");

	open_in(NULL);
	CHECK_EQ(SLU_ENOTFOUND, slu_schedule_pause(b, "poll", true, &err));
	OK(set("poll", NOT_SOON, &put));
	CHECK(get("poll").next[0] > 0);
	OK(slu_schedule_pause(b, "poll", true, &err));
	OK(slu_schedule_pause(b, "poll", true, &err));
	CHECK(get("poll").paused);
	CHECK_EQ(0, get("poll").next[0]);
	OK(slu_schedule_pause(b, "poll", false, &err));
	CHECK(get("poll").next[0] > 0);
	CHECK_EQ(0, get("poll").lost);
}

TEST(schedules_are_listed_and_deleted)
{
	const struct slu_put put = PUT("now", .queue = "polls");
	struct slu_schedule_info rows[2];
	unsigned found = 0;
	uint64_t cursor = 0;
	size_t n;

	open_in(NULL);
	for (unsigned i = 0; i < 5; i++) {
		char name[8];

		(void)snprintf(name, sizeof name, "s%u", i);
		OK(set(name, NOT_SOON, &put));
	}
	OK(slu_schedule_delete(b, "s3", &err));
	CHECK_EQ(SLU_ENOTFOUND, slu_schedule_delete(b, "s3", &err));
	do {
		OK(slu_schedule_list(b, &cursor, rows, 2, &n, &err));
		for (size_t i = 0; i < n; i++)
			found |= 1u << (rows[i].name[1] - '0');
	} while (cursor);
	CHECK_EQ(1 | 2 | 4 | 16, found);
}

TEST(a_schedule_that_is_set_again_keeps_its_history)
{
	const struct slu_put put = PUT("now", .queue = "polls"), other = PUT("later", .queue = "more");
	struct slu_schedule_info info;

	open_in(NULL);
	OK(set("poll", NOT_SOON, &put));
	OK(slu_schedule_run(b, "poll", NULL, &err));
	OK(set("poll", "@hourly", &other));
	info = get("poll");
	CHECK_EQ(1, info.n_last);
	CHECK_STR("@hourly", info.when);
	CHECK_STR("more", info.queue);
}

TEST(an_invalid_schedule_is_refused_with_its_reason)
{
	static const struct slu_put good = { SLU_OPTIONS_INIT(struct slu_put), .payload = "x", .size = 1, .queue = "q" };
	static const struct slu_put homeless = { SLU_OPTIONS_INIT(struct slu_put), .payload = "x", .size = 1 };
	static const struct slu_put keyed = { SLU_OPTIONS_INIT(struct slu_put), .payload = "x", .size = 1, .queue = "q", .idempotency = "i" };
	static const struct slu_put bad_key = { SLU_OPTIONS_INIT(struct slu_put), .payload = "x", .size = 1, .queue = "q", .key = "a\n" };
	static const struct {
		const char *says;
		struct slu_schedule s;
	} cases[] = {
		{ "name", { .when = NOT_SOON, .put = &good } },
		{ "name", { .name = "a b", .when = NOT_SOON, .put = &good } },
		{ "expected", { .name = "s", .when = "61 * * * *", .put = &good } },
		{ "Moon/Base", { .name = "s", .when = NOT_SOON, .zone = "Moon/Base", .put = &good } },
		{ "missed", { .name = "s", .when = NOT_SOON, .missed = "some", .put = &good } },
		{ "overlap", { .name = "s", .when = NOT_SOON, .overlap = "some", .put = &good } },
		{ "jitter", { .name = "s", .when = "@every 1m", .jitter = SLU_MIN, .put = &good } },
		{ "queue", { .name = "s", .when = NOT_SOON, .put = &homeless } },
		{ "idempotency", { .name = "s", .when = NOT_SOON, .put = &keyed } },
		{ "key", { .name = "s", .when = NOT_SOON, .put = &bad_key } },
	};

	open_in(NULL);
	EACH(i, cases) {
		struct slu_schedule s = cases[i].s;

		s.struct_size = sizeof s;
		err.text[0] = 0;
		CHECK_EQ(SLU_EINVAL, slu_schedule_set(b, &s, &err), cases[i].says);
		CHECK(strstr(err.text, cases[i].says));
	}
}

TEST(a_stopped_broker_fires_and_takes_no_schedule)
{
	const struct slu_put put = PUT("tick", .queue = "polls");
	struct slu_message m;

	open_in(NULL);
	OK(set("poll", EACH_SECOND, &put));
	m = wait_for(b, "polls");
	OK(slu_stop(b, &err));
	OK(slu_stop(b, &err));
	CHECK_EQ(SLU_ECLOSED, set("more", EACH_SECOND, &put));
	CHECK_EQ(SLU_ECLOSED, slu_schedule_run(b, "poll", NULL, &err));
	CHECK(get("poll").fired >= 1); /* looking goes on */
	OK(slu_ack(b, &m, NULL, 0, &err));
	slu_message_release(&m);
}
