/*
 * lql.h - conditions in the words of lockd's query language, as the JSON of core/selector.h.
 *
 *      /status="open"  /n>=5  /a!=b                  shorthand: = == != > >= < <=
 *      eq{field=/status,value=open}                  every condition of core/selector.h
 *      in{f=/status,a=new|open}                      f, v, a, ic: field, value, any, ignoreCase
 *      exists{/a}
 *      not.eq{field=/status,value=done}
 *      and.eq{..}  or.eq{..}  or.1.eq{..}            conditions of one number hold together
 *      eq.field=/status  eq.value=open               two expressions, one condition
 *
 * In a text, expressions stand between commas or line feeds. All of them hold together; of those
 * that begin with `or`, one has to.
 *
 *         lql_init(&l);
 *         rc = lql_add_text(&l, SLICE("/status=open,/n>5"), &err);
 *         if (!rc)
 *                 rc = lql_write(&l, &json, &err);
 *
 * Pure. Text that was added must live until lql_write has returned.
 */
#ifndef CORE_LQL_H
#define CORE_LQL_H

#include "base/bytes.h"

#include <sluice/err.h>

enum {
	LQL_MAX = 64 /* expressions */
};

struct lql_expression {
	bool any;           /* one of these has to hold */
	int64_t number;     /* any: those of one number hold together; -1: this stands alone */
	bool negate;        /* not. */
	const char *name;   /* of the condition */
	struct slice body;  /* {...}: what stands in the braces */
	struct slice field; /* of shorthand */
	struct slice key;   /* of shorthand and of eq.key=value */
	struct slice value;
};

struct lql {
	unsigned n;
	struct lql_expression expressions[LQL_MAX];
};

void lql_init(struct lql *l);

/* Does a text begin as an expression does: with a slash, and, or, not, or a condition? */
bool lql_is_expression(struct slice text);

/* One expression, or a text of several. SLU_EINVAL. */
int lql_add(struct lql *l, struct slice expression, struct slu_err *err);
int lql_add_text(struct lql *l, struct slice text, struct slu_err *err);

/* The selector of all of them. SLU_EINVAL; SLU_ENOMEM: out has failed. */
int lql_write(const struct lql *l, struct buf *out, struct slu_err *err);

#endif
