/*
 * What other threads do beside the log's own: make spares, and read what was pinned
 * for them. Run under the thread sanitizer, too.
 */
#include "test.h"

#include "walkit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum {
	PINS = 64,
	GROUPS = 3000
};

struct shared {
	_Atomic bool stopping;
	pthread_mutex_t mtx;
	struct wal_pin pins[PINS]; /* under mtx; segment NULL: free */
	unsigned long reads;
};

static void *
make_spares(void *arg)
{
	struct shared *s = arg;
	struct slu_err err;

	while (!atomic_load(&s->stopping)) {
		if (wal_wants_spare(k.w))
			CHECK_EQ(0, wal_prepare(k.w, &err));
		test_yield();
	}
	return NULL;
}

static bool
take_pin(struct shared *s, struct wal_pin *pin)
{
	*pin = (struct wal_pin){ 0 };
	pthread_mutex_lock(&s->mtx);
	for (int i = 0; i < PINS && !pin->segment; i++) {
		*pin = s->pins[i];
		s->pins[i].segment = NULL;
	}
	pthread_mutex_unlock(&s->mtx);
	return pin->segment != NULL;
}

static void *
read_pins(void *arg)
{
	struct shared *s = arg;
	char p[1024];

	while (!atomic_load(&s->stopping)) {
		struct wal_record rec;
		struct slu_err err;
		struct wal_pin pin;

		if (!take_pin(s, &pin)) {
			test_yield();
			continue;
		}
		if (wal_pinned_read(&pin, p, sizeof p, &rec, &err))
			test_fail(__FILE__, __LINE__, "%s", err.text);
		CHECK_EQ(1, rec.type);
		s->reads++;
		wal_unpin(&pin);
	}
	return NULL;
}

static void
give_pin(struct shared *s)
{
	pthread_mutex_lock(&s->mtx);
	for (int i = 0; i < PINS; i++)
		if (!s->pins[i].segment) {
			CHECK_EQ(0, wal_pin(k.w, k.where, &s->pins[i]));
			break;
		}
	pthread_mutex_unlock(&s->mtx);
}

TEST(spares_are_made_and_pins_read_while_the_log_is_written)
{
	static struct shared s = { .mtx = PTHREAD_MUTEX_INITIALIZER };
	pthread_t maker, reader;

	walkit_init(16 * 1024);
	k.conf.reserve = 2;
	CHECK_EQ(0, walkit_open());
	CHECK_EQ(0, pthread_create(&maker, NULL, make_spares, &s));
	CHECK_EQ(0, pthread_create(&reader, NULL, read_pins, &s));
	for (int i = 0; i < GROUPS; i++) {
		CHECK_EQ(0, walkit_group(3, 300, true));
		give_pin(&s);
		if (wal_oldest(k.w) && i % 3)
			CHECK_EQ(0, walkit_recycle());
	}
	atomic_store(&s.stopping, true);
	pthread_join(maker, NULL);
	pthread_join(reader, NULL);
	for (int i = 0; i < PINS; i++)
		wal_unpin(&s.pins[i]);
	walkit_kill();
	CHECK_EQ(0, walkit_open());
	CHECK_EQ(GROUPS, k.seen);
	printf("# %lu records read\n", s.reads);
}
