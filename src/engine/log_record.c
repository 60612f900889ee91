#include "engine/log_record.h"

#include "base/le.h"
#include "core/ledger.h"

#include <assert.h>

enum kind {
	FIELD_END,
	FIELD_NUMBER, /* width bytes, the same in memory */
	FIELD_BOOL,
	FIELD_ENUM,   /* one byte, an enum in memory */
	FIELD_NAME,   /* length in one byte, then so many */
	FIELD_TEXT16, /* length in two bytes, then so many */
	FIELD_MAYBE,  /* the same, perhaps none */
	FIELD_TXN,    /* LOCK_TXN bytes */
	FIELD_TAGS,   /* all that is left: the fields of a policy, see tags */
	FIELD_REST,   /* what is left, perhaps nothing */
	FIELD_DOCS,   /* the same: the documents of a key */
	FIELD_BATCH   /* the same: what is set aside */
};

struct field {
	const char *name;
	enum kind kind;
	uint8_t width;
	size_t at; /* in struct log_entry */
	uint32_t max;
};

#define AT(member)      offsetof(struct log_entry, member)
#define SIZE_OF(member) sizeof(((struct log_entry *)0)->member)

/* clang-format off */
#define NUMBER(name, member)    { name, FIELD_NUMBER, SIZE_OF(member), AT(member), 0 }
#define BOOL(name, member)      { name, FIELD_BOOL, 1, AT(member), 1 }
#define ENUM(name, member, max) { name, FIELD_ENUM, 1, AT(member), max }
#define NAME(name, member)      { name, FIELD_NAME, 1, AT(member), MESSAGE_NAME_MAX }
#define KEY(name, member)       { name, FIELD_TEXT16, 2, AT(member), MESSAGE_KEY_MAX }
#define MAYBE(name, member, max) { name, FIELD_MAYBE, 2, AT(member), max }
#define REST(name)              { name, FIELD_REST, 0, AT(text), 0 }
#define BATCH(name)             { name, FIELD_BATCH, 0, AT(text), 0 }
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

/* LOG_POLICY_FIELDS: each field is its tag (1 byte), its width (1 byte) and its value. Tags
 * are never used again. A field that is not there has its default; a tag that nobody knows
 * was written by a newer version. */
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
};

enum {
	TAGS = sizeof tags / sizeof tags[0]
};

struct row {
	const char *name;
	enum change_kind kind;
	const struct field *fields; /* NULL: the body is the record of a message */
};

