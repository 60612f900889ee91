/*
 * fuzz_mutation.c - a document, a line end, then a mutation or a selector, in JSON or in words. Whatever is
 * done to a valid object leaves a valid object; what comes in pieces is judged as what
 * comes whole.
 */
#include "fuzz.h"

#include "base/json/json_compact.h"
#include "core/lql.h"
#include "core/mutation.h"
#include "core/selector.h"

enum {
	MOST = 64 << 10
};

static bool
is_valid(struct slice document)
{
	struct json r;

	json_init(&r, document, JSON_DEPTH_MAX);
	return json_end(&r, NULL) == 0;
}

/* In two pieces, cut wherever the input says. */
static void
check_compact(struct slice document, size_t cut, bool valid)
{
	const struct slice head = { document.p, cut < document.n ? cut : document.n };
	const struct slice tail = { document.p + head.n, document.n - head.n };
	struct json_compact c;
	struct buf out;
	bool taken;

	buf_init(&out, document.n + 1);
	json_compact_init(&c, JSON_DEPTH_MAX);
	taken = json_compact(&c, head, &out, NULL) == 0 && json_compact(&c, tail, &out, NULL) == 0 &&
		json_compact_end(&c, NULL) == 0;
	FUZZ_CHECK(taken == valid);
	FUZZ_CHECK(!taken || is_valid(buf_slice(&out)));
	buf_release(&out);
}

static void
check_mutation(struct slice document, struct slice text)
{
	struct slu_err err;
	struct buf out;
	int rc;

	buf_init(&out, MOST * 4);
	rc = mutations_apply(&text, 1, document, 0, NULL, &out, &err);
	FUZZ_CHECK(rc == 0 ? is_valid(buf_slice(&out)) : err.text[0] != '\0');
	buf_release(&out);
}

static void
check_selector(struct slice document, struct slice text)
{
	struct selector *s;
	bool fits;

	if (selector_new(&s, text, 0, NULL))
		return;
	FUZZ_CHECK(selector_match(s, document, NULL, &fits, NULL) == 0);
	selector_free(s);
}

/* The same in words. */
static void
check_lql(struct slice document, struct slice text)
{
	struct buf json;
	struct lql l;

	lql_init(&l);
	buf_init(&json, MOST * 8);
	if (lql_add_text(&l, text, NULL) == 0 && lql_write(&l, &json, NULL) == 0)
		check_selector(document, buf_slice(&json));
	buf_release(&json);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *const p = (const char *)data;
	const char *const line = size > 0 ? memchr(p, '\n', size) : NULL;
	const struct slice document = { p, line ? (size_t)(line - p) : size };
	const bool valid = is_valid(document);

	if (size > MOST)
		return 0;
	check_compact(document, size / 3, valid);
	if (valid && line) {
		const struct slice text = { line + 1, size - document.n - 1 };

		check_mutation(document, text);
		check_selector(document, text);
		check_lql(document, text);
	}
	return 0;
}
