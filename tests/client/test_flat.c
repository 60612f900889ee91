/*
 * Many messages a call, against real servers; and what every call does when its server is
 * away, frozen, killed, or not the one that serves.
 */
#include "served.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <test.h>
#include <unistd.h>

static uint64_t
put(struct slu_client *c, const char *text)
{
	struct slu_client_put p = { SLU_OPTIONS_INIT(struct slu_client_put), .payload = text, .size = strlen(text) };

	FINE(slu_client_enqueue(c, "mail", &p, 1, NULL, &err));
	return p.id;
}

static void
take(struct slu_client *c, struct slu_client_messages *got, slu_time wait)
{
	const struct slu_client_claim claim = { SLU_OPTIONS_INIT(struct slu_client_claim), .limit = 100, .wait = wait };

	FINE(slu_client_dequeue(c, "mail", &claim, got, NULL, &err));
}

TEST(a_checkpoint_comes_with_the_next_delivery)
{
	struct slu_client_put put = { SLU_OPTIONS_INIT(struct slu_client_put), .payload = "x", .size = 1 };
	struct slu_settle s = { SLU_OPTIONS_INIT(struct slu_settle), .checkpoint = "{\"row\":1}", .at_once = true };
	struct slu_client_messages got = { 0 };
	struct slu_client *c;
	struct test_server srv;

	served_start(&srv, 1, "memory");
	c = served_client(&srv);
	FINE(slu_client_enqueue(c, "mail", &put, 1, NULL, &err));
	take(c, &got, 0);
	CHECK_STR("", got.items[0].checkpoint);
	s.receipt = got.items[0].receipt;
	FINE(slu_client_settle(c, SLU_EXTEND, NULL, &s, 1, NULL, &err));
	CHECK(s.at > 0);
	FINE(slu_client_settle(c, SLU_NACK, NULL, &s, 1, NULL, &err));
	take(c, &got, 0);
	s.receipt = got.items[0].receipt; /* the one before is gone with its delivery */
	CHECK_STR("{\"row\":1}", got.items[0].checkpoint);
	s.checkpoint = "row 1";
	CHECK_EQ(SLU_EINVAL, slu_client_settle(c, SLU_EXTEND, NULL, &s, 1, NULL, NULL));
	slu_client_messages_release(&got);
	slu_client_free(c);
	served_stop(&srv);
}

TEST(a_batch_goes_in_comes_out_and_is_settled)
{
	static const char bytes[] = { 0, 1, (char)0xff, '"' };
	struct slu_client_put puts[] = {
		{ SLU_OPTIONS_INIT(struct slu_client_put), .payload = "low", .size = 3, .priority = "low", .attributes = "{\"a\":[1]}" },
		{ SLU_OPTIONS_INIT(struct slu_client_put), .payload = bytes, .size = sizeof bytes, .priority = "high", .key = "k", .correlation_id = "c-1", .content_type = "image/png" },
		{ SLU_OPTIONS_INIT(struct slu_client_put), .payload = "{\"x\":1}", .size = 7, .is_json = true, .max_attempts = 1 },
	};
	struct slu_client_messages got = { 0 };
	struct slu_settle s[3];
	struct slu_client *c;
	struct test_server srv;

	served_start(&srv, 1, "memory");
	c = served_client(&srv);
	FINE(slu_client_enqueue(c, "mail", puts, 3, NULL, &err));
	take(c, &got, 0);
	CHECK_EQ(3, got.n);
	CHECK_EQ(puts[1].id, got.items[0].id);
	CHECK_EQ(sizeof bytes, got.items[0].size);
	CHECK(memcmp(bytes, got.items[0].payload, sizeof bytes) == 0);
	CHECK_STR("k", got.items[0].key);
	CHECK_STR("c-1", got.items[0].correlation_id);
	CHECK_STR("image/png", got.items[0].content_type);
	CHECK_STR("", got.items[0].attributes);
	CHECK_STR("{\"a\":[1]}", got.items[2].attributes);
	CHECK_EQ(1, got.items[1].attempts);
	CHECK(strncmp(got.items[0].receipt, "AQ", 2) == 0);
	CHECK(got.items[0].raw[0] == '{' && got.items[0].raw[got.items[0].raw_size - 1] == '}');
	for (int i = 0; i < 3; i++)
		s[i] = (struct slu_settle){ SLU_OPTIONS_INIT(struct slu_settle), .id = got.items[i].id,
					    .lease_id = got.items[i].lease_id,
					    .fencing_token = got.items[i].fencing_token };
	s[1].error = "broken";
	FINE(slu_client_settle(c, SLU_EXTEND, "mail", s, 3, NULL, &err));
	CHECK(s[0].at > 0);
	FINE(slu_client_settle(c, SLU_ACK, "mail", s, 1, NULL, &err));
	FINE(slu_client_settle(c, SLU_NACK, NULL, s + 1, 1, NULL, &err));
	CHECK(s[1].died);
	CHECK_EQ(SLU_ENOTFOUND, slu_client_settle(c, SLU_ACK, "mail", s, 3, NULL, NULL));
	CHECK_EQ(SLU_ENOTFOUND, s[0].code);
	CHECK_EQ(SLU_OK, s[2].code, "the others are settled all the same");
	slu_client_messages_release(&got);
	slu_client_free(c);
}

