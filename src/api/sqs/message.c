#include "api/sqs/message.h"

#include "api/limits.h"
#include "api/sqs/digest.h"
#include "base/base64.h"
#include "base/parse.h"
#include "base/utf8.h"

/* --- texts -------------------------------------------------------------------- */

/* Not U+FFFE and U+FFFF, nor control characters but tab, line feed and carriage return. */
bool
sqs_message_is_text(struct slice body)
{
	if (!utf8_valid(body))
		return false;
	for (size_t i = 0; i < body.n; i++) {
		const unsigned char c = (unsigned char)body.p[i];

		if (c < 0x20 && c != '\t' && c != '\n' && c != '\r')
			return false;
		if (c == 0xef && (unsigned char)body.p[i + 1] == 0xbf && (unsigned char)body.p[i + 2] >= 0xbe)
			return false;
	}
	return true;
}

/* 1 to 128 letters, digits and punctuation of ASCII. */
static bool
is_id(struct slice id)
{
	for (size_t i = 0; i < id.n; i++)
		if (id.p[i] <= ' ' || id.p[i] > '~')
			return false;
	return id.n > 0 && id.n <= 128;
}

/* --- attributes --------------------------------------------------------------- */

static bool
begins(struct slice text, const char *with)
{
	const size_t n = strlen(with);

	return text.n >= n && memcmp(text.p, with, n) == 0;
}

static bool
is_attribute_name(struct slice name)
{
	if (name.n == 0 || name.n > 256 || name.p[0] == '.' || name.p[name.n - 1] == '.')
		return false;
	for (size_t i = 0; i < name.n; i++) {
		const char c = ascii_lower(name.p[i]);

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.'))
			return false;
		if (c == '.' && name.p[i + 1] == '.') /* the last character is no dot */
			return false;
	}
	return true;
}

/* The type without its suffix. */
static struct slice
kind_of(struct slice type)
{
	struct slice kind;

	(void)slice_cut(&type, '.', &kind); /* without a suffix it is all */
	return kind;
}

static enum sqs_code
check_attribute(const struct sqs_attribute *at, bool system, struct slu_err *err)
{
	const bool binary = slice_eq(kind_of(at->type), SLICE("Binary"));
	char shown[SHOWN_TEXT];

	parse_shown(at->name, shown);
	if (!is_attribute_name(at->name) || begins(at->name, "AWS.") || begins(at->name, "Amazon."))
		(void)slu_fail(err, SLU_EINVAL, "invalid name of a message attribute: %s", shown);
	else if (at->type.n > 256 || (!binary && !slice_eq(kind_of(at->type), SLICE("String")) &&
				      !slice_eq(kind_of(at->type), SLICE("Number"))))
		(void)slu_fail(err, SLU_EINVAL, "invalid type of message attribute %s; expected String, Number or Binary", shown);
	else if (binary ? !at->has_bytes || at->bytes.n == 0 : !at->has_text || at->text.n == 0)
		(void)slu_fail(err, SLU_EINVAL, "message attribute %s has no value of its type", shown);
	else if (!binary && !sqs_message_is_text(at->text))
		(void)slu_fail(err, SLU_EINVAL, "message attribute %s has invalid characters", shown);
	else if (system && !slice_eq(at->name, SLICE("AWSTraceHeader")))
		(void)slu_fail(err, SLU_EINVAL, "unknown system attribute: %s", shown);
	else
		return SQS_OK;
	return SQS_BAD_VALUE;
}

static enum sqs_code
check_attributes(const struct sqs_attributes *l, bool system, uint64_t *bytes, struct slu_err *err)
{
	enum sqs_code code = SQS_OK;

	if (l->n > SQS_ATTRIBUTES_MAX) {
		(void)slu_fail(err, SLU_EINVAL, "expected at most %d message attributes", SQS_ATTRIBUTES_MAX);
		return SQS_BAD_VALUE;
	}
	for (uint32_t i = 0; i < l->n && !code; i++) {
		const struct sqs_attribute *const at = &l->items[i];

		code = check_attribute(at, system, err);
		*bytes += at->name.n + at->type.n + (at->has_bytes ? at->bytes.n : at->text.n);
	}
	return code;
}

static void
write_attribute(struct json_out *w, const struct sqs_attribute *at)
{
	json_out_name(w, at->name);
	if (slice_eq(at->type, SLICE("String"))) {
		json_out_str(w, NULL, at->text);
		return;
	}
	json_out_object(w, NULL);
	json_out_str(w, "DataType", at->type);
	if (at->has_bytes)
		json_out_base64(w, "BinaryValue", at->bytes);
	else
		json_out_str(w, "StringValue", at->text);
	json_out_close(w);
}

/* deduplication: n 0: it is the idempotency key itself. */
static enum sqs_code
write_attributes(struct apicall *a, const struct sqs_entry *e, struct slice deduplication, struct message *m,
		 struct slu_err *err)
{
	struct json_out w;
	struct buf b;

