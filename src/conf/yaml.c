/*
 * yaml.c - turns libyaml's events into a flat list.
 */
#include "conf/yaml.h"

#include "base/mem.h"
#include "base/option/option.h"
#include "conf/slurp.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

/* An open mapping or sequence. */
struct yaml_level {
	bool list;
	bool keyed;    /* mapping: the key was read, its value comes next */
	unsigned next; /* list: index of the next item */
	size_t path;   /* length of the path of this level */
	bool empty;
};

struct yaml_reader {
	struct yaml_doc *doc;
	const char *file;
	struct conf_faults *faults;
	unsigned line;
	char path[YAML_PATH];
	size_t path_n;
	struct yaml_level levels[YAML_DEPTH];
	unsigned depth;
	unsigned documents;
	bool failed; /* stop reading */
};

static void
fail(struct yaml_reader *r, const char *why)
{
	faults_add(r->faults, "%s:%u: %s", r->file, r->line, why);
	r->failed = true;
}

/* --- entries ------------------------------------------------------------------ */

/* The length of the variable name before }, or 0 if it is invalid. */
static size_t
name_length(const char *p)
{
	const size_t n = strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

	return p[n] == '}' && !(p[0] >= '0' && p[0] <= '9') ? n : 0;
}

/* Appends the variable whose name begins at p, behind "${". Returns the place behind }. */
static const char *
expand_one(struct yaml_reader *r, const char *p, struct buf *out)
{
	const size_t n = name_length(p);
	char name[OPTION_NAME];
	const char *value;

	if (n == 0 || n >= sizeof name) {
		faults_add(r->faults, "%s:%u: %s: invalid variable; expected ${NAME}, or $${ for ${",
			   r->file, r->line, r->path);
		return p;
	}
	memcpy(name, p, n);
	name[n] = '\0';
	value = getenv(name);
	if (value)
		buf_puts(out, value);
	else
		faults_add(r->faults, "%s:%u: %s: unknown environment variable %s",
			   r->file, r->line, r->path, name);
	return p + n + 1;
}

/* YAML-3. NULL after a fault. */
static char *
expand(struct yaml_reader *r, const char *p)
{
	const unsigned before = r->faults->n + r->faults->more;
	struct buf out;
	char *copy = NULL;

	buf_init(&out, OPTION_VALUE);
	while (*p) {
		if (strncmp(p, "$${", 3) == 0) {
			buf_puts(&out, "${");
			p += 3;
		} else if (strncmp(p, "${", 2) == 0) {
			p = expand_one(r, p + 2, &out);
		} else {
			buf_putc(&out, *p++);
		}
	}
	if (!out.failed && r->faults->n + r->faults->more == before)
		copy = mem_strdup(buf_str(&out));
	if (!copy && r->faults->n + r->faults->more == before)
		faults_add(r->faults, "%s:%u: %s: value too long (more than %d bytes), or out of memory",
			   r->file, r->line, r->path, OPTION_VALUE);
	buf_release(&out);
	return copy;
}

static void
add_entry(struct yaml_reader *r, enum yaml_kind kind, const char *value)
{
	struct yaml_doc *const d = r->doc;
	struct yaml_entry e = { .kind = kind, .line = r->line };

	if (d->n == YAML_ENTRIES) {
		fail(r, "too many values in the file");
		return;
	}
	if (kind == YAML_VALUE) {
		e.value = expand(r, value);
		if (!e.value)
			return;
	}
	e.path = mem_strdup(r->path);
	if (!e.path || !mem_room(&d->entries, &d->size, d->n + 1, sizeof *d->entries)) {
		mem_free(e.path);
		mem_free(e.value);
		fail(r, "out of memory");
		return;
	}
	d->entries[d->n++] = e;
}

/* --- paths -------------------------------------------------------------------- */

static void SLU_PRINTF(2, 3)
	extend_path(struct yaml_reader *r, const char *fmt, ...)
{
	const size_t room = sizeof r->path - r->path_n;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(r->path + r->path_n, room, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= room) {
		r->path[r->path_n] = '\0';
		fail(r, "key too long");
		return;
	}
	r->path_n += (size_t)n;
}

static void
cut_path(struct yaml_reader *r, size_t n)
{
	r->path_n = n;
	r->path[n] = '\0';
}

/* A node begins: an item of a list extends the path. */
static void
begin_node(struct yaml_reader *r)
{
	struct yaml_level *const top = r->depth ? &r->levels[r->depth - 1] : NULL;

	if (!top)
		return;
	top->empty = false;
	if (top->list)
		extend_path(r, "[%u]", top->next++);
}

static void
end_node(struct yaml_reader *r)
{
	struct yaml_level *const top = r->depth ? &r->levels[r->depth - 1] : NULL;

	cut_path(r, top ? top->path : 0);
	if (top)
		top->keyed = false;
}

static bool
wants_key(const struct yaml_reader *r)
{
	const struct yaml_level *const top = r->depth ? &r->levels[r->depth - 1] : NULL;

	return top && !top->list && !top->keyed;
}

