#include "engine/log/record.h"

#include "base/le.h"
#include "core/ledger/ledger.h"
#include "engine/attempts.h"

#include <assert.h>

enum kind {
	FIELD_END,
	FIELD_NUMBER, /* `width` bytes, the same in memory */
	FIELD_BOOL,
	FIELD_ENUM,   /* one byte, an enum in memory */
	FIELD_MORE,   /* only of a policy: a number that is not written if it is 0 */
	FIELD_CHARS,  /* only of a policy: 1 to `max` bytes, with a NUL in memory; not written if empty */
	FIELD_NAME,   /* length in one byte, then the bytes; not empty */
	FIELD_TEXT16, /* length in two bytes, then the bytes; not empty */
	FIELD_MAYBE,  /* length in two bytes, then the bytes; may be empty */
	FIELD_BYTES,  /* `width` bytes */
	FIELD_TAGS,   /* the rest of the record: the fields of a policy, see tags */
	FIELD_REST,   /* the rest of the record: text, may be empty */
	FIELD_DOCS,   /* the rest of the record: the documents of a key */
	FIELD_BATCH,  /* the rest of the record: the content of a batch */
	FIELD_TRIED   /* the rest of the record: attempts and the last error */
};

struct field {
	const char *name;
	enum kind kind;
	uint8_t width;
	size_t at; /* in struct logengine_entry */
	uint32_t max;
};

#define AT(member)      offsetof(struct logengine_entry, member)
#define SIZE_OF(member) sizeof(((struct logengine_entry *)0)->member)

/* clang-format off */
#define NUMBER(name, member)    { name, FIELD_NUMBER, SIZE_OF(member), AT(member), 0 }
#define BOOL(name, member)      { name, FIELD_BOOL, 1, AT(member), 1 }
#define ENUM(name, member, max) { name, FIELD_ENUM, 1, AT(member), max }
#define CHARS(name, member)     { name, FIELD_CHARS, 0, AT(member), SIZE_OF(member) - 1 }
#define MORE(name, member)      { name, FIELD_MORE, SIZE_OF(member), AT(member), 0 }
#define FLAG(name, member)      { name, FIELD_MORE, 1, AT(member), 1 }
#define NAME(name, member)      { name, FIELD_NAME, 1, AT(member), MESSAGE_NAME_MAX }
#define KEY(name, member)       { name, FIELD_TEXT16, 2, AT(member), MESSAGE_KEY_MAX }
#define MAYBE(name, member, max) { name, FIELD_MAYBE, 2, AT(member), max }
#define BYTES(name, member)     { name, FIELD_BYTES, SIZE_OF(member), AT(member), 0 }
#define REST(name)              { name, FIELD_REST, 0, AT(text), 0 }
#define BATCH(name)             { name, FIELD_BATCH, 0, AT(text), 0 }
#define ATTEMPTS                { "attempts", FIELD_TRIED, 0, AT(text), 0 }
#define ID                      NUMBER("id", change.id)
#define QUEUE                   NAME("namespace", space), NAME("queue", queue)
#define POLICY \
	QUEUE, \
	NUMBER("lease", policy.lease), \
	NUMBER("max_attempts", policy.max_attempts), \
	ENUM("retry", policy.retry.kind, SLU_BACKOFF_NONE), \
	ENUM("jitter", policy.retry.jitter, SLU_JITTER_FULL), \
	NUMBER("retry_base", policy.retry.base), \
	NUMBER("retry_max", policy.retry.max), \
	NUMBER("ttl", policy.ttl), \
	NUMBER("max_depth", policy.max_depth), \
	NUMBER("warn_depth", policy.warn_depth), \
	NUMBER("window", policy.window), \
	NUMBER("dlq_retention", policy.dlq_retention), \
	NUMBER("dlq_max", policy.dlq_max), \
	BOOL("require_lease", policy.require_lease), \
	BOOL("paused", policy.paused)
#define RESTORE \
	ID, NUMBER("number", change.number), NUMBER("due", change.due), \
	NUMBER("expires", change.expires), NUMBER("token", change.token), \
	NUMBER("until", change.until), NUMBER("claimed", change.claimed), \
	NUMBER("attempts", change.attempts), NUMBER("failures", change.failures), \
	NUMBER("state", change.state), NUMBER("flags", change.flags), \
	NUMBER("reason", change.reason)
