/*
 * rows.h - lists that a server answers with, for people as a table and for scripts as
 * JSON, a line each.
 *
 *      {"topics":[{"topic":"mail","ready":3},...],"cursor":"17"}
 *
 *      QUEUE  READY        {"topic":"mail","ready":3}
 *      mail       3        ...
 */
#ifndef CLI_ROWS_H
#define CLI_ROWS_H

#include "cli/session.h"
#include "cli/table.h"

enum column_kind {
	COLUMN_TEXT,
	COLUMN_MAYBE,  /* text; the column is not shown if no row has any */
	COLUMN_NUMBER, /* to the right */
	COLUMN_MILLIS, /* a length of time in ms */
	COLUMN_TIME,   /* a moment: shown as how long ago, or how long until then */
	COLUMN_BASE64  /* shown decoded, cut */
};

struct column {
	const char *member; /* of each object */
	const char *head;
	enum column_kind kind;
};

struct rows {
	struct session *session;
	const struct column *columns;
	unsigned n_columns;
	struct table table;
	uint64_t n;        /* rows so far */
	char cursor[32];   /* of the page read last; "" when it was the last */
	char missing[256]; /* shards that have not told what they have: the first page's */
};

void rows_init(struct rows *r, struct session *s, const struct column *columns, unsigned n);
void rows_release(struct rows *r);

/* A page: the array that is `member` of the document, or one object when member is
 * NULL. JSON is printed at once, a table waits for rows_end. */
int rows_add(struct rows *r, struct slice document, const char *member,
	     struct slu_err *err);

/* Print what there is, and on stderr which shards it lacks. */
int rows_end(struct rows *r, struct slu_err *err);

#endif
