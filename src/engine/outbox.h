/*
 * outbox.h - messages that a shard has promised and another shard accepts.
 *
 *      shard A                                          shard B
 *      one group: the ack of a message,                 one group: the messages of the entries,
 *      and an entry for each message of B  ──INTAKE──>  and the number of the last entry
 *      the entries are deleted             <──────────
 *
 * An entry is a message of A in the namespace OUTBOX_SPACE. Its queue has the name of the lane of B: the
 * entries of this queue are the line from A to B. The payload of an entry is the record of the promised message
 * (engine/message.h), its correlation id is the source in hex, and its number in the ledger is its place in
 * the line. broker/outbox.h sends the entries.
 *
 *  OUTBOX-1  An entry is kept in the group of the step that made it.
 *  OUTBOX-2  B accepts an entry once: a batch whose first number is not above the last number that B has
 *            seen from the source changes nothing (struct op_intake).
 *  OUTBOX-3  A sends a batch after the batch before it was accepted, so messages with one key keep their order.
 *  OUTBOX-4  A source is drawn when A is opened: numbers of an earlier life never meet numbers of a later one.
 *  OUTBOX-5  A line has at most quota.outbox entries. A step that would make more fails with SLU_EOUTBOX.
 *  OUTBOX-6  B counts the messages for depths and rates, and these never refuse them. A full disk or memory at B
 *            lets them wait in A.
 *  OUTBOX-7  A dead letter of a queue with a dead_letter_queue leaves as an entry, in one group with its end in
 *            its queue, also if A itself has the other queue: one id is not in two queues of a shard. If the line
 *            is full, the dead letter waits in its queue.
 *  OUTBOX-8  An event of a batch (engine/msgbatch.h) is an entry of the group that ends the member. The bound of the line does
 *            not count for it: there are as many as members.
 */
#ifndef ENGINE_OUTBOX_H
#define ENGINE_OUTBOX_H

#include "core/change.h"
#include "core/names.h"
#include "engine/message.h"

#define OUTBOX_SPACE ".outbox"

enum {
	OUTBOX_SOURCE_TEXT = 2 * INTAKE_SOURCE, /* hex digits */
	OUTBOX_STANDARD = 10000                 /* OUTBOX-5, without a setting */
};

/* Where a message goes that a shard accepts as a part of a step. */
struct engine_home {
	bool line_always;     /* question: the message goes by a line, also to the shard of the step itself */
	bool here;            /* the shard of the step accepts it; the rest is unset then, unless line_always */
	uint32_t lane;        /* its number in the broker */
	uint64_t id;          /* a new id, for the entry */
	char line[NAME_TEXT]; /* the queue of the entry */
};

static inline bool
outbox_is(struct slice space)
{
	return slice_eq(space, SLICE(OUTBOX_SPACE));
}

/* Writes the source as text, and reads it. SLU_ECORRUPT if the text has no source. */
void outbox_source_text(const uint8_t source[static INTAKE_SOURCE], char out[static OUTBOX_SOURCE_TEXT]);
int outbox_source_read(struct slice text, uint8_t out[static INTAKE_SOURCE]);

#endif
