/*
 * schedule.h - messages that begin by themselves, in the queues of sluice.h.
 *
 *         const struct slu_put report = { SLU_OPTIONS_INIT(struct slu_put), .queue = "reports", .payload = "all", .size = 3 };
 *         const struct slu_schedule nightly = {
 *                 SLU_OPTIONS_INIT(struct slu_schedule), .name = "nightly", .when = "0 2 * * *", .zone = "Europe/Berlin", .put = &report
 *         };
 *
 *         slu_schedule_set(b, &nightly, &err);
 *
 * A schedule is stored with the queues. It fires, on a thread of the library, while the broker is open and not
 * stopped; a tick fires once, also over kill -9. What comes due meanwhile is missed, and `missed` decides what fires
 * then. docs/scheduling.md has the rules; a schedule is the same in the library and in the server.
 *
 * All functions return SLU_EINVAL if an argument is invalid. Those that change something return SLU_ECLOSED after slu_stop.
 */
#ifndef SLUICE_SCHEDULE_H
#define SLUICE_SCHEDULE_H

#include <sluice/sluice.h>

SLU_BEGIN_DECLS

/* Zeros are the defaults. */
struct slu_schedule {
	size_t struct_size;        /* SLU_OPTIONS_INIT */
	const char *name;          /* as the name of a queue */
	const char *when;          /* minute, hour, day, month, weekday: "0 9 * * mon-fri"; "@hourly", "@daily" ...; "@every 90s" */
	const char *zone;          /* such as "Europe/Berlin", of /usr/share/zoneinfo or $TZDIR; NULL: UTC */
	const char *missed;        /* ticks that could not fire in time: "skip" none, "one" (NULL) the newest, "all:N" the newest N */
	const char *overlap;       /* a tick while the message before is neither gone nor dead: "allow" (NULL), or "skip" it */
	slu_time jitter;           /* fires up to so much later */
	bool paused;               /* fires nothing */
	const struct slu_put *put; /* its message, with a queue and a payload in memory; without due, deadline, idempotency, unique and
				    * batch. All of it at most 64 KiB as JSON */
};

/* Makes a schedule, or changes it: its history stays, and if `when` or `zone` changes, its first tick is later than now. */
SLU_API int slu_schedule_set(struct slu_broker *b, const struct slu_schedule *schedule, struct slu_err *err);

/* Return SLU_ENOTFOUND if there is no schedule of this name. What a pause passes over is not missed. */
SLU_API int slu_schedule_pause(struct slu_broker *b, const char *name, bool paused, struct slu_err *err);
SLU_API int slu_schedule_delete(struct slu_broker *b, const char *name, struct slu_err *err);

/* Begins one message now, and changes no tick. id (may be NULL) gets its id. */
SLU_API int slu_schedule_run(struct slu_broker *b, const char *name, uint64_t *id, struct slu_err *err);

/* What became of a tick. */
struct slu_schedule_event {
	slu_time tick;    /* wall clock, as all moments here; when it was asked for, of a run */
	slu_time at;      /* when it happened */
	uint64_t id;      /* of the message that began, or that was still there; 0: not known */
	char outcome[16]; /* "fired", "run" (slu_schedule_run), "overlap" */
};

struct slu_schedule_info {
	char name[136];
	char when[136];
	char zone[72]; /* "UTC", ... */
	char missed[16];
	char overlap[16];
	char queue[136]; /* of its messages */
	slu_time jitter;
	bool paused;
	uint64_t fired;      /* ticks that fired */
	uint64_t lost;       /* ticks that were missed and did not fire */
	uint64_t overlapped; /* ticks that were passed over */
	slu_time next[5];    /* when the next ticks fire; 0: no more, or paused */
	uint32_t n_last;
	struct slu_schedule_event last[20]; /* the newest first */
	uint64_t reserved[8];               /* 0 */
};

/* Returns SLU_ENOTFOUND if there is no schedule of this name. */
SLU_API int slu_schedule_get(struct slu_broker *b, const char *name, struct slu_schedule_info *out, struct slu_err *err);

/* Up to max schedules; *n is their number. Set *cursor to 0 before the first call; it is 0 after the last page. A page may
 * be short before that. */
SLU_API int slu_schedule_list(struct slu_broker *b, uint64_t *cursor, struct slu_schedule_info *out, size_t max, size_t *n,
			      struct slu_err *err);

SLU_END_DECLS

#endif
