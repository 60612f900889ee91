/*
 * mutation_private.h - shared by the files of core/mutation.h.
 */
#ifndef CORE_MUTATION_PRIVATE_H
#define CORE_MUTATION_PRIVATE_H

#include "core/mutation.h"

/* Returns why out failed, which needed `bytes` bytes: SLU_ETOOBIG or SLU_ENOMEM. */
int mutation_no_room(const struct buf *out, size_t bytes, struct slu_err *err);

/* Writes the sum of two JSON values. Returns SLU_EINVAL if a is not a number, or the sum is too
 * large. */
int mutation_add(struct slice a, struct slice b, struct buf *out, struct slu_err *err);

/* Writes the document changed by a mutation whose path has wildcards; the errors are as of
 * mutations_apply. */
int mutation_apply_each(const struct mutation *m, struct slice document, struct buf *out,
			struct slu_err *err);

#endif
