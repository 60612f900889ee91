#include "core/mutation_private.h"

#include "base/json/json_out.h"
#include "base/mem.h"
#include "base/parse.h"

#include <math.h>
#include <stdlib.h>

/* Where a path leads. */
struct spot {
	bool found;
	struct slice value; /* the value, or the last existing value on the path */
	unsigned depth;     /* steps that lead to value */
	struct slice cut;   /* found: what goes with it, a comma too */
};

/* The members or elements of one value, in search of one. */
struct search {
	struct json r;
	const struct json_step *step;
	const char *begin; /* of the child read last, with its name */
	const char *end;
	const char *before; /* end of the one before it; NULL: it is the first */
	int64_t index;
	struct slice value; /* of the member that was found */
	struct slice cut;
	unsigned found;
	bool cut_next; /* it was the first: what follows it, up to the next, goes too */
};

/* Read one child; what is cut out with it depends on its neighbours. */
static void
look_at(struct search *s, bool is_it, const char *begin)
{
	const struct slice value = json_skip(&s->r);

	if (s->r.state == JSON_FAILED)
		return;
	s->before = s->end;
	s->begin = begin ? begin : value.p;
	s->end = value.p + value.n;
	if (s->cut_next)
		s->cut.n = (size_t)(s->begin - s->cut.p);
	s->cut_next = false;
	if (!is_it)
		return;
	s->found++;
	s->value = value;
	s->cut_next = !s->before;
	s->cut.p = s->before ? s->before : s->begin;
	s->cut.n = (size_t)(s->end - s->cut.p);
}

static void
search_members(struct search *s)
{
	struct json_str name;

	json_object(&s->r);
	while (json_member(&s->r, &name))
		look_at(s, json_str_is(&name, s->step->name), name.raw.p - 1);
}

static void
search_elements(struct search *s)
{
	json_array(&s->r);
	while (json_element(&s->r))
		look_at(s, s->index++ == s->step->index, NULL);
}

/* Follows the path as far as values exist. */
static int
locate(const struct json_path *path, struct slice document, struct spot *out,
       struct slu_err *err)
{
	*out = (struct spot){ .value = document };
	for (unsigned i = 0; i < path->n; i++) {
		struct search s = { .step = &path->steps[i] };
		enum json_type type;
		char shown[SHOWN_TEXT];

		json_init(&s.r, out->value, JSON_DEPTH_MAX);
		type = json_peek(&s.r);
		if (type != JSON_OBJECT && type != JSON_ARRAY)
			return 0;
		if (type == JSON_OBJECT)
			search_members(&s);
		else
			search_elements(&s);
		if (s.r.state == JSON_FAILED)
			return json_report(&s.r, err);
		if (s.found > 1)
			return slu_fail(err, SLU_EINVAL, "invalid document: %s is twice in one object",
					parse_shown(s.step->name, shown));
		if (s.found == 0)
			return 0;
		*out = (struct spot){ .value = s.value, .cut = s.cut, .depth = i + 1 };
	}
	out->found = true;
	return 0;
}

int
mutation_no_room(const struct buf *out, size_t bytes, struct slu_err *err)
{
	if (bytes <= out->max)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	return slu_fail(err, SLU_ETOOBIG, "document too large; expected at most %zu bytes", out->max);
}

/* Writes the document with its part `old` replaced. */
static int
splice(struct slice document, struct slice old, struct slice new, struct buf *out,
       struct slu_err *err)
{
	const char *const rest = old.p + old.n;
	const size_t bytes = out->n + document.n - old.n + new.n;

	buf_put(out, document.p, (size_t)(old.p - document.p));
	buf_put(out, new.p, new.n);
	buf_put(out, rest, (size_t)(document.p + document.n - rest));
	return out->failed ? mutation_no_room(out, bytes, err) : 0;
}

/* {"b":{"c":value}}, for what is missing of /a/b/c. */
static void
put_missing(struct buf *out, const struct json_path *path, unsigned from, struct slice value)
{
	struct json_out w;

	json_out_init(&w, out);
	for (unsigned i = from; i < path->n; i++) {
		json_out_object(&w, NULL);
		json_out_name(&w, path->steps[i].name);
	}
	json_out_raw(&w, NULL, value);
	for (unsigned i = from; i < path->n; i++)
		json_out_close(&w);
}

