#include "engine/formats.h"

#include "engine/attempts.h"
#include "engine/move_keys.h"

enum {
	NO_RECORD = 0,
	NO_VERB = OP_VERBS
};

static bool
has_new_field(const struct op *op)
{
	for (uint32_t i = 0; i < op->n_puts; i++)
		if (op->puts[i].m.share.n || op->puts[i].deadline || terms_any(&op->puts[i].m.terms))
			return true;
	return false;
}

static bool
has_hold(const struct op *op)
{
	for (uint32_t i = 0; i < op->n_items; i++)
		if (op->items[i].hold || op->items[i].reason.n)
			return true;
	return false;
}

static bool
has_cancel(const struct op *op)
{
	for (uint32_t i = 0; i < op->n_items; i++)
		if (op->items[i].cancel)
			return true;
	return false;
}

static bool
has_checkpoint(const struct op *op)
{
	for (uint32_t i = 0; i < op->n_items; i++)
		if (op->items[i].text.n)
			return true;
	return false;
}

static bool
has_priority(const struct op *op)
{
	for (uint32_t i = 0; i < op->n_items; i++)
		if (op->items[i].has_prio)
			return true;
	return false;
}

static bool
has_new_setting(const struct op *op)
{
	return op->policy.share_weights[0] || op->policy.dead_letter_queue[0] || op->policy.rules[0] || op->policy.max_runtime ||
	       op->policy.breakers[0] || policy_has_limits(&op->policy) || !pause_note_is_empty(&op->policy.pause) || op->policy.draining ||
	       op->policy.warn_age || op->policy.tags[0];
}

static bool
has_new_pause(const struct op *op)
{
	return !pause_note_is_empty(&op->policy.pause) || op->sets & OP_SETS_DRAIN;
}

static bool
has_key_digest(const struct op *op)
{
	for (uint32_t i = 0; i < op->n_puts; i++)
		if (op->puts[i].stood.kind == MOVE_REMEMBERED && move_keys_have_digests(op->puts[i].m.payload))
			return true;
	return false;
}

static bool
has_kinds(const struct op *op)
{
	return op->claim.kinds.n != 0;
}

static bool
has_attempts(const struct op *op)
{
	for (uint32_t i = 0; i < op->n_puts; i++)
		if (attempts_marked((struct slice){ op->puts[i].stood.error, op->puts[i].stood.error_size }))
			return true;
	return false;
}

static const struct {
	uint8_t format;
	uint8_t record;                       /* enum logengine_type, or NO_RECORD */
	uint8_t verb;                         /* enum op_verb, or NO_VERB */
	bool (*is_used)(const struct op *op); /* whether an op of this verb uses what is new; NULL = each does */
} rows[] = {
	{ 3, NO_RECORD, OP_FINISH, NULL },
	{ 3, NO_RECORD, OP_SCHEDULE, NULL },
	{ 3, LOGENGINE_INTAKE, OP_INTAKE, NULL },
	{ 3, LOGENGINE_HOLD, OP_NACK, has_hold },
	{ 3, LOGENGINE_REPLACE, NO_VERB, NULL },
	{ 3, LOGENGINE_PRIORITY, OP_NACK, has_priority },
	{ 3, LOGENGINE_BREAKER, OP_HOLD, NULL },
	{ 3, LOGENGINE_RETRY_ATTEMPTS, NO_VERB, NULL },
	{ 3, LOGENGINE_DIE_ATTEMPTS, NO_VERB, NULL },
	{ 3, LOGENGINE_RESTORE_ATTEMPTS, OP_MOVE, has_attempts },
	{ 3, LOGENGINE_CANCEL, OP_DELETE, has_cancel },
	{ 3, NO_RECORD, OP_EXTEND, has_checkpoint },
	{ 3, LOGENGINE_DUE, OP_ADJUST, NULL },
	{ 3, NO_RECORD, OP_ENQUEUE, has_new_field },
	{ 3, NO_RECORD, OP_CLAIM, has_kinds },
	{ 3, NO_RECORD, OP_POLICY_SET, has_new_setting },
	{ 3, NO_RECORD, OP_PAUSE, has_new_pause },
	{ FORMATS_KEY_DIGESTS, NO_RECORD, OP_MOVE, has_key_digest },
};

uint32_t
formats_new_record(uint8_t type)
{
	for (unsigned i = 0; i < COUNT(rows); i++)
		if (rows[i].record == type)
			return rows[i].format;
	return FORMATS_LAST;
}

uint32_t
formats_op(const struct op *op)
{
	uint32_t format = FORMATS_FIRST;

	for (unsigned i = 0; i < COUNT(rows); i++)
		if (rows[i].verb == op->verb && rows[i].format > format && (!rows[i].is_used || rows[i].is_used(op)))
			format = rows[i].format;
	return format;
}
