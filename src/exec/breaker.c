/*
 * breaker.c - a set of breakers by name: lock, clock, log and metrics around the rules of
 * core/breaker.c.
 */
#include "exec/breaker.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/metrics.h"
#include "base/need.h"
#include "core/breaker.h"

#include <stdio.h>
#include <sys/random.h>

enum {
	NAME_MAX_BYTES = 64
};

struct slu_breaker {
	struct slu_breakers *set;
	char name[NAME_MAX_BYTES + 1];
	struct list node; /* shared, under the set's mtx, as all below */
	struct breaker breaker;
	uint64_t denied;
};

struct slu_breakers {
	struct breaker_rules rules;
	struct clock *clock;
	struct slu_log *log;
	char prefix[64]; /* of the metrics */
	pthread_mutex_t mtx;
	struct list members; /* shared, under mtx, as all below */
	unsigned count;
};

enum {
	M_STATE,
	M_DENIED,
	METRICS
};

static const struct metric metric_rows[METRICS] = {
	[M_STATE] = { "breaker_state_gauge", METRIC_GAUGE, "0 closed, 1 open, 2 half open" },
	[M_DENIED] = { "breaker_denied_total", METRIC_COUNTER, "calls the breaker denied" },
};

static const struct {
	const char *name;
	const char *event; /* logged when it becomes so */
	enum slu_log_level level;
} states[] = {
	[SLU_BREAKER_CLOSED] = { "closed", "breaker closed", SLU_LOG_INFO },
	[SLU_BREAKER_OPEN] = { "open", "breaker opened", SLU_LOG_WARN },
	[SLU_BREAKER_HALF_OPEN] = { "half open", "breaker half open", SLU_LOG_INFO },
};

/* If the system gives no random number there is no jitter, which is allowed. */
static uint64_t
throw_dice(void)
{
	uint64_t random = 0;

	(void)getrandom(&random, sizeof random, GRND_NONBLOCK);
	return random;
}

static int
check_config(const struct slu_breaker_config *c, struct slu_err *err)
{
	if (c->open_cooldown < 0)
		return slu_fail(err, SLU_EINVAL, "invalid open_cooldown; expected 0 or more");
	if (c->jitter_percent > 100)
		return slu_fail(err, SLU_EINVAL, "invalid jitter_percent: %u; expected at most 100",
				c->jitter_percent);
	return 0;
}

/* Refuses an invalid metrics namespace now, not at the first slu_breakers_metrics. */
static int
set_prefix(struct slu_breakers *set, const char *namespace, struct slu_err *err)
{
	struct metrics trial;
	const int n = snprintf(set->prefix, sizeof set->prefix, "%s_",
			       namespace ? namespace : "sluice");
	int rc = SLU_EINVAL;

	if (n < (int)sizeof set->prefix)
		rc = metrics_init(&trial, set->prefix, metric_rows, METRICS, "platform", 0);
	if (rc)
		return slu_fail(err, rc, "metrics with the prefix \"%s\": %s",
				set->prefix, slu_err_row(rc)->text);
	metrics_release(&trial);
	return 0;
}

static struct breaker_rules
rules_of(const struct slu_breaker_config *c)
{
	return (struct breaker_rules){
		.failures = c->failures ? c->failures : 5,
		.probes = c->half_open_probe_count ? c->half_open_probe_count : 1,
		.cooldown = c->open_cooldown ? c->open_cooldown : 30 * SLU_SEC,
		.jitter_percent = c->jitter_percent,
	};
}

int
breakers_new_on(struct slu_breakers **out, const struct slu_breaker_config *config,
		struct clock *clock, struct slu_err *err)
{
	struct slu_breaker_config room;
	const struct slu_breaker_config *c = SIZED(slu_breaker_config, config, &room, err);
	struct slu_breakers *set;
	int rc;

	rc = c ? check_config(c, err) : SLU_EINVAL;
	if (rc)
		return rc;
	set = mem_zalloc(sizeof *set);
	if (!set)
		return slu_fail(err, SLU_ENOMEM, "no memory for breakers");
	set->rules = rules_of(c);
	set->clock = clock;
	set->log = c->log;
	list_init(&set->members);
	pthread_mutex_init(&set->mtx, NULL);
	rc = set_prefix(set, c->metrics_namespace, err);
	if (rc) {
		slu_breakers_free(set);
		return rc;
	}
	*out = set;
	return 0;
}

int
slu_breakers_new(struct slu_breakers **out, const struct slu_breaker_config *config,
		 struct slu_err *err)
{
	NEED(out, err);