	if (e->attributes.n == 0 && e->system.n == 0 && deduplication.n == 0)
		return SQS_OK;
	buf_init(&b, MESSAGE_ATTRIBUTES_MAX);
	json_out_open(&w, &b);
	for (uint32_t i = 0; i < e->attributes.n; i++)
		write_attribute(&w, &e->attributes.items[i]);
	if (e->system.n > 0)
		json_out_str(&w, SQS_TRACE_HEADER, e->system.items[0].text);
	if (deduplication.n > 0)
		json_out_str(&w, SQS_DEDUPLICATED, deduplication);
	json_out_close(&w);
	m->attributes = !b.failed ? arena_copy(&a->memory, buf_slice(&b)) : (struct slice){ 0 };
	buf_release(&b);
	if (m->attributes.n > 0)
		return SQS_OK;
	(void)slu_fail(err, SLU_EINVAL, "message attributes have more than %d bytes", MESSAGE_ATTRIBUTES_MAX);
	return SQS_BAD_VALUE;
}

/* --- attributes of a delivery ------------------------------------------------- */

static void
read_object(struct json *r, struct arena *a, struct sqs_attribute *at)
{
	struct json_str name;

	json_object(r);
	while (json_member(r, &name)) {
		if (json_str_is(&name, SLICE("DataType"))) {
			at->type = json_text(r);
		} else if (json_str_is(&name, SLICE("StringValue"))) {
			at->text = json_text(r);
			at->has_text = true;
		} else if (json_str_is(&name, SLICE("BinaryValue"))) {
			const struct slice text = json_text(r);
			char *const room = arena_alloc(a, text.n + 1);
			size_t n = 0;

			at->has_bytes = room && base64_decode(text, room, &n, NULL) == 0;
			at->bytes = (struct slice){ room, n };
		}
	}
}

/* Reads a value: a text, an attribute as write_attribute wrote it, or other JSON. */
static void
read_attribute(struct json *r, struct arena *a, struct sqs_attribute *at)
{
	const enum json_type type = json_peek(r);
	struct slice raw;
	struct json inner;

	at->type = type == JSON_NUMBER ? SLICE("Number") : SLICE("String");
	at->has_text = true;
	if (type == JSON_STRING) {
		at->text = json_text(r);
		return;
	}
	raw = json_skip(r);
	at->text = raw;
	if (type != JSON_OBJECT)
		return;
	at->has_text = false;
	at->type = (struct slice){ 0 };
	json_init(&inner, raw, JSON_DEPTH);
	json_room(&inner, arena_alloc(a, raw.n + 1), raw.n + 1);
	read_object(&inner, a, at);
	if (json_end(&inner, NULL) || at->type.n == 0 || at->has_text == at->has_bytes)
		*at = (struct sqs_attribute){ .name = at->name, .type = SLICE("String"), .text = raw, .has_text = true };
}

bool
sqs_message_attributes(struct slice json, struct arena *a, struct sqs_attributes *out)
{
	char *const room = arena_alloc(a, json.n + 1);
	struct json_str name;
	struct json r;

	if (!room || json.n == 0)
		return false;
	json_init(&r, json, JSON_DEPTH);
	json_room(&r, room, json.n + 1);
	json_object(&r);
	while (json_member(&r, &name)) {
		char *const text = arena_alloc(a, name.n + 1);
		struct sqs_attribute *const at = text && !name.has_nul ? sqs_attributes_add(out, a) : NULL;

		if (!at)
			continue; /* a message of another API may have more: the first ones are shown */
		at->name = json_str_text(&name, text);
		read_attribute(&r, a, at);
	}
	return json_end(&r, NULL) == 0;
}

/* --- a message ---------------------------------------------------------------- */

static enum sqs_code
take_priority(const struct sqs_attributes *l, struct message *m, struct slu_err *err)
{
	int64_t prio;

	m->prio = 5;
	for (uint32_t i = 0; i < l->n; i++) {
		if (!slice_eq(l->items[i].name, SLICE(SQS_PRIORITY_NAME)))
			continue;
		if (parse_i64(l->items[i].text, INT32_MIN, INT32_MAX, &prio, NULL)) {
			(void)slu_fail(err, SLU_EINVAL, "invalid " SQS_PRIORITY_NAME "; expected a whole number");
			return SQS_BAD_VALUE;
		}
		m->prio = (int32_t)prio;
	}
	return SQS_OK;
}

/* The group is a share in a standard queue, and a key in a FIFO queue. */
static enum sqs_code
take_group(const struct sqs_call *s, const struct sqs_entry *e, struct message *m, struct slu_err *err)
{
	const bool fifo = sqs_is_fifo(s->queue);

	if (!e->has_group && fifo) {
		(void)slu_fail(err, SLU_EINVAL, "The request must contain the parameter MessageGroupId.");
		return SQS_MISSING;
	}
	if (!e->has_group)
		return SQS_OK;
	if (!is_id(e->group)) {
		(void)slu_fail(err, SLU_EINVAL, "invalid MessageGroupId; expected 1 to 128 letters, digits and punctuation");
		return SQS_BAD_VALUE;
	}
	if (fifo)
		m->key = e->group;
	else
		m->share = e->group;
	return SQS_OK;
}

