/*
 * children.c - the messages that a command enqueues with the ack of its own: lines of JSON on descriptor 3, or with
 * --lines the list `enqueue` of its answer.
 *
 *      {"queue":"mail","text":"thanks"}
 *      {"queue":"bill","json":{"n":1},"delay":"1h"}
 *
 * become the list `enqueue` of the ack. A message without a namespace goes to the namespace of the worker.
 *
 *      {"checkpoint":{"row":250000}}
 *
 * on descriptor 3 is no message, but how far the command has come.
 */
#include "cli/work/work.h"

#include "base/json/json.h"
#include "base/json/json_out.h"
#include "base/json/json_table.h"

#define BLANKS " \t\r"

struct child_message {
	struct slice namespace;
};

struct child_progress {
	struct slice checkpoint;
};

static int
check_object(struct slice object, bool *named, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELD(raw, struct child_message, namespace),
	};
	struct child_message m = { 0 };
	struct json r;

	json_init(&r, object, JSON_DEPTH - 2);
	json_fields(&r, fields, COUNT(fields), JSON_LENIENT, &m);
	*named = m.namespace.n > 0;
	return json_end(&r, err);
}

/* Adds an object that has no namespace. */
static void
put_with(struct buf *out, struct slice object, const char *space)
{
	const struct slice members = slice_trim((struct slice){ object.p + 1, object.n - 2 }, BLANKS);
	struct json_out w;

	json_out_open(&w, out);
	json_out_str(&w, "namespace", slice_of(space));
	if (members.n)
		buf_putc(out, ',');
	buf_put(out, members.p, members.n);
	json_out_finish(&w);
}

/* Adds one message to the list. Returns SLU_EINVAL if it is not a JSON object. */
static int
add(struct buf *out, struct slice object, const char *space, struct slu_err *err)
{
	bool named;
	const int rc = check_object(object, &named, err);

	if (rc)
		return rc;
	buf_putc(out, out->n ? ',' : '[');
	if (named)
		buf_put(out, object.p, object.n);
	else
		put_with(out, object, space);
	return 0;
}

static int
end(struct buf *out, struct slu_err *err)
{
	if (out->n)
		buf_putc(out, ']');
	return out->failed ? slu_fail(err, SLU_ENOMEM, "no memory for messages") : 0;
}

int
children_take_lines(struct slice lines, const char *space, struct buf *out, struct slu_err *err)
{
	struct slu_err why = { 0 };
	unsigned number = 0;
	struct slice line;

	while (lines.n > 0) {
		(void)slice_cut(&lines, '\n', &line); /* the last line may have no newline */
		line = slice_trim(line, BLANKS);
		number++;
		if (line.n > 0 && add(out, line, space, &why))
			return slu_fail(err, SLU_EINVAL, "invalid line %u on descriptor 3: %.150s", number, why.text);
	}
	return end(out, err);
}

int
children_take_list(struct slice list, const char *space, struct buf *out, struct slu_err *err)
{
	struct json r;
	int rc = 0;

	if (list.n == 0)
		return 0;
	json_init(&r, list, JSON_DEPTH);
	json_array(&r);
	while (json_element(&r)) {
		const struct slice one = json_skip(&r);

		rc = rc || r.state == JSON_FAILED ? rc : add(out, one, space, err);
	}
	if (!rc)
		rc = json_end(&r, err);
	return rc ? rc : end(out, err);
}

/* ---- Checkpoints ---- */

/* The value of the member `checkpoint` of a line; n 0: it has none, or is no JSON object. */
static struct slice
checkpoint_of(struct slice line)
{
	static const struct json_field fields[] = {
		JSON_FIELD(raw, struct child_progress, checkpoint),
	};
	struct child_progress found = { 0 };
	struct json r;

	json_init(&r, line, JSON_DEPTH);
	json_fields(&r, fields, COUNT(fields), JSON_LENIENT, &found);
	if (json_end(&r, NULL))
		return (struct slice){ 0 };
	return found.checkpoint;
}

static void
keep_last(struct buf *out, struct slice checkpoint)
{
	buf_clear(out);
	buf_put(out, checkpoint.p, checkpoint.n);
}

void
children_take_checkpoints(struct buf *written, size_t *seen, bool whole, struct buf *out)
{
	while (*seen < written->n) {
		struct slice rest = { written->p + *seen, written->n - *seen }, line;
		const bool ended = slice_cut(&rest, '\n', &line);
		const struct slice checkpoint = ended || whole ? checkpoint_of(slice_trim(line, BLANKS)) : (struct slice){ 0 };

		if (!ended && !whole)
			return;
		if (checkpoint.n == 0) {
			*seen = written->n - rest.n;
			continue;
		}
		keep_last(out, checkpoint);
		memmove(written->p + *seen, rest.p, rest.n);
		written->n = *seen + rest.n;
	}
}
