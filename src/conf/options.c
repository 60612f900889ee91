#include "conf/options.h"

#include "base/mem.h"
#include "base/parse.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
	NAME_MAX_BYTES = 64 /* of a variable */
};

struct option;

/* Read a value into its place in the conf, and write it as it would be read. */
typedef int option_read(const struct option *o, struct conf *c, const char *value,
			struct slu_err *err);
typedef void option_show(const struct option *o, const struct conf *c, FILE *out);

struct kind {
	option_read *read;
	option_show *show;
	bool flag; /* takes no value on the command line */
};

struct option {
	const char *name; /* "node-id": --node-id, SLUICE_NODE_ID */
	const struct kind *kind;
	size_t offset;
	const char *standard;
	const char *value; /* how --help calls it */
	const char *doc;
	uint64_t min, max;        /* of counts */
	const char *const *words; /* of words, in the order of their enum; NULL ends */
};

static void *
place(const struct option *o, struct conf *c)
{
	return (char *)c + o->offset;
}

static const void *
place_of(const struct option *o, const struct conf *c)
{
	return (const char *)c + o->offset;
}

/* --- kinds -------------------------------------------------------------------- */

static int
read_text(const struct option *o, struct conf *c, const char *value, struct slu_err *err)
{
	char **const text = place(o, c);
	char *const copy = mem_strdup(value);

	if (!copy)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	if (!*copy) {
		mem_free(copy);
		return slu_fail(err, SLU_EINVAL, "expected a value");
	}
	mem_free(*text);
	*text = copy;
	return 0;
}

static void
show_text(const struct option *o, const struct conf *c, FILE *out)
{
	fputs(*(char *const *)place_of(o, c), out);
}

static void
list_clear(struct conf_list *l)
{
	while (l->n > 0)
		mem_free(l->items[--l->n]);
}

/* Appends: a list may be given again. */
static int
read_list(const struct option *o, struct conf *c, const char *value, struct slu_err *err)
{
	struct conf_list *const l = place(o, c);

	for (;;) {
		const size_t n = strcspn(value, ",");
		char *item;

		if (n == 0)
			return slu_fail(err, SLU_EINVAL, "expected a value");
		if (l->n == CONF_LIST_MAX)
			return slu_fail(err, SLU_EINVAL, "expected at most %d of them",
					CONF_LIST_MAX);
		item = mem_zalloc(n + 1);
		if (!item)
			return slu_fail(err, SLU_ENOMEM, "out of memory");
		memcpy(item, value, n);
		l->items[l->n++] = item;
		if (value[n] == '\0')
			return 0;
		value += n + 1;
	}
}

static void
show_list(const struct option *o, const struct conf *c, FILE *out)
{
	const struct conf_list *const l = place_of(o, c);

	for (unsigned i = 0; i < l->n; i++)
		fprintf(out, "%s%s", i ? "," : "", l->items[i]);
}

static int
read_count(const struct option *o, struct conf *c, const char *value, struct slu_err *err)
{
	uint64_t n;
	const int rc = parse_u64(slice_of(value), o->min, o->max, &n, err);

	if (!rc)
		*(uint32_t *)place(o, c) = (uint32_t)n;
	return rc;
}

static void
show_count(const struct option *o, const struct conf *c, FILE *out)
{
	fprintf(out, "%" PRIu32, *(const uint32_t *)place_of(o, c));
}

static int
read_time(const struct option *o, struct conf *c, const char *value, struct slu_err *err)
{
	return parse_duration(slice_of(value), place(o, c), err);
}

static void
show_time(const struct option *o, const struct conf *c, FILE *out)
{
	char text[DURATION_TEXT];

	fputs(format_duration(*(const slu_time *)place_of(o, c), text, sizeof text), out);
}

static int
read_word(const struct option *o, struct conf *c, const char *value, struct slu_err *err)
{
	char shown[SHOWN_TEXT];

	for (int i = 0; o->words[i]; i++) {
		if (strcmp(o->words[i], value) == 0) {
			*(unsigned *)place(o, c) = (unsigned)i;
			return 0;
		}
	}
	return slu_fail(err, SLU_EINVAL, "expected %s, not %s", o->value,
			parse_shown(slice_of(value), shown));
}

static void
show_word(const struct option *o, const struct conf *c, FILE *out)
{
	fputs(o->words[*(const unsigned *)place_of(o, c)], out);
}

static int
read_bool(const struct option *o, struct conf *c, const char *value, struct slu_err *err)
{
	if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
		return slu_fail(err, SLU_EINVAL, "expected true or false");
	*(bool *)place(o, c) = *value == 't';
	return 0;
}

static void
show_bool(const struct option *o, const struct conf *c, FILE *out)
{
	fputs(*(const bool *)place_of(o, c) ? "true" : "false", out);
}

