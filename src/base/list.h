/*
 * list.h - an intrusive doubly linked ring.
 *
 *         struct waiter { struct list node; ... };
 *         struct list waiters;            the head is a node of its own
 *
 *         list_init(&waiters);
 *         list_append(&waiters, &w->node);
 *         LIST_EACH(n, &waiters)
 *                 wake(CONTAINER(n, struct waiter, node));
 *
 * A node is in one list or, after list_init or list_remove, in none.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next, *prev;
};

#define CONTAINER(ptr, type, member) \
	((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define LIST_EACH(n, head) \
	for (struct list *n = (head)->next; n != (head); n = n->next)

/* The same, but the body may remove n. */
#define LIST_EACH_SAFE(n, head)                                               \
	for (struct list *n = (head)->next, *n##_next = n->next; n != (head); \
	     n = n##_next, n##_next = n->next)

static inline void
list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool
list_is_empty(const struct list *l)
{
	return l->next == l;
}

static inline void
list_append(struct list *head, struct list *n)
{
	n->prev = head->prev;
	n->next = head;
	head->prev->next = n;
	head->prev = n;
}

static inline void
list_remove(struct list *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	list_init(n);
}

/* Appends all nodes of `from` to `to`; `from` is empty then. */
static inline void
list_take(struct list *from, struct list *to)
{
	if (list_is_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	list_init(from);
}

#endif