#define FIELDS(...) \
	((const struct field[]){ __VA_ARGS__ __VA_OPT__(,) { .kind = FIELD_END } })
/* clang-format on */

/* LOGENGINE_POLICY_FIELDS: each field is a tag (1 byte), a width (1 byte) and a value. Tags are
 * never used again. A missing field has its default. A newer version wrote a tag that is not
 * in this table. */
static const struct field tags[] = {
	[1] = NUMBER("lease", policy.lease),
	[2] = NUMBER("max_attempts", policy.max_attempts),
	[3] = ENUM("retry", policy.retry.kind, SLU_BACKOFF_NONE),
	[4] = ENUM("jitter", policy.retry.jitter, SLU_JITTER_FULL),
	[5] = NUMBER("retry_base", policy.retry.base),
	[6] = NUMBER("retry_max", policy.retry.max),
	[7] = NUMBER("ttl", policy.ttl),
	[8] = NUMBER("max_depth", policy.max_depth),
	[9] = NUMBER("warn_depth", policy.warn_depth),
	[10] = NUMBER("window", policy.window),
	[11] = NUMBER("dlq_retention", policy.dlq_retention),
	[12] = NUMBER("dlq_max", policy.dlq_max),
	[13] = BOOL("require_lease", policy.require_lease),
	[14] = BOOL("paused", policy.paused),
	[15] = NUMBER("max_rate", policy.max_rate),
	[16] = NUMBER("burst", policy.burst),
	[17] = BOOL("strict", policy.strict),
	[18] = CHARS("share_weights", policy.share_weights),
	[19] = MORE("concurrency", policy.concurrency),
	[20] = MORE("share_concurrency", policy.share_concurrency),
	[21] = MORE("rate", policy.rate),
	[22] = MORE("rate_burst", policy.rate_burst),
	[23] = MORE("share_rate", policy.share_rate),
	[24] = MORE("share_rate_burst", policy.share_rate_burst),
	[25] = MORE("key_rate", policy.key_rate),
	[26] = MORE("key_rate_burst", policy.key_rate_burst),
	[27] = CHARS("rules", policy.rules),
	[40] = CHARS("dead_letter_queue", policy.dead_letter_queue),
	[41] = MORE("max_runtime", policy.max_runtime),
	[42] = CHARS("limit_attribute", policy.limit_attribute),
	[43] = MORE("attribute_concurrency", policy.attribute_concurrency),
	[44] = MORE("attribute_rate", policy.attribute_rate),
	[45] = MORE("attribute_rate_burst", policy.attribute_rate_burst),
	[46] = CHARS("breakers", policy.breakers),
	[47] = MORE("paused_until", policy.pause.until),
	[48] = CHARS("pause_reason", policy.pause.reason),
	[49] = CHARS("paused_by", policy.pause.by),
	[50] = FLAG("draining", policy.draining),
	[51] = MORE("warn_age", policy.warn_age),
	[52] = CHARS("tags", policy.tags),
};

enum {
	TAGS = sizeof tags / sizeof tags[0],
	LATER_TAGS = 17 /* from here on, the older types of a policy lack the setting */
};

struct record_row {
	const char *name;
	enum change_kind kind;
	const struct field *fields; /* NULL = the body is the record of a message */
};

