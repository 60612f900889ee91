/*
 * fuzz_server.c - any bytes, given to a whole server: HTTP, every dialect, broker, engine.
 *
 * The input is what clients send. A byte 0xff, which no HTTP has, says with the next byte
 * what else happens (FUZZ_SHOW=1 in the environment shows the answers):
 *
 *      c   the server gets on with what it has      h   hang up, another one connects
 *      n   the same, no more is sent, and another   w   this one stays, another one
 *          client connects                              connects
 *      s m d   a second, a minute, a day passes
 *      i l f u e t v   the last value of a member of any answer (`members` below)
 *      ( )     between them is a body: Content-Length and the end of the head go before it
 *
 *  FUZZSERVER-1  Every connection gets whole answers in form, no more than it asked for, none of
 *      them 500, and JSON that is JSON.
 *  FUZZSERVER-2  When the clients are gone no call, connection, body or waiting op is left.
 *  FUZZSERVER-3  The counters are what a scan finds; it stops cleanly.
 *  FUZZSERVER-4  A line of the log is one line, and JSON.
 */
#include "fuzz.h"

#include "base/json/json.h"
#include "client/answer.h"
#include "core/ledger/check.h"
#include "core/locks/locks.h"
#include "http/request.h"
#include "nodekit.h"
#include "server/node_private.h"

#include <stdio.h>

enum {
	CLIENTS = 8,
	VALUE = 128
};

/* Values that a client hands back, by the letter that stands for the last one seen. */
static const struct {
	char letter;
	const char *name;
} members[] = {
	{ 'i', "\"id\":" },
	{ 'l', "\"lease_id\":" },
	{ 'f', "\"fencing_token\":" },
	{ 'u', "\"message_id\":" },
	{ 'e', "\"meta_etag\":" },
	{ 't', "\"txn_id\":" },
	{ 'v', "\"version\":" },
};

enum {
	MEMBERS = sizeof members / sizeof members[0]
};

struct client {
	struct kit_caller caller;
	struct buf sent;
	struct buf body; /* while one is gathered */
	bool gathers;
};

static struct nodekit kit;
static struct client clients[CLIENTS];
static unsigned n_clients;
static char values[MEMBERS][VALUE];

static void
complain(const char *what, struct slice about)
{
	fprintf(stderr, "%s\n%.*s\n", what, (int)about.n, about.n ? about.p : "");
	abort();
}

/* --- what is checked ---------------------------------------------------------------- */

static void
check_json(const char *rule, struct slice text)
{
	struct json r;

	json_init(&r, text, JSON_DEPTH_MAX);
	if (json_end(&r, NULL))
		complain(rule, text);
}

static void
check_line(const char *line, size_t n) /* FUZZSERVER-4 */
{
	const char *const end = memchr(line, '\n', n);

	if (!end || end != line + n - 1)
		complain("V4: more than a line", (struct slice){ line, n });
	check_json("V4: no JSON", (struct slice){ line, n });
}

static void
check_answer(const struct answer *a)
{
	const struct slice body = buf_slice(&a->body);

	if (a->status == 500)
		complain("V1: 500", body);
	if (body.n > 0 && (body.p[0] == '{' || body.p[0] == '['))
		check_json("V1: no JSON", body);
}

/* Is there another request in the bytes? A server that finds none may refuse them. */
static bool
next_request(struct request *r, struct slice *sent)
{
	struct slice piece;
	enum request_event e;

	do
		e = request_next(r, sent, &piece);
	while (e == REQUEST_BODY || e == REQUEST_END);
	return e == REQUEST_HEAD;
}

/* Returns false if it has no length, as in HTTP/1.0: then the end of the connection ends it. */
static bool
next_answer(struct answer *a, struct slice *got, const struct request *r, bool asked)
{
	enum answer_event e;

	answer_begin(a, asked && slice_eq(r->method, SLICE("HEAD")));
	e = answer_next(a, got);
	if (e == ANSWER_REFUSED && asked && r->minor == 0)
		return false;
	if (e == ANSWER_REFUSED)
		complain(answer_refusal(a), *got);
	if (e == ANSWER_WHOLE)
		check_answer(a);
	return true;
}

/* The frames of an upgraded connection: a line and a body each. */
static void
check_frames(struct slice got)
{
	(void)slice_skip_past(&got, "\r\n\r\n");
	while (got.n > 0) {
		unsigned long long number, size;
		unsigned status;
		struct slice line;
		char text[64];

		if (!slice_cut(&got, '\n', &line) || line.n >= sizeof text)
			complain("V1: no line of a frame", line);
		(void)snprintf(text, sizeof text, "%.*s", (int)line.n, line.p);
		if (sscanf(text, "%llu %u %llu", &number, &status, &size) != 3 || size > got.n)
			complain("V1: no frame", line);
		if (status == 500)
			complain("V1: 500", got);
		slice_skip(&got, size);
	}
}

static void
check_answers(const struct client *c) /* FUZZSERVER-1 */
{
	static const struct slice upgraded = SLICE("HTTP/1.1 101 ");
	struct slice sent = buf_slice(&c->sent), got = buf_slice(&c->caller.got);
	bool asked = true;
	struct request r;
	struct answer a;

	answer_init(&a, NODEKIT_GOT);
	FUZZ_CHECK(request_init(&r, &request_limits_default) == 0);
	while (got.n > 0) {
		if (!asked)
			complain("V1: nobody asked for this", got);
		if (got.n > upgraded.n && memcmp(got.p, upgraded.p, upgraded.n) == 0) {
			check_frames(got);
			break;
		}
		asked = next_request(&r, &sent);
		if (!next_answer(&a, &got, &r, asked))
			break;
		if (!asked && a.status < 400)
			complain("V1: no refusal", buf_slice(&c->caller.got));
	}
	request_release(&r);
	answer_release(&a);
}

