#include "cli/lib/names.h"

#include "base/json/json.h"

enum {
	NAME_BYTES = 132,
	PAGES_MAX = 100,
	SHOWN_MAX = 5 /* how many namespaces a hint lists */
};

struct names_reader {
	const char *member; /* the member of an element that has the name */
	names_fn *fn;
	void *arg;
	char last[NAME_BYTES]; /* the last name; a repeated name is passed on once */
};

static int
take_element(void *arg, struct json *in, struct slu_err *err)
{
	struct names_reader *const p = arg;
	struct json_str member;

	(void)err;
	json_object(in);
	while (json_member(in, &member)) {
		struct slice name;

		if (!json_str_is(&member, slice_of(p->member)))
			continue;
		name = json_text(in);
		if (name.n == 0 || name.n >= NAME_BYTES ||
		    (strlen(p->last) == name.n && memcmp(p->last, name.p, name.n) == 0))
			continue;
		(void)snprintf(p->last, sizeof p->last, "%.*s", (int)name.n, name.p);
		p->fn(p->arg, p->last);
	}
	return 0;
}

int
names_queues(struct session *s, names_fn *fn, void *arg, struct slu_err *err)
{
	const struct query_list list = { "/topics", s->space, "topics", PAGES_MAX, NULL };
	struct names_reader r = { .member = "display_topic", .fn = fn, .arg = arg };

	return query_each(&s->query, &list, take_element, &r, err);
}

int
names_spaces(struct session *s, names_fn *fn, void *arg, struct slu_err *err)
{
	static const struct query_list list = { "/v1/admin/queues", NULL, "queues", PAGES_MAX, NULL };
	struct names_reader r = { .member = "display_namespace", .fn = fn, .arg = arg };

	return query_each(&s->query, &list, take_element, &r, err);
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

/* The hint is missing if the server does not list namespaces to this client. */
void
names_no_queues(struct session *s)
{
	struct hint h = { 0 };
	struct slu_err err;

	if (names_spaces(s, add_hint, &h, &err) || h.found == 0)
		session_nothing(s, "no queues in namespace %s yet", s->space);
	else
		session_nothing(s, "no queues in namespace %s; namespaces with queues: %s%s (--namespace)",
				s->space, h.text, h.found > SHOWN_MAX ? " and others" : "");
}
