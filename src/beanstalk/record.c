/*
 * record.c - a job in the record of a message: its ttr is the lease of the message. Attributes have what the message has
 * no place for: a priority above 2^31 - 1, a ttr above the longest lease, and every ttr if the engine has no leases of
 * messages.
 */
#include "beanstalk/beanstalk_private.h"

#include "api/quarantine.h"
#include "base/json/json.h"
#include "engine/engine.h"

#include <stdio.h>

enum {
	ATTRIBUTES_DEPTH = 32
};

struct slice
bean_attributes(struct arena *a, uint32_t pri, uint32_t ttr)
{
	char text[64];
	int n = 0;

	if (pri <= INT32_MAX && ttr == 0)
		return (struct slice){ "", 0 };
	if (ttr)
		n = snprintf(text, sizeof text, "{\"ttr\":%u", ttr);
	if (pri > INT32_MAX)
		n += snprintf(text + n, sizeof text - (size_t)n, "%s\"pri\":%u", ttr ? "," : "{", pri);
	text[n++] = '}';
	return arena_copy(a, (struct slice){ text, (size_t)n });
}

/* Attributes of other makers may have any form: what cannot be read is not there. */
static void
read_attributes(struct slice text, struct bean_record *out)
{
	struct json r;
	struct json_str name;

	if (text.n == 0)
		return;
	json_init(&r, text, ATTRIBUTES_DEPTH);
	json_object(&r);
	while (json_member(&r, &name)) {
		const bool is_number = json_peek(&r) == JSON_NUMBER;

		if (is_number && json_str_is(&name, SLICE("ttr"))) {
			out->ttr = (slu_time)json_u64(&r, 0, UINT32_MAX) * SLU_SEC;
		} else if (is_number && json_str_is(&name, SLICE("pri"))) {
			out->pri = (uint32_t)json_u64(&r, 0, UINT32_MAX);
			out->has_prio = true;
		} else {
			(void)json_skip(&r);
		}
	}
}

/* A payload with a file of its own is read whole: it is within the limits of the server. */
static int
read_payload(struct apicall *a, struct bean_reading *s, bool may_block, struct slu_err *err)
{
	const struct op_ref *const ref = &s->row->payload;
	char *bytes;
	int rc;

	s->record.payload = s->record.m.payload;
	if (!ref->pin)
		return 0;
	if (!may_block)
		return SLU_EBUSY;
	bytes = arena_alloc(&a->memory, ref->size);
	if (!bytes)
		return SLU_ENOMEM;
	rc = engine_read(s->op->engine, ref, 0, ref->size, bytes, true, err);
	s->record.payload = (struct slice){ bytes, ref->size };
	return rc;
}

static int
read_record(struct apicall *a, bool may_block)
{
	struct bean_reading *const s = a->state;
	const struct op_ref *const ref = &s->row->record;
	char *const bytes = arena_alloc(&a->memory, ref->size);
	struct slu_err err = { 0 };
	int rc = bytes ? engine_read(s->op->engine, ref, 0, ref->size, bytes, may_block, &err) : SLU_ENOMEM;

	if (!rc)
		rc = message_decode((struct slice){ bytes, ref->size }, &s->record.m, &err);
	if (!rc)
		rc = read_payload(a, s, may_block, &err);
	s->record.ttr = rc ? 0 : s->record.m.terms.lease;
	if (!rc)
		read_attributes(s->record.m.attributes, &s->record);
	if (rc == SLU_ECORRUPT)
		quarantine(a, s->op, s->row, &err);
	return rc;
}

static void
read_done(struct apicall *a, int rc)
{
	struct bean_reading *const s = a->state;

	op_unpin(s->op);
	s->record.rc = rc;
	s->then(a);
}

void
bean_read(struct apicall *a, struct op *op, struct op_row *row, void (*then)(struct apicall *a))
{
	struct bean_reading *const s = a->state;

	s->record = (struct bean_record){ 0 };
	s->op = op;
	s->row = row;
	s->then = then;
	apicall_try(a, read_record, read_done);
}

void
bean_answer_job(struct apicall *a, const char *word, uint64_t id, struct slice payload)
{
	struct buf *const out = &a->x->out;

	buf_printf(out, "%s %llu %zu\r\n", word, (unsigned long long)bean_id_out(id), payload.n);
	buf_put(out, payload.p, payload.n);
	buf_puts(out, "\r\n");
	exchange_answer(a->x);
}
