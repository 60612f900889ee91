/*
 * handover.h - hands the messages of a place outside (a database, a folder, a bucket) over to a server, each once.
 *
 *      place                    inbox                       server
 *      new items   ── find ──>  group by shard  <─ places ─  which shard has which queue
 *      marked      <── mark ──  (shard, number)
 *                               batch           ── intake ─> accepted once: OP_INTAKE of engine/op.h
 *      gone        <── end ───
 *
 *  HANDOVER-1  An item is marked with shard and number before its batch is sent, durably. A batch that was
 *           sent is sent again, with the same number, until its outcome is known.
 *  HANDOVER-2  A shard has one batch on its way. The items of a queue go in their order.
 *  HANDOVER-3  After a failure of the place the inbox begins anew: it reads what is marked and sends that first.
 *  HANDOVER-4  If a batch cannot be accepted now (its queue is full, or lives on another shard), the inbox uses
 *           its number up and releases its items. The server's answer to a repeated batch tells an accepted
 *           batch from a number that was used up.
 *  HANDOVER-5  An item that the server refuses for good leaves the place for a list of refused items.
 *  HANDOVER-6  If the server knows a later number than the inbox (the place was restored from a backup), the inbox
 *           goes on behind that number; items may come twice then, and none is lost.
 *  HANDOVER-7  While items come, the inbox looks every 5 ms: the items of that time share a batch. After a look that found as
 *           many items as a batch may have, it looks again at once.
 *
 * A driver is one kind of place: a row of handover_drivers. One thread uses an inbox: of `sluice inbox`, or of
 * server/inboxes.h.
 */
#ifndef HANDOVER_HANDOVER_H
#define HANDOVER_HANDOVER_H

#include "base/bytes.h"

#include <sluice/err.h>

struct handover_watcher;
struct slu_log;

enum {
	HANDOVER_BATCH = 1000,           /* items of a batch */
	HANDOVER_BATCH_BYTES = 4 << 20,  /* of payloads: a batch ends behind the item that passes it */
	HANDOVER_PAYLOAD_MAX = 11 << 20, /* bytes: a larger payload does not fit a request */
	HANDOVER_UUID = 37,              /* the text of a uuid, with the NUL */
	HANDOVER_SHARD = 80,             /* the name of a shard, with the NUL */
	HANDOVER_WHY = 240               /* why an item was refused, with the NUL */
};

/* A message at its place. The texts are on the heap; handover_items_release frees them. */
struct handover_item {
	uint64_t id; /* for drivers whose items have numbers */
	char *name;  /* for drivers whose items have names */
	char *space;
	char *queue;
	char *tag;     /* for drivers whose items may be replaced: of the content */
	char *options; /* JSON object: members of the message, as in POST /enqueue; NULL: none */
	char *payload;
	size_t size;    /* bytes of the payload */
	uint64_t batch; /* 0: the item is not marked */
	char *shard;    /* NULL: the item is not marked */
};

struct handover_items {
	struct handover_item *p;
	uint32_t n;
	uint32_t max;
};

/* Adds an item with zeros. Returns NULL if memory is out. */
struct handover_item *handover_items_add(struct handover_items *items);
void handover_items_release(struct handover_items *items);

/* Removes item i; the others keep their order. */
void handover_items_cut(struct handover_items *items, uint32_t i);

/* Draws a uuid, as text. Returns SLU_EDOWN if the system has no random numbers. */
int handover_new_uuid(char out[static HANDOVER_UUID], struct slu_err *err);

/* Items that go to a shard together. */
struct handover_batch {
	uint64_t number;
	char shard[HANDOVER_SHARD];
	struct handover_items items;
	slu_time again;    /* when it is sent again */
	unsigned failures; /* since it was marked */
};

/* Any thread may read them. */
struct handover_counts {
	_Atomic uint64_t accepted; /* messages */
	_Atomic uint64_t batches;
	_Atomic uint64_t refused; /* items */
	_Atomic bool works;       /* the place answers, and no other inbox has it */
};

