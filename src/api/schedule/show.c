#include "api/schedule/show.h"

#include "api/flat/view.h"
#include "base/parse.h"

static void
show_next(struct json_out *w, const struct schedule *s, const struct schedule_plan *plan)
{
	slu_time tick = s->last;

	json_out_array(w, "next");
	for (int i = 0; plan && !s->paused && i < SCHEDULE_NEXT; i++) {
		tick = schedule_tick(s, plan, tick);
		if (tick == SLU_NEVER)
			break;
		json_out_time(w, NULL, schedule_moment(s, tick));
	}
	json_out_close(w);
}

static void
show_next_at(struct json_out *w, const struct schedule *s, const struct schedule_plan *plan)
{
	const slu_time next = plan ? schedule_next(s, plan) : SLU_NEVER;

	if (next != SLU_NEVER)
		json_out_time(w, "next_at", next);
}

static void
show_event(struct json_out *w, const struct schedule_event *e)
{
	json_out_object(w, NULL);
	json_out_time(w, "tick", e->tick);
	json_out_time(w, "at", e->at);
	json_out_str(w, "outcome", slice_of(schedule_outcome_text(e->outcome)));
	if (e->id)
		flat_view_id(w, e->id);
	json_out_close(w);
}

void
schedule_show(struct json_out *w, struct slice space, const struct schedule *s, const struct schedule_plan *plan,
	      bool whole)
{
	char text[DURATION_TEXT];
	char missed[16];

	json_out_str(w, "namespace", space);
	json_out_str(w, "name", slice_of(s->name));
	json_out_str(w, "when", slice_of(s->when));
	json_out_str(w, "zone", slice_of(s->zone[0] ? s->zone : "UTC"));
	json_out_str(w, "missed", slice_of(schedule_missed_text(s, missed)));
	json_out_str(w, "overlap", slice_of(schedule_overlap_text(s)));
	json_out_str(w, "jitter", slice_of(format_duration(s->jitter, text, sizeof text)));
	json_out_bool(w, "paused", s->paused);
	if (whole)
		json_out_raw(w, "message", s->message);
	json_out_u64(w, "firings", s->fired);
	json_out_u64(w, "missed_ticks", s->lost);
	json_out_u64(w, "overlaps", s->overlapped);
	if (!whole) {
		show_next_at(w, s, plan);
		return;
	}
	show_next(w, s, plan);
	json_out_array(w, "last");
	for (uint32_t i = s->n_events; i > 0; i--)
		show_event(w, &s->events[i - 1]);
	json_out_close(w);
}
