/*
 * lockd_consume.c - /v1/queue/dequeue and subscribe: messages as they become claimable.
 *
 *      claim ──> rows ──> parts ──> the kernel has them ──> dequeue: the end
 *        ^                                     │
 *        └────────── subscribe ────────────────┘
 *
 *  D1  What the kernel was not given whole when the client went is returned: to its place,
 *      with no attempt counted, claimable at once. So does the newest delivery of a
 *      subscription, if the client goes within a second of it and has neither extended nor
 *      settled it: once (ledger_spare), so that a message that kills its consumers still dies.
 *  D2  A subscription has at most `page_size` deliveries that nobody has settled, or as
 *      many as the setting says if that is more: the broker counts them (op.flow).
 *  D3  The head of an answer is held back until there is a message; without one there is
 *      409 waiting after wait_seconds, and not earlier.
 *  D4  A subscription ends when its client goes, when the server stops, and with
 *      wait_seconds -1 when the queue is empty: then with the last boundary.
 */
#include "api/lockd.h"

#include "api/limits.h"
#include "api/lockd_parts.h"
#include "api/lockd_txn.h"
#include "api/stream.h"
#include "api/taker.h"
#include "base/limit.h"
#include "base/log.h"

enum {
	PAGE_MAX = 64
};

struct state {
	/* As sent. */
	struct slice namespace, queue, owner, txn_id;
	int64_t visibility_timeout_seconds, wait_seconds, page_size;

	bool subscribes;
	bool counted; /* in api.consumers */
	uint32_t page;
	struct lockd_parts parts;
	struct lockd_xid txn; /* zeros: none was brought */
	struct lockd_txn_lock txn_lock;
	struct op_row *newest; /* the last delivery before those under way, id 0: none. The rows of
				* the op follow it in memory */
	struct rows rows;
	struct stream stream;
};

static const struct json_field fields[] = {
	JSON_FIELD(text, struct state, namespace),
	JSON_FIELD(text, struct state, queue),
	JSON_FIELD(text, struct state, owner),
	JSON_FIELD(text, struct state, txn_id),
	JSON_FIELD(i64, struct state, visibility_timeout_seconds),
	JSON_FIELD(i64, struct state, wait_seconds),
	JSON_FIELD(i64, struct state, page_size),
};

/* --- the end ---------------------------------------------------------------------- */

/* On the shard's thread: the last that is heard of it. */
static void
returned(struct op *op)
{
	ask_free(op->owner);
}

/* The newest delivery is given up, too: the row before `from`. */
static void
give_up_newest(struct ask *a, const struct state *s, uint32_t from)
{
	if (!s->subscribes || s->newest[from].id == 0)
		return;
	a->op.rows = s->newest;
	a->op.n_rows++;
	a->op.spare = true;
}

/* D1 */
static void
ended(struct call *c, bool sent)
{
	struct ask *const a = c->user;
	const struct state *const s = a->state;
	const bool whole = sent && s->stream.whole;
	const uint32_t from = whole ? a->op.n_rows : s->stream.sent;

	if (s->counted)
		atomic_fetch_sub(&a->api->consumers, 1);
	if (!whole)
		give_up_newest(a, s, from);
	if (from < a->op.n_rows) {
		log_debug(a->api->log, "deliveries not received",
			  F_U64("messages", a->op.n_rows - from), F_CALL(c));
		a->op.done = returned;
		if (broker_return(a->api->broker, &a->op, from) == 0)
			return;
		op_unpin(&a->op); /* stopped: the leases end by themselves */
	}
	ask_free(a);
}

/* --- deliveries ------------------------------------------------------------------- */

static void
write_row(struct json_out *w, const struct op_row *row, const struct message *m,
	  struct slice error)
{
	struct state *const s = CONTAINER(CONTAINER(w, struct rows, w), struct state, rows);
	struct call *const c = s->rows.ask->call;
	const bool first = !s->stream.begun && c->out.n == 0;
	char uuid[LOCKD_UUID_TEXT];

