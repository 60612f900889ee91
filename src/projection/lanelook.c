#include "projection/lanelook.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "broker/broker.h"
#include "engine/attempts.h"

enum {
	HEAD = 128 << 10 /* bytes: more than all texts of a record before its payload */
};

#define WAIT (5 * SLU_SEC) /* for an engine that hangs */

int
lanelook_init(struct lanelook *l, struct broker *b, struct slu_err *err)
{
	*l = (struct lanelook){ .broker = b };
	l->ops = mem_array(LANELOOK_MAX, sizeof *l->ops);
	l->rows = mem_array(LANELOOK_MAX, sizeof *l->rows);
	buf_init(&l->record, LANELOOK_PAYLOAD + HEAD);
	buf_init(&l->error, ATTEMPTS_MAX);
	pthread_mutex_init(&l->mtx, NULL); /* these cannot fail without attributes */
	pthread_cond_init(&l->ended, NULL);
	return l->ops && l->rows ? 0 : slu_fail(err, SLU_ENOMEM, "no memory for the projection");
}

void
lanelook_release(struct lanelook *l)
{
	mem_free(l->ops);
	mem_free(l->rows);
	buf_release(&l->record);
	buf_release(&l->error);
	pthread_cond_destroy(&l->ended);
	pthread_mutex_destroy(&l->mtx);
}

/* ---- Ops ---- */

static void
on_done(struct op *op)
{
	struct lanelook *const l = op->owner;

	pthread_mutex_lock(&l->mtx);
	if (--l->running == 0)
		pthread_cond_signal(&l->ended);
	pthread_mutex_unlock(&l->mtx);
}

static void
post(struct lanelook *l, struct op *op)
{
	int rc;

	pthread_mutex_lock(&l->mtx);
	l->running++;
	pthread_mutex_unlock(&l->mtx);
	rc = broker_post(l->broker, op);
	if (rc == 0)
		return;
	op_fail(op, rc, NULL);
	on_done(op);
}

static void
await(struct lanelook *l)
{
	pthread_mutex_lock(&l->mtx);
	while (l->running > 0)
		pthread_cond_wait(&l->ended, &l->mtx);
	pthread_mutex_unlock(&l->mtx);
}

/* The cursor names the lane; the op stays on this node. */
static void
prepare(struct lanelook *l, struct op *op, enum op_verb verb, uint32_t lane)
{
	op_init(op, verb, (struct slice){ 0 }, (struct slice){ 0 }, on_done, l);
	op->cursor = (uint64_t)lane << BROKER_CURSOR_BITS;
	op->wait = WAIT;
	op->route.local = true;
}

int
lanelook_get(struct lanelook *l, uint32_t lane, const uint64_t *ids, uint32_t n, struct slu_err *err)
{
	for (uint32_t i = 0; i < n; i++) {
		struct op *const op = &l->ops[i];

		prepare(l, op, OP_GET, lane);
		op->id = ids[i];
		op->rows = &l->rows[i];
		op->max_rows = 1;
		post(l, op);
	}
	await(l);
	l->n = n;
	for (uint32_t i = 0; i < n; i++) {
		const struct op *const op = &l->ops[i];

		if (op->rc && op->rc != SLU_ENOTFOUND && op->rc != SLU_ECORRUPT) {
			slu_fail(err, (enum slu_code)op->rc, "%s", op->err.text);
			lanelook_end(l);
			return op->rc;
		}
	}
	return 0;
}

void
lanelook_end(struct lanelook *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		op_unpin(&l->ops[i]);
	l->n = 0;
}

int
lanelook_list(struct lanelook *l, uint32_t lane, uint64_t *cursor, uint64_t ids[static LANELOOK_MAX], uint32_t *n,
	      struct slu_err *err)
{
	const uint64_t here = (uint64_t)lane << BROKER_CURSOR_BITS;
	struct op *const op = &l->ops[0];
	int rc;

	prepare(l, op, OP_LIST, lane);
	op->cursor = here | *cursor;
	op->rows = l->rows;
	op->max_rows = LANELOOK_MAX;
	post(l, op);
	await(l);
	rc = op->rc;
	*n = rc ? 0 : op->n_rows;
	for (uint32_t i = 0; i < *n; i++)
		ids[i] = op->rows[i].id;
	if (rc)
		return slu_fail(err, (enum slu_code)rc, "%s", op->err.text);
	op_unpin(op);
	*cursor = op->cursor >> BROKER_CURSOR_BITS == lane ? op->cursor & (here ^ UINT64_MAX) : 0;
	return 0;
}

