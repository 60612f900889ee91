/*
 * client_batch.c - many messages a call, to a server: put, take, settle. What is taken is
 * the taker's until the lease ends; what is acked is gone.
 */
#include <sluice/client.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int
put(struct slu_client *c, struct slu_err *err)
{
	struct slu_client_put puts[] = {
		{ SLU_OPTIONS_INIT(struct slu_client_put), .payload = "first", .size = 5, .key = "customer-7" },
		{ SLU_OPTIONS_INIT(struct slu_client_put), .payload = "second", .size = 6, .key = "customer-7" },
		{ SLU_OPTIONS_INIT(struct slu_client_put), .payload = "{\"urgent\":true}", .size = 15, .is_json = true, .priority = "high" },
	};
	struct slu_why_answer why;
	int rc = slu_client_enqueue(c, "example-batch", puts, 3, NULL, err);

	if (!rc)
		rc = slu_client_why(c, "example-batch", puts[1].id, &why, NULL, err); /* it waits for the first */
	if (!rc)
		printf("the second: %s\n", why.text);
	return rc;
}

/* The urgent one, then those of the customer, one after the other. */
static int
take(struct slu_client *c, struct slu_err *err)
{
	const struct slu_client_claim claim = { SLU_OPTIONS_INIT(struct slu_client_claim), .limit = 10, .wait = 5 * SLU_SEC };
	struct slu_client_messages got = { 0 };
	int rc = slu_client_dequeue(c, "example-batch", &claim, &got, NULL, err);

	for (size_t i = 0; i < got.n && !rc; i++) {
		const struct slu_client_message *m = &got.items[i];
		struct slu_settle done = { SLU_OPTIONS_INIT(struct slu_settle), .receipt = m->receipt };

		printf("%" PRIu64 ": %.*s\n", m->id, (int)m->size, (const char *)m->payload);
		rc = slu_client_settle(c, SLU_ACK, NULL, &done, 1, NULL, err);
	}
	slu_client_messages_release(&got);
	return rc;
}

/* Anything else that the server can be asked. */
static int
look(struct slu_client *c, struct slu_err *err)
{
	const struct slu_request r = {
		SLU_OPTIONS_INIT(struct slu_request),
		.method = "GET",
		.path = "/stats?namespace=default&topic=example-batch",
	};
	struct slu_answer answer;
	const int rc = slu_client_call(c, &r, &answer, NULL, err);

	if (!rc)
		printf("%s\n", answer.body);
	slu_free(answer.body);
	return rc;
}

int
main(void)
{
	const struct slu_client_config config = { SLU_OPTIONS_INIT(struct slu_client_config), .servers = getenv("SLUICE_SERVER") };
	struct slu_client *c;
	struct slu_err err;
	int rc = slu_client_new(&c, &config, &err);

	if (!rc)
		rc = put(c, &err);
	for (int i = 0; i < 3 && !rc; i++)
		rc = take(c, &err);
	if (!rc)
		rc = look(c, &err);
	if (!rc)
		rc = slu_client_stop(c, &err); /* what still waits ends; acks would go on */
	slu_client_free(c);
	if (rc)
		fprintf(stderr, "%s\n", err.text);
	return rc ? 1 : 0;
}
