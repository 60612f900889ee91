/*
 * consume.c - /v1/queue/dequeue and subscribe: messages as they become claimable.
 *
 *      claim ──> rows ──> parts ──> the kernel has them ──> dequeue: the end
 *        ^                                     │
 *        └────────── subscribe ────────────────┘
 *
 *  CONSUME-1  A delivery that the kernel did not have whole when the client went returns to its
 *             place: no attempt is counted, and it is claimable at once. A subscriber gets its
 *             messages unasked, so a delivery that it may have begun to read, and its newest
 *             whole one, return only if it goes within a second and has neither extended nor
 *             settled them, and only once (ledger_spare): a message that kills its consumers
 *             still dies.
 *  CONSUME-2  A subscription has at most `page_size` unsettled deliveries, or the number of the
 *             setting if it is larger: the broker counts them (op.claim.stream).
 *  CONSUME-3  The head of an answer waits for a message. Without a message the answer is 409
 *             waiting, after wait_seconds and not earlier.
 *  CONSUME-4  A subscription ends when its client goes, when the server stops, when the lease of
 *             one of its deliveries expires (LANE-11 of broker/lane.h), and, with wait_seconds
 *             -1, when the queue is empty: then with the last boundary.
 *  CONSUME-5  A subscription that waits outlives the owner of its shard (PEER-5): it claims anew, as a
 *             stream without unsettled deliveries. Grants whose answer was lost run out.
 */
#include "api/lockd/lockd.h"

#include "api/limits.h"
#include "api/lockd/parts.h"
#include "api/lockd/txn.h"
#include "api/pause.h"
#include "api/stream.h"
#include "api/holder.h"
#include "base/limit.h"

enum {
	PAGE_MAX = 64
};

struct state {
	/* As sent. */
	struct slice namespace, queue, owner, txn_id, kinds;
	int64_t visibility_timeout_seconds, wait_seconds, page_size;

	bool subscribes;
	bool counted; /* in api.consumers */
	uint32_t page;
	unsigned pauses; /* api/pause.h */
	struct lockd_parts parts;
	struct lockd_xid txn; /* zeros: the request has none */
	struct lockd_txn_lock txn_lock;
	struct op_row *newest; /* the last delivery before those under way, id 0: none. The rows of
				* the op follow it in memory */
	struct rows rows;
	struct stream stream;
};

static const struct json_field fields[] = {
	JSON_FIELDS(text, struct state, namespace, queue, owner, txn_id, kinds),
	JSON_FIELDS(i64, struct state, visibility_timeout_seconds, wait_seconds, page_size),
};

/* --- the end ---------------------------------------------------------------------- */

/* Gives up the deliveries from row `from` on, and the newest one before them. */
static void
give_up(struct apicall *a, const struct state *s, uint32_t from)
{
	if (!s->subscribes)
		return;
	a->op.claim.spare = s->stream.cut && from < a->op.n_rows;
	if (s->newest[from].id == 0)
		return;
	a->op.rows = s->newest;
	a->op.n_rows++;
	a->op.claim.spare++;
}

/* CONSUME-1 */
static void
ended(struct exchange *x, bool sent)
{
	struct apicall *const a = x->user;
	const struct state *const s = a->state;
	const bool whole = sent && s->stream.whole;
	const uint32_t from = whole ? a->op.n_rows : s->stream.sent;

	if (s->counted)
		atomic_fetch_sub(&a->api->consumers, 1);
	if (!whole)
		give_up(a, s, from);
	if (from < a->op.n_rows)
		apicall_return(a, from, "deliveries not received");
	else
		apicall_free(a);
}

/* --- deliveries ------------------------------------------------------------------- */

static void
write_row(struct json_out *w, const struct op_row *row, const struct message *m,
	  struct slice error)
{
	struct state *const s = CONTAINER(CONTAINER(w, struct rows, w), struct state, rows);
	struct call *const c = call_of(s->rows.apicall->x);
	const bool first = !s->stream.begun && c->x.out.n == 0;
	char uuid[LOCKD_UUID_TEXT];

