#include "test.h"

#include "core/mutation.h"

#include <stdio.h>

static const slu_time noon = 1700000000 * SLU_SEC;

static int
mutate(const char *document, const char *text, struct buf *out, struct slu_err *err)
{
	const struct slice texts[] = { slice_of(text) };

	buf_init(out, 4096);
	return mutations_apply(texts, 1, slice_of(document), noon, NULL, out, err);
}

static void
check(const char *document, const char *text, const char *want)
{
	struct slu_err err;
	struct buf out;

	if (mutate(document, text, &out, &err))
		test_fail(__FILE__, __LINE__, "%s: %s", text, err.text);
	CHECK_STR(want, buf_str(&out));
	buf_release(&out);
}

TEST(a_document_is_changed)
{
	static const struct {
		const char *document;
		const char *text;
		const char *want;
	} cases[] = {
		/* set */
		{ "{}", "/a=1", "{\"a\":1}" },
		{ "{\"a\":1}", "/a=2", "{\"a\":2}" },
		{ "{\"b\":1}", "/a=x y", "{\"b\":1,\"a\":\"x y\"}" },
		{ "{}", "/a/b/c=true", "{\"a\":{\"b\":{\"c\":true}}}" },
		{ "{\"a\":{\"x\":1}}", "/a/b/c=null", "{\"a\":{\"x\":1,\"b\":{\"c\":null}}}" },
		{ "{\"a\":{}}", "/a/b=1.50", "{\"a\":{\"b\":1.50}}" },
		{ "{\"a\":5,\"z\":6}", "/a/b=1", "{\"a\":{\"b\":1},\"z\":6}" },
		{ "{\"a\":[1,2,3]}", "/a/1=x", "{\"a\":[1,\"x\",3]}" },
		{ "{\"a\":[{\"b\":1}]}", "/a/0/b++", "{\"a\":[{\"b\":2}]}" },
		{ "{}", "/a=\"hi, \\\"w\\\"\"", "{\"a\":\"hi, \\\"w\\\"\"}" },
		{ "{}", "/a='hi, w'", "{\"a\":\"hi, w\"}" },
		{ "{}", "/a=\"5\"", "{\"a\":5}" },
		{ "{}", "/a=\"-5\"", "{\"a\":-5}" },
		{ "{}", "/a=TRUE", "{\"a\":true}" },
		{ "{}", "/a=", "{\"a\":\"\"}" },
		{ "{}", "/hello key = Mars ", "{\"hello key\":\"Mars\"}" },
		{ "{}", "/a~1b=1", "{\"a/b\":1}" },
		{ "{\"a\\u002fb\":1}", "/a~1b=2", "{\"a\\u002fb\":2}" },
		{ "{}", "/a-b=+x", "{\"a-b\":\"+x\"}" },
		{ " { \"a\" : 1 } ", "/b=2", "{ \"a\" : 1 ,\"b\":2}" },
		/* count and add */
		{ "{\"n\":1}", "/n++", "{\"n\":2}" },
		{ "{}", "/n--", "{\"n\":-1}" },
		{ "{}", "/a/n=+3", "{\"a\":{\"n\":3}}" },
		{ "{\"n\":1}", "/n=-02", "{\"n\":-1}" },
		{ "{\"n\":1}", "/n+=3", "{\"n\":4}" },
		{ "{\"n\":1}", "/n-=5", "{\"n\":-4}" },
		{ "{\"n\":1}", "/n-=-01", "{\"n\":2}" },
		{ "{\"n\":9007199254740993}", "/n++", "{\"n\":9007199254740994}" },
		{ "{\"n\":0.1}", "/n=+0.2", "{\"n\":0.30000000000000004}" },
		{ "{\"n\":1.5}", "/n=+1.5", "{\"n\":3}" },
		{ "{\"n\":9223372036854775807}", "/n++", "{\"n\":9.223372036854776e+18}" },
		/* remove */
		{ "{\"a\":1,\"b\":2,\"c\":3}", "rm:/a", "{\"b\":2,\"c\":3}" },
		{ "{\"a\":1,\"b\":2,\"c\":3}", "remove:/b", "{\"a\":1,\"c\":3}" },
		{ "{\"a\":1,\"b\":2,\"c\":3}", "del:/c", "{\"a\":1,\"b\":2}" },
		{ "{\"a\":1}", "delete:/a", "{}" },
		{ "{\"a\":[1,2,3]}", "rm:/a/0", "{\"a\":[2,3]}" },
		{ "{\"a\":[1,2,3]}", "rm:/a/2", "{\"a\":[1,2]}" },
		{ "{\"a\":1}", "rm:/b/c", "{\"a\":1}" },
		{ "{\"a\":1}", "rm:/a/c", "{\"a\":1}" },
		/* time */
		{ "{}", "time:/t=NOW", "{\"t\":\"2023-11-14T22:13:20Z\"}" },
		{ "{}", "time:/t=\"2025-01-01T02:00:00+01:00\"", "{\"t\":\"2025-01-01T01:00:00Z\"}" },
		/* braces */
		{ "{}", "/s{/owner=\"alice\",/note=\"hi, world\"}", "{\"s\":{\"owner\":\"alice\",\"note\":\"hi, world\"}}" },
		{ "{\"s\":{\"n\":1,\"old\":2}}", "/s{ /n++ , rm:/old, /t{/x=1}}", "{\"s\":{\"n\":2,\"t\":{\"x\":1}}}" },
		{ "{}", "/s{/a=[1,2],/b={\"x\":1}\n/c=[x}", "{\"s\":{\"a\":\"[1,2]\",\"b\":\"{\\\"x\\\":1}\",\"c\":\"[x\"}}" },
		{ "{}", "\n/a{\n /b = \"c\"\n /d = e\n}\n", "{\"a\":{\"b\":\"c\",\"d\":\"e\"}}" },
	};

	EACH(i, cases)
		check(cases[i].document, cases[i].text, cases[i].want);
}

