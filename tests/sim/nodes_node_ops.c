/*
 * nodes_node_ops.c - ops of clients in a node.
 */
#include "nodes_node.h"

#include "torture/history.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Payloads ---- */

enum {
	PAYLOAD = 3000 /* bytes of a large one: it is in the store, and not in its record */
};

static bool
is_large(uint64_t name)
{
	return name % 5 == 0;
}

/* The name, and bytes that follow from it. */
static void
make_payload(uint64_t name, char out[static PAYLOAD])
{
	memset(out, 'a' + (int)(name / 5 % 26), PAYLOAD);
	snprintf(out, PAYLOAD, "%" PRIu64, name);
}

/* Puts the large payloads of a push. Waits for the store. */
static int
store_payloads(struct node_op *o)
{
	struct engine *const e = broker_engine_of(node.broker, broker_routes(node.broker), o->op.space, o->op.queue);
	char payload[PAYLOAD];
	struct slu_err err;
	int rc = 0;

	for (uint32_t i = 0; i < o->op.n_puts && !rc; i++) {
		struct message *const m = &o->puts[i].m;
		const uint64_t name = strtoull(o->names[i], NULL, 10);

		if (!is_large(name))
			continue;
		make_payload(name, payload);
		m->payload = (struct slice){ payload, PAYLOAD };
		rc = payload_store(e, m, &o->stored[i], &err);
	}
	return rc;
}

static void
close_payloads(struct node_op *o)
{
	EACH(i, o->stored) {
		payload_close(o->stored[i]);
		o->stored[i] = NULL;
	}
}

/* Returns the name in a payload of its own; 0 if its bytes are not those that were put. May wait for the store. */
static uint64_t
read_payload(struct node_op *o, const struct op_row *row)
{
	char found[PAYLOAD], expected[PAYLOAD];
	uint64_t name;

	if (!row->payload.pin || row->payload.size != PAYLOAD ||
	    engine_read(o->op.engine, &row->payload, 0, PAYLOAD, found, true, NULL))
		return 0;
	name = strtoull(found, NULL, 10);
	make_payload(name, expected);
	return memcmp(found, expected, PAYLOAD) == 0 ? name : 0;
}

/* ---- Answers ---- */

static void
tell_row(struct node_op *o, const struct op_row *row, struct told_row *out)
{
	static const uint8_t states[MSG_STATES] = {
		[MSG_READY] = STATE_READY,
		[MSG_DELAYED] = STATE_DELAYED,
		[MSG_LEASED] = STATE_LEASED,
		[MSG_HELD] = STATE_HELD,
		[MSG_DEAD] = STATE_DEAD,
		[MSG_DAMAGED] = STATE_DAMAGED,
	};
	char record[512];
	struct message m = { 0 };
	char text[64];

	*out = (struct told_row){
		.id = row->id,
		.token = row->token,
		.granted = row->claimed,
		.until = row->until,
		.attempts = row->attempts,
		.failures = row->failures,
		.max_attempts = row->max_attempts,
		.state = states[row->state],
		.damaged = true,
	};
	if (!row->record.pin || row->record.size > sizeof record)
		return;
	if (engine_read(o->op.engine, &row->record, 0, row->record.size, record, true, NULL) ||
	    message_decode((struct slice){ record, row->record.size }, &m, NULL))
		return;
	snprintf(text, sizeof text, "%.*s", (int)m.payload.n, m.payload.p);
	out->name = m.file ? read_payload(o, row) : strtoull(text, NULL, 10);
	snprintf(text, sizeof text, "%.*s", (int)m.key.n, m.key.p);
	out->key = m.key.n ? (uint32_t)strtoul(text + 1, NULL, 10) : 0;
	out->due = m.due > m.accepted ? m.due : m.accepted;
	out->large = m.file;
	out->damaged = m.file && !out->name;
}

static void
tell_items(const struct node_op *o, struct told_reply *r)
{
	r->n = op_parts(&o->op);
	for (uint32_t i = 0; i < o->op.n_puts; i++)
		r->rows[i].id = o->puts[i].m.id;
	for (uint32_t i = 0; i < o->op.n_items; i++)
		r->rows[i] = (struct told_row){
			.rc = o->items[i].rc, .until = o->items[i].until, .died = o->items[i].died
		};
}

static void
tell_counts(const struct node_op *o, struct told_reply *r)
{
	static const enum msg_state order[] = { MSG_READY, MSG_DELAYED, MSG_LEASED, MSG_HELD, MSG_DEAD, MSG_DAMAGED };

	for (unsigned i = 0; i < COUNT(order) && o->op.n_queues; i++) {
		r->counts[i] = o->stats.count[order[i]];
		r->counts[STATE_TOTAL] += r->counts[i];
	}
}

/* Whether the store did not give a payload: it is out of reach, or the shard is lost meanwhile. */
static bool
lacks_payload(const struct node_op *o)
{
	for (uint32_t i = 0; i < o->op.n_rows; i++)
		if (o->told[i].large && o->told[i].damaged)
			return true;
	return false;
}

