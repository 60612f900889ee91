#include "api/admin_filter.h"

#include "api/flat_view.h"

int
admin_filter_check(const struct admin_filter *f, struct slu_err *err)
{
	if (f->reason.n == 0)
		return 0;
	for (unsigned i = DEAD_MAX_ATTEMPTS; i <= DEAD_REJECTED; i++)
		if (slice_eq(f->reason, slice_of(flat_view_reasons[i])))
			return 0;
	return slu_fail(err, SLU_EINVAL,
			"reason: expected max_attempts, expired or rejected; got %.*s",
			(int)(f->reason.n < 64 ? f->reason.n : 64), f->reason.p);
}

bool
admin_filter_is_empty(const struct admin_filter *f)
{
	return f->key.n + f->correlation_id.n + f->text.n + f->error.n + f->reason.n == 0 &&
	       f->older_than == 0 && f->newer_than == 0;
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

bool
admin_filter_matches(const struct admin_filter *f, slu_time now, const struct op_row *row,
		     const struct message *m, struct slice error)
{
	const slu_time since = row->state == MSG_DEAD ? row->due : m->accepted;

	return equals_if_asked(f->key, m->key) &&
	       equals_if_asked(f->correlation_id, m->correlation) &&
	       equals_if_asked(f->reason, slice_of(flat_view_reasons[row->reason])) &&
	       is_of_age(f, now - since) && contains(error, f->error) &&
	       contains(m->payload, f->text);
}
