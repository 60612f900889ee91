#include "duty/scheduler_private.h"

#include "core/schedule/schedule_doc.h"

#define LOOK SLU_SEC /* SCHEDULER-4 */

/* The schedules, and what their expressions need. */
struct scheduler {
	struct duty duty;
	struct zones *zones;
};

static struct scheduled *
scheduled_of(struct duty_row *row)
{
	return CONTAINER(row, struct scheduled, row);
}

/* Reads files of time zones. */
static int
decode(struct duty *d, struct slice doc, char *room, struct duty_row *row, struct slu_err *err)
{
	struct scheduled *const out = scheduled_of(row);
	int rc = schedule_decode(doc, room, &out->s, err);

	if (!rc)
		rc = zones_plan(CONTAINER(d, struct scheduler, duty)->zones, &out->s, &out->plan, err);
	if (!rc)
		out->due = schedule_next(&out->s, &out->plan);
	return rc;
}

static const char *
name_of(const struct duty_row *row, char *room, size_t size)
{
	(void)room;
	(void)size;
	return CONTAINER(row, const struct scheduled, row)->s.name;
}

static void
loaded(struct duty *d)
{
	metrics_set(&d->metrics, SCHEDULER_ROWS, 0, d->n);
}

static slu_time
pause_of(const struct duty_row *row)
{
	const slu_time due = CONTAINER(row, const struct scheduled, row)->due;
	const slu_time wait = due == SLU_NEVER ? SLU_NEVER : due - clock_wall(&clock_system);

	return wait > LOOK && wait != SLU_NEVER ? LOOK : wait;
}

static const struct metric metrics[SCHEDULER_METRICS] = {
	[DUTY_FAILURES] = { "schedule_failures_total", METRIC_COUNTER, "attempts to fire that failed and are repeated" },
	[SCHEDULER_FIRED] = { "schedule_firings_total", METRIC_COUNTER, "messages that schedules have begun" },
	[SCHEDULER_LOST] = { "schedule_missed_total", METRIC_COUNTER, "ticks that were missed and did not fire" },
	[SCHEDULER_OVERLAPPED] = { "schedule_overlaps_total", METRIC_COUNTER,
				   "ticks that were passed over because the message before was not finished" },
	[SCHEDULER_ROWS] = { "schedules", METRIC_GAUGE, "schedules that this server fires" },
};

static const struct duty_kind kind = {
	.noun = "schedule",
	.waits = "schedule waits",
	.queue = SCHEDULE_QUEUE,
	.size = sizeof(struct scheduler),
	.row_size = sizeof(struct scheduled),
	.metrics = metrics,
	.n_metrics = SCHEDULER_METRICS,
	.decode = decode,
	.name = name_of,
	.loaded = loaded,
	.pause = pause_of,
	.act = scheduler_fire,
};

int
scheduler_new(struct duty **out, struct zones *zones, struct slu_log *log, struct slu_err *err)
{
	const int rc = duty_new(out, &kind, log, err);

	if (!rc)
		CONTAINER(*out, struct scheduler, duty)->zones = zones;
	return rc;
}
