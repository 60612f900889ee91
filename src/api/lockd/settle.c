/*
 * settle.c - /v1/queue/ack, nack and extend: settles leased messages.
 *
 *      {"queue":"orders","message_id":"0190...","lease_id":"...","fencing_token":7}
 *      {"acked":true,"correlation_id":"0190..."}
 *
 * The current lease is required: id, token and, if sent, transaction and meta_etag must belong
 * to one delivery. If they do not, or the shard refuses, the handler looks up the message to
 * answer with the right code.
 */
#include "api/lockd/lockd.h"

#include "api/limits.h"
#include "api/lockd/txn.h"
#include "api/rows.h"
#include "base/id.h"
#include "base/utf8.h"

#include <strings.h>

struct state {
	/* As sent. */
	struct slice namespace, queue, message_id, lease_id, txn_id, meta_etag, intent, last_error;
	struct slice state_lease_id;
	int64_t fencing_token, delay_seconds, extend_by_seconds;

	struct op_item item;
	uint64_t token; /* of the lease, even if other values are wrong */
	struct lockd_xid txn;
	struct lockd_txn_lock txn_lock;
	unsigned flags; /* of the lease: enum lockd_lease_flags */
	struct lockd_meta meta;
	bool has_meta;
	bool is_wrong;         /* the values do not belong to one delivery */
	enum lockd_code wrong; /* the code for that */

	struct op ops[2]; /* OP_GET of the message, if needed, and the verb */
	struct op_row row;
	struct rows rows;
	char correlation[CORRELATION_LONGEST];
	size_t n_correlation;
};

/* --- decode ------------------------------------------------------------------- */

static void
read_error(struct json *r, const struct json_field *f, void *place)
{
	(void)f;
	*(struct slice *)place = json_peek(r) == JSON_STRING ? json_text(r) : json_skip(r);
}

static const struct json_field fields[] = {
	JSON_FIELDS(text, struct state, namespace, queue, message_id, lease_id, txn_id),
	JSON_FIELD(i64, struct state, fencing_token),
	JSON_FIELDS(text, struct state, meta_etag, state_lease_id),
	JSON_FIELD(i64, struct state, delay_seconds),
	JSON_FIELD(text, struct state, intent),
	JSON_FIELD(i64, struct state, extend_by_seconds),
	JSON_ROW("last_error", read_error, struct state, last_error),
};

static bool
require(struct apicall *a, struct slice value, const char *detail)
{
	if (value.n == 0)
		lockd_refuse_code(call_of(a->x), LOCKD_MISSING_FIELDS, detail);
	return value.n > 0;
}

static bool
is_word(struct slice s, const char *word)
{
	return s.n == strlen(word) && strncasecmp(s.p, word, s.n) == 0;
}

/* Returns false if it refused the call. */
static bool
decode_nack(struct apicall *a, struct state *s)
{
	s->item.defer = is_word(s->intent, "defer");
	s->item.text = utf8_cut(s->last_error, API_ERROR_MAX);
	s->item.time = lockd_span(s->delay_seconds, API_DELAY_MAX);
	if (s->intent.n > 0 && !s->item.defer && !is_word(s->intent, "failure"))
		lockd_refuse_code(call_of(a->x), LOCKD_INVALID_NACK_INTENT, NULL);
	else if (s->item.defer && s->last_error.n > 0)
		lockd_refuse_code(call_of(a->x), LOCKD_INVALID_NACK_LAST_ERROR, NULL);
	else
		return true;
	return false;
}

static void
find_wrong(struct state *s, enum lockd_code code, bool is_wrong)
{
	if (s->is_wrong || !is_wrong)
		return;
	s->is_wrong = true;
	s->wrong = code;
}

/* Checks that lease, token, transaction and etag belong to one delivery, in the order of codes
 * that clients expect. */
