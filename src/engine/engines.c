/*
 * engines.c - the engines of the server: one row each.
 */
#include "engine/log/logengine.h"
#include "engine/memory/memory.h"
#include "engine/redis/redis.h"

const struct engine_ops *const engine_rows[] = {
	&engine_log,
	&engine_memory,
	&engine_redis,
	NULL,
};
