/*
 * query.h - the parts of a path, and the parameters of a query, decoded.
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
 * What is decoded is written to the caller's memory, one after the other, so that
 * all of it stays good as long as that does. Decoding never makes longer: as many
 * bytes as the path or query has are always enough.
 *
 * Strict: a '%' without two hex digits is refused and so is %00, which would end a
 * string early further on. Other control characters pass: whoever uses a value
 * knows what may be in it. In a query '+' is a space, as forms and most libraries
 * write it; in a path it is a plus.
 */
#ifndef HTTP_QUERY_H
#define HTTP_QUERY_H

#include "base/bytes.h"

#include <sluice/err.h>

struct query {
	struct slice rest; /* not read yet */
	char *out;         /* where the next decoded byte goes */
	size_t room;
	int rc; /* why it ended: 0, SLU_EINVAL, or SLU_ETOOBIG: out was too small */
};

struct query_param {
	struct slice name;  /* never empty */
	struct slice value; /* empty in "name" and "name=" */
};

/* Borrows all of it until the last call. Serves a query and a path alike. */
void query_init(struct query *q, struct slice encoded, char *out, size_t room);

/* The next parameter of name=value&name=value. Nothing between two '&' is skipped;
 * a value without a name is refused. False at the end: then look at rc. */
bool query_next(struct query *q, struct query_param *param);

/* The next part of /part/part, split before it is decoded: %2F does not separate.
 * "/a/" has the parts "a" and "", "/" has "". False as above. */
bool path_next(struct query *q, struct slice *part);

#endif
