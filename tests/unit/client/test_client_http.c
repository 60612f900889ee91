/*
 * Answers whole, in pieces, garbled and too large; then the client on a unix socket
 * against a server of a few lines that plays a script.
 */
#include "client/answer.h"
#include "client/http.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <test.h>
#include <unistd.h>

/* --- the parser ------------------------------------------------------------- */

/* "200 keep: body", or "refused: why", or "more". */
static const char *
outcome(const char *bytes, size_t n, size_t step, char *out, size_t room)
{
	enum answer_event e = ANSWER_MORE;
	struct answer a;

	answer_init(&a, 1000);
	for (size_t at = 0; at < n && e == ANSWER_MORE; at += step) {
		const size_t part = n - at < step ? n - at : step;
		char *own = malloc(part); /* a look beyond it is seen by the sanitizer */
		struct slice in = { own, part };

		memcpy(own, bytes + at, part);
		e = answer_next(&a, &in);
		free(own);
	}
	if (e == ANSWER_MORE)
		snprintf(out, room, "more");
	else if (e == ANSWER_REFUSED)
		snprintf(out, room, "refused: %s", answer_refusal(&a));
	else
		snprintf(out, room, "%u %s: %s", a.status, a.keep_alive ? "keep" : "close",
			 buf_str(&a.body));
	answer_release(&a);
	return out;
}

static const struct {
	const char *bytes;
	const char *want;
} cases[] = {
	{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "200 keep: hello" },
	{ "HTTP/1.1 200\r\ncontent-length:0\r\n\r\n", "200 keep: " },
	{ "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
	  "404 close: {}" },
	{ "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n", "200 close: " },
	{ "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", "200 close: a" },
	{ "HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\na",
	  "200 keep: a" },
	{ "HTTP/1.1 204 No Content\r\n\r\n", "204 keep: " },
	{ "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
	  "200 keep: a" },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n "
	  "there\r\n0\r\nT: v\r\n\r\n",
	  "200 keep: hello there" },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n", "200 keep: " },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", "more" },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "more" },
	{ "HTTP/1.1 200 OK\n", "refused: a line of the head does not end in CRLF" },
	{ "SSH-2.0-OpenSSH_9.2\r\n", "refused: the first line is not a status line of HTTP/1.1" },
	{ "HTTP/2.0 200 OK\r\n", "refused: the first line is not a status line of HTTP/1.1" },
	{ "HTTP/1.1 20 OK\r\n", "refused: the first line is not a status line of HTTP/1.1" },
	{ "HTTP/1.1 099 OK\r\n", "refused: the first line is not a status line of HTTP/1.1" },
	{ "HTTP/1.1 200OK\r\n", "refused: the first line is not a status line of HTTP/1.1" },
	{ "HTTP/1.1 200 O\001K\r\n", "refused: the first line is not a status line of HTTP/1.1" },
	{ "\r\nHTTP/1.1 200 OK\r\n", "refused: the first line is not a status line of HTTP/1.1" },
	{ "HTTP/1.1 200 OK\r\nno colon\r\n", "refused: a field of the head is malformed" },
	{ "HTTP/1.1 200 OK\r\na b: c\r\n", "refused: a field of the head is malformed" },
	{ "HTTP/1.1 200 OK\r\n folded: c\r\n", "refused: a field of the head is malformed" },
	{ "HTTP/1.1 200 OK\r\na: b\rc\r\n", "refused: a field of the head is malformed" },
	{ "HTTP/1.1 200 OK\r\n\r\n", "refused: the body has no length" },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
	  "refused: the body has two lengths" },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
	  "refused: the body has two lengths" },
	{ "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
	  "refused: Content-Length is not a number" },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
	  "refused: Content-Length is not a number" },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", "refused: the body is too large" },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
	  "refused: Transfer-Encoding is not `chunked`" },
	{ "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
	  "refused: Transfer-Encoding is not `chunked`" },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n",
	  "refused: the body is too large" },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
	  "refused: a chunk of the body is malformed" },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
	  "refused: a chunk of the body is malformed" },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
	  "refused: a chunk of the body is malformed" },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
	  "refused: a chunk of the body is malformed" },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nno colon\r\n",
	  "refused: a trailer is malformed" },
};

