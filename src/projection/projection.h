/*
 * projection.h - a readable copy of queues in PostgreSQL, written behind by a thread of its own.
 *
 *      lanes                      thread of the projection                        database
 *      a change ──> changes.h     ids that are `after` old ── lanelook.h ──┐
 *                                 all messages, page by page ── the same ──┴──> items.h: one transaction
 *
 *  PROJECTION-1  The lane notes the id of the message, and nothing else: the database never delays a request.
 *  PROJECTION-2  A message that lives shorter than `after` is never written.
 *  PROJECTION-3  When a lane begins to serve, when too many changes wait, or when an operator asks for it, the
 *      projection is rebuilt: it writes every message of the lane, then removes every row without a message.
 *      Changes that come meanwhile are written meanwhile.
 *  PROJECTION-4  A node that no longer owns a shard writes nothing: ITEMS-1. A lane that lost the right to write is
 *      left alone until it is opened again.
 *
 * The state of a message is read when it is written, so the copy may skip states, and it never goes back. Only the
 * thread reads messages and writes to the database.
 */
#ifndef PROJECTION_PROJECTION_H
#define PROJECTION_PROJECTION_H

#include "base/bytes.h"
#include "engine/engine.h"

struct broker;
struct projection;

struct projection_conf {
	const char *url;           /* of the database; borrowed until projection_free, as all pointers here */
	const char *const *queues; /* NAMESPACE or NAMESPACE/QUEUE */
	unsigned n_queues;         /* 0: all queues */
	slu_time after;            /* PROJECTION-2 */
	uint32_t batch;            /* messages of a transaction, at most LANELOOK_MAX */
	uint32_t changes;          /* ids of changed messages that wait, for each lane */
	struct slu_log *log;
};

struct projection_counts {
	uint64_t messages;     /* written or removed */
	uint64_t transactions; /* that were committed */
	uint64_t failures;     /* calls of the database that failed */
	uint64_t rebuilds;     /* that were begun */
	uint64_t waiting;      /* ids of changed messages */
	slu_time lag;          /* how long the oldest change is overdue */
	bool rebuilding;       /* a rebuild is not finished */
};

/* Returns SLU_ENOMEM. */
int projection_new(struct projection **out, const struct projection_conf *conf, struct slu_err *err);

/* For engine_conf.observer of all lanes. */
const struct engine_observer *projection_observer(const struct projection *p);

/* Begins to write. After the broker has opened its lanes. Returns SLU_EDOWN if the system has no more threads. */
int projection_start(struct projection *p, struct broker *b, struct slu_err *err);

/* Ends the thread. Before the broker stops. NULL is fine; a second call does nothing. */
void projection_stop(struct projection *p);

/* After the broker is closed. NULL is fine. */
void projection_free(struct projection *p);

/* Appends the metrics as Prometheus text. p NULL: only their descriptions. Any thread. */
void projection_metrics(struct projection *p, struct buf *out);

#endif
