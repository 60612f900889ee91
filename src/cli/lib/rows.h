/*
 * rows.h - prints the lists of a server: for people as a table, for scripts as a line of JSON for each
 * element.
 *
 *      {"topics":[{"topic":"mail","ready":3},...],"cursor":"17"}
 *
 *      QUEUE  READY        {"topic":"mail","ready":3}
 *      mail       3        ...
 */
#ifndef CLI_LIB_ROWS_H
#define CLI_LIB_ROWS_H

#include "cli/lib/session.h"
#include "cli/lib/table.h"

enum column_kind {
	COLUMN_TEXT,
	COLUMN_MAYBE,  /* text; the column is hidden if no row has a value */
	COLUMN_NUMBER, /* aligned to the right */
	COLUMN_MILLIS, /* a duration in ms */
	COLUMN_TIME,   /* a moment, shown as the time since or until then */
	COLUMN_BASE64  /* base64, shown decoded and cut */
};

struct column {
	const char *member; /* the member of each object */
	const char *head;
	enum column_kind kind;
};

struct listing {
	struct session *session;
	const struct column *columns;
	unsigned n_columns;
	struct text_table table;
	uint64_t n;      /* how many rows were added */
	char cursor[32]; /* the cursor of the last page; "" = it was the last one */
	struct missing missing;
};

void rows_init(struct listing *r, struct session *s, const struct column *columns, unsigned n);
void rows_release(struct listing *r);

/* Adds a page: the array `member` of the document, or the document as one row if member is NULL. JSON is
 * printed at once, a table is printed by rows_end. */
int rows_add(struct listing *r, struct slice document, const char *member,
	     struct slu_err *err);

/* Prints the table, and on stderr the shards that did not answer. */
int rows_end(struct listing *r, struct slu_err *err);

/* Adds all pages of a list and prints them. space: NULL = all namespaces. */
int rows_pages(struct listing *r, const char *path, const char *space, const char *member,
	       struct slu_err *err);

/* A list that a command prints. */
struct rows_list {
	const char *path;   /* may have parameters */
	const char *member; /* the array of an answer */
	const struct column *columns;
	unsigned n_columns;
	const char *none;  /* session_nothing says it if the list is empty; NULL = "namespace NAME has no MEMBER" */
	bool one_page;     /* print the first page, not all */
	bool may_be_empty; /* with --json an empty list exits 0 */
};

#define ROWS_COLUMNS(rows) .columns = (rows), .n_columns = COUNT(rows)

/* For command.run: prints the list that command.rows names, of the queue that is the first word, if there is one. */
int rows_run(struct session *s, struct slu_err *err);

/* Prints the list whose path s->query has, page by page. */
int rows_get(struct session *s, const struct rows_list *list, struct slu_err *err);

/* Prints one answer. */
int rows_print(struct session *s, const struct rows_list *list, struct slice answer, struct slu_err *err);

#endif
