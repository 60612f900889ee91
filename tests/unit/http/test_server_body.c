/*
 * test_server_body.c - bodies in pieces (CALL-8).
 *
 *      POST /sum      adds its bytes up, a piece at a time
 *      POST /apart    the same, each piece by another thread
 *      POST /stuck    keeps a piece until the test lets it go
 *      POST /enough   answers 418 at its second piece
 */
#include "server_fixture.h"

#include <poll.h>

enum {
	LARGE = 3 * CALL_PIECE + 1234
};

static char *large; /* LARGE bytes */

/* What the handlers have seen. */
static _Atomic uint64_t bytes, sum;
static _Atomic unsigned pieces, ends;
static _Atomic(struct call *) stuck;

static void
ended(struct exchange *x, bool sent)
{
	(void)x;
	(void)sent;
	atomic_fetch_add(&ends, 1);
}

static void
add_up(struct call *c)
{
	for (size_t i = 0; i < c->body.n; i++)
		atomic_fetch_add_explicit(&sum, (unsigned char)c->body.p[i], memory_order_relaxed);
	atomic_fetch_add(&bytes, c->body.n);
	atomic_fetch_add(&pieces, 1);
	c->x.ended = ended;
}

static void
take(struct call *c, void *arg)
{
	(void)arg;
	CHECK(c->body.n > 0 && c->body.n <= CALL_PIECE + (64 << 10));
	add_up(c);
	call_next(c);
}

static void *
add_up_apart(void *arg)
{
	add_up(arg);
	call_next(arg);
	return NULL;
}

static void
take_apart(struct call *c, void *arg)
{
	pthread_t t;

	(void)arg;
	CHECK_EQ(0, pthread_create(&t, NULL, add_up_apart, c));
	pthread_detach(t);
}

static void
take_stuck(struct call *c, void *arg)
{
	(void)arg;
	add_up(c);
	atomic_store(&stuck, c);
}

static void
take_enough(struct call *c, void *arg)
{
	(void)arg;
	add_up(c);
	if (atomic_load(&pieces) == 2)
		call_answer_text(c, 418, NULL, SLICE("enough"));
	else
		call_next(c);
}

static void
handle(struct call *c, void *arg)
{
	(void)arg;
	buf_printf(&c->x.out, "%llu bytes, sum %llu", (unsigned long long)atomic_load(&bytes),
		   (unsigned long long)atomic_load(&sum));
	call_answer(c, 200, "text/plain", &c->x.out);
}

static const struct route routes[] = {
	{ "POST", "/sum", handle, .take = take, .max_body = LARGE },
	{ "POST", "/apart", handle, .take = take_apart, .max_body = LARGE },
	{ "POST", "/stuck", handle, .take = take_stuck, .max_body = LARGE },
	{ "POST", "/enough", handle, .take = take_enough, .max_body = LARGE },
	{ "POST", "/keep", fx_wait, .max_body = LARGE },
	{ "GET", "/healthz", fx_healthz, .max_body = 0 },
};

static void
start_with(struct server_conf conf)
{
	fx.http = (struct http_conf){ .routes = routes, .n_routes = COUNT(routes) };
	CHECK_EQ(0, fx_open(conf));
	if (!large)
		large = mem_alloc(LARGE);
	CHECK(large);
	for (unsigned i = 0; i < LARGE; i++)
		large[i] = (char)(i * 7 + i / 1000);
}

static void
start(void)
{
	start_with((struct server_conf){ .threads = 1 });
}

static void
stop(void)
{
	fx_end();
	mem_free(large);
}

FIXTURE(start, stop);

static const char *
expected(size_t n)
{
	static char text[64];
	unsigned long long all = 0;

	for (size_t i = 0; i < n; i++)
		all += (unsigned char)large[i];
	snprintf(text, sizeof text, "%zu bytes, sum %llu", n, all);
	return text;
}

static void
send_head(int fd, const char *path, const char *framing)
{
	char head[256];

	snprintf(head, sizeof head, "POST %s HTTP/1.1\r\nHost: h\r\n%s\r\n\r\n", path, framing);
	send_text(fd, head);
}

static void
send_length(int fd, const char *path, size_t n)
{
	char framing[64];

	snprintf(framing, sizeof framing, "Content-Length: %zu", n);
	send_head(fd, path, framing);
}

static void
send_chunk(int fd, const char *p, size_t n)
{
	char size[32];

	snprintf(size, sizeof size, "%zx\r\n", n);
	send_text(fd, size);
	send_bytes(fd, p, n);
	send_text(fd, "\r\n");
}

TEST(a_large_body_comes_in_pieces)
{
	static const char *const paths[] = { "/sum", "/apart" };

	EACH(i, paths) {
		const int fd = dial();

		atomic_store(&bytes, 0);
		atomic_store(&sum, 0);
		atomic_store(&pieces, 0);
		send_length(fd, paths[i], LARGE);
		send_bytes(fd, large, LARGE);
		CHECK_CONTAINS(expected(LARGE), recv_until(fd, " bytes, sum ", 1));
		CHECK(atomic_load(&pieces) >= 3 && atomic_load(&pieces) <= 4);
		hang_up(fd);
	}
	WAIT_UNTIL(atomic_load(&ends) == 2);
}

