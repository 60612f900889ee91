/*
 * consumer.h - for programs that only consume: they bring a handler for every queue, the service does
 * the rest.
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
 *         └── after an error of the server: on_error, a pause, on_restart, again
 *
 *  CONSUMER-1  Each consumer is a worker of its own: consumers do not affect each other. A worker
 *      has `concurrency` threads, each with one delivery in its handler.
 *  CONSUMER-2  A restart of the server loses nothing: messages that were not acked are delivered
 *      again, and the worker continues when the server is back.
 *  CONSUMER-3  After an error of the server the worker tries again by `restart`. A failure of a
 *      handler is not such an error. A permanent error (a wrong name, a missing right) ends the
 *      worker.
 *  CONSUMER-4  A slu_panic in a handler settles the delivery by `on_panic`; a slu_panic in a hook
 *      is ignored. Both are reported to on_error, and the worker continues. A memory fault or
 *      abort() ends the process. With `in_child` the handler runs in a process of its own, and
 *      only that process ends. Its message is delivered again when the lease ends.
 *  CONSUMER-5  A delivery whose lease was lost (`until` of slu_delivery_info has passed and no
 *      server answered) is not settled: another consumer may have it. on_error reports it.
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

/* The handler. It runs on a thread of the consumer; `concurrency` handlers run at once (with in_child each in
 * its own process). err: its text is sent with a nack. The result settles the delivery unless the handler
 * settled it. The handler must not close the delivery. */
typedef enum slu_verdict slu_consume_fn(struct slu_delivery *d, void *arg, struct slu_err *err);

/* The argument of a hook. */
struct slu_consumer_event {
	const char *name;          /* name of the consumer */
	const char *owner;         /* owner of its leases */
	const struct slu_err *err; /* error, restart: the error; stop: the reason, or NULL */
	unsigned failures;         /* restart: how many failures in a row */
	slu_time pause;            /* restart: the pause before it */
};

/* Threads: on_start runs on the thread that starts the service, on_stop on the last thread of the consumer,
 * on_error and on_restart on the thread with the error, so several may run at once. */
typedef void slu_consumer_hook(const struct slu_consumer_event *e, void *arg);

/* Zeros are the defaults. */
struct slu_restart {
	unsigned at_once;      /* restarts without a pause; 0 = 3 */
	slu_time base;         /* the first pause after that; 0 = 250 ms */
	double factor;         /* factor of each further pause; 0 = 2 */
	slu_time max;          /* the longest pause; 0 = 5 min */
	unsigned max_failures; /* failures in a row that end the worker; 0 = never */
};

/* A row of the table of a consumer: what handles the messages of a kind. */
struct slu_kind {
	const char *kind;
	slu_consume_fn *handle;
	void *arg; /* of the handler; NULL = the consumer's */
};

struct slu_consumer {
	size_t struct_size;     /* SLU_OPTIONS_INIT */
	const char *name;       /* NULL = the queue's name */
	const char *queue;      /* required */
	slu_consume_fn *handle; /* required, unless there is a table of kinds */
	void *arg;              /* argument of the handler and the hooks */
	const char *space;      /* NULL = the client's */
	const char *owner;      /* NULL = a unique name */
	unsigned concurrency;   /* 0 = 1; at most 256 */
	unsigned prefetch;      /* messages that a thread takes at a time; 0 = 1; at most 64. Waiting
				 * messages are in memory, large payloads in files */
	slu_time visibility;    /* length of the lease; 0 = 30 s */
	bool stateful;
	bool not_extended; /* do not extend leases: a handler that hangs loses its lease */
	slu_time retry_delay;
	slu_time defer_delay;
	enum slu_verdict on_panic; /* CONSUMER-4; 0 (SLU_DONE) = SLU_RETRY */
	bool in_child;             /* CONSUMER-4; the handler runs in a copy of this process and must not
				    * use the client; slu_delivery_read works */
	struct slu_restart restart;
	slu_consumer_hook *on_start;   /* the threads of the consumer run */
	slu_consumer_hook *on_stop;    /* the threads have ended */
	slu_consumer_hook *on_error;   /* an error of a delivery or of the connection */
	slu_consumer_hook *on_restart; /* the worker tries again */

	/* Instead of handle: the consumer takes messages of these kinds alone, and each kind has a handler of its own. Other
	 * messages stay in the queue. At most 64. */
	const struct slu_kind *kinds;
	size_t n_kinds;
};

/* Copies the consumers; the client is borrowed. Returns SLU_EINVAL, with the consumer and the reason, if one is invalid. */
SLU_API int slu_service_new(struct slu_service **out, struct slu_client *client,
			    const struct slu_consumer *consumers, size_t n,
			    struct slu_err *err);

/* Stops the service, waits and frees it. NULL is allowed. Not from a handler. */
SLU_API void slu_service_free(struct slu_service *s);

/* Returns SLU_ECONFLICT if the service runs, SLU_EDOWN if a thread cannot be started: then none runs. */
SLU_API int slu_service_start(struct slu_service *s, struct slu_err *err);

/* Stops the service: no further delivery is handled, running handlers may finish, other received messages go
 * back. Any thread may call it, also a handler or a signal handler. */
SLU_API void slu_service_stop(struct slu_service *s);

/* Waits until all workers have ended. Returns SLU_ETIMEOUT after timeout (0 = SLU_NEVER), or 0, or the error
 * that ended the first worker. */
SLU_API int slu_service_wait(struct slu_service *s, slu_time timeout, struct slu_err *err);

/* Starts the service, then waits. */
SLU_API int slu_service_run(struct slu_service *s, struct slu_err *err);

SLU_END_DECLS

#endif
