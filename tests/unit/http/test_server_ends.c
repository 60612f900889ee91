/*
 * test_server_ends.c - clients that go, and servers that stop, while calls wait.
 */
#include "server_fixture.h"

#include "base/clock.h"

static void
start(void)
{
	CHECK_EQ(0, fx_open((struct server_conf){ .threads = 2 }));
}

FIXTURE(start, fx_end);

static struct kept_call *
wait_kept(unsigned i)
{
	WAIT_UNTIL(atomic_load(&fx.n_kept) > i);
	return &fx.kept[i];
}

/* --- clients that go (DESIGN invariant 13) -------------------------------------- */

static void
reset(int fd)
{
	const struct linger l = { .l_onoff = 1, .l_linger = 0 };

	CHECK_EQ(0, setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof l));
	hang_up(fd);
}

static void
half_close(int fd)
{
	CHECK_EQ(0, shutdown(fd, SHUT_WR));
}

static void
just_close(int fd)
{
	hang_up(fd);
}

TEST(a_client_that_goes_while_its_call_waits_is_noticed_once)
{
	void (*const ways[])(int) = { just_close, reset, half_close };

	EACH(i, ways) {
		const int fd = dial();
		struct kept_call *k;

		send_text(fd, "GET /claim?x HTTP/1.1" END);
		k = wait_kept((unsigned)i);
		ways[i](fd);
		WAIT_UNTIL(atomic_load(&k->gone) == 1);
		fx_release((unsigned)i); /* EXCHANGE-2: the call comes back */
		WAIT_UNTIL(atomic_load(&k->ended) == 2);
	}
	WAIT_UNTIL(server_metric(fx.srv, SERVER_CONNECTIONS) == 0);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_CALLS) == 0);
	CHECK_EQ(COUNT(ways), server_metric(fx.srv, SERVER_HANG_UPS));
	CHECK_EQ(COUNT(ways), server_metric(fx.srv, SERVER_UNSENT));
}

static void
answer_at_once(struct exchange *x)
{
	fx_gone(x);
	call_answer_text(call_of(x), 499, NULL, SLICE(""));
}

/* The usual way: a claim is canceled, and its answer goes nowhere. */
TEST(a_call_may_be_answered_while_its_client_goes)
{
	fx.gone = answer_at_once;
	const int fd = dial();
	send_text(fd, "GET /claim?a HTTP/1.1" END "GET /claim?b HTTP/1.1" END);
	wait_kept(1);
	hang_up(fd);
	WAIT_UNTIL(atomic_load(&fx.kept[0].ended) == 2);
	WAIT_UNTIL(atomic_load(&fx.kept[1].ended) == 2);
	CHECK_EQ(1, atomic_load(&fx.kept[0].gone));
	CHECK_EQ(1, atomic_load(&fx.kept[1].gone));
}

/* EXCHANGE-5: the client closed before the answer was written, however little before. The
 * loop is kept busy meanwhile, so that it cannot have read of it. */
struct busy {
	struct loop_work work;
	_Atomic int state;
	struct call *call;
};

static void
answer_when_told(struct loop_work *w)
{
	struct busy *b = CONTAINER(w, struct busy, work);

	atomic_store(&b->state, 1);
	WAIT_UNTIL(atomic_load(&b->state) == 2);
	call_answer_text(b->call, 200, NULL, SLICE("granted"));
}

TEST(an_answer_to_a_client_that_has_just_gone_is_not_sent)
{
	void (*const ways[])(int) = { just_close, reset };

	EACH(i, ways) {
		struct busy b = { .work = { NULL, answer_when_told } };
		const int fd = dial();
		struct kept_call *k;

		send_text(fd, "GET /claim?x HTTP/1.1" END);
		k = wait_kept((unsigned)i);
		b.call = k->call;
		loop_post(exchange_loop(&k->call->x), &b.work);
		WAIT_UNTIL(atomic_load(&b.state) == 1);
		ways[i](fd);
		atomic_store(&b.state, 2);
		WAIT_UNTIL(atomic_load(&k->ended) == 2);
	}
}

