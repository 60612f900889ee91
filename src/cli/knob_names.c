#include "cli/knob_names.h"

#include "base/nearest.h"

#include <stddef.h>
#include <string.h>

const char *const knob_names[] = {
	"lease",
	"max_attempts",
	"retry.kind",
	"retry.base",
	"retry.max",
	"retry.jitter",
	"ttl",
	"max_depth",
	"warn_depth",
	"max_rate",
	"burst",
	"idempotency_window",
	"idempotency",
	"dlq_retention",
	"dlq_max",
	"require_lease",
	"paused",
	NULL,
};

const char *
knob_nearest(const char *name)
{
	struct nearest best = nearest_to(name);

	for (const char *const *k = knob_names; *k; k++) {
		if (strcmp(*k, name) == 0)
			return NULL;
		nearest_try(&best, *k);
	}
	return best.name;
}
