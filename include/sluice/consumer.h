/*
 * consumer.h - programs that do nothing but consume: a handler for every queue, the rest
 * is done here.
 *
 *         static enum slu_verdict
 *         handle(struct slu_delivery *d, void *arg, struct slu_err *err)
 *         {
 *                 return send_mail(d) ? SLU_RETRY : SLU_DONE;
 *         }
 *
 *         const struct slu_consumer consumers[] = {
 *                 { SLU_OPTIONS_INIT(struct slu_consumer), .name = "mail", .queue = "mail", .handle = handle, .concurrency = 4 },
 *                 { SLU_OPTIONS_INIT(struct slu_consumer), .name = "bills", .queue = "bills", .handle = bill, .stateful = true },
 *         };
 *
 *         slu_service_new(&s, client, consumers, 2, &err);
 *         slu_service_run(s, &err);            until slu_service_stop, from another thread
 *         slu_service_free(s);
 *
 *      receive ──> handle ──┬── SLU_DONE    ack
 *         ^          │      ├── SLU_RETRY   nack: a failure, again after retry_delay
 *         │          │      ├── SLU_DEFER   nack: no failure, again after defer_delay
 *         │          │      └── SLU_DEAD    a dead letter
 *         │          └── meanwhile the lease is extended at half its time
 *         └── on trouble with the server: on_error, a pause, on_restart, again
 *
 *  V1  Each consumer is a worker of its own: what happens to one does not touch the
 *      others. It has `concurrency` threads, each with one delivery in its handler.
 *  V2  A server that restarts in the middle loses nothing: what was not acked comes again,
 *      and the worker goes on when it is back.
 *  V3  Trouble with the server is met as `restart` says; a handler's failure is none.
 *      What would come again for ever (a wrong name, no right to it) ends the worker.
 *  V4  slu_panic in a handler fails the delivery as `on_panic` says, and in a hook it is
 *      passed over; both go to on_error, and the worker goes on. A memory fault or abort()
 *      takes the process with it: with `in_child` the handler runs in a process of its own
 *      and only that ends. What was in hand comes again when its lease ends.
 *  V5  A delivery whose lease was lost (slu_delivery_info's until has passed and nobody
 *      could be reached) is not settled: somebody else may have it. on_error says so.
 */
#ifndef SLUICE_CONSUMER_H
#define SLUICE_CONSUMER_H

#include <sluice/client.h>
#include <sluice/panic.h>

SLU_BEGIN_DECLS

struct slu_service;

enum slu_verdict {
	SLU_DONE,
	SLU_RETRY,
	SLU_DEFER,
	SLU_DEAD
};

/* Thread: one of the consumer's; `concurrency` of them run at once (with in_child each in a
 * process of its own). err: the text goes with the nack. The delivery is settled by what is returned, unless
 * the handler has done so itself; it is not the handler's to close. */
typedef enum slu_verdict slu_consume_fn(struct slu_delivery *d, void *arg, struct slu_err *err);

/* What a hook is told. */
struct slu_consumer_event {
	const char *name;          /* of the consumer */
	const char *owner;         /* that it has */
	const struct slu_err *err; /* error, restart: what was wrong; stop: why, or NULL */
	unsigned failures;         /* restart: how many in a row */
	slu_time pause;            /* restart: before it */
};

/* Threads: on_start on the one that started the service; on_stop on the last of the consumer's
 * threads; on_error and on_restart on the thread that met the trouble, so two may run at
 * once. */
typedef void slu_consumer_hook(const struct slu_consumer_event *e, void *arg);

/* Zeros are the defaults. */
struct slu_restart {
	unsigned at_once;      /* this many times without a pause; 0: 3 */
	slu_time base;         /* then this; 0: 250 ms */
	double factor;         /* each pause so much longer; 0: 2 */
	slu_time max;          /* 0: 5 min */
	unsigned max_failures; /* in a row, then the worker ends; 0: never */
};

struct slu_consumer {
	size_t struct_size;     /* SLU_OPTIONS_INIT */
	const char *name;       /* NULL: the queue's */
	const char *queue;      /* required */
	slu_consume_fn *handle; /* required */
	void *arg;              /* for all callbacks here */
	const char *space;      /* NULL: the client's */
	const char *owner;      /* NULL: one that no other instance has */
	unsigned concurrency;   /* 0: 1; at most 256 */
	unsigned prefetch;      /* messages that a thread takes at a time; 0: 1; at most 64.
				 * What waits is kept in memory, large payloads in files */
	slu_time visibility;    /* the lease; 0: 30 s */
	bool stateful;
	bool not_extended; /* the lease is not kept alive: a handler that hangs loses it */
	slu_time retry_delay;
	slu_time defer_delay;
	enum slu_verdict on_panic; /* V4; 0 (SLU_DONE): SLU_RETRY */
	bool in_child;             /* V4; the handler shares nothing with this process but
				    * what it had when it was called, and may not use the
				    * client; slu_delivery_read works */
	struct slu_restart restart;
	slu_consumer_hook *on_start;   /* its threads run */
	slu_consumer_hook *on_stop;    /* they have ended */
	slu_consumer_hook *on_error;   /* of a delivery, or of the connection */
	slu_consumer_hook *on_restart; /* it tries again */
};

/* Copies the configs; the client is borrowed. SLU_EINVAL: which one, and why. */
SLU_API int slu_service_new(struct slu_service **out, struct slu_client *client,
			    const struct slu_consumer *consumers, size_t n,
			    struct slu_err *err);

/* Stops it first, and waits. NULL is fine; not from a handler. */
SLU_API void slu_service_free(struct slu_service *s);

/* SLU_ECONFLICT: it runs. SLU_EDOWN: no threads; then none runs. */
SLU_API int slu_service_start(struct slu_service *s, struct slu_err *err);

/* No more deliveries are begun, what runs may finish, what was received and not begun goes
 * back. Any thread, also a handler, and a signal handler. */
SLU_API void slu_service_stop(struct slu_service *s);

/* Until all workers have ended; after timeout (0: SLU_NEVER) SLU_ETIMEOUT. Otherwise 0, or
 * why the first worker ended by itself. */
SLU_API int slu_service_wait(struct slu_service *s, slu_time timeout, struct slu_err *err);

/* start, then wait. */
SLU_API int slu_service_run(struct slu_service *s, struct slu_err *err);

SLU_END_DECLS

#endif
