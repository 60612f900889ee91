/*
 * read.c - reads pinned records, on any thread.
 */
#include "engine/log/logengine_private.h"

#include <assert.h>
#include <inttypes.h>

enum {
	SMALL_READ = 4096, /* records up to this size are read on the stack */
	GAP = 4096         /* bytes between neighbours; reading a larger gap costs as much as a call */
};

static struct wal_pin
pin_of(const struct op_ref *ref)
{
	return (struct wal_pin){
		.segment = ref->pin,
		.where = {
			.offset = (uint32_t)ref->where,
			.length = (uint32_t)(ref->where >> 32),
		},
	};
}

/* The part of the body that the reference names: its end. */
static const char *
named(const struct op_ref *ref, const struct wal_record *rec)
{
	assert(rec->body.n >= ref->size);
	return rec->body.p + rec->body.n - ref->size;
}

/* `scratch`: room for the whole record. */
static int
read_into(const struct op_ref *ref, uint64_t at, size_t n, char *out, char *scratch,
	  bool may_block, struct slu_err *err)
{
	const struct wal_pin pin = pin_of(ref);
	struct wal_record rec;
	int rc;

	rc = may_block ? wal_pinned_read(&pin, scratch, pin.where.length, &rec, err)
		       : wal_pinned_read_now(&pin, scratch, pin.where.length, &rec, err);
	if (rc)
		return rc;
	memcpy(out, named(ref, &rec) + at, n);
	return 0;
}

int
logengine_read(struct engine *e, const struct op_ref *ref, uint64_t at, size_t n, char *out,
	       bool may_block, struct slu_err *err)
{
	const uint32_t length = pin_of(ref).where.length;
	char small[SMALL_READ];
	char *large;
	int rc;

	(void)e;
	if (ref->where & LOGENGINE_REF_FILE)
		return logengine_file_read(ref->pin, at, n, out, may_block, err);
	if (at > ref->size || n > ref->size - at)
		return slu_fail(err, SLU_EINVAL, "invalid range: %zu bytes at %" PRIu64 " of %" PRIu32, n,
				at, ref->size);
	if (length <= sizeof small)
		return read_into(ref, at, n, out, small, may_block, err);
	large = mem_alloc(length);
	if (!large)
		return slu_fail(err, SLU_ENOMEM, "no memory to read a record");
	rc = read_into(ref, at, n, out, large, may_block, err);
	mem_free(large);
	return rc;
}

int
logengine_read_here(struct ledgerengine *k, const struct op_ref *ref, char *out, bool may_block, struct slu_err *err)
{
	struct logengine *const l = logengine_of(k);
	const struct wal_pin pin = pin_of(ref);
	struct wal_record rec;

	if (ref->where & LOGENGINE_REF_FILE || !wal_appended(l->wal, &pin, &rec))
		return logengine_read(&l->engine, ref, 0, ref->size, out, may_block, err);
	memcpy(out, named(ref, &rec), ref->size);
	return 0;
}

/* Counts the rows, from the first on, whose record is near the one before and ends within
 * `size` bytes of the first record's start. Sets *end to the end of the last of them. */
static uint32_t
count_near(const struct op_row *rows, uint32_t n, uint32_t size, uint32_t *end)
{
	const struct wal_pin first = pin_of(&rows[0].record);
	uint32_t i;

	*end = 0;
	for (i = 0; i < n && i < ENGINE_NEAR; i++) {
		const struct wal_pin pin = pin_of(&rows[i].record);
		const uint32_t from = pin.where.offset - first.where.offset;

		if (rows[i].record.where & LOGENGINE_REF_FILE || pin.segment != first.segment ||
		    pin.where.offset < first.where.offset + *end || from > *end + GAP ||
		    from > size || pin.where.length > size - from)
			break;
		*end = from + pin.where.length;
	}
	return i;
}

uint32_t
logengine_read_near(const struct op_row *rows, uint32_t n, struct engine_near *near, bool may_block)
{
	const struct wal_pin first = pin_of(&rows[0].record);
	struct wal_record rec;
	uint32_t end, i;

	n = first.segment ? count_near(rows, n, sizeof near->room, &end) : 0;
	if (n < 2 || wal_pinned_span(&first, near->room, end, !may_block))
		return 0;
	for (i = 0; i < n; i++) {
		const struct op_ref *const ref = &rows[i].record;
		const struct wal_pin pin = pin_of(ref);

		if (wal_pinned_check(&pin, near->room + pin.where.offset - first.where.offset,
				     &rec))
			break;
		near->texts[i] = (struct slice){ named(ref, &rec), ref->size };
	}
	return i;
}

void
logengine_unpin(struct engine *e, struct op_ref *ref)
{
	struct wal_pin pin = pin_of(ref);

	(void)e;
	if (ref->where & LOGENGINE_REF_FILE)
		logengine_file_unpin(ref->pin);
	else
		wal_unpin(&pin);
	ref->pin = NULL;
}