static void
check_lease(struct state *s, const struct lockd_xid *txn)
{
	const struct lockd_xid none = { { 0 } };
	unsigned flags;

	s->token = lockd_lease_token(s->lease_id);
	s->item.token = lockd_lease_parse(s->lease_id, txn, &s->flags);
	s->has_meta = lockd_meta_parse(s->meta_etag, &s->meta);
	find_wrong(s, LOCKD_LEASE_REQUIRED,
		   s->token == LOCKD_NO_TOKEN ||
			   (lockd_xid_is_zero(txn) && s->item.token == LOCKD_NO_TOKEN));
	find_wrong(s, LOCKD_FENCING_MISMATCH, (uint64_t)s->fencing_token != s->token);
	if (!lockd_xid_is_zero(txn) && s->item.token == LOCKD_NO_TOKEN)
		find_wrong(s, lockd_lease_parse(s->lease_id, &none, &flags) == LOCKD_NO_TOKEN ? LOCKD_LEASE_REQUIRED : LOCKD_TXN_MISMATCH,
			   true);
	find_wrong(s, LOCKD_CAS_MISMATCH,
		   s->meta_etag.n > 0 && (!s->has_meta || s->meta.token != s->token));
}

/* Returns false if it refused the call. */
static bool
decode(struct apicall *a, struct state *s, enum op_verb verb)
{
	if (!lockd_space(a, &s->namespace) ||
	    !lockd_queue(a, &s->queue, LOCKD_MISSING_FIELDS) ||
	    !require(a, s->message_id, "message_id is required") ||
	    !require(a, s->lease_id, "lease_id is required") ||
	    (verb != OP_ACK && !require(a, s->meta_etag, "meta_etag is required")) ||
	    !lockd_txn(a, s->txn_id, &s->txn))
		return false;
	if (id_parse(s->message_id, &s->item.id, NULL))
		return lockd_reject(a, LOCKD_NOT_FOUND, NULL);
	check_lease(s, &s->txn);
	if (verb == OP_EXTEND)
		s->item.time = lockd_span(s->extend_by_seconds > 0 ? s->extend_by_seconds
								   : s->meta.seconds,
					  API_LEASE_MAX);
	return verb != OP_NACK || decode_nack(a, s);
}

/* --- refused: which case is it? ------------------------------------------------- */

static enum lockd_code
why(const struct apicall *a, const struct state *s)
{
	const struct op_row *const row = &s->row;

	if (row->state == MSG_DEAD || row->state == MSG_DAMAGED)
		return LOCKD_NOT_FOUND;
	if (row->state == MSG_LEASED && row->token != s->token)
		return s->token == LOCKD_NO_TOKEN ? LOCKD_LEASE_REQUIRED : LOCKD_MESSAGE_LEASE;
	if (row->state == MSG_LEASED)
		return s->is_wrong ? s->wrong : LOCKD_LEASE_EXPIRED;
	if (s->token == LOCKD_NO_TOKEN)
		return LOCKD_LEASE_REQUIRED;
	if (s->has_meta && s->meta.token == s->token && s->meta.until > clock_wall(a->api->clock))
		return LOCKD_LEASE_REQUIRED; /* the holder released it early */
	return LOCKD_LEASE_EXPIRED;
}

static void
explain(struct apicall *a)
{
	struct state *const s = a->state;

	op_unpin(&a->op);
	if (a->op.rc == SLU_ENOTFOUND)
		lockd_refuse_code(call_of(a->x), LOCKD_NOT_FOUND, NULL);
	else if (a->op.rc)
		apicall_refuse_op(a, &a->op);
	else
		lockd_refuse_code(call_of(a->x), why(a, s), NULL);
}

static void
look(struct apicall *a, struct state *s, struct op *op)
{
	apicall_op(a, op, OP_GET, s->namespace, s->queue);
	op->id = s->item.id;
	op->rows = &s->row;
	op->max_rows = 1;
}

static void
find_out_why(struct apicall *a)
{
	look(a, a->state, &a->op);
	a->ops = &a->op;
	a->n_ops = 1;
	apicall_run(a, explain);
}

/* --- done ----------------------------------------------------------------------- */

/* The meta_etag now: extend has changed the end of the lease, nack has ended it. */
static void
write_meta(struct json_out *w, const struct state *s)
{
	const struct lockd_meta now = {
		.token = s->token,
		.until = s->item.until,
		.seconds = s->item.time / SLU_SEC,
	};
	char text[LOCKD_ETAG_TEXT];

	json_out_str(w, "meta_etag", slice_of(lockd_meta_text(&now, text)));
}

static void
write_extended(const struct apicall *a, struct json_out *w, struct state *s)
{
	if (s->item.time == 0) /* the default of the queue was used */
		s->item.time = (s->item.until - clock_wall(a->api->clock) + SLU_SEC / 2) /
			       SLU_SEC * SLU_SEC;
	json_out_i64(w, "lease_expires_at_unix", s->item.until / SLU_SEC);
	json_out_i64(w, "visibility_timeout_seconds",
		     s->item.time < SLU_SEC ? 1 : s->item.time / SLU_SEC);
	write_meta(w, s);
	if (s->state_lease_id.n > 0)
		json_out_i64(w, "state_lease_expires_at_unix", s->item.until / SLU_SEC);
}

