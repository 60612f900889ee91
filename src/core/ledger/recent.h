/*
 * recent.h - what a queue did in the last minute, for lists of queues: from its trend (core/queue/trend.h), six steps of 10 s.
 */
#ifndef CORE_LEDGER_RECENT_H
#define CORE_LEDGER_RECENT_H

#include "core/ledger/ledger.h"

struct ledger_recent {
	slu_time wait;  /* p95 from due to delivery, of the last step that had a delivery, and 1 ns; 0: not known */
	slu_time empty; /* until nothing is ready, held or leased, if the queue goes on so; 0: it does not shrink, or not known */
};

/* backlog: messages that are ready, held or leased. */
void ledger_recent(struct ledger *l, uint32_t queue, slu_time now, uint64_t backlog, struct ledger_recent *out);

#endif
