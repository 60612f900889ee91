/*
 * A whole server whose memory or disk fails once, at every allocation and every call of the
 * disk that a fixed script of requests makes, one at a time.
 *
 *  NODETORTURE-1  It does not crash, and every request is answered or its connection closed.
 *  NODETORTURE-2  An error says what it is: 2xx means done, `outcome_unknown` or no answer may be
 *      either, anything else means that nothing has happened.
 *  NODETORTURE-3  After a restart what is there is what was answered.
 *  NODETORTURE-4  After lack of memory it serves on, without a restart.
 */
#include "nodekit.h"
#include "test.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FEWER 9
#else
#define FEWER 1
#endif

enum outcome {
	DONE,
	REFUSED,
	UNKNOWN
};

/* Each topic has one message at most: it is there at least `low` and at most `high` times. */
enum topic {
	ENDED, /* enqueued, claimed, acked */
	TWICE, /* enqueued twice with one idempotency key */
	DEAD,  /* claimed, and given up */
	LATER, /* claimed, extended, given back for an hour */
	AWAITED,
	TOPICS
};

static const char *const names[TOPICS] = { "ended", "twice", "dead", "later", "awaited" };

struct trial {
	struct nodekit kit;
	int low[TOPICS], high[TOPICS];
	bool committed_low, committed_high; /* the document beside the lock */
	unsigned failed;                    /* requests that were not done */
	char fields[256];                   /* of every request: the holder's */
	char answer[65536];
};

typedef void script(struct trial *t);

/* --- requests ------------------------------------------------------------------------ */

static enum outcome
outcome_of(const char *got, bool whole)
{
	const char *const body = strstr(got, "\r\n\r\n");
	int status = 0;

	if (!whole || !body || sscanf(got, "HTTP/1.1 %d", &status) != 1)
		return UNKNOWN;
	if (status < 300)
		return DONE;
	if (!strstr(body, "\"error\":\"") || (status != 404 && status != 500 && status != 503))
		test_fail(__FILE__, __LINE__, "T2: %s", got);
	return strstr(body, "outcome_unknown") ? UNKNOWN : REFUSED;
}

/* It asks for the end of the connection, so that the whole answer is known by it. */
static void
send_request(struct trial *t, struct kit_caller *c, const char *head, const char *body)
{
	char text[2048];
	const int n = snprintf(text, sizeof text,
			       "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s"
			       "Content-Length: %zu\r\n\r\n%s",
			       head, t->fields, strlen(body), body);

	CHECK(n < (int)sizeof text);
	caller_send(c, (struct slice){ text, (size_t)n });
}

static enum outcome
end_request(struct trial *t, struct kit_caller *c)
{
	enum outcome o;

	do /* NODETORTURE-1; a connection that found no memory waits until it is tried again */
		nodekit_settle(&t->kit);
	while (!c->ended);
	(void)snprintf(t->answer, sizeof t->answer, "%s", c->got.p ? c->got.p : "");
	o = outcome_of(t->answer, c->ended);
	caller_release(c);
	t->failed += o != DONE;
	return o;
}

static enum outcome
ask(struct trial *t, const char *head, const char *body)
{
	struct kit_caller c;

	caller_open(&c, &t->kit);
	send_request(t, &c, head, body);
	return end_request(t, &c);
}

static void
will_have(struct trial *t, enum topic topic, enum outcome o, int n)
{
	if (o == DONE || (o == UNKNOWN && n < t->low[topic]))
		t->low[topic] = n;
	if (o == DONE || (o == UNKNOWN && n > t->high[topic]))
		t->high[topic] = n;
}

static void
enqueue(struct trial *t, enum topic topic, const char *more)
{
	char body[256];

	(void)snprintf(body, sizeof body,
		       "[{\"namespace\":\"n\",\"topic\":\"%s\",\"text\":\"hello\"%s}]",
		       names[topic], more);
	will_have(t, topic, ask(t, "POST /enqueue", body), 1);
}

