/*
 * test_server_memory.c - a server that runs out of memory, and one that needs none.
 */
#include "server_fixture.h"

FIXTURE(NULL, fx_end);

static int
reopen(struct server_conf conf)
{
	memset((void *)&fx, 0, sizeof fx);
	return fx_open(conf);
}

TORTURE(a_server_opens_or_says_why_not)
{
	if (reopen((struct server_conf){ .threads = 2 }) == 0)
		fx_close();
}

static void
check_answered_or_closed(const char *request)
{
	const char *got = ask(request);

	CHECK(got[0] == '\0' || strncmp(got, "HTTP/1.1 ", 9) == 0);
}

/* Whatever fails costs its own client at most; the next one is served. */
TORTURE(a_server_out_of_memory_answers_or_closes)
{
	static char big[9000], filler[600];

	if (reopen((struct server_conf){ .threads = 1 }))
		return;
	memset(filler, 'x', sizeof filler - 1);
	(void)snprintf(big, sizeof big,
		       "POST /echo HTTP/1.1\r\nContent-Length: 8000\r\nX: %s%s%8000d",
		       filler, BYE, 1);
	check_answered_or_closed(big);
	check_answered_or_closed("POST /healthz HTTP/1.1" BYE);
	check_answered_or_closed("NONSENSE\r\n\r\n");

	CHECK(strstr(ask("GET /healthz HTTP/1.1" BYE), "200 OK") || mem_failed());
	fx_close();
}

/* Pipelined behind a call that holds, so that input has to be kept. */
TORTURE(calls_come_back_when_memory_runs_out)
{
	int fd;

	if (reopen((struct server_conf){ .threads = 1 }))
		return;
	fd = dial();
	send_text(fd, "GET /hold?x HTTP/1.1" END "GET /claim?y HTTP/1.1" END);
	WAIT_UNTIL(atomic_load(&fx.n_kept) == 1 || http_answered(fx.srv, 5) == 1 ||
		   (server_metric(fx.srv, SERVER_ACCEPTED) == 1 &&
		    server_metric(fx.srv, SERVER_CONNECTIONS) == 0) ||
		   server_metric(fx.srv, SERVER_TURNED_AWAY) == 1);
	if (atomic_load(&fx.n_kept) == 1)
		fx_release(0);
	(void)recv_until(fd, "\r\n\r\n", 1);
	shutdown(fd, SHUT_WR);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_CONNECTIONS) == 0);
	if (atomic_load(&fx.n_kept) == 2)
		fx_release(1);
	hang_up(fd);
	fx_close();
	for (unsigned i = 0; i < atomic_load(&fx.n_kept); i++)
		CHECK(atomic_load(&fx.kept[i].ended) != 0);
}

static void
ask_all(int fd, int times)
{
	for (int i = 0; i < times; i++) {
		send_text(fd, "GET /healthz HTTP/1.1" END "GET /wait?x HTTP/1.1" END
			      "GET /nowhere HTTP/1.1" END);
		fx_release((unsigned)i);
		(void)recv_until(fd, "no_such_path\n", 1);
		WAIT_UNTIL(atomic_load(&fx.kept[i].ended) == 1);
	}
}

TEST(a_request_in_the_usual_way_needs_no_new_memory)
{
	CHECK_EQ(0, reopen((struct server_conf){ .threads = 1 }));
	const int fd = dial();
	ask_all(fd, 3);
	atomic_store(&fx.n_kept, 0);
	memset((void *)fx.kept, 0, sizeof fx.kept);
	mem_fail_at(1);
	ask_all(fd, 200);
	CHECK(!mem_failed());
	mem_fail_at(0);
}
