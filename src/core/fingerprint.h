/*
 * fingerprint.h - which errors are alike: those that differ in numbers and ids only.
 *
 *      "gateway timeout after 512 ms"             "gateway timeout after # ms"
 *      "order 7f3a90bc1 at 10.0.0.7:5432: gone"   "order # at #: gone"
 *
 *  FINGERPRINT-1  The likeness of an error is its first line without spaces around it, a run of spaces as one, and # for a
 *                 UUID, for a word of 8 or more hex digits with a decimal one among them, for 0x and hex digits, and for
 *                 every other run of decimal digits; # . : - between them are one #. It ends after FINGERPRINT_TEXT - 1 bytes.
 *  FINGERPRINT-2  The fingerprint is a hash of the likeness and of the reason of the death: the same on every machine and in
 *                 every release. It does not resist an attacker.
 */
#ifndef CORE_FINGERPRINT_H
#define CORE_FINGERPRINT_H

#include "base/bytes.h"

enum {
	FINGERPRINT_TEXT = 200 /* bytes of a likeness, with the NUL */
};

struct fingerprint {
	uint64_t hash; /* never 0 */
	char text[FINGERPRINT_TEXT];
};

void fingerprint_of(unsigned reason, struct slice error, struct fingerprint *out);

#endif
