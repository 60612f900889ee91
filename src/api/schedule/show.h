/*
 * show.h - a schedule as JSON, for lists and single ones.
 */
#ifndef API_SCHEDULE_SHOW_H
#define API_SCHEDULE_SHOW_H

#include "base/json/json_out.h"
#include "core/schedule/schedule.h"

/* Writes the members of a schedule. plan NULL: its expression or zone cannot be read here. whole: with its message and
 * its last firings, the newest first. */
void schedule_show(struct json_out *w, struct slice space, const struct schedule *s, const struct schedule_plan *plan,
		   bool whole);

#endif
