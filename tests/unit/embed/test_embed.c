/*
 * The broker in a user's process, through its public header.
 */
#include "embed/embed.h"

#include "kit.h"

#include <sluice/sluice.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	KILLED = 200
};

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static uint64_t
put(const char *queue, const char *payload)
{
	struct slu_put p = { SLU_OPTIONS_INIT(struct slu_put), .payload = payload, .size = strlen(payload) };

	CHECK_EQ(0, slu_enqueue(b, queue, &p, 1, &err));
	CHECK(p.id > 0);
	return p.id;
}

static size_t
claim(const char *queue, struct slu_message *m)
{
	size_t n;

	CHECK_EQ(0, slu_claim(b, queue, NULL, m, 1, &n, &err));
	return n;
}

TEST(a_message_goes_in_and_comes_out)
{
	struct slu_put p = {
		SLU_OPTIONS_INIT(struct slu_put),
		.payload = "hello",
		.size = 5,
		.priority = 3,
		.key = "k",
		.correlation = "c",
		.content_type = "text/plain",
		.attributes = "{}",
	};
	struct slu_message m;

	open_in(NULL);
	CHECK_EQ(0, slu_enqueue(b, "Jobs", &p, 1, &err));
	CHECK_EQ(1, claim("jobs", &m));
	CHECK_EQ(p.id, m.id);
	CHECK_EQ(5, m.size);
	CHECK(memcmp("hello", m.payload, 5) == 0);
	CHECK_STR("k", m.key);
	CHECK_STR("c", m.correlation);
	CHECK_STR("text/plain", m.content_type);
	CHECK_STR("{}", m.attributes);
	CHECK_EQ(3, m.priority);
	CHECK_EQ(1, m.attempts);
	CHECK(m.lease_until > m.accepted);
	CHECK_EQ(0, slu_ack(b, &m, NULL, 0, &err));
	CHECK_EQ(SLU_ENOTFOUND, slu_ack(b, &m, NULL, 0, &err));
	CHECK(err.text[0]);
	slu_message_release(&m);
}

TEST(an_invalid_message_is_refused_with_its_reason)
{
	static const struct {
		const char *label, *queue;
		struct slu_put put;
		int rc;
	} cases[] = {
		{ "a queue with a space", "a b", { 0 }, SLU_EINVAL },
		{ "no queue", "", { 0 }, SLU_EINVAL },
		{ "an empty key", "q", { .key = "" }, SLU_EINVAL },
		{ "a key with a control character", "q", { .key = "a\n" }, SLU_EINVAL },
		{ "a correlation id that is not ASCII", "q", { .correlation = "\xc3\xa4" }, SLU_EINVAL },
		{ "a negative delay", "q", { .delay = -1 }, SLU_EINVAL },
		{ "too many attempts", "q", { .max_attempts = 70000 }, SLU_EINVAL },
		{ "attributes that are no JSON", "q", { .attributes = "x" }, SLU_EINVAL },
		{ "attributes that are no object", "q", { .attributes = "[]" }, SLU_EINVAL },
		{ "attributes that add members", "q", { .attributes = "{},\"id\":1" }, SLU_EINVAL },
		{ "attributes that do not end", "q", { .attributes = "{" }, SLU_EINVAL },
		{ "empty attributes", "q", { .attributes = "" }, SLU_EINVAL },
	};

	open_in(NULL);
	EACH(i, cases) {
		struct slu_put p = cases[i].put;

		p.struct_size = sizeof p;
		err.text[0] = 0;
		CHECK_EQ(cases[i].rc, slu_enqueue(b, cases[i].queue, &p, 1, &err),
			 cases[i].label);
		CHECK(err.text[0]);
	}
}

TEST(a_failed_message_comes_again_and_dies_at_last)
{
	struct slu_put p = { SLU_OPTIONS_INIT(struct slu_put), .payload = "x", .size = 1, .max_attempts = 2 };
	const struct slu_nack_options now = { SLU_OPTIONS_INIT(struct slu_nack_options), .error = "no", .has_delay = true };
	struct slu_queue_stats stats;
	struct slu_message m;

	open_in(NULL);
	CHECK_EQ(0, slu_enqueue(b, "q", &p, 1, &err));
	for (unsigned i = 1; i <= 2; i++) {
		CHECK_EQ(1, claim("q", &m));
		CHECK_EQ(i, m.attempts);
		CHECK_EQ(0, slu_nack(b, &m, &now, &err));
		CHECK_EQ(SLU_ELEASE, slu_extend(b, &m, 0, &err));
		slu_message_release(&m);
	}
	CHECK_EQ(0, claim("q", &m));
	CHECK_EQ(0, slu_stats(b, "q", &stats, &err));
	CHECK_EQ(1, stats.dead);
	CHECK_EQ(0, slu_stats(b, "unused", &stats, &err));
	CHECK_EQ(0, stats.dead);
}

