#include "cli/lib/knobs.h"

#include "base/json/json.h"
#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

static void
add(struct knobs *k, const char *prefix, const struct json_str *name, struct slice value)
{
	struct knob *const row = &k->rows[k->n];
	int n;

	if (k->n == KNOBS_MAX || value.n >= sizeof row->value)
		return; /* a knob of a newer server is not shown */
	n = snprintf(row->name, sizeof row->name, "%s%.*s", prefix, (int)name->raw.n, name->raw.p);
	if (n >= (int)sizeof row->name)
		return;
	(void)snprintf(row->value, sizeof row->value, "%.*s", (int)value.n, value.p);
	k->n++;
}

static void
read_inner(struct knobs *k, struct json *in, const struct json_str *outer)
{
	char prefix[KNOB_NAME];
	struct json_str name;

	(void)snprintf(prefix, sizeof prefix, "%.*s.", (int)outer->raw.n, outer->raw.p);
	json_object(in);
	while (json_member(in, &name))
		add(k, prefix, &name, json_skip(in));
}

static void
read_object(struct knobs *k, struct json *in)
{
	struct json_str name;

	json_object(in);
	while (json_member(in, &name)) {
		if (json_str_is(&name, SLICE("namespace")) || json_str_is(&name, SLICE("topic")) ||
		    json_str_is(&name, SLICE("queue")))
			(void)json_skip(in); /* names, not knobs */
		else if (json_peek(in) == JSON_OBJECT)
			read_inner(k, in, &name);
		else
			add(k, "", &name, json_skip(in));
	}
}

int
knobs_read(struct knobs *k, struct slice document, const char *member, struct slu_err *err)
{
	struct json_str name;
	struct json in;

	k->n = 0;
	json_init(&in, document, JSON_DEPTH);
	if (!member) {
		read_object(k, &in);
		return json_end(&in, err) ? SLU_EUNKNOWN : 0;
	}
	json_object(&in);
	while (json_member(&in, &name))
		if (json_str_is(&name, slice_of(member)))
			read_object(k, &in);
		else
			(void)json_skip(&in);
	return json_end(&in, err) ? SLU_EUNKNOWN : 0;
}

const char *const knob_names[] = {
	"lease", "max_attempts", "retry.kind", "retry.base", "retry.max", "retry.jitter", "ttl", "max_depth",
	"warn_depth", "warn_age", "tags", "max_rate", "burst", "idempotency_window", "idempotency", "dlq_retention", "dlq_max",
	"require_lease", "paused", "draining", "share_weights", "concurrency", "share_concurrency", "rate", "rate_burst",
	"share_rate", "share_rate_burst", "key_rate", "key_rate_burst", "limit_attribute", "attribute_concurrency", "attribute_rate",
	"attribute_rate_burst", "dead_letter_queue", "breakers", "rules", "max_runtime",
	NULL
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

const char *
knobs_find(const struct knobs *k, const char *name)
{
	for (unsigned i = 0; i < k->n; i++)
		if (strcmp(k->rows[i].name, name) == 0)
			return k->rows[i].value;
	return NULL;
}

struct slice
knob_text(const char *value)
{
	const size_t n = strlen(value);

	if (n >= 2 && value[0] == '"')
		return (struct slice){ value + 1, n - 2 };
	return (struct slice){ value, n };
}

void
knob_write(struct json_out *w, const char *name, const char *value)
{
	const size_t digits = strspn(value, "0123456789");

	if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0)
		json_out_bool(w, name, value[0] == 't');
	else if (*value && !value[digits] && digits < 19 && (value[0] != '0' || digits == 1))
		json_out_raw(w, name, slice_of(value));
	else
		json_out_str(w, name, slice_of(value));
}
