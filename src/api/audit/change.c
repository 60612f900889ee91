#include "api/audit/change.h"

#include "base/json/json.h"

#define MORE ",\"more\":true"

enum {
	ROOM = 16 << 10 /* bytes of a side before its members are compared */
};

bool
change_begin(struct apicall *a, struct change_note *n)
{
	a->change = (struct apicall_change){ 0 };
	if (!a->api->audit)
		return false;
	buf_init(&n->was, ROOM);
	buf_init(&n->is, ROOM);
	json_out_open(&n->before, &n->was);
	json_out_open(&n->after, &n->is);
	return true;
}

/* The value of a member of an object that is well formed; n 0: it has none. */
static struct slice
value_of(struct slice object, const struct json_str *wanted)
{
	struct slice found = { 0 };
	struct json_str name;
	struct json r;

	json_init(&r, object, JSON_DEPTH);
	json_object(&r);
	while (json_member(&r, &name))
		if (slice_eq(name.raw, wanted->raw))
			found = json_skip(&r);
	return found;
}

static bool
has_room(const struct buf *object, const struct json_str *name, struct slice value)
{
	return object->n + name->raw.n + value.n + sizeof ",\"\":}" + sizeof MORE <= CHANGE_BYTES;
}

/* n 0: the object does not have the member. */
static void
add(struct buf *object, const struct json_str *name, struct slice value)
{
	if (!value.n)
		return;
	buf_putc(object, object->n ? ',' : '{');
	buf_putc(object, '"');
	buf_put(object, name->raw.p, name->raw.n);
	buf_puts(object, "\":");
	buf_put(object, value.p, value.n);
}

/* Adds the members of `from` that differ in `other` to mine and to its side; both false: only those that `other` lacks. Returns
 * whether all had room. */
static bool
compare(struct slice from, struct slice other, bool both, struct buf *mine, struct buf *its)
{
	struct json_str name;
	bool all = true;
	struct json r;

	json_init(&r, from, JSON_DEPTH);
	json_object(&r);
	while (json_member(&r, &name)) {
		const struct slice value = json_skip(&r), theirs = value_of(other, &name);

		if (slice_eq(value, theirs) || (!both && theirs.n))
			continue;
		if (has_room(mine, &name, value) && has_room(its, &name, theirs)) {
			add(mine, &name, value);
			add(its, &name, theirs);
		} else {
			all = false;
		}
	}
	return all;
}

static struct slice
finish(struct apicall *a, struct buf *object, bool all)
{
	if (object->n == 0)
		buf_putc(object, '{');
	if (!all)
		buf_puts(object, &MORE[object->n > 1 ? 0 : 1]);
	buf_putc(object, '}');
	if (object->failed)
		return (struct slice){ 0 };
	return arena_copy(&a->memory, buf_slice(object));
}

void
change_end(struct apicall *a, struct change_note *n)
{
	struct buf before, after;
	bool all;

	json_out_finish(&n->before);
	json_out_finish(&n->after);
	buf_init(&before, CHANGE_BYTES);
	buf_init(&after, CHANGE_BYTES);
	if (!n->was.failed && !n->is.failed) {
		all = compare(buf_slice(&n->was), buf_slice(&n->is), true, &before, &after);
		all &= compare(buf_slice(&n->is), buf_slice(&n->was), false, &after, &before);
		a->change.before = finish(a, &before, true);
		a->change.after = finish(a, &after, all);
	}
	buf_release(&before);
	buf_release(&after);
	buf_release(&n->was);
	buf_release(&n->is);
}

void
change_write(struct json_out *w, const struct apicall_change *c)
{
	if (!c->before.n || !c->after.n)
		return;
	json_out_raw(w, "before", c->before);
	json_out_raw(w, "after", c->after);
}
