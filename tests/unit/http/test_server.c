/*
 * test_server.c - what a client sees of a server, byte by byte.
 */
#include "server_fixture.h"

static void
start(void)
{
	CHECK_EQ(0, fx_open((struct server_conf){ .threads = 2 }));
}

FIXTURE(start, fx_end);

TEST(requests_find_their_handlers)
{
	static const struct {
		const char *request, *want;
	} cases[] = {
		{ "GET /healthz HTTP/1.1" BYE, "HTTP/1.1 200 OK\r\n" },
		{ "GET /healthz?a=b HTTP/1.1" BYE, "\r\n\r\nok\n" },
		{ "GET /healthz HTTP/1.0\r\n\r\n", "\r\n\r\nok\n" },
		{ "GET /nowhere HTTP/1.1" BYE, "HTTP/1.1 404 Not Found\r\n" },
		{ "GET /healthz/ HTTP/1.1" BYE, "HTTP/1.1 404 Not Found\r\n" },
		{ "GET /below/a/b HTTP/1.1" BYE, "\r\n\r\n/below/a/b" },
		{ "GET /below HTTP/1.1" BYE, "HTTP/1.1 404 Not Found\r\n" },
		{ "POST /healthz HTTP/1.1" BYE, "HTTP/1.1 405 Method Not Allowed\r\n" },
		{ "POST /healthz HTTP/1.1" BYE, "\r\nAllow: GET, HEAD\r\n" },
		{ "DELETE /claim HTTP/1.1" BYE, "\r\nAllow: GET, HEAD, POST\r\n" },
		{ "HEAD /wait HTTP/1.1" BYE, "HTTP/1.1 405 Method Not Allowed\r\n" },
		{ "HEAD /wait HTTP/1.1" BYE, "\r\nAllow: GET\r\n" },
		{ "BREW /healthz HTTP/1.1" BYE, "HTTP/1.1 405 Method Not Allowed\r\n" },
		{ "OPTIONS * HTTP/1.1" BYE, "HTTP/1.1 404 Not Found\r\n" },
	};

	EACH(i, cases)
		CHECK_CONTAINS(cases[i].want, ask(cases[i].request));
	CHECK_EQ(3, strlen(strstr(ask(cases[0].request), "\r\n\r\n")) - 4);
}

TEST(head_is_answered_without_a_body)
{
	const char *got;

	got = ask("HEAD /healthz HTTP/1.1" BYE);
	CHECK_CONTAINS("HTTP/1.1 200 OK\r\n", got);
	CHECK_CONTAINS("Content-Length: 3\r\n", got);
	CHECK_STR("\r\n\r\n", strstr(got, "\r\n\r\n"));
	got = ask("HEAD /nowhere HTTP/1.1" BYE);
	CHECK_STR("\r\n\r\n", strstr(got, "\r\n\r\n"));
}

