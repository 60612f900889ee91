#include "api/sqs/batch.h"

uint32_t
sqs_batch_size(const struct sqs_call *s)
{
	return s->q.batch ? s->q.n_entries : 1;
}

static bool
is_id(struct slice id)
{
	for (size_t i = 0; i < id.n; i++) {
		const char c = ascii_lower(id.p[i]);

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'))
			return false;
	}
	return id.n > 0 && id.n <= 80;
}

static bool
is_distinct(const struct sqs_entry *entries, uint32_t i)
{
	for (uint32_t j = 0; j < i; j++)
		if (slice_eq(entries[i].id, entries[j].id))
			return false;
	return true;
}

bool
sqs_batch_check(struct apicall *a)
{
	const struct sqs_call *const s = sqs_of(a);
	const bool wants = strstr(s->action->name, "Batch") != NULL;
	enum sqs_code code = SQS_OK;

	if (!wants && !s->q.batch)
		return true;
	if (s->q.n_entries == 0 || wants != s->q.batch)
		code = SQS_EMPTY_BATCH;
	else if (s->q.n_entries > SQS_BATCH)
		code = SQS_TOO_MANY_ENTRIES;
	for (uint32_t i = 0; i < s->q.n_entries && !code; i++) {
		if (!is_id(s->q.entries[i].id))
			code = SQS_BAD_ENTRY_ID;
		else if (!is_distinct(s->q.entries, i))
			code = SQS_IDS_NOT_DISTINCT;
	}
	if (code)
		sqs_refuse(a, code, code == SQS_EMPTY_BATCH ? "There should be at least one entry in the batch." : code == SQS_TOO_MANY_ENTRIES ? "Maximum number of entries per request are 10."
													   : code == SQS_BAD_ENTRY_ID           ? "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long."
																		: "Two or more batch entries have the same id.");
	return !code;
}

bool
sqs_batch_fail(struct apicall *a, struct sqs_outcome *o, enum sqs_code code, const char *text)
{
	if (!sqs_of(a)->q.batch) {
		sqs_refuse(a, code, "%s", text);
		return false;
	}
	*o = (struct sqs_outcome){ code, arena_copy(&a->memory, slice_of(text)) };
	return true;
}

void
sqs_batch_ids(struct sqs_out *o, const struct sqs_call *s, const struct sqs_outcome *outcomes, const char *tag)
{
	sqs_out_list(o, "Successful", tag);
	for (uint32_t i = 0; i < s->q.n_entries; i++) {
		if (outcomes[i].code)
			continue;
		sqs_out_item(o);
		sqs_out_plain(o, "Id", s->q.entries[i].id);
		sqs_out_item_end(o);
	}
	sqs_out_list_end(o);
}

void
sqs_batch_failed(struct sqs_out *o, const struct sqs_call *s, const struct sqs_outcome *outcomes)
{
	sqs_out_list(o, "Failed", "BatchResultErrorEntry");
	for (uint32_t i = 0; i < s->q.n_entries; i++) {
		const struct sqs_error *const error = &sqs_errors[outcomes[i].code];

		if (!outcomes[i].code)
			continue;
		sqs_out_item(o);
		sqs_out_plain(o, "Id", s->q.entries[i].id);
		sqs_out_bool(o, "SenderFault", error->status < 500);
		sqs_out_plain(o, "Code", slice_of(error->query));
		sqs_out_text(o, "Message", outcomes[i].text);
		sqs_out_item_end(o);
	}
	sqs_out_list_end(o);
}