/* Reading a payload may wait for the store, and then the world asks again: so all rows come before the reply. */
static void
done(struct op *op)
{
	struct node_op *const o = op->owner;
	struct node_told *const t = &node.channel->told;
	struct told_reply *r;

	for (uint32_t i = 0; op->rc == 0 && i < op->n_rows; i++)
		tell_row(o, &op->rows[i], &o->told[i]);
	close_payloads(o);
	r = &t->replies[t->n_replies++];
	CHECK(t->n_replies <= NODES_REPLIES);
	*r = (struct told_reply){ .serial = o->serial, .rc = op->rc };
	if (op->rc == 0 && o->verb == DO_CLAIM && lacks_payload(o)) {
		r->rc = SLU_EUNKNOWN; /* the connection ends in the middle of the answer */
	} else if (op->rc == 0 && o->verb == DO_LOOK) {
		r->cursor = op->cursor;
		for (uint32_t i = 0; i < op->n_rows; i++)
			t->list[t->n_list++] = o->told[i];
		CHECK(t->n_list <= NODES_LIST);
	} else if (op->rc == 0 && o->verb == DO_CLAIM) {
		r->n = op->n_rows;
		memcpy(r->rows, o->told, r->n * sizeof *r->rows);
	} else if (op->rc == 0 && o->verb == DO_COUNT) {
		tell_counts(o, r);
	} else if (op->rc == 0) {
		tell_items(o, r);
	}
	if (node.start.trace && op->rc)
		printf("#   op %u: %d %s\n", o->serial, op->rc, op->err.text);
	op_unpin(op);
	o->serial = 0;
}

static void
fill_puts(struct node_op *o, const struct sim_ask_op *a)
{
	o->op.puts = o->puts;
	o->op.n_puts = a->n;
	for (uint32_t i = 0; i < a->n; i++) {
		struct op_put *const put = &o->puts[i];

		*put = (struct op_put){ .delay = a->items[i].time, .m.max_attempts = 3 };
		snprintf(o->names[i], sizeof o->names[i], "%" PRIu64, a->items[i].name);
		put->m.payload = slice_of(o->names[i]);
		put->m.payload_size = put->m.payload.n;
		snprintf(o->keys[i], sizeof o->keys[i], "k%u", a->items[i].key);
		snprintf(o->idems[i], sizeof o->idems[i], "i%" PRIu64, a->items[i].name);
		if (a->items[i].key)
			put->m.key = slice_of(o->keys[i]);
		if (a->items[i].idem)
			put->m.idem = slice_of(o->idems[i]);
	}
}

static void
fill_items(struct node_op *o, const struct sim_ask_op *a)
{
	o->op.items = o->items;
	o->op.n_items = a->n;
	for (uint32_t i = 0; i < a->n; i++)
		o->items[i] = (struct op_item){
			.id = a->items[i].id,
			.token = a->items[i].token,
			.time = a->verb == DO_NACK && !a->items[i].time ? LEDGER_BY_POLICY : a->items[i].time,
			.dead = a->items[i].dead,
		};
}

static void
fill_op(struct node_op *o, const struct sim_ask_op *a)
{
	static const enum op_verb verbs[] = {
		[DO_PUSH] = OP_ENQUEUE,
		[DO_CLAIM] = OP_CLAIM,
		[DO_ACK] = OP_ACK,
		[DO_NACK] = OP_NACK,
		[DO_EXTEND] = OP_EXTEND,
		[DO_LOOK] = OP_LIST,
		[DO_COUNT] = OP_STATS,
	};

	snprintf(o->queue, sizeof o->queue, "q%u", a->queue);
	op_init(&o->op, verbs[a->verb], SLICE("n"), slice_of(o->queue), done, o);
	o->serial = a->serial;
	o->verb = a->verb;
	o->op.wait = a->wait;
	o->op.claim.lease = a->lease;
	o->op.rows = o->rows;
	o->op.max_rows = a->verb == DO_LOOK ? COUNT(o->rows) : a->n;
	o->op.cursor = a->cursor;
	o->op.queues = &o->stats;
	o->op.max_queues = 1;
	if (a->verb == DO_PUSH)
		fill_puts(o, a);
	else if (a->verb >= DO_ACK && a->verb <= DO_EXTEND)
		fill_items(o, a);
}

static void
refuse(uint32_t serial, int rc)
{
	struct node_told *const t = &node.channel->told;

	t->replies[t->n_replies++] = (struct told_reply){ .serial = serial, .rc = rc };
}

void
node_post(const struct sim_ask_op *a)
{
	struct node_op *o = node.ops;
	int rc;

	while (o < node.ops + NODE_OPS && o->serial)
		o++;
	if (!node.broker || o == node.ops + NODE_OPS) {
		refuse(a->serial, SLU_EDOWN);
		return;
	}
	fill_op(o, a);
	rc = store_payloads(o);
	if (!rc)
		rc = broker_post(node.broker, &o->op);
	if (!rc)
		return;
	close_payloads(o);
	refuse(o->serial, rc);
	o->serial = 0;
}
