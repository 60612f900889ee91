/*
 * kit.h - a broker in the process, for the tests of src/embed/.
 */
#ifndef TESTS_EMBED_KIT_H
#define TESTS_EMBED_KIT_H

#include "test.h"

#include <sluice/policy.h>

#include <string.h>

static struct slu_broker *b;
static struct slu_err err;

static void
close_broker(void)
{
	slu_close(b);
	b = NULL;
}

FIXTURE(NULL, close_broker);

/* Closes the broker that was open. folder NULL: in memory. */
static void
open_in(const char *folder)
{
	close_broker();
	if (slu_open(&b, folder, NULL, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
}

/* Fails with the text of err. */
#define OK(call)                                                                  \
	do {                                                                      \
		if (call)                                                         \
			test_fail(__FILE__, __LINE__, "%s: %s", #call, err.text); \
	} while (0)

#define PUT(text, ...) \
	((struct slu_put){ SLU_OPTIONS_INIT(struct slu_put), .payload = (text), .size = strlen(text), __VA_ARGS__ })

/* Claims one message, which must come at once. */
static inline struct slu_message
take(const char *queue)
{
	struct slu_message m = { 0 };
	size_t n;

	OK(slu_claim(b, queue, NULL, &m, 1, &n, &err));
	CHECK_EQ(1, n, queue);
	return m;
}

static inline size_t
count(const char *queue)
{
	struct slu_queue_stats s;

	OK(slu_stats(b, queue, &s, &err));
	return s.ready + s.delayed + s.leased + s.held + s.dead;
}

static inline bool
payload_is(const struct slu_message *m, const char *text)
{
	return m->size == strlen(text) && memcmp(m->payload, text, m->size) == 0;
}

#endif