/* The value of the spot, an object, gets the members of the object `more`. */
static int
add_members(struct slice document, struct slice object, struct slice more, struct buf *out,
	    struct slu_err *err)
{
	const char *const brace = object.p + object.n - 1;
	struct json_str name;
	struct json r;

	buf_put(out, document.p, (size_t)(brace - document.p));
	json_init(&r, object, JSON_DEPTH_MAX);
	json_object(&r);
	if (json_member(&r, &name))
		buf_putc(out, ',');
	buf_put(out, more.p + 1, more.n - 2);
	buf_put(out, brace, (size_t)(document.p + document.n - brace));
	return out->failed ? mutation_no_room(out, document.n + more.n - 1, err) : 0;
}

static int
make(const struct mutation *m, struct slice document, const struct spot *spot,
     struct buf *out, struct slu_err *err)
{
	const struct json_step *const step = &m->path->steps[spot->depth];
	char shown[SHOWN_TEXT];
	struct buf missing;
	struct json r;
	enum json_type type;
	int rc;

	json_init(&r, spot->value, JSON_DEPTH_MAX);
	type = json_peek(&r);
	if (type == JSON_ARRAY)
		return slu_fail(err, SLU_EINVAL, "an array has no element %s",
				parse_shown(step->name, shown));
	buf_init(&missing, out->max);
	put_missing(&missing, m->path, spot->depth, m->value);
	if (missing.failed)
		rc = mutation_no_room(out, m->value.n + missing.n, err);
	else if (type == JSON_OBJECT)
		rc = add_members(document, spot->value, buf_slice(&missing), out, err);
	else
		rc = splice(document, spot->value, buf_slice(&missing), out, err);
	buf_release(&missing);
	return rc;
}

static bool
read_i64(struct slice s, int64_t *out)
{
	struct json r;

	json_init(&r, s, 0);
	*out = json_i64(&r, INT64_MIN, INT64_MAX);
	return json_end(&r, NULL) == 0;
}

static bool
read_double(struct slice s, double *out)
{
	struct json r;

	json_init(&r, s, 0);
	*out = json_double(&r);
	return json_end(&r, NULL) == 0;
}

/* The shortest spelling that reads back the same. */
static bool
put_double(struct buf *out, double v)
{
	char text[32];

	for (int digits = 15; digits <= 17; digits++) {
		struct buf b;

		buf_init(&b, sizeof text);
		buf_printf(&b, "%.*g", digits, v);
		memcpy(text, buf_str(&b), b.n + 1);
		buf_release(&b);
		if (strtod(text, NULL) == v)
			break;
	}
	buf_puts(out, text);
	return isfinite(v);
}

int
mutation_add(struct slice a, struct slice b, struct buf *out, struct slu_err *err)
{
	int64_t i, j, sum;
	double x, y;

	if (read_i64(a, &i) && read_i64(b, &j) && !__builtin_add_overflow(i, j, &sum)) {
		buf_printf(out, "%lld", (long long)sum);
		return 0;
	}
	if (!read_double(a, &x) || !read_double(b, &y))
		return slu_fail(err, SLU_EINVAL, "invalid value to add to; expected a number");
	if (!put_double(out, x + y))
		return slu_fail(err, SLU_EINVAL, "the sum is too large for a number");
	return 0;
}

static int
add(const struct mutation *m, struct slice document, const struct spot *spot, struct buf *out,
    struct slu_err *err)
{
	struct buf sum;
	int rc;

	buf_init(&sum, 64);
	rc = mutation_add(spot->value, m->value, &sum, err);
	if (rc == 0)
		rc = splice(document, spot->value, buf_slice(&sum), out, err);
	buf_release(&sum);
	return rc;
}

/* Writes the changed document to out. Returns SLU_EINVAL if the document cannot be changed this way,
 * SLU_ETOOBIG if out is full, or SLU_ENOMEM. */
static int
apply(const struct mutation *m, struct slice document, struct buf *out, struct slu_err *err)
{
	struct spot spot;
	int rc;

	if (json_path_has_wildcard(m->path))
		return mutation_apply_each(m, document, out, err);
	rc = locate(m->path, document, &spot, err);
	if (rc)
		return rc;
	if (m->kind == MUTATION_REMOVE)
		return splice(document, spot.found ? spot.cut : (struct slice){ document.p, 0 },
			      (struct slice){ NULL, 0 }, out, err);
	if (!spot.found)
		return make(m, document, &spot, out, err);
	return m->kind == MUTATION_ADD ? add(m, document, &spot, out, err)
				       : splice(document, spot.value, m->value, out, err);
}

