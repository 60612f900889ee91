#include "engine/engine.h"

#include <sched.h>
#include <stdio.h>

const struct engine_ops *
engine_find(const struct engine_ops *const *rows, const char *name)
{
	while (*rows && strcmp((*rows)->name, name) != 0)
		rows++;
	return *rows;
}

const char *
engine_names(const struct engine_ops *const *rows, const char *between, char *out, size_t size)
{
	size_t n = 0;

	*out = '\0';
	for (; *rows && n < size; rows++)
		n += (size_t)snprintf(out + n, size - n, "%s%s", n ? between : "", (*rows)->name);
	return out;
}

int
engine_run(struct engine *e, struct op *batch, slu_time due, slu_time now, struct slu_err *err)
{
	int rc = e->ops->run(e, batch, due, now, err);

	while (rc == ENGINE_LATER) {
		rc = e->ops->commit(e, err);
		if (rc == ENGINE_LATER)
			sched_yield();
	}
	return rc;
}
