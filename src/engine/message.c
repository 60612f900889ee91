#include "engine/message.h"

#include "base/hash.h"
#include "base/le.h"
#include "base/time.h"

#include <assert.h>
#include <inttypes.h>

enum {
	FLAG_FILE = 1
};

/* The texts of a record, in order. */
struct text {
	const char *what;
	size_t offset; /* of the slice in struct message */
	size_t min, max;
	unsigned at;    /* offset of its length in the record */
	unsigned width; /* bytes of that length */
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
	IDEM = 3,                        /* the idempotency key */
	TRACE = TEXTS - 1,               /* the last text; not in version 1 */
	LENGTH = 2,                      /* bytes of the length of the trace, and of the fields */
	FIELDS = MESSAGE_FIXED + LENGTH, /* offset of the length of the fields in version 3 */
	FIELD_HEAD = 2                   /* bytes of the tag and the length of a field */
};

enum {
	NUMBER = 8 /* bytes of a field that is a number */
};

/* The fields of version 3, by tag. */
static const struct {
	const char *what;
	size_t offset; /* of the slice in struct message, or of the number */
	size_t max;    /* bytes; 0: a number of 64 bits that is not 0 */
	uint8_t tag;
} fields[] = {
	{ "share", offsetof(struct message, share), MESSAGE_SHARE_MAX, 1 },
	{ "value", offsetof(struct message, value), MESSAGE_VALUE_MAX, 2 },
	{ "rule", offsetof(struct message, rule), MESSAGE_RULE_MAX, 10 },
	{ "source", offsetof(struct message, source), MESSAGE_NAME_MAX, 20 },
	{ "sent", offsetof(struct message, sent), 0, 21 },
	{ "reason", offsetof(struct message, reason), 0, 22 },
	{ "error", offsetof(struct message, error), MESSAGE_ERROR_MAX, 23 },
	{ "lease", offsetof(struct message, terms.lease), 0, 30 },
	{ "run", offsetof(struct message, terms.run), 0, 31 },
	{ "retry", offsetof(struct message, terms.retry), 0, 32 },
	{ "retry base", offsetof(struct message, terms.retry_base), 0, 33 },
	{ "retry max", offsetof(struct message, terms.retry_max), 0, 34 },
	{ "unique", offsetof(struct message, terms.unique), 0, 35 },
	{ "unique for", offsetof(struct message, terms.unique_for), 0, 36 },
	{ "batch", offsetof(struct message, terms.batch), 0, 50 },
};

enum {
	N_FIELDS = sizeof(fields) / sizeof(fields[0])
};

/* Unrolls a loop over the texts or the fields. Every message runs these loops; unrolled whole, they read no table. */
#define UNROLL _Pragma("GCC unroll 16")

_Static_assert((int)TEXTS <= 16 && (int)N_FIELDS <= 16, "the loops are unrolled whole");

static inline struct slice
text_get(const struct message *m, unsigned i)
{
	return *(const struct slice *)((const char *)m + texts[i].offset);
}

static inline void
text_set(struct message *m, unsigned i, struct slice s)
{
	*(struct slice *)(void *)((char *)m + texts[i].offset) = s;
}

/* The bytes of a field; n 0: the message does not have it. */
static inline struct slice
field_get(const struct message *m, unsigned i, char number[static NUMBER])
{
	const char *const p = (const char *)m + fields[i].offset;
	uint64_t v;

	if (fields[i].max)
		return *(const struct slice *)(const void *)p;
	memcpy(&v, p, sizeof v);
	if (v == 0)
		return (struct slice){ 0 };
	le64_put(number, v);
	return (struct slice){ number, NUMBER };
}

/* Returns false if the bytes are no value of the field. */
static bool
field_set(struct message *m, unsigned i, struct slice value)
{
	char *const p = (char *)m + fields[i].offset;
	uint64_t v;

	if (fields[i].max) {
		*(struct slice *)(void *)p = value;
		return value.n <= fields[i].max;
	}
	if (value.n != NUMBER)
		return false;
	v = le64_get(value.p);
	memcpy(p, &v, sizeof v);
	return v != 0 && v <= INT64_MAX;
}

/* Not 0 if the message has the field: its length, or the number. */
static inline uint64_t
field_mark(const struct message *m, unsigned i)
{
	const char *const p = (const char *)m + fields[i].offset;
	uint64_t v;

	if (fields[i].max)
		return ((const struct slice *)(const void *)p)->n;
	memcpy(&v, p, sizeof v);
	return v;
}

/* Most messages have none. */
static inline bool
has_fields(const struct message *m)
{
	uint64_t any = 0;

	UNROLL
	for (unsigned i = 0; i < N_FIELDS; i++)
		any |= field_mark(m, i);
	return any;
}

static inline size_t
field_size(const struct message *m, unsigned i)
{
	char number[NUMBER];

	return field_get(m, i, number).n;
}

