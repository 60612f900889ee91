/*
 * params.h - the parameters of a request into a struct, by a table: one row each.
 *
 *         static const struct param rows[] = {
 *                 PARAM(name, struct claim, namespace, .required = true),
 *                 PARAM(count, struct claim, limit, .min = 1, .max = 1000),
 *                 PARAM(span, struct claim, wait, .max = API_WAIT_MAX),
 *         };
 *
 *         rc = params_query(rows, COUNT(rows), c->query, room, &claim, &err);
 *
 * They come as ?name=value&name=value, or as the members of a JSON object, whose
 * numbers and strings are then read alike. Strict: unknown and repeated parameters are
 * refused. The error names the parameter, the value and the names that are known.
 */
#ifndef API_PARAMS_H
#define API_PARAMS_H

#include "base/bytes.h"

#include <sluice/err.h>

struct param;

/* Text in the caller's room, to be changed and kept there. */
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
	size_t size; /* of the C member; readers assert that it is theirs */
	bool required;
	const char *also; /* a second name, or NULL: both may be given if the values are the same;
			   * of a struct slice alone */
	int64_t min, max;
};

/* how: the end of the name of one of the readers below. */
#define PARAM(how, type, member, ...)                   \
	{                                               \
		.name = #member,                        \
		.read = param_read_##how,               \
		.offset = offsetof(type, member),       \
		.size = sizeof(((type *)NULL)->member), \
		__VA_ARGS__                             \
	}

/*      reader             C member       text
 *      param_read_name    struct slice   as api/values.h has it, as the next two
 *      param_read_id      struct given_id
 *      param_read_receipt struct receipt
 *      param_read_span    slu_time       min, max in ns
 *      param_read_count   uint32_t       min, max
 *      param_read_number  uint64_t       any
 *      param_read_flag    bool           true or false
 *      param_read_word    struct slice   anything
 *      param_read_owner   struct slice   as api/taker.h has it
 *      param_read_spelling               the same, if it is a name: not folded
 */
param_read param_read_name, param_read_spelling, param_read_id, param_read_span, param_read_count;
param_read param_read_receipt, param_read_number, param_read_flag, param_read_word;
param_read param_read_owner;

/* room has query.n bytes and must outlive out. SLU_EINVAL leaves out half filled. */
int params_query(const struct param *rows, size_t n, struct slice query, char *room,
		 void *out, struct slu_err *err);

/* Check a query that is read later: its escapes are well formed and no name of `once`
 * (until NULL; may be NULL) is repeated. open: other names are passed over; otherwise they
 * are refused. SLU_EINVAL, SLU_ENOMEM. */
int params_check(struct slice query, const char *const *once, bool open, struct slu_err *err);

/* The same from a JSON object; room has 2 * body.n bytes. */
int params_json(const struct param *rows, size_t n, struct slice body, char *room,
		void *out, struct slu_err *err);

#endif
