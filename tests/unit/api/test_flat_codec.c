#include "test.h"

#include "form/arena.h"
#include "api/flat/claim.h"
#include "api/flat/enqueue.h"
#include "api/flat/policy.h"
#include "api/flat/settle.h"
#include "api/flat/view.h"
#include "api/limits.h"
#include "api/split.h"
#include "form/values.h"
#include "base/json/json_out.h"

static struct arena memory;

/* What a writer of a value wrote, as text. */
#define WRITTEN(b, w, call)                \
	do {                               \
		buf_clear(&(b));           \
		json_out_init(&(w), &(b)); \
		call;                      \
		json_out_end(&(w));        \
	} while (0)

/* --- enqueue ------------------------------------------------------------------ */

static struct op_put
put_of(const char *item)
{
	struct form_puts e = { 0 };
	struct slu_err err;
	int64_t index;
	struct buf body;

	buf_init(&body, 1 << 20);
	buf_printf(&body, "[{\"namespace\":\"a\",\"topic\":\"b\"%s%s}]", *item ? "," : "", item);
	if (form_puts_decode(&e, &memory, buf_slice(&body), &index, &err))
		test_fail(__FILE__, __LINE__, "%s: %s", item, err.text);
	CHECK_EQ(1, e.n, item);
	return e.puts[0]; /* the body stays until the end of the test */
}

TEST(an_item_becomes_a_message)
{
	const struct op_put put =
		put_of("\"priority\":-7,\"payload\":\"aGk=\",\"key\":\"k\\u00e4\","
		       "\"deliver_after\":\"1970-01-01T00:00:02Z\",\"ttl\":\"1m\","
		       "\"idempotency_key\":\"i\",\"correlation_id\":\"c d\","
		       "\"attributes\":{ \"x\": 1 },\"max_attempts\":9,"
		       "\"keep_result\":\"1h\",\"content_type\":\"t/x\"");
	const struct message *const m = &put.m;

	CHECK(slice_eq(SLICE("a"), m->space) && slice_eq(SLICE("b"), m->queue));
	CHECK_EQ(-7, m->prio);
	CHECK(slice_eq(SLICE("hi"), m->payload));
	CHECK_EQ(2, m->payload_size);
	CHECK(slice_eq(SLICE("k\xc3\xa4"), m->key));
	CHECK_EQ(2 * SLU_SEC, m->due);
	CHECK_EQ(SLU_MIN, put.ttl);
	CHECK(slice_eq(SLICE("i"), m->idem));
	CHECK(slice_eq(SLICE("c d"), m->correlation));
	CHECK(slice_eq(SLICE("{ \"x\": 1 }"), m->attributes));
	CHECK_EQ(9, m->max_attempts);
	CHECK_EQ(SLU_HOUR, m->keep);
	CHECK(slice_eq(SLICE("t/x"), m->type));
	CHECK_EQ(0, m->id);
}

TEST(what_is_left_out_has_its_default)
{
	const struct op_put put = put_of("");

	CHECK_EQ(5, put.m.prio);
	CHECK_EQ(0, put.m.due + put.delay + put.ttl + put.m.keep);
	CHECK_EQ(0, put.m.payload.n + put.m.key.n + put.m.type.n + put.m.max_attempts);
}

TEST(times_are_seconds_or_durations)
{
	static const struct {
		const char *item;
		slu_time want;
	} cases[] = {
		{ "\"delay\":2", 2 * SLU_SEC },
		{ "\"delay\":0", 0 },
		{ "\"delay\":1.5", 1500 * SLU_MS },
		{ "\"delay\":\"2\"", 2 * SLU_SEC },
		{ "\"delay\":\"500ms\"", 500 * SLU_MS },
		{ "\"delay\":\"1h30m\"", 90 * SLU_MIN },
		{ "\"delay\":null", 0 },
	};

	EACH(i, cases)
		CHECK_EQ(cases[i].want, put_of(cases[i].item).delay, cases[i].item);
}