TEST(an_answer_is_the_same_however_it_is_cut)
{
	char out[200];

	EACH(i, cases) {
		const size_t n = strlen(cases[i].bytes);

		for (size_t step = n; step > 0; step--)
			CHECK_STR(cases[i].want,
				  outcome(cases[i].bytes, n, step, out, sizeof out));
	}
}

TEST(interim_answers_have_an_end)
{
	struct buf b;
	char out[200];

	buf_init(&b, SIZE_MAX);
	for (int i = 0; i <= ANSWER_INTERIM_MAX; i++)
		buf_puts(&b, "HTTP/1.1 100 Continue\r\n\r\n");
	CHECK_STR("refused: too many interim answers", outcome(b.p, b.n, 7, out, sizeof out));
	buf_release(&b);
}

TEST(a_head_and_a_line_have_their_limits)
{
	struct buf b;
	char out[200];

	buf_init(&b, SIZE_MAX);
	buf_puts(&b, "HTTP/1.1 200 OK\r\nlong: ");
	for (int i = 0; i < ANSWER_LINE; i++)
		buf_putc(&b, 'x');
	CHECK_STR("refused: the head is too large", outcome(b.p, b.n, b.n, out, sizeof out));
	CHECK_STR("refused: the head is too large", outcome(b.p, b.n, 1, out, sizeof out));
	buf_clear(&b);
	buf_puts(&b, "HTTP/1.1 200 OK\r\n");
	for (int i = 0; i < ANSWER_HEAD / 4; i++)
		buf_puts(&b, "a: b\r\n");
	CHECK_STR("refused: the head is too large", outcome(b.p, b.n, 64, out, sizeof out));
	buf_release(&b);
}

