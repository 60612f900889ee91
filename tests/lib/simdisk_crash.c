#include "simdisk_private.h"

#include "test.h"

#include <stdlib.h>

void
simdisk_release(struct simdisk *s)
{
	sim_close_all(s);
	sim_forget_older(s->names);
	sim_names_free(s->names);
	free(s->files);
	pthread_mutex_destroy(&s->mtx);
}

void
simdisk_fail(struct simdisk *s, unsigned ops, unsigned long n, int error, bool on)
{
	pthread_mutex_lock(&s->mtx);
	s->fail_ops = ops;
	s->fail_in = n;
	s->fail_errno = error;
	s->fail_on = on;
	s->failed = false;
	pthread_mutex_unlock(&s->mtx);
}

void
simdisk_heal(struct simdisk *s)
{
	pthread_mutex_lock(&s->mtx);
	s->fail_in = 0;
	s->power_off = 0;
	s->dead = false;
	pthread_mutex_unlock(&s->mtx);
}

void
simdisk_power_off(struct simdisk *s, unsigned long n)
{
	pthread_mutex_lock(&s->mtx);
	s->changes = 0;
	s->power_off = n;
	pthread_mutex_unlock(&s->mtx);
}

char *
simdisk_content(struct simdisk *s, const char *path, size_t *size)
{
	const int i = sim_names_find(s->names, path);

	*size = i < 0 ? 0 : s->names->at[i].inode->size;
	return i < 0 ? NULL : s->names->at[i].inode->now;
}

const char *
simdisk_name(struct simdisk *s, unsigned i)
{
	return i < s->names->n ? s->names->at[i].name : NULL;
}

uint64_t
simdisk_used(struct simdisk *s)
{
	uint64_t n;

	pthread_mutex_lock(&s->mtx);
	n = sim_used(s);
	pthread_mutex_unlock(&s->mtx);
	return n;
}

void
simdisk_fill(struct simdisk *s, bool full)
{
	pthread_mutex_lock(&s->mtx);
	s->capacity = full ? sim_used(s) : 0;
	pthread_mutex_unlock(&s->mtx);
}

/* What a sector holds after the cut: as synced, or as one of the writes left it. */
static void
crash_sector(struct sim_inode *f, size_t from, size_t to, uint64_t *dice, int how)
{
	static const struct sim_write *list[4096];
	unsigned n = 0, keep;

	for (const struct sim_write *w = f->writes; w; w = w->older)
		if (!w->doomed && w->at < to && w->at + w->n > from) {
			CHECK(n < COUNT(list));
			list[n++] = w;
		}
	keep = how == 0 ? 0 : how == 1 ? n
				       : (unsigned)(test_random(dice) % (n + 1));
	for (unsigned i = 0; i < keep; i++) { /* oldest first */
		const struct sim_write *w = list[n - 1 - i];
		const size_t a = w->at > from ? w->at : from;
		const size_t b = w->at + w->n < to ? w->at + w->n : to;

		memcpy(f->synced + a, w->data + (a - w->at), b - a);
	}
}

static void
crash_inode(struct sim_inode *f, uint64_t *dice, int how)
{
	const bool grown = how == 1 || (how > 1 && test_random(dice) % 2);

	if (f->writes || f->size != f->synced_size) {
		const size_t kept = grown ? f->size : f->synced_size;

		sim_make_synced(f, f->size > f->synced_size ? f->size : f->synced_size);
		for (size_t at = 0; f->writes && at < f->size; at += SIM_SECTOR)
			crash_sector(f, at, at + SIM_SECTOR < f->size ? at + SIM_SECTOR : f->size,
				     dice, how);
		f->synced_size = kept;
		sim_drop_writes(f);
	}
	f->now = realloc(f->now, f->synced_size ? f->synced_size : 1);
	CHECK(f->now);
	if (f->synced_size)
		memcpy(f->now, f->synced, f->synced_size);
	f->size = f->synced_size;
	f->locked = false;
}

/* The synced names are the last; a part of the changes after them stays. */
static void
crash_names(struct simdisk *s, uint64_t *dice, int how)
{
	unsigned changes = 0, lost;

	for (const struct sim_names *n = s->names; n->older; n = n->older)
		changes++;
	lost = how == 0 ? changes : how == 1 ? 0
					     : (unsigned)(test_random(dice) % (changes + 1));
	while (lost--) {
		struct sim_names *newest = s->names;

		s->names = newest->older;
		sim_names_free(newest);
	}
	sim_forget_older(s->names);
}

void
simdisk_kill(struct simdisk *s)
{
	simdisk_heal(s);
	sim_close_all(s);
}

void
simdisk_crash(struct simdisk *s, uint64_t seed)
{
	const int how = (int)(seed % 4);
	uint64_t dice = seed;

	simdisk_heal(s);
	sim_close_all(s);
	crash_names(s, &dice, how);
	for (unsigned i = 0; i < s->names->n; i++)
		crash_inode(s->names->at[i].inode, &dice, how);
}

static bool
ends_with(const char *name, const char *ending)
{
	const size_t n = strlen(name), m = strlen(ending);

	return n >= m && strcmp(name + n - m, ending) == 0;
}

size_t
simdisk_tear(struct simdisk *s, const char *ending, size_t n)
{
	struct sim_write *last = NULL;
	size_t was;

	for (unsigned i = 0; i < s->names->n; i++) {
		struct sim_write *w = s->names->at[i].inode->writes;

		if (w && ends_with(s->names->at[i].name, ending) &&
		    (!last || w->serial > last->serial))
			last = w;
	}
	was = last ? last->n : 0;
	if (last && n < was)
		last->n = n;
	simdisk_crash(s, 1);
	return was;
}

void
simdisk_settle(struct simdisk *s)
{
	simdisk_crash(s, 1);
}

struct sim_image {
	struct sim_image *next;
	char name[SIM_NAME];
	size_t size;
	char bytes[];
};

struct sim_image *
simdisk_save(struct simdisk *s)
{
	struct sim_image *list = NULL;

	pthread_mutex_lock(&s->mtx);
	for (unsigned i = 0; i < s->names->n; i++) {
		const struct sim_inode *f = s->names->at[i].inode;
		struct sim_image *image = sim_grab(sizeof *image + f->size);

		*image = (struct sim_image){ .next = list, .size = f->size };
		strcpy(image->name, s->names->at[i].name);
		if (f->size)
			memcpy(image->bytes, f->now, f->size);
		list = image;
	}
	pthread_mutex_unlock(&s->mtx);
	return list;
}

static struct sim_inode *
restore(const struct sim_image *image)
{
	struct sim_inode *f = sim_grab(sizeof *f);

	f->refs = 1;
	f->now = sim_grab(image->size);
	memcpy(f->now, image->bytes, image->size);
	f->size = image->size;
	sim_make_synced(f, f->size);
	memcpy(f->synced, f->now, f->size);
	return f;
}

void
simdisk_load(struct simdisk *s, const struct sim_image *image)
{
	simdisk_heal(s);
	sim_close_all(s);
	sim_forget_older(s->names);
	sim_names_free(s->names);
	s->names = sim_grab(sizeof *s->names);
	for (; image; image = image->next) {
		strcpy(s->names->at[s->names->n].name, image->name);
		s->names->at[s->names->n++].inode = restore(image);
	}
}

void
sim_image_free(struct sim_image *image)
{
	while (image) {
		struct sim_image *next = image->next;

		free(image);
		image = next;
	}
}
