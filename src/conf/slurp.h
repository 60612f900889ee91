/*
 * slurp.h - a whole small file in memory: configuration, a secret.
 */
#ifndef CONF_SLURP_H
#define CONF_SLURP_H

#include "base/bytes.h"

#include <sluice/err.h>

/* Appends to out. SLU_EINVAL: the system's reason, or that it is larger than out->max;
 * SLU_ENOMEM. Both name the file. */
int slurp(const char *file, struct buf *out, struct slu_err *err);

#endif
