#include "bench/lockd.h"

#include "base/mem.h"
#include "bench/bench.h"
#include "bench/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	PREFETCH = 16, /* unsettled deliveries of a stream */
	FIELD = 64,    /* bytes of an id, a lease or an etag */
	BODY_MAX = 4 << 20
};

#define BOUNDARY "sluice-bench"

/* --- requests ------------------------------------------------------------------- */

static void
write_post(struct buf *out, const char *path, const char *token, const char *fields,
	   struct slice body)
{
	buf_printf(out, "POST %s HTTP/1.1\r\nHost: localhost\r\n%s", path, fields);
	scenario_token(out, token);
	buf_printf(out, "Content-Length: %zu\r\n\r\n", body.n);
	buf_put(out, body.p, body.n);
}

static void
write_json(struct buf *out, const char *path, const char *token, const char *body)
{
	write_post(out, path, token, "Content-Type: application/json\r\n", slice_of(body));
}

static void
write_enqueue(struct buf *out, const char *queue, const char *token, unsigned size)
{
	struct buf body;

	buf_init(&body, BODY_MAX);
	buf_printf(&body,
		   "--" BOUNDARY "\r\nContent-Type: application/json\r\n"
		   "Content-Disposition: form-data; name=\"meta\"\r\n\r\n"
		   "{\"namespace\":\"bench\",\"queue\":\"%s\"}\r\n"
		   "--" BOUNDARY "\r\nContent-Type: text/plain\r\n"
		   "Content-Disposition: form-data; name=\"payload\"\r\n\r\n",
		   queue);
	for (unsigned i = 0; i < size; i++)
		buf_putc(&body, (char)('a' + i % 26));
	buf_puts(&body, "\r\n--" BOUNDARY "--\r\n");
	write_post(out, "/v1/queue/enqueue", token,
		   "Content-Type: multipart/related; boundary=" BOUNDARY "\r\n",
		   buf_slice(&body));
	out->failed |= body.failed;
	buf_release(&body);
}

/* --- answers -------------------------------------------------------------------- */

/* Finds the text after mark, up to a quote or comma. Returns false if it is missing. Parsing all JSON would
 * cost as much as the server's work, so only the needed values are searched. */
static bool
find(struct slice in, const char *mark, char out[static FIELD])
{
	size_t n = 0;

	if (!slice_skip_past(&in, mark))
		return false;
	while (n < in.n && n < FIELD - 1 && !strchr("\",}\r", in.p[n]))
		n++;
	memcpy(out, in.p, n);
	out[n] = '\0';
	return n < in.n;
}

struct stream_delivery {
	char id[FIELD], lease[FIELD], token[FIELD], etag[FIELD], txn[FIELD];
};

/* Reads the first delivery of a stream. Returns its bytes, or 0 if it is not complete. */
static size_t
read_delivery(struct slice in, struct stream_delivery *out)
{
	struct slice rest = in, meta;
	uint64_t n;

	if (!slice_skip_past(&rest, "{\"message\":"))
		return 0;
	meta = rest;
	if (!slice_skip_past(&rest, "Content-Length: "))
		return 0;
	meta.n -= rest.n;
	n = strtoull(rest.p, NULL, 10);
	if (!slice_skip_past(&rest, "\r\n\r\n") || rest.n < n)
		return 0;
	if (!find(meta, "\"message_id\":\"", out->id) || !find(meta, "\"lease_id\":\"", out->lease) ||
	    !find(meta, "\"fencing_token\":", out->token) || !find(meta, "\"meta_etag\":\"", out->etag) ||
	    !find(meta, "\"txn_id\":\"", out->txn))
		return 0;
	return in.n - rest.n + n;
}

/* --- subscribe ------------------------------------------------------------------ */

/* Connections by their index: producers, streams, acks. */
enum role {
	PRODUCER,
	STREAM,
	ACKS
};

/* The deliveries that a consumer has to ack. */
struct stream_consumer {
	struct stream_delivery waiting[PREFETCH];
	unsigned first, n;
};

struct streams {
	const struct scenario_conf *conf;
	struct figures *figures;
	char queue[48];
	struct buf put, subscribe;
	struct stream_consumer *consumers;
	uint64_t accepted, acked;
	unsigned producers; /* how many producers still run */
	slu_time durable;   /* when the last message was durable */
};

static enum role
role_of(const struct streams *s, const struct load_conn *c)
{
	return (enum role)(c->index / s->conf->connections);
}

