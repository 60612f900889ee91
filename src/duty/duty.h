/*
 * duty.h - a thread that does what documents ask: fires schedules, does tasks.
 *
 * The documents are messages of a queue of core/reserved.h. The node that owns the shard of such a queue does its duty.
 *
 *      lane: a document was stored, a lane was opened ──> duty_notify ──┐
 *                                                                      v
 *      thread:  list the queues of this node  ──> a row each    <── changed?
 *                       │
 *                       v  each row that is due: kind->act
 *               ops to lanes; OP_SCHEDULE stores the document again
 *
 *  DUTY-1  The documents are read again after a change by another caller, and each 30 s.
 *  DUTY-2  What cannot be done now is tried again each second. The first failure of several in a row is logged.
 *  DUTY-3  A document that cannot be read, or a shard that answers that it has moved, does not stop the others. All are read
 *          again after a second, ten times at most after each change: a shard that changes its owner may be back by then.
 */
#ifndef DUTY_DUTY_H
#define DUTY_DUTY_H

#include "duty/opwait.h"
#include "base/metrics.h"

#include <stdatomic.h>

struct duty;
struct duty_row;
struct slu_log;

/* The first metric of every kind. */
enum {
	DUTY_FAILURES, /* acts that failed and are repeated */
	DUTY_METRICS
};

struct duty_kind {
	const char *noun;  /* of a document, in the log */
	const char *waits; /* the event of the log: DUTY-2 */
	const char *queue; /* of the documents */
	size_t size;       /* of the struct of the kind, which begins with a struct duty */
	size_t row_size;   /* of its rows, which begin with a struct duty_row */
	const struct metric *metrics;
	unsigned n_metrics;

	/* Reads a document. room: doc.n bytes for texts; both live as long as the row. */
	int (*decode)(struct duty *d, struct slice doc, char *room, struct duty_row *out, struct slu_err *err);
	const char *(*name)(const struct duty_row *row, char *room, size_t size); /* for the log */

	/* now: a document that was read again. Returns false if old keeps what it has, and has taken from now what
	 * another caller changed. NULL: rows do not outlive a load. */
	bool (*renew)(struct duty_row *old, const struct duty_row *now);
	void (*loaded)(struct duty *d); /* after all documents were read; may clear `seen` of rows, which then go. NULL: nothing */

	slu_time (*pause)(const struct duty_row *row); /* until the row is due; SLU_NEVER */

	/* Does what is due. Returns SLU_ENOTFOUND, SLU_EMOVED or SLU_ECONFLICT if the row is not what the shard has. */
	int (*act)(struct duty *d, struct duty_row *row, struct slu_err *err);
	void (*end)(struct duty *d);     /* the last call of the thread. NULL: nothing */
	void (*release)(struct duty *d); /* NULL: nothing */
};

/* A document in memory. */
struct duty_row {
	char space[NAME_TEXT];
	uint64_t id;       /* of its message, without the last bit */
	uint64_t number;   /* of its message */
	slu_time accepted; /* of its message */
	slu_time resume;   /* not before, by the monotonic clock */
	char *memory;      /* the document and its texts */
	bool seen;         /* by the last load */
};

struct duty {
	const struct duty_kind *kind;
	struct slu_log *log;
	struct broker *broker;
	struct opwait wait;
	struct metrics metrics;

	/* Of the thread. */
	char *rows;
	struct duty_row *fresh; /* room for the row that is being read */
	uint32_t n, room;
	uint64_t expected; /* changes that the thread knows of */
	slu_time loaded;   /* by the monotonic clock */
	bool stale;        /* the shards have other rows by now */
	bool lacks;        /* the last load did not read all: DUTY-3 */
	unsigned lacked;   /* loads in a row that did not */
	bool failing;

	/* Shared. */
	pthread_mutex_t mtx;
	pthread_cond_t wake;
	uint64_t changes; /* under mtx */
	bool stops;       /* under mtx */
	pthread_t thread;
	bool runs;
};

/* Before the broker is opened. */
int duty_new(struct duty **out, const struct duty_kind *kind, struct slu_log *log, struct slu_err *err);

/* Documents of the queue have changed; queue n 0: a lane was opened. Any thread. NULL is fine. */
void duty_notify(struct duty *d, struct slice queue);

/* After the broker is opened; before it drains. NULL is fine for stop and free. */
int duty_start(struct duty *d, struct broker *b, struct slu_err *err);
void duty_stop(struct duty *d);
void duty_free(struct duty *d);

void duty_metrics(const struct duty *d, struct buf *out); /* NULL is fine */

/* ---- For kinds, in the thread ---- */

slu_time duty_mono(void);
struct duty_row *duty_row(const struct duty *d, uint32_t i);
void duty_count(struct duty *d, unsigned metric, uint64_t n);

/* Begins an op on the queue of the documents, which stays on this node. */
void duty_op(struct duty *d, struct op *op, enum op_verb verb, struct slice space);

/* Runs ops, and waits for their answers. Returns the rc of the first; *err then says why. err may be NULL. */
int duty_run(struct duty *d, struct op *ops, uint32_t n, struct slu_err *err);

/* Stores puts[0], the document, with the messages behind it, if it is as the row knows it. n 0: removes it. */
int duty_store(struct duty *d, struct duty_row *row, struct op_put *puts, uint32_t n, struct slu_err *err);

/* Reads the document again, into a row of the kind. The caller frees out->memory. */
int duty_look(struct duty *d, const struct duty_row *row, struct duty_row *out, struct slu_err *err);

/* ---- duty_load.c, for duty.c ---- */

int duty_load(struct duty *d, struct slu_err *err);
void duty_unload(struct duty *d);

#endif
