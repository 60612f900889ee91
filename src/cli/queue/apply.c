/*
 * apply.c - `sluice queue apply`: sets the knobs of queues from a file.
 *
 *      file ──> wishes ──> for each: what it is, what it would be (dry_run) ──> difference
 *                                                                                   │
 *      nothing is set before the whole file is checked                    PUT <─────┘
 *
 * A queue gets the knobs of the file, and the defaults of the other knobs. Queues that the file
 * does not name do not change. The server parses the knobs, so only the server has their rules.
 */
#include "cli/lib/knobs.h"
#include "cli/lib/json_line.h"
#include "cli/lib/session.h"

#include "base/json/json_out.h"
#include "base/mem.h"
#include "conf/yaml.h"

#include <assert.h>
#include <strings.h>

/* A queue of the file. */
struct queue_wish {
	char *space, *queue;
	unsigned line;
	unsigned from, to; /* the range of its entries in the document */
	bool there;
	bool differs;
	struct knobs is, would;
};

struct plan {
	struct session s;
	const char *file;
	bool dry;
	struct yaml_doc doc;
	struct conf_faults faults;
	struct queue_wish *wishes;
	unsigned n;
};

/* --- the file ----------------------------------------------------------------- */

static bool
same_queue(const struct queue_wish *w, struct slice space, struct slice queue)
{
	return strlen(w->space) == space.n && strncasecmp(w->space, space.p, space.n) == 0 &&
	       strlen(w->queue) == queue.n && strncasecmp(w->queue, queue.p, queue.n) == 0;
}

static char *
copy(struct slice text)
{
	char *const out = mem_alloc(text.n + 1);

	if (out) {
		memcpy(out, text.p, text.n);
		out[text.n] = '\0';
	}
	return out;
}

/* Splits "namespace/queue/rest". Returns false if the path has no queue. */
static bool
split(const char *path, struct slice *space, struct slice *queue, const char **rest)
{
	const char *const first = strchr(path, '/'), *const second = first ? strchr(first + 1, '/') : NULL;

	if (!first)
		return false;
	*space = (struct slice){ path, (size_t)(first - path) };
	*queue = second ? (struct slice){ first + 1, (size_t)(second - first - 1) }
			: slice_of(first + 1);
	*rest = second ? second + 1 : "";
	return space->n > 0 && queue->n > 0;
}

static int
add_wish(struct plan *p, struct slice space, struct slice queue, unsigned entry)
{
	struct queue_wish *const more = mem_realloc(p->wishes, (p->n + 1) * sizeof *more);

	if (!more)
		return SLU_ENOMEM;
	p->wishes = more;
	more[p->n] = (struct queue_wish){
		.space = copy(space),
		.queue = copy(queue),
		.line = p->doc.entries[entry].line,
		.from = entry,
		.to = entry,
	};
	p->n++;
	return more[p->n - 1].space && more[p->n - 1].queue ? 0 : SLU_ENOMEM;
}

static void
check_twice(struct plan *p, struct slice space, struct slice queue, unsigned line)
{
	assert(p->wishes || p->n == 0);
	for (unsigned i = 0; i < p->n; i++)
		if (same_queue(&p->wishes[i], space, queue))
			faults_add(&p->faults, "%s:%u: queue %.*s of namespace %.*s is named twice, first in "
					       "line %u",
				   p->file, line, (int)queue.n, queue.p, (int)space.n, space.p,
				   p->wishes[i].line);
}

static int
take_entry(struct plan *p, unsigned i)
{
	const struct yaml_entry *const e = &p->doc.entries[i];
	struct queue_wish *const last = p->n ? &p->wishes[p->n - 1] : NULL;
	struct slice space, queue;
	const char *rest;
	int rc = 0;

	if (!split(e->path, &space, &queue, &rest) ||
	    (e->kind == YAML_VALUE && !*rest) || e->kind == YAML_EMPTY_LIST || strchr(e->path, '[')) {
		if (e->kind != YAML_NOTHING || strchr(e->path, '/'))
			faults_add(&p->faults, "%s:%u: invalid entry %s; expected NAMESPACE: QUEUE: KNOB: VALUE",
				   p->file, e->line, e->path);
		return 0;
	}
	if (!last || !same_queue(last, space, queue)) {
		check_twice(p, space, queue, e->line);
		rc = add_wish(p, space, queue, i);
	}
	if (!rc)
		p->wishes[p->n - 1].to = i + 1;
	return rc;
}

static int
read_file(struct plan *p, struct slu_err *err)
{
	int rc = 0;

	p->doc.separator = "/";
	yaml_load(&p->doc, p->file, &p->faults);
	for (unsigned i = 0; i < p->doc.n && !rc; i++)
		rc = take_entry(p, i);
	return rc ? slu_fail(err, SLU_ENOMEM, "%s: out of memory", p->file) : 0;
}

/* --- what a queue is to be ---------------------------------------------------- */