TEST(an_answer_that_was_sent_is_known_to_be)
{
	const int fd = dial();

	send_text(fd, "GET /claim?x HTTP/1.1" END);
	fx_release(0);
	WAIT_UNTIL(atomic_load(&fx.kept[0].ended) == 1);
	CHECK_EQ(0, atomic_load(&fx.kept[0].gone));
	hang_up(fd);
	fx_close();
	CHECK_EQ(0, atomic_load(&fx.kept[0].gone));
}

/* A client that stops reading in the middle of an answer and goes. */
static void
handle_big_claim(struct call *c, void *arg)
{
	fx_keep(c, fx_gone);
	fx_big(c, arg);
}

static const struct route big_claim[] = {
	{ "GET", "/big", handle_big_claim, .max_body = 0 },
};

TEST(an_answer_that_was_sent_in_part_is_not_sent)
{
	fx_close(); /* before its routes change */
	fx.http = (struct http_conf){ .routes = big_claim, .n_routes = 1 };
	CHECK_EQ(0, fx_open((struct server_conf){ .threads = 1 }));
	const int fd = dial();
	send_text(fd, "GET /big HTTP/1.1" END);
	wait_kept(0);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_SENT) > 0);
	CHECK_EQ(0, atomic_load(&fx.kept[0].ended));
	hang_up(fd);
	WAIT_UNTIL(atomic_load(&fx.kept[0].ended) == 2);
	CHECK_EQ(0, atomic_load(&fx.kept[0].gone)); /* it had been answered */
}

TEST(a_client_that_only_stops_sending_is_answered)
{
	const char *got;
	int fd;

	fd = dial();
	send_text(fd, "GET /wait?still HTTP/1.1" END "GET /healthz HTTP/1.1" END);
	half_close(fd);
	wait_kept(0);
	fx_release(0);
	got = recv_all(fd);
	CHECK_CONTAINS("still", got);
	CHECK_CONTAINS("ok\n", got);
	hang_up(fd);

	fd = dial(); /* also when calls stand before what was sent */
	send_text(fd, "GET /hold?held HTTP/1.1" END "GET /healthz HTTP/1.1" END);
	half_close(fd);
	fx_release(1);
	CHECK_CONTAINS("ok\n", recv_all(fd));
	hang_up(fd);

	fd = dial(); /* what was cut off is not */
	send_text(fd, "GET /wait?whole HTTP/1.1" END "POST /echo HTTP/1.1\r\n"
		      "Host: h\r\nContent-Length: 9\r\n\r\nabc");
	half_close(fd);
	fx_release(2);
	got = recv_all(fd);
	CHECK_CONTAINS("whole", got);
	CHECK(!strstr(got, "abc"));
}

/* --- random closes --------------------------------------------------------------- */

enum {
	CLAIMERS = 1000
};

static _Atomic bool all_gone;

static void *
release_all(void *arg)
{
	unsigned i = 0;

	(void)arg;
	for (bool ends = false; !ends || i < atomic_load(&fx.n_kept);) {
		ends = atomic_load(&all_gone); /* before the number, or it may be old */
		if (i < atomic_load(&fx.n_kept))
			fx_release(i++);
	}
	return NULL;
}

/* In every race each call ends once, and an answer to a client that is gone was not sent. */
TEST(claimers_that_close_at_random_end_once_each)
{
	uint64_t seed = test_seed();
	pthread_t t;

	CHECK_EQ(0, pthread_create(&t, NULL, release_all, NULL));
	for (int i = 0; i < CLAIMERS; i++) {
		const int fd = dial();

		send_text(fd, "GET /claim?x HTTP/1.1" END);
		if (test_random(&seed) % 2)
			WAIT_UNTIL(server_metric(fx.srv, SERVER_RECEIVED) > 0);
		(test_random(&seed) % 2 ? just_close : reset)(fd);
	}
	WAIT_UNTIL(server_metric(fx.srv, SERVER_ACCEPTED) == CLAIMERS);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_CONNECTIONS) == 0);
	atomic_store(&all_gone, true);
	pthread_join(t, NULL);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_CALLS) == 0);
	for (unsigned i = 0; i < atomic_load(&fx.n_kept); i++) {
		const struct kept_call *k = &fx.kept[i];

		CHECK(atomic_load(&k->ended) != 0);
		CHECK(!atomic_load(&k->gone) || atomic_load(&k->ended) == 2);
	}
}

