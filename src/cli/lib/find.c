#include "cli/lib/find.h"

#include "base/json/json_out.h"
#include "base/parse.h"

#include <stddef.h>

/* The names in the server's API. */
static const struct {
	const char *name;
	size_t offset;
} texts[] = {
	{ "state", offsetof(struct find, state) }, /* no condition: find_is_any */
	{ "id", offsetof(struct find, id) },
	{ "key", offsetof(struct find, key) },
	{ "share", offsetof(struct find, share) },
	{ "kind", offsetof(struct find, kind) },
	{ "batch", offsetof(struct find, batch) },
	{ "correlation_id", offsetof(struct find, correlation) },
	{ "attribute", offsetof(struct find, attribute) },
	{ "body", offsetof(struct find, body) },
	{ "text", offsetof(struct find, text) },
	{ "error", offsetof(struct find, error) },
	{ "reason", offsetof(struct find, reason) },
	{ "group", offsetof(struct find, group) },
	{ "owner", offsetof(struct find, owner) },
	{ "priority_min", offsetof(struct find, priority_min) },
	{ "priority_max", offsetof(struct find, priority_max) },
	{ "attempts_over", offsetof(struct find, attempts_over) },
	{ "attempts_under", offsetof(struct find, attempts_under) },
};

static const char *
text_of(const struct find *f, size_t i)
{
	const char *text;

	memcpy(&text, (const char *)f + texts[i].offset, sizeof text);
	return text;
}

bool
find_is_any(const struct find *f)
{
	for (size_t i = 1; i < COUNT(texts); i++)
		if (text_of(f, i))
			return true;
	return f->older || f->newer;
}

static void
param_time(struct cli_query *q, const char *name, slu_time t)
{
	char text[DURATION_TEXT];

	if (t > 0)
		http_param(&q->path, name, format_duration(t, text, sizeof text));
}

static int
page(struct finder *s, const char *path, struct listing *r, struct slu_err *err)
{
	const struct find *const f = &s->find;
	const uint64_t left = f->limit - r->n;
	struct cli_query *const q = &s->s.query;
	struct slice body;
	int rc;

	query_queue(q, path, s->s.space, s->s.n_words ? s->s.words[0] : NULL);
	for (size_t i = 0; i < COUNT(texts); i++)
		http_param(&q->path, texts[i].name, text_of(f, i));
	param_time(q, "older_than", f->older);
	param_time(q, "newer_than", f->newer);
	http_param_u64(&q->path, "limit", left < 1000 ? left : 1000);
	http_param(&q->path, "cursor", r->cursor[0] ? r->cursor : NULL);
	rc = query_get(q, &body, err);
	return rc ? rc : rows_add(r, body, "messages", err);
}

int
search(struct session *s, const char *path, const struct column *columns, unsigned n,
       const char *what, struct slu_err *err)
{
	struct finder *const f = (void *)s;
	struct listing r;
	int rc;

	rows_init(&r, s, columns, n);
	do
		rc = page(f, path, &r, err);
	while (!rc && r.cursor[0] && r.n < f->find.limit);
	if (!rc)
		rc = rows_end(&r, err);
	if (!rc && r.n == 0)
		session_nothing(s, "no %s%s in %s", find_is_any(&f->find) ? "such " : "", what, s->n_words ? s->words[0] : s->space);
	else if (!rc && r.cursor[0])
		session_note(s, "there may be more messages; --limit N shows more");
	rows_release(&r);
	return rc;
}

void
find_write_time(struct json_out *w, const char *name, slu_time t)
{
	char text[DURATION_TEXT];

	if (t > 0)
		json_out_str(w, name, slice_of(format_duration(t, text, sizeof text)));
}

void
find_write(const struct find *f, struct json_out *w)
{
	for (size_t i = 0; i < COUNT(texts); i++)
		if (text_of(f, i))
			json_out_str(w, texts[i].name, slice_of(text_of(f, i)));
	find_write_time(w, "older_than", f->older);
	find_write_time(w, "newer_than", f->newer);
}