/* The knob of an entry: "retry.base" for retry/base. */
static const char *
knob_of(const struct yaml_entry *e, char out[static KNOB_NAME])
{
	struct slice space, queue;
	const char *rest = "";

	(void)split(e->path, &space, &queue, &rest);
	(void)snprintf(out, KNOB_NAME, "%s", rest);
	for (char *c = out; *c; c++)
		if (*c == '/')
			*c = '.';
	return out;
}

/* Entries of one group ("retry.") follow each other in the file. */
static void
write_body(const struct plan *p, const struct queue_wish *w, struct buf *out)
{
	char name[KNOB_NAME], group[KNOB_NAME] = "";
	struct json_out json;

	json_out_open(&json, out);
	for (unsigned i = w->from; i < w->to; i++) {
		const struct yaml_entry *const e = &p->doc.entries[i];
		char *dot;

		if (e->kind != YAML_VALUE)
			continue;
		(void)knob_of(e, name);
		dot = strchr(name, '.');
		if (dot)
			*dot = '\0';
		if (group[0] && (!dot || strcmp(group, name) != 0))
			json_out_close(&json);
		if (dot && strcmp(group, name) != 0)
			json_out_object(&json, name);
		(void)snprintf(group, sizeof group, "%s", dot ? name : "");
		knob_write(&json, dot ? dot + 1 : name, e->value);
	}
	if (group[0])
		json_out_close(&json);
	json_out_close(&json);
}

static int
put(struct plan *p, const struct queue_wish *w, bool dry, struct slice *answer, struct slu_err *err)
{
	struct cli_query *const q = &p->s.query;
	struct buf body;
	int rc;

	buf_init(&body, 64 * 1024);
	write_body(p, w, &body);
	query_queue(q, "/v1/admin/queue/policy", w->space, w->queue);
	http_param(&q->path, "dry_run", dry ? "true" : NULL);
	rc = query_put(q, buf_slice(&body), answer, err);
	buf_release(&body);
	return rc;
}