/* clang-format off */
static const struct record_row types[LOGENGINE_TYPES] = {
	[LOGENGINE_ACCEPT] = { "accept", CHANGE_ACCEPT, NULL },
	[LOGENGINE_CLAIM] = { "claim", CHANGE_CLAIM, FIELDS(
		ID, NUMBER("token", change.token), NUMBER("until", change.until)) },
	[LOGENGINE_EXTEND] = { "extend", CHANGE_EXTEND, FIELDS(
		ID, NUMBER("until", change.until)) },
	[LOGENGINE_RETURN] = { "return", CHANGE_RETURN, FIELDS(ID) },
	[LOGENGINE_RETRY] = { "retry", CHANGE_RETRY, FIELDS(
		ID, NUMBER("due", change.due), BOOL("failed", change.failed),
		BOOL("expired", change.expired), REST("error")) },
	[LOGENGINE_DIE] = { "die", CHANGE_DIE, FIELDS(
		ID, NUMBER("reason", change.reason), BOOL("failed", change.failed),
		BOOL("expired", change.expired), REST("error")) },
	[LOGENGINE_DONE] = { "done", CHANGE_DONE, FIELDS(ID) },
	[LOGENGINE_KEEP] = { "keep", CHANGE_DONE, FIELDS(
		ID, NUMBER("remember", change.remember), NUMBER("keep", change.keep),
		QUEUE, REST("result")) },
	[LOGENGINE_REDRIVE] = { "redrive", CHANGE_REDRIVE, FIELDS(
		ID, NUMBER("number", change.number)) },
	[LOGENGINE_PURGE] = { "purge", CHANGE_PURGE, FIELDS(
		NUMBER("number", change.number), NUMBER("remember", change.remember),
		QUEUE) },
	[LOGENGINE_POLICY] = { "policy", CHANGE_POLICY, FIELDS(POLICY) },
	[LOGENGINE_CEILING] = { "ceiling", CHANGE_NONE, FIELDS(
		NUMBER("counter", change.number), NUMBER("highest_id", highest)) },
	[LOGENGINE_OPENED] = { "opened", CHANGE_OPENED, FIELDS() },
	[LOGENGINE_CLOSED] = { "closed", CHANGE_COUNTER, FIELDS(
		NUMBER("counter", change.number), NUMBER("highest_id", highest)) },
	[LOGENGINE_UNDO] = { "undo", CHANGE_DONE, FIELDS(ID) },
	[LOGENGINE_MESSAGE] = { "message", CHANGE_NONE, NULL },
	[LOGENGINE_RESTORE] = { "restore", CHANGE_RESTORE, FIELDS(RESTORE, REST("error")) },
	[LOGENGINE_REMEMBER] = { "remember", CHANGE_REMEMBER, FIELDS(
		ID, NUMBER("remember", change.remember), QUEUE,
		KEY("idempotency_key", idem)) },
	[LOGENGINE_RESULT] = { "result", CHANGE_RESULT, FIELDS(
		ID, NUMBER("keep", change.keep), QUEUE, REST("result")) },
	[LOGENGINE_POLICY_RATED] = { "policy_rated", CHANGE_POLICY, FIELDS(
		POLICY, NUMBER("max_rate", policy.max_rate),
		NUMBER("burst", policy.burst)) },
	[LOGENGINE_ASIDE] = { "aside", CHANGE_QUARANTINE, FIELDS(ID) },
	[LOGENGINE_SPELLING] = { "spelling", CHANGE_NONE, FIELDS(QUEUE) },
	[LOGENGINE_LOCK] = { "lock", CHANGE_NONE, FIELDS(
		MAYBE("namespace", lock.lock.space, MESSAGE_NAME_MAX),
		MAYBE("key", lock.lock.key, LOCK_KEY_MAX),
		NUMBER("id", lock.lock.id), NUMBER("token", lock.lock.token),
		NUMBER("until", lock.lock.until),
		NUMBER("version", lock.lock.version),
		NUMBER("updated", lock.lock.updated),
		NUMBER("known", lock.lock.known), NUMBER("flags", lock_flags),
		BYTES("transaction", lock.lock.txn),
		MAYBE("owner", lock.lock.holder, LOCK_HOLDER_MAX),
		{ "documents", FIELD_DOCS, 0, AT(text), 0 }) },
	[LOGENGINE_DOCUMENT] = { "document", CHANGE_NONE, NULL },
	[LOGENGINE_MARK] = { "mark", CHANGE_MARK, FIELDS(
		QUEUE, NUMBER("epoch", move.epoch), REST("lives")) },
	[LOGENGINE_TAKE] = { "take", CHANGE_TAKE, FIELDS(
		QUEUE, NUMBER("batch", move.batch),
		ENUM("what", move.what, BATCH_KINDS - 1), BATCH("bytes")) },
	[LOGENGINE_UNTAKE] = { "untake", CHANGE_UNTAKE, FIELDS(
		QUEUE, NUMBER("batch", move.batch)) },
	[LOGENGINE_DROP] = { "drop", CHANGE_DROP, FIELDS(
		QUEUE, NUMBER("batch", move.batch),
		ENUM("what", move.what, BATCH_KINDS - 1), BATCH("bytes")) },
	[LOGENGINE_GIVEN] = { "given", CHANGE_GIVEN, FIELDS(
		QUEUE, NUMBER("batch", move.batch), NUMBER("counter", change.number),
		REST("giver")) },
	[LOGENGINE_TAKEN] = { "taken", CHANGE_TAKE, FIELDS(
		QUEUE, NUMBER("batch", move.batch),
		ENUM("what", move.what, BATCH_KINDS - 1),
		MAYBE("for", receiver, LEDGER_SHARD - 1), BATCH("bytes")) },
	[LOGENGINE_REFUSED] = { "refused", CHANGE_REFUSE, FIELDS(
		QUEUE, NUMBER("batch", move.batch), REST("giver")) },
	[LOGENGINE_CLAIM_OWNED] = { "claim_owned", CHANGE_CLAIM, FIELDS(
		ID, NUMBER("token", change.token), NUMBER("until", change.until),
		REST("owner")) },
	[LOGENGINE_SPARE] = { "spare", CHANGE_SPARE, FIELDS(ID) },
	[LOGENGINE_RESTORE_OWNED] = { "restore_owned", CHANGE_RESTORE, FIELDS(
		RESTORE, NAME("owner", holder), REST("error")) },
	[LOGENGINE_FORGET] = { "forget", CHANGE_FORGET, FIELDS(QUEUE) },
	[LOGENGINE_POLICY_FIELDS] = { "policy_fields", CHANGE_POLICY, FIELDS(
		QUEUE, { "fields", FIELD_TAGS, 0, 0, 0 }) },
	[LOGENGINE_DIGEST] = { "digest", CHANGE_DIGEST, FIELDS(
		ID, NUMBER("digest", change.digest)) },
	[LOGENGINE_INTAKE] = { "intake", CHANGE_INTAKE, FIELDS(
		BYTES("source", intake.source), NUMBER("batch", intake.batch),
		NUMBER("last", intake.last), NUMBER("messages", intake.count)) },
	[LOGENGINE_HOLD] = { "hold", CHANGE_HOLD, FIELDS(
		QUEUE, NUMBER("scope", change.scope), NUMBER("until", change.until),
		MAYBE("name", change.share, MESSAGE_KEY_MAX)) },
	[LOGENGINE_REPLACE] = { "replace", CHANGE_REPLACE, NULL },
	[LOGENGINE_PRIORITY] = { "priority", CHANGE_PRIORITY, FIELDS(ID, NUMBER("priority", change.prio)) },
	[LOGENGINE_BREAKER] = { "breaker", CHANGE_BREAKER, FIELDS(
		QUEUE, NUMBER("scope", change.scope), NUMBER("until", change.until),
		NAME("breaker", change.value), MAYBE("name", change.share, MESSAGE_KEY_MAX)) },
	[LOGENGINE_RETRY_ATTEMPTS] = { "retry_attempts", CHANGE_RETRY, FIELDS(
		ID, NUMBER("due", change.due), BOOL("failed", change.failed),
		BOOL("expired", change.expired), ATTEMPTS) },
	[LOGENGINE_DIE_ATTEMPTS] = { "die_attempts", CHANGE_DIE, FIELDS(
		ID, NUMBER("reason", change.reason), BOOL("failed", change.failed),
		BOOL("expired", change.expired), ATTEMPTS) },
	[LOGENGINE_RESTORE_ATTEMPTS] = { "restore_attempts", CHANGE_RESTORE, FIELDS(
		RESTORE, MAYBE("owner", holder, HOLDER_MAX), ATTEMPTS) },
	[LOGENGINE_CANCEL] = { "cancel", CHANGE_CANCEL, FIELDS(ID) },
	[LOGENGINE_DUE] = { "due", CHANGE_DUE, FIELDS(ID, NUMBER("due", change.due)) },
};
/* clang-format on */