TEST(a_message_that_waits_says_why)
{
	struct slu_put p[2] = {
		{ SLU_OPTIONS_INIT(struct slu_put), .payload = "x", .size = 1, .key = "k" },
		{ SLU_OPTIONS_INIT(struct slu_put), .payload = "y", .size = 1, .key = "k" },
	};
	struct slu_why_answer why;
	struct slu_message m;

	open_in(NULL);
	CHECK_EQ(0, slu_enqueue(b, "q", p, 2, &err));
	CHECK_EQ(0, slu_why(b, "q", p[0].id, &why, &err));
	CHECK_STR("no_consumer", why.reason);
	CHECK_EQ(1, claim("q", &m));
	CHECK_EQ(0, slu_why(b, "q", p[1].id, &why, &err));
	CHECK_STR("behind", why.reason);
	CHECK_EQ(p[0].id, why.behind);
	CHECK_EQ(m.lease_until, why.until);
	CHECK_EQ(1, why.ahead);
	CHECK_CONTAINS("of its key, which is leased until", why.text);
	CHECK_EQ(0, slu_ack(b, &m, NULL, 0, &err));
	CHECK_EQ(SLU_ENOTFOUND, slu_why(b, "q", p[0].id, &why, &err));
	slu_message_release(&m);
}

static void *
put_later(void *queue)
{
	test_yield();
	put(queue, "late");
	return NULL;
}

TEST(a_claim_waits_for_a_message)
{
	const struct slu_claim_options wait = { SLU_OPTIONS_INIT(struct slu_claim_options), .wait = SLU_MIN };
	struct slu_message m;
	pthread_t thread;
	size_t n;

	open_in(NULL);
	CHECK_EQ(0, pthread_create(&thread, NULL, put_later, (void *)"q"));
	CHECK_EQ(0, slu_claim(b, "q", &wait, &m, 1, &n, &err));
	CHECK_EQ(1, n);
	slu_message_release(&m);
	pthread_join(thread, NULL);
}

TEST(a_watch_waits_and_takes_nothing)
{
	struct slu_message m;
	pthread_t thread;

	open_in(NULL);
	CHECK_EQ(SLU_ETIMEOUT, slu_watch(b, "q", SLU_MS, &err));
	CHECK_EQ(0, pthread_create(&thread, NULL, put_later, (void *)"q"));
	CHECK_EQ(0, slu_watch(b, "q", SLU_MIN, &err));
	CHECK_EQ(1, claim("q", &m));
	CHECK_EQ(1, m.attempts);
	slu_message_release(&m);
	pthread_join(thread, NULL);
}

static void *
ack_later(void *m)
{
	test_yield();
	CHECK_EQ(0, slu_ack(b, m, "42", 2, NULL));
	return NULL;
}

TEST(a_result_can_be_waited_for)
{
	struct slu_put p = { SLU_OPTIONS_INIT(struct slu_put), .keep_result = SLU_MIN };
	struct slu_message m;
	pthread_t thread;
	void *result;
	size_t size;

	open_in(NULL);
	CHECK_EQ(0, slu_enqueue(b, "q", &p, 1, &err));
	CHECK_EQ(SLU_ETIMEOUT, slu_result(b, "q", p.id, 0, &result, &size, &err));
	CHECK_EQ(1, claim("q", &m));
	CHECK_EQ(0, pthread_create(&thread, NULL, ack_later, &m));
	CHECK_EQ(0, slu_result(b, "q", p.id, SLU_MIN, &result, &size, &err));
	CHECK_EQ(2, size);
	CHECK_STR("42", result);
	slu_free(result);
	CHECK_EQ(SLU_ENOTFOUND, slu_result(b, "q", 1, SLU_MIN, &result, &size, &err));
	slu_message_release(&m);
	pthread_join(thread, NULL);
}

static void *
wait_for_ever(void *arg)
{
	const struct slu_claim_options wait = { SLU_OPTIONS_INIT(struct slu_claim_options), .wait = SLU_NEVER };
	struct slu_message m;
	size_t n;

	(void)arg;
	CHECK_EQ(0, slu_claim(b, "q", &wait, &m, 1, &n, NULL));
	CHECK_EQ(0, n);
	return NULL;
}

