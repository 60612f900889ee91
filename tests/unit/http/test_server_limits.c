/*
 * test_server_limits.c - slow, greedy and numerous clients (faults 23 to 26).
 */
#include "server_fixture.h"

#include "base/clock.h"
#include "net/files.h"

FIXTURE(NULL, fx_end);

/* Long enough for what is not meant to time out. */
static const slu_time long_time = 1000 * SLU_SEC;

static struct server_conf
patient(void)
{
	return (struct server_conf){
		.header_timeout = long_time,
		.idle_timeout = long_time,
		.rate_period = long_time,
	};
}

static void
start(struct server_conf conf)
{
	CHECK_EQ(0, fx_open(conf));
}

/* --- slow (SERVER-4) ------------------------------------------------------------------ */

TEST(a_head_that_takes_too_long_is_408)
{
	struct server_conf conf = patient();

	conf.header_timeout = 20 * SLU_MS;
	start(conf);
	const int fd = dial();
	send_text(fd, "GET /healthz HTTP/1.1\r\nHo");
	CHECK_CONTAINS("HTTP/1.1 408 ", recv_all(fd));
	WAIT_UNTIL(server_metric(fx.srv, SERVER_TIMEOUTS) == 1);
}

/* The whole head has one deadline, however busily it trickles in. */
TEST(a_head_that_trickles_in_is_408)
{
	struct server_conf conf = patient();

	conf.header_timeout = 30 * SLU_MS;
	start(conf);
	const int fd = dial();
	send_text(fd, "GET /healthz HTTP/1.1\r\nX: ");
	for (int i = 0; server_metric(fx.srv, SERVER_TIMEOUTS) == 0; i++) {
		send_text(fd, i % 50 ? "x" : "\r\nX: ");
		test_yield();
	}
	CHECK_CONTAINS("HTTP/1.1 408 ", recv_all(fd));
}

TEST(a_body_that_does_not_move_is_408)
{
	struct server_conf conf = patient();

	conf.rate_period = 20 * SLU_MS;
	start(conf);
	const int fd = dial();
	send_text(fd, "POST /echo HTTP/1.1\r\nContent-Length: 5" END "ab");
	CHECK_CONTAINS("HTTP/1.1 408 ", recv_all(fd));
}

TEST(a_body_that_moves_fast_enough_may_take_long)
{
	struct server_conf conf = patient();
	slu_time end;

	conf.rate_period = SLU_SEC;
	conf.min_rate = 1;
	start(conf);
	const int fd = dial();
	send_text(fd, "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked" BYE);
	for (end = clock_mono(&clock_system) + 3 * SLU_SEC / 2;
	     clock_mono(&clock_system) < end; test_yield())
		send_text(fd, "1\r\na\r\n");
	send_text(fd, "0\r\n\r\n");
	CHECK_CONTAINS("HTTP/1.1 200 ", recv_all(fd));
}

TEST(an_idle_connection_is_closed_without_a_word)
{
	struct server_conf conf = patient();
	int fresh, used;

	conf.idle_timeout = 20 * SLU_MS;
	start(conf);
	fresh = dial();
	used = dial();
	send_text(used, "GET /healthz HTTP/1.1" END);
	CHECK_STR("", recv_all(fresh));
	recv_until(used, "ok\n", 1);
	CHECK_STR("", recv_all(used));
	CHECK_EQ(0, server_metric(fx.srv, SERVER_TIMEOUTS));
}

TEST(a_call_that_waits_outlives_all_timeouts)
{
	int idle, waiting;

	start((struct server_conf){
		.header_timeout = 5 * SLU_MS,
		.idle_timeout = 20 * SLU_MS,
		.rate_period = 5 * SLU_MS,
	});
	waiting = dial();
	send_text(waiting, "GET /wait?late HTTP/1.1" END);
	WAIT_UNTIL(atomic_load(&fx.n_kept) == 1);
	for (int i = 0; i < 3; i++) {
		idle = dial();
		CHECK(is_closed(idle));
		hang_up(idle);
	}
	fx_release(0);
	CHECK_CONTAINS("late", recv_until(waiting, "late", 1));
}

/* --- greedy ----------------------------------------------------------------------- */

