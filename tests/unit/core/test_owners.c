#include "core/queue/owners.h"
#include "test.h"

#include <stdio.h>

static struct owners o;

static void
start(void)
{
	owners_init(&o, &(struct hash_key){ 1, 2 });
}

static void
end(void)
{
	owners_release(&o);
}

FIXTURE(start, end);

static uint32_t
owner_of(const char *name)
{
	uint32_t owner;

	CHECK_EQ(0, owners_open(&o, slice_of(name), &owner));
	return owner;
}

static bool
is(uint32_t owner, const char *name)
{
	return slice_eq(owners_text(&o, owner), slice_of(name));
}

TEST(a_name_is_stored_once_while_it_is_used)
{
	const uint32_t a = owner_of("a"), b = owner_of("b");

	CHECK(a != OWNER_NONE && b != OWNER_NONE && a != b);
	CHECK_EQ(a, owner_of("a"));
	CHECK_EQ(2u, o.all.used);
	CHECK(is(a, "a") && is(b, "b"));
	owners_use(&o, b);
	owners_drop(&o, b);
	CHECK(is(b, "b"));
	owners_drop(&o, b);
	owners_drop(&o, a);
	CHECK_EQ(1u, o.all.used);
	CHECK(is(a, "a"));
	owners_drop(&o, a);
	CHECK_EQ(0u, o.all.used);
	CHECK(is(owner_of("a"), "a"));
}

TEST(no_name_has_no_handle)
{
	CHECK_EQ(OWNER_NONE, owner_of(""));
	owners_use(&o, OWNER_NONE);
	owners_drop(&o, OWNER_NONE);
	CHECK_EQ(0u, owners_text(&o, OWNER_NONE).n);
	CHECK(!owners_share(&o, OWNER_NONE));
	shared_text_unref(NULL);
}

TEST(a_long_name_is_cut)
{
	char name[300];

	memset(name, 'x', sizeof name);
	name[sizeof name - 1] = 0;
	CHECK_EQ(OWNER_MAX, owners_text(&o, owner_of(name)).n);
}

TEST(when_there_are_too_many_the_rest_are_others)
{
	char name[16];
	uint32_t last = OWNER_NONE;

	o.max = 100;
	for (int i = 0; i < 100; i++) {
		(void)snprintf(name, sizeof name, "n%d", i);
		last = owner_of(name);
	}
	const uint32_t other = owner_of("late");

	CHECK(is(other, OWNERS_OTHER));
	CHECK_EQ(other, owner_of("later"));
	CHECK_EQ(last, owner_of("n99"));
	CHECK_EQ(101u, o.all.used);
	owners_drop(&o, last);
	owners_drop(&o, last);
	owners_drop(&o, other);
	owners_drop(&o, other);
	CHECK(is(owner_of("late"), "late"));
}

/* A row may be shown after its lease, and the engine, are gone. */
TEST(what_is_shared_lives_on)
{
	struct shared_text *name;

	const uint32_t a = owner_of("web-7:311");

	name = owners_share(&o, a);
	owners_drop(&o, a);
	owners_release(&o);
	CHECK_STR("web-7:311", name->p);
	shared_text_unref(name);
}

TORTURE(without_memory_there_is_no_handle)
{
	uint32_t owner;

	start();
	const int rc = owners_open(&o, SLICE("a"), &owner);

	CHECK(rc == 0 || rc == SLU_ENOMEM);
	CHECK_EQ(rc == 0, owner != OWNER_NONE);
	owners_release(&o);
}
