/*
 * members.c - three letters, and a report when all of them are sent.
 */
#include <sluice/batch.h>

#include <stdio.h>

static int
begin(struct slu_broker *b, uint64_t *id, struct slu_err *err)
{
	const struct slu_put report = { SLU_OPTIONS_INIT(struct slu_put), .queue = "reports", .payload = "all sent", .size = 8 };
	const struct slu_batch_options options = { SLU_OPTIONS_INIT(struct slu_batch_options), .callback = &report, .timeout = SLU_HOUR };
	int rc;

	rc = slu_batch_create(b, &options, id, err);
	for (int i = 0; i < 3 && !rc; i++) {
		struct slu_put letter = { SLU_OPTIONS_INIT(struct slu_put), .payload = "letter", .size = 6, .batch = *id };

		rc = slu_enqueue(b, "letters", &letter, 1, err);
	}
	return rc ? rc : slu_batch_close(b, *id, err);
}

/* Takes n messages, and waits for each. */
static int
take(struct slu_broker *b, const char *queue, int n, struct slu_err *err)
{
	const struct slu_claim_options patient = { SLU_OPTIONS_INIT(struct slu_claim_options), .wait = SLU_MIN };
	struct slu_message m;
	size_t found;
	int rc = 0;

	for (int i = 0; i < n && !rc; i++) {
		rc = slu_claim(b, queue, &patient, &m, 1, &found, err);
		if (rc)
			break;
		printf("%.*s %s\n", (int)m.size, (const char *)m.payload, m.attributes);
		rc = slu_ack(b, &m, NULL, 0, err);
		slu_message_release(&m);
	}
	return rc;
}

int
main(void)
{
	struct slu_broker *b = NULL;
	struct slu_batch batch = { 0 };
	struct slu_err err = { 0 };
	uint64_t id = 0;
	int rc;

	rc = slu_open(&b, NULL, NULL, &err);
	if (!rc)
		rc = begin(b, &id, &err);
	if (!rc)
		rc = take(b, "letters", 3, &err);
	if (!rc)
		rc = take(b, "reports", 1, &err);
	if (!rc)
		rc = slu_batch_get(b, id, &batch, &err);
	if (rc)
		fprintf(stderr, "%s\n", err.text);
	else
		printf("%s: %u of %u\n", batch.status, batch.done, batch.members);
	slu_close(b);
	return rc || batch.done != 3;
}
