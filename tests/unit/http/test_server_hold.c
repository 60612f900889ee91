/*
 * test_server_hold.c - SERVER-10: requests wait for a server that is not ready; and hand-over.
 */
#include "server_fixture.h"

FIXTURE(NULL, fx_end);

static _Atomic int ran;

#define END  "\r\nHost: h\r\n\r\n"
#define BYE  "\r\nHost: h\r\nConnection: close\r\n\r\n"
#define FIVE "\r\nHost: h\r\nContent-Length: 5\r\nConnection: close\r\n\r\n"

static void
echo(struct call *c, void *arg)
{
	atomic_fetch_add(&ran, 1);
	fx_echo(c, arg);
}

static const struct route routes[] = {
	{ "GET", "/early", fx_healthz, .early = true },
	{ "GET", "/late", echo, .early = false },
	{ "POST", "/echo", echo, .max_body = ECHO_MAX },
	{ "GET", "/wait", fx_wait, .early = false },
};

static void
start(struct server_conf conf)
{
	fx.http = (struct http_conf){ .routes = routes, .n_routes = COUNT(routes) };
	CHECK_EQ(0, fx_open(conf));
	server_hold(fx.srv);
}

/* All that was sent before has been looked at. */
static void
settle(void)
{
	CHECK_CONTAINS("ok\n", ask("GET /early HTTP/1.1" BYE));
}

static int
sent(const char *text)
{
	const int fd = dial();

	send_text(fd, text);
	return fd;
}

TEST(a_request_waits_until_the_server_is_ready)
{
	int fds[4];

	start((struct server_conf){ .threads = 2 });
	fds[0] = sent("GET /late HTTP/1.1" BYE);
	fds[1] = sent("POST /echo HTTP/1.1" FIVE "12345");
	fds[2] = sent("POST /echo HTTP/1.1" FIVE);
	fds[3] = sent("GET /early HTTP/1.1" END "POST /echo HTTP/1.1" FIVE "12");
	CHECK_CONTAINS("ok\n", recv_until(fds[3], "ok\n", 1));
	settle();
	CHECK_EQ(0, ran);
	send_text(fds[3], "345");
	server_release(fx.srv);
	send_text(fds[2], "12345");
	for (int i = 0; i < 4; i++) {
		CHECK_CONTAINS(i ? "\r\n\r\n12345" : "200 OK", recv_all(fds[i]));
		hang_up(fds[i]);
	}
	CHECK_CONTAINS("200 OK", ask("GET /late HTTP/1.1" BYE));
	fx_close();
	CHECK_EQ(5, ran);
}

TEST(a_request_that_is_no_good_does_not_wait)
{
	start((struct server_conf){ 0 });
	CHECK_CONTAINS("404 Not Found", ask("GET /nowhere HTTP/1.1" BYE));
	CHECK_CONTAINS("413", ask("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 900000\r\n\r\n"));
	CHECK_CONTAINS("400 Bad Request", ask("NONSENSE\r\n\r\n"));
}

TEST(a_client_that_expects_100_continue_sends_its_body_when_the_server_is_ready)
{
	int fd;

	start((struct server_conf){ 0 });
	fd = sent("POST /echo HTTP/1.1\r\nExpect: 100-continue" FIVE);
	settle();
	server_release(fx.srv);
	CHECK_CONTAINS("100 Continue", recv_until(fd, "\r\n\r\n", 1));
	send_text(fd, "12345");
	CHECK_CONTAINS("\r\n\r\n12345", recv_all(fd));
}

TEST(a_held_request_waits_no_longer_than_the_limit)
{
	const char *got;

	start((struct server_conf){ .start_wait = 20 * SLU_MS, .header_timeout = 40 * SLU_MS });
	got = ask("GET /late HTTP/1.1" END);
	CHECK_CONTAINS("503 Service Unavailable", got);
	CHECK_CONTAINS("Retry-After: 1", got);
	CHECK_CONTAINS("starting", got);
	CHECK_CONTAINS("starting", ask("POST /echo HTTP/1.1" FIVE "12345"));
	CHECK_EQ(0, server_metric(fx.srv, SERVER_TIMEOUTS));
	server_release(fx.srv);
	fx_close();
	CHECK_EQ(0, ran);
}

TEST(what_a_client_that_is_gone_has_asked_for_is_not_done)
{
	static const char *const requests[] = {
		"GET /late HTTP/1.1" END,
		"POST /echo HTTP/1.1" FIVE,
		"POST /echo HTTP/1.1" FIVE "12345",
		"POST /echo HTTP/1.1" FIVE "12",
	};
	int fds[COUNT(requests)];

	start((struct server_conf){ 0 });
	EACH(i, requests) {
		fds[i] = sent(requests[i]);
		shutdown(fds[i], SHUT_WR);
		CHECK(is_closed(fds[i]));
		hang_up(fds[i]);
	}
	server_release(fx.srv);
	settle();
	fx_close();
	CHECK_EQ(0, ran);
}

TEST(what_waits_is_bounded_by_the_memory_of_bodies)
{
	static char body[6000];
	char head[128];
	int one, two;

	memset(body, 'x', sizeof body - 1);
	start((struct server_conf){ .max_bodies = 8000 });
	(void)snprintf(head, sizeof head, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
		       sizeof body - 1);
	one = sent(head);
	send_text(one, body);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_BODIES) > 0);
	two = sent(head);
	send_text(two, body);
	CHECK_CONTAINS("503 Service Unavailable", recv_all(two));
	server_release(fx.srv);
	CHECK_CONTAINS("200 OK", recv_all(one));
	hang_up(one);
	hang_up(two);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_BODIES) == 0);
}

TEST(a_stop_answers_held_requests)
{
	int fd;

	start((struct server_conf){ 0 });
	fd = sent("GET /late HTTP/1.1" END);
	settle();
	server_stop(fx.srv, 10 * SLU_SEC);
	CHECK_CONTAINS("starting", recv_all(fd));
	hang_up(fd);
	fx_close();
	CHECK_EQ(0, ran);
}

TEST(a_server_that_hands_over_answers_and_takes_no_more_connections)
{
	int idle, waits, fd;
	const struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_in to = sa;

	start((struct server_conf){ .threads = 2 });
	server_release(fx.srv);
	idle = sent("GET /early HTTP/1.1" END);
	CHECK_CONTAINS("ok\n", recv_until(idle, "ok\n", 1));
	waits = sent("GET /wait?x HTTP/1.1" END);
	WAIT_UNTIL(atomic_load(&fx.n_kept) == 1);
	settle();
	server_hand_over(fx.srv);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	to.sin_port = htons((uint16_t)fx.port);
	WAIT_UNTIL(connect(fd, (const struct sockaddr *)&to, sizeof to) != 0 ||
		   (hang_up(fd), (fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0));
	hang_up(fd);
	send_text(idle, "GET /late HTTP/1.1" END);
	CHECK_CONTAINS("Connection: close", recv_all(idle));
	fx_release(0);
	CHECK_CONTAINS("Connection: close", recv_all(waits));
	hang_up(idle);
	hang_up(waits);
	CHECK_EQ(0, server_stop(fx.srv, 10 * SLU_SEC));
}