TEST(priorities_are_numbers_or_labels)
{
	static const struct {
		const char *item;
		int32_t want;
	} cases[] = {
		{ "\"priority\":0", 0 },
		{ "\"priority\":\"high\"", 0 },
		{ "\"priority\":\"normal\"", 5 },
		{ "\"priority\":\"low\"", 10 },
		{ "\"priority\":\"-3\"", -3 },
		{ "\"priority\":2147483647", INT32_MAX },
		{ "\"priority\":-2147483648", INT32_MIN },
	};

	EACH(i, cases)
		CHECK_EQ(cases[i].want, put_of(cases[i].item).m.prio, cases[i].item);
}

TEST(a_payload_has_three_spellings)
{
	static const struct {
		const char *item, *payload, *type;
	} cases[] = {
		{ "\"payload\":\"AAEC\"", "\0\1\2", "" },
		{ "\"text\":\"a\\nb\"", "a\nb", "text/plain; charset=utf-8" },
		{ "\"json\":{ \"a\": 1e3 }", "{ \"a\": 1e3 }", "application/json" },
		{ "\"json\":[],\"content_type\":\"x/y\"", "[]", "x/y" },
	};

	EACH(i, cases) {
		const struct op_put put = put_of(cases[i].item);
		const size_t n = i == 0 ? 3 : strlen(cases[i].payload);

		CHECK_EQ(n, put.m.payload.n, cases[i].item);
		CHECK_EQ(0, memcmp(cases[i].payload, put.m.payload.p, n), cases[i].item);
		CHECK(slice_eq(slice_of(cases[i].type), put.m.type));
	}
}

static void
check_refused(const char *label, const char *body, int64_t index, const char *says)
{
	struct form_puts e = { 0 };
	struct slu_err err = { 0 };
	int64_t at;

	CHECK_EQ(SLU_EINVAL, form_puts_decode(&e, &memory, slice_of(body), &at, &err), label);
	CHECK_EQ(index, at, label);
	CHECK_CONTAINS(says, err.text);
}

#define ITEM(more) "{\"namespace\":\"a\",\"topic\":\"b\"" more "}"

TEST(a_refusal_names_item_field_and_value)
{
	static const struct {
		const char *label, *body;
		int64_t index;
		const char *says;
	} cases[] = {
		{ "no JSON", "nonsense", -1, "expected" },
		{ "a number", "7", -1, "expected an array" },
		{ "an object that is wrong", ITEM(",\"delay\":-1"), -1, "delay" },
		{ "empty", "[]", -1, "at least one" },
		{ "behind it", "[" ITEM("") "] x", -1, "expected" },
		{ "value", "[" ITEM("") "," ITEM(",\"priority\":\"urgent\"") "]", 1,
		  "item 1: priority: invalid value \"urgent\"; expected high, normal, low or a whole "
		  "number of 32 bits (line 1, column " },
		{ "unknown", "[" ITEM(",\"prio\":1") "]", 0, "\"prio\"" },
		{ "missing", "[{\"namespace\":\"a\"}]", 0, "item 0: expected a member \"queue\" or \"topic\"" },
		{ "two queues", "[" ITEM(",\"queue\":\"c\"") "]", 0, "queue: invalid value \"c\"; expected the same value as topic" },
		{ "twice", "[" ITEM(",\"topic\":\"c\"") "]", 0, "once" },
		{ "twice, small", "[" ITEM(",\"priority\":1,\"priority\":1") "]", 0, "priority: expected each member once" },
		{ "twice by the second name", "[" ITEM(",\"queue\":\"b\",\"queue\":\"b\"") "]", 0, "queue: expected each member once" },
		{ "null name", "[{\"namespace\":null,\"topic\":\"b\"}]", 0, "namespace" },
		{ "bad base64", "[" ITEM(",\"payload\":\"a\"") "]", 0, "payload" },
		{ "two payloads", "[" ITEM(",\"json\":1,\"text\":\"\"") "]", 0, "one of" },
		{ "both times",
		  "[" ITEM(",\"delay\":1,\"deliver_after\":\"1970-01-01T00:00:02Z\"") "]", 0,
		  "not both" },
		{ "long delay", "[" ITEM(",\"delay\":\"4000d\"") "]", 0, "from 0s to" },
		{ "no ttl", "[" ITEM(",\"ttl\":0") "]", 0, "ttl" },
		{ "array as attributes", "[" ITEM(",\"attributes\":[]") "]", 0, "attributes" },
		{ "NUL in key", "[" ITEM(",\"key\":\"\\u0000\"") "]", 0, "key" },
	};

	EACH(i, cases)
		check_refused(cases[i].label, cases[i].body, cases[i].index, cases[i].says);
}

