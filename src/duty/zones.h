/*
 * zones.h - the time zones of this machine by name, each read once.
 *
 * The files come from the folder $TZDIR, or from /usr/share/zoneinfo. A newer file is seen after a restart.
 * Any thread.
 */
#ifndef DUTY_ZONES_H
#define DUTY_ZONES_H

#include "core/schedule/schedule.h"

#include <pthread.h>

struct zones_row;

struct zones {
	pthread_mutex_t mtx;
	struct zones_row *first; /* under mtx */
};

void zones_init(struct zones *z);
void zones_release(struct zones *z);

/* Reads when a schedule is due: its expression and its zone. The first call with a zone reads a file: it may block. The
 * zone lives as long as z. Returns SLU_EINVAL if the machine does not have the zone. */
int zones_plan(struct zones *z, const struct schedule *s, struct schedule_plan *out, struct slu_err *err);

#endif
