/*
 * NULL and nonsense are SLU_EINVAL, in every function of libsluice-client: one row a call.
 * No server is needed: all of it is refused before anything is sent.
 */
#include <sluice/consumer.h>
#include <test.h>

#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPTIONS(tag, ...) (&(struct slu_##tag){ SLU_OPTIONS_INIT(struct slu_##tag), ##__VA_ARGS__ })

#define REFUSED(call)                                               \
	do {                                                        \
		err.text[0] = 0;                                    \
		CHECK_EQ(SLU_EINVAL, (call), #call);                \
		if (!err.text[0])                                   \
			test_fail(__FILE__, __LINE__, "%s", #call); \
	} while (0)

static struct slu_err err;
static struct slu_client *c;

static void
open_client(void)
{
	const struct slu_client_config config = {
		SLU_OPTIONS_INIT(struct slu_client_config), .servers = "unix:/nowhere", .patience = -1
	};

	CHECK_EQ(0, slu_client_new(&c, &config, &err));
}

static enum slu_verdict
handle(struct slu_delivery *d, void *arg, struct slu_err *why)
{
	(void)d;
	(void)arg;
	(void)why;
	return SLU_DONE;
}

static bool
see(const struct slu_queue_event *e, void *arg)
{
	(void)e;
	(void)arg;
	return false;
}

static int
update(struct slu_client *client, struct slu_lease *l, struct slu_state *s, void *arg,
       struct slu_err *why)
{
	(void)client;
	(void)l;
	(void)s;
	(void)arg;
	(void)why;
	return 0;
}

TEST(many_at_once_refuse_nonsense)
{
	struct slu_client_put put = { SLU_OPTIONS_INIT(struct slu_client_put) };
	struct slu_settle item = { SLU_OPTIONS_INIT(struct slu_settle), .id = 1 };
	struct slu_client_messages got = { 0 };

	open_client();
	REFUSED(slu_client_new(NULL, NULL, &err));
	REFUSED(slu_client_new(&(struct slu_client *){ NULL }, &(struct slu_client_config){ 0 }, &err));
	REFUSED(slu_client_new(&(struct slu_client *){ NULL }, OPTIONS(client_config, .timeout = -1), &err));
	REFUSED(slu_client_enqueue(NULL, "q", &put, 1, NULL, &err));
	REFUSED(slu_client_enqueue(c, NULL, &put, 1, NULL, &err));
	REFUSED(slu_client_enqueue(c, "q", NULL, 1, NULL, &err));
	REFUSED(slu_client_enqueue(c, "q", &put, 0, NULL, &err));
	REFUSED(slu_client_enqueue(c, "q", &(struct slu_client_put){ 0 }, 1, NULL, &err));
	REFUSED(slu_client_enqueue(c, "q", OPTIONS(client_put, .size = 1), 1, NULL, &err));
	REFUSED(slu_client_enqueue(c, "q", OPTIONS(client_put, .delay = -1), 1, NULL, &err));
	REFUSED(slu_client_enqueue(c, "q", OPTIONS(client_put, .ttl = -1), 1, NULL, &err));
	REFUSED(slu_client_enqueue(c, "q", &put, 1, OPTIONS(call, .timeout = -1), &err));
	REFUSED(slu_client_enqueue(c, "q", &put, 1, &(struct slu_call){ .timeout = 1 }, &err));
	REFUSED(slu_client_dequeue(NULL, "q", NULL, &got, NULL, &err));
	REFUSED(slu_client_dequeue(c, NULL, NULL, &got, NULL, &err));
	REFUSED(slu_client_dequeue(c, "q", NULL, NULL, NULL, &err));
	REFUSED(slu_client_dequeue(c, "q", OPTIONS(client_claim, .lease = SLU_NEVER), &got, NULL, &err));
	REFUSED(slu_client_dequeue(c, "q", OPTIONS(client_claim, .lease = -1), &got, NULL, &err));
	REFUSED(slu_client_dequeue(c, "q", OPTIONS(client_claim, .wait = -1), &got, NULL, &err));
	REFUSED(slu_client_settle(NULL, SLU_ACK, "q", &item, 1, NULL, &err));
	REFUSED(slu_client_settle(c, SLU_ACK, "q", NULL, 1, NULL, &err));
	REFUSED(slu_client_settle(c, (enum slu_settle_verb)7, "q", &item, 1, NULL, &err));
	REFUSED(slu_client_settle(c, SLU_EXTEND, "q", OPTIONS(settle, .time = -1), 1, NULL, &err));
	REFUSED(slu_client_settle(c, SLU_EXTEND, "q", OPTIONS(settle, .time = SLU_NEVER), 1, NULL, &err));
	REFUSED(slu_client_stop(NULL, &err));
	slu_client_messages_release(NULL);
	slu_client_messages_release(&got);
	slu_client_free(c);
	slu_client_free(NULL);
}

TEST(one_at_a_time_refuses_nonsense)
{
	struct slu_receipt r = { .space = "default", .queue = "q", .id = "x" };
	const struct slu_json_field field = { 0 };
	struct slu_subscription *sub;
	struct slu_delivery *d;
	int out;
	size_t n;
	struct slu_why_answer why;

	open_client();
	REFUSED(slu_client_send(NULL, "q", OPTIONS(send), NULL, NULL, &err));
	REFUSED(slu_client_send(c, NULL, OPTIONS(send), NULL, NULL, &err));
	REFUSED(slu_client_send(c, "q", NULL, NULL, NULL, &err));
	REFUSED(slu_client_send(c, "q", OPTIONS(send, .size = 1), NULL, NULL, &err));
	REFUSED(slu_client_send(c, "q", OPTIONS(send, .delay = -1), NULL, NULL, &err));
	REFUSED(slu_client_send(c, "q", OPTIONS(send, .visibility = SLU_NEVER), NULL, NULL, &err));
	REFUSED(slu_client_receive(NULL, "q", NULL, &d, NULL, &err));
	REFUSED(slu_client_receive(c, NULL, NULL, &d, NULL, &err));
	REFUSED(slu_client_receive(c, "q", NULL, NULL, NULL, &err));
	REFUSED(slu_client_receive(c, "q", OPTIONS(receive, .visibility = SLU_NEVER), &d, NULL, &err));
	REFUSED(slu_client_receive(c, "q", OPTIONS(receive, .wait = -1), &d, NULL, &err));
	REFUSED(slu_client_subscribe(NULL, "q", NULL, &sub, &err));
	REFUSED(slu_client_subscribe(c, NULL, NULL, &sub, &err));
	REFUSED(slu_client_subscribe(c, "q", NULL, NULL, &err));
	REFUSED(slu_client_subscribe(c, "q", OPTIONS(receive, .visibility = -1), &sub, &err));
	REFUSED(slu_subscription_next(NULL, &d, NULL, &err));
	slu_subscription_close(NULL);
	CHECK(!slu_delivery_info(NULL));
	CHECK(!slu_delivery_state(NULL));
	REFUSED(slu_delivery_read(NULL, &out, 1, &n, &err));
	REFUSED(slu_delivery_write(NULL, 1, &err));
	REFUSED(slu_delivery_save(NULL, "x", &err));
	REFUSED(slu_delivery_decode(NULL, &field, 1, &out, &err));
	REFUSED(slu_delivery_ack(NULL, NULL, &err));
	REFUSED(slu_delivery_nack(NULL, NULL, NULL, &err));
	REFUSED(slu_delivery_extend(NULL, 0, NULL, &err));
	slu_delivery_close(NULL);
	slu_delivery_leave(NULL);
	REFUSED(slu_json_decode(NULL, 2, &field, 1, &out, &err));
	REFUSED(slu_json_decode("{}", 2, NULL, 1, &out, &err));
	REFUSED(slu_json_decode("{}", 2, &field, 1, NULL, &err));
	REFUSED(slu_client_ack(NULL, &r, NULL, &err));
	REFUSED(slu_client_ack(c, NULL, NULL, &err));
	REFUSED(slu_client_nack(NULL, &r, NULL, NULL, &err));
	REFUSED(slu_client_nack(c, NULL, NULL, NULL, &err));
	REFUSED(slu_client_nack(c, &r, OPTIONS(nack, .delay = -1), NULL, &err));
	REFUSED(slu_client_extend(NULL, &r, 0, NULL, &err));
	REFUSED(slu_client_extend(c, NULL, 0, NULL, &err));
	REFUSED(slu_client_extend(c, &r, -1, NULL, &err));
	REFUSED(slu_client_extend(c, &r, SLU_NEVER, NULL, &err));
	CHECK(!slu_receipt_write(NULL));
	REFUSED(slu_receipt_parse(NULL, "x", &err));
	REFUSED(slu_receipt_parse(&r, NULL, &err));
	REFUSED(slu_client_watch(NULL, "q", see, NULL, NULL, &err));
	REFUSED(slu_client_watch(c, NULL, see, NULL, NULL, &err));
	REFUSED(slu_client_watch(c, "q", NULL, NULL, NULL, &err));
	REFUSED(slu_client_why(NULL, "q", 1, &why, NULL, &err));
	REFUSED(slu_client_why(c, "q", 1, NULL, NULL, &err));
	slu_client_free(c);
}

TEST(locks_state_and_services_refuse_nonsense)
{
	const struct slu_consumer consumer = { SLU_OPTIONS_INIT(struct slu_consumer), .queue = "q", .handle = handle };
	struct slu_service *s;
	struct slu_answer answer;
	struct slu_lease l = { .key = "k" };
	struct slu_state state;

	open_client();
	REFUSED(slu_lock_acquire(NULL, OPTIONS(acquire), &l, NULL, &err));
	REFUSED(slu_lock_acquire(c, NULL, &l, NULL, &err));
	REFUSED(slu_lock_acquire(c, OPTIONS(acquire), NULL, NULL, &err));
	REFUSED(slu_lock_acquire(c, OPTIONS(acquire, .ttl = SLU_NEVER), &l, NULL, &err));
	REFUSED(slu_lock_acquire(c, OPTIONS(acquire, .wait = -1), &l, NULL, &err));
	REFUSED(slu_lock_keep(NULL, &l, 0, NULL, &err));
	REFUSED(slu_lock_keep(c, NULL, 0, NULL, &err));
	REFUSED(slu_lock_keep(c, &l, -1, NULL, &err));
	REFUSED(slu_lock_keep(c, &l, SLU_NEVER, NULL, &err));
	REFUSED(slu_lock_release(NULL, &l, SLU_COMMIT, NULL, &err));
	REFUSED(slu_lock_release(c, NULL, SLU_COMMIT, NULL, &err));
	REFUSED(slu_lock_release(c, &l, (enum slu_lock_end)5, NULL, &err));
	REFUSED(slu_lock_describe(NULL, "k", &l, NULL, &err));
	REFUSED(slu_lock_describe(c, NULL, &l, NULL, &err));
	REFUSED(slu_lock_describe(c, "k", NULL, NULL, &err));
	REFUSED(slu_lock_update(NULL, OPTIONS(acquire), update, NULL, NULL, &err));
	REFUSED(slu_lock_update(c, NULL, update, NULL, NULL, &err));
	REFUSED(slu_lock_update(c, OPTIONS(acquire), NULL, NULL, NULL, &err));
	REFUSED(slu_state_get(NULL, &l, &state, NULL, &err));
	REFUSED(slu_state_get(c, NULL, &state, NULL, &err));
	REFUSED(slu_state_get(c, &l, NULL, NULL, &err));
	REFUSED(slu_state_peek(NULL, "k", &state, NULL, &err));
	REFUSED(slu_state_peek(c, NULL, &state, NULL, &err));
	REFUSED(slu_state_peek(c, "k", NULL, NULL, &err));
	REFUSED(slu_state_put(NULL, &l, "1", 1, NULL, NULL, &err));
	REFUSED(slu_state_put(c, NULL, "1", 1, NULL, NULL, &err));
	REFUSED(slu_state_put(c, &l, NULL, 1, NULL, NULL, &err));
	REFUSED(slu_state_put(c, &l, "1", 1, &(struct slu_state_if){ .version = 1 }, NULL, &err));
	REFUSED(slu_state_remove(NULL, &l, NULL, NULL, &err));
	REFUSED(slu_state_remove(c, NULL, NULL, NULL, &err));
	REFUSED(slu_client_call(NULL, OPTIONS(request, .method = "GET", .path = "/"), &answer, NULL, &err));
	REFUSED(slu_client_call(c, NULL, &answer, NULL, &err));
	REFUSED(slu_client_call(c, OPTIONS(request, .method = "GET"), &answer, NULL, &err));
	REFUSED(slu_client_call(c, OPTIONS(request, .path = "/"), &answer, NULL, &err));
	REFUSED(slu_client_call(c, OPTIONS(request, .method = "POST", .path = "/", .size = 1), &answer, NULL, &err));
	REFUSED(slu_client_call(c, OPTIONS(request, .method = "GET", .path = "/"), NULL, NULL, &err));
	REFUSED(slu_service_new(NULL, c, &consumer, 1, &err));
	REFUSED(slu_service_new(&s, NULL, &consumer, 1, &err));
	REFUSED(slu_service_new(&s, c, NULL, 1, &err));
	REFUSED(slu_service_new(&s, c, &consumer, 0, &err));
	REFUSED(slu_service_new(&s, c, OPTIONS(consumer, .queue = "q", .handle = handle, .visibility = SLU_NEVER), 1, &err));
	CHECK_EQ(0, slu_service_new(&s, c, &consumer, 1, &err));
	REFUSED(slu_service_start(NULL, &err));
	REFUSED(slu_service_wait(NULL, 0, &err));
	REFUSED(slu_service_wait(s, -1, &err));
	REFUSED(slu_service_run(NULL, &err));
	slu_service_stop(NULL);
	slu_service_free(s);
	slu_service_free(NULL);
	slu_client_free(c);
}

TEST(a_client_from_before_a_fork_is_refused_in_the_child)
{
	struct slu_client_put put = { SLU_OPTIONS_INIT(struct slu_client_put) };
	int status = -1, rc;
	pid_t pid;

	open_client();
	pid = fork();
	if (pid == 0) {
		rc = slu_client_enqueue(c, "q", &put, 1, NULL, &err);
		slu_client_free(c);
		_exit(rc != SLU_EINVAL || !strstr(err.text, "fork()"));
	}
	CHECK_EQ(pid, waitpid(pid, &status, 0));
	CHECK_EQ(0, status);
	CHECK_EQ(SLU_EDOWN, slu_client_enqueue(c, "q", &put, 1, NULL, &err));
	slu_client_free(c);
}
