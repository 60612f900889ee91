#include "api/quarantine.h"

#include "base/log.h"
#include "base/mem.h"

/* The op has its own names: the names of the claim may be freed first. */
struct wish {
	struct op op;
	struct op_item item;
	char space[MESSAGE_NAME_MAX];
	char queue[MESSAGE_NAME_MAX];
};

static void
done(struct op *op)
{
	mem_free(op->owner);
}

static struct slice
copy(char *to, struct slice name)
{
	memcpy(to, name.p, name.n);
	return (struct slice){ to, name.n };
}

void
quarantine(const struct apicall *a, const struct op *claim, const struct op_row *row,
	   const struct slu_err *why)
{
	struct wish *w;

	log_error(a->api->log, "message damaged", F_U64("id", row->id), F_STR("why", why->text),
		  F_APICALL(a));
	if (claim->verb != OP_CLAIM)
		return;
	w = mem_alloc(sizeof *w);
	if (!w)
		return;
	op_init(&w->op, OP_QUARANTINE, copy(w->space, claim->space), copy(w->queue, claim->queue),
		done, w);
	w->item = (struct op_item){ .id = row->id, .token = row->token };
	w->op.items = &w->item;
	w->op.n_items = 1;
	if (broker_post(a->api->broker, &w->op))
		mem_free(w); /* stopped */
}
