/*
 * http.c - the HTTP protocol: its state, its metrics, its table of functions.
 */
#include "http/http_private.h"

#include "base/clock.h"
#include "base/mem.h"

#include <assert.h>
#include <stdio.h>

static const struct metric answer_rows[] = {
	{ "requests_total", METRIC_COUNTER, "requests answered, by route and class of status" },
};

/* --- state ---------------------------------------------------------------------- */

/* The route is "POST /ack"; a request without a route is "other". */
static int
name_answers(const struct http_conf *conf, struct metrics *m)
{
	char labels[160];
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < m->n_series; i++) {
		const unsigned row = i / HTTP_CLASSES;
		const struct route *r = row < conf->n_routes ? &conf->routes[row] : NULL;

		(void)snprintf(labels, sizeof labels, "route=\"%s%s%s\",status=\"%uxx\"",
			       r ? r->method ? r->method : "ANY" : "other", r ? " " : "", r ? r->path : "",
			       i % HTTP_CLASSES + HTTP_STATUS_FIRST); /* paths are ours and short */
		rc = metrics_labels(m, i, labels);
	}
	return rc;
}

static int
init_answers(struct metrics *m, const char *prefix, unsigned n_routes)
{
	return metrics_init(m, prefix, answer_rows, 1, "route", (n_routes + 1) * HTTP_CLASSES);
}

/* Without `describe` the answer has no body. */
static int
write_busy(struct http_shared *s)
{
	const struct http_refusal why = { .status = 503, .reason = "connections" };
	const char *type = NULL;
	struct buf body;

	buf_init(&body, 1024);
	buf_init(&s->busy, 2048);
	if (s->conf.describe)
		type = s->conf.describe(&body, &why, s->arg);
	buf_printf(&s->busy,
		   "HTTP/1.1 503 Service Unavailable\r\n"
		   "Content-Length: %zu\r\n"
		   "Retry-After: 1\r\n"
		   "%s%s%sConnection: close\r\n\r\n%s",
		   body.n, body.n ? "Content-Type: " : "", body.n ? type : "",
		   body.n ? "\r\n" : "", buf_str(&body));
	s->busy.failed |= body.failed;
	buf_release(&body);
	return s->busy.failed ? SLU_ENOMEM : 0;
}

static void
http_close(void *shared)
{
	struct http_shared *const s = shared;

	buf_release(&s->busy);
	route_release(&s->routes);
	metrics_release(&s->answers);
	mem_free(s);
}

static int
http_open(void **shared, const void *own, const struct server_conf *conf)
{
	struct http_shared *const s = mem_zalloc(sizeof *s);
	int rc;

	*shared = s;
	if (!s)
		return SLU_ENOMEM;
	s->conf = *(const struct http_conf *)own;
	if (!s->conf.limits)
		s->conf.limits = &request_limits_default;
	s->arg = conf->arg;
	s->log = conf->log;
	rc = init_answers(&s->answers, conf->metrics_prefix, s->conf.n_routes);
	if (rc == 0)
		rc = name_answers(&s->conf, &s->answers);
	if (rc == 0)
		rc = route_init(&s->routes, s->conf.routes, s->conf.n_routes);
	return rc ? rc : write_busy(s);
}

static int
thread_open(void **state, void *shared)
{
	struct http_shared *const s = shared;
	struct http_thread *const t = mem_zalloc(sizeof *t);

	*state = t;
	if (!t)
		return SLU_ENOMEM;
	assert(s->n_threads < HTTP_THREADS);
	s->threads[s->n_threads++] = t;
	return init_answers(&t->answers, s->answers.prefix, s->conf.n_routes);
}

static void
thread_close(void *state)
{
	struct http_thread *const t = state;

	metrics_release(&t->answers);
	mem_free(t);
}

static struct slice
busy(const void *shared)
{
	return buf_slice(&((const struct http_shared *)shared)->busy);
}

/* --- numbers -------------------------------------------------------------------- */

static const char *
date_of(struct http_thread *t, slu_time now)
{
	if (t->date_read != now || !t->date.text[0])
		(void)http_date(&t->date, clock_wall(&clock_system));
	t->date_read = now;
	return t->date.text;
}

const char *
http_count(struct call *c)
{
	struct http_thread *const t = c->x.protocol->state;
	const struct http_conf *const conf = &http_shared(c->x.protocol)->conf;
	const unsigned row = c->route ? (unsigned)(c->route - conf->routes) : conf->n_routes;

	metrics_add_own(&t->answers, 0,
			row * HTTP_CLASSES + (c->status / 100 - HTTP_STATUS_FIRST) % HTTP_CLASSES, 1);
	return date_of(t, loop_now(c->x.front->loop));
}

/* Of all threads; each counts for itself. */
static int64_t
answers_of(const struct http_shared *s, unsigned series)
{
	int64_t n = 0;

	for (unsigned i = 0; i < s->n_threads; i++)
		n += metrics_get(&s->threads[i]->answers, 0, series);
	return n;
}

static void
write_metrics(void *shared, struct buf *out)
{
	struct http_shared *const s = shared;

	for (unsigned i = 0; i < s->answers.n_series; i++)
		metrics_set(&s->answers, 0, i, answers_of(s, i));
	metrics_write(&s->answers, out);
}

int64_t
http_answered(const struct server *srv, unsigned status_class)
{
	const struct http_shared *const s = server_protocol_state(srv, &http_protocol);
	int64_t n = 0;

	for (unsigned i = status_class - HTTP_STATUS_FIRST; i < s->answers.n_series; i += HTTP_CLASSES)
		n += answers_of(s, i);
	return n;
}

/* --- connections ---------------------------------------------------------------- */

static int
conn_open_http(struct conn *c)
{
	return request_init(&http_conn(c)->request, http_shared(c->protocol)->conf.limits);
}

static void
conn_close_http(struct conn *c)
{
	request_release(&http_conn(c)->request);
}

const struct protocol http_protocol = {
	.name = "http",
	.conn_size = sizeof(struct http_conn),
	.exchange_size = sizeof(struct call),
	.open = http_open,
	.close = http_close,
	.thread_open = thread_open,
	.thread_close = thread_close,
	.metrics = write_metrics,
	.busy = busy,
	.conn_open = conn_open_http,
	.conn_close = conn_close_http,
	.parse = http_parse,
	.may_parse = http_may_parse,
	.refuse = http_refuse,
	.resume = http_resume,
	.init = call_init,
	.reset = call_reset,
	.release = call_release,
	.ended = call_ended,
	.format = call_format,
	.format_piece = call_format_piece,
};
