/*
 * missing.h - the shards that an answer lacks, for a warning.
 *
 *      {"queues":[...],"missing":[{"shard":3,"name":"default","node":"http://b:7171"}]}
 *
 *      sluice: incomplete: no answer from shard 3 of http://b:7171
 */
#ifndef CLI_LIB_MISSING_H
#define CLI_LIB_MISSING_H

#include "base/json/json.h"

struct session;

enum {
	MISSING_TEXT = 512
};

struct missing {
	char text[MISSING_TEXT]; /* "" = no shard is missing */
};

/* Adds the elements of the member `missing`, which the reader is at. */
void missing_read(struct missing *m, struct json *in);

/* Warns on stderr if a shard is missing. */
void missing_warn(const struct missing *m, const struct session *s);

#endif
