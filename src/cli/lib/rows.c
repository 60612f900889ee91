#include "cli/lib/rows.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/rfc3339.h"

enum {
	SHOWN_BYTES = 60 /* bytes of a payload that are shown */
};

void
rows_init(struct listing *r, struct session *s, const struct column *columns, unsigned n)
{
	const char *heads[TABLE_COLUMNS_MAX];
	uint32_t right = 0, hidden = 0;

	*r = (struct listing){ .session = s, .columns = columns, .n_columns = n };
	for (unsigned i = 0; i < n; i++) {
		heads[i] = columns[i].head;
		right |= (uint32_t)(columns[i].kind == COLUMN_NUMBER ||
				    columns[i].kind == COLUMN_MILLIS)
			 << i;
		hidden |= (uint32_t)(columns[i].kind == COLUMN_MAYBE) << i;
	}
	table_init(&r->table, heads, n, right);
	r->table.hidden = hidden;
}

void
rows_release(struct listing *r)
{
	table_release(&r->table);
}

/* --- cells ---------------------------------------------------------------------- */

/* Shows the two largest units: "3h12m", "in 5s". */
static void
show_time(struct text_table *t, struct slice text)
{
	const slu_time now = clock_wall(&clock_system);
	char shown[DURATION_TEXT];
	slu_time when, d, unit = SLU_SEC;

	if (rfc3339_parse(text, &when, NULL)) {
		table_text(t, text);
		return;
	}
	d = when > now ? when - now : now - when;
	if (d < 10 * SLU_SEC)
		unit = 100 * SLU_MS;
	if (d > 2 * SLU_HOUR)
		unit = SLU_MIN;
	format_duration(d / unit * unit, shown, sizeof shown);
	table_cell(t, when > now ? "in %s" : "%s ago", shown);
}

/* Rounds a duration as show_time does. */
static void
show_millis(struct text_table *t, struct slice text)
{
	char shown[DURATION_TEXT];
	uint64_t ms = 0;

	if (parse_u64(text, 0, INT64_MAX / SLU_MS, &ms, NULL)) {
		table_text(t, text);
		return;
	}
	ms -= ms > 10000 ? ms % 1000 : 0;
	table_cell(t, "%s", format_duration((slu_time)ms * SLU_MS, shown, sizeof shown));
}

static void
show_base64(struct text_table *t, struct slice text)
{
	char bytes[SHOWN_BYTES + 4];
	struct slice part = { text.p, text.n };
	const size_t most = base64_text(SHOWN_BYTES);
	const bool cut = part.n > most;
	size_t n;

	part.n = cut ? most : part.n;
	if (base64_decode(part, bytes, &n, NULL)) {
		table_text(t, text);
		return;
	}
	table_cell(t, "%.*s%s", (int)n, bytes, cut ? "..." : "");
}

static void
show(struct text_table *t, const struct column *c, struct slice text)
{
	if (text.n == 0)
		table_cell(t, "%s", c->kind == COLUMN_NUMBER ? "0" : "-");
	else if (c->kind == COLUMN_TIME)
		show_time(t, text);
	else if (c->kind == COLUMN_MILLIS)
		show_millis(t, text);
	else if (c->kind == COLUMN_BASE64)
		show_base64(t, text);
	else
		table_text(t, text);
}

/* --- rows ----------------------------------------------------------------------- */

static const struct column *
find_column(const struct listing *r, const struct json_str *name)
{
	for (unsigned i = 0; i < r->n_columns; i++)
		if (json_str_is(name, slice_of(r->columns[i].member)))
			return &r->columns[i];
	return NULL;
}

static void
read_row(struct listing *r, struct json *in)
{
	struct slice cells[TABLE_COLUMNS_MAX] = { 0 };
	struct json_str name;

	json_object(in);
	while (json_member(in, &name)) {
		const struct column *c = find_column(r, &name);

		if (!c && json_str_is(&name, SLICE("missing")))
			missing_read(&r->missing, in); /* of a row that is a whole answer */
		if (!c)
			continue;
		cells[c - r->columns] = json_peek(in) == JSON_STRING ? json_text(in)
								     : json_skip(in);
		r->table.hidden &= ~(1u << (c - r->columns));
	}
	for (unsigned i = 0; i < r->n_columns; i++)
		show(&r->table, &r->columns[i], cells[i]);
}

