/*
 * A message as a stream: sent, received, read, settled, handed on; against real servers.
 */
#include "served.h"

#include "base/clock.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static struct test_server srv;

static struct slu_client *
start(const char *engine)
{
	served_start(&srv, 1, engine);
	return served_client(&srv);
}

static void
send_text(struct slu_client *c, const char *text)
{
	FINE(slu_client_send(c, "mail", &(struct slu_send){ SLU_OPTIONS_INIT(struct slu_send), .payload = text, .size = strlen(text) }, NULL, NULL, &err));
}

static struct slu_delivery *
receive(struct slu_client *c, const struct slu_receive *how)
{
	struct slu_delivery *d;

	FINE(slu_client_receive(c, "mail", how, &d, NULL, &err));
	return d;
}

static const struct slu_receive wait_long = { SLU_OPTIONS_INIT(struct slu_receive), .wait = SLU_NEVER };

static void
check_text(struct slu_delivery *d, const char *want)
{
	char got[4096] = "";
	size_t at = 0, n = 1;

	CHECK(d);
	while (n > 0 && at < sizeof got - 1) {
		FINE(slu_delivery_read(d, got + at, sizeof got - 1 - at, &n, &err));
		at += n;
	}
	CHECK_STR(want, got);
}

/* LQ-67: read and ack. */
TEST(a_message_is_sent_and_received)
{
	static const char text[] = "hello\r\n--there\r\n";
	const struct slu_send what = {
		SLU_OPTIONS_INIT(struct slu_send),
		.payload = text,
		.size = sizeof text - 1,
		.content_type = "text/plain",
		.attributes = "{\"n\":[1,{\"a\":\"\\\"\"}]}",
		.correlation_id = "c-17",
		.max_attempts = 3,
	};
	struct slu_client *c = start("memory");
	const struct slu_delivery_info *info;
	struct slu_delivery *d;
	struct slu_sent sent;

	FINE(slu_client_send(c, "mail", &what, &sent, NULL, &err));
	CHECK_STR("c-17", sent.correlation_id);
	d = receive(c, &(struct slu_receive){ SLU_OPTIONS_INIT(struct slu_receive), .visibility = 90 * SLU_SEC });
	CHECK(d);
	info = slu_delivery_info(d);
	CHECK_STR(sent.id, info->receipt.id);
	CHECK_STR("test", info->receipt.space);
	CHECK_STR("text/plain", info->content_type);
	CHECK_STR("{\"n\":[1,{\"a\":\"\\\"\"}]}", info->attributes);
	CHECK_STR("c-17", info->correlation_id);
	CHECK_EQ(sizeof text - 1, info->size);
	CHECK_EQ(1, info->attempts);
	CHECK_EQ(3, info->max_attempts);
	CHECK_EQ(90 * SLU_SEC, info->visibility);
	CHECK(!slu_delivery_state(d));
	check_text(d, text);
	FINE(slu_delivery_ack(d, NULL, &err));
	CHECK_EQ(SLU_ECONFLICT, slu_delivery_ack(d, NULL, NULL));
	slu_delivery_close(d);
	CHECK(!receive(c, NULL));
	slu_client_free(c);
}

TEST(nothing_is_had_at_once_or_after_the_wait)
{
	struct slu_client *c = start("memory");

	CHECK(!receive(c, NULL));
	CHECK(!receive(c, &(struct slu_receive){ SLU_OPTIONS_INIT(struct slu_receive), .wait = 100 * SLU_MS }));
	slu_client_free(c);
}

struct waiter {
	struct slu_client *client;
	struct slu_delivery *got;
	struct slu_err err;
	int rc;
	_Atomic bool done;
	pthread_t thread;
};

static void *
wait_for_mail(void *arg)
{
	struct waiter *w = arg;

	w->rc = slu_client_receive(w->client, "mail", &wait_long, &w->got, NULL, &w->err);
	atomic_store(&w->done, true);
	return NULL;
}

static void
until_parked(struct slu_client *c)
{
	bool found = false;

	while (!found) {
		struct slu_answer a;

		FINE(slu_client_call(c, &(struct slu_request){ SLU_OPTIONS_INIT(struct slu_request), .method = "GET", .path = "/metrics" }, &a, NULL, &err));
		found = strstr(a.body, "sluice_waiting{shard=\"0\"} 1\n");
		slu_free(a.body);
	}
}

