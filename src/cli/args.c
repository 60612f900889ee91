#include "cli/args.h"

#include "base/nearest.h"
#include "base/parse.h"

#include <string.h>

enum {
	WORD_MAX = 32,
	ARGS_MAX = 32
};

const char *
args_nearest(const char *word, const char *const *list, size_t n)
{
	struct nearest best = nearest_to(word);

	for (size_t i = 0; i < n; i++)
		nearest_try(&best, list[i]);
	return best.name;
}

/* Without what the help calls its value. */
static int
name_length(const struct arg *row)
{
	return (int)strcspn(row->name, " ");
}

static int
unknown(const char *word, const struct arg *rows, size_t n, struct slu_err *err)
{
	char room[ARGS_MAX][WORD_MAX];
	const char *names[ARGS_MAX];
	const char *near;

	for (size_t i = 0; i < n && i < ARGS_MAX; i++) {
		(void)snprintf(room[i], WORD_MAX, "%.*s", name_length(&rows[i]), rows[i].name);
		names[i] = room[i];
	}
	near = args_nearest(word, names, n < ARGS_MAX ? n : ARGS_MAX);
	if (near)
		return slu_fail(err, SLU_EINVAL, "no option %s; did you mean %s?", word, near);
	return slu_fail(err, SLU_EINVAL, "no option %s; see --help", word);
}

static const struct arg *
find(const char *word, size_t len, const struct arg *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((size_t)name_length(&rows[i]) == len && memcmp(rows[i].name, word, len) == 0)
			return &rows[i];
	return NULL;
}

static int
take_text(const char *value, const char **out, struct slu_err *err)
{
	if (!*value)
		return slu_fail(err, SLU_EINVAL, "is empty");
	*out = value;
	return 0;
}

static int
take_value(const struct arg *row, const char *value, struct slu_err *err)
{
	struct slu_err why;
	int rc;

	if (!value)
		return slu_fail(err, SLU_EINVAL, "%.*s needs a value", name_length(row), row->name);
	if (row->kind == ARG_TIME)
		rc = parse_duration(slice_of(value), row->out, &why);
	else if (row->kind == ARG_TEXT)
		rc = take_text(value, row->out, &why);
	else
		rc = parse_u64(slice_of(value), 1,
			       row->kind == ARG_COUNT ? UINT32_MAX : UINT64_MAX, row->out, &why);
	return rc ? slu_fail(err, rc, "%.*s: %s", name_length(row), row->name, why.text) : 0;
}

/* One option at argv[*i]; *i moves on to its last word. */
static int
take_option(int *i, int argc, char **argv, const struct arg *rows, size_t n,
	    struct slu_err *err)
{
	char *word = argv[*i];
	char *equals = strchr(word, '=');
	const size_t len = equals ? (size_t)(equals - word) : strlen(word);
	const struct arg *row = find(word, len, rows, n);

	if (!row)
		return unknown(word, rows, n, err);
	if (row->kind == ARG_FLAG) {
		*(bool *)row->out = true;
		return equals ? slu_fail(err, SLU_EINVAL, "%.*s takes no value", name_length(row),
					 row->name)
			      : 0;
	}
	if (equals)
		return take_value(row, equals + 1, err);
	*i += 1;
	return take_value(row, *i < argc ? argv[*i] : NULL, err);
}

int
args_parse(int *argc, char **argv, const struct arg *rows, size_t n,
	   struct slu_err *err)
{
	bool options = true;
	int words = 0;

	for (int i = 0; i < *argc; i++) {
		int rc;

		if (options && strcmp(argv[i], "--") == 0) {
			options = false;
			continue;
		}
		if (!options || argv[i][0] != '-' || !argv[i][1]) {
			argv[words++] = argv[i];
			continue;
		}
		rc = take_option(&i, *argc, argv, rows, n, err);
		if (rc)
			return rc;
	}
	*argc = words;
	return 0;
}

/* "--jobs N" */
static int
print_name(const struct arg *row, char *out, size_t n)
{
	static const char *const values[] = {
		[ARG_FLAG] = "",
		[ARG_COUNT] = " N",
		[ARG_NUMBER] = " N",
		[ARG_TIME] = " TIME",
		[ARG_TEXT] = " TEXT",
	};
	const bool named = row->name[name_length(row)] != '\0';

	return snprintf(out, n, "%s%s", row->name, named ? "" : values[row->kind]);
}

void
args_help(const struct arg *rows, size_t n, FILE *out)
{
	int width = 18;
	char name[64];

	for (size_t i = 0; i < n; i++) {
		const int w = print_name(&rows[i], name, sizeof name);

		width = w > width ? w : width;
	}
	for (size_t i = 0; i < n; i++) {
		print_name(&rows[i], name, sizeof name);
		fprintf(out, "  %-*s  %s\n", width, name, rows[i].help);
	}
}