TEST(a_message_that_waits_says_why)
{
	struct slu_client_messages got = { 0 };
	struct slu_why_answer why;
	struct slu_client *c;
	struct test_server srv;
	uint64_t first, second;

	served_start(&srv, 1, "memory");
	c = served_client(&srv);
	first = put(c, "x");
	second = put(c, "y");
	FINE(slu_client_why(c, "mail", second, &why, NULL, &err));
	CHECK_STR("ahead", why.reason);
	CHECK_STR("1 message is ahead", why.text);
	CHECK_EQ(1, why.ahead);
	CHECK(!why.more);
	take(c, &got, 0);
	FINE(slu_client_why(c, NULL, first, &why, NULL, &err));
	CHECK_STR("leased", why.reason);
	CHECK(why.until > 0);
	CHECK_EQ(SLU_ENOTFOUND, slu_client_why(c, NULL, 1, &why, NULL, NULL));
	slu_client_messages_release(&got);
	slu_client_free(c);
	served_stop(&srv);
}

TEST(an_ack_may_bring_messages)
{
	struct slu_client_messages got = { 0 };
	struct slu_settle s = { SLU_OPTIONS_INIT(struct slu_settle) };
	struct slu_client *c;
	struct slu_err why;
	struct test_server srv;

	served_start(&srv, 1, "memory");
	c = served_client(&srv);
	(void)put(c, "parent");
	take(c, &got, 0);
	s.receipt = got.items[0].receipt;
	s.enqueue = "{}";
	CHECK_EQ(SLU_EINVAL, slu_client_settle(c, SLU_ACK, NULL, &s, 1, NULL, &why));
	s.enqueue = "[{\"namespace\":\"test\",\"queue\":\"mail\",\"text\":\"child\"}]";
	FINE(slu_client_settle(c, SLU_ACK, NULL, &s, 1, NULL, &err));
	slu_client_messages_release(&got);
	take(c, &got, 0);
	CHECK_EQ(1, got.n);
	CHECK(memcmp("child", got.items[0].payload, 5) == 0);
	slu_client_messages_release(&got);
	slu_client_free(c);
	served_stop(&srv);
}

