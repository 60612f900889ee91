/*
 * fuzz_json.c - whatever is taken can be written, and what was written reads the
 * same; whatever is refused names a place inside the document. A table that copies members
 * which repeat reads the same as one that does not.
 */
#include "fuzz.h"

#include "base/json/json.h"
#include "base/json/json_out.h"
#include "base/json/json_table.h"

enum {
	MOST = 1 << 20
};

static struct slice
text_of(const struct json_str *s, char *room)
{
	const struct slice text = json_str_text(s, room);

	FUZZ_CHECK(text.n == s->n && json_str_is(s, text));
	FUZZ_CHECK(s->has_nul == (text.n > 0 && memchr(text.p, 0, text.n)));
	return text;
}

static void
write_event(struct json_out *w, const struct json_event *e, char *room)
{
	switch (e->type) {
	case JSON_OBJECT:
		json_out_object(w, NULL);
		break;
	case JSON_ARRAY:
		json_out_array(w, NULL);
		break;
	case JSON_CLOSE:
		json_out_close(w);
		break;
	case JSON_MEMBER:
		json_out_name(w, text_of(&e->str, room));
		break;
	case JSON_STRING:
		json_out_str(w, NULL, text_of(&e->str, room));
		break;
	default:
		json_out_raw(w, NULL, e->raw);
		break;
	}
}

/* Both to their end, side by side. */
static void
check_same(struct slice a, struct slice b, char *room)
{
	char *const other_room = room + a.n;
	struct json_event x, y;
	struct json r, s;

	json_init(&r, a, JSON_DEPTH);
	json_init(&s, b, JSON_DEPTH);
	while (json_next(&r, &x)) {
		FUZZ_CHECK(json_next(&s, &y) && x.type == y.type);
		if (x.type == JSON_MEMBER || x.type == JSON_STRING)
			FUZZ_CHECK(slice_eq(text_of(&x.str, room), text_of(&y.str, other_room)));
		else
			FUZZ_CHECK(slice_eq(x.raw, y.raw));
	}
	FUZZ_CHECK(!json_next(&s, &y));
	FUZZ_CHECK(json_end(&r, NULL) == 0 && json_end(&s, NULL) == 0);
}

static void
check_refusal(struct json *r, struct slice document)
{
	const struct json_pos pos = json_pos(r);
	struct slu_err err;

	FUZZ_CHECK(json_end(r, &err) == SLU_EINVAL && err.text[0]);
	FUZZ_CHECK(pos.offset <= document.n && pos.line >= 1 && pos.column >= 1);
}

static void
check_numbers(struct slice raw)
{
	struct json r;

	json_init(&r, raw, 0);
	(void)json_i64(&r, INT64_MIN, INT64_MAX);
	json_init(&r, raw, 0);
	(void)json_u64(&r, 0, UINT64_MAX);
	json_init(&r, raw, 0);
	(void)json_double(&r);
}

struct item {
	struct slice a, b, c;
	uint64_t d;
};

static const struct json_field fields[] = {
	JSON_FIELD(text, struct item, a, .required = true, .repeats = true),
	JSON_FIELD(text, struct item, b, .repeats = true, .also = { "e", 1 }),
	JSON_FIELD(text, struct item, c),
	JSON_FIELD(u64, struct item, d),
};

/* Reads the objects of an array, with and without `again`. */
static void
check_again(struct slice document, char *room)
{
	struct json_habit habit = { 0 };
	struct json_again again = { .habit = &habit };
	struct slu_err err = { 0 }, other_err = { 0 };
	struct json r, s;

	json_init(&r, document, JSON_DEPTH);
	json_room(&r, room, document.n);
	json_init(&s, document, JSON_DEPTH);
	json_room(&s, room + document.n, document.n);
	json_array(&r);
	json_array(&s);
	while (json_element(&r)) {
		struct item x = { 0 }, y = { 0 };

		FUZZ_CHECK(json_element(&s));
		FUZZ_CHECK(json_fields(&r, fields, COUNT(fields), JSON_LENIENT, &x) ==
			   json_fields_again(&s, fields, COUNT(fields), JSON_LENIENT, &again, &y));
		FUZZ_CHECK(slice_eq(x.a, y.a) && slice_eq(x.b, y.b) && slice_eq(x.c, y.c));
		FUZZ_CHECK(x.d == y.d && r.p == s.p && r.value == s.value);
	}
	FUZZ_CHECK(!json_element(&s));
	FUZZ_CHECK(json_end(&r, &err) == json_end(&s, &other_err));
	FUZZ_CHECK(strcmp(err.text, other_err.text) == 0);
}

static void
check(struct slice document, struct buf *b, char *room)
{
	struct json_event e;
	struct json_out w;
	struct slice whole;
	struct json r;

	json_init(&r, document, JSON_DEPTH);
	json_out_init(&w, b);
	while (json_next(&r, &e)) {
		FUZZ_CHECK(e.raw.p >= document.p && e.raw.p + e.raw.n <= document.p + document.n);
		write_event(&w, &e, room);
		if (e.type == JSON_NUMBER)
			check_numbers(e.raw);
	}
	if (json_end(&r, NULL)) {
		check_refusal(&r, document);
		return;
	}
	json_out_end(&w);
	check_same(document, buf_slice(b), room);
	json_init(&r, document, JSON_DEPTH);
	whole = json_skip(&r);
	FUZZ_CHECK(json_end(&r, NULL) == 0);
	check_same(whole, document, room);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf b;
	char *room;

	if (size > MOST)
		return 0;
	/* A control character takes six bytes when it is written; then both are held. */
	room = malloc(8 * size + 1);
	FUZZ_CHECK(room);
	buf_init(&b, 8 * size + 1);
	check((struct slice){ (const char *)data, size }, &b, room);
	FUZZ_CHECK(!b.failed);
	check_again((struct slice){ (const char *)data, size }, room);
	buf_release(&b);
	free(room);
	return 0;
}
