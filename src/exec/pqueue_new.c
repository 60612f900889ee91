#include "exec/pqueue_lock.h"

#include "base/forked.h"
#include "base/mem.h"
#include "base/need.h"
#include "base/sized.h"

#include <assert.h>
#include <stdio.h>

enum {
	MAX_IN_MEMORY = 1000000
};

/* clang-format off */
static const struct metric metric_rows[] = {
	[M_DEPTH]     = { "queue_depth", METRIC_GAUGE, "jobs ready or scheduled" },
	[M_READY]     = { "queue_ready", METRIC_GAUGE, "jobs that are due" },
	[M_SCHEDULED] = { "queue_scheduled", METRIC_GAUGE, "jobs not yet due" },
	[M_ENQUEUED]  = { "enqueued_total", METRIC_COUNTER, "jobs accepted" },
	[M_REFUSED]   = { "refused_total", METRIC_COUNTER, "jobs refused: full or stopped" },
	[M_LATENCY]   = { "dequeue_latency_seconds", METRIC_HISTOGRAM, "from due to handed out" },
};
/* clang-format on */

static int
init_metrics(struct slu_pqueue *q, const char *name, struct slu_err *err)
{
	char prefix[sizeof q->metrics.prefix];
	const int n = snprintf(prefix, sizeof prefix, "%s_pqueue_", name);
	int rc = SLU_EINVAL;

	if (n < (int)sizeof prefix)
		rc = metrics_init(&q->metrics, prefix, metric_rows,
				  sizeof metric_rows / sizeof metric_rows[0], NULL, 1);
	if (rc == SLU_EINVAL)
		return slu_fail(err, rc, "invalid metrics namespace \"%.80s\"; expected letters, digits and _",
				name);
	return rc ? slu_fail(err, SLU_ENOMEM, "out of memory") : 0;
}

/* The `age` of one step of priority: max_wait divided by the span of all priorities, rounded
 * down. */
static slu_time
age_of(const struct labels *labels, slu_time max_wait)
{
	const int64_t span = labels_span(labels);

	if (max_wait == 0)
		return QUEUE_STRICT;
	return span ? max_wait / span : 0;
}

static void
init_limits(struct slu_pqueue *q, const struct slu_pqueue_config *c)
{
	q->max_held = c->max_in_memory ? c->max_in_memory : MAX_IN_MEMORY;
	q->max_scheduled = c->max_scheduled ? c->max_scheduled : q->max_held;
	q->ready_level.warn_at = c->warn_depth;
	q->scheduled_level.warn_at = c->warn_scheduled;
}

static void
init_locks(struct slu_pqueue *q)
{
	int rc;

	rc = pthread_mutex_init(&q->mtx, NULL);
	rc |= pthread_cond_init(&q->work, NULL);
	rc |= pthread_cond_init(&q->drained, NULL);
	assert(rc == 0); /* default attributes */
}

/* The steps that can fail. */
static int
init_tables(struct slu_pqueue *q, const struct slu_pqueue_config *c, struct slu_err *err)
{
	int rc;

	rc = labels_init(&q->labels, c->priorities, c->n_priorities, c->default_label, err);
	if (rc)
		return rc;
	rc = init_metrics(q, c->metrics_namespace ? c->metrics_namespace : "sluice", err);
	if (rc)
		labels_release(&q->labels);
	return rc;
}

static void
init_state(struct slu_pqueue *q, const struct slu_pqueue_config *c, struct clock *clock)
{
	q->born = forked_now();
	q->clock = clock;
	q->log = c->log;
	q->wall_read = clock_mono(clock);
	q->wall_offset = clock_wall(clock) - q->wall_read;
	slab_init(&q->items, sizeof(struct pqueue_item));
	queue_init(&q->queue, &q->items, age_of(&q->labels, c->max_wait), false);
}

int
pqueue_new_on(struct slu_pqueue **out, const struct slu_pqueue_config *config,
	      struct clock *clock, struct slu_err *err)
{
	struct slu_pqueue_config room;
	const struct slu_pqueue_config *c = SIZED(slu_pqueue_config, config, &room, err);
	struct slu_pqueue *q;
	int rc;

	*out = NULL;
	if (!c)
		return SLU_EINVAL;
	if (c->max_wait < 0)
		return slu_fail(err, SLU_EINVAL, "invalid max_wait; expected 0 or more");
	q = mem_zalloc(sizeof *q);
	if (!q)
		return slu_fail(err, SLU_ENOMEM, "out of memory");
	rc = init_tables(q, c, err);
	if (rc) {
		mem_free(q);
		return rc;
	}
	init_limits(q, c);
	init_locks(q);
	init_state(q, c, clock);
	*out = q;
	return 0;
}

int
slu_pqueue_new(struct slu_pqueue **out, const struct slu_pqueue_config *config,
	       struct slu_err *err)
{
	NEED(out, err);

	return pqueue_new_on(out, config, &clock_system, err);
}

void
slu_pqueue_free(struct slu_pqueue *q, void (*drop)(void *data))
{
	if (!q || q->born != forked_now())
		return;
	(void)slu_pqueue_purge(q, drop); /* the number is not needed */
	assert(q->queue.held == 0);      /* workers have settled their jobs */
	pthread_cond_destroy(&q->drained);
	pthread_cond_destroy(&q->work);
	pthread_mutex_destroy(&q->mtx);
	queue_release(&q->queue);
	slab_release(&q->items);
	metrics_release(&q->metrics);
	labels_release(&q->labels);
	mem_free(q);
}