static bool
is_part(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/* Does the text contain the word as a whole? */
static bool
has_word(const char *text, const char *word)
{
	const size_t n = strlen(word);

	for (const char *at = strstr(text, word); n && at; at = strstr(at + 1, word))
		if ((at == text || !is_part(at[-1])) && !is_part(at[n]))
			return true;
	return false;
}

/* The line of the knob that the server names, or of the queue. */
static unsigned
line_of(const struct plan *p, const struct queue_wish *w, const char *why)
{
	char name[KNOB_NAME];

	for (unsigned i = w->from; i < w->to; i++) {
		const char *const last = strrchr(knob_of(&p->doc.entries[i], name), '.');

		if (has_word(why, last ? last + 1 : name))
			return p->doc.entries[i].line;
	}
	return w->line;
}

/* Removes the position in the JSON from the server's text: the user did not write that JSON. */
static void
cut_place(char *why)
{
	char *const place = strstr(why, " (line ");

	const char *const end = place ? strchr(place, ')') : NULL;

	if (end && !end[1])
		*place = '\0';
}

/* Reads the current knobs. A queue that does not exist has the defaults. */
static int
ask_current(struct plan *p, struct queue_wish *w, struct slu_err *err)
{
	struct cli_query *const q = &p->s.query;
	struct slice answer;
	int rc;

	query_path(q, "/v1/admin/queue");
	http_param(&q->path, "namespace", w->space);
	http_param(&q->path, "queue", w->queue);
	rc = query_get(q, &answer, err);
	w->there = rc == 0;
	if (!rc)
		return knobs_read(&w->is, answer, "policy", err);
	if (rc != SLU_ENOTFOUND)
		return rc;
	query_queue(q, "/v1/admin/queue/policy", w->space, w->queue);
	rc = query_get(q, &answer, err);
	return rc ? rc : knobs_read(&w->is, answer, NULL, err);
}

static bool
is_same(const struct queue_wish *w)
{
	for (unsigned i = 0; i < w->would.n; i++) {
		const char *const is = knobs_find(&w->is, w->would.rows[i].name);

		if (!is || strcmp(is, w->would.rows[i].value) != 0)
			return false;
	}
	return true;
}

/* Knobs that the server refuses are a fault of the file. */
static int
look_at(struct plan *p, struct queue_wish *w, struct slu_err *err)
{
	struct slice answer;
	int rc = put(p, w, true, &answer, err);

	if (rc == SLU_EINVAL) {
		cut_place(err->text);
		faults_add(&p->faults, "%s:%u: queue %s of namespace %s: %s", p->file,
			   line_of(p, w, err->text), w->queue, w->space, err->text);
		return 0;
	}
	if (!rc)
		rc = knobs_read(&w->would, answer, NULL, err);
	if (!rc)
		rc = ask_current(p, w, err);
	w->differs = !w->there || !is_same(w);
	return rc;
}

/* --- the difference ----------------------------------------------------------- */

static bool
is_named(const struct plan *p, const struct queue_wish *w, const char *knob)
{
	char name[KNOB_NAME];

	for (unsigned i = w->from; i < w->to; i++)
		if (strcmp(knob_of(&p->doc.entries[i], name), knob) == 0)
			return true;
	return false;
}

static void
print_difference(const struct plan *p, const struct queue_wish *w)
{
	if (!w->there)
		printf("+ %s/%s\n", w->space, w->queue);
	for (unsigned i = 0; i < w->would.n; i++) {
		const struct knob *const k = &w->would.rows[i];
		const char *const old = knobs_find(&w->is, k->name);
		const struct slice is = knob_text(old ? old : "-"), would = knob_text(k->value);

		if (old && strcmp(old, k->value) == 0)
			continue;
		if (!w->there)
			printf("+ %s/%s %s: %.*s\n", w->space, w->queue, k->name, (int)would.n, would.p);
		else
			printf("%c %s/%s %s: %.*s -> %.*s\n", is_named(p, w, k->name) ? '~' : '-', w->space,
			       w->queue, k->name, (int)is.n, is.p, (int)would.n, would.p);
	}
}

static void
print_json(const struct queue_wish *w)
{
	struct json_line l;
	struct json_out *const j = json_line_begin(&l);

	json_out_str(j, "namespace", slice_of(w->space));
	json_out_str(j, "queue", slice_of(w->queue));
	json_out_str(j, "change", slice_of(!w->there ? "created" : w->differs ? "changed"
									      : "none"));
	json_out_object(j, "knobs");
	for (unsigned i = 0; i < w->would.n; i++) {
		const struct knob *const k = &w->would.rows[i];
		const char *const old = knobs_find(&w->is, k->name);

		if (old && strcmp(old, k->value) == 0)
			continue;
		json_out_object(j, k->name);
		json_out_raw(j, "old", slice_of(old ? old : "null"));
		json_out_raw(j, "new", slice_of(k->value));
		json_out_close(j);
	}
	json_out_close(j);
	json_line_end(&l, stdout);
}

/* Sets the queues and prints each one. */
static int
carry_out(struct plan *p, bool dry, struct slu_err *err)
{
	unsigned made = 0, changed = 0;

	for (unsigned i = 0; i < p->n; i++) {
		const struct queue_wish *const w = &p->wishes[i];
		struct slice answer;
		const int rc = w->differs && !dry ? put(p, w, false, &answer, err) : 0;

		if (rc)
			return rc;
		if (p->s.json)
			print_json(w);
		else
			print_difference(p, w);
		made += !w->there;
		changed += w->there && w->differs;
	}
	if (!p->s.json)
		printf("%u queues: %u %screated, %u %schanged, %u as the file says\n", p->n, made,
		       dry ? "to be " : "", changed, dry ? "to be " : "", p->n - made - changed);
	return 0;
}

/* --- the command -------------------------------------------------------------- */

static void
tell_faults(struct plan *p)
{
	for (unsigned i = 0; i < p->faults.n; i++)
		(void)session_usage(&p->s, "%s", p->faults.items[i]);
	if (p->faults.more)
		(void)session_usage(&p->s, "and %u more", p->faults.more);
	session_note(&p->s, "nothing was changed");
}

static int
apply(struct plan *p, bool dry, struct slu_err *err)
{
	int rc = read_file(p, err);

	for (unsigned i = 0; i < p->n && !rc; i++)
		rc = look_at(p, &p->wishes[i], err);
	if (!rc && faults_any(&p->faults))
		tell_faults(p);
	else if (!rc)
		rc = carry_out(p, dry, err);
	return rc;
}

static void
release(struct plan *p)
{
	for (unsigned i = 0; i < p->n; i++) {
		mem_free(p->wishes[i].space);
		mem_free(p->wishes[i].queue);
	}
	mem_free(p->wishes);
	yaml_release(&p->doc);
	faults_release(&p->faults);
}

static int
run(struct session *s, struct slu_err *err)
{
	struct plan *const p = (void *)s;
	int rc;

	if (!p->file)
		return session_usage(&p->s, "missing file: -f FILE");
	rc = apply(p, p->dry, err);
	release(p);
	return rc;
}

const struct command cli_queue_apply = {
	.name = "queue apply",
	.summary = "create and change queues from a file",
	.usage = "-f FILE [options]",
	.text = "Creates and changes queues from a YAML or JSON file: namespaces, their queues, and the\n"
		"knobs of each queue. Knobs that the file does not name get their defaults; queues that\n"
		"it does not name do not change. Prints a line for each difference: + a new queue or\n"
		"knob, ~ a changed knob, - a knob that goes back to its default. If anything in the\n"
		"file is invalid, nothing is changed. `sluice queue export` writes such a file.\n",
	.examples = "  sluice queue apply -f queues.yaml --dry-run\n"
		    "  sluice queue apply -f queues.yaml\n",
	.options = CLI_SERVER,
	CLI_ARGS({ "-f FILE", ARG_TEXT, AT(plan, file), "file with queues and knobs" },
		 { "--dry-run", ARG_FLAG, AT(plan, dry), "print the difference and change nothing" }),
	.size = sizeof(struct plan),
	.run = run,
};
