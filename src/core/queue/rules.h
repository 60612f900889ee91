/*
 * rules.h - admission rules of a queue: attributes of a message set its priority, or delay it, when it is accepted.
 *
 *      risk > 0.8: high; source in (import, "night job") and size >= 100: low, delay 30s
 *      ───────────────── condition   ────────────── and ─────────── conditions   ─── actions
 *
 *  RULES-1  The first rule whose conditions all hold applies; later rules are not looked at.
 *  RULES-2  A condition compares a member of the attributes with a value: = != < <= > >=, or `in` a list. Two numbers are
 *           compared as numbers, everything else as text. < and the like hold for numbers only. A missing member makes every
 *           condition false.
 *  RULES-3  A rule has the actions high, normal, low or `priority N`, which set the priority, and `delay TIME`, which makes
 *           the message due so much later.
 *  RULES-4  A text has at most RULES_TEXT - 1 bytes and RULES_CONDITIONS conditions, so that a message is looked at so
 *           often at most.
 *
 * A value is a word, or a text in double quotes. Pure: no I/O, no clock, no memory.
 */
#ifndef CORE_QUEUE_RULES_H
#define CORE_QUEUE_RULES_H

#include "base/bytes.h"

#include <sluice/err.h>

#define RULES_DELAY_MAX (366 * 24 * SLU_HOUR)

enum {
	RULES_TEXT = 256, /* bytes of all rules, with the NUL */
	RULES_CONDITIONS = 16
};

/* What a rule does with a message. */
struct rules_effect {
	struct slice rule; /* the rule that applies; n 0: none does. Points into the text of the rules */
	bool sets_prio;
	int32_t prio;
	slu_time delay;
};

/* Returns SLU_EINVAL, with the rule in err, if the text is not a list of rules. An empty text is. */
int rules_check(struct slice rules, struct slu_err *err);

/* Fills *out with what the rules, which are valid, do with a message. attributes: a JSON object, or n 0. */
void rules_apply(struct slice rules, struct slice attributes, struct rules_effect *out);

/* The member `name` of attributes as text, cut to max bytes; n 0: it is missing, empty, null, an object or an array. Points into
 * attributes or into room, which has max bytes. */
struct slice rules_member(struct slice attributes, struct slice name, char *room, size_t max);

#endif