static bool
one_at_a_time(const struct streams *s)
{
	return s->conf->connections == 1;
}

static struct load_conn *
partner(const struct load *l, const struct load_conn *c, enum role role)
{
	const struct streams *s = l->arg;
	const unsigned n = s->conf->connections;

	return &l->conns[c->index % n + n * role];
}

static void
check_end(struct load *l, const struct streams *s)
{
	l->quit = s->producers == 0 && s->acked == s->accepted;
}

static bool
next_put(struct load *l, struct streams *s, struct load_conn *c)
{
	if (bench_now() >= l->until) {
		s->producers--;
		check_end(l, s);
		return false;
	}
	if (!one_at_a_time(s) || s->acked == s->accepted)
		c->request = buf_slice(&s->put);
	return true;
}

static void
write_ack(struct load_conn *c, const char *token, const char *queue, const struct stream_delivery *d)
{
	char body[512];

	(void)snprintf(body, sizeof body,
		       "{\"namespace\":\"bench\",\"queue\":\"%s\",\"message_id\":\"%s\","
		       "\"lease_id\":\"%s\",\"fencing_token\":%s,\"meta_etag\":\"%s\","
		       "\"txn_id\":\"%s\"}",
		       queue, d->id, d->lease, d->token, d->etag, d->txn); /* fits */
	buf_clear(&c->own);
	write_json(&c->own, "/v1/queue/ack", token, body);
}

static void
next_ack(struct streams *s, struct load_conn *c)
{
	struct stream_consumer *who = &s->consumers[c->index % s->conf->connections];
	const struct stream_delivery *d = &who->waiting[who->first];

	if (who->n == 0)
		return;
	write_ack(c, s->conf->token, s->queue, d);
	who->first = (who->first + 1) % PREFETCH;
	who->n--;
	c->request = buf_slice(&c->own);
}

static bool
next_stream(struct load *l, struct load_conn *c)
{
	struct streams *s = l->arg;

	switch (role_of(s, c)) {
	case PRODUCER:
		return next_put(l, s, c);
	case STREAM:
		c->request = buf_slice(&s->subscribe);
		return true;
	default:
		next_ack(s, c);
		return true;
	}
}

static int
did_stream(struct load *l, struct load_conn *c, struct slu_err *err)
{
	struct streams *s = l->arg;
	const int rc = scenario_check(l, c, err);

	if (rc)
		return rc;
	switch (role_of(s, c)) {
	case PRODUCER:
		s->accepted++;
		s->durable = bench_now();
		return 0;
	case ACKS:
		s->acked++;
		check_end(l, s);
		return one_at_a_time(s) ? load_go(l, partner(l, c, PRODUCER), err) : 0;
	default:
		return slu_fail(err, SLU_EFAILED, "%s ended a stream", l->address->text);
	}
}

static int
take(struct load *l, struct load_conn *c, const struct stream_delivery *d, struct slu_err *err)
{
	struct streams *s = l->arg;
	struct stream_consumer *who = &s->consumers[c->index % s->conf->connections];

	if (who->n == PREFETCH)
		return slu_fail(err, SLU_EFAILED, "%s delivered more than %d unsettled messages",
				l->address->text, PREFETCH);
	who->waiting[(who->first + who->n++) % PREFETCH] = *d;
	if (one_at_a_time(s) && s->durable)
		hist_add(&s->figures->after, bench_now() - s->durable);
	return load_go(l, partner(l, c, ACKS), err);
}

static int
more_of_stream(struct load *l, struct load_conn *c, struct slu_err *err)
{
	struct slice in = buf_slice(&c->answer.body);
	struct stream_delivery d;
	size_t n;
	int rc = 0;

	while (!rc && (n = read_delivery(in, &d)) > 0) {
		slice_skip(&in, n);
		rc = take(l, c, &d, err);
	}
	memmove(c->answer.body.p, in.p, in.n);
	c->answer.body.n = in.n;
	return rc;
}

static int
more_stream(struct load *l, struct load_conn *c, struct slu_err *err)
{
	struct streams *s = l->arg;

	if (c->answer.body.n == 0 || c->answer.status >= 300 || role_of(s, c) != STREAM)
		return 0;
	return more_of_stream(l, c, err);
}

/* Writes a request about a queue. */
static void
write_about(struct buf *out, const char *path, const char *token, const char *queue, int wait)
{
	char body[256];

	(void)snprintf(body, sizeof body,
		       "{\"namespace\":\"bench\",\"queue\":\"%s\",\"owner\":\"bench\","
		       "\"page_size\":%d,\"visibility_timeout_seconds\":600,\"wait_seconds\":%d}",
		       queue, PREFETCH, wait);
	buf_init(out, BODY_MAX);
	write_json(out, path, token, body);
}

