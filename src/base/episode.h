/*
 * episode.h - a fault that repeats: one log line when it begins, one when it ends.
 *
 *      episode_note ──> first of its kind, reason and place: "disk full" is logged
 *      episode_note ──> counted
 *      episodes_tick ─> none for EPISODE_QUIET: "disk full has ended" is logged
 *
 *         static const struct episode_kind disk_full = {
 *                 .begins = "disk full", .ends = "disk full has ended", .place = "shard",
 *         };
 *
 *         episode_note(es, &disk_full, NULL, "heavy", err->text);
 *
 *         level=warn event="disk full" shard=heavy why="no room for new work"
 *         level=info event="disk full has ended" shard=heavy count=1200 seconds=31.5
 *
 * An episode is a kind, a reason and a place. At most EPISODES_MAX are open at once; beyond
 * that, faults count under the place "others".
 *
 * The callback `tell`, if set, gets the first fault of an episode at once, and after that the
 * number of new faults at most every EPISODE_QUIET, so that its output is bounded.
 *
 * Any thread may call anything but init and release. Neither the log nor `tell` is called
 * under the lock. No function allocates.
 */
#ifndef BASE_EPISODE_H
#define BASE_EPISODE_H

#include "base/clock.h"

#include <sluice/log.h>

enum {
	EPISODES_MAX = 128,
	EPISODES_OTHERS = 32, /* of these, for "others": kinds times reasons must fit */
	EPISODE_PLACE = 80    /* bytes of a place, with the NUL */
};

#define EPISODE_QUIET (10 * SLU_SEC)

/* A const row for each fault. */
struct episode_kind {
	const char *begins, *ends; /* events of the two log lines */
	const char *place;         /* the field that names the place: "shard", "address" */
};

struct episode {
	const struct episode_kind *kind;
	const char *reason; /* a literal, or NULL */
	char place[EPISODE_PLACE];
	uint64_t count;   /* since it began */
	uint64_t untold;  /* of these, not passed to `tell` yet */
	slu_time began;   /* by clock_mono, as the next two */
	slu_time last;    /* the last fault */
	slu_time told_at; /* the last call of `tell` */
};

/* n: the number of new faults. e is borrowed for the call. */
typedef void episode_tell(void *arg, const struct episode *e, uint64_t n);

struct episodes {
	struct slu_log *log;
	struct clock *clock;
	episode_tell *tell; /* may be set before the first note */
	void *arg;

	pthread_mutex_t mtx; /* the rest is shared, under it */
	struct episode items[EPISODES_MAX];
	unsigned n;
};

void episodes_init(struct episodes *es, struct slu_log *log, struct clock *clock);
void episodes_release(struct episodes *es); /* a zeroed one is fine */

/* Counts one fault. reason: a literal, or NULL. place: copied, cut to EPISODE_PLACE - 1 bytes.
 * why: a sentence for the first log line, or NULL. */
void episode_note(struct episodes *es, const struct episode_kind *kind, const char *reason,
		  const char *place, const char *why);

/* Ends episodes without a fault for EPISODE_QUIET, and calls `tell` where it is due. Call it about
 * once a second. */
void episodes_tick(struct episodes *es);

/* Ends all open episodes: before a stop. */
void episodes_end(struct episodes *es);

#endif
