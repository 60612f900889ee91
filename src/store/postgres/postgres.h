/*
 * postgres.h - a store in a schema of a PostgreSQL database.
 *
 *      postgres://sluice@db1,db2/jobs?schema=sluice
 *
 *      sluice.object   name, bytes    objects that never change
 *      sluice.beat     name, bytes    objects that are replaced (STORE_REPLACE)
 *
 * The URL is libpq's, with one more parameter, `schema` (default: sluice). Several hosts are tried
 * in turn; a standby is passed over. The password comes from PGPASSWORD, ~/.pgpass or the URL.
 *
 * A put is one statement and one round trip, INSERT ... ON CONFLICT DO NOTHING. Whatever the settings of the
 * role, its commit is on disk before the answer (link.h). A remove is not synced. No statement needs a session:
 * pgbouncer may pool transactions, and then nothing is prepared (POSTGRES-2).
 *
 *  POSTGRES-1  The put of a group (line/object.h) checks the chain in the same statement (LINE-5): the group
 *              before must be there with the mark that the new group names, as an object or as the last group of
 *              the newest span. Otherwise nothing is put, and STORE_FAILED names the group before. So a store that
 *              went back (LINE-15) never gets a group behind a hole.
 *
 * Names are ASCII and their order is "C". Bytes are stored uncompressed (EXTERNAL), so a range is
 * read without the rest.
 */
#ifndef STORE_POSTGRES_POSTGRES_H
#define STORE_POSTGRES_POSTGRES_H

#include "store/store.h"

extern const struct store_ops store_postgres;

#endif
