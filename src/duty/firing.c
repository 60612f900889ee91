#include "duty/firing.h"

#include "duty/reserved.h"
#include "core/schedule/schedule_doc.h"
#include "form/put.h"

static int
no_memory(struct slu_err *err)
{
	return slu_fail(err, SLU_ENOMEM, "out of memory");
}

static int
check_message(const struct form_puts *e, struct slu_err *err)
{
	const struct message *const m = &e->puts->m;

	if (m->idem.n)
		return slu_fail(err, SLU_EINVAL, "message: a schedule gives each message its idempotency_key; expected none");
	if (m->terms.batch)
		return slu_fail(err, SLU_EINVAL, "message: batch: a schedule has no batch; expected none");
	if (m->due)
		return slu_fail(err, SLU_EINVAL, "message: deliver_after is one moment; expected delay");
	return 0;
}

static int
add_idem(const struct schedule *s, slu_time tick, struct arena *a, struct op_put *put, struct slu_err *err)
{
	char idem[SCHEDULE_IDEM];

	put->m.idem = arena_copy(a, (struct slice){ idem, schedule_idem(s, tick, idem) });
	return put->m.idem.n ? 0 : no_memory(err);
}

int
firing_puts(const struct schedule *s, struct slice space, const slu_time *ticks, uint32_t n, struct arena *a,
	    struct op_put *out, struct slu_err *err)
{
	struct form_puts e = { 0 };
	int rc = form_puts_object(&e, a, s->message, space, "message", err);

	if (rc)
		return rc;
	rc = check_message(&e, err);
	for (uint32_t i = 0; i < n && !rc; i++) {
		out[i] = e.puts[0];
		if (ticks)
			rc = add_idem(s, ticks[i], a, &out[i], err);
	}
	return rc;
}

int
firing_schedule(const struct schedule *s, struct slice space, struct arena *a, struct op_put *out, struct slu_err *err)
{
	struct buf text;

	buf_init(&text, SCHEDULE_DOC_MAX);
	schedule_encode(s, &text);
	return reserved_put(space, SLICE(SCHEDULE_QUEUE), &text, a, out) ? no_memory(err) : 0;
}
