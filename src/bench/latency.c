#include "bench/latency.h"

#include "bench/bench.h"
#include "client/remote.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* How long the consumer gets to send its next request before a message is sent. */
#define SETTLE (500 * SLU_US)

struct consumer {
	const struct served *served;
	char queue[48];
	pthread_t thread;

	/* Shared. */
	_Atomic uint64_t ready;  /* messages acked: the next wait begins */
	_Atomic uint64_t got;    /* messages received */
	_Atomic slu_time got_at; /* when the last of them was */
	_Atomic bool stopping;
	_Atomic int rc;
};

static void
sleep_for(slu_time t)
{
	nanosleep(&(struct timespec){ t / SLU_SEC, t % SLU_SEC }, NULL);
}

static int
consume_one(struct consumer *c, struct remote *rem, struct remote_messages *got,
	    struct slu_err *err)
{
	const struct remote_claim claim = {
		.space = "bench", .queue = c->queue, .limit = 1, .wait = SLU_SEC
	};
	int rc = remote_dequeue(rem, &claim, got, err);

	if (rc || got->n == 0)
		return rc;
	atomic_store(&c->got_at, bench_now());
	atomic_fetch_add(&c->got, 1);
	rc = remote_settle(rem, REMOTE_ACK,
			   &(struct remote_settle){
				   .space = "bench",
				   .queue = c->queue,
				   .id = got->items[0].id,
				   .token = got->items[0].fencing_token,
			   },
			   err);
	atomic_fetch_add(&c->ready, 1);
	return rc;
}

static void *
consume(void *arg)
{
	struct consumer *c = arg;
	struct remote_messages got = { 0 };
	struct remote rem;
	struct slu_err err;
	int rc = 0;

	remote_init(&rem, &c->served->address, 30 * SLU_SEC, -1);
	while (!rc && !atomic_load(&c->stopping))
		rc = consume_one(c, &rem, &got, &err);
	atomic_store(&c->rc, rc);
	remote_messages_release(&got);
	remote_release(&rem);
	return NULL;
}

static int
produce_one(struct consumer *c, struct remote *rem, struct slice payload, uint64_t n,
	    struct figures *f, struct slu_err *err)
{
	slu_time begin, durable;
	uint64_t id;
	int rc;

	while (atomic_load(&c->ready) < n && !atomic_load(&c->rc))
		sleep_for(20 * SLU_US);
	sleep_for(SETTLE);
	remote_put_begin(rem);
	remote_put(rem, &(struct remote_put){ .space = "bench", .queue = c->queue, .payload = payload });
	begin = bench_now();
	rc = remote_put_send(rem, &id, err);
	durable = bench_now();
	while (!rc && atomic_load(&c->got) <= n && !atomic_load(&c->rc))
		sleep_for(20 * SLU_US);
	hist_add(&f->took, durable - begin);
	hist_add(&f->after, atomic_load(&c->got_at) - durable);
	return rc ? rc : atomic_load(&c->rc);
}

static int
produce(struct consumer *c, const struct scenario_conf *conf, struct figures *f,
	struct slu_err *err)
{
	const slu_time begin = bench_now();
	struct remote rem;
	struct buf payload;
	int rc = 0;

	buf_init(&payload, conf->size + 1);
	for (unsigned i = 0; i < conf->size; i++)
		buf_putc(&payload, 'x');
	remote_init(&rem, &c->served->address, 30 * SLU_SEC, -1);
	while (!rc && f->messages < conf->messages && bench_now() < begin + conf->duration) {
		rc = produce_one(c, &rem, buf_slice(&payload), f->messages, f, err);
		f->messages++;
	}
	f->elapsed = bench_now() - begin;
	buf_release(&payload);
	remote_release(&rem);
	return rc;
}

int
latency_run(const struct served *s, const struct scenario_conf *conf, struct figures *f,
	    struct slu_err *err)
{
	const slu_time before = served_cpu(s);
	struct consumer c = { .served = s };
	slu_time after;
	int rc;

	(void)snprintf(c.queue, sizeof c.queue, "latency-%ld", (long)getpid());
	if (pthread_create(&c.thread, NULL, consume, &c) != 0)
		return slu_fail(err, SLU_EFAILED, "no thread");
	rc = produce(&c, conf, f, err);
	atomic_store(&c.stopping, true);
	pthread_join(c.thread, NULL);
	after = served_cpu(s);
	f->cpu = before >= 0 && after >= 0 ? after - before : -1;
	return rc;
}
