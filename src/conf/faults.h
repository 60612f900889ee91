/*
 * faults.h - all faults of a configuration, a sentence each: loading reports them together.
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
	unsigned more; /* faults without room or memory here */
};

void faults_add(struct conf_faults *f, const char *fmt, ...) SLU_PRINTF(2, 3);
void faults_release(struct conf_faults *f); /* zeroed is fine */

static inline bool
faults_any(const struct conf_faults *f)
{
	return f->n > 0 || f->more > 0;
}

#endif
