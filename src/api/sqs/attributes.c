#include "api/sqs/attributes.h"

#include "api/limits.h"
#include "base/parse.h"

#include <inttypes.h>
#include <stdio.h>

enum kind {
	NUMBER, /* min to max */
	FLAG,   /* true or false */
	WORD,   /* one of two words */
	REDRIVE,
	ALLOW,
	NOTHING, /* only an empty value */
	SHOWN    /* read-only */
};

struct attribute_row {
	const char *name;
	enum kind kind;
	int64_t min, max, standard;
	const char *word, *other; /* WORD; the first is the default */
	bool fifo;                /* of FIFO queues */
};

/* clang-format off */
static const struct attribute_row rows[] = {
	{ "DelaySeconds",                  NUMBER, 0, API_DELAY_MAX / SLU_SEC, 0, NULL, NULL, false },
	{ "MaximumMessageSize",            NUMBER, 1024, SQS_MESSAGE_MAX, SQS_MESSAGE_MAX, NULL, NULL, false },
	{ "MessageRetentionPeriod",        NUMBER, 60, 1209600, SQS_RETENTION, NULL, NULL, false },
	{ "ReceiveMessageWaitTimeSeconds", NUMBER, 0, SQS_WAIT_MAX, 0, NULL, NULL, false },
	{ "VisibilityTimeout",             NUMBER, 0, SQS_VISIBILITY_MAX, 30, NULL, NULL, false },
	{ "RedrivePolicy",                 REDRIVE, 0, 0, 0, NULL, NULL, false },
	{ "RedriveAllowPolicy",            ALLOW, 0, 0, 0, NULL, NULL, false },
	{ "FifoQueue",                     FLAG, 0, 0, 0, NULL, NULL, true },
	{ "ContentBasedDeduplication",     FLAG, 0, 0, 0, NULL, NULL, true },
	{ "DeduplicationScope",            WORD, 0, 0, 0, "queue", "messageGroup", true },
	{ "FifoThroughputLimit",           WORD, 0, 0, 0, "perQueue", "perMessageGroupId", true },
	{ "SqsManagedSseEnabled",          FLAG, 0, 0, 0, NULL, NULL, false },
	{ "Policy",                        NOTHING, 0, 0, 0, NULL, NULL, false },
	{ "KmsMasterKeyId",                NOTHING, 0, 0, 0, NULL, NULL, false },
	{ "KmsDataKeyReusePeriodSeconds",  NUMBER, 60, 86400, 300, NULL, NULL, false },
	{ "ApproximateNumberOfMessages",           SHOWN, 0, 0, 0, NULL, NULL, false },
	{ "ApproximateNumberOfMessagesNotVisible", SHOWN, 0, 0, 0, NULL, NULL, false },
	{ "ApproximateNumberOfMessagesDelayed",    SHOWN, 0, 0, 0, NULL, NULL, false },
	{ "CreatedTimestamp",              SHOWN, 0, 0, 0, NULL, NULL, false },
	{ "LastModifiedTimestamp",         SHOWN, 0, 0, 0, NULL, NULL, false },
	{ "QueueArn",                      SHOWN, 0, 0, 0, NULL, NULL, false },
};
/* clang-format on */

static const struct attribute_row *
find(struct slice name)
{
	for (size_t i = 0; i < COUNT(rows); i++)
		if (slice_eq(name, slice_of(rows[i].name)))
			return &rows[i];
	return NULL;
}

bool
sqs_attributes_known(struct slice name)
{
	return slice_eq(name, SLICE("All")) || find(name);
}

/* --- given ones --------------------------------------------------------------- */

static bool
is_flag(struct slice v)
{
	return slice_eq(v, SLICE("true")) || slice_eq(v, SLICE("false"));
}

/* {"deadLetterTargetArn": "arn:aws:sqs:us-east-1:ACCOUNT:QUEUE", "maxReceiveCount": 5}; the count may be a text. */
struct redrive {
	char account[NAME_TEXT]; /* as the client wrote it */
	char queue[NAME_TEXT];   /* folded */
	uint64_t attempts;
};

static bool
read_target(struct slice arn, struct redrive *out)
{
	const char *const colon = arn.n ? memrchr(arn.p, ':', arn.n) : NULL;
	const char *const before = colon ? memrchr(arn.p, ':', (size_t)(colon - arn.p)) : NULL;
	const size_t n = before ? (size_t)(colon - before - 1) : 0;

	if (n == 0 || n >= NAME_TEXT || arn.n < 12 || memcmp(arn.p, "arn:aws:sqs:", 12) != 0)
		return false;
	memcpy(out->account, before + 1, n);
	out->account[n] = '\0';
	return name_fold((struct slice){ colon + 1, arn.n - (size_t)(colon + 1 - arn.p) }, "queue", out->queue, NULL) == 0;
}