	(void)error; /* claims have none */
	if (first)
		lockd_correlate(c, lockd_parts_correlation(row, m, uuid));
	lockd_parts_write(&s->parts, &c->out, first, s->rows.op->n_rows > 1 ? (int64_t)s->rows.at : -1,
			  row, m);
}

static void
finish(struct rows *r)
{
	const struct state *const s = CONTAINER(r, struct state, rows);

	lockd_parts_end(&s->parts, &r->ask->call->out);
}

static slu_time
wait_of(const struct state *s)
{
	if (s->wait_seconds < 0)
		return 0;
	return s->wait_seconds == 0 ? SLU_NEVER : lockd_span(s->wait_seconds, SLU_NEVER);
}

static void claim(struct ask *a, slu_time wait);

/* All that was granted is in the kernel; or none of it could be read. */
static void
drained(struct stream *stream)
{
	struct ask *const a = stream->rows->ask;
	const struct state *const s = a->state;

	op_unpin(&a->op);
	if (a->op.n_rows > 0)
		*s->newest = a->op.rows[a->op.n_rows - 1];
	a->op.n_rows = 0;
	stream->sent = 0;
	if (stream->begun)
		claim(a, s->wait_seconds < 0 ? 0 : SLU_NEVER);
	else
		claim(a, wait_of(s));
}

static void
deliver(struct ask *a, struct state *s)
{
	if (s->rows.ask) {
		stream_next(&s->stream);
		return;
	}
	s->rows = (struct rows){ .ask = a, .op = &a->op, .write = write_row };
	json_out_init(&s->rows.w, &a->call->out);
	s->stream = (struct stream){
		.rows = &s->rows,
		.finish = finish,
		.wants_client = true,
		.type = s->parts.type,
		.raw = true,
		.stays = s->subscribes,
		.drained = drained,
	};
	stream_start(&s->stream);
}

/* D3 */
static void
refuse_empty(struct ask *a, const struct state *s)
{
	struct lockd_error e = { .code = LOCKD_WAITING };

	if (atomic_load(&a->api->draining))
		e.code = LOCKD_DRAINING;
	if (e.code == LOCKD_DRAINING || s->wait_seconds == 0)
		e.retry_after = API_RETRY_AFTER_SECONDS;
	else if (s->wait_seconds > 0)
		e.retry_after = s->wait_seconds;
	lockd_refuse(a->call, &e);
}

/* Of a subscription that has begun. Whoever broke off learns no more. */
static void
end_stream(struct ask *a, struct state *s)
{
	a->op.n_rows = 0;
	if (a->op.rc || a->gone)
		call_break(a->call);
	else
		stream_finish(&s->stream);
}

static void
txn_taken(struct ask *a)
{
	struct state *const s = a->state;

	if (s->txn_lock.op.rc)
		lockd_txn_refuse(a, &s->txn_lock); /* and the message goes back */
	else
		deliver(a, s);
}

static void
answer(struct ask *a)
{
	struct state *const s = a->state;
	const bool begun = s->stream.begun;

	if (!a->op.rc && a->op.n_rows > 0 && !a->gone) {
		if (lockd_txn_is_brought(&s->txn))
			lockd_txn_take(a, &s->txn_lock, s->namespace, &s->txn, a->op.rows[0].until - clock_wall(a->api->clock), txn_taken);
		else
			deliver(a, s);
	} else if (begun && (a->op.rc || a->op.n_rows == 0)) {
		end_stream(a, s);
	} else if (begun) {
		call_break(a->call); /* gone: what was granted goes back */
	} else if (a->op.rc) {
		a->op.n_rows = 0;
		ask_refuse_op(a, &a->op);
	} else if (a->op.n_rows == 0) {
		refuse_empty(a, s);
	} else {
		call_answer(a->call, 200, NULL, NULL); /* the same */
	}
}