TEST(a_text_is_one_mutation_and_a_value_is_text_unless_it_is_a_word_or_number)
{
	static const struct {
		const char *document;
		const char *text;
		const char *want;
	} cases[] = {
		{ "{}", "/a={\"x\":[1,2]}", "{\"a\":\"{\\\"x\\\":[1,2]}\"}" },
		{ "{}", "/a=[1, 2]", "{\"a\":\"[1, 2]\"}" },
		{ "{}", "/a=007", "{\"a\":7}" },
		{ "{}", "/a=000", "{\"a\":0}" },
		{ "{}", "/a=\"-0.50e3\"", "{\"a\":-0.50e3}" },
		{ "{}", "/a=.5", "{\"a\":0.5}" },
		{ "{}", "/a=5.", "{\"a\":5}" },
		{ "{}", "/a=1e400", "{\"a\":\"1e400\"}" },
		{ "{}", "/a=1e", "{\"a\":\"1e\"}" },
		{ "{}", "/a=0x10", "{\"a\":\"0x10\"}" },
		/* a text is one mutation */
		{ "{}", "/note=a,/x=1", "{\"note\":\"a,/x=1\"}" },
		{ "{}", "/note=hello, world", "{\"note\":\"hello, world\"}" },
		{ "{}", "/note=one\ntwo\n", "{\"note\":\"one\\ntwo\"}" },
		{ "{}", "/note=c++", "{\"note\":\"c++\"}" },
		{ "{}", "/a=\"x", "{\"a\":\"\\\"x\"}" },
		{ "{}", "/a=\"x\" y", "{\"a\":\"\\\"x\\\" y\"}" },
		{ "{}", "/a=\"C:\\dir\"", "{\"a\":\"C:\\\\dir\"}" },
		{ "{}", "/a='x", "{\"a\":\"'x\"}" },
		{ "{}", "/a,b=1", "{\"a,b\":1}" },
	};

	EACH(i, cases)
		check(cases[i].document, cases[i].text, cases[i].want);
}