TEST(a_connection_is_kept_for_more_requests)
{
	const int fd = dial();

	for (int i = 0; i < 3; i++) {
		send_text(fd, "GET /healthz HTTP/1.1" END);
		CHECK_CONTAINS("200 OK", recv_until(fd, "\r\n\r\nok\n", 1));
	}
	send_text(fd, "POST /nowhere HTTP/1.1\r\nContent-Length: 0" END);
	CHECK_CONTAINS("404", recv_until(fd, "no_such_path", 1));
	send_text(fd, "GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	CHECK_CONTAINS("Connection: keep-alive", recv_until(fd, "ok\n", 1));
	send_text(fd, "GET /healthz HTTP/1.1" BYE);
	CHECK_CONTAINS("Connection: close", recv_all(fd));
}

/* SERVER-1: the second answer is ready long before the first. */
TEST(pipelined_answers_keep_the_order_of_requests)
{
	const char *got;

	const int fd = dial();
	send_text(fd, "GET /wait?first HTTP/1.1" END "GET /wait?second HTTP/1.1" END
		      "GET /thread?third HTTP/1.1" END "GET /healthz HTTP/1.1" BYE);
	fx_release(1);
	WAIT_UNTIL(atomic_load(&fx.n_kept) == 3);
	CHECK_EQ(-1, recv(fd, &(char){ 0 }, 1, MSG_DONTWAIT));
	fx_release(0);
	got = recv_all(fd);
	CHECK(strstr(got, "first") < strstr(got, "second"));
	CHECK(strstr(got, "second") < strstr(got, "third"));
	CHECK(strstr(got, "third") < strstr(got, "ok\n"));
	EACH(i, ((int[3]){ 0 }))
		WAIT_UNTIL(atomic_load(&fx.kept[i].ended) == 1);
}

TEST(many_pipelined_requests_are_all_answered)
{
	struct buf all;

	const int fd = dial();
	buf_init(&all, SIZE_MAX);
	for (int i = 0; i < 1000; i++)
		buf_puts(&all, "GET /healthz HTTP/1.1" END);
	buf_puts(&all, "GET /thread?bye HTTP/1.1" BYE);
	send_bytes(fd, all.p, all.n);
	CHECK_CONTAINS("bye", recv_until(fd, "bye", 1));
	buf_release(&all);
	hang_up(fd);
	WAIT_UNTIL(http_answered(fx.srv, 2) == 1001);
}

/* SERVER-1: of 70 calls that wait, 64 have begun; each answer lets one more begin. */
TEST(only_so_many_calls_of_a_connection_are_unanswered)
{
	const int fd = dial();

	for (int i = 0; i < 70; i++)
		send_text(fd, "GET /wait?x HTTP/1.1" END);
	WAIT_UNTIL(atomic_load(&fx.n_kept) == 64);
	fx_release(1);
	fx_release(0);
	WAIT_UNTIL(atomic_load(&fx.n_kept) == 66);
	CHECK_EQ(66, server_metric(fx.srv, SERVER_CALLS) + 2);
	for (unsigned i = 2; i < 70; i++)
		fx_release(i);
	recv_until(fd, "\r\n\r\nx", 70);
}

TEST(nothing_behind_a_call_that_holds_is_looked_at)
{
	const int fd = dial();

	send_text(fd, "GET /hold?a HTTP/1.1" END "GET /wait?b HTTP/1.1" END);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_CALLS) == 1);
	CHECK_EQ(1, atomic_load(&fx.n_kept));
	fx_release(0);
	fx_release(1);
	recv_until(fd, "\r\n\r\nb", 1);
}

TEST(requests_may_come_byte_by_byte)
{
	static const char text[] = "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5"
				   "\r\n\r\nhelloPOST /echo HTTP/1.1\r\nHost: h\r\n"
				   "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n"
				   "0\r\n\r\nGET /healthz HTTP/1.1" BYE;
	const char *got;

	const int fd = dial();
	for (size_t i = 0; i < sizeof text - 1; i++)
		send_bytes(fd, text + i, 1);
	got = recv_all(fd);
	CHECK_CONTAINS("\r\n\r\nhelloHTTP/1.1 200 OK", got);
	CHECK_CONTAINS("\r\n\r\nabcdeHTTP/1.1 200 OK", got);
	CHECK_CONTAINS("\r\n\r\nok\n", got);
}

