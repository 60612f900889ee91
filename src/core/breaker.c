#include "core/breaker.h"

#include "base/time.h"

#include <assert.h>

enum {
	STATES = SLU_BREAKER_HALF_OPEN + 1,
	PROBE_LOOKS = 8 /* tries for a probe in a cool-down */
};

/* from, to */
static const bool allowed_moves[STATES][STATES] = {
	[SLU_BREAKER_CLOSED] = { [SLU_BREAKER_OPEN] = true },
	[SLU_BREAKER_OPEN] = { [SLU_BREAKER_HALF_OPEN] = true },
	[SLU_BREAKER_HALF_OPEN] = {
		[SLU_BREAKER_CLOSED] = true,
		[SLU_BREAKER_OPEN] = true,
	},
};

static void
move(struct breaker *b, enum slu_breaker_state to)
{
	assert(allowed_moves[b->state][to]);
	b->state = to;
	b->failures = 0;
	b->begun = 0;
	b->succeeded = 0;
}

static void
trip(struct breaker *b, const struct breaker_rules *rules, slu_time now,
     uint64_t random)
{
	const slu_time most = rules->cooldown / 100 * rules->jitter_percent;
	const slu_time extra = (slu_time)(random % ((uint64_t)most + 1));

	b->old += b->begun - b->succeeded;
	move(b, SLU_BREAKER_OPEN);
	b->until = time_add(time_add(now, rules->cooldown), extra);
}

static void
give_up(struct breaker *b)
{
	b->old = 0;
	b->begun = b->succeeded;
}

static slu_time
time_to_wait(const struct breaker *b, const struct breaker_rules *rules, slu_time now)
{
	const slu_time left = b->until - now;
	const slu_time soon = rules->cooldown / PROBE_LOOKS + 1;

	return b->state == SLU_BREAKER_HALF_OPEN && soon < left ? soon : left;
}

int
breaker_allow(struct breaker *b, const struct breaker_rules *rules, slu_time now,
	      slu_time *retry_in)
{
	if (b->state == SLU_BREAKER_CLOSED) {
		b->old++;
		return 0;
	}
	if (b->state == SLU_BREAKER_OPEN && now >= b->until)
		move(b, SLU_BREAKER_HALF_OPEN);
	else if (b->state == SLU_BREAKER_HALF_OPEN && now >= b->until)
		give_up(b);

	if (b->state == SLU_BREAKER_OPEN || b->begun == rules->probes) {
		*retry_in = time_to_wait(b, rules, now);
		return SLU_EDOWN;
	}
	b->begun++;
	b->until = time_add(now, rules->cooldown);
	return 0;
}

static void
report_probe(struct breaker *b, const struct breaker_rules *rules, bool ok,
	     slu_time now, uint64_t random)
{
	if (b->old == 0 && b->begun == b->succeeded)
		return; /* no call is under way that could report this */
	if (!ok) {
		trip(b, rules, now, random);
		b->old--;
	} else if (b->old) {
		b->old--;
	} else {
		b->succeeded++;
		if (b->succeeded == rules->probes)
			move(b, SLU_BREAKER_CLOSED);
	}
}

void
breaker_report(struct breaker *b, const struct breaker_rules *rules, bool ok,
	       slu_time now, uint64_t random)
{
	if (b->state == SLU_BREAKER_HALF_OPEN) {
		report_probe(b, rules, ok, now, random);
		return;
	}
	if (b->old)
		b->old--;
	if (b->state == SLU_BREAKER_OPEN)
		return;
	b->failures = ok ? 0 : b->failures + 1;
	if (b->failures >= rules->failures)
		trip(b, rules, now, random);
}
