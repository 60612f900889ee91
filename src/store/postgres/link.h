/*
 * link.h - statements to a PostgreSQL server, over connections that threads share.
 *
 * Each call takes an idle connection, or makes one, and ends within a time. A connection that
 * failed, was late or met a standby is closed; the next call makes a new one.
 *
 * A statement is one round trip and a transaction of its own, without BEGIN and COMMIT: the server commits before it
 * reports that it is ready. LINK_ON_DISK and LINK_LATER say when the commit is on disk, whatever the settings of the
 * role. Each is a condition that is true, for the WHERE of the rows that the statement writes.
 *
 *  POSTGRES-2  A statement that is run often is prepared once for each connection, and anew after LINK_ANEW uses: a plan
 *              is for tables of the size that they had. pgbouncer may give each transaction another session, which lacks
 *              it. Then the statement has done nothing. It is sent whole, and so are all later ones.
 */
#ifndef STORE_POSTGRES_LINK_H
#define STORE_POSTGRES_LINK_H

#include "store/store.h"

#include <libpq-fe.h>

#define LINK_ON_DISK "set_config('synchronous_commit', 'on', true) IS NOT NULL"  /* before the answer */
#define LINK_LATER   "set_config('synchronous_commit', 'off', true) IS NOT NULL" /* soon; a crash of the server may undo it */

enum {
	LINK_PARAMS = 17,
	LINK_OFTEN = 5,  /* statements that are prepared */
	LINK_ANEW = 256, /* POSTGRES-2 */
	LINK_NUMBER = 24 /* bytes of a number as text */
};

struct links;

struct link_query {
	const char *sql;
	unsigned often; /* POSTGRES-2: 1 to LINK_OFTEN, a number for each statement of these links; 0: it is not prepared */
	unsigned n;
	struct {
		struct slice value;
		bool bytes; /* in binary: bytea, arrays; otherwise text, with a NUL */
	} params[LINK_PARAMS];
};

/* Add a parameter. The text of a number stays in `text`. */
void link_add(struct link_query *q, const char *value);
void link_add_number(struct link_query *q, uint64_t n, char text[static LINK_NUMBER]);

/* A bigint of a result. */
uint64_t link_number(const PGresult *r, int row, int column);

/* url: of libpq. timeout: of a call; 0: 10 s. Returns NULL if memory is out. */
struct links *links_new(const char *url, slu_time timeout);
void links_free(struct links *l); /* no call runs; NULL is fine */

/* Runs one statement. *out: its result, in binary; PQclear it. */
enum store_result links_run(struct links *l, const struct link_query *q, PGresult **out,
			    struct slu_err *err);

/* Runs statements with semicolons between, one after the other. */
enum store_result links_script(struct links *l, const char *sql, struct slu_err *err);

/* A connection of its own; PQfinish it. Returns NULL if it is not there before `until`, by clock_mono. */
PGconn *link_connect(const char *url, slu_time until, struct slu_err *err);

#endif
