/*
 * selector.h - a condition on JSON documents, in the JSON form of lockd.
 *
 *      {"and":[s, s]}  {"or":[s, s]}  {"not":s}        s: another selector
 *      {"eq":{"field":"/a/b","value":"x"}}             a text, number, true, false or null
 *      {"in":{"field":"/a","any":["x","y"]}}           "any":"x|y" is the same
 *      {"prefix":{"field":"/a","value":"x"}}           iprefix: without regard to case
 *      {"contains":{"field":"/a","value":"x"}}         icontains: the same; "any":[..] instead
 *      {"range":{"field":"/a","gte":1,"lt":9}}         gt, gte, lt, lte; numbers or moments
 *      {"date":{"field":"/a","since":"today"}}         value, since, after, before, gt, gte, lt, lte
 *      {"exists":"/a"}                                 and is not null
 *
 * All members of one object must hold; {} matches every object. Fields are paths of
 * base/json/json_path.h and go through arrays; if a path leads to several values, one of them must
 * match. Texts and numbers are compared as written, numbers also by value, dates and times also as
 * moments (core/moment.h). `since` is gte, and may be now, today or yesterday; `after` is gt,
 * `before` is lt. Without regard to case: only for ASCII letters. A document that is not an object
 * never matches.
 *
 * Time is linear: at most selector_cost(s) steps for each byte of the document. A step is about a
 * nanosecond.
 *
 * Pure; several threads may use one selector.
 */
#ifndef CORE_SELECTOR_H
#define CORE_SELECTOR_H

#include "base/json/json_path.h"
#include "base/stop.h"

enum {
	SELECTOR_NODES = 64,
	SELECTOR_VALUES = 256,
	SELECTOR_NESTING = 16
};

struct selector;

/* now: for the words now, today and yesterday. Returns SLU_EINVAL with the place, or SLU_ENOMEM. */
int selector_new(struct selector **out, struct slice json, slu_time now, struct slu_err *err);
void selector_free(struct selector *s); /* NULL is fine */

/* Returns whether every document matches, so that the caller need not read any. */
bool selector_is_empty(const struct selector *s);

unsigned selector_cost(const struct selector *s);

/* stop: set by another thread to end early (SLU_ECANCELED); may be NULL. Returns SLU_ENOMEM, or
 * SLU_EINVAL if the document is not valid JSON. */
int selector_match(const struct selector *s, struct slice document, const struct stop *stop,
		   bool *out, struct slu_err *err);

#endif
