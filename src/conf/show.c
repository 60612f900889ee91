#include "conf/show.h"

#include "base/json/json_out.h"
#include "base/parse.h"
#include "conf/options.h"

#include <inttypes.h>

static const char mask[] = "***";

static const char *
origin(const struct option_set *s, unsigned i)
{
	return s->origins[i] ? s->origins[i] : "default";
}

void
show_value(const struct option_set *s, unsigned i, struct buf *out)
{
	const struct option *const o = &s->rows[i];
	const size_t before = out->n;

	o->kind->show(o, option_place(s, i), out);
	if (!o->kind->secret || out->n == before)
		return;
	explicit_bzero(out->p + before, out->n - before);
	out->n = before;
	buf_puts(out, mask);
}

/* --- YAML --------------------------------------------------------------------- */

/* True if YAML reads these bytes as text without quotes. */
static bool
is_plain(struct slice s)
{
	static const char first[] = "./", later[] = "._/:,=%+@-";

	if (s.n == 0 || s.p[s.n - 1] == ':' || slice_eq(s, SLICE("null")))
		return false;
	for (size_t i = 0; i < s.n; i++) {
		const char c = s.p[i];
		const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
				    (c >= '0' && c <= '9');

		if (!letter && (!c || !strchr(i ? later : first, c)))
			return false;
	}
	return true;
}

static void
print_value(const struct option_set *s, unsigned i, struct buf *line)
{
	struct json_out w;
	struct buf text;

	buf_init(&text, OPTION_SHOWN);
	show_value(s, i, &text);
	if (is_plain(buf_slice(&text)) || (text.n > 0 && s->rows[i].kind->secret)) {
		buf_puts(line, buf_str(&text));
	} else {
		json_out_init(&w, line); /* YAML reads JSON's quotes and escapes */
		json_out_str(&w, NULL, buf_slice(&text));
		json_out_end(&w);
	}
	buf_release(&text);
}

void
show_values(const struct option_set *s, FILE *out)
{
	for (unsigned i = 0; i < s->n; i++) {
		struct buf line;

		buf_init(&line, 2 * OPTION_SHOWN);
		buf_printf(&line, "%s: ", s->rows[i].key);
		print_value(s, i, &line);
		fprintf(out, "%s%-39s # %s\n", s->rows[i].no_file ? "# " : "", buf_str(&line),
			origin(s, i));
		buf_release(&line);
	}
}

/* --- JSON --------------------------------------------------------------------- */

static void
put_list(struct json_out *w, const struct conf_list *l)
{
	json_out_array(w, "value");
	for (unsigned i = 0; i < l->n; i++)
		json_out_str(w, NULL, slice_of(l->items[i]));
	json_out_close(w);
}

static void
put_json_value(const struct option_set *s, unsigned i, struct json_out *w)
{
	const enum option_shape shape = s->rows[i].kind->shape;
	struct buf text;

	buf_init(&text, OPTION_SHOWN);
	show_value(s, i, &text);
	if (shape == SHAPE_LIST)
		put_list(w, option_place(s, i));
	else if (shape == SHAPE_BARE)
		json_out_raw(w, "value", buf_slice(&text));
	else if (text.n == 0)
		json_out_null(w, "value");
	else
		json_out_str(w, "value", buf_slice(&text));
	buf_release(&text);
}

void
show_json(const struct option_set *s, struct buf *out)
{
	struct json_out w;

	json_out_open(&w, out);
	for (unsigned i = 0; i < s->n; i++) {
		json_out_object(&w, s->rows[i].key);
		put_json_value(s, i, &w);
		json_out_str(&w, "from", slice_of(origin(s, i)));
		json_out_str(&w, "kind", slice_of(s->rows[i].kind->name));
		json_out_bool(&w, "reload", s->rows[i].reload);
		json_out_bool(&w, "secret", s->rows[i].kind->secret);
		json_out_close(&w);
	}
	json_out_finish(&w);
}

/* --- help and docs ------------------------------------------------------------ */

