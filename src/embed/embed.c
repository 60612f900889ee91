/*
 * embed.c - the broker in a user's program: each call posts an op and waits for its answer.
 */
#include "embed/embed.h"

#include "base/forked.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/need.h"
#include "base/sized.h"
#include "engine/log/logengine.h"
#include "engine/memory/memory.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Calls ---- */

static void
on_done(struct op *op)
{
	struct embed_call *c = op->owner;

	pthread_mutex_lock(&c->mtx);
	c->done = true;
	pthread_cond_signal(&c->ended);
	pthread_mutex_unlock(&c->mtx);
}

int
embed_stopped(struct slu_err *err)
{
	return slu_fail(err, SLU_ECLOSED, "the broker is stopped: no enqueue, claim, peek or schedule; "
					  "ack, nack and extend still work");
}

/* slu_stop refuses these. Verbs that settle or look go on. */
static bool
is_new_work(enum op_verb verb)
{
	return op_is(verb, OP_BEGINS) || verb == OP_PEEK || verb == OP_SCHEDULE;
}

int
embed_begin(struct slu_broker *b, struct embed_call *c, enum op_verb verb,
	    const char *queue, struct slu_err *err)
{
	NEED_OURS(b, err);
	int rc = 0;

	if (atomic_load(&b->stopping) && is_new_work(verb))
		return embed_stopped(err);
	c->queue[0] = 0;
	if (queue)
		rc = name_fold(slice_of(queue), "queue", c->queue, err);
	if (rc)
		return rc;
	op_init(&c->op, verb, slice_of(b->space), slice_of(c->queue), on_done, c);
	if (queue)
		c->op.as = (struct spelling){ slice_of(b->space_as), slice_of(queue) };
	pthread_mutex_init(&c->mtx, NULL); /* these cannot fail without attributes */
	pthread_cond_init(&c->ended, NULL);
	pthread_mutex_lock(&b->mtx);
	b->calls++;
	pthread_mutex_unlock(&b->mtx);
	return 0;
}

void
embed_end(struct slu_broker *b, struct embed_call *c)
{
	pthread_cond_destroy(&c->ended);
	pthread_mutex_destroy(&c->mtx);
	pthread_mutex_lock(&b->mtx);
	b->calls--;
	pthread_cond_signal(&b->idle);
	pthread_mutex_unlock(&b->mtx);
}

void
embed_wait(struct embed_call *c)
{
	pthread_mutex_lock(&c->mtx);
	while (!c->done)
		pthread_cond_wait(&c->ended, &c->mtx);
	pthread_mutex_unlock(&c->mtx);
}

int
embed_run(struct slu_broker *b, struct embed_call *c, struct slu_err *err)
{
	int rc;

	c->done = false;
	rc = broker_post(b->broker, &c->op);
	if (rc)
		return slu_fail(err, (enum slu_code)rc, "%s", slu_err_row(rc)->text);
	embed_wait(c);
	if (c->op.rc && err)
		*err = c->op.err;
	return c->op.rc;
}

/* ---- Open and close ---- */

static const enum engine_sync durabilities[] = {
	[SLU_DURABLE_SYNC] = ENGINE_SYNC,
	[SLU_DURABLE_INTERVAL] = ENGINE_SYNC_INTERVAL,
	[SLU_DURABLE_NONE] = ENGINE_SYNC_NONE,
};

static int
open_broker(struct slu_broker *b, const char *folder, const struct slu_open_config *config,
	    struct slu_err *err)
{
	const slu_time interval = config->sync_interval ? config->sync_interval : 10 * SLU_MS;
	const struct broker_shard_conf shard = {
		.engine = folder ? &engine_log : &engine_memory,
		.embedded = true,
		.storage = {
			.folder = folder,
			.log = config->log,
			.sync = durabilities[config->durability],
			.sync_interval = interval,
		},
	};
	const struct broker_conf conf = { .shards = &shard, .n_shards = 1, .node = config->node, .notice = &b->notice };

	return broker_open(&b->broker, &conf, err);
}

int
slu_open(struct slu_broker **out, const char *folder, const struct slu_open_config *given,
	 struct slu_err *err)
{
	NEED(out, err);

	struct slu_open_config room;
	const struct slu_open_config *config = SIZED(slu_open_config, given, &room, err);
	struct slu_broker *b;
	const char *space;
	int rc;