	return breakers_new_on(out, config, &clock_system, err);
}

void
slu_breakers_free(struct slu_breakers *set)
{
	if (!set)
		return;
	LIST_EACH_SAFE(n, &set->members)
		mem_free(CONTAINER(n, struct slu_breaker, node));
	pthread_mutex_destroy(&set->mtx);
	mem_free(set);
}

static struct slu_breaker *
find(struct slu_breakers *set, const char *name)
{
	LIST_EACH(n, &set->members) {
		struct slu_breaker *b = CONTAINER(n, struct slu_breaker, node);

		if (strcmp(b->name, name) == 0)
			return b;
	}
	return NULL;
}

static struct slu_breaker *
add(struct slu_breakers *set, const char *name)
{
	struct slu_breaker *b = mem_zalloc(sizeof *b);

	if (!b)
		return NULL;
	b->set = set;
	memcpy(b->name, name, strlen(name) + 1);
	list_append(&set->members, &b->node);
	set->count++;
	return b;
}

struct slu_breaker *
slu_breaker_get(struct slu_breakers *set, const char *name)
{
	const size_t n = name ? strlen(name) : 0;
	struct slu_breaker *b;

	if (!set || n == 0 || n > NAME_MAX_BYTES)
		return NULL;
	pthread_mutex_lock(&set->mtx);
	b = find(set, name);
	if (!b)
		b = add(set, name);
	pthread_mutex_unlock(&set->mtx);
	return b;
}

/* Not under the lock: the writer of a log may call slu_breaker_state. */
static void
log_change(const struct slu_breaker *b, enum slu_breaker_state was,
	   enum slu_breaker_state is)
{
	if (is != was)
		LOG_AT(b->set->log, states[is].level, states[is].event,
		       F_STR("platform", b->name), F_STR("was", states[was].name));
}

int
slu_breaker_allow(struct slu_breaker *b, slu_time *retry_in)
{
	NEED(b, NULL);

	struct slu_breakers *set = b->set;
	enum slu_breaker_state was, is;
	slu_time wait = 0;
	int rc;

	pthread_mutex_lock(&set->mtx);
	was = b->breaker.state;
	rc = breaker_allow(&b->breaker, &set->rules, clock_mono(set->clock), &wait);
	is = b->breaker.state;
	b->denied += rc != 0;
	pthread_mutex_unlock(&set->mtx);

	log_change(b, was, is);
	if (retry_in)
		*retry_in = wait;
	return rc;
}

void
slu_breaker_report(struct slu_breaker *b, bool ok)
{
	if (!b)
		return;

	struct slu_breakers *set = b->set;
	const uint64_t random = ok || !set->rules.jitter_percent ? 0 : throw_dice();
	enum slu_breaker_state was, is;

	pthread_mutex_lock(&set->mtx);
	was = b->breaker.state;
	breaker_report(&b->breaker, &set->rules, ok, clock_mono(set->clock), random);
	is = b->breaker.state;
	pthread_mutex_unlock(&set->mtx);
	log_change(b, was, is);
}

enum slu_breaker_state
slu_breaker_state(struct slu_breaker *b)
{
	enum slu_breaker_state state;

	if (!b)
		return SLU_BREAKER_CLOSED;
	pthread_mutex_lock(&b->set->mtx);
	state = b->breaker.state;
	pthread_mutex_unlock(&b->set->mtx);
	return state;
}

/* Breakers are made on first use, so the series are known only now. */
static int
gather(struct slu_breakers *set, struct metrics *m)
{
	unsigned i = 0;
	int rc;

	rc = metrics_init(m, set->prefix, metric_rows, METRICS, "platform", set->count);
	if (rc)
		return rc;
	LIST_EACH(n, &set->members) {
		const struct slu_breaker *b = CONTAINER(n, struct slu_breaker, node);

		rc = metrics_name(m, i, b->name);
		if (rc)
			break;
		metrics_set(m, M_STATE, i, (int64_t)b->breaker.state);
		metrics_add(m, M_DENIED, i, b->denied);
		i++;
	}
	return rc;
}

int
slu_breakers_metrics(struct slu_breakers *set, char **text)
{
	NEED2(set, text, NULL);

	struct metrics m;
	int rc;

	pthread_mutex_lock(&set->mtx);
	rc = gather(set, &m);
	pthread_mutex_unlock(&set->mtx);
	if (!rc)
		rc = metrics_text(&m, text);
	metrics_release(&m);
	return rc;
}
