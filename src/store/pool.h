/*
 * pool.h - threads that execute requests to a store.
 *
 *      any thread                          pool threads
 *      store_pool_post ──┐   due    ┌──>  store_put, store_get ... ──> request->done
 *      store_pool_post ──┼─> queue ─┤
 *      store_pool_post ──┘          └──>  one thread for urgent requests only
 *
 * The functions of a store block. A thread that must not block posts a request instead, and
 * `done` brings the answer. The caller owns the request and its memory; the pool keeps no copy.
 * A store that does not block (store_ops.begin) needs no threads: the pool gives it each request
 * at once.
 *
 *  POOL-1  `done` is called exactly once for each request that was posted, by a pool thread or,
 *          for a cancelled one, by the thread that closes the pool. No lock is held; `done` may
 *          post the request again or free it.
 *  POOL-2  A request begins when `due` has come. Of the requests that may begin, urgent ones come
 *          first, then the earliest due, then the first posted. A request for a beat is urgent:
 *          it never waits behind a row of large gets.
 *  POOL-3  At most `max` requests wait or run. One more is refused with SLU_EQFULL.
 *  POOL-4  store_pool_close lets the running requests finish, and ends the waiting ones with
 *          STORE_FAILED and SLU_ECANCELED: they have not begun. After it returns no `done` runs.
 *  POOL-5  store_pool_cancel ends a request that waits in the same way. A request that runs goes
 *          on. So a user of a pool that others share can end: it cancels its requests, and waits
 *          until each was done.
 *
 *  POOL-6  A pool may have a budget of puts each second. The pool refuses and delays no put: it
 *          says how long its users should wait until their next one (store_pool_rest). A second's
 *          puts may be spent at once. Puts in the mode STORE_REPLACE are free.
 *
 * Requests run at the same time and in any order. Times are of clock_boot.
 */
#ifndef STORE_POOL_H
#define STORE_POOL_H

#include "base/list.h"
#include "store/store.h"

struct store_pool;

struct store_request {
	/* The question. The pool does not change it. */
	enum store_verb verb;
	char name[STORE_NAME_MAX];  /* LIST: the prefix of the names */
	char after[STORE_NAME_MAX]; /* LIST: only names behind this one */
	struct slice object;        /* PUT: borrowed until done */
	struct slice more;          /* REMOVE: further names, for store_remove_all; borrowed until done */
	enum store_mode mode;       /* PUT */
	uint64_t at;                /* GET: the first byte */
	size_t max;                 /* GET: bytes; LIST: names, up to STORE_PAGE_MAX; 0 = as many as possible */
	slu_time due;               /* begin then at the earliest; 0 = now */
	bool urgent;                /* POOL-2 */
	void (*done)(struct store_request *r);

	/* The answer. */
	enum store_result result;
	struct slu_err err;       /* if result is STORE_FAILED or STORE_REFUSED */
	struct buf bytes;         /* GET; the pool clears it first */
	uint64_t size;            /* GET: of the whole object */
	struct store_names names; /* LIST; the pool clears it first */
	slu_time wall;            /* CLOCK */
	slu_time took;            /* how long the store needed */

	/* Inner. */
	struct list node;
	struct store_pool *pool;
	bool posted;
};

struct store_pool_conf {
	struct store *store; /* borrowed; the caller closes it after the pool */
	unsigned threads;    /* 2 or more: one of them is for urgent requests */
	unsigned max;        /* POOL-3 */
	unsigned puts;       /* POOL-6: each second; 0 = no budget */
	struct clock *clock; /* NULL: clock_system */
};

/* Zeroes the request and sets the limit of its answer. */
void store_request_init(struct store_request *r);
void store_request_release(struct store_request *r); /* frees its answer */

/* Executes r on the calling thread, which may block. Does not wait for r->due, or call r->done. */
void store_execute(struct store *s, struct store_request *r, struct clock *clock);

/* Starts the threads. Returns SLU_ENOMEM, or SLU_EDOWN if the system has no more threads. */
int store_pool_open(struct store_pool **out, const struct store_pool_conf *conf,
		    struct slu_err *err);
void store_pool_close(struct store_pool *p); /* POOL-4; NULL is fine */

/* Executes r and calls r->done. Returns SLU_EQFULL, or SLU_ECLOSED after store_pool_close began;
 * then `done` is not called. */
int store_pool_post(struct store_pool *p, struct store_request *r, struct slu_err *err);

/* For stores with store_ops.begin: the request has its answer. Calls r->done. */
void store_pool_end(struct store_request *r);

/* POOL-5. Does nothing if r is not posted. Not while the pool closes. */
void store_pool_cancel(struct store_pool *p, struct store_request *r);

/* POOL-6: how long a user that gathers changes should wait until its next put; 0 = not at all. */
slu_time store_pool_rest(struct store_pool *p);

/* Requests that wait or run. */
unsigned store_pool_count(struct store_pool *p);

#endif
