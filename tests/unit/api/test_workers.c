#include "test.h"

#include "api/worker/workers.h"

#include <stdio.h>

static struct workers *w;

static void
before(void)
{
	CHECK_EQ(0, workers_new(&w, NULL));
}

static void
after(void)
{
	workers_free(w);
}

FIXTURE(before, after);

static enum worker_state
beat(const char *name, const char *instance, const char *queue, slu_time now)
{
	const struct worker_beat b = {
		.namespace = SLICE("a"),
		.queue = slice_of(queue),
		.name = slice_of(name),
		.instance = slice_of(instance),
		.slots = 8,
	};
	enum worker_state state = WORKER_STATES;

	CHECK_EQ(0, workers_beat(w, &b, now, &state, NULL));
	return state;
}

struct found {
	unsigned n;
	char text[400];
};

static void
note(void *arg, const struct worker_shown *s)
{
	struct found *const f = arg;
	struct slice q = s->queues;

	f->n++;
	(void)snprintf(f->text, sizeof f->text, "%.*s:", (int)s->beat.name.n, s->beat.name.p);
	while (q.n > 0) {
		const struct slice one = slice_of(q.p);

		strcat(strcat(f->text, one.p), " ");
		slice_skip(&q, one.n + 1);
	}
}

static struct found
look(const char *space, const char *queue, slu_time now)
{
	struct found f = { 0 };
	uint64_t cursor = 0;

	workers_list(w, slice_of(space), slice_of(queue), WORKERS_MAX, now, &cursor, note, &f);
	CHECK_EQ(0, cursor);
	return f;
}

/* WORKERS-1 */
TEST(a_worker_is_forgotten_60_s_after_its_last_beat)
{
	beat("x", "1", "mail", 0);
	beat("y", "1", "mail", 10 * SLU_SEC);
	CHECK_EQ(2, look("", "", 60 * SLU_SEC).n);
	CHECK_STR("y:mail ", look("", "", 60 * SLU_SEC + 1).text);
	CHECK_EQ(0, look("", "", 71 * SLU_SEC).n);
	CHECK_EQ(SLU_ENOTFOUND, workers_ask(w, SLICE("a"), SLICE("y"), WORKER_QUIET, 71 * SLU_SEC));
}

/* WORKERS-1 */
TEST(the_register_has_10000_workers_and_room_again_when_some_are_gone)
{
	struct worker_beat b = { .namespace = SLICE("a") };
	enum worker_state state;
	char name[16];
	uint64_t cursor = 0;
	struct found f = { 0 };

	b.name.p = name;
	for (int i = 0; i < WORKERS_MAX; i++) {
		b.name.n = (size_t)snprintf(name, sizeof name, "w%d", i);
		CHECK_EQ(0, workers_beat(w, &b, i < 10 ? 0 : SLU_SEC, &state, NULL));
	}
	b.name.n = (size_t)snprintf(name, sizeof name, "more");
	CHECK_EQ(SLU_EBUSY, workers_beat(w, &b, 60 * SLU_SEC, &state, NULL));
	CHECK_EQ(0, workers_beat(w, &b, 60 * SLU_SEC + 1, &state, NULL));
	do {
		workers_list(w, SLICE("a"), SLICE(""), 1000, 60 * SLU_SEC + 1, &cursor, note, &f);
	} while (cursor);
	CHECK_EQ(WORKERS_MAX - 10 + 1, f.n);
}

/* WORKERS-2 */
TEST(what_a_worker_is_asked_ends_with_its_process)
{
	CHECK_EQ(WORKER_RUNNING, beat("x", "1", "", 0));
	CHECK_EQ(0, workers_ask(w, SLICE("a"), SLICE("x"), WORKER_STOP, 0));
	CHECK_EQ(WORKER_STOP, workers_state(w, SLICE("a"), SLICE("x")));
	CHECK_EQ(WORKER_STOP, beat("x", "1", "", 1));
	CHECK_EQ(WORKER_RUNNING, beat("x", "2", "", 2));
	CHECK_EQ(SLU_ENOTFOUND, workers_ask(w, SLICE("b"), SLICE("x"), WORKER_STOP, 2));
}

