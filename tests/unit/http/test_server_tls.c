/*
 * test_server_tls.c - the server under TLS: what holds for plain connections holds.
 */
#include "server_fixture.h"

#include "base/clock.h"
#include "client/wire.h"
#include "net/tls.h"
#include "net/tls_make.h"

#include <poll.h>
#include <sys/resource.h>

static struct slu_err why;
static struct tls_context *client_context;
static const struct patience ever = { .deadline = SLU_NEVER, .stop_fd = -1 };

/* --- a server and its clients --------------------------------------------------- */

static void
make(const char *path, const char *ca, const char *names)
{
	const struct tls_recipe r = { .subject = path, .ca = ca, .names = names, .days = 30 };

	CHECK_EQ(0, tls_make(path, &r, &why), why.text);
}

static struct tls_context *
server_context(const char *name, enum tls_client_auth auth)
{
	char cert[32], key[32];
	const struct tls_server_conf conf = { cert, key, "ca.pem", auth, TLS_1_2 };
	struct tls_context *x;

	(void)snprintf(cert, sizeof cert, "%s.pem", name);
	(void)snprintf(key, sizeof key, "%s.key", name);
	CHECK_EQ(0, tls_context_server(&x, &conf, &why), why.text);
	return x;
}

static void
open_client_context(const char *cert, const char *key)
{
	const struct tls_client_conf conf = { "ca.pem", cert, key };

	tls_context_unref(client_context);
	CHECK_EQ(0, tls_context_client(&client_context, &conf, &why), why.text);
}

static void
stop(void)
{
	fx_end();
	tls_context_unref(fx.tls);
	tls_context_unref(client_context);
	fx.tls = client_context = NULL;
}

/* Replaces the server that a test begins with. */
static void
start_with(struct server_conf conf, enum tls_client_auth auth)
{
	stop();
	fx.tls = server_context("server", auth);
	open_client_context(NULL, NULL);
	CHECK_EQ(0, fx_open(conf));
}

static void
start(void)
{
	make("ca", NULL, NULL);
	make("server", "ca", "IP:127.0.0.1");
	make("second", "ca", "IP:127.0.0.1");
	make("client", "ca", NULL);
	start_with((struct server_conf){ .threads = 2 }, TLS_AUTH_OFF);
}

FIXTURE(start, stop);

/* The wire keeps it: one for all. */
static const struct address *
here(void)
{
	static struct address a;
	char text[64];

	(void)snprintf(text, sizeof text, "https://127.0.0.1:%u", fx.port);
	CHECK_EQ(0, address_parse(&a, text, &why));
	a.context = client_context;
	return &a;
}

static struct wire
meet(void)
{
	struct wire w;

	CHECK_EQ(0, wire_open(&w, here(), &ever, &why), why.text);
	return w;
}

static void
tell_bytes(struct wire *w, const char *p, size_t n)
{
	struct slice part = { p, n };

	(void)wire_send(w, &part, 1, &ever); /* what it answered is looked at */
}

static void
tell(struct wire *w, const char *text)
{
	tell_bytes(w, text, strlen(text));
}

/* All until text has stood in it `times`, or the end: *rc says which. */
static char *
hear(struct wire *w, const char *text, unsigned times, int *rc)
{
	static char room[WIRE_READ], got[BIG_ANSWER + 4096];
	size_t n = 0;

	*rc = 0;
	for (;;) {
		unsigned seen = 0;
		struct slice in;

		got[n] = '\0';
		for (const char *p = got; text && (p = strstr(p, text)); p++)
			seen++;
		if (text && seen >= times)
			return got;
		CHECK_EQ(0, patience_wait(&ever, w->fd, POLLIN));
		*rc = wire_receive(w, room, &in, &why);
		if (*rc == SLU_EBUSY)
			continue;
		if (*rc)
			return got;
		CHECK(n + in.n < sizeof got);
		memcpy(got + n, in.p, in.n);
		n += in.n;
	}
}

static char *
ask_once(const char *request)
{
	struct wire w = meet();
	char *got;
	int rc;

	tell(&w, request);
	got = hear(&w, NULL, 0, &rc);
	CHECK_EQ(SLU_EUNKNOWN, rc, "it ends in order");
	wire_close(&w);
	return got;
}

/* --- requests and answers ------------------------------------------------------- */

