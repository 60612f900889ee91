#include "core/ledger/recent.h"

#include "core/ledger/ledger_private.h"

enum {
	STEPS = 6,
	EMPTY_MAX_DAYS = 365 /* a longer time says nothing */
};

static uint64_t
sum(const struct trend_row *rows, unsigned column)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < STEPS; i++)
		if (rows[i].v[column] != TREND_NONE)
			n += trend_value(rows[i].v[column]);
	return n;
}

static slu_time
wait_of(const struct trend_row *rows)
{
	for (unsigned i = STEPS; i > 0; i--)
		if (rows[i - 1].v[TREND_WAIT + 1] != TREND_NONE)
			return (slu_time)trend_value(rows[i - 1].v[TREND_WAIT + 1]) * TREND_UNIT + 1;
	return 0;
}

static slu_time
empty_of(uint64_t in, uint64_t done, uint64_t backlog)
{
	const double minute = (double)(STEPS * trend_spans[TREND_10S].length);
	double time;

	if (done <= in || !backlog)
		return 0;
	time = (double)backlog / (double)(done - in) * minute;
	return time < (double)EMPTY_MAX_DAYS * 24 * (double)SLU_HOUR ? (slu_time)time : 0;
}

void
ledger_recent(struct ledger *l, uint32_t queue, slu_time now, uint64_t backlog, struct ledger_recent *out)
{
	struct trend_row rows[STEPS];
	slu_time end;

	*out = (struct ledger_recent){ 0 };
	if (!ledger_queue(l, queue)->trend || !ledger_trend(l, queue, now, TREND_10S, rows, STEPS, &end))
		return;
	out->wait = wait_of(rows);
	out->empty = empty_of(sum(rows, TREND_IN), sum(rows, TREND_DONE), backlog);
}