/* SERVER-3: faults 28, 30 and 31. Each is followed by a request that must not be seen. */
TEST(what_is_no_http_is_refused_and_the_connection_closed)
{
	static const struct {
		const char *request, *want;
	} cases[] = {
		{ "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n"
		  "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		  "400" },
		{ "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n"
		  "Content-Length: 2\r\n\r\nab",
		  "400" },
		{ "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", "400" },
		{ "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\na", "400" },
		{ "GET /healthz HTTP/1.1\nHost: h\n\n", "400" },
		{ "GET /healthz HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", "400" },
		{ "GET /healthz HTTP/1.1\r\nHost : h\r\n\r\n", "400" },
		{ "GET /healthz HTTP/1.1\r\nHost: h\r\nA: b\rc\r\n\r\n", "400" },
		{ "GET /healthz HTTP/1.1\r\n\r\n", "400" },
		{ "GET /healthz\r\n\r\n", "400" },
		{ "GET /healthz HTTP/2.0\r\nHost: h\r\n\r\n", "505" },
		{ "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n",
		  "501" },
		{ "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
		  "zz\r\n",
		  "400" },
		{ "POST /echo HTTP/1.1\r\nHost: h\r\nExpect: gifts\r\n\r\n", "417" },
	};

	EACH(i, cases) {
		const int fd = dial();
		const char *got;

		send_text(fd, cases[i].request);
		send_text(fd, "GET /wait HTTP/1.1" END);
		got = recv_all(fd);
		CHECK_CONTAINS("HTTP/1.1 ", got);
		CHECK(strncmp(got + 9, cases[i].want, 3) == 0);
		CHECK_CONTAINS("Connection: close\r\n", got);
		CHECK(!strstr(got + 1, "HTTP/1.1 "));
		hang_up(fd);
	}
	CHECK_EQ(0, atomic_load(&fx.n_kept));
	WAIT_UNTIL(server_metric(fx.srv, SERVER_PARSE_ERRORS) == (int64_t)COUNT(cases));
}

TEST(what_comes_before_a_refused_request_is_answered_first)
{
	const char *got;

	const int fd = dial();
	send_text(fd, "GET /wait?early HTTP/1.1" END "NONSENSE\r\n\r\n");
	fx_release(0);
	got = recv_all(fd);
	CHECK(strstr(got, "early") < strstr(got, "400 Bad Request"));
}

/* Fault 26: before anything of the body is read. */
TEST(a_body_beyond_the_limit_of_its_route_is_413)
{
	static const char *const requests[] = {
		"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 200001\r\n\r\n",
		"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9223372036854775807"
		"\r\n\r\n",
		"POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
		"Content-Length: 200001\r\n\r\n",
		"GET /healthz HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n",
		"POST /claim HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
		"9\r\n123456789\r\n2\r\n",
	};

	EACH(i, requests)
		CHECK_CONTAINS("HTTP/1.1 413 ", ask(requests[i]));
}

TEST(a_client_that_sends_too_much_still_reads_why)
{
	static char body[1 << 20];

	const int fd = dial();
	send_text(fd, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1048576\r\n\r\n");
	send_bytes(fd, body, sizeof body);
	CHECK_CONTAINS("HTTP/1.1 413 ", recv_all(fd));
}

TEST(a_body_may_be_as_large_as_its_route_allows)
{
	static char body[ECHO_MAX];
	size_t n = 0;

	const int fd = dial();
	memset(body, 'x', sizeof body);
	send_text(fd, "POST /echo HTTP/1.1\r\nContent-Length: 200000" BYE);
	send_bytes(fd, body, sizeof body);
	for (const char *p = strstr(recv_all(fd), "\r\n\r\n") + 4; *p == 'x'; p++)
		n++;
	CHECK_EQ(ECHO_MAX, n);
}

TEST(a_client_that_expects_100_continue_gets_it)
{
	const char *got;
	int fd;

	fd = dial();
	send_text(fd, "GET /wait?before HTTP/1.1" END
		      "POST /echo HTTP/1.1\r\nExpect: 100-continue\r\n"
		      "Content-Length: 4" BYE);
	fx_release(0);
	got = recv_until(fd, "100 Continue\r\n\r\n", 1);
	CHECK(strstr(got, "before") < strstr(got, "HTTP/1.1 100 Continue"));
	send_text(fd, "body");
	CHECK_CONTAINS("\r\n\r\nbody", recv_all(fd));
	hang_up(fd);

	fd = dial(); /* one that does not wait needs no telling */
	send_text(fd, "POST /echo HTTP/1.1\r\nExpect: 100-continue\r\n"
		      "Content-Length: 4" BYE "body");
	got = recv_all(fd);
	CHECK(!strstr(got, "100 Continue"));
	CHECK_CONTAINS("\r\n\r\nbody", got);
}

TEST(headers_of_requests_are_read_and_of_answers_added)
{
	const char *got;

	got = ask("POST /echo HTTP/1.1\r\nX-Tag: a, b\r\nContent-Length: 2" BYE "hi");
	CHECK_CONTAINS("\r\nx-tag: a, b\r\n", got);
	CHECK_CONTAINS("\r\nDate: ", got);
}

TEST(another_thread_may_answer)
{
	const char *got;

	const int fd = dial();
	for (int i = 0; i < 50; i++) {
		send_text(fd, "GET /thread?over HTTP/1.1" END);
		got = recv_until(fd, "\r\n\r\nover", 1);
		CHECK_CONTAINS("200 OK", got);
		WAIT_UNTIL(atomic_load(&fx.kept[i].ended) == 1);
	}
}
