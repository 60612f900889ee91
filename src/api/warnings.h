/*
 * warnings.h - what an operator should know of while the server works: the member `warnings` of /readyz.
 *
 *      engines (engine_ops.warnings), the index, the disks and clocks of the shards, other nodes
 */
#ifndef API_WARNINGS_H
#define API_WARNINGS_H

#include <stdbool.h>
#include <stdint.h>

struct api;
struct broker;
struct fanout;
struct json_out;

/* Adds the member `warnings`, if there are any. g: answers to OP_SHARD, or NULL: not known. */
void warnings_write(struct json_out *w, const struct api *api, const struct fanout *g);

/* The lanes of a shared shard have one store; the lanes of others have a log each. Negative: no lane. */
bool warnings_same_store(const struct broker *b, int64_t x, int64_t y);

#endif
