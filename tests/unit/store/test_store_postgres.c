/*
 * POSTGRES-1 and LINE-5: the put of a group checks the chain. Part of the program that runs the cases of every store
 * on a real PostgreSQL server.
 */
#include "store_rig.h"

#include "line/object.h"

enum {
	GROUPS = 4
};

static struct line_group groups[GROUPS + 1]; /* by number */
static struct buf objects[GROUPS + 1];

static void
name_of(char out[LINE_NAME_MAX], uint64_t number)
{
	line_name(out, "3", LINE_GROUP, number);
}

/* The groups 1 to GROUPS of shard 3. */
static void
make_chain(void)
{
	for (uint64_t n = 1; n <= GROUPS; n++) {
		groups[n] = (struct line_group){
			.number = n,
			.epoch = 1,
			.opening = n == 1,
			.mark.put = 100 + n,
			.before = groups[n - 1].mark,
			.begin = 1,
			.body = n == 1 ? (struct slice){ 0 } : SLICE("body"),
		};
		buf_init(&objects[n], 1 << 16);
		line_group_encode(&groups[n], &objects[n]);
	}
}

static enum store_result
put_object(struct store_rig *r, uint64_t number, const struct buf *object)
{
	char name[LINE_NAME_MAX];

	name_of(name, number);
	return store_put(r->s, name, (struct slice){ object->p, object->n }, STORE_IF_ABSENT, &r->err);
}

static enum store_result
put_number(struct store_rig *r, uint64_t number)
{
	return put_object(r, number, &objects[number]);
}

/* Group n as another node would have put it: behind a group with another mark. */
static void
make_other(uint64_t n, struct buf *out)
{
	struct line_group g = groups[n];

	g.before.put++;
	buf_init(out, 1 << 16);
	line_group_encode(&g, out);
}

static void
put_span(struct store_rig *r, uint64_t first, uint32_t n)
{
	uint64_t lengths[GROUPS];
	struct buf bytes, span;
	char name[LINE_NAME_MAX];

	buf_init(&bytes, 1 << 16);
	buf_init(&span, 1 << 16);
	for (uint32_t i = 0; i < n; i++) {
		lengths[i] = objects[first + i].n;
		buf_put(&bytes, objects[first + i].p, objects[first + i].n);
	}
	line_span_encode(&span, first, lengths, n, buf_slice(&bytes));
	line_name(name, "3", LINE_SPAN, first);
	CHECK_EQ(STORE_OK, store_put(r->s, name, buf_slice(&span), STORE_IF_ABSENT, &r->err));
	buf_release(&bytes);
	buf_release(&span);
}

STORE_CASE(LINE_5_a_group_behind_a_hole_is_refused_by_name)
{
	make_chain();
	CHECK_EQ(STORE_OK, put_number(r, 1));
	CHECK_EQ(STORE_OK, put_number(r, 2));
	CHECK_EQ(STORE_FAILED, put_number(r, 4));
	CHECK_CONTAINS("3/group/00000000000000000003, which this group continues, is missing", r->err.text);
	CHECK_STR("3/group/00000000000000000001 3/group/00000000000000000002", store_rig_list(r, "3/", "", 10));
	CHECK_EQ(STORE_OK, put_number(r, 3));
	CHECK_EQ(STORE_OK, put_number(r, 4));
	CHECK_EQ(STORE_EXISTS, put_number(r, 4));
}

STORE_CASE(LINE_5_a_group_of_another_chain_is_refused_by_name)
{
	struct buf other;

	make_chain();
	make_other(3, &other);
	CHECK_EQ(STORE_OK, put_number(r, 1));
	CHECK_EQ(STORE_OK, put_number(r, 2));
	CHECK_EQ(STORE_FAILED, put_object(r, 3, &other));
	CHECK_CONTAINS("3/group/00000000000000000002 is another group than the one that this group continues", r->err.text);
	CHECK_EQ(STORE_OK, put_number(r, 3));
	CHECK_EQ(STORE_EXISTS, put_object(r, 3, &other));
	buf_release(&other);
}

STORE_CASE(LINE_5_a_group_may_continue_the_last_group_of_a_span)
{
	struct buf other;
	char name[LINE_NAME_MAX];

	make_chain();
	make_other(4, &other);
	for (uint64_t n = 1; n <= 3; n++)
		CHECK_EQ(STORE_OK, put_number(r, n));
	put_span(r, 1, 1);
	put_span(r, 2, 2);
	for (uint64_t n = 1; n <= 3; n++) {
		name_of(name, n);
		CHECK_EQ(STORE_OK, store_remove(r->s, name, &r->err));
	}
	CHECK_EQ(STORE_FAILED, put_object(r, 4, &other));
	CHECK_EQ(STORE_FAILED, put_number(r, 3)); /* it is in the span, and group 2 is not the last one there */
	CHECK_EQ(STORE_OK, put_number(r, 4));
	buf_release(&other);
}
