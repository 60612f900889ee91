/*
 * The objects of a store as docs/store-format.md shows them: names and bytes. They never change: a
 * change is a new format (LINE-16), and a program goes on reading the old one.
 */
#include "test.h"

#include "line/object.h"
#include "members/beat.h"
#include "members/settings.h"
#include "mirror/body.h"

static const uint8_t life[LINE_LIFE] = "life of a node.";

static const char *
dump(struct slice bytes)
{
	return test_dump(bytes.p, 0, bytes.n);
}

static const char *
document(void)
{
	return test_document("store-format.md");
}

TEST(names_are_as_in_the_document)
{
	char group[LINE_NAME_MAX], span[LINE_NAME_MAX], node[LINE_NAME_MAX], settings[LINE_NAME_MAX];
	const char *const text = document();

	line_name(group, "3", LINE_GROUP, 7);
	line_name(span, "3", LINE_SPAN, 1);
	beat_name(node, life);
	settings_name(settings, 1);
	CHECK_CONTAINS(group, text);
	CHECK_CONTAINS(span, text);
	CHECK_CONTAINS(node, text);
	CHECK_CONTAINS(settings, text);
}

TEST(settings_are_as_in_the_document)
{
	struct settings s = { .version = 1, .format = 1, .shards = 16 };
	char object[SETTINGS_SIZE];

	memcpy(s.uuid, "uuid of a store.", sizeof s.uuid);
	memcpy(s.secret, "a secret of 32 bytes for nodes..", sizeof s.secret);
	settings_encode(&s, object);
	CHECK_CONTAINS(dump((struct slice){ object, sizeof object }), document());
}

TEST(a_node_is_that_of_the_document)
{
	struct beat beat = {
		.number = 41,
		.writes = 1,
		.reads = 1,
		.name = SLICE("host-0badcafe"),
		.address = SLICE("http://10.0.0.1:7171"),
		.version = SLICE("0.2.0"),
		.n_shards = 1,
	};
	struct buf shards, out;

	memcpy(beat.life, life, sizeof beat.life);
	buf_init(&shards, 1024);
	buf_init(&out, 1024);
	beat_shard_put(&shards, &(struct beat_shard){ .number = 3, .epoch = 2 });
	beat.shards = buf_slice(&shards);
	beat_encode(&beat, &out);
	CHECK_CONTAINS(dump(buf_slice(&out)), document());
	buf_release(&shards);
	buf_release(&out);
}

/* Appends an opening, then a group with a body of two pieces. */
static void
put_groups(struct buf *groups, uint64_t lengths[static 2])
{
	struct line_group first = {
		.opening = true, .number = 1, .epoch = 1, .mark.put = 0x1122334455667788, .begin = 1, .time = 1700000000 * SLU_SEC
	};
	struct line_group second = first;
	struct buf text;
	struct body body;

	memcpy(first.life, life, sizeof first.life);
	line_group_encode(&first, groups);
	lengths[0] = groups->n;
	body_init(&body);
	buf_init(&text, 1024);
	body_add(&body, &(struct body_piece){ 1, 64, SLICE("hello") });
	body_add(&body, &(struct body_piece){ 1, 72, SLICE("world") });
	CHECK_EQ(0, body_encode(&body, &text));
	memcpy(second.life, life, sizeof second.life);
	second.opening = false;
	second.number = 2;
	second.before = first.mark;
	second.mark.put = 0x99aabbccddeeff00;
	second.body = buf_slice(&text);
	line_group_encode(&second, groups);
	lengths[1] = groups->n - lengths[0];
	body_release(&body);
	buf_release(&text);
}

TEST(groups_and_spans_are_as_in_the_document)
{
	const char *const text = document();
	uint64_t lengths[2];
	struct buf groups, span;

	buf_init(&groups, 1024);
	buf_init(&span, 1024);
	put_groups(&groups, lengths);
	CHECK_CONTAINS(dump((struct slice){ groups.p, lengths[0] }), text);
	CHECK_CONTAINS(dump((struct slice){ groups.p + lengths[0], lengths[1] }), text);
	line_span_encode(&span, 1, lengths, 2, buf_slice(&groups));
	CHECK_EQ(LINE_SPAN_HEAD + 16 + groups.n, span.n);
	CHECK_CONTAINS(dump((struct slice){ span.p, LINE_SPAN_HEAD + 16 }), text);
	buf_release(&groups);
	buf_release(&span);
}
