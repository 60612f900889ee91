/*
 * definition.h - a schedule as its owner defines it, checked and with what has happened so far.
 */
#ifndef DUTY_DEFINITION_H
#define DUTY_DEFINITION_H

#include "duty/zones.h"
#include "engine/op.h"
#include "form/arena.h"

/* As given: an empty text is the default. */
struct definition {
	struct slice name, when, zone, missed, overlap, message;
	slu_time jitter;
	bool paused;
};

/* Makes the schedule that replaces old (NULL: a new one) at the moment now. put: room for a message, which is checked.
 * Reads files of time zones. Returns SLU_EINVAL or SLU_ENOMEM. */
int definition_take(const struct definition *d, struct zones *z, struct slice space, const struct schedule *old, slu_time now,
		    struct arena *a, struct op_put *put, struct schedule *out, struct schedule_plan *plan, struct slu_err *err);

/* Reads a schedule out of its message. name: that it must have, n 0: any. Its texts are in the arena. Returns SLU_ECONFLICT
 * if another one has its id. */
int definition_read(struct engine *e, const struct op_ref *record, struct slice name, struct arena *a, struct schedule *out,
		    struct slu_err *err);

#endif
