#include "test.h"

#include "exec/cancel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

struct watcher {
	struct cancel_hook hook;
	_Atomic int told;
};

static void
note(struct cancel_hook *h)
{
	atomic_fetch_add(&CONTAINER(h, struct watcher, hook)->told, 1);
}

/* clang-format off */
#define WATCHER { .hook.fired = note }
/* clang-format on */

TEST(a_token_fires_once_and_keeps_the_first_reason)
{
	struct slu_cancel *c = slu_cancel_new();

	CHECK(!slu_cancel_fired(c));
	slu_cancel_fire(c, "window closed");
	slu_cancel_fire(c, "too late");
	CHECK(slu_cancel_fired(c));
	CHECK_STR("window closed", cancel_reason(c));
	slu_cancel_free(c);
}

TEST(a_reason_may_be_missing_or_long)
{
	struct slu_cancel *bare = slu_cancel_new(), *wordy = slu_cancel_new();
	char text[200];

	slu_cancel_fire(bare, NULL);
	CHECK_STR("canceled", cancel_reason(bare));

	memset(text, 'x', sizeof text);
	text[sizeof text - 1] = 0;
	slu_cancel_fire(wordy, text);
	CHECK_EQ(79, strlen(cancel_reason(wordy)));
	slu_cancel_free(bare);
	slu_cancel_free(wordy);
}

TEST(no_token_never_fires_and_may_be_freed)
{
	CHECK(!slu_cancel_fired(NULL));
	CHECK(cancel_ref(NULL) == NULL);
	slu_cancel_free(NULL);
}

TEST(a_token_lives_until_its_last_reference_is_gone)
{
	struct slu_cancel *c = slu_cancel_new();

	CHECK(cancel_ref(c) == c);
	CHECK(cancel_ref(c) == c);
	slu_cancel_free(c);
	slu_cancel_free(c);
	slu_cancel_fire(c, "still here"); /* the address sanitizer knows better */
	CHECK_STR("still here", cancel_reason(c));
	slu_cancel_free(c);
}

TEST(every_hook_is_called_once)
{
	struct slu_cancel *c = slu_cancel_new();
	struct watcher w[3] = { WATCHER, WATCHER, WATCHER };

	EACH(i, w)
		CHECK(cancel_hook(c, &w[i].hook));
	slu_cancel_fire(c, "a");
	slu_cancel_fire(c, "b");
	EACH(i, w) {
		CHECK_EQ(1, w[i].told);
		cancel_unhook(c, &w[i].hook); /* fine after it fired */
	}
	slu_cancel_free(c);
}

TEST(a_removed_hook_is_not_called)
{
	struct slu_cancel *c = slu_cancel_new();
	struct watcher stays = WATCHER, goes = WATCHER;

	CHECK(cancel_hook(c, &stays.hook));
	CHECK(cancel_hook(c, &goes.hook));
	cancel_unhook(c, &goes.hook);
	slu_cancel_fire(c, NULL);
	CHECK_EQ(1, stays.told);
	CHECK_EQ(0, goes.told);
	slu_cancel_free(c);
}

TEST(a_token_that_has_fired_takes_no_hook)
{
	struct slu_cancel *c = slu_cancel_new();
	struct watcher w = WATCHER;

	slu_cancel_fire(c, NULL);
	CHECK(!cancel_hook(c, &w.hook));
	CHECK_EQ(0, w.told);
	cancel_unhook(c, &w.hook); /* fine although it never was hooked */
	slu_cancel_free(c);
}

TORTURE(out_of_memory_gives_no_token)
{
	struct slu_cancel *c = slu_cancel_new();

	slu_cancel_free(c);
}

/* Threads hook, unhook and fire one token; the last thread frees it. */
struct crowd {
	struct slu_cancel *token;
	pthread_barrier_t start;
	_Atomic int hooked;
	_Atomic int told;
};

static void
hook_once(struct crowd *crowd)
{
	struct watcher w = WATCHER;
	const bool hooked = cancel_hook(crowd->token, &w.hook);

	cancel_unhook(crowd->token, &w.hook);
	CHECK(w.told <= hooked); /* from here on w may go: no hook is called */
	atomic_fetch_add(&crowd->hooked, hooked);
	atomic_fetch_add(&crowd->told, w.told);
}

static void *
hook_a_lot(void *arg)
{
	struct crowd *crowd = arg;

	pthread_barrier_wait(&crowd->start);
	while (!slu_cancel_fired(crowd->token))
		hook_once(crowd);
	hook_once(crowd);
	slu_cancel_free(crowd->token);
	return NULL;
}

static void *
fire(void *arg)
{
	struct crowd *crowd = arg;
	char reason[32];

	pthread_barrier_wait(&crowd->start);
	WAIT_UNTIL(atomic_load(&crowd->hooked) > 0);
	(void)snprintf(reason, sizeof reason, "thread %p", (void *)reason);
	slu_cancel_fire(crowd->token, reason);
	CHECK_CONTAINS("thread ", cancel_reason(crowd->token));
	slu_cancel_free(crowd->token);
	return NULL;
}

TEST(threads_may_hook_unhook_fire_and_free_at_once)
{
	struct crowd crowd = { .token = slu_cancel_new() };
	pthread_t threads[6];

	pthread_barrier_init(&crowd.start, NULL, COUNT(threads));
	EACH(i, threads) {
		cancel_ref(crowd.token);
		CHECK_EQ(0, pthread_create(&threads[i], NULL, i < 4 ? hook_a_lot : fire, &crowd));
	}
	slu_cancel_free(crowd.token);
	EACH(i, threads)
		pthread_join(threads[i], NULL);
	CHECK(crowd.told <= crowd.hooked);
	pthread_barrier_destroy(&crowd.start);
}
