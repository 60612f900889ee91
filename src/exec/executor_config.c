#include "exec/executor.h"

#include "base/need.h"
#include "base/parse.h"
#include "base/sized.h"

#include <stdlib.h>
#include <string.h>

enum setting_kind {
	SETTING_COUNT, /* a uint32_t */
	SETTING_TIME
};

/* One row: the variable, the field, its limits, its default. */
struct setting {
	const char *variable;
	const char *field;
	enum setting_kind kind;
	size_t offset;
	int64_t max;
	int64_t fallback;
};

#define AT(field) offsetof(struct slu_executor_config, field)
/* clang-format off */
static const struct setting settings[] = {
	{ "SQ_SHARDS",          "shards",          SETTING_COUNT, AT(shards),          SLU_SHARDS_MAX,  4 },
	{ "SQ_QUEUE_SIZE",      "queue_size",      SETTING_COUNT, AT(queue_size),      1 << 28,         128 },
	{ "SQ_ENQUEUE_TIMEOUT", "enqueue_timeout", SETTING_TIME,  AT(enqueue_timeout), SLU_NEVER,       100 * SLU_MS },
	{ "SQ_MAX_ATTEMPTS",    "max_attempts",    SETTING_COUNT, AT(max_attempts),    UINT32_MAX,      8 },
	{ "SQ_BASE_BACKOFF",    "base_backoff",    SETTING_TIME,  AT(base_backoff),    SLU_NEVER,       100 * SLU_MS },
	{ "SQ_MAX_INTERVAL",    "max_interval",    SETTING_TIME,  AT(max_interval),    SLU_NEVER,       20 * SLU_SEC },
};
/* clang-format on */

enum {
	N_SETTINGS = sizeof settings / sizeof settings[0]
};

static int64_t
get(const struct slu_executor_config *config, const struct setting *s)
{
	const char *field = (const char *)config + s->offset;

	return s->kind == SETTING_TIME ? *(const slu_time *)(const void *)field
				       : *(const uint32_t *)(const void *)field;
}

static void
set(struct slu_executor_config *config, const struct setting *s, int64_t value)
{
	char *field = (char *)config + s->offset;

	if (s->kind == SETTING_TIME)
		*(slu_time *)(void *)field = value;
	else
		*(uint32_t *)(void *)field = (uint32_t)value;
}

static int
parse_setting(const struct setting *s, const char *text, int64_t *value,
	      struct slu_err *err)
{
	struct slu_err why;
	int rc;

	if (s->kind == SETTING_TIME)
		rc = parse_duration(slice_of(text), value, &why);
	else
		rc = parse_i64(slice_of(text), 0, s->max, value, &why);
	return rc ? slu_fail(err, rc, "%s: %s", s->variable, why.text) : 0;
}

/* into->struct_size is the size of the caller's struct. */
int
executor_config_give(const struct slu_executor_config *from, struct slu_executor_config *into,
		     struct slu_err *err)
{
	struct slu_executor_config room;
	size_t size;

	if (!SIZED(slu_executor_config, into, &room, err))
		return SLU_EINVAL;
	size = into->struct_size;
	memcpy(into, from, size < sizeof *from ? size : sizeof *from);
	into->struct_size = size;
	return 0;
}

int
slu_executor_config_env(struct slu_executor_config *config, struct slu_err *err)
{
	NEED(config, err);

	struct slu_executor_config loaded = { SLU_OPTIONS_INIT(struct slu_executor_config) };

	for (int i = 0; i < N_SETTINGS; i++) {
		const char *text = getenv(settings[i].variable);
		int64_t value;
		int rc;

		if (!text)
			continue;
		rc = parse_setting(&settings[i], text, &value, err);
		if (rc)
			return rc;
		set(&loaded, &settings[i], value);
	}
	return executor_config_give(&loaded, config, err);
}

int
executor_config_check(struct slu_executor_config *config, struct slu_err *err)
{
	for (int i = 0; i < N_SETTINGS; i++) {
		const struct setting *s = &settings[i];
		const int64_t value = get(config, s);

		if (value < 0 || value > s->max)
			return slu_fail(err, SLU_EINVAL, "invalid %s: %lld; expected 0 to %lld",
					s->field, (long long)value, (long long)s->max);
		if (value == 0)
			set(config, s, s->fallback);
	}
	if (config->backoff > SLU_BACKOFF_FUNCTION || config->jitter > SLU_JITTER_FULL)
		return slu_fail(err, SLU_EINVAL, "invalid backoff %d or jitter %d",
				(int)config->backoff, (int)config->jitter);
	if (config->backoff == SLU_BACKOFF_FUNCTION && !config->backoff_fn)
		return slu_fail(err, SLU_EINVAL, "backoff_fn is not set; SLU_BACKOFF_FUNCTION needs it");
	if (!config->metrics_namespace)
		config->metrics_namespace = "sluice";
	return 0;
}
