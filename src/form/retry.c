#include "form/retry.h"

#include "base/parse.h"
#include "core/queue/terms.h"
#include "form/limits.h"
#include "form/values.h"

#include <assert.h>

/* ---- Words and times ---- */

int
form_word_read(struct json *r, const struct form_word *words, size_t n, const char *expected, int otherwise)
{
	struct json_str s;

	if (!json_string(r, &s))
		return otherwise;
	for (size_t i = 0; i < n; i++)
		if (json_str_is(&s, slice_of(words[i].name)))
			return words[i].value;
	json_fail(r, SLU_EINVAL, NULL, "expected %s", expected);
	return otherwise;
}

void
form_span_write(struct json_out *w, const char *name, slu_time span)
{
	char text[DURATION_TEXT];

	json_out_str(w, name, slice_of(format_duration(span, text, sizeof text)));
}

/* ---- Retries ---- */

static const struct form_word kinds[] = {
	{ "exponential", SLU_BACKOFF_EXPONENTIAL },
	{ "linear", SLU_BACKOFF_LINEAR },
	{ "fixed", SLU_BACKOFF_FIXED },
	{ "none", SLU_BACKOFF_NONE },
};

static const struct form_word jitters[] = {
	{ "none", SLU_JITTER_NONE },
	{ "full", SLU_JITTER_FULL },
};

static void
read_kind(struct json *r, const struct json_field *f, void *place)
{
	enum slu_backoff_kind *const kind = place;

	assert(f->size == sizeof *kind);
	*kind = form_word_read(r, kinds, COUNT(kinds), "exponential, linear, fixed or none", *kind);
}

static void
read_jitter(struct json *r, const struct json_field *f, void *place)
{
	enum slu_jitter *const jitter = place;

	assert(f->size == sizeof *jitter);
	*jitter = form_word_read(r, jitters, COUNT(jitters), "none or full", *jitter);
}

static const struct json_field fields[] = {
	JSON_ROW("kind", read_kind, struct slu_backoff, kind),
	JSON_ROW("jitter", read_jitter, struct slu_backoff, jitter),
	JSON_FIELD(span, struct slu_backoff, base, .max = API_DELAY_MAX),
	JSON_FIELD(span, struct slu_backoff, max, .max = API_DELAY_MAX),
};

void
form_retry_read(struct json *r, struct slu_backoff *out)
{
	(void)json_fields(r, fields, COUNT(fields), JSON_STRICT, out); /* the caller looks at r */
}

void
form_retry_read_terms(struct json *r, const struct json_field *f, void *place)
{
	struct slu_backoff b = policy_default.retry;

	assert(f->size == sizeof(struct terms));
	form_retry_read(r, &b);
	terms_set_retry(place, &b);
}

void
form_retry_write(struct json_out *w, const char *name, const struct slu_backoff *b)
{
	json_out_object(w, name);
	json_out_str(w, "kind", slice_of(kinds[b->kind].name));
	json_out_str(w, "jitter", slice_of(jitters[b->jitter].name));
	form_span_write(w, "base", b->base);
	form_span_write(w, "max", b->max);
	json_out_close(w);
}
