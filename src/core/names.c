#include "core/names.h"

#include "base/parse.h"
#include "base/utf8.h"
#include "core/queue/kind.h"

static int
check_length(struct slice s, const char *what, size_t longest, struct slu_err *err)
{
	if (s.n >= 1 && s.n <= longest)
		return 0;
	return slu_fail(err, SLU_EINVAL, "invalid %s of %zu bytes; expected 1 to %zu bytes", what,
			s.n, longest);
}

/* The folded character, or 0 if it is not allowed in a name. <ctype.h> depends on the locale. */
/* clang-format off */
static const char folded[256] = {
	['-'] = '-', ['.'] = '.', ['_'] = '_',
	['0'] = '0', '1', '2', '3', '4', '5', '6', '7', '8', '9',
	['A'] = 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm',
	'n', 'o', 'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z',
	['a'] = 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm',
	'n', 'o', 'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z',
};
/* The characters that are their own folded ones. */
static const bool is_folded[256] = {
	['-'] = true, ['.'] = true, ['_'] = true,
	['0'] = true, true, true, true, true, true, true, true, true, true,
	['a'] = true, true, true, true, true, true, true, true, true, true, true, true, true,
	true, true, true, true, true, true, true, true, true, true, true, true, true,
};
/* clang-format on */

static char
fold(char c)
{
	return folded[(unsigned char)c];
}

int
name_fold(struct slice name, const char *what, char out[static NAME_TEXT],
	  struct slu_err *err)
{
	char shown[SHOWN_TEXT];
	const int rc = check_length(name, what, NAME_LONGEST, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < name.n; i++)
		if (!fold(name.p[i]))
			return slu_fail(err, SLU_EINVAL, "invalid %s %s; expected A-Z a-z 0-9 . _ -", what,
					parse_shown(name, shown));
	if (name.p[0] == '.')
		return slu_fail(err, SLU_EINVAL,
				"invalid %s %s; names that begin with a dot are reserved", what,
				parse_shown(name, shown));
	for (size_t i = 0; i < name.n; i++)
		out[i] = fold(name.p[i]);
	out[name.n] = '\0';
	return 0;
}

bool
name_is_folded(struct slice name)
{
	bool common = true;

	if (name.n < 1 || name.n > NAME_LONGEST || name.p[0] == '.')
		return false;
	for (size_t i = 0; i < name.n; i++)
		common &= is_folded[(unsigned char)name.p[i]];
	return common;
}

int
lock_key_fold(struct slice key, const char *what, char out[static NAME_TEXT],
	      struct slu_err *err)
{
	char shown[SHOWN_TEXT];
	const int rc = check_length(key, what, NAME_LONGEST, err);
	char before = '/';

	if (rc)
		return rc;
	for (size_t i = 0; i <= key.n; i++) {
		const char c = i < key.n ? key.p[i] : '/';

		if (c == '/' && before == '/')
			return slu_fail(err, SLU_EINVAL, "invalid %s %s; expected no empty segment", what,
					parse_shown(key, shown));
		if (c != '/' && !fold(c))
			return slu_fail(err, SLU_EINVAL,
					"invalid %s %s; expected A-Z a-z 0-9 . _ - with / between segments",
					what, parse_shown(key, shown));
		before = c;
	}
	for (size_t i = 0; i < key.n; i++)
		out[i] = key.p[i] == '/' ? '/' : fold(key.p[i]);
	out[key.n] = '\0';
	return 0;
}

/* U+0000 to U+001F, U+007F, and in two bytes U+0080 to U+009F. */
static bool
is_control(const unsigned char *p, size_t length)
{
	if (length == 1)
		return p[0] < 0x20 || p[0] == 0x7f;
	return length == 2 && p[0] == 0xc2 && p[1] < 0xa0;
}

static int
check_characters(struct slice key, const char *what, struct slu_err *err)
{
	for (const char *p = key.p, *const end = p + key.n; p < end;) {
		const size_t length = utf8_length(p, end);

		if (length == 0)
			return slu_fail(err, SLU_EINVAL, "invalid %s: not UTF-8 at byte %zu",
					what, (size_t)(p - key.p));
		if (is_control((const unsigned char *)p, length))
			return slu_fail(err, SLU_EINVAL,
					"invalid %s: control character at byte %zu", what,
					(size_t)(p - key.p));
		p += length;
	}
	return 0;
}

int
key_check(struct slice key, const char *what, struct slu_err *err)
{
	const int rc = check_length(key, what, KEY_LONGEST, err);

	return rc ? rc : check_characters(key, what, err);
}

int
share_check(struct slice share, const char *what, struct slu_err *err)
{
	const int rc = check_length(share, what, SHARE_LONGEST, err);

	return rc ? rc : check_characters(share, what, err);
}

int
kind_check(struct slice kind, const char *what, struct slu_err *err)
{
	const int rc = check_length(kind, what, KIND_MAX, err);
	char shown[SHOWN_TEXT];

	for (size_t i = 0; !rc && i < kind.n; i++)
		if (!fold(kind.p[i]) && kind.p[i] != ':' && kind.p[i] != '/')
			return slu_fail(err, SLU_EINVAL, "invalid %s: %s; expected A-Z a-z 0-9 . _ - : /", what, parse_shown(kind, shown));
	return rc;
}

int
correlation_check(struct slice id, const char *what, struct slu_err *err)
{
	const int rc = check_length(id, what, CORRELATION_LONGEST, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < id.n; i++)
		if (id.p[i] < ' ' || id.p[i] > '~')
			return slu_fail(err, SLU_EINVAL,
					"invalid %s: not printable ASCII at byte %zu", what, i);
	return 0;
}
