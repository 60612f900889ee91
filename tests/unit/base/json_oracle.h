/*
 * json_oracle.h - what jansson says about a document. On its own, since its names
 * and those of base/json/json.h are the same.
 *
 * Values are given as lines, in the order of the document:
 *
 *      {"a":[1,2.5]}      {     key 61     [     int 1     real 0x1.4p+1     ]     }
 */
#ifndef TESTS_JSON_ORACLE_H
#define TESTS_JSON_ORACLE_H

#include "base/bytes.h"

enum oracle {
	ORACLE_TAKES,
	ORACLE_REFUSES,
	ORACLE_DIFFERS /* refused for what we take on purpose: \u0000 or twice, in names */
};

enum oracle json_oracle(struct slice document, struct buf *lines);

/* One line: "str 616263". */
void oracle_text(struct buf *lines, const char *what, struct slice text);

#endif
