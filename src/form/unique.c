#include "form/unique.h"

#include "form/limits.h"
#include "form/values.h"
#include "core/queue/terms.h"

#include <assert.h>

/* "started", "done", or a time. */
static void
read_until(struct json *r, const struct json_field *f, void *place)
{
	static const struct json_field text = { .size = sizeof(struct slice) };
	struct form_unique *const u = place;
	struct slice word = { 0 };
	struct slu_err err;

	assert(f->size == sizeof *u);
	json_read_text(r, &text, &word);
	if (slice_eq(word, SLICE("started")))
		u->until = UNIQUE_STARTED;
	else if (slice_eq(word, SLICE("done")))
		u->until = UNIQUE_DONE;
	else if (value_span(word, SLU_SEC, API_DELAY_MAX, &u->time, &err))
		json_fail(r, SLU_EINVAL, NULL, "expected started, done or a time of a second or more, as 10m");
	else
		u->until = UNIQUE_TIME;
}

static void
read_mode(struct json *r, const struct json_field *f, void *place)
{
	struct json_str s;

	assert(f->size == sizeof(bool));
	if (!json_string(r, &s))
		return;
	*(bool *)place = json_str_is(&s, SLICE("replace"));
	if (!*(bool *)place && !json_str_is(&s, SLICE("keep")))
		json_fail(r, SLU_EINVAL, NULL, "expected keep or replace");
}

static const struct json_field unique_fields[] = {
	JSON_ROW("key", json_read_key, struct form_unique, key, .required = true),
	{ .name = { "until", 5 }, .read = read_until, .size = sizeof(struct form_unique), .required = true },
	JSON_ROW("mode", read_mode, struct form_unique, replace),
};

void
form_unique_read(struct json *r, const struct json_field *f, void *place)
{
	assert(f->size == sizeof(struct form_unique));
	(void)json_fields(r, unique_fields, COUNT(unique_fields), JSON_STRICT, place);
}
