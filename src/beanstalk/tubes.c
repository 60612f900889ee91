#include "beanstalk/tubes.h"

#include "base/mem.h"

#include <sluice/err.h>
#include <stdio.h>

int
tubes_init(struct tubes *t)
{
	for (unsigned i = 0; i < TUBES_BUCKETS; i++)
		list_init(&t->buckets[i]);
	return pthread_mutex_init(&t->lock, NULL) ? SLU_ENOMEM : 0;
}

void
tubes_release(struct tubes *t)
{
	(void)pthread_mutex_destroy(&t->lock); /* nobody holds it */
}

static struct list *
bucket_of(struct tubes *t, const char *name)
{
	uint32_t h = 2166136261u; /* FNV-1a; names are short, and clients are local or have certificates */

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	return &t->buckets[h % TUBES_BUCKETS];
}

/* Under the lock. */
static struct tube *
look_up(struct tubes *t, const char *name)
{
	struct list *const bucket = bucket_of(t, name);

	LIST_EACH(n, bucket) {
		struct tube *const tube = CONTAINER(n, struct tube, node);

		if (strcmp(tube->name, name) == 0)
			return tube;
	}
	return NULL;
}

static struct tube *
add(struct tubes *t, const char *folded, struct slice shown)
{
	struct tube *const tube = mem_alloc(sizeof *tube);

	if (!tube)
		return NULL;
	memset(tube, 0, sizeof *tube);
	(void)snprintf(tube->name, sizeof tube->name, "%s", folded);
	(void)snprintf(tube->shown, sizeof tube->shown, "%.*s", (int)shown.n, shown.p);
	list_append(bucket_of(t, folded), &tube->node);
	return tube;
}

struct tube *
tubes_open(struct tubes *t, struct slice name, int *rc)
{
	char folded[NAME_TEXT];
	struct slu_err err;
	struct tube *tube;

	*rc = name.n && name.p[0] == '-' ? SLU_EINVAL : name_fold(name, "tube", folded, &err);
	if (*rc)
		return NULL;
	pthread_mutex_lock(&t->lock);
	tube = look_up(t, folded);
	if (!tube)
		tube = add(t, folded, name);
	if (tube)
		tube->refs++;
	pthread_mutex_unlock(&t->lock);
	*rc = tube ? 0 : SLU_ENOMEM;
	return tube;
}

struct tube *
tubes_keep(struct tubes *t, struct tube *tube)
{
	pthread_mutex_lock(&t->lock);
	tube->refs++;
	pthread_mutex_unlock(&t->lock);
	return tube;
}

struct tube *
tubes_find(struct tubes *t, const char *folded)
{
	struct tube *tube;

	pthread_mutex_lock(&t->lock);
	tube = look_up(t, folded);
	if (tube)
		tube->refs++;
	pthread_mutex_unlock(&t->lock);
	return tube;
}

void
tubes_close(struct tubes *t, struct tube *tube)
{
	bool last;

	if (!tube)
		return;
	pthread_mutex_lock(&t->lock);
	last = --tube->refs == 0;
	if (last)
		list_remove(&tube->node);
	pthread_mutex_unlock(&t->lock);
	if (last)
		mem_free(tube);
}

void
tubes_each(struct tubes *t, void (*each)(void *arg, const struct tube *tube), void *arg)
{
	pthread_mutex_lock(&t->lock);
	for (unsigned i = 0; i < TUBES_BUCKETS; i++)
		LIST_EACH(n, &t->buckets[i])
			each(arg, CONTAINER(n, struct tube, node));
	pthread_mutex_unlock(&t->lock);
}