/* ---- Rows ---- */

static int
read_ref(struct engine *e, const struct op_ref *ref, size_t n, struct buf *out, struct slu_err *err)
{
	int rc;

	buf_clear(out);
	if (!buf_reserve(out, n))
		return slu_fail(err, SLU_ENOMEM, "no memory for a message");
	rc = n > 0 ? engine_read(e, ref, 0, n, out->p, true, err) : 0;
	out->n = rc ? 0 : n;
	return rc;
}

/* A record is checked as a whole: one call reads it. */
static int
read_record(struct lanelook *l, const struct op *op, struct message *m, struct slu_err *err)
{
	const struct op_ref *const ref = &op->rows[0].record;
	const bool whole = ref->size <= LANELOOK_PAYLOAD + HEAD;
	const size_t n = whole ? ref->size : HEAD;
	int rc;

	rc = read_ref(op->engine, ref, n, &l->record, err);
	if (rc)
		return rc;
	return whole ? message_decode(buf_slice(&l->record), m, err) : message_decode_head(buf_slice(&l->record), m, err);
}

/* The column of the error is text: other bytes become '?'. */
static void
make_text(struct buf *b)
{
	for (size_t i = 0, n; i < b->n; i += n) {
		n = utf8_length(b->p + i, b->p + b->n);
		if (n == 0 || b->p[i] == '\0') {
			b->p[i] = '?';
			n = 1;
		}
	}
}

/* Leaves the beginning of the last error. */
static void
cut_error(struct buf *b)
{
	const struct slice error = attempts_error(buf_slice(b));

	memmove(b->p, error.p, error.n);
	b->n = error.n < LANELOOK_ERROR ? error.n : LANELOOK_ERROR;
}

static int
describe_death(struct lanelook *l, const struct op *op, struct items_row *out, struct slu_err *err)
{
	static const char *const reasons[] = {
		[DEAD_NOT] = "none",
		[DEAD_MAX_ATTEMPTS] = "max_attempts",
		[DEAD_EXPIRED] = "expired",
		[DEAD_REJECTED] = "rejected",
	};
	const struct op_row *const row = &op->rows[0];
	const int rc = row->error.pin ? read_ref(op->engine, &row->error, row->error.size, &l->error, err) : 0;

	out->reason = reasons[row->reason];
	out->died = row->due;
	if (row->error.pin && !rc) {
		cut_error(&l->error);
		make_text(&l->error);
		out->error = buf_slice(&l->error);
	}
	return rc;
}

/* A message that waits for its time, or behind another of its key, is ready: that it may be delivered now is no
 * change of the message. */
static const char *
status_of(const struct op_row *row)
{
	static const char *const statuses[MSG_STATES] = {
		[MSG_READY] = "ready",
		[MSG_DELAYED] = "ready",
		[MSG_LEASED] = "leased",
		[MSG_HELD] = "ready",
		[MSG_DEAD] = "dead",
		[MSG_DAMAGED] = "damaged",
	};

	return row->state == MSG_LEASED && row->flags & MSG_EXTENDED ? "processing" : statuses[row->state];
}

int
lanelook_row(struct lanelook *l, uint32_t i, struct items_row *out, struct slu_err *err)
{
	const struct op *const op = &l->ops[i];
	const struct op_row *const row = &op->rows[0];
	struct message m;
	int rc = op->rc;

	if (rc)
		return slu_fail(err, (enum slu_code)rc, "%s", op->err.text);
	rc = read_record(l, op, &m, err);
	if (rc)
		return rc;
	*out = (struct items_row){
		.id = row->id,
		.space = m.space,
		.queue = m.queue,
		.status = status_of(row),
		.prio = row->prio,
		.due = row->state == MSG_DEAD ? m.due > m.accepted ? m.due : m.accepted : row->due,
		.until = row->state == MSG_LEASED ? row->until : 0,
		.accepted = m.accepted,
	};
	out->has_payload = !row->payload.pin && m.payload_size <= LANELOOK_PAYLOAD;
	if (out->has_payload)
		out->payload = m.payload;
	return row->state == MSG_DEAD ? describe_death(l, op, out, err) : 0;
}