static int
read_sync(const struct option *o, struct conf *c, const char *value, struct slu_err *err)
{
	static const char interval[] = "interval=";
	char shown[SHOWN_TEXT];

	(void)o; /* there is one */
	if (strcmp(value, "sync") == 0) {
		c->sync = CONF_SYNC_ALWAYS;
		return 0;
	}
	if (strcmp(value, "none") == 0) {
		c->sync = CONF_SYNC_NONE;
		return 0;
	}
	if (strncmp(value, interval, sizeof interval - 1) == 0) {
		c->sync = CONF_SYNC_INTERVAL;
		return parse_duration(slice_of(value + sizeof interval - 1),
				      &c->sync_interval, err);
	}
	return slu_fail(err, SLU_EINVAL, "expected sync, interval=TIME or none, not %s",
			parse_shown(slice_of(value), shown));
}

const char *
conf_sync_text(const struct conf *c, char out[static 64])
{
	char time[DURATION_TEXT];

	if (c->sync == CONF_SYNC_INTERVAL)
		(void)snprintf(out, 64, "interval=%s", /* always fits */
			       format_duration(c->sync_interval, time, sizeof time));
	else
		(void)snprintf(out, 64, "%s", c->sync == CONF_SYNC_NONE ? "none" : "sync");
	return out;
}

static void
show_sync(const struct option *o, const struct conf *c, FILE *out)
{
	char text[64];

	(void)o; /* there is one */
	fputs(conf_sync_text(c, text), out);
}

static const struct kind text_kind = { read_text, show_text, false };
static const struct kind list_kind = { read_list, show_list, false };
static const struct kind count_kind = { read_count, show_count, false };
static const struct kind time_kind = { read_time, show_time, false };
static const struct kind word_kind = { read_word, show_word, false };
static const struct kind bool_kind = { read_bool, show_bool, true };
static const struct kind sync_kind = { read_sync, show_sync, false };

/* --- the table ---------------------------------------------------------------- */

static const char *const levels[] = { "debug", "info", "warn", "error", "off", NULL };
static const char *const formats[] = { "logfmt", "json", NULL };

#define AT(member) offsetof(struct conf, member)

/* clang-format off */
static const struct option options[] = {
	{ .name = "data", .kind = &text_kind, .offset = AT(data), .standard = "./data",
	  .value = "DIR", .doc = "folder that holds everything; made if it is not there" },
	{ .name = "listen", .kind = &list_kind, .offset = AT(listen), .standard = "127.0.0.1:7171",
	  .value = "ADDRESS", .doc = "host:port or unix:PATH to serve on; may be given again; port 0 is any free one" },
	{ .name = "engine", .kind = &text_kind, .offset = AT(engine), .standard = "log",
	  .value = "log|memory", .doc = "how messages are kept; memory ends with the process" },
	{ .name = "sync", .kind = &sync_kind, .offset = AT(sync), .standard = "sync",
	  .value = "sync|interval=TIME|none", .doc = "when an answer is on disk: before it is given, within TIME, or when the kernel likes" },
	{ .name = "shards", .kind = &count_kind, .offset = AT(shards), .standard = "1", .min = 1, .max = 1024,
	  .value = "N", .doc = "independent logs, each with a thread; not to be changed for a folder that has data" },
	{ .name = "threads", .kind = &count_kind, .offset = AT(threads), .standard = "1", .min = 1, .max = 256,
	  .value = "N", .doc = "threads that serve connections" },
	{ .name = "node-id", .kind = &count_kind, .offset = AT(node_id), .standard = "0", .min = 0, .max = 1023,
	  .value = "N", .doc = "part of every id: no two servers that share work may have the same" },
	{ .name = "drain", .kind = &time_kind, .offset = AT(drain), .standard = "1s",
	  .value = "TIME", .doc = "when stopping: how long connected clients may still settle what they hold" },
	{ .name = "log-level", .kind = &word_kind, .offset = AT(log_level), .standard = "info", .words = levels,
	  .value = "debug|info|warn|error|off", .doc = "what is written to stderr" },
	{ .name = "log-format", .kind = &word_kind, .offset = AT(log_format), .standard = "logfmt", .words = formats,
	  .value = "logfmt|json", .doc = "how it is written" },
	{ .name = "insecure", .kind = &bool_kind, .offset = AT(insecure), .standard = "false",
	  .value = "", .doc = "allow addresses that other machines can reach: there is no login and no encryption" },
};

/* No settings: they have no variable and no default. */
static const struct action {
	const char *flag;
	size_t offset;
	const char *doc;
} actions[] = {
	{ "--print-config", AT(print_config), "print every setting as it is, and exit" },
	{ "--print-options-doc", AT(print_doc), "print docs/config.md, and exit" },
	{ "--help", AT(help), "print this, and exit" },
	{ "--version", AT(version), "print the version, and exit" },
};
/* clang-format on */

enum {
	N_OPTIONS = sizeof options / sizeof options[0],
	N_ACTIONS = sizeof actions / sizeof actions[0]
};

/* SLUICE_NODE_ID */
static const char *
variable(const struct option *o, char out[static NAME_MAX_BYTES])
{
	(void)snprintf(out, NAME_MAX_BYTES, "SLUICE_%s", o->name); /* ours: they fit */
	for (char *p = out; *p; p++) {
		if (*p >= 'a' && *p <= 'z')
			*p = (char)(*p - 'a' + 'A');
		if (*p == '-')
			*p = '_';
	}
	return out;
}