/* Bytes behind it are ignored; the bytes of the body count. */
TEST(the_last_request_of_a_connection_has_its_body_too)
{
	static const size_t sizes[] = { 10, LARGE };
	static const char *const paths[] = { "/sum", "/apart" };

	EACH(i, sizes)
		EACH(j, paths) {
			const int fd = dial();
			char framing[64];

			atomic_store(&bytes, 0);
			atomic_store(&sum, 0);
			snprintf(framing, sizeof framing, "Connection: close\r\nContent-Length: %zu",
				 sizes[i]);
			send_head(fd, paths[j], framing);
			send_bytes(fd, large, sizes[i]);
			CHECK_CONTAINS(expected(sizes[i]), recv_all(fd));
		}
}

/* As libcurl sends it: it waits for 100 Continue, and sends chunks. */
TEST(a_body_in_chunks_is_asked_for_and_comes_in_pieces)
{
	const int fd = dial();

	send_head(fd, "/apart", "Transfer-Encoding: chunked\r\nExpect: 100-continue");
	CHECK_CONTAINS("100 Continue", recv_until(fd, "\r\n\r\n", 1));
	for (size_t at = 0; at < LARGE; at += 70001)
		send_chunk(fd, large + at, LARGE - at < 70001 ? LARGE - at : 70001);
	send_text(fd, "0\r\n\r\n");
	CHECK_CONTAINS(expected(LARGE), recv_until(fd, " bytes, sum ", 1));
}

TEST(bytes_behind_a_whole_body_are_the_next_request)
{
	const char *got;

	const int fd = dial();
	send_length(fd, "/sum", 10);
	send_bytes(fd, large, 10);
	send_text(fd, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n");
	send_length(fd, "/apart", 0);
	got = recv_until(fd, " bytes, sum ", 2);
	CHECK_CONTAINS(expected(10), got);
	CHECK_CONTAINS("ok\n", got);
	CHECK_EQ(1u, atomic_load(&pieces), "without a body there are none");
}

/* Adds the i-th request, with n bytes from `from` on. */
static void
put_request(struct buf *b, unsigned i, size_t from, size_t n)
{
	buf_printf(b, "POST /keep?%u HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n\r\n", i, n);
	buf_put(b, large + from, n);
}

static void
check_body(unsigned i, size_t from, size_t n)
{
	char text[16];

	(void)snprintf(text, sizeof text, "%u", i);
	WAIT_UNTIL(atomic_load(&fx.n_kept) > i);
	CHECK_STR(text, fx.kept[i].text);
	CHECK_EQ(n, fx.kept[i].call->body.n);
	CHECK(memcmp(large + from, fx.kept[i].call->body.p, n) == 0);
}

/* The memory of the read goes to the call, and what follows in it to the next read. */
TEST(a_body_that_one_read_brought_stays_as_it_is_while_others_arrive)
{
	static const size_t sizes[] = { 100, 16 * 1024 - 1, 16 * 1024, 30000, 60000, 64 * 1024, 70000 };
	unsigned n = 0;

	EACH(i, sizes)
		for (size_t behind = 0; behind < 3; behind++) {
			const int fd = dial();
			struct buf b;
			size_t first;

			buf_init(&b, 1 << 20);
			put_request(&b, n, i, sizes[i]);
			first = b.n + (behind == 0 ? 0 : behind == 1 ? 20
								     : 6000);
			put_request(&b, n + 1, 1000 + i, 20000);
			send_bytes(fd, b.p, first);
			check_body(n, i, sizes[i]);
			send_bytes(fd, b.p + first, b.n - first);
			check_body(n + 1, 1000 + i, 20000);
			check_body(n, i, sizes[i]);
			fx_release(n);
			fx_release(n + 1);
			(void)recv_until(fd, "200 OK", 2);
			hang_up(fd);
			buf_release(&b);
			n += 2;
		}
}

/* Backpressure: two pieces in memory, and a little in the connection. */
/* Whether the server makes room in the kernel's buffers. One that reads on does so at once. */
static bool
is_read_on(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return poll(&p, 1, 200) == 1;
}

/* The server's only thread serves others: each time it can read from every connection. */
static void
serve_others(void)
{
	for (unsigned i = 0; i < 40; i++) {
		const int fd = dial();

		send_text(fd, "GET /none HTTP/1.1\r\nHost: x\r\n\r\n");
		CHECK_CONTAINS("404 Not Found", recv_until(fd, "\r\n\r\n", 1));
		hang_up(fd);
	}
}

TEST(a_busy_handler_is_not_sent_more)
{
	const char *got;
	size_t sent = 0;

	const int fd = dial();
	send_length(fd, "/stuck", LARGE);
	while (sent < LARGE) {
		const ssize_t k = send(fd, large + sent, LARGE - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (k > 0)
			sent += (size_t)k;
		else if (atomic_load(&pieces) == 1 && !is_read_on(fd))
			break; /* the kernel is full, too */
	}
	WAIT_UNTIL(atomic_load(&stuck));
	serve_others();
	CHECK_EQ(1u, atomic_load(&pieces));
	CHECK(server_metric(fx.srv, SERVER_BODIES) <= 2 * (CALL_PIECE + (64 << 10)));
	for (unsigned i = 0; i < 4 && atomic_load(&bytes) < LARGE; i++) {
		struct call *const c = atomic_exchange(&stuck, NULL);

		call_next(c);
		for (; sent < LARGE && !atomic_load(&stuck);) {
			const ssize_t k = send(fd, large + sent, LARGE - sent,
					       MSG_DONTWAIT | MSG_NOSIGNAL);

			sent += k > 0 ? (size_t)k : 0;
		}
		WAIT_UNTIL(atomic_load(&stuck));
	}
	call_next(atomic_load(&stuck));
	got = recv_until(fd, " bytes, sum ", 1);
	CHECK_CONTAINS(expected(LARGE), got);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_BODIES) == 0);
}

