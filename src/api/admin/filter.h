/*
 * filter.h - selects messages: those for which all given conditions hold.
 *
 *      parameter        matches a message
 *      id               with this id
 *      key              with this ordering key
 *      share, kind      with this share, or of this kind
 *      batch            that is a member of the batch with this id
 *      correlation_id   with this correlation id
 *      attribute        NAME=VALUE: with this attribute, a string, number or literal as written
 *      body             PATH=VALUE: with this value in its JSON body (body.h)
 *      text             with these bytes somewhere in its payload
 *      error            with this text somewhere in its last error
 *      group            that is a dead letter of this group, 16 hex digits (core/fingerprint.h)
 *      reason           that is a dead letter for this: max_attempts, expired, rejected
 *      priority_min     whose priority is this number or a higher one
 *      priority_max     whose priority is this number or a lower one
 *      owner            that is leased by the worker of this name
 *      attempts_over    delivered more often than this
 *      attempts_under   delivered less often than this
 *      older_than       accepted longer ago than this; dead letters: dead for longer
 *      newer_than       accepted, or dead, more recently than this
 *
 * A new condition is a row of ADMIN_FILTER_ROWS, and what it means in filter.c.
 */
#ifndef API_ADMIN_FILTER_H
#define API_ADMIN_FILTER_H

#include "api/limits.h"
#include "api/params.h"
#include "engine/op.h"
#include "form/values.h"

enum {
	ADMIN_GROUP_TEXT = 17, /* the name of a group, with the NUL */
	ADMIN_WORD_MAX = 1024  /* bytes of a word in a JSON body */
};

struct admin_filter {
	struct given_id id; /* 0: not asked for */
	/* n 0: not asked for */
	struct slice key, share, kind, batch, correlation_id, attribute, body, text, error, group, reason, owner;
	struct slice priority_min, priority_max, attempts_over, attempts_under; /* numbers as written */
	slu_time older_than, newer_than;                                        /* 0: not asked for */
	bool masked;                                                            /* bodies are masked (api/mask/mask.h): one that is not in memory does not match */
};

/* X(type, at, how, parameter, stored, member). at: the filter in the struct `type`. how: id, word, number (a word in C) or
 * span. stored: its member in the document of a task. */
/* clang-format off */
#define ADMIN_FILTER_ROWS(X, type, at) \
	X(type, at, id, "id", "id", id), \
	X(type, at, word, "key", "key", key), \
	X(type, at, word, "share", "share", share), \
	X(type, at, word, "kind", "kind", kind), \
	X(type, at, word, "batch", "batch", batch), \
	X(type, at, word, "correlation_id", "correlation_id", correlation_id), \
	X(type, at, word, "attribute", "attribute", attribute), \
	X(type, at, word, "body", "body", body), \
	X(type, at, word, "text", "text", text), \
	X(type, at, word, "error", "text_error", error), \
	X(type, at, word, "reason", "reason", reason), \
	X(type, at, word, "group", "group", group), \
	X(type, at, word, "owner", "owner", owner), \
	X(type, at, number, "priority_min", "priority_min", priority_min), \
	X(type, at, number, "priority_max", "priority_max", priority_max), \
	X(type, at, number, "attempts_over", "attempts_over", attempts_over), \
	X(type, at, number, "attempts_under", "attempts_under", attempts_under), \
	X(type, at, span, "older_than", "older_than", older_than), \
	X(type, at, span, "newer_than", "newer_than", newer_than)

/* Rows of a query (api/params.h), for a struct that has a member `filter`. */
#define ADMIN_FILTER_PARAMS(type) ADMIN_FILTER_ROWS(ADMIN_FILTER_PARAM, type, filter)
#define ADMIN_FILTER_PARAM(type, at, how, name, stored, member) ADMIN_FILTER_PARAM_##how(name, type, at.member)
#define ADMIN_FILTER_PARAM_id(name, type, member)     PARAM_ROW(name, id, type, member)
#define ADMIN_FILTER_PARAM_word(name, type, member)   PARAM_ROW(name, word, type, member)
#define ADMIN_FILTER_PARAM_number(name, type, member) PARAM_ROW(name, word, type, member)
#define ADMIN_FILTER_PARAM_span(name, type, member)   PARAM_ROW(name, span, type, member, .max = API_DELAY_MAX)

/* Rows of a JSON body (base/json/json_table.h). */
#define ADMIN_FILTER_FIELDS(type, at) ADMIN_FILTER_ROWS(ADMIN_FILTER_FIELD, type, at)
#define ADMIN_FILTER_FIELD(type, at, how, name, stored, member) ADMIN_FILTER_FIELD_##how(name, type, at.member)
#define ADMIN_FILTER_FIELD_id(name, type, member)     JSON_ROW(name, json_read_id, type, member)
#define ADMIN_FILTER_FIELD_word(name, type, member)   JSON_ROW(name, json_read_text, type, member, .max = ADMIN_WORD_MAX)
#define ADMIN_FILTER_FIELD_number(name, type, member) JSON_ROW(name, admin_filter_read_number, type, member)
#define ADMIN_FILTER_FIELD_span(name, type, member)   JSON_ROW(name, json_read_span, type, member, .max = API_DELAY_MAX)
/* clang-format on */

/* A number as written, or a string with it. */
json_read admin_filter_read_number;

/* The rows of a filter, for code that needs all. */
enum admin_filter_how {
	ADMIN_FILTER_id,
	ADMIN_FILTER_word,
	ADMIN_FILTER_number,
	ADMIN_FILTER_span
};

struct admin_filter_row {
	enum admin_filter_how how;
	const char *name, *stored;
	size_t offset; /* in struct admin_filter */
};

extern const struct admin_filter_row admin_filter_rows[];
extern const size_t admin_filter_n_rows;

/* The value of a row: of how word and number; and of how span. */
struct slice admin_filter_word(const struct admin_filter *f, const struct admin_filter_row *row);
slu_time admin_filter_time(const struct admin_filter *f, const struct admin_filter_row *row);

/* Returns SLU_EINVAL if a value is malformed. */
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
