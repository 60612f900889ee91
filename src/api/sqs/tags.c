/*
 * tags.c - TagQueue, UntagQueue, ListQueueTags.
 */
#include "api/sqs/out.h"
#include "api/sqs/queue.h"

enum {
	TAGS_MAX = 50
};

static void
changed(struct apicall *a)
{
	sqs_out_nothing(a);
}

static enum sqs_code
add_tags(struct apicall *a, struct slu_err *err)
{
	const struct sqs_request *const q = &sqs_of(a)->q;
	struct sqs_document *const d = sqs_document(a);
	bool fits = true;

	for (uint32_t i = 0; i < q->tags.n; i++)
		fits &= sqs_pairs_set(&d->tags, &a->memory, q->tags.items[i].name, q->tags.items[i].value);
	if (fits && d->tags.n <= TAGS_MAX)
		return SQS_OK;
	(void)slu_fail(err, SLU_EINVAL, "A queue has at most %d tags.", TAGS_MAX);
	return SQS_BAD_VALUE;
}

static enum sqs_code
remove_tags(struct apicall *a, struct slu_err *err)
{
	const struct sqs_request *const q = &sqs_of(a)->q;

	(void)err; /* a tag that is not there is removed */
	for (uint32_t i = 0; i < q->tag_keys.n; i++)
		sqs_pairs_remove(&sqs_document(a)->tags, q->tag_keys.items[i]);
	return SQS_OK;
}

static void
tag_found(struct apicall *a)
{
	sqs_store_change(a, add_tags, changed);
}

static void
untag_found(struct apicall *a)
{
	sqs_store_change(a, remove_tags, changed);
}

static void
list(struct apicall *a)
{
	const struct sqs_pairs *const tags = &sqs_document(a)->tags;
	struct sqs_out o;

	sqs_out_begin(&o, a, NULL);
	if (tags->n > 0) {
		sqs_out_map(&o, "Tags", "Tag", "Key");
		for (uint32_t i = 0; i < tags->n; i++)
			sqs_out_pair_of(&o, tags->items[i].name, tags->items[i].value);
		sqs_out_map_end(&o);
	}
	sqs_out_end(&o);
}

static void
list_found(struct apicall *a)
{
	sqs_store_load(a, list);
}

void
sqs_tag(struct apicall *a)
{
	sqs_queue_find(a, tag_found);
}

void
sqs_untag(struct apicall *a)
{
	sqs_queue_find(a, untag_found);
}

void
sqs_list_tags(struct apicall *a)
{
	sqs_queue_find(a, list_found);
}
