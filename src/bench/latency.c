#include "bench/latency.h"

#include "bench/bench.h"

#include <sluice/client.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* The time for the consumer to send its next request before a message is sent. */
#define SETTLE (500 * SLU_US)

struct latency_consumer {
	struct slu_client *client;
	char queue[48];
	pthread_t thread;

	/* Shared. */
	_Atomic uint64_t ready;  /* how many messages were acked: the next wait begins */
	_Atomic uint64_t got;    /* how many messages were received */
	_Atomic slu_time got_at; /* when the last one was received */
	_Atomic bool stopping;
	_Atomic int rc;
};

static void
sleep_for(slu_time t)
{
	nanosleep(&(struct timespec){ t / SLU_SEC, t % SLU_SEC }, NULL);
}

static int
consume_one(struct latency_consumer *c, struct slu_client_messages *got, struct slu_err *err)
{
	const struct slu_client_claim claim = { SLU_OPTIONS_INIT(struct slu_client_claim), .limit = 1, .wait = SLU_SEC };
	struct slu_settle done = { SLU_OPTIONS_INIT(struct slu_settle) };
	int rc = slu_client_dequeue(c->client, c->queue, &claim, got, NULL, err);

	if (rc || got->n == 0)
		return rc;
	atomic_store(&c->got_at, bench_now());
	atomic_fetch_add(&c->got, 1);
	done.id = got->items[0].id;
	done.fencing_token = got->items[0].fencing_token;
	rc = slu_client_settle(c->client, SLU_ACK, c->queue, &done, 1, NULL, err);
	atomic_fetch_add(&c->ready, 1);
	return rc;
}

static void *
consume(void *arg)
{
	struct latency_consumer *c = arg;
	struct slu_client_messages got = { 0 };
	struct slu_err err;
	int rc = 0;

	while (!rc && !atomic_load(&c->stopping))
		rc = consume_one(c, &got, &err);
	atomic_store(&c->rc, rc);
	slu_client_messages_release(&got);
	return NULL;
}

static int
produce_one(struct latency_consumer *c, struct slice payload, uint64_t n, struct figures *f,
	    struct slu_err *err)
{
	struct slu_client_put put = { SLU_OPTIONS_INIT(struct slu_client_put), .payload = payload.p, .size = payload.n };
	slu_time begin, durable;
	int rc;

	while (atomic_load(&c->ready) < n && !atomic_load(&c->rc))
		sleep_for(20 * SLU_US);
	sleep_for(SETTLE);
	begin = bench_now();
	rc = slu_client_enqueue(c->client, c->queue, &put, 1, NULL, err);
	durable = bench_now();
	while (!rc && atomic_load(&c->got) <= n && !atomic_load(&c->rc))
		sleep_for(20 * SLU_US);
	hist_add(&f->took, durable - begin);
	hist_add(&f->after, atomic_load(&c->got_at) - durable);
	return rc ? rc : atomic_load(&c->rc);
}

static int
produce(struct latency_consumer *c, const struct scenario_conf *conf, struct figures *f,
	struct slu_err *err)
{
	const slu_time begin = bench_now();
	struct buf payload;
	int rc = 0;

	buf_init(&payload, conf->size + 1);
	for (unsigned i = 0; i < conf->size; i++)
		buf_putc(&payload, 'x');
	while (!rc && f->messages < conf->messages && bench_now() < begin + conf->duration) {
		rc = produce_one(c, buf_slice(&payload), f->messages, f, err);
		f->messages++;
	}
	f->elapsed = bench_now() - begin;
	buf_release(&payload);
	return rc;
}

int
latency_run(const struct served *s, const struct scenario_conf *conf, struct figures *f,
	    struct slu_err *err)
{
	const slu_time before = served_cpu(s);
	const struct slu_client_config config = {
		SLU_OPTIONS_INIT(struct slu_client_config),
		.servers = s->address.text,
		.space = "bench",
		.token = s->address.token,
		.patience = -1,
	};
	struct latency_consumer c = { 0 };
	slu_time after;
	int rc = slu_client_new(&c.client, &config, err);

	if (rc)
		return rc;
	(void)snprintf(c.queue, sizeof c.queue, "latency-%ld", (long)getpid());
	if (pthread_create(&c.thread, NULL, consume, &c) != 0) {
		slu_client_free(c.client);
		return slu_fail(err, SLU_EFAILED, "cannot start a thread");
	}
	rc = produce(&c, conf, f, err);
	atomic_store(&c.stopping, true);
	pthread_join(c.thread, NULL);
	slu_client_free(c.client);
	after = served_cpu(s);
	f->cpu = before >= 0 && after >= 0 ? after - before : -1;
	return rc;
}
