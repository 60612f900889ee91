/*
 * top.h - what `sluice top` knows (top_data.c), how it is shown (top_draw.c), and what it does to a
 * queue (top_act.c).
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
	bool hidden; /* the filter does not match */
};

/* What a key means. */
enum top_input {
	TOP_KEYS,
	TOP_FILTER, /* it belongs to the filter */
	TOP_ANSWER, /* y: do what was asked */
	TOP_HELP    /* leave the list of keys */
};

enum top_act_kind {
	ACT_NONE,
	ACT_PAUSE,
	ACT_RESUME,
	ACT_REDRIVE
};

/* What is to be done to a queue, or being done. */
struct top_act {
	enum top_act_kind kind;
	bool agreed;
	char space[TOP_NAME], name[TOP_NAME], shown[TOP_NAME];
	uint64_t left, done; /* redrive: dead letters */
	char cursor[32];
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
	char filter[TOP_NAME];                              /* part of namespace/queue; "": all */
	size_t n_shown;                                     /* queues that match; the first of the list once sorted */
	char chosen_space[TOP_NAME], chosen_name[TOP_NAME]; /* the queue that is selected */
	size_t selected;                                    /* where it is */
	bool inside;                                        /* one queue, and not the table */
	bool utf8, colours;

	enum top_input input;
	struct top_act act;
	char note[256]; /* until the next key; "": none */
};

/* Ask the server; on an error the sample before stays, and t->err says why. */
void top_sample(struct top *t);
void top_release(struct top *t);

/* By the order that was chosen, those that match the filter first. The selected queue stays
 * selected, wherever it goes; when it is gone, the one in its place is. */
void top_sort(struct top *t);

/* Select the queue in that place. */
void top_choose(struct top *t, size_t place);

/* Ask whether the selected queue is to be paused or resumed, or its dead letters redriven. */
void top_propose(struct top *t, bool redrive);
const char *top_question(const struct top *t, char *out, size_t n);

/* One call of what was agreed to; kind is ACT_NONE after the last. */
void top_step(struct top *t);

void top_note(struct top *t, const char *fmt, ...) SLU_PRINTF(2, 3);

/* A whole screen; or the table and nothing else. */
void top_draw(const struct top *t, unsigned rows, unsigned columns, struct buf *out);
void top_print(const struct top *t);
void top_print_json(const struct top *t);

#endif
