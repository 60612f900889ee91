/*
 * memory.c - the memory engine.
 *
 * A record, an error text, a result or a document is a chunk with a reference count: the engine
 * holds a reference while the ledger names the chunk (where = its slot + 1), and every pin holds
 * one. So a connection can still write a message that was acked meanwhile.
 */
#include "engine/memory/memory.h"

#include "base/list.h"
#include "base/mem.h"
#include "engine/ledger/ledgerengine.h"

#include <inttypes.h>

struct chunk {
	_Atomic uint32_t refs;
	uint32_t size;
	bool has_idem;    /* it is the record of a message with an idempotency key */
	struct list node; /* of memory.named; used by the shard's thread */
	char bytes[];
};

struct memory {
	struct engine engine;
	struct ledgerengine ledgerengine;
	struct slab slots; /* of struct chunk *: the chunks that the ledger names */
	struct list named; /* the same chunks */
	struct list keys;  /* of struct memory_known: idempotency keys of messages that are gone */
	uint32_t n_keys;
	uint64_t bytes; /* of the named chunks and the keys */
};

/* The ledger remembers a key by its hash; a move to another shard needs the text. */
struct memory_known {
	struct list node;
	uint64_t id;
	uint32_t queue;
	uint32_t n;
	char text[];
};

enum {
	KEYS_SLACK = 64 /* texts of keys that the ledger has forgotten */
};

static struct memory *
of_engine(struct engine *e)
{
	return CONTAINER(e, struct memory, engine);
}

static struct memory *
of_ledgerengine(struct ledgerengine *k)
{
	return CONTAINER(k, struct memory, ledgerengine);
}

/* ---- Chunks ---- */

static void
chunk_unref(struct chunk *p)
{
	if (atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) == 1)
		mem_free(p);
}

static struct chunk **
slot_at(const struct memory *m, uint64_t where)
{
	return slab_at(&m->slots, (uint32_t)(where - 1));
}

/* A chunk of size bytes with a slot; *where names it. NULL: no memory. */
static struct chunk *
chunk_new(struct memory *m, size_t size, uint64_t *where)
{
	struct chunk *p = mem_alloc(sizeof *p + size);
	const uint32_t h = p ? slab_new(&m->slots) : SLAB_NONE;

	if (h == SLAB_NONE) {
		mem_free(p);
		return NULL;
	}
	atomic_init(&p->refs, 1);
	p->size = (uint32_t)size;
	p->has_idem = false;
	*where = (uint64_t)h + 1;
	*slot_at(m, *where) = p;
	list_append(&m->named, &p->node);
	m->bytes += sizeof *p + size;
	return p;
}

/* A chunk with a copy of the text. */
static int
chunk_of(struct memory *m, struct slice text, uint64_t *where, struct slu_err *err)
{
	struct chunk *p = chunk_new(m, text.n, where);

	if (!p)
		return slu_fail(err, SLU_ENOMEM, "no memory for a text of %zu bytes", text.n);
	memcpy(p->bytes, text.p, text.n);
	return 0;
}

/* Without memory the key is not stored, and a move of its queue loses it. */
static void
know_key(struct memory *m, uint32_t queue, uint64_t id, struct slice key)
{
	struct memory_known *known = key.n ? mem_alloc(sizeof *known + key.n) : NULL;

	if (!known)
		return;
	known->id = id;
	known->queue = queue;
	known->n = (uint32_t)key.n;
	memcpy(known->text, key.p, key.n);
	list_append(&m->keys, &known->node);
	m->bytes += sizeof *known + key.n;
	m->n_keys++;
}

static void
forget_key(struct memory *m, struct memory_known *known)
{
	list_remove(&known->node);
	m->bytes -= sizeof *known + known->n;
	mem_free(known);
	m->n_keys--;
}

/* The ledger no longer names the chunk. */
static void
memory_drop(void *arg, uint64_t where)
{
	struct memory *m = arg;
	const struct chunk *p = *slot_at(m, where);
	struct message msg;

	if (p->has_idem && !message_decode((struct slice){ p->bytes, p->size }, &msg, NULL))
		know_key(m, ledger_queue_find(m->ledgerengine.ledger, msg.space, msg.queue), msg.id,
			 msg.idem);
	list_remove(&(*slot_at(m, where))->node);
	m->bytes -= sizeof *p + p->size;
	chunk_unref(*slot_at(m, where));
	slab_free(&m->slots, (uint32_t)(where - 1));
}

