/*
 * beanstalk_private.h - what the files of the protocol share.
 */
#ifndef BEANSTALK_BEANSTALK_PRIVATE_H
#define BEANSTALK_BEANSTALK_PRIVATE_H

#include "api/apicall.h"
#include "beanstalk/beanstalk.h"
#include "beanstalk/line.h"
#include "beanstalk/tubes.h"
#include "net/front.h"

#include <stdatomic.h>

enum {
	BEAN_WATCHED = 1000, /* most tubes that a connection watches */
	BEAN_PAGE = 1000     /* jobs of one step of a kick */
};

#define BEAN_MARGIN SLU_SEC /* before the end of a reservation: DEADLINE_SOON */

/* Of all threads. */
struct bean_shared {
	struct beanstalk_conf conf;
	struct tubes tubes;
	slu_time started;
	char id[17];                           /* of this process, hexadecimal */
	_Atomic uint64_t commands[BEAN_KINDS]; /* lines that were read */
	_Atomic uint64_t connections;          /* so far */
	_Atomic uint32_t current, producers, workers, waiting;
};

/* A reservation. */
struct bean_job {
	uint64_t id;
	uint64_t token;
	slu_time ttr;   /* how long a touch extends it */
	slu_time until; /* its end, by clock_mono */
	struct tube *tube;
};

struct bean_conn {
	struct conn c; /* first */
	struct tube *used;
	struct tube **watched;
	unsigned n_watched;
	struct bean_job *jobs;
	unsigned n_jobs, max_jobs;
	slu_time ttr; /* of the last job: the next claim asks for the same lease, if messages have none of their own */
	bool puts, reserves;

	/* What is being read: a line, or the body of c.reading. */
	char line[BEAN_LINE];
	size_t n_line;
	bool too_long; /* the rest of the line is thrown away */
	uint64_t left; /* bytes of the body, with CR LF, that have not come */
};

/* A command and its answer. */
struct bean_call {
	struct exchange x; /* first */
	struct bean_line line;
	struct buf in; /* the body of a put, with CR LF */
	bool too_big;
};

static inline struct bean_conn *
bean_conn(struct conn *c)
{
	return CONTAINER(c, struct bean_conn, c);
}

static inline struct bean_call *
bean_call(struct exchange *x)
{
	return CONTAINER(x, struct bean_call, x);
}

static inline struct bean_shared *
bean_shared(const struct exchange *x)
{
	return x->protocol->shared;
}

/* The connection of an exchange; NULL: it has closed. */
static inline struct bean_conn *
bean_conn_of(const struct exchange *x)
{
	struct conn *const c = exchange_conn(x);

	return c ? bean_conn(c) : NULL;
}

static inline struct slice
bean_space(const struct exchange *x)
{
	return slice_of(bean_shared(x)->conf.space);
}

static inline struct slice
bean_queue(const struct tube *t)
{
	return slice_of(t->name);
}

/* Answers with this text. */
void bean_answer(struct exchange *x, const char *text);

/* A copy with a NUL behind it, in the memory of the apicall; n 0: no memory. */
struct slice bean_text(struct apicall *a, const char *text);

/* Answers with YAML: "OK <bytes>", then the bytes of text. */
void bean_answer_yaml(struct exchange *x, const struct buf *text);

/* beanstalk.c: runs the command of x, which is whole. */
void bean_run(struct bean_conn *bc, struct exchange *x);

/* --- the handlers: a->state is zeroed memory of the handler ---------------------- */

void bean_put(struct apicall *a);
void bean_reserve(struct apicall *a);
void bean_reserve_job(struct apicall *a);
void bean_delete(struct apicall *a);
void bean_release(struct apicall *a);
void bean_bury(struct apicall *a);
void bean_touch(struct apicall *a);
void bean_peek(struct apicall *a);
void bean_peek_tube(struct apicall *a);
void bean_kick(struct apicall *a);
void bean_kick_job(struct apicall *a);
void bean_stats(struct apicall *a);
void bean_stats_job(struct apicall *a);
void bean_stats_tube(struct apicall *a);
void bean_list(struct apicall *a);
void bean_pause(struct apicall *a);

/* --- job.c: the reservations of a connection ----------------------------------------- */

struct bean_job *bean_job_find(const struct bean_conn *bc, uint64_t id);
int bean_job_add(struct bean_conn *bc, const struct bean_job *job); /* SLU_ENOMEM */
void bean_job_drop(struct bean_conn *bc, uint64_t id);

/* When the first reservation that lasts ends, or SLU_NEVER. */
slu_time bean_job_next_end(const struct bean_conn *bc, slu_time now);

/* BEAN-1 */
void bean_jobs_release(struct bean_conn *bc);

/* --- record.c: a message of an op ----------------------------------------------- */

struct bean_record {
	struct message m;
	struct slice payload;
	slu_time ttr;  /* 0: the message has none, its lease comes from the queue's policy */
	uint32_t pri;  /* as it was put */
	bool has_prio; /* pri is higher than a message's priority can be */
	int rc;
};

/* Writes the attributes of a put, ttr 0: that is the lease of the message. p NULL: no memory. */
struct slice bean_attributes(struct arena *a, uint32_t pri, uint32_t ttr);

/* Returns whether a message of the tube can have a lease of its own; engine redis has none. */
bool bean_has_leases(struct apicall *a, struct slice queue);

/* Reads the record of row, unpins op, and calls then on the loop. The record is in the memory of the apicall, at
 * its state's beginning: every state that is used with it begins with a struct bean_reading. */
struct bean_reading {
	struct bean_record record;
	struct op *op;
	struct op_row *row;
	void (*then)(struct apicall *a);
};

void bean_read(struct apicall *a, struct op *op, struct op_row *row, void (*then)(struct apicall *a));

/* Writes "<word> <id> <bytes>", the payload, and answers. */
void bean_answer_job(struct apicall *a, const char *word, uint64_t id, struct slice payload);

/* --- find.c: a message by its id alone -------------------------------------------- */

/* State of a handler that looks for a message; begins with struct bean_reading. */
struct bean_find {
	struct bean_reading reading;
	uint64_t id;
	uint32_t lane;
	struct op_row row;
	void (*found)(struct apicall *a);
};

/* Looks for the job in all lanes. Calls found on the loop with its record, or answers NOT_FOUND. */
void bean_find(struct apicall *a, uint64_t number, void (*found)(struct apicall *a));

#endif