TEST(the_limit_of_items_is_kept)
{
	struct form_puts e = { 0 };
	struct slu_err err = { 0 };
	struct buf body;
	int64_t index;

	buf_init(&body, 1 << 20);
	for (int i = 0; i < API_ENQUEUE_MAX; i++)
		buf_printf(&body, "%s" ITEM(""), i ? "," : "[");
	buf_putc(&body, ']');
	CHECK_EQ(0, form_puts_decode(&e, &memory, buf_slice(&body), &index, &err), err.text);
	CHECK_EQ(API_ENQUEUE_MAX, e.n);
	body.n--;
	buf_puts(&body, "," ITEM("") "]");
	CHECK_EQ(SLU_EINVAL, form_puts_decode(&e, &memory, buf_slice(&body), &index, &err));
	CHECK_CONTAINS("10000", err.text);
	buf_release(&body);
}

TORTURE(decoding_survives_any_lack_of_memory)
{
	struct form_puts e = { 0 };
	struct arena own = { 0 };
	struct slu_err err;
	int64_t index;
	const int rc = form_puts_decode(
		&e, &own, SLICE("[" ITEM("") "," ITEM("") "," ITEM(",\"text\":\"x\"") "]"), &index,
		&err);

	CHECK(rc == 0 || rc == SLU_ENOMEM);
	arena_release(&own);
}

/* A store may hold what an older library let in. */
TEST(attributes_that_are_no_json_do_not_forge_members)
{
	const struct op_row row = { .id = 7, .state = MSG_READY };
	const struct message m = {
		.space = SLICE("default"),
		.queue = SLICE("q"),
		.attributes = SLICE("{},\"fencing_token\":9"),
	};
	struct json_out w;
	struct buf b;
	struct json r;

	buf_init(&b, 4096);
	json_out_init(&w, &b);
	json_out_object(&w, NULL);
	flat_view_message(&w, &row, &m, (struct slice){ 0 }, FLAT_NOT_SHOWN);
	json_out_close(&w);
	CHECK_CONTAINS("\"attributes\":\"{},\\\"fencing_token\\\":9\"", buf_str(&b));
	json_init(&r, buf_slice(&b), JSON_DEPTH);
	CHECK_EQ(0, json_end(&r, NULL));
	buf_release(&b);
}

TEST(ids_are_numbers_or_uuids_in_input_order)
{
	struct op_put puts[3] = { { .m.id = 4194305 }, { .m.id = 2 }, { .m.id = 3 } };
	const struct form_puts e = { .puts = puts, .n = 3 };
	const uint32_t place[] = { 2, 0, 1 };
	const bool ok[] = { true, true, false };
	struct json_out w;
	struct buf b;

	buf_init(&b, 4096);
	WRITTEN(b, w, { json_out_array(&w, NULL); flat_enqueue_ids(&e, NULL, FLAT_NUMBERS, NULL, &w);
			json_out_close(&w); });
	CHECK_STR("[4194305,2,3]", buf_str(&b));
	WRITTEN(b, w, { json_out_array(&w, NULL); flat_enqueue_ids(&e, place, FLAT_NUMBERS, ok, &w);
			json_out_close(&w); });
	CHECK_STR("[null,4194305,2]", buf_str(&b));
	WRITTEN(b, w, { json_out_array(&w, NULL); flat_enqueue_ids(&e, NULL, FLAT_UUIDS, NULL, &w);
			json_out_close(&w); });
	CHECK_CONTAINS("[\"018cc251-f401-7000-8010-000000000000\",", buf_str(&b));
	buf_release(&b);
}

/* --- dequeue ------------------------------------------------------------------ */

