#include "base/json/json_path.h"

#include "base/parse.h"

#include <assert.h>

/* clang-format off */
static const struct {
	struct slice text;
	enum json_step_kind kind;
} wildcards[] = {
	{ { "*", 1 },   JSON_STEP_MEMBER },
	{ { "[]", 2 },  JSON_STEP_ELEMENT },
	{ { "**", 2 },  JSON_STEP_CHILD },
	{ { "...", 3 }, JSON_STEP_DEEP },
};
/* clang-format on */

/* Unescapes ~1 to / and ~0 to ~. Returns NULL if another character follows a ~. */
static const char *
unescape(struct slice s, char *out, size_t *n)
{
	*n = 0;
	if (s.n == 0 || !memchr(s.p, '~', s.n)) {
		*n = s.n;
		return s.p;
	}
	for (size_t i = 0; i < s.n; i++) {
		const bool escaped = s.p[i] == '~';

		if (escaped && (++i == s.n || (s.p[i] != '0' && s.p[i] != '1')))
			return NULL;
		out[(*n)++] = escaped ? "~/"[s.p[i] - '0'] : s.p[i];
	}
	return out;
}

/* An index of RFC 6901: digits without leading zeros. */
static int64_t
index_of(struct slice name)
{
	uint64_t index;

	return parse_u64(name, 0, UINT32_MAX, &index, NULL) ? -1 : (int64_t)index;
}

static int
add_step(struct json_path *path, struct json_step step, struct slu_err *err)
{
	if (path->n == JSON_PATH_MAX)
		return slu_fail(err, SLU_EINVAL, "expected a path of at most %d steps",
				JSON_PATH_MAX);
	path->steps[path->n++] = step;
	return 0;
}

static int
add_name(struct json_path *path, struct slice raw, char *room, struct slu_err *err)
{
	struct json_step step = { .kind = JSON_STEP_NAME };
	char shown[SHOWN_TEXT];

	for (size_t i = 0; i < sizeof wildcards / sizeof wildcards[0]; i++)
		if (slice_eq(raw, wildcards[i].text))
			return add_step(path, (struct json_step){ .kind = wildcards[i].kind }, err);
	step.name.p = unescape(raw, room, &step.name.n);
	if (!step.name.p && raw.n > 0)
		return slu_fail(err, SLU_EINVAL, "expected ~0 or ~1 for ~ and /, not %s",
				parse_shown(raw, shown));
	step.index = index_of(step.name);
	return add_step(path, step, err);
}

static bool
ends_in_brackets(struct slice s)
{
	return s.n > 2 && s.p[s.n - 2] == '[' && s.p[s.n - 1] == ']';
}

int
json_path_add(struct json_path *path, struct slice text, char *room, struct slu_err *err)
{
	const char *p = text.p;
	const char *const end = text.p + text.n;
	int rc = 0;

	if (p < end && *p == '/')
		p++;
	while (rc == 0 && p <= end && text.n > 0) {
		const char *slash = p < end ? memchr(p, '/', (size_t)(end - p)) : NULL;
		struct slice raw = { p, (size_t)((slash ? slash : end) - p) };
		const bool elements = ends_in_brackets(raw);

		raw.n -= elements ? 2 : 0;
		rc = add_name(path, raw, room, err);
		if (rc == 0 && elements)
			rc = add_step(path, (struct json_step){ .kind = JSON_STEP_ELEMENT }, err);
		room += raw.n;
		p += raw.n + (elements ? 2 : 0) + 1;
	}
	return rc;
}

#define PLACE(i) ((uint64_t)1 << (i))

/* A step `...` also matches the value itself. */
static uint64_t
with_self(const struct json_path *path, uint64_t places)
{
	for (unsigned i = 0; i < path->n; i++)
		if (places & PLACE(i) && path->steps[i].kind == JSON_STEP_DEEP)
			places |= PLACE(i + 1);
	return places;
}

uint64_t
json_path_start(const struct json_path *path)
{
	assert(path->n <= JSON_PATH_MAX);
	return with_self(path, PLACE(0));
}

