#include "api/flat/packed.h"

#include "base/le.h"
#include "engine/op.h"
#include "http/call.h"
#include "http/chars.h"

#include <assert.h>

enum {
	AT_KIND = 4,
	AT_ZERO = 5,
	AT_QUEUES = 6,
	AT_ITEMS = 8,

	DUPLICATE = 1, /* flags of PACKED_IDS */
	PENDING = 2,
	REPLACED = 4
};

static const char magic[4] = { 'S', 'L', 'B', '1' };

const char packed_type[] = "application/x-sluice-batch";

/* --- content types ------------------------------------------------------------ */

/* Whether one of the types in the value of a field, without its parameters, is the batch type. */
static bool
names_packed(struct slice value)
{
	bool more = true;

	while (more) {
		struct slice type, name;

		more = slice_cut(&value, ',', &type);
		(void)slice_cut(&type, ';', &name);
		if (http_same(http_trim(name), slice_of(packed_type)))
			return true;
	}
	return false;
}

bool
packed_is_sent(const struct call *c)
{
	const struct slice type = call_field(c, "content-type");

	return type.n >= sizeof packed_type - 1 && names_packed(type);
}

bool
packed_is_accepted(const struct call *c)
{
	const struct slice types = call_field(c, "accept");

	return types.n >= sizeof packed_type - 1 && names_packed(types);
}

/* --- read ----------------------------------------------------------------------- */

/* The next n bytes, or NULL. */
static const char *
take(struct packed *b, size_t n)
{
	const char *const p = b->rest.p;

	if (n > b->rest.n)
		return NULL;
	slice_skip(&b->rest, n);
	return p;
}

static int
cut_off(struct slu_err *err)
{
	return slu_fail(err, SLU_EINVAL, "invalid batch: it is cut off; expected more bytes");
}

static int
read_name(struct packed *b, struct arena *a, const char *what, struct spelled *out, struct slu_err *err)
{
	const char *const length = take(b, 1);
	const size_t n = length ? (unsigned char)*length : 0;
	char folded[NAME_TEXT];
	int rc;

	out->as = (struct slice){ length ? take(b, n) : NULL, n };
	if (!out->as.p)
		return cut_off(err);
	out->name = out->as;
	if (name_is_folded(out->as))
		return 0;
	rc = name_fold(out->as, what, folded, err);
	if (rc)
		return rc;
	out->name = arena_copy(a, (struct slice){ folded, n });
	return out->name.p ? 0 : slu_fail(err, SLU_ENOMEM, "out of memory");
}

static int
read_queues(struct packed *b, struct arena *a, struct slu_err *err)
{
	int rc = 0;

	if ((size_t)b->n_queues * 4 > b->rest.n) /* no queue is shorter */
		return cut_off(err);
	b->queues = arena_array(a, b->n_queues, sizeof *b->queues);
	if (!b->queues)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	for (unsigned i = 0; i < b->n_queues && !rc; i++) {
		rc = read_name(b, a, "namespace", &b->queues[i].space, err);
		if (!rc)
			rc = read_name(b, a, "queue", &b->queues[i].queue, err);
	}
	return rc;
}

int
packed_open(struct packed *b, struct arena *a, struct slice body, enum packed_kind kind, uint32_t max,
	    struct slu_err *err)
{
	const char *head;

	*b = (struct packed){ .rest = body };
	head = take(b, PACKED_HEAD);
	if (!head || memcmp(head, magic, sizeof magic) != 0)
		return slu_fail(err, SLU_EINVAL, "invalid batch; expected SLB1 and 8 more bytes at its beginning");
	if (head[AT_KIND] != (char)kind || head[AT_ZERO])
		return slu_fail(err, SLU_EINVAL, "invalid batch of kind %u; expected kind %u and a zero byte",
				(unsigned char)head[AT_KIND], kind);
	b->n_queues = le16_get(head + AT_QUEUES);
	b->n = le32_get(head + AT_ITEMS);
	if (b->n == 0 || b->n > max)
		return slu_fail(err, SLU_EINVAL, "invalid batch of %u items; expected 1 to %u", b->n, max);
	if (b->n_queues == 0)
		return slu_fail(err, SLU_EINVAL, "invalid batch without a queue; expected at least one");
	return read_queues(b, a, err);
}

/* An item whose fixed bytes have the length of the members first. `queue`: where the number of its
 * queue is. */
static int
read_item(struct packed *b, size_t fixed, size_t queue, struct packed_item *item, struct slu_err *err)
{
	unsigned at;

	*item = (struct packed_item){ .fixed = take(b, fixed) };
	if (!item->fixed)
		return cut_off(err);
	at = le16_get(item->fixed + queue);
	if (at >= b->n_queues)
		return slu_fail(err, SLU_EINVAL, "invalid queue number %u; expected less than %u", at, b->n_queues);
	if (le16_get(item->fixed + queue + 2))
		return slu_fail(err, SLU_EINVAL, "invalid bytes behind the queue number; expected zeros");
	item->queue = &b->queues[at];
	item->members.n = le32_get(item->fixed);
	item->members.p = take(b, item->members.n);
	return item->members.p ? 0 : cut_off(err);
}

int
packed_put_next(struct packed *b, struct packed_item *item, struct slu_err *err)
{
	const int rc = read_item(b, PACKED_PUT_BYTES, 8, item, err);

	if (rc)
		return rc;
	item->payload.n = le32_get(item->fixed + 4);
	item->payload.p = take(b, item->payload.n);
	return item->payload.p ? 0 : cut_off(err);
}

int
packed_settle_next(struct packed *b, struct packed_item *item, struct slu_err *err)
{
	return read_item(b, PACKED_SETTLE_BYTES, 4, item, err);
}

int
packed_end(const struct packed *b, struct slu_err *err)
{
	if (b->rest.n == 0)
		return 0;
	return slu_fail(err, SLU_EINVAL, "invalid batch: %zu bytes behind the last item; expected none", b->rest.n);
}

/* --- write ---------------------------------------------------------------------- */

static void
write_head(struct buf *out, enum packed_kind kind, uint16_t queues, uint32_t n)
{
	char *const p = buf_add(out, PACKED_HEAD);

	if (!p)
		return;
	memcpy(p, magic, sizeof magic);
	p[AT_KIND] = (char)kind;
	p[AT_ZERO] = 0;
	le16_put(p + AT_QUEUES, queues);
	le32_put(p + AT_ITEMS, n);
}

void
packed_write(struct buf *out, enum packed_kind kind, uint32_t n)
{
	write_head(out, kind, 0, n);
}

static void
write_name(struct buf *out, struct slice name)
{
	assert(name.n <= NAME_LONGEST);
	buf_putc(out, (char)name.n);
	buf_put(out, name.p, name.n);
}

void
packed_write_queue(struct buf *out, enum packed_kind kind, struct slice space, struct slice queue)
{
	write_head(out, kind, 1, 0);
	write_name(out, space);
	write_name(out, queue);
}

void
packed_count(struct buf *out, size_t at, uint32_t n)
{
	if (!out->failed)
		le32_put(out->p + at + AT_ITEMS, n);
}

void
packed_write_id(struct buf *out, const struct op_put *put)
{
	char *const p = buf_add(out, PACKED_ID_BYTES);

	if (!p)
		return;
	le32_put(p, (put->existed ? DUPLICATE : 0) | (put->pending ? PENDING : 0) | (put->replaced ? REPLACED : 0));
	le64_put(p + 4, put->m.id);
}