TEST(a_receipt_settles_alone)
{
	struct slu_client_messages got = { 0 };
	struct slu_settle s[3];
	struct slu_client *c;
	struct slu_err why;
	struct test_server srv;

	served_start(&srv, 1, "memory");
	c = served_client(&srv);
	for (int i = 0; i < 3; i++)
		(void)put(c, "x");
	take(c, &got, 0);
	CHECK_EQ(3, got.n);
	for (int i = 0; i < 3; i++)
		s[i] = (struct slu_settle){ SLU_OPTIONS_INIT(struct slu_settle), .receipt = got.items[i].receipt };
	FINE(slu_client_settle(c, SLU_EXTEND, NULL, s, 3, NULL, &err));
	CHECK(s[2].at > 0);
	CHECK_EQ(got.items[2].id, s[2].id, "the answer has told it");
	FINE(slu_client_settle(c, SLU_NACK, NULL, s, 1, NULL, &err));
	FINE(slu_client_settle(c, SLU_ACK, NULL, s + 1, 2, NULL, &err));
	CHECK_EQ(SLU_ENOTFOUND, slu_client_settle(c, SLU_ACK, NULL, s + 1, 1, NULL, &why));
	s[0].receipt = "AQ";
	CHECK_EQ(SLU_EINVAL, slu_client_settle(c, SLU_ACK, NULL, s, 1, NULL, &why));
	CHECK_CONTAINS("invalid receipt", why.text);
	slu_client_messages_release(&got);
	slu_client_free(c);
	served_stop(&srv);
}

/* What another program has dequeued over HTTP is settled by ack, nack and extend of the
 * library, which know no difference. */
TEST(a_receipt_of_the_http_api_is_one_of_the_library)
{
	struct slu_client_messages got = { 0 };
	struct slu_client *c;
	struct slu_receipt r;
	struct test_server srv;
	struct slu_err why;
	char *text;

	served_start(&srv, 1, "memory");
	c = served_client(&srv);
	(void)put(c, "x");
	take(c, &got, 0);
	FINE(slu_receipt_parse(&r, got.items[0].receipt, &err));
	CHECK_STR("mail", r.queue);
	CHECK_STR(got.items[0].uid, r.id);
	CHECK_EQ(got.items[0].fencing_token, r.token);
	text = slu_receipt_write(&r);
	CHECK_STR(got.items[0].receipt, text);
	slu_free(text);
	FINE(slu_client_extend(c, &r, SLU_MIN, NULL, &err));
	FINE(slu_client_nack(c, &r, &(struct slu_nack){ SLU_OPTIONS_INIT(struct slu_nack), .error = "no" }, NULL, &err));
	CHECK_EQ(SLU_ELEASE, slu_client_ack(c, &r, NULL, &why));
	take(c, &got, 0);
	CHECK_EQ(2, got.items[0].attempts);
	FINE(slu_receipt_parse(&r, got.items[0].receipt, &err));
	FINE(slu_client_ack(c, &r, NULL, &err));
	CHECK_EQ(SLU_ENOTFOUND, slu_client_ack(c, &r, NULL, &why));
	CHECK_EQ(SLU_EINVAL, slu_receipt_parse(&r, "AQ", &why));
	CHECK_CONTAINS("invalid receipt: \"AQ\"", why.text);
	slu_client_messages_release(&got);
	slu_client_free(c);
	served_stop(&srv);
}

TEST(what_is_wrong_is_said_and_nothing_is_sent)
{
	struct slu_client_put bad = { SLU_OPTIONS_INIT(struct slu_client_put), .payload = "{", .size = 1, .is_json = true };
	struct slu_client *c;
	struct slu_err why;

	CHECK_EQ(SLU_EINVAL, slu_client_new(&c, &(struct slu_client_config){ SLU_OPTIONS_INIT(struct slu_client_config), .servers = "a:b:c" }, &why));
	CHECK_EQ(SLU_EINVAL, slu_client_new(&c, &(struct slu_client_config){ SLU_OPTIONS_INIT(struct slu_client_config), .servers = " , " }, &why));
	CHECK_EQ(SLU_EINVAL, slu_client_new(&c, &(struct slu_client_config){ SLU_OPTIONS_INIT(struct slu_client_config), .token = "a\nb" }, &why));
	FINE(slu_client_new(&c, NULL, &err));
	CHECK_EQ(SLU_EINVAL, slu_client_enqueue(c, "mail", &bad, 1, NULL, &why));
	CHECK_CONTAINS("payload", why.text);
	CHECK_EQ(SLU_EINVAL, slu_client_enqueue(c, "mail", &bad, 0, NULL, &why));
	bad = (struct slu_client_put){ SLU_OPTIONS_INIT(struct slu_client_put), .attributes = "[]" };
	CHECK_EQ(SLU_EINVAL, slu_client_enqueue(c, "mail", &bad, 1, NULL, &why));
	CHECK_CONTAINS("invalid attributes", why.text);
	CHECK_EQ(SLU_EINVAL, slu_client_send(c, "mail", &(struct slu_send){ SLU_OPTIONS_INIT(struct slu_send), .attributes = "{},\"queue\":\"x\"" }, NULL, NULL, &why));
	CHECK_CONTAINS("invalid attributes", why.text);
	slu_client_free(c);
	slu_client_free(NULL);
}

