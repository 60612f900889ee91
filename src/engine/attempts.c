#include "engine/attempts.h"

#include "base/le.h"
#include "base/utf8.h"

#include <string.h>

#define MARK "\0attempt"

enum {
	MARK_SIZE = 8,
	COUNT_AT = MARK_SIZE,
	US = 1000 /* nanoseconds */
};

#define TIME_MAX (INT64_MAX / US)

const char *const attempt_outcomes[ATTEMPT_OUTCOMES] = {
	[ATTEMPT_NONE] = "none",
	[ATTEMPT_FAILED] = "failed",
	[ATTEMPT_EXPIRED] = "expired",
	[ATTEMPT_REJECTED] = "rejected",
	[ATTEMPT_DEFERRED] = "deferred",
};

bool
attempts_marked(struct slice kept)
{
	return kept.n > ATTEMPTS_HEAD && memcmp(kept.p, MARK, MARK_SIZE) == 0;
}

/* Returns false if the bytes are no attempt. */
static bool
read_one(struct slice *rest, struct attempt_row *out)
{
	const char *const p = rest->p;
	uint64_t began, took;
	size_t holder, error;

	if (rest->n < ATTEMPTS_FIXED)
		return false;
	began = le64_get(p);
	took = le64_get(p + 8);
	holder = (unsigned char)p[27];
	error = le16_get(p + 28);
	*out = (struct attempt_row){
		.token = le64_get(p + 16),
		.number = le16_get(p + 24),
		.outcome = (uint8_t)p[26],
		.holder = { p + ATTEMPTS_FIXED, holder },
		.error = { p + ATTEMPTS_FIXED + holder, error },
	};
	if (began > TIME_MAX || took > TIME_MAX || holder > ATTEMPTS_HOLDER || error > ATTEMPTS_TEXT ||
	    out->outcome == ATTEMPT_NONE || out->outcome >= ATTEMPT_OUTCOMES || rest->n < ATTEMPTS_FIXED + holder + error)
		return false;
	out->began = (slu_time)began * US;
	out->took = (slu_time)took * US;
	slice_skip(rest, ATTEMPTS_FIXED + holder + error);
	return true;
}

bool
attempts_read(struct slice kept, struct attempts *out)
{
	struct slice rest = kept;
	unsigned n;

	out->n = 0;
	out->error = kept;
	if (!attempts_marked(kept))
		return true;
	n = (unsigned char)kept.p[COUNT_AT];
	slice_skip(&rest, ATTEMPTS_HEAD);
	if (n == 0 || n > ATTEMPTS_KEPT)
		return false;
	for (unsigned i = 0; i < n; i++)
		if (!read_one(&rest, &out->list[i]))
			return false;
	if (rest.n > ATTEMPTS_ERROR)
		return false;
	out->n = n;
	out->error = rest;
	return true;
}

struct slice
attempts_error(struct slice kept)
{
	struct attempts a;

	if (!attempts_marked(kept))
		return kept;
	(void)attempts_read(kept, &a);
	return a.error;
}

void
attempts_add(struct attempts *a, const struct attempt_row *one)
{
	struct attempt_row *const last = &a->list[a->n == ATTEMPTS_KEPT ? ATTEMPTS_KEPT - 1 : a->n];

	if (a->n == ATTEMPTS_KEPT)
		memmove(a->list, a->list + 1, (ATTEMPTS_KEPT - 1) * sizeof *a->list);
	else
		a->n++;
	*last = *one;
	last->error = utf8_cut(one->error, ATTEMPTS_TEXT);
	if (last->holder.n > ATTEMPTS_HOLDER)
		last->holder.n = ATTEMPTS_HOLDER;
}

static char *
put_text(char *p, struct slice s)
{
	if (s.n)
		memcpy(p, s.p, s.n);
	return p + s.n;
}

static char *
put_one(char *p, const struct attempt_row *one)
{
	le64_put(p, (uint64_t)(one->began / US));
	le64_put(p + 8, (uint64_t)(one->took / US));
	le64_put(p + 16, one->token);
	le16_put(p + 24, one->number);
	p[26] = (char)one->outcome;
	p[27] = (char)one->holder.n;
	le16_put(p + 28, (uint16_t)one->error.n);
	return put_text(put_text(p + ATTEMPTS_FIXED, one->holder), one->error);
}

size_t
attempts_write(const struct attempts *a, char out[static ATTEMPTS_MAX])
{
	const struct slice error = { a->error.p, a->error.n < ATTEMPTS_ERROR ? a->error.n : ATTEMPTS_ERROR };
	char *p = out + ATTEMPTS_HEAD;

	memcpy(out, MARK, MARK_SIZE);
	out[COUNT_AT] = (char)a->n;
	for (unsigned i = 0; i < a->n; i++)
		p = put_one(p, &a->list[i]);
	return (size_t)(put_text(p, error) - out);
}
