/*
 * template.h - generates payloads: {n} becomes the number of the message, {uuid} a random UUID,
 * {time} the current time as RFC 3339. Other braces stay as they are, so a template may be JSON.
 */
#ifndef CLI_MESSAGE_TEMPLATE_H
#define CLI_MESSAGE_TEMPLATE_H

#include "base/bytes.h"

#include <sluice/err.h>

/* Replaces the content of *out. Returns SLU_ENOMEM, or SLU_EFAILED if the system has no random numbers. */
int template_fill(const char *text, uint64_t n, struct buf *out, struct slu_err *err);

#endif