/* The bytes of all fields; 0: the record has no version 3. */
static inline size_t
fields_size(const struct message *m)
{
	size_t n = 0;

	if (!has_fields(m))
		return 0;
	for (unsigned i = 0; i < N_FIELDS; i++)
		n += field_size(m, i) ? FIELD_HEAD + field_size(m, i) : 0;
	return n;
}

static int
check_text(const struct message *m, unsigned i, struct slu_err *err)
{
	const struct text *t = &texts[i];
	const size_t n = text_get(m, i).n;

	if (n < t->min)
		return slu_fail(err, SLU_EINVAL, "missing %s", t->what);
	if (n > t->max)
		return slu_fail(err, SLU_ETOOBIG, "invalid %s: %zu bytes; expected at most %zu", t->what,
				n, t->max);
	return 0;
}

static int
check_fields(const struct message *m, struct slu_err *err)
{
	for (unsigned i = 0; i < N_FIELDS; i++)
		if (fields[i].max && field_size(m, i) > fields[i].max)
			return slu_fail(err, SLU_ETOOBIG, "invalid %s: %zu bytes; expected at most %zu",
					fields[i].what, field_size(m, i), fields[i].max);
	if (!terms_valid(&m->terms))
		return slu_fail(err, SLU_EINVAL, "invalid lease, retry, max_runtime or unique of a message");
	return 0;
}

static const struct hash_key digest_key = { 0x736c75696365, 0x696465 }; /* digests are on disk */

uint64_t
message_digest(struct slice payload)
{
	const uint64_t h = hash_keyed(&digest_key, payload.p ? payload.p : "", payload.n);

	return h ? h : 1;
}

void
message_digest_begin(struct hash_stream *s)
{
	hash_begin(s, &digest_key);
}

uint64_t
message_digest_end(const struct hash_stream *s)
{
	const uint64_t h = hash_end(s);

	return h ? h : 1;
}

int
message_check(const struct message *m, struct slu_err *err)
{
	int rc;

	UNROLL
	for (unsigned i = 0; i < TEXTS; i++) {
		rc = check_text(m, i, err);
		if (rc)
			return rc;
	}
	if (m->payload.n > MESSAGE_PAYLOAD_MAX)
		return slu_fail(err, SLU_ETOOBIG, "payload too large: %zu bytes; expected at most %d",
				m->payload.n, MESSAGE_PAYLOAD_MAX);
	rc = has_fields(m) ? check_fields(m, err) : 0;
	if (rc)
		return rc;
	if (m->trace.n && m->trace.n < MESSAGE_TRACE_PARENT)
		return slu_fail(err, SLU_EINVAL, "invalid trace; expected a traceparent");
	if (m->file && m->payload.n)
		return slu_fail(err, SLU_EINVAL, "invalid message: a payload and a payload file");
	if (m->file && m->payload_size > MESSAGE_PAYLOAD_MAX)
		return slu_fail(err, SLU_ETOOBIG, "payload too large: %" PRIu64 " bytes; expected at most %d",
				m->payload_size, MESSAGE_PAYLOAD_MAX);
	return 0;
}

static unsigned
version_of(const struct message *m, size_t tagged)
{
	if (tagged)
		return MESSAGE_TAGGED;
	return m->trace.n ? MESSAGE_TRACED : MESSAGE_VERSION;
}

/* The length of the fixed part, and the number of texts. */
static size_t
fixed_size(unsigned version)
{
	return MESSAGE_FIXED + (version - 1) * LENGTH;
}

static unsigned
n_texts(unsigned version)
{
	return version == MESSAGE_VERSION ? TRACE : TEXTS;
}

