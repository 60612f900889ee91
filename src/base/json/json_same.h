/*
 * json_same.h - whether two JSON numbers are the same number, exactly: 1e2 and 100.0 are, 12345678901234567890 and
 * 12345678901234567891 are not, although no double tells them apart.
 */
#ifndef BASE_JSON_JSON_SAME_H
#define BASE_JSON_JSON_SAME_H

#include "base/bytes.h"

/* a and b: JSON numbers as written. Exponents of more than 17 digits are compared as written. */
bool json_number_same(struct slice a, struct slice b);

/* Whether the text is a JSON number, without space around it. */
bool json_number_is(struct slice text);

#endif