static void
read_count(struct json *r, const struct json_field *f, void *place)
{
	uint64_t *const out = place;

	(void)f;
	if (json_peek(r) != JSON_STRING)
		*out = json_u64(r, 1, SQS_RECEIVES_MAX);
	else if (parse_u64(json_text(r), 1, SQS_RECEIVES_MAX, out, NULL))
		json_fail(r, SLU_EINVAL, NULL, "expected 1 to 1000");
}

static bool
read_redrive(struct slice text, struct redrive *out)
{
	struct parts {
		struct slice target;
		uint64_t attempts;
	} parts = { 0 };
	static const struct json_field members[] = {
		JSON_ROW("deadLetterTargetArn", json_read_text, struct parts, target, .required = true),
		JSON_ROW("maxReceiveCount", read_count, struct parts, attempts, .required = true),
	};
	struct json r;

	json_init(&r, text, JSON_DEPTH);
	(void)json_fields(&r, members, COUNT(members), JSON_STRICT, &parts);
	out->attempts = parts.attempts;
	return !json_end(&r, NULL) && read_target(parts.target, out);
}

static bool
is_valid(const struct attribute_row *r, struct slice v)
{
	struct redrive redrive;
	uint64_t n;

	switch (r->kind) {
	case NUMBER:
		return parse_u64(v, (uint64_t)r->min, (uint64_t)r->max, &n, NULL) == 0;
	case FLAG:
		return is_flag(v);
	case WORD:
		return slice_eq(v, slice_of(r->word)) || slice_eq(v, slice_of(r->other));
	case ALLOW:
		return v.n == 0 || json_check(v, JSON_OBJECT, JSON_DEPTH, r->name, NULL) == 0;
	case REDRIVE:
		return v.n == 0 || read_redrive(v, &redrive);
	case NOTHING:
		return v.n == 0;
	default:
		return false;
	}
}

/* The other queue is one of the same account and of the same kind. */
static enum sqs_code
check_redrive(const char *queue, const char *account, struct slice text, struct slu_err *err)
{
	struct redrive r = { 0 };

	(void)read_redrive(text, &r); /* is_valid has read it */
	if (strcmp(r.account, account) == 0 && strcmp(r.queue, queue) != 0 && sqs_is_fifo(r.queue) == sqs_is_fifo(queue))
		return SQS_OK;
	(void)slu_fail(err, SLU_EINVAL, "Value for parameter RedrivePolicy is invalid. Reason: the dead-letter queue must be another %s queue of this account.",
		       sqs_is_fifo(queue) ? "FIFO" : "standard");
	return SQS_BAD_VALUE;
}

static enum sqs_code
check(const struct sqs_call *s, const struct sqs_pair *pair, bool creating, struct slu_err *err)
{
	const struct attribute_row *const r = find(pair->name);
	const char *const queue = s->queue;
	char shown[SHOWN_TEXT];

	if (!r || r->kind == SHOWN || (r->fifo && !sqs_is_fifo(queue) && !slice_eq(pair->value, SLICE("false")))) {
		(void)slu_fail(err, SLU_EINVAL, "Unknown Attribute %s.", parse_shown(pair->name, shown));
		return SQS_BAD_ATTRIBUTE;
	}
	if (pair->value.n > 0 && r->kind == NOTHING) {
		(void)slu_fail(err, SLU_EINVAL, "Attribute %s is not supported: rights belong to access keys, and encryption to the disk",
			       r->name);
		return SQS_BAD_ATTRIBUTE_VALUE;
	}
	if (strcmp(r->name, "FifoQueue") == 0 &&
	    (slice_eq(pair->value, SLICE("true")) != sqs_is_fifo(queue) || !creating)) {
		(void)slu_fail(err, SLU_EINVAL, "FifoQueue is true for a queue whose name ends in .fifo, and cannot be changed");
		return creating ? SQS_BAD_VALUE : SQS_BAD_ATTRIBUTE;
	}
	if (!is_valid(r, pair->value)) {
		(void)slu_fail(err, SLU_EINVAL, "Invalid value for the parameter %s: %s", r->name,
			       parse_shown(pair->value, shown));
		return SQS_BAD_ATTRIBUTE_VALUE;
	}
	return r->kind == REDRIVE && pair->value.n ? check_redrive(queue, s->account, pair->value, err) : SQS_OK;
}

enum sqs_code
sqs_attributes_check(const struct sqs_call *s, const struct sqs_pairs *given, bool creating, struct slu_err *err)
{
	enum sqs_code code = SQS_OK;

	for (uint32_t i = 0; i < given->n && !code; i++)
		code = check(s, &given->items[i], creating, err);
	return code;
}

void
sqs_attributes_new(const char *queue, struct policy *p)
{
	*p = policy_default;
	p->max_attempts = SQS_ATTEMPTS;
	p->retry = (struct slu_backoff){ .kind = SLU_BACKOFF_NONE };
	if (sqs_is_fifo(queue))
		p->window = SQS_DEDUPLICATION * SLU_SEC;
}