TEST(parameters_come_by_query_or_body)
{
	static const struct {
		const char *query, *body;
	} cases[] = {
		{ "namespace=A%2db&topic=c&limit=7&wait=1.5&lease=2m", "" },
		{ "", "{\"namespace\":\"a-B\",\"topic\":\"c\",\"limit\":7,\"wait\":\"1500ms\","
		      "\"lease\":120}" },
	};

	EACH(i, cases) {
		char room[512];
		struct slu_err err = { 0 };
		struct flat_claim q;

		CHECK_EQ(0, flat_claim_decode(&q, slice_of(cases[i].query), slice_of(cases[i].body), room, &err),
			 err.text);
		CHECK(slice_eq(SLICE("a-b"), q.namespace) && slice_eq(SLICE("c"), q.queue));
		CHECK_EQ(7, q.limit);
		CHECK_EQ(1500 * SLU_MS, q.wait);
		CHECK_EQ(2 * SLU_MIN, q.lease);
	}
}

TEST(bad_parameters_are_named)
{
	static const struct {
		const char *query, *body, *says;
	} cases[] = {
		{ "", "", "namespace: is required" },
		{ "namespace=a", "", "queue or topic: is required" },
		{ "namespace=a&topic=b&limit=0", "", "limit: invalid value \"0\"; expected a whole number from 1 to 1000" },
		{ "namespace=a&topic=b&limit=1001", "", "invalid value \"1001\"" },
		{ "namespace=a&topic=b&topic=c", "", "invalid parameter topic: given twice; expected once" },
		{ "namespace=a&topic=b&wiat=1", "", "invalid parameter \"wiat\"; did you mean wait? Expected one of namespace, queue, topic, limit, wait, lease" },
		{ "namespace=a&topic=%zz", "", "name=value" },
		{ "namespace=a&topic=b&wait=61m", "", "wait: invalid value \"61m\"; expected a time from 0s to 1h" },
		{ "namespace=a", "{}", "not in both" },
		{ "", "{\"namespace\":\"a\",\"topic\":\"b\",\"limit\":{}}", "string or a number" },
		{ "", "[]", "expected an object" },
	};

	EACH(i, cases) {
		char room[512];
		struct slu_err err = { 0 };
		struct flat_claim q;

		CHECK_EQ(SLU_EINVAL, flat_claim_decode(&q, slice_of(cases[i].query), slice_of(cases[i].body), room, &err),
			 cases[i].says);
		CHECK_CONTAINS(cases[i].says, err.text);
	}
}

TEST(a_claimed_message_is_shown_whole)
{
	const struct op_row row = { .id = 4194305, .token = 12, .until = 31 * SLU_SEC, .prio = 3, .attempts = 2, .failures = 1, .max_attempts = 5, .state = MSG_LEASED };
	const struct message m = { .accepted = SLU_SEC, .due = SLU_SEC, .space = SLICE("a"), .queue = SLICE("b"), .key = SLICE("k"), .correlation = SLICE("c"), .type = SLICE("t/x"), .attributes = SLICE("{\"x\":1}"), .payload = SLICE("hi") };
	struct flat_before before = { 0 };
	struct json_out w;
	struct buf b;

	buf_init(&b, 4096);
	WRITTEN(b, w, { json_out_object(&w, NULL); flat_view_claimed(&w, &row, &m, (struct slice){ 0 }, FLAT_BASE64, &before);
			json_out_close(&w); });
	CHECK_STR("{\"id\":4194305,\"uid\":\"018cc251-f401-7000-8010-000000000000\","
		  "\"receipt\":\"AQEBAEAAAAAAAAwAAAAAAAAAYWLejTgT\","
		  "\"payload\":\"aGk=\",\"lease_expires_at\":\"1970-01-01T00:00:31Z\","
		  "\"lease_id\":\"l-12\",\"fencing_token\":12,"
		  "\"namespace\":\"a\",\"topic\":\"b\",\"queue\":\"b\",\"priority\":3,\"attempts\":2,"
		  "\"failure_attempts\":1,\"max_attempts\":5,\"key\":\"k\","
		  "\"correlation_id\":\"c\",\"attributes\":{\"x\":1},\"content_type\":\"t/x\","
		  "\"enqueued_at\":\"1970-01-01T00:00:01Z\","
		  "\"created_at\":\"1970-01-01T00:00:01Z\","
		  "\"deliver_after\":\"1970-01-01T00:00:01Z\"}",
		  buf_str(&b));
	buf_release(&b);
}