static void
write_answer(struct apicall *a)
{
	struct state *const s = a->state;
	char uuid[ID_UUID_TEXT];
	const struct slice correlation =
		s->n_correlation ? (struct slice){ s->correlation, s->n_correlation }
				 : slice_of(id_to_uuid(s->item.id, uuid));
	struct json_out w;

	buf_clear(&a->x->out);
	apicall_object(a, &w);
	if (a->ops[a->n_ops - 1].verb == OP_ACK)
		json_out_bool(&w, "acked", true);
	else if (a->ops[a->n_ops - 1].verb == OP_EXTEND)
		write_extended(a, &w, s);
	else
		json_out_bool(&w, "requeued", true);
	if (a->ops[a->n_ops - 1].verb == OP_NACK)
		write_meta(&w, s);
	json_out_str(&w, "correlation_id", correlation);
	json_out_close(&w);
	lockd_correlate(call_of(a->x), correlation);
	apicall_reply(a, 200);
}

/* The verb succeeded. The transaction of the lease is extended or dropped with the lease. */
static void
say(struct apicall *a)
{
	struct state *const s = a->state;

	if (!lockd_txn_is_brought(&s->txn))
		write_answer(a);
	else if (a->ops[a->n_ops - 1].verb == OP_EXTEND)
		lockd_txn_keep(a, &s->txn_lock, &s->txn,
			       s->item.until - clock_wall(a->api->clock), write_answer);
	else
		lockd_txn_drop(a, &s->txn_lock, &s->txn, write_answer);
}

static void
take_correlation(struct json_out *w, const struct op_row *row, const struct message *m,
		 struct slice error)
{
	struct state *const s = CONTAINER(CONTAINER(w, struct rows, w), struct state, rows);

	(void)row;
	(void)error;
	if (m->correlation.n == 0 || m->correlation.n > sizeof s->correlation)
		return;
	memcpy(s->correlation, m->correlation.p, m->correlation.n);
	s->n_correlation = m->correlation.n;
}

/* The settle is done also if the record cannot be read. */
static void
correlated(struct apicall *a, int rc)
{
	(void)rc;
	say(a);
}

static void
settled(struct apicall *a)
{
	struct state *const s = a->state;
	const struct op *const op = &a->ops[a->n_ops - 1];
	const int rc = op->rc ? op->rc : s->item.rc;

	if (rc)
		op_unpin(a->ops);
	if (rc == SLU_ELEASE) {
		find_out_why(a);
	} else if (op->rc) {
		apicall_refuse_op(a, op);
	} else if (rc == SLU_ENOTFOUND) {
		lockd_refuse_code(call_of(a->x), LOCKD_NOT_FOUND, NULL);
	} else if (rc) {
		apicall_refuse(a, rc, NULL);
	} else if (a->n_ops == 1) {
		say(a);
	} else {
		s->rows = (struct rows){
			.apicall = a,
			.op = a->ops,
			.write = take_correlation,
			.done = correlated,
		};
		rows_start(&s->rows);
	}
}

static void
settle(struct apicall *a)
{
	const enum op_verb verb = (enum op_verb)a->arg;
	struct state *const s = a->state;
	bool reads;

	if (!decode(a, s, verb))
		return;
	if (s->is_wrong) {
		find_out_why(a);
		return;
	}
	reads = s->flags & LOCKD_CORRELATED;
	look(a, s, &s->ops[0]);
	apicall_op(a, &s->ops[1], verb, s->namespace, s->queue);
	s->ops[1].items = &s->item;
	s->ops[1].n_items = 1;
	a->ops = reads ? s->ops : s->ops + 1;
	a->n_ops = reads ? 2 : 1;
	apicall_run(a, settled);
}

const struct handler lockd_ack = { settle, sizeof(struct state), FIELD_ROWS(fields), .arg = OP_ACK };
const struct handler lockd_nack = { settle, sizeof(struct state), FIELD_ROWS(fields), .arg = OP_NACK };
const struct handler lockd_extend = { settle, sizeof(struct state), FIELD_ROWS(fields), .arg = OP_EXTEND };