static bool
takes(const struct json_step *step, const struct json_str *name, int64_t index)
{
	switch (step->kind) {
	case JSON_STEP_NAME:
		return name ? json_str_is(name, step->name) : step->index == index;
	case JSON_STEP_MEMBER:
		return name;
	case JSON_STEP_ELEMENT:
		return !name;
	default:
		return step->kind == JSON_STEP_CHILD;
	}
}

/* A name that is not the index of an element. */
static bool
is_pure_name(const struct json_step *step)
{
	return step->kind == JSON_STEP_NAME && step->index < 0;
}

uint64_t
json_path_child(const struct json_path *path, uint64_t from, const struct json_str *name,
		int64_t index)
{
	uint64_t places = 0;

	if (path->through && !name)
		places = from & PLACE(path->n);
	for (unsigned i = 0; i < path->n; i++) {
		if (!(from & PLACE(i)))
			continue;
		if (path->steps[i].kind == JSON_STEP_DEEP || (path->through && !name && is_pure_name(&path->steps[i])))
			places |= PLACE(i);
		else if (takes(&path->steps[i], name, index))
			places |= PLACE(i + 1);
	}
	return with_self(path, places);
}

bool
json_path_ends(const struct json_path *path, uint64_t places)
{
	return places & PLACE(path->n);
}

bool
json_path_has_wildcard(const struct json_path *path)
{
	for (unsigned i = 0; i < path->n; i++)
		if (path->steps[i].kind != JSON_STEP_NAME)
			return true;
	return false;
}

unsigned
json_path_cost(const struct json_path *path)
{
	for (unsigned i = 0; i < path->n; i++)
		if (path->steps[i].kind == JSON_STEP_DEEP)
			return path->n;
	return 1;
}

/* The walk. Level 0 is the document itself. */
struct walk {
	struct json r;
	const struct json_path *path;
	unsigned level;
	struct {
		uint64_t places; /* of the array or object that is open */
		int64_t index;   /* of the element read last */
		bool object;
	} open[JSON_DEPTH_MAX + 2]; /* one level too deep is entered, then refused */
};

/* Goes to the next child of the open array or object. Returns false at its end. */
static bool
next_child(struct walk *w, uint64_t *places)
{
	const bool object = w->open[w->level].object;
	struct json_str name = { 0 };

	if (object ? !json_member(&w->r, &name) : !json_element(&w->r))
		return false;
	w->open[w->level].index++;
	*places = json_path_child(w->path, w->open[w->level].places,
				  object ? &name : NULL, w->open[w->level].index);
	return true;
}

static void
enter(struct walk *w, enum json_type type, uint64_t places)
{
	w->level++;
	w->open[w->level].places = places;
	w->open[w->level].index = -1;
	w->open[w->level].object = type == JSON_OBJECT;
	if (type == JSON_OBJECT)
		json_object(&w->r);
	else
		json_array(&w->r);
}

/* Reads the next value, or enters it. Returns false if visit ended the walk. */
static bool
see(struct walk *w, uint64_t places, json_visit *visit, void *arg)
{
	struct json_event value = { .type = json_peek(&w->r) };
	const bool nested = value.type == JSON_ARRAY || value.type == JSON_OBJECT;
	const bool reached = json_path_ends(w->path, places);

	const bool spread = reached && w->path->through && value.type == JSON_ARRAY;

	if (nested && (spread || places & (PLACE(w->path->n) - 1)))
		enter(w, value.type, places);
	else if (value.type == JSON_STRING && reached)
		(void)json_string(&w->r, &value.str);
	else
		value.raw = json_skip(&w->r);
	return !reached || w->r.state == JSON_FAILED || visit(arg, &value);
}

int
json_walk(struct slice document, const struct json_path *path, json_visit *visit, void *arg,
	  struct slu_err *err)
{
	uint64_t places = json_path_start(path);
	struct walk w; /* large: initialised only as far as it is used */

	w.path = path;
	w.level = 0;
	json_init(&w.r, document, JSON_DEPTH_MAX);
	do {
		if (!see(&w, places, visit, arg))
			return 0;
		while (w.level > 0 && !next_child(&w, &places))
			w.level--;
	} while (w.level > 0);
	return json_end(&w.r, err);
}
