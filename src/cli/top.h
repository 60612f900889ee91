/*
 * top.h - what `sluice top` knows (top_data.c) and how it is shown (top_draw.c).
 *
 *      GET /v1/admin/queues ──> sample ──> rates: this one less the one before
 *                                  └────> history: the depths of the last samples
 */
#ifndef CLI_TOP_H
#define CLI_TOP_H

#include "cli/session.h"

enum {
	TOP_HISTORY = 32,
	TOP_NAME = 132,
	TOP_QUEUES_MAX = 10000 /* more are not looked at */
};

enum top_rate {
	RATE_IN,
	RATE_OUT,
	RATE_DONE,
	RATE_FAILED,
	RATE_DIED,
	TOP_RATES
};

struct top_queue {
	char space[TOP_NAME], name[TOP_NAME];
	char space_shown[TOP_NAME], shown[TOP_NAME];
	uint64_t ready, delayed, leased, held, dead;
	int64_t oldest; /* ms, or -1 */
	bool paused;
	uint64_t totals[TOP_RATES];    /* since the server was started */
	double rates[TOP_RATES];       /* a second */
	uint64_t history[TOP_HISTORY]; /* depths, oldest first */
	unsigned n_history;
};

/* A sort key of the table; top_draw.c has them. */
struct top_order {
	char key; /* that is typed for it */
	const char *name;
	double (*value)(const struct top_queue *q); /* NULL: by name */
};

extern const struct top_order top_orders[];
extern const unsigned top_n_orders;

struct top {
	struct session s;
	bool all;
	slu_time interval;

	/* The last sample. */
	struct top_queue *queues;
	size_t n;
	slu_time taken;
	bool has_rates;
	struct slu_err err; /* why there is none; code 0: all is well */

	/* What is shown. */
	unsigned order;
	bool reverse;
	size_t selected;
	bool inside; /* one queue, and not the table */
	bool utf8;
};

/* Ask the server; on an error the sample before stays, and t->err says why. */
void top_sample(struct top *t);
void top_release(struct top *t);

/* By the order that was chosen; the selected queue stays selected. */
void top_sort(struct top *t);

/* A whole screen; or the table and nothing else. */
void top_draw(const struct top *t, unsigned rows, unsigned columns, struct buf *out);
void top_print(const struct top *t);
void top_print_json(const struct top *t);

#endif