TEST(wildcards_change_what_is_there_and_make_nothing)
{
	static const struct {
		const char *document;
		const char *text;
		const char *want;
	} cases[] = {
		{ "{\"a\":{\"x\":1,\"y\":2}}", "/a/*=0", "{\"a\":{\"x\":0,\"y\":0}}" },
		{ "{\"a\":[1,2]}", "/a/*=0", "{\"a\":[1,2]}" },
		{ "{\"a\":[1,2]}", "/a[]++", "{\"a\":[2,3]}" },
		{ "{\"a\":{\"x\":1}}", "/a[]++", "{\"a\":{\"x\":1}}" },
		{ "{\"i\":[{\"n\":1},{\"m\":1},7]}", "/i/[]/n=x", "{\"i\":[{\"n\":\"x\"},{\"m\":1},7]}" },
		{ "{\"a\":[1],\"b\":{\"c\":2}}", "/**/**=+1", "{\"a\":[2],\"b\":{\"c\":3}}" },
		{ "{\"n\":1,\"a\":{\"n\":2,\"b\":[{\"n\":3}]}}", "/.../n++", "{\"n\":2,\"a\":{\"n\":3,\"b\":[{\"n\":4}]}}" },
		{ "{\"n\":{\"n\":1}}", "/.../n=x", "{\"n\":\"x\"}" },
		{ "{\"a\":1,\"b\":[2]}", "/...=0", "{\"a\":0,\"b\":0}" },
		{ "{\"a\":1}", "/b/*/c=0", "{\"a\":1}" },
		{ "{ \"a\" : [ 1 , 2 , 3 ] , \"b\" : 0 }", "rm:/a[]", "{ \"a\" : [  ] , \"b\" : 0 }" },
		{ "{\"a\":1,\"b\":2}", "rm:/*", "{}" },
		{ "{\"s\":[{\"t\":1,\"u\":2},{\"u\":3,\"t\":4},{\"t\":5}]}", "rm:/s[]/t", "{\"s\":[{\"u\":2},{\"u\":3},{}]}" },
		{ "{\"t\":0,\"s\":{\"t\":[1],\"u\":{\"t\":1,\"v\":1,\"t\":1}},\"t\":9}", "rm:/.../t", "{\"s\":{\"u\":{\"v\":1}}}" },
		{ "{\"s\":[{\"a\":1},{\"b\":1}]}", "/s[]{/a=2,/b=3}", "{\"s\":[{\"a\":2},{\"b\":3}]}" },
		{ "{\"at\":{\"x\":0}}", "time:/at/*=NOW", "{\"at\":{\"x\":\"2023-11-14T22:13:20Z\"}}" },
	};

	EACH(i, cases)
		check(cases[i].document, cases[i].text, cases[i].want);
}

TEST(what_cannot_be_done_says_why_and_where)
{
	static const struct {
		const char *document;
		const char *text;
		const char *want;
	} cases[] = {
		{ "{}", "", "expected at least one mutation" },
		{ "{}", "badexpr", "mutation 1: character 8: expected =, ++, -- or { behind a path" },
		{ "{}", "a=1", "mutation 1: character 2: expected a path as in /a/b before this" },
		{ "{}", "/=1", "mutation 1: character 2: expected a path as in /a/b before this" },
		{ "{}", "/a", "mutation 1: character 3: expected =, ++, -- or { behind a path" },
		{ "{}", "/a~3=1", "mutation 1: character 5: expected ~0 or ~1 for ~ and /, not \"a~3\"" },
		{ "{}", "/a{/b=\"x", "mutation 1: character 9: expected a quote to end the string" },
		{ "{}", "/a{/b='x", "mutation 1: character 7: expected a ' that ends this text" },
		{ "{}", "/a{/b=\"x\" y}", "mutation 1: character 11: expected a comma or the end" },
		{ "{}", "/a{/b=1},/c=2", "mutation 1: character 9: expected the end: each text is one mutation" },
		{ "{}", "/a{/b=1}\n/c=2", "mutation 1: character 10: expected the end: each text is one mutation" },
		{ "{}", "/a{/b=1", "mutation 1: character 8: expected a } that ends the braces" },
		{ "{}", "/a{/a{/a{/a{/a{/a{/a{/a{/a{/b=1}}}}}}}}}", "fewer braces" },
		{ "{}", "/n+=x", "mutation 1: character 6: expected a number before this" },
		{ "{}", "rm:/a=1", "mutation 1: character 6: expected nothing but a path to remove" },
		{ "{}", "time:/a=later", "mutation 1: character 14: expected NOW or a moment of RFC 3339 before this" },
		{ "{}", "time:/a++", "mutation 1: character 10: expected =, ++, -- or { behind a path" },
		{ "{\"n\":\"x\"}", "/n++", "mutation 1: invalid value to add to; expected a number" },
		{ "{\"n\":[1,\"x\"]}", "/n[]++", "mutation 1: invalid value to add to; expected a number" },
		{ "{\"n\":1e308}", "/n+=1e308", "mutation 1: the sum is too large for a number" },
		{ "{\"a\":[1]}", "/a/1=2", "mutation 1: an array has no element \"1\"" },
		{ "{\"a\":[1]}", "/a/x/y=2", "mutation 1: an array has no element \"x\"" },
		{ "{\"a\":1,\"a\":2}", "/a=3", "mutation 1: invalid document: \"a\" is twice in one object" },
		{ "[1]", "/0=3", "the document is an array, not an object" },
	};

	EACH(i, cases) {
		struct slu_err err;
		struct buf out;

		CHECK_EQ(SLU_EINVAL, mutate(cases[i].document, cases[i].text, &out, &err), cases[i].text);
		CHECK_CONTAINS(cases[i].want, err.text);
		buf_release(&out);
	}
}