/* --- servers that are away ------------------------------------------------------- */

struct waiter {
	struct slu_client *client;
	struct slu_client_messages got;
	struct slu_call call;
	struct slu_err err;
	_Atomic bool done;
	int rc;
	pthread_t thread;
};

static void *
wait_for_mail(void *arg)
{
	const struct slu_client_claim claim = { SLU_OPTIONS_INIT(struct slu_client_claim), .limit = 1, .wait = SLU_NEVER };
	struct waiter *w = arg;

	w->rc = slu_client_dequeue(w->client, "mail", &claim, &w->got, &w->call, &w->err);
	atomic_store(&w->done, true);
	return NULL;
}

static void
begin(struct waiter *w, struct slu_client *c)
{
	*w = (struct waiter){ .client = c, .call = w->call };
	w->call.struct_size = sizeof w->call;
	CHECK(pthread_create(&w->thread, NULL, wait_for_mail, w) == 0);
}

static void
finish(struct waiter *w, int rc)
{
	pthread_join(w->thread, NULL);
	if (w->rc != rc)
		test_fail(__FILE__, __LINE__, "%s: %s", slu_err_row(w->rc)->c_name, w->err.text);
	slu_client_messages_release(&w->got);
}

/* Until the server knows that somebody waits. */
static void
until_parked(struct slu_client *c, unsigned n)
{
	char want[64];
	bool found = false;

	(void)snprintf(want, sizeof want, "sluice_waiting{shard=\"0\"} %u\n", n);
	while (!found) {
		struct slu_answer a;

		FINE(slu_client_call(c, &(struct slu_request){ SLU_OPTIONS_INIT(struct slu_request), .method = "GET", .path = "/metrics" },
				     &a, NULL, &err));
		found = strstr(a.body, want);
		slu_free(a.body);
	}
}

TEST(stopping_a_client_ends_waits_and_refuses_new_work_and_holders_can_settle)
{
	struct slu_client_put put = { SLU_OPTIONS_INIT(struct slu_client_put), .payload = "x", .size = 1 };
	struct slu_settle done = { SLU_OPTIONS_INIT(struct slu_settle) };
	struct slu_client_messages got = { 0 };
	struct slu_client *c, *other;
	struct slu_delivery *d;
	struct slu_err why;
	struct test_server srv;
	struct waiter w = { 0 };

	served_start(&srv, 1, "memory");
	c = served_client(&srv);
	other = served_client(&srv);
	FINE(slu_client_enqueue(c, "held", &put, 1, NULL, &err));
	FINE(slu_client_dequeue(c, "held", NULL, &got, NULL, &err));
	CHECK_EQ(1, got.n);
	begin(&w, c);
	until_parked(other, 1);
	FINE(slu_client_stop(c, &err));
	finish(&w, SLU_ECLOSED);
	CHECK_EQ(SLU_ECLOSED, slu_client_enqueue(c, "held", &put, 1, NULL, &why));
	CHECK_CONTAINS("stopped", why.text);
	CHECK_EQ(SLU_ECLOSED, slu_client_receive(c, "held", NULL, &d, NULL, &why));
	done.receipt = got.items[0].receipt;
	FINE(slu_client_settle(c, SLU_ACK, NULL, &done, 1, NULL, &err));
	slu_client_messages_release(&got);
	slu_client_free(c);
	slu_client_free(other);
	served_stop(&srv);
}