/* The digits behind a name in the last answer; false: there are none. */
static bool
find(const struct trial *t, const char *name, char out[static 32])
{
	const char *const p = strstr(t->answer, name);

	return p && sscanf(p + strlen(name), "%31[0-9l-]", out) == 1;
}

/* The lease of its message, as two members of an object. False if it is not leased. */
static bool
claim(struct trial *t, enum topic topic, char out[static 128])
{
	char head[128], id[32], lease[32];

	(void)snprintf(head, sizeof head, "GET /dequeue?namespace=n&topic=%s&lease=1h",
		       names[topic]);
	if (ask(t, head, "") != DONE || !find(t, "\"id\":", id) ||
	    !find(t, "\"lease_id\":\"", lease))
		return false;
	(void)snprintf(out, 128, "\"id\":%s,\"lease_id\":\"%s\"", id, lease);
	return true;
}

static enum outcome
settle(struct trial *t, const char *head, enum topic topic, const char *lease,
       const char *more)
{
	char body[512];

	(void)snprintf(body, sizeof body, "{\"namespace\":\"n\",\"topic\":\"%s\",%s%s}",
		       names[topic], lease, more);
	return ask(t, head, body);
}

/* --- the script ------------------------------------------------------------------------ */

static void
await(struct trial *t)
{
	struct kit_caller c;

	caller_open(&c, &t->kit);
	send_request(t, &c, "GET /dequeue?namespace=n&topic=awaited&wait=10s", "");
	nodekit_settle(&t->kit);
	enqueue(t, AWAITED, "");
	nodekit_pass(&t->kit, 20 * SLU_SEC);
	(void)end_request(t, &c);
}

static void
look(struct trial *t)
{
	static const char *const paths[] = {
		"GET /healthz",
		"GET /readyz",
		"GET /metrics",
		"GET /peek?namespace=n&topic=later&state=all",
		"GET /topics?namespace=n",
		"GET /dlq?namespace=n&topic=dead",
		"GET /v1/admin/queues",
		"GET /v1/admin/messages?namespace=n&topic=later&text=hell",
		"GET /openapi.json",
	};

	EACH(i, paths)
		(void)ask(t, paths[i], "");
}

static void
play(struct trial *t)
{
	char lease[128];

	enqueue(t, ENDED, ",\"keep_result\":\"1h\",\"attributes\":{\"a\":1}");
	if (claim(t, ENDED, lease))
		will_have(t, ENDED, settle(t, "POST /ack", ENDED, lease, ",\"result\":{\"x\":1}"), 0);
	for (int i = 0; i < 2; i++)
		enqueue(t, TWICE, ",\"idempotency_key\":\"once\"");
	enqueue(t, DEAD, ",\"key\":\"k\",\"ttl\":\"2h\"");
	if (claim(t, DEAD, lease))
		(void)settle(t, "POST /nack", DEAD, lease, ",\"dead\":true");
	enqueue(t, LATER, ",\"correlation_id\":\"c\"");
	if (claim(t, LATER, lease)) {
		(void)settle(t, "POST /extend", LATER, lease, ",\"lease\":\"2h\"");
		(void)settle(t, "POST /nack", LATER, lease, ",\"delay\":\"1h\",\"error\":\"no\"");
	}
	(void)ask(t, "PUT /policy?namespace=n&topic=twice", "{\"max_attempts\":9}");
	await(t);
	look(t);
}

/* --- the same of locks ------------------------------------------------------------------ */

#define KEY "namespace=n&key=k"