/* clang-format off */
static const struct row types[LOG_TYPES] = {
	[LOG_ACCEPT] = { "accept", CHANGE_ACCEPT, NULL },
	[LOG_CLAIM] = { "claim", CHANGE_CLAIM, FIELDS(
		ID, NUMBER("token", change.token), NUMBER("until", change.until)) },
	[LOG_EXTEND] = { "extend", CHANGE_EXTEND, FIELDS(
		ID, NUMBER("until", change.until)) },
	[LOG_RETURN] = { "return", CHANGE_RETURN, FIELDS(ID) },
	[LOG_RETRY] = { "retry", CHANGE_RETRY, FIELDS(
		ID, NUMBER("due", change.due), BOOL("failed", change.failed),
		BOOL("expired", change.expired), REST("error")) },
	[LOG_DIE] = { "die", CHANGE_DIE, FIELDS(
		ID, NUMBER("reason", change.reason), BOOL("failed", change.failed),
		BOOL("expired", change.expired), REST("error")) },
	[LOG_DONE] = { "done", CHANGE_DONE, FIELDS(ID) },
	[LOG_KEEP] = { "keep", CHANGE_DONE, FIELDS(
		ID, NUMBER("remember", change.remember), NUMBER("keep", change.keep),
		QUEUE, REST("result")) },
	[LOG_REDRIVE] = { "redrive", CHANGE_REDRIVE, FIELDS(
		ID, NUMBER("number", change.number)) },
	[LOG_PURGE] = { "purge", CHANGE_PURGE, FIELDS(
		NUMBER("number", change.number), NUMBER("remember", change.remember),
		QUEUE) },
	[LOG_POLICY] = { "policy", CHANGE_POLICY, FIELDS(POLICY) },
	[LOG_CEILING] = { "ceiling", CHANGE_NONE, FIELDS(
		NUMBER("counter", change.number), NUMBER("highest_id", highest)) },
	[LOG_OPENED] = { "opened", CHANGE_OPENED, FIELDS() },
	[LOG_CLOSED] = { "closed", CHANGE_COUNTER, FIELDS(
		NUMBER("counter", change.number), NUMBER("highest_id", highest)) },
	[LOG_UNDO] = { "undo", CHANGE_DONE, FIELDS(ID) },
	[LOG_MESSAGE] = { "message", CHANGE_NONE, NULL },
	[LOG_RESTORE] = { "restore", CHANGE_RESTORE, FIELDS(RESTORE, REST("error")) },
	[LOG_REMEMBER] = { "remember", CHANGE_REMEMBER, FIELDS(
		ID, NUMBER("remember", change.remember), QUEUE,
		KEY("idempotency_key", idem)) },
	[LOG_RESULT] = { "result", CHANGE_RESULT, FIELDS(
		ID, NUMBER("keep", change.keep), QUEUE, REST("result")) },
	[LOG_POLICY_RATED] = { "policy_rated", CHANGE_POLICY, FIELDS(
		POLICY, NUMBER("max_rate", policy.max_rate),
		NUMBER("burst", policy.burst)) },
	[LOG_ASIDE] = { "aside", CHANGE_ASIDE, FIELDS(ID) },
	[LOG_SPELLING] = { "spelling", CHANGE_NONE, FIELDS(QUEUE) },
	[LOG_LOCK] = { "lock", CHANGE_NONE, FIELDS(
		MAYBE("namespace", lock.lock.space, MESSAGE_NAME_MAX),
		MAYBE("key", lock.lock.key, LOCK_KEY_MAX),
		NUMBER("id", lock.lock.id), NUMBER("token", lock.lock.token),
		NUMBER("until", lock.lock.until),
		NUMBER("version", lock.lock.version),
		NUMBER("updated", lock.lock.updated),
		NUMBER("known", lock.lock.known), NUMBER("flags", lock_flags),
		{ "transaction", FIELD_TXN, LOCK_TXN, AT(lock.lock.txn), 0 },
		MAYBE("owner", lock.lock.owner, LOCK_OWNER_MAX),
		{ "documents", FIELD_DOCS, 0, AT(text), 0 }) },
	[LOG_DOCUMENT] = { "document", CHANGE_NONE, NULL },
	[LOG_MARK] = { "mark", CHANGE_MARK, FIELDS(
		QUEUE, NUMBER("epoch", move.epoch), REST("lives")) },
	[LOG_TAKE] = { "take", CHANGE_TAKE, FIELDS(
		QUEUE, NUMBER("batch", move.batch),
		ENUM("what", move.what, BATCH_KINDS - 1), BATCH("bytes")) },
	[LOG_UNTAKE] = { "untake", CHANGE_UNTAKE, FIELDS(
		QUEUE, NUMBER("batch", move.batch)) },
	[LOG_DROP] = { "drop", CHANGE_DROP, FIELDS(
		QUEUE, NUMBER("batch", move.batch),
		ENUM("what", move.what, BATCH_KINDS - 1), BATCH("bytes")) },
	[LOG_GIVEN] = { "given", CHANGE_GIVEN, FIELDS(
		QUEUE, NUMBER("batch", move.batch), NUMBER("counter", change.number),
		REST("giver")) },
	[LOG_TAKEN] = { "taken", CHANGE_TAKE, FIELDS(
		QUEUE, NUMBER("batch", move.batch),
		ENUM("what", move.what, BATCH_KINDS - 1),
		MAYBE("for", whom, LEDGER_SHARD - 1), BATCH("bytes")) },
	[LOG_REFUSED] = { "refused", CHANGE_REFUSE, FIELDS(
		QUEUE, NUMBER("batch", move.batch), REST("giver")) },
	[LOG_CLAIM_OWNED] = { "claim_owned", CHANGE_CLAIM, FIELDS(
		ID, NUMBER("token", change.token), NUMBER("until", change.until),
		REST("owner")) },
	[LOG_SPARE] = { "spare", CHANGE_SPARE, FIELDS(ID) },
	[LOG_RESTORE_OWNED] = { "restore_owned", CHANGE_RESTORE, FIELDS(
		RESTORE, NAME("owner", owner), REST("error")) },
	[LOG_FORGET] = { "forget", CHANGE_FORGET, FIELDS(QUEUE) },
	[LOG_POLICY_FIELDS] = { "policy_fields", CHANGE_POLICY, FIELDS(
		QUEUE, { "fields", FIELD_TAGS, 0, 0, 0 }) },
	[LOG_DIGEST] = { "digest", CHANGE_DIGEST, FIELDS(
		ID, NUMBER("digest", change.digest)) },
};
/* clang-format on */

const char *
log_type_name(uint8_t type)
{
	return type < LOG_TYPES ? types[type].name : NULL;
}

