/*
 * embed_why.c - why a message of a user's program is not running now.
 */
#include "embed/embed.h"

#include "base/need.h"
#include "engine/why_text.h"

#include <stdio.h>

static void
take_answer(const struct op *op, struct slu_why_answer *out)
{
	const struct why_fact *const f = &op->why.facts[0];
	const struct slice holder = why_holder(op, f);
	const bool counts = f->why == WHY_AHEAD || f->why == WHY_BEHIND;
	char text[WHY_TEXT];

	*out = (struct slu_why_answer){
		.until = f->until,
		.behind = f->id,
		.ahead = !counts ? 0 : f->n < WHY_COUNT ? f->n
							: WHY_COUNT,
		.more = counts && f->n > WHY_COUNT,
		.estimate = op->why.estimate,
	};
	(void)snprintf(out->reason, sizeof out->reason, "%s", why_name(f->why));                        /* fits */
	(void)snprintf(out->text, sizeof out->text, "%s", why_text_of(op, f, text));                    /* fits */
	(void)snprintf(out->owner, sizeof out->owner, "%.*s", (int)holder.n, holder.p ? holder.p : ""); /* HOLDER_MAX */
}

int
slu_why(struct slu_broker *b, const char *queue, uint64_t id, struct slu_why_answer *out, struct slu_err *err)
{
	NEED3(b, queue, out, err);

	struct op_row rows[OP_WHY_ROWS];
	struct op_queue q;
	struct embed_call c;
	int rc;

	rc = embed_begin(b, &c, OP_WHY, queue, err);
	if (rc)
		return rc;
	c.op.id = id;
	c.op.rows = rows;
	c.op.max_rows = OP_WHY_ROWS;
	c.op.queues = &q;
	c.op.max_queues = 1;
	rc = embed_run(b, &c, err);
	if (!rc)
		take_answer(&c.op, out);
	op_unpin(&c.op);
	embed_end(b, &c);
	return rc;
}
