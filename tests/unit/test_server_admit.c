/*
 * test_server_admit.c - C7: who is admitted is decided before a body is read.
 */
#include "server_fixture.h"

static struct fixture fx;
static _Atomic int asked, dismissed;
static _Atomic unsigned long threads;

#define END "\r\nHost: h\r\n\r\n"
#define BYE "\r\nHost: h\r\nConnection: close\r\n\r\n"

/* Who says a name in X-Who is admitted. */
static bool
admit(struct call *c, void *arg)
{
	const struct slice who = call_field(c, "x-who");

	CHECK(arg == &fx);
	CHECK(c->route && c->method.n > 0 && c->path.n > 0 && c->body.n == 0);
	atomic_fetch_add(&asked, 1);
	atomic_fetch_or(&threads, 1ul << call_thread(c));
	if (who.n > 0) {
		c->who = &fx;
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
	CHECK_EQ(0, fx_open(&fx, (struct server_conf){ .threads = 2, .admit = admit, .dismiss = dismiss }));
}

TEST(who_is_refused_comes_to_no_handler)
{
	const char *got;

	start();
	got = ask(&fx, "GET /healthz HTTP/1.1" BYE);
	CHECK_CONTAINS("HTTP/1.1 401 Unauthorized\r\n", got);
	CHECK_CONTAINS("WWW-Authenticate: Bearer\r\n", got);
	CHECK_CONTAINS("\r\n\r\nwho?\n", got);
	got = ask(&fx, "GET /healthz HTTP/1.1\r\nX-Who: me" BYE);
	CHECK_CONTAINS("\r\n\r\nok\n", got);
	fx_close(&fx);
	CHECK_EQ(2, asked);
	CHECK_EQ(1, dismissed);
	CHECK((threads & ~3ul) == 0 && threads != 0);
}

TEST(no_byte_of_a_body_is_read_for_who_is_refused)
{
	int fd;

	start();
	fd = dial(&fx);
	send_text(fd, "POST /echo HTTP/1.1\r\nContent-Length: 100000" END);
	CHECK_CONTAINS("Connection: close", recv_until(fd, "who?\n", 1)); /* though none was sent */
	close(fd);
	fd = dial(&fx);
	send_text(fd, "POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3" END);
	CHECK(strncmp(recv_all(fd), "HTTP/1.1 401", 12) == 0);
	close(fd);
	fd = dial(&fx);
	send_text(fd, "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked" END "3\r\nabc\r\n0\r\n\r\nGET /");
	CHECK_CONTAINS("401", recv_all(fd));
	close(fd);
	fx_close(&fx);
	CHECK_EQ(3, asked);
	CHECK_EQ(0, dismissed);
}

TEST(without_a_body_the_connection_goes_on)
{
	int fd;

	start();
	fd = dial(&fx);
	send_text(fd, "GET /healthz HTTP/1.1" END "GET /healthz HTTP/1.1\r\nX-Who: me" END
		      "POST /echo HTTP/1.1\r\nX-Who: me\r\nContent-Length: 4" END "body"
		      "GET /healthz HTTP/1.1" END);
	CHECK_CONTAINS("who?\n", recv_until(fd, "who?\n", 2));
	send_text(fd, "POST /echo HTTP/1.1\r\nX-Who: me\r\nContent-Length: 2" BYE "hi");
	CHECK_CONTAINS("\r\n\r\nhi", recv_all(fd));
	close(fd);
	fx_close(&fx);
	CHECK_EQ(5, asked);
	CHECK_EQ(3, dismissed);
}

TEST(what_was_admitted_is_dismissed_also_when_the_client_goes)
{
	int fd;

	start();
	fd = dial(&fx);
	send_text(fd, "POST /echo HTTP/1.1\r\nX-Who: me\r\nContent-Length: 100" END "body");
	WAIT_UNTIL(asked == 1);
	close(fd);
	WAIT_UNTIL(dismissed == 1);
	fd = dial(&fx);
	send_text(fd, "GET /wait?x HTTP/1.1\r\nX-Who: me" END);
	WAIT_UNTIL(fx.n_kept == 1);
	close(fd);
	fx_release(&fx, 0);
	WAIT_UNTIL(dismissed == 2);
	fx_close(&fx);
}
