/*
 * logkit_inner.h - what the parts of the kit share.
 */
#ifndef TESTS_LOGKIT_INNER_H
#define TESTS_LOGKIT_INNER_H

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

uint64_t kit_dice(struct logkit *k, uint64_t n); /* 0 .. n - 1 */
struct kit_msg *kit_msg(struct logkit *k, uint64_t id);
void kit_describe(struct logkit *k, uint64_t id, struct message *m, struct kit_texts *t);
void kit_text(char out[static 64], char what, uint64_t id);
void kit_check_record(struct logkit *k, const struct op_row *row);
void kit_check_files(struct logkit *k, uint32_t named);

#endif
