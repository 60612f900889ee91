/*
 * A line whose store answers at once: cases that schedules of the simulator rarely reach.
 */
#include "line/line.h"
#include "test.h"

enum {
	OBJECTS = 32
};

static struct {
	char names[OBJECTS][LINE_NAME_MAX];
	struct buf objects[OBJECTS];
	bool hidden[OBJECTS]; /* not there before the third listing of spans */
	unsigned n, listings;
	struct line *line;
	uint64_t reads[OBJECTS]; /* put of each group that was read */
	uint64_t randoms;
	uint64_t from;       /* of line_conf.reads */
	uint64_t takes_from; /* this epoch alone; 0: any */
	bool opened;
	uint64_t confirmed;        /* the last group */
	uint64_t removed[OBJECTS]; /* groups, in order */
	unsigned n_removed;
	uint64_t restored_first, restored_n; /* of line_conf.restored */
	struct slu_err lost;
} world;

static uint64_t
draw(void *arg)
{
	(void)arg;
	return ++world.randoms;
}

static void
on_read(void *arg, const struct line_group *g, struct slice object)
{
	(void)arg;
	(void)object;
	world.reads[g->number] = g->mark.put;
}

static void
on_reads(void *arg, uint64_t from)
{
	(void)arg;
	world.from = from;
}

static void
on_opened(void *arg)
{
	(void)arg;
	world.opened = true;
}

static void
on_confirmed(void *arg, const struct line_known *group)
{
	(void)arg;
	world.confirmed = group->number;
}

static void
on_restored(void *arg, uint64_t first, uint64_t n)
{
	(void)arg;
	world.restored_first = first;
	world.restored_n = n;
}

static void
on_lost(void *arg, const struct slu_err *why)
{
	(void)arg;
	world.lost = *why;
}

static bool
may_take(void *arg, const struct line_group *newest)
{
	(void)arg;
	return !world.takes_from || newest->epoch == world.takes_from;
}

static void
renew(struct line_known known, uint64_t takes_from)
{
	const struct line_conf conf = {
		.shard = "s",
		.known = known,
		.may_take = may_take,
		.span_groups = 100,
		.span_bytes = 1 << 20,
		.loose_groups = 150,
		.retry = { .base = 1, .max = 1 },
		.random = draw,
		.reads = on_reads,
		.read = on_read,
		.opened = on_opened,
		.confirmed = on_confirmed,
		.restored = on_restored,
		.lost = on_lost,
	};

	world.takes_from = takes_from;
	line_free(world.line);
	CHECK_EQ(0, line_new(&world.line, &conf));
}

static void
before(void)
{
	world.randoms = 1000;
	renew((struct line_known){ 0 }, 0);
}

static void
after(void)
{
	line_free(world.line);
	for (unsigned i = 0; i < world.n; i++)
		buf_release(&world.objects[i]);
}

FIXTURE(before, after);

static struct buf *
add(enum line_kind kind, uint64_t number)
{
	struct buf *const b = &world.objects[world.n];

	CHECK(world.n < OBJECTS);
	line_name(world.names[world.n++], "s", kind, number);
	buf_init(b, 1 << 16);
	return b;
}

static bool
is_there(unsigned i)
{
	return !world.hidden[i] || world.listings >= 3;
}

/* Names come in order: every test adds its groups in order, and one span. */
static void
answer(const struct line_request *r)
{
	const char *names[OBJECTS];
	struct line_answer a = { .result = LINE_ABSENT, .names = names };
	const enum line_kind kind = strstr(r->name, "/span/") ? LINE_SPAN : LINE_GROUP;

	if (r->verb == LINE_LIST) {
		a.result = LINE_OK;
		world.listings += strstr(r->name, "/span/") != NULL;
	}
	for (unsigned i = 0; i < world.n; i++) {
		if (!is_there(i))
			continue;
		if (r->verb == LINE_LIST && strncmp(world.names[i], r->name, strlen(r->name)) == 0 &&
		    strcmp(world.names[i], r->after) > 0) {
			names[a.n_names++] = world.names[i];
		} else if (strcmp(world.names[i], r->name) == 0) {
			a.result = r->verb == LINE_PUT ? LINE_EXISTS : LINE_OK;
			a.object = buf_slice(&world.objects[i]);
		}
	}
	if (r->verb == LINE_PUT && a.result == LINE_ABSENT) {
		a.result = LINE_OK;
		buf_put(add(kind, line_number(r->name, "s", kind)), r->object.p, r->object.n);
	}
	if (r->verb == LINE_REMOVE)
		world.removed[world.n_removed++] = line_number(r->name, "s", kind);
	line_reply(world.line, r->slot, &a, 0);
}

