#include "api/sqs/store.h"

#include "api/queue/ownstate.h"

struct sqs_storing {
	struct ownstate kept; /* first: apicall.part */
	struct sqs_document document;
	enum sqs_code (*change)(struct apicall *a, struct slu_err *err); /* NULL: the document is removed */
	void (*then)(struct apicall *a);
	enum sqs_code refused; /* by change */
};

struct sqs_document *
sqs_document(struct apicall *a)
{
	return &((struct sqs_storing *)a->part)->document;
}

/* --- pairs -------------------------------------------------------------------- */

static struct sqs_pair *
find(const struct sqs_pairs *l, struct slice name)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (slice_eq(l->items[i].name, name))
			return &l->items[i];
	return NULL;
}

struct slice
sqs_pairs_find(const struct sqs_pairs *l, const char *name)
{
	const struct sqs_pair *const pair = find(l, slice_of(name));

	return pair ? pair->value : (struct slice){ 0 };
}

void
sqs_pairs_remove(struct sqs_pairs *l, struct slice name)
{
	struct sqs_pair *const pair = find(l, name);

	if (pair)
		*pair = l->items[--l->n];
}

bool
sqs_pairs_set(struct sqs_pairs *l, struct arena *a, struct slice name, struct slice value)
{
	struct sqs_pair *pair = find(l, name);

	if (!pair)
		pair = sqs_pairs_add(l, a);
	if (pair)
		*pair = (struct sqs_pair){ name, value };
	return pair != NULL;
}

/* --- the text ----------------------------------------------------------------- */

static void
read_pairs(struct json *r, struct arena *a, struct sqs_pairs *l)
{
	struct json_str name;

	json_object(r);
	while (json_member(r, &name)) {
		char *const room = arena_alloc(a, name.n + 1);
		struct sqs_pair *const pair = room ? sqs_pairs_add(l, a) : NULL;

		if (!pair)
			json_fail(r, SLU_ENOMEM, NULL, "fewer members");
		else
			*pair = (struct sqs_pair){ json_str_text(&name, room), json_text(r) };
	}
}

static int
parse(struct apicall *a, struct sqs_storing *t, struct slu_err *err)
{
	const struct slice text = t->kept.text;
	char *const room = arena_alloc(&a->memory, text.n + 1);
	struct json_str name;
	struct json r;

	if (text.n == 0)
		return 0;
	if (!room)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	json_init(&r, text, JSON_DEPTH);
	json_room(&r, room, text.n + 1);
	json_object(&r);
	while (json_member(&r, &name))
		if (json_str_is(&name, SLICE("created")))
			t->document.created = json_i64(&r, 0, INT64_MAX);
		else if (json_str_is(&name, SLICE("modified")))
			t->document.modified = json_i64(&r, 0, INT64_MAX);
		else if (json_str_is(&name, SLICE("attributes")))
			read_pairs(&r, &a->memory, &t->document.attributes);
		else if (json_str_is(&name, SLICE("tags")))
			read_pairs(&r, &a->memory, &t->document.tags);
	return json_end(&r, err);
}

static void
write_pairs(struct json_out *w, const char *name, const struct sqs_pairs *l)
{
	json_out_object(w, name);
	for (uint32_t i = 0; i < l->n; i++) {
		json_out_name(w, l->items[i].name);
		json_out_str(w, NULL, l->items[i].value);
	}
	json_out_close(w);
}

/* Sets the document that is written. */
static int
format(struct apicall *a, struct sqs_storing *t, struct slu_err *err)
{
	struct json_out w;
	struct buf text;

	buf_init(&text, OWNSTATE_MAX);
	json_out_open(&w, &text);
	json_out_i64(&w, "created", t->document.created);
	json_out_i64(&w, "modified", t->document.modified);
	write_pairs(&w, "attributes", &t->document.attributes);
	write_pairs(&w, "tags", &t->document.tags);
	json_out_close(&w);
	t->kept.next = !text.failed ? arena_copy(&a->memory, buf_slice(&text)) : (struct slice){ 0 };
	buf_release(&text);
	return t->kept.next.n ? 0 : slu_fail(err, SLU_ETOOBIG, "the attributes and tags have more than %d bytes", OWNSTATE_MAX);
}

/* --- the ops ------------------------------------------------------------------ */

static void
refuse(struct apicall *a)
{
	const struct sqs_storing *const t = a->part;

	if (t->refused)
		sqs_refuse(a, t->refused, "%s", t->kept.err.text);
	else
		apicall_refuse(a, t->kept.rc, t->kept.err.text);
}

static void
loaded(struct apicall *a)
{
	struct sqs_storing *const t = a->part;

	t->kept.rc = parse(a, t, &t->kept.err);
	if (t->kept.rc)
		refuse(a);
	else
		t->then(a);
}

static int
change(struct apicall *a, struct slu_err *err)
{
	struct sqs_storing *const t = a->part;
	int rc;

	if (!t->change)
		return 0; /* kept.next is empty */
	rc = parse(a, t, err);
	if (rc)
		return rc;
	t->refused = t->change(a, err);
	return t->refused ? SLU_EINVAL : format(a, t, err);
}

/* NULL: the call was refused. */
static struct sqs_storing *
start(struct apicall *a, void (*then)(struct apicall *a))
{
	struct sqs_storing *const t = arena_alloc(&a->memory, sizeof *t);
	const struct sqs_call *const s = sqs_of(a);

	if (!t) {
		apicall_refuse(a, SLU_ENOMEM, NULL);
		return NULL;
	}
	*t = (struct sqs_storing){ .then = then };
	ownstate_init(&t->kept, a, slice_of(s->space), "~sqs/", slice_of(s->queue));
	t->kept.refuse = refuse;
	return t;
}

void
sqs_store_load(struct apicall *a, void (*then)(struct apicall *a))
{
	struct sqs_storing *const t = start(a, then);

	if (t)
		ownstate_load(&t->kept, a, loaded);
}

void
sqs_store_change(struct apicall *a, enum sqs_code (*edit)(struct apicall *a, struct slu_err *err),
		 void (*then)(struct apicall *a))
{
	struct sqs_storing *const t = start(a, then);

	if (!t)
		return;
	t->change = edit;
	ownstate_change(&t->kept, a, change, then);
}

void
sqs_store_remove(struct apicall *a, void (*then)(struct apicall *a))
{
	struct sqs_storing *const t = start(a, then);

	if (t)
		ownstate_change(&t->kept, a, change, then);
}
