/*
 * logkit_private.h - what the parts of the kit share.
 */
#ifndef TESTS_LOGKIT_PRIVATE_H
#define TESTS_LOGKIT_PRIVATE_H

#include "logkit.h"

#define KIT_SPACE SLICE("ns")

enum {
	KIT_PAYLOAD = 70000 /* the largest */
};

extern const char *const kit_queues[KIT_QUEUES];
struct spelling kit_spelling(int queue);

/* The texts of a message, for as long as it is used. */
struct kit_texts {
	char key[16];
	char idem[32];
	char payload[KIT_PAYLOAD];
};

/* The power is gone: answers say so, or nothing can be read. */
static inline bool
kit_is_dead(const struct logkit *k)
{
	return k->disk && k->disk->dead;
}

/* The power is gone or the disk broken, and nothing has happened. */
static inline bool
kit_is_down(const struct logkit *k, int rc)
{
	return rc == SLU_EDOWN && (kit_is_dead(k) || k->breaks);
}

/* An op on a key and all that it needs. */
struct kit_lock_op {
	int key; /* which; -1: it is the state of a message */
	uint64_t id;
	uint32_t doc;
	char name[64];
	struct op_put put;
	struct payload *payload;
	char bytes[KIT_PAYLOAD];
};

/* Random work on a key, one op a batch and key; used: those of this batch, as bits. The
 * power may go when a document is stored: false, there is no op then. */
bool kit_make_lock(struct logkit *k, struct op *op, struct kit_lock_op *o, unsigned *used);
void kit_end_lock(struct logkit *k, struct op *op, struct kit_lock_op *o);
void kit_doubt_lock(struct logkit *k, struct op *op, struct kit_lock_op *o); /* it may happen */

/* Stage a state for a message that is held. */
bool kit_make_state(struct logkit *k, struct op *op, struct kit_lock_op *o);

/* The message was handed out: what must be beside it. */
void kit_check_state(struct logkit *k, const struct op_row *row);

/* All keys against the model. False: the power went. */
bool kit_check_locks(struct logkit *k);
void kit_settle_locks(struct logkit *k, bool happened); /* it is known about the batch */

uint64_t kit_dice(struct logkit *k, uint64_t n); /* 0 .. n - 1 */
struct kit_msg *kit_msg(struct logkit *k, uint64_t id);
void kit_describe(struct logkit *k, uint64_t id, struct message *m, struct kit_texts *t);
void kit_text(char out[static 64], char what, uint64_t id);
void kit_check_record(struct logkit *k, const struct op_row *row);
void kit_check_files(struct logkit *k, uint32_t named);

#endif
