#include "api/sqs/request.h"

/* clang-format off */
#define OF(m)  .offset = offsetof(struct sqs_request, m)
#define OFE(m) .of_entry = true, .offset = offsetof(struct sqs_entry, m)
#define HAS(m) .has = offsetof(struct sqs_entry, m)

const struct sqs_parameter sqs_parameters[] = {
	{ "QueueUrl",                    NULL, SQS_TEXT,   OF(queue_url) },
	{ "MessageBody",                 NULL, SQS_TEXT,   OFE(body), HAS(has_body) },
	{ "ReceiptHandle",               NULL, SQS_TEXT,   OFE(receipt), HAS(has_receipt) },
	{ "Id",                          NULL, SQS_TEXT,   OFE(id) },
	{ "Entries",                     NULL, SQS_BODIES, OF(entries) },
	{ "DelaySeconds",                NULL, SQS_NUMBER, OFE(delay) },
	{ "VisibilityTimeout",           NULL, SQS_NUMBER, OFE(visibility) },
	{ "MessageGroupId",              NULL, SQS_TEXT,   OFE(group), HAS(has_group) },
	{ "MessageDeduplicationId",      NULL, SQS_TEXT,   OFE(deduplication), HAS(has_deduplication) },
	{ "MessageAttributes",           "MessageAttribute", SQS_MESSAGE, OFE(attributes) },
	{ "MessageSystemAttributes",     "MessageSystemAttribute", SQS_MESSAGE, OFE(system) },
	{ "MaxNumberOfMessages",         NULL, SQS_NUMBER, OF(max_messages) },
	{ "WaitTimeSeconds",             NULL, SQS_NUMBER, OF(wait) },
	{ "AttributeNames",              "AttributeName", SQS_NAMES, OF(names) },
	{ "MessageSystemAttributeNames", "MessageSystemAttributeName", SQS_NAMES, OF(names) },
	{ "MessageAttributeNames",       "MessageAttributeName", SQS_NAMES, OF(message_names) },
	{ "QueueName",                   NULL, SQS_TEXT,   OF(queue_name) },
	{ "QueueOwnerAWSAccountId",      NULL, SQS_TEXT,   OF(owner) },
	{ "QueueNamePrefix",             NULL, SQS_TEXT,   OF(prefix) },
	{ "MaxResults",                  NULL, SQS_NUMBER, OF(max_results) },
	{ "NextToken",                   NULL, SQS_TEXT,   OF(token) },
	{ "Attributes",                  "Attribute", SQS_MAP, OF(attributes) },
	{ "tags",                        "Tag", SQS_MAP,   OF(tags), .key = "Key" },
	{ "Tags",                        "Tags", SQS_MAP,  OF(tags), .key = "Key" },
	{ "TagKeys",                     "TagKey", SQS_NAMES, OF(tag_keys) },
	{ "SourceArn",                   NULL, SQS_TEXT,   OF(source) },
	{ "DestinationArn",              NULL, SQS_TEXT,   OF(destination) },
	{ "TaskHandle",                  NULL, SQS_TEXT,   OF(handle) },
	{ "MaxNumberOfMessagesPerSecond", NULL, SQS_NUMBER, OF(rate) },
	{ "Label",                       NULL, SQS_TEXT,   OF(label) },
};
/* clang-format on */

const unsigned sqs_n_parameters = COUNT(sqs_parameters);

static const struct sqs_entry no_entry = { .delay = SQS_NOT_GIVEN, .visibility = SQS_NOT_GIVEN };

int
sqs_request_init(struct sqs_request *q, struct arena *a)
{
	*q = (struct sqs_request){
		.max_results = SQS_NOT_GIVEN,
		.max_messages = SQS_NOT_GIVEN,
		.wait = SQS_NOT_GIVEN,
		.rate = SQS_NOT_GIVEN,
		.entries = arena_array(a, SQS_ENTRIES_MAX, sizeof *q->entries),
	};
	if (!q->entries)
		return SLU_ENOMEM;
	q->entries[0] = no_entry;
	return 0;
}

struct sqs_entry *
sqs_request_entry(struct sqs_request *q, uint32_t i)
{
	if (i >= SQS_ENTRIES_MAX)
		return NULL;
	while (q->n_entries <= i)
		q->entries[q->n_entries++] = no_entry;
	return &q->entries[i];
}

/* Room for one more element of a list of at most `most`; the room comes with the first. */
static void *
add(void *items, uint32_t *n, uint32_t most, size_t size, struct arena *a)
{
	char **const list = items;

	if (!*list)
		*list = arena_array(a, most, size);
	if (!*list || *n == most)
		return NULL;
	memset(*list + *n * size, 0, size);
	return *list + (*n)++ * size;
}

struct slice *
sqs_names_add(struct sqs_names *l, struct arena *a)
{
	return add(&l->items, &l->n, SQS_NAMES_MAX, sizeof *l->items, a);
}

struct sqs_pair *
sqs_pairs_add(struct sqs_pairs *l, struct arena *a)
{
	return add(&l->items, &l->n, SQS_PAIRS_MAX, sizeof *l->items, a);
}

struct sqs_attribute *
sqs_attributes_add(struct sqs_attributes *l, struct arena *a)
{
	return add(&l->items, &l->n, SQS_ATTRIBUTES_MAX + 1, sizeof *l->items, a);
}