/* --- stop ------------------------------------------------------------------------- */

static unsigned cut;

static void *
stop_server(void *grace)
{
	cut = server_stop(fx.srv, *(const slu_time *)grace);
	return NULL;
}

TEST(a_stop_closes_idle_connections_and_answers_what_runs)
{
	slu_time grace = 100 * SLU_SEC;
	const char *got;
	pthread_t t;
	int idle, busy;

	idle = dial();
	send_text(idle, "GET /healthz HTTP/1.1" END);
	recv_until(idle, "ok\n", 1);
	busy = dial();
	send_text(busy, "GET /wait?first HTTP/1.1" END "GET /wait?last HTTP/1.1" END);
	wait_kept(1);
	CHECK_EQ(0, pthread_create(&t, NULL, stop_server, &grace));
	CHECK(is_closed(idle));
	fx_release(0);
	fx_release(1);
	got = recv_all(busy);
	CHECK(strstr(got, "first") < strstr(got, "Connection: close"));
	CHECK_CONTAINS("\r\n\r\nlast", got);
	pthread_join(t, NULL);
	CHECK_EQ(0, cut);
	CHECK_EQ(1, atomic_load(&fx.kept[1].ended));
}

TEST(a_stop_takes_no_new_connections)
{
	const slu_time begin = clock_mono(&clock_system);
	struct listener l;
	struct slu_err err;
	char address[64];

	(void)snprintf(address, sizeof address, "127.0.0.1:%u", fx.port);
	CHECK_EQ(SLU_EEXISTS, listener_open(&l, "http", address, 1, &err));
	server_stop(fx.srv, 100 * SLU_SEC); /* nothing to wait for */
	CHECK(clock_mono(&clock_system) - begin < 50 * SLU_SEC);
	CHECK_EQ(0, listener_open(&l, "http", address, 1, &err));
	listener_close(&l);
	server_stop(fx.srv, 0); /* again: nothing */
}

TEST(after_the_grace_calls_end_as_if_their_clients_were_gone)
{
	slu_time grace = 20 * SLU_MS;
	pthread_t t;

	const int fd = dial();
	send_text(fd, "GET /claim?x HTTP/1.1" END "GET /wait?y HTTP/1.1" END);
	wait_kept(1);
	CHECK_EQ(0, pthread_create(&t, NULL, stop_server, &grace));
	WAIT_UNTIL(atomic_load(&fx.kept[0].gone) == 1);
	CHECK(is_closed(fd));
	fx_release(0);
	fx_release(1);
	pthread_join(t, NULL); /* EXCHANGE-2: not before they have come back */
	CHECK_EQ(1, cut, "connections");
	CHECK_EQ(2, atomic_load(&fx.kept[0].ended));
	CHECK_EQ(2, atomic_load(&fx.kept[1].ended));
}

TEST(a_server_that_never_started_can_be_closed)
{
	const struct server_conf conf = fx_conf((struct server_conf){ 0 });
	struct server *s = NULL;
	struct slu_err err;

	CHECK_EQ(0, server_open(&s, &conf, &err));
	CHECK_EQ(0, server_listen(s, "unix:sock", 0, &err));
	CHECK_STR("unix:sock", server_address(s, 0));
	CHECK(!server_address(s, 1));
	server_close(s);
	CHECK_EQ(-1, access("sock", F_OK));
	server_close(NULL);
}