void
show_help(const struct option_set *s, const struct option_action *actions, FILE *out)
{
	char flag[OPTION_NAME];

	for (unsigned i = 0; i < s->n; i++) {
		const struct option *const o = &s->rows[i];

		fprintf(out, "  --%s%s %s\n        %s", option_flag(o, flag),
			o->kind->secret ? "-file" : "", o->kind->secret ? "FILE" : o->value,
			o->doc);
		if (*o->standard)
			fprintf(out, " (%s)", o->standard);
		fputc('\n', out);
	}
	for (const struct option_action *a = actions; a->flag; a++)
		fprintf(out, "  %s\n        %s\n", a->flag, a->doc);
}

/* Print the cell of a table: escapes bars, which would end the cell. */
static void
print_cell(const char *text, FILE *out)
{
	for (; *text; text++)
		fprintf(out, *text == '|' ? "\\%c" : "%c", *text);
}

/* "number, 1 to 64" */
static void
print_kind(const struct option *o, FILE *out)
{
	char low[DURATION_TEXT], high[DURATION_TEXT];

	fputs(o->kind->name, out);
	if (o->kind == &count_kind)
		fprintf(out, ", %" PRIu64 " to %" PRIu64, o->min, o->max);
	if (o->kind == &size_kind)
		fprintf(out, ", %s to %s", format_size(o->min, low, sizeof low),
			format_size(o->max, high, sizeof high));
	if (o->kind == &time_kind && o->max)
		fprintf(out, ", %s to %s", format_duration((slu_time)o->min, low, sizeof low),
			format_duration((slu_time)o->max, high, sizeof high));
}

static void
print_row(const struct option *o, FILE *out)
{
	char flag[OPTION_NAME], variable[OPTION_NAME];
	const char *const value = o->kind->secret ? "FILE" : o->value;

	if (o->no_file)
		fputs("| ", out);
	else
		fprintf(out, "| `%s` ", o->key);
	fprintf(out, "| `--%s%s%s", option_flag(o, flag), o->kind->secret ? "-file" : "",
		*value ? " " : "");
	print_cell(value, out);
	fprintf(out, "` | `%s`", option_variable(o, variable));
	if (o->kind->secret)
		fprintf(out, ", `%s_FILE`", variable);
	fputs(" | ", out);
	print_kind(o, out);
	fprintf(out, " | %s%s%s | %s | %s |\n", *o->standard ? "`" : "", o->standard,
		*o->standard ? "`" : "", o->reload ? "yes" : "", o->doc);
}

void
show_doc(const struct option_set *s, const struct option_action *actions, FILE *out)
{
	fputs("# Settings of sluiced\n\n"
	      "Printed by `sluiced --print-options-doc`; a test compares this page with it.\n\n"
	      "A flag wins over the variable, the variable over the file, the file over the default.\n"
	      "`sluiced --print-config` shows every value and its source; `--check-config` lists all\n"
	      "faults, with file and line.\n\n"
	      "A time is `20s`, `1h30m`, `100ms`; a size is `512K`, `64M`, `1G`. In the YAML file,\n"
	      "`log.level: debug` and `log:` with `level: debug` below it are the same. A list is a\n"
	      "YAML list, or one value with commas. `${NAME}` becomes the value of that environment\n"
	      "variable. A secret comes from its variable or from a file (`SLUICE_..._FILE`, the flag,\n"
	      "or the key with the suffix `_file`), and no output shows it. *Reload*: SIGHUP changes\n"
	      "the value in a running server ([operations.md](operations.md)).\n\n"
	      "| Key | Flag | Variable | Kind | Default | Reload | What it is |\n"
	      "|---|---|---|---|---|---|---|\n",
	      out);
	for (unsigned i = 0; i < s->n; i++)
		print_row(&s->rows[i], out);
	fputs("\nInstead of serving:\n\n| Flag | What it does |\n|---|---|\n", out);
	for (const struct option_action *a = actions; a->flag; a++)
		fprintf(out, "| `%s` | %s |\n", a->flag, a->doc);
}
