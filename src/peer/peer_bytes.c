#include "peer/peer_bytes.h"

#include "base/mem.h"

struct peer_bytes *
peer_bytes_new(size_t n)
{
	struct peer_bytes *const b = mem_alloc(sizeof *b + n);

	if (!b)
		return NULL;
	atomic_init(&b->pins, 1);
	b->n = n;
	return b;
}

struct op_ref
peer_bytes_pin(struct peer_bytes *b, size_t at, size_t size, int rc)
{
	atomic_fetch_add(&b->pins, 1);
	return (struct op_ref){ .pin = b, .where = at, .size = (uint32_t)size, .sum = (uint32_t)rc };
}

void
peer_bytes_unpin(struct peer_bytes *b)
{
	if (b && atomic_fetch_sub(&b->pins, 1) == 1)
		mem_free(b);
}

/* A payload file that another node named: op_ref.pin, with STORED in op_ref.where. */
struct peer_stored {
	struct engine *lane;
	struct op_ref ref; /* of that engine */
};

#define STORED (1ull << 63)

int
peer_bytes_pin_stored(struct engine *lane, const struct engine_stored *file, struct op_ref *out,
		      struct slu_err *err)
{
	struct peer_stored *const s = mem_alloc(sizeof *s);
	int rc;

	if (!s)
		return slu_fail(err, SLU_ENOMEM, "no memory for a payload");
	s->lane = lane;
	rc = lane->ops->away->pin(lane, file, &s->ref, err);
	if (rc)
		mem_free(s);
	else
		*out = (struct op_ref){ .pin = s, .where = STORED, .size = file->size };
	return rc;
}

static int
read_bytes(struct engine *e, const struct op_ref *ref, uint64_t at, size_t n, char *out, bool may_block,
	   struct slu_err *err)
{
	const struct peer_bytes *const b = ref->pin;

	(void)e;
	if (ref->where & STORED) {
		const struct peer_stored *const s = ref->pin;

		return engine_read(s->lane, &s->ref, at, n, out, may_block, err);
	}
	if (ref->sum)
		return slu_fail(err, (enum slu_code)ref->sum, "%.*s", (int)ref->size, b->p + ref->where);
	if (at > ref->size || n > ref->size - at)
		return slu_fail(err, SLU_EINVAL, "invalid range of a record");
	memcpy(out, b->p + ref->where + at, n);
	return 0;
}

static void
unpin(struct engine *e, struct op_ref *ref)
{
	struct peer_stored *const s = ref->where & STORED ? ref->pin : NULL;

	(void)e;
	if (s)
		engine_unpin(s->lane, &s->ref);
	else
		peer_bytes_unpin(ref->pin);
	mem_free(s);
	ref->pin = NULL;
}

static const struct engine_ops peer_ops = {
	.name = "peer",
	.read = read_bytes,
	.unpin = unpin,
};

struct engine peer_engine = { &peer_ops };
