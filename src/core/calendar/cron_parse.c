#include "core/calendar/cron.h"

#include "base/parse.h"

enum field_number {
	MINUTE,
	HOUR,
	DAY,
	MONTH,
	WEEKDAY,
	FIELDS
};

/* What a field may have. */
struct field_kind {
	const char *name;
	int min, max;
	const char *names; /* three letters each, from `first_name` on */
	int first_name;
};

static const struct field_kind kinds[FIELDS] = {
	[MINUTE] = { "minute", 0, 59, "", 0 },
	[HOUR] = { "hour", 0, 23, "", 0 },
	[DAY] = { "day", 1, 31, "", 0 },
	[MONTH] = { "month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec", 1 },
	[WEEKDAY] = { "weekday", 0, 7, "sunmontuewedthufrisat", 0 },
};

static const struct {
	const char *name, *expression;
} shorthands[] = {
	{ "hourly", "0 * * * *" },
	{ "daily", "0 0 * * *" },
	{ "midnight", "0 0 * * *" },
	{ "weekly", "0 0 * * 0" },
	{ "monthly", "0 0 1 * *" },
	{ "yearly", "0 0 1 1 *" },
	{ "annually", "0 0 1 1 *" },
};

/* A field that was read. */
struct cron_field {
	uint64_t bits;
	bool star; /* begins with * */
	bool step;
	bool last; /* L */
};

static bool
take_name(struct slice *s, const struct field_kind *kind, int *out)
{
	const size_t n = strlen(kind->names) / 3;

	for (size_t i = 0; s->n >= 3 && i < n; i++) {
		const char *name = kind->names + 3 * i;

		if (ascii_lower(s->p[0]) == name[0] && ascii_lower(s->p[1]) == name[1] &&
		    ascii_lower(s->p[2]) == name[2]) {
			*out = kind->first_name + (int)i;
			slice_skip(s, 3);
			return true;
		}
	}
	return false;
}

/* Takes 1 to 4 digits. */
static bool
take_number(struct slice *s, int *out)
{
	size_t n = 0;

	*out = 0;
	while (n < s->n && n < 4 && s->p[n] >= '0' && s->p[n] <= '9')
		*out = *out * 10 + (s->p[n++] - '0');
	slice_skip(s, n);
	return n > 0;
}

static bool
take_value(struct slice *s, const struct field_kind *kind, int *out)
{
	return (take_name(s, kind, out) || take_number(s, out)) && *out >= kind->min && *out <= kind->max;
}

static bool
take_char(struct slice *s, char c)
{
	if (s->n == 0 || *s->p != c)
		return false;
	slice_skip(s, 1);
	return true;
}

/* One item of the list that a field is: * 5 1-5, each with or without a step. */
static bool
parse_item(struct slice s, const struct field_kind *kind, struct cron_field *f)
{
	int from = kind->min, to = kind->max, step = 1;
	bool single = false;

	if (take_char(&s, '*')) {
		f->star = true;
		to -= kind == &kinds[WEEKDAY]; /* not Sunday twice */
	} else if (!take_value(&s, kind, &from)) {
		return false;
	} else if (take_char(&s, '-')) {
		if (!take_value(&s, kind, &to) || to < from)
			return false;
	} else {
		single = true;
	}
	if (take_char(&s, '/')) {
		f->step = true;
		if (!take_number(&s, &step) || step == 0)
			return false;
	} else if (single) {
		to = from;
	}
	for (int v = from; v <= to; v += step)
		f->bits |= UINT64_C(1) << v;
	return s.n == 0;
}

static bool
parse_field(struct slice s, const struct field_kind *kind, struct cron_field *f)
{
	struct slice item;
	bool more = true;

	*f = (struct cron_field){ 0 };
	while (more) {
		more = slice_cut(&s, ',', &item);
		if (kind == &kinds[DAY] && slice_is_word(item, "l"))
			f->last = true;
		else if (!parse_item(item, kind, f))
			return false;
	}
	return true;
}

static int
bad(struct slice text, const char *what, struct slu_err *err)
{
	char shown[SHOWN_TEXT];

	return slu_fail(err, SLU_EINVAL, "invalid schedule %s: %s; expected 5 fields of cron, @hourly or @every 90s",
			parse_shown(text, shown), what);
}

/* Splits the text at blanks. Returns how many fields it has, at most FIELDS + 1. */
static int
split(struct slice text, struct slice parts[static FIELDS])
{
	struct slice part;
	int n = 0;

	while (text.n > 0) {
		(void)slice_cut(&text, ' ', &part);
		if (part.n == 0)
			continue;
		if (n == FIELDS)
			return FIELDS + 1;
		parts[n++] = part;
	}
	return n;
}

static void
set_fields(struct cron *c, const struct cron_field f[static FIELDS])
{
	c->minutes = f[MINUTE].bits;
	c->hours = (uint32_t)f[HOUR].bits;
	c->days = (uint32_t)f[DAY].bits;
	c->months = (uint16_t)f[MONTH].bits;
	c->weekdays = (uint8_t)((f[WEEKDAY].bits | f[WEEKDAY].bits >> 7) & 0x7f);
	c->last_day = f[DAY].last;
	c->both_days = f[DAY].star || f[WEEKDAY].star;
	c->elapsed = f[MINUTE].star || f[MINUTE].step || f[HOUR].star || f[HOUR].step;
}

static int
parse_fields(struct cron *out, struct slice text, struct slu_err *err)
{
	struct slice parts[FIELDS];
	struct cron_field fields[FIELDS];

	if (split(text, parts) != FIELDS)
		return bad(text, "wrong number of fields", err);
	for (int i = 0; i < FIELDS; i++)
		if (!parse_field(parts[i], &kinds[i], &fields[i]))
			return bad(text, kinds[i].name, err);
	set_fields(out, fields);
	if (cron_next(out, NULL, 0, 0) == SLU_NEVER)
		return bad(text, "no such day", err);
	return 0;
}

static int
parse_interval(struct cron *out, struct slice text, struct slice interval, struct slu_err *err)
{
	if (parse_duration(slice_trim(interval, " "), &out->every, NULL))
		return bad(text, "no interval", err);
	if (out->every < SLU_SEC)
		return bad(text, "interval below 1s", err);
	return 0;
}

/* A name behind @: a shorthand, or `every` and an interval. */
static int
parse_named(struct cron *out, struct slice text, struct slice rest, struct slu_err *err)
{
	struct slice name;

	(void)slice_cut(&rest, ' ', &name);
	if (slice_is_word(name, "every"))
		return parse_interval(out, text, rest, err);
	for (size_t i = 0; rest.n == 0 && i < COUNT(shorthands); i++)
		if (slice_is_word(name, shorthands[i].name))
			return parse_fields(out, slice_of(shorthands[i].expression), err);
	return bad(text, "unknown name", err);
}

int
cron_parse(struct cron *out, struct slice text, struct slu_err *err)
{
	struct slice s = slice_trim(text, " ");

	*out = (struct cron){ 0 };
	if (s.n == 0 || s.n > CRON_LONGEST)
		return bad(text, s.n == 0 ? "empty" : "too long", err);
	if (take_char(&s, '@'))
		return parse_named(out, text, s, err);
	if (!memchr(s.p, ' ', s.n))
		return parse_interval(out, text, s, err);
	return parse_fields(out, s, err);
}
