#include "bench/scenario.h"

#include "base/mem.h"
#include "bench/bench.h"
#include "bench/latency.h"
#include "bench/load.h"
#include "bench/lockd.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	FILL_BATCH = 1000,
	REQUEST_MAX = 64 * 1024 * 1024,
	TAKE_MAX = 16 * 1024
};

/* What the connections of a scenario share. */
struct shared {
	const struct scenario_conf *conf;
	char queue[SCENARIO_QUEUE + 1];
	struct buf put, take; /* whole requests */
	uint64_t messages;    /* done */
	uint64_t wanted;      /* 0: as many as there is time for */
};

/* --- requests ------------------------------------------------------------------- */

void
scenario_token(struct buf *out, const char *token)
{
	if (token)
		buf_printf(out, "Authorization: Bearer %s\r\n", token);
}

static void
write_request(struct buf *out, const char *path, const char *token, const struct buf *body)
{
	buf_printf(out, "POST %s HTTP/1.1\r\nHost: localhost\r\n", path);
	scenario_token(out, token);
	buf_printf(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n", body->n);
	buf_put(out, body->p, body->n);
}

/* A payload of letters, sent as text: what a JSON service would send. */
static void
write_put(struct buf *out, const char *queue, const char *token, unsigned batch,
	  unsigned size)
{
	struct buf body;

	buf_init(&body, REQUEST_MAX);
	for (unsigned i = 0; i < batch; i++) {
		buf_printf(&body, "%s{\"namespace\":\"bench\",\"topic\":\"%s\",\"text\":\"",
			   i ? "," : "[", queue);
		for (unsigned k = 0; k < size; k++)
			buf_putc(&body, (char)('a' + (i + k) % 26));
		buf_puts(&body, "\"}");
	}
	buf_putc(&body, ']');
	write_request(out, "/enqueue", token, &body);
	out->failed |= body.failed;
	buf_release(&body);
}

void
scenario_request(struct buf *out, unsigned size)
{
	write_put(out, "bench-12345-1", NULL, 1, size);
}

/* queue NULL: one of this run. */
static int
shared_init(struct shared *s, const struct scenario_conf *conf, const char *queue,
	    unsigned put_batch, struct slu_err *err)
{
	static unsigned count;

	*s = (struct shared){ .conf = conf };
	if (queue)
		(void)snprintf(s->queue, sizeof s->queue, "%s", queue);
	else
		(void)snprintf(s->queue, sizeof s->queue, "bench-%ld-%u", (long)getpid(), ++count);
	buf_init(&s->put, REQUEST_MAX);
	buf_init(&s->take, TAKE_MAX);
	write_put(&s->put, s->queue, conf->token, put_batch, conf->size);
	buf_printf(&s->take,
		   "GET /dequeue?namespace=bench&topic=%s&limit=%u&lease=10m HTTP/1.1\r\n"
		   "Host: localhost\r\n",
		   s->queue, conf->batch);
	scenario_token(&s->take, conf->token);
	buf_puts(&s->take, "\r\n");
	if (s->put.failed || s->take.failed)
		return slu_fail(err, SLU_ETOOBIG, "batch and size make a request too large");
	return 0;
}

static void
shared_release(struct shared *s)
{
	buf_release(&s->put);
	buf_release(&s->take);
}

/* --- acks ----------------------------------------------------------------------- */

static const char *
after(struct slice *in, const char *mark)
{
	const size_t n = strlen(mark);
	const char *at = in->n ? memmem(in->p, in->n, mark, n) : NULL;

	if (!at)
		return NULL;
	at += n;
	in->n -= (size_t)(at - in->p);
	in->p = at;
	return at;
}

/* The answer to a dequeue as the body of an ack. Only two members of each message are
 * looked for: reading JSON in full would cost this side as much as the server. Returns
 * how many there are. */
static unsigned
write_acks(struct buf *out, const char *queue, struct slice in)
{
	unsigned n = 0;

	while (after(&in, "{\"id\":")) {
		const uint64_t id = strtoull(in.p, NULL, 10);

		if (!after(&in, "\"fencing_token\":"))
			break;
		buf_printf(out, "%s{\"id\":%" PRIu64 ",\"namespace\":\"bench\",\"topic\":\"%s\","
				"\"fencing_token\":%" PRIu64 "}",
			   n++ ? "," : "[", id, queue, (uint64_t)strtoull(in.p, NULL, 10));
	}
	buf_putc(out, ']');
	return n;
}

/* --- what connections do -------------------------------------------------------- */

int
scenario_check(const struct load *l, struct load_conn *c, struct slu_err *err)
{
	if (c->answer.status < 300)
		return 0;
	return slu_fail(err, SLU_EFAILED, "%s answered with status %u: %.100s", l->address->text,
			c->answer.status, buf_str(&c->answer.body));
}

static bool
goes_on(const struct load *l, const struct shared *s)
{
	return s->wanted ? s->messages < s->wanted : bench_now() < l->until;
}

static bool
next_put(struct load *l, struct load_conn *c)
{
	const struct shared *s = l->arg;

	c->request = buf_slice(&s->put);
	return goes_on(l, s);
}

static int
did_put(struct load *l, struct load_conn *c, struct slu_err *err)
{
	struct shared *s = l->arg;

	s->messages += s->wanted ? FILL_BATCH : s->conf->batch;
	return scenario_check(l, c, err);
}

static bool
next_take(struct load *l, struct load_conn *c)
{
	const struct shared *s = l->arg;

	c->request = buf_slice(&s->take);
	return c->step == 0 && s->messages < s->wanted; /* or until it was empty */
}

static int
did_take(struct load *l, struct load_conn *c, struct slu_err *err)
{
	struct slice in = buf_slice(&c->answer.body);
	struct shared *s = l->arg;
	uint64_t n = 0;

	while (after(&in, "\"fencing_token\":"))
		n++;
	c->step = n == 0;
	s->messages += n;
	return scenario_check(l, c, err);
}

/* A cycle is put, take, ack; whoever takes nothing takes again. */
enum {
	CYCLE_PUT,
	CYCLE_TAKE,
	CYCLE_ACK
};

static bool
next_cycle(struct load *l, struct load_conn *c)
{
	const struct shared *s = l->arg;

	switch (c->step) {
	case CYCLE_PUT:
		c->request = buf_slice(&s->put);
		return goes_on(l, s);
	case CYCLE_TAKE:
		c->request = buf_slice(&s->take);
		return true;
	default:
		c->request = buf_slice(&c->own);
		return true;
	}
}

static int
took(const struct shared *s, struct load_conn *c, struct slu_err *err)
{
	struct buf body;
	unsigned n;

	buf_init(&body, REQUEST_MAX);
	n = write_acks(&body, s->queue, buf_slice(&c->answer.body));
	buf_clear(&c->own);
	write_request(&c->own, "/ack", s->conf->token, &body);
	c->step = n > 0 ? CYCLE_ACK : CYCLE_PUT; /* another had it: that one acks more */
	if (c->own.failed || body.failed) {
		buf_release(&body);
		return slu_fail(err, SLU_ENOMEM, "no memory for acks");
	}
	buf_release(&body);
	return 0;
}

static int
did_cycle(struct load *l, struct load_conn *c, struct slu_err *err)
{
	struct slice in = buf_slice(&c->answer.body);
	struct shared *s = l->arg;
	const int rc = scenario_check(l, c, err);

	if (rc)
		return rc;
	switch (c->step) {
	case CYCLE_PUT:
		c->step = CYCLE_TAKE;
		return 0;
	case CYCLE_TAKE:
		return took(s, c, err);
	default:
		while (after(&in, "\"status\":200"))
			s->messages++;
		c->step = CYCLE_PUT;
		return 0;
	}
}

static bool
next_healthz(struct load *l, struct load_conn *c)
{
	c->request = SLICE("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
	return bench_now() < l->until;
}

static int
did_healthz(struct load *l, struct load_conn *c, struct slu_err *err)
{
	struct shared *s = l->arg;

	s->messages++;
	return scenario_check(l, c, err);
}

/* --- scenarios ------------------------------------------------------------------ */

int
scenario_measure(const struct served *v, const struct scenario_conf *c, struct load *l,
		 struct figures *f, struct slu_err *err)
{
	const slu_time before = served_cpu(v);
	slu_time end;
	int rc;

	l->address = &v->address;
	l->hist = &f->took;
	l->fresh = c->fresh;
	l->until = bench_now() + c->duration;
	rc = load_run(l, err);
	end = served_cpu(v);
	f->cpu = before >= 0 && end >= 0 ? end - before : -1;
	f->elapsed = l->elapsed;
	return rc;
}

static int
measure(const struct served *v, struct load *l, struct figures *f, struct slu_err *err)
{
	struct shared *s = l->arg;
	int rc;

	s->messages = 0;
	rc = scenario_measure(v, s->conf, l, f, err);
	f->messages = s->messages;
	return rc;
}

/* One queue, the same requests until the time is up. */
static int
run_steps(const struct served *v, const struct scenario_conf *c, struct load l,
	  struct figures *f, struct slu_err *err)
{
	struct shared s;
	int rc = shared_init(&s, c, c->queue, c->batch, err);

	l.connections = c->connections;
	l.arg = &s;
	if (!rc)
		rc = measure(v, &l, f, err);
	shared_release(&s);
	return rc;
}

static int
run_enqueue(const struct served *v, const struct scenario_conf *c, struct figures *f,
	    struct slu_err *err)
{
	return run_steps(v, c, (struct load){ .next = next_put, .answered = did_put }, f, err);
}

static int
run_cycle(const struct served *v, const struct scenario_conf *c, struct figures *f,
	  struct slu_err *err)
{
	return run_steps(v, c, (struct load){ .next = next_cycle, .answered = did_cycle }, f, err);
}

/* The same with a queue and a number of messages that are given. */
static int
run_wanted(const struct served *v, const struct scenario_conf *c, struct load l,
	   const char *queue, uint64_t wanted, struct figures *f, struct slu_err *err)
{
	struct shared s;
	int rc = shared_init(&s, c, queue, FILL_BATCH, err);

	s.wanted = wanted;
	l.arg = &s;
	memset(f, 0, sizeof *f);
	if (!rc)
		rc = measure(v, &l, f, err);
	shared_release(&s);
	return rc;
}

int
scenario_fill(const struct served *v, const struct scenario_conf *c, const char *queue,
	      uint64_t n, struct slu_err *err)
{
	struct load l = { .connections = 4, .next = next_put, .answered = did_put };
	struct figures *f = mem_alloc(sizeof *f); /* of no interest */
	int rc;

	rc = f ? run_wanted(v, c, l, queue, n, f, err) : slu_fail(err, SLU_ENOMEM, "no memory");
	mem_free(f);
	return rc;
}

int
scenario_take(const struct served *v, const struct scenario_conf *c, const char *queue,
	      uint64_t n, struct figures *f, struct slu_err *err)
{
	struct load l = { .connections = c->connections, .next = next_take, .answered = did_take };

	return run_wanted(v, c, l, queue, n, f, err);
}

static int
run_dequeue(const struct served *v, const struct scenario_conf *c, struct figures *f,
	    struct slu_err *err)
{
	static const char queue[] = "dequeue";
	const int rc = scenario_fill(v, c, queue, c->messages, err);

	return rc ? rc : scenario_take(v, c, queue, c->messages, f, err);
}

static int
run_healthz(const struct served *v, const struct scenario_conf *c, struct figures *f,
	    struct slu_err *err)
{
	struct shared s = { .conf = c };
	struct load l = {
		.connections = c->connections, .arg = &s, .next = next_healthz, .answered = did_healthz
	};

	return measure(v, &l, f, err);
}

/* clang-format off */
const struct scenario scenarios[] = {
	{ "cycle",   "batches in, out and acked",                      run_cycle },
	{ "enqueue", "batches in",                                     run_enqueue },
	{ "dequeue", "batches out of a queue that was filled before",  run_dequeue },
	{ "latency", "one message at a time, to a consumer that waits", latency_run },
	{ "subscribe", "in, delivered over streams that stay open, acked", stream_run },
	{ "watch", "one message at a time, and a watch that tells of it", watch_run },
	{ "lock",    "leases acquired and released",                   lock_run },
	{ "healthz", "the plainest answer, to compare with",           run_healthz },
	{ NULL, NULL, NULL },
};
/* clang-format on */

const struct scenario *
scenario_find(const char *name)
{
	for (const struct scenario *s = scenarios; s->name; s++)
		if (strcmp(s->name, name) == 0)
			return s;
	return NULL;
}

double
figures_rate(const struct figures *f)
{
	return f->elapsed > 0 ? (double)f->messages * 1e9 / (double)f->elapsed : 0;
}

double
figures_cpu_each(const struct figures *f)
{
	return f->cpu >= 0 && f->messages > 0 ? (double)f->cpu / (double)f->messages : -1;
}