const char *
logengine_type_name(uint8_t type)
{
	return type < LOGENGINE_TYPES ? types[type].name : NULL;
}

/* Whether a setting differs from its default, which is zeros. */
static bool
is_set(const struct field *f, const struct policy *p)
{
	const char *const value = (const char *)p + (f->at - offsetof(struct logengine_entry, policy));
	bool some = false;

	for (unsigned i = 0; i < (f->kind == FIELD_CHARS ? 1 : f->width); i++)
		some |= value[i] != 0;
	return some;
}

enum logengine_type
logengine_policy_type(const struct policy *p)
{
	for (unsigned tag = LATER_TAGS; tag < TAGS; tag++)
		if (tags[tag].kind && is_set(&tags[tag], p))
			return LOGENGINE_POLICY_FIELDS;
	return p->max_rate ? LOGENGINE_POLICY_RATED : LOGENGINE_POLICY;
}

void
logengine_type_failure(struct logengine_entry *entry)
{
	static const uint8_t with[CHANGE_KINDS] = {
		[CHANGE_RETRY] = LOGENGINE_RETRY_ATTEMPTS,
		[CHANGE_DIE] = LOGENGINE_DIE_ATTEMPTS,
		[CHANGE_RESTORE] = LOGENGINE_RESTORE_ATTEMPTS,
	};

	if (with[entry->change.kind] && attempts_marked(entry->text))
		entry->type = (enum logengine_type)with[entry->change.kind];
}

