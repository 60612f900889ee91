#include "client/terms.h"

#include "base/parse.h"

#include <sluice/err.h>

static const char *const kinds[] = {
	[SLU_BACKOFF_EXPONENTIAL] = "exponential",
	[SLU_BACKOFF_LINEAR] = "linear",
	[SLU_BACKOFF_FIXED] = "fixed",
	[SLU_BACKOFF_NONE] = "none",
};

void
terms_out_time(struct json_out *w, const char *name, slu_time t)
{
	char text[DURATION_TEXT];

	if (t > 0)
		json_out_str(w, name, slice_of(format_duration(t, text, sizeof text)));
}

void
terms_out_retry(struct json_out *w, const struct slu_backoff *b)
{
	if (!b)
		return;
	json_out_object(w, "retry");
	json_out_str(w, "kind", slice_of(kinds[b->kind]));
	json_out_str(w, "jitter", b->jitter == SLU_JITTER_FULL ? SLICE("full") : SLICE("none"));
	terms_out_time(w, "base", b->base);
	terms_out_time(w, "max", b->max);
	json_out_close(w);
}

void
terms_out_unique(struct json_out *w, const char *key, const char *until, slu_time time, bool replace)
{
	if (!key)
		return;
	json_out_object(w, "unique");
	json_out_str(w, "key", slice_of(key));
	if (time)
		terms_out_time(w, "until", time);
	else if (until)
		json_out_str(w, "until", slice_of(until));
	if (replace)
		json_out_str(w, "mode", SLICE("replace"));
	json_out_close(w);
}

int
terms_check_retry(const struct slu_backoff *b, struct slu_err *err)
{
	if (!b || (unsigned)b->kind <= SLU_BACKOFF_NONE)
		return 0;
	return slu_fail(err, SLU_EINVAL, "invalid retry; expected exponential, linear, fixed or none");
}