static void
check_rest(void)
{
	struct broker_totals totals;
	const char *wrong;

	broker_totals(kit.node->broker, 0, &totals);
	FUZZ_CHECK(totals.waiting == 0); /* FUZZSERVER-2 */
	FUZZ_CHECK(server_metric(kit.node->server, SERVER_CONNECTIONS) == 0);
	FUZZ_CHECK(server_metric(kit.node->server, SERVER_CALLS) == 0);
	FUZZ_CHECK(server_metric(kit.node->server, SERVER_BODIES) == 0);
	wrong = ledger_scan_check(nodekit_ledger(&kit)); /* FUZZSERVER-3 */
	if (!wrong)
		wrong = locks_scan_check(nodekit_locks(&kit));
	if (wrong)
		complain("V3", slice_of(wrong));
}

/* --- clients -------------------------------------------------------------------------- */

/* The last value of each member in what came. */
static void
learn(struct slice got)
{
	for (unsigned i = 0; i < MEMBERS && got.n > 0; i++) {
		const size_t n = strlen(members[i].name);
		const char *last = NULL, *p = got.p, *const end = got.p + got.n;

		while ((p = memmem(p, (size_t)(end - p), members[i].name, n)) != NULL)
			last = p += n;
		if (!last)
			continue;
		while (last < end && strchr("\" [", *last))
			last++;
		(void)snprintf(values[i], VALUE, "%.*s", (int)strcspn(last, "\", ]}\r\n"), last);
	}
}

static struct client *
now(void)
{
	return &clients[n_clients - 1];
}

static void
another(void)
{
	if (n_clients == CLIENTS)
		return;
	caller_open(&clients[n_clients].caller, &kit);
	buf_init(&clients[n_clients].sent, SIZE_MAX);
	buf_init(&clients[n_clients].body, SIZE_MAX);
	clients[n_clients].gathers = false;
	n_clients++;
}

/* It gets all that there is for it; then it says that it is done, or goes at once. */
static void
leave(struct client *c, bool politely)
{
	if (politely) {
		nodekit_settle(&kit);
		learn(buf_slice(&c->caller.got));
		if (getenv("FUZZ_SHOW"))
			printf("%s\n", buf_str(&c->caller.got));
		check_answers(c);
		caller_end(&c->caller);
		nodekit_settle(&kit);
	}
	caller_release(&c->caller);
	buf_release(&c->sent);
	buf_release(&c->body);
}

static void
say(const char *p, size_t n)
{
	const struct slice text = { p, n };

	if (now()->gathers) {
		buf_put(&now()->body, p, n);
		return;
	}
	buf_put(&now()->sent, p, n);
	caller_send(&now()->caller, text);
}

static void
say_body(void)
{
	struct client *const c = now();
	char length[64];

	(void)snprintf(length, sizeof length, "Content-Length: %zu\r\n\r\n", c->body.n);
	if (!c->gathers)
		return;
	c->gathers = false;
	say(length, strlen(length));
	say(c->body.p, c->body.n);
	buf_clear(&c->body);
}

static void
say_value(char letter)
{
	nodekit_settle(&kit);
	for (unsigned i = 0; i < n_clients; i++)
		learn(buf_slice(&clients[i].caller.got));
	for (unsigned i = 0; i < MEMBERS; i++)
		if (members[i].letter == letter)
			say(values[i], strlen(values[i]));
}

static void
happen(char what)
{
	switch (what) {
	case 'c':
		nodekit_settle(&kit);
		break;
	case 'n':
	case 'h':
		leave(now(), what == 'n');
		n_clients--;
		another();
		break;
	case '(':
		now()->gathers = true;
		break;
	case ')':
		say_body();
		break;
	case 'w':
		another();
		break;
	case 's':
		nodekit_pass(&kit, SLU_SEC);
		break;
	case 'm':
		nodekit_pass(&kit, SLU_MIN);
		break;
	case 'd':
		nodekit_pass(&kit, 24 * SLU_HOUR);
		break;
	default:
		say_value(what);
	}
}

static void
play(const char *p, size_t n)
{
	while (n > 0) {
		const char *const mark = memchr(p, 0xff, n);
		const size_t plain = mark ? (size_t)(mark - p) : n;

		say(p, plain);
		p += plain;
		n -= plain;
		if (n < 2)
			return;
		happen(p[1]);
		p += 2;
		n -= 2;
	}
}

static void
stop(void)
{
	FUZZ_CHECK(nodekit_stop(&kit) == 0);
	nodekit_release(&kit);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!kit.node) {
		nodekit_init(&kit, NODEKIT_MEMORY);
		kit.logged = check_line;
		FUZZ_CHECK(nodekit_start(&kit) == 0);
		FUZZ_CHECK(atexit(stop) == 0);
	}
	memset(values, 0, sizeof values);
	another();
	play((const char *)data, size);
	while (n_clients > 0)
		leave(&clients[--n_clients], true);
	nodekit_settle(&kit);
	check_rest();
	FUZZ_CHECK(nodekit_empty(&kit) == 0); /* FUZZSERVER-3 */
	return 0;
}