/* MQ-35 */
TEST(requests_are_answered_under_tls)
{
	CHECK_CONTAINS("ok\n", ask_once("GET /healthz HTTP/1.1" BYE));
	CHECK_CONTAINS("404", ask_once("GET /nowhere HTTP/1.1" BYE));
	CHECK_CONTAINS("nobody", ask_once("GET /who HTTP/1.1" BYE));
	CHECK_CONTAINS("400", ask_once("NONSENSE\r\n\r\n"));
	CHECK_STR(server_address(fx.srv, 0), here()->text);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_HANDSHAKES) == 4);
	CHECK_EQ(0, server_metric(fx.srv, SERVER_HANDSHAKES_FAILED));
}

TEST(pipelined_requests_are_answered_in_order)
{
	char text[64];
	struct wire w;
	int rc;

	w = meet();
	for (int i = 0; i < 50; i++) {
		(void)snprintf(text, sizeof text, "GET /below/%02d HTTP/1.1" END, i);
		tell(&w, text);
	}
	tell(&w, "GET /wait?last HTTP/1.1" BYE);
	fx_release(0);
	for (const char *p = hear(&w, NULL, 0, &rc), *q = p; *text; p = q) {
		static int i;

		(void)snprintf(text, sizeof text, i < 50 ? "/below/%02d" : "last", i);
		q = strstr(p, text);
		CHECK(q);
		if (i++ == 50)
			*text = '\0';
	}
	wire_close(&w);
}

TEST(large_bodies_go_both_ways)
{
	static char body[ECHO_MAX];
	char head[100];
	const char *got;
	struct wire w;
	int rc;

	w = meet();
	for (size_t i = 0; i < sizeof body; i++)
		body[i] = (char)('a' + i % 23);
	(void)snprintf(head, sizeof head, "POST /echo HTTP/1.1\r\nContent-Length: %d" END, ECHO_MAX);
	tell(&w, head);
	tell_bytes(&w, body, sizeof body);
	tell(&w, "GET /healthz HTTP/1.1" BYE);
	got = hear(&w, NULL, 0, &rc);
	got = strstr(got, "\r\n\r\n");
	CHECK(got && memcmp(got + 4, body, sizeof body) == 0);
	CHECK_CONTAINS("ok\n", got + 4 + sizeof body);
	wire_close(&w);
}

TEST(an_answer_that_the_client_reads_slowly_arrives_whole)
{
	struct wire w;
	size_t n = 0;

	w = meet();
	tell(&w, "GET /big HTTP/1.1" BYE);
	for (;;) {
		char room[WIRE_READ];
		struct slice in = { NULL, 0 };
		int rc;

		CHECK_EQ(0, patience_wait(&ever, w.fd, POLLIN));
		rc = wire_receive(&w, room, &in, &why);
		if (rc && rc != SLU_EBUSY)
			break;
		n += rc ? 0 : in.n;
	}
	CHECK(n > BIG_ANSWER && n < BIG_ANSWER + 1000);
	wire_close(&w);
}

/* Pieces that are made while others are on their way. */
TEST(answers_in_pieces_arrive_whole)
{
	static const char *const ways[] = { "stream", "apart" };

	EACH(i, ways) {
		char request[64];
		const char *got;
		size_t n = 0;

		(void)snprintf(request, sizeof request, "GET /%s?26 HTTP/1.1" BYE, ways[i]);
		got = ask_once(request);
		CHECK_CONTAINS("chunked", got);
		for (char c = 'a'; c <= 'z'; c++)
			for (const char *p = strstr(got, "\r\n\r\n"); p && *p; p++)
				n += *p == c;
		CHECK(n >= 26 * (size_t)PIECE);
		CHECK_CONTAINS("\r\n0\r\nX-Pieces: 26\r\n\r\n", got + strlen(got) - 24);
	}
}

/* --- clients that go (DESIGN invariant 13) -------------------------------------- */

static struct kept_call *
wait_kept(unsigned i)
{
	WAIT_UNTIL(atomic_load(&fx.n_kept) > i);
	return &fx.kept[i];
}

static void
cut(struct wire *w) /* TLS-4: no goodbye */
{
	wire_close(w);
}

static void
cut_half(struct wire *w)
{
	CHECK_EQ(0, shutdown(w->fd, SHUT_WR));
}

static void
reset(struct wire *w)
{
	const struct linger l = { .l_onoff = 1, .l_linger = 0 };

	CHECK_EQ(0, setsockopt(w->fd, SOL_SOCKET, SO_LINGER, &l, sizeof l));
	wire_close(w);
}

static void
part(struct wire *w)
{
	CHECK(wire_end(w));
}

static void
part_and_close(struct wire *w)
{
	CHECK(wire_end(w));
	wire_close(w);
}

static void (*const ways[])(struct wire *) = { cut, cut_half, reset, part, part_and_close };

