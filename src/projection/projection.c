#include "projection/projection.h"

#include "base/log.h"
#include "base/mem.h"
#include "projection/lanecopy.h"

#include <inttypes.h>

#define RETRY    (1 * SLU_SEC)  /* after a failure */
#define IDLE_MAX (250 * SLU_MS) /* between two looks at the changes */
#define IDLE_MIN (10 * SLU_MS)

struct projection {
	struct projection_conf conf;
	struct engine_observer observer;
	struct copier copier;
	_Atomic(struct lanecopy *) lanes[BROKER_LANES_MAX]; /* NULL: the lane was never opened */
	bool failing;                                       /* of the thread */

	/* Shared, under mtx. */
	pthread_mutex_t mtx;
	pthread_cond_t wake;
	bool stops;

	pthread_t thread;
	bool runs;
};

/* ---- Observer: the threads of the lanes ---- */

static slu_time
now_mono(void)
{
	return clock_mono(&clock_system);
}

static void
on_opened(void *arg, uint32_t lane, uint64_t epoch)
{
	struct projection *const p = arg;
	struct lanecopy *l = atomic_load(&p->lanes[lane]);

	if (!l) {
		l = lanecopy_new(lane, p->conf.changes);
		if (!l) {
			log_error(p->conf.log, "no memory for the projection of a shard", F_U64("shard", lane));
			return;
		}
		atomic_store(&p->lanes[lane], l);
	}
	lanecopy_opened(l, epoch);
}

static void
on_closed(void *arg, uint32_t lane)
{
	struct projection *const p = arg;
	struct lanecopy *const l = atomic_load(&p->lanes[lane]);

	if (l)
		lanecopy_closed(l);
}

static void
on_changed(void *arg, uint32_t lane, const struct change *c)
{
	struct projection *const p = arg;
	struct lanecopy *const l = atomic_load(&p->lanes[lane]);

	if (l)
		lanecopy_changed(l, c, now_mono());
}

/* ---- The thread ---- */

/* Returns true if the thread has to end. */
static bool
rest(struct projection *p, slu_time time)
{
	bool stops;

	pthread_mutex_lock(&p->mtx);
	if (!p->stops && time > 0)
		clock_wait(&clock_system, &p->wake, &p->mtx, now_mono() + time);
	stops = p->stops;
	pthread_mutex_unlock(&p->mtx);
	return stops;
}

static void
note_outcome(struct projection *p, int rc, const struct slu_err *err)
{
	if (rc && !p->failing)
		log_warn(p->conf.log, "projection behind", F_STR("why", err->text));
	else if (!rc && p->failing)
		log_info(p->conf.log, "projection goes on");
	p->failing = rc != 0;
}

/* A batch of every lane. Returns how long to wait before the next. */
static slu_time
work(struct projection *p)
{
	const slu_time idle = p->conf.after / 4;
	bool any = false;
	struct slu_err err = { 0 };
	int rc = 0;

	for (uint32_t i = 0; i < broker_lanes(p->copier.broker) && !rc; i++) {
		struct lanecopy *const l = atomic_load(&p->lanes[i]);
		bool more = false;

		if (l)
			rc = lanecopy_work(l, &p->copier, now_mono(), &more, &err);
		any |= more;
	}
	note_outcome(p, rc, &err);
	if (rc)
		return RETRY;
	return any ? 0 : idle < IDLE_MIN ? IDLE_MIN
		 : idle > IDLE_MAX       ? IDLE_MAX
					 : idle;
}

static void *
run(void *arg)
{
	struct projection *const p = arg;

	while (!rest(p, work(p)))
		;
	return NULL;
}

/* ---- Open and close ---- */

