/*
 * client_subscribe.c - a stream of deliveries, without asking for each; and a watch, which
 * returns when a message is there, and takes nothing.
 */
#include <sluice/client.h>

#include <stdio.h>
#include <stdlib.h>

static int
send_some(struct slu_client *c, struct slu_err *err)
{
	char text[32];
	int rc = 0;

	for (int i = 0; i < 5 && !rc; i++) {
		const int n = snprintf(text, sizeof text, "news %d", i);

		rc = slu_client_send(c, "example-news", &(struct slu_send){ SLU_OPTIONS_INIT(struct slu_send), .payload = text, .size = (size_t)n }, NULL, NULL, err);
	}
	return rc;
}

static bool
seen(const struct slu_queue_event *e, void *arg)
{
	(void)arg;
	printf("%s\n", e->available ? "there are news" : "nothing yet");
	return !e->available; /* go on watching */
}

static int
read_news(struct slu_client *c, struct slu_err *err)
{
	const struct slu_receive how = { SLU_OPTIONS_INIT(struct slu_receive), .wait = SLU_SEC, .prefetch = 4 };
	struct slu_subscription *s;
	struct slu_delivery *d = NULL;
	int rc = slu_client_subscribe(c, "example-news", &how, &s, err);

	while (!rc) {
		char text[32];
		size_t n;

		rc = slu_subscription_next(s, &d, NULL, err);
		if (rc || !d) /* nothing for a second: enough */
			break;
		rc = slu_delivery_read(d, text, sizeof text, &n, err);
		if (!rc)
			printf("%.*s\n", (int)n, text);
		if (!rc)
			rc = slu_delivery_ack(d, NULL, err);
		slu_delivery_close(d);
	}
	slu_subscription_close(s);
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
		rc = send_some(c, &err);
	if (!rc)
		rc = slu_client_watch(c, "example-news", seen, NULL, NULL, &err);
	if (!rc)
		rc = read_news(c, &err);
	slu_client_free(c);
	if (rc)
		fprintf(stderr, "%s\n", err.text);
	return rc ? 1 : 0;
}