/* An empty value ends a redrive policy. */
static void
apply_redrive(struct slice text, struct policy *p)
{
	struct redrive r = { .attempts = SQS_ATTEMPTS };

	if (text.n)
		(void)read_redrive(text, &r); /* sqs_attributes_check has read it */
	memcpy(p->dead_letter_queue, r.queue, sizeof p->dead_letter_queue);
	p->max_attempts = (uint32_t)r.attempts;
}

void
sqs_attributes_apply(const struct sqs_pairs *given, struct policy *p)
{
	const struct slice visibility = sqs_pairs_find(given, "VisibilityTimeout");
	const struct slice retention = sqs_pairs_find(given, "MessageRetentionPeriod");
	const struct slice policy = sqs_pairs_find(given, "RedrivePolicy");
	uint64_t n;

	if (visibility.p && !parse_u64(visibility, 0, SQS_VISIBILITY_MAX, &n, NULL))
		p->lease = n ? (slu_time)n * SLU_SEC : SLU_MS;
	if (retention.p && !parse_u64(retention, 60, 1209600, &n, NULL))
		p->ttl = (slu_time)n * SLU_SEC;
	if (policy.p)
		apply_redrive(policy, p);
}

/* --- shown ones --------------------------------------------------------------- */

static struct slice
number(int64_t n, char out[static SQS_URL])
{
	(void)snprintf(out, SQS_URL, "%" PRId64, n); /* fits */
	return slice_of(out);
}

/* Of what the server counts and knows. */
static struct slice
value_shown(struct apicall *a, const struct sqs_shown *v, const char *name, char out[static SQS_URL])
{
	const uint32_t *const count = v->counts ? v->counts->count : NULL;

	if (strcmp(name, "QueueArn") == 0)
		return slice_of(sqs_arn(sqs_of(a), v->counts ? v->counts->shown : sqs_of(a)->as, out));
	if (strcmp(name, "CreatedTimestamp") == 0)
		return number(v->document->created, out);
	if (strcmp(name, "LastModifiedTimestamp") == 0)
		return number(v->document->modified, out);
	if (!count)
		return (struct slice){ 0 };
	if (strcmp(name, "ApproximateNumberOfMessages") == 0)
		return number((int64_t)count[MSG_READY] + count[MSG_HELD], out);
	return number(count[strcmp(name, "ApproximateNumberOfMessagesDelayed") == 0 ? MSG_DELAYED : MSG_LEASED], out);
}

static struct slice
value_redrive(struct apicall *a, const struct policy *p, char out[static SQS_URL])
{
	char arn[SQS_URL];

	if (!p->dead_letter_queue[0])
		return (struct slice){ 0 };
	(void)snprintf(out, SQS_URL, "{\"deadLetterTargetArn\":\"%.400s\",\"maxReceiveCount\":%u}",
		       sqs_arn(sqs_of(a), p->dead_letter_queue, arn), p->max_attempts); /* fits */
	return slice_of(out);
}

struct slice
sqs_attributes_value(struct apicall *a, const struct sqs_shown *v, const char *name, char out[static SQS_URL])
{
	const struct attribute_row *const r = find(slice_of(name));
	const struct slice stored = sqs_pairs_find(&v->document->attributes, name);

	if (!r || (r->fifo && !sqs_is_fifo(sqs_of(a)->queue)))
		return (struct slice){ 0 };
	if (r->kind == SHOWN)
		return value_shown(a, v, name, out);
	if (strcmp(name, "VisibilityTimeout") == 0)
		return number(v->policy->lease / SLU_SEC, out);
	if (r->kind == REDRIVE)
		return value_redrive(a, v->policy, out);
	if (strcmp(name, "FifoQueue") == 0)
		return SLICE("true");
	if (stored.p)
		return stored;
	if (strcmp(name, "KmsDataKeyReusePeriodSeconds") == 0)
		return (struct slice){ 0 };
	if (r->kind == NUMBER)
		return number(r->standard, out);
	if (r->kind == FLAG)
		return SLICE("false");
	return r->kind == WORD ? slice_of(r->word) : (struct slice){ 0 };
}

static bool
is_asked(const struct sqs_names *names, const char *name)
{
	for (uint32_t i = 0; i < names->n; i++)
		if (slice_eq(names->items[i], SLICE("All")) || slice_eq(names->items[i], slice_of(name)))
			return true;
	return false;
}

void
sqs_attributes_write(struct sqs_out *o, const struct sqs_shown *v, const struct sqs_names *names)
{
	char room[SQS_URL];

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct slice value;

		if (!is_asked(names, rows[i].name))
			continue;
		value = sqs_attributes_value(o->a, v, rows[i].name, room);
		if (value.p)
			sqs_out_pair(o, rows[i].name, value);
	}
}