static uint64_t
waiting(void)
{
	struct broker_totals totals;

	broker_totals(b->broker, 0, &totals);
	return totals.waiting;
}

TEST(closing_ends_waits)
{
	pthread_t thread;

	open_in(NULL);
	CHECK_EQ(0, pthread_create(&thread, NULL, wait_for_ever, NULL));
	WAIT_UNTIL(waiting() == 1);
	close_broker();
	pthread_join(thread, NULL);
}

static void *
wait_until_stopped(void *arg)
{
	const struct slu_claim_options wait = { SLU_OPTIONS_INIT(struct slu_claim_options), .wait = SLU_NEVER };
	struct slu_message m;
	struct slu_err why;
	size_t n;

	(void)arg;
	CHECK_EQ(SLU_ECLOSED, slu_claim(b, "empty", &wait, &m, 1, &n, &why));
	CHECK_CONTAINS("stopped", why.text);
	return NULL;
}

TEST(stopping_ends_waits_and_refuses_new_work_and_holders_can_settle)
{
	struct slu_put late = { SLU_OPTIONS_INIT(struct slu_put) };
	struct slu_message held[2], m;
	struct slu_queue_stats stats;
	pthread_t thread;
	size_t n;

	open_in(NULL);
	put("q", "a");
	put("q", "b");
	CHECK_EQ(1, claim("q", &held[0]));
	CHECK_EQ(1, claim("q", &held[1]));
	CHECK_EQ(0, pthread_create(&thread, NULL, wait_until_stopped, NULL));
	WAIT_UNTIL(waiting() == 1);
	CHECK_EQ(0, slu_stop(b, &err));
	CHECK_EQ(0, slu_stop(b, &err)); /* once more is fine */
	pthread_join(thread, NULL);
	CHECK_EQ(SLU_ECLOSED, slu_enqueue(b, "q", &late, 1, &err));
	CHECK_EQ(SLU_ECLOSED, slu_claim(b, "q", NULL, &m, 1, &n, &err));
	CHECK_EQ(SLU_ECLOSED, slu_watch(b, "q", SLU_NEVER, &err));
	CHECK_EQ(0, slu_extend(b, &held[0], 0, &err));
	CHECK_EQ(0, slu_ack(b, &held[0], NULL, 0, &err));
	CHECK_EQ(0, slu_nack(b, &held[1], NULL, &err));
	CHECK_EQ(0, slu_stats(b, "q", &stats, &err));
	CHECK_EQ(0, stats.leased);
	slu_message_release(&held[0]);
	slu_message_release(&held[1]);
}

TEST(a_folder_keeps_what_was_not_acked)
{
	struct slu_message m;

	open_in("data");
	put("q", "one");
	put("q", "two");
	CHECK_EQ(1, claim("q", &m));
	CHECK_EQ(0, slu_ack(b, &m, NULL, 0, &err));
	slu_message_release(&m);
	open_in("data");
	CHECK_EQ(1, claim("q", &m));
	CHECK(memcmp("two", m.payload, 3) == 0);
	slu_message_release(&m);
	CHECK_EQ(0, claim("q", &m));
	close_broker();
}

/* LAYOUT-1 */
TEST(a_folder_of_several_shards_is_refused)
{
	CHECK_EQ(0, mkdir("many", 0700));
	for (int i = 0; i < 2; i++) {
		char folder[16];

		(void)snprintf(folder, sizeof folder, "many/%d", i);
		open_in(folder);
		close_broker();
	}
	CHECK_EQ(SLU_EINVAL, slu_open(&b, "many", NULL, &err));
	CHECK_CONTAINS("written with 2 shards and would be opened with 1", err.text);
	CHECK(!strstr(err.text, "--")); /* no flag of a command line */
}

