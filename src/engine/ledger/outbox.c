/*
 * outbox.c - the outbox of a shard: messages of other shards become entries. engine/outbox.h
 */
#include "engine/ledger/ledgerengine_private.h"

#include "base/hash.h"
#include "base/limit.h"
#include "base/mem.h"
#include "base/time.h"
#include "engine/quota.h"

#include <assert.h>

void
ledgerengine_draw_source(struct ledgerengine *k)
{
	const uint64_t random[2] = { hash_next_random(&k->random), hash_next_random(&k->random) };

	memcpy(k->source, random, sizeof k->source);
	memcpy(k->source, INTAKE_OUTBOX, sizeof INTAKE_OUTBOX - 1);
}

static int
home_of(struct ledgerengine *k, const struct message *m, bool line_always, struct engine_home *out, struct slu_err *err)
{
	*out = (struct engine_home){ .line_always = line_always, .here = true };
	return k->home ? k->home(k->home_arg, m->space, m->queue, out, err) : 0;
}

static int
find_home(struct ledgerengine *k, struct op_put *put, struct slu_err *err)
{
	struct engine_home home;
	const int rc = home_of(k, &put->m, false, &home, err);

	put->pending = !rc && !home.here;
	put->entry = 0;
	if (put->pending && put->m.file)
		return slu_fail(err, SLU_ETOGETHER, "queue %.*s is on another shard, and the payload is too large to go there with this step",
				(int)put->m.queue.n, put->m.queue.p);
	return rc;
}

int
ledgerengine_find_homes(struct ledgerengine *k, struct op *op, struct slu_err *err)
{
	int rc = 0;

	op_name_puts(op);
	for (uint32_t i = 0; i < op->n_puts && !rc; i++) {
		op->failed = i;
		rc = find_home(k, &op->puts[i], err);
	}
	return rc;
}

/* The record of the promised message, with the times that were asked for. The caller frees it. */
static char *
encode(const struct ledgerengine *k, const struct op_put *put, size_t *n)
{
	struct message m = put->m;
	char *record;

	m.number = 0;
	m.accepted = 0;
	if (!m.due && put->delay)
		m.due = time_add(k->now, put->delay);
	m.expires = put->deadline ? put->deadline : put->ttl ? time_add(k->now, put->ttl)
							     : 0;
	*n = message_size(&m);
	record = mem_alloc(*n);
	if (record)
		message_encode(&m, record);
	return record;
}

/* OUTBOX-5 */
static int
check_bound(const struct ledgerengine *k, uint32_t queue, const char *line, struct slu_err *err)
{
	const uint32_t set = k->quota ? quota_get(&k->quota->outbox) : 0;
	const uint32_t most = set ? set : OUTBOX_STANDARD;
	struct ledger_queue_view v;

	ledger_queue_get(k->ledger, queue, &v);
	if (v.depth < most)
		return 0;
	return limit_fail(err, SLU_EOUTBOX, LIMIT_OUTBOX, 0, "%u messages are on their way to shard %s; limits.outbox allows %u",
			  v.depth, line, most);
}

/* settles: the entry may use the room for settling, and the bound does not count for it (OUTBOX-8). */
static int
accept(struct ledgerengine *k, struct op_put *entry, const char *line, bool settles, struct slu_err *err)
{
	const struct ledger_offer offer = { .id = entry->m.id, .prio = entry->m.prio, .owed = true };
	struct change c;
	uint32_t queue;
	int rc;

	rc = message_check(&entry->m, err);
	if (!rc)
		rc = ledger_queue_open(k->ledger, entry->m.space, entry->m.queue, &queue);
	if (rc)
		return slu_fail(err, (enum slu_code)rc, "outbox to shard %s: %s", line, slu_err_row(rc)->text);
	ledger_queue_use(k->ledger, queue, k->now);
	rc = settles ? 0 : check_bound(k, queue, line, err);
	if (!rc && !settles)
		rc = ledgerengine_limit_put(k, queue, &offer, &entry->m, err);
	if (!rc)
		rc = ledger_accept(k->ledger, queue, &offer, k->now, &c);
	c.settles = settles;
	return rc ? rc : ledgerengine_put_carry_out(k, entry, &c, err);
}

static int
promise_at(struct ledgerengine *k, struct op_put *put, const struct engine_home *home, struct slice record, bool settles,
	   struct slu_err *err)
{
	char source[OUTBOX_SOURCE_TEXT];
	struct op_put entry = {
		.m = {
			.id = home->id,
			.space = SLICE(OUTBOX_SPACE),
			.queue = slice_of(home->line),
			.correlation = { source, sizeof source },
			.payload = record,
			.payload_size = record.n,
		},
	};
	int rc;

	outbox_source_text(k->source, source);
	rc = accept(k, &entry, home->line, settles, err);
	if (rc)
		return rc;
	put->m.number = entry.m.number;
	put->entry = home->id;
	put->line = home->lane;
	return 0;
}

static int
promise(struct ledgerengine *k, struct op_put *put, const struct engine_home *home, bool settles, struct slu_err *err)
{
	struct slice record;
	char *bytes;
	int rc;

	bytes = encode(k, put, &record.n);
	if (!bytes)
		return slu_fail(err, SLU_ENOMEM, "no memory for an entry of the outbox");
	record.p = bytes;
	rc = promise_at(k, put, home, record, settles, err);
	mem_free(bytes);
	return rc;
}

int
ledgerengine_promise(struct ledgerengine *k, struct op_put *put, struct slu_err *err)
{
	struct engine_home home;
	int rc = home_of(k, &put->m, false, &home, err);

	if (!rc && home.here) /* its queue has moved here since ledgerengine_find_homes */
		rc = slu_fail(err, SLU_EBUSY, "queue %.*s is being moved; nothing was done", (int)put->m.queue.n, put->m.queue.p);
	return rc ? rc : promise(k, put, &home, false, err);
}

int
ledgerengine_promise_event(struct ledgerengine *k, struct op_put *put, struct slu_err *err)
{
	struct engine_home home;
	const int rc = home_of(k, &put->m, true, &home, err);

	return rc ? rc : promise(k, put, &home, true, err);
}

int
ledgerengine_promise_letter(struct ledgerengine *k, struct op_put *put, struct slu_err *err)
{
	struct engine_home home;
	int rc = home_of(k, &put->m, true, &home, err);

	if (!rc)
		rc = message_check(&put->m, err);
	return rc ? rc : promise(k, put, &home, false, err);
}
