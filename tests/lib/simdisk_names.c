/*
 * Files and their names. Every change of names makes a new version of them all, and
 * the old ones stay until the folder is synced.
 */
#include "simdisk_private.h"

#include "test.h"

#include <stdlib.h>

void *
sim_grab(size_t n)
{
	void *p = calloc(1, n ? n : 1);

	CHECK(p);
	return p;
}

void
sim_drop_writes(struct sim_inode *f)
{
	while (f->writes) {
		struct sim_write *w = f->writes;

		f->writes = w->older;
		free(w);
	}
}

void
sim_unref(struct sim_inode *f)
{
	if (!f || --f->refs)
		return;
	sim_drop_writes(f);
	free(f->now);
	free(f->synced);
	free(f);
}

void
sim_names_free(struct sim_names *n)
{
	for (unsigned i = 0; i < n->n; i++)
		sim_unref(n->at[i].inode);
	free(n);
}

void
sim_forget_older(struct sim_names *n)
{
	while (n->older) {
		struct sim_names *old = n->older;

		n->older = old->older;
		sim_names_free(old);
	}
}

/* Every change of names works on a copy, so that the old ones can come back. */
struct sim_names *
sim_names_change(struct simdisk *s)
{
	struct sim_names *copy;

	if (s->steady)
		return s->names;
	copy = sim_grab(sizeof *copy);
	memcpy(copy, s->names, sizeof *copy);
	for (unsigned i = 0; i < copy->n; i++)
		copy->at[i].inode->refs++;
	copy->older = s->names;
	s->names = copy;
	return copy;
}

int
sim_names_find(const struct sim_names *n, const char *path)
{
	for (unsigned i = 0; i < n->n; i++)
		if (strcmp(n->at[i].name, path) == 0)
			return (int)i;
	return -1;
}

void
sim_names_drop(struct sim_names *n, int i)
{
	sim_unref(n->at[i].inode);
	n->at[i] = n->at[--n->n];
}

void
sim_make_synced(struct sim_inode *f, size_t size)
{
	f->synced = realloc(f->synced, size ? size : 1);
	CHECK(f->synced);
	if (size > f->synced_size)
		memset(f->synced + f->synced_size, 0, size - f->synced_size);
	f->synced_size = size;
}

uint64_t
sim_used(const struct simdisk *s)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < s->names->n; i++)
		sum += s->names->at[i].inode->size;
	return sum;
}
