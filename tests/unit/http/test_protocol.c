/*
 * A protocol of one page, in the table of a server beside HTTP: a line is a request.
 *
 *      <word>     -> <word>, upper case
 *      later      -> LATER, by another thread
 *      hold       -> HELD, when the test says so; wants its client to be there
 *      too long   -> ERROR TOO LONG, and the connection closes
 */
#include "server_fixture.h"

#include "net/front.h"
#include "net/protocol.h"

#include <ctype.h>

/* --- the protocol ------------------------------------------------------------------- */

enum {
	LINE_MAX_BYTES = 40
};

struct line_conn {
	struct conn c;
	struct buf line; /* that is not whole */
};

static _Atomic(struct exchange *) held;
static atomic_int gone, ended;

static int
line_open(void **shared, const void *own, const struct server_conf *conf)
{
	(void)own;
	(void)conf;
	*shared = NULL; /* all is in the connection */
	return 0;
}

static int
line_conn_open(struct conn *c)
{
	buf_init(&CONTAINER(c, struct line_conn, c)->line, LINE_MAX_BYTES);
	return 0;
}

static void
line_conn_close(struct conn *c)
{
	buf_release(&CONTAINER(c, struct line_conn, c)->line);
}

static void *
answer_apart(void *x)
{
	exchange_answer(x);
	return NULL;
}

static void
on_gone(struct exchange *x)
{
	atomic_fetch_add(&gone, 1);
	exchange_answer(x); /* EXCHANGE-2 */
}

static void
on_ended(struct exchange *x, bool sent)
{
	(void)x;
	atomic_store(&ended, sent ? 1 : 2);
}

static void
handle(struct exchange *x, struct slice line)
{
	pthread_t t;

	x->ended = on_ended;
	if (slice_eq(line, SLICE("hold"))) {
		x->gone = on_gone;
		buf_puts(&x->out, "HELD\n");
		atomic_store(&held, x);
		return;
	}
	for (size_t i = 0; i < line.n; i++)
		buf_putc(&x->out, (char)toupper(line.p[i]));
	buf_putc(&x->out, '\n');
	if (!slice_eq(line, SLICE("later"))) {
		exchange_answer(x);
		return;
	}
	CHECK_EQ(0, pthread_create(&t, NULL, answer_apart, x));
	pthread_detach(t);
}

static void
refuse(struct conn *c, const char *why)
{
	struct exchange *const x = conn_add(c);

	c->last = true;
	c->unread = true;
	if (!x) {
		conn_close(c);
		return;
	}
	buf_printf(&x->out, "ERROR %s\n", why);
	exchange_answer(x);
}

static void
line_refuse(struct conn *c, enum conn_refusal why)
{
	refuse(c, why == CONN_SLOW_HEAD ? "TOO SLOW" : "NO");
}

static void
run_line(struct conn *c, struct buf *line)
{
	struct exchange *const x = conn_add(c);

	if (!x) {
		conn_close(c);
		return;
	}
	x->arrived = true;
	x->state = EXCHANGE_RUNNING;
	c->begun = false;
	handle(x, buf_slice(line));
	buf_clear(line);
}

static void
line_parse(struct conn *c)
{
	struct buf *const line = &CONTAINER(c, struct line_conn, c)->line;

	while (c->rest.n > 0 && conn_may_begin(c)) {
		const char *const end = memchr(c->rest.p, '\n', c->rest.n);
		const size_t n = end ? (size_t)(end - c->rest.p) : c->rest.n;

		buf_put(line, c->rest.p, n);
		c->begun = true;
		c->rest = (struct slice){ c->rest.p + n + !!end, c->rest.n - n - !!end };
		if (line->failed)
			refuse(c, "TOO LONG");
		else if (end)
			run_line(c, line);
	}
}

static void
line_format(struct conn *c, struct exchange *x, bool ends)
{
	(void)c;
	(void)ends;
	x->has_body = true;
}

static struct slice
line_busy(const void *shared)
{
	(void)shared;
	return SLICE("ERROR BUSY\n");
}

static const struct protocol line_protocol = {
	.name = "line",
	.conn_size = sizeof(struct line_conn),
	.exchange_size = sizeof(struct exchange),
	.open = line_open,
	.busy = line_busy,
	.conn_open = line_conn_open,
	.conn_close = line_conn_close,
	.parse = line_parse,
	.refuse = line_refuse,
	.format = line_format,
};

/* --- tests -------------------------------------------------------------------------- */

FIXTURE(NULL, fx_end);

static void
start(struct server_conf conf)
{
	static struct server_protocol protocols[2];
	struct slu_err err;

	conf = fx_conf(conf);
	protocols[0] = conf.protocols[0];
	protocols[1] = (struct server_protocol){ &line_protocol, NULL };
	conf.protocols = protocols;
	conf.n_protocols = 2;
	CHECK_EQ(0, server_open(&fx.srv, &conf, &err));
	CHECK_EQ(0, server_listen(fx.srv, "line://127.0.0.1:0", 0, &err), err.text);
	CHECK_EQ(0, server_listen(fx.srv, "127.0.0.1:0", 0, &err), err.text);
	CHECK_EQ(SLU_EINVAL, server_listen(fx.srv, "other://127.0.0.1:0", 0, &err));
	CHECK_EQ(0, server_start(fx.srv, &err));
	fx.port = server_port(fx.srv, 0);
}

TEST(the_scheme_of_an_address_chooses_the_protocol)
{
	int fd;

	start((struct server_conf){ 0 });
	CHECK_CONTAINS("line://127.0.0.1:", server_address(fx.srv, 0));
	CHECK_CONTAINS("http://127.0.0.1:", server_address(fx.srv, 1));
	fd = dial();
	send_text(fd, "hello\n");
	CHECK_STR("HELLO\n", recv_until(fd, "\n", 1));
	fx.port = server_port(fx.srv, 1);
	CHECK_CONTAINS("ok\n", ask("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
}

TEST(answers_come_in_the_order_of_requests_however_these_are_cut)
{
	int fd;

	start((struct server_conf){ 0 });
	fd = dial();
	send_text(fd, "later\na\nlat");
	CHECK_STR("LATER\nA\n", recv_until(fd, "\n", 2));
	send_text(fd, "er\nb\n");
	CHECK_STR("LATER\nB\n", recv_until(fd, "\n", 2));
}

TEST(a_handler_learns_that_its_client_is_gone)
{
	int fd;

	start((struct server_conf){ 0 });
	fd = dial();
	send_text(fd, "hold\n");
	WAIT_UNTIL(atomic_load(&held));
	hang_up(fd);
	WAIT_UNTIL(atomic_load(&gone) == 1);
	WAIT_UNTIL(atomic_load(&ended) == 2);
}

TEST(refusals_have_the_form_of_the_protocol)
{
	start((struct server_conf){ .header_timeout = 20 * SLU_MS });
	CHECK_STR("ERROR TOO LONG\n", ask("01234567890123456789012345678901234567890\nb\n"));
	CHECK_STR("ERROR TOO SLOW\n", ask("no end"));
}

TEST(a_connection_beyond_the_limit_receives_the_busy_bytes)
{
	start((struct server_conf){ .header_timeout = 1000 * SLU_SEC, .max_connections = 1, .reserve = 1 });
	(void)dial();
	(void)dial();
	WAIT_UNTIL(server_metric(fx.srv, SERVER_CONNECTIONS) == 2);
	CHECK_STR("ERROR BUSY\n", ask(""));
}
