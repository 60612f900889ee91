/*
 * request_json.c - reads the JSON object of a request.
 */
#include "api/sqs/request.h"

#include "base/base64.h"
#include "base/json/json.h"
#include "base/parse.h"

struct json_reading {
	struct json json;
	struct sqs_request *q;
	struct arena *arena;
};

static void
fail_room(struct json_reading *r)
{
	json_fail(&r->json, SLU_EINVAL, NULL, "expected fewer elements");
}

/* A whole number, or its text. */
static int64_t
read_number(struct json *j)
{
	int64_t value = 0;

	if (json_peek(j) != JSON_STRING)
		return json_i64(j, INT32_MIN, INT32_MAX);
	if (parse_i64(json_text(j), INT32_MIN, INT32_MAX, &value, NULL))
		json_fail(j, SLU_EINVAL, NULL, "expected a whole number");
	return value;
}

static void
read_names(struct json_reading *r, struct sqs_names *l)
{
	l->given = true;
	json_array(&r->json);
	while (json_element(&r->json)) {
		struct slice *const name = sqs_names_add(l, r->arena);

		if (name)
			*name = json_text(&r->json);
		else
			fail_room(r);
	}
}

/* The text of a name; names of maps may have escapes. */
static struct slice
name_of(struct json_reading *r, const struct json_str *name)
{
	char *const room = arena_alloc(r->arena, name->n + 1);

	if (room && !name->has_nul)
		return json_str_text(name, room);
	json_fail(&r->json, room ? SLU_EINVAL : SLU_ENOMEM, NULL, "expected a name without NUL");
	return (struct slice){ 0 };
}

static void
read_map(struct json_reading *r, struct sqs_pairs *l)
{
	struct json_str name;

	l->given = true;
	json_object(&r->json);
	while (json_member(&r->json, &name)) {
		struct sqs_pair *const pair = sqs_pairs_add(l, r->arena);

		if (!pair) {
			fail_room(r);
			continue;
		}
		pair->name = name_of(r, &name);
		pair->value = json_text(&r->json);
	}
}

static void
read_bytes(struct json_reading *r, struct sqs_attribute *at)
{
	const struct slice text = json_text(&r->json);
	char *const room = arena_alloc(r->arena, text.n + 1);
	size_t n = 0;

	if (!room || base64_decode(text, room, &n, NULL))
		json_fail(&r->json, SLU_EINVAL, NULL, "expected base64");
	at->bytes = (struct slice){ room, n };
	at->has_bytes = true;
}

static void
read_attribute(struct json_reading *r, struct sqs_attribute *at)
{
	struct json_str name;

	json_object(&r->json);
	while (json_member(&r->json, &name)) {
		if (json_null(&r->json))
			continue;
		if (json_str_is(&name, SLICE("DataType"))) {
			at->type = json_text(&r->json);
		} else if (json_str_is(&name, SLICE("StringValue"))) {
			at->text = json_text(&r->json);
			at->has_text = true;
		} else if (json_str_is(&name, SLICE("BinaryValue"))) {
			read_bytes(r, at);
		}
	}
}

static void
read_attributes(struct json_reading *r, struct sqs_attributes *l)
{
	struct json_str name;

	l->given = true;
	json_object(&r->json);
	while (json_member(&r->json, &name)) {
		struct sqs_attribute *const at = sqs_attributes_add(l, r->arena);

		if (!at) {
			fail_room(r);
			continue;
		}
		at->name = name_of(r, &name);
		read_attribute(r, at);
	}
}

static void read_members(struct json_reading *r, struct sqs_entry *e, bool in_entry);

static void
read_entries(struct json_reading *r)
{
	r->q->batch = true;
	json_array(&r->json);
	while (json_element(&r->json)) {
		struct sqs_entry *const e = sqs_request_entry(r->q, r->q->n_entries);

		if (e)
			read_members(r, e, true);
		else
			fail_room(r);
	}
}

static void
read_value(struct json_reading *r, const struct sqs_parameter *p, struct sqs_entry *e)
{
	char *const base = p->of_entry ? (char *)e : (char *)r->q;
	void *const place = base + p->offset;

	if (json_null(&r->json))
		return;
	if (p->has)
		*(bool *)(void *)(base + p->has) = true;
	if (p->kind == SQS_TEXT)
		*(struct slice *)place = json_text(&r->json);
	else if (p->kind == SQS_NUMBER)
		*(int64_t *)place = read_number(&r->json);
	else if (p->kind == SQS_NAMES)
		read_names(r, place);
	else if (p->kind == SQS_MAP)
		read_map(r, place);
	else if (p->kind == SQS_MESSAGE)
		read_attributes(r, place);
	else
		read_entries(r);
	if (r->json.state == JSON_FAILED)
		json_blame(&r->json, slice_of(p->json));
}

static const struct sqs_parameter *
find(const struct json_str *name, bool in_entry)
{
	for (unsigned i = 0; i < sqs_n_parameters; i++) {
		const struct sqs_parameter *const p = &sqs_parameters[i];

		if ((p->of_entry || !in_entry) && json_str_is(name, slice_of(p->json)))
			return p;
	}
	return NULL;
}

static void
read_members(struct json_reading *r, struct sqs_entry *e, bool in_entry)
{
	struct json_str name;

	json_object(&r->json);
	while (json_member(&r->json, &name)) {
		const struct sqs_parameter *const p = find(&name, in_entry);

		if (p)
			read_value(r, p, e);
	}
}

int
sqs_request_json(struct sqs_request *q, struct arena *a, struct slice body, struct slu_err *err)
{
	struct json_reading r = { .q = q, .arena = a };
	char *const room = arena_alloc(a, body.n + 1);

	if (!room || sqs_request_init(q, a))
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	json_init(&r.json, body.n > 0 ? body : SLICE("{}"), JSON_DEPTH);
	json_room(&r.json, room, body.n + 1);
	read_members(&r, &q->entries[0], false);
	return json_end(&r.json, err);
}
