/*
 * Acks at the moment their lease ends: either they win, or nothing has happened. Fault
 * 18. LEASE_RACES=n acks n messages; the long suite has a million.
 */
#include "test.h"

#include "base/mem.h"
#include "embed/embed.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum {
	RACES = 8000,
	HOLDERS = 16,
	HAND = 64 /* messages that a holder has at once */
};

#define LEASE (20 * SLU_MS)
#define EDGE  (5 * SLU_MS) /* acks come at most this long before or after the end */

/* What is known about a message; the first thread that knows it writes it. */
struct fate {
	_Atomic uint64_t token; /* the highest that was handed out */
	_Atomic bool acked;
};

static struct {
	struct slu_broker *b;
	uint32_t n;
	struct fate *fates;
	_Atomic uint32_t won;
	_Atomic uint32_t lost;
} race;

/* An expired lease is ready again at once. */
static void
retry_at_once(void)
{
	struct slu_err err;
	struct embed_call c;

	CHECK_EQ(0, embed_begin(race.b, &c, OP_POLICY_SET, "work", &err));
	c.op.policy = policy_default;
	c.op.policy.retry.kind = SLU_BACKOFF_NONE;
	c.op.policy.max_attempts = 65535;
	CHECK_EQ(0, embed_run(race.b, &c, &err));
	embed_end(race.b, &c);
}

static void
fill(void)
{
	struct slu_put puts[100];
	uint32_t names[COUNT(puts)];
	struct slu_err err;

	for (uint32_t i = 0; i < race.n; i += COUNT(puts)) {
		memset(puts, 0, sizeof puts);
		EACH(j, puts) {
			names[j] = i + (uint32_t)j;
			puts[j].struct_size = sizeof puts[j];
			puts[j].payload = &names[j];
			puts[j].size = sizeof names[j];
		}
		CHECK_EQ(0, slu_enqueue(race.b, "work", puts, COUNT(puts), &err));
	}
}

static struct fate *
fate_of(const struct slu_message *m)
{
	uint32_t name;

	CHECK_EQ(sizeof name, m->size);
	memcpy(&name, m->payload, sizeof name);
	CHECK(name < race.n);
	return &race.fates[name];
}

/* I3 and I4: nothing comes after its ack, no token twice. Whoever is slow to write down what it
 * got may find that others have got it since, and acked it: by a higher token. */
static void
receive(const struct slu_message *m)
{
	struct fate *f = fate_of(m);
	const bool acked = f->acked;
	uint64_t before = f->token;

	while (before < m->token && !atomic_compare_exchange_weak(&f->token, &before, m->token))
		;
	CHECK(before != m->token);
	CHECK(before > m->token || !acked);
}

static void
sleep_until(slu_time wall)
{
	const struct timespec t = { wall / SLU_SEC, wall % SLU_SEC };

	while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL))
		;
}

/* I5: an ack that is taken is of the last token there is, and the only one. */
static void
settle(struct slu_message *m)
{
	struct fate *f = fate_of(m);
	struct slu_err err;
	const int rc = slu_ack(race.b, m, NULL, 0, &err);

	if (rc) {
		CHECK(rc == SLU_ELEASE || rc == SLU_ENOTFOUND);
		race.lost++;
		return;
	}
	CHECK_EQ(m->token, f->token);
	CHECK(!atomic_exchange(&f->acked, true));
	race.won++;
}

static void *
hold(void *arg)
{
	const struct slu_claim_options options = { SLU_OPTIONS_INIT(struct slu_claim_options), .lease = LEASE, .wait = 10 * SLU_MS };
	struct slu_message hand[HAND];
	uint64_t dice = test_seed() + (uint64_t)(uintptr_t)arg;

	while (race.won < race.n) {
		struct slu_err err;
		size_t n;

		CHECK_EQ(0, slu_claim(race.b, "work", &options, hand, HAND, &n, &err));
		for (size_t i = 0; i < n; i++)
			receive(&hand[i]);
		for (size_t i = 0; i < n; i++) {
			const slu_time slot = 2 * EDGE / (slu_time)n;
			const slu_time at = -EDGE + (slu_time)i * slot +
					    (slu_time)(test_random(&dice) % (uint64_t)slot);

			sleep_until(hand[i].lease_until + at);
			settle(&hand[i]);
			slu_message_release(&hand[i]);
		}
	}
	return NULL;
}

static void
run(const char *folder)
{
	const char *const races = getenv("LEASE_RACES");
	struct slu_queue_stats stats;
	pthread_t threads[HOLDERS];
	struct slu_err err;

	race.n = races ? (uint32_t)strtoul(races, NULL, 10) : RACES;
	race.fates = mem_array(race.n, sizeof *race.fates);
	CHECK(race.fates != NULL);
	CHECK_EQ(0, slu_open(&race.b, folder, NULL, &err));
	retry_at_once();
	fill();
	EACH(i, threads)
		CHECK_EQ(0, pthread_create(&threads[i], NULL, hold, (void *)(i + 1)));
	EACH(i, threads)
		pthread_join(threads[i], NULL);
	CHECK_EQ(race.n, race.won);
	CHECK(race.lost > race.n / 50); /* the race was on */
	CHECK_EQ(0, slu_stats(race.b, "work", &stats, &err));
	CHECK_EQ(0, stats.ready + stats.delayed + stats.leased + stats.held + stats.dead);
	slu_close(race.b);
	mem_free(race.fates);
}

TEST_LIMIT(an_ack_at_the_end_of_its_lease_wins_or_changes_nothing, 1200)
{
	run(NULL);
}

TEST_LIMIT(the_same_holds_with_a_log, 1200)
{
	run("log");
}
