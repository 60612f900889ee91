/*
 * facts.h - a JSON object for people, a line for each thing it says.
 *
 *      {"id":7,"payload":"aGVsbG8=","policy":{"lease":"30s"},"history":[{"event":"accepted",..}]}
 *
 *      id            7
 *      payload       hello
 *      policy.lease  30s
 *      history       event=accepted at=...
 */
#ifndef CLI_FACTS_H
#define CLI_FACTS_H

#include "base/bytes.h"

#include <sluice/err.h>

/* Print it to stdout. SLU_EUNKNOWN: it is no JSON object; SLU_ENOMEM. */
int facts_print(struct slice document, bool colours, struct slu_err *err);

#endif
