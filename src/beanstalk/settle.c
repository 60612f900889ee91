/*
 * settle.c - put, and the commands that settle a reservation: delete, release, bury, touch.
 */
#include "beanstalk/beanstalk_private.h"

#include "base/time.h"
#include "core/queue/policy.h"
#include "engine/engine.h"

/* ---- put ---- */

static void
inserted(struct apicall *a)
{
	const struct op_put *const put = a->state;

	if (apicall_failed(a))
		return;
	buf_printf(&a->x->out, "INSERTED %llu\r\n", (unsigned long long)bean_id_out(put->m.id));
	exchange_answer(a->x);
}

/* beanstalkd has priorities of 32 bits without a sign. */
static int32_t
priority(uint64_t n)
{
	return n > INT32_MAX ? INT32_MAX : (int32_t)n;
}

bool
bean_has_leases(struct apicall *a, struct slice queue)
{
	return !broker_engine_of(a->api->broker, apicall_routes(a), bean_space(a->x), queue)->ops->shared;
}

/* The ttr is the lease of the message. Returns what the attributes must have of it, or 0. */
static uint32_t
take_ttr(struct apicall *a, struct op_put *put, uint32_t ttr)
{
	const slu_time lease = ttr * SLU_SEC;

	if (!bean_has_leases(a, a->op.queue))
		return ttr;
	put->m.terms.lease = lease < POLICY_LEASE_MAX ? lease : POLICY_LEASE_MAX;
	return lease > POLICY_LEASE_MAX ? ttr : 0;
}

void
bean_put(struct apicall *a)
{
	const struct bean_call *const call = bean_call(a->x);
	const uint64_t *const n = call->line.numbers; /* priority, delay, ttr, bytes */
	const struct tube *const tube = bean_conn_of(a->x)->used;
	struct op_put *const put = apicall_state(a, sizeof *put);

	if (!put)
		return;
	apicall_op(a, &a->op, OP_ENQUEUE, bean_space(a->x), arena_copy(&a->memory, bean_queue(tube)));
	a->op.as.queue = arena_copy(&a->memory, slice_of(tube->shown));
	put->m.payload = (struct slice){ call->in.p, call->in.n - 2 };
	put->m.prio = priority(n[0]);
	put->m.attributes = bean_attributes(&a->memory, (uint32_t)n[0], take_ttr(a, put, n[2] ? (uint32_t)n[2] : 1));
	put->m.max_attempts = bean_shared(a->x)->conf.max_attempts;
	put->delay = (slu_time)n[1] * SLU_SEC;
	a->op.puts = put;
	a->op.n_puts = 1;
	if (a->op.queue.n && put->m.attributes.p)
		apicall_run(a, inserted);
	else
		apicall_refuse(a, SLU_ENOMEM, NULL);
}

/* ---- Reservations ---- */

struct job_settle {
	struct op_item item;
	const char *done; /* the answer if it succeeded */
	uint32_t lane;
	bool stays; /* the reservation */
};

/* The reservation is gone, or belongs to another connection. */
static void delete_any(struct apicall *a);

static void
settled(struct apicall *a)
{
	struct bean_conn *const bc = bean_conn_of(a->x);
	const struct job_settle *const s = a->state;
	const int rc = a->op.rc ? a->op.rc : s->item.rc;
	const bool is_lost = rc == SLU_ELEASE || rc == SLU_ENOTFOUND;

	if (bc && (is_lost || (!rc && !s->stays)))
		bean_job_drop(bc, s->item.id);
	if (is_lost && a->op.verb == OP_ACK)
		delete_any(a);
	else if (rc)
		apicall_refuse(a, rc, a->op.rc ? a->op.err.text : NULL);
	else
		bean_answer(a->x, s->done);
}

/* The job that the command names, if this connection has reserved it; otherwise answers. */
static struct bean_job *
job_of(struct apicall *a)
{
	const uint64_t id = bean_id_in(bean_call(a->x)->line.numbers[0]);

	return bean_job_find(bean_conn_of(a->x), id);
}