/* LQ-66: nobody's clock ends the wait: not the server's, that stands still, nor ours, that
 * gives an answer 50 ms. */
TEST(a_wait_for_a_message_has_no_timeout_of_its_own)
{
	const struct timespec a_while = { 0, 400000000 };
	struct slu_client *c, *other = start("memory");
	const struct slu_client_config config = { SLU_OPTIONS_INIT(struct slu_client_config), .servers = srv.address, .space = "test", .timeout = 50 * SLU_MS };
	struct waiter w = { 0 };

	FINE(slu_client_new(&c, &config, &err));
	w.client = c;
	CHECK(pthread_create(&w.thread, NULL, wait_for_mail, &w) == 0);
	until_parked(other);
	served_freeze(&srv);
	nanosleep(&a_while, NULL);
	CHECK(!atomic_load(&w.done));
	served_thaw(&srv);
	send_text(other, "at last");
	pthread_join(w.thread, NULL);
	CHECK_EQ(0, w.rc);
	slu_delivery_close(w.got);
	slu_client_free(c);
	slu_client_free(other);
}

TEST(a_server_killed_while_somebody_waits_is_waited_for)
{
	struct slu_client *c = start("log");
	struct waiter w = { .client = c };

	CHECK(pthread_create(&w.thread, NULL, wait_for_mail, &w) == 0);
	until_parked(c);
	served_kill(&srv);
	served_again(&srv);
	send_text(c, "after");
	pthread_join(w.thread, NULL);
	CHECK_EQ(0, w.rc);
	check_text(w.got, "after");
	slu_delivery_close(w.got);
	slu_client_free(c);
}

/* --- large ones ------------------------------------------------------------------- */

struct pattern {
	uint64_t at, size;
	bool breaks; /* before its end */
};

static int64_t
read_pattern(void *arg, void *p, size_t size)
{
	struct pattern *s = arg;
	unsigned char *out = p;
	size_t n = 0;

	if (s->breaks && s->at > s->size / 2)
		return -1;
	for (; n < size && s->at < s->size; n++, s->at++)
		out[n] = (unsigned char)(s->at * 31 + s->at / 251);
	return (int64_t)n;
}

static void
check_pattern(struct slu_delivery *d, uint64_t size)
{
	struct pattern want = { .size = size };
	static unsigned char got[100000], expected[sizeof got];
	size_t n = 1;

	while (n > 0) {
		FINE(slu_delivery_read(d, got, sizeof got, &n, &err));
		CHECK_EQ(n, read_pattern(&want, expected, n));
		CHECK(memcmp(got, expected, n) == 0);
	}
	CHECK_EQ(size, want.at);
}

TEST(a_large_payload_streams_both_ways)
{
	const uint64_t size = 20 << 20;
	struct slu_client *c = start("log");
	struct pattern p = { .size = size };
	struct slu_delivery *d;

	FINE(slu_client_send(c, "mail", &(struct slu_send){ SLU_OPTIONS_INIT(struct slu_send), .source = read_pattern, .source_arg = &p }, NULL, NULL, &err));
	d = receive(c, &wait_long);
	CHECK_EQ(size, slu_delivery_info(d)->size);
	check_pattern(d, size);
	FINE(slu_delivery_ack(d, NULL, &err));
	slu_delivery_close(d);
	slu_client_free(c);
}

TEST(a_payload_that_breaks_off_is_not_accepted)
{
	struct slu_client *c = start("memory");
	struct pattern p = { .size = 1 << 20, .breaks = true };

	CHECK_EQ(SLU_EFAILED, slu_client_send(c, "mail", &(struct slu_send){ SLU_OPTIONS_INIT(struct slu_send), .source = read_pattern, .source_arg = &p }, NULL, NULL, NULL));
	CHECK(!receive(c, NULL));
	slu_client_free(c);
}

