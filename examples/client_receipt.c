/*
 * client_receipt.c - who receives a message need not be who acks it: a receipt is a line of
 * text that any process can settle with. And a message with a state of its own: what one
 * attempt has noted, the next one finds.
 */
#include <sluice/client.h>

#include <stdio.h>
#include <stdlib.h>

/* Any process with a client can do this. */
static int
settle(struct slu_client *c, const char *text, bool done, struct slu_err *err)
{
	struct slu_receipt r;
	int rc = slu_receipt_parse(&r, text, err);

	if (!rc)
		rc = slu_client_extend(c, &r, SLU_MIN, NULL, err);
	if (!rc)
		rc = done ? slu_client_ack(c, &r, NULL, err) : slu_client_nack(c, &r, NULL, NULL, err);
	return rc;
}

static int
note(struct slu_client *c, struct slu_lease *state, struct slu_err *err)
{
	struct slu_state s;
	const int rc = slu_state_get(c, state, &s, NULL, err);

	if (rc)
		return rc;
	printf("found: %s\n", s.text ? s.text : "nothing, this is the first attempt");
	slu_free(s.text);
	return slu_state_put(c, state, "{\"step\":1}", 10, NULL, NULL, err);
}

static int
attempt(struct slu_client *c, bool done, struct slu_err *err)
{
	const struct slu_receive how = { SLU_OPTIONS_INIT(struct slu_receive), .wait = SLU_NEVER, .stateful = true };
	struct slu_delivery *d;
	char *text = NULL;
	int rc = slu_client_receive(c, "example-receipt", &how, &d, NULL, err);

	if (!rc)
		rc = note(c, slu_delivery_state(d), err);
	if (!rc)
		text = slu_receipt_write(&slu_delivery_info(d)->receipt);
	slu_delivery_leave(d); /* close would be a nack */
	if (text)
		rc = settle(c, text, done, err);
	slu_free(text);
	return rc;
}

int
main(void)
{
	const struct slu_client_config config = { SLU_OPTIONS_INIT(struct slu_client_config), .servers = getenv("SLUICE_SERVER") };
	const struct slu_send what = { SLU_OPTIONS_INIT(struct slu_send), .payload = "x", .size = 1 };
	struct slu_client *c;
	struct slu_err err;
	int rc = slu_client_new(&c, &config, &err);

	if (!rc)
		rc = slu_client_send(c, "example-receipt", &what, NULL, NULL, &err);
	if (!rc)
		rc = attempt(c, false, &err);
	if (!rc)
		rc = attempt(c, true, &err);
	slu_client_free(c);
	if (rc)
		fprintf(stderr, "%s\n", err.text);
	return rc ? 1 : 0;
}
