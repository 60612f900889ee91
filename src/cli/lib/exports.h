/*
 * exports.h - variables of the shell that one command prints and the next command reads.
 *
 *      $ eval "$(sluice lock acquire orders)"       SLUICE_LOCK_KEY=orders ...
 *      $ sluice lock release                        reads them
 *
 * The output is lines of `export NAME='value'`, or with --json one object with members of the same
 * names.
 */
#ifndef CLI_LIB_EXPORTS_H
#define CLI_LIB_EXPORTS_H

#include "base/json/json_out.h"
#include "cli/lib/session.h"

struct exports {
	bool json;
	struct json_out out; /* JSON */
	struct buf text;
};

void exports_begin(struct exports *e, const struct session *s);
void exports_put(struct exports *e, const char *name, const char *value); /* "" = not printed */
void exports_number(struct exports *e, const char *name, uint64_t value);
int exports_end(struct exports *e, struct slu_err *err); /* prints to stdout */

/* Print a lease as variables whose names begin with prefix ("SLUICE_LOCK"), and read it from them. Reading
 * returns SLU_EINVAL if a variable is missing; the text names the command that sets it. */
void exports_lease(struct exports *e, const char *prefix, const struct slu_lease *l);
int exports_read_lease(struct slu_lease *l, struct slu_err *err);

/* The value of a variable; NULL if it is not set or empty. */
const char *exports_get(const char *name);

/* Parses a waiting time: a duration, or `forever`. */
int exports_wait(const char *text, slu_time *out, struct slu_err *err);

#endif