/* ---- Numbers ---- */

static uint64_t
load(const struct field *f, const void *entry)
{
	const void *p = (const char *)entry + f->at;
	enum slu_jitter number; /* as wide as any enum */

	_Static_assert(sizeof(enum slu_jitter) == sizeof(enum slu_backoff_kind), "enums");
	_Static_assert(sizeof(enum slu_jitter) == sizeof(enum batch_kind), "enums");
	if (f->kind == FIELD_ENUM) {
		memcpy(&number, p, sizeof number);
		return (uint64_t)number;
	}
	switch (f->width) {
	case 1:
		return *(const uint8_t *)p;
	case 2:
		return *(const uint16_t *)p;
	case 4:
		return *(const uint32_t *)p;
	default:
		return *(const uint64_t *)p;
	}
}

static void
store(const struct field *f, void *entry, uint64_t v)
{
	void *p = (char *)entry + f->at;
	const enum slu_jitter number = (enum slu_jitter)v;

	if (f->kind == FIELD_ENUM) {
		memcpy(p, &number, sizeof number);
		return;
	}
	switch (f->width) {
	case 1:
		*(uint8_t *)p = (uint8_t)v;
		break;
	case 2:
		*(uint16_t *)p = (uint16_t)v;
		break;
	case 4:
		*(uint32_t *)p = (uint32_t)v;
		break;
	default:
		*(uint64_t *)p = v;
	}
}

static struct slice *
slice_at(const struct field *f, const struct logengine_entry *entry)
{
	return (struct slice *)((const char *)entry + f->at);
}

/* ---- Writing ---- */

/* Writes 8 bytes, which avoids a copy of variable length. The next field overwrites the bytes behind `width`. */
static inline char *
put_number(char *p, uint64_t v, unsigned width)
{
	le64_put(p, v);
	return p + width;
}

static char *
put_chars(char *p, unsigned tag, const char *text)
{
	const size_t n = strlen(text);

	if (n == 0)
		return p;
	p = put_number(p, tag, 1);
	p = put_number(p, n, 1);
	memcpy(p, text, n);
	return p + n;
}

static char *
put_tags(char *p, const struct logengine_entry *entry)
{
	for (unsigned tag = 1; tag < TAGS; tag++) {
		const struct field *f = &tags[tag];

		if (!f->kind) /* no field has this tag */
			continue;
		if (f->kind == FIELD_MORE && load(f, entry) == 0)
			continue;
		if (f->kind == FIELD_CHARS) {
			p = put_chars(p, tag, (const char *)entry + f->at);
			continue;
		}
		p = put_number(p, tag, 1);
		p = put_number(p, f->width, 1);
		p = put_number(p, load(f, entry), f->width);
	}
	return p;
}

static char *
put_field(char *p, const struct field *f, const struct logengine_entry *entry)
{
	const struct slice *s;

	if (f->kind < FIELD_NAME)
		return put_number(p, load(f, entry), f->width);
	if (f->kind == FIELD_TAGS)
		return put_tags(p, entry);
	if (f->kind == FIELD_BYTES)
		return (char *)memcpy(p, (const char *)entry + f->at, f->width) + f->width;
	s = slice_at(f, entry);
	assert(s->n <= f->max);
	p = put_number(p, s->n, f->width);
	if (s->n)
		memcpy(p, s->p, s->n);
	return p + s->n;
}

