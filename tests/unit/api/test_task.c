#include "test.h"

#include "api/task/task.h"

static const char golden[] =
	"{\"version\":1,\"task\":\"318497266802130945\",\"action\":\"redrive\",\"queue\":\"orders\",\"state\":5,\"id\":0,"
	"\"text_error\":\"timeout\",\"group\":\"8c1f3a90bc17e2d4\",\"older_than\":60000000000,\"newer_than\":0,\"to\":\"slow\","
	"\"to_source\":false,\"priority\":0,\"rate\":100,\"stop_if_failing\":20,\"dry_run\":false,\"by\":\"alice\","
	"\"created\":1763424000000000000,\"phase\":\"running\",\"cancel\":false,\"before\":1763424000000000001,\"ended\":0,"
	"\"total\":9000,\"looked\":500,\"matched\":90,\"done\":89,\"refused\":1,\"failures\":2,\"error\":\"no room\"}";

static const struct task whole = {
	.id = 318497266802130945,
	.action = TASK_REDRIVE,
	.queue = SLICE("orders"),
	.state = MSG_DEAD,
	.filter = { .error = SLICE("timeout"), .group = SLICE("8c1f3a90bc17e2d4"), .older_than = SLU_MIN },
	.to = SLICE("slow"),
	.rate = 100,
	.stop_if_failing = 20,
	.by = SLICE("alice"),
	.created = 1763424000 * SLU_SEC,
	.before = 1763424000 * SLU_SEC + 1,
	.total = 9000,
	.looked = 500,
	.matched = 90,
	.done = 89,
	.refused = 1,
	.failures = 2,
	.error = "no room",
};

static char room[2048];

static int
decode(const char *text, struct task *out)
{
	return task_decode(slice_of(text), room, out, NULL);
}

TEST(a_task_is_stored_as_these_bytes)
{
	struct buf out;

	buf_init(&out, 4096);
	task_encode(&whole, &out);
	CHECK(slice_eq(SLICE(golden), buf_slice(&out)));
	buf_release(&out);
}

TEST(a_stored_task_is_read_back)
{
	struct task t;

	CHECK_EQ(0, decode(golden, &t));
	CHECK_EQ(whole.id, t.id);
	CHECK(slice_eq(whole.queue, t.queue) && slice_eq(whole.to, t.to) && slice_eq(whole.by, t.by));
	CHECK(slice_eq(whole.filter.error, t.filter.error) && slice_eq(whole.filter.group, t.filter.group));
	CHECK_EQ(whole.filter.older_than, t.filter.older_than);
	CHECK_EQ(MSG_DEAD, t.state);
	CHECK_EQ(whole.before, t.before);
	CHECK_EQ(89, t.done);
	CHECK_STR("no room", t.error);
}

TEST(a_task_with_moments_is_read_back)
{
	struct task t = whole, back;
	struct buf out;

	t.action = TASK_DELAY;
	t.state = MSG_NONE;
	t.until = 1763424000 * SLU_SEC + 7;
	t.start = 1763424000 * SLU_SEC + 8;
	buf_init(&out, 4096);
	task_encode(&t, &out);
	CHECK_EQ(0, task_decode(buf_slice(&out), room, &back, NULL));
	CHECK_EQ(TASK_DELAY, back.action);
	CHECK_EQ(t.until, back.until);
	CHECK_EQ(t.start, back.start);
	buf_release(&out);
}

/* A server that does not know the conditions must not run the task. */
TEST(a_task_with_conditions_of_version_2_says_so)
{
	struct task t = whole, back;
	struct buf out;

	t.filter.kind = SLICE("resize");
	t.filter.body = SLICE("user.id=42");
	t.filter.attempts_over = SLICE("3");
	buf_init(&out, 4096);
	task_encode(&t, &out);
	CHECK(memmem(out.p, out.n, "\"version\":2", 11) != NULL);
	CHECK_EQ(0, task_decode(buf_slice(&out), room, &back, NULL));
	CHECK(slice_eq(t.filter.kind, back.filter.kind) && slice_eq(t.filter.body, back.filter.body));
	CHECK(slice_eq(t.filter.attempts_over, back.filter.attempts_over) && back.filter.priority_min.n == 0);
	buf_release(&out);
}

TEST(a_malformed_task_is_refused)
{
	static const struct {
		const char *from, *to;
	} cases[] = {
		{ "\"version\":1", "\"version\":3" },
		{ "\"version\":1", "\"version\":0" },
		{ "\"redrive\"", "\"explode\"" },
		{ "\"running\"", "\"sleeping\"" },
		{ "\"318497266802130945\"", "\"0\"" },
		{ "\"state\":5", "\"state\":7" },
		{ "\"queue\":\"orders\",", "" },
		{ "\"rate\":100", "\"rate\":-1" },
	};
	char text[sizeof golden + 64];
	struct task t;

	EACH(i, cases) {
		const char *const at = strstr(golden, cases[i].from);

		(void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - golden), golden, cases[i].to, at + strlen(cases[i].from));
		CHECK_EQ(SLU_ECORRUPT, decode(text, &t), cases[i].from);
	}
}

TEST(an_error_of_a_task_is_ASCII_and_fits)
{
	struct task t = whole;
	char text[2 * TASK_ERROR];

	memset(text, 'x', sizeof text);
	text[sizeof text - 1] = '\0';
	text[1] = '\xc3';
	task_set_error(&t, text);
	CHECK_EQ(TASK_ERROR - 1, strlen(t.error));
	CHECK_EQ('?', t.error[1]);
}

TEST(the_message_of_a_task_has_an_id_of_its_own)
{
	CHECK(task_message_id(SLICE("a"), 1) != task_message_id(SLICE("a"), 2));
	CHECK(task_message_id(SLICE("a"), 1) != task_message_id(SLICE("b"), 1));
	CHECK(task_message_id(SLICE("a"), 1) != schedule_id(SLICE("a"), SLICE("1")));
	CHECK_EQ(0, task_message_id(SLICE("a"), 1) & 1);
}