/* LQ-66: the server freezes while a client waits, and nobody's clock ends the wait. */
TEST(a_wait_has_no_timeout_of_its_own)
{
	const struct timespec a_while = { 0, 300000000 };
	struct slu_client *c, *other;
	struct slu_client_config config = { SLU_OPTIONS_INIT(struct slu_client_config), .space = "test", .timeout = SLU_MS };
	struct waiter w = { 0 };
	struct test_server srv;

	served_start(&srv, 1, "memory");
	config.servers = srv.address;
	FINE(slu_client_new(&c, &config, &err));
	other = served_client(&srv);
	begin(&w, c);
	until_parked(other, 1);
	served_freeze(&srv);
	nanosleep(&a_while, NULL); /* 300 times what an answer may take */
	CHECK(!atomic_load(&w.done));
	served_thaw(&srv);
	put(other, "x");
	finish(&w, 0);
	slu_client_free(c);
	slu_client_free(other);
}

TEST(a_call_ends_at_its_timeout_and_when_it_is_canceled)
{
	const struct slu_client_claim claim = { SLU_OPTIONS_INIT(struct slu_client_claim), .wait = SLU_NEVER };
	const int fd = eventfd(0, EFD_CLOEXEC);
	const uint64_t one = 1;
	struct slu_client_messages got = { 0 };
	struct slu_client *c;
	struct waiter w = { .call = { SLU_OPTIONS_INIT(struct slu_call), .cancel_fd = fd } };
	struct test_server srv;

	served_start(&srv, 1, "memory");
	c = served_client(&srv);
	CHECK_EQ(SLU_ETIMEOUT, slu_client_dequeue(c, "mail", &claim, &got,
						  &(struct slu_call){ SLU_OPTIONS_INIT(struct slu_call), .timeout = 20 * SLU_MS }, NULL));
	begin(&w, c);
	until_parked(c, 1);
	CHECK(write(fd, &one, sizeof one) == sizeof one);
	finish(&w, SLU_ECANCELED);
	until_parked(c, 0);
	slu_client_free(c);
	close(fd);
}

TEST(a_server_killed_in_the_middle_loses_nothing_and_needs_no_code)
{
	struct slu_client_messages got = { 0 };
	struct slu_settle done = { SLU_OPTIONS_INIT(struct slu_settle) };
	struct slu_client *c;
	struct waiter w = { 0 };
	struct test_server srv;
	uint64_t id;

	served_start(&srv, 1, "log");
	c = served_client(&srv);
	id = put(c, "before");
	take(c, &got, 0);
	begin(&w, c);
	until_parked(c, 1);
	served_kill(&srv);
	served_again(&srv);
	done.id = id;
	done.lease_id = got.items[0].lease_id;
	FINE(slu_client_settle(c, SLU_ACK, "mail", &done, 1, NULL, &err));
	put(c, "after");
	pthread_join(w.thread, NULL);
	CHECK_EQ(0, w.rc);
	CHECK_EQ(1, w.got.n);
	CHECK(memcmp("after", w.got.items[0].payload, 5) == 0);
	slu_client_messages_release(&w.got);
	slu_client_messages_release(&got);
	slu_client_free(c);
}

static void *
put_while_away(void *arg)
{
	put(arg, "x");
	return NULL;
}

TEST(a_server_that_is_away_is_waited_for)
{
	struct slu_client_messages got = { 0 };
	struct slu_client *c;
	struct test_server srv;
	pthread_t t;

	served_start(&srv, 1, "memory");
	c = served_client(&srv);
	served_stop(&srv);
	CHECK(pthread_create(&t, NULL, put_while_away, c) == 0);
	served_again(&srv);
	pthread_join(t, NULL);
	take(c, &got, 0);
	CHECK_EQ(1, got.n);
	slu_client_messages_release(&got);
	slu_client_free(c);
}

