/*
 * test_server_stream.c - answers in pieces (EXCHANGE-7).
 */
#include "server_fixture.h"

static void
start(void)
{
	CHECK_EQ(0, fx_open((struct server_conf){ .threads = 1 }));
}

FIXTURE(start, fx_end);

/* The chunks of a body put together; how many bytes, and behind them, and the field that
 * stands there, *rest. */
static size_t
unchunk(char *body, char **rest)
{
	char *to = body, *from = body, *end;

	for (;;) {
		const size_t n = strtoul(from, &end, 16);

		CHECK(end > from && strncmp(end, "\r\n", 2) == 0);
		memmove(to, end + 2, n);
		from = end + 2 + n;
		if (n == 0)
			break;
		CHECK(strncmp(from, "\r\n", 2) == 0);
		from += 2;
		to += n;
	}
	CHECK(strncmp(from, "X-Pieces: ", 10) == 0);
	from = strstr(from, "\r\n\r\n");
	CHECK(from);
	*rest = from + 4;
	return (size_t)(to - body);
}

static char *
body_of(char *answer)
{
	char *p = strstr(answer, "\r\n\r\n");

	CHECK(p);
	return p + 4;
}

static void
check_pieces(const char *body, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < PIECE; j += 999)
			CHECK_EQ('a' + i % 26, body[i * PIECE + j]);
}

TEST(an_answer_in_pieces_arrives_whole)
{
	static const char *const requests[] = {
		"GET /stream?5 HTTP/1.1" BYE,
		"GET /apart?5 HTTP/1.1" BYE,
	};

	EACH(i, requests) {
		char *got = ask(requests[i]), *rest;

		CHECK_CONTAINS("HTTP/1.1 200 OK", got);
		CHECK_CONTAINS("Transfer-Encoding: chunked", got);
		CHECK_EQ(5 * PIECE, unchunk(body_of(got), &rest));
		check_pieces(body_of(got), 5);
		CHECK_EQ(0, *rest);
		WAIT_UNTIL(atomic_load(&fx.kept[i].ended) == 1);
	}
	CHECK_EQ(0, atomic_load(&fx.kept[0].gone));
}

TEST(an_answer_may_have_no_pieces)
{
	char *got, *rest;

	got = ask("GET /stream?0 HTTP/1.1" BYE);
	CHECK_EQ(0, unchunk(body_of(got), &rest));
	got = ask("GET /stream?0 HTTP/1.0\r\n\r\n");
	CHECK_EQ(0, *body_of(got));
	WAIT_UNTIL(atomic_load(&fx.kept[1].ended) == 1);
}

/* HTTP/1.0 has no chunks: the end of the connection ends the body. */
TEST(an_old_client_gets_the_pieces_and_the_end)
{
	char *got;

	got = ask("GET /stream?3 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	CHECK_CONTAINS("Connection: close", got);
	CHECK(strstr(got, "chunked") == NULL && strstr(got, "Content-Length") == NULL);
	check_pieces(body_of(got), 3);
	CHECK_EQ(3 * PIECE, strlen(body_of(got)));
	WAIT_UNTIL(atomic_load(&fx.kept[0].ended) == 1);
}

TEST(head_has_no_pieces)
{
	char *got;

	got = ask("HEAD /stream?3 HTTP/1.1" BYE);
	CHECK_CONTAINS("200 OK", got);
	CHECK_EQ(0, *body_of(got));
	WAIT_UNTIL(atomic_load(&fx.kept[0].ended) == 1);
	CHECK_EQ(0, atomic_load(&fx.kept[0].made));
}

/* SERVER-1 */
TEST(what_is_asked_behind_a_stream_is_answered_behind_it)
{
	char *got, *rest;

	const int fd = dial();
	send_text(fd, "GET /stream?4 HTTP/1.1" END "GET /healthz HTTP/1.1" END
		      "GET /apart?2 HTTP/1.1" END "GET /below/x HTTP/1.1" BYE);
	got = recv_all(fd);
	CHECK_EQ(4 * PIECE, unchunk(body_of(got), &rest));
	CHECK(strncmp(rest, "HTTP/1.1 200 OK", 15) == 0);
	CHECK(strncmp(body_of(rest), "ok\n", 3) == 0);
	rest = body_of(rest) + 3;
	CHECK_EQ(2 * PIECE, unchunk(body_of(rest), &rest));
	CHECK(strcmp(body_of(rest), "/below/x") == 0);
}

/* A piece at a time: what the kernel does not take is not made. */
TEST(a_slow_reader_does_not_make_the_server_run_ahead)
{
	const int small = 32 << 10;
	static char got[1 << 20];
	size_t seen = 0;

	const int fd = dial();
	CHECK_EQ(0, setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small));
	send_text(fd, "GET /stream?1000 HTTP/1.1" BYE);
	for (;;) {
		const ssize_t k = recv(fd, got, sizeof got, 0);

		CHECK(k >= 0);
		if (k == 0)
			break;
		seen += (size_t)k;
		/* 64 MB in all; the kernel holds a few of them. */
		CHECK((size_t)atomic_load(&fx.kept[0].made) * PIECE < seen + (16 << 20));
	}
	CHECK(seen > 1000u * PIECE);
	WAIT_UNTIL(atomic_load(&fx.kept[0].ended) == 1);
}

/* Invariant 13. */
TEST(a_client_that_goes_in_the_middle_has_not_received_it)
{
	static const char *const requests[] = {
		"GET /stream?1000 HTTP/1.1" END,
		"GET /apart?1000 HTTP/1.1" END,
	};

	EACH(i, requests) {
		const int fd = dial();
		char some[1000];

		send_text(fd, requests[i]);
		CHECK(recv(fd, some, sizeof some, MSG_WAITALL) == sizeof some);
		hang_up(fd);
		WAIT_UNTIL(atomic_load(&fx.kept[i].ended) == 2);
		CHECK(atomic_load(&fx.kept[i].made) < 1000);
	}
	WAIT_UNTIL(server_metric(fx.srv, SERVER_CALLS) == 0);
}

TEST(an_answer_that_breaks_has_no_end)
{
	char *got;

	got = ask("GET /break?2 HTTP/1.1" END);
	CHECK_CONTAINS("200 OK", got);
	CHECK(strlen(body_of(got)) > 2 * PIECE);
	CHECK(strstr(body_of(got), "\r\n0\r\n") == NULL);
	WAIT_UNTIL(atomic_load(&fx.kept[0].ended) == 2);
}

TEST(a_server_stops_while_answers_come_in_pieces)
{
	int fds[4];

	EACH(i, fds) {
		fds[i] = dial();
		send_text(fds[i], i % 2 ? "GET /stream?1000 HTTP/1.1" END
					: "GET /apart?1000 HTTP/1.1" END);
	}
	WAIT_UNTIL(atomic_load(&fx.n_kept) == COUNT(fds));
	fx_close();
	EACH(i, fds) {
		CHECK_EQ(2, atomic_load(&fx.kept[i].ended));
		hang_up(fds[i]);
	}
}
