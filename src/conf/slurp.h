/*
 * slurp.h - reads a whole small file: a configuration, a secret.
 */
#ifndef CONF_SLURP_H
#define CONF_SLURP_H

#include "base/bytes.h"

#include <sluice/err.h>

/* Append the file to out. SLU_EINVAL if the file cannot be read or is larger than out->max;
 * the error names the file. */
int slurp(const char *file, struct buf *out, struct slu_err *err);

#endif
