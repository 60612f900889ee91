/*
 * lql.h - translates lockd's query language into the JSON of core/selector.h.
 *
 *      /status="open"  /n>=5  /a!=b                  shorthand: = == != > >= < <=
 *      eq{field=/status,value=open}                  every condition of core/selector.h
 *      in{f=/status,a=new|open}                      f, v, a, ic: field, value, any, ignoreCase
 *      exists{/a}
 *      not.eq{field=/status,value=done}
 *      and.eq{..}  or.eq{..}  or.1.eq{..}            conditions with one number are joined by and
 *      eq.field=/status  eq.value=open               two expressions, one condition
 *
 * Commas or line feeds separate expressions in a text. All of them must hold; of those that begin
 * with `or`, one must.
 *
 *         lql_init(&l);
 *         rc = lql_add_text(&l, SLICE("/status=open,/n>5"), &err);
 *         if (!rc)
 *                 rc = lql_write(&l, &json, &err);
 *
 * Pure. Added text must stay valid until lql_write has returned.
 */
#ifndef CORE_LQL_H
#define CORE_LQL_H

#include "base/bytes.h"

#include <sluice/err.h>

enum {
	LQL_MAX = 64 /* expressions */
};

struct lql_expression {
	bool any;           /* begins with `or` */
	int64_t number;     /* with any: of or.N; -1: none */
	bool negate;        /* begins with `not` */
	const char *name;   /* of the condition */
	struct slice body;  /* the text in the braces */
	struct slice field; /* of a shorthand */
	struct slice key;   /* of a shorthand and of eq.key=value */
	struct slice value; /* the same */
};

struct lql {
	unsigned n;
	struct lql_expression expressions[LQL_MAX];
};

void lql_init(struct lql *l);

/* Returns whether a text begins as an expression: with a slash, and, or, not, or a condition. */
bool lql_is_expression(struct slice text);

/* Add one expression, or a text of several. Return SLU_EINVAL if they are not valid. */
int lql_add(struct lql *l, struct slice expression, struct slu_err *err);
int lql_add_text(struct lql *l, struct slice text, struct slu_err *err);

/* Appends the selector of all expressions. Returns SLU_EINVAL, or SLU_ENOMEM if out failed. */
int lql_write(const struct lql *l, struct buf *out, struct slu_err *err);

#endif
