/*
 * parse.c - the protocol of a connection: lines and bodies to commands, and its begin and end.
 */
#include "beanstalk/beanstalk_private.h"

#include "base/mem.h"

#include <stdio.h>

/* ---- Requests ---- */

/* The command of x is whole. */
static void
run(struct bean_conn *bc, struct exchange *x)
{
	bc->c.reading = NULL;
	bc->c.begun = false;
	bc->c.wait = WAIT_HANDLER; /* the next command has its full time */
	x->arrived = true;
	x->state = EXCHANGE_RUNNING;
	bean_run(bc, x);
}

/* Answers the command that is being read, which is whole or is not read on. */
static void
refuse(struct bean_conn *bc, struct exchange *x, const char *text)
{
	bc->c.reading = NULL;
	bc->c.begun = false;
	x->arrived = true;
	x->state = EXCHANGE_RUNNING;
	bean_answer(x, text);
}

/* The body has come. */
static void
end_body(struct bean_conn *bc, struct exchange *x)
{
	const struct bean_call *const call = bean_call(x);

	if (call->too_big)
		refuse(bc, x, "JOB_TOO_BIG\r\n");
	else if (call->in.failed)
		refuse(bc, x, "OUT_OF_MEMORY\r\n");
	else if (memcmp(call->in.p + call->in.n - 2, "\r\n", 2) != 0)
		refuse(bc, x, "EXPECTED_CRLF\r\n");
	else
		run(bc, x);
}

static void
take_body(struct bean_conn *bc)
{
	struct exchange *const x = bc->c.reading;
	struct bean_call *const call = bean_call(x);
	const size_t n = bc->c.rest.n < bc->left ? bc->c.rest.n : (size_t)bc->left;

	if (!call->too_big) {
		buf_put(&call->in, bc->c.rest.p, n);
		conn_charge(bc->c.front, x, n);
	}
	bc->c.moved += n;
	slice_skip(&bc->c.rest, n);
	bc->left -= n;
	if (bc->left == 0)
		end_body(bc, x);
	else if (!call->too_big && !conn_has_memory(bc->c.front, x))
		bc->c.protocol->ops->refuse(&bc->c, CONN_MEMORY);
}

static void
begin_body(struct bean_conn *bc, struct exchange *x)
{
	struct bean_call *const call = bean_call(x);
	const uint64_t bytes = call->line.numbers[3];

	call->too_big = bytes > bean_shared(x)->conf.max_job;
	bc->left = bytes + 2;
	bc->c.reading = x;
	bc->c.begun = true;
	if (!call->too_big)
		(void)buf_reserve(&call->in, (size_t)bytes + 2); /* otherwise buf_put fails */
}

/* The line of x has come, and the server is ready. */
static void
begin(struct bean_conn *bc, struct exchange *x)
{
	if (bean_call(x)->line.command == BEAN_PUT)
		begin_body(bc, x);
	else
		run(bc, x);
}

static void
resume(struct conn *c)
{
	begin(bean_conn(c), c->reading);
}

static void
add(struct bean_conn *bc, enum bean_error e, const struct bean_line *line)
{
	struct exchange *const x = conn_add(&bc->c);

	if (!x) {
		conn_close(&bc->c);
		return;
	}
	bean_call(x)->line = *line;
	if (bc->c.reserved) { /* SERVER-5 */
		front_count(bc->c.front, SERVER_TURNED_AWAY, 1);
		bc->c.last = true;
		refuse(bc, x, "OUT_OF_MEMORY\r\n");
	} else if (e == BEAN_UNKNOWN) {
		refuse(bc, x, "UNKNOWN_COMMAND\r\n");
	} else if (e == BEAN_BAD_FORMAT) {
		refuse(bc, x, "BAD_FORMAT\r\n");
	} else {
		bc->c.reading = x;
		if (!conn_hold(&bc->c, x)) /* SERVER-10 */
			begin(bc, x);
	}
}

/* A line has come, without its CR LF. */
static void
end_line(struct bean_conn *bc)
{
	struct bean_line line = { 0 };
	enum bean_error e = bean_line_parse((struct slice){ bc->line, bc->n_line }, &line);

	if (bc->too_long && e != BEAN_HTTP)
		e = BEAN_BAD_FORMAT;
	bc->n_line = 0;
	bc->too_long = false;
	bc->c.begun = false;
	front_count(bc->c.front, SERVER_PARSE_ERRORS, e != BEAN_OK);
	if (e == BEAN_HTTP)
		conn_close(&bc->c); /* BEAN-4 */
	else if (e == BEAN_OK && line.command == BEAN_QUIT)
		bc->c.last = true;
	else
		add(bc, e, &line);
}

/* Of a line that is too long the last byte is kept: it may be its CR. */
static void
keep(struct bean_conn *bc, const char *p, size_t n)
{
	const size_t room = sizeof bc->line - bc->n_line;

	if (n <= room) {
		memcpy(bc->line + bc->n_line, p, n);
		bc->n_line += n;
		return;
	}
	memcpy(bc->line + bc->n_line, p, room);
	bc->n_line = sizeof bc->line;
	bc->line[sizeof bc->line - 1] = p[n - 1];
	bc->too_long = true;
}

