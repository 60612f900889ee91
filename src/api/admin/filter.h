/*
 * filter.h - selects messages: those for which all given conditions hold.
 *
 *      parameter        matches a message
 *      id               with this id
 *      key              with this ordering key
 *      correlation_id   with this correlation id
 *      attribute        NAME=VALUE: with this attribute, a string, number or literal as written
 *      text             with these bytes somewhere in its payload
 *      error            with this text somewhere in its last error
 *      group            that is a dead letter of this group, 16 hex digits (core/fingerprint.h)
 *      reason           that is a dead letter for this: max_attempts, expired, rejected
 *      older_than       accepted longer ago than this; dead letters: dead for longer
 *      newer_than       accepted, or dead, more recently than this
 */
#ifndef API_ADMIN_FILTER_H
#define API_ADMIN_FILTER_H

#include "api/limits.h"
#include "api/params.h"
#include "form/values.h"
#include "engine/op.h"

enum {
	ADMIN_GROUP_TEXT = 17 /* the name of a group, with the NUL */
};

struct admin_filter {
	struct given_id id;                                    /* 0: not asked for */
	struct slice key, correlation_id, text, error, reason; /* n 0: not asked for */
	struct slice attribute;                                /* the same */
	struct slice group;                                    /* the same */
	slu_time older_than, newer_than;                       /* 0: not asked for */
};

/* Rows for a struct that has a member `filter`. */
/* clang-format off */
#define ADMIN_FILTER_PARAMS(type) \
	PARAM_ROW("id", id, type, filter.id), \
	PARAM_ROW("key", word, type, filter.key), \
	PARAM_ROW("correlation_id", word, type, filter.correlation_id), \
	PARAM_ROW("attribute", word, type, filter.attribute), \
	PARAM_ROW("text", word, type, filter.text), \
	PARAM_ROW("error", word, type, filter.error), \
	PARAM_ROW("reason", word, type, filter.reason), \
	PARAM_ROW("group", word, type, filter.group), \
	PARAM_ROW("older_than", span, type, filter.older_than, .max = API_DELAY_MAX), \
	PARAM_ROW("newer_than", span, type, filter.newer_than, .max = API_DELAY_MAX)
/* clang-format on */

/* Returns SLU_EINVAL if `reason` is unknown, `group` is malformed, or `attribute` has no name. */
int admin_filter_check(const struct admin_filter *f, struct slu_err *err);

/* Whether it asks for the error of a message. */
bool admin_filter_needs_error(const struct admin_filter *f);

bool admin_filter_is_empty(const struct admin_filter *f);

/* For a search of a whole queue without a result: returns true, and SLU_EROUNDED in err, if
 * the filter has only an id and the id was rounded. */
bool admin_filter_is_rounded(const struct admin_filter *f, struct slu_err *err);

/* now: on the wall clock. Reads a payload with a file of its own from e, which may block, and
 * adds the bytes read to *bytes. A payload that cannot be read does not match. */
bool admin_filter_matches(const struct admin_filter *f, slu_time now, struct engine *e,
			  const struct op_row *row, const struct message *m,
			  struct slice error, uint64_t *bytes);

#endif
