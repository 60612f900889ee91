/*
 * tasker_act.c - what a task does to a message.
 *
 *      redrive, delete,   one op with an item for each message
 *      another priority
 *      or due time
 *      to another queue   an OP_FINISH for each message: the message goes, and another one is accepted in its place, in one
 *                         step; over shards by the outbox
 */
#include "api/task/tasker_private.h"

#include <inttypes.h>

static bool
replaces(const struct task *t)
{
	return t->action == TASK_MOVE || t->to.n > 0;
}

/* ---- Add ---- */

/* Whether the message has another due time afterwards, and stays what it is. */
static bool
moves_due(const struct task *t)
{
	return t->action == TASK_RUN || t->action == TASK_DELAY;
}

/* TASK-2: the message would take another place in the sequence of its key. */
static bool
is_in_order(const struct task *t, const struct op_row *row, const struct message *m)
{
	return m->key.n && row->state != MSG_DEAD && (t->action == TASK_RUN || row->state != MSG_DELAYED || row->attempts);
}

/* TASK-2 */
static bool
is_refused(const struct task *t, const struct op_row *row, const struct message *m, char *text, size_t size)
{
	const bool in_order = is_in_order(t, row, m);

	if (moves_due(t) && !in_order)
		return false;
	if (in_order)
		(void)snprintf(text, size, "message %" PRIu64 " has the key %.*s, and the order of that key would change", row->id,
			       m->key.n < 64 ? (int)m->key.n : 64, m->key.p);
	else if (m->keep)
		(void)snprintf(text, size, "message %" PRIu64 " has keep_result: its result is waited for by its id", row->id);
	else if (m->file)
		(void)snprintf(text, size, "message %" PRIu64 " has more than 1 MiB", row->id);
	else if (m->terms.batch && row->state != MSG_DEAD)
		(void)snprintf(text, size, "message %" PRIu64 " is a member of a batch, which would count it as failed", row->id);
	else if (terms_are_unique(&m->terms) && row->state != MSG_DEAD)
		(void)snprintf(text, size, "message %" PRIu64 " is unique, and would lose its key", row->id);
	else if (t->to_source && !m->source.n)
		(void)snprintf(text, size, "message %" PRIu64 " did not die in another queue", row->id);
	else
		return false;
	return true;
}

static void
fill_put(const struct task *t, const struct op_row *row, const struct message *m, struct op_put *put)
{
	const bool dead = row->state == MSG_DEAD;

	*put = (struct op_put){ .m = *m };
	put->m.id = put->m.number = 0;
	put->m.idem = (struct slice){ 0 }; /* the queue still remembers it for the message that goes */
	put->m.prio = row->prio;
	put->m.due = dead ? 0 : row->due;
	put->deadline = !dead && m->expires > 0 && m->expires != SLU_NEVER ? m->expires : 0;
	put->m.expires = 0;
	put->m.terms.batch = 0; /* the member has failed */
	put->m.queue = t->to_source ? m->source : t->to;
	put->m.source = put->m.error = (struct slice){ 0 };
	put->m.sent = 0;
	put->m.reason = 0;
}

static struct op_item
item_of(const struct task *t, const struct op_row *row)
{
	return (struct op_item){
		.id = row->id,
		.has_prio = t->action == TASK_PRIORITY,
		.prio = t->prio,
		.delayed = t->action == TASK_RUN,
		.time = t->until,
	};
}

static void
add_finish(struct task_step *p, uint32_t i, const struct message *m)
{
	const uint32_t n = p->n_acts;

	p->items[n] = (struct op_item){ .id = p->rows[i].id, .remove = true };
	fill_put(&p->row->t, &p->rows[i], m, &p->puts[n]);
}

bool
tasker_act_add(struct task_step *p, uint32_t i, const struct message *m, char *text, size_t size)
{
	const struct task *const t = &p->row->t;

	if ((replaces(t) || moves_due(t)) && is_refused(t, &p->rows[i], m, text, size))
		return false;
	if (t->dry_run)
		return true;
	if (replaces(t))
		add_finish(p, i, m);
	else
		p->items[p->n_acts] = item_of(t, &p->rows[i]);
	p->act_of[i] = (int32_t)p->n_acts++;
	return true;
}

/* ---- Run ---- */

static void
begin_op(struct tasker *s, struct task_step *p, struct op *op, enum op_verb verb)
{
	opwait_op(&s->duty.wait, op, verb, slice_of(p->row->row.space), p->row->t.queue);
	op->wait = TASKER_OP_MAX;
}

static enum op_verb
verb_of(const struct task *t)
{
	if (t->action == TASK_PRIORITY || t->action == TASK_DELAY)
		return OP_ADJUST;
	return t->action == TASK_DELETE ? OP_DELETE : OP_REDRIVE;
}

/* One op with all items. */
static void
run_together(struct tasker *s, struct task_step *p)
{
	struct op *const op = p->ops;

	begin_op(s, p, op, verb_of(&p->row->t));
	op->items = p->items;
	op->n_items = p->n_acts;
	(void)opwait_run(&s->duty.wait, s->duty.broker, op, 1);
	for (uint32_t i = 0; op->rc && i < p->n_acts; i++)
		p->items[i].rc = op->rc;
	p->err = op->err;
}

static void
run_each(struct tasker *s, struct task_step *p)
{
	for (uint32_t i = 0; i < p->n_acts; i++) {
		struct op *const op = &p->ops[i];

		begin_op(s, p, op, OP_FINISH);
		op->items = &p->items[i];
		op->n_items = 1;
		op->puts = &p->puts[i];
		op->n_puts = 1;
	}
	(void)opwait_run(&s->duty.wait, s->duty.broker, p->ops, p->n_acts);
	for (uint32_t i = 0; i < p->n_acts; i++) {
		p->items[i].rc = p->ops[i].rc ? p->ops[i].rc : p->items[i].rc;
		if (p->ops[i].rc)
			p->err = p->ops[i].err;
	}
}

/* Whether the message alone is why an act failed. */
static bool
is_of_message(int rc)
{
	return rc == SLU_ELEASE || rc == SLU_ECONFLICT || rc == SLU_EEXISTS || rc == SLU_ETOOBIG || rc == SLU_EIDEM || rc == SLU_ECORRUPT;
}

static void
note_refusal(struct task_step *p, const struct op_item *item)
{
	if (!p->row->refusal[0])
		(void)snprintf(p->row->refusal, sizeof p->row->refusal, "message %" PRIu64 ": %s", item->id, slu_err_row(item->rc)->text);
	p->refused++;
}

int
tasker_act_run(struct tasker *s, struct task_step *p)
{
	int failed = 0;

	if (p->n_acts == 0)
		return 0;
	if (replaces(&p->row->t))
		run_each(s, p);
	else
		run_together(s, p);
	for (uint32_t i = 0; i < p->n_acts; i++) {
		const struct op_item *const item = &p->items[i];

		if (item->rc == 0)
			p->done++;
		else if (is_of_message(item->rc))
			note_refusal(p, item);
		else if (slu_err_row(item->rc)->retry != SLU_RETRY_NO)
			p->again = true;
		else if (item->rc != SLU_ENOTFOUND) /* somebody else was faster */
			failed = item->rc;
	}
	if ((p->again || failed) && !p->err.text[0])
		(void)slu_fail(&p->err, (enum slu_code)(failed ? failed : SLU_EDOWN), "%s", slu_err_row(failed ? failed : SLU_EDOWN)->text);
	return failed;
}
