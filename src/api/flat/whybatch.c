#include "api/flat/whybatch.h"

#include "api/flat/view.h"
#include "base/id.h"
#include "base/json/json.h"
#include "base/json/json_table.h"
#include "engine/engine.h"

#include <inttypes.h>
#include <stdio.h>

static void
end(struct apicall *a, int rc)
{
	struct whybatch *const w = a->part;

	op_unpin(&a->op);
	if (rc)
		w->id = 0;
	w->then(a);
}

/* Both records are small, or the payload is left out: files and long payloads are not read. */
static int
read_message(struct apicall *a, bool may_block, struct message *m)
{
	const struct whybatch *const w = a->part;
	const size_t most = MSGBATCH_HEAD + MSGBATCH_CALLBACK_MAX + (64 << 10), n = w->row.record.size < most ? w->row.record.size : most;
	char *const room = arena_alloc(&a->memory, n);
	const int rc = room ? engine_read(a->op.engine, &w->row.record, 0, n, room, may_block, NULL) : SLU_ENOMEM;

	if (rc)
		return rc;
	return w->row.record.size <= most ? message_decode((struct slice){ room, n }, m, NULL)
					  : message_decode_head((struct slice){ room, n }, m, NULL);
}

/* ---- The batch ---- */

static int
read_batch(struct apicall *a, bool may_block)
{
	struct whybatch *const w = a->part;
	struct message m;
	int rc = read_message(a, may_block, &m);

	if (!rc && m.terms.batch != MSGBATCH_SELF)
		rc = SLU_ENOTFOUND; /* an event */
	if (!rc)
		rc = msgbatch_decode(m.payload, &w->b, NULL);
	if (!rc && w->role[0] == 'c' && w->b.callback != w->of)
		rc = SLU_ENOTFOUND; /* attributes that a client has made */
	return rc;
}

static void
got_batch(struct apicall *a)
{
	if (a->op.rc)
		end(a, a->op.rc);
	else
		apicall_try(a, read_batch, end);
}

static void
load(struct apicall *a, struct slice queue, uint64_t id, void (*then)(struct apicall *a))
{
	struct whybatch *const w = a->part;

	apicall_op(a, &a->op, OP_GET, w->space, queue);
	a->op.id = id;
	a->op.rows = &w->row;
	a->op.max_rows = 1;
	apicall_run(a, then);
}

/* ---- The message ---- */

struct told {
	struct slice batch, outcome;
};

/* The id in the attributes of a callback: msgbatch_attributes. */
static uint64_t
batch_of_callback(struct slice attributes)
{
	static const struct json_field fields[] = {
		JSON_FIELDS(text, struct told, batch, outcome),
	};
	struct told told = { 0 };
	uint64_t id;
	struct json r;

	json_init(&r, attributes, JSON_DEPTH);
	json_fields(&r, fields, COUNT(fields), JSON_LENIENT, &told);
	if (json_end(&r, NULL) || !told.outcome.n || id_parse(told.batch, &id, NULL))
		return 0;
	return id;
}

static int
read_links(struct apicall *a, bool may_block)
{
	struct whybatch *const w = a->part;
	struct message m;
	const int rc = read_message(a, may_block, &m);

	if (rc)
		return rc;
	w->role = m.terms.batch > MSGBATCH_SELF ? "member" : "callback";
	w->id = m.terms.batch > MSGBATCH_SELF ? m.terms.batch : batch_of_callback(m.attributes);
	return w->id ? 0 : SLU_ENOTFOUND;
}

static void
linked(struct apicall *a, int rc)
{
	const struct whybatch *const w = a->part;

	if (rc) {
		end(a, rc);
		return;
	}
	op_unpin(&a->op);
	load(a, SLICE(MSGBATCH_QUEUE), w->id, got_batch);
}

static void
got_message(struct apicall *a)
{
	if (a->op.rc)
		end(a, a->op.rc);
	else
		apicall_try(a, read_links, linked);
}

void
whybatch_find(struct apicall *a, struct whybatch *w, struct slice space, struct slice queue, uint64_t id,
	      void (*then)(struct apicall *a))
{
	*w = (struct whybatch){ .space = space, .of = id, .then = then };
	a->part = w;
	if (!slice_eq(queue, SLICE(MSGBATCH_QUEUE))) {
		load(a, queue, id, got_message);
		return;
	}
	w->id = id;
	w->role = "batch";
	load(a, queue, id, got_batch);
}

/* ---- Words ---- */

static uint32_t
pending(const struct msgbatch *b)
{
	const uint32_t ended = b->done + b->failed;

	return b->members > ended ? b->members - ended : 0;
}

const char *
whybatch_text(const struct whybatch *w, char out[static WHYBATCH_TEXT])
{
	const struct msgbatch *const b = &w->b;

	if (b->outcome != MSGBATCH_OPEN)
		(void)snprintf(out, WHYBATCH_TEXT, "the batch has ended: %s", msgbatch_status(b));
	else if (!b->closed)
		(void)snprintf(out, WHYBATCH_TEXT, "the batch is open: it calls back when it is closed and its members have ended");
	else
		(void)snprintf(out, WHYBATCH_TEXT, "the batch waits for %" PRIu32 " of %" PRIu32 " members: %" PRIu32 " done, %" PRIu32 " failed",
			       pending(b), b->members, b->done, b->failed);
	return out;
}

void
whybatch_write(struct json_out *w, const struct whybatch *it)
{
	if (!it->id)
		return;
	json_out_object(w, "batch");
	flat_view_id(w, it->id);
	json_out_str(w, "role", slice_of(it->role));
	json_out_str(w, "status", slice_of(msgbatch_status(&it->b)));
	json_out_u64(w, "members", it->b.members);
	json_out_u64(w, "done", it->b.done);
	json_out_u64(w, "failed", it->b.failed);
	json_out_u64(w, "pending", pending(&it->b));
	json_out_close(w);
}