static int
streams_init(struct streams *s, const struct scenario_conf *conf, struct figures *f,
	     struct slu_err *err)
{
	*s = (struct streams){ .conf = conf, .figures = f, .producers = conf->connections };
	(void)snprintf(s->queue, sizeof s->queue, "stream-%ld", (long)getpid());
	buf_init(&s->put, BODY_MAX);
	write_enqueue(&s->put, s->queue, conf->token, conf->size);
	write_about(&s->subscribe, "/v1/queue/subscribe", conf->token, s->queue, 0);
	s->consumers = mem_array(conf->connections, sizeof *s->consumers);
	if (!s->consumers || s->put.failed || s->subscribe.failed)
		return slu_fail(err, SLU_ENOMEM, "no memory for %u consumers", conf->connections);
	return 0;
}

int
stream_run(const struct served *v, const struct scenario_conf *c, struct figures *f,
	   struct slu_err *err)
{
	struct streams s;
	struct load l = {
		.connections = 3 * c->connections,
		.arg = &s,
		.next = next_stream,
		.answered = did_stream,
		.more = more_stream,
	};
	int rc = streams_init(&s, c, f, err);

	if (!rc)
		rc = scenario_measure(v, c, &l, f, err);
	f->messages = s.acked;
	buf_release(&s.put);
	buf_release(&s.subscribe);
	mem_free(s.consumers);
	return rc;
}

/* --- watch ---------------------------------------------------------------------- */

/* One message at a time: enqueued, reported by the watch, then taken and acked. */
enum {
	WATCH_PRODUCER,
	WATCH_WATCH,
	WATCH_CONSUMER,
	WATCH_CONNECTIONS
};

struct watch_load {
	const struct scenario_conf *conf;
	struct figures *figures;
	char queue[48];
	struct buf put, watch, take;
	slu_time durable;
	bool told;   /* the watch reported the message */
	bool answer; /* the enqueue of the message was answered */
	uint64_t done;
};

/* step of the consumer: 0 it waits, 1 it takes, 2 it acks. Of the producer: 0 it may
 * send, 1 it waits for the ack. */
static bool
next_watching(struct load *l, struct load_conn *c)
{
	struct watch_load *w = l->arg;

	if (c->index == WATCH_WATCH)
		c->request = buf_slice(&w->watch);
	else if (c->index == WATCH_CONSUMER && c->step > 0)
		c->request = c->step == 1 ? buf_slice(&w->take) : buf_slice(&c->own);
	else if (c->index == WATCH_PRODUCER && c->step == 0)
		c->request = buf_slice(&w->put);
	l->quit |= c->index == WATCH_PRODUCER && c->step == 0 && bench_now() >= l->until;
	return !l->quit;
}

/* Takes the message once its enqueue was answered and the watch reported it. */
static int
take_watched(struct load *l, struct watch_load *w, struct slu_err *err)
{
	if (!w->told || !w->answer)
		return 0;
	l->conns[WATCH_CONSUMER].step = 1;
	return load_go(l, &l->conns[WATCH_CONSUMER], err);
}

static int
did_take_watched(struct watch_load *w, struct load_conn *c, struct slu_err *err)
{
	struct stream_delivery d;

	if (read_delivery(buf_slice(&c->answer.body), &d) == 0)
		return slu_fail(err, SLU_EFAILED, "a reported message is missing: %.100s",
				buf_str(&c->answer.body));
	write_ack(c, w->conf->token, w->queue, &d);
	c->step = 2;
	return 0;
}

static int
did_watching(struct load *l, struct load_conn *c, struct slu_err *err)
{
	struct watch_load *w = l->arg;
	const int rc = scenario_check(l, c, err);

	if (rc)
		return rc;
	if (c->index == WATCH_PRODUCER) {
		w->durable = bench_now();
		w->answer = true;
		c->step = 1;
		if (w->told) /* before the answer of the enqueue: counts as 0 */
			hist_add(&w->figures->seen, 0);
		return take_watched(l, w, err);
	}
	if (c->step == 1)
		return did_take_watched(w, c, err);
	w->done++;
	w->told = w->answer = false;
	c->step = 0;
	l->conns[WATCH_PRODUCER].step = 0;
	return load_go(l, &l->conns[WATCH_PRODUCER], err);
}

