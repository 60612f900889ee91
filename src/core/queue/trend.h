/*
 * trend.h - what a queue, or a whole shard, did in the recent past: a row of 16-bit values for each step of time.
 *
 *      scale 0   steps of 10 s     60 rows   the last 10 minutes
 *      scale 1   steps of 1 min    60 rows   the last hour
 *      scale 2   steps of 5 min  2016 rows   7 days; only the trend of a shard has it
 *
 *      event ──> open step of scale 0 ── its end ──> a row, and the open step of scale 1 ── its end ──> a row, ...
 *
 *  TREND-1  A step ends at a multiple of its length. So the steps of all queues, shards and nodes fit together.
 *  TREND-2  The owner calls trend_to before each change. Between two calls nothing has changed, so the rows of
 *             steps that ended meanwhile are exact: no events, the same depths, an older oldest message.
 *  TREND-3  A value up to 2,047 is exact; a larger one differs by at most a 2,048th. TREND_NONE: not known.
 *  TREND-4  Percentiles come from a spread of 2 buckets for each doubling, from 0.1 ms to 7 hours.
 *
 * Part of the ledger. Pure: the caller passes now. Lost at a restart.
 */
#ifndef CORE_QUEUE_TREND_H
#define CORE_QUEUE_TREND_H

#include <sluice/api.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TREND_UNIT (SLU_MS / 10) /* of times in rows */

enum {
	TREND_NONE = UINT16_MAX, /* not known */
	TREND_BUCKETS = 56
};

enum trend_scale {
	TREND_10S,
	TREND_1MIN,
	TREND_5MIN,
	TREND_SCALES,
	TREND_OF_QUEUE = TREND_5MIN,  /* scales of a queue */
	TREND_OF_SHARD = TREND_SCALES /* scales of a shard */
};

struct trend_span {
	slu_time length;
	uint32_t steps;
};

extern const struct trend_span trend_spans[TREND_SCALES];

enum {
	TREND_STEPS_MAX = 2016 /* the most steps of a scale */
};

enum trend_event {
	TREND_IN,
	TREND_DONE,
	TREND_FAILED,
	TREND_EVENTS
};

enum trend_level {
	TREND_READY,
	TREND_DELAYED,
	TREND_LEASED,
	TREND_HELD,
	TREND_DEAD,
	TREND_LEVELS
};

/* The columns of a row: the events, then the levels, then these. */
enum trend_column {
	TREND_LEVEL_AT = TREND_EVENTS,
	TREND_OLDEST = TREND_LEVEL_AT + TREND_LEVELS, /* age of the oldest ready message; 0: none is ready */
	TREND_WAIT,                                   /* p50, p95, p99: from due to delivery */
	TREND_RUN = TREND_WAIT + 3,                   /* p50, p95, p99: from delivery to ack or failure */
	TREND_COLUMNS = TREND_RUN + 3
};

struct trend_row {
	uint16_t v[TREND_COLUMNS];
};

/* What holds at a moment. */
struct trend_now {
	uint64_t level[TREND_LEVELS];
	slu_time oldest; /* since when the oldest ready message is ready; SLU_NEVER: none is */
};

struct trend_spread {
	uint16_t n[TREND_BUCKETS];
};

/* A scale: its open step, and the rows of the steps that have ended. */
struct trend_ring {
	uint32_t events[TREND_EVENTS];
	struct trend_spread wait;
	struct trend_spread run;
	struct trend_row *rows; /* of trend_spans[].steps; the step with number n has row n modulo steps */
	int64_t end;            /* number of the open step: its start is end * length */
	int64_t first;          /* number of the first step with a row */
};

struct trend {
	slu_time next; /* end of the open step of scale 0: trend_to has work from then on */
	uint8_t scales;
	bool moved; /* the owner's; trend_to clears it at the end of a step */
	struct trend_ring rings[];
};

/* Returns NULL if memory is out. */
struct trend *trend_new(unsigned scales, slu_time now);
void trend_free(struct trend *h); /* NULL is fine */
size_t trend_bytes(unsigned scales);

/* Ends the steps that are over at `now`; at: what holds since the last call. TREND-2. */
void trend_to(struct trend *h, slu_time now, const struct trend_now *at);

/* Counts an event, a time of waiting or a time of running in the open step. */
static inline void
trend_count(struct trend *h, enum trend_event what)
{
	h->rings[0].events[what]++;
}

void trend_wait(struct trend *h, slu_time time);
void trend_run(struct trend *h, slu_time time);

/* Fills rows with the last n steps that have ended, oldest first; *end: when the last one ended. Steps before the
 * trend began have TREND_NONE in every column. n is at most the steps of the scale. */
void trend_read(const struct trend *h, enum trend_scale scale, struct trend_row *rows, uint32_t n, slu_time *end);

/* The value as a code of 16 bits, and back: TREND-3. */
uint16_t trend_code(uint64_t value);
uint64_t trend_value(uint16_t code);

#endif