static void
pump(void)
{
	struct line_request r;

	while (line_next(world.line, 0, &r))
		answer(&r);
}

static void
take(void)
{
	line_take(world.line);
	pump();
}

/* A group of the line: its put is its number. */
static struct line_mark
add_group(struct buf *out, uint64_t number, bool opening, struct line_mark mark_before)
{
	struct line_group g = {
		.opening = opening,
		.number = number,
		.epoch = 1,
		.mark = { .put = number },
		.before = mark_before,
		.begin = 1,
		.body = opening ? (struct slice){ 0 } : SLICE("body"),
	};

	line_group_encode(&g, out);
	return g.mark;
}

TEST(LINE_5_a_line_is_read_from_its_beginning_to_the_opening)
{
	struct line_mark mark = { 0 };

	for (uint64_t n = 1; n <= 5; n++)
		mark = add_group(add(LINE_GROUP, n), n, n == 1, mark);
	take();
	CHECK(world.opened);
	for (uint64_t n = 1; n <= 5; n++)
		CHECK_EQ(n, world.reads[n]);
	CHECK_EQ(6, line_facts(world.line).last);
	CHECK_EQ(2, line_facts(world.line).epoch);
	CHECK_EQ(2, line_facts(world.line).put_epoch);
}

TEST(LINE_5_a_hole_is_refused_by_its_number)
{
	struct line_mark mark = { 0 };
	struct buf unused;

	buf_init(&unused, 1 << 16);
	for (uint64_t n = 1; n <= 5; n++)
		mark = add_group(n == 3 ? &unused : add(LINE_GROUP, n), n, n == 1, mark);
	buf_release(&unused);
	take();
	CHECK(!world.opened);
	CHECK_EQ(SLU_ECORRUPT, world.lost.code);
	CHECK_STR("s: group 3 is missing", world.lost.text);
}

TEST(LINE_5_a_damaged_group_is_refused_by_its_number)
{
	struct line_mark mark = { 0 };

	for (uint64_t n = 1; n <= 5; n++)
		mark = add_group(add(LINE_GROUP, n), n, n == 1, mark);
	world.objects[2].p[LINE_GROUP_HEAD] ^= 1;
	take();
	CHECK_EQ(SLU_ECORRUPT, world.lost.code);
	CHECK_STR("s: group 3 is damaged", world.lost.text);
}

/* Group 4 was removed, and a node that had listed before put an opening under its name. The
 * span that holds the true group 4 appears while the groups are read. */
TEST(LINE_5_an_opening_under_a_removed_name_is_not_read)
{
	struct line_group false_fourth = { .opening = true, .number = 4, .epoch = 2, .mark = { .put = 99 }, .begin = 1 };
	struct line_mark mark = { 0 };
	uint64_t lengths[5];
	struct buf groups;

	buf_init(&groups, 1 << 16);
	for (uint64_t n = 1; n <= 5; n++) {
		const size_t from = groups.n;
		const struct line_mark mark_before = mark;

		mark = add_group(&groups, n, n == 1, mark_before);
		lengths[n - 1] = groups.n - from;
		if (n == 3)
			false_fourth.before = mark;
		if (n != 4)
			(void)add_group(add(LINE_GROUP, n), n, n == 1, mark_before);
		else
			line_group_encode(&false_fourth, add(LINE_GROUP, n));
	}
	world.hidden[world.n] = true;
	line_span_encode(add(LINE_SPAN, 1), 1, lengths, 5, buf_slice(&groups));
	buf_release(&groups);
	take();
	CHECK(world.opened);
	for (uint64_t n = 1; n <= 5; n++)
		CHECK_EQ(n, world.reads[n]);
}

/* Groups 1 to 5; a span holds 1 to `spanned`, and their groups are gone but for the opening.
 * Returns the mark of group `of`. */
