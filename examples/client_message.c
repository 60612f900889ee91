/*
 * client_message.c - a message is sent, received, worked on and acked; one that cannot be
 * worked on now goes back. What is forgotten goes back by itself, when it is closed.
 */
#include <sluice/client.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct order {
	char customer[32];
	int64_t amount;
};

static const struct slu_json_field fields[] = {
	SLU_JSON_FIELD(struct order, customer, SLU_JSON_TEXT),
	SLU_JSON_FIELD(struct order, amount, SLU_JSON_INT),
};

static int
work(struct slu_delivery *d, struct slu_err *err)
{
	const struct slu_delivery_info *info = slu_delivery_info(d);
	struct order order = { .amount = 0 };
	int rc = slu_delivery_decode(d, fields, 2, &order, err);

	if (rc)
		return rc;
	printf("attempt %u: %s orders for %" PRId64 "\n", info->attempts, order.customer, order.amount);
	if (info->attempts == 1) /* the shop is closed */
		return slu_delivery_nack(d, &(struct slu_nack){ SLU_OPTIONS_INIT(struct slu_nack), .defer = true }, NULL, err);
	rc = slu_delivery_extend(d, SLU_MIN, NULL, err); /* this may take a while */
	return rc ? rc : slu_delivery_ack(d, NULL, err);
}

int
main(void)
{
	static const char text[] = "{\"customer\":\"Anna\",\"amount\":12}";
	const struct slu_client_config config = { SLU_OPTIONS_INIT(struct slu_client_config), .servers = getenv("SLUICE_SERVER") };
	const struct slu_send order = { SLU_OPTIONS_INIT(struct slu_send), .payload = text, .size = sizeof text - 1, .content_type = "application/json" };
	const struct slu_receive how = { SLU_OPTIONS_INIT(struct slu_receive), .wait = SLU_NEVER, .on_close = SLU_SEC };
	struct slu_delivery *d;
	struct slu_client *c;
	struct slu_sent sent;
	struct slu_err err;
	int rc = slu_client_new(&c, &config, &err);

	if (!rc)
		rc = slu_client_send(c, "example-orders", &order, &sent, NULL, &err);
	if (!rc)
		printf("sent as %s\n", sent.id);
	for (int i = 0; i < 2 && !rc; i++) {
		rc = slu_client_receive(c, "example-orders", &how, &d, NULL, &err);
		if (!rc)
			rc = work(d, &err);
		slu_delivery_close(d);
	}
	slu_client_free(c);
	if (rc)
		fprintf(stderr, "%s\n", err.text);
	return rc ? 1 : 0;
}
