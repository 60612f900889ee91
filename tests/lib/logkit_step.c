/*
 * logkit_step.c - one batch of random ops, and what each answer means.
 */
#include "logkit_private.h"

#include "engine/payload.h"

#include <stdio.h>

/* An op and all that it needs. */
struct kit_op {
	struct op op;
	struct op_put puts[KIT_EACH];
	struct kit_texts texts[KIT_EACH];
	struct op_item items[KIT_EACH];
	struct kit_held held[KIT_EACH];
	char words[KIT_EACH][64];
	struct op_row rows[KIT_EACH];
	uint64_t known[KIT_EACH]; /* puts: the message that has the key already, or 0 */
	struct payload *payloads[KIT_EACH];
	struct kit_lock_op lock;
};

static struct kit_op ops[KIT_OPS];

static void
start(struct kit_op *o, enum op_verb verb, int queue)
{
	op_init(&o->op, verb, KIT_SPACE,
		queue < 0 ? (struct slice){ 0 } : slice_of(kit_queues[queue]), NULL, NULL);
	if (queue >= 0)
		o->op.as = kit_spelling(queue);
}

/* ---- Enqueue ---- */

/* A message that used its idempotency key, for all we know; or 0. */
static uint64_t
find_known(struct logkit *k)
{
	for (int i = 0; i < 10; i++) {
		const uint64_t id = 1 + kit_dice(k, k->next_id);
		const struct kit_msg *m = kit_msg(k, id);

		if (m->idem && !m->forgot && (m->status == KIT_IN || m->status == KIT_OUT))
			return id;
	}
	return 0;
}

static void
make_put(struct logkit *k, struct kit_op *o, uint32_t i)
{
	const uint64_t id = k->next_id++;
	struct kit_msg *m = kit_msg(k, id);
	struct op_put *put = &o->puts[i];
	const bool again = kit_dice(k, 20) == 0;

	*m = (struct kit_msg){
		.status = KIT_MAYBE_IN,
		.queue = (uint8_t)kit_dice(k, KIT_QUEUES),
		.key = (uint8_t)(kit_dice(k, 2) ? 1 + kit_dice(k, KIT_KEYS) : 0),
		.idem = kit_dice(k, 3) == 0,
		.keep = kit_dice(k, 4) == 0,
	};
	o->known[i] = again ? find_known(k) : 0;
	*put = (struct op_put){ 0 };
	kit_describe(k, id, &put->m, &o->texts[i]);
	if (o->known[i]) { /* the first one's queue and key, else its own */
		const struct kit_msg *first = kit_msg(k, o->known[i]);

		m->status = KIT_NEVER;
		m->queue = first->queue;
		put->m.queue = slice_of(kit_queues[m->queue]);
		snprintf(o->texts[i].idem, sizeof o->texts[i].idem, "once-%" PRIu64,
			 o->known[i]);
		put->m.idem = slice_of(o->texts[i].idem);
	} else if (!m->key && kit_dice(k, 4) == 0) {
		put->delay = (slu_time)kit_dice(k, 20) * SLU_SEC;
	} else if (!m->key && kit_dice(k, 10) == 0) {
		put->ttl = SLU_SEC + (slu_time)kit_dice(k, 60) * SLU_SEC;
	}
	put->as = kit_spelling(m->queue);
}

static void
make_enqueue(struct logkit *k, struct kit_op *o)
{
	const uint32_t n = 1 + (uint32_t)kit_dice(k, KIT_EACH);

	start(o, OP_ENQUEUE, -1);
	o->op.puts = o->puts;
	o->op.n_puts = n;
	for (uint32_t i = 0; i < n; i++)
		make_put(k, o, i);
	if (k->more.segment_size < KIT_PAYLOAD && kit_dice(k, 15) == 0)
		o->puts[n - 1].m.payload.n = KIT_PAYLOAD; /* no segment holds it */
}

/* Those that have no file are not sent. */
static void
cut_puts(struct logkit *k, struct kit_op *o, uint32_t from)
{
	for (uint32_t i = from; i < o->op.n_puts; i++)
		if (!o->known[i])
			*kit_msg(k, o->puts[i].m.id) = (struct kit_msg){ .status = KIT_NEVER };
	o->op.n_puts = from;
}

