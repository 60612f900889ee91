#include "test.h"

#include "base/episode.h"
#include "base/log.h"
#include "fakeclock.h"

#include <stdio.h>
#include <string.h>

static const struct episode_kind disk = { "disk full", "disk full has ended", "shard" };
static const struct episode_kind refused = { "refused", "refused no more", "address" };

struct bench {
	struct fakeclock clock;
	struct slu_log *log;
	struct episodes episodes;
	char text[64 * 1024];
	size_t n;
	unsigned lines;
	uint64_t told;
	unsigned tells;
};

static void
catch_line(void *arg, enum slu_log_level level, const char *line, size_t n)
{
	struct bench *const b = arg;

	(void)level;
	CHECK(b->n + n < sizeof b->text);
	memcpy(b->text + b->n, line, n);
	b->n += n;
	b->text[b->n] = '\0';
	b->lines++;
}

static void
hear(void *arg, const struct episode *e, uint64_t n)
{
	struct bench *const b = arg;

	CHECK(e->count >= n);
	b->told += n;
	b->tells++;
}

static void
bench_init(struct bench *b)
{
	memset(b, 0, sizeof *b);
	fakeclock_init(&b->clock, 5 * SLU_SEC, 1763208000 * SLU_SEC);
	b->log = slu_log_new(SLU_LOG_DEBUG, SLU_LOG_LOGFMT, catch_line, b);
	log_set_clock(b->log, &b->clock.clock);
	episodes_init(&b->episodes, b->log, &b->clock.clock);
	b->episodes.tell = hear;
	b->episodes.arg = b;
}

static void
bench_release(struct bench *b)
{
	episodes_release(&b->episodes);
	slu_log_free(b->log);
	fakeclock_release(&b->clock);
}

TEST(a_fault_that_repeats_has_two_lines)
{
	struct bench b;

	bench_init(&b);
	for (int i = 0; i < 100; i++) {
		episode_note(&b.episodes, &disk, NULL, "heavy", "no room");
		fakeclock_advance(&b.clock, SLU_SEC / 10);
		episodes_tick(&b.episodes);
	}
	CHECK_EQ(1, b.lines);
	CHECK(strstr(b.text, "level=warn event=\"disk full\" shard=heavy why=\"no room\"\n"));
	fakeclock_advance(&b.clock, EPISODE_QUIET);
	episodes_tick(&b.episodes);
	episodes_tick(&b.episodes);
	CHECK_EQ(2, b.lines);
	CHECK(strstr(b.text, "level=info event=\"disk full has ended\" shard=heavy count=100 seconds=9.9\n"));
	episode_note(&b.episodes, &disk, NULL, "heavy", "no room");
	CHECK_EQ(3, b.lines); /* it begins again */
	episodes_end(&b.episodes);
	CHECK_EQ(4, b.lines);
	bench_release(&b);
}

TEST(kind_reason_and_place_tell_episodes_apart)
{
	static const char scope[] = "scope", expired[] = "expired";
	struct bench b;

	bench_init(&b);
	for (int i = 0; i < 3; i++) {
		episode_note(&b.episodes, &disk, NULL, "a", NULL);
		episode_note(&b.episodes, &refused, scope, "a", NULL);
		episode_note(&b.episodes, &refused, scope, "b", NULL);
		episode_note(&b.episodes, &refused, expired, "b", NULL);
	}
	CHECK_EQ(4, b.lines);
	CHECK(strstr(b.text, "event=refused reason=scope address=b\n"));
	bench_release(&b);
}

TEST(the_first_event_is_reported_at_once_and_the_others_together)
{
	struct bench b;

	bench_init(&b);
	for (int i = 0; i < 250; i++) {
		episode_note(&b.episodes, &disk, NULL, "a", NULL);
		CHECK(b.told >= 1);
		fakeclock_advance(&b.clock, SLU_SEC / 10);
		episodes_tick(&b.episodes);
	}
	CHECK_EQ(3, b.tells); /* 25 s: one, and twice what came in 10 s */
	fakeclock_advance(&b.clock, EPISODE_QUIET);
	episodes_tick(&b.episodes);
	CHECK_EQ(250, b.told); /* none is lost */
	CHECK_EQ(4, b.tells);
	bench_release(&b);
}

TEST(more_places_than_there_is_room_for_are_one)
{
	struct bench b;
	char place[200];

	bench_init(&b);
	for (int i = 0; i < 2000; i++) {
		(void)snprintf(place, sizeof place, "%0150d", i); /* cut: all the same */
		episode_note(&b.episodes, &disk, NULL, place, NULL);
		(void)snprintf(place, sizeof place, "10.0.%d.%d", i / 256, i % 256);
		episode_note(&b.episodes, &refused, NULL, place, NULL);
	}
	CHECK(b.lines < EPISODES_MAX);
	CHECK(strstr(b.text, "event=refused address=others"));
	fakeclock_advance(&b.clock, EPISODE_QUIET);
	episodes_tick(&b.episodes);
	CHECK_EQ(4000, b.told);
	CHECK_EQ(0, b.episodes.n);
	bench_release(&b);
}