static void
claim(struct ask *a, slu_time wait)
{
	const struct state *const s = a->state;
	struct op_row *const rows = a->op.rows;
	const uint64_t flow = a->op.flow;

	ask_op(a, &a->op, OP_CLAIM, s->namespace, s->queue);
	a->op.wait = wait;
	a->op.stateful = s->parts.stateful;
	a->op.taker = s->owner;
	a->op.lease = lockd_span(s->visibility_timeout_seconds, LOCKD_VISIBILITY_MAX);
	a->op.max_bytes = API_PAYLOAD_BYTES;
	a->op.rows = rows;
	a->op.max_rows = s->page;
	a->op.flow = flow;
	a->op.flow_max = s->page > atomic_load(&a->api->unsettled) ? s->page
								   : atomic_load(&a->api->unsettled);
	ask_run(a, answer);
}

/* --- the call --------------------------------------------------------------------- */

/* False: it was refused. */
static bool
decode(struct ask *a, struct state *s)
{
	struct slu_err err = { 0 };

	if (!lockd_body(a, fields, sizeof fields / sizeof fields[0], s) ||
	    !lockd_space(a, &s->namespace) || !lockd_queue(a, &s->queue, LOCKD_MISSING_QUEUE) ||
	    !lockd_txn(a, s->txn_id, &s->txn) || !lockd_txn_check(a, &s->txn))
		return false;
	if (s->subscribes && s->txn_id.n > 0) {
		lockd_refuse_code(a->call, LOCKD_TXN_CONFLICT, "a stream has many leases, and a transaction one: leave txn_id out");
		return false;
	}
	s->owner = lockd_trim(s->owner);
	if (s->owner.n == 0)
		s->owner = lockd_query(a, "owner");
	if (s->owner.n == 0) {
		lockd_refuse_code(a->call, LOCKD_MISSING_OWNER, NULL);
		return false;
	}
	s->owner = taker_of(a, s->owner);
	s->page = s->page_size <= 1 ? 1 : s->page_size < PAGE_MAX ? (uint32_t)s->page_size
								  : PAGE_MAX;
	if (s->parts.stateful || s->txn_id.n > 0)
		s->page = 1;
	s->newest = arena_array(&a->memory, s->page + 1, sizeof *s->newest);
	a->op.rows = s->newest ? s->newest + 1 : NULL;
	if (s->newest)
		s->newest->id = 0;
	if (a->op.rows && lockd_parts_init(&s->parts, &s->txn, &err) == 0)
		return true;
	ask_refuse(a, a->op.rows ? (int)err.code : SLU_ENOMEM, err.text);
	return false;
}

/* False: there are too many already. */
static bool
count_in(struct ask *a, struct state *s)
{
	const uint32_t most = atomic_load(&a->api->max_consumers);
	struct slu_err err;

	if (wait_of(s) == 0 && !s->subscribes)
		return true;
	s->counted = true;
	if (atomic_fetch_add(&a->api->consumers, 1) < most || most == 0)
		return true;
	(void)limit_fail(&err, SLU_EBUSY, LIMIT_CONSUMERS, 0,
			 "%u consumers wait for messages already", most);
	ask_refuse_err(a, &err, -1);
	return false;
}

static void
consume(struct call *c, struct api *api, bool subscribes, bool stateful)
{
	struct ask *const a = ask_new(api, c);
	struct state *const s = a ? ask_state(a, sizeof *s) : NULL;

	if (!s)
		return;
	s->subscribes = subscribes;
	s->parts.stateful = stateful;
	a->op.flow = 0;
	a->op.n_rows = 0;
	if (!decode(a, s))
		return;
	c->ended = ended;
	if (!count_in(a, s))
		return;
	c->gone = ask_gone;
	a->op.flow = subscribes ? atomic_fetch_add(&api->flows, 1) + 1 : 0;
	claim(a, wait_of(s));
}

void
lockd_dequeue(struct call *c, void *api)
{
	consume(c, api, false, false);
}

void
lockd_dequeue_with_state(struct call *c, void *api)
{
	consume(c, api, false, true);
}

void
lockd_subscribe(struct call *c, void *api)
{
	consume(c, api, true, false);
}

void
lockd_subscribe_with_state(struct call *c, void *api)
{
	consume(c, api, true, true);
}
