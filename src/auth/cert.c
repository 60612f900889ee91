#include "auth/cert.h"

#include "base/mem.h"
#include "base/parse.h"

static const struct slice claim_scheme = { "lockd://", 8 };
static const struct slice claim_start = { "lockd://ns/", 11 };
static const struct slice claim_perm = { "?perm=", 6 };

static bool
begins(struct slice s, struct slice with)
{
	return s.n >= with.n && memcmp(s.p, with.p, with.n) == 0;
}

static struct slice
behind(struct slice s, size_t n)
{
	return (struct slice){ s.p + n, s.n - n };
}

/* --- lockd://ns/<name>?perm=rw ------------------------------------------------ */

static unsigned
perm_rights(struct slice perm)
{
	if (slice_eq(perm, SLICE("r")))
		return RIGHT_READ | RIGHT_CONSUME;
	if (slice_eq(perm, SLICE("w")))
		return RIGHT_WRITE;
	if (slice_eq(perm, SLICE("rw")))
		return RIGHT_READ | RIGHT_WRITE | RIGHT_CONSUME;
	return 0;
}

static int
add_claim(struct grants *g, struct slice uri, struct slu_err *err)
{
	const struct slice rest = begins(uri, claim_start) ? behind(uri, claim_start.n) : uri;
	const char *const mark = memchr(rest.p, '?', rest.n);
	const size_t n = mark ? (size_t)(mark - rest.p) : rest.n;
	struct slice name = { rest.p, n };
	const struct slice perm = behind(rest, n);
	char shown[SHOWN_TEXT];

	if (slice_eq(name, SLICE("ALL")))
		name = SLICE("*");
	else if (memchr(name.p, '*', name.n))
		name.n = 0; /* a star is not lockd's */
	if (begins(perm, claim_perm) &&
	    grants_add(g, name, perm_rights(behind(perm, claim_perm.n))))
		return 0;
	return slu_fail(err, SLU_EINVAL,
			"certificate: URI name %s: expected lockd://ns/NAMESPACE?perm=r, w or rw",
			parse_shown(uri, shown));
}

/* --- the file ----------------------------------------------------------------- */

static const char blanks[] = " \t\r";

/* Takes the bytes before the first `c`, and c, off the front of *rest. */
static struct slice
cut(struct slice *rest, char c)
{
	struct slice first;

	(void)slice_cut(rest, c, &first);
	return first;
}

/* False: one of them is not a scope. */
static bool
add_scopes(struct grants *g, struct slice scopes)
{
	while (scopes.n > 0)
		if (!grants_add_scope(g, cut(&scopes, ',')))
			return false;
	return true;
}

static int
parse_line(struct cert_map *map, struct slice line, unsigned number, struct slu_err *err)
{
	struct cert_rule rule = { .scopes = line };
	struct grants checked = { .n = 0 };
	char shown[SHOWN_TEXT];

	rule.scopes.n = 0;
	while (rule.scopes.n < line.n && !memchr(blanks, line.p[rule.scopes.n], sizeof blanks - 1))
		rule.scopes.n++;
	rule.name = slice_trim(behind(line, rule.scopes.n), blanks);
	if (rule.name.n == 0)
		return slu_fail(err, SLU_EINVAL, "line %u: invalid rule %s; expected SCOPES NAME",
				number, parse_shown(line, shown));
	if (!add_scopes(&checked, rule.scopes) || checked.too_many)
		return slu_fail(err, SLU_EINVAL,
				"line %u: invalid scopes %s; expected namespace:read, write, consume, "
				"admin or *, separated by commas",
				number, parse_shown(rule.scopes, shown));
	if (map->n_rules == CERT_RULES_MAX)
		return slu_fail(err, SLU_EINVAL, "line %u: more than %d names", number,
				CERT_RULES_MAX);
	map->rules[map->n_rules++] = rule;
	return 0;
}

static int
parse_lines(struct cert_map *map, struct slice text, struct slu_err *err)
{
	for (unsigned number = 1; text.n > 0; number++) {
		const struct slice line = slice_trim(cut(&text, '\n'), blanks);
		int rc;

		if (line.n == 0 || line.p[0] == '#')
			continue;
		rc = parse_line(map, line, number, err);
		if (rc)
			return rc;
	}
	return 0;
}

int
cert_map_parse(struct cert_map *map, struct slice text, struct slu_err *err)
{
	int rc;

	*map = (struct cert_map){ 0 };
	if (text.n > CERT_FILE_MAX)
		return slu_fail(err, SLU_EINVAL, "at most %d bytes are taken, it has %zu",
				CERT_FILE_MAX, text.n);
	map->text = mem_alloc(text.n + 1);
	map->rules = mem_array(CERT_RULES_MAX, sizeof *map->rules);
	if (!map->text || !map->rules) {
		cert_map_release(map);
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	}
	if (text.n > 0)
		memcpy(map->text, text.p, text.n);
	rc = parse_lines(map, (struct slice){ map->text, text.n }, err);
	if (rc)
		cert_map_release(map);
	return rc;
}

void
cert_map_release(struct cert_map *map)
{
	mem_free(map->text);
	mem_free(map->rules);
	*map = (struct cert_map){ 0 };
}

static void
add_rules(struct grants *g, struct slice name, const struct cert_map *map)
{
	for (unsigned i = 0; map && i < map->n_rules; i++)
		if (slice_eq(map->rules[i].name, name))
			(void)add_scopes(g, map->rules[i].scopes); /* checked when parsed */
}

/* --- the certificate ---------------------------------------------------------- */

int
cert_identity(struct identity **out, struct slice subject, const struct slice *uris,
	      unsigned n_uris, const struct cert_map *map, struct slu_err *err)
{
	struct grants g = { .n = 0 };
	struct slice name = subject;

	add_rules(&g, subject, map);
	for (unsigned i = 0; i < n_uris; i++) {
		const bool is_claim = begins(uris[i], claim_scheme);
		const int rc = is_claim ? add_claim(&g, uris[i], err) : 0;

		if (rc)
			return rc;
		if (!is_claim && name.p == subject.p)
			name = uris[i];
		add_rules(&g, uris[i], map);
	}
	if (g.too_many)
		return slu_fail(err, SLU_EINVAL, "certificate: more than %d grants", GRANTS_MAX);
	*out = identity_new(name, &g);
	return *out ? 0 : slu_fail(err, SLU_ENOMEM, "out of memory");
}
