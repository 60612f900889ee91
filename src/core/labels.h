/*
 * labels.h - names of priorities: which number a label stands for.
 *
 * A label is known by its place in the table, which never changes, so a job keeps
 * 4 bytes and not a string. Immutable once made: any thread may read it.
 */
#ifndef CORE_LABELS_H
#define CORE_LABELS_H

#include <sluice/pqueue.h>

#define LABELS_NONE UINT32_MAX

struct label {
	char name[SLU_LABEL_MAX + 1];
	int32_t value;
};

struct labels {
	struct label *rows;
	uint32_t n;
	uint32_t standard; /* the one meant when none is named */
};

/*
 * rows NULL: high 0, normal 5, low 10. standard NULL: "normal", or the first when
 * there is none of that name.
 *   SLU_EINVAL  no rows; a label that is empty, too long, not printable ASCII or
 *               there twice; a standard one that is not there
 *   SLU_ENOMEM
 */
int labels_init(struct labels *l, const struct slu_priority *rows, uint32_t n,
		const char *standard, struct slu_err *err);
void labels_release(struct labels *l);

/* The place of a label, or LABELS_NONE. NULL is the standard one. */
uint32_t labels_find(const struct labels *l, const char *name);

/* The largest value less the smallest. */
int64_t labels_span(const struct labels *l);

/* "high, normal, low": as many as fit, for a message. Always terminated. */
void labels_list(const struct labels *l, char *text, size_t size);

#endif