	(void)error; /* claims have none */
	if (first)
		lockd_correlate(c, lockd_parts_correlation(row, m, uuid));
	lockd_parts_write(&s->parts, &c->x.out, first, s->rows.op->n_rows > 1 ? (int64_t)s->rows.at : -1,
			  row, m);
}

static void
finish(struct rows *r)
{
	const struct state *const s = CONTAINER(r, struct state, rows);

	lockd_parts_end(&s->parts, &r->apicall->x->out);
}

static slu_time
wait_of(const struct state *s)
{
	if (s->wait_seconds < 0)
		return 0;
	return s->wait_seconds == 0 ? SLU_NEVER : lockd_span(s->wait_seconds, SLU_NEVER);
}

static void claim(struct apicall *a, slu_time wait);

/* All that was granted is in the kernel; or none of it could be read. */
static void
drained(struct stream *stream)
{
	struct apicall *const a = stream->rows->apicall;
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
deliver(struct apicall *a, struct state *s)
{
	if (s->rows.apicall) {
		stream_next(&s->stream);
		return;
	}
	s->rows = (struct rows){ .apicall = a, .op = &a->op, .write = write_row };
	json_out_init(&s->rows.w, &a->x->out);
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

/* CONSUME-3 */
static void
refuse_empty(struct apicall *a, const struct state *s)
{
	struct lockd_error e = { .code = LOCKD_WAITING };

	if (atomic_load(&a->api->draining))
		e.code = LOCKD_DRAINING;
	if (e.code == LOCKD_DRAINING || s->wait_seconds == 0)
		e.retry_after = API_RETRY_AFTER_SECONDS;
	else if (s->wait_seconds > 0)
		e.retry_after = s->wait_seconds;
	lockd_refuse(call_of(a->x), &e);
}

/* Ends a subscription that has begun. A client that broke off gets no answer. */
static void
end_stream(struct apicall *a, struct state *s)
{
	a->op.n_rows = 0;
	if (a->op.rc || a->gone)
		exchange_break(a->x);
	else
		stream_finish(&s->stream);
}

/* CONSUME-5. A number of its own: leases that were lost with an answer do not end the stream (LANE-11). */
static void
claim_anew(struct apicall *a)
{
	struct state *const s = a->state;

	if (pause_is_in_vain(a)) {
		end_stream(a, s);
		return;
	}
	a->op.claim.stream = atomic_fetch_add(&a->api->credits, 1) + 1;
	claim(a, SLU_NEVER);
}

/* Returns false if the subscription ends. */
static bool
outlives(struct apicall *a, struct state *s)
{
	if (!s->subscribes || s->wait_seconds < 0)
		return false;
	a->op.n_rows = 0;
	return pause_stream(a, &s->pauses, claim_anew);
}

static void
txn_taken(struct apicall *a)
{
	struct state *const s = a->state;

	if (s->txn_lock.op.rc)
		lockd_txn_refuse(a, &s->txn_lock); /* the message returns to the queue */
	else
		deliver(a, s);
}

static void
answer(struct apicall *a)
{
	struct state *const s = a->state;
	const bool begun = s->stream.begun;

	if (!a->op.rc && a->op.n_rows > 0 && !a->gone) {
		s->pauses = 0;
		if (lockd_txn_is_brought(&s->txn))
			lockd_txn_take(a, &s->txn_lock, &s->txn, a->op.rows[0].until - clock_wall(a->api->clock), txn_taken);
		else
			deliver(a, s);
	} else if (begun && (a->op.rc || a->op.n_rows == 0)) {
		if (!outlives(a, s))
			end_stream(a, s);
	} else if (begun) {
		exchange_break(a->x); /* the client is gone: the messages return to the queue */
	} else if (a->op.rc) {
		a->op.n_rows = 0;
		apicall_refuse_op(a, &a->op);
	} else if (a->op.n_rows == 0) {
		refuse_empty(a, s);
	} else {
		call_answer(call_of(a->x), 200, NULL, NULL); /* the same */
	}
}

static void
claim(struct apicall *a, slu_time wait)
{
	const struct state *const s = a->state;
	struct op_row *const rows = a->op.rows;
	const uint64_t stream_no = a->op.claim.stream;

	apicall_op(a, &a->op, OP_CLAIM, s->namespace, s->queue);
	a->op.wait = wait;
	a->op.claim.stateful = s->parts.stateful;
	a->op.claim.holder = holder_with_version(a, s->namespace, s->owner);
	a->op.claim.lease = lockd_span(s->visibility_timeout_seconds, LOCKD_VISIBILITY_MAX);
	a->op.claim.max_bytes = API_PAYLOAD_BYTES;
	a->op.rows = rows;
	a->op.max_rows = s->page;
	a->op.claim.stream = stream_no;
	a->op.claim.credit = s->page > atomic_load(&a->api->unsettled) ? s->page
								       : atomic_load(&a->api->unsettled);
	apicall_run(a, answer);
}

/* --- the call --------------------------------------------------------------------- */

/* Returns false if it refused the call. */
static bool
decode(struct apicall *a, struct state *s)
{
	struct slu_err err = { 0 };

	if (!lockd_space(a, &s->namespace) || !lockd_queue(a, &s->queue, LOCKD_MISSING_QUEUE) ||
	    !lockd_txn(a, s->txn_id, &s->txn) || !lockd_txn_check(a, &s->txn))
		return false;
	a->op.claim.kinds = (struct slice){ 0 };
	if (s->kinds.n && value_kinds(&a->memory, s->kinds, &a->op.claim.kinds, &err))
		return lockd_reject(a, LOCKD_INVALID_BODY, err.text);
	if (s->subscribes && s->txn_id.n > 0)
		return lockd_reject(a, LOCKD_TXN_CONFLICT, "a stream has many leases, and a transaction one: leave txn_id out");
	s->owner = lockd_trim(s->owner);
	if (s->owner.n == 0)
		s->owner = lockd_query(a, "owner");
	if (s->owner.n == 0)
		return lockd_reject(a, LOCKD_MISSING_OWNER, NULL);
	s->owner = holder_of(a, s->owner);
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
	apicall_refuse(a, a->op.rows ? (int)err.code : SLU_ENOMEM, err.text);
	return false;
}

/* Counts the consumer. Returns false if it refused the call: there are too many. */
static bool
count_in(struct apicall *a, struct state *s)
{
	const uint32_t most = atomic_load(&a->api->max_consumers);
	struct slu_err err;

	if (wait_of(s) == 0 && !s->subscribes)
		return true;
	s->counted = true;
	if (atomic_fetch_add(&a->api->consumers, 1) < most || most == 0)
		return true;
	(void)limit_fail(&err, SLU_EBUSY, LIMIT_CONSUMERS, 0,
			 "too many consumers: %u wait already", most);
	apicall_refuse_err(a, &err, -1);
	return false;
}

/* handler.arg */
enum {
	SUBSCRIBES = 1,
	STATEFUL = 2
};

static void
consume(struct apicall *a)
{
	struct state *const s = a->state;

	s->subscribes = a->arg & SUBSCRIBES;
	s->parts.stateful = a->arg & STATEFUL;
	a->op.claim.stream = 0;
	a->op.n_rows = 0;
	if (!decode(a, s))
		return;
	a->x->ended = ended;
	if (!count_in(a, s))
		return;
	a->x->gone = apicall_gone;
	a->op.claim.stream = s->subscribes ? atomic_fetch_add(&a->api->credits, 1) + 1 : 0;
	claim(a, wait_of(s));
}

#define CONSUME consume, sizeof(struct state), FIELD_ROWS(fields)

const struct handler lockd_dequeue = { CONSUME, .arg = 0 };
const struct handler lockd_dequeue_with_state = { CONSUME, .arg = STATEFUL };
const struct handler lockd_subscribe = { CONSUME, .arg = SUBSCRIBES };
const struct handler lockd_subscribe_with_state = { CONSUME, .arg = SUBSCRIBES | STATEFUL };