TEST(without_patience_the_first_failure_is_the_answer)
{
	const struct slu_client_config config = { SLU_OPTIONS_INIT(struct slu_client_config), .servers = "unix:nobody.sock", .patience = -1 };
	struct slu_client_put p = { SLU_OPTIONS_INIT(struct slu_client_put), .payload = "x", .size = 1 };
	struct slu_client *c;
	struct slu_err why;

	FINE(slu_client_new(&c, &config, &err));
	CHECK_EQ(SLU_EDOWN, slu_client_enqueue(c, "mail", &p, 1, NULL, &why));
	CHECK_CONTAINS("nobody.sock", why.text);
	slu_client_free(c);
}

TEST(the_next_server_of_the_list_takes_over)
{
	char servers[300];
	struct slu_client_config config = { SLU_OPTIONS_INIT(struct slu_client_config), .servers = servers, .space = "test", .patience = -1 };
	struct test_server one, two;
	struct slu_client *c;
	struct slu_answer a;

	served_start(&one, 1, "memory");
	served_start(&two, 2, "memory");
	(void)snprintf(servers, sizeof servers, "unix:nobody.sock, %s,%s", one.address, two.address);
	FINE(slu_client_new(&c, &config, &err));
	put(c, "one");
	served_kill(&one);
	put(c, "two");
	served_kill(&two);
	served_again(&one);
	put(c, "one again");
	FINE(slu_client_call(c, &(struct slu_request){ SLU_OPTIONS_INIT(struct slu_request), .method = "GET", .path = "/stats?namespace=test&topic=mail" },
			     &a, NULL, &err));
	CHECK_CONTAINS("\"ready\":1", a.body);
	slu_free(a.body);
	slu_client_free(c);
}

TEST(with_idempotent_every_message_has_a_key_of_its_own)
{
	struct slu_client_put p[2] = { { SLU_OPTIONS_INIT(struct slu_client_put), .payload = "x", .size = 1 }, { SLU_OPTIONS_INIT(struct slu_client_put), .payload = "y", .size = 1 } };
	struct slu_client_config config = { SLU_OPTIONS_INIT(struct slu_client_config), .space = "test", .idempotent = true };
	struct slu_client_messages got = { 0 };
	struct slu_client *c;
	struct test_server srv;

	served_start(&srv, 1, "memory");
	config.servers = srv.address;
	FINE(slu_client_new(&c, &config, &err));
	FINE(slu_client_enqueue(c, "mail", p, 2, NULL, &err));
	FINE(slu_client_enqueue(c, "mail", p, 2, NULL, &err));
	take(c, &got, 0);
	CHECK_EQ(4, got.n);
	slu_client_messages_release(&got);
	slu_client_free(c);
}