static void
take_row(struct listing *r, struct json *in)
{
	r->n++;
	if (r->session->json) {
		const struct slice raw = json_skip(in);

		printf("%.*s\n", (int)raw.n, raw.p);
	} else {
		read_row(r, in);
	}
}

static void
read_page(struct listing *r, struct json *in, const char *member)
{
	struct json_str name;

	json_object(in);
	while (json_member(in, &name)) {
		if (json_str_is(&name, slice_of(member))) {
			json_array(in);
			while (json_element(in))
				take_row(r, in);
		} else if (json_str_is(&name, SLICE("missing"))) {
			missing_read(&r->missing, in);
		} else if (json_str_is(&name, SLICE("cursor"))) {
			const struct slice c = json_text(in);

			(void)snprintf(r->cursor, sizeof r->cursor, "%.*s", (int)c.n, c.p);
		}
	}
}

int
rows_add(struct listing *r, struct slice document, const char *member, struct slu_err *err)
{
	char *room = mem_alloc(document.n + 1);
	struct slu_err why;
	struct json in;
	int rc;

	if (!room)
		return slu_fail(err, SLU_ENOMEM, "no memory for the answer");
	r->cursor[0] = '\0';
	json_init(&in, document, JSON_DEPTH);
	json_room(&in, room, document.n);
	if (member)
		read_page(r, &in, member);
	else
		take_row(r, &in);
	rc = json_end(&in, &why);
	mem_free(room);
	return rc ? slu_fail(err, SLU_EUNKNOWN, "malformed answer from the server: %s",
			     why.text)
		  : 0;
}

int
rows_pages(struct listing *r, const char *path, const char *space, const char *member,
	   struct slu_err *err)
{
	struct cli_query *const q = &r->session->query;
	struct slice page;
	int rc;

	do {
		query_queue(q, path, space, NULL);
		http_param(&q->path, "limit", "1000");
		http_param(&q->path, "cursor", r->cursor[0] ? r->cursor : NULL);
		rc = query_get(q, &page, err);
		if (!rc)
			rc = rows_add(r, page, member, err);
	} while (!rc && r->cursor[0]);
	return rc ? rc : rows_end(r, err);
}

int
rows_run(struct session *s, struct slu_err *err)
{
	const struct rows_list *const list = s->command->rows;

	query_queue(&s->query, list->path, s->space, s->n_words ? s->words[0] : NULL);
	return rows_get(s, list, err);
}

static void
report_none(struct session *s, const struct rows_list *list)
{
	if (s->json && list->may_be_empty)
		return;
	if (list->none)
		session_nothing(s, "%s", list->none);
	else
		session_nothing(s, "namespace %s has no %s", s->space, list->member);
}

int
rows_get(struct session *s, const struct rows_list *list, struct slu_err *err)
{
	struct cli_query *const q = &s->query;
	const size_t path = q->path.n;
	struct listing r;
	struct slice page;
	int rc;

	rows_init(&r, s, list->columns, list->n_columns);
	do {
		q->path.n = path;
		http_param(&q->path, "cursor", r.cursor[0] ? r.cursor : NULL);
		rc = query_get(q, &page, err);
		if (!rc)
			rc = rows_add(&r, page, list->member, err);
	} while (!rc && r.cursor[0] && !list->one_page);
	if (!rc)
		rc = rows_end(&r, err);
	if (!rc && r.n == 0)
		report_none(s, list);
	rows_release(&r);
	return rc;
}

int
rows_print(struct session *s, const struct rows_list *list, struct slice answer, struct slu_err *err)
{
	struct listing r;
	int rc;

	rows_init(&r, s, list->columns, list->n_columns);
	rc = rows_add(&r, answer, list->member, err);
	if (!rc)
		rc = rows_end(&r, err);
	rows_release(&r);
	return rc;
}

int
rows_end(struct listing *r, struct slu_err *err)
{
	missing_warn(&r->missing, r->session);
	if (r->session->json || r->n == 0)
		return 0;
	if (table_print(&r->table, stdout, session_colours(stdout)))
		return slu_fail(err, SLU_ENOMEM, "no memory for the table");
	return 0;
}
