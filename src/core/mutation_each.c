/*
 * mutation_each.c - mutations whose path has wildcards: they change every value of the path.
 *
 * One pass over the document: everything up to `copied` was written to out. Changed values are
 * written instead of the old text; the text between them is copied.
 *
 *      {"a":[1,2],"b":[3]}  and  /a[]++:   copied up to 1, then 2 is written, and so on
 *
 * Missing values are not made. A changed value is not searched. The document itself is never
 * changed as a whole.
 *
 * A removal also removes a comma: the one before the child if a child before it stays; otherwise
 * everything up to the next child (`drop`).
 */
#include "core/mutation_private.h"

struct each_level {
	uint64_t places;
	int64_t index; /* of the child read last */
	bool object;
	bool drop;       /* the child before was removed, and none before it stays */
	bool kept;       /* a child stays */
	const char *end; /* of the child before */
};

struct rewrite {
	const struct mutation *m;
	struct json r;
	struct buf *out;
	const char *copied;
	size_t bytes; /* that out has to take */
	unsigned n;   /* levels that are open */
	struct each_level levels[JSON_DEPTH_MAX + 1];
};

static void
copy_to(struct rewrite *w, const char *end)
{
	w->bytes += (size_t)(end - w->copied);
	buf_put(w->out, w->copied, (size_t)(end - w->copied));
	w->copied = end;
}

static void
enter(struct rewrite *w, uint64_t places)
{
	const bool object = json_peek(&w->r) == JSON_OBJECT;

	if (object)
		json_object(&w->r);
	else
		json_array(&w->r);
	if (w->r.state != JSON_FAILED)
		w->levels[w->n++] = (struct each_level){ .places = places, .index = -1, .object = object };
}

/* Leave out the child from begin to end. */
static void
drop_child(struct rewrite *w, struct each_level *l, const char *begin, const char *end)
{
	copy_to(w, l->kept ? l->end : begin);
	w->copied = end;
	l->drop = !l->kept;
}

static int
change(struct rewrite *w, struct each_level *l, const char *begin, struct slu_err *err)
{
	const struct slice value = json_skip(&w->r);
	const char *const end = value.p + value.n;
	int rc = 0;

	if (w->r.state == JSON_FAILED)
		return 0;
	if (w->m->kind == MUTATION_REMOVE) {
		drop_child(w, l, begin, end);
		l->end = end;
		return 0;
	}
	copy_to(w, value.p);
	w->bytes += w->m->value.n;
	if (w->m->kind == MUTATION_ADD)
		rc = mutation_add(value, w->m->value, w->out, err);
	else
		buf_put(w->out, w->m->value.p, w->m->value.n);
	w->copied = end;
	l->kept = true;
	l->end = end;
	return rc;
}

/* Reads the next child, or enters it. */
static int
see(struct rewrite *w, const struct json_str *name, struct slu_err *err)
{
	struct each_level *const l = &w->levels[w->n - 1];
	const char *const begin = l->object ? name->raw.p - 1 : w->r.p;
	const uint64_t places = json_path_child(w->m->path, l->places, l->object ? name : NULL, ++l->index);
	const enum json_type type = json_peek(&w->r);

	if (l->drop)
		w->copied = begin;
	l->drop = false;
	if (json_path_ends(w->m->path, places))
		return change(w, l, begin, err);
	l->kept = true;
	if (places && (type == JSON_ARRAY || type == JSON_OBJECT)) {
		enter(w, places);
		return 0;
	}
	(void)json_skip(&w->r);
	l->end = w->r.p;
	return 0;
}

static int
run(struct rewrite *w, struct slu_err *err)
{
	int rc = 0;

	enter(w, json_path_start(w->m->path));
	while (w->n > 0 && rc == 0) {
		struct json_str name = { 0 };
		const bool more = w->levels[w->n - 1].object ? json_member(&w->r, &name)
							     : json_element(&w->r);

		if (more)
			rc = see(w, &name, err);
		else if (--w->n > 0)
			w->levels[w->n - 1].end = w->r.p;
	}
	return rc;
}

int
mutation_apply_each(const struct mutation *m, struct slice document, struct buf *out,
		    struct slu_err *err)
{
	struct rewrite w; /* is large: set as far as it is used */
	int rc;

	w.m = m;
	w.out = out;
	w.copied = document.p;
	w.bytes = 0;
	w.n = 0;
	json_init(&w.r, document, JSON_DEPTH_MAX);
	rc = run(&w, err);
	if (rc)
		return rc;
	if (w.r.state == JSON_FAILED)
		return json_report(&w.r, err);
	copy_to(&w, document.p + document.n);
	return out->failed ? mutation_no_room(out, w.bytes, err) : 0;
}