enum log_type
log_policy_type(const struct policy *p)
{
	if (p->strict)
		return LOG_POLICY_FIELDS;
	return p->max_rate ? LOG_POLICY_RATED : LOG_POLICY;
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
slice_at(const struct field *f, const struct log_entry *entry)
{
	return (struct slice *)((const char *)entry + f->at);
}

/* ---- Writing ---- */

static char *
put_number(char *p, uint64_t v, unsigned width)
{
	char bytes[8];

	le64_put(bytes, v);
	memcpy(p, bytes, width);
	return p + width;
}

static char *
put_tags(char *p, const struct log_entry *entry)
{
	for (unsigned tag = 1; tag < TAGS; tag++) {
		const struct field *f = &tags[tag];

		p = put_number(p, tag, 1);
		p = put_number(p, f->width, 1);
		p = put_number(p, load(f, entry), f->width);
	}
	return p;
}

static char *
put_field(char *p, const struct field *f, const struct log_entry *entry)
{
	const struct slice *s;

	if (f->kind < FIELD_NAME)
		return put_number(p, load(f, entry), f->width);
	if (f->kind == FIELD_TAGS)
		return put_tags(p, entry);
	if (f->kind == FIELD_TXN)
		return (char *)memcpy(p, (const char *)entry + f->at, LOCK_TXN) + LOCK_TXN;
	s = slice_at(f, entry);
	assert(s->n <= f->max);
	p = put_number(p, s->n, f->width);
	if (s->n)
		memcpy(p, s->p, s->n);
	return p + s->n;
}

void
log_encode(const struct log_entry *entry, struct log_bytes *out)
{
	const struct row *row = &types[entry->type];
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
	body->p += width;
	body->n -= width;
	return true;
}

static bool
take_slice(struct slice *body, uint64_t n, struct slice *out)
{
	if (body->n < n)
		return false;
	*out = (struct slice){ body->p, (size_t)n };
	body->p += n;
	body->n -= (size_t)n;
	return true;
}

static bool
take_txn(struct slice *body, char *out)
{
	struct slice txn;

	if (!take_slice(body, LOCK_TXN, &txn))
		return false;
	memcpy(out, txn.p, LOCK_TXN);
	return true;
}

/* False: nobody writes that. A tag of a newer version ends it, with body behind the tag. */
static bool
take_tags(struct slice *body, struct log_entry *out)
{
	while (body->n) {
		uint64_t tag, width, v;

		if (!take_number(body, 1, &tag) || tag >= TAGS || tag == 0)
			return tag >= TAGS;
		if (!take_number(body, 1, &width) || width != tags[tag].width ||
		    !take_number(body, tags[tag].width, &v) ||
		    (tags[tag].max && v > tags[tag].max))
			return false;
		store(&tags[tag], out, v);
	}
	return true;
}

static bool
take_field(struct slice *body, const struct field *f, struct log_entry *out)
{
	uint64_t v;

	if (f->kind >= FIELD_REST)
		return take_slice(body, body->n, slice_at(f, out));
	if (f->kind == FIELD_TAGS)
		return take_tags(body, out);
	if (f->kind == FIELD_TXN)
		return take_txn(body, (char *)out + f->at);
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
	return slu_fail(err, SLU_ECORRUPT, "a record of type %u (%s) that nobody writes",
			type, types[type].name);
}

int
log_decode(uint8_t type, struct slice body, struct log_entry *out, struct slu_err *err)
{
	const struct row *row = &types[type < LOG_TYPES ? type : 0];

	if (!row->name)
		return slu_fail(err, SLU_EINVAL,
				"a record of type %u: written by a newer version", type);
	out->type = type;
	out->change = (struct change){ .kind = row->kind };
	out->text = out->whom = out->owner = (struct slice){ 0 };
	out->move = (struct change_move){ 0 };
	out->policy = policy_default;
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
	if (type == LOG_LOCK && !log_take_lock(out))
		return bad(type, err);
	if (body.n && type == LOG_POLICY_FIELDS)
		return slu_fail(err, SLU_EINVAL, "a policy with fields of a newer version");
	return body.n ? bad(type, err) : 0;
}

/* ---- Showing ---- */

static void
show_message(const struct message *m, log_show_fn *show, void *arg)
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

/* How many, and which its state is: a spelled transaction says nothing to people. */
static void
show_documents(const struct lock *lock, log_show_fn *show, void *arg)
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
show_tags(const struct log_entry *entry, log_show_fn *show, void *arg)
{
	for (unsigned tag = 1; tag < TAGS; tag++)
		show(arg, tags[tag].name, (int64_t)load(&tags[tag], entry), (struct slice){ 0 });
}

void
log_show(const struct log_entry *entry, log_show_fn *show, void *arg)
{
	const struct row *row = &types[entry->type];

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
		else if (f->kind == FIELD_BATCH)
			show(arg, f->name, (int64_t)entry->text.n, (struct slice){ 0 });
		else if (f->kind != FIELD_TXN && slice_at(f, entry)->n)
			show(arg, f->name, 0, *slice_at(f, entry));
}
