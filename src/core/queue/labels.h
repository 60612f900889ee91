/*
 * labels.h - names of priorities.
 *
 * A job stores the index of its label in the table, 4 bytes instead of a string. The table
 * never changes once it is made: any thread may read it.
 */
#ifndef CORE_QUEUE_LABELS_H
#define CORE_QUEUE_LABELS_H

#include <sluice/pqueue.h>

#define LABELS_NONE UINT32_MAX

struct label {
	char name[SLU_LABEL_MAX + 1];
	int32_t value;
};

struct labels {
	struct label *rows;
	uint32_t n;
	uint32_t standard; /* index of the label for jobs that name none */
};

/*
 * rows NULL: high 0, normal 5, low 10. standard NULL: "normal", or the first label if there is
 * no "normal". Returns SLU_ENOMEM, or SLU_EINVAL if there are no rows; if a label is empty, too
 * long, not printable ASCII or not unique; or if standard is not a label.
 */
int labels_init(struct labels *l, const struct slu_priority *rows, uint32_t n,
		const char *standard, struct slu_err *err);
void labels_release(struct labels *l);

/* The index of a label, or LABELS_NONE. name NULL: the standard label. */
uint32_t labels_find(const struct labels *l, const char *name);

/* The largest value minus the smallest. */
int64_t labels_span(const struct labels *l);

/* Writes "high, normal, low" for an error text: as many labels as fit, and a NUL. */
void labels_list(const struct labels *l, char *text, size_t size);

#endif