/* LQ-67: write to a descriptor, to a file. */
TEST(a_payload_goes_to_a_file)
{
	char *large = malloc(3 << 20), *back = malloc(3 << 20);
	struct pattern p = { .size = 3 << 20 };
	struct slu_client *c = start("memory");
	struct slu_delivery *d;
	int fd;

	CHECK_EQ(3 << 20, read_pattern(&p, large, 3 << 20));
	FINE(slu_client_send(c, "mail", &(struct slu_send){ SLU_OPTIONS_INIT(struct slu_send), .payload = large, .size = 3 << 20 }, NULL, NULL, &err));
	d = receive(c, &wait_long);
	FINE(slu_delivery_save(d, "saved", &err));
	CHECK_EQ(SLU_EFAILED, slu_delivery_save(d, "saved", NULL));
	FINE(slu_delivery_ack(d, NULL, &err));
	slu_delivery_close(d);
	fd = open("saved", O_RDONLY);
	CHECK_EQ(3 << 20, read(fd, back, 3 << 20));
	CHECK(memcmp(large, back, 3 << 20) == 0);
	close(fd);
	send_text(c, "to a descriptor");
	fd = open("written", O_RDWR | O_CREAT, 0600);
	d = receive(c, &wait_long);
	FINE(slu_delivery_write(d, fd, &err));
	CHECK_EQ(15, pread(fd, back, 100, 0));
	FINE(slu_delivery_ack(d, NULL, &err));
	slu_delivery_close(d);
	close(fd);
	slu_client_free(c);
	free(large);
	free(back);
}

struct order {
	char customer[32];
	int64_t amount;
};

/* LQ-67: decode JSON. */
TEST(a_payload_is_decoded)
{
	static const struct slu_json_field fields[] = {
		SLU_JSON_FIELD(struct order, customer, SLU_JSON_TEXT),
		SLU_JSON_FIELD(struct order, amount, SLU_JSON_INT),
	};
	struct slu_client *c = start("memory");
	struct order o = { .amount = 0 };
	struct slu_delivery *d;

	send_text(c, "{\"customer\":\"Anna\",\"amount\":12}");
	d = receive(c, &wait_long);
	FINE(slu_delivery_decode(d, fields, 2, &o, &err));
	CHECK_STR("Anna", o.customer);
	CHECK_EQ(12, o.amount);
	FINE(slu_delivery_ack(d, NULL, &err));
	slu_delivery_close(d);
	send_text(c, "no JSON");
	d = receive(c, &wait_long);
	CHECK_EQ(SLU_EINVAL, slu_delivery_decode(d, fields, 2, &o, NULL));
	slu_delivery_close(d);
	slu_client_free(c);
}

/* --- how it ends ------------------------------------------------------------------- */

/* LQ-67: nack and defer; LQ-68: closing is a nack, after its delay. */
TEST(a_message_that_is_not_acked_comes_again)
{
	struct slu_client *c = start("memory");
	struct slu_delivery *d;

	send_text(c, "x");
	d = receive(c, &wait_long);
	FINE(slu_delivery_nack(d, &(struct slu_nack){ SLU_OPTIONS_INIT(struct slu_nack), .error = "broken" }, NULL, &err));
	slu_delivery_close(d);
	d = receive(c, &wait_long);
	CHECK_EQ(1, slu_delivery_info(d)->failures);
	FINE(slu_delivery_nack(d, &(struct slu_nack){ SLU_OPTIONS_INIT(struct slu_nack), .defer = true }, NULL, &err));
	slu_delivery_close(d);
	d = receive(c, &wait_long);
	CHECK_EQ(1, slu_delivery_info(d)->failures);
	CHECK_EQ(3, slu_delivery_info(d)->attempts);
	slu_delivery_close(d);
	d = receive(c, &(struct slu_receive){ SLU_OPTIONS_INIT(struct slu_receive), .wait = SLU_NEVER, .on_close = SLU_SEC });
	CHECK_EQ(2, slu_delivery_info(d)->failures);
	slu_delivery_close(d);
	CHECK(!receive(c, NULL));
	d = receive(c, &wait_long);
	CHECK_EQ(3, slu_delivery_info(d)->failures);
	FINE(slu_delivery_nack(d, &(struct slu_nack){ SLU_OPTIONS_INIT(struct slu_nack), .dead = true, .error = "never" }, NULL, &err));
	slu_delivery_close(d);
	CHECK(!receive(c, NULL));
	slu_client_free(c);
}

TEST(closing_a_large_one_unread_is_a_nack_too)
{
	struct pattern p = { .size = 8 << 20 };
	struct slu_client *c = start("log");
	struct slu_delivery *d;

	FINE(slu_client_send(c, "mail", &(struct slu_send){ SLU_OPTIONS_INIT(struct slu_send), .source = read_pattern, .source_arg = &p }, NULL, NULL, &err));
	d = receive(c, &wait_long);
	slu_delivery_close(d);
	d = receive(c, &wait_long);
	CHECK_EQ(1, slu_delivery_info(d)->failures);
	FINE(slu_delivery_ack(d, NULL, &err)); /* unread, too */
	slu_delivery_close(d);
	CHECK(!receive(c, NULL));
	slu_client_free(c);
}

