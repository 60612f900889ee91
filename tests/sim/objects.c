/*
 * objects.c - the objects of a simulated store.
 */
#include "objects.h"

#include "base/mem.h"
#include "test.h"

#include <stdio.h>

unsigned
objects_place(const struct objects *s, const char *name)
{
	unsigned a = 0, b = s->n;

	while (a < b) {
		const unsigned m = (a + b) / 2;

		if (strcmp(s->at[m].name, name) < 0)
			a = m + 1;
		else
			b = m;
	}
	return a;
}

struct object *
objects_find(struct objects *s, const char *name)
{
	const unsigned i = objects_place(s, name);

	return i < s->n && strcmp(s->at[i].name, name) == 0 ? &s->at[i] : NULL;
}

void
objects_put(struct objects *s, const char *name, struct slice object)
{
	const unsigned i = objects_place(s, name);
	struct object *const o = &s->at[i];

	CHECK(s->n < OBJECTS_MAX);
	memmove(o + 1, o, (s->n - i) * sizeof *o);
	s->n++;
	snprintf(o->name, sizeof o->name, "%s", name);
	o->p = mem_alloc(object.n + 1);
	memcpy(o->p, object.p, object.n);
	o->n = object.n;
}

void
objects_remove(struct objects *s, struct object *o)
{
	mem_free(o->p);
	s->n--;
	memmove(o, o + 1, (size_t)(&s->at[s->n] - o) * sizeof *o);
}

void
objects_clear(struct objects *s)
{
	while (s->n > 0)
		mem_free(s->at[--s->n].p);
}

void
objects_copy(struct objects *to, const struct objects *from)
{
	for (unsigned i = 0; i < from->n; i++)
		objects_put(to, from->at[i].name, object_bytes(&from->at[i]));
}

/* ---- A reader of lines ---- */

static bool
begins_with(const struct objects *s, unsigned i, const char *prefix)
{
	return i < s->n && strncmp(s->at[i].name, prefix, strlen(prefix)) == 0;
}

bool
objects_newest(struct objects *s, const char *shard, struct line_group *g)
{
	char prefix[LINE_NAME_MAX];
	unsigned i;

	line_prefix(prefix, shard, LINE_GROUP);
	i = objects_place(s, prefix);
	if (!begins_with(s, i, prefix))
		return false;
	while (begins_with(s, i + 1, prefix))
		i++;
	CHECK_EQ(0, line_group_decode(g, object_bytes(&s->at[i]), NULL), s->at[i].name);
	return true;
}

static bool
has_mark(struct slice object, uint64_t number, struct line_mark mark, struct line_group *g)
{
	CHECK_EQ(0, line_group_decode(g, object, NULL));
	return g->number == number && line_mark_eq(g->mark, mark);
}

static bool
span_has(const struct object *o, uint64_t number, struct line_mark mark, struct line_group *g)
{
	struct line_span span;
	struct slice object;

	CHECK_EQ(0, line_span_decode(&span, object_bytes(o), NULL), o->name);
	if (number < span.first || number > line_span_last(&span))
		return false;
	while (line_span_next(&span, &object))
		if (has_mark(object, number, mark, g))
			return true;
	return false;
}

bool
objects_group(struct objects *s, const char *shard, uint64_t number, struct line_mark mark,
	      struct line_group *g)
{
	char name[LINE_NAME_MAX], prefix[LINE_NAME_MAX];
	const struct object *o;

	line_name(name, shard, LINE_GROUP, number);
	o = objects_find(s, name);
	if (o && has_mark(object_bytes(o), number, mark, g))
		return true;
	line_prefix(prefix, shard, LINE_SPAN);
	for (unsigned i = objects_place(s, prefix); begins_with(s, i, prefix); i++)
		if (span_has(&s->at[i], number, mark, g))
			return true;
	return false;
}