static uint64_t
memory_size(void *arg, uint64_t where)
{
	return (*slot_at(arg, where))->size;
}

/* ---- Functions of the ledger engine ---- */

static int
memory_keep_message(struct ledgerengine *k, const struct message *msg, struct change *c,
		    struct slu_err *err)
{
	struct chunk *p = chunk_new(of_ledgerengine(k), message_size(msg), &c->where);

	if (!p)
		return slu_fail(err, SLU_ENOMEM, "no memory for message %" PRIu64, msg->id);
	message_encode(msg, p->bytes);
	p->has_idem = msg->idem.n > 0;
	return 0;
}

static int
memory_keep_given(struct ledgerengine *k, const struct message *msg, struct change *c,
		  struct slice error, struct slu_err *err)
{
	int rc = memory_keep_message(k, msg, c, err);

	if (rc || !error.n)
		return rc;
	rc = chunk_of(of_ledgerengine(k), error, &c->error, err);
	if (rc)
		memory_drop(of_ledgerengine(k), c->where);
	return rc;
}

static int
memory_keep(struct ledgerengine *k, struct change *c, struct slice text, struct slu_err *err)
{
	if (c->kind != CHANGE_REMEMBER)
		return text.n ? chunk_of(of_ledgerengine(k), text, &c->where, err) : 0;
	know_key(of_ledgerengine(k), c->queue, c->id, text);
	return 0;
}

static int
memory_keep_document(struct ledgerengine *k, const struct message *msg, uint64_t *where,
		     struct slu_err *err)
{
	struct chunk *p = chunk_new(of_ledgerengine(k), message_size(msg), where);

	if (!p)
		return slu_fail(err, SLU_ENOMEM, "no memory for a document of %" PRIu64 " bytes",
				msg->payload_size);
	message_encode(msg, p->bytes);
	return 0;
}

/* core/locks keeps the state: nothing to store. */
static int
memory_keep_lock(struct ledgerengine *k, struct lock_change *c, struct slu_err *err)
{
	(void)k;
	(void)c;
	(void)err;
	return 0;
}

static void
memory_undo_document(struct ledgerengine *k, uint64_t where)
{
	memory_drop(of_ledgerengine(k), where);
}

static int
memory_pin(struct ledgerengine *k, uint64_t where, struct op_ref *out, struct op_ref *payload,
	   struct slu_err *err)
{
	struct chunk *p = *slot_at(of_ledgerengine(k), where);

	(void)payload; /* it is in the record */
	(void)err;     /* cannot fail */
	atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
	*out = (struct op_ref){ .pin = p, .where = where, .size = p->size };
	return 0;
}

static int
memory_recall(struct ledgerengine *k, uint32_t queue, struct ledgerengine_recall *to, bool *end,
	      struct slu_err *err)
{
	struct memory *m = of_ledgerengine(k);

	(void)err; /* cannot fail */
	LIST_EACH_SAFE(n, &m->keys) {
		const struct memory_known *known = CONTAINER(n, struct memory_known, node);

		if (known->queue == queue &&
		    !to->tell(to, known->id, (struct slice){ known->text, known->n }))
			break;
	}
	*end = !to->wanted;
	return 0;
}

/* Forget the texts of keys that the ledger has forgotten, if there are many. */
static void
forget_keys(struct memory *m)
{
	struct ledger_size size;

	ledger_size(m->ledgerengine.ledger, &size);
	if (m->n_keys <= 2 * size.remembered + KEYS_SLACK)
		return;
	LIST_EACH_SAFE(n, &m->keys) {
		struct memory_known *known = CONTAINER(n, struct memory_known, node);
		const struct slice text = { known->text, known->n };
		struct change c;

		if (!ledger_remembers(m->ledgerengine.ledger, known->queue, text, known->id, m->ledgerengine.now,
				      &c))
			forget_key(m, known);
	}
}

/* The payload is in memory, like the rest of a message. */
static size_t
memory_growth(struct ledgerengine *k, const struct message *msg)
{
	return slab_growth(&of_ledgerengine(k)->slots) + sizeof(struct chunk) + message_size(msg);
}

static void
memory_footprint(const struct ledgerengine *k, struct footprint *out)
{
	const struct memory *m = CONTAINER(k, const struct memory, ledgerengine);

	footprint_slab(out, &m->slots);
	footprint_bytes(out, m->bytes);
}