TEST(a_lease_is_extended_and_can_be_lost)
{
	struct slu_client *c = start("memory");
	struct slu_delivery *d, *again;
	slu_time until;

	send_text(c, "x");
	d = receive(c, &(struct slu_receive){ SLU_OPTIONS_INIT(struct slu_receive), .visibility = SLU_SEC });
	until = slu_delivery_info(d)->until;
	FINE(slu_delivery_extend(d, 5 * SLU_SEC, NULL, &err));
	CHECK(slu_delivery_info(d)->until > until);
	FINE(slu_delivery_extend(d, SLU_SEC, NULL, &err));
	again = receive(c, &wait_long); /* when the lease has ended */
	CHECK_EQ(SLU_ELEASE, slu_delivery_ack(d, NULL, NULL));
	CHECK_EQ(SLU_ELEASE, slu_delivery_extend(d, 0, NULL, NULL));
	slu_delivery_close(d);
	FINE(slu_delivery_ack(again, NULL, &err));
	slu_delivery_close(again);
	slu_client_free(c);
}

/* LQ-69: another process settles with the receipt alone. */
TEST(a_receipt_is_enough_for_another_process)
{
	struct slu_client *c = start("memory");
	struct slu_receipt r;
	struct slu_delivery *d;
	char *text;
	int status;

	send_text(c, "x");
	d = receive(c, &wait_long);
	text = slu_receipt_write(&slu_delivery_info(d)->receipt);
	CHECK(text && !strchr(text, '\n'));
	if (fork() == 0) {
		FINE(slu_receipt_parse(&r, text, &err));
		FINE(slu_client_extend(served_client(&srv), &r, SLU_MIN, NULL, &err));
		FINE(slu_client_ack(served_client(&srv), &r, NULL, &err));
		_exit(0);
	}
	CHECK(wait(&status) > 0 && status == 0);
	CHECK_EQ(SLU_ENOTFOUND, slu_delivery_ack(d, NULL, NULL));
	slu_delivery_close(d);
	send_text(c, "y");
	d = receive(c, &wait_long);
	FINE(slu_client_nack(c, &slu_delivery_info(d)->receipt, NULL, NULL, &err));
	slu_delivery_close(d);
	d = receive(c, &wait_long);
	CHECK_EQ(1, slu_delivery_info(d)->failures);
	slu_delivery_close(d);
	CHECK_EQ(SLU_EINVAL, slu_receipt_parse(&r, "{}", NULL));
	CHECK_EQ(SLU_EINVAL, slu_receipt_parse(&r, "x", NULL));
	slu_free(text);
	slu_client_free(c);
}

/* LQ-67: the handle of its state. */
TEST(a_message_has_a_state_that_survives_a_nack)
{
	const struct slu_receive how = { SLU_OPTIONS_INIT(struct slu_receive), .wait = SLU_NEVER, .stateful = true };
	struct slu_client *c = start("memory");
	struct slu_delivery *d;
	struct slu_state s;

	send_text(c, "x");
	d = receive(c, &how);
	CHECK(slu_delivery_state(d));
	FINE(slu_state_get(c, slu_delivery_state(d), &s, NULL, &err));
	CHECK(!s.text);
	FINE(slu_state_put(c, slu_delivery_state(d), "{\"step\":2}", 10, NULL, NULL, &err));
	FINE(slu_delivery_nack(d, NULL, NULL, &err));
	slu_delivery_close(d);
	d = receive(c, &how);
	FINE(slu_state_get(c, slu_delivery_state(d), &s, NULL, &err));
	CHECK_STR("{\"step\":2}", s.text);
	slu_free(s.text);
	FINE(slu_delivery_ack(d, NULL, &err));
	slu_delivery_close(d);
	slu_client_free(c);
}

/* --- streams ------------------------------------------------------------------------ */

