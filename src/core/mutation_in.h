/*
 * mutation_in.h - what the files of core/mutation.h share.
 */
#ifndef CORE_MUTATION_IN_H
#define CORE_MUTATION_IN_H

#include "core/mutation.h"

/* The failure of out, which had to take `bytes` bytes: SLU_ETOOBIG or SLU_ENOMEM. */
int mutation_no_room(const struct buf *out, size_t bytes, struct slu_err *err);

/* Writes the sum of two JSON values. SLU_EINVAL: a is not a number, or the sum is too large. */
int mutation_add(struct slice a, struct slice b, struct buf *out, struct slu_err *err);

/* mutation_apply for a path with wildcards. */
int mutation_apply_each(const struct mutation *m, struct slice document, struct buf *out,
			struct slu_err *err);

#endif
