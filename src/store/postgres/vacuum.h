/*
 * vacuum.h - cleans removed rows out of the table of a store soon.
 *
 *      put ── vacuum_wrote ──> 64 MiB since the last time ──> a thread: VACUUM object
 *
 * A removed row takes room until PostgreSQL vacuums its table. Autovacuum looks at a table once a minute at most
 * (autovacuum_naptime), and a busy store writes gigabytes in that time. So the store vacuums by what it has written, and its
 * table stays at the objects that it has, and about twice VACUUM_BYTES. VACUUM blocks no put.
 *
 *  VACUUM-1  Only the owner of a table may vacuum it. If the role of the store is another one, autovacuum alone does
 *            the work, and the store logs that once.
 *  VACUUM-2  Rows that an old transaction, a replication slot or a prepared transaction might still see stay. The log says
 *            so while that lasts, at most every ten minutes: the table grows meanwhile.
 *  VACUUM-3  A table above eight VACUUM_BYTES gives empty room at its end back to the disk. A smaller one keeps its room:
 *            giving back needs a short lock of the table.
 */
#ifndef STORE_POSTGRES_VACUUM_H
#define STORE_POSTGRES_VACUUM_H

#include <sluice/err.h>

struct slu_log;
struct vacuum;

enum {
	VACUUM_BYTES = 64 << 20
};

/* Starts the thread. table: "sluice.object". url and log are kept by the caller. Returns SLU_ENOMEM, SLU_EDOWN. */
int vacuum_open(struct vacuum **out, const char *url, const char *table, struct slu_log *log, struct slu_err *err);

/* Ends a VACUUM that runs. NULL is fine. */
void vacuum_close(struct vacuum *v);

/* Any thread: so many bytes were put into the table. */
void vacuum_wrote(struct vacuum *v, size_t bytes);

#endif