/* Names of one length that differ, names that move a byte between the two, a name with an escape, a long one. */
TEST(messages_in_one_answer_have_their_own_names)
{
	static const char *const names[][2] = {
		{ "ab", "cd" },
		{ "ab", "cd" },
		{ "ab", "ce" },
		{ "ab", "ce" },
		{ "abc", "e" },
		{ "bb", "cd" },
		{ "a\"", "cd" },
		{ "a\"", "cd" },
		{ "ab", "c\n" },
		{ "ab", "c\n" },
		{ "ab", "cd" },
		{ "ab", "" },
		{ "ab", "" },
		{ "ab", "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd" },
		{ "ab", "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd" },
		{ "ab", "cd" },
	};
	const struct op_row row = { .id = 4194305, .token = 12, .state = MSG_LEASED };
	struct flat_before before = { 0 };
	struct json_out w, want;
	struct buf b, c;

	buf_init(&b, 16384);
	buf_init(&c, 16384);
	json_out_init(&w, &b);
	json_out_init(&want, &c);
	json_out_array(&w, NULL);
	json_out_array(&want, NULL);
	EACH(i, names) {
		const struct message m = { .space = slice_of(names[i][0]), .queue = slice_of(names[i][1]) };

		json_out_object(&w, NULL);
		json_out_object(&want, NULL);
		flat_view_claimed(&w, &row, &m, (struct slice){ 0 }, FLAT_BASE64, &before);
		flat_view_claimed(&want, &row, &m, (struct slice){ 0 }, FLAT_BASE64, NULL);
		json_out_close(&w);
		json_out_close(&want);
	}
	json_out_close(&w);
	json_out_close(&want);
	CHECK_STR(buf_str(&c), buf_str(&b));
	buf_release(&b);
	buf_release(&c);
}

/* Each message differs from the one before in one fact, and the one after it in none. */
TEST(messages_in_one_answer_have_their_own_facts)
{
	static const struct op_row plain = { .id = 4194305, .token = 12, .state = MSG_LEASED, .prio = 5, .attempts = 1, .max_attempts = 5 };
	static const struct message usual = { .space = SLICE("a"), .queue = SLICE("b"), .accepted = SLU_SEC, .due = SLU_SEC };
	struct op_row rows[6];
	struct message messages[14];
	struct flat_before before = { 0 };
	struct json_out w, want;
	struct buf b, c;

	for (size_t i = 0; i < COUNT(rows); i++)
		rows[i] = plain;
	rows[1].prio = -7;
	rows[2].attempts = 2;
	rows[3].failures = 1;
	rows[4].max_attempts = 6;
	for (size_t i = 0; i < COUNT(messages); i++)
		messages[i] = usual;
	messages[1].accepted = 2 * SLU_SEC;
	messages[2].due = 2 * SLU_SEC;
	messages[3].type = SLICE("t/x");
	messages[4].type = SLICE("t/y");
	messages[5].key = SLICE("k");
	messages[6].share = SLICE("s");
	messages[7].correlation = SLICE("c");
	messages[8].attributes = SLICE("{}");
	messages[9].rule = SLICE("r");
	messages[10].terms.batch = 7;
	messages[11].source = SLICE("q");
	messages[12].sent = 3 * SLU_SEC;
	messages[13].terms.unique = UNIQUE_DONE;
	buf_init(&b, 1 << 20);
	buf_init(&c, 1 << 20);
	json_out_init(&w, &b);
	json_out_init(&want, &c);
	json_out_array(&w, NULL);
	json_out_array(&want, NULL);
	for (size_t i = 0; i < COUNT(rows) * COUNT(messages) * 2; i++) {
		const struct op_row *const row = &rows[i / 2 % COUNT(rows)];
		const struct message *const m = &messages[i / 2 / COUNT(rows)];

		json_out_object(&w, NULL);
		json_out_object(&want, NULL);
		flat_view_claimed(&w, row, m, (struct slice){ 0 }, FLAT_BASE64, &before);
		flat_view_claimed(&want, row, m, (struct slice){ 0 }, FLAT_BASE64, NULL);
		json_out_close(&w);
		json_out_close(&want);
	}
	json_out_close(&w);
	json_out_close(&want);
	CHECK_STR(buf_str(&c), buf_str(&b));
	buf_release(&b);
	buf_release(&c);
}

