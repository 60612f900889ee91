/*
 * fuzz_sqs.c - what the SQS dialect reads is within its bounds. The first byte chooses the reader: j the JSON of a
 * request, f its form, a the attributes of a message, s an Authorization that signs.
 */
#include "fuzz.h"

#include "api/sqs/digest.h"
#include "api/sqs/message.h"
#include "auth/sigv4.h"

static void
check_attributes(struct sqs_attributes *l)
{
	char sum[SQS_MD5];

	FUZZ_CHECK(l->n <= SQS_ATTRIBUTES_MAX + 1);
	for (uint32_t i = 0; i < l->n; i++) {
		fuzz_touch(l->items[i].name);
		fuzz_touch(l->items[i].type);
		fuzz_touch(l->items[i].text);
		fuzz_touch(l->items[i].bytes);
	}
	if (l->n > 0)
		FUZZ_CHECK(strlen(sqs_md5_attributes(l->items, l->n, sum)) == 32);
}

static void
check_pairs(const struct sqs_pairs *l)
{
	FUZZ_CHECK(l->n <= SQS_PAIRS_MAX);
	for (uint32_t i = 0; i < l->n; i++) {
		fuzz_touch(l->items[i].name);
		fuzz_touch(l->items[i].value);
	}
}

static void
check_names(const struct sqs_names *l)
{
	FUZZ_CHECK(l->n <= SQS_NAMES_MAX);
	for (uint32_t i = 0; i < l->n; i++)
		fuzz_touch(l->items[i]);
}

static void
check_request(struct sqs_request *q)
{
	FUZZ_CHECK(q->n_entries <= SQS_ENTRIES_MAX && q->entries);
	for (uint32_t i = 0; i < q->n_entries || i == 0; i++) {
		struct sqs_entry *const e = &q->entries[i];

		fuzz_touch(e->id);
		fuzz_touch(e->body);
		fuzz_touch(e->receipt);
		check_attributes(&e->attributes);
		check_attributes(&e->system);
		FUZZ_CHECK(e->delay == SQS_NOT_GIVEN || (e->delay >= INT32_MIN && e->delay <= INT32_MAX));
	}
	fuzz_touch(q->queue_url);
	check_pairs(&q->attributes);
	check_pairs(&q->tags);
	check_names(&q->names);
	check_names(&q->message_names);
	check_names(&q->tag_keys);
}

static struct slice
field(const void *arg, const char *name)
{
	return strcmp(name, "x-amz-date") == 0 ? SLICE("20261118T120000Z") : *(const struct slice *)arg;
}

/* No text is a signature. */
static void
check_signature(struct slice text)
{
	const struct sigv4_request q = { SLICE("POST"), text, text, SLICE("sqs"), field, &text };
	struct sigv4_cache cache = { 0 };
	struct slu_err err;
	struct sigv4 s;

	if (sigv4_parse(&s, text, &err) == 0)
		FUZZ_CHECK(sigv4_check(&s, &q, SLICE("secret"), 1, 1795003200 * SLU_SEC, &cache, &err) == SLU_EAUTH);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct slice rest = { (const char *)data + 1, size ? size - 1 : 0 };
	struct sqs_attributes attributes = { 0 };
	struct sqs_request q;
	struct slu_err err;
	struct arena a = { 0 };

	switch (size ? data[0] : 0) {
	case 'j':
		if (sqs_request_json(&q, &a, rest, &err) == 0)
			check_request(&q);
		break;
	case 'f':
		if (sqs_request_form(&q, &a, rest, &err) == 0)
			check_request(&q);
		break;
	case 'a':
		(void)sqs_message_attributes(rest, &a, &attributes); /* whatever it has read */
		check_attributes(&attributes);
		break;
	case 's':
		check_signature(rest);
		break;
	default:
		(void)sqs_message_is_text(rest); /* it reads within its bounds */
	}
	arena_release(&a);
	return 0;
}
