/*
 * meter.h - the metrics of lanes: one row each.
 *
 *         struct meter meter;                          one for the lanes of a shard
 *         meter_init(&meter, n_lanes, labels, "heavy"); labels[i]: shard="heavy",lane="0"
 *         conf.meter = (struct meter_lane){ &meter, i };
 *
 *         meter_time(&k->meter, METER_PROCESSING, took);     by the lane's thread
 *
 * Every series has one writer, the thread of its lane, so counting costs a load and a store.
 * A zeroed meter_lane counts nothing.
 */
#ifndef ENGINE_METER_H
#define ENGINE_METER_H

#include "base/metrics.h"
#include "core/change.h"

enum meter_row {
	METER_BATCH,          /* ops of a batch */
	METER_CLAIM_WAIT,     /* from a claim's arrival to its first message */
	METER_MESSAGE_WAIT,   /* from a message's due time to its delivery */
	METER_PROCESSING,     /* from a delivery to its ack or nack */
	METER_LEASES_EXPIRED, /* leases that ended without ack or nack */
	METER_RETRIES,        /* failed deliveries that will be repeated */
	METER_REDRIVEN,       /* dead letters that became ready again */
	METER_BROKEN,         /* a breaker opened */
	METER_MENDED,         /* a breaker closed */
	METER_SYNC,           /* a sync of the log */
	METER_LOST_WRITES,    /* a store has lost writes that it had answered */
	METER_ROWS
};

enum {
	METER_LABELS = 128, /* bytes of a lane's labels, with the NUL */
	METER_MOST = 1024   /* meters in one meter_write */
};

struct meter {
	struct metrics m;    /* a series per lane */
	struct metrics dead; /* a series per lane and reason */
	struct metrics *ops; /* a set per lane, with a series per verb; shown as one */
	unsigned n;          /* lanes */
	char name[METER_LABELS];
};

/* The series of one lane. */
struct meter_lane {
	struct meter *meter; /* NULL: count nothing */
	unsigned lane;
};

/* labels: of each lane, as metrics show them; name: of all of them. Both are copied.
 * Returns SLU_ENOMEM. */
int meter_init(struct meter *m, unsigned lanes, const char *const *labels, const char *name);
void meter_release(struct meter *m); /* zeroed is fine */

/* Write several meters as one. */
void meter_write(const struct meter *const *meters, unsigned n, struct buf *out);

static inline void
meter_add(const struct meter_lane *s, enum meter_row row, uint64_t n)
{
	if (s->meter)
		metrics_add_own(&s->meter->m, row, s->lane, n);
}

/* A time or a size, depending on the row. */
static inline void
meter_time(const struct meter_lane *s, enum meter_row row, slu_time t)
{
	if (s->meter)
		metrics_observe_own(&s->meter->m, row, s->lane, t);
}

/* An op was answered; `took`: the time of its batch. */
static inline void
meter_op(const struct meter_lane *s, unsigned verb, slu_time took)
{
	if (s->meter)
		metrics_observe_own(&s->meter->ops[s->lane], 0, verb, took);
}

/* Count a change: retries, dead letters, expired leases, redrives, breakers. */
void meter_change(const struct meter_lane *s, const struct change *c);

#endif
