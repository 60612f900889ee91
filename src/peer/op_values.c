/*
 * op_values.c - the values of fields, kind by kind.
 */
#include "peer/op_codec_private.h"

#include "base/limit.h"
#include "base/mem.h"
#include "base/shared_text.h"

enum {
	LIMIT_NAME = 32,                                    /* bytes */
	ERROR_MAX = sizeof(((struct slu_err *)0)->text) - 1 /* bytes */
};

/* The functions of a kind. p: the field in memory. */
struct kind_ops {
	bool (*is_zero)(const struct codec *c, const struct op_field *f, const void *p);
	void (*put)(struct codec *c, const struct op_field *f, const void *p);
	int (*get)(struct codec *c, const struct op_field *f, void *p);
};

static bool
applies(const struct codec *c, const struct op_field *f)
{
	return (c->answer ? f->told : f->asked) & c->verb;
}

static int
malformed(struct codec *c, const struct op_field *f)
{
	return slu_fail(c->err, SLU_EINVAL, "invalid field %s of %s from another node", f->name,
			op_verb_name(c->into->verb));
}

static uint32_t
count_at(const struct op *op, uint16_t at)
{
	uint32_t n;

	memcpy(&n, (const char *)op + at, sizeof n);
	return n;
}

static void
set_count(struct op *op, uint16_t at, uint32_t n)
{
	memcpy((char *)op + at, &n, sizeof n);
}

/* ---- Numbers ---- */

static uint64_t
number_at(const struct op_field *f, const void *p)
{
	switch (f->size) {
	case sizeof(uint8_t):
		return *(const uint8_t *)p;
	case sizeof(uint16_t):
		return *(const uint16_t *)p;
	case sizeof(uint32_t):
		return *(const uint32_t *)p;
	default:
		return *(const uint64_t *)p;
	}
}

static void
set_number(const struct op_field *f, void *p, uint64_t value)
{
	switch (f->size) {
	case sizeof(uint8_t):
		*(uint8_t *)p = (uint8_t)value;
		break;
	case sizeof(uint16_t):
		*(uint16_t *)p = (uint16_t)value;
		break;
	case sizeof(uint32_t):
		*(uint32_t *)p = (uint32_t)value;
		break;
	default:
		*(uint64_t *)p = value;
	}
}

static bool
is_zero_bytes(const struct codec *c, const struct op_field *f, const void *p)
{
	const char *const bytes = p;

	(void)c;
	for (unsigned i = 0; i < f->size; i++)
		if (bytes[i])
			return false;
	return true;
}

static bool
is_zero_number(const struct codec *c, const struct op_field *f, const void *p)
{
	(void)c;
	return number_at(f, p) == 0;
}

static void
put_number(struct codec *c, const struct op_field *f, const void *p)
{
	wire_put(c->out, number_at(f, p));
}

static int
get_number(struct codec *c, const struct op_field *f, void *p)
{
	const uint64_t highest = f->size == 8 ? UINT64_MAX : (1ull << 8 * f->size) - 1;
	const uint64_t value = wire_get(&c->w, f->kind == FIELD_BOOL ? 1 : f->most ? f->most
										   : highest);

	set_number(f, p, value);
	return value ? 0 : malformed(c, f);
}

static int64_t
signed_at(const struct op_field *f, const void *p)
{
	return f->size == sizeof(int64_t) ? *(const int64_t *)p : *(const int32_t *)p;
}

static void
put_signed(struct codec *c, const struct op_field *f, const void *p)
{
	wire_put_signed(c->out, signed_at(f, p));
}

static int
get_signed(struct codec *c, const struct op_field *f, void *p)
{
	const int64_t value = wire_get_signed(&c->w);

	if (value == 0 || (f->size == sizeof(int32_t) && (value < INT32_MIN || value > INT32_MAX)))
		return malformed(c, f);
	set_number(f, p, (uint64_t)value);
	return 0;
}

/* A version that is not given is -1, which op_init has set. */
static bool
is_no_version(const struct codec *c, const struct op_field *f, const void *p)
{
	(void)c;
	return signed_at(f, p) == -1;
}

static int
get_version(struct codec *c, const struct op_field *f, void *p)
{
	const int64_t value = wire_get_signed(&c->w);

	if (c->w.failed || value == -1)
		return malformed(c, f);
	memcpy(p, &value, sizeof value);
	return 0;
}

static void
put_u32s(struct codec *c, const struct op_field *f, const void *p)
{
	for (unsigned i = 0; i < f->size / sizeof(uint32_t); i++)
		wire_put(c->out, ((const uint32_t *)p)[i]);
}

