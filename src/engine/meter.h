/*
 * meter.h - what happens inside shards, as metrics: one row each.
 *
 *         struct meter meter;                          one for the lanes of a shard
 *         meter_init(&meter, n_lanes, labels, "heavy"); labels[i]: shard="heavy",lane="0"
 *         conf.meter = (struct meter_shard){ &meter, i };
 *
 *         meter_time(&k->meter, METER_PROCESSING, took);     by the shard's thread
 *
 * Every series has one writer, its shard's thread, so that a number costs a load and
 * a store. Whoever has no meter (a zeroed meter_shard) counts nothing.
 */
#ifndef ENGINE_METER_H
#define ENGINE_METER_H

#include "base/metrics.h"
#include "core/change.h"

enum meter_row {
	METER_BATCH,          /* ops of a batch */
	METER_CLAIM_WAIT,     /* from a claim's arrival to its first message */
	METER_MESSAGE_WAIT,   /* from when a message was due to when it was handed out */
	METER_PROCESSING,     /* from then to its ack or nack */
	METER_LEASES_EXPIRED, /* without either */
	METER_RETRIES,        /* failed, and will be tried again */
	METER_REDRIVEN,       /* dead letters that started anew */
	METER_SYNC,           /* of the log */
	METER_LOST_WRITES,    /* a store came back without what it had answered */
	METER_ROWS
};

enum {
	METER_LABELS = 128, /* bytes of the labels of a shard, with the end */
	METER_MOST = 1024   /* that are written as one */
};

struct meter {
	struct metrics m;    /* a series per shard */
	struct metrics dead; /* a series per shard and reason */
	struct metrics *ops; /* a set a shard, and in it a series per verb: shown as one */
	unsigned n;          /* shards */
	char name[METER_LABELS];
};

/* What one shard writes to. */
struct meter_shard {
	struct meter *meter; /* NULL: to nothing */
	unsigned shard;
};

/* The labels of each shard, as they are shown, and the name of all of them; copied.
 * SLU_ENOMEM. */
int meter_init(struct meter *m, unsigned shards, const char *const *labels, const char *name);
void meter_release(struct meter *m); /* a zeroed one is fine */

/* Several as one. */
void meter_write(const struct meter *const *meters, unsigned n, struct buf *out);

static inline void
meter_add(const struct meter_shard *s, enum meter_row row, uint64_t n)
{
	if (s->meter)
		metrics_add_own(&s->meter->m, row, s->shard, n);
}

/* A time or a size, as the row says. */
static inline void
meter_time(const struct meter_shard *s, enum meter_row row, slu_time t)
{
	if (s->meter)
		metrics_observe_own(&s->meter->m, row, s->shard, t);
}

/* An op was answered; its batch took that long. */
static inline void
meter_op(const struct meter_shard *s, unsigned verb, slu_time took)
{
	if (s->meter)
		metrics_observe_own(&s->meter->ops[s->shard], 0, verb, took);
}

/* A change has happened: retries, dead letters, leases that ran out, redrives. */
void meter_change(const struct meter_shard *s, const struct change *c);

#endif
