/*
 * query.h - decodes the parameters of a query.
 *
 *         char text[1024];
 *         struct query q;
 *         struct query_param p;
 *
 *         query_init(&q, r->query, text, sizeof text);
 *         while (query_next(&q, &p))
 *                 take(p.name, p.value);
 *         if (q.rc)
 *                 return refuse(q.rc);
 *
 * Decoded values follow each other in the caller's memory and are valid as long as it is. A
 * decoded value is never longer than the encoded one: room for the length of the query is enough.
 *
 * A '%' without two hex digits is refused, and so is %00, which would end a C string early.
 * Other control characters pass: the user of a value checks it. '+' is a space, as forms and most
 * libraries write it.
 */
#ifndef HTTP_QUERY_H
#define HTTP_QUERY_H

#include "base/bytes.h"

#include <sluice/err.h>

struct query {
	struct slice rest; /* not read yet */
	char *out;         /* where the next decoded byte goes */
	size_t room;
	int rc; /* 0; SLU_EINVAL; SLU_ETOOBIG: out is too small */
};

struct query_param {
	struct slice name;  /* never empty */
	struct slice value; /* empty in "name" and "name=" */
};

/* Borrows its arguments until the last call. */
void query_init(struct query *q, struct slice encoded, char *out, size_t room);

/* The next parameter of name=value&name=value. Skips an empty one between two '&'; refuses a
 * value without a name. Returns false at the end: then rc has the reason. */
bool query_next(struct query *q, struct query_param *param);

#endif
