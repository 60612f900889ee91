#include "exec/cancel.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

struct slu_cancel {
	_Atomic unsigned refs;
	_Atomic bool fired; /* set under mtx, after reason */
	char reason[80];
	pthread_mutex_t mtx;
	struct list hooks; /* shared, under mtx */
};

struct slu_cancel *
slu_cancel_new(void)
{
	struct slu_cancel *c = mem_zalloc(sizeof *c);

	if (!c)
		return NULL;
	atomic_store(&c->refs, 1);
	pthread_mutex_init(&c->mtx, NULL);
	list_init(&c->hooks);
	return c;
}

struct slu_cancel *
cancel_ref(struct slu_cancel *c)
{
	if (c)
		atomic_fetch_add(&c->refs, 1);
	return c;
}

void
slu_cancel_free(struct slu_cancel *c)
{
	if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&c->mtx);
	mem_free(c);
}

void
slu_cancel_fire(struct slu_cancel *c, const char *reason)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->mtx);
	if (!atomic_load(&c->fired)) {
		(void)snprintf(c->reason, sizeof c->reason, "%s",
			       reason ? reason : "canceled");
		atomic_store(&c->fired, true);
		LIST_EACH_SAFE(n, &c->hooks) {
			struct cancel_hook *h = CONTAINER(n, struct cancel_hook, node);

			list_remove(n);
			h->fired(h);
		}
	}
	pthread_mutex_unlock(&c->mtx);
}

bool
slu_cancel_fired(const struct slu_cancel *c)
{
	return c && atomic_load(&c->fired);
}

bool
cancel_hook(struct slu_cancel *c, struct cancel_hook *h)
{
	bool hooked;

	list_init(&h->node);
	pthread_mutex_lock(&c->mtx);
	hooked = !atomic_load(&c->fired);
	if (hooked)
		list_append(&c->hooks, &h->node);
	pthread_mutex_unlock(&c->mtx);
	return hooked;
}

void
cancel_unhook(struct slu_cancel *c, struct cancel_hook *h)
{
	pthread_mutex_lock(&c->mtx);
	if (!atomic_load(&c->fired))
		list_remove(&h->node);
	pthread_mutex_unlock(&c->mtx);
}

const char *
cancel_reason(const struct slu_cancel *c)
{
	return c->reason;
}
