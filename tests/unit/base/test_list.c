#include "test.h"

#include "base/list.h"

#include <stdio.h>

struct waiter {
	char name;
	struct list node; /* not first, so that CONTAINER has work to do */
};

/* The names in order, there and back: "abc cba". */
static const char *
spell(struct list *head)
{
	static char text[64];
	size_t n = 0;

	LIST_EACH(i, head)
		text[n++] = CONTAINER(i, struct waiter, node)->name;
	text[n++] = ' ';
	for (struct list *i = head->prev; i != head; i = i->prev)
		text[n++] = CONTAINER(i, struct waiter, node)->name;
	text[n] = 0;
	return text;
}

static struct waiter a = { .name = 'a' }, b = { .name = 'b' }, c = { .name = 'c' };

static void
append_all(struct list *head)
{
	list_init(head);
	list_append(head, &a.node);
	list_append(head, &b.node);
	list_append(head, &c.node);
}

TEST(a_new_list_is_empty)
{
	struct list head;

	list_init(&head);
	CHECK(list_is_empty(&head));
	CHECK_STR(" ", spell(&head));
}

TEST(what_is_appended_comes_last)
{
	struct list head;

	append_all(&head);
	CHECK(!list_is_empty(&head));
	CHECK_STR("abc cba", spell(&head));
}

TEST(a_node_can_be_removed_from_anywhere)
{
	static const struct {
		struct waiter *gone;
		const char *rest;
	} cases[] = {
		{ &a, "bc cb" },
		{ &b, "ac ca" },
		{ &c, "ab ba" },
	};

	EACH(i, cases) {
		struct list head;

		append_all(&head);
		list_remove(&cases[i].gone->node);
		CHECK_STR(cases[i].rest, spell(&head));
		CHECK(list_is_empty(&cases[i].gone->node));
	}
}

TEST(removing_a_node_that_is_in_no_list_does_nothing)
{
	struct list head;

	append_all(&head);
	list_remove(&b.node);
	list_remove(&b.node);
	CHECK_STR("ac ca", spell(&head));
}

TEST(a_removed_node_can_join_another_list)
{
	struct list head, other;

	append_all(&head);
	list_init(&other);
	list_remove(&b.node);
	list_append(&other, &b.node);
	CHECK_STR("ac ca", spell(&head));
	CHECK_STR("b b", spell(&other));
}

TEST(a_list_can_be_taken_whole)
{
	struct list head, other;

	append_all(&head);
	list_init(&other);
	list_take(&head, &other);
	CHECK(list_is_empty(&head));
	CHECK_STR("abc cba", spell(&other));
	list_take(&head, &other);
	CHECK_STR("abc cba", spell(&other));
}

TEST(what_is_taken_comes_behind_what_is_there)
{
	struct list head, other;

	append_all(&head);
	list_init(&other);
	list_remove(&c.node);
	list_append(&other, &c.node);
	list_take(&head, &other);
	CHECK_STR("cab bac", spell(&other));
}

TEST(nodes_may_be_removed_while_walking_safely)
{
	struct list head;
	int seen = 0;

	append_all(&head);
	LIST_EACH_SAFE(n, &head) {
		seen++;
		list_remove(n);
	}
	CHECK_EQ(3, seen);
	CHECK(list_is_empty(&head));
}

TEST(walking_an_empty_list_does_nothing)
{
	struct list head;

	list_init(&head);
	LIST_EACH(n, &head)
		test_fail(__FILE__, __LINE__, "there is nothing here");
	LIST_EACH_SAFE(n, &head)
		test_fail(__FILE__, __LINE__, "nor here");
}