TEST(packed_messages_are_those_of_json)
{
	static const char bytes[] = { 0, 1, (char)0xff, '"' };
	const struct slu_client_put puts[] = {
		{ SLU_OPTIONS_INIT(struct slu_client_put), .payload = "text", .size = 4, .priority = "high" },
		{ SLU_OPTIONS_INIT(struct slu_client_put), .payload = bytes, .size = sizeof bytes, .key = "k", .attributes = "{\"a\":[1]}" },
		{ SLU_OPTIONS_INIT(struct slu_client_put), .payload = "{\"x\":1}", .size = 7, .is_json = true, .correlation_id = "c" },
		{ SLU_OPTIONS_INIT(struct slu_client_put), .payload = "", .size = 0, .content_type = "image/png" },
		{ SLU_OPTIONS_INIT(struct slu_client_put), .payload = bytes, .size = sizeof bytes, .priority = "low" },
	};
	struct slu_client_messages got = { 0 };
	struct test_server srv;

	served_start(&srv, 1, "memory");
	for (int packed = 0; packed <= 1; packed++) {
		const struct slu_client_config config = { SLU_OPTIONS_INIT(struct slu_client_config), .servers = srv.address, .space = packed ? "packed" : "json", .packed = packed };
		struct slu_client_put sent[5];
		struct slu_client *c;

		memcpy(sent, puts, sizeof sent);
		FINE(slu_client_new(&c, &config, &err));
		FINE(slu_client_enqueue(c, "mail", sent, 5, NULL, &err));
		take(c, &got, 0);
		CHECK_EQ(5, got.n);
		for (int i = 0; i < 5; i++) {
			CHECK_EQ(sent[i].id, got.items[i].id);
			CHECK_EQ(puts[i].size, got.items[i].size);
			CHECK(memcmp(puts[i].payload, got.items[i].payload, puts[i].size) == 0);
			CHECK_STR(puts[i].key ? puts[i].key : "", got.items[i].key);
			CHECK_STR(puts[i].attributes ? puts[i].attributes : "", got.items[i].attributes);
			CHECK_STR(puts[i].correlation_id ? puts[i].correlation_id : "", got.items[i].correlation_id);
		}
		CHECK_STR("text/plain; charset=utf-8", got.items[0].content_type);
		CHECK_STR("application/json", got.items[2].content_type);
		CHECK_STR("image/png", got.items[3].content_type);
		CHECK_STR("", got.items[4].content_type);
		slu_client_messages_release(&got);
		slu_client_free(c);
	}
}

/* --- threads --------------------------------------------------------------------- */

struct worker {
	struct slu_client *client;
	_Atomic unsigned *left;
	pthread_t thread;
};

static void *
work(void *arg)
{
	struct worker *w = arg;

	while (atomic_load(w->left) > 0) {
		struct slu_client_messages got = { 0 };

		take(w->client, &got, 10 * SLU_MS);
		for (size_t i = 0; i < got.n; i++) {
			struct slu_settle s = { SLU_OPTIONS_INIT(struct slu_settle), .id = got.items[i].id, .lease_id = got.items[i].lease_id };

			FINE(slu_client_settle(w->client, SLU_ACK, "mail", &s, 1, NULL, &err));
			atomic_fetch_sub(w->left, 1);
		}
		slu_client_messages_release(&got);
	}
	return NULL;
}

TEST(many_threads_share_a_client)
{
	enum {
		THREADS = 8,
		MESSAGES = 200
	};
	_Atomic unsigned left = MESSAGES;
	struct worker workers[THREADS];
	struct slu_client *c;
	struct test_server srv;

	served_start(&srv, 1, "memory");
	c = served_client(&srv);
	EACH(i, workers) {
		workers[i] = (struct worker){ c, &left, 0 };
		CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
	}
	for (int i = 0; i < MESSAGES; i++)
		put(c, "x");
	EACH(i, workers)
		pthread_join(workers[i].thread, NULL);
	CHECK_EQ(0, atomic_load(&left));
	slu_client_free(c);
}

TORTURE(a_client_survives_a_lack_of_memory)
{
	const struct slu_client_config config = { SLU_OPTIONS_INIT(struct slu_client_config), .servers = "unix:nobody.sock", .token = "t", .patience = -1 };
	struct slu_client_put p = { SLU_OPTIONS_INIT(struct slu_client_put), .payload = "x", .size = 1 };
	struct slu_client_messages got = { 0 };
	struct slu_delivery *d;
	struct slu_client *c;
	int rc = slu_client_new(&c, &config, NULL);

	if (rc) {
		CHECK_EQ(SLU_ENOMEM, rc);
		return;
	}
	CHECK(slu_client_enqueue(c, "mail", &p, 1, NULL, NULL) != 0);
	CHECK(slu_client_dequeue(c, "mail", NULL, &got, NULL, NULL) != 0);
	CHECK(slu_client_send(c, "mail", &(struct slu_send){ SLU_OPTIONS_INIT(struct slu_send), .payload = "x", .size = 1 }, NULL, NULL, NULL) != 0);
	CHECK(slu_client_receive(c, "mail", NULL, &d, NULL, NULL) != 0);
	slu_client_free(c);
}