size_t
message_head(const struct message *m)
{
	const size_t tagged = fields_size(m);
	size_t n = fixed_size(version_of(m, tagged)) + tagged;

	UNROLL
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
encode_fixed(const struct message *m, unsigned version, char *out)
{
	memset(out, 0, MESSAGE_FIXED);
	out[0] = (char)version;
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

/* Returns the end of what it wrote. */
static char *
encode_fields(const struct message *m, char *p)
{
	for (unsigned i = 0; i < N_FIELDS; i++) {
		char number[NUMBER];
		const struct slice s = field_get(m, i, number);

		if (!s.n)
			continue;
		p[0] = (char)fields[i].tag;
		p[1] = (char)s.n;
		memcpy(p + FIELD_HEAD, s.p, s.n);
		p += FIELD_HEAD + s.n;
	}
	return p;
}

/* The same. */
static char *
encode_head(const struct message *m, char *out)
{
	const size_t tagged = fields_size(m);
	const unsigned version = version_of(m, tagged);
	char *p = out + fixed_size(version);

	encode_fixed(m, version, out);
	if (tagged)
		le16_put(out + FIELDS, (uint16_t)tagged);
	UNROLL
	for (unsigned i = 0; i < n_texts(version); i++) {
		const struct slice s = text_get(m, i);

		assert(s.n <= texts[i].max);
		put_length(out, &texts[i], s.n);
		if (s.n)
			memcpy(p, s.p, s.n);
		p += s.n;
	}
	return tagged ? encode_fields(m, p) : p;
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

/* MESSAGE-1, of the fixed part. */
static int
check_fixed(const char *p, const struct message *m, struct slu_err *err)
{
	if (p[0] < MESSAGE_VERSION || p[0] > MESSAGE_TAGGED)
		return slu_fail(err, SLU_ECORRUPT, "a message record of version %d: this is %d",
				(unsigned char)p[0], MESSAGE_TAGGED);
	if (p[1] != (m->file ? FLAG_FILE : 0) || (m->mark && !m->file))
		return slu_fail(err, SLU_ECORRUPT, "a message record with unknown flags");
	if (m->accepted < 0 || m->due < 0 || m->expires < 0 || m->keep < 0)
		return slu_fail(err, SLU_ECORRUPT, "a message record with a negative time");
	if (m->payload_size > MESSAGE_PAYLOAD_MAX)
		return slu_fail(err, SLU_ECORRUPT, "a message record with a payload of %" PRIu64,
				m->payload_size);
	return 0;
}

/* MESSAGE-1: the tags rise, and no field is empty. */
static int
decode_fields(struct slice s, struct message *out, struct slu_err *err)
{
	unsigned i = 0;

	while (s.n > FIELD_HEAD) {
		const struct slice value = { s.p + FIELD_HEAD, (unsigned char)s.p[1] };

		while (i < N_FIELDS && fields[i].tag < (unsigned char)s.p[0])
			i++;
		if (i == N_FIELDS || fields[i].tag != (unsigned char)s.p[0] || value.n == 0 ||
		    value.n > s.n - FIELD_HEAD || !field_set(out, i, value))
			break;
		i++;
		s = (struct slice){ value.p + value.n, s.n - FIELD_HEAD - value.n };
	}
	if (s.n || !terms_valid(&out->terms))
		return slu_fail(err, SLU_ECORRUPT, "a message record with an unknown or malformed field");
	return 0;
}

/* The fields of version 3 begin at *at. */
static int
find_fields(struct slice record, struct message *out, size_t *at, struct slu_err *err)
{
	const size_t length = le16_get(record.p + FIELDS), from = *at;

	if (length == 0)
		return slu_fail(err, SLU_ECORRUPT, "a message record of version 3 without a field");
	*at += length;
	return *at <= record.n ? decode_fields((struct slice){ record.p + from, length }, out, err) : 0;
}

/* The texts begin behind the fixed part; their length is *n even if record is too
 * short for them. */
static int
decode_texts(struct slice record, struct message *out, size_t *n, struct slu_err *err)
{
	const unsigned version = (unsigned char)record.p[0];
	size_t at = fixed_size(version);

	UNROLL
	for (unsigned i = 0; i < n_texts(version); i++) {
		const struct text *t = &texts[i];
		const size_t length = get_length(record.p, t);
		const bool traced = version == MESSAGE_TRACED || length;
		const size_t min = i == TRACE && traced ? MESSAGE_TRACE_PARENT : t->min;

		if (length < min || length > t->max)
			return slu_fail(err, SLU_ECORRUPT,
					"a message record with a %s of %zu bytes", t->what,
					length);
		if (at + length <= record.n)
			text_set(out, i, (struct slice){ record.p + at, length });
		at += length;
	}
	*n = at;
	return version == MESSAGE_TAGGED ? find_fields(record, out, n, err) : 0;
}

static int
fail_short(struct slice head, size_t n, struct message *out, struct slu_err *err)
{
	*out = (struct message){ .payload_size = n };
	return slu_fail(err, SLU_ETOOBIG, "%zu of %zu bytes of a message record", head.n, n);
}

/* A message that is unique for a time is so from its acceptance on. Others have no end in time: 0. */
static void
set_unique_end(struct message *m)
{
	struct terms *const t = &m->terms;

	t->unique_end = t->unique == UNIQUE_TIME ? time_add(m->accepted, t->unique_for) : 0;
}

/* *n: how long the head is, 0 after a failure that is not SLU_ETOOBIG. */
static int
decode_head(struct slice head, struct message *out, size_t *n, struct slu_err *err)
{
	int rc;

	*n = 0;
	if (head.n < MESSAGE_FIXED)
		return fail_short(head, MESSAGE_FIXED, out, err);
	decode_fixed(head.p, out);
	rc = check_fixed(head.p, out, err);
	if (!rc && head.n < fixed_size((unsigned char)head.p[0]))
		return fail_short(head, fixed_size((unsigned char)head.p[0]), out, err);
	if (!rc)
		rc = decode_texts(head, out, n, err);
	if (rc)
		return rc;
	set_unique_end(out);
	return *n > head.n ? fail_short(head, *n, out, err) : 0;
}

uint64_t
message_id_of(struct slice record, bool *has_key)
{
	if (record.n < MESSAGE_FIXED)
		return 0;
	*has_key = le16_get(record.p + texts[IDEM].at) > 0;
	return le64_get(record.p + 8);
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
