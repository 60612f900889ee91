/*
 * test_server_admit.c - CALL-9: the server decides about a request before it reads the body.
 */
#include "server_fixture.h"

static _Atomic int asked, dismissed;
static _Atomic unsigned long threads;

/* Who says a name in X-Who is admitted. */
static bool
authorize(struct call *c, void *arg)
{
	const struct slice who = call_field(c, "x-who");

	CHECK(arg == &fx);
	CHECK(c->route && c->method.n > 0 && c->path.n > 0 && c->body.n == 0);
	atomic_fetch_add(&asked, 1);
	atomic_fetch_or(&threads, 1ul << exchange_thread(&c->x));
	if (who.n > 0) {
		c->x.who = &fx;
		return true;
	}
	(void)call_add(c, "WWW-Authenticate", SLICE("Bearer"));
	call_answer_text(c, 401, "text/plain", SLICE("who?\n"));
	return false;
}

static void
dismiss(void *who)
{
	CHECK(who == &fx);
	atomic_fetch_add(&dismissed, 1);
}

static void
start(void)
{
	fx.http.authorize = authorize;
	CHECK_EQ(0, fx_open((struct server_conf){ .threads = 2, .dismiss = dismiss }));
}

FIXTURE(start, fx_end);

TEST(a_refused_request_reaches_no_handler)
{
	const char *got;

	got = ask("GET /healthz HTTP/1.1" BYE);
	CHECK_CONTAINS("HTTP/1.1 401 Unauthorized\r\n", got);
	CHECK_CONTAINS("WWW-Authenticate: Bearer\r\n", got);
	CHECK_CONTAINS("\r\n\r\nwho?\n", got);
	got = ask("GET /healthz HTTP/1.1\r\nX-Who: me" BYE);
	CHECK_CONTAINS("\r\n\r\nok\n", got);
	fx_close();
	CHECK_EQ(2, asked);
	CHECK_EQ(1, dismissed);
	CHECK((threads & ~3ul) == 0 && threads != 0);
}

TEST(no_byte_of_the_body_of_a_refused_request_is_read)
{
	int fd;

	fd = dial();
	send_text(fd, "POST /echo HTTP/1.1\r\nContent-Length: 100000" END);
	CHECK_CONTAINS("Connection: close", recv_until(fd, "who?\n", 1)); /* though none was sent */
	hang_up(fd);
	fd = dial();
	send_text(fd, "POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3" END);
	CHECK(strncmp(recv_all(fd), "HTTP/1.1 401", 12) == 0);
	hang_up(fd);
	fd = dial();
	send_text(fd, "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked" END "3\r\nabc\r\n0\r\n\r\nGET /");
	CHECK_CONTAINS("401", recv_all(fd));
	hang_up(fd);
	fx_close();
	CHECK_EQ(3, asked);
	CHECK_EQ(0, dismissed);
}

TEST(without_a_body_the_connection_goes_on)
{
	const int fd = dial();

	send_text(fd, "GET /healthz HTTP/1.1" END "GET /healthz HTTP/1.1\r\nX-Who: me" END
		      "POST /echo HTTP/1.1\r\nX-Who: me\r\nContent-Length: 4" END "body"
		      "GET /healthz HTTP/1.1" END);
	CHECK_CONTAINS("who?\n", recv_until(fd, "who?\n", 2));
	send_text(fd, "POST /echo HTTP/1.1\r\nX-Who: me\r\nContent-Length: 2" BYE "hi");
	CHECK_CONTAINS("\r\n\r\nhi", recv_all(fd));
	hang_up(fd);
	fx_close();
	CHECK_EQ(5, asked);
	CHECK_EQ(3, dismissed);
}

TEST(what_was_admitted_is_dismissed_also_when_the_client_goes)
{
	int fd;

	fd = dial();
	send_text(fd, "POST /echo HTTP/1.1\r\nX-Who: me\r\nContent-Length: 100" END "body");
	WAIT_UNTIL(asked == 1);
	hang_up(fd);
	WAIT_UNTIL(dismissed == 1);
	fd = dial();
	send_text(fd, "GET /wait?x HTTP/1.1\r\nX-Who: me" END);
	WAIT_UNTIL(fx.n_kept == 1);
	hang_up(fd);
	fx_release(0);
	WAIT_UNTIL(dismissed == 2);
}
