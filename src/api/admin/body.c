#include "api/admin/body.h"

#include "base/json/json_same.h"
#include "base/parse.h"

/* Writes the names as a JSON Pointer; returns its length. */
static size_t
pointer_of(struct slice dots, char *out)
{
	size_t n = 0;

	for (size_t i = 0; i < dots.n; i++) {
		const char c = dots.p[i];

		if (c == '~' || c == '/')
			out[n++] = '~';
		out[n++] = c == '.' ? '/' : c == '~' ? '0'
				    : c == '/'       ? '1'
						     : c;
	}
	return n;
}

int
body_path_add(struct json_path *path, struct slice dots, char *text, char *names, struct slu_err *err)
{
	const size_t n = pointer_of(dots, text);

	return json_path_add(path, (struct slice){ text, n }, names, err);
}

int
body_condition_read(struct body_condition *out, struct slice text, struct slu_err *err)
{
	char shown[SHOWN_TEXT];
	struct slice path;
	struct slu_err why;
	int rc;

	out->path.n = 0;
	out->path.through = true;
	out->value = text;
	if (!slice_cut(&out->value, '=', &path) || path.n == 0 || path.n > BODY_PATH_MAX)
		return slu_fail(err, SLU_EINVAL, "invalid body: %s; expected PATH=VALUE, as user.id=42, with a path of at most %d bytes",
				parse_shown(text, shown), BODY_PATH_MAX);
	out->is_number = json_number_is(out->value);
	rc = *path.p == '/' ? json_path_add(&out->path, path, out->names, &why)
			    : body_path_add(&out->path, path, out->text, out->names, &why);
	return rc ? slu_fail(err, SLU_EINVAL, "invalid body: %s; %s", parse_shown(text, shown), why.text) : 0;
}

struct body_look {
	const struct body_condition *want;
	bool found;
};

static bool
compare(void *arg, const struct json_event *v)
{
	struct body_look *const l = arg;
	const struct slice want = l->want->value;

	if (v->type == JSON_STRING)
		l->found |= json_str_is(&v->str, want);
	else if (v->type == JSON_NUMBER)
		l->found |= l->want->is_number && json_number_same(v->raw, want);
	else if (v->type != JSON_ARRAY && v->type != JSON_OBJECT)
		l->found |= slice_eq(v->raw, want);
	return true; /* BODY-2: the rest is checked as well */
}

bool
body_condition_holds(const struct body_condition *c, struct slice body)
{
	struct body_look l = { .want = c };

	return json_walk(body, &c->path, compare, &l, NULL) == 0 && l.found;
}
