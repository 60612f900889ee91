/*
 * postgres_schema.h - the SQL that makes the tables and functions of a PostgreSQL inbox.
 */
#ifndef HANDOVER_POSTGRES_SCHEMA_H
#define HANDOVER_POSTGRES_SCHEMA_H

/* May run again: it keeps what is there. */
extern const char handover_postgres_schema[];

#endif
