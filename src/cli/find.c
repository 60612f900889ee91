#include "cli/find.h"

#include "base/json_out.h"
#include "base/parse.h"
#include "cli/progress.h"

#include <stddef.h>

/* What the server calls them. */
static const struct {
	const char *name;
	size_t offset;
} texts[] = {
	{ "state", offsetof(struct find, state) },
	{ "key", offsetof(struct find, key) },
	{ "correlation_id", offsetof(struct find, correlation) },
	{ "text", offsetof(struct find, text) },
	{ "error", offsetof(struct find, error) },
	{ "reason", offsetof(struct find, reason) },
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
	return f->key || f->correlation || f->text || f->error || f->reason || f->older ||
	       f->newer;
}

static void
param_time(struct query *q, const char *name, slu_time t)
{
	char text[DURATION_TEXT];

	if (t > 0)
		query_param(q, name, format_duration(t, text, sizeof text));
}

static int
page(const struct find *f, struct session *s, const char *path, const char *queue,
     struct rows *r, struct slu_err *err)
{
	const uint64_t left = f->limit - r->n;
	struct query *q = &s->query;
	struct slice body;
	int rc;

	query_path(q, path);
	query_param(q, "namespace", s->space);
	query_param(q, "topic", queue);
	for (size_t i = 0; i < COUNT(texts); i++)
		query_param(q, texts[i].name, text_of(f, i));
	param_time(q, "older_than", f->older);
	param_time(q, "newer_than", f->newer);
	query_param_u64(q, "limit", left < 1000 ? left : 1000);
	query_param(q, "cursor", r->cursor[0] ? r->cursor : NULL);
	rc = query_get(q, &body, err);
	return rc ? rc : rows_add(r, body, "messages", err);
}

int
find_show(const struct find *f, struct session *s, const char *path, const char *queue,
	  struct rows *r, struct slu_err *err)
{
	int rc;

	do
		rc = page(f, s, path, queue, r, err);
	while (!rc && r->cursor[0] && r->n < f->limit);
	if (!rc)
		rc = rows_end(r, err);
	if (!rc && r->cursor[0] && r->n > 0)
		session_note(s, "there may be more; --limit shows them");
	return rc;
}

static void
write_time(struct json_out *w, const char *name, slu_time t)
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
	write_time(w, "older_than", f->older);
	write_time(w, "newer_than", f->newer);
}
