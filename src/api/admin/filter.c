#include "api/admin/filter.h"

#include "api/admin/body.h"
#include "api/flat/view.h"
#include "base/id.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/shared_text.h"
#include "core/fingerprint.h"
#include "core/queue/holders.h"
#include "engine/engine.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* ---- The rows ---- */

#define ROW(type, at, how, name, stored, member)                         \
	{                                                                \
		ADMIN_FILTER_##how, name, stored, offsetof(type, member) \
	}
const struct admin_filter_row admin_filter_rows[] = { ADMIN_FILTER_ROWS(ROW, struct admin_filter, ) };
const size_t admin_filter_n_rows = COUNT(admin_filter_rows);

struct slice
admin_filter_word(const struct admin_filter *f, const struct admin_filter_row *row)
{
	return *(const struct slice *)(const void *)((const char *)f + row->offset);
}

slu_time
admin_filter_time(const struct admin_filter *f, const struct admin_filter_row *row)
{
	return *(const slu_time *)(const void *)((const char *)f + row->offset);
}

static bool
is_given(const struct admin_filter *f, const struct admin_filter_row *row)
{
	if (row->how == ADMIN_FILTER_id)
		return f->id.id;
	return row->how == ADMIN_FILTER_span ? admin_filter_time(f, row) != 0 : admin_filter_word(f, row).n > 0;
}

static bool
asks_for_id_at_most(const struct admin_filter *f)
{
	for (size_t i = 0; i < COUNT(admin_filter_rows); i++)
		if (admin_filter_rows[i].how != ADMIN_FILTER_id && is_given(f, &admin_filter_rows[i]))
			return false;
	return true;
}

void
admin_filter_read_number(struct json *r, const struct json_field *f, void *place)
{
	assert(f->size == sizeof(struct slice));
	*(struct slice *)place = json_peek(r) == JSON_NUMBER ? json_skip(r) : json_text(r);
}

/* ---- Check ---- */

static bool
is_group(struct slice text)
{
	for (size_t i = 0; i < text.n; i++)
		if (!strchr("0123456789abcdef", text.p[i]))
			return false;
	return text.n == ADMIN_GROUP_TEXT - 1;
}

static int
refuse(const char *name, struct slice value, const char *form, struct slu_err *err)
{
	char shown[SHOWN_TEXT];

	return slu_fail(err, SLU_EINVAL, "invalid %s: %s; expected %s", name, parse_shown(value, shown), form);
}

static int
check_words(const struct admin_filter *f, struct slu_err *err)
{
	struct body_condition body;
	uint64_t batch;

	if (f->batch.n && id_parse(f->batch, &batch, NULL))
		return refuse("batch", f->batch, "the id or uid of a batch", err);
	if (f->attribute.n && (f->attribute.p[0] == '=' || !memchr(f->attribute.p, '=', f->attribute.n)))
		return refuse("attribute", f->attribute, "NAME=VALUE", err);
	if (f->group.n && !is_group(f->group))
		return refuse("group", f->group, "16 hex digits, as of /v1/admin/dlq/groups", err);
	for (unsigned i = DEAD_MAX_ATTEMPTS; f->reason.n && !slice_eq(f->reason, slice_of(flat_view_reasons[i])); i++)
		if (i == DEAD_REJECTED)
			return refuse("reason", f->reason, "max_attempts, expired or rejected", err);
	return f->body.n ? body_condition_read(&body, f->body, err) : 0;
}

/* A word that admin_filter_check has checked. */
static int32_t
priority_of(struct slice word)
{
	int32_t v = 0;

	(void)value_priority(word, &v, NULL);
	return v;
}

static uint64_t
attempts_of(struct slice word)
{
	uint64_t v = 0;

	(void)parse_u64(word, 0, UINT32_MAX, &v, NULL);
	return v;
}

static int
check_numbers(const struct admin_filter *f, struct slu_err *err)
{
	static const char priority[] = "high, normal, low or a whole number of 32 bits", attempts[] = "a whole number from 0 to 4294967295";
	uint64_t n;
	int32_t v;

	if (f->priority_min.n && value_priority(f->priority_min, &v, NULL))
		return refuse("priority_min", f->priority_min, priority, err);
	if (f->priority_max.n && value_priority(f->priority_max, &v, NULL))
		return refuse("priority_max", f->priority_max, priority, err);
	if (f->attempts_over.n && parse_u64(f->attempts_over, 0, UINT32_MAX, &n, NULL))
		return refuse("attempts_over", f->attempts_over, attempts, err);
	if (f->attempts_under.n && parse_u64(f->attempts_under, 0, UINT32_MAX, &n, NULL))
		return refuse("attempts_under", f->attempts_under, attempts, err);
	return 0;
}

int
admin_filter_check(const struct admin_filter *f, struct slu_err *err)
{
	const int rc = check_words(f, err);

	return rc ? rc : check_numbers(f, err);
}

bool
admin_filter_needs_error(const struct admin_filter *f)
{
	return f->error.n || f->group.n;
}

bool
admin_filter_is_empty(const struct admin_filter *f)
{
	return !f->id.id && asks_for_id_at_most(f);
}

bool
admin_filter_is_rounded(const struct admin_filter *f, struct slu_err *err)
{
	return asks_for_id_at_most(f) &&
	       value_id_failed(f->id, SLU_ENOTFOUND, err) == SLU_EROUNDED;
}

/* ---- Match ---- */

static bool
contains(struct slice text, struct slice part)
{
	return part.n == 0 || memmem(text.p, text.n, part.p, part.n) != NULL;
}

