/*
 * memory.c - the memory engine.
 *
 * A record, an error text, a result or a document is a piece of memory that is counted: by the
 * engine while the ledger names it (where = its slot + 1), and by every pin. So a
 * connection can still write what was acked meanwhile.
 */
#include "engine/memory.h"

#include "base/list.h"
#include "base/mem.h"
#include "engine/clerk.h"

#include <inttypes.h>

struct piece {
	_Atomic uint32_t refs;
	uint32_t size;
	bool has_idem;    /* the record of a message that has an idempotency key */
	struct list node; /* of all that the ledger names; the shard's thread's */
	char bytes[];
};

struct memory {
	struct engine engine;
	struct clerk clerk;
	struct slab slots; /* of struct piece *: what the ledger names */
	struct list named; /* the same pieces */
	struct list keys;  /* of struct known: idempotency keys of messages that are gone */
	uint32_t n_keys;
	uint64_t bytes; /* of the named pieces and the keys */
};

/* The ledger remembers a key by its hash; who takes it to another shard wants the text. */
struct known {
	struct list node;
	uint64_t id;
	uint32_t queue;
	uint32_t n;
	char text[];
};

enum {
	KEYS_SLACK = 64 /* texts of keys that are not remembered any more */
};

static struct memory *
of_engine(struct engine *e)
{
	return CONTAINER(e, struct memory, engine);
}

static struct memory *
of_clerk(struct clerk *k)
{
	return CONTAINER(k, struct memory, clerk);
}

/* ---- Pieces ---- */

static void
piece_unref(struct piece *p)
{
	if (atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) == 1)
		mem_free(p);
}

static struct piece **
slot_at(const struct memory *m, uint64_t where)
{
	return slab_at(&m->slots, (uint32_t)(where - 1));
}