TEST(a_client_that_goes_while_its_call_waits_is_noticed_once)
{
	EACH(i, ways) {
		struct wire w = meet();
		struct kept_call *k;

		tell(&w, "GET /claim?x HTTP/1.1" END);
		k = wait_kept((unsigned)i);
		ways[i](&w);
		WAIT_UNTIL(atomic_load(&k->gone) == 1);
		fx_release((unsigned)i);
		WAIT_UNTIL(atomic_load(&k->ended) == 2);
		wire_close(&w);
	}
	WAIT_UNTIL(server_metric(fx.srv, SERVER_CONNECTIONS) == 0);
	CHECK_EQ(COUNT(ways), server_metric(fx.srv, SERVER_HANG_UPS));
}

/* The loop is kept busy, so that it cannot have read of it. */
struct busy {
	struct loop_work work;
	_Atomic int state;
	struct call *call;
};

static void
answer_when_told(struct loop_work *work)
{
	struct busy *b = CONTAINER(work, struct busy, work);

	atomic_store(&b->state, 1);
	WAIT_UNTIL(atomic_load(&b->state) == 2);
	call_answer_text(b->call, 200, NULL, SLICE("granted"));
}

TEST(an_answer_to_a_client_that_has_just_gone_is_not_sent)
{
	EACH(i, ways) {
		struct busy b = { .work = { NULL, answer_when_told } };
		struct wire w = meet();
		struct kept_call *k;

		tell(&w, "GET /claim?x HTTP/1.1" END);
		k = wait_kept((unsigned)i);
		b.call = k->call;
		loop_post(exchange_loop(&k->call->x), &b.work);
		WAIT_UNTIL(atomic_load(&b.state) == 1);
		ways[i](&w);
		atomic_store(&b.state, 2);
		WAIT_UNTIL(atomic_load(&k->ended) == 2);
		wire_close(&w);
	}
}

/* A client whose requests end in order may be answered; one that is cut off is gone. */
TEST(a_client_that_closed_its_side_still_gets_its_answer)
{
	struct wire w;
	int rc;

	w = meet();
	tell(&w, "GET /wait?still HTTP/1.1" END);
	wait_kept(0);
	tls_put_bye(w.tls);
	tell(&w, ""); /* it goes out; the socket stays open */
	fx_release(0);
	CHECK_CONTAINS("still", hear(&w, NULL, 0, &rc));
	wire_close(&w);

	w = meet();
	tell(&w, "GET /wait?no HTTP/1.1" END);
	wait_kept(1);
	cut_half(&w);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_HANG_UPS) == 1);
	fx_release(1);
	CHECK_STR("", hear(&w, NULL, 0, &rc));
	WAIT_UNTIL(atomic_load(&fx.kept[1].ended) == 2);
	wire_close(&w);
}

TEST(a_request_that_was_cut_off_is_not_run)
{
	struct wire w;

	w = meet();
	tell(&w, "POST /claim HTTP/1.1\r\nContent-Length: 10" END "12345");
	cut(&w);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_CONNECTIONS) == 0);
	CHECK_EQ(0, atomic_load(&fx.n_kept));
}

static void
answer_big(struct kept_call *k)
{
	struct buf body;

	buf_init(&body, BIG_ANSWER);
	body.p = mem_zalloc(BIG_ANSWER + 1);
	body.size = BIG_ANSWER + 1;
	body.n = BIG_ANSWER;
	call_answer(k->call, 200, NULL, &body);
}

TEST(an_answer_that_was_sent_in_part_is_not_sent)
{
	struct wire w;
	struct kept_call *k;

	w = meet();
	tell(&w, "GET /claim?x HTTP/1.1" END);
	k = wait_kept(0);
	answer_big(k);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_SENT) > 0);
	CHECK_EQ(0, atomic_load(&k->ended));
	cut(&w);
	WAIT_UNTIL(atomic_load(&k->ended) == 2);
	CHECK_EQ(0, atomic_load(&k->gone)); /* it had been answered */
}

TEST(an_answer_that_the_kernel_took_whole_is_sent)
{
	struct wire w;
	struct kept_call *k;
	int rc;

	w = meet();
	tell(&w, "GET /claim?x HTTP/1.1" END "GET /healthz HTTP/1.1" BYE);
	k = wait_kept(0);
	answer_big(k);
	(void)hear(&w, NULL, 0, &rc);
	wire_close(&w);
	WAIT_UNTIL(atomic_load(&k->ended) == 1);
}

/* --- handshakes ------------------------------------------------------------------ */