static void
store_payloads(struct logkit *k, struct kit_op *o)
{
	memset(o->payloads, 0, sizeof o->payloads);
	for (uint32_t i = 0; i < o->op.n_puts; i++) {
		struct message *m = &o->puts[i].m;
		int rc;

		if (!payload_is_large(k->e, m->payload.n) || m->payload.n == KIT_PAYLOAD)
			continue;
		rc = payload_store(k->e, m, &o->payloads[i], &k->err);
		k->files += rc == 0;
		if (rc) {
			CHECK(rc == SLU_EFULL || kit_is_down(k, rc));
			cut_puts(k, o, i);
		}
	}
}

static void
close_payloads(struct kit_op *o)
{
	for (uint32_t i = 0; o->op.verb == OP_ENQUEUE && i < KIT_EACH; i++)
		payload_close(o->payloads[i]);
}

static void
end_enqueue(struct logkit *k, struct kit_op *o)
{
	if (o->op.rc)
		CHECK(o->op.rc == SLU_ETOOBIG || o->op.rc == SLU_EFULL ||
		      kit_is_down(k, o->op.rc));
	for (uint32_t i = 0; i < o->op.n_puts; i++) {
		const struct op_put *put = &o->puts[i];
		struct kit_msg *m;

		if (o->known[i] && !o->op.rc) {
			CHECK(put->existed);
			CHECK_EQ(o->known[i], put->m.id);
		}
		if (o->known[i])
			continue;
		m = kit_msg(k, put->m.id);
		m->status = o->op.rc ? KIT_NEVER : KIT_IN;
		m->number = put->m.number;
		m->idem = m->idem && !o->op.rc;
		k->accepted += !o->op.rc;
	}
}

/* ---- Claim ---- */

static void
make_claim(struct logkit *k, struct kit_op *o)
{
	start(o, OP_CLAIM, (int)kit_dice(k, KIT_QUEUES));
	o->op.rows = o->rows;
	o->op.max_rows = 1 + (uint32_t)kit_dice(k, KIT_EACH);
	o->op.claim.lease = (slu_time)(5 + kit_dice(k, 100)) * SLU_SEC;
	o->op.claim.stateful = !k->no_locks;
	o->op.claim.holder = slice_of(KIT_HOLDER);
}

/* I6 */
static void
check_key(struct logkit *k, const struct op_row *row)
{
	const struct kit_msg *m = kit_msg(k, row->id);

	while (k->low < k->next_id && (kit_msg(k, k->low)->status == KIT_OUT ||
				       kit_msg(k, k->low)->status == KIT_NEVER))
		k->low++;
	for (uint64_t id = k->low; m->key && id < k->next_id; id++) {
		const struct kit_msg *o = kit_msg(k, id);

		if (o->status == KIT_IN && o->queue == m->queue && o->key == m->key &&
		    o->number < row->number)
			test_fail(__FILE__, __LINE__, "%" PRIu64 " before %" PRIu64,
				  row->id, id);
	}
}

static void
end_claim(struct logkit *k, struct kit_op *o)
{
	CHECK(o->op.rc == 0 || kit_is_down(k, o->op.rc));
	for (uint32_t i = 0; i < o->op.n_rows; i++) {
		const struct op_row *row = &o->rows[i];
		const struct kit_msg *m = kit_msg(k, row->id);

		if (m->status != KIT_IN && m->status != KIT_OUT)
			test_fail(__FILE__, __LINE__, "%" PRIu64 " was handed out, status %u",
				  row->id, m->status);
		if (row->token <= k->top_token)
			test_fail(__FILE__, __LINE__, "token %" PRIu64 " after %" PRIu64,
				  row->token, k->top_token);
		k->top_token = row->token;
		check_key(k, row);
		kit_check_record(k, row);
		if (o->op.claim.stateful)
			kit_check_state(k, row);
		k->claims++;
		if (k->n_held < KIT_HELD)
			k->held[k->n_held++] = (struct kit_held){
				row->id, row->token, row->until, false
			};
	}
}

/* ---- Settle ---- */