/* A piece of size bytes that has a slot; where names it. NULL: no memory. */
static struct piece *
piece_new(struct memory *m, size_t size, uint64_t *where)
{
	struct piece *p = mem_alloc(sizeof *p + size);
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

/* Without memory it is not known, and stays behind when its queue moves. */
static void
know_key(struct memory *m, uint32_t queue, uint64_t id, struct slice key)
{
	struct known *known = key.n ? mem_alloc(sizeof *known + key.n) : NULL;

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
forget_key(struct memory *m, struct known *known)
{
	list_remove(&known->node);
	m->bytes -= sizeof *known + known->n;
	mem_free(known);
	m->n_keys--;
}

/* The ledger does not name it any more. */
static void
memory_drop(void *arg, uint64_t where)
{
	struct memory *m = arg;
	const struct piece *p = *slot_at(m, where);
	struct message msg;

	if (p->has_idem && !message_decode((struct slice){ p->bytes, p->size }, &msg, NULL))
		know_key(m, ledger_queue_find(m->clerk.ledger, msg.space, msg.queue), msg.id,
			 msg.idem);
	list_remove(&(*slot_at(m, where))->node);
	m->bytes -= sizeof *p + p->size;
	piece_unref(*slot_at(m, where));
	slab_free(&m->slots, (uint32_t)(where - 1));
}

static uint64_t
memory_size(void *arg, uint64_t where)
{
	return (*slot_at(arg, where))->size;
}

/* ---- What the clerk wants to be kept ---- */

static int
memory_keep_message(struct clerk *k, const struct message *msg, struct change *c,
		    struct slu_err *err)
{
	struct piece *p = piece_new(of_clerk(k), message_size(msg), &c->where);

	if (!p)
		return slu_fail(err, SLU_ENOMEM, "no memory for message %" PRIu64, msg->id);
	message_encode(msg, p->bytes);
	p->has_idem = msg->idem.n > 0;
	return 0;
}

static int
memory_keep_given(struct clerk *k, const struct message *msg, struct change *c,
		  struct slice error, struct slu_err *err)
{
	struct piece *p = NULL;
	int rc;

	rc = memory_keep_message(k, msg, c, err);
	if (rc || !error.n)
		return rc;
	p = piece_new(of_clerk(k), error.n, &c->error);
	if (!p) {
		memory_drop(of_clerk(k), c->where);
		return slu_fail(err, SLU_ENOMEM, "no memory for an error of %zu bytes", error.n);
	}
	memcpy(p->bytes, error.p, error.n);
	return 0;
}

static int
memory_keep(struct clerk *k, struct change *c, struct slice text, struct slu_err *err)
{
	struct piece *p;

	if (c->kind == CHANGE_REMEMBER)
		know_key(of_clerk(k), c->queue, c->id, text);
	if (text.n == 0 || c->kind == CHANGE_REMEMBER)
		return 0;
	p = piece_new(of_clerk(k), text.n, &c->where);
	if (!p)
		return slu_fail(err, SLU_ENOMEM, "no memory for a text of %zu bytes", text.n);
	memcpy(p->bytes, text.p, text.n);
	return 0;
}

static int
memory_keep_document(struct clerk *k, const struct message *msg, uint64_t *where,
		     struct slu_err *err)
{
	struct piece *p = piece_new(of_clerk(k), message_size(msg), where);

	if (!p)
		return slu_fail(err, SLU_ENOMEM, "no memory for a document of %" PRIu64 " bytes",
				msg->payload_size);
	message_encode(msg, p->bytes);
	return 0;
}

/* The locks have all that there is to know. */
static int
memory_keep_lock(struct clerk *k, struct lock_change *c, struct slu_err *err)
{
	(void)k;
	(void)c;
	(void)err;
	return 0;
}

static void
memory_undo_document(struct clerk *k, uint64_t where)
{
	memory_drop(of_clerk(k), where);
}

static int
memory_pin(struct clerk *k, uint64_t where, struct op_ref *out, struct op_ref *payload,
	   struct slu_err *err)
{
	struct piece *p = *slot_at(of_clerk(k), where);

	(void)payload; /* is in the record, whatever its size */
	(void)err;     /* it is always there */
	atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
	*out = (struct op_ref){ .pin = p, .where = where, .size = p->size };
	return 0;
}

static int
memory_recall(struct clerk *k, uint32_t queue, struct clerk_recall *to, bool *end,
	      struct slu_err *err)
{
	struct memory *m = of_clerk(k);

	(void)err; /* nothing can fail */
	LIST_EACH_SAFE(n, &m->keys) {
		const struct known *known = CONTAINER(n, struct known, node);

		if (known->queue == queue &&
		    !to->tell(to, known->id, (struct slice){ known->text, known->n }))
			break;
	}
	*end = !to->wanted;
	return 0;
}

/* Texts that the ledger has no hash for go, when there are many of them. */
static void
forget_keys(struct memory *m)
{
	struct ledger_size size;

	ledger_size(m->clerk.ledger, &size);
	if (m->n_keys <= 2 * size.remembered + KEYS_SLACK)
		return;
	LIST_EACH_SAFE(n, &m->keys) {
		struct known *known = CONTAINER(n, struct known, node);
		const struct slice text = { known->text, known->n };
		struct idem_mark mark;

		if (!ledger_remembers(m->clerk.ledger, known->queue, text, known->id, m->clerk.now,
				      &mark))
			forget_key(m, known);
	}
}

/* A payload is in memory like all else of a message. */
static size_t
memory_growth(struct clerk *k, const struct message *msg)
{
	return slab_growth(&of_clerk(k)->slots) + sizeof(struct piece) + message_size(msg);
}

static void
memory_footprint(const struct clerk *k, struct footprint *out)
{
	const struct memory *m = CONTAINER(k, const struct memory, clerk);

	footprint_slab(out, &m->slots);
	footprint_bytes(out, m->bytes);
}

static bool
memory_trim(struct clerk *k)
{
	(void)slab_trim(&of_clerk(k)->slots);
	return false;
}

static const struct clerk_ops keeping = {
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
		piece_unref(CONTAINER(n, struct piece, node));
	LIST_EACH_SAFE(n, &m->keys)
		forget_key(m, CONTAINER(n, struct known, node));
	clerk_release(&m->clerk);
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
	return rc ? rc : clerk_books(&lc, ledger, locks, err);
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
	slab_init(&m->slots, sizeof(struct piece *));
	list_init(&m->named);
	list_init(&m->keys);
	/* Tokens, and the numbers of batches that move to other shards, rise over restarts, too:
	 * nobody gives a million a second for long. */
	ledger_set_counter(ledger, (uint64_t)conf->wall / 1000);
	clerk_init(&m->clerk, &keeping, &m->engine, ledger, locks, conf, random);
	*found = (struct engine_found){ .now = conf->wall };
	*out = &m->engine;
	return 0;
}

static int
memory_run(struct engine *e, struct op *batch, slu_time due, slu_time now,
	   struct slu_err *err)
{
	const int rc = clerk_run(&of_engine(e)->clerk, batch, due, now, err);

	forget_keys(of_engine(e));
	return rc;
}

static slu_time
memory_next_due(struct engine *e)
{
	return clerk_next_due(&of_engine(e)->clerk);
}

static int
memory_read(struct engine *e, const struct op_ref *ref, uint64_t at, size_t n, char *out,
	    bool may_block, struct slu_err *err)
{
	const struct piece *p = ref->pin;

	(void)e;
	(void)may_block; /* it never has to wait */
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
	piece_unref(ref->pin);
	ref->pin = NULL;
}

struct ledger *
memory_ledger(struct engine *e)
{
	return of_engine(e)->clerk.ledger;
}

struct locks *
memory_locks(struct engine *e)
{
	return of_engine(e)->clerk.locks;
}

const struct engine_ops engine_memory = {
	.name = "memory",
	.open = memory_open,
	.close = memory_close,
	.run = memory_run,
	.next_due = memory_next_due,
	.read = memory_read,
	.unpin = memory_unpin,
};
