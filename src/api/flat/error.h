/*
 * error.h - the errors of the flat API and of administration, in one form:
 *
 *         {"error":"lease_lost","message":"lease expired or not yours"}
 *         {"error":"limit_reached","message":"namespace a: ...","limit":"rate"}
 *
 * The name and the status come from SLU_ERRORS (sluice/err.h), the limit from
 * base/limit.h. 429 and 503 have Retry-After. An answer repeats X-Request-Id and
 * X-Correlation-Id of its request if they are printable ASCII of at most 128 bytes.
 */
#ifndef API_FLAT_ERROR_H
#define API_FLAT_ERROR_H

#include "api/dialect.h"
#include "base/json/json_out.h"

/* Write the members of an error into an object that the caller has opened. text NULL or
 * empty: the text of SLU_ERRORS. */
void flat_write_error(struct json_out *w, int rc, const char *text);
void flat_write_err(struct json_out *w, const struct slu_err *err);

/* Adds Retry-After if the status of err is 429 or 503. */
void flat_add_retry(struct call *c, const struct slu_err *err);

/* For struct dialect. */
void flat_begin(struct call *c, const struct api *api);
void flat_refuse(struct call *c, const struct slu_err *err, int64_t index);
void flat_describe(struct buf *out, const struct dialect_refusal *r);

#endif
