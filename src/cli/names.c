#include "cli/names.h"

#include "base/json.h"

enum {
	NAME_BYTES = 132,
	PAGES_MAX = 100,
	SHOWN_MAX = 5 /* namespaces in a hint */
};

/* Which list, and which member of its elements. */
struct list {
	const char *path, *space, *array, *member;
};

struct page {
	const struct list *list;
	names_fn *fn;
	void *arg;
	char last[NAME_BYTES]; /* the same name again and again is told once */
	char cursor[32];
};

static void
take_element(struct page *p, struct json *in)
{
	struct json_str member;

	json_object(in);
	while (json_member(in, &member)) {
		struct slice name;

		if (!json_str_is(&member, slice_of(p->list->member)))
			continue;
		name = json_text(in);
		if (name.n == 0 || name.n >= NAME_BYTES ||
		    (strlen(p->last) == name.n && memcmp(p->last, name.p, name.n) == 0))
			continue;
		(void)snprintf(p->last, sizeof p->last, "%.*s", (int)name.n, name.p);
		p->fn(p->arg, p->last);
	}
}

static int
take_page(struct page *p, struct slice text, struct slu_err *err)
{
	struct json_str member;
	struct json in;

	p->cursor[0] = '\0';
	json_init(&in, text, JSON_DEPTH);
	json_object(&in);
	while (json_member(&in, &member)) {
		if (json_str_is(&member, slice_of(p->list->array))) {
			json_array(&in);
			while (json_element(&in))
				take_element(p, &in);
		} else if (json_str_is(&member, SLICE("cursor"))) {
			const struct slice c = json_text(&in);

			(void)snprintf(p->cursor, sizeof p->cursor, "%.*s", (int)c.n, c.p);
		}
	}
	return json_end(&in, err);
}

static int
each(struct session *s, const struct list *list, names_fn *fn, void *arg, struct slu_err *err)
{
	struct page p = { .list = list, .fn = fn, .arg = arg };
	struct slice text;
	int rc, pages = 0;

	do {
		query_path(&s->query, list->path);
		query_param(&s->query, "namespace", list->space);
		query_param(&s->query, "limit", "1000");
		query_param(&s->query, "cursor", p.cursor[0] ? p.cursor : NULL);
		rc = query_get(&s->query, &text, err);
		if (!rc)
			rc = take_page(&p, text, err);
	} while (!rc && p.cursor[0] && ++pages < PAGES_MAX);
	return rc;
}

int
names_queues(struct session *s, names_fn *fn, void *arg, struct slu_err *err)
{
	const struct list list = { "/topics", s->space, "topics", "display_topic" };

	return each(s, &list, fn, arg, err);
}

int
names_spaces(struct session *s, names_fn *fn, void *arg, struct slu_err *err)
{
	static const struct list list = { "/v1/admin/queues", NULL, "queues", "display_namespace" };

	return each(s, &list, fn, arg, err);
}

struct hint {
	char text[SHOWN_MAX * (NAME_BYTES + 2)];
	size_t n;
	unsigned found;
};

static void
add_hint(void *arg, const char *name)
{
	struct hint *const h = arg;

	if (h->found++ >= SHOWN_MAX)
		return;
	h->n += (size_t)snprintf(h->text + h->n, sizeof h->text - h->n, "%s%s",
				 h->n ? ", " : "", name); /* fits */
}

/* A server that does not list namespaces to us leaves the hint out. */
void
names_no_queues(struct session *s)
{
	struct hint h = { 0 };
	struct slu_err err;

	if (names_spaces(s, add_hint, &h, &err) || h.found == 0)
		session_nothing(s, "no queues in namespace %s yet", s->space);
	else
		session_nothing(s, "no queues in namespace %s; there are some in %s%s (--namespace)",
				s->space, h.text, h.found > SHOWN_MAX ? " and others" : "");
}