TEST(every_state_has_a_name)
{
	for (unsigned i = MSG_READY; i < MSG_STATES; i++)
		CHECK_EQ(i, flat_view_state(slice_of(flat_view_states[i])));
	CHECK_STR("processing", flat_view_status(&(struct op_row){ .state = MSG_LEASED,
								   .flags = MSG_EXTENDED }));
	CHECK_EQ(MSG_NONE, flat_view_state(SLICE("processing")));
}

/* --- settle ------------------------------------------------------------------- */

static struct op_item
settle_of(enum op_verb verb, const char *more)
{
	struct flat_settle s = { .verb = verb };
	struct slu_err err;
	struct buf body;
	int64_t index;

	buf_init(&body, 4096);
	buf_printf(&body, "{\"id\":5,\"namespace\":\"A\",\"topic\":\"b\"%s}", more);
	if (flat_settle_decode(&s, &memory, buf_slice(&body), &index, &err))
		test_fail(__FILE__, __LINE__, "%s: %s", more, err.text);
	CHECK(!s.many && s.n == 1);
	return s.items[0];
}

TEST(a_settling_becomes_an_item)
{
	struct op_item item = settle_of(OP_ACK, ",\"result\":[1, 2]");

	CHECK(slice_eq(SLICE("a"), item.space) && slice_eq(SLICE("b"), item.queue));
	CHECK_EQ(5, item.id);
	CHECK(slice_eq(SLICE("[1, 2]"), item.text));
	item = settle_of(OP_NACK, ",\"error\":\"no\\n\",\"delay\":\"2s\",\"defer\":true");
	CHECK(slice_eq(SLICE("no\n"), item.text));
	CHECK_EQ(2 * SLU_SEC, item.time);
	CHECK(item.defer && !item.dead);
	CHECK_EQ(LEDGER_BY_POLICY, settle_of(OP_NACK, "").time);
	CHECK_EQ(0, settle_of(OP_NACK, ",\"delay\":0").time);
	CHECK(settle_of(OP_NACK, ",\"dead\":true").dead);
	CHECK_EQ(SLU_MIN, settle_of(OP_EXTEND, ",\"lease\":60").time);
	CHECK_EQ(0, settle_of(OP_EXTEND, "").time);
}

/* What decode makes of a body, in an arena of its own. */
static int
settle_body(const char *body, struct op_item *first, struct slu_err *err)
{
	struct flat_settle s = { .verb = OP_ACK };
	int64_t index;
	const int rc = flat_settle_decode(&s, &memory, slice_of(body), &index, err);

	if (!rc)
		*first = s.items[0];
	return rc;
}

TEST(a_receipt_says_all_that_settling_needs)
{
	struct slu_err err = { 0 };
	struct op_item item;

	CHECK_EQ(0, settle_body("{\"receipt\":\"AQEBAEAAAAAAAAwAAAAAAAAAYWLejTgT\",\"result\":1}", &item, &err),
		 err.text);
	CHECK(slice_eq(SLICE("a"), item.space) && slice_eq(SLICE("b"), item.queue));
	CHECK_EQ(4194305, item.id);
	CHECK_EQ(12, item.token);
	CHECK(slice_eq(SLICE("1"), item.text));
	CHECK(!item.rounded);
}

