/*
 * Admission rules: core/queue/rules.h.
 */
#include "test.h"

#include "core/queue/rules.h"

#include <stdio.h>

TEST(a_text_of_rules_is_checked)
{
	static const struct {
		const char *label, *text;
		int rc;
	} cases[] = {
		{ "empty", "", 0 },
		{ "one", "risk > 0.8: high", 0 },
		{ "two, and no space", "a=1:low;b!=\"x y\":delay 30s", 0 },
		{ "a list", "source in (x, y, \"a;b\"): low, delay 1h", 0 },
		{ "and", "a = 1 and b <= 2 and c >= 3 and d < 4: priority -7", 0 },
		{ "no action", "a = 1:", SLU_EINVAL },
		{ "no condition", ": high", SLU_EINVAL },
		{ "no colon", "a = 1 high", SLU_EINVAL },
		{ "unknown action", "a = 1: urgent", SLU_EINVAL },
		{ "no value", "a = : high", SLU_EINVAL },
		{ "no sign", "a 1: high", SLU_EINVAL },
		{ "two priorities", "a = 1: high, low", SLU_EINVAL },
		{ "two delays", "a = 1: delay 1s, delay 2s", SLU_EINVAL },
		{ "no time", "a = 1: delay soon", SLU_EINVAL },
		{ "no delay", "a = 1: delay 0s", SLU_EINVAL },
		{ "too long a delay", "a = 1: delay 9000h", SLU_EINVAL },
		{ "a fraction of a priority", "a = 1: priority 1.5", SLU_EINVAL },
		{ "an open quote", "a = \"x: high", SLU_EINVAL },
		{ "an open list", "a in (x: high", SLU_EINVAL },
		{ "an empty list", "a in (): high", SLU_EINVAL },
		{ "more behind it", "a = 1: high low", SLU_EINVAL },
		{ "an empty rule", "a = 1: high;;", SLU_EINVAL },
	};

	EACH(i, cases)
		CHECK_EQ(cases[i].rc, rules_check(slice_of(cases[i].text), NULL), cases[i].label);
}

/* RULES-4 */
TEST(rules_have_so_many_conditions_at_most)
{
	char text[RULES_TEXT] = "";
	struct slu_err err;

	for (int i = 0; i < RULES_CONDITIONS; i++)
		(void)snprintf(text + strlen(text), sizeof text - strlen(text), "%sa=1:low", i ? ";" : "");
	CHECK_EQ(0, rules_check(slice_of(text), &err));
	(void)snprintf(text + strlen(text), sizeof text - strlen(text), ";a=1:low");
	CHECK_EQ(SLU_EINVAL, rules_check(slice_of(text), &err));
	CHECK_CONTAINS("at most 16", err.text);
}

/* PW-F1, PW-F3 */
TEST(the_first_rule_whose_conditions_hold_applies)
{
	static const char rules[] = "risk > 0.8: high; source in (x, \"a b\") and n != 3: low, delay 30s; n = 3: priority 42";
	static const struct {
		const char *label, *attributes;
		int prio; /* -1: no rule */
		slu_time delay;
	} cases[] = {
		{ "a number", "{\"risk\":0.81}", 0, 0 },
		{ "a number in a text", "{\"risk\":\"9e1\"}", 0, 0 },
		{ "not more", "{\"risk\":0.8}", -1, 0 },
		{ "not a number", "{\"risk\":\"much\"}", -1, 0 },
		{ "the first one counts", "{\"n\":3,\"risk\":1}", 0, 0 },
		{ "in a list", "{\"source\":\"a b\",\"n\":4}", 10, 30 * SLU_SEC },
		{ "an escaped text", "{\"source\":\"\\u0078\",\"n\":4}", 10, 30 * SLU_SEC },
		{ "a missing member is not unequal", "{\"source\":\"x\"}", -1, 0 },
		{ "one condition does not hold", "{\"source\":\"x\",\"n\":3.0}", 42, 0 },
		{ "not in the list", "{\"source\":\"xx\",\"n\":4}", -1, 0 },
		{ "objects, lists and null never match", "{\"n\":[3],\"risk\":{},\"source\":null}", -1, 0 },
		{ "no attributes", "", -1, 0 },
		{ "damaged attributes", "{\"n\"", -1, 0 },
	};

	CHECK_EQ(0, rules_check(slice_of(rules), NULL));
	EACH(i, cases) {
		struct rules_effect e;

		rules_apply(slice_of(rules), slice_of(cases[i].attributes), &e);
		CHECK_EQ(cases[i].prio >= 0, e.rule.n > 0, cases[i].label);
		CHECK_EQ(cases[i].prio >= 0, e.sets_prio, cases[i].label);
		CHECK_EQ(cases[i].prio >= 0 ? cases[i].prio : 0, e.prio, cases[i].label);
		CHECK_EQ(cases[i].delay, e.delay, cases[i].label);
	}
}

TEST(the_rule_that_applied_is_named)
{
	struct rules_effect e;

	rules_apply(SLICE("a = 1: low; b = \"x;y\" : high ; c = 1: low"), SLICE("{\"b\":\"x;y\"}"), &e);
	CHECK(slice_eq(e.rule, SLICE("b = \"x;y\" : high")));
}