/* Sets the idempotency key; *kept: the id, if the key is another text. */
static enum sqs_code
take_deduplication(struct apicall *a, const struct sqs_entry *e, struct message *m, struct slice *kept,
		   struct slu_err *err)
{
	const struct sqs_call *const s = sqs_of(a);
	struct slice id = e->deduplication;
	char sum[SQS_SHA256];

	*kept = (struct slice){ 0 };
	if (!sqs_is_fifo(s->queue) && !e->has_deduplication)
		return SQS_OK;
	if (!sqs_is_fifo(s->queue) || (e->has_deduplication && !is_id(id))) {
		(void)slu_fail(err, SLU_EINVAL, "invalid MessageDeduplicationId; expected 1 to 128 letters, digits and punctuation, for a FIFO queue");
		return SQS_BAD_VALUE;
	}
	if (!e->has_deduplication && !s->facts.content_based) {
		(void)slu_fail(err, SLU_EINVAL, "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly");
		return SQS_BAD_VALUE;
	}
	if (!e->has_deduplication)
		id = arena_copy(&a->memory, slice_of(sqs_sha256(e->body, sum)));
	m->idem = id;
	if (!s->facts.group_scope)
		return SQS_OK;
	*kept = id;
	m->idem = sqs_sha256_pair(e->group, id, sum) ? arena_copy(&a->memory, slice_of(sum)) : (struct slice){ 0 };
	return SQS_OK;
}

static enum sqs_code
take_delay(const struct sqs_call *s, const struct sqs_entry *e, struct op_put *put, struct slu_err *err)
{
	const bool given = e->delay != SQS_NOT_GIVEN;

	if (given && (e->delay < 0 || e->delay > API_DELAY_MAX / SLU_SEC)) {
		(void)slu_fail(err, SLU_EINVAL, "Value %lld for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0.",
			       (long long)e->delay);
		return SQS_BAD_VALUE;
	}
	if (given && e->delay > 0 && sqs_is_fifo(s->queue)) {
		(void)slu_fail(err, SLU_EINVAL, "Value %lld for parameter DelaySeconds is invalid. Reason: The request include parameter that is not valid for this queue type.",
			       (long long)e->delay);
		return SQS_BAD_VALUE;
	}
	put->delay = (given ? e->delay : (int64_t)s->facts.delay) * SLU_SEC;
	return SQS_OK;
}

static enum sqs_code
take_body(const struct sqs_call *s, const struct sqs_entry *e, struct message *m, uint64_t bytes, struct slu_err *err)
{
	if (!e->has_body || e->body.n == 0) {
		(void)slu_fail(err, SLU_EINVAL, "The request must contain the parameter MessageBody.");
		return SQS_MISSING;
	}
	if (!sqs_message_is_text(e->body)) {
		(void)slu_fail(err, SLU_EINVAL, "Invalid binary character in the message body; expected #x9 | #xA | #xD | [#x20 to #xD7FF] | [#xE000 to #xFFFD] | [#x10000 to #x10FFFF]");
		return SQS_BAD_CONTENTS;
	}
	if (bytes > s->facts.max_bytes) {
		(void)slu_fail(err, SLU_EINVAL, "One or more parameters are invalid. Reason: Message must be shorter than %u bytes.",
			       s->facts.max_bytes);
		return SQS_BAD_VALUE;
	}
	m->payload = e->body;
	m->payload_size = e->body.n;
	m->type = SLICE("text/plain; charset=utf-8");
	return SQS_OK;
}

enum sqs_code
sqs_message_take(struct apicall *a, struct sqs_entry *e, struct op_put *put, uint64_t *bytes, struct slu_err *err)
{
	const struct sqs_call *const s = sqs_of(a);
	struct slice kept = { 0 };
	enum sqs_code code;

	*put = (struct op_put){ .m.space = slice_of(s->space), .m.queue = slice_of(s->queue) };
	put->as = (struct spelling){ .queue = slice_of(s->as) };
	*bytes = e->body.n;
	code = check_attributes(&e->attributes, false, bytes, err);
	if (!code)
		code = check_attributes(&e->system, true, &(uint64_t){ 0 }, err);
	if (!code)
		code = take_body(s, e, &put->m, *bytes, err);
	if (!code)
		code = take_priority(&e->attributes, &put->m, err);
	if (!code)
		code = take_delay(s, e, put, err);
	if (!code)
		code = take_group(s, e, &put->m, err);
	if (!code)
		code = take_deduplication(a, e, &put->m, &kept, err);
	return code ? code : write_attributes(a, e, kept, &put->m, err);
}
