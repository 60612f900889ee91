#include "engine/message.h"

#include "base/hash.h"
#include "base/le.h"

#include <assert.h>
#include <inttypes.h>

enum {
	FLAG_FILE = 1
};

/* The texts of a record, in their order, and how long each may be. */
struct text {
	const char *what;
	size_t offset; /* of its slice in struct message */
	size_t min, max;
	unsigned at;    /* where its length is */
	unsigned width; /* and in how many bytes */
};

/* clang-format off */
static const struct text texts[] = {
	{ "namespace",       offsetof(struct message, space),       1, MESSAGE_NAME_MAX,        72, 1 },
	{ "queue",           offsetof(struct message, queue),       1, MESSAGE_NAME_MAX,        73, 1 },
	{ "key",             offsetof(struct message, key),         0, MESSAGE_KEY_MAX,         74, 2 },
	{ "idempotency key", offsetof(struct message, idem),        0, MESSAGE_KEY_MAX,         76, 2 },
	{ "correlation id",  offsetof(struct message, correlation), 0, MESSAGE_CORRELATION_MAX, 78, 1 },
	{ "content type",    offsetof(struct message, type),        0, MESSAGE_TYPE_MAX,        79, 1 },
	{ "attributes",      offsetof(struct message, attributes),  0, MESSAGE_ATTRIBUTES_MAX,  80, 4 },
	{ "trace",           offsetof(struct message, trace),       0, MESSAGE_TRACE_MAX,       88, 2 },
};
/* clang-format on */

enum {
	TEXTS = sizeof(texts) / sizeof(texts[0]),
	TRACE = TEXTS - 1, /* the last of them, in version 2 alone */
	TRACE_LENGTH = 2   /* bytes of its length */
};

static struct slice
text_get(const struct message *m, unsigned i)
{
	return *(const struct slice *)((const char *)m + texts[i].offset);
}

static void
text_set(struct message *m, unsigned i, struct slice s)
{
	*(struct slice *)(void *)((char *)m + texts[i].offset) = s;
}

static int
check_text(const struct message *m, unsigned i, struct slu_err *err)
{
	const struct text *t = &texts[i];
	const size_t n = text_get(m, i).n;

	if (n < t->min)
		return slu_fail(err, SLU_EINVAL, "a message needs a %s", t->what);
	if (n > t->max)
		return slu_fail(err, SLU_ETOOBIG, "a %s of %zu bytes: at most %zu", t->what,
				n, t->max);
	return 0;
}

uint64_t
message_digest(struct slice payload)
{
	static const struct hash_key key = { 0x736c75696365, 0x696465 }; /* written to disk */
	const uint64_t h = hash_keyed(&key, payload.p ? payload.p : "", payload.n);

	return h ? h : 1;
}

int
message_check(const struct message *m, struct slu_err *err)
{
	int rc;

	for (unsigned i = 0; i < TEXTS; i++) {
		rc = check_text(m, i, err);
		if (rc)
			return rc;
	}
	if (m->payload.n > MESSAGE_PAYLOAD_MAX)
		return slu_fail(err, SLU_ETOOBIG, "a payload of %zu bytes: at most %d",
				m->payload.n, MESSAGE_PAYLOAD_MAX);
	if (m->trace.n && m->trace.n < MESSAGE_TRACE_PARENT)
		return slu_fail(err, SLU_EINVAL, "a trace without a whole traceparent");
	if (m->file && m->payload.n)
		return slu_fail(err, SLU_EINVAL, "a payload both here and in a file");
	if (m->file && m->payload_size > MESSAGE_PAYLOAD_MAX)
		return slu_fail(err, SLU_ETOOBIG, "a payload of %" PRIu64 " bytes: at most %d",
				m->payload_size, MESSAGE_PAYLOAD_MAX);
	return 0;
}

/* How long the part before the texts is, and how many of them there are. */
static size_t
fixed_size(bool traced)
{
	return traced ? MESSAGE_FIXED + TRACE_LENGTH : MESSAGE_FIXED;
}

static unsigned
n_texts(bool traced)
{
	return traced ? TEXTS : TRACE;
}

size_t
message_head(const struct message *m)
{
	size_t n = fixed_size(m->trace.n > 0);

	for (unsigned i = 0; i < TEXTS; i++)
		n += text_get(m, i).n;
	return n;
}

size_t
message_size(const struct message *m)
{
	return message_head(m) + m->payload.n;
}

static void
put_length(char *record, const struct text *t, size_t n)
{
	char *const p = record + t->at;

	if (t->width == 1)
		*p = (char)n;
	else if (t->width == 2)
		le16_put(p, (uint16_t)n);
	else
		le32_put(p, (uint32_t)n);
}

static size_t
get_length(const char *record, const struct text *t)
{
	const char *const p = record + t->at;

	if (t->width == 1)
		return (unsigned char)*p;
	return t->width == 2 ? le16_get(p) : le32_get(p);
}

static void
encode_fixed(const struct message *m, char *out)
{
	memset(out, 0, MESSAGE_FIXED);
	out[0] = m->trace.n ? MESSAGE_TRACED : MESSAGE_VERSION;
	out[1] = m->file ? FLAG_FILE : 0;
	le16_put(out + 2, m->max_attempts);
	le32_put(out + 4, (uint32_t)m->prio);
	le64_put(out + 8, m->id);
	le64_put(out + 16, m->number);
	le64_put(out + 24, (uint64_t)m->accepted);
	le64_put(out + 32, (uint64_t)m->due);
	le64_put(out + 40, (uint64_t)m->expires);
	le64_put(out + 48, (uint64_t)m->keep);
	le64_put(out + 56, m->file ? m->payload_size : m->payload.n);
	le64_put(out + 64, m->file);
	le32_put(out + 84, m->file ? m->mark : 0);
}