static void
make_item(struct logkit *k, struct kit_op *o, uint32_t i)
{
	const uint32_t at = (uint32_t)kit_dice(k, k->n_held);
	const struct kit_held held = k->held[at];
	struct kit_msg *m = kit_msg(k, held.id);
	struct op_item *it = &o->items[i];

	k->held[at] = k->held[--k->n_held];
	o->held[i] = held;
	*it = (struct op_item){ .id = held.id, .token = held.token };
	if (o->op.verb == OP_ACK && m->status == KIT_IN)
		m->status = KIT_MAYBE_OUT;
	if (o->op.verb == OP_ACK && m->keep) {
		kit_text(o->words[i], 'r', held.id);
		it->text = slice_of(o->words[i]);
	}
	if (o->op.verb == OP_NACK) {
		it->defer = kit_dice(k, 3) == 0;
		it->dead = !m->key && kit_dice(k, 4) == 0;
		it->time = kit_dice(k, 2) ? LEDGER_BY_POLICY
					  : (slu_time)kit_dice(k, 5) * SLU_SEC;
		if (kit_dice(k, 2)) {
			kit_text(o->words[i], 'e', held.id);
			it->text = slice_of(o->words[i]);
			m->maybe = true;
		}
	}
}

static void
make_settle(struct logkit *k, struct kit_op *o)
{
	static const enum op_verb verbs[] = { OP_ACK, OP_ACK, OP_ACK, OP_NACK, OP_EXTEND };
	const uint32_t n = 1 + (uint32_t)kit_dice(k, KIT_EACH);

	start(o, verbs[kit_dice(k, COUNT(verbs))], -1);
	o->op.items = o->items;
	for (o->op.n_items = 0; o->op.n_items < n && k->n_held; o->op.n_items++)
		make_item(k, o, o->op.n_items);
}

static void
end_ack(struct logkit *k, const struct op_item *it)
{
	struct kit_msg *m = kit_msg(k, it->id);

	if (it->rc == 0) {
		m->status = KIT_OUT;
		m->result = it->text.n > 0;
		k->settled++;
	} else if (m->status == KIT_MAYBE_OUT) {
		m->status = KIT_IN;
	}
}

static void
end_settle(struct logkit *k, struct kit_op *o)
{
	for (uint32_t i = 0; i < o->op.n_items; i++) {
		const struct op_item *it = &o->items[i];
		const struct kit_held *held = &o->held[i];
		struct kit_msg *m = kit_msg(k, it->id);

		if (!held->doubtful && k->now < held->until && !kit_is_down(k, it->rc))
			CHECK_EQ(0, it->rc, "a lease that is held");
		if (it->rc)
			CHECK(it->rc == SLU_ELEASE || it->rc == SLU_ENOTFOUND ||
			      kit_is_down(k, it->rc));
		if (o->op.verb == OP_ACK)
			end_ack(k, it);
		if (o->op.verb == OP_NACK && it->rc == 0 && m->staged)
			m->state = m->staged;
		if (o->op.verb == OP_NACK && it->rc == 0 && it->text.n) {
			m->error = true;
			m->maybe = false;
		}
		if (o->op.verb == OP_EXTEND && it->rc == 0 && k->n_held < KIT_HELD)
			k->held[k->n_held++] = (struct kit_held){
				it->id, it->token, it->until, false
			};
	}
}

/* ---- Operators ---- */

static void
make_other(struct logkit *k, struct kit_op *o)
{
	const uint64_t id = 1 + kit_dice(k, k->next_id);
	const int queue = (int)kit_dice(k, KIT_QUEUES);

	if (kit_dice(k, 4) == 0) {
		start(o, OP_POLICY_SET, queue);
		o->op.policy = policy_default;
		o->op.policy.lease = (slu_time)(1 + kit_dice(k, 1000)) * SLU_SEC;
		k->policy[queue] = -1;
		return;
	}
	start(o, kit_dice(k, 2) ? OP_REDRIVE : OP_DELETE, -1);
	o->items[0] = (struct op_item){ .id = id };
	o->op.items = o->items;
	o->op.n_items = 1;
	if (o->op.verb == OP_DELETE && kit_msg(k, id)->status == KIT_IN)
		kit_msg(k, id)->status = KIT_MAYBE_OUT;
}

static void
end_other(struct logkit *k, struct kit_op *o)
{
	CHECK(o->op.rc == 0 || kit_is_down(k, o->op.rc));
	if (o->op.verb == OP_DELETE)
		end_ack(k, &o->items[0]);
	if (o->op.verb != OP_POLICY_SET || o->op.rc)
		return;
	for (int i = 0; i < KIT_QUEUES; i++)
		if (slice_eq(o->op.queue, slice_of(kit_queues[i])))
			k->policy[i] = o->op.policy.lease;
}