/* A lease on the key: its holder's fields go with every request from now on. */
static bool
acquire(struct trial *t, char lease[static 64])
{
	char id[32], txn[32], token[32];
	const char *const answer = t->answer;

	if (ask(t, "POST /v1/acquire",
		"{\"namespace\":\"n\",\"key\":\"k\",\"owner\":\"me\",\"ttl_seconds\":1800}") != DONE)
		return false;
	CHECK_EQ(1, sscanf(strstr(answer, "\"lease_id\""), "\"lease_id\":\"%31[0-9a-v]", id));
	CHECK_EQ(1, sscanf(strstr(answer, "\"txn_id\""), "\"txn_id\":\"%31[0-9a-v]", txn));
	CHECK(find(t, "\"fencing_token\":", token));
	(void)snprintf(t->fields, sizeof t->fields,
		       "X-Lease-ID: %s\r\nX-Txn-ID: %s\r\nX-Fencing-Token: %s\r\n", id, txn, token);
	(void)snprintf(lease, 64, "\"lease_id\":\"%s\"", id);
	return true;
}

static void
play_locks(struct trial *t)
{
	enum outcome staged[2], released;
	char lease[64], body[256];

	if (acquire(t, lease)) {
		staged[0] = ask(t, "POST /v1/update?" KEY, "{\"n\": 1}");
		staged[1] = ask(t, "POST /v1/mutate?" KEY, "{\"mutations\":[\"/m++\"]}");
		(void)ask(t, "POST /v1/attachments?" KEY "&name=a", "bytes");
		(void)ask(t, "GET /v1/attachments?" KEY, "");
		(void)ask(t, "POST /v1/metadata?" KEY, "{\"query_hidden\":false}");
		(void)ask(t, "GET /v1/get?" KEY, "");
		(void)snprintf(body, sizeof body, "{\"namespace\":\"n\",\"key\":\"k\",%s,\"ttl_seconds\":1800}", lease);
		(void)ask(t, "POST /v1/keepalive", body);
		released = ask(t, "POST /v1/release", body);
		t->committed_low = released == DONE && (staged[0] == DONE || staged[1] == DONE);
		t->committed_high = released != REFUSED && (staged[0] != REFUSED || staged[1] != REFUSED);
	}
	t->fields[0] = '\0';
	(void)ask(t, "POST /v1/query", "{\"namespace\":\"n\",\"selector\":{\"exists\":\"/n\"}}");
	(void)ask(t, "POST /v1/query", "{\"namespace\":\"n\",\"return\":\"documents\"}");
	(void)ask(t, "GET /v1/describe?" KEY, "");
	(void)ask(t, "POST /v1/namespace", "{\"namespace\":\"n\"}");
	(void)ask(t, "GET /v1/namespace?namespace=n", "");
	nodekit_pass(&t->kit, 20 * SLU_SEC); /* a disk that seemed full is tried again */
}

/* --- afterwards ------------------------------------------------------------------------ */

static int
count(struct trial *t, enum topic topic)
{
	char head[128], n[32];

	(void)snprintf(head, sizeof head, "GET /v1/admin/queue?namespace=n&topic=%s",
		       names[topic]);
	(void)ask(t, head, "");
	if (strstr(t->answer, "404 Not Found"))
		return 0;
	if (!find(t, "\"total\":", n))
		test_fail(__FILE__, __LINE__, "no count: %s", t->answer);
	return atoi(n);
}

static void
check_topics(struct trial *t, const char *rule)
{
	for (enum topic i = 0; i < TOPICS; i++) {
		const int n = count(t, i);

		if (n < t->low[i] || n > t->high[i])
			test_fail(__FILE__, __LINE__, "%s: %s has %d messages, %d to %d were promised",
				  rule, names[i], n, t->low[i], t->high[i]);
	}
}

static void
check_document(struct trial *t, const char *rule)
{
	bool there;

	CHECK_EQ(DONE, ask(t, "GET /v1/get?" KEY "&public=1", ""));
	there = strstr(t->answer, "204 No Content") == NULL;
	if (there < t->committed_low || there > t->committed_high)
		test_fail(__FILE__, __LINE__, "%s: the document is%s there", rule, there ? "" : " not");
}

static void
check_all(struct trial *t, const char *rule)
{
	check_topics(t, rule);
	check_document(t, rule);
}

static struct trial *
begin(void)
{
	struct trial *t = calloc(1, sizeof *t);

	CHECK(t);
	nodekit_init(&t->kit, NODEKIT_LOG);
	return t;
}

