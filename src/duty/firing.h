/*
 * firing.h - the messages of an OP_SCHEDULE: the schedule itself, and those that begin with it.
 */
#ifndef DUTY_FIRING_H
#define DUTY_FIRING_H

#include "form/arena.h"
#include "core/schedule/schedule.h"
#include "engine/op.h"

enum {
	FIRING_MESSAGE_MAX = 64 << 10 /* bytes of the message of a schedule, as JSON */
};

/* Fills n puts with the message of the schedule, one for each tick. ticks NULL: one message by hand, without an
 * idempotency key. Texts are in the arena. Returns SLU_EINVAL if a schedule cannot have the message, or SLU_ENOMEM. */
int firing_puts(const struct schedule *s, struct slice space, const slu_time *ticks, uint32_t n, struct arena *a,
		struct op_put *out, struct slu_err *err);

/* Fills the put of the schedule itself. Returns SLU_ENOMEM. */
int firing_schedule(const struct schedule *s, struct slice space, struct arena *a, struct op_put *out, struct slu_err *err);

#endif
