/*
 * embedded.c - a durable queue inside your program, without a server.
 *
 *      embedded            in memory
 *      embedded FOLDER     on disk: what is not acked is there when you run it again
 */
#include <sluice/sluice.h>

#include <stdio.h>
#include <string.h>

static int
produce(struct slu_broker *b, uint64_t *id, struct slu_err *err)
{
	struct slu_put puts[] = {
		{ SLU_OPTIONS_INIT(struct slu_put), .payload = "resize cat.png", .size = 14, .keep_result = SLU_MIN },
		{ SLU_OPTIONS_INIT(struct slu_put), .payload = "charge 12.50", .size = 12, .key = "customer-7", .priority = -1 },
		{ SLU_OPTIONS_INIT(struct slu_put), .payload = "refund 12.50", .size = 12, .key = "customer-7" },
	};
	struct slu_why_answer why;
	int rc;

	rc = slu_enqueue(b, "jobs", puts, 3, err); /* all three, or none */
	*id = puts[0].id;
	if (!rc)
		rc = slu_why(b, "jobs", puts[2].id, &why, err); /* it waits for the charge */
	if (!rc)
		printf("the refund: %s\n", why.text);
	return rc;
}

/* The first charge fails; it is tried again, and customer-7 waits for it. */
static int
work_on(struct slu_broker *b, struct slu_message *m, struct slu_err *err)
{
	const struct slu_nack_options again = { SLU_OPTIONS_INIT(struct slu_nack_options), .error = "card declined", .has_delay = true };

	printf("%.*s (attempt %u)\n", (int)m->size, (const char *)m->payload, m->attempts);
	if (strncmp(m->payload, "charge", 6) == 0 && m->attempts == 1)
		return slu_nack(b, m, &again, err);
	if (slu_extend(b, m, SLU_MIN, err)) /* it takes longer than we thought */
		return err->code;
	return slu_ack(b, m, "done", 4, err);
}

static int
consume(struct slu_broker *b, struct slu_err *err)
{
	struct slu_message m;
	size_t n;
	int rc = 0;

	while (!rc && slu_watch(b, "jobs", 0, err) == 0) {
		rc = slu_claim(b, "jobs", NULL, &m, 1, &n, err);
		if (rc || n == 0)
			continue;
		rc = work_on(b, &m, err);
		slu_message_release(&m);
	}
	return rc;
}

int
main(int argc, char **argv)
{
	struct slu_broker *b = NULL;
	struct slu_queue_stats left = { 0 };
	struct slu_err err = { 0 };
	void *result = NULL;
	size_t size;
	uint64_t id;
	int rc;

	rc = slu_open(&b, argc > 1 ? argv[1] : NULL, NULL, &err);
	if (!rc)
		rc = produce(b, &id, &err);
	if (!rc)
		rc = consume(b, &err);
	if (!rc)
		rc = slu_result(b, "jobs", id, SLU_SEC, &result, &size, &err);
	if (!rc)
		rc = slu_stats(b, "jobs", &left, &err);
	if (rc)
		fprintf(stderr, "%s\n", err.text);
	else
		printf("the cat: %s\n", (const char *)result);
	slu_free(result);
	if (b && (slu_stop(b, &err) || slu_watch(b, "jobs", 0, &err) != SLU_ECLOSED))
		rc = 1; /* from now on only what is held can be settled */
	slu_close(b);
	return rc || left.ready + left.leased + left.dead > 0;
}
