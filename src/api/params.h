/*
 * params.h - reads the parameters of a request into a struct, by a table: one row each.
 *
 *         static const struct param rows[] = {
 *                 PARAM(name, struct claim, namespace, .required = true),
 *                 PARAM(count, struct claim, limit, .min = 1, .max = 1000),
 *                 PARAM(span, struct claim, wait, .max = API_WAIT_MAX),
 *         };
 *
 *         rc = params_query(rows, COUNT(rows), c->query, room, &claim, &err);
 *
 * Parameters are name=value&name=value in a query, or the members of a JSON object; there a
 * number and a string with the same text mean the same. Unknown and repeated parameters are
 * refused. The error names the parameter, the value and the expected names.
 */
#ifndef API_PARAMS_H
#define API_PARAMS_H

#include "base/bytes.h"

#include <sluice/err.h>

struct param;

/* Text in the caller's room; a reader may change it in place. */
struct param_text {
	char *p;
	size_t n;
};

typedef int param_read(const struct param *p, struct param_text text, void *place,
		       struct slu_err *err);

struct param {
	const char *name;
	param_read *read;
	size_t offset;
	size_t size; /* of the C member; the reader asserts it */
	bool required;
	const char *also;   /* a second name, or NULL; both may be given with the same value. For a
			     * struct slice only */
	int64_t min, max;   /* for span, in ns, and count */
	uint32_t otherwise; /* the value if it is not given; for count only */
};

/* how: the reader below, without param_read_. */
#define PARAM_ROW(text, how, type, member, ...)         \
	{                                               \
		.name = (text),                         \
		.read = param_read_##how,               \
		.offset = offsetof(type, member),       \
		.size = sizeof(((type *)NULL)->member), \
		__VA_ARGS__                             \
	}

/* A row whose C member has the name of the parameter. */
#define PARAM(how, type, member, ...) PARAM_ROW(#member, how, type, member, __VA_ARGS__)

/* The queue of a request, in the members namespace and queue. */
#define PARAM_QUEUE(type) \
	PARAM(name, type, namespace, .required = true), PARAM(name, type, queue, .required = true, .also = "topic")

/* A page of a list, in the members cursor and limit; n: the limit by default. */
#define PARAM_PAGE(type, n)          \
	PARAM(number, type, cursor), \
		PARAM(count, type, limit, .min = 1, .max = API_PAGE_MAX, .otherwise = (n))

/*      reader             C member       text
 *      param_read_name    struct slice   a name of form/values.h
 *      param_read_id      struct given_id   an id of form/values.h
 *      param_read_receipt struct receipt    a receipt of form/values.h
 *      param_read_span    slu_time       min, max in ns
 *      param_read_count   uint32_t       min, max
 *      param_read_number  uint64_t       any
 *      param_read_flag    bool           true or false
 *      param_read_word    struct slice   anything
 *      param_read_owner   struct slice   an owner of api/holder.h
 *      param_read_spelling  struct slice a name, not folded
 */
param_read param_read_name, param_read_spelling, param_read_id, param_read_span, param_read_count;
param_read param_read_receipt, param_read_number, param_read_flag, param_read_word;
param_read param_read_owner;

/* room has query.n bytes and must outlive out. After SLU_EINVAL out is partly filled. */
int params_query(const struct param *rows, size_t n, struct slice query, char *room,
		 void *out, struct slu_err *err);

/* Checks a query that is read later: its escapes are well formed, and no name of `once`
 * (ends with NULL; may be NULL) is repeated. open: other names are ignored; otherwise they
 * are refused. Returns SLU_EINVAL or SLU_ENOMEM. */
int params_check(struct slice query, const char *const *once, bool open, struct slu_err *err);

/* As params_query, from a JSON object; room has 2 * body.n bytes. */
int params_json(const struct param *rows, size_t n, struct slice body, char *room,
		void *out, struct slu_err *err);

#endif
