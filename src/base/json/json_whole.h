/*
 * json_whole.h - whole numbers without a sign, as ids and tokens are. Their digits are looked at once: json_number and
 * parse_u64 look at them twice.
 */
#ifndef BASE_JSON_JSON_WHOLE_H
#define BASE_JSON_JSON_WHOLE_H

#include "base/json/json.h"

/* Reads a number of up to 19 digits, from min to max. Reads nothing and returns false if the next value is another
 * one, perhaps a valid one: the caller then reads it, or finds the error, as any other value. */
bool json_whole(struct json *r, uint64_t min, uint64_t max, uint64_t *out);

#endif