TEST(a_client_that_reads_nothing_is_closed_when_its_output_is_too_much)
{
	struct server_conf conf = patient();

	conf.max_output = 1 << 20;
	start(conf);
	const int fd = dial();
	send_text(fd, "GET /big HTTP/1.1" END);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_SLOW_READERS) == 1);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_CONNECTIONS) == 0);
}

TEST(a_client_that_reads_nothing_is_closed_after_a_while)
{
	struct server_conf conf = patient();

	conf.rate_period = 20 * SLU_MS;
	start(conf);
	const int fd = dial();
	send_text(fd, "GET /big HTTP/1.1" END);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_TIMEOUTS) == 1);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_CONNECTIONS) == 0);
}

/* More than the kernel takes at once, and while it waits nothing more is run. */
TEST(large_answers_arrive_whole)
{
	static char got[1 << 16];
	size_t all = 0;

	start(patient());
	const int fd = dial();
	send_text(fd, "GET /big HTTP/1.1" END "GET /big HTTP/1.1" END
		      "GET /wait?x HTTP/1.1" BYE);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_SENT) > 0);
	CHECK_EQ(0, atomic_load(&fx.n_kept));
	for (bool released = false;;) {
		const ssize_t n = recv(fd, got, sizeof got, 0);

		if (n <= 0)
			break;
		all += (size_t)n;
		if (!released && all >= 2 * (size_t)BIG_ANSWER) {
			fx_release(0);
			released = true;
		}
	}
	CHECK(all > 2 * (size_t)BIG_ANSWER && all < 2 * (size_t)BIG_ANSWER + 1000);
}

/* SERVER-1: what a client sends behind a call that holds stays with the client. */
TEST(no_more_is_read_ahead_than_a_little)
{
	static char flood[1 << 16];

	start(patient());
	const int fd = dial();
	send_text(fd, "GET /hold?x HTTP/1.1" END);
	WAIT_UNTIL(atomic_load(&fx.n_kept) == 1);
	memset(flood, '\n', sizeof flood);
	while (send(fd, flood, sizeof flood, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		test_yield();
	CHECK_EQ(EAGAIN, errno);
	CHECK(server_metric(fx.srv, SERVER_RECEIVED) < 128 * 1024);
	fx_release(0);
	CHECK_CONTAINS("\r\n\r\nx", recv_until(fd, "400 Bad Request", 1));
}

/* --- numerous (SERVER-5) ------------------------------------------------------------------ */

static int
dial_unix(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)snprintf(sa.sun_path, sizeof sa.sun_path, "%s", path);
	CHECK_EQ(0, connect(fd, (struct sockaddr *)&sa, sizeof sa));
	return fd;
}

static bool
is_served(int fd)
{
	send_text(fd, "GET /healthz HTTP/1.1" END);
	return strstr(recv_until(fd, "\r\n\r\n", 1), "200 OK");
}

TEST(beyond_the_limit_connections_are_turned_away)
{
	struct server_conf conf = fx_conf(patient());
	struct slu_err err;
	int fds[6], more;

	conf.max_connections = 4;
	conf.reserve = 2;
	conf.threads = 2;
	CHECK_EQ(0, server_open(&fx.srv, &conf, &err));
	CHECK_EQ(0, server_listen(fx.srv, "127.0.0.1:0", 0, &err));
	CHECK_EQ(0, server_listen(fx.srv, "unix:sock", LISTEN_RESERVE, &err));
	CHECK_EQ(0, server_start(fx.srv, &err));
	fx.port = server_port(fx.srv, 0);
	for (int i = 0; i < 6; i++) {
		fds[i] = i < 4 ? dial() : dial_unix("sock");
		CHECK(is_served(fds[i]));
	}
	more = dial();
	CHECK_CONTAINS("HTTP/1.1 503 ", recv_all(more));
	hang_up(more);
	more = dial_unix("sock");
	CHECK_CONTAINS("HTTP/1.1 503 ", recv_all(more));
	hang_up(more);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_TURNED_AWAY) == 2);

	hang_up(fds[5]);
	hang_up(fds[4]);
	hang_up(fds[3]);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_CONNECTIONS) == 3);
	fds[3] = dial();
	CHECK(is_served(fds[3]));
	for (int i = 0; i < 4; i++)
		hang_up(fds[i]);
}

