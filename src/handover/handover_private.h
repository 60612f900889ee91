/*
 * handover_private.h - what the files of handover/ share; for them alone.
 */
#ifndef HANDOVER_HANDOVER_PRIVATE_H
#define HANDOVER_HANDOVER_PRIVATE_H

#include "handover/handover.h"

enum {
	HANDOVER_QUEUE = 404,    /* "namespace/queue", with the NUL */
	HANDOVER_SKIP = 1000,    /* queues that a look leaves out */
	HANDOVER_BODY = 32 << 20 /* bytes of a request */
};

/* A queue that the inbox has met. */
struct handover_queue {
	char name[HANDOVER_QUEUE];
	char shard[HANDOVER_SHARD]; /* empty: not known */
	slu_time rests;             /* left out until then */
	uint32_t limit;             /* items that the next look takes: the queue has room for so many; 0 = all */
	uint32_t seen;              /* items of this look */
};

/* What becomes of a batch. */
enum handover_fate {
	HANDOVER_ACCEPTED,
	HANDOVER_RELEASED, /* its number was used up: its items are free */
	HANDOVER_BEHIND,   /* HANDOVER-6 */
	HANDOVER_REFUSED,  /* one of its items, for good */
	HANDOVER_RESTS,    /* a queue accepts nothing now */
	HANDOVER_MOVED,    /* a queue lives on another shard */
	HANDOVER_LATER,    /* send it again */
	HANDOVER_FATAL     /* no batch can be accepted */
};

struct handover_answer {
	bool accepted;
	uint64_t last;
	uint64_t messages;
	int64_t index; /* of a refusal: the item, or -1 */
};

struct handover {
	const struct handover_ops *ops;
	struct handover_place *place;
	struct handover_server server;
	struct slu_log *log;
	uint64_t random;
	char source[HANDOVER_UUID];
	bool begun;
	bool fatal;
	unsigned failures; /* of the place */
	slu_time active;   /* when an item was last seen */
	slu_time looked;   /* when the last look for new items began */
	uint32_t found;    /* items of that look */
	struct handover_batch **batches;
	uint32_t n_batches, max_batches;
	struct handover_queue *queues;
	uint32_t n_queues, max_queues;
	const char *skip[HANDOVER_SKIP];
	struct buf body;
	struct handover_counts *counts;
	struct handover_counts own_counts;
};

/* The row of the queue of an item; NULL if memory is out. */
struct handover_queue *handover_queue_of(struct handover *in, const struct handover_item *item);

/* ---- item.c ---- */

/* Whether a file or object of this name is a message. Hidden files, unfinished files and files of options are not. */
bool handover_is_message(const char *name);

/* Trims the options of the item. Options that are not a JSON object are replaced by a text that the server refuses. */
void handover_check_options(struct handover_item *item);

/* ---- send.c ---- */

/* Sends a batch, or its number alone. */
int handover_send(struct handover *in, const struct handover_batch *b, bool with_items, struct handover_answer *out,
		  struct slu_err *err);

/* What a refusal means. index: of the item that is named, or -1. */
enum handover_fate handover_fate(int rc, int64_t index);

/* Sets the shard of every item. */
int handover_find_shards(struct handover *in, struct handover_items *items, struct slu_err *err);

#endif
