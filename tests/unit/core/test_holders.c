#include "core/queue/holders.h"
#include "test.h"

#include <stdio.h>

static struct holders o;

static void
start(void)
{
	holders_init(&o, &(struct hash_key){ 1, 2 });
}

static void
end(void)
{
	holders_release(&o);
}

FIXTURE(start, end);

static uint32_t
holder_of(const char *name)
{
	uint32_t holder;

	CHECK_EQ(0, holders_open(&o, slice_of(name), &holder));
	return holder;
}

static bool
is(uint32_t holder, const char *name)
{
	return slice_eq(holders_text(&o, holder), slice_of(name));
}

TEST(a_name_is_stored_once_while_it_is_used)
{
	const uint32_t a = holder_of("a"), b = holder_of("b");

	CHECK(a != HOLDER_NONE && b != HOLDER_NONE && a != b);
	CHECK_EQ(a, holder_of("a"));
	CHECK_EQ(2u, o.all.used);
	CHECK(is(a, "a") && is(b, "b"));
	holders_use(&o, b);
	holders_drop(&o, b);
	CHECK(is(b, "b"));
	holders_drop(&o, b);
	holders_drop(&o, a);
	CHECK_EQ(1u, o.all.used);
	CHECK(is(a, "a"));
	holders_drop(&o, a);
	CHECK_EQ(0u, o.all.used);
	CHECK(is(holder_of("a"), "a"));
}

TEST(no_name_has_no_handle)
{
	CHECK_EQ(HOLDER_NONE, holder_of(""));
	holders_use(&o, HOLDER_NONE);
	holders_drop(&o, HOLDER_NONE);
	CHECK_EQ(0u, holders_text(&o, HOLDER_NONE).n);
	CHECK(!holders_share(&o, HOLDER_NONE));
	shared_text_unref(NULL);
}

TEST(a_long_name_is_cut)
{
	char name[300];

	memset(name, 'x', sizeof name);
	name[sizeof name - 1] = 0;
	CHECK_EQ(HOLDER_MAX, holders_text(&o, holder_of(name)).n);
}

TEST(when_there_are_too_many_the_rest_are_others)
{
	char name[16];
	uint32_t last = HOLDER_NONE;

	o.max = 100;
	for (int i = 0; i < 100; i++) {
		(void)snprintf(name, sizeof name, "n%d", i);
		last = holder_of(name);
	}
	const uint32_t other = holder_of("late");

	CHECK(is(other, HOLDERS_OTHER));
	CHECK_EQ(other, holder_of("later"));
	CHECK_EQ(last, holder_of("n99"));
	CHECK_EQ(101u, o.all.used);
	holders_drop(&o, last);
	holders_drop(&o, last);
	holders_drop(&o, other);
	holders_drop(&o, other);
	CHECK(is(holder_of("late"), "late"));
}

/* A row may be shown after its lease, and the engine, are gone. */
TEST(what_is_shared_lives_on)
{
	struct shared_text *name;

	const uint32_t a = holder_of("web-7:311");

	name = holders_share(&o, a);
	holders_drop(&o, a);
	holders_release(&o);
	CHECK_STR("web-7:311", name->p);
	shared_text_unref(name);
}

TORTURE(without_memory_there_is_no_handle)
{
	uint32_t holder;

	start();
	const int rc = holders_open(&o, SLICE("a"), &holder);

	CHECK(rc == 0 || rc == SLU_ENOMEM);
	CHECK_EQ(rc == 0, holder != HOLDER_NONE);
	holders_release(&o);
}