/* On its own: what it took away is found by a scan. */
static int
purge(struct logkit *k)
{
	const int queue = (int)kit_dice(k, KIT_QUEUES);
	int rc;

	for (uint64_t id = 1; id < k->next_id; id++)
		if (kit_msg(k, id)->status == KIT_IN && kit_msg(k, id)->queue == queue)
			kit_msg(k, id)->status = KIT_MAYBE_OUT;
	start(&ops[0], OP_PURGE, queue);
	rc = logkit_run(k, &ops[0].op);
	if (rc)
		return rc;
	CHECK(ops[0].op.rc == 0 || ops[0].op.rc == SLU_EBUSY || kit_is_down(k, ops[0].op.rc));
	logkit_verify(k);
	return 0;
}

/* ---- A batch ---- */

static bool
is_lock(const struct kit_op *o)
{
	return o->op.verb >= OP_ACQUIRE;
}

/* used: lock keys of this batch. */
static void
make_op(struct logkit *k, struct kit_op *o, unsigned *used)
{
	const uint64_t what = kit_dice(k, 100);

	if (!k->no_locks && kit_dice(k, 6) == 0 && kit_make_lock(k, &o->op, &o->lock, used))
		return;
	if (!k->no_locks && kit_dice(k, 12) == 0 && kit_make_state(k, &o->op, &o->lock))
		return;
	if (what < k->enqueues || k->next_id == 1)
		make_enqueue(k, o);
	else if (what < 92 && k->n_held < KIT_HELD / 2)
		make_claim(k, o);
	else if (what < 97)
		make_settle(k, o);
	else
		make_other(k, o);
}

static void
end_op(struct logkit *k, struct kit_op *o)
{
	switch (o->op.verb) {
	case OP_ENQUEUE:
		end_enqueue(k, o);
		break;
	case OP_CLAIM:
		break; /* when all else is known */
	case OP_ACK:
	case OP_NACK:
	case OP_EXTEND:
		end_settle(k, o);
		break;
	default:
		if (!is_lock(o))
			end_other(k, o);
	}
}

/* In the order in which they ran: numbers rise. */
static void
end_lock(struct logkit *k, struct kit_op *o)
{
	if (o->lock.key >= 0)
		kit_end_lock(k, &o->op, &o->lock);
	else if (o->op.rc == 0)
		kit_msg(k, o->lock.id)->staged = o->op.lock.etag;
	if (o->lock.key < 0 && o->op.rc == 0)
		k->top_token = o->op.lock.etag;
}

static void
pass_time(struct logkit *k)
{
	const slu_time by = kit_dice(k, 3) ? 0 : (slu_time)kit_dice(k, 2000) * SLU_MS;

	k->now += by;
	if (k->disk)
		fakeclock_advance(&k->clock, by);
}

int
logkit_step(struct logkit *k)
{
	const uint32_t n = 1 + (uint32_t)kit_dice(k, KIT_OPS);
	unsigned used = 0;
	int rc;

	pass_time(k);
	if (!k->no_purge && kit_dice(k, 300) == 0)
		return purge(k);
	for (uint32_t i = 0; i < n; i++) {
		make_op(k, &ops[i], &used);
		if (ops[i].op.verb == OP_ENQUEUE)
			store_payloads(k, &ops[i]);
		if (is_lock(&ops[i]) && ops[i].lock.key >= 0)
			kit_doubt_lock(k, &ops[i].op, &ops[i].lock);
		ops[i].op.route.next = i + 1 < n ? &ops[i + 1].op : NULL;
	}
	rc = logkit_run(k, &ops[0].op);
	for (uint32_t i = 0; i < n && !rc; i++)
		end_op(k, &ops[i]);
	for (uint32_t i = 0; i < n; i++) {
		if (ops[i].op.verb == OP_CLAIM && !rc)
			end_claim(k, &ops[i]);
		if (is_lock(&ops[i]) && !rc)
			end_lock(k, &ops[i]);
		if (is_lock(&ops[i]))
			payload_close(ops[i].lock.payload);
		op_unpin(&ops[i].op);
		close_payloads(&ops[i]);
	}
	if (rc != SLU_EUNKNOWN)
		kit_settle_locks(k, rc == 0);
	return rc;
}
