/*
 * tubes.h - the tubes that connections use or watch.
 *
 * A tube of the protocol exists while a connection refers to it, also without a queue. Connections of all
 * threads share the tubes: the counts are atomic, a lock guards the table.
 */
#ifndef BEANSTALK_TUBES_H
#define BEANSTALK_TUBES_H

#include "base/bytes.h"
#include "base/list.h"
#include "core/names.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

enum {
	TUBES_BUCKETS = 1024
};

struct tube {
	struct list node;      /* in its bucket */
	unsigned refs;         /* under the lock */
	char name[NAME_TEXT];  /* folded: the queue */
	char shown[NAME_TEXT]; /* as the first connection wrote it */
	_Atomic uint32_t using, watching, waiting;
	_Atomic uint64_t deletes, pauses, pause; /* pause: seconds of the last one */
};

struct tubes {
	pthread_mutex_t lock;
	struct list buckets[TUBES_BUCKETS];
};

int tubes_init(struct tubes *t);
void tubes_release(struct tubes *t); /* no connection is left */

/* The tube of that name, which is made if needed. NULL: the name is invalid, or there is no memory: *rc. */
struct tube *tubes_open(struct tubes *t, struct slice name, int *rc);
struct tube *tubes_keep(struct tubes *t, struct tube *tube);
void tubes_close(struct tubes *t, struct tube *tube); /* NULL is fine */

/* The tube, or NULL; close it. */
struct tube *tubes_find(struct tubes *t, const char *folded);

/* Calls each with the tubes, under the lock. */
void tubes_each(struct tubes *t, void (*each)(void *arg, const struct tube *tube), void *arg);

#endif
