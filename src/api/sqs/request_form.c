/*
 * request_form.c - reads the form of a request in the Query protocol.
 *
 *      MessageBody=hello
 *      AttributeName.1=All
 *      Attribute.1.Name=VisibilityTimeout & Attribute.1.Value=30
 *      MessageAttribute.1.Name=n & MessageAttribute.1.Value.DataType=String & ...
 *      SendMessageBatchRequestEntry.1.Id=a
 *
 * Parameters come in any order: Go sorts them, so 10 comes before 2. The number places them.
 */
#include "api/sqs/request.h"

#include "base/base64.h"
#include "base/parse.h"
#include "http/query.h"

struct form_reading {
	struct sqs_request *q;
	struct arena *arena;
	struct slice name; /* of the parameter */
	struct slu_err *err;
};

static int
fail(const struct form_reading *r, const char *expected)
{
	char shown[SHOWN_TEXT];

	return slu_fail(r->err, SLU_EINVAL, "%s: expected %s", parse_shown(r->name, shown), expected);
}

/* Takes a number from 1 to most off the front of a name, and the dot behind it. */
static bool
take_index(struct slice *rest, uint32_t most, uint32_t *index)
{
	struct slice part;
	uint64_t n;

	(void)slice_cut(rest, '.', &part); /* the last part has no dot */
	if (parse_u64(part, 1, most, &n, NULL))
		return false;
	*index = (uint32_t)n - 1;
	return true;
}

static int
take_name(struct form_reading *r, struct sqs_names *l, struct slice value)
{
	struct slice *const name = sqs_names_add(l, r->arena);

	l->given = true;
	if (!name)
		return fail(r, "fewer elements");
	*name = value;
	return 0;
}

static int
take_pair(struct form_reading *r, const struct sqs_parameter *p, struct sqs_pairs *l, struct slice rest, struct slice value)
{
	uint32_t i;

	l->given = true;
	if (!take_index(&rest, SQS_PAIRS_MAX, &i))
		return fail(r, "a number from 1 to 64");
	while (l->n <= i)
		if (!sqs_pairs_add(l, r->arena))
			return slu_fail(r->err, SLU_ENOMEM, "out of memory");
	if (slice_eq(rest, slice_of(p->key ? p->key : "Name")))
		l->items[i].name = value;
	else if (slice_eq(rest, SLICE("Value")))
		l->items[i].value = value;
	return 0;
}

static int
take_bytes(struct form_reading *r, struct sqs_attribute *at, struct slice value)
{
	char *const room = arena_alloc(r->arena, value.n + 1);
	size_t n = 0;

	if (!room)
		return slu_fail(r->err, SLU_ENOMEM, "out of memory");
	if (base64_decode(value, room, &n, NULL))
		return fail(r, "base64");
	at->bytes = (struct slice){ room, n };
	at->has_bytes = true;
	return 0;
}

static int
take_attribute(struct form_reading *r, struct sqs_attributes *l, struct slice rest, struct slice value)
{
	struct sqs_attribute *at;
	uint32_t i;

	l->given = true;
	if (!take_index(&rest, SQS_ATTRIBUTES_MAX, &i))
		return fail(r, "a number from 1 to 10");
	while (l->n <= i)
		if (!sqs_attributes_add(l, r->arena))
			return slu_fail(r->err, SLU_ENOMEM, "out of memory");
	at = &l->items[i];
	if (slice_eq(rest, SLICE("Name")))
		at->name = value;
	else if (slice_eq(rest, SLICE("Value.DataType")))
		at->type = value;
	else if (slice_eq(rest, SLICE("Value.StringValue"))) {
		at->text = value;
		at->has_text = true;
	} else if (slice_eq(rest, SLICE("Value.BinaryValue")))
		return take_bytes(r, at, value);
	return 0;
}

static int
take_value(struct form_reading *r, const struct sqs_parameter *p, struct sqs_entry *e, struct slice rest, struct slice value)
{
	char *const base = p->of_entry ? (char *)e : (char *)r->q;
	void *const place = base + p->offset;

	if (p->has)
		*(bool *)(void *)(base + p->has) = true;
	if (p->kind == SQS_TEXT)
		*(struct slice *)place = value;
	else if (p->kind == SQS_NUMBER)
		return parse_i64(value, INT32_MIN, INT32_MAX, place, NULL) ? fail(r, "a whole number") : 0;
	else if (p->kind == SQS_NAMES)
		return take_name(r, place, value);
	else if (p->kind == SQS_MAP)
		return take_pair(r, p, place, rest, value);
	else if (p->kind == SQS_MESSAGE)
		return take_attribute(r, place, rest, value);
	return 0;
}

static const struct sqs_parameter *
find(struct slice name, bool in_entry)
{
	for (unsigned i = 0; i < sqs_n_parameters; i++) {
		const struct sqs_parameter *const p = &sqs_parameters[i];

		if ((p->of_entry || !in_entry) && slice_eq(name, slice_of(p->form ? p->form : p->json)))
			return p;
	}
	return NULL;
}

/* SendMessageBatchRequestEntry, DeleteMessageBatchRequestEntry, ... */
static bool
is_entry(struct slice name)
{
	static const struct slice end = SLICE("BatchRequestEntry");

	return name.n > end.n && memcmp(name.p + name.n - end.n, end.p, end.n) == 0;
}

static int
take(struct form_reading *r, struct slice value)
{
	struct sqs_entry *e = &r->q->entries[0];
	struct slice rest = r->name, first;
	const struct sqs_parameter *p;
	bool in_entry;
	uint32_t i;

	(void)slice_cut(&rest, '.', &first); /* a name without dots is whole */
	in_entry = is_entry(first);
	if (in_entry) {
		r->q->batch = true;
		if (!take_index(&rest, SQS_ENTRIES_MAX, &i))
			return fail(r, "a number from 1 to 11");
		e = sqs_request_entry(r->q, i);
		(void)slice_cut(&rest, '.', &first); /* the same */
	}
	if (!in_entry && slice_eq(first, SLICE("Action")))
		r->q->action = value;
	p = find(first, in_entry);
	return p ? take_value(r, p, e, rest, value) : 0;
}

int
sqs_request_form(struct sqs_request *q, struct arena *a, struct slice body, struct slu_err *err)
{
	struct form_reading r = { .q = q, .arena = a, .err = err };
	char *const room = arena_alloc(a, body.n + 1);
	struct query_param param;
	struct query form;
	int rc = 0;

	if (!room || sqs_request_init(q, a))
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	query_init(&form, body, room, body.n + 1);
	while (!rc && query_next(&form, &param)) {
		r.name = param.name;
		rc = take(&r, param.value);
	}
	if (!rc && form.rc)
		rc = slu_fail(err, SLU_EINVAL, "invalid form; expected name=value&name=value");
	return rc;
}