/* SERVER-5: X-05 */
TEST(the_reserve_serves_one_vital_call_and_nothing_else)
{
	struct server_conf conf = patient();
	const char *said;
	int first, fd;

	conf.max_connections = 1;
	conf.reserve = 1;
	start(conf);
	first = dial();
	CHECK(is_served(first));

	fd = dial();
	send_text(fd, "GET /healthz HTTP/1.1" END "GET /healthz HTTP/1.1" END);
	CHECK_STR("ok\n", strstr(recv_all(fd), "ok\n"));
	hang_up(fd);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_CONNECTIONS) == 1);

	fd = dial();
	send_text(fd, "GET /big HTTP/1.1" END);
	said = recv_all(fd);
	CHECK_CONTAINS("HTTP/1.1 503 ", said);
	CHECK_CONTAINS("Retry-After: 1\r\n", said);
	hang_up(fd);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_TURNED_AWAY) == 1);
	CHECK(is_served(first));
}

TEST(an_idle_connection_does_not_keep_the_reserve)
{
	struct server_conf conf = patient();
	int first, fd;

	conf.max_connections = 1;
	conf.header_timeout = 20 * SLU_MS;
	start(conf);
	first = dial();
	CHECK(is_served(first));
	fd = dial();
	CHECK_STR("", recv_all(fd));
	CHECK(is_served(first));
}

TEST(the_limit_of_connections_can_be_changed)
{
	struct server_conf conf = patient();
	int fds[2];

	conf.max_connections = 1;
	start(conf);
	fds[0] = dial();
	CHECK(is_served(fds[0]));
	server_set_limits(fx.srv, 2, 0);
	fds[1] = dial();
	send_text(fds[1], "GET /healthz HTTP/1.1" END "GET /healthz HTTP/1.1" END);
	CHECK_CONTAINS("ok\n", recv_until(fds[1], "ok\n", 2));
	hang_up(fds[0]);
	hang_up(fds[1]);
}

/* --- memory (SERVER-8) ---------------------------------------------------------------- */

enum {
	HELD = 1000,
	SECOND = 100
};

/* A call of HELD bytes that waits; max_bodies is what it takes. */
static int
hold_bodies(struct server_conf conf)
{
	char body[HELD + 1];
	int fd;

	memset(body, 'x', HELD);
	body[HELD] = 0;
	conf.max_bodies = HELD;
	start(conf);
	fd = dial();
	send_text(fd, "POST /keep HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n");
	send_text(fd, body);
	WAIT_UNTIL(atomic_load(&fx.n_kept) == 1);
	return fd;
}

static const char *
echo_second(const char *path)
{
	static char request[400];
	char body[SECOND + 1];

	memset(body, 'y', SECOND);
	body[SECOND] = 0;
	(void)snprintf(request, sizeof request,
		       "POST %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
		       "Content-Length: %d\r\n\r\n%s",
		       path, SECOND, body);
	return ask(request);
}

TEST(beyond_the_memory_of_bodies_a_request_is_503)
{
	const int fd = hold_bodies(patient());

	CHECK_CONTAINS("HTTP/1.1 503 ", echo_second("/echo"));
	WAIT_UNTIL(server_metric(fx.srv, SERVER_NO_MEMORY) == 1);
	CHECK_EQ(HELD, server_metric(fx.srv, SERVER_BODIES));
	fx_release(0);
	CHECK_CONTAINS("200", recv_until(fd, "\r\n\r\n", 1));
	WAIT_UNTIL(server_metric(fx.srv, SERVER_BODIES) == 0);
	CHECK_CONTAINS("HTTP/1.1 200 ", echo_second("/echo"));
}

TEST(what_settles_is_taken_whatever_others_hold)
{
	hold_bodies(patient());
	CHECK_CONTAINS("HTTP/1.1 200 ", echo_second("/settle"));
	fx_release(0);
}

TEST(a_body_that_is_alone_is_taken_however_large)
{
	struct server_conf conf = patient();

	conf.max_bodies = 1;
	start(conf);
	CHECK_CONTAINS("HTTP/1.1 200 ", echo_second("/echo"));
}

