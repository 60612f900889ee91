/*
 * decode.h - reads the JSON answers of a server by tables of json_table.h.
 */
#ifndef CLIENT_DECODE_H
#define CLIENT_DECODE_H

#include "base/json/json_table.h"

json_read decode_seconds; /* slu_time: a moment in seconds since 1970 */

/* Reads the members of a JSON object; unknown ones are skipped. Returns SLU_EUNKNOWN if the text is
 * malformed. what: "answer to extend", for the error. */
int decode_object(struct slice text, const struct json_field *fields, size_t n, void *out, const char *what,
		  struct slu_err *err);

#endif
