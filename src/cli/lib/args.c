#include "cli/lib/args.h"

#include "base/nearest.h"
#include "base/parse.h"

#include <ctype.h>
#include <string.h>

enum {
	WORD_MAX = 64
};

/* --- rows ----------------------------------------------------------------------- */

/* The letter of the option; '\0' if it has none. */
static char
letter_of(const struct arg *row)
{
	return row->name[1] == '-' ? '\0' : row->name[1];
}

/* "--file FILE" for "-f, --file FILE" */
static const char *
long_name(const struct arg *row)
{
	return letter_of(row) ? row->name + strlen("-f, ") : row->name;
}

/* The length of the long name, without the form of the value. */
static int
name_length(const struct arg *row)
{
	return (int)strcspn(long_name(row), " ");
}

/* The form of the value in the row; "" if the row has none. */
static const char *
own_form(const struct arg *row)
{
	const char *const end = long_name(row) + name_length(row);

	return *end ? end + 1 : end;
}

static const char *
form_of(const struct arg *row)
{
	static const char *const forms[] = {
		[ARG_FLAG] = "",
		[ARG_COUNT] = "N",
		[ARG_NUMBER] = "N",
		[ARG_TIME] = "TIME",
		[ARG_TEXT] = "TEXT",
	};

	return *own_form(row) ? own_form(row) : forms[row->kind];
}

static const struct arg *
find(const char *word, size_t len, const struct arg *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((size_t)name_length(&rows[i]) == len && memcmp(long_name(&rows[i]), word, len) == 0)
			return &rows[i];
	return NULL;
}

static const struct arg *
find_letter(char letter, const struct arg *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (letter_of(&rows[i]) == letter)
			return &rows[i];
	return NULL;
}

/* --- suggestions ---------------------------------------------------------------- */

const char *
args_nearest(const char *word, const char *const *list, size_t n)
{
	struct nearest best = nearest_to(word);

	for (size_t i = 0; i < n; i++)
		nearest_try(&best, list[i]);
	return best.name;
}

/* Copies the name of n letters to room if it is the most similar one so far. */
static void
try_name(struct nearest *best, const char *name, size_t n, char room[static WORD_MAX])
{
	char word[WORD_MAX];

	if (n >= sizeof word)
		return;
	memcpy(word, name, n);
	word[n] = '\0';
	nearest_try(best, word);
	if (best->name != word)
		return;
	memcpy(room, word, n + 1);
	best->name = room;
}

static int
unknown(const char *word, const struct arg *rows, size_t n, struct slu_err *err)
{
	struct nearest best = nearest_to(word);
	char room[WORD_MAX];

	for (size_t i = 0; i < n; i++)
		try_name(&best, long_name(&rows[i]), (size_t)name_length(&rows[i]), room);
	if (best.name)
		return slu_fail(err, SLU_EINVAL, "unknown option: %s; did you mean %s?", word, best.name);
	return slu_fail(err, SLU_EINVAL, "unknown option: %s; see --help", word);
}

/* --- values --------------------------------------------------------------------- */

/* An alternative that stands for other values ends in capitals: N, TIME, interval=TIME. */
static bool
is_open(const char *p, size_t n)
{
	const char *const equals = memchr(p, '=', n);
	const char *const end = p + n;

	for (p = equals ? equals + 1 : p; p < end; p++)
		if (!isupper((unsigned char)*p))
			return false;
	return true;
}

static bool
is_number(const char *value)
{
	const char *const digits = value + (*value == '-');

	return *digits && !digits[strspn(digits, "0123456789")];
}

int
args_check_form(const char *what, const char *form, const char *value, struct slu_err *err)
{
	struct nearest best = nearest_to(value);
	char room[WORD_MAX];

	if (!strchr(form, '|'))
		return 0;
	for (const char *p = form; *p; p += *p == '|') {
		const size_t n = strcspn(p, "|");

		if (n == 1 && *p == 'N' ? is_number(value) : is_open(p, n))
			return 0;
		if (strlen(value) == n && memcmp(p, value, n) == 0)
			return 0;
		if (!is_open(p, n))
			try_name(&best, p, n, room);
		p += n;
	}
	return slu_fail(err, SLU_EINVAL, "invalid %s: %s; expected %s%s%s%s", what, value, form,
			best.name ? "; did you mean " : "", best.name ? best.name : "",
			best.name ? "?" : "");
}

static int
take_text(const struct arg *row, const char *value, void *out, struct slu_err *err)
{
	char name[WORD_MAX];

	(void)snprintf(name, sizeof name, "%.*s", name_length(row), long_name(row));
	if (!*value)
		return slu_fail(err, SLU_EINVAL, "invalid %s: empty; expected a text", name);
	*(const char **)out = value;
	return args_check_form(name, own_form(row), value, err);
}

static int
take_value(const struct arg *row, const char *value, void *base, struct slu_err *err)
{
	void *const out = (char *)base + row->at;
	struct slu_err why;
	int rc;

	if (!value)
		return slu_fail(err, SLU_EINVAL, "%.*s needs a value", name_length(row),
				long_name(row));
	if (row->kind == ARG_TEXT)
		return take_text(row, value, out, err);
	if (row->kind == ARG_TIME)
		rc = parse_duration(slice_of(value), out, &why);
	else
		rc = parse_u64(slice_of(value), 1,
			       row->kind == ARG_COUNT ? UINT32_MAX : UINT64_MAX, out, &why);
	return rc ? slu_fail(err, rc, "%.*s: %s", name_length(row), long_name(row), why.text) : 0;
}

/* --- words ---------------------------------------------------------------------- */

