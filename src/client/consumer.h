/*
 * consumer.h - the inside of a service: its workers and their threads.
 *
 *      service ──> worker (a config) ──> thread: receive ─> handle ─> settle ─> receive ...
 *         │           ├── stop_fd: readable = its threads end
 *         │           └── pause_fd: readable = its threads receive nothing, or end (service_beat.c)
 *         └──> keeper: extends the leases of all current deliveries
 *
 * A worker with a permanent error, or with too many failures, ends all its threads; the other workers
 * continue.
 */
#ifndef CLIENT_CONSUMER_H
#define CLIENT_CONSUMER_H

#include "client/beat.h"
#include "client/receive.h"

#include <sluice/consumer.h>

enum {
	WORKER_NAMES = 16 << 10 /* bytes of the names of its kinds */
};

struct worker {
	/* Set before the threads start. */
	struct slu_service *service;
	struct slu_client *client;
	struct slu_consumer conf; /* a copy: the worker owns its strings; zeros are replaced by defaults */
	char owner[CLIENT_OWNER_TEXT];
	struct buf names; /* of the kinds in conf, with commas */
	pthread_t *threads;
	unsigned started; /* how many workers */
	int stop_fd;
	int pause_fd;
	char instance[BEAT_INSTANCE];

	/* Shared. */
	_Atomic bool quiet;    /* an operator asked it to take nothing */
	_Atomic unsigned used; /* how many threads have deliveries */
	_Atomic unsigned lost; /* how many leases were lost */
	_Atomic unsigned late; /* how many were extended late: client/keeper.h */
	struct kept beat;
	bool beats; /* `beat` is with the keeper */

	/* Shared, under the service's mtx. */
	unsigned alive; /* how many threads run */
	int rc;         /* why it ended by itself; 0 = it did not */
	struct slu_err err;
};

struct slu_service {
	uint32_t born; /* forked.h */
	struct slu_client *client;
	struct worker *workers;
	size_t n;
	struct keeper keeper;

	pthread_mutex_t mtx;
	pthread_cond_t changed;
	bool running; /* true from start until a wait has seen the end */
	bool reaping; /* a caller is joining the threads */
	unsigned alive;
};

/* The function of a thread; arg is a struct worker. */
void *consumer_main(void *arg);

/* Ends the threads of the worker, with the reason. */
void worker_end(struct worker *w, int rc, const struct slu_err *err);
bool worker_is_ending(const struct worker *w);
void worker_ask_to_end(const struct worker *w);

/* Beats from now on, until worker_beat_stop. */
void worker_beat_start(struct worker *w);
void worker_beat_stop(struct worker *w);

/* Ends the waits of its threads for messages. */
void worker_wake(const struct worker *w);

/* Runs the handler for a delivery while its lease is extended, and settles it. Takes d. */
void worker_handle(struct worker *w, struct slu_delivery *d);

/* Returns a delivery that is not handled any more, without counting an attempt. Takes d. */
void worker_return(struct worker *w, struct slu_delivery *d);

/* Calls a hook, which may be NULL. A panic in a hook is reported to on_error. */
void worker_tell(struct worker *w, slu_consumer_hook *hook, const struct slu_consumer_event *e);
void worker_tell_error(struct worker *w, const struct slu_err *err);

/* The pause before the next try, after that many failures in a row. */
slu_time restart_pause(const struct slu_restart *r, unsigned failures);

#endif