/* A line ends with CR LF; a LF alone is part of it. */
static void
take_line(struct bean_conn *bc)
{
	const char *const end = memchr(bc->c.rest.p, '\n', bc->c.rest.n);
	const size_t n = end ? (size_t)(end - bc->c.rest.p) + 1 : bc->c.rest.n;

	keep(bc, bc->c.rest.p, end ? n - 1 : n);
	slice_skip(&bc->c.rest, n);
	bc->c.begun = true;
	if (!end)
		return;
	if (bc->n_line > 0 && bc->line[bc->n_line - 1] == '\r') {
		bc->n_line--;
		bc->too_long |= bc->n_line > BEAN_LINE - 2;
		end_line(bc);
	} else {
		keep(bc, "\n", 1);
	}
}

static bool
may_parse(const struct conn *c)
{
	return c->reading && !conn_is_held(c) ? c->generation != 0 && !c->last : conn_may_begin(c);
}

static void
parse(struct conn *c)
{
	while (c->rest.n > 0 && may_parse(c)) {
		if (c->reading)
			take_body(bean_conn(c));
		else
			take_line(bean_conn(c));
	}
}

static void
refuse_conn(struct conn *c, enum conn_refusal why)
{
	struct exchange *const x = c->reading ? c->reading : conn_add(c);

	c->last = true;
	if (!x || why == CONN_SLOW_HEAD || why == CONN_SLOW_BODY || why == CONN_PLAIN) {
		conn_close(c);
		return;
	}
	front_count(c->front, SERVER_NO_MEMORY, why == CONN_MEMORY);
	c->unread = true;
	refuse(bean_conn(c), x, "OUT_OF_MEMORY\r\n");
}

/* ---- Connections ---- */

static int
conn_begin(struct conn *c)
{
	struct bean_conn *const bc = bean_conn(c);
	struct bean_shared *const s = c->protocol->shared;
	int rc;

	bc->watched = mem_alloc(sizeof *bc->watched);
	bc->used = bc->watched ? tubes_open(&s->tubes, SLICE("default"), &rc) : NULL;
	if (!bc->used) {
		mem_free(bc->watched);
		bc->watched = NULL;
		return SLU_ENOMEM;
	}
	bc->watched[0] = tubes_keep(&s->tubes, bc->used);
	bc->n_watched = 1;
	bc->ttr = SLU_MIN;
	atomic_fetch_add(&bc->used->using, 1);
	atomic_fetch_add(&bc->used->watching, 1);
	atomic_fetch_add(&s->connections, 1);
	atomic_fetch_add(&s->current, 1);
	return 0;
}

static void
conn_end(struct conn *c)
{
	struct bean_conn *const bc = bean_conn(c);
	struct bean_shared *const s = c->protocol->shared;

	if (!bc->used)
		return; /* it had no memory to begin */
	bean_jobs_release(bc);
	atomic_fetch_sub(&bc->used->using, 1);
	tubes_close(&s->tubes, bc->used);
	for (unsigned i = 0; i < bc->n_watched; i++) {
		atomic_fetch_sub(&bc->watched[i]->watching, 1);
		tubes_close(&s->tubes, bc->watched[i]);
	}
	mem_free(bc->watched);
	atomic_fetch_sub(&s->current, 1);
	if (bc->puts)
		atomic_fetch_sub(&s->producers, 1);
	if (bc->reserves)
		atomic_fetch_sub(&s->workers, 1);
}

/* ---- Exchanges ---- */

static void
call_init(struct exchange *x)
{
	buf_init(&bean_call(x)->in, (size_t)UINT32_MAX + 2);
}

static size_t
call_reset(struct exchange *x, size_t keep)
{
	struct bean_call *const call = bean_call(x);

	if (call->in.size > keep)
		buf_release(&call->in);
	else
		buf_clear(&call->in);
	call->too_big = false;
	return call->in.size;
}

static void
call_release(struct exchange *x)
{
	buf_release(&bean_call(x)->in);
}

static void
format(struct conn *c, struct exchange *x, bool ends)
{
	(void)c;
	(void)ends;
	x->has_body = true;
}

/* ---- All threads ---- */

static int
shared_open(void **shared, const void *own, const struct server_conf *conf)
{
	struct bean_shared *const s = mem_alloc(sizeof *s);

	(void)conf;
	if (!s)
		return SLU_ENOMEM;
	memset(s, 0, sizeof *s);
	s->conf = *(const struct beanstalk_conf *)own;
	s->started = clock_mono(&clock_system);
	(void)snprintf(s->id, sizeof s->id, "%016llx", (unsigned long long)clock_wall(&clock_system));
	if (tubes_init(&s->tubes)) {
		mem_free(s);
		return SLU_ENOMEM;
	}
	*shared = s;
	return 0;
}

static void
shared_close(void *shared)
{
	struct bean_shared *const s = shared;

	if (!s)
		return;
	tubes_release(&s->tubes);
	mem_free(s);
}

const struct protocol beanstalk_protocol = {
	.name = "beanstalk",
	.conn_size = sizeof(struct bean_conn),
	.exchange_size = sizeof(struct bean_call),
	.stays = true,
	.open = shared_open,
	.close = shared_close,
	.conn_open = conn_begin,
	.conn_close = conn_end,
	.parse = parse,
	.may_parse = may_parse,
	.refuse = refuse_conn,
	.resume = resume,
	.init = call_init,
	.reset = call_reset,
	.release = call_release,
	.format = format,
};