	if (!config)
		return SLU_EINVAL;
	b = mem_zalloc(sizeof *b);
	if (!b)
		return slu_fail(err, SLU_ENOMEM, "no memory for a broker");
	b->born = forked_now();
	b->log = config->log;
	pthread_mutex_init(&b->mtx, NULL); /* these cannot fail without attributes */
	pthread_cond_init(&b->idle, NULL);
	pthread_mutex_init(&b->duty_mtx, NULL);
	zones_init(&b->zones);
	space = config->space ? config->space : "default";
	rc = name_fold(slice_of(space), "space", b->space, err);
	(void)snprintf(b->space_as, sizeof b->space_as, "%s", space); /* fits: the name was checked */
	if (!rc)
		rc = need_time(config->sync_interval, "sync_interval", err);
	if (!rc && config->durability > SLU_DURABLE_NONE)
		rc = slu_fail(err, SLU_EINVAL, "invalid durability: %u; expected 0 to %d",
			      config->durability, SLU_DURABLE_NONE);
	if (!rc)
		rc = embed_schedules_open(b, err);
	if (!rc)
		rc = open_broker(b, folder, config, err);
	if (!rc && folder)
		rc = embed_schedules_start_if_any(b, err);
	if (rc)
		slu_close(b);
	else
		*out = b;
	return rc;
}

int
slu_stop(struct slu_broker *b, struct slu_err *err)
{
	NEED(b, err);
	NEED_OURS(b, err);

	if (!atomic_exchange(&b->stopping, true))
		log_warn(b->log, "broker stops", F_STR("namespace", b->space));
	embed_schedules_stop(b);
	broker_end_waits(b->broker);
	return 0;
}

void
slu_close(struct slu_broker *b)
{
	if (!b || b->born != forked_now())
		return;
	embed_schedules_stop(b);
	if (b->broker)
		broker_stop(b->broker);
	pthread_mutex_lock(&b->mtx);
	while (b->calls > 0)
		pthread_cond_wait(&b->idle, &b->mtx);
	pthread_mutex_unlock(&b->mtx);
	(void)broker_close(b->broker); /* the shard has logged why */
	embed_schedules_close(b);
	pthread_cond_destroy(&b->idle);
	pthread_mutex_destroy(&b->mtx);
	mem_free(b);
}

/* ---- Looking ---- */

int
slu_watch(struct slu_broker *b, const char *queue, slu_time wait, struct slu_err *err)
{
	NEED2(b, queue, err);

	struct embed_call c;
	struct op_row row;
	int rc;

	if (need_time(wait, "wait", err))
		return SLU_EINVAL;
	rc = embed_begin(b, &c, OP_PEEK, queue, err);
	if (rc)
		return rc;
	c.op.wait = wait;
	c.op.rows = &row;
	c.op.max_rows = 1;
	rc = embed_run(b, &c, err);
	if (!rc && c.op.n_rows == 0)
		rc = atomic_load(&b->stopping)
			     ? embed_stopped(err)
			     : slu_fail(err, SLU_ETIMEOUT, "queue %s: nothing to claim", c.queue);
	op_unpin(&c.op);
	embed_end(b, &c);
	return rc;
}

int
slu_stats(struct slu_broker *b, const char *queue, struct slu_queue_stats *out,
	  struct slu_err *err)
{
	NEED3(b, queue, out, err);

	struct op_queue q = { 0 };
	struct embed_call c;
	int rc;

	rc = embed_begin(b, &c, OP_STATS, queue, err);
	if (rc)
		return rc;
	c.op.queues = &q;
	c.op.max_queues = 1;
	rc = embed_run(b, &c, err);
	embed_end(b, &c);
	*out = (struct slu_queue_stats){
		.ready = q.count[MSG_READY],
		.delayed = q.count[MSG_DELAYED],
		.leased = q.count[MSG_LEASED],
		.held = q.count[MSG_HELD],
		.dead = q.count[MSG_DEAD],
		.damaged = q.count[MSG_DAMAGED],
	};
	return rc == SLU_ENOTFOUND ? 0 : rc;
}

static int
read_result(struct op *op, void **result, size_t *size, struct slu_err *err)
{
	char *text = mem_alloc((size_t)op->result.size + 1);
	int rc = 0;

	if (!text)
		return slu_fail(err, SLU_ENOMEM, "no memory for a result");
	if (op->result.pin)
		rc = engine_read(op->engine, &op->result, 0, op->result.size, text, true, err);
	if (rc) {
		mem_free(text);
		return rc;
	}
	text[op->result.size] = 0; /* so that a caller can print it */
	*result = text;
	*size = op->result.size;
	return 0;
}

int
slu_result(struct slu_broker *b, const char *queue, uint64_t id, slu_time wait,
	   void **result, size_t *size, struct slu_err *err)
{
	NEED4(b, queue, result, size, err);

	struct embed_call c;
	int rc;

	if (need_time(wait, "wait", err))
		return SLU_EINVAL;
	rc = embed_begin(b, &c, OP_RESULT, queue, err);
	if (rc)
		return rc;
	c.op.id = id;
	c.op.wait = wait;
	rc = embed_run(b, &c, err);
	if (!rc)
		rc = read_result(&c.op, result, size, err);
	op_unpin(&c.op);
	embed_end(b, &c);
	return rc;
}