TEST(the_memory_of_bodies_can_be_changed)
{
	hold_bodies(patient());
	server_set_limits(fx.srv, 0, HELD + SECOND);
	CHECK_CONTAINS("HTTP/1.1 200 ", echo_second("/echo"));
	fx_release(0);
}

enum {
	MANY = 1000
};

TEST(a_thousand_clients_wait_at_once)
{
	static int fds[MANY];
	struct server_conf conf = patient();

	if (files_allow(3 * MANY) < 3 * MANY)
		test_skip("too few files allowed");
	conf.threads = 2;
	start(conf);
	for (int i = 0; i < MANY; i++) {
		fds[i] = dial();
		send_text(fds[i], "GET /claim?x HTTP/1.1" END);
	}
	WAIT_UNTIL(atomic_load(&fx.n_kept) == MANY);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_CONNECTIONS) == MANY);
	for (unsigned i = 0; i < MANY; i++)
		fx_release(i);
	for (int i = 0; i < MANY; i++) {
		CHECK_CONTAINS("\r\n\r\nx", recv_until(fds[i], "\r\n\r\nx", 1));
		hang_up(fds[i]);
	}
	WAIT_UNTIL(server_metric(fx.srv, SERVER_CONNECTIONS) == 0);
	for (unsigned i = 0; i < MANY; i++)
		CHECK_EQ(1, atomic_load(&fx.kept[i].ended));
}

/* --- numbers and words --------------------------------------------------------------- */

static const char *
describe(struct buf *out, const struct http_refusal *r, void *arg)
{
	(void)arg;
	buf_printf(out, "<%u %s %.*s %.*s>", r->status, r->reason, (int)r->method.n,
		   r->method.n ? r->method.p : "", (int)r->path.n, r->path.n ? r->path.p : "");
	return "text/x-mine";
}

TEST(the_owner_may_word_refusals)
{
	fx.http.describe = describe;
	start(patient());
	CHECK_CONTAINS("<404 no_such_path GET /no>", ask("GET /no HTTP/1.1" BYE));
	CHECK_CONTAINS("text/x-mine", ask("GET /no HTTP/1.1" BYE));
	CHECK_CONTAINS("<400 request_line  >", ask("NONSENSE\r\n\r\n"));
	CHECK_CONTAINS("<413 body_too_large POST /echo>",
		       ask("POST /echo HTTP/1.1\r\nContent-Length: 200001" BYE));
}

TEST(everything_is_counted)
{
	static const char *const want[] = {
		"\nmine_connections 0\n",
		"\nmine_accepted_total 3\n",
		"\nmine_turned_away_total 0\n",
		"\nmine_requests_running 0\n",
		"\nmine_timeouts_total 0\n",
		"\nmine_parse_errors_total 1\n",
		"\nmine_slow_readers_total 0\n",
		"\nmine_hang_ups_total 0\n",
		"\nmine_unsent_total 0\n",
		"\nmine_requests_total{route=\"GET /healthz\",status=\"2xx\"} 1\n",
		"\nmine_requests_total{route=\"GET /healthz\",status=\"4xx\"} 0\n",
		"\nmine_requests_total{route=\"other\",status=\"4xx\"} 2\n",
		"\nmine_requests_total{route=\"other\",status=\"5xx\"} 0\n",
		"\nmine_request_bytes 0\n",
		"\nmine_memory_refused_total 0\n",
		"\nmine_too_large_total 0\n",
	};
	static const char *const requests[] = {
		"GET /healthz HTTP/1.1" BYE,
		"GET /no HTTP/1.1" BYE,
		"NONSENSE\r\n\r\n",
	};
	struct server_conf conf = patient();
	size_t sent = 0, received = 0;
	struct buf text;

	conf.metrics_prefix = "mine_";
	start(conf);
	EACH(i, requests) {
		received += strlen(requests[i]);
		sent += strlen(ask(requests[i]));
	}
	server_stop(fx.srv, long_time); /* then all is public */
	buf_init(&text, SIZE_MAX);
	server_metrics(fx.srv, &text);
	EACH(i, want)
		CHECK_CONTAINS(want[i], buf_str(&text));
	CHECK_EQ(sent, server_metric(fx.srv, SERVER_SENT));
	CHECK_EQ(received, server_metric(fx.srv, SERVER_RECEIVED));
	buf_release(&text);
}