TEST(a_subscription_gives_what_comes)
{
	const struct slu_receive how = { SLU_OPTIONS_INIT(struct slu_receive), .wait = SLU_NEVER, .prefetch = 4 };
	struct slu_client *c = start("memory");
	struct slu_subscription *s;
	struct slu_delivery *d;
	char text[32];

	FINE(slu_client_subscribe(c, "mail", &how, &s, &err));
	for (int i = 0; i < 20; i++) {
		(void)snprintf(text, sizeof text, "message %d\r\n", i);
		send_text(c, text);
		FINE(slu_subscription_next(s, &d, NULL, &err));
		if (i % 2)
			check_text(d, text); /* the others are dropped unread */
		FINE(slu_delivery_ack(d, NULL, &err));
		slu_delivery_close(d);
	}
	CHECK_EQ(SLU_ETIMEOUT, slu_subscription_next(s, &d, &(struct slu_call){ SLU_OPTIONS_INIT(struct slu_call), .timeout = 50 * SLU_MS }, NULL));
	CHECK(!d);
	send_text(c, "after a pause");
	FINE(slu_subscription_next(s, &d, NULL, &err));
	check_text(d, "after a pause");
	FINE(slu_delivery_ack(d, NULL, &err));
	slu_subscription_close(s); /* before its delivery */
	slu_delivery_close(d);
	slu_client_free(c);
}

TEST(what_was_received_stays_received_when_its_subscription_closes)
{
	const struct slu_receive how = { SLU_OPTIONS_INIT(struct slu_receive), .wait = SLU_NEVER };
	struct slu_client *c = start("memory");
	struct slu_subscription *s;
	struct slu_delivery *d, *other;

	send_text(c, "x");
	FINE(slu_client_subscribe(c, "mail", &how, &s, &err));
	FINE(slu_subscription_next(s, &d, NULL, &err));
	check_text(d, "x");
	slu_subscription_close(s);
	FINE(slu_client_subscribe(c, "mail", &(struct slu_receive){ SLU_OPTIONS_INIT(struct slu_receive), .wait = 0 }, &s, &err));
	(void)slu_subscription_next(s, &other, NULL, NULL);
	CHECK(!other);
	slu_subscription_close(s);
	FINE(slu_delivery_ack(d, NULL, &err));
	slu_delivery_close(d);
	slu_client_free(c);
}

TEST(a_subscription_that_finds_nothing_goes_on)
{
	const struct slu_receive how = { SLU_OPTIONS_INIT(struct slu_receive), .wait = 100 * SLU_MS };
	struct slu_client *c = start("memory");
	struct slu_subscription *s;
	struct slu_delivery *d;

	FINE(slu_client_subscribe(c, "mail", &how, &s, &err));
	FINE(slu_subscription_next(s, &d, NULL, &err));
	CHECK(!d);
	send_text(c, "x");
	FINE(slu_subscription_next(s, &d, NULL, &err));
	check_text(d, "x");
	FINE(slu_delivery_ack(d, NULL, &err));
	slu_delivery_close(d);
	FINE(slu_subscription_next(s, &d, NULL, &err));
	CHECK(!d);
	slu_subscription_close(s);
	slu_client_free(c);
}

TEST(a_subscription_outlives_its_server)
{
	struct slu_client *c = start("log");
	struct slu_subscription *s;
	struct slu_delivery *d;

	FINE(slu_client_subscribe(c, "mail", &wait_long, &s, &err));
	send_text(c, "one");
	FINE(slu_subscription_next(s, &d, NULL, &err));
	check_text(d, "one");
	served_kill(&srv);
	served_again(&srv);
	FINE(slu_delivery_ack(d, NULL, &err));
	slu_delivery_close(d);
	send_text(c, "two");
	FINE(slu_subscription_next(s, &d, NULL, &err));
	check_text(d, "two");
	FINE(slu_delivery_ack(d, NULL, &err));
	slu_delivery_close(d);
	slu_subscription_close(s);
	slu_client_free(c);
}

struct seen {
	struct slu_client *client;
	int n;
	char head[40];
};

static bool
on_event(const struct slu_queue_event *e, void *arg)
{
	struct seen *s = arg;

	if (s->n++ == 0)
		send_text(s->client, "x");
	(void)snprintf(s->head, sizeof s->head, "%s", e->head);
	return !e->available;
}

TEST(a_watcher_sees_a_queue_that_gets_something)
{
	struct slu_client *c = start("memory");
	struct seen s = { .client = c };

	FINE(slu_client_watch(c, "mail", on_event, &s, NULL, &err));
	CHECK(s.n >= 2 && s.head[0]);
	CHECK_EQ(SLU_ETIMEOUT, slu_client_watch(c, "empty", on_event, &s, &(struct slu_call){ SLU_OPTIONS_INIT(struct slu_call), .timeout = 50 * SLU_MS }, NULL));
	slu_client_free(c);
}
