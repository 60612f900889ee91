#include "core/queue/labels.h"

#include "base/mem.h"

#include <assert.h>
#include <string.h>

static const struct slu_priority standard_rows[] = {
	{ "high", 0 },
	{ "normal", 5 },
	{ "low", 10 },
};

enum {
	N_STANDARD = sizeof standard_rows / sizeof standard_rows[0]
};

static bool
is_label(const char *s)
{
	const size_t n = s ? strnlen(s, SLU_LABEL_MAX + 1) : 0;

	for (size_t i = 0; i < n; i++)
		if (s[i] <= ' ' || s[i] > '~')
			return false;
	return n > 0 && n <= SLU_LABEL_MAX;
}

/* Linear: there are a handful. */
uint32_t
labels_find(const struct labels *l, const char *name)
{
	if (!name)
		return l->standard;
	for (uint32_t i = 0; i < l->n; i++)
		if (strcmp(l->rows[i].name, name) == 0)
			return i;
	return LABELS_NONE;
}

static int
add_row(struct labels *l, const struct slu_priority *row, struct slu_err *err)
{
	if (!is_label(row->label))
		return slu_fail(err, SLU_EINVAL,
				"invalid label of priority %u; expected 1 to %d printable characters",
				l->n + 1, SLU_LABEL_MAX);
	if (labels_find(l, row->label) != LABELS_NONE)
		return slu_fail(err, SLU_EINVAL, "invalid priority \"%s\"; expected each label once",
				row->label);
	memcpy(l->rows[l->n].name, row->label, strlen(row->label) + 1);
	l->rows[l->n].value = row->value;
	l->n++;
	return 0;
}

static int
choose_standard(struct labels *l, const char *name, struct slu_err *err)
{
	const uint32_t i = labels_find(l, name ? name : "normal");

	if (i == LABELS_NONE && name)
		return slu_fail(err, SLU_EINVAL,
				"invalid default label \"%.40s\"; expected one of the priorities",
				name);
	l->standard = i == LABELS_NONE ? 0 : i;
	return 0;
}

int
labels_init(struct labels *l, const struct slu_priority *rows, uint32_t n,
	    const char *standard, struct slu_err *err)
{
	const struct slu_priority *from = rows ? rows : standard_rows;
	const uint32_t want = rows ? n : N_STANDARD;
	int rc = 0;

	*l = (struct labels){ 0 };
	if (want == 0)
		return slu_fail(err, SLU_EINVAL, "invalid priorities; expected at least one");
	l->rows = mem_array(want, sizeof *l->rows);
	if (!l->rows)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	while (!rc && l->n < want)
		rc = add_row(l, &from[l->n], err);
	if (!rc)
		rc = choose_standard(l, standard, err);
	if (rc)
		labels_release(l);
	return rc;
}

void
labels_release(struct labels *l)
{
	mem_free(l->rows);
	*l = (struct labels){ 0 };
}

int64_t
labels_span(const struct labels *l)
{
	int32_t low = l->rows[0].value, high = low;

	for (uint32_t i = 1; i < l->n; i++) {
		low = l->rows[i].value < low ? l->rows[i].value : low;
		high = l->rows[i].value > high ? l->rows[i].value : high;
	}
	return (int64_t)high - low;
}

void
labels_list(const struct labels *l, char *text, size_t size)
{
	size_t used = 0;

	assert(size > 0);
	for (uint32_t i = 0; i < l->n; i++) {
		const size_t n = strlen(l->rows[i].name);

		if (used + n + sizeof ", " > size)
			break;
		memcpy(text + used, l->rows[i].name, n);
		memcpy(text + used + n, ", ", 2);
		used += n + 2;
	}
	text[used > 2 ? used - 2 : 0] = '\0';
}
