/*
 * admin_filter.h - which messages an operator means: all conditions that are given hold.
 *
 *      parameter        holds for a message
 *      id               of this id
 *      key              with this ordering key
 *      correlation_id   with this correlation id
 *      text             with these bytes somewhere in its payload
 *      error            with this text somewhere in its last error
 *      reason           that is a dead letter for this: max_attempts, expired, rejected
 *      older_than       accepted longer ago than that; dead letters: dead for longer
 *      newer_than       the other way round
 */
#ifndef API_ADMIN_FILTER_H
#define API_ADMIN_FILTER_H

#include "api/limits.h"
#include "api/params.h"
#include "api/values.h"
#include "base/json_table.h"
#include "engine/op.h"

struct admin_filter {
	struct given_id id;                                    /* 0: not asked for */
	struct slice key, correlation_id, text, error, reason; /* n 0: not asked for */
	slu_time older_than, newer_than;                       /* 0: not asked for */
};

/* Rows for a struct that has a member `filter`. */
#define ADMIN_FILTER_PARAM(how, type, member, ...)                     \
	{                                                              \
		.name = #member,                                       \
		.read = param_read_##how,                              \
		.offset = offsetof(type, filter.member),               \
		.size = sizeof(((struct admin_filter *)NULL)->member), \
		__VA_ARGS__                                            \
	}

#define ADMIN_FILTER_PARAMS(type)                                                 \
	ADMIN_FILTER_PARAM(id, type, id),                                         \
		ADMIN_FILTER_PARAM(word, type, key),                              \
		ADMIN_FILTER_PARAM(word, type, correlation_id),                   \
		ADMIN_FILTER_PARAM(word, type, text),                             \
		ADMIN_FILTER_PARAM(word, type, error),                            \
		ADMIN_FILTER_PARAM(word, type, reason),                           \
		ADMIN_FILTER_PARAM(span, type, older_than, .max = API_DELAY_MAX), \
		ADMIN_FILTER_PARAM(span, type, newer_than, .max = API_DELAY_MAX)

/* SLU_EINVAL: there is no such reason. */
int admin_filter_check(const struct admin_filter *f, struct slu_err *err);

bool admin_filter_is_empty(const struct admin_filter *f);

/* For a search of a whole queue that found nothing: does it ask for an id alone, and was
 * that id rounded? Then err is SLU_EROUNDED. */
bool admin_filter_is_rounded(const struct admin_filter *f, struct slu_err *err);

/* now: of the wall clock. A payload that has a file of its own is read from e, which may
 * wait for the disk; *bytes grows by what was read. One that cannot be read does not
 * match. */
bool admin_filter_matches(const struct admin_filter *f, slu_time now, struct engine *e,
			  const struct op_row *row, const struct message *m,
			  struct slice error, uint64_t *bytes);

#endif
