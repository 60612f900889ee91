#include "test.h"

#include "api/queue/known.h"
#include "api/sqs/digest.h"
#include "api/sqs/message.h"

/* --- sums ------------------------------------------------------------------------- */

/* The same as the SDKs of AWS compute. */
TEST(the_sum_of_attributes_is_that_of_the_sdks)
{
	struct sqs_attribute all[] = {
		{ .name = SLICE("customNumberTypeAttrib"), .type = SLICE("Number.float"), .text = SLICE("4563442423554324324264524243.32543234"), .has_text = true },
		{ .name = SLICE("attribName1"), .type = SLICE("String"), .text = SLICE("attribValue 1"), .has_text = true },
		{ .name = SLICE("binaryAttribute"), .type = SLICE("Binary"), .bytes = SLICE("Hello binary world!"), .has_bytes = true },
	};
	char sum[SQS_MD5];

	CHECK_STR("9fe1b90bbd9965bdf77bac517c7d2495", sqs_md5_attributes(all, 1, sum));
	CHECK_STR("19e27d4e946b072f3f58da80d94fd778", sqs_md5_attributes(all + 1, 1, sum));
	CHECK_STR("31a92b15d92f8db860eda32aceb656c3", sqs_md5_attributes(all + 2, 1, sum));
	CHECK_STR("c932db14a896c663f83c260297d594ff", sqs_md5_attributes(all, 3, sum));
	CHECK_STR("d41d8cd98f00b204e9800998ecf8427e", sqs_md5((struct slice){ 0 }, sum));
}

/* --- requests --------------------------------------------------------------------- */

static struct arena arena;
static struct sqs_request q;
static struct slu_err err;

static int
json(const char *text)
{
	return sqs_request_json(&q, &arena, slice_of(text), &err);
}

static int
form(const char *text)
{
	return sqs_request_form(&q, &arena, slice_of(text), &err);
}

static void
check_batch(void)
{
	CHECK_EQ(2, q.n_entries);
	CHECK(q.batch);
	CHECK(slice_eq(SLICE("http://h/a/q"), q.queue_url));
	CHECK(slice_eq(SLICE("one"), q.entries[0].id));
	CHECK(slice_eq(SLICE("a b"), q.entries[0].body));
	CHECK_EQ(5, q.entries[0].delay);
	CHECK_EQ(SQS_NOT_GIVEN, q.entries[1].delay);
	CHECK_EQ(1, q.entries[1].attributes.n);
	CHECK(slice_eq(SLICE("n"), q.entries[1].attributes.items[0].name));
	CHECK(slice_eq(SLICE("Number"), q.entries[1].attributes.items[0].type));
	CHECK(slice_eq(SLICE("7"), q.entries[1].attributes.items[0].text));
}

TEST(both_protocols_read_the_same_request)
{
	CHECK_EQ(0, json("{\"QueueUrl\":\"http:\\/\\/h/a/q\",\"Entries\":[{\"Id\":\"one\",\"MessageBody\":\"a b\","
			 "\"DelaySeconds\":5,\"Unknown\":[{}]},{\"Id\":\"two\",\"MessageBody\":\"c\",\"MessageAttributes\":"
			 "{\"n\":{\"DataType\":\"Number\",\"StringValue\":\"7\"}}}],\"Other\":{\"x\":1}}"));
	check_batch();
	CHECK_EQ(0, form("Action=SendMessageBatch&QueueUrl=http%3A%2F%2Fh%2Fa%2Fq&SendMessageBatchRequestEntry.2.Id=two"
			 "&SendMessageBatchRequestEntry.2.MessageBody=c&SendMessageBatchRequestEntry.1.Id=one"
			 "&SendMessageBatchRequestEntry.1.MessageBody=a+b&SendMessageBatchRequestEntry.1.DelaySeconds=5"
			 "&SendMessageBatchRequestEntry.2.MessageAttribute.1.Name=n"
			 "&SendMessageBatchRequestEntry.2.MessageAttribute.1.Value.DataType=Number"
			 "&SendMessageBatchRequestEntry.2.MessageAttribute.1.Value.StringValue=7&Unknown.1.x=y"));
	check_batch();
	CHECK(slice_eq(SLICE("SendMessageBatch"), q.action));
	arena_release(&arena);
}

TEST(lists_and_maps_are_bounded)
{
	static const char *const bad[] = {
		"Attribute.65.Name=x",
		"Attribute.0.Name=x",
		"Attribute.Name=x",
		"MessageAttribute.11.Name=x",
		"SendMessageBatchRequestEntry.12.Id=x",
		"SendMessageBatchRequestEntry.x.Id=x",
		"DelaySeconds=99999999999",
	};

	EACH(i, bad)
		CHECK_EQ(SLU_EINVAL, form(bad[i]), bad[i]);
	CHECK_EQ(SLU_EINVAL, json("{\"Entries\":[{},{},{},{},{},{},{},{},{},{},{},{}]}"));
	CHECK_EQ(SLU_EINVAL, json("{\"DelaySeconds\":\"x\"}"));
	CHECK_EQ(0, json("{\"DelaySeconds\":\"7\",\"MessageGroupId\":null}"));
	CHECK_EQ(7, q.entries[0].delay);
	CHECK(!q.entries[0].has_group);
	arena_release(&arena);
}

TEST(a_text_of_sqs_has_no_characters_that_xml_lacks)
{
	static const struct {
		const char *text;
		bool want;
	} cases[] = {
		{ "", true },
		{ "a\tb\r\n", true },
		{ "\x1f", false },
		{ "\xc3\xa9", true },
		{ "\xc3", false },
		{ "\xef\xbf\xbd", true },  /* U+FFFD */
		{ "\xef\xbf\xbe", false }, /* U+FFFE */
		{ "\xef\xbf\xbf", false },
		{ "\xed\xa0\x80", false }, /* a surrogate */
		{ "\xf0\x9f\x98\x80", true },
	};

	EACH(i, cases)
		CHECK_EQ(cases[i].want, sqs_message_is_text(slice_of(cases[i].text)), cases[i].text);
}

/* --- what is known of queues ------------------------------------------------------ */

TEST(a_thread_knows_a_queue_until_it_is_old_or_changed)
{
	const struct slice a = SLICE("a"), q1 = SLICE("q1"), q2 = SLICE("q2");
	struct known *k;
	int got = 0;

	CHECK_EQ(0, known_new(&k, 2));
	known_put(k, 0, a, q1, 1000, known_changes(k), &(int){ 7 }, sizeof(int));
	CHECK(known_find(k, 0, a, q1, 1000 + KNOWN_AGE - 1, &got, sizeof got));
	CHECK_EQ(7, got);
	CHECK(!known_find(k, 0, a, q1, 1000 + KNOWN_AGE, &got, sizeof got));
	CHECK(!known_find(k, 1, a, q1, 1000, &got, sizeof got));
	CHECK(!known_find(k, 0, a, q2, 1000, &got, sizeof got));
	known_changed(k);
	CHECK(!known_find(k, 0, a, q1, 1000, &got, sizeof got));
	known_put(k, 0, a, q1, 1000, known_changes(k) - 1, &(int){ 8 }, sizeof(int)); /* asked before the change */
	CHECK(!known_find(k, 0, a, q1, 1000, &got, sizeof got));
	known_free(k);
}
