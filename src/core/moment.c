#include "core/moment.h"

#include "base/rfc3339.h"

enum {
	DAY_TEXT = 10, /* 2025-06-01 */
	TEXT_MAX = 48
};

#define DAY ((slu_time)86400 * SLU_SEC)

/* Reads text with more behind it. */
static bool
parse_with(struct slice text, struct slice more, slu_time *out)
{
	char whole[TEXT_MAX];

	memcpy(whole, text.p, text.n);
	memcpy(whole + text.n, more.p, more.n);
	return rfc3339_parse((struct slice){ whole, text.n + more.n }, out, NULL) == 0;
}

bool
moment_parse(struct slice text, struct moment *out)
{
	static const struct slice midnight = { "T00:00:00Z", 10 };

	text = slice_trim(text, " \t");
	out->is_day = text.n == DAY_TEXT;
	if (text.n < DAY_TEXT || text.n + midnight.n > TEXT_MAX)
		return false;
	if (out->is_day)
		return parse_with(text, midnight, &out->at);
	return rfc3339_parse(text, &out->at, NULL) == 0 || parse_with(text, SLICE("Z"), &out->at);
}

/* The day of a moment, counted from 1970. */
static slu_time
day_of(slu_time at)
{
	return at / DAY - (at % DAY < 0);
}

bool
moment_parse_since(struct slice text, slu_time now, struct moment *out)
{
	const slu_time today = day_of(now) * DAY;

	text = slice_trim(text, " \t");
	if (slice_is_word(text, "now"))
		*out = (struct moment){ .at = now };
	else if (slice_is_word(text, "today"))
		*out = (struct moment){ .at = today, .is_day = true };
	else if (slice_is_word(text, "yesterday"))
		*out = (struct moment){ .at = today - DAY, .is_day = true };
	else
		return moment_parse(text, out);
	return true;
}

bool
moment_eq(struct moment a, struct moment b)
{
	return a.is_day || b.is_day ? day_of(a.at) == day_of(b.at) : a.at == b.at;
}
