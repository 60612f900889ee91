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

/* Shared by the connections of a scenario. */
struct shared {
	const struct scenario_conf *conf;
	char queue[SCENARIO_QUEUE + 1];
	struct buf *puts, take; /* whole requests */
	unsigned n_puts;        /* more than one if the messages have names */
	unsigned turn;          /* of the next put */
	uint64_t messages;      /* how many messages are done */
	uint64_t wanted;        /* how many messages to handle; 0 = as many as there is time for */
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

/* The names of message i. */
static void
write_names(struct buf *out, const struct scenario_conf *c, unsigned i)
{
	if (c->shares)
		buf_printf(out, ",\"share\":\"s%u\"", i % c->shares);
	if (c->keys)
		buf_printf(out, ",\"key\":\"k%u\"", i % c->keys);
	if (c->hosts)
		buf_printf(out, ",\"attributes\":{\"host\":\"h%u\"}", i % c->hosts);
}

/* Writes an enqueue with payloads of letters, sent as text like a JSON service. first: number of the first message. */
static void
write_put(struct buf *out, const char *queue, const struct scenario_conf *c, unsigned first, unsigned batch)
{
	struct buf body;

	buf_init(&body, REQUEST_MAX);
	for (unsigned i = 0; i < batch; i++) {
		buf_printf(&body, "%s{\"namespace\":\"bench\",\"topic\":\"%s\",\"text\":\"",
			   i ? "," : "[", queue);
		for (unsigned k = 0; k < c->size; k++)
			buf_putc(&body, (char)('a' + (i + k) % 26));
		buf_putc(&body, '"');
		write_names(&body, c, first + i);
		buf_putc(&body, '}');
	}
	buf_putc(&body, ']');
	write_request(out, "/enqueue", c->token, &body);
	out->failed |= body.failed;
	buf_release(&body);
}

void
scenario_request(struct buf *out, unsigned size)
{
	write_put(out, "bench-12345-1", &(struct scenario_conf){ .size = size }, 0, 1);
}

/* As many requests as it takes until all names have had their turn. */
static int
write_puts(struct shared *s, unsigned batch)
{
	const struct scenario_conf *c = s->conf;
	unsigned names = c->shares > c->keys ? c->shares : c->keys;

	names = c->hosts > names ? c->hosts : names;
	s->n_puts = names > batch ? (names + batch - 1) / batch : 1;
	s->puts = mem_array(s->n_puts, sizeof *s->puts);
	if (!s->puts)
		return SLU_ENOMEM;
	for (unsigned i = 0; i < s->n_puts; i++) {
		buf_init(&s->puts[i], REQUEST_MAX);
		write_put(&s->puts[i], s->queue, c, i * batch, batch);
	}
	return s->puts[s->n_puts - 1].failed ? SLU_ETOOBIG : 0;
}

/* queue: NULL = a new one of this run. */
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
	buf_init(&s->take, TAKE_MAX);
	buf_printf(&s->take,
		   "GET /dequeue?namespace=bench&topic=%s&limit=%u&lease=10m HTTP/1.1\r\n"
		   "Host: localhost\r\n",
		   s->queue, conf->batch);
	scenario_token(&s->take, conf->token);
	buf_puts(&s->take, "\r\n");
	if (write_puts(s, put_batch) || s->take.failed)
		return slu_fail(err, SLU_ETOOBIG, "request too large; use a smaller --batch or --size");
	return 0;
}

static void
shared_release(struct shared *s)
{
	for (unsigned i = 0; s->puts && i < s->n_puts; i++)
		buf_release(&s->puts[i]);
	mem_free(s->puts);
	buf_release(&s->take);
}

/* --- acks ----------------------------------------------------------------------- */

/* Writes the body of an ack from the answer to a dequeue. Searches only two members of each message: parsing
 * all JSON would cost as much as the server's work. Returns how many messages there are. */
static unsigned
write_acks(struct buf *out, const char *queue, struct slice in)
{
	unsigned n = 0;

	while (slice_skip_past(&in, "{\"id\":")) {
		const uint64_t id = strtoull(in.p, NULL, 10);

		if (!slice_skip_past(&in, "\"fencing_token\":"))
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
	struct shared *s = l->arg;

	c->request = buf_slice(&s->puts[s->turn++ % s->n_puts]);
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
	return c->step == 0 && s->messages < s->wanted; /* or until the queue is empty */
}

static int
did_take(struct load *l, struct load_conn *c, struct slu_err *err)
{
	struct slice in = buf_slice(&c->answer.body);
	struct shared *s = l->arg;
	uint64_t n = 0;

	while (slice_skip_past(&in, "\"fencing_token\":"))
		n++;
	c->step = n == 0;
	s->messages += n;
	return scenario_check(l, c, err);
}

/* The steps of a cycle. A connection that takes nothing begins with a put again. */
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
		return next_put(l, c);
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
	c->step = n > 0 ? CYCLE_ACK : CYCLE_PUT; /* another connection took the messages and acks them */
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
		while (slice_skip_past(&in, "\"status\":200"))
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

/* Repeats the same requests on one queue until the time is over. */
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

/* The same with a given queue and number of messages. */
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
	struct figures *f = mem_alloc(sizeof *f); /* figures that are not used */
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
	{ "cycle",   "enqueue, dequeue and ack batches",                      run_cycle },
	{ "enqueue", "enqueue batches",                                run_enqueue },
	{ "dequeue", "dequeue batches from a queue that was filled before",  run_dequeue },
	{ "latency", "one message at a time, to a waiting consumer", latency_run },
	{ "subscribe", "messages delivered over open streams, and acked", stream_run },
	{ "watch", "one message at a time, reported by a watch", watch_run },
	{ "lock",    "acquire and release leases",                   lock_run },
	{ "healthz", "the simplest answer, to compare with",           run_healthz },
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
