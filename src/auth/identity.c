#include "auth/identity.h"

#include "base/mem.h"
#include "core/names.h"

#include <assert.h>

static struct identity anyone = {
	.name = { "anyone", 6 },
	.n_grants = 1,
	.grants = { { { "*", 1 }, RIGHT_ALL } },
};

static const struct {
	struct slice word;
	unsigned rights;
} rights[] = {
	{ { "read", 4 }, RIGHT_READ },
	{ { "write", 5 }, RIGHT_WRITE | RIGHT_CONSUME },
	{ { "consume", 7 }, RIGHT_CONSUME },
	{ { "admin", 5 }, RIGHT_ADMIN },
	{ { "*", 1 }, RIGHT_ALL },
};

enum {
	N_RIGHTS = sizeof rights / sizeof rights[0]
};

unsigned
right_of(struct slice word)
{
	for (unsigned i = 0; i < N_RIGHTS; i++)
		if (slice_eq(rights[i].word, word))
			return rights[i].rights;
	return 0;
}

const char *
right_name(enum right right)
{
	for (unsigned i = 0; i < N_RIGHTS; i++)
		if (rights[i].rights == right || (right == RIGHT_WRITE && rights[i].rights & right))
			return rights[i].word.p;
	return "?";
}

/* --- one caller --------------------------------------------------------------- */

static size_t
text_of(struct slice name, const struct grants *g)
{
	size_t n = name.n;

	for (unsigned i = 0; i < g->n; i++)
		n += g->items[i].pattern.n;
	return n;
}

static char
printable(char c)
{
	return c > ' ' && c <= '~' ? c : '?';
}

/* Copy s to *text, letter by letter, and move on behind it. */
static struct slice
copy(struct slice s, char **text, char (*letter)(char c))
{
	char *const p = *text;

	for (size_t i = 0; i < s.n; i++)
		p[i] = letter(s.p[i]);
	*text += s.n;
	return (struct slice){ p, s.n };
}

struct identity *
identity_new(struct slice name, const struct grants *g)
{
	const size_t head = sizeof(struct identity) + g->n * sizeof(struct grant);
	struct identity *id;
	char *text;

	assert(!g->too_many);
	if (name.n > IDENTITY_NAME_MAX)
		name.n = IDENTITY_NAME_MAX;
	id = mem_alloc(head + text_of(name, g));
	if (!id)
		return NULL;
	text = (char *)id + head;
	atomic_init(&id->refs, 1);
	id->name = copy(name, &text, printable);
	id->codeq = NULL;
	id->token = NULL;
	id->n_grants = g->n;
	for (unsigned i = 0; i < g->n; i++) {
		id->grants[i].rights = g->items[i].rights;
		id->grants[i].pattern = copy(g->items[i].pattern, &text, ascii_lower);
	}
	return id;
}

struct identity *
identity_ref(struct identity *id)
{
	if (atomic_load_explicit(&id->refs, memory_order_relaxed) > 0)
		atomic_fetch_add_explicit(&id->refs, 1, memory_order_relaxed);
	return id;
}

void
identity_unref(struct identity *id)
{
	if (!id || atomic_load_explicit(&id->refs, memory_order_relaxed) == 0)
		return;
	if (atomic_fetch_sub_explicit(&id->refs, 1, memory_order_acq_rel) != 1)
		return;
	identity_unref(id->codeq);
	mem_free(id->token);
	mem_free(id);
}

struct identity *
identity_anyone(void)
{
	return &anyone;
}

/* --- may it? ------------------------------------------------------------------ */

static bool
matches(struct slice pattern, struct slice namespace)
{
	const size_t fixed = pattern.n - 1; /* without the star */

	if (pattern.n == 0 || pattern.p[fixed] != '*')
		return slice_eq(pattern, namespace);
	return namespace.n >= fixed && memcmp(pattern.p, namespace.p, fixed) == 0;
}

bool
identity_may(const struct identity *id, struct slice namespace, enum right right)
{
	for (unsigned i = 0; id && i < id->n_grants; i++) {
		const struct grant *const g = &id->grants[i];
		const bool has = (g->rights & right) == right;

		if (has && namespace.n > 0 && matches(g->pattern, namespace))
			return true;
		if (has && namespace.n == 0 && slice_eq(g->pattern, SLICE("*")))
			return true;
	}
	return false;
}

struct slice
identity_home(const struct identity *id)
{
	const struct slice standard = SLICE("default");
	struct slice one = { 0 };

	for (unsigned i = 0; id && i < id->n_grants; i++) {
		const struct slice pattern = id->grants[i].pattern;

		if (memchr(pattern.p, '*', pattern.n) || (one.n > 0 && !slice_eq(one, pattern)))
			return standard;
		one = pattern;
	}
	return one.n > 0 ? one : standard;
}

/* --- grants ------------------------------------------------------------------- */

static bool
is_pattern(struct slice s)
{
	char folded[NAME_TEXT];

	if (s.n > 0 && s.p[s.n - 1] == '*')
		s.n--;
	return s.n == 0 || !name_fold(s, "pattern", folded, NULL);
}

bool
grants_add(struct grants *g, struct slice pattern, unsigned wanted)
{
	if (pattern.n == 0 || wanted == 0 || !is_pattern(pattern))
		return false;
	if (g->n == GRANTS_MAX)
		g->too_many = true;
	else
		g->items[g->n++] = (struct grant){ pattern, wanted };
	return true;
}

bool
grants_add_scope(struct grants *g, struct slice scope)
{
	struct slice pattern;

	return slice_cut(&scope, ':', &pattern) && grants_add(g, pattern, right_of(scope));
}

void
grants_add_scopes(struct grants *g, struct slice scopes)
{
	struct slice scope;

	while (scopes.n > 0) {
		(void)slice_cut(&scopes, ' ', &scope);
		(void)grants_add_scope(g, scope); /* scopes of other services are ignored */
	}
}