static struct line_mark
add_line(uint32_t spanned, uint64_t of)
{
	struct line_mark mark = { 0 }, wanted = { 0 };
	struct buf groups;
	uint64_t lengths[8];

	buf_init(&groups, 1 << 16);
	for (uint64_t n = 1; n <= 5; n++) {
		const size_t at = groups.n;

		mark = add_group(&groups, n, n == 1, mark);
		lengths[n - 1] = groups.n - at;
		if (n > spanned || n == 1)
			buf_put(add(LINE_GROUP, n), groups.p + at, groups.n - at);
		if (n == spanned)
			line_span_encode(add(LINE_SPAN, 1), 1, lengths, spanned, buf_slice(&groups));
		wanted = n == of ? mark : wanted;
	}
	buf_release(&groups);
	return wanted;
}

/* Each span holds one group. The opening and the newest group are also loose. */
static void
add_spans(unsigned n)
{
	struct line_mark mark = { 0 };
	struct buf group;

	buf_init(&group, 1 << 16);
	for (uint64_t i = 1; i <= n; i++) {
		buf_clear(&group);
		mark = add_group(&group, i, i == 1, mark);
		if (i == 1 || i == n)
			buf_put(add(LINE_GROUP, i), group.p, group.n);
		line_span_encode(add(LINE_SPAN, i), i, &(uint64_t){ group.n }, 1, buf_slice(&group));
	}
	buf_release(&group);
}

TEST(LINE_5_spans_are_fetched_side_by_side_and_read_in_order)
{
	struct line_request held[8], r;
	unsigned n = 0, most = 0;

	add_spans(7);
	line_take(world.line);
	while (!world.opened && *world.lost.text == 0) {
		while (line_next(world.line, 0, &r)) {
			if (r.verb == LINE_GET && strstr(r.name, "/span/"))
				held[n++] = r;
			else
				answer(&r);
		}
		most = n > most ? n : most;
		if (n > 0)
			answer(&held[--n]); /* the last one first */
	}
	CHECK_STR("", world.lost.text);
	CHECK_EQ(4, most);
	for (uint64_t i = 1; i <= 7; i++)
		CHECK_EQ(i, world.reads[i]);
}

TEST(LINE_3_of_the_newest_span_only_the_head_is_fetched)
{
	struct line_request r;
	unsigned peeks = 0;

	add_spans(3);
	line_take(world.line);
	while (!world.opened && line_next(world.line, 0, &r)) {
		peeks += r.verb == LINE_GET && strstr(r.name, "/span/00000000000000000003") && r.max > 0;
		answer(&r);
	}
	CHECK(world.opened);
	CHECK_EQ(1, peeks);
}

/* The answer is cut in the middle of the head. */
TEST(LINE_3_a_span_with_a_large_head_is_fetched_whole)
{
	struct line_request r;

	add_spans(3);
	line_take(world.line);
	while (!world.opened && line_next(world.line, 0, &r)) {
		if (r.max > 0)
			line_reply(world.line, r.slot, &(struct line_answer){ .object = { world.objects[4].p, 30 } }, 0);
		else
			answer(&r);
	}
	CHECK(world.opened);
	for (uint64_t i = 1; i <= 3; i++)
		CHECK_EQ(i, world.reads[i]);
}

/* `known` is the last group that the caller has. */
static void
check_known(uint32_t spanned, uint64_t known)
{
	const struct line_mark mark = add_line(spanned, known);

	renew((struct line_known){ known, mark }, 0);
	take();
	CHECK(world.opened);
	CHECK_EQ(known + 1, world.from);
	for (uint64_t n = 1; n <= 5; n++)
		CHECK_EQ(n > known ? n : 0, world.reads[n]);
}

TEST(known_groups_are_not_read)
{
	check_known(0, 3);
}

TEST(known_groups_of_a_span_are_not_read)
{
	check_known(4, 2);
}

TEST(known_groups_behind_a_span_are_not_read)
{
	check_known(2, 4);
}

TEST(nothing_is_read_if_all_groups_are_known)
{
	check_known(0, 5);
}

TEST(a_known_group_with_another_mark_means_that_all_is_read)
{
	struct line_mark mark = add_line(2, 4);

	mark.put++;
	renew((struct line_known){ 4, mark }, 0);
	take();
	CHECK(world.opened);
	CHECK_EQ(1, world.from);
	for (uint64_t n = 1; n <= 5; n++)
		CHECK_EQ(n, world.reads[n]);
}

TEST(a_known_group_that_the_line_never_had_means_that_all_is_read)
{
	const struct line_mark mark = add_line(0, 5);

	renew((struct line_known){ 9, mark }, 0);
	take();
	CHECK(world.opened);
	CHECK_EQ(1, world.from);
	CHECK_EQ(1, world.reads[1]);
}