TEST(a_folder_has_one_owner)
{
	struct slu_broker *second;
	int status;
	pid_t pid;

	open_in("data");
	CHECK_EQ(SLU_EBUSY, slu_open(&second, "data", NULL, &err));
	CHECK_CONTAINS("data is in use by this process", err.text);
	pid = fork();
	if (pid == 0) {
		CHECK_EQ(SLU_EBUSY, slu_open(&second, "data", NULL, &err));
		CHECK_CONTAINS("in use by another process", err.text);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* Says a number after each message that was accepted, until it is killed. */
static void
produce_until_killed(int out)
{
	open_in("data");
	for (uint32_t i = 0;; i++) {
		put("q", "work");
		if (write(out, &i, sizeof i) != sizeof i)
			_exit(1);
	}
}

/* SQ-F1: queued work survives kill -9. */
TEST(what_was_accepted_survives_kill_9)
{
	uint32_t accepted = 0, n = 0;
	struct slu_message m;
	int ends[2];
	pid_t child;

	CHECK_EQ(0, pipe(ends));
	child = fork();
	if (child == 0)
		produce_until_killed(ends[1]);
	close(ends[1]);
	while (accepted < KILLED && read(ends[0], &accepted, sizeof accepted) > 0)
		;
	kill(child, SIGKILL);
	while (read(ends[0], &accepted, sizeof accepted) > 0)
		;
	waitpid(child, NULL, 0);
	open_in("data");
	while (claim("q", &m)) {
		CHECK_EQ(1, m.attempts);
		slu_message_release(&m);
		n++;
	}
	CHECK(n == accepted + 1 || n == accepted + 2); /* the last one was not answered */
}

static void
ack_one_and_die(void)
{
	struct slu_message m;

	open_in("data");
	put("q", "done");
	put("q", "left");
	CHECK_EQ(1, claim("q", &m));
	CHECK_EQ(0, slu_ack(b, &m, NULL, 0, &err));
	kill(getpid(), SIGKILL);
}

/* MQ-51 */
TEST(what_was_acked_does_not_come_back_after_kill_9)
{
	struct slu_message m;
	int status;
	pid_t child = fork();

	if (child == 0)
		ack_one_and_die();
	waitpid(child, &status, 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	open_in("data");
	CHECK_EQ(1, claim("q", &m));
	CHECK(memcmp("left", m.payload, 4) == 0);
	slu_message_release(&m);
	CHECK_EQ(0, claim("q", &m));
}

/* ---- Large payloads ---- */

enum {
	LARGE = 70 << 20 /* more than a segment holds */
};

static char
byte_at(uint64_t i)
{
	return (char)(i * 7 + i / 65521);
}

struct source {
	uint64_t at;
	uint64_t size;
	bool fails; /* at the end */
};

static int64_t
read_source(void *arg, void *p, size_t size)
{
	struct source *s = arg;
	size_t n = 0;

	for (; n < size && s->at < s->size; n++)
		((char *)p)[n] = byte_at(s->at++);
	return n == 0 && s->fails ? -1 : (int64_t)n;
}

static long
memory_in_use(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long pages = 0, resident = 0;

	CHECK(f && fscanf(f, "%ld %ld", &pages, &resident) == 2);
	fclose(f);
	return resident * sysconf(_SC_PAGESIZE);
}

static void
check_pieces(const struct slu_message *m)
{
	char piece[4096];

	for (uint64_t at = 0; at < m->size; at += 1 << 18) {
		const size_t n = m->size - at < sizeof piece ? (size_t)(m->size - at)
							     : sizeof piece;

		CHECK_EQ(0, slu_read(b, m, at, piece, n, &err));
		CHECK_EQ(byte_at(at), piece[0]);
		CHECK_EQ(byte_at(at + n - 1), piece[n - 1]);
	}
}

TEST_LIMIT(a_stream_of_any_length_takes_no_memory, 120)
{
	struct source source = { .size = LARGE };
	struct slu_put p = { SLU_OPTIONS_INIT(struct slu_put), .read = read_source, .read_arg = &source, .key = "k" };
	struct slu_message m;
	long before;
	size_t n;

	open_in("data");
	put("q", "warm");
	CHECK_EQ(1, claim("q", &m));
	slu_message_release(&m);
	before = memory_in_use();
	CHECK_EQ(0, slu_enqueue(b, "q", &p, 1, &err));
	CHECK_EQ(0, slu_claim(b, "q", &(struct slu_claim_options){ SLU_OPTIONS_INIT(struct slu_claim_options), .in_pieces = true }, &m, 1, &n, &err));
	CHECK_EQ(1, n);
	CHECK_EQ(p.id, m.id);
	CHECK(m.payload == NULL);
	CHECK_EQ(LARGE, m.size);
	check_pieces(&m);
	if (!SANITIZED) /* a sanitizer keeps what was freed */
		CHECK(memory_in_use() - before < LARGE / 4);
	CHECK_EQ(SLU_EINVAL, slu_read(b, &m, LARGE, &n, 1, &err));
	CHECK_EQ(0, slu_ack(b, &m, NULL, 0, &err));
	check_pieces(&m); /* still there */
	slu_message_release(&m);
}

TEST(a_large_payload_is_given_whole_unless_asked_otherwise)
{
	static char payload[3 << 20];
	struct slu_put p[2] = { { SLU_OPTIONS_INIT(struct slu_put), .payload = payload, .size = sizeof payload },
				{ SLU_OPTIONS_INIT(struct slu_put), .payload = "small", .size = 5 } };
	struct slu_message m;

	for (size_t i = 0; i < sizeof payload; i++)
		payload[i] = byte_at(i);
	for (int i = 0; i < 2; i++) {
		open_in(i ? "data" : NULL);
		CHECK_EQ(0, slu_enqueue(b, "q", p, 2, &err));
		CHECK_EQ(1, claim("q", &m));
		CHECK_EQ(sizeof payload, m.size);
		CHECK(memcmp(payload, m.payload, m.size) == 0);
		check_pieces(&m);
		slu_message_release(&m);
		CHECK_EQ(1, claim("q", &m));
		CHECK(memcmp("small", m.payload, 5) == 0);
		slu_message_release(&m);
		close_broker();
	}
}

TEST(a_stream_that_fails_is_not_accepted)
{
	struct source source = { .size = 3 << 20, .fails = true };
	struct slu_put p = { SLU_OPTIONS_INIT(struct slu_put), .read = read_source, .read_arg = &source };
	struct slu_queue_stats stats;

	open_in("data");
	CHECK_EQ(SLU_EINVAL, slu_enqueue(b, "q", &p, 1, &err));
	CHECK_EQ(0, slu_stats(b, "q", &stats, &err));
	CHECK_EQ(0, stats.ready);
	close_broker();
	CHECK(access("data/payloads/00000001", F_OK) != 0);
}

static void
spoil(const char *path, long at)
{
	FILE *f = fopen(path, "r+");
	int byte;

	CHECK(f && fseek(f, at, SEEK_SET) == 0);
	byte = fgetc(f);
	CHECK(fseek(f, at, SEEK_SET) == 0 && fputc(byte ^ 1, f) >= 0 && fclose(f) == 0);
}

TEST(a_damaged_message_is_set_aside_and_the_next_is_handed_out)
{
	static char payload[2 << 20];
	struct slu_put p = { SLU_OPTIONS_INIT(struct slu_put), .payload = payload, .size = sizeof payload, .key = "k" };
	struct slu_put next = { SLU_OPTIONS_INIT(struct slu_put), .payload = "next", .size = 4, .key = "k" };
	struct slu_queue_stats stats;
	struct slu_message m;

	open_in("data");
	CHECK_EQ(0, slu_enqueue(b, "q", &p, 1, &err));
	CHECK_EQ(0, slu_enqueue(b, "q", &next, 1, &err));
	spoil("data/payloads/00000001", 1 << 20);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(i, claim("q", &m));
		CHECK_EQ(0, slu_stats(b, "q", &stats, &err));
		CHECK_EQ(1, stats.damaged);
	}
	CHECK(memcmp("next", m.payload, 4) == 0);
	slu_message_release(&m);
	open_in("data");
	CHECK_EQ(0, slu_stats(b, "q", &stats, &err));
	CHECK_EQ(1, stats.damaged);
	close_broker();
	CHECK_EQ(0, access("data/payloads/00000001", F_OK));
}

TORTURE(every_call_survives_a_failed_allocation)
{
	struct slu_put puts[2] = { { SLU_OPTIONS_INIT(struct slu_put), .payload = "a", .size = 1 }, { SLU_OPTIONS_INIT(struct slu_put), .keep_result = SLU_MIN } };
	struct slu_queue_stats stats;
	struct slu_message m[2];
	size_t n = 0;
	int rc;

	rc = slu_open(&b, NULL, NULL, &err);
	if (rc) {
		CHECK_EQ(SLU_ENOMEM, rc);
		return;
	}
	rc = slu_enqueue(b, "q", puts, 2, &err);
	CHECK(rc == 0 || rc == SLU_ENOMEM);
	rc = slu_claim(b, "q", NULL, m, 2, &n, &err);
	CHECK(rc == 0 || rc == SLU_ENOMEM);
	for (size_t i = 0; i < n; i++) {
		rc = slu_ack(b, &m[i], "r", 1, &err);
		CHECK(rc == 0 || rc == SLU_ENOMEM);
		slu_message_release(&m[i]);
	}
	rc = slu_watch(b, "other", 1, &err);
	CHECK(rc == SLU_ETIMEOUT || rc == SLU_ENOMEM);
	rc = slu_stats(b, "q", &stats, &err);
	CHECK(rc == 0 || rc == SLU_ENOMEM);
	close_broker();
}