/* --- load --------------------------------------------------------------------- */

static int
set(struct conf *c, const struct option *o, const char *value, const char *source,
    struct slu_err *err)
{
	struct slu_err why;
	const int rc = o->kind->read(o, c, value, &why);

	return rc ? slu_fail(err, rc, "%s: %s", source, why.text) : 0;
}

static int
load_rest(struct conf *c, const bool *given, struct slu_err *err)
{
	char name[NAME_MAX_BYTES];

	for (unsigned i = 0; i < N_OPTIONS; i++) {
		const char *const value = getenv(variable(&options[i], name));
		int rc;

		if (given[i])
			continue;
		if (value)
			rc = set(c, &options[i], value, name, err);
		else
			rc = set(c, &options[i], options[i].standard, options[i].name, err);
		if (rc)
			return rc;
	}
	return 0;
}

/* The option that a word names, as --name or --name=value; or N_OPTIONS. */
static unsigned
find(const char *word, const char **value)
{
	for (unsigned i = 0; i < N_OPTIONS && strncmp(word, "--", 2) == 0; i++) {
		const size_t n = strlen(options[i].name);

		if (strncmp(word + 2, options[i].name, n) != 0)
			continue;
		if (word[2 + n] != '\0' && word[2 + n] != '=')
			continue;
		*value = word[2 + n] ? word + 3 + n : NULL;
		return i;
	}
	return N_OPTIONS;
}

static bool
take_action(struct conf *c, const char *word)
{
	for (unsigned i = 0; i < N_ACTIONS; i++) {
		if (strcmp(word, actions[i].flag) == 0) {
			*(bool *)(void *)((char *)c + actions[i].offset) = true;
			return true;
		}
	}
	return false;
}

static int
load_flags(struct conf *c, int argc, char **argv, bool *given, struct slu_err *err)
{
	for (int i = 1; i < argc; i++) {
		const char *const word = argv[i];
		const char *value = NULL;
		const unsigned at = find(word, &value);
		int rc;

		if (take_action(c, word))
			continue;
		if (at == N_OPTIONS)
			return slu_fail(err, SLU_EINVAL, "no option %s; see --help", word);
		if (!value && options[at].kind->flag)
			value = "true";
		if (!value && i + 1 < argc)
			value = argv[++i];
		if (!value)
			return slu_fail(err, SLU_EINVAL, "%s needs a value: %s", word,
					options[at].value);
		rc = set(c, &options[at], value, word, err);
		if (rc)
			return rc;
		given[at] = true;
	}
	return 0;
}

int
conf_load(struct conf *c, int argc, char **argv, struct slu_err *err)
{
	bool given[N_OPTIONS] = { 0 };
	int rc;

	*c = (struct conf){ 0 };
	rc = load_flags(c, argc, argv, given, err);
	return rc ? rc : load_rest(c, given, err);
}

void
conf_release(struct conf *c)
{
	mem_free(c->data);
	mem_free(c->engine);
	list_clear(&c->listen);
	*c = (struct conf){ 0 };
}

/* --- show --------------------------------------------------------------------- */

void
conf_help(FILE *out)
{
	for (unsigned i = 0; i < N_OPTIONS; i++)
		fprintf(out, "  --%s %s\n        %s (%s)\n", options[i].name, options[i].value,
			options[i].doc, options[i].standard);
	for (unsigned i = 0; i < N_ACTIONS; i++)
		fprintf(out, "  %s\n        %s\n", actions[i].flag, actions[i].doc);
}

void
conf_print(const struct conf *c, FILE *out)
{
	for (unsigned i = 0; i < N_OPTIONS; i++) {
		fprintf(out, "%s: ", options[i].name);
		options[i].kind->show(&options[i], c, out);
		fputc('\n', out);
	}
}

/* A value as a cell of a table: its bars would end the cell. */
static void
print_cell(const char *text, FILE *out)
{
	for (; *text; text++)
		fprintf(out, *text == '|' ? "\\%c" : "%c", *text);
}

void
conf_doc(FILE *out)
{
	char name[NAME_MAX_BYTES];

	fputs("# Settings of sluiced\n\n"
	      "Printed by `sluiced --print-options-doc`; a test holds this page to it.\n\n"
	      "A flag goes before the variable, the variable before the default.\n"
	      "`sluiced --print-config` shows what is in force.\n\n"
	      "| Flag | Variable | Default | What it is |\n"
	      "|---|---|---|---|\n",
	      out);
	for (unsigned i = 0; i < N_OPTIONS; i++) {
		const struct option *const o = &options[i];

		fprintf(out, "| `--%s%s", o->name, *o->value ? " " : "");
		print_cell(o->value, out);
		fprintf(out, "` | `%s` | `%s` | %s |\n", variable(o, name), o->standard, o->doc);
	}
	fputs("\nInstead of serving:\n\n| Flag | What it does |\n|---|---|\n", out);
	for (unsigned i = 0; i < N_ACTIONS; i++)
		fprintf(out, "| `%s` | %s |\n", actions[i].flag, actions[i].doc);
}
