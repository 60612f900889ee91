#include "api/admin/filter.h"

#include "api/flat/view.h"
#include "base/mem.h"
#include "core/fingerprint.h"
#include "engine/engine.h"

#include <inttypes.h>
#include <stdio.h>

static bool
is_group(struct slice text)
{
	for (size_t i = 0; i < text.n; i++)
		if (!strchr("0123456789abcdef", text.p[i]))
			return false;
	return text.n == ADMIN_GROUP_TEXT - 1;
}

int
admin_filter_check(const struct admin_filter *f, struct slu_err *err)
{
	if (f->attribute.n && (f->attribute.p[0] == '=' || !memchr(f->attribute.p, '=', f->attribute.n)))
		return slu_fail(err, SLU_EINVAL, "invalid attribute: %.*s; expected NAME=VALUE",
				(int)(f->attribute.n < 64 ? f->attribute.n : 64), f->attribute.p);
	if (f->group.n && !is_group(f->group))
		return slu_fail(err, SLU_EINVAL, "invalid group: %.*s; expected 16 hex digits, as of /v1/admin/dlq/groups",
				(int)(f->group.n < 64 ? f->group.n : 64), f->group.p);
	if (f->reason.n == 0)
		return 0;
	for (unsigned i = DEAD_MAX_ATTEMPTS; i <= DEAD_REJECTED; i++)
		if (slice_eq(f->reason, slice_of(flat_view_reasons[i])))
			return 0;
	return slu_fail(err, SLU_EINVAL,
			"reason: invalid value %.*s; expected max_attempts, expired or rejected",
			(int)(f->reason.n < 64 ? f->reason.n : 64), f->reason.p);
}

static bool
asks_for_id_at_most(const struct admin_filter *f)
{
	return f->key.n + f->correlation_id.n + f->attribute.n + f->text.n + f->error.n + f->reason.n + f->group.n == 0 &&
	       f->older_than == 0 && f->newer_than == 0;
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
		return file_contains(e, &row->payload, f->text, bytes);
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

bool
admin_filter_matches(const struct admin_filter *f, slu_time now, struct engine *e,
		     const struct op_row *row, const struct message *m, struct slice error,
		     uint64_t *bytes)
{
	const slu_time since = row->state == MSG_DEAD ? row->due : m->accepted;

	return (!f->id.id || f->id.id == row->id) && equals_if_asked(f->key, m->key) &&
	       equals_if_asked(f->correlation_id, m->correlation) &&
	       equals_if_asked(f->reason, slice_of(flat_view_reasons[row->reason])) &&
	       is_of_age(f, now - since) && contains(error, f->error) && is_of_group(f, row, error) && has_attribute(m->attributes, f->attribute) &&
	       has_text(f, e, row, m, bytes);
}