struct handover_conf {
	const char *url;
	struct slu_log *log;
	struct handover_counts *counts; /* the inbox adds to them; NULL: counts of its own */

	/* File driver: 0 or false = not set. */
	slu_time settle;         /* a file that was written in place is taken after so long without a change */
	slu_time poll_interval;  /* from one look at a folder without a watch to the next */
	slu_time poll_jitter;    /* at most so much is added to it, at random */
	slu_time poll_resilient; /* from one look at a folder with a watch to the next */
	bool watch;              /* watch folders for changes */

	const struct handover_watcher *watcher; /* instead of inotify, on any file system; NULL: inotify */
};

struct handover_place; /* private to the driver */

/* After SLU_EDOWN, SLU_EBUSY or SLU_ELEASE of any function the inbox begins anew. SLU_EINVAL, SLU_ENOTFOUND and
 * SLU_EFORBIDDEN end the inbox. */
struct handover_ops {
	const char *scheme; /* "postgres" */

	int (*open)(struct handover_place **out, const struct handover_conf *conf, struct slu_err *err);
	void (*close)(struct handover_place *p);

	/* Makes this inbox the only one of the place. Sets the uuid of the place and the items that are marked, in
	 * the order of their batches. Returns SLU_EBUSY if another inbox is at work. */
	int (*begin)(struct handover_place *p, char source[static HANDOVER_UUID], struct handover_items *marked,
		     struct slu_err *err);

	/* Finds new items, oldest first, at most HANDOVER_BATCH. skip: names of queues to leave out, each
	 * "namespace/queue". */
	int (*find)(struct handover_place *p, const char *const *skip, uint32_t n, struct handover_items *out,
		    struct slu_err *err);

	/* Marks the items durably with the shard and the next number, and sets `batch` of those that it has marked;
	 * others have gone. Returns SLU_ELEASE if another inbox is at work. */
	int (*mark)(struct handover_place *p, const char *shard, struct handover_items *items, struct slu_err *err);

	/* The batch was accepted: removes its items. */
	int (*end)(struct handover_place *p, const struct handover_batch *b, struct slu_err *err);

	/* The batch was not accepted: its items are not marked any more. */
	int (*release)(struct handover_place *p, const struct handover_batch *b, struct slu_err *err);

	/* Moves the item to the refused items, with the reason. */
	int (*refuse)(struct handover_place *p, const struct handover_item *item, const char *why, struct slu_err *err);

	/* Makes the next number of a batch higher than `number`. */
	int (*raise)(struct handover_place *p, uint64_t number, struct slu_err *err);

	/* Called if nothing is new. Sets *fd to a descriptor that becomes readable when something may be new, or
	 * to -1. Returns how long to wait at most. */
	slu_time (*sleep)(struct handover_place *p, int *fd);

	/* Optional: whether the place has items that `find` does not return yet. */
	bool (*waits)(const struct handover_place *p);
};

extern const struct handover_ops handover_postgres, handover_file, handover_s3, handover_azure;
extern const struct handover_ops *const handover_drivers[]; /* ended by NULL */

/* The driver of a URL. Returns NULL if no driver has its scheme. */
const struct handover_ops *handover_driver(const char *url);

/* How an inbox calls the server. */
struct handover_server {
	void *arg;

	/* Sends a POST with a JSON body. Returns 0, or the code of the refusal; *answer then has its body, too, or is
	 * empty. *answer stays until the next call. */
	int (*call)(void *arg, const char *path, struct slice body, struct slice *answer, struct slu_err *err);
};

struct handover;

/* Opens the place; url "postgres://..." or "file:///...". Returns SLU_EINVAL for another URL. */
int handover_open(struct handover **out, const struct handover_conf *conf, const struct handover_server *server,
		  struct slu_err *err);
void handover_close(struct handover *in); /* NULL is fine */

/* Works until stop_fd is readable; once: until the place is empty. Returns 0, or the code of a failure that does not
 * go away: wrong credentials, a missing table, an engine without batches. */
int handover_run(struct handover *in, int stop_fd, bool once, struct slu_err *err);

const struct handover_counts *handover_counts(const struct handover *in);

#endif
