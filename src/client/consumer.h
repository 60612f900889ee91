/*
 * consumer.h - the inside of a service: its workers, and the threads that each has.
 *
 *      service ──> worker (a config) ──> thread: receive ─> handle ─> settle ─> receive ...
 *         │           └── stop_fd: readable, its threads end
 *         └──> keeper: extends the leases of all deliveries in hand
 *
 * A worker that meets what would come again for ever, or has used up its failures, ends
 * all its threads; the others go on.
 */
#ifndef CLIENT_CONSUMER_H
#define CLIENT_CONSUMER_H

#include "client/receive.h"

#include <sluice/consumer.h>

struct worker {
	/* Set before the threads begin. */
	struct slu_service *service;
	struct slu_client *client;
	struct slu_consumer conf; /* its strings are the worker's; zeros are replaced */
	char owner[CLIENT_OWNER_TEXT];
	pthread_t *threads;
	unsigned started; /* of them */
	int stop_fd;

	/* Shared, under the service's mtx. */
	unsigned alive; /* threads */
	int rc;         /* why it ended by itself; 0: it did not */
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
	bool running; /* from start until a wait has seen the end */
	bool reaping; /* somebody joins the threads */
	unsigned alive;
};

/* The life of a thread; arg is a struct worker. */
void *consumer_main(void *arg);

/* The worker has no more use: its threads end, and this is why. */
void worker_end(struct worker *w, int rc, const struct slu_err *err);
bool worker_is_ending(const struct worker *w);

/* Run the handler for a delivery that is kept alive, and settle it. Takes d. */
void worker_handle(struct worker *w, struct slu_delivery *d);

/* One that is not begun any more goes back as if it had not been. Takes d. */
void worker_return(struct worker *w, struct slu_delivery *d);

/* Tell a hook, which may be NULL. A panic in one is told to on_error. */
void worker_tell(struct worker *w, slu_consumer_hook *hook, const struct slu_consumer_event *e);
void worker_tell_error(struct worker *w, const struct slu_err *err);

/* How long to wait before the next try, after that many failures in a row. */
slu_time restart_pause(const struct slu_restart *r, unsigned failures);

#endif
