/*
 * Batches of the embedded broker.
 */
#include "embed/kit.h"

#include <sluice/batch.h>

static uint64_t
create(const struct slu_put *callback)
{
	const struct slu_batch_options o = { SLU_OPTIONS_INIT(struct slu_batch_options), .callback = callback };
	uint64_t id = 0;

	OK(slu_batch_create(b, &o, &id, &err));
	return id;
}

static struct slu_batch
get(uint64_t id)
{
	struct slu_batch batch;

	OK(slu_batch_get(b, id, &batch, &err));
	return batch;
}

static void
end(const char *queue, bool well)
{
	const struct slu_nack_options dead = { SLU_OPTIONS_INIT(struct slu_nack_options), .dead = true };
	struct slu_message m = take(queue);

	if (well)
		OK(slu_ack(b, &m, NULL, 0, &err));
	else
		OK(slu_nack(b, &m, &dead, &err));
	slu_message_release(&m);
}

/* Waits for the callback. */
static struct slu_message
called_back(const char *queue)
{
	const struct slu_claim_options o = { SLU_OPTIONS_INIT(struct slu_claim_options), .wait = SLU_MIN };
	struct slu_message m = { 0 };
	size_t n;

	OK(slu_claim(b, queue, &o, &m, 1, &n, &err));
	CHECK_EQ(1, n);
	return m;
}

TEST(the_callback_begins_when_every_member_has_ended)
{
	const struct slu_put callback = PUT("all sent", .queue = "reports", .priority = 2, .attributes = "{\"own\":1}");
	struct slu_put members[] = { PUT("a"), PUT("b", .queue = "more") };
	struct slu_message m;
	struct slu_batch batch;
	uint64_t id;

	open_in("data");
	id = create(&callback);
	CHECK_STR("open", get(id).status);
	members[0].batch = members[1].batch = id;
	OK(slu_enqueue(b, "letters", members, 2, &err));
	CHECK(members[0].id > 0 && members[1].id > 0);
	CHECK_EQ(2, get(id).members);
	end("letters", true);
	OK(slu_batch_close(b, id, &err));
	CHECK_STR("closed", get(id).status);
	open_in("data");
	end("more", true);
	m = called_back("reports");
	CHECK(payload_is(&m, "all sent"));
	CHECK_EQ(2, m.priority);
	CHECK(strstr(m.attributes, "\"outcome\":\"done\"") && strstr(m.attributes, "\"own\":1"));
	batch = get(id);
	CHECK_STR("done", batch.status);
	CHECK_EQ(2, batch.done);
	CHECK_EQ(m.id, batch.callback);
	CHECK(batch.ended >= batch.created);
	slu_message_release(&m);
}

TEST(a_dead_member_has_failed)
{
	const struct slu_put callback = PUT("x", .queue = "reports");
	struct slu_put member = PUT("a");
	struct slu_message m;
	uint64_t id;

	open_in(NULL);
	member.batch = id = create(&callback);
	OK(slu_enqueue(b, "letters", &member, 1, &err));
	OK(slu_batch_close(b, id, &err));
	end("letters", false);
	m = called_back("reports");
	CHECK_STR("failed", get(id).status);
	CHECK_EQ(1, get(id).failed);
	slu_message_release(&m);
}

TEST(a_batch_without_members_calls_back_at_once)
{
	const struct slu_put callback = PUT("x", .queue = "reports");
	struct slu_message m;

	open_in(NULL);
	OK(slu_batch_close(b, create(&callback), &err));
	m = called_back("reports");
	slu_message_release(&m);
}

TEST(members_and_callbacks_that_cannot_be_are_refused)
{
	const struct slu_put homeless = PUT("x");
	const struct slu_batch_options o = { SLU_OPTIONS_INIT(struct slu_batch_options), .callback = &homeless };
	struct slu_put two[] = { PUT("a"), PUT("b") };
	struct slu_batch batch;
	uint64_t id;

	open_in(NULL);
	CHECK_EQ(SLU_EINVAL, slu_batch_create(b, &o, &id, &err));
	CHECK_EQ(SLU_ENOTFOUND, slu_batch_get(b, 12345, &batch, &err));
	CHECK_EQ(SLU_ENOTFOUND, slu_batch_close(b, 12345, &err));
	OK(slu_batch_create(b, NULL, &id, &err));
	two[0].batch = id;
	CHECK_EQ(SLU_EINVAL, slu_enqueue(b, "q", two, 2, &err)); /* one is no member */
	two[0].batch = two[1].batch = 12345;
	CHECK_EQ(SLU_ENOTFOUND, slu_enqueue(b, "q", two, 2, &err));
	OK(slu_batch_close(b, id, &err));
	two[0].batch = two[1].batch = id;
	CHECK(slu_enqueue(b, "q", two, 2, &err) != 0); /* closed */
	CHECK_EQ(0, count("q"));
}
