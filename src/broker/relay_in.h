/*
 * relay_in.h - what the parts of the relay share: relay*.c and moving*.c alone.
 */
#ifndef BROKER_RELAY_IN_H
#define BROKER_RELAY_IN_H

#include "broker/moving.h"
#include "broker/shard.h"

#include <limits.h>

/* What is to be done with an op that was answered by one shard. */
enum relay_next {
	RELAY_DONE,  /* this is the answer */
	RELAY_ON,    /* ask the next shard of the path */
	RELAY_AGAIN, /* from the first shard on */
	RELAY_STAY,  /* the same shard once more, a little later */
	RELAY_LEARN  /* the queue lives elsewhere: ask where */
};

/* An op on its way. */
struct relay {
	struct relays *all;
	struct op *op;
	struct moving *m;
	struct list node;    /* in m->held */
	struct list waiting; /* in m->waiting */
	struct relay_path path;
	unsigned at; /* of the path */
	unsigned hops;
	bool known; /* marks stand: path.epoch counts */

	/* The question, as it came. */
	enum op_verb verb;
	slu_time wait;
	uint32_t max_rows;
	uint32_t max_keys;
	uint64_t id;
	uint64_t cursor;
	slu_time until; /* of the wait, by clock_boot */

	/* So far. */
	slu_time patient; /* when RELAY_STAY ends, by clock_boot; 0: never met */
	uint64_t above;   /* V9: of all shards that had not what it asks for */
	bool took;        /* a part of it is done */
	bool unknown;     /* or may be: a shard failed over it */
	bool recalls;     /* ENQUEUE: it asks who knows its idempotency keys */
	bool waited;      /* it has waited for a slice */
	bool some;        /* a shard had something to add */
	bool same;        /* WATCH: a former shard has the head that is known */
	bool paging;      /* KEYS: its first keys are known */
	unsigned key_at;  /* KEYS: who has the first of all */
	int why;          /* of the first shard that failed */
	struct slu_err err;
	struct op_queue sum;
	uint64_t count;
	char key[LOCK_KEY_MAX + 1];      /* KEYS: the first of all */
	char next_key[LOCK_KEY_MAX + 1]; /* and the first of any other shard, or empty */
};

/* How a verb follows a path. */
struct relay_verb {
	/* Set up op for the shard r->at, beside what every op gets. NULL: nothing. */
	void (*ask)(struct relay *r);
	enum relay_next (*answered)(struct relay *r);
	bool waits;  /* for messages: it is nudged when a former shard has some */
	bool home;   /* it asks lanes[0] alone */
	bool key;    /* what it brings may go on with a key that was elsewhere: V9 */
	bool strict; /* Y3: a shard that does not answer stops it */
};

/* relay_verbs.c. NULL: such ops are never relayed. */
const struct relay_verb *relay_verb_of(enum op_verb verb);

/* Is this the last shard of the path? */
static inline bool
relay_is_home(const struct relay *r)
{
	return r->at == 0;
}

/* relay.c: what was held begins; rc: the shards could not be asked. Without mtx. */
void relay_begin_all(struct list *held, int rc, const struct slu_err *err);

/* relay_verbs.c: was it refused because its key is on its way? V7 */
bool relay_in_move(const struct op *op);

/* relay_split.c: is it about several queues? Else which. */
bool relay_is_mixed(const struct op *op, struct slice *space, struct slice *queue);

/* relay_split.c: what is still open of an op goes on queue by queue. SLU_ENOMEM: nothing was
 * done. */
int relay_split(struct relays *rs, struct op *op);

/* The same for one that a shard has answered. False: there is nothing to be split. */
bool relay_split_rest(struct relays *rs, struct op *op);

/* relay_verbs.c: where a page of a list begins, by its cursor. */
unsigned relay_list_at(const struct relay *r);

#endif
