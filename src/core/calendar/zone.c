#include "core/calendar/zone.h"

#include "base/mem.h"
#include "base/parse.h"
#include "core/calendar/civil.h"
#include "core/calendar/zone_rule.h"

enum {
	HEAD = 44,      /* bytes of a header */
	TYPE = 6,       /* bytes of a type of local time */
	TYPES_MAX = 256 /* a transition names its type in one byte */
};

/* Transitions beyond this are refused: all sums of moments and offsets stay in range. */
#define MOMENT_MAX (INT64_C(1) << 60)

/* Local times differ from UTC by less than this. */
#define MARGIN (27 * CIVIL_HOUR)

struct transition {
	int64_t at;
	int32_t offset; /* from then on */
};

struct zone {
	int32_t first; /* offset before the first transition */
	bool has_rule;
	struct zone_rule rule; /* ZONE-3 */
	uint32_t n;
	struct transition list[]; /* ascending */
};

/* The counts of a header. */
struct zone_head {
	char version;
	uint32_t isut, isstd, leap, times, types, chars;
};

static uint32_t
be32(const char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof v);
	return be32toh(v);
}

static int64_t
be64(const char *p)
{
	return (int64_t)((uint64_t)be32(p) << 32 | be32(p + 4));
}

/* Takes a header off the beginning. */
static bool
take_head(struct slice *s, struct zone_head *h)
{
	if (s->n < HEAD || memcmp(s->p, "TZif", 4) != 0)
		return false;
	h->version = s->p[4];
	h->isut = be32(s->p + 20);
	h->isstd = be32(s->p + 24);
	h->leap = be32(s->p + 28);
	h->times = be32(s->p + 32);
	h->types = be32(s->p + 36);
	h->chars = be32(s->p + 40);
	slice_skip(s, HEAD);
	return true;
}

/* The bytes of the data behind a header; moments have `width` bytes. */
static uint64_t
data_size(const struct zone_head *h, uint64_t width)
{
	return h->times * (width + 1) + (uint64_t)h->types * TYPE + h->chars + h->leap * (width + 4) + h->isstd +
	       (uint64_t)h->isut;
}

/* Takes the data for 32 bits and the second header off the beginning. */
static bool
take_old_data(struct slice *s, struct zone_head *h)
{
	if (!take_head(s, h) || h->version < '2' || data_size(h, 4) > s->n)
		return false;
	slice_skip(s, data_size(h, 4));
	return take_head(s, h) && data_size(h, 8) <= s->n && h->types > 0 && h->types <= TYPES_MAX && h->leap == 0;
}

static bool
read_offset(const char *types, uint32_t type, int32_t *out)
{
	*out = (int32_t)be32(types + (size_t)type * TYPE);
	return *out >= -ZONE_OFFSET_MAX && *out <= ZONE_OFFSET_MAX;
}

static bool
read_transitions(struct zone *z, const struct zone_head *h, const char *data)
{
	const char *index = data + (size_t)h->times * 8;
	const char *types = index + h->times;

	if (!read_offset(types, 0, &z->first))
		return false;
	for (uint32_t i = 0; i < h->times; i++) {
		struct transition *t = &z->list[i];
		const uint8_t type = (uint8_t)index[i];

		t->at = be64(data + (size_t)i * 8);
		if (t->at < -MOMENT_MAX || t->at > MOMENT_MAX || (i > 0 && t->at <= t[-1].at) || type >= h->types ||
		    !read_offset(types, type, &t->offset))
			return false;
	}
	z->n = h->times;
	return true;
}

/* The footer: a rule between two line feeds, possibly empty. */
static bool
read_footer(struct zone *z, struct slice s)
{
	struct slice rule;

	if (s.n == 0 || *s.p != '\n')
		return false;
	slice_skip(&s, 1);
	if (!slice_cut(&s, '\n', &rule))
		return false;
	z->has_rule = rule.n > 0;
	return !z->has_rule || zone_rule_parse(rule, &z->rule);
}

int
zone_new(struct zone **out, struct slice file, struct slu_err *err)
{
	struct slice s = file;
	struct zone_head h;
	struct zone *z;

	if (file.n > ZONE_FILE || !take_old_data(&s, &h))
		return slu_fail(err, SLU_EINVAL,
				"invalid time zone file; expected TZif of version 2 or later without leap seconds");
	z = mem_zalloc(sizeof *z + h.times * sizeof *z->list);
	if (!z)
		return slu_fail(err, SLU_ENOMEM, NULL);
	if (!read_transitions(z, &h, s.p) ||
	    !read_footer(z, (struct slice){ s.p + data_size(&h, 8), s.n - data_size(&h, 8) })) {
		zone_free(z);
		return slu_fail(err, SLU_EINVAL, "malformed time zone file");
	}
	*out = z;
	return 0;
}

void
zone_free(struct zone *z)
{
	mem_free(z);
}

static bool
is_name_char(char c)
{
	return (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '+' ||
	       c == '-';
}

int
zone_check_name(struct slice name, struct slu_err *err)
{
	bool valid = name.n > 0 && name.n <= ZONE_LONGEST && is_name_char(name.p[name.n - 1]);
	char shown[SHOWN_TEXT];

	for (size_t i = 0; valid && i < name.n; i++)
		valid = is_name_char(name.p[i]) || (name.p[i] == '/' && i > 0 && name.p[i - 1] != '/');
	return valid ? 0 : slu_fail(err, SLU_EINVAL, "invalid time zone %s; expected a name such as UTC or Europe/Berlin", parse_shown(name, shown));
}

/* How many transitions are at or before the moment. */
static uint32_t
count_until(const struct zone *z, int64_t moment)
{
	uint32_t low = 0, high = z->n;

	while (low < high) {
		const uint32_t mid = low + (high - low) / 2;

		if (z->list[mid].at <= moment)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

int32_t
zone_offset(const struct zone *z, int64_t moment)
{
	uint32_t n;

	if (!z)
		return 0;
	n = count_until(z, moment);
	if (n == z->n && z->has_rule)
		return zone_rule_offset(&z->rule, moment);
	return n > 0 ? z->list[n - 1].offset : z->first;
}

int64_t
zone_next(const struct zone *z, int64_t moment)
{
	uint32_t n;

	if (!z)
		return ZONE_NEVER;
	n = count_until(z, moment);
	if (n < z->n)
		return z->list[n].at;
	return z->has_rule ? zone_rule_next(&z->rule, moment) : ZONE_NEVER;
}

/* Between two transitions the local time rises with the moment. The first stretch in which it reaches
 * `local` has the answer; if it is there from the beginning, the transition skipped `local`. */
int64_t
zone_moment(const struct zone *z, int64_t local)
{
	int64_t from = local - MARGIN;

	for (;;) {
		const int64_t reaches = local - zone_offset(z, from);
		const int64_t next = zone_next(z, from);

		if (reaches < next)
			return reaches > from ? reaches : from;
		from = next;
	}
}
