/*
 * audit_tail.c - GET /v1/admin/audit: the last lines of the audit file (api/audit/audit.h), newest first.
 *
 *      file thread: the last TAIL bytes of the file ──> lines that match, at most `limit`
 *      loop:        {"lines":[...],"looked":812,"whole":false}
 */
#include "api/admin/admin.h"

#include "api/audit/audit.h"
#include "api/handler.h"
#include "api/limits.h"
#include "base/json/json.h"
#include "base/lines.h"

enum {
	TAIL = 4 << 20, /* bytes of the file that a call reads */
	LIMIT = 100
};

struct state {
	uint32_t limit;
	struct slice verb;
	struct slice namespace;
	struct slice queue;
	struct slice who;

	struct buf tail;
	struct slice *found; /* of limit, in tail; newest first */
	uint32_t n;
	uint64_t looked;
	bool whole;
	struct slu_err err;
};

static const struct param params[] = {
	PARAM(count, struct state, limit, .min = 1, .max = API_PAGE_MAX, .otherwise = LIMIT),
	PARAM(word, struct state, verb),
	PARAM(word, struct state, namespace),
	PARAM(word, struct state, queue),
	PARAM(word, struct state, who),
};

/* Does the line have each value that was asked for? A line that is not JSON, as after a full disk, does not. */
static bool
matches(const struct state *s, struct slice line)
{
	const struct {
		struct slice name, value;
	} wanted[] = {
		{ SLICE("verb"), s->verb },
		{ SLICE("namespace"), s->namespace },
		{ SLICE("queue"), s->queue },
		{ SLICE("who"), s->who },
	};
	unsigned left = 0;
	struct json_str name, value;
	struct json r;

	for (unsigned i = 0; i < COUNT(wanted); i++)
		left += wanted[i].value.n > 0;
	json_init(&r, line, JSON_DEPTH);
	json_object(&r);
	while (json_member(&r, &name)) {
		unsigned i = 0;

		while (i < COUNT(wanted) && !json_str_is(&name, wanted[i].name))
			i++;
		if (i == COUNT(wanted) || !wanted[i].value.n)
			json_skip(&r);
		else if (json_string(&r, &value))
			left -= json_str_is(&value, wanted[i].value);
	}
	return json_end(&r, NULL) == 0 && left == 0;
}

/* From the last line on. */
static void
search(struct state *s)
{
	size_t end = s->tail.n;

	while (end > 0 && s->n < s->limit) {
		const char *const before = memrchr(s->tail.p, '\n', end - 1);
		const size_t at = before ? (size_t)(before - s->tail.p) + 1 : 0;
		const struct slice line = { s->tail.p + at, end - 1 - at };

		s->looked++;
		if (matches(s, line))
			s->found[s->n++] = line;
		end = at;
	}
	s->whole = s->whole && end == 0;
}

/* On a file thread. */
static int
read_tail(struct apicall *a)
{
	struct state *const s = a->state;
	const int rc = lines_tail(a->api->audit, TAIL, &s->tail, &s->whole, &s->err);

	if (!rc)
		search(s);
	return rc;
}

static void
answer(struct apicall *a, int rc)
{
	struct state *const s = a->state;
	struct json_out w;

	if (rc) {
		buf_release(&s->tail);
		apicall_refuse(a, rc, s->err.text);
		return;
	}
	apicall_object(a, &w);
	json_out_array(&w, "lines");
	for (uint32_t i = 0; i < s->n; i++)
		json_out_raw(&w, NULL, s->found[i]);
	json_out_close(&w);
	json_out_u64(&w, "looked", s->looked);
	json_out_bool(&w, "whole", s->whole);
	buf_release(&s->tail);
	apicall_reply_object(a, &w, 200);
}

static void
audit(struct apicall *a)
{
	struct state *const s = a->state;

	if (!a->api->audit) {
		apicall_refuse(a, SLU_ENOTFOUND, "this server writes no audit file; set audit.file");
		return;
	}
	s->found = arena_array(&a->memory, s->limit, sizeof *s->found);
	if (!s->found) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return;
	}
	buf_init(&s->tail, TAIL);
	apicall_job(a, read_tail, answer);
}

const struct handler admin_audit = { audit, sizeof(struct state), QUERY_ROWS(params) };
