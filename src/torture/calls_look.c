/*
 * calls_look.c - the queue at rest: its policy, its counters, all that is in it.
 */
#include "torture/calls_in.h"
#include "torture/times.h"

#include <inttypes.h>

enum {
	LOOK_TRIES = 500,   /* until nothing moves */
	LOOK_DOUBTS = 3,    /* looks that differ from the counters, until that is believed */
	LOOK_PAUSE_MS = 20, /* between them */
	PAGE = 1000
};

/* Ask, and want an answer: 200. */
static int
want(struct caller *c, const char *method, struct slu_err *err)
{
	struct event e = { 0 };

	if (caller_ask(c, method, &e) == OUTCOME_OK)
		return 0;
	return slu_fail(err, SLU_EDOWN, "%s: no good answer to %s %.40s: %.120s", c->http.address.text,
			method, buf_str(&c->path), buf_str(&c->http.answer.body));
}

/* A queue that a server has forgotten has nothing in it: what that means is for the checker. */
static int
want_queue(struct caller *c, bool *known, struct slu_err *err)
{
	const int rc = want(c, "GET", err);

	*known = rc == 0;
	return rc && c->http.answer.status == 404 ? 0 : rc;
}

int
caller_setup(struct caller *c, struct slu_err *err)
{
	struct json_out w;

	caller_query(c, "/policy");
	caller_body(c, &w);
	json_out_object(&w, NULL);
	json_out_u64(&w, "max_attempts", 4);
	json_out_str(&w, "idempotency_window", SLICE("30d")); /* more than any clock step */
	json_out_object(&w, "retry");
	json_out_str(&w, "kind", SLICE("fixed"));
	json_out_str(&w, "base", SLICE("30ms"));
	json_out_str(&w, "jitter", SLICE("full"));
	json_out_close(&w);
	json_out_close(&w);
	json_out_end(&w);
	return want(c, "PUT", err);
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
	struct json r;
	bool known;
	int rc;

	caller_query(c, "/stats");
	*out = (struct look){ 0 };
	rc = want_queue(c, &known, err);
	if (rc || !known)
		return rc;
	if (!caller_read(c, &r))
		return slu_fail(err, SLU_ENOMEM, "no memory");
	json_fields(&r, count_fields, N_FIELDS(count_fields), JSON_LENIENT, out->counts);
	return json_end(&r, err);
}

/* --- rows -------------------------------------------------------------------------- */

struct row {
	uint64_t id;
	struct slice payload, status;
};

static const struct json_field row_fields[] = {
	JSON_FIELD(u64, struct row, id, .required = true),
	JSON_FIELD(base64, struct row, payload), /* left out of pages that would be too large */
	JSON_FIELD(text, struct row, status, .required = true),
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
add_row(struct caller *c, const struct row *row, struct event *e)
{
	e->id = row->id;
	e->state = state_of(row->status);
	e->name = 0;
	if (row->payload.n)
		(void)payload_read(row->payload, &e->name);
	history_add(c->history, e);
}

struct page {
	struct slice messages;
	struct slice cursor; /* "" or a number or a string of one, as it came */
};

static const struct json_field page_fields[] = {
	JSON_FIELD(raw, struct page, messages, .required = true),
	JSON_FIELD(raw, struct page, cursor),
};

static int
read_rows(struct caller *c, struct slice rows, struct event *e, struct slu_err *err)
{
	struct json r;

	json_init(&r, rows, JSON_DEPTH);
	json_room(&r, c->room, c->room_n);
	json_array(&r);
	while (json_element(&r)) {
		struct row row = { 0 };

		json_fields(&r, row_fields, N_FIELDS(row_fields), JSON_LENIENT, &row);
		if (row.id)
			add_row(c, &row, e);
	}
	return json_end(&r, err);
}

/* One page; *next is where the list goes on, "" at its end. */
static int
read_page(struct caller *c, struct event *e, char next[static 32], struct slu_err *err)
{
	struct page page = { 0 };
	struct json r;
	size_t n = 0;
	int rc;

	if (!caller_read(c, &r))
		return slu_fail(err, SLU_ENOMEM, "no memory");
	json_fields(&r, page_fields, N_FIELDS(page_fields), JSON_LENIENT, &page);
	rc = json_end(&r, err);
	if (!rc)
		rc = read_rows(c, page.messages, e, err);
	for (size_t i = 0; !rc && i < page.cursor.n && n < 31; i++)
		if (page.cursor.p[i] >= '0' && page.cursor.p[i] <= '9')
			next[n++] = page.cursor.p[i];
	next[n] = '\0';
	return rc;
}

static int
list(struct caller *c, const char *path, const char *more, enum event_kind kind,
     struct slu_err *err)
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

/* Are the counters what the rows from `from` on say? */
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

/* Rows and dead letters, and the counters before and after them. */
static int
try_look(struct caller *c, struct look *before, struct look *after, struct slu_err *err)
{
	int rc = caller_count(c, before, err);

	if (!rc)
		rc = list(c, "/peek", "&state=all", EVENT_ROW, err);
	if (!rc)
		rc = list(c, "/dlq", "", EVENT_DEAD, err);
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
	return slu_fail(err, SLU_EDOWN, "the queue does not come to rest");
}

/* --- dead letters ------------------------------------------------------------------ */

static const struct json_field redriven_fields[] = {
	{ .name = { "redriven", 8 }, .read = json_read_u64, .size = sizeof(uint64_t), .required = true },
};

int
caller_redrive(struct caller *c, uint64_t *n, struct slu_err *err)
{
	struct json_out w;
	struct json r;
	int rc;

	caller_path(c, "/dlq/redrive");
	caller_body(c, &w);
	json_out_object(&w, NULL);
	caller_place(c, &w);
	json_out_u64(&w, "limit", PAGE);
	json_out_close(&w);
	json_out_end(&w);
	rc = want(c, "POST", err);
	if (rc)
		return rc;
	if (!caller_read(c, &r))
		return slu_fail(err, SLU_ENOMEM, "no memory");
	json_fields(&r, redriven_fields, N_FIELDS(redriven_fields), JSON_LENIENT, n);
	return json_end(&r, err);
}
