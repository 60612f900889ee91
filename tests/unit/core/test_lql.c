#include "test.h"

#include "core/lql.h"
#include "core/selector.h"

#include <stdio.h>

static const char document[] =
	"{\"status\":\"open\",\"n\":72,\"s\":\"007\",\"ok\":true,\"none\":null,\"tags\":[\"a\",\"B\"],"
	"\"at\":\"2025-06-01T12:00:00+02:00\",\"msg\":\"hello, world\"}";

static int
convert(const char *text, struct buf *out, struct slu_err *err)
{
	struct lql l;
	int rc;

	buf_init(out, 4096);
	lql_init(&l);
	rc = lql_add_text(&l, slice_of(text), err);
	return rc ? rc : lql_write(&l, out, err);
}

static bool
matches(const char *text)
{
	struct selector *s;
	struct slu_err err;
	struct buf json;
	bool fits;

	if (convert(text, &json, &err) || selector_new(&s, buf_slice(&json), 0, &err))
		test_fail(__FILE__, __LINE__, "%s: %s", text, err.text);
	CHECK_EQ(0, selector_match(s, slice_of(document), NULL, &fits, &err));
	selector_free(s);
	buf_release(&json);
	return fits;
}

TEST(an_expression_is_a_condition)
{
	static const struct {
		const char *text;
		bool want;
	} cases[] = {
		{ "", true },
		{ "/status=\"open\"", true },
		{ "/status=open", true },
		{ "/status == open", true },
		{ "/status!=open", false },
		{ "/status!=closed", true },
		{ "/n>=72", true },
		{ "/n>72", false },
		{ "/n<=72", true },
		{ "/n < 72", false },
		{ "/n=72.0", true },
		{ "/s=\"007\"", true },
		{ "/ok=true", true },
		{ "/none=null", true },
		{ "/at>=\"2025-06-01T10:00:00Z\"", true },
		{ "/at=2025-06-01", true },
		{ "/msg=\"hello, world\"", true },
		{ "/status=open,/n>5", true },
		{ "/status=open\n/n>500", false },
		{ "eq{field=/status,value=open}", true },
		{ "EQ{f=/status, v='open'}", true },
		{ "eq{field=/status value=open}", true },
		{ "contains{field=/msg,value=\"lo, w\"}", true },
		{ "contains{field=/msg,any=xyz|world}", true },
		{ "icontains{f=/msg,a=\"xyz|WORLD\"}", true },
		{ "contains{field=/msg,value=HELLO,ic=t}", true },
		{ "contains{field=/msg,value=HELLO,ignoreCase=false}", false },
		{ "prefix{field=/msg,value=hello}", true },
		{ "range{field=/n,gt=70,lt=\"73\"}", true },
		{ "date{field=/at,value=2025-06-01,before=2025-06-02}", true },
		{ "date{field=/at,since=now}", true },
		{ "in{field=/status,any=[\"queued\",\"open\"]}", true },
		{ "in{field=/status,any=queued|open}", true },
		{ "in{field=/tags,any=B}", true },
		{ "exists{/status}", true },
		{ "exists{field=/nothing}", false },
		{ "exists=/status,exists=/nothing", false },
		{ "not.exists{/nothing}", true },
		{ "not.eq{field=/status,value=open}", false },
	};

	EACH(i, cases)
		if (matches(cases[i].text) != cases[i].want)
			test_fail(__FILE__, __LINE__, "%s", cases[i].text);
}

TEST(expressions_hold_together_and_of_those_with_or_one_has_to)
{
	static const struct {
		const char *text;
		bool want;
	} cases[] = {
		{ "and.eq{field=/status,value=open},and.range{field=/n,gte=50}", true },
		{ "or.eq{field=/status,value=x},or.eq{field=/n,value=72}", true },
		{ "or.eq{field=/status,value=x},or.eq{field=/n,value=1}", false },
		{ "/ok=true,or.eq{field=/status,value=x},or.not.eq{field=/n,value=1}", true },
		{ "/ok=false,or.eq{field=/status,value=open}", false },
		{ "or.1.eq{field=/status,value=open},or.1.eq{field=/n,value=1},or.2.exists{/none}", false },
		{ "or.1.eq{field=/status,value=open},or.1.eq{field=/n,value=72},or.2.exists{/none}", true },
		{ "eq.field=/status,eq.value=open", true },
		{ "eq.f=/status,eq.v=closed", false },
		{ "and.0.eq.field=/status,and.1.eq.field=/n,and.0.eq.value=open,and.1.eq.value=72", true },
		{ "and.0.eq.field=/status,and.1.eq.field=/n,and.0.eq.value=open,and.1.eq.value=1", false },
	};

	EACH(i, cases)
		if (matches(cases[i].text) != cases[i].want)
			test_fail(__FILE__, __LINE__, "%s", cases[i].text);
}

TEST(what_is_no_expression_is_refused)
{
	static const struct {
		const char *text;
		const char *want;
	} cases[] = {
		{ "status=open", "invalid expression \"status=open\"; expected a path as in /a/b" },
		{ "like{field=/a}", "expected a path as in /a/b, or [and|or]" },
		{ "and.or.eq{field=/a,value=1}", "expected a path as in /a/b, or [and|or]" },
		{ "/a", "expected a comparison as in /a=1" },
		{ "/a=", "expected a value at its end" },
		{ "eq", "expected {..} or .name=value" },
		{ "eq{}", "something between the braces" },
		{ "eq{field=/a,value=1", "expected a } that ends the braces" },
		{ "eq{field=/a,value=1}x", "expected a } at its end" },
		{ "eq{field}", "expected name=value" },
		{ "/a=\"x", "expected a quote that ends the text" },
		{ "contains{field=/a,value=x,ic=maybe}", "expected true or false for ignoreCase" },
		{ "eq.field=/a,eq.field=/b,eq.value=1", "each name of a condition once" },
	};

	EACH(i, cases) {
		struct slu_err err;
		struct buf json;

		CHECK_EQ(SLU_EINVAL, convert(cases[i].text, &json, &err), cases[i].text);
		CHECK_CONTAINS(cases[i].want, err.text);
		buf_release(&json);
	}
}

TEST(there_is_a_limit_of_expressions)
{
	struct slu_err err;
	struct lql l;

	lql_init(&l);
	for (unsigned i = 0; i < LQL_MAX; i++)
		CHECK_EQ(0, lql_add(&l, SLICE("/a=1"), &err));
	CHECK_EQ(SLU_EINVAL, lql_add(&l, SLICE("/a=1"), &err));
	CHECK_CONTAINS("too many expressions; expected at most 64", err.text);
}

TEST(the_beginning_tells_an_expression)
{
	CHECK(lql_is_expression(SLICE("/a")));
	CHECK(lql_is_expression(SLICE("or.1.eq{field")));
	CHECK(lql_is_expression(SLICE("exists")));
	CHECK(!lql_is_expression(SLICE("limit")));
	CHECK(!lql_is_expression(SLICE("")));
}

TORTURE(expressions_survive_a_lack_of_memory)
{
	struct slu_err err;
	struct buf json;

	if (convert("/a=1,or.eq{field=/b,value=x}", &json, &err) == 0)
		CHECK_STR("{\"and\":[{\"eq\":{\"field\":\"/a\",\"value\":1}}],"
			  "\"or\":[{\"eq\":{\"field\":\"/b\",\"value\":\"x\"}}]}",
			  buf_str(&json));
	buf_release(&json);
}