static void
end(struct trial *t)
{
	nodekit_release(&t->kit);
	free(t);
}

/* NODETORTURE-3: it was killed, and its disk is sound again. */
static void
restart(struct trial *t)
{
	if (t->kit.node)
		(void)nodekit_stop(&t->kit); /* it may have failed */
	simdisk_heal(t->kit.disk);
	simdisk_kill(t->kit.disk);
	t->kit.disk->capacity = 0;
	if (nodekit_start(&t->kit))
		test_fail(__FILE__, __LINE__, "T3: it does not start: %s", t->kit.err.text);
	check_all(t, "T3");
	CHECK_EQ(0, nodekit_stop(&t->kit));
}

/* --- memory ---------------------------------------------------------------------------- */

/* True: the n-th allocation was reached. */
static bool
starve(long n, script *plays)
{
	const bool at_start = !plays;
	struct trial *t = begin();
	bool reached;
	int rc;

	if (at_start)
		mem_fail_at(n);
	rc = nodekit_start(&t->kit);
	CHECK(rc == 0 || (rc == SLU_ENOMEM && at_start));
	if (!at_start)
		mem_fail_at(n);
	if (!rc && plays)
		plays(t);
	reached = mem_failed();
	mem_fail_at(0);
	if (!rc) {
		check_all(t, "T4");
		t->low[LATER]++;
		t->high[LATER]++;
		CHECK_EQ(DONE, ask(t, "POST /enqueue", "[{\"namespace\":\"n\",\"topic\":\"later\"}]"));
	}
	restart(t);
	end(t);
	return reached;
}

TEST_LIMIT(any_allocation_of_any_request_may_fail, 300)
{
	long n = 1;

	while (starve(n, play))
		n += FEWER;
	printf("# %ld allocations\n", n - 1);
	CHECK(n > 100);
}

TEST_LIMIT(any_allocation_of_any_request_about_locks_may_fail, 300)
{
	long n = 1;

	while (starve(n, play_locks))
		n += FEWER;
	printf("# %ld allocations\n", n - 1);
	CHECK(n > 100);
}

TEST_LIMIT(any_allocation_of_a_start_may_fail, 300)
{
	long n = 1;

	while (starve(n, NULL))
		n += FEWER;
	printf("# %ld allocations\n", n - 1);
	CHECK(n > 30);
}

/* --- disk ------------------------------------------------------------------------------ */

/* True: the n-th call was reached. */
static bool
hurt(unsigned long n, int error, bool on, bool at_start, script *plays)
{
	struct trial *t = begin();
	bool reached;
	int rc;

	if (at_start)
		simdisk_fail(t->kit.disk, SIM_ALL, n, error, on);
	rc = nodekit_start(&t->kit);
	CHECK(rc == 0 || at_start);
	if (!at_start)
		simdisk_fail(t->kit.disk, SIM_ALL, n, error, on);
	if (!rc)
		plays(t);
	reached = t->kit.disk->failed;
	restart(t);
	end(t);
	return reached;
}

static void
hurt_all(bool at_start, script *plays)
{
	static const struct {
		int error;
		bool on;
	} ways[] = { { EIO, false }, { EIO, true }, { ENOSPC, false }, { ENOSPC, true } };

	EACH(i, ways) {
		unsigned long n = 1;

		while (hurt(n, ways[i].error, ways[i].on, at_start, plays))
			n += FEWER;
		printf("# %s%s: %lu calls\n", strerror(ways[i].error),
		       ways[i].on ? " from then on" : "", n - 1);
		CHECK(n > (at_start ? 10 : 30));
	}
}

TEST_LIMIT(any_call_of_the_disk_may_fail_in_any_request, 300)
{
	hurt_all(false, play);
}

TEST_LIMIT(any_call_of_the_disk_may_fail_from_the_start, 300)
{
	hurt_all(true, play);
}

TEST_LIMIT(any_call_of_the_disk_may_fail_in_any_request_about_locks, 300)
{
	hurt_all(false, play_locks);
}