size_t
logengine_encode_step(const struct change *c, char out[static LOGENGINE_STEP_MAX])
{
	assert(c->kind == CHANGE_CLAIM || c->kind == CHANGE_DONE);
	le64_put(out, c->id);
	if (c->kind == CHANGE_DONE)
		return 8;
	le64_put(out + 8, c->token);
	le64_put(out + 16, (uint64_t)c->until);
	return 24;
}

void
logengine_encode(const struct logengine_entry *entry, struct logengine_bytes *out)
{
	const struct record_row *row = &types[entry->type];
	char *p = out->fixed;

	assert(row->fields);
	out->n = 1;
	for (const struct field *f = row->fields; f->kind; f++)
		if (f->kind >= FIELD_REST)
			out->parts[out->n++] = entry->text;
		else
			p = put_field(p, f, entry);
	out->parts[0] = (struct slice){ out->fixed, (size_t)(p - out->fixed) };
	out->size = out->parts[0].n + (out->n > 1 ? entry->text.n : 0);
}

/* ---- Reading ---- */

static bool
take_number(struct slice *body, unsigned width, uint64_t *out)
{
	char bytes[8] = { 0 };

	if (body->n < width)
		return false;
	memcpy(bytes, body->p, width);
	*out = le64_get(bytes);
	slice_skip(body, width);
	return true;
}

static bool
take_slice(struct slice *body, uint64_t n, struct slice *out)
{
	if (body->n < n)
		return false;
	*out = (struct slice){ body->p, (size_t)n };
	slice_skip(body, (size_t)n);
	return true;
}

static bool
take_bytes(struct slice *body, unsigned width, char *out)
{
	struct slice bytes;

	if (!take_slice(body, width, &bytes))
		return false;
	memcpy(out, bytes.p, width);
	return true;
}

/* A text without a NUL inside. */
static bool
take_chars(struct slice *body, uint64_t n, const struct field *f, struct logengine_entry *out)
{
	char *const text = (char *)out + f->at;
	struct slice s;

	if (n == 0 || n > f->max || !take_slice(body, n, &s) || memchr(s.p, 0, s.n))
		return false;
	memcpy(text, s.p, s.n);
	text[s.n] = '\0';
	return true;
}

static bool
take_value(struct slice *body, uint64_t width, const struct field *f, struct logengine_entry *out)
{
	uint64_t v;

	if (f->kind == FIELD_CHARS)
		return take_chars(body, width, f, out);
	if (width != f->width || !take_number(body, f->width, &v) || (f->max && v > f->max))
		return false;
	store(f, out, v);
	return true;
}

/* Returns false if a field is invalid. Stops at a tag of a newer version, with the rest in
 * body. */
static bool
take_tags(struct slice *body, struct logengine_entry *out)
{
	while (body->n) {
		uint64_t tag, width;

		if (!take_number(body, 1, &tag) || tag == 0)
			return false;
		if (tag >= TAGS || !tags[tag].kind)
			return true; /* the rest of the body stays */
		if (!take_number(body, 1, &width) || !take_value(body, width, &tags[tag], out))
			return false;
	}
	return true;
}

/* Attempts, and nothing else: a plain error has an older type. */
static bool
is_tried(struct slice text)
{
	struct attempts all;

	return attempts_marked(text) && attempts_read(text, &all);
}

static bool
take_field(struct slice *body, const struct field *f, struct logengine_entry *out)
{
	uint64_t v;

	if (f->kind == FIELD_TRIED && !is_tried(*body))
		return false;
	if (f->kind >= FIELD_REST)
		return take_slice(body, body->n, slice_at(f, out));
	if (f->kind == FIELD_TAGS)
		return take_tags(body, out);
	if (f->kind == FIELD_BYTES)
		return take_bytes(body, f->width, (char *)out + f->at);
	if (!take_number(body, f->width, &v) || (f->max && v > f->max))
		return false;
	if (f->kind >= FIELD_NAME)
		return (v > 0 || f->kind == FIELD_MAYBE) &&
		       take_slice(body, v, slice_at(f, out));
	store(f, out, v);
	return true;
}

static int
bad(uint8_t type, struct slu_err *err)
{
	return slu_fail(err, SLU_ECORRUPT, "invalid record of type %u (%s)",
			type, types[type].name);
}

