#include "api/admin/filter.h"

#include "api/flat/view.h"
#include "base/mem.h"
#include "engine/engine.h"

int
admin_filter_check(const struct admin_filter *f, struct slu_err *err)
{
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
	return f->key.n + f->correlation_id.n + f->text.n + f->error.n + f->reason.n == 0 &&
	       f->older_than == 0 && f->newer_than == 0;
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

static bool
has_text(const struct admin_filter *f, struct engine *e, const struct op_row *row,
	 const struct message *m, uint64_t *bytes)
{
	if (f->text.n > 0 && row->payload.pin)
		return file_contains(e, &row->payload, f->text, bytes);
	return contains(m->payload, f->text);
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
	       is_of_age(f, now - since) && contains(error, f->error) &&
	       has_text(f, e, row, m, bytes);
}
