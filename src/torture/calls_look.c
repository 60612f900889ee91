/*
 * calls_look.c - reads the queue at rest: its policy, counters and messages.
 */
#include "torture/calls_private.h"
#include "torture/times.h"

enum {
	LOOK_TRIES = 500,   /* how long to try until nothing changes */
	LOOK_DOUBTS = 3,    /* looks that differ from the counters before the difference counts */
	LOOK_PAUSE_MS = 20, /* pause between them */
	PAGE = 1000
};

#define CALLBACK_TIME (20 * SLU_SEC)

static const struct json_field partial_fields[] = {
	{ .name = { "partial", 7 }, .read = json_read_bool, .size = sizeof(bool) },
};

/* Whether the answer lacks a shard that did not answer in time: what it says about the queue may be wrong. */
static bool
is_partial(struct caller *c)
{
	bool partial = false;

	return !caller_object(c, partial_fields, N_FIELDS(partial_fields), &partial, &(struct slu_err){ 0 }) && partial;
}

/* Sends a request and requires status 200, of all shards. A shard may still change its owner: then the request is
 * repeated for a while. All requests here may happen twice. */
int
caller_want(struct caller *c, const char *method, struct slu_err *err)
{
	const slu_time end = time_now() + c->patience;
	struct event e = { 0 };
	bool whole;

	for (;;) {
		whole = caller_ask(c, method, &e) == OUTCOME_OK && !is_partial(c);
		if (whole || (e.outcome != OUTCOME_OK && c->http.answer.status != 503) || time_now() >= end)
			break;
		sleep_ms(LOOK_PAUSE_MS);
	}
	if (whole)
		return 0;
	return slu_fail(err, SLU_EDOWN, "%s: unexpected answer to %s %.40s: %.120s", c->http.address.text,
			method, buf_str(&c->path), buf_str(&c->http.answer.body));
}

/* A missing queue counts as empty: the checker decides what that means. */
static int
want_queue(struct caller *c, bool *known, struct slu_err *err)
{
	const int rc = caller_want(c, "GET", err);

	*known = rc == 0;
	return rc && c->http.answer.status == 404 ? 0 : rc;
}

static void
out_limits(struct json_out *w, const struct history_limits *limits)
{
	char weights[40];

	(void)snprintf(weights, sizeof weights, "s1=%u,s2=%u,s3=%u", limits->weights[1], limits->weights[2], limits->weights[3]);
	json_out_str(w, "share_weights", slice_of(weights));
	json_out_u64(w, "concurrency", limits->concurrency);
	json_out_str(w, "limit_attribute", SLICE("host"));
	json_out_u64(w, "attribute_concurrency", limits->attribute_concurrency);
	json_out_u64(w, "rate", limits->rate);
	json_out_u64(w, "rate_burst", limits->burst);
}

int
caller_setup(struct caller *c, const struct history_limits *limits, struct slu_err *err)
{
	struct json_out w;

	caller_query(c, "/policy");
	caller_body(c, &w);
	json_out_object(&w, NULL);
	json_out_u64(&w, "max_attempts", 4);
	json_out_str(&w, "idempotency_window", SLICE("30d")); /* longer than any clock step */
	json_out_object(&w, "retry");
	json_out_str(&w, "kind", SLICE("fixed"));
	json_out_str(&w, "base", SLICE("30ms"));
	json_out_str(&w, "jitter", SLICE("full"));
	json_out_close(&w);
	if (limits->weights[0])
		out_limits(&w, limits);
	json_out_finish(&w);
	return caller_want(c, "PUT", err);
}

/* --- counters ---------------------------------------------------------------------- */

