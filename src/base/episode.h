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
 * An episode is a kind, a reason and a place. At most EPISODES_MAX are open at once; the
 * places of what begins beyond that are counted together, as the place "others".
 *
 * `tell`, if it is set, gets the first of an episode at once, and then at most every
 * EPISODE_QUIET how many came since: so what it writes is bounded, too.
 *
 * Any thread may call anything but init and release. Nothing is logged or told under the
 * lock. Nothing is allocated.
 */
#ifndef BASE_EPISODE_H
#define BASE_EPISODE_H

#include "base/clock.h"

#include <sluice/log.h>

enum {
	EPISODES_MAX = 128,
	EPISODES_OTHERS = 32, /* of these, for "others": kinds times reasons must fit */
	EPISODE_PLACE = 80
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
	uint64_t untold;  /* of these, the ones that `tell` does not know */
	slu_time began;   /* by clock_mono, as the next two */
	slu_time last;    /* when it was noted last */
	slu_time told_at; /* when `tell` was called last */
};

/* n: how many it is told of. e is borrowed for the call. */
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

/* The fault has happened once more. reason is a literal, or NULL. place is copied, and cut
 * to EPISODE_PLACE - 1 bytes. why: a sentence for the first log line, or NULL. */
void episode_note(struct episodes *es, const struct episode_kind *kind, const char *reason,
		  const char *place, const char *why);

/* End what has been quiet for EPISODE_QUIET, and tell what is untold. To be called each
 * second or so. */
void episodes_tick(struct episodes *es);

/* End all that are open: before a stop. */
void episodes_end(struct episodes *es);

#endif
