#include "core/trace.h"

/* Offsets of the parts of a traceparent: version-trace-parent-flags. */
enum {
	TRACE_ID = 3,
	TRACE_ID_END = 35,
	PARENT_ID = 36,
	PARENT_ID_END = 52,
	FLAGS = 53
};

static bool
is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool
is_hex_run(const char *p, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (!is_hex(p[i]))
			return false;
	return true;
}

static bool
is_zero(const char *p, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (p[i] != '0')
			return false;
	return true;
}

static bool
has_form(const char *p)
{
	return is_hex_run(p, 0, 2) && p[2] == '-' && is_hex_run(p, TRACE_ID, TRACE_ID_END) &&
	       p[TRACE_ID_END] == '-' && is_hex_run(p, PARENT_ID, PARENT_ID_END) &&
	       p[PARENT_ID_END] == '-' && is_hex_run(p, FLAGS, TRACE_PARENT);
}

bool
trace_parent(struct slice s, char out[static TRACE_PARENT])
{
	if (s.n < TRACE_PARENT || !has_form(s.p))
		return false;
	if (memcmp(s.p, "ff", 2) == 0 || is_zero(s.p, TRACE_ID, TRACE_ID_END) ||
	    is_zero(s.p, PARENT_ID, PARENT_ID_END))
		return false;
	if (s.n > TRACE_PARENT && (memcmp(s.p, "00", 2) == 0 || s.p[TRACE_PARENT] != '-'))
		return false;
	memcpy(out, s.p, TRACE_PARENT);
	out[0] = out[1] = '0'; /* the version */
	return true;
}

static bool
is_key_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
	       c == '*' || c == '/' || c == '@';
}

/* Checks a member of tracestate, key=value. Blanks around it do not count; an empty member is
 * valid. */
static bool
is_member(struct slice s)
{
	const char *equals;

	s = slice_trim(s, " \t");
	if (s.n == 0)
		return true;
	equals = memchr(s.p, '=', s.n);
	if (!equals || equals == s.p || equals == s.p + s.n - 1)
		return false;
	for (const char *p = s.p; p < equals; p++)
		if (!is_key_char(*p))
			return false;
	return !memchr(equals + 1, '=', s.n - (size_t)(equals + 1 - s.p));
}

static bool
is_printable(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((s.p[i] < ' ' || s.p[i] > '~') && s.p[i] != '\t')
			return false;
	return true;
}

bool
trace_state(struct slice s)
{
	unsigned members = 0;
	struct slice member;
	bool more = true;

	if (s.n == 0 || s.n > TRACE_STATE_MAX || !is_printable(s))
		return false;
	while (more) {
		more = slice_cut(&s, ',', &member);
		if (++members > TRACE_MEMBERS_MAX || !is_member(member))
			return false;
	}
	return true;
}