static const struct json_field count_fields[] = {
#define COUNTER(word, state)                                                                     \
	{                                                                                        \
		.name = { word, sizeof word - 1 }, .read = json_read_u64,                        \
		.offset = (state) * sizeof(uint64_t), .size = sizeof(uint64_t), .required = true \
	}
	COUNTER("ready", STATE_READY),
	COUNTER("delayed", STATE_DELAYED),
	COUNTER("leased", STATE_LEASED),
	COUNTER("held", STATE_HELD),
	COUNTER("dead", STATE_DEAD),
	COUNTER("damaged", STATE_DAMAGED),
	COUNTER("total", STATE_TOTAL),
};

int
caller_count(struct caller *c, struct look *out, struct slu_err *err)
{
	bool known;
	int rc;

	caller_query(c, "/stats");
	*out = (struct look){ 0 };
	rc = want_queue(c, &known, err);
	if (rc || !known)
		return rc;
	return caller_object(c, count_fields, N_FIELDS(count_fields), out->counts, err);
}

/* --- rows -------------------------------------------------------------------------- */

struct look_row {
	uint64_t id;
	struct slice payload, status;
};

static const struct json_field row_fields[] = {
	JSON_FIELD(u64, struct look_row, id, .required = true),
	JSON_FIELD(base64, struct look_row, payload), /* the server leaves large payloads out of a page */
	JSON_FIELD(text, struct look_row, status, .required = true),
};

static uint8_t
state_of(struct slice word)
{
	if (slice_eq(word, SLICE("processing")))
		return STATE_LEASED;
	for (int s = 0; s < STATE_TOTAL; s++)
		if (slice_eq(word, slice_of(event_states[s])))
			return (uint8_t)s;
	return STATE_DAMAGED;
}

static void
add_row(struct caller *c, const struct look_row *row, struct event *e)
{
	e->id = row->id;
	e->state = state_of(row->status);
	e->name = 0;
	if (row->payload.n)
		(void)payload_read(row->payload, &e->name);
	history_add(c->history, e);
}

struct look_page {
	struct slice messages;
	struct slice cursor; /* the cursor: "", a number, or a string with a number */
};

static const struct json_field page_fields[] = {
	JSON_FIELD(raw, struct look_page, messages, .required = true),
	JSON_FIELD(raw, struct look_page, cursor),
};

static int
read_rows(struct caller *c, struct slice rows, struct event *e, struct slu_err *err)
{
	struct json r;

	json_init(&r, rows, JSON_DEPTH);
	json_room(&r, c->room, c->room_n);
	json_array(&r);
	while (json_element(&r)) {
		struct look_row row = { 0 };

		json_fields(&r, row_fields, N_FIELDS(row_fields), JSON_LENIENT, &row);
		if (row.id)
			add_row(c, &row, e);
	}
	return json_end(&r, err);
}

/* Reads one page. *next: the cursor of the next page; "" at the end. */
static int
read_page(struct caller *c, struct event *e, char next[static 32], struct slu_err *err)
{
	struct look_page page = { 0 };
	size_t n = 0;
	int rc = caller_object(c, page_fields, N_FIELDS(page_fields), &page, err);

	if (!rc)
		rc = read_rows(c, page.messages, e, err);
	for (size_t i = 0; !rc && i < page.cursor.n && n < 31; i++)
		if (page.cursor.p[i] >= '0' && page.cursor.p[i] <= '9')
			next[n++] = page.cursor.p[i];
	next[n] = '\0';
	return rc;
}

int
caller_list(struct caller *c, const char *path, const char *more, enum event_kind kind, struct slu_err *err)
{
	struct event e = { .kind = (uint8_t)kind, .call = history_look_next(c->history) };
	char cursor[32] = "";
	bool known;
	int rc;

	do {
		caller_query(c, path);
		buf_printf(&c->path, "&limit=%d%s", PAGE, more);
		if (cursor[0])
			buf_printf(&c->path, "&cursor=%s", cursor);
		e.start = time_now();
		rc = want_queue(c, &known, err);
		e.end = time_now();
		if (!rc && known)
			rc = read_page(c, &e, cursor, err);
	} while (!rc && cursor[0]);
	return rc;
}