TEST(plain_http_at_a_tls_address_is_refused_with_that_reason)
{
	const char *got;

	got = ask("GET /healthz HTTP/1.1" END);
	CHECK_CONTAINS("HTTP/1.1 400 ", got);
	CHECK_CONTAINS("this port speaks TLS: use https://", got);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_HANDSHAKES_FAILED) == 1);
	CHECK_CONTAINS("ok\n", ask_once("GET /healthz HTTP/1.1" BYE));
}

TEST(tls_at_a_plain_address_is_refused_with_that_reason)
{
	static const char hello[] = "\x16\x03\x01\x00\x04\x01\x00\x00\x00";
	char *got;

	stop();
	CHECK_EQ(0, fx_open((struct server_conf){ .threads = 1 }));
	const int fd = dial();
	send_bytes(fd, hello, sizeof hello - 1); /* no end of a line in it */
	got = recv_all(fd);
	CHECK_CONTAINS("HTTP/1.1 400 ", got);
	CHECK_CONTAINS("does not speak TLS", got);
}

/* Fault 35: a slow handshake delays no other client and ends. */
TEST(a_handshake_that_takes_too_long_is_ended)
{
	/* A hello of 512 bytes, a byte at a time. */
	static const char hello[512] = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
	int silent, slow;

	start_with((struct server_conf){ .threads = 1, .header_timeout = 200 * SLU_MS },
		   TLS_AUTH_OFF);
	silent = dial();
	slow = dial();
	for (size_t i = 0; i < sizeof hello; i++) {
		send_bytes(slow, hello + i, 1);
		if (poll(&(struct pollfd){ slow, POLLRDHUP, 0 }, 1, 10))
			break;
	}
	CHECK(is_closed(silent));
	CHECK(is_closed(slow));
	WAIT_UNTIL(server_metric(fx.srv, SERVER_TIMEOUTS) == 2);
	CHECK_CONTAINS("ok\n", ask_once("GET /healthz HTTP/1.1" BYE));
}

TEST(a_client_with_a_certificate_is_known_to_handlers)
{
	start_with((struct server_conf){ .threads = 1 }, TLS_AUTH_REQUIRED);
	open_client_context("client.pem", "client.key");
	CHECK_CONTAINS("CN=client", ask_once("GET /who HTTP/1.1" BYE));
}

/* With TLS 1.3 a client has sent its request before it learns of the refusal. */
TEST(a_client_without_a_certificate_learns_that_it_needs_one)
{
	struct wire w;
	int rc;

	start_with((struct server_conf){ .threads = 1 }, TLS_AUTH_REQUIRED);
	for (int i = 0; i < 20; i++) {
		w = meet();
		tell(&w, "GET /claim?x HTTP/1.1" END);
		(void)hear(&w, NULL, 0, &rc);
		CHECK_EQ(SLU_EFORBIDDEN, rc);
		CHECK_CONTAINS("set cert and cert_key", why.text);
		wire_close(&w);
	}
	CHECK_EQ(0, atomic_load(&fx.n_kept));
	WAIT_UNTIL(server_metric(fx.srv, SERVER_HANDSHAKES_FAILED) == 20);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_CONNECTIONS) == 0);
	stop();
}

/* --- reload ---------------------------------------------------------------------- */

static _Atomic bool done;
static _Atomic unsigned answered;

static void *
talk(void *arg)
{
	const struct address *const a = arg;
	struct wire w = WIRE_NONE;
	struct slu_err err;

	for (unsigned i = 0; !atomic_load(&done); i++) {
		char room[WIRE_READ];
		struct slice request = SLICE("GET /healthz HTTP/1.1" END), in;
		int rc;

		if (w.fd < 0)
			CHECK_EQ(0, wire_open(&w, a, &ever, &err), err.text);
		CHECK_EQ(0, wire_send(&w, &request, 1, &ever));
		do {
			CHECK_EQ(0, patience_wait(&ever, w.fd, POLLIN));
			rc = wire_receive(&w, room, &in, &err);
		} while (rc == SLU_EBUSY);
		CHECK_EQ(0, rc, err.text);
		CHECK_EQ(0, memcmp("HTTP/1.1 200", in.p, 12));
		atomic_fetch_add(&answered, 1);
		if (i % 4 == 3)
			wire_close(&w);
	}
	wire_close(&w);
	return NULL;
}