static void
settle(struct apicall *a, enum op_verb verb, const struct bean_job *job, const struct op_item *how, const char *done)
{
	struct job_settle *const s = apicall_state(a, sizeof *s);

	if (!s)
		return;
	apicall_op(a, &a->op, verb, bean_space(a->x), arena_copy(&a->memory, bean_queue(job->tube)));
	s->item = *how;
	s->item.id = job->id;
	s->item.token = job->token;
	s->done = done;
	s->stays = verb == OP_EXTEND;
	a->op.items = &s->item;
	a->op.n_items = 1;
	if (a->op.queue.n)
		apicall_run(a, settled);
	else
		apicall_refuse(a, SLU_ENOMEM, NULL);
}

static void
deleted(struct apicall *a)
{
	struct job_settle *const s = a->state;
	const int rc = a->op.rc ? a->op.rc : s->item.rc;

	if (rc == SLU_ENOTFOUND && ++s->lane < broker_lanes(a->api->broker))
		delete_any(a);
	else if (rc)
		apicall_refuse(a, rc, NULL);
	else
		bean_answer(a->x, "DELETED\r\n");
}

/* A job that this connection has not reserved: a lane has it, and they are asked in turn. */
static void
delete_any(struct apicall *a)
{
	struct job_settle *const s = a->state;

	apicall_op(a, &a->op, OP_DELETE, bean_space(a->x), (struct slice){ 0 });
	s->item = (struct op_item){ .id = s->item.id };
	a->op.cursor = (uint64_t)s->lane << BROKER_CURSOR_BITS;
	a->op.items = &s->item;
	a->op.n_items = 1;
	apicall_run(a, deleted);
}

void
bean_delete(struct apicall *a)
{
	const struct bean_job *const job = job_of(a);
	struct job_settle *s;

	if (job) {
		atomic_fetch_add(&job->tube->deletes, 1);
		settle(a, OP_ACK, job, &(struct op_item){ 0 }, "DELETED\r\n");
		return;
	}
	s = apicall_state(a, sizeof *s);
	if (!s)
		return;
	s->item.id = bean_id_in(bean_call(a->x)->line.numbers[0]);
	if (s->item.id)
		delete_any(a);
	else
		bean_answer(a->x, "NOT_FOUND\r\n");
}

/* Engine redis keeps the priority of the put. */
static bool
has_priorities(struct apicall *a, const struct bean_job *job)
{
	const struct slice queue = job ? bean_queue(job->tube) : (struct slice){ 0 };

	return job && !broker_engine_of(a->api->broker, apicall_routes(a), bean_space(a->x), queue)->ops->shared;
}

static void
settle_own(struct apicall *a, enum op_verb verb, const struct op_item *how, const char *done)
{
	const struct bean_job *const job = job_of(a);

	if (job)
		settle(a, verb, job, how, done);
	else
		bean_answer(a->x, "NOT_FOUND\r\n");
}

void
bean_release(struct apicall *a)
{
	const uint64_t *const n = bean_call(a->x)->line.numbers; /* id, priority, delay */

	const struct op_item how = { .defer = true, .time = (slu_time)n[2] * SLU_SEC, .has_prio = has_priorities(a, job_of(a)), .prio = priority(n[1]) };

	settle_own(a, OP_NACK, &how, "RELEASED\r\n");
}

void
bean_bury(struct apicall *a)
{
	const uint64_t *const n = bean_call(a->x)->line.numbers; /* id, priority */

	const struct op_item how = { .dead = true, .text = SLICE("buried"), .has_prio = has_priorities(a, job_of(a)), .prio = priority(n[1]) };

	settle_own(a, OP_NACK, &how, "BURIED\r\n");
}

void
bean_touch(struct apicall *a)
{
	struct bean_job *const job = job_of(a);

	if (job)
		job->until = time_add(clock_mono(a->api->clock), job->ttr);
	settle_own(a, OP_EXTEND, &(struct op_item){ .time = job ? job->ttr : 0 }, "TOUCHED\r\n");
}
