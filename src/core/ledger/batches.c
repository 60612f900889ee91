#include "core/ledger/batches.h"

#include "core/ledger/ledger_private.h"

uint64_t
ledger_member_of(const struct ledger *l, uint32_t msg)
{
	const struct msg *const m = ledger_msg(l, msg);

	return m->more == SLAB_NONE ? 0 : ledger_terms(l, m)->batch;
}

uint32_t
ledger_purged_members(const struct ledger *l, uint32_t queue, uint64_t *of, uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t h = 0; l->terms.used > 0 && h < l->msgs.fresh; h++) {
		const struct msg *const m = ledger_scan_msg(l, h);
		const enum msg_state state = m ? msg_state(m) : MSG_NONE;
		const bool goes = state == MSG_READY || state == MSG_DELAYED || state == MSG_HELD;

		if (!goes || ledger_home(l, m) != queue || !ledger_member_of(l, h))
			continue;
		if (n < max)
			of[n] = ledger_member_of(l, h);
		n++;
	}
	return n;
}

int
ledger_decide_again(struct ledger *l, struct change *c)
{
	if (c->number)
		c->number = l->counter + 1;
	return ledger_reserve(l, c);
}