TEST(texts_are_applied_in_order_and_counted)
{
	struct slice texts[MUTATIONS_MAX + 1];
	struct slu_err err;
	struct buf out;

	EACH(i, texts)
		texts[i] = SLICE("/n++");
	buf_init(&out, 4096);
	CHECK_EQ(0, mutations_apply(texts, MUTATIONS_MAX, SLICE("{}"), noon, NULL, &out, &err));
	CHECK_STR("{\"n\":128}", buf_str(&out));
	CHECK_EQ(SLU_EINVAL, mutations_apply(texts, COUNT(texts), SLICE("{}"), noon, NULL, &out, &err));
	CHECK_STR("mutation 129: too many mutations; expected at most 128", err.text);
	buf_release(&out);
}

TEST(a_document_that_grows_too_large_is_refused)
{
	const struct slice text = SLICE("/a=123456789");
	struct slu_err err;
	struct buf out;

	buf_init(&out, 16);
	CHECK_EQ(SLU_ETOOBIG, mutations_apply(&text, 1, SLICE("{\"b\":1}"), noon, NULL, &out, &err));
	buf_release(&out);
	buf_init(&out, 10);
	CHECK_EQ(SLU_ETOOBIG, mutations_apply(&text, 1, SLICE("{}"), noon, NULL, &out, &err));
	buf_release(&out);
}

/* Before any text is applied: the last text cannot be applied, and is not reached. */
TEST(many_mutations_of_a_large_document_are_refused_at_once)
{
	enum {
		SIZE = 15 << 20
	};
	static char doc[SIZE + 16];
	struct slice texts[MUTATIONS_MAX];
	struct slu_err err;
	struct buf out;
	size_t n;

	n = (size_t)snprintf(doc, sizeof doc, "{\"t\":\"");
	memset(doc + n, 'a', SIZE);
	memcpy(doc + n + SIZE, "\"}", 3);
	for (unsigned i = 0; i < MUTATIONS_MAX; i++)
		texts[i] = i ? SLICE("/n++") : SLICE("/t/0/x++");
	buf_init(&out, 16 << 20);
	CHECK_EQ(SLU_ETOOBIG, mutations_apply(texts, MUTATIONS_MAX, slice_of(doc), noon, NULL, &out, &err));
	CHECK_STR("128 mutations of a document of 15728648 bytes; expected at most 17 in one call", err.text);
	CHECK_EQ(0, mutations_apply(texts, 2, slice_of(doc), noon, NULL, &out, &err), err.text);
	buf_release(&out);
}

TEST(mutations_that_make_a_document_large_end_at_the_same_bound)
{
	enum {
		SIZE = 15 << 20
	};
	static char first[SIZE + 16];
	struct slice texts[MUTATIONS_MAX];
	struct slu_err err;
	struct buf out;

	memcpy(first, "/t=\"", 4);
	memset(first + 4, 'a', SIZE);
	first[4 + SIZE] = '"';
	for (unsigned i = 0; i < MUTATIONS_MAX; i++)
		texts[i] = i ? SLICE("/n++") : slice_of(first);
	buf_init(&out, 16 << 20);
	CHECK_EQ(SLU_ETOOBIG, mutations_apply(texts, MUTATIONS_MAX, SLICE("{}"), noon, NULL, &out, &err));
	CHECK_CONTAINS("too much work", err.text);
	buf_release(&out);
}

TEST(mutations_can_be_ended)
{
	static struct stop stop = { .set = true };
	const struct slice text = SLICE("/n++");
	struct slu_err err;
	struct buf out;

	buf_init(&out, 64);
	CHECK_EQ(SLU_ECANCELED, mutations_apply(&text, 1, SLICE("{}"), noon, &stop, &out, &err));
	buf_release(&out);
}

TORTURE(mutations_survive_a_lack_of_memory)
{
	const struct slice texts[] = {
		SLICE("/a/b=\"x\\ny\""),
		SLICE("/n++"),
		SLICE("rm:/old"),
		SLICE("/s{/t=0}"),
		SLICE("/s/*++"),
	};
	struct slu_err err;
	struct buf out;

	buf_init(&out, 4096);
	if (mutations_apply(texts, COUNT(texts), SLICE("{\"old\":1}"), noon, NULL, &out, &err) == 0)
		CHECK_STR("{\"a\":{\"b\":\"x\\ny\"},\"n\":1,\"s\":{\"t\":1}}", buf_str(&out));
	buf_release(&out);
}
