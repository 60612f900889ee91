/*
 * facts.h - prints a JSON object for people, a line for each value.
 *
 *      {"id":7,"payload":"aGVsbG8=","policy":{"lease":"30s"},"history":[{"event":"accepted",..}]}
 *
 *      id            7
 *      payload       hello
 *      policy.lease  30s
 *      history       event=accepted at=...
 */
#ifndef CLI_LIB_FACTS_H
#define CLI_LIB_FACTS_H

#include "base/bytes.h"

#include <sluice/err.h>

/* Prints the object to stdout. Returns SLU_EUNKNOWN if the document is not a JSON object. */
int facts_print(struct slice document, bool colours, struct slu_err *err);

#endif