TEST(groups_that_no_span_holds_are_in_the_next_span_though_they_are_known)
{
	const struct line_mark mark = add_line(2, 4);
	struct line_request r;

	renew((struct line_known){ 4, mark }, 0);
	take();
	CHECK_EQ(2, line_facts(world.line).spanned);
	for (int i = 0; i < 120; i++) {
		CHECK(line_append(world.line, SLICE("x"), 0) > 0);
		while (line_next(world.line, 0, &r) && !strstr(r.name, "/span/"))
			line_reply(world.line, r.slot, &(struct line_answer){ .result = LINE_OK }, 0);
		if (r.verb == LINE_PUT && strstr(r.name, "/span/"))
			break;
	}
	CHECK_STR("s/span/00000000000000000003", r.name);
}

TEST(a_shard_that_may_not_be_taken_is_not_taken)
{
	(void)add_line(0, 5);
	renew((struct line_known){ 0 }, 7);
	take();
	CHECK(!world.opened);
	CHECK_EQ(SLU_EBUSY, world.lost.code);
	CHECK_STR("s: another node has taken the shard: life 00000000, epoch 1, group 5", world.lost.text);
}

TEST(a_shard_that_may_be_taken_is_taken)
{
	(void)add_line(0, 5);
	renew((struct line_known){ 0 }, 1);
	take();
	CHECK(world.opened);
}

/* Another node puts an opening after the listing. */
TEST(an_opening_that_is_known_to_have_failed_is_not_in_the_facts)
{
	const struct line_mark mark = add_line(0, 5);
	struct line_request r;

	line_take(world.line);
	while (line_next(world.line, 0, &r) && r.verb != LINE_PUT)
		answer(&r);
	CHECK_EQ(2, line_facts(world.line).put_epoch); /* it may be in the store */
	(void)add_group(add(LINE_GROUP, 6), 6, true, mark);
	answer(&r);
	pump();
	CHECK_EQ(SLU_EBUSY, world.lost.code);
	CHECK_EQ(0, line_facts(world.line).put_epoch);
}

/* Appends a group. Another node has its number. */
static void
append_taken(bool fails_first)
{
	struct line_request r;

	take();
	CHECK_EQ(2, line_append(world.line, SLICE("body"), 0));
	CHECK(line_next(world.line, 0, &r) && r.verb == LINE_PUT);
	(void)add_group(add(LINE_GROUP, 2), 2, true, line_facts(world.line).mark);
	if (fails_first) {
		line_reply(world.line, r.slot, &(struct line_answer){ .result = LINE_FAILED }, 0);
		CHECK(line_next(world.line, SLU_SEC, &r) && r.verb == LINE_PUT);
	}
	answer(&r);
	pump();
	CHECK_EQ(SLU_EBUSY, world.lost.code);
}

TEST(a_group_whose_number_was_taken_is_refuted)
{
	append_taken(false);
	CHECK(line_facts(world.line).refuted);
}

TEST(a_group_whose_first_put_had_no_answer_is_not_refuted)
{
	append_taken(true);
	CHECK(!line_facts(world.line).refuted);
}

/* Sends everything but spans. Returns whether a span is on its way, in *slot. */
static bool
serve_groups(unsigned *slot)
{
	struct line_request r = { 0 };
	bool span = false;

	while (line_next(world.line, 0, &r)) {
		if (r.verb == LINE_PUT && strstr(r.name, "/span/")) {
			*slot = r.slot;
			span = true;
		} else {
			line_reply(world.line, r.slot, &(struct line_answer){ .result = LINE_OK }, 0);
		}
	}
	return span;
}

TEST(LINE_6_a_few_groups_become_a_span_when_time_has_passed)
{
	unsigned slot = 0;

	take();
	CHECK(line_append(world.line, SLICE("a"), 0) > 0);
	CHECK(!serve_groups(&slot));
	line_span(world.line);
	CHECK(serve_groups(&slot));
	line_reply(world.line, slot, &(struct line_answer){ .result = LINE_OK }, 0);
	line_span(world.line); /* nothing is loose */
	CHECK(!serve_groups(&slot));
	CHECK(line_append(world.line, SLICE("b"), 0) > 0);
	CHECK(!serve_groups(&slot));
}