TEST(many_small_chunks_are_fine_and_endless_extensions_are_not)
{
	struct buf b;
	char out[2000];

	buf_init(&b, SIZE_MAX);
	buf_puts(&b, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	for (int i = 0; i < 1000; i++)
		buf_puts(&b, "1\r\na\r\n");
	buf_puts(&b, "0\r\n\r\n");
	CHECK_EQ(10 + 1000, strlen(outcome(b.p, b.n, b.n, out, sizeof out)));
	buf_clear(&b);
	buf_puts(&b, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	for (int i = 0; i < 900; i++)
		buf_puts(&b, "1;aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\na\r\n");
	CHECK_STR("refused: the head is too large", outcome(b.p, b.n, b.n, out, sizeof out));
	buf_release(&b);
}

TEST(what_follows_an_answer_is_left_alone)
{
	struct slice in = SLICE("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nRetry-After: "
				"7\r\n\r\naHTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n");
	struct answer a;

	answer_init(&a, 100);
	CHECK(answer_is_untouched(&a));
	CHECK_EQ(ANSWER_WHOLE, answer_next(&a, &in));
	CHECK_EQ(200, a.status);
	CHECK_EQ(7, a.retry_after);
	answer_begin(&a, false);
	CHECK_EQ(ANSWER_WHOLE, answer_next(&a, &in));
	CHECK_EQ(503, a.status);
	CHECK(a.retry_after == ANSWER_NO_RETRY);
	CHECK_EQ(0, in.n);
	answer_release(&a);
}

TORTURE(an_answer_survives_a_lack_of_memory)
{
	struct slice in = SLICE("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
	struct answer a;

	answer_init(&a, 100);
	if (answer_next(&a, &in) == ANSWER_REFUSED)
		CHECK_STR("out of memory", answer_refusal(&a));
	answer_release(&a);
}

/* --- addresses -------------------------------------------------------------- */

TEST(an_address_is_a_host_and_a_port_or_a_path)
{
	static const struct {
		const char *text, *host, *port, *path;
	} good[] = {
		{ "127.0.0.1:7171", "127.0.0.1", "7171", "" },
		{ "http://127.0.0.1:7171", "127.0.0.1", "7171", "" },
		{ "http://queue.example:80/", "queue.example", "80", "" },
		{ "queue.example", "queue.example", "7171", "" },
		{ "[::1]:99", "::1", "99", "" },
		{ "[::1]", "::1", "7171", "" },
		{ "unix:/run/s.sock", "", "", "/run/s.sock" },
	};
	static const char *const bad[] = {
		"", ":7171", "host:", "host:0", "host:65536", "host:x", "::1", "[::1", "[::1]x",
		"unix:", "http://"
	};
	struct slu_err err;
	struct address a;

	EACH(i, good) {
		CHECK_EQ(0, address_parse(&a, good[i].text, &err), good[i].text);
		CHECK_STR(good[i].host, a.host);
		CHECK_STR(good[i].port, a.port);
		CHECK_STR(good[i].path, a.path);
	}
	EACH(i, bad)
		CHECK_EQ(SLU_EINVAL, address_parse(&a, bad[i], &err), bad[i]);
}

TEST(a_query_is_encoded)
{
	struct buf b;

	buf_init(&b, 100);
	http_encode(&b, SLICE("a-B_9.~ /?&\xc3\xa9"));
	CHECK_STR("a-B_9.~%20%2F%3F%26%C3%A9", buf_str(&b));
	buf_release(&b);
}

/* --- the client ------------------------------------------------------------- */

/* Accepts one connection an entry, reads a request there for each of its answers, and
 * closes: "" reads a request and answers nothing. */
struct play {
	const char *const (*answers)[4];
	int n;
	int listener;
	int requests; /* read after the join */
	int hold;     /* eventfd: answers wait for it; -1: none */
	int stop;     /* eventfd that is signalled when a request was read; 0: none */
	pthread_t thread;
};

static bool
read_request(int fd)
{
	char last[4] = "";
	char c;

	while (memcmp(last, "\r\n\r\n", 4) != 0) {
		if (recv(fd, &c, 1, 0) != 1)
			return false;
		memmove(last, last + 1, 3);
		last[3] = c;
	}
	return true;
}

static void *
play(void *arg)
{
	struct play *p = arg;

	for (int i = 0; i < p->n; i++) {
		const int fd = accept(p->listener, NULL, NULL);

		for (int k = 0; k < 4 && p->answers[i][k]; k++) {
			const char *text = p->answers[i][k];
			uint64_t token;

			if (!read_request(fd))
				break;
			p->requests++;
			if (p->stop > 0 && write(p->stop, &(uint64_t){ 1 }, 8) < 0)
				abort();
			if (p->hold >= 0 && read(p->hold, &token, sizeof token) < 0)
				abort();
			if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
				break;
		}
		close(fd);
	}
	return NULL;
}

static void
play_start(struct play *p, struct http *h)
{
	const struct sockaddr_un sa = { .sun_family = AF_UNIX, .sun_path = "s" };
	struct slu_err err;
	struct address a;

	p->listener = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK(p->listener >= 0);
	CHECK_EQ(0, bind(p->listener, (const struct sockaddr *)&sa, sizeof sa));
	CHECK_EQ(0, listen(p->listener, 8));
	CHECK_EQ(0, pthread_create(&p->thread, NULL, play, p));
	CHECK_EQ(0, address_parse(&a, "unix:s", &err));
	http_init(h, &a);
}

static void
play_end(struct play *p, struct http *h)
{
	http_release(h);
	pthread_join(p->thread, NULL);
	close(p->listener);
}

static const struct patience for_ever = { .deadline = SLU_NEVER, .stop_fd = -1 };

#define FINE "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

TEST(a_connection_is_kept_and_one_that_was_closed_is_replaced)
{
	static const char *const answers[][4] = { { FINE, FINE }, { FINE } };
	struct play p = { .answers = answers, .n = 2, .hold = -1 };
	const struct http_call call = { .method = "POST", .path = "/", .until = for_ever };
	struct slu_err err;
	struct http h;

	play_start(&p, &h);
	CHECK_EQ(0, http_call(&h, &call, &err));
	CHECK_EQ(0, http_call(&h, &call, &err));
	char c; /* CLIENTHTTP-1: the close has arrived before the third call */
	WAIT_UNTIL(recv(h.wire.fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0);
	CHECK_EQ(0, http_call(&h, &call, &err));
	CHECK_STR("ok", buf_str(&h.answer.body));
	play_end(&p, &h);
	CHECK_EQ(3, p.requests);
}

TEST(only_a_repeatable_call_is_repeated_when_a_kept_connection_ends)
{
	static const char *const answers[][4] = { { FINE, "" }, { FINE, "" } };
	struct play p = { .answers = answers, .n = 2, .hold = -1 };
	struct http_call call = { .method = "GET", .path = "/", .until = for_ever };
	struct slu_err err;
	struct http h;

	play_start(&p, &h);
	CHECK_EQ(0, http_call(&h, &call, &err));
	call.repeatable = true;
	CHECK_EQ(0, http_call(&h, &call, &err)); /* CLIENTHTTP-2: asked again on the second */
	call.repeatable = false;
	CHECK_EQ(SLU_EUNKNOWN, http_call(&h, &call, &err));
	CHECK_CONTAINS("before the answer was complete", err.text);
	play_end(&p, &h);
	CHECK_EQ(4, p.requests);
}

TEST(half_an_answer_is_never_taken_and_never_repeated)
{
	static const char *const answers[][4] = {
		{ FINE, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf" }
	};
	struct play p = { .answers = answers, .n = 1, .hold = -1 };
	const struct http_call call = {
		.method = "GET", .path = "/", .repeatable = true, .until = for_ever
	};
	struct slu_err err;
	struct http h;

	play_start(&p, &h);
	CHECK_EQ(0, http_call(&h, &call, &err));
	CHECK_EQ(SLU_EUNKNOWN, http_call(&h, &call, &err));
	play_end(&p, &h);
	CHECK_EQ(2, p.requests);
}

TEST(something_else_than_http_is_named)
{
	static const char *const answers[][4] = { { "220 mail.example ESMTP\r\n" } };
	struct play p = { .answers = answers, .n = 1, .hold = -1 };
	const struct http_call call = { .method = "GET", .path = "/", .until = for_ever };
	struct slu_err err;
	struct http h;

	play_start(&p, &h);
	CHECK_EQ(SLU_EUNKNOWN, http_call(&h, &call, &err));
	CHECK_CONTAINS("is this a Sluice server?", err.text);
	play_end(&p, &h);
}

TEST(nobody_there_says_how_to_start_a_server)
{
	const struct http_call call = { .method = "GET", .path = "/", .until = for_ever };
	struct slu_err err;
	struct address a;
	struct http h;

	CHECK_EQ(0, address_parse(&a, "unix:nowhere", &err));
	http_init(&h, &a);
	CHECK_EQ(SLU_EDOWN, http_call(&h, &call, &err));
	CHECK_CONTAINS("no server at unix:nowhere", err.text);
	CHECK_CONTAINS("sluiced", err.text);
	http_release(&h);
}

TEST(a_deadline_ends_a_call)
{
	static const char *const answers[][4] = { { FINE } };
	struct play p = { .answers = answers, .n = 1, .hold = eventfd(0, 0) };
	const struct http_call call = {
		.method = "GET",
		.path = "/slow",
		.until = { .deadline = clock_mono(&clock_system) + 20 * SLU_MS, .stop_fd = -1 },
	};
	const uint64_t one = 1;
	struct slu_err err;
	struct http h;

	play_start(&p, &h);
	CHECK_EQ(SLU_ETIMEOUT, http_call(&h, &call, &err));
	CHECK_CONTAINS("GET /slow", err.text);
	CHECK(clock_mono(&clock_system) >= call.until.deadline); /* CLIENTHTTP-3 */
	CHECK_EQ(-1, h.wire.fd);
	CHECK_EQ(sizeof one, write(p.hold, &one, sizeof one));
	play_end(&p, &h);
	close(p.hold);
}

/* CLIENTHTTP-4: the call is stopped once its request has been read. */
static int
stop_a_wait(const char *const (*answers)[4])
{
	struct play p = { .answers = answers, .n = 1, .hold = -1, .stop = eventfd(0, 0) };
	const struct http_call call = {
		.method = "GET",
		.path = "/",
		.waits = true,
		.until = { .deadline = SLU_NEVER, .stop_fd = p.stop },
	};
	struct slu_err err;
	struct http h;
	int rc;

	play_start(&p, &h);
	rc = http_call(&h, &call, &err);
	play_end(&p, &h);
	close(p.stop);
	return rc;
}

TEST(a_stopped_wait_takes_what_was_on_its_way)
{
	static const char *const answers[][4] = { { FINE } };

	CHECK_EQ(0, stop_a_wait(answers));
}

TEST(a_stopped_wait_without_an_answer_is_canceled)
{
	static const char *const answers[][4] = { { "" } };

	CHECK_EQ(SLU_ECANCELED, stop_a_wait(answers));
}