/* --- a look ------------------------------------------------------------------------ */

/* Do the counters equal the rows from `from` on? */
static bool
agrees(const struct history *h, size_t from, const struct look *counted)
{
	struct look found = { 0 };

	for (size_t i = from; i < h->n; i++)
		if (h->events[i].kind == EVENT_ROW) {
			found.counts[h->events[i].state]++;
			found.counts[STATE_TOTAL]++;
		}
	return memcmp(&found, counted, sizeof found) == 0;
}

/* Reads rows and dead letters, and the counters before and after. */
static int
try_look(struct caller *c, struct look *before, struct look *after, struct slu_err *err)
{
	int rc = caller_count(c, before, err);

	if (!rc)
		rc = caller_list(c, "/peek", "&state=all", EVENT_ROW, err);
	if (!rc)
		rc = caller_list(c, "/dlq", "", EVENT_DEAD, err);
	return rc ? rc : caller_count(c, after, err);
}

int
caller_look(struct caller *c, struct slu_err *err)
{
	struct history *h = c->history;
	const size_t begin = h->n;
	struct look before, after;
	int doubts = 0;

	for (int i = 0; i < LOOK_TRIES; i++) {
		const slu_time start = time_now();
		const int rc = try_look(c, &before, &after, err);
		const bool still = !rc && memcmp(&before, &after, sizeof before) == 0;

		if (rc)
			return rc;
		if (still && (agrees(h, begin, &after) || ++doubts == LOOK_DOUBTS)) {
			history_look(h, &after, start, time_now());
			return 0;
		}
		history_cut(h, begin);
		sleep_ms(LOOK_PAUSE_MS);
	}
	return slu_fail(err, SLU_EDOWN, "the queue keeps changing");
}

/* --- callbacks ----------------------------------------------------------------------- */

static bool
has_callback(const struct history *h, size_t from, uint64_t name)
{
	for (size_t i = from; i < h->n; i++)
		if (h->events[i].kind == EVENT_CALLBACK && h->events[i].name == name)
			return true;
	return false;
}

/* Has each batch that was closed a callback among the events from `from` on? */
static bool
all_called_back(const struct history *h, size_t from)
{
	for (size_t i = 0; i < from; i++)
		if (h->events[i].kind == EVENT_BATCH && h->events[i].outcome == OUTCOME_OK &&
		    !has_callback(h, from, h->events[i].name))
			return false;
	return true;
}

int
caller_callbacks(struct caller *c, struct slu_err *err)
{
	const slu_time end = time_now() + CALLBACK_TIME;
	const char *const queue = c->queue;
	struct history *h = c->history;
	const size_t begin = h->n;
	char name[CALLS_FIELDS];
	int rc = 0;

	(void)snprintf(name, sizeof name, "%s" CALLS_CALLBACKS, queue);
	c->queue = name;
	do {
		history_cut(h, begin);
		rc = caller_list(c, "/peek", "&state=all", EVENT_CALLBACK, err);
		if (rc || all_called_back(h, begin))
			break;
		sleep_ms(LOOK_PAUSE_MS);
	} while (time_now() < end);
	c->queue = queue;
	return rc;
}

/* --- dead letters ------------------------------------------------------------------ */

static const struct json_field redriven_fields[] = {
	{ .name = { "redriven", 8 }, .read = json_read_u64, .size = sizeof(uint64_t), .required = true },
};

int
caller_redrive(struct caller *c, uint64_t *n, struct slu_err *err)
{
	struct json_out w;
	int rc;

	caller_path(c, "/dlq/redrive");
	caller_body(c, &w);
	json_out_object(&w, NULL);
	caller_place(c, &w);
	json_out_u64(&w, "limit", PAGE);
	json_out_finish(&w);
	rc = caller_want(c, "POST", err);
	return rc ? rc : caller_object(c, redriven_fields, N_FIELDS(redriven_fields), n, err);
}