TEST(queues_are_gathered_and_the_oldest_make_room)
{
	char name[101];

	beat("x", "1", "mail", 0);
	beat("x", "1", "jobs", 0);
	beat("x", "1", "mail", 0);
	CHECK_STR("x:mail jobs ", look("a", "jobs", 0).text);
	CHECK_EQ(0, look("a", "job", 0).n);
	CHECK_EQ(0, look("b", "", 0).n);
	memset(name, 'q', sizeof name - 1);
	name[100] = '\0';
	for (int i = 0; i < 3; i++) {
		name[0] = (char)('0' + i);
		beat("x", "1", name, 0);
	}
	CHECK_EQ(0, look("a", "mail", 0).n);
	CHECK_EQ(1, look("a", name, 0).n);
}

TEST(the_field_is_read_by_its_parts)
{
	static const struct {
		const char *label, *field;
		int rc;
	} cases[] = {
		{ "a name is enough", "name=a", 0 },
		{ "no name", "slots=3", SLU_EINVAL },
		{ "an empty name", "name=", SLU_EINVAL },
		{ "nothing", "", SLU_EINVAL },
		{ "an unknown part", "name=a; colour=red", 0 },
		{ "a part without a value", "name=a; quick", 0 },
		{ "a number with a sign", "name=a; slots=-1", SLU_EINVAL },
		{ "a number too large", "name=a; slots=4294967296", SLU_EINVAL },
		{ "a control character", "name=a\tb", SLU_EINVAL },
		{ "a long version", "name=a; version=0123456789012345678901234567890123456789012345678901234567890123456789", SLU_EINVAL },
	};
	struct worker_beat b = { 0 };

	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct worker_beat out = { 0 };

		CHECK_EQ(cases[i].rc, worker_field_read(slice_of(cases[i].field), &out, NULL), cases[i].label);
	}
	CHECK_EQ(0, worker_field_read(SLICE("name=m 1;host=h; slots = 8 ;used=3;lost=1"), &b, NULL));
	CHECK(slice_eq(b.name, SLICE("m 1")) && slice_eq(b.host, SLICE("h")));
	CHECK_EQ(8, b.slots);
	CHECK_EQ(3, b.used);
	CHECK_EQ(1, b.lost);
}

static struct queue_crew
crew(const char *queue, slu_time now)
{
	return workers_crew(w, SLICE("a"), slice_of(queue), now);
}

TEST(the_crew_of_a_queue_follows_its_workers)
{
	struct worker_beat end = { .namespace = SLICE("a"), .name = SLICE("two"), .instance = SLICE("1"), .ends = 1 };
	enum worker_state state;
	char queue[20];

	beat("one", "1", "mail", 0);
	beat("two", "1", "mail", 0);
	beat("two", "1", "sms", 0);
	CHECK_EQ(2, crew("mail", 0).n);
	CHECK_EQ(16, crew("mail", 0).slots);
	CHECK_EQ(1, crew("sms", 0).n);
	beat("one", "2", "sms", 0); /* another process has other queues */
	CHECK_EQ(1, crew("mail", 0).n);
	CHECK_EQ(16, crew("sms", 0).slots);
	CHECK_EQ(0, workers_beat(w, &end, 0, &state, NULL));
	CHECK_EQ(0, crew("mail", 0).n);
	for (unsigned i = 0; i < 200; i++) { /* the oldest queues make room */
		(void)snprintf(queue, sizeof queue, "queue-%u", i);
		beat("one", "2", queue, 0);
	}
	CHECK_EQ(0, crew("sms", 0).n);
	CHECK_EQ(1, crew("queue-199", 0).n);
	CHECK_EQ(0, crew("queue-199", WORKERS_AGE + 1).n);
}