TEST(LINE_6_the_line_waits_for_a_span_if_too_many_groups_are_loose)
{
	unsigned slot = 0, n = 0;
	bool span = false;

	take();
	for (; line_is_ready(world.line); n++) {
		CHECK(n < 1000);
		CHECK(line_append(world.line, SLICE("a"), 0) > 0);
		span |= serve_groups(&slot);
	}
	CHECK_EQ(149, n); /* and the opening */
	CHECK(span);
	line_reply(world.line, slot, &(struct line_answer){ .result = LINE_OK }, 0);
	CHECK(line_is_ready(world.line));
}

TEST(LINE_6_a_span_has_at_most_twice_its_bytes)
{
	struct line_span span;
	struct line_request r = { 0 };
	char large[1 << 18] = { 0 };
	bool held = false;
	unsigned back = 0;

	take();
	for (int i = 0; i < 40; i++) { /* the span is on its way meanwhile */
		CHECK(line_append(world.line, (struct slice){ large, sizeof large }, 0) > 0);
		while (line_next(world.line, 0, &r)) {
			if (strstr(r.name, "/span/")) {
				back = r.slot;
				held = true;
				continue;
			}
			line_reply(world.line, r.slot, &(struct line_answer){ .result = LINE_OK }, 0);
		}
	}
	CHECK(held);
	line_reply(world.line, back, &(struct line_answer){ .result = LINE_OK }, 0);
	while (line_next(world.line, 0, &r) && !(r.verb == LINE_PUT && strstr(r.name, "/span/")))
		line_reply(world.line, r.slot, &(struct line_answer){ .result = LINE_OK }, 0);
	CHECK_EQ(LINE_PUT, r.verb);
	CHECK_EQ(0, line_span_decode(&span, r.object, NULL));
	CHECK(r.object.n <= 2 * (1 << 20) + 1000);
	CHECK(span.n >= 4);
}

/* ---- A store that went back ---- */

/* The shard is owned: an opening and two groups. */
static void
own_three_groups(void)
{
	take();
	for (unsigned i = 0; i < 2; i++) {
		CHECK(line_append(world.line, SLICE("x"), 0) > 0);
		pump();
	}
	CHECK(world.n == 3 && line_is_ready(world.line));
}

TEST(LINE_15_groups_that_the_store_lost_are_put_again_byte_for_byte)
{
	struct buf lost[2];

	own_three_groups();
	memcpy(lost, &world.objects[1], sizeof lost);
	world.n = 1;
	line_reopen(world.line);
	CHECK(!line_is_ready(world.line));
	pump();
	CHECK(line_is_ready(world.line));
	CHECK(world.restored_first == 2 && world.restored_n == 2);
	CHECK_EQ(4, line_facts(world.line).last); /* an opening (LINE-1) */
	for (unsigned i = 0; i < 2; i++) {
		CHECK(slice_eq(buf_slice(&lost[i]), buf_slice(&world.objects[1 + i])));
		buf_release(&lost[i]);
	}
}

TEST(LINE_15_a_store_that_did_not_go_back_gets_an_opening_only)
{
	own_three_groups();
	line_reopen(world.line);
	pump();
	CHECK(line_is_ready(world.line) && world.n == 4 && world.restored_n == 0);
}

/* Another node takes the shard, and writes span 6, while this one reads: so this one lists span 6. */
TEST(LINE_2_the_span_of_the_next_owner_is_not_taken_for_an_old_one)
{
	struct line_mark mark = { 0 };
	struct line_request r;
	bool absent = true;

	for (uint64_t i = 1; i <= 3; i++)
		mark = add_group(add(LINE_GROUP, i), i, i == 1, mark);
	line_take(world.line);
	while (line_next(world.line, 0, &r)) {
		if (absent && r.verb == LINE_GET && line_number(r.name, "s", LINE_GROUP) == 2) {
			absent = false;
			(void)add(LINE_SPAN, 6);
			line_reply(world.line, r.slot, &(struct line_answer){ .result = LINE_ABSENT }, 0);
		} else {
			answer(&r);
		}
	}
	CHECK(world.opened && !absent);
	line_span(world.line);
	pump();
	CHECK_EQ(SLU_EBUSY, world.lost.code);
}

/* ---- Copies of a node: LINE-1, LINE-2 ---- */