static int
get_u32s(struct codec *c, const struct op_field *f, void *p)
{
	for (unsigned i = 0; i < f->size / sizeof(uint32_t); i++)
		((uint32_t *)p)[i] = (uint32_t)wire_get(&c->w, UINT32_MAX);
	return is_zero_bytes(c, f, p) ? malformed(c, f) : 0;
}

static void
put_u64s(struct codec *c, const struct op_field *f, const void *p)
{
	for (unsigned i = 0; i < f->size / sizeof(uint64_t); i++)
		wire_put(c->out, ((const uint64_t *)p)[i]);
}

static int
get_u64s(struct codec *c, const struct op_field *f, void *p)
{
	for (unsigned i = 0; i < f->size / sizeof(uint64_t); i++)
		((uint64_t *)p)[i] = wire_get(&c->w, UINT64_MAX);
	return is_zero_bytes(c, f, p) ? malformed(c, f) : 0;
}

/* ---- Texts ---- */

static bool
is_no_slice(const struct codec *c, const struct op_field *f, const void *p)
{
	(void)c;
	(void)f;
	return ((const struct slice *)p)->n == 0;
}

static void
put_slice(struct codec *c, const struct op_field *f, const void *p)
{
	(void)f;
	wire_put_text(c->out, *(const struct slice *)p);
}

static int
get_slice(struct codec *c, const struct op_field *f, void *p)
{
	struct slice *const s = p;

	*s = wire_get_text(&c->w, f->most);
	return s->n > 0 ? 0 : malformed(c, f);
}

static bool
is_empty_text(const struct codec *c, const struct op_field *f, const void *p)
{
	(void)c;
	(void)f;
	return *(const char *)p == '\0';
}

static void
put_text(struct codec *c, const struct op_field *f, const void *p)
{
	(void)f;
	wire_put_text(c->out, slice_of(p));
}

/* Copies a text with a NUL to room of f->size bytes. */
static int
get_text_of(struct codec *c, const struct op_field *f, char *p, size_t size)
{
	const struct slice text = wire_get_text(&c->w, size - 1);

	if (text.n == 0 || memchr(text.p, 0, text.n))
		return malformed(c, f);
	memcpy(p, text.p, text.n);
	p[text.n] = '\0';
	return 0;
}

static int
get_text(struct codec *c, const struct op_field *f, void *p)
{
	return get_text_of(c, f, p, f->size);
}

static void
put_bytes(struct codec *c, const struct op_field *f, const void *p)
{
	wire_put_text(c->out, (struct slice){ p, f->size });
}

static int
get_bytes(struct codec *c, const struct op_field *f, void *p)
{
	const struct slice text = wire_get_text(&c->w, f->size);

	if (text.n != f->size || is_zero_bytes(c, f, text.p))
		return malformed(c, f);
	memcpy(p, text.p, text.n);
	return 0;
}

static bool
is_null(const struct codec *c, const struct op_field *f, const void *p)
{
	(void)c;
	(void)f;
	return *(void *const *)p == NULL;
}

static void
put_holder(struct codec *c, const struct op_field *f, const void *p)
{
	const struct slice text = shared_text_slice(*(struct shared_text *const *)p);

	wire_put_text(c->out, (struct slice){ text.p, text.n < f->most ? text.n : f->most });
}

static int
get_holder(struct codec *c, const struct op_field *f, void *p)
{
	const struct slice text = wire_get_text(&c->w, f->most);
	struct shared_text *const holder = shared_text_new(text);

	memcpy(p, &holder, sizeof holder);
	return text.n ? 0 : malformed(c, f); /* without memory no holder is shown */
}

static void
put_limit(struct codec *c, const struct op_field *f, const void *p)
{
	(void)f;
	wire_put_text(c->out, slice_of(*(const char *const *)p));
}

static int
get_limit(struct codec *c, const struct op_field *f, void *p)
{
	char name[LIMIT_NAME];
	const int rc = get_text_of(c, f, name, sizeof name);
	const enum limit limit = rc ? LIMIT_COUNT : limit_by_name(name);
	const char *const known = limit < LIMIT_COUNT ? limit_name(limit) : NULL;

	memcpy(p, &known, sizeof known);
	return rc || known ? rc : malformed(c, f);
}

/* The question says that there is room; the answer has the text. */
static bool
is_no_held_by(const struct codec *c, const struct op_field *f, const void *p)
{
	const char *const room = *(const char *const *)p;

	(void)f;
	return !room || (c->answer && !*room);
}

static void
put_held_by(struct codec *c, const struct op_field *f, const void *p)
{
	(void)f;
	wire_put_text(c->out, slice_of(c->answer ? *(const char *const *)p : ""));
}