TEST(an_answer_before_the_end_of_a_body_closes_behind_it)
{
	const char *got;

	const int fd = dial();
	send_length(fd, "/enough", LARGE);
	send_bytes(fd, large, LARGE);
	got = recv_all(fd);
	CHECK_CONTAINS("HTTP/1.1 418", got);
	CHECK_CONTAINS("Connection: close", got);
	CHECK_CONTAINS("enough", got);
	WAIT_UNTIL(atomic_load(&ends) == 1);
}

/* The server answers, the handler hears of the end alone. */
TEST(a_body_that_is_not_well_formed_is_refused)
{
	static const struct {
		const char *label, *bytes, *want;
	} cases[] = {
		{ "bad chunk", "5\r\nhelloXY\r\n", "400 Bad Request" },
		{ "no size", "zz\r\n", "400 Bad Request" },
		{ "too long", "7fffffff\r\n", "413 Content Too Large" },
	};

	EACH(i, cases) {
		const int fd = dial();
		const char *got;

		send_head(fd, "/sum", "Transfer-Encoding: chunked");
		send_text(fd, cases[i].bytes);
		got = recv_all(fd);
		CHECK(strstr(got, cases[i].want) != NULL);
		hang_up(fd);
	}
}

TEST(a_refusal_waits_for_a_handler_that_has_a_piece)
{
	const int fd = dial();

	send_head(fd, "/stuck", "Transfer-Encoding: chunked");
	send_chunk(fd, large, CALL_PIECE);
	WAIT_UNTIL(atomic_load(&stuck));
	send_text(fd, "zz\r\n");
	call_next(atomic_exchange(&stuck, NULL));
	CHECK_CONTAINS("400 Bad Request", recv_all(fd));
	WAIT_UNTIL(atomic_load(&ends) == 1);
}

TEST(a_client_that_goes_in_the_middle_ends_the_call)
{
	const int fd = dial();

	send_length(fd, "/sum", LARGE);
	send_bytes(fd, large, CALL_PIECE + (64 << 10));
	WAIT_UNTIL(atomic_load(&pieces) == 1);
	hang_up(fd);
	WAIT_UNTIL(atomic_load(&ends) == 1);
}

TEST(a_client_that_goes_while_a_piece_is_taken_ends_the_call_then)
{
	const int fd = dial();

	send_length(fd, "/stuck", LARGE);
	send_bytes(fd, large, CALL_PIECE + (64 << 10));
	WAIT_UNTIL(atomic_load(&stuck));
	hang_up(fd);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_CONNECTIONS) == 0);
	CHECK_EQ(0u, atomic_load(&ends));
	call_next(atomic_exchange(&stuck, NULL));
	WAIT_UNTIL(atomic_load(&ends) == 1);
}

/* SERVER-4 */
TEST(a_slow_body_is_refused_unless_the_handler_is_slow)
{
	int fd;

	start_with((struct server_conf){ .threads = 1, .rate_period = 20 * SLU_MS });
	fd = dial();
	send_length(fd, "/sum", LARGE);
	CHECK_CONTAINS("408 Request Timeout", recv_all(fd));
	hang_up(fd);
	fd = dial();
	send_length(fd, "/stuck", CALL_PIECE);
	send_bytes(fd, large, CALL_PIECE);
	WAIT_UNTIL(atomic_load(&stuck));
	for (unsigned i = 0; i < 3; i++) {
		/* Deadlines are looked at meanwhile: others are closed for theirs. */
		const int other = dial();

		send_length(other, "/sum", LARGE);
		CHECK_CONTAINS("408", recv_all(other));
		hang_up(other);
	}
	call_next(atomic_exchange(&stuck, NULL));
	CHECK_CONTAINS(" bytes, sum ", recv_until(fd, " bytes, sum ", 1));
}
