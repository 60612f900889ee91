/*
 * top.h - `sluice top`: its samples (top_data.c), its screen (top_draw.c) and its actions on a queue
 * (top_act.c).
 *
 *      GET /v1/admin/queues ──> sample ──> rates: this sample minus the previous one
 *                                  └────> history: the depths of the last samples
 */
#ifndef CLI_TOP_TOP_H
#define CLI_TOP_TOP_H

#include "cli/lib/nodehealth.h"
#include "cli/lib/session.h"
#include "cli/lib/shardowners.h"

enum {
	TOP_HISTORY = 32,
	TOP_NAME = 132,
	TOP_PAGES_MAX = 10 /* pages of 1000 queues; more queues are not shown */
};

/* The messages of a queue by state; top_counts has the names. */
enum top_count {
	TOP_READY,
	TOP_DELAYED,
	TOP_LEASED,
	TOP_HELD,
	TOP_DEAD,
	TOP_COUNTS
};

extern const char *const top_counts[TOP_COUNTS];

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
	uint64_t counts[TOP_COUNTS];
	int64_t oldest; /* age in ms; -1 = no message */
	bool paused, draining;
	uint64_t totals[TOP_RATES];    /* since the server was started */
	double rates[TOP_RATES];       /* per second */
	uint64_t history[TOP_HISTORY]; /* depths, oldest first */
	unsigned n_history;
	bool hidden; /* does not match the filter */
};

/* How the next key is used. */
enum top_input {
	TOP_KEYS,
	TOP_FILTER, /* the key edits the filter */
	TOP_ANSWER, /* the key answers a question: y = yes */
	TOP_HELP    /* any key closes the list of keys */
};

enum top_act_kind {
	ACT_NONE,
	ACT_PAUSE,
	ACT_RESUME,
	ACT_REDRIVE
};

/* An action on a queue, proposed or running. */
struct top_act {
	enum top_act_kind kind;
	bool agreed;
	char space[TOP_NAME], name[TOP_NAME], shown[TOP_NAME];
	uint64_t left, done; /* redrive: dead letters left and done */
	char cursor[32];
};

/* A sort key of the table; top_data.c defines them. */
struct top_order {
	char key; /* the key that chooses it */
	const char *name;
	enum top_by {
		BY_NAME,
		BY_AGE,
		BY_COUNT,
		BY_RATE
	} by;
	unsigned index; /* enum top_count or enum top_rate */
};

extern const struct top_order top_orders[];
extern const unsigned top_n_orders;

/* All messages but dead letters. */
uint64_t top_depth(const struct top_queue *q);

struct top {
	struct session s;
	bool all, once;
	slu_time interval;

	/* The last sample. */
	struct top_queue *queues;
	size_t n;
	slu_time taken;
	bool has_rates;
	bool is_alone;           /* the server does not share its store: nodes is not asked for again */
	struct nodehealth nodes; /* living 0 = not known */
	struct shardowners owners;
	slu_time owners_taken;  /* they are asked for at most once a second: /metrics is long */
	struct missing missing; /* shards that the last sample lacks */
	struct slu_err err;     /* why the last sample failed; code 0 = no error */

	/* What is shown. */
	unsigned order;
	bool reverse;
	char filter[TOP_NAME];                              /* a part of namespace/queue; "" = all queues */
	size_t n_shown;                                     /* queues that match; top_sort puts them first */
	char chosen_space[TOP_NAME], chosen_name[TOP_NAME]; /* the selected queue */
	size_t selected;                                    /* its index */
	bool inside;                                        /* the screen shows one queue instead of the table */
	bool utf8, colours;

	enum top_input input;
	struct top_act act;
	char note[256]; /* shown until the next key; "" = none */
};

/* Takes a sample. On an error the previous sample stays, and t->err has the reason. */
void top_sample(struct top *t);
void top_release(struct top *t);

/* Sorts by the chosen order; queues that match the filter come first. The selected queue stays selected.
 * If it does not exist any more, the queue at its index is selected. */
void top_sort(struct top *t);

/* Selects the queue at that index. */
void top_choose(struct top *t, size_t place);

/* Proposes to pause or resume the selected queue, or to redrive its dead letters. */
void top_propose(struct top *t, bool redrive);
const char *top_question(const struct top *t, char *out, size_t n);

/* Makes one call of the agreed action; act.kind is ACT_NONE after the last call. */
void top_step(struct top *t);

void top_note(struct top *t, const char *fmt, ...) SLU_PRINTF(2, 3);

/* Draw a whole screen; print the table alone. */
void top_draw(const struct top *t, unsigned rows, unsigned columns, struct buf *out);
void top_print(const struct top *t);
void top_print_json(const struct top *t);

#endif
