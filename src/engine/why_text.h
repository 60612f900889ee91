/*
 * why_text.h - the reasons of core/why.h for people: names and sentences.
 */
#ifndef ENGINE_WHY_TEXT_H
#define ENGINE_WHY_TEXT_H

#include "engine/op.h"

enum {
	WHY_TEXT = 400 /* bytes of a text, with the NUL */
};

/* "paused", "behind". A number that this version does not have is "unknown". */
const char *why_name(uint64_t why);

/* "queue", "share", "key", "attribute": enum gate_kind. */
const char *why_scope(uint64_t kind);

/* Writes the reason as a sentence without a period. holder: of the lease, of the message or of the head;
 * n 0: not known. Returns out. */
const char *why_text(const struct why_fact *f, struct slice holder, char out[static WHY_TEXT]);

/* The same of an answered OP_WHY. */
const char *why_text_of(const struct op *op, const struct why_fact *f, char out[static WHY_TEXT]);

/* The holder that the reason of an answered OP_WHY is about; n 0: not known. Valid while op->rows are. */
struct slice why_holder(const struct op *op, const struct why_fact *f);

#endif
