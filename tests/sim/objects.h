/*
 * objects.h - the objects of a simulated store: names in order, and bytes; a reader of lines.
 */
#ifndef TESTS_SIM_OBJECTS_H
#define TESTS_SIM_OBJECTS_H

#include "line/object.h"

enum {
	OBJECTS_MAX = 4000
};

struct object {
	char name[LINE_NAME_MAX];
	char *p;
	size_t n;
};

/* Zeroed: empty. */
struct objects {
	struct object at[OBJECTS_MAX]; /* sorted by name */
	unsigned n;
};

/* The index of the first object whose name is not before this one. */
unsigned objects_place(const struct objects *s, const char *name);

/* NULL if the name is absent. */
struct object *objects_find(struct objects *s, const char *name);

/* The name is absent. Copies the bytes. */
void objects_put(struct objects *s, const char *name, struct slice object);
void objects_remove(struct objects *s, struct object *o);
void objects_clear(struct objects *s);

/* *to is empty. */
void objects_copy(struct objects *to, const struct objects *from);

/* Sets *g to the newest group of a line. Returns false if the line has no group. */
bool objects_newest(struct objects *s, const char *shard, struct line_group *g);

/* Sets *g to the group of that number and mark: by itself, or in a span. Returns false if the store
 * does not have it. */
bool objects_group(struct objects *s, const char *shard, uint64_t number, struct line_mark mark,
		   struct line_group *g);

static inline struct slice
object_bytes(const struct object *o)
{
	return (struct slice){ o->p, o->n };
}

#endif
