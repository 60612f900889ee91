/*
 * scheduler_private.h - the schedules that this node fires; for scheduler*.c alone.
 */
#ifndef DUTY_SCHEDULER_PRIVATE_H
#define DUTY_SCHEDULER_PRIVATE_H

#include "duty/scheduler.h"
#include "duty/zones.h"

/* A schedule in memory. */
struct scheduled {
	struct duty_row row;
	struct schedule s; /* its texts are in row.memory */
	struct schedule_plan plan;
	slu_time due; /* the next tick, by the wall clock; SLU_NEVER: none */
};

enum {
	SCHEDULER_FIRED = DUTY_METRICS,
	SCHEDULER_LOST,
	SCHEDULER_OVERLAPPED,
	SCHEDULER_ROWS,
	SCHEDULER_METRICS
};

/* Fires the ticks of the schedule that are due, and sets its next one: kind->act. */
int scheduler_fire(struct duty *d, struct duty_row *one, struct slu_err *err);

#endif