static int
get_held_by(struct codec *c, const struct op_field *f, void *p)
{
	char **const room = p;

	if (c->answer)
		return *room ? get_text_of(c, f, *room, f->most + 1) : malformed(c, f);
	*room = mem_zalloc(f->most + 1);
	if (!*room)
		return slu_fail(c->err, SLU_ENOMEM, "out of memory");
	return wire_get_text(&c->w, 0).n || c->w.failed ? malformed(c, f) : 0;
}

/* ---- Records ---- */

static bool
is_no_ref(const struct codec *c, const struct op_field *f, const void *p)
{
	(void)c;
	(void)f;
	return ((const struct op_ref *)p)->pin == NULL;
}

/* CODEC-5 */
static bool
put_stored(struct codec *c, const struct op_ref *ref)
{
	const struct engine_away *const away = c->op->engine->ops->away;
	struct engine_stored file;

	if (!away || !away->name(ref, &file))
		return false;
	wire_put(c->out, OP_CODEC_STORED);
	wire_put(c->out, file.number);
	wire_put(c->out, file.mark);
	wire_put(c->out, file.size);
	return true;
}

/* A record that cannot be read is a code and the text of the error. */
static void
put_ref(struct codec *c, const struct op_field *f, const void *p)
{
	const struct op_ref *const ref = p;
	const size_t before = c->out->n;
	struct slu_err err = { 0 };
	char *room;
	int rc = SLU_ETOOBIG;

	(void)f;
	if (put_stored(c, ref))
		return;
	(void)slu_fail(&err, SLU_ETOOBIG, "a record of %u bytes is too large for another node", ref->size);
	wire_put(c->out, 0);
	wire_put(c->out, ref->size);
	room = ref->size < c->out->max - c->out->n ? buf_add(c->out, ref->size) : NULL;
	if (room)
		rc = engine_read(c->op->engine, ref, 0, ref->size, room, c->may_block, &err);
	if (rc == SLU_EBUSY && !c->may_block)
		c->rc = rc;
	if (!rc || c->out->failed)
		return;
	c->out->n = before;
	wire_put(c->out, (uint64_t)rc);
	wire_put_text(c->out, slice_of(err.text));
}

static int
get_stored(struct codec *c, const struct op_field *f, struct op_ref *out)
{
	struct engine_stored file;

	file.number = wire_get(&c->w, UINT64_MAX);
	file.mark = (uint32_t)wire_get(&c->w, UINT32_MAX);
	file.size = (uint32_t)wire_get(&c->w, MESSAGE_PAYLOAD_MAX);
	if (c->w.failed || !file.number || !file.size || !c->lane || !c->lane->ops->away)
		return malformed(c, f);
	return peer_bytes_pin_stored(c->lane, &file, out, c->err);
}

static int
get_ref(struct codec *c, const struct op_field *f, void *p)
{
	const int rc = (int)wire_get(&c->w, OP_CODEC_STORED);
	struct slice bytes;

	if (rc == OP_CODEC_STORED)
		return get_stored(c, f, p);
	bytes = wire_get_text(&c->w, rc ? ERROR_MAX : UINT32_MAX);
	if (c->w.failed || (rc && bytes.n && memchr(bytes.p, 0, bytes.n)))
		return malformed(c, f);
	*(struct op_ref *)p = peer_bytes_pin(c->message, bytes.n ? (size_t)(bytes.p - c->message->p) : 0,
					     bytes.n, rc);
	return 0;
}

/* ---- Lists ---- */

/* An answer that failed has no elements. */
static uint32_t
elements_of(const struct codec *c, const struct op_field *f)
{
	return c->answer && c->op->rc ? 0 : count_at(c->op, f->list->count);
}

static bool
is_empty_list(const struct codec *c, const struct op_field *f, const void *p)
{
	(void)p;
	return elements_of(c, f) == 0;
}

static void
put_list(struct codec *c, const struct op_field *f, const void *p)
{
	const struct op_list *const list = f->list;
	const uint32_t n = elements_of(c, f);
	const char *const elements = *(const char *const *)p;

	wire_put(c->out, n);
	for (uint32_t i = 0; i < n; i++) {
		op_put_fields(c, list->fields, list->n_fields, elements + i * list->size);
		buf_putc(c->out, 0);
	}
}

/* Every element of a question takes a byte at least. */
static int
make_list(struct codec *c, const struct op_field *f, void *p, uint32_t n)
{
	void **const elements = p;

	if (n > c->w.rest.n)
		return malformed(c, f);
	*elements = mem_array(n, f->list->size);
	if (!*elements)
		return slu_fail(c->err, SLU_ENOMEM, "out of memory");
	set_count(c->into, f->list->count, n);
	return 0;
}

static bool
fits(const struct codec *c, const struct op_list *list, uint32_t n)
{
	const uint32_t room = count_at(c->into, list->same ? list->count : list->room);

	return !c->into->rc && (list->same ? n == room : n <= room);
}

