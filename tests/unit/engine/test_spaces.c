#include "test.h"

#include "base/mem.h"
#include "engine/spaces.h"

#include <sluice/err.h>

#include <stdio.h>

static void
limit(struct spaces *s, uint64_t messages, const char *name, uint64_t own)
{
	struct space_quota *rows = mem_array(1, sizeof *rows);

	CHECK(rows != NULL);
	snprintf(rows->name, sizeof rows->name, "%s", name);
	rows->messages = own;
	rows->has_messages = true;
	spaces_limit(s, &(struct space_quotas){ .messages = messages, .bytes = 7, .rows = rows, .n = 1 });
}

TEST(a_namespace_has_one_row_for_all_callers_and_however_many_there_are)
{
	struct spaces *s;
	struct space_use *first;
	char name[16];

	CHECK_EQ(0, spaces_new(&s, NULL));
	first = spaces_get(s, SLICE("shop"));
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "n%d", i);
		CHECK(spaces_get(s, slice_of(name)) != first);
	}
	CHECK(spaces_get(s, SLICE("shop")) == first);
	CHECK_EQ(0, first->messages);
	spaces_free(s);
}

TEST(limits_hold_for_namespaces_that_are_there_and_for_later_ones)
{
	struct spaces *s;
	struct space_use *shop, *other;

	CHECK_EQ(0, spaces_new(&s, NULL));
	shop = spaces_get(s, SLICE("shop"));
	CHECK_EQ(0, shop->max_messages);
	limit(s, 10, "shop", 5);
	other = spaces_get(s, SLICE("other"));
	CHECK_EQ(5, shop->max_messages);
	CHECK_EQ(7, shop->max_bytes);
	CHECK_EQ(10, other->max_messages);
	limit(s, 0, "other", 3);
	CHECK_EQ(0, shop->max_messages);
	CHECK_EQ(3, other->max_messages);
	spaces_free(s);
}

TORTURE(namespaces_without_memory_have_no_row)
{
	struct spaces *s;
	char name[16];

	if (spaces_new(&s, NULL))
		return;
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof name, "n%d", i);
		if (spaces_get(s, slice_of(name)))
			CHECK(spaces_get(s, slice_of(name)) == spaces_get(s, slice_of(name)));
	}
	spaces_free(s);
}
