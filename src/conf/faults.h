/*
 * faults.h - everything that is wrong with a configuration, a sentence each.
 *
 * Somebody who repairs a file wants to hear of all faults at once, not of one a try.
 */
#ifndef CONF_FAULTS_H
#define CONF_FAULTS_H

#include <sluice/api.h>

enum {
	FAULTS_MAX = 64,
	FAULT_TEXT = 512
};

struct conf_faults {
	char *items[FAULTS_MAX];
	unsigned n;
	unsigned more; /* that there was no room for, or no memory */
};

void faults_add(struct conf_faults *f, const char *fmt, ...) SLU_PRINTF(2, 3);
void faults_release(struct conf_faults *f); /* a zeroed one is fine */

static inline bool
faults_any(const struct conf_faults *f)
{
	return f->n > 0 || f->more > 0;
}

#endif
