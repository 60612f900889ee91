/*
 * Checkpoints in the embedded broker: the next holder of a message goes on where the last one was.
 */
#include "embed/kit.h"

#include <stdlib.h>

enum {
	MOST = 64 << 10 /* bytes of a checkpoint */
};

/* The holder fails; the message is ready again. */
static void
give_back(struct slu_message *m)
{
	const struct slu_nack_options at_once = { SLU_OPTIONS_INIT(struct slu_nack_options), .has_delay = true };

	OK(slu_nack(b, m, &at_once, &err));
	slu_message_release(m);
}

static void
comes_with(const char *checkpoint, unsigned attempts)
{
	struct slu_message m = take("jobs");

	CHECK_STR(checkpoint, m.checkpoint);
	CHECK_EQ(attempts, m.attempts);
	give_back(&m);
}

TEST(the_next_holder_gets_the_last_checkpoint) /* PW-F8 */
{
	struct slu_put put = PUT("rows", .share = "x", .key = "k", .attributes = "{\"a\":1}");
	struct slu_message m;
	slu_time until;

	open_in(NULL);
	OK(slu_enqueue(b, "jobs", &put, 1, &err));
	m = take("jobs");
	CHECK_STR("", m.checkpoint);
	until = m.lease_until;
	OK(slu_checkpoint(b, &m, SLU_HOUR, "{\"row\":1}", &err));
	CHECK(m.lease_until > until);
	OK(slu_checkpoint(b, &m, 0, " [2, \"\\u00e4\"] ", &err));
	CHECK_STR("", m.checkpoint);    /* what it came with */
	OK(slu_extend(b, &m, 0, &err)); /* without one: it stays */
	give_back(&m);
	comes_with(" [2, \"\\u00e4\"] ", 2);
	m = take("jobs");
	CHECK(payload_is(&m, "rows"));
	CHECK_STR("x", m.share);
	CHECK_STR("k", m.key);
	CHECK_STR("{\"a\":1}", m.attributes);
	OK(slu_ack(b, &m, NULL, 0, &err));
	slu_message_release(&m);
}

TEST(a_checkpoint_outlives_the_broker)
{
	const struct slu_claim_options wait = { SLU_OPTIONS_INIT(struct slu_claim_options), .wait = SLU_MIN };
	struct slu_put put = PUT("rows");
	struct slu_message m;
	size_t n;

	open_in("data");
	OK(slu_enqueue(b, "jobs", &put, 1, &err));
	m = take("jobs");
	OK(slu_checkpoint(b, &m, SLU_MS, "7", &err));
	slu_message_release(&m);
	open_in("data");
	OK(slu_claim(b, "jobs", &wait, &m, 1, &n, &err)); /* the lease that was found ends */
	CHECK_EQ(1, n);
	CHECK_STR("7", m.checkpoint);
	CHECK_EQ(1, m.failures);
	slu_message_release(&m);
}

TEST(only_the_holder_stores_a_checkpoint)
{
	struct slu_put put = PUT("rows");
	struct slu_message old, lease;

	open_in(NULL);
	OK(slu_enqueue(b, "jobs", &put, 1, &err));
	old = take("jobs");
	lease = old;
	give_back(&old);
	CHECK_EQ(SLU_ELEASE, slu_checkpoint(b, &lease, 0, "1", &err));
	comes_with("", 2);
}

TEST(a_checkpoint_is_json_of_at_most_64_kib)
{
	static const char *const bad[] = { "", "row 1", "{\"a\":}", "1 2", "\"\xff\"" };
	struct slu_put put = PUT("rows");
	char *const text = malloc(MOST + 2);
	struct slu_message m;

	open_in(NULL);
	OK(slu_enqueue(b, "jobs", &put, 1, &err));
	m = take("jobs");
	EACH(i, bad) {
		CHECK_EQ(SLU_EINVAL, slu_checkpoint(b, &m, 0, bad[i], &err), bad[i]);
		CHECK_CONTAINS("checkpoint", err.text);
	}
	memset(text, '1', MOST + 1);
	text[MOST + 1] = 0;
	text[0] = text[MOST] = '"';
	CHECK_EQ(SLU_ETOOBIG, slu_checkpoint(b, &m, 0, text, &err));
	CHECK_CONTAINS("65536", err.text);
	text[MOST - 1] = '"';
	text[MOST] = 0;
	OK(slu_checkpoint(b, &m, 0, text, &err));
	give_back(&m);
	comes_with(text, 2);
	free(text);
}

TEST(a_large_message_has_its_checkpoint)
{
	const struct slu_claim_options in_pieces = { SLU_OPTIONS_INIT(struct slu_claim_options), .in_pieces = true };
	const size_t size = 2 << 20;
	char *const large = calloc(1, size);
	struct slu_put put = { SLU_OPTIONS_INIT(struct slu_put), .payload = large, .size = size };
	struct slu_message m;
	char last = 1;
	size_t n;

	open_in("data");
	OK(slu_enqueue(b, "jobs", &put, 1, &err));
	m = take("jobs");
	OK(slu_checkpoint(b, &m, 0, "{\"row\":9}", &err));
	give_back(&m);
	comes_with("{\"row\":9}", 2);
	m = take("jobs");
	CHECK_EQ(size, m.size);
	CHECK_EQ(0, memcmp(large, m.payload, size));
	give_back(&m);
	OK(slu_claim(b, "jobs", &in_pieces, &m, 1, &n, &err));
	CHECK_STR("{\"row\":9}", m.checkpoint);
	OK(slu_read(b, &m, size - 1, &last, 1, &err));
	CHECK_EQ(0, last);
	slu_message_release(&m);
	free(large);
}
