/*
 * client_consumer.c - a program that only consumes: a handler for every queue. Leases are
 * kept alive, failures come again, a handler that panics fails its own message alone, and
 * a server that restarts is waited for.
 */
#include <sluice/consumer.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct shop {
	struct slu_service *service;
	_Atomic unsigned done;
};

static void
one_more(struct shop *shop)
{
	if (atomic_fetch_add(&shop->done, 1) + 1 == 6) /* that was all */
		slu_service_stop(shop->service);
}

static enum slu_verdict
send_mail(struct slu_delivery *d, void *arg, struct slu_err *err)
{
	char text[64];
	size_t n;

	if (slu_delivery_read(d, text, sizeof text, &n, err))
		return SLU_RETRY;
	if (slu_delivery_info(d)->attempts == 1 && n == 4) /* "mail": a bug, the first time */
		slu_panic("no carrier");
	printf("mailed: %.*s\n", (int)n, text);
	one_more(arg);
	return SLU_DONE; /* ack */
}

static enum slu_verdict
send_bill(struct slu_delivery *d, void *arg, struct slu_err *err)
{
	(void)err;
	if (slu_delivery_info(d)->attempts == 1)
		return SLU_DEFER; /* not now; no failure */
	printf("billed by %s\n", slu_delivery_info(d)->receipt.queue);
	one_more(arg);
	return SLU_DONE;
}

static void
say_error(const struct slu_consumer_event *e, void *arg)
{
	(void)arg;
	printf("%s: %s\n", e->name, e->err->text);
}

static int
fill(struct slu_client *c, struct slu_err *err)
{
	int rc = 0;

	for (int i = 0; i < 3 && !rc; i++) {
		rc = slu_client_send(c, "example-mail", &(struct slu_send){ SLU_OPTIONS_INIT(struct slu_send), .payload = "mail", .size = 4 }, NULL, NULL, err);
		if (!rc)
			rc = slu_client_send(c, "example-bills", &(struct slu_send){ SLU_OPTIONS_INIT(struct slu_send), .payload = "bill", .size = 4 }, NULL, NULL, err);
	}
	return rc;
}

int
main(void)
{
	static struct shop shop;
	const struct slu_client_config config = { SLU_OPTIONS_INIT(struct slu_client_config), .servers = getenv("SLUICE_SERVER") };
	const struct slu_consumer consumers[] = {
		{ SLU_OPTIONS_INIT(struct slu_consumer), .name = "mail", .queue = "example-mail", .handle = send_mail, .arg = &shop, .concurrency = 2, .on_error = say_error },
		{ SLU_OPTIONS_INIT(struct slu_consumer), .name = "bills", .queue = "example-bills", .handle = send_bill, .arg = &shop, .prefetch = 4, .on_error = say_error },
	};
	struct slu_client *c;
	struct slu_err err;
	int rc = slu_client_new(&c, &config, &err);

	if (!rc)
		rc = fill(c, &err);
	if (!rc)
		rc = slu_service_new(&shop.service, c, consumers, 2, &err);
	if (!rc)
		rc = slu_service_run(shop.service, &err); /* until it is stopped, see one_more */
	if (!rc)
		rc = slu_service_start(shop.service, &err); /* or in the background */
	if (!rc) {
		slu_service_stop(shop.service);
		rc = slu_service_wait(shop.service, SLU_MIN, &err);
	}
	slu_service_free(shop.service);
	slu_client_free(c);
	if (rc)
		fprintf(stderr, "%s\n", err.text);
	return rc || shop.done != 6;
}
