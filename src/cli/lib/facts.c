#include "cli/lib/facts.h"

#include "base/base64.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "cli/lib/table.h"

enum {
	NAME_MAX_BYTES = 128,
	SHOWN_BYTES = 1024 /* bytes of a payload that are shown */
};

struct facts {
	struct text_table table;
	struct buf line; /* elements of an array that are shown */
};

static void
add(struct facts *f, const char *name, struct slice value)
{
	table_cell(&f->table, "%s", name);
	table_text(&f->table, value);
}

static void
add_payload(struct facts *f, const char *name, struct slice text)
{
	char bytes[SHOWN_BYTES + 4];
	const size_t most = base64_text(SHOWN_BYTES);
	const struct slice part = { text.p, text.n > most ? most : text.n };
	size_t n;

	if (base64_decode(part, bytes, &n, NULL))
		add(f, name, text);
	else
		add(f, name, (struct slice){ bytes, n });
}

static struct slice
scalar(struct json *in)
{
	return json_peek(in) == JSON_STRING ? json_text(in) : json_skip(in);
}

/* Prints an element of an array: its members on one line. */
static void
add_element(struct facts *f, struct json *in, const char *name)
{
	struct json_str member;

	if (json_peek(in) != JSON_OBJECT) {
		add(f, name, scalar(in));
		return;
	}
	buf_clear(&f->line);
	json_object(in);
	while (json_member(in, &member)) {
		const struct slice value = scalar(in);

		buf_printf(&f->line, "%s%.*s=%.*s", f->line.n ? " " : "", (int)member.raw.n,
			   member.raw.p, (int)value.n, value.p);
	}
	add(f, name, buf_slice(&f->line));
}

/* Prints the members of an inner object. Deeper objects are printed as JSON. */
static void
add_inner(struct facts *f, struct json *in, const char *prefix)
{
	char name[2 * NAME_MAX_BYTES];
	struct json_str member;

	json_object(in);
	while (json_member(in, &member)) {
		(void)snprintf(name, sizeof name, "%s.%.*s", prefix, (int)member.raw.n,
			       member.raw.p);
		add(f, name, scalar(in));
	}
}

static void
add_member(struct facts *f, struct json *in, const char *name)
{
	const enum json_type type = json_peek(in);

	if (type == JSON_OBJECT) {
		add_inner(f, in, name);
	} else if (type == JSON_ARRAY) {
		json_array(in);
		while (json_element(in))
			add_element(f, in, name);
	} else if (type == JSON_STRING && strcmp(name, "payload") == 0) {
		add_payload(f, name, json_text(in));
	} else {
		add(f, name, scalar(in));
	}
}

static void
read_document(struct facts *f, struct json *in)
{
	char name[NAME_MAX_BYTES];
	struct json_str member;
	bool has_topic = false;

	json_object(in);
	while (json_member(in, &member)) {
		(void)snprintf(name, sizeof name, "%.*s", (int)member.raw.n, member.raw.p);
		has_topic |= strcmp(name, "topic") == 0;
		if (has_topic && strcmp(name, "queue") == 0)
			continue; /* a second member of the same name is skipped */
		add_member(f, in, name);
	}
}

int
facts_print(struct slice document, bool colours, struct slu_err *err)
{
	static const char *const heads[] = { "FIELD", "VALUE" };
	char *room = mem_alloc(document.n + 1);
	struct facts f = { 0 };
	struct slu_err why;
	struct json in;
	int rc;

	if (!room)
		return slu_fail(err, SLU_ENOMEM, "no memory for the answer");
	table_init(&f.table, heads, 2, 0);
	buf_init(&f.line, SIZE_MAX);
	json_init(&in, document, JSON_DEPTH);
	json_room(&in, room, document.n);
	read_document(&f, &in);
	rc = json_end(&in, &why);
	if (rc)
		rc = slu_fail(err, SLU_EUNKNOWN, "malformed answer from the server: %s",
			      why.text);
	else if (table_print(&f.table, stdout, colours))
		rc = slu_fail(err, SLU_ENOMEM, "no memory for the answer");
	table_release(&f.table);
	buf_release(&f.line);
	mem_free(room);
	return rc;
}
