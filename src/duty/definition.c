#include "duty/definition.h"

#include "core/schedule/schedule_doc.h"
#include "duty/firing.h"
#include "engine/engine.h"

static int
copy_text(char *out, size_t size, struct slice text, const char *what, struct slu_err *err)
{
	if (text.n >= size)
		return slu_fail(err, SLU_EINVAL, "invalid %s; expected at most %zu bytes", what, size - 1);
	if (text.n) /* an empty text may have no bytes */
		memcpy(out, text.p, text.n);
	out[text.n] = '\0';
	return 0;
}

static int
copy_all(const struct definition *d, struct schedule *out, struct slu_err *err)
{
	int rc = copy_text(out->name, sizeof out->name, d->name, "name", err);

	if (!rc)
		rc = copy_text(out->when, sizeof out->when, d->when, "when", err);
	if (!rc)
		rc = copy_text(out->zone, sizeof out->zone, d->zone, "zone", err);
	if (!rc && d->missed.n)
		rc = schedule_missed_parse(d->missed, out, err);
	if (!rc && d->overlap.n)
		rc = schedule_overlap_parse(d->overlap, out, err);
	return rc;
}

int
definition_take(const struct definition *d, struct zones *z, struct slice space, const struct schedule *old, slu_time now,
		struct arena *a, struct op_put *put, struct schedule *out, struct schedule_plan *plan, struct slu_err *err)
{
	int rc;

	*out = (struct schedule){ .missed = SCHEDULE_ONE, .jitter = d->jitter, .paused = d->paused, .message = d->message };
	rc = copy_all(d, out, err);
	if (!rc)
		rc = zones_plan(z, out, plan, err);
	if (!rc && plan->cron.every && out->jitter >= plan->cron.every)
		rc = slu_fail(err, SLU_EINVAL, "invalid jitter; expected less than the interval");
	if (!rc)
		rc = firing_puts(out, space, NULL, 1, a, put, err);
	if (!rc)
		schedule_take(out, old, now);
	return rc;
}

int
definition_read(struct engine *e, const struct op_ref *record, struct slice name, struct arena *a, struct schedule *out,
		struct slu_err *err)
{
	char *const room = arena_array(a, record->size + 1, 2);
	struct message m = { 0 };
	int rc;

	if (!room)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	rc = engine_read(e, record, 0, record->size, room, true, err);
	if (!rc)
		rc = message_decode((struct slice){ room, record->size }, &m, err);
	if (!rc)
		rc = schedule_decode(m.payload, room + record->size, out, err);
	if (!rc && name.n && !slice_eq(slice_of(out->name), name)) /* two names with one hash */
		rc = slu_fail(err, SLU_ECONFLICT, "schedule %s has the same id; expected another name", out->name);
	return rc;
}
