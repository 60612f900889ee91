/*
 * exports.h - what one command hands to the next: variables of the shell.
 *
 *      $ eval "$(sluice lock acquire orders)"       SLUICE_LOCK_KEY=orders ...
 *      $ sluice lock release                        takes them from there
 *
 * Lines of `export NAME='value'`, or with --json one object whose members have the same
 * names.
 */
#ifndef CLI_EXPORTS_H
#define CLI_EXPORTS_H

#include "base/json_out.h"
#include "cli/session.h"

struct exports {
	bool json;
	struct json_out out; /* JSON */
	struct buf text;
};

void exports_begin(struct exports *e, const struct session *s);
void exports_put(struct exports *e, const char *name, const char *value); /* "": left out */
void exports_number(struct exports *e, const char *name, uint64_t value);
int exports_end(struct exports *e, struct slu_err *err); /* writes them to stdout */

/* A lease, under names that begin with prefix ("SLUICE_LOCK"); and back. SLU_EINVAL: a
 * variable is missing, and which command would set it. */
void exports_lease(struct exports *e, const char *prefix, const struct slu_lease *l);
int exports_read_lease(struct slu_lease *l, struct slu_err *err);

/* A variable, or NULL when it is not set or empty. */
const char *exports_get(const char *name);

/* How long to wait: a duration, or `forever`. */
int exports_wait(const char *text, slu_time *out, struct slu_err *err);

#endif
