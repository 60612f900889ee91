/*
 * template.h - payloads that are made: {n} is the number of the message, {uuid} a random UUID,
 * {time} the moment as RFC 3339. Other braces stay as they are, so a template may be JSON.
 */
#ifndef CLI_TEMPLATE_H
#define CLI_TEMPLATE_H

#include "base/bytes.h"

#include <sluice/err.h>

/* Replace what *out holds. SLU_ENOMEM, and SLU_EFAILED if there are no random numbers. */
int template_fill(const char *text, uint64_t n, struct buf *out, struct slu_err *err);

#endif