TEST(a_receipt_stands_alone_and_whole)
{
	static const struct {
		const char *body, *says;
	} cases[] = {
		{ "{\"receipt\":\"AQEBAEAAAAAAAAwAAAAAAAAAYWLejTgT\",\"id\":1}", "not both" },
		{ "{\"receipt\":\"AQEBAEAAAAAAAAwAAAAAAAAAYWLejTgT\",\"namespace\":\"a\"}", "not both" },
		{ "{\"receipt\":\"AQEBAEAAAAAAAAwAAAAAAAAAYWLejTgT\",\"lease_id\":\"l-12\"}", "not both" },
		{ "{\"receipt\":\"AQEBAEAAAAAAAAwAAAAAAAAAYWLejTg\"}", "invalid receipt: \"AQEBAEAA" },
		{ "{\"receipt\":\"AQEBAEAAAAAAAAwAAAAAAAAAYmLejTgT\"}", "invalid receipt" },
		{ "{\"receipt\":\"\"}", "invalid receipt" },
		{ "{\"receipt\":1}", "receipt: invalid value \"1\"; expected a string" },
		{ "{\"receipt\":null}", "expected a member \"receipt\" or \"id\"" },
		{ "{\"id\":1}", "expected a member \"namespace\"" },
		{ "{}", "expected a member \"receipt\" or \"id\"" },
	};

	EACH(i, cases) {
		struct slu_err err = { 0 };
		struct op_item item;

		CHECK_EQ(SLU_EINVAL, settle_body(cases[i].body, &item, &err), cases[i].body);
		CHECK_CONTAINS(cases[i].says, err.text);
	}
}

TEST(the_shortest_items_fit)
{
	struct flat_settle s = { .verb = OP_ACK };
	struct arena own = { 0 };
	struct slu_err err = { 0 };
	struct buf body;
	int64_t index;

	buf_init(&body, 1 << 16);
	for (int i = 0; i < API_SETTLE_MAX; i++)
		buf_printf(&body, "%s{\"id\":1,\"namespace\":\"a\"}", i ? "," : "[");
	buf_putc(&body, ']');
	CHECK_EQ(0, flat_settle_decode(&s, &own, buf_slice(&body), &index, &err), err.text);
	CHECK_EQ(API_SETTLE_MAX, s.n);
	CHECK_EQ(1, s.items[s.n - 1].id);
	buf_release(&body);
	arena_release(&own);
}

TEST(the_right_to_settle_is_lease_and_token)
{
	static const struct {
		const char *more;
		uint64_t want;
	} cases[] = {
		{ "", 0 },
		{ ",\"fencing_token\":7", 7 },
		{ ",\"lease_id\":\"l-7\"", 7 },
		{ ",\"lease_id\":\"l-7\",\"fencing_token\":7", 7 },
		{ ",\"lease_id\":\"l-7\",\"fencing_token\":8", VALUE_NO_LEASE },
		{ ",\"lease_id\":\"l-0\"", VALUE_NO_LEASE },
		{ ",\"lease_id\":\"7\"", VALUE_NO_LEASE },
		{ ",\"lease_id\":\"\"", VALUE_NO_LEASE },
		{ ",\"fencing_token\":0", VALUE_NO_LEASE },
		{ ",\"lease_id\":null", 0 },
	};

	EACH(i, cases)
		CHECK_EQ(cases[i].want, settle_of(OP_ACK, cases[i].more).token, cases[i].more);
}

TEST(settling_many_has_an_index)
{
	struct flat_settle s = { .verb = OP_ACK };
	struct slu_err err = { 0 };
	int64_t index;

	CHECK_EQ(0, flat_settle_decode(&s, &memory, SLICE("[{\"id\":\"1\",\"namespace\":\"a\"},"
							  "{\"id\":2,\"namespace\":\"a\",\"topic\":\"b\"}]"),
				       &index, &err),
		 err.text);
	CHECK(s.many && s.n == 2);
	CHECK_EQ(1, s.items[0].id);
	CHECK_EQ(0, s.items[0].queue.n);
	CHECK_EQ(SLU_EINVAL,
		 flat_settle_decode(&s, &memory,
				    SLICE("[{\"id\":1,\"namespace\":\"a\"},{\"id\":\"x\"}]"),
				    &index, &err));
	CHECK_EQ(1, index);
	CHECK_CONTAINS("item 1: id: invalid value \"x\"; expected an id: a number or a UUID", err.text);
	CHECK_EQ(SLU_EINVAL, flat_settle_decode(&s, &memory, SLICE("[]"), &index, &err));
	CHECK_EQ(-1, index);
}