static int
get_list(struct codec *c, const struct op_field *f, void *p)
{
	const struct op_list *const list = f->list;
	const uint32_t n = (uint32_t)wire_get(&c->w, OP_CODEC_LIST);
	char *elements;
	int rc = 0;

	if (n == 0 || (c->answer && !fits(c, list, n)))
		return malformed(c, f);
	if (!c->answer)
		rc = make_list(c, f, p, n);
	elements = *(char **)p;
	if (!rc && !elements) /* the question has no array of this list */
		return malformed(c, f);
	for (uint32_t i = 0; !rc && i < n; i++) {
		if (c->answer && !list->same) {
			memset(elements + i * list->size, 0, list->size);
			set_count(c->into, list->count, i + 1); /* for op_unpin */
		}
		rc = op_get_fields(c, list->fields, list->n_fields, elements + i * list->size, true);
	}
	return rc;
}

/* ---- Fields ---- */

/* clang-format off */
static const struct kind_ops kinds[FIELD_KINDS] = {
	[FIELD_U8]      = { is_zero_number, put_number, get_number },
	[FIELD_U16]     = { is_zero_number, put_number, get_number },
	[FIELD_U32]     = { is_zero_number, put_number, get_number },
	[FIELD_U64]     = { is_zero_number, put_number, get_number },
	[FIELD_BOOL]    = { is_zero_number, put_number, get_number },
	[FIELD_I32]     = { is_zero_number, put_signed, get_signed },
	[FIELD_TIME]    = { is_zero_number, put_signed, get_signed },
	[FIELD_VERSION] = { is_no_version, put_signed, get_version },
	[FIELD_SLICE]   = { is_no_slice, put_slice, get_slice },
	[FIELD_TEXT]    = { is_empty_text, put_text, get_text },
	[FIELD_BYTES]   = { is_zero_bytes, put_bytes, get_bytes },
	[FIELD_U32S]    = { is_zero_bytes, put_u32s, get_u32s },
	[FIELD_U64S]    = { is_zero_bytes, put_u64s, get_u64s },
	[FIELD_HOLDER]   = { is_null, put_holder, get_holder },
	[FIELD_LIMIT]   = { is_null, put_limit, get_limit },
	[FIELD_HELD_BY]  = { is_no_held_by, put_held_by, get_held_by },
	[FIELD_REF]     = { is_no_ref, put_ref, get_ref },
	[FIELD_LIST]    = { is_empty_list, put_list, get_list },
};
/* clang-format on */

void
op_put_fields(struct codec *c, const struct op_field *fields, unsigned n, const void *base)
{
	for (unsigned i = 0; i < n; i++) {
		const struct op_field *const f = &fields[i];
		const void *const p = (const char *)base + f->at;

		if (!applies(c, f) || kinds[f->kind].is_zero(c, f, p))
			continue;
		buf_putc(c->out, (char)f->tag);
		kinds[f->kind].put(c, f, p);
	}
}

static int
unknown(struct codec *c, unsigned tag)
{
	return slu_fail(c->err, SLU_EINVAL, "unknown field %u of %s from another node", tag,
			op_verb_name(c->into->verb));
}

/* What the message does not have is zero; pointers to lists and to room stay. */
static void
clear(const struct codec *c, const struct op_field *f, void *p)
{
	if (f->kind == FIELD_HELD_BY && c->answer && *(char **)p)
		**(char **)p = '\0';
	else if (f->kind != FIELD_LIST && f->kind != FIELD_HELD_BY && f->kind != FIELD_VERSION)
		memset(p, 0, f->size);
}

/* An answer has every element of its question. */
static bool
is_missing(const struct codec *c, const struct op_field *f)
{
	return f->kind == FIELD_LIST && f->list->same && c->answer && !c->into->rc &&
	       count_at(c->into, f->list->count) > 0;
}

int
op_get_fields(struct codec *c, const struct op_field *fields, unsigned n, void *base, bool ends)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < n; i++) {
		const struct op_field *const f = &fields[i];

		if (!applies(c, f))
			continue;
		clear(c, f, (char *)base + f->at);
		if (c->w.rest.n == 0 || (uint8_t)c->w.rest.p[0] != f->tag) {
			rc = is_missing(c, f) ? malformed(c, f) : 0;
			continue;
		}
		slice_skip(&c->w.rest, 1);
		rc = kinds[f->kind].get(c, f, (char *)base + f->at);
		if (!rc && c->w.failed)
			rc = malformed(c, f);
	}
	if (rc || (!ends && c->w.rest.n == 0))
		return rc;
	if (ends && wire_get(&c->w, 0) == 0 && !c->w.failed)
		return 0;
	return unknown(c, c->w.rest.n ? (uint8_t)c->w.rest.p[0] : 0);
}
