/*
 * nodehealth.h - the members `shards` and `nodes` of /readyz: a server that shares its store.
 *
 *      {"status":"ready","shards":{"here":5,"elsewhere":11},
 *       "nodes":{"living":3,"draining":false,"beat_age_ms":420,"unconfirmed_ms":0}}
 */
#ifndef CLI_LIB_NODEHEALTH_H
#define CLI_LIB_NODEHEALTH_H

#include "base/bytes.h"

enum {
	NODEHEALTH_TEXT = 160
};

struct nodehealth {
	uint64_t here;          /* shards that the server owns */
	uint64_t elsewhere;     /* shards that other nodes own */
	uint64_t living;        /* nodes; 0 = the server does not share its store */
	bool draining;          /* the server hands over its shards */
	int64_t beat_age_ms;    /* of the server's newest beat; -1 = unknown */
	int64_t unconfirmed_ms; /* age of the oldest group on its way to the store; 0 = none */
};

/* Reads an answer of /readyz. Returns false if the server does not share its store. */
bool nodehealth_read(struct nodehealth *h, struct slice readyz);

/* "shards 5 here, 11 elsewhere; nodes 3 living; beat 420ms ago; unconfirmed 0s" */
const char *nodehealth_text(const struct nodehealth *h, char out[static NODEHEALTH_TEXT]);

#endif