int
logengine_decode(uint8_t type, struct slice body, struct logengine_entry *out, struct slu_err *err)
{
	const struct record_row *row = &types[type < LOGENGINE_TYPES ? type : 0];

	if (!row->name)
		return slu_fail(err, SLU_EINVAL,
				"unknown record type: %u; a newer version wrote it", type);
	out->type = type;
	out->change = (struct change){ .kind = row->kind };
	out->text = out->receiver = out->holder = (struct slice){ 0 };
	out->move = (struct change_move){ 0 };
	if (row->kind == CHANGE_POLICY)
		out->policy = policy_default; /* a KB */
	if (!row->fields)
		return message_decode(body, &out->message, err);
	for (const struct field *f = row->fields; f->kind; f++)
		if (!take_field(&body, f, out))
			return bad(type, err);
	if (row->kind == CHANGE_POLICY) {
		out->policy.retry.fn = NULL;
		out->policy.retry.arg = NULL;
		out->change.policy = &out->policy;
	}
	if (row->kind == CHANGE_INTAKE)
		out->change.intake = &out->intake;
	if (type == LOGENGINE_LOCK && !logengine_take_lock(out))
		return bad(type, err);
	if (body.n && type == LOGENGINE_POLICY_FIELDS)
		return slu_fail(err, SLU_EINVAL, "unknown field in a policy; a newer version wrote it");
	return body.n ? bad(type, err) : 0;
}

/* ---- Showing ---- */

static void
show_message(const struct message *m, logengine_show_fn *show, void *arg)
{
	const struct {
		const char *name;
		struct slice text;
	} texts[] = {
		{ "namespace", m->space },
		{ "queue", m->queue },
		{ "key", m->key },
		{ "idempotency_key", m->idem },
		{ "correlation_id", m->correlation },
		{ "share", m->share },
		{ "value", m->value },
		{ "rule", m->rule },
	};
	const struct slice none = { 0 };

	show(arg, "id", (int64_t)m->id, none);
	show(arg, "number", (int64_t)m->number, none);
	show(arg, "priority", m->prio, none);
	show(arg, "due", m->due, none);
	show(arg, "size", (int64_t)m->payload_size, none);
	if (m->file)
		show(arg, "file", (int64_t)m->file, none);
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		if (texts[i].text.n)
			show(arg, texts[i].name, 0, texts[i].text);
}

/* Shows the number of documents and the state of the key. */
static void
show_documents(const struct lock *lock, logengine_show_fn *show, void *arg)
{
	const struct lock_doc *doc = lock_doc(lock, (struct slice){ 0 });
	const struct slice none = { 0 };

	show(arg, "documents", lock->n, none);
	if (!doc)
		return;
	show(arg, "etag", (int64_t)doc->etag, none);
	show(arg, "staged", (int64_t)doc->staged, none);
	show(arg, "removed", doc->removed, none);
}

static void
show_tags(const struct logengine_entry *entry, logengine_show_fn *show, void *arg)
{
	for (unsigned tag = 1; tag < TAGS; tag++)
		if (tags[tag].kind)
			show(arg, tags[tag].name, (int64_t)load(&tags[tag], entry), (struct slice){ 0 });
}

/* Shows the number of attempts and the last error. */
static void
show_attempts(const struct logengine_entry *entry, logengine_show_fn *show, void *arg)
{
	struct attempts all;

	(void)attempts_read(entry->text, &all);
	show(arg, "attempts_kept", all.n, (struct slice){ 0 });
	if (all.error.n)
		show(arg, "error", 0, all.error);
}

void
logengine_show(const struct logengine_entry *entry, logengine_show_fn *show, void *arg)
{
	const struct record_row *row = &types[entry->type];

	if (!row->fields) {
		show_message(&entry->message, show, arg);
		return;
	}
	for (const struct field *f = row->fields; f->kind; f++)
		if (f->kind == FIELD_TAGS)
			show_tags(entry, show, arg);
		else if (f->kind < FIELD_NAME)
			show(arg, f->name, (int64_t)load(f, entry), (struct slice){ 0 });
		else if (f->kind == FIELD_DOCS)
			show_documents(&entry->lock.lock, show, arg);
		else if (f->kind == FIELD_TRIED)
			show_attempts(entry, show, arg);
		else if (f->kind == FIELD_BATCH)
			show(arg, f->name, (int64_t)entry->text.n, (struct slice){ 0 });
		else if (f->kind != FIELD_BYTES && slice_at(f, entry)->n)
			show(arg, f->name, 0, *slice_at(f, entry));
}