static void
take_key(struct yaml_reader *r, const char *name)
{
	struct yaml_level *const top = &r->levels[r->depth - 1];
	const char *const separator = r->doc->separator ? r->doc->separator : ".";

	top->keyed = true;
	extend_path(r, "%s%s", r->path_n ? separator : "", name);
}

/* --- events ------------------------------------------------------------------- */

/* YAML-1. */
static bool
is_nothing(const yaml_event_t *e)
{
	const char *const text = (const char *)e->data.scalar.value;

	return e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (!*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0);
}

static void
take_scalar(struct yaml_reader *r, const yaml_event_t *e)
{
	const char *const text = (const char *)e->data.scalar.value;

	if (strlen(text) != e->data.scalar.length) {
		fail(r, "invalid value: NUL byte");
		return;
	}
	if (wants_key(r)) {
		take_key(r, text);
		return;
	}
	if (r->depth == 0) {
		if (!is_nothing(e)) /* a file of comments alone is fine */
			fail(r, "expected keys and values, as in \"data: /var/lib/sluice\"");
		return;
	}
	begin_node(r);
	add_entry(r, is_nothing(e) ? YAML_NOTHING : YAML_VALUE, text);
	end_node(r);
}

static void
open_level(struct yaml_reader *r, bool list)
{
	if (wants_key(r)) {
		fail(r, "invalid key; expected a plain word");
		return;
	}
	if (r->depth == 0 && list) {
		fail(r, "expected keys and values, not a list");
		return;
	}
	if (r->depth == YAML_DEPTH) {
		fail(r, "too many levels");
		return;
	}
	begin_node(r);
	r->levels[r->depth++] = (struct yaml_level){
		.list = list, .path = r->path_n, .empty = true
	};
}

static void
close_level(struct yaml_reader *r)
{
	const struct yaml_level *const top = &r->levels[--r->depth];

	if (top->empty && r->depth > 0)
		add_entry(r, top->list ? YAML_EMPTY_LIST : YAML_NOTHING, NULL);
	end_node(r);
}

/* YAML-2. */
static bool
has_tag(const yaml_event_t *e)
{
	switch (e->type) {
	case YAML_SCALAR_EVENT:
		return e->data.scalar.tag;
	case YAML_SEQUENCE_START_EVENT:
		return e->data.sequence_start.tag;
	case YAML_MAPPING_START_EVENT:
		return e->data.mapping_start.tag;
	default:
		return false;
	}
}

static void
take_event(struct yaml_reader *r, const yaml_event_t *e)
{
	if (has_tag(e)) {
		fail(r, "tags (!name) are not supported");
		return;
	}
	switch (e->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (++r->documents > 1)
			fail(r, "expected one document, not a second after ---");
		break;
	case YAML_ALIAS_EVENT:
		fail(r, "aliases (*name) are not supported; quote a value that begins with *");
		break;
	case YAML_SCALAR_EVENT:
		take_scalar(r, e);
		break;
	case YAML_SEQUENCE_START_EVENT:
		open_level(r, true);
		break;
	case YAML_MAPPING_START_EVENT:
		open_level(r, false);
		break;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		close_level(r);
		break;
	default:
		break;
	}
}

static void
parse_failed(struct yaml_reader *r, const yaml_parser_t *p)
{
	r->line = (unsigned)p->problem_mark.line + 1;
	faults_add(r->faults, "%s:%u: invalid YAML: %s%s%s", r->file, r->line,
		   p->problem ? p->problem : "out of memory", p->context ? " " : "",
		   p->context ? p->context : "");
	r->failed = true;
}

static void
parse_all(struct yaml_reader *r, yaml_parser_t *p)
{
	bool done = false;

	while (!done && !r->failed) {
		yaml_event_t e;

		if (!yaml_parser_parse(p, &e)) {
			parse_failed(r, p);
			return;
		}
		r->line = (unsigned)e.start_mark.line + 1;
		done = e.type == YAML_STREAM_END_EVENT;
		take_event(r, &e);
		yaml_event_delete(&e);
	}
}

void
yaml_read(struct yaml_doc *d, const char *file, struct slice text,
	  struct conf_faults *faults)
{
	struct yaml_reader r = { .doc = d, .file = file, .faults = faults, .line = 1 };
	yaml_parser_t p;

	if (!yaml_parser_initialize(&p)) {
		fail(&r, "out of memory");
		return;
	}
	yaml_parser_set_input_string(&p, (const unsigned char *)text.p, text.n);
	parse_all(&r, &p);
	yaml_parser_delete(&p);
}

void
yaml_load(struct yaml_doc *d, const char *file, struct conf_faults *faults)
{
	struct slu_err err;
	struct buf text;

	buf_init(&text, YAML_BYTES);
	if (slurp(file, &text, &err))
		faults_add(faults, "%s", err.text);
	else
		yaml_read(d, file, (struct slice){ buf_str(&text), text.n }, faults);
	buf_release(&text);
}

void
yaml_release(struct yaml_doc *d)
{
	for (unsigned i = 0; i < d->n; i++) {
		mem_free(d->entries[i].path);
		mem_free(d->entries[i].value);
	}
	mem_free(d->entries);
	*d = (struct yaml_doc){ 0 };
}