static bool
memory_trim(struct ledgerengine *k)
{
	(void)slab_trim(&of_ledgerengine(k)->slots);
	return false;
}

static const struct ledgerengine_ops keeping = {
	.keep_message = memory_keep_message,
	.keep_given = memory_keep_given,
	.keep = memory_keep,
	.keep_document = memory_keep_document,
	.keep_lock = memory_keep_lock,
	.drop = memory_undo_document,
	.pin = memory_pin,
	.recall = memory_recall,
	.growth = memory_growth,
	.footprint = memory_footprint,
	.trim = memory_trim,
};

/* ---- The engine ---- */

static int
memory_close(struct engine *e)
{
	struct memory *m = of_engine(e);

	LIST_EACH_SAFE(n, &m->named)
		chunk_unref(CONTAINER(n, struct chunk, node));
	LIST_EACH_SAFE(n, &m->keys)
		forget_key(m, CONTAINER(n, struct memory_known, node));
	ledgerengine_release(&m->ledgerengine);
	slab_release(&m->slots);
	mem_free(m);
	return 0;
}

static int
make_books(struct memory *m, const struct engine_conf *conf, struct ledger **ledger,
	   struct locks **locks, struct slu_err *err)
{
	struct ledger_conf lc = {
		.drop = memory_drop,
		.size = memory_size,
		.drop_arg = m,
		.max_idem = conf->max_idem,
		.max_queues = conf->max_queues,
	};
	int rc;

	rc = hash_key_init(&lc.secret, err);
	return rc ? rc : ledgerengine_books(&lc, ledger, locks, err);
}

static int
memory_open(struct engine **out, const struct engine_conf *conf,
	    struct engine_found *found, struct slu_err *err)
{
	struct memory *m = mem_zalloc(sizeof *m);
	struct ledger *ledger = NULL;
	struct locks *locks = NULL;
	uint64_t random;
	int rc;

	if (!m)
		return slu_fail(err, SLU_ENOMEM, "no memory for an engine");
	rc = hash_random(&random, sizeof random, err);
	if (!rc)
		rc = make_books(m, conf, &ledger, &locks, err);
	if (rc) {
		mem_free(m);
		return rc;
	}
	m->engine.ops = &engine_memory;
	slab_init(&m->slots, sizeof(struct chunk *));
	list_init(&m->named);
	list_init(&m->keys);
	/* Tokens, and the numbers of batches that move to other shards, also rise over restarts:
	 * no server gives a million a second for long. */
	ledger_set_counter(ledger, (uint64_t)conf->wall / 1000);
	ledgerengine_init(&m->ledgerengine, &keeping, &m->engine, ledger, locks, conf, random);
	*found = (struct engine_found){ .now = conf->wall };
	*out = &m->engine;
	return 0;
}

static int
memory_run(struct engine *e, struct op *batch, slu_time due, slu_time now,
	   struct slu_err *err)
{
	const int rc = ledgerengine_run(&of_engine(e)->ledgerengine, batch, due, now, err);

	forget_keys(of_engine(e));
	return rc;
}

static slu_time
memory_next_due(struct engine *e)
{
	return ledgerengine_next_due(&of_engine(e)->ledgerengine);
}

static int
memory_read(struct engine *e, const struct op_ref *ref, uint64_t at, size_t n, char *out,
	    bool may_block, struct slu_err *err)
{
	const struct chunk *p = ref->pin;

	(void)e;
	(void)may_block; /* it never waits */
	if (at > p->size || n > p->size - at)
		return slu_fail(err, SLU_EINVAL, "%zu bytes at %" PRIu64 " of %u", n, at,
				p->size);
	memcpy(out, p->bytes + at, n);
	return 0;
}

static void
memory_unpin(struct engine *e, struct op_ref *ref)
{
	(void)e;
	chunk_unref(ref->pin);
	ref->pin = NULL;
}

struct ledger *
memory_ledger(struct engine *e)
{
	return of_engine(e)->ledgerengine.ledger;
}

struct locks *
memory_locks(struct engine *e)
{
	return of_engine(e)->ledgerengine.locks;
}

const struct engine_ops engine_memory = {
	.name = "memory",
	.doc = "in memory, until the process ends",
	.quotas = true,
	.observed = true,
	.open = memory_open,
	.close = memory_close,
	.run = memory_run,
	.next_due = memory_next_due,
	.read = memory_read,
	.unpin = memory_unpin,
};
