/*
 * Ten minutes of waiting, which nothing on the way ends.
 */
#include "served.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

struct waiter {
	struct slu_client *client;
	struct slu_delivery *got;
	struct slu_err err;
	int rc;
};

static void *
wait_for_mail(void *arg)
{
	struct waiter *w = arg;

	w->rc = slu_client_receive(w->client, "mail", &(struct slu_receive){ SLU_OPTIONS_INIT(struct slu_receive), .wait = SLU_NEVER }, &w->got, NULL, &w->err);
	return NULL;
}

/* LQ-66: a blocking dequeue survives ten minutes. */
TEST_LIMIT(a_wait_of_ten_minutes_ends_with_a_message, 900)
{
	const struct timespec ten_minutes = { 600, 0 };
	struct waiter w = { 0 };
	struct test_server srv;
	pthread_t t;

	served_start(&srv, 1, "memory");
	w.client = served_client(&srv);
	CHECK(pthread_create(&t, NULL, wait_for_mail, &w) == 0);
	nanosleep(&ten_minutes, NULL);
	FINE(slu_client_send(w.client, "mail", &(struct slu_send){ SLU_OPTIONS_INIT(struct slu_send), .payload = "x", .size = 1 }, NULL, NULL, &err));
	pthread_join(t, NULL);
	CHECK_EQ(0, w.rc);
	CHECK(w.got);
	CHECK_EQ(1, slu_delivery_info(w.got)->attempts);
	FINE(slu_delivery_ack(w.got, NULL, &err));
	slu_delivery_close(w.got);
	slu_client_free(w.client);
}