TEST(an_ack_that_succeeds_has_the_members_of_an_outcome)
{
	static const uint64_t ids[] = { 1, 4194305, 1ull << 62 };
	struct json_out w;
	struct buf b, c;

	buf_init(&b, 4096);
	buf_init(&c, 4096);
	EACH(i, ids) {
		const struct op_item item = { .id = ids[i] };

		WRITTEN(b, w, flat_settle_outcome(OP_ACK, &item, 0, &w));
		WRITTEN(c, w, { json_out_object(&w, NULL); flat_settle_write(OP_ACK, &item, 0, "", &w);
				json_out_close(&w); });
		CHECK_STR(buf_str(&c), buf_str(&b));
	}
	buf_release(&b);
	buf_release(&c);
}

TEST(an_outcome_has_status_and_code)
{
	static const struct {
		enum op_verb verb;
		struct op_item item;
		int rc;
		const char *want;
	} cases[] = {
		{ OP_ACK, { .id = 1 }, 0, "\"status\":200}" },
		{ OP_ACK, { .id = 1, .rc = SLU_ELEASE }, 0, "\"status\":409,\"error\":\"lease_lost\",\"message\":" },
		{ OP_ACK, { .id = 1, .rc = SLU_ENOTFOUND }, 0, "\"status\":404,\"error\":\"not_found\",\"message\":" },
		{ OP_ACK, { .id = 1 }, SLU_EDOWN, "\"status\":503,\"error\":\"shard_failed\"" },
		{ OP_NACK, { .id = 1, .until = SLU_SEC }, 0, "\"dead\":false,\"deliver_after\":\"1970-01-01T00:00:01Z\"}" },
		{ OP_NACK, { .id = 1, .died = true }, 0, "\"status\":200,\"dead\":true}" },
		{ OP_EXTEND, { .id = 1, .until = SLU_SEC }, 0, "\"lease_expires_at\":\"1970-01-01T00:00:01Z\"}" },
	};
	struct json_out w;
	struct buf b;

	buf_init(&b, 4096);
	EACH(i, cases) {
		WRITTEN(b, w, flat_settle_outcome(cases[i].verb, &cases[i].item, cases[i].rc, &w));
		CHECK_CONTAINS("{\"id\":1,\"uid\":\"", buf_str(&b));
		CHECK_CONTAINS(cases[i].want, buf_str(&b));
	}
	buf_release(&b);
}

/* --- policy, split ------------------------------------------------------------ */

TEST(a_policy_is_written_as_it_is_read)
{
	struct policy p = policy_default, again = policy_default;
	struct slu_err err = { 0 };
	struct json_out w;
	struct buf b;

	CHECK_EQ(0, flat_policy_decode(&p, SLICE("{\"lease\":\"1m\",\"retry\":{\"kind\":\"fixed\","
						 "\"base\":3},\"max_depth\":4294967295,"
						 "\"paused\":true,\"ttl\":null}"),
				       &err),
		 err.text);
	CHECK_EQ(SLU_MIN, p.lease);
	CHECK_EQ(SLU_BACKOFF_FIXED, p.retry.kind);
	CHECK_EQ(3 * SLU_SEC, p.retry.base);
	CHECK_EQ(15 * SLU_MIN, p.retry.max, "what is not named stays");
	CHECK_EQ(UINT32_MAX, p.max_depth);
	CHECK(p.paused);
	buf_init(&b, 4096);
	WRITTEN(b, w, { json_out_object(&w, NULL); flat_policy_encode(&p, &w);
			json_out_close(&w); });
	CHECK_EQ(0, flat_policy_decode(&again, buf_slice(&b), &err), err.text);
	CHECK_EQ(0, memcmp(&p, &again, sizeof p));
	buf_release(&b);
}

TEST(items_are_put_in_order_of_their_shards)
{
	static const uint32_t shard[] = { 3, 1, 3, 3, 1 };
	static const uint32_t place[] = { 2, 0, 3, 4, 1 };
	struct split s;

	CHECK_EQ(0, split_init(&s, &memory, shard, COUNT(shard), 5));
	EACH(i, shard)
		CHECK_EQ(place[i], s.place[i]);
	CHECK_EQ(2, s.n_parts);
	CHECK(s.parts[0].shard == 1 && s.parts[0].begin == 0 && s.parts[0].end == 2);
	CHECK(s.parts[1].shard == 3 && s.parts[1].begin == 2 && s.parts[1].end == 5);
}