/* "-y", "-nNAME" or "-n NAME"; several flags may be one word. */
static int
take_letters(int *i, int argc, char **argv, const struct arg *rows, size_t n, void *out,
	     struct slu_err *err)
{
	for (const char *p = argv[*i] + 1; *p; p++) {
		const struct arg *row = find_letter(*p, rows, n);

		if (!row)
			return slu_fail(err, SLU_EINVAL, "unknown option: -%c; see --help", *p);
		if (row->kind == ARG_FLAG) {
			*(bool *)((char *)out + row->at) = true;
			continue;
		}
		if (p[1])
			return take_value(row, p + 1, out, err);
		*i += 1;
		return take_value(row, *i < argc ? argv[*i] : NULL, out, err);
	}
	return 0;
}

/* Reads the option at argv[*i]. *i becomes the index of its last word. */
static int
take_option(int *i, int argc, char **argv, const struct arg *rows, size_t n, void *out,
	    struct slu_err *err)
{
	char *word = argv[*i];
	char *equals = strchr(word, '=');
	const size_t len = equals ? (size_t)(equals - word) : strlen(word);
	const struct arg *row;

	if (word[1] != '-')
		return take_letters(i, argc, argv, rows, n, out, err);
	row = find(word, len, rows, n);
	if (!row)
		return unknown(word, rows, n, err);
	if (row->kind == ARG_FLAG) {
		*(bool *)((char *)out + row->at) = true;
		return equals ? slu_fail(err, SLU_EINVAL, "%.*s takes no value", name_length(row),
					 long_name(row))
			      : 0;
	}
	if (equals)
		return take_value(row, equals + 1, out, err);
	*i += 1;
	return take_value(row, *i < argc ? argv[*i] : NULL, out, err);
}

int
args_parse(int *argc, char **argv, const struct arg *rows, size_t n, void *out,
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
		rc = take_option(&i, *argc, argv, rows, n, out, err);
		if (rc)
			return rc;
	}
	*argc = words;
	return 0;
}

bool
args_have_json(int argc, char **argv)
{
	for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--json") == 0)
			return true;
	return false;
}

/* --- completion ----------------------------------------------------------------- */

void
args_print_completion(const char *word, const char *begun, const char *description)
{
	if (strncmp(word, begun, strlen(begun)) == 0)
		printf("%s%s%s\n", word, description ? "\t" : "", description ? description : "");
}

void
args_print_form(const char *form, const char *begun)
{
	const bool is_word = !form[strspn(form, "abcdefghijklmnopqrstuvwxyz-")];
	char word[WORD_MAX];

	if (!strchr(form, '|') && !is_word)
		return;
	for (const char *p = form; *p; p += *p == '|') {
		const size_t n = strcspn(p, "|");

		if (!is_open(p, n) && n < sizeof word) {
			(void)snprintf(word, sizeof word, "%.*s", (int)n, p);
			args_print_completion(word, begun, NULL);
		}
		p += n;
	}
}

/* The option that the next word is the value of; NULL if the word is not such an option. */
static const struct arg *
wants_value(const char *word, const struct arg *rows, size_t n)
{
	const struct arg *row = NULL;

	if (word[0] == '-' && word[1] == '-' && !strchr(word, '='))
		row = find(word, strlen(word), rows, n);
	else if (word[0] == '-' && word[1] && !word[2])
		row = find_letter(word[1], rows, n);
	return row && row->kind != ARG_FLAG ? row : NULL;
}

static void
print_options(const char *begun, const struct arg *rows, size_t n)
{
	char name[WORD_MAX];

	for (size_t i = 0; i < n; i++) {
		(void)snprintf(name, sizeof name, "%.*s", name_length(&rows[i]), long_name(&rows[i]));
		args_print_completion(name, begun, rows[i].help);
	}
}

bool
args_complete(int argc, char **argv, const struct arg *rows, size_t n, struct arg_blank *out)
{
	const struct arg *pending = NULL;
	const char *const last = argc > 0 ? argv[argc - 1] : "";

	*out = (struct arg_blank){ 0 };
	for (int i = 0; i + 1 < argc; i++) {
		if (strcmp(argv[i], "--") == 0)
			return true; /* the words after -- belong to another command */
		out->word += !pending && argv[i][0] != '-';
		pending = pending ? NULL : wants_value(argv[i], rows, n);
	}
	if (pending) {
		out->form = form_of(pending);
		args_print_form(out->form, last);
		return strchr(out->form, '|') != NULL;
	}
	if (last[0] == '-')
		print_options(last, rows, n);
	return last[0] == '-';
}

/* --- help ----------------------------------------------------------------------- */

/* "-f, --file FILE"; a name without a letter is indented to the other long names. */
static int
print_name(const struct arg *row, char *out, size_t n)
{
	const char *const form = form_of(row);

	return snprintf(out, n, "%s%.*s%s%s", letter_of(row) ? "" : "    ",
			(int)(long_name(row) - row->name) + name_length(row), row->name,
			*form ? " " : "", form);
}

void
args_help(const struct arg *rows, size_t n, FILE *out)
{
	enum {
		WIDTH_MIN = 18,
		WIDTH_MAX = 34 /* a longer name has its help on the next line */
	};
	int width = WIDTH_MIN;
	char name[128];

	for (size_t i = 0; i < n; i++) {
		const int w = print_name(&rows[i], name, sizeof name);

		width = w > width && w <= WIDTH_MAX ? w : width;
	}
	for (size_t i = 0; i < n; i++) {
		const int w = print_name(&rows[i], name, sizeof name);

		fprintf(out, "  %-*s", width, name);
		if (w > width)
			fprintf(out, "\n  %-*s", width, "");
		fprintf(out, "  %s\n", rows[i].help);
	}
}
