/*
 * selector.h - which JSON documents are meant: a condition, in the JSON that lockd has
 * for it.
 *
 *      {"and":[s, s]}  {"or":[s, s]}  {"not":s}        s: such an object again
 *      {"eq":{"field":"/a/b","value":"x"}}             a text, number, true, false or null
 *      {"in":{"field":"/a","any":["x","y"]}}           "any":"x|y" is the same
 *      {"prefix":{"field":"/a","value":"x"}}           iprefix: in small or large letters
 *      {"contains":{"field":"/a","value":"x"}}         icontains as well; "any":[..] instead
 *      {"range":{"field":"/a","gte":1,"lt":9}}         gt, gte, lt, lte; numbers or moments
 *      {"date":{"field":"/a","since":"today"}}         value, since, after, before, gt, gte, lt, lte
 *      {"exists":"/a"}                                 and is not null
 *
 * All members of one object hold together, {} is every object. Fields are paths of
 * base/json_path.h and go through arrays; where one leads to several values, one of them has to
 * fit. Texts and numbers are compared as they are written, numbers also by what they are, dates
 * and times also as moments (core/moment.h). `since` is gte, and may be now, today or yesterday;
 * `after` is gt, `before` is lt. Only ASCII has small and large letters here. A document that is
 * no object never matches.
 *
 * Time is linear: at most selector_cost(s) steps for each byte of the document, whatever
 * the texts are. A step is about a nanosecond.
 *
 * Pure; one selector may be used by several threads.
 */
#ifndef CORE_SELECTOR_H
#define CORE_SELECTOR_H

#include "base/json_path.h"
#include "base/stop.h"

enum {
	SELECTOR_NODES = 64,
	SELECTOR_VALUES = 256,
	SELECTOR_NESTING = 16
};

struct selector;

/* now: what `since` counts from. SLU_EINVAL, with the place; SLU_ENOMEM. */
int selector_new(struct selector **out, struct slice json, slu_time now, struct slu_err *err);
void selector_free(struct selector *s); /* NULL is fine */

/* Does everything match? Then nobody needs to read documents. */
bool selector_is_empty(const struct selector *s);

unsigned selector_cost(const struct selector *s);

/* stop: another thread sets it to end the match early (SLU_ECANCELED); NULL: nobody does.
 * SLU_ENOMEM; SLU_EINVAL: the document is no JSON. */
int selector_match(const struct selector *s, struct slice document, const struct stop *stop,
		   bool *out, struct slu_err *err);

#endif
