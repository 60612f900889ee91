#include "cli/lib/nodehealth.h"

#include "base/json/json_table.h"
#include "base/parse.h"

#include <inttypes.h>
#include <stdio.h>

struct health_parts {
	struct slice shards, nodes;
};

static void
read_part(struct slice text, const struct json_field *fields, size_t n, struct nodehealth *h)
{
	struct json r;

	json_init(&r, text.n ? text : SLICE("{}"), JSON_DEPTH);
	json_fields(&r, fields, n, JSON_LENIENT, h);
}

bool
nodehealth_read(struct nodehealth *h, struct slice readyz)
{
	static const struct json_field parts[] = {
		JSON_FIELDS(raw, struct health_parts, shards, nodes),
	};
	static const struct json_field shards[] = {
		JSON_FIELDS(u64, struct nodehealth, here, elsewhere),
	};
	static const struct json_field nodes[] = {
		JSON_FIELDS(u64, struct nodehealth, living),
		JSON_FIELDS(bool, struct nodehealth, draining),
		JSON_FIELDS(i64, struct nodehealth, beat_age_ms, unconfirmed_ms),
	};
	struct health_parts found = { 0 };
	struct json r;

	*h = (struct nodehealth){ .beat_age_ms = -1 };
	json_init(&r, readyz, JSON_DEPTH);
	json_fields(&r, parts, COUNT(parts), JSON_LENIENT, &found);
	if (json_end(&r, NULL))
		return false;
	read_part(found.shards, shards, COUNT(shards), h);
	read_part(found.nodes, nodes, COUNT(nodes), h);
	return h->living > 0;
}

const char *
nodehealth_text(const struct nodehealth *h, char out[static NODEHEALTH_TEXT])
{
	char beat[DURATION_TEXT], lag[DURATION_TEXT];
	const bool known = h->beat_age_ms >= 0;

	(void)snprintf(out, NODEHEALTH_TEXT,
		       "shards %" PRIu64 " here, %" PRIu64 " elsewhere; nodes %" PRIu64 " living; %s%s%s; unconfirmed %s%s",
		       h->here, h->elsewhere, h->living, known ? "beat " : "no beat yet",
		       known ? format_duration(h->beat_age_ms * SLU_MS, beat, sizeof beat) : "", known ? " ago" : "",
		       format_duration(h->unconfirmed_ms * SLU_MS, lag, sizeof lag), h->draining ? "; drains" : "");
	return out;
}
