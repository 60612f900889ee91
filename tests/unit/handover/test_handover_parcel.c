/* A batch of objects as bytes: what was written comes back, and a damaged parcel is refused. */
#include "handover/parcel.h"
#include "base/mem.h"
#include "test.h"

static struct handover_items two;
static struct buf bytes;

static void
add(const char *queue, const char *name, const char *tag, const char *options, const char *payload)
{
	struct handover_item *const item = handover_items_add(&two);

	item->space = mem_strdup("shop");
	item->queue = mem_strdup(queue);
	item->name = mem_strdup(name);
	item->tag = mem_strdup(tag);
	item->options = options ? mem_strdup(options) : NULL;
	item->payload = mem_strdup(payload);
	item->size = strlen(payload);
}

static void
before(void)
{
	add("mail", "a", "\"e1\" monday", NULL, "x\ty\n");
	add("print", "b/c", " ", "{}", "");
	buf_init(&bytes, 1 << 16);
	parcel_write(&bytes, "default", &two);
}

static void
after(void)
{
	handover_items_release(&two);
	buf_release(&bytes);
}

FIXTURE(before, after);

TEST(a_parcel_has_these_bytes)
{
	CHECK_STR("default\n"
		  "shop\tmail\ta\t\"e1\" monday\t0\t4\nx\ty\n"
		  "shop\tprint\tb/c\t \t2\t0\n{}",
		  buf_str(&bytes));
}

TEST(the_items_of_a_parcel_come_back)
{
	struct handover_items got = { 0 };

	CHECK_EQ(0, parcel_read(buf_slice(&bytes), 7, &got, NULL));
	CHECK_EQ(2, got.n);
	for (unsigned i = 0; i < got.n; i++) {
		CHECK_STR(two.p[i].space, got.p[i].space);
		CHECK_STR(two.p[i].queue, got.p[i].queue);
		CHECK_STR(two.p[i].name, got.p[i].name);
		CHECK_STR(two.p[i].tag, got.p[i].tag);
		CHECK_STR(two.p[i].payload, got.p[i].payload);
		CHECK_EQ(two.p[i].size, got.p[i].size);
		CHECK_EQ(7, got.p[i].batch);
		CHECK_STR("default", got.p[i].shard);
	}
	CHECK(!got.p[0].options);
	CHECK_STR("{}", got.p[1].options);
	handover_items_release(&got);
}

TEST(a_parcel_without_bytes_has_no_items)
{
	struct handover_items got = { 0 };

	CHECK_EQ(0, parcel_read((struct slice){ 0 }, 7, &got, NULL));
	CHECK_EQ(0, got.n);
}

/* Any prefix is whole items, or refused. */
TEST(a_parcel_that_was_cut_is_refused)
{
	for (size_t n = 0; n < bytes.n; n++) {
		char *const cut = mem_alloc(n + 1); /* of its own size, for the address sanitizer */
		struct handover_items got = { 0 };
		int rc;

		memcpy(cut, bytes.p, n);
		rc = parcel_read((struct slice){ cut, n }, 7, &got, NULL);
		CHECK(rc == SLU_ECORRUPT || got.n < 2);
		handover_items_release(&got);
		mem_free(cut);
	}
}