/* Returns where it ends. */
static char *
encode_head(const struct message *m, char *out)
{
	const bool traced = m->trace.n > 0;
	char *p = out + fixed_size(traced);

	encode_fixed(m, out);
	for (unsigned i = 0; i < n_texts(traced); i++) {
		const struct slice s = text_get(m, i);

		assert(s.n <= texts[i].max);
		put_length(out, &texts[i], s.n);
		if (s.n)
			memcpy(p, s.p, s.n);
		p += s.n;
	}
	return p;
}

void
message_encode_head(const struct message *m, char *out)
{
	(void)encode_head(m, out);
}

void
message_encode(const struct message *m, char *out)
{
	char *const p = encode_head(m, out);

	if (m->payload.n)
		memcpy(p, m->payload.p, m->payload.n);
}

static void
decode_fixed(const char *p, struct message *out)
{
	*out = (struct message){
		.max_attempts = le16_get(p + 2),
		.prio = (int32_t)le32_get(p + 4),
		.id = le64_get(p + 8),
		.number = le64_get(p + 16),
		.accepted = (slu_time)le64_get(p + 24),
		.due = (slu_time)le64_get(p + 32),
		.expires = (slu_time)le64_get(p + 40),
		.keep = (slu_time)le64_get(p + 48),
		.payload_size = le64_get(p + 56),
		.file = le64_get(p + 64),
		.mark = le32_get(p + 84),
	};
}

/* M1, of the fixed part. */
static int
check_fixed(const char *p, const struct message *m, struct slu_err *err)
{
	if (p[0] != MESSAGE_VERSION && p[0] != MESSAGE_TRACED)
		return slu_fail(err, SLU_ECORRUPT, "a message record of version %d: this is %d",
				(unsigned char)p[0], MESSAGE_TRACED);
	if (p[1] != (m->file ? FLAG_FILE : 0) || (m->mark && !m->file))
		return slu_fail(err, SLU_ECORRUPT, "a message record with unknown flags");
	if (m->accepted < 0 || m->due < 0 || m->expires < 0 || m->keep < 0)
		return slu_fail(err, SLU_ECORRUPT, "a message record with a negative time");
	if (m->payload_size > MESSAGE_PAYLOAD_MAX)
		return slu_fail(err, SLU_ECORRUPT, "a message record with a payload of %" PRIu64,
				m->payload_size);
	return 0;
}

/* The texts begin behind the fixed part; their length is *n even if record is too
 * short for them. */
static int
decode_texts(struct slice record, struct message *out, size_t *n, struct slu_err *err)
{
	const bool traced = record.p[0] == MESSAGE_TRACED;
	size_t at = fixed_size(traced);

	for (unsigned i = 0; i < n_texts(traced); i++) {
		const struct text *t = &texts[i];
		const size_t length = get_length(record.p, t);
		const size_t min = i == TRACE ? MESSAGE_TRACE_PARENT : t->min;

		if (length < min || length > t->max)
			return slu_fail(err, SLU_ECORRUPT,
					"a message record with a %s of %zu bytes", t->what,
					length);
		if (at + length <= record.n)
			text_set(out, i, (struct slice){ record.p + at, length });
		at += length;
	}
	*n = at;
	return 0;
}

static int
fail_short(struct slice head, size_t n, struct message *out, struct slu_err *err)
{
	*out = (struct message){ .payload_size = n };
	return slu_fail(err, SLU_ETOOBIG, "%zu of %zu bytes of a message record", head.n, n);
}

/* n: how long the head is. */
static int
decode_head(struct slice head, struct message *out, size_t *n, struct slu_err *err)
{
	int rc;

	if (head.n < MESSAGE_FIXED)
		return fail_short(head, MESSAGE_FIXED, out, err);
	decode_fixed(head.p, out);
	rc = check_fixed(head.p, out, err);
	if (!rc && head.n < fixed_size(head.p[0] == MESSAGE_TRACED))
		return fail_short(head, fixed_size(true), out, err);
	if (!rc)
		rc = decode_texts(head, out, n, err);
	if (rc)
		return rc;
	return *n > head.n ? fail_short(head, *n, out, err) : 0;
}

int
message_decode_head(struct slice head, struct message *out, struct slu_err *err)
{
	size_t n;

	return decode_head(head, out, &n, err);
}

int
message_decode(struct slice record, struct message *out, struct slu_err *err)
{
	size_t head, payload;
	int rc;

	rc = decode_head(record, out, &head, err);
	if (rc == SLU_ETOOBIG)
		return slu_fail(err, SLU_ECORRUPT, "a message record cut off at %zu bytes",
				record.n);
	if (rc)
		return rc;
	payload = out->file ? 0 : out->payload_size;
	if (record.n - head != payload)
		return slu_fail(err, SLU_ECORRUPT,
				"a message record of %zu bytes with a payload of %zu",
				record.n, payload);
	out->payload = (struct slice){ record.p + head, payload };
	return 0;
}
