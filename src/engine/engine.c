#include "engine/engine.h"

#include "engine/log.h"
#include "engine/memory.h"

const struct engine_ops *const engines[] = {
	&engine_memory,
	&engine_log,
	NULL,
};

const struct engine_ops *
engine_by_name(const char *name)
{
	for (const struct engine_ops *const *e = engines; *e; e++)
		if (strcmp((*e)->name, name) == 0)
			return *e;
	return NULL;
}