static bool
equals_if_asked(struct slice asked, struct slice has)
{
	return asked.n == 0 || slice_eq(asked, has);
}

static bool
is_of_age(const struct admin_filter *f, slu_time age)
{
	return (!f->older_than || age > f->older_than) &&
	       (!f->newer_than || age < f->newer_than);
}

/* In a payload that is not in its record, piece by piece: the end of each is kept, for
 * what lies across two. */
static bool
file_contains(struct engine *e, const struct op_ref *ref, struct slice part, uint64_t *bytes)
{
	char *const room = mem_alloc(part.n + ENGINE_PIECE);
	size_t kept = 0, rest;
	bool found = false;

	for (uint64_t at = 0; room && at < ref->size && !found;) {
		const uint64_t left = ref->size - at;
		const size_t n = left < ENGINE_PIECE ? (size_t)left : ENGINE_PIECE;

		if (engine_read(e, ref, at, n, room + kept, true, NULL))
			break;
		at += n;
		*bytes += n;
		kept += n;
		found = contains((struct slice){ room, kept }, part);
		rest = kept < part.n ? kept : part.n - 1;
		memmove(room, room + kept - rest, rest);
		kept = rest;
	}
	mem_free(room);
	return found;
}

/* Does the JSON object have the attribute? */
static bool
has_attribute(struct slice attributes, struct slice asked)
{
	const char *const equals = asked.n ? memchr(asked.p, '=', asked.n) : NULL;
	struct slice name, value;
	struct json_str member;
	bool found = false;
	struct json r;

	if (!equals)
		return true;
	name = (struct slice){ asked.p, (size_t)(equals - asked.p) };
	value = (struct slice){ equals + 1, asked.n - name.n - 1 };
	json_init(&r, attributes, JSON_DEPTH);
	json_object(&r);
	while (attributes.n && json_member(&r, &member)) {
		const bool is_name = json_str_is(&member, name);
		const bool is_text = json_peek(&r) == JSON_STRING;
		struct json_str text;
		const char *const from = r.p;

		if (is_text && !json_string(&r, &text))
			break;
		if (!is_text)
			json_skip(&r);
		if (is_name)
			found = is_text ? json_str_is(&text, value) : slice_eq((struct slice){ from, (size_t)(r.p - from) }, value);
	}
	return found;
}

static bool
has_text(const struct admin_filter *f, struct engine *e, const struct op_row *row,
	 const struct message *m, uint64_t *bytes)
{
	if (f->text.n > 0 && row->payload.pin)
		return !f->masked && file_contains(e, &row->payload, f->text, bytes);
	return contains(m->payload, f->text);
}

static bool
is_of_group(const struct admin_filter *f, const struct op_row *row, struct slice error)
{
	char name[ADMIN_GROUP_TEXT];
	struct fingerprint print;

	if (!f->group.n)
		return true;
	if (row->state != MSG_DEAD)
		return false;
	fingerprint_of(row->reason, error, &print);
	(void)snprintf(name, sizeof name, "%016" PRIx64, print.hash); /* fits */
	return slice_eq(f->group, slice_of(name));
}

static bool
is_of_numbers(const struct admin_filter *f, const struct op_row *row)
{
	return (!f->priority_min.n || row->prio >= priority_of(f->priority_min)) &&
	       (!f->priority_max.n || row->prio <= priority_of(f->priority_max)) &&
	       (!f->attempts_over.n || row->attempts > attempts_of(f->attempts_over)) &&
	       (!f->attempts_under.n || row->attempts < attempts_of(f->attempts_under));
}

static bool
has_body(const struct admin_filter *f, const struct op_row *row, const struct message *m)
{
	struct body_condition c;

	if (!f->body.n)
		return true;
	return !row->payload.pin && body_condition_read(&c, f->body, NULL) == 0 && body_condition_holds(&c, m->payload);
}

static bool
is_held_by(const struct op_row *row, struct slice owner)
{
	return !owner.n || (row->state == MSG_LEASED && row->holder && slice_eq(owner, holder_name(shared_text_slice(row->holder))));
}

static bool
is_member(struct slice asked, const struct message *m)
{
	uint64_t batch;

	return !asked.n || (m->terms.batch && id_parse(asked, &batch, NULL) == 0 && batch == m->terms.batch);
}

/* What the record and its state say without its payload. */
static bool
is_of_words(const struct admin_filter *f, const struct op_row *row, const struct message *m)
{
	return (!f->id.id || f->id.id == row->id) && equals_if_asked(f->key, m->key) &&
	       equals_if_asked(f->share, share_of_line(m->share)) && equals_if_asked(f->kind, kind_of_line(m->share)) && is_member(f->batch, m) &&
	       equals_if_asked(f->correlation_id, m->correlation) && is_held_by(row, f->owner) &&
	       equals_if_asked(f->reason, slice_of(flat_view_reasons[row->reason]));
}

bool
admin_filter_matches(const struct admin_filter *f, slu_time now, struct engine *e,
		     const struct op_row *row, const struct message *m, struct slice error,
		     uint64_t *bytes)
{
	const slu_time since = row->state == MSG_DEAD ? row->due : m->accepted;

	return is_of_words(f, row, m) && is_of_numbers(f, row) && is_of_age(f, now - since) && contains(error, f->error) &&
	       is_of_group(f, row, error) && has_attribute(m->attributes, f->attribute) && has_body(f, row, m) &&
	       has_text(f, e, row, m, bytes);
}
