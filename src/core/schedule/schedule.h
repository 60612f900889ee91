/*
 * schedule.h - a schedule: when messages begin by themselves, and which have begun.
 *
 *      last                                       now
 *       |    tick      tick      tick      tick    |    tick
 *    ---+-----x---------x---------x---------x------+-----x------>  time
 *       |     `------- due, oldest first ---'      |     `- next
 *
 * A tick is a moment of its expression (core/calendar/cron.h). A tick is due at tick + jitter. A schedule fires: a
 * message begins for the tick, and the tick and all before it are past. A schedule is kept as a message in the queue
 * SCHEDULE_QUEUE of its namespace; schedule_doc.h has its form.
 *
 *  SCHEDULE-1  A tick at or before `last` is past. It never fires again, also if the clock goes back.
 *  SCHEDULE-2  Due ticks are missed if a later tick is due as well, or if they are due for longer than SCHEDULE_LATE.
 *              Of the due ticks fire: with `skip` the newest if it is not missed; with `one` the newest; with `all` the
 *              newest `most`, oldest first. The others are counted as missed.
 *  SCHEDULE-3  A pause passes over ticks: they do not fire, and they are not missed.
 *  SCHEDULE-4  Jitter is a hash of name and tick below `jitter`: every node computes the same.
 *  SCHEDULE-5  A definition that changes when the schedule is due begins anew: its first tick is later than the change.
 *
 * Pure: the caller passes now, the wall clock.
 */
#ifndef CORE_SCHEDULE_SCHEDULE_H
#define CORE_SCHEDULE_SCHEDULE_H

#include "core/calendar/cron.h"
#include "core/names.h"

#define SCHEDULE_QUEUE ".schedules"

#define SCHEDULE_LATE       (60 * SLU_SEC)
#define SCHEDULE_JITTER_MAX (24 * SLU_HOUR)

enum {
	SCHEDULE_NEXT = 5,         /* ticks that are shown ahead */
	SCHEDULE_HISTORY = 20,     /* firings that are kept */
	SCHEDULE_MOST = 100,       /* missed ticks that fire with `all` */
	SCHEDULE_IDEM = 200,       /* bytes of schedule_idem, with the NUL */
	SCHEDULE_DOC_MAX = 1 << 17 /* bytes of a stored schedule */
};

enum schedule_missed {
	SCHEDULE_SKIP,
	SCHEDULE_ONE,
	SCHEDULE_ALL
};

enum schedule_overlap {
	SCHEDULE_ALLOW, /* a tick fires whatever has become of the message before */
	SCHEDULE_WAIT   /* a tick is passed over while the message before is neither gone nor dead */
};

enum schedule_outcome {
	SCHEDULE_FIRED,
	SCHEDULE_BY_HAND,   /* run now */
	SCHEDULE_OVERLAPPED /* passed over: the message before still runs */
};

struct schedule_event {
	slu_time tick;    /* BY_HAND: when it was asked for */
	slu_time at;      /* when it happened */
	uint64_t id;      /* of the message; OVERLAPPED: of the message that still runs */
	uint64_t outcome; /* enum schedule_outcome */
};

struct schedule {
	/* The definition. */
	char name[NAME_TEXT];
	char when[CRON_LONGEST + 1];
	char zone[ZONE_LONGEST + 1]; /* empty: UTC */
	enum schedule_missed missed;
	uint32_t most; /* with SCHEDULE_ALL */
	enum schedule_overlap overlap;
	slu_time jitter; /* 0: none */
	bool paused;
	struct slice message; /* a JSON object as of /enqueue, without namespace; borrowed */

	/* What has happened. */
	slu_time anchor;       /* of intervals: when the definition began */
	slu_time last;         /* SCHEDULE-1 */
	uint64_t fired;        /* ticks that fired */
	uint64_t lost;         /* ticks that were missed and did not fire */
	uint64_t overlapped;   /* ticks that were passed over */
	uint64_t last_id;      /* the message of the last firing, 0: none */
	char queue[NAME_TEXT]; /* of that message, folded */
	uint32_t n_events;
	struct schedule_event events[SCHEDULE_HISTORY]; /* oldest first */
};

/* The ticks of a firing. */
struct schedule_due {
	slu_time ticks[SCHEDULE_MOST]; /* that fire, oldest first */
	uint32_t n;
	uint64_t lost; /* that do not */
	slu_time last; /* the newest due tick; 0: no tick is due */
};

/* When a schedule is due, parsed. */
struct schedule_plan {
	struct cron cron;
	const struct zone *zone; /* NULL: UTC */
};

/* The first tick behind `after`, or SLU_NEVER. */
slu_time schedule_tick(const struct schedule *s, const struct schedule_plan *p, slu_time after);

/* When a tick is due: SCHEDULE-4. */
slu_time schedule_moment(const struct schedule *s, slu_time tick);

/* When the next tick is due; SLU_NEVER: paused, or no more. */
slu_time schedule_next(const struct schedule *s, const struct schedule_plan *p);

/* The ticks that are due now: SCHEDULE-2. */
void schedule_due(const struct schedule *s, const struct schedule_plan *p, slu_time now, struct schedule_due *out);

/* Notes what became of the due ticks. ids: of the messages of due->ticks, or NULL: overlapped, last_id still runs. */
void schedule_fire(struct schedule *s, const struct schedule_due *due, const uint64_t *ids, slu_time now);

/* Notes a message that began by hand. id 0: not known. */
void schedule_run(struct schedule *s, uint64_t id, slu_time now);

void schedule_pause(struct schedule *s, bool paused, slu_time now);

/* Takes what has happened from `old`, NULL: a new schedule (SCHEDULE-5). */
void schedule_take(struct schedule *s, const struct schedule *old, slu_time now);

/* The id of the message of a schedule: a hash of its names, the first of two (engine/ledger/schedule.c). It is below the
 * ids that messages get from a clock. */
uint64_t schedule_id(struct slice space, struct slice name);

/* The idempotency key of the message of a tick. Returns its length. */
size_t schedule_idem(const struct schedule *s, slu_time tick, char out[static SCHEDULE_IDEM]);

/* The words of missed policies, "one" or "all:10"; of overlap policies, and of outcomes. */
int schedule_missed_parse(struct slice text, struct schedule *out, struct slu_err *err);
const char *schedule_missed_text(const struct schedule *s, char out[static 16]);
int schedule_overlap_parse(struct slice text, struct schedule *out, struct slu_err *err);
const char *schedule_overlap_text(const struct schedule *s);
const char *schedule_outcome_text(uint64_t outcome);

#endif