static int
more_watching(struct load *l, struct load_conn *c, struct slu_err *err)
{
	struct watch_load *w = l->arg;
	const struct buf *body = &c->answer.body;
	const bool told = body->n > 0 && memmem(body->p, body->n, "\"available\":true", 16);

	if (c->index != WATCH_WATCH)
		return 0;
	buf_clear(&c->answer.body);
	if (!told || w->told)
		return 0;
	w->told = true;
	if (w->answer)
		hist_add(&w->figures->seen, bench_now() - w->durable);
	return take_watched(l, w, err);
}

int
watch_run(const struct served *v, const struct scenario_conf *c, struct figures *f,
	  struct slu_err *err)
{
	struct watch_load w = { .conf = c, .figures = f };
	struct load l = {
		.connections = WATCH_CONNECTIONS,
		.arg = &w,
		.next = next_watching,
		.answered = did_watching,
		.more = more_watching,
	};
	int rc = 0;

	(void)snprintf(w.queue, sizeof w.queue, "watch-%ld", (long)getpid());
	buf_init(&w.put, BODY_MAX);
	write_enqueue(&w.put, w.queue, c->token, c->size);
	write_about(&w.watch, "/v1/queue/watch", c->token, w.queue, 0);
	write_about(&w.take, "/v1/queue/dequeue", c->token, w.queue, -1);
	if (w.put.failed || w.watch.failed || w.take.failed)
		rc = slu_fail(err, SLU_ENOMEM, "no memory for a request");
	if (!rc)
		rc = scenario_measure(v, c, &l, f, err);
	f->messages = w.done;
	buf_release(&w.put);
	buf_release(&w.watch);
	buf_release(&w.take);
	return rc;
}

/* --- lock ----------------------------------------------------------------------- */

struct lock_load {
	const struct scenario_conf *conf;
	uint64_t released;
};

static void
write_acquire(const struct lock_load *s, struct load_conn *c)
{
	char body[256];

	(void)snprintf(body, sizeof body,
		       "{\"namespace\":\"bench\",\"key\":\"bench/%u\",\"ttl_seconds\":60,"
		       "\"owner\":\"bench-%u\",\"block_seconds\":-1}",
		       c->index, c->index);
	write_json(&c->own, "/v1/acquire", s->conf->token, body);
}

static int
write_release(const struct lock_load *s, struct load_conn *c, struct slu_err *err)
{
	const struct slice in = buf_slice(&c->answer.body);
	char lease[FIELD], txn[FIELD], token[FIELD], fields[256], body[256];

	if (!find(in, "\"lease_id\":\"", lease) || !find(in, "\"txn_id\":\"", txn) ||
	    !find(in, "\"fencing_token\":", token))
		return slu_fail(err, SLU_EFAILED, "an acquire was answered without a lease: %.100s",
				buf_str(&c->answer.body));
	(void)snprintf(fields, sizeof fields,
		       "Content-Type: application/json\r\nX-Fencing-Token: %s\r\n", token);
	(void)snprintf(body, sizeof body,
		       "{\"namespace\":\"bench\",\"key\":\"bench/%u\",\"lease_id\":\"%s\","
		       "\"txn_id\":\"%s\"}",
		       c->index, lease, txn);
	buf_clear(&c->own);
	write_post(&c->own, "/v1/release", s->conf->token, fields, slice_of(body));
	return 0;
}

/* step: 0 = acquire next, 1 = release next. */
static bool
next_lock(struct load *l, struct load_conn *c)
{
	struct lock_load *s = l->arg;

	if (c->step == 0) {
		buf_clear(&c->own);
		write_acquire(s, c);
	}
	c->request = buf_slice(&c->own);
	return c->step == 1 || bench_now() < l->until;
}

static int
did_lock(struct load *l, struct load_conn *c, struct slu_err *err)
{
	struct lock_load *s = l->arg;
	int rc = scenario_check(l, c, err);

	if (!rc && c->step == 0)
		rc = write_release(s, c, err);
	s->released += !rc && c->step == 1;
	c->step = !c->step;
	return rc;
}

int
lock_run(const struct served *v, const struct scenario_conf *c, struct figures *f,
	 struct slu_err *err)
{
	struct lock_load s = { .conf = c };
	struct load l = {
		.connections = c->connections, .arg = &s, .next = next_lock, .answered = did_lock
	};
	const int rc = scenario_measure(v, c, &l, f, err);

	f->messages = s.released;
	return rc;
}