/* What changes from text to text. */
struct job {
	struct buf *out;  /* the document so far */
	struct buf spare; /* the next one is written here, then they are swapped */
	struct buf value;
	unsigned count;
	uint64_t work; /* bytes of documents that were written */
	slu_time now;
	const struct stop *stop;
};

typedef int with_mutation(struct job *j, const struct mutation *m, struct slu_err *err);

static int
count_one(struct job *j, const struct mutation *m, struct slu_err *err)
{
	(void)m;
	if (++j->count > MUTATIONS_MAX)
		return slu_fail(err, SLU_EINVAL, "too many mutations; expected at most %d", MUTATIONS_MAX);
	return 0;
}

static int
apply_one(struct job *j, const struct mutation *m, struct slu_err *err)
{
	struct buf swap;
	int rc;

	if (stop_is_set(j->stop))
		return slu_fail(err, SLU_ECANCELED, "canceled");
	buf_clear(&j->spare);
	rc = apply(m, buf_slice(j->out), &j->spare, err);
	if (rc)
		return rc;
	j->work += j->spare.n * (uint64_t)json_path_cost(m->path);
	if (j->work > MUTATION_WORK)
		return slu_fail(err, SLU_ETOOBIG, "too much work: %u mutations of a growing document; "
						  "send fewer in one call",
				j->count);
	swap = *j->out;
	*j->out = j->spare;
	j->spare = swap;
	return 0;
}

static int
each_in_text(struct job *j, struct slice text, char *room, with_mutation *f, struct slu_err *err)
{
	struct mutation_parser p;
	struct mutation m;
	int rc;

	mutation_parse(&p, text, room, &j->value, j->now);
	do {
		rc = mutation_next(&p, &m, err);
		if (!rc && !p.ended)
			rc = f(j, &m, err);
	} while (!rc && !p.ended);
	return rc;
}

static int
each(struct job *j, const struct slice *texts, unsigned n, with_mutation *f, struct slu_err *err)
{
	int rc = 0;

	for (unsigned i = 0; i < n && rc == 0; i++) {
		char *const room = mem_alloc(texts[i].n + 1);
		struct slu_err why = { 0 };

		if (!room)
			return slu_fail(err, SLU_ENOMEM, "out of memory");
		rc = each_in_text(j, texts[i], room, f, &why);
		mem_free(room);
		if (rc == SLU_EINVAL)
			return slu_fail(err, rc, "mutation %u: %s", i + 1, why.text);
		if (rc)
			return slu_fail(err, rc, "%s", why.text);
	}
	return rc;
}

/* Checks the limits that can be checked before the first mutation. */
static int
check_work(const struct job *j, size_t bytes, struct slu_err *err)
{
	if (j->count == 0)
		return slu_fail(err, SLU_EINVAL, "expected at least one mutation");
	if (j->count * (uint64_t)bytes > MUTATION_WORK)
		return slu_fail(err, SLU_ETOOBIG, "%u mutations of a document of %zu bytes; expected at most "
						  "%zu in one call",
				j->count, bytes, MUTATION_WORK / bytes);
	return 0;
}

int
mutations_apply(const struct slice *texts, unsigned n, struct slice document, slu_time now,
		const struct stop *stop, struct buf *out, struct slu_err *err)
{
	struct job j = { .out = out, .now = now, .stop = stop };
	struct json r;
	int rc;

	buf_init(&j.spare, out->max);
	buf_init(&j.value, out->max);
	buf_clear(out);
	json_init(&r, document, JSON_DEPTH_MAX);
	document = json_skip(&r); /* without the space around it */
	buf_put(out, document.p, document.n);
	json_init(&r, document, JSON_DEPTH_MAX);
	if (json_peek(&r) != JSON_OBJECT)
		rc = slu_fail(err, SLU_EINVAL, "the document is %s, not an object",
			      json_type_name(json_peek(&r)));
	else if (out->failed)
		rc = mutation_no_room(out, document.n, err);
	else
		rc = each(&j, texts, n, count_one, err);
	if (rc == 0)
		rc = check_work(&j, document.n, err);
	if (rc == 0)
		rc = each(&j, texts, n, apply_one, err);
	if (rc == 0) {
		json_init(&r, buf_slice(out), JSON_DEPTH_MAX); /* not nested too deep now? */
		rc = json_end(&r, err);
	}
	buf_release(&j.spare);
	buf_release(&j.value);
	return rc;
}
