#include "base/option/option.h"

#include "base/mem.h"
#include "base/nearest.h"

#include <stdio.h>

void *
option_place(const struct option_set *s, unsigned i)
{
	return (char *)s->values + s->rows[i].offset;
}

/* log.level, tls.client_ca, sharding.defaultShard: the words of a key, with - between. */
const char *
option_flag(const struct option *o, char out[static OPTION_NAME])
{
	size_t n = 0;

	for (const char *p = o->key; *p && n + 2 < OPTION_NAME; p++) { /* ours: they fit */
		if (*p >= 'A' && *p <= 'Z')
			out[n++] = '-';
		out[n++] = *p == '.' || *p == '_' ? '-' : ascii_lower(*p);
	}
	out[n] = '\0';
	return out;
}

const char *
option_variable(const struct option *o, char out[static OPTION_NAME])
{
	char flag[OPTION_NAME];

	(void)snprintf(out, OPTION_NAME, "SLUICE_%.*s", OPTION_NAME - 8,
		       option_flag(o, flag)); /* ours: they fit */
	for (char *p = out; *p; p++) {
		if (*p >= 'a' && *p <= 'z')
			*p = (char)(*p - 'a' + 'A');
		if (*p == '-')
			*p = '_';
	}
	return out;
}

unsigned
option_find(const struct option_set *s, struct slice key)
{
	unsigned i;

	for (i = 0; i < s->n; i++)
		if (slice_eq(slice_of(s->rows[i].key), key))
			break;
	return i;
}

/* "level" is the end of "log.level". */
static bool
is_last_part(const char *key, const char *part)
{
	const char *const dot = strrchr(key, '.');

	return dot && strcmp(dot + 1, part) == 0;
}

const char *
option_nearest(const struct option_set *s, const char *key)
{
	struct nearest best = nearest_to(key);

	for (unsigned i = 0; i < s->n; i++) {
		if (is_last_part(s->rows[i].key, key))
			return s->rows[i].key;
		nearest_try(&best, s->rows[i].key);
	}
	return best.name;
}

void
option_set_release(struct option_set *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		if (s->rows[i].kind->clear)
			s->rows[i].kind->clear(option_place(s, i));
		mem_free(s->origins[i]);
		s->origins[i] = NULL;
	}
}