int
projection_new(struct projection **out, const struct projection_conf *conf, struct slu_err *err)
{
	struct projection *const p = mem_zalloc(sizeof *p);

	*out = p;
	if (!p)
		return slu_fail(err, SLU_ENOMEM, "no memory for the projection");
	p->conf = *conf;
	p->observer = (struct engine_observer){ p, on_opened, on_closed, on_changed };
	p->copier.conf = &p->conf;
	items_batch_init(&p->copier.batch);
	pthread_mutex_init(&p->mtx, NULL); /* these cannot fail without attributes */
	pthread_cond_init(&p->wake, NULL);
	p->copier.items = items_new(conf->url);
	if (p->copier.items)
		return 0;
	projection_free(p);
	*out = NULL;
	return slu_fail(err, SLU_ENOMEM, "no memory for the projection");
}

const struct engine_observer *
projection_observer(const struct projection *p)
{
	return p ? &p->observer : NULL;
}

int
projection_start(struct projection *p, struct broker *b, struct slu_err *err)
{
	int rc;

	p->copier.broker = b;
	rc = lanelook_init(&p->copier.look, b, err);
	if (rc)
		return rc;
	if (pthread_create(&p->thread, NULL, run, p))
		return slu_fail(err, SLU_EDOWN, "cannot start a thread for the projection");
	p->runs = true;
	return 0;
}

void
projection_stop(struct projection *p)
{
	if (!p || !p->runs)
		return;
	pthread_mutex_lock(&p->mtx);
	p->stops = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->mtx);
	pthread_join(p->thread, NULL);
	p->runs = false;
}

void
projection_free(struct projection *p)
{
	if (!p)
		return;
	projection_stop(p);
	for (uint32_t i = 0; i < BROKER_LANES_MAX; i++)
		lanecopy_free(atomic_load(&p->lanes[i]));
	if (p->copier.broker)
		lanelook_release(&p->copier.look);
	items_batch_release(&p->copier.batch);
	items_free(p->copier.items);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->mtx);
	mem_free(p);
}

/* ---- Metrics ---- */

static void
count(struct projection *p, struct projection_counts *out)
{
	const slu_time now = now_mono();

	*out = (struct projection_counts){
		.messages = atomic_load(&p->copier.messages),
		.transactions = atomic_load(&p->copier.transactions),
		.failures = atomic_load(&p->copier.failures),
		.rebuilds = atomic_load(&p->copier.rebuilds),
	};
	for (uint32_t i = 0; i < BROKER_LANES_MAX; i++) {
		struct lanecopy *const l = atomic_load(&p->lanes[i]);

		if (l)
			lanecopy_count(l, p->conf.after, now, out);
	}
}

static void
put_metric(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void
projection_metrics(struct projection *p, struct buf *out)
{
	struct projection_counts c = { 0 };
	const struct {
		const char *name, *help;
		const uint64_t *value;
	} counters[] = {
		{ "sluice_projection_messages_total", "messages that the projection has written or removed", &c.messages },
		{ "sluice_projection_transactions_total", "transactions of the projection", &c.transactions },
		{ "sluice_projection_failures_total", "attempts of the projection that failed: the database, or a shard", &c.failures },
		{ "sluice_projection_rebuilds_total", "rebuilds of the projection that were begun", &c.rebuilds },
	};

	if (p)
		count(p, &c);
	for (size_t i = 0; i < COUNT(counters); i++) {
		put_metric(out, counters[i].name, "counter", counters[i].help);
		if (p)
			buf_printf(out, "%s %" PRIu64 "\n", counters[i].name, *counters[i].value);
	}
	put_metric(out, "sluice_projection_waiting", "gauge", "changed messages that wait to be written to the projection");
	if (p)
		buf_printf(out, "sluice_projection_waiting %" PRIu64 "\n", c.waiting);
	put_metric(out, "sluice_projection_lag_seconds", "gauge",
		   "how long the oldest change is overdue in the projection, beyond projection.after");
	if (p)
		buf_printf(out, "sluice_projection_lag_seconds %.3f\n", (double)c.lag / SLU_SEC);
	put_metric(out, "sluice_projection_rebuilding", "gauge", "1: the projection is being rebuilt");
	if (p)
		buf_printf(out, "sluice_projection_rebuilding %d\n", c.rebuilding);
}