/* A copy of the owner has appended group 4, and the put fails because its connections are gone. */
static void
append_without_connections(void)
{
	struct line_request r;

	own_three_groups();
	CHECK_EQ(4, line_append(world.line, SLICE("x"), 0));
	CHECK(line_next(world.line, 0, &r) && r.verb == LINE_PUT);
	line_reply(world.line, r.slot, &(struct line_answer){ .result = LINE_FAILED }, 0);
	line_reopen(world.line);
}

/* Answers requests until the opening behind group 4 is in the store. */
static void
answer_until_opening(void)
{
	struct line_request r = { 0 };

	while (line_number(r.name, "s", LINE_GROUP) != 5) {
		CHECK(line_next(world.line, SLU_SEC, &r));
		answer(&r);
	}
	CHECK_EQ(LINE_PUT, r.verb);
}

TEST(LINE_1_the_group_on_its_way_is_confirmed_behind_the_opening)
{
	append_without_connections();
	answer_until_opening();
	CHECK_EQ(3, world.confirmed);
	pump();
	CHECK(line_is_ready(world.line));
	CHECK_EQ(4, world.confirmed);
}

/* The original had put other groups 4 and 5, and has removed them since: so both names were free. */
TEST(LINE_1_a_group_under_a_removed_name_is_not_confirmed)
{
	struct buf groups;
	uint64_t lengths[2];

	append_without_connections();
	answer_until_opening();
	buf_init(&groups, 1 << 16);
	(void)add_group(&groups, 4, false, (struct line_mark){ 0 });
	lengths[0] = groups.n;
	(void)add_group(&groups, 5, false, (struct line_mark){ 0 });
	lengths[1] = groups.n - lengths[0];
	line_span_encode(add(LINE_SPAN, 4), 4, lengths, 2, buf_slice(&groups));
	buf_release(&groups);
	pump();
	CHECK_EQ(SLU_EBUSY, world.lost.code);
	CHECK_EQ(3, world.confirmed);
}

TEST(LINE_2_openings_and_the_groups_before_them_stay)
{
	own_three_groups(); /* 1 is an opening */
	line_reopen(world.line);
	pump(); /* 4 is an opening */
	for (unsigned i = 0; i < 2; i++) {
		CHECK(line_append(world.line, SLICE("x"), 0) > 0);
		pump();
	}
	line_span(world.line);
	pump();
	CHECK_EQ(2, world.n_removed);
	CHECK(world.removed[0] == 2 && world.removed[1] == 5);
}

/* Another node left 1 to 4 in the store. The log begins with 5, so the next owner does not read them. */
TEST(LINE_2_also_those_from_before_the_beginning)
{
	struct line_group g = { .epoch = 1, .begin = 5, .body = SLICE("body") };
	struct line_mark mark = { 0 };
	struct buf groups;
	uint64_t lengths[2];

	for (uint64_t i = 1; i <= 4; i++)
		mark = add_group(add(LINE_GROUP, i), i, i == 1 || i == 4, mark);
	buf_init(&groups, 1 << 16);
	for (g.number = 5; g.number <= 6; g.number++) {
		const size_t had = groups.n;

		g.before = mark;
		g.mark.put = g.number;
		line_group_encode(&g, &groups);
		mark = g.mark;
		lengths[g.number - 5] = groups.n - had;
	}
	buf_put(add(LINE_GROUP, 6), groups.p + lengths[0], lengths[1]);
	line_span_encode(add(LINE_SPAN, 5), 5, lengths, 2, buf_slice(&groups));
	buf_release(&groups);
	take();
	CHECK(world.opened);
	CHECK_EQ(1, world.n_removed);
	CHECK_EQ(2, world.removed[0]);
}

/* 1 and then another group 2: shorter than what the node has, and as long. */
TEST(LINE_15_another_group_in_the_store_is_named)
{
	for (unsigned n = 2; n <= 3; n++) {
		struct line_mark mark = { 0 };

		renew((struct line_known){ 0 }, 0);
		own_three_groups();
		while (world.n > 1)
			buf_release(&world.objects[--world.n]);
		for (uint64_t i = 2; i <= n; i++)
			mark = add_group(add(LINE_GROUP, i), i, i == 2, mark);
		line_reopen(world.line);
		pump();
		CHECK_EQ(SLU_ECORRUPT, world.lost.code);
		CHECK_CONTAINS("the store went back, and another node has put group", world.lost.text);
		CHECK_CONTAINS("life 00000000, epoch 1; ours is life 00000000, epoch 1", world.lost.text);
		while (world.n > 0)
			buf_release(&world.objects[--world.n]);
	}
}