TEST(certificates_are_exchanged_under_traffic_without_a_failed_request)
{
	struct tls_context *contexts[2];
	const struct address *a;
	pthread_t threads[3];
	struct wire old;
	int rc;

	contexts[0] = server_context("second", TLS_AUTH_OFF);
	contexts[1] = server_context("server", TLS_AUTH_OFF);
	old = meet();
	a = here();
	EACH(i, threads)
		CHECK_EQ(0, pthread_create(&threads[i], NULL, talk, (void *)a));
	for (unsigned i = 0; i < 20; i++) {
		const unsigned seen = atomic_load(&answered);

		server_set_tls(fx.srv, contexts[i % 2]);
		WAIT_UNTIL(atomic_load(&answered) > seen + 5);
	}
	atomic_store(&done, true);
	EACH(i, threads)
		CHECK_EQ(0, pthread_join(threads[i], NULL));
	tell(&old, "GET /healthz HTTP/1.1" BYE);
	CHECK_CONTAINS("ok\n", hear(&old, NULL, 0, &rc));
	wire_close(&old);
	CHECK_EQ(0, server_metric(fx.srv, SERVER_HANDSHAKES_FAILED));
	tls_context_unref(contexts[0]);
	tls_context_unref(contexts[1]);
}

/* --- many, and the end ----------------------------------------------------------- */

TEST_BARE_LIMIT(a_thousand_connections_are_served, 120)
{
	enum {
		MANY = 1000
	};
	static struct wire wires[MANY];
	struct rlimit limit = { 4096, 4096 };
	int rc;

	if (setrlimit(RLIMIT_NOFILE, &limit))
		test_skip("4096 files may not be open");
	start();
	EACH(i, wires)
		wires[i] = meet();
	EACH(i, wires)
		tell(&wires[i], "GET /healthz HTTP/1.1" END);
	EACH(i, wires)
		CHECK_CONTAINS("200 OK", hear(&wires[i], "ok\n", 1, &rc));
	CHECK_EQ(MANY, server_metric(fx.srv, SERVER_CONNECTIONS));
	EACH(i, wires)
		wire_close(&wires[i]);
	WAIT_UNTIL(server_metric(fx.srv, SERVER_CONNECTIONS) == 0);
	stop();
}

TEST(a_server_that_stops_says_goodbye)
{
	struct wire w;
	int rc;

	w = meet();
	tell(&w, "GET /healthz HTTP/1.1" END);
	(void)hear(&w, "ok\n", 1, &rc);
	fx_close();
	(void)hear(&w, NULL, 0, &rc);
	CHECK_EQ(TLS_ENDED, tls_state(w.tls));
	wire_close(&w);
}

TEST(an_address_that_speaks_tls_needs_a_certificate)
{
	const struct server_conf conf = fx_conf((struct server_conf){ 0 });
	struct server *s;

	CHECK_EQ(0, server_open(&s, &conf, &why));
	CHECK_EQ(SLU_EINVAL, server_listen(s, "https://127.0.0.1:0", 0, &why));
	CHECK_CONTAINS("https://127.0.0.1:0", why.text);
	CHECK_CONTAINS("tls.cert", why.text);
	server_close(s);
}

/* --- memory ----------------------------------------------------------------------- */

static void
ask_failing(const char *request)
{
	struct slice part = slice_of(request);
	struct wire w;
	int rc;

	if (wire_open(&w, here(), &ever, &why))
		return;
	(void)wire_send(&w, &part, 1, &ever); /* memory may be out */
	(void)hear(&w, NULL, 0, &rc);
	wire_close(&w);
}

/* Ours: OpenSSL has its own. */
TEST(a_request_in_the_usual_way_needs_no_new_memory)
{
	struct wire w;
	int rc;

	w = meet();
	for (int i = 0; i < 200; i++) {
		if (i == 3)
			mem_fail_at(1);
		tell(&w, "GET /healthz HTTP/1.1" END "GET /nowhere HTTP/1.1" END);
		CHECK_CONTAINS("ok\n", hear(&w, "no_such_path\n", 1, &rc));
	}
	CHECK(!mem_failed());
	mem_fail_at(0);
	wire_close(&w);
}

/* Whatever fails costs its own client at most. */
TORTURE(a_server_out_of_memory_answers_or_closes)
{
	static char big[9000];

	if (!client_context) {
		mem_fail_at(0);
		make("ca", NULL, NULL);
		make("server", "ca", "IP:127.0.0.1");
		open_client_context(NULL, NULL);
		fx.tls = server_context("server", TLS_AUTH_OFF);
		mem_fail_at(1);
	}
	if (fx_open((struct server_conf){ .threads = 1 }))
		return;
	(void)snprintf(big, sizeof big, "POST /echo HTTP/1.1\r\nContent-Length: 8000%s%8000d", BYE, 1);
	ask_failing(big);
	ask_failing("GET /healthz HTTP/1.1" BYE);
	(void)ask("GET /healthz HTTP/1.1" BYE);
	fx_close();
}
