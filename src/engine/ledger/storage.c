/*
 * storage.c - how long the log and the store of a shard took in the recent past.
 *
 *      a sync of the log ────> waits of a trend (core/queue/trend.h), counted as IN
 *      a put into the store ─> runs of the trend, counted as DONE
 *
 * The trend begins with the first of them, and takes 64 KB. A shard has no trend without limits.trends, or without memory for it.
 */
#include "engine/ledger/ledgerengine_private.h"

#include "engine/quota.h"

static bool
begin(struct ledgerengine *k)
{
	const struct trend_now at = { .oldest = SLU_NEVER };

	if (!k->storage && k->quota && quota_get(&k->quota->trends))
		k->storage = trend_new(TREND_OF_SHARD, k->now);
	if (k->storage)
		trend_to(k->storage, k->now, &at);
	return k->storage != NULL;
}

void
ledgerengine_synced(struct ledgerengine *k, slu_time took)
{
	if (!k->now || !begin(k)) /* no run yet: the log is being opened */
		return;
	trend_count(k->storage, TREND_IN);
	trend_wait(k->storage, took);
}

void
ledgerengine_stored(struct ledgerengine *k, slu_time took)
{
	if (!k->now || !begin(k))
		return;
	trend_count(k->storage, TREND_DONE);
	trend_run(k->storage, took);
}

bool
ledgerengine_read_storage(struct ledgerengine *k, struct op *op)
{
	if (!k->storage || !begin(k))
		return false;
	trend_read(k->storage, op->trend.scale, op->steps, op->max_steps, &op->trend.end);
	return true;
}
